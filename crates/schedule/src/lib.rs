//! The order in which every stage works through its micro-batches, how many it holds at once, and when each event
//! begins and ends.
//!
//! An [`Order`] is a list of events per stage, made from a [`Shape`]; [`timeline`] simulates it under given
//! durations. No bubble formula is used anywhere: bubbles are the remaining idle time.

mod block;
mod draft;
mod dual;
mod durations;
mod event;
mod flight;
mod least;
mod order;
mod run;
mod shape;
mod timeline;
mod zero_bubble;

pub use durations::{ChunkTime, StageDurations};
pub use event::{Action, Event};
pub use order::Order;
pub use shape::{Placement, Shape};
pub use timeline::{EXACT_EVENTS, Rehearsal, Timed, Timeline, elapsed, timeline, totals};
