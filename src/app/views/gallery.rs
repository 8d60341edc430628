//! The sheet from which a plan starts: a model and a cluster, or a worked example.

use shardscope::catalog::{accelerator_names, model_names};
use shardscope::session::examples::{Example, ExampleChapter, gallery as examples};
use shardscope::session::{Choice, Hand, start};

use super::sheet::dialog;
use crate::app::act::Act;
use crate::app::desk::Desk;
use crate::app::dom;
use crate::app::parts::{Tag, button, choose, details, group, headed, options, tag};
use crate::app::words::{fill, gallery as words, numbered};

pub(crate) fn gallery(desk: &Desk) -> Tag {
    let mut inside = choice(desk);
    let mut open = 2;
    for one in examples() {
        inside = inside.child(chapter(desk, &one, open > 0));
        open = (open - 1).max(0);
    }
    dialog(desk, "gallery", ("gallery-title", words::TITLE), inside)
}

/// What the form begins with.
const MODEL: &str = "Llama-3-70B";
const ACCELERATOR: &str = "H100-SXM";

/// What the form says to start from; nothing for an unknown model.
pub(crate) fn started() -> Option<Hand> {
    let value = |id: &str| dom::element(id).map(|field| dom::value_of(&field)).unwrap_or_default();
    let number = |id: &str| value(id).trim().parse::<u64>().unwrap_or(1).max(1);
    start(&Choice {
        model: value("start-model"),
        accelerator: value("start-accelerator"),
        nodes: number("start-nodes"),
        sequence: number("start-sequence"),
    })
}

fn choice(desk: &Desk) -> Tag {
    let number = |shape: &'static str, (most, value): (&'static str, &'static str)| {
        tag(shape)
            .set("type", "number")
            .set("min", "1")
            .set("max", most)
            .set("value", value)
            .flag("required", true)
    };
    let field = |label: &'static str, field: Tag| tag("label").text(label).child(field);
    let models = options(choose().set("id", "start-model"), &mut model_names(), MODEL);
    let accelerators =
        options(choose().set("id", "start-accelerator"), &mut accelerator_names(), ACCELERATOR);
    let fields = tag("div.start-fields")
        .child(field(words::MODEL, models))
        .child(field(words::ACCELERATOR, accelerators))
        .child(field(words::NODES, number("input.field#start-nodes", ("100000", "8"))))
        .child(field(words::SEQUENCE, number("input.field#start-sequence", ("16777216", "8192"))))
        .child(tag("button.button main").set("type", "submit").text(words::START));
    let form = headed("form.start", "start-title")
        .on(desk, "submit", Act::Start)
        .with("h3#start-title", words::CHOICE)
        .with("p.soft small", words::ABOUT_CHOICE)
        .child(fields);
    group().child(form)
}

fn chapter(desk: &Desk, chapter: &ExampleChapter, open: bool) -> Tag {
    let summary = tag("summary")
        .with("h3", chapter.title)
        .saying("span.soft small", numbered(words::RUNS, &[chapter.examples.len() as u64]));
    details("details.chapter", open, summary)
        .child(tag("ul.examples").each(&chapter.examples, |one| example(desk, one)))
        .saying("p.soft source", fill(words::SOURCES, [chapter.source.to_owned()]))
}

fn example(desk: &Desk, example: &Example) -> Tag {
    let mut button = button(desk, "button.example", Act::Begin(Box::new(example.hand.clone())))
        .saying("strong", example.name.clone())
        .saying("span.soft small", example.about.clone());
    if !example.published.is_empty() {
        button =
            button.saying("span.small published", fill(words::PUBLISHED, [example.published.to_owned()]));
    }
    tag("li").child(button)
}
