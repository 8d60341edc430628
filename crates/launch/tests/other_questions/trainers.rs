//! Trainers of transformers and custom trainers.

use super::{said, script, stopped, value};
use shardscope_launch::Asked;
use shardscope_plan::Field;

#[test]
fn what_a_trainer_spreads_or_trains_otherwise_is_not_taken_for_data_parallelism() {
    let swift = "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --max_length 2048 --learning_rate 1e-4 \
        --gradient_accumulation_steps 8 --per_device_train_batch_size 1";
    // One process over two devices, and two processes over four.
    stopped(&script(&format!("CUDA_VISIBLE_DEVICES=0,1 {swift}")), &["CUDA_VISIBLE_DEVICES"]);
    stopped(
        &script(&format!("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 {swift}")),
        &["CUDA_VISIBLE_DEVICES"],
    );
    let each = script(&format!("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 {swift}"));
    assert_eq!(value(&each, Field::WorldSize), "2");
    assert!(each.plan.is_some(), "{:?}", each.diagnostics);
    stopped(
        &script(&format!("CUDA_VISIBLE_DEVICES=0 {swift} --lisa_activated_layers 2")),
        &["lisa_activated_layers"],
    );
    stopped(&script(&format!("CUDA_VISIBLE_DEVICES=0 {swift} --tuner_backend unsloth")), &["tuner_backend"]);
}

#[test]
fn a_file_of_a_preference_training_is_none_of_samples() {
    let file = |more: &str| {
        format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 5e-7\nbf16: true\n\
             max_length: 1024\nbeta: 0.01\nmax_prompt_length: 512\n\
             gradient_checkpointing: true\n{more}\n"
        )
    };
    let read = |more: &str| said("config.yaml", &file(more), &[("zero_stage", "0"), ("world_size", "8")]);
    // The file's names indicate the trainer, or it is asked for; TRL's other trainers hold more than is modelled.
    assert_eq!(value(&read("output_dir: data/zephyr-7b-dpo-full"), Field::TrainingObjective), "dpo");
    stopped(&read("output_dir: data/zephyr-rloo-141b"), &["trainer"]);
    assert_eq!(value(&read("output_dir: data/zephyr-orpo-141b"), Field::PreferenceLogits), "orpo");
    let open = read("output_dir: data/out");
    assert!(open.plan.is_none());
    let asked = open.questions.iter().find(|question| question.name() == "training_objective");
    assert_eq!(asked.expect("a question").proposal.as_deref(), Some("dpo"));
    let answered = [("zero_stage", "0"), ("world_size", "8"), ("training_objective", "dpo")];
    assert!(said("config.yaml", &file(""), &answered).plan.is_some());
}

#[test]
fn heads_predictions_and_quantized_checkpoints_are_distinguished_from_trainings_of_the_model() {
    let axolotl =
        "base_model: google/gemma-2-2b\nsequence_len: 2048\nmicro_batch_size: 2\nlearning_rate: 1e-5\n";
    stopped(
        &said("a.yaml", &format!("{axolotl}process_reward_model: true\n"), &[]),
        &["process_reward_model"],
    );
    let classifies = format!("{axolotl}model_type: AutoModelForSequenceClassification\n");
    stopped(&said("a.yaml", &classifies, &[]), &["model_type"]);
    assert!(said("a.yaml", &format!("{axolotl}model_type: LlamaForCausalLM\n"), &[]).not_modelled.is_empty());
    let predicts =
        "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: lora\ndo_predict: true\ncutoff_len: 2048\n";
    stopped(&said("p.yaml", predicts, &[]), &["do_predict"]);
    let tuned = |model: &str| {
        let text = format!(
            "model_name_or_path: {model}\nfinetuning_type: lora\ndo_train: true\ncutoff_len: 2048\nbf16: true\n\
             per_device_train_batch_size: 1\n"
        );
        said("t.yaml", &text, &[("world_size", "1")])
    };
    stopped(&tuned("TechxGenus/Meta-Llama-3-8B-Instruct-GPTQ"), &["model_name_or_path"]);
    // In a dynamic one some layers are not quantized; its own configuration says which.
    let open = tuned("unsloth/Qwen3-8B-unsloth-bnb-4bit");
    let asked = open.questions.iter().find(|asked| asked.asks == Asked::Setting(Field::WholeLinears));
    let address = "https://huggingface.co/unsloth/Qwen3-8B-unsloth-bnb-4bit/blob/main/config.json";
    assert!(open.plan.is_none() && asked.expect("a question").prompt.contains(address));
    let nf4 = tuned("unsloth/Qwen3-8B-bnb-4bit");
    let shown = [Field::BaseQuantization, Field::TrainType, Field::NumLayers].map(|field| value(&nf4, field));
    assert_eq!(shown, ["nf4", "qlora", "36"]);
}

