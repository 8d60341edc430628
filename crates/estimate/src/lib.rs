//! What a plan needs and does: parameters, memory, FLOPs, traffic, time. Each estimate folds over the anatomy's
//! operators and never matches on layer kinds; each takes a `&Plan` and cannot fail.

pub mod collective;
pub mod compute;
mod constant;
pub mod constants;
mod fault;
mod flops;
mod memory;
mod parameters;
pub mod time;
pub mod traffic;
mod utilisation;

pub use constant::Constant;
pub use fault::{Fault, Law, fault, step_fault, time_fault};
pub use flops::{Convention, FlopCounts, flops};
pub use memory::{
    ChunkMemory, EngineMemory, KnownUnits, LayerNode, Load, Memory, Needs, PEAK_ALLOCATED, Phase, PhaseKind,
    RankMemory, RlMemory, SavedActivations, Totals, Verdict, Worst, cached_token, device_peak,
    device_peak_of, doubts as memory_doubts, kept_by_chunk, layers, memory, memory_totals,
    memory_totals_knowing, saved_activations, sent_by_modules, sent_to_host,
};
pub use parameters::{AccountCounts, Parameters, RankParameters, parameters};
pub use utilisation::{Remark, Sizes, Utilisation, utilisation};
