//! What a rank holds all through training beside its states: stand-ins for weight gradients, buffers that
//! grow once and stay, and the workspaces of the matrix libraries.

use super::kept::buffers_inputs;
use super::term::Term;
use super::unit::{Counts, Units};
use crate::constant::Constant;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols};
use shardscope_plan::{AttentionKernel, DpSharding, MemoryBuffer, PreferenceLogits, Quantization, Reference};
use shardscope_units::{Bytes, Count, Quantity};

const MEMORY: &str = "megatron/core/utils.py:GlobalMemoryBuffer";
const DUMMY: &str = "transformer_engine/pytorch/module/base.py:get_dummy_wgrad";
const SCHEDULE: &str = "megatron/core/pipeline_parallel/schedules.py";
const CUBLAS: &str = "aten/src/ATen/cuda/CublasHandlePool.cpp:getChosenWorkspaceSize";
const ENGINE: &str = "transformer_engine/pytorch/module/base.py:get_cublas_workspace_size_bytes";
const DEQUANTIZE: &str = "unsloth/kernels/utils.py:fast_dequantize, use_global_buffer";
const SMART: &str = "unsloth_zoo/gradient_checkpointing.py:UnslothCheckpointFunction";
/// Elements of a 4-bit block, which has an fp32 constant.
const BLOCK: u64 = 64;
/// Bytes of an fp32 number.
const CONSTANT: u64 = 4;
const DEFERRED: &str = "megatron/core/pipeline_parallel/schedules.py: deferred embedding weight gradient";

static GATHER: Formula = Formula::new(
    "n·h·B",
    "The buffer into which sequence parallelism all-gathers; it grows to its largest user and is never freed.",
    MEMORY,
);
static SCORES: Formula = Formula::new(
    "a·s·s·b·B",
    "The buffer for the scores of unfused attention; it grows to its largest user and is never freed.",
    MEMORY,
);
static STAND_INS: Formula = Formula::new(
    "W·B",
    "A stand-in for the weight gradient for each distinct shape of weight, W elements together: gradients are \
     accumulated in the matrix product, and autograd is handed these.",
    DUMMY,
).letters(&[("W", "elements of weights of distinct shapes")]);
static PREVIOUS: Formula = Formula::new(
    "S·h·Br",
    "The gradient sent to the previous stage, still referenced while the next micro-batch runs.",
    SCHEDULE,
);
static CUBLAS_WORKSPACE: Formula = Formula::new(
    "2·Z",
    "cuBLAS's workspace of Z bytes, one for the forward thread, one for backward's.",
    CUBLAS,
)
.letters(&[("Z", "bytes of a workspace")]);
static ENGINE_WORKSPACE: Formula = Formula::new("Z", "Transformer Engine's own cuBLAS workspace.", ENGINE)
    .letters(&[("Z", "bytes of a workspace")]);
static GROUPED_WORKSPACE: Formula = Formula::new(
    "4·Z",
    "Transformer Engine's workspaces for grouped products, one for each of four streams.",
    ENGINE,
)
.letters(&[("Z", "bytes of a workspace")]);
static DEFER: Formula = Formula::new(
    "L·(n·V·B + S·h·B)",
    "Inputs and output gradients of the output layer for the L micro-batches whose weight gradient is deferred.",
    DEFERRED,
)
.letters(&[("L", "micro-batches whose weight gradient is deferred")]);

static DEQUANTISED: Formula = Formula::new(
    "E·(Bc + 1/16)",
    "The buffer for a dequantized weight and its block scales in fp32: E elements of the largest, never freed.",
    DEQUANTIZE,
).letters(&[("E", "elements of the largest quantized weight")]);
static REFERENCE: Formula = Formula::new(
    "4·n·V",
    "Logits of the reference, fp32, which the loop names until it has the next.",
    "torchtune recipes/lora_dpo_single_device.py:train, lora_dpo_distributed.py:train",
);
static RETURNING: Formula = Formula::new(
    "2·S·h·Br",
    "Buffers into which layer inputs come back from the host: two, of which the second is dropped where less than 512 MiB are free.",
    SMART,
);

static MASKS: Formula = Formula::new(
    "2·s·s·B",
    "The masks of causality and of a window, of all tokens by all tokens, which the model makes at its first pass.",
    "unsloth/models/llama.py:LlamaModel_fast_forward, SWA_mask and GA_mask",
);

