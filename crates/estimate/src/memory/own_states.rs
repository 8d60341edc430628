//! States if the optimizer steps the model's own parameters, each in its own type, and frozen ones have none: the
//! Trainer with DDP or FSDP. DeepSpeed's engine holds fp32 copies of trainable parameters.

use super::moments_of;
use super::state::{Kind, Of, Part};
use super::term::Term;
use shardscope_explain::Formula;
use shardscope_operators::Symbols;
use shardscope_plan::{
    BaseTraining, DataEngine, DpSharding, Embeddings, NumberFormat, OptimizerKind, Plan, Quantization,
    Recipe, Reference, StateFormat,
};
use shardscope_units::{Bytes, Count, Quantity};

/// Weights that FSDP gathered and does not free before backward; there are none where they have a single shard.
pub(super) const GATHERED: &str = "gathered weights";

static OWN_ROOT: Formula = Formula::new(
    "w·V·h/D",
    "Square root of the largest parameter's second moment: each parameter is stepped alone as soon as its gradient is there.",
    "torch/optim/adam.py:_multi_tensor_adam",
)
.letters(&[("D", "ranks the parameter is sharded over"), ("w", "bytes of the temporaries per element")]);

/// The kinds of states that `plan` has.
pub(super) fn kinds(plan: &Plan) -> Vec<Kind> {
    let recipe = plan.recipe();
    let alone = plan.layout().data == 1;
    let engine = recipe.transformers.engine;
    let deepspeed = is_deepspeed(recipe);
    let sharding = recipe.dp_sharding;
    let sharded = matches!(engine, DataEngine::Fsdp1 | DataEngine::Fsdp2);
    // FSDP's stage 2 holds shards too, beside what it gathered (`reshard_after_forward=False`, `SHARD_GRAD_OP`).
    let gathers = sharding == DpSharding::Gradients && sharded;
    let shards_weights = sharding == DpSharding::Parameters || gathers;
    // DeepSpeed's engine casts the entire model; FSDP shards it as loaded.
    let held = if engine == DataEngine::DeepSpeed { recipe.module_dtype() } else { recipe.params_dtype };
    let width = held.width();
    let mut out = Vec::with_capacity(16);
    let mut add = |name, part, width, spread, of| out.push(Kind { name, part, width, spread, of });

    // What is held of the model.
    let tuning = &recipe.tuning;
    let frozen = if tuning.upcast { NumberFormat::Fp32.width() } else { width };
    if tuning.narrow_ends {
        add("frozen norms", Part::Parameters, frozen, shards_weights, Of::PlainPart { ends: false });
        add(
            "frozen embedding and output layer",
            Part::Parameters,
            width,
            shards_weights,
            Of::PlainPart { ends: true },
        );
    } else {
        add("frozen weights", Part::Parameters, frozen, shards_weights, Of::Plain);
    }
    if let Some(tower) = plan.model().vision {
        // DeepSpeed's engine casts it along with the rest.
        let own = tower.dtype.filter(|_| engine != DataEngine::DeepSpeed).map_or(width, NumberFormat::width);
        add("frozen vision tower", Part::Parameters, own, shards_weights, Of::Vision);
    }
    if tuning.quantization != Quantization::None {
        add("quantized weights", Part::Parameters, 1, shards_weights, Of::Packed);
        add("constants of quantized weights", Part::Parameters, 1, shards_weights, Of::Constants);
    }
    let [trained, adapter] = widths(recipe);
    let groups = [
        ("weights", "gradients", Of::Trained, trained),
        ("adapters", "gradients of adapters", Of::Adapters, adapter),
    ];
    for (name, _, of, width) in groups {
        add(name, Part::Parameters, width, shards_weights, of);
    }
    if gathers {
        let module = recipe.module_dtype().width();
        add(GATHERED, Part::Parameters, module, false, Of::Trained);
        add(GATHERED, Part::Parameters, frozen.min(module), false, Of::Plain);
        add(GATHERED, Part::Parameters, adapter.min(module), false, Of::Adapters);
        if tuning.quantization != Quantization::None {
            add(GATHERED, Part::Parameters, 1, false, Of::Packed);
            add(GATHERED, Part::Parameters, 1, false, Of::Constants);
        }
        if let Some(tower) = plan.model().vision {
            let own = tower.dtype.map_or(width, NumberFormat::width);
            add(GATHERED, Part::Parameters, own.min(module), false, Of::Vision);
        }
    }
    if tuning.objective.reference() == Some(Reference::Loaded) {
        add("reference model", Part::Parameters, width, shards_weights, Of::Model);
        // It has no backward that would free what its forward gathered (TRL `trl/models/utils.py:prepare_fsdp`).
        if gathers {
            add(GATHERED, Part::Parameters, width.min(recipe.module_dtype().width()), false, Of::Model);
        }
    }

    // Gradients and copies of them.
    let spread = matches!(sharding, DpSharding::Gradients | DpSharding::Parameters);
    // An optimizer that steps within backward leaves one gradient at a time, counted with the tensors of that moment.
    let gone = recipe.transformers.steps_in_backward;
    // Except a tied weight's gradient, which the output layer creates and the embedding completes.
    if gone && plan.model().embeddings == Embeddings::Tied && tuning.embedding {
        add("a tied weight's gradient", Part::Gradients, trained, spread, Of::Embedding);
    }
    for (_, name, of, width) in groups.into_iter().filter(|_| !gone) {
        // With optimizer states on the host, DeepSpeed accumulates gradients there
        // (`stage_1_and_2.py:async_inplace_copy_grad_to_fp32_buffer_from_gpu`,
        // `stage3.py:grad_partitions_flat_buffer`).
        let away = deepspeed && spread && recipe.offload.optimizer;
        // ZeRO-3 holds a flat buffer in the accumulation format of gradients, ZeRO-2 what backward created
        // (`stage3.py:grad_partitions_flat_buffer`, `stage_1_and_2.py:get_all_grad_tensors`).
        let wide = deepspeed && shards_weights && recipe.params_dtype.width() < recipe.grads_dtype.width();
        let held = if wide { recipe.grads_dtype.width() } else { width };
        if !away {
            add(name, Part::Gradients, held, spread, of);
        }
        if engine == DataEngine::Ddp && sharding == DpSharding::Replicated && !alone {
            add("buckets of DDP", Part::Gradients, width, false, of);
        }
        if deepspeed && width < NumberFormat::Fp32.width() && !recipe.offload.optimizer {
            add("fp32 gradients of the step", Part::Step, NumberFormat::Fp32.width(), true, of);
            // Gradients are concatenated before they are cast (`stage_1_and_2.py:step`,
            // `stage3.py:_prepare_fp32_grad_for_sub_group`); the fp32 temporaries of Adam's step come after that.
            if roots(recipe) == 0 {
                add("joined gradients of the step", Part::Step, width, true, of);
            }
        }
    }

    // What the optimizer holds.
    let spread = sharding != DpSharding::Replicated;
    let part = if recipe.offload.states_for_step { Part::Step } else { Part::Optimizer };
    for (first, (_, _, of, width)) in [true, false].into_iter().zip(groups) {
        let width = if deepspeed { NumberFormat::Fp32.width() } else { width };
        if deepspeed {
            add("fp32 copies of what trains", Part::Optimizer, width, true, of);
        }
        if roots(recipe) > 0 && !(deepspeed && recipe.offload.optimizer) {
            add("roots of second moments", Part::Step, roots(recipe) * width, spread, of);
        }
        // Transformer Engine's FusedAdam with bf16 weights.
        let aware = !deepspeed && recipe.optimizer.precision_aware && width == NumberFormat::Bf16.width();
        if aware {
            add("main parameters", part, moments_of::REMAINDER, spread, of);
        }
        let moments = if aware { moments_of::moments(&recipe.optimizer) } else { [width; 2] };
        if first && recipe.optimizer.low_rank.is_some() {
            add("projections of gradients", part, width, spread, Of::Projections);
        }
        let whose = if of == Of::Trained && !tuning.is_full() { Of::TrainedPart } else { of };
        let flat = recipe.optimizer.kind == OptimizerKind::Adafactor && is_flat(recipe);
        if flat && deepspeed && !recipe.offload.optimizer {
            // A square and its sum with a constant, both fp32 (`transformers/optimization.py:Adafactor.step`).
            add("squares of gradients", Part::Step, 2 * NumberFormat::Fp32.width(), true, of);
        }
        let states = if flat {
            vec![("sum of squares", NumberFormat::Fp32.width(), of)]
        } else {
            moments_of::states(recipe.optimizer, moments, whose)
        };
        for (name, width, of) in states {
            // Counted once for weights and adapters together.
            let together = matches!(
                of,
                Of::Sides | Of::Rows | Of::Squares | Of::Blocks(_) | Of::BlocksBeside(_) | Of::Embedding
            );
            if first || !together {
                add(name, part, width, spread, of);
            }
        }
    }
    out
}

