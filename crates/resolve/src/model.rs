//! The transformer's shape, from the settings.

use super::frequency::pattern;
use super::named;
use super::table::Table;
use crate::Asked;
use crate::SettingValue::{Bool, Int};
use crate::{Origin, Question};
use shardscope_plan::hints::{divisors, listed};
use shardscope_plan::{
    Activation, AttentionSoftmax, Embeddings, ExpertGroups, Experts, Field, LatentAttention, LinearBias,
    Model, Normalization, PositionEmbedding, Software, word,
};
use shardscope_source::{Code, Diagnostic};

/// The model; none if a size is missing or contradicts another.
pub(super) fn model(table: &mut Table) -> Option<Model> {
    // First, so that everything missing is asked for at once, before rules reject a value that is only incomplete.
    let missing = missing(table);
    shape(table);
    let vocabulary = super::vocabulary::padded(table);
    // Evaluated before the check of `missing`: its errors are worth showing together with what is missing.
    let experts = experts(table);
    let mixers = if missing { None } else { super::mixers::mixers(table) };
    if missing {
        return None;
    }
    Some(Model {
        num_layers: layers(table)?,
        hidden_size: table.count(Field::HiddenSize)?,
        ffn_hidden_size: table.count(Field::FfnHiddenSize)?,
        num_attention_heads: table.count(Field::NumAttentionHeads)?,
        num_query_groups: table.count(Field::NumQueryGroups)?,
        kv_channels: table.count(Field::KvChannels)?,
        seq_length: table.count(Field::SeqLength)?,
        max_position_embeddings: table.count(Field::MaxPositionEmbeddings)?,
        padded_vocab_size: vocabulary?.0,
        vocab_padding: vocabulary?.1,
        activation: activation(table),
        normalization: if table.is(word::Normalization::RmsNorm) {
            Normalization::RmsNorm
        } else {
            Normalization::LayerNorm
        },
        position_embedding: position(table),
        linear_bias: linear_bias(table),
        qk_layernorm: table.on(Field::QkLayernorm),
        // A head for rewards or classes is a separate layer.
        embeddings: if table.on(Field::UntieEmbeddingsAndOutputWeights) || super::objective::has_head(table) {
            Embeddings::Untied
        } else {
            Embeddings::Tied
        },
        attention_softmax: match table.chosen::<word::SoftmaxType>() {
            Some(word::SoftmaxType::Learnable) => AttentionSoftmax::Learnable,
            Some(word::SoftmaxType::OffByOne) => AttentionSoftmax::OffByOne,
            _ => AttentionSoftmax::Vanilla,
        },
        latent: latent(table),
        experts: experts?,
        mixers: mixers?,
        mtp_num_layers: table.number(Field::MtpNumLayers),
        arrangement: super::arrangement::arrangement(table),
        vision: super::vision::tower(table),
        encoder: super::encoder::encoder(table),
    })
}

/// Sizes that a model's `config.json` contains.
const SHAPE: [Field; 3] = [Field::NumLayers, Field::HiddenSize, Field::NumAttentionHeads];

/// Reports which sizes are missing and not given by anything else.
fn missing(table: &mut Table) -> bool {
    let mut needed = vec![
        Field::NumLayers,
        Field::HiddenSize,
        Field::NumAttentionHeads,
        Field::SeqLength,
        Field::MicroBatchSize,
    ];
    if super::encoder::is_there(table) {
        needed.push(Field::SourceLength);
    }
    if super::packs::capacity(table).is_some() {
        needed.push(Field::RolloutLength);
    }
    // An unknown shape is asked for as a whole; missing sizes follow from it.
    let unknown = table.questions.iter().any(|asked| asked.asks == Asked::Setting(Field::Model));
    let (mut absent, mut to_state, mut unsaid) = (false, Vec::new(), String::new());
    for field in &needed {
        // If a trainer states the number of micro-batches, their size follows.
        let target = *field == Field::SeqLength && super::encoder::has_target(table);
        if table.has(*field) || target || *field == Field::MicroBatchSize && super::batch::follows(table) {
            continue;
        }
        absent = true;
        // An open or unreadable value has its own message; a second one would say that the text leaves it out.
        let follows = unknown && SHAPE.contains(field);
        if !follows && !table.is_open(*field) && !table.is_unreadable(*field) {
            unsaid.push_str(if unsaid.is_empty() { "not stated: " } else { ", " });
            // The unit is shown where the value is asked for.
            let about = field.about().split(", in ").next().unwrap_or_default();
            unsaid.push_str(&format!("{about} ({})", field.name()));
            to_state.push(*field);
        }
    }
    // The recipe, once it is known, decides all of this.
    let asked = table.questions.iter().any(|asked| asked.asks == Asked::Recipe);
    if (unknown || !unsaid.is_empty()) && !asked {
        let hint = table.way_to_state(&to_state);
        // Nothing is underlined for a value that is not in the text.
        if !unsaid.is_empty() {
            table.say(Diagnostic::error(Code::MissingSetting, unsaid), &hint, None);
        }
        super::named::ask(table);
        ask_for_sizes(table);
    }
    absent
}

