//! `TrainConfig`: FSDP, the compiler, checkpointing, loss, optimizer and evaluation.

use super::stated::{DEFAULT, lack, lack_default, stated};
use crate::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// The engine that shards the model (`scripts/train.py`).
pub(super) fn engine(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = stated(leaves, "distributed_strategy").filter(|leaf| leaf.value != "fsdp") {
        leaves.pass_below(&["fsdp."]);
        let what = "weights in fp32 under autocast in OLMo's layers, whose residual stream is then in fp32";
        lack(leaves, leaf, Effect::Memory, what);
        return;
    }
    let why = "OLMo's trainer shards by FSDP";
    leaves.state(Field::DataParallelEngine, "fsdp1", Origin::Default, why);
    match stated(leaves, "fsdp.sharding_strategy") {
        None => leaves.state(Field::ZeroStage, "3", Origin::Default, "FULL_SHARD, default of OLMo"),
        Some(leaf) if leaf.value == "FULL_SHARD" => leaves.say(Field::ZeroStage, "3", leaf),
        Some(leaf) if leaf.value == "SHARD_GRAD_OP" => leaves.say(Field::ZeroStage, "2", leaf),
        // `scripts/train.py`: the stated number of copies, otherwise one on each node.
        Some(leaf) if leaf.value.contains("HYBRID") => {
            leaves.say(Field::ZeroStage, if leaf.value.ends_with("ZERO2") { "2" } else { "3" }, leaf);
            match stated(leaves, "fsdp.hybrid_sharding_num_model_replicas") {
                Some(copies) => leaves.say(Field::NumDistributedOptimizerInstances, &copies.value, copies),
                None => leaves.switch(Field::ShardWithinNodes, true, leaf),
            }
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this FSDP sharding strategy"),
    }
    match leaves.text("fsdp.wrapping_strategy") {
        Some("by_block") => {}
        Some("by_block_and_size") => {
            if let Some(leaf) = leaves.get("fsdp.wrapping_strategy") {
                leaves.switch(Field::FsdpEndsApart, true, leaf);
                if leaves.flag("model.weight_tying").unwrap_or(true) {
                    lack(leaves, leaf, Effect::Memory, "a tied embedding in its own FSDP unit");
                }
            }
        }
        _ => {
            let what = "FSDP units other than the model's layers";
            match stated(leaves, "fsdp.wrapping_strategy") {
                Some(leaf) => lack(leaves, leaf, Effect::Memory, what),
                None => lack_default(leaves, "fsdp.wrapping_strategy", Effect::Memory, what),
            }
        }
    }
    match leaves.get("fsdp.precision") {
        Some(leaf) if leaf.value == "mixed" => leaves.say(Field::ReduceDtype, "fp32", leaf),
        Some(leaf) if leaf.value != "pure" => {
            lack(leaves, leaf, Effect::Memory, "weights that FSDP gathers in fp32 under autocast");
        }
        _ => {}
    }
    match stated(leaves, "precision") {
        Some(leaf) if leaf.value == "amp_bf16" => {}
        Some(leaf) if leaf.value == "amp_fp16" => {}
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "OLMo's layers under autocast in fp32"),
        None => lack_default(leaves, "precision", Effect::Memory, "a run without a stated precision"),
    }
}

/// Blocks that are compiled one by one (`scripts/train.py`).
pub(super) fn compiled(leaves: &mut Leaves<'_>, variants: &[&str]) {
    let keys = ["compile.fullgraph", "compile.mode", "compile.backend", "compile.dynamic"];
    let Some(leaf) = leaves.first(&keys) else { return };
    for key in keys {
        leaves.pass(key);
    }
    let usual = |path, usual| stated(leaves, path).is_none_or(|leaf| leaf.value == usual);
    let on = |field| leaves.reading.value(field) == Some("true");
    // Whether norms have weights, where they are placed, and whether queries and keys have norms: the
    // combinations that were recorded.
    let first = leaves.reading.value(Field::Normalization) == Some("LayerNorm")
        && variants.contains(&"norms_without_weights")
        && !on(Field::NormsBehind)
        && !on(Field::QkLayernorm);
    let second = leaves.reading.value(Field::Normalization) == Some("RMSNorm")
        && !variants.contains(&"norms_without_weights")
        && on(Field::NormsBehind)
        && on(Field::QkLayernorm);
    let others = ["clipped_queries", "relu", "head_norms_without_weights", "head_bias"];
    let known = (first || second)
        && usual("compile.mode", "default")
        && usual("compile.backend", "inductor")
        && on(Field::Swiglu)
        && leaves.yes("model.flash_attention").is_some()
        && !on(Field::GroupQueryAttention)
        && !others.iter().any(|other| variants.contains(other));
    if known {
        leaves.switch(Field::CompiledLayers, true, leaf);
    } else {
        let what = "layers of this arrangement fused by torch.compile, which save less for backward";
        lack(leaves, leaf, Effect::Memory, what);
    }
}

