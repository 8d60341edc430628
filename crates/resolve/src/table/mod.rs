//! All settings while they are being resolved: first stated values, then defaults, then derived values.

mod alone;
mod proposals;
mod questions;
mod values;

use super::parse::{parse, says_nothing};
use super::switches::{is_displaced, is_overruled};
use crate::{Asked, Effect, Found, Machines, NotModelled, Origin, Question, Reading};
use shardscope_plan::{Contradiction, Field, Model, Setting, SettingValue};
use shardscope_source::{Code, Diagnostic, Span, suggest};

/// Settings that give the number of accelerators.
pub(super) const MACHINES: [Field; 3] = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize];

/// The names of settings, joined by a separator.
pub(super) fn listed_names(fields: &[Field], between: &str) -> String {
    let mut names = String::new();
    for field in fields {
        if !names.is_empty() {
            names.push_str(between);
        }
        names.push_str(field.name());
    }
    names
}

/// All settings, by [`Field`].
pub(super) struct Table {
    slots: [Option<Setting>; Field::ALL.len()],
    /// Errors, warnings and notes so far.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The open questions.
    pub(super) questions: Vec<Question>,
    /// Settings that change figures and are not modelled.
    pub(super) not_modelled: Vec<NotModelled>,
    /// Settings whose stated value depends on a variable, with the variable and the position.
    open: Vec<(Field, String, Option<Span>)>,
    /// Settings set by the user whose stated value depends on a variable, with the variable.
    closed: Vec<(Field, String)>,
    /// Variables that change no figure, or only through a setting that is asked for.
    idle: Vec<String>,
    /// Settings whose stated value cannot be read: each has its own error, and is not also reported as missing.
    unreadable: Vec<Field>,
    /// Settings decided by another question: the setting and what that question asks for.
    decided: Vec<(Field, Asked)>,
    /// Numbers of accelerators that something in the texts suggests.
    pub(super) machines: Vec<Machines>,
    /// What to add if that number is open.
    pub(super) states_machines: String,
    /// Models other than the one in training, by the settings that name them.
    pub(super) others: Vec<(Field, Model)>,
}

/// The hint of the last reading with its own syntax for the machines, or else torchrun's.
fn states_machines(readings: &[Reading]) -> &str {
    let own =
        readings.iter().rev().map(|reading| reading.states_machines.as_str()).find(|own| !own.is_empty());
    own.unwrap_or("add the launch line (torchrun --nnodes 2 --nproc_per_node 8 …)")
}

