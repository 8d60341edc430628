//! Misreadings found in the fourteenth draw of public files, and questions that the text already answers.

use super::{said, script, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// A notebook with these lines in its cells, and this metadata in addition to Colab's own.
fn notebook(lines: &[&str], metadata: &str) -> String {
    let mut source = String::new();
    for (index, line) in lines.iter().enumerate() {
        source.push_str(if index == 0 { "" } else { ", " });
        source.push_str(&format!("\"{}\\n\"", line.replace('"', "\\\"")));
    }
    format!(
        "{{\"cells\": [{{\"cell_type\": \"code\", \"source\": [{source}]}}], \"metadata\": {{{metadata}}}, \"nbformat\": 4}}"
    )
}

/// huggingface/smol-course `notebooks/ja/2_preference_alignment/orpo_finetuning_example.ipynb`: `tokenizer=` is an
/// argument of TRL's trainers until 0.15, whose own arguments enabled neither bf16 (0.19) nor checkpointing (0.22).
/// Both were read as on.
#[test]
fn arguments_of_an_early_trl_have_the_defaults_of_an_early_trl() {
    let of = |install: &str, tokenizer: &str| {
        let program = format!(
            "{install}\nmodel_name = 'HuggingFaceTB/SmolLM2-135M'\nmodel = AutoModelForCausalLM.from_pretrained(model_name)\n\
             config = ORPOConfig(max_length=512, learning_rate=5e-5, per_device_train_batch_size=4)\n\
             trainer = ORPOTrainer(model=model, args=config, train_dataset=rows, {tokenizer}=tokenizer)\ntrainer.train()\n"
        );
        let read = said("train.py", &program, &[("world_size", "1")]);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::Autocast, Field::GradientCheckpointing, Field::ParamsDtype].map(|field| value(&read, field))
    };
    assert_eq!(of("", "tokenizer"), ["none", "false", "fp32"]);
    assert_eq!(of("", "processing_class"), ["bf16", "true", "bf16"]);
    assert_eq!(of("# pip install trl==0.21.0", "processing_class"), ["bf16", "false", "fp32"]);
    assert_eq!(of("# pip install trl<0.19", "processing_class"), ["none", "false", "fp32"]);
    assert_eq!(of("# pip install transformers==4.57.1", "processing_class"), ["bf16", "true", "fp32"]);
}

/// huggingface/smol-course `v1/pt-br/3_parameter_efficient_finetuning/notebooks/finetune_sft_peft.ipynb`: `SFTTrainer`
/// itself took `max_seq_length` until TRL 0.12, with transformers 4, which loads in fp32. It was read as bf16, the
/// checkpoint's format.
#[test]
fn lengths_and_packs_of_sft_trainer_itself_are_those_of_an_early_trl() {
    let of = |more: &str| {
        let program = format!(
            "model = AutoModelForCausalLM.from_pretrained('HuggingFaceTB/SmolLM2-135M')\npeft_config = LoraConfig(r=6, target_modules='all-linear')\n\
             args = SFTConfig(per_device_train_batch_size=2, gradient_checkpointing=True, bf16=True)\n\
             trainer = SFTTrainer(\n    model=model,\n    args=args,\n    peft_config=peft_config,  # adapters\n{more}\n)\ntrainer.train()\n"
        );
        let read = said("train.py", &program, &[("world_size", "1")]);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::ParamsDtype, Field::SeqLength].map(|field| value(&read, field))
    };
    assert_eq!(of("    max_seq_length=1512,  # of the model and of packs"), ["fp32", "1512"]);
    assert_eq!(of("    train_dataset=rows"), ["bf16", "1024"]);
}

const CHINESE_LLAMA: &str = "torchrun --nnodes 1 --nproc_per_node 1 run_clm_pt_with_peft.py --model_name_or_path decapoda-research/llama-7b-hf \
    --per_device_train_batch_size 1 --fp16 --gradient_accumulation_steps 1 --block_size 512 --lora_rank 8 --lora_alpha 32 \
    --trainable q_proj,v_proj --dataset_dir pt_data --modules_to_save embed_tokens,lm_head --torch_dtype float16 --gradient_checkpointing";

