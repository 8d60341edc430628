//! What the user knows better than the catalog: measured rates, the length of the run, its price, their own machine.

use shardscope::plan::Field;
use shardscope::session::{
    Event, corrects_others, log_text, logged, measured_ratio, measured_sentence, with_log,
};
use yew::prelude::*;

use super::contribute::Contribute;
use super::panel::PlanProps;
use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::widgets::{heads, wide};

const FIGURES: [(Field, &str); 14] = [
    (Field::MeasuredMatmulTflops, "large bf16 GEMM, TFLOP/s"),
    (Field::MeasuredFastBusGbps, "all-reduce inside a node, bus GB/s"),
    (Field::MeasuredNetworkBusGbps, "all-reduce across nodes, bus GB/s per GPU"),
    (Field::MeasuredOverEstimated, "measured step time / estimate"),
    (Field::TokenBudget, "tokens to train on"),
    (Field::PricePerGpuHour, "price per GPU-hour"),
    (Field::WattsPerGpu, "watts per GPU, including host and cooling"),
    (Field::GpuMemoryGib, "GPU memory, GiB"),
    (Field::GpuMemoryTbps, "GPU memory bandwidth, TB/s"),
    (Field::GpuPeakTflops, "dense bf16 peak, TFLOP/s"),
    (Field::GpuPeakFp8Tflops, "dense fp8 peak, TFLOP/s"),
    (Field::FastLinkGbps, "NVLink per GPU, GB/s each way"),
    (Field::FastLinkDomain, "GPUs per NVLink domain"),
    (Field::NetworkGbps, "network per GPU, GB/s each way"),
];

/// Fields for them; the estimate follows as for any other setting.
#[component(OwnFigures)]
pub(super) fn own_figures() -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let resolution = &app.session.answer.resolution;
    let stated =
        |field: Field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
    // Open if something is stated: what changes the answer must not be hidden.
    let open = FIGURES.iter().any(|(field, _)| !stated(*field).is_empty());
    let field = |(field, label): (Field, &'static str)| {
        let set = move |dispatch: &Callback<Action>, value: String| {
            dispatch.emit(Event::Set { name: field.name().to_owned(), value }.into());
        };
        let (changed, pressed) = (dispatch.clone(), dispatch.clone());
        html! {
            <label key={field.name()}>
                { label }
                <input
                    class="field"
                    inputmode="decimal"
                    autocomplete="off"
                    title={field.about()}
                    value={stated(field)}
                    // On leaving the field and on Enter: each is one undo step, while keystrokes would be many.
                    onchange={move |event: web_sys::Event| set(&changed, browser::value_of(&event))}
                    onkeydown={move |event: KeyboardEvent| if event.key() == "Enter" {
                        set(&pressed, browser::value_of(&event));
                    }}
                />
            </label>
        }
    };
    html! {
        <details class="reasons" {open}>
            <summary>{ "Your own numbers: measured rates, tokens, price" }</summary>
            <div class="own">{ for FIGURES.into_iter().map(field) }</div>
        </details>
    }
}

/// As Megatron writes it.
const SAMPLE: &str = " iteration 10/ 500 | elapsed time per iteration (ms): 4812.3 | throughput per GPU (TFLOP/s/GPU): 421.0 |";

/// A box for the log of the run, and its figures next to the prediction.
#[component(OwnLog)]
pub(super) fn own_log(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let Some(app) = use_context::<AppContext>() else { return html!() };
    let input = &app.session.input;
    let lines = logged(input, shown);
    let text = log_text(input).to_owned();
    let calibrate = measured_ratio(input, shown).map(|ratio| {
        let dispatch = dispatch.clone();
        Callback::from(move |_: MouseEvent| {
            let name = Field::MeasuredOverEstimated.name().to_owned();
            // Four decimals of a ratio are a hundredth of a percent.
            dispatch.emit(Event::Set { name, value: format!("{ratio:.4}") }.into());
        })
    });
    let onchange = {
        let input = input.clone();
        move |event: web_sys::Event| {
            // As an opening: the log is a separate text, and undo takes it away again.
            let input = with_log(&input, &browser::value_of(&event));
            dispatch.emit(Event::Open(Box::new(input)).into());
        }
    };
    html! {
        <details class="reasons" open={!text.is_empty()}>
            <summary>{ "Your own run: paste its log to compare it with the prediction" }</summary>
            <textarea
                class="field mono"
                aria-label="Log lines of this run"
                rows="3"
                spellcheck="false"
                placeholder={SAMPLE}
                value={text}
                {onchange}
            />
            if !lines.is_empty() {
                { wide("Measured and predicted", html! { <table class="figures">
                        <thead>{ heads(&["Figure", ">measured", ">predicted", ">error"]) }</thead>
                        <tbody>
                            { for lines.iter().map(|line| html! {
                                <tr>
                                    <th scope="row">{ line.name }</th>
                                    <td class="number">{ &line.measured }</td>
                                    <td class="number strong">{ &line.predicted }</td>
                                    <td class="number">{ &line.off }</td>
                                </tr>
                            }) }
                        </tbody>
                    </table> }) }
            }
            if !lines.is_empty() {
                <Contribute />
            }
            if let Some(onclick) = calibrate {
                <p class="soft small">
                    { measured_sentence(shown) }
                    // If errors are specific to a layout, a correction would only spoil the other estimates.
                    if corrects_others(shown) {
                        { " " }
                        <button type="button" class="button small" {onclick}>{ "Calibrate other layouts with this step" }</button>
                    }
                </p>
            }
        </details>
    }
}
