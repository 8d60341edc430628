//! Notebooks with unsloth: the accelerator that they request from Colab, and what unsloth chooses there.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::{Field, NumberFormat};

/// A notebook with a single cell and the runtime metadata that Colab writes.
fn notebook(program: &str, metadata: &str) -> String {
    let cell = program.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!(
        "{{\"cells\": [{{\"cell_type\": \"code\", \"source\": [\"{cell}\"]}}], \"metadata\": {{\"colab\": {{{metadata}}}}}, \"nbformat\": 4}}"
    )
}

const QLORA: &str = "from unsloth import FastLanguageModel\nfrom trl import SFTConfig, SFTTrainer\n\
    model, tokenizer = FastLanguageModel.from_pretrained(model_name='unsloth/mistral-7b-v0.3', max_seq_length=1024, load_in_4bit=True)\n\
    model = FastLanguageModel.get_peft_model(model, r=8, lora_alpha=8)\n\
    args = SFTConfig(per_device_train_batch_size=2, gradient_accumulation_steps=4)\n\
    trainer = SFTTrainer(model=model, args=args)\ntrainer.train()\n";

fn on(metadata: &str) -> Resolution {
    said("a.ipynb", &notebook(QLORA, metadata), &[])
}

#[test]
fn the_runtime_that_a_notebook_asks_colab_for_is_its_accelerator() {
    let named = |metadata: &str| value(&on(metadata), Field::Accelerator);
    assert_eq!(named("\"gpuType\": \"T4\""), "T4");
    assert_eq!(named("\"gpuType\": \"L4\", \"machine_shape\": \"hm\""), "L4");
    assert_eq!(named("\"gpuType\": \"A100\""), "A100-SXM-40GB");
    assert_eq!(named("\"machine_shape\": \"hm\", \"gpuType\": \"A100\""), "A100-SXM-80GB");
    assert_eq!(named("\"provenance\": []"), "H100-SXM");
    stopped(&on("\"gpuType\": \"V28\""), &["gpuType"]);
    // Without metadata a sentence says where the notebook runs.
    let reported = |words: &str| {
        let page = format!("{{\"cells\": [{{\"cell_type\": \"markdown\", \"source\": [\"{words}\"]}},\n");
        let text =
            notebook(QLORA, "").replacen("{\"cells\": [", &page, 1).replace("markdown\", ", "markdown\",\n");
        value(&said("a.ipynb", &text, &[]), Field::Accelerator)
    };
    assert_eq!(reported("Press *Run all* on a **free** Tesla T4 Google Colab instance!"), "T4");
    assert_eq!(reported("Press *Run all* on your A100 Google Colab Pro instance!"), "A100-SXM-40GB");
    assert_eq!(reported("A Google Colab notebook for a T4"), "H100-SXM");
    // A mention in a cell does not define the runtime.
    let cell = format!("{QLORA}x = {{\"gpuType\": \"L4\"}}\n");
    assert_eq!(value(&said("a.ipynb", &notebook(&cell, ""), &[]), Field::Accelerator), "H100-SXM");
}

#[test]
fn unsloth_trains_in_fp16_where_there_is_no_bf16() {
    let small = on("\"gpuType\": \"T4\"");
    let shown = [Field::Bf16, Field::Fp16, Field::ParamsDtype, Field::Autocast];
    assert_eq!(shown.map(|field| value(&small, field)), ["false", "true", "fp16", "fp16"]);
    let plan = small.plan.expect("a plan");
    assert_eq!(plan.recipe().params_dtype, NumberFormat::Fp16);
    assert_eq!(plan.cluster().accelerator.memory.get(), 15_360 << 20);
    let large = on("\"gpuType\": \"L4\"");
    assert_eq!(shown.map(|field| value(&large, field)), ["true", "false", "bf16", "bf16"]);
    // An accelerator chosen by the user has the same effect as the notebook's.
    let chosen = said("a.py", QLORA, &[("accelerator", "T4")]);
    assert_eq!(shown.map(|field| value(&chosen, field)), ["false", "true", "fp16", "fp16"]);
    let stated = QLORA.replace("SFTConfig(per", "SFTConfig(bf16=True, per");
    stopped(&said("a.py", &stated, &[("accelerator", "T4")]), &["bf16"]);
    assert!(said("a.py", &stated, &[("accelerator", "L4")]).plan.is_some());
    // It does not compile its loss on GPUs before Turing.
    stopped(&said("a.py", QLORA, &[("accelerator", "V100-SXM2-16GB")]), &["accelerator"]);
    // There, Gemma 3 runs in fp32 between its modules, which is known for its decoder; Qwen's layers are compiled as
    // everywhere else.
    let compiled =
        QLORA.replace("FastLanguageModel", "FastModel").replace("mistral-7b-v0.3", "gemma-3-4b-it");
    stopped(&said("a.py", &compiled, &[("accelerator", "T4")]), &["vision_tower"]);
    let text = compiled.replace("r=8", "finetune_vision_layers=False, r=8");
    let read = said("a.py", &text, &[("accelerator", "T4"), ("whole_linears", "lm_head vision_tower")]);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(shown.map(|field| value(&read, field)), ["false", "true", "fp16", "none"]);
    let large = said("a.py", &text, &[("accelerator", "L4"), ("whole_linears", "lm_head vision_tower")]);
    assert_eq!(shown.map(|field| value(&large, field)), ["true", "false", "bf16", "bf16"]);
    let qwen = QLORA
        .replace("FastLanguageModel", "FastVisionModel")
        .replace("mistral-7b-v0.3", "Qwen2.5-VL-7B-Instruct");
    let listed = [("accelerator", "T4"), ("whole_linears", "lm_head visual"), ("image_patches", "1024")];
    let read = said("a.py", &qwen.replace("r=8", "finetune_vision_layers=False, r=8"), &listed);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    assert_eq!(shown.map(|field| value(&read, field)), ["false", "true", "fp16", "fp16"]);
}

