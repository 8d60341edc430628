//! Tensors that TRL's trainers offload to the host until backward
//! (`trl/models/activation_offloading.py:OffloadActivations`).

use super::dialect::Dialect;
use crate::leaves::Leaves;
use crate::{Effect, NotModelled};
use shardscope_plan::Field;

/// Runs once weights, loss and method of the training are known. For recomputed layers it offloads their inputs; a loss
/// over unsplit logits offloads those as well, and layers that are not recomputed offload everything that they save.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    leaves.pass("activation_offloading");
    let Some(leaf) = leaves.get("activation_offloading").filter(|leaf| leaf.flag() != Some(false)) else {
        return;
    };
    let said = |field| leaves.reading.value(field);
    let recomputed = said(Field::GradientCheckpointing).is_none_or(|said| said == "true");
    let fused = said(Field::LigerKernel) == Some("true");
    let tokens = said(Field::TrainingObjective).is_none_or(|said| said == "sft");
    let spread = leaves.first(&["deepspeed", "fsdp", "fsdp_config"]).is_some()
        || said(Field::DataParallelEngine).is_some_and(|engine| engine != "ddp");
    let what = match () {
        () if dialect != Dialect::Trl => "saved layer inputs offloaded to the host",
        () if !recomputed => "all tensors that layers save, on the host",
        () if !(fused && tokens) => "inputs of layers on the host, and logits with them",
        () if spread => "saved layer inputs on the host with sharded weights",
        () => return leaves.switch(Field::OffloadLayerInputs, true, leaf),
    };
    let item =
        NotModelled::new("activation_offloading", &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}
