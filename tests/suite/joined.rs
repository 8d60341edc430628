//! Layers like GPT-J's in GPT-NeoX: `x + attention(norm1(x)) + mlp(norm2(x))`, reduced once
//! (`megatron/model/transformer.py`).

use shardscope::estimate::kept_by_chunk;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::plan::Plan;
use shardscope::source::Source;

use crate::formats::resolved;

const LAYERS: u64 = 24;
const TOKENS: u64 = 2048 * 4;
const WIDTH: u64 = 1024;

fn plan(joined: bool) -> Plan {
    let text = format!(
        "pipe_parallel_size: 0\nmodel_parallel_size: 2\nnum_layers: {LAYERS}\nhidden_size: {WIDTH}\nnum_attention_heads: 16\n\
         seq_length: 2048\nmax_position_embeddings: 2048\ntrain_micro_batch_size_per_gpu: 4\ngradient_accumulation_steps: 2\n\
         fp16: {{enabled: true}}\nattention_config: [[[\"flash\"], {LAYERS}]]\ngpt_j_residual: {joined}\n"
    );
    let source = Source::from_files([("a.yml", text.as_str())]);
    let sets = [("world_size", "8"), ("vocab_size", "50257")];
    let sets: Vec<_> = sets.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let resolution = resolved(&source, &sets);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

#[test]
fn both_halves_of_a_layer_keep_one_input_and_are_reduced_once() {
    let [apart, joined] = [false, true].map(plan);
    let kept = |plan: &Plan| kept_by_chunk(plan, &plan.layout().stages.stages[0].chunks[0]).get();
    // The second norm reads what the first one keeps: one 2-byte residual stream less per layer.
    assert_eq!(kept(&apart) - kept(&joined), LAYERS * TOKENS * WIDTH * 2);
    let calls = |plan: &Plan| traffic(plan).dimension(Parallelism::Tensor).expect("it sends").per_gpu().calls;
    // One forward all-reduce less, in each layer and each of the two micro-batches.
    assert_eq!(calls(&apart) - calls(&joined), LAYERS * 2);
}
