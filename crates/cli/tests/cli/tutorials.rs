//! The tutorials of `docs/` are run as they are written: files are made, commands are called, and what they print is what stands there.
//!
//! `[..]` stands for any text inside a line, a line `[...]` for any lines, `[exit N]` for an exit code that is not 0.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::Folder;

/// A call with what it should print, and its exit code.
struct Call {
    command: String,
    expected: Vec<String>,
    code: i32,
}

/// Runs the blocks of a tutorial in their order; how many calls there were.
fn run(name: &str, text: &str) -> usize {
    let folder = Folder::new(&format!("tutorial-{}", name.trim_end_matches(".md")));
    let mut calls = 0;
    let mut blocks = text.split("\n```");
    blocks.next();
    while let Some(block) = blocks.next() {
        let (info, body) = block.split_once('\n').expect("a block");
        match info.split_once(' ') {
            Some(("bash", file)) => {
                folder.file(file, &format!("{body}\n"));
            }
            _ if info == "console" => {
                for call in read(body) {
                    check(name, &folder, &call);
                    calls += 1;
                }
            }
            _ => {}
        }
        // What follows the closing fence is prose.
        blocks.next();
    }
    calls
}

fn read(body: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in body.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            calls.push(Call { command: command.to_owned(), expected: Vec::new(), code: 0 });
        } else if let Some(call) = calls.last_mut() {
            match line.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']')) {
                Some(code) => call.code = code.parse().expect("an exit code"),
                None => call.expected.push(line.to_owned()),
            }
        }
    }
    calls
}

#[track_caller]
fn check(name: &str, folder: &Folder, call: &Call) {
    let program = Path::new(env!("CARGO_BIN_EXE_shardscope")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &format!("{{ {}\n}} 2>&1", call.command)])
        .current_dir(&folder.0)
        .env("PATH", path)
        .output()
        .expect("bash");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let command = &call.command;
    assert_eq!(output.status.code(), Some(call.code), "{name}: {command}\n{printed}");
    let lines: Vec<&str> = printed.lines().collect();
    let expected: Vec<&str> = call.expected.iter().map(String::as_str).collect();
    assert!(
        matches(&lines, &expected),
        "{name}: {command}\nprinted:\n{printed}\nexpected:\n{}",
        expected.join("\n")
    );
}

fn matches(lines: &[&str], expected: &[&str]) -> bool {
    match (lines, expected) {
        ([], []) => true,
        (_, ["[...]", rest @ ..]) => (0..=lines.len()).any(|skipped| matches(&lines[skipped..], rest)),
        ([line, lines @ ..], [wanted, rest @ ..]) => of_form(line, wanted) && matches(lines, rest),
        _ => false,
    }
}

/// Whether `line` is `form`, each `[..]` of which stands for some text.
fn of_form(line: &str, form: &str) -> bool {
    let mut parts = form.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let mut whole = true;
    for part in parts {
        whole = part.is_empty();
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || whole && form.ends_with("[..]")
}

#[test]
fn forms_match_what_they_say() {
    assert!(of_form("fits: 3 GiB (loss)", "fits: [..] GiB ([..])"));
    assert!(!of_form("fits: 3 GiB (loss) x", "fits: [..] GiB ([..])"));
    assert!(!of_form("does not fit", "fits[..]") && of_form("fits", "fits[..]") && !of_form("fitss", "fits"));
    assert!(matches(&["a", "b", "c"], &["a", "[...]"]) && matches(&["a", "b"], &["[...]", "b", "[...]"]));
    assert!(!matches(&["a"], &["a", "b"]) && !matches(&["a", "b"], &["a"]));
}

#[test]
fn every_tutorial_is_what_happens() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(docs).expect("the tutorials") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a tutorial");
        let calls = run(&name, &text);
        assert!(calls >= 3, "{name} has {calls} calls");
        names.push(name);
    }
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn the_readmes_first_answer_is_that_of_the_tutorial() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a document");
    let (readme, tutorial) = (read("README.md"), read("docs/tutorials/fit-my-job.md"));
    let script = tutorial.split("```bash train.sh\n").nth(1).and_then(|rest| rest.split("\n```").next());
    let line = crate::printed(&["check", "--accelerator", "H100-SXM", "-"], script.expect("the script"), 1);
    let verdict = line.split(';').next().expect("a verdict");
    assert!(readme.contains(&format!("\n{verdict}; …\n")), "write this into the README: {verdict}");
    for link in readme.split("](docs/").skip(1) {
        let file = link.split(')').next().unwrap_or_default();
        assert!(root.join("docs").join(file).exists(), "{file}");
    }
}
