//! Transient tensors: what a forward or backward pass allocates beyond the saved activations, and those most operators share.
//!
//! The peak of a step is seldom at the end of forward, where only saved activations are alive. It occurs where a
//! backward node holds its gradients, and perhaps a gathered input, while most of the layer's saved activations are
//! still held.

use super::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::OffloadModule;
use shardscope_units::Bytes;

const AUTOGRAD: &str = "torch autograd: a node's gradients are alive while it runs";
const LINEAR: &str =
    "megatron/core/tensor_parallel/layers.py:LinearWithGradAccumulationAndAsyncCommunication";

static RESIDUAL: Formula = Formula::new(
    "S·h·Br",
    "The residual stream's gradient, waiting for the branch's gradient to be added.",
    AUTOGRAD,
);
static MASKED: Formula =
    Formula::new("S·h·B", "The branch's gradient after the backward of its dropout.", AUTOGRAD);
static GATHERED: Formula =
    Formula::new("n·h·B", "A tensor of all tokens, all-gathered over the sequence-parallel ranks.", LINEAR);
static SCATTERED: Formula =
    Formula::new("S·h·B", "The input gradient, reduce-scattered over the sequence-parallel ranks.", LINEAR);

/// What is alive at one point of one pass of an operator, beyond the saved activations.
#[derive(Clone, Debug, PartialEq)]
pub struct Transient {
    /// The point, for example `backward of the activation`.
    pub name: &'static str,
    /// Tensors alive at this point that forward does not save.
    pub tensors: Vec<Saved>,
    /// Bytes of the operator's own saved activations that are freed before the point.
    pub returned: Bytes,
    /// Modules of the operator whose backward is over by then, of those that can be offloaded; for a point in
    /// forward, those whose saved tensors are not offloaded yet.
    pub modules: &'static [OffloadModule],
    /// Whether it is in forward; otherwise in backward, in the order of the list.
    pub in_forward: bool,
}

/// The tensors alive at a point, of which there are `first` and a few that depend on the plan. A search asks for them
/// for every layout, and lists that grow would be a tenth of its time.
pub(crate) fn tensors<const N: usize>(first: [Saved; N]) -> Vec<Saved> {
    let mut all = Vec::with_capacity(N + 4);
    all.extend(first);
    all
}

impl Transient {
    /// A point at which `tensors` are alive and `returned` has been freed.
    pub(super) fn new(name: &'static str, returned: Bytes, tensors: Vec<Saved>) -> Self {
        Self { name, tensors, returned, modules: &[], in_forward: false }
    }

    /// The same in forward, where nothing has been freed.
    pub(super) fn forward(name: &'static str, tensors: Vec<Saved>) -> Self {
        Self { in_forward: true, ..Self::new(name, Bytes::ZERO, tensors) }
    }

    /// The same with its modules.
    pub(super) const fn with(mut self, modules: &'static [OffloadModule]) -> Self {
        self.modules = modules;
        self
    }

    /// Bytes of its tensors.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.tensors.iter().map(|tensor| tensor.bytes).sum()
    }
}

/// The gradient that flows past a branch.
pub(super) fn residual(x: &Symbols<'_>) -> Saved {
    Saved::new("residual gradient", &[x.s_local, x.h], x.residual_width, &RESIDUAL)
}

/// The branch's gradient after the branch's dropout.
pub(super) fn masked(x: &Symbols<'_>) -> Option<Saved> {
    x.recipe()
        .hidden_dropout
        .then(|| Saved::new("gradient behind dropout", &[x.s_local, x.h], x.width, &MASKED))
}

/// What sequence parallelism gathers for a matrix product.
pub(super) fn gathered(x: &Symbols<'_>, name: &'static str) -> Option<Saved> {
    x.sequence_parallel.then(|| Saved::new(name, &[x.n, x.h], x.width, &GATHERED))
}

/// The same for a linear layer's input, gathered again for its weight gradient.
pub(super) fn gathered_again(x: &Symbols<'_>) -> Option<Saved> {
    gathered(x, "gathered input").filter(|_| x.trains)
}

/// An input gradient after sequence parallelism scatters it.
pub(super) fn scattered(x: &Symbols<'_>) -> Option<Saved> {
    x.sequence_parallel
        .then(|| Saved::new("scattered input gradient", &[x.s_local, x.h], x.width, &SCATTERED))
}

/// Whether a linear layer's weight gradient is temporarily a separate tensor: if it is not accumulated in the matmul,
/// and in Megatron core's own layers even then, as a dummy that autograd requires. Transformer Engine keeps one dummy
/// per shape permanently, which is counted once per rank.
pub(super) fn has_weight_gradient(x: &Symbols<'_>) -> bool {
    let made =
        !x.recipe().fusions.gradient_accumulation || x.recipe().software.semantics().stand_in_each_time;
    x.trains && made
}
