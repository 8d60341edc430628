//! Reinforcement learning: what earlier releases and programs made of them do, where the text tells one.

use super::{said, script, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;
use shardscope_source::Code;

/// A policy under verl on eight accelerators, in micro-batches of samples.
const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.max_prompt_length=1024 \
    data.max_response_length=3072 actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// SkyworkAI/Skywork-OR1 at 64e96af, `verl/trainer/main_ppo.py`: `role_worker_mapping` has no `Role.RefPolicy`. verl 0.2 starts one whatever
/// its loss takes.
#[test]
fn skywork_or1_starts_no_reference() {
    let of = |more: &str| {
        value(
            &script(&format!(
                "{VERL} actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.fsdp_config.grad_offload=True {more}\n"
            )),
            Field::RlReference,
        )
    };
    let entropies = "actor_rollout_ref.actor.adaptive_entropy.enabled=True";
    assert_eq!(of(""), "device");
    assert_eq!(of(&format!("{entropies} trainer.rejection_sample=True")), "none");
    // Each alone is in other programs too, which start one.
    assert_eq!(of(entropies), "device");
    assert_eq!(of("trainer.rejection_sample=True"), "device");
}

fn grpo(machines: &str, more: &str) -> Resolution {
    script(&format!(
        "{machines} grpo.py --model_name_or_path Qwen/Qwen2.5-1.5B --use_vllm True --max_prompt_length 512 \
         --max_completion_length 1024 --per_device_train_batch_size 2 --bf16 True --learning_rate 1e-6 --num_generations 4 {more}\n"
    ))
}

/// `grpo_trainer.py` of TRL 0.15 and R1-V's `vllm_grpo_trainer.py` hand on no `torch_dtype`, and transformers 4 then loads in fp32, which
/// DeepSpeed's engine alone casts. VLM-R1's later trainer says bf16, so that a program that is not at hand leaves it open.
#[test]
fn the_format_of_weights_is_asked_for_where_a_program_is_made_of_early_trl() {
    let torchrun = "torchrun --nnodes 1 --nproc_per_node 4";
    let asks = |read: &Resolution| read.questions.iter().any(|question| question.name() == "params_dtype");
    assert!(asks(&grpo(torchrun, "--max_pixels 401408")));
    assert!(!asks(&grpo(torchrun, "--max_pixels 401408 --torch_dtype bfloat16")));
    assert!(!asks(&grpo(torchrun, "--vllm_mode colocate")));
}

/// `trl/trainer/grpo_trainer.py` of 0.15.2: vLLM takes `cuda:{num_processes}`, and `possible_values` are what divides the micro-batches of
/// all ranks.
#[test]
fn an_engine_on_the_next_device_is_no_rank_and_groups_are_whole() {
    let file = |more: &str, set: &[(&str, &str)]| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-1.5B\ntorch_dtype: bfloat16\nbf16: true\nuse_vllm: true\nvllm_device: auto\n\
             max_prompt_length: 512\nmax_completion_length: 512\nper_device_train_batch_size: 2\nlearning_rate: 1.0e-06\n\
             gradient_accumulation_steps: 3\nlr_scheduler_type: cosine\n{more}"
        );
        said("mine.yaml", &text, set)
    };
    let open = file("num_generations: 6\n", &[]);
    let asked = open.questions.iter().find(|question| question.name() == "world_size").expect("a question");
    assert!(asked.prompt.contains("num_processes"), "{}", asked.prompt);
    // Seven are beside the engine; of these six make whole groups of six.
    assert_eq!(asked.proposal.as_deref(), Some("6"));
    let trains = file("num_generations: 6\n", &[("zero_stage", "0"), ("world_size", "3")]);
    assert!(trains.plan.is_some(), "{:?}", trains.diagnostics);
    let stops = file("num_generations: 6\n", &[("zero_stage", "0"), ("world_size", "4")]);
    let message = stops.diagnostics.iter().find(|said| said.code == Code::GlobalBatch).expect("a message");
    assert_eq!(
        message.message,
        "micro batch 2 x DP 4 = 8 is no multiple of the 6 rollouts of a prompt (num_generations): TRL 0.15 stops there, and 0.14, whose batches count prompts, is not modelled"
    );
    assert!(stops.plan.is_none());
    // Batches of programs made of 0.14 are of prompts.
    let torchrun = "torchrun --nnodes 1 --nproc_per_node 3";
    let prompts = grpo(torchrun, "--max_pixels 401408 --torch_dtype bfloat16");
    assert!(
        prompts.diagnostics.iter().all(|said| said.code != Code::GlobalBatch),
        "{:?}",
        prompts.diagnostics
    );
}

