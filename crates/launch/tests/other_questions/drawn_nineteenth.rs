//! Misreadings found in the nineteenth draw of public files.

use super::{said, script, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;
use shardscope_source::{Code, Severity};

/// The text of the only error, which has this code.
#[track_caller]
fn error(read: &Resolution, code: Code) -> String {
    let errors: Vec<_> = read.diagnostics.iter().filter(|said| said.severity == Severity::Error).collect();
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert!(read.plan.is_none() && error.code == code, "{error:?}");
    error.message.clone()
}

/// What is asked, in order of its names.
fn asked(read: &Resolution) -> Vec<String> {
    let mut names: Vec<String> = read.questions.iter().map(|question| question.name().to_owned()).collect();
    names.sort();
    names
}

/// elena-lyulina/Megatron-LM-Attention-Benchmark `pretrain_llama3_1b_fineweb160B.slurm`: precision, optimizer and layout are
/// arrays of files that the script reads. They were taken for empty, and the answer was one in fp32.
#[test]
fn options_that_a_missing_file_sets_are_not_taken_for_none() {
    let of = |before: &str| {
        let text = format!(
            "{before}\nTRAINING=(--micro-batch-size 2 --global-batch-size 80)\ntorchrun --nnodes 10 --nproc_per_node 4 pretrain_gpt.py \
             --num-layers 16 --hidden-size 2048 --num-attention-heads 32 --seq-length 8192 --max-position-embeddings 8192 \
             --vocab-size 128256 ${{PRECISION_ARGS[*]}} ${{TRAINING[*]}} $EXTRA"
        );
        script(&text)
    };
    let read = of("source $ROOT/configs/training.sh");
    let message = error(&read, Code::UnsetOptions);
    assert!(message.contains("PRECISION_ARGS") && message.contains("training.sh"), "{message}");
    // Without such a file they are the caller's, who may set them or not; an environment sets none.
    for before in ["", "source ~/.bashrc", "source venv/bin/activate", "source scripts/models/qwen3-4B.sh"] {
        assert!(of(before).plan.is_some(), "{before}");
    }
}

/// wccdev/nemo-rl-lab `maxrl_qwen3.5-9b_qa-rl-agent_v2/config.yaml` builds on files of its own that turn to Megatron and to LoRA.
/// All weights under DTensor were read, with a warning.
#[test]
fn a_nemo_rl_file_without_those_beneath_it_is_not_answered() {
    let of = |more: &str| {
        let text = format!(
            "defaults:\n  - ../configs/grpo_math_1B.yaml\n{more}grpo: {{num_prompts_per_step: 4, num_generations_per_prompt: 16}}\n\
             policy:\n  model_name: Qwen/Qwen2.5-1.5B\n  train_global_batch_size: 64\n"
        );
        said("config.yaml", &text, &[])
    };
    assert!(of("").plan.is_some());
    let read = of("  - ../configs/our_lora.yaml\n");
    let message = error(&read, Code::MissingFile);
    assert!(message.contains("our_lora.yaml"), "{message}");
}

/// Thisen-Ekanayake/sinllama-continual-pretraining `sft/run_sft_uc.py` fills its argument classes from the file that
/// `--config` names; the classes' defaults were read.
#[test]
fn a_file_that_a_line_names_beside_options_is_asked_for() {
    let of = |line: &str| {
        let text = format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --max_length \
             2048 --bf16 True {line}"
        );
        script(&text)
    };
    assert!(of("").plan.is_some());
    let message = error(&of("--config sft/config.yaml"), Code::MissingFile);
    assert!(message.contains("config.yaml"), "{message}");
}

