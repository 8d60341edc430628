//! llm-foundry's loss of MPT, which was counted as PyTorch's whichever one the file names.

use super::{said, stopped, value};
use shardscope_plan::{Field, LossKind};

const MPT: &str = "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\n  d_model: 1024\n  n_heads: 8\n  n_layers: 2\n  max_seq_len: 2048\n  \
    vocab_size: 50368\n  attn_config: {attn_impl: flash}\ntrain_loader: {name: text}\nglobal_train_batch_size: 8\n\
    device_train_microbatch_size: 8\nprecision: amp_bf16\ngpus: 1\noptimizer: {name: decoupled_adamw}\n";

#[test]
fn mpt_has_flash_attns_loss_unless_the_file_names_pytorchs() {
    let with = |loss: &str| said("mpt.yaml", &MPT.replace("  n_heads", &format!("{loss}  n_heads")), &[]);
    for (loss, kind) in [
        ("", LossKind::FusedLogits),
        ("  loss_fn: fused_crossentropy\n", LossKind::FusedLogits),
        ("  loss_fn: torch_crossentropy\n", LossKind::Torch),
    ] {
        let read = with(loss);
        let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{loss}: {:?}", read.diagnostics));
        assert_eq!(plan.recipe().loss, kind, "{loss}");
        assert!(plan.recipe().transformers.holds_output, "{loss}: state.outputs");
        assert_eq!(value(&read, Field::LogitsHeld), "true");
    }
    stopped(&with("  loss_fn: mine\n"), &["model.loss_fn"]);
}
