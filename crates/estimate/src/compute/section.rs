//! Time of the arithmetic of a sequence of operators on one rank for one micro-batch, by pass.

use super::device::real;
use super::{Device, Product};
use crate::flops::repeated_share;
use shardscope_operators::{Captured, ExpertProducts, Kernel, Matmul, Operator, SectionKind, Symbols, Work};
use shardscope_plan::{AttentionKernel, CudaGraphs, Fp8Recipe, NumberFormat};
use shardscope_units::{Quantity, Seconds};

/// Bytes moved per element when an input is cast to low precision: two are read in 16 bits, one is written as is and
/// one transposed for the weight gradient (Transformer Engine's cast-transpose kernel).
pub(crate) const CAST_BYTES: f64 = 4.0;

/// Host time of each additional kernel launched within one call, as a share of that of a kernel with its own call:
/// the driver takes 5 to 10 µs of some 50.
pub(crate) const WITHIN_A_CALL: f64 = 0.15;
/// Host time of the hooks of one parameter (accumulation into the main gradient, counting for the bucket), as a share
/// of an operator's. Assumed.
pub(crate) const HOOKS: f64 = 0.5;

/// Time by kind of arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Products that involve weights.
    pub linear: Seconds,
    /// The attention core: its products and, if not fused, its softmax and dropout.
    pub attention: Seconds,
    /// Memory-bound kernels.
    pub memory: Seconds,
    /// Operators called: products with their gradients, and groups of kernels that serve one purpose.
    pub operators: f64,
    /// Kernels launched.
    pub launches: f64,
    /// All-reduces and exchanges called; each half of an all-reduce counts half.
    pub messages: f64,
}

impl Cost {
    /// Total time: linear layers, attention, memory-bound kernels.
    #[must_use]
    pub fn total(&self) -> Seconds {
        self.linear + self.attention + self.memory
    }

    /// This cost multiplied by `factor`.
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

/// The passes of one micro-batch over a sequence of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passes {
    /// Forward.
    pub forward: Cost,
    /// Backward without the weight gradients.
    pub input_gradient: Cost,
    /// Products of the weight gradients.
    pub weight_gradient: Cost,
    /// What selective recomputation repeats before the backward pass.
    pub selective: Cost,
}

/// The passes over `operators` of a section of `kind` on `device`.
#[must_use]
pub fn passes(device: &Device, x: &Symbols<'_>, kind: SectionKind, operators: &[Operator]) -> Passes {
    let mut passes = Passes::default();
    for operator in operators {
        let of = |work| {
            let mut own = Passes::default();
            add_passes(device, x, kind, work, &mut own);
            own
        };
        let mut own = of(operator.work(x));
        if let CudaGraphs::Layers(modules) = x.recipe().cuda_graphs {
            let graph = match operator.captured(x, modules) {
                Captured::Nothing => Passes::default(),
                Captured::Routing => of(operator.routing(x)),
                Captured::Whole => own,
            };
            own.capture(&graph);
        }
        passes += own;
    }
    passes
}

fn add_passes(device: &Device, x: &Symbols<'_>, kind: SectionKind, works: Vec<Work>, passes: &mut Passes) {
    for work in works {
        let (forward, input, weight) = match &work {
            Work::Matmul(matmul) if matmul.kind.has_weight() => linear(device, x, matmul),
            Work::Matmul(matmul) => attention(device, x, matmul),
            Work::Kernel(kernel) => memory(device, x, kernel, &work),
        };
        let again = repeated_share(x.recipe(), kind, &work);
        if again != 0.0 {
            passes.selective += forward.scaled(again);
        }
        if matches!(&work, Work::Matmul(matmul) if matmul.again) {
            passes.input_gradient += forward;
        }
        passes.forward += forward;
        passes.input_gradient += input;
        passes.weight_gradient += weight;
    }
}

