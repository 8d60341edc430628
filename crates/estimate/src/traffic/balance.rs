//! Balancing of experts: token counts per expert, summed over ranks (`megatron/core/transformer/moe/router.py`,
//! `moe_utils.py`; `distributed/finalize_model_grads.py`).

use super::builder::{Builder, Calls, Sent};
use super::ledger::{Parallelism, Place};
use shardscope_explain::Formula;
use shardscope_operators::{Collective, Pass, SectionKind, Shape, section_counts};
use shardscope_plan::{Chunk, LoadBalancing};
use shardscope_topology::GroupKind;

static COUNTS: Formula = Formula::new(
    "elements·8",
    "Tokens per expert, int64, for the load-balancing loss; sent once, in the forward pass that records gradients.",
    "megatron/core/transformer/moe/moe_utils.py:switch_load_balancing_loss_func",
).letters(&[("elements", "experts of a layer")]);
static BIAS: Formula = Formula::new(
    "elements·4",
    "Tokens per expert of each layer in the step, fp32, from which the expert biases are updated.",
    "megatron/core/distributed/finalize_model_grads.py:_update_router_expert_bias",
)
.letters(&[("elements", "experts of all layers")]);

/// Adds the messages of the balancing loss and of the experts' biases.
pub(super) fn add(builder: &mut Builder<'_>) {
    if builder.plan().model().experts.is_none() {
        return;
    }
    loss(builder);
    bias(builder);
}

fn loss(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let (counts, group) = match x.recipe().moe.load_balancing {
        LoadBalancing::AuxiliaryLoss => (x.moe.experts, GroupKind::TensorContext),
        LoadBalancing::SequenceAuxiliaryLoss => (x.moe.experts.saturating_mul(x.b), GroupKind::TensorContext),
        LoadBalancing::GlobalAuxiliaryLoss => (x.moe.experts, GroupKind::TensorDataContext),
        // Sinkhorn balances by its assignment, without a loss that would need counts from other ranks.
        LoadBalancing::Sinkhorn | LoadBalancing::None => return,
    };
    let stages = &x.plan.layout().stages.stages;
    let calls = builder.chunk_calls(&|stage, chunk| {
        stages.get(stage).and_then(|stage| stage.chunks.get(chunk)).map_or(0, |chunk| routers(builder, chunk))
    });
    let Some(routed) = SectionKind::ALL.into_iter().find(|kind| kind.routes(&x)) else { return };
    let place = Place::In(routed, Pass::Forward);
    let message =
        Sent { shape: Shape::new(&[counts]), width: 8, dtype: "int64", formula: &COUNTS, ..sent(place) };
    builder.add(Parallelism::Scalars, group, message, calls);
}

fn bias(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    if !x.recipe().moe.expert_bias {
        return;
    }
    let held: Vec<u64> = (x.plan.layout().stages.stages.iter())
        .map(|stage| stage.chunks.iter().map(|chunk| routers(builder, chunk)).sum())
        .collect();
    for (stage, layers) in held.into_iter().enumerate() {
        let calls: Calls = builder.step_calls(&|other| u64::from(other == stage && layers > 0));
        let message = Sent { shape: Shape::new(&[layers, x.moe.experts]), ..sent(Place::AfterLastBackward) };
        builder.add(Parallelism::Scalars, GroupKind::TensorDataContext, message, calls);
    }
}

fn sent(place: Place) -> Sent {
    Sent {
        name: "router",
        tensor: "token counts",
        collective: Collective::AllReduce,
        place,
        shape: Shape::new(&[0]),
        width: 4,
        dtype: "fp32",
        overlapped: false,
        formula: &BIAS,
    }
}

/// Number of routers in a chunk.
fn routers(builder: &Builder<'_>, chunk: &Chunk) -> u64 {
    let x = &builder.symbols;
    SectionKind::count(&section_counts(x, chunk), |kind| kind.routes(x))
}
