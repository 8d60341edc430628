//! Tensors saved for backward.

use super::core::{Core, Operand, core};
use crate::adapters::{Alive, LINEAR_PROJ, LINEAR_QKV, input_needs_gradient};
use crate::{Operator, Saved, Symbols, column, norm};
use shardscope_explain::Formula;
use shardscope_plan::{AttentionKernel, OffloadModule, PositionEmbedding, TowerModules};

const ATTENTION: &str = "megatron/core/transformer/attention.py";
const ROPE: &str = "megatron/core/models/common/embeddings/rope_utils.py";
const MROPE: &str =
    "megatron/bridge/models/qwen_vl/modelling_qwen3_vl/rope.py:Qwen3VLMultimodalRotaryEmbedding";
/// Bytes of an fp32 statistic.
const STATISTIC: u64 = 4;
/// What is saved where queries, keys and values are computed, including their norms
/// (`attention.py:qkv_linear_manager`).
const QKV: &[OffloadModule] = &[OffloadModule::QkvLinear];
const CORE: &[OffloadModule] = &[OffloadModule::CoreAttention];
/// Queries, keys and values, each a view of the projection's output.
const VIEWS: &[OffloadModule] = &[OffloadModule::CoreAttention; 3];
const PROJ: &[OffloadModule] = &[OffloadModule::AttentionProjection];

static INPUT: Formula = Formula::new("S·h·Bi", "The QKV projection's input: the norm output.", ATTENTION);
static GATHERED: Formula = Formula::new("n·h·Bi", "The QKV projection's input, gathered.", ATTENTION);
static QUERY: Formula = Formula::new("n·A·B", "The queries.", ATTENTION);
static REORDERED: Formula = Formula::new(
    "n·Q·B",
    "The queries, rotated in place, with the keys and values beside them as the projection made them: one storage.",
    "nanotron/models/llama.py:CausalSelfAttention; flash_attn/layers/rotary.py",
);
static KEY: Formula = Formula::new("n·K·B", "The keys.", ATTENTION);
static VALUE: Formula = Formula::new("n·K·B", "The values.", ATTENTION);
static BUFFER: Formula =
    Formula::new("n·Q·B", "The whole QKV projection's output, held by a view of a part of it.", ATTENTION);
static REPEATED: Formula =
    Formula::new("n·A·B", "Keys or values of the query groups, repeated for every query head.", ATTENTION);
static OUTPUT: Formula = Formula::new("n·A·B", "The attention output in the kernel's own layout.", ATTENTION);
static PROJECTION: Formula =
    Formula::new("n·A·Bi", "The output projection's input: the attention output.", ATTENTION);
static QUERY_STATISTICS: Formula =
    Formula::new("4·n·a", "The query norm's fp32 statistics, one per head and token.", ATTENTION);
static KEY_STATISTICS: Formula =
    Formula::new("4·n·k", "The key norm's fp32 statistics, one per head and token.", ATTENTION);
static COS: Formula =
    Formula::new("2·s·d·B", "RoPE cosines for queries and for keys, without a batch dimension.", ROPE);
static SIN: Formula =
    Formula::new("2·s·d·B", "RoPE sines for queries and for keys, without a batch dimension.", ROPE);
static OWN_COS: Formula =
    Formula::new("2·n·d·B", "RoPE cosines for queries and for keys, of each token.", MROPE);
static OWN_SIN: Formula =
    Formula::new("2·n·d·B", "RoPE sines for queries and for keys, of each token.", MROPE);
static UNGATED: Formula =
    Formula::new("n·A·B", "The attention's output before the gate, for the gate's gradient.", ATTENTION);
static GATE: Formula = Formula::new("n·A·B", "The gate before its sigmoid.", ATTENTION);
static MASK: Formula =
    Formula::new("S·h", "Dropout mask of the residual addition, one byte each.", ATTENTION);

pub(crate) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let mut out = Vec::with_capacity(14);
    let needed = input_needs_gradient(Operator::SelfAttention, x);
    let input =
        column::input(x, "linear_qkv input", x.input_width, &INPUT, &GATHERED).by(QKV).of_first_projection();
    let normed = x.recipe().software.semantics().norm_in_projection;
    out.extend(LINEAR_QKV.column(x, input, [normed, needed], norm::alive(Operator::InputNorm, x)));
    if !needed && !LINEAR_QKV.is_adapted(x) {
        // Nothing up to the output projection has a gradient.
        let core = core_of(x);
        out.extend(LINEAR_PROJ.row(x, core.output, [x.n, x.a * x.d], Alive::No, false));
        out.extend(residual_mask(x).filter(|_| LINEAR_PROJ.is_adapted(x)));
        return out;
    }
    out.extend(qk_norms(x));
    out.extend(rotation(x));
    out.extend(core(x, &core_of(x)));
    out.extend(output_gate(x));
    out.extend(residual_mask(x));
    out
}

