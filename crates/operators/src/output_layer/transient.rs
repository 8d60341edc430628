//! What forward holds in the loss, and backward in the output projection.

use super::policy_kernel;
use crate::transient::scattered;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{BatchMask, LossKind};
use shardscope_units::Bytes;

const LOSS: &str = "megatron/core/tensor_parallel/cross_entropy.py";
const FUSED: &str = "megatron/core/fusions/fused_cross_entropy.py";
const BATCH: &str = "pretrain_gpt.py:get_batch, alive while the model runs forward";
const LOG_PROBS: &str = "nemo_rl/distributed/model_utils.py:DistributedLogprob, ChunkedDistributedLogprob";
const OUTPUT: &str = "megatron/core/tensor_parallel/layers.py:ColumnParallelLinear, backward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static LOGITS: Formula = Formula::new("n·V·B", "The logits as the output projection made them.", LOSS);
static COPY: Formula = Formula::new("4·n·V", "The logits once more in fp32, as read by the loss.", FUSED);
static CHUNK: Formula =
    Formula::new("rows·V·B", "Logits of a chunk of rows, overwritten by their gradient.", FUSED);
static LABELS: Formula = Formula::new("12·n", "Labels, int64, and the loss mask, fp32.", BATCH);
static MASK: Formula = Formula::new("b·s·s", "The micro-batch's attention mask, one byte each.", BATCH);
static ONE_MASK: Formula =
    Formula::new("s·s", "The attention mask of all sequences of the micro-batch, one byte each.", BATCH);
static GRADIENT: Formula = Formula::new("n·V·B", "Gradient of the logits.", OUTPUT);
static GRADIENTS: Formula = Formula::new(
    "8·n·V",
    "Gradient of the log-softmax and of the logits, both in fp32.",
    "torch.nn.functional.cross_entropy: nll_loss backward, then log_softmax backward",
);
static HANDED_ON: Formula = Formula::new(
    "4·n·V",
    "The logits in fp32 as the model handed them on, beside what log-probabilities make of them.",
    "megatron/core/transformer/module.py:Float16Module.forward",
);
static QUOTIENT: Formula = Formula::new(
    "4·n·V",
    "The logits over the temperature, fp32, apart from them.",
    "slime/backends/megatron_utils/loss.py:get_log_probs_and_entropy",
);
static OVER_TEMPERATURE: Formula = Formula::new(
    "4·n·V",
    "The logits' gradient over the temperature, fp32, beside the one in the softmax's place.",
    "verl/workers/actor/megatron_actor.py:logits_processor, logits.div_(temperature), and as slime and MindSpeed-RL divide them",
);
static LOG_SOFTMAX: Formula = Formula::new(
    "8·n·V",
    "The logits in fp32 and their log-softmax, while the softmax that is kept is made of it.",
    LOG_PROBS,
);
static ONE_WIDE: Formula =
    Formula::new("4·n·V", "Gradient of the logits in fp32, beside the saved tensors.", LOG_PROBS);
static TWO_WIDE: Formula = Formula::new(
    "8·n·V",
    "Gradients of the logits in fp32, of two sequences of a pack, while they are accumulated.",
    LOG_PROBS,
);
static ONE_AS_KEPT: Formula =
    Formula::new("n·V·B", "Gradient of the logits in their own dtype, beside the saved tensors.", LOG_PROBS);
static TWO_AS_KEPT: Formula = Formula::new(
    "2·n·V·B",
    "Gradients of the logits in their own dtype, of two sequences of a pack, while they are accumulated.",
    LOG_PROBS,
);
/// For a whole micro-batch, and for a pack.
const WIDE: [&Formula; 2] = [&ONE_WIDE, &TWO_WIDE];
const AS_KEPT: [&Formula; 2] = [&ONE_AS_KEPT, &TWO_AS_KEPT];
static OF_CHUNK: Formula = Formula::new(
    "12·rows·V",
    "A chunk's logits in fp32, what is left of them and its exponential.",
    LOG_PROBS,
);
static OF_WIDE: Formula =
    Formula::new("8·rows·V", "What is left of a chunk's logits, and its exponential, fp32.", LOG_PROBS);
