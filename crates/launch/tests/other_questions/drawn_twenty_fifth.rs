//! Misreadings found in the answers to the twenty-fifth draw of public files.

use super::{said, script, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::{Field, LinearModule};
use shardscope_source::Source;

fn files(texts: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(texts.iter().copied());
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

/// The settings of TRL that leave to the launch what ranks shard.
const ALONE: &str = "model_name_or_path: Qwen/Qwen2.5-7B\ntorch_dtype: bfloat16\ndataset_name: a/b\nmax_length: 2048\nbf16: true\n\
    gradient_checkpointing: true\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 4\n";

/// Swallow's gpt-oss-recipes, open-r1, X-R1, QualityDPO: an answered stage of ZeRO set no engine, so that Adam's states were counted in
/// bf16 without main parameters, a third of what DeepSpeed holds.
#[test]
fn an_answered_stage_of_zero_is_deepspeeds() {
    let of = |text: &str, stage: &str| {
        let read = said("sft.yaml", text, &[("zero_stage", stage), ("world_size", "8")]);
        assert!(read.plan.is_some(), "{:?} {:?}", read.questions, read.diagnostics);
        [Field::DataParallelEngine, Field::ReduceBucketSize].map(|field| value(&read, field))
    };
    for stage in ["1", "2", "3"] {
        // accelerate's own file states no bucket, and DeepSpeed's default holds.
        assert_eq!(of(ALONE, stage), ["deepspeed", "500000000"], "{stage}");
    }
    assert_eq!(of(ALONE, "0"), ["", ""]);
    let remarked = format!("# 16 nodes of 8 H100s with FSDP1\n{ALONE}");
    assert_eq!(of(&remarked, "3"), ["fsdp1", ""]);
    // LLaMA-Factory's examples name the launch of FSDP in a remark; its other files ask nothing.
    let own = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nlora_target: all\ncutoff_len: 2048\n\
        per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\ntemplate: qwen\ndataset: a\n";
    let launched = format!(
        "# accelerate launch --config_file examples/accelerate/fsdp2_config.yaml src/train.py this.yaml\n{own}"
    );
    let asks = |text: &str| {
        let read = said("sft.yaml", text, &[("world_size", "8")]);
        read.questions.iter().map(|asked| asked.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(asks(&launched), ["zero_stage"]);
    assert_eq!(of(&launched, "3"), ["fsdp2", ""]);
    assert!(asks(own).is_empty());
    // A launch that names a file whose name tells no engine.
    let line = "accelerate launch --num_processes 8 --config_file configs/default.yaml train.py --model_name_or_path Qwen/Qwen2.5-7B \
        --max_length 2048 --per_device_train_batch_size 2 --bf16 --output_dir o\n";
    let read = said("run.sh", line, &[("zero_stage", "3")]);
    assert_eq!(value(&read, Field::DataParallelEngine), "deepspeed");
}

/// yenhao-huang/vlm-sft-ocr `sft_mistral.py`: arguments of a configuration that is written in the trainer's call were taken for the
/// trainer's own of early TRL, whose models transformers 4 loads in fp32.
#[test]
fn keywords_of_a_configuration_in_the_call_are_not_the_trainers() {
    let head = "from trl import SFTConfig, SFTTrainer\n";
    let nested = format!(
        "{head}trainer = SFTTrainer(\n    model='Qwen/Qwen2.5-7B',\n    args=SFTConfig(\n        max_length=2048,\n        packing=False,\n        \
         dataset_text_field='text',\n        per_device_train_batch_size=2,\n    ),\n    processing_class=tokenizer,\n    train_dataset=data,\n)\n\
         trainer.train()\n"
    );
    let apart = format!(
        "{head}args = SFTConfig(max_length=2048, packing=False, dataset_text_field='text', per_device_train_batch_size=2)\n\
         trainer = SFTTrainer(model='Qwen/Qwen2.5-7B', args=args, processing_class=tokenizer, train_dataset=data)\ntrainer.train()\n"
    );
    let fields = [Field::ParamsDtype, Field::Bf16, Field::GradientCheckpointing];
    let [nested, apart] = [nested, apart].map(|text| {
        let read = said("sft.py", &text, &[("world_size", "1")]);
        fields.map(|field| value(&read, field))
    });
    assert_eq!(nested, apart);
    assert_eq!(nested[1], "true", "on by default in today's TRL");
    // The trainer's own tell an early release still.
    let early = format!(
        "{head}trainer = SFTTrainer(model='Qwen/Qwen2.5-7B', args=SFTConfig(per_device_train_batch_size=2), max_seq_length=2048, \
         dataset_text_field='text', train_dataset=data)\ntrainer.train()\n"
    );
    assert_eq!(value(&said("sft.py", &early, &[("world_size", "1")]), Field::ParamsDtype), "fp32");
}

/// knoveleng/open-rs: with the program pasted beside the command, not one value of the settings file was used.
#[test]
fn the_settings_file_that_a_programs_line_names_are_the_programs_options() {
    let program = "from trl import SFTConfig, SFTTrainer, ModelConfig, ScriptArguments, TrlParser\n\
        parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))\nscript_args, training_args, model_args = parser.parse_args_and_config()\n\
        trainer = SFTTrainer(model=model_args.model_name_or_path, args=training_args, train_dataset=data)\ntrainer.train()\n";
    let line =
        |more: &str| format!("torchrun --nproc_per_node 8 train/sft.py --config recipes/own.yaml{more}\n");
    let settings = format!("{ALONE}gradient_checkpointing_kwargs:\n  use_reentrant: true\nlr: 1e-5\n");
    let fields = [
        Field::HiddenSize,
        Field::SeqLength,
        Field::MicroBatchSize,
        Field::NumMicroBatches,
        Field::WorldSize,
        Field::ReentrantCheckpoints,
    ];
    let of = |more: &str| {
        let read = files(&[("run.sh", &line(more)), ("sft.py", program), ("own.yaml", &settings)]);
        assert!(read.plan.is_some(), "{:?} {:?}", read.questions, read.diagnostics);
        assert!(
            read.diagnostics.iter().all(|said| !said.message.contains("--config")),
            "{:?}",
            read.diagnostics
        );
        fields.map(|field| value(&read, field))
    };
    assert_eq!(of(""), ["3584", "2048", "1", "4", "8", "true"]);
    // The line's own words win, before the file's or behind.
    assert_eq!(
        of(" --max_length 1024 --per_device_train_batch_size 2"),
        ["3584", "1024", "2", "4", "8", "true"]
    );
    let first = line("").replace("--config", "--max_length 512 --config");
    let read = files(&[("run.sh", &first), ("sft.py", program), ("own.yaml", &settings)]);
    assert_eq!(value(&read, Field::SeqLength), "512");
}

/// rlorigro/verl-tool `train_mimo_7b.sh`: `free_cache_engine=False` kept the engine beside training, which verl's engine of the text's
/// release does not heed.
#[test]
fn verls_engine_slept_whatever_the_switch_said_until_july_2025() {
    let of = |more: &str| {
        let read = script(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
             data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        ));
        value(&read, Field::RolloutSleep)
    };
    let off = "actor_rollout_ref.rollout.free_cache_engine=False";
    assert_eq!(of(off), "false");
    assert_eq!(of(&format!("{off} actor_rollout_ref.actor.checkpoint.contents=['model']")), "true");
    // Files of before April 2025 may run vLLM 0.6.3, where it acts.
    assert_eq!(of(&format!("{off} actor_rollout_ref.actor.fsdp_config.grad_offload=False")), "false");
}

/// ms-swift's `examples/train/cached_dataset/mcore.sh`: under Megatron experts are linear layers, which `all-linear` names; and its
/// command has no dropout in any release.
#[test]
fn all_linear_layers_of_ms_swifts_megatron_have_experts_among_them() {
    let text = "NPROC_PER_NODE=4 megatron sft --model Qwen/Qwen3-30B-A3B --tuner_type lora --lora_rank 8 --target_modules all-linear \
        --expert_model_parallel_size 4 --moe_grouped_gemm true --micro_batch_size 1 --global_batch_size 16 --max_length 2048";
    let read = script(text);
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?}", read.diagnostics));
    let lora = plan.recipe().tuning.lora.expect("adapters");
    assert!(lora.modules.reach_experts(), "{:?}", lora.modules);
    assert_eq!([Field::HiddenDropout, Field::AttentionDropout].map(|field| value(&read, field)), ["0", "0"]);
}

/// LLaMA-Factory `examples/ascend/qwen3_5moe_lora_sft_fsdp2.yaml`: it requires PEFT 0.18, which does not know experts as the linear
/// layers that they were.
#[test]
fn llama_factorys_adapters_leave_experts_as_they_are() {
    let text = "model_name_or_path: deepseek-ai/DeepSeek-V2-Lite\nstage: sft\nfinetuning_type: lora\nlora_target: all\nlora_rank: 8\n\
        cutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\ntemplate: qwen\ndataset: a\n";
    let read = said("sft.yaml", text, &[("world_size", "1")]);
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.questions, read.diagnostics));
    let lora = plan.recipe().tuning.lora.expect("adapters");
    // Those of the shared experts remain.
    assert!(
        !lora.modules.has(LinearModule::Experts) && lora.modules.has(LinearModule::Gate),
        "{:?}",
        lora.modules
    );
    // Another trainer's PEFT knows them.
    let apart = ALONE.replace("Qwen/Qwen2.5-7B", "deepseek-ai/DeepSeek-V2-Lite");
    let apart = format!("{apart}use_peft: true\nlora_target_modules: [gate_proj, up_proj, down_proj]\n");
    let read = said("sft.yaml", &apart, &[("zero_stage", "0"), ("world_size", "1")]);
    let plan = read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.questions, read.diagnostics));
    assert!(plan.recipe().tuning.lora.expect("adapters").modules.has(LinearModule::Experts));
}

