//! The output of Hugging Face's Trainer: tqdm's progress line, and the metrics of the whole run.
//! Form: `tqdm/std.py` (format_meter), `transformers/trainer_utils.py` (speed_metrics).

use std::collections::BTreeMap;

use super::figures::{Measured, Remark, Step, Tool};
use super::number::{MOST_SAMPLES, leading, median, positive, whole, whole_at_end};

/// Progress of one bar.
#[derive(Default)]
struct Bar {
    rates: Vec<f64>,
    /// Its position at its first and its last line.
    first: Option<u64>,
    last: u64,
}

/// The figures of the lines; none if there are neither bars nor metrics.
pub(crate) fn read(text: &str) -> Option<Measured> {
    // Training has a bar, and evaluations may have others: distinguished by their totals.
    let mut bars: BTreeMap<u64, Bar> = BTreeMap::new();
    let mut mean = None;
    let mut samples = 0;
    // tqdm writes over its line with a carriage return.
    for line in text.split(['\n', '\r']) {
        if let Some((done, of, seconds)) = progress(line).filter(|_| samples < MOST_SAMPLES) {
            samples += 1;
            let bar = bars.entry(of).or_default();
            let first = *bar.first.get_or_insert(done);
            // A progress line is printed again after any output in between.
            if done > bar.last.max(first) {
                bar.last = done;
                bar.rates.extend(seconds);
            }
        }
        mean = metric(line, "train_steps_per_second").map(|rate| 1.0 / rate).and_then(positive).or(mean);
    }
    // The mean comes with the run's end, and the median of single steps is closer to its pace.
    let longest = bars.into_iter().max_by_key(|(_, bar)| bar.rates.len());
    let paced = longest.and_then(|(_, bar)| {
        // A resumed run starts its bar in the middle.
        let count = bar.last.saturating_sub(bar.first.unwrap_or(0));
        median(bar.rates).filter(|_| count > 0).map(|seconds| Step { seconds, count })
    });
    let (step, remark) = match (paced, mean) {
        (Some(step), _) => (step, Remark::Smoothed),
        (None, Some(seconds)) => (Step { seconds, count: 1 }, Remark::Mean),
        (None, None) => return None,
    };
    Some(Measured { step: Some(step), remark: Some(remark), ..Measured::by(Tool::TrainerLog) })
}

/// A line of progress without a description before it: steps done, of how many, and seconds per step if stated.
/// `  3%|▎         | 30/1000 [02:30<1:20:50,  5.00s/it]`
fn progress(line: &str) -> Option<(u64, u64, Option<f64>)> {
    let (percent, rest) = line.split_once("%|")?;
    whole(percent).filter(|_| percent.trim_start().bytes().all(|sign| sign.is_ascii_digit()))?;
    let (_, rest) = rest.split_once("| ")?;
    let (counted, rest) = rest.split_once(" [")?;
    let (done, of) = counted.split_once('/')?;
    let (inside, _) = rest.split_once(']')?;
    let (_, rate) = inside.rsplit_once(',')?;
    let seconds = match (rate.trim().strip_suffix("s/it"), rate.trim().strip_suffix("it/s")) {
        (Some(seconds), _) => leading(seconds),
        (None, Some(rate)) => leading(rate).and_then(positive).map(|rate| 1.0 / rate),
        (None, None) => return None,
    };
    Some((whole_at_end(done)?, whole(of)?, seconds.and_then(positive)))
}

/// The number of a metric as a dict, or as the table that `log_metrics` prints.
fn metric(line: &str, name: &str) -> Option<f64> {
    let (_, behind) = line.split_once(name)?;
    leading(behind.trim_start_matches(['\'', '"', ':', '=', ' ']))
}
