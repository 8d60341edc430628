//! Keys of verl that change no figure, each group with its reason, and keys that would.

use super::super::leaves::{Leaf, Leaves};
use super::common::{idle, lack, lack_yes};
use super::verl_early;
use crate::Effect;
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

/// Marks keys that change nothing as read, and stops the verdict at those that would change a figure.
pub(super) fn pass(leaves: &mut Leaves<'_>) {
    lack_yes(
        leaves,
        &[
            (
                "actor_rollout_ref.model.mtp.enable",
                Effect::Model,
                "multi-token prediction that trains with the policy",
            ),
            ("actor_rollout_ref.actor.megatron.forward_only", Effect::Memory, "a policy that does not train"),
        ],
    );
    only(leaves);
    if let Some(leaf) = leaves
        .get("actor_rollout_ref.actor.optim.optimizer")
        .filter(|leaf| !leaf.value.to_ascii_lowercase().contains("adam"))
    {
        lack(leaves, leaf, Effect::Memory, "an optimizer other than Adam");
    }
    let turns = leaves.all().iter().find(|leaf| leaf.path.starts_with("es_manager."));
    if let Some(leaf) = turns {
        let what = "multi-turn environment trajectories, whose length RAGEN decides";
        lack(leaves, leaf, Effect::Memory, what);
    }
    entropy(leaves);
    attention(leaves);
    printed(leaves);
    // The file of verl's own that FlagScale hands to Hydra (`examples/qwen2_5/conf/rl`).
    if leaves.text("config-path") == Some("config")
        && leaves.text("config-name").is_some_and(|name| name.starts_with("ppo_trainer"))
    {
        leaves.pass("config-path");
        leaves.pass("config-name");
    }
    idle(leaves, "verl");
    if leaves.all().iter().any(|leaf| !leaf.used.get()) {
        leaves.pass_below(&["reward_model.model.", "reward_model.rollout.", "reward_model.micro_batch"]);
    }
}

/// Keys whose values verl copies from others, as in the configuration that it prints at start
/// (`main_ppo.py:TaskRunner.run`), each with the key that it is copied from.
const TWICE: [[&str; 2]; 6] = [
    ["actor_rollout_ref.actor.rollout_n", "actor_rollout_ref.rollout.n"],
    ["actor_rollout_ref.actor.use_fused_kernels", "actor_rollout_ref.model.use_fused_kernels"],
    ["actor_rollout_ref.actor.use_remove_padding", "actor_rollout_ref.model.use_remove_padding"],
    ["actor_rollout_ref.actor.megatron.use_remove_padding", "actor_rollout_ref.model.use_remove_padding"],
    ["actor_rollout_ref.actor.fsdp_config.strategy", "actor_rollout_ref.actor.strategy"],
    [
        "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size",
    ],
];

/// Switches of FSDP's engine, which are off in the configuration of Megatron's engine.
const OF_FSDP: [&str; 5] = [
    "actor_rollout_ref.actor.freeze_vision_tower",
    "actor_rollout_ref.actor.use_prefix_grouper",
    "actor_rollout_ref.model.enable_activation_offload",
    "actor_rollout_ref.model.use_liger",
    "actor_rollout_ref.model.tiled_mlp.enabled",
];

/// Marks keys as read that are in a configuration because verl printed it: its own classes, copied values, and sizes
/// of adapters that are not used.
fn printed(leaves: &Leaves<'_>) {
    own_classes(leaves);
    for [path, from] in TWICE {
        if leaves.text(path).is_some_and(|value| leaves.text(from) == Some(value)) {
            leaves.pass(path);
        }
    }
    for path in OF_FSDP {
        if leaves.flag(path) == Some(false) {
            leaves.pass(path);
        }
    }
    if leaves.whole("actor_rollout_ref.model.lora_rank").unwrap_or(0) == 0 {
        for key in ["lora_rank", "lora_alpha", "target_modules"] {
            leaves.pass(&format!("actor_rollout_ref.model.{key}"));
        }
    }
}

/// Names of the classes that verl instantiates from its groups of keys.
pub(super) fn own_classes(leaves: &Leaves<'_>) {
    let is_own =
        |leaf: &&Leaf| leaf.path.rsplit('.').next() == Some("_target_") && leaf.value.starts_with("verl.");
    leaves.all().iter().filter(is_own).for_each(|leaf| leaf.used.set(true));
}

/// Switches that skip the training: `trainer.val_only`, and those of programs derived from verl (Absolute Zero's
/// `azr.generate_seed_dataset_only`).
fn only(leaves: &mut Leaves<'_>) {
    let tells = |leaf: &&Leaf| {
        let name = leaf.path.rsplit('.').next().unwrap_or_default();
        let starts =
            ["val", "eval", "test", "gen", "infer", "rollout"].iter().any(|word| name.starts_with(word));
        starts && name.ends_with("_only") && leaf.flag() == Some(true)
    };
    if let Some(leaf) = leaves.all().iter().find(tells) {
        leaf.used.set(true);
        lack(leaves, leaf, Effect::Memory, "evaluation or data generation, not a training run");
    }
}

