//! What a step does once, after its micro-batches: optimizer, gradients, weights and tied embeddings, each computed by
//! hand from bytes and rates. Here the accelerator reaches all of its peak rates and has no start-up latency, so that
//! nothing is rounded away.

use shardscope::estimate::compute::{Calibration, calibration};
use shardscope::estimate::sent_to_host;
use shardscope::estimate::time::{Time, time_with};
use shardscope::plan::*;
use shardscope::units::{BytesPerSecond, Seconds};

use super::drafts::{Draft, draft, even_stages, stage_map};

/// Bytes per second of the memory, of the fast link, and of the network.
const MEMORY: f64 = 3.35e12;
const FAST: f64 = 4.5e11;
const NETWORK: f64 = 5e10;
/// The rate of a host that updates states.
const HOST: f64 = 25e9;

/// Parameters of the draft: two layers 256 wide with a gated MLP of 512, embedding and output layer of 512 tokens.
const LAYER: u64 = 4 * 256 * 256 + 3 * 256 * 512 + 2 * 256;
pub(crate) const ENDS: u64 = 2 * 512 * 256 + 256;
pub(crate) const ALL: u64 = 2 * LAYER + ENDS;

/// An accelerator that reaches its full rates (fractions of 1) and has no overheads.
pub(crate) fn whole(plan: &Plan) -> Calibration {
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

pub(crate) fn timed(draft: &Draft) -> Time {
    let plan = draft.plan();
    time_with(&plan, whole(&plan))
}

pub(crate) fn part(time: &Time, label: &str) -> f64 {
    time.breakdown.child(label).expect("a part of the step").value().get()
}

#[track_caller]
pub(crate) fn same(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-13, "{found}, {expected} by hand");
}

/// `ranks` replicas in nodes of eight.
pub(crate) fn replicas(ranks: u64) -> Draft {
    let mut draft = draft();
    draft.layout.world_size = ranks;
    (draft.layout.data, draft.layout.expert_data) = (ranks, ranks);
    draft.recipe.global_batch_size = ranks;
    draft.cluster.accelerator.network.bandwidth = BytesPerSecond::new(NETWORK);
    draft
}

