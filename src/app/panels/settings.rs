//! Every setting as it was understood: its value, where it comes from, and a control to change it.

use shardscope::launch::Origin;
use shardscope::plan::Field;
use shardscope::session::{Chapter, Event, Row, State, chapters};
use yew::prelude::*;

use super::panel::{Panel, PlanProps};
use super::rewritten::RewrittenScript;
use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, Dispatch, send, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::place::{is_in_box, show};
use crate::app::ui::InputTab;
use crate::soon::soon;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Settings,
    tab: Some("Settings"),
    view: |shown| html! { <Settings {shown} /> },
    story: None,
};

#[component(Settings)]
fn settings(PlanProps { .. }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let all = use_state_eq(|| false);
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let session = &app.session;
    let input = &session.input;
    // Of the last answer: while a long text is read, the table stays.
    let chapters = chapters(&session.answer.resolution.settings);
    let rows = || chapters.iter().flat_map(|chapter| &chapter.rows);
    let stated = rows().filter(|row| row.is_stated()).count();
    let derived = rows().filter(|row| row.setting.origin == Origin::Derived).count();
    // Catalog counts as a default here: nobody stated it.
    let defaults = rows().count() - stated - derived;
    let alone = input.is_settings_alone();
    let toggle = {
        let (all, now) = (all.setter(), *all);
        move |_| all.set(!now)
    };
    html! {
        <section id="settings" class="panel settings" aria-labelledby="settings-title">
            <header>
                <h2 id="settings-title">{ "Settings" }</h2>
                <p>
                    { format!("{stated} {}, {derived} derived, {defaults} defaults. ", if alone { "set" } else { "from the script or changed" }) }
                    { if alone { "The plan is made of these settings; change any of them." } else { "Change a value to try it; the script stays as it is." } }
                    if input.is_changed() && !alone {
                        { " " }
                        <button type="button" class="link" onclick={send(&dispatch, || Event::UnsetAll.into())}>
                            { "Discard changes" }
                        </button>
                    }
                </p>
            </header>
            // For the answered input, so that no patch is computed at every keystroke.
            <RewrittenScript input={session.answered().clone()} />
            <div class="chapters">
                { for chapters.iter().map(|chapter| table(&dispatch, session, chapter, *all)) }
            </div>
            <button type="button" class="button" aria-expanded={all.to_string()} onclick={toggle}>
                { if *all { "Show key settings only" } else { "Show every default" } }
            </button>
        </section>
    }
}

/// Settings shown without being stated: what everyone asks about first.
const FIRST: [Field; 16] = [
    Field::NumLayers,
    Field::HiddenSize,
    Field::FfnHiddenSize,
    Field::NumAttentionHeads,
    Field::NumQueryGroups,
    Field::SeqLength,
    Field::PaddedVocabSize,
    Field::Accelerator,
    Field::WorldSize,
    Field::TensorModelParallelSize,
    Field::PipelineModelParallelSize,
    Field::DataParallelSize,
    Field::MicroBatchSize,
    Field::NumMicroBatches,
    Field::Software,
    Field::ParamsDtype,
];

fn table(dispatch: &Dispatch, session: &State, chapter: &Chapter, all: bool) -> Html {
    let matters = |row: &&Row| all || row.is_stated() || FIRST.contains(&row.setting.field);
    let rows: Vec<Html> =
        chapter.rows.iter().filter(matters).map(|row| line(dispatch, session, row)).collect();
    // A chapter without a relevant row has no caption either.
    if rows.is_empty() {
        return html!();
    }
    html! {
        <table class="settings-table">
            <caption>{ chapter.title }</caption>
            <colgroup><col class="name" /><col class="value" /><col class="from" /></colgroup>
            <thead class="hidden">
                <tr><th scope="col">{ "Setting" }</th><th scope="col">{ "Value" }</th><th scope="col">{ "From" }</th></tr>
            </thead>
            <tbody>{ for rows }</tbody>
        </table>
    }
}

