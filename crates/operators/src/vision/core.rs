//! A vision tower of Megatron core's layers: those of Qwen3-VL and Qwen3.5 in Megatron-Bridge and mbridge
//! (`models/qwen_vl/modelling_qwen3_vl/`, `mbridge/models/qwen3_vl/`). A layer is Transformer Engine's with LayerNorm, biases, a GELU
//! that is no kernel of its own and rotation in fp32, cut over tensor ranks; every rank has all patches, as the sequence is not cut
//! (`transformer_config.py:get_vision_model_config`). What a layer keeps is what a decoder's layer of the same sizes keeps, which
//! `tests/suite/vision_core.rs` compares.

use crate::message::Call;
use crate::{
    Account, Collective, Dimension, Message, Operator, Saved, Symbols, Transient, Weight, WeightPart,
    WeightRole,
};
use shardscope_explain::Formula;
use shardscope_plan::{TowerGradients, TowerModules, VisionKept, VisionTower};
use shardscope_units::{Bytes, Count};

const LAYER: &str =
    "megatron/core/models/vision/vit_layer_specs.py:get_vit_layer_with_transformer_engine_spec";
const ROPE: &str = "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/rope.py:apply_rotary_pos_emb_absolute";
const MODEL: &str = "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/vision_model.py";
const MERGER: &str = "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/utils.py:Qwen3VLVisionPatchMerger";
const CHECKPOINT: &str = "megatron/core/tensor_parallel/random.py:CheckpointFunction";
const BACKWARD: &str = "torch autograd: a node's gradients are alive while it runs";
const SUMS: &str = "megatron/core/tensor_parallel/layers.py, without sequence parallelism";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of an index into the table of positions (int64), of each of the four places between which a patch's is.
const PLACES: u64 = 4 * 8;
/// Weights of those four places, in the table's format.
const PLACE_WEIGHTS: u64 = 4;

static NORM_INPUTS: Formula = Formula::new("2·ni·hi·B", "Inputs of both norms: the residual stream.", LAYER);
static MOMENTS: Formula = Formula::new(
    "16·ni",
    "Mean and reciprocal standard deviation of each token, in both norms, fp32.",
    LAYER,
);
static NORMED: Formula =
    Formula::new("2·ni·hi·B", "Inputs of the query, key and value projection and of the MLP.", LAYER);
static QUERIES: Formula =
    Formula::new("3·ni·hi·B/t", "Queries, keys and values of this rank's heads.", LAYER);
static COSINES: Formula =
    Formula::new("8·ni·hi/ai", "Cosines for queries and for keys, fp32, made in each layer.", ROPE);
static SINES: Formula =
    Formula::new("8·ni·hi/ai", "Sines for queries and for keys, fp32, made in each layer.", ROPE);
static LSE: Formula = Formula::new("4·ni·ai/t", "Log-sum-exp per head and token, fp32.", LAYER);
static OUT: Formula = Formula::new("ni·hi·B/t", "The attention output, which the projection reads.", LAYER);
static ACTIVATION: Formula = Formula::new("ni·fi·B/t", "The activation's input.", LAYER);
static LAST_INPUT: Formula = Formula::new("ni·fi·B/t", "The second projection's input.", LAYER);

static PATCHES: Formula =
    Formula::new("ni·pvi·B", "Patches in the format of the weights: the convolution's input.", MODEL);
static POSITIONS: Formula = Formula::new(
    "ni·(32 + 4·B)",
    "Indices (int64) and weights of the four entries of the position table between which a patch lies.",
    MODEL,
);
static MERGED: Formula =
    Formula::new("2·ni·hi·B + 8·ni", "The merger's norm: its input, its statistics and its output.", MERGER);
static MERGING: Formula =
    Formula::new("2·ni·hi·B/t", "The merger's activation: its input and its output.", MERGER);
