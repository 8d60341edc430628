//! Every setting while it is being resolved: what was stated, then defaults, then what follows.

mod questions;
mod values;

use super::parse::{parse, says_nothing};
use super::switches::{is_displaced, is_overruled};
use crate::{ARGUMENTS, Effect, Found, Machines, NotModelled, Origin, Question, Reading};
use shardscope_plan::{Contradiction, Field, Model, Setting, SettingValue, ValueKind};
use shardscope_source::{Code, Diagnostic, Span, suggest};

/// Settings that say how many accelerators there are.
pub(super) const MACHINES: [Field; 3] = [Field::NumNodes, Field::GpusPerNode, Field::WorldSize];

/// The names of settings with something between them.
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
    /// What is left open.
    pub(super) questions: Vec<Question>,
    /// Settings that change figures and are not modelled.
    pub(super) not_modelled: Vec<NotModelled>,
    /// Settings whose stated value lacks a variable, which, and where.
    open: Vec<(Field, String, Option<Span>)>,
    /// Variables that values lack which change no figure, or only through a setting that is asked for.
    idle: Vec<String>,
    /// Settings whose stated value cannot be read: each has its own error, and is not missing beside it.
    unreadable: Vec<Field>,
    /// Settings that another question decides: the setting's name and that question's.
    decided: Vec<(&'static str, String)>,
    /// Numbers of accelerators that something of the texts speaks for.
    pub(super) machines: Vec<Machines>,
    /// What to add where that number is open.
    pub(super) states_machines: String,
    /// Models beside the one that trains, by the settings that name them.
    pub(super) others: Vec<(Field, Model)>,
}

/// What the last of the readings says that has a way of its own to state the machines, else torchrun's.
fn states_machines(readings: &[Reading]) -> &str {
    let own =
        readings.iter().rev().map(|reading| reading.states_machines.as_str()).find(|own| !own.is_empty());
    own.unwrap_or("add the launch line (torchrun --nnodes 2 --nproc_per_node 8 …)")
}

