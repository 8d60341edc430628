//! Shapes that several parts of the document share.

use serde::{Serialize, Serializer};

use shardscope_explain::{Breakdown, Explanation};
use shardscope_operators::letter_meaning;
use shardscope_units::Quantity;

/// A JSON object whose names are data (settings, paths, variables), in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Object<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// A real number that is written without a fraction if it has none: symbols of formulas are often counts rather than
/// times or rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// 2^53: below it every whole number is an f64.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        // NaN has no fraction of zero, so it is passed on to `serialize_f64`, which writes null.
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            #[allow(clippy::cast_possible_truncation)] // whole and below 2^53
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// TREE of the contract: a value with the parts that make it up. A parent's value is computed from its children.
#[derive(Debug, Serialize)]
pub struct Tree<'r, Q> {
    /// Label of the node.
    pub label: &'r str,
    /// The quantity, including all `times`: bytes, parameters or seconds.
    pub value: Q,
    /// The formula behind it, in symbols; its explanation is under the node's path in `explanations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formula: Option<&'static str>,
    /// How many equal parts the node stands for, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The parts; each is listed once, however many times it is counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Tree<'r, Q>>,
}

impl<'r, Q: Quantity> Tree<'r, Q> {
    pub(super) fn new(node: &'r Breakdown<Q>) -> Self {
        Self {
            label: node.label(),
            value: node.value(),
            formula: node.why().map(|why| why.formula.expression),
            // Omitted for one, the usual case.
            times: Some(node.multiplicity()).filter(|times| *times != 1),
            children: node.children().iter().map(Self::new).collect(),
        }
    }
}

/// Why a figure has its value.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// In symbols, for example `s·b·h·2`.
    pub formula: &'static str,
    /// In words, one sentence.
    pub meaning: &'static str,
    /// The symbols with this plan's values, in the units that `letters` names.
    pub symbols: Object<&'static str, Number>,
    /// What each symbol means.
    pub letters: Object<&'static str, &'static str>,
    /// Paper, section and equation, or framework file.
    pub source: &'static str,
}

impl Explained {
    fn new(why: &Explanation) -> Self {
        Self {
            formula: why.formula.expression,
            meaning: why.formula.meaning,
            symbols: Object(why.symbols.iter().map(|symbol| (symbol.name, Number(symbol.value))).collect()),
            letters: Object(
                why.symbols
                    .iter()
                    .filter_map(|symbol| Some((symbol.name, letter_meaning(why.formula, symbol)?)))
                    .collect(),
            ),
            source: why.formula.source,
        }
    }
}

/// Collects explanations, keyed by the document path of the figure that they explain.
#[derive(Default)]
pub(super) struct Explanations {
    entries: Vec<(String, Explained)>,
    /// The index of a path in `entries`.
    places: std::collections::HashMap<String, usize>,
}

impl Explanations {
    /// Explains the figure at `path`; if there are several explanations of one path, the last counts.
    pub(super) fn add(&mut self, path: String, why: &Explanation) {
        let explained = Explained::new(why);
        // Looked up in a map: documents have thousands of paths.
        if let Some(entry) = self.places.get(&path).and_then(|place| self.entries.get_mut(*place)) {
            entry.1 = explained;
        } else {
            self.places.insert(path.clone(), self.entries.len());
            self.entries.push((path, explained));
        }
    }

    /// Explains every node below `path` that has a reason.
    pub(super) fn add_tree<Q: Quantity>(&mut self, path: &str, node: &Breakdown<Q>) {
        if let Some(why) = node.why() {
            self.add(path.to_owned(), why);
        }
        for child in node.children() {
            // Labels are part of the path, so siblings need distinct labels to have separate explanations.
            self.add_tree(&format!("{path}/{}", child.label()), child);
        }
    }

    pub(super) fn into_object(self) -> Object<String, Explained> {
        Object(self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::{Number, Object};

    #[test]
    fn whole_numbers_have_no_fraction() {
        let json = |value: f64| serde_json::to_string(&Number(value)).unwrap_or_default();
        for (value, expected) in
            [(3.0, "3"), (-2.0, "-2"), (0.5, "0.5"), (9_007_199_254_740_991.0, "9007199254740991")]
        {
            assert_eq!(json(value), expected);
        }
        assert!(json(9_007_199_254_740_992.0).contains(['.', 'e']));
        assert_eq!(json(f64::NAN), "null");
    }

    #[test]
    fn objects_keep_their_order() {
        let object = Object(vec![("b", 1), ("a", 2)]);
        assert_eq!(serde_json::to_string(&object).ok().as_deref(), Some("{\"b\":1,\"a\":2}"));
    }
}
