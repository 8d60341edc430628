//! The tutorials of `docs/` are run as they are written: files are made, commands are called, and what they print is what stands there.
//!
//! `[exit N]` stands for an exit code that is not 0. Where a figure has changed on purpose, `SHARDSCOPE_PIN=1 cargo test -p
//! shardscope-cli tutorial` writes what is printed now.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use crate::Folder;

/// A call with what follows it in the text.
struct Call {
    command: String,
    expected: Vec<String>,
}

/// Runs the blocks of a tutorial in their order; how many calls there were, and the text with what they print.
fn run(name: &str, text: &str) -> (usize, String) {
    let folder = Folder::new(&format!("tutorial-{}", name.trim_end_matches(".md")));
    let (mut calls, mut out) = (0, Vec::new());
    let mut blocks = text.split("\n```");
    out.extend(blocks.next().map(str::to_owned));
    while let Some(block) = blocks.next() {
        let (info, body) = block.split_once('\n').expect("a block");
        let mut body = body.to_owned();
        match info.split_once(' ') {
            Some(("bash", file)) => {
                folder.file(file, &format!("{body}\n"));
            }
            _ if info == "console" => {
                let mut lines = Vec::new();
                for call in read(&body) {
                    let printed = printed(&folder, &call.command);
                    if std::env::var_os("SHARDSCOPE_PIN").is_none() {
                        assert_eq!(printed, call.expected, "{name}: {}", call.command);
                    }
                    lines.push(format!("$ {}", call.command));
                    lines.extend(printed);
                    calls += 1;
                }
                body = lines.join("\n");
            }
            _ => {}
        }
        out.push(format!("{info}\n{body}"));
        // What follows the closing fence is prose.
        out.extend(blocks.next().map(str::to_owned));
    }
    (calls, out.join("\n```"))
}

fn read(body: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in body.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            calls.push(Call { command: command.to_owned(), expected: Vec::new() });
        } else if let Some(call) = calls.last_mut() {
            call.expected.push(line.to_owned());
        }
    }
    calls
}

/// What a command prints, and how it ends, in lines.
fn printed(folder: &Folder, command: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_shardscope")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(&folder.0)
        .env("PATH", path)
        .output()
        .expect("bash");
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let code = output.status.code().expect("an exit code");
    lines.extend((code != 0).then(|| format!("[exit {code}]")));
    lines
}

#[test]
fn every_tutorial_is_what_happens() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(docs).expect("the tutorials") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a tutorial");
        let (calls, now) = run(&name, &text);
        assert!(calls >= 3, "{name} has {calls} calls");
        if now != text {
            std::fs::write(&path, now).expect("the tutorial");
        }
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
    assert!(readme.contains(&format!("\n{line}")), "write this into the README: {line}");
    for link in readme.split("](docs/").skip(1) {
        let file = link.split(')').next().unwrap_or_default();
        assert!(root.join("docs").join(file).exists(), "{file}");
    }
}

/// What the README says at its top is what stands in its table, which is that of `cargo run --example evidence`.
#[test]
fn the_readmes_first_figures_are_those_of_its_table() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    let readme = readme.expect("the README");
    let row = readme.lines().find(|line| line.starts_with("| never fitted: all rows |")).expect("the row");
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let [_, _, rows, median, _, within, ..] = cells[..] else { panic!("{row}") };
    let said = format!(
        "On the {rows} published runs that no constant was fitted on, the step time is off by {median} in the median and within 15% \
         in {within}\n"
    );
    assert!(readme.contains(&said), "write this into the README: {said}");
    // The page's address is written once.
    assert_eq!(readme.matches("\n[page]: ").count(), 1);
    assert!(readme.matches("][page]").count() >= 2);
}
