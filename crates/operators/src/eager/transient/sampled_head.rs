//! Forward and backward of the output layer of unsloth's GRPO (`sampled_head.rs` has what it saves).

use super::super::tape::Step;
use super::shared::{FLOAT, returned};
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const KERNEL: &str = "unsloth_zoo/fused_losses/fused_linear.py:_logprobs_impl";
const TILES: &str = "unsloth_zoo/fused_losses/fused_linear.py:_tiled_layout, fused_linear_rows";
const PACKED: &str = "unsloth_zoo/rl_replacements.py:grpo_accumulated_loss";

static TILE: Formula = Formula::new("4·rows·words", "Logits of some tokens and words, fp32.", TILES);
static SUMS: Formula = Formula::new("4·rows·h", "The gradient of these tokens, added up in fp32.", KERNEL);
static HIDDEN: Formula =
    Formula::new("n·h·Bc", "The last norm's output, of which sampled tokens are taken.", PACKED);
static CHOSEN: Formula = Formula::new("b·sampled·h·Bc", "The sampled tokens' last hidden states.", PACKED);
static PART: Formula =
    Formula::new("b·sampled·h·Bc", "Gradient of the sampled tokens' last hidden states.", KERNEL);
static WHOLE: Formula =
    Formula::new("n·h·Bc", "The same, scattered back to the positions of all tokens.", PACKED);

/// What is held in addition.
pub(super) fn transients(x: &Symbols<'_>) -> Vec<Transient> {
    let (rows, sampled, width) = (x.chunk_rows(), x.sampled_tokens(), x.compute_width);
    let (wide, all) = ([x.b, sampled, x.h], [x.n, x.h]);
    let forward = vec![
        Saved::new("logits of a tile", &[rows, x.tile_words()], FLOAT, &TILE),
        Saved::new("gradient of a tile's tokens", &[rows, x.h], FLOAT, &SUMS),
        Saved::new("last hidden states", &all, width, &HIDDEN),
        Saved::new("sampled tokens' hidden states", &wide, width, &CHOSEN),
    ];
    let part = Saved::new("gradient of the sampled tokens' states", &wide, width, &PART);
    let whole = Saved::new("gradient of the input", &all, width, &WHOLE);
    vec![
        Transient::forward("loss", forward),
        Transient::new("backward of the loss", Bytes::ZERO, vec![part]),
        Transient::new(
            "backward of the output layer",
            returned(Operator::OutputLayer, x, &[Step::Core]),
            vec![part, whole],
        ),
    ]
}
