//! What the reader has in hand: `apply(State, Event) -> State`. Pure, and tested without a browser.

mod example;
mod offsets;
mod state;

pub use example::EXAMPLE;
pub use offsets::{byte_offset, utf16_offset};
pub use state::{Event, State, apply};