impl Passes {
    /// A captured graph is launched as one: the host no longer issues the kernels of `graph` individually.
    fn capture(&mut self, graph: &Self) {
        let pairs = [
            (&mut self.forward, &graph.forward),
            (&mut self.input_gradient, &graph.input_gradient),
            (&mut self.weight_gradient, &graph.weight_gradient),
            (&mut self.selective, &graph.selective),
        ];
        for (cost, graph) in pairs {
            cost.operators -= graph.operators;
            cost.launches -= graph.launches;
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
    let routed = grouped && device.single.is_some();
    let product = |[m, n, k]: [u64; 3], uneven, result_width| Product {
        batch,
        m,
        n,
        k,
        low,
        aligned,
        grouped,
        uneven,
        result_width,
    };
    // y = x·Wᵀ, dx = dy·W, dW = dyᵀ·x: the same m·n·k each, but different tiles and result sizes.
    [
        product([m, n, k], routed, width),
        product([m, k, n], routed, width),
        product([n, k, m], false, accumulated_width(x)),
    ]
}

/// The columns of input and output decide how rows are aligned in memory; the number of rows does not. Products in
/// fp32 use no tensor cores (PyTorch's `float32_matmul_precision` defaults to "highest"), and only those need
/// alignment: GPT-2's 50,257 columns in fp32 take just the time of their arithmetic
/// (`tests/data/measured/trainer_steps.tsv`).
fn is_aligned(device: &Device, x: &Symbols<'_>, matmul: &Matmul, low: bool) -> bool {
    if x.recipe().compute_dtype() == NumberFormat::Fp32 {
        return true;
    }
    let run = device.run(low);
    let [_, n, k] = matmul.local;
    n.is_multiple_of(run) && k.is_multiple_of(run)
}

/// Bytes read and written per element of a weight gradient: it is accumulated into the main gradient by the product
/// itself, or written in the weights' format and added by the framework later.
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
    // Kernels within one call, and hooks of the weights once their gradients exist.
    let within = forward.grouped && launches == 1 && products == ExpertProducts::OneCall;
    let experts = if within { real(matmul.batch) } else { 0.0 };
    let casts = casts(x, &forward, experts);
    let cost = |product: &Product, cast: f64, casts: f64, operators: f64| Cost {
        linear: Product { batch: matmul.batch * matmul.layers / launches, ..*product }.time(device).time
            * real(launches / matmul.layers),
        memory: device.kernel(cast, launches * u64::from(cast > 0.0)),
        operators: operators * real(launches),
        launches: real(launches) * (1.0 + casts) + experts * WITHIN_A_CALL,
        ..Cost::default()
    };
    let mut input = cost(&input, cast * m * n, casts, 1.0);
    if matmul.fp32_gradient {
        input.linear = Seconds::new(forward.flops().get() / device.fp32.get());
    }
    // One function computes both gradients.
    let weight = if matmul.trains { cost(&weight, 0.0, 0.0, experts * HOOKS) } else { Cost::default() };
    // The kernel before a dense layer (its norm) may also cast its output (`module/layernorm_linear.py`).
    let ahead = if forward.grouped { casts } else { 0.0 };
    let forward = cost(&forward, cast * m * k, ahead, 1.0);
    if !matmul.kind.has_backward() {
        return (forward, Cost::default(), Cost::default());
    }
    (forward, input, weight)
}

/// What the host launches to cast a product's operand to low precision: a call from Python (`module/linear.py`,
/// `grouped_linear.py`, `base.py:grad_output_preprocess`), which casts the tokens of each of `experts` separately,
/// unless delayed scaling already knows all scales (`csrc/extensions/cast.cpp:multi_tensor_quantize_impl`).
fn casts(x: &Symbols<'_>, product: &Product, experts: f64) -> f64 {
    match &x.recipe().fp8 {
        Some(fp8) if product.low && fp8.recipe == Fp8Recipe::Delayed => 1.0,
        Some(_) if product.low => 1.0 + experts * WITHIN_A_CALL,
        _ => 0.0,
    }
}

fn attention(device: &Device, x: &Symbols<'_>, matmul: &Matmul) -> (Cost, Cost, Cost) {
    let [m, n, k] = matmul.local;
    // A fused kernel computes both products at once.
    let (forward, backward, launches) = if x.recipe().attention_kernel == AttentionKernel::Unfused {
        let time = |m, n, k| {
            let width = real(x.width);
            let aligned = is_aligned(device, x, matmul, false);
            let batch = matmul.batch;
            let (low, grouped, uneven) = (false, false, false);
            Product { batch, m, n, k, low, aligned, grouped, uneven, result_width: width }.time(device).time
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
    let cost = |pass: usize, bytes: f64, launches: u64| {
        let time = |bytes: f64, launches: u64| match (kernel.alone, kernel.sums_rows) {
            (true, _) => device.alone(bytes, launches),
            (false, true) => device.row_sums(bytes, launches),
            (false, false) => device.kernel(bytes, launches),
        };
        // Rates of whole steps include what is not counted.
        let (time, within) = if device.single.is_some() {
            let (addressed, within) = (kernel.addressed.bytes[pass], kernel.within);
            let rest = time((bytes - real(addressed)).max(0.0), launches + within.launches[pass]);
            let more = device.stream(real(within.bytes[pass]));
            (
                rest + more + device.addressed(real(addressed), real(kernel.addressed.elements[pass])),
                within.launches[pass],
            )
        } else {
            (time(bytes, launches), 0)
        };
        let (operators, launches) =
            (real(launches.min(1)), real(launches + kernel.python) + WITHIN_A_CALL * real(within));
        if core && unfused {
            Cost { attention: time, operators, launches, ..Cost::default() }
        } else {
            Cost { memory: time, operators, launches, ..Cost::default() }
        }
    };
    (
        cost(0, kernel.forward.number(), kernel.launches_forward),
        cost(1, kernel.backward.number(), kernel.launches_backward),
        Cost::default(),
    )
}
