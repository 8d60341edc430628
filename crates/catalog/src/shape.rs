//! The shape of a model as settings, in Megatron's words.

use shardscope_architectures::{Architecture, Routed, Shape};
use shardscope_plan::{Field, Mixers};

/// The settings that describe a shape, in reading order.
#[must_use]
pub fn settings(architecture: &Architecture) -> Vec<(Field, String)> {
    let mut out = Settings(Vec::new());
    let shape = &architecture.shape;
    out.count(Field::NumLayers, shape.layers);
    out.count(Field::HiddenSize, shape.hidden);
    out.count(Field::VocabSize, shape.vocabulary);
    if shape.ffn > 0 {
        out.count(Field::FfnHiddenSize, shape.ffn);
    }
    if shape.heads > 0 {
        attention(&mut out, shape);
    }
    if let Some(routed) = &shape.routed {
        experts(&mut out, routed);
    }
    let activation = match (shape.gated, shape.activation.as_str()) {
        (true, act) if act.starts_with("gelu") => Some(Field::QuickGeglu),
        (true, _) => Some(Field::Swiglu),
        (false, "relu2") => Some(Field::SquaredRelu),
        (false, _) => None,
    };
    if let Some(field) = activation {
        out.flag(field, true);
    }
    out.say(Field::Normalization, if shape.layer_norms { "LayerNorm" } else { "RMSNorm" });
    out.say(Field::PositionEmbeddingType, &shape.position);
    out.flag(Field::UntieEmbeddingsAndOutputWeights, !shape.tied);
    // Rows of a learned table; with other position embeddings, the length that the model was designed for, if it is
    // stated.
    if shape.positions > 0 {
        out.count(Field::MaxPositionEmbeddings, shape.positions);
    } else if let Some(longest) = shape.longest {
        out.count(Field::MaxPositionEmbeddings, longest);
    }
    if let Some(encoder) = shape.encoder {
        out.count(Field::EncoderLayers, encoder.layers);
        out.count(Field::RelativeBuckets, encoder.buckets);
    }
    mixers(&mut out, shape);
    arrangement(&mut out, architecture);
    if let Some(tower) = &architecture.tower {
        out.flag(Field::VisionTower, true);
        out.count(Field::VisionParameters, tower.parameters);
        out.count(Field::VisionLayers, tower.layers);
        out.count(Field::VisionLayerParameters, tower.layer);
        out.count(Field::VisionHiddenSize, tower.hidden);
        out.count(Field::VisionPatches, tower.patches);
        if !tower.kept.is_empty() {
            out.say(Field::VisionKept, &tower.kept.join(" "));
        }
        if !tower.shared.is_empty() {
            out.say(Field::VisionShared, &tower.shared.join(" "));
        }
        if tower.hooked {
            out.flag(Field::VisionHooked, true);
        }
    }
    out.0
}

struct Settings(Vec<(Field, String)>);

impl Settings {
    fn say(&mut self, field: Field, value: &str) {
        self.0.push((field, value.to_owned()));
    }

    fn count(&mut self, field: Field, value: u64) {
        self.say(field, &value.to_string());
    }

    fn flag(&mut self, field: Field, value: bool) {
        self.say(field, if value { "true" } else { "false" });
    }
}

fn attention(out: &mut Settings, shape: &Shape) {
    out.count(Field::NumAttentionHeads, shape.heads);
    match shape.latent {
        Some(latent) => {
            out.flag(Field::MultiLatentAttention, true);
            // Heads have an explicit width, and the hidden size need not be a multiple of their number
            // (GLM-4.7-Flash).
            if !shape.hidden.is_multiple_of(shape.heads) {
                out.count(Field::KvChannels, latent.plain_width);
            }
            if let Some(rank) = latent.query_rank {
                out.count(Field::QLoraRank, rank);
            }
            out.count(Field::KvLoraRank, latent.key_value_rank);
            out.count(Field::QkHeadDim, latent.plain_width);
            out.count(Field::QkPosEmbHeadDim, latent.rotated_width);
            out.count(Field::VHeadDim, latent.value_width);
        }
        None => {
            out.count(Field::KvChannels, shape.head_width);
            if shape.groups != shape.heads {
                out.flag(Field::GroupQueryAttention, true);
                out.count(Field::NumQueryGroups, shape.groups);
            }
        }
    }
    // Megatron's flag is for all linear layers at once; biases of only queries, keys and values have a separate one.
    let [qkv, _, mlp] = shape.biases;
    out.flag(Field::AddBiasLinear, mlp && qkv);
    out.flag(Field::AddQkvBias, qkv);
    out.flag(Field::QkLayernorm, shape.query_key_norms);
    if shape.sinks {
        out.say(Field::SoftmaxType, "learnable");
    }
}

