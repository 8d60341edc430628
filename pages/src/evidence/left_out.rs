//! The engine's prediction for a row when its own source is left out: constants fitted again on all the others.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use shardscope::estimate::compute::{Calibration, Share, calibration};
use shardscope::estimate::time::step_seconds_with;
use shardscope::plan::Plan;

/// Source, generation, constant, value; written by `cargo run --example fit -- --left-out`.
const LEFT_OUT: &str = include_str!("../../../tests/data/measured/left_out.tsv");

type Values = BTreeMap<(&'static str, &'static str), Vec<(Share, f64)>>;

fn values() -> &'static Values {
    static ALL: OnceLock<Values> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Values::new();
        for line in LEFT_OUT.lines().skip(1) {
            let [source, generation, constant, value] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("not four columns: {line}")
            };
            let share = Share::ALL.into_iter().find(|share| share.name() == constant);
            let share = share.unwrap_or_else(|| panic!("no constant {constant}"));
            all.entry((source, generation)).or_default().push((share, value.parse().expect("a value")));
        }
        all
    })
}

/// The constants of `plan`'s accelerator as fitted on the sources other than `source`; none if `source` does not
/// affect them.
#[must_use]
pub fn without(source: &str, plan: &Plan) -> Option<Calibration> {
    let accelerator = &plan.cluster().accelerator;
    let found = values()
        .iter()
        .find(|((name, generation), _)| *name == source && *generation == accelerator.generation.name());
    let (_, values) = found?;
    // Constants that the source does not affect stay as they are.
    let mut set = calibration(accelerator);
    for (share, value) in values {
        share.set(&mut set, *value);
    }
    Some(set)
}

/// Seconds per step of `plan`, predicted without `source`.
#[must_use]
pub fn seconds_without(source: &str, plan: &Plan) -> Option<f64> {
    without(source, plan).map(|set| step_seconds_with(plan, set).get())
}