/// aws-samples/amazon-sagemaker-generativeai `sm-llama3-sftt-llama3-fine-tuning.ipynb`: the program is a cell, and its line the
/// estimator's dictionary. The line was asked for, and one with eight GPUs proposed.
#[test]
fn an_estimator_gives_the_line_of_the_program_beside_it() {
    let cell = |text: &str| {
        let lines: Vec<String> =
            text.lines().map(|line| format!("\"{}\\n\"", line.replace('"', "\\\""))).collect();
        format!("{{\"cell_type\": \"code\", \"source\": [{}]}}", lines.join(","))
    };
    let program = "%%writefile scripts/tune.py\nfrom dataclasses import dataclass, field\nfrom transformers import \
                   AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments\n@dataclass\nclass Ours:\n    model_id: str = \
                   field(default=None)\n    max_seq_length: int = field(default=512)\nours, args = HfArgumentParser((Ours, \
                   TrainingArguments)).parse_args_into_dataclasses()\nmodel = \
                   AutoModelForCausalLM.from_pretrained(ours.model_id)\nTrainer(model=model, args=args, train_dataset=data).train()";
    let estimator = "import sagemaker\nhalf = True\nours = {\n    # The program's.\n    'model_id': 'Qwen/Qwen3-8B',\n    'max_seq_length': \
                     1024,  # tokens\n    'per_device_train_batch_size': 3,\n    'bf16': half,\n}\njob = \
                     HuggingFace(entry_point='tune.py', source_dir='scripts', instance_type='ml.p5.48xlarge', instance_count=2,\n    \
                     hyperparameters=ours, distribution={'torch_distributed': {'enabled': True}})\njob.fit()";
    let text = format!("{{\"cells\": [{}, {}], \"metadata\": {{}}}}", cell(program), cell(estimator));
    let read = said("train.ipynb", &text, &[]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let fields = [
        Field::SeqLength,
        Field::MicroBatchSize,
        Field::NumNodes,
        Field::GpusPerNode,
        Field::Accelerator,
        Field::Bf16,
    ];
    assert_eq!(fields.map(|field| value(&read, field)), ["1024", "3", "2", "8", "H100-SXM", "true"]);
    // An accelerator that the catalog lacks is not one that it has.
    stopped(&said("train.ipynb", &text.replace("p5.48x", "g5.48x"), &[]), &["--gres"]);
}

/// An estimator's machines and options are those of its own training only.
#[test]
fn an_estimator_is_not_read_where_it_may_be_of_another_run() {
    let of = |before: &str, count: u32, more: &str| {
        let text = format!(
            "import sagemaker\nours = {{'model_name_or_path': 'Qwen/Qwen3-8B', 'max_length': 1024, 'per_device_train_batch_size': 3, \
             'bf16': True}}\n{before}\njob = HuggingFace(entry_point='train.py', instance_type='ml.g6e.4xlarge', \
             instance_count={count}, hyperparameters=ours)\njob.fit()\n{more}\n"
        );
        let line = format!("\"{}\"", text.replace('\n', "\\n"));
        let cell = format!("{{\"cell_type\": \"code\", \"source\": {line}}}");
        said("train.ipynb", &format!("{{\"cells\": [{cell}], \"metadata\": {{}}}}"), &[])
    };
    let other =
        "more = HuggingFace(entry_point='train.py', instance_type='ml.p4d.24xlarge', hyperparameters=ours)";
    let local = "!torchrun --nproc_per_node 1 train.py --model_name_or_path Qwen/Qwen3-8B --max_length 2048 \
                 --per_device_train_batch_size 1 --bf16 True";
    for (before, more) in [("", ""), ("!pip install -q sagemaker\n%env WORLD_SIZE=8", "!ls")] {
        let read = of(before, 1, more);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        let fields = [Field::MicroBatchSize, Field::NumNodes, Field::GpusPerNode, Field::Accelerator];
        assert_eq!(fields.map(|field| value(&read, field)), ["3", "1", "1", "L40S"]);
    }
    for (before, count, more) in [
        // Two estimators of different machines.
        ("", 1, other),
        // Options that are set later.
        ("ours['per_device_train_batch_size']=8", 1, ""),
        ("ours|=more", 1, ""),
        ("ours.update(more)", 1, ""),
        // Two trainings that know nothing of each other.
        ("", 2, ""),
        // An option without a value is passed as an empty text.
        ("ours = {'model_name_or_path': 'Qwen/Qwen3-8B', 'max_length': 1024, 'max_steps': None}", 1, ""),
    ] {
        let read = of(before, count, more);
        assert!(read.plan.is_none(), "{before} {count} {more}: {:?}", read.diagnostics);
    }
    // Its GPU is not that of a command here.
    let read = of("", 1, local);
    assert_eq!(value(&read, Field::MicroBatchSize), "1", "{:?}", read.diagnostics);
    assert_ne!(value(&read, Field::Accelerator), "L40S", "{:?}", read.diagnostics);
}

/// SzJS/unsloth-qwen4b `src/training/sft.py` imports its length and its layers. unsloth's defaults were read.
#[test]
fn imported_constants_under_unsloth_are_asked_for() {
    let of = |length: &str, layers: &str| {
        let text = format!(
            "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\nfrom conf import LONGEST, LAYERS\nmodel, \
             tokenizer = FastLanguageModel.from_pretrained(model_name='unsloth/Qwen3-4B', load_in_4bit=False, max_seq_length={length})\nmodel = \
             FastLanguageModel.get_peft_model(model, r=16, target_modules={layers}, use_gradient_checkpointing='unsloth')\n\
             SFTTrainer(model=model, train_dataset=data, args=SFTConfig(output_dir='out')).train()\n"
        );
        asked(&said("sft.py", &text, &[]))
    };
    assert_eq!(of("4096", "['q_proj', 'v_proj']"), [""; 0]);
    assert_eq!(of("LONGEST", "LAYERS"), ["lora_target_modules", "seq_length"]);
}

/// YoumiMa/llm-sft `mdx/train_peft_single_gpu_gradient_checkpointing.sh`: `--use_peft` of a program whose own defaults are other
/// layers than PEFT's.
#[test]
fn adapters_of_an_unknown_program_are_asked_for() {
    let line = "python train.py --model_name_or_path Qwen/Qwen3-8B --use_peft --per_device_train_batch_size 1 \
                --gradient_accumulation_steps 1 --bf16 --max_seq_length 2048 --output_dir out";
    assert_eq!(asked(&script(line)), ["lora_rank", "lora_target_modules"]);
    assert!(script(&format!("{line} --lora_r 8 --lora_target_modules q_proj v_proj")).plan.is_some());
}

/// ROCm/MAD `scripts/huggingface_gpt2/run.sh`: `--fp16` of transformers' own example. Weights in fp16 were read, whose
/// gradients its scaler refuses.
#[test]
fn weights_under_loss_scaling_are_in_fp32() {
    let of = |model: &str, more: &str| {
        let text = format!(
            "torchrun --nproc_per_node 8 run_clm.py --model_name_or_path {model} --block_size 1024 --do_train \
             --per_device_train_batch_size 1 --output_dir out {more}"
        );
        value(&script(&text), Field::ParamsDtype)
    };
    assert_eq!(of("gpt2", "--fp16"), "fp32");
    assert_eq!(of("Qwen/Qwen3-0.6B", "--fp16"), "fp32");
    assert_eq!(of("Qwen/Qwen3-0.6B", "--bf16"), "bf16");
    // A model that the program loads for TRL's trainer, too.
    let program = |precision: &str| {
        let text = format!(
            "from trl import SFTConfig, SFTTrainer\nfrom transformers import AutoModelForCausalLM\n\
             model = AutoModelForCausalLM.from_pretrained(\"Qwen/Qwen3-0.6B\")\n\
             args = SFTConfig(output_dir=\"out\", per_device_train_batch_size=1, max_length=1024, {precision}=True)\n\
             SFTTrainer(model=model, args=args, train_dataset=data).train()\n"
        );
        value(&said("train.py", &text, &[("world_size", "1")]), Field::ParamsDtype)
    };
    assert_eq!((program("fp16"), program("bf16")), ("fp32".to_owned(), "bf16".to_owned()));
    // GPT-2's checkpoint is in fp32.
    assert_eq!(of("openai-community/gpt2-medium", "--bf16"), "fp32");
}

/// AMD-AGI/Primus-SaFE `qwen3_8B-BF16-bench.yaml`: the vocabulary is the tokenizer's, padded; that of the published embedding was
/// read.
#[test]
fn primus_takes_the_vocabulary_of_the_tokenizer() {
    let text = "exp_name: a\nworkspace: ./output\nmodules:\n  pre_trainer:\n    framework: megatron\n    config: \
                pre_trainer.yaml\n    model: qwen3_8B.yaml\n    overrides: {micro_batch_size: 1, global_batch_size: 64, seq_length: \
                2048, max_position_embeddings: 2048}\n";
    let read = said("bench.yaml", text, &[("world_size", "8")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(value(&read, Field::PaddedVocabSize), "151680");
    // Made-up data has a vocabulary of its own; another tokenizer too, and a stated size wins.
    let with = |more: &str| {
        let text = text.replace("{micro_batch_size", &format!("{{{more}, micro_batch_size"));
        value(&said("bench.yaml", &text, &[("world_size", "8")]), Field::PaddedVocabSize)
    };
    assert_eq!(with("mock_data: true"), "131072");
    assert_eq!(with("mock_data: true, vocab_size: 32000"), "32000");
    assert_eq!(with("mock_data: false"), "151680");
    assert_eq!(with("tokenizer_model: meta-llama/Llama-3.1-8B"), "128256");
}

/// Names that schedulers use for accelerators that the catalog lacks, and for consumer cards that it has.
#[test]
fn a_job_on_another_accelerator_is_not_answered_for_the_default_one() {
    let of = |gres: &str| {
        format!(
            "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres={gres}\ntorchrun --nproc_per_node 4 train.py --model_name_or_path \
             Qwen/Qwen3-8B --per_device_train_batch_size 1 --max_length 1024 --bf16 True\n"
        )
    };
    stopped(&script(&of("gpu:a10g:4")), &["--gres"]);
    assert_eq!(value(&script(&of("gpu:rtx_4090:4")), Field::Accelerator), "RTX-4090");
    assert!(script(&of("gpu:4")).plan.is_some());
}