/// How many temporaries per parameter the optimizer allocates, for all parameters at once, before it steps: the roots
/// of second moments, and for Adagrad also its updates (`torch/optim/adam.py:_multi_tensor_adam`, `rmsprop.py`,
/// `adagrad.py`, `schedulefree/adamw_schedulefree.py`; tests/record/adam_step.py, trainer_optimizers.py).
pub(super) fn roots(recipe: &Recipe) -> u64 {
    if recipe.transformers.steps_in_backward { 0 } else { temporaries(recipe) }
}

/// The same for the parameters that one call of the optimizer steps: a single one if it is called within backward.
fn temporaries(recipe: &Recipe) -> u64 {
    let optimizer = &recipe.optimizer;
    let plain = optimizer.states == StateFormat::Plain && !optimizer.precision_aware;
    match optimizer.kind {
        _ if !(recipe.transformers.foreach_step && plain) => 0,
        OptimizerKind::Adam | OptimizerKind::SumOfSquares => 1,
        OptimizerKind::Adagrad => 2,
        _ => 0,
    }
}

/// What a foreach step within backward allocates, of one parameter; steps that project gradients count their own.
pub(super) fn own_root(x: &Symbols<'_>) -> Option<Term> {
    let recipe = x.recipe();
    let within = recipe.transformers.steps_in_backward && recipe.optimizer.low_rank.is_none();
    let width = if recipe.software.semantics().steps_parameters {
        recipe.params_dtype.width()
    } else {
        recipe.optimizer.exp_avg_sq.width()
    };
    let width = temporaries(recipe) * width;
    (within && x.trains && width > 0).then(|| {
        let replicated = recipe.dp_sharding == DpSharding::Replicated;
        let shards = if replicated { 1 } else { x.plan.layout().dense_shards().max(1) };
        let bytes = Bytes::new((Count::of_shape(&[x.v, x.h]).bytes(width).get()).div_ceil(shards));
        let given = [("D", Count::new(shards).number()), ("w", Count::new(width).number())];
        Term::new("square root of one second moment", bytes, &OWN_ROOT).given(&given).passing()
    })
}

