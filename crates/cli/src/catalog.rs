//! `shardscope models` and `shardscope accelerators`: what is known by name.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use shardscope::catalog::{accelerator, accelerator_names, find, model_names};
use shardscope::quantity::{Bytes, BytesPerSecond, gib};

use crate::output::print;

/// `models` and `accelerators`.
#[derive(Args)]
pub(crate) struct ListArguments {
    /// Only names that contain this, in any case.
    #[arg(value_name = "WORD")]
    word: Option<String>,
    /// How the list is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A line each.
    Text,
    /// A list of objects.
    Json,
}

impl ListArguments {
    fn wants(&self, name: &str) -> bool {
        let word = self.word.as_deref().unwrap_or_default();
        name.to_ascii_lowercase().contains(&word.to_ascii_lowercase())
    }

    fn show<T: Serialize>(&self, rows: &[T], line: impl Fn(&T) -> String) -> ExitCode {
        match self.format {
            Format::Text => print(&rows.iter().map(line).collect::<String>()),
            // Writing to memory cannot fail, and all keys are text.
            Format::Json => print(&(serde_json::to_string_pretty(rows).unwrap_or_default() + "\n")),
        }
        ExitCode::SUCCESS
    }
}

#[derive(Serialize)]
struct Model {
    name: &'static str,
    /// Settings by Megatron's name, as they are stated.
    settings: std::collections::BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct Accelerator {
    name: &'static str,
    /// Unit: byte.
    memory: Bytes,
    /// Unit: byte per second.
    memory_bandwidth: BytesPerSecond,
}

pub(crate) fn models(arguments: &ListArguments) -> ExitCode {
    let rows: Vec<Model> = model_names()
        .filter(|name| arguments.wants(name))
        .filter_map(|name| {
            let settings = find(name).model()?.settings();
            let settings = settings.into_iter().map(|(field, value)| (field.name(), value)).collect();
            Some(Model { name, settings })
        })
        .collect();
    arguments.show(&rows, |model| {
        let of = |name: &str| model.settings.get(name).map_or("-", String::as_str);
        let [layers, hidden, heads] = ["num_layers", "hidden_size", "num_attention_heads"].map(of);
        format!("{:<32} {layers:>4} layers  {hidden:>6} hidden  {heads:>4} heads\n", model.name)
    })
}

pub(crate) fn accelerators(arguments: &ListArguments) -> ExitCode {
    let rows: Vec<Accelerator> = accelerator_names()
        .filter(|name| arguments.wants(name))
        .filter_map(|name| {
            let known = accelerator(name)?;
            Some(Accelerator { name, memory: known.memory, memory_bandwidth: known.memory_bandwidth })
        })
        .collect();
    arguments.show(&rows, |row| {
        let terabytes = row.memory_bandwidth.get() / 1e12;
        format!("{:<20} {:>12}  {terabytes:>5.2} TB/s\n", row.name, gib(row.memory))
    })
}
