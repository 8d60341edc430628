//! Times the engine natively: reads lines `WORKLOAD WORK TURNS`, answers each with nanoseconds of processor time and the
//! number of the result; and `PAIR`, answers with the course of a search. `speed.mjs` is the same in Node.
use std::io::{self, BufRead, Write};
use std::time::Instant;

use speed::{Search, Workload};

fn main() -> io::Result<()> {
    let mut known: Vec<Option<Workload>> = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [workload, work, turns] = match numbers[..] {
            [workload, work, turns] => [workload, work, turns],
            [pair] => {
                search(pair);
                io::stdout().flush()?;
                continue;
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        while known.len() <= workload {
            known.push(Workload::at(known.len()));
        }
        let clock = Clock::start();
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let result = known[workload].as_ref().map_or(f64::NAN, |workload| workload.turns(work, turns));
        println!("{} {result:?}", clock.nanoseconds());
        io::stdout().flush()?;
    }
    Ok(())
}

/// Searches around the pair of this place and says, in one line of columns: the nanoseconds of all and the layouts decided and
/// worked out, what was found, and when the fastest layout became a faster one: nanoseconds and its step, one after the other.
fn search(pair: usize) {
    let clock = Clock::start();
    let Some(mut search) = Search::at(pair) else { return println!() };
    let (mut best, mut course) = (f64::INFINITY, String::new());
    let mut look = |search: &Search, best: &mut f64| {
        if search.best() < *best {
            *best = search.best();
            course += &format!("{} {:?} ", clock.nanoseconds(), *best);
        }
    };
    look(&search, &mut best);
    while search.step() {
        look(&search, &mut best);
    }
    look(&search, &mut best);
    let numbers =
        [clock.nanoseconds() as f64, search.decided(), search.estimated()].map(|number| number.to_string());
    println!("{}\t{}\t{course}", numbers.join(" "), search.found());
}

/// Since when something goes on: the time and, where the system tells it, that of this thread on a processor.
struct Clock(Instant, Option<u64>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), processor_nanoseconds())
    }

    fn nanoseconds(&self) -> u64 {
        match (self.1, processor_nanoseconds()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Time on a processor, where the system tells it (Linux): other programs do not count then.
fn processor_nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
