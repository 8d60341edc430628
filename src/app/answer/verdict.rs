//! The first thing to see: does it fit, by how much, and what the last change did to it.

use shardscope::session::{Fit, Fullest, FullestPlace, PtrEq, Shown, cut};
use shardscope::units::{Bytes, Quantity, Seconds, gib, percent, rounded, seconds};
use yew::prelude::*;

use crate::app::widgets::{Sign, icon};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: PtrEq<Shown>,
    /// The plan before the last change.
    pub before: Option<PtrEq<Shown>>,
    /// Whether it is the head of the overview; a line otherwise.
    pub big: bool,
    /// Whether the text has changed and its answer is still pending.
    pub waits: bool,
}

const fn sign(fit: Fit) -> Sign {
    match fit {
        Fit::Fits => Sign::Good,
        Fit::Tight => Sign::Tight,
        Fit::DoesNotFit => Sign::Bad,
    }
}

#[component(Verdict)]
pub(crate) fn verdict(props: &Props) -> Html {
    let Props { shown, before, big, waits } = props;
    let Some(fullest) = shown.fullest() else { return html!() };
    let capacity = shown.plan.cluster().accelerator.memory;
    let share = fullest.peak.number() / capacity.number().max(1.0);
    let tenths = |bytes: Bytes| format!("{:.1}", bytes.in_gib());
    // Regardless of its peak: it would fit, but still not run.
    let figures = if fullest.place == FullestPlace::Starved {
        html! { <span>{ "the KV cache left for rollouts cannot hold one full-length sequence" }</span> }
    } else if fullest.fit == Fit::DoesNotFit {
        // Saturating: a phase can fail without exceeding the device.
        let over = Bytes::new(fullest.peak.get().saturating_sub(capacity.get()));
        html! {
            <span>
                { format!("{} needs ", place(shown, fullest)) }<b>{ tenths(fullest.peak) }</b>
                { format!(" of {} GiB: ", tenths(capacity)) }<b>{ format!("{} GiB over", tenths(over)) }</b>
            </span>
        }
    } else {
        html! {
            <span>
                { "peak " }<b>{ tenths(fullest.peak) }</b>
                { format!(" of {} GiB per GPU ({:.0}%)", tenths(capacity), share * 100.0) }
                if let FullestPlace::Phase(_) = fullest.place {
                    { format!(", in {}", fullest.place_name()) }
                }
                { fullest.condition() }
                // If blocks must be released, the condition explains why it is tight.
                if fullest.fit == Fit::Tight && fullest.released == Bytes::ZERO {
                    { format!(": less than {} stays free", percent(shown.report.memory.headroom)) }
                }
            </span>
        }
    };
    let class = classes!("verdict", fullest.fit.class(), big.then_some("is-big"), waits.then_some("waits"));
    html! {
        <section {class} aria-labelledby="verdict-title" aria-busy={waits.then_some("true")}>
            <h2 id="verdict-title" class="hidden">{ "Verdict" }</h2>
            <p class="big" role="status">
                { icon(sign(fullest.fit)) }
                <strong>{ fullest.fit.words() }</strong>
                { figures }
            </p>
            <p class="plan-name">
                if !big {
                    { format!("{} per step · ", seconds(shown.report.time.step)) }
                }
                { parameters(shown) }{ " · " }{ cut(&shown.plan) }
            </p>
            // What the plan leaves out accompanies its verdict everywhere.
            { for shown.plan.recipe().marks.sentences().iter().map(|mark| html! { <p class="mark-without">{ mark }</p> }) }
            if let Some(before) = before {
                { changes(before, shown) }
            }
        </section>
    }
}

/// Where it runs out, in words. Without a pipeline there are no stages to distinguish.
fn place(shown: &Shown, fullest: Fullest) -> String {
    match fullest.place {
        FullestPlace::Stage(_) if shown.stages.len() == 1 => "each GPU".to_owned(),
        _ => fullest.place_name(),
    }
}

fn parameters(shown: &Shown) -> String {
    rounded(shown.report.parameters.total.number())
}

/// What the last change did: peak, step time, throughput.
fn changes(before: &Shown, now: &Shown) -> Html {
    let peaks = before.fullest().zip(now.fullest()).map(|(before, now)| {
        // By the verdicts' peaks: for either plan, the place that is closest to running out.
        let (from, to) = (before.peak, now.peak);
        let less = to < from;
        let difference = Bytes::new(to.get().abs_diff(from.get()));
        (from != to).then(|| change("peak", less, gib(difference)))
    });
    let (from, to) = (before.report.time.step, now.report.time.step);
    let step = (from != to).then(|| {
        let difference = Seconds::new((to.get() - from.get()).abs());
        change("step", to < from, seconds(difference))
    });
    // Also stated, since a small change in the peak may cross the limit.
    let fits = before.fullest().zip(now.fullest()).filter(|(before, now)| before.fit != now.fit);
    let said: Vec<Html> = peaks.flatten().into_iter().chain(step).collect();
    let was = fits.map(|(before, _)| before.fit.words().to_lowercase());
    html! {
        <p class="changes" role="status">
            <span class="soft">{ "Last change: " }</span>
            if said.is_empty() {
                <span>{ "same peak, same step time" }</span>
            }
            { for said }
            if let Some(was) = was {
                <span class="soft">{ format!("was: {was}") }</span>
            }
        </p>
    }
}

fn change(name: &'static str, better: bool, by: String) -> Html {
    html! {
        <span class={if better { "good" } else { "bad" }}>
            { format!("{name} {}{by}", if better { "−" } else { "+" }) }
            <span class="hidden">{ if better { ", better" } else { ", worse" } }</span>
        </span>
    }
}