impl Table {
    /// The values of the readings, with later ones winning, and the user's settings on top.
    pub(super) fn stated(readings: &[Reading], overrides: &[(String, String)]) -> Self {
        let mut table = Self {
            // Indexed slots instead of a map: every setting is looked up many times.
            slots: [const { None }; Field::ALL.len()],
            diagnostics: Vec::new(),
            questions: Vec::new(),
            not_modelled: Vec::new(),
            open: Vec::new(),
            closed: Vec::new(),
            idle: Vec::new(),
            unreadable: Vec::new(),
            decided: Vec::new(),
            others: Vec::new(),
            machines: readings.iter().flat_map(|reading| reading.machines.clone()).collect(),
            states_machines: states_machines(readings).to_owned(),
        };
        let mut set = Vec::new();
        for (name, _) in overrides {
            set.extend(Field::named(name));
        }
        // What a launch that is not here would say of several ranks.
        let alone = alone::is_alone(readings, overrides);
        let left = |found: &Found| alone && found.is_left_to_launch();
        let needless: Vec<Field> = readings
            .iter()
            .flat_map(|reading| reading.found.iter().filter(|found| left(found)).map(|found| found.field))
            .collect();
        // All diagnostics of the readings come first: unreadable values add theirs after them.
        for reading in readings {
            table.diagnostics.extend_from_slice(&reading.diagnostics);
            // A file and the command that reads it may leave the same value open.
            let asked = reading.questions.iter();
            let asked = asked.filter(|one| one.asks.setting().is_none_or(|field| !needless.contains(&field)));
            asked.for_each(|question| table.ask(question.clone()));
            // The user's settings replace what the text states.
            let replaced =
                // By setting name; a reader's other items (an option, a program) stay, since no setting by hand
                // replaces them.
                |item: &&NotModelled| Field::named(&item.name).is_some_and(|field| set.contains(&field));
            table.not_modelled.extend(reading.not_modelled.iter().filter(|item| !replaced(item)).cloned());
        }
        for reading in readings {
            for found in reading.found.iter().filter(|found| !left(found)) {
                // The user's value may be in another form than the text's: a switch, another way to count chunks.
                if !set.contains(&found.field)
                    && !is_overruled(found.field, overrides)
                    && !is_displaced(found.field, &set)
                {
                    table.found(found);
                } else if let Some(hole) = &found.hole {
                    table.closed.push((found.field, hole.clone()));
                }
            }
        }
        for (name, value) in overrides {
            match Field::named(name) {
                // Cancelling clears the setting: defaults and rules then fill it as if the text were silent.
                Some(field) if says_nothing(field, value) => table.clear(field),
                Some(field) => table.found(&Found::new(field, value.as_str(), Origin::User)),
                None => table.unknown_override(name),
            }
        }
        table.ask_for_nothing_set(&set);
        table.ask_for_nothing_idle();
        table
    }

    fn unknown_override(&mut self, name: &str) {
        // A link from a newer version may contain settings that are unknown here.
        let names = Field::ALL.iter().map(|field| field.name());
        let message = format!("unknown setting {name}, ignored");
        let near = suggest(name, names);
        let hint = near.map_or(String::new(), |near| format!("did you mean {near}?"));
        self.say(Diagnostic::warning(Code::UnknownSetting, message), &hint, None);
    }

    fn found(&mut self, found: &Found) {
        if let Some(hole) = &found.hole {
            self.open(found, hole);
            return;
        }
        // `--flag ""` or null cancels an earlier statement, as in the program's own parser.
        if says_nothing(found.field, &found.value) {
            self.clear(found.field);
            return;
        }
        match parse(found.field, &found.value) {
            Ok(value) => self.put(
                found.field,
                Setting {
                    field: found.field,
                    value,
                    origin: found.origin,
                    flag: found.flag.clone(),
                    span: found.span,
                    note: found.note.clone(),
                },
            ),
            Err(bad) => {
                // Recorded separately from the message: a setting that cannot be read is not also reported as missing.
                self.unreadable.push(found.field);
                // For a value set by hand the message is enough: it is shown where the value was typed.
                if found.origin != Origin::User {
                    self.ask(Question {
                        asks: Asked::Setting(found.field),
                        prompt: format!("{}? The text's value for it cannot be read", found.field.about()),
                        choices: bad.choices().iter().map(|word| (*word).to_owned()).collect(),
                        proposal: None,
                    });
                }
                self.diagnostics.push(Diagnostic::error(Code::BadValue, bad.to_string()).at_some(found.span));
            }
        }
    }

