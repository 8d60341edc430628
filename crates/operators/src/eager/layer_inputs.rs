//! Embeddings that each layer has of its own (Gemma 4 E2B and E4B): made for all layers before the first one, and gated,
//! projected, normed and added to the residual stream behind each MLP.

use super::flow::{Flow, is_adapted};
use super::linear::{Input, LAYER_GATE, LAYER_MODEL, LAYER_OUT};
use super::norm;
use super::tape::Tape;
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::{DpSharding, LinearModule};
use shardscope_units::Bytes;

const MADE: &str = "transformers/models/gemma4/modeling_gemma4.py:Gemma4TextModel.project_per_layer_inputs";
const ADDED: &str = "transformers/models/gemma4/modeling_gemma4.py:Gemma4TextDecoderLayer.forward";
const SHARED: &str =
    "transformers/models/gemma4/modeling_gemma4.py:Gemma4TextModel.forward, shared_kv_states";
const SCATTERED: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:foreach_reduce; deepspeed/runtime/zero/stage3.py:__reduce_and_partition_ipg_grads";
const SELECT: &str = "torch autograd: SelectBackward fills zeros, and the sum so far";
const BACKWARD: &str = "backward of a layer's own embedding";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

static INPUT: Formula = Formula::new("4·n·L·ple", "The projected word embeddings in fp32.", MADE);
static STATISTICS: Formula =
    Formula::new("8·n·L", "The mean square of each token and layer, and its reciprocal root, fp32.", MADE);
static NORMED: Formula =
    Formula::new("4·n·L·ple", "The normalised projection in fp32, for the weight's gradient.", MADE);
static WEIGHT: Formula = Formula::new("4·ple", "The norm's weight in fp32.", MADE);
static INPUTS: Formula =
    Formula::new("n·L·ple·B", "The embeddings of all layers, which each reads a part of.", MADE);
static BORROWED_KEYS: Formula = Formula::new(
    "n·k·(d + rotf)·B",
    "Keys that later layers borrow, held between layers that are computed again.",
    SHARED,
);
static BORROWED_VALUES: Formula = Formula::new(
    "n·k·(d + rotf)·Bc",
    "Values that later layers borrow, held between layers that are computed again.",
    SHARED,
);
static GATE: Formula = Formula::new("n·ple·Bc", "The activation's input.", ADDED);
static ACTIVATED: Formula =
    Formula::new("n·ple·Bc", "The activated gate, for the gradient of the layer's own embedding.", ADDED);
static GRADIENTS: Formula = Formula::new(
    "2·n·L·ple·B",
    "Gradients of all layers' embeddings, of one layer and of all so far.",
    SELECT,
);
static TABLE: Formula = Formula::new(
    "vple·L·ple·B",
    "The gradient of the table of all layers' embeddings, every row of it.",
    "torch.nn.functional.embedding",
);

static GATHERED: Formula = Formula::new(
    "vple·L·ple·B",
    "The table of all layers' embeddings, gathered for the look-up and again for its backward.",
    "deepspeed/runtime/zero/partitioned_param_coordinator.py:fetch_sub_module",
);
/// By the bytes of an element, 2 or 4.
static REDUCED: [Formula; 2] = [
    Formula::new("2·vple·L·ple", "The table's gradient laid out for its reduction, in 16 bits.", SCATTERED),
    Formula::new("4·vple·L·ple", "The table's gradient laid out for its reduction, in fp32.", SCATTERED),
];

/// Whether the embeddings of all layers require a gradient.
fn requires_gradient(x: &Symbols<'_>) -> bool {
    let tuning = &x.recipe().tuning;
    x.trains || tuning.embedding || tuning.reaches_input() || is_adapted(x, LinearModule::LayerModel)
}

