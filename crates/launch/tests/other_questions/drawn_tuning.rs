//! Misreadings found in the sixteenth draw of public files, which fine-tune, and questions that the text already answers.

use super::{said, script, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

fn asks(read: &Resolution) -> Vec<&str> {
    read.questions.iter().map(|asked| asked.name()).collect()
}

/// Liquid4All/leap-finetune `job_configs/sft_with_lora_example.yaml`: batch, precision, rank and layers are those of
/// presets in its program. Rank 8 on one projection, without autocast or accumulation, was assumed for them.
#[test]
fn settings_of_a_preset_stop_the_verdict() {
    let job = |extends: &str| {
        format!(
            "project_name: my_sft_lora_project\nmodel_name: Qwen/Qwen3-8B\ntraining_type: sft\ndataset:\n  path: HuggingFaceTB/smoltalk\n  \
             limit: 1000\ntraining_config:\n{extends}  num_train_epochs: 3\n  per_device_train_batch_size: 2\n  max_length: 512\n  \
             learning_rate: 2e-5\npeft_config:\n  use_peft: true\n  r: 8\n"
        )
    };
    let read = said("job.yaml", &job("  extends: DEFAULT_SFT\n"), &[("world_size", "1")]);
    stopped(&read, &["extends"]);
    let without = said("job.yaml", &job(""), &[]);
    assert!(without.not_modelled.is_empty(), "{:?}", without.not_modelled);
}

/// YyWooo/LMME3DHF `main/train_MLP.sh` starts a program made of ms-swift with ms-swift's own options. It was read with
/// the defaults of transformers' Trainer: fp32 for the adapters' inputs, no checkpointing, no dropout.
#[test]
fn options_of_ms_swift_behind_another_program_have_its_defaults() {
    let read = script(
        "CUDA_VISIBLE_DEVICES=0 python sft_mlp.py --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a.json \
         --split_dataset_ratio 0 --torch_dtype bfloat16 --num_train_epochs 1 --per_device_train_batch_size 1 --learning_rate 1e-4 \
         --target_modules all-linear --gradient_accumulation_steps 1 --max_length 2048 --warmup_ratio 0.05 --model_author swift\n",
    );
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let of = |field| value(&read, field);
    let fields = [Field::Autocast, Field::GradientCheckpointing, Field::LoraDropout, Field::LoraRank];
    assert_eq!(fields.map(of), ["bf16", "true", "0.05", "8"]);
}

/// JJH12234/ScaleBench `Code/finetune/mPLUG-Owl3.sh`: ms-swift autocasts to the weights' format. fp16 was read as bf16.
#[test]
fn ms_swift_trains_in_the_format_of_the_weights() {
    let of = |dtype: &str| {
        let read = script(&format!(
            "CUDA_VISIBLE_DEVICES=3 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset a.json --torch_dtype {dtype} \
             --per_device_train_batch_size 4 --gradient_accumulation_steps 16 --max_length 2048 --optim adamw_torch\n"
        ));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::ParamsDtype, Field::Autocast].map(|field| value(&read, field))
    };
    assert_eq!(of("float16"), ["fp16", "fp16"]);
    assert_eq!(of("bfloat16"), ["bf16", "bf16"]);
    assert_eq!(of("float32"), ["fp32", "fp16"]);
}

/// taishan1994/DPO-Finetuning `train_config/qwen2_dpo_config.yaml`: `max_length` beside `evaluation_strategy` is an
/// argument of TRL's trainers for pairs, as SFT's was `max_seq_length` then. Supervised fine-tuning was assumed.
#[test]
fn a_length_of_an_early_trl_is_that_of_pairs() {
    let file = |more: &str| {
        format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\ntorch_dtype: bfloat16\nbf16: true\nper_device_train_batch_size: 1\n\
             gradient_accumulation_steps: 4\nmax_length: 4096\nlearning_rate: 1e-5\noutput_dir: data/qwen-v3.1\n{more}"
        )
    };
    let world = [("zero_stage", "0"), ("world_size", "8")];
    let open = said("config.yaml", &file("evaluation_strategy: 'no'\n"), &world);
    assert_eq!(asks(&open), ["training_objective"], "{:?}", open.diagnostics);
    let named = said("config.yaml", &file("evaluation_strategy: 'no'\nrun_name: qwen2-dpo\n"), &world);
    assert_eq!(value(&named, Field::TrainingObjective), "dpo");
    for later in ["eval_strategy: 'no'\n", "evaluation_strategy: 'no'\nmax_seq_length: 4096\n"] {
        let read = said("config.yaml", &file(later), &world);
        assert!(read.plan.is_some(), "{later}: {:?}", read.diagnostics);
        assert_eq!(value(&read, Field::TrainingObjective), "", "{later}");
    }
}

