//! What torchtitan's selective checkpointing saves of a dense layer: its input, the attention's output, and every
//! second matrix product's output; everything else is recomputed when backward reaches the layer.

use super::{Operator, Saved, Symbols, Work};
use shardscope_explain::Formula;

const SOURCE: &str = "torchtitan/distributed/activation_checkpoint.py: _op_sac_save_list, every second mm";
const KERNEL: &str = "aten/src/ATen/native/transformers/cuda/attention.cu: scaled dot product, forward";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("S·h·B", "The layer's input, from which it is recomputed.", SOURCE);
static QUERY: Formula = Formula::new("n·A·B", "Output of the first matmul, the queries.", SOURCE);
static VALUE: Formula = Formula::new("n·K·B", "Output of the third matmul, the values.", SOURCE);
static ATTENTION: Formula = Formula::new("n·A·B", "The attention's output.", KERNEL);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", KERNEL);
static REDUCED: Formula =
    Formula::new("S·h·B", "The output projection's output, once reduced and scattered.", SOURCE);
static GATE: Formula = Formula::new("n·f·B", "Output of the fifth matmul, the gate.", SOURCE);
static DOWN: Formula = Formula::new("n·h·B", "Output of the seventh matmul, the MLP's output.", SOURCE);
static DOWN_REDUCED: Formula = Formula::new("S·h·B", "The MLP's output, once reduced and scattered.", SOURCE);

/// What `operator` saves if layers are checkpointed this way; `None` if it saves what it always does.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Vec<Saved>> {
    if !x.samples_layers() {
        return None;
    }
    // torchtitan counts a layer's `aten.mm` calls and recomputes every second one: q (saved), k, v (saved), o, gate (saved), up,
    // down (saved).
    let wide = [x.n, x.a * x.d];
    Some(match operator {
        Operator::InputNorm => vec![Saved::new("layer input", &[x.s_local, x.h], x.residual_width, &INPUT)],
        Operator::PreMlpNorm | Operator::PreExpertsNorm => Vec::new(),
        Operator::SelfAttention | Operator::WindowedAttention => {
            let mut out = vec![
                Saved::new("query", &wide, x.width, &QUERY),
                Saved::new("value", &[x.n, x.k * x.d], x.width, &VALUE),
                Saved::new("attention output", &wide, x.width, &ATTENTION),
                Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE),
            ];
            out.extend(reduced(x, "reduced attention output", &REDUCED));
            out
        }
        Operator::Mlp => {
            let mut out = vec![Saved::new("gate", &[x.n, x.f], x.width, &GATE)];
            // No backward reads it: checkpointing in eager mode saves it anyway, a compiled layer does not.
            if !x.recipe().fusions.compiled_layers {
                out.push(Saved::new("linear_fc2 output", &[x.n, x.h], x.width, &DOWN));
                out.extend(reduced(x, "reduced MLP output", &DOWN_REDUCED));
            }
            out
        }
        Operator::Embedding
        | Operator::VisionLayer
        | Operator::VisionEnds
        | Operator::Projector
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention
        | Operator::LatentAttention
        | Operator::Linear(_)
        | Operator::WideMlp
        | Operator::LayerInputs
        | Operator::LayerInput
        | Operator::Experts
        | Operator::FinalNorm
        | Operator::OutputLayer
        | Operator::Encoder { .. }
        | Operator::Positions
        | Operator::CrossNorm
        | Operator::CrossAttention
        | Operator::MtpProjection => return None,
    })
}

/// Says of each product in `work`, the first of which is number `first` of its layer, whether its recomputation repeats it.
pub(super) fn number(x: &Symbols<'_>, first: u64, work: &mut [Work]) {
    if !x.samples_products() {
        return;
    }
    let products = work.iter_mut().filter(|part| matches!(part, Work::Matmul(of) if of.kind.has_weight()));
    for (number, product) in (first..).zip(products) {
        product.repeat(repeats(number));
    }
}

/// The shares of an MLP's two products that a recomputed layer repeats: gate and up are products of their own.
pub(super) fn of_mlp(x: &Symbols<'_>) -> [f64; 2] {
    // Queries, keys, values and output; latent attention has two for queries if they go through a narrow space, and two for
    // keys and values together.
    let before = x.model().latent.map_or(4, |latent| if latent.q_lora_rank.is_some() { 5 } else { 4 });
    let first = if x.gate == 2 { 0.5 } else { repeats(before + 1) };
    [first, repeats(before + x.gate + 1)]
}

/// The share of a layer's product with this number that is repeated.
const fn repeats(number: u64) -> f64 {
    if number.is_multiple_of(2) { 1.0 } else { 0.0 }
}

fn reduced(x: &Symbols<'_>, name: &'static str, formula: &'static Formula) -> Option<Saved> {
    x.sequence_parallel.then(|| Saved::new(name, &[x.s_local, x.h], x.width, formula))
}
