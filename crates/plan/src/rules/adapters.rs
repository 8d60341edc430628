//! What the adapter libraries refuse.

use super::refusals::{Division, Refusals};
use crate::contradiction::Rule;
use crate::{Field, Plan};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let Some(lora) = plan.recipe().tuning.lora.filter(|lora| lora.library.is_of_megatron()) else { return };
    let layout = plan.layout();
    // Both matrices are sharded along the LoRA rank, which must then divide evenly.
    if lora.library.semantics().cuts_both {
        refusals.divides(&Division {
            code: Code::AdapterCut,
            what: "LoRA's rank {}",
            number: lora.rank,
            noun: "columns of rank",
            by: "TP",
            divisor: layout.tensor,
            fields: &[Field::LoraRank, Field::TensorModelParallelSize],
        });
    }
    // `mcore_bridge/tuners/lora.py`: "Currently, LoRA does not support ETP."
    let on_experts = plan.model().experts.is_some() && lora.modules.reach_experts();
    let rule = &Rule {
        code: Code::AdapterCut,
        fields: &[Field::ExpertTensorParallelSize, Field::LoraTargetModules],
        sentence: "adapters on experts cannot be sharded over expert TP {}",
        hint: "set the expert tensor parallel size to 1",
    };
    let takes = lora.library.semantics().shares_experts || layout.expert_tensor == 1;
    refusals.unless(!on_experts || takes, rule, &[layout.expert_tensor]);
}
