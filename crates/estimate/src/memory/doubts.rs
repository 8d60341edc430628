//! What the anatomy of a peak does not establish to the byte for some plans.

use shardscope_plan::{DpSharding, Plan, Quantization};
use shardscope_schedule::Shape;

/// Each doubt about the memory of `plan`, in a sentence.
#[must_use]
pub fn doubts(plan: &Plan) -> Vec<&'static str> {
    let recipe = plan.recipe();
    let known = [
        (
            recipe.fp8.is_some(),
            "What fp8 layers keep is read from Transformer Engine's code, not checked tensor by tensor.",
        ),
        (
            recipe.software.semantics().transformer_engine,
            "Buffers that Transformer Engine keeps for itself are held against peaks of whole runs alone.",
        ),
        (
            recipe.dp_sharding == DpSharding::Parameters,
            "With sharded weights (FSDP, ZeRO-3) only what devices showed was compared, not what was allocated.",
        ),
        (
            recipe.software.semantics().eager_modules,
            "What modules of plain PyTorch keep is met to the byte; what they hold while they run backward is read from \
             code.",
        ),
        (
            recipe.tuning.quantization != Quantization::None,
            "Quantised weights are counted as bitsandbytes or torchao pack them; experts held as one parameter may stay in 16 bits.",
        ),
        (
            Shape::of(plan).splits_backward(),
            "What is kept between the two halves of a backward pass meets published peaks within 6%, not to the byte.",
        ),
        (
            plan.layout().expert > 2,
            "Experts are taken to get equal numbers of tokens; an uneven router makes the peak higher.",
        ),
    ];
    known.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence).collect()
}