#[test]
fn a_trainers_own_command_is_its_program_whatever_files_its_options_name() {
    let swift = "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B-Instruct \
        --external_plugins examples/plugin/plugin.py --tuner_type full --use_vllm true --vllm_mode colocate \
        --vllm_max_model_len 4096 --max_completion_length 1024 --num_generations 8 --gradient_accumulation_steps 1 \
        --per_device_train_batch_size 8 --torch_dtype bfloat16";
    let read = script(swift);
    assert_eq!([Field::RlFramework, Field::WorldSize].map(|field| value(&read, field)), ["swift", "2"]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let megatron = swift.replace("swift rlhf", "megatron rlhf");
    stopped(&script(&megatron), &["--rlhf-type"]);
    // Its loss and its command are of the same training, which is named once.
    let once = script(&format!("{megatron} --loss_type sapo")).not_modelled;
    assert_eq!(once.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["--rlhf-type"]);
}

#[test]
fn trainers_whose_modules_are_their_own_stop_the_verdict() {
    let core = "torchrun --nproc_per_node 8 open_instruct/dpo.py --model_name_or_path Qwen/Qwen2.5-7B --max_seq_length 2048 \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 1";
    stopped(&script(core), &["program"]);
}

#[test]
fn deepspeed_chat_is_read_by_its_own_words() {
    let text = |more: &str| {
        format!(
            "ZERO_STAGE=$2\ndeepspeed --num_gpus 8 main.py --data_split 2,4,4 --model_name_or_path Qwen/Qwen2.5-7B \
             --per_device_train_batch_size 8 --max_seq_len 512 --gradient_accumulation_steps 1 --num_train_epochs 1 \
             --lr_scheduler_type cosine --deepspeed --data_path Dahoas/rm-static {more}\n"
        )
    };
    let tuned = script(&text("--zero_stage 3 --offload --gradient_checkpointing"));
    let shown = [Field::ZeroStage, Field::DataParallelEngine, Field::OffloadParam, Field::Fp16]
        .map(|field| value(&tuned, field));
    assert_eq!(shown, ["3", "deepspeed", "true", "true"]);
    assert!(!tuned.questions.iter().any(|question| question.name() == "zero_stage"));
    assert_eq!(value(&script(&text("--zero_stage 2 --dtype bf16")), Field::Bf16), "true");
    // An argument of the script is asked for by its own name.
    let open = script(&text("--zero_stage $ZERO_STAGE"));
    assert!(open.questions.iter().any(|question| question.name() == "$2"), "{:?}", open.questions);
    stopped(&script(&text("--zero_stage 2 --lora_dim 128")), &["lora_dim"]);
    stopped(&script(&text("--zero_stage 2 --num_padding_at_beginning 1")), &["num_padding_at_beginning"]);
    // A bare switch leaves the stage to the program.
    let bare = script(&text(""));
    let asked = bare.questions.iter().find(|question| question.name() == "zero_stage").expect("a question");
    assert!(asked.prompt.contains("the program"), "{}", asked.prompt);
}

#[test]
fn trainers_that_are_not_modelled_are_named() {
    stopped(
        &script(
            "colossalai run --nproc_per_node 8 train.py --pretrained Qwen/Qwen2.5-7B --plugin zero2 --micro_batch_size 8",
        ),
        &["program"],
    );
    let prime = "[model]\nname = \"Qwen/Qwen2.5-7B\"\n[data]\nname = \"a\"\nseq_len = 1024\nbatch_size = 64\n\
                 micro_batch_size = 1\n[optim]\nlr = 1e-5\n[deployment]\nnum_train_gpus = 2\n";
    let read = said("sft.toml", prime, &[]);
    stopped(&read, &["compiled_checkpoints"]);
    assert_eq!([Field::WorldSize, Field::SeqLength].map(|field| value(&read, field)), ["2", "1024"]);
    // A command of which nothing is known does stop.
    stopped(&script("deepspeed train_x.py --job_name a --deepspeed --print_steps 100"), &["program"]);
}

#[test]
fn llama_cookbook_is_read_by_its_own_words() {
    let tuned = |launch: &str, more: &str| {
        script(&format!(
            "{launch} --use_peft --peft_method lora --model_name meta-llama/Llama-3.1-8B --batch_size_training 2 {more}"
        ))
    };
    let sharded =
        tuned("torchrun --nnodes 1 --nproc_per_node 8 finetuning.py", "--enable_fsdp --context_length 2048");
    // The key that names the model was listed among those without influence.
    assert!(sharded.diagnostics.iter().all(|said| !said.message.contains("model_name")));
    let shown = [Field::DataParallelEngine, Field::ZeroStage, Field::GradientCheckpointing, Field::TrainType]
        .map(|field| value(&sharded, field));
    assert_eq!(shown, ["fsdp1", "3", "true", "lora"]);
    let shown = [Field::LoraRank, Field::LoraTargetModules, Field::SeqLength, Field::UseCache]
        .map(|field| value(&sharded, field));
    assert_eq!(shown, ["8", "q_proj v_proj", "2048", "false"]);
    assert!(sharded.plan.is_some(), "{:?}", sharded.diagnostics);
    let alone = tuned("python -m llama_recipes.finetuning", "--quantization 8bit");
    let shown = [Field::BaseQuantization, Field::GradientCheckpointing, Field::UseCache, Field::SeqLength]
        .map(|field| value(&alone, field));
    assert_eq!(shown, ["int8", "false", "true", "4096"]);
    stopped(&tuned("python -m llama_recipes.finetuning", "--peft_method llama_adapter"), &["peft_method"]);
    stopped(
        &tuned("torchrun --nproc_per_node 8 finetuning.py", "--enable_fsdp --fsdp_config.hsdp"),
        &["fsdp_config.hsdp"],
    );
}

#[test]
fn groups_and_tasks_that_change_what_is_trained_stop_the_verdict() {
    let axolotl = |more: &str| {
        let text = format!(
            "base_model: Qwen/Qwen3-8B\nsequence_len: 2048\nmicro_batch_size: 1\nlearning_rate: 1e-5\nbf16: true\n{more}\n"
        );
        said("a.yaml", &text, &[("world_size", "8")])
    };
    assert!(axolotl("").plan.is_some());
    stopped(&axolotl("qat:\n  weight_dtype: nvfp4\n  group_size: 16"), &["qat"]);
    stopped(&axolotl("diffusion:\n  num_diffusion_steps: 128"), &["diffusion"]);
    stopped(&axolotl("fused_attn_kernel: true"), &["fused_attn_kernel"]);
    let megatron = |task: &str| {
        script(&format!(
            "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --tuner_type full --task_type {task} --micro_batch_size 1 \
             --global_batch_size 16 --max_length 2048 --bf16 true"
        ))
    };
    assert!(megatron("causal_lm").not_modelled.is_empty());
    stopped(&megatron("embedding"), &["task-type"]);
}

#[test]
fn commands_and_options_that_were_read_past_stop_the_verdict() {
    let command = |program: &str, more: &str| {
        script(&format!(
            "torchrun --nnodes 1 --nproc_per_node 8 {program} --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 \
             --gradient_accumulation_steps 1 --learning_rate 2e-5 --bf16 --block_size 512 --zero_stage 2 {more}\n"
        ))
    };
    // Only the options make the difference.
    let plain = command("examples/finetune.py", "");
    assert!(plain.not_modelled.is_empty(), "{:?}", plain.not_modelled);
    assert!(command("examples/finetune.py", "--use_customized_optim 0").not_modelled.is_empty());
    stopped(&command("examples/finetune.py", "--use_customized_optim 1"), &["use_customized_optim"]);
    stopped(&command("examples/raft_align.py", "--raft_batch_size 1024"), &["raft_batch_size"]);
    stopped(&command("main.py", "--vision_model_name_or_path openai/clip"), &["vision_model_name_or_path"]);
    for subcommand in ["app", "web-ui", "rollout"] {
        let line = format!("CUDA_VISIBLE_DEVICES=0 swift {subcommand} --model Qwen/Qwen3-8B --stream true\n");
        stopped(&script(&line), &["program"]);
    }
}

#[test]
fn unknown_options_that_tell_of_what_trains_stop_the_verdict() {
    let run = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 4 train.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 True --model_max_length 2048 \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 16 {more}"
        ))
    };
    for option in [
        "medusa_num_heads 1",
        "pre_seq_len 128",
        "freeze_backbone 1",
        "teacher_path x",
        "use_llm_lora 16",
        "top_entropy_quantile 0.2",
    ] {
        let name = option.split(' ').next().unwrap_or_default();
        stopped(&run(&format!("--{option}")), &[name]);
    }
    // Switched off, or with another name: ignored, the last one with a mark.
    for option in [
        "sequence_parallel_degrees 1",
        "freeze_backbone False",
        "bnb_4bit_quant_storage bfloat16",
        "max_eval_new_tokens 256",
    ] {
        let read = run(&format!("--{option}"));
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{option}: {:?}", read.not_modelled);
    }
}

