//! Defaults that changed from one release of a trainer to the next: told by what only some releases take, asked for beside an
//! old sign, and otherwise of the newest, whose note says since when.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::{Severity, Source};

fn resolved(name: &str, text: &str) -> Resolution {
    let source = Source::from_files([(name, text)]);
    let overrides = [("world_size".to_owned(), "8".to_owned())];
    read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

fn note(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).and_then(|setting| setting.note.clone()).unwrap_or_default()
}

fn asks(resolution: &Resolution, field: Field) -> bool {
    resolution.questions.iter().any(|question| question.name() == field.name())
}

/// `megatron_args.py:MegatronArguments` of ms-swift 3.9.0, 3.10.0, 3.12.0 and 4.0.0.
#[test]
fn megatron_of_swift_three_is_told_by_its_options() {
    let command = |options: &str| {
        let text = format!(
            "NPROC_PER_NODE=8 megatron sft {options} --tensor_model_parallel_size 4 --micro_batch_size 1 --max_length 8192\n"
        );
        resolved("sft.sh", &text)
    };
    let fused = Field::CrossEntropyLossFusion;
    let today = command("--model Qwen/Qwen2.5-7B-Instruct --output_dir o");
    assert_eq!(value(&today, fused), "true");
    assert!(note(&today, fused).contains("since 4.0"), "{}", note(&today, fused));
    for old in [
        "--save o",
        "--load a",
        "--max_epochs 1",
        "--num_workers 4",
        "--no_initialization true",
        "--save_interval 9",
    ] {
        let three = command(&format!("--model Qwen/Qwen2.5-7B-Instruct {old}"));
        assert_eq!(value(&three, fused), "false", "{old}");
        let stated =
            command(&format!("--model Qwen/Qwen2.5-7B-Instruct {old} --cross_entropy_loss_fusion true"));
        assert_eq!(value(&stated, fused), "true", "{old}");
    }
}

/// `expert_tensor_parallel_size` of `megatron_args.py`: 1 in ms-swift 3.9.0 to 4.5.2, `None` in 3.8.0 and no option before,
/// where Megatron-LM's default is the tensor parallel size.
#[test]
fn megatron_of_ms_swift_leaves_experts_whole() {
    let command = |options: &str| {
        let text = format!(
            "NPROC_PER_NODE=8 megatron sft {options} --tensor_model_parallel_size 2 --sequence_parallel true --micro_batch_size 1 --max_length 4096\n"
        );
        resolved("sft.sh", &text)
    };
    let cut = Field::ExpertTensorParallelSize;
    let model = "--model Qwen/Qwen3-30B-A3B";
    for experts in ["8", "4"] {
        let today = command(&format!("{model} --expert_model_parallel_size {experts}"));
        assert!(today.plan.is_some(), "{experts}: {:?}", today.diagnostics);
        assert_eq!(value(&today, cut), "1", "{experts}");
        assert!(note(&today, cut).contains("since 3.9"), "{}", note(&today, cut));
    }
    let stated = format!("{model} --expert_model_parallel_size 4 --expert_tensor_parallel_size 2");
    assert_eq!(value(&command(&stated), cut), "2");
    let dense = command("--model Qwen/Qwen2.5-7B-Instruct");
    assert!(dense.plan.is_some() && dense.diagnostics.iter().all(|said| said.severity == Severity::Note));
    // A release without `--model` has either.
    let three = "--load Qwen3-30B-A3B-mcore --save_interval 9 --num_experts 128 --num_layers 48";
    assert!(asks(&command(three), cut));
    assert!(!asks(&command(&format!("{three} --expert_tensor_parallel_size 1")), cut));
}

/// axolotl #2589 of April 29, 2025, in 0.9.1 and not in 0.9.0.
#[test]
fn axolotls_own_kernels_are_asked_for_beside_an_old_key() {
    let file = "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 2048\nmicro_batch_size: 4\nadapter: lora\nlora_r: 16\n\
        lora_alpha: 32\nlora_target_linear: true\nbf16: true\n";
    let kernels = Field::LoraKernels;
    let today = resolved("a.yml", file);
    assert_eq!(value(&today, kernels), "qkv o mlp");
    assert!(note(&today, kernels).contains("since 0.9.1"), "{}", note(&today, kernels));
    for key in ["evaluation_strategy: steps", "is_llama_derived_model: true", "strict: false"] {
        assert!(asks(&resolved("a.yml", &format!("{file}{key}\n")), kernels), "{key}");
        // Without kept tensors of the layers there is next to nothing to ask.
        let recomputed = resolved("a.yml", &format!("{file}{key}\ngradient_checkpointing: true\n"));
        assert!(!asks(&recomputed, kernels), "{key}");
    }
    let off = resolved("a.yml", &format!("{file}strict: false\nlora_mlp_kernel: false\n"));
    assert!(!asks(&off, kernels));
}

