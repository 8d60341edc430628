//! Linear layers of a transformer by the names that adapters' target modules give them, and sets of them.

/// A linear layer of a transformer, as LoRA's target modules name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearModule {
    /// `q_proj`; also a fused projection that contains it.
    Query,
    /// `k_proj`.
    Key,
    /// `v_proj`.
    Value,
    /// `o_proj`, `dense`.
    Output,
    /// `gate_proj`; also a fused projection that contains it.
    Gate,
    /// `up_proj`; also the first projection of an MLP without a gate.
    Up,
    /// `down_proj`.
    Down,
    /// Weights of experts, which PEFT adapts as parameters. In other libraries experts are ordinary linear layers.
    Experts,
    /// `lm_head`, which `all-linear` leaves out.
    OutputLayer,
    /// `in_proj` and `out_proj` of a linear mixer.
    Mixer,
    /// `q_a_proj` of multi-latent attention.
    QueryDown,
    /// `q_b_proj`.
    QueryUp,
    /// `kv_a_proj_with_mqa`.
    KeyValueDown,
    /// `kv_b_proj`.
    KeyValueUp,
    /// The router, a parameter like the experts.
    Router,
    /// `embed_tokens`, the word embedding, which `all-linear` leaves out.
    Embedding,
    /// `per_layer_input_gate`, behind the MLP of a layer that has embeddings of its own (Gemma 4 E2B).
    LayerGate,
    /// `per_layer_projection`, behind it.
    LayerOutput,
    /// `per_layer_model_projection`, which projects the word embeddings for all layers.
    LayerModel,
}

/// Linear layers of an MLP with a gate.
const OF_MLP: [LinearModule; 3] = [LinearModule::Gate, LinearModule::Up, LinearModule::Down];

/// A set of linear layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoraModules(u32);

impl LoraModules {
    /// Every linear layer in the transformer layers, experts included (`all-linear`).
    pub const ALL: Self = Self(0x7_7eff);

    /// The same with `module`.
    #[must_use]
    pub const fn with(self, module: LinearModule) -> Self {
        Self(self.0 | 1 << module as u16)
    }

    /// The same without `module`.
    #[must_use]
    pub const fn without(self, module: LinearModule) -> Self {
        Self(self.0 & !(1 << module as u16))
    }

    /// The same without the linear layers of an MLP.
    #[must_use]
    pub fn without_mlp(self) -> Self {
        OF_MLP.into_iter().fold(self, Self::without)
    }

    /// Whether `module` is in it.
    #[must_use]
    pub const fn has(self, module: LinearModule) -> bool {
        self.0 & (1 << module as u16) != 0
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it contains linear layers of an MLP, and thereby, under Megatron core, those of experts.
    #[must_use]
    pub fn reach_experts(self) -> bool {
        OF_MLP.into_iter().any(|module| self.has(module))
    }

    /// Whether it contains all linear layers of an MLP.
    #[must_use]
    pub fn cover_experts(self) -> bool {
        OF_MLP.into_iter().all(|module| self.has(module))
    }

    /// The set that the names of target modules describe; `None` if a name is not known.
    #[must_use]
    pub fn named(self, name: &str) -> Option<Self> {
        use LinearModule::{Down, Gate, Key, Output, Query, Up, Value};
        // A pattern or a path ends in the module's own name.
        let name = name.rsplit(['.', '/']).next().unwrap_or(name).trim_start_matches("mlp_");
        let modules: &[LinearModule] = match name {
            "all-linear" | "all" => return Some(Self::ALL),
            "q_proj" | "linear_q" | "wq" | "to_q" | "query" | "q" => &[Query],
            "k_proj" | "linear_k" | "wk" | "to_k" | "key" | "k" => &[Key],
            "v_proj" | "linear_v" | "wv" | "to_v" | "value" | "v" => &[Value],
            "qkv_proj" | "query_key_value" | "c_attn" | "Wqkv" | "linear_qkv" | "qkv" | "W_pack" => {
                &[Query, Key, Value]
            }
            "o_proj" | "output_proj" | "wo" | "dense" | "out_proj" | "linear_proj" | "o" | "attn_output" => {
                &[Output]
            }
            "gate_proj" | "linear_fc1_gate" | "w1" | "gate" => &[Gate],
            "up_proj" | "linear_fc1_up" | "w3" | "up" => &[Up],
            "gate_up_proj" | "dense_h_to_4h" | "linear_fc1" | "fc1" | "c_fc" | "fc_in" => &[Gate, Up],
            "down_proj" | "w2" | "dense_4h_to_h" | "linear_fc2" | "fc2" | "fc_out" | "down" => &[Down],
            "in_proj" => &[LinearModule::Mixer],
            "q_a_proj" => &[LinearModule::QueryDown],
            "q_b_proj" => &[LinearModule::QueryUp],
            "kv_a_proj_with_mqa" => &[LinearModule::KeyValueDown],
            "kv_b_proj" => &[LinearModule::KeyValueUp],
            // GPT-2 gives the last projections of attention and MLP the same name.
            "c_proj" => &[Output, Down],
            "lm_head" | "output" => &[LinearModule::OutputLayer],
            "embed_tokens" => &[LinearModule::Embedding],
            "per_layer_input_gate" => &[LinearModule::LayerGate],
            "per_layer_projection" => &[LinearModule::LayerOutput],
            "per_layer_model_projection" => &[LinearModule::LayerModel],
            "q_attn" => &[], // Of attention across two sequences; PEFT takes a name that nothing has.
            _ => return None,
        };
        Some(modules.iter().fold(self, |all, module| all.with(*module)))
    }
}
