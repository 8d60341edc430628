//! `report.analysis_tool` and `report.flops`: beyond what the contract requires.

use serde::Serialize;

use super::super::analysis_tool::{Figure, ToolRow, compare, departures};
use super::tree::Object;
use crate::Report;
use shardscope_estimate::Convention;
use shardscope_plan::Plan;
use shardscope_units::Flops;

/// The figures of the 2023 analysis tool next to ours.
#[derive(Debug, Serialize)]
pub struct AnalysisTool {
    /// Line by line.
    pub rows: Vec<Row>,
    /// Its departures, by number.
    pub departures: Object<String, &'static str>,
}

/// One figure of the tool.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The tool's block.
    pub section: &'static str,
    /// Label of the row.
    pub label: &'static str,
    /// `count` or `bytes`.
    pub unit: &'static str,
    /// The tool's figure.
    pub tool: u64,
    /// Our figure.
    pub ours: u64,
    /// Whether the tool is right, to the precision it prints.
    pub agrees: bool,
    /// Numbers of the departures that explain the difference.
    pub departures: Vec<u8>,
}

/// FLOPs of one step by one convention.
#[derive(Debug, Serialize)]
pub struct FlopsByConvention {
    /// Who uses the convention.
    pub convention: &'static str,
    /// Null if the convention does not apply.
    pub flops_per_step: Option<Flops>,
    /// In symbols.
    pub formula: &'static str,
    /// In words.
    pub meaning: &'static str,
    /// Paper or framework file.
    pub source: &'static str,
}

impl AnalysisTool {
    pub(super) fn new(plan: &Plan, report: &Report) -> Self {
        let named = departures().iter().map(|departure| (departure.number.to_string(), departure.what));
        Self {
            rows: compare(plan, report).iter().map(Row::new).collect(),
            departures: Object(named.collect()),
        }
    }
}

impl Row {
    fn new(row: &ToolRow) -> Self {
        let number = |figure: Figure| match figure {
            Figure::Count(count) => count,
            Figure::Bytes(bytes) => bytes.get(),
        };
        Self {
            section: row.section,
            label: row.label,
            unit: match row.tool {
                Figure::Count(_) => "count",
                Figure::Bytes(_) => "bytes",
            },
            tool: number(row.tool),
            ours: number(row.ours),
            agrees: row.agrees(),
            departures: row.reasons().map(|reason| reason.number).collect(),
        }
    }
}

impl FlopsByConvention {
    pub(super) fn new(convention: &Convention) -> Self {
        Self {
            convention: convention.name,
            flops_per_step: convention.flops,
            formula: convention.formula.expression,
            meaning: convention.formula.meaning,
            source: convention.formula.source,
        }
    }
}
