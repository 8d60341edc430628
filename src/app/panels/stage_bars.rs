//! A stacked bar for each pipeline stage against the accelerator's capacity; identical stages share one.

use shardscope::session::{Shown, StageMemory, Use};
use shardscope::units::gib;
use yew::prelude::*;

use super::panel::PlanProps;
use crate::app::ui::Explained;
use crate::app::widgets::{Number, memory_bar, named, swatch_of};
use crate::app::words::plural;

/// Maximum number of bars before the rest is collapsed.
const MOST: usize = 6;

/// Consecutive stages with the same memory.
struct Run<'a> {
    first: &'a StageMemory,
    last: u64,
}

fn runs(stages: &[StageMemory]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for stage in stages {
        match runs.last_mut() {
            // Equal figures only: stages of the same size may use it differently.
            Some(run) if run.first.uses == stage.uses && run.first.reserved == stage.reserved => {
                run.last = stage.stage;
            }
            _ => runs.push(Run { first: stage, last: stage.stage }),
        }
    }
    runs
}

/// The bars with their legend.
#[component(StageBars)]
pub(super) fn stage_bars(PlanProps { shown }: &PlanProps) -> Html {
    let all = use_state_eq(|| false);
    let capacity = shown.plan.cluster().accelerator.memory;
    let whole = shown.stages.iter().map(|stage| stage.reserved).max().unwrap_or_default().max(capacity);
    // Without a pipeline, stages are not mentioned.
    let alone = shown.stages.len() == 1;
    let runs = runs(&shown.stages);
    let folded = if *all { 0 } else { runs.len().saturating_sub(MOST) };
    let visible = visible(shown, &runs, runs.len() - folded);
    // A bar may represent several stages.
    let more =
        shown.stages.len() as u64 - visible.iter().map(|run| run.last - run.first.stage + 1).sum::<u64>();
    let toggle = {
        let (all, now) = (all.setter(), *all);
        move |_| all.set(!now)
    };
    html! {
        <figure class="stage-bars">
            if !shown.phases.is_empty() {
                <figcaption class="small soft">{ "Training peak of the policy alone:" }</figcaption>
            }
            <div class="stage-rows">
                { for visible.into_iter().map(|run| html! {
                    <>
                        <span class="stage-name">{ if alone { "each GPU".to_owned() } else { stage_name(run) } }</span>
                        { memory_bar(run.first.uses, whole, capacity) }
                        <span class={classes!("stage-value", run.first.fit.class())}>
                            <Number text={gib(run.first.reserved)} why={Explained::Memory(run.first.stage, None)} />
                        </span>
                    </>
                }) }
            </div>
            if folded > 0 || *all && runs.len() > MOST {
                <button type="button" class="link small" onclick={toggle}>
                    { if *all { "Fewer stages".to_owned() } else { format!("{more} more {}", plural(more, "stage", "stages")) } }
                </button>
            }
            <ul class="legend">
                { for Use::ALL.iter().map(|kind| html! {
                    <li>{ swatch_of(*kind) }{ named(kind.name()) }</li>
                }) }
                <li>
                    <svg class="key" width="12" height="12" aria-hidden="true">
                        <line class="limit" x1="6" x2="6" y1="0" y2="12" />
                    </svg>
                    { format!("{} on the device", gib(capacity)) }
                </li>
            </ul>
        </figure>
    }
}

/// The first runs, always including the one with the highest peak.
fn visible<'a>(shown: &Shown, runs: &'a [Run<'a>], most: usize) -> Vec<&'a Run<'a>> {
    let worst = shown.worst().map(|worst| worst.stage);
    let holds = |run: &&Run<'_>| worst.is_some_and(|worst| (run.first.stage..=run.last).contains(&worst));
    let mut visible: Vec<&Run<'_>> = runs.iter().take(most).collect();
    // The last shown one gives way, so the number of bars stays.
    if !visible.iter().any(holds)
        && let (Some(place), Some(worst)) = (visible.last_mut(), runs.iter().find(holds))
    {
        *place = worst;
    }
    visible
}

fn stage_name(run: &Run<'_>) -> String {
    let first = run.first.stage;
    if run.last == first { format!("stage {first}") } else { format!("{first} to {}", run.last) }
}
