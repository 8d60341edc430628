//! One transformer layer of Megatron core as a program: what each operation reads, produces and saves.
//! Sources: megatron/core/transformer/{transformer_layer,attention,multi_latent_attention,mlp}.py,
//! megatron/core/transformer/moe, megatron/core/models/gpt/gpt_layer_specs.py (which norms are Transformer Engine's
//! LayerNormLinear).

use shardscope::plan::{
    AttentionKernel, ContextKind, FeedForward, LatentAttention, Model, Normalization, NumberFormat, Plan,
    PositionEmbedding, Recipe, RecomputeModule, Software,
};

use super::tape::{Storage, Tape};

/// Bytes of an fp32 number.
const FLOAT: u64 = 4;

/// A rank that runs layers.
pub(super) struct Runner<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tape: Tape,
    /// Tokens of a sequence and of a micro-batch on this rank, and the latter's rows under sequence parallelism.
    pub(super) sequence: u64,
    pub(super) tokens: u64,
    pub(super) rows: u64,
    /// Bytes per element of activations, and of the residual stream.
    pub(super) width: u64,
    pub(super) residual: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(plan: &'a Plan) -> Self {
        let (model, layout, recipe) = (plan.model(), plan.layout(), plan.recipe());
        let sequence = model.seq_length / layout.context;
        let tokens = sequence * recipe.micro_batch_size;
        let rows = if layout.sequence_parallel { tokens / layout.tensor } else { tokens };
        let width = if recipe.params_dtype == NumberFormat::Fp32 { 4 } else { 2 };
        let residual = if recipe.fp32_residual { FLOAT } else { width };
        Self { plan, tape: Tape::default(), sequence, tokens, rows, width, residual }
    }

    pub(super) fn model(&self) -> &'a Model {
        self.plan.model()
    }

    pub(super) fn recipe(&self) -> &'a Recipe {
        self.plan.recipe()
    }

    pub(super) fn recomputes(&self, module: RecomputeModule) -> bool {
        self.recipe().recompute.recomputes(module)
    }

    fn is_te(&self) -> bool {
        self.recipe().software == Software::MegatronCoreTe
    }

    /// A norm of `rows` rows of `columns`: keeps what it reads and its statistics.
    pub(super) fn norm(&mut self, input: Storage, rows: u64, columns: u64) -> Storage {
        self.tape.save(input);
        self.tape.keep("deviation", rows * FLOAT);
        if self.model().normalization == Normalization::LayerNorm {
            self.tape.keep("mean", rows * FLOAT);
        }
        self.tape.allocate("normed", rows * columns * self.width)
    }

    /// After attention and MLP: dropout keeps its mask; the sum is a separate storage.
    fn add(&mut self) -> Storage {
        let elements = self.rows * self.model().hidden_size;
        if self.recipe().hidden_dropout {
            self.tape.keep("dropout mask", elements);
        }
        self.tape.allocate("residual", elements * self.residual)
    }

    /// Runs layer `layer` with the input `stream`; returns its output.
    pub(super) fn layer(&mut self, stream: Storage, layer: u64) -> Storage {
        let stream = self.attention_half(stream);
        self.mlp_half(stream, self.model().layer_kind(layer).feed_forward)
    }

    fn attention_half(&mut self, stream: Storage) -> Storage {
        let width = self.model().hidden_size;
        // Transformer Engine's QKV projection includes the norm, which norm checkpointing does not reach.
        let alone = !self.is_te() || self.model().latent.is_some();
        self.half_norm(stream, alone, width, |runner, normed| match runner.model().latent {
            Some(latent) => runner.latent_attention(normed, latent),
            None => runner.attention(normed),
        });
        self.add()
    }

    fn mlp_half(&mut self, stream: Storage, kind: FeedForward) -> Storage {
        let width = self.model().hidden_size;
        match kind {
            FeedForward::None => return stream,
            FeedForward::Moe => {
                self.half_norm(stream, true, width, |runner, normed| runner.moe(normed));
            }
            FeedForward::Dense if self.is_te() => {
                // The norm is part of the first projection, so a checkpoint of the MLP begins before it.
                let before = self.tape.len();
                self.half_norm(stream, false, width, |runner, normed| runner.mlp(normed));
                if self.recomputes(RecomputeModule::Mlp) {
                    self.tape.forget_since(before);
                    self.tape.save(stream);
                }
            }
            FeedForward::Dense => {
                self.half_norm(stream, true, width, |runner, normed| {
                    let before = runner.tape.len();
                    runner.mlp(normed);
                    if runner.recomputes(RecomputeModule::Mlp) {
                        runner.tape.forget_since(before);
                        runner.tape.save(normed);
                    }
                });
            }
        }
        self.add()
    }

    /// A norm and the operation that reads it. A separate norm (`alone`) may be recomputed: its output is freed after
    /// its reader.
    fn half_norm(
        &mut self,
        stream: Storage,
        alone: bool,
        columns: u64,
        then: impl FnOnce(&mut Self, Storage),
    ) {
        if alone && self.recomputes(RecomputeModule::LayerNorm) {
            self.tape.save(stream);
            let normed = self.tape.allocate("normed", self.rows * columns * self.width);
            then(self, normed);
            self.tape.forget(normed);
        } else {
            let normed = self.norm(stream, self.rows, columns);
            then(self, normed);
        }
    }

    /// A linear layer keeps its input.
    pub(super) fn linear(&mut self, input: Storage) {
        self.tape.save(input);
    }

    fn attention(&mut self, normed: Storage) {
        let (model, t, n) = (self.model(), self.plan.layout().tensor, self.tokens);
        let (heads, groups, d) =
            (model.num_attention_heads / t, (model.num_query_groups / t).max(1), model.kv_channels);
        self.linear(normed);
        let columns = if model.num_query_groups < t {
            // Too few groups for the ranks: the full output is gathered and split again, including the gates of all
            // heads.
            let gates = if model.mixers.output_gate { model.num_attention_heads } else { 0 };
            (model.num_attention_heads + gates + 2 * model.num_query_groups) * d
        } else {
            (heads + 2 * groups) * d + if model.mixers.output_gate { heads * d } else { 0 }
        };
        let gate = if model.mixers.output_gate { heads * d } else { 0 };
        let packed = self.tape.allocate("packed qkv", n * columns * self.width);
        // Queries with several heads in several groups are not contiguous and are copied together; otherwise all are
        // views.
        let copied = heads / groups > 1 && groups > 1;
        let mut query = if copied { self.tape.allocate("query", n * heads * d * self.width) } else { packed };
        let (mut key, value) = (packed, packed);
        if model.qk_layernorm {
            self.head_norm(query, n * heads);
            self.head_norm(key, n * groups);
            query = self.tape.allocate("normed query", n * heads * d * self.width);
            key = self.tape.allocate("normed key", n * groups * d * self.width);
        }
        if model.position_embedding == PositionEmbedding::Rope {
            if !self.recipe().fusions.rope {
                for _ in ["query", "key"] {
                    self.tape.keep("cosines", self.sequence * d * self.width);
                    self.tape.keep("sines", self.sequence * d * self.width);
                }
            }
            query = self.tape.allocate("rotated query", n * heads * d * self.width);
            key = self.tape.allocate("rotated key", n * groups * d * self.width);
        }
        let output = self.core([query, key, value], heads, [heads * d, groups * d, groups * d, heads * d]);
        let projected = if gate > 0 {
            self.tape.save(output);
            self.tape.keep("gate", n * gate * self.width);
            self.tape.allocate("gated output", n * heads * d * self.width)
        } else {
            output
        };
        self.linear(projected);
    }

    /// A norm over heads, whose output is written to another storage.
    fn head_norm(&mut self, input: Storage, rows: u64) {
        self.tape.save(input);
        self.tape.keep("head deviation", rows * FLOAT);
        if self.model().normalization == Normalization::LayerNorm {
            self.tape.keep("head mean", rows * FLOAT);
        }
    }

    /// The kernel between projections; returns its output. Columns are those of query, key, value and output.
    fn core(&mut self, given: [Storage; 3], heads: u64, columns: [u64; 4]) -> Storage {
        let before = self.tape.len();
        let output = self.kernel(given, heads, columns);
        if !self.recomputes(RecomputeModule::CoreAttention) {
            return output;
        }
        self.tape.forget_since(before);
        for storage in given {
            self.tape.save(storage);
        }
        self.tape.keep("mask type", FLOAT);
        self.tape.allocate("attention output", self.tokens * columns[3] * self.width)
    }

    fn kernel(&mut self, given: [Storage; 3], heads: u64, columns: [u64; 4]) -> Storage {
        let (n, w, recipe) = (self.tokens, self.width, self.recipe());
        let exchanged = self.plan.layout().context > 1
            && matches!(
                self.plan.layout().context_kind,
                ContextKind::AllToAll | ContextKind::AllToAllAndPointToPoint
            );
        match recipe.attention_kernel {
            AttentionKernel::Unfused => {
                self.scores(given, heads, columns);
                self.tape.allocate("attention output", n * columns[3] * w)
            }
            kernel => {
                // In batch-first layout everything is copied; Transformer Engine makes its inputs contiguous.
                let copies = kernel != AttentionKernel::Fused || self.is_te();
                for (storage, columns) in given.into_iter().zip(columns) {
                    if copies {
                        self.tape.keep("contiguous operand", n * columns * w);
                    } else {
                        self.tape.save(storage);
                    }
                }
                self.tape.keep("log-sum-exp", n * heads * FLOAT);
                let own = self.tape.keep("kernel output", n * columns[3] * w);
                let transposed = kernel != AttentionKernel::Fused && recipe.micro_batch_size > 1;
                if transposed || exchanged {
                    self.tape.allocate("attention output", n * columns[3] * w)
                } else {
                    own
                }
            }
        }
    }

    /// Materialised scores.
    fn scores(&mut self, [query, key, value]: [Storage; 3], heads: u64, columns: [u64; 4]) {
        let (n, w, s, recipe) = (self.tokens, self.width, self.sequence, self.recipe());
        let grouped = self.model().latent.is_none() && columns[1] < columns[0];
        if grouped {
            // The query may be a view; unless it has its own storage, the product copies it.
            self.tape.keep("query", n * columns[0] * w);
            self.tape.keep("repeated key", n * columns[0] * w);
            self.tape.keep("repeated value", n * columns[0] * w);
        } else {
            for storage in [query, key, value] {
                self.tape.save(storage);
            }
        }
        let scores = recipe.micro_batch_size * heads * s * s;
        let fused = recipe.fusions.masked_softmax
            && w == 2
            && (17..=4096).contains(&s)
            && s % 4 == 0
            && (recipe.micro_batch_size * heads).is_multiple_of(4);
        let wide = recipe.fusions.softmax_in_fp32 && !fused && w == 2;
        self.tape.keep("softmax", scores * if wide { FLOAT } else { w });
        if recipe.attention_dropout {
            self.tape.keep("attention dropout mask", scores);
            self.tape.keep("dropped", scores * w);
        } else if wide {
            self.tape.keep("cast softmax", scores * w);
        }
        if fused {
            self.tape.keep("scale", FLOAT);
        } else {
            self.tape.keep("causal mask", s * s);
        }
    }

    fn latent_attention(&mut self, normed: Storage, latent: LatentAttention) {
        let (n, rows, w) = (self.tokens, self.rows, self.width);
        let heads = self.model().num_attention_heads / self.plan.layout().tensor;
        let has_norms = self.model().qk_layernorm;
        // Transformer Engine's down-projections are replicated on every rank and run on its own tokens; Megatron's own
        // are sharded by column, gathered, and split by sequence: a view of the gathered tensor, but a copy of a part
        // of its columns.
        let gathers = self.plan.layout().sequence_parallel && !self.is_te();
        self.linear(normed);
        let mut queries = normed;
        if let Some(rank) = latent.q_lora_rank {
            queries = self.tape.allocate("query latent", if gathers { n } else { rows } * rank * w);
            if has_norms {
                queries = self.norm(queries, rows, rank);
            } else if gathers {
                // The up-projection gathers the sequence again and keeps its own rank's part.
                queries = self.tape.allocate("query latent", rows * rank * w);
            }
        } else if has_norms && self.is_te() {
            queries = self.norm(normed, rows, self.model().hidden_size);
        }
        self.linear(queries);
        let joined = latent.kv_lora_rank + latent.qk_pos_emb_head_dim;
        let mut keys = if gathers {
            self.tape.allocate("key latent", rows * latent.kv_lora_rank * w)
        } else {
            self.tape.allocate("key latent with rotated part", rows * joined * w)
        };
        if has_norms {
            keys = self.norm(keys, rows, latent.kv_lora_rank);
        }
        self.linear(keys);
        let rotated = latent.qk_pos_emb_head_dim;
        if !self.recipe().fusions.rope {
            for _ in ["query", "key"] {
                self.tape.keep("cosines", self.sequence * rotated * w);
                self.tape.keep("sines", self.sequence * rotated * w);
            }
        }
        let wide = heads * (latent.qk_head_dim + rotated);
        let narrow = heads * latent.v_head_dim;
        let given = [wide, wide, narrow].map(|columns| self.tape.allocate("latent operand", n * columns * w));
        let output = self.core(given, heads, [wide, wide, narrow, narrow]);
        self.linear(output);
    }
}
