//! Tensors saved for backward.

use crate::{Saved, Symbols, column};
use shardscope_explain::Formula;
use shardscope_plan::LossKind;

const OUTPUT: &str = "megatron/core/models/gpt/gpt_model.py";
const LOSS: &str = "megatron/core/tensor_parallel/cross_entropy.py";
const FUSED_LOSS: &str = "transformer_engine/pytorch/cross_entropy.py";
const LINEAR_LOSS: &str = "megatron/core/fusions/fused_linear_cross_entropy.py; Liger, Cut Cross-Entropy";
const COMPILED: &str =
    "torch.compile of torch.nn.functional.cross_entropy: what its backward needs is recomputed";
const FLASH_LOSS: &str = "flash_attn/ops/triton/cross_entropy.py:CrossEntropyLoss, inplace_backward=False";
const CHUNKS: &str =
    "ChunkedDistributedLogprob of NeMo-RL (nemo_rl/distributed/model_utils.py) and of SkyRL (model_utils.py)";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static INPUT: Formula = Formula::new("S·h·B", "The output projection's input.", OUTPUT);
static GATHERED: Formula = Formula::new("n·h·B", "The output projection's input, gathered.", OUTPUT);
static INPUT_GRADIENT: Formula = Formula::new(
    "S·h·B",
    "The gradient of the output projection's input, computed in the forward pass.",
    LINEAR_LOSS,
);
static WEIGHT_GRADIENT: Formula = Formula::new(
    "V·h·B",
    "The gradient of the output projection's weight, computed in the forward pass.",
    LINEAR_LOSS,
);
static KEPT: Formula =
    Formula::new("n·V·B", "The logits in 16 bits: a compiled loss recomputes the softmax.", COMPILED);
static READ: Formula = Formula::new("n·V·B", "The logits, which backward reads again.", FLASH_LOSS);
static SUMS_OF_LOSS: Formula = Formula::new("4·n", "Log-sum-exp of each token's logits, fp32.", FLASH_LOSS);
static LABELS: Formula = Formula::new("8·n", "Labels, int64.", FLASH_LOSS);
static STATISTICS: Formula = Formula::new("8·n", "Max logit and log-sum-exp, fp32.", COMPILED);
static SOFTMAX: Formula = Formula::new("4·n·V", "Softmax over the vocabulary, fp32.", LOSS);
static LOGITS: Formula =
    Formula::new("n·V·B", "The logits, overwritten by their gradient in forward.", FUSED_LOSS);
static CAST: Formula =
    Formula::new("4·n·V", "The logits, which were cast to fp32 before their loss.", CHUNKS);
static NARROW: Formula = Formula::new("n·V·B", "The logits as the output projection made them.", CHUNKS);
const ENTROPY: &str = "verl/utils/megatron/tensor_parallel.py:_VocabParallelEntropy, on the logits of which the loss has a copy";
static ENTROPYS: Formula =
    Formula::new("4·n·V", "The logits in fp32, of which an entropy of the loss is taken.", ENTROPY);
static SHARES: Formula = Formula::new("4·n·V", "Their softmax, fp32, which becomes their gradient.", ENTROPY);
static SUMS: Formula =
    Formula::new("4·n", "The sum of each token's logits times their softmax, fp32.", ENTROPY);
static MASK: Formula =
    Formula::new("n", "Which targets are in this rank's shard of the vocabulary, one byte each.", LOSS);
static TARGETS: Formula =
    Formula::new("8·n", "Target ids within this rank's shard of the vocabulary, int64.", LOSS);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let trains = x.recipe().tuning.head;
    // Both gradients are computed in forward: neither logits nor the layer's input wait for backward.
    if x.recipe().loss == LossKind::FusedLinear {
        let input = Saved::new("gradient of the input", &[x.s_local, x.h], x.width, &INPUT_GRADIENT);
        let weight = Saved::new("gradient of the weight", &[x.v, x.h], x.width, &WEIGHT_GRADIENT);
        return [input].into_iter().chain(trains.then_some(weight)).collect();
    }
    if x.recipe().loss == LossKind::PolicyKernel {
        return super::policy_kernel::kept(x).into();
    }
    let mut out = Vec::with_capacity(4);
    // For its input's gradient a frozen output layer only needs its weight.
    out.extend(trains.then(|| column::input(x, "output_layer input", x.width, &INPUT, &GATHERED)));
    match x.recipe().loss {
        LossKind::TransformerEngine => {
            out.push(Saved::new("logits gradient", &[x.n, x.v], x.width, &LOGITS));
        }
        LossKind::FusedLogits | LossKind::InPlaceLogits => {
            // A loop that keeps the model's output has the same logits until its next one, which are counted there.
            if !x.recipe().transformers.holds_output {
                out.push(Saved::new("kept logits", &[x.n, x.v], x.width, &READ));
            }
            out.push(Saved::new("log of the softmax's sum", &[x.n], FLOAT, &SUMS_OF_LOSS));
            out.push(Saved::new("labels", &[x.n], INDEX, &LABELS));
        }
        LossKind::Compiled => {
            // If a pipeline gathers the outputs, the logits are among them.
            if !x.gathers_pipeline_outputs() {
                out.push(Saved::new("kept logits", &[x.n, x.v], x.width, &KEPT));
            }
            out.push(Saved::new("softmax statistics", &[2, x.n], FLOAT, &STATISTICS));
            out.push(Saved::new("masked targets", &[x.n], INDEX, &TARGETS));
        }
        LossKind::DistributedChunks(_) | LossKind::DistributedWideChunks(_) => {
            let wide = matches!(x.recipe().loss, LossKind::DistributedWideChunks(_));
            let (width, formula) = if wide { (FLOAT, &CAST) } else { (x.width, &NARROW) };
            out.push(Saved::new("kept logits", &[x.n, x.v], width, formula));
            out.push(Saved::new("target mask", &[x.n], 1, &MASK));
            out.push(Saved::new("masked targets", &[x.n], INDEX, &TARGETS));
        }
        _ => out.extend(over_ranks(x)),
    }
    if x.copies_logits() {
        out.push(Saved::new("logits of the entropy", &[x.n, x.v], FLOAT, &ENTROPYS));
        out.push(Saved::new("softmax of the entropy", &[x.n, x.v], FLOAT, &SHARES));
        out.push(Saved::new("sums of the entropy", &[x.n], FLOAT, &SUMS));
    }
    out
}

/// What a loss over a vocabulary sharded on tensor ranks saves.
pub(crate) fn over_ranks(x: &Symbols<'_>) -> [Saved; 3] {
    [
        Saved::new("loss softmax", &[x.n, x.v], FLOAT, &SOFTMAX),
        Saved::new("target mask", &[x.n], 1, &MASK),
        Saved::new("masked targets", &[x.n], INDEX, &TARGETS),
    ]
}
