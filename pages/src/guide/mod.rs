//! The guide: what the terms mean, which formulas are used, what is taken as given, and the sources. All of it comes
//! from the engine; prose here contains the engine's own numbers.

mod bounds;
mod formulas;
mod frameworks;
mod glossary;
mod groups;
mod hardware;
mod host;
mod letters;
mod manual;
mod models;
mod plans;
mod reading;
mod schedules;
mod searches;
mod settings;
mod time;
mod worked;
mod write;

use maud::Markup;

use crate::page::Page;
use write::Chapter;

pub use formulas::{Entry, entries};

/// The plans from which formulas are shown with numbers, by name: together they use every formula.
pub fn plans() -> impl Iterator<Item = (&'static str, &'static shardscope::plan::Plan)> {
    plans::plans().iter().map(|named| (named.name.as_str(), &named.plan))
}

/// The pages of the guide.
#[must_use]
pub fn pages() -> [Page; 4] {
    let page = |file, name, about, body| Page { file, name, about, scripts: &[], body };
    [
        page(
            "guide.html",
            "Guide",
            "How to read the page, what its terms mean, and how its numbers are computed.",
            guide as fn() -> Markup,
        ),
        page(
            "tutorials.html",
            "Tutorials",
            "Five tasks from beginning to end, and how to use Shardscope in a terminal, in pull requests and queues, from agents, in Python and in documents.",
            tutorials,
        ),
        page(
            "formulas.html",
            "Formulas",
            "Every formula of the engine, with its source and worked out for a real plan.",
            formula_page,
        ),
        page(
            "reference.html",
            "Reference",
            "Every setting with its flags and defaults, and every accelerator, machine and model that is known by name.",
            reference,
        ),
    ]
}

fn guide() -> Markup {
    write::page(&[
        reading::chapter(),
        glossary::chapter(),
        groups::chapter(),
        schedules::chapter(),
        time::model(),
        time::constants(),
        time::flops_conventions(),
        searches::chapter(),
        frameworks::scripts(),
        frameworks::elsewhere(),
        bounds::chapter(),
    ])
}

fn tutorials() -> Markup {
    write::page(&manual::chapters())
}

fn formula_page() -> Markup {
    let mut chapters = vec![letters::chapter(), worked::chapter()];
    chapters.extend(formulas::chapters());
    write::page(&chapters)
}

fn reference() -> Markup {
    let mut chapters: Vec<Chapter> = settings::chapters();
    chapters.extend([hardware::accelerators(), hardware::machines(), models::chapter()]);
    write::page(&chapters)
}
