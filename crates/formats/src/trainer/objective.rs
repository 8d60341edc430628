//! The inputs of a trainer's loss: samples, pairs with a reference, or rollouts.

use super::dialect::Dialect;
use super::early;
use super::rollouts::{GRPO, RLOO, lack, rollouts};
use super::unsloth_rollouts;
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::Field;

/// Values for the plain objective.
const PLAIN: [&str; 6] = ["sft", "pt", "pretrain", "causal_lm", "seq_2_seq_lm", "cpt"];
const REWARDS: &str = "reinforcement learning or preference training, and the models that it holds";

pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    task(leaves, dialect);
    if dialect == Dialect::Trl && !super::authors::is_firefly(leaves) {
        named_by_trl(leaves);
    }
    let Some(leaf) = leaves.first(&["rlhf_type", "rl", "stage"]).filter(|leaf| leaf.flag() != Some(false))
    else {
        return;
    };
    match leaf.value.as_str() {
        word if PLAIN.contains(&word) => {}
        // ms-swift's SimPO is TRL's CPO with another loss, and its weight of the chosen samples' cross entropy is 1 by
        // default (`swift/arguments/rlhf_args.py:_init_simpo`, `cpo_alpha`).
        "simpo" if dialect == Dialect::Swift && !is_weightless(leaves) => {
            with_chosen(leaves, leaf, dialect, "cpo")
        }
        // So is axolotl's (`axolotl/core/builders/rl.py`, `core/trainers/trl.py:AxolotlCPOTrainer`).
        "simpo" if dialect == Dialect::Axolotl => with_chosen(leaves, leaf, dialect, "cpo"),
        "dpo" | "simpo" | "ipo" => preferences(leaves, leaf, dialect),
        // ms-swift uses TRL's trainer (`swift/rlhf_trainers/reward_trainer.py`).
        "rm" if dialect == Dialect::Swift => leaves.say(Field::TrainingObjective, "reward", leaf),
        // TRL's model with a value head (`llamafactory/model/loader.py:load_model`, `train/rm/trainer.py`).
        "rm" if dialect == Dialect::LlamaFactory => {
            leaves.say(Field::TrainingObjective, "value_rewards", leaf)
        }
        "kto" if dialect == Dialect::LlamaFactory => {
            leaves.say(Field::TrainingObjective, "kto", leaf);
            in_fp32(leaves);
        }
        // axolotl uses TRL's trainer (`axolotl/core/trainers/trl.py:AxolotlKTOTrainer`).
        "kto" if matches!(dialect, Dialect::Trl | Dialect::Axolotl) => signs(leaves, leaf),
        // axolotl uses TRL's trainer (`axolotl/core/trainers/trl.py:AxolotlORPOTrainer`), and ms-swift does for both
        // ORPO and CPO (`swift/rlhf_trainers/orpo_trainer.py`, `cpo_trainer.py`, `rlhf_mixin.py:concatenated_forward`).
        "orpo"
            if matches!(dialect, Dialect::Trl | Dialect::Axolotl | Dialect::Swift)
                || dialect.is_unsloth() =>
        {
            with_chosen(leaves, leaf, dialect, "orpo")
        }
        "cpo" if matches!(dialect, Dialect::Trl | Dialect::Swift) => {
            with_chosen(leaves, leaf, dialect, "cpo")
        }
        // Keys of its older programs share names with TRL's but not their meaning.
        "grpo" if dialect == Dialect::OpenInstruct => lack(leaves, leaf, REWARDS),
        "grpo" if dialect.is_unsloth() => unsloth_rollouts::rollouts(leaves, leaf),
        "grpo" => rollouts(leaves, leaf, dialect, &GRPO),
        "rloo" if dialect == Dialect::Trl => rollouts(leaves, leaf, dialect, &RLOO),
        _ => lack(leaves, leaf, REWARDS),
    }
}

/// Keys of trainers that compare or generate samples. A TRL settings file has them without naming its trainer, which
/// the program chooses. GRPO's needs neither `beta` nor `max_prompt_length`, which TRL no longer has.
const COMPARES: &str = "beta max_prompt_length rpo_alpha precompute_ref_log_probs ref_model_init_kwargs \
    num_generations max_completion_length use_vllm vllm_mode";
/// Words in a run's name, and the trainer that each indicates; the first match counts.
const HINTS: [(&str, &str); 6] =
    [("rloo", "RLOO"), ("orpo", "ORPO"), ("kto", "KTO"), ("cpo", "CPO"), ("grpo", "GRPO"), ("dpo", "DPO")];

