//! The words of settings that hold one of some words, as types: code asks for a value, and only parsing and writing
//! deal with its word. Which setting holds them stands in `setting_word.rs`.

use super::{AdapterLibrary, ProjectedSide, RlFramework, RolloutEngine};

/// The words of types that stand elsewhere.
macro_rules! words_of {
    ($($name:ident { $($value:ident $word:literal),* $(,)? })*) => {$(
        impl $name {
            /// The words, in the order in which messages list them.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            pub(super) const fn word_of(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }

            pub(super) fn of_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    )*};
}

/// Types for settings. They are exhaustive, so that the compiler finds every decision that a new word concerns.
macro_rules! words {
    ($($name:ident { $($value:ident $word:literal),* $(,)? })*) => {$(
        /// A word of a setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`.")] $value,)*
        }

        words_of! { $name { $($value $word),* } }
    )*};
}

// The words are those of frameworks: Megatron's arguments, transformers' `training_args.py` and `OptimizerNames`, PEFT's
// and TRL's configurations. `other` is an optimizer whose states are not known.
words! {
    Normalization { LayerNorm "LayerNorm", RmsNorm "RMSNorm" }
    PositionEmbeddingType {
        LearnedAbsolute "learned_absolute", Rope "rope", Yarn "yarn", MRope "mrope", Relative
        "relative", Alibi "alibi", None "none",
    }
    SoftmaxType { Vanilla "vanilla", OffByOne "off-by-one", Learnable "learnable" }
    VisionLiger { Layers "layers", Class "class" }
    VisionModules { Transformers "transformers", Core "core", Provider "provider", Bridge "bridge" }
    VisionUnits { Unsplit "unsplit", Lists "lists" }
    DeviceMap { Layers "layers", Numbered "numbered" }
    TransformerImpl {
        Local "local", TransformerEngine "transformer_engine", InferenceOptimized "inference_optimized",
    }
    Fp8 { E4m3 "e4m3", Hybrid "hybrid" }
    Fp4 { E2m1 "e2m1" }
    Optimizer {
        Adam "adam", Sgd "sgd", Muon "muon", DistMuon "dist_muon", Lion "lion", Soap "soap", AdamMini
        "adam_mini", AdamWKahan "adamw_kahan", AdaptiveMuon "adaptive_muon", AdamW32Bit "adamw_32bit",
        AdamW8Bit "adamw_8bit", PagedAdamW "paged_adamw", PagedAdamW8Bit "paged_adamw_8bit", AdamW4Bit
        "adamw_4bit", AdamWFp8 "adamw_fp8", FlashAdamW "flash_adamw", FlashAdamW32 "flash_adamw_32bit", Lion8Bit "lion_8bit", Lion32Bit "lion_32bit", PagedLion
        "paged_lion", PagedLion8Bit "paged_lion_8bit", Adafactor "adafactor", Adagrad "adagrad", RmsProp
        "rmsprop", RmsProp8Bit "rmsprop_8bit", RmsProp32Bit "rmsprop_32bit", GaLore "galore", GaLore8Bit
        "galore_8bit", Apollo "apollo", ApolloSvd "apollo_svd", AdEmaMix "ademamix", AdEmaMix8Bit
        "ademamix_8bit", PagedAdEmaMix "paged_ademamix", PagedAdEmaMix8Bit "paged_ademamix_8bit", Lomo
        "lomo", GrokAdamW "grokadamw", ScheduleFree "schedule_free", ScheduleFreeSgd
        "schedule_free_sgd", StableAdamW "stable_adamw", Came "came", Shampoo "shampoo", Other "other",
    }
    DataParallelShardingStrategy {
        NoShard "no_shard", Optim "optim", OptimGrads "optim_grads", OptimGradsParams
        "optim_grads_params",
    }
    DataParallelEngine { Ddp "ddp", Fsdp1 "fsdp1", Fsdp2 "fsdp2", DeepSpeed "deepspeed" }
    TrainType { Full "full", Lora "lora", QLora "qlora", Freeze "freeze" }
    BaseQuantization { None "none", Nf4 "nf4", Fp4 "fp4", Int8 "int8", Fp8 "fp8" }
    TrainingObjective { Sft "sft", Dpo "dpo", Kto "kto", Reward "reward", TokenRewards
        "token_rewards", PackedRewards "packed_rewards", ValueRewards
        "value_rewards", Classify "classify", Policy "policy" }
    PreferenceLogits {
        Dropped "dropped", Own "own", Fp32 "fp32", Whole "whole", Named "named", Orpo "orpo", Cpo "cpo",
        CpoSimpo "cpo_simpo", Simpo "simpo", States "states", AllStates "all_states", LabelledStates
        "labelled_states", StatesOrpo "states_orpo",
    }
    ReferenceModel { Adapters "adapters", Loaded "loaded", Precomputed "precomputed", None "none" }
    Autocast { None "none", Bf16 "bf16", Fp16 "fp16" }
    AttnImplementation {
        Eager "eager", Sdpa "sdpa", FlashAttention2 "flash_attention_2", FlashAttention3
        "flash_attention_3", FlexAttention "flex_attention", FlashAttention4 "flash_attention_4",
    }
    ExpertsImplementation { GroupedMm "grouped_mm", BatchedMm "batched_mm", Eager "eager" }
    LossKind {
        Legacy "legacy", Unfused "unfused", Torch "torch", NativeFused "native_fused", TransformerEngine
        "te", Compiled "compiled", FusedLinear "fused_linear", Liger "liger", Cce "cce", Chunked
        "chunked", ChunkedLogits "chunked_logits", ChunkedLinear "chunked_linear", ChunkedRows
        "chunked_rows", FusedLogits "fused_logits", InPlaceLogits "in_place_logits", Distributed "distributed", DistributedCopy
        "distributed_copy", DistributedChunks "distributed_chunks", DistributedWideChunks
        "distributed_wide_chunks", Tiled "tiled", FusedTiles "fused_tiles", TokenKernel "token_kernel",
        PolicyRows "policy_rows", PolicyKernel "policy_kernel", TorchNarrow "torch_narrow",
    }
    RecomputeGranularity { Full "full", Selective "selective" }
    RecomputeMethod { Uniform "uniform", Block "block", Every "every", AllButEvery "all_but_every" }
    AttentionKernel {
        Flash "flash", Fused "fused", Unfused "unfused", Sdpa "sdpa", Flash3 "flash3", Flash4 "flash4",
    }
    AttentionBackend { Flash "flash", Fused "fused", Unfused "unfused", Local "local", Auto "auto" }
    CrossEntropyFusionImpl { Native "native", TransformerEngine "te" }
    CudaGraphImpl {
        None "none", Local "local", TransformerEngine "transformer_engine", FullIteration
        "full_iteration",
    }
    MoeTokenDispatcherType {
        AllGather "allgather", AllToAll "alltoall", AllToAllSequence "alltoall_seq", Flex "flex",
    }
    MoeFlexDispatcherBackend { DeepEp "deepep", HybridEp "hybridep", NcclEp "ncclep" }
    RouterLoss { None "none", Layers "layers", Joined "joined" }
    MoeRouterDtype { Fp32 "fp32", Fp64 "fp64", Bf16 "bf16", Fp16 "fp16" }
}

