//! Gradient buffers and their buckets: what a data-parallel collective carries
//! (`megatron/core/distributed/param_and_grad_buffer.py`, `distributed_data_parallel.py`).

use super::ddp_buckets;
use crate::constant::Constant;
use shardscope_operators::{Creation, Order, Symbols, Weight, WeightGroup, WeightRole, are_alike};
use shardscope_plan::{
    Chunk, DdpBuckets, DpSharding, Embeddings, GradientBuffers, NumberFormat, Plan, Recipe, Stage,
};
use shardscope_units::{Count, Quantity};

/// Under the distributed optimizer, each parameter begins at a multiple of this many elements.
const PARAMETER_ALIGNMENT: u64 = 64;
/// Each bucket ends at a multiple of this many elements and of the number of shards.
const BUCKET_ALIGNMENT: u64 = 128;
/// Minimum number of elements in a bucket with overlapped gradient reduction.
const LEAST_BUCKET: u64 = 40_000_000;
/// The same minimum per data-parallel rank.
const BUCKET_PER_RANK: u64 = 1_000_000;

/// The constants above, for the list of constants.
pub(crate) fn constants() -> Vec<Constant> {
    let buffer = "megatron/core/distributed/param_and_grad_buffer.py";
    let bucket = "megatron/core/distributed/distributed_data_parallel.py";
    let count = |count: u64| Count::new(count).number();
    vec![
        Constant::new(
            ("PARAMETER_ALIGNMENT", count(PARAMETER_ALIGNMENT), "elements"),
            "at a multiple of which each parameter begins under the distributed optimizer",
            buffer,
        ),
        Constant::new(
            ("BUCKET_ALIGNMENT", count(BUCKET_ALIGNMENT), "elements"),
            "of which, and of the number of shards, each bucket ends at a multiple",
            buffer,
        ),
        Constant::new(
            ("LEAST_BUCKET", count(LEAST_BUCKET), "elements"),
            "of a bucket with overlapped gradient reduction, at least",
            bucket,
        ),
        Constant::new(
            ("BUCKET_PER_RANK", count(BUCKET_PER_RANK), "elements"),
            "of a bucket for each data-parallel rank, at least",
            bucket,
        ),
    ]
}

/// Parameters of one chunk whose gradients are reduced together: one number format, one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Dense, or reduced over the expert data-parallel group.
    pub group: WeightGroup,
    /// Number format of the weights.
    pub format: NumberFormat,
    /// Number format in which their gradients are sent.
    pub sent: NumberFormat,
    /// Ranks among which it is sharded, or over which it is reduced if nothing is sharded.
    pub shards: u64,
    /// Number of elements at which a bucket is closed; none if everything is in one bucket.
    pub bucket_size: Option<u64>,
    /// Elements of the parameters, without padding.
    pub parameters: u64,
    /// Elements of each bucket, including padding, in order.
    pub buckets: Vec<u64>,
}

