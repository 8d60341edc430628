//! Tensors saved for backward.

use crate::attention::{Core, Operand, core, residual_mask};
use crate::{Operator, Saved, Symbols, norm};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, OffloadModule, RecomputeModule};

const SOURCE: &str = "megatron/core/transformer/multi_latent_attention.py";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;
/// What is saved up to queries, keys and values (`multi_latent_attention.py:qkv_linear_manager`).
const QKV: &[OffloadModule] = &[OffloadModule::QkvLinear];
/// The same, saved twice: by both down-projections, or for queries and keys.
const QKV_TWICE: &[OffloadModule] = &[OffloadModule::QkvLinear, OffloadModule::QkvLinear];
const CORE: &[OffloadModule] = &[OffloadModule::CoreAttention];
const PROJ: &[OffloadModule] = &[OffloadModule::AttentionProjection];

static INPUT: Formula = Formula::new("S·h·Bi", "Input of both down-projections: the norm output.", SOURCE);
static QUERY_NORM: Formula = Formula::new("S·ql·B", "The query latent's norm input.", SOURCE);
static GATHERED_QUERY_NORM: Formula = Formula::new(
    "n·ql·B",
    "The query latent's norm input, a part of what was gathered over the tensor ranks.",
    SOURCE,
);
static KV_NORM: Formula = Formula::new("S·kl·B", "The key/value latent's norm input.", SOURCE);
static KV_BUFFER: Formula = Formula::new(
    "S·(kl + dr)·B",
    "The key/value down-projection's output, held whole by a view of the latent.",
    SOURCE,
);
static ROTATED: Formula =
    Formula::new("S·dr·B", "Rotated columns of the key/value down-projection, a view of its output.", SOURCE);
static STATISTICS: Formula = Formula::new("4·S", "A latent norm's fp32 statistics.", SOURCE);
static QUERY_UP: Formula = Formula::new("S·ql·Bi", "The query up-projection's input.", SOURCE);
static NORMED_QUERY: Formula =
    Formula::new("S·h·Bi", "The query projection's input, after the norm that it begins with.", SOURCE);
static KV_UP: Formula = Formula::new("S·kl·Bi", "The key/value up-projection's input.", SOURCE);
static COS: Formula = Formula::new("2·s·dr·B", "RoPE cosines for queries and for keys.", SOURCE);
static SIN: Formula = Formula::new("2·s·dr·B", "RoPE sines for queries and for keys.", SOURCE);
static FREQUENCIES: Formula =
    Formula::new("4·s·dr", "The fp32 RoPE table, an argument of the recomputed function.", SOURCE);
static WIDE: Formula =
    Formula::new("n·a·(dn + dr)·B", "Queries or keys: unrotated and rotated part side by side.", SOURCE);
static VALUE: Formula = Formula::new("n·a·dv·B", "The values.", SOURCE);
static OUTPUT: Formula = Formula::new("n·a·dv·B", "The attention output in the kernel's own layout.", SOURCE);
static PROJECTION: Formula =
    Formula::new("n·a·dv·Bi", "The output projection's input: the attention output.", SOURCE);
static NOTHING: Formula = Formula::new("0", "Freed, and recomputed in the backward pass.", SOURCE);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(18);
    if !norm::is_recomputed(Operator::InputNorm, x) {
        out.push(input(x));
    }
    out.extend(latents(x));
    out.extend(rotation(x));
    out.extend(core(x, &core_of(x)));
    out.extend(residual_mask(x));
    out
}

fn input(x: &Symbols<'_>) -> Saved {
    Saved::new("down-projection input", &[x.s_local, x.h], x.input_width, &INPUT).by(QKV_TWICE)
}

/// What is offloaded but not saved, or saved with another storage: modules are offloaded before their tensors are
/// discarded for recomputation (`multi_latent_attention.py:forward`, `transformer_layer.py:_run_input_layernorm`).
pub(crate) fn sent_beside(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(4);
    if norm::is_recomputed(Operator::InputNorm, x) {
        out.push(input(x));
    }
    if recomputes_up_projection(x) {
        out.push(Saved::new("rotated columns", &[x.s_local, x.latent.rotary], x.width, &ROTATED).by(QKV));
    }
    if gives_back_operands(x) && !x.recomputes(RecomputeModule::CoreAttention) {
        out.extend(operands(x, false).map(|operand| operand.own));
    }
    out
}

