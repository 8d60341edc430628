//! The sizes of layers of other kinds than the usual one.

use super::{Symbols, qkv_width};
use crate::Operator;
use crate::sizes::{ExpertSizes, LinearSizes};
use shardscope_plan::TowerGradients;

impl Symbols<'_> {
    /// Tokens of the encoder's sequence; 0 without an encoder.
    #[must_use]
    pub fn source(&self) -> u64 {
        self.model().encoder.map_or(0, |encoder| encoder.seq_length)
    }

    /// Width of the vision tower's residual stream; 0 without one.
    #[must_use]
    pub fn vision_width(&self) -> u64 {
        self.model().vision.map_or(0, |tower| tower.hidden_size)
    }

    /// Which parts of a vision tower have gradients.
    #[must_use]
    pub fn tower_gradients(&self) -> TowerGradients {
        self.model().vision.map_or(TowerGradients::None, |tower| tower.gradients)
    }

    /// Tokens of a micro-batch without context or sequence parallelism: seq · b.
    #[must_use]
    pub fn full_tokens(&self) -> u64 {
        self.sequence * self.b
    }

    /// The sizes of the same model if a single rank holds all of it; the plan's other choices are unchanged.
    #[must_use]
    pub fn unsharded(mut self) -> Self {
        let model = self.plan.model();
        self.s = model.seq_length;
        self.n = self.s * self.b;
        self.s_local = self.n;
        self.t = 1;
        self.a = model.num_attention_heads;
        self.k = self.groups;
        self.f = self.ffn;
        self.v = model.padded_vocab_size;
        self.qkv = qkv_width(model, 1);
        self.moe = ExpertSizes::unsharded(self.plan);
        self.linear = LinearSizes::new(model, 1);
        self.sequence_parallel = false;
        self.context = 1;
        self
    }

    /// The same in a layer that attends to a window of the sequence.
    #[must_use]
    pub fn windowed(mut self) -> Self {
        self.in_window = true;
        self.window = self.model().mixers.window.filter(|window| window.tokens <= self.model().seq_length);
        self
    }

    /// The same in a layer that attends to the whole sequence, whose heads may differ from those of windowed layers.
    #[must_use]
    pub fn whole(mut self) -> Self {
        let model = self.model();
        // What is already sized for a windowed layer stays so: its parts ask for self-attention's as well.
        if let Some(full) = model.mixers.full.filter(|_| !self.in_window) {
            self.groups = full.groups;
            self.k = (full.groups / self.t).max(1);
            self.d = full.width;
            self.pair = if full.keys_as_values { 1 } else { 2 };
            self.rotated = full.width;
            self.qkv = (self.a + self.pair * self.k) * self.d;
        }
        self
    }

    /// Whether batches that say which tokens are of an image give attention to the whole sequence a mask. Processors say it of samples
    /// without images as well; a run that is known to have none passes none
    /// (`transformers/models/gemma3/modeling_gemma3.py:create_masks_for_vision_model`; Gemma 4's leaves that attention causal).
    pub(crate) fn masks_images(&self) -> bool {
        let model = self.model();
        model.arrangement.image_masks && model.vision.is_some_and(|tower| tower.image_patches != Some(0))
    }

    /// The same where keys and values are an earlier layer's.
    fn borrowed(mut self) -> Self {
        self.borrows = true;
        self.pair = 0;
        self.qkv = self.a * self.d;
        self
    }

    /// The same in the encoder, which has a sequence of its own; in its `first` layer, whose input requires a gradient only if
    /// something before it trains.
    fn encoding(mut self, first: bool) -> Self {
        self.s = self.source();
        (self.sequence, self.keys) = (self.s, self.s);
        self.n = self.s * self.b;
        self.s_local = self.n;
        self.encodes = true;
        if first { self.in_first_trained_layer() } else { self }
    }

    /// The same where a decoder's layer attends to the encoder's output.
    fn crossing(mut self) -> Self {
        self.keys = self.source();
        self.crosses = true;
        // Something before it trains: the layer's own self-attention does.
        self.input_gradient = true;
        self
    }

    /// The same of weights that are in 16 bits beside norms in fp32.
    fn narrow(mut self) -> Self {
        self.width = self.recipe().module_dtype().width();
        self
    }

    /// The same of an MLP twice as wide.
    fn wide(mut self) -> Self {
        self.f *= 2;
        self.ffn *= 2;
        self
    }

    /// The same in a layer of this operator's sizes. Parts of an operator may ask again, by the name of its usual kind.
    #[must_use]
    pub fn of(self, operator: Operator) -> Self {
        if self.sized {
            return self;
        }
        let sized = match operator {
            Operator::SelfAttention => self.whole(),
            Operator::WindowedAttention => self.windowed(),
            Operator::BorrowedAttention => self.whole().borrowed(),
            Operator::BorrowedWindowedAttention => self.windowed().borrowed(),
            Operator::WideMlp => self.wide(),
            Operator::Encoder { first, .. } => self.encoding(first),
            Operator::CrossAttention => self.crossing(),
            Operator::Embedding | Operator::OutputLayer if self.recipe().tuning.narrow_ends => self.narrow(),
            _ => return self,
        };
        Self { sized: true, ..sized }
    }
}
