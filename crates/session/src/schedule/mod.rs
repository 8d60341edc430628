//! The schedule of a step as a picture: what each stage does when, and how a stage's memory rises and falls.

mod alternatives;
mod step_timeline;
mod viewport;
mod work;

pub use alternatives::{Alternative, alternatives};
pub use step_timeline::{Curve, Number, Picture, Running, StepTimeline};
pub use viewport::Viewport;
pub use work::{CURVE, LANE, WIDTH, Work};