/// NeMo 1 `llama2_13b.yaml`: `cfg.get('apply_rope_fusion', False)`.
#[test]
fn nemo_one_does_not_fuse_the_rotation_unless_it_is_told_to() {
    let text = "trainer:\n  num_nodes: 1\n  devices: 8\n  precision: bf16\nmodel:\n  mcore_gpt: true\n  micro_batch_size: 1\n  \
        global_batch_size: 16\n  encoder_seq_length: 2048\n  num_layers: 4\n  hidden_size: 1024\n  num_attention_heads: 8\n  position_embedding_type: rope\n";
    assert_eq!(value(&said("a.yaml", text, &[]), Field::ApplyRopeFusion), "false");
    assert_eq!(
        value(&said("a.yaml", &format!("{text}  apply_rope_fusion: true\n"), &[]), Field::ApplyRopeFusion),
        "true"
    );
}

/// unslothai/notebooks `nb/AMD-*.ipynb`: the metadata of Colab's copy, a T4, stood beside ROCm's packages.
#[test]
fn notebooks_for_amds_cloud_keep_colabs_metadata() {
    let beside = |sentence: &str, install: &str| {
        let cells = [
            format!("!pip install {install}"),
            "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\n\
             model, tokenizer = FastLanguageModel.from_pretrained('unsloth/Llama-3.2-1B-Instruct', max_seq_length=2048, load_in_4bit=True)\n\
             model = FastLanguageModel.get_peft_model(model, r=16, target_modules=['q_proj', 'v_proj'], lora_alpha=16, lora_dropout=0)\n\
             trainer = SFTTrainer(model=model, tokenizer=tokenizer, train_dataset=data, args=SFTConfig(per_device_train_batch_size=2, \
             gradient_accumulation_steps=4, optim='adamw_8bit'))\ntrainer.train()\n"
                .to_owned(),
        ];
        let cells: Vec<String> = cells
            .iter()
            .map(|text| {
                let text = text.replace('\n', "\\n").replace('"', "\\\"");
                format!("{{\"cell_type\": \"code\", \"metadata\": {{}}, \"outputs\": [], \"source\": [\"{text}\"]}}")
            })
            .collect();
        let text = format!(
            "{{\"cells\": [{sentence}{}], \"metadata\": {{\"accelerator\": \"GPU\", \"colab\": {{\"gpuType\": \"T4\"}}}}, \"nbformat\": 4, \
             \"nbformat_minor\": 0}}",
            cells.join(", ")
        );
        let read = said("a.ipynb", &text, &[]);
        [Field::Accelerator, Field::ParamsDtype].map(|field| value(&read, field))
    };
    let notebook = |install: &str| beside("", install);
    assert_eq!(notebook("unsloth"), ["T4", "fp16"]);
    assert_eq!(notebook("-U --no-deps unsloth[amd] unsloth_zoo[amd]"), ["MI300X", "bf16"]);
    // A sentence of another cell.
    let sentence = "{\"cell_type\": \"markdown\", \"metadata\": {}, \"source\": [\"On AMD: pip install unsloth[amd]\"]}, ";
    assert_eq!(beside(sentence, "unsloth"), ["T4", "fp16"]);
}

