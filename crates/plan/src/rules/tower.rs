//! A vision tower of Megatron core's layers beside the decoder.

use super::refusals::{Division, Refusals};
use crate::contradiction::Rule;
use crate::{
    AttentionKernel, DpSharding, Field, Plan, Recompute, TowerGradients, TowerModules, VisionKept,
    VisionTower,
};
use shardscope_source::Code;

/// It is cut over the decoder's tensor ranks; what its deep layers give is added in the decoder layers beside it
/// (`modelling_qwen3_vl/model.py`: "the deepstack_visual_embeds should on the first pp-stage").
pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let tower = plan.model().vision.filter(|tower| tower.modules == TowerModules::Core);
    let Some((tower, kept)) = tower.and_then(|tower| Some((tower, tower.kept?))) else { return };
    for (code, what, number) in [
        (Code::HeadsOverTp, "{} heads of the vision tower", kept.heads),
        (Code::FfnOverTp, "the vision tower's FFN size of {}", kept.ffn),
    ] {
        refusals.divides(&Division {
            code,
            what,
            number,
            noun: "",
            by: "TP",
            divisor: plan.layout().tensor,
            fields: &[Field::TensorModelParallelSize, Field::VisionKept],
        });
    }
    stages(plan, &kept, refusals);
    known(plan, &tower, refusals);
}

fn stages(plan: &Plan, kept: &VisionKept, refusals: &mut Refusals) {
    let chunks = plan.layout().stages.stages.iter().flat_map(|stage| &stage.chunks);
    let mut first = chunks.filter(|chunk| chunk.embedding).map(|chunk| chunk.layers.end - chunk.layers.start);
    let held = first.next().unwrap_or(0);
    let rule = &Rule {
        code: Code::StageMap,
        fields: &[Field::PipelineModelParallelSize, Field::VisionKept],
        sentence: "{} layers stand beside the vision tower, whose {} deep layers reach one each",
        hint: "fewer stages or chunks put more of them there",
    };
    refusals.unless(held >= kept.deep_mergers, rule, &[held, kept.deep_mergers]);
}

/// What is known of it: all patches on every rank, weights whole but for tensor ranks, and layers that are kept, or recomputed one by one.
fn known(plan: &Plan, tower: &VisionTower, refusals: &mut Refusals) {
    let (recipe, layout) = (plan.recipe(), plan.layout());
    let trains = tower.gradients != TowerGradients::None;
    let recomputed = matches!(recipe.recompute, Recompute::None | Recompute::Uniform { num_layers: 1, .. });
    let offloads = recipe.offload.activation_layers > 0 || !recipe.offload.modules.is_empty();
    let unsharded = matches!(recipe.dp_sharding, DpSharding::Replicated | DpSharding::OptimizerStates);
    for (holds, fields, sentence) in [
        (
            recomputed || !trains,
            &[Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers][..],
            "not modelled: a vision tower of Megatron core's layers of which some, groups or modules are recomputed",
        ),
        (
            layout.context == 1,
            &[Field::ContextParallelSize],
            "not modelled: a vision tower of Megatron core's layers with context parallelism",
        ),
        (
            unsharded,
            &[Field::DataParallelShardingStrategy],
            "not modelled: a vision tower of Megatron core's layers whose gradients or weights are sharded",
        ),
        (
            recipe.fp8.is_none() || !tower.follows_formats,
            &[Field::Fp8],
            "not modelled: a vision tower of Megatron core's layers in the decoder's 8 or 4 bits",
        ),
        (
            !offloads && (recipe.attention_kernel != AttentionKernel::Unfused || !trains),
            &[Field::AttentionBackend, Field::CpuOffloadingNumLayers, Field::OffloadModules],
            "not modelled: a vision tower of Megatron core's layers with unfused attention or activations on the host",
        ),
    ] {
        refusals.unless(holds, &Rule { code: Code::NotModelled, fields, sentence, hint: "" }, &[]);
    }
}
