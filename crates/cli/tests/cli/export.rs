//! `export` and `contribute`: what leaves for other programs and for the evidence.

use crate::{Folder, SCRIPT, call, json, printed};

#[test]
fn a_plan_is_written_in_others_words_and_read_back_equal() {
    let options = ["--accelerator", "A100-SXM-80GB"];
    let of = |text: &str| {
        let document =
            json(&printed(&[&["report", "--format", "json"], &options[..], &["-"]].concat(), text, 0));
        document["report"].clone()
    };
    let wanted = of(SCRIPT);
    for target in ["megatron", "bridge"] {
        let exported = printed(&[&["export", "--to", target], &options[..], &["-"]].concat(), SCRIPT, 0);
        assert_eq!(of(&exported)["memory"], wanted["memory"], "{target}: {exported}");
        assert_eq!(of(&exported)["time"]["step_seconds"], wanted["time"]["step_seconds"], "{target}");
    }
}

#[test]
fn what_an_export_cannot_say_is_said_before_it_is_copied() {
    // Megatron core's distributed optimizer is none of DeepSpeed's.
    let output = call(&["export", "--to", "deepspeed", "-"], SCRIPT);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.starts_with("it cannot say: ") && stderr.contains("--partial prints it"), "{stderr}");
    let partial = call(&["export", "--to", "deepspeed", "--partial", "-"], SCRIPT);
    assert_eq!(partial.status.code(), Some(0));
    assert!(json(&String::from_utf8_lossy(&partial.stdout))["train_batch_size"] == 512);
    assert!(String::from_utf8_lossy(&partial.stderr).starts_with("it cannot say: "));
    printed(&["export", "--to", "megatron", "-"], "echo\n", 2);
    for target in ["torchtitan", "accelerate"] {
        let output = call(&["export", "--to", target, "-"], SCRIPT);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{target}: {stderr}");
        assert!(stderr.starts_with("it cannot say: num_layers, hidden_size, "), "{target}: {stderr}");
    }
}

#[test]
fn a_plan_of_torchtitan_is_written_as_its_file() {
    let folder = Folder::new("export-titan");
    let script = "torchrun --nnodes=2 --nproc_per_node=8 -m torchtitan.train --model.name llama3 --model.flavor 8B \
        --training.seq_len 4096 --parallelism.tensor_parallel_degree 2\n";
    let toml = printed(&["export", "--to", "torchtitan", "--accelerator", "H100-SXM", "-"], script, 0);
    let command = toml.lines().next().expect("a command").trim_start_matches("# ").to_owned();
    assert_eq!(
        command,
        "torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train --job.config_file train.toml"
    );
    let files = [folder.file("run.sh", &command), folder.file("train.toml", &toml)];
    let report = |files: &[&str], text: &str| {
        let all = [&["report", "--accelerator", "H100-SXM", "--format", "json"], files].concat();
        json(&printed(&all, text, 0))["report"].clone()
    };
    assert_eq!(report(&[&files[0], &files[1]], "")["memory"], report(&["-"], script)["memory"]);
}

/// DeepSpeed's file beside the command that asks for it, and accelerate's beside the command of its first line.
#[test]
fn files_beside_their_commands_are_the_same_plan() {
    let folder = Folder::new("export-beside");
    let report = |files: &[&str]| {
        let all = [&["report", "--accelerator", "H100-SXM", "--format", "json"], files].concat();
        json(&printed(&all, "", 0))["report"].clone()
    };
    let same = |before: &[&str], after: &[&str]| {
        let (before, after) = (report(before), report(after));
        assert_eq!(before["memory"], after["memory"]);
        assert_eq!(before["time"]["step_seconds"], after["time"]["step_seconds"]);
    };
    let export =
        |to: &str, file: &str| printed(&["export", "--to", to, "--accelerator", "H100-SXM", file], "", 0);
    let run = folder.file(
        "deepspeed/run.sh",
        "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py --deepspeed --deepspeed_config conf.json --num-layers 24 \
         --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 \
         --global-batch-size 512 --vocab-size 50257 --bf16 --tensor-model-parallel-size 2\n",
    );
    folder.file(
        "deepspeed/conf.json",
        "{\"zero_optimization\": {\"stage\": 2}, \"train_micro_batch_size_per_gpu\": 4, \"bf16\": {\"enabled\": true}}\n",
    );
    let command = export("megatron", &run);
    assert!(command.contains(" --deepspeed --deepspeed_config ds_config.json"), "DeepSpeed is on: {command}");
    let again = folder.file("deepspeed-again/run.sh", &command);
    folder.file("deepspeed-again/ds_config.json", &export("deepspeed", &run));
    same(&[&run], &[&again]);
    let run = folder.file(
        "accelerate/run.sh",
        "torchrun --nproc_per_node 4 sft.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 \
         --gradient_accumulation_steps 4 --max_length 4096 --bf16 true --use_peft --lora_r 16 --lora_target_modules all-linear \
         --use_liger_kernel true --packing true --attn_implementation flash_attention_2\n",
    );
    let yaml = export("accelerate", &run);
    let command = yaml.lines().next().expect("a command").trim_start_matches("# ").to_owned();
    let again = folder.file("accelerate-again/run.sh", &format!("{command}\n"));
    folder.file("accelerate-again/accelerate.yaml", &yaml);
    same(&[&run], &[&again]);
}

