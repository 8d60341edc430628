//! Tensors kept for backward compared with what autograd actually saved: equal to the byte, per operation, per layer,
//! per block of layers, and outside of the layers.

use std::collections::BTreeMap;

use serde_json::Value;
use shardscope::estimate::kept_by_chunk;
use shardscope::operators::{Operator, Saved, Symbols, layer_operators};
use shardscope::plan::*;

use super::drafts::{Draft, cases, draft, flag, int, stage_map};
use super::formula::evaluate;

const SAVED: &str = include_str!("../data/activations/saved.json");

fn drafted(config: &Value) -> Draft {
    let mut draft = draft();
    shape(&mut draft.model, config);
    draft.model.latent = config["mla"].is_object().then(|| latent(&config["mla"]));
    draft.model.qk_layernorm |= draft.model.latent.is_some();
    let layers = draft.model.num_layers;
    draft.model.experts = config["moe"].is_object().then(|| experts(&config["moe"], layers));
    let layout = &mut draft.layout;
    layout.tensor = int(config, "tp");
    layout.context = int(config, "cp");
    layout.expert = int(config, "ep");
    layout.expert_tensor = config["etp"].as_u64().unwrap_or(layout.tensor);
    layout.sequence_parallel = flag(config, "sp");
    layout.world_size = layout.tensor * layout.context;
    layout.expert_data = layout.world_size / (layout.expert_tensor * layout.expert);
    layout.stages = stage_map(&[vec![[0, layers]]], 0);
    let chunk = &mut layout.stages.stages[0].chunks[0];
    chunk.embedding = flag(config, "pre");
    chunk.output_layer = flag(config, "post");
    train(&mut draft.recipe, config);
    draft
}

fn shape(model: &mut Model, config: &Value) {
    model.num_layers = int(config, "layers");
    model.hidden_size = int(config, "h");
    model.ffn_hidden_size = int(config, "f");
    model.num_attention_heads = int(config, "a");
    model.num_query_groups = config["k"].as_u64().unwrap_or(model.num_attention_heads);
    model.kv_channels = config["d"].as_u64().unwrap_or(model.hidden_size / model.num_attention_heads);
    model.seq_length = int(config, "s");
    model.padded_vocab_size = int(config, "vocab");
    model.qk_layernorm = flag(config, "qk_norm");
    model.activation = if config["act"] == "swiglu" { Activation::Swiglu } else { Activation::Gelu };
    model.normalization =
        if config["norm"] == "LayerNorm" { Normalization::LayerNorm } else { Normalization::RmsNorm };
    model.position_embedding =
        if config["pos"] == "rope" { PositionEmbedding::Rope } else { PositionEmbedding::LearnedAbsolute };
    model.linear_bias = if flag(config, "bias") { LinearBias::All } else { LinearBias::None };
    model.embeddings = if flag(config, "tied") { Embeddings::Tied } else { Embeddings::Untied };
}

fn latent(mla: &Value) -> LatentAttention {
    LatentAttention {
        q_lora_rank: mla["q_lora"].as_u64(),
        kv_lora_rank: int(mla, "kv_lora"),
        qk_head_dim: int(mla, "nope"),
        qk_pos_emb_head_dim: int(mla, "rope"),
        v_head_dim: int(mla, "v"),
    }
}

fn experts(moe: &Value, layers: u64) -> Experts {
    Experts {
        num_experts: int(moe, "experts"),
        router_topk: int(moe, "topk"),
        ffn_hidden_size: int(moe, "f"),
        pattern: (0..layers).map(|_| true).collect(),
        shared_expert_intermediate_size: moe["shared"].as_u64(),
        shared_expert_gate: false,
        latent_size: None,
        groups: None,
    }
}

