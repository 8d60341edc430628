//! `review` and the scripts of the action around it, with a git repository and a forge of the test's own.

use std::path::Path;
use std::process::Command;

use crate::{Folder, SCRIPT, call, json, printed};

const LARGE: &str = "--micro-batch-size 128";
const USUAL: &str = "--micro-batch-size 4";

fn folder(name: &str) -> (Folder, String, String) {
    let folder = Folder::new(name);
    let [before, after] = ["before", "after"].map(|side| folder.0.join(side).display().to_string());
    (folder, before, after)
}

#[test]
fn a_change_is_reported_run_by_run() {
    let (folder, before, after) = folder("review");
    folder.file("before/a.sh", SCRIPT);
    folder.file("after/a.sh", &SCRIPT.replace(USUAL, LARGE));
    folder.file("before/b.sh", SCRIPT);
    folder.file("after/b.sh", &SCRIPT.replace(USUAL, "--micro-batch-size 2"));
    folder.file("after/jobs/new|*x*.sh", SCRIPT);
    folder.file("before/gone.sh", SCRIPT);
    folder.file("before/tool.sh", "cp a b\n");
    folder.file("after/tool.sh", "cp a c\n");
    folder.file("after/open.sh", &SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS"));
    let paths = "a.sh\0b.sh\0jobs/new|*x*.sh\0gone.sh\0tool.sh\0open.sh\0README.md\0../a.sh\0/etc/passwd\0";
    let comment = printed(&["review", "--before", &before, "--after", &after, "-"], paths, 1);
    let lines: Vec<&str> = comment.lines().collect();
    assert_eq!(lines[0], "<!-- shardscope review -->");
    assert_eq!(lines[1], "### 1 of 4 changed runs does not fit, 1 cannot be estimated");
    let rows: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 5, "{comment}");
    assert!(rows[0].starts_with("| a.sh | fits → **does not fit** | 34.69 GiB → "), "{}", rows[0]);
    assert!(rows[1].starts_with("| b.sh | fits | 34.69 GiB → "), "{}", rows[1]);
    assert_eq!(rows[2], "| gone.sh | removed | | | | |");
    assert!(rows[3].contains("(new) | fits | 34.69 GiB of 79.65 GiB (H100-SXM) | "), "{}", rows[3]);
    assert!(rows[3].matches('|').count() - rows[3].matches("\\|").count() == 7, "{}", rows[3]);
    assert!(rows[4].starts_with("| open.sh | no plan: "), "{}", rows[4]);
    assert_eq!(lines.last(), Some(&"- **a.sh fails:** it does not fit"));
}

#[test]
fn nothing_is_said_where_no_run_is_met() {
    let (folder, before, after) = folder("review-none");
    folder.file("before/tool.sh", "cp a b\n");
    folder.file("after/tool.sh", "cp a c\n");
    let file = folder.0.join("comment.md").display().to_string();
    printed(&["review", "--before", &before, "--after", &after, "--comment-file", &file, "tool.sh"], "", 0);
    assert_eq!(std::fs::read_to_string(&file).expect("the comment"), "");
    printed(&["review", "--before", "/no/such/folder", "a.sh"], "", 2);
}

#[test]
fn a_slower_run_fails_where_asked_and_settings_files_lead_to_their_scripts() {
    let (folder, before, after) = folder("review-settings");
    let script = format!(
        "source conf/env.sh\n{}",
        SCRIPT.replace("tensor-model-parallel-size 2", "tensor-model-parallel-size $TP")
    );
    for side in ["before", "after"] {
        folder.file(&format!("{side}/train.sh"), &script);
        folder.file(&format!("{side}/other.sh"), "echo conf/env.sh\n");
    }
    folder.file("before/conf/env.sh", "TP=2\n");
    folder.file("after/conf/env.sh", "TP=8\n");
    let call = ["review", "--before", &before, "--after", &after, "conf/env.sh"];
    let comment = printed(&call, "", 0);
    assert!(comment.contains("\n| train.sh | fits | "), "{comment}");
    let comment =
        printed(&[&call[..], &["--fail-on", "slower:1%", "--page", "https://x.example/"]].concat(), "", 1);
    assert!(comment.contains("**train.sh fails:** a step takes "), "{comment}");
    assert!(comment.contains("| [train.sh](https://x.example/#/1?"), "{comment}");
}

