//! The glossary.

use shardscope::explain::{GLOSSARY, Term, Theme, anchor};
use shardscope::plan::Field;

use super::write::{Chapter, prose, setting_link, term_link};
use crate::html::escape;

/// Every term, by theme.
pub(super) fn chapter() -> Chapter {
    let about = "Terms that the page explains where they stand, and others that launch scripts and papers take as known.";
    let mut chapter = Chapter::new("glossary", "Glossary", prose(about));
    for (theme, title) in Theme::ALL {
        let terms: String = GLOSSARY.iter().filter(|term| term.theme == theme).map(shown).collect();
        chapter = chapter.part(title, &format!("<dl class=\"terms-list\">\n{terms}</dl>\n"));
    }
    chapter
}

fn shown(term: &Term) -> String {
    let also = if term.also.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"also\">{}</span>", escape(&term.also.join(", ")))
    };
    let see: Vec<String> = term.see.iter().map(|name| reference(name)).collect();
    let see =
        if see.is_empty() { String::new() } else { format!("<p class=\"see\">See {}</p>", see.join(", ")) };
    format!(
        "<div id=\"term-{0}\"><dt><a href=\"#term-{0}\">{1}</a>{also}</dt>\n<dd><p>{2}</p>\n{see}<p class=\"source\">{3}</p></dd></div>\n",
        anchor(term.name),
        escape(term.name),
        escape(term.long),
        escape(term.source),
    )
}

/// A link to a setting, or to another term: a word that is both is the term, unless it has the form of a setting.
fn reference(name: &str) -> String {
    let is_term = GLOSSARY.iter().any(|term| term.name == name);
    if Field::ALL.iter().any(|field| field.name() == name) && !is_term {
        return format!("<a href=\"{}\"><code>{name}</code></a>", setting_link(name));
    }
    format!("<a href=\"{}\">{}</a>", term_link(name).trim_start_matches("guide.html"), escape(name))
}
