//! Programs that take their settings from the command line that starts them: the line is asked for, and the answer is
//! read as if it were pasted next to the program, together with the defaults of the program's own classes and the
//! branches that its options decide.

use super::value;
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// baichuan-inc/Baichuan2 `fine-tune/fine-tune.py`, shortened, with FastChat's `train_lora.py` (q_lora) and
/// OpenBMB/MiniCPM's `finetune.py` (a parameter that is given an option).
const PROGRAM: &str = r#"
@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default="Qwen/Qwen2.5-7B")


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    cache_dir: Optional[str] = field(default=None)
    optim: str = field(default="adafactor")
    model_max_length: int = field(
        default=256 * 2,
        metadata={"help": "Maximum sequence length (right padded, and possibly truncated)."},
    )
    use_lora: bool = field(default=False)


@dataclass
class LoraArguments:
    lora_r: int = 12
    lora_target_modules: List[str] = field(default_factory=lambda: ["q_proj", "v_proj"])
    q_lora: bool = False


@dataclass
class Elsewhere:
    model_max_length: int = 77


def load(path, rank: int = 4):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path,
        quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4")
        if lora_args.q_lora
        else None,
    )
    if training_args.use_lora:
        config = LoraConfig(r=rank, lora_alpha=32, target_modules=lora_args.lora_target_modules)
        model = get_peft_model(model, config)
    return model


parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments, LoraArguments))
model_args, training_args, lora_args = parser.parse_args_into_dataclasses()
model = load(path=model_args.model_name_or_path, rank=lora_args.lora_r)
trainer = transformers.Trainer(model=model, args=training_args)
trainer.train()
"#;
const LINE: &str = "torchrun --nproc_per_node 4 fine-tune.py --per_device_train_batch_size 2 --bf16 True --output_dir output";

fn answered(program: &str, line: &str) -> Resolution {
    let source = Source::from_files([("fine-tune.py", program)]);
    let variables = vec![("command_line".to_owned(), line.to_owned())];
    let environment = Environment { variables, ..Environment::default() };
    read(&Request { source: &source, environment: &environment, overrides: &[] })
}