/// SkyworkAI/Skywork-OR1 `32b_32k.sh`: a pack of verl is no bound for a micro-batch of several long samples.
#[test]
fn samples_of_more_than_half_a_pack_may_share_one_of_verls_micro_batches() {
    let of = |response: u64| {
        let read = script(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=2048 \
             data.max_response_length={response} actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.use_dynamic_bsz=True \
             actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384 actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 \
             trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        ));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        read.diagnostics
            .iter()
            .find_map(|said| said.message.strip_prefix("where all samples are").map(str::to_owned))
    };
    // 128 samples of 10,240 tokens need 80 packs, so that some hold two.
    assert!(of(8192).is_some_and(|said| said.contains("20480 tokens")));
    // Two of 8,192 fill one.
    assert_eq!(of(6144), None);
}

/// One-Shot-RLVR, TTRL and code-r1: verl's examples told vLLM to use xFormers until June 30, 2025, and gave a coefficient of the KL in
/// rewards beside the one in the loss until April 1, since when it is idle.
#[test]
fn variables_and_idle_keys_tell_an_early_verl() {
    let of = |before: &str, more: &str| {
        let read = script(&format!(
            "{before}python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
             data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.model.use_remove_padding=True \
             actor_rollout_ref.actor.ppo_mini_batch_size=32 actor_rollout_ref.actor.use_dynamic_bsz=True \
             actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 actor_rollout_ref.actor.use_kl_loss=True \
             actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        ));
        [Field::RolloutSequences, Field::RolloutCudaGraphs, Field::PolicyEntropy]
            .map(|field| value(&read, field))
    };
    let today = ["256", "true", ""];
    assert_eq!(of("", ""), today);
    let backend = "export VLLM_ATTENTION_BACKEND=XFORMERS\n";
    assert_eq!(of(backend, ""), ["1024", "false", ""]);
    assert_eq!(of("VLLM_ATTENTION_BACKEND=XFORMERS ", ""), ["1024", "false", ""]);
    assert_eq!(of("export VLLM_ATTENTION_BACKEND=FLASH_ATTN\n", ""), today);
    // A habit that outlived its release.
    assert_eq!(of(backend, "actor_rollout_ref.rollout.mode=async"), today);
    let coefficient = "algorithm.kl_ctrl.kl_coef=0.001";
    assert_eq!(of("", coefficient), ["1024", "false", "true"]);
    assert_eq!(of("", &format!("{coefficient} algorithm.use_kl_in_reward=False")), today);
    assert_eq!(of("", &format!("{coefficient} actor_rollout_ref.actor.entropy_coeff=0")), today);
}

