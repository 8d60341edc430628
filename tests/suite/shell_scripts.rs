//! Our own launch scripts, one for each way of writing them, with their expected results.
//!
//! For each `NAME.sh` there is a `NAME.expected`: the launcher, the world, every argument with the position to which a
//! click leads, questions, diagnostics, and written files. Lines `# args: ...` and `# env: NAME=VALUE` in a script give
//! it arguments and an environment. `RECORD=1 cargo test shell_scripts` rewrites the expectations, for review.

use std::fmt::Write;
use std::fs;

use shardscope::bash::Environment;
use shardscope::launch::launch::{Launch, Said, read};
use shardscope::source::{Source, Span};

const FOLDER: &str = "tests/data/launch";

/// Every sample script with its name.
pub(crate) fn scripts() -> Vec<(String, String)> {
    let mut scripts: Vec<_> = fs::read_dir(FOLDER)
        .expect("the folder of samples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sh"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("a script"))
        })
        .collect();
    scripts.sort();
    scripts
}

fn launched(text: &str) -> (Source, Launch) {
    let model = fs::read_to_string(format!("{FOLDER}/tiny.model.sh")).expect("the model's file");
    let source = Source::from_files([("", text), ("models/tiny.sh", model.as_str())]);
    let lines = |mark: &'static str| text.lines().filter_map(move |line| line.strip_prefix(mark));
    let environment = Environment {
        variables: lines("# env: ")
            .filter_map(|line| line.split_once('='))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect(),
        arguments: lines("# args: ").flat_map(str::split_whitespace).map(str::to_owned).collect(),
    };
    let launch = read(&source, &environment);
    (source, launch)
}

fn place(source: &Source, span: Option<Span>) -> String {
    match span {
        Some(span) => {
            let at = source.position(span.start);
            let file = if at.part > 0 { "+" } else { "" };
            format!("{file}{}:{}", at.line, at.column)
        }
        None => "-".to_owned(),
    }
}

/// The result of a script, one line per fact.
fn summary(text: &str) -> String {
    let (source, launch) = launched(text);
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let program = launch.line.program.as_ref().map_or("-", |word| word.text());
    line(format!(
        "launcher {} {program}",
        launch.line.launcher().map_or("-".to_owned(), |launcher| format!("{launcher:?}"))
    ));
    for (name, said) in [
        ("nodes", &launch.world.nodes),
        ("gpus_per_node", &launch.world.gpus_per_node),
        ("world_size", &launch.world.world_size),
    ] {
        match said {
            Some(Said::Known(fact)) => line(format!(
                "{name} {} {} {} ({})",
                fact.value,
                place(&source, fact.span),
                fact.by,
                fact.how
            )),
            Some(Said::Open(missing)) => {
                line(format!("{name} ? {} {}", place(&source, missing.span), missing.by))
            }
            None => {}
        }
    }
    for argument in &launch.arguments {
        let hole = argument.hole.as_ref().map_or(String::new(), |hole| format!(" lacks {hole}"));
        let given = if argument.answered { " given" } else { "" };
        let indent = if argument.text.starts_with("--") { "" } else { "    " };
        line(format!("{indent}{} {}{hole}{given}", argument.text, place(&source, argument.span)));
    }
    let reading = launch.reading();
    for question in &reading.questions {
        line(format!("? {} [{}] {}", question.name(), question.choices.join(" "), question.prompt));
    }
    for diagnostic in &launch.diagnostics {
        line(format!(
            "! {} {} {} {}",
            diagnostic.severity.name(),
            diagnostic.code,
            place(&source, diagnostic.span),
            diagnostic.message
        ));
    }
    for branch in &launch.script.branches {
        let sets: Vec<_> = branch.sets.iter().map(|(name, _)| name.as_str()).collect();
        let outcome = if branch.taken { "taken" } else { "left out" };
        line(format!(
            "if {} {outcome}: {}; sets {}",
            place(&source, Some(branch.span)),
            branch.why,
            sets.join(" ")
        ));
    }
    for file in &launch.script.files {
        line(format!("file {}", file.name.text()));
        for text in file.content.text().lines() {
            line(format!("  | {text}"));
        }
    }
    out
}

#[test]
fn every_script_comes_to_what_is_expected() {
    let mut wrong = Vec::new();
    for (name, text) in scripts() {
        let file = format!("{FOLDER}/{name}.expected");
        let found = summary(&text);
        if std::env::var_os("RECORD").is_some() {
            fs::write(&file, &found).expect("a writable file");
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if found != expected {
            let differing = found.lines().zip(expected.lines()).find(|(ours, theirs)| ours != theirs);
            wrong.push(format!("{name}: {differing:?}"));
        }
    }
    assert!(wrong.is_empty(), "found left, expected right\n{}", wrong.join("\n"));
}

#[test]
fn line_ends_and_blanks_of_a_browser_change_nothing() {
    let words = |text: &str| {
        launched(text).1.arguments.iter().map(|argument| argument.text.clone()).collect::<Vec<_>>()
    };
    for (name, text) in scripts() {
        let expected = words(&text);
        assert_eq!(words(&text.replace('\n', "\r\n")), expected, "{name} with carriage returns");
        let fenced = format!("```bash\n{text}```\n");
        assert_eq!(words(&fenced), expected, "{name} in a code fence");
        if name == "strings" || name == "arrays" {
            assert_eq!(
                words(&text.replace("    ", "\u{a0}\u{a0} \u{200b}")),
                expected,
                "{name} with no-break blanks"
            );
        }
    }
}
