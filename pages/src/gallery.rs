//! The worked examples of the main page as separate pages. A link to one can be shown with its picture; a link to the
//! main page cannot, because its plan is after the `#` and reaches no server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::OnceLock;

use maud::{Markup, html};
use shardscope::session::examples::{Example, gallery};
use shardscope::session::{Shown, State, bars_svg, file_stem, script_link, settings_link, title};
use shardscope::units::{gib, percent, seconds};

use crate::frame::document;
use crate::page::Page;

/// Size of a card, as expected by services that preview links. Unit: pixel.
pub const CARD: [u32; 2] = [1200, 630];
/// Margin around the content of a card. Unit: pixel.
const MARGIN: f64 = 56.0;
/// Top of the bars. Unit: pixel.
const BARS: f64 = 330.0;

/// An example with its results, in words.
struct Worked {
    name: String,
    about: String,
    chapter: &'static str,
    /// The name of its files, without extension.
    stem: String,
    /// The part of its link after `#`.
    link: String,
    title: String,
    /// Memory and time, in one sentence.
    verdict: String,
    /// What was published about it, next to its estimate.
    published: Option<String>,
    /// The bars of its stages, as SVG.
    bars: String,
}

fn worked() -> &'static [Worked] {
    static ALL: OnceLock<Vec<Worked>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut taken = BTreeSet::new();
        let mut all = Vec::new();
        for chapter in gallery() {
            for example in chapter.examples {
                let state = State::new(example.input.clone());
                let Some(shown) = &state.shown else { continue };
                let mut stem = format!("example-{}", file_stem(shown));
                // Examples of the same model and machine share a name.
                while !taken.insert(stem.clone()) {
                    stem.push_str("-b");
                }
                all.push(Worked {
                    chapter: chapter.title,
                    // A settings link is shorter; a plan that settings cannot express is linked by its text.
                    link: settings_link(&state).unwrap_or_else(|| script_link(&state)),
                    title: title(shown),
                    verdict: verdict(shown),
                    published: published(&example),
                    bars: bars_svg(shown),
                    name: example.name,
                    about: example.about,
                    stem,
                });
            }
        }
        all
    })
}

fn verdict(shown: &Shown) -> String {
    let (memory, time) = (&shown.report.memory, &shown.report.time);
    let fit = shown.fullest().map_or_else(String::new, |fullest| {
        let (words, peak, condition) = (fullest.fit.words(), gib(fullest.peak), fullest.condition());
        format!("{words}: peak {peak} of {} per GPU{condition}", gib(memory.capacity))
    });
    format!("{fit}; {} per step, {} MFU.", seconds(time.step), percent(time.mfu))
}

fn published(example: &Example) -> Option<String> {
    let (published, estimated) = (example.published?, example.estimated()?);
    Some(format!("Published: {}; estimated: {}{}.", published.words(), estimated.words, estimated.beside))
}

/// The page that links to all of them.
#[must_use]
pub fn page() -> Page {
    let about =
        "Published runs and well-known models, each with its estimate, a picture and a link that opens it.";
    Page { file: "gallery.html", name: "Gallery", about, scripts: &[], body }
}

fn body() -> Markup {
    html! {
        // Examples of a chapter are consecutive.
        @for chapter in worked().chunk_by(|one, next| one.chapter == next.chapter) {
            @if let Some(first) = chapter.first() { h2 { (first.chapter) } }
            ul.runs {
                @for one in chapter {
                    li {
                        a.run href={ (one.stem) ".html" } {
                            // The caption is below it.
                            img src={ (one.stem) ".svg" } width=(CARD[0]) height=(CARD[1]) alt="" loading="lazy";
                            strong { (one.name) }
                            span { (one.about) }
                            span.outcome { (one.verdict) }
                        }
                    }
                }
            }
        }
    }
}

/// Every example's page, which links to `pages`, and its picture, as names and contents.
#[must_use]
pub fn examples(pages: &[Page]) -> Vec<(String, String)> {
    let both = |one: &Worked| {
        [(format!("{}.html", one.stem), one.page(pages)), (format!("{}.svg", one.stem), one.card())]
    };
    worked().iter().flat_map(both).collect()
}

