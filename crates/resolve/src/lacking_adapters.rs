//! Adapters beside layers where they are not known, and messages of theirs that are not.

use super::table::Table;
use crate::{Effect, NotModelled};
use shardscope_plan::{AdapterKernels, AdapterLibrary, Field, LinearKind, LoraModules, Software};

/// Layers beside which no adapters are known.
const BESIDE: &[(Field, &str)] = &[
    (Field::MultiLatentAttention, "adapters on the projections of multi-latent attention"),
    (Field::MtpNumLayers, "adapters in multi-token-prediction layers"),
    (Field::MoeLatentSize, "adapters on the experts' latent projections"),
];

/// Adapters beside layers that have none here.
pub(super) fn beside_adapters(table: &mut Table, software: Software, megatron: bool) {
    if !matches!(table.word(Field::TrainType), "lora" | "qlora") {
        return;
    }
    let mixer = (Field::LinearMixer, "adapters on a linear mixer of Megatron core");
    let mixers = megatron.then_some(&mixer);
    for (field, message) in BESIDE.iter().chain(mixers) {
        let said = match field {
            // PEFT's beside modules of transformers are.
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

/// Functions in the place of PEFT's modules where what they keep is not known.
pub(super) fn fused(table: &mut Table, software: Software) {
    let words = table.words(Field::LoraKernels);
    if words.is_empty() || !matches!(table.word(Field::TrainType), "lora" | "qlora") {
        return;
    }
    let value = words.join(" ");
    let each = words == ["each"];
    let known = software == Software::HfTransformers || each && software == Software::Automodel;
    let message = if !known || AdapterKernels::named(&words).is_none() {
        "these fused LoRA kernels in this software"
    } else if each && (table.number(Field::WorldSize) == 1 || table.word(Field::Autocast) != "none") {
        "MLPs fused with their adapters into one autograd function, as in Automodel on one GPU"
    } else if each && table.number(Field::NumExperts) > 0 {
        "Automodel adapters on experts"
    } else if table.on(Field::UseDora) {
        "fused LoRA kernels with DoRA"
    } else if table.has(Field::LinearMixer) {
        "fused LoRA kernels with a linear mixer"
    } else if matches!(table.word(Field::BaseQuantization), "int8" | "fp8")
        || table.says(Field::ParamsDtype, "fp32")
    {
        "fused LoRA kernels over 8-bit or fp32 weights"
    } else {
        return;
    };
    table.lack(Field::LoraKernels, &value, Effect::Memory, message);
}

/// Layers of Megatron's hybrid patterns that no estimator has (`megatron/core/models/hybrid/hybrid_layer_allocation.py:Symbols`).
const OTHER_SIGNS: &[(char, &str)] = &[
    ('G', "layers with only a gated delta rule (G) in a hybrid pattern"),
    ('D', "layers with only DeepSeek sparse attention (D) in a hybrid pattern"),
    ('+', "layers with only latent attention (+) in a hybrid pattern"),
];

/// Whether a target module is the input projection of a linear mixer.
pub(super) fn is_of_mixer(name: &str) -> bool {
    name.rsplit(['.', '/']).next() == Some("in_proj")
}

/// Linear mixers that are known in some software alone, and adapters beside projections of theirs that are named: `out_proj` is the
/// attention's too in some types, and in others the mixer's alone.
pub(super) fn of_linear_mixers(table: &mut Table, software: Software) {
    // Megatron's hybrid models build each depth of a pattern of its own (`multi_token_prediction.py:mtp_layer_pattern`), and none
    // without one.
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
    let short = table.says(Field::LinearMixer, LinearKind::ShortConvolution.name());
    if short && software != Software::HfTransformers {
        let message = "short convolutions in place of attention, in this software";
        table.lack(Field::LinearMixer, LinearKind::ShortConvolution.name(), Effect::Model, message);
    }
    if !table.has(Field::LinearMixer) || !matches!(table.word(Field::TrainType), "lora" | "qlora") {
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

/// The name under which a reader goes on without the messages of adapters beside cut experts. No setting has it: nothing
/// of the plan is taken away, only the mark is set.
pub(super) const CUT_EXPERT_ADAPTERS: &str = "adapters_over_expert_tensor_parallel";

/// Megatron-Bridge's adapters beside experts are cut over the expert tensor ranks
/// (`megatron/bridge/peft/utils.py:ParallelLinearAdapter` with `is_expert`), and what these ranks exchange is not known here.
pub(super) fn over_expert_tensor(table: &mut Table, library: AdapterLibrary) {
    let semantics = library.semantics();
    if !semantics.shares_experts
        || table.word(Field::TrainType) != "lora"
        || table.number(Field::NumExperts) == 0
    {
        return;
    }
    // Not given, it follows the tensor size (`arguments.py:validate_args`).
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
