//! `submit`: a look at the job, then sbatch with the same arguments.
#![cfg(unix)]

use std::process::{Command, Output, Stdio};

use crate::{Folder, SCRIPT};

/// An sbatch that writes down its arguments and its standard input, and ends with 3 where the job's name is `fails`.
const SBATCH: &str = "#!/usr/bin/env bash\nprintf '%s\\n' \"$@\" > \"$SEEN\"\n[ -t 0 ] || cat > \"$SEEN.stdin\"\necho Submitted batch job 1\n[ \"$1\" = --job-name=fails ] && exit 3\nexit 0\n";

struct Cluster {
    folder: Folder,
    job: String,
}

impl Cluster {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let sbatch = folder.file("sbatch", SBATCH);
        assert!(Command::new("chmod").args(["+x", &sbatch]).status().expect("chmod").success());
        let job = SCRIPT
            .replace("torchrun --nnodes 2 --nproc_per_node 8 ", "srun ")
            .replace("--tensor-model-parallel-size 2", "--tensor-model-parallel-size $TP");
        let job = folder.file(
            "job.sbatch",
            &format!("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n#SBATCH --ntasks-per-node=8\n{job}"),
        );
        Self { folder, job }
    }

    fn call(&self, words: &[&str], input: &str) -> Output {
        let path = |name: &str| self.folder.0.join(name);
        for file in ["seen", "seen.stdin"] {
            let _ = std::fs::remove_file(path(file));
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_shardscope"))
            .arg("submit")
            .arg("--program")
            .arg(path("sbatch"))
            .args(words)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("SEEN", path("seen"))
            .env("TP", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let _ = std::io::Write::write_all(&mut child.stdin.take().expect("its input"), input.as_bytes());
        child.wait_with_output().expect("its end")
    }

    fn seen(&self) -> Option<Vec<String>> {
        let text = std::fs::read_to_string(self.folder.0.join("seen")).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn sbatch_gets_the_same_arguments_and_the_job_is_looked_at() {
    let cluster = Cluster::new("submit");
    let output = cluster.call(&["-p", "gpu", "--mem=0", &cluster.job, "7", "--lr", "a b"], "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Submitted batch job 1\n");
    let said = stderr_of(&output);
    assert!(said.starts_with(&format!("shardscope: {}: fits: 34.69 GiB of ", cluster.job)), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(
        cluster.seen().expect("a call"),
        ["-p", "gpu", "--mem=0", &cluster.job, "7", "--lr", "a b"].map(str::to_owned)
    );
    // Options of the call count before those of the script, as they do for sbatch.
    let of = |words: &[&str]| stderr_of(&cluster.call(&[words, &[&cluster.job]].concat(), ""));
    assert_ne!(of(&["-N", "4"]), said);
    assert_ne!(of(&["--export=ALL,TP=4"]), said);
    assert_eq!(of(&["--export=ALL,TP=2"]), said);
    assert!(of(&["--export=NONE"]).contains("no plan"), "the job would not have the variable");
}

#[test]
fn a_job_is_refused_only_where_asked() {
    let cluster = Cluster::new("refuse");
    let large = ["--accelerator", "V100-SXM2-16GB"];
    let output = cluster.call(&[&large[..], &[&cluster.job]].concat(), "");
    assert_eq!(output.status.code(), Some(0), "told and submitted");
    assert!(stderr_of(&output).contains("does not fit") && cluster.seen().is_some());
    let output = cluster.call(&[&["--refuse", "oom"], &large[..], &["--", &cluster.job]].concat(), "");
    assert_eq!((output.status.code(), cluster.seen()), (Some(1), None));
    assert!(
        stderr_of(&output).ends_with("shardscope: it does not fit\nnot submitted, as --refuse asks\n"),
        "{}",
        stderr_of(&output)
    );
    let script = std::fs::read_to_string(&cluster.job).expect("the job");
    let full =
        cluster.folder.file("full.sbatch", &script.replace("micro-batch-size 4", "micro-batch-size 8"));
    let tight = ["--refuse", "tight", "--headroom", "50", &full];
    assert_eq!((cluster.call(&tight, "").status.code(), cluster.seen()), (Some(1), None));
    let open = cluster.folder.file("open.sbatch", &SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS"));
    assert_eq!(cluster.call(&[&open], "").status.code(), Some(0));
    assert!(cluster.seen().is_some(), "an open run is submitted");
    assert_eq!(
        (cluster.call(&["--refuse", "open", &open], "").status.code(), cluster.seen()),
        (Some(2), None)
    );
    // What is no training is no affair of ours.
    let other = cluster.folder.file("other.sbatch", "#!/bin/bash\nhostname\n");
    let output = cluster.call(&["--refuse", "oom,tight,open", &other], "");
    assert_eq!((output.status.code(), stderr_of(&output).as_str()), (Some(0), ""));
    assert!(cluster.seen().is_some());
}

#[test]
fn scripts_of_standard_input_and_of_wrap_are_handed_on() {
    let cluster = Cluster::new("stdin");
    let script = std::fs::read_to_string(&cluster.job).expect("the job");
    let output = cluster.call(&["-N", "2"], &script);
    assert!(stderr_of(&output).starts_with("shardscope: stdin: fits"), "{}", stderr_of(&output));
    assert_eq!(std::fs::read_to_string(cluster.folder.0.join("seen.stdin")).expect("its input"), script);
    let output = cluster.call(&["-N2", "--gpus-per-node=8", "--wrap", SCRIPT], "");
    assert!(stderr_of(&output).starts_with("shardscope: wrap: fits"), "{}", stderr_of(&output));
    // A script of which a part was read is not handed on as a whole one.
    let output = cluster.call(&["-N", "2"], &"# \n".repeat(2 << 20));
    assert_eq!((output.status.code(), cluster.seen()), (Some(2), None), "{}", stderr_of(&output));
    // sbatch's own end is ours.
    assert_eq!(cluster.call(&["--job-name=fails", &cluster.job], "").status.code(), Some(3));
    let output = cluster.call(&["no-such-file.sbatch"], "");
    assert!(stderr_of(&output).contains("no-such-file.sbatch cannot be read") && cluster.seen().is_some());
    let output = cluster.call(&["--refuse", "oom", "--program", "/no/such/sbatch", &cluster.job], "");
    assert_eq!(output.status.code(), Some(2));
}