/// What a job asks of its scheduler tells one of an account's kinds from another, whichever line is first.
#[test]
fn an_account_names_accelerators_where_nothing_else_does() {
    let of = |more: &str| {
        let text = format!(
            "#!/bin/bash\n#SBATCH --account=six@v100\n{more}torchrun --nproc_per_node 1 train.py --model_name_or_path Qwen/Qwen2.5-0.5B \
             --max_length 512 --per_device_train_batch_size 1 --bf16 --output_dir o\n"
        );
        value(&script(&text), Field::Accelerator)
    };
    assert_eq!(of(""), "V100-SXM2-32GB");
    assert_eq!(of("#SBATCH --constraint=v100-16g\n"), "V100-SXM2-16GB");
    assert_eq!(of("#SBATCH -C h100\n"), "H100-SXM");
}

/// FSDP that a remark proposes has no stage 0 or 1, and a key that is switched off proposes nothing.
#[test]
fn an_answer_stands_above_a_remark() {
    let engine = |text: &str, stage: &str| {
        let read = said("sft.yaml", text, &[("zero_stage", stage), ("world_size", "8")]);
        value(&read, Field::DataParallelEngine)
    };
    let remarked = format!("# with FSDP1\n{ALONE}");
    assert_eq!(
        ["0", "1", "2", "3"].map(|stage| engine(&remarked, stage)),
        ["ddp", "deepspeed", "fsdp1", "fsdp1"]
    );
    assert_eq!(engine(&format!("# fsdp: full_shard auto_wrap\n{ALONE}"), "2"), "deepspeed");
    let own = "# see the fsdp_qlora example for bigger models\nmodel_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\n\
        lora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nbf16: true\ntemplate: qwen\n\
        dataset: a\n";
    let read = said("sft.yaml", own, &[("world_size", "8")]);
    assert!(read.questions.is_empty() && read.plan.is_some(), "{:?}", read.questions);
}

