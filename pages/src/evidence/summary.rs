//! The README's tables on step time, as Markdown.

use super::compared::{Compared, Group, PEERS, Peer, figures, figures_unseen};
use super::figures::Figures;
use super::intervals::spreads;
use super::pasted::agreements;
use super::ranking::{Seen, anchored, ranking};
use super::sources::{NEVER_FITTED, source_of};

fn line(title: &str, figures: &Figures) -> String {
    format!(
        "| {title} | {} | {:.1}% | {:.1}% | {:.0}% | {:+.1}% |",
        figures.rows,
        100.0 * figures.median,
        100.0 * figures.tenth,
        100.0 * figures.near(),
        100.0 * figures.bias
    )
}

/// Results besides the errors: intervals and the order of layouts.
fn held(compared: &[Compared]) -> String {
    let mut out = "\n| 90% interval | from | to | published runs | sources | inside, on sources not seen |\n|---|---|---|---|---|---|\n".to_owned();
    for of in spreads(compared) {
        let end = |log: f64| format!("{:+.0}%", 100.0 * log.exp_m1());
        out += &format!(
            "| {} | {} | {} | {} | {} | {:.0}% |\n",
            of.family.name,
            end(of.family.below),
            end(of.family.above),
            of.rows,
            of.sources,
            100.0 * of.covered
        );
    }
    for (seen, which) in [(Seen::Unseen, "with each source left out"), (Seen::Fitted, "as fitted")] {
        let of = ranking(compared, seen);
        out += &format!(
            "{}Layouts of one model, batch, machine and release, {which}: of {} pairs measured more than 5% apart {:.0}% are in the right order; \
             in {:.0}% of {} groups the layout found fastest is within 3% of the best.\n",
            if seen == Seen::Unseen { "\n" } else { "" },
            of.pairs,
            100.0 * of.share(),
            100.0 * of.picked(),
            of.groups
        );
    }
    out += "\n| one measured step of a run, its other layouts predicted | pairs | without: median | 90% within | with: median | 90% within |\n|---|---|---|---|---|---|\n";
    for of in anchored(compared) {
        // A family that one measured step does not help is not adjusted, as in the engine.
        let with = if of.family.common > 0.0 { &of.shared } else { &of.alone };
        let [alone, with] = [&of.alone, with].map(|of| [of.median, of.tenth].map(|error| 100.0 * error));
        out += &format!(
            "| {} | {} | {:.1}% | {:.1}% | {:.1}% | {:.1}% |\n",
            of.family.name, of.alone.rows, alone[0], alone[1], with[0], with[1]
        );
    }
    out
}

/// What users paste, compared with the complete settings of the same run.
fn pastes() -> String {
    let mut out = "\n| pasted, beside the complete settings of the same run | pastes | not modelled | apart: median | 90% within | \
                   complete: median error | paste: median error |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for of in agreements() {
        let [apart, tenth, complete, paste] =
            [of.apart.median, of.apart.tenth, of.complete.median, of.paste.median].map(|error| 100.0 * error);
        out += &format!(
            "| {} | {} | {} | {apart:.1}% | {tenth:.1}% | {complete:.1}% | {paste:.1}% |\n",
            of.name, of.pastes, of.stopped
        );
    }
    out
}

/// The tables of the README, as Markdown.
pub fn summary(compared: &[Compared]) -> String {
    const HEAD: &str = "median error | 90% of rows within | within 15% | bias |";
    let fitted = compared.iter().filter(|one| one.row.is_fitted()).count();
    let kept: Vec<Group> = Group::ALL.into_iter().filter(|group| matches!(group, Group::Kept(_))).collect();
    let mut out = format!(
        "The constants were fitted on {fitted} of {} rows; the other {} come from sources added only after the constants \
         were fixed. Every row counts in the tables; none is excluded. `tests/data/measured/causes.tsv` lists each row \
         that is off by more than 15%, with the cause. \"Left out\" is a row's error with constants fitted without its \
         source.\n\n",
        compared.len(),
        compared.len() - fitted
    );
    out += &format!("| sources never fitted | rows | {HEAD}\n|---|---|---|---|---|---|\n");
    for family in NEVER_FITTED {
        let rows = compared.iter().filter(|one| one.row.family() == family);
        out += &line(source_of(family).name, &Figures::new(rows.map(|one| one.error).collect()));
        out += "\n";
    }
    for group in &kept {
        out += &line(&group.title(), &figures(compared, *group));
        out += "\n";
    }
    out += &format!(
        "\n| rows that constants were fitted on | rows | {HEAD} left out: median | 90% within |\n|---|---|---|---|---|---|---|---|\n"
    );
    for group in Group::ALL.into_iter().filter(|group| !kept.contains(group)) {
        let unseen = figures_unseen(compared, group);
        out += &line(&group.title(), &figures(compared, group));
        out += &format!(" {:.1}% | {:.1}% |\n", 100.0 * unseen.median, 100.0 * unseen.tenth);
    }
    out += &held(compared);
    out += &pastes();
    out += "\n| peer | on these rows | error of the step time |\n|---|---|---|\n";
    for Peer { name, rows, error, .. } in PEERS {
        out += &format!("| {name} | {rows} | {error} |\n");
    }
    out
}
