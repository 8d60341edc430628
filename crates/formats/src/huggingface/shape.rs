//! The shape of a model as settings, each at the key that states it.

use shardscope_architectures::Architecture;
use shardscope_catalog as catalog;
use shardscope_plan::Field;

use crate::Origin;
use crate::leaves::Leaves;

/// Keys that mean the same in every model type.
pub(super) const PLAIN: &[(&[&str], Field)] = &[
    (&["num_hidden_layers", "n_layer", "n_layers", "num_layers"], Field::NumLayers),
    (&["hidden_size", "n_embd", "d_model", "n_embed"], Field::HiddenSize),
    (&["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"], Field::NumAttentionHeads),
    (&["vocab_size"], Field::VocabSize),
    (
        &["max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "model_max_length"],
        Field::MaxPositionEmbeddings,
    ),
    (&["rope_theta", "rotary_emb_base", "rope_parameters.rope_theta"], Field::RotaryBase),
    (&["rotary_pct", "partial_rotary_factor", "rope_parameters.partial_rotary_factor"], Field::RotaryPercent),
];

/// Keys that hold a size, in addition to those in [`PLAIN`].
const KEYS: &[(Field, &[&str])] = &[
    (
        Field::FfnHiddenSize,
        &["intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim"],
    ),
    (Field::KvChannels, &["head_dim", "attention_head_dim", "kv_channels"]),
    (
        Field::NumQueryGroups,
        &["num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads", "multi_query"],
    ),
    (
        Field::GroupQueryAttention,
        &["num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads", "multi_query"],
    ),
    (Field::QLoraRank, &["q_lora_rank"]),
    (Field::KvLoraRank, &["kv_lora_rank"]),
    (Field::MultiLatentAttention, &["kv_lora_rank"]),
    (Field::QkHeadDim, &["qk_nope_head_dim"]),
    (Field::QkPosEmbHeadDim, &["qk_rope_head_dim"]),
    (Field::VHeadDim, &["v_head_dim"]),
    (
        Field::NumExperts,
        &[
            "n_routed_experts",
            "num_local_experts",
            "num_experts",
            "moe_num_experts",
            "ffn_config.moe_num_experts",
        ],
    ),
    (
        Field::MoeRouterTopk,
        &[
            "num_experts_per_tok",
            "experts_per_token",
            "moe_topk",
            "moe_k",
            "top_k_experts",
            "ffn_config.moe_top_k",
        ],
    ),
    (
        Field::MoeFfnHiddenSize,
        &[
            "moe_intermediate_size",
            "expert_ffn_hidden_size",
            "intermediate_size",
            "ffn_config.ffn_hidden_size",
        ],
    ),
    (
        Field::MoeSharedExpertIntermediateSize,
        &[
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "shared_intermediate_size",
            "share_expert_dim",
            "n_shared_experts",
            "num_shared_experts",
            "moe_num_shared_experts",
        ],
    ),
    (Field::UntieEmbeddingsAndOutputWeights, &["tie_word_embeddings"]),
    (Field::AddQkvBias, &["attention_bias", "qkv_bias", "use_qkv_bias", "bias", "use_bias", "enable_bias"]),
    (Field::AddBiasLinear, &["mlp_bias", "bias", "use_bias", "enable_bias", "attention_bias"]),
    (Field::QkLayernorm, &["use_qk_norm", "qk_layernorm"]),
];

/// Depths of multi-token prediction; the library omits those layers, but training has them.
const DEPTHS: [&str; 3] = ["num_nextn_predict_layers", "num_mtp_layers", "mtp_num_hidden_layers"];

/// States the shape of `architecture`: each value at the key that it is read from, if it is written; other values
/// follow from the model type's code, as `why` says.
pub(super) fn state(leaves: &mut Leaves<'_>, architecture: &Architecture, why: &str) {
    for (field, value) in catalog::settings_of(architecture) {
        let own = KEYS.iter().find(|(other, _)| *other == field).map(|(_, keys)| *keys);
        let plain = PLAIN.iter().find(|(_, other)| *other == field).map(|(keys, _)| *keys);
        match own.or(plain).and_then(|keys| leaves.first(keys)) {
            Some(leaf) => leaves.say(field, &value, leaf),
            None => leaves.state(field, &value, Origin::Derived, why),
        }
    }
    for (keys, field) in PLAIN {
        if matches!(field, Field::RotaryBase | Field::RotaryPercent) {
            leaves.take(keys, *field);
        }
    }
    leaves.take(&DEPTHS, Field::MtpNumLayers);
}
