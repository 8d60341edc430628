//! What the reader has in hand: `apply(State, Event) -> State`. Pure, and tested without a browser.

mod address;
mod answer;
mod asked;
pub mod beside;
mod branch;
mod copies;
mod difference;
mod event;
mod example;
pub mod examples;
mod fullest;
pub mod given;
mod keep;
mod kept;
pub mod knobs;
mod largest;
mod layers;
mod logged;
pub mod map;
mod marks;
mod offsets;
mod phases;
mod picture;
mod ptr_eq;
pub mod reader;
mod rewrite;
pub mod schedule;
mod settings;
mod software;
mod stages;
mod start;
mod state;
mod step_breakdown;
mod steps;
pub mod texts;
mod tool;
mod traffic;
mod user_input;
mod verdict;

pub use address::{cut, file_stem, fragment, script_link, settings_link, title};
pub use answer::{Answer, Shown, answer, estimated};
pub use asked::{AskError, Asked, AskedLine, Asking, Topic, Trained};
pub use branch::{Branch, Reason, SymbolValue, plain};
pub use copies::{LONG_LINK, frame, verdict_lines, verdict_markdown};
pub use difference::Difference;
pub use event::{Event, Pinned, Refused};
pub use example::EXAMPLE;
pub use fullest::{Fullest, FullestPlace};
pub use keep::{keep, keep_input, restore};
pub use kept::StoredSession;
pub use knobs::change_line;
pub use largest::models_on;
pub use layers::{LayerFigures, LayerLine, layer_line};
pub use logged::{
    LOG, Logged, corrects_others, log_text, logged, measured_ratio, measured_sentence, with_log,
};
pub use marks::{Piece, pieces};
pub use offsets::{byte_offset, utf16_offset};
pub use phases::{PhaseMemory, explain_phase};
pub use picture::{bars_svg, map_svg};
pub use ptr_eq::PtrEq;
pub use rewrite::{ChangedLine, Rewritten, patched, rewritten};
pub use settings::{Chapter, Row, chapters};
pub use software::software_name;
pub use stages::{explain_memory, stage_memories};
pub use start::{Choice, Objective, model_alone, model_settings, start};
pub use state::{State, apply};
pub use step_breakdown::{StepPart, step_parts};
pub use steps::Steps;
pub use tool::{MeasuredLine, ToolBlock, ToolLine, measured_lines, measured_plan, tool_blocks};
pub use traffic::{
    detour_sentence, dimension_line, explain_message, explain_wire, link_name, written_groups,
};
pub use user_input::{File, UserInput};
pub use verdict::{Fit, StageMemory, Use};
