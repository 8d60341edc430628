//! Parameter counts compared with Megatron-LM's own models, rank by rank and part by part: equal, not just close.

use std::collections::BTreeMap;

use serde_json::Value;
use shardscope::estimate::parameters;
use shardscope::operators::{Operator, SectionKind, Symbols, sections};
use shardscope::plan::*;

use super::drafts::{Draft, cases, draft, even_stages, flag, int, stage_map};

const COUNTS: &str = include_str!("../data/megatron/parameters.json");

pub(crate) fn drafted(case: &Value) -> Draft {
    let given = &case["plan"];
    let mut draft = draft();
    // The counts are from Transformer Engine's modules: there, latent attention's query projection begins with a norm.
    draft.recipe.software = Software::MegatronCoreTe;
    let model = &mut draft.model;
    model.num_layers = int(given, "num_layers");
    model.hidden_size = int(given, "hidden");
    model.ffn_hidden_size = int(given, "ffn");
    model.num_attention_heads = int(given, "heads");
    model.num_query_groups = int(given, "groups");
    model.kv_channels = int(given, "channels");
    model.seq_length = int(given, "seq");
    model.max_position_embeddings = int(given, "positions");
    model.padded_vocab_size = int(given, "vocab");
    model.mtp_num_layers = int(given, "mtp");
    model.qk_layernorm = flag(given, "qk_norm");
    model.activation = if flag(given, "swiglu") { Activation::Swiglu } else { Activation::Gelu };
    model.embeddings = if flag(given, "tied") { Embeddings::Tied } else { Embeddings::Untied };
    model.normalization =
        if given["norm"] == "LayerNorm" { Normalization::LayerNorm } else { Normalization::RmsNorm };
    model.position_embedding =
        if given["pos"] == "rope" { PositionEmbedding::Rope } else { PositionEmbedding::LearnedAbsolute };
    model.linear_bias = match (flag(given, "bias"), flag(given, "qkv_bias")) {
        (true, _) => LinearBias::All,
        (false, true) => LinearBias::QkvOnly,
        (false, false) => LinearBias::None,
    };
    model.attention_softmax =
        if given["softmax"] == "learnable" { AttentionSoftmax::Learnable } else { AttentionSoftmax::Vanilla };
    model.latent = given["mla"].is_object().then(|| latent(&given["mla"]));
    model.experts = given["moe"].is_object().then(|| experts(&given["moe"]));
    lay_out(&mut draft, case);
    draft
}

fn latent(mla: &Value) -> LatentAttention {
    LatentAttention {
        q_lora_rank: mla["q_lora_rank"].as_u64(),
        kv_lora_rank: int(mla, "kv_lora_rank"),
        qk_head_dim: int(mla, "qk_head_dim"),
        qk_pos_emb_head_dim: int(mla, "qk_pos_emb_head_dim"),
        v_head_dim: int(mla, "v_head_dim"),
    }
}

fn experts(moe: &Value) -> Experts {
    Experts {
        num_experts: int(moe, "experts"),
        router_topk: int(moe, "topk"),
        ffn_hidden_size: int(moe, "ffn"),
        pattern: moe["pattern"].as_array().expect("pattern").iter().map(|on| *on == 1).collect(),
        shared_expert_intermediate_size: moe["shared"].as_u64(),
        shared_expert_gate: flag(moe, "gate"),
        latent_size: moe["latent"].as_u64(),
        groups: None,
    }
}

fn lay_out(draft: &mut Draft, case: &Value) {
    let given = &case["plan"];
    let ranges: Vec<Vec<[u64; 2]>> = serde_json::from_value(case["stages"].clone()).expect("stages");
    let layout = &mut draft.layout;
    layout.world_size = int(given, "world");
    layout.tensor = int(given, "tp");
    layout.pipeline = int(given, "pp");
    layout.virtual_pipeline = int(given, "vpp");
    layout.context = int(given, "cp");
    layout.expert = int(given, "ep");
    layout.expert_tensor = int(given, "etp");
    layout.sequence_parallel = flag(given, "sp");
    layout.data = layout.world_size / (layout.tensor * layout.pipeline * layout.context);
    layout.expert_data = layout.world_size / (layout.expert_tensor * layout.expert * layout.pipeline);
    layout.microbatch_group_size = layout.pipeline;
    layout.stages = stage_map(&ranges, draft.model.mtp_num_layers);
    draft.recipe.micro_batch_size = int(given, "mbs");
    draft.recipe.global_batch_size = int(given, "gbs");
    draft.recipe.num_micro_batches = int(given, "gbs") / (int(given, "mbs") * layout.data);
    draft.cluster.num_nodes = layout.world_size.div_ceil(8);
    draft.cluster.gpus_per_node = layout.world_size.min(8);
}