fn experts(out: &mut Settings, routed: &Routed) {
    out.count(Field::NumExperts, routed.experts);
    out.count(Field::MoeRouterTopk, routed.per_token);
    out.count(Field::MoeFfnHiddenSize, routed.width);
    if routed.shared_width > 0 {
        out.count(Field::MoeSharedExpertIntermediateSize, routed.shared_width);
        out.flag(Field::MoeSharedExpertGate, routed.shared_gate);
    }
    if let Some(latent) = routed.latent {
        out.count(Field::MoeLatentSize, latent);
    }
    if let Some(pattern) = pattern(&routed.layers) {
        out.say(Field::MoeLayerFreq, &pattern);
    }
}

/// The layers with experts as Megatron's list of 0 and 1; `None` if all have them.
fn pattern(layers: &[bool]) -> Option<String> {
    // The usual pattern, leading dense layers, is written as people write it.
    let dense = layers.iter().take_while(|moe| !**moe).count();
    let rest = layers.get(dense..).unwrap_or_default();
    let late = rest.iter().all(|moe| *moe);
    if late && dense == 0 {
        return None;
    }
    if late {
        return Some(format!("([0]*{dense}+[1]*{})", rest.len()));
    }
    let marks: Vec<&str> = layers.iter().map(|moe| if *moe { "1" } else { "0" }).collect();
    Some(format!("[{}]", marks.join(",")))
}

/// What mixes tokens in each layer, if that is not attention in all of them.
fn mixers(out: &mut Settings, shape: &Shape) {
    match &shape.blocks {
        Some(blocks) => out.say(Field::HybridOverridePattern, blocks),
        None => {
            let signs = Mixers::read(&shape.mixers).map(|mixers| Mixers::write(&mixers));
            if let Some(signs) = signs.filter(|signs| !signs.is_empty()) {
                out.say(Field::MixerPattern, &signs);
            }
        }
    }
    if let Some((tokens, chunked)) = shape.window {
        out.count(Field::AttentionWindow, tokens);
        out.flag(Field::ChunkedAttention, chunked);
    }
    if shape.output_gate {
        out.flag(Field::AttentionOutputGate, true);
    }
    if let Some(full) = shape.full {
        out.say(Field::FullAttentionHeads, &format!("{} {}", full.groups, full.width));
    }
    if let Some((width, vocabulary)) = shape.layer_inputs {
        out.say(Field::LayerInputs, &format!("{width} {vocabulary}"));
    }
    let Some(linear) = &shape.linear else { return };
    out.say(Field::LinearMixer, &linear.kind);
    out.count(Field::LinearNumKeyHeads, linear.key_heads);
    out.count(Field::LinearNumValueHeads, linear.value_heads);
    out.count(Field::LinearKeyHeadDim, linear.key_width);
    out.count(Field::LinearValueHeadDim, linear.value_width);
    out.count(Field::LinearConvKernelDim, linear.convolution);
    out.count(Field::LinearRank, linear.rank);
    out.say(
        Field::LinearBiases,
        &if linear.biases.is_empty() { "none".to_owned() } else { linear.biases.join(" ") },
    );
    out.flag(Field::LinearNorm, linear.norm);
}

/// Activations that are a single kernel that saves its input (`transformers/activations.py`).
const KERNELS: [&str; 6] = ["", "silu", "swish", "gelu", "gelu_pytorch_tanh", "relu2"];
/// Activations whose sequence of operations is known.
const STEPS: [&str; 3] = ["gelu_new", "relu", "xielu"];

