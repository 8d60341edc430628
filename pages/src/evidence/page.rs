//! `evidence.html`: every published run, predicted beside measured.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::compared::{Group, PEERS};
use super::entry::{Architecture, Entry, memories, step_times};
use super::figures::Figures;
use super::gaps::{MISSED_VERDICTS, NOT_ESTIMATED};
use super::memory::{Counted, runs};
use super::plot::Plot;
use super::sources::SOURCES;
use super::table::{Line, rows, statistics};
use crate::Page;
use crate::html::escape;

/// The page.
#[must_use]
pub fn page() -> Page {
    Page {
        file: "evidence.html",
        name: "Evidence",
        about: "Every published training run that the engine is held against: what was measured, and what it says. Each run opens as a plan.",
        scripts: &["evidence.js"],
        body,
    }
}

fn body() -> String {
    let (times, memory) = (step_times(), memories());
    let mut out = honesty(&times, &memory);
    out += &filters(&times, &memory);
    out += &section(&Section {
        key: "time",
        title: "Step time",
        about: "Seconds of one training step, one point a run.",
        picture: "Predicted step time over measured step time, both in seconds and on logarithmic axes. Most points lie within \
                  10 % of the diagonal; the table below has every one of them.",
        unit: "s",
        groups: Group::ALL.iter().map(|group| group.title().to_owned()).collect(),
        entries: &times,
        after: peers(&times),
    });
    out += &section(&Section {
        key: "memory",
        title: "Memory",
        about: "GiB on one GPU: as PyTorch allocated or reserved them, or as nvidia-smi showed them. A run may have several figures.",
        picture: "Predicted memory over measured memory, both in GiB and on logarithmic axes. Most points lie within 5 % of the \
                  diagonal; the table below has every one of them.",
        unit: "GiB",
        groups: Counted::ALL.iter().map(|counted| counted.name().to_owned()).collect(),
        entries: &memory,
        after: verdicts(),
    });
    out + &sources(&times, &memory)
}

/// What the figures are worth, first.
fn honesty(times: &[Entry], memory: &[Entry]) -> String {
    let aside = times.iter().filter(|entry| entry.aside).count();
    let off = times.iter().filter(|entry| !entry.aside && entry.error().abs() > 0.15).count();
    format!(
        "<section class=\"panel honesty\" aria-labelledby=\"worth\">\n<h2 id=\"worth\">What these figures are worth</h2>\n<ul>\n\
         <li>The engine's constants, one set for each generation of accelerators, were set with the {} step times in view: this \
         is the development half. About as many rows are kept apart, never seen, to check the result. No constant belongs to a \
         model, a paper or a row.</li>\n\
         <li>{aside} rows are set aside, hollow in the picture and not counted: another record of the same run disagrees, or a \
         fact is missing. Each says why.</li>\n\
         <li>{off} further rows are off by more than 15 %. Each says why, or that no cause is known.</li>\n\
         <li>Memory is not fitted: its {} figures follow from what the frameworks allocate. Rows off by more than their source's \
         usual scatter say why.</li>\n</ul>\n</section>\n",
        times.len(),
        memory.len()
    )
}

/// The filters, for those with scripts; all rows are there without.
fn filters(times: &[Entry], memory: &[Entry]) -> String {
    let all = || times.iter().chain(memory);
    let hardware: BTreeSet<&str> = all().map(|entry| entry.accelerator.as_str()).collect();
    let software: BTreeSet<&str> = all().map(|entry| entry.software).collect();
    let used = SOURCES.iter().filter(|source| all().any(|entry| entry.source.family == source.family));
    let own = |name: &&str| ((*name).to_owned(), (*name).to_owned());
    let choices = [
        ("source", "Source", used.map(|source| (source.family.to_owned(), source.name.to_owned())).collect()),
        ("hardware", "Hardware", hardware.iter().map(own).collect()),
        (
            "architecture",
            "Architecture",
            Architecture::ALL.map(|kind| (kind.key().to_owned(), kind.name().to_owned())).to_vec(),
        ),
        ("software", "Software", software.iter().map(own).collect::<Vec<_>>()),
    ];
    let mut out = String::from("<form class=\"filters\" aria-label=\"Which runs\" hidden>\n");
    for (name, label, options) in choices {
        let _ = write!(
            out,
            "<label><span>{label}</span><select class=\"field\" name=\"{name}\"><option value=\"\">all</option>"
        );
        for (value, label) in options {
            let _ = write!(out, "<option value=\"{}\">{}</option>", escape(&value), escape(&label));
        }
        out += "</select></label>\n";
    }
    out + "<label class=\"words\"><span>Words</span><input class=\"field\" type=\"search\" name=\"words\" placeholder=\"175B, TP 8, fp8 …\" \
           autocomplete=\"off\" spellcheck=\"false\"></label>\n\
           <button class=\"button\" type=\"reset\">All runs</button>\n<p class=\"shown\" role=\"status\"></p>\n</form>\n"
}

/// One quantity.
struct Section<'a> {
    key: &'static str,
    title: &'static str,
    about: &'static str,
    picture: &'static str,
    unit: &'static str,
    groups: Vec<String>,
    entries: &'a [Entry],
    after: String,
}

