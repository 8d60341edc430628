//! Predicted against measured, in the groups that accuracy is stated for.

use std::sync::OnceLock;

use shardscope::estimate::time::time;
use shardscope::launch::Resolution;

use super::figures::Figures;
use super::row::Row;

/// Rows that are off by more than 15 %, or whose record forbids a target, with the reason.
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
}

impl Group {
    /// Every group, as the README lists them.
    pub const ALL: [Self; 8] = [
        Self::Narayanan,
        Self::Azure,
        Self::Korthikanti,
        Self::Dense,
        Self::Experts,
        Self::Sharded,
        Self::Volta,
        Self::Ascend,
    ];

    /// Whether `row` belongs to the group; a row may belong to a table and to an architecture.
    pub fn holds(self, row: &Row) -> bool {
        let family = row.text("family");
        let part = if row.text("gpu").starts_with("V100") {
            Self::Volta
        } else if row.text("gpu").starts_with("Ascend") {
            Self::Ascend
        } else if row.sharded_weights() {
            Self::Sharded
        } else if row.is_moe() {
            Self::Experts
        } else {
            Self::Dense
        };
        match self {
            Self::Narayanan => family == "seed-narayanan2021-tab1",
            Self::Azure => family == "seed-azure-nemo-22.06",
            Self::Korthikanti => family == "korthikanti2022-tab5",
            other => other == part,
        }
    }
}

/// One row with its prediction.
pub struct Compared {
    /// The published run.
    pub row: Row,
    /// Its settings, resolved.
    pub resolution: Resolution,
    /// Seconds of a step, as the engine says.
    pub predicted: f64,
    /// Predicted over measured, less one.
    pub error: f64,
    /// Why it is off, or why its record forbids a target.
    pub cause: Option<Cause>,
}

/// Why a row is off.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// `record` (the record forbids a target), `known` or `unknown`.
    pub kind: &'static str,
    /// What it is.
    pub text: &'static str,
}

impl Compared {
    /// Whether the record forbids a target: another record of the same run disagrees, or a fact is missing.
    pub fn is_disputed(&self) -> bool {
        self.cause.is_some_and(|cause| cause.kind == "record")
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
    Compared { predicted, error, cause: cause(id), row, resolution }
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

/// What another tool reaches on the rows named, run side by side in November 2026.
pub struct Peer {
    /// The tool.
    pub name: &'static str,
    /// On which rows.
    pub rows: &'static str,
    /// Its error of the step time.
    pub error: &'static str,
}

/// What others reach on the same rows.
pub const PEERS: [Peer; 6] = [
    Peer {
        name: "Calculon",
        rows: "Narayanan 2021, table 1",
        error: "mean 7.8 %, all rows too fast (3 to 14 %)",
    },
    Peer {
        name: "llm-analysis, FLOPs efficiency 0.5",
        rows: "Narayanan 2021, table 1",
        error: "mean 46 %, worst 134 %",
    },
    Peer {
        name: "Calculon",
        rows: "Korthikanti 2022 (its own validation, 8 points)",
        error: "mean 3.7 %, worst 8.9 %",
    },
    Peer {
        name: "Calculon",
        rows: "48 rows on A100: both tables, Korthikanti, NeMo 22.06",
        error: "median 11.8 %",
    },
    Peer { name: "SimuMax", rows: "the same 48 rows", error: "median 9.2 %" },
    Peer { name: "llm-analysis", rows: "the same 48 rows", error: "median 21 to 26 %" },
];

impl Group {
    /// What tables call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Narayanan => "Narayanan et al. 2021, table 1 (1.7B to 1T)",
            Self::Azure => "Azure NeMo Megatron 2022 (126M to 530B)",
            Self::Korthikanti => "Korthikanti et al. 2022, table 5",
            Self::Dense => "dense, A100 and newer",
            Self::Experts => "mixture of experts",
            Self::Sharded => "sharded weights (FSDP, ZeRO-3)",
            Self::Volta => "V100",
            Self::Ascend => "Ascend 910B",
        }
    }
}

/// Errors of the rows of `group`, those whose record forbids a target left out.
#[must_use]
pub fn figures(compared: &[Compared], group: Group) -> Figures {
    let rows = compared.iter().filter(|one| group.holds(&one.row) && !one.is_disputed());
    Figures::of(rows.map(|one| one.error).collect())
}

/// The tables of the README, as Markdown.
pub fn summary(compared: &[Compared]) -> String {
    let mut out = "| published runs | rows | median error | 90 % of rows within | within 15 % | bias |\n\
                   |---|---|---|---|---|---|\n"
        .to_owned();
    for group in Group::ALL {
        let figures = figures(compared, group);
        out += &format!(
            "| {} | {} | {:.1} % | {:.1} % | {:.0} % | {:+.1} % |\n",
            group.title(),
            figures.rows,
            100.0 * figures.median,
            100.0 * figures.tenth,
            100.0 * figures.near(),
            100.0 * figures.bias
        );
    }
    let disputed = compared.iter().filter(|one| one.is_disputed()).count();
    out += &format!(
        "\nOf {} rows {disputed} are left out because another record of the same run disagrees or a fact is missing; \
         `tests/data/measured/causes.tsv` names them, and every other row that is off by more than 15 %.\n\n",
        compared.len()
    );
    out += "| peer | on these rows | error of the step time |\n|---|---|---|\n";
    for Peer { name, rows, error } in PEERS {
        out += &format!("| {name} | {rows} | {error} |\n");
    }
    out
}
