//! What a rollout engine holds on one accelerator: weights, key/value cache, CUDA graphs.
//!
//! vLLM uses `gpu_memory_utilization` of the total memory for weights, activations and cache, and captures its graphs
//! afterwards (`vllm/v1/worker/gpu_worker.py:determine_available_memory`). SGLang uses `mem_fraction_static` of the
//! memory that is free at start-up for weights and cache; activations and graphs go into the rest
//! (`sglang/srt/model_executor/pool_configurator.py:profile_available_bytes`).

use super::cache::{Held, held};
use super::own_rollouts::own_rollouts;
use crate::parameters::parameters;
use shardscope_explain::{Breakdown, Explanation, Formula};
use shardscope_operators::TOWER_ALIVE;
use shardscope_plan::{
    Beside, Cluster, Degrees, DpSharding, Layout, Model, NumberFormat, Plan, Recompute, Rollout,
    RolloutEngine, Served, Software, TowerModules, Tuning,
};
use shardscope_units::{Bytes, Count, Quantity};

const VLLM: &str = "vllm/v1/worker/gpu_worker.py:determine_available_memory";
const SGLANG: &str = "sglang/srt/model_executor/pool_configurator.py:profile_available_bytes";
const GRAPHS: &str = "sglang/srt/server_args.py: memory reserved for CUDA graphs";
const CACHE: &str = "vllm/v1/kv_cache_interface.py:AttentionSpec.page_size_bytes";
const CONTEXT: &str = "catalog: bytes of the driver context on the accelerator";
const FORWARD: &str = "a layer's forward pass without gradients, of as many tokens as are prefilled at once";

static WEIGHTS: Formula =
    Formula::new("P·w", "Weights of the engine's tensor rank, P elements of w bytes.", CACHE)
        .letters(&[("P", "parameters of a tensor rank of the engine"), ("w", "bytes per element")]);
static SHARE: Formula = Formula::new(
    "F·C - W",
    "KV cache and activations: the share F of the memory C that the engine is given, minus its weights W.",
    VLLM,
)
.letters(&[
    ("F", "share of the memory that the engine is given"),
    ("C", "bytes of the memory"),
    ("W", "bytes of the engine's weights"),
]);
static WITHIN: Formula = Formula::new(
    "F·C - W - T",
    "KV cache and activations: the share F of the memory C that the engine is given, minus its weights W and what the trainer's process holds when the engine starts in it.",
    "vllm/v1/worker/gpu_worker.py:determine_available_memory of 0.8; verl/workers/fsdp_workers.py and megatron_workers.py:init_model",
)
.letters(&[
    ("F", "share of the memory that the engine is given"),
    ("C", "bytes of the memory"),
    ("W", "bytes of the engine's weights"),
    ("T", "bytes of the trainer's weights, of models beside them, and outside of torch"),
]);
static SHARED: Formula = Formula::new(
    "F·C - W",
    "KV cache and activations: the share F of the memory C that the engine is given, minus the weights W, which are those that train.",
    "unsloth_zoo/vllm_utils.py:load_vllm",
)
.letters(&[
    ("F", "share of the memory that the engine is given"),
    ("C", "bytes of the memory"),
    ("W", "bytes of the weights"),
]);
static STATIC: Formula = Formula::new(
    "F·C - W",
    "KV cache: the share F of the memory C that is free when the engine starts, minus its weights W.",
    SGLANG,
)
.letters(&[
    ("F", "share of the free memory that the engine is given"),
    ("C", "bytes free when the engine starts"),
    ("W", "bytes of the engine's weights"),
]);
static ACTIVATIONS: Formula = Formula::new(
    "T·(2·h + 3·f)·w",
    "Activations of T tokens prefilled at once: the residual stream, a layer's input, and gate, up and their product in the MLP.",
    FORWARD,
).letters(&[("T", "tokens prefilled at once"), ("h", "hidden size"), ("f", "FFN hidden size per rank"), ("w", "bytes per element")]);
static IMAGES: Formula = Formula::new(
    "48·T·p·hi + M",
    "Tensors of one layer of the vision tower at most, were all T tokens prefilled at once of images, and embeddings of images that are kept for later.",
    "sglang/srt/managers/mm_utils.py:init_mm_embedding_cache; sglang/srt/environ.py:SGLANG_VLM_CACHE_SIZE_MB; what is alive as of transformers' modules",
)
.letters(&[
    ("T", "tokens prefilled at once"),
    ("p", "patches that become one token"),
    ("hi", "width of the vision tower"),
    ("M", "bytes of the cache of embeddings"),
]);
static CAPTURED: Formula =
    Formula::new("g·N", "CUDA graphs, g bytes for each of at most N sequences decoded at once.", GRAPHS)
        .letters(&[("g", "bytes per sequence"), ("N", "sequences decoded at once at most")]);
