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
const VALUE: &str = "trl/models/modeling_value_head.py:ValueHead";
const VALUED: &str = "llamafactory/train/rm/trainer.py:PairwiseTrainer.compute_loss";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
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
static VALUE_MASK: Formula =
    Formula::new("n·h", "The mask of the value head's dropout, one byte each.", VALUE);
static VALUE_CAST: Formula = Formula::new("n·h·Bc", "The value head's input, cast by autocast.", VALUE);
static VALUE_WEIGHT: Formula = Formula::new("h·Bc", "The value head's weight, cast by autocast.", VALUE);
static VALUE_INPUT: Formula = Formula::new("n·h·Ba", "The value head's input in the head's dtype.", VALUE);
static VALUES_CAST: Formula = Formula::new(
    "n·Bl",
    "The values of all tokens as the loss gets them, of which one of each sequence counts.",
    VALUED,
);
static VALUES: Formula = Formula::new(
    "n·Ba",
    "The values of all tokens in the head's dtype, of which one of each sequence counts.",
    VALUED,
);
static VALUE_TOKENS: Formula = Formula::new("8·b", "Indices of both sequences' last tokens, int64.", VALUED);
static VALUE_MARGINS: Formula =
    Formula::new("4·b", "Margin of each pair in fp32 and its sigmoid's buffer.", VALUED);
static CLASSES: Formula = Formula::new("b·labels·Bl", "Log-softmax of each sequence over the classes.", HEAD);
static CLASS_LABELS: Formula = Formula::new("8·b", "The class of each sequence, int64.", HEAD);
static CLASS_TOTAL: Formula = Formula::new("Bl", "The loss's total weight.", HEAD);

/// What a head and its loss save; false if there is none.
pub(super) fn kept(tape: &mut Tape<'_, '_>, trains: bool) -> bool {
    if tape.x.recipe().tuning.objective.has_value_head() {
        valued(tape);
    } else if let Some(labels) = tape.x.labels() {
        labelled(tape, labels, trains);
    } else {
        return false;
    }
    true
}

/// A value head beside the output layer: dropout, and one output for every token in its own dtype or under autocast. The
/// loss of both sequences is taken apart, in fp32.
fn valued(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let cast = x.recipe().autocasts();
    tape.step = Step::First;
    tape.keep(true, "value head's dropout mask", &[x.n, x.h], BYTE, &VALUE_MASK);
    if cast {
        tape.keep(true, "value head's input", &[x.n, x.h], x.compute_width, &VALUE_CAST);
        tape.keep(true, "value head's weight in 16 bits", &[x.h], x.compute_width, &VALUE_WEIGHT);
    } else {
        tape.keep(true, "value head's input", &[x.n, x.h], x.adapter_width, &VALUE_INPUT);
    }
    tape.step = Step::Core;
    if cast {
        tape.keep(true, "values of all tokens", &[x.n], x.logits_width(), &VALUES_CAST);
    } else {
        tape.keep(true, "values of all tokens", &[x.n], x.adapter_width, &VALUES);
    }
    tape.keep(true, "last tokens", &[x.b], INDEX, &VALUE_TOKENS);
    tape.keep(true, "margins", &[x.b], FLOAT, &VALUE_MARGINS);
}

/// A head in place of the output layer.
fn labelled(tape: &mut Tape<'_, '_>, labels: u64, trains: bool) {
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