/// Norms of the latents, and the up-projections' inputs.
fn latents(x: &Symbols<'_>) -> Vec<Saved> {
    let sizes = x.latent;
    let normed = x.model().qk_layernorm;
    let gathered = gathers_latents(x);
    let mut out = Vec::with_capacity(6);
    let statistics = |out: &mut Vec<Saved>, names: &'static [&'static str; 2]| {
        for name in norm::statistics(x, names) {
            out.push(Saved::new(name, &[x.s_local], STATISTIC, &STATISTICS).by(QKV));
        }
    };
    if sizes.query > 0 && normed {
        let (rows, why) = if gathered { (x.n, &GATHERED_QUERY_NORM) } else { (x.s_local, &QUERY_NORM) };
        out.push(Saved::new("query norm input", &[rows, sizes.query], x.width, why).by(QKV));
        statistics(&mut out, &["query norm statistics", "query norm means"]);
    }
    if sizes.query == 0 && queries_are_normed(x) {
        statistics(&mut out, &["query norm statistics", "query norm means"]);
        out.push(
            Saved::new("query projection input", &[x.s_local, x.h], x.input_width, &NORMED_QUERY).by(QKV),
        );
    }
    if gathered {
        if normed {
            out.push(Saved::new("kv norm input", &[x.s_local, sizes.key_value], x.width, &KV_NORM).by(QKV));
        }
    } else {
        let shape = [x.s_local, sizes.key_value + sizes.rotary];
        // The checkpoint of the up-projections saves the rotated columns too, a view of the same storage.
        let buffer = Saved::new("kv down-projection output", &shape, x.width, &KV_BUFFER).by(QKV);
        let rotated = x.s_local * sizes.rotary < x.recipe().offload.least;
        out.push(buffer.held(recomputes_up_projection(x) && rotated));
    }
    if normed {
        statistics(&mut out, &["kv norm statistics", "kv norm means"]);
    }
    if sizes.query > 0 {
        let shape = [x.s_local, sizes.query];
        out.push(Saved::new("query up-projection input", &shape, x.input_width, &QUERY_UP).by(QKV));
    }
    if normed || gathered {
        let shape = [x.s_local, sizes.key_value];
        out.push(Saved::new("kv up-projection input", &shape, x.input_width, &KV_UP).by(QKV));
    }
    out
}

/// Whether the query projection, if there is no query latent, begins with its own norm, as Transformer Engine's does.
pub(crate) fn queries_are_normed(x: &Symbols<'_>) -> bool {
    x.model().qk_layernorm && x.recipe().software.semantics().transformer_engine
}

/// Whether a down-projection's output is gathered over the tensor ranks and then split by sequence: Megatron's own
/// linear layers are column-parallel there. Transformer Engine's are replicated and give each rank full columns of
/// its own tokens (`MLASelfAttention.__init__`, `get_query_key_value_tensors`), so that a view of the key/value
/// latent holds the rotated part.
fn gathers_latents(x: &Symbols<'_>) -> bool {
    x.sequence_parallel && !x.recipe().software.semantics().transformer_engine
}

fn rotation(x: &Symbols<'_>) -> Vec<Saved> {
    let rotary = x.latent.rotary;
    if recomputes_up_projection(x) {
        return vec![Saved::new("rotary frequencies", &[x.s, rotary], STATISTIC, &FREQUENCIES).by(QKV)];
    }
    // The fused kernel reads a cached table that outlives the layer, and saves no cosines and sines itself.
    if x.recipe().fusions.rope {
        return Vec::new();
    }
    vec![
        Saved::new("rotary cosines", &[2, x.s, rotary], x.width, &COS).by(QKV_TWICE).each(x.s * rotary),
        Saved::new("rotary sines", &[2, x.s, rotary], x.width, &SIN).by(QKV_TWICE).each(x.s * rotary),
    ]
}

fn recomputes_up_projection(x: &Symbols<'_>) -> bool {
    x.recomputes(RecomputeModule::MlaUpProjection)
}

/// Recomputing the up-projections frees queries, keys and values only if the attention uses them directly:
/// batch-first flash attention saves its transposed copies.
fn gives_back_operands(x: &Symbols<'_>) -> bool {
    let copies = x.recipe().attention_kernel == AttentionKernel::Flash && x.b > 1;
    let checkpointed = x.recomputes(RecomputeModule::CoreAttention);
    recomputes_up_projection(x) && (checkpointed || !copies)
}

fn core_of(x: &Symbols<'_>) -> Core {
    let sizes = x.latent;
    let heads = [x.n, x.a * sizes.value];
    Core {
        operands: operands(x, gives_back_operands(x)),
        buffer: None,
        repeated: None,
        output: Saved::new("linear_proj input", &heads, x.input_width, &PROJECTION).by(PROJ),
        raw_output: Saved::new("attention output", &heads, x.width, &OUTPUT).by(CORE),
    }
}

/// Query, key and value as the kernel receives them, or nothing if they are `discarded`.
fn operands(x: &Symbols<'_>, discarded: bool) -> [Operand; 3] {
    let sizes = x.latent;
    let operand = |name, width, formula| {
        let own = if discarded {
            Saved::new(name, &[0], x.width, &NOTHING)
        } else {
            Saved::new(name, &[x.n, x.a, width], x.width, formula).by(CORE)
        };
        Operand { own, view: false }
    };
    let wide = sizes.plain + sizes.rotary;
    [operand("query", wide, &WIDE), operand("key", wide, &WIDE), operand("value", sizes.value, &VALUE)]
}
