//! Questions: which variables are still open, and which questions are no longer needed.

use super::{MACHINES, Table};
use crate::{Asked, Question};
use shardscope_plan::Field;
use shardscope_source::Span;

impl Table {
    /// Whether its stated value depends on an open variable.
    pub(crate) fn is_open(&self, field: Field) -> bool {
        self.left_to(field).is_some()
    }

    /// Whether the stated value cannot be read.
    pub(crate) fn is_unreadable(&self, field: Field) -> bool {
        self.unreadable.contains(&field)
    }

    /// The variable on which its stated value depends, and its position.
    pub(crate) fn left_to(&self, field: Field) -> Option<(&str, Option<Span>)> {
        // A value set later (by hand, from the catalog) closes it.
        let open = self.open.iter().find(|(open, _, _)| *open == field && !self.has(field))?;
        Some((&open.1, open.2))
    }

    /// The variable on which the stated value of `field` depends, whether or not something else gives its value.
    pub(crate) fn variable_of(&self, field: Field) -> Option<&str> {
        self.open.iter().find(|(open, _, _)| *open == field).map(|(_, variable, _)| variable.as_str())
    }

    /// Whether a machine number is open and depends on this variable.
    pub(crate) fn decides_machines(&self, variable: &str) -> bool {
        self.open
            .iter()
            .any(|(field, hole, _)| hole == variable && MACHINES.contains(field) && !self.has(*field))
    }

    /// Removes the questions for variables that only decide the machines.
    pub(crate) fn ask_for_machines_by_name(&mut self) {
        let (open, closed) = (&self.open, &self.closed);
        self.questions.retain(|question| {
            let (mut machines, mut others) = (false, false);
            for (field, hole, _) in open {
                if hole == question.name() {
                    let machine = MACHINES.contains(field);
                    (machines, others) = (machines | machine, others | !machine);
                }
            }
            machines |=
                closed.iter().any(|(field, hole)| hole == question.name() && MACHINES.contains(field));
            // The question for a variable that also decides something else stays.
            !machines || others
        });
    }

    /// Removes the questions for variables that decide no figure: for a tokenizer, the vocabulary itself is asked for.
    pub(super) fn ask_for_nothing_idle(&mut self) {
        let (open, idle) = (&self.open, &self.idle);
        self.questions.retain(|question| {
            // A variable may be irrelevant in one place and decide a figure in another.
            !idle.iter().any(|hole| hole == question.name())
                || open.iter().any(|(_, hole, _)| hole == question.name())
        });
    }

    /// Removes the questions for settings that the user sets to a readable value. For a model given by name it is not
    /// yet known whether it exists.
    pub(super) fn ask_for_nothing_set(&mut self, set: &[Field]) {
        let (slots, open, closed) = (&self.slots, &self.open, &self.closed);
        // A variable that only decides settings that are set.
        let is_settled = |name: &str| {
            let mut stated = closed.iter().filter(|(_, hole)| hole == name).peekable();
            stated.peek().is_some()
                && stated.all(|(field, _)| slots[field.index()].is_some())
                && open.iter().all(|(_, hole, _)| hole != name)
        };
        self.questions.retain(|question| {
            let asked = question.asks.setting().filter(|field| *field != Field::Model);
            // A setting with an unreadable value is still missing.
            asked.is_none_or(|field| !set.contains(&field) || slots[field.index()].is_none())
                && !is_settled(question.name())
        });
    }

    /// Settings that depend on a named variable, except for the machines.
    pub(crate) fn open_variables(&self) -> Vec<(Field, String)> {
        let is_name = |hole: &str| {
            let name = hole.strip_prefix('$').unwrap_or(hole);
            // Only names: the text of an entire command substitution cannot be set.
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let open = self
            .open
            .iter()
            .filter(|(field, hole, _)| !self.has(*field) && !MACHINES.contains(field) && is_name(hole));
        open.map(|(field, hole, _)| (*field, hole.clone())).collect()
    }

    /// The proposal of a question.
    pub(crate) fn proposal(&self, name: &str) -> Option<String> {
        self.questions.iter().find(|question| question.name() == name)?.proposal.clone()
    }

    /// Gives the question for a variable a proposal, if it is still open.
    pub(crate) fn propose(&mut self, variable: &str, proposal: &str) -> bool {
        let asked = self.questions.iter_mut().find(|question| question.name() == variable);
        asked.is_some_and(|question| {
            // The first proposal is kept: it is the closest to what asked.
            question.proposal.get_or_insert_with(|| proposal.to_owned());
            true
        })
    }

    /// Asks once for each name and each deciding question; a later proposal is added to an earlier question.
    pub(crate) fn ask(&mut self, question: Question) {
        let decided = self.decided.iter().find(|(field, _)| question.asks == Asked::Setting(*field));
        // A question for a decided setting means the question that decides it.
        let asks = decided.map_or(&question.asks, |(_, decides)| decides);
        match self.questions.iter_mut().find(|asked| asked.asks == *asks) {
            // `arguments` stands for all arguments of the script; a proposal for one of them would not be a valid
            // answer.
            Some(asked) if *asks != Asked::Arguments => {
                asked.proposal = asked.proposal.take().or(question.proposal);
            }
            Some(_) => {}
            None => self.questions.push(question),
        }
    }
}
