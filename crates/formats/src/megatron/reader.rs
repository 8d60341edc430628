//! From the words after the training program to the settings that they state.

use super::engine;
use super::family;
use super::flags::{self, Arity, Flag};
use super::forks;
use super::remarks::{Idle, LISTED, listed, without_influence};
use super::renamed;
use super::respelt::{self, truth};
use super::slime;
use super::software::{Signs, experts_of_old, software};
use super::width::Multiple;
use super::{bridged, idle, pai, tokenizer, unmodelled};
use crate::named::quantized_word;
use crate::options::{Changes, OfWords, little, of_key};
use crate::telling;
use crate::{Argument, Effect, Found, NotModelled, NotRead, Origin, Reading};
use shardscope_plan::{Field, ValueKind};
use shardscope_source::{Code, Diagnostic, Severity, Span};

/// Reads the words of a Megatron-LM command. Words that are not flags (the program, its interpreter) are skipped.
#[must_use]
pub fn read(arguments: &[Argument]) -> Reading {
    read_started("", arguments)
}

/// The same for the words after a program whose path may say more of it.
#[must_use]
pub fn read_started(program: &str, arguments: &[Argument]) -> Reading {
    ArgumentReader { words: arguments, program, ..ArgumentReader::default() }.read()
}

/// The same for a program around Megatron-LM that has options of its own (a section of the table of options).
pub fn read_of(arguments: &[Argument], framework: &'static str) -> Reading {
    ArgumentReader { words: arguments, framework, ..ArgumentReader::default() }.read()
}

#[derive(Default)]
struct ArgumentReader<'a> {
    words: &'a [Argument],
    /// The path of the program; empty if none is known.
    program: &'a str,
    /// The program around Megatron-LM; empty if none is known.
    framework: &'static str,
    at: usize,
    reading: Reading,
    signs: Signs,
    /// Recognized, without effect.
    idle: Vec<Idle>,
    first_idle: Option<Span>,
    /// Neither known nor close to a known flag.
    unknown: Vec<String>,
    first_unknown: Option<Span>,
    underscored: Option<(String, Option<Span>)>,
    /// Frameworks whose options the words may be, looked up once a word is not a flag of Megatron's.
    frameworks: Option<OfWords>,
    /// Options that change a figure only slightly, each with the reason.
    little: Vec<(&'static str, String)>,
    first_little: Option<Span>,
    /// Number of unknown flags met.
    looked_up: usize,
    /// Whether MindSpeed's own flags are present.
    ascend: bool,
    /// Whether nothing generates rollouts.
    train_only: bool,
    /// The values from which FlagScale computes the inner width.
    multiple: Multiple,
    /// Whether DeepSpeed's engine runs.
    deepspeed: bool,
    /// The file with the engine's settings.
    engine_file: Option<Argument>,
}

