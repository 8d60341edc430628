//! What torchtitan's TOML states about a plan. Keys: `torchtitan/config/job_config.py` of January 2026, as its reader
//! accepts them.

use crate::megatron::launch;
use crate::named::is_shape;
use crate::round::{Exported, unsaid, written};
use shardscope_catalog as catalog;
use shardscope_launch::Resolution;
use shardscope_plan::word::{LossKind, RecomputeGranularity, RecomputeMethod};
use shardscope_plan::{Field, NumberFormat, PipelineSchedule};

/// Models and flavors that torchtitan's code has (`torchtitan/models/*/__init__.py`), each with its name in the catalog.
const FLAVORS: &[(&str, &str, &str)] = &[
    ("llama3", "8B", "Llama-3.1-8B"),
    ("llama3", "70B", "Llama-3.1-70B"),
    ("llama3", "405B", "Llama-3.1-405B"),
    ("deepseek_v3", "16B", "DeepSeek-V2-Lite"),
    ("deepseek_v3", "236B", "DeepSeek-V2"),
    ("deepseek_v3", "671B", "DeepSeek-V3"),
    ("qwen3", "0.6B", "Qwen3-0.6B"),
    ("qwen3", "1.7B", "Qwen3-1.7B"),
    ("qwen3", "4B", "Qwen3-4B"),
    ("qwen3", "8B", "Qwen3-8B"),
    ("qwen3", "14B", "Qwen3-14B"),
    ("qwen3", "32B", "Qwen3-32B"),
    ("gpt_oss", "20B", "gpt-oss-20B"),
    ("gpt_oss", "120B", "gpt-oss-120B"),
];

/// Schedules with the chunks of a rank (`torch.distributed.pipelining`).
const SCHEDULES: [(PipelineSchedule, u64, &str); 6] = [
    (PipelineSchedule::OneForwardOneBackward, 1, "1F1B"),
    (PipelineSchedule::GPipe, 1, "GPipe"),
    (PipelineSchedule::OneForwardOneBackward, 2, "Interleaved1F1B"),
    (PipelineSchedule::ZeroBubbleV, 2, "ZBVZeroBubble"),
    (PipelineSchedule::DualPipeV, 2, "DualPipeV"),
    (PipelineSchedule::ZeroBubbleH1, 2, "InterleavedZeroBubble"),
];

/// The name that the command of [`torchtitan_toml`] gives its file.
pub const TITAN_FILE: &str = "train.toml";

/// The command that takes the file of [`torchtitan_toml`]: only the command states the machines.
#[must_use]
pub fn torchtitan_command(resolution: &Resolution) -> String {
    format!("{} --job.config_file {TITAN_FILE}", launch(resolution, "-m torchtitan.train"))
}

/// torchtitan's TOML for the plan, with its command in the first line. Both are read back together, and what they
/// cannot express is named, such as a shape for which torchtitan has no flavor.
#[must_use]
pub fn torchtitan_toml(resolution: &Resolution) -> Exported {
    let command = torchtitan_command(resolution);
    let text = format!("# {command}\n{}", toml(resolution));
    let unsaid = unsaid(resolution, &[("run.sh", &command), (TITAN_FILE, &text)]);
    Exported { text, unsaid }
}

/// A table of the file, omitted if it has no keys.
struct Table {
    name: &'static str,
    lines: String,
}

impl Table {
    const fn called(name: &'static str) -> Self {
        Self { name, lines: String::new() }
    }

    fn number(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.lines.push_str(&format!("{key} = {value}\n"));
        }
    }

    fn word(&mut self, key: &str, value: &str) {
        self.number(key, &format!("\"{value}\""));
    }

    fn into_text(self) -> String {
        if self.lines.is_empty() { String::new() } else { format!("\n[{}]\n{}", self.name, self.lines) }
    }
}

