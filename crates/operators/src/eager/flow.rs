//! Which tensors of a layer require a gradient.

use crate::Symbols;
use shardscope_plan::{LinearModule, NormPlaces};

/// By tensor, whether it requires a gradient.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    /// The residual stream at the layer's input.
    pub(super) input: bool,
    /// The output of the first norm.
    pub(super) norm1: bool,
    pub(super) query: bool,
    pub(super) key: bool,
    pub(super) value: bool,
    /// The attention's output, before the projection.
    pub(super) attention: bool,
    /// The attention's output projection.
    pub(super) projected: bool,
    /// The residual stream after attention.
    pub(super) residual: bool,
    /// The output of the second norm.
    pub(super) norm2: bool,
}

impl Flow {
    /// In a layer of `x`.
    pub(super) fn new(x: &Symbols<'_>) -> Self {
        let adapted = |module| is_adapted(x, module);
        let (input, trains) = (x.input_gradient, x.trains);
        // Without a norm before them, attention and MLP read the residual stream itself.
        let behind = x.model().arrangement.norm_places == NormPlaces::Behind;
        let norm1 = input || (trains && !behind);
        let joins = x.recipe().software.semantics().modules.joins_projections;
        let fused = joins || x.model().arrangement.fused_qkv;
        let any = adapted(LinearModule::Query) || adapted(LinearModule::Key) || adapted(LinearModule::Value);
        let own = norm1 || trains;
        let query = own || if fused { any } else { adapted(LinearModule::Query) };
        let key = own || if fused { any } else { adapted(LinearModule::Key) };
        let value = own || if fused { any } else { adapted(LinearModule::Value) };
        let (query, key, value) = if x.model().latent.is_some() {
            // Keys and values come from one projection.
            let up = adapted(LinearModule::KeyValueDown) || adapted(LinearModule::KeyValueUp);
            let queries = adapted(LinearModule::QueryDown) || adapted(LinearModule::QueryUp);
            (query || queries, own || up, own || up)
        } else if x.borrows {
            // An earlier layer's, behind whatever trains there.
            (query, true, true)
        } else if x.pair == 1 {
            // Values come from the keys' projection.
            (query, key, key)
        } else {
            (query, key, value)
        };
        let attention = query || key || value;
        let projected = attention || trains || adapted(LinearModule::Output);
        let residual = input || projected;
        let norm2 =
            if x.model().arrangement.parallel_residual { norm1 } else { residual || (trains && !behind) };
        Self { input, norm1, query, key, value, attention, projected, residual, norm2 }
    }
}

/// Whether LoRA adapts `module`.
pub(super) fn is_adapted(x: &Symbols<'_>, module: LinearModule) -> bool {
    x.recipe().tuning.lora.is_some_and(|lora| lora.modules.has(module))
}
