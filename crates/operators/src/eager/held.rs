//! What modules of plain PyTorch hold beside what forward keeps: gradients while a node runs, in the type in which
//! it computes, the products of each linear layer for its weight, casts for adapters, and a quantised weight in full.

use super::flow::is_adapted;
use super::saved::saved;
use super::{manual, norm};
use crate::{Held, Operator, Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{
    AttentionKernel, LinearModule, LogProbs, LossKind, Normalization, Objective, Quantization,
};
use shardscope_units::Bytes;

const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";
const RMS: &str = "transformers/models/llama/modeling_llama.py:LlamaRMSNorm, backward";
const LIGER: &str = "liger_kernel/ops/fused_linear_cross_entropy.py:fused_linear_cross_entropy_forward";
const FOUR_BIT: &str = "bitsandbytes/autograd/_functions.py:MatMul4Bit";
const LORA: &str = "peft/tuners/lora/layer.py:Linear.forward, backward";
const DORA: &str = "peft/tuners/lora/dora.py:DoraLinearLayer.get_weight_norm";
const LOSS: &str = "torch.nn.functional.cross_entropy: nll_loss backward, then log_softmax backward";
const ROWS: &str =
    "litgpt/utils.py:chunked_cross_entropy, and lightning/fabric/plugins/precision/half.py:convert_output";
const CHUNKS: &str = "torchtune/modules/loss: autograd takes the chunks one by one, the last one first";
const FLASH: &str = "flash-attn backward: queries' gradient summed in fp32, keys' and values' by query head";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static RESIDUAL: Formula = Formula::new("n·h·Br", "The residual stream's gradient.", AUTOGRAD);
static NORM: Formula = Formula::new("12·n·h", "Three gradients in fp32 between the norm's operations.", RMS);
static NORM_KERNEL: Formula = Formula::new("2·n·h·B", "Gradients of the norm's output and input.", AUTOGRAD);
static INNER: Formula = Formula::new("n·f·Bc", "Gradient of the product of both halves.", AUTOGRAD);
static BEFORE: Formula = Formula::new("g·n·f·Bc", "Gradients of both halves.", AUTOGRAD);
static INPUTS: Formula =
    Formula::new("2·n·h·Bc", "Gradients of an input, of one reader and of all so far.", AUTOGRAD);
static FIRST: Formula = Formula::new("f·h·B", "One projection's weight gradient.", AUTOGRAD);
static SQUARE: Formula =
    Formula::new("A·h·B", "The largest weight gradient of the attention's projections.", AUTOGRAD);
static OUTPUT: Formula = Formula::new("n·A·Bc", "Gradient of the attention's output.", AUTOGRAD);
static PACKED: Formula = Formula::new("n·(A + 2·K)·Bc", "Gradients of queries, keys and values.", AUTOGRAD);
static SUMMED: Formula = Formula::new("4·n·A", "The queries' gradient while it is summed in fp32.", FLASH);
static EXPANDED: Formula =
    Formula::new("2·n·A·Bc", "Gradients of keys and values for every query head.", FLASH);
static SCORES: Formula = Formula::new("a·s·s·b·Bc", "Gradient of the 16-bit probabilities.", AUTOGRAD);
static SOFTMAX: Formula =
    Formula::new("8·a·s·s·b", "Gradients of the softmax's output and input, fp32.", AUTOGRAD);
static ADAPTER_MLP: Formula = Formula::new("n·f·Ba", "Gradient of an adapter's input in its own type.", LORA);
static ADAPTER: Formula = Formula::new("n·h·Ba", "Gradient of an adapter's input in its own type.", LORA);
static NORMED_MLP: Formula = Formula::new(
    "4·f·h·Ba",
    "The adapter's matrices multiplied, the same scaled, the weight in its type, and their sum, before its norm is taken.",
    DORA,
);
static NORMED: Formula = Formula::new(
    "4·A·h·Ba",
    "The adapter's matrices multiplied, the same scaled, the weight in its type, and their sum, before its norm is taken.",
    DORA,
);
static WHOLE_MLP: Formula = Formula::new("f·h·Bc", "A quantised weight in full, for one product.", FOUR_BIT);
static WHOLE: Formula = Formula::new("A·h·Bc", "A quantised weight in full, for one product.", FOUR_BIT);
static LOGITS: Formula = Formula::new("n·V·Bc", "The logits as the output layer made them.", LOSS);
static COPY: Formula = Formula::new("4·n·V", "The logits in fp32.", LOSS);
static BOTH: Formula = Formula::new("8·n·V", "Gradients of the log-softmax and of the logits, fp32.", LOSS);
static ONE: Formula = Formula::new("4·n·V", "Gradient of the fp32 logits.", LOSS);
static NARROW: Formula = Formula::new("n·V·Bc", "Gradient of the logits in 16 bits.", LOSS);
static JOINED: Formula = Formula::new(
    "2·n·V·Bc",
    "The logits' gradient, joined of its chunks and padded by the last token.",
    ROWS,
);
static PART: Formula = Formula::new("rows·V·Bc", "Logits of a chunk of tokens, or their gradient.", CHUNKS);
static PART_COPY: Formula = Formula::new("4·rows·V", "Logits of a chunk of tokens in fp32.", CHUNKS);
static PART_GRADIENTS: Formula = Formula::new(
    "8·rows·V",
    "Gradients of the log-softmax and of the logits of a chunk of tokens, fp32.",
    CHUNKS,
);
static PART_INPUTS: Formula =
    Formula::new("2·n·h·B", "Gradients of the output layer's input, chunk by chunk and joined.", CHUNKS);
static HEADS: Formula = Formula::new(
    "2·V·h·B",
    "A chunk's part of the output layer's weight gradient, and the sum so far.",
    CHUNKS,
);
static HEAD: Formula = Formula::new("V·h·B", "The output layer's weight gradient.", AUTOGRAD);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output layer's input.", AUTOGRAD);
static FROM_HOST: Formula = Formula::new(
    "V·h·B",
    "The output layer's weight once more, as its product saved it and the host gave it back.",
    "torch/autograd/graph.py:save_on_cpu, which packs parameters too",
);
static CHUNK: Formula =
    Formula::new("rows·V·B", "Logits of a chunk of rows, overwritten by their gradient.", LIGER);
static CHUNK_WEIGHT: Formula =
    Formula::new("V·h·(B + 4)", "A chunk's part of the weight's gradient, and the same in fp32.", LIGER);
static WORDS: Formula = Formula::new("V·h·B", "The word embedding's gradient, every row of it.", AUTOGRAD);
static TOKENS: Formula = Formula::new("T·h·Bx", "Gradient of the experts' output or input.", AUTOGRAD);
static EXPERT_INNER: Formula =
    Formula::new("3·T·fm·Bx", "Gradients of the product and of both halves.", AUTOGRAD);
static EXPERT_WEIGHTS: Formula =
    Formula::new("2·E·fm·h·B", "Gradient of the first weights of all experts.", AUTOGRAD);

/// What `operator`'s passes hold where the software runs such modules; none where it runs others.
pub(crate) fn held(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Held>> {
    if !x.recipe().software.semantics().eager_modules {
        return None;
    }
    Some(match operator {
        Operator::Embedding => embedding(x),
        Operator::InputNorm | Operator::PreMlpNorm | Operator::FinalNorm => norms(x),
        Operator::SelfAttention | Operator::WindowedAttention => attention(x),
        Operator::Mlp => mlp(x),
        Operator::Experts => experts(x),
        Operator::OutputLayer => output_layer(x),
        Operator::LatentAttention
        | Operator::Linear(_)
        | Operator::MtpProjection
        | Operator::VisionLayer
        | Operator::VisionEnds => return None,
    })
}

fn residual(x: &Symbols<'_>) -> Saved {
    Saved::new("residual gradient", &[x.n, x.h], x.residual_width, &RESIDUAL)
}

/// Bytes of what `operator` keeps under names that `given_back` says yes to.
fn returned(operator: Operator, x: &Symbols<'_>, given_back: &dyn Fn(&str) -> bool) -> Bytes {
    let kept = saved(operator, x).unwrap_or_default();
    kept.iter().filter(|saved| given_back(saved.name)).map(|saved| saved.bytes).sum()
}

fn embedding(x: &Symbols<'_>) -> Vec<Held> {
    let words = Saved::new("word embedding gradient", &[x.v, x.h], x.width, &WORDS);
    let mut tensors = vec![residual(x)];
    tensors.extend(x.recipe().tuning.embedding.then_some(words));
    vec![Held::new("backward of the embedding", Bytes::ZERO, tensors)]
}

fn norms(x: &Symbols<'_>) -> Vec<Held> {
    let kernel = x.model().normalization == Normalization::LayerNorm || norm::is_kernel(x);
    let gradients = if kernel {
        Saved::new("norm gradients", &[2, x.n, x.h], x.width, &NORM_KERNEL)
    } else {
        Saved::new("norm gradients in fp32", &[3, x.n, x.h], FLOAT, &NORM)
    };
    vec![Held::new("backward of the norm", Bytes::ZERO, vec![residual(x), gradients])]
}

/// What a linear layer of these modules holds beside its gradients.
struct Extras {
    weight: &'static Formula,
    adapter: &'static Formula,
    whole: &'static Formula,
    inner: u64,
    outer: u64,
}

impl Extras {
    fn tensors(&self, x: &Symbols<'_>, modules: &[LinearModule]) -> Vec<Saved> {
        let mut out = Vec::with_capacity(3);
        let shape = [self.inner, self.outer];
        if x.trains {
            out.push(Saved::new("weight gradient", &shape, x.width, self.weight));
        }
        if modules.iter().any(|module| is_adapted(x, *module)) {
            out.push(Saved::new(
                "gradient of an adapter's input",
                &[x.n, self.inner],
                x.adapter_width,
                self.adapter,
            ));
        }
        if x.recipe().tuning.quantization != Quantization::None {
            out.push(Saved::new("weight in full", &shape, x.compute_width, self.whole));
        }
        out
    }
}

/// What DoRA holds in forward beside one of `modules`, whose weight is `inner` by `outer`. A weight that comes in the adapter's
/// type needs no copy, and is counted as one all the same.
fn dora_norm(
    x: &Symbols<'_>,
    modules: &[LinearModule],
    [inner, outer]: [u64; 2],
    formula: &'static Formula,
) -> Option<Held> {
    let adapted = modules.iter().any(|module| is_adapted(x, *module));
    let dora = x.recipe().tuning.lora.is_some_and(|lora| lora.dora);
    let copies = Saved::new("weights before DoRA's norm", &[4, inner, outer], x.adapter_width, formula);
    (dora && adapted).then(|| Held::new("DoRA's norm in forward", Bytes::ZERO, vec![copies]))
}

fn attention(x: &Symbols<'_>) -> Vec<Held> {
    use LinearModule::{Key, Output, Query, Value};
    let (wide, width) = (x.a * x.d, x.compute_width);
    let packed = wide + 2 * x.k * x.d;
    let output = Saved::new("gradient of the output", &[x.n, wide], width, &OUTPUT);
    let inputs = Saved::new("gradients of query, key and value", &[x.n, packed], width, &PACKED);
    let of_output = Extras { weight: &SQUARE, adapter: &ADAPTER_OUT, whole: &WHOLE, inner: wide, outer: x.h };
    let of_input = Extras { weight: &SQUARE, adapter: &ADAPTER, whole: &WHOLE, inner: x.h, outer: wide };
    let mut projection = vec![residual(x), output];
    projection.extend(if manual::output(x) {
        manual::projection(x)
    } else {
        of_output.tensors(x, &[Output])
    });
    let mut core = vec![residual(x), output, inputs];
    if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let scores = [x.b, x.a, x.s, x.s];
        core.push(Saved::new("gradient of the probabilities", &scores, width, &SCORES));
        core.push(Saved::new("fp32 gradients of the softmax", &[2 * x.b, x.a, x.s, x.s], FLOAT, &SOFTMAX));
    } else {
        core.push(Saved::new("fp32 query gradient", &[x.n, wide], FLOAT, &SUMMED));
        if x.k < x.a {
            core.push(Saved::new("expanded gradients", &[2, x.n, wide], width, &EXPANDED));
        }
    }
    let mut first = vec![residual(x), inputs];
    if manual::queries(x) {
        first.extend(manual::projection(x));
    } else {
        first.push(Saved::new("gradients of the input", &[2, x.n, x.h], width, &INPUTS));
        first.extend(of_input.tensors(x, &[Query, Key, Value]));
    }
    let own = |name: &str| name.starts_with("o_proj");
    let before = |name: &str| name.contains("_proj") || name == "attention input";
    let mut out: Vec<Held> =
        dora_norm(x, &[Output, Query, Key, Value], [wide, x.h], &NORMED).into_iter().collect();
    out.extend([
        Held::new("backward of o_proj", Bytes::ZERO, projection),
        Held::new("backward of the attention", returned(Operator::SelfAttention, x, &own), core),
        Held::new(
            "backward of q_proj, k_proj and v_proj",
            returned(Operator::SelfAttention, x, &|name| own(name) || !before(name)),
            first,
        ),
    ]);
    out
}

static ADAPTER_OUT: Formula = Formula::new("n·A·Ba", "Gradient of an adapter's input in its own type.", LORA);

fn mlp(x: &Symbols<'_>) -> Vec<Held> {
    use LinearModule::{Down, Gate, Up};
    if manual::mlp(x) {
        return manual::mlp_backward(x, residual(x));
    }
    let width = x.compute_width;
    let inner = Saved::new("gradient of the product", &[x.n, x.f], width, &INNER);
    let before = Saved::new("gradients of both halves", &[x.n, x.gate * x.f], width, &BEFORE);
    let of_down = Extras { weight: &FIRST, adapter: &ADAPTER_MLP, whole: &WHOLE_MLP, inner: x.f, outer: x.h };
    let of_first = Extras { weight: &FIRST, adapter: &ADAPTER, whole: &WHOLE_MLP, inner: x.h, outer: x.f };
    let mut second = vec![residual(x), inner];
    second.extend(of_down.tensors(x, &[Down]));
    let mut first =
        vec![residual(x), before, Saved::new("gradients of the input", &[2, x.n, x.h], width, &INPUTS)];
    first.extend(of_first.tensors(x, &[Gate, Up]));
    let down = |name: &str| name.starts_with("down_proj");
    let first_inputs = |name: &str| {
        name.starts_with("gate_proj")
            || name.starts_with("up_proj")
            || name.starts_with("gate_up_proj")
            || name.starts_with("fc1")
            || name == "MLP input"
    };
    let mut out: Vec<Held> = dora_norm(x, &[Down, Gate, Up], [x.f, x.h], &NORMED_MLP).into_iter().collect();
    out.extend([
        Held::new("backward of down_proj", Bytes::ZERO, second),
        Held::new(
            "backward of the activation",
            returned(Operator::Mlp, x, &down),
            vec![residual(x), inner, before],
        ),
        Held::new(
            "backward of gate_proj and up_proj",
            returned(Operator::Mlp, x, &|name| !first_inputs(name)),
            first,
        ),
    ]);
    out
}

fn experts(x: &Symbols<'_>) -> Vec<Held> {
    let (moe, width) = (x.moe, x.expert_width());
    let tokens = Saved::new("gradient of the experts' output", &[moe.sent, x.h], width, &TOKENS);
    let inner = Saved::new("gradients within the experts", &[3, moe.sent, moe.ffn], width, &EXPERT_INNER);
    let mut first = vec![residual(x), tokens, inner];
    let adapted = is_adapted(x, LinearModule::Experts);
    if x.trains || adapted {
        let shape = [2 * moe.experts, moe.ffn, x.h];
        first.push(Saved::new("gradient of the experts' first weights", &shape, x.width, &EXPERT_WEIGHTS));
    }
    vec![Held::new("backward of the experts", Bytes::ZERO, first)]
}

/// A loss that takes its tokens in chunks: gradients of one chunk at a time, and the weight's as a sum and a summand.
fn chunked(x: &Symbols<'_>, trains: bool) -> Vec<Held> {
    let (width, part) = (x.compute_width, [x.chunk_rows(), x.v]);
    let all = if x.recipe().loss == LossKind::ChunkedLogits {
        Saved::new("logits", &[x.n, x.v], width, &LOGITS)
    } else {
        Saved::new("logits of a chunk", &part, width, &PART)
    };
    let copy = Saved::new("fp32 logits of a chunk", &part, FLOAT, &PART_COPY);
    let gradients =
        Saved::new("gradients of a chunk's fp32 logits", &[2, part[0], part[1]], FLOAT, &PART_GRADIENTS);
    let mut backward = vec![
        Saved::new("logits gradient of a chunk", &part, width, &PART),
        Saved::new("gradients of the input", &[2, x.n, x.h], x.width, &PART_INPUTS),
    ];
    if trains {
        backward.push(Saved::new("output layer's weight gradients", &[2, x.v, x.h], x.width, &HEADS));
    }
    vec![
        Held::new("loss", Bytes::ZERO, if width < FLOAT { vec![all, copy] } else { vec![all] }),
        Held::new("backward of the loss", Bytes::ZERO, vec![gradients]),
        Held::new("backward of the output layer", Bytes::ZERO, backward),
    ]
}

/// A loss over so many rows at a time. The logits, in fp32, are alive until the step ends: the loop names them.
fn by_rows(x: &Symbols<'_>, trains: bool) -> Vec<Held> {
    let part = [2, x.chunk_rows(), x.v];
    let logits = Saved::new("fp32 logits", &[x.n, x.v], FLOAT, &COPY);
    let gradients = Saved::new("gradients of a chunk's fp32 logits", &part, FLOAT, &PART_GRADIENTS);
    let mut forward = vec![logits];
    let mut backward =
        vec![logits, Saved::new("gradients of the input", &[2, x.n, x.h], x.width, &PART_INPUTS)];
    if x.recipe().tuning.lora.is_some() {
        // The losses' gradients are all there before those of the products in front of them.
        backward.push(Saved::new("gradient of the fp32 logits", &[x.n, x.v], FLOAT, &ONE));
    } else {
        // All tokens but the last of each sequence: a copy where there are several, and gradients joined, then padded.
        forward.extend((x.b > 1).then(|| Saved::new("fp32 logits but the last", &[x.n, x.v], FLOAT, &COPY)));
        backward.push(Saved::new("logits gradients", &[2, x.n, x.v], FLOAT, &JOINED));
    }
    if trains {
        backward.push(Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD));
    }
    vec![
        Held::new("loss", Bytes::ZERO, forward),
        Held::new("backward of the loss", Bytes::ZERO, vec![logits, gradients]),
        Held::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &|name| !name.starts_with("lm_head")),
            backward,
        ),
    ]
}

