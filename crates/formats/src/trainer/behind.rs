//! The releases of TRL and transformers behind a trainer's settings: installed by a text, or told by an argument that a release took
//! away. What an older release has by default is stated for it; where the text belongs to releases that differ, it is asked.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves, Scalars};
use crate::releases::{Installed, numbers};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::Field;

/// The key of TRL's release, as its first two numbers: the one that a text installs, or the last that its arguments admit.
pub(super) const RELEASE: &str = "trl_release";

/// The key of TRL's release where an argument only bounds it from above.
pub(super) const AT_MOST: &str = "trl_release_at_most";
/// The key of the release of transformers, likewise a bound unless `STATED` stands beside it.
pub(super) const TRANSFORMERS: &str = "transformers_release";
pub(super) const STATED: &str = "transformers_release_stated";
/// Stated where the options are the program's own, whose names tell no release of a library.
pub(super) const OWN_OPTIONS: &str = "options_of_the_program";
/// Stated where the call that loads the model is at hand, with the format that it names or leaves out.
pub(super) const LOADED: &str = "loads_the_model_here";

/// Arguments of TRL's configurations, and the last minor release that has each (`trl/trainer/sft_config.py`, `dpo_config.py`,
/// `grpo_config.py` of 0.13 to 0.20). `SFTConfig`'s length was renamed in 0.16 and the old name dropped in 0.20.
const LAST_OF_TRL: [(&str, [u64; 2]); 8] = [
    ("max_seq_length", [0, 19]),
    ("num_of_sequences", [0, 17]),
    ("chars_per_token", [0, 17]),
    ("dataset_batch_size", [0, 17]),
    ("use_liger", [0, 17]),
    ("vllm_device", [0, 17]),
    ("vllm_dtype", [0, 17]),
    ("max_target_length", [0, 13]),
];

/// Arguments that `SFTConfig`, `DPOConfig` or `KTOConfig` had in 0.9.6 to 0.24.0 and none has had since 0.29
/// (`trl/trainer/sft_config.py`, `dpo_config.py`, `kto_config.py`).
pub(super) const OF_OLDER: [&str; 17] = [
    "base_model_attribute_name",
    "chars_per_token",
    "dataset_batch_size",
    "force_use_ref_model",
    "generate_during_eval",
    "is_encoder_decoder",
    "label_pad_token_id",
    "max_completion_length",
    "max_prompt_length",
    "max_seq_length",
    "max_target_length",
    "num_of_sequences",
    "ref_model_init_kwargs",
    "reference_free",
    "rpo_alpha",
    "use_liger",
    "use_logits_to_keep",
];

/// Those among them that ORPO's and CPO's still have
/// (`trl/experimental/orpo/orpo_config.py`, `cpo/cpo_config.py` of 1.16), one of which is GRPO's too.
pub(super) const STILL_OF_OTHERS: [&str; 3] =
    ["generate_during_eval", "is_encoder_decoder", "max_completion_length"];

/// Arguments that `GRPOConfig` no longer has, and those of programs based on TRL 0.14 and
/// 0.15 (`rollouts.rs:is_early`).
pub(super) const OF_OLDER_ROLLOUTS: [&str; 9] = [
    "max_pixels",
    "max_prompt_length",
    "min_pixels",
    "use_liger_loss",
    "vllm_device",
    "vllm_dtype",
    "vllm_guided_decoding_regex",
    "vllm_max_model_len",
    "wandb_log_unique_prompts",
];

/// Arguments of GRPO in TRL 0.14 and 0.15 and in programs based on them (R1-V's `GRPOScriptArguments` has `max_pixels`, unlike TRL),
/// whose engine ran on an accelerator of its own.
pub(super) const OF_OWN_ENGINE: [&str; 3] = ["vllm_device", "max_pixels", "min_pixels"];

