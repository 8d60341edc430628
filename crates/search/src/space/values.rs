//! The layouts around a plan, from kernels down to leaves.

use super::sizes::{orders, pipelines, schedules};
use super::splits::Way;
use super::{hosts, recomputations, rests, splits};
use crate::dimension::{Choices, Dimension};
use shardscope_plan::{
    DpSharding, Field, OffloadModules, Overlap, PipelineSchedule, Plan, RankOrder, Recompute,
    RecomputeModule, Variant,
};
use shardscope_source::Code;

/// Number of stages, the chunks that a schedule fixes, and how layers are distributed over them.
type WaysOf = ((u64, Option<u64>), Vec<Way>);

/// The values that each dimension takes.
#[derive(Clone, Debug)]
pub struct Space {
    pub(crate) plan: Plan,
    pub(crate) base: Variant,
    /// What changes are reported against: the reader's own plan, and what was changed in it before the search.
    origin: Variant,
    before: Vec<(Field, String)>,
    pub(super) choices: Choices,
    pub(super) kernels: Vec<Variant>,
    pipeline: Vec<u64>,
    orders: Vec<RankOrder>,
    schedules: Vec<PipelineSchedule>,
    pub(super) offloaded: Vec<OffloadModules>,
    /// Lists of modules that may be recomputed.
    lists: Vec<Vec<RecomputeModule>>,
    /// How layers are distributed, by number of stages and the chunks that a schedule fixes.
    ways: Vec<WaysOf>,
    /// By number of stages, the number of recomputations of all shapes of a cut, with and without full recomputation.
    counts: Vec<(u64, [u64; 2])>,
    /// Kernels that no plan can have, by reason.
    pub(crate) refused: Vec<(Code, u64)>,
}

impl Space {
    /// The space around `plan`: the same model, machines, batch and optimizer; everything else that does not change
    /// the training's numerics is open.
    #[must_use]
    pub fn from_plan(plan: &Plan) -> Self {
        Self::with(plan, Choices::default())
    }

    /// The same with each dimension fixed, ranged or open as `choices` say.
    #[must_use]
    pub fn with(plan: &Plan, choices: Choices) -> Self {
        let base = Variant::from_plan(plan);
        let mut space = Self {
            pipeline: pipelines(plan, &base, &choices),
            orders: orders(plan, &base, &choices),
            schedules: schedules(plan, &base, &choices),
            offloaded: hosts::modules(plan, &base, &choices),
            plan: plan.clone(),
            origin: base.clone(),
            before: Vec::new(),
            base,
            choices,
            kernels: Vec::new(),
            lists: recomputations::lists(plan),
            ways: Vec::new(),
            counts: Vec::new(),
            refused: Vec::new(),
        };
        space.fill_ways();
        space.fill_counts();
        space.fill_kernels();
        space
    }

    /// The same if the plan was derived from another by `before`: changes are reported against that one, whose
    /// variant is `origin`.
    #[must_use]
    pub fn derived_from(mut self, origin: &Variant, before: Vec<(Field, String)>) -> Self {
        self.origin = origin.clone();
        self.before = before;
        self
    }

    /// The settings that turn the reader's plan into `variant`.
    pub(crate) fn changes(&self, variant: &Variant) -> Vec<(Field, String)> {
        // A setting that was changed twice is reported only with its last value.
        let own = variant.changes_from(&self.origin);
        let is_stated_again = |field: Field| own.iter().any(|(other, _)| *other == field);
        let before = self.before.iter().filter(|(field, _)| !is_stated_again(*field)).cloned();
        before.chain(own.iter().cloned()).collect()
    }

    /// Where the search starts.
    #[must_use]
    pub fn base(&self) -> &Variant {
        &self.base
    }

