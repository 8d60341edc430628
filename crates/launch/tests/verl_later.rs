//! Keys of verl 0.8 and later, by trainer.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_source::Source;

fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let environment = Environment::default();
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

/// Names of the settings that stop the verdict.
fn stopped_by(resolution: &Resolution) -> Vec<&str> {
    resolution.not_modelled.iter().map(|item| item.name.as_str()).collect()
}

/// verl 0.8 and later: one key selects the engine of all models, a reward model has its own keys, and options that
/// change what is held stop by name, each at values other than its default.
#[test]
fn later_keys_of_verl_are_read() {
    let with = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        let resolution = resolved("run.sh", &text);
        let stopped = stopped_by(&resolution).join(" ");
        (resolution.plan.map(|plan| plan.layout().tensor), stopped)
    };
    let says = |stopped: &str| (None, stopped.to_owned());
    assert_eq!(with(""), (Some(1), String::new()));
    assert_eq!(
        with("model_engine=dp trainer.use_v1=True trainer.v1.trainer_mode=sync"),
        (Some(1), String::new())
    );
    let megatron = "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2";
    assert_eq!(
        with(&format!("model_engine=megatron {megatron}")),
        with(&format!("actor_rollout_ref.actor.strategy=megatron {megatron}"))
    );
    assert_eq!(with(&format!("model_engine=megatron {megatron}")).0, Some(2));
    assert_eq!(with("model_engine=veomni"), says("model_engine"));
    assert_eq!(
        with("reward.reward_model.enable=False reward.reward_manager.name=dapo"),
        (Some(1), String::new())
    );
    assert_eq!(
        with("reward.reward_model.enable=True reward.reward_model.model_path=a/b"),
        says("rl_reward_model")
    );
    for (off, on) in [
        ("distillation.enabled=False distillation.distillation_loss.topk=64", "distillation.enabled=True"),
        (
            "actor_rollout_ref.actor.qat.enable=False actor_rollout_ref.actor.qat.mode=w4a16",
            "actor_rollout_ref.actor.qat.enable=True",
        ),
        ("actor_rollout_ref.rollout.nnodes=0", "actor_rollout_ref.rollout.nnodes=2"),
        ("actor_rollout_ref.actor.optim.name=AdamW", "actor_rollout_ref.actor.optim.name=Muon"),
        ("trainer.v1.trainer_mode=colocate_async", "trainer.v1.trainer_mode=separate_async"),
        ("skip.rollout.enable=False skip.rollout.steps=[1]", "skip.rollout.enable=True"),
    ] {
        assert_eq!(with(off), (Some(1), String::new()), "{off}");
        assert_eq!(with(on), says(on.split('=').next().unwrap_or_default()), "{on}");
    }
}

/// Gradients that wait for the last micro-batch are held whole, as FSDP1 has them from backward and FSDP2 reduces them.
#[test]
fn verls_gradients_wait_where_it_is_told_so() {
    let waits = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 \
             {more}\n"
        );
        let plan = resolved("run.sh", &text).plan.expect("a plan");
        plan.recipe().defers_reduction().then(|| plan.recipe().deferred_dtype().name())
    };
    let key = "actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation";
    assert_eq!([waits(""), waits(&format!("{key}=False"))], [None, None]);
    assert_eq!(waits(&format!("{key}=True")), Some("bf16"));
    assert_eq!(waits(&format!("{key}=True actor_rollout_ref.actor.strategy=fsdp2")), Some("fp32"));
}

/// Without the key it is the release that decides: verl-project/verl#7095, #7458, #7719.
#[test]
fn a_text_without_verls_key_is_warned_of_releases_that_wait() {
    let warned = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 \
             {more}\n"
        );
        let resolution = resolved("run.sh", &text);
        assert!(resolution.plan.is_some(), "{:?}", resolution.diagnostics);
        resolution.diagnostics.iter().filter(|said| said.message.contains("defer_reduction=true")).count()
    };
    let key = "actor_rollout_ref.actor.fsdp_config.use_no_sync_for_gradient_accumulation";
    assert_eq!([warned(""), warned("actor_rollout_ref.actor.strategy=fsdp2")], [1, 1]);
    assert_eq!([warned(&format!("{key}=True")), warned(&format!("{key}=False"))], [0, 0]);
    // One micro-batch in a step: 32 prompts of 8 samples on 8 GPUs.
    assert_eq!(warned("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=32"), 0);
}

