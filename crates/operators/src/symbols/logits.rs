//! How many rows of logits a loss has alive at once.

use super::Symbols;
use shardscope_plan::{DataEngine, LogProbs, LossKind, NumberFormat, Quantization};

/// Tokens of a sequence whose logits are taken at once (`litgpt/finetune/lora.py:fit`, `lm_head_chunk_size`).
const ROWS: u64 = 128;

/// Bytes of an fp32 number.
const FP32: u64 = 4;

/// Bytes that unsloth reckons with for each logit of a chunk, since 2026.9 (`unsloth_zoo/fused_losses/cross_entropy_loss.py:
/// _CE_BYTES_PER_LOGIT`; the logits alone, 4, before).
const CHAIN_BYTES: u64 = 16;

/// Words of a tile of prime-rl's loss (`prime_rl/trainer/models/layers/lm_head.py`, `vocab_chunk_size`).
const TILED_WORDS: u64 = 8192;

/// Tokens and words of a tile of TRL's output layer (`trl/kernels/chunked_logprob.py:TOKEN_CHUNK_SIZE`, `trl/trainer/utils.py:
/// _CHUNKED_LOGPROB_CHUNK_SIZE`).
const FUSED_TOKENS: u64 = 4096;
const FUSED_WORDS: u64 = 32_768;

/// unsloth's tiles of logits for log-probabilities (`unsloth_zoo/fused_losses/fused_linear.py`): tokens and words of one, devices up to
/// which there are always tiles and tokens from which there are on larger ones, and logits that a chunk of all words has at least.
const SAMPLED_TOKENS: u64 = 4096;
const SAMPLED_WORDS: u64 = 16_384;
const SMALL_CARD: u64 = 49 << 29;
const SAMPLED_LOGITS: u64 = 512 * 151_936;
const SAMPLED_ROWS: u64 = 512;
/// Bytes of logits that such a chunk has at most (`_budget_bytes`), and tiles of words that a vocabulary must be more than (`_tiled_vocab`).
const SAMPLED_BUDGET: u64 = 2 << 30;
const FEWEST_TILES: u64 = 2;

impl Symbols<'_> {
    /// Sampled tokens of a sequence, of a length that a policy trains on.
    #[must_use]
    pub fn sampled_tokens(&self) -> u64 {
        let behind = self.s.saturating_sub(1);
        let response = self.recipe().rollout.map_or(0, |rollout| rollout.response);
        if response == 0 { behind } else { response.min(behind) }
    }

    /// Whether log-probabilities come of last hidden states by unsloth's function, which has logits of a tile at a time.
    #[must_use]
    pub fn scores_states(&self) -> bool {
        let compares = self.recipe().tuning.objective.reference().is_some();
        self.log_probs() == LogProbs::FusedHead
            || compares && self.recipe().transformers.preference_logits.of_states()
    }

    /// Bytes of an element of the gradient that unsloth's log-probabilities keep: fp16 would lose what is small.
    #[must_use]
    pub fn sampled_width(&self) -> u64 {
        let half = self.recipe().transformers.autocast.unwrap_or(self.recipe().params_dtype);
        if half == NumberFormat::Fp16 { FP32 } else { self.compute_width }
    }

    /// Whether unsloth goes through tiles of words for the log-probabilities of sampled tokens, and not through all words of some tokens.
    fn tiles_sampled(&self) -> bool {
        if self.v.div_ceil(SAMPLED_WORDS) <= FEWEST_TILES {
            return false;
        }
        let small = self.plan.cluster().accelerator.memory.get() <= SMALL_CARD;
        small || self.b * self.sampled_tokens() >= SAMPLED_TOKENS
    }

    /// Outputs of a head in the place of the output layer; none where that is there.
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

    /// Rows whose logits a loss fused with the output layer has alive at once (`chunk_size` of Liger's
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
            // As many as Liger takes, a power of two, within bounds.
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
            // With adapters of each sequence, else of the batch.
            let sequences = if self.recipe().tuning.lora.is_some() { self.b } else { 1 };
            return self.n.min(ROWS * sequences);
        }
        if let Some(most) = self.recipe().software.semantics().modules.logits_chunk {
            let most = most.min(self.free_for_logits());
            let tuning = &self.recipe().tuning;
            let trains = if self.tied() { tuning.embedding } else { tuning.head };
            // What no chunk makes less shares the room, unless it is more than that.
            let heads = if trains { 2 * self.v * self.h } else { 0 };
            let fixed = (self.n * self.h + heads) * self.width;
            let room = if fixed < most { most - fixed } else { most };
            let wanted = self.n * self.v * CHAIN_BYTES;
            return self.n.div_ceil(if wanted > room { 4 * wanted.div_ceil(4 * room) } else { 1 });
        }
        let parts = self.v.div_ceil(self.h.max(1)).max(1);
        self.n.div_ceil(parts).next_power_of_two().min(self.n)
    }

    /// Half of what a frozen model leaves free of the device, which unsloth asks the driver for at the first loss: of the
    /// weights alone, so that the chunk is taken as rather too large than too small.
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

    /// Rows of logits whose log-probabilities are taken at once; none where they are taken of all.
    fn log_prob_rows(&self) -> Option<u64> {
        match self.recipe().loss {
            LossKind::DistributedChunks(tokens) | LossKind::DistributedWideChunks(tokens) => {
                Some(self.n.min(tokens * self.b))
            }
            LossKind::Tiled(tokens) => Some(self.n.min(tokens)),
            LossKind::FusedTiles => Some((self.b * self.sampled_tokens()).min(FUSED_TOKENS)),
            _ => None,
        }
    }

    /// Words of the vocabulary whose logits a loss in tiles has alive at once.
    #[must_use]
    pub fn tile_words(&self) -> u64 {
        if self.scores_states() {
            let words = if self.tiles_sampled() { self.v.min(SAMPLED_WORDS) } else { self.v };
            return words.next_multiple_of(8);
        }
        // A tile is as wide whatever the vocabulary is.
        if self.recipe().loss == LossKind::FusedTiles {
            return FUSED_WORDS;
        }
        self.v.min(TILED_WORDS)
    }

    /// Words of so many tiles, of which there are no more than the vocabulary has.
    #[must_use]
    pub fn cast_words(&self, tiles: u64) -> u64 {
        self.v.min(tiles * self.tile_words())
    }

    /// Chunks whose log-probabilities are taken one after the other.
    #[must_use]
    pub fn log_prob_chunks(&self) -> u64 {
        self.log_prob_rows().map_or(1, |rows| self.n.div_ceil(rows.max(1)))
    }

    /// Chunks of rows that a loss is taken of.
    #[must_use]
    pub fn loss_chunks(&self) -> u64 {
        let behind = self.s.saturating_sub(1);
        let rows = if self.recipe().tuning.lora.is_some() { self.s } else { self.b * behind };
        rows.div_ceil(ROWS)
    }
}

/// The largest power of two that is no more; 1 of 0.
fn power_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}
