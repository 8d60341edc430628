//! Journeys through the built page in a real browser; `README.md` of this crate says how to add one.

mod answers;
mod harness;
mod loading;
mod looks;
mod map;
mod script;
mod sharing;