/// Whether the text states one. These releases came with transformers 4, and their trainer names no format of weights
/// (`trl/trainer/grpo_trainer.py` of 0.14 and 0.15, R1-V's `vllm_grpo_trainer.py`; VLM-R1's later one names bf16).
fn is_of_own_engine(leaves: &Leaves<'_>) -> bool {
    let policy = leaves.reading.value(Field::TrainingObjective) == Some("policy");
    policy && !leaves.has("vllm_mode") && OF_OWN_ENGINE.iter().any(|key| leaves.has(key))
}

/// Arguments of transformers that 5.24 no longer has, and the last minor release with each (`training_args.py` of each release from
/// 4.30 on). 5.0 took most away; `warmup_ratio` and `logging_dir` stayed, deprecated, to 5.14.
pub(super) const LAST_OF_TRANSFORMERS: [(&str, [u64; 2]); 17] = [
    ("evaluation_strategy", [4, 50]),
    ("overwrite_output_dir", LAST_FOUR),
    ("save_safetensors", LAST_FOUR),
    ("per_gpu_train_batch_size", LAST_FOUR),
    ("per_gpu_eval_batch_size", LAST_FOUR),
    ("fp16_backend", LAST_FOUR),
    ("half_precision_backend", LAST_FOUR),
    ("fp16_opt_level", LAST_FOUR),
    ("no_cuda", LAST_FOUR),
    ("use_ipex", LAST_FOUR),
    ("jit_mode_eval", LAST_FOUR),
    ("ray_scope", LAST_FOUR),
    ("push_to_hub_token", LAST_FOUR),
    ("include_tokens_per_second", LAST_FOUR),
    ("group_by_length", [5, 1]),
    ("warmup_ratio", [5, 14]),
    ("logging_dir", [5, 14]),
];
pub(super) const LAST_FOUR: [u64; 2] = [4, 57];
/// The first release that loads models in the format of their checkpoint.
pub(super) const FIVE: [u64; 2] = [5, 0];

/// The lowest release of transformers that each release of TRL asks for, which bounds TRL's where a text pins an older one
/// (`Requires-Dist` in the metadata of TRL's wheels).
const NEEDS: [([u64; 2], [u64; 2]); 6] = [
    ([4, 31], [0, 9]),
    ([4, 40], [0, 11]),
    ([4, 46], [0, 12]),
    ([4, 50], [0, 18]),
    ([4, 51], [0, 19]),
    ([4, 55], [0, 22]),
];
/// The last release of TRL from before transformers 5 (December 2025).
pub(super) const BEFORE_FIVE: [u64; 2] = [0, 26];

/// The first release whose arguments turn on bf16, and the first that checkpoint (`trl/trainer/sft_config.py` and the others).
const HALVES: [u64; 2] = [0, 19];
const CHECKPOINTS: [u64; 2] = [0, 22];
/// A program that a release from then on admits is taken for one of today.
const RECENT: [u64; 2] = [1, 0];
/// The first release of transformers after that of TRL 0.22 (August 2025).
const BESIDE_OF_22: [u64; 2] = [4, 56];

/// The first release of transformers whose Llama, Mistral and Falcon have the current attention (`modeling_llama.py` of
/// 4.36: `LlamaSdpaAttention`, and a mask that is added without a copy of the scores clamped from below).
const ATTENTION_OF_TODAY: [u64; 2] = [4, 36];

fn value(scalars: &Scalars, key: &str) -> Option<[u64; 2]> {
    scalars.all().iter().rev().find(|leaf| leaf.path == key).and_then(|leaf| numbers(&leaf.value))
}

fn least(releases: impl IntoIterator<Item = Option<[u64; 2]>>) -> Option<[u64; 2]> {
    releases.into_iter().flatten().min()
}

