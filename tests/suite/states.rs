//! Bytes per parameter of weights, gradients and optimizer states, for every setting of the optimizer:
//! Megatron's own (`distrib_optimizer.py`, `arguments.py:validate_args`), ZeRO's and FSDP's.

use shardscope::estimate::memory;
use shardscope::launch::{plan_from_flags, resolve};
use shardscope::source::Source;

use crate::formats::resolved;

/// Checks what each of 8 replicas of a GPT holds per parameter.
#[track_caller]
fn check(flags: &str, weights: f64, gradients: f64, optimizer: f64) {
    const MODEL: &str = "--num-layers 4 --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 \
        --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 8 --vocab-size 50257";
    let plan = plan_from_flags(&format!("{MODEL} {flags}"), 8, 8, "H100-SXM").expect("a plan");
    let count = shardscope::estimate::parameters(&plan).total.get() as f64;
    let totals = memory(&plan).ranks[0].totals;
    let held =
        [totals.parameters, totals.gradients, totals.optimizer].map(|bytes| bytes.get() as f64 / count);
    for (held, expected) in held.into_iter().zip([weights, gradients, optimizer]) {
        // Buckets are padded to full shards.
        assert!(
            (held - expected).abs() <= 2e-3 * expected.max(0.1),
            "{flags}: {held:?}, expected {expected}"
        );
    }
}

#[test]
fn adam_in_every_precision() {
    const SHARDED: &str = "--use-distributed-optimizer";
    check("--bf16", 2.0, 4.0, 12.0);
    check(&format!("--bf16 {SHARDED}"), 2.0, 4.0, 12.0 / 8.0);
    check("--bf16 --grad-reduce-in-bf16", 2.0, 2.0, 12.0);
    check("--fp16", 2.0, 2.0, 12.0);
    check(&format!("--fp16 {SHARDED}"), 2.0, 2.0, 12.0 / 8.0);
    check("", 4.0, 4.0, 8.0);
    check(SHARDED, 4.0, 4.0, 8.0 / 8.0);
}

#[test]
fn precision_aware_adam_keeps_the_masters_lower_half() {
    const AWARE: &str = "--bf16 --use-distributed-optimizer --use-precision-aware-optimizer";
    check(AWARE, 2.0, 4.0, 10.0 / 8.0);
    let half = "--main-grads-dtype bf16 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16";
    check(&format!("{AWARE} {half}"), 2.0, 2.0, 6.0 / 8.0);
    let eighth = "--main-grads-dtype bf16 --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8";
    check(&format!("{AWARE} {eighth}"), 2.0, 2.0, 4.0 / 8.0);
    check(&format!("{AWARE} --optimizer-cpu-offload"), 2.0, 4.0, 0.0);
    check(&format!("{AWARE} --optimizer-cpu-offload --optimizer-offload-fraction 0.5"), 2.0, 4.0, 5.0 / 8.0);
}

/// Transformer Engine's FusedAdam with Automodel's bf16 weights
/// (`transformer_engine/pytorch/optimizers/fused_adam.py:initialize_state`): an int16 per parameter, and two moments in
/// fp32; PyTorch's updates the parameters with moments in their own type.
#[test]
fn fused_adam_keeps_the_halves_that_bf16_weights_lack() {
    let read = |optimizer: &str| {
        let text = format!(
            "step_scheduler: {{global_batch_size: 128, local_batch_size: 2}}\n\
             model: {{_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, pretrained_model_name_or_path: \
             Qwen/Qwen3-4B-Base, force_hf: true}}\ndistributed: {{strategy: fsdp2, activation_checkpointing: true}}\n\
             loss_fn: {{_target_: nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy}}\n\
             dataset: {{seq_length: 2048}}\noptimizer: {{{optimizer}}}\n"
        );
        let set = [("world_size".to_owned(), "8".to_owned())];
        resolved(&Source::from_files([("sft.yaml", text.as_str())]), &set)
    };
    let optimizer = |text: &str| {
        let resolution = read(text);
        let plan = resolution
            .plan
            .unwrap_or_else(|| panic!("{:?} {:?}", resolution.diagnostics, resolution.not_modelled));
        let count = shardscope::estimate::parameters(&plan).total.get();
        (memory(&plan).ranks[0].totals.optimizer.get() * 8, count)
    };
    const FUSED: &str = "_target_: transformer_engine.pytorch.optimizers.fused_adam.FusedAdam";
    const HALVES: &str = "master_weights: true, store_param_remainders: true";
    let (bytes, count) = optimizer("_target_: torch.optim.AdamW");
    assert_eq!(bytes, 4 * count);
    let (bytes, count) = optimizer(&format!("{FUSED}, {HALVES}, exp_avg_dtype: torch.float32, lr: 1.0e-5"));
    assert_eq!(bytes, 10 * count);
    // A step makes fp32 copies of narrower states; without the halves its fp32 weights are held in full.
    for other in ["master_weights: true", "lr: 1.0e-5", &format!("{HALVES}, exp_avg_dtype: torch.bfloat16")] {
        let stopped = read(&format!("{FUSED}, {other}")).not_modelled;
        assert!(stopped.iter().any(|item| item.name == "optimizer._target_"), "{other}: {stopped:?}");
    }
}

#[test]
fn sgd_keeps_momentum_or_nothing() {
    check("--bf16 --optimizer sgd --sgd-momentum 0.9", 2.0, 4.0, 8.0);
    check("--bf16 --optimizer sgd --sgd-momentum 0.0", 2.0, 4.0, 4.0);
}

#[test]
fn megatron_fsdp_shards_as_zero_does() {
    let fsdp = |kind: &str| {
        format!(
            "--bf16 --use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy {kind}"
        )
    };
    check(&fsdp("optim"), 2.0, 4.0, 12.0 / 8.0);
    check(&fsdp("optim_grads"), 2.0, 4.0 / 8.0, 12.0 / 8.0);
    check(&fsdp("optim_grads_params"), 2.0 / 8.0, 4.0 / 8.0, 12.0 / 8.0);
}

/// Adam-mini's own states for a small Qwen2 (`tests/record/adam_mini_states.py`, adam-mini 1.1.1): a momentum of
/// 526,592 bytes and means of 7,492. We count one mean per row of queries and keys, where there is one per head, and
/// one per element of a norm.
#[test]
fn adam_mini_has_a_mean_for_a_row_at_most() {
    let (layers, h, heads, groups, d) = (2, 64, 4, 2, 16);
    let settings = [
        ("software", "hf_transformers"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "192"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("swiglu", "true"),
        ("add_qkv_bias", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("vocab_size", "256"),
        ("micro_batch_size", "1"),
        ("seq_length", "16"),
        ("params_dtype", "fp32"),
        ("optimizer", "adam_mini"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let resolution = resolve(&[], &settings);
    let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let rows_of_heads = layers * (heads + groups) * (d - 1);
    let norms = (2 * layers + 1) * (h - 1);
    let ours = memory(&plan).ranks[0].totals.optimizer.get();
    assert_eq!(ours, 526_592 + 7_492 + 4 * (rows_of_heads + norms));
}
