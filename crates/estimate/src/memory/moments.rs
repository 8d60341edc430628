//! When a chunk that runs backward holds most, beside what all chunks keep.

use super::gathered::Gathered;
use super::kept::{LayersKept, kept_by, layers_kept, rotary_table, run_input};
use super::offloaded::{Groups, Passed, keeps_input, not_gone};
use super::own_states::{defers, width_added_up};
use super::unit::{Counts, Point, Unit, Units};
use shardscope_operators::{SectionKind, Symbols, copies_layer_input, frozen_counts, section_counts};
use shardscope_plan::{Chunk, LayerKind, OffloadModule};
use shardscope_units::Bytes;

/// A chunk worked out: what it holds for good, for each micro-batch, and at its fullest.
#[derive(Clone, Debug)]
pub(super) struct ChunkSum {
    /// How often each kind of section comes.
    pub(super) counts: Counts,
    /// How its layers are kept.
    pub(super) layers: LayersKept,
    /// Modules of its layers whose saved tensors go to the host.
    pub(super) groups: Groups,
    /// Whether its input stays on the device although its first module sends it to the host.
    pub(super) keeps_input: bool,
    /// Kept for one micro-batch.
    pub(super) kept: Bytes,
    /// Left of one micro-batch between its input gradients and its weight gradients.
    pub(super) waiting: Bytes,
    /// Kept once for all micro-batches.
    pub(super) once: Bytes,
    /// Bytes of gradients that its backward makes, where there are none before.
    pub(super) to_come: Bytes,
    /// The fullest moment of its backward pass, and of a frozen part's forward.
    pub(super) fullest: Option<Moment>,
    /// The fullest moment of its forward pass, where modules are offloaded.
    pub(super) forward: Option<Moment>,
    /// Bytes of offloaded modules of another chunk that are taken to wait on the device while it runs.
    pub(super) ready: Bytes,
}

/// One moment of one chunk's passes for the micro-batch at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// In which section.
    pub(super) kind: SectionKind,
    /// Which of the unit's points.
    pub(super) point: usize,
    /// Bytes of layers recomputed as a whole.
    pub(super) recomputed: Bytes,
    /// Kept bytes of the chunk given back before the section begins.
    pub(super) returned: Bytes,
    /// Bytes that the host has given back for the section, where saved tensors wait there.
    pub(super) back: Option<Bytes>,
    /// Bytes of offloaded modules that are on the device.
    pub(super) modules: Bytes,
    /// Bytes of gradients that backward has not made yet.
    pub(super) absent: Bytes,
    /// Bytes of gradient shards that stay beside the gradients until backward is over.
    pub(super) added: Bytes,
    /// Bytes alive beyond what all chunks keep and all states, gathered weights among them, less those given back and
    /// those not made yet.
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
        // Of a recomputed block only the input of its first layer waits for backward.
        if layers.runs > 0 {
            kept += run_input(x).bytes * layers.inputs;
        }
        for ((kind, unit), &times) in units.iter().zip(&counts) {
            if times > 0 {
                kept += unit.kept * layers.kept_of(kind, times);
                // One layer of this kind keeps less: nothing asks for the gradient of its input.
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
            // Token numbers are the batch's own, which stays.
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

/// Goes through the chunk's sections as backward does, keeping the moment at which most is alive.
struct Walk<'a> {
    x: &'a Symbols<'a>,
    units: &'a Units,
    gathered: &'a Gathered,
    best: Option<Moment>,
    /// The same of the forward pass, where modules are offloaded.
    best_forward: Option<Moment>,
    /// Bytes of gradients that the sections still to come will make.
    absent: Bytes,
    /// Bytes of gradient shards that stay beside the gradients until backward is over, of the sections behind.
    added: Bytes,
    /// Whether they come when more goes than they are: whole ones, of which they are the shards.
    deferred: bool,
    /// How far it has come where modules are offloaded.
    passed: Passed<'a>,
    /// Bytes of offloaded modules of another chunk that wait on the device for its backward.
    ready: Bytes,
}

impl Walk<'_> {
    /// Has the gradients of so many sections.
    fn make(&mut self, unit: &Unit, times: u64) {
        if !self.deferred {
            self.absent = self.absent.less(unit.gradients * times);
        }
        self.added += unit.added * times;
    }

    /// Bytes that backward has made by now beside what it gives back, less those of gradients that are still to come.
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
            // Signed: late in backward more has been freed than the point adds, and the peak may then lie elsewhere.
            let net = unit.points[point].net() + more + whole;
            if self.best.is_none_or(|best| net > best.net) {
                let (absent, added) = (self.absent, self.added);
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

    /// The same where modules are offloaded, every point of the section: which is the fullest depends on what has come back from
    /// the host by then. In forward the groups that the next backward needs first wait on the device already, and what the
    /// sections behind will keep is not there yet.
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
            let (absent, added) = (self.absent, self.added);
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

    /// Goes past a section, whose groups backward has no more need of.
    fn pass(&mut self, kind: SectionKind) {
        let groups = &self.units.get(kind).groups;
        self.passed = self.passed.and(groups, OffloadModule::BEGUN.into_iter().collect());
    }

    /// The same where saved tensors wait on the host: on the device are those of the operator at work, or the input of the
    /// layer that is computed again.
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
            let alive = back + recomputed + point.recomputed + point.transient.bytes();
            let net = i128::from(alive.get()) - i128::from(returned.get()) + self.made() + whole;
            if self.best.is_none_or(|best| net > best.net) {
                // What the point counts as given back is of its own section alone.
                let moment = Moment {
                    kind,
                    point: index,
                    recomputed,
                    returned: Bytes::ZERO,
                    back: Some(back),
                    modules: Bytes::ZERO,
                    absent: self.absent,
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
    // At its very beginning, when forward has kept nothing yet.
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
                // A multi-token-prediction depth holds a layer of its own, which may be recomputed as a whole.
                if kind.has_layer() { unit.full.less(unit.kept + unit.left) } else { Bytes::ZERO },
            );
            for _ in 0..times {
                walk.pass(kind);
            }
            returned += unit.kept * times;
            walk.make(unit, times);
        }
    }
    // Backward goes from the output layer to the embedding, so what lies behind a section has been freed when it runs.
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
    // Images went through their tower before anything else ran: of it all that it kept is still there.
    for kind in SectionKind::ALL.into_iter().filter(|kind| kind.is_of_tower() && !kind.has_no_backward(x)) {
        if sum.counts[kind.index()] > 0 {
            let unit = units.get(kind);
            walk.offer(kind, sum.kept.less(of_tower), unit.full.less(unit.kept));
        }
    }
    [walk.best, walk.best_forward]
}

