//! The memory of each stage: a table of figures that explain themselves, and the tree of one stage.

use shardscope::estimate::{Totals, memory_doubts};
use shardscope::plan::{Field, LeftOut};
use shardscope::session::{Event, PtrEq, Shown, StageMemory, Use, explain_memory};
use shardscope::units::{Bytes, gib, grouped};
use yew::prelude::*;

use super::panel::{Panel, PlanProps, Story};
use super::phase_bars::phase_bars;
use crate::app::action::Action;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::panel_id::PanelId;
use crate::app::ui::Explained;
use crate::app::widgets::{Number, Options, Term, head, remark, section, swatch_of, tree, wide};
use crate::app::words::plural;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Memory,
    tab: Some("Memory"),
    view: |shown| memory(&shown),
    story: Some(Story {
        title: "Memory, down to the tensor",
        text: |shown| {
            let stage = shown.worst().map_or(0, |worst| worst.stage);
            format!(
                "Stage {stage} has the highest peak. Press a number to see the formula, the values in it and its source; the tree below goes down to each tensor."
            )
        },
    }),
};

/// Columns of the table.
const COLUMNS: usize = 9;

fn memory(shown: &PtrEq<Shown>) -> Html {
    let about = html! {
        <>
            { "Peak memory of each " }<Term name="pipeline stage" />{ ", in " }<Term name="GiB" />
            { " (2³⁰ bytes). All GPUs of a stage hold the same amount. Click a number to see why." }
        </>
    };
    let doubts = memory_doubts(&shown.plan);
    section(
        "memory",
        "",
        "Memory per GPU",
        about,
        html! { <>{ phase_bars(shown) }
        { wide("Memory of each stage", html! { { table(shown) } }) }
        <Overheads shown={shown.clone()} />
        if !doubts.is_empty() {
            <ul class="unknowns">{ for doubts.iter().map(|doubt| html! { <li>{ *doubt }</li> }) }</ul>
        }
        <StageTree shown={shown.clone()} /></> },
    )
}

fn table(shown: &Shown) -> Html {
    let of_use = |kind: Use| {
        html! {
            <th class="number" scope="col">{ swatch_of(kind) }{ kind.name() }</th>
        }
    };
    html! {
        <table class="figures memory">
            <thead>
                <tr>
                    { head("Stage") }
                    { for Use::ALL[..5].iter().map(|kind| of_use(*kind)) }
                    { head(">allocated") }
                    { of_use(Use::Framework) }
                    { head(">device") }
                </tr>
            </thead>
            <tbody>
                { for shown.stages.iter().map(line) }
                { for shown.report.whole.iter().map(unsharded) }
            </tbody>
        </table>
    }
}

/// GiB without the unit, which is above the table.
fn bare(bytes: Bytes) -> String {
    // The unit is above the table, and nine columns have no room for it.
    gib(bytes).replace(" GiB", "")
}

fn line(stage: &StageMemory) -> Html {
    let figure = |kind: Option<Use>, bytes| {
        html! {
            <Number text={bare(bytes)} why={Explained::Memory(stage.stage, kind)} />
        }
    };
    let of_use =
        |(kind, bytes): (Use, Bytes)| html! { <td class="number">{ figure(Some(kind), bytes) }</td> };
    let mut uses = Use::ALL.into_iter().zip(stage.uses);
    html! {
        <>
            <tr>
                <th scope="row">{ stage.stage }</th>
                // The first five uses are within torch's count, the last one is in addition to it: its column follows
                // the sum.
                { for uses.by_ref().take(5).map(of_use) }
                <td class="number strong">{ bare(stage.allocated) }</td>
                { for uses.map(of_use) }
                <td class="number">
                    <strong class={stage.fit.class()}>
                        { figure(None, stage.reserved) }
                        <span class="hidden">{ stage.fit.words() }</span>
                    </strong>
                </td>
            </tr>
            { remark(COLUMNS, about(stage)) }
        </>
    }
}

/// The unsharded model on one device, for comparison.
fn unsharded(totals: &Totals) -> Html {
    html! {
        <>
            <tr class="uncut">
                <th scope="row">{ "unsharded (1 GPU)" }</th>
                { for totals.columns().into_iter().map(|bytes| html! { <td class="number">{ bare(bytes) }</td> }) }
            </tr>
            { remark(COLUMNS, "The whole model on a single device without any parallelism, one micro-batch per step.") }
        </>
    }
}