static DRIVER: Formula = Formula::new("C", "The driver context of the engine's own process.", CONTEXT)
    .letters(&[("C", "bytes of the driver context")]);

/// Bytes that SGLang reserves for CUDA graphs per sequence of the largest batch
/// (`reserved_mem += cuda_graph_max_bs * 2`, in MiB).
const GRAPH: Bytes = Bytes::mib(2);
/// Tokens that both engines prefill at once by default (`vllm/config/scheduler.py:max_num_batched_tokens`,
/// `sglang/srt/server_args.py:chunked_prefill_size` on accelerators of 80 GB).
const PREFILLED: u64 = 8192;
/// Bytes of image embeddings that SGLang caches (`SGLANG_VLM_CACHE_SIZE_MB`, of 1,048,576 bytes each).
const EMBEDDINGS: Bytes = Bytes::mib(100);
/// vLLM pads a vocabulary to a multiple of this many rows (`vocab_parallel_embedding.py:DEFAULT_VOCAB_PADDING_SIZE`).
const VOCAB_MULTIPLE: u64 = 64;

/// What an engine holds on one accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineMemory {
    /// Weights of its tensor rank.
    pub weights: Bytes,
    /// Key/value cache; with vLLM, activations use part of the same share.
    pub kv_cache: Bytes,
    /// CUDA graphs.
    pub graphs: Bytes,
    /// The most tokens that the cache can hold, in rollouts of full length.
    pub cache_tokens: u64,
    /// Rollouts of full length that the cache holds at once.
    pub cache_rollouts: u64,
    /// Every part, explained.
    parts: Vec<(EnginePart, Breakdown<Bytes>)>,
}

/// The parts of an engine's memory, by when they are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnginePart {
    /// Its copy of the model.
    Weights,
    /// Keys, values, and activations of a forward pass: allocated only while sequences are generated.
    Cache,
    /// Captured graphs, which survive sleep mode.
    Graphs,
    /// The driver context, which lives as long as the process.
    Context,
}

impl EngineMemory {
    /// Memory while it generates.
    pub(super) fn awake(&self) -> Vec<Breakdown<Bytes>> {
        self.parts_where(|_| true)
    }

    /// Memory while weights are transferred: everything but the cache.
    pub(super) fn receiving(&self) -> Vec<Breakdown<Bytes>> {
        self.parts_where(|part| part != EnginePart::Cache)
    }

    /// Memory while it sleeps: graphs and context.
    pub(super) fn asleep(&self) -> Vec<Breakdown<Bytes>> {
        self.parts_where(|part| matches!(part, EnginePart::Graphs | EnginePart::Context))
    }

    fn parts_where(&self, holds: impl Fn(EnginePart) -> bool) -> Vec<Breakdown<Bytes>> {
        self.parts.iter().filter(|(part, _)| holds(*part)).map(|(_, memory)| memory.clone()).collect()
    }
}

/// How many sequences unsloth lets vLLM decode at once, by the GiB left for its cache
/// (`unsloth_zoo/vllm_utils.py:load_vllm`, `approx_max_num_seqs`); beyond the last entry, its number applies.
const BY_CACHE: [(u64, u64); 10] = [
    (2, 8),
    (4, 16),
    (8, 32),
    (12, 48),
    (16, 64),
    (24, 80),
    (40, 96),
    (48, 112),
    (80, 128),
    (u64::MAX >> 30, 256),
];

