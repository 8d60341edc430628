//! What torchtitan holds of weights, gradients and moments, and how its optimizer steps them.

use crate::Effect;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;

/// `training.dtype` is that of the modules that FSDP shards: of the shards, of the gradients to which it casts what it
/// has reduced (`_fsdp_collectives.py:foreach_reduce`), and of the moments that Adam makes like its parameters.
/// `training.mixed_precision_reduce` is that of the messages alone. Without FSDP (one shard), gradients are reduced by
/// DDP in the weights' format.
pub(super) fn formats(leaves: &mut Leaves<'_>) {
    const HALF: &str = "bfloat16";
    const OTHER: &str = "a dtype that torchtitan does not offer";
    let sharded = leaves.reading.value(Field::ZeroStage).is_some_and(|stage| stage != "0");
    let held = leaves.get("training.dtype");
    if let Some(leaf) = held {
        let computes_in_fp32 =
            leaves.get("training.mixed_precision_param").is_some_and(|other| other.value == "float32");
        match leaf.value.as_str() {
            "float32" => {}
            HALF if computes_in_fp32 => {
                leaves.lack(
                    leaf,
                    Effect::Memory,
                    "weights in bf16 that are cast to fp32 where they are used",
                );
            }
            HALF => {
                let note = "weights, gradients and both moments in bf16, without an fp32 copy";
                for field in [Field::MainParamsDtype, Field::ExpAvgDtype, Field::ExpAvgSqDtype] {
                    leaves.say_noted(field, "bf16", leaf, note);
                }
            }
            _ => leaves.lack(leaf, Effect::Memory, OTHER),
        }
    }
    let reduced = leaves.get("training.mixed_precision_reduce");
    if let Some(leaf) = reduced.filter(|leaf| !["float32", HALF].contains(&leaf.value.as_str())) {
        leaves.lack(leaf, Effect::Communication, OTHER);
    }
    let decides = if sharded { reduced } else { held };
    if let Some(leaf) = decides.filter(|leaf| leaf.value == HALF) {
        leaves.switch(Field::GradReduceInBf16, true, leaf);
        leaves.say(Field::GradsDtype, "bf16", leaf);
    }
}

/// Adam's kernels (`optimizer.implementation`) and steps from hooks of the parameters
/// (`components/optimizer.py:OptimizersInBackwardContainer`), which FSDP calls as soon as a unit's gradients are reduced
/// and which free them.
pub(super) fn steps(leaves: &mut Leaves<'_>) {
    let within = leaves.yes("optimizer.early_step_in_backward");
    if let Some(leaf) = within {
        leaves.switch(Field::StepInBackward, true, leaf);
    } else {
        leaves.pass("optimizer.early_step_in_backward");
    }
    let Some(leaf) = leaves.get("optimizer.implementation") else { return };
    match (leaf.value.as_str(), within) {
        ("fused", _) => {}
        // Since 2026: a hook makes the moments of fp32 weights in bf16 (`_register_bf16_optimizer_state_hook`).
        ("fused_opt_states_bf16", _) => {
            for field in [Field::ExpAvgDtype, Field::ExpAvgSqDtype] {
                leaves.say(field, "bf16", leaf);
            }
        }
        ("foreach", None) => leaves.switch(Field::OptimizerForeach, true, leaf),
        _ => leaves.lack(leaf, Effect::Memory, "an optimizer step that is not fused"),
    }
}

/// Keys of torchao's float8 (`components/quantization/float8.py`), which `converter` turns on: tensorwise scaling may gather
/// weights in 8 bits where data-parallel ranks share them (`parallel_dims.dp_shard_enabled`), and the estimates leave the output
/// layer in 16, as a filter that names it does. `filter_fqns` is empty by default; `enable_float8_linear`, the switch of 2024, left
/// the output layer out by itself.
pub(super) fn in_float8(leaves: &mut Leaves<'_>, converter: &Leaf) {
    let shards = leaves
        .first(&["parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"])
        .and_then(Leaf::whole);
    let mut filtered = converter.path == "float8.enable_float8_linear";
    for group in ["float8", "quantize.linear.float8"] {
        let key = |name: &str| format!("{group}.{name}");
        let gathers = leaves.yes(&key("enable_fsdp_float8_all_gather"));
        if let Some(leaf) = gathers.filter(|_| !matches!(shards, Some(0 | 1))) {
            leaves.switch(Field::Fp8ParamGather, true, leaf);
        } else {
            leaves.pass(&key("enable_fsdp_float8_all_gather"));
        }
        let filter = key("filter_fqns");
        let names = |leaf: &Leaf| leaf.value.trim_matches(['[', ']', '"', '\'']).to_owned();
        // Looked at without being taken: any other filter is told as not read.
        let stated = || leaves.all().iter().filter(|leaf| leaf.path.starts_with(&filter));
        filtered |= stated().any(|leaf| !names(leaf).is_empty());
        if stated().all(|leaf| matches!(names(leaf).as_str(), "output" | "")) {
            leaves.pass_below(&[&filter]);
        }
    }
    if !filtered {
        let what = "without filter_fqns float8 converts the output layer too (since April 2025)";
        leaves.not_estimated(converter, what);
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_words;
    use crate::Argument;
    use shardscope_plan::Field;

    #[test]
    fn moments_may_be_narrower_than_weights() {
        let formats = |words: &str| {
            let reading = read_words(&Argument::split(words));
            [Field::MainParamsDtype, Field::ExpAvgDtype, Field::ExpAvgSqDtype]
                .map(|field| reading.value(field).unwrap_or_default().to_owned())
        };
        assert_eq!(formats("--optimizer.implementation=fused"), ["", "", ""]);
        assert_eq!(formats("--optimizer.implementation=fused_opt_states_bf16"), ["", "bf16", "bf16"]);
        assert_eq!(formats("--training.dtype=bfloat16"), ["bf16", "bf16", "bf16"]);
    }

    #[test]
    fn weights_are_gathered_in_float8_where_layers_are_converted() {
        let gathers =
            |words: &str| read_words(&Argument::split(words)).value(Field::Fp8ParamGather).map(str::to_owned);
        let on = "--quantize.linear.float8.enable_fsdp_float8_all_gather";
        assert_eq!(gathers(on), None);
        let converted = "--model.converters=quantize.linear.float8";
        assert_eq!(gathers(&format!("{converted} {on}")).as_deref(), Some("true"));
        assert_eq!(gathers(converted), None);
        // Context-parallel ranks share weights as well, but not as data-parallel ones (`dp_shard_enabled`).
        let cut = "--parallelism.context_parallel_degree=8 --parallelism.data_parallel_shard_degree";
        assert_eq!(gathers(&format!("{converted} {on} {cut}=1")), None);
        assert_eq!(gathers(&format!("{converted} {on} {cut}=2")).as_deref(), Some("true"));
    }
}
