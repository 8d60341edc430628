//! How a model's own modules are arranged, from the settings.

use super::table::Table;
use shardscope_plan::word::{KernelVariant as Kernel, ModuleVariant as Module};
use shardscope_plan::{
    ActivationSteps, Arrangement, Dropout, Field, JointParts, LayerInputs, NormOrder, NormPlaces,
    NormProduct, NormWeights, QueryTemperature, RotationTables, Router,
};

/// The arrangement of modules that readers know for the model's type.
pub(super) fn arrangement(table: &Table) -> Arrangement {
    let variants = table.listed::<Module>();
    let differs = |variant| variants.contains(&variant);
    let operations = table.listed::<Kernel>();
    let runs = |variant| operations.contains(&variant);
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
            () if differs(Module::WidenedNorms) => NormProduct::Widened,
            () if differs(Module::RaisedNorms) => NormProduct::Raised,
            () if differs(Module::CentredNorms) => NormProduct::Centred,
            () if differs(Module::UncastNorms) => NormProduct::Uncast,
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
            () if differs(Module::Fp32Router) => Router::Fp32,
            () if differs(Module::Fp32GroupedRouter) => Router::Fp32Grouped,
            () if differs(Module::Fp32HeldRouter) => Router::Fp32Held,
            () if differs(Module::SampledRouter) => Router::Sampled,
            () if differs(Module::WeighingRouter) => Router::Weighing,
            () if differs(Module::Fp32SigmoidRouter) => Router::Fp32Sigmoid,
            () if differs(Module::SigmoidRouter) => Router::Sigmoid,
            () if differs(Module::TypedRouter) => Router::Typed,
            () if differs(Module::NormedRouter) => Router::Normed,
            () => Router::Own,
        },
        // All channels are rotated unless a fraction is stated.
        rotary_percent: table.real(Field::RotaryPercent).unwrap_or(1.0),
        single_norm: differs(Module::SingleNorm),
        rotation_tables: match () {
            () if differs(Module::HalfRotation) => RotationTables::Half,
            () if differs(Module::LayerRotation) => RotationTables::Layer,
            () if differs(Module::Fp32LayerRotation) => RotationTables::Fp32Layer,
            () if differs(Module::RepeatedRotation) => RotationTables::Each,
            () if differs(Module::ComplexRotation) => RotationTables::Complex,
            () => RotationTables::Shared,
        },
        activation_steps: match () {
            () if differs(Module::GeluNew) => ActivationSteps::NewGelu,
            () if differs(Module::Relu) => ActivationSteps::Relu,
            () if differs(Module::Xielu) => ActivationSteps::Xielu,
            () => ActivationSteps::Kernel,
        },
        chosen_routing: differs(Module::ChosenRouting),
        clamped_experts: differs(Module::ClampedExperts),
        typed_softmax: differs(Module::TypedSoftmax),
        norms_behind_rotation: differs(Module::NormsBehindRotation),
        plain_head_norms: differs(Module::PlainHeadNorms),
        dense_beside_experts: differs(Module::DenseBesideExperts),
        layer_inputs: match table.counts(Field::LayerInputs).as_slice() {
            &[width, vocabulary] => Some(LayerInputs { width, vocabulary }),
            _ => None,
        },
        double_wide: differs(Module::DoubleWideMlp),
        value_norms: differs(Module::ValueNorms),
        query_temperature: if differs(Module::QueryTemperature) {
            QueryTemperature::Unwindowed
        } else if differs(Module::TypedQueryTemperature) {
            QueryTemperature::Typed
        } else {
            QueryTemperature::None
        },
        fp32_scores: differs(Module::Fp32Scores),
        embedding_norm: differs(Module::EmbeddingNorm),
        head_bias: differs(Module::HeadBias),
        dropout: Dropout {
            attention: differs(Module::AttentionDropout),
            residual: differs(Module::ResidualDropout),
            mlp: differs(Module::MlpDropout),
            embedding: differs(Module::EmbeddingDropout),
        },
        norm_weights: NormWeights {
            // Variants name what is absent, since weights are the norm.
            stream: !differs(Module::NormsWithoutWeights),
            heads: !differs(Module::HeadNormsWithoutWeights),
            biases: !differs(Module::NormsWithoutBiases),
        },
        fp32_layer_norm: differs(Module::Fp32LayerNorm),
        clipped_queries: differs(Module::ClippedQueries),
        split_mixer_inputs: differs(Module::SplitMixerInputs),
        joint_parts: match () {
            () if differs(Module::IndexedQkv) => JointParts::Indexed,
            () if runs(Kernel::HeadwiseQkv) => JointParts::Headwise,
            () if runs(Kernel::SlicedQkv) => JointParts::Sliced,
            () if runs(Kernel::SelectedQkv) => JointParts::Selected,
            () => JointParts::Split,
        },
        passed_rotation: runs(Kernel::PassedRotation),
        scaled_branches: runs(Kernel::ScaledBranches),
        tokens_first: runs(Kernel::TokensFirst),
        image_masks: runs(Kernel::ImageMasks),
        scaled_layers: runs(Kernel::ScaledLayers),
        gelu_by_hand: runs(Kernel::GeluByHand),
        output_first: runs(Kernel::OutputFirst),
        norm_order: match () {
            () if runs(Kernel::OrderedNorms) => NormOrder::Ordered,
            () if runs(Kernel::FirstNorms) => NormOrder::First,
            () if runs(Kernel::FollowingNorms) => NormOrder::Following,
            () => NormOrder::Last,
        },
        scaled_mixer_inputs: differs(Module::ScaledMixerInputs),
    }
}
