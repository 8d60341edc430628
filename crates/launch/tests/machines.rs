//! The hint if a settings file leaves the number of accelerators open: the command line of its framework.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Code, Source};

fn resolved(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn hint(read: &Resolution) -> String {
    let said = read.diagnostics.iter().find(|said| said.code == Code::NoWorldSize);
    said.and_then(|said| said.hint.clone()).unwrap_or_default()
}

fn world(read: &Resolution) -> Option<String> {
    read.setting(Field::WorldSize).map(|setting| setting.value.written()).filter(|value| !value.is_empty())
}

/// Files without machines, each with its framework's command line.
const FILES: [(&str, &str, &str); 8] = [
    (
        "axolotl.yaml",
        "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 2\nadapter: lora\nlora_r: 8\nlora_alpha: 16\n\
         lora_target_linear: true\nbf16: true\ndatasets:\n  - path: a\n",
        "accelerate launch --num_machines 2 --num_processes 16 -m axolotl.cli.train …",
    ),
    (
        "sft.yaml",
        "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\nfinetuning_type: lora\ncutoff_len: 2048\n\
         per_device_train_batch_size: 1\nbf16: true\ntemplate: qwen\n",
        "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train …",
    ),
    (
        "swift.yaml",
        "model: Qwen/Qwen3-8B\ntuner_type: lora\nlora_rank: 8\nmax_length: 2048\nper_device_train_batch_size: 1\n\
         torch_dtype: bfloat16\n",
        "NNODES=2 NPROC_PER_NODE=8 swift sft …",
    ),
    (
        "trl.yaml",
        "model_name_or_path: Qwen/Qwen3-8B\ndataset_name: a\nmax_length: 2048\nper_device_train_batch_size: 1\nbf16: true\n\
         packing: true\nlearning_rate: 1.0e-5\n",
        "accelerate launch --num_machines 2 --num_processes 16 train.py …",
    ),
    (
        "8B_full.yaml",
        "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n  \
         max_seq_len: 2048\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\ndtype: bf16\n",
        "tune run --nnodes 2 --nproc_per_node 8 RECIPE --config …",
    ),
    (
        "ds_config.json",
        r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "train_micro_batch_size_per_gpu": 1}"#,
        "deepspeed --num_nodes 2 --num_gpus 8 train.py …",
    ),
    (
        "accelerate.yaml",
        "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_version: 2\n",
        "accelerate launch --num_machines 2 --num_processes 16 …",
    ),
    // Everything that torchrun starts.
    (
        "llama3_8b.toml",
        "[job]\ndump_folder = \"out\"\n[metrics]\nlog_freq = 10\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n\
         local_batch_size = 1\nseq_len = 8192\n",
        "torchrun --nnodes 2 --nproc_per_node 8 …",
    ),
];

#[test]
fn the_line_that_is_lacking_is_that_of_the_files_framework() {
    for (name, text, line) in FILES {
        let alone = resolved(&[(name, text)]);
        assert_eq!(world(&alone), None, "{name}");
        let hint = hint(&alone);
        let advice =
            hint.strip_suffix(", or answer the questions").unwrap_or_else(|| panic!("{name}: {hint:?}"));
        assert!(advice.ends_with(&format!("add the launch line ({line})")), "{name}: {hint}");
        // That line gives the machines.
        let filled =
            line.replace("RECIPE", "full_finetune_distributed").replace('…', &format!("train.py {name}"));
        let both = resolved(&[(name, text), ("run.sh", &filled)]);
        assert_eq!(world(&both).as_deref(), Some("16"), "{filled}: {:?}", both.diagnostics);
    }
}
