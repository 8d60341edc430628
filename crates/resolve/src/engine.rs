//! The engine that shards a trainer's data-parallel ranks, where its stage tells it.

use super::table::Table;
use crate::SettingValue::Int;
use shardscope_plan::{Field, Origin, Software, Word, word};

/// FSDP's stage, and the engine of a stage of ZeRO that an answer states.
pub(super) fn spell_out(table: &mut Table, software: Software) {
    let fsdp = [word::DataParallelEngine::Fsdp1, word::DataParallelEngine::Fsdp2];
    let is = |field, origin: Origin| table.get(field).is_some_and(|setting| setting.origin == origin);
    let answered = is(Field::ZeroStage, Origin::User) && is(Field::DataParallelEngine, Origin::Derived);
    // A remark proposes FSDP, which has neither stage.
    if answered && table.is_any(&fsdp) && table.number(Field::ZeroStage) < 2 {
        let none = table.number(Field::ZeroStage) == 0;
        let engine = if none { word::DataParallelEngine::Ddp } else { word::DataParallelEngine::DeepSpeed };
        table.overrule(
            Field::DataParallelEngine,
            engine.value(),
            "FSDP does not have the stage that is answered",
        );
    }
    if table.is_any(&fsdp) {
        table.derive(Field::ZeroStage, Int(3), "FSDP shards weights, gradients and states");
    } else if software == Software::HfTransformers && table.number(Field::ZeroStage) > 0 {
        // PyTorch's DDP has no stages, and DeepSpeed holds main parameters and states in fp32.
        let rule = "stages of ZeRO are DeepSpeed's; with FSDP state fsdp1 or fsdp2";
        if !table.has(Field::DataParallelEngine) {
            table.default(Field::ReduceBuckets, Int(1), "DeepSpeed's default");
            table.derive(Field::DataParallelEngine, word::DataParallelEngine::DeepSpeed.value(), rule);
        }
    }
}
