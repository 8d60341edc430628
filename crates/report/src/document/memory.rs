//! `report.memory`. All sizes are bytes.

use serde::Serialize;
use std::collections::BTreeMap;

use super::topology::{Labels, Lists};
use super::tree::{Explanations, Tree};
use shardscope_estimate::{
    self as estimate, ChunkMemory, LayerNode, Load, Phase, RankMemory, RlMemory, memory_doubts,
};
use shardscope_plan::Plan;
use shardscope_units::{Bytes, Count};

/// Memory of every rank.
#[derive(Debug, Serialize)]
pub struct Memory<'r> {
    /// One entry for each pipeline rank; ranks that differ only in other dimensions need the same.
    pub ranks: Vec<RankOfMemory<'r>>,
    /// The rank that needs most.
    pub worst: Worst,
    /// Memory of one accelerator.
    pub capacity: Bytes,
    /// Fraction of `capacity` to be kept free, 0 to 0.5.
    pub headroom: f64,
    /// `fits`; `tight` if `peak_reserved` leaves less than the headroom, or exceeds `capacity` by no more than the
    /// allocator can release; or `out_of_memory` if `peak_required` exceeds `capacity`.
    pub verdict: &'static str,
    /// Whether every rank's `peak_required` is within `capacity`: `verdict` is not `out_of_memory`.
    pub fits: bool,
    /// What the estimate cannot know, a sentence each.
    pub unknowns: Vec<&'static str>,
    /// The model's parts, unsharded and on one rank.
    pub layers: Layer<'r>,
    /// Saved for backward by one transformer layer of each kind for one micro-batch on one rank.
    pub saved_activations: SavedActivations,
    /// Reinforcement learning: its phases on the fullest accelerator. Null without rollouts. `verdict` also takes the
    /// worst of these into account.
    pub rollout: Option<Rollouts<'r>>,
}

/// Training and rollouts of reinforcement learning, which alternate.
#[derive(Debug, Serialize)]
pub struct Rollouts<'r> {
    /// Whether rollouts run on the accelerators of the training: the phases then share what stays allocated between
    /// them.
    pub co_located: bool,
    /// `training`, `log-probabilities` (in larger micro-batches than training's), `weight update` (co-located only), `rollout`.
    pub phases: Vec<PhaseOfMemory<'r>>,
    /// The phases that do not fit, by name.
    pub out_of_memory: Vec<&'static str>,
    /// Weights of the engine on one accelerator.
    pub weights: Bytes,
    /// Its key/value cache; with vLLM, activations come out of the same budget.
    pub kv_cache: Bytes,
    /// Its CUDA graphs.
    pub graphs: Bytes,
    /// Maximum tokens in the cache of one tensor group.
    pub cache_tokens: u64,
    /// Rollouts of full length that it holds at once.
    pub cache_rollouts: u64,
}

/// Memory of one phase, on the fullest device.
#[derive(Debug, Serialize)]
pub struct PhaseOfMemory<'r> {
    /// Its name.
    pub name: &'static str,
    /// What the device shows.
    pub peak: Bytes,
    /// `fits`, `tight` or `out_of_memory`.
    pub verdict: &'static str,
    /// Breakdown of the peak.
    pub breakdown: Tree<'r, Bytes>,
}

