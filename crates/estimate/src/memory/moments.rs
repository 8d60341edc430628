//! When a chunk that runs backward holds most, in addition to what all chunks save.

use super::gathered::Gathered;
use super::kept::{LayersKept, kept_by, layers_kept, rotary_table, run_bytes, run_input};
use super::offloaded::{Groups, Passed, keeps_input, not_gone};
use super::own_states::{defers, width_added_up};
use super::unit::{Counts, Point, Unit, Units};
use shardscope_operators::{SectionKind, Symbols, copies_layer_input, frozen_counts, section_counts};
use shardscope_plan::{Chunk, LayerKind, OffloadModule};
use shardscope_units::Bytes;

/// Totals of a chunk: what it holds permanently, per micro-batch, and at its peak.
#[derive(Clone, Debug)]
pub(super) struct ChunkSum {
    /// The number of sections of each kind.
    pub(super) counts: Counts,
    /// How its layers are saved.
    pub(super) layers: LayersKept,
    /// Modules of its layers whose saved tensors go to the host.
    pub(super) groups: Groups,
    /// Whether its input stays on the device even though its first module sends it to the host.
    pub(super) keeps_input: bool,
    /// Bytes saved for one micro-batch.
    pub(super) kept: Bytes,
    /// Bytes that remain of one micro-batch between its input gradients and its weight gradients.
    pub(super) waiting: Bytes,
    /// Bytes saved once for all micro-batches.
    pub(super) once: Bytes,
    /// Bytes of gradients that its backward creates, if they do not exist before.
    pub(super) to_come: Bytes,
    /// The peak of its backward pass, and of the forward pass of a frozen part.
    pub(super) fullest: Option<Moment>,
    /// The peak of its forward pass, if modules are offloaded.
    pub(super) forward: Option<Moment>,
    /// Bytes of another chunk's offloaded modules that are assumed to be on the device while it runs.
    pub(super) ready: Bytes,
}

/// One moment in one chunk's passes for the current micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The section.
    pub(super) kind: SectionKind,
    /// The index of the unit's point.
    pub(super) point: usize,
    /// Bytes of fully recomputed layers.
    pub(super) recomputed: Bytes,
    /// Saved bytes of the chunk that were freed before the section begins.
    pub(super) returned: Bytes,
    /// Bytes fetched back from the host for the section, if saved tensors are kept there.
    pub(super) back: Option<Bytes>,
    /// Bytes of offloaded modules that are on the device.
    pub(super) modules: Bytes,
    /// Bytes of gradients that backward has not created yet.
    pub(super) absent: Bytes,
    /// Bytes of gradient shards that coexist with the gradients until backward ends.
    pub(super) added: Bytes,
    /// Bytes alive, including gathered weights, beyond all states and what all chunks save; minus those freed and
    /// those not created yet.
    pub(super) net: i128,
}

impl ChunkSum {
    pub(super) fn new(
        x: &Symbols<'_>,
        units: &Units,
        chunk: &Chunk,
        gathered: &Gathered,
        groups: Groups,
        ready: Bytes,
    ) -> Self {
        let counts = section_counts(x, chunk);
        let layers = layers_kept(x, chunk);
        let (mut kept, mut waiting) = (Bytes::ZERO, Bytes::ZERO);
        // Of a recomputed block, only the input of its first layer is saved for backward.
        if layers.runs > 0 {
            kept += run_bytes(x) * layers.inputs;
        }
        for ((kind, unit), &times) in units.iter().zip(&counts) {
            if times > 0 {
                kept += unit.kept * layers.kept_of(kind, times);
                // One layer of this kind saves less: the gradient of its input is not needed.
                if layers.has_first(kind) {
                    kept = kept.less(unit.kept.less(unit.first));
                }
                waiting += unit.waiting * times;
            }
        }
        let keeps_input = keeps_input(x, chunk);
        if keeps_input {
            kept += run_input(x).bytes;
        }
        let once = if SectionKind::layers(&counts) > 0 {
            rotary_table(x).map_or(Bytes::ZERO, |table| table.bytes)
        } else {
            Bytes::ZERO
        };
        if x.recipe().offload.saved_tensors {
            // Token numbers belong to the batch, which stays.
            let of_batch = |(kind, _): &(SectionKind, &Unit)| kind.is_before_layers();
            let ends = units.iter().zip(&counts).filter(|(unit, _)| of_batch(unit));
            kept = ends.map(|((_, unit), &times)| unit.kept * times).sum();
        }
        let to_come = to_come(x, units, chunk, &counts);
        let mut sum = Self {
            counts,
            layers,
            groups,
            keeps_input,
            kept,
            waiting,
            once,
            to_come,
            fullest: None,
            forward: None,
            ready,
        };
        [sum.fullest, sum.forward] = fullest(x, units, chunk, &sum, gathered, ready);
        sum
    }
}

