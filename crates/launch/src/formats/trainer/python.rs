//! Recognised calls of a Python program or notebook: `from_pretrained`, `TrainingArguments`, `LoraConfig` and their kin, with
//! literal values. Nothing is evaluated; what is computed is not read.

use super::super::scalars::{Leaf, Scalars};
use super::dialect::Dialect;
use super::read::of;
use super::vocabulary::{self, Meaning};
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;
use shardscope_source::Span;

/// Calls whose keywords are settings of a training.
const CONFIGS: [&str; 9] = [
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "SFTTrainer",
    "LoraConfig",
    "BitsAndBytesConfig",
    "UnslothTrainingArguments",
    "get_peft_model",
];
/// Calls of trainings that hold more than the model.
const PREFERENCES: [&str; 7] =
    ["GRPOConfig", "PPOConfig", "RewardConfig", "KTOConfig", "ORPOConfig", "RLOOConfig", "OnlineDPOConfig"];
/// Trainers of those, which older programs give transformers' own `TrainingArguments`.
const PREFERENCE_TRAINERS: [&str; 8] = [
    "GRPOTrainer",
    "PPOTrainer",
    "RewardTrainer",
    "KTOTrainer",
    "ORPOTrainer",
    "RLOOTrainer",
    "CPOTrainer",
    "OnlineDPOTrainer",
];
/// Parts of the names of classes that load something else than a decoder with its output layer.
const OTHER_MODELS: [&str; 8] = [
    "Seq2SeqLM",
    "SequenceClassification",
    "TokenClassification",
    "QuestionAnswering",
    "MaskedLM",
    "T5For",
    "BartFor",
    "WhisperFor",
];
/// Calls that say how a trainer of a library trains, among those above.
const TRAINERS: [&str; 6] = [
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "SFTTrainer",
    "UnslothTrainingArguments",
];
/// Settings that are asked for where a call computes them; a default in their place would be another training's.
const ASKED: [Field; 5] =
    [Field::MicroBatchSize, Field::NumMicroBatches, Field::SeqLength, Field::Optimizer, Field::LoraRank];
/// Most calls read of one text, and most keywords of one call.
const MOST: usize = 64;

/// Characters shown of a computed value.
const SHOWN: usize = 40;
/// What stands for a computed value, which is asked for.
const UNKNOWN: &str = "?";