static ONE_HOT: Formula = Formula::new(
    "24·rows·V",
    "A chunk's logits and softmax in fp32, and its sampled tokens as a one-hot matrix, int64, twice.",
    LOG_PROBS,
);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output projection's input.", OUTPUT);
static WEIGHT: Formula = Formula::new(
    "V·h·B",
    "The output projection's weight gradient, or the dummy returned in its place.",
    OUTPUT,
);

pub(crate) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    if x.recipe().loss == LossKind::FusedLinear {
        return fused_linear(x);
    }
    if x.recipe().loss == LossKind::PolicyKernel {
        let forth = loss(x).into_iter().chain(policy_kernel::forward(x)).collect();
        let mut out = policy_kernel::backward(x);
        out.insert(0, Transient::new("loss", Bytes::ZERO, forth));
        return out;
    }
    let mut out = vec![
        Transient::new("loss", Bytes::ZERO, loss(x)),
        Transient::new("backward of the output layer", loss_returned(x), backward(x)),
    ];
    if matches!(x.recipe().loss, LossKind::Compiled | LossKind::FusedLogits) {
        // One kernel reads the saved logits and writes their gradient.
        let gradient = Saved::new("logits gradient", &[x.n, x.v], x.width, &GRADIENT);
        out.push(Transient::new("backward of the loss", Bytes::ZERO, vec![gradient]));
    }
    out.extend(distributed(x));
    // Beside an entropy's tensors, which are gone by then, it is not the most.
    if x.processes_logits() && !x.copies_logits() || x.scales_logits() {
        let gradient = Saved::new("gradient over the temperature", &[x.n, x.v], FLOAT, &OVER_TEMPERATURE);
        out.push(Transient::new("backward of the loss", Bytes::ZERO, vec![gradient]));
    }
    if x.recipe().loss == LossKind::Torch {
        let gradients = Saved::new("gradients of the fp32 logits", &[2, x.n, x.v], FLOAT, &GRADIENTS);
        out.push(Transient::new("backward of the loss", Bytes::ZERO, vec![gradients]));
    }
    out
}

/// Log-probabilities over a vocabulary sharded on ranks (tests/record/nemo_rl_log_probs.py): all at once, or one
/// chunk. In a pack, whose sequences are sliced out of the logits one by one, the gradients of two sequences have the
/// pack's full length when they are added.
pub(crate) fn distributed(x: &Symbols<'_>) -> Vec<Transient> {
    let chunk = |tensors: u64, formula| {
        Saved::new("logits of a chunk", &[tensors, x.chunk_rows(), x.v], FLOAT, formula)
    };
    let (forward, format, formulas, of_chunk) = match x.recipe().loss {
        LossKind::Distributed | LossKind::DistributedCopy => {
            let both = Saved::new("logits and log-softmax", &[2, x.n, x.v], FLOAT, &LOG_SOFTMAX);
            (both, FLOAT, WIDE, None)
        }
        LossKind::DistributedChunks(_) => (chunk(3, &OF_CHUNK), x.width, AS_KEPT, Some(chunk(6, &ONE_HOT))),
        LossKind::DistributedWideChunks(_) => (chunk(2, &OF_WIDE), FLOAT, WIDE, Some(chunk(3, &OF_CHUNK))),
        _ => return Vec::new(),
    };
    let gradients =
        |count: u64, formula| Saved::new("gradient of the logits", &[count, x.n, x.v], format, formula);
    let copied = (x.recipe().loss == LossKind::DistributedCopy)
        .then(|| Saved::new("logits", &[x.n, x.v], x.width, &LOGITS));
    let [one, two] = formulas;
    let mut out = vec![
        Transient::new("log-probabilities", Bytes::ZERO, [forward].into_iter().chain(copied).collect()),
        Transient::new(
            "backward of the loss",
            Bytes::ZERO,
            [gradients(1, one)].into_iter().chain(of_chunk).collect(),
        ),
    ];
    if x.recipe().sample_length.is_some() {
        out.push(Transient::new("sum of a pack's gradients", Bytes::ZERO, vec![gradients(2, two)]));
    }
    out
}

