//! The interval that nine of ten measured steps lie in, by family of software and hardware.
//!
//! Its widths are those of the residuals of published runs, each against constants that its own source had no part in
//! (`tests/data/measured/left_out.tsv`); `tests/suite/interval.rs` works them out again and checks on whole sources, one at a
//! time, that between 85 and 95 % of what was measured lies inside.

use crate::compute::{Known, Standing, known};
use shardscope_plan::{DpSharding, Plan};
use shardscope_units::{Quantity, Seconds};

/// Plans whose steps are known equally well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// In a few words.
    pub name: &'static str,
    /// What is added to the logarithm of the estimate for the lower end.
    pub below: f64,
    /// And for the upper end.
    pub above: f64,
    /// Published runs that tell it.
    pub rows: u64,
    /// Of how many sources.
    pub sources: u64,
    /// The fact that would narrow it most.
    pub narrows: &'static str,
    /// The part of one layout's residual, as logarithms, that the other layouts of the run have too: what makes the errors of
    /// published layouts least when one of them is the measured one. None where it does not help on sources that it was not found
    /// on.
    pub common: f64,
}

const STEP: &str = "one measured step of this run";

/// Dense models on A100 and newer parts of NVIDIA, weights not sharded.
const DENSE: Family =
    Family { name: "dense", below: -0.09, above: 0.15, rows: 397, sources: 18, narrows: STEP, common: 0.0 };
/// Routed experts.
const EXPERTS: Family = Family {
    name: "mixture of experts",
    below: -0.19,
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
    above: 0.34,
    rows: 166,
    sources: 9,
    narrows: "the measured bus bandwidth of the network",
    common: 0.6,
};
/// Parts known from a source or two: V100, Ascend 910B, AMD's Instinct.
const FEW_SOURCES: Family = Family {
    name: "accelerators known from few sources",
    below: -0.19,
    above: 0.21,
    rows: 59,
    sources: 4,
    narrows: "a measured matrix product and all-reduce",
    common: 0.0,
};

/// Parts that no published run was read of: TPUs, consumer cards, parts for inference. Nothing was ever compared, so the ends
/// are assumed: the widest of the families above, beside the factor of [`Standing::Stranger`].
const NEVER_MEASURED: Family = Family {
    name: "accelerators never measured",
    below: FEW_SOURCES.below,
    above: EXPERTS.above,
    rows: 0,
    sources: 0,
    narrows: STEP,
    common: 0.0,
};

/// Every family whose ends published runs tell.
pub const FAMILIES: [Family; 4] = [DENSE, EXPERTS, SHARDED, FEW_SOURCES];

impl Family {
    /// Whether its accelerators are each known from a source or two.
    #[must_use]
    pub fn is_of_few_sources(&self) -> bool {
        self.name == FEW_SOURCES.name
    }

    /// Whether its ends are those of published runs, not assumed.
    #[must_use]
    pub const fn is_earned(&self) -> bool {
        self.rows > 0
    }

    /// That of `plan`.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        let accelerator = &plan.cluster().accelerator;
        if Standing::from_accelerator(accelerator) == Standing::Stranger {
            NEVER_MEASURED
        } else if known(accelerator.generation) == Known::Barely {
            FEW_SOURCES
        } else if plan.recipe().dp_sharding == DpSharding::Parameters {
            SHARDED
        } else if plan.model().experts.is_some() {
            EXPERTS
        } else {
            DENSE
        }
    }
}

/// What nine of ten measured steps of such plans lie in.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: Seconds,
    /// Upper end.
    pub high: Seconds,
    /// Whose residuals it is from.
    pub family: Family,
    /// Facts that would narrow it.
    pub narrows: Vec<&'static str>,
}

/// Part of the time said to be waiting for the host that may be missing, or come on top.
const HOST_FACTOR: f64 = 0.5;
/// Share of a step from which on waiting for the host is told of.
pub(super) const WAITING: f64 = 0.05;

impl Interval {
    /// Around `step` of `plan`, which waits for the host for a share `waits` of it.
    pub(super) fn new(plan: &Plan, step: Seconds, waits: f64) -> Self {
        let family = Family::from_plan(plan);
        let factor = Standing::from_accelerator(&plan.cluster().accelerator).factor().ln();
        // The host's time is assumed for most software: where the device waits for it, half of that may be missing or more.
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
        // Once it is known, it narrows nothing more.
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
