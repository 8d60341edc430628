//! The time of one micro-batch on one chunk, pass by pass and by what it is spent on.

use super::collective::{Ring, Rings};
use super::overlap::{Overlaps, Traffic, exposed};
use super::spent::Parts;
use crate::compute::{Cost, Device, Passes, passes, real};
use crate::flops::recomputed_layers;
use shardscope_operators::{
    Collective, Message, Pass, Section, SectionKind, Symbols, frozen_counts, messages_of, sections,
};
use shardscope_plan::{Chunk, Dispatcher};
use shardscope_units::{Quantity, Seconds};

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.compute += other.compute;
        self.tensor += other.tensor;
        self.context += other.context;
        self.expert += other.expert;
        self.data += other.data;
        self.other += other.other;
    }
}

/// The passes of one micro-batch over a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ChunkParts {
    pub(super) forward: Parts,
    /// Input gradients.
    pub(super) backward: Parts,
    /// Weight gradients.
    pub(super) weight: Parts,
    /// The forward parts done once more.
    pub(super) again: Parts,
}

impl ChunkParts {
    pub(super) fn total(&self) -> Seconds {
        self.forward.total() + self.backward.total() + self.weight.total() + self.again.total()
    }
}

/// What every chunk of a plan shares.
pub(super) struct Setting<'a> {
    pub(super) x: Symbols<'a>,
    pub(super) device: Device,
    pub(super) rings: Rings,
    pub(super) overlaps: Overlaps,
}

impl Setting<'_> {
    /// The passes over `chunk`; `known` keeps those over one section of each kind, which are the same
    /// wherever it stands.
    pub(super) fn chunk(&self, chunk: &Chunk, known: &mut Vec<(SectionKind, ChunkParts)>) -> ChunkParts {
        let layers = chunk.layers.end.saturating_sub(chunk.layers.start);
        let frozen = frozen_counts(&self.x, chunk);
        let mut out = ChunkParts::default();
        for section in sections(&self.x, chunk) {
            if !section.kind.runs() {
                continue;
            }
            let recomputed =
                recomputed_layers(&self.x.recipe().recompute, section.kind, section.times, layers);
            let one = match known.iter().find(|(kind, _)| *kind == section.kind) {
                Some((_, one)) => *one,
                None => {
                    let one = self.section(&section);
                    known.push((section.kind, one));
                    one
                }
            };
            let times = real(section.times);
            out.forward += one.forward.scaled(times);
            // Layers in front of the first that trains have no backward pass.
            let skipped = real(frozen[section.kind.index()]).min(times);
            let (trained, recomputed) = (times - skipped, (recomputed - skipped).max(0.0));
            out.backward += one.backward.scaled(trained);
            out.weight += one.weight.scaled(trained);
            out.again += one.forward.scaled(recomputed);
            out.again += one.again.scaled(trained - recomputed);
        }
        out
    }

    fn section(&self, section: &Section) -> ChunkParts {
        let passes = passes(&self.device, &self.x, &section.operators);
        let mut forward = Traffic::default();
        let mut backward = Traffic::default();
        for message in messages_of(&self.x, &section.operators) {
            let ring = self.rings.of_dimension(message.dimension);
            let time = self.message(ring, &message) * real(message.calls);
            let traffic = if message.pass == Pass::Forward { &mut forward } else { &mut backward };
            traffic.add(message.dimension, time, message.overlapped);
        }
        self.assemble(section, &passes, forward, backward)
    }

    /// One call. A dispatcher that sends a token once to each rank that wants it sends it once to each
    /// domain and lets it spread there on the fast link (DeepEP, HybridEP).
    fn message(&self, ring: Ring, message: &Message) -> Seconds {
        let once_per_domain = message.collective == Collective::AllToAll
            && self.x.recipe().moe.dispatcher == Dispatcher::Flex
            && ring.together < ring.size;
        if !once_per_domain {
            return ring.time(&self.device, message.collective, message.bytes());
        }
        let domains = real(ring.size.div_ceil(ring.together.max(1)));
        let chosen = self.x.model().experts.as_ref().map_or(1, |experts| experts.router_topk);
        let wanted = 1.0 - (1.0 - 1.0 / domains).powf(real(chosen));
        let copy = message.bytes().number() / real(self.x.moe.fan.max(1));
        ring.spread(&self.device, copy, (domains - 1.0) * wanted, real(self.x.moe.fan))
    }

    fn assemble(
        &self,
        section: &Section,
        passes: &Passes,
        forward: Traffic,
        backward: Traffic,
    ) -> ChunkParts {
        let layer = section.kind.has_layer();
        let products = passes.input_gradient.linear + passes.weight_gradient.linear;
        let ahead =
            exposed(&self.overlaps, &self.device, forward, passes.forward, passes.forward.linear, layer);
        let mut behind = passes.input_gradient;
        behind += passes.weight_gradient;
        let back = exposed(&self.overlaps, &self.device, backward, behind, products, layer);
        let parts = |compute: Cost, comm: Parts| {
            let mut parts = comm;
            parts.compute = compute;
            parts
        };
        let mut out = ChunkParts {
            forward: parts(passes.forward, ahead),
            backward: parts(passes.input_gradient, back),
            weight: parts(passes.weight_gradient, Parts::default()),
            again: parts(passes.selective, Parts::default()),
        };
        for pass in [&mut out.forward, &mut out.backward, &mut out.weight, &mut out.again] {
            self.wait_for_host(pass);
        }
        out
    }

    /// The device cannot run ahead of the host that issues its kernels.
    fn wait_for_host(&self, parts: &mut Parts) {
        let host = self.overlaps.host * parts.compute.launches;
        let missing = host.get() - parts.total().get();
        parts.other += Seconds::new(missing.max(0.0));
    }
}
