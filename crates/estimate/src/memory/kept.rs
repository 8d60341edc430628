//! What a chunk saves between forward and backward for one micro-batch.

use std::ops::Range;

use shardscope_explain::Formula;
use shardscope_operators::{Operator, Saved, SectionKind, Symbols, dispatches, section_counts};
use shardscope_plan::{
    Chunk, LayerKind, NamedTensor, PositionEmbedding, Recompute, Rotation, RotationTables,
};
use shardscope_units::Bytes;

const CHECKPOINT: &str = "megatron/core/transformer/transformer_block.py:_checkpointed_forward";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a 16-bit number.
const HALF: u64 = 2;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

pub(super) static INPUT: Formula =
    Formula::new("S·h·Br", "The saved input of a block of recomputed layers.", CHECKPOINT);
static ROUTED_INPUT: Formula = Formula::new(
    "n·h·Br + n·E·Bp + 12·n·topk",
    "The saved input of a recomputed layer, and what its router chose, which is not worked out again: its product, and \
     values and indices of the chosen. Counted for layers without experts too.",
    "nemo_automodel/components/moe/parallelizer.py:apply_ac",
);
pub(super) static SPREAD_INPUT: Formula = Formula::new(
    "S·h·Br/t",
    "The saved input of a block of recomputed layers, sharded over the tensor ranks.",
    CHECKPOINT,
);
static BOTH_PAIRS: Formula = Formula::new(
    "2·s·(rot + rotf)·B",
    "RoPE cosines and sines, for the heads of windowed layers and for those of the others.",
    "transformers/models/gemma4/modeling_gemma4.py:Gemma4TextRotaryEmbedding.forward",
);
static ROTARY_PAIR: Formula = Formula::new(
    "2·s·rot·B",
    "RoPE cosines and sines, shared by all layers.",
    "transformers: LlamaRotaryEmbedding.forward",
);
static HALF_PAIR: Formula = Formula::new(
    "s·rot·B",
    "RoPE cosines and sines, one column for each pair of a head's columns.",
    "transformers: GptOssRotaryEmbedding.forward",
);
static COMPLEX_PAIR: Formula = Formula::new(
    "4·s·rot",
    "RoPE as complex numbers of fp32, one for each pair of a head's columns.",
    "transformers: DeepseekV2RotaryEmbedding.forward",
);
static OWN_ROTARY: Formula = Formula::new(
    "4·n·rot",
    "RoPE cosines and sines of each sample in fp32, an argument of every recomputed layer.",
    "nemo_automodel/components/models/gpt_oss/rope_utils.py:position_ids_to_freqs_cis",
);
static OWN_COMPLEX: Formula = Formula::new(
    "4·n·dr",
    "RoPE of each sample as complex numbers of fp32, one for each pair of a head's columns.",
    "nemo_automodel/components/models/deepseek_v3/rope_utils.py",
);
static NARROW_ROTARY_PAIR: Formula = Formula::new(
    "4·s·rot",
    "RoPE cosines and sines in 16 bits, the format of the embeddings beside norms in fp32.",
    "transformers: LlamaRotaryEmbedding.forward, after trl/trainer/utils.py:peft_module_casting_to_bf16",
);
static WIDE_ROTARY_PAIR: Formula = Formula::new(
    "8·s·rot",
    "RoPE cosines and sines in fp32, shared by all layers.",
    "transformers: Olmo2RotaryEmbedding.forward",
);
static LAYERS_PAIRS: Formula = Formula::new(
    "8·L·s·rot",
    "RoPE cosines and sines in fp32, one pair per layer.",
    "olmo_core/nn/rope.py:RotaryEmbedding, whose cache is of its own",
);
const NAMED: &str =
    "jax.checkpoint_policies.save_only_these_names; MaxText: layers/attentions.py, layers/linears.py";
static QUERIES: Formula = Formula::new("n·a·d·B", "Queries as attention reads them, kept by name.", NAMED);
static KEYS: Formula =
    Formula::new("n·k·d·B", "Keys or values as attention reads them, kept by name.", NAMED);
static CONTEXT: Formula =
    Formula::new("n·a·d·B", "The output of attention before its projection, kept by name.", NAMED);
static LOG_SUMS: Formula =
    Formula::new("4·n·a", "The logarithm of each row's sum in attention, fp32, kept with its output.", NAMED);
static OUTPUT: Formula =
    Formula::new("n·h·B", "The output of attention's last projection, kept by name.", NAMED);
static INNER: Formula =
    Formula::new("n·f·B", "The output of one of the MLP's first projections, kept by name.", NAMED);
pub(super) static ROTARY: Formula = Formula::new(
    "4·s·d",
    "The fp32 RoPE table, an argument of every recomputed block and shared by all.",
    CHECKPOINT,
);

/// How the layers of a chunk are saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayersKept {
    /// Recomputed runs of layers, for which only the input is saved.
    pub(super) runs: u64,
    /// Runs whose input stays on the device; the other inputs go to the host.
    pub(super) inputs: u64,
    /// Layers of the longest run.
    pub(super) run: u64,
    /// Layers saved without recomputation, by kind, in the order of [`LayerKind::ALL`].
    pub(super) layers: [u64; LayerKind::ALL.len()],
    /// Kind of the layer among these that is the model's first trainable one, if its input requires no gradient.
    pub(super) first: Option<LayerKind>,
}