/// `verl/utils/dataset/rl_dataset.py`: a prompt longer than `data.max_prompt_length`, images included, is left out or stops the run.
#[test]
fn images_are_proposed_as_far_as_the_longest_prompt_holds_them() {
    let read = script(&format!("{VERL} actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct\n"));
    let asked =
        read.questions.iter().find(|question| question.name() == "image_patches").expect("a question");
    assert_eq!(asked.proposal.as_deref(), Some("4096"));
    assert!(asked.prompt.contains("as far as the longest prompt holds them"), "{}", asked.prompt);
}

/// EasyR1's program refuses settings that it does not have; a fork's `examples/config.yaml` is its own.
#[test]
fn the_file_of_a_fork_of_easy_r1_is_its_own() {
    let of = |words: &str| {
        script(&format!(
            "python3 -m verl.trainer.main config=examples/config.yaml worker.actor.model.model_path=Qwen/Qwen2.5-7B \
             worker.actor.micro_batch_size_per_device_for_update=2 worker.actor.micro_batch_size_per_device_for_experience=2 \
             trainer.n_gpus_per_node=8 {words}\n"
        ))
    };
    assert_eq!(value(&of("worker.actor.entropy_coeff=0.01"), Field::RolloutsPerPrompt), "5");
    let fork = of("worker.actor.regularises_entropies=False");
    let lacks = "this training takes its settings from config.yaml, which is not here";
    assert!(fork.plan.is_none());
    assert!(fork.diagnostics.iter().any(|said| said.message == lacks), "{:?}", fork.diagnostics);
}

/// slime and miles pack up to `--max-tokens-per-gpu`, and cut no prompt unless they are told to (`slime/utils/dp_schedule.py`).
#[test]
fn packs_of_samples_with_prompts_of_any_length_are_full() {
    let of = |more: &str| {
        let read = script(&format!(
            "ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate {} --hf-checkpoint \
             /root/Qwen3-8B --num-rollout 10 --rollout-batch-size 8 --n-samples-per-prompt 8 --use-dynamic-batch-size \
             --max-tokens-per-gpu 4096 --rollout-max-response-len 200 --rollout-num-gpus-per-engine 1 --advantage-estimator grpo {more}\n",
            super::MODEL
        ));
        [Field::SeqLength, Field::RolloutLength].map(|field| value(&read, field))
    };
    // Eight samples on each of eight ranks.
    assert_eq!(of(""), ["4096", "200"]);
    assert_eq!(of("--rollout-max-prompt-len 100"), ["2400", "300"]);
    assert_eq!(of("--rollout-max-context-len 250"), ["2000", "200"]);
}

