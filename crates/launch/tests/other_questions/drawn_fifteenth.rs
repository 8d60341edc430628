//! Misreadings found in the fifteenth draw of public files (pre-training and reinforcement learning), and stops that
//! their sources do not ask for.

use super::{said, script, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;
use shardscope_source::Code;

/// What is not modelled, in the words of the program; there is no plan then.
fn stops(read: &Resolution) -> Vec<&str> {
    assert!(read.plan.is_none());
    read.not_modelled.iter().map(|item| item.message.as_str()).collect()
}

/// ritzz-ai/GUI-R1 `examples/config.yaml`, abridged: EasyR1 of April 2025. Its actor splits mini-batches by samples
/// (`verl/workers/actor/dp_actor.py:update_policy`), and pads them unless told otherwise; it was read as today's, which
/// fills packs with tokens.
#[test]
fn easy_r1_of_spring_2025_counts_samples() {
    let of = |own: &str| {
        let text = format!(
            "data:\n  max_prompt_length: 2048\n  max_response_length: 2048\n  rollout_batch_size: 512\nalgorithm:\n  disable_kl: true\n\
             worker:\n  actor:\n    global_batch_size: 128\n    micro_batch_size_per_device_for_update: 4\n    \
             micro_batch_size_per_device_for_experience: 4\n    {own}\n    model:\n      model_path: Qwen/Qwen2.5-7B-Instruct\n  \
             rollout:\n    n: 5\ntrainer:\n  n_gpus_per_node: 8\n  nnodes: 1\n"
        );
        let read = said("config.yaml", &text, &[]);
        let plan =
            read.plan.unwrap_or_else(|| panic!("{own}: {:?} {:?}", read.not_modelled, read.diagnostics));
        (plan.model().seq_length, plan.recipe().micro_batch_size, plan.layout().context)
    };
    assert_eq!(of("padding_free: true"), (16_384, 1, 1));
    assert_eq!(of("padding_free: true\n    ulysses_sequence_parallel_size: 1"), (4096, 4, 1));
    assert_eq!(of("padding_free: true\n    ulysses_sequence_parallel_size: 2"), (4096, 4, 2));
}

/// ritzz-ai/GUI-R1 `examples/qwen2_5_vl_7b_gui_grpo.sh` and yihedeng9/OpenVLThinker `openvlthinker_grpo_hard.sh`: each
/// repository has a file of that name of its own, with micro-batches of 4 and 2 samples, where EasyR1's has 1 today.
#[test]
fn the_file_of_an_easy_r1_script_is_its_own() {
    let of = |words: &str| {
        script(&format!(
            "python3 -m verl.trainer.main config=examples/config.yaml worker.actor.model.model_path=Qwen/Qwen2.5-7B \
             trainer.n_gpus_per_node=8 {words}\n"
        ))
    };
    for words in ["", "worker.reward.compute_score=r1gui data.max_response_length=1024"] {
        let open = of(words);
        assert!(open.plan.is_none(), "{words}");
        let lacks = "this training takes its settings from config.yaml, which is not here";
        assert!(open.diagnostics.iter().any(|said| said.message == lacks), "{words}: {:?}", open.diagnostics);
    }
    let sizes = "worker.actor.micro_batch_size_per_device_for_update=4 worker.actor.micro_batch_size_per_device_for_experience=4";
    assert_eq!(value(&of(sizes), Field::RolloutsPerPrompt), "5");
}

/// inclusionAI/AWorld `train_gaia_with_aworld_verl/grpo_trainer.yaml`: prompts and responses are cut and padded to the
/// engine's own lengths where agent loops make them. The data's were taken, 262,144 tokens in place of 131,172.
#[test]
fn agent_loops_end_samples_at_the_engines_lengths() {
    let of = |words: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=8 data.max_prompt_length=131072 \
             data.max_response_length=131072 actor_rollout_ref.model.path=Qwen/Qwen3-8B \
             actor_rollout_ref.model.use_remove_padding=True actor_rollout_ref.actor.ppo_mini_batch_size=8 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.ulysses_sequence_parallel_size=8 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {words}\n"
        );
        let read = script(&text);
        assert!(read.plan.is_some(), "{words}: {:?} {:?}", read.not_modelled, read.diagnostics);
        [value(&read, Field::RolloutLength), value(&read, Field::SeqLength)]
    };
    let own = "actor_rollout_ref.rollout.prompt_length=122980 actor_rollout_ref.rollout.response_length=8192";
    assert_eq!(of(""), ["262144", "262144"]);
    // Of 16 equal parts.
    assert_eq!(of(&format!("{own} actor_rollout_ref.rollout.mode=async")), ["131172", "131184"]);
    assert_eq!(of(&format!("{own} actor_rollout_ref.rollout.mode=sync")), ["139264", "139264"]);
}