/// An entropy in verl's loss holds the counted tensors if compiled and taken as a whole; a coefficient of 0 adds none.
#[test]
fn an_entropy_in_verls_loss_is_read() {
    let with = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm {more} trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        );
        let resolution = resolved("run.sh", &text);
        let entropy = resolution.plan.as_ref().and_then(|plan| Some(plan.recipe().rollout.as_ref()?.entropy));
        (entropy, stopped_by(&resolution).len())
    };
    let actor = "actor_rollout_ref.actor.";
    assert_eq!(with(&format!("{actor}entropy_coeff=0")), (Some(false), 0));
    assert_eq!(with(&format!("{actor}entropy_coeff=0.0")), (Some(false), 0));
    assert_eq!(with(&format!("{actor}entropy_coeff=0.001")), (Some(true), 0));
    assert_eq!(with(&format!("{actor}calculate_entropy=True")), (Some(true), 0));
    assert_eq!(with(&format!("{actor}entropy_coeff=0.001 {actor}entropy_checkpointing=True")), (None, 1));
    let megatron = format!("{actor}strategy=megatron");
    assert_eq!(with(&format!("{actor}entropy_coeff=0.001 {megatron}")), (Some(true), 0));
    // Since #6016 of April 2026 the loss takes the metric under Megatron too, times a coefficient of 0.
    assert_eq!(with(&format!("{actor}calculate_entropy=True {megatron}")), (Some(true), 0));
    assert_eq!(
        with(&format!("{actor}calculate_entropy=True {actor}entropy_coeff=0 {megatron}")),
        (Some(true), 0)
    );
    // verl of before July 24, 2025, by a key of then: the loss wrote over the logits of the entropy, and only the
    // coefficient put it there.
    let spring = format!("{actor}checkpoint.contents=['model'] {megatron}");
    assert_eq!(with(&format!("{actor}calculate_entropy=True {spring}")), (Some(false), 0));
    assert_eq!(with(&format!("{actor}entropy_coeff=0.001 {spring}")), (None, 1));
}

/// The engine of verl's supervised trainer is a key without a dot.
#[test]
fn another_engine_of_verls_supervised_trainer_stops_by_its_name() {
    let with = |engine: &str| {
        let text = format!(
            "torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer model.path=Qwen/Qwen2.5-7B data.train_batch_size=64 \
             data.micro_batch_size_per_gpu=1 data.max_length=2048 data.use_dynamic_bsz=False {engine}\n"
        );
        let resolution = resolved("run.sh", &text);
        (resolution.plan.is_some(), stopped_by(&resolution).join(" "))
    };
    assert_eq!(with("engine.model_dtype=bf16"), (true, String::new()));
    assert_eq!(with("engine=fsdp"), (true, String::new()));
    assert_eq!(with("engine=megatron"), (false, "engine".to_owned()));
    assert_eq!(with("engine.qat.enable=True"), (false, "engine.qat.enable".to_owned()));
}

/// The configuration that verl 0.9.1 prints at start (`main_ppo.py`:
/// `pprint(OmegaConf.to_container(config, resolve=True))`), generated with its own `_generated_ppo_trainer.yaml` and
/// `_generated_ppo_megatron_trainer.yaml` and the words below, is read like the command: every key of it is known.
#[test]
fn what_verl_prints_at_start_is_read_as_its_command() {
    let words = "algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 data.max_response_length=1024 \
                 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=64 \
                 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.rollout.name=vllm \
                 actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \
                 actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4 actor_rollout_ref.actor.use_kl_loss=True";
    let printed = [
        ("", "config.txt", include_str!("data/verl/fsdp.txt")),
        ("model_engine=megatron", "config.json", include_str!("data/verl/megatron.json")),
    ];
    for (engine, name, text) in printed {
        let command = resolved("run.sh", &format!("python3 -m verl.trainer.main_ppo {engine} {words}\n"));
        let read = resolved(name, text);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{name}: {:?} {:?}", read.not_modelled, read.questions));
        let other = command.plan.unwrap_or_else(|| panic!("{engine}: {:?}", command.not_modelled));
        assert_eq!(plan.model(), other.model(), "{name}");
        assert_eq!(plan.layout(), other.layout(), "{name}");
        assert_eq!(plan.recipe().rollout, other.recipe().rollout, "{name}");
        assert_eq!(plan.recipe().dp_sharding, other.recipe().dp_sharding, "{name}");
        assert_eq!(plan.recipe().marks.sentences(), other.recipe().marks.sentences(), "{name}");
        assert_eq!(plan.recipe().marks.sentences(), Vec::<String>::new(), "{name}");
    }
}

