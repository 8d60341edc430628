//! The project's own commands, `cargo xtask COMMAND`, and code that the browser tests share with them.
//!
//! `tools/serve` and `tools/test` are two of the commands, for newcomers. Trunk calls `prebuild` and `postbuild` as
//! its hooks, so `trunk build --release` alone builds the page.

pub mod browser;
pub mod container;
pub mod deny;
pub mod docs_tools;
pub mod documents;
pub mod fingerprint;
pub mod fuzz;
pub mod hooks;
pub mod install;
pub mod installed;
pub mod javascript;
mod packages;
pub mod page;
pub mod phases;
pub mod process;
pub mod public_files;
pub mod publish;
pub mod published;
pub mod reproducible;
pub mod same_everywhere;
pub mod search_speed;
pub mod site;
pub mod speed;
mod twins;
pub mod versions;
pub mod weight;
pub mod wheel;
#[cfg(test)]
mod workflows;
