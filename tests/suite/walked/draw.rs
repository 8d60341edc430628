//! Plans with all features mixed.

use proptest::strategy::Strategy;

/// Settings that every plan has.
const COMMON: &str = "hidden_size=512 num_attention_heads=16 vocab_size=4096 bf16=true accelerator=H100-SXM gpus_per_node=8 \
    max_position_embeddings=1024 ffn_hidden_size=1536";

/// Features that must each occur in at least one of 200 plans.
pub(super) const FEATURES: &[&str] = &[
    "tensor",
    "sequence",
    "pipeline",
    "interleaved",
    "context",
    "expert",
    "expert tensor",
    "experts",
    "latent attention",
    "latent attention with sequence",
    "norms of heads",
    "gated attention",
    "multi-token prediction",
    "Mamba-2",
    "layers of one block",
    "dropout",
    "unfused attention",
    "selective",
    "uniform",
    "block",
];

const LATENT: &str = "multi_latent_attention=true kv_lora_rank=64 qk_head_dim=32 qk_pos_emb_head_dim=16 v_head_dim=32 \
    position_embedding_type=rope add_bias_linear=false";

const MAMBA: &str = "linear_mixer=mamba2 linear_num_key_heads=4 linear_num_value_heads=16 linear_key_head_dim=32 \
    linear_value_head_dim=64 linear_conv_kernel_dim=4";

/// The alternatives to draw from: settings of one alternative are separated by spaces.
const DRAWN: &[&[&str]] = &[
    &["num_layers=4", "num_layers=8", "num_layers=6", "num_layers=7"],
    &["seq_length=256", "seq_length=512", "seq_length=1024"],
    &["micro_batch_size=1", "micro_batch_size=2", "micro_batch_size=4"],
    &["global_batch_size=64", "global_batch_size=128"],
    &["num_nodes=1", "num_nodes=2"],
    &["software=megatron_core_te", "software=megatron_core_te", "software=megatron_core_local"],
    &[
        "",
        "tensor_model_parallel_size=2",
        "tensor_model_parallel_size=2 sequence_parallel=true",
        "tensor_model_parallel_size=4 sequence_parallel=true",
    ],
    &[
        "",
        "pipeline_model_parallel_size=2",
        "pipeline_model_parallel_size=4",
        "pipeline_model_parallel_size=2 num_layers_per_virtual_pipeline_stage=1",
        "pipeline_model_parallel_size=2 num_layers_per_virtual_pipeline_stage=2",
        "pipeline_model_parallel_size=2 decoder_first_pipeline_num_layers=1",
        "pipeline_model_parallel_size=4 account_for_embedding_in_pipeline_split=true",
        "pipeline_model_parallel_size=2 account_for_loss_in_pipeline_split=true \
         account_for_embedding_in_pipeline_split=true",
    ],
    &["", "", "context_parallel_size=2", "context_parallel_size=2 cp_comm_type=a2a"],
    &["", "use_distributed_optimizer=true"],
    &["swiglu=true", "swiglu=true", "", "squared_relu=true"],
    &["normalization=RMSNorm", "normalization=RMSNorm", ""],
    &[
        "position_embedding_type=rope",
        "position_embedding_type=rope apply_rope_fusion=false",
        "position_embedding_type=learned_absolute",
        "position_embedding_type=none",
    ],
    &["add_bias_linear=false", "add_bias_linear=false", "", "add_bias_linear=false add_qkv_bias=true"],
    &["untie_embeddings_and_output_weights=true", ""],
    &["", "group_query_attention=true num_query_groups=4", "group_query_attention=true num_query_groups=2"],
    &["", "", "qk_layernorm=true"],
    &["", "", "", "attention_output_gate=true", "softmax_type=learnable"],
    &["", "", LATENT, "LATENT q_lora_rank=96"],
    &[
        "",
        "",
        "num_experts=8 moe_router_topk=2 moe_ffn_hidden_size=256 moe_grouped_gemm=true",
        "num_experts=8 moe_router_topk=2 moe_ffn_hidden_size=256 moe_layer_freq=2 moe_grouped_gemm=true \
         moe_shared_expert_intermediate_size=512",
        "num_experts=16 moe_router_topk=4 moe_ffn_hidden_size=256 moe_grouped_gemm=true moe_shared_expert_gate=true \
         moe_shared_expert_intermediate_size=256 first_k_dense_replace=1",
        "num_experts=8 moe_router_topk=1 moe_router_pre_softmax=true moe_ffn_hidden_size=256 moe_grouped_gemm=true",
    ],
    &["", "expert_model_parallel_size=2", "expert_model_parallel_size=4 expert_tensor_parallel_size=1"],
    &["", "moe_token_dispatcher_type=alltoall", "moe_token_dispatcher_type=alltoall moe_permute_fusion=true"],
    &["", "moe_router_dtype=fp32", "moe_aux_loss_coeff=0.01", "moe_router_load_balancing_type=none"],
    &["", "", "", "mtp_num_layers=1"],
    &[
        "",
        "",
        "",
        "",
        "",
        "",
        "mixer_pattern=MM* MAMBA",
        "mixer_pattern=M*M MAMBA linear_biases=in_proj,conv1d,out_proj linear_norm=false",
        "hybrid_override_pattern=M-M*-MM- num_layers=8 MAMBA",
    ],
    &[
        "",
        "",
        "recompute_granularity=full recompute_method=uniform recompute_num_layers=1",
        "recompute_granularity=full recompute_method=uniform recompute_num_layers=3",
        "recompute_granularity=full recompute_method=block recompute_num_layers=2",
        "recompute_granularity=full recompute_method=block recompute_num_layers=1 distribute_saved_activations=true",
        "recompute_granularity=selective",
        "recompute_granularity=selective recompute_modules=core_attn,mlp",
        "recompute_granularity=selective recompute_modules=mlp",
        "recompute_granularity=selective recompute_modules=moe",
        "recompute_granularity=selective recompute_modules=core_attn,shared_experts",
        "recompute_granularity=selective recompute_modules=layernorm",
        "recompute_granularity=selective recompute_modules=layernorm,mlp",
    ],
    &["", "", "attention_backend=flash", "attention_backend=fused", "attention_backend=unfused"],
    &["hidden_dropout=0 attention_dropout=0", "hidden_dropout=0.1 attention_dropout=0.1", "hidden_dropout=0"],
    &["", "cross_entropy_loss_fusion=true cross_entropy_fusion_impl=te", "cross_entropy_loss_fusion=true"],
    &["", "", "fp32_residual_connection=true"],
    &["", "", "bias_swiglu_fusion=false bias_gelu_fusion=false"],
];

/// The choices for a plan, as indices into [`DRAWN`].
pub(super) fn choices() -> impl Strategy<Value = Vec<usize>> {
    DRAWN.iter().map(|alternatives| 0..alternatives.len()).collect::<Vec<_>>()
}

/// The settings of these choices.
pub(super) fn settings(chosen: &[usize]) -> Vec<(String, String)> {
    let drawn = DRAWN.iter().zip(chosen).map(|(alternatives, place)| alternatives[*place]);
    let text = std::iter::once(COMMON)
        .chain(drawn)
        .collect::<Vec<_>>()
        .join(" ")
        .replace("LATENT", LATENT)
        .replace("MAMBA", MAMBA);
    let pairs = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
