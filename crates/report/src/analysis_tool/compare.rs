//! The tool's figures next to ours, line by line, with the reasons for differences.

use super::departures::{Departure, departures};
use super::figures::{ToolFigures, ToolMemory, ToolTraffic, tool_figures, tool_gb};
use crate::Report;
use shardscope_estimate::traffic::{DimensionTraffic, Parallelism, Totals as Sent};
use shardscope_estimate::{RankMemory, Totals};
use shardscope_operators::Collective;
use shardscope_plan::Plan;
use shardscope_units::{Bytes, Quantity, gib, grouped, mib};

/// A figure of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// A number of parameters or messages.
    Count(u64),
    /// Bytes.
    Bytes(Bytes),
}

impl Figure {
    /// As displayed.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::Count(count) => grouped(count),
            Self::Bytes(bytes) if bytes < Bytes::gib(1) => mib(bytes),
            Self::Bytes(bytes) => gib(bytes),
        }
    }

    /// Whether the two are equal to the tool's printed precision: counts equal, bytes to a tenth of 2^30.
    fn agrees(self, other: Self) -> bool {
        match (self, other) {
            // To the precision of the tool's own print, or every line would differ by rounding.
            (Self::Bytes(one), Self::Bytes(other)) => tool_gb(one) == tool_gb(other),
            (one, other) => one == other,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Count(count) => shardscope_units::Count::new(count).number(),
            Self::Bytes(bytes) => bytes.number(),
        }
    }
}

/// One line of the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToolRow {
    /// The tool's block.
    pub section: &'static str,
    /// Label of the row.
    pub label: &'static str,
    /// The tool's figure.
    pub tool: Figure,
    /// Our figure.
    pub ours: Figure,
    /// Numbers of the [`departures`] that explain the difference.
    pub departures: &'static [u8],
}

impl ToolRow {
    /// Whether the tool is right, to the precision it prints.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.tool.agrees(self.ours)
    }

    /// The tool's figure over ours.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        // If there is nothing to compare with, show them as equal rather than infinite.
        if self.ours.number() == 0.0 { 1.0 } else { self.tool.number() / self.ours.number() }
    }

    /// Why they differ; empty if they agree.
    pub fn reasons(&self) -> impl Iterator<Item = &'static Departure> + use<> {
        let numbers = if self.agrees() { &[] } else { self.departures };
        numbers.iter().filter_map(|&number| departures().iter().find(|departure| departure.number == number))
    }
}

/// Every line of the tool's output for `plan` next to ours.
#[must_use]
pub fn compare(plan: &Plan, report: &Report) -> Vec<ToolRow> {
    let mut rows = Vec::new();
    // The tool knows a decoder alone, and would print figures for another model.
    if plan.model().encoder.is_some() {
        return rows;
    }
    let tool = tool_figures(plan);
    if let Some(whole) = &report.whole {
        let ours = (report.parameters.total.get(), whole);
        rows.extend(memory("Full model without parallelism", &tool.full, ours, &FULL));
    }
    rows.extend(per_gpu(&tool, report));
    rows.extend(communication(&tool, report));
    rows
}

