//! Optimizers of Automodel's recipes.

use super::lacking::lack;
use crate::leaves::Leaves;
use crate::{Effect, Origin};
use shardscope_plan::Field;

/// PyTorch's own optimizers update the parameters in their own type; most others hold
/// states that no estimator knows here.
pub(super) fn optimizer(leaves: &mut Leaves<'_>) {
    let class = leaves.text("optimizer._target_").unwrap_or("torch.optim.");
    if class == "flashoptim.FlashAdamW" && flash_adamw(leaves) {
        return;
    }
    if class.starts_with("transformer_engine.") && class.ends_with(".FusedAdam") && fused_adam(leaves) {
        return;
    }
    // `torch/optim/adam.py:adam`: which of its implementations steps.
    if matches!(class, "torch.optim.Adam" | "torch.optim.AdamW") {
        leaves.follow("optimizer.foreach", Field::OptimizerForeach, true);
    }
    if leaves.text("optimizer._target_").is_some_and(|class| !class.starts_with("torch.optim.")) {
        leaves.reading.keep(&|found| found.field != Field::Optimizer);
        let what = "this optimizer's states; PyTorch's would be counted";
        lack(leaves, "optimizer._target_", Effect::Memory, what);
    }
}

/// flashoptim's AdamW with moments in 8 bits and the bits that complete 16-bit weights to `master_weight_bits`; `false` if
/// it has other states.
fn flash_adamw(leaves: &mut Leaves<'_>) -> bool {
    let name = match leaves.text("optimizer.master_weight_bits").unwrap_or("24") {
        "24" => "flash_adamw",
        "32" => "flash_adamw_32bit",
        _ => return false,
    };
    if ["quantize", "fused"].iter().any(|key| leaves.flag(&format!("optimizer.{key}")) == Some(false)) {
        return false;
    }
    leaves.reading.keep(&|found| found.field != Field::Optimizer);
    leaves.state(Field::Optimizer, name, Origin::Derived, "optimizer of Automodel");
    leaves.pass_below(&[
        "optimizer.master_weight_bits",
        "optimizer.compress_state_dict",
        "optimizer.quantize",
        "optimizer.fused",
        "optimizer.check_numerics",
        "optimizer.decouple_lr",
    ]);
    true
}

/// Transformer Engine's FusedAdam with the remainders that complete bf16 weights to fp32
/// (`transformer_engine/pytorch/optimizers/fused_adam.py`), which Megatron calls precision-aware; `false` if it has
/// other states: a step makes fp32 copies of moments that are narrower in another way.
fn fused_adam(leaves: &mut Leaves<'_>) -> bool {
    let wide = |key: &str| {
        leaves
            .text(&format!("optimizer.{key}"))
            .is_none_or(|word| word.trim_start_matches("torch.") == "float32")
    };
    let yes = |key: &str| leaves.flag(&format!("optimizer.{key}")) == Some(true);
    let moments = ["exp_avg_dtype", "exp_avg_sq_dtype"];
    // Since 2.14 the kernel itself reads and writes moments that are both in bf16 (`fuse_unscale`), and no fp32 copy is made.
    let narrow = moments.iter().all(|key| {
        leaves
            .text(&format!("optimizer.{key}"))
            .is_some_and(|word| word.trim_start_matches("torch.") == "bfloat16")
    });
    let known = wide("master_weight_dtype") && (narrow || moments.into_iter().all(wide));
    let halves =
        known && yes("master_weights") && yes("store_param_remainders") && !yes("use_decoupled_grad");
    if halves {
        let why = "master_weights and store_param_remainders of FusedAdam";
        leaves.state(Field::UsePrecisionAwareOptimizer, "true", Origin::Derived, why);
        if narrow {
            for (field, key) in [Field::ExpAvgDtype, Field::ExpAvgSqDtype].into_iter().zip(moments) {
                leaves.state(field, "bf16", Origin::Derived, key);
            }
        }
        leaves.pass_below(&["optimizer."]);
    }
    halves
}