/// `ppo_trainer.yaml` of verl 0.3 to 0.7.
#[test]
fn verl_before_july_2025_is_told_by_its_keys() {
    let command = |more: &str| {
        let text = format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=512 data.max_prompt_length=512 \
             data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
             actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 {more}\n"
        );
        let read = resolved("run.sh", &text);
        [Field::Packing, Field::RolloutCudaGraphs, Field::RolloutSequences].map(|field| value(&read, field))
    };
    assert_eq!(command(""), ["true", "true", "256"]);
    for old in [
        "actor_rollout_ref.actor.checkpoint.contents=['model']",
        "actor_rollout_ref.rollout.multi_turn.max_turns=3",
        "actor_rollout_ref.rollout.load_format=dummy_dtensor",
    ] {
        assert_eq!(command(old), ["false", "false", "1024"], "{old}");
    }
    // One that a text adds may be added to any release.
    assert_eq!(command("+actor_rollout_ref.rollout.multi_turn.max_turns=3"), ["true", "true", "256"]);
    let stated =
        "actor_rollout_ref.rollout.multi_turn.max_turns=3 actor_rollout_ref.model.use_remove_padding=True";
    assert_eq!(command(stated), ["true", "false", "1024"]);
}

/// `hparams/model_args.py`, `hparams/data_args.py` and `model/utils/attention.py` of LLaMA-Factory 0.5 to 0.9.1.
#[test]
fn lengths_and_attention_of_llamafactory() {
    let file = "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\nstage: sft\nfinetuning_type: lora\ndataset: d\n\
        template: llama3\nper_device_train_batch_size: 1\nbf16: true\n";
    let (length, attention) = (Field::SeqLength, Field::AttnImplementation);
    let today = resolved("a.yaml", file);
    assert_eq!(value(&today, length), "2048");
    assert!(note(&today, length).contains("since 0.9.1"), "{}", note(&today, length));
    let old = resolved("a.yaml", &format!("{file}flash_attn: \"off\"\n"));
    assert_eq!([value(&old, length), value(&old, attention)], ["1024", "eager"]);
    let later = resolved("a.yaml", &format!("{file}flash_attn: disabled\n"));
    assert_eq!([value(&later, length), value(&later, attention)], ["2048", "eager"]);
    let command = |more: &str| {
        let text = format!(
            "deepspeed --num_gpus 8 src/train_bash.py --stage sft --do_train --model_name_or_path meta-llama/Llama-2-7b-hf \
             --dataset d --template default --finetuning_type lora --lora_target q_proj,v_proj --output_dir o \
             --per_device_train_batch_size 4 --bf16 {more}\n"
        );
        resolved("run.sh", &text)
    };
    assert!(asks(&command(""), attention));
    assert!(!asks(&command("--flash_attn auto"), attention));
    assert_eq!(value(&command("--flash_attn"), attention), "flash_attention_2");
    assert_eq!(value(&command("--flash_attn off"), attention), "eager");
    assert_eq!(value(&command(""), Field::LoraDropout), "0");
    assert_eq!(value(&command("--checkpoint_dir a"), Field::LoraDropout), "0.1");
}

