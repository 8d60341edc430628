//! Predicted against measured, in the groups that accuracy is stated for.

use shardscope::estimate::time::time;

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
pub fn compared() -> Vec<Compared> {
    Row::all()
        .into_iter()
        .map(|row| {
            let id = row.text("id");
            let plan = row.try_plan().unwrap_or_else(|why| panic!("{id}: {why}"));
            let predicted = time(&plan).step.get();
            let error = predicted / row.measured() - 1.0;
            Compared { predicted, error, cause: cause(id), row }
        })
        .collect()
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

/// What the peers reach on the same rows, run side by side in November 2026.
const PEERS: &str = "\
| peer | on these rows | error of the step time |
|---|---|---|
| Calculon | Narayanan 2021, table 1 | mean 7.8 %, all rows too fast (3 to 14 %) |
| llm-analysis, FLOPs efficiency 0.5 | Narayanan 2021, table 1 | mean 46 %, worst 134 % |
| Calculon | 48 rows on A100: both tables, Korthikanti, NeMo 22.06 | median 11.8 % |
| SimuMax | the same 48 rows | median 9.2 % |
| llm-analysis | the same 48 rows | median 21 to 26 % |
";

const fn title(group: Group) -> &'static str {
    match group {
        Group::Narayanan => "Narayanan et al. 2021, table 1 (1.7B to 1T)",
        Group::Azure => "Azure NeMo Megatron 2022 (126M to 530B)",
        Group::Korthikanti => "Korthikanti et al. 2022, table 5",
        Group::Dense => "dense, A100 and newer",
        Group::Experts => "mixture of experts",
        Group::Sharded => "sharded weights (FSDP, ZeRO-3)",
        Group::Volta => "V100",
        Group::Ascend => "Ascend 910B",
    }
}

/// The tables of the README, as Markdown.
pub fn summary(compared: &[Compared]) -> String {
    let mut out = "| published runs | rows | median error | 90 % of rows within | within 15 % | bias |\n\
                   |---|---|---|---|---|---|\n"
        .to_owned();
    for group in Group::ALL {
        let figures = Figures::of(compared, group, false);
        out += &format!(
            "| {} | {} | {:.1} % | {:.1} % | {:.0} % | {:+.1} % |\n",
            title(group),
            figures.rows,
            100.0 * figures.median,
            100.0 * figures.tenth,
            100.0 * figures.near,
            100.0 * figures.bias
        );
    }
    let disputed = compared.iter().filter(|one| one.is_disputed()).count();
    out += &format!(
        "\nOf {} rows {disputed} are left out because another record of the same run disagrees or a fact is missing; \
         `tests/data/measured/causes.tsv` names them, and every other row that is off by more than 15 %.\n\n",
        compared.len()
    );
    out + PEERS
}

/// Statistics of a group's errors, without their sign.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// How many.
    pub rows: usize,
    /// Half of the rows are closer.
    pub median: f64,
    /// Nine of ten rows are closer.
    pub tenth: f64,
    /// The farthest.
    pub worst: f64,
    /// Share of rows within 15 %.
    pub near: f64,
    /// Median of the errors with their sign.
    pub bias: f64,
}

impl Figures {
    /// Of the rows of `group`, those whose record forbids a target left out unless `all`.
    pub fn of(compared: &[Compared], group: Group, all: bool) -> Self {
        let rows = compared.iter().filter(|one| group.holds(&one.row) && (all || !one.is_disputed()));
        Self::from(rows.map(|one| one.error).collect())
    }

    fn from(mut errors: Vec<f64>) -> Self {
        errors.sort_by(f64::total_cmp);
        let bias = middle(&errors);
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let rows = sizes.len();
        let near = sizes.iter().filter(|size| **size <= 0.15).count();
        let at = |index: usize| sizes.get(index).copied().unwrap_or(0.0);
        Self {
            rows,
            median: middle(&sizes),
            tenth: at(rows * 9 / 10),
            worst: at(rows.saturating_sub(1)),
            near: near as f64 / rows.max(1) as f64,
            bias,
        }
    }
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted {
        [] => 0.0,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}