/// LLaMA-Factory, axolotl, torchtitan and others are launched by a file of settings.
#[test]
fn settings_that_are_a_whole_run_are_met_and_parts_of_one_are_not() {
    let (folder, before, after) = folder("review-yaml");
    let run = |batch: u64| {
        format!(
            "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\ndo_train: true\ncutoff_len: 2048\nbf16: true\n\
             per_device_train_batch_size: {batch}\ngradient_accumulation_steps: 4\nlearning_rate: 1e-4\n"
        )
    };
    for (side, batch) in [("before", 1), ("after", 64)] {
        folder.file(&format!("{side}/sft.yaml"), &run(batch));
        folder
            .file(&format!("{side}/compose.yml"), &format!("services:\n  web:\n    image: nginx:{batch}\n"));
        folder.file(&format!("{side}/ds.yaml"), &format!("zero_optimization:\n  stage: {}\n", batch % 3));
    }
    let call = [
        "review",
        "--set",
        "world_size=8",
        "--accelerator",
        "A100-SXM-40GB",
        "--before",
        &before,
        "--after",
        &after,
    ];
    let comment = printed(&[&call[..], &["sft.yaml", "compose.yml", "ds.yaml"]].concat(), "", 1);
    let rows: Vec<&str> = comment.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(rows.len(), 1, "{comment}");
    assert!(rows[0].starts_with("| sft.yaml | fits → **does not fit** | "), "{comment}");
}

#[test]
fn what_a_run_costs_is_reported_where_it_has_a_price() {
    let (folder, before, after) = folder("review-price");
    folder.file("before/a.sh", SCRIPT);
    folder.file("after/a.sh", &SCRIPT.replace(USUAL, "--micro-batch-size 2"));
    folder.file("before/gone.sh", SCRIPT);
    folder.file("after/new.sh", SCRIPT);
    let call = ["review", "--before", &before, "--after", &after, "a.sh", "gone.sh", "new.sh"];
    assert!(!printed(&call, "", 0).contains("cost"));
    let comment = printed(&[&call[..], &["--price", "2"]].concat(), "", 0);
    let rows: Vec<Vec<&str>> = comment
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows[0][6..8], ["GPU-hours per 10⁹ tokens", "cost per 10⁹ tokens"]);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{comment}");
    let first =
        |cell: &str| cell.split(' ').next().and_then(|number| number.parse::<f64>().ok()).expect("a number");
    let (hours, cost) = (first(rows[1][6]), first(rows[1][7]));
    // Hours are shown to a tenth, of which each costs 2.
    assert!((cost - 2.0 * hours).abs() <= 0.5 + 0.11, "{comment}");
    let share = |cell: &str| cell.rsplit('(').next().map(str::to_owned);
    assert_eq!(share(rows[1][6]), share(rows[1][7]), "{comment}");
    assert_eq!(rows[2][7], "", "{comment}");
    assert!(first(rows[3][7]) > 0.0, "{comment}");
    let checked = json(&printed(&["check", "--price", "2", "--format", "json", "-"], SCRIPT, 0));
    let [hours, cost] =
        ["gpu_hours_per_billion_tokens", "cost_per_billion_tokens"].map(|key| checked[key].as_f64());
    assert_eq!(hours.map(|hours| hours * 2.0), cost);
    assert!(checked.get("price").is_none());
    assert_eq!(call_code(&["check", "--price", "-1", "-"]), Some(2));
}

fn call_code(words: &[&str]) -> Option<i32> {
    call(words, SCRIPT).status.code()
}

