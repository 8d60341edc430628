//! One accelerator of the run and its name `n0_g0`.

/// A global rank, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u64);

impl Rank {
    /// Rank number `index`.
    #[must_use]
    pub const fn new(index: u64) -> Self {
        Self(index)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The node it is on, with ranks filling one node after the other.
    #[must_use]
    pub const fn node(self, gpus_per_node: u64) -> u64 {
        match self.0.checked_div(gpus_per_node) {
            Some(node) => node,
            None => 0,
        }
    }

    /// Its index on its node.
    #[must_use]
    pub const fn place(self, gpus_per_node: u64) -> u64 {
        match self.0.checked_rem(gpus_per_node) {
            Some(place) => place,
            None => self.0,
        }
    }

    /// Its label, `n{node}_g{place}`.
    #[must_use]
    pub fn label(self, gpus_per_node: u64) -> String {
        format!("n{}_g{}", self.node(gpus_per_node), self.place(gpus_per_node))
    }

    /// The rank with this label, if it is one.
    #[must_use]
    pub fn from_label(label: &str, gpus_per_node: u64) -> Option<Self> {
        // `n1_g9` on nodes of 8 is a typo, not a rank of the next node.
        let (node, place) = label.trim().strip_prefix('n')?.split_once("_g")?;
        let (node, place) = (node.parse::<u64>().ok()?, place.parse::<u64>().ok()?);
        if place >= gpus_per_node {
            return None;
        }
        node.checked_mul(gpus_per_node)?.checked_add(place).map(Self)
    }
}

/// A group in the notation of Megatron's analysis tool: `[n0_g0 n0_g1]`.
#[must_use]
pub fn notation(ranks: impl IntoIterator<Item = Rank>, gpus_per_node: u64) -> String {
    let mut out = String::from("[");
    for rank in ranks {
        if out.len() > 1 {
            out.push(' ');
        }
        out += &rank.label(gpus_per_node);
    }
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_both_ways() {
        for gpus_per_node in [1, 4, 6, 8] {
            for index in 0..40 {
                let rank = Rank::new(index);
                let label = rank.label(gpus_per_node);
                assert_eq!(Rank::from_label(&label, gpus_per_node), Some(rank));
            }
        }
        assert_eq!(Rank::from_label("n1_g8", 8), None);
        assert_eq!(Rank::from_label("g1", 8), None);
        assert_eq!(notation([Rank::new(0), Rank::new(9)], 8), "[n0_g0 n1_g1]");
    }
}
