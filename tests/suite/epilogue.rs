//! What a step takes once, after its micro-batches: optimizer, gradients, weights and tied embeddings, each worked out by hand
//! from bytes and rates. The accelerator reaches all of its figures here and starts at once, so that nothing is rounded away.

use shardscope::estimate::compute::{Calibration, calibration};
use shardscope::estimate::time::{Time, time_with};
use shardscope::plan::*;
use shardscope::units::{BytesPerSecond, Seconds};

use super::drafts::{Draft, draft, even_stages};

/// Bytes a second of the memory, of the fast link, and of the network.
const MEMORY: f64 = 3.35e12;
const FAST: f64 = 4.5e11;
const NETWORK: f64 = 5e10;
/// Of a host that updates states.
const HOST: f64 = 25e9;

/// Parameters of the draft: two layers 256 wide with a gated MLP of 512, embedding and output layer of 512 tokens.
const LAYER: u64 = 4 * 256 * 256 + 3 * 256 * 512 + 2 * 256;
const ENDS: u64 = 2 * 512 * 256 + 256;
const ALL: u64 = 2 * LAYER + ENDS;

/// An accelerator whose constants are all whole, and nothing of it in the way.
fn whole(plan: &Plan) -> Calibration {
    Calibration {
        memory: 1.0,
        fast_link: 1.0,
        network: 1.0,
        exchange: 1.0,
        fast_start: Seconds::ZERO,
        network_start: Seconds::ZERO,
        network_hop: Seconds::ZERO,
        contention: 0.0,
        straggling: 0.0,
        iteration: Seconds::ZERO,
        ..calibration(&plan.cluster().accelerator)
    }
}

fn timed(draft: &Draft) -> Time {
    let plan = draft.plan();
    time_with(&plan, whole(&plan))
}

fn part(time: &Time, label: &str) -> f64 {
    time.breakdown.child(label).expect("a part of the step").value().get()
}

#[track_caller]
fn same(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-13, "{found}, {expected} by hand");
}

/// `ranks` replicas in nodes of eight.
fn replicas(ranks: u64) -> Draft {
    let mut draft = draft();
    draft.layout.world_size = ranks;
    (draft.layout.data, draft.layout.expert_data) = (ranks, ranks);
    draft.recipe.global_batch_size = ranks;
    draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(NETWORK);
    draft
}

#[test]
fn the_optimizer_reads_and_writes_what_it_keeps_of_its_shard() {
    // Norm, clipping and update read fp32 gradients or write them: 4 passes. Masters and moments are read and written, masters
    // read once more and weights written. All gradients are zeroed.
    let kinds = [
        (OptimizerKind::Adam, 4 + 2),
        (OptimizerKind::Sgd, 0),
        (OptimizerKind::SgdMomentum, 4),
        (OptimizerKind::Muon, 4),
        (OptimizerKind::Lion, 4),
        (OptimizerKind::SumOfSquares, 4),
        (OptimizerKind::Adafactor, 4),
        (OptimizerKind::AdEmaMix, 4 + 4 + 2),
        (OptimizerKind::Soap, 4 + 4 + 2),
        (OptimizerKind::Shampoo, 4 + 4 + 2),
    ];
    for (kind, moments) in kinds {
        for (sharding, shards) in [(DpSharding::Replicated, 1), (DpSharding::OptimizerStates, 4)] {
            for (gradients, passes) in [(Number::Fp32, 4 * 4), (Number::Bf16, 2 + 4 + 4 * 4)] {
                let mut draft = replicas(4);
                draft.recipe.dp_sharding = sharding;
                draft.recipe.grads_dtype = gradients;
                draft.recipe.optimizer.kind = kind;
                draft.recipe.optimizer.exp_avg_sq = Number::Bf16;
                let touched = ALL / shards * (passes + 2 * (4 + moments) + 4 + 2);
                let zeroed = ALL * gradients.width();
                same(part(&timed(&draft), "optimizer"), (touched + zeroed) as f64 / MEMORY);
            }
        }
    }
}

#[test]
fn a_part_of_the_states_or_all_of_them_are_updated_by_the_host() {
    let touched = (ALL * (16 + 2 * (4 + 8) + 4 + 2)) as f64;
    let zeroed = (ALL * 4) as f64;
    let mut draft = draft();
    draft.recipe.optimizer.cpu_offload_fraction = 0.25;
    same(part(&timed(&draft), "optimizer"), (touched * 0.75 + zeroed) / MEMORY + touched * 0.25 / HOST);
    draft.recipe.optimizer.cpu_offload_fraction = 0.0;
    draft.recipe.offload.optimizer = true;
    same(part(&timed(&draft), "optimizer"), touched / HOST);
}

/// A ring moves (n-1)/n of a message through every rank to gather or scatter it, and twice that to add it up.
#[test]
fn gradients_go_round_once_or_twice_and_weights_once() {
    for (ranks, rate) in [(4, FAST), (8, FAST), (16, 8.0 * NETWORK), (32, 8.0 * NETWORK)] {
        let ring = (ranks - 1) as f64 / ranks as f64 / rate;
        let bytes = |width: u64| (ALL * width) as f64;
        let mut draft = replicas(ranks);
        draft.recipe.dp_sharding = DpSharding::Replicated;
        same(part(&timed(&draft), "data"), 2.0 * ring * bytes(4));
        draft.recipe.dp_sharding = DpSharding::OptimizerStates;
        same(part(&timed(&draft), "data"), ring * bytes(4) + ring * bytes(2));
        draft.recipe.grads_dtype = Number::Bf16;
        same(part(&timed(&draft), "data"), ring * bytes(2) + ring * bytes(2));
    }
    assert_eq!(part(&timed(&replicas(1)), "data"), 0.0);
}