    /// Whether the plan's own sizes are among those tried.
    pub(crate) fn holds_base(&self) -> bool {
        let base = &self.base;
        let sizes = [
            (Dimension::Tensor, base.tensor),
            (Dimension::Pipeline, base.pipeline),
            (Dimension::VirtualPipeline, base.virtual_pipeline),
            (Dimension::Context, base.context),
            (Dimension::Expert, base.expert),
            (Dimension::ExpertTensor, base.expert_tensor),
            (Dimension::MicroBatch, base.micro_batch_size),
            (Dimension::Instances, base.instances),
        ];
        sizes.into_iter().all(|(dimension, size)| self.choices.get(dimension).allow(size, size))
    }

    /// How far each dimension is varied.
    #[must_use]
    pub fn choices(&self) -> &Choices {
        &self.choices
    }

    /// The kernels: everything that a layer's time depends on, without recomputation, on one stage.
    pub(crate) fn kernels(&self) -> &[Variant] {
        &self.kernels
    }

    /// Keeps every `parts`th kernel, starting at `index`.
    pub(crate) fn keep_part(&mut self, index: usize, parts: usize) {
        let mut place = 0;
        self.kernels.retain(|_| {
            // Every `parts`th, not a contiguous run: neighbouring kernels are similar in size, so all parts take
            // about as long.
            place += 1;
            (place - 1) % parts == index
        });
    }

    /// The cuts of a kernel: numbers of stages and orders of ranks that divide the world.
    pub(crate) fn cuts(&self, kernel: &Variant) -> Vec<Variant> {
        let layout = self.plan.layout();
        let mut cuts = Vec::new();
        for &pipeline in &self.pipeline {
            let dense = kernel.tensor * kernel.context * pipeline;
            let sparse = kernel.expert_tensor * kernel.expert * pipeline;
            // Only checks the arithmetic of sizes; every other rule is checked on the plan when a shape is opened.
            let divides = |size: u64| layout.world_size.is_multiple_of(size);
            let experts = self.plan.model().experts.is_some();
            if !divides(dense) || (experts && !divides(sparse)) {
                continue;
            }
            let groups = |size: u64| (layout.world_size / size).is_multiple_of(kernel.instances);
            if !groups(kernel.tensor * pipeline) || (experts && !groups(sparse)) {
                continue;
            }
            let batch = kernel.micro_batch_size.saturating_mul(layout.world_size / dense);
            if !self.plan.recipe().global_batch_size.is_multiple_of(batch) {
                continue;
            }
            for &rank_order in &self.orders {
                // Without a pipeline there is nothing to order; with one, the other order requires equal sizes
                // (`parallel_state.py`).
                let takes = rank_order == RankOrder::TpCpEpDpPp
                    || kernel.tensor * kernel.context == kernel.expert_tensor * kernel.expert;
                if rank_order == self.base.rank_order || pipeline > 1 && takes {
                    cuts.push(Variant { pipeline, rank_order, ..kernel.clone() });
                }
            }
        }
        cuts
    }

    /// The shapes of a cut: every schedule, split and number of chunks, without recomputation.
    pub(crate) fn shapes(&self, cut: &Variant) -> Vec<Variant> {
        let mut shapes = Vec::new();
        for &schedule in &self.schedules {
            if cut.pipeline == 1 && schedule != self.base.schedule {
                continue;
            }
            // On one stage every schedule is the same.
            let own = schedule.own_chunks().filter(|_| cut.pipeline > 1);
            let ways = self.ways.iter().find(|(of, _)| *of == (cut.pipeline, own));
            for (split, virtual_pipeline) in ways.map_or(&[][..], |(_, ways)| ways) {
                let same =
                    cut.pipeline == self.base.pipeline && *virtual_pipeline == self.base.virtual_pipeline;
                let group = self.base.group.filter(|_| same);
                let (split, virtual_pipeline) = (split.clone(), *virtual_pipeline);
                shapes.push(Variant { schedule, split, virtual_pipeline, group, ..cut.clone() });
            }
        }
        shapes
    }

