//! From what readers found to a plan: spelling, the software, defaults, rules, then [`Plan::new`](shardscope_plan::Plan::new).
//!
//! A reader says what a text states ([`Reading`]) and never fails; [`resolve`] fills what is missing, asks for what has no
//! default, and names what is not modelled. The readers themselves are the crate `launch`.

mod arrangement;
mod batch;
mod beside;
mod defaults;
mod evaluation;
mod fitting;
mod frequency;
mod hybrid;
mod kernels;
mod lacking;
mod lacking_adapters;
mod lacking_modules;
mod layout;
mod mixers;
mod model;
mod named;
mod offload;
mod packs;
mod parse;
mod precision;
mod questions;
mod reading;
mod recipe;
mod recompute;
mod resolve;
mod rollout;
mod sharding;
mod spelling;
mod switches;
mod synonyms;
mod table;
mod tuning;
mod variables;
mod vision;
mod vision_lacking;
mod vocabulary;
mod whole;
mod world;

pub use parse::{BadValue, fitting};
pub use questions::{ARGUMENTS, AnswerKind, COMMAND_LINE, RECIPE, VARIABLES};
pub use reading::{Found, Machines, Reading};
pub use resolve::{MAX_DIAGNOSTICS, resolve};
#[doc(no_inline)]
pub use shardscope_plan::{
    Effect, NotModelled, NotRead, Origin, Question, Resolution, Setting, SettingValue,
};
pub use vision::{DECODER, DEEP, PROJECTOR, TOWER};
