//! The text of DeepSpeed's configuration for a plan.

use crate::round::written;
use shardscope_launch::Resolution;
use shardscope_plan::{Field, NumberFormat};

/// DeepSpeed's configuration, by the name that the command gives it.
pub const DEEPSPEED_FILE: &str = "ds_config.json";

/// What the configuration states, whether or not that is the whole plan.
pub(crate) fn deepspeed_text(resolution: &Resolution) -> String {
    let value = |field| written(resolution, field);
    let on = |field| resolution.on(field);
    let mut lines = Vec::new();
    for (key, field) in [
        ("train_batch_size", Field::GlobalBatchSize),
        ("train_micro_batch_size_per_gpu", Field::MicroBatchSize),
        ("gradient_accumulation_steps", Field::NumMicroBatches),
    ] {
        if !value(field).is_empty() {
            lines.push(format!("  \"{key}\": {}", value(field)));
        }
    }
    let stage = resolution.count(Field::ZeroStage).unwrap_or(0);
    let mut zero = vec![format!("    \"stage\": {stage}")];
    zero.push(format!("    \"overlap_comm\": {}", on(Field::OverlapGradReduce)));
    for (key, field) in
        [("offload_optimizer", Field::OffloadOptimizer), ("offload_param", Field::OffloadParam)]
    {
        if on(field) {
            zero.push(format!("    \"{key}\": {{\"device\": \"cpu\"}}"));
        }
    }
    lines.push(format!("  \"zero_optimization\": {{\n{}\n  }}", zero.join(",\n")));
    for (key, field) in [("bf16", Field::Bf16), ("fp16", Field::Fp16)] {
        if on(field) {
            lines.push(format!("  \"{key}\": {{\"enabled\": true}}"));
        }
    }
    if resolution.format(Field::GradsDtype) == Some(NumberFormat::Fp32) && on(Field::Bf16) {
        lines.push("  \"data_types\": {\"grad_accum_dtype\": \"fp32\"}".to_owned());
    }
    if on(Field::DistributeSavedActivations) {
        lines.push("  \"activation_checkpointing\": {\"partition_activations\": true}".to_owned());
    }
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}
