//! Optimizer, recomputation and offloading.

use super::offload;
use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::{
    Contradiction, DpSharding, Field, Fp8Recipe, NumberFormat, OptimizerKind, Plan, Recompute, Software,
};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    on_host(plan, refusals);
    between(plan, refusals);
    within_backward(plan, refusals);
    // What follows is asserted by Megatron's own argument checks (`arguments.py:validate_args`).
    if !matches!(
        plan.recipe().software,
        Software::MegatronLegacy | Software::MegatronCoreLocal | Software::MegatronCoreTe
    ) {
        return;
    }
    optimizer(plan, refusals);
    overlap(plan, refusals);
    recomputation(plan, refusals);
    offload::check(plan, refusals);
}

/// `torchtitan/components/optimizer.py:build_optimizers` raises for both.
fn within_backward(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let titan = recipe.software == Software::Torchtitan && recipe.transformers.steps_in_backward;
    let layout = plan.layout();
    let rule = &Rule {
        code: Code::StepInBackward,
        fields: &[Field::StepInBackward, Field::PipelineModelParallelSize, Field::ExpertModelParallelSize],
        sentence: "torchtitan's optimizer steps within backward with neither a pipeline nor expert parallelism",
        hint: "leave out optimizer.early_step_in_backward",
    };
    refusals.unless(!titan || (layout.pipeline == 1 && layout.expert == 1), rule, &[]);
}

fn optimizer(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let optimizer = recipe.optimizer;
    let sharded = recipe.dp_sharding != DpSharding::Replicated;
    let rule = &Rule {
        code: Code::PrecisionAware,
        fields: &[Field::UsePrecisionAwareOptimizer, Field::UseDistributedOptimizer, Field::Optimizer],
        sentence: "the precision-aware optimizer is Adam with the distributed optimizer alone",
        hint: "add --use-distributed-optimizer",
    };
    // `optimizer_config.py:__post_init__`. Only Transformer Engine's FusedAdam keeps states in formats other than
    // fp32.
    let takes = optimizer.kind == OptimizerKind::Adam && sharded;
    refusals.unless(!optimizer.precision_aware || takes, rule, &[]);
    let narrow = [
        (Field::MainParamsDtype, optimizer.main_params),
        (Field::ExpAvgDtype, optimizer.exp_avg),
        (Field::ExpAvgSqDtype, optimizer.exp_avg_sq),
    ];
    for (field, format) in narrow {
        if format != NumberFormat::Fp32 && !optimizer.precision_aware {
            let message = format!("{} {} needs the precision-aware optimizer", field.name(), format.name());
            let fields = [field, Field::UsePrecisionAwareOptimizer];
            refusals.push(Contradiction::new(Code::PrecisionAware, &fields, message).hint(PRECISION_AWARE));
        }
    }
    let rule = &Rule {
        code: Code::PrecisionAware,
        fields: &[Field::MainParamsDtype],
        // `arguments.py:_add_training_args`: its choices.
        sentence: "Megatron's main parameters are in fp32 or fp16",
        hint: "set --main-params-dtype to fp32 or fp16",
    };
    refusals.unless(optimizer.main_params != NumberFormat::Bf16, rule, &[]);
    let offloaded = optimizer.cpu_offload_fraction > 0.0;
    let rule = &Rule {
        code: Code::OptimizerOffload,
        fields: &[Field::OptimizerCpuOffload, Field::UsePrecisionAwareOptimizer],
        sentence: "--optimizer-cpu-offload needs the precision-aware optimizer",
        hint: PRECISION_AWARE,
    };
    refusals.unless(!offloaded || optimizer.precision_aware, rule, &[]);
    // `arguments.py:validate_args`, where Megatron's FSDP also qualifies.
    let gathered = recipe.fp8.as_ref().is_some_and(|fp8| fp8.param_gather);
    let rule = &Rule {
        code: Code::Fp8ParamGather,
        fields: &[Field::Fp8ParamGather, Field::UseDistributedOptimizer],
        sentence: "--fp8-param-gather needs the distributed optimizer",
        hint: "add --use-distributed-optimizer",
    };
    refusals.unless(!gathered || sharded, rule, &[]);
    // The same, from core 0.14 on.
    let delayed = recipe.fp8.as_ref().is_none_or(|fp8| fp8.recipe == Fp8Recipe::Delayed);
    let rule = &Rule {
        code: Code::OptimizerOffload,
        fields: &[Field::Fp8Recipe, Field::OptimizerCpuOffload, Field::Fp8ParamGather],
        sentence: "--optimizer-cpu-offload with --fp8-param-gather needs the delayed recipe",
        hint: "add --fp8-recipe delayed, or leave --fp8-param-gather out",
    };
    refusals.unless(!(offloaded && gathered) || delayed, rule, &[]);
}

