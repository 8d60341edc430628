//! The parts of a transformer: for each operator its weights, the tensors it saves for backward, its arithmetic and
//! its messages, under one plan. Estimators fold over operators and never match on them; a new layer kind is a new
//! directory here and a line in `operator.rs`.

mod adafactor;
mod adapters;
mod as_written;
mod attention;
mod column;
mod compiled;
mod compiled_by_unsloth;
mod context;
mod creation;
mod eager;
mod embedding;
mod exchange;
mod experts;
mod facets;
mod fp32_between_modules;
mod latent_attention;
mod layer_inputs;
mod letters;
mod linear;
mod low_rank;
mod message;
mod mlp;
mod modules_in_order;
mod mtp;
mod names;
mod norm;
mod operator;
mod output_layer;
mod part;
mod pieces;
mod positions;
mod sampled;
mod saved;
mod section;
mod shape;
mod shared;
mod sizes;
mod stack;
mod symbols;
mod transient;
mod vision;
mod work;

pub use adafactor::adafactor_step;
pub use compiled_by_unsloth::joins_samples;
pub use creation::Creation;
pub use eager::{copies_layer_input, dispatches, exchange_buffer, worked_out_again};
pub use experts::ExpertProducts;
pub use fp32_between_modules::is_fp32_between_modules;
pub use letters::{LETTERS, letter_meaning};
pub use linear::linear_as_megatron_counts;
pub use low_rank::{Projected, step_bytes};
pub use message::{Collective, Dimension, Message, Pass};
pub use modules_in_order::Order;
pub use operator::{Captured, EncoderPart, Operator};
pub use part::{Account, Axis, Created, Shard, Weight, WeightGroup, WeightPart, WeightRole, of_modules};
pub use saved::{Parts, Saved, Savers};
pub use shape::Shape;
pub use sizes::{ExpertSizes, LatentSizes, LinearSizes};
pub use stack::{
    Operators, Section, SectionKind, are_alike, frozen_counts, layer_operators, layers_backward, messages_of,
    section_counts, sections, sections_of, work_of,
};
pub use symbols::Symbols;
pub use transient::Transient;
pub use vision::TOWER_ALIVE;
pub use work::{Addressed, Kernel, Matmul, MatmulKind, Within, Work};
