//! What the tools of the user's own run printed, beside the prediction.

use gloo::file::{Blob, FileList};
use shardscope::plan::Field;
use shardscope::session::beside::Measurement;
use shardscope::session::{
    Compared, Event, Shown, compared, corrects_others, is_too_fast, measured_ratio, measured_sentence, notes,
};
use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::contribute::Contribute;
use super::panel::PlanProps;
use crate::app::beside::{self, LOST};
use crate::app::browser;
use crate::app::context::{AppContext, Dispatch, use_dispatch};
use crate::app::given_files::measure;
use crate::app::own_files::{OwnFiles, measured_chip};
use crate::app::widgets::{heads, remark, wide};
use crate::app::words::sentence;

/// As Megatron and transformers' Trainer write it.
const SAMPLE: &str = " iteration 10/ 500 | elapsed time per iteration (ms): 4812.3 | throughput per GPU (TFLOP/s/GPU): 421.0 |\n  3%|3         | 30/1000 [02:30<1:20:50,  5.00s/it]";
/// What is read, for a text or file that is none of it.
const READ: &str = "Read are logs of Megatron-LM and of Hugging Face's Trainer (progress, metrics, trainer_state.json), PyTorch's memory snapshots, memory summaries and profiles, and what nvidia-smi prints.";

/// What a step says that no GPU of the plan could make.
const TOO_FAST: &str =
    "Shorter than the GPUs' peak allows: it is a step of another run, or not what this plan calls a step.";

/// A box for output of the run's tools, their files, and their figures next to the prediction.
#[component(OwnRun)]
pub(super) fn own_run(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    // Typed text is stored at every keystroke, so that whatever is redrawn meanwhile loses nothing; it is taken up when
    // the box is left.
    let typed = use_state_eq(|| None::<String>);
    let is_lost = use_state_eq(|| false);
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let own = &app.session.input.own;
    use_log(own.is_unread().then(|| own.log.clone()), &is_lost, &dispatch);
    let oninput = {
        let typed = typed.setter();
        move |event: InputEvent| typed.set(Some(browser::value_of(&event)))
    };
    let onchange = {
        let (own, dispatch, typed, is_lost) =
            (own.clone(), dispatch.clone(), typed.setter(), is_lost.setter());
        move |event: web_sys::Event| {
            typed.set(None);
            is_lost.set(false);
            let own = own.with_log(&browser::value_of(&event));
            dispatch.emit(Event::Own(Box::new(own)).into());
        }
    };
    let pick = {
        let dispatch = dispatch.clone();
        move |event: web_sys::Event| {
            let Some(field) = event.target_dyn_into::<HtmlInputElement>() else { return };
            if let Some(files) = field.files() {
                measure(&dispatch, &FileList::from(files));
                // Otherwise opening the same file again would not count as a change.
                field.set_value("");
            }
        }
    };
    let again = {
        let is_lost = is_lost.setter();
        move |_: MouseEvent| is_lost.set(false)
    };
    let status = match () {
        () if *is_lost => html! {
            <>{ LOST }{ " " }<button type="button" class="button small" onclick={again}>{ "Try again" }</button></>
        },
        () if own.is_unread() => html!("Reading…"),
        () if own.read.as_ref().is_some_and(|found| found.is_empty()) => {
            html! { <>{ "Nothing in the box is the output of a tool that is read here. " }{ READ }</> }
        }
        () => html!(),
    };
    let is_busy = app.ui.measuring.has_news();
    html! {
        <details id="own-run" class="reasons" open={!own.is_empty() || is_busy}>
            <summary>{ "Your own run: what its tools printed, compared with the prediction" }</summary>
            <textarea
                class="field mono"
                aria-label="Log lines of this run"
                rows="3"
                spellcheck="false"
                placeholder={SAMPLE}
                value={(*typed).clone().unwrap_or_else(|| own.log.to_string())}
                {oninput}
                {onchange}
            />
            <p>
                <label class="button small file">
                    { "Open measured files" }
                    <input class="hidden" type="file" aria-label="Open measured files" multiple=true onchange={pick} />
                </label>
                { " or drop them anywhere on the page. " }{ READ }{ " Files are read here, up to 512 MiB; pickles as data, nothing in them is run." }
            </p>
            <div role="status">{ status }</div>
            <OwnFiles />
            if !own.files.is_empty() {
                <ul class="beside" aria-label="Measured files">
                    { for own.files.iter().map(|file| measured_chip(&dispatch, own, &file.name)) }
                </ul>
                <p>{ "Their figures stay with this plan in this browser. A link carries the text of the box, and no file." }</p>
            }
            if own.found().next().is_some() {
                { figures(&app, shown) }
                <Contribute />
            }
            { calibration(&app, shown, &dispatch) }
        </details>
    }
}

