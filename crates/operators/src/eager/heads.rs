//! Heads for rewards or classes in place of the output layer, which read the last token of each sequence.

use super::linear::{Input, SCORE};
use super::tape::{Step, Tape};
use shardscope_explain::Formula;
use shardscope_plan::{Objective, Taken};

const HEAD: &str = "transformers/modeling_layers.py:GenericForSequenceClassification, transformers/loss/loss_utils.py:ForSequenceClassificationLoss";
const REWARDS: &str = "trl/trainer/reward_trainer.py:RewardTrainer.compute_loss";
const GATHERED: &str = "openrlhf/models/model.py:_get_reward_model";
const UNPACKED: &str = "openrlhf/models/ring_attn_utils.py:gather_and_pad_tensor";
const PAIRS: &str = "openrlhf/models/loss.py:PairWiseLoss";
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static LAST_TOKENS: Formula =
    Formula::new("16·b", "Indices of the sequences and of their last tokens, int64.", HEAD);
static REWARD_MARGINS: Formula =
    Formula::new("b·Bl", "Margin of each pair and its sigmoid's buffer.", REWARDS);
static UNPACKED_PLACES: Formula =
    Formula::new("8·n", "Where the tokens of a pack stand in their sequences, int64.", UNPACKED);
static GATHERED_REWARDS: Formula = Formula::new(
    "n·Bl",
    "The head's outputs of all tokens, of which the last of each sequence counts.",
    GATHERED,
);
static GATHERED_TOKENS: Formula =
    Formula::new("8·b", "Indices of the sequences' last tokens, int64.", GATHERED);
static GATHERED_MARGINS: Formula =
    Formula::new("b·Bl", "Margin of each pair and its sigmoid's buffer.", PAIRS);
static CLASSES: Formula = Formula::new("b·labels·Bl", "Log-softmax of each sequence over the classes.", HEAD);
static CLASS_LABELS: Formula = Formula::new("8·b", "The class of each sequence, int64.", HEAD);
static CLASS_TOTAL: Formula = Formula::new("Bl", "The loss's total weight.", HEAD);

/// What such a head and its loss save.
pub(super) fn kept(tape: &mut Tape<'_, '_>, labels: u64, trains: bool) {
    let x = tape.x;
    tape.step = Step::First;
    SCORE.run_as(tape, Input { shared: None, needed: true, cast: false }, [x.h, labels], trains);
    tape.step = Step::Core;
    let width = x.logits_width();
    let taken = match x.recipe().tuning.objective {
        Objective::Rewards { taken } => Some(taken),
        _ => None,
    };
    if let Some(taken @ (Taken::Gathered | Taken::Unpacked)) = taken {
        tape.keep(taken == Taken::Unpacked, "places of tokens", &[x.n], INDEX, &UNPACKED_PLACES);
        tape.keep(true, "rewards of all tokens", &[x.n], width, &GATHERED_REWARDS);
        tape.keep(true, "last tokens", &[x.b], INDEX, &GATHERED_TOKENS);
        return tape.keep(true, "margins", &[x.b], width, &GATHERED_MARGINS);
    }
    tape.keep(true, "last tokens", &[x.b], 2 * INDEX, &LAST_TOKENS);
    if taken.is_some() {
        return tape.keep(true, "margins", &[x.b], width, &REWARD_MARGINS);
    }
    tape.keep(true, "log-softmax", &[x.b, labels], width, &CLASSES);
    tape.keep(true, "classes", &[x.b], INDEX, &CLASS_LABELS);
    tape.keep(true, "total weight", &[1], width, &CLASS_TOTAL);
}
