//! What plans have in common whose sections are the same.

use super::collective::Rings;
use super::parts::ChunkParts;
use crate::parameters::SectionParameters;
use shardscope_operators::SectionKind;
use shardscope_plan::Plan;
use shardscope_topology::Groups;

/// The passes over one section of each kind and its parameters, which plans have in common that differ in nothing that a
/// section's kernels and messages depend on: only in how many stages and chunks there are, in their order, in which layers
/// they hold, and in what data-parallel ranks share.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    pub(super) passes: Vec<(SectionKind, ChunkParts)>,
    pub(super) parameters: Vec<(SectionKind, SectionParameters)>,
    /// The rings of a plan with so many stages.
    rings: Option<(u64, Rings)>,
}

impl Sections {
    /// The rings of `plan`, which has the sections.
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