impl LayersKept {
    /// How many of the chunk's `times` sections of `kind` are saved without recomputation.
    pub(super) fn kept_of(&self, kind: SectionKind, times: u64) -> u64 {
        kind.layer().map_or(times, |layer| self.layers[layer.index()])
    }

    /// Whether one of `kind` is the first trainable layer.
    pub(super) fn has_first(&self, kind: SectionKind) -> bool {
        kind.layer().is_some() && kind.layer() == self.first
    }
}

/// Layer inputs on the device at once if offloaded ones come back as separate tensors: the next layer's arrives
/// before the last one's is freed (`tests/data/activations/streamed_inputs.tsv`).
const STREAMED: u64 = 2;

/// Whether inputs of recomputed layers, except the last layer's, go to the host and come back into buffers.
pub(super) fn buffers_inputs(x: &Symbols<'_>) -> bool {
    x.sends_input(x.n * x.h)
}

fn streams_inputs(x: &Symbols<'_>) -> bool {
    x.recipe().software.semantics().modules.streams_inputs
}

/// Number of inputs of `runs` recomputed layers that are on the device at once.
fn inputs_held(x: &Symbols<'_>, runs: u64) -> u64 {
    match () {
        // None stays on the device: each comes back when its layer is recomputed
        // (`tests/data/activations/llamafactory_inputs.tsv`).
        () if x.recipe().offload.every_input => 0,
        () if x.recipe().offload.layer_inputs && streams_inputs(x) => runs.min(STREAMED),
        // The last run's input is needed immediately and stays; the others are on the host until backward needs them.
        () if buffers_inputs(x) => runs.min(1),
        () => runs,
    }
}

/// How the layers of `chunk` are saved.
pub(super) fn layers_kept(x: &Symbols<'_>, chunk: &Chunk) -> LayersKept {
    let all = SectionKind::layers(&section_counts(x, chunk));
    match x.recipe().recompute {
        Recompute::Uniform { num_layers, .. } => {
            // A unit never spans chunks: each virtual stage checkpoints its own layers.
            let run = num_layers.clamp(1, all.max(1));
            // The last unit of a chunk may be shorter; its input is saved all the same.
            let runs = all.div_ceil(run);
            let inputs = inputs_held(x, runs);
            LayersKept { runs, inputs, run: run.min(all), ..LayersKept::default() }
        }
        Recompute::Block { num_layers, .. } => {
            let runs = num_layers.min(all);
            // Block takes the first layers of each chunk (transformer_block.py:_checkpointed_forward); the rest are
            // saved in full.
            let rest = chunk.layers.start + runs..chunk.layers.end;
            LayersKept { runs, inputs: runs, run: runs.min(1), ..as_they_are(x, rest) }
        }
        Recompute::Every { .. } => {
            let all = chunk.layers.clone();
            let again = |index: &u64| x.recipe().recompute.recomputes_layer(*index, &chunk.layers);
            let runs = x.recipe().recompute.whole_layers(&chunk.layers);
            let mut kept = LayersKept { runs, inputs: runs, run: runs.min(1), ..LayersKept::default() };
            for index in all.filter(|index| !again(index)) {
                kept.layers[x.model().layer_kind(index).index()] += 1;
            }
            kept
        }
        Recompute::None | Recompute::Selective(_) => as_they_are(x, chunk.layers.clone()),
    }
}

/// Layers of `range` that are not recomputed; frozen ones before the first trainable layer save nothing.
fn as_they_are(x: &Symbols<'_>, range: Range<u64>) -> LayersKept {
    let tuning = &x.recipe().tuning;
    let frozen = tuning.frozen_layers(x.model().num_layers);
    let mut kept = LayersKept::default();
    let kept_layers = range.start.max(frozen)..range.end;
    if kept_layers.contains(&frozen) && !tuning.reaches_input() {
        kept.first = Some(x.model().layer_kind(frozen));
    }
    x.model().layer_kinds(kept_layers, |kind, times| kept.layers[kind.index()] += times);
    kept
}

/// The saved input of one recomputed run of layers.
pub(super) fn run_input(x: &Symbols<'_>) -> Saved {
    let spread = match x.recipe().recompute {
        Recompute::Uniform { distribute, .. } | Recompute::Block { distribute, .. } => distribute,
        Recompute::None | Recompute::Selective(_) | Recompute::Every { .. } => false,
    };
    if dispatches(x) && !x.recipe().moe.balanced_gate {
        let (moe, routed) = (x.moe, FLOAT + INDEX);
        let bytes = x.h * x.residual_width + moe.experts * moe.probability + moe.topk * routed;
        return Saved::new("input and routing of a recomputed run", &[x.n, bytes], 1, &ROUTED_INPUT);
    }
    // Sequence parallelism has already sharded the input; Megatron then ignores --distribute-saved-activations.
    if spread && !x.sequence_parallel {
        let shape = [x.s_local, x.h / x.t];
        Saved::new("input of a recomputed run", &shape, x.residual_width, &SPREAD_INPUT)
    } else {
        Saved::new("input of a recomputed run", &[x.s_local, x.h], x.residual_width, &INPUT)
    }
}