/// Walks through the chunk's sections as backward does and records the peak.
struct Walk<'a> {
    x: &'a Symbols<'a>,
    units: &'a Units,
    gathered: &'a Gathered,
    best: Option<Moment>,
    /// The same for the forward pass, if modules are offloaded.
    best_forward: Option<Moment>,
    /// Bytes of gradients that the remaining sections will create.
    absent: Bytes,
    /// Bytes of gradient shards, of the sections already done, that coexist with the gradients until backward ends.
    added: Bytes,
    /// Whether gradients are deferred: shards only appear once the larger unsharded gradients that contain them are
    /// freed.
    deferred: bool,
    /// Progress of the walk, if modules are offloaded.
    passed: Passed<'a>,
    /// Bytes of another chunk's offloaded modules that wait on the device for its backward.
    ready: Bytes,
}

impl Walk<'_> {
    /// Records that the gradients of `times` sections now exist.
    fn make(&mut self, unit: &Unit, times: u64) {
        if !self.deferred {
            self.absent = self.absent.less(unit.gradients * times);
        }
        self.added += unit.added * times;
    }

    /// Bytes that backward has added so far, not counting what it frees, minus gradients that are still to come.
    fn made(&self) -> i128 {
        i128::from(self.added.get()) - i128::from(self.absent.get())
    }

    fn offer(&mut self, kind: SectionKind, returned: Bytes, recomputed: Bytes) {
        if self.x.recipe().offload.saved_tensors {
            return self.offer_from_host(kind, recomputed);
        }
        if !self.x.recipe().offload.modules.is_empty() {
            return self.offer_beside_host(kind, returned, recomputed);
        }
        let unit = self.units.get(kind);
        if let Some(point) = unit.most {
            let more = i128::from(recomputed.get()) - i128::from(returned.get()) + self.made();
            let whole = i128::from(self.gathered.bytes_at(kind).get());
            // Signed: late in backward more has been freed than the point adds, and the peak may then be elsewhere.
            let net = unit.points[point].net() + more + whole;
            if self.best.is_none_or(|best| net > best.net) {
                let (absent, added) = (self.absent.less(unit.points[point].made), self.added);
                let modules = Bytes::ZERO;
                self.best = Some(Moment {
                    kind,
                    point,
                    recomputed,
                    returned,
                    back: None,
                    modules,
                    absent,
                    added,
                    net,
                });
            }
        }
    }

    /// The same if modules are offloaded, for every point of the section: the peak depends on what has come back from
    /// the host by then. In forward, the groups that the next backward needs first are already on the device, and
    /// what later sections will save does not exist yet.
    fn offer_beside_host(&mut self, kind: SectionKind, returned: Bytes, recomputed: Bytes) {
        let unit = self.units.get(kind);
        let whole = i128::from(self.gathered.bytes_at(kind).get());
        for (index, point) in unit.points.iter().enumerate() {
            let modules = if point.forward {
                self.ready + not_gone(&unit.groups, point.modules)
            } else if self.passed.is_of_none() {
                self.ready
            } else {
                self.passed.and(&unit.groups, point.modules).on_device()
            };
            let alive = i128::from((modules + recomputed).get());
            let net = point.net() + alive - i128::from(returned.get()) + self.made() + whole;
            let (absent, added) = (self.absent.less(point.made), self.added);
            let best = if point.forward { &mut self.best_forward } else { &mut self.best };
            if best.is_none_or(|best| net > best.net) {
                *best = Some(Moment {
                    kind,
                    point: index,
                    recomputed,
                    returned,
                    back: None,
                    modules,
                    absent,
                    added,
                    net,
                });
            }
        }
    }

    /// Moves past a section, whose groups backward no longer needs.
    fn pass(&mut self, kind: SectionKind) {
        let groups = &self.units.get(kind).groups;
        self.passed = self.passed.and(groups, OffloadModule::BEGUN.into_iter().collect());
    }

    /// The same if saved tensors are kept on the host: only those of the current operator are on the device, or the
    /// input of the layer being recomputed.
    fn offer_from_host(&mut self, kind: SectionKind, recomputed: Bytes) {
        let whole = i128::from(self.gathered.bytes_at(kind).get());
        for (index, point) in self.units.get(kind).points.iter().enumerate() {
            let (back, returned) = if kind.layer().is_some() {
                (run_input(self.x).bytes, point.returned)
            } else if kind.is_before_layers() {
                (Bytes::ZERO, Bytes::ZERO)
            } else {
                (kept_by(self.x, &[point.operator]), point.transient.returned)
            };
            let alive = back + recomputed + point.recomputed + point.transient.bytes() + point.made;
            let net = i128::from(alive.get()) - i128::from(returned.get()) + self.made() + whole;
            if self.best.is_none_or(|best| net > best.net) {
                // The point's freed bytes concern only its own section.
                let moment = Moment {
                    kind,
                    point: index,
                    recomputed,
                    returned: Bytes::ZERO,
                    back: Some(back),
                    modules: Bytes::ZERO,
                    absent: self.absent.less(point.made),
                    added: self.added,
                    net,
                };
                self.best = Some(moment);
            }
        }
    }
}

