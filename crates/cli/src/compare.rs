//! `shardscope compare`: two runs side by side.

use std::process::ExitCode;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use shardscope::link::Pasted;
use shardscope::plan::Plan;
use shardscope::report::compare::{
    Amount, Cause, ComparedNumber, Comparison, SettingDifference, Side, compare_plans,
};
use shardscope::report::{Report, text::inert};

use crate::beside::{Places, completed};
use crate::call_error::CallError;
use crate::gate::Figures;
use crate::input::{Answer, Changes, setting};
use crate::output::{BOLD, Format, GREEN, NO_PLAN, RED, coloured, harmless, print, print_json, refuse, tell};

/// Parts of memory and of time listed as causes, at most.
const CAUSES: usize = 8;

/// `compare`.
#[derive(Args)]
pub(crate) struct CompareArguments {
    /// The run as it is: a file, `-` for standard input, or a link.
    #[arg(value_name = "BEFORE")]
    before: String,
    /// The run as it would be; left out, it is BEFORE with what --with changes.
    #[arg(value_name = "AFTER", required_unless_present = "with")]
    after: Option<String>,
    /// Change a setting of AFTER alone, by a name that `shardscope settings` lists.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    with: Vec<(String, String)>,
    #[command(flatten)]
    changes: Changes,
    /// Also numbers that are the same, and settings that follow from others.
    #[arg(long)]
    all: bool,
    /// How the comparison is written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One side, read and estimated.
pub(crate) struct Read {
    /// Resolution of its texts.
    pub(crate) answer: Answer,
    /// Their plan.
    pub(crate) plan: Plan,
    /// Its estimates.
    pub(crate) report: Report,
}

impl Read {
    /// Resolves and estimates `pasted`.
    ///
    /// # Errors
    /// What was read, if it does not form a plan.
    pub(crate) fn new(mut pasted: Pasted, places: &Places) -> Result<Self, Box<Answer>> {
        let (mut answer, _) = completed(&mut pasted, places);
        match answer.estimated() {
            Some((plan, report)) => Ok(Self { answer, plan, report }),
            None => Err(Box::new(answer)),
        }
    }

    fn side(&self) -> Side<'_> {
        Side { resolution: &self.answer.resolution, plan: &self.plan, report: &self.report }
    }
}

/// Prints what differs; exits with 2 if one of them does not form a plan.
pub(crate) fn run(arguments: &CompareArguments) -> ExitCode {
    let with = Changes { settings: arguments.with.clone(), ..Changes::default() };
    // Before any file is read, as for all other changes.
    if let Err(problem) = with.checked() {
        return refuse(&problem);
    }
    let read = |file: &str, with: &Changes| {
        let mut pasted = arguments.changes.read(&[file.to_owned()])?;
        with.put_into(&mut pasted);
        Ok::<_, CallError>(pasted)
    };
    let after_name = arguments.after.as_deref().unwrap_or(&arguments.before);
    let places = |file: &str| Places::new(&[file.to_owned()]);
    let before = match read(&arguments.before, &Changes::default()) {
        Ok(before) => before,
        Err(problem) => return refuse(&problem),
    };
    let after = if arguments.after.is_none() {
        // Standard input can be read once.
        let mut after = before.clone();
        with.put_into(&mut after);
        after
    } else {
        match read(after_name, &with) {
            Ok(after) => after,
            Err(problem) => return refuse(&problem),
        }
    };
    // Both are read before either is refused, so that the caller sees everything that is missing.
    let (before, after) =
        match (Read::new(before, &places(&arguments.before)), Read::new(after, &places(after_name))) {
            (Ok(before), Ok(after)) => (before, after),
            (before, after) => {
                for (name, side) in [("BEFORE", before), ("AFTER", after)] {
                    if let Err(answer) = side {
                        tell(&format!("{name} makes no plan\n{}", answer.obstacles_to_caller()));
                    }
                }
                return ExitCode::from(NO_PLAN);
            }
        };
    let comparison = compare_plans(before.side(), after.side());
    match arguments.format {
        Format::Text => print(&text(&comparison, arguments.all)),
        Format::Markdown => print(&markdown(&comparison, arguments.all)),
        Format::Json => print_json(&document(&before, &after)),
    }
    ExitCode::SUCCESS
}

/// Two runs and what differs, in bare numbers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Differences {
    /// The run as it is.
    before: Figures,
    /// The run as it would be.
    after: Figures,
    /// Settings with different values, those that someone stated first.
    settings: Vec<SettingOf>,
    /// Every figure of both.
    sections: Vec<SectionOf>,
    /// The parts of the fullest GPU's memory that changed most.
    memory_causes: Vec<CauseOf>,
    /// The parts of the step that changed most.
    time_causes: Vec<CauseOf>,
}

/// A setting with two values.
#[derive(Debug, Serialize, JsonSchema)]
struct SettingOf {
    /// Its name.
    name: &'static str,
    /// Empty where it has no value.
    before: String,
    /// Empty where it has no value.
    after: String,
    /// Whether someone stated one of the two.
    stated: bool,
}

/// Figures that belong together.
#[derive(Debug, Serialize, JsonSchema)]
struct SectionOf {
    /// What they are about.
    title: &'static str,
    lines: Vec<LineOf>,
}

