//! `apply`: settings written into the script they come from.

use std::process::{Command, Stdio};

use crate::{Folder, SCRIPT, call, json, printed};

const BEFORE: &str = "#!/bin/bash\nTP=2   # inside the node\nARGS=(\n    --num-layers 24\n    --hidden-size 2048\n    --num-attention-heads 16\n    --seq-length 2048\n    --micro-batch-size 2   # a remark\n    --global-batch-size 128\n    --bf16\n    --tensor-model-parallel-size ${TP}\n)\ntorchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]}\n";

#[test]
fn a_change_is_shown_and_then_written() {
    let folder = Folder::new("apply");
    let file = folder.file("train.sh", BEFORE);
    let shown = printed(&["apply", "tensor_model_parallel_size=4", "micro_batch_size=4", &file], "", 0);
    let name = file.trim_start_matches('/');
    let expected = format!(
        "--- a/{name}\n+++ b/{name}\n@@ -1,11 +1,11 @@\n #!/bin/bash\n-TP=2   # inside the node\n+TP=4   # inside the node\n \
         ARGS=(\n     --num-layers 24\n     --hidden-size 2048\n     --num-attention-heads 16\n     --seq-length 2048\n-    \
         --micro-batch-size 2   # a remark\n+    --micro-batch-size 4   # a remark\n     --global-batch-size 128\n     --bf16\n     \
         --tensor-model-parallel-size ${{TP}}\n"
    );
    assert_eq!(shown, expected);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), BEFORE, "shown only");
    let after = BEFORE.replace("TP=2", "TP=4").replace("micro-batch-size 2", "micro-batch-size 4");
    assert_eq!(
        printed(&["apply", "--whole", "tensor_model_parallel_size=4", "micro_batch_size=4", "-"], BEFORE, 0),
        after
    );
    assert_eq!(
        printed(&["apply", "-i", "tensor_model_parallel_size=4", "micro_batch_size=4", &file], "", 0),
        expected
    );
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), after);
    let settings = &json(&printed(&["report", "--format", "json", &file], "", 0))["settings"];
    assert_eq!(settings["tensor_model_parallel_size"]["value"], 4);
    // A value that already holds is not a change.
    assert_eq!(printed(&["apply", "tensor_model_parallel_size=4", &file], "", 0), "");
}

/// `npx shardscope` passes absolute paths.
#[test]
fn the_difference_names_files_from_the_folder_of_the_call() {
    let folder = Folder::new("apply-here");
    let file = folder.file("jobs/train.sh", BEFORE);
    for operand in ["jobs/train.sh", "./jobs/train.sh", &file] {
        let output = Command::new(env!("CARGO_BIN_EXE_shardscope"))
            .args(["apply", "micro_batch_size=4", operand])
            .current_dir(&folder.0)
            .output()
            .expect("the program");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.starts_with("--- a/jobs/train.sh\n+++ b/jobs/train.sh\n"), "{operand}: {shown}");
    }
}

#[test]
fn the_difference_is_one_that_patch_takes() {
    let folder = Folder::new("patch");
    let file = folder.file("run.sh", SCRIPT.trim_end());
    let difference = printed(&["apply", "hidden_size=8192", "swiglu=true", &file], "", 0);
    assert!(difference.contains("\\ No newline at end of file\n"), "{difference}");
    printed(&["apply", "--in-place", "hidden_size=8192", "swiglu=true", &file], "", 0);
    let wanted = std::fs::read_to_string(&file).expect("the file");
    folder.file("run.sh", SCRIPT.trim_end());
    let patch =
        Command::new("patch").args(["-d", "/", "-p1"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let Ok(mut patch) = patch else {
        println!("NOT CHECKED: there is no patch here");
        return;
    };
    std::io::Write::write_all(&mut patch.stdin.take().expect("its input"), difference.as_bytes())
        .expect("written");
    assert!(patch.wait().expect("its end").success());
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), wanted);
}

#[test]
fn what_cannot_be_changed_is_said_and_nothing_is_written() {
    let folder = Folder::new("unplaced");
    let file = folder.file("train.sh", BEFORE);
    let answer = |arguments: &[&str]| {
        let output = call(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let unplaced = answer(&["apply", "-i", "hidden_size=4096", "data_parallel_size=3", &file]);
    assert_eq!(unplaced, "error: no place is found for data_parallel_size=3\nnothing is changed\n");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), BEFORE);
    let misspelt = answer(&["apply", "hiden_size=4096", &file]);
    assert_eq!(misspelt, "error: there is no setting hiden_size; did you mean hidden_size?\n");
    let unfit = answer(&["apply", "-i", "tensor_model_parallel_size=zzz", &file]);
    assert_eq!(unfit, "error: tensor_model_parallel_size takes a whole number, not \"zzz\"\n");
    assert!(answer(&["apply", "hidden_size=4096"]).contains("no file"));
    assert!(answer(&["apply", &file]).contains("no change"));
    assert!(answer(&["apply", "-i", "hidden_size=4096", "-"]).contains("standard input"));
    assert!(answer(&["apply", "hidden_size=4096", "#/1?tp=2"]).contains("link"));
    let latin = folder.0.join("latin.sh");
    std::fs::write(&latin, [BEFORE.as_bytes(), b"# caf\xe9\n"].concat()).expect("a file");
    assert!(answer(&["apply", "-i", "hidden_size=4096", &latin.display().to_string()]).contains("not UTF-8"));
}
