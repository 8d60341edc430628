//! `shardscope explain`: why a number has its value.

use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use shardscope::report::document::Document;

use crate::input::Input;
use crate::output::{BOLD, Format, NO_PLAN, coloured, print, print_json, refuse, tell};

/// Maximum number of figures explained at once.
pub(crate) const MOST: usize = 40;

/// `explain`.
#[derive(Args)]
pub(crate) struct ExplainArguments {
    /// Words of the number's place, for example "gradients", "time/pipeline" or "mlp input"; all of them must be in it.
    #[arg(long, value_name = "WORDS", default_value = "")]
    of: String,
    /// How the numbers are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    input: Input,
}

/// A number of the document with its formula.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// Where it stands in the document.
    pub(crate) place: String,
    /// The number: bytes below `memory` and `communication`, seconds below `time`, FLOPs below `flops`, counts elsewhere.
    /// Unit: `unit`.
    pub(crate) value: Option<f64>,
    /// What the number is of.
    pub(crate) unit: &'static str,
    /// In symbols.
    pub(crate) formula: String,
    /// In words.
    pub(crate) meaning: String,
    /// The symbols with this run's values.
    pub(crate) symbols: serde_json::Map<String, Value>,
    /// What each symbol means, with its unit.
    pub(crate) letters: serde_json::Map<String, Value>,
    /// Paper, section and equation, or the framework's file.
    pub(crate) source: String,
}

impl Explained {
    /// ` = value unit`; empty if the document has no number there.
    fn equals(&self) -> String {
        self.value.map(|value| format!(" = {value} {}", self.unit)).unwrap_or_default()
    }

    /// Each symbol with this run's value and what it means.
    fn symbols(&self) -> impl Iterator<Item = (&String, &Value, &str)> {
        let meaning = |name: &String| self.letters.get(name).and_then(Value::as_str).unwrap_or_default();
        self.symbols.iter().map(move |(name, value)| (name, value, meaning(name)))
    }

    fn text(&self) -> String {
        let place = coloured(&self.place, BOLD);
        let mut out = format!("{place}{}\n  {}\n  {}\n", self.equals(), self.formula, self.meaning);
        for (name, value, meaning) in self.symbols() {
            out += &format!("    {name} = {value}  {meaning}\n");
        }
        out + &format!("  {}\n", self.source)
    }

    fn markdown(&self) -> String {
        let mut out =
            format!("- **{}**{}: `{}`\n\n  {}\n\n", self.place, self.equals(), self.formula, self.meaning);
        for (name, value, meaning) in self.symbols() {
            out += &format!("  - `{name}` = {value} {meaning}\n");
        }
        out + &format!("\n  {}\n\n", self.source)
    }
}

/// Prints the numbers whose place has all the words.
pub(crate) fn run(arguments: &ExplainArguments) -> ExitCode {
    let mut answer = match arguments.input.answer() {
        Ok(answer) => answer,
        Err(problem) => return refuse(&problem),
    };
    let Some((_, found)) = answer.estimated() else {
        tell(&answer.obstacles_to_caller());
        return ExitCode::from(NO_PLAN);
    };
    let document = Document::new(&answer.source, &answer.resolution, Some(&found));
    // Explained from the document, so that places are exactly those that a caller of it sees.
    let (found, more) = match explained(&document.to_json(false), &arguments.of) {
        Ok(found) => found,
        Err(problem) => return refuse(&problem),
    };
    let mut out = String::new();
    match arguments.format {
        Format::Json => {
            print_json(&found);
            return ExitCode::SUCCESS;
        }
        Format::Text => found.iter().for_each(|one| out += &one.text()),
        Format::Markdown => found.iter().for_each(|one| out += &one.markdown()),
    }
    if more > 0 {
        out += &format!("and {more} more; add words to --of to narrow them down\n");
    }
    print(&out);
    ExitCode::SUCCESS
}

