//! The facets of the operators: the one place that knows every kind.

use super::{
    Account, Message, Operator, Saved, Symbols, Transient, Weight, Work, adapters, attention, compiled,
    eager, embedding, experts, latent_attention, layer_inputs, linear, mlp, mtp, norm, output_layer,
    positions, sampled, shared, vision,
};

/// The facet `$name` of `$operator`.
macro_rules! facet {
    ($operator:ident, $name:ident, $x:ident) => {
        match $operator.usual() {
            Self::Embedding => embedding::$name($x),
            Self::VisionLayer | Self::VisionEnds | Self::Projector => vision::$name($operator, $x),
            Self::InputNorm | Self::PreMlpNorm | Self::PreExpertsNorm | Self::FinalNorm => {
                norm::$name($operator.usual(), $x)
            }
            Self::SelfAttention
            | Self::WindowedAttention
            | Self::BorrowedAttention
            | Self::BorrowedWindowedAttention => attention::$name($x),
            Self::LatentAttention => latent_attention::$name($x),
            Self::Linear(kind) => linear::$name(kind, $x),
            Self::Mlp | Self::WideMlp => mlp::$name($x),
            Self::LayerInputs => layer_inputs::all::$name($x),
            Self::LayerInput => layer_inputs::own::$name($x),
            Self::Experts => experts::$name($x),
            Self::OutputLayer => output_layer::$name($x),
            Self::MtpProjection => mtp::$name($x),
            Self::Positions => positions::$name($x),
            // Run as the operator of the decoder that has the same modules.
            Self::Encoder { .. } | Self::CrossNorm | Self::CrossAttention => Vec::new(),
        }
    };
}

impl Operator {
    /// Its weights, full and on one rank.
    #[must_use]
    pub fn weights(self, x: &Symbols<'_>) -> Vec<Weight> {
        let x = &x.of(self);
        let mut weights = facet!(self, weights, x);
        adapters::adapt(self.usual(), x, &mut weights);
        if self == Self::CrossNorm {
            // Norms of such models have no bias (`rules/encoder.rs`).
            weights.iter_mut().for_each(|weight| weight.name = "pre_cross_attention_layernorm.weight");
        }
        if x.encodes {
            weights.iter_mut().for_each(|weight| weight.account = Account::Encoder);
        }
        weights
    }

    /// Activations it saves for backward, for one micro-batch on one rank: recomputation within a layer is accounted
    /// for, whole-layer recomputation is not.
    #[must_use]
    pub fn saved(self, x: &Symbols<'_>) -> Vec<Saved> {
        let x = &x.of(self);
        let usual = self.usual();
        let other = sampled::saved(usual, x).or_else(|| compiled::saved(usual, x));
        other.or_else(|| eager::saved(usual, x)).unwrap_or_else(|| facet!(self, saved, x))
    }

    /// What its modules offload in addition to what it saves: tensors freed in forward to be recomputed, or views of
    /// saved ones.
    #[must_use]
    pub fn sent_beside(self, x: &Symbols<'_>) -> Vec<Saved> {
        match self {
            Self::LatentAttention => latent_attention::sent_beside(x),
            _ => Vec::new(),
        }
    }

    /// What its forward pass allocates in addition to what it saves, if that is large: points that only matter if
    /// little is saved.
    #[must_use]
    pub fn forward_points(self, x: &Symbols<'_>) -> Vec<Transient> {
        match self {
            Self::SelfAttention
            | Self::WindowedAttention
            | Self::BorrowedAttention
            | Self::BorrowedWindowedAttention
            | Self::LatentAttention => attention::forward_points(&x.of(self)),
            _ => Vec::new(),
        }
    }

    /// What its forward pass allocates and frees in addition to what it saves, if known: blocks that the allocator
    /// holds from then on.
    #[must_use]
    pub fn passing(self, x: &Symbols<'_>) -> Vec<Saved> {
        eager::passing(self.usual(), &x.of(self))
    }

    /// What its passes allocate beyond the saved activations, at their peaks.
    #[must_use]
    pub fn transients(self, x: &Symbols<'_>) -> Vec<Transient> {
        let x = &x.of(self);
        let points = eager::transients(self.usual(), x).unwrap_or_else(|| facet!(self, transients, x));
        compiled::bounded(self.usual(), x, points)
    }

    /// Its arithmetic for one micro-batch on one rank.
    #[must_use]
    pub fn work(self, x: &Symbols<'_>) -> Vec<Work> {
        let x = &x.of(self);
        let mut work = facet!(self, work, x);
        adapters::adapt_work(self.usual(), x, &mut work);
        shared::cast_weights(x, &mut work);
        work
    }

    /// The arithmetic before tokens are dispatched to experts: the router, and shared experts that do not run beside the exchange.
    #[must_use]
    pub fn routing(self, x: &Symbols<'_>) -> Vec<Work> {
        if self == Self::Experts { experts::routing(x) } else { Vec::new() }
    }

    /// What it sends for one micro-batch on one rank.
    #[must_use]
    pub fn messages(self, x: &Symbols<'_>) -> Vec<Message> {
        let x = &x.of(self);
        let mut messages = facet!(self, messages, x);
        messages.extend(adapters::messages(self.usual(), x));
        messages
    }
}
