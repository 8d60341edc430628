//! The time of one micro-batch on one chunk, by pass and by what it is spent on.

use super::collective::{Ring, Rings};
use super::overlap::{Overlaps, Traffic, across, exposed};
use super::spent::Parts;
use crate::compute::{Cost, Device, Passes, passes, real};
use crate::flops::recomputed_layers;
use shardscope_operators::{
    Collective, Message, Pass, Section, SectionKind, Symbols, frozen_counts, messages_of, section_counts,
};
use shardscope_plan::{Chunk, Dispatcher, Experts, NumberFormat};
use shardscope_units::{Quantity, Seconds};

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.compute += other.compute;
        self.tensor += other.tensor;
        self.context += other.context;
        self.expert += other.expert;
        self.data += other.data;
        self.host += other.host;
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
    /// Recomputation of forward.
    pub(super) again: Parts,
}

impl ChunkParts {
    fn passes(&mut self) -> [&mut Parts; 4] {
        [&mut self.forward, &mut self.backward, &mut self.weight, &mut self.again]
    }

    pub(super) fn total(&self) -> Seconds {
        self.forward.total() + self.backward.total() + self.weight.total() + self.again.total()
    }
}

/// The share of an all-reduce: a reduce-scatter and an all-gather are each half of one.
const fn share_of_all_reduce(collective: Collective) -> f64 {
    match collective {
        Collective::AllGather | Collective::ReduceScatter => 0.5,
        Collective::AllReduce | Collective::AllToAll | Collective::SendRecv | Collective::Broadcast => 1.0,
    }
}

/// The average number of fast-link domains, out of `domains` that hold equal shares of the experts, in which a token
/// has at least one of its experts, under an even router. Group-limited routing restricts it to the domains of the
/// chosen groups.
fn visited(experts: &Experts, domains: u64) -> f64 {
    let all = real(domains);
    let reach = match experts.groups {
        None => all,
        // A group may span several domains, or a domain may hold several groups.
        Some(groups) if groups.count <= domains => all * real(groups.chosen) / real(groups.count),
        Some(groups) => {
            let inside = groups.count / domains.max(1);
            let free =
                |taken: u64| real(groups.count.saturating_sub(inside + taken)) / real(groups.count - taken);
            all * (1.0 - (0..groups.chosen).map(free).product::<f64>())
        }
    };
    let reach = reach.max(1.0);
    reach * (1.0 - (1.0 - 1.0 / reach).powf(real(experts.router_topk)))
}

/// What every chunk of a plan shares.
pub(super) struct Setting<'a> {
    pub(super) x: Symbols<'a>,
    pub(super) device: Device,
    pub(super) rings: Rings,
    pub(super) overlaps: Overlaps,
}

