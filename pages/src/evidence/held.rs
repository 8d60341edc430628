//! What holds on runs that constants did not see: errors, intervals, the order of layouts, one measured step.

use maud::{Markup, html};

use super::compared::{Group, compared, figures, figures_unseen};
use super::intervals::spreads;
use super::ranking::{Seen, anchored, ranking};

/// The section.
#[must_use]
pub(super) fn section() -> Markup {
    html! {
        section.panel aria-labelledby="unseen" {
            h2 #unseen { "On runs that the constants did not see" }
            p {
                "Each source is left out once, the constants are found again on all the others, and its rows are predicted with \
                 those. Sources never fitted have lines of their own."
            }
            (errors())
            (intervals())
            (order())
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn table(caption: &str, heads: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table.figures {
                caption { (caption) }
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                @if place == 0 { th scope="row" { (cell) } } @else { td.number { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn errors() -> Markup {
    let rows: Vec<Vec<String>> = Group::ALL
        .into_iter()
        .map(|group| {
            let (as_is, unseen) = (figures(compared(), group), figures_unseen(compared(), group));
            let cells = [as_is.median, as_is.tenth, unseen.median, unseen.tenth, unseen.bias];
            [group.title(), as_is.rows.to_string()].into_iter().chain(cells.map(percent)).collect()
        })
        .collect();
    let heads =
        ["Runs", "Rows", "Median", "90\u{a0}% within", "Left out: median", "90\u{a0}% within", "Bias"];
    table("Errors as fitted, and with each row's source left out", &heads, &rows)
}

fn intervals() -> Markup {
    let rows: Vec<Vec<String>> = spreads(compared())
        .into_iter()
        .map(|of| {
            let end = |log: f64| format!("{:+.0} %", 100.0 * log.exp_m1());
            vec![
                of.family.name.to_owned(),
                end(of.family.below),
                end(of.family.above),
                of.rows.to_string(),
                of.sources.to_string(),
                percent(of.covered),
            ]
        })
        .collect();
    let heads = ["Family", "From", "To", "Rows", "Sources", "Inside, on sources not seen"];
    table("90 % intervals around the estimate", &heads, &rows)
}

fn order() -> Markup {
    let rows: Vec<Vec<String>> = [(Seen::Fitted, "as fitted"), (Seen::Unseen, "each source left out")]
        .into_iter()
        .map(|(seen, name)| {
            let of = ranking(compared(), seen);
            let regret = of.regrets.get(of.groups * 9 / 10).copied().unwrap_or(0.0);
            vec![
                name.to_owned(),
                of.groups.to_string(),
                of.pairs.to_string(),
                percent(of.share()),
                percent(of.picked()),
                percent(regret),
            ]
        })
        .collect();
    let heads = [
        "Constants",
        "Groups",
        "Pairs",
        "Ordered right",
        "Pick within 3\u{a0}% of the best",
        "Regret of 9 in 10 at most",
    ];
    html! {
        (table("Layouts of one model, batch, machine and release: pairs measured more than 5 % apart", &heads, &rows))
        (one_step())
    }
}

/// What one measured step of a run is worth to its other layouts.
fn one_step() -> Markup {
    let rows: Vec<Vec<String>> = anchored(compared())
        .into_iter()
        .map(|of| {
            let errors = [&of.alone, &of.scaled, &of.shared].into_iter().flat_map(|of| [of.median, of.tenth]);
            let cells =
                [of.family.name.to_owned(), of.alone.rows.to_string(), format!("{:.1}", of.family.common)];
            cells.into_iter().chain(errors.map(percent)).collect()
        })
        .collect();
    let heads = [
        "Family",
        "Pairs",
        "Part taken over",
        "Without: median",
        "90\u{a0}% within",
        "All taken over: median",
        "90\u{a0}% within",
        "Part from other sources: median",
        "90\u{a0}% within",
    ];
    html! {
        (table("One measured step of a run, and its other layouts and numbers of accelerators", &heads, &rows))
        p.small {
            "Each run of a group is the measured one once; constants have not seen its source. With experts and with sharded \
             weights most of a residual is the run's: its router, its network, its release. Of dense models and of parts known from \
             few sources it is the layout's own, and one measured step changes no other."
        }
    }
}
