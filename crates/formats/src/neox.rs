//! GPT-NeoX: flat YAML that looks like JSON, with DeepSpeed's keys among its own.
//! Keys and defaults: `megatron/neox_arguments/neox_args.py`, `megatron/model/transformer.py`.

use super::deepspeed;
use super::leaves::{Leaves, Scalars};
use super::reader::{Claim, Reader};
use super::signs;
use crate::{Effect, NotModelled, Origin, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};

const WHOSE: &str = "default of GPT-NeoX";

const PLAIN: &[(&str, Field)] = &[
    ("num_layers", Field::NumLayers),
    ("hidden_size", Field::HiddenSize),
    ("num_attention_heads", Field::NumAttentionHeads),
    ("seq_length", Field::SeqLength),
    ("max_position_embeddings", Field::MaxPositionEmbeddings),
    ("make_vocab_size_divisible_by", Field::MakeVocabSizeDivisibleBy),
    ("padded_vocab_size", Field::PaddedVocabSize),
    ("model_parallel_size", Field::TensorModelParallelSize),
    ("context_parallel_size", Field::ContextParallelSize),
    ("sequence_parallel", Field::SequenceParallel),
    ("rotary_pct", Field::RotaryPercent),
    ("rotary_emb_base", Field::RotaryBase),
    ("no_weight_tying", Field::UntieEmbeddingsAndOutputWeights),
    ("use_qk_layernorm", Field::QkLayernorm),
    ("hidden_dropout", Field::HiddenDropout),
    ("attention_dropout", Field::AttentionDropout),
    ("scaled_upper_triang_masked_softmax_fusion", Field::MaskedSoftmaxFusion),
    ("bias_gelu_fusion", Field::BiasGeluFusion),
    ("bias_dropout_fusion", Field::BiasDropoutFusion),
    ("rope_fusion", Field::ApplyRopeFusion),
    ("attention_softmax_in_fp32", Field::AttentionSoftmaxInFp32),
    ("apply_query_key_layer_scaling", Field::ApplyQueryKeyLayerScaling),
    ("train_iters", Field::TrainIters),
    // The setting that Pythia's files call gradient_accumulation_steps.
    ("gas", Field::NumMicroBatches),
    ("tokenizer_type", Field::TokenizerType),
    ("vocab_file", Field::VocabFile),
    ("num_nodes", Field::NumNodes),
    ("num_gpus", Field::GpusPerNode),
];

const DEFAULTS: &[(Field, &str)] = &[
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
    (Field::PositionEmbeddingType, "learned_absolute"),
    (Field::Normalization, "LayerNorm"),
    (Field::UntieEmbeddingsAndOutputWeights, "false"),
    (Field::MaskedSoftmaxFusion, "false"),
    (Field::BiasGeluFusion, "false"),
    (Field::BiasDropoutFusion, "false"),
    (Field::ApplyRopeFusion, "false"),
];

/// GPT-NeoX's YAML.
#[derive(Debug)]
pub(super) struct GptNeox;

impl Reader for GptNeox {
    fn name(&self) -> &'static str {
        "a GPT-NeoX configuration"
    }

    fn about(&self) -> &'static str {
        "model, layout and DeepSpeed's keys in one file"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        signs::any(tree, &["pipe_parallel_size", "model_parallel_size", "no_weight_tying", "gpt_j_residual"])
            .or_else(|| signs::all(tree, &["train_micro_batch_size_per_gpu", "num_layers"]))
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        PLAIN.to_vec()
    }
}

