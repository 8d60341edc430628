//! Parallel groups.

use maud::{Markup, html};
use shardscope::launch::{Request, read};
use shardscope::session::UserInput;
use shardscope::topology::{GroupKind, Groups};
use shardscope::units::grouped;

use super::write::{Chapter, Row, code, inline, plain, prose, table};

/// The plan whose groups are shown: small enough to read, with groups of every usual kind.
const EXAMPLE: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 \
    --ffn-hidden-size 14336 --seq-length 4096 --max-position-embeddings 4096 --swiglu --bf16 --micro-batch-size 1 \
    --global-batch-size 64 --num-experts 8 --moe-token-dispatcher-type alltoall --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 --context-parallel-size 2 --expert-model-parallel-size 4 \
    --expert-tensor-parallel-size 1 --sequence-parallel --use-distributed-optimizer --vocab-size 32000 \
    --position-embedding-type rope --normalization RMSNorm --untie-embeddings-and-output-weights --disable-bias-linear";

/// What each kind of group is for.
fn about(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Tensor => "share each layer's dense weights: [tensor parallelism]",
        GroupKind::Pipeline => "the stages of one replica, in order: [pipeline stage]",
        GroupKind::Data => "replicas, context ranks apart: [data-parallel group]",
        GroupKind::Context => "share one sequence: [context parallelism]",
        GroupKind::DataContext => "replicas with their context ranks: dense gradients are reduced here",
        GroupKind::Model => {
            "one replica without its context ranks; the gradient's norm where states are not sharded"
        }
        GroupKind::TensorContext => "tensor and context ranks: token counts of the experts' balancing loss",
        GroupKind::TensorData => "tensor and data ranks",
        GroupKind::TensorDataContext => "all ranks of a stage",
        GroupKind::Embedding => "first and last stage, which add up gradients of [tied embeddings]",
        GroupKind::PositionEmbedding => "the first stage, for learned positions",
        GroupKind::Expert => "share the experts of a layer: [expert parallelism]",
        GroupKind::ExpertTensor => "share each expert's weights: [expert tensor parallelism]",
        GroupKind::TensorExpert => "exchange tokens: expert and expert tensor ranks together",
        GroupKind::TensorExpertPipeline => "one replica on the expert side",
        GroupKind::ExpertData => {
            "hold the same experts, whose gradients are reduced here: [expert data parallelism]"
        }
        GroupKind::SecondShards => "gather weights from second shards among themselves (ZeRO++ hpZ)",
        GroupKind::DataContextInstance => {
            "data and context ranks of one instance of the distributed optimizer"
        }
        GroupKind::ExpertDataInstance => "expert data ranks of one such instance",
        GroupKind::ExpertDataAcross => "the same place in every instance",
        GroupKind::ContextLevel(_) => "one level of hierarchical context parallelism",
        GroupKind::OptimizerInstance => {
            "all ranks of one instance of the distributed optimizer; the gradient's norm where states are sharded"
        }
    }
}

/// Every kind of group in a small plan.
pub(super) fn chapter() -> Chapter {
    let input =
        UserInput::from_text(&format!("torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py {EXAMPLE}"));
    let source = input.source();
    let resolution = read(&Request {
        source: &source,
        environment: &input.shell_environment(),
        overrides: &input.settings,
    });
    let mut rows = Vec::new();
    let mut cut = String::new();
    if let Some(plan) = &resolution.plan {
        let groups = Groups::new(plan.layout());
        cut = shardscope::session::cut(plan);
        for kind in groups.kinds() {
            let first = groups.all(kind).next().map(|group| members(&group, plan.cluster().gpus_per_node));
            rows.push(Row::at(
                format!("group-{}", kind.name()),
                [
                    code(kind.name()),
                    inline(about(kind)),
                    plain(grouped(groups.size(kind))),
                    plain(grouped(groups.count(kind))),
                    first.unwrap_or_default(),
                ],
            ));
        }
    }
    let lead = prose(&format!(
        "Megatron derives these groups from rank numbers alone: tensor-parallel ranks are adjacent, followed by context, \
         expert and data ranks, and pipeline ranks are furthest apart ([rank order]). The table shows them for {cut}; \
         GPUs are named by [node and index|n0_g0]. Tests compare every group of many layouts with those that Megatron's \
         own `initialize_model_parallel` creates."
    ));
    let headings = ["Group", "Its members", ">members", ">groups", "the first of them"];
    let body = html! { (lead) (table("Groups by kind", &headings, &rows)) };
    Chapter::new("groups", "Parallel groups", body)
}

fn members(group: &shardscope::topology::Group, per_node: u64) -> Markup {
    const SHOWN: usize = 4;
    let labels: Vec<String> = group.ranks().map(|rank| rank.label(per_node)).collect();
    let shown = labels.get(..SHOWN).unwrap_or(&labels).join(" ");
    html! { code { (shown) @if labels.len() > SHOWN { " …" } } }
}
