//! Sorting by one routine for all types.
//!
//! [`slice::sort_by`] is compiled anew for every type and every comparison, 4.5 KB of WebAssembly each. The page has some
//! fifty orders of a few entries; together their code was 4 % of what it loads. Here the standard library sorts the places of
//! the entries, by a comparison behind a pointer, and only moving the entries is compiled per type. An inner loop that sorts
//! much takes the standard library's own.

use std::cmp::Ordering;

/// Sorts `items` by `compare`; what compares equal keeps its order. At most 2^32 items: what is longer is left as it is.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    // Compared through places, so that `items` need not move while they are sorted.
    let mut places = {
        let items = &*items;
        places(items.len(), &mut |one, other| match (items.get(one as usize), items.get(other as usize)) {
            (Some(one), Some(other)) => compare(one, other),
            // No place exceeds the length, so the last arm is never taken; it saves a panic's code.
            _ => Ordering::Equal,
        })
    };
    // Each round brings one entry to its place, so that there are as many rounds as entries.
    for here in 0..items.len() {
        while let Some(&place) = places.get(here)
            // Following each cycle of the permutation: an entry moves at most once to its own place.
            && place as usize != here
        {
            items.swap(here, place as usize);
            places.swap(here, place as usize);
        }
    }
}

/// Sorts `items` by what `key` gives; equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], mut key: impl FnMut(&T) -> K) {
    sort_by(items, |one, other| key(one).cmp(&key(other)));
}

/// Sorts `items`; equal ones keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// For each of `len` entries the place where it belongs.
fn places(len: usize, compare: &mut dyn FnMut(u32, u32) -> Ordering) -> Vec<u32> {
    // 2^32 entries do not fit into WebAssembly's memory anyway.
    let Ok(count) = u32::try_from(len) else { return Vec::new() };
    let mut sorted: Vec<u32> = (0..count).collect();
    sorted.sort_by(|one, other| compare(*one, *other));
    // Inverted: `sorted` says which entry stands at a place, moving needs the place of an entry.
    let mut places = vec![0; len];
    for (place, entry) in (0..count).zip(sorted) {
        if let Some(slot) = places.get_mut(entry as usize) {
            *slot = place;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(mut items: Vec<(u8, String)>) {
            let mut expected = items.clone();
            expected.sort_by_key(|item| std::cmp::Reverse(item.0));
            super::sort_by(&mut items, |one, other| other.0.cmp(&one.0));
            prop_assert_eq!(&items, &expected);
            expected.sort_by_key(|item| item.1.len());
            super::sort_by_key(&mut items, |item| item.1.len());
            prop_assert_eq!(&items, &expected);
            expected.sort();
            super::sort(&mut items);
            prop_assert_eq!(items, expected);
        }
    }
}
