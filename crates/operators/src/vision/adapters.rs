//! PEFT's adapters on the linear layers of a vision tower and of its projector: matched to the byte with the runs in
//! `tests/data/activations/vision_lora.jsonl`.

use crate::{Account, Operator, Saved, Symbols, Weight, WeightPart, WeightRole};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, TowerGradients};

const LORA: &str = "peft/tuners/lora/layer.py:Linear.forward, beside the tower's layers; recorded in tests/data/activations/vision_lora.jsonl";

static LAYER: Formula = Formula::new(
    "zi",
    "What adapters of a vision layer save: inputs, dropout masks, lora_A outputs and, under autocast, matrices in 16 bits.",
    LORA,
);
static ENDS: Formula = Formula::new("ze", "The same of the projector.", LORA);

/// A linear layer with an adapter: rows, and input and output columns.
#[derive(Clone, Copy)]
struct Site {
    rows: u64,
    inner: u64,
    outer: u64,
    /// Whether something else saves its input, if the adapter reads it unchanged.
    shared: bool,
    /// How many there are.
    times: u64,
}

/// The adapted layers of `operator`.
fn sites(operator: Operator, x: &Symbols<'_>) -> Vec<Site> {
    let Some(tower) = x.model().vision.filter(|tower| tower.gradients == TowerGradients::Adapted) else {
        return Vec::new();
    };
    let kept = tower.kept.unwrap_or_default();
    let (width, ffn) = (tower.hidden_size, kept.ffn);
    let one = |rows, inner, outer, shared| Site { rows, inner, outer, shared, times: 1 };
    let tokens = x.tower_tokens();
    if operator == Operator::VisionLayer {
        // Flash attention saves its output, which the output projection reads.
        let joined = kept.joined_output && x.recipe().attention_kernel != AttentionKernel::Flash;
        let mut out = if kept.fused_queries {
            vec![one(tokens, width, 3 * width, false)]
        } else {
            [false, true, true].map(|shared| one(tokens, width, width, shared)).to_vec()
        };
        // If nothing concatenates them, the output is the kernel's own.
        out.push(one(tokens, width, width, !joined));
        out.push(one(tokens, width, ffn, false));
        out.extend(kept.gated.then(|| one(tokens, width, ffn, true)));
        out.push(one(tokens, ffn, width, false));
        return out;
    }
    let merger = |times| {
        let between = kept.widths.windows(2).filter_map(|pair| <[u64; 2]>::try_from(pair).ok());
        let between = between.filter(|[inner, outer]| *inner > 0 && *outer > 0);
        between.map(move |[inner, outer]| Site { times, ..one(x.image_tokens(), inner, outer, false) })
    };
    let mut out = Vec::new();
    out.extend(tower.projector_trains.then(|| merger(1)).into_iter().flatten());
    out.extend(tower.deep_trains.then(|| merger(kept.deep_mergers)).into_iter().flatten());
    out
}

/// Weights of adapters.
pub(super) fn weights(operator: Operator, x: &Symbols<'_>) -> Vec<Weight> {
    let rank = x.lora_rank;
    let mut out = Vec::new();
    for site in sites(operator, x) {
        for _ in 0..site.times {
            for (name, shape) in
                [("lora_A.weight", [rank, site.inner]), ("lora_B.weight", [site.outer, rank])]
            {
                let weight =
                    Weight::replicated(name, Account::VisionTower, &shape).as_part(WeightPart::VisionTower);
                out.push(Weight { role: WeightRole::Adapter, ..weight });
            }
        }
    }
    out
}

/// Bytes that they save.
pub(super) fn bytes(operator: Operator, x: &Symbols<'_>) -> u64 {
    let (autocast, rank) = (x.recipe().autocasts(), x.lora_rank);
    let dropout = x.recipe().tuning.lora.is_some_and(|lora| lora.dropout);
    let width = if autocast { x.compute_width } else { x.adapter_width };
    let own = autocast || dropout || x.adapter_width != x.width;
    let of = |site: &Site| {
        let columns = site.rows * site.inner;
        let input = if own || !site.shared { columns * width } else { 0 };
        let mask = if dropout { columns } else { 0 };
        let casts = if autocast { rank * (site.inner + site.outer) * width } else { 0 };
        site.times * (input + mask + casts + site.rows * rank * width)
    };
    sites(operator, x).iter().map(of).sum()
}

/// What they save.
pub(super) fn saved(operator: Operator, x: &Symbols<'_>) -> Option<Saved> {
    let formula = if operator == Operator::VisionLayer { &LAYER } else { &ENDS };
    Some(bytes(operator, x))
        .filter(|bytes| *bytes > 0)
        .map(|bytes| Saved::new("kept by adapters", &[bytes], 1, formula))
}