const GRPO: &str = "import os\nos.environ['UNSLOTH_VLLM_STANDBY'] = '1'\nfrom unsloth import FastLanguageModel\nfrom trl import GRPOConfig, GRPOTrainer\n\
    length, prompts = 1024, 256\n\
    model, tokenizer = FastLanguageModel.from_pretrained(model_name='unsloth/mistral-7b-instruct-v0.3', max_seq_length=length, \
        load_in_4bit=True, fast_inference=True, max_lora_rank=32, gpu_memory_utilization=0.6)\n\
    model = FastLanguageModel.get_peft_model(model, r=32, lora_alpha=32)\n\
    args = GRPOConfig(per_device_train_batch_size=1, gradient_accumulation_steps=1, num_generations=6, max_prompt_length=256, \
        max_completion_length=512)\n\
    trainer = GRPOTrainer(model=model, args=args)\ntrainer.train()\n";

#[test]
fn grpo_under_unsloth_generates_on_the_weights_that_train() {
    let read = |text: &str| said("a.py", text, &[("accelerator", "A100-SXM-40GB")]);
    let all = read(GRPO);
    let plan = all.plan.as_ref().unwrap_or_else(|| panic!("{:?}", all.diagnostics));
    let rollout = plan.recipe().rollout.expect("rollouts");
    assert!(rollout.sleeps && rollout.is_co_located());
    let shown = [
        Field::TrainingObjective,
        Field::RlFramework,
        Field::SeqLength,
        Field::RolloutResponse,
        Field::RolloutsPerPrompt,
        Field::MicroBatchSize,
        Field::BaseQuantization,
        Field::RlReference,
    ];
    let expected = ["policy", "unsloth", "768", "512", "6", "6", "nf4", "none"];
    assert_eq!(shown.map(|field| value(&all, field)), expected);
    // Without the variable the engine keeps its cache, and gets the stated share.
    for off in ["", "# os.environ['UNSLOTH_VLLM_STANDBY'] = '1'", "os.environ['UNSLOTH_VLLM_STANDBY'] = '0'"]
    {
        let awake = read(&GRPO.replace("os.environ['UNSLOTH_VLLM_STANDBY'] = '1'", off));
        let shown = [Field::RolloutSleep, Field::RolloutMemoryFraction].map(|field| value(&awake, field));
        assert_eq!(shown, ["false", "0.6"], "{off}");
    }
    // A batch that covers all rollouts of a prompt is used unchanged, also over the steps of an accumulation.
    let micro = |text: &str| value(&read(text), Field::MicroBatchSize);
    assert_eq!(micro(&GRPO.replace("accumulation_steps=1", "accumulation_steps=12")), "1");
    assert_eq!(micro(&GRPO.replace("train_batch_size=1", "train_batch_size=12")), "12");
    // Limits that the program computes are bounded by the engine's maximum.
    let bounded = read(&GRPO.replace("max_completion_length=512", "max_completion_length=longest(length)"));
    assert_eq!([Field::SeqLength, Field::RolloutResponse].map(|field| value(&bounded, field)), ["1024", ""]);
    // An earlier fine-tuning stage of the program is a separate training.
    let before = GRPO.replace(
        "args = GRPO",
        "first = SFTConfig(per_device_train_batch_size=3, optim='lion_8bit')\ntrainer = SFTTrainer(model=model, args=first)\nargs = GRPO",
    );
    let shown = [Field::MicroBatchSize, Field::Optimizer].map(|field| value(&read(&before), field));
    assert_eq!(shown, ["6", "adamw_8bit"]);
    for (from, to, name) in [
        ("fast_inference=True, ", "", "fast_inference"),
        ("num_generations=6", "num_generations=6, entropy_coef=0.01", "entropy_coef"),
        ("num_generations=6", "num_generations=6, steps_per_generation=2", "steps_per_generation"),
        ("FastLanguageModel", "FastModel", "unsloth"),
    ] {
        stopped(&read(&GRPO.replace(from, to)), &[name]);
    }
    // The engine without a trainer's rollouts.
    stopped(&read(&GRPO.replace("GRPO", "SFT")), &["fast_inference"]);
}
