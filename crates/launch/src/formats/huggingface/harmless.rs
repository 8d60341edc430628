//! Keys of a `config.json` that change no figure, with the reason. A key that is in no list is said to be not
//! read: what it does is not known.

/// Keys, and why nothing depends on them.
pub(super) const HARMLESS: &[(&str, &str)] = &[
    (
        "bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id cls_token_id \
         image_token_id image_token_index video_token_id video_token_index vision_start_token_id \
         vision_end_token_id vision_token_id boi_token_id eoi_token_id boi_token_index eoi_token_index \
         audio_token_id tokenizer_class forced_eos_token_id suppress_tokens begin_suppress_tokens",
        "numbers of tokens in the vocabulary",
    ),
    (
        "rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps norm_epsilon rms_norm_epsilon mixer_rms_eps",
        "a constant inside a norm",
    ),
    (
        "initializer_range init_std initializer_factor init_method use_bfloat16 rescale_prenorm_residual",
        "first values of the weights",
    ),
    (
        "router_aux_loss_coef aux_loss_alpha output_router_logits router_z_loss_coef seq_aux router_jitter_noise \
         input_jitter_noise norm_topk_prob routed_scaling_factor scoring_func topk_method n_group topk_group \
         moe_router_enable_expert_bias route_scale score_function norm_min moe_norm_min",
        "which experts are chosen and how they are weighted, not how many or how large",
    ),
    (
        "rope_scaling rope_parameters rope_interleave rotary_dim rope_local_base_freq mscale \
         original_max_position_embeddings beta_fast beta_slow factor rope_type low_freq_factor high_freq_factor \
         attention_factor short_factor long_factor mscale_all_dim type",
        "frequencies of the rotation",
    ),
    (
        "use_cache max_new_tokens max_length temperature top_p top_k do_sample num_return_sequences \
         repetition_penalty length_penalty num_beams early_stopping output_attentions output_hidden_states \
         return_dict task_specific_params num_logits_to_keep",
        "generation",
    ),
    (
        "_name_or_path auto_map id2label label2id num_labels problem_type torchscript pruned_heads \
         quantization_config finetuning_task _attn_implementation attn_implementation architectures model_type \
         transformers_version torch_dtype dtype name_or_path",
        "where the checkpoint comes from and how it is stored or served",
    ),
    (
        "embedding_multiplier logits_scaling residual_multiplier attention_multiplier logit_scale scale_emb \
         scale_depth dim_model_base query_pre_attn_scalar attention_in_multiplier attention_out_multiplier \
         key_multiplier lm_head_multiplier mlp_multipliers ssm_multipliers ssm_in_multiplier ssm_out_multiplier",
        "a factor on activations",
    ),
    ("pretraining_tp slow_but_exact", "how a matrix product is carried out in the library"),
    ("hidden_act hidden_activation activation_function", "read with the model type"),
];