// Settings that hold several of these words, which `crates/architectures/src/rules.txt` gives each model type.
words! {
    ModuleVariant {
        SingleNorm "single_norm", LayerRotation "layer_rotation", Fp32LayerRotation
        "fp32_layer_rotation", HalfRotation "half_rotation", GeluNew "gelu_new", Relu "relu",
        ChosenRouting "chosen_routing", ClampedExperts "clamped_experts", EagerOnly "eager_only",
        TypedSoftmax "typed_softmax", CentredNorms "centred_norms", HeadBias "head_bias",
        AttentionDropout "attention_dropout", ResidualDropout "residual_dropout", EmbeddingDropout
        "embedding_dropout", Fp32Router "fp32_router", Fp32GroupedRouter "fp32_grouped_router",
        Fp32SigmoidRouter "fp32_sigmoid_router", Fp32HeldRouter "fp32_held_router", SigmoidRouter
        "sigmoid_router", SampledRouter "sampled_router", WeighingRouter "weighing_router",
        ComplexRotation "complex_rotation", WidenedNorms "widened_norms", NormsBehindRotation
        "norms_behind_rotation", PlainHeadNorms "plain_head_norms", QueryTemperature
        "query_temperature", TypedQueryTemperature "typed_query_temperature", NormsWithoutWeights
        "norms_without_weights", HeadNormsWithoutWeights "head_norms_without_weights",
        NormsWithoutBiases "norms_without_biases", ClippedQueries "clipped_queries", EagerAlone
        "eager_alone", RepeatedRotation "repeated_rotation", Fp32Scores "fp32_scores", EmbeddingNorm
        "embedding_norm", SplitMixerInputs "split_mixer_inputs", ScaledMixerInputs
        "scaled_mixer_inputs", Fp32LayerNorm "fp32_layer_norm", Xielu "xielu",
        IndexedQkv "indexed_qkv", TypedRouter "typed_router", RaisedNorms "raised_norms", ValueNorms
        "value_norms", NormedRouter "normed_router",
        KeysAsValues "keys_as_values", DenseBesideExperts "dense_beside_experts", DoubleWideMlp "double_wide_mlp",
        UncastNorms "uncast_norms", MlpDropout "mlp_dropout",
    }
    KernelVariant {
        ScaledBranches "scaled_branches", SlicedQkv "sliced_qkv", HeadwiseQkv "headwise_qkv",
        SelectedQkv "selected_qkv", PassedRotation "passed_rotation", GeluByHand "gelu_by_hand",
        ScaledLayers "scaled_layers", TokensFirst "tokens_first", ImageMasks "image_masks",
        OrderedNorms "ordered_norms", FirstNorms "first_norms", FollowingNorms "following_norms",
        OutputFirst "output_first",
    }
}

words_of! {
    AdapterLibrary {
        Peft "peft", MegatronBridge "megatron-bridge", MegatronBridgeCanonical "megatron-bridge-canonical",
        McoreBridge "mcore-bridge", Torchtune "torchtune", Litgpt "litgpt",
    }
    ProjectedSide {
        Shorter "std", Longer "reverse_std", Left "left", Right "right", Both "full",
    }
    RlFramework {
        Verl "verl", VerlShared "verl_2025", OpenRlhf "openrlhf", Slime "slime", NemoRl "nemo_rl", MindSpeedRl "mindspeed_rl", Trl "trl",
        Swift "swift", OpenInstruct "open_instruct", SkyRl "skyrl", Roll "roll", Areal "areal",
        PrimeRl "prime_rl", EasyR1 "easy_r1", Unsloth "unsloth",
    }
    RolloutEngine { Vllm "vllm", Sglang "sglang", Transformers "transformers" }
}