/// Sample and micro-batch: a fine-tuning script may leave them to its data. Sizes of a model of which others are given:
/// no value is proposed for them, because nothing in the text suggests one.
fn ask_for_sizes(table: &mut Table) {
    const USUAL_SEQUENCE: u64 = 4096;
    // Only if others are given: for a text without any size the model is asked for by name (`named::ask`).
    if SHAPE.into_iter().any(|field| table.has(field)) {
        for field in SHAPE {
            if !table.has(field) && !table.is_open(field) && !table.is_unreadable(field) {
                table.ask(Question {
                    asks: Asked::Setting(field),
                    prompt: format!("{}?", field.about()),
                    choices: Vec::new(),
                    proposal: None,
                });
            }
        }
    }
    if super::encoder::is_there(table) {
        super::encoder::ask_for_lengths(table);
    }
    let longest = table.count(Field::MaxPositionEmbeddings).unwrap_or(USUAL_SEQUENCE);
    let mut proposals = vec![(Field::SeqLength, longest.min(USUAL_SEQUENCE)), (Field::MicroBatchSize, 1)];
    // In most frameworks no sample is longer than a full pack.
    proposals.extend(super::packs::capacity(table).map(|tokens| (Field::RolloutLength, tokens)));
    // The decoder's part was asked for along with the encoder's.
    let apart = super::encoder::is_there(table) || super::encoder::has_target(table);
    proposals.retain(|(field, _)| *field != Field::SeqLength || !apart);
    for (field, proposal) in proposals {
        let follows = field == Field::MicroBatchSize && super::batch::follows(table);
        // If the field depends on a variable that is asked for, it already gets its proposal there.
        if !follows && !table.has(field) && !table.is_open(field) {
            table.ask(Question {
                asks: Asked::Setting(field),
                prompt: format!("{}?", field.about()),
                choices: Vec::new(),
                proposal: Some(proposal.to_string()),
            });
        }
    }
}

/// What follows from the stated sizes (`arguments.py:validate_args`).
fn shape(table: &mut Table) {
    if let Some(hidden) = table.count(Field::HiddenSize) {
        if table.on(Field::Swiglu) {
            // In integers and in Megatron's order: `int(4 * hidden * 2 / 3 / 64) * 64`.
            let width = hidden * 8 / 3 / 64 * 64;
            table.derive(
                Field::FfnHiddenSize,
                Int(width.max(1)),
                "2/3 of 4 x hidden_size, rounded down to a multiple of 64 (--swiglu)",
            );
        }
        table.derive(Field::FfnHiddenSize, Int(4 * hidden), "4 x hidden_size");
        if let Some(heads) = table.count(Field::NumAttentionHeads) {
            // With a stated head width, the hidden size need not divide.
            if !table.has(Field::KvChannels) && !hidden.is_multiple_of(heads) && !named::is_asked(table) {
                refuse_heads(table, hidden, heads);
            }
            table.derive(
                Field::KvChannels,
                Int((hidden / heads).max(1)),
                "hidden_size / num_attention_heads",
            );
        }
    }
    groups(table);
    let longest = table.get(Field::MaxPositionEmbeddings);
    // Only for values of the catalog: a stated limit is intentional.
    let of_catalog = longest.is_some_and(|setting| setting.origin == Origin::Catalog);
    if let Some(sequence) = table.count(Field::SeqLength) {
        if of_catalog
            && table.number(Field::MaxPositionEmbeddings) < sequence
            // A learned table has a fixed length, and a longer sequence is an error there.
            && position(table) != PositionEmbedding::LearnedAbsolute
        {
            let rule = "the sequence length: RoPE has no position table to run out of";
            table.overrule(Field::MaxPositionEmbeddings, Int(sequence), rule);
        }
        let rule = "the sequence length, unless a longer one is asked for";
        table.derive(Field::MaxPositionEmbeddings, Int(sequence), rule);
    }
    let bias = table.on(Field::AddBiasLinear);
    if bias {
        // Megatron adds QKV biases together with all others; the flag only matters without them.
        table.overrule(
            Field::AddQkvBias,
            Bool(true),
            "with biases in linear layers the QKV projection has one",
        );
    }
    table.derive(Field::AddQkvBias, Bool(false), "off with --disable-bias-linear unless asked for");
}

