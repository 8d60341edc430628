//! Hugging Face `config.json`: the shape of a model and no more.
//!
//! What an architecture fixes in code (biases, norms, gated MLP, tying) is not in the file; it is
//! stated here per `model_type` after the model code of the transformers library (version 4.5x).

use super::architecture::{Bias, GPT2, LLAMA, PARALLEL, Traits, is_foreign, traits as traits_of};
use crate::formats::leaves::{Leaf, Leaves, Scalars};
use crate::{Origin, Question, Reading};
use shardscope_config_tree::Node;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

/// Keys that hold the same in every architecture.
pub(in crate::formats) const PLAIN: &[(&[&str], Field)] = &[
    (&["num_hidden_layers", "n_layer", "n_layers", "num_layers"], Field::NumLayers),
    (&["hidden_size", "n_embd", "d_model"], Field::HiddenSize),
    (&["num_attention_heads", "n_head", "n_heads"], Field::NumAttentionHeads),
    (&["vocab_size"], Field::VocabSize),
    (
        &["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"],
        Field::MaxPositionEmbeddings,
    ),
    (&["rope_theta", "rotary_emb_base"], Field::RotaryBase),
    (&["rotary_pct", "partial_rotary_factor"], Field::RotaryPercent),
];

/// Reads a `config.json`.
pub(in crate::formats) fn read(root: &Node) -> Reading {
    let inner = ["text_config", "language_config", "llm_config", "thinker_config.text_config"];
    let node = inner.iter().find_map(|path| root.at(path)).filter(|_| !shaped(root)).unwrap_or(root);
    let model_type = [node, root].into_iter().find_map(|node| node.get("model_type")?.word()).unwrap_or("");
    let plain_type = model_type.strip_suffix("_text").unwrap_or(model_type);
    let scalars = Scalars::of(node);
    let mut leaves = Leaves::over(&scalars);
    if is_foreign(plain_type) || root.get("is_encoder_decoder").and_then(Node::flag) == Some(true) {
        foreign(&mut leaves, root, model_type);
        return leaves.reading;
    }
    for (paths, field) in PLAIN {
        leaves.take(paths, *field);
    }
    let traits = traits_of(plain_type).unwrap_or_else(|| guessed(&mut leaves, root, model_type));
    let why = if model_type.is_empty() {
        "as its keys suggest".to_owned()
    } else {
        format!("the code of {model_type}")
    };
    attention(&mut leaves, plain_type, traits, &why);
    mlp(&mut leaves, plain_type, traits, &why);
    experts(&mut leaves, plain_type);
    ends(&mut leaves, plain_type, traits, &why);
    dropout(&mut leaves, &why);
    precision(&mut leaves, root);
    let one_norm =
        leaves.flag("parallel_attn") == Some(true) && leaves.flag("new_decoder_architecture") != Some(true);
    if let Some(what) = traits.lacking.or(if one_norm { PARALLEL } else { None }) {
        let message = format!("{model_type} has {what}, not estimated yet");
        leaves.reading.diagnostics.push(Diagnostic::warning(Code::NotEstimated, message));
    }
    ask(&mut leaves);
    for path in &["model_type", "architectures", "transformers_version", "torch_dtype", "dtype"] {
        leaves.pass(path);
    }
    leaves.finish("a Hugging Face model configuration")
}

fn shaped(node: &Node) -> bool {
    ["hidden_size", "n_embd", "d_model"].iter().any(|key| node.get(key).is_some())
}

fn foreign(leaves: &mut Leaves<'_>, root: &Node, model_type: &str) {
    let message = format!("{model_type} is no decoder-only transformer of attention and MLP layers");
    let error = Diagnostic::error(Code::NotEstimated, message).hint("such models are not estimated yet");
    leaves.reading.diagnostics.push(error.at_some(root.get("model_type").map(|node| node.span)));
}

