//! What MPT's two losses take under llm-foundry (`llmfoundry/models/mpt/modeling_mpt.py:ComposerMPTCausalLM`), by hand:
//! flash-attn's kernel reads the logits and writes their gradient beside them, PyTorch's has their log-softmax and two gradients
//! in fp32. Composer holds the logits through backward either way (`composer/trainer/trainer.py:_train_microbatch`).

use shardscope::estimate::memory_totals;
use shardscope::source::Source;

use crate::formats::resolved;

/// Tokens, vocabulary and width, with layers so thin that the loss is the peak.
const TOKENS: u64 = 4 * 512;
const WORDS: u64 = 50_368;
const WIDTH: u64 = 128;

fn peak(loss: &str, precision: &str) -> u64 {
    let text = format!(
        "max_seq_len: 512\nmodel:\n  name: mpt_causal_lm\n  d_model: {WIDTH}\n  n_heads: 2\n  n_layers: 1\n  max_seq_len: 512\n  \
         vocab_size: {WORDS}\n  loss_fn: {loss}\n  attn_config: {{attn_impl: flash}}\ntrain_loader: {{name: text}}\n\
         global_train_batch_size: 4\ndevice_train_microbatch_size: 4\nprecision: {precision}\ngpus: 1\n\
         optimizer: {{name: decoupled_adamw}}\n"
    );
    let read = resolved(&Source::from_files([("mpt.yaml", text.as_str())]), &[]);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    memory_totals(&plan)[0].peak_allocated.get()
}

#[test]
fn the_kernel_takes_one_gradient_where_pytorch_takes_a_softmax_and_two() {
    let logits = TOKENS * WORDS;
    let (torch, kernel) = (peak("torch_crossentropy", "amp_bf16"), peak("fused_crossentropy", "amp_bf16"));
    // While PyTorch's loss runs backward: the softmax, a mask and labels, and both gradients.
    let of_torch = 4 * logits + 9 * TOKENS + 8 * logits;
    // While the output layer runs backward: the logits' gradient, that of its input and that of its weight.
    let of_kernel = 2 * (logits + TOKENS * WIDTH + WORDS * WIDTH);
    assert_eq!(torch - kernel, of_torch - of_kernel);
}
