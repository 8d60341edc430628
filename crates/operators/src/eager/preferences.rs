//! What preference losses save of the policy.

use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::{LossKind, Objective, PreferenceLogits};

pub(super) const PREFERENCE: &str = "trl/trainer/utils.py:selective_log_softmax";
const OWN: &str = "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss, trl/trainer/kto_trainer.py:KTOTrainer._compute_loss";
const SIGNS: &str = "trl/trainer/kto_trainer.py:KTOTrainer._compute_loss";
const FACTORY: &str = "llamafactory/train/trainer_utils.py:get_batch_logps, as train/dpo/trainer.py and train/kto/trainer.py call it";
const WHOLE: &str = "princeton-nlp/SimPO scripts/simpo_trainer.py:SimPOTrainer.get_batch_loss_metrics";
const ODDS_OF: &str =
    "trl/experimental/orpo/orpo_trainer.py:ORPOTrainer.concatenated_forward, cpo/cpo_trainer.py the same";
const KERNEL: &str = "trl/kernels/logprob_entropy.py:_LogProbEntropyFunction";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static POLICY: Formula = Formula::new(
    "b·(s - 1)·V·Bl",
    "Log-softmax of every sequence of the pair, in the logits' dtype.",
    PREFERENCE,
);
static POLICY_FP32: Formula =
    Formula::new("4·n·V", "The logits, from which each token's is picked.", PREFERENCE);
static NORMALISER: Formula = Formula::new("4·b·(s - 1)", "Each token's log-sum-exp, fp32.", PREFERENCE);
static WHOLE_LOGITS: Formula = Formula::new("n·V·Bl", "The logits as they are passed to the loss.", KERNEL);
static KERNEL_SUMS: Formula =
    Formula::new("8·b·(s - 1)", "Each token's log-sum-exp and expected logit, fp32.", KERNEL);
static KERNEL_CONTRAST: Formula = Formula::new(
    "8·b",
    "Margins and buffers of both sigmoids of each pair: the kernel returns fp32.",
    "trl/experimental/cpo/cpo_trainer.py:CPOTrainer.cpo_loss",
);
static INDICES: Formula = Formula::new("8·n", "Token ids that are gathered, int64.", PREFERENCE);
static COMPLETION: Formula = Formula::new("4·b·(s - 1)", "The completion mask, fp32.", PREFERENCE);
static SIGMOID: Formula =
    Formula::new("4·b", "Margin of each pair and its sigmoid's buffer, fp32.", PREFERENCE);
static OWN_MASK: Formula = Formula::new("b·(s - 1)", "The completion mask, one byte each.", OWN);
static OWN_MARGINS: Formula =
    Formula::new("b·Bl", "Each pair's margin after its sigmoid, and the scaled difference before it.", OWN);
static SIGNS_PLACES: Formula = Formula::new(
    "8·(b + 1)",
    "Indices of desirable and undesirable samples, and how many of their losses are not NaN, int64.",
    SIGNS,
);
static SIGNS_MARGINS: Formula = Formula::new(
    "(3·b + 2)·Bl",
    "Each sample's margin after its sigmoid, its weighted loss and whether that is NaN.",
    SIGNS,
);
static WIDE_POLICY: Formula =
    Formula::new("4·b·(s - 1)·V", "Log-softmax of every sequence's logits, cast to fp32.", FACTORY);
static WIDE_INDICES: Formula = Formula::new("8·b·(s - 1)", "Token ids that are gathered, int64.", FACTORY);
static WIDE_COMPLETION: Formula = Formula::new("b·(s - 1)", "The completion mask, one byte each.", FACTORY);
static WIDE_MARGINS: Formula = Formula::new(
    "8·b",
    "Margins and buffers of the sigmoids of DPO, fp32; losses without a reference have up to 12 bytes more of each sequence.",
    FACTORY,
);
static WHOLE_POLICY: Formula =
    Formula::new("b·(s - 1)·V·Bl", "Log-softmax of every sequence's logits, in the logits' dtype.", WHOLE);