/// yxli2123/LoftQ `scripts/train_wikitext.sh` names a checkpoint over 4 bits, whose adapters its program trains. Full
/// training was assumed.
#[test]
fn a_checkpoint_that_is_quantized_by_its_name_stops_the_verdict() {
    let of = |model: &str| {
        let text = format!(
            "python train_clm.py --model_name_or_path {model} --learning_rate 3e-4 --per_device_train_batch_size 4 \
             --gradient_accumulation_steps 2 --warmup_steps 30 --block_size 1024\n"
        );
        said("run.sh", &text, &[])
    };
    stopped(&of("LoftQ/Llama-2-7b-hf-4bit-64rank"), &["model_name_or_path"]);
    stopped(&of("mlx-community/Qwen2.5-7B-Instruct-4bit"), &["model_name_or_path"]);
    assert!(of("meta-llama/Llama-2-7b-hf").plan.is_some());
}

const PROGRAM: &str = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B', torch_dtype='auto')\n\
    def cut(row):\n    return tokenizer(row['text'], truncation=True, max_length=1024)\n\
    args = TrainingArguments(per_device_train_batch_size=4, overwrite_output_dir=True, bf16=True, eval_strategy='steps')\n\
    trainer = Trainer(model=model, args=args, train_dataset=rows, METRICS)\ntrainer.train()\n";

/// puzhiyuan/AiO `train/transformers/train/train.py`: `torch_dtype="auto"` is the checkpoint's format in every release.
/// fp32, transformers 4's default where nothing is said, was assumed.
#[test]
fn automatic_weights_have_the_checkpoints_format() {
    let of = |dtype: &str| {
        let program = PROGRAM.replace(", METRICS", "").replace(", torch_dtype='auto'", dtype);
        let read = said("train.py", &program, &[("world_size", "1")]);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        value(&read, Field::ParamsDtype)
    };
    assert_eq!(of(", torch_dtype='auto'"), "bf16");
    // `logging_dir` tells transformers 4.
    assert_eq!(of(""), "fp32");
}

/// The same program computes metrics, for which the Trainer keeps the logits of all samples on the accelerator.
#[test]
fn metrics_that_keep_all_logits_stop_the_verdict() {
    let of = |metrics: &str, strategy: &str| {
        let program = PROGRAM.replace("METRICS", metrics).replace("'steps'", strategy);
        said("train.py", &program, &[("world_size", "1")])
    };
    stopped(&of("compute_metrics=accuracy", "'steps'"), &["compute_metrics"]);
    assert!(of("compute_metrics=accuracy", "'no'").plan.is_some());
    let reduced = of("compute_metrics=accuracy, preprocess_logits_for_metrics=best", "'steps'");
    assert!(reduced.plan.is_some(), "{:?}", reduced.diagnostics);
}

/// wyf3/llm_related `train_qwen3_next_from_scratch/sft_train.py` registers classes of its own, whose checkpoint the
/// library's class then loads. Only its sizes were asked for.
#[test]
fn classes_that_a_program_registers_are_its_own() {
    let program = |registers: &str| {
        let head = format!("from pretrain import LLM, Config\n{registers}");
        format!("{head}{}", PROGRAM.replace(", METRICS", ""))
    };
    let own =
        program("AutoConfig.register('moe_model', Config)\nAutoModelForCausalLM.register(Config, LLM)\n");
    stopped(&said("train.py", &own, &[("world_size", "1")]), &["AutoModelForCausalLM.register"]);
    let none =
        said("train.py", &program("# AutoModelForCausalLM.register(Config, LLM)\n"), &[("world_size", "1")]);
    assert!(none.plan.is_some(), "{:?}", none.diagnostics);
}

