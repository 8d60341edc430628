//! Programs of well-known repositories around transformers' Trainer that have options or defaults of their own.

use super::dialect::Dialect;
use super::{quantized_peft, qwen};
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question};
use shardscope_plan::Field;

/// Reads their options and defaults.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    if dialect == Dialect::Transformers {
        two_lengths(leaves);
        super::parts::read(leaves);
        super::early_pairs::read(leaves);
        medical(leaves);
        super::qwen_vl::defaults(leaves);
        qwen::read(leaves);
    }
    if leaves.has("use_peft_lora") {
        tuning_of_peft(leaves);
    }
    if dialect == Dialect::LlamaFactory {
        divided_batch(leaves);
    }
    // LMFlow (`src/lmflow/args.py`); PEFT selects the layers.
    if ["save_aggregated_lora", "use_qlora", "conversation_template"].iter().any(|path| leaves.has(path)) {
        let why = "default of LMFlow";
        let adapters = [
            (Field::LoraRank, "8"),
            (Field::LoraAlpha, "32"),
            (Field::LoraDropout, "0.1"),
            (Field::LoraTargetModules, "q_proj v_proj"),
        ];
        leaves.state_all(&adapters, Origin::Default, why);
        if leaves.yes("use_qlora").is_some() {
            leaves.state(Field::DoubleQuantization, "true", Origin::Default, why);
        }
    }
    if is_firefly(leaves) {
        firefly(leaves);
    }
    if let Some(leaf) = leaves.get("trainable").filter(|_| leaves.has("dataset_dir")) {
        chinese_llama(leaves, leaf);
    }
}

