//! Calls of a program with their arguments, as far as these are known. Nothing is executed.

use super::super::device_map;
use super::super::vocabulary::{self, Meaning};
use super::cut;
use super::known::Known;
use super::literal::{literal, plain, shown, within_call, without_comments};
use super::names::Names;
use crate::scalars::Leaf;
use shardscope_plan::Field;
use shardscope_python::statements::string_end;
use shardscope_python::value::Value;
use shardscope_source::Span;
use std::collections::HashMap;

/// Settings that are asked for if a call computes them; their defaults would describe a different training.
const ASKED: [Field; 6] = [
    Field::MicroBatchSize,
    Field::NumMicroBatches,
    Field::SeqLength,
    Field::Optimizer,
    Field::LoraRank,
    Field::LoraDropout,
];
/// The same for keywords that are read by dedicated code.
const ASKED_OWN: [(&str, Field); 8] = [
    ("attn_implementation", Field::AttnImplementation),
    ("torch_dtype", Field::ParamsDtype),
    ("dtype", Field::ParamsDtype),
    ("packing", Field::Packing),
    ("target_modules", Field::LoraTargetModules),
    ("gradient_checkpointing", Field::GradientCheckpointing),
    ("bf16", Field::Bf16),
    ("num_labels", Field::NumLabels),
];
/// Keywords whose computed values cannot be asked for: each value would raise other questions.
const COMPUTED: [&str; 18] = [
    "load_in_4bit",
    "load_in_8bit",
    "use_vllm",
    "vllm_mode",
    "modules_to_save",
    "deepspeed",
    "fsdp",
    "fsdp_config",
    "use_liger_kernel",
    "num_generations",
    "max_completion_length",
    "loss_type",
    "use_dora",
    "bnb_4bit_use_double_quant",
    "torch_compile",
    "padding_free",
    "activation_offloading",
    "precompute_ref_log_probs",
];
/// Calls that describe adapters, and their keywords that give some linear layers other ranks than the rest, or none.
/// Their values are mostly dictionaries and ranges, which are not settings: the presence of one is what counts.
pub(super) const ADAPTERS: [&str; 2] = ["LoraConfig", "get_peft_model"];
const OF_SOME_LAYERS: [&str; 10] = [
    "rank_pattern",
    "layers_pattern",
    "layers_to_transform",
    "layer_replication",
    "target_parameters",
    "trainable_token_indices",
    "exclude_modules",
    "eva_config",
    "corda_config",
    "lora_ga_config",
];
/// A placeholder for a computed value, which is asked for.
const UNKNOWN: &str = "?";
/// Most calls that are read from one text, and most keywords of one call.
pub(super) const MOST: usize = 64;

/// A program that is being read.
pub(super) struct Program<'a> {
    pub(super) text: &'a str,
    pub(super) base: u32,
    /// Variables with literal values; the last assignment of a name counts.
    pub(super) literals: HashMap<&'a str, &'a str>,
    /// All assignments in its lines.
    pub(super) names: Names<'a>,
    pub(super) leaves: Vec<Leaf>,
    /// Settings read by dedicated code whose values are computed, each with the expression as written.
    pub(super) open: Vec<(Field, String, Span)>,
    /// A call that unpacks keywords from a value of the program.
    pub(super) computed: Option<String>,
    /// Options of argparse that its calls use and whose command line is not known.
    pub(super) taken: Vec<String>,
    /// Options that it takes from its command line.
    pub(super) known: Known<'a>,
}

