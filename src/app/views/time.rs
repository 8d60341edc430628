//! How long a step takes, and where it goes.

use shardscope::estimate::time::Time;
use shardscope::quantity::{
    Count, FlopsPerSecond, Quantity, decimal, percent, rounded, scientific, seconds, tflops,
};
use shardscope::session::{Branch, Shown};

use super::own_figures::{own_figures, own_log};
use super::verdict::stat;
use crate::app::desk::Desk;
use crate::app::parts::{Tag, group, section, table, tag, tree};

pub(crate) fn time(desk: &Desk, shown: &Shown) -> Tag {
    let report = &shown.report;
    let time = &report.time;
    let about = "An estimate from the arithmetic, the messages and the schedule; the bounds are what it would be if everything overlapped that can, and if nothing did.";
    let stats = tag("dl.stats")
        .child(stat(
            "Tokens per second",
            rounded(time.tokens_per_second),
            format!("{} per GPU", rounded(time.tokens_per_second_per_gpu)),
        ))
        .child(stat(
            "Model FLOPs",
            tflops(time.model_rate),
            format!("per GPU, {} of the peak (MFU)", percent(time.mfu)),
        ))
        .child(stat(
            "Hardware FLOPs",
            tflops(time.hardware_rate),
            format!("recomputation counted, {} (HFU)", percent(time.hfu)),
        ))
        .child(stat(
            "Pipeline bubble",
            percent(time.bubble_fraction),
            format!("schedule {}", time.schedule.name),
        ));
    section("section.panel#time", "time-title", "Time of a step", about)
        .child(range(time))
        .child(stats)
        .maybe(time.training.as_ref().map(|training| tag("p.training").say(training.sentence())))
        .child(own_figures(desk))
        .child(own_log(desk, shown))
        .with("h3.sub", "Where it goes")
        .child(tree(&Branch::of_time(&time.breakdown), 2))
        .with("h3.sub", "FLOPs of a step, by who counts")
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
    let headings = ["Convention", ">FLOP", ">per GPU", ">of the peak"];
    let rows = group().each(&time.flops.conventions(), |convention| {
        let row = tag("tr").two(convention.name.to_owned(), convention.formula.meaning.to_owned());
        match convention.flops {
            Some(flops) => {
                let rate = FlopsPerSecond::new(flops.get() / time.step.get() / gpus);
                row.number(scientific(flops.get(), Some(3)))
                    .number(tflops(rate))
                    .number(percent(rate.get() / time.peak.get()))
            }
            None => row.number("does not apply".to_owned()).number(String::new()).number(String::new()),
        }
    });
    table("FLOPs of a step by convention".to_owned(), "table.figures", &headings, rows)
}

/// The estimate between its bounds.
fn range(time: &Time) -> Tag {
    let whole = time.upper_bound.number().max(f64::MIN_POSITIVE) * 1.05;
    let at = |value: f64| decimal(value / whole * 100.0, 2) + "%";
    let (low, high) = (time.lower_bound.number(), time.upper_bound.number());
    let words = format!(" between {} and {}", seconds(time.lower_bound), seconds(time.upper_bound));
    let band = tag("rect.band").attr("x", at(low)).attr("width", at(high - low)).set("height", "100%");
    let step = at(time.step.number());
    let estimate =
        tag("line.estimate").attr("x1", step.clone()).attr("x2", step).set("y1", "0").set("y2", "100%");
    tag("figure.range")
        .child(tag("figcaption").saying("strong", seconds(time.step)).say(words))
        .child(tag("svg.bar").set("aria-hidden", "true").child(band).child(estimate))
}
