//! Bytes of weights, gradients and optimizer states per parameter, and over how many ranks they are sharded.

use super::moments_of;
use super::own_states::roots;
use super::state::{Kind, Of, ParameterCounts, Part, State, gradient_width, is_torch_fsdp};
use shardscope_plan::{DataEngine, DpSharding, Embeddings, Fp8, Fp8Recipe, NumberFormat, Plan, Recipe};
use shardscope_units::Count;

/// Adds the states of the parameters in `counts`, sharded over `shards` ranks if the plan shards them.
pub(super) fn states(
    plan: &Plan,
    kinds: &[Kind],
    counts: ParameterCounts,
    shards: u64,
    out: &mut Vec<State>,
) {
    let recipe = plan.recipe();
    let host = recipe.optimizer.cpu_offload_fraction.clamp(0.0, 1.0);
    // Experts may be on ranks of their own and have no shards while other weights have some.
    let copies = |kind: &&Kind| shards > 1 || kind.name != super::own_states::GATHERED;
    for kind in kinds.iter().filter(copies) {
        let count = match kind.of {
            Of::All if kind.part == Part::Parameters => counts.with_buffers(plan, shards),
            Of::Trains if kind.part == Part::Gradients => counts.in_buffers(plan, shards),
            Of::PlainPart { ends: true } => ends(plan).min(counts.plain()),
            Of::PlainPart { ends: false } => {
                Count::new(counts.plain().get().saturating_sub(ends(plan).get()))
            }
            of if kind.part == Part::Optimizer => of.count(&counts.as_stepped()),
            of => of.count(&counts),
        };
        let stays = match kind.part {
            Part::Parameters if recipe.offload.parameters => 0.0,
            Part::Optimizer if recipe.offload.optimizer || pages_states(recipe) => 0.0,
            // FSDP moves a shard's gradient to the host as soon as it is reduced (CPUOffload, CPUOffloadPolicy).
            Part::Gradients | Part::Step if recipe.offload.parameters && recipe.shards_by_fsdp() => 0.0,
            Part::Optimizer => 1.0 - host,
            Part::Parameters | Part::Gradients | Part::Step => 1.0,
        };
        let shards = if kind.spread { shards } else { 1 };
        let count = if kind.part == Part::Step { of_sub_group(recipe, count, shards) } else { count };
        if count > Count::ZERO && stays > 0.0 {
            let (name, part, width) = (kind.name, kind.part, kind.width);
            let is_copy = matches!(kind.of, Of::Copies | Of::CopyBlocks(_));
            let plain = matches!(kind.of, Of::Plain | Of::PlainPart { .. });
            let frozen = plain || matches!(kind.of, Of::Packed | Of::Constants | Of::Vision | Of::Model);
            out.push(State { name, part, count, width, shards, stays, frozen, is_copy });
        }
    }
}

/// Whether optimizer states are outside of PyTorch's memory: those of tensors of at least 100,000 elements, as nearly all of a whole
/// model's are (`bitsandbytes/optim/optimizer.py:get_state_buffer`). Adapters' matrices are mostly smaller and are counted.
pub(super) fn pages_states(recipe: &Recipe) -> bool {
    recipe.optimizer.paged && recipe.tuning.is_full()
}

/// Parameters of embedding and output layer, in a model that no tensor ranks share.
fn ends(plan: &Plan) -> Count {
    let model = plan.model();
    let tables = if model.embeddings == Embeddings::Tied { 1 } else { 2 };
    Count::new(tables * model.padded_vocab_size * model.hidden_size)
}

/// How many of `count` parameters a step handles at once: ZeRO-3 steps one sub-group after another, each of which
/// ends with the parameter that fills it (`stage3.py:_create_fp16_sub_groups`; `sub_group_size`, which few
/// configurations change).
fn of_sub_group(recipe: &Recipe, count: Count, shards: u64) -> Count {
    /// Elements on a rank.
    const SUB_GROUP: u64 = 1_000_000_000;
    let steps_in_groups = recipe.transformers.engine == DataEngine::DeepSpeed
        && recipe.dp_sharding == DpSharding::Parameters
        && recipe.software.semantics().steps_parameters;
    if steps_in_groups { count.min(Count::new(SUB_GROUP.saturating_mul(shards))) } else { count }
}

