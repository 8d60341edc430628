//! The parameters of a stage, added up from its sections.

use super::state::ParameterCounts;
use super::unit::Unit;
use shardscope_units::Count;

/// Parameters of a chunk or stage: dense and expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// Outside of routed experts.
    pub(super) dense: ParameterCounts,
    /// Of routed experts.
    pub(super) expert: ParameterCounts,
}

impl Sum {
    /// Adds `unit` `times` times, `frozen` of them without training.
    pub(super) fn add(&mut self, unit: &Unit, times: u64, frozen: u64) {
        let trained = times.saturating_sub(frozen);
        self.dense.add_all(unit.dense, trained);
        if unit.expert.all > Count::ZERO {
            self.expert.add_all(unit.expert, trained);
        }
        if frozen > 0 {
            self.dense.add_all(unit.dense.frozen(), frozen);
            self.expert.add_all(unit.expert.frozen(), frozen);
        }
    }
}
