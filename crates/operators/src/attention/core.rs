//! What the attention kernel itself saves, between the projections.

use crate::adapters::{Alive, LINEAR_PROJ};
use crate::{Saved, Symbols};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, ContextKind, NumberFormat, OffloadModule, RecomputeModule};

const UNFUSED: &str = "megatron/core/transformer/dot_product_attention.py";
const KERNEL: &str = "flash-attn and Transformer Engine attention, forward(ctx, ...)";
const CHECKPOINT: &str = "megatron/core/tensor_parallel/random.py:CheckpointFunction";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;
const ONCE: &[OffloadModule] = &[OffloadModule::CoreAttention];
/// Probabilities are saved by the softmax and by the product with the values, each separately.
const TWICE: &[OffloadModule] = &[OffloadModule::CoreAttention, OffloadModule::CoreAttention];
/// A fused kernel saves its output, and so does the projection that reads it.
const OUTPUT_TWICE: &[OffloadModule] = &[OffloadModule::CoreAttention, OffloadModule::AttentionProjection];

static SCALAR: Formula = Formula::new("4", "One fp32 or int32 scalar.", CHECKPOINT);
static LSE: Formula = Formula::new("4·n·a", "Log-sum-exp per head and token, fp32.", KERNEL);
static SOFTMAX: Formula = Formula::new("a·s·s·b·B", "The attention probabilities.", UNFUSED);
static SOFTMAX_FP32: Formula =
    Formula::new("a·s·s·b·4", "The attention probabilities, computed in fp32.", UNFUSED);
static PROBABILITIES: Formula =
    Formula::new("a·s·s·b·B", "The attention probabilities, cast back to 16 bits.", UNFUSED);
static DROPOUT: Formula =
    Formula::new("a·s·s·b", "Dropout mask of the attention probabilities, one byte each.", UNFUSED);
static DROPPED: Formula = Formula::new("a·s·s·b·B", "The probabilities after dropout.", UNFUSED);
static CAUSAL: Formula = Formula::new("s·s", "The causal mask, one byte each.", UNFUSED);

/// An input tensor of the kernel, and its underlying storage.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    /// The tensor with its own storage.
    pub(crate) own: Saved,
    /// Whether the projection's output is a view of a larger storage.
    pub(crate) view: bool,
}

/// All tensors around the kernel.
pub(crate) struct Core {
    /// Query, key and value.
    pub(crate) operands: [Operand; 3],
    /// The storage that views keep alive, unless something before the kernel already does.
    pub(crate) buffer: Option<Saved>,
    /// Key and value repeated to the query's width, if there are fewer groups than heads.
    pub(crate) repeated: Option<[Saved; 2]>,
    /// The kernel's output, as the output projection reads it.
    pub(crate) output: Saved,
    /// The kernel's output in its own layout.
    pub(crate) raw_output: Saved,
}

/// What the kernel saves, including the output projection's input.
pub(crate) fn core(x: &Symbols<'_>, core: &Core) -> Vec<Saved> {
    if x.recomputes(RecomputeModule::CoreAttention) {
        // The checkpoint is not a module that can be offloaded (`attention.py:checkpoint_core_attention`).
        let mut out: Vec<Saved> = as_given(core).into_iter().map(|saved| saved.by(&[])).collect();
        out.push(Saved::new("checkpoint scalar", &[1], STATISTIC, &SCALAR));
        out.extend(projection_input(x, core, false));
        return out;
    }
    match x.recipe().attention_kernel {
        AttentionKernel::Unfused => unfused(x, core),
        AttentionKernel::Flash | AttentionKernel::Sdpa => flash(x, core),
        AttentionKernel::Fused => fused(x, core),
    }
}

/// Query, key and value as they are: their own storages, and the buffer of views counted once.
fn as_given(core: &Core) -> Vec<Saved> {
    let (mut out, mut views) = (Vec::with_capacity(8), false);
    for operand in &core.operands {
        views |= operand.view;
        if !operand.view {
            out.push(operand.own);
        }
    }
    // All views share one storage: it is counted once, however many of them the kernel saves.
    if views {
        out.extend(core.buffer);
    }
    out
}

/// Query, key and value copied to separate storages.
fn copied(core: &Core) -> Vec<Saved> {
    let mut out = Vec::with_capacity(8);
    out.extend(core.operands.map(|operand| operand.own));
    out
}

fn log_sum_exp(x: &Symbols<'_>) -> Saved {
    Saved::new("log-sum-exp", &[x.b, x.a, x.s], STATISTIC, &LSE).by(ONCE)
}

