//! A row of the page's tables: a run in words, with one figure measured and predicted.

use std::collections::HashMap;
use std::sync::OnceLock;

use shardscope::estimate::parameters;
use shardscope::launch::Resolution;
use shardscope::plan::{DpSharding, FeedForward, Plan, Recompute, Software};
use shardscope::units::{Quantity, rounded};

use super::compared::{Compared, Group, compared};
use super::gaps::gap;
use super::links::link;
use super::memory::{Figure, Run, runs};
use super::sources::{Source, source_of};

/// The model of every run and its place in the source.
const ORIGINS: &str = include_str!("../../../tests/data/measured/origins.tsv");

/// How a model is built and sharded, as distinguished in the plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Every token passes through every weight; weights are unsharded, or split by tensor and pipeline parallelism.
    Dense,
    /// Routed experts.
    Experts,
    /// Weights sharded over the replicas: FSDP, ZeRO-3.
    Sharded,
}

impl Architecture {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Dense, Self::Experts, Self::Sharded];

    /// The name in attributes.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Experts => "experts",
            Self::Sharded => "sharded",
        }
    }

    /// The name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Experts => "mixture of experts",
            Self::Sharded => "sharded weights (FSDP, ZeRO-3)",
        }
    }

    fn from_plan(plan: &Plan) -> Self {
        // Checked first because such a run may have experts too.
        if plan.recipe().dp_sharding == DpSharding::Parameters {
            Self::Sharded
        } else if plan.model().experts.is_some() {
            Self::Experts
        } else {
            Self::Dense
        }
    }
}

/// One figure of a published run, measured and predicted, with the other cells of its table row.
pub struct Entry {
    /// The run.
    pub id: String,
    /// The anchor of the row: the run, plus the stage and kind of its figure.
    pub anchor: String,
    /// The publication that the run is from.
    pub source: &'static Source,
    /// The year of publication.
    pub year: &'static str,
    /// Table, section or file in that publication.
    pub place: String,
    /// The model's name.
    pub model: &'static str,
    /// Layers, width and parameters.
    pub shape: String,
    /// The accelerator.
    pub accelerator: String,
    /// Number of accelerators.
    pub gpus: u64,
    /// The software that ran it.
    pub software: &'static str,
    /// Degrees of parallelism.
    pub cut: String,
    /// What replicas shard and what is recomputed.
    pub held: String,
    /// Sequences per step.
    pub batch: String,
    /// Sequences per micro-batch, and the precision.
    pub micro: String,
    /// How the model is built and sharded.
    pub architecture: Architecture,
    /// What the figure counts, and where; empty for a step time.
    pub what: String,
    /// Seconds or GiB.
    pub measured: f64,
    /// Seconds or GiB.
    pub predicted: f64,
    /// Lines of the statistics in which the row counts.
    pub groups: Vec<usize>,
    /// Why it is off, or why its record is in doubt.
    pub cause: Option<String>,
    /// The fragment that opens it as a plan.
    pub link: String,
}

impl Entry {
    /// Predicted over measured, minus one.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

/// Every step time.
#[must_use]
pub fn step_times() -> Vec<Entry> {
    compared().iter().map(step_time).collect()
}

/// Every memory figure.
#[must_use]
pub fn memories() -> Vec<Entry> {
    runs().iter().flat_map(|run| run.figures().into_iter().map(|figure| memory(run, figure))).collect()
}

fn step_time(one: &Compared) -> Entry {
    let id = one.row.text("id");
    let groups = Group::ALL.iter().enumerate().filter(|(_, group)| group.holds(&one.row));
    Entry {
        accelerator: one.row.text("gpu").to_owned(),
        software: software(one.row.text("software"), &one.resolution),
        measured: one.row.measured(),
        predicted: one.predicted,
        groups: groups.map(|(index, _)| index).collect(),
        cause: one.cause.map(|cause| cause.text.to_owned()),
        ..described(id, one.row.family(), &one.resolution)
    }
}

fn memory(run: &Run, figure: Figure) -> Entry {
    let counted = figure.counted;
    let stage = figure.stage.map_or_else(|| "most".to_owned(), |stage| format!("stage {stage}"));
    Entry {
        anchor: format!("{}-{}-{}", run.id, stage.replace(' ', ""), counted.name()),
        what: match figure.stage {
            Some(_) => format!("{}, {stage}", counted.name()),
            None => counted.name().to_owned(),
        },
        accelerator: run.accelerator.clone(),
        measured: figure.measured,
        predicted: figure.predicted,
        groups: run.lines(&figure),
        cause: gap(&run.id).map(str::to_owned),
        ..described(&run.id, &run.family, &run.resolution)
    }
}

/// What rows of both kinds say about a run.
fn described(id: &str, family: &str, resolution: &Resolution) -> Entry {
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{id} is no plan"));
    let Origin { year, model, place } = origin(id);
    Entry {
        id: id.to_owned(),
        anchor: id.to_owned(),
        source: source_of(family),
        year,
        place: without_commit(place),
        model,
        shape: shape(plan),
        accelerator: String::new(),
        gpus: plan.layout().world_size,
        software: software("", resolution),
        cut: cut(plan),
        held: held(plan),
        batch: plan.recipe().global_batch_size.to_string(),
        micro: micro(plan),
        architecture: Architecture::from_plan(plan),
        what: String::new(),
        measured: 0.0,
        predicted: 0.0,
        groups: Vec::new(),
        cause: None,
        link: link(resolution).unwrap_or_else(|| panic!("{id} has no link")),
    }
}

/// When a run was published, its model, and its place in the source.
#[derive(Clone, Copy)]
struct Origin {
    year: &'static str,
    model: &'static str,
    place: &'static str,
}

fn origin(id: &str) -> Origin {
    static ALL: OnceLock<HashMap<&'static str, Origin>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let line = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
            [id, year, model, place] => (id, Origin { year, model, place }),
            _ => panic!("not four columns: {line}"),
        };
        ORIGINS.lines().skip(1).map(line).collect()
    });
    *all.get(id).unwrap_or_else(|| panic!("no origin of {id}"))
}

