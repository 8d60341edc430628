//! Assignments to variables, elements and whole arrays.

use super::super::limits;
use super::super::tree::{Assigned, Assignment, Element, Part};
use super::super::value::Value;
use super::state::Evaluator;
use super::variables::{Elements, Shape};

impl Evaluator<'_> {
    pub(crate) fn assign(&mut self, assignment: &Assignment) {
        match &assignment.value {
            Assigned::Scalar(word) => {
                let value = self.text_of(&word.parts);
                self.assign_scalar(assignment, value);
            }
            Assigned::Array(elements) => self.assign_array(assignment, elements),
        }
    }

    fn assign_scalar(&mut self, assignment: &Assignment, value: Value) {
        let (name, span) = (assignment.name.as_str(), assignment.span);
        let Some(index) = &assignment.index else {
            let value = self.appended(assignment, self.scalar(name).cloned(), value);
            return self.set(name, value, Some(span));
        };
        let index = self.text_of(index);
        // A map's key is text: `m[1+1]` is not `m[2]`.
        if self.shape(name) == Some(Shape::Map) {
            let old = self.variables.get(name).and_then(|slot| slot.elements.get(0, index.text())).cloned();
            let value = self.appended(assignment, old, value);
            return self.set_key(name, index.text(), value, span);
        }
        // With an unknown index no element can be set, so the array is left unchanged.
        if let Ok(index) = self.number(&index, 0) {
            let value = self.appended(assignment, self.element(name, index), value);
            self.set_element(name, index, value, span);
        }
    }

    /// `x+=text`; an unset variable counts as empty.
    fn appended(&mut self, assignment: &Assignment, old: Option<Value>, value: Value) -> Value {
        // A literal number is kept with its place in the text.
        let plain = value.known().is_some_and(|text| {
            text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0') && !text.is_empty()
        });
        let computes = assignment.append || !plain;
        if computes && self.variables.get(&assignment.name).is_some_and(|slot| slot.integer) {
            let mut sum = Value::default();
            if assignment.append
                && let Some(old) = old.filter(|old| !old.is_empty())
            {
                sum.append(&old);
                sum.add("+", assignment.span);
            }
            sum.append(&value);
            return self.arithmetic_value(&sum, assignment.span);
        }
        if !assignment.append {
            return value;
        }
        let mut whole = old.unwrap_or_default();
        if self.spend(whole.weight(), assignment.span) {
            whole.append(&value);
        }
        whole
    }

    fn assign_array(&mut self, assignment: &Assignment, elements: &[Element]) {
        let (name, span) = (assignment.name.as_str(), assignment.span);
        if self.shape(name) == Some(Shape::Map) {
            for element in elements {
                let Some(index) = &element.index else { continue };
                let key = self.text_of(index);
                let value = self.text_of(&element.word.parts);
                self.set_key(name, key.text(), value, span);
            }
            return;
        }
        // The elements are expanded before the old array is dropped: a=("${a[@]}" more).
        let mut added = Vec::new();
        let mut open = assignment.append && self.slot(name).is_some_and(|slot| slot.open);
        for element in elements {
            match &element.index {
                Some(index) => {
                    let index = self.text_of(index);
                    let at = self.number(&index, 0).ok().and_then(|at| u32::try_from(at).ok());
                    added.push((at, self.text_of(&element.word.parts)));
                }
                None => {
                    let mut words = Vec::new();
                    self.expand(&element.word, &mut words);
                    open |= splits(&element.word.parts) && words.iter().any(|word| word.value.has_holes());
                    for word in words {
                        added.push((None, word.value));
                    }
                }
            }
        }
        let mut values = Elements::default();
        if assignment.append
            && let Some(slot) = self.slot(name)
        {
            values = std::mem::take(&mut slot.elements);
        }
        let mut next = values.next();
        let mut too_many = added.len() > limits::WORDS;
        for (at, value) in added.into_iter().take(limits::WORDS) {
            let at = at.unwrap_or(next);
            values.insert(at, "", value);
            next = at.saturating_add(1);
        }
        too_many |= values.0.len() > limits::WORDS;
        values.0.truncate(limits::WORDS);
        if too_many {
            self.report_full(span);
        }
        self.set_elements(name, Shape::Array, values, span);
        if open {
            self.leave_open(name);
        }
    }
}

/// Whether something in a word is split when it is expanded.
fn splits(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Command { quoted, .. } => !quoted,
        Part::Parameter(parameter) => !parameter.quoted,
        _ => false,
    })
}
