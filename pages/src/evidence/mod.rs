//! Published runs, the engine's predictions for them, and the page that shows both.

mod compared;
mod digest;
mod entry;
mod figures;
mod gaps;
mod held;
mod intervals;
mod left_out;
mod links;
mod memory;
mod page;
mod pasted;
mod plot;
mod ranking;
mod row;
mod sources;
mod summary;
mod table;

pub use compared::{
    Beside, Cause, Compared, Group, PEERS, Part, Peer, causes, compared, figures, figures_unseen,
};
pub use digest::digest;
pub use entry::{Architecture, Entry, memories, step_times};
pub use figures::Figures;
pub use gaps::{GAPS, MISSED_VERDICTS, NOT_ESTIMATED, gap};
pub use intervals::{Spread, sources_of, spreads};
pub use left_out::{seconds_without, without};
pub use links::link;
pub use memory::{Counted, Figure, Run, runs};
pub use page::page;
pub use pasted::{Agreement, Pasted, agreements, pasted};
pub use ranking::{Anchored, Ranking, Seen, anchored, ranking};
pub use row::{Row, Settings};
pub use sources::NEVER_FITTED;
pub use summary::summary;
