//! Log-probabilities of padded samples under verl and EasyR1, which cut the logits to the positions that sample the responses
//! (`verl/workers/actor/dp_actor.py:_forward_micro_batch`, recorded by tests/record/verl_padded.py).

use super::tape::Tape;
use shardscope_explain::Formula;

const CUT: &str = "verl/workers/actor/dp_actor.py:_forward_micro_batch, where samples are padded";
const CROSS: &str =
    "flash_attn/ops/triton/cross_entropy.py:CrossEntropyLoss, as verl/utils/torch_functional.py calls it";
const ENTROPY: &str = "verl/utils/torch_functional.py:entropy_from_logits under CUDA's autocast";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static LOGITS: Formula =
    Formula::new("n·V·Bc", "The logits, of which the positions of the responses are a view.", CUT);
static ROWS: Formula =
    Formula::new("b·sampled·V·Bc", "Logits of the responses' positions, copied to rows.", CUT);
static SUM: Formula = Formula::new("4·b·sampled", "Log-sum-exp of each of these positions, fp32.", CROSS);
static TOKENS: Formula = Formula::new("8·b·sampled", "The responses' tokens, int64.", CROSS);
static SOFTMAX: Formula =
    Formula::new("4·b·sampled·V", "Softmax of the responses' logits, which autocast takes in fp32.", ENTROPY);
static WIDE: Formula =
    Formula::new("4·b·sampled·V", "The same logits in fp32, of which the log-sum-exp is taken.", ENTROPY);
static SUMMED: Formula = Formula::new("4·b·sampled", "That log-sum-exp, fp32.", ENTROPY);

/// What it keeps. Of one sample the responses' rows lie one behind another, so that nothing is copied.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (rows, several, entropy) = ([x.b, x.sampled_tokens()], x.b > 1, x.entropy_in_loss());
    let wide = [rows[0], rows[1], x.v];
    tape.keep(!several || entropy, "logits", &[x.n, x.v], x.compute_width, &LOGITS);
    tape.keep(several, "logits of the responses", &wide, x.compute_width, &ROWS);
    tape.keep(true, "log of the softmax's sum", &rows, FLOAT, &SUM);
    tape.keep(true, "sampled tokens", &rows, INDEX, &TOKENS);
    tape.keep(entropy, "softmax", &wide, FLOAT, &SOFTMAX);
    tape.keep(entropy, "fp32 logits of the responses", &wide, FLOAT, &WIDE);
    tape.keep(entropy, "log-sum-exp", &rows, FLOAT, &SUMMED);
}
