//! Weights of ZeRO-3 gathered one by one (DeepSpeed before 0.5.5).

use super::builder::{Builder, Sent};
use super::data::{UNIT_GATHER, UNIT_SCATTER, group, name};
use super::ledger::{Parallelism, Place};
use crate::gathered_alone::gathered_alone;
use shardscope_operators::{Collective, Pass, SectionKind, Shape, section_counts};

/// Adds a gather of every weight in forward, in recomputation and in backward, and a scatter of its gradient; what is used
/// again soon enough is not gathered anew.
pub(super) fn add(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let recipe = x.recipe();
    let stages = &x.plan.layout().stages.stages;
    for (index, kind) in SectionKind::ALL.iter().copied().enumerate() {
        let chunk_of =
            |stage: usize, chunk: usize| stages.get(stage).and_then(|stage| stage.chunks.get(chunk));
        let calls = builder.chunk_calls(&|stage, chunk| {
            chunk_of(stage, chunk).map_or(0, |chunk| section_counts(&x, chunk)[index])
        });
        if calls.per_iteration.iter().all(|calls| *calls == 0) {
            continue;
        }
        let once = builder.step_calls(&|stage| calls.per_micro_batch.get(stage).copied().unwrap_or(0));
        let again = builder.chunk_calls(&|stage, chunk| {
            chunk_of(stage, chunk).map_or(0, |chunk| {
                let times = section_counts(&x, chunk)[index];
                let whole = if kind.has_layer() { recipe.recompute.whole_layers(&chunk.layers) } else { 0 };
                whole.min(times)
            })
        });
        for alone in gathered_alone(&x, kind).into_iter().rev() {
            let (weight, of) = (&alone.weight, group(builder, alone.weight.group));
            let gather = |pass| Sent {
                name: name(weight.group),
                tensor: "weights",
                collective: Collective::AllGather,
                place: Place::AheadOf(kind, pass),
                shape: Shape::new(&[weight.count().get()]),
                width: recipe.module_dtype().width(),
                dtype: recipe.module_dtype().name(),
                overlapped: false,
                formula: &UNIT_GATHER,
            };
            builder.add(Parallelism::Data, of, gather(Pass::Forward), calls.clone());
            builder.add(Parallelism::Data, of, gather(Pass::Backward), calls.clone());
            if alone.freed && again.per_iteration.iter().any(|calls| *calls > 0) {
                builder.add(Parallelism::Data, of, gather(Pass::Backward), again.clone());
            }
            if weight.role.trains() {
                let calls = if x.plan.reduces_each_backward() { &calls } else { &once };
                let scatter = Sent {
                    tensor: "gradients",
                    collective: Collective::ReduceScatter,
                    width: recipe.reduce_dtype().width(),
                    dtype: recipe.reduce_dtype().name(),
                    formula: &UNIT_SCATTER,
                    ..gather(Pass::Backward)
                };
                builder.add(Parallelism::Data, of, scatter, calls.clone());
            }
        }
    }
}
