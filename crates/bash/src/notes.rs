use std::cmp::Ordering;

use super::limits;
use super::script::{Hole, HoleKind};
use super::value::{HoleId, Value};
use shardscope_source::{Diagnostic, Span};

/// What evaluating a script collects along the way, and how much more may be collected.
#[derive(Debug)]
pub(crate) struct Notes {
    /// The holes in the order of [`key`], for binary search: the same `$X` is looked up wherever it occurs.
    index: Vec<HoleId>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) holes: Vec<Hole>,
    pub(crate) nodes_left: u32,
    /// Bytes that unreadable statements may still use up.
    pub(crate) waste_left: usize,
}

impl Notes {
    pub(crate) fn new(text_bytes: usize) -> Self {
        Self {
            index: Vec::new(),
            diagnostics: Vec::new(),
            holes: Vec::new(),
            nodes_left: limits::TREE_NODES,
            waste_left: text_bytes.saturating_mul(4).saturating_add(limits::WASTE_BYTES),
        }
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() >= limits::DIAGNOSTICS {
            return;
        }
        // A loop meets the same error in every iteration.
        let repeated = |known: &Diagnostic| known.span == diagnostic.span && known.code == diagnostic.code;
        if !self.diagnostics.iter().any(repeated) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// A new hole, or the one of the same name and kind.
    pub(crate) fn hole(&mut self, kind: HoleKind, name: &str, span: Span, needs: Vec<HoleId>) -> HoleId {
        let sought = key(kind, name, span, &needs);
        let known = |id: &HoleId| self.holes.get(id.0 as usize);
        let order = |hole: &Hole| key(hole.kind, &hole.name, hole.span, &hole.needs).cmp(&sought);
        let compare = |id: &HoleId| known(id).map_or(Ordering::Less, order);
        let at = match self.index.binary_search_by(compare) {
            Ok(at) => return self.index.get(at).copied().unwrap_or(HoleId(0)),
            Err(at) => at,
        };
        if self.holes.len() >= limits::HOLES {
            // Past the bound every unknown is the same hole: still unknown, but under another one's name.
            return HoleId(0);
        }
        let id = HoleId(u32::try_from(self.holes.len()).unwrap_or(u32::MAX));
        self.holes.push(Hole { name: name.to_owned(), kind, span, needs, choices: Vec::new() });
        self.index.insert(at, id);
        id
    }

    /// A value that is one new hole.
    pub(crate) fn unknown(&mut self, kind: HoleKind, name: &str, span: Span, needs: Vec<HoleId>) -> Value {
        let id = self.hole(kind, name, span, needs);
        Value::hole(&shown(kind, name), id, span)
    }
}

/// What distinguishes holes: their kind, their place if they follow from others, their name.
fn key<'h>(kind: HoleKind, name: &'h str, span: Span, needs: &[HoleId]) -> (u8, u32, &'h str) {
    // A variable that nobody sets is one unknown wherever it occurs. What depends on others may differ from place to
    // place (the same `$(basename $X)` before and after X is assigned), so there the place counts.
    (kind as u8, if needs.is_empty() { 0 } else { span.start.saturating_add(1) }, name)
}

/// How a hole appears in a text: always starting with `$` or `<`, without quotes.
pub(crate) fn shown(kind: HoleKind, name: &str) -> String {
    // The result may be parsed again as shell text (`eval`, `bash -c`): a quote in it would open one there.
    let clean: String =
        name.chars().filter(|c| !matches!(c, '\'' | '"' | '`' | '\\' | '\n')).take(60).collect();
    match kind {
        HoleKind::Command => format!("$({clean})"),
        HoleKind::Arithmetic => format!("$(({clean}))"),
        HoleKind::Placeholder => clean,
        HoleKind::Variable | HoleKind::Positional | HoleKind::Branch | HoleKind::Derived => {
            format!("${{{clean}}}")
        }
    }
}
