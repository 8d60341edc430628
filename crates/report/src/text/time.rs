//! The time of a step: the estimate between its bounds, rates, and where the time goes.

use super::sheet::Sheet;
use shardscope_estimate::time::Time;
use shardscope_explain::Breakdown;
use shardscope_units::{Seconds, decimal, percent, seconds, tflops};

pub(super) fn write(sheet: &mut Sheet, time: &Time) {
    sheet.heading("Step time");
    let family = &time.interval.family;
    let [step, low, high] = [time.step, time.interval.low, time.interval.high].map(seconds);
    // No run was ever compared with such a plan, so the interval is an assumption and must not read as measured.
    sheet.line(&if family.is_earned() {
        let (name, rows, sources) = (family.name, family.rows, family.sources);
        format!(
            "{step}; nine of ten such runs take {low} to {high} ({name}: {rows} published runs of {sources} sources)"
        )
    } else {
        format!("{step}; assumed between {low} and {high} ({}: nothing was compared)", family.name)
    });
    if !time.interval.narrows.is_empty() {
        sheet.line(&format!("What would narrow that: {}", time.interval.narrows.join("; ")));
    }
    sheet.line(&format!(
        "Fully overlapped {}, nothing overlapped {}",
        seconds(time.lower_bound),
        seconds(time.upper_bound)
    ));
    sheet.line(&format!(
        "{} {} per second, {} per GPU; {} per GPU, MFU {}, HFU {}; bubble {} ({})",
        decimal(time.tokens_per_second, 0),
        time.counted_tokens,
        decimal(time.tokens_per_second_per_gpu, 0),
        tflops(time.model_rate),
        percent(time.mfu),
        percent(time.hfu),
        percent(time.bubble_fraction),
        time.schedule.name
    ));
    if let Some(training) = &time.training {
        sheet.line(&training.sentence());
    }
    let mut rows = Vec::new();
    collect(&time.breakdown, time.step, 0, &mut rows);
    sheet.table(&["where it goes", "time", "share"], &rows);
    let mut counts = Vec::new();
    for convention in &time.flops.conventions() {
        let flops =
            convention.flops.map_or("does not apply".to_owned(), |flops| format!("{:.4e}", flops.get()));
        counts.push(vec![convention.name.to_owned(), flops, convention.formula.expression.to_owned()]);
    }
    sheet.table(&["FLOPs per step by convention", "FLOP", "formula"], &counts);
}

/// Levels of the breakdown below the step that are listed; the document has all of them.
const LISTED: usize = 2;

fn collect(node: &Breakdown<Seconds>, step: Seconds, depth: usize, rows: &mut Vec<Vec<String>>) {
    // The root is kept even at zero; otherwise the table would be empty.
    if depth > LISTED || depth > 0 && node.value() == Seconds::ZERO {
        return;
    }
    let share = node.value().get() / step.get().max(f64::MIN_POSITIVE);
    let label = format!("{}{}", "  ".repeat(depth), node.label());
    rows.push(vec![label, seconds(node.value()), percent(share)]);
    for child in node.children() {
        collect(child, step, depth + 1, rows);
    }
}
