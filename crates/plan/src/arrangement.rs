//! How the modules of a layer are arranged in software that runs a model's published (Hugging Face) modules.

/// How the modules of a layer are arranged, as far as that differs from Llama. Megatron has its own arrangement;
/// these fields matter only to software that runs a model's published modules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrangement {
    /// One projection for queries, keys and values (Phi-3, GPT-NeoX).
    pub fused_qkv: bool,
    /// Whether keys and values have their own projection, which every tensor rank holds unsharded
    /// (bigcode-project/Megatron-LM, `megatron/model/transformer.py:ParallelAttention`, multiquery).
    pub whole_keys: bool,
    /// One projection for both halves of a gated MLP (Phi-3).
    pub fused_gate_up: bool,
    /// Attention and MLP read the same residual stream and are added together (GPT-NeoX).
    pub parallel_residual: bool,
    /// Where a layer's norms are placed.
    pub norm_places: NormPlaces,
    /// The precision in which a norm multiplies by its weight.
    pub norm_product: NormProduct,
    /// Norms of queries and keys span all heads together (`OLMo` 2).
    pub norms_over_heads: bool,
    /// Cosines and sines of the rotary embedding stay in fp32 (`OLMo` 2).
    pub fp32_rotation: bool,
    /// Attention scores pass through a tanh (Gemma 2).
    pub attention_softcap: bool,
    /// Logits pass through a tanh (Gemma 2).
    pub final_softcap: bool,
    /// Routing weights are normalised to sum to one in fp32 (Mixtral, Qwen3).
    pub normalized_routing: bool,
    /// Routing weights stay in fp32 (Mixtral).
    pub fp32_routing: bool,
    /// How the router computes its scores.
    pub router: Router,
    /// Fraction of each head that is rotated.
    pub rotary_percent: f64,
    /// Attention and MLP run in parallel after a single norm, whose output both read (Phi, Cohere).
    pub single_norm: bool,
    /// How many copies of the cosines and sines exist.
    pub rotation_tables: RotationTables,
    /// The operations that make up an MLP's activation.
    pub activation_steps: ActivationSteps,
    /// Routing weights are a softmax over the chosen experts alone (gpt-oss, Granite MoE).
    pub chosen_routing: bool,
    /// Experts have biases, and clamp both halves before the activation (gpt-oss).
    pub clamped_experts: bool,
    /// Eager attention computes its softmax in the scores' dtype (GPT-2).
    pub typed_softmax: bool,
    /// Norms of queries and keys come after the rotary embedding, which makes them fp32 under autocast (Hunyuan).
    pub norms_behind_rotation: bool,
    /// Norms of queries and keys have no weights, in layers with a window (Llama 4).
    pub plain_head_norms: bool,
    /// Layers with experts have a dense MLP beside them: both read the residual stream through norms of their own, and a norm
    /// follows either output and their sum (Gemma 4).
    pub dense_beside_experts: bool,
    /// Embeddings that each layer has of its own, gated and added behind its MLP (Gemma 4 E2B and E4B).
    pub layer_inputs: Option<LayerInputs>,
    /// MLPs of layers that borrow keys and values are twice as wide (Gemma 4 E2B).
    pub double_wide: bool,
    /// Values pass a norm without weights (Gemma 4).
    pub value_norms: bool,
    /// Whether queries are multiplied by a factor per position.
    pub query_temperature: QueryTemperature,
    /// Eager attention casts queries and keys to fp32 (GPT-J).
    pub fp32_scores: bool,
    /// A norm follows the embedding (BLOOM).
    pub embedding_norm: bool,
    /// The output layer has a bias (Phi).
    pub head_bias: bool,
    /// Where dropout is applied during training.
    pub dropout: Dropout,
    /// Which norms have weights, and biases with them (OLMo).
    pub norm_weights: NormWeights,
    /// A LayerNorm casts its input to fp32 and its output back (OLMo's in transformers).
    pub fp32_layer_norm: bool,
    /// Queries, keys and values are clamped after their projection, whose unclamped output is saved for the gradient
    /// (OLMo's `clip_qkv`).
    pub clipped_queries: bool,
    /// A Gated DeltaNet's input projections are four modules (Qwen3.5) instead of two (Qwen3-Next).
    pub split_mixer_inputs: bool,
    /// How queries, keys and values are extracted from a fused projection.
    pub joint_parts: JointParts,
    /// The unrotated part of a head is concatenated with the rotated part even when it is empty (Phi-3).
    pub passed_rotation: bool,
    /// What attention and MLP add to the residual stream is scaled by a constant (Granite).
    pub scaled_branches: bool,
    /// Queries and keys are rotated before their heads come in front of tokens (Gemma 4).
    pub tokens_first: bool,
    /// Tokens of an image attend to each other in attention to the whole sequence too, which takes a mask (Gemma 3).
    pub image_masks: bool,
    /// A layer's output is multiplied in place by a constant of its own (Gemma 4).
    pub scaled_layers: bool,
    /// GELU written out as products and a tanh, in its own autograd function, which saves its input (BLOOM).
    pub gelu_by_hand: bool,
    /// Where a layer registers its norms, which is the order in which DDP without knowledge of a step fills its buckets.
    pub norm_order: NormOrder,
    /// Attention registers its output projection before the others (Phi-3).
    pub output_first: bool,
    /// What a Mamba-2 mixer projects is multiplied by constants in the weights' dtype (Falcon-H1).
    pub scaled_mixer_inputs: bool,
}

