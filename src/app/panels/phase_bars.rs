//! A bar for each phase of reinforcement learning against the accelerator's capacity. The phases alternate, so each
//! has its own bar and they are not summed.

use shardscope::session::{PhaseMemory, Shown};
use shardscope::units::{Bytes, Quantity, decimal, gib};
use yew::prelude::*;

use crate::app::ui::Explained;
use crate::app::widgets::Number;
use crate::app::words::sentence;

/// Parts smaller than one in this many of the phase are in the bar and in the number's explanation, but not named in
/// the text.
const NAMED: u64 = 100;
/// Shades of `overview.css`, from 0.
const LAST_SHADE: usize = 5;

/// The bars; empty without rollouts.
pub(super) fn phase_bars(shown: &Shown) -> Html {
    let Some(rl) = &shown.report.memory.rl else { return html!() };
    let capacity = shown.plan.cluster().accelerator.memory;
    // One scale for all bars; a phase that does not fit widens it.
    let whole = shown.phases.iter().map(|phase| phase.peak).max().unwrap_or_default().max(capacity);
    let about = if rl.co_located {
        "Training and rollouts take turns on the same GPUs: the phase with the highest peak decides whether the run fits."
    } else {
        "Rollouts run on separate GPUs."
    };
    html! {
        <figure class="stage-bars phase-bars" aria-label="Peak memory per phase">
            <figcaption class="small soft">{ about }</figcaption>
            <div class="stage-rows">
                { for shown.phases.iter().map(|phase| html! {
                    <>
                        <span class="stage-name">{ phase.kind.name() }</span>
                        { bar(phase, whole, capacity) }
                        <span class={classes!("stage-value", phase.fit.class())}>
                            <Number text={gib(phase.peak)} why={Explained::Phase(phase.kind)} />
                        </span>
                        <span class="phase-parts small soft">{ parts(phase) }</span>
                    </>
                }) }
            </div>
        </figure>
    }
}

fn bar(phase: &PhaseMemory, whole: Bytes, capacity: Bytes) -> Html {
    let whole = whole.number().max(1.0);
    let at = |bytes: f64| decimal(bytes / whole * 100.0, 3) + "%";
    let mut from = 0.0;
    let pieces = phase.parts.iter().enumerate().map(|(place, (name, bytes))| {
        let (x, width) = (at(from), at(bytes.number()));
        // Parts follow each other on the bar in the order of the breakdown.
        from += bytes.number();
        html! {
            <rect class={format!("shade-{}", place.min(LAST_SHADE))} {x} {width} height="100%">
                <title>{ format!("{name}: {}", gib(*bytes)) }</title>
            </rect>
        }
    });
    let limit = at(capacity.number());
    html! {
        <svg class="bar" aria-hidden="true">
            { for pieces }
            <line class="limit" x1={limit.clone()} x2={limit} y1="0" y2="100%" />
        </svg>
    }
}

/// Parts of the phase's memory, in words.
fn parts(phase: &PhaseMemory) -> String {
    // Strictly more, so that empty parts are never named.
    let named = phase.parts.iter().filter(|(_, bytes)| bytes.get() > phase.peak.get() / NAMED);
    let named: Vec<String> = named.map(|(name, bytes)| format!("{name} {}", gib(*bytes))).collect();
    let mut said = sentence(&named.join(", "));
    if phase.starved {
        said += ". The KV cache cannot hold one full-length rollout, so the engine does not start";
    }
    said
}
