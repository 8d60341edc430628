//! Accuracy on runs that the constants have not seen: errors, intervals, the order of layouts, one measured step.

use maud::{Markup, html};

use super::compared::{Group, compared, figures, figures_unseen};
use super::intervals::spreads;
use super::pasted::agreements;
use super::ranking::{Seen, anchored, ranking};

/// The section.
#[must_use]
pub(super) fn section() -> Markup {
    html! {
        section.panel aria-labelledby="unseen" {
            h2 #unseen { "On runs the constants have not seen" }
            p {
                "Leave-one-source-out: each source is left out once, the constants are fitted on all the others, and the source's \
         rows are predicted with them. Sources that were never fitted have rows of their own."
            }
            (errors())
            (intervals())
            (order())
            (pastes())
        }
    }
}

/// What users paste, compared with the complete settings of the same run.
fn pastes() -> Markup {
    let rows: Vec<Vec<String>> = agreements()
        .into_iter()
        .map(|of| {
            let figures = [of.apart, of.complete, of.paste].map(|of| [of.median, of.tenth]);
            let counts = [of.name.to_owned(), of.pastes.to_string(), of.stopped.to_string()];
            counts.into_iter().chain(figures.into_iter().flatten().map(percent)).collect()
        })
        .collect();
    let heads = [
        "Pasted",
        "Pastes",
        "Not modelled",
        "From the complete settings: median",
        "90\u{a0}% within",
        "Complete settings, error: median",
        "90\u{a0}% within",
        "Paste, error: median",
        "90\u{a0}% within",
    ];
    html! {
        (table("A recipe's name or a public script, beside the complete settings of the same run", &heads, &rows))
        p.small {
            "What a paste leaves out takes its release's default. Recipes are those of August 2026; before June most MoE recipes neither \
         overlapped the expert all-to-all nor captured whole steps in CUDA graphs. ModelLink's scripts give tokenizers by path, so \
         the vocabulary size is answered."
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
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
    table("Errors as fitted, and with each run's source left out", &heads, &rows)
}

fn intervals() -> Markup {
    let rows: Vec<Vec<String>> = spreads(compared())
        .into_iter()
        .map(|of| {
            let end = |log: f64| format!("{:+.0}%", 100.0 * log.exp_m1());
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
    let heads = ["Family", "From", "To", "Rows", "Sources", "Coverage on unseen sources"];
    table("90% intervals around the estimate", &heads, &rows)
}

fn order() -> Markup {
    let rows: Vec<Vec<String>> = [(Seen::Fitted, "as fitted"), (Seen::Unseen, "each source left out")]
        .into_iter()
        .map(|(seen, name)| {
            let of = ranking(compared(), seen);
            // The regrets are sorted; by nearest rank, as in `Figures`.
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
        "Ordered correctly",
        "Pick within 3\u{a0}% of the best",
        "Regret, 90th percentile",
    ];
    html! {
        (table("Ranking layouts of the same model, batch, machine and release: pairs measured more than 5% apart", &heads, &rows))
        (one_step())
    }
}

/// How much one measured step of a run improves the predictions for its other layouts.
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
        "Share carried over",
        "Not calibrated: median",
        "90\u{a0}% within",
        "All carried over: median",
        "90\u{a0}% within",
        "Share from other sources: median",
        "90\u{a0}% within",
    ];
    html! {
        (table("One measured step of a run, applied to its other layouts and GPU counts", &heads, &rows))
        p.small {
            "Each run of a group serves once as the measured one, with constants that have not seen its source. With experts \
         and with sharded weights, most of the residual belongs to the run: its router, its network, its release. With \
         dense models it belongs to the layout, so one measured step does not correct the others."
        }
    }
}
