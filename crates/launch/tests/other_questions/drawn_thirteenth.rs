//! Misreadings found in the thirteenth draw of public files, and questions that the text already answers.

use super::{said, script, stopped, value};
use shardscope_plan::Field;
use shardscope_source::Code;

/// UKPLab/arxiv2024-lfqa-hallucination `scripts/run_sft.sh` starts `src/modelling/dpo/sft.py`, the step before DPO in
/// the same folder. It was read as DPO, with a reference next to the policy and two samples per pair.
#[test]
fn a_program_in_a_folder_named_after_dpo_is_what_its_own_name_says() {
    let of = |program: &str| {
        let trained = script(&format!(
            "deepspeed --num_gpus 3 --num_nodes 1 {program} --model_name_or_path meta-llama/Meta-Llama-3-8B --bf16 True \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --max_length 1024"
        ));
        assert!(trained.plan.is_some(), "{program}: {:?}", trained.diagnostics);
        value(&trained, Field::TrainingObjective)
    };
    assert_ne!(of("src/modelling/dpo/sft.py"), "dpo");
    assert_ne!(of("dpo/train_sft.py"), "dpo");
    assert_eq!(of("src/modelling/dpo/train.py"), "dpo");
    assert_eq!(of("sft/run_dpo.py"), "dpo");
}

/// zhiyuanhubj/Logic-RL `scripts/train_grpo_4gpu_7Binstruct.sh`: 16 prompts with 8 rollouts each are 32 sequences on
/// each of 4 ranks, to which `mini_batch.split` limits a larger micro-batch (`verl/workers/actor/dp_actor.py`). 128
/// were proposed, and then rejected.
#[test]
fn a_micro_batch_of_early_verl_is_proposed_as_large_as_a_ranks_part_at_most() {
    let early = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=16 data.max_prompt_length=512 \
        data.max_response_length=2048 actor_rollout_ref.model.path='\"Qwen/Qwen2.5-7B-Instruct\"' actor_rollout_ref.model.use_remove_padding=True \
        actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.ppo_micro_batch_size=64 actor_rollout_ref.rollout.name=vllm \
        actor_rollout_ref.actor.fsdp_config.grad_offload=False actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=4 trainer.nnodes=1";
    let open = script(early);
    let asked: Vec<_> =
        open.questions.iter().map(|question| (question.name(), question.proposal.as_deref())).collect();
    // The model's name is a Hydra string, with quotes that bash left in place.
    assert_eq!(asked, [(Field::MicroBatchSize.name(), Some("32"))]);
    let plan = said("run.sh", early, &[("micro_batch_size", "32")]);
    assert!(plan.plan.is_some(), "{:?}", plan.diagnostics);
    assert_eq!(value(&plan, Field::NumMicroBatches), "1");
}

const TODAY: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 data.max_prompt_length=1024 \
    data.max_response_length=1024 actor_rollout_ref.model.path=models/Qwen2.5-1.5B actor_rollout_ref.actor.ppo_mini_batch_size=256 \
    actor_rollout_ref.rollout.name=vllm trainer.val_before_train=True trainer.nnodes=1";

/// princeton-pli/RL-skill-comp `scripts/train_grpo.sh` counts the GPUs that Slurm reports to the job, and its header
/// requests 4; 8 were proposed.
#[test]
fn gpus_that_the_job_is_asked_for_are_those_of_the_schedulers_lines() {
    let of = |lines: &str, number: &str| {
        script(&format!(
            "#!/bin/bash\n{lines}\nN_GPUS={number}\n{TODAY} actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \
             trainer.n_gpus_per_node=${{N_GPUS}}\n"
        ))
    };
    let counted = "\"$(( $(echo $SLURM_JOB_GPUS| grep -o , | wc -l) + 1 ))\"";
    assert_eq!(value(&of("#SBATCH --gres=gpu:h100:4", counted), Field::GpusPerNode), "4");
    for (lines, number) in [("", counted), ("#SBATCH --gres=gpu:h100:4", "$MY_GPUS")] {
        let open = of(lines, number);
        let asked: Vec<&str> = open.questions.iter().map(|question| question.name()).collect();
        assert_eq!(asked, [Field::GpusPerNode.name()], "{lines} {number}");
    }
}

