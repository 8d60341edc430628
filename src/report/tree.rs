//! Breakdowns as JSON and as indented text.

use serde_json::{Map, Value, json};

use crate::explain::{Breakdown, Explanation};
use crate::quantity::{Bytes, Count, Flops, Quantity, Seconds};

/// A quantity as a bare JSON number: integers stay exact.
pub(super) trait Bare {
    fn bare(self) -> Value;
}

impl Bare for Bytes {
    fn bare(self) -> Value {
        Value::from(self.get())
    }
}

impl Bare for Count {
    fn bare(self) -> Value {
        Value::from(self.get())
    }
}

impl Bare for Seconds {
    fn bare(self) -> Value {
        Value::from(self.get())
    }
}

impl Bare for Flops {
    fn bare(self) -> Value {
        Value::from(self.get())
    }
}

/// The TREE of the document: `{label, value, formula?, times?, children?}`.
pub(super) fn tree<Q: Quantity + Bare>(node: &Breakdown<Q>) -> Value {
    let mut object = Map::new();
    object.insert("label".into(), Value::from(node.label()));
    object.insert("value".into(), node.value().bare());
    if let Some(why) = node.why() {
        object.insert("formula".into(), Value::from(why.formula.expression));
    }
    if node.multiplicity() != 1 {
        object.insert("times".into(), Value::from(node.multiplicity()));
    }
    if !node.children().is_empty() {
        object.insert("children".into(), node.children().iter().map(tree).collect());
    }
    Value::Object(object)
}

/// Enters every explained node below `path` into `explanations`.
pub(super) fn explain<Q: Quantity>(path: &str, node: &Breakdown<Q>, explanations: &mut Map<String, Value>) {
    if let Some(why) = node.why() {
        explanations.insert(path.to_owned(), explanation(why));
    }
    for child in node.children() {
        explain(&format!("{path}/{}", child.label()), child, explanations);
    }
}

pub(super) fn explanation(why: &Explanation) -> Value {
    let symbols: Map<String, Value> =
        why.symbols.iter().map(|symbol| (symbol.name.to_owned(), whole(symbol.value))).collect();
    json!({
        "formula": why.formula.expression,
        "meaning": why.formula.meaning,
        "symbols": symbols,
        "source": why.formula.source,
    })
}

/// A symbol's value: an integer where it is one.
#[allow(clippy::cast_possible_truncation)]
fn whole(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if value.fract() == 0.0 && value.abs() < EXACT { Value::from(value as i64) } else { Value::from(value) }
}
