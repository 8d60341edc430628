//! Two plans side by side: every number with its difference, the settings that differ, and the parts that
//! changed most.

use super::Report;
use crate::estimate::RankMemory;
use crate::estimate::traffic::Parallelism;
use crate::explain::{Breakdown, Rule};
use crate::intake::{Origin, Resolution, SettingValue};
use crate::plan::{Field, Plan};
use crate::quantity::{
    Bytes, Count, Quantity, Seconds, decimal, gib, grouped, percent, product, rounded, seconds, size,
};

/// One of the two.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// Its settings with where they come from.
    pub resolution: &'a Resolution,
    /// The plan.
    pub plan: &'a Plan,
    /// Its estimates.
    pub report: &'a Report,
}

/// Everything that two plans differ in.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Settings with different values, those that someone stated first.
    pub settings: Vec<SettingDifference>,
    /// Every number of both.
    pub sections: Vec<Section>,
    /// The parts of the fullest GPU's memory that changed most, greatest change first.
    pub memory_causes: Vec<Cause>,
    /// The parts of the step that changed most, greatest change first.
    pub time_causes: Vec<Cause>,
}

/// A setting with two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Its name.
    pub name: &'static str,
    /// The pinned plan's value; empty where it has none.
    pub before: String,
    /// The value of the plan in hand; empty where it has none.
    pub after: String,
    /// Whether someone stated one of the two; what is not stated follows from what is.
    pub stated: bool,
}

/// Numbers that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What they are about.
    pub title: &'static str,
    /// The numbers.
    pub lines: Vec<Line>,
}

/// One number of both plans.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub label: String,
    /// Of the pinned plan; none where it has no such number.
    pub before: Option<Amount>,
    /// Of the plan in hand; none where it has no such number.
    pub after: Option<Amount>,
    /// Whether less of it is better; none where neither is.
    pub less_is_better: Option<bool>,
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// Memory, shown in GiB.
    Memory(Bytes),
    /// Messages, shown in the unit that suits.
    Sent(Bytes),
    /// Whole things.
    Count(u64),
    /// A duration.
    Time(Seconds),
    /// A rate per second, rounded.
    PerSecond(f64),
    /// A share, 0 to 1.
    Share(f64),
}

/// A part that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Where it lies: `activations › dense layer › mlp › input`.
    pub path: String,
    /// In the pinned plan.
    pub before: Amount,
    /// In the plan in hand.
    pub after: Amount,
}

impl Amount {
    /// The number alone, for differences and their order.
    #[must_use]
    pub fn number(self) -> f64 {
        match self {
            Self::Memory(bytes) | Self::Sent(bytes) => bytes.number(),
            #[allow(clippy::cast_precision_loss)]
            Self::Count(count) => count as f64,
            Self::Time(time) => time.get(),
            Self::PerSecond(value) | Self::Share(value) => value,
        }
    }

    /// With its unit.
    #[must_use]
    pub fn shown(self) -> String {
        match self {
            Self::Memory(bytes) => gib(bytes),
            Self::Sent(bytes) => size(bytes),
            Self::Count(count) => grouped(count),
            Self::Time(time) => seconds(time),
            Self::PerSecond(value) => rounded(value),
            Self::Share(value) => percent(value),
        }
    }

    /// `self` less `before`, with a sign and the unit.
    #[must_use]
    pub fn difference(self, before: Self) -> String {
        let change = self.number() - before.number();
        let sign = if change < 0.0 { "−" } else { "+" };
        let magnitude = match (self, before) {
            (Self::Memory(a), Self::Memory(b)) => Self::Memory(apart(a, b)),
            (Self::Sent(a), Self::Sent(b)) => Self::Sent(apart(a, b)),
            (Self::Count(a), Self::Count(b)) => Self::Count(a.abs_diff(b)),
            (Self::Time(a), Self::Time(b)) => Self::Time(Seconds::new((a.get() - b.get()).abs())),
            (Self::Share(a), Self::Share(b)) => {
                // Between shares the difference is in points.
                return format!("{sign}{} points", decimal((a - b).abs() * 100.0, 1));
            }
            (Self::PerSecond(a), Self::PerSecond(b)) => Self::PerSecond((a - b).abs()),
            _ => return String::new(),
        };
        format!("{sign}{}", magnitude.shown())
    }
}

fn apart(a: Bytes, b: Bytes) -> Bytes {
    Bytes::new(a.get().abs_diff(b.get()))
}

impl Line {
    /// The change in words: `+1.20 GiB, +4.3 %`; none where nothing changed or one side has no such number.
    #[must_use]
    pub fn change(&self) -> Option<String> {
        let (before, after) = (self.before?, self.after?);
        if before == after {
            return None;
        }
        let difference = after.difference(before);
        let base = before.number();
        if matches!(after, Amount::Share(_)) || base == 0.0 {
            return Some(difference);
        }
        let share = (after.number() - base) / base;
        let sign = if share < 0.0 { "−" } else { "+" };
        Some(format!("{difference}, {sign}{}", percent(share.abs())))
    }