/// Reads the calls of a program; none where it has none of them.
pub(crate) fn read_python(text: &str, base: u32) -> Option<Reading> {
    // OLMo-core has classes of the same names.
    if text.contains("olmo_core") {
        return None;
    }
    let mut program = Program { text, base, names: Vec::new(), leaves: Vec::new(), computed: None };
    let mut seen: Vec<&str> = Vec::new();
    let mut at = 0;
    // What is loaded once more behind the training, or behind unsloth's own call, is for inference.
    let (mut loaded, mut trained) = (false, false);
    let mut adapters = false;
    let (mut trainers, mut other): (Vec<&str>, Option<&str>) = (Vec::new(), None);
    while let Some((name, open)) = program.next_call(at) {
        at = open + 1;
        let last = name.rsplit('.').next().unwrap_or(name);
        let known = CONFIGS.contains(&last) || PREFERENCES.contains(&last);
        let loads = last == "from_pretrained" && !name.contains("okenizer") && !name.contains("rocessor");
        // A folder of adapters names no model.
        let of_adapters = loads && name.contains("Peft");
        adapters |= of_adapters && !trained;
        let loads = loads && !of_adapters;
        let again = loads && loaded && (trained || seen.iter().any(|seen| seen.starts_with("Fast")));
        loaded |= loads;
        if loads && !again && OTHER_MODELS.iter().any(|part| name.contains(part)) {
            other = other.or(name.split('.').next());
        }
        if last == "DPOTrainer" || PREFERENCE_TRAINERS.contains(&last) {
            trainers.push(last);
        }
        trained |= last == "train" && name.contains("rainer");
        if (known || loads && !again) && seen.len() < MOST {
            seen.push(name);
            program.arguments(last, open, loads);
        }
    }
    let has = |part: &str| seen.iter().any(|name| name.contains(part));
    let is_called =
        |names: &[&str]| seen.iter().any(|name| names.contains(&name.rsplit('.').next().unwrap_or(name)));
    let by_trainer = is_called(&TRAINERS) || is_called(&PREFERENCES);
    let with_adapters = has("LoraConfig") || has("get_peft_model");
    if !(by_trainer || with_adapters) {
        return None;
    }
    if with_adapters {
        program.state("use_peft", "true");
    }
    let compares = has("DPOConfig") || trainers.contains(&"DPOTrainer");
    if compares {
        program.state("rl", "dpo");
    }
    // FastModel and FastVisionModel run modules that unsloth compiles.
    let fast = has("FastLanguageModel");
    let dialect = match (fast, has("SFTConfig") || has("DPO") || has("UnslothTrainingArguments")) {
        (true, true) => Dialect::Unsloth,
        (true, false) if !has("TrainingArguments") => Dialect::Unsloth,
        (true, false) => Dialect::UnslothArguments,
        (false, _) if has("SFT") || compares => Dialect::Trl,
        (false, _) => Dialect::Transformers,
    };
    let computed = std::mem::take(&mut program.computed);
    let scalars = Scalars::from_leaves(program.leaves);
    let mut reading = of(dialect, &scalars);
    if loaded && dialect == Dialect::Trl {
        in_its_own_format(&mut reading);
    }
    let mut lack =
        |name: &str, effect, what: &str| reading.not_modelled.push(NotModelled::new(name, "", effect, what));
    if has("FastModel") || has("FastVisionModel") {
        lack(
            "unsloth",
            Effect::Memory,
            "modules as unsloth compiles them, which keep less than transformers' own",
        );
    }
    if !by_trainer {
        lack(
            "program",
            Effect::Memory,
            "a training loop of the program's own: its batch, optimizer and precision",
        );
    }
    if let Some(call) = computed {
        lack(call, Effect::Memory, "keywords that the program computes (**)");
    }
    if adapters && !(has("LoraConfig") || has("get_peft_model")) {
        lack("PeftModel", Effect::Model, "adapters that a checkpoint describes");
    }
    if let Some(class) = other {
        lack(class, Effect::Model, "another model than a decoder trained on its next token");
    }
    let by_trainer = trainers
        .iter()
        .filter(|name| **name != "DPOTrainer" && !PREFERENCES.iter().any(|config| has(config)));
    for name in PREFERENCES.iter().filter(|name| has(name)).chain(by_trainer) {
        lack(
            name,
            Effect::Memory,
            "a training with rewards or preferences, and what it holds beside the model",
        );
    }
    Some(reading)
}

/// TRL loads a model in fp32 where it is given a name; one that the program loads itself is in the checkpoint's format.
fn in_its_own_format(reading: &mut Reading) {
    let by_default = |found: &Found| found.field == Field::ParamsDtype && found.origin == Origin::Default;
    let format = if reading.value(Field::Fp16) == Some("true") { "fp16" } else { "bf16" };
    if reading.found.iter().any(by_default) {
        let note = "as the checkpoint, which transformers 5 loads in its own format";
        reading.take(Found::new(Field::ParamsDtype, format, Origin::Default).note(note));
    }
}

struct Program<'a> {
    text: &'a str,
    base: u32,
    /// Variables with literal values, the last one of a name counts.
    names: Vec<(&'a str, &'a str)>,
    leaves: Vec<Leaf>,
    /// A call that takes keywords from a value of the program's.
    computed: Option<&'a str>,
}