#[test]
fn a_run_is_contributed_without_its_script() {
    let folder = Folder::new("contribute");
    let secret = format!("# secret-project of nobody@example.org\n{SCRIPT}");
    let script = folder.file("train.sh", &secret);
    let lines = |count: usize| -> String {
        (1..=count).map(|step| format!(" iteration {step}/ 100 | elapsed time per iteration (ms): {}.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 512 |\n", 5000 + step)).collect()
    };
    let memory = "[Rank 0] (after 1 iterations) memory (MB) | allocated: 11000.0 | max allocated: 31000.0 | reserved: 33000.0 | max reserved: 34000.0\n";
    let log = folder.file("train.log", &(lines(12) + memory));
    let said =
        ["--source", "https://example.org/log", "--date", "2026-03", "--versions", "core 0.14, torch 2.9"];
    let call_of = |options: &[&str], log: &str| {
        let output = call(&[&["contribute", &script, log], options].concat(), "");
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("text"),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    let (code, row, stderr) = call_of(&[&said[..], &["--accelerator", "H100-SXM"]].concat(), &log);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(!row.contains("secret") && !row.contains("train.sh") && row.lines().count() == 1, "{row}");
    let read = json(&row);
    // Without the first, the middle of 5002 to 5012 ms.
    assert_eq!((&read["steps"], &read["step_seconds"]), (&12.into(), &5.007.into()));
    assert_eq!(read["max_allocated"], 31000_u64 << 20);
    assert_eq!(read["max_reserved"], 34000_u64 << 20);
    // Its settings make the plan of the script.
    let settings = read["settings"].as_object().expect("settings");
    let words: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name}={}", value.as_str().expect("text"))).collect();
    let mut report = vec!["report", "--format", "json"];
    report.extend(words.iter().flat_map(|word| ["--set", word.as_str()]));
    let empty = folder.file("empty.sh", "");
    report.push(&empty);
    let again = json(&printed(&report, "", 0));
    let of_script =
        json(&printed(&["report", "--format", "json", "--accelerator", "H100-SXM", &script], "", 0));
    assert_eq!(again["report"]["memory"], of_script["report"]["memory"]);
    // Rows are checked as they will be when they arrive.
    let rows = folder.file("rows.jsonl", &row);
    assert_eq!(printed(&["contribute", "--check", &rows], "", 0), "");
    for (wrong, why) in [
        (row.replace("https://", "ftp://"), "row 1: source"),
        (row.replace("2026-03", "March"), "row 1: date"),
        (row.replace("\"steps\":12", "\"steps\":3"), "row 1: steps: 3 are timed"),
        (row.replace("num_layers", "num_layer"), "row 1: settings that make a plan"),
        (row.replace("\"steps\"", "\"script\""), "row 1 is not valid"),
        (String::new(), "there is no row"),
    ] {
        let output = call(&["contribute", "--check", "-"], &wrong);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(stderr.contains(&format!("lacking: {why}")), "{why}: {stderr}");
    }
    // What is lacking is said, and the row printed to be completed.
    let short = folder.file("short.log", &lines(3));
    let (code, row, stderr) = call_of(&[], &short);
    assert_eq!(code, Some(1));
    assert_eq!(json(&row)["steps"], 3);
    for what in ["source", "date", "versions", "steps: 3 are timed", "accelerator: the one here was assumed"]
    {
        assert!(stderr.contains(&format!("lacking: {what}")), "{what}: {stderr}");
    }
}
