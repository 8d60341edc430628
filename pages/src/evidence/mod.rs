//! Published runs, what the engine says of them, and the page that shows both.

mod compared;
mod page;
mod row;

pub use compared::{Cause, Compared, Figures, Group, causes, compared, summary};
pub use page::page;
pub use row::Row;
