//! Building blocks of the guide: chapters under a table of contents, tables, links.

use maud::{Markup, html};
use shardscope::explain::anchor;

/// A chapter, with its entries in the table of contents.
pub(super) struct Chapter {
    /// Its address in the page.
    pub(super) id: String,
    /// Its heading.
    pub(super) title: String,
    /// Content under the heading.
    pub(super) body: Markup,
    /// Headings within it, for the table of contents: address and text.
    pub(super) parts: Vec<(String, String)>,
}

impl Chapter {
    /// A chapter without parts.
    pub(super) fn new(id: &str, title: &str, body: Markup) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), body, parts: Vec::new() }
    }

    /// The same chapter with an additional part under its own heading.
    pub(super) fn part(mut self, title: &str, body: Markup) -> Self {
        let id = format!("{}-{}", self.id, anchor(title));
        self.body = html! { (self.body) h3 id=(id) { (title) } (body) };
        self.parts.push((id, title.to_owned()));
        self
    }
}

/// `chapters` below their table of contents.
pub(super) fn page(chapters: &[Chapter]) -> Markup {
    let contents = html! {
        ul {
            @for chapter in chapters {
                li {
                    a href={ "#" (chapter.id) } { (chapter.title) }
                    @if !chapter.parts.is_empty() {
                        ul {
                            @for (id, part) in &chapter.parts {
                                li { a href={ "#" (id) } { (part) } }
                            }
                        }
                    }
                }
            }
        }
    };
    html! {
        div.guide {
            // On small screens the contents are folded; only one of the two is ever displayed.
            nav.contents aria-label="Contents" { (contents) }
            nav.contents.folded aria-label="Contents" {
                details { summary { "Contents" } (contents) }
            }
            div.chapters {
                @for chapter in chapters {
                    section.chapter {
                        h2 id=(chapter.id) { (chapter.title) }
                        (chapter.body)
                    }
                }
            }
        }
    }
}

/// A paragraph of `text`, in which backquotes enclose code and `[word]` is a glossary term, `[shown|word]` if it is
/// written differently.
pub(super) fn prose(text: &str) -> Markup {
    html! { p { (inline(text)) } }
}

/// The same without the paragraph.
pub(super) fn inline(text: &str) -> Markup {
    let Some((before, marked)) = text.find(['`', '[']).map(|at| text.split_at(at)) else {
        return html! { (text) };
    };
    let is_code = marked.starts_with('`');
    // An unclosed mark is plain text.
    let Some((inside, behind)) = marked[1..].split_once(if is_code { '`' } else { ']' }) else {
        return html! { (text) };
    };
    html! {
        (before)
        @if is_code { (code(inside)) } @else { (term(inside)) }
        (inline(behind))
    }
}

/// A link to a term, `name` or `shown|name`, or to a place, `shown|page.html#place`.
fn term(inside: &str) -> Markup {
    let (shown, name) = inside.split_once('|').unwrap_or((inside, inside));
    let to = if name.contains(['.', '#', '/']) { name.to_owned() } else { term_link(name) };
    html! { a href=(to) { (shown) } }
}

/// The address of a glossary term.
pub(super) fn term_link(name: &str) -> String {
    format!("guide.html#term-{}", anchor(name))
}

/// Address of a setting in the reference.
pub(super) fn setting_link(name: &str) -> String {
    format!("reference.html#setting-{}", anchor(name))
}

/// `text` as code.
pub(super) fn code(text: &str) -> Markup {
    html! { code { (text) } }
}

/// `text` as it is.
pub(super) fn plain(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

/// `items` with `between` between them.
pub(super) fn joined(items: &[Markup], between: &str) -> Markup {
    html! {
        @for (place, item) in items.iter().enumerate() {
            @if place > 0 { (between) }
            (item)
        }
    }
}

/// A row of a table: its address, if it has one, and its cells.
pub(super) struct Row {
    id: Option<String>,
    cells: Vec<Markup>,
}

impl Row {
    /// A row without an address.
    pub(super) fn new(cells: impl IntoIterator<Item = Markup>) -> Self {
        Self { id: None, cells: cells.into_iter().collect() }
    }

    /// A row with an address.
    pub(super) fn at(id: String, cells: impl IntoIterator<Item = Markup>) -> Self {
        Self { id: Some(id), cells: cells.into_iter().collect() }
    }
}

/// A table with a caption for readers who cannot see it. A heading that begins with `>` is above figures; the first
/// cell of a row names it.
pub(super) fn table(caption: &str, headings: &[&str], rows: &[Row]) -> Markup {
    let class = |heading: &str| heading.starts_with('>').then_some("number");
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table.figures {
                caption.hidden { (caption) }
                thead {
                    tr {
                        @for heading in headings {
                            th scope="col" class=[class(heading)] { (heading.trim_start_matches('>')) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr id=[row.id.as_ref()] {
                            @for (place, (heading, cell)) in headings.iter().zip(&row.cells).enumerate() {
                                @if place == 0 {
                                    th scope="row" { (cell) }
                                } @else {
                                    td class=[class(heading)] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A list of terms with a text for each.
pub(super) fn pairs(pairs: &[(Markup, Markup)]) -> Markup {
    html! {
        dl.pairs {
            @for (name, about) in pairs {
                div { dt { (name) } dd { (about) } }
            }
        }
    }
}