/// Embeddings that each layer has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerInputs {
    /// Width of one layer's.
    pub width: u64,
    /// Rows of their table.
    pub vocabulary: u64,
}

/// Where a layer registers its norms among attention and MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormOrder {
    /// Behind both (Llama).
    Last,
    /// Each in front of what reads it (GPT-2).
    Ordered,
    /// In front of both (GPT-NeoX).
    First,
    /// Each behind what reads it, the second behind the MLP (OPT).
    Following,
}

/// Which norms of a model's own modules have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormWeights {
    /// Norms over the hidden dimension.
    pub stream: bool,
    /// Norms of queries and keys.
    pub heads: bool,
    /// Whether a `LayerNorm` has a bias as well as a weight.
    pub biases: bool,
}

impl Default for NormWeights {
    /// All of them.
    fn default() -> Self {
        Self { stream: true, heads: true, biases: true }
    }
}

/// How the router of a mixture of experts computes its scores, in a model's own modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Router {
    /// The product in the layer's dtype, the softmax in fp32 (Mixtral, Qwen3).
    #[default]
    Own,
    /// The product in fp32, with input and weight copied to fp32 for it, and a softmax (DeepSeek-V2).
    Fp32,
    /// The same, with the scores of unselected groups masked (DeepSeek-V2 with `group_limited_greedy`).
    Fp32Grouped,
    /// The product in fp32 even under autocast, with a weight stored in fp32, and a clamped sum (ERNIE 4.5).
    Fp32Held,
    /// Two experts drawn one after the other, each by its own masked softmax (Phi-3.5-MoE's `sparsemixer`).
    Sampled,
    /// A sigmoid of the chosen scores, which multiplies every expert's input (Llama 4).
    Weighing,
    /// The product in fp32 with a sigmoid (DeepSeek-V3, GLM-4.5).
    Fp32Sigmoid,
    /// The product in the layer's dtype with a sigmoid (LFM2-MoE).
    Sigmoid,
    /// Product, softmax and sum in the layer's dtype (Mistral 4).
    Typed,
    /// A linear layer on the residual stream behind a norm without weights, whose output is multiplied by a weight per
    /// channel; the softmax in fp32, and the chosen weights multiplied by one per expert (Gemma 4).
    Normed,
}

impl Arrangement {
    /// Whether the model hands its routers' logits on to a balancing loss where it is told to: transformers' Mixtral, Qwen,
    /// OLMoE, gpt-oss, Granite, Phi-3.5-MoE and ERNIE have `output_router_logits`; the text models of DeepSeek, GLM, Llama 4 and
    /// Hunyuan (Llama's own head, `modular_hunyuan_v1_moe.py`) do not.
    #[must_use]
    pub const fn is_balanced_by_loss(&self) -> bool {
        let asks = matches!(self.router, Router::Own | Router::Sampled | Router::Fp32Held);
        asks && !self.norms_behind_rotation
    }

    /// Whether these logits are fp32 in every format: Granite's are cast (`GraniteMoeTopKGating`), ERNIE's are an fp32 product.
    #[must_use]
    pub const fn has_fp32_router_logits(&self) -> bool {
        matches!(self.router, Router::Fp32Held) || (self.chosen_routing && !self.clamped_experts)
    }
}

