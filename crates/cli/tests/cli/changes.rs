//! What a caller changes in a run, and what the caller must be told about the answer.

use super::{Folder, SCRIPT, call, printed};

/// Standard error of a call that exits with this code.
#[track_caller]
fn stderr(arguments: &[&str], input: &str, code: i32) -> String {
    let output = call(arguments, input);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    stderr
}

#[test]
fn a_misspelt_accelerator_or_setting_is_no_answer() {
    for command in ["check", "report", "search", "badge"] {
        let said = stderr(&[command, "--accelerator", "H10-SXM", "-"], SCRIPT, 2);
        assert!(said.contains("did you mean H100-SXM?"), "{command}: {said}");
        let said = stderr(&[command, "--set", "tensor_model_paralel_size=4", "-"], SCRIPT, 2);
        assert!(said.contains("did you mean tensor_model_parallel_size?"), "{command}: {said}");
    }
    let said = stderr(&["compare", "-", "--with", "tensor_model_paralel_size=4"], SCRIPT, 2);
    assert!(said.contains("did you mean tensor_model_parallel_size?"), "the two were the same: {said}");
    let said = stderr(&["check", "--set", "per_device_train_batch_size=4", "-"], SCRIPT, 2);
    assert!(said.contains("`shardscope settings` lists them"), "{said}");
    let said = stderr(&["check", "--set", "accelerator=nosuch", "-"], SCRIPT, 2);
    assert!(said.contains("there is no accelerator nosuch"), "{said}");
}

/// Links use short names for the usual degrees, and so may a caller.
#[test]
fn settings_have_the_short_names_of_links() {
    let long = printed(&["check", "--set", "tensor_model_parallel_size=4", "-"], SCRIPT, 0);
    assert_eq!(printed(&["check", "--set", "tp=4", "-"], SCRIPT, 0), long);
    assert_ne!(printed(&["check", "-"], SCRIPT, 0), long);
    let with = |name: &str| printed(&["compare", "-", "--with", &format!("{name}=2")], SCRIPT, 0);
    assert_eq!(with("mbs"), with("micro_batch_size"));
    let apply = |name: &str| printed(&["apply", &format!("{name}=2"), "-"], SCRIPT, 0);
    assert_eq!(apply("mbs"), apply("micro_batch_size"));
}

/// What is left open is answered by an option, and with that there is a plan.
#[test]
fn what_is_left_open_is_reported_with_the_option_that_answers_it() {
    let open = SCRIPT.replace("--nnodes 2", "--nnodes $NODES");
    assert!(stderr(&["check", "-"], &open, 2).ends_with("\nanswer by --set num_nodes=1\n"));
    printed(&["check", "--accelerator", "H100-SXM", "--set", "num_nodes=1", "-"], &open, 0);
    let open = SCRIPT.replace("--num-layers 24", "--num-layers $LAYERS");
    for command in ["check", "report", "search", "badge", "measured"] {
        // `measured` has something measured beside the run.
        let log = " iteration 2/ 9 | elapsed time per iteration (ms): 5000.0 |\n";
        let folder = Folder::new(&format!("open-{command}"));
        let files = [folder.file("open.sh", &open), folder.file("run.log", log)];
        let words = [command, &files[0], &files[1]];
        let words = if command == "measured" { &words[..] } else { &words[..2] };
        assert!(stderr(words, "", 2).ends_with("\nanswer by --env LAYERS=…\n"), "{command}");
    }
    printed(&["check", "--accelerator", "H100-SXM", "--env", "LAYERS=24", "-"], &open, 0);
    let open = SCRIPT
        .replace("--num-layers 24", "--num-layers $1")
        .replace("--hidden-size 4096", "--hidden-size $2");
    assert!(stderr(&["check", "-"], &open, 2).ends_with("\nanswer by --args \"… …\"\n"));
    printed(&["check", "--accelerator", "H100-SXM", "--args", "24 4096", "-"], &open, 0);
    let stage = "accelerate launch --config_file x.yaml --num_processes 8 sft.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 \
                 --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --bf16 True\n";
    assert!(stderr(&["report", "-"], stage, 2).ends_with("answer by --set zero_stage=…\n"));
}

#[test]
fn an_assumed_accelerator_is_reported_beside_the_verdict() {
    let said = stderr(&["check", "-"], SCRIPT, 0);
    assert!(said.contains("H100-SXM is assumed"), "{said}");
    assert_eq!(stderr(&["check", "--accelerator", "H100-SXM", "-"], SCRIPT, 0), "");
}

#[test]
fn a_file_behind_an_option_is_read_from_beside_the_script() {
    let folder = Folder::new("behind-an-option");
    folder.file(
        "accelerate.yaml",
        "distributed_type: DEEPSPEED\nnum_processes: 8\nnum_machines: 1\ndeepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\n",
    );
    let command = "accelerate launch --config_file accelerate.yaml sft.py --model_name_or_path Qwen/Qwen2.5-7B --max_length 2048 \
                   --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --gradient_checkpointing True --bf16 True";
    let plain = folder.file("run.sh", &format!("{command}\n"));
    let joined =
        folder.file("joined.sh", &format!("{}\n", command.replace("--config_file ", "--config_file \\\n  ")));
    let verdict = printed(&["check", "--accelerator", "H100-SXM", &plain], "", 0);
    assert!(verdict.starts_with("fits"), "{verdict}");
    assert_eq!(printed(&["check", "--accelerator", "H100-SXM", &joined], "", 0), verdict);
}