const PRECISION_AWARE: &str = "add --use-precision-aware-optimizer";

fn overlap(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let sharded = recipe.dp_sharding != DpSharding::Replicated;
    let rule = |hint| Rule {
        code: Code::OverlapParamGather,
        fields: &[Field::OverlapParamGather, Field::OverlapGradReduce, Field::UseDistributedOptimizer],
        sentence: "--overlap-param-gather needs --overlap-grad-reduce and the distributed optimizer",
        hint,
    };
    let rule = &if sharded {
        rule("add --overlap-grad-reduce")
    } else {
        rule("add --use-distributed-optimizer and --overlap-grad-reduce")
    };
    // Only sharded weights are gathered.
    let takes = sharded && recipe.overlap.grad_reduce;
    refusals.unless(!recipe.overlap.param_gather || takes, rule, &[]);
    // The overlapped messages are the gathers and scatters of sequence parallelism.
    let lacks = !plan.layout().sequence_parallel && plan.layout().tensor > 1;
    let rule = &Rule {
        code: Code::TpCommOverlap,
        fields: &[Field::TpCommOverlap, Field::SequenceParallel],
        sentence: "--tp-comm-overlap needs sequence parallelism",
        hint: "add --sequence-parallel",
    };
    refusals.unless(!recipe.overlap.tensor || !lacks, rule, &[]);
}

fn recomputation(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let distribute = matches!(
        plan.recipe().recompute,
        Recompute::Uniform { distribute: true, .. } | Recompute::Block { distribute: true, .. }
    );
    let rule = |sentence| Rule {
        code: Code::DistributeSaved,
        fields: &[Field::DistributeSavedActivations, Field::TensorModelParallelSize, Field::SequenceParallel],
        sentence,
        hint: "leave --distribute-saved-activations out",
    };
    // `transformer_config.py:__post_init__`: under sequence parallelism saved activations are already sharded.
    let rule = &if layout.tensor == 1 {
        rule("--distribute-saved-activations needs TP greater than 1")
    } else {
        rule("--distribute-saved-activations and sequence parallelism exclude each other")
    };
    let refused = distribute && (layout.tensor == 1 || layout.sequence_parallel);
    refusals.unless(!refused, rule, &[]);
}

fn between(plan: &Plan, refusals: &mut Refusals) {
    let rule = &Rule {
        code: Code::Recompute,
        fields: &[Field::RecomputeMethod],
        sentence: "this software does not recompute every n-th layer",
        hint: "recompute a block of layers, or all",
    };
    let recipe = plan.recipe();
    let knows = recipe.software.semantics().checkpoints_between;
    refusals.unless(knows || !matches!(recipe.recompute, Recompute::Every { .. }), rule, &[]);
}

fn on_host(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    // What other layers would offload and reload is not known, so no search or advice may propose it.
    let rule = &Rule {
        code: Code::OffloadRecompute,
        fields: &[Field::OffloadSavedTensors, Field::GradientCheckpointing, Field::RecomputeGranularity],
        sentence: "saved tensors on the host are modelled where every layer is recomputed whole, in one pipeline stage",
        hint: "recompute all layers, or leave the saved tensors on the device",
    };
    let all_recomputed = match recipe.recompute {
        Recompute::Uniform { .. } => true,
        Recompute::Block { num_layers, .. } => num_layers >= plan.model().num_layers,
        Recompute::None | Recompute::Selective(_) | Recompute::Every { .. } => false,
    };
    refusals.unless(!recipe.offload.saved_tensors || (all_recomputed && layout.pipeline <= 1), rule, &[]);
}