impl<'a> Program<'a> {
    /// The next call behind `at`: its dotted name, and where its parenthesis opens. Literal assignments on the way are kept.
    fn next_call(&mut self, mut at: usize) -> Option<(&'a str, usize)> {
        let bytes = self.text.as_bytes();
        while at < bytes.len() {
            match bytes[at] {
                b'#' => at = self.line_end(at),
                b'"' | b'\'' => at = string_end(bytes, at),
                sign if sign.is_ascii_alphabetic() || sign == b'_' => {
                    let start = at;
                    while at < bytes.len()
                        && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'.'))
                    {
                        at += 1;
                    }
                    let name = self.text.get(start..at)?;
                    if bytes.get(at) == Some(&b'(') {
                        return Some((name, at));
                    }
                    let rest = self.text.get(at..self.line_end(at)).unwrap_or("");
                    let first_of_line = start == 0 || bytes[start - 1] == b'\n';
                    if let Some(value) = rest
                        .trim_start()
                        .strip_prefix('=')
                        .filter(|value| first_of_line && !value.starts_with('='))
                        && let Some(value) = literal(value.split(" #").next().unwrap_or(value).trim())
                    {
                        self.names.retain(|(known, _)| *known != name);
                        self.names.push((name, value));
                    }
                }
                _ => at += 1,
            }
        }
        None
    }

    fn line_end(&self, at: usize) -> usize {
        self.text.get(at..).and_then(|rest| rest.find('\n')).map_or(self.text.len(), |end| at + end)
    }

    /// The keywords of the call that opens at `open`, and the model's name among what stands without one.
    fn arguments(&mut self, call: &'a str, open: usize, loads: bool) {
        let bytes = self.text.as_bytes();
        let (mut at, mut start, mut depth, mut count) = (open + 1, open + 1, 0_usize, 0);
        while at < bytes.len() && count < MOST {
            match bytes[at] {
                b'#' => {
                    at = self.line_end(at);
                    continue;
                }
                b'"' | b'\'' => {
                    at = string_end(bytes, at);
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' if depth > 0 => depth -= 1,
                sign @ (b',' | b')') if depth == 0 => {
                    self.argument(start, at, loads && count == 0, loads);
                    let rest = self.text.get(start..at).unwrap_or("");
                    if !loads && rest.trim_start().starts_with("**") {
                        self.computed = self.computed.or(Some(call));
                    }
                    count += 1;
                    start = at + 1;
                    if sign == b')' {
                        return;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn argument(&mut self, start: usize, end: usize, may_be_model: bool, loads: bool) {
        let Some(written) = self.text.get(start..end) else { return };
        // Comments before the argument.
        let kept = written.trim_start();
        let mut from = end - kept.len();
        let mut kept = kept;
        while let Some(rest) = kept.strip_prefix('#') {
            let Some(line) = rest.find('\n') else { return };
            kept = rest.get(line..).unwrap_or("").trim_start();
            from = end - kept.len();
        }
        let (key, value) = match kept.split_once('=') {
            Some((key, value))
                if key.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
            {
                (key.trim(), value)
            }
            _ if may_be_model => ("model_name_or_path", kept),
            _ => return,
        };
        let key = if loads && key == "model_name" { "model_name_or_path" } else { key };
        let value = value.split(" #").next().unwrap_or(value).trim();
        let named = self.names.iter().find(|(name, _)| *name == value).map(|(_, value)| *value);
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
        let span = Span::new(place(from), place(end));
        let Some(value) = literal(value).or(named) else {
            let asked = matches!(vocabulary::find(key), Some(Meaning::Take(field)) if ASKED.contains(&field));
            if asked {
                let hole = value.chars().take(SHOWN).collect();
                let leaf = Leaf {
                    path: key.to_owned(),
                    value: UNKNOWN.to_owned(),
                    span: Some(span),
                    hole: Some(hole),
                    ..Leaf::default()
                };
                self.leaves.push(leaf);
            }
            return;
        };
        self.push(key, &plain(value), Some(span));
    }

    fn state(&mut self, key: &str, value: &str) {
        self.push(key, value, None);
    }

    fn push(&mut self, key: &str, value: &str, span: Option<Span>) {
        self.leaves.push(Leaf { path: key.to_owned(), value: value.to_owned(), span, ..Leaf::default() });
    }
}

/// Where a string ends that begins at `at`; three quotes may span lines.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let triple = bytes.get(at..at + 3).is_some_and(|three| three.iter().all(|sign| *sign == quote));
    let width = if triple { 3 } else { 1 };
    let mut end = at + width;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 1,
            b'\n' if !triple => return end,
            sign if sign == quote => {
                let closes = !triple
                    || bytes.get(end..end + 3).is_some_and(|three| three.iter().all(|sign| *sign == quote));
                if closes {
                    return end + width;
                }
            }
            _ => {}
        }
        end += 1;
    }
    bytes.len()
}

/// A literal as written, or a dotted name such as `torch.bfloat16`; none for anything that is computed.
fn literal(value: &str) -> Option<&str> {
    let first = value.bytes().next()?;
    let plain =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+'));
    let string = matches!(first, b'"' | b'\'') && string_end(value.as_bytes(), 0) == value.len();
    let list = first == b'[' && value.ends_with(']') && !value.contains('(');
    let number = plain && first.is_ascii_digit();
    let known = matches!(value, "True" | "False" | "None") || value.starts_with("torch.") && plain;
    (string || list || number || known).then_some(value)
}

/// A literal as a settings file would have it.
fn plain(value: &str) -> String {
    match value {
        "True" => "true".to_owned(),
        "False" => "false".to_owned(),
        "None" => String::new(),
        _ => value.chars().filter(|sign| !matches!(sign, '"' | '\'' | '\n')).collect(),
    }
}

#[cfg(test)]
mod tests;
