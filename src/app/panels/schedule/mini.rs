//! The whole step, small, for the first screen.

use shardscope::session::schedule::{LANE, StepTimeline, Viewport, WIDTH, Work};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::decimal;
use yew::prelude::*;

use super::axis::axis;
use crate::app::widgets::Swatch;

#[derive(Properties, PartialEq)]
pub(crate) struct MiniProps {
    pub shown: PtrEq<Shown>,
    /// The time that the whole width stands for; none: the step's own. Unit: second.
    #[prop_or_default]
    pub wide: Option<f64>,
}

/// Most height of the small picture. Unit: CSS pixel.
const MINI_HIGHEST: u32 = 96;

/// The whole step, small.
#[component(MiniSchedule)]
pub(crate) fn mini_schedule(MiniProps { shown, wide }: &MiniProps) -> Html {
    let timeline = use_memo(shown.clone(), |shown| StepTimeline::of(shown));
    let picture = timeline.picture(Viewport::WHOLE);
    let height = timeline.lanes() * LANE;
    let drawn = height.min(MINI_HIGHEST);
    let share = wide.map_or(1.0, |wide| timeline.total().get() / wide.max(f64::MIN_POSITIVE));
    html! {
        <div class="schedule-frame mini">
            <ol class={classes!("lane-names", (drawn < height).then_some("many"))} aria-hidden="true">
                { for (0..timeline.lanes()).filter(|lane| drawn == height || *lane == 0 || lane + 1 == timeline.lanes()).map(|lane| html! {
                    <li>{ format!("stage {lane}") }</li>
                }) }
            </ol>
            <div class="lanes" role="img" aria-label={format!("One step of {} pipeline stages", timeline.lanes())}>
                <svg
                    class="lane-boxes"
                    viewBox={format!("0 0 {WIDTH} {height}")}
                    height={drawn.to_string()}
                    width={decimal(share.min(1.0) * 100.0, 2) + "%"}
                    preserveAspectRatio="none"
                >
                    { for picture.paths.iter().map(|(work, path)| html! { <path class={work.class()} d={path.clone()} /> }) }
                </svg>
            </div>
            if wide.is_none() {
                { axis(&timeline, Viewport::WHOLE) }
            }
        </div>
    }
}

/// The names of the kinds of work that a plan has, as a legend.
pub(crate) fn work_legend(shown: &Shown) -> Html {
    let timeline = StepTimeline::of(shown);
    html! {
        <>
            { for timeline.works().into_iter().map(|work: Work| html! {
                <span><Swatch class={work.class()} />{ work.name() }</span>
            }) }
        </>
    }
}
