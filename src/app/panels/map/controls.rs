//! The choice of what the colours show, and the search for a GPU.

use shardscope::session::map::{Colour, find_gpu};
use shardscope::session::{Event, PtrEq, Shown};
use shardscope::topology::Rank;
use shardscope::units::grouped;
use yew::prelude::*;

use crate::app::browser;
use crate::app::context::{send, use_dispatch};
use crate::app::panels::map_chips::chips;

#[derive(Properties, PartialEq)]
pub(super) struct Props {
    pub shown: PtrEq<Shown>,
    pub colour: Colour,
}

#[component(Controls)]
pub(super) fn controls(Props { shown, colour }: &Props) -> Html {
    let dispatch = use_dispatch();
    let unknown = use_state_eq(|| false);
    let find = {
        let (dispatch, shown, unknown) = (dispatch.clone(), shown.clone(), unknown.setter());
        move |event: SubmitEvent| {
            event.prevent_default();
            // Read on submit, so that typing needs no redraw.
            let found = find_gpu(&shown.plan, &browser::value_in("find-gpu"));
            unknown.set(found.is_none());
            if let Some(gpu) = found {
                dispatch.emit(Event::Pick(Some(gpu)).into());
            }
        }
    };
    let last = shown.plan.layout().world_size.saturating_sub(1);
    let last_label = Rank::new(last).label(shown.plan.cluster().gpus_per_node);
    html! {
        <div class="map-controls">
            <div class="chips" role="group" aria-label="Color by">
                { for chips(shown).into_iter().map(|chip| {
                    let (to, chosen) = (chip.colour, chip.colour == *colour);
                    html! {
                        <button
                            type="button"
                            class="chip"
                            title={chip.title}
                            aria-pressed={chosen.to_string()}
                            onclick={send(&dispatch, move || Event::Paint(to).into())}
                        >{ chip.name }</button>
                    }
                }) }
            </div>
            <form role="search" aria-label="GPUs" onsubmit={find}>
                <label>
                    { "Find " }
                    <input
                        id="find-gpu"
                        class="field"
                        name="gpu"
                        size="9"
                        placeholder="n0_g0"
                        autocomplete="off"
                        spellcheck="false"
                        aria-invalid={unknown.to_string()}
                        aria-describedby="unknown-gpu"
                    />
                </label>
                <button type="submit" class="button">{ "Show" }</button>
            </form>
            <p id="unknown-gpu" class="small soft" role="status">
                if *unknown {
                    { format!("No such GPU: labels run from n0_g0 to {last_label}, ranks from 0 to {}.", grouped(last)) }
                }
            </p>
        </div>
    }
}
