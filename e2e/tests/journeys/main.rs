//! Journeys through the built page in a real browser; `README.md` of this crate says how to add one.

mod answers;
mod embedding;
mod evidence;
mod guide;
mod harness;
mod help;
mod loading;
mod looks;
mod map;
mod offline;
mod run;
mod script;
mod sharing;