    /// Whether the change is for the better; none where nothing changed or neither is.
    #[must_use]
    pub fn is_better(&self) -> Option<bool> {
        let (before, after) = (self.before?.number(), self.after?.number());
        (before != after).then_some((after < before) == self.less_is_better?)
    }
}

/// `after` beside `before`.
#[must_use]
pub fn compare_plans(before: Side<'_>, after: Side<'_>) -> Comparison {
    Comparison {
        settings: settings(before.resolution, after.resolution),
        sections: vec![
            memory(before.report, after.report),
            time(before.report, after.report),
            traffic(before.report, after.report),
            model(before.report, after.report),
        ],
        memory_causes: causes(worst(before.report), worst(after.report), |bytes| {
            Amount::Memory(Count::rounded_up(bytes).bytes(1))
        }),
        time_causes: causes(
            Some(&before.report.time.breakdown),
            Some(&after.report.time.breakdown),
            |seconds| Amount::Time(Seconds::new(seconds)),
        ),
    }
}

fn settings(before: &Resolution, after: &Resolution) -> Vec<SettingDifference> {
    let (mut stated_first, mut differences) = (Vec::new(), Vec::new());
    for field in Field::ALL {
        let (Some(a), Some(b)) = (before.setting(*field), after.setting(*field)) else { continue };
        if a.value == b.value || field.is_idle() {
            continue;
        }
        let stated = [a, b].into_iter().any(|setting| {
            let said = matches!(setting.origin, Origin::Script | Origin::Environment | Origin::User);
            said && setting.value != SettingValue::Null
        });
        let list = if stated { &mut stated_first } else { &mut differences };
        list.push(SettingDifference {
            name: field.name(),
            before: a.value.written(),
            after: b.value.written(),
            stated,
        });
    }
    stated_first.extend(differences);
    stated_first
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

fn lines(figures: &[Figure], before: &Report, after: &Report) -> Vec<Line> {
    let line = |figure: &Figure| Line {
        label: figure.label.to_owned(),
        before: Some((figure.of)(before)),
        after: Some((figure.of)(after)),
        less_is_better: figure.less_is_better,
    };
    figures.iter().map(line).collect()
}

const LESS: Option<bool> = Some(true);
const MORE: Option<bool> = Some(false);

fn fullest_rank(report: &Report) -> Option<&RankMemory> {
    report.memory.ranks.iter().max_by_key(|rank| rank.totals.peak_reserved)
}

#[inline(never)]
fn fullest(report: &Report) -> crate::estimate::Totals {
    fullest_rank(report).map(|rank| rank.totals).unwrap_or_default()
}

/// Of the fullest GPU.
static MEMORY: [Figure; 10] = [
    figure("on the device", |of| Amount::Memory(fullest(of).peak_reserved), LESS),
    figure("of capacity", |of| share(fullest(of).peak_reserved, of.memory.capacity), LESS),
    figure("allocated by torch", |of| Amount::Memory(fullest(of).peak_allocated), LESS),
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
        report.memory.ranks.get(stage).map(|rank| Amount::Memory(rank.totals.peak_reserved))
    };
    let most = before.memory.ranks.len().max(after.memory.ranks.len());
    if most > 1 {
        for stage in 0..most {
            lines.push(Line {
                label: format!("stage {stage}"),
                before: stages(before, stage),
                after: stages(after, stage),
                less_is_better: LESS,
            });
        }
    }
    Section { title: "Memory of the fullest GPU", lines }
}

fn share(part: Bytes, whole: Bytes) -> Amount {
    Amount::Share(part.number() / whole.number().max(1.0))
}

/// Of a step.
static TIME: [Figure; 8] = [
    figure("step", |of| Amount::Time(of.time.step), LESS),
    figure("at best", |of| Amount::Time(of.time.lower_bound), LESS),
    figure("at worst", |of| Amount::Time(of.time.upper_bound), LESS),
    figure("tokens per second", |of| Amount::PerSecond(of.time.tokens_per_second), MORE),
    figure("tokens per second and GPU", |of| Amount::PerSecond(of.time.tokens_per_second_per_gpu), MORE),
    figure("MFU", |of| Amount::Share(of.time.mfu), MORE),
    figure("HFU", |of| Amount::Share(of.time.hfu), MORE),
    figure("bubble", |of| Amount::Share(of.time.bubble_fraction), LESS),
];

fn time(before: &Report, after: &Report) -> Section {
    let mut lines = lines(&TIME, before, after);
    let part = |report: &Report, label: &str| {
        report.time.breakdown.child(label).map(|child| Amount::Time(child.value()))
    };
    for child in after.time.breakdown.children() {
        let label = child.label();
        lines.push(Line {
            label: format!("of it {label}"),
            before: part(before, label),
            after: part(after, label),
            less_is_better: LESS,
        });
    }
    Section { title: "Time of a step", lines }
}

