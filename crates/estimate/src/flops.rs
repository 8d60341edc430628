//! Floating-point operations of one step by every convention in use, each under its name. A multiply-add is two
//! operations; a step is one global batch.

use std::ops::Range;

use shardscope_explain::Formula;
use shardscope_operators::{
    SectionKind, Symbols, Work, frozen_counts, linear_as_megatron_counts, sections, work_of,
};
use shardscope_plan::{Activation, LayerKind, Mixer, Model, Plan, Recompute, RecomputeModule};
use shardscope_units::Flops;

static MODEL: Formula = Formula::new(
    "3 · Σ 2·m·n·k, attention full",
    "every GEMM once forward and twice backward; attention in full, nothing recomputed",
    "Chowdhery et al. 2022 (PaLM), appendix B; Korthikanti et al. 2022, appendix A",
);
static CAUSAL: Formula = Formula::new(
    "3 · Σ 2·m·n·k, attention halved",
    "as the model FLOPs, with only the causal half of attention",
    "Dao 2023 (FlashAttention-2), section 4.1",
);
static HARDWARE: Formula = Formula::new(
    "model FLOPs + forward FLOPs of what is recomputed and of a reference",
    "what the device executes: recomputation included, attention in full",
    "Korthikanti et al. 2022, section 5; Narayanan et al. 2021, appendix",
);
static MEGATRON: Formula = Formula::new(
    "6·B·s·(L·(projections + a·d·s + g·h·f) + h·V)",
    "what Megatron-LM prints as throughput: causal half, no router, multi-token prediction's norms \
              counted; full attention before core 0.12",
    "megatron/training/training.py:num_floating_point_operations",
);
static NARAYANAN: Formula = Formula::new(
    "96·B·s·L·h²·(1 + s/6h + V/16Lh)",
    "the paper's formula: a GPT whose MLP is 4h wide, with every layer recomputed",
    "Narayanan et al. 2021, section 5.1, equation 2",
);

/// FLOPs of one step over all ranks, by each convention. Unit: FLOP.
#[derive(Clone, Debug, PartialEq)]
pub struct FlopCounts {
    /// Every product of the model, attention in full: the numerator of "MFU" by default.
    pub model: Flops,
    /// The same with causal attention halved.
    pub causal: Flops,
    /// `model` plus recomputation: the numerator of "HFU".
    pub hardware: Flops,
    /// Megatron-LM's own count, if it applies (see [`FlopCounts::conventions`]).
    pub megatron: Option<Flops>,
    /// Narayanan's closed form, if it applies (see [`FlopCounts::conventions`]).
    pub narayanan: Option<Flops>,
}

/// One way to count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convention {
    /// Its name.
    pub name: &'static str,
    /// What it counts, and its source.
    pub formula: &'static Formula,
    /// FLOPs of one step over all ranks; none if it does not apply.
    pub flops: Option<Flops>,
}

impl FlopCounts {
    /// Every convention with its name, formula and value. Narayanan's applies to ungated MLPs of width
    /// 4h without grouped queries or experts, all layers recomputed. Neither it nor Megatron-LM's has an encoder, or
    /// attention to its output.
    #[must_use]
    pub fn conventions(&self) -> [Convention; 5] {
        let entry = |name, formula, flops| Convention { name, formula, flops };
        [
            entry("model", &MODEL, Some(self.model)),
            entry("model, causal half", &CAUSAL, Some(self.causal)),
            entry("Megatron-LM", &MEGATRON, self.megatron),
            entry("hardware", &HARDWARE, Some(self.hardware)),
            entry("Narayanan 2021", &NARAYANAN, self.narayanan),
        ]
    }
}

/// The FLOPs of one step of `plan` by each convention.
#[must_use]
pub fn flops(plan: &Plan) -> FlopCounts {
    let x = Symbols::new(plan);
    let mut forward = Forward::default();
    for chunk in plan.layout().model_chunks() {
        forward.add_chunk(&x, chunk);
    }
    let recipe = plan.recipe();
    let micro_batches = number(recipe.global_batch_size) / number(recipe.micro_batch_size.max(1));
    // Forward, then backward with one product for the input and one for the weight, less the products that are not
    // needed.
    let model = forward.all * 3.0 - forward.frozen;
    FlopCounts {
        model: model * micro_batches,
        causal: (model - forward.masked * 3.0) * micro_batches,
        hardware: (model + forward.repeated + forward.all * number(recipe.tuning.objective.passes_beside()))
            * micro_batches,
        megatron: megatron(plan),
        narayanan: narayanan(plan),
    }
}

/// FLOPs of the forward pass of one micro-batch of the unsharded model.
#[derive(Default)]
struct Forward {
    all: Flops,
    /// Attention above the diagonal.
    masked: Flops,
    /// Recomputed in the backward pass.
    repeated: Flops,
    /// Not computed: gradients of frozen weights, and the whole backward pass of layers before the first trainable
    /// one.
    frozen: Flops,
}