/// Layers that have weights: MindSpeed's no-op layers do not.
pub(super) fn layers(table: &Table) -> Option<u64> {
    let stated = table.count(Field::NumLayers)?;
    Some(stated.saturating_sub(noops(table, stated).len() as u64))
}

/// The no-op layers among `stated` ones.
pub(super) fn noops(table: &Table, stated: u64) -> Vec<u64> {
    let mut noops = table.counts(Field::NoopLayers);
    noops.retain(|layer| *layer < stated);
    noops.sort();
    noops.dedup();
    noops
}

fn refuse_heads(table: &mut Table, hidden: u64, heads: u64) {
    let fitting = divisors(hidden);
    let message = format!("hidden size {hidden} cannot be split over {heads} heads");
    let hint = format!("heads that divide it: {}; or give --kv-channels", listed(&fitting, heads));
    let fields = [Field::NumAttentionHeads, Field::HiddenSize];
    table.refuse(Code::HiddenOverHeads, &fields, message, &hint);
}

fn groups(table: &mut Table) {
    if table.on(Field::MultiLatentAttention) && table.on(Field::GroupQueryAttention) {
        let fields = [Field::GroupQueryAttention, Field::MultiLatentAttention];
        let message = "multi-latent attention has no query groups".to_owned();
        table.refuse(Code::MlaGroups, &fields, message, "leave --group-query-attention out");
    }
    let Some(heads) = table.count(Field::NumAttentionHeads) else { return };
    if table.on(Field::GroupQueryAttention) {
        // Megatron-LM's default up to core 0.15; later releases require a number.
        table.default(Field::NumQueryGroups, Int(1), "default of Megatron-LM up to core 0.15");
        return;
    }
    if let Some(groups) = table.count(Field::NumQueryGroups)
        && groups != heads
        // Only if stated in the text: a catalog model may include groups that mean the same under another setting.
        && table.span(Field::NumQueryGroups).is_some()
    {
        let message = format!("num_query_groups {groups} has no effect without --group-query-attention");
        table.warn(Code::NoEffect, Field::NumQueryGroups, &message);
    }
    table.overrule(
        Field::NumQueryGroups,
        Int(heads),
        "without --group-query-attention every head has its own keys and values",
    );
}

fn activation(table: &Table) -> Activation {
    match () {
        () if table.on(Field::Swiglu) => Activation::Swiglu,
        () if table.on(Field::QuickGeglu) => Activation::Geglu,
        () if table.on(Field::SquaredRelu) => Activation::SquaredRelu,
        () => Activation::Gelu,
    }
}

fn position(table: &Table) -> PositionEmbedding {
    match table.chosen::<word::PositionEmbeddingType>() {
        Some(
            word::PositionEmbeddingType::Rope
            | word::PositionEmbeddingType::Yarn
            | word::PositionEmbeddingType::MRope,
        ) => PositionEmbedding::Rope,
        // None of these has parameters or a table, and ALiBi is a bias that is recomputed each time.
        Some(
            word::PositionEmbeddingType::None
            | word::PositionEmbeddingType::Alibi
            | word::PositionEmbeddingType::Relative,
        ) => PositionEmbedding::None,
        _ => PositionEmbedding::LearnedAbsolute,
    }
}

fn linear_bias(table: &Table) -> LinearBias {
    match (table.on(Field::AddBiasLinear), table.on(Field::AddQkvBias)) {
        (true, _) => LinearBias::All,
        (false, true) => LinearBias::QkvOnly,
        (false, false) => LinearBias::None,
    }
}

