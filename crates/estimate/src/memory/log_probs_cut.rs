//! Log-probabilities of rollouts without gradients where the trainer cuts the model into stages and over tensor ranks
//! (Megatron): the policy's, with the entropies of its logits, and its reference's, without. Each stage passes on its
//! layers' output, and the last one takes them of its part of the vocabulary. What is alive of a logit is the framework's
//! (`shardscope_plan::RlSemantics::scored_bytes`), as recorded in tests/data/activations/verl_megatron.jsonl.

use super::term::Term;
use super::totals::Totals;
use shardscope_explain::{Breakdown, Formula};
use shardscope_operators::Symbols;
use shardscope_plan::{FeedForward, LossKind, Plan, Residence, Stage};
use shardscope_units::{Bytes, Count, Quantity};

const TOKENS: &str = "tokens of a micro-batch of log-probabilities on one accelerator";
const EACH: &str = "bytes alive of each logit";
const SCORES: &str = "verl/workers/actor/megatron_actor.py:logits_processor, verl/utils/megatron/tensor_parallel.py:vocab_parallel_entropy, megatron/core/tensor_parallel/cross_entropy.py";
const KERNELS: &str = "verl/models/mcore/model_forward_fused.py:fused_output_processor, verl/utils/kernel/kernels.py:efficient_entropy_forward";
const BLOCK: &str = "megatron/core/transformer/transformer_block.py, transformer_layer.py, mlp.py";

static LOGITS: Formula = Formula::new(
    "q·ne·V",
    "The logits of ne tokens in fp32, and while their entropy is taken a copy and their softmax; without it the logits in 16 bits that become fp32.",
    SCORES,
)
.letters(&[("q", EACH), ("ne", TOKENS)]);
static GATHERED: Formula = Formula::new(
    "(ne - n)·h·B",
    "What the buffer into which the output layer's input is gathered grows by, for ne tokens.",
    "megatron/core/utils.py:GlobalMemoryBuffer",
)
.letters(&[("ne", TOKENS)]);
static HIDDEN: Formula =
    Formula::new("ne·h·B", "The output layer's input, of all tensor ranks' tokens.", KERNELS)
        .letters(&[("ne", TOKENS)]);
static BY_STRETCH: Formula = Formula::new(
    "ne·(20 + 4·nums·parts)",
    "Log-probability, entropy and statistics of the softmax of each token, and the latter of each stretch of 1,024 words, fp32; over tensor ranks also a copy of each stretch's greatest logits for the others.",
    KERNELS,
)
.letters(&[("ne", TOKENS)]);
static STREAMS: Formula = Formula::new(
    "4·Se·h·B",
    "A stage's input, a layer's, its residual stream and its output, of Se tokens.",
    BLOCK,
)
.letters(&[("Se", "tokens of a micro-batch of log-probabilities in sequence-parallel regions")]);
static MLP: Formula = Formula::new(
    "ne·(h + (1 + g)·f)·B",
    "At most: the gathered input of a layer's MLP, gate, up and their product, of ne tokens.",
    BLOCK,
)
.letters(&[("ne", TOKENS)]);
static EXPERTS: Formula = Formula::new(
    "Re·(2·hm + (1 + g)·fm)·B",
    "At most: the Re copies of tokens that a rank's experts receive, gate, up, their product, and what comes of them.",
    "megatron/core/transformer/moe/experts.py, token_dispatcher.py",
)
.letters(&[("Re", "copies of tokens that a rank receives in such a pass")]);

/// A pass without gradients, on the rank that holds `rank`.
pub(super) struct Pass<'a> {
    pub(super) rank: &'a Totals,
    /// Whether the reference takes it, and not the policy.
    pub(super) of_reference: bool,
    /// What it holds besides what the trainer left there.
    pub(super) parts: Vec<Breakdown<Bytes>>,
}

