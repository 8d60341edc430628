//! Misreadings found in the twenty-second draw of public files.

use super::{said, script, stopped, value};
use shardscope_launch::{Asked, Resolution};
use shardscope_plan::Field;

/// morrezhao/ms-swift `vsi_grpo_config.yaml`: a file of `swift rlhf --config` was read as TRL's, whose GRPO has some of the same
/// keys.
#[test]
fn a_file_with_ms_swifts_kind_of_training_is_ms_swifts() {
    let of = |kind: &str, model: &str| {
        let text = format!(
            "{model}: Qwen/Qwen3-8B\n{kind}torch_dtype: bfloat16\nbeta: 0.001\nnum_generations: 8\nmax_completion_length: 2048\n\
             max_length: 1024\nuse_vllm: true\nvllm_mode: colocate\nvllm_gpu_memory_utilization: 0.5\n\
             per_device_train_batch_size: 1\nlearning_rate: 1.0e-6\n"
        );
        said("grpo.yaml", &text, &[("world_size", "8")])
    };
    let shown = |read: &Resolution| [Field::RlFramework, Field::SeqLength].map(|field| value(read, field));
    // `max_length` limits the prompt.
    let swift = "rlhf_type: grpo\ntuner_type: full\n";
    assert_eq!(shown(&of(swift, "model")), ["swift", "3072"]);
    assert_eq!(value(&of("", "model_name_or_path"), Field::RlFramework), "trl");
}

/// zsxm1998/ms-swift `multi_gpu_agent.sh` and `multi_node1.sh` (3.4): vLLM was put on the accelerators that train, in the one case,
/// and the model spread over the one that is vLLM's in the other.
#[test]
fn ms_swift_before_modes_generates_on_the_accelerators_that_are_left_over() {
    let of = |environment: &str, more: &str| {
        script(&format!(
            "{environment} swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --train_type full --dataset a --torch_dtype bfloat16 \
             --max_length 2048 --max_completion_length 1024 --per_device_train_batch_size 7 --num_generations 7 --use_vllm true \
             --vllm_gpu_memory_utilization 0.7 --deepspeed zero3 {more}"
        ))
    };
    let own = |environment: &str, more: &str| {
        let read = of(environment, more);
        assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        assert!(
            !plan.recipe().marks.sentences().join(" ").contains("num_infer_workers"),
            "{environment} {more}"
        );
        [Field::RolloutGpus, Field::WorldSize].map(|field| value(&read, field))
    };
    assert_eq!(own("NPROC_PER_NODE=7", ""), ["1", "7"]);
    assert_eq!(own("NPROC_PER_NODE=7", "--vllm_mode colocate"), ["", "7"]);
    assert_eq!(own("NPROC_PER_NODE=7", "--vllm_server_host 10.0.0.1"), ["0", "7"]);
    assert_eq!(own("NPROC_PER_NODE=8", ""), ["", "8"]);
    assert_eq!(own("NPROC_PER_NODE=6", "--num_infer_workers 2"), ["2", "6"]);
    // Other spellings of the same options.
    assert_eq!(own("NPROC_PER_NODE=7", "--vllm_mode=colocate"), ["", "7"]);
    assert_eq!(own("NPROC_PER_NODE=7", "--vllm-mode colocate"), ["", "7"]);
    assert_eq!(own("NPROC_PER_NODE=7", "--vllm_server_base_url=http://a"), ["0", "7"]);
    assert_eq!(own("NPROC_PER_NODE=6", "--num_infer_workers=2"), ["2", "6"]);
    assert_eq!(own("NPROC_PER_NODE=12", "--num_infer_workers=4"), ["4", "12"]);
    // More than any number of processes can have.
    assert_eq!(
        value(&of("NPROC_PER_NODE=7", "--num_infer_workers 18446744073709551615"), Field::RolloutGpus),
        ""
    );
    // Each accelerator has a worker.
    assert_eq!(own("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4", "--num_infer_workers 4"), ["", "4"]);
    let nodes = "CUDA_VISIBLE_DEVICES=0,1,2,3 NNODES=2 NPROC_PER_NODE=3";
    assert_eq!(own(nodes, "--num_infer_workers 1 --vllm_device auto"), ["2", "6"]);
    assert_eq!(own(nodes, ""), ["2", "6"]);
    // A device map all the same.
    stopped(&of("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2", ""), &["CUDA_VISIBLE_DEVICES"]);
    stopped(&of(nodes, "--vllm_mode colocate"), &["CUDA_VISIBLE_DEVICES"]);
    stopped(&of(nodes, "--vllm_mode server --vllm_server_host 10.0.0.1"), &["CUDA_VISIBLE_DEVICES"]);
}

