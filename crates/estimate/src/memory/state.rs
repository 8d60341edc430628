//! States of a group of parameters, in bytes, and how parameters are stored.

use super::sides::{product, rows, sides, squares};
use shardscope_explain::{Explanation, Formula};
use shardscope_operators::{Projected, Weight, WeightPart, WeightRole};
use shardscope_plan::{DpSharding, GradientBuffers, Plan, Quantization, Recipe};
use shardscope_units::{Bytes, Count, Quantity};

const WEIGHTS: &str = "megatron/core/distributed/param_and_grad_buffer.py";
const OPTIMIZER: &str = "megatron/core/optimizer/distrib_optimizer.py";
const ENGINE: &str = "transformer_engine/pytorch/module/base.py";

static WHOLE: Formula = Formula::new("P·w", "Every parameter of the rank, w bytes each.", WEIGHTS)
    .letters(&[("P", "parameters of the rank"), ("w", "bytes per element")]);
static SHARED: Formula =
    Formula::new("P·w/D", "Every parameter of the rank, w bytes each, sharded over D ranks.", OPTIMIZER)
        .letters(&[
            ("P", "parameters of the rank"),
            ("w", "bytes per element"),
            ("D", "ranks they are sharded over"),
        ]);
static HOST: Formula =
    Formula::new("P·w/D·q", "Sharded over D ranks, of which the fraction q stays on the device.", OPTIMIZER)
        .letters(&[
            ("P", "parameters of the rank"),
            ("w", "bytes per element"),
            ("D", "ranks they are sharded over"),
            ("q", "part that stays on the device"),
        ]);
static COPIES: Formula = Formula::new(
    "P·w",
    "fp8 copies of the linear layers' weights, kept from micro-batch to micro-batch.",
    ENGINE,
)
.letters(&[("P", "parameters of the rank's linear layers"), ("w", "bytes per element")]);

/// Which of the report's terms a state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Weights.
    Parameters,
    /// Gradients.
    Gradients,
    /// Optimizer states.
    Optimizer,
    /// Alive in the optimizer step, and in some engines after it until the next step begins.
    Step,
}

/// Parameters of one rank by the properties that their states depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ParameterCounts {
    /// All.
    pub(super) all: Count,
    /// Those of linear layers, which fp8 and Muon treat differently.
    pub(super) linear: Count,
    /// Trainable ones, each padded as in the distributed optimizer's buffers.
    pub(super) padded: Count,
    /// Trainable ones, of the model or copies of its weights.
    pub(super) trained: Count,
    /// Of these, the word embedding's, which may also be the output layer's.
    pub(super) embedding: Count,
    /// Those of adapters.
    pub(super) adapters: Count,
    /// Those of a frozen vision tower, which may have its own format.
    pub(super) vision: Count,
    /// Those of frozen weights that are stored quantized.
    pub(super) quantized: Count,
    /// Bytes in which these are stored.
    pub(super) packed: Count,
    /// Bytes of their constants.
    pub(super) constants: Count,
    /// Rows and columns of trainable matrices, and elements of vectors.
    pub(super) sides: Count,
    /// Rows of trainable matrices, and elements of vectors.
    pub(super) rows: Count,
    /// Elements of the two square preconditioners of trainable matrices.
    pub(super) squares: Count,
    /// Those whose gradients are projected before the step.
    pub(super) projected: Count,
    /// Elements of their projected gradients.
    pub(super) low: Count,
    /// Elements of the projections themselves.
    pub(super) projections: Count,
}

/// Under the distributed optimizer, each parameter begins at a multiple of this many elements
/// (`megatron/core/distributed/param_and_grad_buffer.py`).
const PARAMETER_ALIGNMENT: u64 = 64;
/// A buffer ends at a multiple of this many elements and of the number of shards.
const BUFFER_ALIGNMENT: u64 = 128;
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

impl ParameterCounts {
    /// Adds a weight of this rank.
    pub(super) fn add(&mut self, weight: &Weight, quantization: Quantization) {
        let count = weight.count();
        self.all += count;
        if weight.linear {
            self.linear += count;
        }
        if weight.role.trains() {
            self.padded += Count::new(count.get().next_multiple_of(PARAMETER_ALIGNMENT));
            self.sides += sides(weight);
            self.rows += rows(weight);
            self.squares += squares(weight);
        }
        match weight.role {
            WeightRole::Trained | WeightRole::TrainedCopy => {
                self.trained += count;
                if weight.is_word_embedding() {
                    self.embedding += count;
                }
            }
            WeightRole::Adapter => self.adapters += count,
            WeightRole::Frozen if weight.part == WeightPart::VisionTower => self.vision += count,
            WeightRole::Frozen if quantization != Quantization::None => {
                let rows = weight.local.split_last().map_or(1, |(_, rows)| product(rows));
                let [packed, constants] = quantized(quantization, count.get(), rows);
                self.quantized += count;
                self.packed += Count::new(packed);
                self.constants += Count::new(constants);
            }
            WeightRole::Frozen => {}
        }
    }

