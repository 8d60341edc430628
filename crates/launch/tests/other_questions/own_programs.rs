//! Programs with options of their own around a known trainer: each option was read in its program's source, and either
//! changes nothing, states a setting, or stops by name.

use super::{MODEL, said, script, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 4 --bf16 True --gradient_checkpointing True --attn_implementation flash_attention_2 \
    --fsdp \"full_shard auto_wrap\" --output_dir out --model_max_length 2048";
const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B \
    data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 actor_rollout_ref.model.use_remove_padding=True \
    actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 trainer.nnodes=1";

/// The command has a plan with these words, and the same as without them.
#[track_caller]
fn changes_nothing(command: &str, more: &str) {
    let (plain, read) = (script(command), script(&format!("{command} {more}")));
    // All of a plan but the marks, which are its last part.
    let of = |resolution: &Resolution| {
        let plan = format!("{:?}", resolution.plan);
        plan.split("marks: ").next().map(str::to_owned)
    };
    assert!(read.plan.is_some(), "{more}: {:?} {:?}", read.not_modelled, read.diagnostics);
    assert_eq!(of(&read), of(&plain), "{more}");
}

/// The command stops, by these words of a message and by no other.
#[track_caller]
fn stops_by(command: &str, more: &str, message: &str) {
    let read = script(&format!("{command} {more}"));
    assert!(read.plan.is_none(), "{more}");
    let said: Vec<&str> = read.not_modelled.iter().map(|item| item.message.as_str()).collect();
    assert!(said.len() == 1 && said.iter().all(|said| said.contains(message)), "{more}: {said:?}");
}

#[test]
fn what_programs_do_around_the_trainer_changes_nothing() {
    for more in [
        // BELLE, Qwen2.5-Coder, programs derived from QLoRA's, open-r1, americasnlp2026, VLM-R1, MedicalGPT.
        "--llama True",
        "--is_merge_and_unload True",
        "--adam8bit False --min_new_tokens 4 --no_repeat_ngram_size 0 --typical_p 1.0 --diversity_penalty 0.0",
        "--cosine_min_value_wrong 0.0 --cosine_max_len 1000 --repetition_n_grams 3 --code_language python",
        "--languages wixarika --language_sampling_alpha 1.0 --early_stopping_threshold 0.001",
        "--image_root data/coco --task_name rte --train_on_source False --base_model_revision main",
        "--orpo_beta 0.1 --neft_alpha 5 --label_pad_token_id -100",
    ] {
        changes_nothing(TRAINER, more);
    }
    changes_nothing(VERL, "actor_rollout_ref.rollout.max_turns=5");
}

#[test]
fn what_programs_do_besides_stops_by_name() {
    for (more, message) in [
        ("--llama mine", "named by the program's own switch"),
        ("--image_tower openai/clip-vit-large-patch14", "a vision model"),
        ("--tune_img_projector False", "a vision model"),
        ("--num_frames 8", "video frames"),
        ("--tune_llm False", "trained or frozen by the program's own switch"),
        ("--pre_seq_len 128", "prefix tuning"),
        ("--cl_method vanilla --ewc_lambda 0.5", "continual learning"),
        ("--trainer zo --no_auto_device --zo_eps 1e-3 --num_train 1000", "zeroth-order"),
        (
            "--trainer regular --no_auto_device --train_as_classification --num_dev 500",
            "every option of a sample",
        ),
        (
            "--task_config_dir a --instruction_strategy single --lamda_1 0.5 --max_source_length 512",
            "tasks in turn",
        ),
        ("--temporal true --len_control true", "a second round of rollouts"),
        ("--model_reproduce cerebras --hidden_size 1920 --use_wsd true --q_proj_alpha 1", "YuLan-Mini"),
        ("--moe_enable True --num_experts 4 --train_modules mlp.w1 --capacity_factor 1.5", "MoE-LLaVA"),
        ("--query_instruction_for_rerank A --knowledge_distillation True", "by contrast"),
        ("--routing_logits_safe a.json --rank 8 --alpha 8 --temp 0.1", "SafeMoE"),
        ("--use_gradient_checkpointing unsloth", "by a switch of its own"),
    ] {
        stops_by(TRAINER, more, message);
    }
    for (more, message) in [
        (
            "algorithm.multiround_adaptive_downsampling=True algorithm.reinforce_ada_choice=balanced",
            "Reinforce-Ada",
        ),
        ("+lean.problem_batch_size=16 actor_rollout_ref.actor.update_rule=ppo", "proofs"),
        ("actor_rollout_ref.rollout.search.topk=5 actor_rollout_ref.rollout.max_gen_round=3", "MMSearch-R1"),
        ("actor_rollout_ref.actor.kl_topk=256 trainer.stage=consolidate", "OPCD"),
        ("actor_rollout_ref.env.name=search actor_rollout_ref.env.mcp_mode=sse", "RL-Factory"),
        ("actor_rollout_ref.agent.max_obs_length=512 actor_rollout_ref.agent.max_turns=3", "verl-tool"),
        ("azr.problem_types=[code_i] azr.executor=qwq", "Absolute Zero"),
    ] {
        stops_by(VERL, more, message);
    }
}

/// What a name means in one program is not said of others.
#[test]
fn without_the_option_that_tells_its_program_a_name_is_unknown() {
    for more in
        ["--hidden_size 1920", "--mapping a", "--capacity_factor 1.5", "--loss_func DPO", "--temporal true"]
    {
        stops_by(TRAINER, more, "an unknown option");
    }
    stops_by(VERL, "actor_rollout_ref.actor.update_rule=ppo", "an unknown option");
    let megatron = format!("torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}");
    stops_by(&megatron, "--oracle math", "an unknown option");
}

#[test]
fn programs_of_megatrons_family_are_told_by_their_options() {
    let megatron = format!("torchrun --nproc_per_node 8 pretrain_gpt.py {MODEL}");
    let deepspeed = format!("{megatron} --deepspeed --zero-stage 1 --no-pipeline-parallel");
    changes_nothing(&deepspeed, "--deepspeed_mpi");
    let bubble =
        "--recompute-lgd --measure-activation-memory --offload-continuous-buffers --allow-padding-num-layers";
    stops_by(&megatron, bubble, "norms, activation functions and dropout computed again");
    stops_by(&megatron, "--block-lm --bert-prob 0.5 --avg-block-length 3", "blank infilling");
    stops_by(&megatron, "--evolving-gym --evolving-gym-record --pkpo-k 4", "an evolving program");
    stops_by(&megatron, "--llama-type llama --max-words 512 --accum_iter 4", "LLaMA2-Accessory");
    stops_by(
        &megatron,
        "--galore_scale 0.25 --update_proj_gap 200 --total_batch_size 512",
        "GaLore's own program",
    );
    // Such a program is none of Megatron's, whatever is said without its own option.
    stopped(&script(&format!("{megatron} --llama-type llama")), &["program"]);
}

#[test]
fn lengths_under_names_of_a_program_are_read() {
    let command = TRAINER.replace("--model_max_length 2048", "--seq_length 1024");
    assert_eq!(value(&script(&command), Field::SeqLength), "1024");
    let command = TRAINER.replace("--model_max_length 2048", "--max_training_seq_length 1216");
    assert_eq!(value(&script(&command), Field::SeqLength), "1216");
}

/// TRL's DPO of before 0.9 has `max_target_length` for models with an encoder; elsewhere it is a part of a sample.
#[test]
fn a_target_length_is_idle_beside_the_lengths_of_early_dpo() {
    let pairs = TRAINER
        .replace("train.py", "train_dpo.py")
        .replace("--model_max_length 2048", "--beta 0.1 --max_length 1024");
    changes_nothing(&format!("{pairs} --max_prompt_length 512"), "--max_target_length 512");
    stops_by(TRAINER, "--max_target_length 512", "an unknown option");
    let read = script(&format!(
        "{pairs} --max_prompt_length 512 --use_lora True --q_lora True --max_target_length 512"
    ));
    stopped(&read, &["max_target_length"]);
}

/// 2U1's Qwen2-VL-Finetune: adapters on all linear layers by their full names, without those of the tower unless
/// `vision_lora`, beside an embedding and an output layer that have none.
#[test]
fn adapters_of_qwen2_vl_finetune_are_on_the_decoder() {
    let command = "deepspeed --num_gpus 8 src/train/train_sft.py --model_id Qwen/Qwen2.5-VL-3B-Instruct --lora_enable True \
        --lora_namespan_exclude \"['lm_head', 'embed_tokens']\" --num_lora_modules -1 --freeze_vision_tower True --freeze_llm True \
        --freeze_merger True --bf16 True --per_device_train_batch_size 4 --gradient_accumulation_steps 4 \
        --gradient_checkpointing True --image_max_pixels 1003520";
    let read = script(&format!("{command} --vision_lora False"));
    let settings = [
        (Field::TrainType, "lora"),
        (Field::LoraRank, "64"),
        (Field::LoraAlpha, "16"),
        (Field::LoraTargetModules, "all-linear"),
        (Field::LigerKernel, "true"),
    ];
    for (field, expected) in settings {
        assert_eq!(value(&read, field), expected, "{}", field.name());
    }
    for part in ["tower", "projector"] {
        assert!(value(&read, Field::FrozenModules).contains(part), "{}", value(&read, Field::FrozenModules));
    }
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    let some = command.replace("'lm_head', 'embed_tokens'", "'lm_head'");
    assert!(script(&some).not_modelled.iter().any(|item| item.message.contains("adapters on the embedding")));
}

#[test]
fn keys_that_a_framework_passes_over_stop_nothing() {
    let file = "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\n\
                bf16: true\nflash_attention: true\nsample_packing_size: 4\nfsdp: []\n";
    let read = said("axolotl.yml", file, &[("world_size", "8")]);
    assert!(read.plan.is_some(), "{:?} {:?}", read.not_modelled, read.diagnostics);
    // An empty list of FSDP's words shards nothing.
    assert_eq!(value(&read, Field::ZeroStage), "0");
    let file = "{\"zero_optimization\": {\"stage\": 2}, \"bf16\": {\"enabled\": true}, \"train_micro_batch_size_per_gpu\": 1, \
                \"eigenvalue_enabled\": true}";
    assert!(said("ds_config.json", file, &[]).not_modelled.is_empty());
    let nemo = |on: &str| {
        let file = format!(
            "name: megatron_gpt\ntrainer:\n  devices: 8\n  num_nodes: 1\n  precision: bf16\nmodel:\n  mcore_gpt: true\n  \
             micro_batch_size: 1\n  global_batch_size: 8\n  encoder_seq_length: 2048\n  num_layers: 12\n  hidden_size: 768\n  \
             num_attention_heads: 12\n  cpu_offloading: {on}\n  cpu_offloading_activations: true\n  cpu_offloading_weights: true\n\
             s3_checkpointing:\n  max_write_concurrency: 10\n"
        );
        said("gpt.yaml", &file, &[("vocab_size", "50257")]).not_modelled
    };
    assert!(nemo("false").is_empty(), "{:?}", nemo("false"));
    assert!(
        nemo("true").iter().any(|item| item.name.contains("cpu_offloading_weights")),
        "{:?}",
        nemo("true")
    );
}

#[test]
fn a_module_of_ones_own_under_torchtitan_is_none_of_its_models() {
    let command = "torchrun --nproc_per_node 8 -m torchtitan.train --module attention_residual --config own_447m \
        --training.local_batch_size 4 --training.seq_len 2048 --validator.enable --validator.freq 100";
    stops_by(command, "", "a module of the program's own");
}

/// Facico/Chinese-Vicuna, `finetune_chat.py` and `finetune.py`: LLM.int8() below LoRA, with lengths that the programs fix.
#[test]
fn chinese_vicuna_has_sizes_of_its_own() {
    let chat = script(
        "torchrun --nproc_per_node=4 finetune_chat.py --data_path a.jsonl --model_path huggyllama/llama-7b --output_path out \
         --micro_batch 4 --total_batch 128 --log_steps 100 --eval_steps 0 --warmup_ratio 0.05 --save_steps 200 --test_size 0 \
         --prompt_type chat",
    );
    let settings = [
        (Field::TrainType, "qlora"),
        (Field::BaseQuantization, "int8"),
        (Field::MicroBatchSize, "4"),
        (Field::GlobalBatchSize, "128"),
        (Field::SeqLength, "2048"),
        (Field::LoraRank, "8"),
        (Field::LoraTargetModules, "q_proj v_proj k_proj o_proj down_proj gate_proj up_proj"),
        (Field::Fp16, "true"),
    ];
    for (field, expected) in settings {
        assert_eq!(value(&chat, field), expected, "{}", field.name());
    }
    assert!(chat.plan.is_some(), "{:?} {:?}", chat.not_modelled, chat.diagnostics);
    let plain = script(
        "torchrun --nproc_per_node=2 finetune.py --data_path a.jsonl --model_path huggyllama/llama-7b --output_path out \
         --eval_steps 200 --save_steps 200 --test_size 2000",
    );
    assert_eq!(value(&plain, Field::SeqLength), "256");
    assert_eq!(value(&plain, Field::LoraTargetModules), "q_proj v_proj");
    assert_eq!(value(&plain, Field::EvaluationBatchSize), "8");
    // The same options are another program's too: nf4 below its adapters, another batch and optimizer.
    let four = script(
        "torchrun --nproc_per_node=2 finetune_4bit.py --data_path a.jsonl --model_path huggyllama/llama-7b --output_path out \
         --eval_steps 200 --save_steps 200 --test_size 2000",
    );
    assert!(four.plan.is_none());
}

/// Verdicts that one option alone must stop, although others of its program are known to change nothing.
#[test]
fn options_that_change_a_run_stop_it_without_their_program_s_others() {
    let trained = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 \
             --max_seq_length 2048 --bf16 True --output_dir out {more}"
        ))
    };
    assert!(trained("").plan.is_some());
    for option in [
        "--tune_type_llm lora",
        "--training_recipe qlora_int8",
        "--num_queries 64",
        "--alst_sequence_tiling true",
    ] {
        assert_eq!(trained(option).plan, None, "{option}");
    }
    let verl = |more: &str| {
        script(&format!(
            "python -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8 \
             trainer.nnodes=1 data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=1024 \
             actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
             actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \
             actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4 actor_rollout_ref.rollout.name=vllm {more}"
        ))
    };
    assert!(verl("").plan.is_some());
    assert_eq!(verl("agent_proxy.max_turn=5").plan, None);
}

/// shibing624/MedicalGPT: `model.float()` before a training of all weights, and a cast of all that require a gradient before
/// adapters are added for DPO; what is frozen below adapters for samples stays as it was loaded.
#[test]
fn medical_gpt_casts_weights_to_fp32() {
    let of = |program: &str, more: &str| {
        let read = script(&format!(
            "torchrun --nproc_per_node 2 training/{program} --model_name_or_path Qwen/Qwen2.5-0.5B --train_file_dir data \
             --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --torch_dtype bfloat16 --bf16 True {more}"
        ));
        value(&read, Field::ParamsDtype)
    };
    let adapters = "--use_peft True --target_modules all --lora_rank 8";
    let pairs = "--max_source_length 1024 --max_target_length 512";
    assert_eq!(of("supervised_finetuning.py", "--use_peft False --model_max_length 512"), "fp32");
    assert_eq!(of("supervised_finetuning.py", &format!("{adapters} --model_max_length 512")), "bf16");
    assert_eq!(of("dpo_training.py", &format!("{adapters} {pairs}")), "fp32");
    assert_eq!(of("reward_modeling.py", &format!("{adapters} {pairs}")), "bf16");
}