fn train(recipe: &mut Recipe, config: &Value) {
    recipe.micro_batch_size = int(config, "b");
    recipe.global_batch_size = recipe.micro_batch_size;
    recipe.params_dtype = if config["dtype"] == "fp32" { NumberFormat::Fp32 } else { NumberFormat::Bf16 };
    recipe.fp32_residual = flag(config, "fp32_residual");
    recipe.hidden_dropout = config["hdrop"] != 0.0;
    recipe.attention_dropout = config["adrop"] != 0.0;
    recipe.attention_kernel = match config["attn"].as_str() {
        Some("unfused") => AttentionKernel::Unfused,
        Some("fa2" | "sdpa") => AttentionKernel::Flash,
        Some("fused") => AttentionKernel::Fused,
        other => panic!("no kernel {other:?}"),
    };
    recipe.fusions.bias_activation = flag(config, "act_fusion");
    recipe.fusions.masked_softmax = flag(config, "softmax_fusion");
    recipe.fusions.softmax_in_fp32 = flag(config, "softmax_fp32");
    recipe.fusions.memory_efficient_norm = flag(config, "norm_memory_efficient");
    recipe.loss = if config["ce_fusion"] == "native" { LossKind::NativeFused } else { LossKind::Unfused };
    recipe.recompute = recompute(&config["recompute"]);
    let moe = &config["moe"];
    recipe.moe.capacity_factor = moe["capacity"].as_f64();
    recipe.moe.pad_to_capacity = true;
    if moe["router_dtype"] == "fp32" {
        recipe.moe.router_dtype = NumberFormat::Fp32;
    }
    if moe["dispatcher"] == "allgather" {
        recipe.moe.dispatcher = Dispatcher::AllGather;
    }
}

fn recompute(given: &Value) -> Recompute {
    if given.is_null() {
        return Recompute::None;
    }
    if given["granularity"] == "selective" {
        let modules = given["modules"].as_array().expect("modules").iter().map(module);
        return Recompute::Selective(modules.collect());
    }
    let num_layers = int(given, "num_layers");
    let distribute = given["distribute"].as_bool().unwrap_or(false);
    if given["method"] == "uniform" {
        Recompute::Uniform { num_layers, distribute }
    } else {
        Recompute::Block { num_layers, distribute }
    }
}

fn module(name: &Value) -> RecomputeModule {
    match name.as_str() {
        Some("core_attn") => RecomputeModule::CoreAttention,
        Some("moe_act") => RecomputeModule::MoeActivation,
        Some("layernorm") => RecomputeModule::LayerNorm,
        Some("mla_up_proj") => RecomputeModule::MlaUpProjection,
        Some("mlp") => RecomputeModule::Mlp,
        Some("moe") => RecomputeModule::Moe,
        Some("shared_experts") => RecomputeModule::SharedExperts,
        other => panic!("no module {other:?}"),
    }
}