static DEEP: Formula = Formula::new(
    "di·(ni·hi·B + 8·ti + 2·ni·hi·B/t)",
    "The same of mergers of deep layers, whose norm reads what the next layer keeps anyway.",
    MERGER,
);
static ALONE: Formula = Formula::new(
    "di·(2·ni·hi·B + 8·ti + 2·ni·hi·B/t)",
    "The same of mergers of deep layers behind a frozen tower, whose layers keep nothing that their norms read.",
    MERGER,
);
static INPUTS: Formula = Formula::new("Li·ni·hi·B", "Inputs of the fully recomputed layers.", CHECKPOINT);
static ANGLES: Formula =
    Formula::new("4·ni·hi/ai", "The table of rotations, fp32, which each checkpoint refers to.", CHECKPOINT);

static RESIDUAL: Formula = Formula::new("ni·hi·B", "The residual stream's gradient.", BACKWARD);
static INNER: Formula = Formula::new("ni·fi·B/t", "Gradient of the activation's output.", BACKWARD);
static BEFORE: Formula = Formula::new("ni·fi·B/t", "Gradient of the activation's input.", BACKWARD);
static INPUT: Formula = Formula::new("ni·hi·B", "Gradient of the first projection's input.", BACKWARD);
static WEIGHT: Formula = Formula::new("hi·fi·B/t", "A projection's weight gradient.", BACKWARD);
static OUTPUT: Formula = Formula::new("ni·hi·B/t", "Gradient of the attention output.", BACKWARD);
static PACKED: Formula = Formula::new("3·ni·hi·B/t", "Gradients of queries, keys and values.", BACKWARD);
static SUMMED: Formula = Formula::new(
    "4·ni·hi/t",
    "The gradient of the queries, accumulated in fp32.",
    "flash-attn backward: queries' gradient summed in fp32",
);

static LAYER_OUTPUT: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllReduce,
    "output",
    Formula::new("ni·hi·B", "Every rank holds a partial sum of a row-parallel layer's output.", SUMS),
);
static LAYER_GRADIENT: Call = Call::backward(
    Dimension::Tensor,
    Collective::AllReduce,
    "input gradient",
    Formula::new(
        "ni·hi·B",
        "Every rank holds a partial sum of a column-parallel layer's input gradient.",
        SUMS,
    ),
);
static MERGER_OUTPUT: Call = Call::forward(
    Dimension::Tensor,
    Collective::AllReduce,
    "output",
    Formula::new("ti·h·B", "Every rank holds a partial sum of a merger's output.", MERGER),
);

/// The tower, where it is made of Megatron core's layers.
pub(super) fn tower(x: &Symbols<'_>) -> Option<(VisionTower, VisionKept)> {
    let tower = x.model().vision.filter(|tower| tower.modules == TowerModules::Core)?;
    Some((tower, tower.kept.unwrap_or_default()))
}

/// Weights of this rank: what is cut over tensor ranks, and what each of them holds whole.
pub(super) fn weights(operator: Operator, x: &Symbols<'_>) -> Vec<Weight> {
    let Some((tower, kept)) = tower(x) else { return Vec::new() };
    let (name, all, cut) = if operator == Operator::VisionLayer {
        ("vision layer", tower.layer_parameters, kept.cut_layer)
    } else {
        ("patch embedding and projector", tower.outside_layers(), kept.cut_ends)
    };
    let role =
        if tower.gradients == TowerGradients::Trained { WeightRole::Trained } else { WeightRole::Frozen };
    let apart = if tower.projects_alone() && operator == Operator::VisionEnds {
        [tower.projecting(), projecting_cut(&tower, &kept)]
    } else {
        [0; 2]
    };
    parts(name, all.saturating_sub(apart[0]), cut.saturating_sub(apart[1]), x)
        .map(|weight| Weight { role, ..weight })
        .to_vec()
}

/// So many parameters, of which `cut` are cut over tensor ranks.
fn parts(name: &'static str, all: u64, cut: u64, x: &Symbols<'_>) -> [Weight; 2] {
    let whole = Weight::replicated(name, Account::VisionTower, &[all.saturating_sub(cut)]);
    let split = Weight::split_vector("of it, cut over tensor ranks", Account::VisionTower, cut, x.t);
    [whole, split].map(|weight| weight.as_part(WeightPart::VisionTower))
}

