//! Which loss TRL's trainers compute, by release: since 1.15 output layer and log-probabilities are one function that
//! computes logits one tile at a time (`trl/trainer/utils.py:add_fused_lm_head`, for SFT, DPO, KTO and GRPO); 1.7 to
//! 1.14 compute SFT's loss in chunks of 256 tokens by default (`chunked_nll`), and older ones hold all logits at once.
//! The trainers of ORPO and CPO read logits, from which one kernel has computed log-probabilities since 1.14
//! (`trl/kernels/logprob_entropy.py`).

use super::behind::{self, AT_MOST, OF_OLDER, OF_OLDER_ROLLOUTS, RELEASE, STILL_OF_OTHERS, release};
use super::dialect::Dialect;
use crate::leaves::Leaves;
use crate::releases;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

/// The first release that computes logits one tile at a time, and the first whose SFT computes its loss in chunks.
const TILES: [u64; 2] = [1, 15];
/// The first release with a kernel for log-probabilities of logits; 1.13 has none.
const TOKENS: [u64; 2] = [1, 14];
const CHUNKS: [u64; 2] = [1, 7];
/// The first release whose trainers of DPO and KTO take a balancing loss (huggingface/trl#6208, #6175).
const PAIRS_BALANCED: [u64; 2] = [1, 8];

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
        of_tokens(leaves);
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
    let older = is_before(leaves, TILES, &|leaves| of_older.iter().any(|key| leaves.has(key)));
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
    let older = is_before(leaves, first, &|leaves| OF_OLDER.iter().any(|key| leaves.has(key)));
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
fn of_tokens(leaves: &mut Leaves<'_>) {
    let reads =
        matches!(leaves.reading.value(Field::PreferenceLogits), Some("orpo" | "cpo" | "cpo_simpo" | "simpo"));
    let older = is_before(leaves, TOKENS, &|leaves| {
        OF_OLDER.iter().any(|key| !STILL_OF_OTHERS.contains(key) && leaves.has(key))
    });
    if reads && !older && leaves.reading.value(Field::LossKind).is_none() {
        let why = "TRL 1.14 and later; older releases keep a log-softmax of the logits (loss_kind torch)";
        leaves.state(Field::LossKind, "token_kernel", Origin::Default, why);
    }
}

/// Whether TRL's release is before `first`: a stated one tells that alone, or else `has` tells an argument of older ones, or the text
/// belongs to an older transformers.
fn is_before(leaves: &Leaves<'_>, first: [u64; 2], has: &dyn Fn(&Leaves<'_>) -> bool) -> bool {
    match release(leaves) {
        Some(release) if !leaves.has(AT_MOST) => release < first,
        known => known.is_some_and(|most| most < first) || has(leaves) || behind::is_of_older(leaves),
    }
}

/// What tells an older transformers and not TRL's release: an argument, or packages and calls of a program.
pub(super) fn of_four(leaves: &Leaves<'_>) -> Option<String> {
    let key = behind::sign(leaves).filter(|key| *key != behind::TRANSFORMERS);
    key.or_else(|| leaves.has(RELEASE).then_some("beta")).map(str::to_owned)
}

/// Whether there is an argument that no release of TRL since 0.29 has.
pub(super) fn is_of_older(leaves: &Leaves<'_>) -> bool {
    OF_OLDER.iter().chain(&OF_OLDER_ROLLOUTS).any(|key| leaves.has(key))
}

/// Whether a program around unsloth has an argument that only older releases, or those of transformers 4, have.
/// `max_seq_length` does not count, as it is also unsloth's name for the model's length.
pub(super) fn is_older(leaves: &Leaves<'_>) -> bool {
    behind::is_of_older(leaves) || OF_OLDER.iter().any(|key| *key != "max_seq_length" && leaves.has(key))
}
