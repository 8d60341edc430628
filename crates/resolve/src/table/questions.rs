//! Questions: which variables are still open, what is proposed, and which questions have become idle.

use super::{MACHINES, Table};
use crate::{ARGUMENTS, Question};
use shardscope_plan::Field;
use shardscope_source::Span;

impl Table {
    /// Whether its stated value lacks a variable.
    pub(crate) fn is_open(&self, field: Field) -> bool {
        self.left_to(field).is_some()
    }

    /// Whether a value was stated that cannot be read.
    pub(crate) fn is_unreadable(&self, field: Field) -> bool {
        self.unreadable.contains(&field)
    }

    /// The variable that its stated value lacks, and where.
    pub(crate) fn left_to(&self, field: Field) -> Option<(&str, Option<Span>)> {
        // A value that came later (by hand, from the catalog) closes it.
        let open = self.open.iter().find(|(open, _, _)| *open == field && !self.has(field))?;
        Some((&open.1, open.2))
    }

    /// The variable that what the text states of `field` lacks, whether or not something else gives its value.
    pub(crate) fn variable_of(&self, field: Field) -> Option<&str> {
        self.open.iter().find(|(open, _, _)| *open == field).map(|(_, variable, _)| variable.as_str())
    }

    /// Whether a number of machines is open and lacks this variable.
    pub(crate) fn decides_machines(&self, variable: &str) -> bool {
        self.open
            .iter()
            .any(|(field, hole, _)| hole == variable && MACHINES.contains(field) && !self.has(*field))
    }

    /// Takes back the questions for variables that decide nothing but the machines.
    pub(crate) fn ask_for_machines_by_name(&mut self) {
        let open = &self.open;
        self.questions.retain(|question| {
            let (mut machines, mut others) = (false, false);
            for (field, hole, _) in open {
                if *hole == question.name {
                    let machine = MACHINES.contains(field);
                    (machines, others) = (machines | machine, others | !machine);
                }
            }
            // Of a variable that also decides something else the question stays.
            !machines || others
        });
    }

    /// Takes back the questions for variables that decide no figure: of a tokenizer the vocabulary is asked for itself.
    pub(super) fn ask_for_nothing_idle(&mut self) {
        let (open, idle) = (&self.open, &self.idle);
        self.questions.retain(|question| {
            // A variable may be idle in one place and decide a figure in another.
            !idle.contains(&question.name) || open.iter().any(|(_, hole, _)| *hole == question.name)
        });
    }

    /// Takes back the questions for settings that the user sets to a value that can be read. Of a model by its name it is not known
    /// yet whether there is one.
    pub(super) fn ask_for_nothing_set(&mut self, set: &[Field]) {
        let slots = &self.slots;
        self.questions.retain(|question| {
            let asked = Field::named(&question.name).filter(|field| *field != Field::Model);
            // Set to what cannot be read, a setting is still missing.
            asked.is_none_or(|field| !set.contains(&field) || slots[field.index()].is_none())
        });
    }

    /// Settings that lack a variable by name, but for the machines.
    pub(crate) fn open_variables(&self) -> Vec<(Field, String)> {
        let is_name = |hole: &str| {
            let name = hole.strip_prefix('$').unwrap_or(hole);
            // Names only: the text of a whole command substitution is nothing that could be set.
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let open = self
            .open
            .iter()
            .filter(|(field, hole, _)| !self.has(*field) && !MACHINES.contains(field) && is_name(hole));
        open.map(|(field, hole, _)| (*field, hole.clone())).collect()
    }

    /// What is proposed for a question.
    pub(crate) fn proposal(&self, name: &str) -> Option<String> {
        self.questions.iter().find(|question| question.name == name)?.proposal.clone()
    }

    /// Gives the question for a variable a proposal, if it is still asked.
    pub(crate) fn propose(&mut self, variable: &str, proposal: &str) -> bool {
        let asked = self.questions.iter_mut().find(|question| question.name == variable);
        asked.is_some_and(|question| {
            // The first proposal stays: it is the nearest to what asked.
            question.proposal.get_or_insert_with(|| proposal.to_owned());
            true
        })
    }

    /// Asks, once for each name and each question that decides it; a later proposal joins an earlier question.
    pub(crate) fn ask(&mut self, question: Question) {
        let decided = self.decided.iter().find(|(name, _)| *name == question.name);
        // Whoever asks for a decided setting means the question that decides it.
        let name = decided.map_or(question.name.as_str(), |(_, variable)| variable.as_str());
        match self.questions.iter_mut().find(|asked| asked.name == name) {
            // `arguments` stands for all words of the call; a proposal for one of them would answer it wrongly.
            Some(asked) if name != ARGUMENTS => {
                asked.proposal = asked.proposal.take().or(question.proposal);
            }
            Some(_) => {}
            None => self.questions.push(question),
        }
    }
}
