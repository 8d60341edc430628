//! The map of the cluster: every GPU, its colour, and who it works with.

mod about;
mod cells;
mod controls;
mod cursor;
mod links;
mod play;
mod table;
mod view;
mod whole;

use std::ops::Range;

use shardscope::session::map::{
    Colour, Detail, Geometry, MOST_DRAWN, Picture, about, group_caption, per_rack, picture_of,
};
use shardscope::session::{Event, PtrEq, Shown};
use shardscope::topology::Rank;
use shardscope::units::{gib, grouped};
use web_sys::Element;
use yew::prelude::*;

use super::panel::{Panel, PlanProps, Story};
use crate::app::browser;
use crate::app::context::{AppContext, use_dispatch};
use crate::app::hooks::use_width;
use crate::app::panel_id::PanelId;
use crate::app::widgets::{Term, section, swatch};
use about::AboutGpu;
use cells::{Captions, Cells, Rows, amounts};
use controls::Controls;
use cursor::Cursor;
use links::{company, traced};
use play::{moment, scenes, use_play};
use table::MapTable;
use view::{View, Zoom, centre, fingers_apart, pinched};
use whole::{Whole, mark};

/// About how much of the map is drawn at once. Unit: CSS pixel.
const TILE: u32 = 300;

pub(super) const PANEL: Panel = Panel {
    id: PanelId::Map,
    tab: Some("Map"),
    view: |shown| html! { <Map {shown} /> },
    story: Some(Story {
        title: "Who works with whom",
        text: |shown| {
            let gpus = grouped(shown.plan.layout().world_size);
            format!(
                "All {gpus} GPUs, each in its node. Hover one to see its group; click it to see all of them, and which partners it reaches over NVLink and which over the network."
            )
        },
    }),
};

