//! The difference between what torch counts as allocated and what the device shows: allocator slack, DeepSpeed's flat
//! buffers, driver context, communicator buffers. Each is a separate term.

use super::sequence::{Reserved, grows_segments, reserved};
use super::states::keeps_both_gradients;
use super::term::Term;
use crate::constant::Constant;
use shardscope_explain::Formula;
use shardscope_operators::{Symbols, exchange_buffer};
use shardscope_plan::DpSharding;
use shardscope_units::{Bytes, Count, Quantity};

const ALLOCATOR: &str =
    "c10/cuda/CUDACachingAllocator.cpp; reserved over allocated of 13 stages on B200 (SimuMax)";
const RULES: &str =
    "c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.11): get_free_block, alloc_block, should_split, free_block";
const CONTEXT: &str = "catalog: bytes of the driver context on the accelerator";
const NCCL: &str = "NCCL src/include/device.h: buffers of the LL, LL128 and Simple protocols per connection";
const DEEPSPEED: &str = "deepspeed/runtime/zero/stage_1_and_2.py: reduce_bucket_size, allgather_bucket_size";
const FLAT: &str = "deepspeed/runtime/zero/stage_1_and_2.py:step";
const STREAMS: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:foreach_reduce; \
                       c10/cuda/CUDACachingAllocator.cpp: blocks by stream";
const BF16: &str = "deepspeed/runtime/bf16_optimizer.py:_setup_for_real_optimizer";
const ENGINE: &str = "deepspeed/runtime/engine.py:buffered_allreduce_fallback";

static SLACK: Formula = Formula::new(
    "k+q·N",
    "Blocks split or cached and not in use: k bytes and the fraction q of what is not state. On a full device the allocator frees what it can, at the cost of a synchronization; they are counted all the same.",
    ALLOCATOR,
).letters(&[("k", "bytes cached whatever the run"), ("q", "part of N that is cached"), ("N", "bytes allocated that are not states")]);
static FOLLOWED: Formula = Formula::new(
    "R-N",
    "Blocks split or cached and not in use: whole steps' allocations replayed in order under the allocator's rules reserve R bytes, less N allocated.",
    RULES,
).letters(&[("R", "bytes reserved"), ("N", "bytes allocated")]);
static DRIVER: Formula = Formula::new("C", "The CUDA context and the loaded kernels.", CONTEXT)
    .letters(&[("C", "bytes of the driver context")]);
static COMMUNICATORS: Formula = Formula::new("c·Z", "Buffers of c communicators, Z bytes each.", NCCL)
    .letters(&[("c", "communicators of the rank"), ("Z", "bytes of one")]);
static EXCHANGE: Formula = Formula::new(
    "Z",
    "DeepEP's buffer, from which the node's other ranks read what is sent to their experts.",
    "deepseek-ai/DeepEP csrc/legacy/config.hpp:get_nvl_buffer_size_hint, csrc/legacy/buffer.hpp",
)
.letters(&[("Z", "bytes of the buffer")]);
static BUCKETS: Formula =
    Formula::new("w·K", "Two buckets of K elements: to reduce gradients, and to gather weights.", DEEPSPEED)
        .letters(&[("K", "elements"), ("w", "bytes per element")]);
static REDUCED: Formula =
    Formula::new("w·K", "A flattened copy of K elements of fp32 gradients, which is reduced.", ENGINE)
        .letters(&[("K", "elements"), ("w", "bytes per element")]);
static FLAT_COPIES: Formula = Formula::new(
    "w·K",
    "Flat copies of the K elements that the rank updates: gradient in 16 and 32 bits, weight in 16 bits, less \
     those alive at the peak.",
    FLAT,
).letters(&[("K", "elements that the rank updates"), ("w", "bytes per element")]);
static FIRST_WEIGHTS: Formula = Formula::new(
    "w·K",
    "Blocks of the weights from before they were put into one flat buffer; freed, but cached.",
    BF16,
)
.letters(&[("K", "weights of the rank"), ("w", "bytes per element")]);

