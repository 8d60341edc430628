//! What reinforcement-learning texts state about sharding, losses, critics and padding.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{
    Field, LossKind, NumberFormat, Objective, OptimizerKind, Origin, PreferenceLogits, Reference,
};
use shardscope_source::{Code, Source};

fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

/// FSDP inside groups has a copy of the shards in each; a size that is not smaller than the world is no group.
#[test]
fn verl_shards_inside_groups_of_the_size_that_is_stated() {
    let copies = |size: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=0 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=32 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.actor.fsdp_config.fsdp_size={size} trainer.n_gpus_per_node=8 trainer.nnodes=4\n"
        );
        let resolution = resolved("run.sh", &text);
        let stopped = stopped_by(&resolution).len();
        (resolution.plan.map(|plan| plan.layout().distributed_optimizer_instances), stopped)
    };
    assert_eq!(copies("8"), (Some(4), 0));
    assert_eq!(copies("-1"), (Some(1), 0));
    assert_eq!(copies("64"), (Some(1), 0));
    assert_eq!(copies("5"), (None, 1));
}

/// slime's unconditional settings do not depend on the flag for packed samples.
#[test]
fn slime_trains_in_bf16_with_sharded_states_without_packed_samples() {
    let text = "python3 train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --hf-checkpoint /root/Qwen3-4B \
        --rollout-batch-size 128 --n-samples-per-prompt 8 --global-batch-size 128 --colocate --rollout-max-response-len 4096\n";
    let resolution = resolved("run.sh", text);
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    assert_eq!(plan.recipe().params_dtype, NumberFormat::Bf16);
    assert_eq!(plan.recipe().dp_sharding.zero_stage(), 1);
}

/// A critic whose layers are kept, and samples that are not packed.
#[test]
fn verls_critic_and_padding_are_read_as_they_are_stated() {
    let with = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             critic.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=32 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.name=vllm {more} \
             trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        );
        resolved("run.sh", &text)
    };
    let critic = |more: &str| {
        let read = with(&format!("critic.model.use_remove_padding=True {more}"));
        assert!(stopped_by(&read).is_empty(), "{more}: {:?}", stopped_by(&read));
        let rollout = read.plan.as_ref().and_then(|plan| plan.recipe().rollout).expect("rollouts");
        (rollout.critic_recomputes, rollout.critic_batch)
    };
    assert_eq!(critic("critic.model.enable_gradient_checkpointing=False"), (false, None));
    assert_eq!(critic("critic.model.enable_gradient_checkpointing=True"), (true, None));
    assert_eq!(critic("critic.ppo_micro_batch_size_per_gpu=4"), (true, Some(4)));
    assert_eq!(critic("critic.ppo_micro_batch_size=32"), (true, Some(4)));
    let packed =
        "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192";
    assert_eq!(critic(packed), (true, Some(32_768)));
    assert_eq!(critic(&format!("{packed} critic.ppo_max_token_len_per_gpu=24000")), (true, Some(24_000)));
    // Packs that the two ranks of a sequence cannot share evenly: without the critic there would be no answer.
    let shared = format!(
        "critic.model.use_remove_padding=True actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 \
         critic.ulysses_sequence_parallel_size=2 {packed}"
    );
    let refused = with(&format!("{shared} critic.ppo_max_token_len_per_gpu=24001"));
    assert!(refused.plan.is_none());
    assert!(
        refused.diagnostics.iter().any(|said| said.code == Code::CriticPlan),
        "{:?}",
        refused.diagnostics
    );
    assert!(with(&format!("{shared} critic.ppo_max_token_len_per_gpu=24000")).plan.is_some());
    // The critic's samples are padded unless stated otherwise, and the policy's are not here.
    let own = with("critic.ppo_micro_batch_size_per_gpu=4").plan.expect("a plan");
    assert!(own.recipe().beside.critic_padded && !own.recipe().transformers.padding_mask);
    assert_eq!(stopped_by(&with(packed)), ["critic.model.path"]);
    assert_eq!(
        stopped_by(&with("critic.model.use_remove_padding=True critic.model.lora_rank=16")),
        ["critic.model.lora_rank"]
    );
    let cut = "critic.model.use_remove_padding=True critic.ulysses_sequence_parallel_size=2";
    assert_eq!(stopped_by(&with(cut)), ["critic.model.path"]);
    let padded = |resolution: &Resolution| {
        let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        plan.recipe().transformers.padding_mask
    };
    assert!(padded(&with("actor_rollout_ref.model.use_remove_padding=False")));
    let joined = "actor_rollout_ref.model.use_remove_padding=True critic.model.use_remove_padding=True";
    assert!(!padded(&with(joined)));
}

