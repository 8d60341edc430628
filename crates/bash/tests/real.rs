//! Idioms of launch scripts, each with the value that bash 5.2 leaves in `TP`; if bash is on the path, it is run
//! again. What the text does not decide, or what depends on a tool's option that is not modelled, must be open: a
//! hole, or a value under an undecided branch.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use shardscope_bash::{Environment, Script, evaluate};
use shardscope_source::Source;

/// The last value of TP.
fn ours(text: &str) -> (String, bool) {
    let script: Script = evaluate(&Source::new(text), &Environment::default());
    let value =
        script.variable("TP").and_then(|variable| variable.values.first().cloned()).unwrap_or_default();
    let doubted = value
        .doubts()
        .any(|doubt| script.branches.get(usize::from(doubt)).is_some_and(|branch| !branch.decided));
    (value.text().to_owned(), value.has_holes() || doubted)
}

/// The value that bash leaves there; `None` without bash, or without the program that the script runs.
fn theirs(text: &str) -> Option<String> {
    let whole = format!("{text}\nprintf '%s' \"$TP\"\n");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &whole]).env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
    // Some scripts write files by relative names.
    bash.current_dir(std::env::temp_dir());
    let out = bash.output().ok()?;
    let complains = String::from_utf8_lossy(&out.stderr).contains("not found");
    (!complains).then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Each script gives this value, for us and for bash.
