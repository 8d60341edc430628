//! Which loss TRL's trainers compute, by release: since 1.15 output layer and log-probabilities are one function that
//! computes logits one tile at a time (`trl/trainer/utils.py:add_fused_lm_head`, for SFT, DPO, KTO and GRPO); 1.7 to
//! 1.14 compute SFT's loss in chunks of 256 tokens by default (`chunked_nll`), and older ones hold all logits at once.
//! The trainers of ORPO and CPO read logits, from which one kernel has computed log-probabilities since 1.14
//! (`trl/kernels/logprob_entropy.py`).

use super::dialect::Dialect;
use crate::leaves::Leaves;
use crate::releases;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// The key under which the reader of programs puts the release that a text installs, as its first two numbers.
pub(super) const RELEASE: &str = "trl_release";

/// The first release that computes logits one tile at a time, and the first whose SFT computes its loss in chunks.
const TILES: [u64; 2] = [1, 15];
/// The first release with a kernel for log-probabilities of logits; 1.13 has none.
const TOKENS: [u64; 2] = [1, 14];
const CHUNKS: [u64; 2] = [1, 7];
/// The first release whose trainers of DPO and KTO take a balancing loss (huggingface/trl#6208, #6175).
const PAIRS_BALANCED: [u64; 2] = [1, 8];