/// NeMo-RL: DPO swaps the reference in before each step; Megatron policies cast logits before or in their loss.
#[test]
fn nemo_rl_holds_what_its_losses_hold() {
    let plan = |text: &str| {
        let resolution = resolved("config.yaml", text);
        resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
    };
    let dpo = plan(
        "defaults: dpo.yaml\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n  dtensor_cfg:\n    tensor_parallel_size: 1\n    \
         dp_replicate_size: 2\ncluster: {gpus_per_node: 8, num_nodes: 2}\n",
    );
    assert_eq!(dpo.recipe().tuning.objective, Objective::Dpo { reference: Reference::Precomputed });
    assert_eq!(dpo.recipe().transformers.preference_logits, PreferenceLogits::Fp32);
    assert_eq!(dpo.layout().distributed_optimizer_instances, 2);
    let loss = |more: &str| {
        let text = format!(
            "defaults: grpo_math_1B_megatron.yaml\npolicy:\n  model_name: Qwen/Qwen2.5-7B\n{more}cluster: {{gpus_per_node: 8, \
             num_nodes: 1}}\n"
        );
        plan(&text).recipe().loss
    };
    assert_eq!(loss(""), LossKind::Distributed);
    let deferred = "  megatron_cfg: {defer_fp32_logits: true}\n";
    assert_eq!(loss(deferred), LossKind::DistributedCopy);
    let chunked = format!("  logprob_chunk_size: 1024\n{deferred}");
    assert_eq!(loss(&chunked), LossKind::DistributedChunks(1024));
}

/// AReaL: an engine has as many accelerators as the product of its degrees; training and generation are separate.
#[test]
fn areal_is_read_by_its_engines() {
    let text = |more: &str| {
        format!(
            "experiment_name: a\ngconfig: {{n_samples: 8, max_new_tokens: 3072}}\ntrain_dataset: {{batch_size: 128, max_length: 1024}}\n\
             cluster: {{n_nodes: 4, n_gpus_per_node: 8}}\nactor:\n  path: Qwen/Qwen2.5-7B\n  kl_ctl: 0.0\n  \
             mb_spec: {{max_tokens_per_mb: 16384}}\n{more}"
        )
    };
    let read = |more: &str| resolved("config.yaml", &text(more));
    let apart = read(
        "  backend: 'fsdp:d16c2'\nrollout: {backend: 'vllm:d4t2'}\nvllm: {gpu_memory_utilization: 0.7}\n",
    );
    let plan = apart.plan.as_ref().unwrap_or_else(|| panic!("{:?}", apart.diagnostics));
    let rollout = plan.recipe().rollout.expect("rollouts");
    assert_eq!((plan.cluster().num_nodes, plan.cluster().gpus_per_node), (4, 8));
    assert_eq!((plan.layout().context, rollout.own_gpus, rollout.tensor), (2, Some(8), 2));
    // 128 prompts x 8 rollouts in four mini-batches.
    assert_eq!((plan.recipe().sample_length, rollout.length), (Some(4096), 4096));
    assert_eq!(apart.setting(Field::GlobalBatchSize).map(|one| one.value.written()), Some("256".to_owned()));
    assert_eq!((plan.recipe().params_dtype, rollout.fraction), (NumberFormat::Bf16, 0.7));
    let joined = read("allocation_mode: sglang.d8p1t1+d8p1t1\n");
    let plan = joined.plan.as_ref().unwrap_or_else(|| panic!("{:?}", joined.diagnostics));
    assert_eq!(
        (plan.cluster().gpus(), plan.recipe().rollout.and_then(|rollout| rollout.own_gpus)),
        (8, Some(8))
    );
    assert_eq!(stopped_by(&read("  backend: 'megatron:d8'\n")), ["actor.backend"]);
    assert_eq!(stopped_by(&read("")), ["framework"]);
    assert_eq!(stopped_by(&read("  backend: 'fsdp:d8'\n  attn_impl: sdpa\n")), ["actor.attn_impl"]);
    let on_npu =
        read("  backend: 'fsdp:d8'\n  scheduling_spec: [{env_vars: {HCCL_CONNECT_TIMEOUT: 7200}}]\n");
    assert_eq!(stopped_by(&on_npu), ["actor.scheduling_spec.0.env_vars.HCCL_CONNECT_TIMEOUT"]);
    let on_host = text("  backend: 'fsdp:d1'\n").replace("n_gpus_per_node: 8", "n_gpus_per_node: 0");
    assert_eq!(stopped_by(&resolved("config.yaml", &on_host)), ["cluster.n_gpus_per_node"]);
    let tuned = text("  backend: 'fsdp:d8'\n").replace("gconfig:", "other:");
    assert_eq!(stopped_by(&resolved("config.yaml", &tuned)), ["framework"]);
}

