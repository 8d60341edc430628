//! Modules whose saved tensors go to the host (`--fine-grained-activation-offloading`): what leaves the device, and
//! what is back on it while a chunk runs backward.
//!
//! Every run of a module is a group. A group goes to the host when forward is done with its module, and by PyTorch's
//! count its storage is freed at once. When backward has passed a group, the group that left last comes back. So
//! backward of a chunk begins with as many groups on the device as there are different modules, and always stays that
//! far ahead. When none of its own are left, groups of the chunk that runs backward next come back. A chunk whose
//! backward immediately follows its forward never sends its last groups
//! (`megatron/core/pipeline_parallel/fine_grained_activation_offload.py`: `on_group_start_backward`, `bulk_reload`,
//! `should_bulk_offload`, `post_warmup_callback`).

use shardscope_operators::{Operator, Saved, SectionKind, Symbols, layers_backward};
use shardscope_plan::{Chunk, OffloadModule, OffloadModules};
use shardscope_units::Bytes;

/// One module of a section whose saved tensors go to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The module.
    pub(super) module: OffloadModule,
    /// Bytes of saved storages that leave the device, each counted where it is first saved.
    pub(super) left: Bytes,
    /// Bytes sent and fetched back: every copy counts separately, plus what forward also frees.
    pub(super) sent: Bytes,
    /// Bytes of what forward also frees.
    pub(super) beside: Bytes,
}

/// The groups of one section of `kind`, in the order in which forward finishes them.
pub(super) fn groups(x: &Symbols<'_>, kind: SectionKind, operators: &[Operator]) -> Vec<Group> {
    let modules = kind.offloaded(x);
    if modules.is_empty() {
        return Vec::new();
    }
    let least = x.recipe().offload.least;
    let saved: Vec<Saved> = operators.iter().flat_map(|operator| operator.saved(x)).collect();
    let beside: Vec<Saved> = operators.iter().flat_map(|operator| operator.sent_beside(x)).collect();
    let group = |module: OffloadModule| Group {
        module,
        left: saved
            .iter()
            .filter(|saved| saved.savers.modules.first() == Some(&module) && saved.leaves(modules, least))
            .map(|saved| saved.bytes)
            .sum(),
        sent: saved.iter().chain(&beside).map(|saved| saved.sent(module, least)).sum(),
        beside: beside
            .iter()
            .filter(|saved| saved.savers.modules.contains(&module))
            .map(|saved| saved.bytes)
            .sum(),
    };
    OffloadModule::DONE.into_iter().filter(|module| modules.has(*module)).map(group).collect()
}

/// Bytes saved by `operator`, in a section that offloads `modules`, that leave the device.
pub(super) fn left_by(x: &Symbols<'_>, operator: Operator, modules: OffloadModules) -> Bytes {
    if modules.is_empty() {
        return Bytes::ZERO;
    }
    let least = x.recipe().offload.least;
    let saved = operator.saved(x).into_iter();
    saved.filter(|saved| saved.leaves(modules, least)).map(|saved| saved.bytes).sum()
}

/// Whether the input of `chunk` stays on the device even though its first module sends it to the host: the pipeline
/// refers to the received tensor until backward ends, and only a standalone norm forcibly frees the storage
/// (`schedules.py: input_tensors`; `transformer_layer.py:_apply_self_attn_bda_step`).
pub(super) fn keeps_input(x: &Symbols<'_>, chunk: &Chunk) -> bool {
    if chunk.embedding || chunk.layers.is_empty() {
        return false;
    }
    let modules = SectionKind::Layer(x.model().layer_kind(chunk.layers.start)).offloaded(x);
    let reads = modules.has(OffloadModule::QkvLinear) && !modules.has(OffloadModule::AttentionNorm);
    reads && x.model().latent.is_none()
}

/// The groups of a chunk, in the order in which forward finishes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// Cumulative bytes of the last groups that come back: entry `n` is for the last `n`.
    back: Vec<Bytes>,
    /// Bytes that go to the host and come back.
    travels: Bytes,
    /// Number of different modules among them, which is how many groups are back before they are needed.
    ahead: usize,
    /// Whether backward of the chunk immediately follows its forward, as in the chunk that ends with the loss.
    at_once: bool,
    /// Whether another chunk's groups come back once backward has passed the last of its own.
    others: bool,
}

