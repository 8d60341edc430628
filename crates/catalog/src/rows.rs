//! Models under short names, as Megatron's settings. Shapes are those of the published `config.json` files and
//! papers; the tests compare the totals of most with published parameter counts.

use shardscope_plan::Field;

/// Layers, hidden size, MLP width, heads, query groups, head width, vocabulary, longest sequence.
type Shape = [u32; 8];
/// Experts, experts per token, expert width, shared expert width, leading dense layers.
type Routed = [u32; 5];
/// Query rank (0: none), key/value rank; head widths are 128 unrotated, 64 rotated and 128 for values in all of them.
type Latent = [u32; 2];

/// What models of one kind share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// LayerNorm, GELU, biases, learned positions, tied embeddings (GPT-2, GPT-3).
    Gpt,
    /// As `Gpt`, with rotary positions and an untied output layer.
    NeoX,
    /// RMS norm, SwiGLU, rotary positions, no biases.
    Llama,
    /// As `Llama`, with QKV biases.
    Qwen2,
    /// As `Llama`, with norms on queries and keys.
    Qwen3,
    /// As `Qwen2` here: its norms after attention and MLP are not listed.
    Glm4,
    /// As `Qwen2`, with a sigmoid router and half of a head rotated.
    Glm45,
    /// As `Llama`, with multi-latent attention and a sigmoid router.
    DeepSeek,
    /// As `DeepSeek`, with a softmax router over groups of experts.
    DeepSeekV2,
    /// As `DeepSeekV2`, without groups.
    DeepSeekV2Lite,
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    kind: Family,
    shape: Shape,
    tied: bool,
    routed: Option<Routed>,
    latent: Option<Latent>,
}

const fn row(name: &'static str, kind: Family, shape: Shape, tied: bool) -> Row {
    Row { name, kind, shape, tied, routed: None, latent: None }
}

const fn moe(name: &'static str, kind: Family, shape: Shape, routed: Routed) -> Row {
    Row { name, kind, shape, tied: false, routed: Some(routed), latent: None }
}

const fn mla(name: &'static str, kind: Family, shape: Shape, routed: Routed, latent: Latent) -> Row {
    Row { name, kind, shape, tied: false, routed: Some(routed), latent: Some(latent) }
}

/// `model_type` of its published `config.json`. None for models that transformers has no type for, whose repositories bring code of
/// their own (Kimi K2, Moonlight), or of which parts are not listed here (GLM-4).
pub(crate) fn model_type(row: &Row) -> Option<&'static str> {
    let named = |start: &str| row.name.starts_with(start);
    Some(match row.kind {
        Gpt => Some("gpt2").filter(|_| named("GPT-2"))?,
        NeoX => "gpt_neox",
        Llama if named("Mixtral") => "mixtral",
        Llama if named("Mistral") => "mistral",
        Llama => "llama",
        Qwen2 => "qwen2",
        Qwen3 if row.routed.is_some() => "qwen3_moe",
        Qwen3 => "qwen3",
        DeepSeek => Some("deepseek_v3").filter(|_| named("DeepSeek"))?,
        DeepSeekV2 | DeepSeekV2Lite => "deepseek_v2",
        Glm45 => "glm4_moe",
        Glm4 => return None,
    })
}

/// Layers, hidden size, heads, MLP width.
pub(crate) fn sizes(row: &Row) -> [u64; 4] {
    let [layers, hidden, ffn, heads, ..] = row.shape.map(u64::from);
    [layers, hidden, heads, ffn]
}

/// Vocabulary size in tokens.
pub(crate) fn vocabulary(row: &Row) -> u64 {
    let [.., vocabulary, _] = row.shape;
    u64::from(vocabulary)
}

/// Query groups, and whether queries, keys and values have biases.
pub(crate) fn attention(row: &Row) -> (u64, bool) {
    let [_, _, _, _, groups, ..] = row.shape;
    (u64::from(groups), matches!(row.kind, Gpt | NeoX | Qwen2 | Glm4 | Glm45))
}