#[test]
fn the_optimizer_reads_and_writes_what_it_keeps_of_its_shard() {
    // Norm, clipping and update read or write fp32 gradients: 4 passes. Masters and moments are read and written,
    // masters are read once more and weights written. All gradients are zeroed.
    let kinds = [
        (OptimizerKind::Adam, 4 + 4),
        (OptimizerKind::Sgd, 0),
        (OptimizerKind::SgdMomentum, 4),
        (OptimizerKind::Muon, 4),
        (OptimizerKind::Lion, 4),
        (OptimizerKind::SumOfSquares, 4),
        (OptimizerKind::Adagrad, 4),
        (OptimizerKind::Adafactor, 4),
        (OptimizerKind::AdEmaMix, 4 + 4 + 4),
        (OptimizerKind::Soap, 4 + 4 + 4),
        (OptimizerKind::Shampoo, 4 + 4 + 4),
    ];
    for (kind, moments) in kinds {
        for (sharding, shards) in [(DpSharding::Replicated, 1), (DpSharding::OptimizerStates, 4)] {
            for (gradients, passes) in [(NumberFormat::Fp32, 4 * 4), (NumberFormat::Bf16, 2 + 4 + 4 * 4)] {
                let mut draft = replicas(4);
                draft.recipe.dp_sharding = sharding;
                draft.recipe.grads_dtype = gradients;
                draft.recipe.optimizer.kind = kind;
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
    draft.recipe.optimizer.precision_aware = true;
    draft.recipe.optimizer.cpu_offload_fraction = 0.25;
    same(part(&timed(&draft), "optimizer"), (touched * 0.75 + zeroed) / MEMORY + touched * 0.25 / HOST);
    draft.recipe.optimizer.cpu_offload_fraction = 0.0;
    draft.recipe.offload.optimizer = true;
    same(part(&timed(&draft), "optimizer"), touched / HOST);
}

/// A ring moves (n-1)/n of a message through every rank to gather or scatter it, and twice that to reduce it.
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
        draft.recipe.grads_dtype = NumberFormat::Bf16;
        same(part(&timed(&draft), "data"), ring * bytes(2) + ring * bytes(2));
    }
    assert_eq!(part(&timed(&replicas(1)), "data"), 0.0);
}

/// Two groups of eight that share states: each scatters within its node and all-reduces its shards with the other's.
#[test]
fn groups_of_replicas_add_up_their_shards() {
    let mut draft = replicas(16);
    draft.layout.distributed_optimizer_instances = 2;
    let inside = 7.0 / 8.0 * (ALL * (4 + 2)) as f64 / FAST;
    // Every rank to the one with the same index in the other node, each with its own network card.
    let across = 2.0 * 0.5 * (ALL / 8 * 4) as f64 / NETWORK;
    same(part(&timed(&draft), "data"), inside + across);
}

/// Between stages in two nodes: an all-reduce over two ranks, whatever lies between them.
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

/// A model of 250 million parameters, whose last bucket of 40 million is only a part.
fn large(ranks: u64) -> (Draft, f64) {
    let mut draft = replicas(ranks);
    draft.model.hidden_size = 2048;
    draft.model.kv_channels = 256;
    draft.model.ffn_hidden_size = 8192;
    let all = 2 * (4 * 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048) + 2 * 512 * 2048 + 2048;
    (draft, all as f64)
}

/// Overlapping communication is hidden behind the last micro-batch's passes, except for the last bucket, which is only
/// full at their end.
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
    // A tenth of the hidden time reappears as slower arithmetic.
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

/// Two stages, the second with three times as many layers as the first: it has the passes of both to hide behind.
#[test]
fn later_stages_hide_behind_those_before_them() {
    let (mut draft, _) = large(4);
    draft.model.num_layers = 4;
    draft.layout.world_size = 8;
    draft.layout.pipeline = 2;
    draft.layout.stages = stage_map(&[vec![[0, 1]], vec![[1, 4]]], 0);
    draft.layout.microbatch_group_size = 2;
    draft.recipe.num_micro_batches = 2;
    draft.recipe.global_batch_size = 8;
    draft.recipe.overlap.grad_reduce = true;
    draft.recipe.overlap.param_gather = true;
    draft.cluster.accelerator.fast_link.bandwidth = BytesPerSecond::new(1e10);
    let time = timed(&draft);
    let layer = 4 * 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048;
    let all = (3 * layer + 2048 + 512 * 2048) as f64;
    let ring = 0.75 * all / 1e10;
    let passes = |stage: usize| {
        let chunk = time.schedule.durations.chunks[stage][0];
        (chunk.forward.get(), chunk.backward.get() + chunk.weight.get())
    };
    let ((ahead, behind), (ahead_of_both, behind_both)) = (passes(0), passes(1));
    let reduced = ring * 4.0 - (behind + behind_both);
    let gathered = ring * 2.0 - (ahead + ahead_of_both);
    assert!(reduced > 0.0 && gathered > 0.0);
    same(part(&time, "data"), reduced + gathered);
}

/// fp8 weights are gathered as fp8 if they are held as fp8.
#[test]
fn weights_in_fp8_are_gathered_in_half_the_bytes() {
    let gathered = |param_gather| {
        let mut draft = replicas(4);
        draft.recipe.software = Software::MegatronCoreTe;
        draft.recipe.fp8 =
            Some(Fp8 { format: "hybrid".to_owned(), recipe: Fp8Recipe::Delayed, param_gather });
        part(&timed(&draft), "data")
    };
    let ring = 0.75 * ALL as f64 / FAST;
    same(gathered(false), ring * (4.0 + 2.0));
    same(gathered(true), ring * (4.0 + 1.0));
}

/// Empty messages are not sent: no second start-up latency for experts of a dense model.
#[test]
fn a_message_of_nothing_starts_no_ring() {
    let mut draft = replicas(16);
    draft.layout.distributed_optimizer_instances = 2;
    let plan = draft.plan();
    let start = Seconds::new(0.5);
    let late = time_with(&plan, Calibration { network_start: start, ..whole(&plan) });
    same(part(&late, "data"), 0.5 + part(&timed(&draft), "data"));
}

pub(crate) fn routed(num_experts: u64, ffn_hidden_size: u64) -> Experts {
    Experts {
        num_experts,
        router_topk: 2,
        ffn_hidden_size,
        pattern: vec![true, true],
        shared_expert_intermediate_size: None,
        shared_expert_gate: false,
        latent_size: None,
        groups: None,
    }
}

/// Two ranks share four experts in each layer: dense weights have four replicas, experts two.
#[test]
fn experts_have_shards_of_their_own() {
    let mut draft = replicas(4);
    draft.layout.expert = 2;
    draft.layout.expert_data = 2;
    draft.model.experts = Some(routed(4, 128));
    let dense = 2 * (4 * 256 * 256 + 4 * 256 + 2 * 256) + ENDS;
    let experts = 2 * 2 * 3 * 256 * 128;
    let touched = (dense / 4 + experts / 2) * (16 + 2 * (4 + 8) + 4 + 2);
    let time = timed(&draft);
    same(part(&time, "optimizer"), (touched + (dense + experts) * 4) as f64 / MEMORY);
    let ring = (dense as f64 * 0.75 + experts as f64 * 0.5) / FAST;
    same(part(&time, "data"), ring * (4.0 + 2.0));
}

/// Every saved tensor is copied to the host and back on the compute stream: 31 GB/s in each direction.
#[test]
fn saved_tensors_that_wait_on_the_host_are_copied_twice() {
    let mut draft = draft();
    assert_eq!(part(&timed(&draft), "other"), 0.0);
    draft.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    draft.recipe.num_micro_batches = 3;
    draft.recipe.global_batch_size = 3;
    let lowest = timed(&draft).lower_bound;
    draft.recipe.offload.saved_tensors = true;
    // In the lower bound they are hidden.
    assert_eq!(timed(&draft).lower_bound, lowest);
    let sent = sent_to_host(&draft.plan()).get();
    assert!(sent > 0);
    let time = timed(&draft);
    assert!((part(&time, "other") / (3.0 * 2.0 * sent as f64 / 31e9) - 1.0).abs() < 1e-12);
}