impl Buffer {
    /// Elements, including padding.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// How parameters are laid out.
#[derive(Clone, Copy)]
struct Rules {
    /// A parameter begins at a multiple of this many elements.
    start: u64,
    /// A bucket ends at a multiple of this many elements.
    end: u64,
    /// Whether a tied embedding gets its own bucket.
    own_bucket: bool,
    bucket_size: Option<u64>,
}

/// The buffers of `chunk` on `stage`, dense before expert.
#[must_use]
pub fn buffers(plan: &Plan, stage: usize, chunk: usize) -> Vec<Buffer> {
    let Some(held) = plan.layout().stages.stages.get(stage).and_then(|stage| stage.chunks.get(chunk)) else {
        return Vec::new();
    };
    let x = Symbols::new(plan);
    if let Some(rules) = plan.recipe().transformers.ddp {
        return of_ddp(&x, held, rules);
    }
    let creation = Creation::new(&x, held, Order::Megatron);
    let fp8 = plan.recipe().fp8.as_ref().is_some_and(|fp8| fp8.param_gather);
    let first = stage == 0 && chunk == 0;
    let recipe = plan.recipe();
    let sent = recipe.reduce_dtype();
    let formats =
        if fp8 { vec![(recipe.params_dtype, sent), (NumberFormat::Fp8, sent)] } else { formats(recipe) };
    let apart = sent != recipe.adapters_reduce_dtype();
    let mut out = Vec::new();
    for group in [WeightGroup::Dense, WeightGroup::Expert] {
        for (index, &(format, sent)) in formats.iter().enumerate() {
            let rules = Rules::new(plan, group, first);
            let mut filling = Filling::new(rules);
            // Megatron fills buckets in the order in which backward finishes gradients: the last parameter created
            // comes first.
            for weight in creation.backwards() {
                if weight.group == group
                    && weight.role.trains()
                    && (!fp8 || (weight.linear == (format == NumberFormat::Fp8)))
                    && (!apart || (weight.role == WeightRole::Adapter) == (index > 0))
                {
                    filling.add(plan, weight);
                }
            }
            let (parameters, buckets) = filling.finish();
            if parameters > 0 {
                let shards = shards(plan, group);
                out.push(Buffer {
                    group,
                    format,
                    sent,
                    shards,
                    bucket_size: rules.bucket_size,
                    parameters,
                    buckets,
                });
            }
        }
    }
    out
}

/// The buffers of PyTorch's DDP, one for each format, whose buckets are tensors of their own.
fn of_ddp(x: &Symbols<'_>, chunk: &Chunk, rules: DdpBuckets) -> Vec<Buffer> {
    let (formats, group) = (formats(x.recipe()), WeightGroup::Dense);
    let filled = ddp_buckets::buckets(x, chunk, rules, &formats).into_iter().zip(&formats);
    let buffer = |(buckets, &(format, sent)): (Vec<u64>, &(NumberFormat, NumberFormat))| Buffer {
        group,
        format,
        sent,
        shards: shards(x.plan, group),
        bucket_size: None,
        parameters: buckets.iter().sum(),
        buckets,
    };
    filled.map(buffer).filter(|buffer| buffer.parameters > 0).collect()
}

/// Formats of weights and of the gradients that are sent. Where adapters are sent in a format of their own, they are in it too: the
/// second.
fn formats(recipe: &Recipe) -> Vec<(NumberFormat, NumberFormat)> {
    let (sent, of_adapters) = (recipe.reduce_dtype(), recipe.adapters_reduce_dtype());
    let all = [(recipe.module_dtype(), sent), (of_adapters, of_adapters)];
    all.into_iter().take(if sent == of_adapters { 1 } else { 2 }).collect()
}

/// The buffers of every stage and chunk; equal chunks are laid out only once.
#[must_use]
pub fn all_buffers(plan: &Plan) -> Vec<Vec<Vec<Buffer>>> {
    let x = Symbols::new(plan);
    let mut known: Vec<(&Chunk, Vec<Buffer>)> = Vec::new();
    let stages = plan.layout().stages.stages.iter().enumerate();
    let mut of = |stage: usize, index: usize, chunk| {
        // Megatron only splits the first chunk of the first stage into buckets: the reduction of the others is not on
        // the critical path (distributed_data_parallel.py).
        if stage == 0 && index == 0 {
            return buffers(plan, stage, index);
        }
        if let Some((_, buffers)) = known.iter().find(|(other, _)| are_alike(&x, chunk, other)) {
            return buffers.clone();
        }
        let found = buffers(plan, stage, index);
        known.push((chunk, found.clone()));
        found
    };
    let mut all = Vec::with_capacity(stages.len());
    for (stage, held) in stages {
        let mut buffers = Vec::with_capacity(held.chunks.len());
        for (index, chunk) in held.chunks.iter().enumerate() {
            buffers.push(of(stage, index, chunk));
        }
        all.push(buffers);
    }
    all
}

/// Ranks over which `group`'s gradients are sharded or reduced, within one optimizer instance.
pub(super) fn shards(plan: &Plan, group: WeightGroup) -> u64 {
    match group {
        WeightGroup::Dense => plan.layout().dense_shards(),
        WeightGroup::Expert => plan.layout().expert_shards(),
    }
}

impl Rules {
    fn new(plan: &Plan, group: WeightGroup, first: bool) -> Self {
        let (layout, recipe) = (plan.layout(), plan.recipe());
        let shards = shards(plan, group);
        let replicas = layout.data * layout.context;
        let bucket_size = (recipe.overlap.grad_reduce && first)
            .then(|| LEAST_BUCKET.max(BUCKET_PER_RANK.saturating_mul(replicas)));
        let plain = Self { start: 1, end: 1, own_bucket: false, bucket_size };
        // Padding allows a buffer to be cut into equal shards; an all-reduce needs none.
        if recipe.dp_sharding == DpSharding::Replicated {
            plain
        } else if recipe.software.semantics().gradient_buffers == GradientBuffers::MegatronLegacy {
            Self { end: shards, bucket_size: None, ..plain }
        } else {
            let end = least_common_multiple(shards, BUCKET_ALIGNMENT);
            Self { start: PARAMETER_ALIGNMENT, end, own_bucket: true, bucket_size }
        }
    }
}

fn least_common_multiple(one: u64, other: u64) -> u64 {
    let (mut a, mut b) = (one, other);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    (one / a.max(1)).saturating_mul(other).max(1)
}

/// A buffer being filled.
struct Filling {
    rules: Rules,
    /// Where the open bucket begins.
    begin: u64,
    /// Where its last parameter ends.
    end: u64,
    open: bool,
    parameters: u64,
    buckets: Vec<u64>,
}

impl Filling {
    fn new(rules: Rules) -> Self {
        Self { rules, begin: 0, end: 0, open: false, parameters: 0, buckets: Vec::new() }
    }

