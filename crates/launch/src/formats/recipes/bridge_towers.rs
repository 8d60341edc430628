//! Vision towers in recipes of Megatron-Bridge.

use super::super::leaves::Leaves;
use crate::Origin;
use shardscope_plan::Field;
use shardscope_resolve::{PROJECTOR, TOWER};

/// Beginnings of the names of models whose tower and projector Megatron-Bridge builds of transformers' modules, whole on each tensor rank
/// of the first stage (`models/ministral3/modeling_ministral3.py`, `models/qwen_vl/modeling_qwen25_vl.py`).
const OF_TRANSFORMERS: [&str; 2] = ["mistralai/Ministral-3-", "Qwen/Qwen2.5-VL-"];

/// What trains of the tower, behind the model and its adapters: where adapters do, everything else is frozen (`peft/base.py:freeze_model`),
/// and the linear layers that they name by default are Megatron's.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let model =
        leaves.first(&["model", "model.hf_model_id"]).map(|leaf| leaf.value.clone()).unwrap_or_default();
    if !OF_TRANSFORMERS.iter().any(|start| model.starts_with(start)) {
        return;
    }
    leaves.state(
        Field::VisionWhole,
        "true",
        Origin::Derived,
        "Megatron-Bridge builds the tower from transformers modules",
    );
    let usual = leaves.reading.value(Field::LoraTargetModules).is_none();
    if usual && leaves.reading.value(Field::TrainType) == Some("lora") {
        let why = "Megatron-Bridge freezes all but the adapters on Megatron's linear layers";
        leaves.state(Field::FrozenModules, &format!("{TOWER} {PROJECTOR}"), Origin::Derived, why);
        leaves.state(Field::VisionInputGrads, "false", Origin::Derived, why);
    }
}