/// Tensors that each recomputed layer keeps by name, in addition to its input.
pub(super) fn named(x: &Symbols<'_>) -> Vec<Saved> {
    let mut kept = Vec::new();
    for tensor in x.recipe().named.each() {
        let saved = match tensor {
            NamedTensor::Query => Saved::new("queries", &[x.n, x.a, x.d], x.width, &QUERIES),
            NamedTensor::Key => Saved::new("keys", &[x.n, x.k, x.d], x.width, &KEYS),
            NamedTensor::Value => Saved::new("values", &[x.n, x.k, x.d], x.width, &KEYS),
            NamedTensor::Context => {
                kept.push(Saved::new("log-sum-exp of attention", &[x.n, x.a], FLOAT, &LOG_SUMS));
                Saved::new("attention's values", &[x.n, x.a, x.d], x.width, &CONTEXT)
            }
            NamedTensor::Output => Saved::new("output of attention", &[x.n, x.h], x.width, &OUTPUT),
            NamedTensor::Gate => Saved::new("gate of the MLP", &[x.n, x.f], x.width, &INNER),
            NamedTensor::Up => Saved::new("inner tensor of the MLP", &[x.n, x.f], x.width, &INNER),
        };
        kept.push(saved);
    }
    kept
}

/// Bytes that one recomputed run of layers saves on the device.
pub(super) fn run_bytes(x: &Symbols<'_>) -> Bytes {
    run_input(x).bytes + named(x).iter().map(|saved| saved.bytes).sum::<Bytes>()
}

/// The rotary table that layers share, stored once per chunk regardless of micro-batches in flight.
pub(super) fn rotary_table(x: &Symbols<'_>) -> Option<Saved> {
    let semantics = x.recipe().software.semantics();
    if dispatches(x) {
        // Heads of plain attention are rotated by copies that each layer makes.
        let (numbers, angles) = ([x.n, x.latent.rotary / 2], [x.n, x.rotated]);
        return if x.model().latent.is_some() {
            Some(Saved::new("rotary complex numbers", &numbers, 2 * FLOAT, &OWN_COMPLEX))
        } else {
            // An argument of every recomputed layer.
            x.recomputes_layers().then(|| Saved::new("rotary table", &angles, FLOAT, &OWN_ROTARY))
        };
    }
    if semantics.eager_modules {
        let wide = x.model().arrangement.fp32_rotation;
        let (width, formula) = match (wide, x.recipe().tuning.narrow_ends) {
            (true, _) => (FLOAT, &WIDE_ROTARY_PAIR),
            (false, true) => (HALF, &NARROW_ROTARY_PAIR),
            (false, false) => (x.width, &ROTARY_PAIR),
        };
        let (columns, width, formula) = match x.model().arrangement.rotation_tables {
            RotationTables::Shared => (x.rotated, width, formula),
            RotationTables::Half => (x.rotated / 2, width, &HALF_PAIR),
            RotationTables::Complex => (x.rotated / 2, FLOAT, &COMPLEX_PAIR),
            RotationTables::Layer | RotationTables::Fp32Layer | RotationTables::Each => return None,
        };
        if semantics.modules.rotation == Rotation::EachLayer {
            let tables = [2 * x.model().num_layers, x.s, x.rotated];
            return (x.model().position_embedding == PositionEmbedding::Rope)
                .then(|| Saved::new("rotary cosines and sines", &tables, FLOAT, &LAYERS_PAIRS));
        }
        // One pair of tables for each width of heads.
        let (columns, formula) = match x.model().mixers.full {
            Some(full) => (columns + full.width, &BOTH_PAIRS),
            None => (columns, formula),
        };
        return (semantics.modules.rotation == Rotation::Shared
            && x.model().position_embedding == PositionEmbedding::Rope)
            .then(|| Saved::new("rotary cosines and sines", &[2, x.s, columns], width, formula));
    }
    let rotates = x.model().position_embedding == PositionEmbedding::Rope && x.model().latent.is_none();
    // Other layers save cosines and sines made from the table, which are counted there; a checkpoint saves its
    // argument, the table itself.
    (x.recomputes_layers() && rotates && !semantics.compiled_step)
        .then(|| Saved::new("rotary table", &[x.s, x.d], FLOAT, &ROTARY))
}

/// Total bytes saved by one of each of `operators`.
pub(super) fn kept_by(x: &Symbols<'_>, operators: &[Operator]) -> Bytes {
    let mut bytes = Bytes::ZERO;
    for operator in operators {
        for saved in operator.saved(x) {
            bytes += saved.bytes;
        }
    }
    bytes
}

/// Bytes saved by one section of `kind` that is not fully recomputed.
pub(super) fn section_kept(x: &Symbols<'_>, kind: SectionKind) -> Bytes {
    kept_by(x, &kind.kept_operators(x))
}