/// One of verl's own configurations ranks below the words of a command; any other one is asked for by name.
#[test]
fn configurations_of_verl_are_known_by_name_or_asked_for() {
    let with = |configuration: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo --config-path=./config {configuration} algorithm.adv_estimator=grpo \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        );
        resolved("run.sh", &text)
    };
    let plan = |configuration: &str| {
        let resolution = with(configuration);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        let engine = plan.recipe().rollout.as_ref().map(|rollout| rollout.engine);
        (plan.recipe().software, plan.model().seq_length, engine)
    };
    use shardscope_plan::{RolloutEngine, Software};
    let (fsdp, megatron) = (Software::HfTransformers, Software::MegatronCoreTe);
    assert_eq!(plan("--config-name='ppo_trainer'"), (fsdp, 1024, Some(RolloutEngine::Vllm)));
    assert_eq!(
        plan("--config-name='ppo_megatron_trainer.yaml'"),
        (megatron, 1024, Some(RolloutEngine::Vllm))
    );
    assert_eq!(plan("--config-name gsm8k_multiturn_grpo"), (fsdp, 2048, Some(RolloutEngine::Sglang)));
    let sglang = Some(RolloutEngine::Sglang);
    assert_eq!(plan("--config-name=gsm8k_multiturn_megatron_grpo"), (megatron, 2048, sglang));
    let unknown = with("--config-name=my_run");
    assert!(unknown.plan.is_none());
    let said = unknown.diagnostics.iter().find(|said| said.code == Code::MissingFile);
    assert!(said.is_some_and(|said| said.message.contains("my_run.yaml")), "{:?}", unknown.diagnostics);
}

/// dongguanting/ARPO `recipe/dapo/config/dapo_trainer.yaml`: a recipe based on one of verl's own configurations, which
/// does not change the policy.
#[test]
fn a_recipe_on_verls_own_configuration_is_verls() {
    let with = |base: &str| {
        let text = format!(
            "hydra:\n  searchpath:\n    - file://verl/trainer/config\ndefaults:\n  - {base}\n  - _self_\ndata:\n  \
             gen_batch_size: ${{data.train_batch_size}}\nreward_model:\n  reward_manager: dapo\ntrainer:\n  project_name: verl-dapo\n"
        );
        resolved("dapo_trainer.yaml", &text)
    };
    let read = |base: &str| {
        let resolution = with(base);
        let software = resolution.setting(Field::Software).map(|setting| setting.value.written());
        let asked: Vec<String> = resolution.questions.iter().map(|asked| asked.name().to_owned()).collect();
        let world = resolution.setting(Field::WorldSize).map(|setting| setting.value.written());
        (software.unwrap_or_default(), asked.join(" "), world.unwrap_or_default())
    };
    let open_in = |software: &str| (software.to_owned(), "micro_batch_size model".to_owned(), "8".to_owned());
    assert_eq!(read("ppo_trainer"), open_in("hf_transformers"));
    assert_eq!(read("ppo_megatron_trainer"), open_in("megatron_core_te"));
    assert!(
        with("my_trainer").setting(Field::Software).is_none_or(|setting| setting.origin == Origin::Default)
    );
}

