//! The model's own sizes, and what they must be divisible by.

use super::refusals::{Division, Refusals};
use crate::contradiction::Rule;
use crate::hints::{divisors, listed, nearest_of};
use crate::{ContextKind, FeedForward, Field, Plan, PositionEmbedding};
use shardscope_source::Code;

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let t = layout.tensor;
    refusals.divides(&Division {
        code: Code::HeadsOverTp,
        what: "{} heads",
        number: model.num_attention_heads,
        noun: "heads",
        by: "TP",
        divisor: t,
        fields: &[Field::TensorModelParallelSize, Field::NumAttentionHeads],
    });
    groups(plan, refusals);
    // A model whose layers are all MoE never builds the dense MLP, so its width has no meaning.
    let dense = model.count_layers(|kind| kind.feed_forward == FeedForward::Dense) > 0;
    if dense {
        refusals.divides(&Division {
            code: Code::FfnOverTp,
            what: "ffn_hidden_size {}",
            number: model.ffn_hidden_size,
            noun: "",
            by: "TP",
            divisor: t,
            fields: &[Field::TensorModelParallelSize, Field::FfnHiddenSize],
        });
    }
    refusals.divides(&Division {
        code: Code::VocabOverTp,
        what: "{} padded rows of the vocabulary",
        number: model.padded_vocab_size,
        noun: "rows",
        by: "TP",
        divisor: t,
        fields: &[Field::TensorModelParallelSize, Field::PaddedVocabSize, Field::VocabSize],
    });
    sequence(plan, refusals);
}

/// Query groups: of equal size, and either sharded over tensor ranks or replicated on several of them.
fn groups(plan: &Plan, refusals: &mut Refusals) {
    let (model, t) = (plan.model(), plan.layout().tensor);
    let (heads, groups) = (model.num_attention_heads, model.num_query_groups);
    // Without grouping, the check on heads covers this. Multi-latent attention computes keys and values of all heads
    // from one latent vector.
    if model.latent.is_some() || groups == heads {
        return;
    }
    if groups == 0 || !heads.is_multiple_of(groups) {
        let rule = &Rule {
            code: Code::HeadsOverGroups,
            fields: &[Field::NumQueryGroups, Field::NumAttentionHeads],
            sentence: "{} heads cannot share {} query groups evenly",
            hint: "",
        };
        let fitting = divisors(heads);
        let refused = refusals.refuse(rule, &[heads, groups]);
        refused.hint = Some(format!("query groups that divide {heads}: {}", listed(&fitting, groups)));
        refused.nearest = nearest_of(&fitting, groups);
    } else if !groups.is_multiple_of(t) && !t.is_multiple_of(groups) {
        // With fewer groups than tensor ranks each group is held by t / groups of them (`attention.py`).
        let rule = &Rule {
            code: Code::GroupsOverTp,
            fields: &[Field::TensorModelParallelSize, Field::NumQueryGroups],
            sentence: "{} query groups and TP {}: neither divides the other",
            hint: "",
        };
        let mut fitting = Vec::new();
        for t in divisors(heads) {
            if groups.is_multiple_of(t) || t.is_multiple_of(groups) {
                fitting.push(t);
            }
        }
        let refused = refusals.refuse(rule, &[groups, t]);
        refused.hint = Some(format!("TP {}", listed(&fitting, t)));
        refused.nearest = nearest_of(&fitting, t);
    }
}

/// The sequence: split by context and sequence parallelism, and no longer than the positions.
fn sequence(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let (s, t, c) = (model.seq_length, layout.tensor, layout.context);
    // With a causal mask later tokens attend to more, so for balance a rank takes pieces i and 2c - 1 - i of 2c.
    let block = if c > 1 { 2 * c } else { 1 } * if layout.sequence_parallel { t } else { 1 };
    if c > 1 && !s.is_multiple_of(2 * c) {
        let rule = &Rule {
            code: Code::SeqOverCp,
            fields: &[Field::SeqLength, Field::ContextParallelSize],
            sentence: "sequence length {} is not a multiple of 2 x CP = {}: each context rank takes two pieces",
            hint: "{} tokens, or a smaller CP",
        };
        let near = crate::hints::nearest_multiple(s, 2 * c);
        refusals.refuse(rule, &[s, 2 * c, near]).nearest = Some(near);
    } else if layout.sequence_parallel && !(s / c.max(1)).is_multiple_of(t) {
        let rule = &Rule {
            code: Code::SeqOverTp,
            fields: &[Field::SeqLength, Field::TensorModelParallelSize, Field::SequenceParallel],
            sentence: "{} tokens on a rank cannot be split over TP {} by sequence parallelism",
            hint: "{} tokens",
        };
        let near = crate::hints::nearest_multiple(s, block);
        refusals.refuse(rule, &[s / c.max(1), t, near]).nearest = Some(near);
    }
    positions(plan, refusals);
    if layout.context > 1 && layout.context_kind == ContextKind::AllToAll {
        // Transformer Engine requires the query groups to divide evenly too; other implementations repeat them.
        let heads = model.num_attention_heads;
        let rule = &Rule {
            code: Code::CpA2aHeads,
            fields: &[Field::ContextParallelSize, Field::CpCommType, Field::NumAttentionHeads],
            sentence: "all-to-all context parallelism needs the {} heads to divide by TP x CP = {}",
            hint: "",
        };
        refusals.unless(heads.is_multiple_of(t * c), rule, &[heads, t * c]);
    }
}

/// Positions: enough of them, and of a kind that multi-token prediction supports.
fn positions(plan: &Plan, refusals: &mut Refusals) {
    let model = plan.model();
    let (s, positions) = (model.seq_length, model.max_position_embeddings);
    // `arguments.py:validate_args`, regardless of the kind of positions.
    if positions < s {
        let rule = &Rule {
            code: Code::Positions,
            fields: &[Field::MaxPositionEmbeddings, Field::SeqLength],
            sentence: "sequence length {} is longer than max_position_embeddings {}",
            hint: "--max-position-embeddings {}",
        };
        refusals.refuse(rule, &[s, positions, s]).nearest = Some(s);
    }
    let learned = model.position_embedding == PositionEmbedding::LearnedAbsolute;
    let rule = &Rule {
        code: Code::MtpPositions,
        fields: &[Field::PositionEmbeddingType, Field::MtpNumLayers],
        sentence: "multi-token prediction needs rotary positions or none",
        hint: "--position-embedding-type rope",
    };
    refusals.unless(model.mtp_num_layers == 0 || !learned, rule, &[]);
}