impl Table {
    /// What the readings state, later ones winning, and what the user sets on top.
    pub(super) fn stated(readings: &[Reading], overrides: &[(String, String)]) -> Self {
        let mut table = Self {
            // Slots by index instead of a map: every setting is asked for many times.
            slots: [const { None }; Field::ALL.len()],
            diagnostics: Vec::new(),
            questions: Vec::new(),
            not_modelled: Vec::new(),
            open: Vec::new(),
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
        // All remarks before all values: values that cannot be read add theirs behind.
        for reading in readings {
            table.diagnostics.extend_from_slice(&reading.diagnostics);
            table.questions.extend_from_slice(&reading.questions);
            // What the user sets takes the place of what the text states.
            let replaced =
                // By setting name; readers' other items (an option, a program) stay, as nothing set by hand replaces
                // them.
                |item: &&NotModelled| Field::named(&item.name).is_some_and(|field| set.contains(&field));
            table.not_modelled.extend(reading.not_modelled.iter().filter(|item| !replaced(item)).cloned());
        }
        for reading in readings {
            for found in &reading.found {
                // The user's value may be of another spelling than the text's: a switch, another way to count chunks.
                if !set.contains(&found.field)
                    && !is_overruled(found.field, overrides)
                    && !is_displaced(found.field, &set)
                {
                    table.found(found);
                }
            }
        }
        for (name, value) in overrides {
            match Field::named(name) {
                // Taking back is clearing: defaults and rules then fill it as if the text were silent.
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
        // A link of a newer version may name what is not known here.
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
        // `--flag ""` or null takes an earlier statement back, as the program's own parser would.
        if says_nothing(found.field, &found.value) {
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
            Err(bad) => {
                // Noted apart from the message: a setting that cannot be read is not also reported as missing.
                self.unreadable.push(found.field);
                // Of a value by hand the message is enough: it stands where it was typed.
                if found.origin != Origin::User {
                    self.ask(Question {
                        name: found.field.name().to_owned(),
                        prompt: format!("{}? The text's value for it cannot be read", found.field.about()),
                        choices: bad.choices().iter().map(|word| (*word).to_owned()).collect(),
                        proposal: None,
                    });
                }
                self.diagnostics.push(Diagnostic::error(Code::BadValue, bad.to_string()).at_some(found.span));
            }
        }
    }

    /// A value that lacks a variable: asked for, and no default takes its place where it matters.
    fn open(&mut self, found: &Found, hole: &str) {
        // A name of a tokenizer, say, may stay unknown: nothing that is estimated depends on it.
        if found.field.is_idle() {
            self.idle.push(hole.to_owned());
            return;
        }
        // An earlier statement of the same setting is overwritten by this one at run time, so it does not hold
        // either.
        self.clear(found.field);
        self.open.push((found.field, hole.to_owned(), found.span));
        // The machines are asked for together.
        if MACHINES.contains(&found.field) {
            return;
        }
        let (name, about) = (found.field.name(), found.field.about());
        let message = format!("{name} depends on {hole}, which is not given here ({about})");
        self.diagnostics.push(Diagnostic::error(Code::OpenValue, message).at_some(found.span));
        // `$1` and its like may be asked for all at once, as the words of the call.
        let positional = hole.starts_with('$') && !hole.starts_with("$(");
        let decides = |asked: &&Question| asked.name == hole || (positional && asked.name == ARGUMENTS);
        if let Some(asked) = self.questions.iter().find(decides) {
            // The answer to that question gives this value, so asking for the setting as well would ask twice.
            self.decided.push((name, asked.name.clone()));
            return;
        }
        self.ask(Question {
            name: name.to_owned(),
            prompt: format!("{about}? The text leaves it to {hole}"),
            choices: choices(found.field),
            proposal: USUAL
                .iter()
                .find(|(field, _)| *field == found.field)
                .map(|(_, value)| (*value).to_owned()),
        });
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

    /// The model that this setting names, where its shape is known.
    pub(super) fn beside(&self, field: Field) -> Option<&Model> {
        self.others.iter().find(|(named, _)| *named == field).map(|(_, model)| model)
    }

    /// Whether the setting has a value.
    pub(super) fn has(&self, field: Field) -> bool {
        self.get(field).is_some()
    }

    /// Place of the setting in the texts; `None` where no text states it.
    pub(super) fn span(&self, field: Field) -> Option<Span> {
        self.get(field).and_then(|setting| setting.span)
    }

    /// Fills a setting that has no value with a default.
    pub(super) fn default(&mut self, field: Field, value: SettingValue, whose: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Default, whose);
        }
    }

    /// Fills a setting that has no value with a word that a rule gives.
    pub(super) fn derive_word(&mut self, field: Field, word: &str, rule: &str) {
        self.derive(field, SettingValue::Text(word.to_owned()), rule);
    }

    /// Fills a setting that has no value with what a rule gives.
    pub(super) fn derive(&mut self, field: Field, value: SettingValue, rule: &str) {
        if !self.has(field) {
            self.fill(field, value, Origin::Derived, rule);
        }
    }

    /// Gives a setting the value of a rule, whatever was stated; keeps its place in the text.
    pub(super) fn overrule(&mut self, field: Field, value: SettingValue, rule: &str) {
        // Nothing changes, so the note and origin of the statement stay.
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

    /// Adds a remark to a setting.
    pub(super) fn remark(&mut self, field: Field, note: &str) {
        if let Some(setting) = &mut self.slots[field.index()] {
            setting.note = Some(note.to_owned());
        }
    }

    /// Gives a setting a value with its origin.
    pub(super) fn fill(&mut self, field: Field, value: SettingValue, origin: Origin, note: &str) {
        let note = Some(note.to_owned());
        self.put(field, Setting { name: field.name(), value, origin, flag: None, span: None, note });
    }

    /// Says what the plan refuses, pointing at the first setting at fault that the text states.
    pub(super) fn refuse_all(&mut self, contradictions: Vec<Contradiction>) {
        for contradiction in contradictions {
            self.ask_for_nearest(&contradiction);
            let hint = contradiction.hint.unwrap_or_default();
            self.refuse(contradiction.code, &contradiction.fields, contradiction.message, &hint);
        }
    }

    /// Asks for the setting at fault with the nearest value that would work, where nobody has set one by hand.
    fn ask_for_nearest(&mut self, contradiction: &Contradiction) {
        let (Some(nearest), Some(field)) = (contradiction.nearest, contradiction.fields.first()) else {
            return;
        };
        let by_hand = |field: &Field| self.get(*field).is_some_and(|setting| setting.origin == Origin::User);
        let machines = contradiction.fields.iter().any(|field| MACHINES.contains(field));
        // Values set by hand are refused with a message alone: a proposal would argue with whoever has just chosen.
        if machines || contradiction.fields.iter().any(by_hand) {
            return;
        }
        // Layers that do not divide over the stages are put into stages of unequal length rather than into fewer.
        // Fewer stages would be the nearest divisor, and a very different run.
        let last = self.last_stage().filter(|_| contradiction.code == Code::LayersOverPp);
        let (field, value) =
            last.map_or((*field, nearest), |last| (Field::DecoderLastPipelineNumLayers, last));
        self.ask(Question {
            name: field.name().to_owned(),
            prompt: format!("{}? {}", field.about(), contradiction.message),
            choices: Vec::new(),
            proposal: Some(value.to_string()),
        });
    }

    /// Layers of a last stage beside which the others divide evenly, as near to theirs as can be.
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

    /// Says that these settings cannot hold together, and what would work, if that is known.
    pub(super) fn refuse(&mut self, code: Code, fields: &[Field], message: String, hint: &str) {
        // The first field that has a place: rules name the likeliest culprit first.
        let span = fields.iter().find_map(|field| self.span(*field));
        self.say(Diagnostic::error(code, message), hint, span);
    }

    /// Says something, with what would work unless that is empty.
    pub(super) fn say(&mut self, mut said: Diagnostic, hint: &str, span: Option<Span>) {
        if !hint.is_empty() {
            said.hint = Some(hint.to_owned());
        }
        said.span = span;
        self.diagnostics.push(said);
    }

    /// A setting whose value no estimator knows. It goes by the setting's own name, which a link has as well.
    pub(super) fn lack(&mut self, field: Field, value: &str, effect: Effect, message: &str) {
        let flag = self.get(field).and_then(|setting| setting.flag.as_deref());
        let said = match flag {
            Some(flag) => format!("{message}; set by {flag}"),
            None => message.to_owned(),
        };
        let item = NotModelled::new(field.name(), value, effect, &said).at_some(self.span(field));
        self.not_modelled.push(item);
    }

    /// Warns at a setting.
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
                    name: field.name(),
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

/// What is proposed for a setting that the text leaves to something else: what most texts say.
const USUAL: [(Field, &str); 9] = [
    (Field::ParamsDtype, "bf16"),
    (Field::AttnImplementation, "sdpa"),
    (Field::MicroBatchSize, "1"),
    (Field::NumMicroBatches, "1"),
    (Field::SeqLength, "4096"),
    (Field::LoraRank, "16"),
    (Field::LoraDropout, "0"),
    (Field::GradientCheckpointing, "true"),
    (Field::Bf16, "true"),
];
/// More words than that are no choice that is shown beside a question.
const SHOWN: usize = 8;

/// The words that a setting takes, where they are few.
fn choices(field: Field) -> Vec<String> {
    match field.kind() {
        ValueKind::Word(words) if words.len() <= SHOWN => {
            words.iter().map(|word| (*word).to_owned()).collect()
        }
        _ => Vec::new(),
    }
}
