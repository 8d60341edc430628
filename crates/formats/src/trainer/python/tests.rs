//! Settings read from programs and notebooks.

use super::read_started;
use crate::releases::Installed;
use crate::spent::processor_time;
use crate::{Argument, Reading};
use shardscope_plan::Field;
use std::time::Duration;

fn read_python(text: &str, base: u32) -> Option<Reading> {
    read_started(text, base, "", &[], Installed::default())
}

#[test]
fn a_loop_of_the_programs_own_is_not_priced_as_a_trainers() {
    let text = "config = BitsAndBytesConfig(load_in_8bit=True)\nmodel = LlamaForCausalLM.from_pretrained('meta-llama/Llama-3.1-8B')\n\
        model = get_peft_model(model, LoraConfig(**asdict(lora)))\noptimizer = optim.AdamW(model.parameters())\n";
    let reading = read_python(text, 0).expect("calls");
    let lacks: Vec<&str> = reading.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(lacks, ["program", "LoraConfig"]);
    // A program that only loads, saves or queries models does not train.
    let merge =
        "config = AutoConfig.from_pretrained('a/b')\nmodel = AutoModelForCausalLM.from_pretrained('a/b')\n";
    assert!(read_python(merge, 0).is_none());
    assert!(read_python(&format!("quant = BitsAndBytesConfig(load_in_4bit=True)\n{merge}"), 0).is_none());
}