fn latent(table: &Table) -> Option<LatentAttention> {
    table.on(Field::MultiLatentAttention).then(|| LatentAttention {
        // 0 and a missing value both mean that queries are projected directly.
        q_lora_rank: table.count(Field::QLoraRank).filter(|rank| *rank > 0),
        kv_lora_rank: table.degree(Field::KvLoraRank),
        qk_head_dim: table.degree(Field::QkHeadDim),
        qk_pos_emb_head_dim: table.number(Field::QkPosEmbHeadDim),
        v_head_dim: table.degree(Field::VHeadDim),
    })
}

/// The routed experts; the outer none means that the settings contradict each other.
fn experts(table: &mut Table) -> Option<Option<Experts>> {
    let Some(num_experts) = table.count(Field::NumExperts).filter(|experts| *experts > 0) else {
        return Some(None);
    };
    // In Megatron-DeepSpeed this means a dense model.
    if num_experts == 1 && table.is(Software::MegatronDeepspeed) {
        return Some(None);
    }
    if let Some(width) = table.count(Field::FfnHiddenSize) {
        table.derive(Field::MoeFfnHiddenSize, Int(width), "ffn_hidden_size");
    }
    let width = table.count(Field::MoeFfnHiddenSize)?;
    if let Some(shared) = table.count(Field::NSharedExperts).filter(|shared| *shared > 0) {
        let rule = "n_shared_experts x moe_ffn_hidden_size";
        table.derive(Field::MoeSharedExpertIntermediateSize, Int(shared.saturating_mul(width)), rule);
    }
    let pattern = moe_layers(table)?;
    Some(Some(Experts {
        num_experts,
        router_topk: table.count(Field::MoeRouterTopk).unwrap_or(2),
        ffn_hidden_size: width,
        pattern,
        shared_expert_intermediate_size: table
            // 0 means that there is none.
            .count(Field::MoeSharedExpertIntermediateSize)
            .filter(|width| *width > 0),
        shared_expert_gate: table.on(Field::MoeSharedExpertGate),
        latent_size: table.count(Field::MoeLatentSize),
        groups: expert_groups(table),
    }))
}

/// Groups to which a token's experts are limited, if this limits anything.
fn expert_groups(table: &mut Table) -> Option<ExpertGroups> {
    let count = table.count(Field::MoeRouterNumGroups)?;
    let chosen = table.count(Field::MoeRouterGroupTopk)?;
    // `transformer_config.py:__post_init__`; both only matter if a token is limited to some of the groups.
    let experts = table.count(Field::NumExperts)?;
    let fields = [Field::MoeRouterNumGroups, Field::MoeRouterGroupTopk, Field::NumExperts];
    if !experts.is_multiple_of(count.max(1)) {
        let message =
            format!("{experts} experts cannot be divided into {count} groups (moe_router_num_groups)");
        table.refuse(Code::Topk, &fields, message, "a number of groups that divides the experts");
    } else if chosen > count {
        let message =
            format!("a token cannot be routed to {chosen} of {count} expert groups (moe_router_group_topk)");
        table.refuse(Code::Topk, &fields, message, "at most as many as there are");
    }
    // Choosing all groups limits nothing.
    (chosen < count).then_some(ExpertGroups { count, chosen })
}

/// Which layers are MoE layers; none if the settings contradict each other.
fn moe_layers(table: &mut Table) -> Option<Vec<bool>> {
    // A hybrid pattern states which layers have experts.
    if let Some(pattern) = super::mixers::experts(table) {
        return Some(pattern);
    }
    let stated = table.count(Field::NumLayers)?;
    let asked = table.word(Field::MoeLayerFreq).to_owned();
    let dense: u64 = table.word(Field::FirstKDenseReplace).parse().unwrap_or(0);
    // MindSpeed writes -1 to leave the choice to first_k_dense_replace.
    let asked = if asked == "-1" { "1" } else { asked.as_str() };
    let pattern = match pattern(asked, stated) {
        Ok(pattern) => pattern,
        Err(why) => {
            let fields = [Field::MoeLayerFreq, Field::NumLayers];
            let message = why.of(Field::MoeLayerFreq.name());
            table.refuse(Code::MoeLayerFreq, &fields, message, "1, 2, or a list such as ([0]*3+[1]*58)");
            return None;
        }
    };
    // The pattern counts no-op layers, the model does not.
    let noops = noops(table, stated);
    let mut kept = Vec::new();
    for (index, layer) in (0..).zip(pattern) {
        if !noops.contains(&index) {
            kept.push(layer && index >= dense);
        }
    }
    Some(kept)
}
