//! Keys of the model, the precision and the optimizer whose meaning in NeMo differs from Megatron's.

use crate::leaves::{Leaf, Leaves, dtype};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

const WHOSE: &str = "default of NeMo";

pub(super) fn shape(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("model.normalization") {
        let rms = leaf.value.to_ascii_lowercase().contains("rms");
        leaves.say(Field::Normalization, if rms { "RMSNorm" } else { "LayerNorm" }, leaf);
    }
    if let Some(leaf) = leaves.get("model.position_embedding_type") {
        let known = ["learned_absolute", "rope", "yarn", "mrope", "alibi", "none"];
        let name = known.iter().find(|known| **known == leaf.value).copied().unwrap_or("none");
        leaves.say(Field::PositionEmbeddingType, name, leaf);
    }
    if let Some(leaf) = leaves.get("model.activation") {
        let name = leaf.value.strip_prefix("fast-").unwrap_or(&leaf.value);
        let field = match name {
            "swiglu" | "reglu" => Some(Field::Swiglu),
            "geglu" => Some(Field::QuickGeglu),
            "squared-relu" => Some(Field::SquaredRelu),
            _ => None,
        };
        if let Some(field) = field {
            leaves.switch(field, true, leaf);
        }
    }
    if let Some(leaf) = leaves.yes("model.gated_linear_unit") {
        let silu = leaves.text("model.activation_func").is_none_or(|act| act.contains("silu"));
        leaves.switch(if silu { Field::Swiglu } else { Field::QuickGeglu }, true, leaf);
    }
    if let Some(leaf) = leaves.get("model.activation_func").filter(|leaf| leaf.value.contains("squared_relu"))
    {
        leaves.switch(Field::SquaredRelu, true, leaf);
    }
    let shared = "model.share_embeddings_and_output_weights";
    leaves.follow(shared, Field::UntieEmbeddingsAndOutputWeights, false);
    if let Some(leaf) = leaves.get("model.bias_activation_fusion") {
        let on = leaf.flag() != Some(false);
        leaves.switch(Field::BiasGeluFusion, on, leaf);
        leaves.switch(Field::BiasSwigluFusion, on, leaf);
    }
    if let Some(leaf) = leaves.get("model.recompute_granularity") {
        leaves.say(Field::RecomputeGranularity, &leaf.value, leaf);
    }
}

pub(super) fn precision(leaves: &mut Leaves<'_>) {
    let paths = ["trainer.precision", "mixed_precision", "trainer.plugins.precision", "model.precision"];
    if let Some(leaf) = leaves.first(&paths) {
        let name = leaf.value.to_ascii_lowercase();
        let (bf16, fp16) = (name.contains("bf16"), name.starts_with("16") || name.contains("fp16"));
        match () {
            // bf16 first: Lightning's fp16 is a bare `16`, which `bf16-mixed` also contains.
            () if bf16 => leaves.switch(Field::Bf16, true, leaf),
            () if fp16 => leaves.switch(Field::Fp16, true, leaf),
            () => {}
        }
        if name.contains("fp8") {
            leaves.say(Field::Fp8, "hybrid", leaf);
            let recipes = [
                ("mxfp8", "mxfp8"),
                ("current", "tensorwise"),
                ("subchannel", "blockwise"),
                ("delayed", "delayed"),
            ];
            if let Some((_, recipe)) = recipes.iter().find(|(word, _)| name.contains(word)) {
                leaves.say(Field::Fp8Recipe, recipe, leaf);
            }
        }
    }
    leaves.turn_on("model.bf16", Field::Bf16);
    leaves.turn_on("model.fp16", Field::Fp16);
    match leaves.get("model.fp8") {
        Some(leaf) if leaf.flag() == Some(true) => {
            let format = if leaves.flag("model.fp8_e4m3") == Some(true) { "e4m3" } else { "hybrid" };
            leaves.say(Field::Fp8, format, leaf);
        }
        Some(leaf) if matches!(leaf.value.as_str(), "e4m3" | "hybrid") => {
            leaves.say(Field::Fp8, &leaf.value, leaf)
        }
        // What acts beside it alone.
        _ => ["model.fp8_e4m3", "model.fp8_wgrad"].iter().for_each(|path| leaves.pass(path)),
    }
    if let Some(leaf) = leaves.get("model.optim.grad_sync_dtype") {
        leaves.say(Field::GradsDtype, dtype(&leaf.value), leaf);
    }
}

/// Keys that only NeMo 1 has: the format of weights under autocast, and the method of selective recomputation.
pub(super) fn first(leaves: &mut Leaves<'_>) {
    // "O2" stores the weights in 16 bits with an fp32 copy in the optimizer, as Megatron does; without it they are fp32
    // under autocast (`megatron_base_model.py`, `nlp_overrides.py:MegatronHalfPrecisionPlugin`).
    let half = [Field::Bf16, Field::Fp16].iter().any(|field| leaves.reading.value(*field) == Some("true"));
    if let Some(leaf) = leaves.get("model.megatron_amp_O2") {
        leaves.pass("model.megatron_amp_O2");
        if half && leaf.flag() == Some(false) {
            let what = "fp32 weights under autocast";
            let item = NotModelled::new("megatron_amp_O2", &leaf.value, Effect::Memory, what);
            leaves.reading.not_modelled.push(item.at_some(leaf.span));
        }
    }
    remainders(leaves);
    // `transformer.py:ParallelTransformer`: selective and uniform means the attention of every layer, which
    // Megatron writes without a method.
    let reads = |field, value| leaves.reading.value(field) == Some(value);
    if reads(Field::RecomputeGranularity, "selective") && reads(Field::RecomputeMethod, "uniform") {
        let method = [Field::RecomputeMethod, Field::RecomputeNumLayers];
        leaves.reading.keep(&|found| !method.contains(&found.field));
    }
    for (path, usual) in [
        ("model.headscale", "false"),
        ("model.openai_gelu", "false"),
        ("model.onnx_safe", "false"),
        ("model.transformer_block_type", "pre_ln"),
        ("model.normalize_attention_scores", "true"),
        ("model.attention_type", "multihead"),
        ("model.fp16_lm_cross_entropy", "false"),
        ("model.mcore_gpt", "true"),
        ("model.use_emha", "false"),
        ("model.mcore_customization_config.new_decoder_architecture", "false"),
        ("model.mcore_customization_config.parallel_attention", "false"),
    ] {
        if leaves.text(path).is_some_and(|value| value.eq_ignore_ascii_case(usual)) {
            leaves.pass(path);
        }
    }
    let dropout = leaves.get("model.ffn_dropout");
    if dropout.is_some_and(|leaf| leaf.value.parse::<f64>() == Ok(0.0)) {
        leaves.pass("model.ffn_dropout");
    }
}

