//! Flags of Megatron-LM's forks and the Megatron settings that they correspond to. Sources: the argument parsers of
//! bigscience and Microsoft Megatron-DeepSpeed, Ascend MindSpeed-LLM, epfLLM Megatron-LLM, Pai-Megatron-Patch, the
//! zero-bubble fork, slime, and their scripts.

use super::flags::Arity;
use super::fork::{Fork, lacking, named, several, switch, takes};
use crate::Effect;
use shardscope_plan::Field;

/// Whether a fork's flag that is not modelled changes nothing at this value.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    match name {
        "sglang-dp-size" | "sglang-data-parallel-size" => value == "1",
        "ai-framework" => value == "pytorch",
        "train-backend" => value == "megatron",
        "loss-type" => matches!(value, "policy_loss" | "sft_loss"),
        "transformer-type" => value == "megatron",
        "rollout-function-path" => ["slime.rollout.", "miles.rollout.", "fully_async_rollout."]
            .iter()
            .any(|own| value.starts_with(own)),
        "stage" => matches!(value, "sft" | "pt" | "pretrain"),
        "use-fused-sdpa-with-recompute" | "use-torch-compile" => matches!(value, "0" | "false"),
        _ => matches!(value, "false" | "standard" | "causal_lm"),
    }
}

const YES: Option<&str> = Some("true");
const LORA: Option<&str> = Some("lora");
/// ms-swift's `megatron sft`, which has these options, takes its adapters from mcore-bridge.
const MCORE_BRIDGE: Option<&str> = Some("mcore-bridge");
const PARTS: &str = "a model of several parts, of which only the decoder would be counted";
/// MindSpeed's overlapped communication of experts.
const EXCHANGES: &str = "MindSpeed's overlap of expert GEMMs and all-to-alls, which saves other tensors";
const CHUNKS: &str = "tensor-parallel GEMMs split to overlap their communication (MindSpeed's CoC)";
pub(super) const SAMPLES: &str = "samples from a custom function, which chooses their length and number";
const GAUDI: &str = "Gaudi's own kernels and graphs";
/// `megablocks/layers/moe.py`, `mlp.py`: no biases, scores in 16 bits, outputs kept for the weights', gradients of all experts at once.
const MEGABLOCKS: &str = "experts of MegaBlocks, which save other tensors than Megatron's";
const DIFFUSION: &str = "a diffusion model in place of the decoder";
const VISION: &str = "a vision model in addition to the decoder";
/// slime's option to run without the rollout engine.
pub(super) const TRAIN_ONLY: &str = "debug-train-only";
const DP_ATTENTION: &str = "data-parallel attention in the rollout engine";

