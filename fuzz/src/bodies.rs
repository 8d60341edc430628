//! What must hold of any bytes, one function for each kind of input that a stranger may have written.
//!
//! `fuzz_targets/` gives them to libFuzzer; `tests/suite/fuzzed.rs` runs the same on stable with proptest and on the seeds, in
//! every run of the tests. A function that returns has found nothing; a fault is a panic.

use shardscope::bash::Environment;
use shardscope::config_tree::{Node, Tree, Value, read_json, read_toml, read_yaml};
use shardscope::export::{
    ACCELERATE_FILE, DEEPSPEED_FILE, Exported, TITAN_FILE, accelerate_command, accelerate_yaml,
    bridge_command, deepspeed_json, edit, megatron_command, torchtitan_command, torchtitan_toml,
};
use shardscope::launch::{
    Argument, MAX_DIAGNOSTICS, Request, Resolution, is_log, launch, megatron, read, read_log, resolve,
};
use shardscope::link::{decode_pair, encode};
use shardscope::plan::{Field, Marks, ValueKind};
use shardscope::report::document;
use shardscope::report::text::{markdown, text as plain};
use shardscope::session::{
    Asked, Asking, EXAMPLE, Event, State, UserInput, apply, estimated, keep_input, restore,
};
use shardscope::source::{Diagnostic, Source, Span, render};

/// A function that takes bytes.
pub type Body = fn(&[u8]);

/// Every function under the name of its target.
pub const BODIES: [(&str, Body); 11] = [
    ("shell", shell),
    ("settings", settings),
    ("texts", texts),
    ("links", links),
    ("kept", kept),
    ("logs", logs),
    ("measured", measured),
    ("asked", asked),
    ("patches", patches),
    ("exports", exports),
    ("plans", plans),
];

/// More bytes than this are a matter for the bounds, which have tests of their own.
const MOST: usize = 64 << 10;
/// What a document may take. Unit: byte.
const MAX_DOCUMENT: usize = 5 << 20;
/// What stands between the parts of an input of several texts: name, text, name, text.
const BETWEEN: char = '\0';

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)])
}

fn inside(source: &Source, span: Span) {
    let (start, end) = (span.start as usize, span.end as usize);
    assert!(source.text().get(start..end).is_some(), "{span:?} is no part of the text");
}

/// Diagnostics point into the text and can be drawn.
fn told(source: &Source, diagnostics: &[Diagnostic]) {
    assert!(diagnostics.len() <= MAX_DIAGNOSTICS + 1, "{} diagnostics", diagnostics.len());
    for said in diagnostics {
        assert!(!said.message.is_empty(), "{said:?}");
        if let Some(span) = said.span {
            inside(source, span);
        }
        assert!(!render(source, said).is_empty());
    }
}

/// A plan, a question or a reason; what is said points into the texts.
fn resolved(source: &Source, overrides: &[(String, String)]) -> Resolution {
    let resolution = read(&Request { source, environment: &Environment::default(), overrides });
    told(source, &resolution.diagnostics);
    for setting in &resolution.settings {
        if let Some(span) = setting.span {
            inside(source, span);
        }
    }
    let reason = resolution.diagnostics.iter().any(|said| said.severity.name() == "error");
    let asked = !resolution.questions.is_empty();
    assert!(
        resolution.plan.is_some() || reason || asked,
        "no plan without a word: {:?}",
        resolution.diagnostics
    );
    resolution
}

/// Every estimate of what makes a plan, as a document, as text and as Markdown.
fn reported(source: &Source, resolution: &mut Resolution) {
    let found = estimated(resolution);
    let whole = document(source, resolution, found.as_ref().map(|(_, report)| report), false);
    assert!(whole.len() < MAX_DOCUMENT + 8 * source.text().len(), "a document of {} bytes", whole.len());
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(&whole);
    assert!(parsed.is_ok(), "{parsed:?}");
    if let Some((plan, report)) = &found {
        assert!(report.time.step.get() > 0.0 && report.time.step.get().is_finite(), "{:?}", report.time.step);
        assert!(!plain(plan, report).is_empty() && !markdown(plan, report).is_empty());
    }
}

/// A shell script: evaluated, what it launches read.
pub fn shell(bytes: &[u8]) {
    let text = text(bytes);
    let source = Source::new(&text);
    let environment =
        Environment { arguments: vec!["a b".to_owned(), "7".to_owned()], ..Environment::default() };
    let launched = launch::read(&source, &environment);
    let reading = launched.reading();
    told(&source, &reading.diagnostics);
    let words = launched.script.commands.iter().flat_map(|command| &command.words);
    let kept: usize = words.map(|word| word.text().len()).sum();
    assert!(kept <= 16 << 20, "{kept} bytes of words");
}

