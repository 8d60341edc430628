//! Random plans: a plan of the guide, made small, with words of other plans added and removed.

use shardscope::catalog;
use shardscope::plan::{Field, ValueKind};

use super::super::random::Random;
use super::Row;

/// The guide's plans: name, model, settings.
const GUIDE: &str = include_str!("../../../pages/src/guide/plans.tsv");

/// Words that do not occur in the guide's plans; those added together are joined by `&`.
const MORE: &[&str] = &[
    "num_layers=7",
    "num_layers=6&pp=3",
    "num_layers=12&pp=4",
    "num_layers=12&pp=4&virtual_pipeline_model_parallel_size=3",
    "num_layers=8&pp=2&num_layers_per_virtual_pipeline_stage=2",
    "num_layers=8&pp=4&num_layers_per_virtual_pipeline_stage=1&microbatch_group_size_per_vp_stage=6",
    "num_layers=8&pp=2&decoder_first_pipeline_num_layers=3&decoder_last_pipeline_num_layers=5",
    "num_layers=7&pp=2&account_for_embedding_in_pipeline_split",
    "num_layers=6&pp=4&account_for_embedding_in_pipeline_split&account_for_loss_in_pipeline_split",
    "pp=4&pipeline_schedule=gpipe",
    "pp=4&pipeline_schedule=zb-h1",
    "pp=4&pipeline_schedule=zb-h2",
    "pp=4&pipeline_schedule=zb-v",
    "pp=4&pipeline_schedule=v-half",
    "pp=4&pipeline_schedule=v-min",
    "pp=4&pipeline_schedule=1f1b-v",
    "pp=4&pipeline_schedule=dualpipe",
    "pp=4&pipeline_schedule=dualpipe-v",
    "cp=2",
    "cp=4&cp_comm_type=p2p",
    "cp=2&cp_comm_type=all_gather",
    "cp=2&cp_comm_type=a2a",
    "tp=2&sequence_parallel",
    "tp=4&sequence_parallel",
    "tp=8",
    "ep=2",
    "ep=4&etp=1",
    "ep=8",
    "use_tp_pp_dp_mapping",
    "gbs=48",
    "gbs=256",
    "gbs=2048&pp=2",
    "mbs=1",
    "mbs=3&gbs=96",
    "seq=1000",
    "seq=4096",
    "nodes=1&gpus_per_node=4",
    "nodes=2",
    "nodes=4",
    "nodes=3&gpus_per_node=4",
    "nodes=16",
    "fast_link_domain=4",
    "fast_link_domain=16",
    "memory_headroom=0.1",
    "gpu_memory_gib=24",
    "gpu_memory_tbps=1.1",
    "gpu_peak_tflops=300",
    "network_gbps=12.5",
    "fast_link_gbps=100",
    "measured_matmul_tflops=500",
    "measured_fast_bus_gbps=200",
    "measured_network_bus_gbps=20",
    "measured_over_estimated=1.3",
    "memory_left_out=context,communicators,slack",
    "token_budget=1000000000000&price_per_gpu_hour=2.5&watts_per_gpu=900",
    "num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_grouped_gemm&add_bias_linear=false",
    "num_experts=16&moe_router_topk=4&moe_ffn_hidden_size=256&moe_shared_expert_intermediate_size=512&first_k_dense_replace=1",
    "num_experts=8&moe_layer_freq=2&moe_ffn_hidden_size=512",
    "num_experts=16&moe_router_topk=4&moe_router_num_groups=4&moe_router_group_topk=2&ep=16&nodes=4&moe_ffn_hidden_size=256&moe_grouped_gemm&moe_token_dispatcher_type=alltoall",
    "num_experts=64&moe_router_topk=4&moe_router_num_groups=8&moe_router_group_topk=3&ep=32&nodes=4&moe_ffn_hidden_size=256&moe_grouped_gemm&moe_token_dispatcher_type=alltoall",
    "num_experts=16&moe_router_topk=2&moe_router_num_groups=2&moe_router_group_topk=1&ep=16&nodes=4&gpus_per_node=4&moe_ffn_hidden_size=256&moe_grouped_gemm&moe_token_dispatcher_type=alltoall",
    "overlap_moe_expert_parallel_comm&ep=4&num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_token_dispatcher_type=alltoall&moe_grouped_gemm&software=megatron_core_te",
    "num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_token_dispatcher_type=flex&moe_enable_deepep&ep=4&tp=2&etp=2&sequence_parallel",
    "fine_grained_activation_offloading&offload_modules=attn_norm%20core_attn&software=megatron_core_te&pp=2&num_layers=8",
    "fine_grained_activation_offloading&offload_modules=qkv_linear%20attn_proj&software=megatron_core_te&pp=4&num_layers=8&virtual_pipeline_model_parallel_size=2",
    "fine_grained_activation_offloading&offload_modules=expert_fc1%20mlp_norm&software=megatron_core_te&num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_grouped_gemm&moe_token_dispatcher_type=alltoall",
    "offload_saved_tensors&software=hf_transformers",
    "double_quantization&train_type=qlora&base_quantization=nf4&lora_rank=16&software=hf_transformers&lora_target_modules=all-linear",
    "gradient_accumulation_fusion=false&num_layers=8&pp=2&virtual_pipeline_model_parallel_size=2",
    "zero_stage=3&num_layers=8&software=torchtitan&pp=2",
    "moe_expert_capacity_factor=1.5",
    "moe_flex_dispatcher_backend=hybridep&moe_token_dispatcher_type=flex",
    "multi_latent_attention&kv_lora_rank=64&q_lora_rank=96&qk_head_dim=32&qk_pos_emb_head_dim=16&v_head_dim=32&position_embedding_type=rope",
    "multi_latent_attention&kv_lora_rank=64&qk_head_dim=32&qk_pos_emb_head_dim=16&v_head_dim=32&position_embedding_type=rope",
    "num_query_groups=2&group_query_attention",
    "kv_channels=96",
    "softmax_type=learnable",
    "mixer_pattern=www*&attention_window=256",
    "mixer_pattern=w&attention_window=1024&chunked_attention",
    "mixer_pattern=P&linear_mixer=mamba2",
    "mixer_pattern=MM*-&linear_mixer=mamba2",
    "linear_attention_freq=2",
    "mtp_num_layers=1",
    "mtp_num_layers=2",
    "seq=333",
    "evaluation_batch_size=8",
    "loss_kind=chunked_rows",
    "loss_kind=chunked_logits",
    "loss_kind=chunked_linear",
    "log_prob_chunk=256&training_objective=policy",
    "policy_entropy&training_objective=policy&log_prob_chunk=512",
    "second_weight_shards=8&zero_stage=3&nodes=2&gpus_per_node=8&software=megatron_deepspeed",
    "rampup_batch_size=16%2016%201000",
    "max_tokens_per_micro_batch=6000",
    "kv_channels=256",
    "untie_embeddings_and_output_weights=false",
    "train_iters=1000&price_per_gpu_hour=2",
    "train_samples=100000&watts_per_gpu=700",
    "grads_dtype=bf16",
    "exp_avg_dtype=fp8&exp_avg_sq_dtype=fp8&use_precision_aware_optimizer&use_distributed_optimizer",
    "main_params_dtype=fp16&use_precision_aware_optimizer&use_distributed_optimizer",
    "cpu_offloading_num_layers=3&num_layers=6",
    "rollout_tensor_parallel_size=4",
    "num_attention_heads=24&hidden_size=3072&num_query_groups=8",
    "num_query_groups=1&group_query_attention&tp=4",
    "vision_tower&vision_parameters=303507456&vision_layers=24&vision_layer_parameters=12596224&vision_hidden_size=1024&vision_patches=4&image_patches=1024",
    "recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1",
    "recompute_granularity=full&recompute_method=uniform&recompute_num_layers=3",
    "recompute_granularity=full&recompute_method=block&recompute_num_layers=2",
    "recompute_granularity=full&recompute_method=every&recompute_num_layers=2",
    "recompute_granularity=full&recompute_method=all_but_every&recompute_num_layers=3",
    "recompute_granularity=selective",
    "recompute_granularity=selective&recompute_modules=core_attn%20mlp",
    "recompute_granularity=selective&recompute_modules=layernorm%20moe_act",
    "recompute_granularity=selective&recompute_modules=moe%20shared_experts",
    "recompute_granularity=selective&recompute_modules=mla_up_proj",
    "distribute_saved_activations&tp=2&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1",
    "cpu_offloading_num_layers=2",
    "fine_grained_activation_offloading&offload_modules=core_attn%20attn_proj",
    "fine_grained_activation_offloading&offload_modules=expert_fc1%20moe_act",
    "fine_grained_activation_offloading&offload_modules=attn_norm%20qkv_linear%20mlp_norm&activation_offload_fraction=0.5",
    "fine_grained_activation_offloading&offload_modules=core_attn&delta_offload_bytes_across_pp_ranks=1000000&pp=2",
    "wgrad_deferral_limit=2&defer_embedding_wgrad_compute&pp=2",
    "fp8=hybrid",
    "fp8=e4m3&fp8_recipe=blockwise",
    "fp8=e4m3&fp8_recipe=mxfp8&accelerator=B200",
    "fp8=hybrid&fp8_recipe=tensorwise&fp8_param_gather",
    "fp4=e2m1&accelerator=B200",
    "optimizer_cpu_offload&optimizer_offload_fraction=0.3",
    "use_megatron_fsdp&data_parallel_sharding_strategy=optim_grads_params",
    "use_megatron_fsdp&data_parallel_sharding_strategy=optim_grads",
    "use_torch_fsdp2",
    "use_distributed_optimizer&overlap_grad_reduce&overlap_param_gather",
    "zero_stage=3",
    "zero_stage=2&offload_optimizer",
    "zero_stage=3&offload_optimizer&offload_param",
    "shard_within_nodes&nodes=2&zero_stage=3",
    "num_distributed_optimizer_instances=2&nodes=2&use_distributed_optimizer",
    "lora_rank=8&train_type=lora&lora_target_modules=q_proj%20down_proj",
    "lora_rank=16&train_type=qlora&base_quantization=int8&lora_target_modules=all-linear",
    "lora_rank=16&train_type=qlora&base_quantization=fp4&lora_target_modules=all-linear",
    "lora_rank=16&train_type=lora&use_dora&lora_dropout=0.1&lora_target_modules=all-linear",
    "train_type=lora&lora_rank=16&modules_to_save=embed_tokens%20lm_head",
    "train_type=freeze&trained_layers=3",
    "train_type=lora&lora_rank=8&adapter_library=megatron-bridge&lora_target_modules=linear_qkv%20linear_proj%20linear_fc1%20linear_fc2",
    "train_type=lora&lora_rank=8&adapter_library=mcore-bridge&lora_target_modules=all-linear&tp=2",
    "train_type=lora&lora_rank=8&adapter_library=megatron-bridge-canonical&lora_target_modules=all-linear&tp=2",
    "train_type=lora&lora_rank=8&adapter_library=megatron-bridge-canonical&num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_grouped_gemm",
    "software=unsloth&train_type=qlora&lora_rank=16&base_quantization=nf4&gpu_memory_gib=12",
    "software=unsloth&train_type=lora&lora_rank=16&gpu_memory_gib=20",
    "software=unsloth&train_type=full&gpu_memory_gib=40&seq=8192&mbs=4",
    "moe_latent_size=256&num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=512&moe_grouped_gemm",
    "moe_token_dispatcher_type=allgather&num_experts=8&ep=4&tp=2&sequence_parallel",
    "qk_layernorm&num_query_groups=2&group_query_attention&tp=4&sequence_parallel",
    "rl_framework=verl&rollout_engine=vllm&training_objective=policy&rl_reference=device&rl_critic=device",
    "rl_framework=verl&rollout_engine=sglang&training_objective=policy&rollout_sequences=64&rollout_cuda_graphs",
    "rl_framework=openrlhf&rollout_engine=vllm&training_objective=policy&rl_reference=host&rl_critic=host",
    "rl_framework=trl&rollout_engine=vllm&training_objective=policy&rl_reference=device&rl_critic=device&rl_critic_micro_batch=2",
    "rl_framework=verl&rollout_engine=vllm&training_objective=policy&rl_critic=device&rl_critic_recompute&rl_critic_micro_batch=4",
    "training_objective=dpo&reference_model=loaded",
    "training_objective=dpo&reference_model=none&preference_logits=dropped",
    "padded_vocab_size=50400",
    "make_vocab_size_divisible_by=512",
];

