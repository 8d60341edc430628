//! Reinforcement learning: the parts that generate, the parts that train, and what its readers cannot tell.

use super::{MODEL, said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::Asked;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, NumberFormat};
use shardscope_source::{Code, Source};

fn read_all(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[test]
fn rollouts_are_counted_over_all_accelerators_of_the_cluster() {
    let text = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=$HOME/models/Qwen/Qwen3-8B \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size=16 \
        actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=2 algorithm.use_kl_in_reward=False";
    let resolution = script(text);
    // One driver is started; Ray places workers on all of them. 16 sequences over 16 ranks are one each in verl since
    // January 27, 2025, which a key indicates.
    let [world, micro, global] = [Field::WorldSize, Field::MicroBatchSize, Field::GlobalBatchSize]
        .map(|field| value(&resolution, field));
    assert_eq!([world.as_str(), &micro, &global], ["16", "1", "256"]);
    assert_eq!(value(&resolution, Field::NumLayers), "36");
}

#[test]
fn adapters_that_verl_loads_are_no_full_training() {
    let tuned = |more: &str| {
        script(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct \
             data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=256 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 actor_rollout_ref.rollout.name=vllm \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        ))
    };
    assert!(tuned("").plan.is_some());
    let key = "actor_rollout_ref.model.lora_adapter_path";
    assert!(tuned(&format!("{key}=null")).plan.is_some());
    stopped(&tuned(&format!("{key}=/saved/adapter")), &[key]);
    // The stated rank may differ from the adapter's own.
    stopped(&tuned(&format!("{key}=/saved/adapter actor_rollout_ref.model.lora_rank=32")), &[key]);
    let plain = "torchrun --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
        data.micro_batch_size_per_gpu=4 model.partial_pretrain=Qwen/Qwen2.5-7B";
    assert!(script(plain).plan.is_some());
    stopped(
        &script(&format!("{plain} model.lora_adapter_path=/saved/adapter")),
        &["model.lora_adapter_path"],
    );
}

#[test]
fn files_of_fsdp_and_trainers_of_verl_are_recognised_by_name() {
    let swift = "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft --model Qwen/Qwen3-8B --tuner_type full --max_length 2048 \
        --gradient_accumulation_steps 1 --per_device_train_batch_size 1 --fsdp";
    let file = script(&format!("{swift} ./examples/fsdp2.json"));
    assert!(file.plan.is_none() && file.questions.iter().any(|question| question.name() == "zero_stage"));
    stopped(&script(&format!("{swift} ./activation_cpu_offload/fsdp2.json")), &["fsdp"]);
    assert_eq!(value(&script(&format!("{swift} fsdp2")), Field::DataParallelEngine), "fsdp2");
    let tuned = script(
        "torchrun --standalone --nnodes=1 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer data.train_files=a.parquet \
         data.prompt_key=extra_info data.micro_batch_size_per_gpu=4 model.partial_pretrain=Qwen/Qwen2.5-7B trainer.project_name=p",
    );
    let shown = [Field::Software, Field::MicroBatchSize, Field::GlobalBatchSize, Field::SeqLength]
        .map(|field| value(&tuned, field));
    assert_eq!(shown, ["hf_transformers", "4", "256", "1024"]);
    // `MixedPrecision(reduce_dtype=torch.float32)` of verl/trainer/fsdp_sft_trainer.py, as in its fsdp_workers.py.
    let plan = tuned.plan.expect("a plan");
    assert_eq!(
        [plan.recipe().module_dtype(), plan.recipe().reduce_dtype()],
        [NumberFormat::Bf16, NumberFormat::Fp32]
    );
}

