//! What a transformer is made of: per operator its weights, the tensors it keeps for backward, its
//! arithmetic and its messages, under one plan. Estimators fold over operators and never match on them;
//! a new layer kind is a new folder here and a line in `operator.rs`.

mod adapters;
mod attention;
mod column;
mod compiled;
mod compiled_beside_adapters;
mod context;
mod creation;
mod eager;
mod embedding;
mod exchange;
mod experts;
mod facets;
mod latent_attention;
mod letters;
mod linear;
mod message;
mod mlp;
mod mtp;
mod names;
mod norm;
mod operator;
mod output_layer;
mod part;
mod pieces;
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

pub use creation::Creation;
pub use eager::{copies_layer_input, worked_out_again};
pub use experts::ExpertProducts;
pub use letters::{LETTERS, letter_meaning};
pub use linear::linear_as_megatron_counts;
pub use message::{Collective, Dimension, Message, Pass};
pub use operator::Operator;
pub use part::{Account, Axis, Created, Shard, Weight, WeightGroup, WeightPart, WeightRole};
pub use saved::{Saved, Savers};
pub use shape::Shape;
pub use sizes::{ExpertSizes, LatentSizes, LinearSizes};
pub use stack::{
    Section, SectionKind, are_alike, frozen_counts, layer_operators, layers_backward, messages_of,
    section_counts, sections, sections_of, work_of,
};
pub use symbols::Symbols;
pub use transient::Transient;
pub use vision::TOWER_ALIVE;
pub use work::{Kernel, Matmul, MatmulKind, Work};
