//! What torchtitan's selective checkpointing saves of a layer: its input, the attention's output, and every second
//! matrix product's output; everything else, routed experts too, is recomputed when backward reaches the layer.

use super::{Operator, Saved, Symbols, Work};
use shardscope_explain::Formula;

const SOURCE: &str = "torchtitan/distributed/activation_checkpoint.py: _op_sac_save_list, every second mm";
const KERNEL: &str = "aten/src/ATen/native/transformers/cuda/attention.cu: scaled dot product, forward";
const EXCHANGES: &str =
    "torchtitan/distributed/activation_checkpoint.py: all_to_all_single, which is always saved";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;

static INPUT: Formula = Formula::new("S·h·B", "The layer's input, from which it is recomputed.", SOURCE);
static QUERY: Formula = Formula::new("n·A·B", "Output of the first matmul, the queries.", SOURCE);
static VALUE: Formula = Formula::new("n·K·B", "Output of the third matmul, the values.", SOURCE);
static ATTENTION: Formula = Formula::new("n·A·B", "The attention's output.", KERNEL);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", KERNEL);
static REDUCED: Formula =
    Formula::new("S·h·B", "The output projection's output, once reduced and scattered.", SOURCE);
static GATE: Formula = Formula::new(
    "n·f·B",
    "Output of the MLP's gate or up, whose number is odd: of the gate behind four matmuls.",
    SOURCE,
);
static QUERY_DOWN: Formula = Formula::new("S·ql·B", "Output of the first matmul, the query latent.", SOURCE);
static KV_DOWN: Formula = Formula::new(
    "S·(kl + dr)·B",
    "Output of the third matmul, the key/value latent and the rotated key.",
    SOURCE,
);
static WIDE_QUERY: Formula =
    Formula::new("n·a·(dn + dr)·B", "Output of the first matmul, the queries.", SOURCE);
static KV_UP: Formula =
    Formula::new("n·a·(dn + dv)·B", "Output of the third matmul, keys and values.", SOURCE);
static LATENT_ATTENTION: Formula = Formula::new("n·a·dv·B", "The attention's output.", KERNEL);
static PROJECTED: Formula = Formula::new("n·h·B", "Output of the fifth matmul, the attention's.", SOURCE);
static SHARED_GATE: Formula =
    Formula::new("n·fs·B", "Output of the shared experts' gate or up, whose number is odd.", SOURCE);
static DISPATCHED: Formula =
    Formula::new("R·hm·B", "Tokens as the exchange brought them to experts.", EXCHANGES);
static COMBINED: Formula = Formula::new("T·hm·B", "Tokens as the exchange brought them back.", EXCHANGES);
static DOWN: Formula = Formula::new("n·h·B", "The MLP's output, of the seventh matmul.", SOURCE);
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
        Operator::LatentAttention => latent(x),
        Operator::Mlp => {
            gated(x, before(x) + 1, x.f, [["gate", "linear_fc2 output"], ["up", "reduced MLP output"]], &GATE)
        }
        Operator::Experts => experts(x),
        Operator::Embedding
        | Operator::VisionLayer
        | Operator::VisionEnds
        | Operator::Projector
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention
        | Operator::Linear(_)
        | Operator::WideMlp
        | Operator::LayerInputs
        | Operator::LayerInput
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

/// Products of a layer before those of its MLP: queries, keys, values and output; latent attention has two for queries if they go
/// through a narrow space, and two for keys and values together. The router's is not counted
/// (`per_op_sac_force_recompute_mm_shapes_by_fqns`, "moe.router.gate").
fn before(x: &Symbols<'_>) -> u64 {
    x.model().latent.map_or(4, |latent| if latent.q_lora_rank.is_some() { 5 } else { 4 })
}

/// The shares of an MLP's two products that a recomputed layer repeats: gate and up are products of their own.
pub(super) fn of_mlp(x: &Symbols<'_>) -> [f64; 2] {
    let before = before(x);
    let first = if x.gate == 2 { 0.5 } else { repeats(before + 1) };
    [first, repeats(before + x.gate + 1)]
}

/// Multi-latent attention: its products in their order, of which the first, third and fifth are saved.
fn latent(x: &Symbols<'_>) -> Vec<Saved> {
    let sizes = x.latent;
    let wide = sizes.plain + sizes.rotary;
    let narrow = sizes.query > 0;
    let mut out = if narrow {
        vec![
            Saved::new("query down-projection output", &[x.s_local, sizes.query], x.width, &QUERY_DOWN),
            Saved::new(
                "kv down-projection output",
                &[x.s_local, sizes.key_value + sizes.rotary],
                x.width,
                &KV_DOWN,
            ),
        ]
    } else {
        let up = sizes.plain + sizes.value;
        vec![
            Saved::new("query", &[x.n, x.a * wide], x.width, &WIDE_QUERY),
            Saved::new("kv up-projection output", &[x.n, x.a * up], x.width, &KV_UP),
        ]
    };
    out.push(Saved::new("attention output", &[x.n, x.a * sizes.value], x.width, &LATENT_ATTENTION));
    out.push(Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE));
    if narrow {
        out.push(Saved::new("linear_proj output", &[x.n, x.h], x.width, &PROJECTED));
    }
    out.extend(reduced(x, "reduced attention output", &REDUCED));
    out
}

/// An MLP, the first of whose products is number `first` of its layer: of gate and up the one with an odd number, and its output.
/// No backward reads that: checkpointing in eager mode saves it anyway, a compiled layer does not.
fn gated(
    x: &Symbols<'_>,
    first: u64,
    inner: u64,
    [[gate, down], [up, scattered]]: [[&'static str; 2]; 2],
    formula: &'static Formula,
) -> Vec<Saved> {
    let keeps = |number: u64| repeats(number) == 0.0;
    let shape = [x.n, inner];
    let mut out = Vec::with_capacity(3);
    if keeps(first) {
        out.push(Saved::new(gate, &shape, x.width, formula));
    } else if x.gate == 2 {
        out.push(Saved::new(up, &shape, x.width, formula));
    }
    if !x.recipe().fusions.compiled_layers {
        if keeps(first + x.gate) {
            out.push(Saved::new(down, &[x.n, x.h], x.width, &DOWN));
        }
        out.extend(reduced(x, scattered, &DOWN_REDUCED));
    }
    out
}

/// Routed experts are repeated, as grouped products are not on the list; what an exchange brought is on it.
fn experts(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(5);
    if x.plan.layout().expert > 1 {
        out.push(Saved::new("dispatched tokens", &[x.moe.received, x.moe.hidden], x.width, &DISPATCHED));
        out.push(Saved::new("combined tokens", &[x.moe.sent, x.moe.hidden], x.width, &COMBINED));
    }
    if x.moe.shared > 0 {
        let names = [
            ["shared experts' gate", "shared experts' output"],
            ["shared experts' up", "shared experts' reduced output"],
        ];
        out.extend(gated(x, before(x) + 1, x.moe.shared, names, &SHARED_GATE));
    }
    out
}

/// The share of a layer's product with this number that is repeated.
const fn repeats(number: u64) -> f64 {
    if number.is_multiple_of(2) { 1.0 } else { 0.0 }
}

fn reduced(x: &Symbols<'_>, name: &'static str, formula: &'static Formula) -> Option<Saved> {
    x.sequence_parallel.then(|| Saved::new(name, &[x.s_local, x.h], x.width, formula))
}
