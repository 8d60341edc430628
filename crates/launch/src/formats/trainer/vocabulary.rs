//! The words of trainers that run models of Hugging Face's transformers: its Trainer, TRL, LLaMA-Factory, axolotl, ms-swift
//! and scripts built on them. One table; what differs between trainers is in [`super::dialect`].

use crate::Effect;
use shardscope_plan::Field;

/// What a key means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// Its value is a setting's.
    Take(Field),
    /// It names the model.
    Model,
    /// It is read by code of its own.
    Own,
    /// It changes figures and is not modelled, but for these values, joined by blanks.
    Lacks(Effect, &'static str, &'static str),
    /// It changes none of the figures, for a reason.
    Idle(&'static str),
}

/// Keys, joined by blanks, and what they mean. Dashes count as underscores.
pub(super) struct Rule {
    pub(super) keys: &'static str,
    pub(super) meaning: Meaning,
}

const fn rule(keys: &'static str, meaning: Meaning) -> Rule {
    Rule { keys, meaning }
}

use Effect::{Memory, Model as OfModel, Time};
use Meaning::{Idle, Lacks, Model, Own, Take};

const ALLOCATION: &str = "training that changes part of the weights at a time";
const PREFERENCES: &str = "a reference or reward model beside the one that is trained";
const ADAPTERS: &str = "adapters of another kind than LoRA";
const VISION: &str = "a vision model beside the decoder";
const FP8: &str = "linear layers in fp8 (torchao, Transformer Engine)";
const PARALLEL: &str = "this way of cutting a model of transformers";
const DATA: &str = "training data";
const EVALUATION: &str = "evaluation";
const WITH_VISION: &str = "images: their tokens count in the sequence length";
const KERNELS: &str = "kernels of this library in the place of transformers'";

