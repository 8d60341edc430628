//! The transformer's shape, in Megatron's words.

use crate::layers::{FeedForward, LayerKind, Mixer, Mixers};
use crate::norm_weights::NormWeights;
use crate::vision::VisionTower;

/// A decoder-only transformer. All sizes are of the whole, unsharded model.
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
    /// Width of one head.
    pub kv_channels: u64,
    /// Tokens of one sample.
    pub seq_length: u64,
    /// Rows of a learned position table.
    pub max_position_embeddings: u64,
    /// Rows of the embedding after padding to `make_vocab_size_divisible_by * tp`.
    pub padded_vocab_size: u64,
    /// What it was padded from; none where the padded size itself is stated.
    pub vocab_padding: Option<VocabPadding>,
    /// The MLP's activation function.
    pub activation: Activation,
    /// Which norm.
    pub normalization: Normalization,
    /// Which position embedding.
    pub position_embedding: PositionEmbedding,
    /// Which linear layers have a bias.
    pub linear_bias: LinearBias,
    /// Norms on queries and keys (`--qk-layernorm`).
    pub qk_layernorm: bool,
    /// Whether the output layer shares the word embedding.
    pub embeddings: Embeddings,
    /// `--softmax-type`.
    pub attention_softmax: AttentionSoftmax,
    /// Multi-latent attention, when used.
    pub latent: Option<LatentAttention>,
    /// Mixture of experts, when used.
    pub experts: Option<Experts>,
    /// What mixes tokens in each layer.
    pub mixers: Mixers,
    /// Multi-token-prediction depths (`--mtp-num-layers`).
    pub mtp_num_layers: u64,
    /// How the modules of a layer are arranged.
    pub arrangement: Arrangement,
    /// The vision tower beside it, when there is one.
    pub vision: Option<VisionTower>,
}

/// How the modules of a layer are arranged where that is not as in Llama. Megatron has an arrangement of its own;
/// these matter to software that runs a model's published modules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrangement {
    /// One projection for queries, keys and values (Phi-3, GPT-NeoX).
    pub fused_qkv: bool,
    /// One projection for both halves of a gated MLP (Phi-3).
    pub fused_gate_up: bool,
    /// Attention and MLP read the same residual stream and are added together (GPT-NeoX).
    pub parallel_residual: bool,
    /// Where the norms of a layer stand.
    pub norm_places: NormPlaces,
    /// In what a norm multiplies by its weight.
    pub norm_product: NormProduct,
    /// Norms of queries and keys that are over all heads together (`OLMo` 2).
    pub norms_over_heads: bool,
    /// Cosines and sines of the rotation that stay in fp32 (`OLMo` 2).
    pub fp32_rotation: bool,
    /// Scores through a tanh (Gemma 2).
    pub attention_softcap: bool,
    /// Logits through a tanh (Gemma 2).
    pub final_softcap: bool,
    /// Routing weights summed to one in fp32 (Mixtral, Qwen3).
    pub normalized_routing: bool,
    /// Routing weights that stay in fp32 (Mixtral).
    pub fp32_routing: bool,
    /// Part of a head that is rotated.
    pub rotary_percent: f64,
    /// Attention and MLP stand side by side behind one norm, whose output both read (Phi, Cohere).
    pub single_norm: bool,
    /// How often cosines and sines are there.
    pub rotation_tables: RotationTables,
    /// The operations that an MLP's activation is made of.
    pub activation_steps: ActivationSteps,
    /// Routing weights are a softmax over the chosen experts alone (gpt-oss, Granite MoE).
    pub chosen_routing: bool,
    /// Experts have biases, and clamp both halves in front of the activation (gpt-oss).
    pub clamped_experts: bool,
    /// Eager attention takes its softmax in the scores' type (GPT-2).
    pub typed_softmax: bool,
    /// The output layer has a bias (Phi).
    pub head_bias: bool,
    /// Where dropout stands while the model trains.
    pub dropout: Dropout,
    /// Which norms have weights, and biases beside them (OLMo).
    pub norm_weights: NormWeights,
    /// Queries, keys and values are clamped behind their projection, which is kept as it was for their gradient (OLMo's
    /// `clip_qkv`).
    pub clipped_queries: bool,
}

/// Where dropout stands in a model's own modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropout {
    /// Behind the attention probabilities.
    pub attention: bool,
    /// Behind attention and behind the MLP, in front of the residual stream.
    pub residual: bool,
    /// Behind the embedding.
    pub embedding: bool,
}

/// How often the cosines and sines of the rotation are there, and how wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationTables {
    /// Once for all layers, a column for each rotated one of a head.
    Shared,
    /// Once for all layers, a column for two (gpt-oss).
    Half,
    /// Each layer repeats them for pairs of columns (GLM).
    Layer,
    /// The same in fp32 (ERNIE 4.5).
    Fp32Layer,
}

/// The operations that an activation is made of, where that is not one kernel which keeps its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationSteps {
    /// One kernel.
    Kernel,
    /// `NewGELUActivation`: a cube, a tanh and three products, each an operation of its own (GPT-2, Phi).
    NewGelu,
    /// A rectifier, whose output tells its gradient (OPT).
    Relu,
}

/// Where the norms of a layer stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlaces {
    /// In front of attention and of the MLP.
    InFront,
    /// In front of and behind both (Gemma 2).
    Around,
    /// Behind both, which read the residual stream itself (`OLMo` 2).
    Behind,
}