fn tree(text: &str, tree: &Tree) {
    fn walk(text: &str, node: &Node) {
        let (start, end) = (node.span.start as usize, node.span.end as usize);
        assert!(text.get(start..end).is_some(), "{:?} is no part of the text", node.span);
        match &node.value {
            Value::Scalar(_) => {}
            Value::List(items) => items.iter().for_each(|item| walk(text, item)),
            Value::Map(entries) => {
                for entry in entries {
                    assert!(text.get(entry.key_span.start as usize..entry.key_span.end as usize).is_some());
                    walk(text, &entry.node);
                }
            }
        }
    }
    tree.documents.iter().for_each(|node| walk(text, node));
    told(&Source::new(text), &tree.diagnostics);
}

/// A settings file: JSON, TOML or YAML by the first byte.
pub fn settings(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let text = text(rest);
    let read = match kind % 3 {
        0 => read_json(&text, 0),
        1 => read_toml(&text, 0),
        _ => read_yaml(&text, 0),
    };
    tree(&text, &read);
}

/// Any text or several: `name`, a zero byte, `text`, a zero byte, `name` … Read by whatever reader takes it, and estimated.
pub fn texts(bytes: &[u8]) {
    let text = text(bytes);
    let pieces: Vec<&str> = text.split(BETWEEN).collect();
    let source = match pieces.as_slice() {
        [one] => Source::new(one),
        several => Source::from_files(several.chunks(2).map(|pair| (pair[0], *pair.get(1).unwrap_or(&"")))),
    };
    let mut resolution = resolved(&source, &[]);
    reported(&source, &mut resolution);
}

/// The fragment of a link: read, followed, and what it carries written and read again.
pub fn links(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok((one, other)) = decode_pair(&text) {
        for shared in [one, other].into_iter().flatten() {
            let again = decode_pair(&encode(&shared)).map(|(again, _)| again);
            assert_eq!(again, Ok(Some(shared)), "a link comes back otherwise");
        }
        let state = apply(State::default(), Event::Follow(text.into_owned()));
        told(&state.answer.source, &state.answer.resolution.diagnostics);
    }
}

/// What a browser's store or history holds, which an extension or an older version may have written.
pub fn kept(bytes: &[u8]) {
    if let Some(kept) = restore(&text(bytes)) {
        let again = restore(&keep_input(&kept.input)).map(|again| again.input);
        assert_eq!(again.as_ref(), Some(&kept.input), "what is kept comes back otherwise");
        let state = apply(State::default(), Event::Restore(Box::new(kept)));
        told(&state.answer.source, &state.answer.resolution.diagnostics);
    }
}

/// Lines of a training log.
pub fn logs(bytes: &[u8]) {
    let text = text(bytes);
    let log = read_log(&text);
    assert!(log.median_seconds().is_none_or(|seconds| seconds.is_finite() && seconds >= 0.0), "{log:?}");
    let _: Option<u64> = log.max_allocated();
    if is_log(&text) {
        resolved(&Source::from_files([("run.sh", EXAMPLE), ("train.log", &text)]), &[]);
    }
}

/// A file of a tool that measured a run: a pickle, JSON or text.
pub fn measured(bytes: &[u8]) {
    let Ok(found) = shardscope_measured::read(&bytes[..bytes.len().min(MOST)]) else { return };
    assert!(!found.is_empty(), "an answer without a figure");
    for one in found {
        assert!(one.step.is_none_or(|step| step.seconds > 0.0 && step.seconds.is_finite()), "{one:?}");
        assert!(one.tflops_per_gpu.is_none_or(f64::is_finite), "{one:?}");
    }
}

/// A question as JSON, of the example.
pub fn asked(bytes: &[u8]) {
    let Ok(asked) = serde_json::from_str::<Asked>(&text(bytes)) else { return };
    let Ok(mut asking) = Asking::new(&UserInput::from_text(EXAMPLE), &asked) else { return };
    asking.step(8);
    assert!(!asking.answer().is_empty());
    assert!(asking.lines().len() < 10_000);
}

/// A value of a setting, by a byte: at its bounds, beyond them, or usual.
fn value(field: Field, byte: u8) -> String {
    let pick = |words: &[&str]| words[usize::from(byte) % words.len()].to_owned();
    match field.kind() {
        ValueKind::Count(least, most) => match byte {
            0 => most.to_string(),
            1 => most.saturating_add(1).to_string(),
            2 => least.to_string(),
            3..=66 => (1_u64 << (byte - 3)).to_string(),
            67..=98 => (3_u64 << (byte - 67)).to_string(),
            _ => (byte - 98).to_string(),
        },
        ValueKind::Real(..) => pick(&["0", "1", "0.5", "-1", "nan", "1e300", "inf", "1e-320"]),
        ValueKind::Flag => pick(&["true", "false"]),
        ValueKind::Word(words) => pick(words),
        ValueKind::Text => {
            pick(&["", "1", "Et*4|t*4L", "([0]*4+[1]*4)", "999999999999", "=1+1", "a'b\"c`$(d)\n"])
        }
        ValueKind::Counts => pick(&["1 1 1", "2,2", "18446744073709551615", ""]),
        ValueKind::Words => pick(&["core_attn", "moe mlp", "x", "a2a", "q_proj,v_proj", "all-linear"]),
    }
}

