//! Adapters that LLaMA-Factory loads (`adapter_name_or_path`): which ones it trains, and of which rank
//! (`src/llamafactory/model/adapter.py:_setup_lora_tuning`, 0.9.5).

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question};
use shardscope_plan::Field;

const KEY: &str = "adapter_name_or_path";
/// With `create_new_adapter` those that are loaded are merged and new ones train, but quantized weights and those that ZeRO-3
/// shards cannot be merged.
const NOT_MERGED: &str = "loaded adapters that LLaMA-Factory trains on over quantized or ZeRO-3's weights, instead of new ones: their \
                          rank is in their adapter_config.json";

/// Runs once it is known which weights train.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let named = |leaf: &&Leaf| !matches!(leaf.value.as_str(), "" | "null" | "None" | "~");
    let (Dialect::LlamaFactory, Some(leaf)) = (dialect, leaves.get(KEY).filter(named)) else { return };
    if !matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        return;
    }
    let quantized = !matches!(leaves.reading.value(Field::BaseQuantization), None | Some("" | "none"));
    if leaves.flag("create_new_adapter") == Some(true) {
        let item = NotModelled::new(KEY, &leaf.value, Effect::Model, NOT_MERGED).at_some(leaf.span);
        let item = if quantized { item } else { item.only_at(Field::ZeroStage, "3") };
        leaves.reading.not_modelled.push(item);
    } else {
        // PEFT takes it from the adapters, whatever `lora_rank` says of new ones and whatever its default is.
        let stated =
            leaves.get("lora_rank").filter(|leaf| leaf.hole.is_none()).map(|leaf| leaf.value.clone());
        leaves.reading.keep(&|found| found.field != Field::LoraRank);
        let mut found = Found::new(Field::LoraRank, String::new(), Origin::Script).by(KEY, leaf.span);
        found.hole = Some(leaf.value.clone());
        leaves.reading.take(found);
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(Field::LoraRank),
            prompt: format!(
                "Rank of the adapters in {}, which train on (r in adapter_config.json)?",
                leaf.value
            ),
            choices: Vec::new(),
            proposal: Some(stated.unwrap_or_else(|| "8".to_owned())),
        });
    }
}