/// Megatron's module for one of our weights.
fn module(name: &str, mtp: bool) -> &'static str {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    match stem {
        "word_embeddings" => "word_embeddings",
        "position_embeddings" => "position_embeddings",
        "final_layernorm" => "final_norm",
        "output_layer" => "output_layer",
        "input_layernorm" => "input_norm",
        "pre_mlp_layernorm" => "pre_mlp_norm",
        "linear_qkv" => "attention_qkv",
        "linear_proj" => "attention_proj",
        "core_attention" => "attention_sinks",
        "q_layernorm" | "k_layernorm" | "kv_layernorm" => "qk_norm",
        "linear_q_proj" => "mla_q",
        "linear_q_down_proj" => "mla_q_down",
        "linear_q_up_proj" => "mla_q_up",
        "linear_kv_down_proj" => "mla_kv_down",
        "linear_kv_up_proj" => "mla_kv_up",
        "linear_fc1" => "mlp_fc1",
        "linear_fc2" => "mlp_fc2",
        "router" => "router",
        "experts.linear_fc1" => "experts_fc1",
        "experts.linear_fc2" => "experts_fc2",
        "shared_experts" => "shared_expert_gate",
        "shared_experts.linear_fc1" => "shared_expert_fc1",
        "shared_experts.linear_fc2" => "shared_expert_fc2",
        "mtp.enorm" | "mtp.hnorm" | "mtp.final_layernorm" if mtp => "mtp_norms",
        "mtp.eh_proj" if mtp => "mtp_eh_proj",
        _ => panic!("no module for {name}"),
    }
}

fn modules(x: &Symbols<'_>, chunk: &Chunk) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for section in sections(x, chunk) {
        for weight in section.weights(x) {
            let name = module(weight.name, section.kind == SectionKind::Mtp);
            *counts.entry(name.to_string()).or_default() += weight.count().get() * section.times;
        }
    }
    counts
}

#[test]
fn every_rank_holds_what_megatron_builds() {
    let mut chunks = 0;
    for case in cases(COUNTS) {
        let id = case["id"].as_str().expect("id");
        let plan = drafted(&case).plan();
        let x = Symbols::new(&plan);
        let counted = parameters(&plan);
        assert_eq!(counted.total.get(), int(&case, "whole"), "{id}: whole model");
        for rank in case["ranks"].as_array().expect("ranks") {
            let at = usize::try_from(int(rank, "pp_rank")).expect("rank");
            let ours = &counted.ranks[at];
            assert_eq!(ours.count.get(), int(rank, "total"), "{id}: rank {at}");
            assert_eq!(ours.expert_count.get(), int(rank, "expert"), "{id}: experts of rank {at}");
            assert_eq!(ours.breakdown.total(), ours.count, "{id}: breakdown of rank {at}");
            let stage = &plan.layout().stages.stages[at];
            for (chunk, expected) in stage.chunks.iter().zip(rank["chunks"].as_array().expect("chunks")) {
                let expected: BTreeMap<String, u64> =
                    serde_json::from_value(expected.clone()).expect("counts");
                assert_eq!(modules(&x, chunk), expected, "{id}: rank {at}");
                chunks += 1;
            }
        }
    }
    assert!(chunks > 100, "only {chunks} chunks compared");
}

#[test]
fn whole_models_are_as_published() {
    let mut llama = draft();
    llama.model.num_layers = 32;
    llama.model.hidden_size = 4096;
    llama.model.ffn_hidden_size = 11008;
    llama.model.num_attention_heads = 32;
    llama.model.num_query_groups = 32;
    llama.model.kv_channels = 128;
    llama.model.padded_vocab_size = 32000;
    llama.layout.stages = even_stages(32, 1, 0);
    let counted = parameters(&llama.plan());
    assert_eq!(counted.total.get(), 6_738_415_616, "LLaMA-2-7B");
    assert_eq!(counted.active_per_token, counted.total);

    let mut mixtral = llama;
    mixtral.model.ffn_hidden_size = 14336;
    mixtral.model.num_query_groups = 8;
    mixtral.model.experts = Some(Experts {
        num_experts: 8,
        router_topk: 2,
        ffn_hidden_size: 14336,
        pattern: vec![true; 32],
        shared_expert_intermediate_size: None,
        shared_expert_gate: false,
        latent_size: None,
        groups: None,
    });
    let counted = parameters(&mixtral.plan());
    assert_eq!(counted.total.get(), 46_702_792_704, "Mixtral-8x7B");
    // Mistral AI, "Mixtral of Experts", abstract: 13 billion active parameters.
    assert_eq!(counted.active_per_token.get(), 12_879_925_248);
}

/// bigcode-project/Megatron-LM, `megatron/model/transformer.py:ParallelAttention`, multiquery: queries are sharded over
/// four tensor ranks, the single head of keys and values is replicated, and the gradient of both is reduced over them.
#[test]
fn one_head_of_keys_and_values_is_whole_on_every_rank() {
    let mut draft = draft();
    let model = &mut draft.model;
    (model.hidden_size, model.num_attention_heads, model.num_query_groups) = (6144, 48, 1);
    (model.kv_channels, model.ffn_hidden_size, model.arrangement.whole_keys) = (128, 24576, true);
    (draft.layout.tensor, draft.layout.world_size) = (4, 4);
    let plan = draft.plan();
    let x = Symbols::new(&plan);
    let rows: u64 = Operator::SelfAttention
        .weights(&x)
        .iter()
        .filter(|weight| ["linear_qkv.weight", "key_value.weight"].contains(&weight.name))
        .map(|weight| weight.local.iter().product::<u64>() / 6144)
        .sum();
    // 48 / 4 heads and two of the single one: 1792, whereas a fused projection of 6400 split evenly has 1600.
    assert_eq!(rows, 12 * 128 + 2 * 128);
    let sent: Vec<u64> = Operator::SelfAttention
        .messages(&x)
        .iter()
        .filter(|message| message.name == "key_value")
        .map(|message| message.bytes().get())
        .collect();
    assert_eq!(sent, [2 * x.n * 128 * x.width]);
}
