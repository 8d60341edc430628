//! Bytes copied to the host and back: saved tensors kept there (`torch.autograd.graph.save_on_cpu`), and those of
//! offloaded modules.

use super::kept::{kept_by, layers_kept, run_input};
use super::offloaded::{Group, Groups, groups};
use shardscope_operators::{SectionKind, Symbols, section_counts};
use shardscope_plan::{Chunk, LossKind, Plan};
use shardscope_units::{Bytes, Count};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

/// Bytes that one micro-batch of `plan` sends to the host in forward, and gets back in backward, over all chunks of a
/// rank's stage; zero if saved tensors stay on the device. A tensor is sent each time it is saved (a CPU run of torch
/// 2.15, `tests/suite/saved_on_host.rs`).
#[must_use]
pub fn sent_to_host(plan: &Plan) -> Bytes {
    let x = Symbols::new(plan);
    plan.layout().model_chunks().map(|chunk| sent_by(&x, chunk)).sum()
}

/// Bytes that one micro-batch sends to the host while `chunk` runs forward, and gets back in its backward, for
/// offloaded modules (`--fine-grained-activation-offloading`). Every copy counts separately.
#[must_use]
pub fn sent_by_modules(plan: &Plan, chunk: &Chunk) -> Bytes {
    let x = Symbols::new(plan);
    if x.recipe().offload.modules.is_empty() {
        return Bytes::ZERO;
    }
    let counts = section_counts(&x, chunk).into_iter();
    let of_kind = |(kind, times): (SectionKind, u64)| -> Vec<Group> {
        if times > 0 { groups(&x, kind, &kind.operators(&x)) } else { Vec::new() }
    };
    let known: Vec<Vec<Group>> = SectionKind::ALL.into_iter().zip(counts).map(of_kind).collect();
    Groups::new(&x, chunk, &|kind| &known[kind.index()]).travels()
}

/// Bytes that one chunk sends if all saved tensors, or all layer inputs, are kept on the host.
fn sent_by(x: &Symbols<'_>, chunk: &Chunk) -> Bytes {
    if x.recipe().offload.every_input {
        return run_input(x).bytes * layers_kept(x, chunk).runs;
    }
    if !x.recipe().offload.saved_tensors {
        return Bytes::ZERO;
    }
    let counts = section_counts(x, chunk);
    let mut sent = run_input(x).bytes * layers_kept(x, chunk).runs;
    for (kind, times) in SectionKind::ALL.into_iter().zip(counts) {
        if times > 0 && kind.layer().is_none() {
            sent += kept_by(x, &kind.kept_operators(x)) * times;
        }
        if times > 0 && kind.projects_vocabulary() {
            sent += twice(x);
            // For a single sequence, the labels are a view of a tensor with one more element, which stays.
            sent = sent.less(if x.b == 1 { Bytes::new(INDEX) } else { Bytes::ZERO });
        }
    }
    sent
}

/// What the end of the model saves a second time, including parameters: the norm's fp32 input and statistic, the
/// log-softmax (saved once by itself and once by the loss), the weights of norm and output layer.
fn twice(x: &Symbols<'_>) -> Bytes {
    // A tiled loss has no log-softmax, and prime-rl leaves parameters in place (`prime_rl/utils/act_offloading.py`).
    if matches!(x.recipe().loss, LossKind::Tiled(_)) {
        return (Count::of_shape(&[x.n, x.h]) + Count::new(x.n)).bytes(FLOAT);
    }
    let floats = Count::of_shape(&[x.n, x.h]) + Count::new(x.n) + Count::of_shape(&[x.n, x.v]);
    floats.bytes(FLOAT) + (Count::of_shape(&[x.v, x.h]) + Count::new(x.h)).bytes(x.width)
}
