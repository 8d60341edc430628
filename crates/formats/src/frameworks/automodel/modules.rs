//! Which modules train under Automodel: its own, or those of transformers.

use super::experts;
use super::lacking::lack;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

/// Prefixes of names of models for which Automodel has no modules of its own (`MODEL_ARCH_MAPPING` of
/// `_transformers/registry.py`): `MistralForCausalLM`, `MixtralForCausalLM`, `GemmaForCausalLM`, `Gemma2ForCausalLM`,
/// `Gemma3ForCausalLM`, `Phi3ForCausalLM`, `Olmo2ForCausalLM`, `Olmo3ForCausalLM`, `GraniteForCausalLM`. They train
/// with transformers' modules, which Liger patches.
const PATCHED: &str = "mistralai/Mistral- mistralai/Mistral-Nemo-Base- mistralai/Mistral-Nemo-Instruct- mistralai/Mixtral- \
    google/gemma-2- google/gemma-2b google/gemma-7b google/gemma-3-270m google/gemma-3-1b google/functiongemma- \
    microsoft/Phi-3-mini- microsoft/phi-4 allenai/OLMo-2- allenai/Olmo-3- ibm-granite/granite-3.0- ibm-granite/granite-3.1- \
    ibm-granite/granite-3.2- ibm-granite/granite-3.3-";
/// The same for types that Liger does not know and therefore leaves unpatched (`MODEL_TYPE_TO_APPLY_LIGER_FN` of
/// liger-kernel 0.8.5): `PhiForCausalLM`, `Starcoder2ForCausalLM`, `Cohere2ForCausalLM`, `Ernie4_5ForCausalLM`,
/// `SeedOssForCausalLM`, `GlmForCausalLM`.
const UNPATCHED: &str = "microsoft/phi-2 microsoft/phi-1 bigcode/starcoder2- CohereForAI/c4ai-command-r7b- \
    CohereLabs/c4ai-command-r7b- baidu/ERNIE-4.5-0.3B ByteDance-Seed/Seed-OSS- zai-org/glm-4-9b-chat-hf zai-org/glm-4-9b-hf";
/// The same for models for which Automodel's own modules are known: `LlamaForCausalLM` (also MiniCPM5, which its model
/// card calls a standard one), `Qwen2ForCausalLM`, `Qwen3ForCausalLM`.
const OWN: &str = "meta-llama/Llama-2- meta-llama/Meta-Llama-3- meta-llama/Meta-Llama-3.1- meta-llama/Llama-3.1- \
    meta-llama/Llama-3.2- meta-llama/Llama-3.3- tiiuae/Falcon3- ByteDance-Seed/Seed-Coder- Qwen/Qwen2- Qwen/Qwen2.5- Qwen/QwQ- Qwen/Qwen3- openbmb/MiniCPM5-";
/// Parts of names of other models with these prefixes: with a vision model, experts, or weights in other formats.
const OTHERS: &[&str] = &["Vision", "-A", "-a400m", "-a800m", "FP8", "GPTQ", "GGUF", "int4"];

/// Whether a key of `BackendConfig` leaves Automodel's own dense modules unchanged: their products are
/// PyTorch's and their attention is transformers' whatever it says, unless sequences are packed, and
/// fused RoPE is turned off for all.
pub(super) fn is_usual(leaf: &Leaf) -> bool {
    const ANY: &str =
        "_target_ rope_fusion experts dispatcher enable_hf_state_dict_adapter enable_fsdp_optimizations";
    match leaf.path.trim_start_matches("model.backend.") {
        "attn" | "linear" => matches!(leaf.value.as_str(), "te" | "sdpa" | "torch"),
        "rms_norm" => leaf.value == "torch_fp32",
        "rope" => leaf.value == "torch",
        key => ANY.split(' ').any(|any| any == key),
    }
}

/// Whether a model's name begins with one of `starts`, followed by a digit, a hyphen or the end of the name.
fn is_any(name: &str, starts: &str) -> bool {
    let sized = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    starts.split(' ').any(|start| name.strip_prefix(start).is_some_and(sized))
        && !OTHERS.iter().any(|part| name.contains(part))
}

/// Whether a model is `LlamaForCausalLM`, `Qwen2ForCausalLM` or `Qwen3ForCausalLM`: Automodel has dense modules of its
/// own for these, and their DTensor plan and adapters on every linear layer were recorded.
pub(crate) fn has_recorded_plan(name: &str) -> bool {
    is_any(name, OWN)
}

/// Whether linear layers are sharded over tensor ranks.
pub(super) fn is_cut(leaves: &Leaves<'_>) -> bool {
    leaves.whole("distributed.tp_size").is_some_and(|size| size > 1)
}

