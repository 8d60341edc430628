//! A loss on log-probabilities that computes logits in tiles over tokens and vocabulary, in forward and again in
//! backward (`prime_rl/trainer/models/layers/lm_head.py:_SequenceChunkedLogProbEntropyFn`, recorded by
//! tests/record/prime_rl_loss.py).

use super::tape::Tape;
use crate::{Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_units::Bytes;

const TILES: &str = "prime_rl/trainer/models/layers/lm_head.py:_SequenceChunkedLogProbEntropyFn";

/// Bytes of an fp32 number, and of a torch index.
const FLOAT: u64 = 4;
const INDEX: u64 = 8;
/// Bytes per logit of a tile at the peak of a pass, including the logits of the previous tile.
const FORWARD: u64 = 14;
const BACKWARD: u64 = 22;

static HIDDEN: Formula = Formula::new("n·h·B", "Input of the output layer.", TILES);
static LABELS: Formula = Formula::new("8·n", "The tokens whose log-probabilities are taken, int64.", TILES);
static SUMS: Formula = Formula::new("8·n", "Each token's temperature and log-sum-exp, fp32.", TILES);
static FORTH: Formula = Formula::new(
    "14·rows·words",
    "A tile's logits in 16 bits and in fp32, their exponentials and products with these.",
    TILES,
);
static BACK: Formula = Formula::new(
    "22·rows·words",
    "A tile's logits in 16 bits and in fp32, their softmax and gradient, and those of the tile before.",
    TILES,
);
static INPUT: Formula = Formula::new("n·h·B", "Gradient of the output layer's input.", TILES);
static WEIGHT: Formula = Formula::new("V·h·B", "Gradient of the output layer's weight.", TILES);

/// What it saves.
pub(super) fn kept(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    tape.keep(true, "output layer's input", &[x.n, x.h], x.width, &HIDDEN);
    tape.keep(true, "tokens of the loss", &[x.n], INDEX, &LABELS);
    tape.keep(true, "temperatures and sums", &[2, x.n], FLOAT, &SUMS);
}

/// What is held in addition in both passes.
pub(super) fn transients(x: &Symbols<'_>, trains: bool) -> Vec<Transient> {
    let tile = |bytes, formula| {
        Saved::new("a tile of the logits", &[x.chunk_rows(), x.tile_words()], bytes, formula)
    };
    let mut backward =
        vec![tile(BACKWARD, &BACK), Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT)];
    backward
        .extend(trains.then(|| Saved::new("output layer's weight gradient", &[x.v, x.h], x.width, &WEIGHT)));
    vec![
        Transient::forward("loss", vec![tile(FORWARD, &FORTH)]),
        Transient::new("backward of the output layer", Bytes::ZERO, backward),
    ]
}