/// verl's DAPO in `recipe/dapo/src` (ChenxinAn-fdu/POLARIS, PRIME-RL/TTRL `run_dapo_early_qwen2.5_32b.sh`; found with
/// ZhenbinChan/verl's file of the weeks after it): its program registers the reference whatever the loss is.
#[test]
fn verls_first_dapo_always_has_a_reference() {
    let of = |program: &str| {
        let text = format!(
            "python3 -m {program} data.gen_batch_size=512 data.train_batch_size=512 data.max_prompt_length=1024 \
             data.max_response_length=1024 algorithm.adv_estimator=grpo algorithm.use_kl_in_reward=False \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.rollout.n=8 \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.actor.use_kl_loss=False actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 \
             trainer.nnodes=1"
        );
        let read = script(&text);
        let found = read.settings.iter().find(|setting| setting.field == Field::RlReference);
        let undated =
            found.and_then(|found| found.note.as_deref()).is_some_and(|note| note.contains("May 10 to 23"));
        (value(&read, Field::RlReference), undated)
    };
    assert_eq!(of("recipe.dapo.src.main_dapo"), ("host".to_owned(), false));
    assert_eq!(of("recipe.dapo.main_dapo"), ("none".to_owned(), true));
    assert_eq!(of("verl.trainer.main_ppo"), ("none".to_owned(), false));
}