#[test]
fn adapters_of_reinforcement_learning_under_megatron_are_megatron_bridges() {
    let miles = |more: &str| {
        format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate {MODEL} \
             --hf-checkpoint /root/Qwen3-8B --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 \
             --use-dynamic-batch-size --max-tokens-per-gpu 9216 --rollout-max-response-len 8192 --rollout-num-gpus-per-engine 1 \
             --sglang-mem-fraction-static 0.4 --attention-backend flash --lora-rank 32 --lora-alpha 32 --lora-dropout 0.0 \
             --target-modules all-linear --advantage-estimator grpo --entropy-coef 0.00 {more}"
        )
    };
    let read = script(&miles(""));
    let shown = [Field::AdapterLibrary, Field::TrainType, Field::OffloadBetweenPhases]
        .map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "lora", "weights optimizer"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::NotRead), "");
    let canonical = script(&miles("--lora-type canonical_lora"));
    assert_eq!(value(&canonical, Field::AdapterLibrary), "megatron-bridge-canonical");
    stopped(&script(&miles("--exclude-modules o_proj")), &["exclude-modules"]);
    // PPO's estimator adds a critic, and is not a sampling option.
    stopped(&script(&miles("").replace("grpo", "ppo")), &["--advantage-estimator"]);
    let verl = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2-7B \
             actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 \
             trainer.nnodes=1 data.max_prompt_length=512 data.max_response_length=512 \
             actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.model.lora.rank=64 \
             actor_rollout_ref.model.lora.alpha=128 actor_rollout_ref.model.lora.lora_A_init_method=kaiming {more}"
        )
    };
    let read = script(&verl(""));
    let shown = [Field::AdapterLibrary, Field::LoraRank, Field::LoraAlpha].map(|field| value(&read, field));
    assert_eq!(shown, ["megatron-bridge", "64", "128"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    stopped(
        &script(&verl("actor_rollout_ref.model.lora.type=vlm_lora")),
        &["actor_rollout_ref.model.lora.type"],
    );
}

/// Tokens per micro-batch, micro-batches per rank and the longest sample of a plan.
fn packs(text: &str) -> (u64, u64, Option<u64>) {
    let read = script(text);
    let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.diagnostics, read.questions));
    let recipe = plan.recipe();
    assert_eq!(recipe.micro_batch_size, 1);
    assert_eq!(recipe.global_batch_size, recipe.num_micro_batches * plan.layout().data);
    (plan.model().seq_length, recipe.num_micro_batches, recipe.sample_length)
}

#[test]
fn micro_batches_of_tokens_hold_many_samples() {
    // 256 prompts of 5 rollouts over 8 ranks are 160 samples; 160 x 1536 tokens in packs of 24,000 are 10.24.
    let verl = |more: &str| {
        format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
             actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.use_dynamic_bsz=True \
             actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1 data.max_prompt_length=512 \
             data.max_response_length=1024 {more}"
        )
    };
    let tokens = "actor_rollout_ref.actor.ppo_max_token_len_per_gpu";
    assert_eq!(packs(&verl(&format!("{tokens}=24000"))), (24000, 11, Some(1536)));
    // The stated batch is not changed: it counts samples.
    assert_eq!(value(&script(&verl(&format!("{tokens}=24000"))), Field::GlobalBatchSize), "1280");
    // The user sets the length of a pack; setting the micro-batch as well makes it a batch of sequences.
    let text = verl(&format!("{tokens}=24000"));
    let set = |overrides: &[(&str, &str)]| {
        let plan = said("run.sh", &text, overrides).plan.unwrap_or_else(|| panic!("no plan"));
        (plan.model().seq_length, plan.recipe().num_micro_batches, plan.recipe().sample_length)
    };
    assert_eq!(set(&[("seq_length", "48000")]), (48000, 6, Some(1536)));
    assert_eq!(set(&[("seq_length", "1536"), ("micro_batch_size", "2")]), (1536, 80, None));
    // All samples of a rank fit into one pack without filling it.
    assert_eq!(packs(&verl(&format!("{tokens}=400000"))), (160 * 1536, 1, Some(1536)));
    // Ulysses ranks share a pack: 320 samples per replica in packs of 48,000.
    let shared = format!("{tokens}=24000 actor_rollout_ref.actor.ulysses_sequence_parallel_size=2");
    assert_eq!(packs(&verl(&shared)), (48000, 11, Some(1536)));
}

