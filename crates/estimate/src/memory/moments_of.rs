//! What each optimizer holds for a parameter beside the parameter itself.

use super::state::Of;
use shardscope_plan::{NumberFormat, Optimizer, OptimizerKind, StateFormat};

/// Elements of a block of 8-bit states, which has an fp32 constant (`bitsandbytes/optim/optimizer.py`).
const EIGHT_BIT_BLOCK: u64 = 256;
/// The same of 4-bit states (`torchao/optim/subclass_4bit.py`).
const FOUR_BIT_BLOCK: u64 = 128;
/// Bytes of a block's constant, and of an fp32 moment.
const CONSTANT: u64 = 4;

/// A state: its name, bytes of an element, and of which parameters.
pub(super) type OfOptimizer = (&'static str, u64, Of);

/// The states of `optimizer` for the parameters `of`, with moments of `widths` bytes where they are plain numbers. `wide_words`
/// where the trainer asks bitsandbytes for fp32 states of embeddings.
pub(super) fn states(optimizer: Optimizer, widths: [u64; 2], of: Of, wide_words: bool) -> Vec<OfOptimizer> {
    let [first, second] = widths;
    let plain_of = of;
    let of = if of == Of::TrainedPart { Of::Trained } else { of };
    match optimizer.states {
        StateFormat::Plain => match optimizer.kind {
            OptimizerKind::Muon => plain(optimizer.kind, [first, second], plain_of),
            kind => plain(kind, [first, second], of),
        },
        // `bitsandbytes/optim/optimizer.py:Optimizer2State.init_state`.
        StateFormat::Single => plain(optimizer.kind, [CONSTANT; 2], of),
        StateFormat::EightBit if wide_words && of == Of::Trained => {
            let mut out = in_blocks(optimizer.kind, Of::Others, Of::OtherBlocks(EIGHT_BIT_BLOCK));
            let moments = if optimizer.kind == OptimizerKind::Adam { 2 } else { 1 };
            out.push(("moments of embeddings in fp32", moments * CONSTANT, Of::Words));
            out
        }
        StateFormat::EightBit | StateFormat::Float8 => {
            in_blocks(optimizer.kind, of, Of::Blocks(EIGHT_BIT_BLOCK))
        }
        // Two moments of half a byte each.
        StateFormat::FourBit => vec![
            ("4-bit moments", 1, of),
            ("constants of 4-bit blocks", 2 * CONSTANT, Of::Blocks(FOUR_BIT_BLOCK)),
        ],
    }
}

fn plain(kind: OptimizerKind, [first, second]: [u64; 2], of: Of) -> Vec<OfOptimizer> {
    match kind {
        OptimizerKind::Adam => vec![("first moment", first, of), ("second moment", second, of)],
        OptimizerKind::SgdMomentum | OptimizerKind::Lion => vec![("momentum", first, of)],
        OptimizerKind::SumOfSquares => vec![("sum of squares", second, of)],
        OptimizerKind::AdEmaMix => {
            vec![
                ("fast first moment", first, of),
                ("slow first moment", first, of),
                ("second moment", second, of),
            ]
        }
        // Adapters are matrices alone; of a model that trains in part, what is no matrix is not told apart.
        OptimizerKind::Muon if matches!(of, Of::Adapters | Of::Trains) => vec![("momentum", first, of)],
        OptimizerKind::Muon if of == Of::TrainedPart => {
            vec![("first moment", first, Of::Trained), ("second moment", second, Of::Trained)]
        }
        OptimizerKind::Muon => vec![
            ("momentum", first, Of::Linear),
            ("first moment", first, Of::Rest),
            ("second moment", second, Of::Rest),
        ],
        OptimizerKind::Adafactor => vec![("sums of squares by row and column", CONSTANT, Of::Sides)],
        // `adam_mini/adam_mini.py:Adam_mini.step`. A mean for each row at most: of queries and keys it is one for each head, of a norm
        // one for the whole of it.
        OptimizerKind::AdamMini => {
            vec![("first moment", first, of), ("mean squares of rows", second, Of::Rows)]
        }
        OptimizerKind::Soap => vec![
            ("first moment", first, of),
            ("second moment", second, of),
            ("preconditioners and their eigenvectors", 2 * CONSTANT, Of::Squares),
        ],
        OptimizerKind::Shampoo => {
            vec![("momentum", first, of), ("preconditioners and their roots", 2 * CONSTANT, Of::Squares)]
        }
        OptimizerKind::Sgd => Vec::new(),
    }
}

/// Moments of a byte each for the parameters `of`, with constants for the blocks.
fn in_blocks(kind: OptimizerKind, of: Of, blocks: Of) -> Vec<OfOptimizer> {
    let constants = |moments| ("constants of 8-bit blocks", moments * CONSTANT, blocks);
    match kind {
        OptimizerKind::Adam => vec![("first moment", 1, of), ("second moment", 1, of), constants(2)],
        _ => vec![("momentum", 1, of), constants(1)],
    }
}

/// Bytes of both moments of an element, where they are held as numbers of it.
pub(super) fn moments(optimizer: &Optimizer) -> [u64; 2] {
    if optimizer.precision_aware {
        [optimizer.exp_avg.width(), optimizer.exp_avg_sq.width()]
    } else {
        [NumberFormat::Fp32.width(); 2]
    }
}

/// Bytes of the low half of an fp32 main parameter, whose high half is the bf16 weight.
pub(super) const REMAINDER: u64 = 2;
