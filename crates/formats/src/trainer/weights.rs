//! The format in which a trainer loads weights.

use super::dialect::Dialect;
use super::{behind, early, qwen};
use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// The format of weights if the text does not state it.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    if leaves.reading.value(Field::ParamsDtype).is_some() {
        return;
    }
    // "auto" asks for the checkpoint's own format, whatever the release's default is (`modeling_utils.py`).
    if let Some(leaf) = leaves.first(&["torch_dtype", "dtype"]).filter(|leaf| leaf.value == "auto") {
        let wide = leaves.text("model_name_or_path").is_some_and(early::is_in_fp32);
        leaves.say_noted(
            Field::ParamsDtype,
            if wide { "fp32" } else { "bf16" },
            leaf,
            "the checkpoint's dtype",
        );
        // It is the model that states it, where a catalog or its configuration tells.
        if let Some(found) = leaves.reading.found.iter_mut().find(|found| found.field == Field::ParamsDtype) {
            found.origin = Origin::Catalog;
        }
        return;
    }
    let full = leaves.reading.value(Field::TrainType).is_none_or(|train| train == "full");
    let sharded = leaves.reading.value(Field::DataParallelEngine).is_some_and(|engine| engine != "ddp");
    let (format, why) = match dialect {
        Dialect::Trl => ("fp32", "TRL loads models in fp32 unless dtype says otherwise"),
        _ if qwen::turns_to_bf16(leaves) => ("bf16", "Qwen's own modules turn their weights to bf16"),
        _ if dialect.upcasts() && full && !sharded => {
            ("fp32", "LLaMA-Factory holds weights that train in fp32")
        }
        _ if full && early::is_of_four(leaves, dialect) => ("fp32", early::FOUR),
        _ if behind::asks_for_format(leaves, dialect) => return,
        Dialect::Transformers if full && !sharded && leaves.flag("fp16") == Some(true) => {
            ("fp32", early::SCALED)
        }
        _ if leaves.reading.value(Field::Fp16).is_some() => ("fp16", "as the checkpoint and --fp16"),
        _ if leaves.text("model_name_or_path").is_some_and(early::is_in_fp32) => ("fp32", early::KEPT),
        _ => ("bf16", early::KEPT),
    };
    leaves.state(Field::ParamsDtype, format, Origin::Default, why);
}