#[test]
fn a_strangers_link_leads_out_of_no_checkout() {
    let (folder, before, after) = folder("review-links");
    let secret = folder.file("secret.sh", SCRIPT);
    folder.file("before/a.sh", SCRIPT);
    std::fs::create_dir_all(&after).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&secret, Path::new(&after).join("a.sh")).expect("a link");
    let comment = printed(&["review", "--before", &before, "--after", &after, "a.sh"], "", 0);
    assert!(comment.contains("| a.sh | removed |"), "{secret}: {comment}");
}

#[test]
fn the_own_comment_is_found_among_pages_of_them() {
    let pages = r#"[{"id":1,"body":"hello <!-- shardscope review -->"},{"id":2,"body":null}][{"id":3,"body":"<!-- shardscope review -->\n### x"}]"#;
    assert_eq!(printed(&["own-comment"], pages, 0), "3\n");
    assert_eq!(printed(&["own-comment"], "[]", 0), "");
    printed(&["own-comment"], "{\"message\": \"Not Found\"}", 2);
}

/// A forge that keeps one pull request's comments as files of a folder.
const GH: &str = r#"#!/usr/bin/env bash
set -euo pipefail
echo "$*" >> "$FORGE/calls"
last="${!#}"
[ -e "$FORGE/readonly" ] && [[ "$*" == *-X* ]] && { echo "HTTP 403" >&2; exit 1; }
case "$*" in
  "api --paginate repos/o/r/issues/7/comments")
    printf '[{"id": 1, "body": "a review by somebody"}'
    [ -e "$FORGE/99" ] && printf ', {"id": 99, "body": "%s\\n…"}' "$(head -n1 "$FORGE/99")"
    echo ']' ;;
  "api --silent -X POST repos/o/r/issues/7/comments -F body=@"*) cp "${last#body=@}" "$FORGE/99" ;;
  "api --silent -X PATCH repos/o/r/issues/comments/99 -F body=@"*) cp "${last#body=@}" "$FORGE/99" ;;
  "api --silent -X DELETE repos/o/r/issues/comments/99") rm "$FORGE/99" ;;
  *) echo "the forge does not know: $*" >&2; exit 1 ;;
esac
"#;

/// What the action does on a pull request, in the order of `action.yml`.
struct Forge {
    folder: Folder,
}