/// PacktPublishing/LLM-Engineers-Handbook `llm_engineering/model/finetuning/finetune.py`: values pass from a function's
/// defaults through another's parameters, with a comment behind one of them, and the line decides which of two trainers
/// runs. Its adapters were asked for, and both trainers' arguments counted.
#[test]
fn arguments_pass_through_a_programs_functions() {
    let program = "\
def load(model_name: str, length: int, rank: int):
    model, tokenizer = FastLanguageModel.from_pretrained(model_name=model_name, max_seq_length=length, load_in_4bit=False)
    return FastLanguageModel.get_peft_model(model, r=rank, lora_alpha=rank, lora_dropout=0, target_modules='all-linear'), tokenizer

def finetune(
    kind: str,
    model_name: str,
    batch: int,
    length: int = 2048,
    rank: int = 32,  # of the adapters
) -> tuple:
    model, tokenizer = load(model_name, length, rank)
    if kind == 'sft':
        trainer = SFTTrainer(
            model=model,
            tokenizer=tokenizer,
            train_dataset=rows,
            max_seq_length=length,
            packing=True,
            args=TrainingArguments(per_device_train_batch_size=batch, gradient_accumulation_steps=8, bf16=True),
        )
    elif kind == 'dpo':
        trainer = DPOTrainer(
            model=model,
            train_dataset=rows,
            args=DPOConfig(max_length=1024, per_device_train_batch_size=batch, gradient_accumulation_steps=4, bf16=True),
        )
    trainer.train()

parser = argparse.ArgumentParser()
parser.add_argument('--batch', type=int, default=2)
parser.add_argument('--kind', type=str, default='sft')
args = parser.parse_args()
if args.kind == 'sft':
    finetune(kind='sft', model_name='unsloth/Meta-Llama-3.1-8B', batch=args.batch)
else:
    finetune(kind='dpo', model_name='unsloth/Meta-Llama-3.1-8B', batch=args.batch)
";
    let open = said("finetune.py", program, &[]);
    assert_eq!(asks(&open), ["command_line"], "{:?}", open.diagnostics);
    let of = |line: &str| {
        let source = shardscope_source::Source::from_files([("finetune.py", program), ("run.sh", line)]);
        let environment = shardscope_bash::Environment::default();
        shardscope_launch::read(&shardscope_launch::Request {
            source: &source,
            environment: &environment,
            overrides: &[],
        })
    };
    let fields = [
        Field::TrainingObjective,
        Field::SeqLength,
        Field::LoraRank,
        Field::MicroBatchSize,
        Field::NumMicroBatches,
        Field::Packing,
    ];
    let supervised = of("python finetune.py --batch 4\n");
    assert!(supervised.plan.is_some(), "{:?}", supervised.diagnostics);
    assert_eq!(fields.map(|field| value(&supervised, field)), ["", "2048", "32", "4", "8", "true"]);
    let pairs = of("python finetune.py --kind dpo\n");
    assert_eq!(
        fields.map(|field| value(&pairs, field)),
        ["dpo", "1024", "32", "2", "4", ""],
        "{:?}",
        pairs.diagnostics
    );
}

/// A condition that the text does not decide leaves open which of two trainers runs.
#[test]
fn one_of_two_trainers_stops_the_verdict() {
    let program = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\nkind = os.environ['KIND']\nif kind == 'sft':\n    \
        trainer = SFTTrainer(model=model, args=SFTConfig(max_length=512))\nelse:\n    trainer = DPOTrainer(model=model, args=DPOConfig(max_length=256))\n\
        trainer.train()\n";
    stopped(&said("train.py", program, &[("world_size", "1")]), &["DPOTrainer"]);
}

/// SCIR-HI/Huatuo-Llama-Med-Chinese `scripts/finetune.sh` is a command of alpaca-lora's program, which has options of its
/// own. It was taken for Megatron's, and stopped.
#[test]
fn a_command_of_alpaca_lora_has_its_defaults() {
    let line = "finetune.py --base_model 'decapoda-research/llama-7b-hf' --data_path './data/llama_data.json' \
        --output_dir './lora' --prompt_template_name 'med_template' --micro_batch_size 16 --batch_size 128";
    let read = script(&format!("python {line}\n"));
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let fields = [
        Field::TrainType,
        Field::BaseQuantization,
        Field::SeqLength,
        Field::LoraRank,
        Field::LoraTargetModules,
        Field::NumMicroBatches,
        Field::Autocast,
        Field::GradientCheckpointing,
    ];
    let of = |read: &Resolution| fields.map(|field| value(read, field));
    assert_eq!(of(&read), ["qlora", "int8", "256", "8", "q_proj v_proj", "8", "fp16", "true"]);
    // The batch is that of all ranks, and the words take precedence.
    let more = script(&format!(
        "torchrun --nproc_per_node 4 {line} --cutoff_len 512 --lora_r 16 --lora_target_modules '[q_proj,k_proj,v_proj,o_proj]'\n"
    ));
    assert!(more.plan.is_some(), "{:?}", more.diagnostics);
    let expected = ["qlora", "int8", "512", "16", "q_proj k_proj v_proj o_proj", "2", "fp16", "true"];
    assert_eq!(of(&more), expected);
    // A program derived from it has options of its own, and other defaults perhaps.
    assert!(script(&format!("python {line} --adapter_name lora\n")).plan.is_none());
    assert!(script(&format!("python train_{line}\n")).plan.is_none());
}

