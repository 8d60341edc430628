//! What sharded weights cost while they are unsharded: FSDP and ZeRO-3 gather a layer's weights before it runs and
//! reduce-scatter its gradients afterwards.

use super::compiled_step;
use super::own_states::{defers, own_root};
use super::reductions::{ADDED, GRADIENTS, REDUCED, reductions};
use super::term::Term;
use super::unit::{Counts, Unit, Units};
use super::unsharded::of_layers;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols, adafactor_step, step_bytes};
use shardscope_plan::{DataEngine, DpSharding, OptimizerKind};
use shardscope_units::{Bytes, Count, Quantity};

const FSDP: &str = "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py";

static ENDS: Formula = Formula::new(
    "W·w",
    "Weights outside of the layers, W elements: all-gathered once and held until backward is over.",
    FSDP,
)
.letters(&[("W", "elements of the weights outside of layers"), ("w", "bytes per element")]);
static HEAD: Formula = Formula::new(
    "W·w",
    "The output layer's weight, W elements, whole while the loss is made and its backward runs.",
    "deepspeed/runtime/zero/partitioned_param_coordinator.py:fetch_sub_module",
)
.letters(&[("W", "elements of the output layer's weight"), ("w", "bytes per element")]);

static WHOLE: Formula = Formula::new(
    "P·w",
    "Unsharded gradients of the previous micro-batches, P elements: FSDP reduces them only with the last micro-batch.",
    FSDP,
)
.letters(&[("P", "parameters of the rank that train"), ("w", "bytes per element")]);

static OTHERS: Formula = Formula::new(
    "(t - 1)·V·h·w",
    "The word embedding's gradient of the previous micro-batches for rows of other tensor ranks: it is not sharded yet.",
    "torch/distributed/tensor/_ops/_embedding_ops.py:embedding_dense_backward_strategy; torch/distributed/fsdp/_fully_shard/_fsdp_param.py:_get_grad_inner_tensor",
)
.letters(&[("w", "bytes per element")]);

static OTHERS_ADAPTERS: Formula = Formula::new(
    "W·w",
    "Gradients of the previous micro-batches of row-parallel layers' lora_B for columns of other tensor ranks: they are not sharded yet.",
    "nemo_automodel/components/distributed/parallel_styles.py:RowwiseParallelLora; torch/distributed/fsdp/_fully_shard/_fsdp_param.py:_get_grad_inner_tensor",
)
.letters(&[("W", "elements of all layers"), ("w", "bytes per element")]);

static BUCKET: Formula = Formula::new(
    "K·w",
    "The buffers of K elements in which gradients are reduced together: `reduce_bucket_size`, twice where ZeRO-1 or 2 has overlap_comm. Transformers' \"auto\" is h·h elements.",
    "deepspeed/runtime/zero/stage_1_and_2.py:setup_buckets, stage3.py:_setup_for_real_optimizer, config.py",
)
.letters(&[("K", "elements"), ("w", "bytes per element")]);

static SECOND: Formula = Formula::new(
    "P·w/D",
    "A second shard of the weights over D ranks, made by a step's first forward and dropped after it: what is gathered next comes from it (ZeRO++ hpZ).",
    "deepspeed/runtime/zero/partition_parameters.py:_partition_param_sec",
).letters(&[("P", "parameters"), ("w", "bytes per element"), ("D", "ranks they are sharded over")]);

static ROOTS: Formula = Formula::new(
    "8·V·h/D",
    "Square roots of a parameter's second moment and the same over the bias correction, of the largest one: the optimizer steps one after the other.",
    "torch/optim/adam.py:_single_tensor_adam, which fused=False chooses; prime_rl/trainer/optim/__init__.py",
)
.letters(&[("D", "ranks the parameter is sharded over")]);