/// Apex's distributed Adam keeps 16 bits beside each bf16 weight, which complete it to fp32, unless weights are stored in fp8
/// (`megatron_base_model.py:setup_optimization`); Megatron calls such an optimizer precision-aware.
fn remainders(leaves: &mut Leaves<'_>) {
    let of_apex = leaves.text("model.optim.name") == Some("distributed_fused_adam");
    let stored = ["store_params", "dtype"].iter().any(|key| leaves.has(&format!("model.optim.{key}")));
    let narrow = leaves.flag("model.megatron_amp_O2") == Some(true)
        && leaves.reading.value(Field::Bf16) == Some("true")
        && leaves.flag("model.fp8_params") != Some(true);
    if of_apex && narrow && !stored {
        let why = "store_param_remainders of Apex's distributed Adam, which NeMo sets over bf16 weights";
        leaves.state(Field::UsePrecisionAwareOptimizer, "true", Origin::Derived, why);
    }
}

pub(super) fn optimizer(leaves: &mut Leaves<'_>) {
    let Some(leaf) = leaves.get("model.optim.name") else { return };
    let name = leaf.value.as_str();
    if name.contains("distributed") {
        leaves.switch(Field::UseDistributedOptimizer, true, leaf);
    }
    let kind = ["sgd", "lion", "muon"].into_iter().find(|kind| name.contains(kind)).unwrap_or("adam");
    leaves.say(Field::Optimizer, kind, leaf);
}

pub(super) fn overlap(leaves: &mut Leaves<'_>) {
    // `examples/nlp/language_modeling/conf/megatron_gpt_config.yaml`: what goes to the host counts only beside the switch.
    let what = ["model.cpu_offloading_activations", "model.cpu_offloading_weights"];
    let [activations, weights] = what.map(|path| leaves.get(path));
    let on = leaves.flag("model.cpu_offloading");
    if on == Some(false) || activations.and_then(Leaf::flag) == Some(false) {
        leaves.reading.keep(&|found| found.field != Field::CpuOffloadingNumLayers);
    }
    if let Some(leaf) = weights.filter(|leaf| on == Some(true) && leaf.flag() != Some(false)) {
        leaves.lack(leaf, Effect::Memory, "weights offloaded to the host layer by layer");
    }
    let path = "model.fsdp";
    if let Some(leaf) = leaves.yes(path) {
        let hybrid = leaves.text("model.fsdp_sharding_strategy").is_some_and(|name| name == "grad");
        leaves.say(Field::ZeroStage, if hybrid { "2" } else { "3" }, leaf);
    } else {
        ["model.fsdp_grad_reduce_dtype", "model.fsdp_sharded_checkpoint"]
            .iter()
            .for_each(|path| leaves.pass(path));
    }
    let off = |leaf: &&Leaf| leaf.path == "model.sharp" && leaf.flag() == Some(false);
    leaves.all().iter().filter(off).for_each(|leaf| leaf.used.set(true));
    leaves.pass("model.fsdp_sharding_strategy");
    leaves.pass("model.data.seq_length");
}

/// The values that NeMo 1 assumes for missing keys: an MLP of 4 x hidden_size, gated or not; and
/// query-key layer scaling only with fp16.
pub(super) fn omitted(leaves: &mut Leaves<'_>) {
    let hidden = leaves.get("model.hidden_size");
    let width = hidden.and_then(|leaf| leaf.whole()).and_then(|hidden| hidden.checked_mul(4));
    if let Some(width) = width {
        leaves.state(
            Field::FfnHiddenSize,
            &width.to_string(),
            Origin::Default,
            "4 x hidden_size, default of NeMo",
        );
    }
    leaves.state_all(
        &[(Field::HiddenDropout, "0.1"), (Field::AttentionDropout, "0.1")],
        Origin::Default,
        WHOSE,
    );
    leaves.take(&["model.apply_rope_fusion"], Field::ApplyRopeFusion);
    // `megatron_base_model.py:build_transformer_config` at the tags.
    leaves.state(Field::ApplyRopeFusion, "false", Origin::Default, "default of NeMo since 2.0; true in 1.23");
    let scaling = leaves.get("model.apply_query_key_layer_scaling");
    if let Some(leaf) = scaling.filter(|_| leaves.reading.value(Field::Fp16) != Some("true")) {
        leaves.say_noted(Field::ApplyQueryKeyLayerScaling, "false", leaf, "NeMo applies it only with fp16");
    }
}
