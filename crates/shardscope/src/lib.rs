//! Shardscope's engine: from a launch script to memory, communication and time, each number explained.
//!
//! # The way of a script
//!
//! ```text
//! text ──intake──▶ Resolution { settings, questions, diagnostics, plan: Option<Plan> }
//! Plan ──estimate──▶ parameters, memory, traffic, utilisation, time
//!      ──report, advice, search──▶ Report, document, text; findings; layouts
//!      ──session──▶ what a page shows; `apply(State, Event) -> State`
//! ```
//!
//! A [`plan::Plan`] is a model, a cluster, a layout and a recipe that Megatron would start: it can only be made by
//! `Plan::new`, which refuses with a sentence and the nearest value that works. Everything behind it is a pure function
//! of a plan, so that a number on the page can be had in a test, in the terminal and in JavaScript alike.
//!
//! # Rooms, from the ground up
//!
//! Each imports only rooms above it in this list; there is no cycle.
//!
//! | room | what is in it | imports |
//! |---|---|---|
//! | [`quantity`] | bytes, counts, seconds, rates as types; their formats | |
//! | [`text`] | sources of several files, spans, diagnostics, the nearest spelling | |
//! | [`plan`] | settings by name, model, cluster, layout, recipe, their rules and limits, variants | quantity, text |
//! | [`explain`] | formulas with symbols and sources, trees whose parents follow from their children; the glossary | quantity |
//! | [`catalog`] | accelerators, nodes, models, tokenizers, each figure with its source | plan |
//! | [`topology`] | ranks, groups of every kind, labels, links | plan |
//! | [`schedule`] | orders of micro-batches of ten kinds, run under given durations | plan |
//! | [`share`] | links: settings typed by hand, pasted texts deflated; bounded when read | text |
//! | [`anatomy`] | per operator and facet: weights, tensors kept, held, messages, arithmetic | plan, explain |
//! | [`intake`] | bash evaluated and never executed, settings files of every framework, Megatron's flags, resolving, exports, logs | plan, catalog |
//! | [`estimate`] | parameters, memory at the peak, the ledger of messages, FLOPs, utilisation, the time of a step | anatomy, topology, schedule |
//! | [`report`] | every estimate at once: the document, text, Markdown, CSV, comparison, the tool of 2023 beside ours | estimate, intake |
//! | [`advice`] | rules whose every change was tried | report |
//! | [`search`] | all layouts that Megatron would accept, walked in slices | estimate |
//! | [`session`] | what a reader has in hand and sees; no screen | all of them |
//!
//! The page (`src/app` and `src/main.rs`, feature `web`) draws a [`session::State`] and computes nothing itself; its
//! words are those of one language, a file in `src/app/words/`. `crates/cli`
//! is the program for the terminal, `npm/` the engine for JavaScript, `pages/` writes the pages beside the main page (the guide, the evidence),
//! `e2e/` the journeys in a browser.
//!
//! # Rules of the house
//!
//! - Bytes and counts are `u64` in types of their own, never `usize`; GiB and GB have formatters of their own.
//! - No text of a user makes anything fail: readers return what they found and diagnostics with spans; loops, depth and
//!   sizes are bounded ([`intake::shell`], [`plan`]'s limits).
//! - A constant has a name, a unit and a source; a default shown has an origin ([`intake::Origin`]).
//! - Names are Megatron's.
//! - The page is weighed: see `e2e/src/weight.rs`. Tables and one function are lighter than code that repeats itself, and
//!   mostly clearer.

pub use shardscope_advice as advice;
pub use shardscope_bash as shell;
pub use shardscope_catalog as catalog;
pub use shardscope_config_tree as tree;
pub use shardscope_estimate as estimate;
pub use shardscope_explain as explain;
pub use shardscope_launch as intake;
pub use shardscope_link as share;
pub use shardscope_operators as anatomy;
pub use shardscope_plan as plan;
pub use shardscope_report as report;
pub use shardscope_schedule as schedule;
pub use shardscope_search as search;
pub use shardscope_session as session;
pub use shardscope_source as text;
pub use shardscope_topology as topology;
pub use shardscope_units as quantity;
