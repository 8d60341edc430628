//! Conditions that depend on the machine: which outcome was read, and what the other one would be.

use super::Launch;
use shardscope_bash::{Branch, Script, Word};
use shardscope_source::{Code, Diagnostic, Source};

/// Maximum number of words shown in one note on a condition.
const DOUBTS: usize = 8;
/// Maximum number of notes on conditions of one script.
const BRANCHES: usize = 8;
/// Maximum number of characters that a note quotes from the text.
const WRITTEN: usize = 80;

impl Launch {
    /// Records a word that a condition about the machine could change.
    pub(super) fn doubt(&mut self, word: &Word, branch: &Branch) {
        match self.doubts.iter_mut().find(|(known, _)| known.span == branch.span) {
            Some((_, words)) => words.push(word.text().to_owned()),
            None => self.doubts.push((branch.clone(), vec![word.text().to_owned()])),
        }
    }

    /// One note for each condition that could have given other words, if the other outcome is not known.
    pub(super) fn tell_doubts(&mut self) {
        for (branch, words) in self.doubts.iter().filter(|(branch, _)| branch.sets.is_empty()) {
            let shown = words.get(..DOUBTS).unwrap_or(words).join(" ");
            let more = if words.len() > DOUBTS { " …" } else { "" };
            let holds = " applies as long as this condition does not hold: ";
            let message = format!("{shown}{more}{holds}{}", branch.why);
            self.diagnostics.push(Diagnostic::note(Code::Undecided, message).at(branch.span));
        }
    }

    /// One note for each reason why conditions were read as they were, with the values that the other outcome would
    /// assign to variables that the text uses.
    pub(super) fn tell_branches(&mut self, script: &Script, text: &str, source: &Source) {
        let mut reported: Vec<(&str, bool)> = Vec::new();
        for branch in &script.branches {
            if reported.len() == BRANCHES || reported.contains(&(branch.why.as_str(), branch.taken)) {
                continue;
            }
            let mut other = String::new();
            for (name, span) in &branch.sets {
                let used = [format!("${name}"), format!("${{{name}")].iter().any(|use_| text.contains(use_));
                let written = source.text().get(span.start as usize..span.end as usize).unwrap_or("");
                if used && other.len() < WRITTEN {
                    other.push_str(if other.is_empty() { "" } else { ", " });
                    other.push_str(written.get(..WRITTEN).unwrap_or(written));
                }
            }
            if other.is_empty() {
                continue;
            }
            reported.push((&branch.why, branch.taken));
            let (read, instead) = if branch.taken {
                ("this condition is read as true: ", "; were it false, the text would set ")
            } else {
                ("this condition is read as false: ", "; were it true, the text would set ")
            };
            let message = format!("{read}{}{instead}{other}", branch.why);
            self.diagnostics.push(Diagnostic::note(Code::Undecided, message).at(branch.span));
        }
    }
}