fn fullest(
    x: &Symbols<'_>,
    units: &Units,
    chunk: &Chunk,
    sum: &ChunkSum,
    gathered: &Gathered,
    ready: Bytes,
) -> [Option<Moment>; 2] {
    let mut walk = Walk {
        x,
        units,
        gathered,
        best: None,
        best_forward: None,
        absent: sum.to_come,
        added: Bytes::ZERO,
        deferred: defers(x.plan),
        passed: Passed::none(&sum.groups),
        ready,
    };
    let mut returned = Bytes::ZERO;
    // At the very beginning, when forward has saved nothing yet.
    for kind in SectionKind::ALL.into_iter().filter(|kind| kind.has_no_backward(x)) {
        if sum.counts[kind.index()] > 0 {
            walk.offer(kind, sum.kept, Bytes::ZERO);
        }
    }
    for kind in SectionKind::ALL.into_iter().rev().filter(|kind| kind.is_after_layers()) {
        let times = sum.counts[kind.index()];
        if times > 0 {
            let unit = units.get(kind);
            walk.offer(
                kind,
                returned,
                // A multi-token-prediction depth contains a layer, which may be fully recomputed.
                if kind.has_layer() { unit.full.less(unit.kept + unit.left) } else { Bytes::ZERO },
            );
            for _ in 0..times {
                walk.pass(kind);
            }
            returned += unit.kept * times;
            walk.make(unit, times);
        }
    }
    // Backward goes from the output layer to the embedding, so the sections after the current one have been freed.
    layers(x, &mut walk, chunk, sum, returned);
    let of_tower: Bytes = SectionKind::ALL
        .into_iter()
        .filter(|kind| kind.is_of_tower())
        .map(|kind| units.get(kind).kept * sum.counts[kind.index()])
        .sum();
    for kind in SectionKind::ALL.into_iter().filter(|kind| kind.is_before_layers()) {
        if sum.counts[kind.index()] > 0 {
            walk.offer(kind, sum.kept.less(units.get(kind).kept + of_tower), Bytes::ZERO);
            walk.make(units.get(kind), 1);
        }
    }
    // Images went through the vision tower before anything else ran, so everything it saved is still alive.
    let mut returned = sum.kept.less(of_tower);
    for kind in SectionKind::ALL.into_iter().filter(|kind| kind.is_of_tower() && !kind.has_no_backward(x)) {
        let (times, unit) = (sum.counts[kind.index()], units.get(kind));
        if times > 0 {
            walk.offer(kind, returned, unit.full.less(unit.kept));
        }
        // Layers of an encoder are as many and as large as the decoder's: gradients that appear one by one may make the last the peak.
        if times > 0 && kind.is_of_encoder() {
            walk.make(unit, times - 1);
            returned += unit.kept * (times - 1);
            walk.offer(kind, returned, unit.full.less(unit.kept));
            walk.make(unit, 1);
            returned += unit.kept;
        }
    }
    [walk.best, walk.best_forward]
}

