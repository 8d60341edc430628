//! xLAM's program (SalesforceAIResearch/xLAM, `actionstudio/src/foundation_modeling/train/train_sft.py`,
//! `trainers/sft_foundation_trainer.py`): transformers' modules under accelerate's DeepSpeed in a loop of its own, and the
//! record of a run's settings that it writes (`prepare_data`).

use crate::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// Its default `ds_config_path`.
const FILE: &str = "./config_trainerlite_ds_02.json";
/// The option that it requires.
const REQUIRED: &str = "model_save_id";
/// Others of its own.
const OWN: [&str; 3] = ["ds_stage", "weight_precision", "fc_mode"];
/// Its options for data, logs, schedules and files.
const IDLE: &str = "model_save_id fc_mode enable_thinking use_log log_with project_name run_name mask_prompt_loss learning_rate \
    min_learning_rate lr_scheduler_type num_warmup_steps scheduler_params weight_decay max_steps logging_steps num_nodes \
    num_gpus_per_node per_device_eval_batch_size save_steps output_dir log_freq data_save_dir data_mix_recipe_yaml_config \
    data_mix_or_unify is_data_pre_verification hf_credential_json_config wandb_credential_json_config seed num_workers streaming \
    shuffle_buffer_size debug_mode ds_config_path ds_stage weight_precision optimizer_type gradient_checkpointing";
/// What its record has besides.
const RECORDED: &str =
    "total_data_samples total_train_batch_size total_training_steps total_optimizer_steps model_output_dir";
/// The group of its record with what DeepSpeed was given.
pub(super) const ENGINE: &str = "deepspeed_actual_full_config.";

/// A key of the command, or of one of the record's groups.
fn find<'t>(leaves: &Leaves<'t>, name: &str) -> Option<&'t Leaf> {
    let is_it = |leaf: &&Leaf| {
        !leaf.path.starts_with("deepspeed_actual")
            && leaf.path.rsplit('.').next() == Some(name)
            && !leaf.value.is_empty()
    };
    leaves.all().iter().find(is_it)
}

/// Whether the options are this program's, which loads its model with `trust_remote_code=True` (`sft_foundation_trainer.py`).
pub(super) fn is_own(leaves: &Leaves<'_>) -> bool {
    find(leaves, REQUIRED).is_some()
        && OWN.iter().any(|name| find(leaves, name).is_some())
        && !leaves.has("beta")
}

/// What it does whatever its options say, and its defaults.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    if !is_own(leaves) {
        return;
    }
    let why = "as xLAM's train_sft.py does";
    let adapters = find(leaves, "use_lora").is_some_and(|leaf| leaf.flag() == Some(true));
    stage(leaves, adapters, why);
    match find(leaves, "weight_precision") {
        Some(leaf) if leaf.value == "nf4" => {
            leaves.say(Field::BaseQuantization, "nf4", leaf);
            leaves.state(Field::DoubleQuantization, "true", Origin::Derived, why);
        }
        Some(leaf) if leaf.value != "bf16" => {
            leaves.lack(leaf, Effect::Memory, "a weight precision that xLAM's program rejects");
        }
        _ => {}
    }
    if let Some(leaf) = find(leaves, "optimizer_type") {
        leaves.say(Field::Optimizer, &leaf.value, leaf);
    }
    if let Some(leaf) = find(leaves, "gradient_checkpointing").filter(|leaf| leaf.flag() == Some(false)) {
        leaves.lack(
            leaf,
            Effect::Memory,
            "checkpointing that xLAM's program turns on whatever this says; leave it out",
        );
    }
    leaves.state_all(
        &[
            (Field::DataParallelEngine, "deepspeed"),
            (Field::Bf16, "true"),
            (Field::ParamsDtype, "bf16"),
            // accelerate leaves formats to DeepSpeed (`accelerate/accelerator.py`: native_amp).
            (Field::Autocast, "none"),
            (Field::Optimizer, "adamw"),
            // "torch_adam", unlike DeepSpeed's own.
            (Field::OptimizerForeach, "true"),
            (Field::AttnImplementation, "flash_attention_2"),
            (Field::GradientCheckpointing, "true"),
            (Field::ReentrantCheckpoints, "true"),
            (Field::InputRequireGrads, "true"),
            (Field::PaddingMask, "true"),
            // `outputs = self.model(...)`, by name until the next.
            (Field::LogitsHeld, "true"),
            (Field::TrainType, if adapters { "lora" } else { "full" }),
        ],
        Origin::Derived,
        why,
    );
    let why = "default of xLAM's train_sft.py";
    let defaults: [(&str, Field, &str); 7] = [
        ("per_device_train_batch_size", Field::MicroBatchSize, "3"),
        ("gradient_accumulation_steps", Field::NumMicroBatches, "2"),
        ("seq_length", Field::SeqLength, "4096"),
        ("lora_r", Field::LoraRank, "32"),
        ("lora_alpha", Field::LoraAlpha, "64"),
        ("lora_dropout", Field::LoraDropout, "0.05"),
        ("lora_target_modules", Field::LoraTargetModules, "q_proj v_proj k_proj o_proj w1 w2 w3 gate"),
    ];
    for (name, field, value) in defaults {
        if find(leaves, name).is_none() {
            leaves.state(field, value, Origin::Default, why);
        }
    }
    record(leaves);
    for name in IDLE.split_ascii_whitespace().chain(RECORDED.split_ascii_whitespace()) {
        for leaf in leaves.all().iter().filter(|leaf| leaf.path.rsplit('.').next() == Some(name)) {
            leaf.used.set(true);
        }
    }
}