/// ymcui/Chinese-LLaMA-Alpaca `notebooks/pretrain_chinese_llama_lora.ipynb` trains the embedding for a larger tokenizer
/// than the model's (`run_clm_pt_with_peft.py`: `model.resize_token_embeddings(len(tokenizer))`, 49,953 tokens). The
/// model's 32,000 were used.
#[test]
fn another_tokenizer_than_the_models_asks_for_the_rows_of_the_embedding() {
    let of = |tokenizer: &str| script(&format!("{CHINESE_LLAMA} --tokenizer_name_or_path {tokenizer}"));
    let open = of("ziqingyang/chinese-llama-lora-7b");
    let asked: Vec<_> =
        open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
    assert_eq!(asked, [(Field::VocabSize.name(), Some("32000"))]);
    let answered = said(
        "run.sh",
        &format!("{CHINESE_LLAMA} --tokenizer_name_or_path ziqingyang/chinese-llama-lora-7b"),
        &[("vocab_size", "49953")],
    );
    assert!(answered.plan.is_some(), "{:?}", answered.diagnostics);
    assert_eq!(value(&answered, Field::VocabSize), "49953");
    // The model's own tokenizer by its name or in a folder, and one that fits.
    for same in ["decapoda-research/llama-7b-hf/", "models/llama-7b-hf", "meta-llama/Llama-2-7b-hf"] {
        let read = of(same);
        assert!(read.plan.is_some(), "{same}: {:?}", read.diagnostics);
        assert_eq!(value(&read, Field::VocabSize), "32000");
    }
}

/// The same notebook installs transformers 4.28.1, whose Llama only has the attention that keeps scores
/// (`modeling_llama.py`), and also copies them; the current one was assumed.
#[test]
fn layers_of_transformers_before_4_36_stop_the_verdict() {
    let of = |release: &str| {
        let lines = [format!("!pip install transformers=={release}"), format!("!{CHINESE_LLAMA}")];
        said("run.ipynb", &notebook(&[&lines[0], &lines[1]], ""), &[])
    };
    stopped(&of("4.28.1"), &["transformers"]);
    stopped(&of("4.35.2"), &["transformers"]);
    let later = of("4.36.0");
    assert!(later.plan.is_some(), "{:?}", later.diagnostics);
}

/// datawhalechina/happy-llm `why-fine-tune-small-large-language-models.ipynb` truncates samples to MAX_LENGTH by a
/// slice, in a Colab runtime with a T4. 2,048 tokens and 8 GPUs were proposed.
#[test]
fn a_colab_runtime_has_one_gpu_and_a_slice_cuts_samples() {
    let lines = [
        "def process_func(example):",
        "    MAX_LENGTH = 1024",
        "    input_ids = tokenizer(example['instruction'])['input_ids']",
        "    if len(input_ids) > MAX_LENGTH:",
        "        input_ids = input_ids[:MAX_LENGTH]",
        "    return {'input_ids': input_ids}",
        "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen3-0.6B', torch_dtype=torch.bfloat16)",
        "args = TrainingArguments(per_device_train_batch_size=4, gradient_accumulation_steps=4)",
        "trainer = Trainer(model=model, args=args, train_dataset=rows)",
        "trainer.train()",
    ];
    let colab = "\"accelerator\": \"GPU\", \"colab\": {\"gpuType\": \"T4\"}";
    let read = said("train.ipynb", &notebook(&lines, colab), &[]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    let of = |field| value(&read, field);
    assert_eq!([Field::SeqLength, Field::WorldSize, Field::Accelerator].map(of), ["1024", "1", "T4"]);
    // Colab metadata without an accelerator say nothing about one, and those of another host nothing about their
    // number.
    for metadata in ["\"colab\": {\"provenance\": []}", "\"accelerator\": \"GPU\""] {
        let open = said("train.ipynb", &notebook(&lines, metadata), &[]);
        let asked: Vec<_> = open.questions.iter().map(|asked| asked.name()).collect();
        assert_eq!(asked, [Field::WorldSize.name()], "{metadata}");
    }
}

const TRAINER: &str = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 \
    --model_max_length 2048 --deepspeed ds.json";

/// A script together with a file.
fn beside(line: &str, name: &str, text: &str) -> Resolution {
    let source = Source::from_files([("run.sh", line), (name, text)]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

/// OpenBMB/ToolBench `ds_configs/stage2.json` has the section for bf16 under its former name, which DeepSpeed still
/// accepts; it was missed, and read as fp16. showlab/ShowUI `ds_configs/zero3.json` has no section for a precision, so
/// accelerate adds the requested one; it was read as fp32.
#[test]
fn a_deepspeed_configuration_without_a_precision_has_that_of_the_trainer() {
    let model = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("world_size", "8")];
    let of = |engine: &str| {
        let read = said("ds.json", engine, &model);
        assert!(read.plan.is_some(), "{engine}: {:?}", read.diagnostics);
        [Field::ParamsDtype, Field::Autocast].map(|field| value(&read, field))
    };
    let zero = "\"zero_optimization\": {\"stage\": 2}, \"train_micro_batch_size_per_gpu\": \"auto\"";
    let auto = "{\"enabled\": \"auto\"}";
    assert_eq!(of(&format!("{{\"bfloat16\": {auto}, \"fp16\": {auto}, {zero}}}")), ["bf16", "bf16"]);
    assert_eq!(of(&format!("{{\"bf16\": {auto}, \"fp16\": {auto}, {zero}}}")), ["bf16", "bf16"]);
    assert_eq!(of(&format!("{{\"fp16\": {auto}, {zero}}}")), ["fp16", "fp16"]);
    assert_eq!(of(&format!("{{{zero}}}")), ["bf16", "bf16"]);
    assert_eq!(of(&format!("{{\"fp16\": {{\"enabled\": false}}, {zero}}}")), ["fp32", "none"]);
    // With the command line that starts the training, the line decides.
    for (flag, format) in [("--bf16", "bf16"), ("--fp16", "fp16")] {
        let read = beside(&format!("{TRAINER} {flag}"), "ds.json", &format!("{{{zero}}}"));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::Autocast), format);
    }
}