#[track_caller]
fn known(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let (found, open) = ours(text);
        if found != *expected || open {
            wrong.push(format!("{text}: {found:?} for {expected:?}{}", if open { ", open" } else { "" }));
        }
        if let Some(bash) = theirs(text) {
            assert_eq!(bash, *expected, "bash itself: {text}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each script leaves the value open.
#[track_caller]
fn open(cases: &[&str]) {
    let wrong: Vec<String> = cases
        .iter()
        .map(|text| (text, ours(text)))
        .filter(|(_, (_, open))| !open)
        .map(|(text, (found, _))| format!("{text}: {found:?}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lists_that_the_text_decides() {
    known(&[
        ("TP=1; [ 1 = 1 ] && TP=8 || TP=4", "8"),
        ("TP=1; [ 1 = 2 ] && TP=8 || TP=4", "4"),
        ("TP=1; false || TP=8", "8"),
        ("TP=1; true || TP=8 && TP=2", "2"),
        ("TP=1; false && TP=8; true", "1"),
        ("TP=2; if [ 1 = 1 ] && [ 2 = 2 ] || false; then TP=8; fi", "8"),
    ]);
}

#[test]
fn lists_that_hang_on_the_machine_are_open() {
    open(&[
        "TP=2; [ -d /scratch ] && TP=8 || TP=4",
        "TP=4; [ -d /x ] && TP=8",
        "TP=4; [ -d /x ] || TP=8",
        "TP=4; [[ -f /x && 1 = 1 ]] && { TP=8; PP=2; }",
        "TP=4; nvidia-smi | grep -q H100 && TP=8",
        "TP=4; [ -d /x ] && [ 1 = 1 ] && TP=8",
        "TP=4; [ -d /x ]; TP=$?",
    ]);
    let (text, _) = ours("TP=2; [ -d /scratch ] && TP=8 || TP=4");
    assert_eq!(text, "4");
}

#[test]
fn the_shells_own_options() {
    known(&[
        ("set -- 4 8; set -o errexit -o nounset; TP=$1", "4"),
        ("set -eo pipefail -u; set -- 2; TP=$1", "2"),
        ("set -euo pipefail 4; TP=$1", "4"),
        ("set -- 4; set - ; TP=$1", "4"),
        ("set -- 4; set --; TP=$#", "0"),
    ]);
    let (text, open) = ours("set -o errexit -o nounset; TP=$1");
    assert!(open && text == "${1}", "{text}");
}

#[test]
fn pipelines_are_shells_of_their_own() {
    known(&[
        ("TP=4; echo 8 | while read n; do TP=$n; done", "4"),
        ("TP=4; TP=8 | cat", "4"),
        ("TP=4; echo 8 | read TP", "4"),
        ("TP=4; while read n; do TP=$n; done < <(echo 8)", "8"),
        ("f(){ local TP=1; TP=2 | cat; TP2=$TP; }; f; TP=$TP2", "1"),
        ("X=5; f(){ ( local X=1 ); X=3; }; f; TP=$X", "3"),
        ("TP=$(echo 4 | { read n; echo $((n * 2)); })", "8"),
    ]);
}

#[test]
fn endless_loops_run_to_their_break() {
    known(&[
        ("i=0; while true; do i=$((i+1)); [ $i -eq 4 ] && break; done; TP=$i", "4"),
        ("i=0; while :; do i=$((i+1)); if [ $i -ge 8 ]; then break; fi; done; TP=$i", "8"),
        (
            "set -- --tp 8 --pp 2; while true; do case $1 in --tp) TP=$2; shift 2;; --pp) shift 2;; *) break;; esac; done",
            "8",
        ),
    ]);
    open(&[
        "TP=1; while true; do TP=$((TP*2)); [ -f /stop ] && break; done",
        "TP=1; while true; do TP=$((TP+1)); torchrun train.py --a 1; done",
        "TP=0; while true; do TP=$((TP+1)); [ $TP -eq 100000 ] && break; done",
    ]);
}

#[test]
fn numbers_of_statuses() {
    known(&[
        ("f(){ return 3; }; f; TP=$?", "3"),
        ("f(){ return 256; }; f; TP=$?", "0"),
        ("(exit 4); TP=$?", "4"),
        ("false; TP=$?", "1"),
        ("f(){ false; return; }; f; TP=$?", "1"),
    ]);
}

#[test]
fn files_are_read_by_redirection() {
    known(&[("echo 8 > real-tp; TP=$(<real-tp)", "8"), ("echo 8 > real-tp; TP=$(< real-tp)", "8")]);
    open(&["TP=$(</etc/tp)"]);
}

#[test]
fn declarations() {
    known(&[
        ("A=(4 8); declare -a A; TP=${A[1]}", "8"),
        ("declare -A M=([a]=4); declare -A M; TP=${M[a]}", "4"),
        ("A=4; declare -a A; A+=(8); TP=${A[*]}", "4 8"),
        ("declare -i TP=2+2", "4"),
        ("declare -i TP; TP=2*4", "8"),
        ("declare -i TP=4; TP+=4", "8"),
        ("f(){ local x=1; declare -g TP=4; }; f", "4"),
        ("TP=4; f(){ declare TP=8; }; f", "4"),
        ("TP=4; f(){ typeset TP=8; }; f", "4"),
        ("TP=4; f(){ export TP=8; }; f", "8"),
        ("TP=4; f(){ readonly TP=8; }; f", "8"),
    ]);
}

#[test]
fn small_programs() {
    known(&[
        ("TP=$(printf '1\n2\n3\n4\n5\n' | tail -n +4 | head -n 1)", "4"),
        ("TP=$(printf '1\n2\n3\n' | head -n -1 | tail -n 1)", "2"),
        ("TP=$(printf '1\n2\n3\n' | tail -1)", "3"),
        ("TP=$(echo 864 | head -c 1)", "8"),
        ("TP=$(printf 864 | tail -c 1)", "4"),
        ("TP=$(echo 8 | sed 's/^/TP/')", "TP8"),
        ("TP=$(echo 8 | sed 's/$/x/')", "8x"),
        ("TP=$(echo tp8x | tr -cd 0-9)", "8"),
        ("TP=$(echo tp8x | tr -dc '0-9')", "8"),
        ("TP=$(echo 'a   8' | tr -s ' ' | cut -d' ' -f2)", "8"),
        ("TP=$(echo tp8 | tr -d '[:alpha:]')", "8"),
        ("TP=$(echo aab | tr -s ab xy)", "xy"),
        ("TP=$(echo a8b | tr -c '0-9\n' ' ')", " 8 "),
        ("TP=$(echo 'tp::8' | awk -F'::' '{print $2}')", "8"),
        ("TP=$(echo 'a:b:' | awk -F: '{print $NF}')", ""),
        ("TP=$(printf 'a\\t\\t8\\n' | awk -F'\\t' '{print $3}')", "8"),
        ("TP=$(echo '4 8' | awk '{print $0}')", "4 8"),
        ("TP=$(awk 'BEGIN {print 10/3}')", "3.33333"),
        ("TP=$(echo '9.5/2' | bc)", "4"),
        ("TP=$(echo 'scale=1; 4/3*3' | bc)", "3.9"),
        ("TP=$(echo '1/4' | bc -l)", ".25000000000000000000"),
        ("TP=$(python3 -c 'print(-2**2+8)')", "4"),
        ("TP=$(python3 -c 'print(-7 % 3)')", "2"),
        ("TP=$(python3 -c 'print(7 // -2)')", "-4"),
        ("TP=$(expr 010 + 0)", "10"),
        ("TP=$(printf 'a\nb\n' | xargs)", "a b"),
        ("TP=$(printf %d 0x4)", "4"),
        ("TP=$(printf %d 010)", "8"),
        ("TP=$(printf '%g' 0.5)", "0.5"),
        ("TP=$(printf '%.2e' 12345)", "1.23e+04"),
        ("TP=$(printf '%g' 1e10)", "1e+10"),
    ]);
}

#[test]
fn options_of_programs_that_are_not_modelled_are_open() {
    open(&[
        "TP=$(python3 -c 'print(6^2)')",
        "TP=$(expr 4 '|' 8)",
        "TP=$(echo 8 | uniq -c)",
        "TP=$(echo tp8 | sed -E 's/tp([0-9]+)/\\1/')",
        "TP=$(echo aaa | sed 's/x*/-/g')",
        "TP=$(printf '1\n2\n' | head --lines=1)",
        "TP=$(echo 'a1b8' | awk -F'[0-9]' '{print $2}')",
        "TP=$(echo abc | tr '[:punct:]' x)",
    ]);
}

#[test]
fn lines_are_read_into_variables() {
    known(&[
        ("read A TP <<< '  4 8'; TP=$A-$TP", "4-8"),
        ("read A TP <<< '  4  8 2'; TP=$A-$TP", "4-8 2"),
        ("IFS=, read A B TP <<< '1,2,3,4'", "3,4"),
        ("read TP <<< '  8  '", "8"),
        ("read -d , TP <<< '8,4'", "8"),
        ("mapfile -t A < <(printf '4\n\n8\n'); TP=${A[2]}", "8"),
        ("mapfile -t A < <(printf '4\n\n8\n'); TP=${#A[@]}", "3"),
        ("readarray A < <(printf '4\n8\n'); TP=${A[0]}x", "4\nx"),
    ]);
    open(&["read -n 1 TP <<< '84'", "read TP <<< 'a\\b'", "mapfile -t -n 1 TP < <(printf '4\n8\n')"]);
}

#[test]
fn patterns() {
    known(&[
        ("shopt -s nocasematch; TP=1; [[ h100 == H100 ]] && TP=8", "8"),
        ("shopt -s nocasematch; case h100 in H100) TP=8;; *) TP=4;; esac", "8"),
        ("shopt -s nocasematch; shopt -u nocasematch; TP=1; [[ h100 == H100 ]] && TP=8", "1"),
        ("TP=1; [[ tp8 == tp+([0-9]) ]] && TP=8", "8"),
        ("TP=1; [[ h100 == @(a100|h100) ]] && TP=8", "8"),
        ("TP=1; [[ v100 == @(a100|h100) ]] && TP=8", "1"),
        ("TP=1; X=h100; [[ $X == ?(x)h*([0-9]) ]] && TP=8", "8"),
        ("[[ tp8-pp4 =~ tp([0-9]+)-pp([0-9]+) ]]; TP=${BASH_REMATCH[1]}", "8"),
        ("[[ tp8-pp4 =~ pp([0-9]+) ]] && TP=${BASH_REMATCH[0]}", "pp4"),
    ]);
    known(&[
        ("TP=1; [[ h100 == !(a100|h200) ]] && TP=8", "8"),
        ("TP=1; [[ h200 == !(a100|h200) ]] && TP=8", "1"),
        ("shopt -s extglob\ncase h100 in @(a100|h100)) TP=8;; *) TP=4;; esac", "8"),
        ("shopt -s extglob\ncase v100 in @(a100|h100)) TP=8;; *) TP=4;; esac", "4"),
        ("shopt -s extglob\ncase tp16 in\n  tp?(x)1*([0-9]) | z) TP=8;;\n  *) TP=4;;\nesac", "8"),
        ("shopt -s extglob\ncase z in tp?(x)1*([0-9])|z)TP=8;; *) TP=4;; esac", "8"),
        ("shopt -s extglob\ncase h100 in !(h*)) TP=8;; *) TP=4;; esac", "4"),
    ]);
    open(&[
        "shopt -s extglob\ncase h100 in x!(a)*) TP=8;; *) TP=4;; esac",
        "shopt -s extglob\nX=tp08; TP=${X##tp+(0)}",
        "[[ abc =~ (a|ab)(c|bc) ]]; TP=${BASH_REMATCH[1]}",
    ]);
}

/// Files that a script writes and changes before they are read, and what the last stage of a pipeline sets.
#[test]
fn changed_files() {
    known(&[
        ("echo tp=A > zz-a; sed -i 's/A/8/' zz-a; TP=$(cat zz-a); rm zz-a", "tp=8"),
        (
            "X=8; printf '{\"a\": AUTO}\n' > zz-b; sed -i.bak -e \"s/AUTO/$X/g\" zz-b; TP=$(cat zz-b); rm zz-b*",
            "{\"a\": 8}",
        ),
        ("echo A > zz-c; sed 's/A/8/' zz-c > zz-d; mv zz-d zz-c; TP=$(cat zz-c); rm zz-c", "8"),
        ("echo A > zz-e; echo 8 > zz-f; cp zz-f zz-e; TP=$(cat zz-e); rm zz-e zz-f", "8"),
        ("echo A > zz-g; sed -Ei 's/(A)+/8/' zz-g; TP=$(cat zz-g); rm zz-g", "8"),
        ("shopt -s lastpipe\necho 8 | read TP", "8"),
        ("TP=1\nshopt -s lastpipe\nprintf '4\\n8\\n' | while read x; do TP=$x; done", "8"),
        ("TP=1\nprintf '4\\n8\\n' | while read x; do TP=$x; done", "1"),
    ]);
    open(&[
        "echo A > zz-h; perl -pi -e 's/A/8/' zz-h; TP=$(cat zz-h)",
        "echo A > zz-i; sed -i '1d' zz-i; TP=$(cat zz-i)",
        "echo A > zz-j; cp other zz-j; TP=$(cat zz-j)",
    ]);
}
