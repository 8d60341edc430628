//! One measured step of a run: its effect on estimates for the run's other layouts is derived from published runs, and
//! it has none if it does not help.

use pages::evidence::{Row, anchored, compared};
use shardscope::estimate::time::{Family, exact_step_seconds, measured_factor, time};
use shardscope::launch::resolve;
use shardscope::plan::Plan;

/// The common factor is applied if it helps on sources that were not used to find it, and not otherwise.
#[test]
fn what_layouts_have_in_common_is_found_on_published_runs() {
    for of in anchored(compared()) {
        // By mean and by median: a median alone can flip by a tiny amount if errors are small.
        let helps = of.shared.median < of.alone.median && of.shared.mean < of.alone.mean;
        println!(
            "{}: {} pairs, alone {:.4}, part of other sources {:.4}, all {:.4}",
            of.family.name, of.alone.rows, of.alone.median, of.shared.median, of.scaled.median
        );
        let expected = if helps { of.common } else { 0.0 };
        assert!((of.family.common - expected).abs() < 1e-9, "{}: {expected}", of.family.name);
        assert!(of.alone.rows > 60, "{}: {} pairs", of.family.name, of.alone.rows);
    }
}

fn with_ratio(row: &Row, ratio: &str) -> Plan {
    let mut settings = row.settings().0;
    settings.push(("measured_over_estimated".to_owned(), ratio.to_owned()));
    resolve(&[], &settings).plan.expect("a plan")
}

/// A measured step makes every part of a step longer by the same factor, including the schedule's.
#[test]
fn a_measured_step_corrects_all_parts_alike() {
    let mut corrected = 0;
    for row in Row::all().iter().step_by(7) {
        let (id, plain) = (row.text("id"), row.try_plan().expect("a plan"));
        let plan = with_ratio(row, "1.25");
        let factor = measured_factor(&plan);
        assert!((factor - 1.25_f64.powf(Family::from_plan(&plan).common)).abs() < 1e-12, "{id}");
        assert!((measured_factor(&plain) - 1.0).abs() < 1e-12, "{id}");
        corrected += usize::from(factor > 1.0);
        let (before, after) = (time(&plain), time(&plan));
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * other.abs().max(1e-9);
        assert!(near(after.step.get(), factor * before.step.get()), "{id}");
        assert!(near(exact_step_seconds(&plan).get(), after.step.get()), "{id}");
        assert!(near(after.lower_bound.get(), factor * before.lower_bound.get()), "{id}");
        for (one, other) in after.breakdown.children().iter().zip(before.breakdown.children()) {
            let slack = 1e-6 * before.step.get();
            assert!(
                (one.value().get() - factor * other.value().get()).abs() <= slack,
                "{id}: {}",
                one.label()
            );
        }
    }
    assert!(corrected > 5, "{corrected} plans corrected");
}