impl Forge {
    fn run(&self, script: &str, fail_on: &str) -> std::process::Output {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let path = |name: &str| self.folder.0.join(name);
        let base = self.git(&["rev-parse", "main"]);
        Command::new("bash")
            .arg(root.join("packages/action").join(script))
            .current_dir(path("repository"))
            .env("PATH", format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap_or_default()))
            .env("PROGRAM", env!("CARGO_BIN_EXE_shardscope"))
            .env("RUNNER_TEMP", path("temp"))
            .env("GITHUB_OUTPUT", path("temp/output"))
            .env("GITHUB_STEP_SUMMARY", path("temp/summary"))
            .env("GITHUB_REPOSITORY", "o/r")
            .env("FORGE", path("forge"))
            .envs([
                ("NUMBER", "7"),
                ("FAIL_ON", fail_on),
                ("HEADROOM", ""),
                ("ACCELERATOR", ""),
                ("PRICE", ""),
                ("PAGE", ""),
            ])
            .env("BASE", base.trim())
            .output()
            .expect("bash")
    }

    fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"])
            .args(words)
            .current_dir(self.folder.0.join("repository"))
            .output()
            .expect("git");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Commits `script` as the head of the pull request and runs the action; its output `failed`.
    fn push(&self, script: &str, fail_on: &str) -> String {
        self.folder.file("repository/train.sh", script);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        let _ = std::fs::remove_file(self.folder.0.join("temp/output"));
        for step in ["review.sh", "comment.sh"] {
            let output = self.run(step, fail_on);
            assert!(output.status.success(), "{step}: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::fs::read_to_string(self.folder.0.join("temp/output")).expect("an output")
    }

    fn comment(&self) -> Option<String> {
        std::fs::read_to_string(self.folder.0.join("forge/99")).ok()
    }
}

#[test]
fn the_action_comments_once_and_keeps_its_comment_up_to_date() {
    let forge = Forge { folder: Folder::new("forge") };
    for folder in ["repository", "temp", "forge", "bin"] {
        std::fs::create_dir_all(forge.folder.0.join(folder)).expect("a folder");
    }
    let gh = forge.folder.file("bin/gh", GH);
    assert!(Command::new("chmod").args(["+x", &gh]).status().expect("chmod").success());
    forge.git(&["init", "-q"]);
    forge.folder.file("repository/train.sh", SCRIPT);
    forge.git(&["add", "-A"]);
    forge.git(&["commit", "-q", "-m", "first"]);
    forge.git(&["checkout", "-q", "-b", "change"]);

    assert_eq!(forge.push(&SCRIPT.replace(USUAL, LARGE), "oom"), "failed=true\n");
    let first = forge.comment().expect("a comment");
    assert!(first.contains("| train.sh | fits → **does not fit** | "), "{first}");
    assert_eq!(forge.push(&SCRIPT.replace(USUAL, "--micro-batch-size 2"), "oom"), "failed=false\n");
    let second = forge.comment().expect("a comment");
    assert!(
        second.contains("### The changed run fits\n") && second.contains("| train.sh | fits | 34.69 GiB → "),
        "{second}"
    );
    assert_eq!(forge.push(&SCRIPT.replace(USUAL, "--micro-batch-size 1"), "slower:1%"), "failed=true\n");
    // Back to what it was: nothing to say, and the comment goes.
    assert_eq!(forge.push(SCRIPT, "oom"), "failed=false\n");
    assert_eq!(forge.comment(), None);
    let calls = std::fs::read_to_string(forge.folder.0.join("forge/calls")).expect("calls");
    for (method, times) in [("POST", 1), ("PATCH", 2), ("DELETE", 1)] {
        assert_eq!(calls.matches(&format!("-X {method}")).count(), times, "{calls}");
    }
    let summary = std::fs::read_to_string(forge.folder.0.join("temp/summary")).expect("a summary");
    assert_eq!(summary.matches("<!-- shardscope review -->").count(), 3);
    // A fork's token only reads: the check goes on, and the summary has the table.
    forge.folder.file("forge/readonly", "");
    assert_eq!(forge.push(&SCRIPT.replace(USUAL, LARGE), "oom"), "failed=true\n");
    assert_eq!(forge.comment(), None);
    // Told, and never failing, where that is asked.
    assert_eq!(forge.push(&SCRIPT.replace(USUAL, LARGE), "none"), "failed=false\n");
    let summary = std::fs::read_to_string(forge.folder.0.join("temp/summary")).expect("a summary");
    let (_, last) = summary.rsplit_once("<!-- shardscope review -->").expect("a table");
    assert!(last.contains("### The changed run does not fit\n") && !last.contains("fails:"), "{last}");
    // A call that is not understood is an error of its own, not a run that fails.
    assert_eq!(forge.run("review.sh", "often").status.code(), Some(2));
}

/// A forge that has one release, and whose archives are what it says.
const RELEASES: &str = r##"#!/usr/bin/env bash
set -euo pipefail
echo "$*" >> "$FORGE/calls"
case "$1 $2" in
  "release download")
    [ "$3" = "$(cat "$FORGE/release")" ] || { echo "release not found" >&2; exit 1; }
    while [ $# -gt 0 ]; do case "$1" in --pattern) archive=$2 ;; --dir) folder=$2 ;; esac; shift; done
    mkdir -p "$FORGE/made/shardscope-cli" && echo "#!/bin/sh" > "$FORGE/made/shardscope-cli/shardscope"
    tar -cJf "$folder/$archive" -C "$FORGE/made" shardscope-cli ;;
  "attestation verify") [ ! -e "$FORGE/forged" ] ;;
