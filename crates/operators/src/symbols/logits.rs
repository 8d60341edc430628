//! How many rows of logits a loss holds at once.

use super::Symbols;
use shardscope_plan::{
    DataEngine, Fp32Logits, LogProbs, LossKind, NumberFormat, Objective, Quantization, Rollout, RolloutEngine,
};

/// Tokens of a sequence whose logits are taken at once (`litgpt/finetune/lora.py:fit`, `lm_head_chunk_size`).
const ROWS: u64 = 128;

/// Bytes of an fp32 number.
const FP32: u64 = 4;

/// Bytes that unsloth budgets for each logit of a chunk, since 2026.9
/// (`unsloth_zoo/fused_losses/cross_entropy_loss.py: _CE_BYTES_PER_LOGIT`; the logits alone, 4, before).
const CHAIN_BYTES: u64 = 16;

/// Words of a tile of prime-rl's loss (`prime_rl/trainer/models/layers/lm_head.py`, `vocab_chunk_size`).
const TILED_WORDS: u64 = 8192;

/// Tokens and words of a tile of TRL's output layer (`trl/kernels/chunked_logprob.py:TOKEN_CHUNK_SIZE`, `trl/trainer/utils.py:
/// _CHUNKED_LOGPROB_CHUNK_SIZE`).
const FUSED_TOKENS: u64 = 4096;
const FUSED_WORDS: u64 = 32_768;

/// Tokens whose logits verl's fused output layer makes at once
/// (`verl/utils/experimental/torch_functional.py:FusedLinearForPPO`, `chunk_size`).
const POLICY_ROWS: u64 = 512;

/// Words whose logits' gradients verl's kernels make at once, and those whose softmax they add up at once
/// (`verl/utils/kernel/kernels.py:efficient_entropy_backward, efficient_entropy_forward`, `vocab_per_split`).
const KERNEL_WORDS: u64 = 9504;
const KERNEL_STRETCH: u64 = 1024;

/// unsloth's tiles of logits for log-probabilities (`unsloth_zoo/fused_losses/fused_linear.py`): tokens and words of
/// a tile, the device size up to which tiles are always used, the number of tokens from which they are used on larger
/// devices, and the minimum logits of a chunk over the full vocabulary.
const SAMPLED_TOKENS: u64 = 4096;
const SAMPLED_WORDS: u64 = 16_384;
const SMALL_CARD: u64 = 49 << 29;
const SAMPLED_LOGITS: u64 = 512 * 151_936;
const SAMPLED_ROWS: u64 = 512;
/// Maximum bytes of logits in such a chunk (`_budget_bytes`), and the number of word tiles that a vocabulary must
/// exceed (`_tiled_vocab`).
const SAMPLED_BUDGET: u64 = 2 << 30;
const FEWEST_TILES: u64 = 2;