/// Has a pasted log read that was not yet.
#[hook]
fn use_log(log: Option<std::rc::Rc<str>>, is_lost: &UseStateHandle<bool>, dispatch: &Dispatch) {
    let (dispatch, lost) = (dispatch.clone(), is_lost.setter());
    // Not while it is lost: the user tries again.
    let wanted = log.filter(|_| !**is_lost);
    use_effect_with(wanted, move |log| {
        let work = log.clone().map(|log| {
            let blob = Blob::new(&*log);
            beside::measured(blob.as_ref(), move |found| {
                let found = match found {
                    Some(Measurement::Found(found)) => found,
                    Some(Measurement::Nothing | Measurement::Refused(_)) => Vec::new(),
                    None => return lost.set(true),
                };
                dispatch.emit(Event::Measured(log.clone(), found).into());
            })
        });
        // Dropping it ends it: a log that was replaced is not wanted any more.
        move || drop(work)
    });
}

/// Every figure beside the prediction, by source.
fn figures(app: &AppContext, shown: &Shown) -> Html {
    // What is compared with what, once for each figure.
    let mut about: Vec<(&str, &str)> = Vec::new();
    let mut sources = Vec::new();
    for (file, found) in app.session.input.own.found() {
        let lines = compared(found, &shown.plan, &shown.report);
        for line in lines.iter().filter(|line| !line.about.is_empty()) {
            if about.iter().all(|(name, _)| *name != line.name) {
                about.push((line.name, line.about));
            }
        }
        let said: Vec<String> = notes(found).iter().map(|note| sentence(note) + ".").collect();
        let of = if file.is_empty() { "in the box" } else { file };
        sources.push(html! {
            <tbody>
                <tr class="source"><th scope="rowgroup" colspan="4">{ format!("{}, {of}", found.tool.name()) }</th></tr>
                { for lines.iter().map(row) }
                if is_too_fast(found, &shown.report) {
                    { remark(4, TOO_FAST) }
                }
                <tr class="source-note"><td colspan="4">{ said.join(" ") }</td></tr>
            </tbody>
        });
    }
    html! {
        <>
            { wide("Measured and predicted", html! {
                <table class="figures">
                    <thead>{ heads(&["Figure", ">measured", ">predicted", ">error"]) }</thead>
                    { sources }
                </table>
            }) }
            <ul class="abouts">{ for about.into_iter().map(|(name, about)| html! { <li>{ format!("{name}: {about}") }</li> }) }</ul>
        </>
    }
}

fn row(line: &Compared) -> Html {
    let [predicted, measured] = &line.words;
    html! {
        <tr>
            <th scope="row">{ line.name }</th>
            <td class="number">{ measured }</td>
            <td class="number strong">{ predicted }</td>
            <td class="number">{ line.off_words() }</td>
        </tr>
    }
}

/// What the measured step says of other layouts, and the button that lets it correct them.
fn calibration(app: &AppContext, shown: &Shown, dispatch: &Dispatch) -> Html {
    let Some(ratio) = measured_ratio(&app.session.input.own, shown) else { return html!() };
    let dispatch = dispatch.clone();
    let onclick = move |_: MouseEvent| {
        let name = Field::MeasuredOverEstimated.name().to_owned();
        // Four decimals of a ratio are a hundredth of a percent.
        dispatch.emit(Event::Set { name, value: format!("{ratio:.4}") }.into());
    };
    html! {
        <p class="soft small">
            { measured_sentence(shown) }
            // If errors are specific to a layout, a correction would only spoil the other estimates.
            if corrects_others(shown) {
                { " " }
                <button type="button" class="button small" {onclick}>{ "Calibrate other layouts with this step" }</button>
            }
        </p>
    }
}