/// Two groups of eight that share states: each scatters within its node and adds its shards up with the other's.
#[test]
fn groups_of_replicas_add_up_their_shards() {
    let mut draft = replicas(16);
    draft.layout.distributed_optimizer_instances = 2;
    let inside = 7.0 / 8.0 * (ALL * (4 + 2)) as f64 / FAST;
    // Every rank to the one at its place in the other node, by its own network card.
    let across = 2.0 * 0.5 * (ALL / 8 * 4) as f64 / NETWORK;
    same(part(&timed(&draft), "data"), inside + across);
}

/// Between stages in two nodes: a sum of two, whatever lies between them.
#[test]
fn a_tied_embedding_is_added_up_between_the_ends() {
    let tied = |stages: u64, embeddings| {
        let mut draft = replicas(1);
        draft.model.num_layers = stages;
        draft.model.embeddings = embeddings;
        draft.layout.pipeline = stages;
        draft.layout.world_size = stages;
        draft.layout.stages = even_stages(stages, stages, 0);
        draft.layout.microbatch_group_size = stages;
        draft.recipe.global_batch_size = stages;
        draft.recipe.num_micro_batches = stages;
        part(&timed(&draft), "data")
    };
    let bytes = (512 * 256 * 4) as f64;
    same(tied(2, Embeddings::Tied), 2.0 * 0.5 * bytes / FAST);
    same(tied(8, Embeddings::Tied), 2.0 * 0.5 * bytes / FAST);
    assert_eq!(tied(1, Embeddings::Tied), 0.0);
    assert_eq!(tied(2, Embeddings::Untied), 0.0);
}

/// A model of a quarter of a billion parameters, whose last bucket of 40 million is a part of it.
fn large(ranks: u64) -> (Draft, f64) {
    let mut draft = replicas(ranks);
    draft.model.hidden_size = 2048;
    draft.model.kv_channels = 256;
    draft.model.ffn_hidden_size = 8192;
    let all = 2 * (4 * 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048) + 2 * 512 * 2048 + 2048;
    (draft, all as f64)
}

/// What overlaps hides behind the passes of the last micro-batch, but for the last bucket, which is full when they are over.
#[test]
fn gradients_hide_behind_backward_but_for_the_last_bucket() {
    for (ranks, bucket) in [(4, 40e6), (48, 48e6)] {
        let (mut draft, all) = large(ranks);
        let last = bucket / all;
        let ring = |rate: f64| (ranks - 1) as f64 / ranks as f64 / rate;
        let rate = if ranks > 8 { 8.0 * NETWORK } else { FAST };
        let (reduce, gather) = (ring(rate) * all * 4.0, ring(rate) * all * 2.0);
        same(part(&timed(&draft), "data"), reduce + gather);
        draft.recipe.overlap.grad_reduce = true;
        draft.recipe.overlap.param_gather = true;
        let time = timed(&draft);
        let chunk = time.schedule.durations.chunks[0][0];
        let (ahead, behind) = (chunk.forward.get(), chunk.backward.get() + chunk.weight.get());
        let left = |all: f64, window: f64| (all * (1.0 - last) - window).max(0.0) + all * last;
        same(part(&time, "data"), left(reduce, behind) + left(gather, ahead));
    }
    // A tenth of what is hidden comes back as arithmetic that takes longer.
    let (mut draft, all) = large(2);
    draft.recipe.overlap.grad_reduce = true;
    let plan = draft.plan();
    let time = time_with(&plan, Calibration { contention: 0.125, ..whole(&plan) });
    let (reduce, gather, last) = (0.5 / FAST * all * 4.0, 0.5 / FAST * all * 2.0, 40e6 / all);
    let chunk = time.schedule.durations.chunks[0][0];
    let window = chunk.backward.get() + chunk.weight.get();
    let hidden = (reduce * (1.0 - last)).min(window);
    same(part(&time, "data"), reduce - hidden + 0.125 * hidden + gather);
}

/// Sharded weights come for both passes of every micro-batch and their gradients go: what is longer than its pass stands alone.
#[test]
fn sharded_weights_wait_where_they_are_longer_than_their_pass() {
    let mut draft = replicas(4);
    draft.recipe.dp_sharding = DpSharding::Parameters;
    draft.recipe.num_micro_batches = 3;
    draft.recipe.global_batch_size = 12;
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e8);
    let ring = 0.75 * ALL as f64 / 1e8;
    let slow = timed(&draft);
    let chunk = slow.schedule.durations.chunks[0][0];
    // A pass is as long as its messages.
    same(chunk.forward.get(), ring * 2.0);
    same(chunk.backward.get() + chunk.weight.get(), ring * (2.0 + 4.0));
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e15);
    let quick = timed(&draft);
    assert_eq!(part(&quick, "data"), 0.0);
    let free = quick.schedule.durations.chunks[0][0];
    let passes = free.forward.get() + free.backward.get() + free.weight.get();
    same(part(&slow, "data"), 3.0 * (ring * 8.0 - passes));
    // Nothing overlapped: on top of the passes.
    same(slow.upper_bound.get() - quick.upper_bound.get(), 3.0 * ring * 8.0 * (1.0 - 1e-7));
}
