//! Every cut of a plan worth trying, in a fixed order.

use shardscope_plan::{AttentionKernel, Plan, Recompute, RecomputeModule, Variant};

/// Deepest pipeline tried. Beyond it the bubble wants thousands of micro-batches.
const MAX_PIPELINE: u64 = 64;
/// Most chunks per rank tried; more chunks send more for ever less bubble.
const MAX_CHUNKS: u64 = 8;
/// Shortest sequence left on a rank by context parallelism. Unit: token.
const MIN_LOCAL_SEQUENCE: u64 = 2048;
/// Largest micro-batch tried.
const MAX_MICRO_BATCH: u64 = 16;

/// The values each dimension takes; their product, less what Megatron refuses, is the space.
#[derive(Clone, Debug)]
pub struct Space {
    base: Variant,
    tensor: Vec<u64>,
    pipeline: Vec<u64>,
    chunks: Vec<u64>,
    context: Vec<u64>,
    experts: Vec<(u64, bool)>,
    micro_batch: Vec<u64>,
    recompute: Vec<Recompute>,
}

impl Space {
    /// The space around `plan`: same model, machines, batch and optimizer.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let (model, layout) = (plan.model(), plan.layout());
        let base = Variant::of(plan);
        let domain = plan.cluster().fast_domain.max(plan.cluster().gpus_per_node);
        let mut tensor = Vec::with_capacity(12);
        for t in doubling(domain) {
            if model.num_attention_heads.is_multiple_of(t) {
                tensor.push(t);
            }
        }
        let mut pipeline = Vec::new();
        for p in 1..=MAX_PIPELINE {
            if model.num_layers.is_multiple_of(p) && layout.world_size.is_multiple_of(p) {
                pipeline.push(p);
            }
        }
        let longest = (model.seq_length / MIN_LOCAL_SEQUENCE).max(1);
        let mut experts = Vec::new();
        for e in doubling(model.experts.as_ref().map_or(0, |experts| experts.num_experts)) {
            if model.experts.as_ref().is_some_and(|experts| experts.num_experts.is_multiple_of(e)) {
                experts.push((e, false));
                experts.push((e, true));
            }
        }
        if model.experts.is_none() {
            experts.push((1, true));
        }
        Self {
            tensor: with(tensor, base.tensor),
            pipeline: with(pipeline, base.pipeline),
            chunks: match base.schedule.own_chunks() {
                Some(own) => vec![own],
                None => with(doubling(MAX_CHUNKS), base.virtual_pipeline),
            },
            context: with(doubling(longest), base.context),
            experts,
            micro_batch: with(doubling(MAX_MICRO_BATCH), base.micro_batch_size),
            recompute: recomputations(plan),
            base,
        }
    }

    /// How many combinations there are, refused ones counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.sizes().iter().product()
    }

    /// Whether there is nothing to try.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Combination number `index`; none past the end or where the degrees contradict each other at sight.
    #[must_use]
    pub fn variant(&self, index: u64) -> Option<Variant> {
        let mut rest = index;
        let mut digits = [0_usize; 7];
        for (digit, size) in digits.iter_mut().zip(self.sizes()) {
            *digit = usize::try_from(rest % size).ok()?;
            rest /= size;
        }
        if rest > 0 {
            return None;
        }
        let [recompute, micro_batch, experts, context, chunks, pipeline, tensor] = digits;
        let (expert, whole) = *self.experts.get(experts)?;
        let tensor = *self.tensor.get(tensor)?;
        let pipeline = *self.pipeline.get(pipeline)?;
        let virtual_pipeline = *self.chunks.get(chunks)?;
        if virtual_pipeline > 1 && pipeline < 2 || !whole && tensor == 1 {
            return None;
        }
        Some(Variant {
            tensor,
            pipeline,
            virtual_pipeline,
            schedule: self.base.schedule,
            context: *self.context.get(context)?,
            expert,
            expert_tensor: if whole { 1 } else { tensor },
            sequence_parallel: tensor > 1,
            micro_batch_size: *self.micro_batch.get(micro_batch)?,
            recompute: self.recompute.get(recompute)?.clone(),
            sharding: self.base.sharding,
        })
        .map(|variant| self.dense(variant))
    }

    /// Where the search starts.
    #[must_use]
    pub fn base(&self) -> &Variant {
        &self.base
    }

    /// Without experts the expert tensor size follows the tensor size, as in Megatron.
    fn dense(&self, mut variant: Variant) -> Variant {
        if self.experts.len() == 1 && variant.expert == 1 {
            variant.expert_tensor = variant.tensor;
        }
        variant
    }

    fn sizes(&self) -> [u64; 7] {
        [
            self.recompute.len() as u64,
            self.micro_batch.len() as u64,
            self.experts.len() as u64,
            self.context.len() as u64,
            self.chunks.len() as u64,
            self.pipeline.len() as u64,
            self.tensor.len() as u64,
        ]
    }
}

/// Powers of two up to `limit`, twelve at most.
fn doubling(limit: u64) -> Vec<u64> {
    let mut values = Vec::with_capacity(12);
    for power in 0..12 {
        if 1 << power <= limit {
            values.push(1 << power);
        }
    }
    values
}

fn with(mut values: Vec<u64>, value: u64) -> Vec<u64> {
    if !values.contains(&value) {
        values.push(value);
        values.sort();
    }
    values
}

/// None, what is cheap for this plan's attention and experts, everything, and the plan's own.
fn recomputations(plan: &Plan) -> Vec<Recompute> {
    let mut kinds = vec![Recompute::None];
    if plan.recipe().attention_kernel == AttentionKernel::Unfused {
        kinds.push(Recompute::Selective(vec![RecomputeModule::CoreAttention]));
    }
    if plan.model().experts.is_some() {
        kinds.push(Recompute::Selective(vec![RecomputeModule::MoeActivation, RecomputeModule::LayerNorm]));
    }
    kinds.push(Recompute::Uniform { num_layers: 1, distribute: false });
    if !kinds.contains(&plan.recipe().recompute) {
        kinds.push(plan.recipe().recompute.clone());
    }
    kinds
}
