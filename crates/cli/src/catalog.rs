//! `shardscope models` and `shardscope accelerators`: what is known by name.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shardscope::catalog::{accelerator, accelerator_names, find, model_names};
use shardscope::plan::{Field, ValueKind};
use shardscope::source::suggest;
use shardscope::units::{Bytes, BytesPerSecond, gib};

use crate::call_error::CallError;
use crate::output::{Format, print, print_json, refuse};

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

impl ListArguments {
    fn wants(&self, name: &str) -> bool {
        let word = self.word.as_deref().unwrap_or_default();
        name.to_ascii_lowercase().contains(&word.to_ascii_lowercase())
    }

    /// Writes `rows`, each by its `cells` under `titles`: words to the left, figures to the right. A word that is in no name of
    /// `known` is refused.
    fn show<T: Serialize, const N: usize>(
        &self,
        titles: [&'static str; N],
        rows: &[T],
        known: impl Iterator<Item = &'static str>,
        cells: impl Fn(&T) -> [String; N],
    ) -> ExitCode {
        // A word that found nothing is more likely misspelt than a wish for an empty table.
        if let (Some(word), []) = (&self.word, rows) {
            let kind = titles.first().copied().unwrap_or_default();
            return refuse(&CallError::UnknownName { kind, word: word.clone(), meant: suggest(word, known) });
        }
        let table: Vec<[String; N]> = rows.iter().map(cells).collect();
        // Figures to the right, but only in columns that have nothing else.
        let is_figure = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let right: [bool; N] = std::array::from_fn(|column| {
            column > 0 && table.iter().filter_map(|row| row.get(column)).all(is_figure)
        });
        match self.format {
            Format::Json => print_json(&rows),
            Format::Markdown => {
                let rule = right.map(|right| if right { "---:" } else { "---" }).join("|");
                let mut out = format!("| {} |\n|{rule}|\n", titles.join(" | "));
                out.extend(table.iter().map(|row| format!("| {} |\n", row.join(" | "))));
                print(&out);
            }
            Format::Text => {
                let titles = titles.map(str::to_owned);
                let wide = |column: usize| {
                    let cells = table.iter().chain([&titles]).filter_map(|row| row.get(column));
                    cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
                };
                let widths: [usize; N] = std::array::from_fn(wide);
                let mut out = String::new();
                for row in [&titles].into_iter().chain(&table) {
                    // Titles are a row like others, so that they share the widths.
                    let mut line = String::new();
                    for ((cell, width), right) in row.iter().zip(widths).zip(right) {
                        line += if line.is_empty() { "" } else { "  " };
                        line += &if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                    }
                    out += line.trim_end();
                    out.push('\n');
                }
                print(&out);
            }
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

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    /// What it may hold.
    takes: String,
    about: &'static str,
}

/// What a setting may hold, in a few words.
fn takes(kind: ValueKind) -> String {
    match kind {
        ValueKind::Count(least, most) => format!("{least} to {most}"),
        ValueKind::Real(least, most) => format!("{least} to {most}, real"),
        ValueKind::Flag => "true or false".to_owned(),
        ValueKind::Word(words) => words.join(", "),
        ValueKind::Text => "text".to_owned(),
        ValueKind::Counts => "whole numbers".to_owned(),
        ValueKind::Words => "words".to_owned(),
    }
}

pub(crate) fn settings(arguments: &ListArguments) -> ExitCode {
    // By what a setting is about, too: few know Megatron's names by heart.
    let wants = |field: &&Field| arguments.wants(field.name()) || arguments.wants(field.about());
    let rows: Vec<Setting> = Field::ALL
        .iter()
        .filter(wants)
        .map(|field| Setting { name: field.name(), takes: takes(field.kind()), about: field.about() })
        .collect();
    let known = Field::ALL.iter().map(|field| field.name());
    // Words of many choices would push what stands behind them out of sight.
    arguments.show(["setting", "what it is", "what it takes"], &rows, known, |row| {
        [row.name.to_owned(), row.about.to_owned(), row.takes.clone()]
    })
}

pub(crate) fn models(arguments: &ListArguments) -> ExitCode {
    let rows: Vec<Model> = model_names()
        .filter(|name| arguments.wants(name))
        .filter_map(|name| {
            let settings = find(name).model()?.settings();
            // Models that cannot be said by settings are not listed, since nothing could be done with them.
            let settings = settings.into_iter().map(|(field, value)| (field.name(), value)).collect();
            Some(Model { name, settings })
        })
        .collect();
    arguments.show(["model", "layers", "hidden size", "attention heads"], &rows, model_names(), |model| {
        // A dash counts as a figure, so that one gap does not turn a column to the left.
        let of = |name: &str| model.settings.get(name).cloned().unwrap_or_else(|| "-".to_owned());
        [model.name.to_owned(), of("num_layers"), of("hidden_size"), of("num_attention_heads")]
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
    arguments.show(["accelerator", "memory", "bandwidth"], &rows, accelerator_names(), |row| {
        let terabytes = row.memory_bandwidth.get() / 1e12;
        [row.name.to_owned(), gib(row.memory), format!("{terabytes:.2} TB/s")]
    })
}