/// Settings by pairs of bytes: which, and its value.
fn drawn(bytes: &[u8]) -> Vec<(String, String)> {
    let setting = |pair: &[u8]| {
        let field = Field::ALL[usize::from(pair[0]) % Field::ALL.len()];
        (field.name().to_owned(), value(field, pair[1]))
    };
    // A third byte tells the settings beyond the 256th.
    let wide = |triple: &[u8]| {
        let field = Field::ALL[(usize::from(triple[0]) | usize::from(triple[1] & 3) << 8) % Field::ALL.len()];
        (field.name().to_owned(), value(field, triple[2]))
    };
    match bytes.split_first() {
        Some((0..128, rest)) => rest.chunks_exact(2).take(24).map(setting).collect(),
        Some((_, rest)) => rest.chunks_exact(3).take(24).map(wide).collect(),
        None => Vec::new(),
    }
}

/// What stands before the settings drawn, so that many of them make a plan.
const BASE: &str = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 \
    --max-position-embeddings 2048 --micro-batch-size 1 --vocab-size 32000 --bf16";

fn planned(bytes: &[u8]) -> Resolution {
    let mut overrides = vec![("world_size".to_owned(), "8".to_owned())];
    overrides.extend(drawn(bytes));
    resolve(&[megatron::read(&Argument::split(BASE))], &overrides)
}

/// Settings at and beyond their bounds through every estimate.
pub fn plans(bytes: &[u8]) {
    let mut resolution = planned(bytes);
    reported(&Source::new(""), &mut resolution);
}

/// A change written into texts is what is then read, or is named as one that found no place; what a reader pasted is changed
/// nowhere else than marked. The first two bytes choose the setting and its value, the rest is the script.
pub fn patches(bytes: &[u8]) {
    let [which, of, rest @ ..] = bytes else { return };
    let field = Field::ALL[usize::from(*which) % Field::ALL.len()];
    let wanted = value(field, *of);
    let text = text(&rest[..rest.len().min(4_096)]);
    let source = Source::new(&text);
    let edited = edit(&source, &Environment::default(), &[(field, wanted.clone())]);
    for (file, mark) in &edited.marks {
        assert!(edited.files[*file].1.get(mark.start as usize..mark.end as usize).is_some(), "{mark:?}");
    }
    if edited.unplaced.is_empty() {
        let again =
            Source::from_files(edited.files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let now = resolved(&again, &[]).setting(field).map(|setting| setting.value.written());
        assert_eq!(now.unwrap_or_default(), wanted, "{}", edited.files[0].1);
    } else {
        assert_eq!(edited.files[0].1, text, "changed without a place");
    }
}

/// A plan written as a command is read as the same plan, or what the command cannot say is named.
pub fn exports(bytes: &[u8]) {
    let target = planned(bytes);
    if target.plan.is_none() {
        return;
    }
    let machine =
        target.setting(Field::Accelerator).map(|setting| setting.value.written()).unwrap_or_default();
    let machine = [(Field::Accelerator.name().to_owned(), machine)];
    let beside = |command: String, file: &'static str, exported: Exported| {
        let source = Source::from_files([("run.sh", command.as_str()), (file, exported.text.as_str())]);
        (source, exported)
    };
    let alone = |exported: Exported| (Source::new(&exported.text), exported);
    // A command that turns DeepSpeed on names its file.
    let megatron = |exported: Exported| {
        let configuration = deepspeed_json(&target).text;
        let files = [("", exported.text.as_str()), (DEEPSPEED_FILE, configuration.as_str())];
        let count = if exported.text.contains(DEEPSPEED_FILE) { 2 } else { 1 };
        (Source::from_files(files.into_iter().take(count)), exported)
    };
    for (source, exported) in [
        megatron(megatron_command(&target)),
        alone(bridge_command(&target)),
        beside(torchtitan_command(&target), TITAN_FILE, torchtitan_toml(&target)),
        beside(accelerate_command(&target), ACCELERATE_FILE, accelerate_yaml(&target)),
    ] {
        let again = resolved(&source, &machine);
        // What its readers marked a plan with is no part of a command.
        let unmarked = |of: &Resolution| of.plan.clone().map(|plan| plan.marked(Marks::default()));
        let equal = unmarked(&target) == unmarked(&again);
        assert!(equal || !exported.unsaid.is_empty(), "{}\n{:?}", exported.text, again.diagnostics);
    }
}
