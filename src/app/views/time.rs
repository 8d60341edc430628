//! How long a step takes, and where it goes.

use shardscope::estimate::time::Time;
use shardscope::quantity::{Count, FlopsPerSecond, Quantity, decimal, percent, rounded, seconds, tflops};
use shardscope::session::{Branch, Shown};

use super::own_figures::{own_figures, own_log};
use super::verdict::stat;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, section, table, tag, tree};
use crate::app::words::{fill, time as words};

pub(crate) fn time(desk: &Desk, shown: &Shown) -> Tag {
    let report = &shown.report;
    let time = &report.time;
    let figure = |[name, also]: [&'static str; 2], figure: String, more: String| {
        stat(desk, name, figure, &fill(also, [more]))
    };
    let stats = tag("dl.stats")
        .child(figure(
            words::TOKENS,
            rounded(time.tokens_per_second),
            rounded(time.tokens_per_second_per_gpu),
        ))
        .child(figure(words::MODEL, tflops(time.model_rate), percent(time.mfu)))
        .child(figure(words::HARDWARE, tflops(time.hardware_rate), percent(time.hfu)))
        .child(figure(words::BUBBLE, percent(time.bubble_fraction), time.schedule.name.to_owned()));
    section(desk, "section.panel#time", "time-title", &words::PANEL)
        .child(range(time))
        .child(stats)
        .maybe(time.training.as_ref().map(|training| tag("p.training").say(training.sentence())))
        .child(own_figures(desk))
        .child(own_log(desk, shown))
        .with("h3.sub", words::TREE)
        .child(tree(&Branch::of_time(&time.breakdown), 2))
        .with("h3.sub", words::CONVENTIONS)
        .child(conventions(shown))
        .child(
            tag("ul.unknowns")
                .each(&report.unknowns, |unknown| tag("li").say(unknown.sentence().to_string())),
        )
}

/// Every convention with its rate: shares of the peak are only comparable within one.
fn conventions(shown: &Shown) -> Tag {
    let time = &shown.report.time;
    let gpus = Count::new(shown.plan.layout().world_size.max(1)).number();
    let rows = group().each(&time.flops.conventions(), |convention| {
        let row = tag("tr").two(convention.name, convention.formula.meaning);
        match convention.flops {
            Some(flops) => {
                let rate = FlopsPerSecond::new(flops.get() / time.step.get() / gpus);
                row.number(format!("{:.3e}", flops.get()))
                    .number(tflops(rate))
                    .number(percent(rate.get() / time.peak.get()))
            }
            None => row.number(words::DOES_NOT_APPLY.to_owned()).number(String::new()).number(String::new()),
        }
    });
    table(words::CONVENTION_TABLE, "table.figures", &words::CONVENTION_HEADS, rows)
}

/// The estimate between its bounds.
fn range(time: &Time) -> Tag {
    let whole = time.upper_bound.number().max(f64::MIN_POSITIVE) * 1.05;
    let at = |value: f64| decimal(value / whole * 100.0, 2) + "%";
    let (low, high) = (time.lower_bound.number(), time.upper_bound.number());
    let between = fill(words::BETWEEN, [seconds(time.lower_bound), seconds(time.upper_bound)]);
    let band = tag("rect.band").attr("x", at(low)).attr("width", at(high - low)).set("height", "100%");
    let step = at(time.step.number());
    let estimate =
        tag("line.estimate").attr("x1", step.clone()).attr("x2", step).set("y1", "0").set("y2", "100%");
    tag("figure.range")
        .child(tag("figcaption").saying("strong", seconds(time.step)).say(between))
        .child(tag("svg.bar").set("aria-hidden", "true").child(band).child(estimate))
}
