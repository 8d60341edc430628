//! A search over the whole space of a pair, to be timed step by step.

use shardscope::search::Walk;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::PAIRS;
use crate::pairs;

/// A search under way, for the fastest layouts of all that the software could run.
#[wasm_bindgen]
pub struct Search(Walk);

#[wasm_bindgen]
impl Search {
    /// That around the pair of this place in [`PAIRS`]; none where there is none.
    pub fn at(place: usize) -> Option<Search> {
        PAIRS.get(place).map(|name| Search(Walk::new(&pairs::plan(name))))
    }

    /// Looks at the next thing; whether there are more.
    pub fn step(&mut self) -> bool {
        self.0.step(1)
    }

    /// The step of the fastest layout so far that leaves the headroom free; infinite where there is none.
    pub fn best(&self) -> f64 {
        self.0.best().first().map_or(f64::INFINITY, |one| one.step.get())
    }

    /// Layouts decided so far.
    pub fn decided(&self) -> f64 {
        self.0.tally().decided() as f64
    }

    /// Layouts worked out so far.
    pub fn estimated(&self) -> f64 {
        self.0.tally().estimated as f64
    }

    /// All that was found, in one line: of each layout its changes, its peak and the bits of its step, and how the rest was
    /// decided. Two programs that search alike say the same.
    pub fn found(&self) -> String {
        let one = |one: &shardscope::search::Outcome| {
            let changes: Vec<String> =
                one.changes.iter().map(|(field, value)| format!("{}={value}", field.name())).collect();
            format!("{} {} {:016x}", changes.join(" "), one.peak.get(), one.step.get().to_bits())
        };
        let all = self.0.ranked().chain(self.0.frontier());
        let layouts: Vec<String> = all.map(one).collect();
        format!("{}; {:?}", layouts.join("; "), self.0.tally())
    }
}
