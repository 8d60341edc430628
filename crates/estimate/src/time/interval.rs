//! The interval that contains nine of ten measured steps, by family of software and hardware.
//!
//! Its widths come from the residuals of published runs, each against constants fitted without its own source
//! (`tests/data/measured/left_out.tsv`); `tests/suite/interval.rs` recomputes them and checks on entire sources, one
//! at a time, that between 85 and 95 % of the measurements lie inside.

use crate::compute::{Known, Standing, known};
use shardscope_plan::Plan;
use shardscope_units::{Quantity, Seconds};

/// Plans whose steps are known equally well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// A short name.
    pub name: &'static str,
    /// Offset of the lower end from the logarithm of the estimate.
    pub below: f64,
    /// Offset of the upper end.
    pub above: f64,
    /// Number of published runs behind it.
    pub rows: u64,
    /// Number of their sources.
    pub sources: u64,
    /// The fact that would narrow it most.
    pub narrows: &'static str,
    /// The share of one layout's residual, in logarithms, that other layouts of the run have too: the value that
    /// minimizes the errors of published layouts if one of them is the measured one. Zero if it does not help on
    /// sources that it was not fitted to.
    pub common: f64,
}

const STEP: &str = "one measured step of this run";

/// Dense models on A100 and newer NVIDIA parts, weights not sharded.
const DENSE: Family =
    Family { name: "dense", below: -0.09, above: 0.16, rows: 397, sources: 18, narrows: STEP, common: 0.0 };
/// Routed experts.
const EXPERTS: Family = Family {
    name: "mixture of experts",
    below: -0.14,
    above: 0.6,
    rows: 126,
    sources: 6,
    narrows: "how evenly tokens fall on experts, which release of the dispatcher runs, and what its graphs capture",
    common: 1.0,
};
/// Weights sharded over replicas.
const SHARDED: Family = Family {
    name: "sharded weights",
    below: -0.11,
    above: 0.36,
    rows: 166,
    sources: 9,
    narrows: "the measured bus bandwidth of the network",
    common: 0.6,
};
/// Parts known from one or two sources: V100, Ascend 910B, AMD's Instinct.
const FEW_SOURCES: Family = Family {
    name: "accelerators known from few sources",
    below: -0.18,
    above: 0.21,
    rows: 59,
    sources: 4,
    narrows: "a measured matrix product and all-reduce",
    common: 0.0,
};

/// Parts without any published run: TPUs, consumer cards, inference parts. Nothing was ever compared, so the ends are
/// assumed: the widest of the families above, in addition to the factor of [`Standing::Stranger`].
const NEVER_MEASURED: Family = Family {
    name: "accelerators never measured",
    below: FEW_SOURCES.below,
    above: EXPERTS.above,
    rows: 0,
    sources: 0,
    narrows: STEP,
    common: 0.0,
};

/// Every family whose ends come from published runs.
pub const FAMILIES: [Family; 4] = [DENSE, EXPERTS, SHARDED, FEW_SOURCES];

impl Family {
    /// Whether its accelerators are each known from one or two sources.
    #[must_use]
    pub fn is_of_few_sources(&self) -> bool {
        *self == FEW_SOURCES
    }

    /// Whether its ends come from published runs rather than assumptions.
    #[must_use]
    pub const fn is_earned(&self) -> bool {
        self.rows > 0
    }

    /// The family of `plan`.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        let accelerator = &plan.cluster().accelerator;
        if Standing::from_accelerator(accelerator) == Standing::Stranger {
            NEVER_MEASURED
        } else if known(accelerator.generation) == Known::Barely {
            FEW_SOURCES
        } else if plan.gathers_units() {
            SHARDED
        } else if plan.model().experts.is_some() {
            EXPERTS
        } else {
            DENSE
        }
    }
}

/// The interval that contains nine of ten measured steps of such plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: Seconds,
    /// Upper end.
    pub high: Seconds,
    /// The family whose residuals it is based on.
    pub family: Family,
    /// Facts that would narrow it.
    pub narrows: Vec<&'static str>,
}

/// Uncertainty of the time spent waiting for the host, as a share of it, in both directions.
const HOST_FACTOR: f64 = 0.5;
/// Share of a step from which waiting for the host is mentioned.
pub(super) const WAITING: f64 = 0.05;

impl Interval {
    /// The interval around `step` of `plan`, where the share `waits` of the step is spent waiting for the host.
    pub(super) fn new(plan: &Plan, step: Seconds, waits: f64) -> Self {
        let family = Family::from_plan(plan);
        let factor = Standing::from_accelerator(&plan.cluster().accelerator).factor().ln();
        // Host times are assumed for most software, so the time that the device waits for it may be half too long or
        // too short.
        let host = HOST_FACTOR * waits;
        let low = step * (family.below - factor).exp() - step * host;
        let high = step * (family.above + factor).exp() + step * host;
        let mut narrows = Vec::new();
        if factor > 0.0 {
            narrows.push("a measured matrix product and all-reduce: this accelerator is not calibrated");
        }
        if waits >= WAITING {
            narrows.push("a measured step, which shows what the host spends per kernel");
        }
        // Once the measured step is known, it narrows nothing more.
        let known = plan.cluster().measured.step.is_some();
        if family.narrows != STEP {
            narrows.push(family.narrows);
        }
        if !known {
            narrows.push(STEP);
        }
        Self { low: low.greater(Seconds::ZERO), high, family, narrows }
    }
}
