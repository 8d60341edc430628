//! `shardscope models` and `shardscope accelerators`: what is known by name.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use shardscope::catalog::{accelerator, accelerator_names, find, model_names};
use shardscope::plan::{Field, ValueKind};
use shardscope::source::suggest;
use shardscope::units::{Bytes, BytesPerSecond, gib};

use crate::call_error::CallError;
use crate::output::{Format, cell, print, print_json, refuse, width};

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
        // A word that found nothing is more likely misspelt than a request for an empty table.
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
                let widths = within(width(), std::array::from_fn(wide), right);
                let rows = [&titles].into_iter().chain(&table);
                // Titles are a row like others, so that they share the widths.
                print(&rows.map(|row| lined(row, widths, right)).collect::<String>());
            }
        }
        ExitCode::SUCCESS
    }
}

/// Widths that fit into `columns` of a terminal: columns of words except the first shrink, the widest first, as long
/// as they stay readable.
fn within<const N: usize>(columns: Option<usize>, mut widths: [usize; N], right: [bool; N]) -> [usize; N] {
    let Some(columns) = columns else { return widths };
    while widths.iter().sum::<usize>() + GAP.len() * N.saturating_sub(1) > columns {
        let words = widths.iter_mut().zip(right).skip(1).filter(|(_, right)| !right).map(|(width, _)| width);
        let Some(widest) = words.filter(|width| **width > NARROWEST).max() else { return widths };
        *widest -= 1;
    }
    widths
}

/// A row in lines as wide as its columns.
fn lined<const N: usize>(row: &[String; N], widths: [usize; N], right: [bool; N]) -> String {
    let cells = row.iter().zip(widths).map(|(text, width)| cell(text, width)).collect::<Vec<_>>();
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for place in 0..lines {
        let mut line = String::new();
        for (column, ((cell, width), right)) in cells.iter().zip(widths).zip(right).enumerate() {
            let text = cell.get(place).map_or("", String::as_str);
            line += if column == 0 { "" } else { GAP };
            line += &if right { format!("{text:>width$}") } else { format!("{text:<width$}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// The gap between two columns.
const GAP: &str = "  ";
/// Minimum width of a column of words. Unit: column of the terminal.
const NARROWEST: usize = 16;

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
    // Also by its description: few know Megatron's names by heart.
    let wants = |field: &&Field| arguments.wants(field.name()) || arguments.wants(field.about());
    let rows: Vec<Setting> = Field::ALL
        .iter()
        .filter(wants)
        .map(|field| Setting { name: field.name(), takes: takes(field.kind()), about: field.about() })
        .collect();
    let known = Field::ALL.iter().map(|field| field.name());
    // A long list of choices would push later columns out of sight.
    arguments.show(["setting", "what it is", "what it takes"], &rows, known, |row| {
        [row.name.to_owned(), row.about.to_owned(), row.takes.clone()]
    })
}

pub(crate) fn models(arguments: &ListArguments) -> ExitCode {
    let rows: Vec<Model> = model_names()
        .filter(|name| arguments.wants(name))
        .filter_map(|name| {
            let settings = find(name).model()?.settings();
            // Models that settings cannot express are not listed, since nothing could be done with them.
            let settings = settings.into_iter().map(|(field, value)| (field.name(), value)).collect();
            Some(Model { name, settings })
        })
        .collect();
    arguments.show(["model", "layers", "hidden size", "attention heads"], &rows, model_names(), |model| {
        // A dash counts as a figure, so that a gap does not left-align a whole column.
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

#[cfg(test)]
mod tests {
    use super::{lined, within};

    #[test]
    fn words_give_way_to_the_width_of_a_terminal_and_names_and_figures_do_not() {
        let (widths, right) = ([30, 60, 20, 9], [false, false, false, true]);
        assert_eq!(within(None, widths, right), widths);
        assert_eq!(within(Some(200), widths, right), widths);
        assert_eq!(within(Some(100), widths, right), [30, 35, 20, 9]);
        // As long as they stay readable.
        assert_eq!(within(Some(20), widths, right), [30, 16, 16, 9]);
        let row = ["tp_comm_overlap", "communication behind matmuls", "1"].map(str::to_owned);
        let lines = "tp_comm_overlap  communication  1\n                 behind\n                 matmuls\n";
        assert_eq!(lined(&row, [15, 13, 1], [false, false, true]), lines);
    }
}
