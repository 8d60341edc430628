//! What conditions do with holes: unset variables become empty texts, and literals that they are compared with become
//! a list of choices.

use super::super::script::HoleKind;
use super::super::value::{HoleId, Value};
use super::state::Evaluator;

/// Most literals kept as choices for one unknown.
const CHOICES: usize = 64;

/// Variables that every shell or login sets.
const ALWAYS_SET: &[&str] = &[
    "0",
    "!",
    "?",
    "$",
    "-",
    "_",
    "BASH_REMATCH",
    "PWD",
    "HOME",
    "PATH",
    "USER",
    "HOSTNAME",
    "BASH_SOURCE",
    "RANDOM",
    "UID",
    "SHELL",
];

impl Evaluator<'_> {
    /// The text with unset variables as empty, and whether there are any; `None` if something else is unknown.
    pub(crate) fn resolved(&self, value: &Value, positional_too: bool) -> Option<(String, bool)> {
        let mut text = String::new();
        let mut unset = false;
        for piece in value.pieces() {
            match piece.hole {
                None => text.push_str(piece.text),
                Some(hole) if self.is_empty_hole(hole, positional_too, 0) => unset = true,
                Some(_) => return None,
            }
        }
        Some((text, unset))
    }

    /// Whether a hole is an unset variable, or the output of a program that prints nothing without input.
    fn is_empty_hole(&self, id: HoleId, positional_too: bool, depth: u32) -> bool {
        let Some(hole) = self.notes.holes.get(id.0 as usize) else { return false };
        match hole.kind {
            HoleKind::Variable => !ALWAYS_SET.contains(&hole.name.as_str()),
            // `[ -z "$1" ]` tests whether the call passes it; in a comparison with a word, its value is unknown.
            HoleKind::Positional => positional_too,
            HoleKind::Command | HoleKind::Derived => {
                let program = hole.name.split(' ').next().unwrap_or("");
                let faithful = hole.kind == HoleKind::Derived
                    || matches!(program, "basename" | "tr" | "cut" | "sed" | "awk" | "head" | "tail");
                faithful
                    && depth < 8
                    && !hole.needs.is_empty()
                    && hole.needs.iter().all(|need| self.is_empty_hole(*need, positional_too, depth + 1))
            }
            // What only a branch sets that unset variables pass over is unset as they are.
            HoleKind::Branch => {
                depth < 8
                    && !hole.needs.is_empty()
                    && !self.branch_of.iter().any(|(undecided, _)| *undecided == id)
                    && hole.needs.iter().all(|need| self.is_empty_hole(*need, positional_too, depth + 1))
            }
            // A placeholder must be filled in; the other has a value that is just not known.
            HoleKind::Placeholder | HoleKind::Arithmetic => false,
        }
    }

    /// Records a literal that an unknown is compared with.
    pub(crate) fn add_choice(&mut self, hole: HoleId, literal: &str) {
        if let Some(hole) = self.notes.holes.get_mut(hole.0 as usize)
            && !literal.is_empty()
            // Patterns are not answers that one could pick.
            && !literal.contains(['*', '^', '$', '[', '('])
            && hole.choices.len() < CHOICES
            && !hole.choices.iter().any(|known| known == literal)
        {
            hole.choices.push(literal.to_owned());
        }
    }
}
