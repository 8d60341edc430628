//! How a model's own modules are arranged, from the settings.

use super::table::Table;
use shardscope_plan::{
    ActivationSteps, Arrangement, Dropout, Field, JointParts, NormPlaces, NormProduct, NormWeights,
    QueryTemperature, RotationTables, Router,
};

/// The arrangement of modules that readers know for the model's type.
pub(super) fn arrangement(table: &Table) -> Arrangement {
    let variants = table.words(Field::ModuleVariants);
    let differs = |name: &str| variants.contains(&name);
    let operations = table.words(Field::KernelVariants);
    let runs = |name: &str| operations.contains(&name);
    Arrangement {
        fused_qkv: table.on(Field::FusedQkv),
        whole_keys: table.on(Field::WholeKeys),
        fused_gate_up: table.on(Field::FusedGateUp),
        parallel_residual: table.on(Field::ParallelResidual),
        // Checks go from the special to the usual; a model type states at most one of each group.
        norm_places: match () {
            () if table.on(Field::NormsBehind) => NormPlaces::Behind,
            () if table.on(Field::PostNorms) => NormPlaces::Around,
            () => NormPlaces::InFront,
        },
        norm_product: match () {
            () if table.on(Field::Fp32Norms) => NormProduct::PlusOne,
            () if table.on(Field::WideNorms) => NormProduct::Wide,
            () if differs("widened_norms") => NormProduct::Widened,
            () if differs("centred_norms") => NormProduct::Centred,
            () => NormProduct::Rounded,
        },
        norms_over_heads: table.on(Field::NormsOverHeads),
        fp32_rotation: table.on(Field::Fp32Rotation),
        attention_softcap: table.on(Field::AttentionSoftcap),
        final_softcap: table.on(Field::FinalSoftcap),
        // Routing in fp32 is normalised too: it is a special case.
        normalized_routing: table.on(Field::NormalizedRouting) || table.on(Field::Fp32Routing),
        fp32_routing: table.on(Field::Fp32Routing),
        router: match () {
            () if differs("fp32_router") => Router::Fp32,
            () if differs("fp32_grouped_router") => Router::Fp32Grouped,
            () if differs("fp32_held_router") => Router::Fp32Held,
            () if differs("sampled_router") => Router::Sampled,
            () if differs("weighing_router") => Router::Weighing,
            () if differs("fp32_sigmoid_router") => Router::Fp32Sigmoid,
            () if differs("sigmoid_router") => Router::Sigmoid,
            () => Router::Own,
        },
        // All channels are rotated unless a fraction is stated.
        rotary_percent: table.real(Field::RotaryPercent).unwrap_or(1.0),
        single_norm: differs("single_norm"),
        rotation_tables: match () {
            () if differs("half_rotation") => RotationTables::Half,
            () if differs("layer_rotation") => RotationTables::Layer,
            () if differs("fp32_layer_rotation") => RotationTables::Fp32Layer,
            () if differs("repeated_rotation") => RotationTables::Each,
            () if differs("complex_rotation") => RotationTables::Complex,
            () => RotationTables::Shared,
        },
        activation_steps: match () {
            () if differs("gelu_new") => ActivationSteps::NewGelu,
            () if differs("relu") => ActivationSteps::Relu,
            () => ActivationSteps::Kernel,
        },
        chosen_routing: differs("chosen_routing"),
        clamped_experts: differs("clamped_experts"),
        typed_softmax: differs("typed_softmax"),
        norms_behind_rotation: differs("norms_behind_rotation"),
        plain_head_norms: differs("plain_head_norms"),
        query_temperature: if differs("query_temperature") {
            QueryTemperature::Unwindowed
        } else if differs("typed_query_temperature") {
            QueryTemperature::Typed
        } else {
            QueryTemperature::None
        },
        fp32_scores: differs("fp32_scores"),
        embedding_norm: differs("embedding_norm"),
        head_bias: differs("head_bias"),
        dropout: Dropout {
            attention: differs("attention_dropout"),
            residual: differs("residual_dropout"),
            embedding: differs("embedding_dropout"),
        },
        norm_weights: NormWeights {
            // Variants name what is absent, since weights are the norm.
            stream: !differs("norms_without_weights"),
            heads: !differs("head_norms_without_weights"),
            biases: !differs("norms_without_biases"),
        },
        clipped_queries: differs("clipped_queries"),
        split_mixer_inputs: differs("split_mixer_inputs"),
        joint_parts: match () {
            () if runs("headwise_qkv") => JointParts::Headwise,
            () if runs("sliced_qkv") => JointParts::Sliced,
            () if runs("selected_qkv") => JointParts::Selected,
            () => JointParts::Split,
        },
        passed_rotation: runs("passed_rotation"),
        scaled_branches: runs("scaled_branches"),
        gelu_by_hand: runs("gelu_by_hand"),
        scaled_mixer_inputs: differs("scaled_mixer_inputs"),
    }
}