/// Models next to the policy have their own shape: a critic by its path, a reward model with its own micro-batch.
#[test]
fn models_beside_verls_policy_are_read_by_their_names() {
    let with = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm critic.model.use_remove_padding=True {more} \
             trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        );
        resolved("run.sh", &text)
    };
    let beside = |more: &str| {
        let resolution = with(more);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{more}: {:?}", resolution.not_modelled));
        plan.recipe().beside.clone()
    };
    let layers = |more: &str| beside(more).critic.map(|model| model.num_layers);
    assert_eq!(layers("critic.model.path=Qwen/Qwen2.5-7B"), None);
    assert_eq!(layers("critic.model.path=$HOME/models/Qwen2.5-7B"), None);
    assert_eq!(layers("critic.model.path=~/models/Qwen2.5-1.5B"), Some(28));
    assert_eq!(layers("critic.model.path=Qwen/Qwen2.5-3B"), Some(36));
    let unknown = with("critic.model.path=acme/Critic-7B");
    assert_eq!(stopped_by(&unknown), ["rl_critic_model"]);
    assert!(unknown.questions.iter().any(|asked| asked.name() == "rl_critic_model"));

    let same = "critic.model.path=Qwen/Qwen2.5-7B reward_model.enable=True";
    let reward = |more: &str| {
        let reward = beside(&format!("{same} {more}")).reward.expect("a reward model");
        (reward.model.num_layers, reward.residence, reward.batch, reward.padded)
    };
    let path = "reward_model.model.path=Qwen/Qwen2.5-3B";
    let joined = "reward_model.model.use_remove_padding=True";
    let host = shardscope_plan::Residence::Host;
    assert_eq!(
        reward(&format!("{path} reward_model.micro_batch_size=32 {joined}")),
        (36, host, Some(4), false)
    );
    assert_eq!(reward(&format!("{path} reward_model.micro_batch_size_per_gpu=2")), (36, host, Some(2), true));
    // The default model of verl.
    assert_eq!(reward("reward_model.micro_batch_size_per_gpu=2").0, 32);
    assert_eq!(stopped_by(&with(&format!("{same} {path}"))), ["reward_model.enable"]);
    let packed =
        "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192";
    assert_eq!(stopped_by(&with(&format!("{same} {path} {joined} {packed}"))), ["reward_model.enable"]);
    let tokens = "reward_model.forward_max_token_len_per_gpu=65536";
    assert_eq!(reward(&format!("{path} {joined} {packed} {tokens}")), (36, host, Some(65_536), false));
    let apart = beside(&format!(
        "{same} {path} reward_model.micro_batch_size=8 reward_model.enable_resource_pool=True"
    ));
    assert!(apart.reward.is_none());
    let cut = "actor_rollout_ref.actor.strategy=megatron critic.model.path=Qwen/Qwen2.5-3B";
    assert_eq!(stopped_by(&with(cut)), ["rl_critic_model"]);
}

/// OpenRLHF's critic is created from the reward model, which stays on the accelerators unless it is offloaded.
#[test]
fn models_beside_openrlhfs_policy_are_read_by_their_names() {
    let with = |more: &str| {
        let text = format!(
            "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --actor.num_nodes 1 --actor.num_gpus_per_node 8 \
             --vllm.num_engines 8 --vllm.tensor_parallel_size 1 --train.colocate_all --ds.enable_sleep \
             --vllm.enable_sleep --actor.model_name_or_path Qwen/Qwen2.5-7B --ds.zero_stage 3 \
             --actor.gradient_checkpointing_enable {more}\n"
        );
        let resolution = resolved("run.sh", &text);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{more}: {:?}", resolution.not_modelled));
        plan.recipe().beside.clone()
    };
    let reward = "--reward.model_name_or_path Qwen/Qwen2.5-3B";
    let beside = with(&format!("{reward} --rollout.micro_batch_size 4"));
    let scores = beside.reward.expect("a reward model");
    let device = shardscope_plan::Residence::Device;
    assert_eq!((scores.model.num_layers, scores.residence, scores.batch), (36, device, Some(4)));
    assert_eq!(beside.critic.map(|model| model.num_layers), Some(36));
    let offloaded = with(&format!("{reward} --reward.offload --critic.model_name_or_path Qwen/Qwen2.5-7B"));
    assert_eq!(offloaded.critic, None);
    assert_eq!(offloaded.reward.map(|reward| reward.residence), Some(shardscope_plan::Residence::Host));
    let remote = with("--reward.remote_url http://localhost:5000/get_reward");
    assert_eq!((remote.critic, remote.reward), (None, None));
}