impl Worked {
    fn page(&self, pages: &[Page]) -> String {
        let about = format!("{}. {}", self.about, self.verdict);
        let body = html! {
            @if let Some(published) = &self.published { p { (published) } }
            p { img src={ (self.stem) ".svg" } width=(CARD[0]) height=(CARD[1]) alt=(about) class="card"; }
            p { a.open-run href={ "./#" (self.link) } { "Open in the calculator" } " Change any setting there; every number shows where it is from." }
        };
        document(pages, &format!("{}.html", self.stem), &self.name, &about, &[], &body)
    }

    /// The picture: what runs, the verdict, the bars of its stages.
    fn card(&self) -> String {
        let [width, height] = CARD;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif\"><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
        );
        let mut line = |y: f64, style: &str, text: &str| {
            // maud escapes the text for XML.
            let text = html! { (text) }.into_string();
            let _ = write!(out, "<text x=\"{MARGIN}\" y=\"{y}\" {style}>{text}</text>");
        };
        line(84.0, r##"font-size="26" fill="#545b63""##, "Shardscope: will it fit, how fast?");
        // Bold letters are at most 0.7 of their size wide on average.
        let letters = u32::try_from(self.name.chars().count()).unwrap_or(u32::MAX).max(1);
        let largest = ((f64::from(width) - 2.0 * MARGIN) / (0.7 * f64::from(letters))).min(54.0);
        let style = format!("font-size=\"{largest:.0}\" font-weight=\"650\" fill=\"#1a1d21\"");
        line(156.0, &style, &self.name);
        line(206.0, r##"font-size="26" fill="#545b63""##, &self.title);
        line(262.0, r##"font-size="24" font-weight="600" fill="#1a1d21""##, &self.verdict);
        if let Some(published) = &self.published {
            line(304.0, r##"font-size="24" fill="#545b63""##, published);
        }
        let bars = &self.bars;
        // The picture's own width is the first one in its text.
        let wide =
            bars.split_once(" width=\"").and_then(|(_, rest)| rest.split_once('"')?.0.parse::<f64>().ok());
        // Scaled to the card's width; if there are many stages, only the first are visible.
        let (room, left) = (f64::from(width) - 2.0 * MARGIN, f64::from(height) - BARS);
        let wide = wide.unwrap_or(room);
        let seen = wide * left / room;
        let _ = writeln!(
            out,
            "<svg x=\"{MARGIN}\" y=\"{BARS}\" width=\"{room}\" height=\"{left}\" viewBox=\"0 0 {wide} {seen:.1}\">{bars}</svg></svg>"
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{examples, worked};
    use shardscope::session::{Event, State, apply};

    #[test]
    fn every_example_has_a_page_and_a_picture_and_opens_as_its_plan() {
        let files = examples(&crate::pages());
        assert_eq!(files.len(), 2 * worked().len());
        assert!(worked().len() > 40, "{} examples", worked().len());
        for (pair, one) in files.chunks(2).zip(worked()) {
            let [(page, html), (picture, svg)] = pair else { panic!("a page and a picture") };
            assert_eq!(page.strip_suffix(".html"), picture.strip_suffix(".svg"));
            assert_eq!(
                (html.matches("INLINE-SCRIPTS").count(), html.matches(" style=").count()),
                (1, 0),
                "{page}"
            );
            assert!(
                html.contains(&format!("src=\"{picture}\"")) && html.contains("content=\"card.png\""),
                "{page}"
            );
            assert!(svg.starts_with("<svg ") && svg.contains("GiB of "), "{picture}");
            let state = apply(State::default(), Event::Follow(format!("#{}", one.link)));
            let shown = state.shown.expect("a plan");
            assert_eq!(
                (super::title(&shown), super::verdict(&shown)),
                (one.title.clone(), one.verdict.clone())
            );
        }
    }
}
