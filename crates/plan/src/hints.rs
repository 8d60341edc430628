//! What would work: divisors and multiples, and how a hint lists them.

/// How many values a hint lists at most.
const LISTED: usize = 12;

/// A count with its noun: `1 GPU`, `2 GPUs`.
#[must_use]
pub fn counted(count: u64, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// The divisors of `number`, ascending; empty for 0.
pub fn divisors(number: u64) -> Vec<u64> {
    let mut small = Vec::new();
    let mut large = Vec::new();
    let mut candidate = 1;
    // Up to the square root, and no further than 65,536: beyond that, only a hint lacks the larger divisors of a
    // larger number.
    while candidate <= number / candidate.max(1) && candidate <= 1 << 16 {
        if number.is_multiple_of(candidate) {
            small.push(candidate);
            if candidate != number / candidate {
                large.push(number / candidate);
            }
        }
        candidate += 1;
    }
    small.extend(large.into_iter().rev());
    small
}

/// The element of `values` nearest to `wanted`; the smaller of two equally near.
pub fn nearest_of(values: &[u64], wanted: u64) -> Option<u64> {
    let mut nearest: Option<u64> = None;
    for &value in values {
        let closer = |other: u64| (value.abs_diff(wanted), value) < (other.abs_diff(wanted), other);
        if nearest.is_none_or(closer) {
            nearest = Some(value);
        }
    }
    nearest
}

/// The multiple of `block` nearest to `wanted`, at least `block`; the greater of two equally near.
pub fn nearest_multiple(wanted: u64, block: u64) -> u64 {
    let block = block.max(1);
    let below = wanted / block * block;
    if below == 0 || wanted - below >= block.saturating_sub(wanted - below) {
        below.saturating_add(block)
    } else {
        below
    }
}

/// The values as a sentence lists them: all of them if there are few, otherwise those around `wanted`.
pub fn listed(values: &[u64], wanted: u64) -> String {
    // The list is sorted, so a window around the requested value shows the nearest on both sides.
    let at = values.partition_point(|value| *value < wanted);
    let first = at.saturating_sub(LISTED / 2).min(values.len().saturating_sub(LISTED));
    let mut text = String::from(if first > 0 { "…, " } else { "" });
    for (index, value) in values.iter().skip(first).take(LISTED).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&value.to_string());
    }
    if first + LISTED < values.len() {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{divisors, listed, nearest_multiple, nearest_of};

    #[test]
    fn what_would_work_is_listed_around_what_was_asked() {
        assert_eq!(divisors(30), [1, 2, 3, 5, 6, 10, 15, 30]);
        assert_eq!(divisors(16), [1, 2, 4, 8, 16]);
        assert!(divisors(0).is_empty());
        assert_eq!(nearest_of(&divisors(29), 4), Some(1));
        assert_eq!(nearest_of(&divisors(30), 4), Some(3));
        assert_eq!((nearest_multiple(29, 4), nearest_multiple(30, 4), nearest_multiple(1, 4)), (28, 32, 4));
        assert_eq!(listed(&divisors(30), 4), "1, 2, 3, 5, 6, 10, 15, 30");
        assert_eq!(
            listed(&(1..=40).collect::<Vec<_>>(), 20),
            "…, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, …"
        );
    }
}