impl Setting<'_> {
    /// The passes over `chunk`; `known` caches those over one section of each kind, which are the same wherever the
    /// section is.
    pub(super) fn chunk(&self, chunk: &Chunk, known: &mut Vec<(SectionKind, ChunkParts)>) -> ChunkParts {
        let counts = section_counts(&self.x, chunk).into_iter().zip(frozen_counts(&self.x, chunk));
        // The layers with what precedes them, and what follows.
        let mut parts = [ChunkParts::default(); 2];
        for (kind, (count, frozen)) in SectionKind::ALL.into_iter().zip(counts) {
            if count == 0 || !kind.runs() {
                continue;
            }
            let recomputed = recomputed_layers(&self.x.recipe().recompute, kind, count, &chunk.layers);
            let one = match known.iter().find(|(known, _)| *known == kind) {
                Some((_, one)) => *one,
                None => {
                    let one = self.section(&Section { kind, times: 1, operators: kind.operators(&self.x) });
                    known.push((kind, one));
                    one
                }
            };
            let times = real(count);
            // A reference model only runs forward.
            let beside = self.x.recipe().tuning.objective.passes_beside();
            let [layers, last] = &mut parts;
            let out = if kind.follows_layers() { last } else { layers };
            out.forward += one.forward.scaled(times * (1.0 + real(beside)));
            // Layers before the first trainable one have no backward pass.
            let skipped = real(frozen).min(times);
            let (trained, recomputed) = (times - skipped, (recomputed - skipped).max(0.0));
            out.backward += one.backward.scaled(trained);
            out.weight += one.weight.scaled(trained);
            let mut whole = one.forward;
            whole.compute.launches += self.overlaps.issue.hooks(&one.forward.compute);
            out.again += whole.scaled(recomputed);
            // Selective recomputation repeats parts of every layer; of whole layers it takes off what they do not repeat.
            out.again += one.again.scaled(trained);
        }
        self.heat(&mut parts);
        let mut out = ChunkParts::of_all(&parts);
        let pipelined = self.x.plan.layout().pipeline > 1;
        if self.x.recipe().software.semantics().eager_modules && !pipelined {
            self.wait_in_order(&mut out, &parts);
            return out;
        }
        let sends = if pipelined { self.overlaps.issue.message } else { Seconds::ZERO };
        self.wait_for_host(&mut out, pipelined, sends);
        out
    }

    /// Products slow down as they fill the device's time, if its rates are those of kernels within a step.
    fn heat(&self, parts: &mut [ChunkParts; 2]) {
        let single = self.x.recipe().compute_dtype() == NumberFormat::Fp32;
        let Some(alone) = self.device.single.filter(|_| !single) else { return };
        let mut whole = ChunkParts::of_all(parts);
        let sum = |of: fn(&Cost) -> Seconds, whole: &mut ChunkParts| {
            whole.passes().iter().map(|parts| of(&parts.compute)).sum::<Seconds>().get()
        };
        let all = sum(Cost::total, &mut whole);
        if all > 0.0 {
            let factor = alone.heated(sum(|cost| cost.linear + cost.attention, &mut whole) / all);
            for parts in parts.iter_mut().flat_map(ChunkParts::passes) {
                parts.compute.linear = parts.compute.linear * factor;
            }
        }
    }

    fn section(&self, section: &Section) -> ChunkParts {
        let mut passes = passes(&self.device, &self.x, section.kind, &section.operators);
        let mut forward = Traffic::default();
        let mut backward = Traffic::default();
        for message in messages_of(&self.x, &section.operators) {
            let ring = self.rings.of_dimension(message.dimension);
            let time = self.message(ring, &message) * real(message.calls);
            let (traffic, pass) = if message.pass == Pass::Forward {
                (&mut forward, &mut passes.forward)
            } else {
                (&mut backward, &mut passes.input_gradient)
            };
            // For a group of one, no call is issued, so the host spends no time on it.
            if ring.size > 1 {
                pass.messages += real(message.calls) * share_of_all_reduce(message.collective);
            }
            traffic.add(message.dimension, time, message.overlapped);
        }
        self.assemble(section, &passes, forward, backward)
    }

    /// The time of one call. A dispatcher that sends a token once to each rank that needs it sends it once to each
    /// domain and distributes it there over the fast link (DeepEP, HybridEP).
    fn message(&self, ring: Ring, message: &Message) -> Seconds {
        let once_per_domain = message.collective == Collective::AllToAll
            && self.x.recipe().moe.dispatcher == Dispatcher::Flex
            && ring.together < ring.size;
        if !once_per_domain {
            return ring.time(&self.device, message.collective, message.bytes());
        }
        let domains = ring.size.div_ceil(ring.together.max(1));
        let visited = self.x.model().experts.as_ref().map_or(1.0, |experts| visited(experts, domains));
        // The message counts a token once for each rank with one of its experts; divided by that fan-out it is one
        // copy of all tokens.
        let copy = message.bytes().number() / real(self.x.moe.fan.max(1));
        let remote = visited * (1.0 - 1.0 / real(domains));
        ring.spread(&self.device, copy, remote, real(self.x.moe.fan))
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
        let mut ahead =
            exposed(&self.overlaps, &self.device, forward, passes.forward, passes.forward.linear, layer);
        let mut behind = passes.input_gradient;
        behind += passes.weight_gradient;
        let mut back = exposed(&self.overlaps, &self.device, backward, behind, products, layer);
        [ahead.expert, back.expert] = across(
            &self.overlaps,
            &self.device,
            [forward, backward],
            passes.forward.total() + behind.total(),
        );
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
        if section.operators.iter().any(|operator| operator.reads_back(&self.x)) {
            // The rows of each expert are read back before its products are launched, so the host cannot run ahead.
            self.wait_for_host(&mut out, true, Seconds::ZERO);
        }
        out
    }

    /// The device cannot run ahead of the host that issues its kernels; a lead that the host gains in one layer
    /// carries over to the next. If `stops`, the host pauses between forward and backward, for messages between
    /// stages that take it `sends`. Waits already counted in a section are not counted again for its chunk.
    fn wait_for_host(&self, out: &mut ChunkParts, stops: bool, sends: Seconds) {
        let [first, second] = self.beyond_device(out);
        if stops {
            out.forward.host += (first + sends).greater(Seconds::ZERO);
            out.backward.host += (second + sends).greater(Seconds::ZERO);
        } else {
            out.backward.host += (first + second).greater(Seconds::ZERO);
        }
    }

    /// The host's time for the forward and the backward pass of `parts`, beyond the device's.
    fn beyond_device(&self, parts: &ChunkParts) -> [Seconds; 2] {
        let issue = &self.overlaps.issue;
        let behind = issue.behind(&parts.backward.compute)
            + issue.behind(&parts.weight.compute)
            + issue.ahead(&parts.again.compute);
        [issue.ahead(&parts.forward.compute) - parts.forward.total(), behind - parts.behind()]
    }

    /// The same for software whose kernels are counted one by one and that waits for each micro-batch's loss
    /// (`transformers/trainer.py:logging_nan_inf_filter`), so that neither host nor device starts with a lead. The
    /// host may run ahead of the device, but time in which the device has waited is lost, however slow the kernels
    /// behind are: layers, what follows them, and the same backward, in this order.
    fn wait_in_order(&self, out: &mut ChunkParts, parts: &[ChunkParts; 2]) {
        let [layers, last] = [0, 1].map(|part: usize| self.beyond_device(&parts[part]));
        let (mut behind, mut waited) = (Seconds::ZERO, [Seconds::ZERO; 2]);
        for (pass, beyond) in [(0, layers[0]), (0, last[0]), (1, last[1]), (1, layers[1])] {
            behind += beyond;
            let before = waited[0] + waited[1];
            if behind > before {
                waited[pass] += behind - before;
            }
        }
        out.forward.host += waited[0];
        out.backward.host += waited[1];
    }
}

