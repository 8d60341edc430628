//! The answer to a search as text, as a document and as a table.

use serde::Serialize;
use shardscope::plan::{Plan, Variant};
use shardscope::search::{
    Edited, Exhausted, Inquiry, Outcome, Question, Reached, Tally, best_edits, effect, why_not,
};
use shardscope::units::{Bytes, Seconds, decimal, gib, grouped, rounded, seconds};

/// The answer to a search, as a document.
#[derive(Serialize)]
pub(super) struct Written {
    /// In one sentence.
    answer: String,
    /// Whether the question has an answer.
    answered: bool,
    /// The fastest layouts, for `fastest` alone.
    layouts: Vec<Layout>,
    /// The row of sizes, for every other question.
    sizes: Vec<Size>,
    /// Why the run as it is is not the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_as_it_is: Option<String>,
    /// Why layouts that were asked about are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why_not: Vec<WhyLine>,
    /// The best plans by one, two and three changes, for `fastest` alone: the greatest gain for each change first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Changed>,
    /// How the layouts of all searches were decided.
    decided: Decided,
}

#[derive(Serialize)]
struct Layout {
    /// New values by the settings' names.
    change: Vec<(&'static str, String)>,
    /// Unit: byte.
    peak_reserved: Bytes,
    /// Whether it leaves less than the headroom.
    tight: bool,
    /// Unit: second.
    step_seconds: Seconds,
}

/// Why one layout is not the answer.
#[derive(Serialize)]
struct WhyLine {
    /// As it was typed.
    layout: String,
    why: String,
}

/// The best plan by so many changes.
#[derive(Serialize)]
struct Changed {
    /// The changes in words.
    words: Vec<String>,
    layout: Layout,
    /// What they bring and cost.
    effect: String,
}

impl Changed {
    fn new(plan: &Plan, edited: Edited) -> Self {
        let effect = edited.variant.apply(plan).map(|changed| effect(plan, &changed)).unwrap_or_default();
        let Edited { words, variant, changes, peak, tight, step } = edited;
        Self { words, effect, layout: Layout::from_outcome(&Outcome { variant, changes, peak, tight, step }) }
    }

    fn line(&self) -> String {
        let effect = if self.effect.is_empty() { String::new() } else { format!("; {}", self.effect) };
        format!(
            "{}: {}, {}{}{effect}",
            self.words.join(", "),
            seconds(self.layout.step_seconds),
            gib(self.layout.peak_reserved),
            self.layout.flag()
        )
    }
}

#[derive(Serialize)]
struct Size {
    size: u64,
    gpus: u64,
    layout: Option<Layout>,
    tokens_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    days: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

#[derive(Serialize, Default)]
struct Decided {
    layouts: u64,
    /// By the code of the reason.
    refused: Vec<(&'static str, u64)>,
    out_of_memory: u64,
    slower_by_bound: u64,
    worked_out: u64,
}

impl Layout {
    fn from_outcome(outcome: &Outcome) -> Self {
        Self {
            change: outcome.changes.iter().map(|(field, value)| (field.name(), value.clone())).collect(),
            peak_reserved: outcome.peak,
            tight: outcome.tight,
            step_seconds: outcome.step,
        }
    }

    /// The settings as typed after `--set`; an unset one has no value.
    fn changes(&self) -> String {
        let one = |(name, value): &(&str, String)| match value.as_str() {
            "" => format!("no {name}"),
            value => format!("{name}={value}"),
        };
        let all: Vec<String> = self.change.iter().map(one).collect();
        if all.is_empty() { "as it is".to_owned() } else { all.join(" ") }
    }

    fn flag(&self) -> &'static str {
        if self.tight { ", leaves less than the headroom" } else { "" }
    }
}

impl Decided {
    fn add(&mut self, tally: &Tally) {
        self.layouts += tally.decided();
        for (code, count) in &tally.refused {
            match self.refused.iter_mut().find(|(known, _)| *known == code.name()) {
                Some((_, known)) => *known += count,
                None => self.refused.push((code.name(), *count)),
            }
        }
        self.out_of_memory += tally.too_large;
        self.slower_by_bound += tally.slower;
        self.worked_out += tally.estimated;
    }

