//! From the words after the training program to what they state.

use super::flags::{self, Arity, Flag};
use super::forks;
use super::renamed;
use super::software::{Signs, software};
use crate::intake::{Argument, Found, Origin, Reading};
use crate::plan::{Field, Kind};
use crate::text::{Diagnostic, Span, sort};

/// Flags listed by name in one note at most.
const LISTED: usize = 40;

/// Reads the words of a Megatron-LM command. Words that are no flags (the program, its interpreter) are passed over.
#[must_use]
pub fn read(arguments: &[Argument]) -> Reading {
    let mut reader = Reader { words: arguments, ..Reader::default() };
    while reader.at < reader.words.len() {
        reader.word();
    }
    reader.finish()
}

#[derive(Default)]
struct Reader<'a> {
    words: &'a [Argument],
    at: usize,
    reading: Reading,
    signs: Signs,
    /// Recognised, without influence.
    idle: Vec<String>,
    first_idle: Option<Span>,
    /// Not known, nor near to one that is.
    unknown: Vec<String>,
    first_unknown: Option<Span>,
    underscored: Option<(String, Option<Span>)>,
    /// Unknown flags met.
    looked_up: usize,
    /// MindSpeed's own flags are there.
    ascend: bool,
}

/// A flag's value as it stands.
#[derive(Clone)]
struct Stated {
    text: String,
    span: Option<Span>,
    hole: Option<String>,
    answered: bool,
}