/// A figure of both: bytes, seconds, counts, rates a second or shares, as `unit` says.
#[derive(Debug, Serialize, JsonSchema)]
struct LineOf {
    /// What it is.
    label: String,
    /// byte, second, count, per second, or share from 0 to 1.
    unit: &'static str,
    /// Null where the run has no such figure. Unit: `unit`.
    before: Option<f64>,
    /// Null where the run has no such figure. Unit: `unit`.
    after: Option<f64>,
}

/// A part that changed.
#[derive(Debug, Serialize, JsonSchema)]
struct CauseOf {
    /// Where it lies.
    path: String,
    /// byte or second.
    unit: &'static str,
    /// Unit: `unit`.
    before: f64,
    /// Unit: `unit`.
    after: f64,
}

/// What differs between two runs.
pub(crate) fn document(before: &Read, after: &Read) -> Differences {
    let comparison = compare_plans(before.side(), after.side());
    let line = |line: &ComparedNumber| LineOf {
        label: line.label.clone(),
        // At least one side has the figure; otherwise there would be no line.
        unit: line.before.or(line.after).map_or("", |amount| amount.unit()),
        before: line.before.map(|amount| amount.number()),
        after: line.after.map(|amount| amount.number()),
    };
    let cause = |cause: &Cause| CauseOf {
        path: cause.path.clone(),
        unit: cause.after.unit(),
        before: cause.before.number(),
        after: cause.after.number(),
    };
    let setting = |one: &SettingDifference| SettingOf {
        name: one.name,
        before: one.before.clone(),
        after: one.after.clone(),
        stated: one.stated,
    };
    Differences {
        before: Figures::new(&before.plan, &before.report),
        after: Figures::new(&after.plan, &after.report),
        settings: comparison.settings.iter().map(setting).collect(),
        sections: comparison
            .sections
            .iter()
            .map(|section| SectionOf {
                title: section.title,
                lines: section.lines.iter().map(line).collect(),
            })
            .collect(),
        memory_causes: comparison.memory_causes.iter().map(cause).collect(),
        time_causes: comparison.time_causes.iter().map(cause).collect(),
    }
}

/// A row: what, before, after, change, and whether it is for the better.
struct ComparedRow {
    cells: [String; 4],
    better: Option<bool>,
}

/// A title and its rows.
type Block = (String, Vec<ComparedRow>);

fn blocks(comparison: &Comparison, all: bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let settings = comparison.settings.iter().filter(|setting| all || setting.stated);
    // A dash, since an empty cell could be an empty value.
    let shown = |value: &str| if value.is_empty() { "-".to_owned() } else { harmless(value) };
    let rows = settings.map(|setting| ComparedRow {
        cells: [setting.name.to_owned(), shown(&setting.before), shown(&setting.after), String::new()],
        better: None,
    });
    let settings: Vec<ComparedRow> = rows.collect();
    blocks.push(("Settings".to_owned(), settings));
    for section in &comparison.sections {
        // By the change as displayed, so that it agrees with the row's text.
        let lines = section.lines.iter().filter(|line| all || line.change().is_some());
        let amount = |amount: Option<Amount>| amount.map_or_else(|| "-".to_owned(), |amount| amount.shown());
        let rows = lines.map(|line| ComparedRow {
            cells: [
                line.label.clone(),
                amount(line.before),
                amount(line.after),
                line.change().unwrap_or_default(),
            ],
            better: line.is_better(),
        });
        blocks.push((section.title.to_owned(), rows.collect()));
    }
    for (title, causes) in [
        ("Why the memory differs", &comparison.memory_causes),
        ("Why the time differs", &comparison.time_causes),
    ] {
        let rows = causes.iter().take(CAUSES).map(|cause| ComparedRow {
            cells: [
                cause.path.clone(),
                cause.before.shown(),
                cause.after.shown(),
                cause.after.difference(cause.before),
            ],
            better: None,
        });
        blocks.push((title.to_owned(), rows.collect()));
    }
    // A heading without rows would suggest that something differs.
    blocks.retain(|(_, rows)| !rows.is_empty());
    blocks
}

fn text(comparison: &Comparison, all: bool) -> String {
    let blocks = blocks(comparison, all);
    if blocks.is_empty() {
        return "the two are the same\n".to_owned();
    }
    let mut out = String::new();
    for (title, rows) in &blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &format!("{}\n", coloured(title, BOLD));
        let wide = |column: usize| {
            let lengths = rows.iter().filter_map(|row| row.cells.get(column));
            lengths.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let [label, before, after] = [0, 1, 2].map(wide);
        for row in rows {
            let [name, from, to, change] = &row.cells;
            let change = match row.better {
                Some(true) => coloured(change, GREEN),
                Some(false) => coloured(change, RED),
                None => change.clone(),
            };
            // The change is not padded: it is coloured, and the codes would count as width.
            let line = format!("  {name:<label$}  {from:>before$} → {to:>after$}  {change}");
            out += line.trim_end();
            out.push('\n');
        }
    }
    out
}

fn markdown(comparison: &Comparison, all: bool) -> String {
    let blocks = blocks(comparison, all);
    if blocks.is_empty() {
        return "The two are the same.\n".to_owned();
    }
    let mut out = String::new();
    for (title, rows) in &blocks {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &format!("### {title}\n\n| | before | after | change |\n|---|---:|---:|---:|\n");
        for row in rows {
            let cells: Vec<String> = row.cells.iter().map(|cell| inert(cell)).collect();
            out += &format!("| {} |\n", cells.join(" | "));
        }
    }
    out
}
