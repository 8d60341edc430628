//! What a model counts and what sizes it has.

/// Parameters by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Word and position embeddings.
    pub embedding: u64,
    /// All layers.
    pub layers: u64,
    /// The norm behind the last layer.
    pub final_norm: u64,
    /// The output layer, where it is not the word embedding.
    pub output_layer: u64,
    /// What stands beside the layers.
    pub other: u64,
}

/// The sizes of a decoder. Sizes that differ between layers are those of the first; see [`Gap::SizesPerLayer`](crate::Gap::SizesPerLayer).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Layers.
    pub layers: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Rows of the word embedding.
    pub vocabulary: u64,
    /// Rows of a learned position table.
    pub positions: u64,
    /// Longest sequence it was made for, where that is stated.
    pub longest: Option<u64>,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub groups: u64,
    /// Width of a query or key head.
    pub head_width: u64,
    /// Inner width of the dense MLP; where there is none, that of an expert.
    pub ffn: u64,
    /// Whether the MLP is gated.
    pub gated: bool,
    /// Its activation function, as the library calls it.
    pub activation: String,
    /// Weights of a norm for each channel: 1, 2 (with bias), 0.
    pub norm_weights: u64,
    /// Whether norms subtract the mean in one kernel (LayerNorm), rather than being RMS norms.
    pub layer_norms: bool,
    /// Norms of a layer.
    pub norms: u64,
    /// Whether norms on queries and keys are there.
    pub query_key_norms: bool,
    /// Whether these are over all heads together, not over each.
    pub norms_over_heads: bool,
    /// Biases of the QKV projection, of the attention's output projection, of the MLP.
    pub biases: [bool; 3],
    /// Whether attention has a learned sink for each head.
    pub sinks: bool,
    /// `rope`, `learned_absolute`, `alibi`, `none`.
    pub position: String,
    /// Whether the output layer is the word embedding.
    pub tied: bool,
    /// Latent attention.
    pub latent: Option<Latent>,
    /// Routed experts.
    pub routed: Option<Routed>,
    /// What mixes tokens in each layer, a sign each: `*` attention, `w` attention to a window, `M` the linear mixer, `P`
    /// attention and the linear mixer side by side, `A` and `W` attention with an earlier layer's keys and values.
    pub mixers: String,
    /// Tokens of the window, and whether it is a chunk that does not slide.
    pub window: Option<(u64, bool)>,
    /// The linear mixer of layers that have one.
    pub linear: Option<Linear>,
    /// Whether the attention's output has a gate as wide as the queries, made by their projection.
    pub output_gate: bool,
    /// Heads of attention to the whole sequence, where those of windowed layers differ.
    pub full: Option<Full>,
    /// Width of the embeddings that each layer has of its own, and rows of their table.
    pub layer_inputs: Option<(u64, u64)>,
    /// Whether MLPs of layers that borrow keys and values are twice as wide.
    pub double_wide: bool,
    /// The encoder in front of the decoder.
    pub encoder: Option<EncoderShape>,
    /// Layers of one block each, in Megatron's signs: `M`, `*`, `-` an MLP, `E` experts.
    pub blocks: Option<String>,
}

/// Sizes of an encoder whose layers are as wide as the decoder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderShape {
    /// Layers.
    pub layers: u64,
    /// Rows of the table of distances that each of both stacks has.
    pub buckets: u64,
}

/// How the library's modules are arranged, beyond their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// One projection gives queries, keys and values.
    pub fused_qkv: bool,
    /// One projection gives both halves of the gated MLP.
    pub fused_gate_up: bool,
    /// Attention and MLP read the same residual stream.
    pub parallel_residual: bool,
    /// Norms stand behind attention and MLP too.
    pub post_norms: bool,
    /// Norms stand behind attention and MLP, and none in front of them.
    pub norms_behind: bool,
    /// Norms multiply by one plus their weight in fp32.
    pub fp32_norms: bool,
    /// Norms multiply by their weight in fp32, and round then.
    pub wide_norms: bool,
    /// The rotation's cosines and sines stay in fp32.
    pub fp32_rotation: bool,
    /// Hundredths of a head that are rotated.
    pub rotary_percent: u64,
    /// Weights of the chosen experts are summed to one in fp32.
    pub normalized_routing: bool,
    /// Experts' weights get adapters of PEFT where the projections of an MLP are named: the library once had linear layers there.
    pub converted_experts: bool,
    /// These stay in fp32.
    pub fp32_routing: bool,
    /// Attention scores go through a tanh.
    pub attention_softcap: bool,
    /// Logits go through a tanh.
    pub final_softcap: bool,
}

/// Sizes of attention to the whole sequence beside windowed layers of other sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Key and value heads.
    pub groups: u64,
    /// Width of a head.
    pub width: u64,
    /// Whether the keys' projection gives the values too.
    pub keys_as_values: bool,
}

/// Sizes of multi-latent attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latent {
    /// Rank of the query compression; none: queries come from the residual stream.
    pub query_rank: Option<u64>,
    /// Rank of the key and value compression.
    pub key_value_rank: u64,
    /// Width of a head without rotation.
    pub plain_width: u64,
    /// Rotated width.
    pub rotated_width: u64,
    /// Width of a value head.
    pub value_width: u64,
}

/// Sizes of a linear mixer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Kind of mixer, as the rules name it.
    pub kind: String,
    /// Heads of queries and keys; groups of Mamba-2.
    pub key_heads: u64,
    /// Heads of values.
    pub value_heads: u64,
    /// Width of a key head; the state of Mamba.
    pub key_width: u64,
    /// Width of a value head.
    pub value_width: u64,
    /// Tokens of its convolution.
    pub convolution: u64,
    /// Rank of its low-rank projections; 0 without.
    pub rank: u64,
    /// Its linear layers that have a bias: `in_proj`, `conv1d`, `out_proj`.
    pub biases: Vec<String>,
    /// Whether a norm stands behind its scan.
    pub norm: bool,
}

/// Sizes of the routed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Experts of a layer.
    pub experts: u64,
    /// Experts of one token.
    pub per_token: u64,
    /// Inner width of one.
    pub width: u64,
    /// Inner width of the shared experts together; 0 without.
    pub shared_width: u64,
    /// Whether the shared ones are gated.
    pub shared_gate: bool,
    /// Width in which experts work, where that is narrower than the residual stream.
    pub latent: Option<u64>,
    /// Which layers have experts.
    pub layers: Vec<bool>,
    /// Whether these layers have a dense MLP beside them, a norm behind either and a router with weights per channel and per
    /// expert (Gemma 4).
    pub beside: bool,
}