/// `scripts/models/glm4.7-flash.py` of radixark/miles at 31f1ca9, printed in `tests/snapshots/model_args`, and `glm4.7-30B-A3B.sh` of
/// THUDM/slime at 624b824.
#[test]
fn a_file_of_a_model_states_more_than_its_shape() {
    let of = |shape: &str, more: &str| {
        let read = script(&format!(
            "{shape}\nray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate ${{MODEL_ARGS[@]}} \
             --hf-checkpoint /root/GLM-4.7-Flash --num-rollout 10 --rollout-batch-size 8 --n-samples-per-prompt 8 --bf16 \
             --use-dynamic-batch-size --max-tokens-per-gpu 4096 --rollout-max-response-len 200 --advantage-estimator grpo \
             --expert-model-parallel-size 8 {more}\n"
        ));
        [Field::MakeVocabSizeDivisibleBy, Field::MtpNumLayers, Field::ApplyRopeFusion]
            .map(|field| value(&read, field))
    };
    let printed = "TYPE=\"glm4.7-flash\"\nLINE=\"$(python3 \"${HERE}/miles/utils/external_utils/model_args_utils.py\" \"${TYPE}\")\" || exit 1\n\
        read -ra MODEL_ARGS <<< \"${LINE}\"";
    assert_eq!(of(printed, ""), ["64", "1", "false"]);
    assert_eq!(of(&printed.replace("${TYPE}", "glm4.7-flash"), ""), ["64", "1", "false"]);
    assert_eq!(of(printed, "--make-vocab-size-divisible-by 32"), ["32", "1", "false"]);
    // slime's file has no depths that predict further tokens.
    let [divisor, depths, fused] = of("source \"$HERE/scripts/models/glm4.7-30B-A3B.sh\"", "");
    assert_eq!((divisor.as_str(), fused.as_str()), ("64", "false"));
    assert!(matches!(depths.as_str(), "" | "0"), "{depths}");
}

/// `roll/distributed/strategy/sglang_strategy.py:initialize` pops `tensor_parallel_size`, by default as many as a worker has accelerators;
/// `worker_config.py:__post_init__` sets those by vLLM's own sizes.
#[test]
fn an_engine_of_roll_is_as_wide_as_its_worker() {
    let of = |engine: &str, config: &str| {
        let text = format!(
            "exp_name: mine\npretrain: Qwen/Qwen2.5-7B\nnum_gpus_per_node: 8\nprompt_length: 512\nresponse_length: 512\n\
             actor_train:\n  training_args:\n    learning_rate: 1.0e-6\n    per_device_train_batch_size: 1\n  \
             strategy_args:\n    strategy_name: megatron_train\n    strategy_config: {{tensor_model_parallel_size: 2}}\n  \
             device_mapping: list(range(0,8))\nactor_infer:\n  strategy_args:\n    strategy_name: {engine}\n    \
             strategy_config: {{{config}}}\n  num_gpus_per_worker: 4\n  device_mapping: list(range(0,8))\n"
        );
        value(&said("mine.yaml", &text, &[]), Field::RolloutTensorParallelSize)
    };
    assert_eq!(of("sglang", "mem_fraction_static: 0.8"), "4");
    assert_eq!(of("sglang", "tensor_parallel_size: 2"), "2");
    assert_eq!(of("vllm", "gpu_memory_utilization: 0.8"), "1");
}

/// `configs/model/qwen3_8b.yaml` of Ascend/MindSpeed-RL at 05a90d7, and its six others: `make_vocab_size_divisible_by: 1`.
#[test]
fn files_of_models_of_mindspeed_rl_pad_no_vocabulary() {
    let read = said(
        "mine.yaml",
        "megatron_training:\n  model: qwen3_8b\n  bf16: true\n  global_batch_size: 16\n  seq_length: 1024\nactor_config:\n  \
         model: qwen3_8b\n  micro_batch_size: 1\n  tensor_model_parallel_size: 4\nrl_config:\n  mini_batch_size: 16\n  \
         max_prompt_length: 512\n  n_samples_per_prompt: 4\n  actor_resource:\n    num_npus: 8\ngenerate_config:\n  \
         infer_tensor_parallel_size: 1\n  sampling_config:\n    max_tokens: 512\n",
        &[],
    );
    let sizes = [Field::MakeVocabSizeDivisibleBy, Field::PaddedVocabSize].map(|field| value(&read, field));
    assert_eq!(sizes, ["1", "151936"]);
}