    /// Adds `other` `times` times.
    pub(super) fn add_all(&mut self, other: Self, times: u64) {
        self.all += other.all * times;
        self.linear += other.linear * times;
        self.padded += other.padded * times;
        self.trained += other.trained * times;
        self.embedding += other.embedding * times;
        self.adapters += other.adapters * times;
        self.vision += other.vision * times;
        self.quantized += other.quantized * times;
        self.packed += other.packed * times;
        self.constants += other.constants * times;
        self.sides += other.sides * times;
        self.rows += other.rows * times;
        self.squares += other.squares * times;
        self.projected += other.projected * times;
        self.low += other.low * times;
        self.projections += other.projections * times;
    }

    /// Marks the gradients of `times` parameters as projected.
    pub(super) fn project(&mut self, one: &Projected, times: u64) {
        self.projected += Count::new(one.whole) * times;
        self.low += Count::new(one.low) * times;
        self.projections += Count::new(one.projection) * times;
    }

    /// The counts as seen by an optimizer that projects gradients.
    pub(super) fn as_stepped(self) -> Self {
        let trained = self.trained.get().saturating_sub(self.projected.get()) + self.low.get();
        Self { trained: Count::new(trained), ..self }
    }

    /// Removes `times` weights from the quantized ones; they are stored in the format of the others.
    pub(super) fn leave_whole(&mut self, [inner, outer]: [u64; 2], times: u64, quantization: Quantization) {
        let count = inner * outer;
        let [packed, constants] = quantized(quantization, count, outer);
        let less = |from: Count, each: u64| Count::new(from.get().saturating_sub(each * times));
        self.quantized = less(self.quantized, count);
        self.packed = less(self.packed, packed);
        self.constants = less(self.constants, constants);
    }

    /// The counts if none of these parameters were trainable.
    pub(super) fn frozen(self) -> Self {
        Self {
            trained: Count::ZERO,
            embedding: Count::ZERO,
            padded: Count::ZERO,
            sides: Count::ZERO,
            rows: Count::ZERO,
            squares: Count::ZERO,
            ..self
        }
    }

    /// Frozen decoder parameters that are stored in a plain number format.
    pub(super) fn plain(&self) -> Count {
        let others = self.trains() + self.quantized + self.vision;
        Count::new(self.all.get().saturating_sub(others.get()))
    }

    /// Trainable ones, including adapters.
    pub(super) fn trains(&self) -> Count {
        self.trained + self.adapters
    }

    /// Trainable ones plus the padding that Megatron core's distributed optimizer gives a buffer's first bucket.
    pub(super) fn in_buffers(self, plan: &Plan, shards: u64) -> Count {
        let recipe = plan.recipe();
        let core = recipe.software.semantics().gradient_buffers == GradientBuffers::MegatronCore;
        if !core || recipe.dp_sharding != DpSharding::OptimizerStates || self.trains() == Count::ZERO {
            return self.trains();
        }
        let least = common_multiple(shards.max(1), BUFFER_ALIGNMENT);
        Count::new(self.padded.get().next_multiple_of(least))
    }

    /// All parameters, with the trainable ones as in their buffers.
    pub(super) fn with_buffers(self, plan: &Plan, shards: u64) -> Count {
        let frozen = self.all.get().saturating_sub(self.trains().get());
        self.in_buffers(plan, shards) + Count::new(frozen)
    }
}

/// Elements of a 4-bit block, which has one constant (`bitsandbytes/nn/modules.py:Linear4bit`).
const BLOCK: u64 = 64;
/// Constants of a block that are quantized together (`bitsandbytes/functional.py:quantize_4bit`).
const CONSTANTS: u64 = 256;
/// Bytes of a number of 16 bits.
const HALF: u64 = 2;

/// Bytes of `count` weights in `rows` rows quantized in this way, and of their constants. Tables of 16 entries are
/// ignored: torchao's (`torchao/dtypes/nf4tensor.py:NF4Tensor`) and the mean of its constants are 34 bytes per
/// tensor.
fn quantized(quantization: Quantization, count: u64, rows: u64) -> [u64; 2] {
    let blocks = count.div_ceil(BLOCK);
    match quantization {
        Quantization::None => [0, 0],
        Quantization::FourBit { double: false } => [count.div_ceil(2), blocks * FLOAT],
        Quantization::FourBit { double: true } => {
            [count.div_ceil(2), blocks + blocks.div_ceil(CONSTANTS) * FLOAT + FLOAT]
        }
        Quantization::BlocksOfBlocks => [count.div_ceil(2), blocks + blocks.div_ceil(CONSTANTS) * HALF],
        Quantization::Int8 => [count, rows * FLOAT],
        Quantization::Fp8 => [count, FLOAT],
    }
}

fn blocks(count: Count, size: u64) -> Count {
    Count::new(count.get().div_ceil(size.max(1)))
}

fn common_multiple(one: u64, other: u64) -> u64 {
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one / a.max(1) * other
}