static PROJECTED: Formula = Formula::new(
    "Z",
    "What the step makes of one parameter after the other: the root of its second moment, its step at full size, a copy of its gradient in fp32 and what projects it. Names of one parameter hold on until the next.",
    "galore_torch/adamw.py:AdamW.step, galore_projector.py; apollo_torch/apollo.py:AdamW.step",
)
.letters(&[("Z", "bytes at the fullest of its moments")]);

static ADAFACTOR: Formula = Formula::new(
    "Z",
    "What Adafactor makes of one parameter after the other in fp32: copies of gradient and parameter, a square and its sum with a constant. The update of the one before stays until then.",
    "transformers/optimization.py:Adafactor.step",
)
.letters(&[("Z", "bytes at the fullest of its moments")]);

static COMPENSATED: Formula = Formula::new(
    "4·E",
    "Of two shards that follow each other, E elements together: the second moment's root and a quotient of the one, the last quotient and a copy of the weights of the one before, which names hold on to.",
    "hiyouga/EasyR1 verl/utils/torch_functional.py:AnyPrecisionAdamW.step, recorded in tests/data/torch/any_precision_step.tsv",
)
.letters(&[("E", "elements of both")]);

/// What is alive, besides the tensors of a stage's passes, while weights are unsharded.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    /// While backward runs a layer.
    layers: Vec<Term>,
    /// While the loss and the output layer run: no layer has a gradient yet, and the last layer is the only one
    /// unsharded.
    ends: Vec<Term>,
    /// While the loss of a pass without gradients runs.
    forward: Vec<Term>,
    /// In the optimizer step.
    step: Vec<Term>,
    /// Bytes of gradients that do not exist yet, for steps laid out by a compiler, which are not followed section by
    /// section.
    pub(super) absent: Bytes,
}

impl Gathered {
    /// The terms while a section of `kind` runs.
    pub(super) fn at(&self, kind: SectionKind) -> &[Term] {
        if kind.is_after_layers() { &self.ends } else { &self.layers }
    }

    /// Total bytes of those terms.
    pub(super) fn bytes_at(&self, kind: SectionKind) -> Bytes {
        self.at(kind).iter().map(|term| term.bytes).sum()
    }

    /// The terms during the optimizer step.
    pub(super) fn in_step(&self) -> &[Term] {
        &self.step
    }

    /// The terms while the loss of a pass without gradients runs.
    pub(super) fn in_forward(&self) -> &[Term] {
        &self.forward
    }

    /// The terms while no section runs.
    pub(super) fn elsewhere(&self) -> &[Term] {
        &self.layers
    }
}

/// Whether weights outside the layers are a unit of PyTorch's FSDP, which stays gathered.
pub(super) fn wraps_ends(x: &Symbols<'_>) -> bool {
    let engine = x.recipe().transformers.engine;
    let semantics = x.recipe().software.semantics();
    let by_engine = matches!(engine, DataEngine::Fsdp1 | DataEngine::Fsdp2);
    semantics.fsdp_wraps_ends || (semantics.eager_modules && by_engine)
}

/// DeepSpeed's buckets for gradients to be reduced: as configured, or its default if the framework leaves the size
/// open.
fn bucket(x: &Symbols<'_>) -> Option<Term> {
    const ELEMENTS: u64 = 500_000_000;
    let recipe = x.recipe();
    let framework = recipe.rollout.map(|rollout| rollout.framework.semantics(false));
    let engine = recipe.transformers.engine == DataEngine::DeepSpeed;
    let shares = recipe.dp_sharding != DpSharding::Replicated;
    let default = framework.is_some_and(|semantics| semantics.default_buckets).then_some(ELEMENTS);
    let elements = recipe.transformers.reduce_buckets.or(default).filter(|elements| *elements > 0);
    elements.filter(|_| engine && shares).map(|elements| {
        let given = [("K", Count::new(elements).number()), ("w", Count::new(x.width).number())];
        let bytes = Count::new(elements).bytes(x.width);
        Term::new("buffer of gradients to reduce", bytes, &BUCKET).given(&given).passing()
    })
}