/// The settings with the releases behind them, and with the defaults of an older TRL.
pub(super) fn with_releases(dialect: Dialect, scalars: &Scalars, installed: Installed) -> Scalars {
    let trl = dialect == Dialect::Trl;
    let has = |key: &str| scalars.all().iter().any(|leaf| leaf.path == key);
    let signs = |table: &[(&str, [u64; 2])]| {
        let told = table.iter().filter(|(key, _)| !has(OWN_OPTIONS) && has(key));
        told.map(|(_, last)| *last).min()
    };
    let given = value(scalars, RELEASE).filter(|release| *release > [0, 0]);
    let stated_trl = installed.trl.or(given.filter(|_| !has(AT_MOST)));
    let stated = installed.transformers.or(value(scalars, TRANSFORMERS).filter(|_| has(STATED)));
    let of_trl = least([stated_trl, given, signs(&LAST_OF_TRL).filter(|_| trl)]);
    // What is installed counts against any argument, which a program may also have under that name.
    let transformers = stated.or_else(|| {
        least([
            value(scalars, TRANSFORMERS),
            signs(&LAST_OF_TRANSFORMERS),
            of_trl.filter(|release| trl && *release <= BEFORE_FIVE).map(|_| LAST_FOUR),
        ])
    });
    let needed = NEEDS.iter().find(|(needs, _)| transformers.is_some_and(|release| release < *needs));
    let of_trl = stated_trl
        .or_else(|| least([of_trl, needed.map(|(_, [major, minor])| [*major, minor - 1]).filter(|_| trl)]));
    let mut leaves = scalars.all().to_vec();
    leaves.retain(|leaf| ![RELEASE, AT_MOST, TRANSFORMERS, STATED].contains(&leaf.path.as_str()));
    let mut add = |key: &str, value: String| {
        leaves.push(Leaf { path: key.to_owned(), value, ..Leaf::default() });
    };
    let written = |[major, minor]: [u64; 2]| format!("{major}.{minor}");
    match of_trl {
        Some(release) => {
            add(RELEASE, written(release));
            if stated_trl != Some(release) {
                add(AT_MOST, "true".to_owned());
            }
        }
        // Not one of the newest.
        None if (trl || dialect.is_unsloth()) && transformers.is_some_and(|release| release < FIVE) => {
            add(RELEASE, "0.0".to_owned());
        }
        None => {}
    }
    if let Some(release) = transformers {
        add(TRANSFORMERS, written(release));
        if stated.is_some() {
            add(STATED, "true".to_owned());
        }
    }
    Scalars::from_leaves(leaves)
}

/// The release that a text installs or that its arguments imply.
pub(super) fn release(leaves: &Leaves<'_>) -> Option<[u64; 2]> {
    leaves.get(RELEASE).and_then(|leaf| numbers(&leaf.value))
}

/// The release of transformers, or the last one that has all arguments of the text.
fn transformers(leaves: &Leaves<'_>) -> Option<[u64; 2]> {
    leaves.get(TRANSFORMERS).and_then(|leaf| numbers(&leaf.value))
}

/// Whether the text belongs to transformers 4.
pub(super) fn is_of_four(leaves: &Leaves<'_>) -> bool {
    transformers(leaves).is_some_and(|release| release < FIVE)
}

/// Whether it has an argument that today's transformers no longer has, and names no release of 5.
pub(super) fn is_of_older(leaves: &Leaves<'_>) -> bool {
    transformers(leaves).is_some_and(|release| release < FIVE || !leaves.has(STATED))
}