#[cfg(test)]
mod tests {
    use super::visited;
    use shardscope_plan::{ExpertGroups, Experts};

    /// DeepSeek-V3 on eight nodes: 8 of 256 experts, from 4 of 8 groups.
    #[test]
    fn groups_limit_the_domains_that_a_token_visits() {
        let experts = |groups| Experts {
            num_experts: 256,
            router_topk: 8,
            ffn_hidden_size: 2048,
            pattern: Vec::new(),
            shared_expert_intermediate_size: None,
            shared_expert_gate: false,
            latent_size: None,
            groups,
        };
        let limited = |count, chosen| visited(&experts(Some(ExpertGroups { count, chosen })), 8);
        let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
        near(visited(&experts(None), 8), 8.0 * (1.0 - 0.875_f64.powi(8)));
        near(limited(8, 4), 4.0 * (1.0 - 0.75_f64.powi(8)));
        // With four groups, each spans two nodes; with sixteen, each node holds two.
        near(limited(4, 2), 4.0 * (1.0 - 0.75_f64.powi(8)));
        let reach: f64 = 8.0 * (1.0 - 14.0 / 16.0 * 13.0 / 15.0);
        near(limited(16, 2), reach * (1.0 - (1.0 - 1.0 / reach).powi(8)));
        let alone = experts(Some(ExpertGroups { count: 8, chosen: 1 }));
        near(visited(&alone, 1), 1.0);
    }
}
