//! The tables of the page: rows, and statistics of their errors.

use maud::{Markup, html};

use super::entry::Entry;
use super::figures::Figures;

/// The first cell of a line of statistics, and which rows it counts.
pub(super) struct Line {
    /// Name of the line.
    pub(super) name: String,
    /// `all`, `g` with the index of a group, or `f` with a family, matching the attributes of the rows.
    pub(super) key: String,
}

impl Line {
    fn counts(&self, entry: &Entry) -> bool {
        match self.key.split_at(1) {
            ("g", group) => entry.groups.iter().any(|own| own.to_string() == group),
            ("f", family) => entry.source.family == family,
            _ => true,
        }
    }
}

/// Statistics of `entries`, one line each.
#[must_use]
pub(super) fn statistics(caption: &str, lines: &[Line], entries: &[Entry]) -> Markup {
    let heads = [
        "Rows",
        "Median",
        "Mean",
        "90\u{a0}% within",
        "Within 5\u{a0}%",
        "Within 10\u{a0}%",
        "Within 15\u{a0}%",
        "Bias",
    ];
    let counted = lines.iter().map(|line| {
        let counted = entries.iter().filter(|entry| line.counts(entry));
        (line, Figures::new(counted.map(Entry::error).collect()))
    });
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table.figures.statistics {
                caption { (caption) }
                thead {
                    tr {
                        th scope="col" { "Runs" }
                        @for head in heads { th.number scope="col" { (head) } }
                    }
                }
                tbody {
                    @for (line, figures) in counted.filter(|(_, figures)| figures.rows > 0) {
                        tr data-of=(line.key) {
                            th scope="row" { (line.name) }
                            @for cell in cells(&figures) { td.number { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

fn cells(figures: &Figures) -> [String; 8] {
    // Halves are rounded up, as in the page's script; `{:.0}` alone would round them to even.
    let [five, ten, fifteen] = figures.within.map(|share| format!("{:.0}%", (100.0 * share).round()));
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    [
        figures.rows.to_string(),
        percent(figures.median),
        percent(figures.mean),
        percent(figures.tenth),
        five,
        ten,
        fifteen,
        format!("{:+.1}%", 100.0 * figures.bias),
    ]
}

/// A table with one row per entry.
#[must_use]
pub(super) fn rows(caption: &str, unit: &str, entries: &[Entry]) -> Markup {
    html! {
        div.wide.rows role="region" aria-label=(caption) tabindex="0" {
            table.figures {
                caption { (caption) }
                thead {
                    tr {
                        th scope="col" { "Run" }
                        th.number scope="col" { "Measured,\u{a0}" (unit) }
                        th.number scope="col" { "Predicted,\u{a0}" (unit) }
                        th.number scope="col" { "Error,\u{a0}%" }
                        @for head in ["Model", "Machine", "Layout", "Batch"] { th scope="col" { (head) } }
                    }
                }
                tbody { @for entry in entries { (row(entry)) } }
            }
        }
    }
}

fn row(entry: &Entry) -> Markup {
    let groups: Vec<String> = entry.groups.iter().map(ToString::to_string).collect();
    let off = if entry.error().abs() > 0.15 { "number off" } else { "number" };
    let machine = format!("{} × {}", entry.gpus, entry.accelerator);
    let cells: [(&str, &str); 4] = [
        (entry.model, &entry.shape),
        (&machine, entry.software),
        (&entry.cut, &entry.held),
        (&entry.batch, &entry.micro),
    ];
    html! {
        tr id=(entry.anchor) data-source=(entry.source.family) data-hardware=(entry.accelerator)
            data-architecture=(entry.architecture.key()) data-software=(entry.software) data-g=(groups.join(" "))
            data-e=(format!("{:.6}", entry.error()))
        {
            th scope="row" {
                a href={ "./#" (entry.link) } { (entry.id) }
                small { a href=(entry.source.link) { (entry.source.name) } (place(entry)) }
                @if let Some(cause) = &entry.cause {
                    small.cause { (cause) }
                }
            }
            td.number { (digits(entry.measured)) @if !entry.what.is_empty() { small { (entry.what) } } }
            td.number { (digits(entry.predicted)) }
            td class=(off) { (signed(100.0 * entry.error())) }
            @for (first, second) in cells { td { (first) small { (second) } } }
        }
    }
}

/// Year and place, unless the source's name already contains them.
fn place(entry: &Entry) -> String {
    let year = if entry.source.name.contains(entry.year) { "" } else { entry.year };
    let said = [year, &entry.place].into_iter().filter(|text| !text.is_empty());
    said.map(|text| format!(", {text}")).collect()
}

/// One decimal with its sign; zero has none.
fn signed(value: f64) -> String {
    match format!("{value:+.1}") {
        nothing if nothing.ends_with("0.0") && nothing.len() == 4 => "0.0".to_owned(),
        text => text,
    }
}

/// Four significant digits.
fn digits(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
