//! Every group of every kind, computed arithmetically.

use super::grid::{Axis, Grid, Lattice, Name, axis};
use super::{Coordinates, GroupKind, Rank};
use shardscope_plan::{Cluster, Layout};
use shardscope_units::product;

/// The groups of a layout. Cheap to create and copy; nothing is listed until requested.
#[derive(Clone, Debug)]
pub struct Groups {
    world: u64,
    grid: Grid,
    instances: u64,
    /// Number of groups that hold second shards of all weights; 0 if off.
    second: u64,
    levels: Vec<u64>,
}

/// How the groups of one kind are laid out over the ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// The first ranks of the underlying groups.
    pub(super) bases: Lattice,
    /// The members of an underlying group.
    pub(super) members: Lattice,
    /// How an underlying group is divided further.
    pub(super) cut: Cut,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    /// Not at all: the underlying groups are the groups.
    Whole,
    /// Not every rank of the world belongs to a group (embedding groups).
    Partial,
    /// `size` members, `unit` apart, of each run of `size * unit`.
    Slices { size: u64, unit: u64 },
    /// This many underlying groups joined.
    Joined(u64),
}

/// One group, listed only when iterated.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pattern: Pattern,
    index: u64,
}

impl Pattern {
    fn size(&self) -> u64 {
        match self.cut {
            Cut::Whole | Cut::Partial => self.members.len(),
            Cut::Slices { size, .. } => size,
            Cut::Joined(groups) => product(self.members.len(), groups),
        }
    }

    fn count(&self) -> u64 {
        match self.cut {
            Cut::Whole | Cut::Partial => self.bases.len(),
            Cut::Slices { size, .. } => product(self.bases.len(), self.members.len() / size),
            Cut::Joined(groups) => self.bases.len() / groups,
        }
    }

    fn member(&self, group: u64, place: u64) -> u64 {
        match self.cut {
            Cut::Whole | Cut::Partial => self.bases.at(group) + self.members.at(place),
            Cut::Slices { size, unit } => {
                let per_base = self.members.len() / size;
                let (base, slice) = (group / per_base, group % per_base);
                // Slices are assigned run by run; within a run they interleave, `unit` apart.
                let first = slice / unit * size * unit + slice % unit;
                self.bases.at(base) + self.members.at(first + place * unit)
            }
            Cut::Joined(groups) => {
                let size = self.members.len();
                self.bases.at(group * groups + place / size) + self.members.at(place % size)
            }
        }
    }

    fn group_of(&self, rank: u64) -> Option<u64> {
        let base = self.bases.index_of(rank);
        match self.cut {
            Cut::Whole => Some(base),
            Cut::Partial => {
                let first = self.bases.at(base);
                // At most two members: the ends of a pipeline.
                (0..self.members.len()).any(|place| first + self.members.at(place) == rank).then_some(base)
            }
            Cut::Slices { size, unit } => {
                let place = self.members.index_of(rank);
                let slice = place / (size * unit) * unit + place % unit;
                Some(base * (self.members.len() / size) + slice)
            }
            Cut::Joined(groups) => Some(base / groups),
        }
    }
}

impl Group {
    /// Its number among the groups of its kind.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Its members.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.pattern.size()
    }

    /// Its members in Megatron's order.
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        let Self { pattern, index } = *self;
        (0..pattern.size()).map(move |place| Rank::new(pattern.member(index, place)))
    }

    /// Lowest and highest member.
    pub(super) fn ends(&self) -> (u64, u64) {
        let Self { pattern, index } = self;
        let first = pattern.member(*index, 0);
        match pattern.cut {
            Cut::Whole | Cut::Partial => (first, first + pattern.members.span()),
            Cut::Slices { size, .. } => (first, pattern.member(*index, size - 1)),
            // Underlying groups are in ascending order, so the last reaches highest.
            Cut::Joined(groups) => {
                let last = pattern.bases.at(index * groups + groups - 1);
                (first, last + pattern.members.span())
            }
        }
    }
}

