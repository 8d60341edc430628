//! The program as it is called: what it prints, where, and with which exit code.
#![allow(clippy::expect_used)]

mod apply;
mod badge;
mod changes;
mod compare;
mod contributed;
mod export;
mod gate;
mod manual;
mod measured;
mod offline;
mod review;
mod search;
mod submit;
mod tutorials;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const SCRIPT: &str = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 4096 \
--num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \
--global-batch-size 512 --vocab-size 50257 --bf16 --tensor-model-parallel-size 2 \
--pipeline-model-parallel-size 2 --use-distributed-optimizer\n";

/// A separate empty directory for a test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shardscope-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// Writes a file; its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Calls the program with `input` on its standard input.
fn call(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shardscope"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    // A call that is refused ends without reading.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    child.wait_with_output().expect("its end")
}

#[track_caller]
fn printed(arguments: &[&str], input: &str, code: i32) -> String {
    let output = call(arguments, input);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_report_has_three_forms_of_one_plan() {
    let document =
        json(&printed(&["report", "--format", "json", "--accelerator", "A100-SXM-80GB", "-"], SCRIPT, 0));
    assert!(document["schema"].as_str().is_some_and(|schema| schema.starts_with("shardscope/report/")));
    assert_eq!(document["settings"]["accelerator"]["value"], "A100-SXM-80GB");
    assert_eq!(document["settings"]["accelerator"]["origin"], "user");
    assert_eq!(document["report"]["topology"]["world_size"], 16);
    let text = printed(&["report", "-"], SCRIPT, 0);
    let markdown = printed(&["report", "--format", "markdown", "-"], SCRIPT, 0);
    assert!(text.contains("GiB") && markdown.contains("| "), "{text}\n{markdown}");
    assert_ne!(text, markdown);
}

#[test]
fn settings_variables_and_words_change_the_plan() {
    let script = SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS").replace("4096", "$1");
    let given = ["--set", "micro_batch_size=2", "--env", "LAYERS=12", "--args", "2048 x"];
    let call = [&["report", "--format", "json"], &given[..], &["-"]].concat();
    let settings = &json(&printed(&call, &script, 0))["settings"];
    for (name, value) in [("num_layers", 12), ("hidden_size", 2048), ("micro_batch_size", 2)] {
        assert_eq!(settings[name]["value"], value, "{name}");
    }
}

#[test]
fn what_makes_no_plan_is_reported_and_ends_with_2() {
    let output = call(&["report", "--format", "json", "-"], "echo nothing to train\n");
    assert_eq!(output.status.code(), Some(2));
    let document = json(&String::from_utf8_lossy(&output.stdout));
    assert!(document["report"].is_null() && document.get("settings").is_some());
    for arguments in
        [&["report", "no-such-file.sh"][..], &["report"], &["report", "--set", "tp", "-"], &["rebort"]]
    {
        let output = call(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn files_are_read_together() {
    let folder = Folder::new("together");
    let script = folder.file("train.sh", &format!("source more.sh\n{}", SCRIPT.replace("4096", "$HIDDEN")));
    let answers = folder.file("more.sh", "HIDDEN=1024\n");
    let found = json(&printed(&["report", "--format", "json", &script, &answers], "", 0));
    assert_eq!(found["settings"]["hidden_size"]["value"], 1024);
}

#[test]
fn a_link_carries_what_it_was_made_of() {
    let made = ["link", "--page", "https://example.org/", "--set", "tensor_model_parallel_size=4", "-"];
    let link = printed(&made, SCRIPT, 0);
    let link = link.trim_end();
    assert!(link.starts_with("https://example.org/#z1:"), "{link}");
    let opened = printed(&["link", "--open", link], "", 0);
    assert!(
        opened.starts_with("--set tensor_model_parallel_size=4\n") && opened.contains(SCRIPT),
        "{opened}"
    );
    let of_link = json(&printed(&["report", "--format", "json", link], "", 0));
    assert_eq!(of_link["settings"]["tensor_model_parallel_size"]["value"], 4);
    printed(&["report", "#z1:AAAA"], "", 2);
    // By its settings alone: the same plan, and nothing of the text.
    let short = printed(&["link", "--settings", "--set", "tensor_model_parallel_size=4", "-"], SCRIPT, 0);
    assert!(short.starts_with("#/1?") && short.contains("tp=4") && short.len() < link.len(), "{short}");
    let peak = |operand: &str| {
        json(&printed(&["report", "--format", "json", operand], "", 0))["report"]["memory"]["worst"].clone()
    };
    assert_eq!(peak(short.trim_end()), peak(link));
    assert_eq!(printed(&["link", "--settings", "-"], "echo\n", 2), "");
}

/// Whoever opens a link has no access to the directory of the script.
#[test]
fn a_link_carries_the_files_that_the_script_names() {
    let folder = Folder::new("link-beside");
    let script = folder.file(
        "train.sh",
        &SCRIPT.replace("pretrain_gpt.py", "pretrain_gpt.py --deepspeed --deepspeed_config ds.json"),
    );
    folder
        .file("ds.json", "{\"zero_optimization\": {\"stage\": 1}, \"train_micro_batch_size_per_gpu\": 4}\n");
    let output = call(&["link", &script], "");
    let link = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(String::from_utf8_lossy(&output.stderr).contains("ds.json goes with it"));
    let plan = |operand: &str| {
        json(&printed(&["report", "--format", "json", operand], "", 0))["settings"]["zero_stage"].clone()
    };
    assert_eq!(plan(&script)["value"], 1);
    assert_eq!(plan(link.trim_end())["value"], 1);
}

#[test]
fn the_catalog_is_listed() {
    let known = printed(&["accelerators"], "", 0);
    assert!(known.lines().any(|line| line == "H100-SXM              79.65 GiB  3.35 TB/s"), "{known}");
    let table = printed(&["accelerators", "--format", "markdown", "h100-pcie"], "", 0);
    assert_eq!(
        table,
        "| accelerator | memory | bandwidth |\n|---|---:|---:|\n| H100-PCIe | 79.65 GiB | 2.00 TB/s |\n"
    );
    let settings = printed(&["settings", "tensor_model"], "", 0);
    let rows: Vec<&str> = settings.lines().collect();
    assert!(
        rows[0].starts_with("setting ") && rows[1].starts_with("tensor_model_parallel_size "),
        "{settings}"
    );
    assert_eq!(
        printed(&["settings", "--format", "markdown"], "", 0).lines().count(),
        2 + shardscope_fields()
    );
    for (words, said) in [
        (["models", "zzzz"], "error: no model has zzzz in its name\n"),
        (
            ["accelerators", "H100-SMX"],
            "error: no accelerator has H100-SMX in its name; did you mean H100-SXM?\n",
        ),
    ] {
        let output = call(&words, "");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(2), said));
        assert!(output.stdout.is_empty());
    }
    let rows = json(&printed(&["accelerators", "--format", "json", "h100-sxm"], "", 0));
    assert!(rows[0]["memory"].as_u64().is_some_and(|memory| memory > 1 << 36), "{rows}");
    let rows = json(&printed(&["models", "--format", "json"], "", 0));
    assert!(rows.as_array().is_some_and(|rows| rows.len() > 20));
    assert!(
        rows.as_array().is_some_and(|rows| rows.iter().all(|row| row["settings"]["num_layers"].is_string()))
    );
}

/// How many settings there are.
fn shardscope_fields() -> usize {
    json(&printed(&["settings", "--format", "json"], "", 0)).as_array().map_or(0, Vec::len)
}

/// The commands that the program's help names.
fn commands() -> BTreeSet<String> {
    let help = printed(&["--help"], "", 0);
    let (_, commands) = help.split_once("Commands:\n").expect("commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    // A description may go on in a line that is indented further.
    let named =
        commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let named: BTreeSet<String> = named.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(named.len() > 15, "{help}");
    named
}

#[test]
fn shells_and_man_know_the_commands() {
    assert!(printed(&["man"], "", 0).contains("shardscope"));
    let folder = Folder::new("man");
    assert_eq!(printed(&["man", "--folder", &folder.0.display().to_string()], "", 0), "");
    let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
    let completions = shells.map(|shell| printed(&["completions", shell], "", 0));
    for command in commands() {
        let page = folder.0.join(format!("shardscope-{command}.1"));
        let page = std::fs::read_to_string(page).unwrap_or_else(|fault| panic!("{command}: {fault}"));
        assert!(page.contains(".TH"), "{command}");
        for (shell, completions) in shells.iter().zip(&completions) {
            assert!(completions.contains(&command), "{command} in {shell}");
        }
    }
    printed(&["man", "--folder", "/no/such/folder"], "", 2);
}

#[test]
fn every_number_that_has_a_reason_says_it() {
    let document = json(&printed(&["report", "--format", "json", "-"], SCRIPT, 0));
    let explained = document["report"]["explanations"].as_object().expect("explanations");
    assert!(explained.len() > 50, "{}", explained.len());
    // Each call reads and estimates again, so only every ninth place is tried, which covers every part of the report.
    for (place, why) in explained.iter().step_by(9) {
        let found = json(&printed(&["explain", "--format", "json", "--of", place, "-"], SCRIPT, 0));
        // A place's words may be in others', which are deeper.
        let found = found.as_array().expect("a list");
        let here = found.iter().find(|one| one["place"] == place.as_str()).expect("the number");
        assert!(here["value"].is_number(), "{place}: {here}");
        assert_eq!(here["formula"], why["formula"], "{place}");
    }
    let weights = "memory/ranks/0/breakdown/peak_allocated/parameters/weights";
    let text = printed(&["explain", "--of", weights, "-"], SCRIPT, 0);
    let parameters = &document["report"]["parameters"]["ranks"][0]["count"];
    let bytes = parameters.as_u64().expect("a count") * 2;
    assert_eq!(
        text,
        format!(
            "{weights} = {bytes} bytes\n  P·w\n  Every parameter of the rank, w bytes each.\n    P = {parameters}  parameters of \
             the rank\n    w = 2  bytes per element\n  megatron/core/distributed/param_and_grad_buffer.py\n"
        )
    );
    let markdown = printed(&["explain", "--format", "markdown", "--of", weights, "-"], SCRIPT, 0);
    assert!(
        markdown
            .starts_with(&format!("- **{weights}** = {bytes} bytes: `P·w`\n\n  Every parameter of the rank")),
        "{markdown}"
    );
    assert!(markdown.contains("\n  - `w` = 2 bytes per element\n"), "{markdown}");
    assert!(
        String::from_utf8_lossy(&call(&["explain", "--of", "nonsense", "-"], SCRIPT).stderr)
            .contains("there are")
    );
}

#[test]
fn colours_go_to_terminals_and_to_who_asks() {
    let of = |options: &[&str]| printed(&[&["check"], options, &["-"]].concat(), SCRIPT, 0);
    let plain = of(&[]);
    assert!(!plain.contains('\u{1b}'));
    assert_eq!(of(&["--color", "never"]), plain);
    let coloured = of(&["--color", "always"]);
    assert_eq!(coloured, plain.replacen("fits", "\u{1b}[32mfits\u{1b}[0m", 1));
}

#[test]
fn what_is_too_large_or_commands_a_terminal_is_not_passed_on() {
    let folder = Folder::new("hostile");
    let large = folder.file("large.sh", &"# \n".repeat(2 << 20));
    let output = call(&["check", &large], "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("larger than 4 MiB"), "{stderr}");
    let output = call(&["report", "-"], &SCRIPT.replace("--bf16", "--bf\u{1b}]0;pwned\u{7}16"));
    let stderr = [output.stdout, output.stderr].concat();
    assert!(!String::from_utf8_lossy(&stderr).contains(['\u{1b}', '\u{7}']));
}
