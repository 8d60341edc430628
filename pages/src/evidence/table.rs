//! The tables of the page: rows, and statistics of their errors.

use std::fmt::Write;

use super::entry::Entry;
use super::figures::Figures;
use crate::html::escape;

/// The first cells of a line of statistics, and which rows it counts.
pub(super) struct Line {
    /// What it is called.
    pub(super) name: String,
    /// `all`, `g` with the place of a group, or `f` with a family: as rows say it of themselves.
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

/// Statistics of `entries`, a line each.
#[must_use]
pub(super) fn statistics(caption: &str, lines: &[Line], entries: &[Entry]) -> String {
    let mut out = format!(
        "<div class=\"wide\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\">\n<table class=\"figures statistics\">\n\
         <caption>{caption}</caption>\n<thead><tr><th scope=\"col\">Runs</th>"
    );
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
    for head in heads {
        let _ = write!(out, "<th scope=\"col\" class=\"number\">{head}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for line in lines {
        let counted = entries.iter().filter(|entry| !entry.aside && line.counts(entry));
        let figures = Figures::of(counted.map(Entry::error).collect());
        if figures.rows == 0 {
            continue;
        }
        let _ = write!(out, "<tr data-of=\"{}\"><th scope=\"row\">{}</th>", line.key, escape(&line.name));
        for cell in cells(&figures) {
            let _ = write!(out, "<td class=\"number\">{cell}</td>");
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n</table>\n</div>\n"
}

fn cells(figures: &Figures) -> [String; 8] {
    let [five, ten, fifteen] = figures.within.map(|share| format!("{:.0} %", 100.0 * share));
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    [
        figures.rows.to_string(),
        percent(figures.median),
        percent(figures.mean),
        percent(figures.tenth),
        five,
        ten,
        fifteen,
        format!("{:+.1} %", 100.0 * figures.bias),
    ]
}

/// One row each.
#[must_use]
pub(super) fn rows(caption: &str, unit: &str, entries: &[Entry]) -> String {
    let mut out = format!(
        "<div class=\"wide rows\" role=\"region\" aria-label=\"{caption}\" tabindex=\"0\">\n<table class=\"figures\">\n\
         <caption>{caption}</caption>\n<thead><tr>"
    );
    out += "<th scope=\"col\">Run</th>";
    for head in [&format!("Measured,\u{a0}{unit}"), &format!("Predicted,\u{a0}{unit}"), "Error,\u{a0}%"] {
        let _ = write!(out, "<th scope=\"col\" class=\"number\">{head}</th>");
    }
    for head in ["Model", "Machine", "Layout", "Batch"] {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for entry in entries {
        out += &row(entry);
    }
    out + "</tbody>\n</table>\n</div>\n"
}

fn row(entry: &Entry) -> String {
    let groups: Vec<String> = entry.groups.iter().map(ToString::to_string).collect();
    let mut out = format!(
        "<tr id=\"{}\" data-source=\"{}\" data-hardware=\"{}\" data-architecture=\"{}\" data-software=\"{}\" data-g=\"{}\" \
         data-e=\"{:.6}\"{}>",
        entry.anchor,
        entry.source.family,
        entry.accelerator,
        entry.architecture.key(),
        entry.software,
        groups.join(" "),
        entry.error(),
        if entry.aside { " data-aside" } else { "" },
    );
    let _ = write!(
        out,
        "<th scope=\"row\"><a href=\"./#{}\">{}</a><small><a href=\"{}\">{}</a>{}</small>",
        escape(&entry.link),
        entry.id,
        entry.source.link,
        escape(entry.source.name),
        escape(&place(entry))
    );
    if let Some(cause) = &entry.cause {
        let what = if entry.aside { "Set aside: " } else { "" };
        let _ = write!(out, "<small class=\"cause\">{what}{}</small>", escape(cause));
    }
    let off = if entry.error().abs() > 0.15 { " off" } else { "" };
    let _ = write!(
        out,
        "</th><td class=\"number\">{}{}</td><td class=\"number\">{}</td><td class=\"number{off}\">{}</td>",
        digits(entry.measured),
        if entry.what.is_empty() { String::new() } else { format!("<small>{}</small>", entry.what) },
        digits(entry.predicted),
        signed(100.0 * entry.error())
    );
    let cells = [
        (entry.model.to_owned(), entry.shape.clone()),
        (format!("{} × {}", entry.gpus, entry.accelerator), entry.software.to_owned()),
        (entry.cut.clone(), entry.held.clone()),
        (entry.batch.clone(), entry.micro.clone()),
    ];
    for (first, second) in cells {
        let _ = write!(out, "<td>{}<small>{}</small></td>", escape(&first), escape(&second));
    }
    out + "</tr>\n"
}

/// Year and place, where the source's name does not say them.
fn place(entry: &Entry) -> String {
    let year = if entry.source.name.contains(entry.year) { "" } else { entry.year };
    let said = [year, &entry.place].into_iter().filter(|text| !text.is_empty());
    said.map(|text| format!(", {text}")).collect()
}

/// One decimal with its sign, which nothing has not.
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
