//! What the YAML of `accelerate config` states about a plan: machines, precision, DeepSpeed or FSDP. The model, the
//! batch and what trains remain options of the program that it launches.

use crate::named::model_name;
use crate::round::{Exported, unsaid, written};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

/// The name that the command of [`accelerate_yaml`] gives to its file.
pub const ACCELERATE_FILE: &str = "accelerate.yaml";

/// Settings that trainer options state, as `transformers/training_args.py`, PEFT and TRL call them.
const OPTIONS: [(&str, Field); 11] = [
    ("per_device_train_batch_size", Field::MicroBatchSize),
    ("gradient_accumulation_steps", Field::NumMicroBatches),
    ("max_length", Field::SeqLength),
    ("max_steps", Field::TrainIters),
    ("attn_implementation", Field::AttnImplementation),
    ("lora_r", Field::LoraRank),
    ("lora_alpha", Field::LoraAlpha),
    ("lora_dropout", Field::LoraDropout),
    ("bnb_4bit_quant_type", Field::BaseQuantization),
    ("optim", Field::Optimizer),
    ("experts_implementation", Field::ExpertsImplementation),
];

/// The same for switches.
const SWITCHES: [(&str, Field); 8] = [
    ("bf16", Field::Bf16),
    ("fp16", Field::Fp16),
    ("gradient_checkpointing", Field::GradientCheckpointing),
    ("use_liger_kernel", Field::LigerKernel),
    ("packing", Field::Packing),
    ("use_dora", Field::UseDora),
    ("load_in_4bit", Field::DoubleQuantization),
    ("use_bnb_nested_quant", Field::DoubleQuantization),
];

/// The command for the file of [`accelerate_yaml`], with trainer options for what the file does not state.
#[must_use]
pub fn accelerate_command(resolution: &Resolution) -> String {
    let value = |field| written(resolution, field);
    let mut command = format!("accelerate launch --config_file {ACCELERATE_FILE} train.py");
    let mut say = |option: &str, value: &str| {
        if !value.is_empty() {
            command.push_str(&format!(" --{option} {value}"));
        }
    };
    say("model_name_or_path", model_name(resolution).unwrap_or_default());
    let dtype = match value(Field::ParamsDtype).as_str() {
        "bf16" => "bfloat16",
        "fp16" => "float16",
        "fp32" => "float32",
        _ => "",
    };
    say("dtype", dtype);
    let train = value(Field::TrainType);
    let (adapters, quantized) = (matches!(train.as_str(), "lora" | "qlora"), train == "qlora");
    for (option, field) in OPTIONS {
        let wanted = match field {
            Field::BaseQuantization => quantized,
            Field::LoraRank | Field::LoraAlpha | Field::LoraDropout => adapters,
            _ => true,
        };
        // TRL is recognised by its option for the length, and computes metrics that other trainers do not.
        let of_trl = value(Field::PreferenceLogits) == "own" || option != "max_length";
        let foreach = value(Field::OptimizerForeach) == "true";
        if wanted {
            say(if of_trl { option } else { "max_seq_length" }, &optimizer(&value(field), foreach));
        }
    }
    for (option, field) in SWITCHES {
        match option {
            "load_in_4bit" if quantized => say(option, "true"),
            "load_in_4bit" => {}
            _ if value(field) == "true" => say(option, "true"),
            _ => {}
        }
    }
    if value(Field::ReentrantCheckpoints) == "true" {
        say("gradient_checkpointing_kwargs", "'{\"use_reentrant\": true}'");
    }
    if adapters {
        say("use_peft", "true");
        say("lora_target_modules", &value(Field::LoraTargetModules));
        say("modules_to_save", &value(Field::ModulesToSave));
    }
    command
}

/// The optimizers that Megatron-LM's names refer to, by the Trainer's names.
fn optimizer(value: &str, foreach: bool) -> String {
    match value {
        "adam" if foreach => "adamw_torch".to_owned(),
        "adam" => "adamw_torch_fused".to_owned(),
        other => other.to_owned(),
    }
}

/// accelerate's file for the plan, with its command in the first line. Both are read back together, and what they
/// cannot express is named.
#[must_use]
pub fn accelerate_yaml(resolution: &Resolution) -> Exported {
    let command = accelerate_command(resolution);
    let text = format!("# {command}\n{}", yaml(resolution));
    let unsaid = unsaid(resolution, &[("run.sh", &command), (ACCELERATE_FILE, &text)]);
    Exported { text, unsaid }
}

fn yaml(resolution: &Resolution) -> String {
    let value = |field| written(resolution, field);
    let on = |field| value(field) == "true";
    let engine = value(Field::DataParallelEngine);
    let kind = match engine.as_str() {
        "deepspeed" => "DEEPSPEED",
        "fsdp1" | "fsdp2" => "FSDP",
        _ => "MULTI_GPU",
    };
    let precision = if on(Field::Bf16) {
        "bf16"
    } else if on(Field::Fp16) {
        "fp16"
    } else {
        "'no'"
    };
    let mut out = format!(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: {kind}\nmixed_precision: {precision}\n"
    );
    for (key, field) in [("num_machines", Field::NumNodes), ("num_processes", Field::WorldSize)] {
        if !value(field).is_empty() {
            out.push_str(&format!("{key}: {}\n", value(field)));
        }
    }
    let stage = value(Field::ZeroStage);
    let count = |field| value(field).parse::<u64>().unwrap_or(1).max(1);
    let copies = count(Field::NumDistributedOptimizerInstances);
    match kind {
        "DEEPSPEED" => {
            out.push_str(&format!("deepspeed_config:\n  zero_stage: {stage}\n"));
            let devices = [
                ("offload_optimizer_device", Field::OffloadOptimizer),
                ("offload_param_device", Field::OffloadParam),
            ];
            for (key, _) in devices.into_iter().filter(|(_, field)| on(*field)) {
                out.push_str(&format!("  {key}: cpu\n"));
            }
        }
        "FSDP" => {
            out.push_str("fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n");
            if engine == "fsdp2" {
                let reshard = stage == "3";
                out.push_str(&format!("  fsdp_version: 2\n  fsdp_reshard_after_forward: {reshard}\n"));
            } else {
                // FSDP1's groups are nodes.
                let hybrid = copies > 1 && copies == count(Field::NumNodes);
                let strategy = match stage.as_str() {
                    "3" if hybrid => "HYBRID_SHARD",
                    "2" if hybrid => "HYBRID_SHARD_ZERO2",
                    "3" => "FULL_SHARD",
                    "2" => "SHARD_GRAD_OP",
                    _ => "NO_SHARD",
                };
                out.push_str(&format!("  fsdp_version: 1\n  fsdp_sharding_strategy: {strategy}\n"));
            }
            out.push_str(&format!("  fsdp_offload_params: {}\n", on(Field::OffloadParam)));
            if engine == "fsdp2" && copies > 1 {
                let shards = count(Field::DataParallelSize) / copies;
                let lead = "parallelism_config:\n  parallelism_config_dp";
                out.push_str(&format!(
                    "{lead}_replicate_size: {copies}\n  parallelism_config_dp_shard_size: {shards}\n"
                ));
            }
        }
        _ => {}
    }
    out
}
