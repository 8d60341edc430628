//! Moments of the step in words, and the time below the lanes.

use shardscope::session::schedule::{StepTimeline, Viewport};
use shardscope::units::seconds;
use yew::prelude::*;

/// Marks of the time axis.
const TICKS: u32 = 4;

/// A fraction of the full step as a time.
pub(super) fn moment(timeline: &StepTimeline, share: f64) -> String {
    if share <= 0.0 {
        return "0 s".to_owned();
    }
    seconds(timeline.total() * share)
}

/// The time below the lanes.
pub(super) fn axis(timeline: &StepTimeline, window: Viewport) -> Html {
    html! {
        <ol class="time-axis" aria-hidden="true">
            { for (0..=TICKS).map(|tick| {
                let share = f64::from(tick) / f64::from(TICKS);
                let when = moment(timeline, window.from + window.length * share);
                // If only the first micro-batches are laid out, the step continues. Without the mark the cut-off
                // would look like the end of the step.
                let on = if tick == TICKS && !timeline.is_whole() { " …" } else { "" };
                html! { <li>{ when }{ on }</li> }
            }) }
        </ol>
    }
}
