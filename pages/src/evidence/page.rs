//! `evidence.html`: every published run, predicted next to measured.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::compared::{Beside, Group, PEERS};
use super::entry::{Architecture, Entry, memories, step_times};
use super::figures::Figures;
use super::gaps::{MISSED_VERDICTS, NOT_ESTIMATED};
use super::held;
use super::memory::{Run, runs};
use super::plot::Plot;
use super::sources::{NEVER_FITTED, SOURCES};
use super::table::{Line, rows, statistics};
use crate::page::Page;
use shardscope::estimate::Verdict;

/// The page.
#[must_use]
pub fn page() -> Page {
    Page {
        file: "evidence.html",
        name: "Evidence",
        about: "Every published training run that the engine is compared with: measured and predicted. Each run opens as a plan.",
        scripts: &["evidence.js"],
        body,
    }
}

fn body() -> Markup {
    let (times, memory) = (step_times(), memories());
    let time_section = Section {
        key: "time",
        title: "Step time",
        about: "Seconds per training step, one point per run.",
        picture: "Predicted step time over measured step time, both in seconds and on logarithmic axes. Most points lie within \
                  10% of the diagonal; the table below has every one of them.",
        unit: "s",
        groups: Group::ALL.iter().map(|group| group.title()).collect(),
        entries: &times,
        after: peers(&times),
    };
    let memory_section = Section {
        key: "memory",
        title: "Memory",
        about: "GiB on one GPU: allocated or reserved by PyTorch, or shown by nvidia-smi. A run may have several figures.",
        picture: "Predicted memory over measured memory, both in GiB and on logarithmic axes. Most points lie within 5% of the \
                  diagonal; the table below has every one of them.",
        unit: "GiB",
        groups: Run::LINES.iter().map(|name| (*name).to_owned()).collect(),
        entries: &memory,
        after: verdicts(),
    };
    html! {
        (honesty(&times, &memory))
        (held::section())
        (filters(&times, &memory))
        (section(&time_section))
        (section(&memory_section))
        (sources(&times, &memory))
    }
}

/// How reliable the figures are; comes first.
fn honesty(times: &[Entry], memory: &[Entry]) -> Markup {
    let off = times.iter().filter(|entry| entry.error().abs() > 0.15).count();
    let seen = runs()
        .iter()
        .flat_map(|run| run.figures().into_iter().filter(|figure| run.is_fitted(figure)))
        .count();
    let never_fitted = times.iter().filter(|entry| NEVER_FITTED.contains(&entry.source.family)).count();
    html! {
        section.panel.honesty aria-labelledby="worth" {
            h2 #worth { "How to read these numbers" }
            ul {
                li {
                    "The engine's constants, one set per accelerator generation, were fitted on " (times.len() - never_fitted)
                    " of the " (times.len()) " step times. The other " (never_fitted) " come from whole sources that were added only after \
                     the constants were fixed; their errors are listed separately. No constant belongs to a model, a paper or a run."
                }
                li {
                    "Every run counts in every statistic; none is excluded. " (off) " step times are off by more than 15%. Each \
                    states the cause, or that the cause is not known."
                }
                li {
                    "Memory is computed from what the frameworks allocate. Two constants come from measurements: the \
                    allocator's fragmentation, from one source's reserved memory (on one GPU under plain PyTorch the allocator's own \
                    rules tell it), and the CUDA context, from another's logs. "
                    (seen) " of the " (memory.len()) " figures come from these two sources and use one of the constants; the other "
                    (memory.len() - seen) " were never fitted. Both are listed separately. Runs that are off by more than the usual scatter \
                    of their source state the cause."
                }
            }
        }
    }
}

/// The filters, for readers with scripts enabled; without scripts all rows are shown.
fn filters(times: &[Entry], memory: &[Entry]) -> Markup {
    let all = || times.iter().chain(memory);
    let hardware: BTreeSet<&str> = all().map(|entry| entry.accelerator.as_str()).collect();
    let software: BTreeSet<&str> = all().map(|entry| entry.software).collect();
    let used = SOURCES.iter().filter(|source| all().any(|entry| entry.source.family == source.family));
    let own = |name: &&'_ str| (name.to_string(), name.to_string());
    type Options = Vec<(String, String)>;
    let choices: [(&str, &str, Options); 4] = [
        ("source", "Source", used.map(|source| (source.family.to_owned(), source.name.to_owned())).collect()),
        ("hardware", "Hardware", hardware.iter().map(own).collect()),
        (
            "architecture",
            "Architecture",
            Architecture::ALL.map(|kind| (kind.key().to_owned(), kind.name().to_owned())).to_vec(),
        ),
        ("software", "Software", software.iter().map(own).collect()),
    ];
    html! {
        form.filters aria-label="Which runs" hidden {
            @for (name, label, options) in &choices {
                label {
                    span { (label) }
                    select.field name=(name) {
                        option value="" { "all" }
                        @for (value, label) in options { option value=(value) { (label) } }
                    }
                }
            }
            label.words {
                span { "Words" }
                input.field type="search" name="words" placeholder="175B, TP 8, fp8 …" autocomplete="off" spellcheck="false";
            }
            button.button type="reset" { "All runs" }
            p.shown role="status" {}
        }
    }
}

