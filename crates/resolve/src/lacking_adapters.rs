//! Adapters on layers where they are not supported, and their communication that is not.

use super::table::Table;
use crate::{Effect, NotModelled};
use shardscope_plan::{
    AdapterKernels, AdapterLibrary, Field, LinearKind, LinearModule, LoraModules, NumberFormat, SettingValue,
    Software, word,
};

/// Layers on which no adapters are supported.
const BESIDE: &[(Field, &str)] = &[
    (Field::MultiLatentAttention, "adapters on the projections of multi-latent attention"),
    (Field::MtpNumLayers, "adapters in multi-token-prediction layers"),
    (Field::MoeLatentSize, "adapters on the experts' latent projections"),
];

/// Adapters on layers that have none here.
pub(super) fn beside_adapters(table: &mut Table, software: Software, megatron: bool) {
    if !table.is_any(&[word::TrainType::Lora, word::TrainType::QLora]) {
        return;
    }
    let mixer = (Field::LinearMixer, "adapters on a linear mixer of Megatron core");
    let mixers = megatron.then_some(&mixer);
    for (field, message) in BESIDE.iter().chain(mixers) {
        let said = match field {
            // PEFT's adapters on modules of transformers are supported.
            Field::MultiLatentAttention => {
                table.on(*field) && (megatron || software != Software::HfTransformers)
            }
            Field::LinearMixer => table.has(*field),
            _ => table.number(*field) > 0,
        };
        if said {
            table.lack(*field, "", Effect::Model, message);
        }
    }
}

/// On one GPU weights are materialized when adapters are added, and the MLPs of Automodel's own Llama, Qwen2 and Qwen3
/// become one function with their adapters (`components/_peft/lora_mlp.py:install_fused_lora_mlp`), except for
/// quantized weights and adapters with dropout.
fn joined(table: &mut Table, software: Software) {
    let plain = table.is_unset_or(&[word::BaseQuantization::None])
        && table.real(Field::LoraDropout).unwrap_or(0.0) == 0.0;
    let one = software == Software::Automodel && table.number(Field::WorldSize) == 1;
    if one && plain && table.words(Field::LoraKernels) == ["each"] {
        let rule = "on one GPU Automodel joins MLPs with their adapters";
        let both =
            SettingValue::List(["each", "mlp"].map(|word| SettingValue::Text(word.to_owned())).to_vec());
        table.overrule(Field::LoraKernels, both, rule);
    }
}

/// Dropout on adapters' outputs, which is supported on linear layers of decoders of transformers and of Automodel's
/// own.
fn dropped_results(table: &mut Table, software: Software) {
    let drops = table.real(Field::LoraDropout).is_some_and(|share| share > 0.0);
    let known = matches!(software, Software::HfTransformers | Software::Automodel)
        && ![Field::VisionTower, Field::LinearMixer].into_iter().any(|field| table.has(field))
        && table.number(Field::NumExperts) == 0;
    if drops && table.on(Field::LoraDropoutAfter) && !known {
        let message = "dropout of adapters' results in this software, or beside these layers";
        table.lack(Field::LoraDropout, "", Effect::Memory, message);
    }
}

/// Whether adapters are on experts, or on a projection that other layers of the model have too.
fn reach_experts(table: &Table) -> bool {
    let named = table.words(Field::LoraTargetModules);
    let modules = named.iter().fold(LoraModules::default(), |all, name| all.named(name).unwrap_or(all));
    named.is_empty() || modules.reach_experts()
}

/// Functions that replace PEFT's modules and whose saved tensors are not known.
pub(super) fn fused(table: &mut Table, software: Software) {
    joined(table, software);
    dropped_results(table, software);
    let words = table.words(Field::LoraKernels);
    if words.is_empty() || !table.is_any(&[word::TrainType::Lora, word::TrainType::QLora]) {
        return;
    }
    let value = words.join(" ");
    let kernels = AdapterKernels::named(&words);
    let each = kernels.is_some_and(|kernels| kernels.each);
    let own = each && software == Software::Automodel;
    let message = if kernels.is_none() || !(software == Software::HfTransformers || own) {
        "these fused LoRA kernels in this software"
    } else if each && (table.number(Field::WorldSize) == 1 && !own || !table.is(word::Autocast::None)) {
        "MLPs fused with their adapters into one autograd function, as in Automodel on one GPU"
    } else if each && table.number(Field::NumExperts) > 0 && reach_experts(table) {
        "Automodel adapters on experts"
    } else if table.on(Field::UseDora) {
        "fused LoRA kernels with DoRA"
    } else if table.has(Field::LinearMixer) {
        "fused LoRA kernels with a linear mixer"
    } else if table.is_any(&[word::BaseQuantization::Int8, word::BaseQuantization::Fp8])
        || table.is_format(Field::ParamsDtype, NumberFormat::Fp32)
    {
        "fused LoRA kernels over 8-bit or fp32 weights"
    } else {
        return;
    };
    table.lack(Field::LoraKernels, &value, Effect::Memory, message);
}

/// Layers of Megatron's hybrid patterns that no estimator supports
/// (`megatron/core/models/hybrid/hybrid_layer_allocation.py:Symbols`).
const OTHER_SIGNS: &[(char, &str)] = &[
    ('G', "layers with only a gated delta rule (G) in a hybrid pattern"),
    ('D', "layers with only DeepSeek sparse attention (D) in a hybrid pattern"),
    ('+', "layers with only latent attention (+) in a hybrid pattern"),
];