fn beside(program: &str, line: &str) -> Resolution {
    let source = Source::from_files([("fine-tune.py", program), ("", line)]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

fn names(resolution: &Resolution) -> Vec<&str> {
    resolution.questions.iter().map(|asked| asked.name()).collect()
}

#[test]
fn the_line_is_one_question_and_its_answer_counts_as_pasted() {
    let source = Source::from_files([("fine-tune.py", PROGRAM)]);
    let open = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert!(open.plan.is_none() && open.not_modelled.is_empty());
    assert_eq!(names(&open), ["command_line"]);
    let proposal = open.questions[0].proposal.clone().expect("a proposal");
    let expected = "torchrun --nproc_per_node 8 fine-tune.py --model_name_or_path Qwen/Qwen2.5-7B \
        --per_device_train_batch_size 1 --bf16 True --output_dir output";
    assert_eq!(proposal, expected);
    assert!(answered(PROGRAM, &proposal).plan.is_some());
    for more in
        ["", " --use_lora True --q_lora True --lora_r 64", " --deepspeed $DS", " --model_max_length $LENGTH"]
    {
        let line = format!("{LINE}{more}");
        let (answer, paste) = (answered(PROGRAM, &line), beside(PROGRAM, &line));
        let said = |resolution: &Resolution| -> Vec<_> {
            let settings = resolution.settings.iter();
            settings.map(|setting| (setting.name(), setting.value.written(), setting.origin)).collect()
        };
        assert_eq!(said(&answer), said(&paste), "{more}");
        assert_eq!((answer.plan.is_some(), names(&answer)), (paste.plan.is_some(), names(&paste)), "{more}");
        // Nothing in the answer has a position in the text.
        let within = |span: Option<shardscope_source::Span>| {
            span.is_none_or(|span| span.end as usize <= source.text().len())
        };
        assert!(answer.settings.iter().all(|setting| within(setting.span)));
        assert!(answer.diagnostics.iter().all(|said| within(said.span)));
    }
    // A one-line input field joins lines that a backslash would join.
    let joined = answered(PROGRAM, &LINE.replace(" --bf16", " \\ --bf16"));
    assert_eq!(value(&joined, Field::Bf16), "true");
    // If the answer is not a command line, the question remains.
    assert_eq!(names(&answered(PROGRAM, "hello")), ["command_line"]);
}

#[test]
fn classes_of_arguments_have_defaults_and_options_decide_branches() {
    let fields = [
        Field::Optimizer,
        Field::SeqLength,
        Field::TrainType,
        Field::LoraRank,
        Field::LoraTargetModules,
        Field::BaseQuantization,
        Field::WorldSize,
    ];
    let said = |more: &str| {
        let resolution = answered(PROGRAM, &format!("{LINE}{more}"));
        assert!(resolution.plan.is_some(), "{more}: {:?}", resolution.diagnostics);
        fields.map(|field| value(&resolution, field))
    };
    assert_eq!(said(""), ["adafactor", "512", "full", "", "", "", "4"]);
    assert_eq!(
        said(" --optim adamw_torch --model_max_length 2048"),
        ["adam", "2048", "full", "", "", "", "4"]
    );
    assert_eq!(said(" --use_lora True"), ["adafactor", "512", "lora", "12", "q_proj v_proj", "", "4"]);
    assert_eq!(
        said(" --use_lora --lora_r 64 --q_lora True"),
        ["adafactor", "512", "qlora", "64", "q_proj v_proj", "fp4", "4"]
    );
    // An undecided condition is asked about.
    let other = PROGRAM.replace("if training_args.use_lora:", "if is_large(model):");
    let asked = answered(&other, LINE);
    assert!(asked.plan.is_none());
    assert_eq!(names(&asked), ["train_type"]);
}

/// Changes that a program itself makes to the model stop the verdict, unless an option disables them.
#[test]
fn a_program_with_hands_of_its_own_stops() {
    let with = |step: &str| PROGRAM.replace("    return model\n", &format!("{step}    return model\n"));
    let stops = |step: &str, more: &str| {
        let read = answered(&with(step), &format!("{LINE}{more}"));
        assert!(read.plan.is_none() != read.not_modelled.is_empty(), "{step}");
        read.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    // dvlab-research/LongLoRA `supervised-fine-tune.py`, OpenBMB/MiniCPM-V `finetune.py`, hkust-nlp/dart-math
    // `pipeline/train.py`.
    assert_eq!(
        stops("    [p.requires_grad_() for n, p in model.named_parameters() if 'norm' in n]\n", ""),
        ["requires_grad_"]
    );
    assert_eq!(stops("    model.vpm.requires_grad_(False)\n", ""), ["requires_grad_"]);
    assert_eq!(stops("    module = module.to(torch.float32)\n", ""), ["module.to"]);
    assert_eq!(stops("    monkey_patch4pack(config)\n", ""), ["monkey_patch4pack"]);
    assert_eq!(stops("    replace_llama_attn(True)\n", ""), ["replace_llama_attn"]);
    // Before adapters are added everything is frozen anyway, and a hook on the first input trains nothing.
    assert!(stops("    param.requires_grad = False  # train adapters\n", " --use_lora True").is_empty());
    assert!(stops("    output.requires_grad_(True)\n", "").is_empty());
    let branch =
        "    if lora_args.q_lora and not training_args.use_lora:\n        replace_llama_attn(True)\n";
    assert!(stops(branch, "").is_empty());
    assert_eq!(stops(branch, " --q_lora True"), ["replace_llama_attn"]);
    let other =
        "    if training_args.use_lora:\n        pass\n    else:\n        model.vpm.requires_grad_(False)\n";
    assert!(stops(other, " --use_lora True").is_empty());
    assert_eq!(stops(other, ""), ["requires_grad_"]);
    let checkpointed = answered(&with("    model.gradient_checkpointing_enable()\n"), LINE);
    assert_eq!(value(&checkpointed, Field::GradientCheckpointing), "true");
}

/// A program that declares its options with argparse: their defaults form the proposed line, and the values of the
/// given line are used.
#[test]
fn options_of_argparse_are_one_line_that_is_asked_for() {
    let program = "import argparse\nfrom transformers import Trainer, TrainingArguments\nBASE = 'Qwen/Qwen2.5-7B'\nparser = argparse.ArgumentParser()\n\
        parser.add_argument('--base-model', default=BASE)\nparser.add_argument('--batch-size', type=int, default=4)\n\
        parser.add_argument('--rank', type=int, default=16)\nparser.add_argument('--out', default='out')\nargs = parser.parse_args()\n\
        model = AutoModelForCausalLM.from_pretrained(args.base_model, torch_dtype=torch.bfloat16)\n\
        model = get_peft_model(model, LoraConfig(r=args.rank, target_modules=['q_proj']))\n\
        args = TrainingArguments(output_dir=args.out, per_device_train_batch_size=args.batch_size, bf16=True)\nTrainer(model=model, args=args).train()\n";
    let source = Source::from_files([("train.py", program)]);
    let first = read(&Request { source: &source, environment: &Environment::default(), overrides: &[] });
    assert_eq!(names(&first), ["command_line"]);
    let line = "python train.py --base-model Qwen/Qwen2.5-7B --rank 16 --out out --batch-size 4";
    assert_eq!(first.questions[0].proposal.as_deref(), Some(line));
    let fields = [Field::MicroBatchSize, Field::LoraRank, Field::NumLayers, Field::WorldSize];
    let said = |line: &str| {
        let read = answered(program, line);
        assert_eq!(names(&read), ["seq_length"], "{:?}", read.diagnostics);
        fields.map(|field| value(&read, field))
    };
    assert_eq!(said(line), ["4", "16", "28", "1"]);
    assert_eq!(said("torchrun --nproc_per_node 4 train.py --batch-size 2"), ["2", "16", "28", "4"]);
}

/// shibing624/MedicalGPT `training/pretraining.py`, shortened.
const MEDICAL: &str = r#"
@dataclass
class ModelArguments:
    model_name_or_path: str = field(default=None)
    load_in_4bit: bool = field(default=False)
    torch_dtype: Optional[str] = field(default="float16")

@dataclass
class ScriptArguments:
    use_peft: bool = field(default=True)
    target_modules: Optional[str] = field(default="all")
    lora_rank: Optional[int] = field(default=8)
    lora_alpha: Optional[float] = field(default=32.0)
    peft_path: Optional[str] = field(default=None)
    block_size: Optional[int] = field(default=1024)

def find_all_linear_names(peft_model, int4=False, int8=False):
    cls = torch.nn.Linear
    lora_module_names = set()
    for name, module in peft_model.named_modules():
        if isinstance(module, cls):
            if 'lm_head' in name:
                continue
            lora_module_names.add(name.split('.')[-1])
    return sorted(lora_module_names)

def main():
    parser = HfArgumentParser((ModelArguments, ScriptArguments, TrainingArguments))
    model_args, script_args, training_args = parser.parse_args_into_dataclasses()
    load_in_4bit = model_args.load_in_4bit
    config_kwargs = {}
    if load_in_4bit:
        config_kwargs['quantization_config'] = BitsAndBytesConfig(load_in_4bit=True)
    model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path, **config_kwargs)
    if script_args.use_peft:
        if script_args.peft_path is not None:
            model = PeftModel.from_pretrained(model, script_args.peft_path, is_trainable=True)
        else:
            if load_in_4bit:
                model = prepare_model_for_kbit_training(model, training_args.gradient_checkpointing)
            target_modules = script_args.target_modules.split(',') if script_args.target_modules else None
            if target_modules and 'all' in target_modules:
                target_modules = find_all_linear_names(model, int4=load_in_4bit)
            peft_config = LoraConfig(target_modules=target_modules, r=script_args.lora_rank, lora_alpha=script_args.lora_alpha)
            model = get_peft_model(model, peft_config)
        for param in filter(lambda p: p.requires_grad, model.parameters()):
            param.data = param.data.to(torch.float32)
    if training_args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    trainer = Trainer(model=model, args=training_args)
    trainer.train()
"#;

#[test]
fn a_programs_variables_and_branches_are_what_its_line_makes_of_them() {
    let line = "python fine-tune.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 4 --bf16 --block_size 512 \
        --gradient_checkpointing True";
    let said = |more: &str| {
        let resolution = beside(MEDICAL, &format!("{line} {more}"));
        assert!(resolution.plan.is_some(), "{more}: {:?}", resolution.diagnostics);
        let fields = [
            Field::TrainType,
            Field::LoraRank,
            Field::LoraTargetModules,
            Field::BaseQuantization,
            Field::UpcastNonQuantized,
            Field::RecomputeGranularity,
        ];
        fields.map(|field| value(&resolution, field))
    };
    assert_eq!(said(""), ["lora", "8", "all-linear", "", "", "full"]);
    assert_eq!(
        said("--load_in_4bit True --lora_rank 16"),
        ["qlora", "16", "all-linear", "nf4", "true", "full"]
    );
    assert_eq!(said("--target_modules q_proj,v_proj"), ["lora", "8", "q_proj v_proj", "", "", "full"]);
    assert_eq!(said("--use_peft False"), ["full", "", "", "", "", "full"]);
}

/// tloen/alpaca-lora `finetune.py`, shortened.
const ALPACA: &str = r#"
def train(
    base_model: str = "",
    batch_size: int = 128,
    micro_batch_size: int = 4,
    cutoff_len: int = 256,
    lora_r: int = 8,
    lora_dropout: float = 0.05,
    lora_target_modules: List[str] = ["q_proj", "v_proj"],
):
    gradient_accumulation_steps = batch_size // micro_batch_size
    model = LlamaForCausalLM.from_pretrained(base_model, load_in_8bit=True, torch_dtype=torch.float16)
    model = prepare_model_for_int8_training(model)
    config = LoraConfig(r=lora_r, target_modules=lora_target_modules, lora_dropout=lora_dropout)
    model = get_peft_model(model, config)
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            per_device_train_batch_size=micro_batch_size,
            gradient_accumulation_steps=gradient_accumulation_steps,
            fp16=True,
        ),
    )
    if torch.__version__ >= "2":
        model = torch.compile(model)
    trainer.train()

