//! The one change to make next, in a sentence, with what it comes to.

use shardscope::quantity::{gib, seconds};
use shardscope::report::Finding;
use shardscope::session::{Event, Fit, Hand, PtrEq, Shown, change_line, patched};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::widgets::CopyButton;
use crate::app::words::sentence;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: PtrEq<Shown>,
    pub hand: Hand,
    /// Whether only a plan that does not fit is worth the room.
    pub brief: bool,
}

/// The best finding that comes with a change: of a plan that does not fit the first that makes it fit.
fn best(shown: &Shown) -> Option<(usize, &Finding)> {
    let capacity = shown.plan.cluster().accelerator.memory;
    let lacking = shown.worst().is_some_and(|worst| worst.fit == Fit::DoesNotFit);
    let findings =
        || shown.report.advice.iter().enumerate().filter(|(_, finding)| !finding.change.is_empty());
    let fits = |finding: &Finding| finding.expected.peak_reserved.is_some_and(|peak| peak <= capacity);
    let step = |finding: &Finding| finding.expected.step.map_or(f64::MAX, |step| step.get());
    if lacking {
        findings().filter(|(_, finding)| fits(finding)).min_by(|a, b| step(a.1).total_cmp(&step(b.1)))
    } else {
        let now = shown.report.time.step.get();
        let faster = findings().filter(|(_, finding)| fits(finding) && step(finding) < now);
        faster.min_by(|a, b| step(a.1).total_cmp(&step(b.1)))
    }
}

#[component(BestAction)]
pub(crate) fn best_action(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let shown = &props.shown;
    let lacking = shown.worst().is_some_and(|worst| worst.fit == Fit::DoesNotFit);
    if props.brief && !lacking {
        return html!();
    }
    let count = shown.report.advice.len();
    let more = |label: String| {
        html! {
            <button
                type="button"
                class="button"
                onclick={send(&dispatch, || Action::Panel(PanelId::Advice))}
            >{ label }</button>
        }
    };
    let search = html! {
        <button type="button" class="button" onclick={send(&dispatch, || Action::Panel(PanelId::Search))}>
            { "Search layouts" }
        </button>
    };
    let Some((_, finding)) = best(shown) else {
        let said = match (lacking, count) {
            (true, _) => "No single change makes it fit; the search tries whole layouts.",
            (false, 0) => "Nothing to suggest: no single change makes it faster.",
            (false, _) => "No single change makes it faster; there are remarks.",
        };
        return html! {
            <div class={classes!("act", lacking.then_some("lacking"))}>
                <span>{ said }</span>
                if count > 0 { { more(format!("{count} more")) } }
                { search }
            </div>
        };
    };
    let change = finding.change.clone();
    let values = change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    let apply = {
        let event = Event::Try(values);
        send(&dispatch, move || event.clone().into())
    };
    let step = shown.report.time.step;
    let line = change_line(&shown.answer.resolution, &change);
    let figures = finding.expected.step.map(|to| format!("{} → {}", seconds(step), seconds(to)));
    let peak = finding.expected.peak_reserved.map(|peak| format!("peak {}", gib(peak)));
    let figures: Vec<String> = figures.into_iter().chain(peak).collect();
    let head = match (lacking, finding.expected.step) {
        (true, _) => "Makes it fit".to_owned(),
        (false, Some(to)) => format!("{:.0}% faster", (step.get() / to.get() - 1.0) * 100.0),
        (false, None) => "Better".to_owned(),
    };
    let has_script = !props.hand.text.trim().is_empty();
    let copied = {
        let (hand, change) = (props.hand.clone(), change.clone());
        Callback::from(move |()| patched(&hand, &change).unwrap_or_else(|| hand.text.to_string()))
    };
    let places = has_places(&props.hand, &change, has_script);
    html! {
        <div class={classes!("act", lacking.then_some("lacking"))}>
            <b>{ head }</b>
            <span title={sentence(&finding.message)}>{ format!("{line}: {}", figures.join(", ")) }</span>
            if count > 1 { { more(format!("{} more", count - 1)) } }
            if places {
                <CopyButton class="button" label="Copy patched script" text={copied} />
            }
            <button type="button" class="button main" onclick={apply}>{ "Apply" }</button>
        </div>
    }
}

/// Whether the script has places for the change.
fn has_places(hand: &Hand, change: &[(shardscope::plan::Field, String)], has_script: bool) -> bool {
    has_script && patched(hand, change).is_some()
}