/// Which modules train: Automodel's own for the architectures that it implements (Llama, Qwen, Mistral and
/// most mixtures of experts: `_transformers/registry.py`), otherwise transformers' with Liger's kernels,
/// unless the file says otherwise.
pub(super) fn implementation(leaves: &mut Leaves<'_>, models: &[&str]) {
    let recipe = leaves.text("recipe").unwrap_or_default().to_owned();
    let class = leaves.text("model._target_").unwrap_or_default().to_owned();
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("teacher_model.")) {
        lack(leaves, "recipe", Effect::Memory, "a teacher beside the model that is trained");
    }
    if recipe.contains("VLM") || class.contains("ImageTextToText") || class.contains("Multimodal") {
        lack(leaves, "model._target_", Effect::Model, "the vision model beside the decoder");
        leaves.pass_below(&["processor.", "freeze_config."]);
    }
    // The checkpoint's own configuration, which `model.config.pretrained_model_name_or_path` names.
    if leaves.text("model.config._target_").is_some_and(|class| class.ends_with("AutoConfig.from_pretrained"))
    {
        leaves.pass("model.config._target_");
    }
    if class.contains("SequenceClassification")
        || class.contains("BiEncoder")
        || class.contains("CrossEncoder")
    {
        let what = "another head instead of the output layer";
        lack(leaves, "model._target_", Effect::Model, what);
    }
    let named = models.iter().find_map(|path| leaves.text(path)).unwrap_or_default();
    let unknown_to_liger = is_any(named, UNPATCHED);
    let patched = leaves.flag("model.force_hf") == Some(true) || is_any(named, PATCHED) || unknown_to_liger;
    let has_own = !patched && is_any(named, OWN);
    let mixes = !patched && experts::is_known(named);
    let mixture = named.to_owned();
    if has_own {
        own(leaves);
    } else if mixes {
        experts::own(leaves, &mixture);
    }
    // `_transformers/kernel_patches.py:_apply_preload_overrides`.
    if patched && !unknown_to_liger && !is_cut(leaves) && leaves.flag("model.use_liger_kernel") != Some(false)
    {
        leaves.state(Field::LigerKernel, "true", Origin::Default, "Automodel patches models of transformers");
    }
    leaves.pass_below(&["model.force_hf", "model.use_liger_kernel", "model.use_sdpa_patching"]);
    if let Some(leaf) = leaves.get("model.attn_implementation") {
        leaves.say(Field::AttnImplementation, &leaf.value, leaf);
    }
    match leaves.text("loss_fn._target_").and_then(|class| class.rsplit('.').next()) {
        Some("FusedLinearCrossEntropy") => {
            leaves.state(Field::LossKind, "cce", Origin::Derived, "loss_fn of Automodel");
        }
        Some("MaskedCrossEntropy") => {
            leaves.state(Field::LossKind, "torch", Origin::Derived, "loss_fn of Automodel")
        }
        Some(_) => lack(leaves, "loss_fn", Effect::Memory, "what this loss keeps"),
        None => {}
    }
    if leaves.flag("loss_fn.fp32_upcast") == Some(false) {
        let masked = leaves.reading.value(Field::LossKind) == Some("torch");
        if masked && !is_cut(leaves) {
            leaves.reading.keep(&|found| found.field != Field::LossKind);
            leaves.state(Field::LossKind, "torch_narrow", Origin::Derived, "fp32_upcast of loss_fn is false");
            leaves.pass("loss_fn.fp32_upcast");
        } else {
            lack(leaves, "loss_fn.fp32_upcast", Effect::Memory, "a loss over 16-bit logits of several ranks");
        }
    }
    if !patched && !has_own && !mixes {
        let what = "Automodel's own modules, which it has for most architectures, instead of transformers'";
        lack(leaves, "model.force_hf", Effect::Memory, what);
    }
}

/// Attention, MLP and both norms of each layer are checkpointed separately.
pub(crate) fn one_by_one(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    leaves.say(Field::RecomputeGranularity, "selective", leaf);
    leaves.say(Field::RecomputeModules, "self_attn mlp layernorm", leaf);
}

/// Settings that differ with Automodel's own modules.
fn own(leaves: &mut Leaves<'_>) {
    let why = "Automodel has modules of its own for this model".to_owned();
    leaves.reading.software = Some((Software::Automodel, why));
    let again = leaves.get("distributed.activation_checkpointing");
    if let Some(leaf) = again.filter(|leaf| leaf.flag() == Some(true) || leaf.value == "full") {
        leaves.reading.keep(&|found| {
            !matches!(
                found.field,
                Field::GradientCheckpointing
                    | Field::RecomputeGranularity
                    | Field::RecomputeMethod
                    | Field::RecomputeNumLayers
            )
        });
        one_by_one(leaves, leaf);
    }
    if leaves.whole("packed_sequence.packed_sequence_size").is_some_and(|size| size > 0) {
        let what = "packed sequences under Automodel's own modules, which use Transformer Engine's attention";
        lack(leaves, "packed_sequence.packed_sequence_size", Effect::Memory, what);
    }
}
