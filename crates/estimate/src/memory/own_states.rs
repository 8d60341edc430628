//! States where the optimizer steps the model's own parameters, each in its own type, and frozen ones have none: the
//! Trainer with DDP or FSDP. DeepSpeed's engine holds fp32 copies of what trains.

use super::moments_of;
use super::state::{Kind, Of, Part};
use shardscope_plan::{
    BaseTraining, DataEngine, DpSharding, NumberFormat, OptimizerKind, Plan, Quantization, Recipe, Reference,
    StateFormat,
};

/// The kinds of states that `plan` has.
pub(super) fn kinds(plan: &Plan) -> Vec<Kind> {
    let recipe = plan.recipe();
    let alone = plan.layout().data == 1;
    let engine = recipe.transformers.engine;
    let deepspeed = is_deepspeed(recipe);
    let sharding = recipe.dp_sharding;
    let whole = sharding == DpSharding::Parameters;
    // DeepSpeed's engine casts the whole model; FSDP shards it as it was loaded.
    let held = if engine == DataEngine::DeepSpeed { recipe.module_dtype() } else { recipe.params_dtype };
    let width = held.width();
    let mut out = Vec::with_capacity(16);
    let mut add = |name, part, width, spread, of| out.push(Kind { name, part, width, spread, of });

    // What is held of the model.
    let tuning = &recipe.tuning;
    let frozen = if tuning.upcast { NumberFormat::Fp32.width() } else { width };
    add("frozen weights", Part::Parameters, frozen, whole, Of::Plain);
    if let Some(tower) = plan.model().vision {
        // DeepSpeed's engine casts it with the rest.
        let own = tower.dtype.filter(|_| engine != DataEngine::DeepSpeed).map_or(width, NumberFormat::width);
        add("frozen vision tower", Part::Parameters, own, whole, Of::Vision);
    }
    if tuning.quantization != Quantization::None {
        add("quantized weights", Part::Parameters, 1, whole, Of::Packed);
        add("constants of quantized weights", Part::Parameters, 1, whole, Of::Constants);
    }
    let sharded = matches!(engine, DataEngine::Fsdp1 | DataEngine::Fsdp2);
    let [trained, adapter] = widths(recipe);
    let groups = [
        ("weights", "gradients", Of::Trained, trained),
        ("adapters", "gradients of adapters", Of::Adapters, adapter),
    ];
    for (name, _, of, width) in groups {
        add(name, Part::Parameters, width, whole, of);
    }
    if sharding == DpSharding::Gradients && sharded {
        add("gathered weights", Part::Parameters, recipe.module_dtype().width(), false, Of::Trained);
    }
    if tuning.objective.reference() == Some(Reference::Loaded) {
        add("reference model", Part::Parameters, width, whole, Of::Model);
    }

    // Gradients, and copies of them.
    let spread = matches!(sharding, DpSharding::Gradients | DpSharding::Parameters);
    // An optimizer that steps within backward leaves one gradient at a time, which stands with the tensors of that moment.
    let gone = recipe.transformers.steps_in_backward;
    for (_, name, of, width) in groups.into_iter().filter(|_| !gone) {
        // Beside states on the host DeepSpeed adds gradients up there (`stage_1_and_2.py:async_inplace_copy_grad_to_fp32_buffer_from_gpu`,
        // `stage3.py:grad_partitions_flat_buffer`).
        let away = deepspeed && spread && recipe.offload.optimizer;
        // ZeRO-3 holds a flat buffer in the format in which gradients are accumulated, ZeRO-2 what backward made
        // (`stage3.py:grad_partitions_flat_buffer`, `stage_1_and_2.py:get_all_grad_tensors`).
        let wide = deepspeed && whole && recipe.params_dtype.width() < recipe.grads_dtype.width();
        let held = if wide { recipe.grads_dtype.width() } else { width };
        if !away {
            add(name, Part::Gradients, held, spread, of);
        }
        if engine == DataEngine::Ddp && sharding == DpSharding::Replicated && !alone {
            add("buckets of DDP", Part::Gradients, width, false, of);
        }
        if deepspeed && width < NumberFormat::Fp32.width() && !recipe.offload.optimizer {
            add("fp32 gradients of the step", Part::Step, NumberFormat::Fp32.width(), true, of);
            // Gradients are joined before they are cast (`stage_1_and_2.py:step`, `stage3.py:_prepare_fp32_grad_for_sub_group`); what
            // Adam's step makes comes behind that, in fp32.
            if !takes_roots(recipe) {
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
        if takes_roots(recipe) && !(deepspeed && recipe.offload.optimizer) {
            add("roots of second moments", Part::Step, width, spread, of);
        }
        // Transformer Engine's FusedAdam beside weights in bf16.
        let aware = !deepspeed && recipe.optimizer.precision_aware && width == NumberFormat::Bf16.width();
        if aware {
            add("main parameters", part, moments_of::REMAINDER, spread, of);
        }
        let moments = if aware { moments_of::moments(&recipe.optimizer) } else { [width; 2] };
        let whose = if of == Of::Trained && !tuning.is_full() { Of::TrainedPart } else { of };
        for (name, width, of) in moments_of::states(recipe.optimizer, moments, whose) {
            // Counted for weights and adapters together.
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

/// Whether the optimizer makes the roots of all second moments before it steps (`torch/optim/adam.py:_multi_tensor_adam`,
/// tests/record/adam_step.py).
fn takes_roots(recipe: &Recipe) -> bool {
    let optimizer = &recipe.optimizer;
    recipe.transformers.foreach_step
        && optimizer.kind == OptimizerKind::Adam
        && optimizer.states == StateFormat::Plain
        && !optimizer.precision_aware
}

fn is_deepspeed(recipe: &Recipe) -> bool {
    recipe.transformers.engine == DataEngine::DeepSpeed && recipe.dp_sharding != DpSharding::Replicated
}

/// Bytes that norm, clipping and update move for an element of what trains, where the optimizer steps the model's own parameters
/// in their type: the gradient is read, read and written, and read; parameter and moments are read and written. Nothing is cast,
/// and no buffer is zeroed (`torch/optim/adamw.py:_fused_adamw`, `torch/nn/utils/clip_grad.py`). Only of Adam: other optimizers'
/// temporaries are not told here. DeepSpeed's engine and what offloads have copies of their own.
pub(crate) fn stepped_bytes(recipe: &Recipe) -> Option<u64> {
    let own =
        recipe.software.semantics().steps_parameters && !is_deepspeed(recipe) && !recipe.offload.optimizer;
    if !own || recipe.optimizer.kind != OptimizerKind::Adam || recipe.optimizer.precision_aware {
        return None;
    }
    let [model, adapter] = widths(recipe);
    let width = if recipe.tuning.base == BaseTraining::None { adapter } else { model };
    let moment = match recipe.optimizer.states {
        StateFormat::Plain => width,
        StateFormat::Single => NumberFormat::Fp32.width(),
        // Half a byte is counted as one: it is unpacked.
        StateFormat::EightBit | StateFormat::Float8 | StateFormat::FourBit => 1,
    };
    Some(4 * width + 2 * width + 4 * moment)
}

/// Bytes of an element of what trains of the model, and of adapters.
fn widths(recipe: &Recipe) -> [u64; 2] {
    let width = recipe.params_dtype.width();
    let adapter = recipe.tuning.lora.map_or(width, |lora| lora.dtype.width());
    // accelerate holds what trains under FSDP in fp32 where mixed precision is on.
    let sharded = matches!(recipe.transformers.engine, DataEngine::Fsdp1 | DataEngine::Fsdp2);
    if is_deepspeed(recipe) {
        [recipe.module_dtype().width(); 2]
    } else if sharded && recipe.transformers.autocast.is_some() {
        [NumberFormat::Fp32.width(); 2]
    } else {
        [width, adapter]
    }
}

/// Bytes of an element of gradients that backward makes anew in each step: with one micro-batch a step or in the last one, with
/// which all are reduced, where no engine holds them in buffers of its own.
pub(super) fn widths_made_anew(plan: &Plan) -> Option<[u64; 2]> {
    let recipe = plan.recipe();
    let semantics = recipe.software.semantics();
    if !semantics.makes_gradients_anew || is_deepspeed(recipe) || recipe.transformers.steps_in_backward {
        return None;
    }
    if recipe.num_micro_batches > 1 && !defers(plan) {
        return None;
    }
    Some(if semantics.steps_parameters { widths(recipe) } else { [super::state::gradient_width(recipe); 2] })
}

/// Bytes of an element of the shards that FSDP2 adds up across groups of replicas and holds until backward is over
/// (`_fsdp_param_group.py:_all_reduce_state`, since PyTorch 2.6); 0 where they are the gradients themselves: in the same format,
/// with none of an earlier micro-batch to be added to.
pub(super) fn width_added_up(plan: &Plan) -> u64 {
    let (recipe, layout) = (plan.recipe(), plan.layout());
    let semantics = recipe.software.semantics();
    let second = if semantics.eager_modules {
        recipe.transformers.engine == DataEngine::Fsdp2
    } else {
        super::state::is_torch_fsdp(recipe)
    };
    let sharded = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    // Whole gradients, which reduction gives back, are more than the shards.
    if !(second && sharded) || layout.distributed_optimizer_instances <= 1 || defers(plan) {
        return 0;
    }
    // Pipelines reduce with the last micro-batch alone (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`).
    let accumulates = recipe.num_micro_batches > 1 && layout.pipeline == 1;
    let held =
        if semantics.steps_parameters { widths(recipe)[0] } else { super::state::gradient_width(recipe) };
    let reduced = recipe.reduce_dtype().width();
    if accumulates || reduced != held { reduced } else { 0 }
}

/// Whether whole gradients wait for a step's last micro-batch. One shard is the whole gradient.
pub(super) fn defers(plan: &Plan) -> bool {
    plan.recipe().defers_reduction() && plan.layout().dense_shards() > 1
}