/// Bytes of gradients that the chunk's backward creates, if they do not exist before.
fn to_come(x: &Symbols<'_>, units: &Units, chunk: &Chunk, counts: &Counts) -> Bytes {
    let frozen = frozen_counts(x, chunk);
    let counts = counts.iter().zip(frozen);
    units.iter().zip(counts).map(|((_, unit), (times, frozen))| unit.gradients * (times - frozen)).sum()
}

/// Walks the layers from last to first, offering the last of each kind, saved or recomputed; `returned` bytes were
/// freed before.
fn layers(x: &Symbols<'_>, walk: &mut Walk<'_>, chunk: &Chunk, sum: &ChunkSum, mut returned: Bytes) {
    let kept = sum.layers.layers;
    // By kind: whether a saved layer and a recomputed layer have been seen (true if the chunk has none).
    let mut seen = LayerKind::ALL.map(|kind| {
        let (kept, all) = (kept[kind.index()], sum.counts[SectionKind::Layer(kind).index()]);
        [kept == 0, all == kept]
    });
    let frozen = x.recipe().tuning.frozen_layers(x.model().num_layers);
    let adds = width_added_up(x.plan) > 0;
    let grows = walk.absent > Bytes::ZERO && !walk.deferred || adds || !sum.groups.is_empty();
    for index in chunk.layers.clone().rev().take_while(|index| *index >= frozen) {
        let layer = x.model().layer_kind(index);
        let kind = SectionKind::Layer(layer);
        let unit = walk.units.get(kind);
        let recomputed = x.recipe().recompute.recomputes_layer(index, &chunk.layers);
        let seen_before = &mut seen[layer.index()][usize::from(recomputed)];
        // If gradients appear layer by layer, an earlier layer may be the peak.
        if !std::mem::replace(seen_before, true) || grows {
            let run = if recomputed { run_recomputed(x, unit, &sum.layers) } else { Bytes::ZERO };
            walk.offer(kind, returned, run);
        }
        if !recomputed {
            returned += unit.kept;
        } else if sum.layers.run == 1 && sum.layers.inputs == sum.layers.runs {
            // What a checkpoint saved is freed once its backward ends.
            returned += run_input(x).bytes;
        }
        walk.pass(kind);
        walk.make(unit, 1);
        // Further layers find less alive than those already seen, since each layer in between freed what it saved. A
        // model of 126 layers then costs as much to walk as one of 4.
        if seen.iter().flatten().all(|seen| *seen) && !grows {
            break;
        }
    }
}

/// Bytes of one recomputed run. Its first input is the saved one, unless the first norm copies it or it comes back
/// from the host.
fn run_recomputed(x: &Symbols<'_>, unit: &Unit, layers: &LayersKept) -> Bytes {
    let comes_back = x.recipe().offload.every_input;
    // The copy coexists with the tensor that came back.
    let own = if comes_back && copies_layer_input(x) { run_input(x).bytes } else { Bytes::ZERO };
    let kept = if copies_layer_input(x) || comes_back { Bytes::ZERO } else { run_input(x).bytes };
    (unit.full * layers.run).less(kept) + own
}

impl Moment {
    /// The point of this moment.
    pub(super) fn point<'a>(&self, units: &'a Units) -> Option<&'a Point> {
        units.get(self.kind).points.get(self.point)
    }
}
