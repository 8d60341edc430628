//! What each stage does when, through a window that can be moved, and how a stage's memory rises and falls with it.

use shardscope::quantity::{decimal, gib, grouped, percent, seconds, size};
use shardscope::session::Shown;
use shardscope::session::schedule::{Alternative, CURVE, Film, LANE, Number, Picture, WIDTH, Window, Work};

use super::advice::try_it;
use super::memory::{stage_chosen, stage_list};
use crate::app::act::{Act, Glance};
use crate::app::desk::{Desk, Place};
use crate::app::dom;
use crate::app::parts::{Tag, button, details, group, headed, swatch, table, tag};
use crate::app::words::{digits, fill, numbered, schedule as words};

/// Most height of the lanes; more stages get narrower ones, without numbers. Unit: CSS pixel.
const HIGHEST: u32 = 480;
/// How much longer or shorter the window gets at once.
const ZOOM: f64 = 2.0;
/// The part of a drawing that is seen, by its width and height.
const VIEW: &str = "0 0 {0} {1}";
/// By what part of its length the window moves at once.
const STEP: f64 = 0.25;

pub(crate) fn schedule(desk: &Desk, shown: &Shown) -> Tag {
    let Some(film) = &desk.look.film else { return group() };
    let window = desk.look.window;
    let picture = film.picture(window);
    headed("section.panel#schedule", "schedule-title")
        .child(head(desk, shown, film))
        .child(legend(desk, film, &picture))
        .child(controls(desk, film, window))
        .child(lanes(desk, film, &picture, window))
        .child(memory(desk, shown, film, window))
        .child(others(desk))
}

fn head(desk: &Desk, shown: &Shown, film: &Film) -> Tag {
    let time = &shown.report.time;
    let (drawn, all) = film.micro_batches;
    let first = if drawn < all { fill(words::FIRST, [grouped(drawn.into())]) } else { String::new() };
    let name = time.schedule.name.to_owned();
    let about = fill(words::ABOUT, [name, grouped(all.into()), first, percent(time.bubble_fraction)]);
    tag("header").with("h2#schedule-title", words::TITLE).child(tag("p").told(desk, &about))
}

fn legend(desk: &Desk, film: &Film, picture: &Picture) -> Tag {
    let mut legend = tag("ul.legend");
    for work in Work::ALL {
        if picture.paths.iter().any(|(kind, path)| *kind == work && !path.is_empty()) {
            let sample =
                tag("rect").set("class", work.class()).counts(&["width", "height", "rx"], &[14, 14, 3]);
            legend = legend.child(tag("li").child(swatch().child(sample)).text(work.name()));
        }
    }
    let (first, last) = film.phases();
    legend.child(tag("li").told(desk, &moments(film, words::PHASES, (first, last))))
}

/// Two moments, shares of the whole step, in a sentence.
fn moments(film: &Film, sentence: &str, (from, to): (f64, f64)) -> String {
    fill(sentence, [seconds(film.total() * from), seconds(film.total() * to)])
}

fn controls(desk: &Desk, film: &Film, window: Window) -> Tag {
    let glances = [
        (words::EARLIER, "◀", Glance::Shift(-STEP)),
        (words::LATER, "▶", Glance::Shift(STEP)),
        (words::CLOSER, "+", Glance::Zoom(1.0 / ZOOM, 0.5)),
        (words::FURTHER, "−", Glance::Zoom(ZOOM, 0.5)),
    ];
    let part = moments(film, words::PART, (window.from, window.from + window.length));
    tag("div.glances")
        .each(&glances, |(label, sign, glance)| {
            button(desk, "button.button small", Act::Glance(*glance)).set("aria-label", label).text(sign)
        })
        .child(button(desk, "button.button small", Act::Glance(Glance::Whole)).text(words::WHOLE))
        .child(tag("span.soft small").set("role", "status").say(part))
}

fn lanes(desk: &Desk, film: &Film, picture: &Picture, window: Window) -> Tag {
    let height = film.lanes() * LANE;
    let shown = height.min(HIGHEST);
    let numbers = if shown == height { picture.numbers.as_slice() } else { &[] };
    let number = |number: &Number| {
        tag("text")
            .attr("x", decimal(number.at * 100.0, 2) + "%")
            .count("y", (number.lane * LANE + 14).into())
            .say(number.micro_batch.to_string())
    };
    let label = numbered(words::LANES, &[film.lanes().into()]);
    let (first, last) = film.phases();
    let phase = |moment: &f64| {
        let x = decimal(window.place(*moment) * f64::from(WIDTH), 2);
        tag("line.phase").attr("x1", x.clone()).attr("x2", x).count("y2", height.into())
    };
    let boxes = tag("svg.lane-boxes")
        .attr("viewBox", numbered(VIEW, &[WIDTH.into(), height.into()]))
        .count("height", shown.into())
        .set("preserveAspectRatio", "none")
        .each(&picture.paths, |(work, path)| tag("path").set("class", work.class()).attr("d", path.clone()))
        .each(&[first, last], phase);
    tag("div.lanes")
        .set("role", "img")
        .set("tabindex", "0")
        .attr("aria-label", label)
        .on(desk, "keydown", Act::Lanes)
        .on(desk, "pointermove", Act::Lanes)
        .on(desk, "wheel", Act::Lanes)
        .child(boxes)
        .child(tag("svg.lane-numbers").count("height", shown.into()).each(numbers, number))
}

