//! The same run on other machines or with other sequence lengths, as a plan to search around.

use shardscope_plan::hints::divisors;
use shardscope_plan::{Cluster, Field, Model, Plan, PositionEmbedding, Recompute, StageSplit, Variant};

/// A plan derived from the reader's, with the settings that produce it.
pub(crate) struct Other {
    pub(crate) plan: Plan,
    pub(crate) before: Vec<(Field, String)>,
}

/// `plan` on `nodes` nodes of `per_node` accelerators; none if no layout divides them.
pub(crate) fn on_machines(plan: &Plan, nodes: u64, per_node: u64) -> Option<Other> {
    let mut cluster = plan.cluster().clone();
    // A fast-link domain within a node shrinks along with the node; a larger one stays.
    if cluster.fast_domain <= cluster.gpus_per_node {
        cluster.fast_domain = cluster.fast_domain.min(per_node);
    }
    (cluster.num_nodes, cluster.gpus_per_node) = (nodes, per_node);
    let before = vec![
        (Field::NumNodes, nodes.to_string()),
        (Field::GpusPerNode, per_node.to_string()),
        (Field::WorldSize, cluster.gpus().to_string()),
    ];
    some_layout(plan, plan.model(), &cluster).map(|plan| Other { plan, before })
}

/// The setting of the sequence's length: an encoder-decoder's is the target's, beside the source's.
pub(crate) fn length_of(plan: &Plan) -> Field {
    if plan.model().encoder.is_some() { Field::TargetLength } else { Field::SeqLength }
}

/// `plan` with sequences of `length` tokens; none if its table of positions is shorter.
pub(crate) fn with_sequences(plan: &Plan, length: u64) -> Option<Other> {
    let mut model = plan.model().clone();
    let learned = model.position_embedding == PositionEmbedding::LearnedAbsolute;
    if learned && model.max_position_embeddings < length {
        return None;
    }
    model.seq_length = length;
    let mut before = vec![(length_of(plan), length.to_string())];
    if model.max_position_embeddings < length {
        model.max_position_embeddings = length;
        // An encoder-decoder's positions are relative, so that nothing is to be stated.
        if model.encoder.is_none() {
            before.push((Field::MaxPositionEmbeddings, length.to_string()));
        }
    }
    some_layout(plan, &model, plan.cluster()).map(|plan| Other { plan, before })
}

/// The plan's own layout if it divides, otherwise the first that does: it only serves as a start for the search.
fn some_layout(plan: &Plan, model: &Model, cluster: &Cluster) -> Option<Plan> {
    let own = Variant::from_plan(plan);
    let of = |variant: &Variant| variant.checked_on(plan, model.clone(), cluster.clone()).ok();
    if let Some(plan) = of(&own) {
        return Some(plan);
    }
    let cuts = plan.recipe().software.semantics().cuts_models;
    let domain = if cuts { cluster.fast_domain.max(cluster.gpus_per_node) } else { 1 };
    let mut tensors = divisors(plan.model().num_attention_heads);
    tensors.retain(|size| *size <= domain);
    for pipeline in divisors(cluster.gpus()) {
        // Divisors ascend: deeper pipelines would have stages without a layer.
        if pipeline > if cuts { model.num_layers } else { 1 } {
            break;
        }
        for &tensor in tensors.iter().rev() {
            let variant = Variant {
                tensor,
                pipeline,
                virtual_pipeline: own.schedule.own_chunks().filter(|_| pipeline > 1).unwrap_or(1),
                group: None,
                split: StageSplit::EVEN,
                context: 1,
                expert: 1,
                expert_tensor: tensor,
                sequence_parallel: tensor > 1,
                micro_batch_size: 1,
                instances: 1,
                recompute: Recompute::None,
                ..own.clone()
            };
            if let Some(plan) = of(&variant) {
                return Some(plan);
            }
        }
    }
    None
}
