//! Mixture of experts.

use super::{Division, Refusals};
use crate::plan::{Contradiction, Field, Plan};

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let Some(experts) = &model.experts else {
        refusals.unless(
            layout.expert == 1,
            "ep-without-experts",
            &[Field::ExpertModelParallelSize, Field::NumExperts],
            || format!("EP {} needs experts, and the model has none", layout.expert),
        );
        return;
    };
    refusals.divides(&Division {
        code: "experts-over-ep",
        what: &format!("{} experts", experts.num_experts),
        number: experts.num_experts,
        noun: "experts",
        by: "EP",
        divisor: layout.expert,
        fields: &[Field::ExpertModelParallelSize, Field::NumExperts],
    });
    refusals.divides(&Division {
        code: "moe-ffn-over-etp",
        what: &format!("moe_ffn_hidden_size {}", experts.ffn_hidden_size),
        number: experts.ffn_hidden_size,
        noun: "",
        by: "expert TP",
        divisor: layout.expert_tensor,
        fields: &[Field::ExpertTensorParallelSize, Field::MoeFfnHiddenSize, Field::TensorModelParallelSize],
    });
    if let Some(shared) = experts.shared_expert_intermediate_size {
        refusals.divides(&Division {
            code: "shared-ffn-over-tp",
            what: &format!("moe_shared_expert_intermediate_size {shared}"),
            number: shared,
            noun: "",
            by: "TP",
            divisor: layout.tensor,
            fields: &[Field::TensorModelParallelSize, Field::MoeSharedExpertIntermediateSize],
        });
    }
    let (topk, count) = (experts.router_topk, experts.num_experts);
    if topk > count || topk == 0 {
        let message = format!("a token cannot go to {topk} of {count} experts");
        let fields = [Field::MoeRouterTopk, Field::NumExperts];
        refusals.push(Contradiction::new("topk", &fields, message).nearest(Some(count)));
    }
    let needs = layout.tensor > 1 && layout.expert > 1;
    if needs && !layout.sequence_parallel {
        let fields =
            [Field::SequenceParallel, Field::TensorModelParallelSize, Field::ExpertModelParallelSize];
        let message = format!("TP {} with EP {} needs sequence parallelism", layout.tensor, layout.expert);
        refusals.push(
            Contradiction::new("moe-sequence-parallel", &fields, message).hint("add --sequence-parallel"),
        );
    }
    let length = experts.pattern.len() as u64;
    refusals.unless(
        length == model.num_layers,
        "moe-layer-freq",
        &[Field::MoeLayerFreq, Field::NumLayers],
        || format!("moe_layer_freq names {length} layers, and the model has {}", model.num_layers),
    );
}