static REDUCING: Formula = Formula::new(
    "G",
    "Blocks for sharded gradients that backward has yet to produce: freed after the previous step, they stay with the reduction \
     stream, and no other stream can reuse them.",
    STREAMS,
).letters(&[("G", "bytes of the shards of gradients that are not made yet")]);

/// Bytes that the caching allocator always holds beyond those in use.
const SLACK_LEAST: Bytes = Bytes::mib(920);
/// Share of the moving bytes that it holds in addition.
const SLACK_PART: f64 = 0.14;
/// The same share if only fragmentation remains, the smallest seen in those 13 stages. This applies if the device is
/// full and cached blocks are released, and if segments grow (`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`), so
/// that free neighbours merge into one block usable by anything that fits. No published run states allocated and
/// reserved bytes under growing segments, so nothing is fitted there. The difference between reported reserved bytes
/// and our allocated ones, taken as slack, would put the share at -0.10 (torchtitan on B200), 0.15 (H100, ms-swift)
/// and 0.3 (torchtitan's 70B): errors of other terms.
const SLACK_PART_LEAST: f64 = 0.07;
/// Bytes of one communicator's buffers: 16 channels of two connections of 9.2 MiB.
const COMMUNICATOR: Bytes = Bytes::mib(294);
/// Elements of DeepSpeed's default buckets.
const BUCKET: u64 = 500_000_000;
/// Bytes of the flat copies per element of a rank's share.
const FLAT_WIDTH: u64 = 8;
/// Of these, bytes that the optimizer step counts among its own.
const FLAT_IN_STEP: u64 = 4;

/// The constants above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    let count = |count: u64| Count::new(count).number();
    let mib = |bytes: Bytes| bytes.in_mib();
    vec![
        Constant::new(
            ("SLACK_LEAST", mib(SLACK_LEAST), "MiB"),
            "that the caching allocator holds beside what is in use, whatever runs",
            ALLOCATOR,
        ),
        Constant::new(
            ("SLACK_PART", SLACK_PART, ""),
            "part of the moving bytes that it holds beside what is in use",
            ALLOCATOR,
        ),
        Constant::new(
            ("SLACK_PART_LEAST", SLACK_PART_LEAST, ""),
            "the same where cached blocks are given back: on a full device, and where segments grow",
            ALLOCATOR,
        ),
        Constant::new(
            ("COMMUNICATOR", mib(COMMUNICATOR), "MiB"),
            "of one communicator's buffers: 16 channels of two connections of 9.2 MiB",
            NCCL,
        ),
        Constant::new(("BUCKET", count(BUCKET), "elements"), "of DeepSpeed's default buckets", DEEPSPEED),
        Constant::new(
            ("FLAT_WIDTH", count(FLAT_WIDTH), "B"),
            "of DeepSpeed's flat copies per element of a rank's part",
            FLAT,
        ),
        Constant::new(
            ("FLAT_IN_STEP", count(FLAT_IN_STEP), "B"),
            "of these, that the optimizer step has among its own",
            FLAT,
        ),
    ]
}

/// The inputs of these terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Bytes of activations and temporaries at the peak.
    pub(super) moving: Bytes,
    /// FSDP's sharded gradients that do not exist yet.
    pub(super) reducing: Bytes,
    /// Bytes allocated at the peak.
    pub(super) allocated: Bytes,
    /// Whether the peak is in the optimizer step.
    pub(super) in_step: bool,
    /// Whether it is in an evaluation, whose allocations are not simulated.
    pub(super) in_evaluation: bool,
    /// Parameters of the rank.
    pub(super) parameters: Count,
    /// Parameters whose optimizer states the rank holds.
    pub(super) part: Count,
}

/// Device memory besides the tensors in use: CUDA context and communicators, DeepSpeed's flat buffers, allocator
/// slack.
#[derive(Clone, Debug)]
pub(super) struct Framework<'a> {
    /// Held outside torch's allocator.
    outside: &'a Outside,
    /// DeepSpeed's flat buffers.
    flat: Vec<Term>,
    /// Held by torch's allocator for the stream that reduces gradients.
    reducing: Option<Term>,
    /// Held by torch's allocator but not in use.
    slack: Option<Term>,
    /// The part of these bytes that the allocator releases when the device is full.
    returnable: Bytes,
}

