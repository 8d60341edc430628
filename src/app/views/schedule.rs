//! What each stage does when, and how the fullest stage's memory rises and falls with it.

use shardscope::quantity::{decimal, grouped, percent, seconds, size};
use shardscope::session::schedule::{CURVE, LANE, Number, Picture, WIDTH, Work, schedule_picture};
use yew::prelude::*;

use crate::app::desk::Desk;

/// Most height of the lanes; more stages get narrower ones, without numbers. Unit: CSS pixel.
const HIGHEST: u32 = 480;

pub(crate) fn schedule(desk: &Desk) -> Html {
    let Some(picture) = schedule_picture(&desk.shown) else { return Html::default() };
    let time = &desk.shown.report.time;
    let (drawn, all) = picture.drawn;
    let batches = if drawn < all {
        format!(
            "drawn with {} of its {} micro-batches: the middle repeats",
            grouped(drawn.into()),
            grouped(all.into())
        )
    } else {
        format!("{} micro-batches", grouped(all.into()))
    };
    let about = format!(
        "Schedule {}, {batches}; {} of the time the slowest stage waits.",
        time.schedule.name,
        percent(time.bubble_fraction)
    );
    html! {
        <section class="panel" id="schedule" aria-labelledby="schedule-title">
            <header><h2 id="schedule-title">{ "Pipeline schedule" }</h2><p>{ about }</p></header>
            <ul class="legend">
                { for Work::ALL.iter().filter(|work| picture.paths.iter().any(|(kind, _)| kind == *work)).map(|work| html! {
                    <li><svg class="key" width="14" height="14" aria-hidden="true"><rect class={work.class()} width="14" height="14" rx="3" /></svg>{ work.name() }</li>
                }) }
                <li>{ format!("from left to right: {}", seconds(picture.total)) }</li>
            </ul>
            { lanes(&picture) }
            { memory(&picture) }
        </section>
    }
}

fn lanes(picture: &Picture) -> Html {
    let height = picture.lanes * LANE;
    let shown = height.min(HIGHEST);
    let numbers = if shown == height { picture.numbers.as_slice() } else { &[] };
    let number = |number: &Number| {
        html! {
            <text x={decimal(number.at * 100.0, 2) + "%"} y={(number.lane * LANE + 14).to_string()}>{ number.micro_batch.to_string() }</text>
        }
    };
    let label = format!(
        "Each of {} stages from top to bottom, its forward and backward passes from left to right",
        picture.lanes
    );
    html! {
        <div class="lanes" role="img" aria-label={label}>
            <svg class="lane-boxes" viewBox={format!("0 0 {WIDTH} {height}")} height={shown.to_string()} preserveAspectRatio="none">
                { for picture.paths.iter().map(|(work, path)| html! { <path class={work.class()} d={path.clone()} /> }) }
            </svg>
            <svg class="lane-numbers" height={shown.to_string()}>{ for numbers.iter().map(number) }</svg>
        </div>
    }
}

fn memory(picture: &Picture) -> Html {
    let curve = &picture.curve;
    let height = f64::from(CURVE);
    let line = |share: f64| decimal(height * (1.0 - share), 2);
    html! {
        <figure class="curve">
            <figcaption>{ format!("Memory of stage {} over the same time: what is held all the time, with the kept micro-batches above it; the line is the peak, the top {}.", curve.stage, size(curve.most)) }</figcaption>
            <svg viewBox={format!("0 0 {WIDTH} {CURVE}")} height={CURVE.to_string()} preserveAspectRatio="none" aria-hidden="true">
                <path class="curve-area" d={curve.area.clone()} />
                <rect class="curve-held" y={line(curve.held)} width={WIDTH.to_string()} height={decimal(height * curve.held, 2)} />
                <line class="curve-peak" x2={WIDTH.to_string()} y1={line(curve.peak)} y2={line(curve.peak)} />
            </svg>
        </figure>
    }
}
