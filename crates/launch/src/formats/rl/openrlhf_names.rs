//! OpenRLHF's options as they were named before they got dots: `--micro_train_batch_size` for `--train.micro_batch_size`. Sources:
//! `openrlhf/cli/train_sft.py` at f2afba47b67b, `train_ppo_ray.py` at 021d1b096419, and both as they are now.

use super::super::scalars::{Leaf, Scalars};
use super::super::trainer::words;
use crate::Argument;

/// Old names, and the groups and names they have now.
const NAMES: &[(&str, &str)] = &[
    ("train_batch_size", "train.batch_size"),
    ("micro_train_batch_size", "train.micro_batch_size"),
    ("use_dynamic_batch", "train.dynamic_batch_enable"),
    ("train_max_tokens_per_gpu", "train.max_tokens_per_gpu"),
    ("rollout_max_tokens_per_gpu", "rollout.max_tokens_per_gpu"),
    ("micro_rollout_batch_size", "rollout.micro_batch_size"),
    ("rollout_batch_size", "rollout.batch_size"),
    ("n_samples_per_prompt", "rollout.n_samples_per_prompt"),
    ("temperature", "rollout.temperature"),
    ("top_p", "rollout.top_p"),
    ("max_epochs", "train.max_epochs"),
    ("num_episodes", "train.num_episodes"),
    ("seed", "train.seed"),
    ("enable_ema", "train.enable_ema"),
    ("async_train", "train.async_enable"),
    ("async_queue_size", "train.async_queue_size"),
    ("agent_func_path", "train.agent_func_path"),
    ("colocate_actor_ref", "train.colocate_actor_ref"),
    ("colocate_critic_reward", "train.colocate_critic_reward"),
    ("colocate_all_models", "train.colocate_all"),
    ("zero_stage", "ds.zero_stage"),
    ("adam_offload", "ds.adam_offload"),
    ("zpg", "ds.zpg"),
    ("deepcompile", "ds.deepcompile"),
    ("attn_implementation", "ds.attn_implementation"),
    ("use_liger_kernel", "ds.use_liger_kernel"),
    ("overlap_comm", "ds.overlap_comm"),
    ("ds_tensor_parallel_size", "ds.tensor_parallel_size"),
    ("deepspeed_enable_sleep", "ds.enable_sleep"),
    ("packing_samples", "ds.packing_samples"),
    ("ring_attn_size", "ds.ring_attn_size"),
    ("ring_head_stride", "ds.ring_attn_head_stride"),
    ("load_in_4bit", "ds.load_in_4bit"),
    ("lora_rank", "ds.lora.rank"),
    ("lora_alpha", "ds.lora.alpha"),
    ("lora_dropout", "ds.lora.dropout"),
    ("target_modules", "ds.lora.target_modules"),
    ("use_ds_universal_ckpt", "ds.use_universal_ckpt"),
    ("vllm_num_engines", "vllm.num_engines"),
    ("vllm_tensor_parallel_size", "vllm.tensor_parallel_size"),
    ("vllm_gpu_memory_utilization", "vllm.gpu_memory_utilization"),
    ("vllm_enable_sleep", "vllm.enable_sleep"),
    ("vllm_sync_backend", "vllm.sync_backend"),
    ("vllm_sync_with_ray", "vllm.sync_with_ray"),
    ("enforce_eager", "vllm.enforce_eager"),
    ("enable_prefix_caching", "vllm.enable_prefix_caching"),
    ("advantage_estimator", "algo.advantage.estimator"),
    ("init_kl_coef", "algo.kl.init_coef"),
    ("critic_pretrain", "critic.model_name_or_path"),
    ("reward_pretrain", "reward.model_name_or_path"),
    ("remote_rm_url", "reward.remote_url"),
    ("ref_reward_offload", "ref.offload"),
    ("ref_offload", "ref.offload"),
    ("beta", "model.beta"),
    ("chosen_key", "data.chosen_key"),
    ("rejected_key", "data.rejected_key"),
];

