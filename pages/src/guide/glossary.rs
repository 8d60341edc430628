//! The glossary.

use maud::{Markup, html};
use shardscope::explain::{Term, Theme, anchor, glossary};
use shardscope::plan::Field;

use super::write::{Chapter, joined, prose, setting_link, term_link};

/// Every term, by theme.
pub(super) fn chapter() -> Chapter {
    let about = "Terms that the page explains in place, and others that launch scripts and papers assume.";
    let mut chapter = Chapter::new("glossary", "Glossary", prose(about));
    for (theme, title) in Theme::ALL {
        let terms = html! {
            dl.terms-list {
                @for term in glossary().filter(|term| term.theme == theme) { (shown(term)) }
            }
        };
        chapter = chapter.part(title, terms);
    }
    chapter
}

fn shown(term: &Term) -> Markup {
    let id = format!("term-{}", anchor(term.name));
    let see: Vec<Markup> = term.see.iter().map(|name| reference(name)).collect();
    html! {
        div id=(id) {
            dt {
                a href={ "#" (id) } { (term.name) }
                @if !term.also.is_empty() { " " span.also { (term.also.join(", ")) } }
            }
            dd {
                p { (term.long) }
                @if !see.is_empty() { p.see { "See " (joined(&see, ", ")) } }
                p.source { (term.source) }
            }
        }
    }
}

/// A link to a setting, or to another term: a word that is both is the term, unless it has the form of a setting.
fn reference(name: &str) -> Markup {
    let is_term = glossary().any(|term| term.name == name);
    if Field::ALL.iter().any(|field| field.name() == name) && !is_term {
        return html! { a href=(setting_link(name)) { code { (name) } } };
    }
    html! { a href=(term_link(name).trim_start_matches("guide.html")) { (name) } }
}
