//! Two plans side by side.

use shardscope::report::compare::{Amount, Comparison, Side, compare_plans};
use shardscope::session::{Event, Shown, State, apply};

fn shown(sets: &[(&str, &str)]) -> Shown {
    let set = |state, &(name, value): &(&str, &str)| {
        apply(state, Event::Set { name: name.to_owned(), value: value.to_owned() })
    };
    let state = sets.iter().fold(State::default(), set);
    assert!(state.shown.is_some(), "{:?}", state.answer.resolution.diagnostics);
    (*state.shown.expect("a plan")).clone()
}

fn compared(before: &[(&str, &str)], after: &[(&str, &str)]) -> Comparison {
    let (before, after) = (shown(before), shown(after));
    let side = |shown| -> Side<'_> {
        let shown: &Shown = shown;
        Side { resolution: &shown.answer.resolution, plan: &shown.plan, report: &shown.report }
    };
    compare_plans(side(&before), side(&after))
}

fn change(comparison: &Comparison, label: &str) -> Option<String> {
    let lines = comparison.sections.iter().flat_map(|section| &section.lines);
    lines.into_iter().find(|line| line.label == label).unwrap_or_else(|| panic!("no {label}")).change()
}

#[test]
fn a_plan_beside_itself_differs_in_nothing() {
    let comparison = compared(&[], &[]);
    assert!(comparison.settings.is_empty() && comparison.memory_causes.is_empty());
    assert!(comparison.time_causes.is_empty());
    let lines = comparison.sections.iter().flat_map(|section| &section.lines);
    assert!(lines.clone().count() > 30);
    assert!(lines.into_iter().all(|line| line.change().is_none() && line.is_better().is_none()));
}

#[test]
fn a_smaller_micro_batch_keeps_less_and_says_where() {
    let comparison = compared(&[], &[("micro_batch_size", "2")]);
    let names: Vec<_> = comparison.settings.iter().map(|one| (one.name, one.stated)).collect();
    assert_eq!(names, [("micro_batch_size", true), ("num_micro_batches", false)]);
    assert_eq!((comparison.settings[0].before.as_str(), comparison.settings[0].after.as_str()), ("4", "2"));
    let less = change(&comparison, "activations").expect("a change");
    assert!(less.starts_with('−') && less.contains("GiB") && less.contains('%'), "{less}");
    assert_eq!(change(&comparison, "optimizer"), None);
    let first = &comparison.memory_causes[0];
    assert!(first.path.starts_with("activations › "), "{}", first.path);
    let lost: f64 =
        comparison.memory_causes.iter().map(|cause| cause.before.number() - cause.after.number()).sum();
    assert!(lost > 0.0);
}

#[test]
fn causes_add_up_to_the_difference_when_there_are_few() {
    let comparison = compared(&[], &[("use_distributed_optimizer", "false")]);
    let of = |label: &str| {
        let lines = comparison.sections.iter().flat_map(|section| &section.lines);
        let line = lines.into_iter().find(|line| line.label == label).expect("a line");
        (line.after.expect("a number").number() - line.before.expect("a number").number(), line.is_better())
    };
    let (more, better) = of("optimizer");
    assert!(more > 0.0 && better == Some(false));
    let optimizer = comparison.memory_causes.iter().filter(|cause| cause.path.starts_with("optimizer"));
    let explained: f64 = optimizer.map(|cause| cause.after.number() - cause.before.number()).sum();
    assert_eq!(explained, more);
}

#[test]
fn plans_with_other_stages_stand_beside_each_other() {
    let comparison = compared(&[], &[("pipeline_model_parallel_size", "1")]);
    let lines = comparison.sections.iter().flat_map(|section| &section.lines);
    let gone = lines.into_iter().find(|line| line.label == "stage 1").expect("the stage that is gone");
    assert!(gone.before.is_some() && gone.after.is_none() && gone.change().is_none());
    assert_eq!(Amount::Share(0.5).difference(Amount::Share(0.25)), "+25.0 points");
}

#[test]
fn what_only_one_plan_has_differs_from_nothing() {
    // Without pipeline stages there is no p2p communication and no bubble; in either direction there is a difference.
    let flat = [("pipeline_model_parallel_size", "1")];
    for (before, after, sign) in [(&[][..], &flat[..], '−'), (&flat, &[], '+')] {
        let comparison = compared(before, after);
        for label in ["pipeline, bytes of a GPU", "pipeline, calls of a GPU", "incl. pipeline bubble"] {
            let change = change(&comparison, label).unwrap_or_else(|| panic!("no difference of {label}"));
            assert!(change.starts_with(sign), "{label}: {change}");
        }
    }
}
