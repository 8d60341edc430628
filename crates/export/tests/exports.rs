//! Every fixture that makes a plan, written by every export: what is read back is the identical plan, or the export
//! names what it cannot express.
#![allow(clippy::expect_used)]

use std::fmt::Write as _;
use std::path::Path;

use shardscope_bash::Environment;
use shardscope_export::{
    ACCELERATE_FILE, DEEPSPEED_FILE, Exported, TITAN_FILE, accelerate_command, accelerate_yaml,
    bridge_command, deepspeed_json, megatron_command, torchtitan_command, torchtitan_toml,
};
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, Marks, Plan};
use shardscope_source::Source;

/// Names and texts.
type Files = Vec<(String, String)>;

fn resolved(files: &[(String, String)], overrides: &[(String, String)]) -> Resolution {
    let source = Source::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    read(&Request { source: &source, environment: &Environment::default(), overrides })
}

/// The plan without the reader's marks.
fn bare(resolution: &Resolution) -> Option<Plan> {
    resolution.plan.clone().map(|plan| plan.marked(Marks::default()))
}

fn machine(resolution: &Resolution) -> Vec<(String, String)> {
    let name = resolution.setting(Field::Accelerator).map(|setting| setting.value.written());
    vec![("accelerator".to_owned(), name.unwrap_or_default())]
}

/// Scripts one by one, and the files of each case together.
fn fixtures() -> Vec<(String, Files)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let text = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap_or_default())
    };
    let listed = |folder: &Path| {
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .expect("fixtures")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.sort();
        paths
    };
    let mut all = Vec::new();
    for path in listed(&data.join("launch")) {
        if path.extension().is_some_and(|extension| extension == "sh") {
            all.push((path.display().to_string(), vec![text(&path)]));
        }
    }
    for case in listed(&data.join("formats/cases")) {
        let aside = ["expected", "source", "environment", "overrides"];
        let files: Vec<_> =
            listed(&case).iter().filter(|path| path.is_file()).map(|path| text(path)).collect();
        let files = files.into_iter().filter(|(name, _)| !aside.contains(&name.as_str())).collect();
        all.push((case.display().to_string(), files));
    }
    all
}

#[test]
fn every_fixture_reads_back_equal_or_is_refused() {
    let (mut written, mut equal, mut refused, mut silent) = (0, 0, 0, String::new());
    let mut unread = String::new();
    for (name, files) in fixtures() {
        let target = resolved(&files, &[]);
        let Some(wanted) = bare(&target) else { continue };
        let command = megatron_command(&target);
        // DeepSpeed's file goes with a command, which states the model and the layout.
        let beside = ("run.sh".to_owned(), command.text.clone());
        let launched = |command: String| vec![("run.sh".to_owned(), command)];
        let titan = launched(torchtitan_command(&target));
        let accelerate = launched(accelerate_command(&target));
        // A command that turns DeepSpeed on names its file.
        let configured = command.text.contains(DEEPSPEED_FILE);
        let configuration = (DEEPSPEED_FILE.to_owned(), deepspeed_json(&target).text);
        let configuration = configured.then_some(configuration).into_iter().collect();
        let exports: [(&str, &str, Exported, Files); 5] = [
            ("Megatron-LM", "run.sh", command, configuration),
            ("Megatron-Bridge", "run.sh", bridge_command(&target), Vec::new()),
            ("DeepSpeed", "ds_config.json", deepspeed_json(&target), vec![beside]),
            ("torchtitan", TITAN_FILE, torchtitan_toml(&target), titan),
            ("accelerate", ACCELERATE_FILE, accelerate_yaml(&target), accelerate),
        ];
        for (export, file, exported, mut files) in exports {
            written += 1;
            files.push((file.to_owned(), exported.text.clone()));
            let again = resolved(&files, &machine(&target));
            // The format's own reader knows everything that an export writes.
            let names = again.setting(Field::NotRead).map(|names| names.value.written());
            if let Some(names) = names.filter(|names| !names.is_empty()) {
                let _ = writeln!(unread, "{export} of {name}: {names}");
            }
            if bare(&again).as_ref() == Some(&wanted) {
                equal += 1;
            } else if exported.unsaid.is_empty() {
                let _ = writeln!(
                    silent,
                    "{export} of {name} reads back otherwise and says nothing:\n{}",
                    exported.text
                );
            } else {
                refused += 1;
            }
        }
    }
    println!("{written} exports: {equal} read back equal, {refused} name what they cannot say");
    assert!(written >= 90, "only {written} exports of fixtures");
    assert!(silent.is_empty(), "{silent}");
    assert!(unread.is_empty(), "{unread}");
}