/// EasyR1 has verl's settings with its own names and defaults, on top of the file that its examples name.
#[test]
fn easy_r1_is_read_as_the_fork_of_verl_that_it_is() {
    let with = |more: &str| {
        let text = format!("python3 -m verl.trainer.main trainer.nnodes=1 worker.rollout.seed=1 {more}\n");
        resolved("run.sh", &text)
    };
    let named = "worker.actor.model.model_path=Qwen/Qwen2.5-7B";
    let update = "worker.actor.micro_batch_size_per_device_for_update=16";
    let read = |more: &str| {
        let resolution = with(more);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{more}: {:?}", resolution.not_modelled));
        let rollout = plan.recipe().rollout.expect("rollouts");
        (plan.model().seq_length, plan.recipe().global_batch_size, rollout.fraction, rollout.reference)
    };
    use shardscope_plan::Residence::{Absent, Host};
    let none = "algorithm.disable_kl=true";
    // Packs with as many tokens as 16 samples of 1024: the 256 samples of a step make 16 of them.
    assert_eq!(read(&format!("{named} {update} {none}")), (16_384, 16, 0.6, Absent));
    let hosted = "worker.ref.fsdp.enable_cpu_offload=true worker.rollout.n=4 data.max_response_length=1536";
    assert_eq!(read(&format!("{named} {update} {hosted}")), (32_768, 64, 0.6, Host));
    let each = "worker.actor.dynamic_batching=false";
    assert_eq!(read(&format!("{named} {update} {none} {each}")), (1024, 256, 0.6, Absent));
    let sizes = format!("{update} {}", update.replace("update", "experience")).replace("16", "1");
    assert_eq!(read(&format!("config=examples/config.yaml {sizes}")), (4096, 640, 0.6, Host));
    // Unknown differences from verl stop by name.
    let stops = |more: &str| {
        let resolution = with(&format!("{named} {update} {more}"));
        resolution.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(stops(""), ["worker.ref.fsdp.enable_cpu_offload"]);
    let larger = "worker.actor.micro_batch_size_per_device_for_experience=32";
    // Twice training's packs of 16 samples, or one and a half of them in tokens.
    let twice = with(&format!("{named} {update} {none} {larger}")).plan.expect("a plan");
    assert_eq!(twice.recipe().transformers.evaluation_batch, 2);
    let more = "worker.actor.micro_batch_size_per_device_for_experience=24";
    let more = with(&format!("{named} {update} {none} {more}")).plan.expect("a plan");
    assert_eq!(more.recipe().transformers.log_prob_tokens, 24 * 1024);
    // For bf16 weights in flat shards.
    let small = "worker.actor.optim.strategy=adamw_bf16";
    assert_eq!(stops(&format!("{none} {small}")), ["optimizer"]);
    let narrow = with(&format!("{named} {update} {none} {small} worker.actor.fsdp.torch_dtype=bf16"));
    assert_eq!(narrow.plan.expect("a plan").recipe().optimizer.kind, OptimizerKind::AdamKahan);
    let beside = stops(&format!("{none} {small} algorithm.adv_estimator=gae"));
    assert!(beside.iter().any(|name| name == "worker.actor.optim.strategy"), "{beside:?}");
    assert_eq!(
        stops(&format!("{none} worker.actor.model.lora.rank=8")),
        ["actor_rollout_ref.model.lora_rank"]
    );
    let unknown = with(&format!("config=my.yaml {named} {none}"));
    assert!(
        unknown
            .diagnostics
            .iter()
            .any(|said| said.code == Code::MissingFile && said.message.contains("my.yaml"))
    );
}
