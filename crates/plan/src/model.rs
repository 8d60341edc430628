//! The transformer's shape, in Megatron's words.

use crate::arrangement::Arrangement;
use crate::encoder::Encoder;
use crate::layers::{FeedForward, LayerKind, Mixer, Mixers};
use crate::vision::VisionTower;

/// A decoder, alone or behind an encoder. All sizes are of the whole, unsharded model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Transformer layers, MTP layers not counted.
    pub num_layers: u64,
    /// Width of the residual stream.
    pub hidden_size: u64,
    /// Inner width of a dense MLP (one half of a gated pair).
    pub ffn_hidden_size: u64,
    /// Query heads.
    pub num_attention_heads: u64,
    /// Key/value heads; equals `num_attention_heads` without grouping.
    pub num_query_groups: u64,
    /// Width of one head; with multi-latent attention its heads have widths of their own ([`LatentAttention`]).
    pub kv_channels: u64,
    /// Sequence length, in tokens; of an encoder-decoder, the decoder's.
    pub seq_length: u64,
    /// Longest sequence that has positions, in tokens: the rows of a learned position table.
    pub max_position_embeddings: u64,
    /// Rows of the embedding after padding to `make_vocab_size_divisible_by * tp`.
    pub padded_vocab_size: u64,
    /// What it was padded from; `None` if the padded size itself is stated.
    pub vocab_padding: Option<VocabPadding>,
    /// The MLP's activation function.
    pub activation: Activation,
    /// Which norm precedes attention and MLP, and ends the model.
    pub normalization: Normalization,
    /// Which position embedding.
    pub position_embedding: PositionEmbedding,
    /// Which linear layers of a layer have a bias.
    pub linear_bias: LinearBias,
    /// Norms on queries and keys (`--qk-layernorm`).
    pub qk_layernorm: bool,
    /// Whether the output layer shares the word embedding.
    pub embeddings: Embeddings,
    /// `--softmax-type`.
    pub attention_softmax: AttentionSoftmax,
    /// Sizes of multi-latent attention; none with ordinary attention.
    pub latent: Option<LatentAttention>,
    /// The routed experts; none in a dense model.
    pub experts: Option<Experts>,
    /// What mixes tokens in each layer.
    pub mixers: Mixers,
    /// Multi-token-prediction depths (`--mtp-num-layers`).
    pub mtp_num_layers: u64,
    /// How the modules of a layer are arranged.
    pub arrangement: Arrangement,
    /// The vision tower attached to the decoder; `None` in a text-only model.
    pub vision: Option<VisionTower>,
    /// The encoder in front of the decoder; `None` in a decoder-only model.
    pub encoder: Option<Encoder>,
}

impl Model {
    /// What tokens are counted by rates and lengths: of an encoder-decoder, the decoder's alone.
    #[must_use]
    pub const fn counted_tokens(&self) -> &'static str {
        if self.encoder.is_some() { "target tokens" } else { "tokens" }
    }

    /// The kind of layer `index` (from 0).
    #[must_use]
    pub fn layer_kind(&self, index: u64) -> LayerKind {
        let mixer = self.mixers.at(index);
        let feed_forward = match &self.experts {
            // Nemotron-H's layers are single blocks: a layer with a mixer has no MLP, whatever the list of experts
            // says.
            _ if self.mixers.single_block && mixer != Mixer::None => FeedForward::None,
            Some(experts) if experts.is_moe_layer(index) => FeedForward::Moe,
            _ => FeedForward::Dense,
        };
        LayerKind { mixer, feed_forward }
    }

    /// Calls `each` with the kinds of `layers` in order, and the length of each run of equal kinds.
    pub fn layer_kinds(&self, layers: std::ops::Range<u64>, mut each: impl FnMut(LayerKind, u64)) {
        if self.mixers.pattern.is_empty() && self.experts.is_none() {
            // All alike, as in most models: search asks this of hundreds of thousands of stages a second.
            return each(self.layer_kind(layers.start), layers.end.saturating_sub(layers.start));
        }
        for index in layers {
            each(self.layer_kind(index), 1);
        }
    }

    /// Whether layers of `one` and of `other` are of the same kinds in the same order, up to the shorter one's end.
    #[must_use]
    pub fn are_alike(&self, one: &std::ops::Range<u64>, other: &std::ops::Range<u64>) -> bool {
        // As in `layer_kinds`: layers can differ only in their mixer and in their experts.
        let all_alike = self.mixers.pattern.is_empty() && self.experts.is_none();
        let mut pairs = one.clone().zip(other.clone());
        all_alike || pairs.all(|(one, other)| self.layer_kind(one) == self.layer_kind(other))
    }

    /// How many of the layers satisfy `asked`.
    #[must_use]
    pub fn count_layers(&self, asked: impl Fn(LayerKind) -> bool) -> u64 {
        let mut sum = 0;
        self.layer_kinds(0..self.num_layers, |kind, layers| sum += if asked(kind) { layers } else { 0 });
        sum
    }

    /// How many of the layers are MoE layers.
    #[must_use]
    pub fn moe_layers(&self) -> u64 {
        self.count_layers(|kind| kind.feed_forward.is_routed())
    }

    /// Whether a layer has attention.
    #[must_use]
    pub fn attends(&self) -> bool {
        self.count_layers(|kind| kind.mixer.attends()) > 0
    }

    /// 2 when the MLP is gated (two input projections fused into one), else 1.
    #[must_use]
    pub fn gate_factor(&self) -> u64 {
        if self.activation.is_gated() { 2 } else { 1 }
    }

    /// Query heads per key/value head.
    #[must_use]
    pub fn heads_per_group(&self) -> u64 {
        // A model is made before its plan is checked, so there may be no groups yet.
        self.num_attention_heads / self.num_query_groups.max(1)
    }
}

