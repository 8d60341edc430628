//! Log-probabilities of rollouts, which the policy computes without gradients before it trains, in separate
//! micro-batches (`verl/workers/actor/dp_actor.py:compute_log_prob` of verl and of EasyR1). It runs in evaluation
//! mode, so nothing is recomputed. For packed samples nothing else of the logits' size exists, because one kernel
//! computes the log-probabilities and compiled code the entropy; for padded samples the entropy is computed outside
//! torch.compile (tests/record/verl_padded.py).

use super::log_probs_cut::{self, Pass};
use super::term::Term;
use super::totals::Totals;
use shardscope_explain::{Breakdown, Formula};
use shardscope_operators::{Symbols, TOWER_ALIVE};
use shardscope_plan::{LossKind, Objective, Plan};
use shardscope_units::{Bytes, Count, Quantity};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes that each logit of a chunk takes in that function.
const FUSED_BYTES: u64 = 16;
const SCORES: &str = "verl/workers/actor/dp_actor.py:compute_log_prob, transformers/models/llama/modeling_llama.py:LlamaForCausalLM.forward";
const BATCH: &str = "sequences of a micro-batch of log-probabilities";
const TOKENS: &str = "tokens of a micro-batch of log-probabilities on one accelerator";
const MODEL: &str = "transformers/models/llama/modeling_llama.py:LlamaModel.forward, LlamaMLP.forward";

static HIDDEN: Formula =
    Formula::new("ne·h·B", "The output layer's input, of ne tokens.", SCORES).letters(&[("ne", TOKENS)]);
static LOGITS: Formula = Formula::new(
    "ne·V·Bc",
    "The logits of ne tokens, divided by the temperature in place, from which log-probabilities and entropy are read.",
    SCORES,
)
.letters(&[("ne", TOKENS)]);
static OF_RESPONSES: Formula = Formula::new(
    "be·(sampled + 1)·V·Bc",
    "The logits of the responses' positions, divided by the temperature in place.",
    "trl/trainer/grpo_trainer.py:GRPOTrainer._get_per_token_logps_and_entropies, logits_to_keep",
)
.letters(&[("be", BATCH)]);
static STREAMS: Formula = Formula::new(
    "4·ne·h·B",
    "Embeddings, the last layer's input, its residual stream and the normalized stream, of ne tokens.",
    MODEL,
)
.letters(&[("ne", TOKENS)]);
static GATES: Formula =
    Formula::new("ne·(1 + g)·f·Bc", "Gate, up and their product in the last layer's MLP.", MODEL)
        .letters(&[("ne", TOKENS)]);
static CHUNK: Formula = Formula::new(
    "16·rows·V",
    "Logits of 512 tokens at most in fp32, their softmax, its logarithm and their product.",
    "verl/utils/experimental/torch_functional.py:_fused_linear_for_ppo_fwd, recorded in tests/data/activations/verl_fused.jsonl",
);
static KERNEL: Formula = Formula::new(
    "ne·(20 + 12·parts)",
    "Log-probability, entropy and statistics of the softmax of each token, and the latter of each stretch of 1,024 words, fp32.",
    "verl/utils/kernel/kernels.py:efficient_entropy_forward, recorded in tests/data/activations/verl_kernel.jsonl",
)
.letters(&[("ne", TOKENS)]);
static ENTROPY: Formula = Formula::new(
    "12·be·sampled·V",
    "Softmax of the responses' logits, the same logits in fp32, and what they are less the largest of each position.",
    "verl/utils/torch_functional.py:entropy_from_logits, recorded in tests/data/activations/verl_padded.jsonl",
)
.letters(&[("be", BATCH)]);
static ROWS: Formula =
    Formula::new("be·sampled·V·Bc", "Logits of the responses' positions, copied to rows.", SCORES)
        .letters(&[("be", BATCH)]);
static TOWER: Formula = Formula::new(
    "48·np·hi",
    "Tensors of one layer of the vision tower at most, over the np patches of be sequences.",
    "transformers, recorded in tests/data/activations/vision_towers.tsv",
)
.letters(&[("np", "patches of a micro-batch of log-probabilities")]);
static WHOLE: Formula = Formula::new(
    "W",
    "Weights that are whole at that moment: the last layer's and those outside of layers.",
    SCORES,
)
.letters(&[("W", "bytes of them")]);