impl Groups {
    /// The groups of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self {
            world: layout.world_size,
            grid: Grid::new(layout),
            instances: layout.distributed_optimizer_instances.max(1),
            second: layout.second_groups(),
            levels: layout.hierarchical_context.clone(),
        }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn world(&self) -> u64 {
        self.world
    }

    /// The coordinates of `rank` along every dimension.
    #[must_use]
    pub fn coordinates(&self, rank: Rank) -> Coordinates {
        Coordinates::new(&self.grid, rank)
    }

    /// The kinds this layout has, including hierarchical levels and optimizer instances.
    #[must_use]
    pub fn kinds(&self) -> Vec<GroupKind> {
        let mut kinds = GroupKind::ALWAYS.to_vec();
        let levels = u8::try_from(self.levels.len()).unwrap_or(u8::MAX);
        kinds.extend((0..levels).map(GroupKind::ContextLevel));
        if self.second > 1 {
            kinds.push(GroupKind::SecondShards);
        }
        if self.instances > 1 {
            kinds.extend([
                GroupKind::DataContextInstance,
                GroupKind::ExpertDataInstance,
                GroupKind::ExpertDataAcross,
            ]);
        }
        // Always present; all ranks if there is one instance.
        kinds.push(GroupKind::OptimizerInstance);
        kinds
    }

    /// How many groups of `kind` there are.
    #[must_use]
    pub fn count(&self, kind: GroupKind) -> u64 {
        self.pattern(kind).count()
    }

    /// Members of a group of `kind`.
    #[must_use]
    pub fn size(&self, kind: GroupKind) -> u64 {
        self.pattern(kind).size()
    }

    /// Every group of `kind`, in Megatron's order.
    pub fn all(&self, kind: GroupKind) -> impl Iterator<Item = Group> + use<> {
        let pattern = self.pattern(kind);
        (0..pattern.count()).map(move |index| Group { pattern, index })
    }

    /// The group of `kind` that `rank` is in; `None` for a middle stage and the embedding groups.
    #[must_use]
    pub fn group(&self, kind: GroupKind, rank: Rank) -> Option<Group> {
        let pattern = self.pattern(kind);
        if rank.get() >= self.world {
            return None;
        }
        pattern.group_of(rank.get()).map(|index| Group { pattern, index })
    }

    /// The ranks of the group of `kind` that `rank` is in; empty if it is in none.
    #[must_use]
    pub fn group_of(&self, kind: GroupKind, rank: Rank) -> Vec<Rank> {
        self.group(kind, rank).map(|group| group.ranks().collect()).unwrap_or_default()
    }

    /// Whether every group of `kind` is within one fast-link domain because blocks of its extent tile the domain.
    pub(super) fn is_aligned(&self, kind: GroupKind, cluster: &Cluster) -> bool {
        let pattern = self.pattern(kind);
        let extent = pattern.members.extent();
        // A group of one crosses no link wherever it is.
        if pattern.size() <= 1 {
            return true;
        }
        !matches!(pattern.cut, Cut::Joined(_) | Cut::Partial) && cluster.fast_domain.is_multiple_of(extent)
    }

    pub(super) fn pattern(&self, kind: GroupKind) -> Pattern {
        use Name::{Middle, Pipeline, Replica, Tensor};
        let dense = |names: &[Name]| split(&self.grid.dense, names, Cut::Whole);
        let expert = |names: &[Name]| split(&self.grid.expert, names, Cut::Whole);
        match kind {
            GroupKind::Tensor => dense(&[Tensor]),
            GroupKind::Pipeline => dense(&[Pipeline]),
            GroupKind::Data => dense(&[Replica]),
            GroupKind::Context => dense(&[Middle]),
            // Gradients of dense weights are summed over context ranks as well: each has different tokens of the same
            // sequence.
            GroupKind::DataContext => dense(&[Middle, Replica]),
            GroupKind::Model => dense(&[Tensor, Pipeline]),
            GroupKind::TensorContext => dense(&[Tensor, Middle]),
            GroupKind::TensorData => dense(&[Tensor, Replica]),
            GroupKind::TensorDataContext => dense(&[Tensor, Middle, Replica]),
            // Tied embeddings: the first stage looks tokens up in the weight that the last one multiplies with.
            GroupKind::Embedding => self.ends(2),
            GroupKind::PositionEmbedding => self.ends(1),
            // Experts have a separate grid: its middle axis is EP where the dense one has CP, and its data-parallel
            // size is the world divided by ETP x EP x PP.
            GroupKind::Expert => expert(&[Middle]),
            GroupKind::ExpertTensor => expert(&[Tensor]),
            GroupKind::TensorExpert => expert(&[Tensor, Middle]),
            GroupKind::TensorExpertPipeline => expert(&[Tensor, Middle, Pipeline]),
            GroupKind::ExpertData => expert(&[Replica]),
            GroupKind::SecondShards => self.sliced(GroupKind::DataContext, Part::Within, self.second.max(1)),
            GroupKind::DataContextInstance => {
                self.sliced(GroupKind::DataContext, Part::Within, self.instances)
            }
            GroupKind::ExpertDataInstance => self.sliced(GroupKind::ExpertData, Part::Within, self.instances),
            GroupKind::ExpertDataAcross => self.sliced(GroupKind::ExpertData, Part::Across, self.instances),
            GroupKind::ContextLevel(level) => self.level(usize::from(level)),
            GroupKind::OptimizerInstance => {
                let replicas = axis(&self.grid.expert, Replica).size;
                // An instance is all expert replicas that share its states: consecutive replicas.
                let joined = (replicas / self.instances).max(1);
                split(&self.grid.expert, &[Tensor, Middle, Pipeline], Cut::Joined(joined))
            }
        }
    }

    /// The first stage's ranks, or with `count` 2 those of the first and the last.
    fn ends(&self, count: u64) -> Pattern {
        let mut pattern = split(&self.grid.dense, &[Name::Pipeline], Cut::Partial);
        for axis in &mut pattern.members.0 {
            let stages = axis.size;
            // The stride reaches from the first stage to the last; with one stage both ends are the same rank.
            let size = count.min(stages);
            *axis = Axis { size, stride: axis.stride * (stages - 1).max(1) };
        }
        pattern
    }

    fn sliced(&self, kind: GroupKind, part: Part, slices: u64) -> Pattern {
        let mut pattern = self.pattern(kind);
        let whole = pattern.members.len();
        let within = (whole / slices).max(1);
        pattern.cut = match part {
            Part::Within => Cut::Slices { size: within, unit: 1 },
            // One member of each instance: as far apart as an instance is large.
            Part::Across => Cut::Slices { size: whole / within, unit: within },
        };
        pattern
    }

    fn level(&self, level: usize) -> Pattern {
        let mut pattern = self.pattern(GroupKind::Context);
        let size = self.levels.get(level).copied().unwrap_or(1).max(1);
        // Levels are nested from the inside out: a level's members are as far apart as the levels below it are wide.
        let unit = self.levels.iter().take(level).fold(1, |product, size| product * (*size).max(1));
        pattern.cut = Cut::Slices { size, unit };
        pattern
    }
}

/// Which slice of a group: one optimizer instance's members, or one member of each.
#[derive(Clone, Copy)]
enum Part {
    Within,
    Across,
}

/// The axes called `names` are the members, the others number the groups.
fn split(axes: &[(Name, Axis); 4], names: &[Name], cut: Cut) -> Pattern {
    let pick = |member: bool| {
        Lattice(axes.map(|(name, axis)| if names.contains(&name) == member { axis } else { Axis::NONE }))
    };
    Pattern { bases: pick(false), members: pick(true), cut }
}
