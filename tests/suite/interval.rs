//! Intervals of the step time, the order of layouts, and the value of one measured step: recomputed from the published
//! runs, each with constants that were fitted without its own source.

use std::collections::BTreeSet;

use pages::evidence::{NEVER_FITTED, Row, Seen, compared, digest, ranking, seconds_without, spreads};
use shardscope::estimate::compute::{CALIBRATED_ON, Known, MEASURED};
use shardscope::estimate::time::{FAMILIES, Interval, time};
use shardscope::launch::plan_from_flags;
use shardscope::plan::Generation;

/// The widths in the engine equal those of the residuals, to a hundredth, and are never narrower.
#[test]
fn widths_are_those_of_the_residuals() {
    for (spread, family) in spreads(compared()).iter().zip(FAMILIES) {
        println!(
            "{}: {:.3} to {:.3}, covered {:.3}",
            family.name, spread.below, spread.above, spread.covered
        );
        assert_eq!((spread.rows, spread.sources), (family.rows, family.sources), "{}", family.name);
        assert!(
            (0.0..0.011).contains(&(spread.below - family.below)),
            "{}: {:.4}",
            family.name,
            spread.below
        );
        assert!(
            (0.0..0.011).contains(&(family.above - spread.above)),
            "{}: {:.4}",
            family.name,
            spread.above
        );
    }
}

/// Widths from all sources but one cover that one: between 85 and 95 % of its rows, for a family together.
#[test]
fn intervals_hold_on_sources_that_they_did_not_see() {
    for spread in spreads(compared()) {
        assert!(
            (0.85..=0.95).contains(&spread.covered),
            "{}: {:.3} of {} rows",
            spread.family.name,
            spread.covered,
            spread.rows
        );
    }
}

/// The interval contains the estimate, is wider if the part is not calibrated, and names what would narrow it.
#[test]
fn every_interval_names_what_would_narrow_it() {
    for row in Row::all().iter().step_by(7) {
        let time = time(&row.try_plan().expect("a plan"));
        let (id, interval) = (row.text("id"), &time.interval);
        assert!(interval.low < time.step && time.step < interval.high, "{id}");
        assert!(!interval.narrows.is_empty(), "{id}");
        if !MEASURED.contains(&row.text("gpu")) {
            assert!(interval.high.get() > 1.35 * time.step.get(), "{id}");
            assert!(interval.narrows[0].contains("not calibrated"), "{id}");
        }
    }
}

/// Every source used to fit constants is left out once, so that its rows have a prediction without it.
#[test]
fn every_source_is_left_out_once() {
    for one in compared() {
        let (row, plan) = (&one.row, one.resolution.plan.as_ref().expect("a plan"));
        let generation = plan.cluster().accelerator.generation.name();
        let without = seconds_without(row.family(), plan);
        let kept = NEVER_FITTED.contains(&row.family());
        assert_eq!(without.is_none(), kept, "{} on {generation}", row.text("id"));
    }
}

/// Tables that take minutes to compute are up to date with the rows, the constants and the model.
#[test]
fn computed_tables_are_current() {
    let now = digest(compared());
    for (table, option) in [("left_out.tsv", "--left-out"), ("sensitivity.tsv", "--sensitivity")] {
        let lines = include_str!("../data/measured/computed.tsv").lines();
        let of = lines.filter_map(|line| line.split_once('\t')).find(|(name, _)| *name == table);
        assert_eq!(
            of.map(|(_, digest)| digest),
            Some(now.as_str()),
            "{table} is stale: cargo run --release --example fit -- {option}"
        );
    }
}

/// Runs that the catalog lists as measured are those of the rows.
#[test]
fn measured_accelerators_have_rows() {
    for name in MEASURED {
        let known = Row::all().iter().any(|row| row.text("gpu") == name && row.is_fitted());
        assert!(known, "{name}");
    }
}

/// Layouts with the same model, batch, machine and release are ranked in the order in which they were measured: the
/// agreement reached must not drop.
#[test]
fn layouts_are_put_in_order() {
    for (seen, right, picked) in [(Seen::Fitted, 0.93, 0.88), (Seen::Unseen, 0.92, 0.87)] {
        let of = ranking(compared(), seen);
        println!(
            "{seen:?}: {} groups, {} pairs, {:.3} right, {:.3} picked",
            of.groups,
            of.pairs,
            of.share(),
            of.picked()
        );
        assert!(of.groups >= 59 && of.pairs >= 400, "{seen:?}");
        assert!(of.share() >= right, "{seen:?}: {:.3} ordered right", of.share());
        assert!(of.picked() >= picked, "{seen:?}: {:.3} picked within 3 %", of.picked());
    }
}

/// Sets listed as barely known have fitted rows from one or two sources, or none.
#[test]
fn barely_known_sets_have_few_sources() {
    for on in CALIBRATED_ON {
        let rows = compared().iter().filter(|one| one.row.is_fitted());
        let sources: BTreeSet<_> = rows
            .filter(|one| {
                one.resolution.plan.as_ref().is_some_and(|plan| {
                    silicon(plan.cluster().accelerator.generation) == silicon(on.generation)
                })
            })
            .map(|one| one.row.family())
            .collect();
        let known = if sources.len() > 2 { Known::Well } else { Known::Barely };
        assert_eq!(on.known, known, "{:?}: {sources:?}", on.generation);
    }
}

/// The generation whose constants are shared with `generation` or from which its constants are derived.
fn silicon(generation: Generation) -> Generation {
    match generation {
        Generation::A100Of40 => Generation::A100,
        Generation::H100Hbm2e => Generation::H100,
        Generation::GB200 | Generation::GB300 => Generation::B200,
        other => other,
    }
}

/// A part without any measurements has a family that says so, whoever makes it; its interval is wider than any other.
#[test]
fn parts_never_measured_have_a_family_of_their_own() {
    let of = |name: &str| {
        let flags = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
             --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 32000 \
             --use-flash-attn";
        time(&plan_from_flags(flags, 8, 8, name).expect("a plan")).interval
    };
    let ratio = |interval: &Interval| interval.high.get() / interval.low.get();
    let measured = of("H100-SXM");
    assert_eq!(measured.family.name, "dense");
    for name in ["TPU-v4", "TPU-v5e", "TPU-v5p", "TPU-v6e", "L4", "RTX-4090"] {
        let interval = of(name);
        assert_eq!(
            (interval.family.name, interval.family.rows),
            ("accelerators never measured", 0),
            "{name}"
        );
        assert!(FAMILIES.iter().all(|family| family.name != interval.family.name));
        for family in FAMILIES {
            assert!(ratio(&interval) > 3.9 * (family.above - family.below).exp(), "{name}: {}", family.name);
        }
    }
    for name in ["MI300X", "MI355X", "V100-SXM2-32GB", "Ascend-910B"] {
        assert!(of(name).family.is_of_few_sources(), "{name}");
    }
}