/// The stage is the number in DeepSpeed's file; `ds_stage` only fills an "auto" there (accelerate's `utils/dataclasses.py:
/// DeepSpeedPlugin.__post_init__`: `fill_match(..., must_match=False)`). Where the file's name says another than the option, or
/// nothing beside no option, it is asked for. A pasted file decides (`crate::merge`).
fn stage(leaves: &mut Leaves<'_>, adapters: bool, why: &str) {
    let written = format!("{ENGINE}zero_optimization.stage");
    let recorded = leaves.all().iter().find(|leaf| leaf.path == written && leaf.whole().is_some());
    let [option, file] = ["ds_stage", "ds_config_path"].map(|name| find(leaves, name));
    let path = file.map_or(FILE, |leaf| leaf.value.as_str());
    let name = path.rsplit('/').next().unwrap_or(path);
    // Its own files are `config_ds_02.json` and `config_ds_03.json`.
    let of_own = |name: &str| {
        let number = name.split_once("ds_0")?.1.get(..1)?;
        ["0", "1", "2", "3"].into_iter().find(|stage| *stage == number)
    };
    let meant = of_own(name).or_else(|| super::missing_file::stage(name));
    let told = option.map_or("2", |leaf| leaf.value.as_str());
    let agrees = meant.map_or(option.is_some(), |stage| stage == told);
    if let Some(leaf) = recorded {
        leaves.say(Field::ZeroStage, &leaf.value, leaf);
    } else if let Some(leaf) = file.or(option).filter(|_| !agrees) {
        let (found, mut question) = super::missing_file::open_stage(name, &leaf.path, leaf.span);
        question.proposal = meant.map(str::to_owned);
        leaves.reading.take(found);
        leaves.reading.questions.push(question);
    } else if let Some(leaf) = option {
        leaves.say(Field::ZeroStage, told, leaf);
    } else {
        leaves.state(Field::ZeroStage, told, Origin::Default, why);
    }
    // `prepare_model_for_kbit_training` casts all weights to fp32, and below stage 3 DeepSpeed's engine casts them back.
    if let Some(leaf) = recorded.or(option).or(file).or(find(leaves, "use_lora")).filter(|_| adapters) {
        let what = "adapters beside weights in fp32 that ZeRO-3 shards (xLAM)";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item.only_at(Field::ZeroStage, "3"));
    }
    if let Some(leaf) = file {
        super::missing_file::offloads(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
    }
}

/// The processes that its record counts, and the schedule that DeepSpeed was given once more.
fn record(leaves: &mut Leaves<'_>) {
    let processes = leaves.all().iter().find(|leaf| leaf.path.contains("num_processes"));
    if let Some(leaf) = processes.filter(|_| leaves.all().iter().any(|leaf| leaf.path.starts_with(ENGINE))) {
        leaf.used.set(true);
        leaves.say(Field::WorldSize, &leaf.value, leaf);
    }
    leaves.pass_below(&["deepspeed_full_scheduler_config.", ENGINE]);
}
