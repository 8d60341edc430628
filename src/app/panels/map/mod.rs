//! The map of the cluster: every GPU, its colour, and who it works with.

mod about;
mod cells;
mod controls;
mod cursor;
mod links;
mod table;

use shardscope::quantity::{gib, grouped};
use shardscope::session::map::{Amounts, Colour, MOST_DRAWN, Picture, about, group_caption, picture};
use shardscope::session::{Event, PtrEq, Shown};
use shardscope::topology::Rank;
use web_sys::Element;
use yew::prelude::*;

use super::panel::{Panel, PlanProps, Story};
use crate::app::context::{AppContext, use_dispatch};
use crate::app::hooks::use_width;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Section, Swatch, Term};
use about::AboutGpu;
use cells::{Captions, Cells};
use controls::Controls;
use cursor::Cursor;
use links::{Company, Traced};
use table::MapTable;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Map,
    tab: Some("Map"),
    view: |shown| html! { <Map {shown} /> },
    story: Some(Story {
        title: "Who works with whom",
        text: |shown| {
            let gpus = grouped(shown.plan.layout().world_size);
            format!(
                "All {gpus} GPUs, each in its node. Rest on one to see its group; press it to see all of them, and whether they reach each other over NVLink or over the network."
            )
        },
    }),
};

#[component(Map)]
fn map(PlanProps { shown }: &PlanProps) -> Html {
    let app = use_context::<AppContext>();
    let (colour, picked) = app.map_or((Colour::Stage, None), |app| (app.session.colour, app.session.picked));
    let about = picked.and_then(|rank| about(&shown.plan, rank));
    html! {
        <Section
            id="map"
            class="map"
            title="Cluster map"
            about={html! {
                <>
                    { "Every GPU of the cluster, " }<Term name="n0_g0">{ "by node" }</Term>
                    { ". Rest on one to light up its group; pick one to see its " }<Term name="rank" />
                    { ", the process groups it belongs to and the links to its partners." }
                </>
            }}
        >
            <Controls shown={shown.clone()} {colour} />
            <Drawing shown={shown.clone()} {colour} {picked} />
            <MapTable shown={shown.clone()} />
            if let Some(about) = about {
                <AboutGpu memory={shown.memory_of(about.rank).map(gib).unwrap_or_default()} {about} />
            }
        </Section>
    }
}

#[derive(Properties, PartialEq)]
struct DrawingProps {
    shown: PtrEq<Shown>,
    colour: Colour,
    picked: Option<Rank>,
}

/// The picture, with a caption above it and a legend below.
#[component(Drawing)]
fn drawing(DrawingProps { shown, colour, picked }: &DrawingProps) -> Html {
    let dispatch = use_dispatch();
    let frame = use_node_ref();
    let width = use_width(&frame);
    let hovered = use_state_eq(|| None::<u64>);
    let drawn = use_memo((shown.clone(), *colour, width), |(shown, colour, width)| {
        draw(shown, *colour, *width).map(PtrEq::new)
    });
    let plan = &shown.plan;
    let world = plan.layout().world_size;
    let under = {
        let (frame, drawn) = (frame.clone(), drawn.clone());
        move |event: &MouseEvent| {
            let svg = frame.cast::<Element>()?.query_selector("svg").ok().flatten()?;
            let place = svg.get_bounding_client_rect();
            let (x, y) =
                (f64::from(event.client_x()) - place.left(), f64::from(event.client_y()) - place.top());
            drawn.as_ref().as_ref()?.geometry.at(x, y)
        }
    };
    // The cells themselves hear nothing: a point is placed by arithmetic.
    let onclick = {
        let under = under.clone();
        move |event: MouseEvent| {
            if let Some(gpu) = under(&event) {
                dispatch.emit(Event::Pick(Some(Rank::new(gpu))).into());
            }
        }
    };
    let onmousemove = {
        let hovered = hovered.setter();
        move |event: MouseEvent| hovered.set(under(&event))
    };
    let onmouseleave = {
        let hovered = hovered.setter();
        move |_| hovered.set(None)
    };
    // Whom the caption speaks of: the GPU under the pointer, else the picked one, else the first.
    let told = (*hovered).or(picked.map(Rank::get)).unwrap_or(0).min(world.saturating_sub(1));
    let caption = group_caption(plan, &shown.report.traffic, *colour, Rank::new(told));
    let inside = drawn.as_ref().as_ref().map(|picture| {
        let (width, height) = picture.geometry.size();
        let (rows, columns) = picture.geometry.rows_and_columns();
        let lit = picked.is_some() || hovered.is_some();
        html! {
            <svg
                class={lit.then_some("lit")}
                role="grid"
                aria-label="GPUs of the cluster"
                aria-rowcount={rows.to_string()}
                aria-colcount={columns.to_string()}
                width={width.to_string()}
                height={height.to_string()}
                viewBox={format!("0 0 {width} {height}")}
            >
                <Cells picture={picture.clone()} />
                if let Some(gpu) = *hovered {
                    <Traced shown={shown.clone()} picture={picture.clone()} colour={*colour} {gpu} />
                } else if let Some(rank) = *picked {
                    <Company shown={shown.clone()} picture={picture.clone()} {rank} />
                }
                <Captions picture={picture.clone()} />
                <Cursor shown={shown.clone()} picture={picture.clone()} picked={*picked} />
            </svg>
        }
    });
    // Each part keeps its place while others come and go: yew tells children apart by their places.
    html! {
        <>
            <p class="group-caption" aria-live="polite">{ caption }</p>
            <div ref={frame} class="map-frame" {onclick} {onmousemove} {onmouseleave}>
                { inside.unwrap_or_default() }
                if world > MOST_DRAWN {
                    <p class="soft">
                        { format!("{world} GPUs are too many to draw; find one by its label instead.") }
                    </p>
                }
            </div>
            { drawn.as_ref().as_ref().map(|picture| legend(picture)).unwrap_or_default() }
        </>
    }
}

/// What is drawn of `shown`, `width` CSS pixels wide; nothing before that is known, or when there are too many GPUs.
fn draw(shown: &Shown, colour: Colour, width: u32) -> Option<Picture> {
    if width == 0 || shown.plan.layout().world_size > MOST_DRAWN {
        return None;
    }
    let amounts = Amounts {
        memory: shown.stages.iter().map(|stage| stage.reserved).collect(),
        traffic: shown.report.traffic.stages().iter().map(|stage| stage.wire).collect(),
    };
    Some(picture(&shown.plan, colour, &amounts, width))
}

fn legend(picture: &Picture) -> Html {
    let hue = if picture.ramp { "r" } else { "c" };
    html! {
        <ul class="legend">
            { for picture.legend.iter().map(|swatch| html! {
                <li><Swatch class={classes!("cell", format!("{hue}{}", swatch.class))} />{ &swatch.text }</li>
            }) }
        </ul>
    }
}
