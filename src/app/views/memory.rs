//! The memory of each stage: a table of figures that explain themselves, and the tree of one stage.

use shardscope::quantity::{gib, grouped};
use shardscope::session::{Held, Shown, StageMemory, Use, explain_memory};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use crate::app::parts::{Number, Tree, Wide, key};

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
}

#[component]
pub(crate) fn Memory(props: &Props) -> Html {
    let shown = &props.shown;
    html! {
        <section class="panel" id="memory" aria-labelledby="memory-title">
            <header>
                <h2 id="memory-title">{ "Memory per GPU" }</h2>
                <p>{ "At the fullest moment of each pipeline stage, in GiB (2^30 bytes). All GPUs of a stage hold equally much. Press a number to see why." }</p>
            </header>
            <Wide label="Memory of each stage">{ table(shown) }</Wide>
            <StageTree shown={shown.clone()} />
        </section>
    }
}

fn table(shown: &Held<Shown>) -> Html {
    html! {
        <table class="figures memory">
            <thead><tr>
                <th scope="col">{ "Stage" }</th>
                { for Use::ALL[..5].iter().map(|kind| html! { <th scope="col" class="number">{ key(*kind) }{ kind.name() }</th> }) }
                <th scope="col" class="number">{ "allocated" }</th>
                <th scope="col" class="number">{ key(Use::Framework) }{ "framework" }</th>
                <th scope="col" class="number">{ "device" }</th>
            </tr></thead>
            <tbody>{ for shown.stages.iter().map(|stage| row(shown, stage)) }</tbody>
        </table>
    }
}

/// GiB without the unit, which stands above the table.
fn bare(bytes: shardscope::quantity::Bytes) -> String {
    gib(bytes).trim_end_matches(" GiB").to_owned()
}

fn row(shown: &Held<Shown>, stage: &StageMemory) -> Html {
    let why = |kind: Option<Use>| {
        let (shown, stage) = (shown.clone(), stage.stage);
        Callback::from(move |()| explain_memory(&shown.report.memory, stage, kind))
    };
    let figure = |kind: Use, bytes| html! { <td class="number"><Number text={bare(bytes)} why={why(Some(kind))} /></td> };
    let uses = Use::ALL.iter().zip(stage.uses);
    html! {
        <>
            <tr>
                <th scope="row">{ stage.stage.to_string() }</th>
                { for uses.clone().take(5).map(|(kind, bytes)| figure(*kind, bytes)) }
                <td class="number strong">{ bare(stage.allocated) }</td>
                { for uses.skip(5).map(|(kind, bytes)| figure(*kind, bytes)) }
                <td class={classes!("number", "strong", stage.fit.class())}><Number text={bare(stage.reserved)} why={why(None)} />
                    <span class="hidden">{ stage.fit.words() }</span></td>
            </tr>
            <tr class="about-row"><td></td><td colspan="8">{ about(stage) }</td></tr>
        </>
    }
}

fn about(stage: &StageMemory) -> String {
    let flight: Vec<String> = stage.in_flight.iter().map(|count| grouped(*count)).collect();
    let held = match stage.in_flight.as_slice() {
        [1] => "1 micro-batch".to_owned(),
        _ => format!("{} micro-batches", flight.join(" + ")),
    };
    format!(
        "{}; fullest at the {}, holding {held}; {} between steps",
        stage.holds,
        stage.at,
        gib(stage.between_steps)
    )
}

/// All of one stage's memory, down to the tensor.
#[component]
fn StageTree(props: &Props) -> Html {
    let shown = &props.shown;
    let worst = shown.worst().map_or(0, |worst| worst.stage);
    let chosen = use_state(|| None::<u64>);
    let stage =
        chosen.filter(|stage| shown.stages.iter().any(|known| known.stage == *stage)).unwrap_or(worst);
    let onchange = {
        let chosen = chosen.clone();
        move |event: Event| {
            let value = event.target_dyn_into::<HtmlSelectElement>().map(|select| select.value());
            chosen.set(value.and_then(|value| value.parse().ok()));
        }
    };
    let Some(root) = explain_memory(&shown.report.memory, stage, None) else { return Html::default() };
    html! {
        <>
            <div class="sub tree-head">
                <h3>{ "Down to the tensor" }</h3>
                <label class="small">{ "Stage " }
                    <select class="field" {onchange}>
                        { for shown.stages.iter().map(|known| html! {
                            <option value={known.stage.to_string()} selected={known.stage == stage}>{ known.stage.to_string() }</option>
                        }) }
                    </select>
                </label>
            </div>
            <Tree {root} open={2} />
        </>
    }
}
