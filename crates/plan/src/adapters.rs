//! How each library adds low-rank adapters to a model's linear layers and shards them over tensor-parallel ranks, as
//! data: operators ask for these properties and never for the library's name.

/// A library that adds low-rank adapters to linear layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdapterLibrary {
    /// PEFT, on modules of plain PyTorch.
    #[default]
    Peft,
    /// Megatron-Bridge (`peft/lora.py:LoRA`), adopted by NeMo: one adapter for a fused projection.
    MegatronBridge,
    /// Its `CanonicalLoRA`: separate adapters for queries, keys, values and each half of a gated pair.
    MegatronBridgeCanonical,
    /// torchtune (`modules/peft/lora.py:LoRALinear`): in the type of the model's weights.
    Torchtune,
    /// litgpt (`lora.py`): one A for queries, keys and values together, in the type of the model's weights.
    Litgpt,
    /// mcore-bridge (`tuners/lora.py:LoraParallelLinear`), which ms-swift's `megatron sft` is built on.
    McoreBridge,
}

/// How a library builds the adapter of a layer that is sharded over tensor-parallel ranks: A maps the layer's input
/// to the rank, B the rank to its output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdapterSemantics {
    /// Whether tensor ranks share the work of both matrices and run them on the tokens of all ranks: for a
    /// column-parallel layer, A is sharded by rows and its result gathered; for a row-parallel layer, B is. Otherwise
    /// these two are replicated on every rank and run on the rank's own tokens.
    pub cuts_both: bool,
    /// Whether all experts of a rank share one adapter, kept in sync over the expert-parallel ranks; otherwise each
    /// expert has its own.
    pub shares_experts: bool,
    /// Whether the parts of a fused projection each have their own adapter.
    pub splits_fused: bool,
    /// Whether the embedding's output is made to require a gradient regardless of recomputation.
    pub input_gradients: bool,
    /// Rank if the text states none.
    pub rank: u64,
    /// Dropout if the text states none.
    pub dropout: f64,
    /// Target modules if the text states none.
    pub targets: &'static [&'static str],
    /// The library, as named in a sentence.
    pub name: &'static str,
}

const PEFT: AdapterSemantics = AdapterSemantics {
    cuts_both: false,
    shares_experts: false,
    splits_fused: false,
    input_gradients: false,
    rank: 8,
    dropout: 0.0,
    targets: &["q_proj", "v_proj"],
    name: "PEFT",
};
const MEGATRON_BRIDGE: AdapterSemantics = AdapterSemantics {
    cuts_both: true,
    shares_experts: true,
    rank: 32,
    targets: &["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"],
    name: "Megatron-Bridge",
    ..PEFT
};
const CANONICAL: AdapterSemantics = AdapterSemantics {
    splits_fused: true,
    targets: &[
        "linear_q",
        "linear_k",
        "linear_v",
        "linear_proj",
        "linear_fc1_up",
        "linear_fc1_gate",
        "linear_fc2",
    ],
    name: "Megatron-Bridge's CanonicalLoRA",
    ..MEGATRON_BRIDGE
};
/// ms-swift's own defaults of rank, dropout and targets (`swift/megatron/arguments/megatron_args.py`).
const MCORE_BRIDGE: AdapterSemantics = AdapterSemantics {
    input_gradients: true,
    dropout: 0.05,
    targets: &["all-linear"],
    name: "ms-swift",
    ..PEFT
};
/// torchtune's builders of models with adapters; the target modules argument has no default.
const TORCHTUNE: AdapterSemantics =
    AdapterSemantics { targets: &["q_proj", "v_proj", "output_proj"], name: "torchtune", ..PEFT };
/// `litgpt/finetune/lora.py:setup`.
const LITGPT: AdapterSemantics = AdapterSemantics { dropout: 0.05, name: "litgpt", ..PEFT };

impl AdapterLibrary {
    /// How its adapters behave.
    #[must_use]
    pub const fn semantics(self) -> &'static AdapterSemantics {
        match self {
            Self::Peft => &PEFT,
            Self::MegatronBridge => &MEGATRON_BRIDGE,
            Self::MegatronBridgeCanonical => &CANONICAL,
            Self::McoreBridge => &MCORE_BRIDGE,
            Self::Torchtune => &TORCHTUNE,
            Self::Litgpt => &LITGPT,
        }
    }

    /// Whether it builds adapters for layers of Megatron core.
    #[must_use]
    pub const fn is_of_megatron(self) -> bool {
        !matches!(self, Self::Peft | Self::Torchtune | Self::Litgpt)
    }
}
