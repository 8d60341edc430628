//! Every setting while it is being resolved: what was stated, then defaults, then what follows.

use super::setting::{Setting, SettingValue, parse, says_nothing};
use crate::intake::{Found, Origin, Question, Reading};
use crate::plan::{Contradiction, Field};
use crate::text::{Diagnostic, Span, suggest};

/// Settings that say how many accelerators there are.
const MACHINES: [Field; 3] = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize];

/// All settings, by [`Field`].
pub(super) struct Table {
    slots: Vec<Option<Setting>>,
    /// What there is to say.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What is left open.
    pub(super) questions: Vec<Question>,
    /// Settings whose stated value lacks a variable, which, and where.
    open: Vec<(Field, String, Option<Span>)>,
    /// Settings that another question decides: the setting's name and that question's.
    decided: Vec<(&'static str, String)>,
}

impl Table {
    /// What the readings state, later ones winning, and what the user sets on top.
    pub(super) fn stated(readings: &[Reading], overrides: &[(String, String)]) -> Self {
        let mut table = Self {
            slots: vec![None; Field::ALL.len()],
            diagnostics: Vec::new(),
            questions: Vec::new(),
            open: Vec::new(),
            decided: Vec::new(),
        };
        for reading in readings {
            table.diagnostics.extend(reading.diagnostics.iter().cloned());
            table.questions.extend(reading.questions.iter().cloned());
        }
        let set = |field: Field| overrides.iter().any(|(name, _)| Field::named(name) == Some(field));
        for found in readings.iter().flat_map(|reading| &reading.found) {
            if !set(found.field) {
                table.found(found);
            }
        }
        for (name, value) in overrides {
            match Field::named(name) {
                Some(field) if says_nothing(value) => table.clear(field),
                Some(field) => table.found(&Found::new(field, value.as_str(), Origin::User)),
                None => table.unknown_override(name),
            }
        }
        table
    }

    fn unknown_override(&mut self, name: &str) {
        // A link of a newer version may name what is not known here.
        let names = Field::ALL.iter().map(|field| field.name());
        let mut unknown =
            Diagnostic::warning("unknown-setting", format!("there is no setting {name}; it is left out"));
        unknown.hint = suggest(name, names).map(|near| format!("{near} is the nearest"));
        self.diagnostics.push(unknown);
    }

    fn found(&mut self, found: &Found) {
        if let Some(hole) = &found.hole {
            self.open(found, hole);
            return;
        }
        if says_nothing(&found.value) {
            self.clear(found.field);
            return;
        }
        match parse(found.field, &found.value) {
            Ok(value) => self.put(
                found.field,
                Setting {
                    name: found.field.name(),
                    value,
                    origin: found.origin,
                    flag: found.flag.clone(),
                    span: found.span,
                    note: found.note.clone(),
                },
            ),
            Err(message) => {
                self.diagnostics.push(Diagnostic::error("bad-value", message).at_some(found.span))
            }
        }
    }

    /// A value that lacks a variable: asked for, and no default takes its place where it matters.
    fn open(&mut self, found: &Found, hole: &str) {
        if found.field.is_idle() {
            return;
        }
        self.clear(found.field);
        self.open.push((found.field, hole.to_owned(), found.span));
        // The machines are asked for together.
        if MACHINES.contains(&found.field) {
            return;
        }
        let (name, about) = (found.field.name(), found.field.about());
        let message = format!("{name} ({about}) is left to {hole}, which the text does not set");
        self.diagnostics.push(Diagnostic::error("open-value", message).at_some(found.span));
        // `$1` and its like may be asked for all at once, as the words of the call.
        let positional = hole.starts_with('$') && !hole.starts_with("$(");
        let decides = |asked: &&Question| asked.name == hole || (positional && asked.name == "arguments");
        if let Some(asked) = self.questions.iter().find(decides) {
            self.decided.push((name, asked.name.clone()));
            return;
        }
        self.ask(Question {
            name: name.to_owned(),
            prompt: format!("{about}? The text leaves it to {hole}"),
            choices: Vec::new(),
            proposal: None,
        });
    }

    /// Whether its stated value lacks a variable.
    pub(super) fn is_open(&self, field: Field) -> bool {
        self.left_to(field).is_some()
    }

    /// The variable that its stated value lacks, and where.
    pub(super) fn left_to(&self, field: Field) -> Option<(&str, Option<Span>)> {
        let open = self.open.iter().find(|(open, _, _)| *open == field && !self.has(field))?;
        Some((&open.1, open.2))
    }

    /// Takes back the questions for variables that decide nothing but the machines.
    pub(super) fn ask_for_machines_by_name(&mut self) {
        let open = &self.open;
        let machines_alone = |name: &str| {
            let mut fields =
                open.iter().filter(|(_, hole, _)| hole == name).map(|(field, _, _)| field).peekable();
            fields.peek().is_some() && fields.all(|field| MACHINES.contains(field))
        };
        self.questions.retain(|question| !machines_alone(&question.name));
    }

    /// Asks, once for each name and each question that decides it; a later proposal joins an earlier question.
    pub(super) fn ask(&mut self, question: Question) {
        let decided = self.decided.iter().find(|(name, _)| *name == question.name);
        let name = decided.map_or(question.name.as_str(), |(_, variable)| variable.as_str());
        match self.questions.iter_mut().find(|asked| asked.name == name) {
            Some(asked) if name != "arguments" => {
                asked.proposal = asked.proposal.take().or(question.proposal);
            }
            Some(_) => {}
            None => self.questions.push(question),
        }
    }

