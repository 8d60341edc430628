//! Evaluation between steps: a forward pass without gradients over a batch of its own; its peak is at the loss.

use super::evaluation_tiles::{cast, evaluation as in_tiles};
use super::gathered::Gathered;
use super::term::Term;
use super::unit::Counts;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols};
use shardscope_plan::{LossKind, Objective, PreferenceLogits, Reference};
use shardscope_units::{Bytes, Count, Quantity};

const LOSS: &str = "transformers/loss/loss_utils.py:ForCausalLMLoss, in evaluation";
const OF_CHAT: &str =
    "DeepSpeedExamples applications/DeepSpeed-Chat/training/step1_supervised_finetuning/main.py:evaluation";
const OF_PAIRS: &str =
    "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss, trl/trainer/utils.py:entropy_from_logits";
/// Rows of logits for which TRL computes the entropy at once.
const ENTROPY_ROWS: u64 = 128;
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// The loss and the weight that it is divided by, one fp32 number each.
const SCALARS: u64 = 2 * FLOAT;

static HIDDEN: Formula = Formula::new(
    "be·s·h·B",
    "The final norm's output for an evaluation batch of be sequences; the model's output refers to it.",
    LOSS,
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static LOGITS: Formula =
    Formula::new("be·s·V·Bc", "The logits of an evaluation batch of be sequences.", LOSS)
        .letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static CACHE: Formula = Formula::new(
    "2·L·be·s·k·d·B",
    "Keys and values of L layers, which the model's output refers to (`use_cache` is on by default).",
    "transformers/cache_utils.py:DynamicCache; DeepSpeed-Chat's main.py:evaluation",
)
.letters(&[
    ("be", "sequences of an evaluation batch; of preferences, pairs"),
    ("L", "layers with attention"),
]);
static BEFORE: Formula = Formula::new(
    "be·s·V·Bc + 4",
    "Logits and loss of the evaluation batch before: the loop keeps a reference to the model's output until it has the next one.",
    OF_CHAT,
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static CACHE_BEFORE: Formula = Formula::new(
    "2·L·be·s·k·d·B",
    "Keys and values of L layers in the output for the evaluation batch before.",
    OF_CHAT,
)
.letters(&[
    ("be", "sequences of an evaluation batch; of preferences, pairs"),
    ("L", "layers with attention"),
]);
static COPY: Formula = Formula::new("4·be·s·V", "The same logits in fp32.", LOSS)
    .letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static SOFTMAX: Formula = Formula::new("4·be·s·V", "Their log-softmax, fp32.", LOSS)
    .letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static LABELS: Formula = Formula::new(
    "8·be·(2·s + 1) + 8",
    "The labels padded by one and the same moved by one, int64; the loss and its weight.",
    LOSS,
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static ONE_LABELS: Formula =
    Formula::new("8·(s + 1) + 8", "The labels padded by one, int64; the loss and its weight.", LOSS);
static PAIRS: Formula = Formula::new(
    "2·be·s·V·Bl",
    "The logits of an evaluation batch of be pairs, as the loss gets them.",
    OF_PAIRS,
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static BESIDE: Formula = Formula::new("2·be·s·V·Bl", "The reference's logits of the same pairs.", OF_PAIRS)
    .letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static FLAT: Formula =
    Formula::new("2·be·(s - 1)·V·Bl", "A copy of the logits but the last of each sequence.", OF_PAIRS)
        .letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static WHOLE: Formula = Formula::new(
    "2·be·(s - 1)·V·Bl",
    "Log-softmax of the logits of an evaluation batch of be pairs.",
    "princeton-nlp/SimPO scripts/simpo_trainer.py:SimPOTrainer.get_batch_logps",
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static ENTROPY: Formula = Formula::new(
    "6·be·(s - 1)·V·Bl",
    "Log-softmax, probabilities and their product, from which the entropy of a few rows is taken.",
    OF_PAIRS,
)
.letters(&[("be", "sequences of an evaluation batch; of preferences, pairs")]);
static ENTROPY_PART: Formula = Formula::new(
    "3·128·V·Bl",
    "Log-softmax, probabilities and their product, from which the entropy is taken of 128 rows at once.",
    OF_PAIRS,
);
static CAST: Formula = Formula::new(
    "2·W",
    "Copies in 16 bits of W elements of weights, which autocast caches until the forward pass is over.",
    "aten/src/ATen/autocast_mode.cpp:cached_cast",
)
.letters(&[("W", "elements of weights")]);

/// What is alive while the loss of an evaluation is computed, including gathered weights; empty if none is modelled.
/// Matches recorded runs to the byte (`tests/data/activations/evaluation_peak.tsv`, `named_output.tsv`).
pub(super) fn evaluation(x: &Symbols<'_>, counts: &Counts, gathered: &Gathered) -> Vec<Term> {
    let transformers = &x.recipe().transformers;
    let batch = transformers.evaluation_batch;
    let projects = SectionKind::count(counts, SectionKind::is_after_layers) > 0;
    // Liger's loss is fused with the output layer only in training
    // (`liger_kernel/transformers/model/llama.py:lce_forward`, `skip_logits`); others are fused in evaluation too.
    let has_logits =
        x.recipe().loss != LossKind::FusedLinear || transformers.liger_norms || transformers.liger_gates;
    // Log-probabilities of a policy's rollouts do not go through a trainer's loss.
    let scores = x.recipe().tuning.objective == Objective::Policy;
    if batch == 0 || scores || !has_logits || !projects || !x.recipe().software.semantics().eager_modules {
        return Vec::new();
    }
    if x.recipe().loss == LossKind::FusedTiles {
        let sequences = if matches!(x.recipe().tuning.objective, Objective::Dpo { .. }) { 2 } else { 1 };
        return in_tiles(x, counts, sequences * batch, gathered);
    }
    if let Objective::Dpo { reference } = x.recipe().tuning.objective {
        return of_pairs(x, reference, gathered);
    }
    let given = [("be", Count::new(batch).number())];
    let term = |name, shape: &[u64], width: u64, formula| {
        Term::new(name, Count::of_shape(shape).bytes(width), formula).given(&given).passing()
    };
    let logits = [batch, x.s, x.v];
    let mut terms = vec![
        term("evaluation's last hidden states", &[batch, x.s, x.h], x.width, &HIDDEN),
        term("evaluation's logits", &logits, x.compute_width, &LOGITS),
    ];
    if transformers.evaluation_cache {
        let layers = SectionKind::layers(counts);
        let bytes = Count::of_shape(&[2, layers, batch, x.s, x.k, x.d]).bytes(x.width);
        let given = [("be", Count::new(batch).number()), ("L", Count::new(layers).number())];
        let term = |name, formula| Term::new(name, bytes, formula).given(&given).passing();
        terms.push(term("evaluation's keys and values", &CACHE));
        if transformers.holds_output {
            terms.push(term("keys and values of the evaluation batch before", &CACHE_BEFORE));
        }
    }
    // From its second batch on.
    if transformers.holds_output {
        let before = Count::of_shape(&logits).bytes(x.compute_width) + Bytes::new(FLOAT);
        let before = Term::new("logits of the evaluation batch before", before, &BEFORE);
        terms.push(before.given(&given).passing());
    }
    if x.compute_width < FLOAT {
        terms.push(term("evaluation's logits in fp32", &logits, FLOAT, &COPY));
    }
    terms.push(term("evaluation's log-softmax", &logits, FLOAT, &SOFTMAX));
    let (labels, formula) = if batch == 1 { (x.s + 1, &ONE_LABELS) } else { (2 * x.s + 1, &LABELS) };
    let labels = Count::of_shape(&[batch, labels]).bytes(INDEX) + Bytes::new(SCALARS);
    terms.push(Term::new("evaluation's labels", labels, formula).given(&given).passing());
    if x.compute_width < x.width {
        let weights = cast(x, counts);
        let given = [("W", weights.number())];
        let copies = weights.bytes(x.compute_width);
        terms.push(Term::new("weights in 16 bits", copies, &CAST).given(&given).passing());
    }
    terms.extend_from_slice(gathered.in_forward());
    terms
}

/// The same for preference pairs under TRL, whose loss is computed from the logits after the model returns, with the
/// reference's logits also alive. The peak is either at the entropy, after both models, or in the reference's forward
/// pass if its gathered weights are larger. Matches recorded calls (`tests/data/activations/trl_dpo.jsonl`).
fn of_pairs(x: &Symbols<'_>, reference: Reference, gathered: &Gathered) -> Vec<Term> {
    let batch = x.recipe().transformers.evaluation_batch;
    let given = [("be", Count::new(batch).number())];
    let width = x.logits_width();
    let behind = 2 * batch * x.s.saturating_sub(1);
    let term = |name, shape: &[u64], formula| {
        Term::new(name, Count::of_shape(shape).bytes(width), formula).given(&given).passing()
    };
    let logits = [2 * batch, x.s, x.v];
    let mut terms = vec![term("evaluation's logits", &logits, &PAIRS)];
    if reference != Reference::Precomputed {
        terms.push(term("the reference's logits in evaluation", &logits, &BESIDE));
    }
    let entropy = "entropy of evaluation's logits";
    let entropy = if behind <= ENTROPY_ROWS {
        term(entropy, &[3, behind, x.v], &ENTROPY)
    } else {
        // A fixed number of rows at once, so its size does not depend on the batch.
        Term::new(entropy, Count::of_shape(&[3, ENTROPY_ROWS, x.v]).bytes(width), &ENTROPY_PART).passing()
    };
    let mut metrics = vec![term("rows of evaluation's logits", &[behind, x.v], &FLAT), entropy];
    // SimPO's trainer computes no entropy, but the log-softmax of all logits at once.
    if x.recipe().transformers.preference_logits == PreferenceLogits::Whole {
        metrics = vec![term("log-softmax of evaluation's logits", &[behind, x.v], &WHOLE)];
    }
    let sum = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<Bytes>();
    let weights = gathered.in_forward();
    terms.extend_from_slice(if sum(weights) > sum(&metrics) { weights } else { metrics.as_slice() });
    terms
}
