//! What DeepSpeed's JSON states about a plan. The model's shape and the layout stay on the command line.

use crate::megatron::{DEEPSPEED_FILE, megatron_command};
use crate::round::{Exported, unsaid, written};
use shardscope_launch::Resolution;
use shardscope_plan::{Field, NumberFormat};

/// DeepSpeed's configuration for the plan, to go with its command. Both are read back together, and what they cannot
/// express is named. That includes stage 0 with bf16, whose optimizer always shards its states, and every plan for
/// other software.
#[must_use]
pub fn deepspeed_json(resolution: &Resolution) -> Exported {
    let text = json(resolution);
    let command = megatron_command(resolution).text;
    let unsaid = unsaid(resolution, &[("run.sh", &command), (DEEPSPEED_FILE, &text)]);
    Exported { text, unsaid }
}

fn json(resolution: &Resolution) -> String {
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