/// The projection of the word embeddings for all layers, its norm, and the sum with what the tokens look up.
pub(super) fn made(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let tuning = &x.recipe().tuning;
    let wide = x.model().num_layers * x.layer_input;
    let words = tuning.embedding || tuning.reaches_input();
    LAYER_MODEL.run(tape, Input { shared: None, needed: words, cast: false }, [x.h, wide]);
    // In fp32 the first layer's norm saves the same tensor, and a layer that is computed again waits with it as its input.
    if x.compute_width == FLOAT || x.recomputes_layers() && x.compute_width == x.width {
        tape.saved.retain(|(_, saved)| saved.name != LAYER_MODEL.input_name());
    }
    let needed = requires_gradient(x);
    let shape = [x.n, x.model().num_layers, x.layer_input];
    tape.keep(needed, "per-layer norm input", &shape, FLOAT, &INPUT);
    tape.keep(needed, "per-layer norm statistics", &[2, x.n, shape[1]], FLOAT, &STATISTICS);
    tape.keep(x.trains, "per-layer normalised input", &shape, FLOAT, &NORMED);
    tape.keep(needed && x.width < FLOAT, "per-layer norm weight", &[x.layer_input], FLOAT, &WEIGHT);
    tape.keep(true, "embeddings of all layers", &shape, x.width, &INPUTS);
    let full = x.model().mixers.full.map_or(0, |full| full.width);
    // Cosines and sines in the weights' type give keys that type under autocast; values have a product's.
    let borrowed = [x.n, x.k, x.d + full];
    tape.keep(lends(x), "borrowed keys", &borrowed, x.width, &BORROWED_KEYS);
    tape.keep(lends(x), "borrowed values", &borrowed, x.compute_width, &BORROWED_VALUES);
}

/// Whether layers that are computed again borrow keys and values, which their arguments then hold.
fn lends(x: &Symbols<'_>) -> bool {
    x.recomputes_layers() && x.model().mixers.pattern.iter().any(|mixer| mixer.borrows())
}

/// One layer's part.
pub(super) fn added(tape: &mut Tape<'_, '_>) {
    use LinearModule::{Down, Gate, Up};
    let x = tape.x;
    let mlp = [Gate, Up, Down].into_iter().any(|module| is_adapted(x, module));
    let needed = Flow::new(x).residual || x.trains || mlp;
    let narrow = [x.n, x.layer_input];
    let gate = LAYER_GATE.run(tape, Input { shared: None, needed, cast: false }, [x.h, x.layer_input]);
    let inputs = requires_gradient(x);
    tape.keep(gate, "layer's gate", &narrow, x.projected_width, &GATE);
    tape.keep(inputs, "layer's activated gate", &narrow, x.projected_width, &ACTIVATED);
    let product = Input { shared: None, needed: gate || inputs, cast: false };
    let out = LAYER_OUT.run(tape, product, [x.layer_input, x.h]);
    norm::post(tape, out);
}

/// What the backward pass of either holds.
pub(super) fn backward(operator: Operator, x: &Symbols<'_>, residual: Saved) -> Vec<Transient> {
    let mut tensors = vec![residual];
    let wide = [x.n, x.model().num_layers, x.layer_input];
    let gradients = Saved::several(
        "gradients of all layers' embeddings",
        &[2, wide[0], wide[1], wide[2]],
        x.width,
        &GRADIENTS,
    );
    tensors.extend(requires_gradient(x).then_some(gradients));
    if operator != Operator::LayerInputs {
        return vec![Transient::new(BACKWARD, Bytes::ZERO, tensors)];
    }
    // No list of layers that are units of FSDP has it, so that it is in the root's, whose weights are counted for all of backward;
    // DeepSpeed gathers it for its module alone. Either lays its gradient out once more.
    let rows = x.model().arrangement.layer_inputs.map_or(0, |inputs| inputs.vocabulary);
    let shape = [rows, wide[1] * wide[2]];
    let recipe = x.recipe();
    let sharded = recipe.dp_sharding == DpSharding::Parameters && x.plan.layout().dense_shards() > 1;
    let fetched = sharded && !recipe.shards_by_fsdp();
    let gathered = Saved::new("gathered table of all layers", &shape, x.width, &GATHERED);
    if x.trains {
        let reduced = recipe.reduce_dtype().width();
        let formula = &REDUCED[usize::from(reduced == FLOAT)];
        let laid_out = Saved::new("the same as it is reduced", &shape, reduced.max(2), formula);
        tensors.push(Saved::new("gradient of all layers' table", &shape, x.width, &TABLE));
        tensors.extend(sharded.then_some(laid_out));
        tensors.extend(fetched.then_some(gathered));
    }
    let looked_up = fetched.then(|| Transient::forward("look-up of all layers' embeddings", vec![gathered]));
    looked_up.into_iter().chain([Transient::new(BACKWARD, Bytes::ZERO, tensors)]).collect()
}
