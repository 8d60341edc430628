//! How a stage's memory rises and falls with the schedule, under the same cursor.

use shardscope::session::schedule::{CURVE, StepTimeline, Viewport, WIDTH};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::{Quantity, decimal, size};
use yew::prelude::*;

use super::lanes::line_at;
use crate::app::context::AppContext;
use crate::app::panels::memory::{StageList, stage_chosen};
use crate::app::widgets::Term;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
    pub timeline: PtrEq<StepTimeline>,
    pub window: Viewport,
    pub cursor: Option<f64>,
}

#[component(MemoryCurve)]
pub(super) fn memory_curve(props: &Props) -> Html {
    let Props { shown, timeline, window, cursor } = props;
    let app = use_context::<AppContext>();
    let stage = stage_chosen(app.and_then(|app| app.ui.stage), shown);
    let curve = usize::try_from(stage).ok().and_then(|stage| timeline.curve(shown, stage, *window));
    let Some(curve) = curve else { return html!() };
    let height = f64::from(CURVE);
    let capacity = shown.plan.cluster().accelerator.memory;
    // The top is the capacity, or the peak where that is higher.
    let full = capacity.number() / curve.most.number().max(1.0);
    let y = |share: f64| decimal(height * (1.0 - share), 2);
    html! {
        <figure class="curve">
            <figcaption>
                { "Memory of stage " }<StageList shown={shown.clone()} />
                { " over the step: static (weights, gradients, optimizer), above it activations of the micro-batches " }
                <Term name="in flight" />
                // Above the capacity there are two lines to distinguish.
                { format!("; dashed = peak including temporaries; {}.", if curve.most > capacity {
                    format!("top = {}, solid line = capacity of {}", size(curve.most), size(capacity))
                } else {
                    format!("top = capacity of {}", size(capacity))
                }) }
            </figcaption>
            <svg
                viewBox={format!("0 0 {WIDTH} {CURVE}")}
                height={CURVE.to_string()}
                preserveAspectRatio="none"
                aria-hidden="true"
            >
                <path class="curve-area" d={curve.area.clone()} />
                <rect
                    class="curve-held"
                    y={y(curve.held)}
                    width={WIDTH.to_string()}
                    height={decimal(height * curve.held, 2)}
                />
                <line class="curve-peak" x2={WIDTH.to_string()} y1={y(curve.peak)} y2={y(curve.peak)} />
                if curve.most > capacity {
                    <line class="curve-full" x2={WIDTH.to_string()} y1={y(full)} y2={y(full)} />
                }
                { cursor.map(|at| line_at(at, CURVE)).unwrap_or_default() }
            </svg>
        </figure>
    }
}