/// For an architecture that is not known: told by its keys.
fn guessed(leaves: &mut Leaves<'_>, root: &Node, model_type: &str) -> Traits {
    let rms = leaves.has("rms_norm_eps");
    let message = if model_type.is_empty() {
        "the configuration names no model_type; biases, norms and MLP are told by its keys".to_owned()
    } else {
        format!("the architecture {model_type} is not known; its biases, norms and MLP are told by its keys")
    };
    let span = root.get("model_type").map(|node| node.span);
    leaves.reading.diagnostics.push(Diagnostic::warning(Code::UnknownArchitecture, message).at_some(span));
    Traits { rms, gated: rms, ..if rms { LLAMA } else { GPT2 } }
}

fn attention(leaves: &mut Leaves<'_>, kind: &str, traits: Traits, why: &str) {
    let heads = leaves.first(&["num_attention_heads", "n_head", "n_heads"]).and_then(|leaf| leaf.whole());
    let latent = leaves.get("kv_lora_rank");
    let groups = leaves.first(&["num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads"]);
    let multi_query = leaves.yes("multi_query");
    let grouped = !matches!(kind, "falcon" | "refinedweb" | "refinedwebmodel")
        || leaves.flag("new_decoder_architecture") == Some(true);
    if let Some(leaf) = &latent {
        leaves.switch(Field::MultiLatentAttention, true, leaf);
        leaves.take_all(&[
            ("kv_lora_rank", Field::KvLoraRank),
            ("q_lora_rank", Field::QLoraRank),
            ("qk_nope_head_dim", Field::QkHeadDim),
            ("qk_rope_head_dim", Field::QkPosEmbHeadDim),
            ("v_head_dim", Field::VHeadDim),
        ]);
    } else if let Some(leaf) = groups.filter(|_| grouped) {
        if leaf.whole() != heads {
            leaves.query_groups(&leaf.value, leaf);
        }
    } else if let Some(leaf) = multi_query {
        leaves.query_groups("1", leaf);
    }
    if latent.is_none() {
        leaves.take(&["head_dim"], Field::KvChannels);
    }
    if matches!(kind, "gemma" | "gemma2" | "gemma3") {
        leaves.state(Field::KvChannels, "256", Origin::Default, why);
    }
    bias(leaves, traits, why);
    let norms = leaves.first(&["use_qk_norm", "qk_layernorm"]).filter(|leaf| leaf.flag().is_some());
    match norms {
        Some(leaf) => leaves.switch(Field::QkLayernorm, leaf.flag() == Some(true), leaf),
        None if traits.qk_norm => leaves.state(Field::QkLayernorm, "true", Origin::Derived, why),
        None => {}
    }
    if kind == "gpt_oss" {
        leaves.state(Field::SoftmaxType, "learnable", Origin::Derived, why);
    }
}

fn bias(leaves: &mut Leaves<'_>, traits: Traits, why: &str) {
    let said = |leaf: &Leaf| leaf.flag();
    let every = leaves.first(&["bias", "use_bias"]).filter(|leaf| said(leaf).is_some());
    let of_qkv =
        leaves.first(&["attention_bias", "qkv_bias", "use_qkv_bias"]).filter(|leaf| said(leaf).is_some());
    let of_mlp = leaves.flag("mlp_bias").unwrap_or(false);
    let stated = every.as_ref().or(of_qkv.as_ref());
    let (all, qkv) =
        match (every.as_ref().and_then(|leaf| said(leaf)), of_qkv.as_ref().and_then(|leaf| said(leaf))) {
            (Some(on), _) => (on, on),
            (None, Some(true)) => (of_mlp || traits.bias == Bias::All, true),
            (None, Some(false)) => (false, false),
            (None, None) => (traits.bias == Bias::All, traits.bias != Bias::None),
        };
    for (field, on) in [(Field::AddBiasLinear, all), (Field::AddQkvBias, qkv)] {
        match stated {
            Some(leaf) => leaves.switch(field, on, leaf),
            None => leaves.state(field, &on.to_string(), Origin::Derived, why),
        }
    }
}