/// One kind of state of one group of parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Short name.
    pub(super) name: &'static str,
    /// Its term in the report.
    pub(super) part: Part,
    /// How many parameters have it.
    pub(super) count: Count,
    /// Bytes per parameter.
    pub(super) width: u64,
    /// Number of ranks over which it is sharded.
    pub(super) shards: u64,
    /// Share of it that stays on the device.
    pub(super) stays: f64,
    /// Whether it belongs to weights that do not train.
    pub(super) frozen: bool,
    /// Whether it is an additional form of weights that are also stored in their own format; it is not sharded.
    pub(super) is_copy: bool,
}

impl State {
    /// Bytes on one rank.
    pub(super) fn bytes(&self) -> Bytes {
        let whole = self.count.bytes(self.width).get();
        // Rounded up: the first ranks of an uneven split hold the larger shard, and the peak is theirs.
        let share = Bytes::new(whole.div_ceil(self.shards.max(1)));
        if self.stays >= 1.0 { share } else { Count::rounded_up(share.number() * self.stays).bytes(1) }
    }

    /// Explains the number of bytes.
    pub(super) fn why(&self) -> Explanation {
        let count = ("P", self.count.number());
        let width = ("w", Count::new(self.width).number());
        let shards = ("D", Count::new(self.shards).number());
        if self.is_copy {
            Explanation::new(&COPIES, &[count, width])
        } else if self.stays < 1.0 {
            Explanation::new(&HOST, &[count, width, shards, ("q", self.stays)])
        } else if self.shards > 1 {
            Explanation::new(&SHARED, &[count, width, shards])
        } else {
            Explanation::new(&WHOLE, &[count, width])
        }
    }
}

/// A state before the parameters that it belongs to are counted.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) part: Part,
    pub(super) width: u64,
    /// Sharded over the data-parallel ranks.
    pub(super) spread: bool,
    /// The parameters that have it.
    pub(super) of: Of,
}

/// Which parameters a state is for, or what else its element count is based on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// All.
    All,
    /// Those of linear layers.
    Linear,
    /// Those of linear layers, in an additional form beside the trained one.
    Copies,
    /// One element per block of this many, in linear layers.
    LinearBlocks(u64),
    /// The same for their additional form.
    CopyBlocks(u64),
    /// All but those of linear layers.
    Rest,
    /// The model's own trainable ones.
    Trained,
    /// The same, if others of the model's own are frozen.
    TrainedPart,
    /// Adapters.
    Adapters,
    /// All trainable ones, of the model or adapters.
    Trains,
    /// Frozen ones in a plain number format.
    Plain,
    /// Of these, embedding and output layer, or all others.
    PlainPart { ends: bool },
    /// A frozen vision tower.
    Vision,
    /// Those of the model, trainable or not.
    Model,
    /// Bytes of quantized ones.
    Packed,
    /// Bytes of the constants of quantized ones.
    Constants,
    /// Rows and columns of trainable matrices.
    Sides,
    /// Rows of trainable matrices.
    Rows,
    /// Squares of the sides of trainable matrices.
    Squares,
    /// One element per block of this many trainable ones, including adapters.
    Blocks(u64),
    /// The same without the word embedding.
    BlocksBeside(u64),
    /// The trainable ones of the word embedding.
    Embedding,
    /// Elements of the projections of gradients.
    Projections,
}

impl Of {
    /// The number of elements in `counts`.
    pub(super) fn count(self, counts: &ParameterCounts) -> Count {
        match self {
            Self::All => counts.all,
            Self::Linear | Self::Copies => counts.linear,
            Self::LinearBlocks(size) | Self::CopyBlocks(size) => blocks(counts.linear, size),
            Self::Rest => Count::new(counts.all.get().saturating_sub(counts.linear.get())),
            Self::Trained | Self::TrainedPart => counts.trained,
            Self::Adapters => counts.adapters,
            Self::Trains => counts.trains(),
            Self::Plain | Self::PlainPart { .. } => counts.plain(),
            Self::Vision => counts.vision,
            Self::Model => Count::new(counts.all.get().saturating_sub(counts.adapters.get())),
            Self::Packed => counts.packed,
            Self::Constants => counts.constants,
            Self::Sides => counts.sides,
            Self::Rows => counts.rows,
            Self::Squares => counts.squares,
            Self::Blocks(size) => blocks(counts.trains(), size),
            Self::BlocksBeside(size) => {
                let others = counts.trains().get().saturating_sub(counts.embedding.get());
                blocks(Count::new(others), size)
            }
            Self::Embedding => counts.embedding,
            Self::Projections => counts.projections,
        }
    }
}

/// Bytes per element of the gradients that are accumulated. FSDP casts what it reduced to its shards' format
/// (`_fsdp_collectives.py:foreach_reduce`).
pub(super) fn gradient_width(recipe: &Recipe) -> u64 {
    let cast = is_torch_fsdp(recipe) && !recipe.software.semantics().gradients_as_computed;
    if cast { recipe.optimizer.main_params.width() } else { recipe.grads_dtype.width() }
}

/// Whether PyTorch's FSDP holds the weights: as shards, fp32 unless stated, that are cast when gathered.
pub(super) fn is_torch_fsdp(recipe: &Recipe) -> bool {
    recipe.software.semantics().fsdp_fp32_shards
        && matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters)
}
