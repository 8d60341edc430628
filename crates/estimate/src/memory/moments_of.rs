//! The states that each optimizer holds for a parameter.

use super::state::Of;
use shardscope_plan::{NumberFormat, Optimizer, OptimizerKind, StateFormat};

/// Elements of a block of 8-bit states, which has one fp32 constant (`bitsandbytes/optim/optimizer.py`).
const EIGHT_BIT_BLOCK: u64 = 256;
/// The same for 4-bit states (`torchao/optim/subclass_4bit.py`).
const FOUR_BIT_BLOCK: u64 = 128;
/// The same for flashoptim's groups, each with an fp16 scale (`flashoptim/optimizers.py:quantize`).
const FLASH_GROUP: u64 = 32;
const FLASH_SCALE: u64 = 2;
/// Bytes of a block's constant, and of an fp32 moment.
const CONSTANT: u64 = 4;

/// A state: its name, bytes per element, and which parameters it is for.
pub(super) type OfOptimizer = (&'static str, u64, Of);

/// The states of `optimizer` for the parameters `of`; `widths` are the bytes of each moment if stored as plain
/// numbers, which those of the parameter are where the optimizer steps it itself.
pub(super) fn states(optimizer: Optimizer, widths: [u64; 2], of: Of) -> Vec<OfOptimizer> {
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
        StateFormat::EightBit if optimizer.whole_embedding => with_embedding(optimizer.kind, of),
        StateFormat::EightBit | StateFormat::Float8 => in_blocks(optimizer.kind, 1, EIGHT_BIT_BLOCK, of),
        StateFormat::Flash { master } => {
            let mut states = vec![
                ("first moment", 1, of),
                ("second moment", 1, of),
                ("scales of groups of 32", 2 * FLASH_SCALE, Of::Blocks(FLASH_GROUP)),
            ];
            let completion = master.saturating_sub(first);
            if completion > 0 {
                states.push(("bits that complete the weights", completion, of));
            }
            states
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
        // Always bf16, whatever the parameter's own format (`torch_functional.py:AnyPrecisionAdamW.__init__`).
        OptimizerKind::AdamKahan => {
            let width = NumberFormat::Bf16.width();
            vec![
                ("first moment", width, of),
                ("second moment", width, of),
                ("compensation of rounding", width, of),
            ]
        }
        OptimizerKind::SgdMomentum | OptimizerKind::Lion => vec![("momentum", first, of)],
        OptimizerKind::SumOfSquares | OptimizerKind::Adagrad => vec![("sum of squares", second, of)],
        OptimizerKind::AdEmaMix => {
            vec![
                ("fast first moment", first, of),
                ("slow first moment", first, of),
                ("second moment", second, of),
            ]
        }
        // Adapters consist only of matrices; for a partially trained model, non-matrices are not distinguished.
        OptimizerKind::Muon if matches!(of, Of::Adapters | Of::Trains) => vec![("momentum", first, of)],
        OptimizerKind::Muon if of == Of::TrainedPart => {
            vec![("first moment", first, Of::Trained), ("second moment", second, Of::Trained)]
        }
        // Muon orthogonalizes matrices of linear layers; Adam updates embeddings, norms and biases.
        OptimizerKind::Muon => vec![
            ("momentum", first, Of::Linear),
            ("first moment", first, Of::Rest),
            ("second moment", second, Of::Rest),
        ],
        // A factored second moment: one sum per row and column of a matrix instead of one value per element (Shazeer
        // and Stern 2018).
        OptimizerKind::Adafactor => vec![("sums of squares by row and column", CONSTANT, Of::Sides)],
        // `adam_mini/adam_mini.py:Adam_mini.step`. At most one mean per row: one per head for queries and keys, one
        // in total for a norm.
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

fn in_blocks(kind: OptimizerKind, width: u64, block: u64, of: Of) -> Vec<OfOptimizer> {
    let constants = |moments| ("constants of 8-bit blocks", moments * CONSTANT, Of::Blocks(block));
    match kind {
        OptimizerKind::Adam => {
            vec![("first moment", width, of), ("second moment", width, of), constants(2)]
        }
        OptimizerKind::AdEmaMix => vec![
            ("fast first moment", width, of),
            ("slow first moment", width, of),
            ("second moment", width, of),
            constants(3),
        ],
        OptimizerKind::SumOfSquares | OptimizerKind::Adagrad => {
            vec![("sum of squares", width, of), constants(1)]
        }
        _ => vec![("momentum", width, of), constants(1)],
    }
}

/// 8-bit states, except that those of the word embedding are fp32 (`transformers/trainer.py:create_optimizer`, which
/// overrides `optim_bits` of every `nn.Embedding`).
fn with_embedding(kind: OptimizerKind, of: Of) -> Vec<OfOptimizer> {
    let mut states = in_blocks(kind, 1, EIGHT_BIT_BLOCK, of);
    let moments = states.len() as u64 - 1;
    for (.., of) in &mut states {
        if *of == Of::Blocks(EIGHT_BIT_BLOCK) {
            *of = Of::BlocksBeside(EIGHT_BIT_BLOCK);
        }
    }
    // In addition to the one byte counted for every parameter.
    states.push(("fp32 moments of the embedding, beyond 8 bits", moments * (CONSTANT - 1), Of::Embedding));
    states
}

/// Bytes per element of both moments, if they are stored as plain numbers.
pub(super) fn moments(optimizer: &Optimizer) -> [u64; 2] {
    if optimizer.precision_aware {
        [optimizer.exp_avg.width(), optimizer.exp_avg_sq.width()]
    } else {
        [NumberFormat::Fp32.width(); 2]
    }
}

/// Bytes of the low half of an fp32 main parameter, whose high half is the bf16 weight.
pub(super) const REMAINDER: u64 = 2;
