//! The sizes on one rank in which every formula is written. A formula's expression names them as in
//! [`Symbols::value`]: `s` sequence on this rank, `b` micro-batch, `n = s·b` tokens, `h` hidden, `t` tensor size, `S
//! = n/t` with sequence parallelism else `n`, `a` and `k` query and key/value heads on this rank, `d` head width, `A
//! = a·d`, `K = k·d`, `f` MLP width on this rank, `V` vocabulary on this rank, `B` bytes of a 16-bit (or 32-bit)
//! element.

mod kinds;
mod logits;
mod named;

use crate::sizes::{ExpertSizes, LatentSizes, LinearSizes};

use shardscope_plan::{
    BaseTraining, Embeddings, ExpertKernel, LinearModule, LogProbs, Lora, LossKind, Model, NumberFormat,
    Objective, Plan, Quantization, Recipe, Recompute, RecomputeModule, RlSemantics, Window,
};
use shardscope_units::{Bytes, Count, Quantity};

/// Number of elements of a layer's input from which unsloth offloads it: 2 MiB of 16 bits
/// (`unsloth_zoo/gradient_checkpointing.py:initialize_unsloth_gradient_checkpointing`).
const LEAST_SENT: u64 = 1 << 20;

/// Sizes on one rank. All are exact and follow from the plan alone.
#[derive(Clone, Copy, Debug)]
pub struct Symbols<'a> {
    /// The plan they belong to.
    pub plan: &'a Plan,
    /// Tokens of a sequence on this rank: seq / c.
    pub s: u64,
    /// Micro-batch.
    pub b: u64,
    /// Tokens of the whole sequence.
    pub sequence: u64,
    /// Tokens of the sequence whose keys and values attention reads: its own, or an encoder's.
    pub keys: u64,
    /// Whether these are the sizes of a part of the encoder.
    pub encodes: bool,
    /// Whether keys and values are made of the encoder's output.
    pub crosses: bool,
    /// Tokens of a micro-batch on this rank.
    pub n: u64,
    /// Tokens in sequence-parallel regions.
    pub s_local: u64,
    /// Hidden size.
    pub h: u64,
    /// Tensor parallel size.
    pub t: u64,
    /// Query heads on this rank.
    pub a: u64,
    /// Key/value heads on this rank (at least one).
    pub k: u64,
    /// Head width.
    pub d: u64,
    /// Key/value heads of the unsharded model.
    pub groups: u64,
    /// Projections of keys and of values: one where the keys' projection gives the values too, none where both are an earlier
    /// layer's.
    pub pair: u64,
    /// Whether keys and values are an earlier layer's.
    pub borrows: bool,
    /// MLP width of the unsharded model.
    pub ffn: u64,
    /// Width of the embeddings that each layer has of its own; 0 without them.
    pub layer_input: u64,
    /// Whether these are the sizes of a certain operator.
    pub sized: bool,
    /// MLP width on this rank.
    pub f: u64,
    /// Padded vocabulary on this rank.
    pub v: u64,
    /// Bytes of an element of weights and activations.
    pub width: u64,
    /// Bytes of an element of the residual stream.
    pub residual_width: u64,
    /// 2 when the MLP is gated, else 1.
    pub gate: u64,
    /// Bytes of an element of a linear layer's saved input: under FP8 as its product reads it, or as the layer was given it.
    pub input_width: u64,
    /// Width of the storage that views of the fused QKV output hold: `A + 2K`; with fewer key/value heads than tensor
    /// ranks the full output is gathered before it is sliced.
    pub qkv: u64,
    /// Sizes of routed experts; all 0 without them.
    pub moe: ExpertSizes,
    /// Sizes of multi-latent attention; all 0 without it.
    pub latent: LatentSizes,
    /// Sizes of the linear mixer; all 0 without one.
    pub linear: LinearSizes,
    /// Whether the layer attends to a window, regardless of the sequence length.
    pub in_window: bool,
    /// How far attention sees; `None` means the whole sequence.
    pub window: Option<Window>,
    /// Whether the residual stream is split over the tensor ranks.
    pub sequence_parallel: bool,
    /// Ranks over which a sequence is split, c.
    pub context: u64,
    /// Whether named modules count as recomputed according to the plan; off while their backward runs.
    pub recomputing: bool,
    /// Bytes of an element in matrix products: 2 under autocast, otherwise as for weights.
    pub compute_width: u64,
    /// Bytes per output element of a linear layer after a norm: the compute width, unless a quantized layer returns
    /// its input's dtype, which is fp32 after fp32 norms (`bitsandbytes/nn/modules.py:Linear4bit.forward`,
    /// `inp_dtype`).
    pub projected_width: u64,
    /// Bytes of an element of LoRA's adapters.
    pub adapter_width: u64,
    /// Bytes of an element in DoRA's products: what adapters run in.
    pub dora_width: u64,
    /// Rank of LoRA's adapters; 0 if there are none.
    pub lora_rank: u64,
    /// Columns of a head that are rotated.
    pub rotated: u64,
    /// Whether a layer's input requires a gradient.
    pub input_gradient: bool,
    /// Whether a layer's own weights train, apart from adapters.
    pub trains: bool,
}

