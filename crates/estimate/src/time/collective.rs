//! How long a collective takes: by algorithm, group and link.
//!
//! Rings: an all-reduce sends 2(n-1)/n of the message through every rank, a gather or a scatter (n-1)/n
//! (Patarasuk and Yuan 2009; NCCL's bus-bandwidth convention). A group over several nodes uses the
//! network cards of all its members in a node at once, so it is as fast as `r` of them.

use crate::compute::{Device, real};
use shardscope_operators::{Collective, Dimension};
use shardscope_plan::Cluster;
use shardscope_topology::{GroupKind, Groups, Rank};
use shardscope_units::{Bytes, Quantity, Seconds};

/// The size and placement of a group that a collective's time depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ring {
    /// Members.
    pub(super) size: u64,
    /// Members that share one fast-link domain.
    pub(super) together: u64,
}

impl Ring {
    /// The group of `kind` that `rank` is in.
    pub(super) fn new(groups: &Groups, kind: GroupKind, cluster: &Cluster) -> Self {
        let size = groups.size(kind).max(1);
        let Some(group) = groups.slowest(kind, cluster) else { return Self { size: 1, together: 1 } };
        // Members are at equal strides, so those of the first one's domain come first.
        let domain = |rank: Rank| rank.get() / cluster.fast_domain.max(1);
        // The slowest group counts: a collective that everybody waits for is as slow as its worst-placed members.
        let first = group.ranks().next().map_or(0, domain);
        let together = group.ranks().take_while(|rank| domain(*rank) == first).count();
        Self { size, together: (together as u64).clamp(1, size) }
    }

    /// Whether all members share one fast-link domain.
    pub(super) fn is_near(self) -> bool {
        self.domains() <= 1
    }

    fn domains(self) -> u64 {
        self.size.div_ceil(self.together.max(1))
    }

    /// Bandwidth through every member of a ring, and its start-up time.
    pub(super) fn link(self, device: &Device) -> (f64, Seconds) {
        let fast = device.fast.get();
        if self.domains() <= 1 {
            return (fast, device.calibration.fast_start);
        }
        let start = device.calibration.network_start;
        // Every member brings its own network card, and NCCL runs rings over all of them at once.
        (fast.min(device.network.get() * real(self.together)), start)
    }

    /// The time of one `collective` with a message of `bytes` (the full tensor that is gathered or scattered; for an
    /// all-to-all, what one rank holds).
    pub(super) fn time(self, device: &Device, collective: Collective, bytes: Bytes) -> Seconds {
        // Empty messages are not sent: a dense model has no expert gradients to reduce, however many replicas it has.
        if self.size <= 1 || bytes == Bytes::ZERO {
            return Seconds::ZERO;
        }
        let (bandwidth, start) = self.link(device);
        let part = bytes.number() * (real(self.size) - 1.0) / real(self.size);
        let start = start + self.hops(device, collective);
        let moving = match collective {
            // NCCL's convention: bus bandwidth is what a ring sends per rank divided by the time, so one figure fits
            // every collective.
            Collective::AllReduce => 2.0 * part / bandwidth,
            Collective::AllGather | Collective::ReduceScatter => part / bandwidth,
            Collective::AllToAll => self.exchange(device, bytes.number()),
            Collective::SendRecv | Collective::Broadcast => bytes.number() / bandwidth,
        };
        start + Seconds::new(moving)
    }

    /// The first piece goes through every rank of a ring (twice if it comes back as a sum) before the last one ends;
    /// NCCL switches to trees, of logarithmic depth, if that would take long.
    fn hops(self, device: &Device, collective: Collective) -> Seconds {
        if self.domains() <= 1 {
            return Seconds::ZERO;
        }
        let hop = device.calibration.network_hop;
        match collective {
            Collective::AllReduce => hop * (4.0 * real(self.domains()).log2()),
            Collective::AllGather | Collective::ReduceScatter => hop * real(self.size),
            Collective::AllToAll | Collective::SendRecv | Collective::Broadcast => Seconds::ZERO,
        }
    }

    /// Every member sends an equal part to every other; parts for other domains go through the network.
    fn exchange(self, device: &Device, bytes: f64) -> f64 {
        let each = bytes / real(self.size);
        let inside = each * (real(self.together) - 1.0) / exchange(device);
        let outside = each * real(self.size - self.together.min(self.size)) / device.network_exchange.get();
        // Both run at once: copies inside go over NVLink while the network card sends.
        inside.max(outside)
    }
}

impl Ring {
    /// The time if a rank's tokens of `copy` bytes go once to each of `remote` other domains and are forwarded there,
    /// `copies` in total.
    pub(super) fn spread(self, device: &Device, copy: f64, remote: f64, copies: f64) -> Seconds {
        let (_, start) = self.link(device);
        let outside = copy * remote / device.network_exchange.get();
        let inside = copy * copies / exchange(device);
        start + Seconds::new(outside.max(inside))
    }
}

/// Bandwidth of all-to-alls inside a fast-link domain.
fn exchange(device: &Device) -> f64 {
    device.fast.get() * device.calibration.exchange
}

/// The rings of a plan, each computed once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rings {
    pub(super) tensor: Ring,
    pub(super) context: Ring,
    pub(super) expert: Ring,
    pub(super) expert_tensor: Ring,
    pub(super) tensor_expert: Ring,
    /// Ranks among which gradients are scattered and weights gathered: all replicas, or those of one replica group.
    pub(super) data: Ring,
    pub(super) expert_data: Ring,
    /// Ranks across which such groups sum their shards.
    pub(super) across: Ring,
    /// Ranks that gather weights from secondary shards; the same as `data` if there are none.
    pub(super) second: Ring,
    pub(super) pipeline: Ring,
}

impl Rings {
    pub(super) fn new(groups: &Groups, cluster: &Cluster) -> Self {
        let ring = |kind| Ring::new(groups, kind, cluster);
        let across = ring(GroupKind::ExpertDataAcross);
        let (data, expert_data) = if across.size > 1 {
            (GroupKind::DataContextInstance, GroupKind::ExpertDataInstance)
        } else {
            (GroupKind::DataContext, GroupKind::ExpertData)
        };
        Self {
            tensor: ring(GroupKind::Tensor),
            context: ring(GroupKind::Context),
            expert: ring(GroupKind::Expert),
            expert_tensor: ring(GroupKind::ExpertTensor),
            tensor_expert: ring(GroupKind::TensorExpert),
            data: ring(data),
            expert_data: ring(expert_data),
            across,
            second: ring(GroupKind::SecondShards),
            pipeline: ring(GroupKind::Pipeline),
        }
    }

    /// The ring of `dimension`.
    pub(super) fn of_dimension(&self, dimension: Dimension) -> Ring {
        match dimension {
            Dimension::Tensor => self.tensor,
            Dimension::Pipeline | Dimension::Embedding => self.pipeline,
            Dimension::Data => self.data,
            Dimension::Context | Dimension::ContextInner | Dimension::ContextOuter => self.context,
            Dimension::Expert => self.expert,
            Dimension::ExpertTensor => self.expert_tensor,
            Dimension::TensorExpert => self.tensor_expert,
            Dimension::ExpertData => self.expert_data,
        }
    }
}