/// The same program has every default of its weeks, as keys of those weeks tell them.
#[test]
fn verls_first_dapo_is_of_one_release() {
    let of = |program: &str, more: &str| {
        let text = format!(
            "python3 -m {program} data.gen_batch_size=512 data.train_batch_size=512 data.max_prompt_length=1024 \
             data.max_response_length=1024 algorithm.adv_estimator=grpo actor_rollout_ref.actor.use_kl_loss=True \
             actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.rollout.n=8 \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}"
        );
        let read = script(&text);
        assert!(read.plan.is_some(), "{:?} {:?}", read.diagnostics, read.not_modelled);
        let all = read.settings.iter().map(|setting| (setting.name(), setting.value.written()));
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    let first = "recipe.dapo.src.main_dapo";
    let spring = "actor_rollout_ref.rollout.use_fire_sampling=False";
    let megatron = "actor_rollout_ref.actor.strategy=megatron";
    for more in ["", megatron] {
        let dated = of(first, &format!("{spring} {more}"));
        assert_eq!(of(first, more), dated, "{more}");
        assert_eq!(dated["rollout_sequences"], "1024");
        let stated = "actor_rollout_ref.rollout.enforce_eager=False actor_rollout_ref.rollout.max_num_seqs=64 \
                      actor_rollout_ref.model.use_remove_padding=True";
        let stated = of(first, &format!("{stated} {more}"));
        assert_eq!(stated["rollout_cuda_graphs"], "true");
        assert_eq!(stated["rollout_sequences"], "64");
    }
    assert_eq!(of("recipe.dapo.main_dapo", "")["rollout_sequences"], "256");
}

/// Miical/verl `run_qwen3_4b_fsdp.sh`, like all of verl's own examples of August 2026: the machine's kind is asked of Python, and what
/// it decides was asked of the reader.
#[test]
fn a_machine_that_is_asked_for_npus_has_gpus() {
    let of = |asked: &str| {
        script(&format!(
            "DEVICE=${{DEVICE:-$({asked})}}\nGPUS=${{GPUS:-8}}\nUTIL=${{UTIL:-0.6}}\n\
             case \"${{DEVICE}}\" in\n  gpu) ;;\n  npu)\n    export VLLM_USE_V1=1\n    GPUS=16\n    UTIL=0.9\n    ;;\n\
             *)\n    exit 1\n    ;;\nesac\n\
             python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 data.max_prompt_length=1024 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen3-4B actor_rollout_ref.rollout.n=5 \
             actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=$UTIL \
             trainer.n_gpus_per_node=$GPUS trainer.nnodes=1\n"
        ))
    };
    let asked = "python3 -c 'import torch_npu' 2>/dev/null && echo npu || echo gpu";
    let read = of(asked);
    assert!(read.questions.is_empty(), "{:?}", read.questions);
    let fields = [Field::GpusPerNode, Field::RolloutMemoryFraction];
    assert_eq!(fields.map(|field| value(&read, field)), ["8", "0.6"]);
    // Other modules are the machine's own.
    let other = of("python3 -c 'import vllm' 2>/dev/null && echo npu || echo gpu");
    assert!(!other.questions.is_empty());
}

/// jerry-ai-dev/post-training-slot-extractor `config.rendered.yaml`: LLaMA-Factory trains a loaded adapter on, whose rank the text's
/// own was taken for.
#[test]
fn a_stated_rank_beside_a_loaded_adapter_is_only_proposed() {
    let text = "stage: dpo\nfinetuning_type: lora\nlora_target: all\nlora_rank: 32\ncutoff_len: 2048\nper_device_train_batch_size: 1\n\
        gradient_accumulation_steps: 8\nbf16: true\ndataset: a\ntemplate: qwen3\nmodel_name_or_path: Qwen/Qwen3-0.6B\n\
        adapter_name_or_path: models/adapters/sft\n";
    let read = said("run.yaml", text, &[("world_size", "1")]);
    let rank = read.questions.iter().find(|asked| asked.asks == Asked::Setting(Field::LoraRank));
    assert_eq!(rank.and_then(|asked| asked.proposal.as_deref()), Some("32"));
    let fresh = said("run.yaml", &format!("{text}create_new_adapter: true\n"), &[("world_size", "1")]);
    assert_eq!(value(&fresh, Field::LoraRank), "32");
}

/// israel-adewuyi/prime-rl `env_mix.toml` (January 2026): its trainer's defaults are not today's, with which a file without the keys
/// for GPUs was read, one sample to a prompt.
#[test]
fn prime_rl_of_other_defaults_stops_by_a_key_that_it_had() {
    let of = |top: &str, each: &str| {
        let text = format!(
            "{top}max_steps = 300\nseq_len = 8192\n[model]\nname = \"Qwen/Qwen3-4B-Instruct-2507\"\n[orchestrator]\n\
             batch_size = 512\n{each} = 16\n[trainer]\n[inference]\n"
        );
        said("rl.toml", &text, &[])
    };
    stopped(&of("", "rollouts_per_example"), &["orchestrator.rollouts_per_example"]);
    stopped(
        &of("trainer_gpu_ids = [0, 1]\ninference_gpu_ids = [2, 3]\n", "group_size"),
        &["trainer_gpu_ids"],
    );
    assert_eq!(value(&of("", "group_size"), Field::RolloutsPerPrompt), "16");
}

/// JinZr/ms-swift `qwen3_moe.sh`: the GPUs proposed did not hold the expert ranks of a model that was asked for with them.
#[test]
fn proposed_gpus_hold_the_experts_of_a_model_that_is_not_known_yet() {
    let read = script(
        "NNODES=$WORLD_SIZE NODE_RANK=$RANK megatron sft --load unknown-mcore --dataset a --pipeline_model_parallel_size 2 \
         --expert_model_parallel_size 8 --micro_batch_size 1 --global_batch_size 16 --max_length 8192 --packing true",
    );
    let world = read.questions.iter().find(|asked| asked.asks == Asked::Setting(Field::WorldSize));
    assert_eq!(world.and_then(|asked| asked.proposal.as_deref()), Some("16"), "{:?}", read.questions);
}

/// Kevin-Li-2025/l20-edu-135m-pretrain `run_sft_6k_quality_pipeline.sh`: the file of an evaluation was asked for, after which what it
/// evaluates is named.
#[test]
fn an_evaluation_named_after_what_it_evaluates_is_not_the_training() {
    let read = script(
        "python3 -m l20_pretrain.train_sft configs/sft.yaml\npython3 scripts/eval_sft_sanity.py runs/final --output results.jsonl\n",
    );
    let named = |word: &str| read.diagnostics.iter().any(|said| said.message.contains(word));
    assert!(read.not_modelled.iter().all(|item| !item.value.contains("eval_sft")), "{:?}", read.not_modelled);
    assert!(named("sft.yaml"), "{:?} {:?}", read.diagnostics, read.not_modelled);
}
