//! Every number that is compared.

use super::line::{Amount, ComparedNumber, Section};
use crate::Report;
use shardscope_estimate::time::part_words;
use shardscope_estimate::traffic::Parallelism;
use shardscope_estimate::{Needs, RankMemory, Totals};
use shardscope_units::{Bytes, Quantity};

/// Every figure of both reports, by subject.
pub(super) fn sections(before: &Report, after: &Report) -> Vec<Section> {
    vec![memory(before, after), time(before, after), traffic(before, after), model(before, after)]
}

/// A figure of a report, in both.
struct Figure {
    label: &'static str,
    of: fn(&Report) -> Amount,
    less_is_better: Option<bool>,
}

const fn figure(label: &'static str, of: fn(&Report) -> Amount, less_is_better: Option<bool>) -> Figure {
    Figure { label, of, less_is_better }
}

fn lines(figures: &[Figure], before: &Report, after: &Report) -> Vec<ComparedNumber> {
    let line = |figure: &Figure| ComparedNumber {
        label: figure.label.to_owned(),
        before: Some((figure.of)(before)),
        after: Some((figure.of)(after)),
        less_is_better: figure.less_is_better,
    };
    figures.iter().map(line).collect()
}

const LESS: Option<bool> = Some(true);
const MORE: Option<bool> = Some(false);

// By what PyTorch reserves, so that two plans are compared by the same measure whether they fit or not.
pub(super) fn fullest_rank(report: &Report) -> Option<&RankMemory> {
    report.memory.ranks.iter().max_by_key(|rank| rank.totals.peak_reserved)
}

fn fullest(report: &Report) -> Totals {
    fullest_rank(report).map(|rank| rank.totals).unwrap_or_default()
}

// As in the verdict: what PyTorch would cache on a larger device is not part of it.
fn needed(totals: &Totals, of: &Report) -> Bytes {
    Needs::new(totals.peak_reserved, totals.peak_required, of.memory.capacity).bytes
}

/// Figures of the fullest GPU.
static MEMORY: [Figure; 10] = [
    figure("on the device", |of| Amount::Memory(needed(&fullest(of), of)), LESS),
    figure("of capacity", |of| share(needed(&fullest(of), of), of.memory.capacity), LESS),
    figure("allocated by PyTorch", |of| Amount::Memory(fullest(of).peak_allocated), LESS),
    figure("parameters", |of| Amount::Memory(fullest(of).parameters), LESS),
    figure("gradients", |of| Amount::Memory(fullest(of).gradients), LESS),
    figure("optimizer", |of| Amount::Memory(fullest(of).optimizer), LESS),
    figure("activations", |of| Amount::Memory(fullest(of).activations), LESS),
    figure("temporaries", |of| Amount::Memory(fullest(of).temporaries), LESS),
    figure("framework", |of| Amount::Memory(fullest(of).framework), LESS),
    figure("between steps", |of| Amount::Memory(fullest(of).between_steps), LESS),
];

fn memory(before: &Report, after: &Report) -> Section {
    let mut lines = lines(&MEMORY, before, after);
    let stages = |report: &Report, stage: usize| {
        let rank = report.memory.ranks.get(stage)?;
        Some(Amount::Memory(needed(&rank.totals, report)))
    };
    let most = before.memory.ranks.len().max(after.memory.ranks.len());
    // With a single stage its line would repeat the block's first.
    if most > 1 {
        for stage in 0..most {
            lines.push(ComparedNumber {
                label: format!("stage {stage}"),
                before: stages(before, stage),
                after: stages(after, stage),
                less_is_better: LESS,
            });
        }
    }
    Section { title: "Memory of the peak rank", lines }
}

// A device without stated memory would divide by zero.
fn share(part: Bytes, whole: Bytes) -> Amount {
    Amount::Share(part.number() / whole.number().max(1.0))
}

/// Figures of a step.
static TIME: [Figure; 8] = [
    figure("step", |of| Amount::Time(of.time.step), LESS),
    figure("fully overlapped", |of| Amount::Time(of.time.lower_bound), LESS),
    figure("nothing overlapped", |of| Amount::Time(of.time.upper_bound), LESS),
    figure("tokens per second", |of| Amount::PerSecond(of.time.tokens_per_second), MORE),
    figure("tokens per second per GPU", |of| Amount::PerSecond(of.time.tokens_per_second_per_gpu), MORE),
    figure("MFU", |of| Amount::Share(of.time.mfu), MORE),
    figure("HFU", |of| Amount::Share(of.time.hfu), MORE),
    figure("bubble", |of| Amount::Share(of.time.bubble_fraction), LESS),
];

fn time(before: &Report, after: &Report) -> Section {
    let mut lines = lines(&TIME, before, after);
    // A part that only one of them has takes no time in the other.
    let part = |report: &Report, label: &str| {
        let part = report.time.breakdown.child(label).map(|child| child.value());
        Some(Amount::Time(part.unwrap_or_default()))
    };
    // Parts of both, those of the current plan first, in its order.
    let gone = before.time.breakdown.children().iter();
    let gone = gone.filter(|child| after.time.breakdown.child(child.label()).is_none());
    for child in after.time.breakdown.children().iter().chain(gone) {
        let label = child.label();
        lines.push(ComparedNumber {
            label: format!("incl. {}", part_words(label)),
            before: part(before, label),
            after: part(after, label),
            less_is_better: LESS,
        });
    }
    Section { title: "Step time", lines }
}

/// Figures over all GPUs.
static TRAFFIC: [Figure; 3] = [
    figure("sent by all GPUs", |of| Amount::Sent(of.traffic.cluster().wire), LESS),
    figure("of which inter-node", |of| Amount::Sent(of.traffic.cluster().network), LESS),
    figure("calls, all GPUs", |of| Amount::Count(of.traffic.cluster().calls), LESS),
];

fn traffic(before: &Report, after: &Report) -> Section {
    let mut lines = lines(&TRAFFIC, before, after);
    for &kind in &Parallelism::ALL {
        // A dimension that one of them does not have sends nothing there.
        let totals = |report: &Report| report.traffic.dimension(kind).map(|of| of.per_gpu());
        let sent = |report: &Report| Some(Amount::Sent(totals(report).unwrap_or_default().wire));
        let calls = |report: &Report| Some(Amount::Count(totals(report).unwrap_or_default().calls));
        if totals(before).is_none() && totals(after).is_none() {
            continue;
        }
        let label = |what: &str| format!("{}, {what} of a GPU", kind.name());
        let line = |label, before, after| ComparedNumber { label, before, after, less_is_better: LESS };
        lines.push(line(label("bytes"), sent(before), sent(after)));
        lines.push(line(label("calls"), calls(before), calls(after)));
    }
    Section { title: "Communication of a step", lines }
}

/// Figures of the model.
static MODEL: [Figure; 2] = [
    figure("parameters", |of| Amount::Count(of.parameters.total.get()), None),
    figure("of it active for a token", |of| Amount::Count(of.parameters.active_per_token.get()), None),
];

fn model(before: &Report, after: &Report) -> Section {
    // The most on any rank; ranks of one stage may hold different experts.
    let largest = |of: &Report| of.parameters.ranks.iter().map(|rank| rank.count.get()).max().unwrap_or(0);
    let mut lines = lines(&MODEL, before, after);
    lines.push(ComparedNumber {
        label: "on the GPU with most of them".to_owned(),
        before: Some(Amount::Count(largest(before))),
        after: Some(Amount::Count(largest(after))),
        less_is_better: LESS,
    });
    Section { title: "Model", lines }
}
