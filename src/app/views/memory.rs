//! The memory of each stage: a table of figures that explain themselves, and the tree of one stage.

use shardscope::estimate::Totals;
use shardscope::quantity::{Bytes, gib, grouped};
use shardscope::session::{StageMemory, Use, explain_memory};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use crate::app::desk::Desk;
use crate::app::parts::{Cell, Row, key, number, row, tree, wide};

/// Columns of the table.
const COLUMNS: usize = 9;

pub(crate) fn memory(desk: &Desk) -> Html {
    html! {
        <section class="panel" id="memory" aria-labelledby="memory-title">
            <header>
                <h2 id="memory-title">{ "Memory per GPU" }</h2>
                <p>{ "At the fullest moment of each pipeline stage, in GiB (2^30 bytes). All GPUs of a stage hold equally much. Press a number to see why." }</p>
            </header>
            { wide("Memory of each stage", table(desk)) }
            <StageTree desk={desk.clone()} />
        </section>
    }
}

fn table(desk: &Desk) -> Html {
    let head = |kind: &Use| html! { <th scope="col" class="number">{ key(*kind) }{ kind.name() }</th> };
    html! {
        <table class="figures memory">
            <thead><tr>
                <th scope="col">{ "Stage" }</th>
                { for Use::ALL[..5].iter().map(head) }
                <th scope="col" class="number">{ "allocated" }</th>
                { head(&Use::Framework) }
                <th scope="col" class="number">{ "device" }</th>
            </tr></thead>
            <tbody>
                { for desk.shown.stages.iter().map(|stage| row(line(desk, stage), COLUMNS)) }
                { for desk.shown.report.whole.iter().map(|totals| row(whole(totals), COLUMNS)) }
            </tbody>
        </table>
    }
}

/// GiB without the unit, which stands above the table.
fn bare(bytes: Bytes) -> String {
    gib(bytes).trim_end_matches(" GiB").to_owned()
}

fn line(desk: &Desk, stage: &StageMemory) -> Row {
    let rank = stage.stage;
    let figure = |kind: Option<Use>, bytes| {
        number(desk, bare(bytes), Box::new(move |shown| explain_memory(&shown.report.memory, rank, kind)))
    };
    let mut cells = vec![Cell::Text(rank.to_string())];
    for (kind, bytes) in Use::ALL.into_iter().zip(stage.uses) {
        if kind == Use::Framework {
            cells.push(Cell::Strong(bare(stage.allocated)));
        }
        cells.push(Cell::DrawnNumber(figure(Some(kind), bytes)));
    }
    cells.push(Cell::DrawnNumber(html! {
        <strong class={stage.fit.class()}>{ figure(None, stage.reserved) }<span class="hidden">{ stage.fit.words() }</span></strong>
    }));
    Row { cells, note: Some(about(stage)), class: "" }
}

/// The whole model on one device, for comparison.
fn whole(totals: &Totals) -> Row {
    let parts =
        [totals.parameters, totals.gradients, totals.optimizer, totals.activations, totals.temporaries];
    let last = [totals.peak_allocated, totals.framework, totals.peak_reserved];
    let mut cells = vec![Cell::Text("uncut".to_owned())];
    cells.extend(parts.into_iter().chain(last).map(|bytes| Cell::Number(bare(bytes))));
    let note = "The whole model on a single device without any parallelism, one micro-batch in the step.";
    Row { cells, note: Some(note.to_owned()), class: "uncut" }
}

fn about(stage: &StageMemory) -> String {
    let flight: Vec<String> = stage.in_flight.iter().map(|count| grouped(*count)).collect();
    let held = match stage.in_flight.as_slice() {
        [1] => "1 micro-batch".to_owned(),
        _ => format!("{} micro-batches", flight.join(" + ")),
    };
    format!(
        "Holds {}. Fullest at the {}, with {held} in flight; {} between steps.",
        stage.holds,
        stage.at,
        gib(stage.between_steps)
    )
}

#[derive(Properties, PartialEq)]
struct TreeProps {
    desk: Desk,
}

/// All of one stage's memory, down to the tensor.
#[component]
fn StageTree(props: &TreeProps) -> Html {
    let shown = &props.desk.shown;
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
    let option = |known: &StageMemory| {
        let value = known.stage.to_string();
        html! { <option value={value.clone()} selected={known.stage == stage}>{ value }</option> }
    };
    html! {
        <>
            <div class="sub tree-head">
                <h3>{ "Down to the tensor" }</h3>
                <label class="small">{ "Stage " }<select class="field" {onchange}>{ for shown.stages.iter().map(option) }</select></label>
            </div>
            { tree(&root, 2) }
        </>
    }
}
