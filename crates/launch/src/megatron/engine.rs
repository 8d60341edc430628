//! What DeepSpeed's engine decides under Megatron-DeepSpeed.

use crate::formats::open_stage;
use crate::{Argument, Effect, Found, NotModelled, Reading};
use shardscope_bash::base_name;
use shardscope_plan::{Field, Software};

/// The engine shards as its file says (`deepspeed/runtime/engine.py`): where no flag tells the stage as well, it is open until the
/// file is here.
pub(super) fn leave(reading: &mut Reading, file: &Argument) {
    // Of a program that says nothing else in Megatron's words the file alone makes no training of Megatron's.
    if reading.found.is_empty() || reading.value(Field::ZeroStage).is_some() {
        return;
    }
    let (found, question) = open_stage(base_name(&file.text), "--deepspeed_config", file.span);
    reading.take(found);
    reading.questions.push(question);
}

/// Experts of Megatron-DeepSpeed are DeepSpeed's (`deepspeed/moe/sharded_moe.py`): they stand in every second layer (`--expert-interval`
/// 2) and drop tokens beyond their capacity unless told otherwise.
pub(super) fn experts(reading: &mut Reading) {
    let is_deepspeed = matches!(reading.software, Some((Software::MegatronDeepspeed, _)));
    let several = |found: &&Found| found.field == Field::NumExperts && found.value != "1";
    let Some(experts) = reading.found.iter().find(several).filter(|_| is_deepspeed) else { return };
    let what = "DeepSpeed's MoE layers: every second layer by default, dropping tokens above capacity";
    let item = NotModelled::new("--num-experts", &experts.value, Effect::Memory, what).at_some(experts.span);
    reading.not_modelled.push(item);
}
