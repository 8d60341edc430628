//! Arithmetic of the output layer and the loss.

use crate::shared::{kernel, row_sums};
use crate::work::{Addressed, Kernel, Within};
use crate::{Symbols, Work};
use shardscope_plan::LossKind;
use shardscope_units::Bytes;

pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
    if let Some(labels) = x.labels() {
        return vec![Work::plain_linear("score", [x.n, labels, x.h], [x.full_tokens(), labels, x.h])];
    }
    let full = x.model().padded_vocab_size;
    if x.recipe().tuning.objective.has_value_head() {
        // The logits are cast to fp32, and nothing reads them.
        let cast = Bytes::new(x.n * x.v * (x.compute_width + 4));
        return vec![
            Work::forward_linear("output_layer", [x.n, x.v, x.h], [x.full_tokens(), full, x.h]),
            kernel("logits", [cast, Bytes::ZERO], [1, 0]),
            Work::plain_linear("v_head", [x.n, 1, x.h], [x.full_tokens(), 1, x.h]),
        ];
    }
    let (bytes, launches) = loss(x);
    if x.gathers_fp32_logits() {
        return of_gathered_fp32(x);
    }
    let gathers = x.t > 1 && x.recipe().software.semantics().gathers_logits;
    let words = if gathers { x.t * x.v } else { x.v };
    let (rows, all) = (x.logit_rows(), if x.cuts_logits() { x.logit_rows() } else { x.full_tokens() });
    let mut projection = Work::plain_linear("output_layer", [rows, x.v, x.h], [all, full, x.h]);
    projection.compute_again(x.recipe().loss.repeats_projection());
    let mut work = vec![
        projection,
        Work::Kernel(Kernel {
            sums_rows: true,
            addressed: wider(x, words),
            within: handed_on(x),
            ..Kernel::new("cross_entropy", bytes.map(|each| Bytes::new(each * rows * words)), launches)
        }),
    ];
    if gathers {
        // What ranks have sent is concatenated; in backward each copies its own columns
        // (`tp_comms.py:GatherFromModelParallelRegion`).
        work.push(kernel("logits", [x.bytes(2 * x.n * words), x.bytes(2 * x.n * x.v)], [1, 1]));
    }
    work
}

/// The logits' cast to fp32 for torch's loss, which is not vectorized, and that of the model's outputs that accelerate
/// makes once the loss is there.
fn wider(x: &Symbols<'_>, words: u64) -> Addressed {
    let cast = x.recipe().loss == LossKind::Torch && x.width < 4;
    if !cast || !x.in_pieces() {
        return Addressed::default();
    }
    let logits = x.logit_rows() * words;
    let again = handed_on(x).launches[0];
    Addressed { elements: [logits * (1 + again), 0], bytes: [logits * (x.width + 4), 0] }
}

/// The second cast's launch.
fn handed_on(x: &Symbols<'_>) -> Within {
    let cast = x.recipe().loss == LossKind::Torch && x.in_pieces() && x.logits_width() > x.compute_width;
    Within { launches: [u64::from(cast), 0], bytes: [0, 0] }
}

/// A rank casts its own logits to fp32, joins what it gathered and takes the log-softmax of all; backward it copies the gradients of
/// its own words, and casts them (`nemo_automodel/components/loss/masked_ce.py`).
fn of_gathered_fp32(x: &Symbols<'_>) -> Vec<Work> {
    let (own, all) = (x.n * x.v, x.n * x.t * x.v);
    let forward = own * (x.width + 4) + all * (8 + 8 + 4);
    let backward = all * (4 + 12) + own * (8 + 4 + x.width);
    vec![
        Work::plain_linear(
            "output_layer",
            [x.n, x.v, x.h],
            [x.full_tokens(), x.model().padded_vocab_size, x.h],
        ),
        row_sums("cross_entropy", [forward, backward].map(Bytes::new), [4, 5]),
    ]
}

/// Bytes moved per logit by a log-softmax in fp32 over ranks: greatest, subtraction, exponential, sum, subtraction.
const LOG_SOFTMAX: u64 = 4 + 8 + 8 + 4 + 8;