impl Forward {
    fn add_chunk(&mut self, x: &Symbols<'_>, chunk: &shardscope_plan::Chunk) {
        let frozen = frozen_counts(x, chunk);
        for section in sections(x, chunk) {
            let times = number(section.times);
            let skipped = number(frozen[section.kind.index()]);
            let again = recomputed_layers(&x.recipe().recompute, section.kind, section.times, &chunk.layers);
            let again = if again > 0.0 { again - skipped } else { again };
            for work in work_of(x, &section.operators) {
                // By every convention only matrix products count; norms, softmax and dropout are memory-bound.
                let Work::Matmul(matmul) = &work else { continue };
                let mut flops = matmul.full_flops();
                if !matmul.kind.has_weight() {
                    self.masked += flops * (1.0 - matmul.share) * times;
                } else {
                    flops = flops * matmul.share;
                }
                self.all += flops * times;
                self.frozen += flops * (2.0 * skipped);
                // Of its two products in backward, those that nothing asks for.
                let spared = match matmul.kind {
                    kind if !kind.has_backward() => 2.0,
                    kind if kind.has_weight() && !matmul.trains => 1.0,
                    _ => 0.0,
                };
                self.frozen += flops * (spared * (times - skipped));
                // Either full layers are recomputed, some of them in part, or parts of every layer.
                let once_more = if matmul.again { 1.0 } else { 0.0 };
                let share = repeated_share(x.recipe(), section.kind, &work) + once_more;
                self.repeated += flops * (share * (times - skipped) + again);
            }
        }
    }
}

/// How many of `times` equal sections of a chunk of `layers` full recomputation repeats.
pub(crate) fn recomputed_layers(
    recompute: &Recompute,
    kind: SectionKind,
    times: u64,
    layers: &Range<u64>,
) -> f64 {
    match recompute {
        // Uniform recomputes every layer whatever the size of its units: that size changes memory, not FLOPs.
        Recompute::Uniform { .. } if kind.has_layer() || kind.is_of_encoders_layers() => number(times),
        Recompute::Block { .. } | Recompute::Every { .. } if kind.layer().is_some() && !layers.is_empty() => {
            // Dense and MoE layers of a chunk are counted proportionally.
            let all = layers.end.saturating_sub(layers.start);
            number(times) * number(recompute.whole_layers(layers)) / number(all)
        }
        _ => 0.0,
    }
}

/// The share of `work` that selective recomputation repeats in the backward pass; with whole layers, what they repeat of it less
/// than all, as a negative share.
pub(crate) fn repeated_share(recipe: &shardscope_plan::Recipe, kind: SectionKind, work: &Work) -> f64 {
    if recipe.recompute.is_whole() {
        return if let Work::Matmul(matmul) = work { matmul.repeated - 1.0 } else { 0.0 };
    }
    let Recompute::Selective(modules) = &recipe.recompute else { return 0.0 };
    if recipe.software.semantics().keeps_every_second_product {
        return if kind.has_layer() { operator_level(work) } else { 0.0 };
    }
    let named = |module: &RecomputeModule| modules.contains(module);
    if work.modules().iter().any(named) { 1.0 } else { 0.0 }
}

/// torchtitan's selective checkpointing wraps each layer, and saves attention and every second product of it
/// (`torchtitan/distributed/activation_checkpoint.py`; the products say which): norm, output layer and loss are outside. Products in
/// fp8 are told like those in 16 bits: its list of what is saved has had them since March 2026 (all are saved), and before not (all
/// were repeated).
fn operator_level(work: &Work) -> f64 {
    match work {
        Work::Matmul(matmul) if matmul.kind.has_weight() => matmul.repeated,
        Work::Matmul(_) => 0.0,
        Work::Kernel(_) => 1.0,
    }
}

