//! What a framework's own keys take from the running job.

use super::{Launch, Said};
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

impl Launch {
    /// If a framework's key takes its accelerators per node from the variables that the scheduler sets in the running
    /// job (`trainer.n_gpus_per_node=$SLURM_GPUS_ON_NODE`), the number that the scheduler's directives request is used.
    pub(super) fn ask_the_job(&self, reading: &mut Reading) {
        let Some(Said::Known(fact)) = &self.world.gpus_per_node else { return };
        let asks = |found: &&Found| {
            found.field == Field::GpusPerNode
                && found.hole.as_ref().is_some_and(|name| name.starts_with("SLURM_"))
        };
        if fact.by.starts_with('#') && reading.found.iter().any(|found| asks(&found)) {
            let found = Found::new(Field::GpusPerNode, fact.value.to_string(), Origin::Script);
            reading.take(found.by(fact.by.clone(), fact.span).note(fact.how));
        }
    }
}