    /// Adds a weight, expert by expert if it belongs to routed experts.
    fn add(&mut self, plan: &Plan, weight: &Weight) {
        let pieces = if weight.is_routed() { weight.local.first().copied().unwrap_or(1).max(1) } else { 1 };
        let elements = weight.count().get() / pieces;
        // With its own bucket, both stages shard the tied embedding identically, so the reduce-scatter over replicas
        // can come before the all-reduce between stages (`_does_param_require_new_bucket` of Megatron core).
        let own = self.rules.own_bucket && is_tied(plan, weight);
        // Each local expert's weight is a separate parameter, which may close a bucket.
        for _ in 0..pieces {
            self.place(elements, own);
        }
    }

    fn place(&mut self, elements: u64, own_bucket: bool) {
        if own_bucket && self.open {
            self.close();
        }
        let start = self.end.next_multiple_of(self.rules.start);
        self.end = start.saturating_add(elements);
        self.parameters = self.parameters.saturating_add(elements);
        self.open = true;
        let full = self.rules.bucket_size.is_some_and(|size| self.end - self.begin >= size);
        if full || own_bucket {
            self.close();
        }
    }

    fn close(&mut self) {
        let end = self.end.next_multiple_of(self.rules.end);
        self.buckets.push(end - self.begin);
        self.begin = end;
        self.end = end;
        self.open = false;
    }

    fn finish(mut self) -> (u64, Vec<u64>) {
        if self.open {
            self.close();
        }
        (self.parameters, self.buckets)
    }
}

/// Whether `weight` is a word embedding held by both the first and the last stage
/// (`megatron/core/models/common/language_module/language_module.py`).
pub(super) fn is_tied(plan: &Plan, weight: &Weight) -> bool {
    shares_embedding(plan) && weight.is_word_embedding()
}

/// Whether two stages hold the same word embedding: the first stage's is shared with the output layer, or with
/// multi-token prediction, on another stage. In a folded pipeline both ends are on one stage.
pub(super) fn shares_embedding(plan: &Plan) -> bool {
    let stages = &plan.layout().stages.stages;
    let mut holders = stages.iter().filter(|stage| holds_embedding(plan, stage));
    holders.next().is_some() && holders.next().is_some()
}

/// Whether `stage` holds the word embedding, as such or as part of another component.
pub(super) fn holds_embedding(plan: &Plan, stage: &Stage) -> bool {
    let tied = plan.model().embeddings == Embeddings::Tied;
    let predicts = stage.chunks.iter().any(|chunk| chunk.mtp_layers > 0);
    stage.has_embedding() || (tied && stage.has_output_layer()) || predicts
}
