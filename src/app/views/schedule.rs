//! What each stage does when, and how the fullest stage's memory rises and falls with it.

use shardscope::quantity::{decimal, grouped, percent, seconds, size};
use shardscope::session::Shown;
use shardscope::session::schedule::{CURVE, LANE, Number, Picture, WIDTH, Work, schedule_picture};

use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, headed, swatch, tag};

/// Most height of the lanes; more stages get narrower ones, without numbers. Unit: CSS pixel.
const HIGHEST: u32 = 480;

pub(crate) fn schedule(_: &Desk, shown: &Shown) -> Tag {
    let Some(picture) = schedule_picture(shown) else { return group() };
    let time = &shown.report.time;
    let (drawn, all) = picture.drawn;
    let batches = if drawn < all {
        format!(
            "drawn with {} of its {} micro-batches: the middle repeats",
            grouped(drawn.into()),
            grouped(all.into())
        )
    } else {
        format!("{} micro-batches", grouped(all.into()))
    };
    let about = format!(
        "Schedule {}, {batches}; {} of the time the slowest stage waits.",
        time.schedule.name,
        percent(time.bubble_fraction)
    );
    let head = tag("header").with("h2#schedule-title", "Pipeline schedule").saying("p", about);
    let mut legend = tag("ul.legend");
    for work in Work::ALL {
        if picture.paths.iter().any(|(kind, _)| *kind == work) {
            let sample =
                tag("rect").set("class", work.class()).counts(&["width", "height", "rx"], &[14, 14, 3]);
            legend = legend.child(tag("li").child(swatch().child(sample)).text(work.name()));
        }
    }
    let legend = legend.saying("li", format!("from left to right: {}", seconds(picture.total)));
    headed("section.panel#schedule", "schedule-title")
        .child(head)
        .child(legend)
        .child(lanes(&picture))
        .child(memory(&picture))
}

fn lanes(picture: &Picture) -> Tag {
    let height = picture.lanes * LANE;
    let shown = height.min(HIGHEST);
    let numbers = if shown == height { picture.numbers.as_slice() } else { &[] };
    let number = |number: &Number| {
        tag("text")
            .attr("x", decimal(number.at * 100.0, 2) + "%")
            .count("y", (number.lane * LANE + 14).into())
            .say(number.micro_batch.to_string())
    };
    let label = format!(
        "Each of {} stages from top to bottom, its forward and backward passes from left to right",
        picture.lanes
    );
    let boxes = tag("svg.lane-boxes")
        .attr("viewBox", format!("0 0 {WIDTH} {height}"))
        .count("height", shown.into())
        .set("preserveAspectRatio", "none")
        .each(&picture.paths, |(work, path)| tag("path").set("class", work.class()).attr("d", path.clone()));
    tag("div.lanes")
        .set("role", "img")
        .attr("aria-label", label)
        .child(boxes)
        .child(tag("svg.lane-numbers").count("height", shown.into()).each(numbers, number))
}

fn memory(picture: &Picture) -> Tag {
    let curve = &picture.curve;
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
        .attr("viewBox", format!("0 0 {WIDTH} {CURVE}"))
        .count("height", CURVE.into())
        .set("preserveAspectRatio", "none")
        .set("aria-hidden", "true")
        .child(tag("path.curve-area").attr("d", curve.area.clone()))
        .child(held)
        .child(peak);
    tag("figure.curve")
        .saying("figcaption", format!("Memory of stage {} over the same time: what is held all the time, with the kept micro-batches above it; the line is the peak, the top {}.", curve.stage, size(curve.most)))
        .child(drawing)
}