fn mlp(leaves: &mut Leaves<'_>, kind: &str, traits: Traits, why: &str) {
    let acts = ["hidden_act", "hidden_activation", "activation_function", "act_fn"];
    let act = leaves.first(&acts).map(|leaf| leaf.value.clone()).unwrap_or_default();
    let field = match (traits.gated, act.as_str()) {
        (true, act) if act.starts_with("gelu") => Some(Field::QuickGeglu),
        (true, _) => Some(Field::Swiglu),
        (false, "relu2") => Some(Field::SquaredRelu),
        (false, _) => None,
    };
    if let Some(field) = field {
        leaves.state(field, "true", Origin::Derived, why);
    }
    let width = match kind {
        "llama4" => &["intermediate_size_mlp", "intermediate_size"][..],
        _ => &["intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"],
    };
    if leaves.take(width, Field::FfnHiddenSize) {
        return;
    }
    let ratio = leaves.whole("expansion_ratio").unwrap_or(4);
    let hidden = leaves.first(&["hidden_size", "n_embd", "d_model"]).and_then(|leaf| leaf.whole());
    if let Some(width) = hidden.and_then(|hidden| hidden.checked_mul(ratio)) {
        leaves.state(
            Field::FfnHiddenSize,
            &width.to_string(),
            Origin::Default,
            &format!("{ratio} x hidden_size, {why}"),
        );
    }
}

fn experts(leaves: &mut Leaves<'_>, kind: &str) {
    let names = ["n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"];
    let Some(experts) = leaves.first(&names).filter(|leaf| leaf.whole().is_none_or(|count| count > 1)) else {
        return;
    };
    leaves.take(&names, Field::NumExperts);
    leaves.take(&["num_experts_per_tok", "experts_per_token", "moe_topk", "moe_k"], Field::MoeRouterTopk);
    let one = ["moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"];
    leaves.take(&one, Field::MoeFfnHiddenSize);
    let width = leaves.first(&one).or_else(|| leaves.get("intermediate_size"));
    if let Some(leaf) = &width {
        leaves.say(Field::MoeFfnHiddenSize, &leaf.value, leaf);
    }
    if let Some(leaf) = leaves.get("shared_expert_intermediate_size") {
        leaves.say(Field::MoeSharedExpertIntermediateSize, &leaf.value, leaf);
        leaves.state(
            Field::MoeSharedExpertGate,
            if kind == "qwen2_moe" { "true" } else { "false" },
            Origin::Derived,
            "the code of qwen2_moe",
        );
    }
    let shared = leaves.get("n_shared_experts");
    if let (Some(leaf), Some(width)) = (shared, width.as_ref().and_then(|leaf| leaf.whole())) {
        let all = leaf.whole().and_then(|count| count.checked_mul(width)).unwrap_or(0);
        leaves.say_noted(
            Field::MoeSharedExpertIntermediateSize,
            &all.to_string(),
            leaf,
            "n_shared_experts x moe_intermediate_size",
        );
    }
    if let Some(leaf) = width.as_ref().filter(|_| kind == "llama4") {
        leaves.say_noted(Field::MoeSharedExpertIntermediateSize, &leaf.value, leaf, "one shared expert");
    }
    if let Some(pattern) = pattern(leaves) {
        leaves.say_noted(
            Field::MoeLayerFreq,
            &pattern,
            experts,
            "which layers have experts, from the configuration",
        );
    }
    if leaves.text("scoring_func") == Some("sigmoid") {
        leaves.pass("topk_method");
    }
    leaves.take(&["num_nextn_predict_layers"], Field::MtpNumLayers);
}

