//! Whether an LLM training run fits in memory, what it sends over which links, and how fast it will be: read from the
//! launch script, exact, and explained number by number.
//!
//! ```
//! use shardscope::estimate;
//! use shardscope::estimate::Verdict;
//!
//! let report = estimate(
//!     "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --bf16 --tensor-model-parallel-size 2 \
//!      --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
//!      --micro-batch-size 1 --global-batch-size 32 --vocab-size 50257 --use-distributed-optimizer",
//! )?;
//! assert_eq!(report.memory.verdict, Verdict::Fits);
//! assert!(report.memory.worst.peak_allocated < report.memory.capacity);
//! assert!(report.time.lower_bound <= report.time.step && report.time.step <= report.time.upper_bound);
//! # Ok::<(), shardscope::NoPlan>(())
//! ```
//!
//! [`estimate`](fn@estimate) takes one text. A [`Run`] takes several (a script with the model's `config.json`, a
//! settings file of any framework, a log), settings on top, and variables that the script leaves to its environment;
//! its [`Answer`] also holds what was read, from where, and what is open. If a text does not form a plan, [`NoPlan`]
//! says why: a question that was not asked is never answered.
//!
//! # Beneath
//!
//! The crates of the engine are re-exported below under their own names, for programs that need more than a report.
//! What is at the top level here follows semantic versioning; these crates may change in any minor release. What will
//! grow is `#[non_exhaustive]`: [`Report`], [`NoPlan`], [`NotModelled`], [`Code`], [`plan::Field`].
//!
//! A [`plan::Plan`] is a model, a cluster, a layout and a recipe that the software would start: it can only be made
//! by `Plan::new`, which refuses with every contradiction and the nearest values that work. Everything after it is a
//! pure function of a plan. The repository's ARCHITECTURE.md shows how a script is processed and how the crates
//! depend on each other.

mod answer;
mod run;
mod tables;

pub use answer::{Answer, NoPlan};
pub use run::{Run, estimate};
pub use shardscope_plan::{Asked, NotModelled, Origin, Plan, Question, Setting, SettingValue};
pub use shardscope_report::Report;
pub use shardscope_source::{Code, Diagnostic, Severity};
pub use tables::{joined, reader_tables, separated, tables};

pub use shardscope_advice as advice;
pub use shardscope_bash as bash;
pub use shardscope_catalog as catalog;
pub use shardscope_config_tree as config_tree;
pub use shardscope_estimate as estimate;
pub use shardscope_explain as explain;
pub use shardscope_export as export;
pub use shardscope_launch as launch;
pub use shardscope_link as link;
pub use shardscope_operators as operators;
pub use shardscope_plan as plan;
pub use shardscope_report as report;
pub use shardscope_schedule as schedule;
pub use shardscope_search as search;
pub use shardscope_session as session;
pub use shardscope_source as source;
pub use shardscope_topology as topology;
pub use shardscope_units as units;