esac
"##;

#[test]
fn the_action_fetches_the_release_that_it_is_of() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = Folder::new("fetch");
    for name in ["temp", "forge", "bin"] {
        std::fs::create_dir_all(folder.0.join(name)).expect("a folder");
    }
    let gh = folder.file("bin/gh", RELEASES);
    assert!(Command::new("chmod").args(["+x", &gh]).status().expect("chmod").success());
    let fetch = |called_by: &str, released: &str| {
        folder.file("forge/release", released);
        let _ = std::fs::remove_dir_all(folder.0.join("temp/shardscope"));
        let path =
            format!("{}:{}", folder.0.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .arg(root.join("packages/action/fetch.sh"))
            .env("PATH", path)
            .env("RUNNER_TEMP", folder.0.join("temp"))
            .env("GITHUB_PATH", folder.0.join("temp/path"))
            .env("FORGE", folder.0.join("forge"))
            .envs([("RELEASES", "o/r"), ("RELEASE", called_by)])
            .output()
            .expect("bash");
        let there = folder.0.join("temp/shardscope/shardscope").is_file();
        assert_eq!(output.status.success(), there, "{}", String::from_utf8_lossy(&output.stderr));
        (there, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let own = concat!("v", env!("CARGO_PKG_VERSION"));
    // By its tag, and by a commit or a branch, of which the manifest beside it says the version: never the newest.
    assert!(fetch("v9.8.7", "v9.8.7").0);
    assert!(fetch("3d3c42e5aac5ba805825da76410c181273ba90b1", own).0);
    assert!(fetch("main", own).0);
    let (there, said) = fetch("3d3c42e5aac5ba805825da76410c181273ba90b1", "v9.8.7");
    assert!(!there && said.contains(&format!("::error::o/r has no release {own} ")), "{said}");
    folder.file("forge/forged", "");
    assert!(!fetch("v9.8.7", "v9.8.7").0);
}

#[test]
fn the_actions_scripts_are_those_of_its_steps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let action = std::fs::read_to_string(root.join("action.yml")).expect("the action");
    for script in ["fetch.sh", "review.sh", "comment.sh"] {
        assert!(action.contains(&format!("$GITHUB_ACTION_PATH/packages/action/{script}")), "{script}");
        let text = std::fs::read_to_string(root.join("packages/action").join(script)).expect("a script");
        // Every variable that a script's head names is given by the action.
        for line in text.lines().filter(|line| line.starts_with("# ") && line.contains("   ")) {
            let names = line[2..].split("   ").next().unwrap_or_default();
            for name in names
                .split(", ")
                .map(str::trim)
                .filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
            {
                assert!(action.contains(&format!("        {name}: ")), "{script}: {name}");
            }
        }
    }
    assert!(!action.contains("uses:"), "no other action");
}

#[test]
fn the_hooks_of_pre_commit_are_calls_that_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let hooks = std::fs::read_to_string(root.join(".pre-commit-hooks.yaml")).expect("the hooks");
    let entries: Vec<&str> =
        hooks.lines().filter_map(|line| line.trim().strip_prefix("entry: shardscope ")).collect();
    assert_eq!(entries.len(), 2);
    let folder = Folder::new("hooks");
    let fits = folder.file("a.sh", SCRIPT);
    let large = folder.file("b.sh", &SCRIPT.replace(USUAL, LARGE));
    let other = folder.file("c.sh", "cp a b\n");
    for entry in entries {
        let words: Vec<&str> = entry.split(' ').collect();
        assert_eq!(call(&[&words[..], &[&fits, &other]].concat(), "").status.code(), Some(0), "{entry}");
        assert_eq!(call(&[&words[..], &[&fits, &large]].concat(), "").status.code(), Some(1), "{entry}");
    }
}
