//! One configuration read: what the model counts, what shape it has, and what of it is not estimated.

use shardscope_config_tree::Node;

use crate::evaluate::{Evaluation, MOST_LAYERS, Stop, Used};
use crate::gap::Gap;
use crate::read_shape::shape;
use crate::rules::{Defaults, definitions};
use crate::shape::{Arrangement, Parts, Shape};
use crate::tower::Tower;

/// Keys under which composite configurations keep their text model.
const TEXT_KEYS: [&str; 5] =
    ["text_config", "llm_config", "language_config", "thinker_config.text_config", "decoder_config"];

/// The rules for a configuration whose type is not known.
const NAMELESS: &str = "nameless";

/// Reason why a configuration is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It names no model type.
    Nameless,
    /// A model type without rules.
    UnknownType(String),
    /// Its figures cannot be had.
    Stopped(Stop),
}

/// A model as its configuration describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Architecture {
    /// The model type whose rules it was read by: that of the text model, in a composite one.
    pub model_type: String,
    /// Parameters, exactly as the library counts them when it builds the model: embeddings and output layer
    /// included, tied ones once, multi-token prediction and other modalities left out.
    pub parameters: u64,
    /// Parameters that one token meets.
    pub active: u64,
    /// Parameters by part.
    pub parts: Parts,
    /// Its sizes.
    pub shape: Shape,
    /// How its modules are arranged.
    pub arrangement: Arrangement,
    /// Where its modules differ from Llama's beyond that, by the names of the setting `module_variants`.
    pub variants: Vec<String>,
    /// Operations of its modules beyond Llama's that keep nothing, by the names of the setting `kernel_variants`.
    pub operations: Vec<String>,
    /// What of it is not estimated.
    pub gaps: Vec<Gap>,
    /// What Megatron's layers count for the same shape: the engine's count.
    pub in_megatron: u64,
    /// Configurations of other modalities beside the text model's, which no figure counts.
    pub left_out: Vec<String>,
    /// The vision tower among them, where its parameters are known.
    pub tower: Option<Tower>,
    /// The keys that figures come from.
    pub used: Vec<Used>,
}

impl Architecture {
    /// Reads the configuration at `root`.
    ///
    /// # Errors
    /// No model type, one without rules, or a key that is missing or makes no sense.
    pub fn read(root: &Node) -> Result<Self, Refusal> {
        let whole_type = type_of(root).unwrap_or("");
        let defaults = Defaults::for_model_type(whole_type);
        // An empty map under such a key is a placeholder that some conversions leave.
        let inner = TEXT_KEYS.iter().find_map(|key| root.at(key)).filter(|node| !node.entries().is_empty());
        // The part's own type, else the whole's; a part without a type gets that of the composite's rules below.
        let stated = inner.and_then(type_of).or(if inner.is_none() { Some(whole_type) } else { None });
        let stated = stated.filter(|name| definitions(name).is_some());
        let model_type = stated.or(defaults.text_type()).unwrap_or(whole_type);
        if model_type.is_empty() {
            return Err(Refusal::Nameless);
        }
        let Some(definitions) = definitions(model_type) else {
            return Err(Refusal::UnknownType(inner.and_then(type_of).unwrap_or(model_type).to_owned()));
        };
        let composite = defaults.text_type().is_some();
        // Keys of the text model are looked up in its own part only: a composite has equal keys of other modalities.
        let place = inner.unwrap_or(root);
        // Whether the embeddings are tied is said of the whole, also where the text model is a part of it.
        let tied = if inner.is_some() {
            let whole =
                root.get("tie_word_embeddings").and_then(Node::flag).or(defaults.flag("tie_word_embeddings"));
            // Files from before version 5 say it of the text model alone; some types still ask that.
            let asks = defaults.flag("tied_by_text_model") == Some(true) && whole != Some(true);
            let part = place.get("tie_word_embeddings").and_then(Node::flag);
            if asks {
                part.or(Defaults::for_model_type(model_type).flag("tie_word_embeddings")).or(whole)
            } else {
                whole
            }
        } else {
            None
        };
        let evaluation = Evaluation::new(definitions, Defaults::for_model_type(model_type), place, tied);
        let mut read = sizes(&evaluation, model_type).map_err(Refusal::Stopped)?;
        // Ovis2 builds the output layer from sizes that the whole states; no rule counts that.
        let apart = defaults.flag("output_layer_of_its_own") == Some(true);
        let own = root.get("hidden_size").and_then(Node::whole);
        if apart && inner.is_some() && own != Some(read.shape.hidden) {
            return Err(Refusal::Stopped(Stop::Unfit("hidden_size".to_owned())));
        }
        read.left_out = towers(root);
        read.tower = Tower::read(root, whole_type, read.shape.hidden);
        if inner.is_some() && !composite && !whole_type.is_empty() && read.left_out.is_empty() {
            // A wrapper that is not known: what it puts around the text model is not either.
            read.left_out.push(whole_type.to_owned());
        }
        if composite && read.left_out.is_empty() {
            // Written or not, the library builds it.
            read.left_out.push(VISION.to_owned());
        }
        for part in evaluation.words("beside").map_err(Refusal::Stopped)? {
            if !read.left_out.contains(&part) {
                read.left_out.push(part);
            }
        }
        Ok(read)
    }