/// Other tensor ranks' rows of the word embedding's gradient: DTensor makes the full gradient on each rank, and FSDP2
/// shards it at reduction. A tied embedding's gradient is added to the output layer's, which is sharded.
fn whole_words(x: &Symbols<'_>, width: u64) -> Option<Term> {
    let recipe = x.recipe();
    let there = recipe.transformers.dtensor_plan && x.t > 1 && recipe.tuning.embedding && !x.tied();
    (recipe.defers_reduction() && there).then(|| {
        let bytes = Count::of_shape(&[x.t - 1, x.v, x.h]).bytes(width);
        let given = [("w", Count::new(width).number())];
        Term::new("word embedding's gradient of other ranks' rows", bytes, &OTHERS).given(&given).passing()
    })
}

/// Other tensor ranks' columns of adapter gradients, for the same reason.
fn whole_adapters(x: &Symbols<'_>, units: &Units, counts: &Counts, width: u64) -> Option<Term> {
    // Hardly any plan has them, and a search asks for the totals of many thousands.
    x.recipe().tuning.lora.as_ref().filter(|_| x.recipe().defers_reduction())?;
    let of_sections =
        units.iter().zip(counts).map(|((kind, _), &count)| kind.adapter_gradients_of_others(x) * count);
    let elements = Count::new(of_sections.sum());
    (elements > Count::ZERO).then(|| {
        let given = [("W", elements.number()), ("w", Count::new(width).number())];
        let name = "adapters' gradients of other ranks' columns";
        Term::new(name, elements.bytes(width), &OTHERS_ADAPTERS).given(&given).passing()
    })
}

/// ZeRO++'s secondary shard.
fn second_shard(x: &Symbols<'_>, trains: Count) -> Option<Term> {
    let layout = x.plan.layout();
    let ranks = layout.data * layout.context;
    let shards = ranks / layout.second_groups().max(1);
    let second = layout.second_groups() > 0 && x.recipe().dp_sharding == DpSharding::Parameters;
    second.then(|| {
        let given =
            [("P", trains.number()), ("w", Count::new(x.width).number()), ("D", Count::new(shards).number())];
        let bytes = Count::new(trains.get().div_ceil(shards)).bytes(x.width);
        Term::new("second shard of the weights", bytes, &SECOND).given(&given).passing()
    })
}

/// The terms of a stage with `counts` sections, `trains` of whose parameters are trainable. FSDP gathers a layer just
/// before it runs and frees it afterwards (except the last one, which stays for backward). ZeRO-3 prefetches a number
/// of elements, so every moment counts the same.
pub(super) fn gathered(x: &Symbols<'_>, units: &Units, counts: &Counts, trains: Count) -> Gathered {
    if x.recipe().software.semantics().compiled_step {
        let (layers, absent) = compiled_step::fullest(x, units, counts);
        return Gathered { layers, absent, ..Gathered::default() };
    }
    let mut all = in_passes(x, units, counts, trains);
    all.step.extend(roots(x));
    all.step.extend(own_root(x));
    all.step.extend(projected(x));
    all.step.extend(one_by_one(x));
    all.step.extend(compensated(x, units, counts));
    all
}

