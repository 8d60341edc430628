//! Results shared by many layouts: the passes over one section of each kind, and what one section of each kind holds.

use shardscope_estimate::time::{Draft, Sections};
use shardscope_estimate::{KnownUnits, Totals, Verdict, device_peak_of, memory_totals_knowing};
use shardscope_plan::{DpSharding, PipelineSchedule, Plan, Recompute};
use shardscope_units::Bytes;

/// What layouts of one cut have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    sections: Vec<(Recompute, Sections)>,
    units: Vec<((Recompute, DpSharding, PipelineSchedule), KnownUnits)>,
}

impl Known {
    /// The step of `plan` before its schedule is simulated.
    pub(crate) fn draft(&mut self, plan: &Plan) -> Draft {
        // Full recomputation of layers changes no section.
        let recompute = &plan.recipe().recompute;
        // A section's draft is the same whichever layers are fully recomputed; only modules inside a section change
        // it.
        let key = if matches!(recompute, Recompute::Selective(_)) { recompute } else { &Recompute::None };
        Draft::new(plan, entry(&mut self.sections, key))
    }

    /// The fullest device's peak, and the most severe verdict.
    pub(crate) fn fit(&mut self, plan: &Plan) -> (Bytes, Verdict) {
        device_peak_of(plan, &self.totals(plan))
    }

    /// The totals of every pipeline rank.
    pub(crate) fn totals(&mut self, plan: &Plan) -> Vec<Totals> {
        let recipe = plan.recipe();
        let recompute = match &recipe.recompute {
            // Which of a chunk's layers are recomputed does not affect a single section.
            whole if whole.is_whole() => Recompute::Block { num_layers: 1, distribute: false },
            other => other.clone(),
        };
        let key = (recompute, recipe.dp_sharding, plan.layout().schedule);
        memory_totals_knowing(plan, entry(&mut self.units, &key))
    }
}

/// The value for `key`, a new one if there is none.
fn entry<'a, K: PartialEq + Clone, V: Default>(known: &'a mut Vec<(K, V)>, key: &K) -> &'a mut V {
    let place = known.iter().position(|(one, _)| one == key).unwrap_or(known.len());
    if place == known.len() {
        known.push((key.clone(), V::default()));
    }
    &mut known[place].1
}

/// The fullest device's peak, and the most severe verdict.
pub(crate) fn fit(plan: &Plan) -> (Bytes, Verdict) {
    Known::default().fit(plan)
}
