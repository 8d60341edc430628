//! Journeys through the built page in a real browser; `README.md` of this crate says how to add one.

mod answers;
mod docs;
mod embedding;
mod evidence;
mod firefox;
mod guide;
mod hands;
mod harness;
mod help;
mod hostile;
mod loading;
mod looks;
mod map;
mod misbehaving;
mod moving;
mod newcomers;
mod offline;
mod paper;
mod questions;
mod readers;
mod reading;
mod run;
mod script;
mod sharing;
mod soak;
mod steps;