/// In what an RMS norm of a model's own modules multiplies by its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormProduct {
    /// In the stream's type: what was normalised is rounded first (Llama).
    Rounded,
    /// In fp32, and the product is rounded (`OLMo` 2, gpt-oss).
    Wide,
    /// In fp32, the mean taken off in operations of their own (Cohere).
    Centred,
    /// In fp32 by one plus the weight, which is held around zero (Gemma, Qwen3-Next).
    PlusOne,
}

impl Default for Arrangement {
    fn default() -> Self {
        Self {
            fused_qkv: false,
            fused_gate_up: false,
            parallel_residual: false,
            norm_places: NormPlaces::InFront,
            norm_product: NormProduct::Rounded,
            norms_over_heads: false,
            fp32_rotation: false,
            attention_softcap: false,
            final_softcap: false,
            normalized_routing: false,
            fp32_routing: false,
            rotary_percent: 1.0,
            single_norm: false,
            rotation_tables: RotationTables::Shared,
            activation_steps: ActivationSteps::Kernel,
            chosen_routing: false,
            clamped_experts: false,
            typed_softmax: false,
            head_bias: false,
            dropout: Dropout::default(),
            norm_weights: NormWeights::default(),
            clipped_queries: false,
        }
    }
}

impl Model {
    /// The kind of layer `index` (from 0).
    #[must_use]
    pub fn layer_kind(&self, index: u64) -> LayerKind {
        let mixer = self.mixers.of(index);
        let feed_forward = match &self.experts {
            _ if self.mixers.single_block && mixer != Mixer::None => FeedForward::None,
            Some(experts) if experts.is_moe_layer(index) => FeedForward::Moe,
            _ => FeedForward::Dense,
        };
        LayerKind { mixer, feed_forward }
    }

    /// Tells `each` the kinds of `layers` in order, with how many there are of one at a stretch.
    pub fn layer_kinds(&self, layers: std::ops::Range<u64>, mut each: impl FnMut(LayerKind, u64)) {
        if self.mixers.pattern.is_empty() && self.experts.is_none() {
            // All alike, as most models are: search asks this of hundreds of thousands of stages a second.
            return each(self.layer_kind(layers.start), layers.end.saturating_sub(layers.start));
        }
        for index in layers {
            each(self.layer_kind(index), 1);
        }
    }

    /// Whether layers of `one` and of `other` are of the same kinds in the same order, as far as both go.
    #[must_use]
    pub fn are_alike(&self, one: &std::ops::Range<u64>, other: &std::ops::Range<u64>) -> bool {
        let all_alike = self.mixers.pattern.is_empty() && self.experts.is_none();
        let mut pairs = one.clone().zip(other.clone());
        all_alike || pairs.all(|(one, other)| self.layer_kind(one) == self.layer_kind(other))
    }

    /// How many of the layers `asked` says yes to.
    #[must_use]
    pub fn count_layers(&self, asked: impl Fn(LayerKind) -> bool) -> u64 {
        (0..self.num_layers).map(|index| u64::from(asked(self.layer_kind(index)))).sum()
    }

    /// How many of the layers are MoE layers.
    #[must_use]
    pub fn moe_layers(&self) -> u64 {
        self.count_layers(|kind| kind.feed_forward == FeedForward::Moe)
    }

    /// Whether a layer has attention.
    #[must_use]
    pub fn attends(&self) -> bool {
        self.count_layers(|kind| kind.mixer.attends()) > 0
    }

    /// 2 when the MLP is gated (two input projections fused in one), else 1.
    #[must_use]
    pub fn gate_factor(&self) -> u64 {
        if self.activation.is_gated() { 2 } else { 1 }
    }

    /// Query heads per key/value head.
    #[must_use]
    pub fn heads_per_group(&self) -> u64 {
        self.num_attention_heads / self.num_query_groups.max(1)
    }
}

/// A vocabulary as its tokenizer has it, and the rule of its padding (`megatron/training/vocab_utils.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VocabPadding {
    /// Tokens of the tokenizer.
    pub size: u64,
    /// `--make-vocab-size-divisible-by`: rows come to a multiple of this times the tensor parallel size.
    pub multiple: u64,
}

impl VocabPadding {
    /// Rows of the embedding under tensor parallel size `tensor`.
    #[must_use]
    pub fn padded(self, tensor: u64) -> u64 {
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
    /// None (ALiBi counts here: no parameters, no kept tensors).
    None,
}

/// Biases of linear layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearBias {
    /// Every linear layer of the layers (Megatron's default).
    All,
    /// `--disable-bias-linear --add-qkv-bias`: the QKV projection alone.
    QkvOnly,
    /// `--disable-bias-linear`.
    None,
}

/// Whether input and output embedding are one.
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
    /// `--q-lora-rank`; none: queries come from the residual stream directly.
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
    /// Per layer from 0, whether it is an MoE layer (`--moe-layer-freq`, resolved).
    pub pattern: Vec<bool>,
    /// `--moe-shared-expert-intermediate-size`.
    pub shared_expert_intermediate_size: Option<u64>,
    /// `--moe-shared-expert-gate`.
    pub shared_expert_gate: bool,
    /// `--moe-latent-size`: experts work in a narrower space.
    pub latent_size: Option<u64>,
    /// Experts that one token may be sent to together.
    pub groups: Option<ExpertGroups>,
}

/// Group-limited routing: experts stand in equal groups, neighbours together, and a token takes its experts from a few of them,
/// so that it visits few nodes (DeepSeek-V2, section 2.1.3; DeepSeek-V3, section 2.1.2).
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
        usize::try_from(index).ok().and_then(|index| self.pattern.get(index)).copied().unwrap_or(false)
    }
}
