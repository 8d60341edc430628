//! Drives the built page in a real headless browser.
//!
//! A journey is a test in `tests/journeys/`, one file per topic, that opens a [`Page`] and does what a user would do.
//! Everything blocks and waits for its own condition, and what does not happen within [`PATIENCE`] fails the test
//! with a screenshot in `target/screenshots/` and the browser's console. See `README.md` beside this crate.

mod acting;
mod axe;
mod driver;
mod looks;
mod moving;
mod page;
mod reading;
mod scratch;
mod watch;
mod watching;
mod window;

pub use axe::Violation;
pub use driver::Kind;
pub use moving::{frames_of, moving_picture};
pub use page::{PATIENCE, Page, dist, root};
pub use scratch::Scratch;
pub use thirtyfour::Key;