/// Memory of the GPUs of one pipeline rank.
#[derive(Debug, Serialize)]
pub struct RankOfMemory<'r> {
    /// Place in the pipeline group.
    pub pipeline_rank: u64,
    /// Place in the tensor group.
    pub tensor_rank: u64,
    /// Place in the expert group.
    pub expert_rank: u64,
    /// Labels of the GPUs that need this much.
    pub gpus: Labels,
    /// Weights in the type they are trained in.
    pub parameters: Bytes,
    /// The part of these that trains.
    pub trained: Bytes,
    /// The frozen part, including the constants of quantized weights.
    pub frozen: Bytes,
    /// Gradients, with buffers that hold them.
    pub gradients: Bytes,
    /// Optimizer states, including its main copies of the weights.
    pub optimizer: Bytes,
    /// Saved for backward at the peak.
    pub activations: Bytes,
    /// Temporary tensors at the peak.
    pub temporaries: Bytes,
    /// What `torch.cuda.max_memory_allocated()` shows.
    pub peak_allocated: Bytes,
    /// Outside PyTorch's allocator: CUDA context, NCCL, workspaces; and the allocator slack.
    pub framework: Bytes,
    /// What the device shows as used, or would have to show: never clipped to the capacity.
    pub peak_reserved: Bytes,
    /// The same after the allocator has released all that it can, as it does when the device is full.
    pub peak_required: Bytes,
    /// What `torch.cuda.memory_allocated()` shows between two steps.
    pub between_steps: Bytes,
    /// Whether `peak_required` is within the capacity.
    pub fits: bool,
    /// The moment of the peak.
    pub at: &'static str,
    /// The operator during which it is reached.
    pub within: Option<&'static str>,
    /// Micro-batches saved by each model chunk.
    pub chunks: Vec<SavedByChunk>,
    /// Breakdown of the peak.
    pub breakdown: Tree<'r, Bytes>,
}

/// Activations that a model chunk saves.
#[derive(Debug, Serialize)]
pub struct SavedByChunk {
    /// Saved for one micro-batch.
    pub kept_per_micro_batch: Bytes,
    /// Micro-batches whose activations are held at once.
    pub in_flight: u64,
}

/// The rank that needs most.
#[derive(Debug, Serialize)]
pub struct Worst {
    /// Place in the pipeline group.
    pub pipeline_rank: u64,
    /// See [`RankOfMemory::peak_allocated`].
    pub peak_allocated: Bytes,
    /// See [`RankOfMemory::peak_reserved`].
    pub peak_reserved: Bytes,
    /// The moment of the peak.
    pub at: &'static str,
}

/// Saved by one layer of each kind; null if the model has none.
#[derive(Debug, Serialize)]
pub struct SavedActivations {
    /// A layer with a dense MLP.
    pub dense: Option<Bytes>,
    /// A layer of experts.
    pub moe: Option<Bytes>,
    /// Each kind of layer by its name, if there are kinds other than attention with a dense MLP or with experts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<&'static str, Bytes>,
}

/// A part of the model: a layer, a weight.
#[derive(Debug, Serialize)]
pub struct Layer<'r> {
    /// Name of the layer.
    pub name: &'static str,
    /// How many equal ones its parent has, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Shape of the tensor in the unsharded model; only for leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<&'r [u64]>,
    /// In the unsharded model.
    #[serde(flatten)]
    pub whole: LayerLoad,
    /// On one rank that holds it.
    pub sharded: ShardedLayer<'r>,
    /// Its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Layer<'r>>,
}

/// A part of the model on one rank.
#[derive(Debug, Serialize)]
pub struct ShardedLayer<'r> {
    /// Shape of the tensor on one rank; only for leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<&'r [u64]>,
    /// What it takes there.
    #[serde(flatten)]
    pub load: LayerLoad,
}

/// What a part of the model takes.
#[derive(Debug, Serialize)]
pub struct LayerLoad {
    /// Parameters.
    pub parameters: Count,
    /// Their bytes in the type they are trained in.
    pub parameter_bytes: Bytes,
    /// Bytes saved for backward, for one micro-batch.
    pub activation_bytes: Bytes,
}

