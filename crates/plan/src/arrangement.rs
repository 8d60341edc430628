//! How the modules of a layer are arranged in software that runs a model's published modules.

/// How the modules of a layer are arranged where that is not as in Llama. Megatron has an arrangement of its own;
/// these matter to software that runs a model's published modules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrangement {
    /// One projection for queries, keys and values (Phi-3, GPT-NeoX).
    pub fused_qkv: bool,
    /// Whether keys and values are a projection of their own, which every tensor rank has whole (bigcode-project/Megatron-LM,
    /// `megatron/model/transformer.py:ParallelAttention`, multiquery).
    pub whole_keys: bool,
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
    /// In what the router works.
    pub router: Router,
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
    /// Norms of queries and keys behind their rotation, which makes them fp32 under autocast (Hunyuan).
    pub norms_behind_rotation: bool,
    /// Norms of queries and keys that have no weights, in layers with a window (Llama 4).
    pub plain_head_norms: bool,
    /// Whether queries are multiplied by a number for each position.
    pub query_temperature: QueryTemperature,
    /// Eager attention has queries and keys in fp32 (GPT-J).
    pub fp32_scores: bool,
    /// A norm behind the embedding (BLOOM).
    pub embedding_norm: bool,
    /// The output layer has a bias (Phi).
    pub head_bias: bool,
    /// Where dropout stands while the model trains.
    pub dropout: Dropout,
    /// Which norms have weights, and biases beside them (OLMo).
    pub norm_weights: NormWeights,
    /// Queries, keys and values are clamped behind their projection, which is kept as it was for their gradient (OLMo's
    /// `clip_qkv`).
    pub clipped_queries: bool,
    /// A Gated DeltaNet's input projections are four modules (Qwen3.5), else two (Qwen3-Next).
    pub split_mixer_inputs: bool,
    /// How queries, keys and values are taken from a joint projection.
    pub joint_parts: JointParts,
    /// The part of a head that is not rotated is joined to the other even where it is empty (Phi-3).
    pub passed_rotation: bool,
    /// What attention and MLP add to the residual stream is multiplied by a number (Granite).
    pub scaled_branches: bool,
    /// GELU as products and a hyperbolic tangent in an autograd function of its own, which keeps its input (BLOOM).
    pub gelu_by_hand: bool,
    /// What a Mamba-2 mixer projects is multiplied by numbers in the weights' type (Falcon-H1).
    pub scaled_mixer_inputs: bool,
}

/// Which norms of a model's own modules have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormWeights {
    /// Norms over the hidden size.
    pub stream: bool,
    /// Norms of queries and keys.
    pub heads: bool,
    /// Whether a `LayerNorm`'s has a bias beside it.
    pub biases: bool,
}

impl Default for NormWeights {
    /// All of them.
    fn default() -> Self {
        Self { stream: true, heads: true, biases: true }
    }
}

/// In what the router of a mixture of experts works, in a model's own modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// Its product in the layer's type, a softmax in fp32 (Mixtral, Qwen3).
    #[default]
    Own,
    /// Its product in fp32, input and weight copied for it, and a softmax (DeepSeek-V2).
    Fp32,
    /// The same, and the scores of groups that are not chosen masked (DeepSeek-V2 with `group_limited_greedy`).
    Fp32Grouped,
    /// The product in fp32 also under autocast, of a weight that is held so, and a sum that is clamped (ERNIE 4.5).
    Fp32Held,
    /// Two experts drawn one after the other, each by a masked softmax of its own (Phi-3.5-MoE's `sparsemixer`).
    Sampled,
    /// A sigmoid of the chosen scores, which every expert's input is multiplied by (Llama 4).
    Weighing,
    /// The product in fp32 with a sigmoid (DeepSeek-V3, GLM-4.5).
    Fp32Sigmoid,
    /// The product in the layer's type with a sigmoid (LFM2-MoE).
    Sigmoid,
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

/// What queries are multiplied by at each position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryTemperature {
    /// Nothing.
    #[default]
    None,
    /// A number in fp32, in layers without a window (Llama 4).
    Unwindowed,
    /// A number in the type of the queries, in every layer (Ministral 3).
    Typed,
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
    /// Each layer repeats them for queries and again for keys (GPT-J).
    Each,
    /// Once for all layers, a complex number of fp32 for two columns (DeepSeek-V2).
    Complex,
}

/// How a model's own modules take queries, keys and values from a joint projection, and so join their gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointParts {
    /// Split by columns: gradients are joined at once (GPT-2).
    Split,
    /// Split head by head: what is joined lies heads first, and is copied for its product (GPT-NeoX).
    Headwise,
    /// Slices of the columns: each gradient is written into zeros, and all are added (Phi-3).
    Sliced,
    /// One of three in each head: the same (BLOOM).
    Selected,
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
    /// In fp32, the weight copied to it, and the product is rounded (Nemotron-H).
    Widened,
    /// In fp32, the mean taken off in operations of their own (Cohere).
    Centred,
    /// In fp32 by one plus the weight, which is held around zero (Gemma, Qwen3-Next).
    PlusOne,
}

impl Default for Arrangement {
    fn default() -> Self {
        Self {
            fused_qkv: false,
            whole_keys: false,
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
            router: Router::Own,
            rotary_percent: 1.0,
            single_norm: false,
            rotation_tables: RotationTables::Shared,
            activation_steps: ActivationSteps::Kernel,
            chosen_routing: false,
            clamped_experts: false,
            typed_softmax: false,
            norms_behind_rotation: false,
            plain_head_norms: false,
            query_temperature: QueryTemperature::None,
            fp32_scores: false,
            embedding_norm: false,
            head_bias: false,
            dropout: Dropout::default(),
            norm_weights: NormWeights::default(),
            clipped_queries: false,
            split_mixer_inputs: false,
            joint_parts: JointParts::Split,
            passed_rotation: false,
            scaled_branches: false,
            gelu_by_hand: false,
            scaled_mixer_inputs: false,
        }
    }
}
