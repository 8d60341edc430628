//! Which links a group's messages take.

use super::{Group, GroupKind, Groups, Rank};
use shardscope_plan::Cluster;

/// The slowest link a group has to cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// None: the group is one rank.
    Alone,
    /// The fast link of one domain (NVLink).
    Fast,
    /// Inside a node, beyond its fast-link domain (PCIe, between sockets).
    Node,
    /// The network between nodes.
    Network,
}

impl Link {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alone => "none",
            Self::Fast => "nvlink",
            Self::Node => "node",
            Self::Network => "network",
        }
    }

    /// The link between two ranks.
    #[must_use]
    pub fn between(cluster: &Cluster, one: Rank, other: Rank) -> Self {
        Self::spanning(cluster, one.get().min(other.get()), one.get().max(other.get()))
    }

    fn spanning(cluster: &Cluster, low: u64, high: u64) -> Self {
        // Domains and nodes are blocks of neighbouring ranks: if both ends are in one, so is everything between.
        let together = |size: u64| low / size.max(1) == high / size.max(1);
        if low == high {
            Self::Alone
        } else if together(cluster.fast_domain) {
            Self::Fast
        } else if together(cluster.gpus_per_node) {
            Self::Node
        } else {
            Self::Network
        }
    }
}

/// How a group is spread over the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Members.
    pub size: u64,
    /// Distinct nodes they are on.
    pub nodes: u64,
    /// Distinct fast-link domains they are on.
    pub domains: u64,
    /// The slowest link between them.
    pub link: Link,
}

impl Group {
    /// The slowest link between its members.
    #[must_use]
    pub fn link(&self, cluster: &Cluster) -> Link {
        let (low, high) = self.ends();
        Link::spanning(cluster, low, high)
    }

    /// How it is spread over the machines.
    #[must_use]
    pub fn spread(&self, cluster: &Cluster) -> Spread {
        let places = |size: u64| {
            // Members need not ascend node by node, so sort first to bring equal places together.
            let mut places: Vec<u64> = self.ranks().map(|rank| rank.get() / size.max(1)).collect();
            places.sort();
            places.dedup();
            places.len() as u64
        };
        Spread {
            size: self.size(),
            nodes: places(cluster.gpus_per_node),
            domains: places(cluster.fast_domain),
            link: self.link(cluster),
        }
    }
}

impl Groups {
    /// The group of `kind` with the slowest link, which is the one to wait for.
    #[must_use]
    pub fn slowest(&self, kind: GroupKind, cluster: &Cluster) -> Option<Group> {
        let mut slowest: Option<(Link, Group)> = None;
        // All groups have the same layout, so the first represents them all: no list of 16,384 ranks.
        if self.is_aligned(kind, cluster) {
            return self.all(kind).next();
        }
        for group in self.all(kind) {
            let link = group.link(cluster);
            if slowest.is_none_or(|(other, _)| link > other) {
                slowest = Some((link, group));
            }
            // Nothing is slower.
            if link == Link::Network {
                break;
            }
        }
        slowest.map(|(_, group)| group)
    }

    /// The slowest link any group of `kind` has to cross.
    #[must_use]
    pub fn link(&self, kind: GroupKind, cluster: &Cluster) -> Link {
        self.slowest(kind, cluster).map_or(Link::Alone, |group| group.link(cluster))
    }
}
