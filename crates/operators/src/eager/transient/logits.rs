//! What trainers around transformers do with the model's logits: log-probabilities of picked tokens, and metrics.

use super::shared::{FLOAT, NARROW};
use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{LossKind, Objective, PreferenceLogits, Reference, RlFramework};

const METRICS: &str = "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss, trl/trainer/kto_trainer.py:KTOTrainer._compute_loss, \
                   trl/trainer/utils.py:entropy_from_logits";

/// Rows of logits over which TRL computes the entropy at once (`trl/trainer/utils.py:entropy_from_logits`).
const ENTROPY_ROWS: u64 = 128;

static BESIDE: Formula = Formula::new(
    "n·V·Bl",
    "The reference's logits; the policy's output is named until the loss is done.",
    "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss",
);

static PICKED: Formula = Formula::new(
    "12·b·(s - 1)·V",
    "Gradients of the picked logits, of each sequence's and of all together, fp32.",
    "trl/trainer/utils.py:selective_log_softmax, whose gather and logsumexp autograd takes back",
);

pub(super) static HANDED_ON: Formula = Formula::new(
    "n·V·Bl",
    "The logits, which Accelerate hands on in fp32 and the trainer names.",
    "accelerate/accelerator.py:prepare_model; trl/trainer/sft_trainer.py:SFTTrainer.compute_loss",
);

static FLAT: Formula = Formula::new(
    "b·sampled·V·Bl",
    "A copy of the logits but the last of each sequence: as rows for their entropy, then of good and of bad samples.",
    METRICS,
);

static ENTROPY: Formula = Formula::new(
    "3·b·sampled·V·Bl",
    "Log-softmax, probabilities and their product, from which the entropy of a few rows is taken.",
    METRICS,
);

static ENTROPY_PART: Formula = Formula::new(
    "3·128·V·Bl",
    "Log-softmax, probabilities and their product, from which the entropy is taken of 128 rows at once.",
    METRICS,
);

static OF_ONE_KIND: Formula = Formula::new(
    "b·sampled·V·Bl/2",
    "Logits of the completions of good samples, or of bad ones: taken as half of all tokens.",
    METRICS,
);

static SCALED: Formula = Formula::new(
    "2·n·V·Bl",
    "Gradients of the logits over the temperature, which were divided in place, and of the logits.",
    GRPO,
);

static SCALED_ONE: Formula =
    Formula::new("4·n·V", "Gradient of the logits, which were divided in place, fp32.", GRPO);

static ROWS: Formula =
    Formula::new("b·(s - 1)·V·Bl", "Gradients of the log-probabilities of each sequence.", GRPO);

static ROWS_FP32: Formula =
    Formula::new("8·b·(s - 1)·V", "Gradients of the picked logits and of each sequence's sum, fp32.", GRPO);

static PUT_BACK: Formula = Formula::new(
    "n·V·Bl",
    "Gradient of the logits, of which those of picked log-probabilities become a part while both are there.",
    "trl/experimental/orpo/orpo_trainer.py:ORPOTrainer.concatenated_forward, whose slices autograd takes back",
);

static PICKED_ONE: Formula = Formula::new(
    "8·b·(s - 1)·V",
    "Gradients of the picked logits, and of each sequence's sum, fp32.",
    "trl/trainer/utils.py:selective_log_softmax, whose gather and logsumexp autograd takes back",
);

static CHOSEN: Formula = Formula::new(
    "b·(s - 1)·V·Bl/2",
    "A copy of the chosen samples' logits but the last of each.",
    "trl/experimental/orpo/orpo_trainer.py:ORPOTrainer.concatenated_forward, cross_entropy_loss",
);

static OF_ONE: Formula = Formula::new(
    "4·(s - 1)·V",
    "Exponentials of the logits of one sequence, of which the sum is taken, fp32.",
    "aten/src/ATen/native/ReduceOps.cpp:logsumexp_out_impl",
);

static OF_KERNEL: Formula = Formula::new(
    "b·(s - 1)·V·Bl",
    "Gradient of the logits, apart from them.",
    "trl/kernels/logprob_entropy.py:_LogProbEntropyFunction.backward",
);

const GRPO: &str = "trl/trainer/grpo_trainer.py:GRPOTrainer._get_per_token_logps_and_entropies";