/// The release or commit that the row `id` is from, if its place names one; otherwise empty.
pub(super) fn release(id: &str) -> &'static str {
    let (_, rest) = origin(id).place.split_once('@').unwrap_or_default();
    rest.split(':').next().unwrap_or_default()
}

/// A place without the commit that the data record: `docs/performance.md@9515a140b` becomes `docs/performance.md`.
fn without_commit(place: &str) -> String {
    match place.split_once('@') {
        Some((file, rest)) if rest.starts_with(|first: char| first.is_ascii_hexdigit()) => {
            file.to_owned() + rest.trim_start_matches(|part: char| part.is_ascii_hexdigit())
        }
        _ => place.to_owned(),
    }
}

fn software(named: &str, resolution: &Resolution) -> &'static str {
    // Software that the data distinguish but plans do not.
    match named {
        "jax" => return "JAX",
        "internevo" => return "InternEvo",
        "modellink" => return "ModelLink",
        "megatron_deepspeed_flash" => return "DeepSpeed",
        _ => {}
    }
    match resolution.plan.as_ref().map(|plan| plan.recipe().software) {
        Some(Software::MegatronLegacy) => "Megatron-LM, legacy models",
        Some(Software::MegatronDeepspeed) => "Megatron-DeepSpeed",
        Some(Software::Torchtitan) => "torchtitan",
        Some(Software::TorchFsdp) => "FSDP trainer",
        _ => "Megatron core",
    }
}

fn shape(plan: &Plan) -> String {
    let model = plan.model();
    let total = rounded(parameters(plan).total.number());
    let mut text = format!("{total}, {} × {}", model.num_layers, model.hidden_size);
    if let Some(experts) = &model.experts {
        text += &format!(", {} of {} experts", experts.router_topk, experts.num_experts);
        let dense = (0..model.num_layers)
            .filter(|layer| model.layer_kind(*layer).feed_forward == FeedForward::Dense)
            .count();
        if dense > 0 {
            text += &format!(", {dense} layers dense");
        }
    }
    text + &format!(", sequence {}", model.seq_length)
}

fn cut(plan: &Plan) -> String {
    let layout = plan.layout();
    let degrees = [
        ("TP", layout.tensor),
        ("PP", layout.pipeline),
        ("VPP", layout.virtual_pipeline),
        ("CP", layout.context),
        ("EP", layout.expert),
        ("DP", layout.data),
    ];
    // DP is shown even if it is 1.
    let said = degrees.iter().filter(|(name, degree)| *degree > 1 || *name == "DP");
    said.map(|(name, degree)| format!("{name} {degree}")).collect::<Vec<_>>().join(" · ")
}

fn held(plan: &Plan) -> String {
    let sharding = match plan.recipe().dp_sharding {
        DpSharding::Replicated => "optimizer replicated",
        DpSharding::OptimizerStates => "optimizer sharded",
        DpSharding::Gradients => "ZeRO-2",
        DpSharding::Parameters => "weights sharded",
    };
    let schedule = plan.layout().schedule.name();
    let kept = match &plan.recipe().recompute {
        Recompute::None | Recompute::Block { num_layers: 0, .. } => "no recompute".to_owned(),
        Recompute::Uniform { .. } => "full recompute".to_owned(),
        Recompute::Block { num_layers, .. } => format!("{num_layers} layers a chunk recomputed"),
        Recompute::Selective(_) => "selective recompute".to_owned(),
        Recompute::Every { period, others: false } => format!("one layer in {period} recomputed"),
        Recompute::Every { period, others: true } => format!("all but one layer in {period} recomputed"),
    };
    match schedule {
        "1f1b" => format!("{sharding}, {kept}"),
        other => format!("{other}, {sharding}, {kept}"),
    }
}

fn micro(plan: &Plan) -> String {
    let recipe = plan.recipe();
    let format = recipe.fp8.as_ref().map_or(recipe.params_dtype.name(), |fp8| match fp8.recipe.name() {
        "mxfp8" => "mxfp8",
        "nvfp4" => "nvfp4",
        _ => "fp8",
    });
    format!("micro {} × {}, {format}", recipe.micro_batch_size, recipe.num_micro_batches)
}