/// What every rank of a plan holds outside of torch's allocator.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    terms: [Option<Term>; 3],
    bytes: Bytes,
}

impl Outside {
    /// The terms of `x`'s plan.
    pub(super) fn new(x: &Symbols<'_>) -> Self {
        let left = x.recipe().left_out;
        let context = (!left.context).then(|| context(x));
        let terms = if x.recipe().software.semantics().compiled_step {
            // Exchanges are tensors of the program.
            [context, None, None]
        } else {
            let exchange = (!left.communicators).then(|| exchange(x));
            let communicators = (!left.communicators).then(|| communicators(x));
            [context, communicators, exchange.filter(|term| term.bytes > Bytes::ZERO)]
        };
        Self { bytes: sum(terms.iter().flatten()), terms }
    }
}

impl<'a> Framework<'a> {
    /// Only what is outside of torch's allocator.
    pub(super) const fn nothing_but(outside: &'a Outside) -> Self {
        Self { outside, flat: Vec::new(), reducing: None, slack: None, returnable: Bytes::ZERO }
    }

    /// The terms of a rank with `load`.
    pub(super) fn new(x: &Symbols<'_>, outside: &'a Outside, load: Load) -> Self {
        let left = x.recipe().left_out;
        if x.recipe().software.semantics().compiled_step {
            // The program owns the rest of the device: no allocator splits or caches.
            return Self::nothing_but(outside);
        }
        let flat: Vec<Term> = flat_buffers(x, load).iter().map(Flat::term).collect();
        // Expandable segments merge free neighbours into one block, so less is lost to fragmentation.
        let part = if grows_segments(x) { SLACK_PART_LEAST } else { SLACK_PART };
        let followed = if left.slack || load.in_evaluation { None } else { reserved(x) };
        if let Some(reserved) = followed {
            return Self::followed(outside, load, reserved);
        }
        let slack = (!left.slack).then(|| slack(load, part));
        // Flat buffers are allocated after activations are freed, so on a full device they reuse that space.
        let least = slack.as_ref().map_or(Bytes::ZERO, |_| slack_bytes(load, SLACK_PART_LEAST));
        let reducing = (!left.slack && load.reducing > Bytes::ZERO).then(|| {
            Term::new("blocks of gradients to come", load.reducing, &REDUCING)
                .given(&[("G", load.reducing.number())])
        });
        // Blocks that the allocator can return by `cudaFree` once an allocation fails: reserved memory beyond this is
        // not needed to fit.
        let returnable = sum(&flat).min(load.moving) + sum(&slack).less(least) + sum(&reducing);
        Self { outside, flat, reducing, slack, returnable }
    }

    /// The terms if the order of allocations is known, and therefore how much is `reserved`.
    fn followed(outside: &'a Outside, load: Load, reserved: Reserved) -> Self {
        let cached = reserved.bytes.less(load.allocated);
        let given = [("R", (load.allocated + cached).number()), ("N", load.allocated.number())];
        let slack = Term::new("allocator slack", cached, &FOLLOWED).given(&given);
        let returnable = cached.min(reserved.bytes.less(reserved.needed));
        Self { slack: Some(slack), returnable, ..Self::nothing_but(outside) }
    }

    /// Every term.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.outside.terms.iter().flatten().chain(&self.flat).chain(&self.reducing).chain(&self.slack)
    }

    /// Bytes that torch's allocator holds beyond those allocated.
    pub(super) fn cached(&self) -> Bytes {
        sum(self.flat.iter().chain(&self.reducing).chain(&self.slack))
    }

    /// Bytes that the allocator releases when the device is full.
    pub(super) fn returnable(&self) -> Bytes {
        self.returnable
    }

    /// Bytes outside torch's allocator.
    pub(super) fn outside(&self) -> Bytes {
        self.outside.bytes
    }

    /// Total bytes.
    pub(super) fn bytes(&self) -> Bytes {
        self.outside.bytes + self.cached()
    }
}