#[component(Map)]
fn map(PlanProps { shown }: &PlanProps) -> Html {
    let app = use_context::<AppContext>();
    let (colour, picked) = app.map_or((Colour::Stage, None), |app| (app.session.colour, app.session.picked));
    let about = picked.and_then(|rank| about(&shown.plan, rank));
    section(
        "map",
        "map",
        "Cluster map",
        html! {
            <>
                { "Every GPU of the cluster, " }<Term name="n0_g0">{ "by node" }</Term>
                { ". Hover one to highlight its group; click it to see its " }<Term name="rank" />
                { ", the process groups it belongs to and the links to its partners." }
            </>
        },
        html! { <><Controls shown={shown.clone()} {colour} />
        <Drawing shown={shown.clone()} {colour} {picked} />
        <div>
            if let Some(about) = about {
                <AboutGpu memory={shown.memory_of(about.rank).map(gib).unwrap_or_default()} {about} />
            }
        </div>
        <MapTable shown={shown.clone()} /></> },
    )
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
    let view = use_state_eq(View::default);
    let plan = &shown.plan;
    let (world, per_node) = (plan.layout().world_size, plan.cluster().gpus_per_node);
    // 0 before the frame has been measured: nothing is drawn or laid out before that.
    let racks = per_rack(plan);
    let closely = move |closer| Geometry::fit_closer(world, per_node, width, closer).by_racks(racks);
    let geometry = closely(view.closer);
    // In whole tiles, so that those that stay in view are unchanged.
    let tiles: Vec<Range<u64>> = match world {
        0..=MOST_DRAWN if width > 0 => geometry.tiles(&view.nodes(&geometry), TILE).collect(),
        _ => Vec::new(),
    };
    // Tiles are contiguous, so the first and the last bound what is drawn.
    let nodes = tiles.first().map_or(0, |first| first.start)..tiles.last().map_or(0, |last| last.end);
    // Compared by what the picture depends on, so that hovering redraws nothing.
    let drawn = use_memo(
        (shown.clone(), *colour, width, geometry, nodes),
        |(shown, colour, width, geometry, nodes)| {
            (*width > 0 && world <= MOST_DRAWN)
                .then(|| PtrEq::new(picture_of(&shown.plan, *colour, &amounts(shown), *geometry, nodes)))
        },
    );
    let kinds = scenes(shown);
    let (scene, play) = use_play(kinds.len());
    let scene = scene.and_then(|scene| kinds.get(scene).copied());
    // What was in the middle stays there when zooming; a GPU that is found is centred, with room for its number.
    let middle = use_mut_ref(|| None::<u64>);
    {
        let (frame, middle) = (frame.clone(), middle.clone());
        use_effect_with(geometry, move |geometry| {
            let Some(frame) = frame.cast::<Element>() else { return };
            if width > 0
                // Consumed, so that a later redraw does not centre again after the user has scrolled away.
                && let Some(gpu) = middle.borrow_mut().take()
            {
                centre(&frame, geometry, gpu);
            }
            mark(&frame);
        });
    }
    {
        let (middle, view, frame) = (middle.clone(), view.clone(), frame.clone());
        use_effect_with(*picked, move |picked| {
            // The frame shrinks when a GPU is picked.
            let frame = frame.cast::<Element>();
            frame.iter().for_each(mark);
            // A GPU picked from afar would be a dot; from the level of numbers on the map stays as it is.
            if let (Some(rank), true) = (picked, geometry.detail() < Detail::Number) {
                *middle.borrow_mut() = Some(rank.get());
                let levels = Geometry::levels(world);
                // The second closest level has numbers.
                let by = isize::try_from(levels.saturating_sub(1).saturating_sub(view.closer)).unwrap_or(0);
                let to = view.zoomed(by, world);
                let around = frame.map(|frame| to.around(&frame, &closely(to.closer), rank.get()));
                view.set(around.unwrap_or(to));
            }
        });
    }
    let zoom = {
        let (view, frame, middle, pointed) =
            // Under the pointer, else the picked one, otherwise the one in the middle of the frame.
            (view.clone(), frame.clone(), middle, (*hovered).or(picked.map(Rank::get)));
        Callback::from(move |by: isize| {
            let frame = frame.cast::<Element>();
            let seen = frame.as_ref().and_then(|frame| {
                let x = f64::from(frame.scroll_left() + frame.client_width() / 2);
                let y = f64::from(frame.scroll_top() + frame.client_height() / 2);
                geometry.at(x, y)
            });
            let gpu = pointed.or(seen);
            *middle.borrow_mut() = gpu;
            let to = view.zoomed(by, world);
            let around = frame.zip(gpu).map(|(frame, gpu)| to.around(&frame, &closely(to.closer), gpu));
            view.set(around.unwrap_or(to));
        })
    };
    let onscroll = {
        let (view, frame) = (view.clone(), frame.clone());
        move |_| {
            if let Some(frame) = frame.cast::<Element>() {
                mark(&frame);
                view.set(view.scrolled(&frame));
            }
        }
    };
    let onwheel = {
        let zoom = zoom.clone();
        move |event: WheelEvent| {
            // Pinching is reported as Ctrl + wheel; the wheel alone scrolls. `prevent_default` keeps the browser from
            // zooming the page.
            if browser::has_command(&event) {
                event.prevent_default();
                zoom.emit(if event.delta_y() < 0.0 { 1 } else { -1 });
            }
        }
    };
    let apart = use_mut_ref(|| None::<f64>);
    let ontouchstart = {
        let apart = apart.clone();
        move |event: TouchEvent| *apart.borrow_mut() = fingers_apart(&event)
    };
    let ontouchmove = {
        let zoom = zoom.clone();
        move |event: TouchEvent| {
            let mut last = apart.borrow_mut();
            // A pinch goes level by level: the distance is measured anew after each.
            if let Some(by) = pinched(&mut last, fingers_apart(&event)) {
                zoom.emit(by);
            }
        }
    };
    let onkeydown = {
        let zoom = zoom.clone();
        move |event: KeyboardEvent| {
            let by = match event.key().as_str() {
                "+" | "=" => 1,
                "-" => -1,
                _ => return,
            };
            event.prevent_default();
            zoom.emit(by);
        }
    };
    let under = {
        let (frame, drawn) = (frame.clone(), drawn.clone());
        move |event: &MouseEvent| {
            let svg = frame.cast::<Element>()?.query_selector("svg").ok().flatten()?;
            // The box of the picture moves with the frame's scrolling, so this already accounts for it.
            let place = svg.get_bounding_client_rect();
            let (x, y) =
                (f64::from(event.client_x()) - place.left(), f64::from(event.client_y()) - place.top());
            drawn.as_ref().as_ref()?.geometry.at(x, y)
        }
    };
    // The cells have no listeners: a point is located arithmetically. Dragging moves the map; its end is not a click.
    let dragged = use_mut_ref(|| false);
    let onmousedown = {
        let dragged = dragged.clone();
        move |_| *dragged.borrow_mut() = false
    };
    let onclick = {
        let (under, dragged) = (under.clone(), dragged.clone());
        move |event: MouseEvent| {
            if let (Some(gpu), false) = (under(&event), *dragged.borrow()) {
                dispatch.emit(Event::Pick(Some(Rank::new(gpu))).into());
            }
        }
    };
    let onmousemove = {
        let (hovered, frame) = (hovered.setter(), frame.clone());
        move |event: MouseEvent| match frame.cast::<Element>() {
            // Only the main button; with others the pointer reads as usual.
            Some(frame) if event.buttons() == 1 => {
                let (x, y) = (event.movement_x(), event.movement_y());
                // A pixel of jitter while pressing is still a click.
                *dragged.borrow_mut() |= x.abs() + y.abs() > 1;
                frame.scroll_by_with_x_and_y(f64::from(-x), f64::from(-y));
            }
            _ => hovered.set(under(&event)),
        }
    };
    let onmouseleave = {
        let hovered = hovered.setter();
        move |_| hovered.set(None)
    };
    // The GPU that the caption is about: the GPU under the pointer, else the picked one, else the first.
    let pointed = (*hovered).or(picked.map(Rank::get)).unwrap_or(0).min(world.saturating_sub(1));
    let of_scene = scene.map_or(*colour, Colour::Group);
    // During playback the caption is about the scene's groups.
    let caption = group_caption(plan, &shown.report.traffic, of_scene, Rank::new(pointed));
    let caption = caption.map(|caption| match scene {
        Some(kind) => format!("{}. {caption}", moment(kind)),
        None => caption,
    });
    let inside = drawn.as_ref().as_ref().map(|picture| {
        let (width, height) = picture.geometry.size();
        let (rows, columns) = picture.geometry.rows_and_columns();
        // Everything else is dimmed only while something is highlighted.
        let lit = picked.is_some() || hovered.is_some() || scene.is_some();
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
                <Rows picture={picture.clone()} />
                <g class="tiles">
                    { for tiles.iter().map(|nodes| html! {
                        // By the first node: a tile that stays in view keeps its place in the page.
                        <Cells key={nodes.start} shown={shown.clone()} colour={*colour} {geometry} nodes={nodes.clone()} />
                    }) }
                </g>
                if scene.is_some() {
                    { traced(shown, picture, of_scene, pointed) }
                } else if let Some(gpu) = *hovered {
                    { traced(shown, picture, *colour, gpu) }
                } else if let Some(rank) = *picked {
                    { company(shown, picture, rank) }
                }
                <g>
                    if geometry.detail() >= Detail::Number {
                        { for tiles.iter().map(|nodes| html! {
                            <Captions key={nodes.start} shown={shown.clone()} colour={*colour} {geometry} nodes={nodes.clone()} />
                        }) }
                    }
                </g>
                <Cursor shown={shown.clone()} picture={picture.clone()} picked={*picked} />
            </svg>
        }
    });
    // Each part keeps its position while others come and go, since yew identifies children by position.
    html! {
        <>
            <div class="map-bar">
                <Zoom view={*view} gpus={world} {zoom} />
                if !kinds.is_empty() {
                    <button type="button" class="button small" aria-pressed={scene.is_some().to_string()} onclick={play}>
                        { if scene.is_some() { "Stop" } else { "Play one step" } }
                    </button>
                }
                <p class="group-caption" aria-live="polite">{ caption }</p>
            </div>
            <div class="map-view">
                <div ref={frame.clone()} class={classes!("map-frame", picked.map(|_| "with-gpu"))} {onclick} {onmousedown} {onmousemove} {onmouseleave} {onscroll} {onwheel} {ontouchstart} {ontouchmove} {onkeydown}>
                    { inside.unwrap_or_default() }
                    if world > MOST_DRAWN {
                        <p class="soft">
                            { format!("{} GPUs are too many to draw; find one by its label instead.", grouped(world)) }
                        </p>
                    }
                </div>
                if drawn.is_some() {
                    <Whole shown={shown.clone()} colour={*colour} {geometry} {frame} />
                }
            </div>
            { drawn.as_ref().as_ref().map(|picture| legend(picture)).unwrap_or_default() }
        </>
    }
}

fn legend(picture: &Picture) -> Html {
    let hue = if picture.ramp { "r" } else { "c" };
    html! {
        <ul class="legend">
            { for picture.legend.iter().map(|one| html! {
                <li>{ swatch(classes!("cell", format!("{hue}{}", one.class))) }{ &one.text }</li>
            }) }
        </ul>
    }
}
