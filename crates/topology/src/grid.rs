//! The rank numbering as a grid: axes with sizes and strides, fastest first.

use super::Rank;
use shardscope_plan::{Layout, RankOrder};
use shardscope_units::product;

/// One axis of the numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) size: u64,
    pub(super) stride: u64,
}

impl Axis {
    /// An axis with one point, used for axes that are not part of a lattice.
    pub(super) const NONE: Self = Self { size: 1, stride: 1 };

    /// The coordinate of `rank` along the axis.
    pub(super) fn coordinate(self, rank: u64) -> u64 {
        rank / self.stride % self.size
    }
}

/// Up to four axes, fastest first, as a mixed-radix number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lattice(pub(super) [Axis; 4]);

impl Lattice {
    /// How many points it has.
    pub(super) fn len(&self) -> u64 {
        self.0.iter().fold(1, |so_far, axis| product(so_far, axis.size))
    }

    /// The rank offset of point `index`.
    pub(super) fn at(&self, mut index: u64) -> u64 {
        let mut offset = 0;
        for axis in self.0 {
            offset += index % axis.size * axis.stride;
            // The digits of `index`, the fastest axis first.
            index /= axis.size;
        }
        offset
    }

    /// The index of the point for `rank`.
    pub(super) fn index_of(&self, rank: u64) -> u64 {
        // The inverse of `at`: an axis with one point has digit 0 for every rank.
        self.0.iter().rev().fold(0, |index, axis| index * axis.size + axis.coordinate(rank))
    }

    /// Ranks of the aligned block that holds all points of one base.
    pub(super) fn extent(&self) -> u64 {
        let moving = self.0.iter().filter(|axis| axis.size > 1);
        moving.map(|axis| axis.size * axis.stride).max().unwrap_or(1)
    }

    /// The largest offset of a point from its base. Unit: rank.
    pub(super) fn span(&self) -> u64 {
        self.0.iter().map(|axis| (axis.size - 1) * axis.stride).sum()
    }
}

/// Both numberings of the ranks: dense (tensor, context, data, pipeline) and expert
/// (expert-tensor, expert, expert-data, pipeline).
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Fastest first.
    pub(super) dense: [(Name, Axis); 4],
    /// Fastest first.
    pub(super) expert: [(Name, Axis); 4],
}

/// Name of an axis. `Replica` is data on the dense side, expert-data on the expert side; `Middle` is
/// context on the dense side, expert on the expert side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Tensor,
    Middle,
    Replica,
    Pipeline,
}

fn strided(axes: [(Name, u64); 4]) -> [(Name, Axis); 4] {
    let mut stride = 1_u64;
    axes.map(|(name, size)| {
        // Coordinates divide by sizes, so none may be 0, whatever a layout contains.
        let axis = Axis { size: size.max(1), stride };
        stride = product(stride, axis.size);
        (name, axis)
    })
}

impl Grid {
    pub(super) fn new(layout: &Layout) -> Self {
        let ordered = |tensor, middle, replica| {
            let (tensor, middle) = ((Name::Tensor, tensor), (Name::Middle, middle));
            let (replica, pipeline) = ((Name::Replica, replica), (Name::Pipeline, layout.pipeline));
            strided(match layout.rank_order {
                RankOrder::TpCpEpDpPp => [tensor, middle, replica, pipeline],
                RankOrder::TpCpEpPpDp => [tensor, middle, pipeline, replica],
            })
        };
        Self {
            dense: ordered(layout.tensor, layout.context, layout.data),
            expert: ordered(layout.expert_tensor, layout.expert, layout.expert_data),
        }
    }
}

/// The axis called `name`.
pub(super) fn axis(axes: &[(Name, Axis); 4], name: Name) -> Axis {
    axes.iter().find(|(other, _)| *other == name).map_or(Axis::NONE, |(_, axis)| *axis)
}

/// A rank's coordinate along every dimension, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coordinates {
    /// Tensor-parallel rank.
    pub tensor: u64,
    /// Context-parallel rank.
    pub context: u64,
    /// Data-parallel rank.
    pub data: u64,
    /// Pipeline stage.
    pub pipeline: u64,
    /// Expert-parallel rank.
    pub expert: u64,
    /// Expert-tensor-parallel rank.
    pub expert_tensor: u64,
    /// Expert-data-parallel rank.
    pub expert_data: u64,
}

impl Coordinates {
    pub(super) fn new(grid: &Grid, rank: Rank) -> Self {
        let dense = |name| axis(&grid.dense, name).coordinate(rank.get());
        let expert = |name| axis(&grid.expert, name).coordinate(rank.get());
        Self {
            tensor: dense(Name::Tensor),
            context: dense(Name::Middle),
            data: dense(Name::Replica),
            pipeline: dense(Name::Pipeline),
            expert: expert(Name::Middle),
            expert_tensor: expert(Name::Tensor),
            expert_data: expert(Name::Replica),
        }
    }
}
