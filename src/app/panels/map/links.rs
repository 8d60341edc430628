//! Who the picked GPU, or the one under the pointer, works with.

use shardscope::session::Shown;
use shardscope::session::map::{Colour, Detail, Edge, Geometry, Picture, about, company_of, edges, shared};
use shardscope::topology::{GroupKind, Link, Rank};
use yew::prelude::*;

use super::cells::label;

/// The picked GPU, its partners and the links to them, with the groups that each partner shares with it.
pub(super) fn company(shown: &Shown, picture: &Picture, rank: Rank) -> Html {
    let geometry = &picture.geometry;
    let Some(chosen) = about(&shown.plan, rank) else { return html!() };
    let words = geometry.detail() == Detail::Words;
    // Among thousands of cells, lines would cross other cells, so only the partners are highlighted there.
    let wired = geometry.detail() >= Detail::Number;
    let wires = if wired { edges(&shown.plan, &chosen, geometry) } else { Vec::new() };
    html! {
        <>
            <g class={rounded(geometry)} aria-hidden="true">
                { for wires.iter().map(arc) }
                // The innermost group last, so that its colour is on top where groups share members.
                { for chosen.relations.iter().rev().map(|relation| {
                    members(picture, relation.kind, &mut relation.members.iter().map(|member| member.get()))
                }) }
                <path class="self" d={geometry.path(&mut std::iter::once(rank.get()))} />
            </g>
            if words {
                <g class="tags" aria-hidden="true">
                    { for shared(&chosen).iter().map(|(rank, text)| {
                        let (x, y) = geometry.cell(rank.get()).middle();
                        label("cell-value", (x, y + 13), text)
                    }) }
                </g>
            }
        </>
    }
}

fn rounded(geometry: &Geometry) -> Option<&'static str> {
    (geometry.detail() >= Detail::Number).then_some("rounded")
}

/// The cells of a group, those that are seen.
// Partners outside of the drawn tiles have no cell to highlight.
fn members(picture: &Picture, kind: GroupKind, ranks: &mut dyn Iterator<Item = u64>) -> Html {
    let mut seen = ranks.filter(|rank| picture.gpus.contains(rank));
    html! { <path class={format!("partner {}", kind.short())} d={picture.geometry.path(&mut seen)} /> }
}

/// An arc above the row, or beside the column, so that it does not cross the cells in between.
fn arc(edge: &Edge) -> Html {
    let far = if edge.link == Link::Network { "network" } else { "fast" };
    let ((x1, y1), (x2, y2)) = (edge.from, edge.to);
    let (wide, high) = (x1.abs_diff(x2), y1.abs_diff(y2));
    // Bends towards the side with more room.
    let (x, y) = if wide < high {
        (x1.max(x2) + (high / 4).clamp(24, 160), y1.midpoint(y2))
    } else {
        (x1.midpoint(x2), y1.min(y2).saturating_sub(wide / 4 + 24))
    };
    html! {
        <path
            class={format!("wire {far} {}", edge.kind.short())}
            d={format!("M{x1} {y1}Q{x} {y} {x2} {y2}")}
        />
    }
}

/// The GPUs that the colours group with the one under the pointer.
pub(super) fn traced(shown: &Shown, picture: &Picture, colour: Colour, gpu: u64) -> Html {
    let geometry = &picture.geometry;
    // Stages have no kind of their own and take the pipeline's colour.
    let kind = if let Colour::Group(kind) = colour { kind } else { GroupKind::Pipeline };
    let company = company_of(&shown.plan, colour, Rank::new(gpu), &picture.gpus);
    html! {
        <g class={rounded(geometry)} aria-hidden="true">
            { members(picture, kind, &mut company.into_iter()) }
            <path class="self" d={geometry.path(&mut std::iter::once(gpu))} />
        </g>
    }
}