/// What the gate saves in addition to the gated output, which the output projection reads: the attention's own output
/// and the gate in fp32, its sigmoid (`megatron/core/transformer/attention.py:_apply_output_gate`, core 0.16).
fn output_gate(x: &Symbols<'_>) -> Vec<Saved> {
    if !x.model().mixers.output_gate {
        return Vec::new();
    }
    let wide = [x.n, x.a * x.d];
    vec![
        // The kernel's own output, which the gate's product saves as well.
        Saved::new("gated attention output", &wide, x.width, &UNGATED).by(CORE).held(true),
        Saved::new("output gate", &wide, x.width, &GATE),
    ]
}

/// Whether queries and keys are rotated.
fn is_rotated(x: &Symbols<'_>) -> bool {
    x.model().position_embedding == PositionEmbedding::Rope
}

/// Whether grouped queries must be copied to be read head by head.
pub(super) fn is_grouped(x: &Symbols<'_>) -> bool {
    // With a single key/value head on the rank, its queries are already contiguous, and a view suffices.
    x.a / x.k > 1 && x.k > 1
}

fn core_of(x: &Symbols<'_>) -> Core {
    let normed = x.model().qk_layernorm;
    let fresh = is_rotated(x) || normed;
    let operand = |name, heads, formula, view| Operand {
        own: Saved::new(name, &[x.n, heads, x.d], x.width, formula).by(CORE),
        view,
    };
    let heads = [x.n, x.a * x.d];
    let holds_all = x.recipe().software.semantics().queries_hold_projection && x.a == x.k;
    let query = if holds_all {
        Operand {
            own: Saved::new("query in the projection", &[x.n, x.qkv], x.width, &REORDERED).by(CORE),
            view: false,
        }
    } else {
        operand("query", x.a, &QUERY, !fresh && !is_grouped(x))
    };
    Core {
        operands: [
            query,
            operand("key", x.k, &KEY, !fresh),
            // Values are neither normed nor rotated, so that they stay views of the projection's output.
            operand("value", x.k, &VALUE, true),
        ],
        // A view keeps its whole storage alive: the fused output counts once, with the columns that nothing else
        // would keep alive. Each view of less than half of it is offloaded as a separate copy.
        buffer: (!normed).then(|| {
            let whole = buffer(x, "QKV output held by views");
            if fresh { whole.by(CORE).each(x.n * x.k * x.d) } else { whole.by(VIEWS).each(x.n * x.qkv / 3) }
        }),
        repeated: (x.a / x.k > 1).then(|| {
            ["repeated key", "repeated value"]
                .map(|name| Saved::new(name, &heads, x.width, &REPEATED).by(CORE))
        }),
        output: Saved::new("linear_proj input", &heads, x.input_width, &PROJECTION).by(PROJ),
        raw_output: Saved::new("attention output", &heads, x.width, &OUTPUT).by(CORE),
    }
}

fn buffer(x: &Symbols<'_>, name: &'static str) -> Saved {
    Saved::new(name, &[x.n, x.qkv], x.width, &BUFFER)
}

/// Names of the statistics that the norms save for every head and token: its deviation and its mean.
const NORM_STATISTICS: [[&str; 2]; 2] =
    [["query norm statistics", "key norm statistics"], ["query norm means", "key norm means"]];

/// The key's norm reads a view of the QKV output, the query's a copy if heads are grouped.
fn qk_norms(x: &Symbols<'_>) -> Vec<Saved> {
    if !x.model().qk_layernorm {
        return Vec::new();
    }
    let mut out = Vec::with_capacity(4);
    if is_grouped(x) {
        out.push(Saved::new("query norm input", &[x.n, x.a, x.d], x.width, &QUERY).by(QKV));
    }
    // Views smaller than half of the storage are copied; an unfused kernel saves the values, which are a view too.
    let viewed = x.recipe().attention_kernel == AttentionKernel::Unfused && !is_grouped(x);
    let view = if is_grouped(x) { x.k } else { x.a + x.k };
    let held = buffer(x, "QKV output held by the norms").by(QKV).each(x.n * view * x.d);
    out.push(held.held(viewed));
    for [query, key] in norm::statistics(x, &NORM_STATISTICS) {
        out.push(Saved::new(query, &[x.n, x.a], STATISTIC, &QUERY_STATISTICS).by(QKV));
        out.push(Saved::new(key, &[x.n, x.k], STATISTIC, &KEY_STATISTICS).by(QKV));
    }
    out
}

fn rotation(x: &Symbols<'_>) -> Vec<Saved> {
    if !is_rotated(x) || x.recipe().fusions.rope {
        return Vec::new();
    }
    // Positions in images differ from sequence to sequence.
    if x.model().vision.is_some_and(|tower| tower.modules == TowerModules::Core) {
        return vec![
            Saved::new("rotary cosines", &[2, x.n, x.d], x.width, &OWN_COS),
            Saved::new("rotary sines", &[2, x.n, x.d], x.width, &OWN_SIN),
        ];
    }
    vec![
        Saved::new("rotary cosines", &[2, x.s, x.d], x.width, &COS),
        Saved::new("rotary sines", &[2, x.s, x.d], x.width, &SIN),
    ]
}

/// The mask of the dropout between a block and the residual stream.
pub(crate) fn residual_mask(x: &Symbols<'_>) -> Option<Saved> {
    x.recipe().hidden_dropout.then(|| Saved::new("dropout mask", &[x.s_local, x.h], 1, &MASK))
}