/// Losses that only TRL's DPO has (`trl/trainer/dpo_config.py`, `cpo_config.py`, `kto_config.py`, `experimental/bco`).
const OF_DPO: &str = "exo_pair nca_pair robust bco_pair sppo_hard aot aot_pair discopop apo_zero apo_down";

/// Settings that a TRL settings file leaves to its program: inferred from the run's name, otherwise asked for.
pub(super) fn left_to_program(leaves: &mut Leaves<'_>) {
    let said = leaves.reading.found.iter().any(|found| found.field == Field::TrainingObjective);
    // An option of SimPO's own trainer, whose loss has no reference (`princeton-nlp/SimPO/scripts/simpo_config.py`).
    if let Some(leaf) = leaves.get("gamma_beta_ratio").filter(|_| !said) {
        leaves.say(Field::TrainingObjective, "dpo", leaf);
        leaves.say(Field::ReferenceModel, "none", leaf);
        let why = "SimPO's trainer takes the log-softmax of all logits at once";
        leaves.reading.keep(&|found| found.field != Field::PreferenceLogits);
        leaves.state(Field::PreferenceLogits, "whole", Origin::Derived, why);
        if let Some(leaf) = leaves.get("sft_weight").filter(|leaf| leaf.value.parse::<f64>() != Ok(0.0)) {
            lack(leaves, leaf, "a cross-entropy term on chosen samples in addition to the preference loss");
        }
        return;
    }
    let compared = COMPARES.split(' ').find_map(|key| leaves.get(key));
    let Some(leaf) = compared.or_else(|| early::length_of_pairs(leaves)).filter(|_| !said) else { return };
    let names: Vec<String> = ["output_dir", "hub_model_id", "hub_model_revision", "run_name"]
        .iter()
        .filter_map(|path| leaves.text(path))
        .map(str::to_ascii_lowercase)
        .collect();
    let hint = HINTS.iter().find(|(word, _)| names.iter().any(|name| name.contains(word)));
    // Only trainers that generate rollouts have several per prompt; unless the name says otherwise it is GRPO.
    let of_rollouts = match hint {
        None | Some((_, "GRPO")) => Some(&GRPO),
        Some((_, "RLOO")) => Some(&RLOO),
        Some(_) => None,
    };
    if let Some((leaf, defaults)) = leaves.get("num_generations").zip(of_rollouts) {
        return rollouts(leaves, leaf, Dialect::Trl, defaults);
    }
    // Whichever trainer for pairs it is, none of them then holds a reference.
    if let Some(leaf) = leaves.yes("precompute_ref_log_probs") {
        leaves.say(Field::ReferenceModel, "precomputed", leaf);
    }
    let loss = leaves.get("loss_type").filter(|leaf| OF_DPO.split(' ').any(|loss| loss == leaf.value));
    match hint {
        _ if let Some(loss) = loss => {
            leaves.say_noted(Field::TrainingObjective, "dpo", loss, "a loss of TRL's DPO alone");
            named_by_trl(leaves);
        }
        Some((_, "DPO")) => {
            leaves.say_noted(Field::TrainingObjective, "dpo", leaf, "inferred from the run's name");
            named_by_trl(leaves);
        }
        Some((_, "KTO")) => signs(leaves, leaf),
        Some((_, "ORPO")) => with_chosen(leaves, leaf, Dialect::Trl, "orpo"),
        Some((_, "CPO")) => with_chosen(leaves, leaf, Dialect::Trl, "cpo"),
        Some((_, trainer)) => {
            let item = NotModelled::new("trainer", trainer, Effect::Memory, REWARDS).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
        None => {
            let mut found = Found::new(Field::TrainingObjective, String::new(), Origin::Script)
                .by(leaf.path.as_str(), leaf.span);
            found.hole = Some("the program that reads this file".to_owned());
            leaves.reading.take(found);
            leaves.reading.questions.push(Question {
                asks: Asked::Setting(Field::TrainingObjective),
                prompt: "Which TRL trainer reads this file: SFT or DPO?".to_owned(),
                choices: ["dpo", "sft"].map(str::to_owned).to_vec(),
                proposal: Some("dpo".to_owned()),
            });
        }
    }
}

/// Which program of open-instruct reads a file: only `dpo_tune_cache.py` has a preference loss among its arguments
/// (`open_instruct/dpo_utils.py:DPOConfig`). It runs the reference once, before training.
pub(super) fn of_open_instruct(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.first(&["beta", "loss_type", "gamma_beta_ratio"]) {
        leaves.say(Field::TrainingObjective, "dpo", leaf);
        leaves.say(Field::ReferenceModel, "precomputed", leaf);
    } else if let Some(leaf) = leaves.first(&["dpo_loss_type", "dpo_beta"]) {
        lack(
            leaves,
            leaf,
            "DPO of open-instruct until 2026, whose dpo_tune.py holds a reference and dpo_tune_cache.py none",
        );
    }
}

/// Which step of DeepSpeed-Chat it is. Supervised fine-tuning and DPO are each a `main.py` with the same required
/// options (`applications/DeepSpeed-Chat/training/step1_supervised_finetuning/main.py`,
/// `step2_dpo_finetuning/main.py`); DPO also loads a reference and runs both sequences of a pair, so the two must not
/// be confused. Scripts reveal the step by options that only one program has, or by their output folder.
pub(super) fn step_of_chat(leaves: &mut Leaves<'_>) {
    const PAIRS: &str = "DPO of DeepSpeed-Chat: a reference model, and both sequences of a pair";
    const OTHERS: [&str; 3] =
        ["num_padding_at_beginning", "actor_model_name_or_path", "critic_model_name_or_path"];
    // Of step 2 and step 3 alone, whatever it counts (`step2_reward_model_finetuning/main.py`); other numbers stop by the table.
    if let Some(leaf) = leaves.get(OTHERS[0]).filter(|leaf| leaf.whole() == Some(0)) {
        leaves.lack(leaf, Effect::Model, "a reward head in place of the LM head");
    }
    if OTHERS.iter().any(|path| leaves.has(path)) {
        return;
    }
    if let Some(leaf) = leaves.first(&["beta", "label_smoothing", "offload_reference_model"]) {
        return lack(leaves, leaf, PAIRS);
    }
    let places = ["output_dir", "tensorboard_path"];
    let leaf_named = |words: &[&str]| {
        places.iter().find_map(|path| {
            leaves.get(path).filter(|leaf| {
                let place = leaf.value.to_ascii_lowercase();
                words.iter().any(|word| place.contains(word))
            })
        })
    };
    // Reward models are also step 2, and have an option of their own.
    if let Some(leaf) = leaf_named(&["dpo", "step2"]) {
        return lack(leaves, leaf, PAIRS);
    }
    if leaves.has("sft_only_data_path") || leaf_named(&["sft", "step1"]).is_some() {
        return;
    }
    let mut found = Found::new(Field::TrainingObjective, String::new(), Origin::Script);
    found.hole = Some("the step of DeepSpeed-Chat whose main.py it is".to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::TrainingObjective),
        prompt:
            "Is it supervised fine-tuning (step 1)? DPO (step 2) has the same options and is not modelled here."
                .to_owned(),
        choices: vec!["sft".to_owned()],
        proposal: Some("sft".to_owned()),
    });
}

