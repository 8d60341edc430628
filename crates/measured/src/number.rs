//! Numbers in the output of tools.

/// Most samples of one kind that are stored: a bound on memory for a hostile file.
pub(crate) const MOST_SAMPLES: usize = 100_000;

/// The number that `text` begins with, ignoring leading blanks.
pub(crate) fn leading(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E')))
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The whole number that `text` begins with, ignoring leading blanks.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// The whole number that `text` ends with, ignoring trailing blanks.
pub(crate) fn whole_at_end(text: &str) -> Option<u64> {
    let text = text.trim_end();
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    text.get(text.len() - digits..)?.parse().ok()
}

/// A positive time. Unit: second.
pub(crate) fn positive(seconds: f64) -> Option<f64> {
    (seconds > 0.0 && seconds.is_finite()).then_some(seconds)
}

/// The middle one of the samples, the greater of two; `None` without samples.
pub(crate) fn median(mut samples: Vec<f64>) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied()
}
