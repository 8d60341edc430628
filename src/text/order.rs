use std::cmp::Ordering;

/// The indices of `count` items in ascending order, equals as they stand.
///
/// Every `sort` of the standard library is compiled anew for each type and comparison, at some 5 KB of
/// the page each; this one (by merging) is compiled once.
pub fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if (1..count).all(|at| compare(at - 1, at).is_le()) {
        return order;
    }
    let mut merged = Vec::with_capacity(count);
    let mut width = 1;
    while width < count {
        for pair in order.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([first, ..], [second, ..]) = (left, right) {
                let run = if compare(*second, *first).is_lt() { &mut right } else { &mut left };
                if let Some((least, rest)) = run.split_first() {
                    merged.push(*least);
                    *run = rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        width *= 2;
    }
    order
}

/// The swaps, in their order, that bring `count` items into ascending order, equals as they stand.
fn swaps(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<(usize, usize)> {
    let mut order = order(count, compare);
    let mut swaps = Vec::new();
    // Items hand their places on in rounds; each round is walked once.
    for start in 0..count {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == start {
                break;
            }
            swaps.push((at, from));
            at = from;
        }
    }
    swaps
}

/// Sorts items, equals staying as they stand; see [`order`].
pub fn sort<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    for (one, other) in swaps(items.len(), &|left, right| compare(&items[left], &items[right])) {
        items.swap(one, other);
    }
}

/// Sorts items and keeps each of equals once.
pub fn distinct<T: Ord>(items: &mut Vec<T>) {
    sort(items, &T::cmp);
    items.dedup();
}

/// Sorts pairs of texts.
pub fn sort_pairs(items: &mut [(String, String)]) {
    sort(items, &|left, right| left.0.cmp(&right.0).then_with(|| left.1.cmp(&right.1)));
}

#[cfg(test)]
mod tests {
    use super::{distinct, order, sort};

    #[test]
    fn equals_stay_as_they_stand() {
        let mut words = vec!["bb", "a", "cc", "d", "ee"];
        sort(&mut words, &|left, right| left.len().cmp(&right.len()));
        assert_eq!(words, ["a", "d", "bb", "cc", "ee"]);
        assert_eq!(order(3, &|left, right| right.cmp(&left)), [2, 1, 0]);
        for count in 0..70 {
            let mixed: Vec<usize> = (0..count).map(|index| index * 37 % 11).collect();
            let mut expected: Vec<usize> = (0..count).collect();
            expected.sort_by_key(|index| mixed[*index]);
            assert_eq!(order(count, &|left, right| mixed[left].cmp(&mixed[right])), expected);
        }
        for count in 0..70 {
            let mut mixed: Vec<usize> = (0..count).map(|index| index * 37 % 71).collect();
            sort(&mut mixed, &|left, right| right.cmp(left));
            assert!(mixed.is_sorted_by(|left, right| left > right));
        }
        let mut many = vec![3, 1, 3, 2, 1];
        distinct(&mut many);
        assert_eq!(many, [1, 2, 3]);
        assert!(order(0, &|_, _| std::cmp::Ordering::Equal).is_empty());
    }
}