/// Old names that change none of the figures, and the group of those that took their place.
const IDLE: &[(&str, &str)] = &[
    (
        "algo",
        "gamma lambd use_kl_loss kl_estimator kl_target kl_horizon no_advantage_std_norm ptx_coef dynamic_filtering",
    ),
    ("algo", "dynamic_filtering_reward_range enable_vllm_is_correction vllm_is_truncated_threshold"),
    ("reward", "normalize_reward reward_clip_range overlong_buffer_len overlong_penalty_factor"),
    ("critic", "value_clip freezing_actor_steps save_value_network critic_learning_rate"),
    ("adam", "learning_rate actor_learning_rate l2 adam_betas lr_scheduler lr_warmup_ratio max_norm"),
    (
        "data",
        "dataset dataset_probs train_split eval_split multiturn input_key output_key label_key input_template",
    ),
    (
        "data",
        "apply_chat_template tokenizer_chat_template prompt_data prompt_data_probs prompt_split max_samples",
    ),
    ("data", "disable_fast_tokenizer prompt_key prompt_max_len generate_max_len"),
    ("eval", "eval_dataset eval_steps eval_temperature eval_n_samples_per_prompt"),
    (
        "ckpt",
        "save_path save_steps save_hf_ckpt disable_ds_ckpt ckpt_path max_ckpt_num max_ckpt_mem load_checkpoint",
    ),
    (
        "logger",
        "logging_steps use_wandb wandb_org wandb_group wandb_project wandb_run_name use_tensorboard perf",
    ),
    ("ref", "ref_num_nodes ref_num_gpus_per_node"),
    ("reward", "reward_num_nodes reward_num_gpus_per_node"),
    ("critic", "critic_num_nodes critic_num_gpus_per_node"),
    ("actor", "eps_clip eps_clip_low_high dual_clip policy_loss_type entropy_loss_coef aux_loss_coef"),
    ("actor", "gradient_checkpointing_use_reentrant"),
    ("rollout", "vllm_generate_batch_size rollout_tasks_per_gpu"),
];

/// Options of which a command has one at least.
const OWN: [&str; 6] = [
    "--micro_train_batch_size",
    "--actor_num_nodes",
    "--vllm_num_engines",
    "--micro_rollout_batch_size",
    "--advantage_estimator",
    "--reward_pretrain",
];

/// What `train_ppo_ray.py` reads of prompts and of responses where neither is stated. Unit: token.
const LENGTH: u64 = 1024;

/// Whether a command is one of OpenRLHF's with the old names.
pub(super) fn claims(program: &str, words: &[Argument]) -> bool {
    let name = program.rsplit(['/', '.']).find(|part| *part != "py").unwrap_or(program);
    let trains = name.starts_with("train_");
    let has = |own: &str| words.iter().any(|word| word.text.split('=').next() == Some(own));
    let old = has("--pretrain") && OWN.iter().any(|own| has(own));
    old && (trains || program.contains("openrlhf"))
}

/// The words under the names that they have now; none where they have those already.
pub(super) fn renamed(arguments: &[Argument]) -> Option<Scalars> {
    let scalars = words::leaves(arguments);
    let find = |name: &str| scalars.all().iter().rfind(|leaf| leaf.path == name);
    find("pretrain")?;
    let rl =
        scalars.all().iter().any(|leaf| leaf.path.starts_with("vllm_") || leaf.path.starts_with("actor_num"));
    let model = if rl { "actor" } else { "model" };
    let mut leaves: Vec<Leaf> = Vec::new();
    for leaf in scalars.all() {
        let old = leaf.path.as_str();
        let known = NAMES.iter().find(|(name, _)| *name == old).map(|(_, now)| (*now).to_owned());
        let idle = || {
            let has = |(_, names): &&(&str, &str)| names.split(' ').any(|name| name == old);
            IDLE.iter().find(has).map(|(group, _)| format!("{group}.{old}"))
        };
        let path = match old {
            "pretrain" => format!("{model}.model_name_or_path"),
            "gradient_checkpointing" => format!("{model}.gradient_checkpointing_enable"),
            "actor_num_nodes" => "actor.num_nodes".to_owned(),
            "actor_num_gpus_per_node" => "actor.num_gpus_per_node".to_owned(),
            // Of policies it is the sum of both lengths, below.
            "max_len" if !rl => "data.max_len".to_owned(),
            "bf16" => "ds.bf16".to_owned(),
            "flash_attn" => "ds.flash_attn".to_owned(),
            _ => known.or_else(idle).unwrap_or_else(|| old.to_owned()),
        };
        leaves.push(Leaf { path, ..leaf.clone() });
    }
    if let Some(leaf) = find("flash_attn") {
        leaves.push(of(leaf, "ds.attn_implementation", "flash_attention_2"));
    }
    let lengths = ["prompt_max_len", "generate_max_len"].map(find);
    if let Some(last) = lengths.iter().flatten().last().filter(|_| rl) {
        let whole = |leaf: &Option<&Leaf>| leaf.map_or(Some(LENGTH), Leaf::whole);
        let [prompt, response] = [whole(&lengths[0]), whole(&lengths[1])];
        let sum = prompt.zip(response).map(|(prompt, response)| prompt.saturating_add(response).to_string());
        leaves.push(of(last, "data.max_len", sum.as_deref().unwrap_or("")));
    }
    if find("bf16").is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli", "ds.bf16", "false"));
    }
    if rl && find("micro_train_batch_size").is_none() {
        leaves.push(Leaf::of_base("openrlhf/cli/train_ppo_ray.py", "train.micro_batch_size", "4"));
    }
    Some(Scalars::from_leaves(leaves))
}

/// A value that follows from another leaf, at its place.
fn of(leaf: &Leaf, path: &str, value: &str) -> Leaf {
    Leaf { path: path.to_owned(), value: value.to_owned(), ..leaf.clone() }
}
