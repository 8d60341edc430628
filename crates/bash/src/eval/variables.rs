//! Variables, arrays and functions, found by name in sorted lists.

use std::rc::Rc;

use super::super::limits;
use super::super::tree::Command;
use super::super::value::Value;
use shardscope_source::Span;

/// Which of bash's kinds of variable it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One value, under the index 0.
    Scalar,
    Array,
    /// Values by keys (`declare -A`).
    Map,
}

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) shape: Shape,
    pub(crate) elements: Elements,
    pub(crate) exported: bool,
    /// Whether assigned values are evaluated as integers (`declare -i`).
    pub(crate) integer: bool,
    /// Whether the number of elements is unknown because what was split into them is unknown (`a=($(nvidia-smi
    /// -L))`).
    pub(crate) open: bool,
    pub(crate) span: Option<Span>,
}

/// One element: by index in an array, by key in a map.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) index: u32,
    pub(crate) key: String,
    pub(crate) value: Value,
}

/// The elements of one variable, by index or key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elements(pub(crate) Vec<Element>);

impl Elements {
    /// An array of these values, indices from 0 without gaps.
    pub(crate) fn listed(values: Vec<Value>) -> Self {
        let mut elements = Self::default();
        for (index, value) in (0..).zip(values) {
            elements.0.push(Element { index, key: String::new(), value });
        }
        elements
    }

    /// The elements of a scalar: its value under index 0.
    pub(crate) fn scalar(value: Value) -> Self {
        Self::listed(vec![value])
    }

    fn place(&self, index: u32, key: &str) -> Result<usize, usize> {
        // In a map every index is 0 and in an array every key is empty, so one ordering serves both.
        self.0
            .binary_search_by(|element| element.index.cmp(&index).then_with(|| element.key.as_str().cmp(key)))
    }

    pub(crate) fn get(&self, index: u32, key: &str) -> Option<&Value> {
        Some(&self.0.get(self.place(index, key).ok()?)?.value)
    }

    pub(crate) fn insert(&mut self, index: u32, key: &str, value: Value) {
        match self.place(index, key) {
            Ok(at) => {
                if let Some(element) = self.0.get_mut(at) {
                    element.value = value;
                }
            }
            Err(at) => self.0.insert(at, Element { index, key: key.to_owned(), value }),
        }
    }

    pub(crate) fn remove(&mut self, index: u32, key: &str) {
        if let Ok(at) = self.place(index, key) {
            self.0.remove(at);
        }
    }

    /// The index after the last one.
    pub(crate) fn next(&self) -> u32 {
        self.0.last().map_or(0, |last| last.index.saturating_add(1))
    }

    /// Where an index points; negative ones count from the end.
    pub(crate) fn position(&self, index: i64) -> Option<u32> {
        let size = self.0.last().map_or(0, |last| i64::from(last.index) + 1);
        // Bash counts from one past the largest index, gaps included, not from the number of elements.
        u32::try_from(if index < 0 { size.saturating_add(index) } else { index }).ok()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= limits::WORDS
    }

    /// The values, in order.
    pub(crate) fn values(&self) -> Vec<Value> {
        let mut values = Vec::new();
        for element in &self.0 {
            values.push(element.value.clone());
        }
        values
    }
}

/// Variables by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(Vec<(Rc<str>, Rc<Slot>)>);

impl Variables {
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Slot> {
        Some(&self.0.get(self.place(name).ok()?)?.1)
    }

    /// The variable, for modification.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Slot> {
        let at = self.place(name).ok()?;
        // A subshell's copy of the table shares the slots; only the modified one is copied.
        Some(Rc::make_mut(&mut self.0.get_mut(at)?.1))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    pub(crate) fn put(&mut self, name: &str, slot: Slot) {
        self.put_back(name, Some(Rc::new(slot)));
    }

    /// Removes a variable; `None` if there is none of that name.
    pub(crate) fn take(&mut self, name: &str) -> Option<Rc<Slot>> {
        let at = self.place(name).ok()?;
        Some(self.0.remove(at).1)
    }

    /// Restores a variable's earlier state.
    pub(crate) fn put_back(&mut self, name: &str, slot: Option<Rc<Slot>>) {
        match (self.place(name), slot) {
            (Ok(at), Some(slot)) => {
                if let Some(known) = self.0.get_mut(at) {
                    known.1 = slot;
                }
            }
            (Err(at), Some(slot)) => self.0.insert(at, (name.into(), slot)),
            (_, None) => {
                self.take(name);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> &[(Rc<str>, Rc<Slot>)] {
        &self.0
    }

    /// Keeps only exported variables.
    pub(crate) fn keep_exported(&mut self) {
        self.0.retain(|(_, slot)| slot.exported);
    }
}

/// Functions by name; the last definition of a name counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions(Vec<(Rc<str>, Rc<Command>)>);

impl Functions {
    pub(crate) fn get(&self, name: &str) -> Option<&Rc<Command>> {
        Some(&self.0.iter().find(|(known, _)| **known == *name)?.1)
    }

    pub(crate) fn define(&mut self, name: &str, body: &Rc<Command>) {
        self.forget(name);
        if self.0.len() < limits::FUNCTIONS {
            self.0.push((name.into(), body.clone()));
        }
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.0.retain(|(known, _)| **known != *name);
    }
}
