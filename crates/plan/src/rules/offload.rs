//! Activations offloaded to the host until backward (`transformer_config.py:__post_init__`).

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::{Field, OffloadModule, Plan, Recompute, RecomputeModule, Software};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    layers(plan, refusals);
    modules(plan, refusals);
}

/// Whole layers (`--cpu-offloading-num-layers`).
fn layers(plan: &Plan, refusals: &mut Refusals) {
    let (layout, recipe) = (plan.layout(), plan.recipe());
    if recipe.offload.activation_layers == 0 {
        return;
    }
    let rule = &Rule {
        code: Code::OffloadPp,
        fields: LAYERS,
        sentence: "activations cannot be offloaded with PP {}",
        hint: "",
    };
    // This and the next: `transformer_config.py:__post_init__`, "CPU offloading".
    refusals.unless(layout.pipeline <= 1, rule, &[layout.pipeline]);
    let rule = &Rule {
        code: Code::OffloadRecompute,
        fields: LAYERS,
        sentence: "activations cannot be both offloaded and recomputed",
        hint: "",
    };
    refusals.unless(recipe.recompute == Recompute::None, rule, &[]);
    let rule = &Rule {
        code: Code::OffloadModules,
        fields: &[Field::OffloadModules, Field::CpuOffloadingNumLayers],
        sentence: "activations cannot be offloaded both by module and by layer",
        hint: "leave one of the two out",
    };
    refusals.unless(recipe.offload.modules.is_empty(), rule, &[]);
}

/// Settings that prevent layers' activations from being offloaded.
const LAYERS: &[Field] =
    &[Field::CpuOffloadingNumLayers, Field::PipelineModelParallelSize, Field::RecomputeGranularity];

/// Modules of layers (`--offload-modules`).
fn modules(plan: &Plan, refusals: &mut Refusals) {
    let recipe = plan.recipe();
    let modules = recipe.offload.modules;
    if modules.is_empty() {
        return;
    }
    let rule = |fields, sentence, hint| Rule { code: Code::OffloadModules, fields, sentence, hint };
    let rule_of_software = &rule(
        &[Field::FineGrainedActivationOffloading, Field::TransformerImpl],
        "modules' activations are offloaded with Transformer Engine alone",
        "take --transformer-impl transformer_engine",
    );
    refusals.unless(recipe.software == Software::MegatronCoreTe, rule_of_software, &[]);
    let alone = modules.has(OffloadModule::AttentionProjection) && !modules.has(OffloadModule::CoreAttention);
    let rule_of_pair = &rule(
        &[Field::OffloadModules],
        "attn_proj is offloaded with core_attn alone, whose output it reads and whose backward needs it",
        "add core_attn to --offload-modules",
    );
    refusals.unless(!alone, rule_of_pair, &[]);
    let within = OffloadModule::BEGUN.into_iter().any(|module| module.is_in_experts() && modules.has(module));
    let rule_of_experts = &rule(
        &[Field::OffloadModules, Field::RecomputeModules],
        "expert_fc1 and moe_act are within the MoE layer, which is recomputed whole",
        "leave moe out of --recompute-modules, or the experts' modules out of --offload-modules",
    );
    refusals.unless(!within || !recipe.recompute.recomputes(RecomputeModule::Moe), rule_of_experts, &[]);
    // What Megatron would do in this case is not known, so no search or advice may propose it.
    let recomputed = matches!(recipe.recompute, Recompute::Uniform { .. } | Recompute::Block { .. });
    let rule_of_layers = &rule(
        &[Field::OffloadModules, Field::RecomputeGranularity],
        "offloaded modules are modelled where no layer is recomputed whole",
        "recompute selectively, or leave --fine-grained-activation-offloading out",
    );
    refusals.unless(!recomputed, rule_of_layers, &[]);
    let rule_of_format = &rule(
        &[Field::OffloadModules, Field::Fp8],
        "offloaded modules are modelled where tensors are saved in 16 bits",
        "leave --fp8-format or --fine-grained-activation-offloading out",
    );
    refusals.unless(recipe.fp8.is_none(), rule_of_format, &[]);
}
