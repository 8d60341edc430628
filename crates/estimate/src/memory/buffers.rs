//! What a rank holds throughout training besides its states: stand-ins for weight gradients, buffers that grow once
//! and stay, and the workspaces of the matrix libraries.

use super::kept::buffers_inputs;
use super::term::Term;
use super::unit::{Counts, Units};
use crate::constant::Constant;
use shardscope_explain::Formula;
use shardscope_operators::{SectionKind, Symbols, is_fp32_between_modules, joins_samples};
use shardscope_plan::{
    AttentionKernel, DpSharding, LossKind, MemoryBuffer, Objective, PreferenceLogits, Quantization, Reference,
};
use shardscope_units::{Bytes, Count, Quantity};

const MEMORY: &str = "megatron/core/utils.py:GlobalMemoryBuffer";
const DUMMY: &str = "transformer_engine/pytorch/module/base.py:get_dummy_wgrad";
const SCHEDULE: &str = "megatron/core/pipeline_parallel/schedules.py";
const CUBLAS: &str = "aten/src/ATen/cuda/CublasHandlePool.cpp:getChosenWorkspaceSize";
const ENGINE: &str = "transformer_engine/pytorch/module/base.py:get_cublas_workspace_size_bytes";
const DEQUANTIZE: &str = "unsloth/kernels/utils.py:fast_dequantize, use_global_buffer";
const SMART: &str = "unsloth_zoo/gradient_checkpointing.py:UnslothCheckpointFunction";
/// Elements of a 4-bit block, which has one fp32 constant.
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
    "A stand-in for the weight gradient for each distinct shape of weight, W elements together: gradients are accumulated inside the GEMM, and autograd is handed these.",
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
    "Transformer Engine's workspaces for grouped GEMMs, one for each of four streams.",
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
static OUTPUT: Formula = Formula::new(
    "n·V·Bc",
    "The logits of the last micro-batch: the training loop keeps a reference to the model's output until it has the next one.",
    "DeepSpeedExamples applications/DeepSpeed-Chat/training/step1_supervised_finetuning/main.py:main",
);
static RETURNING: Formula = Formula::new(
    "2·S·h·B",
    "Buffers into which layer inputs come back from the host: two, of which the second is dropped where less than 512 MiB are free.",
    SMART,
);

static WIDE_MASKS: Formula = Formula::new(
    "8·b·s·s",
    "The masks of causality and of a window, of each sample, in fp32, which all layers share.",
    "transformers/masking_utils.py:eager_mask, by unsloth/models/_utils.py:resolve_attention_implementation",
);
static WIDE_JOINED: Formula = Formula::new(
    "8·n·n",
    "The masks of causality and of a window, of all samples in one row, in fp32, which all layers share.",
    "transformers/masking_utils.py:eager_mask; unsloth/trainer.py: padding_free where it is not stated",
);
static JOINED: Formula = Formula::new(
    "n·n",
    "Which tokens see which, of all samples in one row, one byte each, which all layers share.",
    "transformers/masking_utils.py:sdpa_mask; unsloth/trainer.py: padding_free where it is not stated",
);
static MASKS: Formula = Formula::new(
    "2·s·s·B",
    "Causal and sliding-window masks, tokens × tokens, which the model builds in its first pass.",
    "unsloth/models/llama.py:LlamaModel_fast_forward, SWA_mask and GA_mask",
);

