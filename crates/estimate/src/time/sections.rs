//! Results shared by plans whose sections are the same.

use super::collective::Rings;
use super::parts::ChunkParts;
use crate::parameters::SectionParameters;
use shardscope_operators::SectionKind;
use shardscope_plan::Plan;
use shardscope_topology::Groups;

/// The passes over one section of each kind and its parameters. Plans can share them if they differ in nothing that a
/// section's kernels and messages depend on: only in the number of stages and chunks, their order, which layers they
/// hold, and what data-parallel ranks shard.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    pub(super) passes: Vec<(SectionKind, ChunkParts)>,
    pub(super) parameters: Vec<(SectionKind, SectionParameters)>,
    /// The rings of a plan with this many stages.
    rings: Option<(u64, Rings)>,
}

impl Sections {
    /// The rings of `plan`, which must have these sections.
    pub(super) fn rings(&mut self, plan: &Plan) -> Rings {
        let stages = plan.layout().pipeline;
        match self.rings {
            Some((known, rings)) if known == stages => rings,
            _ => {
                let rings = Rings::new(&Groups::new(plan.layout()), plan.cluster());
                self.rings = Some((stages, rings));
                rings
            }
        }
    }
}
