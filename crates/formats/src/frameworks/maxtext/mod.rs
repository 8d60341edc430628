//! MaxText, in JAX. Keys and defaults: `src/maxtext/configs/base.yml`, `src/maxtext/configs/types.py`.

mod compiled;
mod mesh;
mod named;
mod remat;
mod stated;

use super::jax::{self, Lacking};
use crate::beneath::overridden;
use crate::leaves::{Leaves, Scalars};
use crate::llama_like::LLAMA_LAYER;
use crate::named::take_model;
use crate::reader::{Claim, Command, Reader};
use crate::signs;
use crate::{Argument, Effect, Origin, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};
use stated::WHOSE;

/// Keys that map directly to a setting. Sizes are read in code, as one key scales them all.
const PLAIN: &[(&str, Field)] = &[
    ("max_target_length", Field::SeqLength),
    ("vocab_size", Field::VocabSize),
    ("head_dim", Field::KvChannels),
    ("steps", Field::TrainIters),
    ("gradient_accumulation_steps", Field::NumMicroBatches),
    ("use_qk_norm", Field::QkLayernorm),
    ("attention_bias", Field::AddQkvBias),
];
/// Sizes, the scale of `get_individual_scales` that applies to each, and the value in `base.yml`.
const SIZES: [(&str, Field, Scale, u64); 4] = [
    ("base_num_decoder_layers", Field::NumLayers, Scale::Layers, 16),
    ("base_emb_dim", Field::HiddenSize, Scale::Width, 2048),
    ("base_num_query_heads", Field::NumAttentionHeads, Scale::Heads, 16),
    ("base_mlp_dim", Field::FfnHiddenSize, Scale::Heads, 7168),
];
/// `base_num_kv_heads` of `base.yml`.
const KV_HEADS: u64 = 16;
/// Blocks whose layers are arranged as in Llama (`DecoderBlockType`).
const BLOCKS: [&str; 9] =
    ["default", "llama2", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "deepseek", "gpt3"];

/// Prefixes of words of its command that no other trainer has
/// (`python3 -m maxtext.trainers.pre_train.train base.yml steps=…`).
const OWN: [&str; 8] = [
    "per_device_batch_size=",
    "max_target_length=",
    "base_output_directory=",
    "remat_policy=",
    "compile_topology=",
    "ici_",
    "dcn_",
    "global_parameter_scale=",
];

/// A size that `global_parameter_scale` doubles.
#[derive(Clone, Copy)]
enum Scale {
    Layers,
    Width,
    /// Heads and the inner width of the MLP.
    Heads,
}

/// The number of times a size is doubled: every three powers of two in parameters double each size once, a first
/// remaining power doubles heads and the MLP, a second one also the width (`get_individual_scales`).
const fn doublings(scale: u64, which: Scale) -> u32 {
    let log = scale.ilog2();
    let left = log % 3;
    log / 3
        + match which {
            Scale::Layers => 0,
            Scale::Width => (left > 1) as u32,
            Scale::Heads => (left > 0) as u32,
        }
}

/// MaxText's settings files, and the words of its command.
#[derive(Debug)]
pub struct MaxText;

impl Reader for MaxText {
    fn name(&self) -> &'static str {
        "a configuration of MaxText"
    }

    fn about(&self) -> &'static str {
        "MaxText: shape, experts, batch, mesh, rematerialization and command-line overrides; steps unlike those recorded from XLA are not modelled"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        // Files that define only a model (`configs/models/`), and those that build on `base.yml`.
        const SIGNS: [&[&str]; 4] = [
            &["per_device_batch_size", "max_target_length"],
            &["base_emb_dim"],
            &["base_config"],
            &["mesh_axes", "logical_axis_rules"],
        ];
        SIGNS.iter().find_map(|signs| signs::all(tree, signs))
    }

    fn read(&self, root: &Node) -> Reading {
        read(&Scalars::from_node(root), false)
    }

    fn read_beneath(&self, root: &Node, command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        // All of its own defaults (`base.yml`), which are known here and beneath a model's file.
        if root.get("logical_axis_rules").is_some() {
            return None;
        }
        let (patched, left) = overridden(root, command.words)?;
        Some((self.read(&patched), left))
    }

    fn is_word(&self, word: &str) -> bool {
        OWN.iter().any(|start| word.starts_with(start))
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let count = command.words.iter().filter(|word| self.is_word(&word.text)).count();
        (count >= 2).then_some(Claim::Own(count))
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        // Every `key=value` is one of its keys.
        read(&Scalars::of_words_under(words, &[""]), true)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        PLAIN.to_vec()
    }
}

