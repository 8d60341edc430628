//! `shardscope models` and `shardscope accelerators`: what is known by name.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shardscope::catalog::{accelerator, accelerator_names, find, model_names};
use shardscope::units::{Bytes, BytesPerSecond, gib};

use crate::output::{Format, print, print_json};

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

    /// Writes `rows`, each by its `cells` under `titles`: the first column left, the others right.
    fn show<T: Serialize, const N: usize>(
        &self,
        titles: [&str; N],
        rows: &[T],
        cells: impl Fn(&T) -> [String; N],
    ) -> ExitCode {
        let table: Vec<[String; N]> = rows.iter().map(cells).collect();
        match self.format {
            Format::Json => print_json(&rows),
            Format::Markdown => {
                let rule = vec!["---:"; N.saturating_sub(1)].join("|");
                let mut out = format!("| {} |\n|---|{rule}|\n", titles.join(" | "));
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
                    let mut line = String::new();
                    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                        line += &match column {
                            0 => format!("{cell:<width$}"),
                            _ => format!("  {cell:>width$}"),
                        };
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

pub(crate) fn models(arguments: &ListArguments) -> ExitCode {
    let rows: Vec<Model> = model_names()
        .filter(|name| arguments.wants(name))
        .filter_map(|name| {
            let settings = find(name).model()?.settings();
            let settings = settings.into_iter().map(|(field, value)| (field.name(), value)).collect();
            Some(Model { name, settings })
        })
        .collect();
    arguments.show(["model", "layers", "hidden size", "attention heads"], &rows, |model| {
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
    arguments.show(["accelerator", "memory", "bandwidth"], &rows, |row| {
        let terabytes = row.memory_bandwidth.get() / 1e12;
        [row.name.to_owned(), gib(row.memory), format!("{terabytes:.2} TB/s")]
    })
}