/// A loss that runs with the output projection, one chunk of rows at a time, and computes both gradients in forward.
fn fused_linear(x: &Symbols<'_>) -> Vec<Transient> {
    let chunk = Saved::new("logits of a chunk", &[x.chunk_rows(), x.v], x.width, &CHUNK);
    let weight = Saved::new("a chunk's weight gradient", &[x.v, x.h], x.width, &WEIGHT);
    let tensors = [chunk].into_iter().chain(x.recipe().tuning.head.then_some(weight)).collect();
    vec![Transient::new("loss", Bytes::ZERO, tensors)]
}

/// What the loss holds in addition to the softmax that it saves. In fp32 the logits need no copy to be read.
fn loss(x: &Symbols<'_>) -> Vec<Saved> {
    let narrow = x.width < FLOAT;
    let mut out = Vec::with_capacity(4);
    let overwrites = matches!(
        x.recipe().loss,
        // Log-probabilities over ranks: what they hold in addition is listed separately.
        LossKind::TransformerEngine
            | LossKind::Compiled
            | LossKind::FusedLogits
            | LossKind::InPlaceLogits
            | LossKind::Distributed
            | LossKind::DistributedCopy
            | LossKind::DistributedChunks(_)
            | LossKind::PolicyKernel
    );
    if x.holds_fp32_logits() && !x.copies_logits() {
        out.push(Saved::new("fp32 logits", &[x.n, x.v], FLOAT, &HANDED_ON));
        if x.scales_logits() {
            out.push(Saved::new("logits over the temperature", &[x.n, x.v], FLOAT, &QUOTIENT));
        }
    }
    // If a pipeline gathers the outputs, the logits are among them.
    let dropped = x.recipe().software.semantics().drops_cast_logits;
    // Once the logits are copied in fp32, those of 16 bits are gone.
    let held = x.copies_logits() || x.holds_fp32_logits();
    if narrow && !overwrites && !dropped && !held && !x.gathers_pipeline_outputs() {
        out.push(Saved::new("logits", &[x.n, x.v], x.width, &LOGITS));
    }
    if matches!(x.recipe().loss, LossKind::Legacy | LossKind::NativeFused | LossKind::Torch) {
        out.push(Saved::new("fp32 logits", &[x.n, x.v], FLOAT, &COPY));
    }
    out.push(Saved::new("labels and loss mask", &[3, x.n], FLOAT, &LABELS));
    match x.recipe().software.semantics().batch_mask {
        BatchMask::One => out.push(Saved::new("attention mask", &[x.s, x.s], 1, &ONE_MASK)),
        BatchMask::Each if x.recipe().attention_mask => {
            out.push(Saved::new("attention mask", &[x.b, x.s, x.s], 1, &MASK));
        }
        BatchMask::Each | BatchMask::Absent => {}
    }
    out
}

/// Saved bytes of the loss that are freed before the projection's backward: with 16-bit logits the softmax, which in
/// fp32 becomes the logits' gradient itself.
fn loss_returned(x: &Symbols<'_>) -> Bytes {
    super::saved(x)
        .into_iter()
        .filter(|saved| match saved.name {
            "output_layer input" | "logits gradient" => false,
            "loss softmax" => {
                x.width < FLOAT
                    || matches!(x.recipe().loss, LossKind::Distributed | LossKind::DistributedCopy)
            }
            _ => true,
        })
        .map(|saved| saved.bytes)
        .sum()
}

fn backward(x: &Symbols<'_>) -> Vec<Saved> {
    let recipe = x.recipe();
    let mut out = Vec::with_capacity(4);
    // In fp32 the saved softmax becomes the gradient itself, and Transformer Engine has written it over the logits;
    // flash-attn's kernel writes it beside them whatever their dtype.
    let apart = x.width < FLOAT || recipe.loss == LossKind::FusedLogits;
    if apart && recipe.loss != LossKind::TransformerEngine {
        out.push(Saved::new("logits gradient", &[x.n, x.v], x.width, &GRADIENT));
    }
    out.push(Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT));
    out.extend(scattered(x));
    let accumulated =
        recipe.software.semantics().accumulates_output_layer && recipe.fusions.gradient_accumulation;
    // `--defer-embedding-wgrad-compute` moves this GEMM to the end of the pipeline (`schedules.py`), where it is counted as a buffer.
    if recipe.tuning.head && !accumulated && recipe.wgrad_deferral_limit == 0 {
        out.push(Saved::new("output_layer weight gradient", &[x.v, x.h], x.width, &WEIGHT));
    }
    out
}