fn about(stage: &StageMemory) -> String {
    let flight: Vec<String> = stage.in_flight.iter().map(|count| grouped(*count)).collect();
    let flight = flight.join(" + ");
    // Several chunks, or a number other than 1, are plural.
    let word = plural(if stage.in_flight == [1] { 1 } else { 2 }, "micro-batch", "micro-batches");
    format!(
        "{}. Peak: {}, {flight} {word} in flight. Steady state between steps: {}.",
        crate::app::words::sentence(&stage.holds),
        stage.at,
        gib(stage.between_steps)
    )
}

/// What is counted in addition to the run's own tensors, in the order of [`LeftOut::NAMES`].
const OVERHEADS: [&str; 5] = [
    "driver context",
    "communicator buffers",
    "allocator slack",
    "DeepSpeed's flat buffers",
    "cuBLAS and cuDNN workspaces",
];

/// DeepSpeed's flat buffers, by their name in [`LeftOut::NAMES`].
const FLAT: &str = "flat";

/// What is counted in addition to the run's own tensors; each can be left out.
#[component(Overheads)]
fn overheads(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let recipe = shown.plan.recipe();
    let left = recipe.left_out;
    // Offered if this run has it: only DeepSpeed has flat buffers. What a link left out can always be put back.
    let counts =
        |name: &str| name != FLAT || recipe.software.semantics().deepspeed_engine || left.holds(name);
    let switch = |(name, label): (&'static str, &'static str)| {
        // The setting lists what is left out: pressing moves this one name in or out and keeps the others.
        let others = LeftOut::NAMES.into_iter().filter(|other| (*other != name) == left.holds(other));
        let value = others.collect::<Vec<_>>().join(" ");
        let set = Event::Set { name: Field::MemoryLeftOut.name().to_owned(), value };
        let dispatch = dispatch.clone();
        html! {
            <label>
                <input
                    type="checkbox"
                    checked={!left.holds(name)}
                    onchange={move |_| dispatch.emit(set.clone().into())}
                />
                { label }
            </label>
        }
    };
    html! {
        <fieldset class="terms">
            <legend>
                { "Overheads included on top of torch " }<Term name="allocated">{ "allocations" }</Term>
            </legend>
            { for LeftOut::NAMES.into_iter().zip(OVERHEADS).filter(|(name, _)| counts(name)).map(switch) }
        </fieldset>
    }
}

/// All of one stage's memory, down to the tensor.
#[component(StageTree)]
fn stage_tree(PlanProps { shown }: &PlanProps) -> Html {
    let app = use_context::<AppContext>();
    let stage = stage_chosen(app.and_then(|app| app.ui.stage), shown);
    let root =
        // Trees of many layers are large, and choosing in another panel redraws this one.
        use_memo((shown.clone(), stage), |(shown, stage)| explain_memory(&shown.report.memory, *stage, None));
    let Some(root) = &*root else { return html!() };
    html! {
        <>
            <div class="sub tree-head">
                <h3>{ "Per-tensor breakdown" }</h3>
                <label class="small">{ "Stage " }<StageList shown={shown.clone()} /></label>
            </div>
            { tree(root, 2) }
        </>
    }
}

/// The selected stage: the one chosen, or else the fullest.
// A stage chosen for an earlier plan may be gone.
pub(super) fn stage_chosen(chosen: Option<u64>, shown: &Shown) -> u64 {
    let known = |stage: &u64| shown.stages.iter().any(|known| known.stage == *stage);
    chosen.filter(known).unwrap_or_else(|| shown.worst().map_or(0, |worst| worst.stage))
}

/// The list of stages.
#[component(StageList)]
pub(super) fn stage_list(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let app = use_context::<AppContext>();
    let chosen = stage_chosen(app.and_then(|app| app.ui.stage), shown);
    html! {
        <Options
            label="Stage"
            names={shown.stages.iter().map(|known| known.stage.to_string().into()).collect::<Vec<AttrValue>>()}
            chosen={chosen.to_string()}
            onchange={move |value: String| dispatch.emit(Action::Stage(value.parse().ok()))}
        />
    }
}