fn sum<'a>(terms: impl IntoIterator<Item = &'a Term>) -> Bytes {
    terms.into_iter().map(|term| term.bytes).sum()
}

fn context(x: &Symbols<'_>) -> Term {
    let context = x.plan.cluster().accelerator.context;
    Term::new("driver context", context, &DRIVER).given(&[("C", context.number())])
}

fn communicators(x: &Symbols<'_>) -> Term {
    let count = groups(x);
    Term::new("communicator buffers", COMMUNICATOR * count, &COMMUNICATORS)
        .given(&[("c", Count::new(count).number()), ("Z", COMMUNICATOR.number())])
}

fn exchange(x: &Symbols<'_>) -> Term {
    let bytes = exchange_buffer(x);
    Term::new("buffer of the experts' exchange", bytes, &EXCHANGE).given(&[("Z", bytes.number())])
}

/// What the allocator caches, regardless of the device's capacity: an excess is shown, not cut off.
fn slack_bytes(load: Load, part: f64) -> Bytes {
    SLACK_LEAST + Count::rounded_up(load.moving.number() * part).bytes(1)
}

fn slack(load: Load, part: f64) -> Term {
    let moving = load.moving.number();
    let cached = slack_bytes(load, part);
    let part = cached.less(SLACK_LEAST).number() / moving.max(1.0);
    let given = [("k", SLACK_LEAST.number()), ("q", part), ("N", moving)];
    Term::new("allocator slack", cached, &SLACK).given(&given)
}

/// One of DeepSpeed's flat buffers.
struct Flat {
    name: &'static str,
    elements: Count,
    width: u64,
    formula: &'static Formula,
}

impl Flat {
    fn term(&self) -> Term {
        let given = [("K", self.elements.number()), ("w", Count::new(self.width).number())];
        Term::new(self.name, self.elements.bytes(self.width), self.formula).given(&given)
    }
}

/// DeepSpeed's flat buffers, which are larger than any free block when they are allocated.
fn flat_buffers(x: &Symbols<'_>, load: Load) -> Vec<Flat> {
    let recipe = x.recipe();
    if !recipe.software.semantics().deepspeed_engine
        || recipe.dp_sharding == DpSharding::Replicated
        || recipe.left_out.flat
    {
        return Vec::new();
    }
    let flat = |name, elements, width, formula| Flat { name, elements, width, formula };
    let bucket = load.parameters.min(Count::new(BUCKET));
    // The bf16 optimizer's; ZeRO's own has the same buffers in bf16 as in fp16.
    if keeps_both_gradients(recipe) {
        // A single replica reduces nothing, so the copy is never made.
        let shared = u64::from(x.plan.layout().data > 1);
        return vec![
            flat("flat copy to reduce", bucket, 4 * shared, &REDUCED),
            flat("blocks of the first weights", load.parameters, 2, &FIRST_WEIGHTS),
        ];
    }
    let width = if load.in_step { FLAT_WIDTH - FLAT_IN_STEP } else { FLAT_WIDTH };
    vec![
        flat("reduction and gather buckets", bucket, 2 * x.width, &BUCKETS),
        flat("flat copies of the step", load.part, width, &FLAT_COPIES),
    ]
}

/// The number of communicators that a rank belongs to, counting groups of more than one rank: tensor, pipeline (one
/// per neighbour), data, context, expert, all ranks of one replica (for the gradient norm), and all ranks.
fn groups(x: &Symbols<'_>) -> u64 {
    let layout = x.plan.layout();
    let data = layout.data.saturating_mul(layout.context);
    let sizes =
        [layout.tensor, data, layout.context, layout.expert, layout.model_parallel(), layout.world_size];
    let groups: u64 = sizes.iter().map(|&size| u64::from(size > 1)).sum();
    // PyTorch makes a communicator of two ranks for each peer of a send or receive (ProcessGroupNCCL.cpp).
    groups + 2 * u64::from(layout.pipeline > 1)
}
