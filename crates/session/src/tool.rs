//! The figures of the analysis tool of 2023 next to ours, and its four measured runs, as displayed.

use shardscope_estimate::memory_totals;
use shardscope_launch::plan_from_flags;
use shardscope_plan::Plan;
use shardscope_report::Report;
use shardscope_report::analysis_tool::{MEASURED, MeasuredRow, compare};
use shardscope_units::{Bytes, decimal, percent};

/// A block of the tool's output.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolBlock {
    /// Its title.
    pub title: &'static str,
    /// Its lines.
    pub lines: Vec<ToolLine>,
}

/// A line of the tool's output next to ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolLine {
    /// Label of the row.
    pub label: &'static str,
    /// The tool's figure.
    pub tool: String,
    /// Our figure.
    pub ours: String,
    /// How far apart they are, if they differ.
    pub difference: Option<String>,
    /// Why.
    pub reasons: Vec<&'static str>,
}

/// Every block of the tool's output for `plan`.
#[must_use]
pub fn tool_blocks(plan: &Plan, report: &Report) -> Vec<ToolBlock> {
    let mut blocks: Vec<ToolBlock> = Vec::new();
    for row in compare(plan, report) {
        // Rows come in the order of the tool's output, so a new title begins a new block.
        if blocks.last().is_none_or(|block| block.title != row.section) {
            blocks.push(ToolBlock { title: row.section, lines: Vec::new() });
        }
        let line = ToolLine {
            label: row.label,
            tool: row.tool.shown(),
            ours: row.ours.shown(),
            // Rows that agree to the tool's own rounding have no difference to explain.
            difference: (!row.agrees()).then(|| apart(row.ratio())),
            reasons: row.reasons().map(|departure| departure.what).collect(),
        };
        if let Some(block) = blocks.last_mut() {
            block.lines.push(line);
        }
    }
    blocks
}

/// A ratio in words: a percentage if it is close to one, otherwise a factor.
fn apart(ratio: f64) -> String {
    /// Below this share one decimal of a percentage shows nothing.
    const SMALL: f64 = 0.001;
    let share = (ratio - 1.0).abs();
    // Enough decimals that an existing difference does not print as 0.0%.
    if share < SMALL {
        let sign = if ratio < 1.0 { "−" } else { "+" };
        format!("{sign}{}%", decimal(share * 100.0, 3))
    } else if ratio > 2.0 {
        format!("{} times ours", decimal(ratio, 1))
    } else if ratio >= 1.0 {
        format!("+{}", percent(ratio - 1.0))
    } else {
        format!("−{}", percent(1.0 - ratio))
    }
}

/// One of the tool's published runs: measured, predicted by the tool, estimated here.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredLine {
    /// Degrees of parallelism of the run, in words.
    pub layout: String,
    /// Its batch.
    pub batch: String,
    /// Measured by `torch.cuda.max_memory_allocated()`, in GiB.
    pub measured: String,
    /// Our prediction with its error.
    pub ours: (String, String),
    /// The tool's published one with its error.
    pub tool: (String, String),
}

/// The four runs published with the tool.
#[must_use]
pub fn measured_lines() -> Vec<MeasuredLine> {
    let mut lines = Vec::new();
    for row in &MEASURED {
        lines.extend(measured_line(row));
    }
    lines
}

/// The plan of a run published with the tool.
#[must_use]
pub fn measured_plan(row: &MeasuredRow) -> Option<Plan> {
    let flags = format!(
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
         --max-position-embeddings 2048 --vocab-size 50257 --bf16 --swiglu --use-flash-attn \
         --use-distributed-optimizer --tensor-model-parallel-size {} --pipeline-model-parallel-size {} \
         --micro-batch-size {} --global-batch-size {}",
        row.tensor, row.pipeline, row.micro_batch_size, row.global_batch_size
    );
    // Stated as flags and read by the reader of Megatron-LM, so that its defaults are those of any other script.
    plan_from_flags(&flags, row.data * row.pipeline * row.tensor, 8, "H800-SXM").ok()
}

fn measured_line(row: &MeasuredRow) -> Option<MeasuredLine> {
    let plan = measured_plan(row)?;
    // The maximum over all ranks: the published figure does not state its rank.
    let peak = memory_totals(&plan).iter().map(|rank| rank.peak_allocated).max().map_or(0.0, Bytes::in_gib);
    let predicted = |value: f64, places| {
        let error = value / row.measured - 1.0;
        let sign = if error < 0.0 { "−" } else { "+" };
        (decimal(value, places), format!("{sign}{}", percent(error.abs())))
    };
    Some(MeasuredLine {
        layout: format!("DP {} × PP {} × TP {}", row.data, row.pipeline, row.tensor),
        batch: format!("{} of {}", row.global_batch_size, row.micro_batch_size),
        measured: decimal(row.measured, 1),
        ours: predicted(peak, 2),
        tool: predicted(row.published, 1),
    })
}