/// What an event on the lanes asks for: keys, dragging, the wheel with Ctrl or Cmd.
pub(crate) fn glance(event: &web_sys::Event) -> Option<Glance> {
    let number = |name: &str| dom::number(event, name);
    let place = dom::query(".lanes")?.get_bounding_client_rect();
    let width = place.width().max(1.0);
    match event.type_().as_str() {
        "keydown" => key(&dom::property(event, "key")?),
        "wheel" if dom::has_command(event) => {
            let at = (number("clientX")? - place.left()) / width;
            Some(Glance::Zoom(if number("deltaY")? > 0.0 { ZOOM.sqrt() } else { 1.0 / ZOOM.sqrt() }, at))
        }
        "pointermove" if number("buttons") == Some(1.0) => Some(Glance::Shift(-number("movementX")? / width)),
        _ => None,
    }
}

fn key(key: &str) -> Option<Glance> {
    Some(match key {
        "ArrowLeft" => Glance::Shift(-STEP),
        "ArrowRight" => Glance::Shift(STEP),
        "+" | "=" => Glance::Zoom(1.0 / ZOOM, 0.5),
        "-" => Glance::Zoom(ZOOM, 0.5),
        "0" | "Home" => Glance::Whole,
        _ => return None,
    })
}

fn memory(desk: &Desk, shown: &Shown, film: &Film, window: Window) -> Tag {
    let stage = stage_chosen(desk, shown);
    let Some(curve) = usize::try_from(stage).ok().and_then(|stage| film.curve(shown, stage, window)) else {
        return group();
    };
    let height = f64::from(CURVE);
    let line = |share: f64| decimal(height * (1.0 - share), 2);
    let held = tag("rect.curve-held")
        .attr("y", line(curve.held))
        .count("width", WIDTH.into())
        .attr("height", decimal(height * curve.held, 2));
    let peak = tag("line.curve-peak")
        .count("x2", WIDTH.into())
        .attr("y1", line(curve.peak))
        .attr("y2", line(curve.peak));
    let drawing = tag("svg")
        .attr("viewBox", numbered(VIEW, &[WIDTH.into(), CURVE.into()]))
        .count("height", CURVE.into())
        .set("preserveAspectRatio", "none")
        .set("aria-hidden", "true")
        .child(tag("path.curve-area").attr("d", curve.area))
        .child(held)
        .child(peak);
    let about = tag("figcaption")
        .text(words::CURVE)
        .child(stage_list(desk, shown))
        .told(desk, &fill(words::ABOUT_CURVE, [size(curve.most)]));
    tag("figure.curve").child(about).child(drawing)
}

/// Every schedule's memory against its bubble, worked out when opened.
fn others(desk: &Desk) -> Tag {
    let mut inside = group();
    if let Some(tried) = &desk.look.alternatives {
        let rows = group().each(tried, |one| alternative(desk, one));
        inside = table(words::OTHERS_TABLE, "table.figures", &words::OTHERS_HEADS, rows);
    }
    details("details.others", desk.look.alternatives.is_some(), tag("summary").text(words::OTHERS))
        .on(desk, "toggle", Act::Toggle(Place::Schedule))
        .child(inside)
}

fn alternative(desk: &Desk, one: &Alternative) -> Tag {
    let own = one.changes.is_empty();
    let name = match (own, one.chunks) {
        (true, _) => fill(words::OWN, [one.name.to_owned()]),
        (_, 2..) => fill(words::CHUNKS, [one.name.to_owned(), digits(one.chunks)]),
        _ => one.name.to_owned(),
    };
    let fits = if one.fits { words::FITS } else { words::DOES_NOT_FIT };
    let mut row = tag("tr").words(&name).number(grouped(one.in_flight));
    row = row.two_figures(gib(one.peak).replace(" GiB", ""), fits.to_owned());
    row = row.number(percent(one.bubble)).number(seconds(one.step));
    row.cell(if own { group() } else { try_it(desk, &one.changes) })
}
