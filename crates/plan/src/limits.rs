//! The largest sizes accepted. They lie far above anything ever built, and keep every product that an estimator forms
//! within 64 bits; [`Plan::new`](super::Plan::new) bounds the products themselves.

/// Transformer layers of a model.
pub const MAX_LAYERS: u64 = 4096;
/// Hidden size.
pub const MAX_HIDDEN: u64 = 1 << 18;
/// Inner width of an MLP.
pub const MAX_FFN: u64 = 1 << 20;
/// Attention heads of a layer.
pub const MAX_HEADS: u64 = 1 << 14;
/// Width of one head.
pub const MAX_HEAD_WIDTH: u64 = 1 << 14;
/// Sequence length, in tokens.
pub const MAX_SEQUENCE: u64 = 1 << 27;
/// Position embeddings.
pub const MAX_POSITIONS: u64 = 1 << 30;
/// Rows of the embedding.
pub const MAX_VOCAB: u64 = 1 << 27;
/// Routed experts of one layer.
pub const MAX_EXPERTS: u64 = 1 << 14;
/// Multi-token-prediction depths.
pub const MAX_MTP: u64 = 64;
/// Parameters of a vision tower, including its projector: a hundred times the largest published.
pub const MAX_VISION: u64 = 1 << 40;
/// Patches of an image that become one token.
pub const MAX_PATCHES: u64 = 1 << 10;
/// Elements or bytes that an offloading setting may name: more than any device holds.
pub const MAX_SENT: u64 = 1 << 48;
/// MiB of a bucket of gradients.
pub const MAX_BUCKET: u64 = 1 << 20;
/// Accelerators of a run.
pub const MAX_WORLD: u64 = 1 << 20;
/// Any one degree of parallelism.
pub const MAX_DEGREE: u64 = 1 << 16;
/// Parts that the pipeline cuts the model into, PP times VPP: eight times the most ever run (64 stages of one part,
/// 16 of 8). The time of a step and the memory of a stage follow every event of so many parts.
pub const MAX_PIPELINE_PARTS: u64 = 1 << 9;
/// Micro-batches that a chunk takes in a row, times the parts: the forward passes in one turn of an interleaved
/// schedule.
pub const MAX_TURN: u64 = 1 << 20;
/// Sequences of one step.
pub const MAX_BATCH: u64 = 1 << 24;
/// Parameters of the whole model: a thousand times the largest published.
pub const MAX_PARAMETERS: f64 = 4e15;
/// Elements that one micro-batch may produce in one layer on one rank, scores included.
pub const MAX_ELEMENTS: f64 = 4e15;
/// The narrowest layers whose steps were compiled (`tests/data/maxtext/steps.jsonl`); for narrower ones, tiling
/// determines the time. Unit: element.
pub const COMPILED_WIDTH: u64 = 1024;
/// Elements of a row of a TPU's vector unit. Unit: element.
pub const COMPILED_LANES: u64 = 128;
/// The devices over which steps were compiled; over 256 the compiler chose a different way to compute the output
/// layer's gradient.
pub const COMPILED_DEVICES: std::ops::RangeInclusive<u64> = 4..=64;
