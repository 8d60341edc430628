//! Generated scripts evaluated by this reader and by real bash: the same final arguments.
//!
//! `data/launch/bash.txt` holds scripts (by seed) with what bash 5.2 printed for them, so that the comparison does not
//! need bash; if bash is on the path, fresh scripts are evaluated by both. `RECORD=1 cargo test shell_bash` rewrites
//! the file.

use std::fmt::Write;
use std::process::Command;

use shardscope::bash::{Environment, Script, evaluate};
use shardscope::source::Source;

use super::bash_writer::Writer;

/// Number of scripts stored with bash's answer.
const RECORDED: usize = 180;
/// Number of scripts evaluated by bash itself if it is available.
const FRESH: u64 = 200;
/// Their first seed, beyond the recorded ones.
const FIRST_FRESH: u64 = 10_000;
const FILE: &str = "tests/data/launch/bash.txt";

/// The arguments that this reader finds, one per line in brackets.
fn ours(text: &str) -> String {
    let script: Script = evaluate(&Source::new(text), &Environment::default());
    let values = script.variable("ARGS").map(|variable| variable.values.clone()).unwrap_or_default();
    values.iter().fold(String::new(), |mut out, value| {
        let _ = writeln!(out, "[{}]", value.text());
        out
    })
}

/// What bash prints, or nothing if it reports an error; none if bash is not available.
fn theirs(text: &str) -> Option<Option<String>> {
    let whole = format!("{text}\nprintf '[%s]\\n' \"${{ARGS[@]}}\"\n");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &whole]).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
    let out = bash.output().ok()?;
    Some(out.stderr.is_empty().then(|| String::from_utf8_lossy(&out.stdout).into_owned()))
}

/// Checks that no scripts give different results, and reports the first difference in full.
#[track_caller]
fn check<'a>(cases: impl Iterator<Item = (u64, &'a str, &'a str)>) {
    let mut first = None;
    let mut wrong = Vec::new();
    for (seed, text, expected) in cases {
        let found = ours(text);
        if found != expected {
            first.get_or_insert_with(|| format!("{text}\nours:\n{found}\nbash:\n{expected}"));
            wrong.push(seed);
        }
    }
    assert!(wrong.is_empty(), "{} scripts differ: {wrong:?}\n{}", wrong.len(), first.unwrap_or_default());
}

#[test]
fn recorded_scripts_give_the_arguments_that_bash_gave() {
    if std::env::var_os("RECORD").is_some() {
        record();
    }
    let recorded = std::fs::read_to_string(FILE).expect("the recorded scripts");
    let entries: Vec<_> = recorded
        .split("=== ")
        .skip(1)
        .map(|entry| {
            let (seed, rest) = entry.split_once('\n').expect("a seed");
            let (text, expected) = rest.split_once("---\n").expect("an answer");
            (seed.parse().expect("a number"), text, expected)
        })
        .collect();
    assert_eq!(entries.len(), RECORDED);
    check(entries.into_iter());
}

/// Writes the scripts that bash runs without an error, with what it prints.
fn record() {
    let mut out = String::new();
    let answered = (0..).filter_map(|seed| {
        let text = Writer::script(seed);
        let answer = theirs(&text).expect("bash, to record its answers");
        answer.map(|answer| (seed, text, answer))
    });
    for (seed, text, answer) in answered.take(RECORDED) {
        let _ = write!(out, "=== {seed}\n{text}---\n{answer}");
    }
    std::fs::write(FILE, out).expect("a writable file");
}

#[test]
fn fresh_scripts_agree_with_bash_where_there_is_one() {
    let scripts: Vec<_> =
        (0..FRESH).map(|seed| (FIRST_FRESH + seed, Writer::script(FIRST_FRESH + seed))).collect();
    let answers: Vec<_> = scripts.iter().map(|(_, text)| theirs(text)).collect();
    if answers.iter().all(Option::is_none) {
        // Without bash there are only the recorded answers; the scripts must still be read without any diagnostic.
        for (_, text) in &scripts {
            let script = evaluate(&Source::new(text), &Environment::default());
            assert!(script.diagnostics.is_empty(), "{:?}\n{text}", script.diagnostics);
        }
        return;
    }
    let pairs = scripts.iter().zip(&answers);
    check(
        pairs.filter_map(|((seed, text), answer)| Some((*seed, text.as_str(), answer.as_ref()?.as_deref()?))),
    );
}