fn output_layer(x: &Symbols<'_>) -> Vec<Held> {
    let width = x.compute_width;
    let tuning = &x.recipe().tuning;
    let trains = if x.tied() { tuning.embedding } else { tuning.head };
    if x.recipe().loss == LossKind::FusedLinear {
        let chunk = Saved::new("logits of a chunk", &[x.chunk_rows(), x.v], x.width, &CHUNK);
        let own = x.recipe().software.semantics().modules.logits_chunk.is_some();
        let mut tensors = if own { manual::loss(x) } else { vec![chunk] };
        if trains {
            tensors.push(Saved::new(
                "a chunk's weight gradient",
                &[x.v, x.h],
                x.width + FLOAT,
                &CHUNK_WEIGHT,
            ));
        }
        return vec![Held::new("loss", Bytes::ZERO, tensors)];
    }
    if matches!(x.recipe().loss, LossKind::ChunkedLogits | LossKind::ChunkedLinear) {
        return chunked(x, trains);
    }
    if x.recipe().loss == LossKind::ChunkedRows {
        return by_rows(x, trains);
    }
    let wide = [x.n, x.v];
    let narrow = width < FLOAT;
    let logits = Saved::new("logits", &wide, width, &LOGITS);
    let weight = trains.then(|| Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &HEAD));
    let input = Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT);
    let mut forward = vec![logits];
    let mut loss = Vec::new();
    let mut backward = vec![Saved::new("logits gradient", &wide, width, &NARROW), input];
    backward.extend(weight);
    let on_host = x.recipe().offload.saved_tensors;
    if on_host {
        let name = "output layer's weight, back from the host";
        backward.push(Saved::new(name, &[x.v, x.h], x.width, &FROM_HOST));
    }
    if tuning.objective == Objective::NextToken && x.recipe().loss != LossKind::Compiled {
        if narrow {
            forward.push(Saved::new("fp32 logits", &wide, FLOAT, &COPY));
        }
        loss.push(Saved::new("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &BOTH));
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::InPlace {
        // The logits are kept themselves, and their gradient takes their place.
        forward.clear();
    } else if tuning.objective == Objective::Policy && x.log_probs() == LogProbs::Fp32Copy {
        loss.push(Saved::new("gradient of the fp32 logits", &wide, FLOAT, &ONE));
    } else {
        // In the logits' own type, a sequence at a time or within one kernel.
        loss.push(Saved::new("logits gradient", &wide, width, &NARROW));
    }
    let head = |name: &str| name.starts_with("lm_head");
    vec![
        Held::new("loss", Bytes::ZERO, forward),
        // What waits on the host comes back when its own backward asks for it.
        Held::new(
            "backward of the loss",
            if on_host { returned(Operator::OutputLayer, x, &head) } else { Bytes::ZERO },
            loss,
        ),
        Held::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &|name| !head(name)),
            backward,
        ),
    ]
}