/// The same for the supervised trainer over engines, whose configuration is stored by a run's tracker
/// (`sft_trainer.py`: `Tracking`).
#[test]
fn what_verls_supervised_trainer_tells_its_tracker_is_read_as_its_command() {
    let words = "model.path=Qwen/Qwen2.5-7B data.train_batch_size=64 data.micro_batch_size_per_gpu=2 data.max_length=2048 \
                 data.use_dynamic_bsz=False engine.model_dtype=fp32";
    let text = format!("torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer {words}\n");
    let other = resolved("run.sh", &text).plan.expect("a plan");
    let config = include_str!("data/verl/sft.json");
    let read = resolved("config.json", config);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.questions));
    assert_eq!(plan.model(), other.model());
    assert_eq!(plan.layout(), other.layout());
    assert_eq!(plan.recipe().recompute, other.recipe().recompute);
    assert_eq!(plan.recipe().dp_sharding, other.recipe().dp_sharding);
    assert_eq!(plan.recipe().marks.sentences(), Vec::<String>::new());
    let other = config.replace("\"strategy\": \"fsdp\"", "\"strategy\": \"veomni\"");
    let read = resolved("config.json", &other);
    assert!(stopped_by(&read).contains(&"engine.strategy"), "{:?}", stopped_by(&read));
}

/// `verl/trainer/config/ppo_trainer.yaml` and `ppo_megatron_trainer.yaml`, which include the files of actor, critic and rollout:
/// those of verl's own are its defaults, and Megatron's actor is named by its file alone. The same as the command that states it.
#[test]
fn verls_own_configurations_are_composed_of_its_defaults() {
    let file = |engine: &str, critic: &str| {
        let text = format!(
            "defaults:\n  - actor@actor_rollout_ref.actor: {engine}_actor\n  - data@data: legacy_data\n  - reward_manager@reward_manager\n  \
             - ref@actor_rollout_ref.ref: {engine}_ref\n  - rollout@actor_rollout_ref.rollout: rollout\n  \
             - model@actor_rollout_ref.model: hf_model\n  - critic@critic: {critic}\n  - _self_\nactor_rollout_ref:\n  \
             model:\n    path: Qwen/Qwen2.5-7B\n  actor:\n    ppo_micro_batch_size_per_gpu: 1\n    ppo_mini_batch_size: 32\n  \
             rollout:\n    name: vllm\nalgorithm:\n  adv_estimator: gae\ntrainer:\n  nnodes: 1\n  n_gpus_per_node: 8\n"
        );
        resolved("ppo_trainer.yaml", &text)
    };
    let command = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=gae actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        );
        resolved("run.sh", &text)
    };
    let plan = |resolution: Resolution| {
        let settings = resolution.settings.iter();
        let settings: Vec<_> = settings.map(|set| (set.field, format!("{:?}", set.value))).collect();
        (resolution.plan.is_some(), settings)
    };
    let (fsdp, megatron) = (plan(file("dp", "dp_critic")), plan(file("megatron", "megatron_critic")));
    assert_eq!(fsdp, plan(command("")));
    assert_eq!(megatron, plan(command("actor_rollout_ref.actor.strategy=megatron")));
    assert_ne!(fsdp, megatron);
    // A file of somebody's own may say anything.
    assert_eq!(stopped_by(&file("dp", "my_critic")), ["defaults.6.critic@critic"]);
}
