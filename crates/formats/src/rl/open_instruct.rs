//! AI2's open-instruct: GRPO with learners under DeepSpeed, and vLLM engines that Ray places on other GPUs, or all on
//! one GPU. Options and defaults: `open_instruct/grpo_utils.py:GRPOExperimentConfig`, `olmo_core_utils.py`,
//! `data_loader.py`, `model_utils.py:ModelConfig`; the engine: `grpo_fast.py:PolicyTrainerRayProcess`,
//! `utils.py:get_train_ds_config`.

use super::super::leaves::{Leaf, Leaves};
use super::common::{defaults, idle, lack, lack_yes, model, policy, transformers};
use crate::{Effect, Origin};
use shardscope_plan::Field;

const OPEN: &str = "open-instruct";

/// Programs of this kind; `grpo.py` has OLMo-core learners, so the verdict stops at the program's name.
const PROGRAMS: [&str; 2] = ["open_instruct/grpo_fast.py", "open_instruct/grpo.py"];

/// Whether a program is one of these.
pub(super) fn claims(program: &str) -> bool {
    PROGRAMS.iter().any(|known| program.ends_with(known))
}

pub(super) fn read(leaves: &mut Leaves<'_>) {
    leaves.pass("rl");
    engine(leaves);
    let learners = learners(leaves);
    sharding(leaves, learners);
    batch(leaves);
    rollout(leaves, learners);
    policy(leaves, OPEN);
    model(leaves, &["model_name_or_path"]);
    lack_yes(
        leaves,
        &[
            ("deepspeed_offload_param", Effect::Memory, "weights on the host (ZeRO-Infinity)"),
            (
                "deepspeed_offload_optimizer",
                Effect::Memory,
                "states on the host, which DeepSpeed refuses with AdamW of torch",
            ),
            ("record_entropy", Effect::Memory, "the entropy of the logits, computed next to the loss"),
        ],
    );
    if let Some(leaf) = leaves.get("fused_optimizer").filter(|leaf| leaf.flag() == Some(false)) {
        lack(leaves, leaf, Effect::Memory, "an unfused optimizer");
    }
    for old in ["actor_num_gpus_per_node", "number_samples_per_prompt", "local_rollout_batch_size"] {
        if let Some(leaf) = leaves.get(old) {
            lack(leaves, leaf, Effect::Memory, "an option of programs before grpo_fast.py, which rejects it");
        }
    }
    idle(leaves, "open_instruct");
}

/// transformers modules in bf16, with every layer checkpointed whatever the options say
/// (`from_pretrained(dtype=torch.bfloat16)`, `gradient_checkpointing_enable()`).
fn engine(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("attn_implementation") {
        let word = match leaf.value.as_str() {
            "flash_2" => "flash_attention_2",
            "flash_3" => "flash_attention_3",
            "flash_4" => "flash_attention_4",
            "torch" | "te" => "sdpa",
            other => other,
        };
        leaves.say(Field::AttnImplementation, word, leaf);
    }
    transformers(leaves, OPEN, "deepspeed");
    defaults(
        leaves,
        OPEN,
        &[(Field::Bf16, "true"), (Field::Autocast, "none"), (Field::GradientCheckpointing, "true")],
    );
}

/// The number of learners on all nodes; each has a GPU of its own.
fn learners(leaves: &mut Leaves<'_>) -> Option<u64> {
    let Some(leaf) = leaves.get("num_learners_per_node") else {
        defaults(leaves, OPEN, &[(Field::NumNodes, "1"), (Field::GpusPerNode, "1")]);
        return Some(1);
    };
    let counts: Vec<u64> = leaf.value.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let Some(most) = counts.iter().max().copied().filter(|_| leaf.hole.is_none()) else {
        leaves.say(Field::GpusPerNode, &leaf.value, leaf);
        defaults(leaves, OPEN, &[(Field::NumNodes, "1")]);
        return None;
    };
    leaves.say(Field::NumNodes, &counts.len().to_string(), leaf);
    leaves.say(Field::GpusPerNode, &most.to_string(), leaf);
    if counts.iter().any(|count| *count != most) {
        lack(leaves, leaf, Effect::Communication, "nodes with different numbers of learners");
    }
    Some(counts.iter().sum())
}

fn sharding(leaves: &mut Leaves<'_>, learners: Option<u64>) {
    leaves.take(&["deepspeed_stage"], Field::ZeroStage);
    defaults(leaves, OPEN, &[(Field::ZeroStage, "0")]);
    let stage = leaves.reading.count(Field::ZeroStage);
    if stage.is_some_and(|stage| stage < 2) {
        let what = "DeepSpeed's bf16 optimizer, which accumulates gradients in fp32 beside the 16-bit ones";
        let item = crate::NotModelled::new("deepspeed_stage", "", Effect::Memory, what);
        leaves
            .reading
            .not_modelled
            .push(item.at_some(leaves.get("deepspeed_stage").and_then(|leaf| leaf.span)));
    }
    let within = leaves.whole("deepspeed_zpg").unwrap_or(8);
    if stage == Some(3) {
        let note = "data_types.grad_accum_dtype; ZeRO-3 adds gradients up in it, ZeRO-2 does not";
        leaves.state(Field::GradsDtype, "fp32", Origin::Default, note);
        let within = learners.map_or(within, |learners| within.min(learners));
        if leaves.whole("deepspeed_zpg") != Some(1) {
            let note = "deepspeed_zpg, or all learners where they are fewer";
            leaves.state(Field::SecondWeightShards, &within.to_string(), Origin::Derived, note);
        }
        if let Some(leaf) = leaves.get("num_learners_per_node")
            && learners.is_some_and(|learners| learners % within.max(1) > 0)
        {
            lack(
                leaves,
                leaf,
                Effect::Communication,
                "a number of learners that deepspeed_zpg does not divide",
            );
        }
    }
    if let Some(leaf) = leaves.get("sequence_parallel_size").filter(|leaf| leaf.whole() != Some(1)) {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        leaves.state(
            Field::CpCommType,
            "a2a",
            Origin::Derived,
            "DeepSpeed's sequence parallelism is Ulysses",
        );
    }
}

