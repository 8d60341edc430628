//! What TRL's trainers make of adapters over quantized weights, which it changed twice.

use super::dialect::Dialect;
use super::fused_head;
use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::Field;

/// The key for a program that leaves it to `SFTTrainer` to build the adapters (`peft_config`).
const BUILT: &str = "trl_builds_adapters";

/// The last release whose trainers prepare a quantized model by PEFT's `prepare_model_for_kbit_training`; 0.25 has a
/// function of that name that casts nothing (`trl/models/utils.py:prepare_peft_model` of both).
const PREPARED: [u64; 2] = [0, 24];
/// The first releases that cast trainable parameters over quantized weights to bf16 (huggingface/trl#4577, `trl/trainer`).
const CAST: [u64; 2] = [0, 26];
const CAST_BY_DPO: [u64; 2] = [0, 29];
const CAST_BY_KTO: [u64; 2] = [1, 6];

/// What a program's text tells of it.
pub(super) fn told(text: &str) -> Option<(&'static str, &'static str)> {
    let builds = text.contains("SFTTrainer(") && text.contains("peft_config=");
    let itself = text.contains("get_peft_model(") || text.contains("prepare_model_for_kbit_training(");
    (builds && !itself).then_some((BUILT, "true"))
}

/// Runs once objective and quantization are known.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let built = leaves.has(BUILT);
    leaves.pass(BUILT);
    let quantized = matches!(leaves.reading.value(Field::BaseQuantization), Some("nf4" | "fp4" | "int8"));
    if dialect != Dialect::Trl || !quantized {
        return;
    }
    let objective = leaves.reading.value(Field::TrainingObjective);
    let first = match objective {
        None | Some("" | "sft" | "policy") => CAST,
        Some("dpo") => CAST_BY_DPO,
        Some("kto") => CAST_BY_KTO,
        _ => return,
    };
    let release = fused_head::release(leaves);
    let older = fused_head::is_of_older(leaves);
    let prepared = release.map_or(older, |release| release <= PREPARED);
    // Under bf16 it casts embeddings and the output layer back and leaves norms in fp32 (`trl/trainer/utils.py:
    // peft_module_casting_to_bf16`). Norms are counted in the format of the load: 2 bytes too few for each of their weights, some
    // thousands a layer. Autocast hands their fp32 outputs to products, which keep them, in 16 bits as counted.
    let back =
        leaves.flag("bf16") == Some(true) || leaves.get("bf16").is_some_and(|leaf| leaf.hole.is_some());
    if prepared && built && !back && matches!(objective, None | Some("" | "sft")) {
        let why =
            "SFTTrainer of TRL up to 0.24 prepares a quantized model by prepare_model_for_kbit_training";
        leaves.state(Field::UpcastNonQuantized, "true", Origin::Derived, why);
    }
    // An argument that only transformers 4 has belongs to releases of both kinds.
    if release.is_some_and(|release| release >= first)
        || release.is_none() && !older && !fused_head::is_of_four(leaves)
    {
        let why = "TRL casts adapters over quantized weights to bf16 (huggingface/trl#4577); before 0.26, in DPO before \
                   0.29, in KTO before 1.6, PEFT's fp32 stays (adapter_dtype=fp32)";
        leaves.state(Field::AdapterDtype, "bf16", Origin::Default, why);
    }
}