#[test]
fn slime_packs_under_its_switch_and_trains_on_the_longest_sample_otherwise() {
    let slime = |more: &str| {
        format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate {MODEL} \
             --hf-checkpoint /root/Qwen3-8B --num-rollout 100 --rollout-batch-size 32 --n-samples-per-prompt 8 \
             --rollout-num-gpus-per-engine 1 --attention-backend flash --global-batch-size 256 {more}"
        )
    };
    let limits = "--max-tokens-per-gpu 9216 --rollout-max-response-len 3072";
    // 32 samples per rank: 32 x 3072 / 9216 = 10.67.
    assert_eq!(packs(&slime(&format!("{limits} --use-dynamic-batch-size"))), (9216, 11, Some(3072)));
    // One sample is longer than a pack, and forms one by itself.
    let long = "--max-tokens-per-gpu 4096 --rollout-max-response-len 8192 --use-dynamic-batch-size";
    assert_eq!(packs(&slime(long)), (8192, 32, Some(8192)));
    // The context limits the sum of prompt and response.
    let context = format!("{limits} --rollout-max-prompt-len 1024 --rollout-max-context-len 4000");
    assert_eq!(value(&script(&slime(&context)), Field::RolloutLength), "4000");
    // Without the switch a micro-batch is a number of samples, and neither the token limit nor --seq-length is read.
    let fixed = script(&slime(limits));
    let shown =
        [Field::SeqLength, Field::MicroBatchSize, Field::NumMicroBatches].map(|field| value(&fixed, field));
    assert_eq!(shown, ["3072", "1", "32"]);
    assert_eq!(fixed.plan.unwrap_or_else(|| panic!("no plan")).recipe().sample_length, None);
    // The length of the samples is asked for.
    let open = script(&slime("--max-tokens-per-gpu 9216 --use-dynamic-batch-size"));
    assert!(open.plan.is_none());
    assert!(open.questions.iter().any(|question| question.asks == Asked::Setting(Field::RolloutLength)));
}

/// kilian-group/phantom-reasoning's `config_pw_1gpu_smoke.yaml`, shortened: without `beta` and `max_prompt_length`,
/// which current TRL's GRPO does not need, it was answered as supervised fine-tuning.
#[test]
fn files_of_grpo_are_recognised_by_what_makes_their_rollouts() {
    let text = "model_name_or_path: Qwen/Qwen3-0.6B\nfrom_local: true\nbf16: true\ndtype: bfloat16\nattn_implementation: flash_attention_2\n\
        gradient_checkpointing: true\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 1\nuse_vllm: true\nvllm_mode: colocate\n\
        vllm_gpu_memory_utilization: 0.30\nvllm_max_model_length: 10496\nnum_generations: 4\nmax_completion_length: 1024\n";
    let read = said("grpo.yaml", text, &[("world_size", "1")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let of = [Field::TrainingObjective, Field::RolloutEngine, Field::RolloutsPerPrompt]
        .map(|field| value(&read, field));
    assert_eq!(of, ["policy", "vllm", "4"]);
    // A file with completions that does not give their number may be GRPO or compare them.
    let open = said("a.yaml", &text.replace("num_generations: 4\n", ""), &[("world_size", "1")]);
    assert!(open.plan.is_none());
}

/// dhcode-cpp/X-R1 `recipes/X_R1_zero_0dot5B_config.yaml`, shortened. `trl/trainer/grpo_config.py` of 0.15:
/// `vllm_device` is "auto", the accelerator after those that train, `vllm_gpu_memory_utilization` 0.9 and `beta` 0.04.
#[test]
fn early_grpo_of_trl_generates_beside_the_training_and_holds_a_reference() {
    let read = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-0.5B\ntorch_dtype: bfloat16\nbf16: true\nuse_vllm: true\nnum_generations: 12\n\
             max_prompt_length: 256\nmax_completion_length: 1024\nper_device_train_batch_size: 4\n\
             gradient_accumulation_steps: 8\n{more}"
        );
        said("grpo.yaml", &text, &[("zero_stage", "0"), ("world_size", "3")])
    };
    let shown = |resolution: &Resolution| {
        [Field::RolloutGpus, Field::RlReference, Field::RolloutMemoryFraction]
            .map(|field| value(resolution, field))
    };
    assert_eq!(shown(&read("beta: 0.0\n")), ["0", "none", "0.3"]);
    let early = read("vllm_device: auto\n");
    assert_eq!(shown(&early), ["1", "device", "0.9"]);
    assert!(early.plan.is_some(), "{:?}", early.diagnostics);
    assert_eq!(shown(&read("vllm_device: cuda:3\nbeta: 0\n")), ["1", "none", "0.9"]);
    assert_eq!(shown(&read("vllm_device: auto\nvllm_gpu_memory_utilization: 0.7\n")), ["1", "device", "0.7"]);
    // A text that names the vLLM mode is for the current TRL.
    assert_eq!(shown(&read("vllm_device: auto\nvllm_mode: colocate\nbeta: 0.0\n")), ["", "none", "0.3"]);
    // R1-V's program based on TRL 0.14 takes the pixels of an image.
    assert_eq!(shown(&read("max_pixels: 401408\n")), ["1", "device", "0.9"]);
}

