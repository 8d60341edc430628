//! The tutorials and the pages on each way to use the engine: the repository's `docs/` as chapters.
//!
//! The texts are Markdown that is also meant to be read in the repository. `crates/cli/tests` runs the tutorials.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use shardscope::explain::anchor;

use super::write::Chapter;

/// Files of `docs/`, in the order of their chapters: the name used in links, and the text.
const FILES: [(&str, &str); 9] = [
    ("fit-my-job.md", include_str!("../../../docs/tutorials/fit-my-job.md")),
    ("split-a-70b.md", include_str!("../../../docs/tutorials/split-a-70b.md")),
    ("fine-tune-on-8-gpus.md", include_str!("../../../docs/tutorials/fine-tune-on-8-gpus.md")),
    ("read-the-map.md", include_str!("../../../docs/tutorials/read-the-map.md")),
    ("gate-a-repository.md", include_str!("../../../docs/tutorials/gate-a-repository.md")),
    ("terminal.md", include_str!("../../../docs/use/terminal.md")),
    ("agents.md", include_str!("../../../docs/use/agents.md")),
    ("python.md", include_str!("../../../docs/use/python.md")),
    ("documents.md", include_str!("../../../docs/use/documents.md")),
];

/// A chapter for each file, in order.
pub(super) fn chapters() -> Vec<Chapter> {
    FILES.iter().map(|(file, text)| chapter(file, text)).collect()
}

/// The address of a file's chapter, whatever its folder; none if it is not a chapter.
fn address(path: &str) -> Option<String> {
    let file = path.rsplit('/').next()?;
    FILES.iter().any(|(known, _)| *known == file).then(|| id(file))
}

fn id(file: &str) -> String {
    file.trim_end_matches(".md").to_owned()
}

fn chapter(file: &str, text: &str) -> Chapter {
    let id = id(file);
    let (mut title, mut parts, mut body) = (String::new(), Vec::new(), Vec::new());
    // The current heading, and for each open link whether it leads anywhere.
    let (mut heading, mut leads): (Option<HeadingLevel>, Vec<bool>) = (None, Vec::new());
    let mut tables = 0_u32;
    let mut words = String::new();
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some(level),
            Event::End(TagEnd::Heading(_)) => {
                let said = std::mem::take(&mut words);
                match heading.take() {
                    Some(HeadingLevel::H1) => title = said,
                    _ => {
                        let place = format!("{id}-{}", anchor(&said));
                        body.push(raw(html! { h3 id=(place) { (said) } }));
                        parts.push((place, said));
                    }
                }
            }
            // The words of a heading are collected: it is written when it ends, with an address derived from them.
            Event::Text(text) | Event::Code(text) if heading.is_some() => words.push_str(&text),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let to = match address(&dest_url) {
                    Some(chapter) => Some(format!("#{chapter}")),
                    None => dest_url.contains("://").then(|| dest_url.to_string()),
                };
                leads.push(to.is_some());
                if let Some(to) = to {
                    body.push(Event::Start(Tag::Link { link_type, dest_url: to.into(), title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                // Files that only the repository has are named without a link.
                if leads.pop() == Some(true) {
                    body.push(Event::End(TagEnd::Link));
                }
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                // After the language comes the name of the file that the block shows.
                if let Some((_, name)) = info.split_once(' ') {
                    body.push(raw(html! { p.file { code { (name) } } }));
                }
                // A block wider than the page can only be scrolled by keyboard if it can take the focus.
                body.push(Event::Html("<pre class=\"shown\" tabindex=\"0\"><code>".into()));
            }
            Event::End(TagEnd::CodeBlock) => body.push(Event::Html("</code></pre>".into())),
            Event::Start(Tag::Table(columns)) => {
                // Regions of a page need distinct names.
                tables += 1;
                let name = html! { (title) ", table " (tables) }.into_string();
                body.push(Event::Html(
                    format!("<div class=\"wide\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">")
                        .into(),
                ));
                body.push(Event::Start(Tag::Table(columns)));
            }
            Event::End(TagEnd::Table) => {
                body.push(Event::End(TagEnd::Table));
                body.push(Event::Html("</div>".into()));
            }
            other => body.push(other),
        }
    }
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, body.into_iter());
    // pulldown-cmark writes tables without attributes.
    let out = out.replace("<table>", "<table class=\"figures\">");
    Chapter { id, title, body: PreEscaped(out), parts }
}

fn raw(markup: Markup) -> Event<'static> {
    Event::Html(CowStr::from(markup.into_string()))
}

#[cfg(test)]
mod tests {
    use super::{FILES, chapters};
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_file_of_docs_is_a_chapter() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let mut there = BTreeSet::new();
        for folder in ["tutorials", "use"] {
            for entry in fs::read_dir(docs.join(folder)).unwrap() {
                there.insert(entry.unwrap().file_name().to_string_lossy().into_owned());
            }
        }
        assert_eq!(there, FILES.iter().map(|(file, _)| (*file).to_owned()).collect());
    }

    #[test]
    fn chapters_have_what_their_texts_have_and_lead_to_each_other() {
        let all = chapters();
        for (chapter, (_, text)) in all.iter().zip(FILES) {
            let body = &chapter.body.0;
            assert_eq!(
                Some(chapter.title.as_str()),
                text.lines().next().and_then(|line| line.strip_prefix("# "))
            );
            assert_eq!(body.matches("<pre").count() * 2, text.matches("\n```").count(), "{}", chapter.id);
            for part in text.lines().filter_map(|line| line.strip_prefix("## ")) {
                assert!(chapter.parts.iter().any(|(_, said)| said == part), "{part}");
            }
            // A link without a scheme leads to a chapter.
            for to in body.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let known = all.iter().any(|other| to.strip_prefix('#') == Some(&other.id));
                assert!(known || to.starts_with("https://"), "{}: {to}", chapter.id);
            }
        }
        let terminal = all.iter().find(|chapter| chapter.id == "terminal").unwrap();
        assert!(terminal.body.0.contains("<a href=\"#gate-a-repository\">the tutorial</a>"));
        let first = &all[0].body.0;
        assert!(first.contains("<p class=\"file\"><code>train.sh</code></p>"), "{first}");
    }
}