/// vLLM in the trainer's process, sharing the trainer's `weights`.
fn in_process(plan: &Plan, rollout: &Rollout, weights: Bytes) -> EngineMemory {
    let memory = plan.cluster().accelerator.memory;
    let share = Count::rounded_up(memory.number() * rollout.fraction).bytes(1);
    let kv_cache = share.less(weights);
    let given = [("F", rollout.fraction), ("C", memory.number()), ("W", weights.number())];
    let leaf = |label, bytes, formula, symbols: &[(&'static str, f64)]| {
        Breakdown::leaf(label, bytes).because(Explanation::new(formula, symbols))
    };
    let mut parts = vec![(EnginePart::Cache, leaf("KV cache and activations", kv_cache, &SHARED, &given))];
    let fits = |&&(gib, _): &&(u64, u64)| kv_cache <= Bytes::gib(gib);
    let most = BY_CACHE.iter().find(fits).map_or(rollout.sequences, |&(_, most)| most);
    let sequences = most.min(rollout.sequences);
    let graphs = if rollout.graphs { GRAPH * sequences } else { Bytes::ZERO };
    if rollout.graphs {
        let symbols = [("g", GRAPH.number()), ("N", Count::new(sequences).number())];
        parts.push((EnginePart::Graphs, leaf("engine CUDA graphs", graphs, &CAPTURED, &symbols)));
    }
    let Held { tokens: cache_tokens, rollouts: cache_rollouts } = held(plan.model(), rollout, kv_cache);
    EngineMemory { weights, kv_cache, graphs, cache_tokens, cache_rollouts, parts }
}

/// The engine of `rollout` on an accelerator with `taken` bytes in use when it starts, including `weights` of the
/// policy; `process` of them are of the process that also runs vLLM, if it counts them as its own.
pub(super) fn engine(
    plan: &Plan,
    rollout: &Rollout,
    [taken, process]: [Bytes; 2],
    weights: Bytes,
) -> EngineMemory {
    let cuts = plan.recipe().software.semantics().cuts_models;
    if rollout.engine == RolloutEngine::Vllm && rollout.framework.semantics(cuts).shares_weights {
        return in_process(plan, rollout, weights);
    }
    if rollout.engine == RolloutEngine::Transformers {
        let own = own_rollouts(plan, rollout);
        let (weights, graphs) = (Bytes::ZERO, Bytes::ZERO);
        let parts = own.parts.into_iter().map(|part| (EnginePart::Cache, part)).collect();
        // All sequences that are sampled at once: the cache grows with them, however much is free.
        let cache_rollouts = rollout.sequences;
        let (kv_cache, cache_tokens) = (own.cache, own.tokens);
        return EngineMemory { weights, kv_cache, graphs, cache_tokens, cache_rollouts, parts };
    }
    let total = || parameters(plan).total;
    let in_process = rollout.engine == RolloutEngine::Vllm
        && rollout.framework.counts_process()
        && rollout.is_co_located();
    serving(plan, (plan.model(), &total), rollout, taken, in_process.then_some(process))
}

/// The engine that serves a reward model on the policy's accelerators, which starts before anything else is there
/// (`verl/trainer/ppo/ray_trainer.py:init_workers`).
pub(super) fn reward_engine(plan: &Plan, rollout: &Rollout) -> Option<EngineMemory> {
    let reward = plan.recipe().beside.reward.as_deref()?;
    let Served { engine, fraction, tensor } = reward.served?;
    let own = Rollout { engine, fraction, tensor, graphs: false, weights: NumberFormat::Bf16, ..*rollout };
    let total = || tensor_rank(plan, &reward.model, 1).unwrap_or_default();
    Some(serving(plan, (&reward.model, &total), &own, Bytes::ZERO, None))
}

/// An engine of its own that serves a model of `total` parameters.
fn serving(
    plan: &Plan,
    (model, total): (&Model, &dyn Fn() -> Count),
    rollout: &Rollout,
    taken: Bytes,
    process: Option<Bytes>,
) -> EngineMemory {
    let accelerator = &plan.cluster().accelerator;
    // If Megatron would reject this layout (more ranks than key/value heads), assume an even share.
    let count = tensor_rank(plan, model, rollout.tensor)
        .unwrap_or_else(|| Count::new(total().get().div_ceil(rollout.tensor.max(1))));
    let weights = count.bytes(rollout.weights.width());
    let available = match rollout.engine {
        // SGLang measures free memory when it starts, vLLM takes a share of the entire device: the same fraction
        // means different bytes.
        RolloutEngine::Sglang => accelerator.memory.less(taken),
        RolloutEngine::Vllm | RolloutEngine::Transformers => accelerator.memory,
    };
    let share = Count::rounded_up(available.number() * rollout.fraction).bytes(1);
    let kv_cache = share.less(weights + process.unwrap_or_default());
    let graphs = if rollout.graphs { GRAPH * rollout.sequences } else { Bytes::ZERO };
    let given = [("F", rollout.fraction), ("C", available.number()), ("W", weights.number())];
    let leaf = |label, bytes, formula, symbols: &[(&'static str, f64)]| {
        Breakdown::leaf(label, bytes).because(Explanation::new(formula, symbols))
    };
    let width = Count::new(rollout.weights.width()).number();
    let copy = leaf("engine weights", weights, &WEIGHTS, &[("P", count.number()), ("w", width)]);
    let mut parts = vec![(EnginePart::Weights, copy)];
    match rollout.engine {
        RolloutEngine::Vllm | RolloutEngine::Transformers => {
            let (formula, mut given) = (process.map_or(&SHARE, |_| &WITHIN), given.to_vec());
            given.extend(process.map(|held| ("T", held.number())));
            parts.push((EnginePart::Cache, leaf("KV cache and activations", kv_cache, formula, &given)));
        }
        RolloutEngine::Sglang => {
            parts.push((EnginePart::Cache, leaf("key/value cache", kv_cache, &STATIC, &given)));
            let ffn = widest(model) / rollout.tensor.max(1);
            let elements = Count::of_shape(&[PREFILLED, 2 * model.hidden_size + 3 * ffn]);
            let symbols = [
                ("T", Count::new(PREFILLED).number()),
                ("h", Count::new(model.hidden_size).number()),
                ("f", Count::new(ffn).number()),
                ("w", 2.0),
            ];
            let activations = leaf("engine activations", elements.bytes(2), &ACTIVATIONS, &symbols);
            parts.push((EnginePart::Cache, activations));
            if let Some(tower) = model.vision {
                let patches = PREFILLED.saturating_mul(tower.patches_per_token);
                let alive = Count::of_shape(&[patches, tower.hidden_size]).bytes(TOWER_ALIVE);
                let symbols = [
                    ("T", Count::new(PREFILLED).number()),
                    ("p", Count::new(tower.patches_per_token).number()),
                    ("hi", Count::new(tower.hidden_size).number()),
                    ("M", EMBEDDINGS.number()),
                ];
                let images = leaf("engine image tensors", alive + EMBEDDINGS, &IMAGES, &symbols);
                parts.push((EnginePart::Cache, images));
            }
        }
    }
    if rollout.graphs {
        let symbols = [("g", GRAPH.number()), ("N", Count::new(rollout.sequences).number())];
        parts.push((EnginePart::Graphs, leaf("engine CUDA graphs", graphs, &CAPTURED, &symbols)));
    }
    // A process has one.
    if process.is_none() {
        let context = [("C", accelerator.context.number())];
        let own = leaf("engine's driver context", accelerator.context, &DRIVER, &context);
        parts.push((EnginePart::Context, own));
    }
    let Held { tokens: cache_tokens, rollouts: cache_rollouts } = held(model, rollout, kv_cache);
    EngineMemory { weights, kv_cache, graphs, cache_tokens, cache_rollouts, parts }
}

/// Width of the widest MLP that a token passes through.
fn widest(model: &Model) -> u64 {
    let experts = model.experts.as_ref().map_or(0, |experts| {
        let shared = experts.shared_expert_intermediate_size.unwrap_or(0);
        experts.ffn_hidden_size.saturating_mul(experts.router_topk).saturating_add(shared)
    });
    if experts > 0 { experts } else { model.ffn_hidden_size }
}

/// Parameters of one tensor rank of an engine that shards the model over `tensor` ranks and in no other way.
fn tensor_rank(plan: &Plan, model: &Model, tensor: u64) -> Option<Count> {
    let mut model = model.clone();
    model.padded_vocab_size = model.padded_vocab_size.next_multiple_of(VOCAB_MULTIPLE * tensor.max(1));
    model.vocab_padding = None;
    // The engine generates without the multi-token-prediction depths used in training.
    model.mtp_num_layers = 0;
    if let Some(tower) = &mut model.vision {
        (tower.modules, tower.in_engine_alone) = (TowerModules::Own, false);
    }
    let degrees = Degrees { world_size: tensor, tensor, ..Degrees::default() };
    let layout = Layout::new(&degrees, model.num_layers, 0).ok()?;
    let cluster = Cluster { num_nodes: 1, gpus_per_node: tensor, ..plan.cluster().clone() };
    let mut recipe = plan.recipe().clone();
    (recipe.micro_batch_size, recipe.global_batch_size, recipe.num_micro_batches) = (1, 1, 1);
    recipe.software = Software::MegatronCoreTe;
    recipe.dp_sharding = DpSharding::Replicated;
    recipe.recompute = Recompute::None;
    recipe.tuning = Tuning::default();
    // The training recipe must not reject a layout that only the engine has, so its precision, sharding and
    // overlap are reset.
    recipe.fp8 = None;
    recipe.rollout = None;
    recipe.beside = Beside::default();
    recipe.optimizer.precision_aware = false;
    recipe.optimizer.shares_weights = false;
    recipe.optimizer.cpu_offload_fraction = 0.0;
    (recipe.overlap.pipeline, recipe.overlap.tensor) = (false, false);
    (recipe.overlap.param_gather, recipe.overlap.expert) = (false, false);
    let variant = Plan::new(model, cluster, layout, recipe).ok()?;
    Some(parameters(&variant).ranks.first()?.count)
}
