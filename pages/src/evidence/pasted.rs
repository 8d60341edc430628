//! What somebody pastes who runs a published layout again, beside the row's complete settings: the name of a recipe with what its
//! command takes, or the public script's own options. What such a paste leaves out is what the release does by itself.

use std::sync::OnceLock;

use shardscope::bash::Environment;
use shardscope::estimate::time::time;
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::compared::{Compared, compared};
use super::figures::Figures;

/// Row, release, what a reader answers, paste; the pastes of recipes are those whose table (`recipes/bridge.tsv`) has the columns of the row.
const PASTES: &str = include_str!("../../../tests/data/measured/pastes.tsv");

/// A row with what its paste says.
pub struct Pasted {
    /// The row, with the prediction of its complete settings.
    pub of: &'static Compared,
    /// Software and release that measured it.
    pub release: &'static str,
    /// The paste.
    pub text: &'static str,
    /// What the paste comes to.
    pub resolution: Resolution,
    /// Seconds of a step by the paste; none where it is no plan.
    pub predicted: Option<f64>,
}

impl Pasted {
    /// Predicted from the paste over measured, less one.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        self.predicted.map(|seconds| seconds / self.of.row.measured() - 1.0)
    }

    /// Predicted from the paste over predicted from the complete settings, less one.
    #[must_use]
    pub fn apart(&self) -> Option<f64> {
        self.predicted.map(|seconds| seconds / self.of.predicted - 1.0)
    }
}

/// Every paste beside its row.
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
    // A script does not say on what it runs; a reader chooses it, and answers what it asks for.
    let mut overrides = vec![(Field::Accelerator.name().to_owned(), of.row.text("gpu").to_owned())];
    let answered = answers.split(' ').filter_map(|answer| answer.split_once('='));
    overrides.extend(answered.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let source = Source::new(text);
    let resolution =
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
    let predicted = resolution.plan.as_ref().map(|plan| time(plan).step.get());
    Pasted { of, release, text, resolution, predicted }
}

/// Pastes that are compared together, and how they agree.
pub struct Agreement {
    /// Which.
    pub name: &'static str,
    /// How many.
    pub pastes: usize,
    /// Of them, those that come to no plan: what they ask for is not modelled.
    pub stopped: usize,
    /// Distance of the paste's estimate from that of the complete settings.
    pub apart: Figures,
    /// Error of the complete settings, of those that have a plan either way.
    pub complete: Figures,
    /// Error of the pastes.
    pub paste: Figures,
}

/// Which releases' pastes are compared together: the table of recipes is of August 2026, and a name stands for what its
/// recipe has been since June.
const TOGETHER: [(&str, &[&str]); 3] = [
    (
        "Megatron-Bridge's recipes by name, releases 26.06 to 26.08",
        &["Megatron-Bridge 26.06", "Megatron-Bridge 26.06.01", "Megatron-Bridge 26.08"],
    ),
    (
        "the same names, releases 25.09 to 26.04, whose recipes were others",
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

/// How pastes agree with complete settings and with what was measured.
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