    /// Reads the configuration at `root` by its keys alone, as that of a decoder whose type is not known:
    /// whether it has biases, norms of one kind or another and a gated MLP is told by the keys that are there.
    ///
    /// # Errors
    /// A key that is missing or makes no sense.
    pub fn by_keys(root: &Node) -> Result<Self, Refusal> {
        let definitions = definitions(NAMELESS).ok_or(Refusal::Nameless)?;
        let evaluation = Evaluation::new(definitions, Defaults::default(), root, None);
        sizes(&evaluation, "").map_err(Refusal::Stopped)
    }

    /// The gaps that stop an estimate: layers of another kind, and whatever makes the engine's count another one
    /// than the library's by more than one in a thousand. Others are small parts that are left out.
    #[must_use]
    pub fn stopping(&self) -> Vec<Gap> {
        // What a token meets is less than all, and what is left out mostly a part of it.
        let off = self.in_megatron.abs_diff(self.parameters) > self.active.min(self.parameters) / 1000;
        self.gaps.iter().copied().filter(|gap| gap.is_another_layer() || (off && gap.is_counted())).collect()
    }

    /// Whether it is of a type of which recorded layers show what its modules keep for the backward pass.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        RECORDED.split_ascii_whitespace().any(|name| name == self.model_type)
    }

    /// What stands beside the language model and has no figures: all of [`Self::left_out`] but a vision tower whose parameters
    /// are known.
    pub fn without_figures(&self) -> impl Iterator<Item = &str> {
        let known = |key: &&str| match &self.tower {
            Some(tower) => *key != VISION && !(tower.audio && *key == AUDIO),
            None => true,
        };
        self.left_out.iter().map(String::as_str).filter(known)
    }
}

/// Types whose layers were recorded in transformers and keep what the engine says, to the byte
/// (`tests/data/activations`), and those that share their modules. The empty one is what is read by its keys: Llama's.
const RECORDED: &str = "llama mistral ministral mixtral qwen2 qwen2_moe qwen2_vl_text qwen2_5_vl_text \
    qwen2_5_omni_text qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text qwen3_5_text qwen3_5_moe_text qwen3_next gemma \
    gemma2 gemma3_text phi3 gpt_neox granite smollm3 hunyuan_v1_dense arcee exaone4 starcoder2 olmo2 olmo3 \
    olmoe flex_olmo yi internlm gpt_oss glm glm4 ernie4_5 nemotron granitemoe stablelm cohere cohere2 phi opt gpt2 \
    seed_oss deepseek_v3 kimi_k2 deepseek_v2 glm4_moe glm4v_moe_text glm4_moe_lite minimax_m2 dots1 hunyuan_v1_moe \
    solar_open exaone_moe hy_v3 cwm granitemoeshared youtu llama4_text ernie4_5_moe phimoe granitemoehybrid \
    bamba falcon_h1 nemotron_h bloom gptj \
    lfm2 lfm2_moe ministral3 gpt_bigcode jais2 vaultgemma minicpm3 mellum \
    t5 mt5 olmo apertus helium mpt gpt_neo falcon mistral4 internlm3 iquestcoder hyperclovax gemma4_text gemma4_unified_text";

/// Under which key composite configurations keep a vision tower's.
const VISION: &str = "vision_config";
/// The same of an audio tower.
const AUDIO: &str = "audio_config";

fn type_of(node: &Node) -> Option<&str> {
    node.get("model_type")?.word()
}

/// The parts of a composite configuration that are no text model.
fn towers(root: &Node) -> Vec<String> {
    let other = |key: &str| {
        let modal = ["vision", "audio", "image", "video", "speech", "vit", "perceiver", "qformer"];
        modal.iter().any(|word| key.contains(word)) && (key.ends_with("_config") || key.ends_with("_tower"))
    };
    // A null or empty configuration is a modality that this model has not.
    let maps = root.entries().iter().filter(|entry| !entry.node.entries().is_empty());
    maps.filter(|entry| other(&entry.key)).map(|entry| entry.key.clone()).collect()
}