#[test]
fn a_script_of_anybodys_names_its_model_by_any_usual_option() {
    for option in ["model_name", "pretrained_model", "base_model_path", "model_id", "model_path"] {
        let run = script(&format!(
            "torchrun --nproc-per-node 8 train/sft.py --block_size=8192 --per_device_train_batch_size=1 --bf16=True \
             --gradient_accumulation_steps=1 --{option}=Qwen/Qwen2.5-7B-Instruct --learning_rate=1e-5 --warmup_steps=50"
        ));
        assert!(run.plan.is_some(), "{option}: {:?}", run.diagnostics);
        assert_eq!(value(&run, Field::NumLayers), "28", "{option}");
    }
}

/// TRL's GRPO recognised by its keys, if no name indicates the program: it was offered as DPO.
#[test]
fn several_completions_of_a_prompt_are_rollouts() {
    let text = "model_name_or_path: Qwen/Qwen2.5-3B-Instruct\ndtype: bfloat16\nbf16: true\nper_device_train_batch_size: 1\n\
        gradient_accumulation_steps: 8\nlearning_rate: 5e-7\nbeta: 0.001\nmax_prompt_length: 256\nmax_completion_length: 1024\n\
        num_generations: 8\nuse_vllm: true\nvllm_mode: colocate\noutput_dir: runs/countdown\n";
    let read = said("grpo.yaml", text, &[("world_size", "8")]);
    assert_eq!(
        (value(&read, Field::TrainingObjective), value(&read, Field::SeqLength)),
        ("policy".into(), "1280".into())
    );
    assert!(read.questions.iter().all(|question| question.name() != "training_objective"));
    // RLOO's beta is not 0 by default, so there is a reference next to the policy.
    let rloo = text.replace("runs/countdown", "runs/rloo-1").replace("beta: 0.001\n", "");
    let read = said("r.yaml", &rloo, &[("world_size", "8")]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::RlReference), "device");
    let bare = text.replace("beta: 0.001\n", "");
    // The limit of prompts belongs to releases with a reference and without one.
    assert_eq!(value(&said("g.yaml", &bare, &[]), Field::RlReference), "");
    let bare = bare.replace("max_prompt_length: 256\n", "");
    assert_eq!(value(&said("g.yaml", &bare, &[]), Field::RlReference), "none");
}

