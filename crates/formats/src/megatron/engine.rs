//! Decisions of DeepSpeed's engine under Megatron-DeepSpeed.

use crate::{Argument, Effect, Found, NotModelled, Reading};
use crate::{offloads, open_stage};
use shardscope_bash::base_name;
use shardscope_plan::{Field, Software};

/// The engine shards as its file says (`deepspeed/runtime/engine.py`), which stays open until the file is supplied. The
/// flag of that name is Megatron's own, for weights that are sharded as they are made (`pretrain_gpt.py:
/// model_provider`), and only proposes what the file says.
pub(super) fn leave(reading: &mut Reading, file: &Argument) {
    // If a program has no other options of Megatron's, the file alone does not make it a Megatron training.
    if reading.found.is_empty() {
        return;
    }
    let name = base_name(&file.text);
    let flag = reading.value(Field::ZeroStage).map(str::to_owned);
    let (found, mut question) = open_stage(name, "--deepspeed_config", file.span);
    question.proposal = flag.or(question.proposal);
    reading.keep(&|found| found.field != Field::ZeroStage);
    reading.take(found);
    reading.questions.push(question);
    offloads(reading, &file.text, "--deepspeed_config", file.span);
}

/// Experts of Megatron-DeepSpeed are DeepSpeed's (`deepspeed/moe/sharded_moe.py`): by default they are in every second
/// layer (`--expert-interval` 2) and drop tokens beyond their capacity.
pub(super) fn experts(reading: &mut Reading) {
    let is_deepspeed = matches!(reading.software, Some((Software::MegatronDeepspeed, _)));
    let several = |found: &&Found| found.field == Field::NumExperts && found.value != "1";
    let Some(experts) = reading.found.iter().find(several).filter(|_| is_deepspeed) else { return };
    let what = "DeepSpeed's MoE layers: every second layer by default, dropping tokens above capacity";
    let item = NotModelled::new("--num-experts", &experts.value, Effect::Memory, what).at_some(experts.span);
    reading.not_modelled.push(item);
}
