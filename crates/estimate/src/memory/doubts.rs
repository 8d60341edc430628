//! What the memory estimate does not establish to the byte for some plans.

use shardscope_plan::{CudaGraphs, DpSharding, Plan, Projection, Quantization};
use shardscope_schedule::Shape;

/// The caveats about the memory of `plan`, one sentence each.
#[must_use]
pub fn doubts(plan: &Plan) -> Vec<&'static str> {
    let recipe = plan.recipe();
    let known = [
        (
            recipe.fp8.is_some(),
            "What fp8 layers save follows Transformer Engine's code and has not been checked tensor by tensor.",
        ),
        (
            recipe.software.semantics().transformer_engine,
            "Transformer Engine's internal buffers have only been checked against the peaks of whole runs.",
        ),
        (
            recipe.software.semantics().compiled_step,
            "XLA decides what is in memory when: of 30 steps compiled for TPUs the peak is met within 4% in 29, and is 28% too high in one.",
        ),
        (
            recipe.watched_norms,
            "The step in which levanter takes norms is another program; three were compiled, in all of which the gradient of the logits waits behind the layers.",
        ),
        (
            recipe.dp_sharding == DpSharding::Parameters && !recipe.software.semantics().compiled_step,
            "With sharded weights (FSDP, ZeRO-3) only what the device reported has been compared, not what was allocated.",
        ),
        (
            recipe.software.semantics().eager_modules,
            "What plain PyTorch modules save is matched to the byte; what they allocate during backward is read from code.",
        ),
        (
            super::states::pages_states(recipe),
            "States of the paged optimizer are not counted, those of its tensors below 100,000 elements (some MiB) included: they are in managed memory outside of PyTorch's, on the device as long as there is room and moved to the host when it is full, which slows the step.",
        ),
        (
            recipe.tuning.quantization != Quantization::None,
            "Quantized weights are counted as bitsandbytes or torchao pack them; experts held as one parameter may stay in 16 bits.",
        ),
        (
            Shape::from_plan(plan).splits_backward(),
            "What is held between the two halves of a split backward pass matches published peaks within 6%, not to the byte.",
        ),
        // Megatron-Bridge, docs/training/cuda-graphs.md and
        // skills/nemo-mbridge-perf-cuda-graphs/SKILL.md@067f987df03b: what a graph holds depends on its warm-up, its
        // streams and the pool it shares; nothing is published to check a formula against.
        (
            matches!(recipe.cuda_graphs, CudaGraphs::Layers(_)),
            "What CUDA graphs of layers hold is not counted: a few GB, as Megatron-Bridge says.",
        ),
        (
            recipe.cuda_graphs == CudaGraphs::Iteration,
            "What a CUDA graph of the whole iteration holds is not counted: Megatron-Bridge says that peaks may be 1.5 to 2 times as high.",
        ),
        // `torch.linalg.svd` allocates it from PyTorch's allocator; cuSOLVER's documentation gives no formula.
        (
            recipe.optimizer.low_rank.is_some_and(|one| one.projection == Projection::Singular),
            "cuSOLVER's workspace while new singular vectors are found is not counted; GaLore's two published runs of 7B on one GPU are met within 2% without it.",
        ),
        (
            plan.layout().expert > 2,
            "Experts are assumed to receive equal numbers of tokens; an uneven router raises the peak.",
        ),
    ];
    known.into_iter().filter(|(holds, _)| *holds).map(|(_, sentence)| sentence).collect()
}