/// TRL's `examples/scripts/rloo.py`, shortened, and its command: two completions per prompt and a reference by default.
#[test]
fn rloo_of_trl_is_read() {
    let program = "from trl import RLOOConfig, RLOOTrainer\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n\
        args = RLOOConfig(output_dir='o', max_completion_length=256, per_device_train_batch_size=4)\n\
        trainer = RLOOTrainer(model=model, args=args, reward_funcs=f, train_dataset=d)\ntrainer.train()\n";
    let command = "trl rloo --model_name_or_path Qwen/Qwen3-0.6B --max_completion_length 256 --per_device_train_batch_size 4\n";
    let set = [("world_size", "1"), ("seq_length", "768")];
    for (name, text) in [("rloo.py", program), ("run.sh", command)] {
        let read = said(name, text, &set);
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{name}: {:?}", read.not_modelled);
        let shown = [Field::TrainingObjective, Field::RolloutsPerPrompt, Field::RlReference, Field::LossKind];
        assert_eq!(
            shown.map(|field| value(&read, field)),
            ["policy", "2", "device", "fused_tiles"],
            "{name}"
        );
    }
    assert_eq!(
        value(&said("r.py", &program.replace("='o'", "='o', beta=0.0"), &set), Field::RlReference),
        "none"
    );
    // An option of the releases that had a reward model next to it.
    stopped(&said("r.py", &program.replace("='o'", "='o', rloo_k=4"), &set), &["rloo_k"]);
}