/// Windows and linear mixers by the names of Megatron core's configuration.
#[test]
fn mixers_are_read_back_equal() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16 --window-size 127,0 --window-attn-skip-freq 4";
    let set = [("accelerator".to_owned(), "H100-SXM".to_owned())];
    let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
    let wanted = bare(&target).expect("a plan");
    assert!(wanted.model().mixers.window.is_some(), "{:?}", wanted.model().mixers);
    for exported in [megatron_command(&target), bridge_command(&target)] {
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        let again = resolved(&[("run.sh".to_owned(), exported.text)], &machine(&target));
        assert_eq!(bare(&again).as_ref(), Some(&wanted));
    }
}

/// The reader's settings for the machine or the verdict are not part of a framework's configuration.
#[test]
fn settings_of_its_own_are_written_nowhere() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16";
    let set = [("accelerator", "H100-SXM"), ("memory_headroom", "0.1")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
    for exported in [megatron_command(&target), bridge_command(&target)] {
        assert_eq!(exported.unsaid, [Field::MemoryHeadroom], "{}", exported.text);
        assert!(!exported.text.contains("headroom"), "{}", exported.text);
    }
}

/// An unusual value for every kind of setting.
fn other(field: Field) -> Vec<String> {
    use shardscope_plan::ValueKind;
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match field.kind() {
        ValueKind::Flag => words(&["true", "false"]),
        ValueKind::Word(choices) => words(choices.get(..2).unwrap_or(choices)),
        ValueKind::Text => words(&["plain"]),
        ValueKind::Counts => words(&["1 2"]),
        ValueKind::Words => words(&["mlp"]),
        _ => words(&["2", "0.5"]),
    }
}

/// Each setting added individually to a plan, in both families of commands: the format's own reader knows whatever is
/// written.
#[test]
fn every_setting_that_is_written_is_known_again() {
    let flags = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 1024 \
         --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 1 \
         --global-batch-size 16 --vocab-size 32000 --bf16 --num-experts 8 --moe-grouped-gemm";
    let (mut written, mut unread) = (0, String::new());
    for field in Field::ALL {
        for value in other(*field) {
            let set =
                [("accelerator".to_owned(), "H100-SXM".to_owned()), (field.name().to_owned(), value.clone())];
            let target = resolved(&[("run.sh".to_owned(), flags.to_owned())], &set);
            for (export, exported) in
                [("Megatron-LM", megatron_command(&target)), ("Megatron-Bridge", bridge_command(&target))]
            {
                written += 1;
                let again = resolved(&[("run.sh".to_owned(), exported.text)], &machine(&target));
                let names = again.setting(Field::NotRead).map(|names| names.value.written());
                if let Some(names) = names.filter(|names| !names.is_empty()) {
                    let _ = writeln!(unread, "{export} with {}={value}: {names}", field.name());
                }
            }
        }
    }
    assert!(written > 500, "{written}");
    assert!(unread.is_empty(), "{unread}");
}

/// A run of Megatron's CI in short: modules whose saved tensors are offloaded.
#[test]
fn offloaded_modules_are_written_back() {
    let script = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --ffn-hidden-size 4096 \
        --num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 32 \
        --vocab-size 50257 --bf16 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope \
        --untie-embeddings-and-output-weights --transformer-impl transformer_engine --pipeline-model-parallel-size 2 \
        --hidden-dropout 0 --attention-dropout 0 --fine-grained-activation-offloading \
        --offload-modules qkv_linear core_attn attn_proj --min-offloaded-tensor-size 4096";
    let target = resolved(&[("run.sh".to_owned(), script.to_owned())], &[]);
    let wanted = bare(&target).expect("a plan");
    assert_eq!(wanted.recipe().offload.least, 4096);
    for exported in [megatron_command(&target), bridge_command(&target)] {
        assert!(exported.text.contains("attn_proj"), "{}", exported.text);
        let again = resolved(&[("run.sh".to_owned(), exported.text.clone())], &machine(&target));
        assert_eq!(bare(&again).as_ref(), Some(&wanted), "{}", exported.text);
    }
}

/// The files of a case, and what its reader answered.
fn case(name: &str) -> (Files, Vec<(String, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/formats/cases").join(name);
    let (mut files, mut answers) = (Files::new(), Vec::new());
    for entry in std::fs::read_dir(folder).expect("a case") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name == "expected" {
            let set = text.lines().filter_map(|line| line.strip_prefix("set ")?.split_once(" = "));
            answers = set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        } else {
            files.push((name, text));
        }
    }
    (files, answers)
}