/// Whether a target module is the input projection of a linear mixer.
pub(super) fn is_of_mixer(name: &str) -> bool {
    name.rsplit(['.', '/']).next() == Some("in_proj")
}

/// Linear mixers that are only supported in some software, and adapters on their projections by name: in some model
/// types `out_proj` also belongs to attention, in others only to the mixer.
pub(super) fn of_linear_mixers(table: &mut Table, software: Software) {
    // Megatron's hybrid models build each depth from its own pattern (`multi_token_prediction.py:mtp_layer_pattern`),
    // and none without one.
    let depths = table.number(Field::MtpNumLayers);
    if table.has(Field::HybridOverridePattern) && depths > 0 {
        let message = "multi-token prediction in a hybrid model, which has its own layer pattern";
        table.lack(Field::MtpNumLayers, &depths.to_string(), Effect::Model, message);
    }
    for (sign, message) in OTHER_SIGNS {
        let pattern = table.word(Field::HybridOverridePattern).to_owned();
        if pattern.contains(*sign) {
            table.lack(Field::HybridOverridePattern, &pattern, Effect::Model, message);
        }
    }
    if table.on(Field::ReferenceMixers) && table.has(Field::LinearMixer) {
        let known = software.semantics().eager_modules && table.is(LinearKind::GatedDeltaNet);
        let (effect, message) = if known {
            (
                Effect::Memory,
                "what transformers' reference of the gated delta rule saves; its step time is estimated",
            )
        } else {
            (Effect::Model, "transformers' reference of this linear mixer")
        };
        table.lack(Field::ReferenceMixers, "true", effect, message);
    }
    let short = table.is(LinearKind::ShortConvolution);
    let compiled = software == Software::Unsloth && table.on(Field::CompiledLayers);
    if short && software != Software::HfTransformers && !compiled {
        let message = "short convolutions in place of attention, in this software";
        table.lack(Field::LinearMixer, LinearKind::ShortConvolution.name(), Effect::Model, message);
    }
    if !table.has(Field::LinearMixer) || !table.is_any(&[word::TrainType::Lora, word::TrainType::QLora]) {
        return;
    }
    let targets = table.words(Field::LoraTargetModules);
    let of_output = |name: &&str| name.rsplit(['.', '/']).next() == Some("out_proj");
    let (input, output) = (targets.iter().any(|name| is_of_mixer(name)), targets.iter().any(of_output));
    if (input || output) && !(short && input && output) {
        let message = "adapters on a single projection of a linear mixer";
        table.lack(Field::LoraTargetModules, "", Effect::Model, message);
    }
}

/// The name under which a user continues without the communication of adapters on sharded experts. No setting has it:
/// nothing is removed from the plan, only the mark is set.
pub(super) const CUT_EXPERT_ADAPTERS: &str = "adapters_over_expert_tensor_parallel";

/// Megatron-Bridge shards adapters on experts over the expert tensor ranks
/// (`megatron/bridge/peft/utils.py:ParallelLinearAdapter` with `is_expert`), and the communication between these ranks
/// is not known here.
pub(super) fn over_expert_tensor(table: &mut Table, library: AdapterLibrary) {
    let semantics = library.semantics();
    if !semantics.shares_experts || !table.is(word::TrainType::Lora) || table.number(Field::NumExperts) == 0 {
        return;
    }
    // If not given, it follows the tensor size (`arguments.py:validate_args`).
    let given = Field::ExpertTensorParallelSize;
    let field = if table.has(given) { given } else { Field::TensorModelParallelSize };
    let size = table.number(field);
    let named = table.words(Field::LoraTargetModules);
    let targets = if named.is_empty() { semantics.targets.to_vec() } else { named };
    let modules = targets.iter().fold(LoraModules::default(), |all, name| all.named(name).unwrap_or(all));
    if size <= 1 || !modules.reach_experts() {
        return;
    }
    let message = "communication of expert adapters between expert tensor ranks; expert TP 1 has none";
    let item = NotModelled::new(CUT_EXPERT_ADAPTERS, &size.to_string(), Effect::Communication, message)
        .at_some(table.span(field));
    table.not_modelled.push(item);
}

/// An adapter of the word embedding is known as PEFT has it: beside a table that is whole, that no other module shares the
/// adapter of, and that words alone look up.
pub(super) fn of_embedding(table: &mut Table, software: Software, adapted: LoraModules) {
    if !adapted.has(LinearModule::Embedding) {
        return;
    }
    let shared = adapted.has(LinearModule::OutputLayer)
        && !table.on(Field::UntieEmbeddingsAndOutputWeights)
        && !super::named::is_open(table);
    let peft = software.semantics().modules.adapters == AdapterLibrary::Peft;
    let known = software == Software::HfTransformers
        && peft
        && !shared
        && !table.on(Field::UseDora)
        && !table.on(Field::DtensorPlan)
        && !table.has(Field::LoraKernels)
        && !table.has(Field::VisionTower);
    if !known {
        let message =
            "adapters of the word embedding beside such weights; all weights would be counted as trained";
        table.lack(Field::LoraTargetModules, "embed_tokens", Effect::Model, message);
    }
}
