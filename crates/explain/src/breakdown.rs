//! The tree itself.

use std::borrow::Cow;

use super::Explanation;
use shardscope_units::{Quantity, product};

/// How a parent's value follows from its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No children: the value is the node's own.
    Leaf,
    /// The value is the sum of the children's, times the node's own multiplicity.
    Sum,
    /// The value is the greatest child's, times the node's own multiplicity.
    Greatest,
}

/// A labelled value with the reason for it. Equal parts are one node `times` over.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown<Q> {
    // Mostly constants; only those with a number in them are made.
    label: Cow<'static, str>,
    value: Q,
    times: u64,
    rule: Rule,
    // Boxed: most nodes have none, and trees are moved about.
    why: Option<Box<Explanation>>,
    children: Vec<Breakdown<Q>>,
}

impl<Q: Quantity> Breakdown<Q> {
    /// A value that stands for itself.
    #[must_use]
    pub fn leaf(label: impl Into<Cow<'static, str>>, value: Q) -> Self {
        Self::node(label.into(), value, Rule::Leaf, Vec::new())
    }

    fn node(label: Cow<'static, str>, value: Q, rule: Rule, children: Vec<Self>) -> Self {
        Self { label, value, times: 1, rule, why: None, children }
    }

    /// The sum of `children`.
    #[must_use]
    pub fn sum(label: impl Into<Cow<'static, str>>, children: Vec<Self>) -> Self {
        let value = children.iter().map(Self::value).sum();
        Self::node(label.into(), value, Rule::Sum, children)
    }

    /// The greatest of `children`.
    #[must_use]
    pub fn greatest(label: impl Into<Cow<'static, str>>, children: Vec<Self>) -> Self {
        let value = children.iter().map(Self::value).fold(Q::default(), Q::greater);
        Self::node(label.into(), value, Rule::Greatest, children)
    }

    /// The same, explained.
    #[must_use]
    pub fn because(mut self, why: Explanation) -> Self {
        self.why = Some(Box::new(why));
        self
    }

    /// The same, `times` over: its value is multiplied, its children are shown once.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.value = self.value.times(times);
        self.times = product(self.times, times);
        self
    }

    /// Label of the node.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The value, all `times` counted.
    #[must_use]
    pub fn value(&self) -> Q {
        self.value
    }

    /// How many equal parts the node stands for.
    #[must_use]
    pub fn multiplicity(&self) -> u64 {
        self.times
    }

    /// How the value follows from the children.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The reason, on leaves and on parents with a formula of their own.
    #[must_use]
    pub fn why(&self) -> Option<&Explanation> {
        self.why.as_deref()
    }

    /// The parts that the value follows from, by [`Breakdown::rule`]; empty for a leaf.
    #[must_use]
    pub fn children(&self) -> &[Self] {
        &self.children
    }

    /// The first child called `label`; none where there is no such child.
    #[must_use]
    pub fn child(&self, label: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.label == label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardscope_units::Bytes;

    #[test]
    fn a_parent_is_computed_from_its_children() {
        let layer = Breakdown::sum(
            "layer",
            vec![Breakdown::leaf("a", Bytes::new(3)), Breakdown::leaf("b", Bytes::new(4))],
        );
        let stage = Breakdown::sum("stage", vec![layer.times(10)]);
        assert_eq!(stage.value(), Bytes::new(70));
        let peak = Breakdown::greatest(
            "peak",
            vec![Breakdown::leaf("x", Bytes::new(3)), Breakdown::leaf("y", Bytes::new(9))],
        );
        assert_eq!(peak.value(), Bytes::new(9));
    }
}