impl<'r> Memory<'r> {
    pub(super) fn new(
        plan: &Plan,
        memory: &'r estimate::Memory,
        lists: Lists,
        explanations: &mut Explanations,
    ) -> Self {
        for (index, rank) in memory.ranks.iter().enumerate() {
            explanations.add_tree(&format!("memory/ranks/{index}/breakdown"), &rank.breakdown);
        }
        // Numbered over all phases as the document lists them.
        for (index, phase) in memory.rl.iter().flat_map(|rl| &rl.phases).enumerate() {
            explanations.add_tree(&format!("memory/rollout/phases/{index}/breakdown"), &phase.breakdown);
        }
        // Labels for each stage in the order of `ranks`, which have one entry per stage.
        let gpus = Labels::by_stage(plan, lists);
        Self {
            ranks: memory.ranks.iter().zip(gpus).map(|(rank, gpus)| RankOfMemory::new(rank, gpus)).collect(),
            worst: Worst {
                pipeline_rank: memory.worst.pipeline_rank,
                peak_allocated: memory.worst.peak_allocated,
                peak_reserved: memory.worst.peak_reserved,
                at: memory.worst.at,
            },
            capacity: memory.capacity,
            headroom: memory.headroom,
            verdict: memory.verdict.name(),
            fits: memory.fits,
            unknowns: memory_doubts(plan),
            layers: Layer::new(&memory.layers),
            saved_activations: SavedActivations {
                dense: memory.saved_activations.dense,
                moe: memory.saved_activations.moe,
                kinds: memory.saved_activations.other_kinds().collect(),
            },
            rollout: memory.rl.as_ref().map(Rollouts::new),
        }
    }
}

impl<'r> Rollouts<'r> {
    fn new(rl: &'r RlMemory) -> Self {
        Self {
            co_located: rl.co_located,
            phases: rl.phases.iter().map(PhaseOfMemory::new).collect(),
            out_of_memory: rl.failing().map(|phase| phase.kind.name()).collect(),
            weights: rl.engine.weights,
            kv_cache: rl.engine.kv_cache,
            graphs: rl.engine.graphs,
            cache_tokens: rl.engine.cache_tokens,
            cache_rollouts: rl.cache_rollouts,
        }
    }
}

impl<'r> PhaseOfMemory<'r> {
    fn new(phase: &'r Phase) -> Self {
        Self {
            name: phase.kind.name(),
            // The full sum, including cached blocks: `verdict` accounts for whether they can be released.
            peak: phase.breakdown.value(),
            verdict: phase.verdict.name(),
            breakdown: Tree::new(&phase.breakdown),
        }
    }
}

impl<'r> RankOfMemory<'r> {
    fn new(rank: &'r RankMemory, gpus: Labels) -> Self {
        let totals = &rank.totals;
        Self {
            pipeline_rank: rank.pipeline_rank,
            tensor_rank: rank.tensor_rank,
            expert_rank: rank.expert_rank,
            gpus,
            parameters: totals.parameters,
            trained: rank.trained,
            frozen: rank.frozen,
            gradients: totals.gradients,
            optimizer: totals.optimizer,
            activations: totals.activations,
            temporaries: totals.temporaries,
            peak_allocated: totals.peak_allocated,
            framework: totals.framework,
            peak_reserved: totals.peak_reserved,
            peak_required: totals.peak_required,
            between_steps: totals.between_steps,
            fits: rank.fits,
            at: rank.at,
            within: rank.within,
            chunks: rank.chunks.iter().map(SavedByChunk::new).collect(),
            breakdown: Tree::new(&rank.breakdown),
        }
    }
}

impl SavedByChunk {
    fn new(chunk: &ChunkMemory) -> Self {
        Self { kept_per_micro_batch: chunk.kept, in_flight: chunk.in_flight }
    }
}

impl<'r> Layer<'r> {
    fn new(node: &'r LayerNode) -> Self {
        Self {
            name: node.name,
            // Omitted for one, the usual case.
            times: Some(node.times).filter(|times| *times != 1),
            shape: node.shape.as_deref(),
            whole: LayerLoad::new(&node.full),
            sharded: ShardedLayer {
                shape: node.sharded_shape.as_deref(),
                load: LayerLoad::new(&node.sharded),
            },
            children: node.children.iter().map(Self::new).collect(),
        }
    }
}

impl LayerLoad {
    fn new(load: &Load) -> Self {
        Self {
            parameters: load.parameters,
            parameter_bytes: load.parameter_bytes,
            activation_bytes: load.activation_bytes,
        }
    }
}