/// What a stage with `counts` sections holds for good.
pub(super) fn buffers(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Vec<Term> {
    let mut out = Vec::with_capacity(8);
    out.extend(stand_ins(x, units, counts));
    out.extend(growing(x, counts));
    out.extend(deferred(x, counts));
    out.extend(dequantized(x, counts));
    out.extend(returning(x, counts));
    out.extend(reference_logits(x, counts));
    out.extend(masks(x, counts));
    // Those of a program that a compiler lays out are among its tensors.
    if !x.recipe().left_out.workspaces && !x.recipe().software.semantics().compiled_step {
        out.extend(workspaces(x));
    }
    out
}

/// Stand-ins of the stage's distinct linear weights under Transformer Engine.
fn stand_ins(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    // The dummies exist only where the GEMM accumulates into `main_grad`, which stays whole without sharded gradients.
    let sharded = matches!(recipe.dp_sharding, DpSharding::Gradients | DpSharding::Parameters);
    if !recipe.software.semantics().transformer_engine || !recipe.fusions.gradient_accumulation || sharded {
        return None;
    }
    let mut shapes: Vec<[u64; 2]> = Vec::with_capacity(8);
    for ((_, unit), &count) in units.iter().zip(counts) {
        if count > 0 {
            for shape in &unit.shapes {
                // One dummy per shape, not per layer: Transformer Engine looks it up in a cache keyed by shape.
                if !shapes.contains(shape) {
                    shapes.push(*shape);
                }
            }
        }
    }
    let elements: Count = shapes.iter().map(|shape| Count::of_shape(shape)).sum();
    let given = [("W", elements.number())];
    (elements > Count::ZERO).then(|| {
        Term::new("stand-ins for weight gradients", elements.bytes(x.width), &STAND_INS).given(&given)
    })
}

/// Megatron's own layers share one buffer, which grows to its largest user: the gathered input of a linear
/// layer, or the scores of unfused attention. Under Transformer Engine only the output layer is Megatron's.
fn growing(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let own_layers = match x.recipe().software.semantics().memory_buffer {
        MemoryBuffer::AllLayers => true,
        MemoryBuffer::OutputLayer => false,
        MemoryBuffer::Absent => return None,
    };
    // A frozen layer gathers into a tensor of its own (`LinearWithFrozenWeight`).
    let heads = projections(counts) > 0 && x.recipe().tuning.head;
    let gathers = x.sequence_parallel && ((own_layers && x.trains) || heads);
    let layers = SectionKind::layers(counts);
    let scores = own_layers && x.recipe().attention_kernel == AttentionKernel::Unfused && layers > 0;
    let gathered = Count::of_shape(&[x.n, x.h]).bytes(if gathers { x.width } else { 0 });
    let scored = Count::of_shape(&[x.b, x.a, x.s, x.s]).bytes(if scores { x.width } else { 0 });
    if scored > gathered {
        Some(Term::new("attention scores' buffer", scored, &SCORES))
    } else {
        gathers.then(|| Term::new("sequence-parallel gather buffer", gathered, &GATHER))
    }
}

/// The buffer in which unsloth's kernels dequantize, which grows to the largest weight of a layer. Layers that it compiles have none
/// (`unsloth/kernels/bnb_override.py:_NF4Linear`).
fn dequantized(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let own = recipe.software.semantics().modules.fuses_adapters && !recipe.fusions.compiled_layers;
    let quantized = x.recipe().tuning.quantization != Quantization::None;
    let elements = x.h * x.f.max(x.a * x.d);
    let bytes = elements * x.compute_width + elements / BLOCK * CONSTANT;
    let given = [("E", Count::new(elements).number())];
    (own && quantized && SectionKind::layers(counts) > 0)
        .then(|| Term::new("buffer of a weight in full", Bytes::new(bytes), &DEQUANTISED).given(&given))
}

/// Buffers for inputs of layers that come back from the host.
fn returning(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let bytes = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width) * 2;
    (buffers_inputs(x) && SectionKind::layers(counts) > 0)
        .then(|| Term::new("buffers of returning inputs", bytes, &RETURNING))
}

/// Masks of a model with capped scores, which attention that torch.compile compiles adds to them.
fn masks(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let compiled =
        recipe.software.semantics().modules.compiles_capped_scores && !recipe.fusions.compiled_layers;
    let unfused = recipe.attention_kernel == AttentionKernel::Unfused;
    let capped = x.model().arrangement.attention_softcap;
    (compiled && unfused && capped && SectionKind::layers(counts) > 0)
        .then(|| Term::new("masks of all tokens", Count::of_shape(&[2, x.s, x.s]).bytes(x.width), &MASKS))
}

