//! The first thing to see: does it fit, how fast, where does it go.

use shardscope::catalog::accelerator_names;
use shardscope::quantity::{Count, Quantity, gib, grouped, percent, rounded, seconds, tflops};
use shardscope::session::{Fit, Shown};

use super::knobs::knob_row;
use super::stages::stage_bars;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::files::REPORTS;
use crate::app::parts::{Sign, Tag, choose, headed, options, tag};

pub(crate) fn verdict(desk: &Desk, shown: &Shown) -> Tag {
    let accelerator = &shown.plan.cluster().accelerator;
    let names = choose().on(desk, "change", Act::Set("accelerator"));
    let picker = tag("label.accelerator").text("Accelerator").child(options(
        names,
        &mut accelerator_names(),
        &accelerator.name,
    ));
    let mut downloads = tag("div.downloads");
    for (report, title) in
        REPORTS.iter().zip(["Download the report as a JSON document", "Download the report as text"])
    {
        downloads = downloads.child(report.button(desk).set("title", title));
    }
    let head = tag("header").with("h2.hidden#verdict-title", "Verdict").child(picker).child(downloads);
    let mut panel = headed("section.panel verdict", "verdict-title").child(head);
    if let Some(worst) = shown.worst() {
        let words = format!(
            "on {}: the fullest GPU, of stage {}, needs {} of {}",
            accelerator.name,
            worst.stage,
            gib(worst.reserved),
            gib(accelerator.memory)
        );
        let (shape, sign) = match worst.fit {
            Fit::Fits => ("p.big good", Sign::Good),
            Fit::Tight => ("p.big tight", Sign::Tight),
            Fit::DoesNotFit => ("p.big bad", Sign::Bad),
        };
        let big = tag(shape).set("role", "status").child(sign.icon());
        panel = panel.child(big.with("strong", worst.fit.words()).saying("span", words));
    }
    panel
        .child(stats(shown))
        .child(stage_bars(&shown.stages, accelerator.memory))
        .child(knob_row(desk, &shown.plan))
}

/// The figures everyone asks for first.
fn stats(shown: &Shown) -> Tag {
    let (layout, recipe, time) = (shown.plan.layout(), shown.plan.recipe(), &shown.report.time);
    let parameters = &shown.report.parameters;
    let tokens =
        Count::new(recipe.global_batch_size).number() * Count::new(shown.plan.model().seq_length).number();
    let mut cut = format!("TP {} × PP {} × DP {}", layout.tensor, layout.pipeline, layout.data);
    for (name, degree) in [("CP", layout.context), ("EP", layout.expert)] {
        if degree > 1 {
            cut.push_str(&format!(" × {name} {degree}"));
        }
    }
    let mut exact = grouped(parameters.total.get());
    if parameters.active_per_token != parameters.total {
        exact.push_str(&format!(", {} active per token", rounded(parameters.active_per_token.number())));
    }
    let speed = format!("{} per GPU, MFU {}", tflops(time.model_rate), percent(time.mfu));
    let batches = format!(
        "{} micro-batches of {}",
        grouped(recipe.num_micro_batches),
        grouped(recipe.micro_batch_size)
    );
    let bounds = format!("{} to {}", seconds(time.lower_bound), seconds(time.upper_bound));
    tag("dl.stats")
        .child(stat("Step time", seconds(time.step), bounds))
        .child(stat("Tokens per second", rounded(time.tokens_per_second), speed))
        .child(stat("Parameters", rounded(parameters.total.number()), exact))
        .child(stat("GPUs", grouped(layout.world_size), cut))
        .child(stat("Tokens per step", rounded(tokens), batches))
}

/// A figure with its name above and more about it below.
#[inline(never)]
pub(crate) fn stat(name: &'static str, figure: String, also: String) -> Tag {
    tag("div").with("dt", name).child(tag("dd").say(figure).saying("span.also", also))
}