/// Model types with an encoder, which scripts of transformers' examples select by these names.
const ENCODERS: &str = "albert bart bert deberta deberta-v2 distilbert electra esm esm2 longt5 marian mbart modernbert mt5 roberta \
    t5 umt5 xlm-roberta";

fn is_encoder(name: &str) -> bool {
    ENCODERS.split(' ').any(|known| known == name)
}

fn task(leaves: &mut Leaves<'_>, dialect: Dialect) {
    // axolotl uses TRL's trainer (`axolotl/core/trainers/trl.py:AxolotlRewardTrainer`); its model has one output.
    let rewards = leaves.yes("reward_model").filter(|_| dialect == Dialect::Axolotl);
    if let Some(leaf) = rewards.or_else(|| leaves.get("center_rewards_coefficient")) {
        leaves.say(Field::TrainingObjective, "reward", leaf);
    }
    let head = |leaf: &&Leaf| leaf.flag() == Some(true) || leaf.value.contains("Classification");
    let heads: &[&str] = if rewards.is_some() {
        &["process_reward_model"]
    } else {
        &["reward_model", "process_reward_model", "model_type"]
    };
    if let Some(leaf) = heads.iter().find_map(|path| leaves.get(path).filter(head)) {
        let what = "another head in place of the output layer";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // A model type by its name, or a model's name that begins with it if no other key names the model, provided that it
    // is not a decoder (`transformers/models/auto/configuration_auto.py`).
    let named = leaves.get("config_name").filter(|_| !leaves.has("model_name_or_path"));
    let begins = |leaf: &&Leaf| {
        let name = leaf.value.rsplit('/').next().unwrap_or(&leaf.value).to_ascii_lowercase();
        is_encoder(name.split(['-', '_']).next().unwrap_or(&name))
    };
    let typed = leaves.get("model_type").filter(|leaf| is_encoder(&leaf.value));
    if let Some(leaf) = typed.or(named.filter(begins)) {
        let what = "a model other than a decoder-only language model";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Model, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // Firefly's own key for its training task.
    let own = super::authors::is_firefly(leaves);
    if super::classes::read(leaves, dialect) {
        return;
    }
    // Adapters beside the head of a reward model, whose copy PEFT trains.
    let scores = |leaf: &Leaf| {
        leaf.value == "SEQ_CLS" && leaves.reading.value(Field::TrainingObjective) == Some("reward")
    };
    let plain = |leaf: &Leaf| PLAIN.contains(&leaf.value.to_ascii_lowercase().as_str());
    if let Some(leaf) = leaves.get("task_type").filter(|leaf| !own && !plain(leaf) && !scores(leaf)) {
        leaves.lack(leaf, Effect::Model, "another head in place of the output layer");
    }
}

/// LLaMA-Factory's own preference losses (`train/trainer_utils.py:get_batch_logps`).
fn in_fp32(leaves: &mut Leaves<'_>) {
    let why = "LLaMA-Factory's preference losses cast the logits to fp32";
    leaves.state(Field::PreferenceLogits, "fp32", Origin::Derived, why);
    // `train/trainer_utils.py:create_ref_model`.
    if let Some(leaf) = leaves.get("ref_model") {
        leaves.say(Field::ReferenceModel, "loaded", leaf);
    }
    // Additional masks next to those of every sequence.
    if let Some(leaf) = leaves.get("ld_alpha") {
        lack(leaves, leaf, "position-weighted log-probabilities (LD-DPO)");
    }
}

/// In TRL a variable keeps the model's output until the metrics of the loss are computed
/// (`trl/trainer/dpo_trainer.py:_compute_loss`, `sft_trainer.py:compute_loss`).
fn named_by_trl(leaves: &mut Leaves<'_>) {
    let why = "TRL holds the model output until its loss metrics are computed";
    leaves.state(Field::PreferenceLogits, "own", Origin::Derived, why);
}

/// Preference trainers turn off every dropout of the model, including that of adapters, unless told to keep it:
/// `disable_dropout` of TRL's `DPOConfig`, `KTOConfig` and `RewardConfig`, the base of ms-swift's and axolotl's
/// trainers, of SimPO's and of LLaMA-Factory's (`train/dpo/trainer.py`, `train/kto/trainer.py`; not its reward models).
pub(super) fn without_dropout(leaves: &mut Leaves<'_>, dialect: Dialect) {
    let off = match leaves.reading.value(Field::TrainingObjective) {
        Some("dpo" | "kto") => dialect != Dialect::OpenInstruct,
        Some("reward") => matches!(dialect, Dialect::Trl | Dialect::Swift | Dialect::Axolotl),
        _ => false,
    };
    if off && leaves.flag("disable_dropout") != Some(false) {
        turn_dropout_off(&mut leaves.reading);
    }
}

/// Adapters of a preference trainer, without dropout unless a switch for it was not read.
pub fn turn_dropout_off(reading: &mut Reading) {
    let disables_dropout = reading.not_read.iter().any(|item| item.name.ends_with("disable_dropout"));
    if reading.value(Field::LoraDropout).is_some() && !disables_dropout {
        reading.keep(&|found| found.field != Field::LoraDropout);
        let why = "preference trainers turn dropout off (disable_dropout)";
        reading.take(Found::new(Field::LoraDropout, "0", Origin::Derived).note(why));
    }
}

/// Pairs of samples. SimPO has no reference. ORPO has none either; TRL's adds the cross entropy of the chosen sample,
/// whereas LLaMA-Factory's computes it from existing log-probabilities (`train/dpo/trainer.py:odds_ratio_loss`).
fn preferences(leaves: &mut Leaves<'_>, leaf: &Leaf, dialect: Dialect) {
    leaves.say(Field::TrainingObjective, "dpo", leaf);
    let is_factory = dialect == Dialect::LlamaFactory;
    if is_factory {
        in_fp32(leaves);
    } else if matches!(dialect, Dialect::Trl | Dialect::Axolotl) {
        named_by_trl(leaves);
    }
    let kind = leaves.get("pref_loss").map(|leaf| (leaf, leaf.value.as_str()));
    match kind {
        Some((leaf, "orpo")) if is_factory => leaves.say(Field::ReferenceModel, "none", leaf),
        Some((leaf, "orpo")) => lack(
            leaves,
            leaf,
            "a cross-entropy term on chosen samples in addition to the preference loss (ORPO)",
        ),
        Some((leaf, "simpo")) => leaves.say(Field::ReferenceModel, "none", leaf),
        _ if leaf.value == "simpo" => leaves.say(Field::ReferenceModel, "none", leaf),
        _ => {}
    }
    if let Some(leaf) = leaves.yes("precompute_ref_log_probs") {
        leaves.say(Field::ReferenceModel, "precomputed", leaf);
    }
}

/// TRL's ORPO and CPO, which have no reference and add the cross entropy of chosen samples
/// (`trl/experimental/orpo/orpo_trainer.py`, `cpo/cpo_trainer.py`; `cpo_config.py`: its
/// weight `cpo_alpha` is 1 by default).
fn with_chosen(leaves: &mut Leaves<'_>, leaf: &Leaf, dialect: Dialect, word: &str) {
    leaves.say(Field::TrainingObjective, "dpo", leaf);
    leaves.say(Field::ReferenceModel, "none", leaf);
    leaves.reading.keep(&|found| found.field != Field::PreferenceLogits);
    let why = "TRL's trainer takes the cross entropy of chosen samples beside the preference";
    // CPO's trainer also does SimPO; ms-swift's SimPO sets which. Without a weight the cross entropy is not computed.
    let weightless = leaves.get("cpo_alpha").filter(|_| is_weightless(leaves));
    let kind = leaves.get("loss_type");
    let means = kind.map_or(leaf.value.as_str(), |leaf| leaf.value.as_str()) == "simpo";
    let word = match (word, means, weightless) {
        ("cpo", true, None) => "cpo_simpo",
        // ms-swift replaces TRL's function (`rlhf_mixin.py:concatenated_forward`).
        ("cpo", true, Some(_)) if dialect != Dialect::Swift => "simpo",
        ("cpo", _, Some(leaf)) => {
            lack(leaves, leaf, "TRL's CPO without the cross entropy of chosen samples");
            word
        }
        _ => word,
    };
    leaves.state(Field::PreferenceLogits, word, Origin::Derived, why);
    // A value that no other trainer of TRL has stops the verdict in the table of keys.
    if let Some(leaf) = kind.filter(|_| means) {
        leaves.reading.not_modelled.retain(|item| item.name != leaf.path);
    }
    if let Some(leaf) = kind.filter(|leaf| word == "cpo" && leaf.value != "sigmoid") {
        lack(leaves, leaf, "a CPO loss other than sigmoid and SimPO");
    }
    leaves.pass_below(&["cpo_alpha", "orpo_alpha", "simpo_gamma"]);
    // ms-swift's packs of samples, which it also uses in TRL's trainers.
    for path in ["padding_free", "packing"] {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, "packed samples with a preference loss plus cross entropy");
        }
    }
}