/// Junjie-Ye/MulDimIF `scripts/run_grpo.sh` packs by tokens, as slime's scripts do, but under FSDP.
#[test]
fn packs_of_verl_do_not_shard_as_slime_does() {
    let packed = script(&format!(
        "{TODAY} trainer.n_gpus_per_node=8 actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384"
    ));
    assert!(packed.plan.is_some(), "{:?}", packed.diagnostics);
    assert_eq!(value(&packed, Field::MaxTokensPerGpu), "16384");
    assert_ne!(value(&packed, Field::UseDistributedOptimizer), "true");
}

/// KKolvin/qwen3-30b-swe-bench-multiturn-grpo `configs/grpo_swebench.yaml`, and TinyZero's forks.
#[test]
fn metrics_of_the_engine_and_kept_checkpoints_do_not_stop() {
    let of = |more: &str| {
        script(&format!(
            "{TODAY} trainer.n_gpus_per_node=8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 {more}"
        ))
    };
    let engine = "actor_rollout_ref.rollout.engine_kwargs.sglang";
    for more in [
        "trainer.max_checkpoints=5".to_owned(),
        format!("{engine}.enable_metrics=True {engine}.moe_runner_backend=triton"),
    ] {
        let read = of(&more);
        assert!(read.plan.is_some(), "{more}: {:?}", read.diagnostics);
    }
    stopped(&of(&format!("{engine}.dp_size=2")), &[&format!("{engine}.dp_size")]);
}

/// TsinghuaC3I/UltraMedical `src/finetune/config/dpo_nca_pair_config_full.yaml`: among TRL's trainers only DPO has that
/// loss.
#[test]
fn a_loss_of_dpo_alone_tells_the_trainer() {
    let of = |loss: &str| {
        let text = format!(
            "model_name_or_path: meta-llama/Llama-3.1-8B\ntorch_dtype: bfloat16\nbf16: true\nbeta: 0.1\nloss_type: {loss}\n\
             per_device_train_batch_size: 4\ngradient_accumulation_steps: 1\ngradient_checkpointing: true\nmax_length: 2048\noutput_dir: out/pairs\n"
        );
        said("config_full.yaml", &text, &[("zero_stage", "0"), ("world_size", "8")])
    };
    let pairs = of("nca_pair");
    assert!(pairs.plan.is_some(), "{:?}", pairs.diagnostics);
    assert_eq!(value(&pairs, Field::TrainingObjective), "dpo");
    // CPO's trainer also has this one.
    let open = of("sigmoid");
    let asked: Vec<&str> = open.questions.iter().map(|question| question.name()).collect();
    assert_eq!(asked, [Field::TrainingObjective.name()]);
}

/// A file of that name used by another program is not torchtune's, and is asked for.
#[test]
fn names_of_torchtunes_files_are_known_to_torchtune_alone() {
    let asks = |command: &str| {
        let read = script(&format!("CUDA_VISIBLE_DEVICES=0 {command} --config llama3_1/8B_lora\n"));
        read.diagnostics.iter().any(|said| said.code == Code::MissingFile)
    };
    assert!(!asks("tune run lora_finetune_single_device"));
    assert!(asks("python my_train.py"));
}