/// Departures behind each line of a memory block: count, parameters, gradients, optimizer, activations, total.
type Reasons = [&'static [u8]; 6];
const FULL: Reasons =
    [&[1, 4, 6, 7], &[1, 4, 6, 7], &[1, 4, 6, 7], &[1, 4, 6, 7, 22], &[10, 11, 7, 22], &[10, 15]];
const PER_GPU: Reasons = [
    &[1, 2, 3, 4, 5, 6, 7],
    &[1, 2, 3, 4, 5, 6, 7],
    &[1, 2, 3, 4, 5, 6, 7],
    &[1, 2, 3, 4, 5, 6, 7, 22],
    &[8, 9, 10, 11, 7, 22],
    &[8, 9, 10, 15],
];

fn memory(
    section: &'static str,
    tool: &ToolMemory,
    (count, ours): (u64, &Totals),
    reasons: &Reasons,
) -> Vec<ToolRow> {
    let lines = [
        ("parameters", Figure::Count(tool.count.get()), Figure::Count(count)),
        ("parameters' bytes", Figure::Bytes(tool.parameters), Figure::Bytes(ours.parameters)),
        ("gradients", Figure::Bytes(tool.gradients), Figure::Bytes(ours.gradients)),
        ("optimizer states", Figure::Bytes(tool.optimizer), Figure::Bytes(ours.optimizer)),
        ("activations", Figure::Bytes(tool.activations), Figure::Bytes(ours.activations)),
        ("memory requirement", Figure::Bytes(tool.total), Figure::Bytes(ours.peak_allocated)),
    ];
    // In the order of [`Reasons`].
    let mut rows = Vec::with_capacity(lines.len());
    for (&(label, tool, ours), &departures) in lines.iter().zip(reasons) {
        rows.push(ToolRow { section, label, tool, ours, departures });
    }
    rows
}

/// The rank with the highest peak; the tool gives every GPU the same figure.
fn per_gpu(tool: &ToolFigures, report: &Report) -> Vec<ToolRow> {
    let fullest = report.memory.worst.pipeline_rank;
    let of = |rank: &&RankMemory| rank.pipeline_rank == fullest;
    let Some(rank) = report.memory.ranks.iter().find(of) else { return Vec::new() };
    let parameters = report.parameters.ranks.iter().find(|rank| rank.pipeline_rank == fullest);
    let count = parameters.map_or(0, |rank| rank.count.get());
    memory("Memory on each GPU (ours: the peak GPU)", &tool.per_gpu, (count, &rank.totals), &PER_GPU)
}

fn communication(tool: &ToolFigures, report: &Report) -> Vec<ToolRow> {
    let sent = |parallelism| report.traffic.dimension(parallelism).map_or(Sent::default(), |of| of.cluster);
    let of_data = |collective| one_call(report.traffic.dimension(Parallelism::Data), collective);
    const PIPELINE: &str = "Pipeline parallel communication";
    const DATA: &str = "Data parallel communication";
    const TENSOR: &str = "Tensor parallel communication";
    const ALL: &str = "All communication";
    let mut rows = Vec::with_capacity(10);
    let mut add = |section, label, [tool, ours]: [Figure; 2], departures| {
        rows.push(ToolRow { section, label, tool, ours, departures });
    };
    // Both sides count for the cluster, except where the tool prints one GPU's figures as such (departure 17).
    let both = |tool: ToolTraffic, ours: Sent| {
        let calls = [Figure::Count(tool.frequency), Figure::Count(ours.calls)];
        (calls, [Figure::Bytes(tool.volume), Figure::Bytes(ours.bytes)])
    };
    const VOLUME: &str = "bytes of the cluster per iteration";
    const MESSAGES: &str = "messages of the cluster per iteration";
    let (calls, volume) = both(tool.pipeline, sent(Parallelism::Pipeline));
    add(PIPELINE, MESSAGES, calls, &[16]);
    add(PIPELINE, VOLUME, volume, &[16]);
    let one = |tool, collective| [Figure::Bytes(tool), Figure::Bytes(of_data(collective))];
    let reduction = one(tool.reduce_scatter, Collective::ReduceScatter);
    add(DATA, "gradients' reduction of one GPU", reduction, &[1, 2, 3, 6]);
    add(DATA, "weights' all-gather of one GPU", one(tool.all_gather, Collective::AllGather), &[18]);
    let (calls, volume) = both(tool.data, sent(Parallelism::Data));
    add(DATA, "operations of the cluster per iteration", calls, &[17]);
    add(DATA, VOLUME, volume, &[17, 18]);
    let (calls, volume) = both(tool.tensor, sent(Parallelism::Tensor));
    add(TENSOR, MESSAGES, calls, &[19, 22]);
    add(TENSOR, VOLUME, volume, &[19, 22]);
    let (calls, volume) = both(tool.all_communication(), report.traffic.cluster());
    add(ALL, MESSAGES, calls, &[16, 17, 19, 20]);
    add(ALL, VOLUME, volume, &[16, 17, 18, 19, 20]);
    rows
}

/// The largest message of a kind in the data-parallel ledger: the buffer of the fullest stage.
fn one_call(data: Option<&DimensionTraffic>, collective: Collective) -> Bytes {
    let operations = data.map(|data| data.operations.as_slice()).unwrap_or_default();
    let of_kind = operations.iter().filter(|operation| operation.collective == collective);
    // A buffer sent in buckets is one message to the tool.
    of_kind.map(|operation| operation.bytes() * operation.most_calls()).max().unwrap_or_default()
}
