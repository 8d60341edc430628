//! How long the arithmetic of a run of operators takes on one rank for one micro-batch, pass by pass.

use super::device::real;
use super::{Device, Product};
use crate::flops::repeated_share;
use shardscope_operators::{Kernel, Matmul, Operator, Symbols, Work, work_of};
use shardscope_plan::AttentionKernel;
use shardscope_units::{Quantity, Seconds};

/// Bytes moved per element when an input is cast to low precision: read in 16 bit, written once as it
/// is and once transposed for the weight gradient (Transformer Engine's cast-transpose kernel).
pub(crate) const CAST_BYTES: f64 = 3.0;

/// Time by kind of arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Products with weights.
    pub linear: Seconds,
    /// The attention core: its products and, not fused, its softmax and dropout.
    pub attention: Seconds,
    /// Memory-bound kernels.
    pub memory: Seconds,
    /// Kernels launched.
    pub launches: f64,
}

impl Cost {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.linear + self.attention + self.memory
    }

    /// The same `factor` over.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            linear: self.linear * factor,
            attention: self.attention * factor,
            memory: self.memory * factor,
            launches: self.launches * factor,
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.linear += other.linear;
        self.attention += other.attention;
        self.memory += other.memory;
        self.launches += other.launches;
    }
}

/// The passes of one micro-batch over a run of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passes {
    /// Forward.
    pub forward: Cost,
    /// Backward without the weight gradients.
    pub input_gradient: Cost,
    /// Products of the weight gradients.
    pub weight_gradient: Cost,
    /// What selective recomputation does once more before the backward pass.
    pub selective: Cost,
}

/// The passes over `operators` on `device`.
#[must_use]
pub fn passes(device: &Device, x: &Symbols<'_>, operators: &[Operator]) -> Passes {
    let mut passes = Passes::default();
    for work in work_of(x, operators) {
        let (forward, input, weight) = match &work {
            Work::Matmul(matmul) if matmul.kind.has_weight() => linear(device, x, matmul),
            Work::Matmul(matmul) => attention(device, x, matmul),
            Work::Kernel(kernel) => memory(device, x, kernel, &work),
        };
        let again = repeated_share(x.recipe(), &work);
        if again > 0.0 {
            passes.selective += forward.scaled(again);
        }
        passes.forward += forward;
        passes.input_gradient += input;
        passes.weight_gradient += weight;
    }
    passes
}

/// The three products of a linear layer: forward, input gradient, weight gradient.
#[must_use]
pub fn linear_products(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> [Product; 3] {
    let [m, n, k] = matmul.local;
    let low = matmul.kind.runs_in_fp8() && x.recipe().fp8.is_some();
    let width = real(x.width);
    let (aligned, grouped) = (is_aligned(device, matmul, low), matmul.batch > 1 && matmul.kind.has_weight());
    let batch = matmul.batch;
    let product =
        |[m, n, k]: [u64; 3], result_width| Product { batch, m, n, k, low, aligned, grouped, result_width };
    [product([m, n, k], width), product([m, k, n], width), product([n, k, m], accumulated_width(x))]
}

/// Columns of input and output decide how rows lie in memory; the number of rows does not.
fn is_aligned(device: &Device, matmul: &Matmul, low: bool) -> bool {
    let run = device.run(low);
    let [_, n, k] = matmul.local;
    n.is_multiple_of(run) && k.is_multiple_of(run)
}

/// Bytes per element of a weight gradient: added to the main gradient in the product itself, or
/// written in the weights' format and added by the framework later.
fn accumulated_width(x: &Symbols<'_>) -> f64 {
    let recipe = x.recipe();
    if recipe.fusions.gradient_accumulation { 2.0 * real(recipe.grads_dtype.width()) } else { real(x.width) }
}

fn linear(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> (Cost, Cost, Cost) {
    let [forward, input, weight] = linear_products(device, x, matmul);
    let [m, n, k] = matmul.local.map(real);
    let cast = if forward.low { CAST_BYTES * real(matmul.batch) } else { 0.0 };
    // Without grouped products every expert is a launch of its own.
    let launches = if x.recipe().moe.grouped_gemm { 1 } else { matmul.batch };
    let cost = |product: &Product, cast: f64| Cost {
        linear: Product { batch: matmul.batch / launches, ..*product }.time(device).time * real(launches),
        memory: device.kernel(cast, launches * u64::from(cast > 0.0)),
        launches: real(launches),
        ..Cost::default()
    };
    let weight = if matmul.trains { cost(&weight, 0.0) } else { Cost::default() };
    (cost(&forward, cast * m * k), cost(&input, cast * m * n), weight)
}

fn attention(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> (Cost, Cost, Cost) {
    let [m, n, k] = matmul.local;
    let (forward, backward, launches) = if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let time = |m, n, k| {
            let width = real(x.width);
            let aligned = is_aligned(device, matmul, false);
            let batch = matmul.batch;
            Product { batch, m, n, k, low: false, aligned, grouped: false, result_width: width }
                .time(device)
                .time
        };
        (time(m, n, k), time(m, k, n) + time(k, n, m), 1.0)
    } else {
        (device.fused_forward(matmul), device.fused_backward(matmul), 0.5)
    };
    let cost = |attention, launches| Cost { attention, launches, ..Cost::default() };
    (cost(forward, launches), cost(backward, 2.0 * launches), Cost::default())
}

fn memory(device: &Device, x: &Symbols<'_>, kernel: &Kernel, work: &Work) -> (Cost, Cost, Cost) {
    let core = work.modules().contains(&shardscope_plan::RecomputeModule::CoreAttention);
    let unfused = x.recipe().attention_kernel == AttentionKernel::Unfused;
    let cost = |bytes: f64, launches: u64| {
        let time = device.kernel(bytes, launches);
        let count = real(launches);
        if core && unfused {
            Cost { attention: time, launches: count, ..Cost::default() }
        } else {
            Cost { memory: time, launches: count, ..Cost::default() }
        }
    };
    (
        cost(kernel.forward.number(), kernel.launches_forward),
        cost(kernel.backward.number(), kernel.launches_backward),
        Cost::default(),
    )
}
