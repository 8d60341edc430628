//! Times the engine natively: reads lines `WORKLOAD WORK TURNS`, answers each with nanoseconds of processor time and the
//! number of the result. `speed.mjs` is the same in Node.
use std::io::{self, BufRead, Write};
use std::time::Instant;

use speed::Workload;

mod processor;
use processor::processor_time;

fn main() -> io::Result<()> {
    let mut known: Vec<Option<Workload>> = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let numbers: Vec<usize> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [workload, work, turns] = numbers[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
        while known.len() <= workload {
            known.push(Workload::at(known.len()));
        }
        let (started, used) = (Instant::now(), processor_time());
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let result = known[workload].as_ref().map_or(f64::NAN, |workload| workload.turns(work, turns));
        let took = match (used, processor_time()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => started.elapsed(),
        };
        println!("{} {result:?}", took.as_nanos());
        io::stdout().flush()?;
    }
    Ok(())
}
