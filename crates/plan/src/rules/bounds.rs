//! Sizes that keep every later product within 64 bits.

use super::refusals::Refusals;
use crate::contradiction::Rule;
use crate::degrees::too_many_parts;
use crate::limits::{MAX_ELEMENTS, MAX_PARAMETERS, MAX_TURN};
use crate::{Contradiction, Field, Plan, ValueKind};
use shardscope_source::Code;
use shardscope_units::product;

/// Each size individually: at least 1, at most what its setting accepts.
pub(super) fn each(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout, recipe, cluster) = (plan.model(), plan.layout(), plan.recipe(), plan.cluster());
    let sizes = [
        (Field::NumLayers, model.num_layers),
        (Field::HiddenSize, model.hidden_size),
        (Field::FfnHiddenSize, model.ffn_hidden_size),
        (Field::NumAttentionHeads, model.num_attention_heads),
        (Field::NumQueryGroups, model.num_query_groups),
        (Field::KvChannels, model.kv_channels),
        (Field::SeqLength, model.seq_length),
        (Field::MaxPositionEmbeddings, model.max_position_embeddings),
        (Field::PaddedVocabSize, model.padded_vocab_size),
        (Field::MtpNumLayers, model.mtp_num_layers),
        (Field::NumNodes, cluster.num_nodes),
        (Field::GpusPerNode, cluster.gpus_per_node),
        (Field::WorldSize, layout.world_size),
        (Field::TensorModelParallelSize, layout.tensor),
        (Field::PipelineModelParallelSize, layout.pipeline),
        (Field::VirtualPipelineModelParallelSize, layout.virtual_pipeline),
        (Field::ContextParallelSize, layout.context),
        (Field::ExpertModelParallelSize, layout.expert),
        (Field::ExpertTensorParallelSize, layout.expert_tensor),
        (Field::DataParallelSize, layout.data),
        (Field::NumDistributedOptimizerInstances, layout.distributed_optimizer_instances),
        (Field::MicroBatchSize, recipe.micro_batch_size),
        (Field::GlobalBatchSize, recipe.global_batch_size),
        (Field::NumMicroBatches, recipe.num_micro_batches),
    ];
    // The same bounds as those of the other layers' heads.
    let full = model.mixers.full;
    let full = full.map(|full| [(Field::NumQueryGroups, full.groups), (Field::KvChannels, full.width)]);
    for &(field, size) in sizes.iter().chain(full.iter().flatten()) {
        within(field, size, refusals);
    }
    let (p, v) = (layout.pipeline, layout.virtual_pipeline);
    refusals.0.extend(too_many_parts(p, v));
    // Interleaving in groups has one turn of all chunks over a group in flight, with a separate event for each pass.
    let turn = product(product(p, v), layout.microbatch_group_size);
    if v > 1 && turn > MAX_TURN {
        let rule = &Rule {
            code: Code::VppGroupSize,
            fields: &[Field::MicrobatchGroupSizePerVpStage, Field::PipelineModelParallelSize],
            sentence: "groups of {} micro-batches over PP {} x VPP {} are {} forward passes, and the limit is {}",
            hint: "",
        };
        let nearest = (MAX_TURN / product(p, v).max(1)).max(1);
        let numbers = [layout.microbatch_group_size, p, v, turn, MAX_TURN];
        refusals.refuse(rule, &numbers).nearest = Some(nearest);
    }
    if let Some(encoder) = &model.encoder {
        within(Field::EncoderLayers, encoder.layers, refusals);
        within(Field::SourceLength, encoder.seq_length, refusals);
        within(Field::RelativeBuckets, encoder.buckets, refusals);
    }
    if let Some(experts) = &model.experts {
        within(Field::NumExperts, experts.num_experts, refusals);
        within(Field::MoeFfnHiddenSize, experts.ffn_hidden_size, refusals);
        within(Field::MoeRouterTopk, experts.router_topk, refusals);
        let shared = experts.shared_expert_intermediate_size.unwrap_or(0);
        within(Field::MoeSharedExpertIntermediateSize, shared, refusals);
        within(Field::MoeLatentSize, experts.latent_size.unwrap_or(1), refusals);
    }
    if let Some(latent) = &model.latent {
        within(Field::QLoraRank, latent.q_lora_rank.unwrap_or(1), refusals);
        within(Field::KvLoraRank, latent.kv_lora_rank, refusals);
        within(Field::QkHeadDim, latent.qk_head_dim, refusals);
        within(Field::QkPosEmbHeadDim, latent.qk_pos_emb_head_dim, refusals);
        within(Field::VHeadDim, latent.v_head_dim, refusals);
    }
}