impl<'a> Symbols<'a> {
    /// The sizes of `plan`.
    #[must_use]
    pub fn new(plan: &'a Plan) -> Self {
        let (model, layout, recipe) = (plan.model(), plan.layout(), plan.recipe());
        let t = layout.tensor;
        let s = model.seq_length / layout.context;
        // A preference pair is two sequences of one sample.
        let b = recipe.micro_batch_size * recipe.tuning.objective.sequences();
        let n = s * b;
        // The output of fp32 norms is fp32 (`prepare_model_for_kbit_training` casts their weights).
        let upcast = recipe.tuning.upcast;
        let width = if upcast { NumberFormat::Fp32.width() } else { recipe.module_dtype().width() };
        let compute = recipe.transformers.autocast.map_or(width, NumberFormat::width);
        let lora = recipe.tuning.lora;
        Self {
            plan,
            s,
            sequence: model.seq_length,
            keys: model.seq_length,
            encodes: false,
            crosses: false,
            b,
            n,
            s_local: if layout.sequence_parallel { n / t } else { n },
            h: model.hidden_size,
            t,
            a: model.num_attention_heads / t,
            // With fewer groups than tensor ranks each group is held by several ranks, one to a rank.
            k: (model.num_query_groups / t).max(1),
            d: model.kv_channels,
            groups: model.num_query_groups,
            pair: 2,
            borrows: false,
            ffn: model.ffn_hidden_size,
            layer_input: model.arrangement.layer_inputs.map_or(0, |inputs| inputs.width),
            sized: false,
            f: model.ffn_hidden_size / t,
            v: model.padded_vocab_size / t,
            width,
            residual_width: if recipe.fp32_residual || upcast {
                NumberFormat::Fp32.width()
            } else {
                recipe.stream_dtype().width()
            },
            gate: model.gate_factor(),
            input_width: if recipe.fp8.is_some() && !recipe.software.semantics().keeps_unquantized_inputs {
                NumberFormat::Fp8.width()
            } else {
                width
            },
            qkv: qkv_width(model, t),
            moe: ExpertSizes::new(plan),
            latent: LatentSizes::new(model),
            linear: LinearSizes::new(model, t),
            in_window: false,
            window: None,
            sequence_parallel: layout.sequence_parallel,
            context: layout.context,
            recomputing: true,
            // Autocast to a format that is not narrower changes no size.
            compute_width: compute.min(width),
            projected_width: if upcast { width } else { compute.min(width) },
            adapter_width: lora.map_or(width, |lora| adapter_width(recipe, lora)),
            dora_width: lora.map_or(width, |lora| {
                if recipe.autocasts() { compute.min(width) } else { adapter_width(recipe, lora) }
            }),
            lora_rank: lora.map_or(0, |lora| lora.rank),
            rotated: rotated(model),
            input_gradient: true,
            trains: recipe.tuning.base != BaseTraining::None,
        }
    }

    /// The same with every module's tensors alive, as while a recomputed module runs backward.
    #[must_use]
    pub fn recomputed(mut self) -> Self {
        self.recomputing = false;
        self
    }