/// open-thought/reasoning-gym `knights_knaves_noncurriculum.yaml`: 160 samples at once of the 64 that a rank has, read as
/// 160; and what draws its tasks stopped the verdict.
#[test]
fn no_micro_batch_has_more_samples_than_a_rank() {
    let text = "curriculum:\n  enabled: false\n  last_k: 2560\nreasoning_gym:\n  dataset_size: 20000\nverbose: true\ndata:\n  \
        train_batch_size: 32\n  max_prompt_length: 4096\n  max_response_length: 2048\nactor_rollout_ref:\n  model:\n    \
        path: Qwen/Qwen2.5-3B-Instruct\n    use_remove_padding: true\n  actor:\n    ppo_mini_batch_size: 8\n    \
        ppo_micro_batch_size_per_gpu: 2\n  rollout:\n    name: vllm\n    n: 8\n    use_fire_sampling: false\n    \
        log_prob_micro_batch_size_per_gpu: 160\nalgorithm:\n  adv_estimator: grpo\ntrainer:\n  n_gpus_per_node: 4\n  nnodes: 1\n";
    let read = said("knights.yaml", text, &[]);
    assert!(read.plan.is_some(), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::EvaluationBatchSize), "64");
}

/// verl's recipes: partial rollouts train as the configuration says and were taken for a generation program; SPIN's and
/// SPPO's programs have no critic, and their own losses, and were read as PPO.
#[test]
fn recipes_of_verl_are_told_apart_by_their_programs() {
    let of = |program: &str| {
        script(&format!(
            "python3 -m {program} data.train_batch_size=128 data.max_prompt_length=512 data.max_response_length=1024 \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B-Instruct actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
             algorithm.adv_estimator=grpo actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        ))
    };
    let partial = of("recipe.partial_rollout.main_ppo");
    assert!(partial.plan.is_some(), "{:?}", partial.not_modelled);
    for own in ["recipe.spin.main_spin", "recipe.sppo.main_sppo"] {
        let what = "a custom trainer built on verl, with its own samples, losses and models";
        assert_eq!(stops(&of(own)), [what], "{own}");
    }
}

/// Kwai-Klear/KlearReasoner and wizard-III/ArcherCodeR take the entropy of all logits (`verl/workers/actor/dp_actor.py`);
/// hkust-nlp/Laser rewards lengths (`verl/trainer/main_ppo.py`). Zeros of dropout state what models have.
#[test]
fn losses_of_programs_made_of_verl_stop_by_what_they_hold() {
    let of = |words: &str| {
        script(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {words}\n"
        ))
    };
    let klear = "actor_rollout_ref.actor.positive_loss_coeff=0.1 actor_rollout_ref.actor.only_high=True";
    let what = "the entropy of the logits, whatever its coefficient, in a loss of its own (KlearReasoner)";
    assert_eq!(stops(&of(klear)), [what]);
    let archer = "+actor_rollout_ref.actor.use_token_entropy_separate=True +actor_rollout_ref.actor.low_entropy_clip_ratio_low=0.2";
    assert_eq!(stops(&of(archer)), ["the entropy of the logits in the loss (ArcherCodeR)"]);
    let dropout = "+actor_rollout_ref.model.override_config.attention_dropout=0.";
    let laser = "length_penalty.enable=True length_penalty.method=larse-d trainer.monitor_freq=20";
    for words in [laser, dropout] {
        let read = of(words);
        assert!(read.plan.is_some_and(|plan| plan.recipe().marks.sentences().is_empty()), "{words}");
    }
    assert_eq!(stops(&of("+actor_rollout_ref.model.override_config.attention_dropout=0.1")), ["dropout"]);
}

