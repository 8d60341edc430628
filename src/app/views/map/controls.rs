//! What the colours tell, and the search for a GPU.

use shardscope::session::map::{Colour, relation_name};
use shardscope::topology::{GroupKind, Rank};
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub colour: Colour,
    /// What there is to choose from, groups apart.
    pub amounts: Vec<Colour>,
    pub kinds: Vec<GroupKind>,
    pub gpus: u64,
    pub per_node: u64,
    pub oncolour: Callback<Colour>,
    pub onpick: Callback<u64>,
}

fn name(colour: Colour) -> String {
    match colour {
        Colour::Stage => "pipeline stage".to_owned(),
        Colour::Group(kind) => format!("{} groups", relation_name(kind)),
        Colour::Memory => "memory at the peak".to_owned(),
        Colour::Traffic => "bytes sent per iteration".to_owned(),
    }
}

#[component]
pub(crate) fn Controls(props: &Props) -> Html {
    let colours: Vec<Colour> = [Colour::Stage]
        .into_iter()
        .chain(props.kinds.iter().map(|kind| Colour::Group(*kind)))
        .chain(props.amounts.iter().copied())
        .collect();
    let onchange = {
        let (colours, oncolour) = (colours.clone(), props.oncolour.clone());
        move |event: Event| {
            let index =
                event.target_dyn_into::<HtmlSelectElement>().map_or(0, |select| select.selected_index());
            if let Some(colour) = usize::try_from(index).ok().and_then(|index| colours.get(index)) {
                oncolour.emit(*colour);
            }
        }
    };
    let unknown = use_state(|| false);
    let onsubmit = {
        let (unknown, onpick) = (unknown.clone(), props.onpick.clone());
        let (gpus, per_node) = (props.gpus, props.per_node);
        move |event: SubmitEvent| {
            event.prevent_default();
            let field = event
                .target_dyn_into::<web_sys::Element>()
                .and_then(|form| form.query_selector("input").ok().flatten())
                .and_then(|field| wasm_bindgen::JsCast::dyn_into::<HtmlInputElement>(field).ok());
            let wanted = field.map(|field| field.value()).unwrap_or_default();
            let found = find(&wanted, gpus, per_node);
            unknown.set(found.is_none());
            if let Some(gpu) = found {
                onpick.emit(gpu);
            }
        }
    };
    html! {
        <div class="map-controls">
            <label>{ "Colour by " }
                <select class="field" {onchange}>
                    { for colours.iter().map(|colour| html! {
                        <option selected={*colour == props.colour}>{ name(*colour) }</option>
                    }) }
                </select>
            </label>
            <form {onsubmit} role="search" aria-label="GPUs">
                <label>{ "Find " }
                    <input class="field" name="gpu" size="9" placeholder="n0_g0" autocomplete="off" spellcheck="false"
                        aria-invalid={if *unknown { "true" } else { "false" }} aria-describedby="unknown-gpu" />
                </label>
                <button type="submit" class="button">{ "Show" }</button>
            </form>
            <p id="unknown-gpu" role="status" class="small soft">
                if *unknown {
                    { format!("No such GPU: labels run from n0_g0 to {}, ranks from 0 to {}.",
                        Rank::new(props.gpus.saturating_sub(1)).label(props.per_node), props.gpus.saturating_sub(1)) }
                }
            </p>
        </div>
    }
}

/// The GPU with this label or rank.
fn find(wanted: &str, gpus: u64, per_node: u64) -> Option<u64> {
    let wanted = wanted.trim();
    let rank = Rank::from_label(wanted, per_node).map(Rank::get).or_else(|| wanted.parse().ok())?;
    (rank < gpus).then_some(rank)
}
