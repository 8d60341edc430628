//! The first nodes of the cluster, small: rest on a GPU to see its group.

use shardscope::session::map::{Colour, group_caption, relations};
use shardscope::session::{Event, Shown};
use shardscope::topology::{GroupKind, Groups, Rank};
use shardscope::units::grouped;
use yew::prelude::*;

use super::map_chips::chips;
use super::panel::PlanProps;
use crate::app::context::{AppContext, send, use_dispatch};

/// Nodes drawn, and GPUs of a node side by side.
const NODES: u64 = 8;
const ACROSS: u64 = 8;
/// Pitch and size of a cell, and the room for the nodes' names. Unit: SVG unit.
const PITCH: (u64, u64) = (25, 17);
const CELL: (u64, u64) = (22, 14);
const NAMES: u64 = 28;
/// Most GPUs that are drawn.
const MOST: u64 = NODES * ACROSS;

/// What the chip and the pointer light up: the group of a kind.
fn kind_of(shown: &Shown, colour: Colour) -> Option<GroupKind> {
    match colour {
        Colour::Group(kind) => Some(kind),
        _ => relations(&shown.plan)
            .into_iter()
            .find(|kind| matches!(kind, GroupKind::Tensor | GroupKind::Data | GroupKind::DataContext)),
    }
}

#[component(MiniMap)]
pub(super) fn mini_map(PlanProps { shown }: &PlanProps) -> Html {
    let dispatch = use_dispatch();
    let hovered = use_state_eq(|| None::<u64>);
    let app = use_context::<AppContext>();
    let (colour, picked) = app.map_or((Colour::Stage, None), |app| (app.session.colour, app.session.picked));
    let plan = &shown.plan;
    let groups = Groups::of(plan.layout());
    let (world, per_node) = (plan.layout().world_size, plan.cluster().gpus_per_node.max(1));
    let rows_per_node = per_node.div_ceil(ACROSS);
    let drawn = world.min(MOST);
    let lit = hovered.is_some() || picked.is_some();
    let told = (*hovered).or(picked.map(Rank::get)).unwrap_or(0);
    let kind = kind_of(shown, colour);
    let group = kind.and_then(|kind| groups.group(kind, Rank::new(told)));
    let members: Vec<u64> = group.iter().flat_map(|group| group.ranks().map(Rank::get)).collect();
    let shade = |rank: u64| {
        let index = match colour {
            Colour::Group(kind) => groups.group(kind, Rank::new(rank)).map_or(0, |group| group.index()),
            _ => groups.coordinates(Rank::new(rank)).pipeline,
        };
        format!("cell c{}", index % 8)
    };
    let cell = |rank: u64| {
        let (node, place) = (rank / per_node, rank % per_node);
        let row = node * rows_per_node + place / ACROSS;
        let (x, y) = (NAMES + place % ACROSS * PITCH.0, row * PITCH.1);
        let member = lit && members.contains(&rank);
        let class =
            classes!(shade(rank), member.then_some("member"), (lit && rank == told).then_some("picked"),);
        let over = {
            let hovered = hovered.setter();
            move |_| hovered.set(Some(rank))
        };
        let pick = send(&dispatch, move || Event::Pick(Some(Rank::new(rank))).into());
        html! {
            <rect
                {class} x={x.to_string()} y={y.to_string()} rx="3"
                width={CELL.0.to_string()} height={CELL.1.to_string()}
                onmouseenter={over} onclick={pick}
            >
                <title>{ Rank::new(rank).label(per_node) }</title>
            </rect>
        }
    };
    let rows = drawn.div_ceil(per_node) * rows_per_node;
    let height = rows * PITCH.1;
    let columns = per_node.min(ACROSS).min(drawn);
    let width = NAMES + ACROSS * PITCH.0;
    let out = {
        let hovered = hovered.setter();
        move |_| hovered.set(None)
    };
    let kinds =
        chips(shown).into_iter().filter(|chip| matches!(chip.colour, Colour::Stage | Colour::Group(_)));
    let caption_of = kind.map_or(colour, Colour::Group);
    html! {
        <div class="mini-map map">
            <div class="chips" role="group" aria-label="Trace">
                { for kinds.take(5).map(|chip| {
                    let to = chip.colour;
                    html! {
                        <button
                            type="button"
                            class="chip"
                            title={chip.title}
                            aria-pressed={(to == colour).to_string()}
                            onclick={send(&dispatch, move || Event::Paint(to).into())}
                        >{ chip.name }</button>
                    }
                }) }
            </div>
            <svg
                viewBox={format!("0 0 {width} {height}")}
                role="img"
                aria-label={format!("{drawn} of {world} GPUs, {columns} to a row")}
                class={hovered.is_some().then_some("lit")}
                onmouseleave={out}
            >
                { for (0..drawn.div_ceil(per_node)).map(|node| html! {
                    <text class="node-name" x="0" y={(node * rows_per_node * PITCH.1 + 11).to_string()}>
                        { format!("n{node}") }
                    </text>
                }) }
                { for (0..drawn).map(cell) }
            </svg>
            if drawn < world {
                <p class="soft small">{ format!("the first {drawn} of {} GPUs", grouped(world)) }</p>
            }
            <p class="group-caption small">{ group_caption(plan, &shown.report.traffic, caption_of, Rank::new(told)) }</p>
        </div>
    }
}