/// Batch first: everything is copied; for one sequence the transposed output shares the storage, unless context
/// parallelism's exchange separates the two.
fn flash(x: &Symbols<'_>, core: &Core) -> Vec<Saved> {
    let mut out = copied(core);
    out.push(log_sum_exp(x));
    let copied = x.b > 1 || is_exchanged(x);
    if copied {
        out.push(core.raw_output);
    }
    out.extend(projection_input(x, core, !copied));
    out
}

fn is_exchanged(x: &Symbols<'_>) -> bool {
    let layout = x.plan.layout();
    let exchanges =
        matches!(layout.context_kind, ContextKind::AllToAll | ContextKind::AllToAllAndPointToPoint);
    x.context > 1 && exchanges
}

/// The output projection's input, which is the kernel's own output if `is_kernels`: then the kernel saves it even if
/// the projection's weight is frozen.
fn projection_input(x: &Symbols<'_>, core: &Core, is_kernels: bool) -> Vec<Saved> {
    if x.trains {
        let kernels = is_kernels && !x.model().mixers.output_gate;
        return vec![if kernels { core.output.by(OUTPUT_TWICE) } else { core.output }];
    }
    // A gate sits between the kernel and the projection, and saves the kernel's output itself.
    let is_kernels = is_kernels && !x.model().mixers.output_gate;
    let alive = if is_kernels { Alive::Kept } else { Alive::No };
    let columns = core.output.shape.last().copied().unwrap_or(0);
    let mut out: Vec<Saved> = is_kernels.then_some(core.raw_output).into_iter().collect();
    out.extend(LINEAR_PROJ.row(x, core.output, [x.n, columns], alive, true));
    out
}

/// Sequence first: the output needs no copy. Transformer Engine makes its inputs contiguous.
fn fused(x: &Symbols<'_>, core: &Core) -> Vec<Saved> {
    let mut out =
        if x.recipe().software.semantics().copies_attention_inputs { copied(core) } else { as_given(core) };
    out.push(log_sum_exp(x));
    let copied = is_exchanged(x);
    if copied {
        out.push(core.raw_output);
    }
    out.extend(projection_input(x, core, !copied));
    out
}

fn unfused(x: &Symbols<'_>, core: &Core) -> Vec<Saved> {
    let mut out = match core.repeated {
        Some(repeated) => {
            // `repeat_interleave` copies keys and values to the queries' width before the product
            // (`dot_product_attention.py:forward`): the products save the copies, and nothing saves the grouped
            // originals.
            let mut out = vec![core.operands[0].own];
            out.extend(repeated);
            out
        }
        None => as_given(core),
    };
    out.extend(probabilities(x));
    out.extend(projection_input(x, core, false));
    out
}

fn probabilities(x: &Symbols<'_>) -> Vec<Saved> {
    let recipe = x.recipe();
    let shape = [x.b, x.a, x.s, x.s];
    let fused = softmax_is_fused(x);
    let wide = recipe.fusions.softmax_in_fp32 && !fused && recipe.params_dtype != NumberFormat::Fp32;
    // With a cast or dropout between them, softmax and product save different tensors; without, one storage is saved by both.
    let again = if wide || recipe.attention_dropout { ONCE } else { TWICE };
    let mut out = vec![if wide {
        Saved::new("softmax", &shape, STATISTIC, &SOFTMAX_FP32).by(again)
    } else {
        Saved::new("softmax", &shape, x.width, &SOFTMAX).by(again)
    }];
    if recipe.attention_dropout {
        out.push(Saved::new("attention dropout mask", &shape, 1, &DROPOUT).by(ONCE));
        out.push(Saved::new("dropped probabilities", &shape, x.width, &DROPPED).by(ONCE));
    } else if wide {
        out.push(Saved::new("16-bit probabilities", &shape, x.width, &PROBABILITIES).by(ONCE));
    }
    if fused {
        out.push(Saved::new("softmax scale", &[1], STATISTIC, &SCALAR));
    } else {
        out.push(Saved::new("causal mask", &[x.s, x.s], 1, &CAUSAL).by(ONCE));
    }
    out
}

/// Longest row that the fused kernel supports (`megatron/core/fusions/fused_softmax.py:is_kernel_available`).
const LONGEST_FUSED_ROW: u64 = 4096;
/// Lower bound on the row length, exclusive.
const SHORTEST_FUSED_ROW: u64 = 16;

/// Whether the fused scale-mask-softmax kernel runs: 16 bits, and only the shapes it was written for.
fn softmax_is_fused(x: &Symbols<'_>) -> bool {
    x.recipe().fusions.masked_softmax
        && x.recipe().params_dtype != NumberFormat::Fp32
        && x.s > SHORTEST_FUSED_ROW
        && x.s <= LONGEST_FUSED_ROW
        && x.s.is_multiple_of(4)
        && (x.b * x.a).is_multiple_of(4)
}