fn line(dispatch: &Dispatch, session: &State, row: &Row) -> Html {
    let setting = &row.setting;
    let name = setting.name();
    let written = setting.value.written();
    let choices = row.choices();
    let label = format!("{name}, {}", row.field.about());
    let set = {
        let dispatch = dispatch.clone();
        Callback::from(move |value: String| dispatch.emit(Event::Set { name: name.to_owned(), value }.into()))
    };
    let (changed, pressed) = (set.clone(), set);
    let onchange = move |event: web_sys::Event| changed.emit(browser::value_of(&event));
    let onkeydown = move |event: KeyboardEvent| {
        if event.key() == "Enter" {
            pressed.emit(browser::value_of(&event));
        }
    };
    let control = if choices.is_empty() {
        html! {
            <input
                class="field" value={written} autocomplete="off" spellcheck="false" aria-label={label}
                {onchange} {onkeydown}
            />
        }
    } else {
        html! {
            <select class="field" aria-label={label} {onchange}>
                { for choices.iter().map(|choice| html! {
                    <option value={*choice} selected={*choice == written}>{ shown(choice) }</option>
                }) }
            </select>
        }
    };
    html! {
        <tr key={name} class={(!row.is_stated()).then_some("assumed")}>
            <th scope="row" title={row.field.about()}>
                // The name may be broken after each underscore.
                { for name.split_inclusive('_').map(|word| html! { <>{ word }<wbr /></> }) }
            </th>
            <td>{ control }</td>
            <td class="origin">{ origin(dispatch, session, row) }</td>
        </tr>
    }
}

fn shown(choice: &'static str) -> &'static str {
    match choice {
        "true" => "yes",
        "false" => "no",
        other => other,
    }
}

/// Where the value comes from: a place in the text to go to, or a word.
fn origin(dispatch: &Dispatch, session: &State, row: &Row) -> Html {
    let setting = &row.setting;
    let word = match setting.origin {
        Origin::Script => "script",
        Origin::Environment => "answer",
        Origin::Catalog => "catalog",
        Origin::Default => "default",
        Origin::Derived => "derived",
        // Without a text there is nothing to go back to.
        Origin::User if session.input.is_settings_alone() => "set",
        Origin::User => {
            let name = setting.name();
            return html! {
                <button
                    type="button"
                    class="link"
                    onclick={send(dispatch, move || Event::Unset(name.to_owned()).into())}
                >
                    { "edited · undo" }
                    <span class="hidden">{ format!(" the change of {name}") }</span>
                </button>
            };
        }
    };
    // The note explains how a value was derived, which is more useful than the flag.
    let title = setting.note.clone().or_else(|| setting.flag.clone());
    match setting.span {
        Some(span) if !is_in_box(&session.answer, span) => {
            let source = &session.answer.source;
            let place = source.position(span.start);
            let name = source.parts().get(place.part).map_or("", |part| part.name.as_str());
            html! { <span {title}>{ format!("{name}, line {}", place.line) }</span> }
        }
        Some(span) => {
            let answer = session.answer.clone();
            let line = answer.source.position(span.start).line;
            let dispatch = dispatch.clone();
            // The text box may have to be shown first.
            let lead = move |_| {
                dispatch.emit(Action::Input(InputTab::Script));
                let answer = answer.clone();
                // After the next frame, when the tab with the box exists.
                soon(move || show(&answer, span));
            };
            html! {
                <button type="button" class="link" {title} onclick={lead}>
                    // Taken from a named model: its place is that of the name.
                    if setting.origin == Origin::Catalog {
                        { "catalog, " }
                    }
                    { format!("line {line}") }
                    <span class="hidden">{ format!(", for {}", setting.name()) }</span>
                </button>
            }
        }
        None => html! { <span {title}>{ word }</span> },
    }
}
