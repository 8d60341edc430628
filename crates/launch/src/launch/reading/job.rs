//! What a framework's own keys take from the running job, and those that are compared with the launch.

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

    /// FSDP's groups under verl's supervised trainer, which torchrun starts: replicas of each other where the launch has more
    /// accelerators, and the usual sharding where it has no more (`verl/workers/engine/fsdp/utils.py:create_device_mesh`).
    pub(super) fn compare_groups(&self, reading: &mut Reading) {
        const KEY: &str = "engine.fsdp_size";
        let (Some(Said::Known(nodes)), Some(Said::Known(each))) =
            (&self.world.nodes, &self.world.gpus_per_node)
        else {
            return;
        };
        let world = nodes.value.saturating_mul(each.processes());
        let Some(item) = reading.not_modelled.iter().find(|item| item.name == KEY) else { return };
        let span = item.span;
        let Some(size) = item.value.parse::<u64>().ok().filter(|size| *size > 0) else { return };
        if size < world && !world.is_multiple_of(size) {
            return;
        }
        reading.not_modelled.retain(|item| item.name != KEY);
        if size < world {
            let found = Found::new(
                Field::NumDistributedOptimizerInstances,
                (world / size).to_string(),
                Origin::Script,
            );
            reading.take(found.by(KEY, span).note("accelerators / fsdp_size: HSDP replicas"));
        }
    }
}