const FORKS: &[Fork] = &[
    // FlagScale.
    takes("multiple-of", &[]),
    takes("hidden-dim-multiplier", &[]),
    lacking("enable-hetero", Arity::On, Effect::Communication, "heterogeneous meshes of accelerators"),
    // The launcher's options, if they are on the same line.
    takes("nnodes", &[(Field::NumNodes, None)]),
    takes("nproc-per-node", &[(Field::GpusPerNode, None)]),
    takes("node-rank", &[]),
    takes("master-addr", &[]),
    takes("master-port", &[]),
    // Hygon's fork (`megatron/training/arguments.py`): how ranks find each other under mpirun.
    takes("rank", &[]),
    takes("dist-url", &[]),
    // Megatron-DeepSpeed.
    switch("deepspeed", &[]),
    takes("deepspeed-config", &[]),
    takes("deepspeed_config", &[]),
    takes("zero-stage", &[(Field::ZeroStage, None)]),
    switch("deepspeed-activation-checkpointing", &[]),
    switch("no-pipeline-parallel", &[(Field::PipelineModelParallelSize, Some("1"))]),
    takes(
        "ds-sequence-parallel-size",
        &[(Field::ContextParallelSize, None), (Field::CpCommType, Some("a2a"))],
    ),
    takes("num-key-value-heads", &[(Field::GroupQueryAttention, YES), (Field::NumQueryGroups, None)]),
    takes("moe-expert-parallel-size", &[(Field::ExpertModelParallelSize, None)]),
    takes("topk", &[(Field::MoeRouterTopk, None)]),
    switch("cpu-optimizer", &[(Field::OffloadOptimizer, YES)]),
    switch("use-flash-attn-v1", &[(Field::UseFlashAttn, YES)]),
    switch("use-flash-attn-v2", &[(Field::UseFlashAttn, YES)]),
    switch("use-flash-attn-triton", &[(Field::UseFlashAttn, YES)]),
    switch("use-flash-attn-builder", &[(Field::UseFlashAttn, YES)]),
    switch("partition-activations", &[(Field::DistributeSavedActivations, YES)]),
    // ms-swift's options for Megatron's layers (`swift/megatron/arguments`), in the form of its files for Ray.
    lacking(
        "rlhf-type",
        Arity::One,
        Effect::Memory,
        "reinforcement learning or preference training, and the models that it holds",
    ),
    lacking("teacher-model", Arity::One, Effect::Memory, "a teacher model (distillation)"),
    // Checkpointed inputs are copied to the host (`deepspeed/runtime/activation_checkpointing/checkpointing.py`).
    lacking("checkpoint-in-cpu", Arity::On, Effect::Memory, "saved layer inputs offloaded to the host"),
    switch("contigious-checkpointing", &[]),
    switch("synchronize-each-layer", &[]),
    takes("train-tokens", &[]),
    switch("repeated-dataloader", &[]),
    takes("moe-loss-coeff", &[]),
    // DeepSpeed's MoE layer, which stops the verdict if there are experts.
    takes("moe-eval-capacity-factor", &[]),
    takes("moe-train-capacity-factor", &[]),
    takes("moe-min-capacity", &[]),
    switch("moe-no-drop-tokens", &[]),
    switch("enable-zbh1-pipeline", &[(Field::PipelineSchedule, Some("zb-h1"))]),
    lacking("mlp-type", Arity::One, Effect::Model, "residual experts"),
    takes("expert-interval", &[]),
    switch("create-moe-param-group", &[]),
    switch("disable-moe-token-dropping", &[]),
    // llm-jp's fork (`megatron/training/arguments.py`): ranks are those of mpirun. The z-loss is computed in the loss's
    // own kernel, which saves the same tensors (`megatron/core/tensor_parallel/cross_entropy.py`).
    switch("use-mpi", &[]),
    switch("use-z-loss", &[]),
    // slime.
    takes("max-tokens-per-gpu", &[(Field::MaxTokensPerGpu, None)]),
    switch("use-dynamic-batch-size", &[(Field::UseDynamicBatchSize, YES)]),
    // bigscience.
    takes("pad-vocab-size-to", &[(Field::PaddedVocabSize, None)]),
    takes("tokenizer-name-or-path", &[(Field::TokenizerModel, None)]),
    // Zyphra (`megatron/tokenizer/tokenizer.py`: `HFAutoTokenizer`).
    takes("hf-autotokenizer-model", &[(Field::TokenizerModel, None)]),
    switch("embed-layernorm", &[]),
    lacking("use-bnb-optimizer", Arity::On, Effect::Memory, "Adam's states in 8 bits by bitsandbytes"),
    switch("sync-tp-duplicated-parameters", &[]),
    // The zero-bubble fork.
    switch("enable-zero-bubble", &[(Field::PipelineSchedule, Some("zb-h2"))]),
    switch("zero-bubble-v-schedule", &[(Field::PipelineSchedule, Some("zb-v"))]),
    switch("enable-1f1b-v", &[(Field::PipelineSchedule, Some("1f1b-v"))]),
    // MindSpeed-LLM.
    switch("use-fused-rmsnorm", &[]),
    switch("use-fused-swiglu", &[(Field::BiasSwigluFusion, YES)]),
    switch("use-fused-rotary-pos-emb", &[(Field::ApplyRopeFusion, YES)]),
    takes("moe-intermediate-size", &[(Field::MoeFfnHiddenSize, None)]),
    takes("qk-rope-head-dim", &[(Field::QkPosEmbHeadDim, None)]),
    takes("qk-nope-head-dim", &[(Field::QkHeadDim, None)]),
    takes("shared-moe-ffn-hidden-size", &[(Field::MoeSharedExpertIntermediateSize, None)]),
    switch("shared-expert-gate", &[(Field::MoeSharedExpertGate, YES)]),
    switch("geglu", &[(Field::QuickGeglu, YES)]),
    takes("first-k-dense-replace", &[(Field::FirstKDenseReplace, None)]),
    takes("n-shared-experts", &[(Field::NSharedExperts, None)]),
    takes("num-shared-experts", &[(Field::NSharedExperts, None)]),
    takes("noop-layers", &[(Field::NoopLayers, None)]),
    // Router weighting, file formats for writing, and data locations.
    switch("norm-topk-prob", &[]),
    takes("model-type-hf", &[]),
    switch("no-shared-storage", &[]),
    takes("partial-rotary-factor", &[(Field::RotaryPercent, None)]),
    switch("reuse-fp32-param", &[(Field::ReuseFp32Param, YES)]),
    lacking("swap-optimizer", Arity::On, Effect::Memory, "optimizer states swapped to the host"),
    // MindSpeed-LLM, `mindspeed_llm/features_manager`.
    lacking("ai-framework", Arity::One, Effect::Memory, "MindSpore in place of PyTorch"),
    lacking("moe-tp-extend-ep", Arity::On, Effect::Memory, "unsharded experts on every tensor-parallel rank"),
    lacking("mla-mm-split", Arity::On, Effect::Memory, "MLA's up-projections as four GEMMs"),
    lacking("swap-attention", Arity::On, Effect::Memory, "attention activations swapped to the host"),
    lacking(
        "recompute-activation-function",
        Arity::On,
        Effect::Memory,
        "recomputation of the activation function",
    ),
    lacking("recompute-norm", Arity::On, Effect::Memory, "recomputation of norms"),
    lacking("moe-zero-memory", Arity::One, Effect::Memory, "MindSpeed's recomputation of experts"),
    // There, the experts' GEMMs and all-to-alls are one autograd function that saves its own tensors for backward
    // (`mindspeed/core/transformer/moe/moe_feature/overlap/`).
    switch("moe-permutation-async-comm", &[]),
    switch("use-fused-moe-token-permute-and-unpermute", &[(Field::MoePermuteFusion, YES)]),
    lacking("moe-alltoall-overlap-comm", Arity::On, Effect::Memory, EXCHANGES),
    lacking("moe-allgather-overlap-comm", Arity::On, Effect::Memory, EXCHANGES),
    lacking("moe-fb-overlap", Arity::On, Effect::Memory, EXCHANGES),
    lacking("tp-2d", Arity::On, Effect::Communication, "two-dimensional tensor parallelism"),
    lacking("stage", Arity::One, Effect::Memory, "preference training and its reference model"),
    lacking("add-dense-bias", Arity::On, Effect::Model, "biases on attention's output only"),
    lacking("add-output-layer-bias", Arity::On, Effect::Model, "biases of the output layer"),
    lacking("post-norm", Arity::On, Effect::Model, "norms after attention and MLP"),
    lacking("post-self-attn-layernorm", Arity::On, Effect::Model, "norms after attention"),
    lacking("post-mlp-layernorm", Arity::On, Effect::Model, "norms after the MLP"),
    // epfLLM, Pai and others.
    lacking("transformer-type", Arity::One, Effect::Model, "a transformers model in Pai's Megatron loop"),
    switch("use-rms-norm", &[(Field::Normalization, Some("RMSNorm"))]),
    switch("no-tie-embed-logits", &[(Field::UntieEmbeddingsAndOutputWeights, YES)]),
    switch("add-qkv-bias-linear", &[(Field::AddQkvBias, YES)]),
    takes("patch-tokenizer-type", &[(Field::TokenizerType, None)]),
    takes("extra-vocab-size", &[]),
    takes("max-padding-length", &[]),
    switch("use-llama2-rotary-position-embeddings", &[(Field::UseRotaryPositionEmbeddings, YES)]),
    takes("n-head-kv", &[(Field::GroupQueryAttention, YES), (Field::NumQueryGroups, None)]),
    takes("num-attention-heads-kv", &[(Field::GroupQueryAttention, YES), (Field::NumQueryGroups, None)]),
    // MindSpeed (`mindspeed/features_manager/tensor_parallel`): tensor-parallel GEMMs split so
    // that their communication overlaps.
    lacking("use-ascend-coc", Arity::On, Effect::Time, CHUNKS),
    // MC2: all-gathers and reduce-scatters fused with the GEMMs, which its documentation
    // recommends with sequence parallelism.
    switch("use-ascend-mc2", &[(Field::TpCommOverlap, YES)]),
    switch("use-mc2", &[(Field::TpCommOverlap, YES)]),
    takes("coc-mode", &[]),
    takes("coc-parallel-num", &[]),
    switch("coc-fused-kernel", &[]),
    // Read together with the options for packing its samples (`slime.rs`).
    takes("custom-generate-function-path", &[]),
    lacking("rollout-function-path", Arity::One, Effect::Memory, SAMPLES),
    // Adapters and frozen parts (MindSpeed-LLM, ms-swift, Pai).
    takes("lora-r", &[(Field::LoraRank, None), (Field::TrainType, LORA)]),
    several("lora-target-modules", &[(Field::LoraTargetModules, None)]),
    takes("lora-alpha", &[(Field::LoraAlpha, None)]),
    takes("lora-dropout", &[(Field::LoraDropout, None)]),
    switch("qlora", &[(Field::TrainType, Some("qlora"))]),
    switch("lora-fusion", &[]),
    switch("lora-ckpt-filter", &[]),
    takes("lora-load", &[(Field::TrainType, LORA)]),
    takes("lora-register-forward-hook", &[]),
    switch("use-peft", &[(Field::TrainType, LORA)]),
    takes("tuner-type", &[(Field::TrainType, None), (Field::AdapterLibrary, MCORE_BRIDGE)]),
    takes("train-type", &[(Field::TrainType, None), (Field::AdapterLibrary, MCORE_BRIDGE)]),
    takes("lora-rank", &[(Field::LoraRank, None)]),
    several("target-modules", &[(Field::LoraTargetModules, None)]),
    several("modules-to-save", &[(Field::ModulesToSave, None)]),
    // A scale: rank-stabilized adapters have the same tensors.
    takes("use-rslora", &[]),
    lacking("target-regex", Arity::One, Effect::Model, "adapters on modules matched by a pattern"),
    takes("lora-dtype", &[]),
    lacking("task-type", Arity::One, Effect::Model, "another head in place of the output layer"),
    // miles, whose adapters are Megatron-Bridge's (`miles/backends/megatron_utils/lora_utils.py:create_lora_instance`).
    lacking("exclude-modules", Arity::Several, Effect::Model, "modules excluded from adapters"),
    lacking(
        "experts-shared-outer-loras",
        Arity::On,
        Effect::Model,
        "adapters whose outer matrices are shared by all experts",
    ),
    switch("lora-sync-from-tensor", &[]),
    takes("lora-adapter-path", &[]),
    // ms-swift's longest sample, up to which packs are filled.
    takes("max-length", &[(Field::SeqLength, None)]),
    // Hygon's, read with the model that Megatron-Bridge builds (`bridged.rs`).
    lacking(
        "freeze-language-model",
        Arity::On,
        Effect::Model,
        "frozen parts; all weights would be counted as trained",
    ),
    lacking(
        "freeze-vision-model",
        Arity::On,
        Effect::Model,
        "frozen parts; all weights would be counted as trained",
    ),
    lacking(
        "freeze-vision-projection",
        Arity::On,
        Effect::Model,
        "frozen parts; all weights would be counted as trained",
    ),
    takes("max-pixels-num", &[(Field::ImagePixels, None)]),
    switch("freeze-ViT", &[(Field::FrozenModules, Some("vision"))]),
    switch("freeze-LM", &[(Field::FrozenModules, Some("llm"))]),
    switch("freeze-vit", &[(Field::FrozenModules, Some("vision"))]),
    switch("freeze-llm", &[(Field::FrozenModules, Some("llm"))]),
    switch("freeze-aligner", &[(Field::FrozenModules, Some("aligner"))]),
    lacking("language-model-type", Arity::One, Effect::Model, VISION),
    lacking("vision-model-type", Arity::One, Effect::Model, VISION),
    lacking("disable-vision-class-token", Arity::On, Effect::Model, VISION),
    // Megatron-LM's examples/mimo, and Primus's diffusion models.
    lacking("model-provider", Arity::One, Effect::Model, PARTS),
    lacking("audio-encoder-model", Arity::One, Effect::Model, PARTS),
    lacking("guidance-embed", Arity::On, Effect::Model, DIFFUSION),
    lacking("guidance-scale", Arity::One, Effect::Model, DIFFUSION),
    // Hygon's (`bridged.rs`).
    takes("bridge-hf-model", &[]),
    switch("use-bridge", &[]),
    switch("bridge-language-model-only", &[]),
    // Reinforcement learning and preference training.
    // slime and miles hold the reference's weights on the host and swap them in (`TensorBackuper`).
    takes("ref-load", &[(Field::RlReference, Some("host"))]),
    takes(
        "rollout-batch-size",
        &[
            (Field::RlFramework, Some("slime")),
            (Field::RolloutEngine, Some("sglang")),
            (Field::RolloutPrompts, None),
        ],
    ),
    takes("rollout-max-prompt-len", &[(Field::MaxPromptLength, None)]),
    takes("rollout-max-response-len", &[(Field::MaxResponseLength, None)]),
    takes("rollout-max-context-len", &[(Field::MaxContextLength, None)]),
    takes("n-samples-per-prompt", &[(Field::RolloutsPerPrompt, None)]),
    takes("num-steps-per-rollout", &[(Field::RolloutSteps, None)]),
    takes("rollout-num-gpus-per-engine", &[(Field::RolloutTensorParallelSize, None)]),
    takes("rollout-num-gpus", &[(Field::RolloutGpus, None)]),
    takes("sglang-mem-fraction-static", &[(Field::RolloutMemoryFraction, None)]),
    takes("sglang-cuda-graph-max-bs", &[(Field::RolloutSequences, None)]),
    switch("sglang-disable-cuda-graph", &[(Field::RolloutCudaGraphs, Some("false"))]),
    // torch_memory_saver pauses weights, gradients and states, and the engine's memory is released.
    switch(
        "colocate",
        &[(Field::RolloutSleep, YES), (Field::OffloadBetweenPhases, Some("weights gradients optimizer"))],
    ),
    // SGLang turns it off if its own data-parallel size is 1, the default
    // (`sglang/srt/server_args.py:_handle_data_parallelism`): the size alone decides
    // whether attention is data-parallel.
    switch("sglang-enable-dp-attention", &[]),
    switch("sglang-enable-dp-lm-head", &[]),
    lacking("sglang-dp-size", Arity::One, Effect::Memory, DP_ATTENTION),
    lacking("sglang-data-parallel-size", Arity::One, Effect::Memory, DP_ATTENTION),
    lacking(
        "sglang-speculative-algorithm",
        Arity::One,
        Effect::Memory,
        "a draft model in the rollout engine (speculative decoding)",
    ),
    // The teacher's weights are held on the host like the reference's, and swapped in for the policy's during a forward
    // pass (`slime/backends/megatron_utils/actor.py:load_other_checkpoint`, the same in miles). A teacher served by
    // SGLang must not be given here (`slime/utils/arguments.py`).
    takes("opd-teacher-load", &[]),
    // Only the training is started, no engine (`slime/ray/placement_group.py:create_placement_groups`);
    // the reader removes the rollouts.
    switch(TRAIN_ONLY, &[]),
    lacking("debug-rollout-only", Arity::On, Effect::Model, "rollouts only, no training"),
    // Supervised fine-tuning uses the policy's log-probabilities
    // (`slime/backends/megatron_utils/loss.py:sft_loss_function`).
    lacking("loss-type", Arity::One, Effect::Memory, "a custom loss"),
    lacking(
        "train-backend",
        Arity::One,
        Effect::Memory,
        "a backend other than Megatron under slime and miles",
    ),
    lacking("use-critic", Arity::On, Effect::Memory, "a critic in addition to the policy"),
    // megablocks.
    Fork {
        name: "moe-num-experts",
        arity: Arity::One,
        states: &[(Field::NumExperts, None)],
        lacking: Some((Effect::Memory, MEGABLOCKS)),
    },
    takes("moe-top-k", &[(Field::MoeRouterTopk, None)]),
    // Each expert gathers as many rows of tokens as its capacity (`megablocks/layers/moe.py`, binned_gather).
    takes(
        "moe-capacity-factor",
        &[(Field::MoeExpertCapacityFactor, None), (Field::MoePadExpertInputToCapacity, Some("true"))],
    ),
    takes("moe-loss-weight", &[(Field::MoeAuxLossCoeff, None)]),
    // Experts are sharded over all data-parallel ranks, but at most over as many as there are experts
    // (`megablocks/layers/mpu.py`, expert_sharding_degree). The degree is resolved with the world size.
    // Tokens go to their experts' ranks alone (`megablocks/layers/moe.py:parallel_forward_once`).
    switch(
        "moe-expert-model-parallelism",
        &[(Field::ExpertsOverData, Some("true")), (Field::MoeTokenDispatcherType, Some("alltoall"))],
    ),
    lacking(
        "moe-weight-parallelism",
        Arity::On,
        Effect::Communication,
        "expert weights gathered on use (megablocks)",
    ),
    lacking("parallel-attn", Arity::On, Effect::Model, "attention and MLP in parallel"),
    // Intel's fork (`HabanaAI/Megatron-LM`, `megatron/training/arguments.py`).
    lacking("use-fused-sdpa", Arity::One, Effect::Memory, GAUDI),
    lacking("use-fused-sdpa-with-recompute", Arity::One, Effect::Memory, GAUDI),
    lacking("use-torch-compile", Arity::One, Effect::Memory, GAUDI),
    // Hygon's (`hcu_megatron/core/tensor_parallel/mappings.py`).
    lacking("use-quantize-comm", Arity::On, Effect::Communication, "communication in lower precision"),
];

/// The meaning of a fork's flag; `_` counts as `-`.
pub(super) fn find(name: &str) -> Option<&'static Fork> {
    named(FORKS, name)
}

/// Whether a flag is MindSpeed's, which only runs on Ascend accelerators.
pub(super) fn is_mindspeed(name: &str) -> bool {
    const OWN: &[&str] = &[
        "use-fused-rmsnorm",
        "use-fused-swiglu",
        "use-fused-rotary-pos-emb",
        "context-parallel-algo",
        "reuse-fp32-param",
        "swap-attention",
    ];
    OWN.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn forks_are_reported_whatever_joins_their_words() {
        assert!(find("ds_sequence_parallel_size").is_some());
        assert!(find("num-layers").is_none());
    }
}
