//! The settings that are tried most, one step up or down, with undo, redo and the pinned plan.

use shardscope::catalog::accelerator_names;
use shardscope::plan::Field;
use shardscope::session::knobs::{Knob, RECOMPUTE, knobs, recompute_as, recompute_of, short_name};
use shardscope::session::{Event, PtrEq, Refused, Shown};
use shardscope::units::grouped;
use yew::prelude::*;

use crate::app::context::{Dispatch, send, use_dispatch};
use crate::app::widgets::{Options, Sign, icon, named};
use crate::app::words::sentence;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: PtrEq<Shown>,
    pub refused: Option<Refused>,
    pub can_undo: bool,
    pub can_redo: bool,
    pub pinned: bool,
}

#[component(PlanBar)]
pub(crate) fn plan_bar(props: &Props) -> Html {
    let dispatch = use_dispatch();
    let plan = &props.shown.plan;
    let step = |sign: Sign, label: &'static str, title: &'static str, event: Event, can: bool| {
        html! {
            <button
                type="button"
                class="button only-icon"
                aria-label={label}
                {title}
                disabled={!can}
                onclick={send(&dispatch, move || event.clone().into())}
            >
                { icon(sign) }
            </button>
        }
    };
    // The button shows the state, so pressing it again undoes it.
    let pin = if props.pinned { Event::Unpin } else { Event::Pin };
    let accelerator = {
        let dispatch = dispatch.clone();
        move |value: String| {
            dispatch.emit(Event::Set { name: Field::Accelerator.name().to_owned(), value }.into())
        }
    };
    let recompute = {
        let dispatch = dispatch.clone();
        // One event for all settings of a way to recompute: each alone would contradict the others.
        move |value: String| dispatch.emit(Event::Try(recompute_as(&value)).into())
    };
    html! {
        <section class="plan-bar" aria-labelledby="plan-title">
            <header>
                <h2 id="plan-title">{ "Try a change" }</h2>
                <div class="toolbar" role="toolbar" aria-label="Plan">
                    { step(Sign::Undo, "Undo", "Undo (Ctrl+Z)", Event::Undo, props.can_undo) }
                    { step(Sign::Redo, "Redo", "Redo (Ctrl+Shift+Z)", Event::Redo, props.can_redo) }
                    <button
                        type="button"
                        class="button"
                        aria-pressed={props.pinned.to_string()}
                        title="Pin as baseline to compare"
                        onclick={send(&dispatch, move || pin.clone().into())}
                    >
                        { icon(Sign::Pin) }
                        { "Pin" }
                    </button>
                </div>
            </header>
            { props.refused.as_ref().map(|refused| refusal(&props.shown, refused)) }
            <div class="knobs" role="group" aria-label="Settings to try">
                { for knobs(plan).iter().map(|one| knob(&dispatch, one)) }
                <span class="knob wide-knob">
                    { named("recompute") }
                    <Options
                        label="recompute"
                        names={RECOMPUTE.map(AttrValue::Static).to_vec()}
                        chosen={recompute_of(plan)}
                        onchange={recompute}
                    />
                </span>
                <label class="knob wide-knob accelerator">
                    { "GPU" }
                    <Options
                        label="GPU"
                        names={accelerator_names().map(AttrValue::Static).collect::<Vec<_>>()}
                        chosen={plan.cluster().accelerator.name.to_string()}
                        onchange={accelerator}
                    />
                </label>
            </div>
        </section>
    }
}

/// Why a value was not accepted; the plan stays as it is.
fn refusal(shown: &Shown, refused: &Refused) -> Html {
    // For one setting its current value is stated; for several, no single one explains the refusal.
    let stays = match refused.values.as_slice() {
        [(name, _)] => Field::named(name).and_then(|field| {
            let now = shown.answer.resolution.setting(field)?.value.written();
            Some(format!("{} stays {now}.", short_name(field)))
        }),
        _ => None,
    };
    html! {
        <p class="refusal" role="alert">
            { icon(Sign::Tight) }
            <span>
                <b>{ sentence(&refused.reason) }{ ". " }</b>
                { stays.unwrap_or_else(|| "The plan is unchanged.".to_owned()) }
            </span>
        </p>
    }
}

fn knob(dispatch: &Dispatch, knob: &Knob) -> Html {
    html! {
        <span class="knob">
            { named(knob.short) }
            <span class="turn">
                { turn(dispatch, knob.field, knob.less, "−", "Less") }
                <output>{ grouped(knob.value) }</output>
                { turn(dispatch, knob.field, knob.more, "+", "More") }
            </span>
        </span>
    }
}

fn turn(dispatch: &Dispatch, field: Field, to: Option<u64>, sign: &'static str, word: &'static str) -> Html {
    let set = send(dispatch, move || {
        // Disabled without a value, so the empty one is never sent.
        let value = to.map(|to| to.to_string()).unwrap_or_default();
        Event::Set { name: field.name().to_owned(), value }.into()
    });
    html! {
        <button
            type="button"
            disabled={to.is_none()}
            aria-label={format!("{word}: {}", field.about())}
            onclick={set}
        >{ sign }</button>
    }
}