static WHOLE_COUNTS: Formula = Formula::new("8·b", "Tokens of each completion, int64.", WHOLE);
static WHOLE_MARGINS: Formula =
    Formula::new("2·b·Bl", "Margins and buffers of both sigmoids of each pair.", WHOLE);

static CHOSEN: Formula = Formula::new(
    "b·(s - 1)·V·Bl/2",
    "Log-softmax of the chosen samples' logits once more, for their cross entropy.",
    ODDS_OF,
);
static CHOSEN_LABELS: Formula =
    Formula::new("4·b·(s - 1)", "The chosen samples' labels but the first of each, int64.", ODDS_OF);
static BOTH_LABELS: Formula =
    Formula::new("8·n", "The labels of both samples, of which the chosen one's are read, int64.", ODDS_OF);
static CHOSEN_WEIGHT: Formula = Formula::new("Bl", "The cross entropy's total weight.", ODDS_OF);
static COUNTS_OF_MEANS: Formula =
    Formula::new("8·b", "Tokens of each completion, int64, which the sums are divided by.", ODDS_OF);
static ODDS: Formula = Formula::new(
    "21·b",
    "Of each sample ten numbers in fp32 for each pair's odds, and which branch of their logarithm was taken.",
    "trl/experimental/orpo/orpo_trainer.py:log1mexp, ORPOTrainer.odds_ratio_loss",
);
static CONTRAST: Formula = Formula::new(
    "2·b·Bl",
    "Margins and buffers of both sigmoids of each pair.",
    "trl/experimental/cpo/cpo_trainer.py:CPOTrainer.cpo_loss",
);

/// Depends on what the trainer does with the logits; SimPO's own trainer has only pairs.
pub(super) fn preference(tape: &mut Tape<'_, '_>) {
    match tape.x.recipe().transformers.preference_logits {
        // torchtune's function is the same except for a division, for which nothing is saved
        // (`torchtune/rlhf/sequence_processing.py`).
        PreferenceLogits::Fp32 | PreferenceLogits::Named => fp32_preference(tape),
        PreferenceLogits::Whole => whole_preference(tape),
        PreferenceLogits::Odds
        | PreferenceLogits::Contrast
        | PreferenceLogits::ContrastOfMeans
        | PreferenceLogits::Means => with_chosen(tape),
        PreferenceLogits::States
        | PreferenceLogits::AllStates
        | PreferenceLogits::LabelledStates
        | PreferenceLogits::StatesOdds => super::scored_states::kept(tape),
        PreferenceLogits::Own | PreferenceLogits::Dropped => by_sequence(tape),
    }
}

/// What LLaMA-Factory's preference losses save of the policy: `log_softmax` of all logits, cast to fp32.
fn fp32_preference(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let behind = x.s.saturating_sub(1);
    tape.keep(true, "log-softmax", &[x.b, behind, x.v], FLOAT, &WIDE_POLICY);
    tape.keep(true, "picked tokens", &[x.b, behind], INDEX, &WIDE_INDICES);
    tape.keep(true, "completion mask", &[x.b, behind], BYTE, &WIDE_COMPLETION);
    tape.keep(true, "margins", &[x.b], 2 * FLOAT, &WIDE_MARGINS);
}

/// What SimPO's own trainer saves: `log_softmax` of all logits in the model's output format.
fn whole_preference(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (width, behind) = (x.logits_width(), x.s.saturating_sub(1));
    tape.keep(true, "log-softmax", &[x.b, behind, x.v], width, &WHOLE_POLICY);
    tape.keep(true, "picked tokens", &[x.b, behind], INDEX, &WIDE_INDICES);
    tape.keep(true, "completion mask", &[x.b, behind], BYTE, &WIDE_COMPLETION);
    tape.keep(true, "tokens of each completion", &[x.b], INDEX, &WHOLE_COUNTS);
    tape.keep(true, "margins", &[x.b], 2 * width, &WHOLE_MARGINS);
}