fn section(section: &Section) -> String {
    let Section { key, title, about, unit, entries, .. } = section;
    let plot = Plot { key, about: section.picture, unit, entries };
    let groups = section.groups.iter().enumerate();
    let mut lines = vec![Line { name: "all".to_owned(), key: "all".to_owned() }];
    lines.extend(groups.map(|(index, name)| Line { name: name.clone(), key: format!("g{index}") }));
    let families =
        SOURCES.iter().filter(|source| entries.iter().any(|entry| entry.source.family == source.family));
    let of_source: Vec<Line> = families
        .map(|source| Line { name: source.name.to_owned(), key: format!("f{}", source.family) })
        .collect();
    format!(
        "<section class=\"panel kind\" id=\"{key}\" aria-labelledby=\"{key}-title\">\n\
         <header><h2 id=\"{key}-title\">{title}</h2><p>{about}</p></header>\n<div class=\"beside-plot\">\n\
         <figure class=\"chart\">\n{}{}<p class=\"readout\" role=\"status\"></p>\n</figure>\n\
         <div>\n{}<details class=\"more\"><summary>Errors by source</summary>\n{}</details>\n{}</div>\n</div>\n{}</section>\n",
        plot.svg(),
        legend(entries),
        statistics(&format!("{title}: errors, without their sign but for the bias"), &lines, entries),
        statistics(&format!("{title}: errors by source"), &of_source, entries),
        section.after,
        rows(&format!("{title}: every run"), unit, entries),
    )
}

fn legend(entries: &[Entry]) -> String {
    let marks = [
        ("dense", "<circle r=\"4\"/>"),
        ("experts", "<path d=\"M0-5.5 5 3.5H-5z\"/>"),
        ("sharded", "<path d=\"M-4-4h8v8h-8z\"/>"),
    ];
    let mut out = String::from("<ul class=\"legend\">");
    for (kind, (key, mark)) in Architecture::ALL.into_iter().zip(marks) {
        if entries.iter().any(|entry| entry.architecture == kind) {
            let _ = write!(
                out,
                "<li><svg class=\"points\" viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><g class=\"{key}\">{mark}</g></svg>{}</li>",
                kind.name()
            );
        }
    }
    out + "<li><span class=\"swatch five\"></span>within 5 %</li><li><span class=\"swatch ten\"></span>within 10 %</li></ul>\n"
}

/// What other tools reach on the same rows.
fn peers(times: &[Entry]) -> String {
    let ours = |families: &[&str]| {
        let rows = times.iter().filter(|entry| !entry.aside && families.contains(&entry.source.family));
        Figures::of(rows.map(Entry::error).collect())
    };
    let tables =
        ["seed-narayanan2021-tab1", "seed-azure-nemo-22.06", "korthikanti2022-tab5", "nemo-launcher"];
    let mut out = String::from(
        "<div class=\"wide\" role=\"region\" aria-label=\"Other tools on the same rows\" tabindex=\"0\">\n<table class=\"figures peers\">\n\
         <caption>Other tools on the same rows: run side by side in November 2026</caption>\n\
         <thead><tr><th scope=\"col\">Tool</th><th scope=\"col\">Rows</th><th scope=\"col\">Error of the step time</th>\
         <th scope=\"col\">Shardscope there</th></tr></thead>\n<tbody>\n",
    );
    for peer in &PEERS {
        let own = match peer.rows {
            rows if rows.starts_with("Narayanan") => {
                let figures = ours(&tables[..1]);
                format!("mean {:.1} %, worst {:.1} %", 100.0 * figures.mean, 100.0 * figures.worst)
            }
            rows if rows.starts_with("Korthikanti") => {
                let figures = ours(&tables[2..3]);
                format!(
                    "mean {:.1} %, worst {:.1} % of {} rows",
                    100.0 * figures.mean,
                    100.0 * figures.worst,
                    figures.rows
                )
            }
            _ => {
                let figures = ours(&tables);
                format!("median {:.1} % of {} of them", 100.0 * figures.median, figures.rows)
            }
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{own}</td></tr>",
            peer.name, peer.rows, peer.error
        );
    }
    out + "</tbody>\n</table>\n</div>\n"
}

/// Who ran out of memory, and what the engine says to it.
fn verdicts() -> String {
    let ran_out = runs().iter().filter(|run| run.ran_out).count();
    let right = runs()
        .iter()
        .filter(|run| run.ran_out && run.memory.as_ref().is_some_and(|memory| !memory.fits))
        .count();
    let mut out = format!(
        "<p class=\"small\">{ran_out} of the {} runs ran out of memory; the engine says so of {right}. Missed:</p>\n<ul class=\"small missed\">\n",
        runs().len()
    );
    for (id, why) in MISSED_VERDICTS {
        let _ = writeln!(out, "<li>{id}: {}</li>", escape(why));
    }
    let _ = writeln!(
        out,
        "</ul>\n<p class=\"small\">Not estimated, for their hybrid (Mamba) layers: {}.</p>",
        NOT_ESTIMATED.join(", ")
    );
    out
}

fn sources(times: &[Entry], memory: &[Entry]) -> String {
    let mut out = String::from(
        "<section class=\"panel sources\" aria-labelledby=\"sources\">\n<h2 id=\"sources\">Sources</h2>\n<ul>\n",
    );
    for source in &SOURCES {
        let count =
            |entries: &[Entry]| entries.iter().filter(|entry| entry.source.family == source.family).count();
        let said = [(count(times), "step times"), (count(memory), "memory figures")];
        let said: Vec<String> = said
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let _ = writeln!(
            out,
            "<li><a href=\"{}\">{}</a>: {}</li>",
            source.link,
            escape(source.title),
            said.join(", ")
        );
    }
    out + "</ul>\n</section>\n"
}