/// A tokenizer's vocabulary and its padding rule (`megatron/training/vocab_utils.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VocabPadding {
    /// Tokens of the tokenizer.
    pub size: u64,
    /// `--make-vocab-size-divisible-by`: rows are padded to a multiple of this times the tensor parallel size.
    pub multiple: u64,
}

impl VocabPadding {
    /// Rows of the embedding under tensor parallel size `tensor`.
    #[must_use]
    pub fn padded(self, tensor: u64) -> u64 {
        // Equal rows for every tensor rank, each a multiple that suits the GEMM (`vocab_utils.py:calculate_padded_vocab_size`).
        self.size.next_multiple_of(shardscope_units::product(self.multiple, tensor).max(1))
    }
}

/// The MLP's activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// GELU, the default.
    Gelu,
    /// `--swiglu`: gated SiLU.
    Swiglu,
    /// `--quick-geglu` and other gated GELUs.
    Geglu,
    /// `--squared-relu`.
    SquaredRelu,
}

impl Activation {
    /// Whether the first projection is twice as wide.
    #[must_use]
    pub fn is_gated(self) -> bool {
        matches!(self, Self::Swiglu | Self::Geglu)
    }
}

/// `--normalization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalization {
    /// Weight and bias.
    LayerNorm,
    /// Weight only.
    RmsNorm,
}

/// `--position-embedding-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionEmbedding {
    /// A learned table `[max_position_embeddings, hidden]` on the first stage.
    LearnedAbsolute,
    /// Rotary (rope, mrope, yarn): no parameters.
    Rope,
    /// None (ALiBi counts here: no parameters, no saved tensors).
    None,
}

/// Biases of linear layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearBias {
    /// Every linear layer in the transformer layers (Megatron's default).
    All,
    /// `--disable-bias-linear --add-qkv-bias`: only the QKV projection.
    QkvOnly,
    /// `--disable-bias-linear`.
    None,
}

/// Whether input and output embedding are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embeddings {
    /// Shared (Megatron's default).
    Tied,
    /// `--untie-embeddings-and-output-weights`.
    Untied,
}

/// `--softmax-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionSoftmax {
    /// Plain.
    Vanilla,
    /// A constant one in the denominator: no parameter.
    OffByOne,
    /// One learned sink per query head.
    Learnable,
}

/// Multi-latent attention (DeepSeek-V2, section 2.1; Megatron `multi_latent_attention.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentAttention {
    /// `--q-lora-rank`; `None` if queries come from the residual stream directly.
    pub q_lora_rank: Option<u64>,
    /// `--kv-lora-rank`.
    pub kv_lora_rank: u64,
    /// `--qk-head-dim`: the part of a head without rotation.
    pub qk_head_dim: u64,
    /// `--qk-pos-emb-head-dim`: the rotated part.
    pub qk_pos_emb_head_dim: u64,
    /// `--v-head-dim`.
    pub v_head_dim: u64,
}

impl LatentAttention {
    /// Width of a query or key head.
    #[must_use]
    pub fn query_width(&self) -> u64 {
        self.qk_head_dim + self.qk_pos_emb_head_dim
    }
}

/// The routed part of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Experts {
    /// `--num-experts`.
    pub num_experts: u64,
    /// `--moe-router-topk`.
    pub router_topk: u64,
    /// `--moe-ffn-hidden-size`.
    pub ffn_hidden_size: u64,
    /// For each layer from 0, whether it is an MoE layer (`--moe-layer-freq`, resolved).
    pub pattern: Vec<bool>,
    /// `--moe-shared-expert-intermediate-size`.
    pub shared_expert_intermediate_size: Option<u64>,
    /// `--moe-shared-expert-gate`.
    pub shared_expert_gate: bool,
    /// `--moe-latent-size`: experts work in a narrower space.
    pub latent_size: Option<u64>,
    /// Restriction on which experts one token may be sent to together.
    pub groups: Option<ExpertGroups>,
}

/// Group-limited routing: experts form equal groups of consecutive experts, and a token chooses its experts from a
/// few of these groups, so that it visits few nodes (DeepSeek-V2, section 2.1.3; DeepSeek-V3, section 2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertGroups {
    /// `--moe-router-num-groups`.
    pub count: u64,
    /// `--moe-router-group-topk`.
    pub chosen: u64,
}

impl Experts {
    /// Whether layer `index` (from 0) is an MoE layer.
    #[must_use]
    pub fn is_moe_layer(&self, index: u64) -> bool {
        // A rule refuses a pattern of the wrong length; in a model queried before that check, layers beyond the
        // pattern are dense.
        usize::try_from(index).ok().and_then(|index| self.pattern.get(index)).copied().unwrap_or(false)
    }
}