/// The numbers of a document whose place has all of `words`, and how many more there are.
///
/// # Errors
/// If there is none, a sentence with existing places.
pub(crate) fn explained(document: &str, words: &str) -> Result<(Vec<Explained>, usize), String> {
    let document: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    let report = document.get("report").unwrap_or(&Value::Null);
    let words: Vec<String> = words.split_ascii_whitespace().map(str::to_lowercase).collect();
    let all = report.get("explanations").and_then(Value::as_object).into_iter().flatten();
    let (mut found, mut more, mut others) = (Vec::new(), 0_usize, Vec::new());
    for (place, explanation) in all {
        let lower = place.to_lowercase();
        // All words, in any order: a reader remembers parts of a place.
        if !words.iter().all(|word| lower.contains(word.as_str())) {
            others.push(place.as_str());
        } else if found.len() < MOST {
            let text =
                |key: &str| explanation.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let map =
                |key: &str| explanation.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
            found.push(Explained {
                place: place.clone(),
                value: value_at(report, place),
                unit: unit_of(place),
                formula: text("formula"),
                meaning: text("meaning"),
                symbols: map("symbols"),
                letters: map("letters"),
                source: text("source"),
            });
        } else {
            more += 1;
        }
    }
    if found.is_empty() {
        // Spread over all places, so that the examples are of different parts.
        let step = others.len().div_ceil(8).max(1);
        let some: Vec<&str> = others.into_iter().step_by(step).collect();
        return Err(format!(
            "no figure matches all these words; there are, for example, {}",
            some.join(", ")
        ));
    }
    Ok((found, more))
}

/// The unit of numbers below the first step of a place.
fn unit_of(place: &str) -> &'static str {
    match place.split('/').next() {
        Some("memory" | "communication") => "bytes",
        Some("time") => "seconds",
        Some("flops") => "FLOP",
        _ => "",
    }
}

/// The number at a place: keys and indices from the report, then labels down a breakdown.
fn value_at(here: &Value, place: &str) -> Option<f64> {
    if place.is_empty() {
        // A figure itself, or a node of a breakdown with its value.
        return here.as_f64().or_else(|| here.get("value").and_then(Value::as_f64));
    }
    let (step, rest) = place.split_once('/').unwrap_or((place, ""));
    match here {
        // Lists are addressed by index if the place has one, otherwise by label.
        Value::Array(items) => match step.parse::<usize>() {
            Ok(index) => value_at(items.get(index)?, rest),
            Err(_) => within(items, place),
        },
        Value::Object(keys) => match (keys.get(step), keys.get("children").and_then(Value::as_array)) {
            (Some(next), _) => value_at(next, rest),
            (None, Some(children)) => within(children, place),
            (None, None) => None,
        },
        _ => None,
    }
}

/// The number at a place that begins with the label of one of `items`, which may itself contain a slash.
fn within(items: &[Value], place: &str) -> Option<f64> {
    items.iter().find_map(|item| {
        ["label", "name"].iter().find_map(|key| {
            let rest = place.strip_prefix(item.get(key).and_then(Value::as_str)?)?;
            let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
            value_at(item, rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::value_at;
    use serde_json::json;

    #[test]
    fn labels_may_have_slashes() {
        let step = json!({"label": "step", "value": 3, "children": [
            {"label": "read", "value": 1}, {"label": "read/write", "value": 2, "children": [{"label": "disk", "value": 4}]},
        ]});
        let report = json!({"time": {"breakdown": step, "ranks": [{"name": "a/b", "value": 5}]}});
        for (place, value) in [
            ("time/breakdown", Some(3.0)),
            ("time/breakdown/read", Some(1.0)),
            ("time/breakdown/read/write", Some(2.0)),
            ("time/breakdown/read/write/disk", Some(4.0)),
            ("time/ranks/a/b", Some(5.0)),
            ("time/ranks/0", Some(5.0)),
            ("time/ranks/a", None),
        ] {
            assert_eq!(value_at(&report, place), value, "{place}");
        }
    }
}