impl<'a> Program<'a> {
    /// The next call after `at`: its dotted name, and the position of its parenthesis. Literal
    /// assignments on the way are stored.
    pub(super) fn next_call(&mut self, mut at: usize) -> Option<(&'a str, usize)> {
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
                    // Only names at the beginning of a line; the rest of a line is examined once.
                    if start > 0 && bytes[start - 1] != b'\n' {
                        continue;
                    }
                    let rest = self.text.get(at..self.line_end(at)).unwrap_or("");
                    if let Some(value) =
                        rest.trim_start().strip_prefix('=').filter(|value| !value.starts_with('='))
                        && let Some(value) = literal(value.split(" #").next().unwrap_or(value).trim())
                    {
                        self.literals.insert(name, value);
                    } else if rest.trim_start().starts_with(',') {
                        at = self.several(start);
                    }
                }
                _ => at += 1,
            }
        }
        None
    }

    /// Reads a line at `start` that assigns literals to several names, and returns where reading continues: within the
    /// line if a value is computed, since its call has to be read.
    fn several(&mut self, start: usize) -> usize {
        let line = self.text.get(start..self.line_end(start)).unwrap_or("");
        let first = start + line.split(',').next().map_or(0, str::len);
        let Some((names, values)) = line.split_once('=') else { return first };
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let values = values.split(" #").next().unwrap_or(values).split(',');
        let values: Option<Vec<&str>> = values.map(|value| literal(value.trim())).collect();
        let Some(values) = values.filter(|values| values.len() == names.len()) else { return first };
        for (name, value) in names.into_iter().zip(values) {
            self.literals.insert(name, value);
        }
        start + line.len()
    }

    /// Whether an apparent call is the head of a class.
    pub(super) fn is_class(&self, name: &str, open: usize) -> bool {
        let before = self.text.get(..open.saturating_sub(name.len())).unwrap_or("");
        before.ends_with("class ")
    }

    /// Whether the call that opens there belongs to a model class (`AutoModelForCausalLM.from_pretrained`).
    fn is_of_a_model(&self, open: usize) -> bool {
        let before = self.text.get(..open).unwrap_or_default();
        let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.')).next();
        name.is_some_and(|name| name.contains("Model"))
    }

    fn line_end(&self, at: usize) -> usize {
        self.text.get(at..).and_then(|rest| rest.find('\n')).map_or(self.text.len(), |end| at + end)
    }

    /// The keywords of the call that opens at `open`, and the model's name among the positional arguments.
    pub(super) fn arguments(&mut self, call: &'a str, open: usize, loads: bool) {
        // Any of these calls may never be closed.
        let bytes = within_call(self.text, open);
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
                    self.argument(call, start, at, loads && count == 0, loads);
                    let rest = self.text.get(start..at).unwrap_or("");
                    if let Some(unpacked) = rest.trim_start().strip_prefix("**") {
                        // Calls that load a tokenizer or a processor are not read.
                        let counts = !loads || self.is_of_a_model(open);
                        self.unpack(call, unpacked, start, at, counts);
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

    /// The keywords that a dictionary passes to a call; `counts`: whether unknown ones may change the training.
    fn unpack(&mut self, call: &str, written: &str, start: usize, end: usize, counts: bool) {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
        let span = Span::new(place(start), place(end));
        let Some(Value::Dictionary(pairs)) = self.known.object(written.trim(), start) else {
            if counts {
                self.computed.get_or_insert_with(|| call.to_owned());
            }
            return;
        };
        for (key, value) in pairs.into_iter().take(MOST) {
            match value.and_then(|value| value.setting()) {
                Some(value) if value.is_empty() => {}
                Some(value) => self.push(&key, &value, Some(span)),
                None => self.left_open(call, &key, "a value of a dictionary", span),
            }
        }
    }

    fn argument(&mut self, call: &'a str, start: usize, end: usize, may_be_model: bool, loads: bool) {
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
        // Comments behind it, and between the elements of a list or a dictionary.
        let bare = without_comments(kept);
        let kept = bare.as_ref();
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
        let value = value.trim();
        // The arguments with which TRL loads the model if it receives a name.
        if key == "model_init_kwargs" && value != "None" {
            return self.unpack(call, value, from, end, true);
        }
        if key == "gradient_checkpointing_kwargs"
            && let Some(Value::Dictionary(pairs)) = self.known.object(value, from)
        {
            let said = pairs
                .into_iter()
                .find(|(key, _)| key == "use_reentrant")
                .and_then(|(_, value)| value?.setting());
            if let Some(word) = said {
                let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
                self.push(
                    "gradient_checkpointing_kwargs.use_reentrant",
                    &word,
                    Some(Span::new(place(from), place(end))),
                );
            }
            return;
        }
        if key == device_map::KEY {
            let map = self.known.object(value, from).and_then(|map| device_map::written(&map));
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
            let span = Span::new(place(from), place(end));
            return map.into_iter().for_each(|map| self.push(key, &map, Some(span)));
        }
        // Every reader accepts comma-separated names as a list.
        let value = [".split(\",\")", ".split(',')"]
            .iter()
            .find_map(|ending| value.strip_suffix(ending))
            .unwrap_or(value);
        let named = self.literals.get(value).copied();
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
        let span = Span::new(place(from), place(end));
        // None is an option without a default, so that the call's own default applies.
        let written = literal(value);
        if let Some(given) = written.is_none().then(|| self.known.value(value, from)).flatten() {
            let is_read = vocabulary::find(key).is_some() || key == "model_name_or_path";
            if is_read
                && value.bytes().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, b'_' | b'.'))
            {
                self.known.options.hand_over(value);
            }
            if !given.is_empty() {
                self.push(key, &given, Some(span));
            }
            return;
        }
        if let Some(option) = self.known.options.named(value) {
            let option = option.to_owned();
            if !self.taken.contains(&option) {
                self.taken.push(option);
            }
        }
        // After an assignment in an undecided branch the earlier literal may no longer hold.
        let open = self.known.is_given(value, from);
        let named = named.filter(|_| !open);
        let Some(value) = written.or(named).or_else(|| if open { None } else { self.names.only(value) })
        else {
            // bf16 wherever the accelerator supports it.
            if matches!(key, "torch_dtype" | "dtype")
                && value.starts_with("torch.bfloat16 if")
                && value.contains("supported(")
            {
                return self.push(key, "torch.bfloat16", Some(span));
            }
            // True wherever the accelerator supports it.
            if key == "bf16" && value.contains("supported(") && !value.starts_with("not ") {
                // unsloth's own trainer runs in fp16 elsewhere.
                let word = if self.text.contains("unsloth") { "auto" } else { "true" };
                return self.push(key, word, Some(span));
            }
            if ADAPTERS.contains(&call) && OF_SOME_LAYERS.contains(&key) {
                let empty = |value| matches!(value, Value::Dictionary(pairs) if pairs.is_empty());
                if !self.known.object(value, from).is_some_and(empty) {
                    self.push(key, &shown(value), Some(span));
                }
                return;
            }
            self.left_open(call, key, &shown(value), span);
            return;
        };
        self.push(key, &plain(value), Some(span));
    }

    /// Records that a call computes one of its keywords.
    fn left_open(&mut self, call: &str, key: &str, written: &str, span: Span) {
        if let Some((_, field)) = ASKED_OWN.iter().find(|(known, _)| *known == key) {
            self.open.push((*field, written.to_owned(), span));
        }
        // Rollouts have a reference in addition to the policy unless beta is 0. unsloth's engine takes at most the
        // model's length in tokens, whatever the limits of its parts add up to.
        let bounded = key == "max_completion_length" && self.text.contains("fast_inference");
        // Dedicated code asks for these: what unsloth quantizes, and the sizes of TRL's rollouts, whose losses hold the same
        // whichever is chosen (`trl/trainer/grpo_trainer.py:_compute_loss`: one number a token).
        let unsloth = self.text.contains("unsloth");
        let rolls_out = matches!(call, "GRPOConfig" | "RLOOConfig") && !unsloth;
        let own = match key {
            "load_in_4bit" => unsloth && call == "from_pretrained",
            "num_generations" | "max_completion_length" | "beta" => rolls_out,
            _ => false,
        };
        let same = key == "loss_type" && rolls_out;
        let compares = key == "beta" && matches!(call, "GRPOConfig" | "RLOOConfig");
        if (COMPUTED.contains(&key) || compares) && !bounded && !own && !same {
            self.computed.get_or_insert_with(|| key.to_owned());
        }
        let asked = matches!(vocabulary::find(key), Some(Meaning::Take(field)) if ASKED.contains(&field));
        if asked || own {
            let hole = written.to_owned();
            let leaf = Leaf {
                path: key.to_owned(),
                value: UNKNOWN.to_owned(),
                span: Some(span),
                hole: Some(hole),
                ..Leaf::default()
            };
            self.leaves.push(leaf);
        }
    }

    /// States the length to which its tokenizer truncates samples, if it is known.
    pub(super) fn cut(&mut self) {
        if let Some((tokens, at)) = cut::length(self.text, &self.known) {
            let at = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(self.base);
            self.push("max_seq_length", &tokens, Some(Span::new(at, at.saturating_add(1))));
        }
    }

    pub(super) fn state(&mut self, key: &str, value: &str) {
        self.push(key, value, None);
    }

    fn push(&mut self, key: &str, value: &str, span: Option<Span>) {
        self.leaves.push(Leaf { path: key.to_owned(), value: value.to_owned(), span, ..Leaf::default() });
    }
}