use Family::{DeepSeek, DeepSeekV2, DeepSeekV2Lite, Glm4, Glm45, Gpt, Llama, NeoX, Qwen2, Qwen3};

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    row("GPT-2-124M", Gpt, [12, 768, 3072, 12, 12, 64, 50_257, 1024], true),
    row("GPT-2-355M", Gpt, [24, 1024, 4096, 16, 16, 64, 50_257, 1024], true),
    row("GPT-2-774M", Gpt, [36, 1280, 5120, 20, 20, 64, 50_257, 1024], true),
    row("GPT-2-1.5B", Gpt, [48, 1600, 6400, 25, 25, 64, 50_257, 1024], true),
    row("GPT-3-1.3B", Gpt, [24, 2048, 8192, 16, 16, 128, 50_257, 2048], true),
    row("GPT-3-2.7B", Gpt, [32, 2560, 10_240, 32, 32, 80, 50_257, 2048], true),
    row("GPT-3-6.7B", Gpt, [32, 4096, 16_384, 32, 32, 128, 50_257, 2048], true),
    row("GPT-3-13B", Gpt, [40, 5120, 20_480, 40, 40, 128, 50_257, 2048], true),
    row("GPT-3-175B", Gpt, [96, 12_288, 49_152, 96, 96, 128, 50_257, 2048], true),
    row("MT-NLG-530B", Gpt, [105, 20_480, 81_920, 128, 128, 160, 50_257, 2048], true),
    row("GPT-1T", Gpt, [128, 25_600, 102_400, 160, 160, 160, 51_200, 2048], true),
    row("GPT-NeoX-20B", NeoX, [44, 6144, 24_576, 64, 64, 96, 50_432, 2048], false),
    row("Llama-2-7B", Llama, [32, 4096, 11_008, 32, 32, 128, 32_000, 4096], false),
    row("Llama-2-13B", Llama, [40, 5120, 13_824, 40, 40, 128, 32_000, 4096], false),
    row("Llama-2-70B", Llama, [80, 8192, 28_672, 64, 8, 128, 32_000, 4096], false),
    row("Llama-3-8B", Llama, [32, 4096, 14_336, 32, 8, 128, 128_256, 8192], false),
    row("Llama-3-70B", Llama, [80, 8192, 28_672, 64, 8, 128, 128_256, 8192], false),
    row("Llama-3.1-8B", Llama, [32, 4096, 14_336, 32, 8, 128, 128_256, 131_072], false),
    row("Llama-3.1-70B", Llama, [80, 8192, 28_672, 64, 8, 128, 128_256, 131_072], false),
    row("Llama-3.1-405B", Llama, [126, 16_384, 53_248, 128, 8, 128, 128_256, 131_072], false),
    row("Llama-3.2-1B", Llama, [16, 2048, 8192, 32, 8, 64, 128_256, 131_072], true),
    row("Llama-3.2-3B", Llama, [28, 3072, 8192, 24, 8, 128, 128_256, 131_072], true),
    row("Mistral-7B", Llama, [32, 4096, 14_336, 32, 8, 128, 32_000, 32_768], false),
    moe("Mixtral-8x7B", Llama, [32, 4096, 14_336, 32, 8, 128, 32_000, 32_768], [8, 2, 14_336, 0, 0]),
    moe("Mixtral-8x22B", Llama, [56, 6144, 16_384, 48, 8, 128, 32_000, 65_536], [8, 2, 16_384, 0, 0]),
    row("Qwen2.5-0.5B", Qwen2, [24, 896, 4864, 14, 2, 64, 151_936, 32_768], true),
    row("Qwen2.5-1.5B", Qwen2, [28, 1536, 8960, 12, 2, 128, 151_936, 131_072], true),
    row("Qwen2.5-3B", Qwen2, [36, 2048, 11_008, 16, 2, 128, 151_936, 32_768], true),
    row("Qwen2.5-7B", Qwen2, [28, 3584, 18_944, 28, 4, 128, 152_064, 131_072], false),
    row("Qwen2.5-14B", Qwen2, [48, 5120, 13_824, 40, 8, 128, 152_064, 131_072], false),
    row("Qwen2.5-32B", Qwen2, [64, 5120, 27_648, 40, 8, 128, 152_064, 131_072], false),
    row("Qwen2.5-72B", Qwen2, [80, 8192, 29_568, 64, 8, 128, 152_064, 131_072], false),
    row("Qwen2-7B", Qwen2, [28, 3584, 18_944, 28, 4, 128, 152_064, 131_072], false),
    row("Qwen2-72B", Qwen2, [80, 8192, 29_568, 64, 8, 128, 152_064, 131_072], false),
    row("Qwen3-0.6B", Qwen3, [28, 1024, 3072, 16, 8, 128, 151_936, 40_960], true),
    row("Qwen3-1.7B", Qwen3, [28, 2048, 6144, 16, 8, 128, 151_936, 40_960], true),
    row("Qwen3-4B", Qwen3, [36, 2560, 9728, 32, 8, 128, 151_936, 40_960], true),
    row("Qwen3-8B", Qwen3, [36, 4096, 12_288, 32, 8, 128, 151_936, 40_960], false),
    row("Qwen3-14B", Qwen3, [40, 5120, 17_408, 40, 8, 128, 151_936, 40_960], false),
    row("Qwen3-32B", Qwen3, [64, 5120, 25_600, 64, 8, 128, 151_936, 40_960], false),
    moe("Qwen3-30B-A3B", Qwen3, [48, 2048, 6144, 32, 4, 128, 151_936, 40_960], [128, 8, 768, 0, 0]),
    moe("Qwen3-235B-A22B", Qwen3, [94, 4096, 12_288, 64, 4, 128, 151_936, 40_960], [128, 8, 1536, 0, 0]),
    mla("DeepSeek-V2-Lite", DeepSeekV2Lite, [27, 2048, 10_944, 16, 16, 128, 102_400, 163_840], [64, 6, 1408, 2816, 1], [0, 512]),
    mla("DeepSeek-V2", DeepSeekV2, [60, 5120, 12_288, 128, 128, 128, 102_400, 163_840], [160, 6, 1536, 3072, 1], [1536, 512]),
    mla("DeepSeek-V3", DeepSeek, [61, 7168, 18_432, 128, 128, 128, 129_280, 163_840], [256, 8, 2048, 2048, 3], [1536, 512]),
    mla("DeepSeek-R1", DeepSeek, [61, 7168, 18_432, 128, 128, 128, 129_280, 163_840], [256, 8, 2048, 2048, 3], [1536, 512]),
    mla("Moonlight-16B-A3B", DeepSeek, [27, 2048, 11_264, 16, 16, 128, 163_840, 8192], [64, 6, 1408, 2816, 1], [0, 512]),
    mla("Kimi-K2", DeepSeek, [61, 7168, 18_432, 64, 64, 128, 163_840, 131_072], [384, 8, 2048, 2048, 1], [1536, 512]),
    // Without the norms after attention and MLP, 2h per layer.
    row("GLM-4-9B", Glm4, [40, 4096, 13_696, 32, 2, 128, 151_552, 32_768], false),
    row("GLM-Z1-9B", Glm4, [40, 4096, 13_696, 32, 2, 128, 151_552, 32_768], false),
    moe("GLM-4.5-106B-A12B", Glm45, [46, 4096, 10_944, 96, 8, 128, 151_552, 131_072], [128, 8, 1408, 1408, 1]),
    moe("GLM-4.5-Air", Glm45, [46, 4096, 10_944, 96, 8, 128, 151_552, 131_072], [128, 8, 1408, 1408, 1]),
];

