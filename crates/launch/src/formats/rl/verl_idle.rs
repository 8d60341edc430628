//! Keys of verl that change none of the figures, each group with its reason, and those that would.

use super::super::leaves::Leaves;
use super::common::{idle, lack, lack_yes};
use crate::Effect;

/// Reasons, and the beginnings of the keys that they hold for. Sources: `verl/trainer/config`.
const GROUPS: &[(&str, &str)] = &[
    (
        "data, and how it is drawn",
        "data.train_files data.val_files data.truncation data.filter_ data.return_ data.prompt_key data.image_key \
         data.video_key data.shuffle data.val_batch_size data.tokenizer data.seed data.validation_shuffle \
         data.train_max_samples data.val_max_samples data.custom_cls data.sampler data.dataloader_num_workers \
         data.apply_chat_template_kwargs data.reward_fn_key data.tool_config_path data.trust_remote_code \
         data.gen_batch_size data.datagen data.use_shm data.response_key data.response_dict_keys \
         data.prompt_dict_keys data.image_patch_size data.mm_ data.need_tools_kwargs data.messages_key \
         data.agent_name",
    ),
    (
        "the formula of the advantage and of the loss",
        "algorithm. actor_rollout_ref.actor.clip_ratio actor_rollout_ref.actor.kl_loss_ \
         actor_rollout_ref.actor.loss_ actor_rollout_ref.actor.policy_loss. actor_rollout_ref.actor.entropy_coeff \
         actor_rollout_ref.actor.ppo_epochs actor_rollout_ref.actor.shuffle actor_rollout_ref.actor.grad_clip \
         actor_rollout_ref.actor.tau_ actor_rollout_ref.actor.use_rollout_log_probs \
         actor_rollout_ref.actor.router_replay actor_rollout_ref.nccl_timeout actor_rollout_ref.hybrid_engine",
    ),
    (
        "learning rates",
        "actor_rollout_ref.actor.optim.lr actor_rollout_ref.actor.optim.weight_decay \
         actor_rollout_ref.actor.optim.clip_grad actor_rollout_ref.actor.optim.total_training_steps \
         actor_rollout_ref.actor.optim.warmup actor_rollout_ref.actor.optim.min_lr \
         actor_rollout_ref.actor.optim.betas actor_rollout_ref.actor.optim.num_cycles \
         actor_rollout_ref.actor.optim.override_optimizer_config.overlap_cpu_optimizer_d2h_h2d",
    ),
    (
        "rewards, worked out on the host",
        "reward_model.reward_manager reward_model.reward_kwargs reward_model.overlong_buffer \
         reward_model.max_resp_len reward_model.launch_reward_fn_async reward_model.sandbox_fusion \
         reward_model.use_reward_loop reward_model.num_workers custom_reward_function. reward. reward_manager. \
         reward_model.enable_resource_pool reward_model.n_gpus_per_node reward_model.nnodes",
    ),
    (
        "how rollouts are sampled and checked",
        "actor_rollout_ref.rollout.temperature actor_rollout_ref.rollout.top_ \
         actor_rollout_ref.rollout.val_kwargs. actor_rollout_ref.rollout.multi_turn. \
         actor_rollout_ref.rollout.agent. actor_rollout_ref.rollout.mode actor_rollout_ref.rollout.dtype \
         actor_rollout_ref.rollout.ignore_eos actor_rollout_ref.rollout.do_sample \
         actor_rollout_ref.rollout.calculate_log_probs actor_rollout_ref.rollout.disable_log_stats \
         actor_rollout_ref.rollout.load_format actor_rollout_ref.rollout.prompt_length \
         actor_rollout_ref.rollout.response_length actor_rollout_ref.rollout.trace \
         actor_rollout_ref.rollout.layered_summon actor_rollout_ref.rollout.skip_ actor_rollout_ref.rollout.seed \
         actor_rollout_ref.rollout.over_sample_rate actor_rollout_ref.rollout.update_weights_bucket_megabytes \
         actor_rollout_ref.rollout.checkpoint_engine. actor_rollout_ref.rollout.multi_stage_wake_up \
         actor_rollout_ref.rollout.enable_prefix_caching actor_rollout_ref.rollout.prometheus \
         actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache \
         actor_rollout_ref.rollout.free_cache actor_rollout_ref.rollout.engine_kwargs.sglang.attention_backend \
         actor_rollout_ref.rollout.enable_rollout_routing_replay actor_rollout_ref.rollout.swap_space \
         actor_rollout_ref.rollout.limit_images",
    ),
    (
        "log-probabilities without gradients, which take less than training while their micro-batch is no larger",
        "actor_rollout_ref.rollout.log_prob_ actor_rollout_ref.ref.log_prob_ actor_rollout_ref.ref.ulysses \
         actor_rollout_ref.ref.megatron. actor_rollout_ref.ref.fsdp_config. \
         actor_rollout_ref.ref.use_torch_compile actor_rollout_ref.ref.strategy actor_rollout_ref.ref.entropy_ \
         actor_rollout_ref.ref.load_weight",
    ),
    (
        "the prefill of the rollout engine, inside its share",
        "actor_rollout_ref.rollout.max_num_batched_tokens actor_rollout_ref.rollout.enable_chunked_prefill \
         actor_rollout_ref.rollout.max_model_len actor_rollout_ref.rollout.cudagraph_capture_sizes",
    ),
    (
        "runs, logs, files and profiles",
        "trainer. global_profiler. ray_kwargs. ray_init. transfer_queue. hydra. async_training. \
         actor_rollout_ref.actor.profiler actor_rollout_ref.ref.profiler actor_rollout_ref.rollout.profiler \
         actor_rollout_ref.actor.checkpoint actor_rollout_ref.actor.data_loader_seed actor_rollout_ref.profiler \
         actor_rollout_ref.model.trust_remote_code actor_rollout_ref.model.use_shm \
         actor_rollout_ref.model.external_lib actor_rollout_ref.model.tokenizer_path \
         actor_rollout_ref.model.custom_chat_template actor_rollout_ref.actor.megatron.use_mbridge \
         actor_rollout_ref.actor.megatron.vanilla_mbridge actor_rollout_ref.actor.megatron.use_dist_checkpointing \
         actor_rollout_ref.actor.megatron.dist_checkpointing actor_rollout_ref.actor.megatron.seed \
         actor_rollout_ref.actor.load_weight profiler. nsys.",
    ),
    (
        "how weights are wrapped or compiled, which gathers and keeps the same here",
        "actor_rollout_ref.actor.fsdp_config.wrap_policy actor_rollout_ref.actor.fsdp_config.forward_prefetch \
         actor_rollout_ref.actor.fsdp_config.use_orig_params actor_rollout_ref.actor.fsdp_config.dtype \
         actor_rollout_ref.actor.fsdp_config.seed actor_rollout_ref.actor.use_torch_compile \
         actor_rollout_ref.actor.fsdp_config.use_torch_compile actor_rollout_ref.actor.entropy_ \
         actor_rollout_ref.actor.calculate_entropy actor_rollout_ref.actor.fsdp_config.fsdp_size \
         actor_rollout_ref.actor.fsdp_config.mixed_precision actor_rollout_ref.model.override_config.max_position \
         actor_rollout_ref.model.override_config.attn_implementation actor_rollout_ref.model.use_remove_padding \
         actor_rollout_ref.model.use_fused_kernels actor_rollout_ref.model.fused_kernel_options \
         actor_rollout_ref.model.exclude_modules actor_rollout_ref.model.override_config.moe_config.freeze",
    ),
    (
        "the other way to count a micro-batch",
        "actor_rollout_ref.actor.ppo_micro_batch_size actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    ),
];

/// Passes over what changes nothing, and stops at what would change a figure.
pub(super) fn pass(leaves: &mut Leaves<'_>) {
    lack_yes(
        leaves,
        &[
            (
                "actor_rollout_ref.model.mtp.enable",
                Effect::Model,
                "multi-token prediction that trains with the policy",
            ),
            ("actor_rollout_ref.actor.megatron.forward_only", Effect::Memory, "a policy that does not train"),
        ],
    );
    if let Some(leaf) = leaves.yes("reward_model.enable") {
        lack(leaves, leaf, Effect::Memory, "a reward model that shares the accelerators");
        leaves.pass_below(&["reward_model."]);
    }
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.optim.optimizer")
        .filter(|leaf| !leaf.value.to_ascii_lowercase().contains("adam"))
    {
        lack(leaves, leaf, Effect::Memory, "an optimizer other than Adam");
    }
    idle(leaves, GROUPS);
    if leaves.all().iter().any(|leaf| !leaf.used.get()) {
        leaves.pass_below(&["reward_model.model.", "reward_model.rollout.", "reward_model.micro_batch"]);
    }
}