    /// What may be recomputed in a shape.
    pub(crate) fn recomputations(&self, shape: &Variant) -> Vec<Recompute> {
        let layers = self.layers_of_part(shape);
        let mut all =
            recomputations::recomputations(&self.plan, &self.base, &self.choices, &self.lists, layers);
        if keeps_layers(shape) {
            all.retain(|one| !one.is_whole());
        }
        all
    }

    /// The most layers in a chunk.
    fn layers_of_part(&self, shape: &Variant) -> u64 {
        self.plan.model().num_layers.div_ceil((shape.pipeline * shape.virtual_pipeline).max(1))
    }

    /// Sharding and overlap that a shape may have.
    pub(crate) fn rests(&self, shape: &Variant) -> Vec<(DpSharding, Overlap)> {
        rests::rests(&self.plan, &self.base, &self.choices, shape)
    }

    /// The number of leaves of a cut.
    pub(crate) fn leaves(&self, cut: &Variant) -> u64 {
        let of = self.counts.iter().find(|(pipeline, _)| *pipeline == cut.pipeline);
        let whole = keeps_layers(cut);
        of.map_or(0, |(_, counts)| counts[usize::from(whole)]) * self.rests(cut).len() as u64
    }

    /// The number of leaves of a shape.
    pub(crate) fn leaves_of_shape(&self, shape: &Variant) -> u64 {
        self.recomputations(shape).len() as u64 * self.rests(shape).len() as u64
    }

    fn fill_ways(&mut self) {
        for &pipeline in &self.pipeline {
            for &schedule in &self.schedules {
                let of = (pipeline, schedule.own_chunks().filter(|_| pipeline > 1));
                if !self.ways.iter().any(|(known, _)| *known == of) {
                    self.ways.push((of, splits::ways(&self.plan, &self.base, &self.choices, of.0, of.1)));
                }
            }
        }
    }

    fn fill_counts(&mut self) {
        // Parts with the same number of layers have the same number of recomputations.
        let mut known: Vec<(u64, [u64; 2])> = Vec::new();
        for &pipeline in &self.pipeline {
            let cut = Variant { pipeline, ..self.base.clone() };
            let mut counts = [0; 2];
            for shape in self.shapes(&cut) {
                let layers = self.layers_of_part(&shape);
                let each = known.iter().find(|(of, _)| *of == layers).map(|(_, each)| *each);
                let each = each.unwrap_or_else(|| {
                    let of = |expert: bool| {
                        let overlap = Overlap { expert, ..shape.overlap };
                        let offloaded = OffloadModules::default();
                        self.recomputations(&Variant { overlap, offloaded, ..shape.clone() }).len() as u64
                    };
                    let each = [of(false), of(true)];
                    known.push((layers, each));
                    each
                });
                for (count, each) in counts.iter_mut().zip(each) {
                    *count += each;
                }
            }
            self.counts.push((pipeline, counts));
        }
    }

    /// Every leaf one after another, including refused ones: what a search without bounds would try.
    pub fn every(&self) -> impl Iterator<Item = Variant> + '_ {
        let cuts = self.kernels.iter().flat_map(|kernel| self.cuts(kernel));
        let shapes = cuts.flat_map(|cut| self.shapes(&cut));
        shapes.flat_map(|shape| {
            let rests = self.rests(&shape);
            let recomputed = self.recomputations(&shape).into_iter();
            recomputed
                .flat_map(|recompute| {
                    rests.iter().map({
                        let shape = &shape;
                        move |(sharding, overlap)| Variant {
                            recompute: recompute.clone(),
                            sharding: *sharding,
                            overlap: *overlap,
                            ..shape.clone()
                        }
                    })
                })
                .collect::<Vec<_>>()
        })
    }
}

/// Whether no layer of `cut` can be fully recomputed: overlapping two micro-batches rules it out
/// (`transformer_config.py:__post_init__`), and offloading within such a layer is not modelled.
fn keeps_layers(cut: &Variant) -> bool {
    cut.overlap.expert || !cut.offloaded.is_empty()
}
