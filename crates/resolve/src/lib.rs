//! From readers' findings to a plan: spelling, the software, defaults, rules, then
//! [`Plan::new`](shardscope_plan::Plan::new).
//!
//! A reader reports what a text states ([`Reading`]) and never fails; [`resolve`] fills in missing values, asks for
//! those without a default, and names what is not modelled. The readers themselves are in the crate `launch`.

mod arrangement;
mod batch;
mod beside;
mod defaults;
mod encoder;
mod engine;
mod evaluation;
mod fitting;
mod frequency;
mod hybrid;
mod kernels;
mod lacking;
mod lacking_adapters;
mod lacking_compiled;
mod lacking_experts;
mod lacking_heads;
mod lacking_modules;
mod layout;
mod low_rank;
mod mixers;
mod model;
mod named;
mod objective;
mod offload;
mod packs;
mod parse;
mod placed;
mod precision;
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
mod unquantized;
mod variables;
mod vision;
mod vision_lacking;
mod vocabulary;
mod world;

pub use parse::{BadValue, fitting};
pub use reading::{Found, Machines, Reading};
pub use resolve::{MAX_DIAGNOSTICS, resolve};
#[doc(no_inline)]
pub use shardscope_plan::{
    Asked, Effect, NotModelled, NotRead, Origin, Question, Resolution, Setting, SettingValue, Subject,
};
pub use vision::{DECODER, DEEP, PROJECTOR, TOWER};
