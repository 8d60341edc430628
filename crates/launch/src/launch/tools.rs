//! Shell scripts that run nothing but tools of the shell, the system and its scheduler, and so train nothing.

use shardscope_bash::{Command, Script, base_name};
use shardscope_source::{Code, Diagnostic, Span};

/// Programs that train nothing and start no other program that could, whatever their arguments are. Not among them:
/// `docker`, `srun`, `ssh`, `xargs`, `env` and the like, which start others, and interpreters.
const TOOLS: &str = "[ [[ : . alias basename break cat cd chmod chown command continue cp curl cut date declare df dirname dpkg du \
    echo exit export false find free git grep groupadd gunzip gzip head hostname huggingface-cli ifconfig ip jq kill let \
    ln local ls lscpu lspci lsof mkdir mkfs mktemp module mount mv nproc nvidia-smi pkill ping popd printf ps pushd pwd \
    read readarray mapfile return rm rmdir rsync sacct scancel scontrol sed select seq set shift shopt sinfo sleep sort squeue \
    stat sync sysctl systemctl tail tar tee test touch tr true type ulimit umask unalias uname uniq unset until unzip \
    useradd usermod adduser wait wc wget which whoami zip rocm-smi npu-smi ibv_devinfo ibdev2netdev";
/// Options by which `find` starts another program.
const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// Tools that are one word before another one.
const BEFORE: [&str; 2] = ["sudo", "exec"];
/// Maximum number of them named.
const NAMED: usize = 4;

/// What starts other programs: a text with one of these words outside of its comments is none of such scripts, whatever
/// its evaluation finds.
const STARTS: &str = "python python3 torchrun accelerate deepspeed bash sh sbatch qsub bsub srun mpirun eval source uv docker ssh xargs env nohup";

/// What a script is whose commands are all of such tools, that sets variables alone or is commented out; none for another.
pub(super) fn alone(script: &Script, text: &str) -> Option<Diagnostic> {
    let said = |message: String, span: Option<Span>| {
        let hint = "paste the script that starts the training";
        Some(Diagnostic::error(Code::NoTraining, message).hint(hint).at_some(span))
    };
    if text.trim().is_empty() {
        return None;
    }
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if lines().next().is_none() {
        return said("every line of this text is a comment, so that it starts no training".to_owned(), None);
    }
    let starts = |word: &str| STARTS.split_ascii_whitespace().any(|known| base_name(word) == known);
    let apart = |sign: char| {
        sign.is_whitespace() || matches!(sign, '`' | '(' | ')' | ';' | '|' | '&' | '"' | '\'' | '{' | '}')
    };
    if lines().any(|line| line.split(apart).any(starts)) {
        return None;
    }
    const SETTERS: [&str; 14] = [
        "export", "declare", "readonly", "unset", "set", "local", "typeset", "shopt", "[", "[[", "test",
        "true", ":", "ulimit",
    ];
    let is_setter =
        |command: &Command| command.words.first().is_none_or(|word| SETTERS.contains(&word.text()));
    if lines().all(sets) && script.commands.iter().all(is_setter) {
        return said("this text sets variables alone, and starts no training".to_owned(), None);
    }
    let mut names: Vec<&str> = Vec::new();
    for command in &script.commands {
        let word = command.words.iter().find(|word| !BEFORE.contains(&word.text()))?;
        let name = base_name(word.text());
        let starts_another = name == "find" && command.words.iter().any(|word| RUNS.contains(&word.text()));
        if starts_another || !TOOLS.split_ascii_whitespace().any(|tool| tool == name) {
            return None;
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let first = script.commands.first()?;
    names.truncate(NAMED);
    let names = names.join(", ");
    said(
        format!("this text runs tools of the shell and the system alone ({names}), and no training"),
        Some(first.span),
    )
}

/// Whether a line sets variables (`export A=1`, `A=1`), or is a part of a condition around such lines.
fn sets(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next().unwrap_or_default();
    let name = first.split(['=', '+', '[']).next().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let assigns = first.contains('=') && !name.is_empty() && name.bytes().all(is_name);
    // A word behind the assignments would be a command.
    let alone =
        || !line.contains(char::is_whitespace) || line.contains(['"', '\'', '(']) || line.contains(" #");
    matches!(
        first,
        "export" | "declare" | "readonly" | "unset" | "set" | "if" | "elif" | "else" | "fi" | "then"
    ) || assigns && alone()
}

#[cfg(test)]
mod tests {
    use crate::{Request, read};
    use shardscope_bash::Environment;
    use shardscope_source::{Code, Severity, Source};

    fn said(text: &str) -> (Code, String, usize) {
        let source = Source::from_files([("run.sh", text)]);
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
        let error = read.diagnostics.iter().find(|said| said.severity == Severity::Error).expect("an error");
        (error.code, error.message.clone(), read.questions.len())
    }

    #[test]
    fn scripts_that_run_no_program_are_told_from_trainings() {
        let tools = |names: &str| {
            format!("this text runs tools of the shell and the system alone ({names}), and no training")
        };
        for (text, message) in [
            ("#!/bin/bash\nmkdir -p $A\nfor f in *.tar; do tar -xf $f -C $A; done\n", tools("mkdir, tar")),
            ("#SBATCH --nodes=4\ntar -cvf a.tar a\nmv a.tar b\n", tools("tar, mv")),
            (
                "# python train.py\n# later\n",
                "every line of this text is a comment, so that it starts no training".to_owned(),
            ),
            // mlcommons/training: `config_GB300_64x4x256xtp1pp4cp1.sh`
            (
                "export NNODES=64\nexport GPUS_PER_NODE=4\nif [ $A ]; then\n  B=\"a b\"\nfi\n",
                "this text sets variables alone, and starts no training".to_owned(),
            ),
            (
                "sudo apt-get install -y nvidia-container-toolkit\n",
                "apt-get is software installation, not a training run".to_owned(),
            ),
            (
                "megatron export --adapters a --to_hf true\n",
                "export is a checkpoint conversion, not a training run".to_owned(),
            ),
        ] {
            assert_eq!(said(text), (Code::NoTraining, message, 0), "{text}");
        }
        // What starts something else is not known to train nothing, nor is a word that could be a program.
        for text in [
            "mkdir a\n$RUN\n",
            "mkdir a\nOUT=$(qsub job.pbs)\n",
            "A=1 ./start\n",
            "f() {\n  mkdir a\n}\nf && bash $1\n",
        ] {
            assert_eq!(said(text).0, Code::NoTrainingCommand, "{text}");
        }
    }
}