/// What a step of Adam with Kahan compensation allocates for flat shards, which it processes one after another.
fn compensated(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Option<Term> {
    if x.recipe().optimizer.kind != OptimizerKind::AdamKahan {
        return None;
    }
    let (mut layer, mut ends, mut layers) = (0, 0, 0);
    for ((kind, unit), &count) in units.iter().zip(counts) {
        let own = (unit.dense.all + unit.expert.all).get();
        if count > 0 && kind.is_gathered_alone() {
            (layer, layers) = (own.max(layer), layers + count);
        } else {
            ends += own * count;
        }
    }
    let shards = x.plan.layout().dense_shards().max(1);
    let beside = if layers > 1 { layer.max(ends) } else { ends };
    let elements = layer.div_ceil(shards) + beside.div_ceil(shards);
    let bytes = Count::new(elements).bytes(2 * x.recipe().params_dtype.width());
    let given = [("E", Count::new(elements).number())];
    Some(Term::new("step of two shards", bytes, &COMPENSATED).given(&given).passing())
}

/// What a step with a non-fused optimizer holds besides states that came from the host for it.
fn roots(x: &Symbols<'_>) -> Option<Term> {
    const BYTES: u64 = 8;
    let recipe = x.recipe();
    let one_by_one = recipe.offload.states_for_step && recipe.optimizer.kind == OptimizerKind::Adam;
    one_by_one.then(|| {
        let shards = x.plan.layout().dense_shards().max(1);
        let bytes = Bytes::new((Count::of_shape(&[x.v, x.h]).bytes(BYTES).get()).div_ceil(shards));
        Term::new("square roots of a second moment", bytes, &ROOTS)
            .given(&[("D", Count::new(shards).number())])
            .passing()
    })
}

/// What the step of an optimizer that projects gradients allocates; if it runs within backward, each operator counts
/// its own.
fn projected(x: &Symbols<'_>) -> Option<Term> {
    let recipe = x.recipe();
    let low_rank = recipe.optimizer.low_rank.filter(|_| !recipe.transformers.steps_in_backward)?;
    let bytes = Bytes::new(step_bytes(x, low_rank));
    Some(
        Term::new("step of a projected gradient", bytes, &PROJECTED)
            .given(&[("Z", bytes.number())])
            .passing(),
    )
}

/// What a step of Adafactor allocates, if the parameters are the model's own matrices.
pub(super) fn of_adafactor(x: &Symbols<'_>) -> Vec<Bytes> {
    let recipe = x.recipe();
    let adafactor = recipe.optimizer.kind == OptimizerKind::Adafactor
        && recipe.software.semantics().steps_parameters
        && recipe.software.semantics().eager_modules
        && recipe.tuning.is_full()
        && !recipe.transformers.steps_in_backward;
    let replicated = recipe.dp_sharding == DpSharding::Replicated;
    if adafactor && replicated { adafactor_step(x) } else { Vec::new() }
}

fn one_by_one(x: &Symbols<'_>) -> Option<Term> {
    let bytes: Bytes = of_adafactor(x).into_iter().sum();
    let term = || Term::new("step of the largest parameter", bytes, &ADAFACTOR);
    (bytes > Bytes::ZERO).then(|| term().given(&[("Z", bytes.number())]).passing())
}

fn in_passes(x: &Symbols<'_>, units: &Units, counts: &Counts, trains: Count) -> Gathered {
    // PyTorch's `MixedPrecisionPolicy.reduce_dtype`, or the format of the gradients if none is given.
    let reduced = x.recipe().reduce_dtype().width();
    let of_others: Vec<Term> =
        whole_words(x, reduced).into_iter().chain(whole_adapters(x, units, counts, reduced)).collect();
    let deferred = defers(x.plan).then(|| {
        let width = x.recipe().deferred_dtype().width();
        let given = [("P", trains.number()), ("w", Count::new(width).number())];
        Term::new("unsharded gradients until the last micro-batch", trains.bytes(width), &WHOLE)
            .given(&given)
            .passing()
    });
    let engine: Vec<Term> = bucket(x).into_iter().chain(second_shard(x, trains)).collect();
    // With one shard, FSDP gathers nothing and copies nothing.
    if x.recipe().dp_sharding != DpSharding::Parameters || x.plan.layout().dense_shards() == 1 {
        let ends: Vec<Term> = deferred.into_iter().chain(engine).chain(of_others).collect();
        let layers = ends.iter().copied().chain(reductions(x, units, counts, deferred.is_some())).collect();
        return Gathered { ends, layers, ..Gathered::default() };
    }
    let elements = |unit: &Unit| unit.dense.all + unit.expert.all;
    let trained = |unit: &Unit| unit.dense.trains() + unit.expert.trains();
    let (mut layer, mut own, mut ends, mut layers) = (Count::ZERO, Count::ZERO, Count::ZERO, 0);
    let mut in_fp8 = Count::ZERO;
    for ((kind, unit), &count) in units.iter().zip(counts) {
        if count == 0 {
            continue;
        }
        if kind.is_gathered_alone() {
            // A stage may mix dense and MoE layers; at the peak the larger kind is unsharded.
            if elements(unit) > layer {
                (layer, in_fp8) = (elements(unit), unit.in_fp8);
            }
            own = own.max(trained(unit));
            layers += count;
        } else if !(x.recipe().transformers.embedding_apart && kind.is_before_layers()) {
            ends += elements(unit) * count;
        }
    }
    let term = |name, count: Count, width: u64, formula| {
        let given = [("W", count.number()), ("w", Count::new(width).number())];
        Term::new(name, count.bytes(width), formula).given(&given).passing()
    };
    let one = of_layers(x, layer, in_fp8, 1);
    // A stage with a single layer has no next one.
    let weights = if layers > 1 { of_layers(x, layer, in_fp8, 2) } else { one };
    let mut layers = vec![weights, term("gradients of a layer", own, x.width, &GRADIENTS)];
    let projects = SectionKind::count(counts, SectionKind::projects_vocabulary) != 0;
    let head = Count::of_shape(&[x.labels().unwrap_or(x.v), x.h]);
    if !wraps_ends(x) {
        layers.extend(engine);
        let step = layers.clone();
        let (mut ends, mut forward) = (layers.clone(), vec![weights]);
        if projects {
            let head = term("gathered weight of the output layer", head, x.width, &HEAD);
            ends.push(head);
            forward.push(head);
        }
        return Gathered { ends, forward, step, layers, absent: Bytes::ZERO };
    }
    if x.recipe().transformers.ends_apart {
        let mut norms = Count::ZERO;
        for ((kind, unit), &count) in units.iter().zip(counts) {
            if !kind.is_gathered_alone() && !kind.projects_vocabulary() && !kind.is_before_layers() {
                norms += elements(unit) * count;
            }
        }
        let root = term("gathered weights outside of units", norms, x.width, &ENDS);
        // Units are reduced one after another, the output layer's while the last layer runs.
        let largest = if projects { own.max(head) } else { own };
        layers.extend([root, term("gradients being reduced", largest, reduced, &REDUCED)]);
        // The output layer's gathered weight is counted with the tensors of its backward: by the loss it has been
        // freed.
        let ends = vec![one, root];
        return Gathered { forward: ends.clone(), ends, layers, ..Gathered::default() };
    }
    let whole_ends = term("gathered weights outside of layers", ends, x.width, &ENDS);
    let forward = vec![one, whole_ends];
    let mut ends = forward.clone();
    let reducing = term("gradients being reduced", own, reduced, &REDUCED);
    if let Some(unsharded) = deferred {
        // The gradients being reduced alias the unsharded ones until they are copied; then the layer's new gradients
        // are added.
        layers = vec![weights, whole_ends, reducing, unsharded];
        layers.extend(of_others.clone());
        ends.push(unsharded);
        ends.extend(of_others);
    } else {
        layers.extend([whole_ends, reducing]);
    }
    // Before PyTorch 2.15 it coexists with unsharded gradients; 2.15 adds it to them at once.
    let root = x.recipe().shards_by_fsdp() && x.recipe().transformers.engine == DataEngine::Fsdp2;
    if projects && x.recipe().tuning.head && root {
        layers.push(term("gradient of the output layer", head, x.width, &ADDED));
    }
    Gathered { forward, ends, layers, ..Gathered::default() }
}