/// `openrlhf/cli/train_ppo_ray.py` of 0.6 to 0.11.
#[test]
fn batches_of_openrlhfs_old_names() {
    let command = |more: &str| {
        let text = format!(
            "ray job submit -- python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 --ref_num_gpus_per_node 8 \
             --reward_num_nodes 1 --reward_num_gpus_per_node 8 --actor_num_nodes 1 --actor_num_gpus_per_node 8 \
             --vllm_num_engines 4 --vllm_tensor_parallel_size 2 --colocate_all_models --pretrain meta-llama/Llama-3.1-8B \
             --reward_pretrain meta-llama/Llama-3.1-8B --advantage_estimator reinforce --prompt_max_len 1024 \
             --generate_max_len 1024 --flash_attn --zero_stage 3 --train_batch_size 128 {more}\n"
        );
        let read = resolved("run.sh", &text);
        [Field::MicroBatchSize, Field::RlRewardMicroBatch].map(|field| value(&read, field))
    };
    assert_eq!(command("--bf16"), ["4", "8"]);
    // 0.10 alone has it beside the old names.
    assert_eq!(command("--param_dtype bf16"), ["1", "1"]);
    assert_eq!(command("--bf16 --micro_train_batch_size 2 --micro_rollout_batch_size 3"), ["2", "3"]);
}

/// `swift/llm/argument/rlhf_args.py` and `swift/trainers/rlhf_trainer/grpo_trainer.py` of ms-swift 3.3.0.
#[test]
fn an_engine_of_swift_three_has_a_device_of_its_own() {
    let command = |more: &str| {
        let text = format!(
            "NPROC_PER_NODE=7 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --train_type full --torch_dtype bfloat16 \
             --use_vllm true --max_length 4096 --max_completion_length 1024 --num_generations 7 \
             --per_device_train_batch_size 1 --deepspeed zero3 {more}\n"
        );
        value(&resolved("run.sh", &text), Field::RolloutGpus)
    };
    assert_eq!(command("--vllm_device auto --num_infer_workers 1"), "1");
    assert_eq!(command("--vllm_device auto"), "1");
    assert_eq!(command("--num_infer_workers 8"), "");
    assert_eq!(command("--vllm_mode colocate"), "");
}

/// PEFT 0.21, `utils/constants.py`.
#[test]
fn modules_that_peft_adapts_by_itself() {
    let targets = |model: &str| {
        let text = format!(
            "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\nfrom peft import LoraConfig, get_peft_model\n\
             model = AutoModelForCausalLM.from_pretrained(\"{model}\")\nmodel = get_peft_model(model, LoraConfig(r=16))\n\
             args = TrainingArguments(output_dir=\"o\", per_device_train_batch_size=2, bf16=True)\n\
             trainer = Trainer(model=model, args=args, train_dataset=d)\ntrainer.train()\n"
        );
        let source = Source::from_files([("train.py", text.as_str())]);
        let overrides = [("world_size", "1"), ("seq_length", "1024")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let read =
            read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
        let asked = asks(&read, Field::LoraTargetModules);
        if asked { "asked".to_owned() } else { value(&read, Field::LoraTargetModules) }
    };
    assert_eq!(targets("Qwen/Qwen2.5-7B-Instruct"), "q_proj v_proj");
    assert_eq!(targets("microsoft/phi-2"), "q_proj v_proj fc1 fc2");
    for without in ["microsoft/Phi-3-mini-4k-instruct", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V2-Lite"]
    {
        assert_eq!(targets(without), "asked", "{without}");
    }
}

#[test]
fn a_program_started_by_uv_is_one() {
    let text = |first: &str| {
        format!(
            "{first}# /// script\n# dependencies = [\"trl==0.23.0\"]\n# ///\nfrom trl import SFTConfig, SFTTrainer\n\
             args = SFTConfig(output_dir=\"o\", per_device_train_batch_size=3)\n\
             SFTTrainer(model=\"Qwen/Qwen2.5-7B-Instruct\", args=args, train_dataset=d).train()\n"
        )
    };
    for first in ["", "#!/usr/bin/env -S uv run\n", "#!/usr/bin/env -S uv run --script\n"] {
        assert_eq!(value(&resolved("train.py", &text(first)), Field::MicroBatchSize), "3", "{first}");
    }
}

/// `training_args.py` of transformers 5.9.0 and 5.10.0.
#[test]
fn the_version_of_fsdp_by_its_words_is_said() {
    let text = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct --output_dir o --bf16 True \
        --per_device_train_batch_size 1 --num_train_epochs 1 --model_max_length 2048 --fsdp \"full_shard auto_wrap\"\n";
    let read = resolved("run.sh", text);
    assert_eq!(value(&read, Field::DataParallelEngine), "fsdp1");
    let said = note(&read, Field::DataParallelEngine);
    assert!(said.contains("since 5.10"), "{said}");
}
