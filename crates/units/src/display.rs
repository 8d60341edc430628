//! The one place where a number gets its unit in text. GiB and GB have formatters of their own.

use super::{Bytes, FlopsPerSecond, Quantity, Seconds};

/// A number with `places` decimals, ties to the even digit, without a unit.
#[must_use]
pub fn decimal(value: f64, places: usize) -> String {
    format!("{value:.places$}")
}

/// A number with `places` decimals, and its unit.
fn with(value: f64, places: usize, unit: &str) -> String {
    format!("{value:.places$}{unit}")
}

/// An exact integer with its digits grouped by thousands: `6,738,415,616`.
#[must_use]
pub fn grouped(value: u64) -> String {
    group_digits(&value.to_string())
}

/// A comma before every third digit from the right. A sign counts as a digit: what is grouped is never negative.
fn group_digits(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Memory in GiB (2^30 bytes), two decimals.
#[must_use]
pub fn gib(bytes: Bytes) -> String {
    with(bytes.in_gib(), 2, " GiB")
}

/// Memory in MiB (2^20 bytes), one decimal.
#[must_use]
pub fn mib(bytes: Bytes) -> String {
    with(bytes.in_mib(), 1, " MiB")
}

/// Memory in the binary unit that suits it: TiB, GiB, MiB, KiB or bytes.
#[must_use]
pub fn size(bytes: Bytes) -> String {
    // Binary units for what torch and nvidia-smi count (both print MiB or GiB); links and data sheets count in GB, see `gb`.
    if bytes >= Bytes::gib(1024) {
        with(bytes.in_gib() / 1024.0, 2, " TiB")
    } else if bytes >= Bytes::gib(1) {
        gib(bytes)
    } else if bytes >= Bytes::mib(1) {
        mib(bytes)
    } else if bytes >= Bytes::new(1024) {
        with(bytes.number() / 1024.0, 1, " KiB")
    } else {
        format!("{} B", bytes.get())
    }
}

/// A count in words: `6.74B`, `12.3k`, `1,244`, `512`.
#[must_use]
pub fn rounded(count: f64) -> String {
    // Up to 9,999 in full: such counts are mostly sizes that are looked for by their digits.
    let units = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")];
    match units.into_iter().find(|(unit, _)| count >= *unit) {
        Some((1e4, name)) => with(count / 1e3, 1, name),
        Some((unit, name)) => with(count / unit, 2, name),
        None => group_digits(&decimal(count, 0)),
    }
}

/// Decimal gigabytes (10^9 bytes), as links and data sheets count, two decimals.
#[must_use]
pub fn gb(bytes: Bytes) -> String {
    with(bytes.number() / 1e9, 2, " GB")
}

/// A share as a percentage with one decimal.
#[must_use]
pub fn percent(share: f64) -> String {
    with(share * 100.0, 1, "%")
}

/// From here on a duration is told in minutes, hours or days. Unit: second.
const LONG: f64 = 120.0;
const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
/// From here on a duration is told in days and hours. Unit: second.
const DAYS: f64 = 48.0 * HOUR;

/// A duration in the unit that suits it: `12.50 ms`, `67.30 s`, `4 min 10 s`, `1 h 23 min`, `3 d 4 h`.
#[must_use]
pub fn seconds(time: Seconds) -> String {
    let value = time.get();
    let size = value.abs();
    if size.round() >= LONG {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", long(size))
    } else if size >= 100.0 {
        with(value, 0, " s")
    } else if size >= 1.0 {
        with(value, 2, " s")
    } else if size >= 1e-3 {
        with(value * 1e3, 2, " ms")
    } else {
        with(value * 1e6, 1, " µs")
    }
}

/// A duration from two minutes on, to the second, minute or hour.
fn long(size: f64) -> String {
    // Rounded before it is taken apart, so that the smaller unit never reads 60.
    let (size, larger, smaller) = if size.round() < HOUR {
        (size.round(), "min", "s")
    } else if (size / MINUTE).round() * MINUTE < DAYS {
        ((size / MINUTE).round(), "h", "min")
    } else {
        ((size / HOUR).round(), "d", "h")
    };
    let ratio = if larger == "d" { 24.0 } else { 60.0 };
    let (whole, rest) = ((size / ratio).floor(), size % ratio);
    if rest == 0.0 {
        format!("{whole:.0} {larger}")
    } else {
        format!("{whole:.0} {larger} {rest:.0} {smaller}")
    }
}

/// An arithmetic rate in TFLOP/s (10^12), one decimal.
#[must_use]
pub fn tflops(rate: FlopsPerSecond) -> String {
    with(rate.get() / 1e12, 1, " TFLOP/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shown: &str, expected: &str) {
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_carry_their_own_unit() {
        check(&grouped(6_738_415_616), "6,738,415,616");
        check(&grouped(12), "12");
        check(&gib(Bytes::gib(80)), "80.00 GiB");
        check(&gb(Bytes::gib(80)), "85.90 GB");
        check(&mib(Bytes::mib(64)), "64.0 MiB");
        check(&size(Bytes::new(2_560)), "2.5 KiB");
        check(&size(Bytes::gib(3)), "3.00 GiB");
        check(&size(Bytes::gib(1_932)), "1.89 TiB");
        check(&rounded(6_738_415_616.0), "6.74B");
        check(&rounded(12_288.0), "12.3k");
        check(&rounded(9_999.4), "9,999");
        check(&rounded(1_244.3), "1,244");
        check(&rounded(512.0), "512");
        check(&seconds(Seconds::milliseconds(12.5)), "12.50 ms");
        check(&percent(0.4567), "45.7%");
    }

    #[test]
    fn long_durations_are_stated_in_minutes_hours_and_days() {
        for (time, expected) in [
            (67.304, "67.30 s"),
            (119.4, "119 s"),
            (119.5, "2 min"),
            (250.2, "4 min 10 s"),
            (3_599.4, "59 min 59 s"),
            (3_599.6, "1 h"),
            (4_980.0, "1 h 23 min"),
            (-4_980.0, "-1 h 23 min"),
            (7_199.0, "2 h"),
            (172_700.0, "47 h 58 min"),
            (172_790.0, "2 d"),
            (273_600.0, "3 d 4 h"),
        ] {
            check(&seconds(Seconds::new(time)), expected);
        }
    }
}
