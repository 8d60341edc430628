//! What a plan holds on each rank at its peak.
//!
//! The anatomy says what each operator weighs, saves for backward, and holds while it runs. Here each kind of section
//! is computed once ([`unit`]), a rank's chunks are summed from them ([`moments`]), micro-batches in flight come from
//! the schedule ([`flight`]), states and buffers are added ([`states`], [`buffers`]), and the peak is found
//! ([`rank`]). The tree ([`tree`]) presents the same numbers with explanations.

mod allocator;
mod buffers;
mod cache;
mod compiled_step;
mod critic;
mod device;
mod doubts;
mod engine;
mod evaluation;
mod evaluation_tiles;
mod flight;
mod framework;
mod gathered;
mod host;
mod kept;
mod layers;
mod log_probs;
mod log_probs_cut;
mod moments;
mod moments_of;
mod offloaded;
mod own_rollouts;
mod own_states;
mod peak;
mod phases;
mod pieces;
mod piped;
mod rank;
mod reductions;
mod report;
mod sequence;
mod sides;
mod stage_sum;
mod state;
mod states;
mod sums;
mod term;
mod totals;
mod tree;
mod unit;
mod unsharded;
mod verdict;
mod waiting;
mod weight_update;

pub(super) use buffers::constants as workspaces;
pub use cache::cached_token;
pub use device::{device_peak, device_peak_of};
pub use doubts::doubts;
pub use engine::EngineMemory;
pub(super) use framework::constants as framework;
pub use host::{sent_by_modules, sent_to_host};
pub use layers::{LayerNode, Load, SavedActivations, layers, saved_activations};
pub(crate) use own_states::{gradient_passes, stepped_bytes};
pub use phases::{Phase, PhaseKind, RlMemory};
pub use report::{ChunkMemory, Memory, RankMemory, Worst, memory};
pub use sums::{KnownUnits, kept_by_chunk, memory_totals, memory_totals_knowing};
pub use totals::Totals;
pub use tree::PEAK_ALLOCATED;
pub use verdict::{Needs, Verdict};
