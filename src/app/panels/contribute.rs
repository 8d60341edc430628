//! A run that the user measured, as a row of evidence: settings and measurements, never the script.

use std::rc::Rc;

use shardscope::plan::{Field, Origin};
use shardscope::session::Event;
use shardscope::session::beside::{EvidenceRow, Provenance};
use yew::prelude::*;

use crate::app::beside::{self, LOST, Work};
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::widgets::Copyable;

/// State of the row that was asked for.
#[derive(Clone, PartialEq)]
enum Asked {
    Nothing,
    Row(Rc<EvidenceRow>),
    Lost,
}

/// Fields for what no log says, and the row beneath them.
#[component(Contribute)]
pub(super) fn contribute() -> Html {
    let dispatch = use_dispatch();
    // Typed text is stored at every keystroke, so that a row that arrives meanwhile loses nothing; the row is updated
    // when a field is left.
    let typed = use_mut_ref(Provenance::default);
    let provenance = use_state_eq(Provenance::default);
    let shown = use_state_eq(Provenance::default);
    let asked = use_state_eq(|| Asked::Nothing);
    let work = use_mut_ref(|| None::<Work>);
    let Some(app) = use_context::<AppContext>() else { return html!() };
    // The row depends on this input and these words; a change recomputes it once the first was requested.
    let ask = {
        let (work, asked, input) = (work.clone(), asked.clone(), app.session.input.clone());
        move |provenance: &Provenance| {
            let asked = asked.clone();
            // Replacing the work ends the one before it, whose row would belong to an older input.
            *work.borrow_mut() = Some(beside::row(&input, provenance, move |row| {
                asked.set(row.map_or(Asked::Lost, |row| Asked::Row(Rc::new(row))));
            }));
        }
    };
    {
        // Only once a row was requested: nothing else here needs the search module.
        let (ask, wanted) = (ask.clone(), *asked != Asked::Nothing);
        use_effect_with((app.session.input.clone(), (*provenance).clone()), move |(_, provenance)| {
            if wanted {
                ask(provenance);
            }
        });
    }
    let field = |label: &'static str, sample: &'static str, of: fn(&mut Provenance) -> &mut String| {
        // `of` borrows mutably; a copy is what it may have here.
        let value = of(&mut (*shown).clone()).clone();
        let (typed, shown) = (typed.clone(), shown.clone());
        let oninput = {
            let typed = typed.clone();
            move |event: InputEvent| {
                *of(&mut typed.borrow_mut()) = browser::value_of(&event);
                shown.set(typed.borrow().clone());
            }
        };
        let provenance = provenance.clone();
        // `change`, when the field is left: the row is made by a worker, which a keystroke should not start.
        let onchange = move |_: web_sys::Event| provenance.set(typed.borrow().clone());
        html! {
            <label>
                { label }
                <input class="field" autocomplete="off" placeholder={sample} {value} {oninput} {onchange} />
            </label>
        }
    };
    let accelerator = app.session.answer.resolution.setting(Field::Accelerator);
    // An accelerator nobody stated makes the row worthless: one press confirms it.
    let assumed = accelerator.filter(|setting| setting.origin == Origin::Default).map(|setting| {
        let value = setting.value.written();
        let label = format!("It ran on {value}");
        let dispatch = dispatch.clone();
        let onclick = move |_| {
            let name = Field::Accelerator.name().to_owned();
            dispatch.emit(Event::Set { name, value: value.clone() }.into());
        };
        html! { <button type="button" class="button small" {onclick}>{ label }</button> }
    });
    let inside = match &*asked {
        Asked::Nothing => {
            let provenance = (*provenance).clone();
            let onclick = move |_| ask(&provenance);
            html! { <button type="button" class="button small" {onclick}>{ "Contribute this run" }</button> }
        }
        Asked::Lost => {
            let provenance = (*provenance).clone();
            let onclick = move |_| ask(&provenance);
            html! {
                <>
                    <p role="alert">{ LOST }</p>
                    <button type="button" class="button small" {onclick}>{ "Try again" }</button>
                </>
            }
        }
        Asked::Row(row) if row.line.is_empty() => html! {
            <p>{ "This plan cannot be expressed by settings alone, and a row carries nothing of the script." }</p>
        },
        Asked::Row(row) => html! {
            <>
                <p class="soft small">
                    { "One line with settings and measurements, nothing of the script. Add it to tests/data/contributed in a pull request, or to an issue; CONTRIBUTING.md says what happens to it. Nothing is sent from here." }
                </p>
                <div class="own">
                    { field("Where it can be looked up", "https://…", |words| &mut words.source) }
                    { field("When it ran", "2026-03", |words| &mut words.date) }
                    { field("Versions", "core 0.14, torch 2.9", |words| &mut words.versions) }
                </div>
                if row.lacking.is_empty() {
                    <p class="small" role="status">{ "The row is complete." }</p>
                } else {
                    <p class="small" role="status">{ "Still lacking:" }</p>
                    <ul class="lacks small">{ for row.lacking.iter().map(|what| html! { <li>{ what }</li> }) }</ul>
                    { assumed }
                }
                <Copyable id="evidence-row" label="Copy row" text={row.line.clone()} />
            </>
        },
    };
    html! { <div id="contribute">{ inside }</div> }
}
