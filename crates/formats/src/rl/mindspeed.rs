//! MindSpeed-RL: Megatron's flags as keys under `megatron_training` and `actor_config`, with vLLM-Ascend for
//! rollouts (`mindspeed_rl/config_cls`).

use super::super::leaves::Leaves;
use super::common::{ask, offloads, policy};
use crate::{Argument, Origin, megatron};
use shardscope_plan::Field;

const OURS: &str = "MindSpeed-RL";

pub(super) fn read(leaves: &mut Leaves<'_>) {
    flags(leaves);
    let rl = leaves.all().iter().any(|leaf| leaf.path.starts_with("generate_config."));
    batch(leaves);
    if rl {
        policy(leaves, OURS);
        rollout(leaves);
    }
    if let Some(leaf) = leaves.first(&["megatron_training.model", "actor_config.model"])
        && leaves.reading.value(Field::NumLayers).is_none()
    {
        // `qwen25_7b`: a separate file, and a model by its name.
        if let Some((known, settings)) = super::super::known_model(&spelt(&leaf.value)) {
            let note = format!("{known}, named as {}", leaf.value);
            for (field, value) in settings {
                leaves.state(field, &value, Origin::Catalog, &note);
            }
            // Each of its files of models (`configs/model/*.yaml` at 05a90d7).
            let whose = "the files of models of MindSpeed-RL";
            leaves.state(Field::MakeVocabSizeDivisibleBy, "1", Origin::Default, whose);
        }
    }
    ask(
        leaves,
        &[
            (Field::MicroBatchSize, "Micro-batch size of the actor?", "1"),
            (Field::SeqLength, "Prompt plus response length, in tokens?", "4096"),
        ],
    );
    leaves.pass_below(&["rl_config.", "generate_config.", "defaults", "ref_config.", "reward_config."]);
}

/// `qwen25_7b` and `qwen3_30b_a3b` in Qwen's spelling.
fn spelt(name: &str) -> String {
    let dashed = name.replace("qwen25", "qwen2.5").replace('_', "-");
    dashed.replace("deepseekv3-671b", "deepseek-v3")
}

/// The flags of both groups; the actor's take precedence.
fn flags(leaves: &mut Leaves<'_>) {
    let mut words: Vec<Argument> = Vec::new();
    for group in ["megatron_training.", "actor_config."] {
        for leaf in leaves.all().iter().filter(|leaf| leaf.path.starts_with(group)) {
            leaf.used.set(true);
            let name = leaf.path.get(group.len()..).unwrap_or("");
            // Names of separate files, and of the task.
            if matches!(name, "model" | "stage" | "dataset_additional_keys") || leaf.value.is_empty() {
                continue;
            }
            let word = |text: String, hole: Option<String>| Argument {
                text,
                span: leaf.span,
                hole,
                answered: false,
            };
            match leaf.switched() {
                Some(true) => words.push(word(format!("--{name}"), None)),
                Some(false) => {}
                None => {
                    words.push(word(format!("--{name}"), None));
                    words.push(word(leaf.value.clone(), leaf.hole.clone()));
                }
            }
        }
    }
    leaves.reading = megatron::read(&words);
}

/// A mini-batch counts prompts, and so does the batch of a round (`rl_config.py`:
/// mini_batch_size x n_samples_per_prompt).
fn batch(leaves: &mut Leaves<'_>) {
    let prompts = leaves.reading.value(Field::GlobalBatchSize).map(str::to_owned);
    if let Some(prompts) = prompts {
        leaves.state(
            Field::RolloutPrompts,
            &prompts,
            Origin::Script,
            "global_batch_size counts prompts here",
        );
    }
    leaves.take(&["rl_config.n_samples_per_prompt"], Field::RolloutsPerPrompt);
    leaves.state(Field::RolloutsPerPrompt, "1", Origin::Default, "default of MindSpeed-RL");
    let rollouts = leaves.reading.count(Field::RolloutsPerPrompt).unwrap_or(1);
    if let Some(leaf) = leaves.get("rl_config.mini_batch_size")
        && let Some(prompts) = leaf.whole()
    {
        let sequences = prompts.saturating_mul(rollouts).to_string();
        leaves.say_noted(Field::GlobalBatchSize, &sequences, leaf, "mini_batch_size x n_samples_per_prompt");
    }
    let sizes = ["rl_config.max_prompt_length", "generate_config.sampling_config.max_tokens"]
        .map(|path| leaves.get(path));
    if let [Some(prompt), Some(response)] = sizes
        && let (Some(first), Some(second)) = (prompt.whole(), response.whole())
    {
        let length = first.saturating_add(second).to_string();
        leaves.say_noted(Field::RolloutLength, &length, response, "longest prompt and response together");
        leaves.say_noted(Field::SeqLength, &length, response, "longest prompt and response together");
    }
    if leaves.flag("rl_config.use_dynamic_bsz") == Some(true)
        && let Some(leaf) =
            leaves.first(&["rl_config.update_max_packing_token_size", "rl_config.max_packing_token_size"])
    {
        // Full samples are counted, before context parallelism splits them (`_split_batches_with_dynamic_bsz`).
        leaves.say(Field::MaxTokensPerMicroBatch, &leaf.value, leaf);
        leaves.longest_sample();
    }
    if let Some(leaf) = leaves.get("rl_config.actor_resource.num_npus") {
        leaves.say(Field::WorldSize, &leaf.value, leaf);
    }
}

fn rollout(leaves: &mut Leaves<'_>) {
    leaves.state(Field::RlFramework, "mindspeed_rl", Origin::Derived, "MindSpeed-RL's keys");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "vLLM-Ascend");
    leaves.take_all(&[
        ("generate_config.infer_tensor_parallel_size", Field::RolloutTensorParallelSize),
        ("generate_config.gpu_memory_utilization", Field::RolloutMemoryFraction),
        ("generate_config.max_num_seqs", Field::RolloutSequences),
    ]);
    leaves.state(
        Field::RolloutSleep,
        "true",
        Origin::Default,
        "weights and cache are freed between rollouts",
    );
    leaves.state(Field::RolloutCudaGraphs, "false", Origin::Default, "eager unless graphs are asked for");
    let moved = ["param", "grad", "optimizer"]
        .map(|what| leaves.flag(&format!("generate_config.offload_train_{what}")) == Some(true));
    offloads(leaves, moved, "offload_train_param, offload_train_grad and offload_train_optimizer");
    leaves.state(
        Field::RlReference,
        "host",
        Origin::Derived,
        "the integrated worker offloads the reference to the host when it is idle",
    );
    let critic = leaves.text("rl_config.adv_estimator") == Some("gae");
    leaves.state(
        Field::RlCritic,
        if critic { "device" } else { "none" },
        Origin::Derived,
        "rl_config.adv_estimator",
    );
    leaves.pass_below(&["critic_config."]);
}