    fn sentence(&self) -> String {
        let refused: Vec<String> =
            self.refused.iter().map(|(code, count)| format!("{code} {}", grouped(*count))).collect();
        let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
        format!(
            "{} layouts decided. Refused: {refused}. Out of memory: {}. Slower by a lower bound: {}. Worked out: {}.",
            grouped(self.layouts),
            grouped(self.out_of_memory),
            grouped(self.slower_by_bound),
            grouped(self.worked_out)
        )
    }
}

impl Written {
    pub(super) fn new(
        plan: &Plan,
        inquiry: &Inquiry,
        limit: usize,
        asked_why: Vec<(String, Variant)>,
    ) -> Self {
        let mut decided = Decided::default();
        for one in inquiry.reached() {
            decided.add(&one.tally);
        }
        let fastest = inquiry.question() == Question::Fastest;
        let listed = inquiry.walk().filter(|_| fastest);
        let layouts: Vec<Layout> =
            listed.into_iter().flat_map(|walk| walk.ranked()).take(limit).map(Layout::from_outcome).collect();
        let chosen = inquiry.chosen().and_then(|place| inquiry.reached().get(place));
        let best = chosen.and_then(|one| one.outcome.as_ref()).filter(|_| fastest);
        let best_plan = best.and_then(|best| best.variant.apply(plan));
        // If nothing changes, the unchanged run is the answer.
        let why_not_as_it_is = best.filter(|best| !best.changes.is_empty()).and_then(|_| {
            Some(why_not(&Variant::from_plan(plan).checked(plan), best_plan.as_ref()?).sentence())
        });
        let why_line = |(layout, variant): (String, Variant)| WhyLine {
            layout,
            // If nothing fits there is no answer, so state what the layout itself lacks.
            why: why_not(&variant.checked(plan), best_plan.as_ref().unwrap_or(plan)).sentence(),
        };
        let edits = if fastest { best_edits(plan) } else { Vec::new() };
        let sizes = if fastest { Vec::new() } else { inquiry.reached().iter().map(Size::new).collect() };
        Self {
            answer: inquiry.answer(),
            answered: chosen.is_some(),
            layouts,
            sizes,
            why_not_as_it_is,
            why_not: asked_why.into_iter().map(why_line).collect(),
            changes: edits.into_iter().map(|edited| Changed::new(plan, edited)).collect(),
            decided,
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.answer);
        for layout in &self.layouts {
            text += &format!(
                "  {:>9}  {:>10}  {}{}\n",
                seconds(layout.step_seconds),
                gib(layout.peak_reserved),
                layout.changes(),
                layout.flag()
            );
        }
        for size in &self.sizes {
            text += &format!("  {}\n", size.line());
        }
        if let Some(why) = &self.why_not_as_it_is {
            text += &format!("As it is: {why}.\n");
        }
        for line in self.remarks() {
            text += &format!("{line}.\n");
        }
        text + &self.decided.sentence() + "\n"
    }

    /// Why the given layouts are not the answer, and what a few changes gain.
    fn remarks(&self) -> impl Iterator<Item = String> {
        let whys = self.why_not.iter().map(|one| format!("{}: {}", one.layout, one.why));
        let changes = self.changes.iter().map(|one| match one.words.len() {
            1 => format!("Best single change: {}", one.line()),
            count => format!("Best {count} changes: {}", one.line()),
        });
        whys.chain(changes)
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = format!("{}\n\n", self.answer);
        if !self.layouts.is_empty() {
            text += "| step | peak | changes |\n|---:|---:|---|\n";
        }
        for layout in &self.layouts {
            // A value may contain `|` (a pipeline's split, a path), which would end the cell.
            text += &format!(
                "| {} | {} | {}{} |\n",
                seconds(layout.step_seconds),
                gib(layout.peak_reserved),
                layout.changes().replace('|', "\\|"),
                layout.flag()
            );
        }
        for size in &self.sizes {
            text += &format!("- {}\n", size.line().replace('|', "\\|"));
        }
        if let Some(why) = &self.why_not_as_it_is {
            text += &format!("\nAs it is: {why}.\n");
        }
        for line in self.remarks() {
            text += &format!("\n{}.\n", line.replace('|', "\\|"));
        }
        text + "\n" + &self.decided.sentence() + "\n"
    }
}

impl Size {
    fn new(one: &Reached) -> Self {
        Self {
            size: one.size,
            gpus: one.gpus,
            layout: one.outcome.as_ref().map(Layout::from_outcome),
            tokens_per_second: one.tokens_per_second,
            days: one.days,
            cost: one.cost,
        }
    }

    fn line(&self) -> String {
        let Some(layout) = &self.layout else {
            return format!("{}: nothing fits", grouped(self.size));
        };
        let mut line = format!(
            "{}: {}, {}, {} tokens/s{}",
            grouped(self.size),
            seconds(layout.step_seconds),
            gib(layout.peak_reserved),
            rounded(self.tokens_per_second),
            layout.flag()
        );
        if let (Some(days), Some(cost)) = (self.days, self.cost) {
            line += &format!(", {} days, cost {}", decimal(days, 1), rounded(cost));
        }
        line + "; " + &layout.changes()
    }
}

/// Result of trying every layout, as text.
pub(super) fn exhausted(found: &Exhausted) -> String {
    let mut decided = Decided::default();
    decided.add(&found.tally);
    let mut text = String::new();
    // Those that leave the headroom free come first.
    for outcome in found.best.iter().chain(&found.tight) {
        let layout = Layout::from_outcome(outcome);
        text += &format!(
            "{}  {}  {}{}\n",
            seconds(layout.step_seconds),
            gib(layout.peak_reserved),
            layout.changes(),
            layout.flag()
        );
    }
    text + &decided.sentence() + "\n"
}
