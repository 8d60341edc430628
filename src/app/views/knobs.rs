//! The settings that are tried most, one step up or down.

use shardscope::plan::Field;
use shardscope::session::Event;
use shardscope::session::knobs::{Knob, RECOMPUTE, knobs, recompute_as, recompute_of};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use crate::app::desk::Desk;

/// The row of knobs.
pub(crate) fn knob_row(desk: &Desk) -> Html {
    let onchange = desk.send.reform(|event: yew::Event| {
        let chosen = event.target_dyn_into::<HtmlSelectElement>().map(|select| select.value());
        Event::Try(recompute_as(&chosen.unwrap_or_default()))
    });
    let now = recompute_of(&desk.shown.plan);
    html! {
        <div class="knobs" role="group" aria-label="Try other values">
            { for knobs(&desk.shown.plan).iter().map(|one| knob(desk, one)) }
            <label class="knob">{ "recompute" }
                <select class="field" {onchange}>
                    { for RECOMPUTE.iter().map(|name| html! { <option value={*name} selected={*name == now}>{ *name }</option> }) }
                </select>
            </label>
        </div>
    }
}

fn knob(desk: &Desk, knob: &Knob) -> Html {
    html! {
        <span class="knob">{ knob.short }
            <span class="turn">
                { turn(desk, knob.field, knob.less, "−", "Less") }
                <output>{ knob.value.to_string() }</output>
                { turn(desk, knob.field, knob.more, "+", "More") }
            </span>
        </span>
    }
}

fn turn(desk: &Desk, field: Field, to: Option<u64>, sign: &'static str, word: &'static str) -> Html {
    let onclick = to.map(|to| {
        desk.send
            .reform(move |_: MouseEvent| Event::Set { name: field.name().to_owned(), value: to.to_string() })
    });
    let label = format!("{word}: {}", field.about());
    html! { <button type="button" disabled={to.is_none()} aria-label={label} {onclick}>{ sign }</button> }
}