    /// A value that depends on a variable: asked for, and not replaced by a default if it matters.
    fn open(&mut self, found: &Found, hole: &str) {
        // A tokenizer's name, for example, may stay unknown: nothing that is estimated depends on it.
        if found.field.is_idle() {
            self.idle.push(hole.to_owned());
            return;
        }
        // At run time this overwrites an earlier statement of the same setting, so that one does not apply either.
        self.clear(found.field);
        self.open.push((found.field, hole.to_owned(), found.span));
        // The machines are asked for together.
        if MACHINES.contains(&found.field) {
            return;
        }
        let (name, about) = (found.field.name(), found.field.about());
        let message = format!("{name} depends on {hole}, which is not given here ({about})");
        self.diagnostics.push(Diagnostic::error(Code::OpenValue, message).at_some(found.span));
        // `$1` and others may be asked for all at once, as the arguments of the script.
        let positional = hole.starts_with('$') && !hole.starts_with("$(");
        let decides =
            |asked: &&Question| asked.name() == hole || (positional && asked.asks == Asked::Arguments);
        if let Some(asked) = self.questions.iter().find(decides) {
            // The answer to that question gives this value, so asking for the setting too would ask twice.
            self.decided.push((found.field, asked.asks.clone()));
            return;
        }
        self.ask(Question {
            asks: Asked::Setting(found.field),
            prompt: format!("{about}? The text leaves it to {hole}"),
            choices: proposals::choices(found.field),
            proposal: proposals::usual(found.field),
        });
    }

    /// Takes a setting's value away, which then hangs on what `hole` names.
    pub(super) fn leave_open(&mut self, field: Field, hole: &str) {
        let mut found = Found::new(field, "", Origin::Default);
        found.span = self.span(field);
        self.open(&found, hole);
    }

    pub(super) fn put(&mut self, field: Field, setting: Setting) {
        self.slots[field.index()] = Some(setting);
    }

    pub(super) fn clear(&mut self, field: Field) {
        self.slots[field.index()] = None;
    }

    /// The setting, if it has one.
    pub(super) fn get(&self, field: Field) -> Option<&Setting> {
        self.slots[field.index()].as_ref()
    }

    /// The model that this setting names, if its shape is known.
    pub(super) fn beside(&self, field: Field) -> Option<&Model> {
        self.others.iter().find(|(named, _)| *named == field).map(|(_, model)| model)
    }

    /// Whether the setting has a value.
    pub(super) fn has(&self, field: Field) -> bool {
        self.get(field).is_some()
    }

    /// Position of the setting in the texts; `None` if no text states it.
    pub(super) fn span(&self, field: Field) -> Option<Span> {
        self.get(field).and_then(|setting| setting.span)
    }

