//! How long the arithmetic of a run of operators takes on one rank for one micro-batch, pass by pass.

use super::device::real;
use super::{Device, Product};
use crate::flops::repeated_share;
use shardscope_operators::{ExpertProducts, Kernel, Matmul, Operator, Symbols, Work, work_of};
use shardscope_plan::{AttentionKernel, CudaGraphs, NumberFormat};
use shardscope_units::{Quantity, Seconds};

/// Bytes moved per element when an input is cast to low precision: two read in 16 bits, one written as it is and one transposed
/// for the weight gradient (Transformer Engine's cast-transpose kernel).
pub(crate) const CAST_BYTES: f64 = 4.0;

/// Host time of a further kernel launched within one call, as a share of a kernel with a call of its own: the driver's 5 to
/// 10 µs of some 50.
pub(crate) const WITHIN_A_CALL: f64 = 0.15;
/// Host time of the hooks of one parameter (accumulation into the main gradient, the bucket's count), as a share of an
/// operator's. Assumed.
pub(crate) const HOOKS: f64 = 0.5;

/// Time by kind of arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Products with weights.
    pub linear: Seconds,
    /// The attention core: its products and, not fused, its softmax and dropout.
    pub attention: Seconds,
    /// Memory-bound kernels.
    pub memory: Seconds,
    /// Operators called: products with their gradients, kernels of one purpose.
    pub operators: f64,
    /// Kernels launched.
    pub launches: f64,
    /// All-reduces and exchanges called; each half of an all-reduce is half a one.
    pub messages: f64,
}

impl Cost {
    /// Total time: linear layers, attention, memory-bound kernels.
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
            operators: self.operators * factor,
            launches: self.launches * factor,
            messages: self.messages * factor,
        }
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.linear += other.linear;
        self.attention += other.attention;
        self.memory += other.memory;
        self.operators += other.operators;
        self.launches += other.launches;
        self.messages += other.messages;
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
    for operator in operators {
        let mut own = Passes::default();
        add_passes(device, x, std::slice::from_ref(operator), &mut own);
        if x.recipe().cuda_graphs == CudaGraphs::Layers && !operator.reads_back(x) {
            own.capture();
        }
        passes += own;
    }
    passes
}

fn add_passes(device: &Device, x: &Symbols<'_>, operators: &[Operator], passes: &mut Passes) {
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
}

impl Passes {
    /// A captured graph is launched as one: the host issues nothing of it by itself.
    fn capture(&mut self) {
        for cost in
            [&mut self.forward, &mut self.input_gradient, &mut self.weight_gradient, &mut self.selective]
        {
            (cost.operators, cost.launches) = (0.0, 0.0);
        }
    }
}

impl std::ops::AddAssign for Passes {
    fn add_assign(&mut self, other: Self) {
        self.forward += other.forward;
        self.input_gradient += other.input_gradient;
        self.weight_gradient += other.weight_gradient;
        self.selective += other.selective;
    }
}

/// The three products of a linear layer: forward, input gradient, weight gradient.
#[must_use]
pub fn linear_products(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> [Product; 3] {
    let [m, n, k] = matmul.local;
    let low = matmul.kind.runs_in_fp8() && x.recipe().fp8.is_some();
    let width = real(x.width);
    let (aligned, grouped) =
        (is_aligned(device, x, matmul, low), matmul.batch > 1 && matmul.kind.has_weight());
    let batch = matmul.batch;
    let product =
        |[m, n, k]: [u64; 3], result_width| Product { batch, m, n, k, low, aligned, grouped, result_width };
    // y = x·Wᵀ, dx = dy·W, dW = dyᵀ·x: the same m·n·k each, but other tiles and other results to write.
    [product([m, n, k], width), product([m, k, n], width), product([n, k, m], accumulated_width(x))]
}

/// Columns of input and output decide how rows lie in memory; the number of rows does not. Products in fp32 use no tensor cores,
/// which alone want them so (PyTorch's `float32_matmul_precision` is "highest" unless told otherwise): GPT-2's 50,257 columns in
/// fp32 take what their arithmetic takes (`tests/data/measured/trainer_steps.tsv`).
fn is_aligned(device: &Device, x: &Symbols<'_>, matmul: &Matmul, low: bool) -> bool {
    if x.recipe().compute_dtype() == NumberFormat::Fp32 {
        return true;
    }
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
    let products = x.expert_products();
    let launches = if products == ExpertProducts::Each { matmul.batch } else { 1 } * matmul.layers;
    // Kernels of one call, and hooks of its weights when their gradients are there.
    let within = forward.grouped && launches == 1 && products == ExpertProducts::OneCall;
    let experts = if within { real(matmul.batch) } else { 0.0 };
    let cost = |product: &Product, cast: f64, operators: f64| Cost {
        linear: Product { batch: matmul.batch * matmul.layers / launches, ..*product }.time(device).time
            * real(launches / matmul.layers),
        memory: device.kernel(cast, launches * u64::from(cast > 0.0)),
        operators: operators * real(launches),
        launches: real(launches) + experts * WITHIN_A_CALL,
        ..Cost::default()
    };
    let mut input = cost(&input, cast * m * n, 1.0);
    if matmul.fp32_gradient {
        input.linear = Seconds::new(forward.flops().get() / device.fp32.get());
    }
    // One function works out both gradients.
    let weight = if matmul.trains { cost(&weight, 0.0, experts * HOOKS) } else { Cost::default() };
    (cost(&forward, cast * m * k, 1.0), input, weight)
}

fn attention(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> (Cost, Cost, Cost) {
    let [m, n, k] = matmul.local;
    // A fused kernel does both products at once.
    let (forward, backward, launches) = if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let time = |m, n, k| {
            let width = real(x.width);
            let aligned = is_aligned(device, x, matmul, false);
            let batch = matmul.batch;
            Product { batch, m, n, k, low: false, aligned, grouped: false, result_width: width }
                .time(device)
                .time
        };
        (time(m, n, k), time(m, k, n) + time(k, n, m), 1.0)
    } else {
        (device.fused_forward(matmul), device.fused_backward(matmul), 0.5)
    };
    let cost = |attention, more| Cost {
        attention,
        operators: launches,
        launches: launches * more,
        ..Cost::default()
    };
    (cost(forward, 1.0), cost(backward, 2.0), Cost::default())
}

fn memory(device: &Device, x: &Symbols<'_>, kernel: &Kernel, work: &Work) -> (Cost, Cost, Cost) {
    let core = work.modules().contains(&shardscope_plan::RecomputeModule::CoreAttention);
    let unfused = x.recipe().attention_kernel == AttentionKernel::Unfused;
    let cost = |bytes: f64, launches: u64| {
        let time =
            if kernel.sums_rows { device.row_sums(bytes, launches) } else { device.kernel(bytes, launches) };
        let (operators, launches) = (real(launches.min(1)), real(launches + kernel.python));
        if core && unfused {
            Cost { attention: time, operators, launches, ..Cost::default() }
        } else {
            Cost { memory: time, operators, launches, ..Cost::default() }
        }
    };
    (
        cost(kernel.forward.number(), kernel.launches_forward),
        cost(kernel.backward.number(), kernel.launches_backward),
        Cost::default(),
    )
}
