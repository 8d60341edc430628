//! The output layer of unsloth's GRPO with the log-probabilities of sampled tokens
//! (`unsloth_zoo/fused_losses/fused_linear.py` of 2026.10.9, recorded by tests/record/unsloth_grpo.py): with a frozen
//! output layer, forward also computes the gradient of its input, and saves only that. A micro-batch is one row of
//! its sequences without padding.

use super::tape::Tape;
use shardscope_explain::Formula;

const KERNEL: &str = "unsloth_zoo/fused_losses/fused_linear.py:_logprobs_impl";
const PACKED: &str = "unsloth_zoo/rl_replacements.py:grpo_accumulated_loss";

/// Bytes of a torch bool.
const BYTE: u64 = 1;

static GRADIENT: Formula = Formula::new(
    "b·sampled·h·Bs",
    "Gradient of the sampled tokens' log-probabilities for their last hidden states, fp32 where these are in fp16.",
    KERNEL,
);
static SAMPLED: Formula = Formula::new("n - 1", "Which tokens were sampled, one byte each.", PACKED);

/// What it saves. The output layer is frozen and saves nothing itself.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let wide = [x.b, x.sampled_tokens(), x.h];
    tape.keep(true, "gradient of sampled log-probabilities", &wide, x.sampled_width(), &GRADIENT);
    tape.keep(true, "mask of sampled tokens", &[x.n.saturating_sub(1)], BYTE, &SAMPLED);
}
