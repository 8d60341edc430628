//! MedicalGPT's programs (shibing624/MedicalGPT), recognized by the folder that they take samples from.

use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// Its programs for samples of their own hold weights that all train in fp32 (`training/supervised_finetuning.py`,
/// `pretraining.py`: `model.float()`). Those for pairs have lengths of two parts.
pub(super) fn weights(leaves: &mut Leaves<'_>) {
    let full = leaves.reading.value(Field::TrainType).is_none_or(|kind| kind == "full");
    let pairs = ["max_source_length", "max_target_length"].iter().any(|path| leaves.has(path));
    if leaves.has("train_file_dir") && full && !pairs {
        leaves.reading.keep(&|found| found.field != Field::ParamsDtype);
        let why = "MedicalGPT's programs hold weights that train in fp32";
        leaves.state(Field::ParamsDtype, "fp32", Origin::Derived, why);
    }
}