const BY_ROWS: &str = "areal/utils/functional/vocab_parallel.py:_chunked_apply";
static OF_ROWS: Formula = Formula::new(
    "entropy_rows·V·(4 + Bc)",
    "The gradient of the rows of one call: as computed, in fp32, and in the logits' dtype.",
    BY_ROWS,
);
static OF_ROWS_ALONE: Formula =
    Formula::new("entropy_rows·V·Bc", "The gradient of the rows of one call.", BY_ROWS);
static SUM_OF_ROWS: Formula =
    Formula::new("n·V·Bc", "The gradient of all logits, to which that of each call is added.", BY_ROWS);
static SUMS_OF_ROWS: Formula = Formula::new(
    "2·n·V·Bc",
    "The gradient of all logits, and one of the same size that holds those of the rows of one call, to be added to it.",
    BY_ROWS,
);

static NARROW_BOTH: Formula =
    Formula::new("2·n·V·Bc", "Gradients of the log-softmax and of the 16-bit logits.", super::shared::LOSS);

/// Gradients of a loss over the 16-bit logits themselves.
pub(super) fn narrow_gradients(x: &Symbols<'_>) -> Option<Saved> {
    let narrow = x.recipe().loss == LossKind::TorchNarrow;
    let both = || Saved::several("gradients of the logits", &[2, x.n, x.v], x.compute_width, &NARROW_BOTH);
    narrow.then(both)
}

/// Gradients of logits that are processed this many rows at a time. Each call's gradient is first computed, then
/// placed into a tensor the size of all logits and accumulated: the larger of the two moments.
pub(super) fn rows_added_up(x: &Symbols<'_>, width: u64) -> Vec<Saved> {
    let (rows, all) = (x.entropy_rows(), [x.n, x.v]);
    let worked_out = Saved::new("gradient of rows of the logits", &[rows, x.v], FLOAT + width, &OF_ROWS);
    if x.n <= rows {
        return vec![worked_out];
    }
    let one = Saved::new("gradient of the logits", &all, width, &SUM_OF_ROWS);
    if x.n * width <= rows * FLOAT {
        return vec![one, worked_out];
    }
    vec![
        Saved::several("gradients of the logits", &[2, x.n, x.v], width, &SUMS_OF_ROWS),
        Saved::new("gradient of rows of the logits", &[rows, x.v], width, &OF_ROWS_ALONE),
    ]
}

/// What is alive in addition to what a loss on picked tokens saves, one sequence at a time or within one kernel: in
/// forward the logits and what the trainer derives from them, in backward their gradients.
pub(super) fn behind(x: &Symbols<'_>, forward: &mut Vec<Saved>, loss: &mut Vec<Saved>) {
    let recipe = x.recipe();
    let (width, objective, behind) = (x.logits_width(), recipe.tuning.objective, x.s.saturating_sub(1));
    let (wide, part) = ([x.n, x.v], [x.b, behind, x.v]);
    let policy = objective == Objective::Policy;
    let compares = objective.reference().is_some();
    let by_trl = policy && recipe.rollout.is_some_and(|rollout| rollout.framework == RlFramework::Trl);
    let named = compares && recipe.transformers.preference_logits == PreferenceLogits::Own || by_trl;
    // In fp32 the referenced logits are the saved ones.
    if (named || policy) && width == FLOAT {
        forward.clear();
    }
    if named && objective.reference().is_some_and(|from| from != Reference::Precomputed) {
        forward.push(Saved::new("the reference's logits", &wide, width, &BESIDE));
    }
    if named {
        forward.extend(metrics(x, width));
    }
    match (policy, width == FLOAT) {
        (true, true) => {
            loss.push(Saved::several(
                "gradients of picked logits",
                &[2, x.b, behind, x.v],
                FLOAT,
                &ROWS_FP32,
            ));
            loss.push(Saved::new("gradient of the logits", &wide, FLOAT, &SCALED_ONE));
        }
        (true, false) => {
            loss.push(Saved::new("gradients of log-probabilities", &part, width, &ROWS));
            loss.push(Saved::several("gradients of the logits", &[2, x.n, x.v], width, &SCALED));
        }
        (false, true) if compares => {
            loss.push(Saved::several("gradients of the fp32 logits", &[3, x.b, behind, x.v], FLOAT, &PICKED));
        }
        _ => loss.push(Saved::new("logits gradient", &wide, x.compute_width, &NARROW)),
    }
}

