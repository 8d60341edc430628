//! Which of the mutants compiled into a program is on, and which of them a computation reaches.
//!
//! `cargo run -p mutants` puts every mutant of the estimators behind [`on`] and compiles the suite once. A number
//! then selects the mutant that is on: the argument of [`only`] within a process, or `MUTANT=37` in the environment of a test
//! program. If `MUTANT_MET=FILE` is set too, none is on, and the file receives the numbers of all that were
//! reached, four bytes each.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, PoisonError};

/// More mutants than there are.
pub const MOST: u32 = 1 << 14;

const NONE: u32 = 0;
/// None is on; those reached are recorded.
const MEETING: u32 = u32::MAX;
/// The environment has not been read yet.
const UNKNOWN: u32 = u32::MAX - 1;

static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
/// How many more times [`on`] may be called.
static LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
static MET: [AtomicBool; MOST as usize] = [const { AtomicBool::new(false) }; MOST as usize];
/// The file for the mutants reached, if the program was asked to record them.
static FILE: LazyLock<Option<Mutex<File>>> =
    LazyLock::new(|| std::env::var_os("MUTANT_MET").and_then(|path| File::create(path).ok()).map(Mutex::new));

/// Whether mutant `number`, from 1, is on.
///
/// # Panics
/// With [`Endless`], if a computation runs much longer than without a mutant.
#[inline]
pub fn on(number: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    active != NONE && asked(active, number)
}

/// Why a computation was stopped.
#[derive(Debug)]
pub struct Endless;

fn asked(active: u32, number: u32) -> bool {
    match active {
        UNKNOWN => {
            let stated = std::env::var("MUTANT").ok().and_then(|number| number.parse().ok());
            let active = if FILE.is_some() { MEETING } else { stated.unwrap_or(NONE) };
            ACTIVE.store(active, Relaxed);
            active == number || (active == MEETING && asked(active, number))
        }
        MEETING => {
            LEFT.store(LEFT.load(Relaxed).wrapping_sub(1), Relaxed);
            if !MET[number as usize].swap(true, Relaxed)
                && let Some(file) = &*FILE
            {
                // A file that cannot be written shows up as a test that reaches nothing.
                let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&number.to_le_bytes());
            }
            false
        }
        _ => {
            let left = LEFT.load(Relaxed);
            if left == 0 {
                ACTIVE.store(NONE, Relaxed);
                std::panic::panic_any(Endless);
            }
            LEFT.store(left - 1, Relaxed);
            active == number
        }
    }
}

/// The result of `work` with only mutant `number` on; it may call [`on`] at most `most` times.
pub fn only<T>(number: u32, most: u64, work: impl FnOnce() -> T) -> std::thread::Result<T> {
    LEFT.store(most, Relaxed);
    ACTIVE.store(number, Relaxed);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    ACTIVE.store(NONE, Relaxed);
    result
}

/// The result of `work` with no mutant on, the mutants that it reached, and how often it called [`on`].
pub fn met<T>(work: impl FnOnce() -> T) -> (T, Vec<u32>, u64) {
    MET.iter().for_each(|met| met.store(false, Relaxed));
    LEFT.store(u64::MAX, Relaxed);
    ACTIVE.store(MEETING, Relaxed);
    let result = work();
    ACTIVE.store(NONE, Relaxed);
    let met = (0..MOST).filter(|number| MET[*number as usize].load(Relaxed)).collect();
    (result, met, u64::MAX - LEFT.load(Relaxed))
}