/// Plans for torchtitan and Hugging Face's trainers can be expressed completely in their own files.
#[test]
fn torchtitan_and_accelerate_say_their_own_plans() {
    let script = |text: &str| (vec![("run.sh".to_owned(), text.to_owned())], Vec::new());
    let fsdp = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_version: 2\n";
    let mut sharded = script(
        "accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 \
         --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 true --attn_implementation flash_attention_2",
    );
    sharded.0.push(("fsdp.yaml".to_owned(), fsdp.to_owned()));
    let lora = script(
        "torchrun --nproc_per_node 4 sft.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 \
         --gradient_accumulation_steps 4 --max_length 4096 --bf16 true --use_peft --lora_r 16 --lora_target_modules all-linear \
         --use_liger_kernel true --packing true --attn_implementation flash_attention_2",
    );
    let qlora = script(
        "torchrun --nproc_per_node 4 sft.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 \
         --max_length 2048 --bf16 true --use_peft --lora_r 16 --load_in_4bit true --lora_target_modules q_proj v_proj",
    );
    let titan = ["titan", "titan_both", "titan_words", "titan_registry"].map(case);
    // ms-swift's file of ZeRO-2 has buffers of 2e8 elements, and accelerate's own DeepSpeed's 5e8: that is named.
    let mut swift = case("swift_trainer");
    let unsaid = accelerate_yaml(&resolved(&swift.0, &swift.1)).unsaid;
    assert!(unsaid.contains(&Field::ReduceBucketSize), "{unsaid:?}");
    swift.1.push((Field::ReduceBucketSize.name().to_owned(), "500000000".to_owned()));
    let trainers = [case("trainer_script"), swift, sharded, lora, qlora];
    let each = titan.iter().map(|run| (true, run)).chain(trainers.iter().map(|run| (false, run)));
    for (is_titan, (files, answers)) in each {
        let target = resolved(files, answers);
        let wanted = bare(&target).expect("a plan");
        let (command, file, exported) = if is_titan {
            (torchtitan_command(&target), TITAN_FILE, torchtitan_toml(&target))
        } else {
            (accelerate_command(&target), ACCELERATE_FILE, accelerate_yaml(&target))
        };
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        assert!(exported.text.starts_with(&format!("# {command}\n")), "{}", exported.text);
        let again = vec![("run.sh".to_owned(), command), (file.to_owned(), exported.text.clone())];
        assert_eq!(bare(&resolved(&again, &machine(&target))).as_ref(), Some(&wanted), "{}", exported.text);
    }
}

/// What a file cannot express is named: Megatron-LM's shapes and optimizer in torchtitan, tensor parallelism in
/// accelerate.
#[test]
fn what_torchtitan_and_accelerate_cannot_say_is_named() {
    let files = vec![(
        "run.sh".to_owned(),
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \
         --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 32 --vocab-size 50257 --bf16 \
         --tensor-model-parallel-size 2"
            .to_owned(),
    )];
    let target = resolved(&files, &[]);
    let (titan, accelerate) = (torchtitan_toml(&target), accelerate_yaml(&target));
    for field in [Field::NumLayers, Field::HiddenSize, Field::Software] {
        assert!(titan.unsaid.contains(&field) && accelerate.unsaid.contains(&field), "{}", field.name());
    }
    assert!(accelerate.unsaid.contains(&Field::TensorModelParallelSize), "{:?}", accelerate.unsaid);
    assert!(!titan.unsaid.contains(&Field::TensorModelParallelSize), "{:?}", titan.unsaid);
}

/// Explicit stages from a search determine their chunks; Megatron's `arguments.py` refuses both being stated.
#[test]
fn stages_written_out_are_a_command_without_their_number_of_chunks() {
    let line = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 14 --hidden-size 1024 --num-attention-heads 16 \
        --seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 64 --bf16 \
        --pipeline-model-parallel-size 4";
    let set = [
        ("pipeline_model_parallel_layout".to_owned(), "E(t*2|)*7L".to_owned()),
        ("virtual_pipeline_model_parallel_size".to_owned(), "2".to_owned()),
    ];
    let target = resolved(&[("run.sh".to_owned(), line.to_owned())], &set);
    assert!(target.plan.is_some(), "{:?}", target.diagnostics);
    let command = megatron_command(&target);
    assert_eq!(command.unsaid, [], "{}", command.text);
    let again = resolved(&[("run.sh".to_owned(), command.text)], &machine(&target));
    assert_eq!(bare(&again), bare(&target));
}