/// Adapter keywords written as dictionaries or ranges, which were formerly ignored.
#[test]
fn adapters_of_some_layers_stop_however_they_are_written() {
    let with = |more: &str| {
        let text = format!(
            "from trl import SFTConfig, SFTTrainer\nfrom peft import LoraConfig\nfew = {{}}\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n\
             args = SFTConfig(max_length=1024, per_device_train_batch_size=2)\n\
             peft = LoraConfig(r=8, target_modules='all-linear', task_type='CAUSAL_LM'{more})\n\
             trainer = SFTTrainer(model=model, args=args, peft_config=peft)\ntrainer.train()\n"
        );
        said("lora.py", &text, &[("world_size", "1")])
    };
    for (more, name) in [
        (", rank_pattern={'q_proj': 64}", "rank_pattern"),
        (", layers_to_transform=list(range(8))", "layers_to_transform"),
        (", target_parameters=names", "target_parameters"),
    ] {
        stopped(&with(more), &[name]);
    }
    for more in
        ["", ", rank_pattern={}", ", rank_pattern=few", ", layers_to_transform=None, exclude_modules=[]"]
    {
        let read = with(more);
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{more}: {:?}", read.not_modelled);
    }
    stopped(&with(", use_dora=choice()"), &["use_dora"]);
}

/// `configs/train_configs/sft/tulu3_8b_preview_mix_v3.9-noncommercial.yaml` of allenai/open-instruct was read with
/// TRL's defaults.
#[test]
fn a_file_of_open_instruct_has_its_own_defaults() {
    let file = |more: &str| {
        let text = format!(
            "model_name_or_path: meta-llama/Llama-3.1-8B\ntokenizer_name: meta-llama/Llama-3.1-8B\nuse_slow_tokenizer: true\n\
             max_seq_length: 4096\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nlearning_rate: 5.0e-06\n\
             with_tracking: true\ncheckpointing_steps: 1000\n{more}"
        );
        said("sft.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    let shown = |of: &shardscope_launch::Resolution| {
        [Field::ParamsDtype, Field::GradientCheckpointing, Field::TrainingObjective, Field::ReferenceModel]
            .map(|field| value(of, field))
    };
    let plain = file("");
    assert!(plain.plan.is_some(), "{:?}", plain.diagnostics);
    assert_eq!(shown(&plain)[..2], ["bf16", "false"]);
    assert_eq!(shown(&file("loss_type: dpo_norm\nbeta: 5\n"))[2..], ["dpo", "precomputed"]);
}

/// `scripts/run_finetune_with_lora.sh` of OptimalScale/LMFlow was estimated as a full training with checkpointing.
#[test]
fn switches_are_read_as_numbers_too() {
    let text = |switch: &str| {
        script(&format!(
            "deepspeed --num_gpus 8 examples/finetune.py --model_name_or_path meta-llama/Llama-3.2-3B-Instruct --block_size 512 \
             --use_lora {switch} --lora_r 8 --gradient_checkpointing {switch} --per_device_train_batch_size 1 --bf16 \
             --gradient_accumulation_steps 1"
        ))
    };
    let shown = |of| [Field::TrainType, Field::GradientCheckpointing].map(|field| value(&text(of), field));
    assert_eq!(shown("1"), ["lora", "true"]);
    assert_eq!(shown("0"), ["full", "false"]);
}
