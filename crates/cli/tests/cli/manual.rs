//! `docs/use` documents the program: its tables are complete, and its commands work as written.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::process::Command;

use crate::{Folder, SCRIPT, call, commands};

const TERMINAL: &str = include_str!("../../../../docs/use/terminal.md");
const DOCUMENTS: &str = include_str!("../../../../docs/use/documents.md");
const SKILL: &str = include_str!("../../../../skills/shardscope/SKILL.md");

/// The code at the beginning of each row of the table below `header`: the first word of each.
fn rows(text: &str, header: &str) -> BTreeSet<String> {
    let (_, table) = text.split_once(header).unwrap_or_else(|| panic!("no table {header}"));
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let firsts = rows.filter_map(|row| row.split('|').nth(1));
    let codes = firsts.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    codes.filter_map(|code| code.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn the_manual_names_every_command_and_no_other() {
    assert_eq!(rows(TERMINAL, "| command | the question |\n"), commands());
}

#[test]
fn the_manual_names_every_question_and_no_other() {
    let refused = call(&["search", "--question", "none-such", "-"], SCRIPT);
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    let (_, values) = stderr.split_once("possible values: ").expect("the questions");
    let (values, _) = values.split_once(']').expect("the end of them");
    let known: BTreeSet<String> = values.split(", ").map(str::to_owned).collect();
    assert!(known.len() > 5, "{stderr}");
    assert_eq!(rows(TERMINAL, "| question | the answer |\n"), known);
}

/// The commands between fences, and those in a line of prose, each with the files that it names.
#[test]
fn the_manuals_commands_do_as_they_are_written() {
    let folder = Folder::new("manual");
    folder.file("train.sh", SCRIPT);
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/run_tools");
    let log = "[2026-01-01] iteration 1/ 10 | elapsed time per iteration (ms): 900.0 |\n\
               [2026-01-01] iteration 2/ 10 | elapsed time per iteration (ms): 800.0 |\n";
    folder.file("run.log", log);
    std::fs::copy(format!("{data}/snapshot.pickle"), folder.0.join("snapshot.pickle")).expect("a snapshot");
    folder.file("smi.csv", "index, memory.used [MiB]\n0, 40000 MiB\n");

    let (_, block) = DOCUMENTS.split_once("```sh\n").expect("a block");
    let (block, _) = block.split_once("```").expect("its end");
    let fenced = block.lines().map(|line| line.split('#').next().unwrap_or_default().trim().to_owned());
    let in_prose = ["measured train.sh run.log snapshot.pickle smi.csv"].map(|words| {
        assert!(TERMINAL.contains(&format!("`{words}`")), "{words}");
        format!("shardscope {words}")
    });
    let options = ["--fail-on tight,slower:5%", "--headroom 10", "--format json"].map(|option| {
        assert!(TERMINAL.contains(option), "{option}");
        let beside = if option.contains("slower") { " --against train.sh" } else { "" };
        format!("shardscope check {option}{beside} train.sh")
    });
    let calls: Vec<String> = fenced.chain(in_prose).chain(options).collect();
    assert_eq!(calls.len(), 6);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_shardscope")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    for command in calls {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&folder.0)
            .env("PATH", &path)
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(command.contains('>') || !output.stdout.is_empty(), "{command} prints nothing");
    }
    let badge = std::fs::read_to_string(folder.0.join("fits.svg")).expect("the badge");
    assert!(badge.starts_with("<svg "), "{badge}");
}

/// An agent copies what stands there.
#[test]
fn the_skills_commands_do_as_they_are_written() {
    let folder = Folder::new("skill");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/run_tools");
    std::fs::copy(format!("{data}/snapshot.pickle"), folder.0.join("snapshot.pickle")).expect("a snapshot");
    folder.file("run.log", " iteration 2/ 10 | elapsed time per iteration (ms): 800.0 |\n");
    folder.file("old.sh", SCRIPT);
    let known = commands();
    let mut called = 0;
    for line in SKILL.split('`').skip(1).step_by(2) {
        let Some(words) = line.strip_prefix("shardscope ") else { continue };
        let words: Vec<&str> = words.split(' ').collect();
        assert!(known.contains(words[0]), "{line}");
        // A command by its name alone.
        if words.len() == 1 {
            continue;
        }
        folder.file("train.sh", SCRIPT);
        let output = Command::new(env!("CARGO_BIN_EXE_shardscope"))
            .args(&words)
            .current_dir(&folder.0)
            .output()
            .expect("the program");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "{line} prints nothing");
        called += 1;
    }
    assert!(called >= 9, "{called} calls");
}
