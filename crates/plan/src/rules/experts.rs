//! Mixture of experts.

use super::refusals::{Division, Refusals};
use crate::contradiction::Rule;
use crate::{Field, Plan};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let Some(experts) = &model.experts else {
        let rule = &Rule {
            code: Code::EpWithoutExperts,
            fields: &[Field::ExpertModelParallelSize, Field::NumExperts],
            sentence: "EP {} needs experts, and the model has none",
            hint: "",
        };
        refusals.unless(layout.expert == 1, rule, &[layout.expert]);
        return;
    };
    refusals.divides(&Division {
        code: Code::ExpertsOverEp,
        what: "{} experts",
        number: experts.num_experts,
        noun: "experts",
        by: "EP",
        divisor: layout.expert,
        fields: &[Field::ExpertModelParallelSize, Field::NumExperts],
    });
    // Expert weights are sharded over ETP; shared experts are a dense MLP and sharded over TP.
    refusals.divides(&Division {
        code: Code::MoeFfnOverEtp,
        what: "moe_ffn_hidden_size {}",
        number: experts.ffn_hidden_size,
        noun: "",
        by: "expert TP",
        divisor: layout.expert_tensor,
        fields: &[Field::ExpertTensorParallelSize, Field::MoeFfnHiddenSize, Field::TensorModelParallelSize],
    });
    if let Some(shared) = experts.shared_expert_intermediate_size {
        refusals.divides(&Division {
            code: Code::SharedFfnOverTp,
            what: "moe_shared_expert_intermediate_size {}",
            number: shared,
            noun: "",
            by: "TP",
            divisor: layout.tensor,
            fields: &[Field::TensorModelParallelSize, Field::MoeSharedExpertIntermediateSize],
        });
    }
    // `torch.topk` would refuse more experts than there are; 0 would leave a layer without output.
    let (topk, count) = (experts.router_topk, experts.num_experts);
    if topk > count || topk == 0 {
        let rule = &Rule {
            code: Code::Topk,
            fields: &[Field::MoeRouterTopk, Field::NumExperts],
            sentence: "a token cannot go to {} of {} experts",
            hint: "",
        };
        refusals.refuse(rule, &[topk, count]).nearest = Some(count);
    }
    let (tensor, expert) = (layout.tensor, layout.expert);
    let rule = &Rule {
        code: Code::MoeSequenceParallel,
        fields: &[Field::SequenceParallel, Field::TensorModelParallelSize, Field::ExpertModelParallelSize],
        sentence: "TP {} with EP {} needs sequence parallelism",
        hint: "add --sequence-parallel",
    };
    // `model_parallel_config.py:__post_init__` for EP, a warning in the newest releases; `moe_layer.py` regardless of
    // EP.
    let always = plan.recipe().software.semantics().experts_need_sequence;
    let needs = tensor > 1 && (expert > 1 || always);
    refusals.unless(!needs || layout.sequence_parallel, rule, &[tensor, expert]);
    let length = experts.pattern.len() as u64;
    let rule = &Rule {
        code: Code::MoeLayerFreq,
        fields: &[Field::MoeLayerFreq, Field::NumLayers],
        sentence: "moe_layer_freq names {} layers, and the model has {}",
        hint: "",
    };
    refusals.unless(length == model.num_layers, rule, &[length, model.num_layers]);
}
