//! One chunk of a model, forward: embedding, layers, norm, multi-token prediction, output and loss.
//! Sources: megatron/core/models/gpt/gpt_model.py,
//! megatron/core/transformer/{transformer_block,multi_token_prediction}.py,
//! megatron/core/tensor_parallel/{layers,cross_entropy}.py.

use shardscope::plan::{Chunk, LossKind, Plan, PositionEmbedding, Recompute};

use super::layer::Runner;
use super::tape::{Storage, Tape};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index.
const INDEX: u64 = 8;

/// Runs `chunk` forward for one micro-batch.
pub(super) fn run(plan: &Plan, chunk: &Chunk) -> Tape {
    let mut runner = Runner::new(plan);
    let model = plan.model();
    let bytes = runner.rows * model.hidden_size * runner.residual;
    if chunk.embedding {
        embed(&mut runner);
    }
    let mut stream = runner.tape.allocate("chunk input", bytes);
    let layers: Vec<u64> = chunk.layers.clone().collect();
    match plan.recipe().recompute {
        Recompute::Uniform { num_layers, distribute } => {
            for run in layers.chunks(num_layers as usize) {
                stream = checkpointed(&mut runner, stream, run, distribute);
            }
        }
        Recompute::Block { num_layers, distribute } => {
            for (place, layer) in (0..).zip(&layers) {
                stream = if place < num_layers {
                    checkpointed(&mut runner, stream, &[*layer], distribute)
                } else {
                    runner.layer(stream, *layer)
                };
            }
        }
        Recompute::Every { period, others } => {
            for layer in &layers {
                stream = if (layer % period == 0) == others {
                    runner.layer(stream, *layer)
                } else {
                    checkpointed(&mut runner, stream, &[*layer], false)
                };
            }
        }
        Recompute::None | Recompute::Selective(_) => {
            for layer in &layers {
                stream = runner.layer(stream, *layer);
            }
        }
    }
    let full = !matches!(plan.recipe().recompute, Recompute::None | Recompute::Selective(_));
    if full && model.position_embedding == PositionEmbedding::Rope && model.latent.is_none() {
        // An argument of every checkpoint, and a single tensor for all.
        runner.tape.keep("rotary table", runner.sequence * model.kv_channels * FLOAT);
    }
    let last = chunk.layers.end == model.num_layers && !chunk.layers.is_empty();
    let mut hidden = stream;
    if if model.mtp_num_layers > 0 { last } else { chunk.output_layer } {
        hidden = runner.norm(stream, runner.rows, model.hidden_size);
    }
    for _ in 0..chunk.mtp_layers {
        hidden = predict(&mut runner, hidden, full);
    }
    if chunk.output_layer {
        output(&mut runner);
    }
    runner.tape
}

fn checkpointed(runner: &mut Runner<'_>, stream: Storage, layers: &[u64], distribute: bool) -> Storage {
    let before = runner.tape.len();
    let mut out = stream;
    for layer in layers {
        out = runner.layer(out, *layer);
    }
    runner.tape.forget_since(before);
    let layout = runner.plan.layout();
    if distribute && !layout.sequence_parallel {
        runner.tape.forget(stream);
        let elements = runner.rows * runner.model().hidden_size / layout.tensor;
        runner.tape.keep("part of a checkpoint", elements * runner.residual);
    } else {
        runner.tape.save(stream);
    }
    out
}

fn embed(runner: &mut Runner<'_>) {
    let tokens = runner.tokens;
    runner.tape.keep("tokens", tokens * INDEX);
    if runner.plan.layout().tensor > 1 {
        runner.tape.keep("vocabulary mask", tokens);
    }
    if runner.model().position_embedding == PositionEmbedding::LearnedAbsolute {
        runner.tape.keep("positions", tokens * INDEX);
    }
    if runner.plan.recipe().hidden_dropout {
        runner.tape.keep("embedding dropout mask", runner.rows * runner.model().hidden_size);
    }
}

/// One depth of multi-token prediction; its output goes through its own output layer.
fn predict(runner: &mut Runner<'_>, hidden: Storage, recomputed: bool) -> Storage {
    let (rows, width) = (runner.rows, runner.model().hidden_size);
    embed(runner);
    let embedded = runner.tape.allocate("embedded", rows * width * runner.residual);
    let before = runner.tape.len();
    runner.norm(embedded, rows, width);
    runner.norm(hidden, rows, width);
    runner.tape.keep("joined", rows * 2 * width * runner.width);
    // The projection's columns are gathered over the tensor ranks; the part for sequence parallelism is a view of it.
    let gathered = runner.tape.allocate("gathered projection", runner.tokens * width * runner.width);
    let out = runner.layer(gathered, runner.model().num_layers - 1);
    if recomputed {
        runner.tape.forget_since(before);
        runner.tape.save(embedded);
        runner.tape.save(hidden);
    }
    let normed = runner.norm(out, rows, width);
    output(runner);
    normed
}

fn output(runner: &mut Runner<'_>) {
    let plan = runner.plan;
    let columns = plan.model().padded_vocab_size / plan.layout().tensor;
    let tokens = runner.tokens;
    // All outputs go through it together, each as a part of a single storage.
    runner.tape.keep("output layer input", runner.rows * plan.model().hidden_size * runner.width);
    if plan.recipe().loss == LossKind::TransformerEngine {
        runner.tape.keep("logits", tokens * columns * runner.width);
    } else {
        runner.tape.keep("softmax of logits", tokens * columns * FLOAT);
        runner.tape.keep("target mask", tokens);
        runner.tape.keep("targets", tokens * INDEX);
    }
}