/// Whether it is a loss of TRL's ORPO or CPO, whose trainers have no fused output layer and read the logits.
pub(super) fn is_of_pairs(x: &Symbols<'_>) -> bool {
    let kind = x.recipe().transformers.preference_logits;
    x.recipe().tuning.objective.reference().is_some()
        && (kind.has_chosen() || kind == PreferenceLogits::Means)
}

/// What is alive in addition to what TRL's ORPO and CPO save: in forward a copy of the chosen samples' logits (for
/// one sample a view, in which case the log-probabilities of a sequence hold more), and in backward the gradients of
/// picked log-probabilities. The cross entropy's gradient is added to them in place, later and with less in memory.
pub(super) fn beside_chosen(x: &Symbols<'_>, logits: Saved) -> [Vec<Saved>; 2] {
    let (width, behind, pairs) = (x.logits_width(), x.s.saturating_sub(1), x.b / 2);
    let chosen = x.recipe().transformers.preference_logits.has_chosen();
    let by_kernel = x.recipe().loss == LossKind::TokenKernel;
    let copy = Saved::new("logits of chosen samples", &[pairs, behind, x.v], width, &CHOSEN);
    let forward = match () {
        // The logits are referenced until metrics are taken from them, and log-probabilities are separate tensors.
        () if width < FLOAT && !by_kernel => {
            vec![Saved::new("logits handed on", &[x.n, x.v], width, &HANDED_ON)]
        }
        () if chosen && pairs > 1 => vec![copy],
        () if chosen && by_kernel => Vec::new(),
        () if chosen => {
            vec![Saved::new("exponentials of a sequence's logits", &[behind, x.v], FLOAT, &OF_ONE)]
        }
        // While they are cast.
        () if width == FLOAT => vec![logits],
        () => Vec::new(),
    };
    let gradients = match () {
        () if by_kernel => Saved::new("gradient of the logits", &[x.b, behind, x.v], width, &OF_KERNEL),
        () if width < FLOAT => Saved::new("gradient of the logits", &[x.n, x.v], width, &PUT_BACK),
        () => Saved::several("gradients of the fp32 logits", &[2, x.b, behind, x.v], FLOAT, &PICKED_ONE),
    };
    [forward, vec![gradients]]
}

/// What TRL's supervised fine-tuning computes its metrics from, in addition to the softmax that its loss saves: the
/// logits, and for several sequences a copy of them.
pub(super) fn of_samples(x: &Symbols<'_>) -> Vec<Saved> {
    let width = x.logits_width();
    let [flat, part] = metrics(x, width);
    let logits = Saved::new("logits handed on", &[x.n, x.v], width, &HANDED_ON);
    [logits].into_iter().chain((x.b > 1).then_some(flat)).chain([part]).collect()
}

/// The same of the responses' tokens alone, whose logits are named by what is kept or held beside.
pub(super) fn of_sampled(x: &Symbols<'_>) -> Vec<Saved> {
    let [flat, part] = metrics(x, x.logits_width());
    (x.b > 1).then_some(flat).into_iter().chain([part]).collect()
}

/// What TRL computes its metrics from while the logits of policy and reference are alive: a copy of the policy's,
/// plus the larger of what the entropy of some rows takes and the logits of one kind of sample.
fn metrics(x: &Symbols<'_>, width: u64) -> [Saved; 2] {
    let one_kind = matches!(x.recipe().tuning.objective, Objective::Kto { .. });
    let behind = x.b * x.sampled_tokens();
    let flat = Saved::new("rows of the logits", &[behind, x.v], width, &FLAT);
    let name = "metrics of the logits";
    let beside = if behind <= ENTROPY_ROWS {
        Saved::several(name, &[3, behind, x.v], width, &ENTROPY)
    } else if behind <= 6 * ENTROPY_ROWS || !one_kind {
        Saved::several(name, &[3, ENTROPY_ROWS, x.v], width, &ENTROPY_PART)
    } else {
        // Half of the rows: their bytes are even, since elements have two or four.
        Saved::new(name, &[behind, x.v], width / 2, &OF_ONE_KIND)
    };
    [flat, beside]
}
