//! The panel as a whole.

use shardscope::plan::Plan;
use shardscope::quantity::gib;
use shardscope::session::map::{
    About, Amounts, Colour, Detail, MOST_DRAWN, Picture, Relation, Wire, about, picture, relations, shared,
    wires,
};
use shardscope::session::{Event, Held, Shown};
use shardscope::topology::{Link, Rank};
use web_sys::Element;
use yew::prelude::*;

use super::about::about_gpu;
use super::cells::{Drawn, captions, cells};
use super::controls::Controls;
use super::cursor::{Cursor, spoken};
use super::table::AsTable;
use crate::app::parts::use_width;

#[derive(Properties, PartialEq)]
pub(crate) struct Props {
    pub shown: Held<Shown>,
    pub colour: Colour,
    pub picked: Option<Rank>,
    pub send: Callback<Event>,
}

#[component]
pub(crate) fn Map(props: &Props) -> Html {
    let frame = use_node_ref();
    let width = use_width(&frame);
    let shown = &props.shown;
    let plan = &shown.plan;
    let gpus = plan.layout().world_size;
    let drawn = {
        use_memo((shown.clone(), props.colour, width), |(shown, colour, width)| {
            let plan = &shown.plan;
            let amounts = Amounts {
                memory: shown.stages.iter().map(|stage| stage.reserved).collect(),
                traffic: shown.report.traffic.stages().iter().map(|stage| stage.wire).collect(),
            };
            (*width > 0 && plan.layout().world_size <= MOST_DRAWN)
                .then(|| Held::new(picture(plan, *colour, &amounts, *width)))
        })
    };
    let cursor = use_state(|| 0_u64);
    let focused = use_state(|| false);
    let at = (*cursor).min(gpus.saturating_sub(1));
    let chosen = props.picked.and_then(|rank| about(plan, rank));
    let pick = {
        let (send, cursor) = (props.send.clone(), cursor.clone());
        Callback::from(move |gpu: u64| {
            cursor.set(gpu);
            send.emit(Event::Pick(Some(Rank::new(gpu))));
        })
    };
    let onmove = {
        let (cursor, focused, pick, follow) =
            (cursor.clone(), focused.clone(), pick.clone(), chosen.is_some());
        Callback::from(move |gpu: u64| {
            focused.set(true);
            if follow { pick.emit(gpu) } else { cursor.set(gpu) }
        })
    };
    let onclick = {
        let (drawn, pick, frame) = (drawn.clone(), pick.clone(), frame.clone());
        move |event: MouseEvent| {
            let found = drawn.as_ref().as_ref().and_then(|picture| gpu_under(&event, &frame, picture));
            if let Some(gpu) = found {
                pick.emit(gpu);
            }
        }
    };
    let memory = props.picked.and_then(|rank| shown.memory_of(rank)).map(gib);
    let onclose = props.send.reform(|()| Event::Pick(None));
    let oncolour = props.send.reform(Event::Paint);
    html! {
        <section class="panel map" id="map" aria-labelledby="map-title">
            <header>
                <h2 id="map-title">{ "Group map" }</h2>
                <p>{ "Every GPU of the cluster. Pick one to see the groups it works in and the links to its partners." }</p>
            </header>
            <Controls colour={props.colour} amounts={vec![Colour::Memory, Colour::Traffic]} kinds={relations(plan)} {gpus}
                per_node={plan.cluster().gpus_per_node} {oncolour} onpick={pick.clone()} />
            <div class="map-frame" ref={frame} {onclick}>
                    if let Some(picture) = drawn.as_ref() {
                        { draw(picture, chosen.as_ref().map(|chosen| (plan, chosen)), html! {
                            <Cursor geometry={picture.geometry} {at} picked={props.picked == Some(Rank::new(at))} focused={*focused}
                                label={about(plan, Rank::new(at)).as_ref().map(spoken).unwrap_or_default()} {onmove} onpick={pick.clone()} />
                        }) }
                    } else if gpus > MOST_DRAWN {
                        <p class="soft">{ format!("{gpus} GPUs are too many to draw; find one by its label instead.") }</p>
                    }
            </div>
            if let Some(picture) = drawn.as_ref() { { legend(picture) } }
            <AsTable shown={shown.clone()} />
            if let Some(chosen) = chosen { { about_gpu(&chosen, memory, &onclose) } }
        </section>
    }
}