/// Bytes moved per logit and launches, forward and backward (`tensor_parallel/cross_entropy.py`).
fn loss(x: &Symbols<'_>) -> ([u64; 2], [u64; 2]) {
    let w = x.width;
    match x.recipe().loss {
        // Cast to fp32, maximum, clone, subtraction, exponential, sum, division; backward product and cast.
        LossKind::Legacy => ([w + 4 + 4 + 8 + 8 + 8 + 4 + 8, 8 + 4 + w], [8, 4]),
        LossKind::Unfused => ([w + 4 + 4 + 8 + 8 + 4 + 8, 8 + 4 + w], [7, 4]),
        // Cast to fp32, log-softmax, pick; backward fills, then two reads and a write, and a cast.
        LossKind::Torch | LossKind::ChunkedLogits | LossKind::ChunkedLinear | LossKind::ChunkedRows => {
            ([w + 4 + 8 + 4, 4 + 12 + 4 + w], [3, 4])
        }
        // Log-softmax, pick; backward fills, then two reads and a write.
        LossKind::TorchNarrow => ([2 * w, 4 * w], [2, 3]),
        // One pass over 16-bit logits each way, with the softmax computed in registers.
        LossKind::Compiled => ([2 * w, 3 * w], [2, 1]),
        // A chunk of logits at a time: as many bytes in total, and one launch fewer than torch's.
        LossKind::FusedLinear => ([3 * w, w], [2, 1]),
        // Cast, product with the temperature, maximum, subtraction, exponential, its sum, product and its sum;
        // backward casts, scales, subtracts, exponentiates, multiplies twice, casts and reads.
        LossKind::Tiled(_) => {
            let tiles = x.log_prob_chunks() * x.v.div_ceil(x.tile_words().max(1));
            (
                [2 * w + 4 + 8 + 4 + 8 + 8 + 4 + 12 + 4, 2 * w + 4 + 8 + 8 + 8 + 8 + 8 + 4 + 2 * w],
                [8 * tiles, 8 * tiles],
            )
        }
        // Each tile is read once; backward, which recomputes it, reads and overwrites it.
        LossKind::FusedTiles => {
            let tiles = x.log_prob_chunks() * x.v.div_ceil(x.tile_words().max(1));
            ([w, 2 * w], [tiles, tiles])
        }
        // Division by the temperature, cast, softmax, its logarithm and pick, maximum, difference, exponential and its
        // sum, a product and its sum; backward divides, casts, takes the softmax, fills, subtracts, multiplies, adds,
        // casts and divides.
        LossKind::PolicyRows => {
            let chunks = x.log_prob_chunks();
            (
                [
                    2 * w + w + 4 + 8 + 8 + 4 + 8 + 8 + 4 + 12 + 4,
                    2 * w + w + 4 + 8 + 4 + 12 + 8 + 8 + 4 + w + 2 * w,
                ],
                [11 * chunks, 9 * chunks],
            )
        }
        // The logits stay in registers; backward writes their gradients, of a stretch of words at a time.
        LossKind::PolicyKernel => ([0, w], [2, x.v.div_ceil(x.tile_words().max(1))]),
        // Online softmax: one read of the logits; backward reads them again and writes their gradient.
        LossKind::FusedLogits | LossKind::TokenKernel => ([w, 2 * w], [1, 1]),
        // And a division by the temperature each way.
        LossKind::InPlaceLogits => ([2 * w + w, 2 * w + 2 * w], [2, 2]),
        // The same passes, those between the collectives compiled into one each.
        LossKind::NativeFused => ([w + 4 + 4 + 8 + 4 + 4, 4 + w], [4, 2]),
        // Online softmax: two reads and one write of the logits; backward scales in place.
        LossKind::TransformerEngine => ([3 * w, 2 * w], [2, 1]),
        // Cast, maximum, subtraction, exponential, its sum, subtraction, softmax; backward's copy, product and cast.
        LossKind::Distributed | LossKind::DistributedCopy => {
            ([w + 4 + LOG_SOFTMAX + 8, 8 + 8 + 4 + w], [7, 4])
        }
        // Both passes cast each chunk and compute its log-softmax. NeMo-RL's backward marks the sampled tokens by a
        // one-hot matrix of int64 and its product with a mask, casts that to fp32, subtracts, scales and copies;
        // SkyRL's scales the softmax.
        LossKind::DistributedChunks(_) => {
            let again = w + 4 + LOG_SOFTMAX;
            (
                [again, again + 8 + 8 + 16 + 12 + 12 + 8 + 4 + w],
                [6 * x.log_prob_chunks(), 13 * x.log_prob_chunks()],
            )
        }
        LossKind::DistributedWideChunks(_) => {
            let chunks = x.log_prob_chunks();
            ([w + 4 + LOG_SOFTMAX, LOG_SOFTMAX + 8 + 8 + 8 + 8 + 4 + w], [5 * chunks, 9 * chunks])
        }
    }
}