fn toml(resolution: &Resolution) -> String {
    let value = |field| written(resolution, field);
    let count = |field| resolution.count(field).unwrap_or(1).max(1);
    let on = |field| resolution.on(field);
    let mut model = Table::called("model");
    let flavor = FLAVORS
        .iter()
        .find(|(.., name)| catalog::model(name).is_some_and(|(_, settings)| is_shape(resolution, &settings)));
    if let Some((name, flavor, _)) = flavor {
        model.word("name", name);
        model.word("flavor", flavor);
    }
    if !value(Field::Fp8).is_empty() {
        model.number("converters", "[\"float8\"]");
    }
    let mut training = Table::called("training");
    let stages = count(Field::PipelineModelParallelSize);
    let (micro, micro_batches) = (count(Field::MicroBatchSize), count(Field::NumMicroBatches));
    let local = if stages > 1 { micro.saturating_mul(micro_batches) } else { micro };
    training.number("local_batch_size", &local.to_string());
    if stages == 1 && micro_batches > 1 {
        training.number("global_batch_size", &value(Field::GlobalBatchSize));
    }
    training.number("seq_len", &value(Field::SeqLength));
    training.number("steps", &value(Field::TrainIters));
    training.word("mixed_precision_param", if on(Field::Bf16) { "bfloat16" } else { "float32" });
    let half = |field| resolution.format(field) == Some(NumberFormat::Bf16);
    if half(Field::MainParamsDtype) {
        training.word("dtype", "bfloat16");
    }
    if half(Field::GradsDtype) && resolution.count(Field::ZeroStage) > Some(0) {
        training.word("mixed_precision_reduce", "bfloat16");
    }
    if on(Field::OffloadOptimizer) {
        training.number("enable_cpu_offload", "true");
    }
    let mut parallelism = Table::called("parallelism");
    let stage = resolution.count(Field::ZeroStage).unwrap_or(0);
    let sharded = stage > 0;
    let replicas = count(Field::DataParallelSize);
    let copies = if sharded { count(Field::NumDistributedOptimizerInstances) } else { replicas };
    parallelism.number("data_parallel_replicate_degree", &copies.to_string());
    parallelism.number("data_parallel_shard_degree", &(replicas / copies).max(1).to_string());
    parallelism.word("fsdp_reshard_after_forward", if stage == 3 { "always" } else { "never" });
    for (key, field) in [
        ("tensor_parallel_degree", Field::TensorModelParallelSize),
        ("pipeline_parallel_degree", Field::PipelineModelParallelSize),
        ("context_parallel_degree", Field::ContextParallelSize),
        ("expert_parallel_degree", Field::ExpertModelParallelSize),
    ] {
        parallelism.number(key, &value(field));
    }
    if count(Field::ExpertModelParallelSize) > 1 {
        parallelism.number("expert_tensor_parallel_degree", &value(Field::ExpertTensorParallelSize));
    }
    if on(Field::TpCommOverlap) {
        parallelism.number("enable_async_tensor_parallel", "true");
    }
    if stages > 1 {
        pipeline(resolution, &mut parallelism, stages, micro);
    }
    let mut compile = Table::called("compile");
    let components = [("model", on(Field::CompiledLayers)), ("loss", resolution.is(LossKind::Compiled))];
    let components: Vec<String> =
        components.iter().filter(|(_, on)| *on).map(|(name, _)| format!("\"{name}\"")).collect();
    if !components.is_empty() {
        compile.number("enable", "true");
        compile.number("components", &format!("[{}]", components.join(", ")));
    }
    let mut optimizer = Table::called("optimizer");
    if on(Field::OptimizerForeach) {
        optimizer.word("implementation", "foreach");
    }
    if on(Field::StepInBackward) {
        optimizer.number("early_step_in_backward", "true");
    }
    let tables = [model, optimizer, training, parallelism, recomputed(resolution, stages), compile];
    tables.map(Table::into_text).concat()
}

fn pipeline(resolution: &Resolution, parallelism: &mut Table, stages: u64, micro: u64) {
    let chunks = resolution.count(Field::VirtualPipelineModelParallelSize).unwrap_or(1).max(1);
    let schedule = resolution.chosen();
    let of = |(known, least, _): &&(PipelineSchedule, u64, &str)| {
        Some(*known) == schedule && *least == chunks.min(2)
    };
    if let Some((.., name)) = SCHEDULES.iter().find(of) {
        parallelism.word("pipeline_parallel_schedule", name);
    }
    parallelism.number("pipeline_parallel_microbatch_size", &micro.to_string());
    let layers = resolution.count(Field::NumLayers).unwrap_or(0);
    let parts = stages.saturating_mul(chunks);
    if chunks > 1 && parts > 0 && layers.is_multiple_of(parts) {
        parallelism.number("pipeline_parallel_layers_per_stage", &(layers / parts).to_string());
    }
}

/// Layers recomputed whole, some of them, or parts of each.
fn recomputed(resolution: &Resolution, stages: u64) -> Table {
    let mut table = Table::called("activation_checkpoint");
    let layers = resolution.count(Field::NumLayers).unwrap_or(0) / stages;
    let recomputed = resolution.count(Field::RecomputeNumLayers).unwrap_or(0);
    match (resolution.chosen(), resolution.chosen()) {
        (Some(RecomputeGranularity::Full), Some(RecomputeMethod::Block)) if recomputed > 0 => {
            table.word("mode", "selective");
            table.word("selective_ac_option", &(layers / recomputed).max(1).to_string());
        }
        (Some(RecomputeGranularity::Full), _) => table.word("mode", "full"),
        (Some(RecomputeGranularity::Selective), _) => {
            table.word("mode", "selective");
            table.word("selective_ac_option", "op");
        }
        (None, _) => table.word("mode", "none"),
    }
    table
}
