//! The one change to make next, in a sentence, with what it comes to.

use std::cmp::Ordering;

use shardscope::plan::Field;
use shardscope::report::Finding;
use shardscope::session::beside::{Found, Layout};
use shardscope::session::reader::{ReadReply, ReadTask};
use shardscope::session::{Event, PtrEq, Shown, UserInput, change_line};
use shardscope::units::{Bytes, Seconds, gib, seconds};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::hooks::use_reply;
use crate::app::panel_id::PanelId;
use crate::app::widgets::CopyButton;
use crate::app::words::sentence;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: PtrEq<Shown>,
    pub input: UserInput,
    /// What a search has found so far.
    pub found: Option<std::rc::Rc<Found>>,
    /// Whether it goes on.
    pub searching: bool,
    /// What it has to say where nothing fits.
    pub none_fits: String,
    /// Whether only a plan that does not fit is worth the room.
    pub brief: bool,
}

/// A change with what it comes to.
struct Best {
    change: Vec<(Field, String)>,
    /// The whole of what is said of it.
    title: String,
    step: Option<Seconds>,
    peak: Option<Bytes>,
}

impl Best {
    fn of_finding(finding: &Finding) -> Self {
        let Finding { change, message, expected, .. } = finding;
        Self {
            change: change.clone(),
            title: sentence(message),
            step: expected.step,
            peak: expected.peak_reserved,
        }
    }

    fn of_layout(layout: &Layout) -> Self {
        Self {
            change: layout.fields(),
            title: "The fastest layout that the search found".to_owned(),
            step: Some(layout.step()),
            peak: Some(layout.peak()),
        }
    }

    /// Unit: second; what is not known counts as slow.
    fn seconds(&self) -> f64 {
        self.step.map_or(f64::MAX, Seconds::get)
    }

    fn by_step(&self, other: &Self) -> Ordering {
        self.seconds().total_cmp(&other.seconds())
    }
}

/// The fastest change that fits and, where the plan fits, is faster than it: a suggestion, or what a search has found.
///
/// While a search goes on, its list changes several times a second: a suggestion stands until the search has ended, so that
/// nobody presses "Apply" for one change and gets another.
fn best(shown: &Shown, found: Option<&Found>, searching: bool) -> Option<Best> {
    let capacity = shown.plan.cluster().accelerator.memory;
    let lacking = shown.is_out_of_memory();
    let now = if lacking { f64::MAX } else { shown.report.time.step.get() };
    let suggested = shown.report.advice.iter().map(Best::of_finding);
    let searched = found.and_then(|found| found.best.first()).map(Best::of_layout);
    let helps = |best: &Best| {
        let fits = !best.change.is_empty() && best.peak.is_some_and(|peak| peak <= capacity);
        // Fewer bits change what is trained, not only how fast: that stays among the suggestions.
        let same_numerics =
            !best.change.iter().any(|(field, value)| *field == Field::Fp8 && !value.is_empty());
        fits && (lacking || (same_numerics && best.seconds() < now))
    };
    let suggested = suggested.filter(helps).min_by(Best::by_step);
    let searched = searched.filter(helps);
    match (suggested, searched) {
        (Some(suggested), Some(searched)) if !searching && searched.seconds() < suggested.seconds() => {
            Some(searched)
        }
        (suggested, searched) => suggested.or(searched),
    }
}

#[component(BestAction)]
pub(crate) fn best_action(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let shown = &props.shown;
    let lacking = shown.is_out_of_memory();
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
    let Some(best) = best(shown, props.found.as_deref(), props.searching) else {
        let said = match (lacking, count) {
            (true, _) if props.searching => "No single change makes it fit; searching whole layouts…",
            (true, _) => props.none_fits.as_str(),
            (false, 0) => "Nothing to suggest: no single change makes it faster.",
            (false, _) => "No single change at this precision makes it faster; see Suggestions.",
        };
        return html! {
            <div class={classes!("act", lacking.then_some("lacking"))}>
                <div class="act-said">
                    <span>{ said }</span>
                    if count > 0 { { more(format!("{count} more")) } }
                </div>
                { search }
            </div>
        };
    };
    let change = best.change.clone();
    let values = change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    let apply = {
        let event = Event::Try(values);
        send(&dispatch, move || event.clone().into())
    };
    let step = shown.report.time.step;
    let line = change_line(&shown.answer.resolution, &change);
    // Of what cannot run, nobody knows how long its step takes.
    let figures = best.step.map(|to| {
        if lacking {
            format!("{} per step", seconds(to))
        } else {
            format!("{} → {}", seconds(step), seconds(to))
        }
    });
    let peak = best.peak.map(|peak| format!("peak {}", gib(peak)));
    let figures: Vec<String> = figures.into_iter().chain(peak).collect();
    let head = match (lacking, best.step) {
        (true, _) => "Makes it fit".to_owned(),
        (false, Some(to)) => format!("{:.0}% faster", (step.get() / to.get() - 1.0) * 100.0),
        (false, None) => "Better".to_owned(),
    };
    html! {
        <div class={classes!("act", lacking.then_some("lacking"))}>
            <div class="act-said">
                <span title={best.title.clone()}><b>{ head }</b>{ format!(" {line}: {}", figures.join(", ")) }</span>
                if count > 1 { { more(format!("{} more", count - 1)) } }
                <PatchedScript input={props.input.clone()} {change} />
            </div>
            // Beside what is said, not behind it: it keeps its place however long that is.
            <button type="button" class="button main" onclick={apply}>{ "Apply" }</button>
        </div>
    }
}

#[derive(Properties, PartialEq)]
struct PatchedProps {
    input: UserInput,
    change: Vec<(Field, String)>,
}

/// The script with the change in it, to be copied, where it has places for all of it.
#[component(PatchedScript)]
fn patched_script(PatchedProps { input, change }: &PatchedProps) -> Html {
    let has_script = !input.text.trim().is_empty();
    let reply = use_reply(has_script.then(|| ReadTask::patched(input, change)));
    let Some(ReadReply::Patched(Some(text))) = reply else { return html!() };
    html! {
        <CopyButton class="button" label="Copy patched script" text={Callback::from(move |()| text.clone())} />
    }
}
