//! The one change to make next, in a sentence, with its effect.

use shardscope::session::{Event, Fit, PtrEq, Shown, UserInput, change_line};
use shardscope::units::{Quantity, gib, seconds};
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::best_change::best;
use crate::app::context::{send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::panels::none_fits;
use crate::app::patched::PatchedScript;
use crate::app::ui::Search;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: PtrEq<Shown>,
    pub input: UserInput,
    /// The search around it.
    pub search: Option<Search>,
    /// Whether the fastest layout replaces the plan when the search ends.
    pub follows: bool,
    /// Whether to show it only for a plan that does not fit.
    pub brief: bool,
    /// Whether advice is still pending.
    pub waits: bool,
}

#[component(BestAction)]
pub(crate) fn best_action(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let shown = &props.shown;
    let lacking = shown.is_out_of_memory();
    let is_tight = shown.fullest().is_some_and(|fullest| fullest.fit == Fit::Tight);
    if props.brief && !lacking {
        // A narrow place has room only for what is urgent.
        return html!();
    }
    if props.waits {
        // Reserve its place, so that nothing moves when it arrives.
        return html! { <div class="act"><div class="act-said"><span class="soft">{ "Trying changes…" }</span></div></div> };
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
    let search_of = props.search.as_ref();
    // While a search is to replace the plan, single changes to it are moot.
    let found = if props.follows { None } else { best(shown, search_of) };
    let Some(best) = found else {
        let said = match (lacking, count) {
            (true, _) if props.follows => "No common layout fits. Searching all layouts…".to_owned(),
            (false, _) if props.follows => "A first layout that fits. Searching for the fastest…".to_owned(),
            (true, _) => match search_of.filter(|search| !search.going) {
                Some(search) => none_fits(search),
                None => "No single change makes it fit; searching whole layouts…".to_owned(),
            },
            // Close to the device's limit there is room for improvement, even if no faster single change provides it.
            (false, 0) if is_tight => {
                "No single change makes it faster; search for layouts with more headroom.".to_owned()
            }
            (false, 0) => "Nothing to suggest: no single change makes it faster.".to_owned(),
            (false, _) => "No single change makes it faster at this precision; see Suggestions.".to_owned(),
        };
        return html! {
            <div class={classes!("act", lacking.then_some("lacking"))}>
                <div class="act-said">
                    <span>{ said }</span>
                </div>
                <div class="act-buttons">
                    if count > 0 { { more(format!("{count} more")) } }
                    { search }
                </div>
            </div>
        };
    };
    let change = best.change.clone();
    let values = change.iter().map(|(field, value)| (field.name().to_owned(), value.clone())).collect();
    let apply = {
        // A copy of the values goes with the event, since the button may be pressed again.
        let event = Event::Try(values);
        send(&dispatch, move || event.clone().into())
    };
    let step = shown.report.time.step;
    let line = change_line(&shown.answer.resolution, &change);
    // The step time of a run that cannot start is unknown.
    let figures = best.step.map(|to| {
        if lacking {
            format!("{} per step", seconds(to))
        } else {
            format!("{} → {}", seconds(step), seconds(to))
        }
    });
    // A change that leaves less than the headroom says so when it is offered, not only once it is applied.
    let most = shown.plan.cluster().accelerator.memory.number() * (1.0 - shown.report.memory.headroom);
    let peak = best.peak.map(|peak| {
        let tight = if peak.number() > most { " (tight)" } else { "" };
        format!("peak {}{tight}", gib(peak))
    });
    let figures: Vec<String> = figures.into_iter().chain(peak).collect();
    let head = match (lacking, best.step) {
        (true, _) => "Makes it fit".to_owned(),
        // Ratio of rates: half the time is 100% faster.
        (false, Some(to)) => format!("{:.0}% faster", (step.get() / to.get() - 1.0) * 100.0),
        (false, None) => "Better".to_owned(),
    };
    html! {
        <div class={classes!("act", lacking.then_some("lacking"))}>
            <div class="act-said">
                <span title={best.title.clone()}><b>{ head }</b>{ format!(" {line}: {}", figures.join(", ")) }</span>
            </div>
            // In a separate group, so that they keep their order and place however long the sentence is.
            <div class="act-buttons">
                if count > 1 { { more(format!("{} more", count - 1)) } }
                <PatchedScript input={props.input.clone()} {change} />
                <button type="button" class="button main" onclick={apply}>{ "Apply" }</button>
            </div>
        </div>
    }
}
