//! `$x`, `${x...}`, `${a[i]}`, `$@`: what a parameter expands to.

use super::super::limits;
use super::super::script::HoleKind;
use super::super::tree::{Index, Operation, Parameter, Part};
use super::super::value::{HoleId, Value};
use super::state::{Certainty, Evaluator};
use super::variables::{Elements, Shape, Slot};
use shardscope_source::Span;

/// What a parameter expands to.
pub(crate) enum Expanded<'p> {
    One(Value),
    /// The word of `${x:-word}`, to be expanded in place.
    Operand(&'p [Part]),
    /// `$@`, `${a[@]}`: each element a separate word when quoted.
    Many(Vec<Value>),
}

impl Evaluator<'_> {
    pub(crate) fn parameter<'p>(&mut self, parameter: &'p Parameter) -> Expanded<'p> {
        if !self.spend(1, parameter.span) {
            return Expanded::One(Value::default());
        }
        let span = parameter.span;
        if parameter.indirect {
            return self.indirect(parameter);
        }
        // Whether it expands to several values; also true for the `*` forms, which are joined into one word when
        // quoted.
        let many = match (&parameter.index, parameter.name.as_str()) {
            (Some(Index::At), _) | (None, "@") => Some(false),
            (Some(Index::Star), _) | (None, "*") => Some(true),
            _ => None,
        };
        if parameter.length {
            return Expanded::One(self.length(parameter, many.is_some()));
        }
        if let Some(star) = many {
            return self.elements(parameter, star);
        }
        let found = self.lookup(parameter);
        let value = match &parameter.operation {
            Operation::Fallback { sign, colon, word } => {
                return self.fallback(parameter, found, (*sign, *colon, word));
            }
            operation => match found {
                Some(value) => self.operate(operation, value, span),
                None => self.missing(&parameter.name, span),
            },
        };
        Expanded::One(value)
    }

    /// The value of `$name` or `${name[i]}`, if it is set.
    fn lookup(&mut self, parameter: &Parameter) -> Option<Value> {
        if let Some(Index::One(index)) = &parameter.index {
            return self.indexed(&parameter.name, index);
        }
        self.named(&parameter.name, parameter.span)
    }

    fn named(&mut self, name: &str, span: Span) -> Option<Value> {
        if let Some(value) = self.scalar(name) {
            return Some(value.clone());
        }
        let text = match name {
            "#" => self.positional.values.len().to_string(),
            // An unknown outcome has no number either.
            "?" if self.status.certainty == Certainty::Unknown => return None,
            "?" if self.status.ok => "0".to_owned(),
            "?" => self.status.code.to_string(),
            _ => {
                let number: usize = name.parse().ok().filter(|number| *number > 0)?;
                // Parameters given by number refer to the call's positions before any `shift`.
                let place = number + self.positional.shifted;
                let numbered = self.positional.numbered.iter().rev().find(|(known, _)| *known == place);
                return match numbered.map(|(_, value)| value).or(self.positional.values.get(number - 1)) {
                    Some(value) => Some(value.clone()),
                    None if self.positional.open => None,
                    None => Some(Value::default()),
                };
            }
        };
        Some(Value::computed(&text, span))
    }

    /// The hole of a parameter that is not set.
    fn missing(&mut self, name: &str, span: Span) -> Value {
        match name.parse::<usize>() {
            Ok(number) if number > 0 => {
                let number = number + self.positional.shifted;
                self.unknown(HoleKind::Positional, &number.to_string(), span, Vec::new())
            }
            // Not the empty text, as in bash: most launch scripts leave variables to their environment.
            _ => self.unknown(HoleKind::Variable, name, span, Vec::new()),
        }
    }

    fn indexed(&mut self, name: &str, index: &[Part]) -> Option<Value> {
        let index = self.text_of(index);
        if self.shape(name) == Some(Shape::Map) {
            // An unknown key finds nothing, and the parameter becomes a separate hole.
            return self.variables.get(name)?.elements.get(0, index.known()?).cloned();
        }
        if let Ok(index) = self.number(&index, 0) {
            return self.element(name, index);
        }
        let shown = format!("{name}[{}]", index.text());
        let span = index.origin().unwrap_or_default();
        Some(self.unknown(HoleKind::Derived, &shown, span, index.holes()))
    }

    /// One element of an array; negative indices count from its end.
    pub(crate) fn element(&self, name: &str, index: i64) -> Option<Value> {
        let slot = self.variables.get(name)?;
        match slot.shape {
            Shape::Map => slot.elements.get(0, &index.to_string()),
            _ => slot.elements.get(slot.elements.position(index)?, ""),
        }
        .cloned()
    }

    pub(crate) fn set_element(&mut self, name: &str, index: i64, value: Value, span: Span) {
        let mut elements = Elements::default();
        if let Some(slot) = self.slot(name) {
            if slot.shape == Shape::Map {
                return self.set_key(name, &index.to_string(), value, span);
            }
            elements = std::mem::take(&mut slot.elements);
        }
        if elements.is_full() {
            self.report_full(span);
        } else if let Some(at) = elements.position(index) {
            elements.insert(at, "", value);
        }
        self.set_elements(name, Shape::Array, elements, span);
    }

    pub(crate) fn set_key(&mut self, name: &str, key: &str, value: Value, span: Span) {
        let Some(slot) = self.slot(name) else {
            let mut elements = Elements::default();
            elements.insert(0, key, value);
            return self.set_elements(name, Shape::Map, elements, span);
        };
        slot.span = Some(span);
        match slot.shape {
            Shape::Map if slot.elements.is_full() => self.report_full(span),
            Shape::Map => slot.elements.insert(0, key, value),
            _ => {}
        }
    }

    /// All elements of `name`, or all positional parameters.
    pub(crate) fn all_elements(&self, name: &str) -> Option<Vec<Value>> {
        if name == "@" || name == "*" {
            return Some(self.positional.values.clone());
        }
        Some(self.variables.get(name)?.elements.values())
    }

    fn elements<'p>(&mut self, parameter: &'p Parameter, star: bool) -> Expanded<'p> {
        let span = parameter.span;
        let found = self.all_elements(&parameter.name);
        if !self.spend(weight(found.as_deref().unwrap_or(&[])), span) {
            return Expanded::One(Value::default());
        }
        let values = match (&parameter.operation, found) {
            (Operation::Fallback { sign, colon, word }, found) => {
                // Bash treats an array without elements as unset.
                let found = found.filter(|values| !values.is_empty());
                let joined = found.as_ref().map(|values| joined(values, " ", span));
                let is_set = joined.as_ref().is_some_and(|value| !*colon || !value.is_empty());
                match (is_set, *sign) {
                    (true, b'+') | (false, b'-' | b'=' | b'?') => {
                        return self.fallback(parameter, joined, (*sign, *colon, word));
                    }
                    (true, _) => found.unwrap_or_default(),
                    (false, _) => Vec::new(),
                }
            }
            (Operation::Slice { offset, length }, Some(values)) => {
                self.slice_elements(values, offset, length.as_deref(), parameter)
            }
            (operation, Some(mut values)) => {
                for value in &mut values {
                    *value = self.operate(operation, std::mem::take(value), span);
                }
                values
            }
            (_, None) if matches!(parameter.name.as_str(), "@" | "*") => Vec::new(),
            (_, None) => vec![self.missing(&parameter.name, span)],
        };
        if star && parameter.quoted {
            Expanded::One(joined(&values, &self.joint(), span))
        } else {
            Expanded::Many(values)
        }
    }

    /// The separator that `$*` and `${a[*]}` put between elements: the first character of IFS.
    fn joint(&self) -> String {
        match self.known("IFS") {
            Some(signs) => signs.chars().take(1).collect(),
            None => " ".to_owned(),
        }
    }

    /// `${a[@]:from:count}`; among positional parameters the first has number 1.
    fn slice_elements(
        &mut self,
        values: Vec<Value>,
        offset: &[Part],
        length: Option<&[Part]>,
        parameter: &Parameter,
    ) -> Vec<Value> {
        let offset = self.text_of(offset);
        let length = length.map(|length| self.text_of(length));
        let from = self.number(&offset, 0).unwrap_or(0);
        let count = length.map(|length| self.number(&length, 0).unwrap_or(0));
        let first = i64::from(matches!(parameter.name.as_str(), "@" | "*"));
        let size = i64::try_from(values.len()).unwrap_or(i64::MAX);
        // `${@:0}` begins with `$0`, which is not among the values; it is left out.
        let from = if from < 0 { size.saturating_add(from) } else { (from - first).max(0) };
        if from < 0 {
            return Vec::new();
        }
        let count = count.unwrap_or(size).max(0);
        let (from, count) =
            (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(count).unwrap_or(0));
        // In an array with gaps the offset is an index, not a position.
        let skipped = match self.variables.get(&parameter.name) {
            Some(slot) if slot.shape == Shape::Array => {
                slot.elements.0.iter().take_while(|element| (element.index as usize) < from).count()
            }
            _ => from,
        };
        let mut values = values;
        values.drain(..skipped.min(values.len()));
        values.truncate(count);
        values
    }

    fn length(&mut self, parameter: &Parameter, all: bool) -> Value {
        let span = parameter.span;
        if all {
            // An undecided loop leaves a variable unknown that may be an array.
            let slot = self.variables.get(&parameter.name);
            let unknown = |slot: &&Slot| {
                let holes = || slot.elements.values().iter().any(Value::has_holes);
                slot.open || slot.shape == Shape::Scalar && holes()
            };
            if let Some(slot) = slot.filter(unknown) {
                let holes = slot.elements.values().iter().flat_map(Value::holes).collect();
                let shown = format!("#{}[@]", parameter.name);
                return self.unknown(HoleKind::Derived, &shown, span, holes);
            }
            let count = self.all_elements(&parameter.name).map_or(0, |values| values.len());
            return Value::computed(&count.to_string(), span);
        }
        match self.lookup(parameter) {
            Some(value) if value.has_holes() => {
                let shown = format!("#{}", parameter.name);
                self.unknown(HoleKind::Derived, &shown, span, value.holes())
            }
            Some(value) => Value::computed(&value.text().chars().count().to_string(), span),
            None => self.missing(&parameter.name, span),
        }
    }

    /// `${!x}` and `${!a[@]}`.
    fn indirect<'p>(&mut self, parameter: &'p Parameter) -> Expanded<'p> {
        let span = parameter.span;
        if matches!(parameter.index, Some(Index::At | Index::Star)) {
            let mut keys = Vec::new();
            if let Some(slot) = self.variables.get(&parameter.name) {
                for element in &slot.elements.0 {
                    keys.push(match slot.shape {
                        Shape::Map => Value::computed(&element.key, span),
                        _ => Value::computed(&element.index.to_string(), span),
                    });
                }
            }
            return Expanded::Many(keys);
        }
        let target = self.lookup(parameter);
        let name = target.as_ref().and_then(Value::known).filter(|name| is_name(name)).map(str::to_owned);
        let Some(name) = name else {
            let needs = target.unwrap_or_default().holes();
            let shown = format!("!{}", parameter.name);
            return Expanded::One(self.unknown(HoleKind::Derived, &shown, span, needs));
        };
        let found = self.named(&name, span);
        Expanded::One(match (&parameter.operation, found) {
            (Operation::Fallback { sign, colon, word }, found) => {
                return self.fallback(parameter, found, (*sign, *colon, word));
            }
            (operation, Some(value)) => self.operate(operation, value, span),
            (_, None) => self.missing(&name, span),
        })
    }

    /// `${x:-word}` and the like.
    fn fallback<'p>(
        &mut self,
        parameter: &Parameter,
        found: Option<Value>,
        (sign, colon, word): (u8, bool, &'p [Part]),
    ) -> Expanded<'p> {
        // A variable nobody sets, seen through another (`B=$A`, then `${B:-8}`), would be empty, so the fallback
        // applies.
        let unknown_alone =
            found.as_ref().is_some_and(|value| value.only_hole().is_some_and(|hole| self.is_unset(hole)));
        let is_set =
            found.as_ref().is_some_and(|value| !colon || !value.is_empty()) && !(colon && unknown_alone);
        match (sign, is_set) {
            (b'+', false) => Expanded::One(Value::default()),
            // As one text, so that every piece of it can be marked as doubtful.
            (b'-', false) if found.as_ref().is_some_and(Value::has_holes) => {
                let mut value = self.text_of(word);
                self.doubt_after(found.as_ref(), &mut value);
                Expanded::One(value)
            }
            (b'+', true) | (b'-', false) => Expanded::Operand(word),
            (b'=', false) => {
                let mut value = self.text_of(word);
                self.doubt_after(found.as_ref(), &mut value);
                if is_name(&parameter.name) {
                    self.set(&parameter.name, value.clone(), Some(parameter.span));
                }
                Expanded::One(value)
            }
            // Bash would end the script, so whoever runs it must set the variable: ask for it.
            (b'?', false) => Expanded::One(self.missing(&parameter.name, parameter.span)),
            (_, _) => Expanded::One(found.unwrap_or_default()),
        }
    }

    /// Whether a hole is a variable that nobody sets, or a positional parameter of a call that is not given.
    pub(crate) fn is_unset(&self, hole: HoleId) -> bool {
        let kind = self.notes.holes.get(hole.0 as usize).map(|hole| hole.kind);
        matches!(kind, Some(HoleKind::Variable | HoleKind::Positional | HoleKind::Branch))
    }

    /// A default that replaces what a skipped branch would have set is as doubtful as that branch.
    fn doubt_after(&self, instead_of: Option<&Value>, value: &mut Value) {
        let hole = instead_of.and_then(Value::only_hole);
        if let Some((_, branch)) = self.branch_of.iter().find(|(known, _)| Some(*known) == hole) {
            value.set_doubt(*branch);
        }
    }
}

/// How much copying values costs, in evaluation steps.
pub(crate) fn weight(values: &[Value]) -> u32 {
    values.iter().fold(0, |weight, value| weight.saturating_add(value.weight()))
}

fn joined(values: &[Value], joint: &str, span: Span) -> Value {
    let mut out = Value::default();
    for (at, value) in values.iter().enumerate() {
        if at > 0 {
            out.add(joint, span);
        }
        out.append(value);
        if out.len() > limits::VALUE_BYTES {
            break;
        }
    }
    out
}

/// Whether a text can name a variable.
pub(crate) fn is_name(text: &str) -> bool {
    let first = text.as_bytes().first();
    first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
