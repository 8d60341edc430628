//! vLLM 0.8 in the process of verl's trainer, whose share has all that the process holds when the engine starts in it.

use super::formats::resolved;
use super::rollouts::part;
use shardscope::estimate::{PhaseKind, memory};
use shardscope::plan::Plan;
use shardscope::source::Source;
use shardscope::units::{Bytes, Count, Quantity};

const VERL: &str = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \
    data.train_batch_size=64 data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.actor.ppo_mini_batch_size=16 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.5 actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.model.use_remove_padding=True \
    trainer.n_gpus_per_node=8 trainer.nnodes=1";
/// A key that verl lost in June 2025 (`verl_early.rs`).
const SPRING: &str = "actor_rollout_ref.actor.checkpoint.contents=['model']";

fn plan(more: &str) -> Plan {
    let set = [("accelerator".to_owned(), "H100-SXM".to_owned())];
    let read = resolved(&Source::from_files([("run.sh", format!("{VERL} {more}\n").as_str())]), &set);
    read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.questions, read.diagnostics))
}

/// `vllm/v1/worker/gpu_worker.py:determine_available_memory` of 0.8: the share of the device, less torch's peak in the process and what is
/// on the device beside it.
#[test]
fn what_the_trainer_holds_goes_off_the_share() {
    let (early, today) = (plan(SPRING), plan(""));
    let of = |plan: &Plan| memory(plan);
    let (early_memory, today_memory) = (of(&early), of(&today));
    let (own, later) = (early_memory.rl.as_ref().expect("phases"), today_memory.rl.as_ref().expect("phases"));
    let totals = early_memory.ranks[0].totals;
    let share = Count::rounded_up(early.cluster().accelerator.memory.number() * 0.5).bytes(1);
    assert_eq!(later.engine.kv_cache, share.less(later.engine.weights));
    // No offloading and no reference: the shards of the weights, and contexts and NCCL's buffers.
    let held = totals.parameters + totals.outside;
    assert_eq!(own.engine.kv_cache, share.less(own.engine.weights + held));
    // One process has one context.
    let context = |phases| part(phases, PhaseKind::Rollout, "engine's driver context");
    assert_eq!((context(own), context(later).is_some()), (None, true));
    // All of the phase: the share, what came with the first step and stays (gradients do not), and graphs if there are any.
    let phase = own.phases.iter().find(|phase| phase.kind == PhaseKind::Rollout).expect("a phase");
    let came = totals.between_steps.less(totals.parameters + totals.gradients);
    assert_eq!(phase.breakdown.value(), share + came + own.engine.graphs);
    // Offloaded weights are on the host by then.
    let moved = plan(&format!("{SPRING} actor_rollout_ref.actor.fsdp_config.param_offload=True"));
    let moved_memory = of(&moved);
    let moved = moved_memory.rl.as_ref().expect("phases");
    let outside = moved_memory.ranks[0].totals.outside;
    assert_eq!(moved.engine.kv_cache, share.less(moved.engine.weights + outside));
    assert_ne!(Bytes::ZERO, held);
}
