//! From what torch counts as allocated to what the device shows: the allocator's slack, the driver's context,
//! the communicators' buffers. Each is a term of its own that can be switched off.

use super::term::Term;
use crate::anatomy::Symbols;
use crate::explain::Formula;
use crate::quantity::{Bytes, Quantity};

const ALLOCATOR: &str = "c10/cuda/CUDACachingAllocator.cpp; SimuMax B200 runs: reserved over allocated";
const CONTEXT: &str = "catalog: bytes of the driver's context on the accelerator";
const NCCL: &str = "NCCL: buffers of NCCL_BUFFSIZE per channel and peer";

static SLACK: Formula =
    Formula::new("q·N", "Blocks cut or cached and not in use: a part q of what is not state.", ALLOCATOR);
static DRIVER: Formula = Formula::new("C", "The driver's context and the kernels' code.", CONTEXT);
static COMMUNICATORS: Formula = Formula::new("c·Z", "Buffers of c communicators, Z bytes each.", NCCL);

/// Part of the moving bytes that the caching allocator holds beside what is in use.
const SLACK_PART: f64 = 0.06;
/// Bytes of one communicator's buffers.
const COMMUNICATOR: Bytes = Bytes::mib(256);

/// The terms of a rank whose moving bytes (activations and temporaries) are `moving` at the peak.
pub(super) fn framework(x: &Symbols<'_>, moving: Bytes) -> Vec<Term> {
    let mut out = Vec::with_capacity(3);
    let slack = crate::quantity::Count::rounded_up(moving.number() * SLACK_PART).bytes(1);
    out.push(
        Term::new("allocator's slack", slack, &SLACK).given([("q", SLACK_PART), ("N", moving.number())]),
    );
    let context = x.plan.cluster().accelerator.context;
    out.push(Term::new("driver's context", context, &DRIVER).given([("C", context.number()), ("", 0.0)]));
    let communicators = communicators(x);
    let bytes = COMMUNICATOR * communicators;
    let count = crate::quantity::Count::new(communicators).number();
    let given = [("c", count), ("Z", COMMUNICATOR.number())];
    out.push(Term::new("communicators' buffers", bytes, &COMMUNICATORS).given(given));
    out
}

/// Groups of more than one rank that a rank takes part in.
fn communicators(x: &Symbols<'_>) -> u64 {
    let layout = x.plan.layout();
    let data = layout.data.saturating_mul(layout.context);
    [layout.tensor, layout.pipeline, data, layout.context, layout.expert]
        .iter()
        .map(|&size| u64::from(size > 1))
        .sum()
}