/// Whether Adafactor sees vectors instead of the model's matrices, and so stores a square per element: DeepSpeed's
/// partitions (`stage_1_and_2.py`, `stage3.py`) and FSDP1's shards (`_flat_param.py:_use_sharded_views`) are flat.
fn is_flat(recipe: &Recipe) -> bool {
    is_deepspeed(recipe) || recipe.transformers.engine == DataEngine::Fsdp1
}

fn is_deepspeed(recipe: &Recipe) -> bool {
    recipe.transformers.engine == DataEngine::DeepSpeed && recipe.dp_sharding != DpSharding::Replicated
}

/// Elements that gradient norm, clipping and a step of AnyPrecisionAdamW read and write per parameter: the norm reads
/// one and clipping reads and writes it (3). Then come weight decay (2), decay and update of each moment (5 each),
/// the second one's root (2), quotient (2) and sum (2), the compensation (4), a copy of the weight (2), the weight
/// itself (3), its difference (3) and the remainder (3).
const COMPENSATED: u64 = 3 + 33;

/// Bytes that norm, clipping and update move per trainable element, if the optimizer steps the model's own parameters
/// in their own type: the gradient is read for the norm, read and written for clipping, and read for the update;
/// parameter and moments are read and written. Nothing is cast, and no buffer is zeroed
/// (`torch/optim/adamw.py:_fused_adamw`, `torch/nn/utils/clip_grad.py`). Only for Adam: temporaries of other
/// optimizers are not modelled here. DeepSpeed's engine and offloading have their own copies.
pub(crate) fn stepped_bytes(recipe: &Recipe) -> Option<u64> {
    let own =
        recipe.software.semantics().steps_parameters && !is_deepspeed(recipe) && !recipe.offload.optimizer;
    let optimizer = &recipe.optimizer;
    if own && optimizer.kind == OptimizerKind::AdamKahan {
        return Some(COMPENSATED * recipe.params_dtype.width());
    }
    let narrow = recipe.steps_narrow_shards() && !recipe.offload.optimizer;
    if !(own || narrow)
        || optimizer.kind != OptimizerKind::Adam
        || optimizer.precision_aware
        || optimizer.low_rank.is_some()
    {
        return None;
    }
    if narrow {
        let width = optimizer.main_params.width();
        let moments = optimizer.exp_avg.width() + optimizer.exp_avg_sq.width();
        return Some((gradient_passes(recipe) + 2) * width + 2 * moments);
    }
    let [model, adapter] = widths(recipe);
    let width = if recipe.tuning.base == BaseTraining::None { adapter } else { model };
    let moment = match recipe.optimizer.states {
        StateFormat::Plain => width,
        StateFormat::Single => NumberFormat::Fp32.width(),
        // Half a byte counts as one, because it is unpacked.
        StateFormat::EightBit | StateFormat::Float8 | StateFormat::FourBit | StateFormat::Flash { .. } => 1,
    };
    // Read and written; the groups' scales are left out, as the blocks' constants are.
    let completion = match recipe.optimizer.states {
        StateFormat::Flash { master } => 2 * master.saturating_sub(width),
        _ => 0,
    };
    Some(4 * width + 2 * width + 4 * moment + completion)
}

