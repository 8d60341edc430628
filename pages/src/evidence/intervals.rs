//! Residuals by family, the widths that follow from them, and how well these hold on unseen sources.

use std::collections::{BTreeMap, BTreeSet};

use shardscope::estimate::time::{FAMILIES, Family};

use super::compared::Compared;

/// Share of the other sources' residuals that lies outside a width at either end. Less than a twentieth, because an
/// unseen source scatters more than the seen ones.
const TAIL: f64 = 0.04;

/// Widths of a family, as logarithms of measured over predicted.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The family.
    pub family: Family,
    /// Lower end.
    pub below: f64,
    /// Upper end.
    pub above: f64,
    /// Rows.
    pub rows: u64,
    /// Sources.
    pub sources: u64,
    /// Share of rows inside the widths derived from the other sources, one source at a time.
    pub covered: f64,
}

/// Logarithms of measured over predicted by source, predicted without the source's own rows.
type Residuals = BTreeMap<&'static str, Vec<f64>>;

/// The widths of every family.
#[must_use]
pub fn spreads(compared: &[Compared]) -> Vec<Spread> {
    FAMILIES.into_iter().map(|family| spread(compared, family)).collect()
}

fn spread(compared: &[Compared], family: Family) -> Spread {
    let mut residuals = Residuals::new();
    for one in compared {
        let Some(plan) = &one.resolution.plan else { continue };
        // Without constants of its own, a row only shows how far off another generation's are, not the family's
        // model.
        if Family::from_plan(plan).name == family.name && one.is_calibrated() {
            // A part known from a single fitted source has no constants without it. Its rows keep the fitted
            // constants, and the check compares the sources of the family, one of which was never fitted.
            let error = if family.is_of_few_sources() { one.error } else { one.unseen };
            // ln(measured / predicted): `error` is predicted / measured - 1.
            residuals.entry(one.row.family()).or_default().push(-error.ln_1p());
        }
    }
    let rows: usize = residuals.values().map(Vec::len).sum();
    let (below, above) = ends(&residuals, None);
    let inside: usize = residuals
        .iter()
        .map(|(source, own)| {
            let (below, above) = ends(&residuals, Some(source));
            own.iter().filter(|of| (below..=above).contains(*of)).count()
        })
        .sum();
    let covered = inside as f64 / rows.max(1) as f64;
    Spread { family, below, above, rows: rows as u64, sources: residuals.len() as u64, covered }
}

/// The ends from the rows of all sources but one; from all sources if there is no other.
fn ends(residuals: &Residuals, left_out: Option<&str>) -> (f64, f64) {
    let others = |without: Option<&str>| {
        let rows = residuals.iter().filter(|(source, _)| Some(**source) != without);
        let mut rows: Vec<f64> = rows.flat_map(|(_, own)| own.iter().copied()).collect();
        rows.sort_by(f64::total_cmp);
        rows
    };
    let rows = others(left_out);
    let rows = if rows.is_empty() { others(None) } else { rows };
    (at(&rows, TAIL), at(&rows, 1.0 - TAIL))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn at(sorted: &[f64], share: f64) -> f64 {
    // If one more residual joins n of the same kind, every rank is equally likely for it, so a quantile is at that
    // share of n + 1 ranks, beyond the quantile of the rows themselves (Vovk et al., conformal prediction). Linear
    // between neighbours.
    let place = (share * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, sorted.len().saturating_sub(1) as f64);
    let (low, part) = (place.floor() as usize, place.fract());
    let value = |index: usize| sorted.get(index).or(sorted.last()).copied().unwrap_or(0.0);
    value(low) * (1.0 - part) + value(low + 1) * part
}

/// Names of the sources behind a family's widths.
#[must_use]
pub fn sources_of(compared: &[Compared], family: Family) -> BTreeSet<&'static str> {
    let of = |one: &&Compared| {
        one.resolution.plan.as_ref().is_some_and(|plan| Family::from_plan(plan).name == family.name)
    };
    compared.iter().filter(of).map(|one| one.row.family()).collect()
}