/// A global batch in a LLaMA-Factory file, which has no such key: a custom launcher divides it into micro-batches
/// unless these are stated (OpenThoughts-Agent, `hpc/sft_launch_utils.py:maybe_compute_gradient_accumulation`).
fn divided_batch(leaves: &mut Leaves<'_>) {
    let stated =
        ["per_device_train_batch_size", "gradient_accumulation_steps"].iter().all(|path| leaves.has(path));
    if let Some(leaf) = leaves.get("global_batch_size").filter(|_| !stated) {
        let what = "a batch of all ranks that the launcher divides into micro-batches";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

/// Programs of Chinese-LLaMA-Alpaca and its successors
/// (`scripts/training/run_clm_sft_with_peft.py:MyTrainingArguments`): `trainable` lists the layers with adapters, which
/// train unless `full_finetuning` is set.
fn chinese_llama(leaves: &mut Leaves<'_>, targets: &Leaf) {
    let why = "default of Chinese-LLaMA-Alpaca's program";
    let full = leaves.flag("full_finetuning") == Some(true);
    leaves.pass("full_finetuning");
    if full {
        leaves.say(Field::TrainType, "full", targets);
        return;
    }
    if let Some(leaf) = leaves.get("peft_path") {
        let what = "adapters whose rank and layers are in their checkpoint";
        let item = NotModelled::new("peft_path", &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    let kind = match (leaves.whole("load_in_kbits"), leaves.text("quant_type")) {
        (Some(4), kind) => kind.unwrap_or("nf4"),
        (Some(8), _) => "int8",
        _ => "none",
    };
    leaves.say(Field::TrainType, if kind == "none" { "lora" } else { "qlora" }, targets);
    if kind != "none" {
        leaves.say(Field::BaseQuantization, kind, targets);
        leaves.state(Field::DoubleQuantization, "true", Origin::Default, why);
    }
    leaves.say(Field::LoraTargetModules, &targets.value.replace(',', " "), targets);
    leaves.state_all(
        &[(Field::LoraRank, "8"), (Field::LoraAlpha, "32"), (Field::LoraDropout, "0.1")],
        Origin::Default,
        why,
    );
    // Without a trained embedding the program makes its output require a gradient for checkpointing.
    let embeds = leaves.text("modules_to_save").is_some_and(|names| names.contains("embed_tokens"));
    if !embeds && leaves.flag("gradient_checkpointing") == Some(true) {
        leaves.state(Field::InputRequireGrads, "true", Origin::Default, why);
    }
}

/// Whether these are arguments of Firefly's `train.py` (`component/argument.py:CustomizedArguments`).
pub(super) fn is_firefly(leaves: &Leaves<'_>) -> bool {
    leaves.has("train_file") && (leaves.has("train_mode") || leaves.has("template_name"))
}

/// Firefly's program (`train.py:load_model`): QLoRA by default, weights in the training format,
/// adapters on all linear layers by name.
fn firefly(leaves: &mut Leaves<'_>) {
    let why = "default of Firefly's train.py";
    let mode = leaves.text("train_mode").unwrap_or("qlora");
    let stated = leaves.get("train_mode");
    let way = if matches!(mode, "full" | "lora") { mode } else { "qlora" };
    match stated {
        Some(leaf) => leaves.say(Field::TrainType, way, leaf),
        None => leaves.state(Field::TrainType, way, Origin::Default, why),
    }
    if way == "qlora" {
        leaves.state_all(
            &[(Field::BaseQuantization, "nf4"), (Field::DoubleQuantization, "true")],
            Origin::Default,
            why,
        );
    }
    if way != "full" {
        leaves.state_all(
            &[
                (Field::LoraRank, "64"),
                (Field::LoraAlpha, "16"),
                (Field::LoraDropout, "0.05"),
                (Field::LoraTargetModules, "all-linear"),
                (Field::LoraByNames, "true"),
            ],
            Origin::Default,
            why,
        );
    }
    let format = if leaves.flag("fp16") == Some(true) { "fp16" } else { "bf16" };
    let layers = if leaves.flag("gradient_checkpointing") == Some(true) { "true" } else { "false" };
    leaves.state_all(
        &[(Field::ParamsDtype, format), (Field::GradientCheckpointing, layers)],
        Origin::Default,
        why,
    );
    // torchrun or `deepspeed` starts it, without accelerate's file; DeepSpeed's is a key of this one.
    if !leaves.has("deepspeed") {
        leaves.state(Field::ZeroStage, "0", Origin::Derived, why);
    }
    let pairs = leaves.text("task_type") == Some("dpo");
    // `train.py:load_model` for LoRA; `trl/trainer/dpo_trainer.py:DPOTrainer.__init__`
    // (0.7.11) if layers are checkpointed.
    if way == "lora" && (!pairs || layers == "true") {
        leaves.state(Field::InputRequireGrads, "true", Origin::Default, why);
    }
    match leaves.get("task_type").map(|leaf| (leaf, leaf.value.as_str())) {
        Some((leaf, "dpo")) => firefly_pairs(leaves, leaf, way == "qlora" && format == "bf16"),
        // Samples for pre-training are cut from a single text.
        Some((leaf, "pretrain")) => leaves.switch(Field::Packing, true, leaf),
        _ => {}
    }
    for path in ["train_file", "template_name", "eval_file", "tokenize_num_workers"] {
        leaves.pass(path);
    }
}

/// DPO by TRL 0.7.11, the version in `requirements.txt`, with only autocast (`train.py:setup_everything`):
/// accelerate returns the logits in fp32, `get_batch_logps` computes the log-softmax of all of them, and a
/// variable keeps the policy's while the reference runs (`get_batch_loss_metrics`), as in LLaMA-Factory's own
/// trainer, whose function is the same.
fn firefly_pairs(leaves: &mut Leaves<'_>, leaf: &Leaf, casts: bool) {
    leaves.say(Field::TrainingObjective, "dpo", leaf);
    let why = "TRL 0.7.11 under autocast, whose logits are fp32";
    leaves.state(Field::PreferenceLogits, "fp32", Origin::Derived, why);
    for path in ["beta", "max_prompt_length"] {
        leaves.pass(path);
    }
    if casts {
        // `trl/trainer/utils.py:peft_module_casting_to_bf16`.
        let what =
            "QLoRA in bf16 under TRL 0.7.11, which casts adapters and embeddings to it and norms to fp32";
        let item = NotModelled::new("task_type", "dpo", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
}

/// MedicalGPT's preference and reward programs, recognized by their own option
/// (`training/dpo_training.py`, `orpo_training.py`, `reward_modeling.py`: `full_max_length`). The
/// preference programs default to fp16, the reward program does not.
fn medical(leaves: &mut Leaves<'_>) {
    let precise = ["bf16", "fp16"].iter().any(|path| leaves.has(path));
    if !precise || !leaves.has("train_file_dir") {
        return;
    }
    let both = leaves.get("max_source_length").zip(leaves.get("max_target_length"));
    let Some((source, target)) = both else { return };
    if let Some(sum) = source.whole().zip(target.whole()).and_then(|(one, other)| one.checked_add(other)) {
        let note = "max_source_length and max_target_length together";
        leaves.say_noted(Field::SeqLength, &sum.to_string(), source, note);
    }
}

/// QLoRA's program and those derived from it (`qlora.py`, TinyLlama's `sft/finetune.py`): a sample is a
/// source and a target, each truncated to its own length, and layers are checkpointed by default. The number
/// of accumulation steps differs.
fn two_lengths(leaves: &mut Leaves<'_>) {
    let both = leaves.get("source_max_len").zip(leaves.get("target_max_len"));
    let Some((source, target)) = both else { return };
    if let Some(sum) = source.whole().zip(target.whole()).and_then(|(one, other)| one.checked_add(other)) {
        let note = "source_max_len and target_max_len together";
        leaves.say_noted(Field::SeqLength, &sum.to_string(), source, note);
    }
    if !leaves.has("gradient_checkpointing") {
        let why = "default of QLoRA's program";
        leaves.state(Field::GradientCheckpointing, "true", Origin::Default, why);
    }
    // QLoRA's own program (`qlora.py`); TinyLlama's keeps its states in plain AdamW.
    let own =
        ["double_quant", "quant_type", "lora_modules", "do_mmlu_eval"].iter().any(|path| leaves.has(path));
    let why = "default of QLoRA's program";
    if own && !leaves.has("optim") {
        leaves.state(Field::Optimizer, "paged_adamw_32bit", Origin::Default, why);
    }
    if let Some(leaf) = leaves.yes("full_finetune").filter(|_| own) {
        leaves.say(Field::TrainType, "full", leaf);
    }
    // `qlora.py:get_accelerate_model`: adapters on every linear layer by name (`find_all_linear_names`), over 4 bits.
    if own && leaves.flag("full_finetune") != Some(true) {
        match leaves.get("bits").map(Leaf::whole) {
            None => leaves.state(Field::BaseQuantization, "nf4", Origin::Default, why),
            Some(Some(16 | 32)) => leaves.state(Field::TrainType, "lora", Origin::Derived, why),
            Some(_) => {}
        }
        quantized_peft::cast_by_qlora(leaves);
        leaves.state_all(
            &[
                (Field::DoubleQuantization, "true"),
                (Field::LoraRank, "64"),
                (Field::LoraAlpha, "16"),
                (Field::LoraDropout, "0"),
                (Field::LoraTargetModules, "all-linear"),
                (Field::LoraByNames, "true"),
            ],
            Origin::Default,
            why,
        );
    }
    if !leaves.has("gradient_accumulation_steps") {
        let prompt = "Gradient accumulation steps? QLoRA's program defaults to 16, others to 1";
        left_open(leaves, Field::NumMicroBatches, prompt, "1");
    }
}

/// PEFT's example of supervised fine-tuning (`examples/sft/train.py`, `utils.py`): its own names for bitsandbytes'
/// switches, and weights loaded in the storage format of quantized ones.
fn tuning_of_peft(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("use_4bit_quantization") {
        let kind = leaves.text("bnb_4bit_quant_type").unwrap_or("nf4").to_owned();
        leaves.say(Field::BaseQuantization, &kind, leaf);
        let stored = |leaf: &&Leaf| leaf.value.contains("float");
        if let Some(leaf) = leaves.get("bnb_4bit_quant_storage_dtype").filter(stored) {
            leaves.say(Field::ParamsDtype, &leaf.value, leaf);
        }
    }
    if let Some(leaf) = leaves.yes("use_8bit_quantization") {
        leaves.say(Field::BaseQuantization, "int8", leaf);
    }
    if let Some(leaf) = leaves.yes("use_nested_quant") {
        leaves.switch(Field::DoubleQuantization, true, leaf);
    }
    for path in [
        "bnb_4bit_compute_dtype",
        "bnb_4bit_quant_storage_dtype",
        "use_8bit_quantization",
        "use_nested_quant",
    ] {
        leaves.pass(path);
    }
    let why = "default of PEFT's example of supervised fine-tuning";
    leaves.state_all(
        &[
            (Field::LoraRank, "64"),
            (Field::LoraAlpha, "16"),
            (Field::LoraDropout, "0.1"),
            (Field::LoraTargetModules, "q_proj k_proj v_proj o_proj down_proj up_proj gate_proj"),
        ],
        Origin::Default,
        why,
    );
}

/// Adapters that a custom program enables without stating their rank: its default is not PEFT's.
pub(super) fn rank_left_open(leaves: &mut Leaves<'_>, dialect: Dialect) {
    if let Some(leaf) = leaves.first(&["peft_config_path", "lora_config"]) {
        return in_a_file(leaves, leaf);
    }
    let known = leaves.reading.found.iter().any(|found| found.field == Field::LoraRank);
    // `use_peft` is TRL's option, and represents a direct call of PEFT, whose defaults are PEFT's.
    let switches = [
        "use_lora",
        "lora_enable",
        "peft",
        "lora",
        "enable_lora",
        "with_lora",
        "lora_tuning",
        "lora_training",
        "q_lora",
    ];
    let by_switch = switches.iter().any(|path| leaves.flag(path) == Some(true));
    // LLaVA's own rank is known, and that of what was made of it.
    let ours = super::bunny::has_own_rank(leaves);
    if dialect != Dialect::Transformers || ours {
        return;
    }
    // The choice of layers is also the program's own default; `use_peft` stands for PEFT
    // itself, which knows the model's.
    let has_targets = leaves.reading.found.iter().any(|found| found.field == Field::LoraTargetModules);
    let sized = ["lora_r", "lora_rank", "lora_alpha"].iter().any(|path| leaves.has(path));
    // A program that calls PEFT itself is read with its arguments, and TRL's options have TRL's defaults. Of a program that
    // has the switch alone on its line, rank and layers are its own (llm-jp-sft's `train.py`: `peft_lora_r`).
    let called = leaves.all().iter().any(|leaf| leaf.path == "use_peft" && leaf.span.is_none());
    let alone = !called && !sized && leaves.flag("use_peft") == Some(true);
    let (by_peft, by_switch) = (leaves.has("use_peft") && !alone, by_switch || alone);
    if !has_targets && (by_switch || sized) && !by_peft {
        let prompt =
            "Which linear layers have adapters? The program that reads these options has its own default";
        left_open(leaves, Field::LoraTargetModules, prompt, "q_proj v_proj");
    }
    if known || !by_switch && (!sized || by_peft) {
        return;
    }
    let prompt = "Rank of the adapters? The program that reads these options has its own default";
    // Next to LoRA options a plain `rank` is probably theirs.
    let likely = leaves.get("rank").filter(|leaf| leaf.whole().is_some());
    left_open(leaves, Field::LoraRank, prompt, likely.map_or("8", |leaf| leaf.value.as_str()));
}

/// Adapters whose rank and layers are in a PEFT file that an option names (QwenLM/Qwen2.5-Coder
/// `finetuning/sft/train.py`, BELLE's `train/src/entry_point/pt_train.py`): the file itself is missing.
fn in_a_file(leaves: &mut Leaves<'_>, file: &Leaf) {
    for (field, prompt, proposal) in [
        (Field::LoraRank, "Rank of the adapters (r in their adapter_config.json)?", "8"),
        (
            Field::LoraTargetModules,
            "Which linear layers have adapters (target_modules in their adapter_config.json)?",
            "q_proj v_proj",
        ),
    ] {
        leaves.reading.keep(&|found| found.field != field);
        left_open_by(leaves, field, &file.value, [prompt, proposal]);
    }
}

/// A setting that only the program reading the options knows: asked for, with a proposal.
fn left_open(leaves: &mut Leaves<'_>, field: Field, prompt: &str, proposal: &str) {
    left_open_by(leaves, field, "the program that reads these options", [prompt, proposal]);
}

fn left_open_by(leaves: &mut Leaves<'_>, field: Field, by: &str, [prompt, proposal]: [&str; 2]) {
    let mut found = Found::new(field, String::new(), Origin::Script);
    found.hole = Some(by.to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(field),
        prompt: prompt.to_owned(),
        choices: Vec::new(),
        proposal: Some(proposal.to_owned()),
    });
}