impl Reader<'_> {
    fn word(&mut self) {
        let words = self.words;
        let Some(word) = words.get(self.at) else { return };
        self.at += 1;
        let Some(body) = word.text.strip_prefix("--").filter(|body| !body.is_empty()) else { return };
        let (name, inline) = match body.split_once('=') {
            Some((name, value)) => {
                let from = u32::try_from(name.len() + 3).unwrap_or(0);
                let inside = word.span.filter(|span| span.len() as usize == word.text.len());
                let span = inside.map(|span| span.part(from, span.len())).or(word.span);
                (
                    name,
                    Some(Stated {
                        text: value.to_owned(),
                        span,
                        hole: word.hole.clone(),
                        answered: word.answered,
                    }),
                )
            }
            None => (body, None),
        };
        let dashed = name.replace('_', "-");
        if let Some(flag) = flags::find(name) {
            self.flag(flag, name, inline, word);
        } else if let Some(fork) = forks::find(name) {
            self.fork(fork, inline, word);
        } else if forks::spells(&dashed) {
            self.respelt(&dashed, inline, word);
        } else if let Some(field) = Field::named(name) {
            self.setting(field, inline, word);
        } else {
            self.unknown(name, word);
        }
    }

    fn flag(&mut self, flag: Flag, written: &str, inline: Option<Stated>, word: &Argument) {
        self.signs.see(&flag);
        if written != flag.name && written.contains('_') && self.underscored.is_none() {
            self.underscored = Some((written.to_owned(), word.span));
        }
        let Some(value) = self.value_of(flag.arity, inline, word) else {
            self.missing(flag.name, word);
            return;
        };
        if let Some(renamed) = renamed::find(flag.name) {
            let note = format!("--{} is an older flag; today it is {}", flag.name, renamed.today);
            self.reading.diagnostics.push(Diagnostic::note("renamed-flag", note).at_some(word.span));
            self.states(flag.name, renamed.states, &value);
            return;
        }
        match Field::named(flag.dest.unwrap_or(flag.name)) {
            Some(field) => self.take(field, flag.name, value),
            None => self.idle(flag, word.span),
        }
    }

    /// A flag of a fork.
    fn fork(&mut self, fork: &forks::Fork, inline: Option<Stated>, word: &Argument) {
        self.signs.see_unknown(fork.name);
        self.ascend |= forks::is_mindspeed(fork.name);
        let Some(value) = self.value_of(fork.arity, inline, word) else {
            self.missing(fork.name, word);
            return;
        };
        if let Some(what) = fork.lacking {
            let message = format!("--{} brings {what}, which is not estimated yet", fork.name);
            self.reading.diagnostics.push(Diagnostic::warning("not-estimated", message).at_some(word.span));
        }
        // The launcher's own spellings (auto, 1:4) are read by the launch room.
        let launcher = matches!(fork.name, "nnodes" | "nproc-per-node");
        if !launcher || value.text.bytes().all(|byte| byte.is_ascii_digit()) {
            self.states(fork.name, fork.states, &value);
        }
    }

    /// A flag whose value a fork spells in words of its own.
    fn respelt(&mut self, name: &str, inline: Option<Stated>, word: &Argument) {
        let Some(value) = self.value_of(Arity::One, inline, word) else {
            self.missing(name, word);
            return;
        };
        let states = forks::respelt(name, &value.text);
        if states.is_empty() {
            let message = format!("--{name} {} is not known", value.text);
            self.reading.diagnostics.push(Diagnostic::note("unknown-value", message).at_some(value.span));
        }
        for (field, text) in states {
            self.take(field, name, Stated { text, ..value.clone() });
        }
    }

    /// A setting's name as a flag (`--bias_swiglu_fusion false`), as command-line overrides write it.
    fn setting(&mut self, field: Field, inline: Option<Stated>, word: &Argument) {
        let arity = if field.kind() == Kind::Flag { Arity::On } else { Arity::One };
        match self.value_of(arity, inline, word) {
            Some(value) => self.take(field, field.name(), value),
            None => self.missing(field.name(), word),
        }
    }

    fn states(&mut self, flag: &str, states: &[(Field, Option<&str>)], value: &Stated) {
        for (field, fixed) in states {
            // A switch said to be false states nothing.
            if fixed.is_none() || value.text != "false" {
                let text = fixed.map_or_else(|| value.text.clone(), str::to_owned);
                self.take(*field, flag, Stated { text, ..value.clone() });
            }
        }
    }

    fn missing(&mut self, flag: &str, word: &Argument) {
        let message = format!("--{flag} needs a value");
        let dest = flags::find(flag).and_then(|known| known.dest).unwrap_or(flag);
        let said = match Field::named(dest) {
            Some(field) if !field.is_idle() => Diagnostic::error("missing-value", message),
            _ => Diagnostic::warning("missing-value", message),
        };
        self.reading.diagnostics.push(said.at_some(word.span));
    }

    /// The flag's value, from after its `=` or from the words that follow; none when it is missing.
    fn value_of(&mut self, arity: Arity, inline: Option<Stated>, word: &Argument) -> Option<Stated> {
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

    fn next_value(&mut self) -> Option<Stated> {
        let word = self.words.get(self.at).filter(|word| !word.text.starts_with("--"))?;
        self.at += 1;
        Some(Stated {
            text: word.text.clone(),
            span: word.span,
            hole: word.hole.clone(),
            answered: word.answered,
        })
    }

    /// A switch, which may carry true or false.
    fn switch(&mut self, inline: Option<Stated>, word: &Argument, on: bool) -> Stated {
        let follows = self.words.get(self.at).is_some_and(|next| truth(&next.text).is_some());
        let given = inline.or_else(|| if follows { self.next_value() } else { None });
        let said = given.as_ref().and_then(|value| truth(&value.text)).unwrap_or(true);
        let hole = given.and_then(|value| value.hole);
        Stated { text: (said == on).to_string(), span: word.span, hole, answered: word.answered }
    }

    fn take(&mut self, field: Field, flag: &str, value: Stated) {
        let origin = if value.answered { Origin::Environment } else { Origin::Script };
        let mut found = Found::new(field, value.text, origin).by(format!("--{flag}"), value.span);
        found.hole = value.hole;
        let (span, text) = (found.span, found.value.clone());
        if let Some(earlier) = self.reading.take(found)
            && earlier.value != text
        {
            let message = format!("{} is given more than once; the last value, {text}, counts", field.name());
            self.reading.diagnostics.push(Diagnostic::note("repeated-flag", message).at_some(span));
        }
    }

    fn idle(&mut self, flag: Flag, span: Option<Span>) {
        if let Some(what) = beyond(flag.name) {
            let message = format!("--{}: {what} are not estimated", flag.name);
            self.reading.diagnostics.push(Diagnostic::error("not-estimated", message).at_some(span));
            return;
        }
        if let Some(changes) = flag.changes {
            let message = format!("--{} changes {changes}, which is not estimated yet", flag.name);
            self.reading.diagnostics.push(Diagnostic::note("not-estimated", message).at_some(span));
            return;
        }
        self.first_idle = self.first_idle.or(span);
        self.idle.push(format!("--{}", flag.name));
    }

    fn unknown(&mut self, name: &str, word: &Argument) {
        self.signs.see_unknown(name);
        // A word that lacks a variable may stand for anything.
        if word.hole.is_some() {
            return;
        }
        // A text with more unknown flags than that is written for another program.
        self.looked_up += 1;
        let near = if self.looked_up <= LISTED { flags::near(name) } else { None };
        let Some(near) = near else {
            self.first_unknown = self.first_unknown.or(word.span);
            self.unknown.push(format!("--{name}"));
            return;
        };
        let message = format!("--{name} is not a flag of Megatron-LM");
        let warning = Diagnostic::warning("unknown-flag", message).hint(format!("--{near} is the nearest"));
        self.reading.diagnostics.push(warning.at_some(word.span));
    }

    fn finish(mut self) -> Reading {
        if let Some((written, span)) = self.underscored.take() {
            let message = format!("--{written} is read as --{}", written.replace('_', "-"));
            self.reading.diagnostics.push(Diagnostic::note("underscores", message).at_some(span));
        }
        let idle = "are recognised and change none of the figures";
        self.listed(
            "no-influence",
            idle,
            "is recognised and changes none of the figures",
            self.idle.clone(),
            self.first_idle,
        );
        let unknown = "are no flags of Megatron-LM or of a fork that is known, and are left aside";
        let single = "is no flag of Megatron-LM or of a fork that is known, and is left aside";
        self.listed("unknown-flags", unknown, single, self.unknown.clone(), self.first_unknown);
        if self.ascend && self.reading.value(Field::Accelerator).is_none() {
            let found = Found::new(Field::Accelerator, "Ascend-910B", Origin::Derived);
            self.reading.take(found.note("MindSpeed's own flags: it runs on Ascend accelerators"));
        }
        self.reading.software = software(&self.signs, &self.reading);
        self.reading
    }
}