    /// The same in the first layer that trains, whose input requires a gradient only if something before it trains.
    #[must_use]
    pub fn in_first_trained_layer(mut self) -> Self {
        self.input_gradient = self.recipe().tuning.reaches_input();
        self
    }

    /// Whether the linear layer `module` is stored quantized, and dequantized for each of its products.
    #[must_use]
    pub(crate) fn is_quantized(&self, module: LinearModule) -> bool {
        let quantized = self.is_packed();
        let output = self.recipe().software.semantics().modules.quantizes_output;
        quantized && (module != LinearModule::OutputLayer || output)
    }

    /// Whether the input of a recomputed layer that is not the last is offloaded, given its number of elements.
    #[must_use]
    pub fn sends_input(&self, elements: u64) -> bool {
        let streams = self.recipe().software.semantics().modules.streams_inputs;
        self.recipe().offload.layer_inputs && !streams && elements > LEAST_SENT
    }

    /// Whether layers are uncompiled plain PyTorch modules: each operation is a separate kernel, and counted.
    #[must_use]
    pub fn in_pieces(&self) -> bool {
        self.recipe().software.semantics().eager_modules && !self.recipe().fusions.compiled_layers
    }

    /// Whether layers are torchtitan's own modules, not compiled.
    #[must_use]
    pub(crate) fn as_written(&self) -> bool {
        self.recipe().software.semantics().runs_as_written && !self.recipe().fusions.compiled_layers
    }

    /// Whether weights are stored quantized, and dequantized for each product.
    #[must_use]
    pub(crate) fn is_packed(&self) -> bool {
        self.recipe().tuning.quantization != Quantization::None
    }

    /// Whether products run in a different dtype than weights are stored in, so that weights are cast for each of
    /// them.
    #[must_use]
    pub fn casts_weights(&self) -> bool {
        self.compute_width != self.width
    }

    /// Image patches in a micro-batch, assuming that every token is an image token if nothing states how many there
    /// are; 0 without a vision tower.
    #[must_use]
    pub fn patches(&self) -> u64 {
        self.model().vision.map_or(0, |tower| match (tower.projector, tower.image_patches) {
            (Some(projector), _) => self.b.saturating_mul(projector.patches),
            (None, Some(patches)) => self.b.saturating_mul(patches),
            (None, None) => self.n.saturating_mul(tower.patches_per_token),
        })
    }

    /// Bytes of an element in the experts' products: autocast does not apply to grouped ones.
    #[must_use]
    pub fn expert_width(&self) -> u64 {
        match self.recipe().transformers.experts {
            ExpertKernel::Grouped => self.width,
            ExpertKernel::Batched | ExpertKernel::Loop => self.compute_width,
        }
    }

    /// Whether a layer's tensors are all recomputed at once when backward reaches it, although some are saved.
    #[must_use]
    pub fn samples_layers(&self) -> bool {
        self.recomputing && self.samples_products()
    }

    /// Whether a layer's checkpoint keeps every second product and repeats the others.
    #[must_use]
    pub fn samples_products(&self) -> bool {
        self.recipe().software.semantics().keeps_every_second_product
            && matches!(self.recipe().recompute, Recompute::Selective(_))
    }

    /// Whether `module` is recomputed on its own, so that forward does not save what is inside.
    #[must_use]
    pub fn recomputes(&self, module: RecomputeModule) -> bool {
        self.recomputing && self.recipe().recompute.recomputes(module)
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &'a Model {
        self.plan.model()
    }

    /// How a policy loss computes the log-probabilities of sampled tokens.
    #[must_use]
    pub fn log_probs(&self) -> LogProbs {
        let supervised = self.recipe().tuning.objective == Objective::NextToken;
        if supervised && self.recipe().loss == LossKind::InPlaceLogits {
            return LogProbs::InPlace;
        }
        let cuts = self.recipe().software.semantics().cuts_models;
        let framework = self.recipe().rollout.map(|rollout| rollout.framework.semantics(cuts));
        let padded = self.recipe().transformers.padding_mask;
        let of =
            |semantics: RlSemantics| if padded { semantics.padded_log_probs } else { semantics.log_probs };
        framework.map_or(LogProbs::ByRow, of)
    }