/// Sizes that replace the guide's own: small plans take little time.
const SMALL: &[&str] = &["num_layers=4", "num_layers=8", "num_layers=6", ""];

/// What is added to a plan: fewer than this number from [`MORE`], and fewer than this number of all words.
const MOST_MORE: u64 = 7;
const MOST_WORDS: u64 = 6;

fn name(word: &str) -> &str {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    shardscope::link::long_name(name)
}

/// Every word of the guide's plans once, and for settings with few values each of them.
fn pool() -> Vec<String> {
    let mut pool: Vec<String> = GUIDE
        .lines()
        .skip(1)
        .flat_map(|row| row.split('\t').skip(2))
        .flat_map(|link| link.split('&'))
        .map(str::to_owned)
        .collect();
    pool.extend(catalog::accelerator_names().map(|name| format!("accelerator={name}")));
    for field in Field::ALL {
        match field.kind() {
            ValueKind::Flag => {
                pool.extend(["true", "false"].map(|value| format!("{}={value}", field.name())))
            }
            ValueKind::Word(words) => {
                pool.extend(words.iter().map(|word| format!("{}={word}", field.name())))
            }
            _ => {}
        }
    }
    pool.sort();
    pool.dedup();
    pool
}

fn put(words: &mut Vec<String>, more: &str) {
    for word in more.split('&').filter(|word| !word.is_empty()) {
        words.retain(|other| name(other) != name(word));
        words.push(word.to_owned());
    }
}

