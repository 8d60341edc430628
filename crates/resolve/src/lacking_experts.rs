//! Experts and linear attention that some software leaves as they are where they would be counted as quantized or cut.

use super::table::Table;
use crate::Effect;
use shardscope_plan::{Field, RlFramework, Software, word};

pub(super) fn find(table: &mut Table, software: Software) {
    // `quantizers/quantizer_bnb_4bit.py:param_needs_quantization`: only linear layers are quantized, and in transformers 5 the experts
    // of a layer are one parameter.
    let by_layers = [word::BaseQuantization::Nf4, word::BaseQuantization::Fp4, word::BaseQuantization::Int8];
    let has_experts = table.number(Field::NumExperts) > 0 && software == Software::HfTransformers;
    // axolotl's switch quantizes them, and stops by a name of its own.
    let by_axolotl = table.not_modelled.iter().any(|item| item.is_called("quantize_moe_experts"));
    if has_experts && table.is_any(&by_layers) && !by_axolotl {
        let message = "experts, which bitsandbytes leaves in 16 bits in transformers 5 while they would be counted as quantized";
        table.lack(Field::BaseQuantization, "", Effect::Memory, message);
    }
    // `slime_plugins/models/hf_attention.py`: transformers' modules, which every tensor and context rank holds and runs whole.
    let cut =
        [Field::TensorModelParallelSize, Field::ContextParallelSize].map(|field| table.number(field) > 1);
    // A model that Megatron-Bridge builds has Megatron core's layers instead; of one that slime builds the engine alone has a tower.
    let own = table.is(RlFramework::Slime) && table.on(Field::VisionInEngine);
    if own && table.has(Field::LinearMixer) && cut != [false; 2] {
        let message = "linear attention that slime leaves whole on every tensor and context rank";
        table.lack(Field::LinearMixer, "", Effect::Memory, message);
    }
}