/// Parameters of the mergers that train, those that are cut over tensor ranks: each has the same two linear layers.
fn projecting_cut(tower: &VisionTower, kept: &VisionKept) -> u64 {
    let each = kept.cut_ends / (1 + kept.deep_mergers);
    let deep = if tower.deep_trains { kept.deep_mergers } else { 0 };
    each * (u64::from(tower.projector_trains) + deep)
}

/// Weights of mergers that train behind a frozen tower.
pub(super) fn projector_weights(x: &Symbols<'_>) -> Option<Vec<Weight>> {
    let (tower, kept) = tower(x)?;
    Some(parts("mergers", tower.projecting(), projecting_cut(&tower, &kept), x).to_vec())
}

/// What these keep. Under a checkpoint of frozen layers, mergers of deep layers have no gradients.
pub(super) fn projector(x: &Symbols<'_>) -> Option<Vec<Saved>> {
    let (tower, kept) = tower(x)?;
    let mut saved = if tower.projector_trains { merger(x, &tower) } else { Vec::new() };
    if tower.deep_trains && kept.deep_mergers > 0 && !x.recomputes_tower() {
        let each = deep_merger(x, &tower) + x.tower_tokens() * tower.hidden_size * x.width;
        saved.push(Saved::new("mergers of deep layers", &[kept.deep_mergers, each], 1, &ALONE));
    }
    Some(saved)
}

/// What the last merger keeps.
fn merger(x: &Symbols<'_>, tower: &VisionTower) -> Vec<Saved> {
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    vec![
        Saved::new("norm of the merger", &[n * (2 * h * x.width + 2 * FLOAT)], 1, &MERGED),
        Saved::new("activation of the merger", &[2, n, h / x.t.max(1)], x.width, &MERGING),
    ]
}

/// Bytes that one of deep layers keeps, but for its norm's input.
fn deep_merger(x: &Symbols<'_>, tower: &VisionTower) -> u64 {
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    n * h * x.width + 2 * FLOAT * x.image_tokens() + 2 * n * (h / x.t.max(1)) * x.width
}

/// Width of one rank's heads, and of its part of the MLP.
fn widths(x: &Symbols<'_>, tower: &VisionTower, kept: &VisionKept) -> [u64; 2] {
    [tower.hidden_size, kept.ffn].map(|width| width / x.t.max(1))
}

/// What one of its layers keeps.
pub(super) fn layer(x: &Symbols<'_>) -> Vec<Saved> {
    let Some((tower, kept)) = tower(x).filter(|(tower, _)| tower.gradients != TowerGradients::None) else {
        return Vec::new();
    };
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    let [heads, ffn] = widths(x, &tower, &kept);
    let columns = h / kept.heads.max(1);
    vec![
        Saved::new("inputs of norms", &[2, n, h], x.width, &NORM_INPUTS),
        Saved::new("statistics of norms", &[4, n], FLOAT, &MOMENTS),
        Saved::new("inputs of projections", &[2, n, h], x.width, &NORMED),
        Saved::new("queries, keys and values", &[3, n, heads], x.width, &QUERIES),
        Saved::new("rotary cosines", &[2, n, columns], FLOAT, &COSINES),
        Saved::new("rotary sines", &[2, n, columns], FLOAT, &SINES),
        Saved::new("log-sum-exp", &[n, kept.heads / x.t.max(1)], FLOAT, &LSE),
        Saved::new("attention output", &[n, heads], x.width, &OUT),
        Saved::new("activation input", &[n, ffn], x.width, &ACTIVATION),
        Saved::new("input of the MLP's last projection", &[n, ffn], x.width, &LAST_INPUT),
    ]
}

