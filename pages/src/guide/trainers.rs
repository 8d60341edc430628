//! Plans of fine-tuning and of trainers other than Megatron, each for formulas that the others do not meet.

/// Models of the catalog, or none where the link says all, with settings as a link has them.
pub(super) const TRAINERS: &[(&str, &str, &str)] = &[
    (
        "Llama 3 8B with QLoRA under unsloth, inputs of layers on the host",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=unsloth&train_type=qlora&lora_rank=16&lora_dropout=0&lora_target_modules=q_proj%20k_proj%20v_proj%20o_proj%20gate_proj%20up_proj%20down_proj&autocast=bf16&attn_implementation=flash_attention_2&input_require_grads&base_quantization=nf4&double_quantization&gradient_checkpointing&offload_layer_inputs&optimizer=adamw_8bit",
    ),
    (
        "Llama 3 8B under autocast, evaluated in larger batches",
        "Llama-3-8B",
        "params_dtype=fp32&gbs=16&mbs=1&nodes=1&seq=2048&software=hf_transformers&train_type=full&autocast=bf16&gradient_checkpointing&evaluation_batch_size=64",
    ),
    (
        "Llama 3 8B with LoRA and Liger's kernels, evaluated one by one",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&liger_kernel&gradient_checkpointing&evaluation_batch_size=1",
    ),
    (
        "Qwen3 8B with LoRA under unsloth",
        "Qwen3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=unsloth&train_type=lora&lora_rank=16&lora_dropout=0&lora_target_modules=q_proj%20k_proj%20v_proj%20o_proj%20gate_proj%20up_proj%20down_proj&autocast=bf16&attn_implementation=flash_attention_2&input_require_grads",
    ),
    (
        "Qwen2.5 7B under FSDP2 in two groups (HSDP)",
        "Qwen2.5-7B",
        "params_dtype=fp32&bf16&gbs=64&mbs=2&nodes=2&seq=2048&software=hf_transformers&train_type=full&autocast=none&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3&reduce_dtype=fp32&num_distributed_optimizer_instances=2",
    ),
    (
        "gpt-oss 20B under transformers",
        "openai/gpt-oss-20b",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "GPT-2 XL under transformers, eager attention",
        "openai-community/gpt2-xl",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&attn_implementation=eager",
    ),
    (
        "OPT 1.3B under transformers",
        "facebook/opt-1.3b",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "Command R7B under transformers",
        "CohereLabs/c4ai-command-r7b-12-2024",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "GLM-4 9B under transformers",
        "zai-org/glm-4-9b-chat-hf",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "DeepSeek-V3 under transformers",
        "DeepSeek-V3",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "DeepSeek-V2 under transformers in fp32",
        "DeepSeek-V2",
        "params_dtype=fp32&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "DeepSeek-V2-Lite under transformers with flash attention",
        "DeepSeek-V2-Lite",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&attn_implementation=flash_attention_2",
    ),
    (
        "DeepSeek-V3 with LoRA on all linear layers under autocast",
        "DeepSeek-V3",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&autocast=bf16",
    ),
    (
        "queries with a temperature in their own type, as in Ministral 3",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&module_variants=typed_query_temperature",
    ),
    (
        "experts that are given every token, as in Llama 4",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&module_variants=weighing_router%20query_temperature",
    ),
    (
        "experts that are drawn, as in Phi-3.5-MoE",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&module_variants=sampled_router",
    ),
    (
        "a router in fp32, as in ERNIE 4.5",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&module_variants=fp32_held_router",
    ),
    (
        "Mamba-2 beside adapters of MLPs",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=gate_proj%20up_proj%20down_proj&attn_implementation=sdpa&mixer_pattern=MMM*&linear_mixer=mamba2",
    ),
    (
        "GPT-J 6B under transformers",
        "EleutherAI/gpt-j-6b",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "BLOOM 560M under transformers",
        "bigscience/bloom-560m",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none",
    ),
    (
        "cosines and sines repeated in fp32, as in ERNIE 4.5",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&module_variants=fp32_layer_rotation",
    ),
    (
        "norms by one plus their weight, as in Nemotron",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=1024&software=hf_transformers&train_type=full&autocast=none&normalization=LayerNorm&fp32_norms",
    ),
    (
        "Qwen3 8B in fp32 under litgpt",
        "Qwen3-8B",
        "params_dtype=fp32&gbs=16&mbs=1&nodes=1&seq=2048&software=litgpt&train_type=full&data_parallel_engine=fsdp1&zero_stage=3",
    ),
    (
        "Llama 3 8B in full under litgpt",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=litgpt&train_type=full&data_parallel_engine=fsdp1&zero_stage=3",
    ),
    (
        "the same with adapters on queries alone",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=2048&software=litgpt&train_type=lora&lora_rank=16&lora_target_modules=q_proj&lora_dropout=0",
    ),
    (
        "the same with adapters on queries and values and dropout",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=litgpt&train_type=lora&lora_rank=16&lora_target_modules=q_proj%20v_proj&lora_dropout=0.05",
    ),
    (
        "the same with adapters on queries, keys and values",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=litgpt&train_type=lora&lora_rank=16&lora_target_modules=q_proj%20k_proj%20v_proj&lora_dropout=0.05",
    ),
    (
        "Llama 3 8B in full under torchtune 0.6",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=torchtune_0_6&train_type=full&data_parallel_engine=fsdp2&zero_stage=3",
    ),
    (
        "Qwen2.5 7B with adapters everywhere and dropout under torchtune",
        "Qwen2.5-7B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=torchtune&train_type=lora&lora_rank=16&lora_dropout=0.05&lora_target_modules=q_proj%20k_proj%20v_proj%20o_proj%20gate_proj%20up_proj%20down_proj%20lm_head",
    ),
    (
        "Llama 3 8B in full under torchtune",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=torchtune&train_type=full&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3",
    ),
    (
        "Llama 3 8B in full under transformers, attention eager",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=eager&padding_mask",
    ),
    (
        "the same with sdpa and a padding mask",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=sdpa&padding_mask&data_parallel_engine=fsdp2&zero_stage=3",
    ),
    (
        "Qwen2.5-VL 7B under LLaMA-Factory, its vision tower frozen",
        "Qwen2.5-VL-7B-Instruct",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&vision_input_grads=false&frozen_modules=vision_tower%20multi_modal_projector&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "the same with the tower trained",
        "Qwen2.5-VL-7B-Instruct",
        "bf16&gbs=16&mbs=2&nodes=1&seq=8192&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&image_patches=3008&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "Qwen2-VL 7B, its tower trained",
        "Qwen2-VL-7B-Instruct",
        "bf16&gbs=16&mbs=2&nodes=1&seq=8192&software=hf_transformers&train_type=full&attn_implementation=sdpa&image_patches=3008&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "InternVL3 8B, its tower trained under autocast",
        "InternVL3-8B-hf",
        "bf16&gbs=16&mbs=2&nodes=1&seq=8192&software=hf_transformers&train_type=full&params_dtype=bf16&attn_implementation=sdpa&image_patches=1024&data_parallel_engine=ddp",
    ),
    (
        "LLaVA 1.5 7B, its projector and decoder trained",
        "lmsys/vicuna-7b-v1.5",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&vision_tower&vision_parameters=303507456&vision_layers=24&vision_layer_parameters=12596224&vision_hidden_size=1024&vision_patches=1&image_patches=576&projector_layers=2&frozen_modules=vision_tower&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "the same with one sample at a time",
        "lmsys/vicuna-7b-v1.5",
        "bf16&gbs=16&mbs=1&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&vision_tower&vision_parameters=303507456&vision_layers=24&vision_layer_parameters=12596224&vision_hidden_size=1024&vision_patches=1&image_patches=576&projector_layers=2&frozen_modules=vision_tower&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "Llama 3 8B with flash attention 2, checkpointed, under DeepSpeed",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=deepspeed&zero_stage=3",
    ),
    (
        "Llama 3 8B under FSDP2, attention eager over long samples",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=8192&software=hf_transformers&train_type=full&attn_implementation=eager&data_parallel_engine=fsdp2&zero_stage=3",
    ),
    (
        "the same where gradients wait for the last micro-batch",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&nodes=1&seq=8192&software=hf_transformers&train_type=full&attn_implementation=eager&data_parallel_engine=fsdp2&zero_stage=3&autocast=none&reduce_dtype=fp32&defer_reduction",
    ),
    (
        "Llama 3 8B in fp32 under autocast",
        "Llama-3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=sdpa",
    ),
    (
        "Llama 3 8B with Liger's kernels",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&liger_kernel&attn_implementation=flash_attention_2",
    ),
    (
        "Llama 3 8B with LoRA on all linears",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&lora_dropout=0.05&autocast=none&attn_implementation=sdpa",
    ),
    (
        "Llama 3 8B with LoRA on queries and values, 16-bit adapters",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=q_proj%20v_proj&adapter_dtype=bf16&attn_implementation=eager&use_cache",
    ),
    (
        "Llama 3 8B with LoRA under autocast",
        "Llama-3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&lora_dropout=0.05",
    ),
    (
        "Llama 3 8B with LoRA over 16-bit weights under autocast",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&autocast=bf16&train_type=lora&lora_rank=16&lora_target_modules=all-linear",
    ),
    (
        "Llama 3 8B with QLoRA",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=qlora&lora_rank=16&lora_target_modules=all-linear&base_quantization=nf4&double_quantization&gradient_checkpointing&upcast_non_quantized",
    ),
    (
        "Llama 3 8B with DPO",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&training_objective=dpo&reference_model=adapters&preference_logits=own&autocast=none",
    ),
    (
        "Llama 3 8B with DPO in fp32",
        "Llama-3-8B",
        "params_dtype=fp32&gbs=32&mbs=2&nodes=2&seq=1024&software=hf_transformers&train_type=full&training_objective=dpo&reference_model=loaded&zero_stage=3&data_parallel_engine=fsdp2",
    ),
    (
        "Llama 3 8B with DPO in TRL under autocast, evaluated in larger batches",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&training_objective=dpo&reference_model=adapters&preference_logits=own&evaluation_batch_size=16",
    ),
    (
        "Llama 3 8B with DPO in TRL on short samples, evaluated in larger batches",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&gbs=16&mbs=1&nodes=1&seq=16&software=hf_transformers&train_type=full&training_objective=dpo&reference_model=adapters&preference_logits=own&evaluation_batch_size=4",
    ),
    (
        "Llama 3 8B with SimPO, evaluated in larger batches",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&gbs=16&mbs=1&nodes=1&seq=512&software=hf_transformers&train_type=full&training_objective=dpo&reference_model=none&preference_logits=whole&evaluation_batch_size=16",
    ),
    (
        "Llama 3 8B with GRPO in TRL",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&training_objective=policy&rl_framework=trl&rollout_engine=vllm&gradient_checkpointing",
    ),
    (
        "Llama 3 8B with GRPO in TRL under DeepSpeed",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&autocast=none&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&training_objective=policy&rl_framework=trl&rollout_engine=vllm&data_parallel_engine=deepspeed&zero_stage=3&gradient_checkpointing",
    ),
    (
        "Llama 3 8B as a reward model",
        "Llama-3-8B",
        "bf16&params_dtype=bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&training_objective=reward&gradient_checkpointing",
    ),
    (
        "Llama 3 8B with a head for classes",
        "Llama-3-8B",
        "bf16&params_dtype=fp32&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&training_objective=classify&num_labels=4&gradient_checkpointing",
    ),
    (
        "Llama 3 8B tuned by TRL",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&preference_logits=own",
    ),
    (
        "Llama 3 8B with KTO in LLaMA-Factory",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&training_objective=kto&reference_model=adapters&preference_logits=fp32&gradient_checkpointing",
    ),
    (
        "Llama 3 8B with KTO in TRL",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&training_objective=kto&reference_model=adapters&preference_logits=own&autocast=none",
    ),
    (
        "Llama 3 8B in full with KTO in TRL",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=256&software=hf_transformers&train_type=full&training_objective=kto&reference_model=precomputed&preference_logits=own&autocast=none",
    ),
    (
        "Llama 3 8B with KTO in TRL on short samples",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=64&software=hf_transformers&train_type=full&training_objective=kto&reference_model=precomputed&preference_logits=own&autocast=none",
    ),
    (
        "Llama 3 8B in full with DPO",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&training_objective=dpo&reference_model=precomputed",
    ),
    (
        "Llama 3 8B, its last two layers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=freeze&trained_layers=2",
    ),
    (
        "Mixtral 8x7B under transformers",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&zero_stage=3&data_parallel_engine=deepspeed&fp32_routing",
    ),
    (
        "Mixtral 8x7B under transformers, experts one by one",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&zero_stage=3&data_parallel_engine=deepspeed&experts_implementation=eager",
    ),
    (
        "Mixtral 8x7B under transformers, experts in batches",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&zero_stage=3&data_parallel_engine=deepspeed&experts_implementation=batched_mm",
    ),
    (
        "Mixtral 8x7B in fp32 under autocast",
        "Mixtral-8x7B",
        "params_dtype=fp32&autocast=bf16&gbs=128&mbs=1&nodes=2&seq=2048&software=hf_transformers&train_type=full&data_parallel_engine=ddp&experts_implementation=eager",
    ),
    (
        "Mixtral 8x7B with LoRA on all linears",
        "Mixtral-8x7B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear",
    ),
    (
        "Mixtral 8x7B with LoRA on all linears under autocast",
        "Mixtral-8x7B",
        "params_dtype=fp32&autocast=bf16&gbs=128&mbs=1&nodes=2&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear",
    ),
    (
        "a model of OLMo's own trainer, LayerNorms with weights",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&nodes=1&padded_vocab_size=50304&untie_embeddings_and_output_weights&swiglu&position_embedding_type=rope&software=olmo&bf16&fused_qkv&fused_gate_up&fp32_rotation&train_type=full&attn_implementation=flash_attention_2&data_parallel_engine=fsdp1&zero_stage=3&fsdp_ends_apart&reduce_dtype=fp32&normalization=LayerNorm&mbs=2&gbs=16&qk_layernorm&norms_over_heads&module_variants=clipped_queries",
    ),
    (
        "a model of OLMo's own trainer, compiled, under its fused loss",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&nodes=1&padded_vocab_size=50304&untie_embeddings_and_output_weights&swiglu&position_embedding_type=rope&software=olmo&bf16&fused_qkv&fused_gate_up&fp32_rotation&train_type=full&attn_implementation=flash_attention_2&data_parallel_engine=fsdp1&zero_stage=3&fsdp_ends_apart&reduce_dtype=fp32&normalization=LayerNorm&mbs=2&gbs=16&compiled_layers&loss_kind=fused_logits&module_variants=norms_without_weights",
    ),
    (
        "a model of OLMo's own trainer, a sequence at a time",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&nodes=1&padded_vocab_size=50304&untie_embeddings_and_output_weights&swiglu&position_embedding_type=rope&software=olmo&bf16&fused_qkv&fused_gate_up&fp32_rotation&train_type=full&attn_implementation=flash_attention_2&data_parallel_engine=fsdp1&zero_stage=3&fsdp_ends_apart&reduce_dtype=fp32&normalization=LayerNorm&mbs=1&gbs=16&loss_kind=fused_logits&module_variants=norms_without_weights",
    ),
    (
        "a model with fused projections, as Phi-3 is",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&normalization=RMSNorm&position_embedding_type=rope&software=hf_transformers&bf16&fused_qkv&fused_gate_up&train_type=full&attn_implementation=sdpa",
    ),
    (
        "a model with parallel blocks and LayerNorm, as GPT-NeoX is",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&normalization=LayerNorm&position_embedding_type=rope&software=hf_transformers&bf16&fused_qkv&parallel_residual&rotary_percent=0.25&add_bias_linear&train_type=full&attn_implementation=sdpa",
    ),
    (
        "a model with capped scores and four norms a layer, as Gemma 2 is",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&normalization=RMSNorm&position_embedding_type=rope&software=hf_transformers&bf16&post_norms&attention_softcap&final_softcap&num_query_groups=8&group_query_attention&train_type=full&attn_implementation=eager",
    ),
    (
        "the same, capped, with LoRA in fp32",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&normalization=RMSNorm&position_embedding_type=rope&software=hf_transformers&params_dtype=fp32&post_norms&attention_softcap&final_softcap&train_type=lora&lora_rank=8&lora_target_modules=all-linear&attn_implementation=eager",
    ),
    (
        "a model with normalised queries and keys, as Qwen3 is",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&normalization=RMSNorm&position_embedding_type=rope&software=hf_transformers&bf16&qk_layernorm&num_query_groups=8&group_query_attention&train_type=full&attn_implementation=sdpa",
    ),
    (
        "a model with norms behind attention and MLP and over all heads, as OLMo 2 is",
        "",
        "layers=24&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=2&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&normalization=RMSNorm&position_embedding_type=rope&software=hf_transformers&bf16&qk_layernorm&norms_behind&norms_over_heads&wide_norms&fp32_rotation&train_type=full&attn_implementation=sdpa",
    ),
    (
        "Llama 3 8B with a fused linear loss in nanotron",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=8192&software=nanotron&zero_stage=1&sequence_parallel",
    ),
    (
        "Llama 3 8B in torchtitan, loss compiled",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&nodes=2&seq=8192&software=torchtitan&zero_stage=3&loss_kind=compiled",
    ),
    (
        "Llama 3 8B in torchtitan over stages",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=2&pp=2&nodes=2&seq=8192&software=torchtitan&zero_stage=1",
    ),
    (
        "Llama 3 8B with the native fused linear loss",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=1&tp=1&nodes=2&seq=8192&loss_kind=fused_linear",
    ),
    (
        "Llama 3 8B with a chunked loss",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&loss_kind=chunked",
    ),
    (
        "Llama 3 8B with cut cross-entropy",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&loss_kind=cce",
    ),
    (
        "Llama 3 8B in fp32 with Liger's loss",
        "Llama-3-8B",
        "params_dtype=fp32&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&loss_kind=liger",
    ),
    (
        "Llama 3 8B with a compiled loss under transformers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&loss_kind=compiled",
    ),
    (
        "a model of one layer whose weights are sharded",
        "",
        "layers=1&hidden=2048&heads=16&seq=2048&max_position_embeddings=4096&mbs=1&gbs=16&nodes=1&padded_vocab_size=32000&swiglu&bf16&software=torchtitan&zero_stage=3",
    ),
    (
        "Llama 3 8B in layers that are compiled as a whole",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=1&nodes=1&seq=8192&software=torchtitan&zero_stage=2&compiled_layers&loss_kind=compiled",
    ),
    (
        "GPT-3 6.7B under DeepSpeed over two stages, samples short",
        "GPT-3-6.7B",
        "fp16&gbs=16&mbs=1&pp=2&nodes=1&seq=128&software=megatron_deepspeed&zero_stage=1",
    ),
    (
        "a wide layer, few tokens, saved tensors on the host",
        "",
        "layers=1&hidden=4096&heads=32&seq=128&max_position_embeddings=4096&mbs=1&gbs=16&nodes=1&padded_vocab_size=128000&swiglu&untie_embeddings_and_output_weights&params_dtype=bf16&autocast=none&optimizer=sgd&software=hf_transformers&train_type=full&gradient_checkpointing&data_parallel_engine=ddp&offload_saved_tensors",
    ),
    (
        "Qwen3 8B with GRPO under verl, rollouts by vLLM on the same accelerators",
        "Qwen3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=1280&mbs=8&nodes=1&seq=1536&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp1&zero_stage=3&training_objective=policy&rl_framework=verl&rollout_engine=vllm&rollout_tensor_parallel_size=2&rollout_memory_fraction=0.6&rollout_sleep&rl_reference=device&rl_critic=device&offload_between_phases=gradients",
    ),
    (
        "Qwen3 8B with GRPO under verl, an entropy in the loss",
        "Qwen3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=1280&mbs=8&nodes=1&seq=1536&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp1&zero_stage=3&training_objective=policy&policy_entropy&rl_framework=verl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "Qwen3 8B with GRPO under verl on four nodes, shards inside each",
        "Qwen3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=1280&mbs=8&nodes=4&seq=1536&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3&num_distributed_optimizer_instances=4&training_objective=policy&rl_framework=verl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "Qwen3 8B with GRPO under OpenRLHF, rollouts on accelerators of their own",
        "Qwen3-8B",
        "bf16&autocast=none&gbs=128&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=deepspeed&zero_stage=3&training_objective=policy&rl_framework=openrlhf&rollout_engine=vllm&rollout_gpus=4",
    ),
    (
        "Qwen3 8B with GRPO under open-instruct, rollouts on accelerators of their own",
        "Qwen3-8B",
        "bf16&autocast=none&gbs=1024&mbs=1&nodes=1&seq=16384&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=deepspeed&zero_stage=3&grads_dtype=fp32&training_objective=policy&rl_framework=open_instruct&rollout_engine=vllm&rollout_gpus=8&rl_reference=device&second_weight_shards=8&copy_whole_model",
    ),
    (
        "Qwen3 8B with GRPO under TRL",
        "Qwen3-8B",
        "bf16&autocast=none&gbs=128&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=deepspeed&zero_stage=3&training_objective=policy&rl_framework=trl&rollout_engine=vllm&rollout_memory_fraction=0.3",
    ),
    (
        "Qwen3 30B-A3B with GRPO under slime, rollouts by SGLang",
        "Qwen3-30B-A3B",
        "bf16&gbs=256&mbs=1&tp=4&ep=8&expert_tensor_parallel_size=1&nodes=1&seq=16384&sequence_parallel&use_distributed_optimizer&attention_kernel=flash&recompute_granularity=full&recompute_method=uniform&recompute_num_layers=1&rl_framework=slime&rollout_engine=sglang&rollout_tensor_parallel_size=8&rollout_memory_fraction=0.7&rollout_sleep&offload_between_phases=weights%20gradients%20optimizer&rl_reference=host",
    ),
    (
        "Qwen3 8B with GRPO under NeMo-RL on Megatron",
        "Qwen3-8B",
        "bf16&gbs=512&mbs=1&tp=2&nodes=1&seq=4096&sequence_parallel&use_distributed_optimizer&loss_kind=distributed&rl_framework=nemo_rl&rollout_engine=vllm&rollout_tensor_parallel_size=1&rollout_memory_fraction=0.6&rollout_sleep&offload_between_phases=weights%20gradients%20optimizer",
    ),
    (
        "the same in packs, all log-probabilities at once",
        "Qwen3-8B",
        "bf16&gbs=512&tp=2&nodes=1&max_tokens_per_micro_batch=16384&rollout_length=4096&sequence_parallel&use_distributed_optimizer&loss_kind=distributed&rl_framework=nemo_rl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "the same in packs, log-probabilities of 1,024 tokens at a time",
        "Qwen3-8B",
        "bf16&gbs=512&tp=2&nodes=1&max_tokens_per_micro_batch=16384&rollout_length=4096&sequence_parallel&use_distributed_optimizer&loss_kind=distributed_chunks&log_prob_chunk=1024&rl_framework=nemo_rl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "the same, log-probabilities of 1,024 tokens at a time",
        "Qwen3-8B",
        "bf16&gbs=512&mbs=1&tp=2&nodes=1&seq=4096&sequence_parallel&use_distributed_optimizer&loss_kind=distributed_chunks&log_prob_chunk=1024&rl_framework=nemo_rl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "Qwen3 8B with GRPO under NeMo-RL's DTensor",
        "Qwen3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=512&mbs=2&nodes=1&seq=4096&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3&training_objective=policy&rl_framework=nemo_rl&rollout_engine=vllm&rollout_memory_fraction=0.6&rollout_sleep",
    ),
    (
        "Qwen3 8B with GRPO under SkyRL's Megatron",
        "Qwen3-8B",
        "bf16&gbs=320&mbs=4&tp=2&nodes=1&seq=1536&sequence_parallel&use_distributed_optimizer&loss_kind=distributed_wide_chunks&log_prob_chunk=1024&rl_framework=skyrl&rollout_engine=vllm&rollout_memory_fraction=0.8&rollout_sleep",
    ),
    (
        "Qwen3 8B with GRPO under SkyRL's FSDP2",
        "Qwen3-8B",
        "params_dtype=fp32&autocast=bf16&gbs=1280&mbs=4&nodes=1&seq=1536&software=hf_transformers&train_type=full&attn_implementation=flash_attention_2&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3&training_objective=policy&rl_framework=skyrl&rollout_engine=vllm&rollout_memory_fraction=0.8&rollout_sleep",
    ),
    (
        "Llama 3 8B with three gated delta nets for every gated attention",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&tp=2&sequence_parallel&linear_attention_freq=4&linear_mixer=gated_delta_net&attention_output_gate&use_flash_attn",
    ),
    (
        "the same in Megatron's own layers, with dropout",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&software=megatron_core_local&tp=2&linear_attention_freq=4&linear_mixer=gated_delta_net&hidden_dropout=0.1&gradient_accumulation_fusion=false",
    ),
    (
        "the same in nanotron",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&software=nanotron&tp=2&sequence_parallel&mixer_pattern=MMM*&linear_mixer=gated_delta_net",
    ),
    (
        "Llama 3 8B with Mamba-2, the sequence cut",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&tp=2&cp=2&sequence_parallel&mixer_pattern=MMM*&linear_mixer=mamba2",
    ),
    (
        "Llama 3 8B with Mamba",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&mixer_pattern=MMM*&linear_mixer=mamba&linear_num_key_heads=1&linear_num_value_heads=1&linear_key_head_dim=16&linear_value_head_dim=8192&linear_rank=256&linear_biases=conv1d&linear_norm",
    ),
    (
        "Llama 3 8B with Kimi delta attention",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&mixer_pattern=MMM*&linear_mixer=kimi_delta_attention&linear_num_key_heads=32&linear_num_value_heads=32&linear_rank=128",
    ),
    (
        "the same in nanotron, gathered",
        "Llama-3-8B",
        "bf16&gbs=64&mbs=2&nodes=2&seq=8192&software=nanotron&tp=2&sequence_parallel&mixer_pattern=MMM*&linear_mixer=kimi_delta_attention&linear_num_key_heads=32&linear_num_value_heads=32&linear_rank=128",
    ),
    (
        "Gated delta nets and gated attention under transformers, attention eager",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=eager&mixer_pattern=MMM*&linear_mixer=gated_delta_net&attention_output_gate&qk_layernorm&fp32_norms",
    ),
    (
        "the same in fp32",
        "Llama-3-8B",
        "params_dtype=fp32&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&autocast=none&attn_implementation=sdpa&mixer_pattern=MMM*&linear_mixer=gated_delta_net&attention_output_gate&qk_layernorm&fp32_norms",
    ),
    (
        "Mamba-2 under transformers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=sdpa&mixer_pattern=MMM*&linear_mixer=mamba2",
    ),
    (
        "Short convolutions under transformers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=sdpa&mixer_pattern=MMM*&linear_mixer=short_convolution&linear_num_key_heads=1&linear_num_value_heads=1&linear_key_head_dim=4096&linear_value_head_dim=4096&linear_conv_kernel_dim=3&linear_biases=none",
    ),
    (
        "the same with adapters on all linear layers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&attn_implementation=sdpa&mixer_pattern=MMM*&linear_mixer=short_convolution&linear_num_key_heads=1&linear_num_value_heads=1&linear_key_head_dim=4096&linear_value_head_dim=4096&linear_conv_kernel_dim=3&linear_biases=none",
    ),
    (
        "Experts with a shared one that a gate switches, under transformers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=full&attn_implementation=sdpa&num_experts=8&moe_router_topk=2&moe_ffn_hidden_size=1024&moe_shared_expert_intermediate_size=2048&moe_shared_expert_gate",
    ),
    (
        "Llama 3 8B with LoRA of Megatron-Bridge, TP 2, dropout",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&tp=2&train_type=lora&adapter_library=megatron-bridge&lora_dropout=0.1",
    ),
    (
        "the same with sequence parallelism and Megatron's own layers",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&tp=2&sequence_parallel&software=megatron_core_local&train_type=lora&adapter_library=megatron-bridge",
    ),
    (
        "the same with sequence parallelism and an adapter each for queries, keys and values",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&tp=2&sequence_parallel&train_type=lora&adapter_library=megatron-bridge-canonical&lora_dropout=0.1",
    ),
    (
        "Llama 3 8B with LoRA of ms-swift's megatron command, TP 2 with sequence parallelism",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&tp=2&sequence_parallel&train_type=lora&adapter_library=mcore-bridge",
    ),
    (
        "the same without dropout, layers recomputed, of Qwen3 30B-A3B",
        "Qwen3-30B-A3B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&ep=4&train_type=lora&adapter_library=mcore-bridge&lora_dropout=0",
    ),
    (
        "Llama 3 8B with DoRA on all linears",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&use_dora&lora_rank=16&lora_target_modules=all-linear&autocast=none&gradient_checkpointing&data_parallel_engine=fsdp2&zero_stage=3",
    ),
    (
        "the same with dropout, layers kept",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&use_dora&lora_rank=16&lora_target_modules=all-linear&lora_dropout=0.05&autocast=none",
    ),
    (
        "the same on queries and values without dropout",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&use_dora&lora_rank=16&lora_target_modules=q_proj%20v_proj",
    ),
    (
        "Llama 3 8B with axolotl's functions for LoRA",
        "Llama-3-8B",
        "bf16&gbs=16&mbs=2&nodes=1&seq=2048&software=hf_transformers&train_type=lora&lora_rank=16&lora_target_modules=all-linear&lora_kernels=qkv%20o%20mlp&lora_dropout=0.05",
    ),
];
