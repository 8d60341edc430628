//! Optimizer, recomputation and offloading.

use super::Refusals;
use crate::plan::{Contradiction, DpSharding, Field, Number, OptimizerKind, Plan, Recompute, Software};

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    if !matches!(
        plan.recipe().software,
        Software::MegatronLegacy | Software::MegatronCoreLocal | Software::MegatronCoreTe
    ) {
        return;
    }
    optimizer(plan, refusals);
    overlap(plan, refusals);
    recomputation(plan, refusals);
    offloading(plan, refusals);
}

fn optimizer(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let optimizer = recipe.optimizer;
    let sharded = recipe.dp_sharding != DpSharding::Replicated;
    if optimizer.precision_aware && (optimizer.kind != OptimizerKind::Adam || !sharded) {
        let fields = [Field::UsePrecisionAwareOptimizer, Field::UseDistributedOptimizer, Field::Optimizer];
        let message = "the precision-aware optimizer is Adam with the distributed optimizer alone".to_owned();
        refusals.push(
            Contradiction::new("precision-aware", &fields, message).hint("add --use-distributed-optimizer"),
        );
    }
    let narrow = [
        (Field::MainParamsDtype, optimizer.main_params),
        (Field::ExpAvgDtype, optimizer.exp_avg),
        (Field::ExpAvgSqDtype, optimizer.exp_avg_sq),
    ];
    for (field, format) in narrow {
        if format != Number::Fp32 && !optimizer.precision_aware {
            let message = format!("{} {} needs the precision-aware optimizer", field.name(), format.name());
            let fields = [field, Field::UsePrecisionAwareOptimizer];
            refusals.push(
                Contradiction::new("precision-aware", &fields, message)
                    .hint("add --use-precision-aware-optimizer"),
            );
        }
    }
    if optimizer.cpu_offload_fraction > 0.0 && !optimizer.precision_aware {
        let fields = [Field::OptimizerCpuOffload, Field::UsePrecisionAwareOptimizer];
        let message = "--optimizer-cpu-offload needs the precision-aware optimizer".to_owned();
        refusals.push(
            Contradiction::new("optimizer-offload", &fields, message)
                .hint("add --use-precision-aware-optimizer"),
        );
    }
    let gathered = recipe.fp8.as_ref().is_some_and(|fp8| fp8.param_gather);
    if gathered && !sharded {
        let fields = [Field::Fp8ParamGather, Field::UseDistributedOptimizer];
        let message = "--fp8-param-gather needs the distributed optimizer".to_owned();
        refusals.push(
            Contradiction::new("fp8-param-gather", &fields, message).hint("add --use-distributed-optimizer"),
        );
    }
}

fn overlap(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let sharded = recipe.dp_sharding != DpSharding::Replicated;
    if recipe.overlap.param_gather && !(sharded && recipe.overlap.grad_reduce) {
        let fields = [Field::OverlapParamGather, Field::OverlapGradReduce, Field::UseDistributedOptimizer];
        let message =
            "--overlap-param-gather needs --overlap-grad-reduce and the distributed optimizer".to_owned();
        let hint = if sharded {
            "add --overlap-grad-reduce"
        } else {
            "add --use-distributed-optimizer and --overlap-grad-reduce"
        };
        refusals.push(Contradiction::new("overlap-param-gather", &fields, message).hint(hint));
    }
    if recipe.overlap.tensor && !plan.layout().sequence_parallel && plan.layout().tensor > 1 {
        let fields = [Field::TpCommOverlap, Field::SequenceParallel];
        let message = "--tp-comm-overlap needs sequence parallelism".to_owned();
        refusals
            .push(Contradiction::new("tp-comm-overlap", &fields, message).hint("add --sequence-parallel"));
    }
}

fn recomputation(plan: &Plan, refusals: &mut Refusals) {
    let layout = plan.layout();
    let distribute = matches!(
        plan.recipe().recompute,
        Recompute::Uniform { distribute: true, .. } | Recompute::Block { distribute: true, .. }
    );
    if distribute && (layout.tensor == 1 || layout.sequence_parallel) {
        let fields =
            [Field::DistributeSavedActivations, Field::TensorModelParallelSize, Field::SequenceParallel];
        let message = if layout.tensor == 1 {
            "--distribute-saved-activations needs TP greater than 1"
        } else {
            "--distribute-saved-activations and sequence parallelism exclude each other"
        };
        let hint = "leave --distribute-saved-activations out";
        refusals.push(Contradiction::new("distribute-saved", &fields, message.to_owned()).hint(hint));
    }
}

fn offloading(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    if recipe.offload.activation_layers == 0 {
        return;
    }
    let fields =
        [Field::CpuOffloadingNumLayers, Field::PipelineModelParallelSize, Field::RecomputeGranularity];
    if layout.pipeline > 1 {
        let message = format!("activations cannot be offloaded with PP {}", layout.pipeline);
        refusals.push(Contradiction::new("offload-pp", &fields, message));
    }
    if recipe.recompute != Recompute::None {
        let message = "activations cannot be both offloaded and recomputed".to_owned();
        refusals.push(Contradiction::new("offload-recompute", &fields, message));
    }
}