/// The persistent buffers of a stage with `counts` sections.
pub(super) fn buffers(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Vec<Term> {
    let mut out = Vec::with_capacity(8);
    out.extend(stand_ins(x, units, counts));
    out.extend(growing(x, counts));
    out.extend(deferred(x, counts));
    out.extend(dequantized(x, counts));
    out.extend(returning(x, counts));
    out.extend(reference_logits(x, counts));
    out.extend(last_output(x, counts));
    out.extend(masks(x, counts));
    // For a program laid out by a compiler, workspaces are part of its tensors.
    if !x.recipe().left_out.workspaces && !x.recipe().software.semantics().compiled_step {
        out.extend(workspaces(x));
    }
    out
}

/// Stand-ins of the stage's distinct linear weights under Transformer Engine.
fn stand_ins(x: &Symbols<'_>, units: &Units, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    // The dummies exist only if the GEMM accumulates into `main_grad`, which stays whole without sharded gradients.
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
    // What is saved is gathered into tensors of its own.
    if x.recipe().transformers.gathered_inputs {
        return None;
    }
    let own_layers = match x.recipe().software.semantics().memory_buffer {
        MemoryBuffer::AllLayers => true,
        MemoryBuffer::OutputLayer => false,
        MemoryBuffer::Absent => return None,
    };
    // A frozen layer gathers into its own tensor (`LinearWithFrozenWeight`).
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

/// The buffer into which unsloth's kernels dequantize, which grows to the largest weight of a layer. Layers that it
/// compiles have none (`unsloth/kernels/bnb_override.py:_NF4Linear`).
fn dequantized(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let own = recipe.software.semantics().modules.fuses_adapters && !recipe.fusions.compiled_layers;
    let quantized = x.recipe().tuning.quantization != Quantization::None;
    let elements = x.h * x.f.max(x.a * x.d);
    let bytes = elements * x.compute_width + elements / BLOCK * CONSTANT;
    let given = [("E", Count::new(elements).number())];
    (own && quantized && SectionKind::layers(counts) > 0)
        .then(|| Term::new("buffer of a dequantized weight", Bytes::new(bytes), &DEQUANTISED).given(&given))
}

/// Buffers for layer inputs that are copied back from the host.
fn returning(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    // An fp32 residual stream is copied in 16 bits.
    let bytes = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width.min(x.width)) * 2;
    (buffers_inputs(x) && SectionKind::layers(counts) > 0)
        .then(|| Term::new("buffers of inputs copied back", bytes, &RETURNING))
}

/// Masks over all tokens: of models with capped scores, where compiled attention adds them; of models whose attention
/// unsloth runs in fp32; and of samples joined into one row.
fn masks(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let joined = joins_samples(x);
    let of_joined = |tensors, width, formula| {
        let bytes = Count::of_shape(&[tensors, x.n, x.n]).bytes(width);
        (SectionKind::layers(counts) > 0).then(|| Term::new("masks of all tokens", bytes, formula))
    };
    if is_fp32_between_modules(x) && joined {
        return of_joined(2, CONSTANT, &WIDE_JOINED);
    }
    if is_fp32_between_modules(x) {
        let bytes = Count::of_shape(&[2, x.b, x.s, x.s]).bytes(CONSTANT);
        return (SectionKind::layers(counts) > 0)
            .then(|| Term::new("masks of all tokens", bytes, &WIDE_MASKS));
    }
    if joined && recipe.attention_kernel == AttentionKernel::Sdpa {
        return of_joined(1, 1, &JOINED);
    }
    let compiled =
        recipe.software.semantics().modules.compiles_capped_scores && !recipe.fusions.compiled_layers;
    let unfused = recipe.attention_kernel == AttentionKernel::Unfused;
    let capped = x.model().arrangement.attention_softcap;
    (compiled && unfused && capped && SectionKind::layers(counts) > 0)
        .then(|| Term::new("masks of all tokens", Count::of_shape(&[2, x.s, x.s]).bytes(x.width), &MASKS))
}

/// The logits of a preference's reference model, which a trainer variable holds until the next ones replace them.
fn reference_logits(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    let named = recipe.transformers.preference_logits == PreferenceLogits::Named
        && recipe.tuning.objective.reference().is_some_and(|from| from != Reference::Precomputed);
    let bytes = Count::of_shape(&[x.n, x.v]).bytes(CONSTANT);
    (named && projections(counts) > 0).then(|| Term::new("the reference's logits", bytes, &REFERENCE))
}

/// The logits in a model's output that a training loop names (`outputs = model(...)`, then `outputs.loss`). A loss that
/// is fused with the output layer leaves none there (`liger_kernel/transformers/model/llama.py:lce_forward`).
fn last_output(x: &Symbols<'_>, counts: &Counts) -> Option<Term> {
    let recipe = x.recipe();
    // Modules of transformers copy the logits that flash-attn's loss reads (`eager/ends.rs:shifted`).
    let reads_them = recipe.loss == LossKind::FusedLogits && !recipe.software.semantics().eager_modules;
    let has_logits =
        recipe.tuning.objective == Objective::NextToken && (recipe.loss == LossKind::Torch || reads_them);
    let bytes = Count::of_shape(&[x.n, x.v]).bytes(x.compute_width);
    (recipe.transformers.holds_output && has_logits && projections(counts) > 0)
        .then(|| Term::new("logits of the last output", bytes, &OUTPUT))
}

/// The number of sections that project onto the vocabulary.
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

/// In steady state a stage that sends gradients upstream still refers to the previous one.
pub(super) fn previous_gradient(x: &Symbols<'_>, rank: u64) -> Option<Term> {
    let bytes = Count::of_shape(&[x.s_local, x.h]).bytes(x.residual_width);
    (rank > 0 && x.recipe().num_micro_batches > 1)
        .then(|| Term::new("gradient sent before", bytes, &PREVIOUS).passing())
}

/// PyTorch's default workspace for cuBLAS on Hopper, and on Blackwell since PyTorch 2.12 (pull request 175344; before
/// that, Blackwell used the default below).
const CUBLAS_HOPPER: Bytes = Bytes::mib(32);
/// PyTorch's default workspace for cuBLAS elsewhere: two of 4096 KiB and eight of 16 KiB.
const CUBLAS_ELSEWHERE: Bytes = Bytes::new((2 * 4096 + 8 * 16) << 10);
/// Transformer Engine's workspace from Hopper on.
const ENGINE_HOPPER: Bytes = Bytes::mib(32);
/// Transformer Engine's workspace before Hopper.
const ENGINE_BEFORE: Bytes = Bytes::mib(4);

/// The constants above, for the list of constants.
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

pub(super) fn workspaces(x: &Symbols<'_>) -> Vec<Term> {
    let capability = x.plan.cluster().accelerator.capability;
    let term = |name, bytes: Bytes, times, formula| {
        Term::new(name, bytes * times, formula).given(&[("Z", bytes.number())])
    };
    let large = capability.is_some_and(|major| major >= 9);
    let default = if large { CUBLAS_HOPPER } else { CUBLAS_ELSEWHERE };
    let cublas = x.recipe().cublas_workspace.unwrap_or(default);
    let mut out = Vec::with_capacity(3);
    out.extend([term("cuBLAS workspaces", cublas, 2, &CUBLAS_WORKSPACE)]);
    if x.recipe().software.semantics().transformer_engine {
        let own = if capability.is_some_and(|major| major < 9) { ENGINE_BEFORE } else { ENGINE_HOPPER };
        out.push(term("Transformer Engine's workspace", own, 1, &ENGINE_WORKSPACE));
        if x.model().experts.is_some() && x.recipe().moe.grouped_gemm {
            out.push(term("workspaces of grouped GEMMs", own, 4, &GROUPED_WORKSPACE));
        }
    }
    out
}
