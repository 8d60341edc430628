//! Which modules train under Automodel: its own, or those of transformers.

use super::lacking::lack;
use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, Origin};
use shardscope_plan::{Field, Software};

/// How names of models begin for which Automodel has no modules (`MODEL_ARCH_MAPPING` of `_transformers/registry.py`):
/// `MistralForCausalLM`, `MixtralForCausalLM`, `GemmaForCausalLM`, `Gemma2ForCausalLM`, `Gemma3ForCausalLM`, `Phi3ForCausalLM`,
/// `Olmo2ForCausalLM`, `Olmo3ForCausalLM`, `GraniteForCausalLM`. transformers' train, which Liger patches.
const PATCHED: &str = "mistralai/Mistral- mistralai/Mistral-Nemo-Base- mistralai/Mistral-Nemo-Instruct- mistralai/Mixtral- \
    google/gemma-2- google/gemma-2b google/gemma-7b google/gemma-3-270m google/gemma-3-1b google/functiongemma- \
    microsoft/Phi-3-mini- microsoft/phi-4 allenai/OLMo-2- allenai/Olmo-3- ibm-granite/granite-3.0- ibm-granite/granite-3.1- \
    ibm-granite/granite-3.2- ibm-granite/granite-3.3-";
/// The same of those whose type Liger does not know, and leaves as it is (`MODEL_TYPE_TO_APPLY_LIGER_FN` of liger-kernel 0.8.5):
/// `PhiForCausalLM`, `Starcoder2ForCausalLM`, `Cohere2ForCausalLM`, `Ernie4_5ForCausalLM`, `SeedOssForCausalLM`, `GlmForCausalLM`.
const UNPATCHED: &str = "microsoft/phi-2 microsoft/phi-1 bigcode/starcoder2- CohereForAI/c4ai-command-r7b- \
    CohereLabs/c4ai-command-r7b- baidu/ERNIE-4.5-0.3B ByteDance-Seed/Seed-OSS- zai-org/glm-4-9b-chat-hf zai-org/glm-4-9b-hf";
/// The same where its own are known: `LlamaForCausalLM`, `Qwen2ForCausalLM`, `Qwen3ForCausalLM`.
const OWN: &str = "meta-llama/Llama-2- meta-llama/Meta-Llama-3- meta-llama/Meta-Llama-3.1- meta-llama/Llama-3.1- \
    meta-llama/Llama-3.2- meta-llama/Llama-3.3- tiiuae/Falcon3- ByteDance-Seed/Seed-Coder- Qwen/Qwen2- Qwen/Qwen2.5- Qwen/QwQ- Qwen/Qwen3-";
/// Parts of names of other models that begin so: with a vision model, experts, or weights in other formats.
const OTHERS: &[&str] = &["Vision", "-A", "-a400m", "-a800m", "FP8", "GPTQ", "GGUF", "int4"];

/// Whether a key of `BackendConfig` leaves dense modules of Automodel's own as they are without it: their products are PyTorch's and
/// their attention transformers' whatever it says, unless sequences are packed, and fused rotation is turned off for all.
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

/// Whether a model's name begins with one of these, behind which a size comes, or what stands behind one, or the end.
fn is_any(name: &str, starts: &str) -> bool {
    let sized = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    starts.split(' ').any(|start| name.strip_prefix(start).is_some_and(sized))
        && !OTHERS.iter().any(|part| name.contains(part))
}

/// Whether a model is of an architecture whose plan of DTensor was recorded, `LlamaForCausalLM`, `Qwen2ForCausalLM` or
/// `Qwen3ForCausalLM`: those that Automodel has dense modules of its own for.
pub(in crate::formats) fn has_recorded_plan(name: &str) -> bool {
    is_any(name, OWN)
}

/// Which modules train: Automodel's own for the architectures that it has (Llama, Qwen, Mistral and most mixtures of experts:
/// `_transformers/registry.py`), else transformers' with Liger's kernels, unless told otherwise.
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
    if has_own {
        own(leaves);
    }
    if patched && !unknown_to_liger && leaves.flag("model.use_liger_kernel") != Some(false) {
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
        lack(leaves, "loss_fn.fp32_upcast", Effect::Memory, "a loss over 16-bit logits");
    }
    if !patched && !has_own {
        let what =
            "modules of Automodel's own, which it has for most architectures, in the place of transformers'";
        lack(leaves, "model.force_hf", Effect::Memory, what);
    }
}

/// Attention, MLP and both norms of each layer are checkpointed by themselves.
pub(in crate::formats) fn one_by_one(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    leaves.say(Field::RecomputeGranularity, "selective", leaf);
    leaves.say(Field::RecomputeModules, "self_attn mlp layernorm", leaf);
}

/// What differs with modules of Automodel's own.
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
        let what =
            "packed sequences under modules of Automodel's own, which Transformer Engine's attention takes";
        lack(leaves, "packed_sequence.packed_sequence_size", Effect::Memory, what);
    }
}
