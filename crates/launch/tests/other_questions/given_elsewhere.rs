//! Settings that lie in a file which the text does not give, and names that only some models' layers have.

use super::{Environment, Field, Request, Source, read, said, value};
use shardscope_launch::Resolution;
use shardscope_source::Code;

fn tells(read: &Resolution, code: Code) -> bool {
    read.diagnostics.iter().any(|said| said.code == code)
}

/// A file that a variable names says what trains: its program's defaults are no answer.
#[test]
fn a_file_that_a_variable_names_is_not_its_programs_defaults() {
    let answers = [
        ("model", "meta-llama/Llama-2-7b-hf"),
        ("world_size", "8"),
        ("seq_length", "2048"),
        ("micro_batch_size", "1"),
    ];
    for line in [
        "llamafactory-cli train $1\n",
        "CONFIG_FILE=\"$1\"\naccelerate launch --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n",
        "accelerate launch --num_machines 1 --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n",
        "CONFIG=$2\naccelerate launch --num_machines 1 --num_processes 8 --mixed_precision bf16 open_instruct/dpo_tune_cache.py $CONFIG\n",
    ] {
        let read = said("run.sh", line, &answers);
        assert!(read.plan.is_none(), "{line}: a verdict all the same");
        assert!(tells(&read, Code::MissingFile), "{line}: {:?}", read.diagnostics);
    }
    // Beside the file it is the one that is meant.
    let file = "model_name_or_path: meta-llama/Llama-2-7b-hf\nuse_lora: true\nlora_rank: 16\nmax_seq_length: 1024\n\
                per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\n";
    let line =
        "accelerate launch --num_machines 1 --num_processes 8 open_instruct/finetune.py \"$CONFIG_FILE\"\n";
    let source = Source::from_files([("run.sh", line), ("mine.yaml", file)]);
    let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(!tells(&read, Code::MissingFile), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::SeqLength), "1024");
}

/// open-instruct's programs have no option for it: accelerate's file says what is sharded.
#[test]
fn files_of_open_instruct_leave_sharding_to_the_launch() {
    let file = "model_name_or_path: meta-llama/Llama-2-7b-hf\nuse_slow_tokenizer: true\nmax_seq_length: 4096\n\
                preprocessing_num_workers: 8\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\n\
                with_tracking: true\ndataset_mixer:\n  a/b: 1.0\n";
    let read = said("mine.yaml", file, &[("world_size", "8")]);
    let asked: Vec<&str> = read.questions.iter().map(|asked| asked.name()).collect();
    assert_eq!((asked, read.plan.is_some()), (vec!["zero_stage"], false), "{:?}", read.diagnostics);
}

/// Phi-2's layers are q_proj, k_proj, v_proj, dense, fc1 and fc2 (`transformers/models/phi/modeling_phi.py`).
#[test]
fn adapters_are_on_layers_that_the_model_has() {
    let recipe = |model: &str| {
        let text = format!(
            "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler:\n  global_batch_size: 16\n  local_batch_size: 2\nmodel:\n  \
             _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n  pretrained_model_name_or_path: {model}\npeft:\n  \
             _target_: nemo_automodel.components._peft.lora.PeftConfig\n  target_modules: '*_proj'\n  dim: 16\n"
        );
        let read = said("recipe.yaml", &text, &[("world_size", "8"), ("seq_length", "1024")]);
        value(&read, Field::LoraTargetModules)
    };
    assert_eq!(recipe("microsoft/phi-2"), "q_proj k_proj v_proj");
    assert_eq!(recipe("meta-llama/Llama-3.2-1B"), "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj");
    let line = |targets: &str| {
        let text = format!(
            "python train.py --model_name_or_path microsoft/phi-2 --use_peft --lora_r 16 --lora_target_modules {targets} \
             --per_device_train_batch_size 2 --max_seq_length 512 --output_dir o --bf16\n"
        );
        value(&said("run.sh", &text, &[]), Field::LoraTargetModules)
    };
    assert_eq!(line("q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"), "q_proj v_proj");
    assert_eq!(line("q_proj,v_proj,dense,fc2"), "q_proj v_proj dense fc2");
}

/// NeMo 1: Apex's distributed Adam completes bf16 weights by 16 bits, where Megatron's holds them in fp32 once more.
#[test]
fn apexs_distributed_adam_keeps_remainders() {
    let with = |more: &str| {
        let text = format!(
            "trainer: {{num_nodes: 1, devices: 8, precision: bf16}}\nmodel:\n  mcore_gpt: true\n  num_layers: 12\n  hidden_size: 1024\n  \
             num_attention_heads: 16\n  encoder_seq_length: 1024\n  micro_batch_size: 1\n  global_batch_size: 32\n  vocab_size: 32000\n  \
             megatron_amp_O2: true\n  sync_batch_comm: false\n  grad_div_ar_fusion: true\n{more}"
        );
        said("nemo.yaml", &text, &[])
    };
    let apex = "  optim:\n    name: distributed_fused_adam\n    bucket_cap_mb: 125\n    contiguous_grad_buffer: true\n";
    let read = with(apex);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::UsePrecisionAwareOptimizer), "true");
    assert!(!tells(&read, Code::KeysNotRead), "{:?}", read.diagnostics);
    let other = with("  optim:\n    name: mcore_distributed_optim\n    ddp_bucket_size: 40000000\n");
    assert_eq!(value(&other, Field::UsePrecisionAwareOptimizer), "false");
    let stored = with(&format!("  fp8: true\n  fp8_params: true\n{apex}"));
    assert_eq!(value(&stored, Field::UsePrecisionAwareOptimizer), "false");
}

/// The first Qwen's own code (`modeling_qwen.py`) has one projection for queries, keys and values, and turns itself to bf16.
#[test]
fn the_first_qwen_runs_code_of_its_own() {
    let line = |model: &str| {
        let text = format!(
            "python finetune.py --model_name_or_path {model} --data_path d.json --bf16 True --output_dir o \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --evaluation_strategy no --model_max_length 512 \
             --gradient_checkpointing True --lazy_preprocess True --use_lora\n"
        );
        said("run.sh", &text, &[("model", "Qwen/Qwen1.5-7B-Chat")])
    };
    let first = line("Qwen/Qwen-7B-Chat");
    assert_eq!(value(&first, Field::FusedQkv), "true");
    assert_eq!(value(&first, Field::ParamsDtype), "bf16");
    assert!(first.questions.is_empty(), "{:?}", first.questions);
    assert!(first.plan.is_some(), "{:?}", first.diagnostics);
    assert_eq!(value(&line("Qwen/Qwen1.5-7B-Chat"), Field::FusedQkv), "");
}