/// The settings that a row represents, by Megatron's names.
pub(crate) fn settings(row: &Row) -> Vec<(Field, String)> {
    let [layers, hidden, ffn, heads, groups, head, vocabulary, positions] = row.shape;
    let mut out: Vec<(Field, String)> = Vec::new();
    let mut count = |field: Field, value: u32| out.push((field, u64::from(value).to_string()));
    count(Field::NumLayers, layers);
    count(Field::HiddenSize, hidden);
    count(Field::FfnHiddenSize, ffn);
    count(Field::NumAttentionHeads, heads);
    count(Field::KvChannels, head);
    count(Field::VocabSize, vocabulary);
    count(Field::MaxPositionEmbeddings, positions);
    if groups != heads {
        count(Field::NumQueryGroups, groups);
    }
    if let Some([experts, topk, width, shared, _]) = row.routed {
        count(Field::NumExperts, experts);
        count(Field::MoeRouterTopk, topk);
        count(Field::MoeFfnHiddenSize, width);
        if shared > 0 {
            count(Field::MoeSharedExpertIntermediateSize, shared);
        }
    }
    if let Some([query, key_value]) = row.latent {
        if query > 0 {
            count(Field::QLoraRank, query);
        }
        count(Field::KvLoraRank, key_value);
        // The same for all models of this family listed here (`Latent`).
        count(Field::QkHeadDim, 128);
        count(Field::QkPosEmbHeadDim, 64);
        count(Field::VHeadDim, 128);
    }
    if let Some([.., dense]) = row.routed
        && dense > 0
    {
        out.push((
            Field::MoeLayerFreq,
            format!("([0]*{}+[1]*{})", u64::from(dense), u64::from(layers - dense)),
        ));
    }
    style(row, &mut out);
    out.extend(modules(row).iter().map(|(field, value)| (*field, (*value).to_owned())));
    out
}

