//! What the reader has in hand: `apply(State, Event) -> State`. Pure, and tested without a browser.

mod answer;
mod branch;
mod example;
mod hand;
mod held;
mod layers;
mod keep;
pub mod map;
mod marks;
mod offsets;
mod settings;
mod stages;
mod state;
mod tool;
mod traffic;
mod steps;
mod verdict;

pub use answer::{Answer, Shown, answer};
pub use branch::{Branch, Reason, plain};
pub use example::EXAMPLE;
pub use hand::{File, Hand};
pub use held::Held;
pub use layers::{LayerFigures, LayerLine, layer_line};
pub use keep::{Kept, keep, restore};
pub use marks::{Piece, pieces};
pub use offsets::{byte_offset, utf16_offset};
pub use settings::{Chapter, Row, chapters};
pub use stages::{explain_memory, stage_memories};
pub use tool::{MeasuredLine, ToolBlock, ToolLine, measured_lines, tool_blocks};
pub use traffic::{detour_sentence, dimension_line, explain_message, link_name, written_groups};
pub use state::{Event, Pinned, State, apply};
pub use steps::{Difference, Steps};
pub use verdict::{Fit, StageMemory, Use};