/// What tells that: an argument, or else the release.
pub(super) fn sign(leaves: &Leaves<'_>) -> Option<&'static str> {
    let key = LAST_OF_TRANSFORMERS.iter().map(|(key, _)| *key).find(|key| leaves.has(key));
    key.or(Some(TRANSFORMERS)).filter(|_| is_of_older(leaves))
}

/// Whether the text belongs to releases of TRL on both sides of `first`: it has an argument that an older one took away, or that
/// transformers 4 has, and no release is known.
fn is_open(leaves: &Leaves<'_>, first: [u64; 2]) -> bool {
    // A named release of transformers from then on is installed beside what TRL had come to.
    let since = leaves.has(STATED) && transformers(leaves).is_some_and(|release| release >= BESIDE_OF_22);
    // Names that other trainers of today have say nothing.
    let told = |key: &&&str| !STILL_OF_OTHERS.contains(*key) && leaves.has(key);
    let older = || OF_OLDER.iter().chain(&OF_OLDER_ROLLOUTS).any(|key| told(&key));
    match release(leaves) {
        Some([0, 0]) => !since,
        Some(release) => leaves.has(AT_MOST) && release >= first && release < RECENT,
        None => older() && !leaves.has(OWN_OPTIONS),
    }
}

/// A default that a release decides, and what is said of it.
pub(super) fn of_release(
    leaves: &Leaves<'_>,
    dialect: Dialect,
    field: Field,
) -> Option<(&'static str, &'static str)> {
    match (dialect, field) {
        (Dialect::Trl, Field::GradientCheckpointing) if is_before(leaves, CHECKPOINTS) => {
            Some(("false", "default of TRL before 0.22, to which the text belongs"))
        }
        (Dialect::Trl, Field::GradientCheckpointing) => {
            Some(("true", "default of TRL since 0.22; before, none"))
        }
        (Dialect::Trl, Field::Bf16) => Some(("true", "default of TRL since 0.19; before, off")),
        _ => None,
    }
}

/// Whether TRL's release, or the last that the text admits, is before `first`.
fn is_before(leaves: &Leaves<'_>, first: [u64; 2]) -> bool {
    release(leaves).is_some_and(|release| release > [0, 0] && release < first)
}

/// The length of samples by default: trainers of pairs and rewards took 1,024 tokens in 0.14, 512 before, and DPO none in 0.12 and
/// 0.13 (`trl/trainer/dpo_trainer.py` and the others of 0.9 to 0.14). `None` where the release leaves it open.
pub(super) fn length<'v>(leaves: &Leaves<'_>, dialect: Dialect, default: &'v str) -> Option<&'v str> {
    const SHORT: &str = "512";
    const LONG: [u64; 2] = [0, 14];
    const NONE: [u64; 2] = [0, 12];
    let objective = leaves.reading.value(Field::TrainingObjective);
    if dialect != Dialect::Trl || !matches!(objective, Some("dpo" | "kto" | "reward")) {
        return Some(default);
    }
    let others =
        matches!(leaves.reading.value(Field::PreferenceLogits), Some("orpo" | "cpo" | "cpo_simpo" | "simpo"));
    match release(leaves) {
        None => Some(default),
        Some(_) if leaves.has(AT_MOST) => None,
        Some([0, 0]) => None,
        Some(release) if release >= LONG => Some(default),
        Some(release) if objective == Some("dpo") && !others && release >= NONE => None,
        Some(_) => Some(SHORT),
    }
}

/// Asks for a setting that TRL's release decides.
fn ask(leaves: &mut Leaves<'_>, field: Field, prompt: &str) {
    let mut found = Found::new(field, String::new(), Origin::Default);
    found.hole = Some("the release of TRL".to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(field),
        prompt: prompt.to_owned(),
        choices: ["true", "false"].map(str::to_owned).to_vec(),
        proposal: Some("false".to_owned()),
    });
}

/// Asks whether TRL checkpoints where its release may be one of either default.
pub(super) fn checkpoints(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let known = leaves.reading.found.iter().any(|found| found.field == Field::GradientCheckpointing);
    if dialect == Dialect::Trl && !known && is_open(leaves, CHECKPOINTS) {
        let prompt = "Gradient checkpointing? TRL has it on unless told otherwise since 0.22, off before; an argument of this text \
                      belongs to an older release";
        ask(leaves, Field::GradientCheckpointing, prompt);
    }
}