/// Reads the keys; `whole` means that missing keys have their defaults in `base.yml`, as in a command.
fn read(scalars: &Scalars, whole: bool) -> Reading {
    let mut leaves = Leaves::over(scalars);
    let named = leaves.get("model_name").filter(|leaf| leaf.value != "default");
    let whole = whole && named.is_none();
    if let Some(leaf) = named {
        take_model(&mut leaves.reading, named::on_the_hub(&leaf.value), &leaf.path, leaf.span);
        if named::is_known(&leaf.value) {
            // Its implementations of these models use full causal attention.
            let windows = [Field::AttentionWindow, Field::ChunkedAttention, Field::MixerPattern];
            leaves.reading.keep(&|found| !windows.contains(&found.field));
        }
    }
    leaves.take_all(PLAIN);
    // A training file builds on `base.yml`; the command may name its model.
    let based = whole || leaves.has("base_config") || leaves.has("model_name");
    sizes(&mut leaves, whole);
    layers(&mut leaves);
    mesh::read(&mut leaves, based);
    named::topology(&mut leaves);
    remat::read(&mut leaves);
    stops(&mut leaves);
    if based {
        leaves.state(Field::SeqLength, "2048", Origin::Default, WHOSE);
    }
    if based && named.is_none() && leaves.reading.value(Field::HiddenSize).is_some() {
        leaves.state(Field::VocabSize, "32000", Origin::Default, WHOSE);
    }
    let unlike = compiled::unlike(&leaves);
    let software = if unlike.is_empty() {
        compiled::states(&mut leaves);
        Software::MaxText
    } else {
        stop(&mut leaves, &unlike);
        Software::TorchFsdp
    };
    leaves.reading.software = Some((software, "a configuration of MaxText".to_owned()));
    leaves.pass_words("maxtext");
    super::row::ask(&mut leaves);
    leaves.finish("MaxText")
}

fn sizes(leaves: &mut Leaves<'_>, whole: bool) {
    let scale = leaves.whole("global_parameter_scale").unwrap_or(1).max(1);
    for (path, field, which, usual) in SIZES {
        let value = leaves.whole(path).or(whole.then_some(usual));
        let Some(value) = value.and_then(|value| value.checked_shl(doublings(scale, which))) else {
            continue;
        };
        match leaves.get(path) {
            Some(leaf) => leaves.say(field, &value.to_string(), leaf),
            None => leaves.state(field, &value.to_string(), Origin::Default, WHOSE),
        }
    }
    if whole {
        leaves.state(Field::KvChannels, "128", Origin::Default, WHOSE);
    }
    let heads = leaves.reading.count(Field::NumAttentionHeads);
    let groups = leaves.whole("base_num_kv_heads").or(whole.then_some(KV_HEADS));
    let groups = groups.and_then(|groups| groups.checked_shl(doublings(scale, Scale::Heads)));
    if let (Some(groups), Some(leaf)) = (groups.filter(|_| groups != heads), leaves.get("base_num_kv_heads"))
    {
        leaves.query_groups(&groups.to_string(), leaf);
    }
}

fn layers(leaves: &mut Leaves<'_>) {
    let shaped = leaves.has("base_emb_dim") || leaves.reading.value(Field::HiddenSize).is_some();
    let block = leaves.get("decoder_block");
    if let Some(leaf) = block.filter(|leaf| !BLOCKS.contains(&leaf.value.as_str())) {
        let what = "this kind of MaxText layer, which may group several layers into one";
        leaves.lack(leaf, Effect::Model, what);
    }
    let catalog = leaves.reading.found.iter().any(|found| found.origin == Origin::Catalog);
    let kernel = if leaves.text("attention") == Some("dot_product") { "unfused" } else { "flash" };
    leaves.state(Field::AttentionKernel, kernel, Origin::Default, WHOSE);
    if !shaped || catalog {
        return;
    }
    let why = "MaxText's decoder block";
    if block.is_some_and(|leaf| leaf.value == "gpt3") {
        let gpt3 = [
            (Field::Swiglu, "false"),
            (Field::Normalization, "LayerNorm"),
            (Field::PositionEmbeddingType, "learned_absolute"),
            (Field::AddBiasLinear, "true"),
        ];
        leaves.state_all(&gpt3, Origin::Derived, why);
    }
    if let Some(leaf) = leaves.get("mlp_activations") {
        let gated = leaf.value.contains("linear");
        leaves.switch(Field::Swiglu, gated && leaf.value.contains("silu"), leaf);
        if gated && leaf.value.contains("gelu") {
            leaves.switch(Field::QuickGeglu, true, leaf);
        }
    }
    leaves.follow("logits_via_embedding", Field::UntieEmbeddingsAndOutputWeights, false);
    experts(leaves);
    latent(leaves);
    leaves.state_all(&LLAMA_LAYER, Origin::Derived, why);
    leaves.state(Field::PadVocabSize, "false", Origin::Default, "MaxText pads no vocabulary");
}