impl ArgumentReader<'_> {
    fn read(mut self) -> Reading {
        while self.at < self.words.len() {
            self.word();
        }
        self.finish()
    }

    fn word(&mut self) {
        let words = self.words;
        let Some(word) = words.get(self.at) else { return };
        self.at += 1;
        let Some(body) = word.text.strip_prefix("--").filter(|body| !body.is_empty()) else { return };
        let mut inline = None;
        let mut name = body;
        if let Some((before, value)) = body.split_once('=') {
            name = before;
            let from = u32::try_from(name.len() + 3).unwrap_or(0);
            let inside = word.span.filter(|span| span.len() as usize == word.text.len());
            let span = inside.map(|span| span.part(from, span.len())).or(word.span);
            inline = Some(Argument { text: value.to_owned(), span, ..word.clone() });
        }
        let dashed = name.replace('_', "-");
        if let Some(flag) = flags::find(name) {
            self.flag(flag, name, inline, word);
        } else if let Some(fork) = family::find(name) {
            self.fork(fork, inline, word);
        } else if respelt::spells(&dashed) {
            self.respelt(&dashed, inline, word);
        } else if let Some(field) = Field::named(name) {
            self.setting(field, inline, word);
        } else {
            self.unknown(name, inline.as_ref().map(|value| value.text.as_str()), word);
        }
    }

    fn flag(&mut self, flag: Flag, written: &str, inline: Option<Argument>, word: &Argument) {
        self.signs.see(&flag);
        if written != flag.name && written.contains('_') && self.underscored.is_none() {
            self.underscored = Some((written.to_owned(), word.span));
        }
        let Some(value) = self.value_of(flag.arity, inline, word) else {
            return self.missing(flag.name, word);
        };
        if let Some(renamed) = renamed::find(flag.name) {
            let parts = ["--", flag.name, " is an older flag; today it is ", renamed.today];
            self.note(Code::RenamedFlag, &parts, word.span);
            self.states(flag.name, renamed.states, &value);
            return;
        }
        match Field::named(flag.dest.unwrap_or(flag.name)) {
            // A YAML file cannot: bf16 turns it on (`yaml_arguments.py:validate_yaml`).
            Some(Field::AccumulateAllreduceGradsInFp32) if value.text == "false" => {}
            Some(field) => self.take(field, flag.name, tokenizer::by_its_name(field, value)),
            None => self.idle(flag, &value, word.span),
        }
    }

    /// A flag of a fork.
    fn fork(&mut self, fork: &super::fork::Fork, inline: Option<Argument>, word: &Argument) {
        self.signs.see_unknown(fork.name);
        self.ascend |= forks::is_mindspeed(fork.name);
        let Some(value) = self.value_of(fork.arity, inline, word) else {
            self.missing(fork.name, word);
            return;
        };
        if let Some((effect, what)) = fork.lacking.filter(|_| !forks::is_harmless(fork.name, &value.text)) {
            self.lack(fork.name, &value, effect, what);
        }
        self.train_only |= fork.name == forks::TRAIN_ONLY && value.text != "false";
        self.multiple.see(fork.name, &value.text);
        self.deepspeed |= fork.name == "deepspeed" && value.text != "false";
        if matches!(fork.name, "deepspeed-config" | "deepspeed_config") {
            self.engine_file = Some(value.clone());
        }
        if fork.name == "embed-layernorm" {
            // Two vectors of the residual stream's width in the whole model, which no figure resolves.
            let parts = ["--embed-layernorm adds a norm after the word embedding, which is not counted"];
            self.say(Severity::Warning, Code::NotEstimated, &parts, word.span);
        }
        // The launcher's own spellings (auto, 1:4) are read together with the launch.
        let launcher = matches!(fork.name, "nnodes" | "nproc-per-node");
        if !launcher || value.text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.states(fork.name, fork.states, &value);
        }
    }

    /// A flag whose value a fork spells differently.
    fn respelt(&mut self, name: &str, inline: Option<Argument>, word: &Argument) {
        let Some(value) = self.value_of(Arity::One, inline, word) else {
            self.missing(name, word);
            return;
        };
        let states = respelt::respelt(name, &value.text);
        let frameworks = OfWords::new(self.words);
        if let Some(changes) = frameworks.changes(name, &value.text).filter(|_| states.is_empty()) {
            return self.known(name, &value.text, changes, word.span);
        }
        if states.is_empty() {
            self.note(Code::UnknownValue, &["--", name, " ", &value.text, " is not known"], value.span);
        }
        for (field, text) in states {
            self.take(field, name, Argument { text, ..value.clone() });
        }
    }

    /// A setting's name as a flag (`--bias_swiglu_fusion false`), the form that command-line overrides use.
    fn setting(&mut self, field: Field, inline: Option<Argument>, word: &Argument) {
        let arity = if field.kind() == ValueKind::Flag { Arity::On } else { Arity::One };
        match self.value_of(arity, inline, word) {
            Some(value) => self.take(field, field.name(), value),
            None => self.missing(field.name(), word),
        }
    }

    fn states(&mut self, flag: &str, states: &[(Field, Option<&str>)], value: &Argument) {
        for (field, fixed) in states {
            // A switch set to false states nothing.
            if fixed.is_none() || value.text != "false" {
                let text = fixed.map_or_else(|| value.text.clone(), str::to_owned);
                // The presence of a path is enough, even if the start of the path is unknown.
                let hole = value.hole.clone().filter(|_| fixed.is_none() || !value.text.contains('/'));
                self.take(*field, flag, Argument { text, hole, ..value.clone() });
            }
        }
    }

    fn missing(&mut self, flag: &str, word: &Argument) {
        let dest = flags::find(flag).and_then(|known| known.dest).unwrap_or(flag);
        let severity = match Field::named(dest) {
            Some(field) if !field.is_idle() => Severity::Error,
            _ => Severity::Warning,
        };
        self.say(severity, Code::MissingValue, &["--", flag, " needs a value"], word.span);
    }

    /// The flag's value, after its `=` or from the words that follow; `None` if it is missing.
    fn value_of(&mut self, arity: Arity, inline: Option<Argument>, word: &Argument) -> Option<Argument> {
        match arity {
            Arity::One => inline.or_else(|| self.next_value()).filter(|value| !value.text.is_empty()),
            Arity::Several => {
                let mut all = inline.or_else(|| self.next_value())?;
                while let Some(more) = self.next_value() {
                    all.text.push(' ');
                    all.text.push_str(&more.text);
                    all.hole = all.hole.or(more.hole);
                    all.answered |= more.answered;
                    all.span = all.span.zip(more.span).map(|(first, last)| first.to(last)).or(all.span);
                }
                Some(all)
            }
            Arity::On | Arity::Switch => Some(self.switch(inline, word, true)),
            Arity::Off => Some(self.switch(inline, word, false)),
        }
    }

    fn next_value(&mut self) -> Option<Argument> {
        let word = self.words.get(self.at).filter(|word| !word.text.starts_with("--"))?;
        self.at += 1;
        Some(word.clone())
    }

    /// A switch, optionally followed by true or false.
    fn switch(&mut self, inline: Option<Argument>, word: &Argument, on: bool) -> Argument {
        let follows = self.words.get(self.at).is_some_and(|next| truth(&next.text).is_some());
        let given = inline.or_else(|| if follows { self.next_value() } else { None });
        let said = given.as_ref().and_then(|value| truth(&value.text)).unwrap_or(true);
        let hole = given.and_then(|value| value.hole);
        Argument { text: (said == on).to_string(), span: word.span, hole, answered: word.answered }
    }

    fn take(&mut self, field: Field, flag: &str, value: Argument) {
        let origin = if value.answered { Origin::Environment } else { Origin::Script };
        let mut found = Found::new(field, value.text, origin).by(format!("--{flag}"), value.span);
        found.hole = value.hole;
        let (span, text) = (found.span, found.value.clone());
        if let Some(earlier) = self.reading.take(found)
            && earlier.value != text
        {
            let given = " is given more than once; the last value, ";
            self.note(Code::RepeatedFlag, &[field.name(), given, &text, ", counts"], span);
        }
    }

    /// A flag of Megatron-LM without a setting: not modelled, or without effect for a known reason.
    fn idle(&mut self, flag: Flag, value: &Argument, span: Option<Span>) {
        if let Some(known) = unmodelled::find(flag.name, &value.text) {
            return self.lack(flag.name, value, known.effect, known.message);
        }
        self.first_idle = self.first_idle.or(span);
        self.idle.push(Idle {
            flag: format!("--{}", flag.name),
            why: idle::reason_of(flag.name).unwrap_or_default(),
        });
    }

    /// Reports something that changes figures and is not modelled.
    fn lack(&mut self, flag: &str, value: &Argument, effect: Effect, message: &str) {
        let shown = if value.text == "true" { "" } else { &value.text };
        let item = NotModelled::new(&format!("--{flag}"), shown, effect, message).at_some(value.span);
        self.reading.not_modelled.push(item);
    }

    fn unknown(&mut self, name: &str, inline: Option<&str>, word: &Argument) {
        self.signs.see_unknown(name);
        // A word that depends on an unknown variable may stand for anything.
        if word.hole.is_some() {
            return;
        }
        let dashed = name.replace('_', "-");
        let value = inline.unwrap_or(self.words.get(self.at).map_or("", |word| word.text.as_str()));
        if dashed == "hf-checkpoint" {
            self.rollout_weights(value, word.span);
        }
        let plain = if value.starts_with("--") { "" } else { value };
        let among =
            || self.frameworks.get_or_insert_with(|| OfWords::new(self.words)).changes(&dashed, plain);
        if let Some(changes) = of_key(self.framework, &dashed, plain).or_else(among) {
            return self.known(name, plain, changes, word.span);
        }
        let rollouts = idle::is_of_rollouts(&dashed, value).then_some("how rollouts are made and rewarded");
        let known = idle::reason_anywhere(&dashed).or_else(|| idle::reason_named(&dashed));
        if let Some(why) = known.or(rollouts) {
            self.first_idle = self.first_idle.or(word.span);
            return self.idle.push(Idle { flag: format!("--{name}"), why });
        }
        if idle::is_read_elsewhere(&dashed) {
            return;
        }
        let flag = format!("--{name}");
        let item = telling::stop(&flag, plain);
        let stops = item.is_some();
        self.reading.not_modelled.extend(item.map(|item| item.at_some(word.span)));
        self.reading.not_read.push(NotRead::new(&flag, word.span));
        // A text with more unknown flags than this is written for another program.
        self.looked_up += 1;
        let near = if self.looked_up <= LISTED { flags::near(name) } else { None };
        let Some(near) = near else {
            // A flag that stops the verdict is reported only once, by its error.
            if !stops {
                self.first_unknown = self.first_unknown.or(word.span);
                self.unknown.push(flag);
            }
            return;
        };
        let parts = ["--", name, " is not a flag of Megatron-LM, and is not read"];
        self.say(Severity::Warning, Code::UnknownFlag, &parts, word.span);
        if let Some(said) = self.reading.diagnostics.last_mut() {
            said.hint = Some(format!("did you mean --{near}?"));
        }
    }

    /// An option of a framework of the Megatron family, in addition to those that are read.
    fn known(&mut self, name: &str, value: &str, changes: Changes, span: Option<Span>) {
        let flag = format!("--{name}");
        match changes {
            Changes::Nothing(why) => {
                self.first_idle = self.first_idle.or(span);
                self.idle.push(Idle { flag, why });
            }
            Changes::Little(why) => {
                self.first_little = self.first_little.or(span);
                self.reading.not_read.push(NotRead::new(&flag, span));
                self.little.push((why, flag));
            }
            _ => changes.stop_in(&mut self.reading.not_modelled, &flag, value, span),
        }
    }

    /// The checkpoint with which the rollout engine of slime and miles starts, and in whose format it receives new
    /// weights (`slime/docs/en/advanced/low-precision.md`); the names of published checkpoints reveal the format.
    fn rollout_weights(&mut self, name: &str, span: Option<Span>) {
        let Some(word) = quantized_word(name) else { return };
        if word == "fp8" {
            let found = Found::new(Field::RolloutDtype, "fp8", Origin::Script).by("--hf-checkpoint", span);
            self.reading.take(found.note("inferred from the checkpoint's name"));
        } else {
            let what = "a rollout engine whose weights are quantized";
            let item = NotModelled::new("--hf-checkpoint", name, Effect::Memory, what).at_some(span);
            self.reading.not_modelled.push(item);
        }
    }

    fn finish(mut self) -> Reading {
        if let Some((written, span)) = self.underscored.take() {
            let dashed = written.replace('_', "-");
            self.note(Code::Underscores, &["--", &written, " is read as --", &dashed], span);
        }
        let idle = std::mem::take(&mut self.idle);
        self.reading.diagnostics.extend(without_influence(idle, self.first_idle));
        self.reading.diagnostics.extend(little(std::mem::take(&mut self.little), self.first_little));
        let (flags, at) = (std::mem::take(&mut self.unknown), self.first_unknown);
        let many = " flags are unknown to Megatron-LM and its forks; they are not read and may change the estimate: ";
        let single = " is unknown to Megatron-LM and its forks; it is not read and may change the estimate";
        self.reading.diagnostics.extend(listed(Code::UnknownFlags, many, single, flags, at));
        if self.ascend && self.reading.value(Field::Accelerator).is_none() {
            let found = Found::new(Field::Accelerator, "Ascend-910B", Origin::Derived);
            self.reading.take(found.note("MindSpeed's own flags: it runs on Ascend accelerators"));
        }
        experts_of_old(&mut self.reading);
        pai::together(&mut self.reading, self.words);
        slime::together(&mut self.reading, self.words, self.program, self.train_only);
        bridged::together(&mut self.reading, self.words);
        if let Some(file) = self.engine_file.take().filter(|_| self.deepspeed) {
            engine::leave(&mut self.reading, &file);
        }
        self.multiple.state(&mut self.reading);
        self.reading.software = software(&self.signs, &self.reading);
        engine::experts(&mut self.reading);
        self.reading
    }
}

impl ArgumentReader<'_> {
    fn note(&mut self, code: Code, parts: &[&str], span: Option<Span>) {
        self.say(Severity::Note, code, parts, span);
    }

    /// Adds a diagnostic whose message consists of these parts.
    fn say(&mut self, severity: Severity, code: Code, parts: &[&str], span: Option<Span>) {
        let message = parts.concat();
        self.reading.diagnostics.push(Diagnostic { severity, code, message, hint: None, span });
    }
}

#[cfg(test)]
mod tests;