/// The passes that may hold more than training, on `ranks`, of which `fullest` is the fullest in training.
pub(super) fn passes<'a>(plan: &Plan, ranks: &'a [Totals], fullest: &'a Totals) -> Vec<Pass<'a>> {
    if plan.recipe().software.semantics().cuts_models {
        return log_probs_cut::passes(plan, ranks);
    }
    let parts = parts(plan, fullest);
    parts.map(|parts| Pass { rank: fullest, of_reference: false, parts }).into_iter().collect()
}

/// What such a pass holds on the fullest accelerator besides what the trainer left there: at its output layer, or
/// within its last layer's MLP or a layer of its vision tower if that is more. None if its micro-batches are no
/// larger than those of training, which then needs more, unless it computes an entropy that training does not.
fn parts(plan: &Plan, totals: &Totals) -> Option<Vec<Breakdown<Bytes>>> {
    let recipe = plan.recipe();
    let batch = recipe.transformers.evaluation_batch.max(recipe.micro_batch_size);
    let x = Symbols::new(plan);
    // Packs are as long as they may be; padded samples are counted in sequences.
    let tokens = (batch * x.s).max(recipe.transformers.log_prob_tokens);
    let kernel = recipe.loss == LossKind::PolicyKernel;
    let fused = recipe.loss == LossKind::PolicyRows || kernel;
    let larger = tokens > recipe.micro_batch_size * x.s;
    let more = x.scores_entropy() && !x.entropy_in_loss() && !fused;
    if recipe.tuning.objective != Objective::Policy || !(larger || more) {
        return None;
    }
    let given = [("be", Count::new(batch).number()), ("ne", Count::new(tokens).number())];
    let term = |name, shape: &[u64], width: u64, formula| {
        Term::new(name, Count::of_shape(shape).bytes(width), formula).given(&given)
    };
    let rows = [batch, x.sampled_tokens(), x.v];
    let mut head = vec![term("last hidden states", &[tokens, x.h], x.width, &HIDDEN)];
    if kernel {
        let shape = [tokens, x.kernel_numbers()];
        head.push(term("log-probabilities by stretch", &shape, FLOAT, &KERNEL));
    } else if fused {
        let chunk = Count::of_shape(&[tokens.min(x.log_prob_chunk()), x.v]).bytes(FUSED_BYTES);
        head.push(Term::new("logits of a chunk", chunk, &CHUNK).given(&given));
    } else if x.cuts_logits() {
        let wide = [batch, x.sampled_tokens() + 1, x.v];
        head.push(term("logits", &wide, x.compute_width, &OF_RESPONSES));
    } else {
        head.push(term("logits", &[tokens, x.v], x.compute_width, &LOGITS));
    }
    if fused {
        // Its entropies come with the log-probabilities.
    } else if x.scores_entropy() {
        head.push(term("entropy of the responses", &[3, rows[0], rows[1], rows[2]], FLOAT, &ENTROPY));
    } else if x.cuts_responses() && batch > 1 {
        head.push(term("logits of the responses", &rows, x.compute_width, &ROWS));
    }
    let layer = [
        term("hidden states", &[4, tokens, x.h], x.width, &STREAMS),
        term("MLP", &[1 + x.gate, tokens, x.f], x.compute_width, &GATES),
    ];
    let sum = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<Bytes>();
    // As many of them to a token as in training.
    let patches = (x.patches() * tokens).div_ceil(x.n.max(1));
    let tower = Count::of_shape(&[patches, x.vision_width()]).bytes(TOWER_ALIVE);
    let tower = [Term::new("vision layer", tower, &TOWER).given(&[("np", Count::new(patches).number())])];
    let moments = [&head[..], &layer, &tower];
    let fullest = moments.into_iter().max_by_key(|terms| sum(terms)).unwrap_or(&head);
    let gathered_in_forward = Term::new("gathered weights", totals.gathered_in_forward, &WHOLE)
        .given(&[("W", totals.gathered_in_forward.number())]);
    Some(fullest.iter().chain([&gathered_in_forward]).map(|term| term.leaf(&x)).collect())
}
