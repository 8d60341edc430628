//! Ranks and their labels, coordinates, groups of every kind, and which links a group crosses.
//!
//! Groups are never stored. Each kind is a regular pattern over the rank numbering, so computing a rank's group takes
//! no longer than writing it down, whether at 16 GPUs or at 16,384.

mod grid;
mod groups;
mod kind;
mod links;
mod rank;
mod rule;

pub use grid::Coordinates;
pub use groups::{Group, Groups};
pub use kind::GroupKind;
pub use links::{Link, Spread};
pub use rank::{Rank, notation};
pub use rule::{GroupRule, Steps};
