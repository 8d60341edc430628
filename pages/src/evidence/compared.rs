//! Predicted against measured, by the groups for which accuracy is stated.

use std::sync::OnceLock;

use shardscope::estimate::compute::Standing;
use shardscope::estimate::time::time;
use shardscope::launch::Resolution;
use shardscope::plan::Plan;

use super::figures::Figures;
use super::left_out::seconds_without;
use super::row::Row;

/// Rows that are off by more than 15 %, and rows whose record is in doubt, with the reason. A cause explains a row;
/// it does not exclude the row from any statistic.
const CAUSES: &str = include_str!("../../../tests/data/measured/causes.tsv");

/// Rows for which accuracy is stated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Narayanan et al. 2021, table 1.
    Narayanan,
    /// Azure's NeMo Megatron results of 2022.
    Azure,
    /// Korthikanti et al. 2022, table 5.
    Korthikanti,
    /// An architecture or a family of machines, among the rows that constants were fitted to.
    Fitted(Part),
    /// The same among the sources of `NEVER_FITTED`.
    Kept(Part),
}

/// The category of a row: each row has exactly one besides `All`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Every row.
    All,
    /// Dense models on A100 or newer, weights not sharded over replicas.
    Dense,
    /// Routed experts.
    Experts,
    /// Weights sharded over replicas: FSDP, ZeRO-3.
    Sharded,
    /// V100.
    Volta,
    /// Ascend 910B.
    Ascend,
    /// AMD Instinct.
    Instinct,
}

impl Part {
    /// The part of `row`.
    #[must_use]
    pub fn from_row(row: &Row) -> Self {
        let gpu = row.text("gpu");
        // The machine takes precedence: experts on V100 count among the rows of V100.
        if gpu.starts_with("V100") {
            Self::Volta
        } else if gpu.starts_with("Ascend") {
            Self::Ascend
        } else if gpu.starts_with("MI") {
            Self::Instinct
        } else if row.sharded_weights() {
            Self::Sharded
        } else if row.is_moe() {
            Self::Experts
        } else {
            Self::Dense
        }
    }

    fn holds(self, row: &Row) -> bool {
        self == Self::All || self == Self::from_row(row)
    }

    /// Name in tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::All => "all rows",
            Self::Dense => "dense, A100 and newer",
            Self::Experts => "mixture of experts",
            Self::Sharded => "sharded weights (FSDP, ZeRO-3)",
            Self::Volta => "V100",
            Self::Ascend => "Ascend 910B",
            Self::Instinct => "AMD Instinct",
        }
    }
}

impl Group {
    /// Every group, in the order of the README.
    pub const ALL: [Self; 14] = [
        Self::Narayanan,
        Self::Azure,
        Self::Korthikanti,
        Self::Fitted(Part::Dense),
        Self::Fitted(Part::Experts),
        Self::Fitted(Part::Sharded),
        Self::Fitted(Part::Volta),
        Self::Fitted(Part::Ascend),
        Self::Fitted(Part::All),
        Self::Kept(Part::Dense),
        Self::Kept(Part::Experts),
        Self::Kept(Part::Ascend),
        Self::Kept(Part::Instinct),
        Self::Kept(Part::All),
    ];

    /// Whether `row` belongs to the group; a row may belong both to a table and to an architecture.
    pub fn holds(self, row: &Row) -> bool {
        let family = row.family();
        match self {
            Self::Narayanan => family == "seed-narayanan2021-tab1",
            Self::Azure => family == "seed-azure-nemo-22.06",
            Self::Korthikanti => family == "korthikanti2022-tab5",
            Self::Fitted(part) => row.is_fitted() && part.holds(row),
            Self::Kept(part) => !row.is_fitted() && part.holds(row),
        }
    }

    /// Name in tables.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Narayanan => "Narayanan et al. 2021, table 1 (1.7B to 1T)".to_owned(),
            Self::Azure => "Azure NeMo Megatron 2022 (126M to 530B)".to_owned(),
            Self::Korthikanti => "Korthikanti et al. 2022, table 5".to_owned(),
            Self::Fitted(part) => part.title().to_owned(),
            Self::Kept(part) => format!("never fitted: {}", part.title()),
        }
    }
}

