//! What users paste to repeat a published layout, compared with the row's complete settings: the name of a recipe
//! with the arguments of its command, or the options of the public script. Whatever such a paste leaves out is a
//! default of the release.

use std::sync::OnceLock;

use shardscope::bash::Environment;
use shardscope::estimate::time::time;
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::compared::{Compared, compared};
use super::figures::Figures;

/// Row, release, the reader's answers, paste. Recipes are included if their table (`recipes/bridge.tsv`) has the
/// columns of the row.
const PASTES: &str = include_str!("../../../tests/data/measured/pastes.tsv");

/// A row with the prediction from its paste.
pub struct Pasted {
    /// The row, with the prediction from its complete settings.
    pub of: &'static Compared,
    /// Software and release that measured it.
    pub release: &'static str,
    /// The paste.
    pub text: &'static str,
    /// The resolution of the paste.
    pub resolution: Resolution,
    /// Seconds per step predicted from the paste; none if it does not resolve to a plan.
    pub predicted: Option<f64>,
}

impl Pasted {
    /// Predicted from the paste over measured, minus one.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        self.predicted.map(|seconds| seconds / self.of.row.measured() - 1.0)
    }

    /// Predicted from the paste over predicted from the complete settings, minus one.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        self.predicted.map(|seconds| seconds / self.of.predicted - 1.0)
    }
}

/// Every paste with its row.
pub fn pasted() -> &'static [Pasted] {
    static ALL: OnceLock<Vec<Pasted>> = OnceLock::new();
    ALL.get_or_init(|| PASTES.lines().skip(1).map(pasted_of).collect())
}

fn pasted_of(line: &'static str) -> Pasted {
    let [id, release, answers, text] = line.split('\t').collect::<Vec<_>>()[..] else {
        panic!("not four columns: {line}")
    };
    let of = compared().iter().find(|one| one.row.text("id") == id);
    let of = of.unwrap_or_else(|| panic!("no row {id}"));
    // A script does not name its hardware: the reader chooses it, and answers any questions.
    let mut overrides = vec![(Field::Accelerator.name().to_owned(), of.row.text("gpu").to_owned())];
    let answered = answers.split(' ').filter_map(|answer| answer.split_once('='));
    overrides.extend(answered.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let source = Source::new(text);
    let resolution =
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
    let predicted = resolution.plan.as_ref().map(|plan| time(plan).step.get());
    Pasted { of, release, text, resolution, predicted }
}

/// A group of pastes, and how well they agree.
pub struct Agreement {
    /// The name of the group.
    pub name: &'static str,
    /// The number of pastes.
    pub pastes: usize,
    /// How many of them resolve to no plan, because something in them is not modelled.
    pub stopped: usize,
    /// Distance between the estimates from the paste and from the complete settings.
    pub apart: Figures,
    /// Error of the complete settings, for rows that have a plan either way.
    pub complete: Figures,
    /// Error of the pastes.
    pub paste: Figures,
}

/// The releases whose pastes are grouped: the table of recipes dates from August 2026, and a name stands for its
/// recipe's content since June.
const TOGETHER: [(&str, &[&str]); 3] = [
    (
        "Megatron-Bridge's recipes by name, releases 26.06 to 26.08",
        &["Megatron-Bridge 26.06", "Megatron-Bridge 26.06.01", "Megatron-Bridge 26.08"],
    ),
    (
        "the same names, releases 25.09 to 26.04, whose recipes differed",
        &[
            "Megatron-Bridge 25.09",
            "Megatron-Bridge 25.11",
            "Megatron-Bridge 26.02",
            "Megatron-Bridge 26.02.01",
            "Megatron-Bridge 26.04",
            "Megatron-Bridge 26.04.01",
        ],
    ),
    ("ModelLink's scripts, 1.0.RC3", &["ModelLink 1.0.RC3"]),
];

/// How well pastes agree with complete settings and with measurements.
#[must_use]
pub fn agreements() -> Vec<Agreement> {
    let of = |(name, releases): (&'static str, &[&str])| {
        let all: Vec<&Pasted> = pasted().iter().filter(|one| releases.contains(&one.release)).collect();
        let planned = || all.iter().filter(|one| one.predicted.is_some());
        Agreement {
            name,
            pastes: all.len(),
            stopped: all.len() - planned().count(),
            apart: Figures::new(planned().filter_map(|one| one.apart()).collect()),
            complete: Figures::new(planned().map(|one| one.of.error).collect()),
            paste: Figures::new(planned().filter_map(|one| one.error()).collect()),
        }
    };
    TOGETHER.into_iter().map(of).collect()
}
