//! Evaluation with a loss that only makes logits in tiles (TRL 1.15 and later): its peak is within the last layer's
//! MLP.

use super::gathered::Gathered;
use super::term::Term;
use super::unit::Counts;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols};
use shardscope_units::{Bytes, Count, Quantity};

const MODEL: &str = "transformers/models/llama/modeling_llama.py:LlamaModel.forward, LlamaMLP.forward";
const BATCH: &str = "sequences of an evaluation batch";

/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static STREAMS: Formula = Formula::new(
    "4·be·s·h·B",
    "Embeddings, the last layer's input, its residual stream and the normalized stream, of an evaluation batch of be sequences.",
    MODEL,
)
.letters(&[("be", BATCH)]);
static GATES: Formula =
    Formula::new("be·s·(1 + g)·f·Bc", "Gate, up and their product in the last layer's MLP.", MODEL)
        .letters(&[("be", BATCH)]);
static POSITIONS: Formula =
    Formula::new("s·(2·rot·B + 8)", "RoPE cosines and sines, and their position ids, int64.", MODEL);
static CAST: Formula = Formula::new(
    "Bc·W",
    "Copies in 16 bits of W elements of weights, which autocast holds until the pass is over; the last layer's last is not cast yet.",
    "aten/src/ATen/autocast_mode.cpp:cached_cast",
)
.letters(&[("W", "elements of weights")]);

/// What a batch of `batch` sequences holds. Matches recorded runs (`tests/data/activations/evaluation_in_tiles.tsv`).
pub(super) fn evaluation(x: &Symbols<'_>, counts: &Counts, batch: u64, gathered: &Gathered) -> Vec<Term> {
    let given = [("be", Count::new(batch).number())];
    let term = |name, shape: &[u64], width: u64, formula| {
        Term::new(name, Count::of_shape(shape).bytes(width), formula).given(&given).passing()
    };
    let mut terms = vec![
        term("evaluation's hidden states", &[4, batch, x.s, x.h], x.width, &STREAMS),
        term("evaluation's MLP", &[1 + x.gate, batch, x.s, x.f], x.compute_width, &GATES),
    ];
    if x.compute_width < x.width {
        // Not counted: the output layer's weight, which is cast a tile at a time, and that of the last product, cast
        // after this point.
        let heads = SectionKind::count(counts, SectionKind::projects_vocabulary);
        let trains = if x.tied() { x.recipe().tuning.embedding } else { x.recipe().tuning.head };
        let head = if trains { Count::of_shape(&[x.v, x.h]) * heads } else { Count::ZERO };
        let later = head.get() + if x.trains { x.h * x.f } else { 0 };
        let weights = Count::new(cast(x, counts).get().saturating_sub(later));
        let given = [("W", weights.number())];
        let copies: Bytes = weights.bytes(x.compute_width);
        terms.push(Term::new("weights in 16 bits", copies, &CAST).given(&given).passing());
    }
    let places = Bytes::new(x.s * (2 * x.rotated * x.width + INDEX));
    terms.push(Term::new("rotation", places, &POSITIONS).passing());
    terms.extend_from_slice(gathered.in_forward());
    terms
}

/// Elements of the trainable linear weights, which autocast casts once per pass. It does not cache copies of frozen
/// ones.
pub(super) fn cast(x: &Symbols<'_>, counts: &Counts) -> Count {
    let tuning = &x.recipe().tuning;
    let mut elements = Count::ZERO;
    for (kind, &times) in SectionKind::ALL.into_iter().zip(counts) {
        if times == 0 {
            continue;
        }
        let linear = kind.weights(x).filter(|weight| weight.linear && weight.role.trains());
        elements += linear.map(|weight| Count::of_shape(&weight.local)).sum::<Count>() * times;
        if kind.projects_vocabulary() && (if x.tied() { tuning.embedding } else { tuning.head }) {
            elements += Count::of_shape(&[x.v, x.h]);
        }
    }
    elements
}
