//! The name of every setting, once, with what it may hold. Names are Megatron's argument names in
//! snake case; the maxima keep every later product of sizes inside 64 bits (see [`super::limits`]).

use std::sync::OnceLock;

use shardscope_source::LaterText;

use super::define::fields;
use super::kind::{DTYPES, OPTIMIZERS, ValueKind};
use super::layers::LinearKind;
use super::limits::{
    MAX_BATCH, MAX_DEGREE, MAX_EXPERTS, MAX_FFN, MAX_HEAD_WIDTH, MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_MTP,
    MAX_PATCHES, MAX_POSITIONS, MAX_SENT, MAX_SEQUENCE, MAX_VISION, MAX_VOCAB, MAX_WORLD,
};
use ValueKind::{Count, Counts, Flag, Real, Text, Word, Words};

fields! {
    // The model.
    Model "model" Text, "model by its name on the Hub";
    NumLayers "num_layers" Count(1, MAX_LAYERS), "transformer layers";
    NoopLayers "noop_layers" Counts, "layers that are skipped (MindSpeed's noop layers)";
    HiddenSize "hidden_size" Count(1, MAX_HIDDEN), "hidden size";
    FfnHiddenSize "ffn_hidden_size" Count(1, MAX_FFN), "FFN hidden size of a dense MLP";
    NumAttentionHeads "num_attention_heads" Count(1, MAX_HEADS), "attention heads";
    GroupQueryAttention "group_query_attention" Flag, "whether query heads share key/value heads";
    NumQueryGroups "num_query_groups" Count(1, MAX_HEADS), "key/value heads";
    KvChannels "kv_channels" Count(1, MAX_HEAD_WIDTH), "head dimension";
    SeqLength "seq_length" Count(1, MAX_SEQUENCE), "sequence length, in tokens";
    MaxPositionEmbeddings "max_position_embeddings" Count(1, MAX_POSITIONS), "longest sequence; rows of a learned position table";
    VocabSize "vocab_size" Count(1, MAX_VOCAB), "vocabulary size, before padding";
    MakeVocabSizeDivisibleBy "make_vocab_size_divisible_by" Count(1, 1 << 20), "the vocabulary is padded to a multiple of this times the tensor size";
    PadVocabSize "pad_vocab_size" Flag, "whether the vocabulary is padded";
    PaddedVocabSize "padded_vocab_size" Count(1, MAX_VOCAB), "rows of the embedding, padding included";
    TokenizerType "tokenizer_type" Text, "kind of tokenizer";
    TokenizerModel "tokenizer_model" Text, "tokenizer model or name";
    VocabFile "vocab_file" Text, "vocabulary file";
    Swiglu "swiglu" Flag, "gated SiLU in the MLP";
    QuickGeglu "quick_geglu" Flag, "gated quick GELU in the MLP";
    SquaredRelu "squared_relu" Flag, "squared ReLU in the MLP";
    Normalization "normalization" Word(&["LayerNorm", "RMSNorm"]), "which norm";
    PositionEmbeddingType "position_embedding_type" Word(&["learned_absolute", "rope", "yarn", "mrope", "relative", "alibi", "none"]), "which position embedding";
    UseRotaryPositionEmbeddings "use_rotary_position_embeddings" Flag, "older spelling of position embedding type rope";
    AddPositionEmbedding "add_position_embedding" Flag, "whether a learned position table exists";
    RotaryPercent "rotary_percent" Real(0.0, 1.0), "fraction of a head that RoPE rotates";
    RotaryBase "rotary_base" Real(1.0, 1e15), "RoPE base (theta)";
    WindowSize "window_size" Text, "sliding attention window";
    ApplyLayernorm1p "apply_layernorm_1p" Flag, "zero-centred norm weights (stored as weight - 1)";
    AddBiasLinear "add_bias_linear" Flag, "biases of linear layers";
    AddQkvBias "add_qkv_bias" Flag, "bias of the QKV projection";
    QkLayernorm "qk_layernorm" Flag, "norms on queries and keys";
    UntieEmbeddingsAndOutputWeights "untie_embeddings_and_output_weights" Flag, "whether the output layer has weights of its own";
    SoftmaxType "softmax_type" Word(&["vanilla", "off-by-one", "learnable"]), "attention softmax";
    MultiLatentAttention "multi_latent_attention" Flag, "multi-latent attention";
    QLoraRank "q_lora_rank" Count(0, MAX_HIDDEN), "rank of the query compression (MLA)";
    KvLoraRank "kv_lora_rank" Count(1, MAX_HIDDEN), "rank of the key/value compression (MLA)";
    QkHeadDim "qk_head_dim" Count(1, MAX_HEAD_WIDTH), "head dimension of queries and keys without RoPE (MLA)";
    QkPosEmbHeadDim "qk_pos_emb_head_dim" Count(0, MAX_HEAD_WIDTH), "head dimension of queries and keys with RoPE (MLA)";
    VHeadDim "v_head_dim" Count(1, MAX_HEAD_WIDTH), "head dimension of values (MLA)";
    NumExperts "num_experts" Count(0, MAX_EXPERTS), "routed experts per MoE layer";
    ExpertsOverData "experts_over_data" Flag, "experts sharded over the data-parallel ranks (megablocks)";
    MoeRouterTopk "moe_router_topk" Count(1, MAX_EXPERTS), "experts per token";
    MoeRouterNumGroups "moe_router_num_groups" Count(1, MAX_EXPERTS), "expert groups, to some of which a token is limited (group-limited routing)";
    MoeRouterGroupTopk "moe_router_group_topk" Count(1, MAX_EXPERTS), "expert groups from which a token's experts are chosen";
    MoeFfnHiddenSize "moe_ffn_hidden_size" Count(1, MAX_FFN), "FFN hidden size of one expert";
    MoeLayerFreq "moe_layer_freq" Text, "which layers are MoE layers";
    FirstKDenseReplace "first_k_dense_replace" Text, "leading layers that are dense";
    NSharedExperts "n_shared_experts" Count(0, 1024), "shared experts, each as wide as a routed one";
    MoeSharedExpertIntermediateSize "moe_shared_expert_intermediate_size" Count(0, MAX_FFN), "FFN hidden size of all shared experts together";
    MoeSharedExpertGate "moe_shared_expert_gate" Flag, "a gate on the shared experts' output";
    MoeLatentSize "moe_latent_size" Count(1, MAX_HIDDEN), "latent size in which experts work";
    MtpNumLayers "mtp_num_layers" Count(0, MAX_MTP), "multi-token-prediction depths";
    // What mixes tokens in each layer.
    MixerPattern "mixer_pattern" Text, "what mixes tokens in each layer, repeated to the last: * attention, w windowed attention, M the linear mixer, P both, - none";
    HybridOverridePattern "hybrid_override_pattern" Text, "layers of one block each: M Mamba-2, * attention, - MLP, E experts; | between stages";
    HybridAttentionRatio "hybrid_attention_ratio" Real(0.0, 1.0), "fraction of a hybrid model's layers that are attention (Megatron-LM before its pattern)";
    HybridMlpRatio "hybrid_mlp_ratio" Real(0.0, 1.0), "fraction of a hybrid model's layers that are MLPs (Megatron-LM before its pattern)";
    AttentionWindow "attention_window" Count(1, MAX_SEQUENCE), "attention window in tokens, the query's own included";
    ChunkedAttention "chunked_attention" Flag, "chunked attention: windows that do not slide";
    WindowAttnSkipFreq "window_attn_skip_freq" Text, "every how many layers attention is not windowed, or a list of 1 for windowed";
    AttentionOutputGate "attention_output_gate" Flag, "a gate on the attention output, projected beside the queries";
    LinearMixer "linear_mixer" Word(LinearKind::NAMES), "kind of linear attention or state-space layer";
    LinearAttentionFreq "linear_attention_freq" Text, "every how many layers attention is not linear, or a list of 1 for linear";
    LinearNumKeyHeads "linear_num_key_heads" Count(1, MAX_HEADS), "query and key heads of a linear mixer; Mamba-2's groups";
    LinearNumValueHeads "linear_num_value_heads" Count(1, MAX_HEADS), "value heads of a linear mixer; Mamba-2's heads";
    LinearKeyHeadDim "linear_key_head_dim" Count(1, MAX_HEAD_WIDTH), "key head dimension of a linear mixer; a state-space layer's state size";
    LinearValueHeadDim "linear_value_head_dim" Count(1, MAX_HIDDEN), "value head dimension of a linear mixer";
    LinearConvKernelDim "linear_conv_kernel_dim" Count(0, 64), "kernel size of a linear mixer's convolution";
    LinearRank "linear_rank" Count(0, MAX_HIDDEN), "rank of a linear mixer's low-rank projections";
    LinearBiases "linear_biases" Words, "linear layers of a linear mixer that have a bias: in_proj, conv1d, out_proj";
    LinearNorm "linear_norm" Flag, "a norm after a linear mixer's scan";
    // The vision tower beside the decoder, its projector counted in.
    VisionTower "vision_tower" Flag, "a vision tower beside the decoder";
    VisionParameters "vision_parameters" Count(0, MAX_VISION), "parameters of the vision tower and its projector";
    VisionLayers "vision_layers" Count(0, MAX_LAYERS), "layers of the vision tower";
    VisionLayerParameters "vision_layer_parameters" Count(0, MAX_VISION), "parameters of one of them";
    VisionHiddenSize "vision_hidden_size" Count(1, MAX_HIDDEN), "width of the vision tower's residual stream";
    VisionPatches "vision_patches" Count(1, MAX_PATCHES), "image patches merged into one token";
    VisionKept "vision_kept" Words, "what the vision tower saves for backward: kinds of its modules, and sizes as name=number";
    VisionShared "vision_shared" Words, "names that linear layers of the vision tower share with those of the decoder";
    VisionHooked "vision_hooked" Flag, "the input-gradient hook (enable_input_require_grads) reaches the vision tower's patch embedding";
    VisionDtype "vision_dtype" Word(DTYPES), "dtype of the vision tower's weights, where it is not that of the others";
    VisionUnquantized "vision_unquantized" Flag, "the vision tower and its projector stay in 16 bits where the decoder's linear layers are quantized (ms-swift)";
    ProjectorLayers "projector_layers" Count(0, MAX_PATCHES), "linear layers of a trained projector after a frozen vision tower";
    ImagePatches "image_patches" Count(0, MAX_SEQUENCE), "patches of the images of a sample, all together, where that is known";
    ImagePixels "image_pixels" Count(0, MAX_VISION), "maximum pixels per image before it is split into patches";
    VisionRecompute "vision_recompute" Flag, "layers of the vision tower are recomputed where the decoder's are";
    VisionAdapters "vision_adapters" Flag, "every linear layer of the unfrozen vision parts has adapters; false: these parts train in full beside the decoder's adapters";
    VisionLiger "vision_liger" Word(&["layers", "class"]), "which norms of the vision tower are Liger's: those of layers, or all of their class";
    VisionWhole "vision_whole" Flag, "the vision tower is transformers' own modules, whole on every tensor rank of the first stage (Megatron core)";
    VisionInEngine "vision_in_engine" Flag, "only the rollout engine has the vision tower; the decoder trains alone";
    VisionUnits "vision_units" Word(&["unsplit", "lists"]), "what FSDP gathers at once of a vision tower: modules that transformers does not split, or those of any list of modules";
    VisionInputGrads "vision_input_grads" Flag, "the input of a frozen vision tower is made to require a gradient, so that it keeps tensors";
    // How a model's published modules are arranged.
    WholeKeys "whole_keys" Flag, "keys and values are a projection of their own, whole on each tensor rank (bigcode's Megatron-LM)";
    FusedQkv "fused_qkv" Flag, "one projection for queries, keys and values in the model's own modules";
    FusedGateUp "fused_gate_up" Flag, "one projection for both halves of a gated MLP in the model's own modules";
    ParallelResidual "parallel_residual" Flag, "attention and MLP read the same residual stream";
    PostNorms "post_norms" Flag, "norms after attention and MLP too";
    NormsBehind "norms_behind" Flag, "norms after attention and MLP, and none before";
    Fp32Norms "fp32_norms" Flag, "norms that multiply by one plus their weight in fp32";
    WideNorms "wide_norms" Flag, "norms that multiply by their weight in fp32";
    NormsOverHeads "norms_over_heads" Flag, "norms of queries and keys over all heads together";
    Fp32Rotation "fp32_rotation" Flag, "RoPE cosines and sines in fp32";
    AttentionSoftcap "attention_softcap" Flag, "soft-capped attention scores (tanh)";
    FinalSoftcap "final_softcap" Flag, "soft-capped logits (tanh)";
    NormalizedRouting "normalized_routing" Flag, "weights of the top-k experts normalized in fp32";
    Fp32Routing "fp32_routing" Flag, "routing weights normalized and kept in fp32";
    ModuleVariants "module_variants" Words, "where a model's own modules differ from Llama's: single_norm, layer_rotation, fp32_layer_rotation, half_rotation, gelu_new, relu, chosen_routing, clamped_experts, eager_only, typed_softmax, centred_norms, head_bias, attention_dropout, residual_dropout, embedding_dropout, fp32_router, fp32_grouped_router, fp32_sigmoid_router, fp32_held_router, sigmoid_router, sampled_router, weighing_router, complex_rotation, widened_norms, norms_behind_rotation, plain_head_norms, query_temperature, typed_query_temperature, norms_without_weights, head_norms_without_weights, norms_without_biases, clipped_queries, eager_alone, repeated_rotation, fp32_scores, embedding_norm, split_mixer_inputs, scaled_mixer_inputs";
    KernelVariants "kernel_variants" Words, "operations of a model's own modules beyond Llama's that keep nothing for backward: scaled_branches, sliced_qkv, headwise_qkv, selected_qkv, passed_rotation, gelu_by_hand";
    ConvertedExperts "converted_experts" Flag, "experts' weights get adapters where the projections of an MLP are named (PEFT over transformers 5)";
    UnrecordedModules "unrecorded_modules" Text, "model type whose modules have not been recorded";
    // The machines.
    Accelerator "accelerator" Text, "accelerator";
    Platform "platform" Text, "kind of node: accelerator and network adapters together";
    NumNodes "num_nodes" Count(1, MAX_WORLD), "nodes";
    GpusPerNode "gpus_per_node" Count(1, MAX_WORLD), "accelerators per node";
    WorldSize "world_size" Count(1, MAX_WORLD), "accelerators in total";
    // What the user knows better than the catalog, and asks of the run.
    GpuMemoryGib "gpu_memory_gib" Real(1e-3, 1e6), "GiB of memory of an accelerator, for one the catalog has otherwise";
    GpuMemoryTbps "gpu_memory_tbps" Real(1e-3, 1e6), "TB/s of memory bandwidth of an accelerator";
    GpuPeakTflops "gpu_peak_tflops" Real(1e-3, 1e6), "dense bf16 peak of an accelerator, TFLOP/s";
    GpuPeakFp8Tflops "gpu_peak_fp8_tflops" Real(1e-3, 1e6), "dense fp8 peak of an accelerator, TFLOP/s";
    FastLinkGbps "fast_link_gbps" Real(1e-3, 1e6), "GB/s of an accelerator's fast link (NVLink), per direction";
    FastLinkDomain "fast_link_domain" Count(1, MAX_WORLD), "accelerators that one fast-link domain joins";
    NetworkGbps "network_gbps" Real(1e-3, 1e6), "GB/s of network of an accelerator, per direction";
    MeasuredMatmulTflops "measured_matmul_tflops" Real(1e-3, 1e6), "TFLOP/s of a large bf16 GEMM, measured";
    MeasuredFastBusGbps "measured_fast_bus_gbps" Real(1e-3, 1e6), "GB/s of bus bandwidth of a large all-reduce inside a node, measured (nccl-tests)";
    MeasuredOverEstimated "measured_over_estimated" Real(0.05, 20.0), "a measured step of this run over its estimate; other layouts of it are corrected by what such runs have in common";
    MeasuredNetworkBusGbps "measured_network_bus_gbps" Real(1e-3, 1e6), "GB/s per accelerator of bus bandwidth of a large all-reduce over nodes, measured (nccl-tests)";
    MemoryHeadroom "memory_headroom" Real(0.0, 0.5), "fraction of an accelerator's memory to keep free; a plan that needs some of it is tight";
    MemoryLeftOut "memory_left_out" Words, "what is not counted of the device's memory: context, communicators, slack, flat, workspaces";
    Without "without" Words, "settings that are not modelled, and are ignored as asked";
    NotRead "not_read" Words, "options and keys of the training that are not known here";
    TokenBudget "token_budget" Count(1, 1 << 60), "tokens to train on";
    PricePerGpuHour "price_per_gpu_hour" Real(0.0, 1e6), "price per accelerator and hour";
    WattsPerGpu "watts_per_gpu" Real(0.0, 1e6), "watts per accelerator, with its share of host, network and cooling";
    // The layout.
    TensorModelParallelSize "tensor_model_parallel_size" Count(1, MAX_DEGREE), "tensor parallel size";
    PipelineModelParallelSize "pipeline_model_parallel_size" Count(1, MAX_DEGREE), "pipeline parallel size";
    NumLayersPerVirtualPipelineStage "num_layers_per_virtual_pipeline_stage" Count(1, MAX_LAYERS), "layers per virtual pipeline stage";
    NumVirtualStagesPerPipelineRank "num_virtual_stages_per_pipeline_rank" Count(1, MAX_LAYERS), "virtual stages per pipeline rank";
    VirtualPipelineModelParallelSize "virtual_pipeline_model_parallel_size" Count(1, MAX_LAYERS), "model chunks per rank";
    ContextParallelSize "context_parallel_size" Count(1, MAX_DEGREE), "context parallel size";
    ExpertModelParallelSize "expert_model_parallel_size" Count(1, MAX_DEGREE), "expert parallel size";
    ExpertTensorParallelSize "expert_tensor_parallel_size" Count(1, MAX_DEGREE), "tensor parallel size of experts";
    DataParallelSize "data_parallel_size" Count(1, MAX_WORLD), "data parallel size";
    ExpertDataParallelSize "expert_data_parallel_size" Count(1, MAX_WORLD), "data parallel size of experts";
    SequenceParallel "sequence_parallel" Flag, "sequence parallelism";
    UseTpPpDpMapping "use_tp_pp_dp_mapping" Flag, "rank order tp-cp-ep-pp-dp";
    CpCommType "cp_comm_type" Words, "how context parallelism exchanges keys and values";
    HierarchicalContextParallelSizes "hierarchical_context_parallel_sizes" Counts, "levels of context parallelism";
    NumDistributedOptimizerInstances "num_distributed_optimizer_instances" Count(1, MAX_WORLD), "replicas of the distributed optimizer";
    ShardWithinNodes "shard_within_nodes" Flag, "weights sharded inside each node, with copies between them (HSDP)";
    ShardRanks "shard_ranks" Count(1, MAX_WORLD), "ranks that share one copy of the weights (HSDP)";
    MicrobatchGroupSizePerVpStage "microbatch_group_size_per_vp_stage" Count(1, MAX_BATCH), "micro-batches a chunk takes in a row";
    DecoderFirstPipelineNumLayers "decoder_first_pipeline_num_layers" Count(0, MAX_LAYERS), "layers of the first stage";
    DecoderLastPipelineNumLayers "decoder_last_pipeline_num_layers" Count(0, MAX_LAYERS), "layers of the last stage";
    AccountForEmbeddingInPipelineSplit "account_for_embedding_in_pipeline_split" Flag, "the embedding counts as a layer of the first stage";
    AccountForLossInPipelineSplit "account_for_loss_in_pipeline_split" Flag, "the loss counts as a layer of the last stage";
    PipelineSchedule "pipeline_schedule" Word(&["1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "1f1b-v", "dualpipe", "dualpipe-v"]), "order of micro-batches on a stage";
    PipelineModelParallelLayout "pipeline_model_parallel_layout" Text, "pipeline stages written out layer by layer";
    // The batch.
    MicroBatchSize "micro_batch_size" Count(1, MAX_BATCH), "micro-batch size, in sequences";
    GlobalBatchSize "global_batch_size" Count(1, MAX_BATCH), "global batch size, in sequences per step";
    NumMicroBatches "num_micro_batches" Count(1, MAX_BATCH), "micro-batches per step and replica";
    MaxTokensPerGpu "max_tokens_per_gpu" Count(1, MAX_SEQUENCE), "tokens on one GPU up to which samples are packed";
    MaxTokensPerMicroBatch "max_tokens_per_micro_batch" Count(1, MAX_SEQUENCE), "tokens of one micro-batch up to which samples are packed";
    UseDynamicBatchSize "use_dynamic_batch_size" Flag, "micro-batches packed up to a number of tokens instead of samples (slime)";
    RampupBatchSize "rampup_batch_size" Counts, "start, increment and samples of a growing batch";
    StepBatchSizeSchedule "step_batch_size_schedule" Text, "batch sizes from token thresholds on";
    DecreaseBatchSizeIfNeeded "decrease_batch_size_if_needed" Flag, "round the global batch down to what divides";
    TrainIters "train_iters" Count(0, u64::MAX >> 12), "steps of the run";
    TrainSamples "train_samples" Count(0, u64::MAX >> 12), "samples of the run";
    CalculatePerTokenLoss "calculate_per_token_loss" Flag, "loss averaged over tokens";
    UseCheckpointArgs "use_checkpoint_args" Flag, "model sizes read from the checkpoint";
    // The software and its precision.
    Software "software" Word(&["megatron_legacy", "megatron_core_local", "megatron_core_te", "megatron_deepspeed", "torchtitan", "nanotron", "gpt_neox", "torch_fsdp", "hf_transformers", "torchtune", "torchtune_0_6", "litgpt", "unsloth", "automodel", "olmo", "xtuner", "olmo_core", "scaletorch", "maxtext"]), "which software runs it";
    TransformerImpl "transformer_impl" Word(&["local", "transformer_engine", "inference_optimized"]), "layers of Megatron or of Transformer Engine";
    UseMcoreModels "use_mcore_models" Flag, "core models instead of legacy ones";
    UseLegacyModels "use_legacy_models" Flag, "legacy models instead of core ones";
    ParamsDtype "params_dtype" Word(DTYPES), "dtype of weights and activations";
    Bf16 "bf16" Flag, "bf16 training";
    Fp16 "fp16" Flag, "fp16 training";
    Fp8 "fp8" Word(&["e4m3", "hybrid"]), "fp8 matmuls";
    Fp8Recipe "fp8_recipe" Word(&["tensorwise", "delayed", "mxfp8", "blockwise", "custom"]), "how fp8 values are scaled";
    Fp8ParamGather "fp8_param_gather" Flag, "weights held and gathered in fp8";
    Fp4 "fp4" Word(&["e2m1"]), "fp4 matmuls";
    GradsDtype "grads_dtype" Word(DTYPES), "dtype in which gradients are accumulated and reduced";
    AccumulateAllreduceGradsInFp32 "accumulate_allreduce_grads_in_fp32" Flag, "gradients accumulated and reduced in fp32";
    GradReduceInBf16 "grad_reduce_in_bf16" Flag, "gradients reduced in bf16";
    Fp32ResidualConnection "fp32_residual_connection" Flag, "residual stream in fp32";
    // The optimizer and what is sharded over data-parallel ranks.
    Optimizer "optimizer" Word(OPTIMIZERS), "optimizer";
    SgdMomentum "sgd_momentum" Real(0.0, 1.0), "momentum of SGD";
    WholeEmbeddingStates "whole_embedding_states" Flag, "an 8-bit optimizer of bitsandbytes holds the word embedding's states in fp32 (transformers' Trainer)";
    UseDistributedOptimizer "use_distributed_optimizer" Flag, "optimizer states sharded over data-parallel ranks";
    ZeroStage "zero_stage" Count(0, 3), "what data-parallel ranks shard: 0 nothing, 1 optimizer states, 2 also gradients, 3 also weights";
    UseMegatronFsdp "use_megatron_fsdp" Flag, "Megatron's FSDP";
    UseTorchFsdp2 "use_torch_fsdp2" Flag, "PyTorch's FSDP2";
    DataParallelShardingStrategy "data_parallel_sharding_strategy" Word(&["no_shard", "optim", "optim_grads", "optim_grads_params"]), "what Megatron's FSDP shards";
    UsePrecisionAwareOptimizer "use_precision_aware_optimizer" Flag, "optimizer states in lower precision";
    ReuseFp32Param "reuse_fp32_param" Flag, "fp32 weights share memory with bf16 weights (MindSpeed)";
    MainGradsDtype "main_grads_dtype" Word(&["fp32", "bf16"]), "dtype of main gradients";
    MainParamsDtype "main_params_dtype" Word(&["fp32", "fp16"]), "dtype of main parameters";
    ExpAvgDtype "exp_avg_dtype" Word(DTYPES), "dtype of the first moment";
    ExpAvgSqDtype "exp_avg_sq_dtype" Word(DTYPES), "dtype of the second moment";
    OptimizerCpuOffload "optimizer_cpu_offload" Flag, "optimizer states on the host";
    OptimizerOffloadFraction "optimizer_offload_fraction" Real(0.0, 1.0), "fraction of the optimizer states on the host";
    OffloadLayerInputs "offload_layer_inputs" Flag, "inputs of recomputed layers on the host (unsloth, torchtune)";
    OffloadOptimizer "offload_optimizer" Flag, "DeepSpeed: optimizer states on the host";
    OffloadParam "offload_param" Flag, "DeepSpeed: weights on the host";
    DataParallelEngine "data_parallel_engine" Word(&["ddp", "fsdp1", "fsdp2", "deepspeed"]), "what wraps the model for data parallelism (transformers)";
    FsdpEndsApart "fsdp_ends_apart" Flag, "embedding and output layer are FSDP units of their own, which are gathered when they run";
    ReduceBucketSize "reduce_bucket_size" Count(0, MAX_VISION), "elements of each of DeepSpeed's buffers of gradients to be reduced; 0 is transformers' auto, the square of the width";
    ReduceBuckets "reduce_buckets" Count(0, 2), "DeepSpeed's buffers of gradients to be reduced: two with overlap_comm under ZeRO-1 and 2, none where gradients are not contiguous";
    OptimizerForeach "optimizer_foreach" Flag, "PyTorch's AdamW steps over all tensors at once (foreach), with the roots of all second moments beside them; the fused one has none";
    StepInBackward "step_in_backward" Flag, "the optimizer steps each parameter as soon as backward has its gradient (torchtune's optimizer_in_bwd)";
    DtensorPlan "dtensor_plan" Flag, "tensor parallelism puts DTensor's column- and row-parallel styles on each linear layer, embedding and output layer, as NeMo Automodel's plans do (transformers)";
    FsdpEmbeddingApart "fsdp_embedding_apart" Flag, "the embedding alone is an FSDP unit of its own, and the output layer is of the unit outside of layers";
    DeferReduction "defer_reduction" Flag, "Gradients are reduced only with a step's last micro-batch and held whole until then (FSDP2's set_requires_gradient_sync)";
    ReduceDtype "reduce_dtype" Word(DTYPES), "dtype in which FSDP reduces gradients (transformers), where it is not the one weights are gathered in";
    OutputDtype "output_dtype" Word(DTYPES), "dtype in which FSDP2 hands on what a layer returns (transformers), where it is not the one of computation";
    // What trains and what is frozen.
    TrainType "train_type" Word(&["full", "lora", "qlora", "freeze"]), "what trains: everything, low-rank adapters, adapters over quantized weights, the last layers";
    LoraRank "lora_rank" Count(1, 65_536), "rank of the LoRA adapters";
    LoraAlpha "lora_alpha" Real(0.0, 1e9), "LoRA alpha (scale of the adapters)";
    LoraDropout "lora_dropout" Real(0.0, 1.0), "dropout before the LoRA adapters";
    LoraTargetModules "lora_target_modules" Words, "linear layers with an adapter, by the names of the model's modules, or all-linear";
    LoraByNames "lora_by_names" Flag, "all-linear is a list of the names that linear layers have (LLaMA-Factory, axolotl, ms-swift, XTuner), and not PEFT's own word";
    ModulesToSave "modules_to_save" Words, "modules that train in full beside adapters: embed_tokens, lm_head";
    FrozenModules "frozen_modules" Words, "parts of the model that do not train: vision_tower, multi_modal_projector, language_model";
    AdapterDtype "adapter_dtype" Word(DTYPES), "dtype of the LoRA adapters";
    AdapterLibrary "adapter_library" Word(&["peft", "megatron-bridge", "megatron-bridge-canonical", "mcore-bridge", "torchtune", "litgpt"]), "which library builds the adapters, which decides how they are sharded over tensor ranks";
    LoraKernels "lora_kernels" Words, "projections with fused LoRA kernels: qkv, o, mlp (axolotl), each by itself (NeMo Automodel)";
    UseDora "use_dora" Flag, "weight-decomposed adapters (DoRA)";
    TrainedLayers "trained_layers" Count(0, MAX_LAYERS), "last layers that train where the rest is frozen";
    InputRequireGrads "input_require_grads" Flag, "the embedding's output is made to require a gradient";
    BaseQuantization "base_quantization" Word(&["none", "nf4", "fp4", "int8", "fp8"]), "how frozen linear weights are held";
    WholeLinears "whole_linears" Words, "linear layers that a quantized checkpoint keeps in 16 bits: module names, or none";
    DoubleQuantization "double_quantization" Flag, "block scales of 4-bit weights quantized again (double quantization)";
    UpcastNonQuantized "upcast_non_quantized" Flag, "frozen weights that are not quantized are held in fp32 (PEFT prepare_model_for_kbit_training)";
    TrainingObjective "training_objective" Word(&["sft", "dpo", "kto", "reward", "classify", "policy"]), "what the loss is computed from";
    NumLabels "num_labels" Count(1, MAX_VOCAB), "classes of the head that replaces the output layer (classify)";
    PreferenceLogits "preference_logits" Word(&["dropped", "own", "fp32", "whole", "named", "orpo", "cpo", "cpo_simpo", "simpo", "states", "all_states", "labelled_states", "states_orpo"]), "what a loss behind the model does with the logits: lets go of them before a reference runs, holds them until its metrics are taken (own: TRL), holds them in fp32 (LLaMA-Factory), takes all at once (whole: SimPO), holds the reference's alone (named: torchtune), takes the cross entropy of chosen samples besides (TRL's orpo, cpo, and cpo_simpo of means), means alone (TRL's simpo), or has none (unsloth: states of all tokens but the last, all, those with a label, or states_orpo)";
    ReferenceModel "reference_model" Word(&["adapters", "loaded", "precomputed", "none"]), "where a preference loss has its reference from";
    // Reinforcement learning: rollouts, and what shares the accelerators with the training.
    RlFramework "rl_framework" Word(&["verl", "openrlhf", "slime", "nemo_rl", "mindspeed_rl", "trl", "swift", "open_instruct", "skyrl", "roll", "areal", "prime_rl", "easy_r1", "unsloth"]), "framework of reinforcement learning that runs training and rollouts";
    RolloutEngine "rollout_engine" Word(&["vllm", "sglang", "transformers"]), "engine that generates rollouts, or the model that trains (transformers)";
    RolloutTensorParallelSize "rollout_tensor_parallel_size" Count(1, MAX_DEGREE), "tensor parallel size of the rollout engine";
    RolloutMemoryFraction "rollout_memory_fraction" Real(0.0, 1.0), "fraction of an accelerator's memory given to the rollout engine (gpu_memory_utilization, mem_fraction_static)";
    RolloutGpus "rollout_gpus" Count(0, MAX_WORLD), "accelerators that only generate, 0 where they are not described; without it rollouts share those of the training";
    RolloutSleep "rollout_sleep" Flag, "the rollout engine gives back weights and cache while the model trains";
    RolloutCudaGraphs "rollout_cuda_graphs" Flag, "rollouts decode from CUDA graphs";
    RolloutSequences "rollout_sequences" Count(1, MAX_BATCH), "maximum sequences that the rollout engine decodes at once";
    RolloutDtype "rollout_dtype" Word(DTYPES), "dtype of the rollout engine's weights";
    RolloutResponse "rollout_response" Count(1, MAX_SEQUENCE), "longest response, in tokens, where the model that trains makes it";
    RolloutSampling "rollout_sampling" Words, "what changes the logits before a token is sampled from them by transformers: temperature, top_k, top_p, min_p";
    RolloutsPerPrompt "rollouts_per_prompt" Count(1, MAX_BATCH), "rollouts per prompt";
    RolloutPrompts "rollout_prompts" Count(1, MAX_BATCH), "prompts per round of rollouts";
    RolloutSteps "rollout_steps" Count(1, MAX_BATCH), "optimizer steps per round of rollouts";
    RolloutLength "rollout_length" Count(1, MAX_SEQUENCE), "longest prompt and response together";
    MaxPromptLength "max_prompt_length" Count(1, MAX_SEQUENCE), "longest prompt, in tokens";
    MaxResponseLength "max_response_length" Count(1, MAX_SEQUENCE), "longest response, in tokens";
    MaxContextLength "max_context_length" Count(1, MAX_SEQUENCE), "longest prompt and response that the rollout engine makes";
    OffloadBetweenPhases "offload_between_phases" Words, "what the trainer moves to the host while rollouts are made: weights, gradients, optimizer";
    SecondWeightShards "second_weight_shards" Count(1, MAX_WORLD), "ranks over which weights have second shards for backward (ZeRO++ hpZ)";
    CopyWholeModel "copy_whole_model" Flag, "all weights are gathered and copied at once to be synced to the rollout engine";
    RlReference "rl_reference" Word(&["none", "device", "host", "elsewhere"]), "where the reference model of reinforcement learning is";
    RlCritic "rl_critic" Word(&["none", "device", "host", "elsewhere"]), "where the critic is";
    RlCriticModel "rl_critic_model" Text, "the critic's model by its name on the Hub, where its shape is not the policy's";
    RlCriticRecompute "rl_critic_recompute" Flag, "the critic's layers are recomputed from their inputs";
    RlCriticMicroBatch "rl_critic_micro_batch" Count(1, MAX_SEQUENCE), "the critic's micro-batch: sequences, or tokens of a replica where samples are packed by tokens";
    RlCriticPadding "rl_critic_padding" Flag, "the critic's samples come padded to the longest, with a mask";
    RlReward "rl_reward" Word(&["none", "device", "host", "elsewhere"]), "where the reward model is while it does not score";
    RlRewardModel "rl_reward_model" Text, "the reward model by its name on the Hub";
    RlRewardMicroBatch "rl_reward_micro_batch" Count(1, MAX_SEQUENCE), "the reward model's micro-batch: sequences, or tokens of a replica where samples are packed by tokens";
    RlRewardPadding "rl_reward_padding" Flag, "the reward model's samples come padded to the longest, with a mask";
    // What transformers and its trainers choose.
    Autocast "autocast" Word(&["none", "bf16", "fp16"]), "dtype of torch.autocast over the weights' own";
    AttnImplementation "attn_implementation" Word(&["eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "flash_attention_4"]), "attention of transformers";
    EvaluationBatchSize "evaluation_batch_size" Count(1, MAX_BATCH), "sequences of one batch of an evaluation between steps, whose logits may be the peak (transformers)";
    GradientCheckpointing "gradient_checkpointing" Flag, "every layer recomputed from its input (transformers)";
    PaddingMask "padding_mask" Flag, "micro-batches come padded, with a mask";
    Packing "packing" Flag, "samples packed into full sequences";
    UseCache "use_cache" Flag, "a KV cache is filled in training";
    ExpertsImplementation "experts_implementation" Word(&["grouped_mm", "batched_mm", "eager"]), "how experts are computed (transformers)";
    LigerParts "liger_parts" Words, "Liger's kernels one by one, where not all of them are on: norms, gates, rotation";
    LigerKernel "liger_kernel" Flag, "Liger's kernels for norms, gated activations, rotation and the loss";
    LossKind "loss_kind" Word(&["legacy", "unfused", "torch", "native_fused", "te", "compiled", "fused_linear", "liger", "cce", "chunked", "chunked_logits", "chunked_linear", "chunked_rows", "fused_logits", "distributed", "distributed_copy", "distributed_chunks", "distributed_wide_chunks", "tiled", "fused_tiles", "token_kernel"]), "loss kernel";
    PolicyEntropy "policy_entropy" Flag, "the entropy of the logits in a policy's loss, compiled";
    LogProbChunk "log_prob_chunk" Count(1, MAX_SEQUENCE), "tokens per sequence whose log-probabilities are computed at once";
    CompiledLayers "compiled_layers" Flag, "layers compiled as a whole by torch.compile (torchtitan)";
    LogitsZLoss "logits_z_loss" Flag, "the square of each token's log-sum-exp is added to the loss (z-loss)";
    // What is kept for the backward pass.
    RecomputeGranularity "recompute_granularity" Word(&["full", "selective"]), "what is recomputed";
    RecomputeMethod "recompute_method" Word(&["uniform", "block", "every", "all_but_every"]), "which layers are recomputed";
    RecomputeNumLayers "recompute_num_layers" Count(0, MAX_LAYERS), "layers of one recomputed unit, or recomputed per chunk, or from one to the next that is (every) or is not (all_but_every)";
    RecomputeModules "recompute_modules" Words, "modules recomputed in every layer";
    RecomputeActivations "recompute_activations" Flag, "selective recomputation";
    CheckpointActivations "checkpoint_activations" Flag, "full recomputation, as it was called until 2022";
    MoeLayerRecompute "moe_layer_recompute" Flag, "older spelling of recompute module moe";
    DistributeSavedActivations "distribute_saved_activations" Flag, "saved layer inputs sharded over tensor ranks";
    CompiledCheckpoints "compiled_checkpoints" Flag, "fully recomputed layers are compiled with their checkpoint, so that they are recomputed part by part (transformers)";
    ReentrantCheckpoints "reentrant_checkpoints" Flag, "layers recomputed by the reentrant kind of torch.utils.checkpoint, without hooks of saved tensors (use_reentrant)";
    StatesForStep "states_for_step" Flag, "optimizer states wait on the host and come to the device for each step (transformers)";
    OffloadSavedTensors "offload_saved_tensors" Flag, "every tensor that forward saves waits on the host for backward (torch.autograd.graph.save_on_cpu)";
    CpuOffloadingNumLayers "cpu_offloading_num_layers" Count(0, MAX_LAYERS), "layers whose activations go to the host";
    FineGrainedActivationOffloading "fine_grained_activation_offloading" Flag, "what the layers' modules named beside it save goes to the host until backward";
    OffloadModules "offload_modules" Words, "modules of a layer whose saved tensors go to the host";
    MinOffloadedTensorSize "min_offloaded_tensor_size" Count(0, MAX_SENT), "elements of the smallest tensor that goes to the host with its module";
    ActivationOffloadFraction "activation_offload_fraction" Real(0.0, 1.0), "fraction of the modules' runs whose tensors go to the host";
    DeltaOffloadBytesAcrossPpRanks "delta_offload_bytes_across_pp_ranks" Count(0, MAX_SENT), "bytes by which each pipeline rank offloads less than the previous one";
    AttentionKernel "attention_kernel" Word(&["flash", "fused", "unfused", "sdpa", "flash3", "flash4"]), "attention kernel";
    AttentionBackend "attention_backend" Word(&["flash", "fused", "unfused", "local", "auto"]), "attention backend asked for";
    NvteFlashAttn "nvte_flash_attn" Flag, "whether Transformer Engine may take flash-attn (NVTE_FLASH_ATTN)";
    NvteFusedAttn "nvte_fused_attn" Flag, "whether Transformer Engine may take cuDNN's attention (NVTE_FUSED_ATTN)";
    UseFlashAttn "use_flash_attn" Flag, "the flash-attn package";
    HiddenDropout "hidden_dropout" Real(0.0, 1.0), "dropout of the residual branches";
    AttentionDropout "attention_dropout" Real(0.0, 1.0), "dropout of attention weights";
    MaskedSoftmaxFusion "masked_softmax_fusion" Flag, "scale, mask and softmax in one kernel";
    AttentionSoftmaxInFp32 "attention_softmax_in_fp32" Flag, "softmax computed in fp32";
    ApplyQueryKeyLayerScaling "apply_query_key_layer_scaling" Flag, "scores divided by the layer's number (needs the softmax in fp32)";
    BiasGeluFusion "bias_gelu_fusion" Flag, "bias and GELU in one kernel";
    BiasSwigluFusion "bias_swiglu_fusion" Flag, "bias and SwiGLU in one kernel";
    BiasDropoutFusion "bias_dropout_fusion" Flag, "bias, dropout and residual addition in one kernel";
    GradientAccumulationFusion "gradient_accumulation_fusion" Flag, "weight gradients accumulated in the matmul";
    ApplyRopeFusion "apply_rope_fusion" Flag, "rotation in one kernel";
    MemoryEfficientLayerNorm "memory_efficient_layer_norm" Flag, "norms keep their output instead of their input";
    CrossEntropyLossFusion "cross_entropy_loss_fusion" Flag, "fused cross entropy";
    CrossEntropyFusionImpl "cross_entropy_fusion_impl" Word(&["native", "te"]), "which fused cross entropy";
    DeferEmbeddingWgradCompute "defer_embedding_wgrad_compute" Flag, "the output layer's weight gradient comes later";
    WgradDeferralLimit "wgrad_deferral_limit" Count(0, MAX_BATCH), "micro-batches whose output-layer weight gradient is deferred";
    DeterministicMode "deterministic_mode" Flag, "kernels that give the same result each time, with a larger cuBLAS workspace";
    CreateAttentionMaskInDataloader "create_attention_mask_in_dataloader" Flag, "an attention mask with every micro-batch";
    CublasWorkspaceConfig "cublas_workspace_config" Text, "cuBLAS workspaces as :KiB:count, from the variable CUBLAS_WORKSPACE_CONFIG";
    NvteAllowNondeterministicAlgo "nvte_allow_nondeterministic_algo" Flag, "whether Transformer Engine may take kernels whose result varies, from the variable of that name";
    PytorchCudaAllocConf "pytorch_cuda_alloc_conf" Text, "PyTorch's allocator, from the variable of that name";
    CudaGraphImpl "cuda_graph_impl" Word(&["none", "local", "transformer_engine", "full_iteration"]), "CUDA graphs";
    EnableCudaGraph "enable_cuda_graph" Flag, "older spelling of CUDA graphs";
    // Communication.
    OverlapGradReduce "overlap_grad_reduce" Flag, "gradient reduction behind the backward pass";
    OverlapParamGather "overlap_param_gather" Flag, "weight gathering behind the forward pass";
    TpCommOverlap "tp_comm_overlap" Flag, "tensor-parallel communication behind matmuls";
    OverlapP2pComm "overlap_p2p_comm" Flag, "pipeline sends behind compute";
    AsyncTensorModelParallelAllreduce "async_tensor_model_parallel_allreduce" Flag, "tensor-parallel backward communication behind weight gradients";
    OverlapMoeExpertParallelComm "overlap_moe_expert_parallel_comm" Flag, "expert communication behind another micro-batch";
    MoeSharedExpertOverlap "moe_shared_expert_overlap" Flag, "shared experts behind the dispatch";
    // Mixture of experts, beside its shape.
    MoeTokenDispatcherType "moe_token_dispatcher_type" Word(&["allgather", "alltoall", "alltoall_seq", "flex"]), "how tokens reach their experts";
    MoeFlexDispatcherBackend "moe_flex_dispatcher_backend" Word(&["deepep", "hybridep", "ncclep"]), "backend of the flex dispatcher";
    MoeEnableDeepep "moe_enable_deepep" Flag, "DeepEP";
    MoeGroupedGemm "moe_grouped_gemm" Flag, "experts of a rank in one grouped matmul";
    MoeExpertCapacityFactor "moe_expert_capacity_factor" Real(0.0, 1e6), "tokens an expert takes, over the balanced number";
    MoeHottestRank "moe_hottest_rank" Real(1.0, 1024.0), "tokens that the experts of the busiest rank receive in every layer, over the even share; what memory is told for. Step times take the even share";
    MoePadExpertInputToCapacity "moe_pad_expert_input_to_capacity" Flag, "experts' inputs padded to the capacity";
    MoePermuteFusion "moe_permute_fusion" Flag, "fused permutation of tokens";
    MoeRouterDtype "moe_router_dtype" Word(&["fp32", "fp64", "bf16", "fp16"]), "dtype of the routing probabilities";
    MoeRouterLoadBalancingType "moe_router_load_balancing_type" Words, "how experts are kept balanced";
    MoeAuxLossCoeff "moe_aux_loss_coeff" Words, "weight of the balancing loss; 0 is none";
    MoeRouterEnableExpertBias "moe_router_enable_expert_bias" Flag, "experts balanced by a bias, updated once a step";
    MoeRouterPreSoftmax "moe_router_pre_softmax" Flag, "softmax before the choice of experts";
}

impl Field {
    /// Its place in [`Field::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The tables of this crate: what each setting is in words.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    [&ABOUTS].into_iter()
}
