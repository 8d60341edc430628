//! The software that runs a plan, by the name its authors use.

use shardscope_launch::Resolution;
use shardscope_plan::word::DataParallelEngine;
use shardscope_plan::{RlFramework, Software};

/// The software of `resolution`: the trainer's own name if rollouts identify it, and the training software below it.
#[must_use]
pub fn software_name(resolution: &Resolution) -> String {
    // As resolved: the name must agree with the settings table, whatever the plan derives from it.
    let software = resolution.chosen();
    let own = software.map_or("", written);
    // Rollout frameworks are known by their own name; the training software below them (FSDP, Megatron) comes second.
    let Some(framework) = resolution.chosen::<RlFramework>() else { return own.to_owned() };
    let trainer = framework.title();
    let engine = match resolution.chosen() {
        Some(DataParallelEngine::Fsdp1) => "FSDP, ",
        Some(DataParallelEngine::Fsdp2) => "FSDP2, ",
        Some(DataParallelEngine::DeepSpeed) => "DeepSpeed, ",
        Some(DataParallelEngine::Ddp) | None => "",
    };
    match software {
        // Elsewhere the engine is Megatron's own, and its name says it.
        Some(Software::HfTransformers) => format!("{trainer} ({engine}transformers)"),
        Some(Software::Unsloth) => trainer.to_owned(),
        _ => format!("{trainer} ({own})"),
    }
}

/// A software's name in its authors' spelling.
const fn written(software: Software) -> &'static str {
    match software {
        Software::MegatronLegacy | Software::MegatronCoreLocal | Software::MegatronCoreTe => "Megatron-LM",
        Software::MegatronDeepspeed => "Megatron-DeepSpeed",
        Software::GptNeox => "GPT-NeoX",
        Software::TorchFsdp => "PyTorch FSDP",
        Software::HfTransformers => "Hugging Face transformers",
        Software::Torchtune06 => "torchtune 0.6",
        Software::LitgptPretrain => "litgpt pretrain",
        Software::Automodel => "NeMo Automodel",
        Software::Olmo => "OLMo",
        Software::Xtuner => "XTuner",
        Software::OlmoCore => "OLMo-core",
        Software::Scaletorch => "ScaleTorch",
        Software::MaxText => "MaxText",
        Software::Levanter => "levanter",
        Software::Torchtitan
        | Software::Nanotron
        | Software::Torchtune
        | Software::Litgpt
        | Software::Unsloth => software.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::software_name;
    use shardscope_launch::resolve;

    fn named(set: &[(&str, &str)]) -> String {
        let settings: Vec<_> =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        software_name(&resolve(&[], &settings))
    }

    #[test]
    fn rollouts_tell_whose_trainer_it_is() {
        let modules = ("software", "hf_transformers");
        assert_eq!(named(&[modules]), "Hugging Face transformers");
        let verl = named(&[modules, ("rl_framework", "verl"), ("data_parallel_engine", "fsdp1")]);
        assert_eq!(verl, "verl (FSDP, transformers)");
        let open = named(&[modules, ("rl_framework", "openrlhf"), ("data_parallel_engine", "deepspeed")]);
        assert_eq!(open, "OpenRLHF (DeepSpeed, transformers)");
        let slime = named(&[("software", "megatron_core_te"), ("rl_framework", "slime")]);
        assert_eq!(slime, "slime (Megatron-LM)");
        assert_eq!(named(&[("software", "torchtune")]), "torchtune");
    }
}