/// The kinds of states that `plan` has.
pub(super) fn kinds(plan: &Plan) -> Vec<Kind> {
    let recipe = plan.recipe();
    if recipe.software.semantics().steps_parameters {
        return super::own_states::kinds(plan);
    }
    let mut out = Vec::with_capacity(8);
    weights(recipe, &mut out);
    let spread = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    let width = gradient_width(recipe);
    let gradients = |name, width| Kind { name, part: Part::Gradients, width, spread, of: Of::Trains };
    let waits = &recipe.transformers.steps_in_backward;
    // FSDP calls the hook behind each unit's reduction (`_fsdp_collectives.py:foreach_reduce`). A tied weight is completed
    // by the embedding.
    match (waits, plan.model().embeddings) {
        (true, Embeddings::Tied) => {
            let (name, part, of) = ("a tied weight's gradient", Part::Gradients, Of::Embedding);
            out.push(Kind { name, part, width, spread, of });
        }
        (true, _) => {}
        (false, _) => out.push(gradients("gradients", width)),
    }
    // Of a pipeline's micro-batches (`torch/distributed/pipelining/stage.py:backward_maybe_with_nosync`).
    if is_torch_fsdp(recipe) && recipe.num_micro_batches > 1 && !plan.reduces_each_backward() {
        let part = Part::Gradients;
        out.push(Kind { name: "gradients not yet sharded", part, width, spread: false, of: Of::Trains });
    }
    if keeps_both_gradients(recipe) {
        out.push(gradients("16-bit gradients", recipe.params_dtype.width()));
    }
    optimizer(plan, &mut out);
    out
}

/// Whether gradients stay in the format of backward in addition to the fp32 sums
/// (`deepspeed/runtime/bf16_optimizer.py:update_hp_grads`, called with `clear_lp_grads=False`).
pub(super) fn keeps_both_gradients(recipe: &Recipe) -> bool {
    recipe.software.semantics().deepspeed_engine
        && recipe.params_dtype == NumberFormat::Bf16
        && recipe.grads_dtype == NumberFormat::Fp32
}

fn weights(recipe: &Recipe, out: &mut Vec<Kind>) {
    let part = Part::Parameters;
    let spread = recipe.dp_sharding == DpSharding::Parameters;
    let mut add = |name, width, spread, of| out.push(Kind { name, part, width, spread, of });
    let width = recipe.params_dtype.width();
    // PyTorch's mixed precision keeps the shards in fp32, or as the model was made, and casts what it gathers: these
    // shards are the master weights, and there is no further copy (`MixedPrecisionPolicy.param_dtype`).
    if is_torch_fsdp(recipe) {
        let name = if recipe.steps_narrow_shards() { "weights" } else { "fp32 weights" };
        add(name, recipe.optimizer.main_params.width(), true, Of::All);
        if !spread {
            add("gathered weights", width, spread, Of::All);
        }
        return;
    }
    match &recipe.fp8 {
        // The weight itself is the first of the fp8 copies.
        Some(fp8) if fp8.param_gather => {
            add("weights not in fp8", width, spread, Of::Rest);
            add("fp8 weights", fp8_copies(fp8), spread, Of::Linear);
            if let Some(block) = scaled_block(fp8) {
                add("scales of weight blocks", SCALES, spread, Of::LinearBlocks(block));
            }
        }
        Some(fp8) => {
            add("weights", width, spread, Of::All);
            add("fp8 copies of weights", fp8_copies(fp8), false, Of::Copies);
            if let Some(block) = scaled_block(fp8) {
                add("scales of weight blocks", SCALES, false, Of::CopyBlocks(block));
            }
        }
        None => add("weights", width, spread, Of::All),
    }
}

/// Bytes of a weight's fp8 copies: as is and transposed, or scaled along rows and along columns.
fn fp8_copies(fp8: &Fp8) -> u64 {
    if fp8.recipe == Fp8Recipe::Nvfp4 { 1 } else { 2 * NumberFormat::Fp8.width() }
}

/// Bytes of one scale along rows and one along columns per block: E8M0 with mxfp8, E4M3 with nvfp4.
const SCALES: u64 = 2;