/// The words of `link`, and the defaults of a page without any.
fn stated(link: &str) -> Vec<String> {
    let mut words: Vec<String> = vec!["accelerator=H100-SXM".to_owned(), "gpus_per_node=8".to_owned()];
    put(&mut words, link);
    words
}

/// Models and settings of the guide's plans.
fn guide() -> Vec<(&'static str, &'static str)> {
    let columns = |row: &'static str| {
        let mut columns = row.split('\t').skip(1);
        Some((columns.next()?, columns.next()?))
    };
    GUIDE.lines().skip(1).filter_map(columns).collect()
}

/// The plans requested by `SHARDSCOPE_DRAW`: `SEED:COUNT` for that many random ones, `guide` for the guide's own, with
/// few layers if possible; or those of a file, each line a model, a tab and settings as in a link.
pub(super) fn rows(asked: &str) -> Vec<Row> {
    let row = |model: &str, words: &[String]| Row { model: model.to_owned(), link: words.join("&") };
    if asked == "guide" {
        let small = |(model, link): (&str, &str)| {
            SMALL
                .iter()
                .map(|layers| {
                    let mut words = stated(link);
                    put(&mut words, layers);
                    row(model, &words)
                })
                .find(|row| row.plan().is_some())
        };
        return guide().into_iter().filter_map(small).collect();
    }
    if let Ok(text) = std::fs::read_to_string(asked) {
        let written = text.lines().filter_map(|line| line.split_once('\t'));
        return written
            .map(|(model, link)| row(model, &stated(link)))
            .filter(|row| row.plan().is_some())
            .collect();
    }
    let (seed, count) = asked.split_once(':').expect("SEED:COUNT, guide or a file");
    drawn(seed.parse().expect("a seed"), count.parse().expect("a count"))
}

fn drawn(seed: u64, count: usize) -> Vec<Row> {
    let mut random = Random::new(seed);
    let (guide, pool) = (guide(), pool());
    let mut out = Vec::new();
    while out.len() < count {
        let (model, link) = guide[random.below(guide.len() as u64) as usize];
        let mut words = stated(link);
        put(&mut words, SMALL[random.below(SMALL.len() as u64) as usize]);
        for _ in 0..random.below(MOST_MORE) {
            put(&mut words, MORE[random.below(MORE.len() as u64) as usize]);
        }
        for _ in 0..random.below(MOST_WORDS) {
            put(&mut words, &pool[random.below(pool.len() as u64) as usize]);
        }
        let row = Row { model: model.to_owned(), link: words.join("&") };
        if row.plan().is_some() {
            out.push(row);
        }
    }
    out
}