/// argparse hands `--config` to a program as any other option, which may do with the file what it likes.
#[test]
fn a_file_that_argparse_names_is_no_list_of_options() {
    let program = "import argparse\nfrom trl import SFTConfig, SFTTrainer\nparser = argparse.ArgumentParser()\n\
        parser.add_argument('--config')\nparser.add_argument('--max_length', type=int, default=1024)\nargs = parser.parse_args()\n\
        trainer = SFTTrainer(model='Qwen/Qwen2.5-7B', args=SFTConfig(max_length=args.max_length, per_device_train_batch_size=1), train_dataset=data)\n\
        trainer.train()\n";
    let line = "torchrun --nproc_per_node 8 sft.py --config own.yaml\n";
    let read =
        files(&[("run.sh", line), ("sft.py", program), ("own.yaml", "max_length: 8192\nmodel_name: a/b\n")]);
    assert_eq!(value(&read, Field::SeqLength), "1024");
}

/// `make`, a program's path and what `numactl` and `find -exec` start are no tools of the shell.
#[test]
fn scripts_that_start_a_program_do_more_than_set_variables() {
    let message =
        |text: &str| script(text).diagnostics.iter().map(|said| said.message.clone()).collect::<String>();
    for text in [
        "export CUDA_VISIBLE_DEVICES=0; make train\n",
        "set -e && make pretrain\n",
        "CUDA_VISIBLE_DEVICES=0 ./main --config \"$CFG\"\n",
        "numactl --cpunodebind=0 ./launch_training\n",
        "find . -name '*.yaml' -exec ./submit {} \\;\n",
    ] {
        let said = message(text);
        assert!(!said.contains("variables alone") && !said.contains("tools of the shell"), "{text}: {said}");
    }
    assert!(message("export A=1\nB=2\n").contains("variables alone"));
}

/// Keys of a verl of today beside an old coefficient.
#[test]
fn a_coefficient_beside_keys_of_today_dates_nothing() {
    let text = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=128 data.max_prompt_length=512 \
        data.max_response_length=512 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B actor_rollout_ref.actor.ppo_mini_batch_size=32 \
        actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 \
        actor_rollout_ref.actor.use_kl_loss=True algorithm.kl_ctrl.kl_coef=0.001 actor_rollout_ref.rollout.name=vllm \
        actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.rollout.agent.num_workers=8\n";
    assert_eq!(value(&script(text), Field::RolloutSequences), "256");
}
