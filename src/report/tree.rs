//! Breakdowns in the document.

use crate::explain::{Breakdown, Explanation};
use crate::json::Writer;
use crate::quantity::{Bytes, Count, Flops, Quantity, Seconds};

/// A quantity as a bare JSON number: integers stay exact.
pub(super) trait Bare {
    fn bare(self, w: &mut Writer, name: &str);
}

impl Bare for Bytes {
    fn bare(self, w: &mut Writer, name: &str) {
        w.count(name, self.get());
    }
}

impl Bare for Count {
    fn bare(self, w: &mut Writer, name: &str) {
        w.count(name, self.get());
    }
}

impl Bare for Seconds {
    fn bare(self, w: &mut Writer, name: &str) {
        w.real(name, self.get());
    }
}

impl Bare for Flops {
    fn bare(self, w: &mut Writer, name: &str) {
        w.real(name, self.get());
    }
}

/// The TREE of the document: `{label, value, formula?, times?, children?}`.
pub(super) fn tree<Q: Quantity + Bare>(w: &mut Writer, name: &str, node: &Breakdown<Q>) {
    w.object(name);
    w.text("label", node.label());
    node.value().bare(w, "value");
    if let Some(why) = node.why() {
        w.text("formula", why.formula.expression);
    }
    if node.multiplicity() != 1 {
        w.count("times", node.multiplicity());
    }
    if !node.children().is_empty() {
        w.list("children");
        for child in node.children() {
            tree(w, "", child);
        }
        w.close();
    }
    w.close();
}

/// Explanations by the paths of what they explain.
#[derive(Default)]
pub(super) struct Explanations(Vec<(String, Explanation)>);

impl Explanations {
    pub(super) fn add(&mut self, path: String, why: Explanation) {
        self.0.push((path, why));
    }

    /// Enters every explained node below `path`.
    pub(super) fn of<Q: Quantity>(&mut self, path: &str, node: &Breakdown<Q>) {
        if let Some(why) = node.why() {
            self.add(path.to_owned(), why.clone());
        }
        for child in node.children() {
            self.of(&format!("{path}/{}", child.label()), child);
        }
    }

    /// Writes them; of several with one path the last, where the first stands.
    pub(super) fn write(&self, w: &mut Writer) {
        let all = &self.0;
        let mut shown: Vec<Option<usize>> = vec![None; all.len()];
        let mut first = 0;
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|one, other| all[*one].0.cmp(&all[*other].0));
        for index in order {
            if all[first].0 != all[index].0 {
                first = index;
            }
            shown[first] = Some(index);
        }
        w.object("explanations");
        for index in shown.into_iter().flatten() {
            explanation(w, &all[index].0, &all[index].1);
        }
        w.close();
    }
}

fn explanation(w: &mut Writer, path: &str, why: &Explanation) {
    w.object(path);
    w.text("formula", why.formula.expression);
    w.text("meaning", why.formula.meaning);
    w.object("symbols");
    for symbol in &why.symbols {
        w.number(symbol.name, symbol.value);
    }
    w.close();
    w.text("source", why.formula.source);
    w.close();
}
