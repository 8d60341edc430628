//! What architectures fix in code, after the model code of the transformers library (version 4.5x).

/// Which linear layers of an architecture have biases, unless its keys say otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bias {
    None,
    Qkv,
    All,
}

/// What an architecture's code fixes.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub(super) gated: bool,
    pub(super) rms: bool,
    pub(super) position: &'static str,
    pub(super) bias: Bias,
    pub(super) qk_norm: bool,
    pub(super) tied: bool,
    /// What of it is not estimated.
    pub(super) lacking: Option<&'static str>,
}

/// RMS norms, SwiGLU, rotary positions, no biases.
pub(super) const LLAMA: Traits = Traits {
    gated: true,
    rms: true,
    position: "rope",
    bias: Bias::None,
    qk_norm: false,
    tied: false,
    lacking: None,
};
const QWEN2: Traits = Traits { bias: Bias::Qkv, ..LLAMA };
const QWEN3: Traits = Traits { qk_norm: true, ..LLAMA };
const GEMMA: Traits = Traits { tied: true, ..LLAMA };
const GEMMA2: Traits = Traits { lacking: Some("the norms behind attention and MLP"), ..GEMMA };
/// Layer norms, GELU, learned positions, biases, tied.
pub(super) const GPT2: Traits =
    Traits { gated: false, rms: false, position: "learned_absolute", bias: Bias::All, tied: true, ..LLAMA };
const NEOX: Traits = Traits { position: "rope", tied: false, ..GPT2 };
const FALCON: Traits = Traits { position: "rope", bias: Bias::None, ..GPT2 };
/// Attention and MLP side by side behind one norm.
pub(super) const PARALLEL: Option<&str> = Some("one norm for attention and MLP together");
const PHI: Traits = Traits { lacking: PARALLEL, ..NEOX };
const OLMO2: Traits =
    Traits { qk_norm: true, lacking: Some("query and key norms over all heads together"), ..LLAMA };

/// Architectures by `model_type`.
const KNOWN: &[(&str, Traits)] = &[
    ("llama", LLAMA),
    ("mistral", LLAMA),
    ("mistral3", LLAMA),
    ("ministral", LLAMA),
    ("mixtral", LLAMA),
    ("yi", LLAMA),
    ("baichuan", LLAMA),
    ("internlm2", LLAMA),
    ("smollm3", LLAMA),
    ("granite", LLAMA),
    ("exaone", LLAMA),
    ("phi3", LLAMA),
    ("phimoe", Traits { bias: Bias::Qkv, rms: false, ..LLAMA }),
    ("qwen2", QWEN2),
    ("qwen2_moe", QWEN2),
    ("qwen2_vl", QWEN2),
    ("qwen2_5_vl", QWEN2),
    ("seed_oss", QWEN2),
    ("qwen3", QWEN3),
    ("qwen3_moe", QWEN3),
    ("qwen3_vl", QWEN3),
    ("gemma", GEMMA),
    ("gemma2", GEMMA2),
    ("gemma3", Traits { qk_norm: true, ..GEMMA2 }),
    ("gpt2", GPT2),
    ("gpt_bigcode", GPT2),
    ("opt", GPT2),
    ("bloom", Traits { position: "alibi", ..GPT2 }),
    ("mpt", Traits { position: "alibi", bias: Bias::None, ..GPT2 }),
    ("gpt_neox", NEOX),
    ("gptj", PHI),
    ("phi", PHI),
    ("stablelm", Traits { gated: true, bias: Bias::None, ..NEOX }),
    ("starcoder2", Traits { tied: true, ..NEOX }),
    ("falcon", FALCON),
    ("refinedweb", FALCON),
    ("refinedwebmodel", FALCON),
    ("cohere", Traits { rms: false, tied: true, ..LLAMA }),
    ("nemotron", Traits { gated: false, rms: false, ..LLAMA }),
    ("olmo", Traits { lacking: Some("norms without weights"), ..LLAMA }),
    ("olmo2", OLMO2),
    ("olmoe", OLMO2),
    ("deepseek", LLAMA),
    ("deepseek_v2", QWEN3),
    ("deepseek_v3", QWEN3),
    ("kimi_k2", QWEN3),
    ("glm", QWEN2),
    ("glm4", Traits { bias: Bias::Qkv, ..GEMMA2 }),
    ("glm4_moe", QWEN2),
    ("llama4", LLAMA),
    ("gpt_oss", Traits { bias: Bias::All, ..LLAMA }),
];

/// Architectures that are no decoder of attention and MLP layers.
const FOREIGN: &[&str] = &[
    "bert",
    "roberta",
    "t5",
    "mt5",
    "bart",
    "whisper",
    "clip",
    "vit",
    "mamba",
    "mamba2",
    "falcon_mamba",
    "jamba",
    "bamba",
    "zamba",
    "rwkv",
    "qwen3_next",
    "minimax",
    "nemotron_h",
    "recurrent_gemma",
    "xlstm",
];

/// What an architecture fixes, if it is known.
pub(super) fn traits(model_type: &str) -> Option<Traits> {
    KNOWN.iter().find(|(name, _)| name.eq_ignore_ascii_case(model_type)).map(|(_, traits)| *traits)
}

/// Whether it is no decoder of attention and MLP layers.
pub(super) fn is_foreign(model_type: &str) -> bool {
    FOREIGN.contains(&model_type)
}