/// inclusionAI/AWorld `gsm8k_grpo.yaml`: until the autumn of 2025 AReaL's `backend` was an engine's name, and only
/// `allocation_mode` said where it runs.
#[test]
fn the_allocation_of_areal_counts_where_the_backend_is_a_name() {
    let of = |backend: &str| {
        let text = format!(
            "cluster:\n  n_nodes: 1\n  n_gpus_per_node: 8\nallocation_mode: sglang.d4p1t1+d4p1t1\nrollout:\n  \
             max_concurrent_rollouts: 256\n  max_head_offpolicyness: 2\ngconfig:\n  n_samples: 4\n  max_new_tokens: 1024\nactor:\n  \
             path: Qwen/Qwen2.5-1.5B-Instruct\n  gradient_checkpointing: false\n  dtype: bfloat16\n  mb_spec:\n    \
             max_tokens_per_mb: 20480\n  optimizer:\n    type: adam\n  backend: {backend}\n  ppo_n_minibatches: 1\n  kl_ctl: 0.0\n\
             train_dataset:\n  batch_size: 256\n  max_length: 1024\n"
        );
        said("gsm8k_grpo.yaml", &text, &[])
    };
    let read = of("fsdp");
    assert_eq!(read.plan.as_ref().expect("a plan").recipe().global_batch_size, 104);
    assert_eq!(value(&read, Field::WorldSize), "4");
    assert_eq!(stops(&of("megatron")), ["this AReaL training engine"]);
}

/// NVIDIA/Megatron-LM `examples/mamba/run_text_gen_server_8b.sh`: its pattern of layers took away that it is a server, which
/// was priced as training. Megatron-Bridge's `pack_sft_data.py`, in a job of its `examples/models/gpt_oss`, trains nothing.
#[test]
fn a_pattern_of_layers_makes_no_training_of_a_server() {
    let of = |program: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 {program} --hybrid-layer-pattern M-M*M-M- --hidden-size 4096 --num-attention-heads 32 \
             --seq-length 4096 --max-position-embeddings 4096 --position-embedding-type none --micro-batch-size 1 --bf16 \
             --vocab-size 256000 --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec\n"
        ))
    };
    assert!(of("pretrain_mamba.py").plan.is_some(), "{:?}", of("pretrain_mamba.py").not_modelled);
    let server = of("../../tools/run_mamba_text_generation_server.py");
    assert_eq!(stops(&server), ["a text generation program, not a training run"]);
    assert_eq!(stops(&of("distill_mamba.py")), ["a teacher model (distillation)"]);
    let packs = script("srun python scripts/training/pack_sft_data.py --recipe llama32_1b_pretrain_config\n");
    let said = packs.diagnostics.iter().map(|said| said.message.as_str()).collect::<Vec<_>>().join("; ");
    assert!(packs.plan.is_none() && said.contains("data preparation, not a training run"), "{said}");
}

