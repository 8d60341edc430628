//! The figures that the analysis tool of 2023 prints, counted its way.
//!
//! Source: `get_training_info.py` of the tool proposed for Megatron-LM in September 2023, run on 28
//! configurations. Letters: `h` hidden, `f` MLP width, `s` sequence, `b` micro-batch, `t` `p` `d` tensor,
//! pipeline and data parallel sizes, `V` padded vocabulary, `L` layers of a stage. Its "GB" is 2^30 bytes.

use shardscope_plan::{NumberFormat, Plan};
use shardscope_units::{Bytes, Count, Quantity};

/// Everything the tool prints for a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFigures {
    /// The whole model, before sharding.
    pub full: ToolMemory,
    /// One GPU; the tool gives every GPU the same figure.
    pub per_gpu: ToolMemory,
    /// Saved activations of one layer without sharding.
    pub layer_activations: Bytes,
    /// Gradient accumulation steps.
    pub num_micro_batches: u64,
    /// One pipeline message.
    pub pipeline_message: Bytes,
    /// Pipeline communication.
    pub pipeline: ToolTraffic,
    /// Data-parallel communication (one GPU's, though printed as the cluster's).
    pub data: ToolTraffic,
    /// Gradient reduce-scatter of one GPU.
    pub reduce_scatter: Bytes,
    /// Parameter all-gather of one GPU.
    pub all_gather: Bytes,
    /// Tensor-parallel communication.
    pub tensor: ToolTraffic,
    /// Tensor-parallel messages of one GPU in one micro-batch.
    pub tensor_per_micro_batch: u64,
}

/// Memory as the tool splits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolMemory {
    /// Parameters.
    pub count: Count,
    /// Bytes of parameters.
    pub parameters: Bytes,
    /// Bytes of gradients.
    pub gradients: Bytes,
    /// Bytes of optimizer states.
    pub optimizer: Bytes,
    /// Bytes of activations as printed on their line.
    pub activations: Bytes,
    /// The sum it prints: "Total memory demand" or "Memory Requirement".
    pub total: Bytes,
}

/// Messages of one iteration as the tool counts them for the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolTraffic {
    /// Messages per iteration.
    pub frequency: u64,
    /// Bytes per iteration.
    pub volume: Bytes,
}

/// The tool's own MLP width: two thirds of 4h rounded down to a multiple of 64, regardless of the script.
#[must_use]
pub fn tool_ffn(hidden_size: u64) -> u64 {
    hidden_size * 8 / 3 / 64 * 64
}

/// What the tool would print for `plan`.
#[must_use]
pub fn tool_figures(plan: &Plan) -> ToolFigures {
    let (model, layout, recipe) = (plan.model(), plan.layout(), plan.recipe());
    let (h, t, p, d) = (model.hidden_size, layout.tensor, layout.pipeline, layout.data);
    let f = tool_ffn(h);
    let width = recipe.params_dtype.width();
    let tokens = model.seq_length * recipe.micro_batch_size;
    // In the tool's order of division, because the comparison has to reproduce its rounding.
    let num_micro_batches = recipe.global_batch_size / recipe.micro_batch_size / d.max(1);
    let stage_layers = model.num_layers / p;
    let parameters = |layers: u64, t: u64| {
        // Departures 1, 2 and 6 are in these three lines: h for the QKV bias, biases not divided by t, f of its own.
        let layer = (4 * h * h + 3 * h * f) / t + 7 * h + 2 * f;
        layers * layer + model.padded_vocab_size * h / t + model.seq_length * h
    };
    let embedding = Bytes::new(tokens * h * 3 / 2 * width);
    let layer = |t: u64| Bytes::new((5 * tokens * h + (5 * tokens * h + 4 * tokens * f) / t) * width);
    let logits = Bytes::new(tokens * model.padded_vocab_size * width);
    let full_activations = embedding + layer(1) * model.num_layers + Bytes::new(logits.get() * 9 / 2);
    // Times p: departure 8.
    let activations = (layer(t) * stage_layers + embedding) * p;
    let loss_factor = if recipe.params_dtype == NumberFormat::Bf16 { 5 } else { 2 };
    // Departures 9 and 10.
    let loss = if p == 1 { Bytes::new(logits.get() * loss_factor / t) } else { Bytes::ZERO };

    let message = Bytes::new(tokens * h * width);
    // Departure 16.
    let pipeline_calls = if p > 1 { 4 * num_micro_batches * layout.world_size } else { 0 };
    let tensor_per_micro_batch = if t > 1 { 4 * stage_layers } else { 0 };
    let tensor_calls = tensor_per_micro_batch * num_micro_batches * layout.world_size;
    let per_gpu_count = Count::new(parameters(stage_layers, t));
    let gradients = gradient_width(recipe.params_dtype);
    let reduce_scatter = per_gpu_count.bytes(gradients);
    ToolFigures {
        full: memory(recipe.params_dtype, Count::new(parameters(model.num_layers, 1)), 1, full_activations),
        per_gpu: with_loss(memory(recipe.params_dtype, per_gpu_count, d, activations), loss),
        layer_activations: layer(1),
        num_micro_batches,
        pipeline_message: message,
        pipeline: ToolTraffic { frequency: pipeline_calls, volume: message * pipeline_calls },
        // Departures 17 and 18: one GPU's, with gradients' bytes both ways.
        data: ToolTraffic { frequency: if d > 1 { 2 } else { 0 }, volume: reduce_scatter * 2 },
        reduce_scatter,
        all_gather: reduce_scatter,
        tensor: ToolTraffic { frequency: tensor_calls, volume: message * tensor_calls },
        tensor_per_micro_batch,
    }
}

/// Bytes of a gradient in the tool's table: 4 in bf16 and fp32, 2 in fp16.
fn gradient_width(dtype: NumberFormat) -> u64 {
    if dtype == NumberFormat::Fp16 { 2 } else { 4 }
}

/// Bytes of optimizer states per parameter in the tool's table.
fn optimizer_width(dtype: NumberFormat) -> u64 {
    match dtype {
        // fp16 has an fp32 gradient copy in the tool's table.
        NumberFormat::Fp16 => 16,
        NumberFormat::Fp32 => 8,
        NumberFormat::Bf16 | NumberFormat::Fp8 => 12,
    }
}

fn memory(dtype: NumberFormat, count: Count, shards: u64, activations: Bytes) -> ToolMemory {
    let parameters = count.bytes(dtype.width());
    let gradients = count.bytes(gradient_width(dtype));
    let optimizer = Bytes::new(count.bytes(optimizer_width(dtype)).get() / shards.max(1));
    let total = parameters + gradients + optimizer + activations;
    ToolMemory { count, parameters, gradients, optimizer, activations, total }
}

fn with_loss(mut memory: ToolMemory, loss: Bytes) -> ToolMemory {
    memory.total += loss;
    memory
}

impl ToolFigures {
    /// The line "All Communication": unlike things added, as the tool does.
    #[must_use]
    pub fn all_communication(&self) -> ToolTraffic {
        ToolTraffic {
            frequency: self.pipeline.frequency + self.data.frequency + self.tensor.frequency,
            volume: self.pipeline.volume + self.data.volume + self.tensor.volume,
        }
    }
}

/// A figure as the tool prints it: units of 2^30 bytes with one decimal.
#[must_use]
pub fn tool_gb(bytes: Bytes) -> String {
    shardscope_units::decimal(bytes.number() / f64::from(1_u32 << 30), 1)
}
