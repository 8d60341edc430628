//! What DeepSpeed's engine decides under Megatron-DeepSpeed.

use crate::formats::open_stage;
use crate::{Argument, Reading};
use shardscope_bash::base_name;
use shardscope_plan::Field;

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