/// The GPU under the pointer, by arithmetic: the cells themselves hear nothing.
fn gpu_under(event: &MouseEvent, frame: &NodeRef, picture: &Picture) -> Option<u64> {
    let svg = frame.cast::<Element>()?.query_selector("svg").ok().flatten()?;
    let place = svg.get_bounding_client_rect();
    let (x, y) = (f64::from(event.client_x()) - place.left(), f64::from(event.client_y()) - place.top());
    picture.geometry.at(x, y)
}

fn draw(picture: &Held<Picture>, chosen: Option<(&Plan, &About)>, cursor: Html) -> Html {
    let (width, height) = picture.geometry.size();
    let (rows, columns) = picture.geometry.rows_and_columns();
    html! {
        <svg role="grid" aria-label="GPUs of the cluster" aria-rowcount={rows.to_string()} aria-colcount={columns.to_string()}
            class={chosen.map(|_| "lit")} width={width.to_string()} height={height.to_string()} viewBox={format!("0 0 {width} {height}")}>
            <Drawn picture={picture.clone()} draw={cells as fn(&Picture) -> Html} />
            if let Some((plan, chosen)) = chosen { { company(plan, chosen, picture) } }
            <Drawn picture={picture.clone()} draw={captions as fn(&Picture) -> Html} />
            if let Some((_, chosen)) = chosen { { tags(chosen, picture) } }
            { cursor }
        </svg>
    }
}

/// The picked GPU, its partners and the links to them.
fn company(plan: &Plan, chosen: &About, picture: &Picture) -> Html {
    let members =
        |relation: &Relation| picture.geometry.path(relation.members.iter().map(|member| member.get()));
    html! {
        <g aria-hidden="true" class={(picture.geometry.detail() >= Detail::Number).then_some("rounded")}>
            { for wires(plan, chosen, &picture.geometry).iter().map(wire) }
            { for chosen.relations.iter().rev().map(|relation| html! {
                <path class={format!("partner {}", relation.kind.short())} d={members(relation)} />
            }) }
            <path class="self" d={picture.geometry.path([chosen.rank.get()])} />
        </g>
    }
}

/// Under each partner's label, what it shares with the picked GPU.
fn tags(chosen: &About, picture: &Picture) -> Html {
    if picture.geometry.detail() != Detail::Words {
        return Html::default();
    }
    let tag = |(rank, text): (Rank, String)| {
        let (x, y) = picture.geometry.cell(rank.get()).middle();
        html! { <text class="cell-value" x={x.to_string()} y={(y + 13).to_string()}>{ text }</text> }
    };
    html! { <g aria-hidden="true" class="tags">{ for shared(chosen).into_iter().map(tag) }</g> }
}

fn wire(wire: &Wire) -> Html {
    let far = if wire.link == Link::Network { "network" } else { "fast" };
    html! {
        <line class={format!("wire {far} {}", wire.kind.short())} x1={wire.from.0.to_string()} y1={wire.from.1.to_string()}
            x2={wire.to.0.to_string()} y2={wire.to.1.to_string()} />
    }
}

fn legend(picture: &Picture) -> Html {
    let hue = if picture.ramp { "r" } else { "c" };
    html! {
        <ul class="legend">
            { for picture.legend.iter().map(|swatch| html! {
                <li><svg width="14" height="14" aria-hidden="true"><rect class={format!("cell {hue}{}", swatch.class)} width="14" height="14" rx="3" /></svg>{ &swatch.text }</li>
            }) }
        </ul>
    }
}
