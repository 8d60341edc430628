//! Gradients and weights between replicas (`megatron/core/distributed`, `megatron/core/optimizer`).

use super::buffers::{Buffer, all_buffers};
use super::builder::{Builder, Calls, Sent};
use super::ddp_buckets;
use super::ledger::{Parallelism, Place};
use crate::parameters::stays_gathered;
use shardscope_explain::Formula;
use shardscope_operators::{Collective, Pass, SectionKind, Shape, WeightGroup, section_counts};
use shardscope_plan::{DpSharding, NumberFormat};
use shardscope_topology::GroupKind;

const BUFFER: &str = "megatron/core/distributed/param_and_grad_buffer.py";
const FSDP: &str = "megatron/core/distributed/fsdp; torch.distributed.fsdp";
/// Elements per reduction or gather in DeepSpeed (`reduce_bucket_size`, `allgather_bucket_size`).
const DEEPSPEED_BUCKET: u64 = 500_000_000;

static REDUCE: Formula = Formula::new(
    "elements·Bg",
    "All-reduce: every replica ends up with the sum of all gradients of a bucket.",
    BUFFER,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static SCATTER: Formula = Formula::new(
    "elements·Bg",
    "Reduce-scatter: each replica ends up with the summed gradients of the shard whose optimizer states it holds.",
    BUFFER,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static ACROSS: Formula = Formula::new(
    "elements·Bg",
    "Gradient shards are all-reduced across distributed optimizer instances.",
    BUFFER,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static GATHER: Formula = Formula::new(
    "elements·B",
    "All-gather: each replica gets the weights that the others have updated.",
    BUFFER,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static GATHER_FP8: Formula = Formula::new(
    "elements",
    "All-gather: each replica gets the weights that the others have updated, in fp8.",
    BUFFER,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static UNIT_GATHER: Formula = Formula::new(
    "elements·B",
    "The weights of an FSDP unit are all-gathered just before they are used.",
    FSDP,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);
static UNIT_SCATTER: Formula = Formula::new(
    "elements·Bg",
    "The gradients of an FSDP unit are reduce-scattered as soon as they are computed.",
    FSDP,
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);

static USED: Formula = Formula::new(
    "4·elements",
    "PyTorch's DDP, where it looks for parameters without a gradient: how often each was used since the last reduction, int32.",
    "torch/csrc/distributed/c10d/reducer.cpp:all_reduce_local_used_map",
)
.letters(&[("elements", "elements of the tensor passed to the collective")]);

static COLUMNS: Formula = Formula::new(
    "n·h·B",
    "Each device has some columns of the embedding, looks up the tokens of all, and sends the others theirs.",
    "tests/data/maxtext/exchanges.jsonl: MaxText's train step as XLA's partitioner cuts it",
);

/// Adds the messages between replicas.
pub(super) fn add(builder: &mut Builder<'_>) {
    if builder.plan().gathers_units() {
        units(builder);
    } else {
        whole_buffers(builder);
    }
}

/// Buckets of one size in one buffer, and how often they occur on one stage.
struct Buckets {
    stage: usize,
    group: WeightGroup,
    format: NumberFormat,
    /// Format of the gradients.
    sent: NumberFormat,
    elements: u64,
    calls: u64,
}

fn whole_buffers(builder: &mut Builder<'_>) {
    let plan = builder.plan();
    let sharding = plan.recipe().dp_sharding;
    used_tensors(builder);
    for bucket in all_buckets(builder) {
        let once = once_on(builder, &bucket);
        // After an all-reduce every replica steps all weights itself, so nothing is gathered.
        if sharding == DpSharding::Replicated {
            gradients(builder, &bucket, Collective::AllReduce, once);
            continue;
        }
        let reductions =
            if plan.reduces_each_backward() { each_backward(builder, &bucket) } else { once.clone() };
        gradients(builder, &bucket, Collective::ReduceScatter, reductions.clone());
        // Across instances once per step: after the last micro-batch (`megatron_fsdp.py:_root_post_backward`).
        let shard = bucket.elements / super::buffers::shards(plan, bucket.group);
        across_instances(builder, bucket.group, shard, Place::AfterLastBackward, once.clone());
        let weights = Sent {
            name: name(bucket.group),
            tensor: "weights",
            collective: Collective::AllGather,
            place: Place::AfterOptimizerStep,
            shape: Shape::new(&[bucket.elements]),
            width: bucket.format.width(),
            dtype: bucket.format.name(),
            overlapped: plan.recipe().overlap.param_gather,
            formula: if bucket.format == NumberFormat::Fp8 { &GATHER_FP8 } else { &GATHER },
        };
        builder.add(Parallelism::Data, group(builder, bucket.group), weights, once);
    }
}

/// Where DDP looks for tensors without a gradient, ranks tell each other which theirs are.
fn used_tensors(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let chunk = x.plan.layout().stages.stages.first().and_then(|stage| stage.chunks.first());
    let Some((rules, chunk)) = x.recipe().transformers.ddp.filter(|rules| rules.finds_unused).zip(chunk)
    else {
        return;
    };
    let sent = Sent {
        name: name(WeightGroup::Dense),
        tensor: "map of used parameters",
        collective: Collective::AllReduce,
        place: Place::AfterLastBackward,
        shape: Shape::new(&[ddp_buckets::count(&x, chunk, rules)]),
        width: 4,
        dtype: "int32",
        overlapped: true,
        formula: &USED,
    };
    let once = builder.step_calls(&|_| 1);
    builder.add(Parallelism::Data, GroupKind::DataContext, sent, once);
}

const fn name(group: WeightGroup) -> &'static str {
    match group {
        WeightGroup::Dense => "dense parameters",
        WeightGroup::Expert => "expert parameters",
    }
}

/// The groups over which gradients are reduced and states sharded.
fn group(builder: &Builder<'_>, group: WeightGroup) -> GroupKind {
    let instances = builder.plan().layout().distributed_optimizer_instances > 1;
    match (group, instances) {
        (WeightGroup::Dense, false) => GroupKind::DataContext,
        (WeightGroup::Dense, true) => GroupKind::DataContextInstance,
        (WeightGroup::Expert, false) => GroupKind::ExpertData,
        (WeightGroup::Expert, true) => GroupKind::ExpertDataInstance,
    }
}

fn once_on(builder: &Builder<'_>, bucket: &Buckets) -> Calls {
    builder.step_calls(&|stage| if stage == bucket.stage { bucket.calls } else { 0 })
}

fn each_backward(builder: &Builder<'_>, bucket: &Buckets) -> Calls {
    builder.chunk_calls(&|stage, chunk| if stage == bucket.stage && chunk == 0 { bucket.calls } else { 0 })
}

fn gradients(builder: &mut Builder<'_>, bucket: &Buckets, collective: Collective, calls: Calls) {
    let recipe = builder.plan().recipe();
    let each = calls.per_micro_batch.iter().any(|calls| *calls > 0);
    let sent = Sent {
        name: name(bucket.group),
        tensor: "gradients",
        collective,
        place: if each { Place::AfterEachBackward } else { Place::AfterLastBackward },
        shape: Shape::new(&[bucket.elements]),
        width: bucket.sent.width(),
        dtype: bucket.sent.name(),
        overlapped: recipe.overlap.grad_reduce,
        formula: if collective == Collective::AllReduce { &REDUCE } else { &SCATTER },
    };
    builder.add(Parallelism::Data, group(builder, bucket.group), sent, calls);
}

/// With several optimizer instances, corresponding shards are summed across them.
fn across_instances(builder: &mut Builder<'_>, group: WeightGroup, shard: u64, place: Place, calls: Calls) {
    let plan = builder.plan();
    if plan.layout().distributed_optimizer_instances <= 1 {
        return;
    }
    let recipe = plan.recipe();
    let sent = Sent {
        name: name(group),
        tensor: "gradient shards",
        collective: Collective::AllReduce,
        place,
        shape: Shape::new(&[shard]),
        width: recipe.reduce_dtype().width(),
        dtype: recipe.reduce_dtype().name(),
        overlapped: recipe.overlap.grad_reduce,
        formula: &ACROSS,
    };
    builder.add(Parallelism::Data, GroupKind::ExpertDataAcross, sent, calls);
}

fn all_buckets(builder: &Builder<'_>) -> Vec<Buckets> {
    let plan = builder.plan();
    let deepspeed = plan.recipe().software.semantics().deepspeed_engine;
    let mut out: Vec<Buckets> = Vec::new();
    for (stage, chunks) in all_buffers(plan).into_iter().enumerate() {
        for buffers in chunks {
            for buffer in buffers {
                add_buckets(&mut out, stage, buffer, deepspeed);
            }
        }
    }
    out
}

fn add_buckets(out: &mut Vec<Buckets>, stage: usize, buffer: Buffer, deepspeed: bool) {
    // DeepSpeed fills buckets by elements, wherever parameters end; Megatron closes one at the end of a parameter.
    let sizes = if deepspeed { even_pieces(&buffer) } else { buffer.buckets };
    let Buffer { group, format, sent, .. } = buffer;
    for elements in sizes {
        let same = |other: &&mut Buckets| {
            (other.stage, other.elements) == (stage, elements)
                && (other.group, other.format, other.sent) == (group, format, sent)
        };
        match out.iter_mut().rev().find(same) {
            Some(bucket) => bucket.calls += 1,
            None => out.push(Buckets { stage, group, format, sent, elements, calls: 1 }),
        }
    }
}

fn even_pieces(buffer: &Buffer) -> Vec<u64> {
    let whole = buffer.parameters / DEEPSPEED_BUCKET;
    let rest = buffer.parameters % DEEPSPEED_BUCKET;
    let mut pieces = vec![DEEPSPEED_BUCKET; usize::try_from(whole).unwrap_or(0)];
    pieces.extend((rest != 0).then_some(rest));
    pieces
}

/// Nothing is held unsharded: every unit (a layer, the embedding, the output layer) is gathered in forward and again
/// in backward, and its gradients are scattered, for every micro-batch or only with the last one. FSDP's stage 2 gathers
/// in forward alone.
fn units(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let recipe = x.recipe();
    let compiled = recipe.software.semantics().compiled_step;
    for (index, kind) in SectionKind::ALL.iter().copied().enumerate() {
        let calls = builder.chunk_calls(&|stage, chunk| {
            let held = x.plan.layout().stages.stages.get(stage).and_then(|stage| stage.chunks.get(chunk));
            held.map_or(0, |chunk| section_counts(&x, chunk)[index])
        });
        // Without a pipeline, a stage is one chunk.
        let once = builder.step_calls(&|stage| calls.per_micro_batch.get(stage).copied().unwrap_or(0));
        if calls.per_iteration.iter().all(|calls| *calls == 0) {
            continue;
        }
        for weights in [WeightGroup::Dense, WeightGroup::Expert] {
            let (mut elements, mut trained, mut in_fp8) = (0, 0, 0);
            for weight in kind.weights(&x) {
                if weight.group == weights {
                    elements += weight.count().get();
                    in_fp8 += if kind.gathers_in_fp8(&x, &weight) { weight.count().get() } else { 0 };
                    trained += if weight.role.trains() { weight.count().get() } else { 0 };
                }
            }
            if compiled && weights == WeightGroup::Dense {
                if kind.is_before_layers() {
                    of_columns(builder, kind, &calls);
                    continue;
                }
                if kind.projects_vocabulary() && x.tied() {
                    elements += x.v * x.h;
                    trained += x.v * x.h;
                }
            }
            if elements == 0 {
                continue;
            }
            // Weights of several formats go as bytes (`_fsdp_collectives.py:_get_all_gather_input_metadatas`).
            let module = recipe.module_dtype();
            let (sent, width, dtype) = if in_fp8 > 0 {
                (in_fp8 + (elements - in_fp8) * module.width(), 1, "uint8")
            } else {
                (elements, module.width(), module.name())
            };
            let gather = |pass| Sent {
                name: name(weights),
                tensor: "weights",
                collective: Collective::AllGather,
                place: Place::AheadOf(kind, pass),
                shape: Shape::new(&[sent]),
                width,
                dtype,
                // One unit ahead, while the previous unit computes.
                overlapped: true,
                formula: &UNIT_GATHER,
            };
            let scatter = Sent {
                tensor: "gradients",
                collective: Collective::ReduceScatter,
                width: recipe.reduce_dtype().width(),
                dtype: recipe.reduce_dtype().name(),
                formula: &UNIT_SCATTER,
                shape: Shape::new(&[trained]),
                ..gather(Pass::Backward)
            };
            let group = group(builder, weights);
            // ZeRO++ gathers from secondary shards, except in a step's first forward, which creates them
            // (`partition_parameters.py:all_gather_coalesced`).
            let second = x.plan.layout().second_groups() > 1 && weights == WeightGroup::Dense;
            let near = if second { GroupKind::SecondShards } else { group };
            let at_first = second || !x.plan.gathers_each_micro_batch();
            let first = if at_first { once.clone() } else { calls.clone() };
            if second {
                let less = |(all, once): (&u64, &u64)| all.saturating_sub(*once);
                let per_iteration = calls.per_iteration.iter().zip(&once.per_iteration).map(less).collect();
                let later = Calls { per_iteration, ..calls.clone() };
                builder.add(Parallelism::Data, near, gather(Pass::Forward), later);
            }
            builder.add(Parallelism::Data, group, gather(Pass::Forward), first);
            // Backward gathers once more: what forward gathered was freed after the layer (reshard_after_forward).
            if !kind.has_no_backward(&x) && !stays_gathered(&x, kind) {
                builder.add(Parallelism::Data, near, gather(Pass::Backward), calls.clone());
            }
            if trained > 0 {
                let calls = if x.plan.reduces_each_backward() { calls.clone() } else { once.clone() };
                let shard = trained.div_ceil(super::buffers::shards(x.plan, weights));
                builder.add(Parallelism::Data, group, scatter, calls.clone());
                let (place, calls) = if x.plan.sums_groups_at_once() {
                    (Place::AheadOf(kind, Pass::Backward), calls)
                } else {
                    (Place::AfterLastBackward, once.clone())
                };
                across_instances(builder, weights, shard, place, calls);
            }
        }
    }
}

/// The embedding of a step that is one program: its table is not gathered; instead its rows, and their gradients, go
/// to whoever looks them up.
fn of_columns(builder: &mut Builder<'_>, kind: SectionKind, calls: &Calls) {
    let x = builder.symbols;
    let recipe = x.recipe();
    let group = group(builder, WeightGroup::Dense);
    for pass in [Pass::Forward, Pass::Backward] {
        let sent = Sent {
            name: "embedding",
            tensor: "columns of embedded tokens",
            collective: Collective::AllToAll,
            place: Place::AheadOf(kind, pass),
            shape: Shape::new(&[x.n, x.h]),
            width: recipe.module_dtype().width(),
            dtype: recipe.module_dtype().name(),
            overlapped: false,
            formula: &COLUMNS,
        };
        builder.add(Parallelism::Data, group, sent, calls.clone());
    }
}