/// Layers that are checkpointed (`olmo/model.py:should_checkpoint_block`).
pub(super) fn checkpointing(leaves: &mut Leaves<'_>) {
    let Some(leaf) = stated(leaves, "activation_checkpointing") else { return };
    let (method, layers) = match leaf.value.as_str() {
        _ if leaf.flag() == Some(false) => return,
        _ if leaf.flag() == Some(true) => ("uniform", "1"),
        "whole_layer" => ("uniform", "1"),
        "one_in_two" => ("every", "2"),
        "one_in_three" => ("every", "3"),
        "one_in_four" => ("every", "4"),
        "one_in_eight" => ("every", "8"),
        "two_in_three" => ("all_but_every", "3"),
        "three_in_four" => ("all_but_every", "4"),
        _ => return lack(leaves, leaf, Effect::Memory, "checkpointing of parts of OLMo's layers"),
    };
    leaves.say(Field::RecomputeGranularity, "full", leaf);
    leaves.say(Field::RecomputeMethod, method, leaf);
    leaves.say(Field::RecomputeNumLayers, layers, leaf);
}

pub(super) fn loss(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("fused_loss") {
        leaves.say(Field::LossKind, "fused_logits", leaf);
    } else if let Some(leaf) = leaves.yes("softmax_auxiliary_loss") {
        lack(
            leaves,
            leaf,
            Effect::Memory,
            "an auxiliary loss on the logits that is not fused with the main loss",
        );
    }
    leaves.pass("softmax_auxiliary_loss");
}

pub(super) fn rest(leaves: &mut Leaves<'_>) {
    match leaves.text("optimizer.name") {
        Some("adamw") => {}
        Some("lionw" | "decoupled_lionw") => {
            leaves.reading.found.retain(|found| found.field != Field::Optimizer);
            if let Some(leaf) = leaves.get("optimizer.name") {
                leaves.say(Field::Optimizer, "lion", leaf);
            }
        }
        Some(_) => {}
        None => leaves.state(Field::Optimizer, "lion", Origin::Default, DEFAULT),
    }
    evaluation(leaves);
    // `2e12T` is a number of tokens, `1ep` a number of epochs, and a plain number is a number of steps.
    if let Some(leaf) = stated(leaves, "max_duration") {
        match leaf.value.strip_suffix('T').and_then(tokens) {
            Some(tokens) => leaves.say(Field::TokenBudget, &tokens.to_string(), leaf),
            None if leaf.whole().is_some() => leaves.say(Field::TrainIters, &leaf.value, leaf),
            None => {}
        }
    }
    leaves.state(Field::CreateAttentionMaskInDataloader, "false", Origin::Default, DEFAULT);
}

/// A whole number of tokens, in Python's notation.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn tokens(text: &str) -> Option<u64> {
    let number: f64 = text.trim().parse().ok()?;
    (1.0..=1e18).contains(&number).then_some(number as u64)
}

/// Default batch size of an evaluation (`device_eval_batch_size`).
const USUAL_EVALUATION: u64 = 16;

/// Evaluations between steps: their batches are 16 sequences by default.
fn evaluation(leaves: &mut Leaves<'_>) {
    if !leaves.all().iter().any(|leaf| leaf.path.starts_with("evaluators")) {
        return leaves.pass("device_eval_batch_size");
    }
    let trained = leaves.reading.count(Field::MicroBatchSize).unwrap_or(16);
    match leaves.get("device_eval_batch_size") {
        // In all of OLMo's configurations such a reference by name is the training batch size.
        Some(leaf) if leaf.value.contains("device_train_microbatch_size") => {}
        // Without a backward pass a batch that is no larger needs no more memory than training.
        Some(leaf) if leaf.whole().is_some_and(|batch| batch <= trained) => {}
        Some(leaf) => leaves.say(Field::EvaluationBatchSize, &leaf.value, leaf),
        None if trained < USUAL_EVALUATION => {
            leaves.state(Field::EvaluationBatchSize, "16", Origin::Default, DEFAULT);
        }
        None => {}
    }
}