/// All keys. Sources: `transformers/training_args.py`, `peft/tuners/lora/config.py`, TRL's `model_config.py` and
/// `sft_config.py`, `llamafactory/hparams`, axolotl's schema, `swift/arguments`.
pub(super) const RULES: &[Rule] = &[
    rule(
        "model_name_or_path model base_model pretrained_model_name_or_path model_id model_path hf_checkpoint model_id_or_path",
        Model,
    ),
    rule(
        "per_device_train_batch_size micro_batch_size train_batch_size per_gpu_train_batch_size batch_size_per_device batch_size_training",
        Take(Field::MicroBatchSize),
    ),
    rule("gradient_accumulation_steps", Take(Field::NumMicroBatches)),
    rule(
        "batch_size do_eval eval_strategy evaluation_strategy per_device_eval_batch_size eval_batch_size",
        Own,
    ),
    rule(
        "max_length max_seq_length model_max_length cutoff_len sequence_len block_size max_seq_len context_length",
        Take(Field::SeqLength),
    ),
    rule("gradient_checkpointing disable_gradient_checkpointing activation_checkpointing", Own),
    rule("bf16 fp16 pure_bf16 torch_dtype dtype bfloat16 float16 mixed_precision fp32", Own),
    rule("optim optimizer", Take(Field::Optimizer)),
    rule(
        "attn_implementation attn_impl flash_attn use_flash_attn flash_attention use_flash_attention sdp_attention sdpa_attention xformers_attention use_flash_attention_2 eager_attention flex_attention",
        Own,
    ),
    rule("use_liger_kernel enable_liger_kernel use_liger liger_kernel", Take(Field::LigerKernel)),
    rule(
        "liger_rope liger_rms_norm liger_glu_activation liger_swiglu liger_layer_norm liger_fused_linear_cross_entropy liger_cross_entropy",
        Own,
    ),
    rule("liger_rms_norm_gated", Idle("only with gated norms")),
    rule("packing sample_packing padding_free neat_packing", Own),
    rule("max_steps", Take(Field::TrainIters)),
    // What trains.
    rule(
        "use_peft use_lora lora_enable lora enable_lora with_lora use_peft_lora lora_tuning lora_training finetuning_type tuner_type train_type adapter sft_type peft q_lora use_qlora",
        Own,
    ),
    rule("lora_r lora_rank r", Take(Field::LoraRank)),
    rule("lora_alpha", Take(Field::LoraAlpha)),
    rule("lora_dropout", Take(Field::LoraDropout)),
    rule("lora_target_modules lora_target target_modules lora_modules lora_target_linear", Own),
    rule("modules_to_save lora_modules_to_save additional_target", Take(Field::ModulesToSave)),
    rule("use_dora peft_use_dora", Take(Field::UseDora)),
    rule("freeze_trainable_layers", Take(Field::TrainedLayers)),
    rule(
        "load_in_4bit load_in_8bit quantization_bit quant_bits quant_bit quantization_type bnb_4bit_quant_type bits quant_method quantization_method",
        Own,
    ),
    rule(
        "double_quantization bnb_4bit_use_double_quant use_bnb_nested_quant double_quant bnb_config_kwargs.bnb_4bit_use_double_quant",
        Take(Field::DoubleQuantization),
    ),
    // How it is spread.
    rule(
        "deepspeed deepspeed_config fsdp fsdp_config fsdp_transformer_layer_cls_to_wrap config_file fsdp_version",
        Own,
    ),
    rule(
        "stage rlhf_type rl task_type training_type pref_loss beta max_prompt_length max_completion_length precompute_ref_log_probs cut_cross_entropy plugins reward_model process_reward_model model_type rpo_alpha ref_model_init_kwargs use_vllm \
         vllm_mode vllm_gpu_memory_utilization vllm_tensor_parallel_size num_generations sleep_level vllm_enable_sleep_mode \
         vllm_max_model_len vllm_max_model_length vllm_enforce_eager vllm_server_host vllm_server_base_url offload_model \
         offload_optimizer rl_beta infer_backend export_dir \
         export_quantization_bit model_class batching_strategy vllm_max_num_seqs",
        Own,
    ),
    rule("ray_num_workers", Take(Field::WorldSize)),
    rule(
        "cp_mode cp_size context_parallel_size sequence_parallel_size sequence_parallel_degree ulysses_size",
        Own,
    ),
    rule(
        "tensor_parallel_size tp_size dp_shard_size dp_replicate_size expert_parallel_size context_parapllel_size",
        Lacks(Memory, PARALLEL, "1 null"),
    ),
    rule(
        "activation_offloading activation_cpu_offload layer_offloading",
        Lacks(Memory, "saved layer inputs offloaded to the host", ""),
    ),
    rule("tiled_mlp use_tiled_mlp", Lacks(Memory, "an MLP that works piece by piece", "")),
    rule("zero_stage", Take(Field::ZeroStage)),
    rule("experts_impl experts_implementation", Take(Field::ExpertsImplementation)),
    rule("enable_fsdp use_fp16 peft_method quantization use_fast_kernels", Own),
    rule(
        "freeze_layers freeze_LLM_only",
        Lacks(OfModel, "frozen layers; all weights would be counted as trained", ""),
    ),
    rule("offload", Own),
    // Not modelled.
    rule("lora_dim", Lacks(OfModel, "DeepSpeed-Chat's adapters, beside which norms and biases train", "0")),
    rule(
        "num_padding_at_beginning",
        Lacks(OfModel, "a head for rewards in the place of the vocabulary's", ""),
    ),
    rule(
        "actor_model_name_or_path critic_model_name_or_path",
        Lacks(Memory, "a policy, a reference, a critic and a reward model (DeepSpeed-Chat)", ""),
    ),
    rule(
        "use_galore use_badam use_adam_mini use_apollo use_llama_pro mixture_of_depths mod_choice lisa_step_interval lisa_n_layers lisa_activated_layers relora relora_steps galore_rank_max unfrozen_parameters",
        Lacks(Memory, ALLOCATION, ""),
    ),
    rule("tuner_backend", Lacks(Memory, KERNELS, "peft")),
    rule("use_muon", Lacks(Memory, "Muon in this trainer", "")),
    // LMFlow: `customized_optim` names the optimizer (`lmflow/optim/utils.py:create_customized_optimizer`),
    // and RAFT ranks what it samples by a reward model between its trainings (`lmflow/pipeline/raft_aligner.py`).
    rule(
        "use_customized_optim",
        Lacks(Memory, "an optimizer of LMFlow's own choice; Adam's states would be counted", "0"),
    ),
    rule("num_raft_iteration raft_batch_size", Lacks(Memory, PREFERENCES, "")),
    rule("teacher_model reward_model_plugin ref_model_quantization_bit", Lacks(Memory, PREFERENCES, "")),
    rule(
        "oft_block_size oft_rank use_vera boft_block_size vera_rank adalora_target_r",
        Lacks(OfModel, ADAPTERS, "0"),
    ),
    rule(
        "vision_tower mm_vision_tower pretrain_mm_mlp_adapter tune_mm_mlp_adapter tune_vision_tower vision_tower_lr connector_lr vision_model_name_or_path vis_proj",
        Lacks(OfModel, VISION, ""),
    ),
    rule(
        "freeze_vision_tower freeze_multi_modal_projector freeze_language_model train_mm_proj_only freeze_vit freeze_aligner freeze_llm vit_gradient_checkpointing",
        Own,
    ),
    rule("fp8 fp8_backend qat float8", Lacks(Memory, FP8, "")),
    rule(
        "fused_attn_kernel flash_attn_cross_entropy flash_attn_rms_norm flash_attn_fuse_mlp use_unsloth use_kernels use_sonicmoe use_scattermoe use_megatron use_mca use_kt use_onebitllms llama4_linearized_experts quantize_moe_experts",
        Lacks(Memory, KERNELS, ""),
    ),
    rule(
        "gptq awq aqlm_optimizer",
        Lacks(Memory, "weights quantised by another library than bitsandbytes", ""),
    ),
    rule("diffusion", Lacks(OfModel, "a diffusion model", "")),
    rule("lora_target_parameters", Lacks(OfModel, "adapters on parameters instead of layers", "")),
    rule("torch_compile", Lacks(Memory, "torch.compile, which keeps other tensors", "")),
    rule("router_aux_loss_coef", Idle("the weight of a loss")),
    // Without influence.
    rule(
        "use_reentrant_gc use_reentrant gradient_checkpointing_kwargs.use_reentrant gradient_checkpointing_kwargs",
        Idle("the way of checkpointing; the same tensors are kept"),
    ),
    rule(
        "image_max_pixels video_max_pixels video_fps video_maxlen freeze_mm_modules mm_vision_select_layer mm_use_im_start_end mm_use_im_patch_token mm_projector_type image_folder image_aspect_ratio group_by_modality_length mm_projector_lr",
        Idle(WITH_VISION),
    ),
    rule(
        "use_rslora loraplus_lr_ratio loraplus_lr_embedding lora_ga_batch_size lora_ga_direction lora_ga_iters lora_ga_max_length lora_ga_scale lora_ga_stable_gamma pissa_init pissa_iter pissa_convert init_lora_weights lora_fan_in_fan_out lora_task_type peft_use_rslora create_new_adapter lora_model_dir adapter_name_or_path adapters lora_weight_path lora_on_cpu",
        Idle("the start or scale of adapters"),
    ),
    rule(
        "reward_funcs reward_weights log_completions overlong_filter epsilon epsilon_high dynamic_sample max_resample_times \
         temperature top_p top_k repetition_penalty num_iterations scale_rewards importance_sampling_level kl_in_reward tau_pos \
         tau_neg desirable_weight undesirable_weight stop_words steps_per_generation generation_batch_size \
         vllm_server_port vllm_server_timeout vllm_limit_mm_per_prompt vllm_enable_prefix_caching delta advantage_estimator \
         move_model_batches vllm_server_pass_dataset multi_turn_scheduler max_turns log_rollout_offpolicy_metrics check_model",
        Idle("how rollouts are sampled and rewarded"),
    ),
    rule("lora_bias", Lacks(OfModel, "biases that train beside the adapters", "none")),
    rule("lora_dtype", Lacks(Memory, "adapters in a format of their own", "none auto")),
    rule("lora_mlp_kernel lora_qkv_kernel lora_o_kernel lora_embedding_kernel", Own),
    rule(
        "pref_beta pref_ftx dpo_beta dpo_label_smoothing simpo_gamma kto_rejected_weight label_smoothing use_dft_loss asft_alpha eaft_alpha kto_chosen_weight orpo_alpha",
        Idle("the formula of the loss"),
    ),
    // Losses over one log-probability per token; those of TRL that compute logits in chunks, or add a cross entropy to a
    // preference, keep other tensors.
    rule(
        "loss_type",
        Lacks(
            Memory,
            "a loss that keeps other tensors",
            "nll dft dpo dpo_norm sigmoid hinge ipo exo_pair nca_pair robust bco_pair sppo_hard aot aot_pair aot_unpaired discopop apo_zero \
             apo_down grpo dapo bnpo dr_grpo cispo gspo sapo luspo fipo",
        ),
    ),
    // `llamafactory/train/trainer_utils.py`: a reference model and its logits; a copy of the logits that count.
    rule("use_asft_loss", Lacks(Memory, "a reference or reward model beside the one that is trained", "")),
    rule("use_eaft_loss", Lacks(Memory, "a loss that copies the logits", "")),
    rule("shift_attn", Lacks(Time, "attention inside shifted groups (LongLoRA)", "")),
    rule("resize_vocab", Lacks(OfModel, "a vocabulary that grows, whose embedding then trains", "")),
    rule("auto_find_batch_size", Lacks(Memory, "a batch size that is lowered until the run fits", "")),
    rule(
        "conversation_template disable_group_texts validation_split_percentage streaming_multipack_buffer_size data_split data_path sft_only_data_path data_output_path lora_module_name only_optimize_lora lora_learning_rate response_prefix template system chat_template conv_template version lazy_preprocess group_by_length train_on_inputs remove_unused_columns special_tokens tokens eot_tokens max_samples overwrite_cache tokenized_path dataset_mixer dataset_splits use_chat_template split_dataset_ratio load_from_cache_file streaming shuffle_merged_datasets skip_prepare_dataset split pad_to_multiple_of assistant_only_loss truncation_mode truncation_strategy test_size columns packing_strategy eos_token completion_only_loss model_author model_name agent_template add_non_thinking_prefix enable_thinking processor_type datasets pretraining_dataset test_datasets is_llama_derived_model resize_token_embeddings_to_32x sample_packing_eff_est pad_to_sequence_len eval_sample_packing text_column mask_history neat val_size val_set_size media_dir buffer_size mix_strategy interleave_probs default_system gptq_groupsize gptq_model_v1 custom_register_path external_plugins cached_dataset train_type_data image_key",
        Idle(DATA),
    ),
    rule(
        "do_train do_predict predict_with_generate val_dataset eval_dataset evals_per_epoch loss_watchdog_threshold loss_watchdog_patience include_num_input_tokens_seen plot_loss metric_for_best_model load_best_model_at_end early_stopping_patience greater_is_better generation_max_length compute_accuracy",
        Idle(EVALUATION),
    ),
    rule(
        "low_cpu_fsdp dist_checkpoint_root_folder dist_checkpoint_folder save_model save_metrics run_validation num_workers_dataloader gamma use_wandb use_profiler profiler_dir flop_counter one_gpu val_batch_size save_optimizer num_freeze_layers num_warmup_steps print_loss enable_tensorboard tensorboard_path reinit_weights use_swanlab num_train_epochs num_epochs epochs tf32 report_to run_name logging_steps push_to_hub hub_model_id hub_strategy hub_private_repo logging_first_step strict debug ddp_timeout ddp_find_unused_parameters ddp_backend local_rank seed data_seed use_cache trust_remote_code model_revision revision tokenizer_type tokenizer_name use_fast_tokenizer config_name tokenizer tokenizer_name_or_path tokenizer_use_fast hf_use_auth_token is_falcon_derived_model torchdistx_path xformers flash_optimum save_only_model save_safetensors torch_empty_cache_steps average_tokens_across_devices use_hf ignore_args_error merge_lora logging_dir log_level log_on_each_node disable_tqdm dataloader_num_workers dataset_num_proc preprocessing_num_workers dataloader_persistent_workers dataloader_pin_memory dataloader_drop_last accelerator_config wandb_project experimental_skip_move_to_device device_map gpu_memory_limit low_cpu_mem_usage rope_scaling neftune_noise_alpha noisy_embedding_alpha adam_eps adam_epsilon adam_beta1 adam_beta2 max_grad_norm gradient_clipping lr_scheduler lr_scheduler_type lr_scheduler_kwargs cosine_min_lr_ratio learning_rate lr warmup_ratio warmup_steps weight_decay router_z_loss_coef full_finetune output_dir hub_model_revision dataset_kwargs ebft lora_ga ddp label_names dataset_prepared_path cache_dir project_name exp_name cuda_home port save_strategy",
        Idle("what happens around the training"),
    ),
];

/// The rule of a key; dashes count as underscores.
pub(super) fn find(key: &str) -> Option<&'static Rule> {
    let same = |known: &str| {
        known.len() == key.len()
            && known
                .bytes()
                .zip(key.bytes())
                .all(|(a, b)| a == if b == b'-' { b'_' } else { b.to_ascii_lowercase() })
    };
    RULES.iter().find(|rule| rule.keys.split_ascii_whitespace().any(same))
}

#[cfg(test)]
mod tests {
    use super::RULES;

    #[test]
    fn every_key_means_one_thing() {
        let mut seen: Vec<(&str, usize)> = Vec::new();
        for (index, rule) in RULES.iter().enumerate() {
            for key in rule.keys.split_ascii_whitespace() {
                let other = seen.iter().find(|(known, at)| *known == key && *at != index);
                assert!(other.is_none(), "{key} has two meanings");
                seen.push((key, index));
            }
        }
    }
}
