//! The full step in miniature, for the first screen.

use shardscope::session::schedule::{LANE, StepTimeline, Viewport, WIDTH, Work};
use shardscope::session::{PtrEq, Shown};
use shardscope::units::{Seconds, decimal, seconds};
use wasm_bindgen::{JsCast, JsValue};
use web_sys::Element;
use yew::prelude::*;

use super::axis::axis;
use crate::app::widgets::swatch;

#[derive(Properties, PartialEq)]
pub(crate) struct MiniProps {
    pub shown: PtrEq<Shown>,
    /// The time that the full width represents; `None` means the step's own. Unit: second.
    #[prop_or_default]
    pub wide: Option<f64>,
}

/// Maximum height of the miniature. Unit: CSS pixel.
const MINI_HIGHEST: u32 = 96;

/// The full step in miniature.
#[component(MiniSchedule)]
pub(crate) fn mini_schedule(MiniProps { shown, wide }: &MiniProps) -> Html {
    let timeline = use_memo(shown.clone(), |shown| StepTimeline::new(shown));
    small(&timeline, *wide)
}

/// A full step in miniature, with width proportional to its length if the width represents a time.
pub(super) fn small(timeline: &StepTimeline, wide: Option<f64>) -> Html {
    let picture = timeline.picture(Viewport::WHOLE);
    let height = timeline.lanes() * LANE;
    let drawn = height.min(MINI_HIGHEST);
    // A step shorter than the scale takes a proportional share of the width.
    let share = wide.map_or(1.0, |wide| timeline.total().get() / wide.max(f64::MIN_POSITIVE));
    html! {
        <div class="schedule-frame mini">
            { names(timeline, drawn == height) }
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
                { axis(timeline, Viewport::WHOLE) }
            }
        </div>
    }
}

/// Steps below each other on a common scale, `wide` seconds long, with one cursor through all of them and its time
/// below.
///
/// The cursor moves purely by style sheet, without redrawing.
pub(crate) fn on_one_scale(wide: f64, steps: Html) -> Html {
    let onpointermove = move |event: PointerEvent| {
        let target = event.target_dyn_into::<Element>();
        // From any element below: the pointer moves over many.
        let Some(all) = target.and_then(|target| target.closest(".one-scale").ok().flatten()) else { return };
        let inside = |what| all.query_selector(what).ok().flatten();
        let (Some(lanes), Some(status)) = (inside(".lanes"), inside(".lane-told")) else { return };
        // All lanes are at the same horizontal position, so the first will do.
        let area = lanes.get_bounding_client_rect();
        let share = ((f64::from(event.client_x()) - area.left()) / area.width().max(1.0)).clamp(0.0, 1.0);
        let get = |of: &JsValue, name: &str| js_sys::Reflect::get(of, &name.into()).ok();
        if let Some(style) = get(&all, "style")
            // By reflection: `setProperty` of SVG and HTML elements alike.
            && let Some(set) =
                get(&style, "setProperty").and_then(|set| set.dyn_into::<js_sys::Function>().ok())
        {
            let place = decimal(share * 100.0, 2) + "%";
            let _ = set.call2(&style, &"--at".into(), &place.into());
        }
        status.set_text_content(Some(&format!("at {}", seconds(Seconds::new(share * wide)))));
    };
    html! {
        <div class="one-scale" {onpointermove}>
            { steps }
            <p class="lane-told small soft"></p>
        </div>
    }
}

/// The stages left of their lanes; only the first and the last if lanes are lower than text.
pub(super) fn names(timeline: &StepTimeline, readable: bool) -> Html {
    let last = timeline.lanes().saturating_sub(1);
    html! {
        <ol class={classes!("lane-names", (!readable).then_some("many"))} aria-hidden="true">
            { for (0..=last).filter(|lane| readable || *lane == 0 || *lane == last).map(|lane| html! {
                <li>{ format!("stage {lane}") }</li>
            }) }
        </ol>
    }
}

/// The names of the kinds of work that a plan has, as a legend.
pub(crate) fn work_legend(shown: &Shown) -> Html {
    let timeline = StepTimeline::new(shown);
    html! {
        <>
            { for timeline.works().into_iter().map(|work: Work| html! {
                <span>{ swatch(work.class()) }{ work.name() }</span>
            }) }
        </>
    }
}
