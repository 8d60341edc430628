//! Log-probabilities under TRL's GRPO and RLOO and ms-swift's GRPO, whose output layer makes logits of the positions that
//! sample the responses and of the last one alone (`logits_to_keep`; recorded by tests/record/trl_grpo.py).

use super::linear::{CUT_OUTPUT_LAYER, Input, OUTPUT_LAYER};
use super::norm::caps_last;
use super::tape::{Step, Tape};
use shardscope_explain::Formula;

const KEPT: &str =
    "trl/trainer/grpo_trainer.py:GRPOTrainer._get_per_token_logps_and_entropies, logits_to_keep";
const PICKED: &str = "trl/trainer/utils.py:selective_log_softmax";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static CAP: Formula = Formula::new("b·(sampled + 1)·V·Bc", "The logits' tanh.", KEPT);
static LOGITS: Formula = Formula::new(
    "4·b·(sampled + 1)·V",
    "The logits of the responses over the temperature, from which the sampled tokens' are picked, fp32.",
    KEPT,
);
static SOFTMAX: Formula =
    Formula::new("b·sampled·V·Bc", "Log-softmax of every sequence's response, in the logits' dtype.", PICKED);
static SUM: Formula = Formula::new("4·b·sampled", "Log-sum-exp of each sampled token, fp32.", PICKED);
static TOKENS: Formula =
    Formula::new("8·n", "The tokens, of which the sampled ones are a view, int64.", PICKED);

/// What output layer and log-probabilities keep. The input of the former is a view of the last norm's output for one
/// sequence, and for several a copy of its rows.
pub(super) fn kept(tape: &mut Tape<'_, '_>, trains: bool) {
    let x = tape.x;
    let input = Input { shared: None, needed: true, cast: false };
    tape.step = Step::First;
    let is_view = x.b == 1 && !x.casts_weights();
    let linear = if is_view { &OUTPUT_LAYER } else { &CUT_OUTPUT_LAYER };
    linear.run_as(tape, input, [x.h, x.v], trains);
    tape.step = Step::Core;
    let (sampled, wide) = (x.sampled_tokens(), [x.logit_rows(), x.v]);
    let capped = x.model().arrangement.final_softcap && !caps_last(x);
    tape.keep(capped, "capped logits", &wide, x.compute_width, &CAP);
    if x.logits_width() == FLOAT {
        tape.keep(true, "fp32 logits", &wide, FLOAT, &LOGITS);
        tape.keep(true, "log of the softmax's sum", &[x.b, sampled], FLOAT, &SUM);
    } else {
        tape.keep(true, "log-softmax", &[x.b, sampled, x.v], x.compute_width, &SOFTMAX);
    }
    tape.keep(true, "sampled tokens", &[x.n], INDEX, &TOKENS);
}