/// How often norm, clipping and update pass over a gradient; a step within backward comes before any norm of all
/// (torchtitan's `train.py:train_step`, whose norm finds no gradients then).
pub(crate) fn gradient_passes(recipe: &Recipe) -> u64 {
    if recipe.transformers.steps_in_backward { 1 } else { 4 }
}

/// Bytes per element of trainable model parameters, and of adapters.
fn widths(recipe: &Recipe) -> [u64; 2] {
    let width = recipe.params_dtype.width();
    let adapter = recipe.tuning.lora.map_or(width, |lora| lora.dtype.width());
    // Under FSDP, accelerate holds trainable parameters in fp32 if mixed precision is on.
    let sharded = matches!(recipe.transformers.engine, DataEngine::Fsdp1 | DataEngine::Fsdp2);
    if is_deepspeed(recipe) {
        [recipe.module_dtype().width(); 2]
    } else if sharded && recipe.transformers.autocast.is_some() {
        [NumberFormat::Fp32.width(); 2]
    } else {
        [width, adapter]
    }
}

/// Bytes per element of gradients that backward creates anew in each step, unless an engine holds them in its own
/// buffers: with one micro-batch per step, or in the last micro-batch, when all are reduced.
pub(super) fn widths_made_anew(plan: &Plan) -> Option<[u64; 2]> {
    let recipe = plan.recipe();
    let semantics = recipe.software.semantics();
    if !semantics.makes_gradients_anew || is_deepspeed(recipe) {
        return None;
    }
    if recipe.num_micro_batches > 1 && !defers(plan) {
        return None;
    }
    Some(if semantics.steps_parameters { widths(recipe) } else { [super::state::gradient_width(recipe); 2] })
}

/// Bytes per element of the shards that FSDP2 accumulates across replica groups and holds until backward ends
/// (`_fsdp_param_group.py:_all_reduce_state`, since PyTorch 2.6); 0 if they are the gradients themselves, i.e. in the
/// same format and without accumulation over micro-batches.
pub(super) fn width_added_up(plan: &Plan) -> u64 {
    let (recipe, layout) = (plan.recipe(), plan.layout());
    let semantics = recipe.software.semantics();
    let second = if semantics.eager_modules {
        recipe.transformers.engine == DataEngine::Fsdp2
    } else {
        super::state::is_torch_fsdp(recipe)
    };
    let sharded = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    // Unsharded gradients, which reduction frees, are larger than the shards.
    if !(second && sharded) || layout.distributed_optimizer_instances <= 1 || defers(plan) {
        return 0;
    }
    // Pipelines reduce only with the last micro-batch
    // (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`).
    let accumulates = recipe.num_micro_batches > 1 && layout.pipeline == 1;
    let held =
        if semantics.steps_parameters { widths(recipe)[0] } else { super::state::gradient_width(recipe) };
    let reduced = recipe.reduce_dtype().width();
    if accumulates || reduced != held { reduced } else { 0 }
}

/// Whether unsharded gradients wait for a step's last micro-batch. With a single shard there is no difference.
pub(super) fn defers(plan: &Plan) -> bool {
    plan.recipe().defers_reduction() && plan.layout().dense_shards() > 1
}