/// What TRL's ORPO, CPO and SimPO save: each sequence's log-probabilities, and usually the cross entropy of the first
/// half, the chosen samples.
fn with_chosen(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (width, behind, pairs) = (x.logits_width(), x.s.saturating_sub(1), x.b / 2);
    let by_kernel = x.recipe().loss == LossKind::TokenKernel;
    if by_kernel {
        tape.keep(true, "logits", &[x.n, x.v], width, &WHOLE_LOGITS);
        tape.keep(
            true,
            "log of the softmax's sum and expected logit",
            &[x.b, behind],
            2 * FLOAT,
            &KERNEL_SUMS,
        );
    } else if width < FLOAT {
        tape.keep(true, "log-softmax", &[x.b, behind, x.v], width, &POLICY);
    } else {
        tape.keep(true, "logits", &[x.n, x.v], FLOAT, &POLICY_FP32);
        tape.keep(true, "log of the softmax's sum", &[x.b, behind], FLOAT, &NORMALISER);
    }
    tape.keep(true, "picked tokens", &[x.b, behind], INDEX, &WIDE_INDICES);
    tape.keep(true, "completion mask", &[x.b, behind], BYTE, &WIDE_COMPLETION);
    let kind = x.recipe().transformers.preference_logits;
    if kind.has_chosen() {
        tape.keep(true, "log-softmax of chosen samples", &[pairs, behind, x.v], width, &CHOSEN);
        // For a single pair they are a view of both samples' logits.
        if pairs == 1 {
            tape.keep(true, "labels of chosen samples", &[x.n], INDEX, &BOTH_LABELS);
        } else {
            tape.keep(true, "labels of chosen samples", &[pairs, behind], INDEX, &CHOSEN_LABELS);
        }
        tape.keep(true, "total weight of chosen samples", &[1], width, &CHOSEN_WEIGHT);
    }
    if kind.takes_means() {
        tape.keep(true, "tokens of each completion", &[x.b], INDEX, &COUNTS_OF_MEANS);
    }
    if kind == PreferenceLogits::Odds {
        tape.keep(true, "odds", &[x.b], 21, &ODDS);
    } else if by_kernel {
        tape.keep(true, "margins", &[x.b], 2 * FLOAT, &KERNEL_CONTRAST);
    } else {
        tape.keep(true, "margins", &[x.b], 2 * width, &CONTRAST);
    }
}

/// What a preference loss saves of the policy; the reference runs without gradients and saves nothing.
fn by_sequence(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let behind = x.s.saturating_sub(1);
    let width = x.logits_width();
    if width < FLOAT {
        tape.keep(true, "log-softmax", &[x.b, behind, x.v], width, &POLICY);
    } else {
        tape.keep(true, "logits", &[x.n, x.v], FLOAT, &POLICY_FP32);
        tape.keep(true, "log of the softmax's sum", &[x.b, behind], FLOAT, &NORMALISER);
    }
    // The embedding saves the same indices if it trains.
    let tuning = &x.recipe().tuning;
    tape.keep(!tuning.embedding, "picked tokens", &[x.n], INDEX, &INDICES);
    let own = x.recipe().transformers.preference_logits == PreferenceLogits::Own;
    let is_kto = matches!(tuning.objective, Objective::Kto { .. });
    if own || is_kto {
        tape.keep(true, "completion mask", &[x.b, behind], BYTE, &OWN_MASK);
        if !is_kto {
            return tape.keep(true, "margins", &[x.b], width, &OWN_MARGINS);
        }
        tape.keep(true, "indices of desirable and undesirable samples", &[x.b + 1], INDEX, &SIGNS_PLACES);
        return tape.keep(true, "margins", &[3 * x.b + 2], width, &SIGNS_MARGINS);
    }
    tape.keep(true, "completion mask", &[x.b, behind], FLOAT, &COMPLETION);
    tape.keep(true, "margins", &[x.b], FLOAT, &SIGMOID);
}
