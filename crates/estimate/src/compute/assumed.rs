//! Constants that no published run determines, by calibration set, and the plans that they affect.
//!
//! A run determines a constant if reducing it by a tenth changes the run's step by more than half a per cent
//! (`tests/data/measured/sensitivity.tsv`, written by `cargo run --example fit -- --sensitivity`); runs on one
//! silicon determine the constants that its sets share. A constant that no fitted run determines and that nobody
//! measured on the part is assumed, i.e. taken from another part. `tests/suite/constants.rs` checks this list against
//! that table.

use super::Share;
use super::Share::{
    AttentionBackward, AttentionForward, AttentionPytorch, AttentionTriton, Contention, Eager, Exchange,
    FastLink, Grouped, Memory, Network, Straggling, UserBuffers, Wave,
};
use shardscope_plan::{AttentionBuild, AttentionKernel, Fp8Recipe, Generation, Plan, Recipe};

const HOPPER: &[Share] = &[AttentionPytorch, Straggling];
const BLACKWELL: &[Share] = &[Eager, AttentionTriton, AttentionPytorch, Straggling];
const AMPERE: &[Share] = &[Grouped, UserBuffers, Contention];
const CDNA3: &[Share] =
    &[Eager, Wave, Grouped, AttentionTriton, AttentionPytorch, Exchange, Network, UserBuffers, Straggling];
/// For sets without any fitted run.
const CDNA: &[Share] = &[
    Share::Half,
    Share::Fp8,
    Share::Fp4,
    Eager,
    Wave,
    Grouped,
    Memory,
    AttentionForward,
    AttentionBackward,
    AttentionTriton,
    AttentionPytorch,
    FastLink,
    Exchange,
    Network,
    UserBuffers,
    Contention,
    Straggling,
];

/// The assumed constants of each set.
pub const ASSUMED: [(Generation, &[Share]); 12] = [
    (Generation::Ascend910B, &[Eager, AttentionTriton, AttentionPytorch, Exchange, Network, Contention]),
    (
        Generation::V100,
        &[
            Eager,
            Wave,
            Grouped,
            AttentionForward,
            AttentionBackward,
            AttentionTriton,
            AttentionPytorch,
            FastLink,
            Exchange,
            Network,
            UserBuffers,
            Contention,
        ],
    ),
    (Generation::A100, AMPERE),
    (Generation::A100Of40, AMPERE),
    (Generation::H100, HOPPER),
    (Generation::H100Hbm2e, &[Grouped, AttentionTriton, Contention, Straggling]),
    (Generation::B200, BLACKWELL),
    (Generation::GB200, BLACKWELL),
    (Generation::GB300, BLACKWELL),
    (Generation::MI250X, CDNA),
    (Generation::MI300X, CDNA3),
    (Generation::MI355X, CDNA),
];

/// The assumed constants of `generation`.
#[must_use]
pub fn assumed(generation: Generation) -> &'static [Share] {
    ASSUMED.iter().find(|(of, _)| *of == generation).map_or(&[], |(_, shares)| shares)
}

impl Share {
    /// Whether the constant was measured directly on parts of `generation`, independently of any run: tables of NCCL,
    /// of fused attention, of kernels (`constants.rs` names them).
    #[must_use]
    pub const fn is_measured_alone(self, generation: Generation) -> bool {
        use Generation::{A100, A100Of40, B200, GB200, GB300, H100, H100Hbm2e};
        let ampere = matches!(generation, A100 | A100Of40);
        let blackwell = matches!(generation, B200 | GB200 | GB300);
        match self {
            Self::Exchange | Self::FastStart => ampere || blackwell || matches!(generation, H100 | H100Hbm2e),
            Self::TailRows => ampere || blackwell,
            Self::AttentionForward | Self::AttentionBackward | Self::AttentionFourth => blackwell,
            Self::Unaligned => ampere,
            _ => false,
        }
    }

    /// Whether the constant's value in the set of `generation` is assumed.
    #[must_use]
    pub fn is_assumed(self, generation: Generation) -> bool {
        let fixed = Self::FIXED.contains(&self) && !self.is_measured_alone(generation);
        fixed || assumed(generation).contains(&self)
    }

    /// Whether the constant affects the step of `plan` at all.
    #[must_use]
    pub fn counts_in(self, plan: &Plan) -> bool {
        let (recipe, layout, cluster) = (plan.recipe(), plan.layout(), plan.cluster());
        let semantics = recipe.software.semantics();
        let fused = recipe.attention_kernel != AttentionKernel::Unfused;
        let low = recipe.fp8.as_ref().map(|fp8| fp8.recipe);
        let ranks = layout.world_size;
        match self {
            Self::Fp8 => low.is_some_and(|low| low != Fp8Recipe::Nvfp4),
            Self::Fp4 => low == Some(Fp8Recipe::Nvfp4),
            Self::Eager => semantics.pytorch_linears && cluster.measured.matmul.is_none(),
            Self::Grouped => plan.model().experts.is_some(),
            Self::AttentionForward | Self::AttentionBackward | Self::TailRows => fused,
            Self::AttentionTriton => fused && semantics.attention_build == AttentionBuild::Triton,
            Self::AttentionPytorch => fused && semantics.attention_build == AttentionBuild::Pytorch,
            Self::AttentionFourth => fused && recipe.flash_release == shardscope_plan::FlashRelease::Fourth,
            Self::FastLink => ranks > 1 && cluster.measured.fast_bus.is_none(),
            Self::FastStart => ranks > 1,
            Self::Exchange => layout.expert > 1,
            Self::Network => ranks > cluster.fast_domain && cluster.measured.network_bus.is_none(),
            Self::NetworkStart | Self::NetworkHop | Self::Straggling => ranks > cluster.fast_domain,
            Self::UserBuffers => recipe.overlap.tensor && layout.sequence_parallel,
            Self::Contention => ranks > 1 && (overlaps(recipe, layout.tensor) || plan.gathers_units()),
            // Every step has products and streaming kernels.
            Self::Half | Self::Wave | Self::Memory | Self::Unaligned | Self::Launch | Self::Iteration => true,
        }
    }
}

/// Whether any messages overlap with arithmetic; `tensor` is the number of tensor-parallel ranks.
fn overlaps(recipe: &Recipe, tensor: u64) -> bool {
    let overlap = &recipe.overlap;
    overlap.grad_reduce
        || overlap.param_gather
        || overlap.expert
        || overlap.shared_expert
        || (overlap.tensor_backward && tensor > 1)
}