/// A section of the page: step times or memory.
struct Section<'a> {
    key: &'static str,
    title: &'static str,
    about: &'static str,
    picture: &'static str,
    unit: &'static str,
    groups: Vec<String>,
    entries: &'a [Entry],
    after: Markup,
}

fn section(section: &Section) -> Markup {
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
    let heading = format!("{key}-title");
    html! {
        section.panel.kind id=(key) aria-labelledby=(heading) {
            header { h2 id=(heading) { (title) } p { (about) } }
            div.beside-plot {
                figure.chart {
                    (plot.svg())
                    (legend(entries))
                    p.readout role="status" {}
                }
                div {
                    (statistics(&format!("{title}: absolute errors, and bias"), &lines, entries))
                    details.more {
                        summary { "Errors by source" }
                        (statistics(&format!("{title}: errors by source"), &of_source, entries))
                    }
                    (section.after)
                }
            }
            (rows(&format!("{title}: every run"), unit, entries))
        }
    }
}

fn legend(entries: &[Entry]) -> Markup {
    let marks = [
        ("dense", "<circle r=\"4\"/>"),
        ("experts", "<path d=\"M0-5.5 5 3.5H-5z\"/>"),
        ("sharded", "<path d=\"M-4-4h8v8h-8z\"/>"),
    ];
    let there = |kind: &Architecture| entries.iter().any(|entry| entry.architecture == *kind);
    html! {
        ul.legend {
            @for (kind, (key, mark)) in Architecture::ALL.into_iter().zip(marks).filter(|(kind, _)| there(kind)) {
                li {
                    svg.points viewBox="-7 -7 14 14" aria-hidden="true" { g class=(key) { (PreEscaped(mark)) } }
                    (kind.name())
                }
            }
            li { span.swatch.five {} "within 5%" }
            li { span.swatch.ten {} "within 10%" }
        }
    }
}

/// The accuracy of other tools on the same rows.
fn peers(times: &[Entry]) -> Markup {
    let ours = |families: &[&str]| {
        let rows = times.iter().filter(|entry| families.contains(&entry.source.family));
        Figures::new(rows.map(Entry::error).collect())
    };
    // The slices below depend on this order.
    let tables =
        ["seed-narayanan2021-tab1", "seed-azure-nemo-22.06", "korthikanti2022-tab5", "nemo-launcher"];
    let own = |rows: Beside| match rows {
        Beside::Narayanan => {
            let figures = ours(&tables[..1]);
            format!("mean {:.1}%, worst {:.1}%", 100.0 * figures.mean, 100.0 * figures.worst)
        }
        Beside::Korthikanti => {
            let figures = ours(&tables[2..3]);
            format!(
                "mean {:.1}%, worst {:.1}% of {} rows",
                100.0 * figures.mean,
                100.0 * figures.worst,
                figures.rows
            )
        }
        Beside::A100 => {
            let figures = ours(&tables);
            format!("median {:.1}% of {} of them", 100.0 * figures.median, figures.rows)
        }
    };
    html! {
        div.wide role="region" aria-label="Other tools on the same runs" tabindex="0" {
            table.figures.peers {
                caption { "Other tools on the same runs, side by side in November 2026" }
                thead {
                    tr {
                        @for head in ["Tool", "Rows", "Error of the step time", "Shardscope there"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for peer in &PEERS {
                        tr { th scope="row" { (peer.name) } td { (peer.rows) } td { (peer.error) } td { (own(peer.beside)) } }
                    }
                }
            }
        }
    }
}

/// Runs that ran out of memory, and the engine's verdicts on them.
fn verdicts() -> Markup {
    let count = |ran_out: bool, verdict: Verdict| {
        let said = |run: &&Run| run.memory.as_ref().is_some_and(|memory| memory.verdict == verdict);
        runs().iter().filter(|run| run.ran_out == ran_out).filter(said).count()
    };
    let [out, tight, fits] =
        [Verdict::OutOfMemory, Verdict::Tight, Verdict::Fits].map(|verdict| count(true, verdict));
    html! {
        p.small {
            (out + tight + fits) " of the " (runs().len()) " runs ran out of memory: the engine predicts out of memory for " (out)
            ", tight for " (tight) " (less than the headroom free, or only once PyTorch's allocator releases cached blocks) and fits for "
            (fits) ". Of the runs that ran, it predicts tight for " (count(false, Verdict::Tight)) " and out of memory for "
            (count(false, Verdict::OutOfMemory)) ". Missed:"
        }
        ul.small.missed {
            @for (id, why) in MISSED_VERDICTS { li { (id) ": " (why) } }
        }
        p.small { "Not estimated, for their hybrid (Mamba) layers: " (NOT_ESTIMATED.join(", ")) "." }
    }
}

fn sources(times: &[Entry], memory: &[Entry]) -> Markup {
    let said = |family: &str| {
        let count = |entries: &[Entry]| entries.iter().filter(|entry| entry.source.family == family).count();
        let said = [(count(times), "step times"), (count(memory), "memory figures")];
        let said = said.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        said.collect::<Vec<_>>().join(", ")
    };
    html! {
        section.panel.sources aria-labelledby="sources" {
            h2 #sources { "Sources" }
            ul {
                @for source in &SOURCES {
                    li { a href=(source.link) { (source.title) } ": " (said(source.family)) }
                }
            }
        }
    }
}
