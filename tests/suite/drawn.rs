//! Properties: how inputs are drawn at random.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use proptest::prelude::ProptestConfig;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// The same inputs in every run.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The number of plans to draw: `normal` unless `SHARDSCOPE_PLANS` says otherwise.
pub(crate) fn wanted(normal: u64) -> u64 {
    std::env::var("SHARDSCOPE_PLANS").ok().and_then(|plans| plans.parse().ok()).unwrap_or(normal)
}

/// The results of `work` for each of `parts`, computed on all processors: parts are taken dynamically, so that none
/// waits for a long one. Random values must only depend on the part, so that they are the same on every machine. A
/// panic is passed to the caller.
pub(crate) fn on_all_processors<T: Send>(parts: u64, work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let next = AtomicU64::new(0);
    let one = || {
        let mine =
            std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts));
        mine.map(&work).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(one)).collect();
        let made = workers.into_iter().map(|worker| worker.join());
        made.flat_map(|made| made.unwrap_or_else(|why| std::panic::resume_unwind(why))).collect()
    })
}

/// A way to break a text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    /// The rest is removed.
    Cut,
    /// One character is removed.
    Drop,
    /// This is inserted.
    Insert(&'static str),
    /// The part before is duplicated.
    Repeat,
}

impl Damage {
    /// Applies it to `text` at a random position.
    pub(crate) fn apply(self, text: &mut String, place: Index) {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let index = place.index(starts.len());
        let at = starts[index];
        match self {
            Self::Cut => text.truncate(at),
            Self::Drop => drop(text.drain(at..text[at..].chars().next().map_or(at, |c| at + c.len_utf8()))),
            Self::Insert(piece) => text.insert_str(at, piece),
            Self::Repeat => {
                let before = text[starts[index / 2]..at].to_owned();
                text.insert_str(at, &before);
            }
        }
    }
}
