//! Preference losses under unsloth, which compute log-probabilities from the last hidden states, so that the model
//! has no logits (`unsloth_zoo/fused_losses/fused_linear.py` of 2026.10.9, put into TRL's trainers by
//! `unsloth/models/rl_replacements.py`; recorded by tests/record/unsloth_preferences.py). With a frozen output layer,
//! forward also computes the gradient of its input. Every token but the last of a sequence is assumed to belong to
//! the completion.

use super::tape::Tape;
use crate::Symbols;
use shardscope_explain::Formula;
use shardscope_plan::PreferenceLogits;

const KERNEL: &str = "unsloth_zoo/fused_losses/fused_linear.py:_logprobs_impl";
const SAVED: &str = "unsloth_zoo/fused_losses/fused_linear.py:_lp_setup";
const OLD: &str = "trl/trainer/dpo_trainer.py:DPOTrainer.concatenated_forward, dpo_loss of 0.22";
const NEW: &str = "trl/trainer/dpo_trainer.py:DPOTrainer._compute_loss";
const HEAD: &str = "trl/trainer/utils.py:add_fused_lm_head of 1.15";
const CHOSEN: &str = "unsloth/models/rl_replacements.py:_unsloth_pref_chunked_forward";
const ODDS_OF: &str = "trl/experimental/orpo/orpo_trainer.py:log1mexp, ORPOTrainer.odds_ratio_loss";

/// Bytes of an fp32 number, of a torch index, and of a torch bool.
const FLOAT: u64 = 4;
const INDEX: u64 = 8;
const BYTE: u64 = 1;

static GRADIENT: Formula = Formula::new(
    "b·(s - 1)·h·Bs",
    "Gradient of log-probabilities for last hidden states, fp32 where these are in fp16.",
    KERNEL,
);
static GRADIENT_OF_ALL: Formula = Formula::new(
    "n·h·Bs",
    "Gradient of all tokens' log-probabilities for their last hidden states, fp32 where these are in fp16.",
    KERNEL,
);
static MASK: Formula = Formula::new("b·(s - 1)", "Which tokens are of a completion, one byte each.", NEW);
static MASK_OF_ALL: Formula = Formula::new("n", "Which tokens are of a completion, one byte each.", OLD);
static MARGINS: Formula = Formula::new("4·b", "Margin of each pair and its sigmoid's buffer, fp32.", NEW);
static BOTH_MARGINS: Formula =
    Formula::new("8·b", "Margins of each pair and buffers of both sigmoids, fp32.", OLD);
static LABELLED: Formula =
    Formula::new("b·(s - 1)·h·B", "Last hidden states of tokens that have a label.", HEAD);
static LABELS: Formula =
    Formula::new("16·b·(s - 1)", "Labels of these tokens and their indices, int64.", SAVED);
static SUMS: Formula = Formula::new(
    "12·b·(s - 1)",
    "Each token's log-sum-exp, entropy and log-probability, fp32, for the case that the entropy gets a gradient.",
    SAVED,
);
static COUNT: Formula = Formula::new("8", "Tokens of completions, int64.", NEW);
static WEIGHTS: Formula = Formula::new("4·b·(s - 1)", "Which tokens are of a completion, fp32.", CHOSEN);
static COUNTS: Formula = Formula::new("4·b", "Tokens of each completion, fp32.", CHOSEN);
static CHOSEN_WEIGHTS: Formula =
    Formula::new("2·b·(s - 1)", "Which tokens of chosen samples count in their cross entropy, fp32.", CHOSEN);
static CHOSEN_COUNT: Formula = Formula::new("4", "How many these are, fp32.", CHOSEN);
static ODDS: Formula = Formula::new(
    "21·b",
    "Of each sample ten numbers in fp32 for each pair's odds, and which branch of their logarithm was taken.",
    ODDS_OF,
);

/// Whether all tokens' states are scored.
pub(super) fn of_all(x: &Symbols<'_>) -> bool {
    x.recipe().transformers.preference_logits == PreferenceLogits::AllStates
}

/// What they save. The output layer is frozen and saves nothing itself.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (behind, width) = ([x.b, x.s.saturating_sub(1)], x.sampled_width());
    let name = "gradient of log-probabilities";
    if of_all(x) {
        tape.keep(true, name, &[x.n, x.h], width, &GRADIENT_OF_ALL);
        tape.keep(true, "completion mask", &[x.n], BYTE, &MASK_OF_ALL);
        return tape.keep(true, "margins", &[x.b], 2 * FLOAT, &BOTH_MARGINS);
    }
    let wide = [behind[0], behind[1], x.h];
    tape.keep(true, name, &wide, width, &GRADIENT);
    if x.recipe().transformers.preference_logits == PreferenceLogits::StatesOdds {
        tape.keep(true, "completion weights", &behind, FLOAT, &WEIGHTS);
        tape.keep(true, "tokens of each completion", &[x.b], FLOAT, &COUNTS);
        tape.keep(true, "weights of chosen samples", &behind, FLOAT / 2, &CHOSEN_WEIGHTS);
        tape.keep(true, "tokens of chosen samples", &[1], FLOAT, &CHOSEN_COUNT);
        return tape.keep(true, "odds", &[x.b], 21, &ODDS);
    }
    tape.keep(true, "completion mask", &behind, BYTE, &MASK);
    tape.keep(true, "margins", &[x.b], FLOAT, &MARGINS);
    if x.recipe().transformers.preference_logits == PreferenceLogits::LabelledStates {
        tape.keep(true, "lm_head input", &wide, x.width, &LABELLED);
        tape.keep(true, "labels", &behind, 2 * INDEX, &LABELS);
        tape.keep(true, "sums of tokens", &behind, 3 * FLOAT, &SUMS);
        tape.keep(true, "count of tokens with a label", &[1], INDEX, &COUNT);
    }
}