/// Prompts with their answers are packed without splitting, and a micro-batch is one pack
/// (`rl_utils.py:pack_sequences`).
fn batch(leaves: &mut Leaves<'_>) {
    leaves.take_all(&[
        ("pack_length", Field::MaxTokensPerMicroBatch),
        ("num_unique_prompts_rollout", Field::RolloutPrompts),
        ("num_samples_per_prompt_rollout", Field::RolloutsPerPrompt),
    ]);
    defaults(
        leaves,
        OPEN,
        &[
            (Field::MaxTokensPerMicroBatch, "512"),
            (Field::RolloutPrompts, "16"),
            (Field::RolloutsPerPrompt, "4"),
        ],
    );
    let both = ["max_prompt_token_length", "response_length"];
    derived(leaves, Field::RolloutLength, &both, &[256, 256], "longest prompt and response together", |of| {
        of[0].saturating_add(of[1])
    });
    let parts = ["num_unique_prompts_rollout", "num_samples_per_prompt_rollout", "num_mini_batches"];
    derived(
        leaves,
        Field::GlobalBatchSize,
        &parts,
        &[16, 4, 1],
        "prompts x samples of each / mini-batches",
        |of| (of[0].saturating_mul(of[1]) / of[2].max(1)).max(1),
    );
    if let Some(leaf) = leaves.get("per_device_train_batch_size").filter(|leaf| leaf.whole() != Some(1)) {
        lack(leaves, leaf, Effect::Memory, "several packs in a micro-batch, padded to the longest");
    }
}

/// States a value derived from several numbers, at the position of the last one that is stated.
fn derived(
    leaves: &mut Leaves<'_>,
    field: Field,
    keys: &[&str],
    usual: &[u64],
    note: &str,
    rule: fn(&[u64]) -> u64,
) {
    let mut values = usual.to_vec();
    let mut last = None;
    for (key, value) in keys.iter().zip(&mut values) {
        let Some(leaf) = leaves.get(key) else { continue };
        let Some(known) = leaf.whole() else { return leaves.say(field, &leaf.value, leaf) };
        (*value, last) = (known, Some(leaf));
    }
    let value = rule(&values).to_string();
    match last {
        Some(leaf) => leaves.say_noted(field, &value, leaf, note),
        None => leaves.state(field, &value, Origin::Default, note),
    }
}

fn rollout(leaves: &mut Leaves<'_>, learners: Option<u64>) {
    leaves.state(Field::RlFramework, "open_instruct", Origin::Derived, "open-instruct's options");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "open-instruct generates with vLLM");
    leaves.take_all(&[
        ("vllm_tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("vllm_gpu_memory_utilization", Field::RolloutMemoryFraction),
    ]);
    if let Some(leaf) = leaves.yes("vllm_enforce_eager") {
        leaves.switch(Field::RolloutCudaGraphs, false, leaf);
    }
    // Engines pause for new weights without releasing memory (`sleep(level=0, mode="keep")`).
    defaults(
        leaves,
        OPEN,
        &[
            (Field::RolloutTensorParallelSize, "1"),
            (Field::RolloutMemoryFraction, "0.9"),
            (Field::RolloutCudaGraphs, "true"),
            (Field::RolloutSleep, "false"),
            (Field::RlCritic, "none"),
        ],
    );
    let engines = leaves.get("vllm_num_engines");
    match (leaves.yes("single_gpu_mode"), engines.map_or(Some(1), Leaf::whole)) {
        (Some(leaf), _) if learners != Some(1) => {
            lack(
                leaves,
                leaf,
                Effect::Memory,
                "rollout engines that share the accelerators of only some learners",
            );
        }
        (Some(_), _) => {}
        (None, Some(engines)) => {
            let each = leaves.reading.count(Field::RolloutTensorParallelSize).unwrap_or(1);
            let own = engines.saturating_mul(each).max(1).to_string();
            let note = "vllm_num_engines x vllm_tensor_parallel_size";
            leaves.state(Field::RolloutGpus, &own, Origin::Derived, note);
            let whole = leaves.flag("gather_whole_model") != Some(false);
            let note = "gather_whole_model: the first learner copies all weights to send them";
            leaves.state(Field::CopyWholeModel, if whole { "true" } else { "false" }, Origin::Default, note);
        }
        (None, None) => {
            if let Some(leaf) = engines {
                leaves.say(Field::RolloutGpus, &leaf.value, leaf);
            }
        }
    }
    leaves.pass("gather_whole_model");
    let held = leaves.flag("load_ref_policy") != Some(false);
    let (place, note) = if held {
        ("device", "load_ref_policy: a second copy of the weights, sharded the same way")
    } else {
        ("none", "load_ref_policy is off")
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
}
