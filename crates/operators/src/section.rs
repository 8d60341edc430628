//! What estimators ask of a section: they fold over sections and never match on their kind.

use super::{Operator, Operators, SectionKind, Symbols, Weight, WeightGroup, norm};
use shardscope_plan::{LayerKind, OffloadModule, OffloadModules, RecomputeModule, Software, TowerGradients};
use smallvec::smallvec;

impl SectionKind {
    /// The kind under which things common to all transformer layers are listed: the first one.
    pub const EVERY_LAYER: Self = Self::Layer(LayerKind::ALL[0]);

    /// The kind of transformer layer that it is; `None` for any other section.
    #[must_use]
    pub const fn layer(self) -> Option<LayerKind> {
        match self {
            Self::Layer(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether it is or contains a transformer layer: what full recomputation repeats, what sharded weights are
    /// gathered for, and what one side of an overlap is.
    #[must_use]
    pub const fn has_layer(self) -> bool {
        matches!(self, Self::Layer(_) | Self::Mtp)
    }

    /// Whether sharded weights are gathered just for this section, and freed after it.
    #[must_use]
    pub const fn is_gathered_alone(self) -> bool {
        self.has_layer() || self.is_of_encoders_layers() || matches!(self, Self::VisionLayer)
    }

    /// Whether FSDP gathers `weight` in 8 bits, to which each rank casts its own shard: torchao's linear layers, which
    /// torchtitan has in layers alone (`torchao/float8/fsdp_utils.py:WeightWithDynamicFloat8CastTensor.fsdp_pre_all_gather`).
    #[must_use]
    pub fn gathers_in_fp8(self, x: &Symbols<'_>, weight: &Weight) -> bool {
        let recipe = x.recipe();
        recipe.fp8.as_ref().is_some_and(|fp8| fp8.param_gather)
            && recipe.software == Software::Torchtitan
            && recipe.is_of_torch_fsdp()
            && self.has_layer()
            && weight.linear
            && weight.group == WeightGroup::Dense
    }

    /// Whether it only has a forward pass: neither it nor anything before it trains.
    #[must_use]
    pub fn has_no_backward(self, x: &Symbols<'_>) -> bool {
        let vision = matches!(self, Self::VisionLayer | Self::VisionEnds);
        vision && x.tower_gradients() == TowerGradients::None
    }

    /// Whether it belongs to a vision tower or to an encoder: it runs before all others, and backward ends with it.
    #[must_use]
    pub const fn is_of_tower(self) -> bool {
        matches!(self, Self::VisionLayer | Self::VisionEnds | Self::EncoderEnds)
            || self.is_of_encoders_layers()
    }

    /// Whether it belongs to an encoder.
    #[must_use]
    pub const fn is_of_encoder(self) -> bool {
        matches!(self, Self::EncoderEnds) || self.is_of_encoders_layers()
    }

    /// Whether it is a layer of an encoder.
    #[must_use]
    pub const fn is_of_encoders_layers(self) -> bool {
        matches!(self, Self::EncoderLayer | Self::FirstEncoderLayer)
    }

    /// Whether it runs: the embedding's copy for multi-token prediction has weights only, and each depth runs it.
    #[must_use]
    pub const fn runs(self) -> bool {
        !matches!(self, Self::MtpEmbedding)
    }

    /// Whether it runs before the layers; a chunk without such a section gets its input from another.
    #[must_use]
    pub const fn is_before_layers(self) -> bool {
        matches!(self, Self::Embedding)
    }

    /// Whether it runs after the layers, so that backward begins with it.
    #[must_use]
    pub const fn is_after_layers(self) -> bool {
        matches!(self, Self::FinalNorm | Self::Mtp | Self::OutputLayer)
    }

    /// Whether it projects onto the vocabulary: Megatron's own linear layer, under Transformer Engine too.
    #[must_use]
    pub const fn projects_vocabulary(self) -> bool {
        matches!(self, Self::OutputLayer)
    }

    /// Whether a router sends its tokens to experts.
    #[must_use]
    pub fn routes(self, x: &Symbols<'_>) -> bool {
        self.operators(x).contains(&Operator::Experts)
    }

    /// Its modules that offload what they save (`attention.py`, `experts.py`, `transformer_layer.py:
    /// _set_offload_modules`): those named in the recipe that are modules here, and not within one that is recomputed
    /// whole.
    #[must_use]
    pub fn offloaded(self, x: &Symbols<'_>) -> OffloadModules {
        let asked = x.recipe().offload.modules;
        if asked.is_empty() {
            return asked;
        }
        let operators = self.operators(x);
        let attends = |operator: &Operator| {
            matches!(
                operator,
                Operator::SelfAttention | Operator::WindowedAttention | Operator::LatentAttention
            )
        };
        let attends = operators.iter().any(attends);
        let grouped = operators.contains(&Operator::Experts)
            && x.recipe().moe.grouped_gemm
            && !x.recomputes(RecomputeModule::Moe);
        let norm = |operator| operators.contains(&operator) && norm::stands_alone(operator, x);
        let is_here = |module: &OffloadModule| match module {
            OffloadModule::AttentionNorm => norm(Operator::InputNorm),
            OffloadModule::QkvLinear | OffloadModule::AttentionProjection => attends,
            OffloadModule::CoreAttention => attends && !x.recomputes(RecomputeModule::CoreAttention),
            OffloadModule::MlpNorm => norm(Operator::PreExpertsNorm) || norm(Operator::PreMlpNorm),
            OffloadModule::ExpertsFc1 | OffloadModule::MoeActivation => grouped,
        };
        OffloadModule::BEGUN.into_iter().filter(|module| asked.has(*module)).filter(is_here).collect()
    }

    /// Whether all of it, but for messages that stand outside, runs forward again for backward, besides layers of the decoder.
    #[must_use]
    pub fn is_recomputed_whole(self, x: &Symbols<'_>) -> bool {
        let layer = self.is_of_encoders_layers() && x.recomputes_layers();
        layer
            || self.is_of_tower() && x.recomputes_tower()
            || self.has_layer() && x.recipe().recompute.is_whole()
    }

    /// The operators whose tensors wait for backward: of a depth of multi-token prediction whose layer is recomputed as a
    /// whole, only what comes before that layer.
    #[must_use]
    pub fn kept_operators(self, x: &Symbols<'_>) -> Operators {
        match self {
            Self::MtpEmbedding => Operators::new(),
            Self::Mtp if x.recomputes_layers() => smallvec![Operator::MtpProjection],
            // Inputs of a tower's layers are counted separately.
            Self::VisionLayer if x.recomputes_tower() => Operators::new(),
            Self::EncoderLayer | Self::FirstEncoderLayer if x.recomputes_layers() => Operators::new(),
            _ => self.operators(x),
        }
    }

    /// The sections whose weights first get a gradient while this one runs backward: a tied embedding's exists as
    /// soon as the output layer has computed its part of it.
    #[must_use]
    pub fn gradients_made(self, x: &Symbols<'_>) -> Vec<Self> {
        match self {
            Self::OutputLayer if x.tied() => vec![self, Self::Embedding],
            Self::Embedding if x.tied() => Vec::new(),
            _ => vec![self],
        }
    }

    /// How many of `counts`, in the order of [`SectionKind::ALL`], are sections that satisfy `asked`.
    #[must_use]
    pub fn count(counts: &[u64; Self::ALL.len()], asked: impl Fn(Self) -> bool) -> u64 {
        Self::ALL.iter().zip(counts).filter(|(kind, _)| asked(**kind)).map(|(_, count)| count).sum()
    }

    /// How many of `counts` are transformer layers.
    #[must_use]
    pub fn layers(counts: &[u64; Self::ALL.len()]) -> u64 {
        Self::count(counts, |kind| kind.layer().is_some())
    }
}
