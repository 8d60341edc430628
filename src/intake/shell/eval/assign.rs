//! Assignments to variables, elements and whole arrays.

use std::collections::BTreeMap;

use super::super::limits;
use super::super::tree::{Assigned, Assignment, Element};
use super::super::value::Value;
use super::state::{Data, Evaluator};
use crate::text::Span;

impl Evaluator<'_> {
    pub(crate) fn assign(&mut self, assignment: &Assignment) {
        let span = assignment.span;
        match &assignment.value {
            Assigned::Scalar(word) => {
                let value = self.text_of(&word.parts);
                self.assign_scalar(assignment, value, span);
            }
            Assigned::Array(elements) => self.assign_array(assignment, elements, span),
        }
    }

    fn assign_scalar(&mut self, assignment: &Assignment, value: Value, span: Span) {
        let name = assignment.name.as_str();
        let Some(index) = &assignment.index else {
            let value = if assignment.append {
                self.appended(self.scalar(name).cloned(), value, name, span)
            } else {
                value
            };
            return self.set(name, value, Some(span));
        };
        let index = self.text_of(index);
        if let Some(Data::Map(map)) = self.variables.get(name).map(|slot| &slot.data) {
            let old = map.get(index.text()).cloned();
            let value = if assignment.append { self.appended(old, value, name, span) } else { value };
            let key = index.text().to_owned();
            return self.set_key(name, &key, value, span);
        }
        if let Ok(index) = self.number(&index, 0) {
            let old = self.element(name, index);
            let value = if assignment.append { self.appended(old, value, name, span) } else { value };
            self.set_element(name, index, value, span);
        }
    }

    /// `x+=text`; what is not set yet counts as empty only if the text itself sets it somewhere.
    fn appended(&mut self, old: Option<Value>, value: Value, _name: &str, span: Span) -> Value {
        let mut whole = old.unwrap_or_default();
        if !self.spend(whole.weight(), span) {
            return whole;
        }
        whole.append(&value);
        whole
    }

    fn assign_array(&mut self, assignment: &Assignment, elements: &[Element], span: Span) {
        let name = assignment.name.as_str();
        if let Some(Data::Map(_)) = self.variables.get(name).map(|slot| &slot.data) {
            for element in elements {
                let Some(index) = &element.index else { continue };
                let key = self.text_of(index).text().to_owned();
                let value = self.text_of(&element.word.parts);
                self.set_key(name, &key, value, span);
            }
            return;
        }
        // The elements are expanded before the old array goes: a=("${a[@]}" more).
        let mut added = Vec::new();
        for element in elements {
            match &element.index {
                Some(index) => {
                    let index = self.text_of(index);
                    let at = self.number(&index, 0).ok().and_then(|at| u32::try_from(at).ok());
                    let value = self.text_of(&element.word.parts);
                    added.push((at, value));
                }
                None => {
                    let mut words = Vec::new();
                    self.expand(&element.word, &mut words);
                    added.extend(words.into_iter().map(|word| (None, word.value)));
                }
            }
        }
        let mut values = BTreeMap::new();
        if assignment.append {
            values = match self.variables.get_mut(name).map(|slot| &mut slot.data) {
                Some(Data::Array(old)) => std::mem::take(old),
                Some(Data::Scalar(old)) => BTreeMap::from([(0, std::mem::take(old))]),
                _ => BTreeMap::new(),
            };
        }
        let mut next = values.keys().next_back().map_or(0, |last| last.saturating_add(1));
        for (at, value) in added.into_iter().take(limits::WORDS) {
            let at = at.unwrap_or(next);
            values.insert(at, value);
            next = at.saturating_add(1);
        }
        if values.len() > limits::WORDS {
            values = values.into_iter().take(limits::WORDS).collect();
        }
        self.set_data(name, Data::Array(values), span);
    }
}