/// A policy of 7B under verl on eight accelerators.
const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// `verl.trainer.main_generation` (`recipe/r1/run_r1_distill_qwen.sh`), `trainer.val_only`, and Absolute Zero's
/// `azr.generate_seed_dataset_only` (`absolute_zero_reasoner/trainer/ppo/azr_ray_trainer.py:fit` returns before it
/// trains).
#[test]
fn verl_that_generates_or_evaluates_alone_trains_nothing() {
    let generation = script(
        "python3 -m verl.trainer.main_generation trainer.nnodes=1 trainer.n_gpus_per_node=8 data.path=a data.n_samples=8 \
         model.path=Qwen/Qwen2.5-7B rollout.temperature=0.6 rollout.prompt_length=1024 rollout.tensor_model_parallel_size=1",
    );
    stopped(&generation, &["program"]);
    let own = format!("{VERL} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4");
    assert!(script(&own).plan.is_some());
    for only in ["trainer.val_only", "+azr.generate_seed_dataset_only"] {
        stopped(&script(&format!("{own} {only}=True")), &[only.trim_start_matches('+')]);
        assert!(script(&format!("{own} {only}=False")).plan.is_some());
    }
    let megatron = format!("{own} actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2");
    stopped(&script(&format!("{megatron} trainer.val_only=True")), &["trainer.val_only"]);
    // Another option with that suffix trains.
    assert!(script(&format!("{own} trainer.val_rank_zero_only=False")).plan.is_some());
}

/// `verl/trainer/config`, `examples/sglang_multiturn/config`; RAGEN's `train_all.sh` names `_2_sokoban`.
#[test]
fn a_file_that_verls_words_build_on_is_known_or_asked_for() {
    let own = format!("{VERL} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4");
    for known in ["ppo_trainer", "'ppo_trainer.yaml'"] {
        assert!(script(&format!("{own} --config-name={known}")).plan.is_some(), "{known}");
        assert!(script(&format!("{own} --config-path=./config --config-name {known}")).plan.is_some());
    }
    let unknown = script(&format!("{own} --config-name _2_sokoban"));
    let asked = unknown.diagnostics.iter().find(|said| said.code == Code::MissingFile);
    assert!(asked.is_some_and(|said| said.message.contains("_2_sokoban")), "{:?}", unknown.diagnostics);
    assert!(unknown.plan.is_none());
    // The file is given together with the words.
    let file = "actor_rollout_ref:\n  model:\n    enable_gradient_checkpointing: false\n";
    let both = read_all(&[("run.sh", &format!("{own} --config-name mine")), ("mine.yaml", file)]);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    assert_eq!(value(&both, Field::GradientCheckpointing), "false");
    let turns = script(&format!(
        "{} --config-name='geo3k_multiturn_grpo'",
        own.replace("data.max_prompt_length=512 data.max_response_length=1024", "")
            .replace("actor_rollout_ref.rollout.name=vllm", "")
    ));
    let shown =
        [Field::RolloutEngine, Field::SeqLength, Field::RolloutPrompts].map(|field| value(&turns, field));
    assert_eq!(shown, ["sglang", "4096", "256"]);
    // The name of Megatron's file.
    let megatron = script(&format!("{own} --config-name='ppo_megatron_trainer'"));
    assert_eq!(value(&megatron, Field::Software), "megatron_core_te");
}

/// `examples/split_placement/main_ppo_split.py` halves the accelerators, which its file says by its name alone.
#[test]
fn a_critic_beside_the_policy_is_not_answered_as_one_in_its_place() {
    let file = "data:\n  max_prompt_length: 512\n  max_response_length: 1024\n  train_batch_size: 1024\nactor_rollout_ref:\n  \
        model: {path: Qwen/Qwen2.5-7B}\n  actor: {strategy: fsdp, ppo_mini_batch_size: 256, ppo_micro_batch_size: 64}\n  \
        rollout: {name: vllm, n: 1}\ncritic:\n  model: {path: Qwen/Qwen2.5-7B}\n  ppo_micro_batch_size: 64\n\
        algorithm: {adv_estimator: gae}\ntrainer: {nnodes: 1, n_gpus_per_node: 8}\n";
    assert!(said("ppo_trainer.yaml", file, &[]).not_modelled.is_empty());
    stopped(&said("config/ppo_trainer_split.yaml", file, &[]), &["main_ppo_split.py"]);
}

