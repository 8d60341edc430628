//! The first thing to see: does it fit, how fast, where does it go.

use shardscope::catalog::accelerator_names;
use shardscope::quantity::{Count, Quantity, gib, grouped, percent, rounded, seconds, tflops};
use shardscope::session::{Fit, Shown};

use super::goes::goes;
use super::knobs::knob_row;
use super::stages::stage_bars;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::files::REPORTS;
use crate::app::parts::{Sign, Tag, choose, headed, options, tag};
use crate::app::words::{digits, fill, numbered, verdict as words};

pub(crate) fn verdict(desk: &Desk, shown: &Shown) -> Tag {
    let accelerator = &shown.plan.cluster().accelerator;
    let names = choose().on(desk, "change", Act::Set("accelerator"));
    let picker = tag("label.accelerator").text(words::ACCELERATOR).child(options(
        names,
        &mut accelerator_names(),
        &accelerator.name,
    ));
    let mut downloads = tag("div.downloads");
    for (report, [name, title]) in REPORTS.iter().zip(words::REPORTS) {
        downloads = downloads.child(report.button(desk, name).set("title", title));
    }
    let head = tag("header").with("h2.hidden#verdict-title", words::TITLE).child(picker).child(downloads);
    let mut panel = headed("section.panel verdict", "verdict-title").child(head);
    if let Some(worst) = shown.worst() {
        let name = accelerator.name.to_string();
        let needs = [name, digits(worst.stage), gib(worst.reserved), gib(accelerator.memory)];
        let (shape, sign) = match worst.fit {
            Fit::Fits => ("p.big good", Sign::Good),
            Fit::Tight => ("p.big tight", Sign::Tight),
            Fit::DoesNotFit => ("p.big bad", Sign::Bad),
        };
        let big = tag(shape).set("role", "status").child(sign.icon());
        panel = panel.child(big.with("strong", worst.fit.words()).saying("span", fill(words::NEEDS, needs)));
    }
    panel
        .each(&shown.plan.recipe().marks.sentences(), |mark| tag("p.also").say(mark.clone()))
        .child(stats(desk, shown))
        .child(stage_bars(desk, &shown.stages, accelerator.memory))
        .child(goes(desk, &shown.report.time))
        .child(knob_row(desk, &shown.plan))
}

/// The figures everyone asks for first.
fn stats(desk: &Desk, shown: &Shown) -> Tag {
    let (layout, recipe, time) = (shown.plan.layout(), shown.plan.recipe(), &shown.report.time);
    let parameters = &shown.report.parameters;
    let tokens =
        Count::new(recipe.global_batch_size).number() * Count::new(shown.plan.model().seq_length).number();
    let mut cut = numbered(words::CUT, &[layout.tensor, layout.pipeline, layout.data]);
    for (cut_too, degree) in words::CUT_TOO.into_iter().zip([layout.context, layout.expert]) {
        if degree > 1 {
            cut.push_str(&numbered(cut_too, &[degree]));
        }
    }
    let mut exact = grouped(parameters.total.get());
    if parameters.active_per_token != parameters.total {
        exact = fill(words::ACTIVE, [exact, rounded(parameters.active_per_token.number())]);
    }
    let speed = fill(words::SPEED, [tflops(time.model_rate), percent(time.mfu)]);
    let batches = fill(words::BATCHES, [grouped(recipe.num_micro_batches), grouped(recipe.micro_batch_size)]);
    let bounds = fill(words::BOUNDS, [seconds(time.lower_bound), seconds(time.upper_bound)]);
    tag("dl.stats")
        .child(stat(desk, words::STEP, seconds(time.step), &bounds))
        .child(stat(desk, words::TOKENS, rounded(time.tokens_per_second), &speed))
        .child(stat(desk, words::PARAMETERS, rounded(parameters.total.number()), &exact))
        .child(stat(desk, words::GPUS, grouped(layout.world_size), &cut))
        .child(stat(desk, words::TOKENS_OF_STEP, rounded(tokens), &batches))
}

/// A figure with its name above and more about it below.
#[inline(never)]
pub(crate) fn stat(desk: &Desk, name: &str, figure: String, also: &str) -> Tag {
    let also = tag("span.also").told(desk, also);
    tag("div").child(tag("dt").told(desk, name)).child(tag("dd").say(figure).child(also))
}