/// Arguments that `SFTConfig`, `DPOConfig` or `KTOConfig` had in 0.9.6 to 0.24.0 and none has had since 0.29
/// (`trl/trainer/sft_config.py`, `dpo_config.py`, `kto_config.py`).
const OF_OLDER: [&str; 17] = [
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
/// (`trl/experimental/orpo/orpo_config.py`, `cpo/cpo_config.py` of 1.16).
const STILL_OF_PAIRS: [&str; 3] = ["generate_during_eval", "is_encoder_decoder", "max_completion_length"];

/// Arguments of transformers 4 that 5 rejects (`training_args.py` of 4.46.3 and of 5.23).
pub(super) const OF_FOUR: [&str; 17] = [
    "evaluation_strategy",
    "overwrite_output_dir",
    "warmup_ratio",
    "logging_dir",
    "group_by_length",
    "save_safetensors",
    "per_gpu_train_batch_size",
    "per_gpu_eval_batch_size",
    "fp16_backend",
    "half_precision_backend",
    "fp16_opt_level",
    "no_cuda",
    "use_ipex",
    "jit_mode_eval",
    "ray_scope",
    "push_to_hub_token",
    "include_tokens_per_second",
];

/// Arguments that `GRPOConfig` no longer has, and those of programs based on TRL 0.14 and
/// 0.15 (`rollouts.rs:is_early`).
const OF_OLDER_ROLLOUTS: [&str; 9] = [
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

/// Runs once the objective is known. A text that indicates an older release, has an argument that only transformers 4
/// has, or requests something that the fused output layer rejects, keeps the loss that holds all logits at once.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) {
    if dialect == Dialect::Trl {
        balances(leaves);
    }
    let stated = leaves.get(RELEASE).map(|leaf| leaf.value.clone());
    let objective = leaves.reading.value(Field::TrainingObjective);
    let sft = matches!(objective, None | Some("" | "sft"));
    let policy = objective == Some("policy");
    let fused = sft
        || policy && leaves.reading.value(Field::RlFramework) == Some("trl")
        || matches!(objective, Some("dpo" | "kto"))
            && leaves.reading.value(Field::PreferenceLogits) == Some("own");
    if dialect == Dialect::Trl && objective == Some("dpo") {
        of_tokens(leaves, stated.as_deref().and_then(releases::numbers));
    }
    if dialect != Dialect::Trl || !fused || leaves.reading.value(Field::LossKind).is_some() {
        return;
    }
    let release = stated.as_deref().and_then(releases::numbers);
    if sft && release.is_some_and(|release| (CHUNKS..TILES).contains(&release)) {
        let what = "the loss of TRL 1.7 to 1.14, whose logits are made and recomputed 256 tokens at a time";
        leaves.reading.not_modelled.push(NotModelled::new(
            "trl",
            &stated.unwrap_or_default(),
            Effect::Memory,
            what,
        ));
        return;
    }
    let of_older = if policy { OF_OLDER_ROLLOUTS.as_slice() } else { OF_OLDER.as_slice() };
    let older = release.is_some_and(|release| release < TILES)
        || of_older.iter().chain(&OF_FOUR).any(|key| leaves.has(key));
    let adapted =
        leaves.reading.value(Field::LoraTargetModules).is_some_and(|modules| modules.contains("lm_head"));
    let smoothed =
        leaves.get("label_smoothing_factor").is_some_and(|leaf| leaf.value.parse::<f64>() != Ok(0.0));
    if !(older || adapted || smoothed) {
        let why = "TRL 1.15 and later; older releases hold all logits at once (loss_kind torch)";
        leaves.state(Field::LossKind, "fused_tiles", Origin::Default, why);
    }
}

/// A model with experts is asked for its routers' logits, and their balancing loss, unless its weight is 0
/// (`trl/trainer/sft_trainer.py`, `grpo_trainer.py`, `rloo_trainer.py` since 1.7, `dpo_trainer.py` and `kto_trainer.py` since 1.8:
/// `aux_loss_enabled`). The latter two raise an error for such a model with `use_liger_kernel`.
fn balances(leaves: &mut Leaves<'_>) {
    let compares = matches!(leaves.reading.value(Field::TrainingObjective), Some("dpo" | "kto"));
    let first = if compares { PAIRS_BALANCED } else { CHUNKS };
    let older = release(leaves).is_some_and(|release| release < first)
        || OF_OLDER.iter().chain(&OF_FOUR).any(|key| leaves.has(key));
    let weight = leaves.get("router_aux_loss_coef").and_then(|leaf| leaf.value.parse::<f64>().ok());
    let pairs =
        matches!(leaves.reading.value(Field::PreferenceLogits), Some("orpo" | "cpo" | "cpo_simpo" | "simpo"));
    let rewards = leaves.reading.value(Field::TrainingObjective) == Some("reward");
    if !older && !pairs && !rewards && weight != Some(0.0) {
        let why = match (compares, leaves.flag("use_liger_kernel")) {
            (true, Some(true)) => {
                "TRL takes the balancing loss of a model with experts since 1.8, and refuses it beside use_liger_kernel: set \
                 router_aux_loss_coef to 0"
            }
            (true, _) => {
                "TRL takes the balancing loss of a model with experts in DPO and KTO since 1.8; before transformers 5.16 as \
                 router_loss=joined"
            }
            _ => {
                "TRL takes the balancing loss of a model with experts since 1.7; before transformers 5.16 as router_loss=joined"
            }
        };
        leaves.state(Field::RouterLoss, "layers", Origin::Default, why);
    }
}

/// ORPO and CPO, and SimPO by CPO's trainer.
fn of_tokens(leaves: &mut Leaves<'_>, release: Option<[u64; 2]>) {
    let reads =
        matches!(leaves.reading.value(Field::PreferenceLogits), Some("orpo" | "cpo" | "cpo_simpo" | "simpo"));
    let is_of_older = |key: &&str| !STILL_OF_PAIRS.contains(key) && leaves.has(key);
    let older =
        release.is_some_and(|release| release < TOKENS) || OF_OLDER.iter().chain(&OF_FOUR).any(is_of_older);
    if reads && !older && leaves.reading.value(Field::LossKind).is_none() {
        let why = "TRL 1.14 and later; older releases keep a log-softmax of the logits (loss_kind torch)";
        leaves.state(Field::LossKind, "token_kernel", Origin::Default, why);
    }
}

/// The release that a text installs or that its arguments imply.
pub(super) fn release(leaves: &Leaves<'_>) -> Option<[u64; 2]> {
    leaves.get(RELEASE).and_then(|leaf| releases::numbers(&leaf.value))
}

/// Whether there is an argument that transformers 5 no longer has.
pub(super) fn is_of_four(leaves: &Leaves<'_>) -> bool {
    OF_FOUR.iter().any(|key| leaves.has(key))
}

/// What tells transformers 4 and not TRL's release: an argument that 5 no longer has, or packages and calls of a program.
pub(super) fn of_four(leaves: &Leaves<'_>) -> Option<String> {
    let key = OF_FOUR.into_iter().find(|key| leaves.has(key));
    key.or_else(|| leaves.has(RELEASE).then_some("beta")).map(str::to_owned)
}

/// Whether there is an argument that no release of TRL since 0.29 has.
pub(super) fn is_of_older(leaves: &Leaves<'_>) -> bool {
    OF_OLDER.iter().chain(&OF_OLDER_ROLLOUTS).any(|key| leaves.has(key))
}

/// Whether a program around unsloth has an argument that only older releases, or those of transformers 4, have.
/// `max_seq_length` does not count, as it is also unsloth's name for the model's length.
pub(super) fn is_older(leaves: &Leaves<'_>) -> bool {
    OF_OLDER.iter().chain(&OF_FOUR).any(|key| *key != "max_seq_length" && leaves.has(key))
}