impl Symbols<'_> {
    /// Whether the loss is made of log-probabilities of given tokens: a policy's, or a supervised one of a trainer that has a policy's
    /// functions (verl's over engines).
    #[must_use]
    pub fn takes_log_probs(&self) -> bool {
        let objective = self.recipe().tuning.objective;
        let supervised = objective == Objective::NextToken && self.recipe().loss == LossKind::InPlaceLogits;
        supervised || objective == Objective::Policy
    }

    /// Whether every tensor rank gathers the logits of all in fp32, and takes the whole loss of them: PyTorch's cross entropy of what
    /// DTensor cut by words.
    #[must_use]
    pub fn gathers_fp32_logits(&self) -> bool {
        self.t > 1 && self.recipe().transformers.dtensor_plan && self.recipe().loss == LossKind::Torch
    }

    /// Sampled tokens of a sequence, of a length that a policy trains on.
    #[must_use]
    pub fn sampled_tokens(&self) -> u64 {
        let behind = self.s.saturating_sub(1);
        let response = self.recipe().rollout.map_or(0, |rollout| rollout.response);
        if response == 0 { behind } else { response.min(behind) }
    }

    /// Whether the output layer makes the logits of the positions that sample the responses alone (`logits_to_keep` of TRL's GRPO and
    /// RLOO since 0.14, and of ms-swift's GRPO).
    #[must_use]
    pub fn cuts_logits(&self) -> bool {
        let recipe = self.recipe();
        // Programs that generate from images by themselves may be made of R1-V's, which takes the logits of all tokens.
        let own = |rollout: &Rollout| {
            rollout.engine == RolloutEngine::Transformers && self.model().vision.is_some()
        };
        let cuts =
            |rollout: Rollout| rollout.framework.cuts_logits() && rollout.response > 0 && !own(&rollout);
        recipe.tuning.objective == Objective::Policy
            && recipe.loss == LossKind::Torch
            && recipe.rollout.is_some_and(cuts)
    }

    /// Rows of logits that the output layer makes of a micro-batch: of every token, or of the responses' positions and, where a
    /// model makes them, of the last token.
    #[must_use]
    pub fn logit_rows(&self) -> u64 {
        if self.cuts_logits() { self.b * (self.sampled_tokens() + 1) } else { self.n }
    }

    /// Whether a policy's log-probabilities are taken of the responses' logits alone before it trains, and their entropy with them.
    #[must_use]
    pub fn scores_entropy(&self) -> bool {
        let cuts = self.recipe().software.semantics().cuts_models;
        let framework = self.recipe().rollout.map(|rollout| rollout.framework.semantics(cuts));
        self.cuts_responses() && framework.is_some_and(|semantics| semantics.scores_entropy)
    }

    /// Whether log-probabilities are taken of the logits of the responses' positions alone.
    #[must_use]
    pub fn cuts_responses(&self) -> bool {
        self.log_probs() == LogProbs::Responses
    }

    /// Whether log-probabilities come of last hidden states by unsloth's function, which has logits of a tile at a time.
    #[must_use]
    pub fn scores_states(&self) -> bool {
        let compares = self.recipe().tuning.objective.reference().is_some();
        self.log_probs() == LogProbs::FusedHead
            || compares && self.recipe().transformers.preference_logits.of_states()
    }

    /// Bytes of an element of the gradient that unsloth's log-probabilities save: fp16 would underflow.
    #[must_use]
    pub fn sampled_width(&self) -> u64 {
        let half = self.recipe().transformers.autocast.unwrap_or(self.recipe().params_dtype);
        if half == NumberFormat::Fp16 { FP32 } else { self.compute_width }
    }

    /// Whether unsloth computes the log-probabilities of sampled tokens in tiles over the vocabulary, rather than
    /// over the full vocabulary for some tokens.
    fn tiles_sampled(&self) -> bool {
        if self.v.div_ceil(SAMPLED_WORDS) <= FEWEST_TILES {
            return false;
        }
        let small = self.plan.cluster().accelerator.memory.get() <= SMALL_CARD;
        small || self.b * self.sampled_tokens() >= SAMPLED_TOKENS
    }

    /// Outputs of a head in place of the output layer; `None` if the output layer is present.
    #[must_use]
    pub fn labels(&self) -> Option<u64> {
        self.recipe().tuning.objective.labels()
    }

    /// Bytes of an element of the logits that a loss outside of the model is computed from.
    #[must_use]
    pub fn logits_width(&self) -> u64 {
        let transformers = &self.recipe().transformers;
        let wrapped = matches!(transformers.engine, DataEngine::Ddp | DataEngine::Fsdp1);
        let hands_on = self.recipe().software.semantics().modules.hands_on_fp32;
        if hands_on && wrapped && transformers.autocast.is_some() { FP32 } else { self.compute_width }
    }

    /// Layers with routed experts.
    #[must_use]
    pub fn router_layers(&self) -> u64 {
        self.model().moe_layers()
    }

    /// Bytes of an element of a router's logits as a model hands them on to its balancing loss.
    #[must_use]
    pub fn router_logits_width(&self) -> u64 {
        if self.model().arrangement.has_fp32_router_logits() { FP32 } else { self.compute_width }
    }

    /// Bytes of an element of their softmax: autocast computes it in fp32 wherever accelerate enters it, which it does not
    /// under DeepSpeed (`accelerate/accelerator.py:native_amp`).
    #[must_use]
    pub fn router_softmax_width(&self) -> u64 {
        let transformers = &self.recipe().transformers;
        let wide = transformers.autocast.is_some() && transformers.engine != DataEngine::DeepSpeed;
        if wide { FP32 } else { self.router_logits_width() }
    }

    /// Rows whose logits a loss fused with the output layer holds at once (`chunk_size` of Liger's
    /// `fused_linear_cross_entropy_forward`), or those of one part of a chunked loss.
    #[must_use]
    pub fn chunk_rows(&self) -> u64 {
        if matches!(self.recipe().loss, LossKind::ChunkedLogits | LossKind::ChunkedLinear) {
            return self.n.div_ceil(self.recipe().software.semantics().modules.loss_chunks.max(1));
        }
        if let Some(rows) = self.log_prob_rows() {
            return rows;
        }
        if self.scores_states() {
            let all = self.b * self.sampled_tokens();
            // As many as Liger uses: a power of two within bounds.
            let least = power_below(SAMPLED_LOGITS / self.v.max(1)).clamp(SAMPLED_ROWS, SAMPLED_TOKENS);
            let rows = power_below(all * self.h / self.v.max(1)).max(least);
            let room = (SAMPLED_BUDGET / (FP32 * self.v.max(1))).max(2);
            return all.min(if self.tiles_sampled() {
                SAMPLED_TOKENS
            } else {
                rows.min(SAMPLED_TOKENS).min(room)
            });
        }
        if self.recipe().loss == LossKind::ChunkedRows {
            // With adapters, per sequence; otherwise for the batch.
            let sequences = if self.recipe().tuning.lora.is_some() { self.b } else { 1 };
            return self.n.min(ROWS * sequences);
        }
        if let Some(most) = self.recipe().software.semantics().modules.logits_chunk {
            let most = most.min(self.free_for_logits());
            let tuning = &self.recipe().tuning;
            let trains = if self.tied() { tuning.embedding } else { tuning.head };
            // Memory that chunking does not reduce is subtracted from the budget, unless it exceeds it.
            let heads = if trains { 2 * self.v * self.h } else { 0 };
            let fixed = (self.n * self.h + heads) * self.width;
            let room = if fixed < most { most - fixed } else { most };
            let wanted = self.n * self.v * CHAIN_BYTES;
            return self.n.div_ceil(if wanted > room { 4 * wanted.div_ceil(4 * room) } else { 1 });
        }
        let parts = self.v.div_ceil(self.h.max(1)).max(1);
        self.n.div_ceil(parts).next_power_of_two().min(self.n)
    }

    /// Half of the device memory that a frozen model leaves free, which unsloth queries from the driver at the first
    /// loss. Only the weights are subtracted, so the chunk is estimated too large rather than too small.
    fn free_for_logits(&self) -> u64 {
        let model = self.plan.model();
        let matrices =
            model.num_layers * self.h * (2 * (self.a + self.k) * self.d + (1 + self.gate) * self.f);
        let linear = match self.recipe().tuning.quantization {
            Quantization::FourBit { .. } => matrices / 2,
            _ => matrices * self.width,
        };
        let tables = if self.tied() { 1 } else { 2 } * self.v * self.h * self.width;
        let device = self.plan.cluster().accelerator.memory.get();
        (device.saturating_sub(linear + tables) / 2).max(1)
    }

    /// The most rows of logits that a policy's loss makes at once, whatever the number of tokens.
    #[must_use]
    pub fn log_prob_chunk(&self) -> u64 {
        if self.recipe().loss == LossKind::PolicyRows { POLICY_ROWS } else { u64::MAX }
    }

    /// Rows of logits whose log-probabilities are computed at once; `None` if they are computed for all.
    fn log_prob_rows(&self) -> Option<u64> {
        match self.recipe().loss {
            LossKind::DistributedChunks(tokens) | LossKind::DistributedWideChunks(tokens) => {
                Some(self.n.min(tokens * self.b))
            }
            LossKind::Tiled(tokens) => Some(self.n.min(tokens)),
            LossKind::PolicyRows => Some(self.n.min(POLICY_ROWS)),
            LossKind::FusedTiles => Some((self.b * self.sampled_tokens()).min(FUSED_TOKENS)),
            _ => None,
        }
    }

    /// Stretches of words that verl's kernels add a rank's softmax up by.
    #[must_use]
    pub const fn kernel_parts(&self) -> u64 {
        self.v.div_ceil(KERNEL_STRETCH)
    }

    /// fp32 numbers that they hold of a token for each such stretch: its greatest logit, sum of exponentials and entropy's sum;
    /// over tensor ranks also the greatest logit as it was.
    #[must_use]
    pub const fn kernel_partial(&self) -> u64 {
        if self.t > 1 { 4 } else { 3 }
    }

    /// fp32 numbers that their forward holds of a token: its log-probability, its entropy, three of the whole softmax, and those
    /// of each stretch.
    #[must_use]
    pub const fn kernel_numbers(&self) -> u64 {
        5 + self.kernel_partial() * self.kernel_parts()
    }

    /// What a framework of reinforcement learning does with logits over tensor ranks before its loss.
    fn fp32_logits(&self) -> Fp32Logits {
        let recipe = self.recipe();
        let own = recipe.software.semantics().cuts_models && recipe.loss == LossKind::Unfused;
        let of = |rollout: Rollout| rollout.framework.fp32_logits();
        recipe.rollout.filter(|_| own).map_or(Fp32Logits::OwnLoss, of)
    }

    /// Whether a policy's logits over tensor ranks go through a processor of the framework's before its loss.
    #[must_use]
    pub fn processes_logits(&self) -> bool {
        matches!(self.fp32_logits(), Fp32Logits::Divided | Fp32Logits::DividedAndCopied)
    }

    /// Whether the logits in fp32 stay alive beside what the loss makes of them.
    #[must_use]
    pub fn holds_fp32_logits(&self) -> bool {
        matches!(self.fp32_logits(), Fp32Logits::DividedAndCopied | Fp32Logits::Held)
    }

    /// Whether their quotient by a temperature is apart from them.
    #[must_use]
    pub fn scales_logits(&self) -> bool {
        self.fp32_logits() == Fp32Logits::Held
            && self.recipe().rollout.is_some_and(|rollout| rollout.sampling > 0)
    }

    /// Whether it also takes the entropy of a copy, for the loss.
    #[must_use]
    pub fn copies_logits(&self) -> bool {
        self.processes_logits() && self.entropy_in_loss()
    }

    /// Words in the last of the stretches that they make gradients for, if it is not a full one.
    #[must_use]
    pub const fn kernel_rest(&self) -> u64 {
        self.v % KERNEL_WORDS
    }

    /// Words of the vocabulary whose logits a tiled loss holds at once.
    #[must_use]
    pub fn tile_words(&self) -> u64 {
        if self.scores_states() {
            let words = if self.tiles_sampled() { self.v.min(SAMPLED_WORDS) } else { self.v };
            return words.next_multiple_of(8);
        }
        if self.recipe().loss == LossKind::PolicyKernel {
            return KERNEL_WORDS;
        }
        // A tile has the same width for any vocabulary.
        if self.recipe().loss == LossKind::FusedTiles {
            return FUSED_WORDS;
        }
        self.v.min(TILED_WORDS)
    }

    /// Words in this many tiles, but no more than the vocabulary has.
    #[must_use]
    pub fn cast_words(&self, tiles: u64) -> u64 {
        self.v.min(tiles * self.tile_words())
    }

    /// Chunks whose log-probabilities are computed one after the other.
    #[must_use]
    pub fn log_prob_chunks(&self) -> u64 {
        self.log_prob_rows().map_or(1, |rows| self.n.div_ceil(rows.max(1)))
    }

    /// Chunks of rows over which a loss is computed.
    #[must_use]
    pub fn loss_chunks(&self) -> u64 {
        let moved = self.recipe().software.semantics().modules.labels_come_moved;
        let behind = if moved { self.s } else { self.s.saturating_sub(1) };
        let rows = if self.recipe().tuning.lora.is_some() { self.s } else { self.b * behind };
        rows.div_ceil(ROWS)
    }
}

/// The largest power of two not above `number`; 1 for 0.
fn power_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}