/// `num_floating_point_operations` for one global batch.
fn megatron(plan: &Plan) -> Option<Flops> {
    if plan.model().encoder.is_some() {
        return None;
    }
    let (model, batch) = (plan.model(), number(plan.recipe().global_batch_size));
    let [h, s] = [model.hidden_size, model.seq_length].map(number);
    let depths = number(model.mtp_num_layers);
    // A gated MLP has three matrices of h x f (gate, up, down), a plain one two.
    let gate = if model.activation.is_gated() { 3.0 } else { 2.0 };
    let last = model.layer_kind(model.num_layers.saturating_sub(1));
    let count = |asked: &dyn Fn(LayerKind) -> bool| {
        number(model.count_layers(asked)) + if asked(last) { depths } else { 0.0 }
    };
    let beside = model.arrangement.dense_beside_experts;
    let dense = count(&|kind| kind.feed_forward.is_dense() || beside && kind.feed_forward.is_routed());
    let moe = count(&|kind| kind.feed_forward.is_routed());
    // An MLP of twice the width counts as two.
    let wide = model.arrangement.double_wide;
    let wider = count(&|kind| wide && kind.mixer.borrows() && kind.feed_forward.is_dense());
    let mlp =
        h * number(model.ffn_hidden_size) * gate * (dense + wider) + megatron_experts(model, gate) * moe;
    let attention: f64 = Mixer::ALL
        .into_iter()
        .filter(|mixer| mixer.attends())
        .map(|mixer| {
            megatron_attention(model, plan.attended_length(), mixer) * count(&|kind| kind.mixer == mixer)
        })
        .sum();
    let attention = attention + linear_as_megatron_counts(model) * count(&|kind| kind.mixer.is_linear());
    // Each layer's gate and projection of its own embedding, and one projection of word embeddings for every layer.
    let inputs = model
        .arrangement
        .layer_inputs
        .map_or(0.0, |inputs| h * number(inputs.width) * (2.0 * count(&|_| true) + number(model.num_layers)));
    let joining = depths * (3.0 * h + 2.0 * h * h);
    let outputs = plan.recipe().tuning.objective.labels().unwrap_or(model.padded_vocab_size);
    // Of logits that no loss reads there is only the forward product.
    let read = if plan.recipe().tuning.objective.has_value_head() { 1.0 / 3.0 } else { 1.0 };
    let logits = h * number(outputs) * (depths + 1.0) * read;
    // 2 FLOPs per multiply-add, over three GEMMs: forward, input gradient, weight gradient.
    Some(Flops::new(6.0 * batch * s * (mlp + attention + inputs + joining + logits)))
}

/// Multiply-adds of one MoE layer per token.
fn megatron_experts(model: &Model, gate: f64) -> f64 {
    let Some(experts) = &model.experts else { return 0.0 };
    let h = number(model.hidden_size);
    let routed = number(experts.ffn_hidden_size) * number(experts.router_topk) * gate;
    let shared = h * number(experts.shared_expert_intermediate_size.unwrap_or(0)) * gate;
    let routed = match experts.latent_size.map(number) {
        None => h * routed,
        Some(latent) => latent * routed + 2.0 * h * latent,
    };
    routed + shared
}

/// Multiply-adds of one attention block per token, with its core halved by causality.
fn megatron_attention(model: &Model, attended: u64, mixer: Mixer) -> f64 {
    let [h, s, heads] = [model.hidden_size, attended, model.num_attention_heads].map(number);
    let Some(latent) = &model.latent else {
        let full = model.mixers.full.filter(|_| !mixer.is_windowed());
        let (width, groups, pair) = full.map_or((model.kv_channels, model.num_query_groups, 2), |full| {
            (full.width, full.groups, if full.keys_as_values { 1 } else { 2 })
        });
        let query = number(width) * heads;
        // Borrowed keys and values have no projections.
        let projected = if mixer.borrows() { 0.0 } else { number(pair) * number(width) * number(groups) };
        return h * (query + projected) + query * s + query * h;
    };
    let [query, value] = [latent.query_width(), latent.v_head_dim].map(number);
    let [plain, rotated, rank] =
        [latent.qk_head_dim, latent.qk_pos_emb_head_dim, latent.kv_lora_rank].map(number);
    let queries = match latent.q_lora_rank.map(number) {
        None => h * heads * query,
        Some(low) => low * (h + heads * query + 1.0),
    };
    let pairs = rank * (h + heads * (plain + value) + 1.0) + h * rotated;
    queries + pairs + heads * value * h + s * heads * (query + value) / 2.0
}

/// Narayanan's closed form, if its assumptions hold.
fn narayanan(plan: &Plan) -> Option<Flops> {
    let model = plan.model();
    let plain = model.activation == Activation::Gelu
        && model.encoder.is_none()
        && model.experts.is_none()
        && model.latent.is_none()
        && model.mixers.pattern.is_empty()
        && model.num_query_groups == model.num_attention_heads
        && model.ffn_hidden_size == 4 * model.hidden_size
        && model.kv_channels * model.num_attention_heads == model.hidden_size;
    // The paper's 96 counts the forward pass twice, so it only holds under full recomputation.
    let full = matches!(plan.recipe().recompute, Recompute::Uniform { .. });
    (plain && full).then(|| {
        let [h, s, l, v] =
            [model.hidden_size, plan.attended_length(), model.num_layers, model.padded_vocab_size]
                .map(number);
        let tokens = number(plan.recipe().global_batch_size) * number(model.seq_length);
        Flops::new(96.0 * tokens * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h)))
    })
}

#[allow(clippy::cast_precision_loss)]
fn number(value: u64) -> f64 {
    value as f64
}
