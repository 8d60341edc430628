//! oumi's settings, which are those of the underlying trainers under other names.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;
use shardscope_source::Code;

const MODEL: &str = "model:\n  model_name: Qwen/Qwen3-8B\n  model_max_length: 4096\n  torch_dtype_str: bfloat16\n  \
    attn_implementation: sdpa\ndata:\n  train:\n    datasets:\n      - dataset_name: a\n";
const TRAINING: &str = "training:\n  trainer_type: TRL_SFT\n  per_device_train_batch_size: 2\n  gradient_accumulation_steps: 8\n  \
    enable_gradient_checkpointing: true\n  learning_rate: 1e-4\n  save_steps: 100\n  output_dir: b\n";

fn read(text: &str) -> Resolution {
    said("train.yaml", text, &[("world_size", "8")])
}

#[test]
fn a_supervised_training_is_trls_with_oumis_defaults() {
    let read = read(&format!("{MODEL}{TRAINING}"));
    assert!(read.plan.is_some(), "{:?}", read.not_modelled);
    let shown = [
        Field::SeqLength,
        Field::MicroBatchSize,
        Field::NumMicroBatches,
        Field::GradientCheckpointing,
        Field::ParamsDtype,
        Field::Bf16,
        Field::TrainType,
    ]
    .map(|field| value(&read, field));
    // Mixed precision is off by default: the weights train in bf16 without fp32 copies.
    assert_eq!(shown, ["4096", "2", "8", "true", "bf16", "false", "full"]);
    let bare =
        self::read(&format!("{MODEL}{}", TRAINING.replace("  enable_gradient_checkpointing: true\n", "")));
    assert_eq!(
        value(&bare, Field::GradientCheckpointing),
        "false",
        "where TRL's own default is to checkpoint"
    );
    let mixed = self::read(
        &format!("{MODEL}{TRAINING}  mixed_precision_dtype: BF16\n").replace("bfloat16", "float32"),
    );
    assert_eq!([Field::ParamsDtype, Field::Bf16].map(|field| value(&mixed, field)), ["fp32", "true"]);
}

#[test]
fn groups_count_where_they_are_switched_on() {
    let peft = "peft:\n  lora_r: 16\n  lora_target_modules: [q_proj, v_proj]\n  q_lora: true\n";
    let off = read(&format!("{MODEL}{TRAINING}{peft}"));
    assert_eq!([Field::TrainType, Field::LoraRank].map(|field| value(&off, field)), ["full", ""]);
    let on = read(&format!("{MODEL}{TRAINING}  use_peft: true\n{peft}"));
    let shown = [Field::TrainType, Field::LoraRank, Field::BaseQuantization, Field::LoraDropout];
    assert_eq!(shown.map(|field| value(&on, field)), ["qlora", "16", "fp4", "0"]);
    let fsdp = "fsdp:\n  enable_fsdp: true\n  sharding_strategy: SHARD_GRAD_OP\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    let sharded = read(&format!("{MODEL}{TRAINING}{fsdp}"));
    let shown = [Field::DataParallelEngine, Field::ZeroStage, Field::GradientCheckpointing];
    assert_eq!(shown.map(|field| value(&sharded, field)), ["fsdp1", "2", "true"]);
    let unused = fsdp.replace("enable_fsdp: true", "enable_fsdp: false");
    assert_eq!(value(&read(&format!("{MODEL}{TRAINING}{unused}")), Field::DataParallelEngine), "");
    // Packed weights are sharded if they are stored in a float format.
    let packed = |storage: &str| read(&format!("{MODEL}{TRAINING}  use_peft: true\n{peft}{storage}{fsdp}"));
    assert!(packed("  bnb_4bit_quant_storage: bfloat16\n").plan.is_some());
    stopped(&packed(""), &["peft.q_lora"]);
    // Arguments of the underlying trainer keep their own names.
    let liger = read(&format!("{MODEL}{TRAINING}  trainer_kwargs:\n    use_liger_kernel: true\n"));
    assert_eq!(value(&liger, Field::LigerKernel), "true");
    // Without a policy the entire model is one unit.
    let whole = fsdp.replace("  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n", "");
    stopped(&read(&format!("{MODEL}{TRAINING}{whole}")), &["fsdp.enable_fsdp"]);
}

#[test]
fn other_trainers_of_it_are_theirs_or_stop() {
    let with = |trainer: &str| read(&format!("{MODEL}{}", TRAINING.replace("TRL_SFT", trainer)));
    assert_eq!(value(&with("TRL_DPO"), Field::TrainingObjective), "dpo");
    assert_eq!(value(&with("TRL_KTO"), Field::TrainingObjective), "kto");
    for trainer in ["TRL_GRPO", "TRL_GOLD", "VERL_GRPO", "OUMI"] {
        stopped(&with(trainer), &["training.trainer_type"]);
    }
    let frozen = MODEL.replace("data:", "  freeze_layers: [model.visual]\ndata:");
    stopped(&read(&format!("{frozen}{TRAINING}")), &["model.freeze_layers"]);
    stopped(
        &read(&format!("{MODEL}{TRAINING}deepspeed:\n  enable_deepspeed: true\n")),
        &["deepspeed.enable_deepspeed"],
    );
}

#[test]
fn bf16_that_is_false_turns_trls_default_off() {
    let file = "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 2\nmax_length: 2048\nlearning_rate: 1e-5\n";
    assert_eq!(value(&read(file), Field::Bf16), "true");
    let off = read(&format!("{file}bf16: false\n"));
    assert_eq!([Field::Bf16, Field::ParamsDtype].map(|field| value(&off, field)), ["false", "fp32"]);
}

/// `oumi train -c FILE` with words that change its keys, by the launcher or a command that the machine decides on: the file says what
/// trains, and no word of `training.` is torchtitan's.
#[test]
fn the_file_of_its_command_is_asked_for() {
    let words = "-c configs/recipes/gpt2/pretraining/train.yaml --training.run_name a --training.max_steps 100 \
        --training.save_steps 0 --training.enable_wandb true";
    for command in [
        format!("oumi train {words}"),
        format!("oumi distributed torchrun -m oumi train {words}"),
        format!(
            "if [ $N -gt 1 ]; then\n  RUN=\"oumi distributed torchrun -m oumi train\"\nelse\n  RUN=\"oumi train\"\nfi\n$RUN {words}"
        ),
    ] {
        let resolution = said("run.sh", &format!("{command}\n"), &[]);
        let missing = resolution.diagnostics.iter().any(|said| {
            said.code == Code::MissingFile
                && said.message == "this training takes its settings from train.yaml, which is not here"
        });
        assert!(missing, "{command}: {:?}", resolution.diagnostics);
        stopped(&resolution, &[]);
    }
}