#[test]
fn trainers_and_classes_tell_what_their_arguments_do_not() {
    let program = |class: &str, trainer: &str| {
        let text = format!(
            "model = {class}.from_pretrained('Qwen/Qwen3-8B')\nargs = TrainingArguments(per_device_train_batch_size=2, bf16=True)\n\
             trainer = {trainer}(model, args=args)\n"
        );
        read_python(&text, 0).expect("calls")
    };
    let lacks = |reading: &crate::Reading| {
        reading.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    let dpo = program("AutoModelForCausalLM", "DPOTrainer");
    assert_eq!((dpo.value(Field::TrainingObjective), lacks(&dpo).len()), (Some("dpo"), 0));
    // Loaded by the program, instead of by TRL in fp32.
    assert_eq!(dpo.value(Field::ParamsDtype), Some("bf16"));
    assert!(lacks(&program("AutoModelForCausalLM", "ORPOTrainer")).is_empty());
    assert_eq!(lacks(&program("AutoModelForCausalLM", "BCOTrainer")), ["BCOTrainer"]);
    // Whether the model is one is known with its name.
    let pair = program("AutoModelForSeq2SeqLM", "Trainer");
    assert_eq!((pair.value(Field::Seq2seq), lacks(&pair).len()), (Some("true"), 0));
    assert_eq!(lacks(&program("T5ForTokenClassification", "Trainer")), ["T5ForTokenClassification"]);
    assert!(lacks(&program("AutoModelForCausalLM", "Trainer")).is_empty());
}

/// huggingface/peft `examples/miss_finetuning/miss_finetuning.py`, abridged.
#[test]
fn adapters_of_another_kind_stop_by_their_name() {
    let text = "from peft import (\n    LoraConfig, MissConfig,\n    get_peft_model\n)\n\
        model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\nconfig = MissConfig(r=16)\n\
        model = get_peft_model(model, config)\ntrainer = SFTTrainer(model, args=SFTConfig(max_length=512))\n";
    let lacks = |text: &str| {
        let reading = read_python(text, 0).expect("calls");
        reading.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(lacks(text), ["MissConfig"]);
    assert!(lacks(&text.replace("= MissConfig", "= LoraConfig")).is_empty());
    let never = text.replace("config = Miss", "if False:\n    config = Miss");
    assert!(lacks(&never).is_empty());
}

#[test]
fn a_computed_batch_is_asked_for() {
    let text = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n\
        args = SFTConfig(per_device_train_batch_size=cfg.batch, max_length=2048, seed=f(1))\n";
    let reading = read_python(text, 0).expect("calls");
    let open: Vec<_> = reading.found.iter().filter(|found| found.hole.is_some()).collect();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!((open[0].field, open[0].hole.as_deref()), (Field::MicroBatchSize, Some("cfg.batch")));
}

#[test]
fn names_that_a_line_assigns_together_are_known() {
    let read = |line: &str| {
        let text = format!(
            "{line}\nmodel = AutoModelForCausalLM.from_pretrained(name)\nargs = SFTConfig(max_length=2048, seed=f(1))\n"
        );
        read_python(&text, 0).expect("calls")
    };
    let reading =
        read("name, out = \"Qwen/Qwen3-8B\", \"out\"  # 12.8 GB\n# name, out = \"Qwen/Qwen3-0.6B\", \"o\"");
    assert_eq!(reading.value(Field::NumLayers), Some("36"));
    // A computed value is not a literal, and the call after it is read.
    let text = "other, tokenizer = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B'), 1\nargs = SFTConfig(max_length=2048)\n";
    assert_eq!(read_python(text, 0).expect("calls").value(Field::NumLayers), Some("36"));
    assert_eq!(read("name, out = \"Qwen/Qwen3-8B\"").value(Field::NumLayers), None);
}

#[test]
fn what_is_loaded_behind_the_training_is_not_trained() {
    let training =
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\nargs = SFTConfig(max_length=2048)\n";
    let more = "trainer.train()\nbase = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B', torch_dtype=torch.float16)\n\
        merged = PeftModel.from_pretrained(base, 'out')\n";
    let reading = read_python(&format!("{training}{more}"), 0).expect("calls");
    assert_eq!(reading.value(Field::NumLayers), Some("36"));
    assert_ne!(reading.value(Field::ParamsDtype), Some("torch.float16"));
    assert!(reading.not_modelled.is_empty(), "{:?}", reading.not_modelled);
    let text =
        format!("{training}model = PeftModel.from_pretrained(model, 'out', is_trainable=True)\n{more}");
    let reading = read_python(&text, 0).expect("calls");
    assert_eq!(reading.not_modelled.first().map(|item| item.name.as_str()), Some("PeftModel"));
}

/// TRL's trainers load a model that they are given by name in fp32 (`trl/trainer/utils.py:create_model_from_path`), whatever the text
/// loads for inference afterwards.
#[test]
fn a_trainer_that_is_given_a_name_loads_the_model_itself() {
    let read = |keywords: &str, behind: &str| {
        let text = format!(
            "name = 'Qwen/Qwen3-8B'\nargs = GRPOConfig(num_generations=4, max_completion_length=512{keywords})\n\
             trainer = GRPOTrainer(model=name, args=args)\ntrainer.train()\n{behind}"
        );
        read_python(&text, 0).expect("calls").value(Field::ParamsDtype).map(str::to_owned)
    };
    let behind = "tuned = AutoModelForCausalLM.from_pretrained('out', dtype='auto')\n";
    assert_eq!(read("", "").as_deref(), Some("fp32"));
    assert_eq!(read("", behind).as_deref(), Some("fp32"));
    let stated = ", model_init_kwargs={\n 'attn_implementation': 'sdpa',  # or flash\n 'dtype': 'bfloat16',  # or float32\n}";
    assert_eq!(read(stated, behind).as_deref(), Some("bfloat16"));
    // A function that trains may stand above the lines that load its model.
    let text = "def tune(model):\n    trainer = SFTTrainer(model=model, args=SFTConfig(max_length=512))\n    trainer.train()\n\
                model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\ntune(model)\n";
    assert_eq!(read_python(text, 0).expect("calls").value(Field::ParamsDtype), Some("bf16"));
}

#[test]
fn comments_between_the_elements_of_a_list_hide_none_of_them() {
    let text = "peft = LoraConfig(\n    r=8,\n    target_modules=[\n        'q_proj',  # queries, don't drop\n        # 'k_proj',\n        \
                'v_proj',  # values (and no more)\n    ],\n)\nargs = SFTConfig(max_length=512, gradient_checkpointing_kwargs={\n    \
                # of the first kind\n    'use_reentrant': True,  # faster\n}, output_dir='a #1')\n\
                trainer = SFTTrainer(model='Qwen/Qwen3-8B', args=args, peft_config=peft)\n";
    let reading = read_python(text, 0).expect("calls");
    let targets = reading.value(Field::LoraTargetModules).unwrap_or_default();
    let targets: Vec<&str> = targets.trim_matches(['[', ']']).split(',').map(str::trim).collect();
    assert_eq!(targets.iter().filter(|name| !name.is_empty()).collect::<Vec<_>>(), [&"q_proj", &"v_proj"]);
    assert_eq!(reading.value(Field::ReentrantCheckpoints), Some("true"));
}

/// GRPO still has `max_completion_length` (`trl/trainer/grpo_config.py`), which other trainers of TRL lost.
#[test]
fn grpo_casts_adapters_over_quantized_weights_to_bf16() {
    let read = |keywords: &str| {
        let text = format!(
            "lora = LoraConfig(r=8)\nquantized = BitsAndBytesConfig(load_in_4bit=True)\n\
             args = GRPOConfig(max_completion_length=256{keywords})\n\
             trainer = GRPOTrainer(model='Qwen/Qwen3-8B', args=args, peft_config=lora, quantization_config=quantized)\n"
        );
        read_python(&text, 0).expect("calls").value(Field::AdapterDtype).map(str::to_owned)
    };
    assert_eq!(read("").as_deref(), Some("bf16"));
    assert_eq!(read(", max_prompt_length=512"), None);
}

#[test]
fn literal_calls_are_read_and_the_rest_is_left_open() {
    let text = r#"
import torch
from peft import LoraConfig  # r=4
max_seq_length = 2048  # tokens
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B", torch_dtype=torch.bfloat16, device_map={"": 0})
tokenizer = AutoTokenizer.from_pretrained("other/name")
peft = LoraConfig(r=16, lora_alpha=32, # scale
target_modules=["q_proj", "v_proj"], lora_dropout=0.05)
args = SFTConfig(
output_dir="out", per_device_train_batch_size=2, gradient_accumulation_steps = 4,
max_length=max_seq_length, bf16=True, learning_rate=2e-4, optim="adamw_8bit", seed=compute(),
)
"#;
    let reading = read_python(text, 0).expect("calls");
    let said = |field| reading.value(field).unwrap_or("");
    assert_eq!((said(Field::NumLayers), said(Field::SeqLength)), ("36", "2048"));
    assert_eq!((said(Field::LoraRank), said(Field::TrainType)), ("16", "lora"));
    assert_eq!((said(Field::MicroBatchSize), said(Field::NumMicroBatches)), ("2", "4"));
    assert_eq!(said(Field::ParamsDtype), "torch.bfloat16");
    assert_eq!(said(Field::LoraTargetModules), "[q_proj, v_proj]");
    assert!(read_python("print('hello')\nx = f(1)\n", 0).is_none());
    for broken in ["SFTConfig(", "SFTConfig(a=\"", "LoraConfig(r=[1,", "TrainingArguments(#", "\"\"\""] {
        let _ = read_python(broken, 0);
    }
}

/// liguodongiot/llm-action `llm-train/peft/multimodal/finetune_bloom_bnb_peft.ipynb`, abridged, and possible arguments
/// of its call (`peft/utils/other.py:prepare_model_for_kbit_training`).
#[test]
fn a_model_prepared_for_kbit_training_is_cast_up_and_checkpointed() {
    let program = |loads: &str, call: &str| {
        let text = format!(
            "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B'{loads})\n{call}\n\
             model = get_peft_model(model, LoraConfig(r=16, target_modules=['q_proj']))\n\
             args = transformers.TrainingArguments(per_device_train_batch_size=2, fp16=True)\n"
        );
        let reading = read_python(&text, 0).expect("calls");
        [Field::UpcastNonQuantized, Field::GradientCheckpointing, Field::ParamsDtype]
            .map(|field| reading.value(field).unwrap_or("").to_owned())
    };
    let eight = ", load_in_8bit=True";
    for name in ["prepare_model_for_kbit_training", "prepare_model_for_int8_training"] {
        assert_eq!(program(eight, &format!("model = {name}(model)")), ["true", "true", "fp16"]);
    }
    let off = "model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)";
    assert_eq!(program(eight, off), ["true", "false", "fp16"]);
    assert_eq!(program(eight, ""), ["", "false", "fp16"]);
    // All weights of an unquantized model are cast.
    assert_eq!(program("", "model = prepare_model_for_kbit_training(model)"), ["", "false", "fp32"]);
    // Under a condition that the command line decides.
    let text = "@dataclass\nclass A:\n    q_lora: bool = False\n\nparser = HfArgumentParser((A, TrainingArguments))\n\
        args, training_args = parser.parse_args_into_dataclasses()\n\
        model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path, load_in_4bit=args.q_lora)\n\
        if args.q_lora:\n    model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=args.low)\n\
        model = get_peft_model(model, LoraConfig(r=8))\ntrainer = Trainer(model=model, args=training_args)\n";
    let line = |words: &str| {
        let words = Argument::split(&format!("--model_name_or_path Qwen/Qwen3-8B {words}"));
        let reading = read_started(text, 0, "train.py", &words, Installed::default()).expect("calls");
        [Field::UpcastNonQuantized, Field::GradientCheckpointing]
            .map(|field| reading.value(field).unwrap_or("").to_owned())
    };
    assert_eq!(line("--q_lora True --low True"), ["true", "true"]);
    assert_eq!(line("--q_lora True --low False"), ["true", "false"]);
    assert_eq!(line("--q_lora False"), ["", "false"]);
    // A condition on something other than an option.
    let text = text.replace("if args.q_lora", "if torch.cuda.is_available()");
    let words = Argument::split("--model_name_or_path Qwen/Qwen3-8B");
    let reading = read_started(&text, 0, "train.py", &words, Installed::default()).expect("calls");
    assert!(reading.not_modelled.iter().any(|item| item.name == "prepare_model_for_kbit_training"));
}

/// For any number of calls, classes, conditions and variables in a program, and with unbalanced parentheses.
#[test]
fn hostile_programs_end_soon() {
    /// Far above the time that an optimized build takes: tests run without optimization.
    const LONG: Duration = Duration::from_secs(10);
    let parser = "p = HfArgumentParser((A, B))\nt = Trainer(m)\n";
    let words = Argument::split("--lora_r 8 --bf16 True");
    let texts = [
        "m.from_pretrained(".repeat(10_000),
        "    if args.a:\n        m.from_pretrained(x)\n".repeat(8_000),
        "HfArgumentParser(".repeat(10_000),
        "class A:\n  b: int = field(\n".repeat(8_000),
        (0..8_000).map(|at| format!("LoraConfig(r=x{at}, a=y{at})\n")).collect(),
        "    if args.lora_r == 9:\n        a.requires_grad_(True)\n".repeat(8_000),
        "# python a.py --b \\\n".repeat(20_000),
        // One long line, long chains of names and of branches, and names assigned to each other.
        format!("d = {{{}}}\nLoraConfig(**d)\n", "'k': v, ".repeat(40_000)),
        format!("def t({}):\n  LoraConfig(r=a)\nfire.Fire(t)\n", "a=1, ".repeat(60_000)),
        (0..8_000).map(|at| format!("a{at} = a{}\n", at + 1)).collect::<String>() + "LoraConfig(r=a0)\n",
        format!("if a:\n  x=1\n{}LoraConfig(r=x)\n", "elif b:\n  x=2\n".repeat(10_000)),
        format!("x=1\n{}LoraConfig(r=x)\n", "x = x if x else x\n".repeat(10_000)),
        "x = y[z] if not a and b else c or d\nLoraConfig(r=x)\n".repeat(2_000),
        "SFTTrainer(tokenizer,\n".repeat(10_000),
        format!("TrainingArguments()\n{}", "transformers[".repeat(40_000)),
        format!("TrainingArguments()\n{}", "input_ids = input_ids[:".repeat(20_000)),
    ];
    for text in texts {
        let whole = format!("{parser}{text}");
        for words in [&words[..], &[]] {
            let start = processor_time();
            let _ = read_started(&whole, 0, "a.py", words, Installed::default());
            let took = processor_time().saturating_sub(start);
            assert!(took < LONG, "{took:?} for {}", whole.get(..90).unwrap_or(""));
        }
    }
}

#[test]
fn what_a_program_builds_and_never_hands_on_counts_for_nothing() {
    let read = |quantized: &str, adapters: &str| {
        let text = format!(
            "bnb = BitsAndBytesConfig(load_in_4bit=True)\nlora = LoraConfig(r=16, target_modules=['q_proj'])\n\
             model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B'{quantized})\n\
             trainer = SFTTrainer(model=model, args=SFTConfig(max_length=512){adapters})\ntrainer.train()\n"
        );
        read_python(&text, 0).expect("calls")
    };
    let both = read(", quantization_config=bnb", ", peft_config=lora");
    assert_eq!(both.value(Field::TrainType), Some("qlora"));
    let plain = read("", ", peft_config=lora");
    assert_eq!((plain.value(Field::TrainType), plain.value(Field::BaseQuantization)), (Some("lora"), None));
    assert_eq!(read("", "").value(Field::TrainType), Some("full"));
}

#[test]
fn trls_trainer_with_transformers_arguments_has_their_defaults_and_loraconfig_those_of_peft() {
    let read = |arguments: &str| {
        let text = format!(
            "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B', torch_dtype=torch.bfloat16)\n\
             trainer = SFTTrainer(model=model, peft_config=LoraConfig(target_modules=['q_proj']), args={arguments})\ntrainer.train()\n"
        );
        let reading = read_python(&text, 0).expect("calls");
        let value = |field| reading.value(field).map(str::to_owned);
        [Field::GradientCheckpointing, Field::Bf16, Field::LoraRank, Field::LoraAlpha, Field::LoraDropout]
            .map(value)
    };
    let some = |word: &str| Some(word.to_owned());
    let peft = [some("8"), some("8"), some("0")];
    let [layers, bf16, adapters @ ..] = read("TrainingArguments(fp16=True)");
    assert_eq!((layers, bf16, &adapters), (some("false"), None, &peft));
    let [layers, bf16, adapters @ ..] = read("SFTConfig(max_length=512)");
    assert_eq!((layers, bf16, &adapters), (some("true"), some("true"), &peft));
    assert_eq!(read("TrainingArguments(gradient_checkpointing=True)")[0], some("true"));
}

#[test]
fn arguments_of_transformers_4_load_in_fp32() {
    let read = |arguments: &str, model: &str| {
        let text = format!(
            "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B'{model})\n\
             trainer = Trainer(model=model, args=TrainingArguments(output_dir='out', {arguments}))\ntrainer.train()\n"
        );
        read_python(&text, 0).expect("calls").value(Field::ParamsDtype).map(str::to_owned)
    };
    // In any release: the scaler refuses gradients of weights in fp16.
    assert_eq!(read("eval_strategy='no', fp16=True", "").as_deref(), Some("fp32"));
    assert_eq!(read("eval_strategy='no', bf16=True", "").as_deref(), Some("bf16"));
    assert_eq!(read("evaluation_strategy='no', bf16=True", "").as_deref(), Some("fp32"));
    let dtype = ", torch_dtype=torch.bfloat16";
    assert_eq!(read("evaluation_strategy='no'", dtype).as_deref(), Some("torch.bfloat16"));
}

#[test]
fn trainers_of_the_programs_own_and_trainings_that_it_does_not_start_stop() {
    let lacks = |text: &str| {
        let reading = read_python(text, 0).expect("calls");
        reading.not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>()
    };
    let model = "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\nargs = TrainingArguments(bf16=True)\n";
    assert_eq!(lacks(&format!("{model}Trainer(model, args).train()\n")), [""; 0]);
    assert_eq!(lacks(model), ["program"]);
    // A class of the program that only overrides saving is the library's trainer; one with another loss is not.
    let saves = "class MyTrainer(Trainer):\n    def save_model(self):\n        pass\n";
    assert_eq!(lacks(&format!("{saves}{model}MyTrainer(model, args).train()\n")), [""; 0]);
    let loses = "class MyTrainer(Trainer):\n    def compute_loss(self, model, inputs):\n        pass\n";
    assert_eq!(lacks(&format!("{loses}{model}MyTrainer(model, args).train()\n")), ["compute_loss"]);
    let beside = "from src.own import SFTTrainer\n";
    assert_eq!(lacks(&format!("{beside}{model}SFTTrainer(model, args).train()\n")), ["SFTTrainer"]);
    // With nothing but a class of that name it is not a TRL training.
    assert!(read_python(&format!("{beside}SFTTrainer(model).train()\n"), 0).is_none());
    for (line, name) in [
        ("apply_liger_kernel_to_qwen3()\n", "apply_liger_kernel_to_"),
        ("optimizers=(adam, None)\n", "optimizers"),
        ("model = torch.compile(model)\n", "torch.compile"),
        ("model.half()\n", "model.half"),
        ("plugin = FullyShardedDataParallelPlugin()\n", "DataParallelPlugin"),
        ("class Head(nn.Module):\n    pass\n", "nn.Module"),
    ] {
        assert_eq!(lacks(&format!("{model}{line}Trainer(model, args).train()\n")), [name]);
    }
}

/// meta-llama/llama-cookbook `getting-started/distillation/distillation.ipynb`, abridged: its own evaluation has a function of
/// the name of a trainer's method.
#[test]
fn a_function_that_is_no_method_overrides_nothing() {
    let lacks = |head: &str| {
        let text = format!(
            "class Own(Trainer):\n    {head}\n        return 0\n\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n\
             args = TrainingArguments(per_device_train_batch_size=2)\ntrainer = Own(model=model, args=args)\ntrainer.train()\n"
        );
        let reading = read_python(&text, 0).expect("calls");
        reading.not_modelled.iter().any(|item| item.name == "compute_loss")
    };
    assert!(lacks("def compute_loss(self, model, inputs):") && lacks("def compute_loss(*args, **kwargs):"));
    assert!(lacks("def compute_loss(\n        self,\n        model):"));
    // What is nested in a class or function may be handed on, whatever its first parameter is called.
    assert!(lacks("def compute_loss(model, tokenizer, prompt: str):"));
    let of_module = |more: &str| {
        let text = format!(
            "def compute_loss(model, tokenizer, prompt: str):\n    return 0\n\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-8B')\n\
             args = TrainingArguments(per_device_train_batch_size=2)\ntrainer = Trainer(model=model, args=args)\n{more}trainer.train()\n"
        );
        let reading = read_python(&text, 0).expect("calls");
        reading.not_modelled.iter().any(|item| item.name == "compute_loss")
    };
    assert!(!of_module("") && of_module("trainer.compute_loss = compute_loss\n"));
}
