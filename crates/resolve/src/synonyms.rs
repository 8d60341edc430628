//! Other frameworks' words for values of settings.

use shardscope_plan::{Field, ValueKind};

/// Adam with fp32 moments, however its step is run: apart from the kernel of the step, none of these changes what it
/// keeps, sends or how long it takes. Sources: `transformers/training_args.py` (`OptimizerNames`), torchtitan's and
/// NeMo's optimizers, DeepSpeed's `config.py`.
const ADAM: &str = "adamw fusedadam fusedadamw fused_adam fused_adamw adamw_torch adamw_torch_fused adamw_torch_xla adamw_torch_npu_fused \
    adamw_apex_fused adamw_hf torch_adam torch_adamw distributed_fused_adam mcore_distributed_optim megatron_fused_adam \
    deepspeedcpuadam hybridadam cpuadam cpu_adam lamb fusedlamb torch.optim.adamw torch.optim.adam \
    megatron.core.optimizer.distrib_optimizer";

/// Other optimizers by their names in other frameworks.
const OPTIMIZERS: [(&str, &str); 51] = [
    ("adamw_bnb_8bit", "adamw_8bit"),
    ("adam8bit", "adamw_8bit"),
    ("adamw8bit", "adamw_8bit"),
    ("adam_8bit", "adamw_8bit"),
    ("adamw_torch_8bit", "adamw_8bit"),
    ("bitsandbytes.optim.adamw8bit", "adamw_8bit"),
    ("bitsandbytes.optim.pagedadamw8bit", "paged_adamw_8bit"),
    ("bitsandbytes.optim.pagedadamw", "paged_adamw"),
    ("bitsandbytes.optim.pagedadamw32bit", "paged_adamw"),
    ("bitsandbytes.optim.pagedadam", "paged_adamw"),
    ("bitsandbytes.optim.pagedadam8bit", "paged_adamw_8bit"),
    ("bitsandbytes.optim.adam8bit", "adamw_8bit"),
    ("bitsandbytes.optim.adamw", "adamw_32bit"),
    ("bitsandbytes.optim.adamw32bit", "adamw_32bit"),
    ("bitsandbytes.optim.adam", "adamw_32bit"),
    ("bitsandbytes.optim.lion", "lion_32bit"),
    ("bitsandbytes.optim.lion8bit", "lion_8bit"),
    ("bitsandbytes.optim.pagedlion", "paged_lion"),
    ("bitsandbytes.optim.pagedlion8bit", "paged_lion_8bit"),
    ("bitsandbytes.optim.ademamix", "ademamix"),
    ("bitsandbytes.optim.ademamix8bit", "ademamix_8bit"),
    ("pagedadamw8bit", "paged_adamw_8bit"),
    ("pagedadamw", "paged_adamw"),
    ("paged_adamw_32bit", "paged_adamw"),
    ("paged_adam", "paged_adamw"),
    ("adamw_torch_4bit", "adamw_4bit"),
    ("decoupled_lionw", "lion"),
    ("paged_lion_32bit", "paged_lion"),
    ("adamw_torch_fp8", "adamw_fp8"),
    ("galore_adamw", "galore"),
    ("galore_adamw_8bit", "galore_8bit"),
    ("galore_adafactor", "other"),
    ("galore_adafactor_layerwise", "other"),
    // Those that step within backward, which a reader states in addition to the name.
    ("galore_adamw_layerwise", "galore"),
    ("galore_adamw_8bit_layerwise", "galore_8bit"),
    // GaLore's own program (`torchrun_main.py`).
    ("galore_adamw8bit", "galore_8bit"),
    ("galore_adamw8bit_per_layer", "galore_8bit"),
    ("adam8bit_per_layer", "other"),
    ("apollo_adamw", "apollo"),
    ("apollo_adamw_layerwise", "apollo"),
    ("adalomo", "lomo"),
    ("schedule_free_adamw", "schedule_free"),
    ("schedule_free_radam", "schedule_free"),
    // From torchdistx; its moments are fp32 unless requested otherwise, which the Trainer does not do.
    ("adamw_anyprecision", "adamw_32bit"),
    // From bitsandbytes with 32 bits, the default for a name without a suffix.
    ("rmsprop_bnb", "rmsprop_32bit"),
    ("rmsprop_bnb_32bit", "rmsprop_32bit"),
    ("rmsprop_bnb_8bit", "rmsprop_8bit"),
    ("paged_ademamix_32bit", "paged_ademamix"),
    ("decoupled_adamw", "adam"),
    ("decoupledadamw", "adam"),
    ("fusedsgd", "sgd"),
];

/// Number formats by their names in PyTorch, NumPy and Hydra.
const FORMATS: [(&str, &str); 9] = [
    ("float32", "fp32"),
    ("float", "fp32"),
    ("32", "fp32"),
    ("bfloat16", "bf16"),
    ("float16", "fp16"),
    ("half", "fp16"),
    ("uint8", "fp8"),
    ("float8_e4m3fn", "fp8"),
    ("float8", "fp8"),
];

/// The setting's word for a value in another spelling; the value itself if no other word is known.
pub(super) fn word(field: Field, written: &str) -> String {
    let lower = written.to_ascii_lowercase();
    // Case is ignored in YAML and in enums, and no two values here differ only by case.
    let found = match field {
        Field::Optimizer if ADAM.split_ascii_whitespace().any(|name| name == lower) => Some("adam"),
        Field::Optimizer => OPTIMIZERS.iter().find(|(name, _)| *name == lower).map(|(_, word)| *word),
        // The words of bigscience and MindSpeed for rope.
        Field::PositionEmbeddingType if matches!(written, "rotary" | "deepseek4") => Some("rope"),
        _ if is_format(field) => {
            let name = lower.strip_prefix("torch.").unwrap_or(&lower);
            // Formats without an entry keep their own name, without torch's prefix, for the setting to accept or
            // reject.
            FORMATS.iter().find(|(known, _)| *known == name).map(|(_, word)| *word).or(Some(name))
        }
        _ => None,
    };
    found.map_or_else(|| written.to_owned(), str::to_owned)
}

fn is_format(field: Field) -> bool {
    matches!(field.kind(), ValueKind::Word(words) if words.contains(&"fp32"))
}

#[cfg(test)]
mod tests {
    use super::word;
    use shardscope_plan::Field;

    #[test]
    fn harmless_spellings_are_adam_and_others_are_not() {
        for name in ["fusedadamw", "FusedAdam", "adamw_torch_fused", "AdamW", "distributed_fused_adam"] {
            assert_eq!(word(Field::Optimizer, name), "adam", "{name}");
        }
        assert_eq!(word(Field::Optimizer, "adamw_torch_8bit"), "adamw_8bit");
        assert_eq!(word(Field::ExpAvgDtype, "torch.bfloat16"), "bf16");
        assert_eq!(word(Field::ParamsDtype, "float32"), "fp32");
        assert_eq!(word(Field::Normalization, "RMSNorm"), "RMSNorm");
    }
}