/// Elements that share a one-byte scale
/// (`transformer_engine/common/recipe/__init__.py:MXFP8BlockScaling, NVFP4BlockScaling`,
/// `transformer_engine/pytorch/constants.py:MXFP8_BLOCK_SCALING_SIZE, NVFP4_BLOCK_SCALING_SIZE`). Other recipes have
/// one scale per tensor or per 128 x 128 elements; those are ignored.
fn scaled_block(fp8: &Fp8) -> Option<u64> {
    match fp8.recipe {
        Fp8Recipe::Mxfp8 => Some(32),
        Fp8Recipe::Nvfp4 => Some(16),
        Fp8Recipe::Delayed | Fp8Recipe::Tensorwise | Fp8Recipe::Blockwise | Fp8Recipe::Custom => None,
    }
}

fn optimizer(plan: &Plan, out: &mut Vec<Kind>) {
    let recipe = plan.recipe();
    let spread = recipe.dp_sharding != DpSharding::Replicated;
    let mut add = |name, part, width, of| out.push(Kind { name, part, width, spread, of });
    if let Some(width) = master_width(recipe) {
        add("main parameters", Part::Optimizer, width, Of::Trains);
    }
    if needs_gradient_copy(recipe) {
        add("fp32 gradients of the step", Part::Step, NumberFormat::Fp32.width(), Of::Trains);
    }
    let of_shards = recipe.software.semantics().fsdp_fp32_shards;
    if roots(recipe) > 0 && of_shards {
        let width = roots(recipe) * recipe.optimizer.exp_avg_sq.width();
        add("roots of second moments", Part::Step, width, Of::Trains);
    }
    // PyTorch's optimizers make them like the parameter (`torch/optim/adam.py:_init_group`).
    let [first, second] = if of_shards {
        [recipe.optimizer.exp_avg.width(), recipe.optimizer.exp_avg_sq.width()]
    } else {
        moments_of::moments(&recipe.optimizer)
    };
    // In a fully trained model, Muon distinguishes matrices from the rest.
    let of = if recipe.tuning.is_full() && plan.model().vision.is_none() { Of::All } else { Of::Trains };
    for (name, width, of) in moments_of::states(recipe.optimizer, [first, second], of) {
        add(name, Part::Optimizer, width, of);
    }
}

/// Bytes of the optimizer's own copy of a parameter; none if the weight itself is fp32.
fn master_width(recipe: &Recipe) -> Option<u64> {
    // fp32 weights are their own master copy, as are those that are stepped in 16 bits.
    if recipe.params_dtype == NumberFormat::Fp32 || is_torch_fsdp(recipe) || recipe.steps_narrow_shards() {
        return None;
    }
    let optimizer = &recipe.optimizer;
    // MindSpeed assembles the fp32 weight from both halves in the bf16 weights' own buffer, in blocks of 16M elements
    // (`mindspeed/core/memory/reuse_param/reuse_distrib_optimizer.py`).
    if optimizer.shares_weights && !optimizer.precision_aware && recipe.params_dtype == NumberFormat::Bf16 {
        return Some(moments_of::REMAINDER);
    }
    if !optimizer.precision_aware {
        return Some(NumberFormat::Fp32.width());
    }
    let splits = recipe.params_dtype == NumberFormat::Bf16
        && optimizer.main_params == NumberFormat::Fp32
        && recipe.fp8.as_ref().is_none_or(|fp8| fp8.recipe == Fp8Recipe::Delayed);
    Some(if splits { moments_of::REMAINDER } else { optimizer.main_params.width() })
}

/// Whether the step makes fp32 copies of 16-bit gradients. A program laid out by a compiler casts them as it
/// accumulates, and FSDP as it reduces.
fn needs_gradient_copy(recipe: &Recipe) -> bool {
    let semantics = recipe.software.semantics();
    let casts = is_torch_fsdp(recipe) && semantics.casts_reduced_gradients;
    let none = semantics.compiled_step || casts || recipe.steps_narrow_shards();
    !none && recipe.grads_dtype.width() < NumberFormat::Fp32.width() && !recipe.optimizer.precision_aware
}
