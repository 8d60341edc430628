//! Published runs, what the engine says of them, and the page that shows both.

mod compared;
mod entry;
mod figures;
mod gaps;
mod links;
mod memory;
mod page;
mod plot;
mod row;
mod sources;
mod table;

pub use compared::{Cause, Compared, Group, PEERS, Peer, causes, compared, figures, summary};
pub use entry::{Architecture, Entry, memories, step_times};
pub use figures::Figures;
pub use gaps::{GAPS, MISSED_VERDICTS, NOT_ESTIMATED, gap};
pub use links::link;
pub use memory::{Counted, Figure, Run, runs};
pub use page::page;
pub use row::{Row, Settings};