    /// Sets a setting that has no value to a default.
    pub(super) fn default(&mut self, field: Field, value: SettingValue, whose: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Default, whose);
        }
    }

    /// Sets a setting that has no value to a word given by a rule.
    pub(super) fn derive_word(&mut self, field: Field, word: &str, rule: &str) {
        self.derive(field, SettingValue::Text(word.to_owned()), rule);
    }

    /// Sets a setting that has no value to a value given by a rule.
    pub(super) fn derive(&mut self, field: Field, value: SettingValue, rule: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Derived, rule);
        }
    }

    /// Sets a setting to the value of a rule, whatever was stated; keeps its position in the text.
    pub(super) fn overrule(&mut self, field: Field, value: SettingValue, rule: &str) {
        // Nothing changes, so the statement's note and origin are kept.
        if self.get(field).is_some_and(|setting| setting.value == value) {
            return;
        }
        let (flag, span) =
            self.get(field).map_or((None, None), |setting| (setting.flag.clone(), setting.span));
        self.fill(field, value, Origin::Derived, rule);
        if let Some(setting) = &mut self.slots[field.index()] {
            (setting.flag, setting.span) = (flag, span);
        }
    }

    /// Adds a note to a setting.
    pub(super) fn remark(&mut self, field: Field, note: &str) {
        if let Some(setting) = &mut self.slots[field.index()] {
            setting.note = Some(note.to_owned());
        }
    }

    /// Sets a setting to a value with its origin.
    pub(super) fn fill(&mut self, field: Field, value: SettingValue, origin: Origin, note: &str) {
        let note = Some(note.to_owned());
        self.put(field, Setting { field, value, origin, flag: None, span: None, note });
    }

    /// Reports what the plan rejects, pointing at the first affected setting that the text states.
    pub(super) fn refuse_all(&mut self, contradictions: Vec<Contradiction>) {
        for contradiction in contradictions {
            self.ask_for_nearest(&contradiction);
            let hint = contradiction.hint.unwrap_or_default();
            self.refuse(contradiction.code, &contradiction.fields, contradiction.message, &hint);
        }
    }

    /// Asks for the affected setting with the nearest value that would work, unless it is set by hand.
    fn ask_for_nearest(&mut self, contradiction: &Contradiction) {
        let (Some(nearest), Some(field)) = (contradiction.nearest, contradiction.fields.first()) else {
            return;
        };
        let by_hand = |field: &Field| self.get(*field).is_some_and(|setting| setting.origin == Origin::User);
        let machines = contradiction.fields.iter().any(|field| MACHINES.contains(field));
        // Values set by hand are only rejected with a message: a proposal would argue with the user's choice.
        if machines || contradiction.fields.iter().any(by_hand) {
            return;
        }
        // Layers that do not divide evenly are put into stages of unequal length rather than into fewer stages. The
        // nearest divisor would give fewer stages, and a very different run.
        let last = self.last_stage().filter(|_| contradiction.code == Code::LayersOverPp);
        let (field, value) =
            last.map_or((*field, nearest), |last| (Field::DecoderLastPipelineNumLayers, last));
        self.ask(Question {
            asks: Asked::Setting(field),
            prompt: format!("{}? {}", field.about(), contradiction.message),
            choices: Vec::new(),
            proposal: Some(value.to_string()),
        });
    }

    /// A number of layers for the last stage such that the others divide evenly, as close to theirs as possible.
    fn last_stage(&self) -> Option<u64> {
        let (layers, stages) = (self.count(Field::NumLayers)?, self.degree(Field::PipelineModelParallelSize));
        // Chunks need stages of equal length.
        if stages < 2 || self.degree(Field::VirtualPipelineModelParallelSize) > 1 {
            return None;
        }
        let even = layers / stages;
        let fits = |last: &u64| (layers - last).is_multiple_of(stages - 1) && *last < layers;
        (1..layers).filter(fits).min_by_key(|last| last.abs_diff(even))
    }

    /// Reports that these settings exclude each other, and what would work, if known.
    pub(super) fn refuse(&mut self, code: Code, fields: &[Field], message: String, hint: &str) {
        // The first field with a position: rules name the most likely cause first.
        let span = fields.iter().find_map(|field| self.span(*field));
        self.say(Diagnostic::error(code, message), hint, span);
    }

    /// Adds a diagnostic, with a hint unless it is empty.
    pub(super) fn say(&mut self, mut said: Diagnostic, hint: &str, span: Option<Span>) {
        if !hint.is_empty() {
            said.hint = Some(hint.to_owned());
        }
        said.span = span;
        self.diagnostics.push(said);
    }

    /// A setting whose value no estimator supports. It is identified by the setting's own name, which a link contains
    /// as well.
    pub(super) fn lack(&mut self, field: Field, value: &str, effect: Effect, message: &str) {
        let flag = self.get(field).and_then(|setting| setting.flag.as_deref());
        let said = match flag {
            Some(flag) => format!("{message}; set by {flag}"),
            None => message.to_owned(),
        };
        let item = NotModelled::new(field.name(), value, effect, &said).at_some(self.span(field));
        self.not_modelled.push(item);
    }

    /// Adds a warning at a setting.
    pub(super) fn warn(&mut self, code: Code, field: Field, message: &str) {
        self.say(Diagnostic::warning(code, message), "", self.span(field));
    }

    /// All settings in the order of [`Field::ALL`]; those without a value as null.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        // Consumers zip this with `Field::ALL`, so no field may be left out.
        for field in Field::ALL {
            settings.push(match self.get(*field) {
                Some(setting) => setting.clone(),
                None => Setting {
                    field: *field,
                    value: SettingValue::Null,
                    origin: Origin::Default,
                    flag: None,
                    span: None,
                    note: None,
                },
            });
        }
        settings
    }
}