    /// Whether a policy loss includes the entropy of the logits.
    #[must_use]
    pub fn entropy_in_loss(&self) -> bool {
        self.recipe().rollout.is_some_and(|rollout| rollout.entropy)
    }

    /// Rows of logits whose entropy is computed at once separately from a policy loss; 0 if none is.
    #[must_use]
    pub fn entropy_rows(&self) -> u64 {
        let cuts = self.recipe().software.semantics().cuts_models;
        let framework = self.recipe().rollout.map(|rollout| rollout.framework.semantics(cuts));
        self.n.min(framework.map_or(0, |semantics| semantics.entropy_rows))
    }

    /// The recipe.
    #[must_use]
    pub fn recipe(&self) -> &'a Recipe {
        self.plan.recipe()
    }

    /// Bytes of this many elements of weights and activations.
    #[must_use]
    pub fn bytes(&self, elements: u64) -> Bytes {
        Count::new(elements).bytes(self.width)
    }

    /// Whether whole layers are recomputed (`--recompute-granularity full`).
    #[must_use]
    pub fn recomputes_layers(&self) -> bool {
        let some = match self.recipe().recompute {
            Recompute::Uniform { num_layers, .. } | Recompute::Block { num_layers, .. } => num_layers > 0,
            Recompute::Every { .. } => true,
            Recompute::None | Recompute::Selective(_) => false,
        };
        self.recomputing && some
    }

    /// Whether layers of a vision tower are recomputed whole.
    #[must_use]
    pub fn recomputes_tower(&self) -> bool {
        self.recomputes_layers() && self.model().vision.is_some_and(|tower| tower.recomputed)
    }

    /// Whether attention and MLP read the same input and are summed before one reduction (GPT-NeoX's GPT-J-style
    /// layers).
    #[must_use]
    pub fn sums_before_reducing(&self) -> bool {
        self.model().arrangement.parallel_residual && self.recipe().software.semantics().sums_before_reducing
    }

    /// Whether a pipeline gathers the last stage's outputs, and has separate buffers for every micro-batch.
    #[must_use]
    pub fn gathers_pipeline_outputs(&self) -> bool {
        self.plan.layout().pipeline > 1 && self.recipe().software.semantics().gathers_pipeline_outputs
    }

    /// Whether the output layer reuses the word embedding.
    #[must_use]
    pub fn tied(&self) -> bool {
        self.plan.model().embeddings == Embeddings::Tied
    }
}

/// Width of the storage that backs the fused QKV output on one rank.
fn qkv_width(model: &Model, t: u64) -> u64 {
    let (heads, groups) = (model.num_attention_heads, model.num_query_groups);
    // A gate is as wide as the queries.
    let queries = if model.mixers.output_gate { 2 * heads } else { heads };
    let rows = match () {
        () if model.arrangement.whole_keys => queries / t + 2 * groups,
        // Sharded by rows: each rank's output has its own query groups.
        () if groups >= t => queries / t + 2 * (groups / t),
        // Fewer groups than ranks: Megatron gathers the whole output over TP before it takes its slice, and a view of
        // it keeps all of it alive.
        () => queries + 2 * groups,
    };
    rows * model.kv_channels
}

/// Bytes of an element of adapters while they run: an engine that holds weights in one format holds adapters in it
/// too.
fn adapter_width(recipe: &Recipe, lora: Lora) -> u64 {
    let engine = recipe.transformers.autocast.is_some() && !recipe.autocasts();
    if engine { recipe.module_dtype().width() } else { lora.dtype.width() }
}

/// Columns of a head that are rotated: an even number of them.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rotated(model: &Model) -> u64 {
    if let Some(latent) = model.latent {
        return latent.qk_pos_emb_head_dim;
    }
    let share = model.arrangement.rotary_percent.clamp(0.0, 1.0);
    if share >= 1.0 { model.kv_channels } else { (Count::new(model.kv_channels).number() * share) as u64 }
}
