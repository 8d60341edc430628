//! What the user knows better than the catalog: measured rates, the length of the run, its price, their own machine.

use shardscope::plan::Field;
use shardscope::session::Event;
use yew::prelude::*;

use crate::app::action::Action;
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};

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
