//! What plans have in common whose sections are the same.

use super::parts::ChunkParts;
use crate::parameters::SectionParameters;
use shardscope_operators::SectionKind;

/// The passes over one section of each kind and its parameters, which plans have in common that differ in nothing that a
/// section's kernels and messages depend on: only in how many stages and chunks there are, in their order, in which layers
/// they hold, and in what data-parallel ranks share.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    pub(super) passes: Vec<(SectionKind, ChunkParts)>,
    pub(super) parameters: Vec<(SectionKind, SectionParameters)>,
}