/// How the modules in transformers differ from Llama's, as [`crate::of_config`] gives it for the same model.
fn modules(row: &Row) -> &'static [(Field, &'static str)] {
    match row.kind {
        Family::Gpt => &[
            (Field::FusedQkv, "true"),
            (
                Field::ModuleVariants,
                "typed_softmax attention_dropout residual_dropout embedding_dropout gelu_new",
            ),
        ],
        Family::NeoX => {
            &[(Field::FusedQkv, "true"), (Field::ParallelResidual, "true"), (Field::RotaryPercent, "0.25")]
        }
        Family::DeepSeekV2Lite => {
            &[(Field::ConvertedExperts, "true"), (Field::ModuleVariants, "fp32_router complex_rotation")]
        }
        Family::DeepSeekV2 => &[
            (Field::ConvertedExperts, "true"),
            (Field::ModuleVariants, "fp32_grouped_router complex_rotation"),
        ],
        Family::DeepSeek => &[
            (Field::ConvertedExperts, "true"),
            (Field::NormalizedRouting, "true"),
            (Field::ModuleVariants, "fp32_sigmoid_router"),
        ],
        Family::Glm45 => &[
            (Field::ConvertedExperts, "true"),
            (Field::NormalizedRouting, "true"),
            (Field::RotaryPercent, "0.5"),
            (Field::ModuleVariants, "fp32_sigmoid_router"),
        ],
        Family::Glm4 => &[(Field::UnrecordedModules, "glm4")],
        Family::Llama if row.routed.is_some() => {
            &[(Field::ConvertedExperts, "true"), (Field::Fp32Routing, "true")]
        }
        Family::Qwen3 if row.routed.is_some() => {
            &[(Field::ConvertedExperts, "true"), (Field::NormalizedRouting, "true")]
        }
        Family::Llama | Family::Qwen2 | Family::Qwen3 => &[],
    }
}

fn style(row: &Row, out: &mut Vec<(Field, String)>) {
    let mut say = |field: Field, value: &str| out.push((field, value.to_owned()));
    // What all published decoders since Llama have in common.
    let modern = !matches!(row.kind, Family::Gpt | Family::NeoX);
    if row.shape[4] != row.shape[3] {
        say(Field::GroupQueryAttention, "true");
    }
    if row.latent.is_some() {
        say(Field::MultiLatentAttention, "true");
    }
    say(Field::UntieEmbeddingsAndOutputWeights, if row.tied { "false" } else { "true" });
    say(Field::Swiglu, if modern { "true" } else { "false" });
    say(Field::Normalization, if modern { "RMSNorm" } else { "LayerNorm" });
    say(Field::PositionEmbeddingType, if row.kind == Family::Gpt { "learned_absolute" } else { "rope" });
    say(Field::AddBiasLinear, if modern { "false" } else { "true" });
    say(Field::QkLayernorm, if row.kind == Family::Qwen3 || row.latent.is_some() { "true" } else { "false" });
    if matches!(row.kind, Family::Qwen2 | Family::Glm4 | Family::Glm45) {
        say(Field::AddQkvBias, "true");
    }
    // Pretraining of these models has no dropout; Megatron's default is 0.1.
    if modern {
        say(Field::HiddenDropout, "0");
        say(Field::AttentionDropout, "0");
    }
}
