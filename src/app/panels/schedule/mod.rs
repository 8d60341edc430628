//! What each stage does when, through a movable window, and how a stage's memory rises and falls with it.

mod axis;
mod curve;
mod lanes;
mod mini;
mod others;
mod pan;

pub(super) use mini::{MiniSchedule, on_one_scale, work_legend};

use shardscope::session::PtrEq;
use shardscope::session::schedule::{StepTimeline, Viewport};
use shardscope::units::{grouped, percent};
use yew::prelude::*;

use super::panel::{Panel, PlanProps, Story};
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, swatch};
use crate::app::words::{plural, schedule_name, sentence};
use axis::moment;
use curve::MemoryCurve;
use lanes::Lanes;
use others::Others;
use pan::{Pan, STEP, ZOOM};

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Schedule,
    tab: Some("Schedule"),
    view: |shown| html! { <Schedule {shown} /> },
    story: Some(Story {
        title: "Who waits for whom",
        text: |shown| {
            let time = &shown.report.time;
            format!(
                "Each lane is a pipeline stage, its forward and backward passes from left to right by the schedule {}. The pipeline bubble is {} of the time.",
                schedule_name(time.schedule.name),
                percent(time.bubble_fraction)
            )
        },
    }),
};

#[component(Schedule)]
fn schedule(PlanProps { shown }: &PlanProps) -> Html {
    let timeline = use_memo(shown.clone(), |shown| StepTimeline::new(shown));
    let window = use_state_eq(|| Viewport::WHOLE);
    let cursor = use_state_eq(|| None::<f64>);
    let pan = {
        let (set, now) = (window.setter(), *window);
        Callback::from(move |pan: Pan| set.set(pan.from(now)))
    };
    let time = &shown.report.time;
    let piped = shown.plan.layout().pipeline > 1;
    let (drawn, all) = timeline.micro_batches;
    let picture = timeline.picture(*window);
    let move_cursor = {
        let cursor = cursor.setter();
        Callback::from(move |at| cursor.set(at))
    };
    html! {
        <section id="schedule" class="panel" aria-labelledby="schedule-title">
            <header>
                <h2 id="schedule-title">{ "Pipeline schedule" }</h2>
                <p>
                    // A schedule orders stages; a single stage has none to wait for.
                    if piped { { sentence(schedule_name(time.schedule.name)) } } else { { "No pipeline: every GPU runs all layers" } }
                    { format!(", {} ", grouped(all.into())) }
                    <Term name="micro-batch">{ plural(all.into(), "micro-batch", "micro-batches") }</Term>
                    if drawn < all {
                        { format!(" (the first {} are drawn: the middle repeats)", grouped(drawn.into())) }
                    }
                    if piped {
                        { "; pipeline " }<Term name="bubble" />
                        { format!(" {} on the slowest stage.", percent(time.bubble_fraction)) }
                    } else {
                        { " a step." }
                    }
                </p>
            </header>
            { legend(&timeline, piped) }
            { controls(&timeline, *window, &pan) }
            <Lanes
                timeline={PtrEq::new((*timeline).clone())}
                {picture}
                window={*window}
                {pan}
                cursor={*cursor}
                {move_cursor}
            />
            <MemoryCurve shown={shown.clone()} timeline={PtrEq::new((*timeline).clone())} window={*window} cursor={*cursor} />
            if piped {
                <Others shown={shown.clone()} />
            }
        </section>
    }
}

/// Every kind of work, whether or not the window shows it.
fn legend(timeline: &StepTimeline, piped: bool) -> Html {
    let (first, last) = timeline.phases();
    html! {
        <ul class="legend">
            { for timeline.works().into_iter().map(|work| html! {
                <li>{ swatch(work.class()) }{ work.name() }</li>
            }) }
            if piped {
                <li>
                    <Term name="warm-up" />
                    { format!(" until {}, cool-down from {}", moment(timeline, first), moment(timeline, last)) }
                </li>
            }
        </ul>
    }
}

fn controls(timeline: &StepTimeline, window: Viewport, pan: &Callback<Pan>) -> Html {
    let buttons = [
        ("earlier", "◀", Pan::Shift(-STEP)),
        ("later", "▶", Pan::Shift(STEP)),
        ("closer", "+", Pan::Zoom(1.0 / ZOOM, 0.5)),
        ("further", "−", Pan::Zoom(ZOOM, 0.5)),
    ];
    let whole = pan.clone();
    html! {
        <div class="pans">
            { for buttons.into_iter().map(|(label, sign, to)| {
                let pan = pan.clone();
                html! {
                    <button type="button" class="button small" aria-label={label} onclick={move |_| pan.emit(to)}>
                        { sign }
                    </button>
                }
            }) }
            <button type="button" class="button small" onclick={move |_| whole.emit(Pan::Whole)}>
                { "Whole step" }
            </button>
            <span class="soft small" role="status">
                { format!("{} to {}", moment(timeline, window.from), moment(timeline, window.from + window.length)) }
            </span>
        </div>
    }
}