/// Bytes of gradients that the chunk's backward makes, where there are none before.
fn to_come(x: &Symbols<'_>, units: &Units, chunk: &Chunk, counts: &Counts) -> Bytes {
    let frozen = frozen_counts(x, chunk);
    let counts = counts.iter().zip(frozen);
    units.iter().zip(counts).map(|((_, unit), (times, frozen))| unit.gradients * (times - frozen)).sum()
}

/// The last layer of each kind, kept or recomputed, `returned` given back before.
fn layers(x: &Symbols<'_>, walk: &mut Walk<'_>, chunk: &Chunk, sum: &ChunkSum, mut returned: Bytes) {
    let kept = sum.layers.layers;
    // By kind, whether one that is kept and one that is recomputed has been seen, or none is there to be seen.
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
        // Where gradients come layer by layer, an earlier one may be the fullest.
        if !std::mem::replace(seen_before, true) || grows {
            let run = if recomputed { run_recomputed(x, unit, &sum.layers) } else { Bytes::ZERO };
            walk.offer(kind, returned, run);
        }
        if !recomputed {
            returned += unit.kept;
        } else if sum.layers.run == 1 && sum.layers.inputs == sum.layers.runs {
            // What a checkpoint saved is let go of when its backward is over.
            returned += run_input(x).bytes;
        }
        walk.pass(kind);
        walk.make(unit, 1);
        // Further layers find less alive than the ones seen: each before them has freed what it kept. A model of 126 layers
        // then costs as much to walk as one of 4.
        if seen.iter().flatten().all(|seen| *seen) && !grows {
            break;
        }
    }
}

/// Bytes of one recomputed run. Its first input is the kept one, unless the first norm makes a copy of it.
fn run_recomputed(x: &Symbols<'_>, unit: &Unit, layers: &LayersKept) -> Bytes {
    let kept = if copies_layer_input(x) { Bytes::ZERO } else { run_input(x).bytes };
    (unit.full * layers.run).less(kept)
}

impl Moment {
    /// The point of it.
    pub(super) fn point<'a>(&self, units: &'a Units) -> Option<&'a Point> {
        units.get(self.kind).points.get(self.point)
    }
}