if __name__ == "__main__":
    fire.Fire(train)
"#;

#[test]
fn parameters_of_a_function_are_the_options_that_fire_makes_of_them() {
    let line = "python fine-tune.py --base_model meta-llama/Llama-2-7b-hf --batch_size 64";
    let resolution = beside(ALPACA, line);
    assert_eq!(names(&resolution), ["seq_length"]);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    let fields = [
        Field::NumLayers,
        Field::MicroBatchSize,
        Field::NumMicroBatches,
        Field::LoraRank,
        Field::LoraTargetModules,
        Field::BaseQuantization,
    ];
    assert_eq!(
        fields.map(|field| value(&resolution, field)),
        ["32", "4", "16", "8", "q_proj v_proj", "int8"]
    );
    // A model that is compiled before the trainer gets it is different.
    let before = ALPACA.replace(
        "    trainer = transformers",
        "    model = torch.compile(model)\n    trainer = transformers",
    );
    assert_eq!(beside(&before, line).not_modelled.len(), 1);
    // Defining a trainer class does not give it the model.
    let class = before.replace("def train(", "class Own(transformers.Trainer):\n    pass\n\ndef train(");
    assert_eq!(beside(&class, line).not_modelled.len(), 1);
}

#[test]
fn one_process_that_sees_several_accelerators_is_no_distributed_run() {
    let options = "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --max_seq_length 2048 \
                   --bf16 True --output_dir out";
    let lines = |start: &str| super::script(&format!("{start} {options}\n"));
    let named = |resolution: &Resolution| {
        resolution
            .not_modelled
            .iter()
            .any(|item| item.message.contains("one process for several accelerators"))
    };
    // transformers' Trainer would wrap the model in DataParallel.
    for start in [
        "CUDA_VISIBLE_DEVICES=0,1 python train.py",
        "export CUDA_VISIBLE_DEVICES=0,1,2,3\npython -u train.py",
        "#!/bin/bash\n#SBATCH --nodes=1 --gpus-per-node=4\npython train.py",
    ] {
        assert!(named(&lines(start)), "{start}");
    }
    for start in [
        "python train.py",
        "CUDA_VISIBLE_DEVICES=1 python train.py",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py",
        "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 2 train.py",
        "CUDA_VISIBLE_DEVICES=0,1 llamafactory-cli train --stage sft",
        "#!/bin/bash\n#SBATCH --nodes=1 --ntasks-per-node=4 --gpus-per-node=4\nsrun python train.py",
    ] {
        assert!(!named(&lines(start)), "{start}");
    }
}