/// Of all GPUs.
static TRAFFIC: [Figure; 3] = [
    figure("sent by all GPUs", |of| Amount::Sent(of.traffic.cluster().wire), LESS),
    figure("of it over the network", |of| Amount::Sent(of.traffic.cluster().network), LESS),
    figure("calls of all GPUs", |of| Amount::Count(of.traffic.cluster().calls), LESS),
];

fn traffic(before: &Report, after: &Report) -> Section {
    let mut lines = lines(&TRAFFIC, before, after);
    for &kind in &Parallelism::ALL {
        let sent = |report: &Report| report.traffic.of(kind).map(|of| Amount::Sent(of.per_gpu().wire));
        let calls = |report: &Report| report.traffic.of(kind).map(|of| Amount::Count(of.per_gpu().calls));
        if sent(before).is_none() && sent(after).is_none() {
            continue;
        }
        let label = |what: &str| format!("{}, {what} of a GPU", kind.name());
        let line = |label, before, after| Line { label, before, after, less_is_better: LESS };
        lines.push(line(label("bytes"), sent(before), sent(after)));
        lines.push(line(label("calls"), calls(before), calls(after)));
    }
    Section { title: "Communication of a step", lines }
}

/// Of the model.
static MODEL: [Figure; 2] = [
    figure("parameters", |of| Amount::Count(of.parameters.total.get()), None),
    figure("of it active for a token", |of| Amount::Count(of.parameters.active_per_token.get()), None),
];

fn model(before: &Report, after: &Report) -> Section {
    let largest = |of: &Report| of.parameters.ranks.iter().map(|rank| rank.count.get()).max().unwrap_or(0);
    let mut lines = lines(&MODEL, before, after);
    lines.push(Line {
        label: "on the GPU with most of them".to_owned(),
        before: Some(Amount::Count(largest(before))),
        after: Some(Amount::Count(largest(after))),
        less_is_better: LESS,
    });
    Section { title: "Model", lines }
}

fn worst(report: &Report) -> Option<&Breakdown<Bytes>> {
    fullest_rank(report).map(|rank| &rank.breakdown)
}

/// Most causes that are told.
const MOST_CAUSES: usize = 8;

/// The leaves that changed, the greatest change first.
fn causes<Q: Quantity>(
    before: Option<&Breakdown<Q>>,
    after: Option<&Breakdown<Q>>,
    amount: fn(f64) -> Amount,
) -> Vec<Cause> {
    let mut found = Leaves::default();
    if let (Some(before), Some(after)) = (before, after) {
        for (root, is_after) in [(before, false), (after, true)] {
            found.after = is_after;
            for child in root.children() {
                leaves(child, 1, &mut found);
            }
        }
    }
    found.causes(amount)
}

/// Adds the value of every leaf that counts, `times` over, under its path.
fn leaves<'a, Q: Quantity>(node: &'a Breakdown<Q>, times: u64, found: &mut Leaves<'a>) {
    // What torch counts is the sum of the others; it needs no name.
    let named = node.label() != "peak_allocated";
    if named {
        found.path.push(node.label());
    }
    let inside = product(times, node.multiplicity());
    match node.rule() {
        Rule::Leaf => found.add(node.value().times(times).number()),
        Rule::Sum => {
            for child in node.children() {
                leaves(child, inside, found);
            }
        }
        Rule::Greatest => {
            let mut greatest: Option<&Breakdown<Q>> = None;
            for child in node.children() {
                if greatest.is_none_or(|other| child.value().number() >= other.value().number()) {
                    greatest = Some(child);
                }
            }
            if let Some(child) = greatest {
                leaves(child, inside, found);
            }
        }
    }
    if named {
        found.path.pop();
    }
}

/// Leaves of two breakdowns by their paths, as bare numbers: exact below 2^53.
#[derive(Default)]
struct Leaves<'a> {
    /// Where the leaf at hand lies.
    path: Vec<&'a str>,
    /// Whether it is of the breakdown that comes after.
    after: bool,
    /// The sums before and after.
    sums: Vec<(String, [f64; 2])>,
}

impl Leaves<'_> {
    fn add(&mut self, value: f64) {
        let path = self.path.join(" › ");
        let place = usize::from(self.after);
        if let Some((_, sums)) = self.sums.iter_mut().find(|(other, _)| *other == path) {
            sums[place] += value;
        } else {
            let mut sums = [0.0; 2];
            sums[place] = value;
            self.sums.push((path, sums));
        }
    }

    /// The greatest changes, of equal ones the first by path.
    fn causes(mut self, amount: fn(f64) -> Amount) -> Vec<Cause> {
        let mut causes = Vec::new();
        while causes.len() < MOST_CAUSES {
            let (mut most, mut at) = (0.0, None);
            for (index, (path, [before, after])) in self.sums.iter().enumerate() {
                let change = (after - before).abs();
                let first = at.is_none_or(|at: usize| *path < self.sums[at].0);
                if change > most || (change == most && change > 0.0 && first) {
                    (most, at) = (change, Some(index));
                }
            }
            let Some(at) = at else { break };
            let (path, [before, after]) = self.sums.swap_remove(at);
            causes.push(Cause { path, before: amount(before), after: amount(after) });
        }
        causes
    }
}