impl Groups {
    /// The groups of `chunk`; `of_kind` returns those of a section.
    pub(super) fn new<'u>(
        x: &Symbols<'_>,
        chunk: &Chunk,
        of_kind: &dyn Fn(SectionKind) -> &'u [Group],
    ) -> Self {
        if x.recipe().offload.modules.is_empty() {
            return Self::default();
        }
        let at_once = chunk.output_layer;
        let others = !at_once || x.plan.layout().virtual_pipeline > 1;
        let groups = layers_backward(x, chunk).into_iter().flat_map(|kind| of_kind(kind).iter().rev());
        Self::in_backward(groups, at_once, others)
    }

    /// The groups in the order in which backward needs them.
    fn in_backward<'u>(groups: impl Iterator<Item = &'u Group>, at_once: bool, others: bool) -> Self {
        let mut seen = OffloadModules::default();
        let travels = Bytes::ZERO;
        let mut out = Self { back: vec![Bytes::ZERO], travels, ahead: 0, at_once, others };
        let mut sum = Bytes::ZERO;
        for group in groups {
            let first = !seen.has(group.module);
            // If backward follows immediately, the last group of each module never left.
            let stays = first && at_once;
            sum += if stays { group.left } else { group.sent };
            out.travels += if stays { Bytes::ZERO } else { group.sent };
            out.back.push(sum);
            if first {
                seen = seen.with(group.module);
                out.ahead += 1;
            }
        }
        out
    }

    /// The number of groups.
    fn count(&self) -> usize {
        self.back.len().saturating_sub(1)
    }

    /// Bytes of groups that have come back when backward has passed `passed` of them: the chunk's own, including the
    /// passed ones, and those of the next chunk, which are assumed to be the same size.
    fn come_back(&self, passed: usize) -> Bytes {
        let all = passed + self.ahead;
        let own = self.sum(all.min(self.count()));
        let beyond = if self.others { all.saturating_sub(self.count()) } else { 0 };
        own + self.sum(beyond.min(self.ahead))
    }

    /// Bytes of the last `groups` groups.
    fn sum(&self, groups: usize) -> Bytes {
        self.back.get(groups).copied().unwrap_or_default()
    }

    /// Bytes waiting on the device for the next backward while another chunk runs.
    pub(super) fn ready(&self) -> Bytes {
        if self.at_once { Bytes::ZERO } else { self.sum(self.ahead.min(self.count())) }
    }

    /// The part of the other chunks' `ready` bytes that may be on the device while this chunk runs forward: none if
    /// this chunk runs backward next, because its forward is not yet over when those would come back.
    pub(super) fn beside(&self, ready: Bytes) -> Bytes {
        if self.at_once && !self.is_empty() { Bytes::ZERO } else { ready }
    }

    /// Bytes that one micro-batch sends to the host and gets back.
    pub(super) const fn travels(&self) -> Bytes {
        self.travels
    }

    /// Whether there are no groups.
    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

/// Progress of a chunk's backward: the groups that it has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    all: &'a Groups,
    /// How many groups.
    groups: usize,
    /// Bytes of those groups that had come back or never left.
    bytes: Bytes,
    seen: OffloadModules,
}

impl<'a> Passed<'a> {
    /// With no group of `all` passed yet.
    pub(super) fn none(all: &'a Groups) -> Self {
        Self { all, groups: 0, bytes: Bytes::ZERO, seen: OffloadModules::default() }
    }

    /// Also passes the groups of `modules` among `groups`, the groups of the current section.
    pub(super) fn and(mut self, groups: &[Group], modules: OffloadModules) -> Self {
        for group in groups.iter().rev().filter(|group| modules.has(group.module)) {
            let stayed = self.all.at_once && !self.seen.has(group.module);
            self.groups += 1;
            self.bytes += if stayed { group.left } else { group.sent };
            self.seen = self.seen.with(group.module);
        }
        self
    }

    /// Whether the chunk has no groups at all.
    pub(super) fn is_of_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes on the device of groups that are still needed.
    pub(super) fn on_device(&self) -> Bytes {
        self.all.come_back(self.groups).less(self.bytes)
    }
}

/// Bytes of a section's `modules` that have not left for the host yet during its forward pass.
pub(super) fn not_gone(groups: &[Group], modules: OffloadModules) -> Bytes {
    let own = groups.iter().filter(|group| modules.has(group.module));
    own.map(|group| group.left + group.beside).sum()
}

#[cfg(test)]
mod tests {
    use super::{Group, Groups, Passed};
    use shardscope_plan::{OffloadModule, OffloadModules};
    use shardscope_units::Bytes;

    /// What Megatron core's own manager was observed to hold on the device, pass after pass.
    const RECORDED: &str = include_str!("../../../../tests/data/activations/offloaded_modules.tsv");
    const LAYERS: usize = 3;

    fn bytes_of(text: &str, module: OffloadModule) -> Option<Bytes> {
        let found = text.split(' ').find_map(|of| of.strip_prefix(module.name())?.strip_prefix('='));
        found.map(|bytes| Bytes::new(bytes.parse().unwrap_or_default()))
    }

    #[test]
    fn groups_come_back_as_they_were_seen_to() {
        let mut runs = 0;
        for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            let [_, _, _, recomputed, _, order, sent, left, held] = cells.as_slice() else {
                panic!("{line}")
            };
            // A recomputed part takes its input out of its group before backward has passed the group.
            if !recomputed.is_empty() {
                continue;
            }
            let layer: Vec<Group> = OffloadModule::DONE
                .into_iter()
                .filter_map(|module| {
                    let (sent, left) = (bytes_of(sent, module)?, bytes_of(left, module)?);
                    Some(Group { module, left, sent, beside: Bytes::ZERO })
                })
                .collect();
            let at_once = order.starts_with("F0 B0");
            let backward = std::iter::repeat_n(layer.iter().rev(), LAYERS).flatten();
            let groups = Groups::in_backward(backward, at_once, !at_once);
            let mut passed = Passed::none(&groups);
            let begun = OffloadModule::BEGUN.into_iter().rev();
            let begun: Vec<OffloadModule> =
                begun.filter(|module| layer.iter().any(|group| group.module == *module)).collect();
            let mut held = held.split(' ').map(|both| -> u64 {
                both.split('+').map(|bytes| bytes.parse::<u64>().unwrap_or_default()).sum()
            });
            let mut next = || Bytes::new(held.next().unwrap_or_default());
            assert_eq!(passed.on_device(), next(), "{line}");
            for layer_of in 0..LAYERS {
                for (at, module) in begun.iter().enumerate() {
                    passed = passed.and(&layer, OffloadModules::default().with(*module));
                    assert_eq!(passed.on_device(), next(), "layer {layer_of}, {at}: {line}");
                }
            }
            runs += 1;
        }
        assert_eq!(runs, 8);
    }
}