/// NovaSky-AI/SkyRL `examples/flash_rl`: the engine holds 8-bit weights, in a format that a file of its environment names;
/// they were read as 16-bit ones.
#[test]
fn rollouts_of_flash_rl_stop() {
    let of = |program: &str| {
        script(&format!(
            "uv run -- python -m {program} trainer.policy.model.path=Qwen/Qwen2.5-0.5B-Instruct trainer.placement.colocate_all=true \
             trainer.strategy=fsdp2 trainer.placement.policy_num_gpus_per_node=4 generator.num_inference_engines=4 \
             generator.inference_engine_tensor_parallel_size=1 trainer.train_batch_size=256 trainer.policy_mini_batch_size=256 \
             trainer.micro_train_batch_size_per_gpu=8 trainer.micro_forward_batch_size_per_gpu=8 trainer.algorithm.use_kl_loss=false \
             trainer.max_prompt_length=512 generator.sampling_params.max_generate_length=1024 generator.n_samples_per_prompt=5\n"
        ))
    };
    let plain = of("skyrl_train.entrypoints.main_base");
    assert!(plain.plan.is_some(), "{:?} {:?}", plain.not_modelled, plain.diagnostics);
    let expected = "rollouts of FlashRL, whose engine holds its weights in 8 bits";
    assert_eq!(stops(&of("examples.flash_rl.main_dapo_flashrl")), [expected]);
}

/// sail-sg/zero-bubble-pipeline-parallelism `examples/pretrain_offload.sh`: a variable that only a branch sets which is passed
/// over, as its own variables are unset, is unset as well. All options were left to the first of them.
#[test]
fn what_an_untaken_branch_sets_is_unset() {
    let of = |condition: &str| {
        script(&format!(
            "options=\"{}\"\nif [ {condition} ]; then\n  ENABLED=1\n  options=\"$options --sequence-parallel\"\nfi\n\
             if [ ! -z \"$ENABLED\" ]; then options=\"$options --use-distributed-optimizer\"; fi\n\
             torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py $options\n",
            super::MODEL
        ))
    };
    let unset = of("! -z \"$SCHEDULE\"");
    assert!(unset.plan.is_some(), "{:?}", unset.diagnostics);
    assert_eq!(value(&unset, Field::NumLayers), "32");
    // What the machine alone knows may set it.
    assert!(of("$(nvidia-smi -L | wc -l) -gt 4").plan.is_none());
}

/// Tongyi-Zhiwen/QwenLong-L1 `scripts/rl_4nodes_dapo.sh`: a verl of March 2025, whose loss always holds an entropy
/// (`verl/workers/actor/dp_actor.py:_forward_micro_batch`), was read as one without.
#[test]
fn a_key_that_another_replaced_tells_an_early_verl() {
    let of = |words: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {words}\n"
        );
        let read = script(&text);
        assert!(read.plan.is_some(), "{words}: {:?}", read.not_modelled);
        value(&read, Field::PolicyEntropy)
    };
    assert_eq!(of("actor_rollout_ref.actor.use_token_level_loss=True"), "true");
    assert_ne!(of("actor_rollout_ref.actor.loss_agg_mode=token-mean"), "true");
}

/// NVIDIA-NeMo/Megatron-Bridge `examples/models/nemotron/nemotron_3/nano/slurm_pretrain.sh` starts one run after the other with
/// other degrees; the answer was for one of them and did not say so. A sweep of learning rates has one plan.
#[test]
fn a_loop_over_layouts_says_which_run_is_estimated() {
    let of = |values: &str, option: &str| {
        let text = format!(
            "for X in {values}; do\n  torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py {} {option} --save out_$X\ndone\n",
            super::MODEL
        );
        let read = script(&text);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        let warned = read.diagnostics.iter().filter(|said| said.code == Code::SeveralCommands);
        warned.map(|said| said.message.clone()).collect::<Vec<_>>().join("; ")
    };
    let expected = "this training is started 3 times, with other values of --tensor-model-parallel-size; the estimate is for the first";
    assert_eq!(of("1 2 4", "--tensor-model-parallel-size $X"), expected);
    assert_eq!(of("1e-4 2e-4", "--lr $X"), "");
}