/// `verl/trainer/config/ppo_trainer.yaml` and `ppo_megatron_trainer.yaml` of January 2025, and
/// `verl/trainer/main_ppo.py`, which always had a role for the reference: Unakar/Logic-RL
/// `examples/ppo_trainer/run_gemma.sh`, shortened.
#[test]
fn keys_of_early_verl_bring_its_defaults() {
    let fields = [
        Field::GradientCheckpointing,
        Field::PaddingMask,
        Field::PolicyEntropy,
        Field::RlReference,
        Field::RolloutCudaGraphs,
        Field::RolloutSequences,
    ];
    let shown = |more: &str| {
        let resolution = script(&format!("{VERL} actor_rollout_ref.model.use_remove_padding=True {more}"));
        assert!(resolution.plan.is_some(), "{:?}", resolution.diagnostics);
        fields.map(|field| value(&resolution, field))
    };
    let today = shown("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4");
    assert_eq!(today, ["true", "false", "", "none", "true", "256"]);
    let early = ["false", "false", "true", "device", "false", "1024"];
    let over_all = "actor_rollout_ref.actor.ppo_micro_batch_size=32";
    assert_eq!(shown(over_all), early);
    let offload = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.actor.fsdp_config.grad_offload=False";
    // Checkpointing is on since January 28, a day after the first key of these weeks.
    assert_eq!(shown(offload), ["true", "false", "true", "device", "false", "1024"]);
    // Stated values are used; the entropy's graph also exists if its weight is 0.
    let said = "actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.actor.entropy_coeff=0 \
        actor_rollout_ref.ref.fsdp_config.param_offload=True";
    assert_eq!(shown(&format!("{over_all} {said}")), ["true", "false", "true", "host", "false", "1024"]);
    // Padded samples, of which the loss only has the responses' logits; and Megatron's layout.
    let key = "actor_rollout_ref.actor.ppo_micro_batch_size";
    let padded = script(&format!("{VERL} {over_all}"));
    assert!(padded.not_modelled.is_empty(), "{:?}", padded.not_modelled);
    let fields = [Field::PaddingMask, Field::PolicyEntropy, Field::RolloutResponse];
    assert_eq!(fields.map(|field| value(&padded, field)), ["true", "true", "1024"]);
    let megatron = script(&format!("{VERL} {over_all} --config-name=ppo_megatron_trainer"));
    stopped(&megatron, &[key]);
    let layout = [Field::TensorModelParallelSize, Field::MicroBatchSize].map(|field| value(&megatron, field));
    // Two data-parallel ranks share 32 sequences.
    assert_eq!(layout, ["4", "16"]);
}

/// verl-tool's agents make the samples, and verl's own workers train on them (`verl_tool/trainer/main_ppo.py`).
#[test]
fn agents_of_verl_tool_train_as_verl_does() {
    let agents = "actor_rollout_ref.agent.enable_agent=True actor_rollout_ref.agent.tool_server_url=http://localhost:30001 \
        actor_rollout_ref.agent.max_prompt_length=1024 actor_rollout_ref.agent.max_start_length=1024 \
        actor_rollout_ref.agent.max_response_length=2048 actor_rollout_ref.agent.max_obs_length=512 \
        actor_rollout_ref.agent.max_action_length=512 actor_rollout_ref.agent.max_turns=3";
    let of = |program: &str, more: &str| {
        script(&format!(
            "python3 -m {program} algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B \
             data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=2048 \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
             actor_rollout_ref.rollout.n=8 actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        ))
    };
    let plain = of("verl.trainer.main_ppo", "").plan;
    assert!(plain.is_some());
    assert_eq!(of("verl_tool.trainer.main_ppo", agents).plan, plain);
    // Samples shorter than the data's, and an agent that is not its.
    let shorter = agents.replace("max_response_length=2048", "max_response_length=1024");
    stopped(&of("verl_tool.trainer.main_ppo", &shorter), &["actor_rollout_ref.agent.max_response_length"]);
    let other = agents.replace("tool_server_url=http://localhost:30001", "name=other");
    assert!(!of("verl_tool.trainer.main_ppo", &other).not_modelled.is_empty());
    stopped(&of("mirorl.recipe.mcp.main_ppo", agents), &["program"]);
    // A retrieval server of the same script has its index on the same accelerators.
    let served =
        "python ./verl_tool/servers/tools/utils/retrieval_server.py --index_path a --topk 3 --faiss_gpu &\n";
    let train = format!(
        "{served}python3 -m verl_tool.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-3B \
         data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
         actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 trainer.n_gpus_per_node=8 trainer.nnodes=1 {agents}"
    );
    stopped(&script(&train), &["--faiss_gpu"]);
}