/// The Megatron module that first saves one of our tensors.
fn saver(x: &Symbols<'_>, operator: Operator, saved: &Saved) -> &'static str {
    let kernel = x.recipe().attention_kernel;
    let output_is_shared = kernel == AttentionKernel::Fused || (kernel == AttentionKernel::Flash && x.b == 1);
    let shared = x.moe.shared > 0;
    let lean = x.recipe().fusions.memory_efficient_norm;
    match (operator, saved.name) {
        (Operator::InputNorm, _) => "input_layernorm",
        (Operator::PreMlpNorm | Operator::PreExpertsNorm, _) => "pre_mlp_layernorm",
        (_, "dropout mask") => "dropout",
        (_, "linear_qkv input") if lean => "input_layernorm",
        (_, "linear_fc1 input") if lean => "pre_mlp_layernorm",
        (_, "output_layer input") if lean => "final_layernorm",
        (_, "linear_qkv input") => "self_attention.linear_qkv",
        (_, "down-projection input") => "self_attention.linear_q_down_proj",
        (_, "query norm input" | "query norm statistics") => "self_attention.q_layernorm",
        (_, "kv norm input" | "kv down-projection output" | "kv norm statistics") => {
            "self_attention.kv_layernorm"
        }
        (_, "key norm statistics") => "self_attention.k_layernorm",
        (_, "QKV output held by the norms") => "self_attention.q_layernorm",
        (_, "query up-projection input") => "self_attention.linear_q_up_proj",
        (_, "kv up-projection input") => "self_attention.linear_kv_up_proj",
        (_, "rotary cosines" | "rotary sines") => "self_attention",
        (_, "linear_proj input") if !output_is_shared => "self_attention.linear_proj",
        (_, "attention dropout mask") => "self_attention.core_attention.attention_dropout",
        (_, "softmax" | "softmax scale" | "causal mask" | "16-bit probabilities") => {
            "self_attention.core_attention.scale_mask_softmax"
        }
        (Operator::SelfAttention | Operator::LatentAttention, _) => "self_attention.core_attention",
        (_, "linear_fc1 input") => "mlp.linear_fc1",
        (_, "linear_fc2 input") => "mlp.linear_fc2",
        (_, "router input") if shared => "mlp.shared_experts.linear_fc1",
        (_, "router input" | "router top-k indices" | "router softmax" | "capacity mask") => "mlp.router",
        (_, "experts fc1 input") => "mlp.experts.linear_fc1",
        (_, "experts fc2 input") => "mlp.experts.linear_fc2",
        (_, "shared activation input") => "mlp.shared_experts",
        (_, "shared fc2 input") => "mlp.shared_experts.linear_fc2",
        (Operator::Experts, name) if name.starts_with("experts") => "mlp.experts",
        (Operator::Mlp | Operator::Experts, _) => "mlp",
        (Operator::FinalNorm, _) => "final_layernorm",
        (Operator::Embedding, "position ids") => "embedding.position_embeddings",
        (Operator::Embedding, "embedding dropout mask") => "embedding.embedding_dropout",
        (Operator::Embedding, _) => "embedding.word_embeddings",
        (Operator::OutputLayer, "output_layer input") => "output_layer",
        (Operator::OutputLayer, _) => "loss",
        (
            Operator::WindowedAttention
            | Operator::BorrowedAttention
            | Operator::BorrowedWindowedAttention
            | Operator::WideMlp
            | Operator::LayerInputs
            | Operator::LayerInput
            | Operator::Linear(_)
            | Operator::MtpProjection
            | Operator::VisionLayer
            | Operator::VisionEnds
            | Operator::Encoder { .. }
            | Operator::Positions
            | Operator::CrossNorm
            | Operator::CrossAttention
            | Operator::Projector,
            _,
        ) => panic!("no case has it"),
    }
}

fn by_saver(x: &Symbols<'_>, operators: &[Operator]) -> BTreeMap<String, u64> {
    let mut bytes = BTreeMap::new();
    for &operator in operators {
        for saved in operator.saved(x) {
            let saver = saver(x, operator, &saved);
            *bytes.entry(saver.to_string()).or_default() += saved.bytes.get();
        }
    }
    bytes
}

fn expected(value: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(value.clone()).expect("bytes by operation")
}

fn kind(plan: &Plan) -> LayerKind {
    plan.model().layer_kind(0)
}

#[test]
fn every_kept_byte_is_known() {
    let (mut operations, mut blocks) = (0, 0);
    for case in cases(SAVED) {
        let id = case["id"].as_str().expect("id");
        let plan = drafted(&case["config"]).plan();
        let x = Symbols::new(&plan);
        let layer = layer_operators(&x, kind(&plan));
        let kept: u64 = by_saver(&x, &layer).values().sum();
        if let Some(received) = case["received"].as_u64() {
            // If routing was not balanced, the difference equals the experts' bytes per received copy.
            let each = (x.h + 3 * x.moe.ffn) * x.width + x.moe.probability;
            let more = int(&case, "layer") - kept;
            assert_eq!(more, (received - x.moe.received) * each, "{id}");
            continue;
        }
        if case["operations"].is_object() {
            assert_eq!(by_saver(&x, &layer), expected(&case["operations"]), "{id}");
            operations += 1;
        }
        if let Some(bytes) = case["layer"].as_u64() {
            assert_eq!(kept, bytes, "{id}: layer");
        }
        let chunk = &plan.layout().stages.stages[0].chunks[0];
        let inner = Chunk { embedding: false, output_layer: false, ..chunk.clone() };
        assert_eq!(kept_by_chunk(&plan, &inner).get(), int(&case, "block"), "{id}: block");
        let mut ends = Vec::new();
        if chunk.embedding {
            ends.push(Operator::Embedding);
        }
        if chunk.output_layer {
            ends.extend([Operator::FinalNorm, Operator::OutputLayer]);
        }
        assert_eq!(by_saver(&x, &ends), expected(&case["top"]), "{id}: outside of the layers");
        let top: u64 = expected(&case["top"]).values().sum();
        assert_eq!(kept_by_chunk(&plan, chunk).get(), int(&case, "block") + top, "{id}: all");
        blocks += 1;
    }
    assert!(operations > 100 && blocks > 160, "{operations} layers and {blocks} blocks compared");
}

#[test]
fn every_formula_works_out_to_its_bytes() {
    let mut formulas = 0;
    for case in cases(SAVED) {
        let plan = drafted(&case["config"]).plan();
        let x = Symbols::new(&plan);
        let mut operators = layer_operators(&x, kind(&plan)).to_vec();
        operators.extend([Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        for saved in operators.iter().flat_map(|operator| operator.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}: {}", case["id"], saved.name);
            let why = x.explain(saved.formula);
            assert!(why.symbols.len() == saved.formula.names().len(), "{}", saved.formula.expression);
            formulas += 1;
        }
    }
    assert!(formulas > 2000, "only {formulas} formulas worked out");
}