/// How the library's own modules are arranged, which determines what they save for backward.
fn arrangement(out: &mut Settings, architecture: &Architecture) {
    let arranged = architecture.arrangement;
    for (field, on) in [
        (Field::FusedQkv, arranged.fused_qkv),
        (Field::FusedGateUp, arranged.fused_gate_up),
        (Field::ParallelResidual, arranged.parallel_residual),
        (Field::PostNorms, arranged.post_norms),
        (Field::NormsBehind, arranged.norms_behind),
        (Field::Fp32Norms, arranged.fp32_norms),
        (Field::WideNorms, arranged.wide_norms),
        (Field::NormsOverHeads, architecture.shape.norms_over_heads),
        (Field::Fp32Rotation, arranged.fp32_rotation),
        (Field::NormalizedRouting, arranged.normalized_routing && !arranged.fp32_routing),
        (Field::Fp32Routing, arranged.fp32_routing),
        (Field::ConvertedExperts, arranged.converted_experts && architecture.shape.routed.is_some()),
        (Field::AttentionSoftcap, arranged.attention_softcap),
        (Field::FinalSoftcap, arranged.final_softcap),
    ] {
        if on {
            out.flag(field, true);
        }
    }
    // Only differences from Llama's arrangement are stated; Llama's is the default of these settings.
    if arranged.rotary_percent != 100 {
        out.say(Field::RotaryPercent, &(arranged.rotary_percent as f64 / 100.0).to_string());
    }
    let shape = &architecture.shape;
    let mut variants = architecture.variants.clone();
    // A single-block layer has one norm in any case.
    let single = shape.norms == 1 && shape.blocks.is_none();
    variants.extend(single.then(|| "single_norm".to_owned()));
    variants.extend((shape.norm_weights == 0).then(|| "norms_without_weights".to_owned()));
    let unbiased = shape.layer_norms && shape.norm_weights == 1;
    variants.extend(unbiased.then(|| "norms_without_biases".to_owned()));
    let shared = shape.full.is_some_and(|full| full.keys_as_values);
    variants.extend(shared.then(|| "keys_as_values".to_owned()));
    let beside = shape.routed.as_ref().is_some_and(|routed| routed.beside);
    variants.extend(beside.then(|| "dense_beside_experts".to_owned()));
    variants.extend(shape.double_wide.then(|| "double_wide_mlp".to_owned()));
    let act = shape.activation.as_str();
    if !KERNELS.contains(&act) {
        variants.push(act.to_owned());
    }
    if !variants.is_empty() {
        out.say(Field::ModuleVariants, &variants.join(" "));
    }
    if !architecture.operations.is_empty() {
        out.say(Field::KernelVariants, &architecture.operations.join(" "));
    }
    let usual = !architecture.variants.iter().any(|variant| variant == "unrecorded");
    // Shapes of the others are exact too; but what their modules save for backward was never recorded.
    let known = architecture.is_recorded() && usual && (KERNELS.contains(&act) || STEPS.contains(&act));
    if !known && !architecture.model_type.is_empty() {
        out.say(Field::UnrecordedModules, &architecture.model_type);
    }
}

#[cfg(test)]
mod tests {
    use shardscope_plan::word::{KernelVariant, ModuleVariant};
    use shardscope_plan::{Field, Word};

    #[test]
    fn variants_of_recorded_models_are_known() {
        for name in crate::hub_names().chain(crate::model_names()) {
            let Some((_, settings)) = crate::model(name) else { continue };
            let stated = |of: Field| {
                settings.iter().filter(move |(field, _)| *field == of).flat_map(|(_, value)| value.split(' '))
            };
            // What differs in modules that were never recorded stops the verdict, whatever it is called.
            let recorded = stated(Field::UnrecordedModules).next().is_none();
            for word in stated(Field::ModuleVariants).filter(|_| recorded) {
                assert!(ModuleVariant::from_word(word).is_some(), "{name}: {word}");
            }
            for word in stated(Field::KernelVariants) {
                assert!(KernelVariant::from_word(word).is_some(), "{name}: {word}");
            }
        }
    }
}