/// showlab/ShowUI `ds_configs/zero1.json` has neither a batch nor a precision, which its program adds (`train.py`). It
/// was read as Megatron-DeepSpeed in fp32, one sample at a time.
#[test]
fn a_deepspeed_configuration_without_a_batch_is_completed_by_its_program() {
    let zero = "{\"zero_optimization\": {\"stage\": 1}}";
    let open =
        said("ds.json", zero, &[("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("world_size", "8")]);
    let asked: Vec<_> =
        open.questions.iter().map(|asked| (asked.name(), asked.proposal.as_deref())).collect();
    assert_eq!(asked, [(Field::MicroBatchSize.name(), Some("1"))]);
    let whole = [
        ("model", "Qwen/Qwen2.5-7B"),
        ("seq_length", "4096"),
        ("world_size", "8"),
        ("micro_batch_size", "1"),
    ];
    let read = said("ds.json", zero, &whole);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!([Field::ParamsDtype, Field::ZeroStage].map(|field| value(&read, field)), ["bf16", "1"]);
    // Values given by the command line are not asked for.
    let both = beside(&format!("{TRAINER} --bf16"), "ds.json", zero);
    assert!(both.plan.is_some(), "{:?}", both.diagnostics);
    assert_eq!(value(&both, Field::MicroBatchSize), "2");
    // A file with its own batch is Megatron-DeepSpeed's.
    let own = said(
        "ds.json",
        "{\"zero_optimization\": {\"stage\": 1}, \"train_micro_batch_size_per_gpu\": 4}",
        &[("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("world_size", "8")],
    );
    assert_eq!([Field::ParamsDtype, Field::MicroBatchSize].map(|field| value(&own, field)), ["fp32", "4"]);
}

/// zjunlp/KnowLM `finetune/qlora/run_qlora.sh` trains in fp16, where QLoRA's program leaves the embedding, output layer
/// and norms in fp32 (`train.py:get_accelerate_model`); with bf16 it casts the first two back, and adapters with them.
#[test]
fn qlora_in_fp16_keeps_what_is_not_quantized_in_fp32() {
    let of = |format: &str| {
        let read = script(&format!(
            "CUDA_VISIBLE_DEVICES=2 python train.py --model_name_or_path huggyllama/llama-7b --source_max_len 128 --target_max_len 384 \
             --lora_r 64 --double_quant --bits 4 --quant_type nf4 --optim paged_adamw_32bit --per_device_train_batch_size 8 \
             --gradient_accumulation_steps 1 {format}"
        ));
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::UpcastNonQuantized, Field::UpcastNorms, Field::AdapterDtype].map(|field| value(&read, field))
    };
    assert_eq!(of("--fp16"), ["true", "", "fp32"]);
    assert_eq!(of("--bf16"), ["true", "true", "bf16"]);
    for bits in ["8", "16"] {
        let read = script(&format!(
            "python qlora.py --model_name_or_path huggyllama/llama-7b --source_max_len 16 --target_max_len 512 --lora_r 64 --bits {bits} \
             --bf16 --lora_modules all --per_device_train_batch_size 1"
        ));
        stopped(&read, &["bits"]);
        assert!(
            read.not_modelled.iter().all(|item| !item.message.contains("TRL")),
            "{:?}",
            read.not_modelled
        );
    }
}

/// pacman100/LLM-Workshop `chat_assistant/sft/training/train.py` takes its arguments from its command line, which
/// overrides those defaults.
#[test]
fn the_line_of_a_program_goes_before_the_defaults_of_its_release() {
    let program = "parser = HfArgumentParser((ModelArguments, TrainingArguments))\nmodel_args, args = parser.parse_args_into_dataclasses()\n\
        model = AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)\n\
        trainer = SFTTrainer(model=model, tokenizer=tokenizer, args=args, packing=True)\ntrainer.train()\n";
    let of = |more: &str| {
        let line = format!(
            "python train.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 2 {more}"
        );
        let read = beside(&line, "train.py", program);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        [Field::Autocast, Field::GradientCheckpointing].map(|field| value(&read, field))
    };
    assert_eq!(of(""), ["none", "false"]);
    assert_eq!(of("--bf16 True --gradient_checkpointing True"), ["bf16", "true"]);
}

/// NVIDIA-NeMo/Nemotron names the recipe that its settings override
/// (`src/nemotron/recipes/ultra3/stage1_sft/config/default.yaml`), and the machines of the launch; both were asked for,
/// and the launch settings stopped the verdict.
#[test]
fn settings_that_name_their_own_recipe_are_read_over_it() {
    let of = |recipe: &str, more: &str| {
        let text = format!(
            "run:\n  data: ultra3-sft-data:latest\n  env:\n    container: /containers/sft.sqsh\n    nodes: 4\n    gpus_per_node: 8\n\
             recipe:\n  _target_: megatron.bridge.recipes.{recipe}\n{more}\
             train:\n  train_iters: 1700\n  global_batch_size: 32\n"
        );
        said("default.yaml", &text, &[])
    };
    let stated = |read: &Resolution| {
        [Field::NumLayers, Field::SeqLength, Field::GlobalBatchSize, Field::WorldSize]
            .map(|field| value(read, field))
    };
    let data = "  per_split_data_args_path: ${art:data,path}/blend.json\n  peft: null\n";
    let read = of("qwen.qwen3.qwen3_8b_pretrain_config", data);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(stated(&read), ["36", "4096", "32", "32"]);
    // The length passed to the function applies unless the model states its own.
    let read = of("qwen.qwen3.qwen3_8b_pretrain_config", "  seq_length: 8192\n");
    assert_eq!(stated(&read), ["36", "8192", "32", "32"]);
    let read = of("qwen.qwen3.qwen3_8b_pretrain_config", "  seq_length: 8192\nmodel:\n  seq_length: 2048\n");
    assert_eq!(stated(&read), ["36", "2048", "32", "32"]);
    // It is not known whether its other arguments change anything.
    stopped(&of("qwen.qwen3.qwen3_8b_pretrain_config", "  peft: lora\n"), &["recipe.peft"]);
    stopped(&of("qwen.qwen3.qwen3_8b_pretrain_config", "  hf_path: Qwen/Qwen3-4B\n"), &["recipe.hf_path"]);
    // A recipe of another release is asked for.
    let other = of("nemotronh.nemotron_3_nano.nemotron_3_nano_finetune_config", "");
    assert!(other.questions.iter().any(|asked| asked.name() == "recipe"), "{:?}", other.questions);
}

/// FreedomIntelligence/HuatuoGPT-o1 `configs/deepspeed_zero3.yaml` has `use_cpu: true` together with DeepSpeed, which
/// accelerate only passes to a single process (`utils/launch.py:prepare_simple_launcher_cmd_env`). It was taken for a
/// training on CPUs.
#[test]
fn accelerate_starts_several_processes_on_accelerators_whatever_use_cpu_says() {
    let of = |kind: &str| {
        let text = format!(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: {kind}\nmixed_precision: bf16\nnum_machines: 1\nnum_processes: 8\n\
             use_cpu: true\ndeepspeed_config:\n  zero_stage: 3\n"
        );
        said(
            "accelerate.yaml",
            &text,
            &[
                ("model", "Qwen/Qwen2.5-7B"),
                ("seq_length", "4096"),
                ("micro_batch_size", "1"),
                ("params_dtype", "bf16"),
            ],
        )
    };
    let read = of("DEEPSPEED");
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!([Field::ZeroStage, Field::WorldSize].map(|field| value(&read, field)), ["3", "8"]);
    assert!(of("MULTI_GPU").plan.is_some());
    stopped(&of("'NO'"), &["use_cpu"]);
}
