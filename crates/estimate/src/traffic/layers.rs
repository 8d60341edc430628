//! Messages of the model's own operators: tensor, context and expert parallel, including those repeated by
//! recomputation.

use super::builder::{Builder, Sent};
use super::ledger::{Parallelism, Place};
use shardscope_explain::Formula;
use shardscope_operators::{
    Collective, Message, Pass, SectionKind, Shape, Symbols, messages_of, section_counts,
};
use shardscope_plan::{Chunk, LayerKind, Recompute};
use shardscope_topology::GroupKind;

static CHECKPOINT: Formula = Formula::new(
    "s·b·h·B",
    "A saved layer input that was sharded over the tensor ranks is all-gathered for its recomputation.",
    "megatron/core/tensor_parallel/random.py:CheckpointFunction",
);

const KINDS: usize = SectionKind::ALL.len();

/// How often the sections of one chunk run for one micro-batch.
#[derive(Clone, Copy, Default)]
struct Runs {
    times: [u64; KINDS],
    /// Of these, how many are fully recomputed.
    again: [u64; KINDS],
    /// Of these, how many are the first trainable layer.
    firsts: [u64; KINDS],
    /// Saved inputs from which recomputation starts.
    checkpoints: u64,
}

/// Adds the messages of every operator.
pub(super) fn add(builder: &mut Builder<'_>) {
    let x = builder.symbols;
    let stages = &x.plan.layout().stages.stages;
    let mut runs: Vec<Vec<Runs>> = Vec::with_capacity(stages.len());
    for stage in stages {
        let mut of_stage = Vec::with_capacity(stage.chunks.len());
        for chunk in &stage.chunks {
            of_stage.push(Runs::new(&x, chunk));
        }
        runs.push(of_stage);
    }
    for (index, kind) in SectionKind::ALL.iter().copied().enumerate() {
        let mut present = false;
        for of_stage in &runs {
            for run in of_stage {
                present |= run.times[index] > 0;
            }
        }
        if !present || !kind.runs() {
            continue;
        }
        let first = messages_of(&x.in_first_trained_layer(), &kind.operators(&x));
        for (message, first) in messages_of(&x, &kind.operators(&x)).into_iter().zip(first) {
            let repeated = is_repeated_alone(&x, &message);
            let calls = builder.chunk_calls(&|stage, chunk| {
                let Some(run) = runs.get(stage).and_then(|chunks| chunks.get(chunk)) else { return 0 };
                let again = match (message.pass, message.in_layer) {
                    // Recomputation repeats forward, including its messages; backward messages come once, whatever is
                    // recomputed.
                    (Pass::Forward, _) if repeated => run.times[index],
                    (Pass::Forward, true) => run.again[index],
                    _ => 0,
                };
                // In the first trainable layer some messages are not needed.
                let less = message.calls.saturating_sub(first.calls) * run.firsts[index];
                message.calls * (run.times[index] + again) - less
            });
            builder.message(kind, &message, calls);
        }
    }
    distributed_checkpoints(builder, &runs);
}

fn distributed_checkpoints(builder: &mut Builder<'_>, runs: &[Vec<Runs>]) {
    let x = builder.symbols;
    let spread = match x.recipe().recompute {
        Recompute::Uniform { distribute, .. } | Recompute::Block { distribute, .. } => distribute,
        Recompute::None | Recompute::Selective(_) | Recompute::Every { .. } => false,
    };
    // Under sequence parallelism a layer's input is already sharded, and recomputation starts from the shard.
    if !spread || x.t <= 1 || x.plan.layout().sequence_parallel {
        return;
    }
    let calls = builder.chunk_calls(&|stage, chunk| {
        runs.get(stage).and_then(|chunks| chunks.get(chunk)).map_or(0, |run| run.checkpoints)
    });
    let message = Sent {
        name: "checkpoint",
        tensor: "layer input",
        collective: Collective::AllGather,
        place: Place::In(SectionKind::EVERY_LAYER, Pass::Backward),
        shape: Shape::new(&[x.s, x.b, x.h]),
        width: x.width,
        dtype: x.recipe().params_dtype.name(),
        overlapped: false,
        formula: &CHECKPOINT,
    };
    builder.add(Parallelism::Tensor, GroupKind::Tensor, message, calls);
}

/// Whether selective recomputation repeats a forward message.
fn is_repeated_alone(x: &Symbols<'_>, message: &Message) -> bool {
    message.modules.iter().any(|module| x.recipe().recompute.recomputes(*module))
}

impl Runs {
    fn new(x: &Symbols<'_>, chunk: &Chunk) -> Self {
        let times = section_counts(x, chunk);
        let recompute = &x.recipe().recompute;
        let whole_layers = recompute.whole_layers(&chunk.layers);
        let checkpoints = match recompute {
            Recompute::Uniform { num_layers, .. } => whole_layers.div_ceil((*num_layers).max(1)),
            _ => whole_layers,
        };
        let mut layers_again = [0_u64; LayerKind::ALL.len()];
        for index in chunk.layers.clone().filter(|index| recompute.recomputes_layer(*index, &chunk.layers)) {
            layers_again[x.model().layer_kind(index).index()] += 1;
        }
        let lowest = x.recipe().tuning.frozen_layers(x.plan.model().num_layers);
        let first = chunk.layers.contains(&lowest).then(|| x.model().layer_kind(lowest));
        let firsts = SectionKind::ALL.map(|kind| u64::from(first.is_some() && kind.layer() == first));
        let mut again = [0; KINDS];
        for (index, kind) in SectionKind::ALL.iter().copied().enumerate() {
            again[index] = match kind.layer() {
                Some(layer) => layers_again[layer.index()],
                None if kind.is_recomputed_whole(x) => times[index],
                None => 0,
            };
        }
        Self { times, again, firsts, checkpoints }
    }
}