    fn put(&mut self, field: Field, setting: Setting) {
        if let Some(slot) = self.slots.get_mut(field.index()) {
            *slot = Some(setting);
        }
    }

    fn clear(&mut self, field: Field) {
        if let Some(slot) = self.slots.get_mut(field.index()) {
            *slot = None;
        }
    }

    /// The setting, if it has one.
    pub(super) fn get(&self, field: Field) -> Option<&Setting> {
        self.slots.get(field.index()).and_then(Option::as_ref)
    }

    /// Whether it has a value.
    pub(super) fn has(&self, field: Field) -> bool {
        self.get(field).is_some()
    }

    /// Where it was stated.
    pub(super) fn span(&self, field: Field) -> Option<Span> {
        self.get(field).and_then(|setting| setting.span)
    }

    /// A place to point at when something is missing: the first setting that the text states.
    pub(super) fn anywhere(&self) -> Option<Span> {
        self.slots.iter().flatten().find_map(|setting| setting.span)
    }

    /// A count.
    pub(super) fn count(&self, field: Field) -> Option<u64> {
        match self.get(field)?.value {
            SettingValue::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A count that is a degree: 1 unless there.
    pub(super) fn degree(&self, field: Field) -> u64 {
        self.count(field).unwrap_or(1).max(1)
    }

    /// A switch: off unless there.
    pub(super) fn on(&self, field: Field) -> bool {
        self.switch(field).unwrap_or(false)
    }

    /// A switch, if it has a value.
    pub(super) fn switch(&self, field: Field) -> Option<bool> {
        match self.get(field)?.value {
            SettingValue::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A real number.
    pub(super) fn real(&self, field: Field) -> Option<f64> {
        match self.get(field)?.value {
            SettingValue::Real(value) => Some(value),
            _ => None,
        }
    }

    /// A word or text; empty when there is none.
    pub(super) fn word(&self, field: Field) -> &str {
        match self.get(field).map(|setting| &setting.value) {
            Some(SettingValue::Text(value)) => value,
            _ => "",
        }
    }

    /// A list of words.
    pub(super) fn words(&self, field: Field) -> Vec<&str> {
        let Some(SettingValue::List(values)) = self.get(field).map(|setting| &setting.value) else {
            return Vec::new();
        };
        values
            .iter()
            .filter_map(|value| if let SettingValue::Text(word) = value { Some(word.as_str()) } else { None })
            .collect()
    }

    /// A list of counts.
    pub(super) fn counts(&self, field: Field) -> Vec<u64> {
        let Some(SettingValue::List(values)) = self.get(field).map(|setting| &setting.value) else {
            return Vec::new();
        };
        values
            .iter()
            .filter_map(|value| if let SettingValue::Int(count) = value { Some(*count) } else { None })
            .collect()
    }

    /// Fills a setting that has no value with a default.
    pub(super) fn default(&mut self, field: Field, value: SettingValue, whose: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Default, whose);
        }
    }

    /// Fills a setting that has no value with what a rule gives.
    pub(super) fn derive(&mut self, field: Field, value: SettingValue, rule: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Derived, rule);
        }
    }

    /// Gives a setting the value of a rule, whatever was stated; keeps its place in the text.
    pub(super) fn overrule(&mut self, field: Field, value: SettingValue, rule: &str) {
        if self.get(field).is_some_and(|setting| setting.value == value) {
            return;
        }
        let (flag, span) =
            self.get(field).map_or((None, None), |setting| (setting.flag.clone(), setting.span));
        self.fill(field, value, Origin::Derived, rule);
        if let Some(setting) = self.slots.get_mut(field.index()).and_then(Option::as_mut) {
            (setting.flag, setting.span) = (flag, span);
        }
    }

    /// Adds a remark to a setting.
    pub(super) fn remark(&mut self, field: Field, note: &str) {
        if let Some(setting) = self.slots.get_mut(field.index()).and_then(Option::as_mut) {
            setting.note = Some(note.to_owned());
        }
    }

    /// Gives a setting a value with its origin.
    pub(super) fn fill(&mut self, field: Field, value: SettingValue, origin: Origin, note: &str) {
        let note = Some(note.to_owned());
        self.put(field, Setting { name: field.name(), value, origin, flag: None, span: None, note });
    }

    /// Says what is wrong, pointing at the first setting at fault that the text states.
    pub(super) fn refuse(&mut self, contradiction: Contradiction) {
        let places = contradiction.fields.iter().filter_map(|name| Field::named(name));
        let span = places.into_iter().find_map(|field| self.span(field));
        let mut error = Diagnostic::error(contradiction.code, contradiction.message).at_some(span);
        error.hint = contradiction.hint;
        self.diagnostics.push(error);
    }

    /// Warns at a setting.
    pub(super) fn warn(&mut self, code: &'static str, field: Field, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(code, message).at_some(self.span(field)));
    }

    /// All settings in the order of [`Field::ALL`]; those without a value as null.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let null = |field: &Field| Setting {
            name: field.name(),
            value: SettingValue::Null,
            origin: Origin::Default,
            flag: None,
            span: None,
            note: None,
        };
        Field::ALL.iter().map(|field| self.get(*field).cloned().unwrap_or_else(|| null(field))).collect()
    }
}
