//! Choices of a mixture of experts that are not shape.

use super::number::NumberFormat;

/// Mixture-of-experts choices that are not shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeRecipe {
    /// `--moe-token-dispatcher-type`.
    pub dispatcher: Dispatcher,
    /// `--moe-grouped-gemm`.
    pub grouped_gemm: bool,
    /// `--moe-expert-capacity-factor`.
    pub capacity_factor: Option<f64>,
    /// `--moe-pad-expert-input-to-capacity`.
    pub pad_to_capacity: bool,
    /// Tokens that the experts of the busiest rank receive, relative to an even share, 1 or more.
    pub hottest_rank: f64,
    /// `--moe-permute-fusion`.
    pub permute_fusion: bool,
    /// Format of the routing probabilities (`--moe-router-dtype`).
    pub router_dtype: NumberFormat,
    /// `--moe-router-load-balancing-type`.
    pub load_balancing: LoadBalancing,
    /// How transformers works out a balancing loss over the routers of all layers, if its trainer asks for one.
    pub router_loss: Option<RouterLoss>,
    /// `--moe-router-enable-expert-bias`.
    pub expert_bias: bool,
    /// `--moe-router-pre-softmax`.
    pub pre_softmax: bool,
    /// Whether a gate without weights spreads tokens evenly in place of a router (`fake_balanced_gate` of NeMo
    /// Automodel): each token's experts follow each other, and the next token's follow them.
    pub balanced_gate: bool,
}

/// `--moe-token-dispatcher-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatcher {
    /// Megatron's default.
    AllGather,
    /// Each token is sent only to the ranks of its experts.
    AllToAll,
    /// DeepEP, HybridEP and the like.
    Flex,
}

/// `--moe-router-load-balancing-type`, and whether its loss has a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancing {
    /// A loss over the tokens of a micro-batch.
    AuxiliaryLoss,
    /// A loss over the tokens of each sequence.
    SequenceAuxiliaryLoss,
    /// A loss over the tokens of all replicas.
    GlobalAuxiliaryLoss,
    /// Sinkhorn.
    Sinkhorn,
    /// None: a loss without weight (Megatron's default), or a bias on the router.
    None,
}

/// transformers' `load_balancing_loss_func`, which a model with routers runs where a trainer sets `output_router_logits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterLoss {
    /// One layer after another, as of release 5.16.
    Layers,
    /// Over the joined logits of all layers, with one-hot tensors of every choice, until 5.15.
    Joined,
}

impl LoadBalancing {
    /// Whether a loss saves the scores of all experts for its gradient.
    #[must_use]
    pub const fn has_loss(self) -> bool {
        matches!(self, Self::AuxiliaryLoss | Self::SequenceAuxiliaryLoss | Self::GlobalAuxiliaryLoss)
    }
}