/// One row with its prediction.
pub struct Compared {
    /// The published run.
    pub row: Row,
    /// Its settings, resolved.
    pub resolution: Resolution,
    /// Seconds per step as predicted by the engine.
    pub predicted: f64,
    /// Predicted over measured, minus one.
    pub error: f64,
    /// The same with constants fitted without the row's own source. For sources never fitted and accelerators without
    /// a fitted row, this is the case anyway.
    pub unseen: f64,
    /// Why it is off, or why its record is in doubt.
    pub cause: Option<Cause>,
}

/// Why a row is off.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// `record` (another record of the same run disagrees, or a fact is missing), `known` or `unknown`.
    pub kind: &'static str,
    /// The cause, in words.
    pub text: &'static str,
}

impl Compared {
    /// Whether published runs show how fast the row's accelerator is.
    pub fn is_calibrated(&self) -> bool {
        let standing =
            |plan: &Plan| Standing::from_accelerator(&plan.cluster().accelerator) == Standing::Measured;
        self.resolution.plan.as_ref().is_some_and(standing)
    }
}

/// Every row with its prediction.
pub fn compared() -> &'static [Compared] {
    static ALL: OnceLock<Vec<Compared>> = OnceLock::new();
    ALL.get_or_init(|| Row::all().into_iter().map(compare).collect())
}

fn compare(row: Row) -> Compared {
    let id = row.text("id");
    let resolution = row.resolution();
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
    let predicted = time(plan).step.get();
    let error = predicted / row.measured() - 1.0;
    let unseen = seconds_without(row.family(), plan).map_or(error, |seconds| seconds / row.measured() - 1.0);
    // `id` borrows from `row`, so `row` moves last.
    Compared { predicted, error, unseen, cause: cause(id), row, resolution }
}

/// The identifiers of all rows with a cause.
pub fn causes() -> impl Iterator<Item = (&'static str, Cause)> {
    CAUSES.lines().skip(1).filter_map(|line| {
        let mut columns = line.split('\t');
        let (id, kind, text) = (columns.next()?, columns.next()?, columns.next()?);
        Some((id, Cause { kind, text }))
    })
}

fn cause(id: &str) -> Option<Cause> {
    causes().find(|(other, _)| *other == id).map(|(_, cause)| cause)
}

/// The accuracy of another tool on the named rows, run side by side in November 2026.
pub struct Peer {
    /// The tool.
    pub name: &'static str,
    /// The rows, in words.
    pub rows: &'static str,
    /// The rows whose error is shown next to it.
    pub beside: Beside,
    /// Its error in the step time.
    pub error: &'static str,
}

/// Rows on which another tool was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Narayanan 2021, table 1.
    Narayanan,
    /// Korthikanti 2022, table 5.
    Korthikanti,
    /// Both, plus NeMo's and the launcher's: rows on A100.
    A100,
}

/// The accuracy of other tools on the same rows.
pub const PEERS: [Peer; 6] = [
    Peer {
        name: "Calculon",
        rows: "Narayanan 2021, table 1",
        beside: Beside::Narayanan,
        error: "mean 7.8%, all rows too fast (3 to 14%)",
    },
    Peer {
        name: "llm-analysis, FLOPs efficiency 0.5",
        rows: "Narayanan 2021, table 1",
        beside: Beside::Narayanan,
        error: "mean 46%, worst 134%",
    },
    Peer {
        name: "Calculon",
        rows: "Korthikanti 2022 (its own validation, 8 points)",
        beside: Beside::Korthikanti,
        error: "mean 3.7%, worst 8.9%",
    },
    Peer {
        name: "Calculon",
        rows: "48 rows on A100: both tables, Korthikanti, NeMo 22.06",
        beside: Beside::A100,
        error: "median 11.8%",
    },
    Peer { name: "SimuMax", rows: "the same 48 rows", beside: Beside::A100, error: "median 9.2%" },
    Peer { name: "llm-analysis", rows: "the same 48 rows", beside: Beside::A100, error: "median 21 to 26%" },
];

/// Errors of all rows of `group`.
#[must_use]
pub fn figures(compared: &[Compared], group: Group) -> Figures {
    let rows = compared.iter().filter(|one| group.holds(&one.row));
    Figures::new(rows.map(|one| one.error).collect())
}

/// The same with constants fitted without each row's own source.
#[must_use]
pub fn figures_unseen(compared: &[Compared], group: Group) -> Figures {
    let rows = compared.iter().filter(|one| group.holds(&one.row));
    Figures::new(rows.map(|one| one.unseen).collect())
}