/// The attention kernels that the model's own configuration may change (`verl/workers/config/model.py:HFModelConfig`,
/// `fsdp_workers.py`): flash attention unless stated. Only its kernels take samples joined without a mask.
fn attention(leaves: &mut Leaves<'_>) {
    let stated = leaves.get("actor_rollout_ref.model.override_config.attn_implementation");
    let other = stated.filter(|leaf| !leaf.value.starts_with("flash_attention"));
    let Some(leaf) = other.filter(|leaf| !matches!(leaf.value.as_str(), "" | "null" | "None")) else {
        return;
    };
    if leaves.reading.value(Field::Packing) == Some("false") {
        leaves.say(Field::AttnImplementation, &leaf.value, leaf);
    } else {
        lack(leaves, leaf, Effect::Memory, "joined samples under attention other than flash attention");
    }
}

/// `verl/models/llama/megatron`, `verl/models/qwen2/megatron`: ParallelLlamaForCausalLMRmPadPP and
/// related classes, until April 2025.
const OWN_LAYERS: &str = "verl's own Megatron layers of before April 2025, in the place of Megatron core's, and the entropy in their loss";

const BY_METRIC: &str = "calculate_entropy keeps the entropy of the logits until backward under Megatron in verl since April 2026; earlier \
     releases read only entropy_coeff there and need less memory than is counted";

/// An entropy term in the loss reads the logits once more; without a coefficient there is none, unless it is requested
/// as a metric, which also has a graph (`verl/workers/actor/dp_actor.py`). Until verl 0.2 it was always in the loss,
/// times its coefficient, and took the same memory with a coefficient of 0. Its memory is known under FSDP, for unsplit
/// logits: compiled if samples are concatenated, eager if they are padded.
fn entropy(leaves: &mut Leaves<'_>) {
    let zero = |value: &str| value.parse::<f64>().is_ok_and(|number| number == 0.0);
    let part = leaves.get("actor_rollout_ref.actor.entropy_coeff");
    let stated = part.filter(|leaf| leaf.hole.is_none() && !zero(&leaf.value));
    let metric = leaves.yes("actor_rollout_ref.actor.calculate_entropy");
    let early = verl_early::sign(leaves);
    let megatron = matches!(leaves.reading.software, Some((Software::MegatronCoreTe, _)));
    // Since verl builds Megatron core's GPT model, another key sets virtual pipeline stages.
    let key = "actor_rollout_ref.actor.megatron.num_layers_per_virtual_pipeline_stage";
    let older = leaves.all().iter().find(|leaf| leaf.path == key);
    if let Some(leaf) = early.or(older).filter(|_| megatron) {
        return lack(leaves, leaf, Effect::Memory, OWN_LAYERS);
    }
    // Under Megatron the coefficient alone decided (`verl/workers/actor/megatron_actor.py:update_policy`) until #6016 of April
    // 2026; since then the loss takes the metric times its coefficient, which may be 0 (`verl/workers/utils/losses.py:ppo_loss`).
    let metric = metric.filter(|_| !megatron || !verl_early::is_of_spring(leaves));
    let Some(leaf) = stated.or(metric).or(early) else { return };
    let joined = leaves.flag("actor_rollout_ref.model.use_remove_padding").unwrap_or(early.is_none());
    let says = |key: &str, flag: bool| leaves.flag(&format!("actor_rollout_ref.actor.{key}")) == Some(flag);
    let compiled = !(says("use_torch_compile", false) || says("fsdp_config.use_torch_compile", false));
    // The fused output layer has its own function for it, and none of these switches.
    let fused = leaves.flag("actor_rollout_ref.model.use_fused_kernels") == Some(true);
    let other = joined && !compiled && !megatron
        || says("entropy_checkpointing", true)
        || says("entropy_from_logits_with_chunking", true);
    let other = other && !fused;
    // verl's kernels give it with the log-probabilities, and their backward holds the same without it.
    if fused && megatron {
        return;
    }
    if other {
        let what = match stated.or(metric) {
            Some(_) => "the entropy of the logits next to the loss, whose softmax is saved",
            None => {
                "the entropy term that verl 0.2 (the version of this key) always has in the loss, whose softmax is saved"
            }
        };
        lack(leaves, leaf, Effect::Memory, what);
    } else {
        leaves.switch(Field::PolicyEntropy, true, leaf);
        if megatron && stated.is_none() {
            let note = Diagnostic::note(Code::KeysLeftAside, BY_METRIC).at_some(leaf.span);
            leaves.reading.diagnostics.push(note);
        }
    }
}
