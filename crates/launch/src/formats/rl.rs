//! The training engine's part of a verl command: model, batch algebra, FSDP or Megatron.
//! Keys: `verl/trainer/config/ppo_trainer.yaml` and what it includes.

use super::leaves::Leaves;
use crate::named::{take_model, with_vision};
use crate::{Origin, Question};
use shardscope_plan::{Field, Software};

/// The actor's keys.
const ACTOR: &str = "actor_rollout_ref.actor.";

/// Reads the part that trains the actor.
pub(super) fn read(leaves: &mut Leaves<'_>) {
    let at = |key: &str| format!("{}{key}", ACTOR);
    leaves.take_all(&[("trainer.nnodes", Field::NumNodes), ("trainer.n_gpus_per_node", Field::GpusPerNode)]);
    let micro = ["ppo_micro_batch_size_per_gpu", "ppo_micro_batch_size"].map(at);
    leaves.take(&micro.each_ref().map(String::as_str), Field::MicroBatchSize);
    batch(leaves);
    let megatron = leaves.all().iter().any(|leaf| leaf.path.starts_with("actor_rollout_ref.actor.megatron."))
        || leaves.all().iter().any(|leaf| leaf.value.contains("ppo_megatron"))
        || leaves.text("actor_rollout_ref.actor.strategy") == Some("megatron");
    if megatron {
        leaves.take_all(&[
            ("actor_rollout_ref.actor.megatron.tensor_model_parallel_size", Field::TensorModelParallelSize),
            (
                "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size",
                Field::PipelineModelParallelSize,
            ),
            ("actor_rollout_ref.actor.megatron.context_parallel_size", Field::ContextParallelSize),
            ("actor_rollout_ref.actor.megatron.expert_model_parallel_size", Field::ExpertModelParallelSize),
            ("actor_rollout_ref.actor.megatron.expert_tensor_parallel_size", Field::ExpertTensorParallelSize),
        ]);
        leaves.state(Field::UseDistributedOptimizer, "true", Origin::Default, "default of verl");
        leaves.reading.software = Some((Software::MegatronCoreTe, "verl's Megatron engine".to_owned()));
    } else {
        let second = leaves.text("actor_rollout_ref.actor.strategy") == Some("fsdp2");
        let engine = if second { "fsdp2" } else { "fsdp1" };
        leaves.state(Field::DataParallelEngine, engine, Origin::Default, "default of verl");
        leaves.state(
            Field::ZeroStage,
            "3",
            Origin::Default,
            "verl's FSDP shards weights, gradients and states",
        );
        leaves.reading.software = Some((Software::HfTransformers, "verl's FSDP engine".to_owned()));
        if let Some(leaf) = leaves.get("actor_rollout_ref.model.enable_gradient_checkpointing") {
            leaves.switch(Field::GradientCheckpointing, leaf.flag() != Some(false), leaf);
        }
    }
    leaves.state(Field::Bf16, "true", Origin::Default, "verl trains in bf16");
    if let Some(leaf) = leaves.get("actor_rollout_ref.model.path").filter(|leaf| leaf.hole.is_none()) {
        with_vision(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
        take_model(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
    }
    ask(leaves);
}

/// Sequences are prompt and response; a step of the optimizer takes a mini-batch of prompts with all their rollouts
/// (`verl/workers/fsdp_workers.py`: ppo_mini_batch_size times rollout.n).
fn batch(leaves: &mut Leaves<'_>) {
    let sizes = ["data.max_prompt_length", "data.max_response_length"].map(|path| leaves.whole(path));
    if let ([Some(prompt), Some(response)], Some(leaf)) = (sizes, leaves.get("data.max_response_length")) {
        let length = prompt.saturating_add(response).to_string();
        leaves.say_noted(Field::SeqLength, &length, leaf, "longest prompt and response together");
    }
    let rollouts = leaves.whole("actor_rollout_ref.rollout.n").unwrap_or(1);
    if let Some(leaf) = leaves.get("actor_rollout_ref.actor.ppo_mini_batch_size")
        && let Some(prompts) = leaf.whole()
    {
        let sequences = prompts.saturating_mul(rollouts).to_string();
        leaves.say_noted(Field::GlobalBatchSize, &sequences, leaf, "ppo_mini_batch_size x rollout.n");
    }
}

fn ask(leaves: &mut Leaves<'_>) {
    for (field, prompt, proposal) in [
        (Field::MicroBatchSize, "How many sequences has a micro-batch of the actor?", "1"),
        (Field::SeqLength, "How long are prompt and response together?", "4096"),
    ] {
        if !leaves.reading.found.iter().any(|found| found.field == field) {
            leaves.reading.questions.push(Question {
                name: field.name().to_owned(),
                prompt: prompt.to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_owned()),
            });
        }
    }
}