/// The same of bf16; whether it is on by default.
pub(super) fn is_in_bf16(leaves: &mut Leaves<'_>, dialect: Dialect) -> bool {
    let older = dialect == Dialect::Trl && is_before(leaves, HALVES);
    let open = dialect == Dialect::Trl && !older && is_open(leaves, HALVES);
    if open {
        let prompt = "bf16? TRL has it on unless told otherwise since 0.19, off before; an argument of this text belongs to an older \
                      release";
        ask(leaves, Field::Bf16, prompt);
    }
    dialect.is_bf16() && !older && !open
}

/// Asks for the format of weights where transformers 4, which loads them in fp32 unless its program names one, is behind the
/// settings or may be, and the program is not at hand; whether it is asked.
pub(super) fn asks_for_format(leaves: &mut Leaves<'_>, dialect: Dialect) -> bool {
    // DeepSpeed's engine casts them, and FSDP's main weights are in fp32 either way.
    let as_loaded = matches!(leaves.reading.value(Field::DataParallelEngine), None | Some("ddp"));
    let quantized = !matches!(leaves.reading.value(Field::BaseQuantization), None | Some("" | "none"));
    let asks = dialect == Dialect::Transformers
        && as_loaded
        && !quantized
        && (is_of_older(leaves) || is_of_own_engine(leaves))
        && !leaves.has(LOADED);
    if asks {
        let half = ask_format(&mut leaves.reading);
        let prompt = format!(
            "Format of the weights? Transformers 4, to which this text may belong, loads them in fp32 unless the program says \
             torch_dtype ({half})"
        );
        leaves.reading.questions.push(question_of_format(prompt, half));
    }
    asks
}

/// The same where the program that loads the model names no format, and only the release is open.
pub(super) fn ask_for_release(reading: &mut Reading) {
    let half = ask_format(reading);
    let prompt = format!(
        "Format of the weights? Transformers 4 loads them in fp32 by default, 5 as the checkpoint is ({half}); an argument of this \
         text belongs to 4 or to early releases of 5"
    );
    reading.questions.push(question_of_format(prompt, half));
}

/// Leaves the format of weights open; the name of the half one.
fn ask_format(reading: &mut Reading) -> &'static str {
    let half = if reading.value(Field::Fp16) == Some("true") { "fp16" } else { "bf16" };
    let mut found = Found::new(Field::ParamsDtype, String::new(), Origin::Default);
    found.hole = Some("the release of transformers".to_owned());
    reading.take(found);
    half
}

fn question_of_format(prompt: String, half: &str) -> Question {
    Question {
        asks: Asked::Setting(Field::ParamsDtype),
        prompt,
        choices: vec!["fp32".to_owned(), half.to_owned()],
        proposal: Some("fp32".to_owned()),
    }
}

/// Stops at modules of transformers that hold other tensors than the current ones, if a text installs such a release.
pub(super) fn older_layers(leaves: &mut Leaves<'_>) {
    let release = transformers(leaves).filter(|release| *release < ATTENTION_OF_TODAY);
    if let Some([major, minor]) = release.filter(|_| leaves.has(STATED)) {
        let what = "attention of transformers before 4.36, which holds other tensors than today's";
        let value = format!("{major}.{minor}");
        leaves.reading.not_modelled.push(NotModelled::new("transformers", &value, Effect::Memory, what));
    }
}

/// The keys of this file, none of which a text has.
const OWN: [&str; 6] = [RELEASE, AT_MOST, TRANSFORMERS, STATED, OWN_OPTIONS, LOADED];

/// Marks them as read.
pub(super) fn pass(leaves: &Leaves<'_>) {
    OWN.iter().for_each(|key| leaves.pass(key));
}

/// The other keys, which are in the text.
pub(super) fn written<'t>(leaves: &Leaves<'t>) -> impl Iterator<Item = &'t str> + Clone {
    leaves.all().iter().map(|leaf| leaf.path.as_str()).filter(|path| !OWN.contains(path))
}
