//! How the guide is written: chapters under a table of contents, tables, links.

use shardscope::explain::anchor;

use crate::html::escape;

/// A chapter with its place in the table of contents.
pub(super) struct Chapter {
    /// Its address in the page.
    pub(super) id: String,
    /// Its heading.
    pub(super) title: String,
    /// What is in it, as HTML.
    pub(super) body: String,
    /// Headings within it, for the table of contents: address and words.
    pub(super) parts: Vec<(String, String)>,
}

impl Chapter {
    /// A chapter without parts of its own.
    pub(super) fn new(id: &str, title: &str, body: String) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), body, parts: Vec::new() }
    }

    /// The same with a part under a heading of its own.
    pub(super) fn part(mut self, title: &str, body: &str) -> Self {
        let id = format!("{}-{}", self.id, anchor(title));
        self.body += &format!("<h3 id=\"{id}\">{}</h3>\n{body}", escape(title));
        self.parts.push((id, title.to_owned()));
        self
    }
}

/// `chapters` below their table of contents.
pub(super) fn page(chapters: &[Chapter]) -> String {
    let mut contents = String::new();
    let mut body = String::new();
    for chapter in chapters {
        let title = escape(&chapter.title);
        contents += &format!("<li><a href=\"#{}\">{title}</a>", chapter.id);
        if !chapter.parts.is_empty() {
            contents += "<ul>";
            for (id, part) in &chapter.parts {
                contents += &format!("<li><a href=\"#{id}\">{}</a></li>", escape(part));
            }
            contents += "</ul>";
        }
        contents += "</li>\n";
        body += &format!(
            "<section class=\"chapter\">\n<h2 id=\"{}\">{title}</h2>\n{}</section>\n",
            chapter.id, chapter.body
        );
    }
    // On a telephone the contents are folded; only one of the two is ever there.
    format!(
        "<div class=\"guide\">\n<nav class=\"contents\" aria-label=\"Contents\">\n<ul>\n{contents}</ul>\n</nav>\n\
         <nav class=\"contents folded\" aria-label=\"Contents\"><details><summary>Contents</summary>\n<ul>\n{contents}</ul>\n\
         </details></nav>\n<div class=\"chapters\">\n{body}</div>\n</div>\n"
    )
}

/// A paragraph of `text`, in which `code`, *emphasis* is not known but `…` between backquotes is code and `[word]` a term
/// of the glossary, `[shown|word]` where it is written otherwise.
pub(super) fn prose(text: &str) -> String {
    format!("<p>{}</p>\n", inline(text))
}

/// The same without the paragraph.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[']) {
        let (before, marked) = rest.split_at(at);
        out += &escape(before);
        let close = if marked.starts_with('`') { '`' } else { ']' };
        let Some((inside, behind)) = marked[1..].split_once(close) else {
            out += &escape(marked);
            return out;
        };
        out += &if close == '`' { code(inside) } else { term(inside) };
        rest = behind;
    }
    out + &escape(rest)
}

/// A link to a term, `name` or `shown|name`, or to a place, `shown|page.html#place`.
fn term(inside: &str) -> String {
    let (shown, name) = inside.split_once('|').unwrap_or((inside, inside));
    let to = if name.contains(['.', '#', '/']) { name.to_owned() } else { term_link(name) };
    format!("<a href=\"{to}\">{}</a>", escape(shown))
}

/// Where a term of the glossary stands.
pub(super) fn term_link(name: &str) -> String {
    format!("guide.html#term-{}", anchor(name))
}

/// Where a setting stands.
pub(super) fn setting_link(name: &str) -> String {
    format!("reference.html#setting-{}", anchor(name))
}

/// `text` as code.
pub(super) fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// A table with a caption for those who do not see it. A heading that begins with `>` stands above figures; the first cell
/// of a row names it. Cells are HTML, a row has its address or none.
pub(super) fn table(caption: &str, headings: &[&str], rows: &[(String, Vec<String>)]) -> String {
    let class = |heading: &str| if heading.starts_with('>') { " class=\"number\"" } else { "" };
    let mut out = format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"{0}\" tabindex=\"0\">\n<table class=\"figures\">\n\
         <caption class=\"hidden\">{0}</caption>\n<thead><tr>",
        escape(caption)
    );
    for heading in headings {
        let words = escape(heading.trim_start_matches('>'));
        out += &format!("<th scope=\"col\"{}>{words}</th>", class(heading));
    }
    out += "</tr></thead>\n<tbody>\n";
    for (id, cells) in rows {
        out += &if id.is_empty() { "<tr>".to_owned() } else { format!("<tr id=\"{id}\">") };
        for (place, (heading, cell)) in headings.iter().zip(cells).enumerate() {
            out += &match place {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td{}>{cell}</td>", class(heading)),
            };
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n</table>\n</div>\n"
}

/// A list of terms and what is said of each, as HTML.
pub(super) fn pairs(pairs: &[(String, String)]) -> String {
    let items: String =
        pairs.iter().map(|(name, about)| format!("<div><dt>{name}</dt><dd>{about}</dd></div>\n")).collect();
    format!("<dl class=\"pairs\">\n{items}</dl>\n")
}