fn sizes(e: &Evaluation<'_>, model_type: &str) -> Result<Architecture, Stop> {
    let layers = e.size("L")?;
    if layers == 0 || layers > MOST_LAYERS {
        return Err(Stop::Unfit("num_hidden_layers".to_owned()));
    }
    let shape = shape(e, layers)?;
    let parts = Parts {
        embedding: e.size("embedding")?.checked_add(e.size("positions")?).ok_or(Stop::TooLarge)?,
        layers: e.size("layers")?,
        final_norm: e.size("final_norm")?,
        output_layer: e.size("head")?,
        other: e.size("more")?,
    };
    let parameters = e.size("total")?;
    let in_megatron = crate::megatron::parameters(&shape).ok_or(Stop::TooLarge)?;
    let gaps = gaps(e, &shape, in_megatron == parameters)?;
    Ok(Architecture {
        model_type: model_type.to_owned(),
        parameters,
        active: e.size("active")?,
        parts,
        arrangement: Arrangement {
            fused_qkv: e.holds_at("fused_qkv", 0)?,
            fused_gate_up: e.holds_at("fused_gate_up", 0)?,
            parallel_residual: e.holds_at("parallel", 0)?,
            post_norms: shape.norms > 2,
            norms_behind: e.holds("norms_behind")?,
            fp32_norms: e.holds("fp32_norms")?,
            wide_norms: e.holds("wide_norms")?,
            fp32_rotation: e.holds("fp32_rotation")?,
            rotary_percent: e.size_at("rotary_percent", 0)?,
            normalized_routing: e.holds("normalized_routing")?,
            converted_experts: e.holds("converted")?,
            fp32_routing: e.holds("fp32_routing")?,
            attention_softcap: e.holds("attn_logit_softcapping")?,
            final_softcap: e.holds("final_logit_softcapping")?,
        },
        variants: variants(e)?,
        operations: e.words("operations")?,
        shape,
        gaps,
        in_megatron,
        left_out: Vec::new(),
        tower: None,
        used: e.used(),
    })
}

/// Where modules differ: what the type says, and what follows from keys of the configuration.
fn variants(e: &Evaluation<'_>) -> Result<Vec<String>, Stop> {
    let mut variants = e.words("variants")?;
    for (name, variant) in [
        ("head_bias", "head_bias"),
        ("drops_attention", "attention_dropout"),
        ("drops_residual", "residual_dropout"),
        ("drops_embedding", "embedding_dropout"),
    ] {
        if e.holds(name)? {
            variants.push(variant.to_owned());
        }
    }
    Ok(variants)
}

/// What of it the engine has no layers for: what the rules name, what the sizes show, and, so that nothing is
/// forgotten, whatever else makes the engine's count another one.
fn gaps(e: &Evaluation<'_>, shape: &Shape, as_counted: bool) -> Result<Vec<Gap>, Stop> {
    let mut gaps: Vec<Gap> = Vec::new();
    for word in e.words("gaps")? {
        gaps.push(Gap::called(&word).ok_or(Stop::Unfit(word))?);
    }
    let sign = |index: u64| {
        usize::try_from(index).ok().and_then(|at| shape.mixers.as_bytes().get(at)).copied().unwrap_or(b'*')
    };
    for (name, of_full) in [
        ("a", None),
        ("k", shape.full.map(|full| full.groups)),
        ("d", shape.full.map(|full| full.width)),
        ("f", None),
    ] {
        let Ok(first) = e.size_at(name, 0) else { continue };
        // Attention to the whole sequence may have sizes of its own.
        let wide = |index| shape.double_wide && name == "f" && matches!(sign(index), b'A' | b'W');
        let stated = |index| {
            let whole = of_full.filter(|_| matches!(sign(index), b'*' | b'A')).unwrap_or(first);
            if wide(index) { 2 * whole } else { whole }
        };
        if (0..shape.layers).any(|index| e.size_at(name, index) != Ok(stated(index))) {
            gaps.push(Gap::SizesPerLayer);
        }
    }
    let heads = if shape.norms_over_heads { shape.heads + shape.groups } else { 2 } * shape.head_width;
    let norms = e.size_at("qk_norm", 0)?;
    let conditions = [
        (Gap::PostNorms, shape.norms > 2),
        (Gap::ParallelBlocks, shape.norms == 1 && shape.blocks.is_none()),
        (
            Gap::NormsOverHeads,
            shape.latent.is_none() && norms > 0 && norms != heads * shape.norm_weights && gaps.is_empty(),
        ),
        (
            Gap::Biases,
            !matches!(shape.biases, [false, false, false] | [true, false, false] | [true, true, true]),
        ),
        (Gap::ValueWidth, shape.latent.is_none() && e.size_at("dv", 0)? != shape.head_width),
    ];
    for (gap, there) in conditions {
        if there && !gaps.contains(&gap) {
            gaps.push(gap);
        }
    }
    // The last resort: something is counted by the library and by no gap, so it must not pass unsaid.
    if !as_counted && !gaps.iter().any(|gap| gap.is_counted()) {
        gaps.push(Gap::OtherParts);
    }
    gaps.sort();
    gaps.dedup();
    Ok(gaps)
}
