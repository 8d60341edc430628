//! What is to be trained, on which machines, sharded how, and with which recipe: [`Model`], [`Cluster`], [`Layout`]
//! and [`Recipe`], and [`Plan`], the four checked together. Estimators take `&Plan` and cannot fail.

mod adapters;
mod arrangement;
mod asked;
mod beside;
mod changes;
mod checked;
mod cluster;
mod contradiction;
mod critic;
mod define;
mod degrees;
mod encoder;
mod field;
pub mod hints;
mod idle;
mod kernels;
mod kind;
mod layer_counts;
mod layers;
mod layout;
pub mod limits;
mod linear_modules;
mod low_rank;
mod marks;
mod model;
mod moe;
mod named;
mod named_tensors;
mod not_modelled;
mod number;
mod offload;
mod optimizer;
mod plan;
mod precision;
mod quantization;
mod recipe;
mod recompute;
mod resolution;
mod rl_framework;
mod rollout;
mod rules;
mod sampling;
mod serial;
mod setting;
mod setting_word;
mod silicon;
mod software;
mod split;
mod stage_text;
mod transformers;
mod tuning;
mod variant;
mod vision;
pub mod word;

pub use adapters::{AdapterLibrary, AdapterSemantics};
pub use arrangement::{
    ActivationSteps, Arrangement, Dropout, JointParts, LayerInputs, NormOrder, NormPlaces, NormProduct,
    NormWeights, QueryTemperature, RotationTables, Router,
};
pub use asked::{Budget, LeftOut};
pub use beside::{Beside, RewardModel, Served};
pub use cluster::{Accelerator, Cluster, Link, Measured, Peaks};
pub use contradiction::Contradiction;
pub use degrees::Degrees;
pub use encoder::Encoder;
pub use field::{Field, tables};
pub use kernels::{AttentionKernel, CudaGraphs, FlashRelease, Fusions, GraphModules, LossKind};
pub use kind::ValueKind;
pub use layer_counts::StageSizes;
pub use layers::{FeedForward, FullHeads, LayerKind, LinearKind, LinearMixer, Mixer, Mixers, Window};
pub use layout::{ContextKind, Layout, PipelineSchedule, RankOrder};
pub use linear_modules::{LinearModule, LoraModules};
pub use low_rank::{LowRank, LowRankUpdate, ProjectedSide, Projection};
pub use marks::Marks;
pub use model::{
    Activation, AttentionSoftmax, Embeddings, ExpertGroups, Experts, LatentAttention, LinearBias, Model,
    Normalization, PositionEmbedding, VocabPadding,
};
pub use moe::{Dispatcher, LoadBalancing, MoeRecipe, RouterLoss};
pub use named_tensors::{NamedTensor, NamedTensors};
pub use not_modelled::{Effect, NotModelled, NotRead, Subject, bare_name};
pub use number::NumberFormat;
pub use offload::{LEAST_OFFLOADED, Offload, OffloadModule, OffloadModules};
pub use optimizer::{DpSharding, Optimizer, OptimizerKind, StateFormat};
pub use plan::Plan;
pub use precision::{Fp8, Fp8Recipe};
pub use quantization::{Quantization, UnquantizedLinears};
pub use recipe::{HEADROOM, Overlap, Recipe};
pub use recompute::{Recompute, RecomputeModule};
pub use resolution::{Asked, Question, Resolution};
pub use rl_framework::{Bucket, Fp32Logits, LogProbs, RlFramework, RlSemantics};
pub use rollout::{Offloads, Residence, Rollout, RolloutEngine};
pub use sampling::sampling_bytes;
pub use setting::{Origin, Setting, SettingValue};
pub use setting_word::Word;
pub use silicon::{Generation, Processor};
pub use software::{
    AttentionBuild, BatchMask, EndsGathered, GatedActivation, GradientBuffers, HostIssue, HostOptimizer,
    MemoryBuffer, Modules, NormModule, Offers, RecomputedModules, Rotation, Semantics, Software,
};
pub use split::{Chunk, Stage, StageMap, StageSplit};
pub use transformers::{DdpBuckets, PreferenceLogits, Transformers};
pub use tuning::{
    AdapterKernels, BaseTraining, DataEngine, ExpertKernel, Lora, Objective, Reference, Taken, Tuning,
};
pub use variant::Variant;
pub use vision::{Kept, Projector, TowerGradients, TowerLiger, TowerModules, VisionKept, VisionTower};