/// Broyojo/humor-r1 `scripts/train_grpo.py`: constants come from the environment or have defaults, and TRL loads the
/// model by its name in the given dtype. It was read as fp32.
#[test]
fn what_a_program_takes_from_the_environment_has_its_default() {
    let of = |init: &str| {
        let text = format!(
            "import os\nfrom trl import SFTConfig, SFTTrainer\nRANK = int(os.environ.get('LORA_RANK', '32'))\ndtype = os.environ.get('DTYPE', 'bfloat16')\n\
             def main():\n    lora = LoraConfig(r=RANK, lora_alpha=32, target_modules='all-linear')\n    args = SFTConfig(output_dir='a', bf16=dtype == 'bfloat16', \
             {init}per_device_train_batch_size=int(os.environ.get('BATCH', '2')), max_length=1024)\n    trainer = SFTTrainer(model='Qwen/Qwen3-4B', args=args, \
             peft_config=lora)\n    trainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "2")])
    };
    let read = of("model_init_kwargs={'dtype': dtype}, ");
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    for (field, shown) in [
        (Field::LoraRank, "32"),
        (Field::MicroBatchSize, "2"),
        (Field::Bf16, "true"),
        (Field::ParamsDtype, "bf16"),
    ] {
        assert_eq!(value(&read, field), shown, "{field:?}");
    }
    assert_eq!(value(&of(""), Field::ParamsDtype), "fp32");
    stopped(&of("model_init_kwargs=loading(dtype), "), &["SFTConfig"]);
}

/// Shivam-0205/tinyllama-lora-finetuning `scripts/train.py` pads its samples to 128 tokens; 2,048 were proposed.
#[test]
fn samples_are_as_long_as_the_programs_tokenizer_cuts_them() {
    let text = "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-4B')\n\
        def tokenize(example):\n    return tokenizer(example['text'], truncation=True, padding='max_length', max_length=128)\n\
        args = TrainingArguments(output_dir='a', per_device_train_batch_size=1, gradient_accumulation_steps=4, bf16=True)\n\
        trainer = Trainer(model=model, args=args, train_dataset=data.map(tokenize))\ntrainer.train()\n";
    let read = said("train.py", text, &[("world_size", "2")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::SeqLength), "128");
    let open =
        said("train.py", &text.replace("max_length=128", "max_length=longest"), &[("world_size", "2")]);
    let asked: Vec<&str> = open.questions.iter().map(|question| question.name()).collect();
    assert_eq!(asked, [Field::SeqLength.name()]);
}

/// AmphionTeam/TARS `train_dpo.sh`: accelerate's configuration file was taken for the program.
#[test]
fn accelerates_switch_for_a_module_stands_before_its_other_options() {
    let of = |start: &str| {
        script(&format!("accelerate launch {start} axolotl.cli.train config.yml --micro-batch-size 2\n"))
    };
    for start in [
        "-m --config_file accel/ds.zero2.yaml --num_processes=4",
        "--config_file accel/ds.zero2.yaml --num_processes=4 -m",
    ] {
        let read = of(start);
        let file = read.diagnostics.iter().find(|said| said.code == Code::MissingFile);
        assert!(
            file.is_some_and(|said| said.message.contains("config.yml")),
            "{start}: {:?}",
            read.diagnostics
        );
    }
}

/// shibing624/MedicalGPT `scripts/run_dpo.sh`, which is often forked: prompt and answer are truncated together.
#[test]
fn prompts_and_answers_of_medicalgpt_are_one_sample() {
    let of = |program: &str, more: &str| {
        script(&format!(
            "CUDA_VISIBLE_DEVICES=0 python3 training/{program} --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 4 \
             --gradient_accumulation_steps 8 --per_device_eval_batch_size 1 --use_peft True --target_modules all --lora_rank 8 --lora_alpha 16 \
             --lora_dropout 0.05 --torch_dtype bfloat16 --gradient_checkpointing True --max_source_length 1024 --max_target_length 512 {more}"
        ))
    };
    let pairs = of("dpo_training.py", "--bf16 True --fp16 False --train_file_dir data/reward");
    assert!(pairs.plan.is_some(), "{:?}", pairs.diagnostics);
    assert_eq!(value(&pairs, Field::SeqLength), "1536");
    assert_eq!(value(&pairs, Field::TrainingObjective), "dpo");
    // Another program's lengths may be those of an encoder and a decoder, and fp16 is on by default.
    stopped(&of("dpo_training.py", "--bf16 True"), &["source_length"]);
    stopped(&of("dpo_training.py", "--train_file_dir data/reward"), &["source_length"]);
}