fn experts(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("num_experts").filter(|leaf| leaf.whole().is_some_and(|count| count > 1))
    else {
        leaves.pass_below(&["num_experts"]);
        return;
    };
    leaves.say(Field::NumExperts, &leaf.value, leaf);
    leaves.take(&["num_experts_per_tok"], Field::MoeRouterTopk);
    let inner = ["base_moe_mlp_dim", "base_mlp_dim"];
    if let Some(leaf) = inner.iter().find_map(|path| leaves.get(path).filter(|leaf| leaf.whole().is_some())) {
        let scale = leaves.whole("global_parameter_scale").unwrap_or(1).max(1);
        let width = leaf.whole().and_then(|width| width.checked_shl(doublings(scale, Scale::Heads)));
        leaves.say(Field::MoeFfnHiddenSize, &width.unwrap_or(0).to_string(), leaf);
    }
    if let Some(leaf) =
        leaves.get("shared_experts").filter(|leaf| leaf.whole().is_some_and(|count| count > 0))
    {
        leaves.say(Field::NSharedExperts, &leaf.value, leaf);
    }
    leaves.take(&["first_num_dense_layers"], Field::FirstKDenseReplace);
    leaves.state(Field::MoeGroupedGemm, "true", Origin::Derived, "MaxText's experts are grouped products");
}

fn latent(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("attention_type").filter(|leaf| leaf.value == "mla") else { return };
    leaves.switch(Field::MultiLatentAttention, true, leaf);
    if let Some(leaf) = leaves.get("q_lora_rank").filter(|leaf| leaf.whole().is_some_and(|rank| rank > 0)) {
        leaves.say(Field::QLoraRank, &leaf.value, leaf);
    }
    for (path, field, usual) in [
        ("kv_lora_rank", Field::KvLoraRank, "512"),
        ("qk_nope_head_dim", Field::QkHeadDim, "128"),
        ("qk_rope_head_dim", Field::QkPosEmbHeadDim, "64"),
        ("v_head_dim", Field::VHeadDim, "128"),
    ] {
        leaves.take(&[path], field);
        leaves.state(field, usual, Origin::Default, WHOSE);
    }
}

/// Stops the verdict for a step that was not compiled, and names what sets it apart.
fn stop(leaves: &mut Leaves<'_>, unlike: &[String]) {
    let unknown = remat::kept(leaves).is_none() && leaves.text("remat_policy") != Some("none");
    let host = leaves.text("hardware").is_some_and(|name| name.starts_with("gpu"));
    jax::stop(leaves, "MaxText", Lacking { policy: unknown, tpu: !host }, unlike);
}

fn stops(leaves: &mut Leaves<'_>) {
    for (path, effect, what) in [
        ("lora.enable_lora", Effect::Memory, "MaxText adapters"),
        ("use_dpo", Effect::Memory, "preference training in MaxText"),
        ("optimizer_memory_host_offload", Effect::Memory, "optimizer states on the host in MaxText"),
        ("parameter_memory_host_offload", Effect::Memory, "weights on the host in MaxText"),
        ("use_multimodal", Effect::Model, "a vision model in addition to the decoder"),
        ("mlp_bias", Effect::Model, "biases in MLPs of MaxText"),
    ] {
        if let Some(leaf) = leaves.yes(path) {
            leaves.lack(leaf, effect, what);
        }
    }
    for (path, usual, effect, what) in [
        ("quantization", "", Effect::Memory, "8-bit GEMMs in MaxText"),
        ("weight_dtype", "float32", Effect::Memory, "MaxText weights in a dtype other than fp32"),
        ("dtype", "bfloat16", Effect::Memory, "MaxText compute in a dtype other than bf16"),
        ("mtp_num_layers", "0", Effect::Model, "multi-token prediction in MaxText"),
    ] {
        if let Some(leaf) = leaves.get(path).filter(|leaf| leaf.value != usual) {
            leaves.lack(leaf, effect, what);
        }
    }
    leaves.state(Field::Bf16, "true", Origin::Default, WHOSE);
    match leaves.get("opt_type") {
        Some(leaf) if leaf.value.starts_with("adam") => leaves.say(Field::Optimizer, "adam", leaf),
        Some(leaf) if leaf.value == "sgd" => leaves.say(Field::Optimizer, "sgd", leaf),
        Some(leaf) => leaves.lack(leaf, Effect::Memory, "the states of this MaxText optimizer"),
        None => leaves.state(Field::Optimizer, "adam", Origin::Default, WHOSE),
    }
}

#[cfg(test)]
mod tests {
    use super::{Scale, doublings};

    /// `get_individual_scales` of MaxText: (width, heads, MLP, layers) for each scale.
    #[test]
    fn a_scale_of_parameters_doubles_sizes() {
        for (scale, width, heads, layers) in [
            (1, 0, 0, 0),
            (2, 0, 1, 0),
            (4, 1, 1, 0),
            (8, 1, 1, 1),
            (16, 1, 2, 1),
            (32, 2, 2, 1),
            (64, 2, 2, 2),
        ] {
            let all = [Scale::Width, Scale::Heads, Scale::Layers].map(|which| doublings(scale, which));
            assert_eq!(all, [width, heads, layers], "{scale}");
        }
    }
}