/// The logits of a preference's reference, which a trainer names until the next ones are there.
fn reference_logits(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let named = recipe.transformers.preference_logits == PreferenceLogits::Named
        && recipe.tuning.objective.reference().is_some_and(|from| from != Reference::Precomputed);
    let bytes = Count::of_shape(&[x.n, x.v]).bytes(CONSTANT);
    (named && projections(counts) > 0).then(|| Term::new("the reference's logits", bytes, &REFERENCE))
}

/// Projections onto the vocabulary among the sections.
fn projections(counts: &Counts) -> u64 {
    SectionKind::count(counts, SectionKind::projects_vocabulary)
}

fn deferred(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let limit = x.recipe().wgrad_deferral_limit.min(x.recipe().num_micro_batches);
    if limit == 0 || projections(counts) == 0 || !x.recipe().tuning.head {
        return None;
    }
    let each =
        Count::of_shape(&[x.n, x.v]).bytes(x.width) + Count::of_shape(&[x.s_local, x.h]).bytes(x.width);
    let given = [("L", Count::new(limit).number())];
    Some(Term::new("deferred weight gradient", each * limit, &DEFER).given(&given).passing())
}

/// In steady state a stage that sends gradients on still refers to the one before.
pub(super) fn previous_gradient(x: &Symbols<'_>, rank: u64) -> Option<Term> {
    let bytes = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width);
    (rank > 0 && x.recipe().num_micro_batches > 1)
        .then(|| Term::new("gradient sent before", bytes, &PREVIOUS).passing())
}

/// PyTorch's default workspace for cuBLAS on Hopper, and on Blackwell since PyTorch 2.12 (pull request 175344;
/// before, it was as elsewhere).
const CUBLAS_HOPPER: Bytes = Bytes::mib(32);
/// PyTorch's default workspace for cuBLAS elsewhere: two of 4096 KiB and eight of 16 KiB.
const CUBLAS_ELSEWHERE: Bytes = Bytes::new((2 * 4096 + 8 * 16) << 10);
/// Transformer Engine's workspace from Hopper on.
const ENGINE_HOPPER: Bytes = Bytes::mib(32);
/// Transformer Engine's workspace before.
const ENGINE_BEFORE: Bytes = Bytes::mib(4);

/// The constants above, told.
pub(crate) fn constants() -> Vec<Constant> {
    let mib = |bytes: Bytes| bytes.in_mib();
    vec![
        Constant::new(
            ("CUBLAS_HOPPER", mib(CUBLAS_HOPPER), "MiB"),
            "cuBLAS's workspace in PyTorch on Hopper and, since 2.12, on Blackwell",
            CUBLAS,
        ),
        Constant::new(
            ("CUBLAS_ELSEWHERE", mib(CUBLAS_ELSEWHERE), "MiB"),
            "the same elsewhere: two of 4096 KiB and eight of 16 KiB",
            CUBLAS,
        ),
        Constant::new(
            ("ENGINE_HOPPER", mib(ENGINE_HOPPER), "MiB"),
            "Transformer Engine's workspace from Hopper on",
            ENGINE,
        ),
        Constant::new(("ENGINE_BEFORE", mib(ENGINE_BEFORE), "MiB"), "the same before", ENGINE),
    ]
}

fn workspaces(x: &Symbols<'_>) -> Vec<Term> {
    let capability = x.plan.cluster().accelerator.capability;
    let term = |name, bytes: Bytes, times, formula| {
        Term::new(name, bytes * times, formula).given(&[("Z", bytes.number())])
    };
    let large = capability.is_some_and(|major| major >= 9);
    let default = if large { CUBLAS_HOPPER } else { CUBLAS_ELSEWHERE };
    let cublas = x.recipe().cublas_workspace.unwrap_or(default);
    let mut out = vec![term("cuBLAS workspaces", cublas, 2, &CUBLAS_WORKSPACE)];
    if x.recipe().software.semantics().transformer_engine {
        let own = if capability.is_some_and(|major| major < 9) { ENGINE_BEFORE } else { ENGINE_HOPPER };
        out.push(term("Transformer Engine's workspace", own, 1, &ENGINE_WORKSPACE));
        if x.model().experts.is_some() && x.recipe().moe.grouped_gemm {
            out.push(term("workspaces of grouped products", own, 4, &GROUPED_WORKSPACE));
        }
    }
    out
}