/// Where dropout is applied in a model's own modules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropout {
    /// After the attention probabilities.
    pub attention: bool,
    /// After attention and after the MLP, before the residual addition.
    pub residual: bool,
    /// Within the MLP, before its last projection (T5).
    pub mlp: bool,
    /// After the embedding.
    pub embedding: bool,
}

/// What queries are multiplied by at each position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryTemperature {
    /// Nothing.
    #[default]
    None,
    /// An fp32 factor, in layers without a window (Llama 4).
    Unwindowed,
    /// A factor in the queries' dtype, in every layer (Ministral 3).
    Typed,
}

/// How many copies of the rotary cosines and sines exist, and how wide they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationTables {
    /// One copy for all layers, with a column for each rotated column of a head.
    Shared,
    /// One copy for all layers, with a column for every two (gpt-oss).
    Half,
    /// Each layer repeats them for pairs of columns (GLM).
    Layer,
    /// The same in fp32 (ERNIE 4.5).
    Fp32Layer,
    /// Each layer repeats them for queries and separately for keys (GPT-J).
    Each,
    /// One copy for all layers, with an fp32 complex number for every two columns (DeepSeek-V2).
    Complex,
}

/// How a model's own modules split queries, keys and values from a fused projection, and so how their gradients are
/// joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointParts {
    /// Split by columns: gradients are joined in one operation (GPT-2).
    Split,
    /// Split head by head: the joined gradient is laid out heads first and copied for its matrix product (GPT-NeoX).
    Headwise,
    /// Slices of the columns: each gradient is written into zeros, and all are summed (Phi-3).
    Sliced,
    /// One of three in each head: the same (BLOOM).
    Selected,
    /// Queries are a slice; keys and values are taken by index, which copies them, and where there are several groups
    /// all three are laid out once more, keys and values for every query head (Falcon).
    Indexed,
}

/// The operations that make up an activation, where that is not a single kernel that saves its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationSteps {
    /// One kernel.
    Kernel,
    /// `NewGELUActivation`: a cube, a tanh and three products, each an operation of its own (GPT-2, Phi).
    NewGelu,
    /// A ReLU, whose gradient follows from its output (OPT).
    Relu,
    /// xIELU with two weights of its own, operation by operation (Apertus), as without the package `xielu`, which has a
    /// kernel for it and is installed from its repository alone.
    Xielu,
}

/// Where a layer's norms are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormPlaces {
    /// Before attention and before the MLP.
    InFront,
    /// Before and after both (Gemma 2).
    Around,
    /// After both, which read the residual stream directly (`OLMo` 2).
    Behind,
}

/// The precision in which an RMS norm of a model's own modules multiplies by its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormProduct {
    /// In the stream's dtype: the normalised value is rounded first (Llama).
    Rounded,
    /// The same, where the input is multiplied by its fp32 root in its own dtype, which keeps it beside its fp32 copy (T5).
    Uncast,
    /// In fp32, with the product rounded (`OLMo` 2, gpt-oss).
    Wide,
    /// In fp32, with the weight cast to fp32 and the product rounded (Nemotron-H).
    Widened,
    /// The same, with the root taken by a power, which saves the mean square beside its result (Gemma 4).
    Raised,
    /// In fp32, with the mean subtracted in separate operations (Cohere).
    Centred,
    /// In fp32, by one plus the weight, which is stored centred on zero (Gemma, Qwen3-Next).
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
            dense_beside_experts: false,
            layer_inputs: None,
            double_wide: false,
            value_norms: false,
            query_temperature: QueryTemperature::None,
            fp32_scores: false,
            embedding_norm: false,
            head_bias: false,
            dropout: Dropout::default(),
            norm_weights: NormWeights::default(),
            fp32_layer_norm: false,
            clipped_queries: false,
            split_mixer_inputs: false,
            joint_parts: JointParts::Split,
            passed_rotation: false,
            scaled_branches: false,
            tokens_first: false,
            image_masks: false,
            scaled_layers: false,
            gelu_by_hand: false,
            scaled_mixer_inputs: false,
            norm_order: NormOrder::Last,
            output_first: false,
        }
    }
}
