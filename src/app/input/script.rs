//! The launch script, its additional files, and the diagnostics.

use gloo::file::FileList;
use shardscope::launch::{Origin, SettingValue};
use shardscope::plan::Field;
use shardscope::session::{Answer, EXAMPLE, Event, PtrEq, UserInput, software_name};
use shardscope::source::Severity;
use shardscope::units::grouped;
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::diagnostics::Diagnostics;
use super::editor::Editor;
use super::questions::Questions;
use crate::app::action::Action;
use crate::app::context::{send, use_dispatch};
use crate::app::given_files::take;
use crate::app::own_files::measured_chip;
use crate::app::widgets::{Sign, icon};
use crate::app::words::plural;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub input: UserInput,
    pub answer: PtrEq<Answer>,
    pub has_plan: bool,
    pub reading: bool,
}

#[component(Script)]
pub(crate) fn script(props: &Props) -> Html {
    let Props { input, answer, has_plan, reading } = props;
    html! {
        <section class="script" aria-labelledby="script-title">
            <header>
                <h2 id="script-title" class="hidden">{ "Launch script" }</h2>
                <p class="private">{ "Nothing leaves this page." }</p>
                <Tools text={input.text.clone()} />
            </header>
            <Editor text={input.text.clone()} answer={answer.clone()} />
            <Beside input={input.clone()} />
            if *has_plan && !*reading {
                { found(answer) }
            }
            <Diagnostics
                answer={answer.clone()}
                reading={*reading}
                empty={input.text.trim().is_empty()}
                settings_alone={input.is_settings_alone()}
            />
            // Without a plan they take the place of the answer.
            if *has_plan {
                <Questions answer={answer.clone()} title="Open questions" about="There is an estimate without these; answers make it more accurate." />
            }
        </section>
    }
}

#[derive(Properties, PartialEq)]
struct ToolsProps {
    text: std::rc::Rc<str>,
}

#[component(Tools)]
fn tools(props: &ToolsProps) -> Html {
    let dispatch = use_dispatch();
    let load = |text: &'static str| {
        // As a separate plan: undo leads back, and the history gets an entry.
        send(&dispatch, move || Action::Session(Event::Open(Box::new(UserInput::from_text(text)))))
    };
    let pick = {
        let dispatch = dispatch.clone();
        move |event: web_sys::Event| {
            let Some(field) = event.target_dyn_into::<HtmlInputElement>() else { return };
            if let Some(files) = field.files() {
                take(&dispatch, &FileList::from(files));
                // Otherwise opening the same file again would not count as a change.
                field.set_value("");
            }
        }
    };
    html! {
        <div class="tools">
            <label class="button quiet file">
                { icon(Sign::Open) }
                { "Open files" }
                <input class="hidden" type="file" aria-label="Open files" multiple=true onchange={pick} />
            </label>
            if &*props.text != EXAMPLE {
                <button type="button" class="button quiet" onclick={load(EXAMPLE)}>{ "Load sample" }</button>
            }
            if !props.text.is_empty() {
                <button type="button" class="button quiet" onclick={load("")}>{ "Clear" }</button>
            }
        </div>
    }
}

#[derive(Properties, PartialEq)]
struct BesideProps {
    input: UserInput,
}

/// The files in addition to the script.
#[component(Beside)]
fn beside(props: &BesideProps) -> Html {
    let dispatch = use_dispatch();
    let own = &props.input.own;
    if props.input.beside.is_empty() && own.files.is_empty() {
        return html!();
    }
    html! {
        <ul class="beside" aria-label="Files beside the script">
            { for props.input.beside.iter().map(|file| {
                let (input, name) = (props.input.clone(), file.name.clone());
                let remove = send(&dispatch, move || {
                    // As an opening: without the file it is another run.
                    Action::Session(Event::Open(Box::new(input.without_file(&name))))
                });
                html! {
                    <li>
                        { &file.name }
                        <button
                            type="button"
                            class="button quiet"
                            aria-label={format!("Remove {}", file.name)}
                            onclick={remove}
                        >
                            { icon(Sign::Close) }
                        </button>
                    </li>
                }
            }) }
            // What was measured is no launch text; its figures stand under Time.
            { for own.files.iter().map(|file| measured_chip(&dispatch, own, &file.name)) }
        </ul>
    }
}

/// What the text was recognised as, in one line.
fn found(answer: &Answer) -> Html {
    let resolution = &answer.resolution;
    let value = |field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    let count = |wanted: fn(Origin) -> bool| {
        let all = resolution.settings.iter().filter(|setting| setting.value != SettingValue::Null);
        // Unset settings have origins too, which count for nothing.
        all.filter(|setting| wanted(setting.origin)).count()
    };
    let said = count(|origin| matches!(origin, Origin::Script | Origin::Environment));
    let changed = match count(|origin| origin == Origin::User) {
        0 => String::new(),
        changed => format!("{changed} changed, "),
    };
    let derived = count(|origin| origin == Origin::Derived);
    let warnings = resolution.diagnostics.iter().filter(|one| one.severity > Severity::Note).count();
    html! {
        <p class="found">
            <b>{ software_name(resolution) }</b>
            { format!(", {} × {} · ", resolution.count(Field::WorldSize).map(grouped).unwrap_or_default(), value(Field::Accelerator)) }
            { format!("{said} from the script, {changed}{derived} derived, {} defaults · ", count(|origin| {
                matches!(origin, Origin::Default | Origin::Catalog)
            })) }
            <b>{ format!("{warnings} {}", plural(warnings as u64, "warning", "warnings")) }</b>
        </p>
    }
}