fn within(field: Field, size: u64, refusals: &mut Refusals) {
    let ValueKind::Count(least, most) = field.kind() else { return };
    // The same bounds as when settings are read: plans are also made by variants and by Rust users.
    if size < least || size > most {
        let name = field.name();
        let message = format!("{name} is {size}, and must lie between {least} and {most}");
        refusals
            .push(Contradiction::new(Code::Size, &[field], message).nearest(Some(size.clamp(least, most))));
    }
}

/// The products: parameters of the whole model, and elements of one micro-batch in one layer.
#[allow(clippy::cast_precision_loss)]
pub(super) fn products(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    // In floating point, since the question is whether the product fits into 64 bits.
    let real = |size: u64| size as f64;
    // A layer behind an encoder has a second attention.
    let encoder = model.encoder.map_or(0, |encoder| encoder.layers.saturating_add(model.num_layers));
    let layers = real(model.num_layers + model.mtp_num_layers) + real(encoder);
    let hidden = real(model.hidden_size);
    let head = model.latent.map_or(model.kv_channels, |latent| latent.query_width().max(latent.v_head_dim));
    let head = head.max(model.mixers.full.map_or(0, |full| full.width));
    let heads = real(model.num_attention_heads) * real(head);
    let routed = model.experts.as_ref().map_or(0.0, |experts| {
        let shared = real(experts.shared_expert_intermediate_size.unwrap_or(0));
        (real(experts.num_experts) * real(experts.ffn_hidden_size) + shared) * 3.0
    });
    let latent =
        model.latent.map_or(0.0, |latent| real(latent.q_lora_rank.unwrap_or(0)) + real(latent.kv_lora_rank));
    // An upper bound: queries, keys, values and output as if no heads were shared, three matrices of a gated MLP.
    let layer = (hidden + latent) * (4.0 * heads + 3.0 * real(model.ffn_hidden_size) + routed + latent);
    // Input and output embedding, tied or not.
    let tables = 2.0 * hidden * (real(model.padded_vocab_size) + real(model.max_position_embeddings));
    let parameters = layers * layer + tables;
    if parameters > MAX_PARAMETERS {
        let message = format!(
            "the model would have {parameters:.1e} parameters, and the limit is {MAX_PARAMETERS:.0e}"
        );
        refusals.push(Contradiction::new(
            Code::ModelSize,
            &[Field::HiddenSize, Field::NumLayers, Field::FfnHiddenSize],
            message,
        ));
    }
    let expert = model.experts.as_ref().map_or(0.0, |experts| real(experts.ffn_hidden_size));
    let longest = model.encoder.map_or(0, |encoder| encoder.seq_length).max(model.seq_length);
    let tokens = real(longest) / real(layout.context) * real(plan.recipe().micro_batch_size);
    let topk = model.experts.as_ref().map_or(1.0, |experts| real(experts.router_topk));
    let widest = [hidden, heads, real(model.padded_vocab_size), real(model.ffn_hidden_size), expert]
        .into_iter()
        .fold(0.0, f64::max);
    // Attention's scores as the unfused kernel holds them, not divided by the tensor size.
    let scores = tokens * real(longest) * real(model.num_attention_heads);
    let elements = (layers * tokens * widest * topk).max(scores);
    if elements > MAX_ELEMENTS {
        let message =
            format!("a micro-batch would make {elements:.1e} elements, and the limit is {MAX_ELEMENTS:.0e}");
        refusals.push(Contradiction::new(
            Code::MicroBatchSize,
            &[Field::MicroBatchSize, Field::SeqLength],
            message,
        ));
    }
}