fn read(root: &Node) -> Reading {
    let scalars = Scalars::from_node(root);
    let mut leaves = Leaves::over(&scalars);
    leaves.take_all(PLAIN);
    leaves.precision("precision");
    deepspeed::keys(&mut leaves);
    if let Some(leaf) = leaves.get("pipe_parallel_size") {
        let stages = leaf.whole().map_or_else(|| leaf.value.clone(), |stages| stages.max(1).to_string());
        leaves.say(Field::PipelineModelParallelSize, &stages, leaf);
    }
    // Next-token training by default (`megatron/neox_arguments/neox_args.py:train_impl`).
    if let Some(leaf) = leaves.get("train_impl").filter(|leaf| leaf.value != "normal") {
        let what = "reinforcement learning or preference training, and the models that it holds";
        let item = NotModelled::new("train_impl", &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    attention(&mut leaves);
    mlp(&mut leaves);
    experts(&mut leaves);
    recompute(&mut leaves);
    otherwise(&mut leaves);
    leaves.pass_words("neox");
    if leaves.reading.value(Field::GlobalBatchSize).is_none() {
        leaves.state(Field::NumMicroBatches, "1", Origin::Default, WHOSE);
    }
    leaves.state_all(DEFAULTS, Origin::Default, WHOSE);
    leaves.reading.software = Some((Software::GptNeox, "a GPT-NeoX configuration".to_owned()));
    leaves.finish("a GPT-NeoX configuration")
}

fn attention(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("norm") {
        let name = if leaf.value.contains("rms") { "RMSNorm" } else { "LayerNorm" };
        leaves.say(Field::Normalization, name, leaf);
    }
    if let Some(leaf) = leaves.get("pos_emb") {
        let name = match leaf.value.as_str() {
            "rotary" => "rope",
            "learned" => "learned_absolute",
            "alibi" => "alibi",
            _ => "none",
        };
        leaves.say(Field::PositionEmbeddingType, name, leaf);
    }
    if let Some(leaf) = leaves.get("num_kv_heads") {
        leaves.switch(Field::GroupQueryAttention, true, leaf);
        leaves.take(&["num_kv_heads"], Field::NumQueryGroups);
    }
    let linear = leaves.flag("use_bias_in_attn_linear").unwrap_or(true);
    let mlp = leaves.flag("use_bias_in_mlp").unwrap_or(true);
    for (field, on) in [(Field::AddBiasLinear, linear && mlp), (Field::AddQkvBias, linear)] {
        match leaves.first(&["use_bias_in_attn_linear", "use_bias_in_mlp"]) {
            Some(leaf) => leaves.switch(field, on, leaf),
            None => leaves.state(field, &on.to_string(), Origin::Default, WHOSE),
        }
    }
    match leaves.get("attention_config") {
        Some(leaf) if leaf.value.contains("flash") => leaves.say(Field::AttentionKernel, "flash", leaf),
        Some(leaf) => leaves.say(Field::AttentionKernel, "unfused", leaf),
        None => leaves.state(
            Field::AttentionKernel,
            "unfused",
            Origin::Default,
            "GPT-NeoX without flash in attention_config",
        ),
    }
}

/// The inner width. A gated MLP has two thirds of the requested width, in two halves, each rounded up.
fn mlp(leaves: &mut Leaves<'_>) {
    let act = leaves.get("activation");
    let gated = act
        .as_ref()
        .filter(|leaf| matches!(leaf.value.as_str(), "swiglu" | "geglu" | "reglu" | "bilinear" | "glu"));
    if let Some(leaf) = gated {
        let field = if leaf.value == "geglu" { Field::QuickGeglu } else { Field::Swiglu };
        leaves.switch(field, true, leaf);
    }
    let hidden = leaves.whole("hidden_size");
    let asked = leaves.get("intermediate_size");
    let width = asked.as_ref().and_then(|leaf| leaf.whole());
    let Some(width) = width.or_else(|| hidden?.checked_mul(4)).filter(|width| *width < 1 << 32) else {
        return;
    };
    let multiple = leaves.whole("mlp_multiple_of").unwrap_or(1).clamp(1, 1 << 20);
    let half = if gated.is_some() { width * 2 / 3 / 2 } else { width };
    let width = half.div_ceil(multiple) * multiple;
    match asked {
        Some(leaf) if gated.is_some() => {
            let note = "a third of intermediate_size, rounded up to mlp_multiple_of: GPT-NeoX gives a gated MLP two thirds in two halves";
            leaves.say_noted(Field::FfnHiddenSize, &width.to_string(), leaf, note);
        }
        Some(leaf) => leaves.say(Field::FfnHiddenSize, &width.to_string(), leaf),
        None => leaves.state(
            Field::FfnHiddenSize,
            &width.to_string(),
            Origin::Derived,
            "from 4 x hidden_size, as GPT-NeoX does",
        ),
    }
}

/// Layers of another kind or arrangement (`megatron/model/transformer.py`).
fn otherwise(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("attention_config") {
        let kinds = leaf.value.split(|c: char| !(c.is_ascii_alphabetic() || c == '_'));
        let other = |kind: &&str| !matches!(*kind, "" | "all" | "global" | "flash");
        if let Some(kind) = kinds.into_iter().find(other) {
            let what = "layers other than full attention";
            lack(leaves, "attention_config", kind, Effect::Model, what);
        }
    }
    for path in ["te_columnparallel", "te_rowparallel", "te_layernorm_mlp", "te_mha", "te_fp8_mha"] {
        if leaves.yes(path).is_some() {
            lack(leaves, path, "", Effect::Memory, "layers of Transformer Engine in GPT-NeoX");
        }
    }
    if leaves.flag("use_bias_in_norms") == Some(false)
        && leaves.reading.value(Field::Normalization) != Some("RMSNorm")
    {
        lack(leaves, "use_bias_in_norms", "false", Effect::Model, "norms without biases in GPT-NeoX");
    }
    if let Some(leaf) = leaves.yes("gpt_j_residual") {
        leaves.switch(Field::ParallelResidual, true, leaf);
        if leaves.yes("gpt_j_tied").is_some() {
            lack(leaves, "gpt_j_tied", "", Effect::Model, "one norm before attention and MLP in GPT-NeoX");
        }
    }
    leaves.pass("gpt_j_residual");
    // `megatron/mpu/mappings.py:_reduce` returns before it casts if the group has a single rank.
    if leaves.whole("model_parallel_size").unwrap_or(1) == 1 {
        leaves.pass("fp32_allreduce");
    }
}

fn lack(leaves: &mut Leaves<'_>, path: &str, value: &str, effect: Effect, what: &str) {
    let span = leaves.get(path).and_then(|leaf| leaf.span);
    leaves.reading.not_modelled.push(NotModelled::new(path, value, effect, what).at_some(span));
}

fn experts(leaves: &mut Leaves<'_>) {
    if leaves.whole("moe_num_experts").is_none_or(|experts| experts < 2) {
        // Settings of experts that do not exist.
        return leaves.pass_below(&["moe_"]);
    }
    leaves.take_all(&[
        ("moe_num_experts", Field::NumExperts),
        ("moe_top_k", Field::MoeRouterTopk),
        ("moe_expert_interval", Field::MoeLayerFreq),
    ]);
    leaves.state(Field::MoeRouterTopk, "1", Origin::Default, WHOSE);
    // NeoX 2 with `moe_type: deepspeed` (`megatron/model/moe.py` of June 2024), and
    // megablocks' experts that drop tokens.
    let dropping = leaves
        .get("moe_type")
        .filter(|leaf| leaf.value == "deepspeed")
        .or_else(|| leaves.yes("moe_token_dropping"));
    if let Some(leaf) = dropping {
        let (path, value) = (leaf.path.clone(), leaf.value.clone());
        lack(leaves, &path, &value, Effect::Memory, "experts that drop tokens beyond their capacity");
    }
}

fn recompute(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.yes("checkpoint_activations") {
        leaves.recompute_all(leaf);
        leaves.take(&["checkpoint_num_layers"], Field::RecomputeNumLayers);
        leaves.state(Field::RecomputeNumLayers, "1", Origin::Default, WHOSE);
        leaves.turn_on("partition_activations", Field::DistributeSavedActivations);
    }
    for path in &["checkpoint_num_layers", "partition_activations", "mlp_multiple_of", "activation"] {
        leaves.pass(path);
    }
}