/// puzhiyuan/AiO `train/ms-swift/rlhf/grpo/internal_rollout/grpo_train.sh`: `tensor_parallel_size` is the rollout engine's,
/// under its name of 2025, and was taken for the training's. And xiusic/Rubric-RM `scripts/run_easy.sh` logs more with
/// `--verbose_training`, which marks the verdict and no longer stops it.
#[test]
fn what_concerns_rollouts_and_logs_does_not_stop_the_verdict() {
    let read = script(
        "CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct \
         --train_type lora --dataset a --torch_dtype bfloat16 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \
         --max_length 2048 --max_completion_length 2048 --num_generations 16 --use_vllm true --vllm_gpu_memory_utilization 0.5 \
         --deepspeed zero2 --tensor_parallel_size 4 --gc_collect_after_offload true\n",
    );
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::RolloutTensorParallelSize), "4");
    let logs = script(
        "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --max_len 2048 --train_batch_size 64 \
         --micro_train_batch_size 1 --zero_stage 3 --bf16 --flash_attn --verbose_training --verbose_directory logs\n",
    );
    assert!(logs.plan.is_some(), "{:?}", logs.diagnostics);
}

/// fe1ixxu/ALMA `runs/mono_ft.sh` and the scripts of agiclass/fine-tuning-lab: a sample is a prompt and a response, each with
/// a limit of its own. The limits stopped the verdict.
#[test]
fn limits_of_prompt_and_response_add_up() {
    let of = |own: &str| {
        let read = script(&format!(
            "torchrun --nproc_per_node 8 run.py --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 --per_device_train_batch_size 4 \
             --gradient_accumulation_steps 4 --warmup_steps 10 --max_source_length 256 {own}\n"
        ));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        value(&read, Field::SeqLength)
    };
    assert_eq!(
        of("--oscar_data_path a --oscar_data_lang en,ru --max_new_tokens 128 --ignore_pad_token_for_loss"),
        "384"
    );
    assert_eq!(of("--prompt_column context --response_column response --max_target_length 64"), "321");
}

/// databrickslabs/dolly `training/trainer.py` declares its options with click, for parameters of a function that another
/// one is given all of. Its batch, precision and checkpointing were asked for one by one.
#[test]
fn options_of_click_are_the_launch_commands() {
    let program = "import click\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\ndef train(*, batch: int, bf16: bool):\n    \
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B')\n    \
        args = TrainingArguments(per_device_train_batch_size=batch, bf16=bf16, fp16=not bf16)\n    \
        trainer = Trainer(model=model, args=args, train_dataset=rows)\n    trainer.train()\n\n@click.command()\n\
        @click.option('--batch', type=int, default=8)\n@click.option('--bf16/--no-bf16', is_flag=True, default=True)\n\
        def main(**kwargs):\n    train(**kwargs)\n\nif __name__ == '__main__':\n    main()\n";
    let open = said("trainer.py", program, &[]);
    assert_eq!(asks(&open), ["command_line"], "{:?}", open.diagnostics);
    let of = |line: &str| {
        let source = shardscope_source::Source::from_files([("trainer.py", program), ("run.sh", line)]);
        let environment = shardscope_bash::Environment::default();
        let overrides = [("seq_length".to_owned(), "512".to_owned())];
        let request =
            shardscope_launch::Request { source: &source, environment: &environment, overrides: &overrides };
        let read = shardscope_launch::read(&request);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::MicroBatchSize, Field::Autocast].map(|field| value(&read, field))
    };
    assert_eq!(of("python trainer.py --batch 4\n"), ["4", "bf16"]);
}

/// agiclass/fine-tuning-lab `llama2/train_qlora.sh` starts `main_qlora.py`: adapters over weights of 16 bits were assumed. And
/// mesolitica/malaya `session/llama3/train_unsloth.sh` starts a program of unsloth's: full training was.
#[test]
fn programs_named_after_qlora_and_unsloth_are_no_other_training() {
    let line = |program: &str, more: &str| {
        format!(
            "torchrun --nproc_per_node 4 {program} --model_name_or_path meta-llama/Llama-2-7b-hf --bf16 --model_max_length 2048 \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --warmup_steps 10 {more}\n"
        )
    };
    let adapters = "--lora_rank 8 --lora_alpha 32 --lora_dropout 0.1 --lora_target_modules q_proj v_proj";
    let open = script(&line("main_qlora.py", adapters));
    assert_eq!(asks(&open), ["base_quantization"], "{:?}", open.diagnostics);
    let answered = said("run.sh", &line("main_qlora.py", adapters), &[("base_quantization", "nf4")]);
    assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
    assert_eq!(value(&answered, Field::TrainType), "qlora");
    let stated = script(&line("main_qlora.py", &format!("{adapters} --load_in_4bit True")));
    assert!(stated.plan.is_some(), "{:?}", stated.diagnostics);
    stopped(&script(&line("-m train_unsloth", "")), &["program"]);
}