/// The passes on each of `ranks`; empty if what one holds is not known. Pipeline ranks but the last hold a layer's tensors
/// at most, so the fullest of all is found among them.
pub(super) fn passes<'a>(plan: &Plan, ranks: &'a [Totals]) -> Vec<Pass<'a>> {
    let recipe = plan.recipe();
    let Some(rollout) = recipe.rollout.as_ref() else { return Vec::new() };
    let [policy, reference] = rollout.framework.semantics(true).scored_bytes;
    let Some((last, before)) = ranks.split_last() else { return Vec::new() };
    if policy == 0 {
        return Vec::new();
    }
    let x = Symbols::new(plan);
    let sequences = match recipe.transformers.evaluation_batch {
        0 => recipe.micro_batch_size,
        stated => stated,
    };
    let tokens = match recipe.transformers.log_prob_tokens {
        0 => sequences * x.s,
        stated => stated,
    };
    let pass = |rank, of_reference, terms: Vec<Term>| Pass {
        rank,
        of_reference,
        parts: terms.iter().map(|term| term.leaf(&x)).collect::<Vec<Breakdown<Bytes>>>(),
    };
    let stages = &plan.layout().stages.stages;
    let layers: Vec<Vec<Term>> = stages.iter().map(|stage| layer(&x, tokens, stage)).collect();
    let of = |rank: usize| layers.get(rank).cloned().unwrap_or_default();
    let mut out: Vec<Pass<'a>> = Vec::with_capacity(ranks.len() + 1);
    for (index, rank) in before.iter().enumerate() {
        out.push(pass(rank, false, of(index)));
    }
    let own = of(before.len());
    out.push(pass(last, false, fuller(head(&x, tokens, policy), own.clone())));
    if matches!(rollout.reference, Residence::Device | Residence::Host) {
        out.push(pass(last, true, fuller(head(&x, tokens, reference), own)));
    }
    out
}

fn fuller(one: Vec<Term>, other: Vec<Term>) -> Vec<Term> {
    let sum = |terms: &[Term]| terms.iter().map(|term| term.bytes).sum::<Bytes>();
    if sum(&one) >= sum(&other) { one } else { other }
}

/// verl's kernels make no logits: the hidden states of all tensor ranks' tokens, and numbers of each token.
fn by_kernel(x: &Symbols<'_>, tokens: u64) -> Vec<Term> {
    let given = [("ne", Count::new(tokens).number())];
    let numbers = Count::of_shape(&[tokens, x.kernel_numbers()]).bytes(4);
    vec![
        Term::new("last hidden states", Count::of_shape(&[tokens, x.h]).bytes(x.width), &HIDDEN)
            .given(&given),
        Term::new("log-probabilities by stretch", numbers, &BY_STRETCH).given(&given),
    ]
}

/// Where log-probabilities are taken, `each` bytes of a logit: the last stage's hidden states are gone by then.
fn head(x: &Symbols<'_>, tokens: u64, each: u64) -> Vec<Term> {
    if x.recipe().loss == LossKind::PolicyKernel {
        return by_kernel(x, tokens);
    }
    let given = [("q", Count::new(each).number()), ("ne", Count::new(tokens).number())];
    let mut out =
        vec![Term::new("logits", Count::of_shape(&[tokens, x.v]).bytes(each), &LOGITS).given(&given)];
    // Its own part stands among the trainer's buffers.
    if x.sequence_parallel && tokens > x.n {
        let more = Count::of_shape(&[tokens - x.n, x.h]).bytes(x.width);
        out.push(Term::new("gathered hidden states", more, &GATHERED).given(&given));
    }
    out
}

/// Within a layer of a stage: the fuller of its kinds, where models may have experts in all layers.
fn layer(x: &Symbols<'_>, tokens: u64, stage: &Stage) -> Vec<Term> {
    let any = |asked: &dyn Fn(FeedForward) -> bool| {
        let mut layers = stage.chunks.iter().flat_map(|chunk| chunk.layers.clone());
        layers.any(|index| asked(x.plan.model().layer_kind(index).feed_forward))
    };
    let (dense, routed) = (any(&FeedForward::is_dense), any(&FeedForward::is_routed));
    let split = if x.sequence_parallel { tokens / x.t } else { tokens };
    let given = [("ne", Count::new(tokens).number()), ("Se", Count::new(split).number())];
    let streams = Term::new("hidden states", Count::of_shape(&[4, split, x.h]).bytes(x.width), &STREAMS);
    let mlp = Count::of_shape(&[tokens, x.h + (1 + x.gate) * x.f]).bytes(x.width);
    let mlp = Term::new("MLP", mlp, &MLP).given(&given);
    // As many copies to a token as in training.
    let copies = (x.moe.received * tokens).div_ceil(x.n.max(1));
    let experts = Count::of_shape(&[copies, 2 * x.moe.hidden + (1 + x.gate) * x.moe.ffn]).bytes(x.width);
    let experts = Term::new("experts", experts, &EXPERTS).given(&[("Re", Count::new(copies).number())]);
    let kinds = [(mlp, dense), (experts, routed)].into_iter().filter(|(_, there)| *there);
    let fullest = kinds.map(|(term, _)| term).max_by_key(|term| term.bytes);
    std::iter::once(streams.given(&given)).chain(fullest).collect()
}