/// Whether the chosen samples' cross entropy has no weight.
fn is_weightless(leaves: &Leaves<'_>) -> bool {
    leaves.get("cpo_alpha").is_some_and(|leaf| leaf.value.parse::<f64>() == Ok(0.0))
}

/// TRL's KTO (`trl/trainer/kto_trainer.py:KTOTrainer._compute_loss`): single samples, and others from which to estimate
/// the distance to the reference, which APO's loss does not need. Liger's loss creates no logits.
fn signs(leaves: &mut Leaves<'_>, leaf: &Leaf) {
    leaves.say(Field::TrainingObjective, "kto", leaf);
    named_by_trl(leaves);
    if let Some(leaf) = leaves.yes("precompute_ref_log_probs") {
        leaves.say(Field::ReferenceModel, "precomputed", leaf);
    }
    // `trl/trainer/kto_trainer.py:__init__`: the distance to the reference comes from a micro-batch's other samples.
    let micro = leaves.first(&["per_device_train_batch_size", "micro_batch_size"]);
    if let Some(leaf) = micro.filter(|leaf| leaf.whole() == Some(1)) {
        lack(leaves, leaf, "KTO with a micro-batch of 1, which TRL rejects");
    }
    if let Some(leaf) = leaves.get("loss_type").filter(|leaf| leaf.value != "kto") {
        lack(leaves, leaf, "an unpaired loss without a KL term to the reference (APO)");
    }
    for path in ["use_liger_kernel", "use_liger_loss", "use_liger"] {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, "Liger's fused loss of KTO");
        }
    }
}