/// What is kept outside of its layers, and what checkpoints of them keep. Mergers of deep layers stand within those.
pub(super) fn ends(x: &Symbols<'_>) -> Vec<Saved> {
    let Some((tower, kept)) = tower(x).filter(|(tower, _)| tower.gradients != TowerGradients::None) else {
        return Vec::new();
    };
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    let mut saved = vec![
        Saved::new("patches", &[n, kept.patch_values], x.width, &PATCHES),
        Saved::new("places in the position table", &[n, PLACES + PLACE_WEIGHTS * x.width], 1, &POSITIONS),
    ];
    saved.extend(merger(x, &tower));
    if x.recomputes_tower() {
        saved.push(Saved::new("inputs of vision layers", &[tower.layers, n, h], x.width, &INPUTS));
        saved.push(Saved::new("rotations", &[n, h / kept.heads.max(1)], FLOAT, &ANGLES));
    } else if kept.deep_mergers > 0 {
        let shape = [kept.deep_mergers, deep_merger(x, &tower)];
        saved.push(Saved::new("within mergers of deep layers", &shape, 1, &DEEP));
    }
    saved
}

/// What backward of a layer holds at its steps, behind what the layer keeps.
pub(super) fn backward(x: &Symbols<'_>) -> Vec<Transient> {
    let Some((tower, kept)) = tower(x) else { return Vec::new() };
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    let [heads, ffn] = widths(x, &tower, &kept);
    let residual = Saved::new("residual gradient", &[n, h], x.width, &RESIDUAL);
    let inner = Saved::new("gradient of the activation's output", &[n, ffn], x.width, &INNER);
    let before = Saved::new("gradient of the activation's input", &[n, ffn], x.width, &BEFORE);
    let input = Saved::new("gradient of the input", &[n, h], x.width, &INPUT);
    // The tower's configuration leaves the fusion of weight gradients at its default, which is off.
    let weight = Saved::new("weight gradient", &[h, ffn], x.width, &WEIGHT);
    let output = Saved::new("gradient of the output", &[n, heads], x.width, &OUTPUT);
    let packed = Saved::new("gradients of query, key and value", &[3, n, heads], x.width, &PACKED);
    let summed = Saved::new("fp32 query gradient", &[n, heads], FLOAT, &SUMMED);
    let activation = Count::of_shape(&[n, ffn]).bytes(x.width);
    vec![
        Transient::new("backward of linear_fc2", Bytes::ZERO, vec![residual, inner, weight]),
        Transient::new("backward of the activation", activation, vec![residual, inner, before]),
        Transient::new(
            "backward of linear_fc1",
            activation + activation,
            vec![residual, before, input, weight],
        ),
        // The MLP's own tensors are gone by then; nothing is taken back for the rest.
        Transient::new(
            "backward of the attention",
            activation + activation,
            vec![residual, output, packed, summed],
        ),
    ]
}

/// Messages of its layers, or of what projects.
pub(super) fn messages(operator: Operator, x: &Symbols<'_>) -> Vec<Message> {
    let Some((tower, kept)) = tower(x).filter(|_| x.t > 1) else { return Vec::new() };
    // Those of mergers that train by themselves are among the ends' here.
    if operator == Operator::Projector {
        return Vec::new();
    }
    let (n, h) = (x.tower_tokens(), tower.hidden_size);
    let trains = tower.gradients != TowerGradients::None;
    let gradient = |times| Message::new(x, &LAYER_GRADIENT, "vision layers", &[n, h]).times(times);
    if operator == Operator::VisionLayer {
        let mut out = vec![Message::new(x, &LAYER_OUTPUT, "vision layers", &[n, h]).times(2)];
        out.extend(trains.then(|| gradient(2)));
        return out;
    }
    let output = |name| Message::new(x, &MERGER_OUTPUT, name, &[x.image_tokens(), x.h]);
    // The last merger stands behind the layers and their checkpoints.
    let mut out = Message::outside(vec![output("merger")]);
    if kept.deep_mergers > 0 {
        out.push(output("mergers of deep layers").times(kept.deep_mergers));
    }
    let deep = trains || tower.deep_trains && !x.recomputes_tower();
    let times = u64::from(trains || tower.projector_trains) + if deep { kept.deep_mergers } else { 0 };
    out.extend((times > 0).then(|| gradient(times)));
    out
}
