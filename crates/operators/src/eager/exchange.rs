//! Which plans have experts behind a fused exchange, and the exchange's buffer.

use crate::Symbols;
use shardscope_units::Bytes;

/// Name of the tensor that router and experts read.
pub(super) const NORMED: &str = "router input";

/// Whether experts of the plan run this way.
#[must_use]
pub fn dispatches(x: &Symbols<'_>) -> bool {
    x.recipe().software.semantics().modules.dispatches_experts && x.model().experts.is_some()
}

/// DeepEP's buffer within a node, from which each rank's peers read (`csrc/legacy/config.hpp:get_nvl_buffer_size_hint`
/// with the recommended configurations of 2 to 8 ranks, `deep_ep/buffers/legacy.py`). 0 without an exchange.
#[must_use]
pub fn exchange_buffer(x: &Symbols<'_>) -> Bytes {
    /// Multiprocessors that exchange (`dispatcher_num_sms`); two of them make a channel.
    const CHANNELS: u64 = 20 / 2;
    /// Tokens that a channel receives from one peer at a time.
    const TOKENS: u64 = 256;
    /// For each token: its source (8), and room for 128 indices of experts (int64), probabilities and scales (fp32).
    const BESIDE: u64 = 8 + 128 * (8 + 4 + 4);
    /// Prefix sums and heads of each channel and peer, int32.
    const HEADS: u64 = 5 * 4;
    /// `LEGACY_NUM_WORKSPACE_BYTES` of `csrc/kernels/legacy/compiled.cuh`.
    const WORKSPACE: Bytes = Bytes::mib(32);
    let ranks = x.plan.layout().expert;
    if !dispatches(x) || ranks <= 1 {
        return Bytes::ZERO;
    }
    let token = x.h * x.width.max(2) + BESIDE;
    Bytes::new((CHANNELS * ranks * (HEADS + TOKENS * token)).next_multiple_of(128)) + WORKSPACE
}