/// The layers with experts as a list of 0 and 1; none when all have them.
fn pattern(leaves: &mut Leaves<'_>) -> Option<String> {
    /// Most layers of a model.
    const MOST: u64 = 4096;
    let names = ["num_hidden_layers", "n_layer", "num_layers"];
    let layers = leaves.first(&names)?.whole().filter(|layers| *layers <= MOST)?;
    let dense_first = leaves.whole("first_k_dense_replace").unwrap_or(0);
    let every = leaves.whole("moe_layer_freq").unwrap_or(1).max(1);
    let step = leaves.first(&["decoder_sparse_step", "interleave_moe_layer_step"]);
    let step = step.and_then(|leaf| leaf.whole()).unwrap_or(1).max(1);
    let dense = leaves.text("mlp_only_layers").unwrap_or_default();
    let mut dense_layers: Vec<u64> = Vec::new();
    for layer in dense.split(['[', ',', ']', ' ']) {
        dense_layers.extend(layer.parse::<u64>().ok());
    }
    let moe = |layer: u64| {
        let late = layer >= dense_first && layer.is_multiple_of(every);
        late && (layer + 1).is_multiple_of(step) && !dense_layers.contains(&layer)
    };
    if (0..layers).all(moe) {
        return None;
    }
    let first_only = (0..layers).all(|layer| moe(layer) == (layer >= dense_first));
    if first_only {
        return Some(format!("([0]*{dense_first}+[1]*{})", layers.saturating_sub(dense_first)));
    }
    let mut list = String::from("[");
    for layer in 0..layers {
        if layer > 0 {
            list.push(',');
        }
        list.push(if moe(layer) { '1' } else { '0' });
    }
    list.push(']');
    Some(list)
}

fn ends(leaves: &mut Leaves<'_>, kind: &str, traits: Traits, why: &str) {
    let norm = if traits.rms { "RMSNorm" } else { "LayerNorm" };
    leaves.state(Field::Normalization, norm, Origin::Derived, why);
    let position = match leaves.flag("alibi") {
        Some(true) => "alibi",
        _ => traits.position,
    };
    let position = if kind == "mpt" && leaves.flag("attn_config.alibi") == Some(false) {
        "learned_absolute"
    } else {
        position
    };
    leaves.state(Field::PositionEmbeddingType, position, Origin::Derived, why);
    match leaves.get("tie_word_embeddings").filter(|leaf| leaf.flag().is_some()) {
        Some(leaf) => {
            leaves.switch(Field::UntieEmbeddingsAndOutputWeights, leaf.flag() == Some(false), leaf);
        }
        None => {
            leaves.state(
                Field::UntieEmbeddingsAndOutputWeights,
                &(!traits.tied).to_string(),
                Origin::Default,
                why,
            );
        }
    }
}

fn dropout(leaves: &mut Leaves<'_>, why: &str) {
    leaves
        .take(&["hidden_dropout", "resid_pdrop", "resid_dropout", "residual_dropout"], Field::HiddenDropout);
    leaves.take(&["attention_dropout", "attn_pdrop", "attn_dropout"], Field::AttentionDropout);
    leaves.state_all(&[(Field::HiddenDropout, "0"), (Field::AttentionDropout, "0")], Origin::Default, why);
}

/// The checkpoint's format, proposed for training where nothing else gives one.
fn precision(leaves: &mut Leaves<'_>, root: &Node) {
    let dtype = ["torch_dtype", "dtype"].iter().find_map(|key| root.get(key)?.word()).unwrap_or("bfloat16");
    let field = if dtype == "float16" { Field::Fp16 } else { Field::Bf16 };
    leaves.state(field, "true", Origin::Default, "as the checkpoint, unless another text says otherwise");
}

/// What a model's shape leaves open.
fn ask(leaves: &mut Leaves<'_>) {
    /// A sequence that most models are trained on.
    const USUAL: u64 = 4096;
    let longest = leaves.reading.count(Field::MaxPositionEmbeddings);
    let questions = [
        (
            Field::SeqLength,
            "On sequences of how many tokens is it trained?",
            longest.unwrap_or(USUAL).min(USUAL),
        ),
        (Field::MicroBatchSize, "How many sequences has a micro-batch?", 1),
    ];
    for (field, prompt, proposal) in questions {
        leaves.reading.questions.push(Question {
            name: field.name().to_owned(),
            prompt: prompt.to_owned(),
            choices: Vec::new(),
            proposal: Some(proposal.to_string()),
        });
    }
}
