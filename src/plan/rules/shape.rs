//! The model's own sizes, and what they must divide by.

use super::{Division, Refusals};
use crate::plan::hints::{divisors, listed, nearest_of};
use crate::plan::{ContextKind, Contradiction, Field, LayerKind, Plan, PositionEmbedding};

pub(super) fn check(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let t = layout.tensor;
    refusals.divides(&Division {
        code: "heads-over-tp",
        what: &format!("{} heads", model.num_attention_heads),
        number: model.num_attention_heads,
        noun: "heads",
        by: "TP",
        divisor: t,
        fields: &[Field::TensorModelParallelSize, Field::NumAttentionHeads],
    });
    groups(plan, refusals);
    let dense = (0..model.num_layers).any(|layer| model.layer_kind(layer) == LayerKind::Dense);
    if dense {
        refusals.divides(&Division {
            code: "ffn-over-tp",
            what: &format!("ffn_hidden_size {}", model.ffn_hidden_size),
            number: model.ffn_hidden_size,
            noun: "",
            by: "TP",
            divisor: t,
            fields: &[Field::TensorModelParallelSize, Field::FfnHiddenSize],
        });
    }
    refusals.divides(&Division {
        code: "vocab-over-tp",
        what: &format!("{} padded rows of the vocabulary", model.padded_vocab_size),
        number: model.padded_vocab_size,
        noun: "rows",
        by: "TP",
        divisor: t,
        fields: &[Field::TensorModelParallelSize, Field::PaddedVocabSize, Field::VocabSize],
    });
    sequence(plan, refusals);
}

/// Query groups: of equal size, and either spread over tensor ranks or held by several of them.
fn groups(plan: &Plan, refusals: &mut Refusals) {
    let (model, t) = (plan.model(), plan.layout().tensor);
    let (heads, groups) = (model.num_attention_heads, model.num_query_groups);
    // Without grouping the heads themselves have said so.
    if model.latent.is_some() || groups == heads {
        return;
    }
    if groups == 0 || !heads.is_multiple_of(groups) {
        let fitting = divisors(heads);
        let message = format!("{heads} heads cannot share {groups} query groups evenly");
        let hint = format!("query groups that divide {heads}: {}", listed(&fitting, groups));
        let fields = [Field::NumQueryGroups, Field::NumAttentionHeads];
        refusals.push(
            Contradiction::new("heads-over-groups", &fields, message)
                .hint(hint)
                .nearest(nearest_of(&fitting, groups)),
        );
    } else if !groups.is_multiple_of(t) && !t.is_multiple_of(groups) {
        let fitting: Vec<u64> = divisors(heads)
            .into_iter()
            .filter(|t| groups.is_multiple_of(*t) || t.is_multiple_of(groups))
            .collect();
        let message = format!("{groups} query groups and TP {t}: neither divides the other");
        let hint = format!("TP {}", listed(&fitting, t));
        let fields = [Field::TensorModelParallelSize, Field::NumQueryGroups];
        refusals.push(
            Contradiction::new("groups-over-tp", &fields, message)
                .hint(hint)
                .nearest(nearest_of(&fitting, t)),
        );
    }
}

/// The sequence: cut by context and sequence parallelism, and no longer than the positions.
fn sequence(plan: &Plan, refusals: &mut Refusals) {
    let (model, layout) = (plan.model(), plan.layout());
    let (s, t, c) = (model.seq_length, layout.tensor, layout.context);
    let block = if c > 1 { 2 * c } else { 1 } * if layout.sequence_parallel { t } else { 1 };
    if c > 1 && !s.is_multiple_of(2 * c) {
        let near = crate::plan::hints::nearest_multiple(s, 2 * c);
        let message = format!(
            "sequence length {s} is no multiple of 2 x CP = {}: each context rank takes two pieces",
            2 * c
        );
        let fields = [Field::SeqLength, Field::ContextParallelSize];
        refusals.push(
            Contradiction::new("seq-over-cp", &fields, message)
                .hint(format!("{near} tokens, or a smaller CP"))
                .nearest(Some(near)),
        );
    } else if layout.sequence_parallel && !(s / c.max(1)).is_multiple_of(t) {
        let near = crate::plan::hints::nearest_multiple(s, block);
        let local = s / c.max(1);
        let message = format!("{local} tokens on a rank cannot be split over TP {t} by sequence parallelism");
        let fields = [Field::SeqLength, Field::TensorModelParallelSize, Field::SequenceParallel];
        refusals.push(
            Contradiction::new("seq-over-tp", &fields, message)
                .hint(format!("{near} tokens"))
                .nearest(Some(near)),
        );
    }
    let positions = model.max_position_embeddings;
    refusals.unless(positions >= s, "positions", &[Field::MaxPositionEmbeddings, Field::SeqLength], || {
        format!("sequence length {s} is longer than max_position_embeddings {positions}")
    });
    if let (false, Some(last)) = (positions >= s, refusals.0.last_mut()) {
        last.nearest = Some(s);
        last.hint = Some(format!("--max-position-embeddings {s}"));
    }
    if model.mtp_num_layers > 0 && model.position_embedding == PositionEmbedding::LearnedAbsolute {
        let fields = [Field::PositionEmbeddingType, Field::MtpNumLayers];
        let message = "multi-token prediction needs rotary positions or none".to_owned();
        refusals.push(
            Contradiction::new("mtp-positions", &fields, message).hint("--position-embedding-type rope"),
        );
    }
    if layout.context > 1 && layout.context_kind == ContextKind::AllToAll {
        // Transformer Engine wants the query groups to divide too; other implementations repeat them.
        let heads = model.num_attention_heads;
        refusals.unless(
            heads.is_multiple_of(t * c),
            "cp-a2a-heads",
            &[Field::ContextParallelSize, Field::CpCommType, Field::NumAttentionHeads],
            || {
                format!(
                    "all-to-all context parallelism needs the {heads} heads to divide by TP x CP = {}",
                    t * c
                )
            },
        );
    }
}
