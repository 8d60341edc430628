//! The project's own commands, `cargo xtask COMMAND`, and what the browser tests share with them.
//!
//! `tools/serve` and `tools/test` are two of the commands for people who have just arrived. Trunk calls `prebuild` and
//! `postbuild` as its hooks, so that `trunk build --release` alone makes the page.

pub mod browser;
pub mod deny;
pub mod docs_tools;
pub mod documents;
pub mod fingerprint;
pub mod hooks;
pub mod install;
pub mod installed;
pub mod javascript;
mod packages;
pub mod page;
pub mod phases;
pub mod process;
pub mod publish;
pub mod published;
pub mod reproducible;
pub mod site;
pub mod speed;
pub mod versions;
pub mod weight;
pub mod wheel;
