//! What the YAML of `accelerate config` states about a plan: machines, precision, DeepSpeed or FSDP. The model, the
//! batch and what trains remain options of the program that it launches.

use crate::named::model_name;
use crate::round::{Exported, unsaid, written};
use shardscope_launch::Resolution;
use shardscope_plan::word::{DataParallelEngine, Optimizer, PreferenceLogits, TrainType};
use shardscope_plan::{Field, NumberFormat};

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
    let dtype = match resolution.format(Field::ParamsDtype) {
        Some(NumberFormat::Bf16) => "bfloat16",
        Some(NumberFormat::Fp16) => "float16",
        Some(NumberFormat::Fp32) => "float32",
        Some(NumberFormat::Fp8) | None => "",
    };
    say("dtype", dtype);
    let quantized = resolution.is(TrainType::QLora);
    let adapters = quantized || resolution.is(TrainType::Lora);
    let foreach = resolution.on(Field::OptimizerForeach);
    for (option, field) in OPTIONS {
        let wanted = match field {
            Field::BaseQuantization => quantized,
            Field::LoraRank | Field::LoraAlpha | Field::LoraDropout => adapters,
            _ => true,
        };
        // TRL is recognised by its option for the length, and computes metrics that other trainers do not.
        let of_trl = resolution.is(PreferenceLogits::Own) || field != Field::SeqLength;
        if wanted {
            let value = match field {
                Field::Optimizer if resolution.is(Optimizer::Adam) && foreach => "adamw_torch".to_owned(),
                Field::Optimizer if resolution.is(Optimizer::Adam) => "adamw_torch_fused".to_owned(),
                _ => value(field),
            };
            say(if of_trl { option } else { "max_seq_length" }, &value);
        }
    }
    let on = |field| resolution.on(field);
    for (option, is_on) in [
        ("bf16", on(Field::Bf16)),
        ("fp16", on(Field::Fp16)),
        ("gradient_checkpointing", on(Field::GradientCheckpointing)),
        ("use_liger_kernel", on(Field::LigerKernel)),
        ("packing", on(Field::Packing)),
        ("use_dora", on(Field::UseDora)),
        ("load_in_4bit", quantized),
        ("use_bnb_nested_quant", on(Field::DoubleQuantization)),
    ] {
        if is_on {
            say(option, "true");
        }
    }
    if resolution.on(Field::ReentrantCheckpoints) {
        say("gradient_checkpointing_kwargs", "'{\"use_reentrant\": true}'");
    }
    if adapters {
        say("use_peft", "true");
        say("lora_target_modules", &value(Field::LoraTargetModules));
        say("modules_to_save", &value(Field::ModulesToSave));
    }
    command
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
    let on = |field| resolution.on(field);
    let engine = resolution.chosen().unwrap_or(DataParallelEngine::Ddp);
    let kind = match engine {
        DataParallelEngine::DeepSpeed => "DEEPSPEED",
        DataParallelEngine::Fsdp1 | DataParallelEngine::Fsdp2 => "FSDP",
        DataParallelEngine::Ddp => "MULTI_GPU",
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
    let stage = resolution.count(Field::ZeroStage);
    let count = |field| resolution.count(field).unwrap_or(1).max(1);
    let copies = count(Field::NumDistributedOptimizerInstances);
    match engine {
        DataParallelEngine::DeepSpeed => {
            let stage = value(Field::ZeroStage);
            out.push_str(&format!("deepspeed_config:\n  zero_stage: {stage}\n"));
            let devices = [
                ("offload_optimizer_device", Field::OffloadOptimizer),
                ("offload_param_device", Field::OffloadParam),
            ];
            for (key, _) in devices.into_iter().filter(|(_, field)| on(*field)) {
                out.push_str(&format!("  {key}: cpu\n"));
            }
        }
        DataParallelEngine::Fsdp1 | DataParallelEngine::Fsdp2 => {
            out.push_str("fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n");
            if engine == DataParallelEngine::Fsdp2 {
                let reshard = stage == Some(3);
                out.push_str(&format!("  fsdp_version: 2\n  fsdp_reshard_after_forward: {reshard}\n"));
            } else {
                // FSDP1's groups are nodes.
                let hybrid = copies > 1 && copies == count(Field::NumNodes);
                let strategy = match stage {
                    Some(3) if hybrid => "HYBRID_SHARD",
                    Some(2) if hybrid => "HYBRID_SHARD_ZERO2",
                    Some(3) => "FULL_SHARD",
                    Some(2) => "SHARD_GRAD_OP",
                    _ => "NO_SHARD",
                };
                out.push_str(&format!("  fsdp_version: 1\n  fsdp_sharding_strategy: {strategy}\n"));
            }
            out.push_str(&format!("  fsdp_offload_params: {}\n", on(Field::OffloadParam)));
            if engine == DataParallelEngine::Fsdp2 && copies > 1 {
                let shards = count(Field::DataParallelSize) / copies;
                let lead = "parallelism_config:\n  parallelism_config_dp";
                out.push_str(&format!(
                    "{lead}_replicate_size: {copies}\n  parallelism_config_dp_shard_size: {shards}\n"
                ));
            }
        }
        DataParallelEngine::Ddp => {}
    }
    out
}