impl Reader<'_> {
    /// One note on many flags.
    fn listed(
        &mut self,
        code: &'static str,
        many: &str,
        one: &str,
        mut flags: Vec<String>,
        span: Option<Span>,
    ) {
        sort(&mut flags, &String::cmp);
        flags.dedup();
        let message = match flags.as_slice() {
            [] => return,
            [single] => format!("{single} {one}"),
            all => {
                let shown = all.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if all.len() > LISTED { ", …" } else { "" };
                format!("{} flags {many}: {shown}{more}", all.len())
            }
        };
        self.reading.diagnostics.push(Diagnostic::note(code, message).at_some(span));
    }
}

/// Models of another kind than the decoder of attention and MLP that is estimated.
fn beyond(flag: &str) -> Option<&'static str> {
    match flag {
        "hybrid-layer-pattern" | "hybrid-override-pattern" | "is-hybrid-model" => {
            Some("hybrid (Mamba) models")
        }
        "heterogeneous-layers-config-path" => Some("models whose layers differ by a configuration file"),
        "experimental-attention-variant" => Some("experimental attention variants"),
        "decoder-num-layers" => Some("encoder-decoder models"),
        _ => None,
    }
}

/// The truth that a word says.
fn truth(word: &str) -> Option<bool> {
    match () {
        () if word.eq_ignore_ascii_case("true") => Some(true),
        () if word.eq_ignore_ascii_case("false") => Some(false),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::intake::Argument;
    use crate::plan::Field;

    #[track_caller]
    fn check(line: &str, expected: &[(Field, &str)], codes: &[&str]) {
        let reading = read(&Argument::split(line));
        let found: Vec<_> = reading.found.iter().map(|found| (found.field, found.value.as_str())).collect();
        assert_eq!(found, expected, "{line}");
        let said: Vec<_> = reading.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(said, codes, "{line}");
    }

    #[test]
    fn every_spelling_is_read() {
        check(
            "pretrain_gpt.py --num-layers 24 --bf16 --no-rope-fusion",
            &[(Field::NumLayers, "24"), (Field::Bf16, "true"), (Field::ApplyRopeFusion, "false")],
            &[],
        );
        check("--num_layers=24", &[(Field::NumLayers, "24")], &["underscores"]);
        check("--swiglu True --bf16 false", &[(Field::Swiglu, "true"), (Field::Bf16, "false")], &[]);
        check("--num-layers 24 --num-layers 32", &[(Field::NumLayers, "32")], &["repeated-flag"]);
        check(
            "--recompute-modules core_attn moe --lr 1e-4",
            &[(Field::RecomputeModules, "core_attn moe")],
            &["no-influence"],
        );
    }

    #[test]
    fn what_is_old_unknown_or_broken_is_said() {
        check("--batch-size 4", &[(Field::MicroBatchSize, "4")], &["renamed-flag"]);
        check("--DDP-impl local", &[], &["renamed-flag"]);
        check("--num-layer 24", &[], &["unknown-flag"]);
        check("--my-own-thing 24 --another-one", &[], &["unknown-flags"]);
        check(
            "--zero-stage 2 --bias_swiglu_fusion false",
            &[(Field::ZeroStage, "2"), (Field::BiasSwigluFusion, "false")],
            &[],
        );
        check("--num-layers --hidden-size 8", &[(Field::HiddenSize, "8")], &["missing-value"]);
        check("--mamba-state-dim 128", &[], &["not-estimated"]);
    }
}
