//! The panel as a whole.

use shardscope::plan::Plan;
use shardscope::quantity::gib;
use shardscope::session::map::{
    About, Amounts, Colour, Detail, MOST_DRAWN, Picture, Wire, about, picture as drawn, shared, wires,
};
use shardscope::session::{Held, Shown};
use shardscope::topology::Link;
use wasm_bindgen::JsCast;
use web_sys::MouseEvent;

use super::about::about_gpu;
use super::cells::{captions, cells, label};
use super::controls::controls;
use super::cursor::cursor;
use super::table::as_table;
use crate::app::act::Act;
use crate::app::desk::{Desk, Place};
use crate::app::dom;
use crate::app::panel::{Drawn, panel};
use crate::app::parts::{Tag, group, section, tag};
use crate::app::words::{digits, fill, map as words, numbered};

/// What is drawn of `shown`, `width` CSS pixels wide; nothing before that is known, or when there are too many GPUs.
pub(crate) fn picture(shown: &Shown, colour: Colour, width: u32) -> Option<Held<Picture>> {
    if width == 0 || shown.plan.layout().world_size > MOST_DRAWN {
        return None;
    }
    let amounts = Amounts {
        memory: shown.stages.iter().map(|stage| stage.reserved).collect(),
        traffic: shown.report.traffic.stages().iter().map(|stage| stage.wire).collect(),
    };
    Some(Held::new(drawn(&shown.plan, colour, &amounts, width)))
}

pub(crate) fn map(desk: &Desk, shown: &Shown) -> Tag {
    let plan = &shown.plan;
    let picked = desk.state.picked;
    let chosen = picked.and_then(|rank| about(plan, rank));
    let mut frame = tag("div.map-frame").press(desk, Act::Point);
    let mut below = group();
    if let Some(picture) = &desk.look.map.picture {
        frame = frame.child(draw(desk, shown, chosen.as_ref(), picture));
        below = legend(picture);
    } else if plan.layout().world_size > MOST_DRAWN {
        let gpus = plan.layout().world_size;
        frame = frame.saying("p.soft", numbered(words::TOO_MANY, &[gpus]));
    }
    let chosen = chosen.map(|chosen| {
        let memory = shown.memory_of(chosen.rank).map(gib).unwrap_or_default();
        about_gpu(desk, &chosen, memory)
    });
    section(desk, "section.panel map#map", "map-title", &words::PANEL)
        .child(controls(desk, shown))
        .child(frame)
        .child(below)
        .child(as_table(desk, shown))
        .maybe(chosen)
}

/// The GPU under the pointer, by arithmetic: the cells themselves hear nothing.
pub(crate) fn gpu_under(event: &web_sys::Event, picture: &Picture) -> Option<u64> {
    let event = event.unchecked_ref::<MouseEvent>();
    let place = dom::query(".map-frame svg")?.get_bounding_client_rect();
    let (x, y) = (f64::from(event.client_x()) - place.left(), f64::from(event.client_y()) - place.top());
    picture.geometry.at(x, y)
}

fn draw(desk: &Desk, shown: &Shown, chosen: Option<&About>, picture: &Picture) -> Tag {
    let (width, height) = picture.geometry.size();
    let (rows, columns) = picture.geometry.rows_and_columns();
    let (behind, over) = match chosen {
        Some(chosen) => (company(&shown.plan, chosen, picture), tags(chosen, picture)),
        None => (group(), group()),
    };
    tag(if chosen.is_some() { "svg.lit" } else { "svg" })
        .set("role", "grid")
        .set("aria-label", words::GRID)
        .count("aria-rowcount", rows)
        .count("aria-colcount", columns)
        .counts(&["width", "height"], &[width, height])
        .attr("viewBox", numbered("0 0 {0} {1}", &[width.into(), height.into()]))
        .component(panel(desk, Place::Cells, Drawn::Always(cells)))
        .child(behind)
        .component(panel(desk, Place::Captions, Drawn::Always(captions)))
        .child(over)
        .child(cursor(desk, shown, &picture.geometry))
}

/// The picked GPU, its partners and the links to them.
fn company(plan: &Plan, chosen: &About, picture: &Picture) -> Tag {
    let geometry = &picture.geometry;
    let mut drawn = tag(if geometry.detail() >= Detail::Number { "g.rounded" } else { "g" })
        .set("aria-hidden", "true")
        .each(&wires(plan, chosen, geometry), wire);
    for relation in chosen.relations.iter().rev() {
        let members = geometry.path(&mut relation.members.iter().map(|member| member.get()));
        let class = fill("partner {0}", [relation.kind.short().to_owned()]);
        drawn = drawn.child(tag("path").attr("class", class).attr("d", members));
    }
    drawn.child(tag("path.self").attr("d", geometry.path(&mut std::iter::once(chosen.rank.get()))))
}

/// Under each partner's label, what it shares with the picked GPU.
fn tags(chosen: &About, picture: &Picture) -> Tag {
    if picture.geometry.detail() != Detail::Words {
        return group();
    }
    tag("g.tags").set("aria-hidden", "true").each(&shared(chosen), |(rank, text)| {
        let (x, y) = picture.geometry.cell(rank.get()).middle();
        label("text.cell-value", (x, y + 13), text.clone())
    })
}

fn wire(wire: &Wire) -> Tag {
    let far = if wire.link == Link::Network { "network" } else { "fast" };
    let (from, to) = (wire.from, wire.to);
    tag("line")
        .attr("class", fill("wire {0} {1}", [far.to_owned(), wire.kind.short().to_owned()]))
        .counts(&["x1", "y1", "x2", "y2"], &[from.0, from.1, to.0, to.1])
}

fn legend(picture: &Picture) -> Tag {
    let hue = if picture.ramp { "r" } else { "c" };
    tag("ul.legend").each(&picture.legend, |swatch| {
        let sample = tag("rect")
            .attr("class", fill("cell {0}{1}", [hue.to_owned(), digits(swatch.class.into())]))
            .counts(&["width", "height", "rx"], &[14, 14, 3]);
        let sample =
            tag("svg").counts(&["width", "height"], &[14, 14]).set("aria-hidden", "true").child(sample);
        tag("li").child(sample).say(swatch.text.clone())
    })
}
