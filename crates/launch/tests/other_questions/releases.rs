//! Defaults follow the release that any text of a paste installs, or that its arguments tell.

use super::{said, script, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

const SFT: &str = "trl sft --model_name_or_path Qwen/Qwen2.5-7B-Instruct --torch_dtype bfloat16 --use_peft --max_length 2048 \
    --per_device_train_batch_size 4 --output_dir o\n";

fn asks(read: &Resolution) -> Vec<&str> {
    read.questions.iter().map(|question| question.name()).collect()
}

fn on_one(text: &str) -> Resolution {
    said("run.sh", text, &[("world_size", "1")])
}

fn of(read: &Resolution) -> [String; 3] {
    [Field::GradientCheckpointing, Field::Autocast, Field::LossKind].map(|field| value(read, field))
}

fn beside(files: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let environment =
        Environment { variables: vec![("world_size".to_owned(), "1".to_owned())], ..Environment::default() };
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

/// `trl/trainer/sft_config.py`: checkpointing since 0.22, bf16 since 0.19; the tiled loss since 1.15.
#[test]
fn a_release_installed_by_a_script_counts_for_its_command() {
    let with = |line: &str| of(&on_one(&format!("{line}\n{SFT}")));
    assert_eq!(with(""), ["true", "bf16", "fused_tiles"]);
    for line in ["pip install trl==0.15.2", "conda install trl=0.15.2", "pip install 'trl>=0.14,<0.16'"] {
        assert_eq!(with(line), ["false", "none", ""], "{line}");
    }
    assert_eq!(with("pip install trl==0.20.0"), ["false", "bf16", ""]);
    let by_chunks = on_one(&format!("pip install trl==1.14.0 peft\n{SFT}"));
    assert!(by_chunks.not_modelled.iter().any(|item| item.is_called("trl")), "{:?}", by_chunks.not_modelled);
    let program = "from trl import SFTConfig, SFTTrainer\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B', dtype='bfloat16')\n\
        args = SFTConfig(per_device_train_batch_size=4, max_length=2048)\ntrainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n";
    let yaml = "model_name_or_path: Qwen/Qwen3-0.6B\ndtype: bfloat16\nper_device_train_batch_size: 4\nlearning_rate: 1e-5\nmax_length: 2048\n\
        output_dir: sft\n";
    for (name, text) in [("train.py", program), ("sft.yaml", yaml)] {
        let alone = beside(&[(name, text)]);
        assert_eq!(of(&alone), ["true", "bf16", "fused_tiles"], "{name}: {:?}", alone.diagnostics);
        let old = beside(&[(name, text), ("requirements.txt", "torch\ntrl==0.15.2\npeft\n")]);
        assert_eq!(of(&old), ["false", "none", ""], "{name}: {:?}", old.diagnostics);
    }
}

/// Arguments that a release took away: `max_seq_length` went in 0.20, `evaluation_strategy` with transformers 4.51, which TRL 0.19 asks
/// for. `max_prompt_length` stayed until 0.27.
#[test]
fn arguments_that_a_release_took_away_tell_its_defaults() {
    let command = |more: &str| on_one(&SFT.replace("--output_dir o", more));
    // 0.19 at most: bf16 is of 0.19 alone, and asked.
    let named = command("--max_seq_length 2048");
    assert_eq!(asks(&named), ["bf16"], "{:?}", named.diagnostics);
    assert_eq!(of(&command("--max_seq_length 2048 --bf16 true")), ["false", "bf16", ""]);
    assert_eq!(of(&command("--evaluation_strategy no")), ["false", "none", ""]);
    let yaml = "model_name_or_path: Qwen/Qwen3-0.6B\nper_device_train_batch_size: 4\nlearning_rate: 1e-5\nbf16: true\nbeta: 0.1\n\
        max_length: 1024\nmax_prompt_length: 512\noutput_dir: zephyr-dpo\n";
    assert_eq!(
        asks(&said("dpo.yaml", yaml, &[("zero_stage", "0"), ("world_size", "1")])),
        ["gradient_checkpointing"]
    );
    // Installed beside transformers 4.57, TRL is not from before that.
    let newer = format!("pip install transformers==4.57.1\n{SFT}");
    assert_eq!(of(&on_one(&newer)), ["true", "bf16", ""]);
    let between = format!("pip install transformers==4.55.0\n{SFT}");
    assert_eq!(asks(&on_one(&between)), ["bf16", "gradient_checkpointing"]);
    // It runs with TRL up to 0.21 alone.
    let older = format!("pip install transformers==4.53.0\n{SFT}");
    assert_eq!(asks(&on_one(&older)), ["bf16"]);
}

/// `training_args.py`: `warmup_ratio` is in 5.0 to 5.14, `overwrite_output_dir` in 4 alone; 5 loads the checkpoint's format.
#[test]
fn transformers_4_is_told_by_what_it_alone_has() {
    let program = |installs: &str, argument: &str| {
        let text = format!(
            "{installs}\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n\
             def cut(row):\n    return tokenizer(row['text'], truncation=True, max_length=1024)\n\
             args = TrainingArguments(per_device_train_batch_size=2, bf16=True{argument})\n\
             trainer = Trainer(model=model, args=args, train_dataset=rows)\ntrainer.train()\n"
        );
        said("train.py", &text, &[("world_size", "1")])
    };
    let format = |installs: &str, argument: &str| value(&program(installs, argument), Field::ParamsDtype);
    assert_eq!(format("", ""), "bf16");
    assert_eq!(format("", ", overwrite_output_dir=True"), "fp32");
    assert_eq!(format("# pip install transformers==5.2.0", ", warmup_ratio=0.1"), "bf16");
    assert_eq!(format("# pip install transformers==4.57.1", ", warmup_ratio=0.1"), "fp32");
    assert_eq!(asks(&program("", ", warmup_ratio=0.1")), ["params_dtype"]);
    // A command's program may name a format.
    let command = |more: &str| {
        script(&format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 1024 \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 1 {more}\n"
        ))
    };
    assert_eq!(asks(&command("--evaluation_strategy no")), ["params_dtype"]);
    assert_eq!(asks(&command("--eval_strategy no")), [""; 0]);
    // Attention of before 4.36 held other tensors, in programs as in notebooks.
    let early = program("# pip install transformers==4.33.0", "");
    assert!(early.not_modelled.iter().any(|item| item.is_called("transformers")), "{:?}", early.not_modelled);
}

/// `trl/trainer/grpo_config.py` of each release.
#[test]
fn rollouts_are_those_of_the_release() {
    let of = |release: &str, more: &str| {
        let text = format!(
            "# pip install trl=={release}\nimport torch\nfrom trl import GRPOConfig, GRPOTrainer\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', dtype=torch.bfloat16)\n\
             args = GRPOConfig(output_dir='o', per_device_train_batch_size=8, gradient_accumulation_steps=2{more})\n\
             trainer = GRPOTrainer(model=model, args=args, reward_funcs=f)\ntrainer.train()\n"
        );
        let read = said("train.py", &text, &[("world_size", "1"), ("seq_length", "1024")]);
        assert!(read.plan.is_some(), "{release}: {:?} {:?}", read.diagnostics, read.not_modelled);
        [Field::RolloutGpus, Field::RolloutMemoryFraction, Field::RolloutResponse, Field::RolloutSequences]
            .map(|field| value(&read, field))
    };
    let engine = |release: &str| of(release, ", use_vllm=True");
    for (release, expected) in
        [("0.15.2", ["1", "0.9"]), ("0.16.1", ["0", ""]), ("0.29.1", ["0", ""]), ("1.15.0", ["", "0.3"])]
    {
        let [gpus, fraction, ..] = engine(release);
        assert_eq!(gpus, expected[0], "{release}");
        if !expected[1].is_empty() {
            assert_eq!(fraction, expected[1], "{release}");
        }
    }
    let itself = |release: &str| {
        let [_, _, response, sequences] = of(release, "");
        [response, sequences]
    };
    assert_eq!(itself("0.16.0"), ["256", "8"]);
    assert_eq!(itself("0.17.0"), ["256", "16"]);
    assert_eq!(itself("1.9.0"), ["256", "16"]);
    assert_eq!(itself("1.15.0"), ["512", "16"]);
}

/// `trl/trainer/dpo_trainer.py`, `kto_trainer.py` and `reward_trainer.py` of 0.11 to 0.14.
#[test]
fn pairs_have_the_length_of_the_release() {
    let of = |release: &str, kind: &str| {
        let text = format!(
            "# pip install trl=={release}\nfrom trl import {kind}Config, {kind}Trainer\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', torch_dtype='bfloat16')\n\
             args = {kind}Config(output_dir='o', per_device_train_batch_size=2)\n\
             trainer = {kind}Trainer(model=model, args=args, train_dataset=d)\ntrainer.train()\n"
        );
        let read = said("train.py", &text, &[("world_size", "1")]);
        (value(&read, Field::SeqLength), asks(&read).contains(&"seq_length"))
    };
    let known = |length: &str| (length.to_owned(), false);
    assert_eq!(of("0.11.4", "DPO"), known("512"));
    assert!(of("0.12.2", "DPO").1);
    assert_eq!(of("0.14.0", "DPO"), known("1024"));
    for kind in ["KTO", "ORPO", "CPO"] {
        assert_eq!(of("0.13.0", kind), known("512"), "{kind}");
        assert_eq!(of("0.14.0", kind), known("1024"), "{kind}");
    }
}

/// Trainers whose defaults changed in what decides a figure, and of which today's are modelled.
#[test]
fn an_older_release_of_another_trainer_stops() {
    let stops = |install: &str, command: &str, package: &str| {
        let read = script(&format!("pip install {install}\n{command}\n"));
        read.not_modelled.iter().any(|item| item.is_called(package))
    };
    let factory = "llamafactory-cli train --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-7B --finetuning_type lora --template qwen \
        --per_device_train_batch_size 1 --bf16";
    for (install, expected) in
        [("llamafactory==0.8.3", true), ("llamafactory==0.9.3", false), ("trl==0.9.6", false)]
    {
        assert_eq!(stops(install, factory, "llamafactory"), expected, "{install}");
    }
    let verl = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_batch_size=256 \
        actor_rollout_ref.actor.ppo_mini_batch_size=64 trainer.n_gpus_per_node=8 trainer.nnodes=1";
    for (install, expected) in [("verl==0.4.1", true), ("verl==0.9.0", false)] {
        assert_eq!(stops(install, verl, "verl"), expected, "{install}");
    }
}

/// A value that the program computes is asked for, whatever its release has by default; so is a variable that is not set.
#[test]
fn computed_values_are_no_defaults() {
    let program = "from trl import SFTConfig, SFTTrainer\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B', dtype='bfloat16')\n\
        args = SFTConfig(per_device_train_batch_size=4, max_length=2048, gradient_checkpointing=cfg.gc, bf16=True)\n\
        trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n";
    let read = beside(&[("train.py", program), ("requirements.txt", "trl==0.20.0\n")]);
    assert!(read.plan.is_none() && asks(&read).contains(&"gradient_checkpointing"), "{:?}", read.questions);
    let command = on_one(&SFT.replace("--output_dir o", "--bf16 $BF"));
    assert!(command.plan.is_none(), "{:?}", command.diagnostics);
    // GRPO of 0.14 took prompts, each with all its completions, for the batch.
    let grpo = "# pip install trl==0.14.0\nfrom trl import GRPOConfig, GRPOTrainer\n\
        args = GRPOConfig(output_dir='o', bf16=True, max_completion_length=256, max_prompt_length=256)\n\
        trainer = GRPOTrainer(model='Qwen/Qwen2.5-1.5B', args=args, reward_funcs=f)\ntrainer.train()\n";
    let read = said("train.py", grpo, &[("world_size", "1")]);
    assert!(read.not_modelled.iter().any(|item| item.is_called("trl")), "{:?}", read.not_modelled);
    let pairs = on_one(
        "pip install trl==0.11.4\ntrl dpo --model_name_or_path Qwen/Qwen2.5-1.5B --per_device_train_batch_size 2\n",
    );
    assert_eq!(value(&pairs, Field::SeqLength), "512");
}
