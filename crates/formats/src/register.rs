//! Every launch format, one per line. The order decides if two claim a text equally strongly.

use super::accelerate::Accelerate;
use super::aws_fsdp::AwsFsdp;
use super::deepspeed::DeepSpeed;
use super::dotted;
use super::flags::MegatronFlags;
use super::format::Format;
use super::frameworks::{
    ALIGN_ANYTHING, ARCTIC, AUTOMODEL, CHATLEARN, DRAFTS, H2O, LEVANTER, LINGUA, LLM_FOUNDRY, LUDWIG, Litgpt,
    MINDSPEED_FSDP, MISTRAL, MaxText, NEURON, OLMO, OLMO_CORE, PIPELINE_RL, PRIME_RL, PRIME_SFT, Torchtune,
    VEOMNI,
};
use super::huggingface::HuggingFace;
use super::kubernetes::Kubernetes;
use super::launcher::Launcher;
use super::nanotron::Nanotron;
use super::nemo::Nemo;
use super::neox::GptNeox;
use super::reader::{Claim, Command, Reader};
use super::recipes::{Recipe, Xtuner};
use super::rl::RlFormat;
use super::skypilot::SkyPilot;
use super::titan::Torchtitan;
use super::trainer::{Dialect, FsdpFile, Oumi, Trainer};
use crate::Reading;
use shardscope_config_tree::Tree;
use shardscope_plan::Field;

/// Every reader, the more specific ones before the more general ones.
const READERS: &[&dyn Reader] = &[
    &Kubernetes,
    &SkyPilot,
    &LLM_FOUNDRY,
    &OLMO,
    &OLMO_CORE,
    &LINGUA,
    &AUTOMODEL,
    &DRAFTS,
    &Torchtune,
    &PRIME_RL,
    &PRIME_SFT,
    &Litgpt,
    &LEVANTER,
    &MINDSPEED_FSDP,
    &MaxText,
    &NEURON,
    &VEOMNI,
    &ARCTIC,
    &MISTRAL,
    &H2O,
    &LUDWIG,
    &ALIGN_ANYTHING,
    &CHATLEARN,
    &PIPELINE_RL,
    &RlFormat::Verl,
    &RlFormat::MindSpeedRl,
    &RlFormat::NemoRl,
    &RlFormat::OpenRlhf,
    &RlFormat::VerlSft,
    &RlFormat::OpenInstruct,
    &RlFormat::SkyRl,
    &RlFormat::Roll,
    &RlFormat::Areal,
    &RlFormat::EasyR1,
    &Oumi,
    &Trainer(Dialect::Axolotl),
    &Trainer(Dialect::LlamaFactory),
    &Trainer(Dialect::OpenInstruct),
    &Trainer(Dialect::Trl),
    &Trainer(Dialect::Swift),
    &Trainer(Dialect::DeepSpeedChat),
    &Trainer(Dialect::LlamaCookbook),
    &Trainer(Dialect::Transformers),
    &FsdpFile,
    &AwsFsdp,
    &MegatronFlags,
    &Nanotron,
    &Torchtitan,
    &Nemo,
    &Recipe,
    &Launcher,
    &Xtuner,
    &GptNeox,
    &Accelerate,
    &HuggingFace,
    &DeepSpeed,
];

/// Every format, in the order of the register.
pub fn formats() -> impl Iterator<Item = Format> {
    READERS.iter().map(|reader| Format::new(*reader))
}

/// The format with the strongest claim, and that claim; among equals, the first.
fn surest(claim: impl Fn(Format) -> Option<Claim>) -> Option<(Claim, Format)> {
    let mut best: Option<(Claim, Format)> = None;
    for format in formats() {
        if let Some(claim) = claim(format)
            && best.as_ref().is_none_or(|(most, _)| claim > *most)
        {
            best = Some((claim, format));
        }
    }
    best
}

/// The format of a settings file, recognized by its keys; `None` if no format has such keys.
#[must_use]
pub fn classify(tree: &Tree) -> Option<Format> {
    surest(|format| format.recognise(tree)).map(|(_, format)| format)
}

/// Reads a command with the format that claims it, and returns the strength of that claim; `None` if none claims it.
#[must_use]
pub fn read_command(command: &Command<'_>) -> Option<(Claim, Reading)> {
    let (claim, format) = surest(|format| format.claims(command))?;
    let mut reading = format.read_command(command);
    format.tell_older(&mut reading, command.installed);
    Some((claim, reading))
}

/// Whether a word is a setting under dotted keys (`model.tensor_model_parallel_size=8`, `--training.seq_len`), or a
/// program that takes nothing else.
#[must_use]
pub fn is_setting(word: &str) -> bool {
    formats().any(|format| {
        format.programs().contains(&word) || dotted::is_under(word, format.dotted()) || format.is_word(word)
    })
}

/// Every key that a reader maps directly, with its format and its setting, for looking keys up.
#[must_use]
pub fn keys() -> Vec<(Format, &'static str, Field)> {
    formats()
        .flat_map(|format| format.keys().into_iter().map(move |(key, field)| (format, key, field)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::formats;
    use std::collections::HashSet;

    #[test]
    fn formats_are_distinguished_by_name() {
        let mut names = HashSet::new();
        for format in formats() {
            assert!(names.insert(format.name()), "{} twice", format.name());
            assert!(!format.about().is_empty(), "{}", format.name());
        }
    }
}
