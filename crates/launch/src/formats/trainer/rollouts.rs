//! GRPO under trainers of transformers.

use super::dialect::Dialect;
use crate::formats::leaves::{Leaf, Leaves};
use crate::{Effect, NotModelled, Origin, Question};
use shardscope_plan::Field;

/// Stops the verdict at a setting of what the loss is computed from.
pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// GRPO of TRL and ms-swift: rollouts by vLLM on the accelerators of the training, or by a server elsewhere.
/// Keys and defaults: `trl/trainer/grpo_config.py`, `swift/rlhf_trainers/args_mixin.py`, `swift/arguments/rlhf_args.py`.
pub(super) fn rollouts(leaves: &mut Leaves<'_>, leaf: &Leaf, dialect: Dialect) {
    leaves.say(Field::TrainingObjective, "policy", leaf);
    let is_swift = dialect == Dialect::Swift;
    let find = |leaves: &Leaves<'_>, key: &str| {
        let paths = [key.to_owned(), format!("trl.{key}"), format!("vllm.{key}")];
        paths.iter().position(|path| leaves.has(path)).map(|at| paths[at].clone())
    };
    let take = |leaves: &mut Leaves<'_>, keys: &[&str], field: Field| {
        if let Some(path) = keys.iter().find_map(|key| find(leaves, key)) {
            leaves.take(&[&path], field);
        }
    };
    leaves.state(Field::RlFramework, if is_swift { "swift" } else { "trl" }, Origin::Derived, "GRPO");
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "use_vllm");
    take(leaves, &["num_generations"], Field::RolloutsPerPrompt);
    leaves.state(Field::RolloutsPerPrompt, "8", Origin::Default, "default of TRL and ms-swift");
    take(leaves, &["vllm_gpu_memory_utilization", "gpu_memory_utilization"], Field::RolloutMemoryFraction);
    take(leaves, &["vllm_tensor_parallel_size", "tensor_parallel_size"], Field::RolloutTensorParallelSize);
    take(leaves, &["vllm_max_num_seqs"], Field::RolloutSequences);
    leaves.state(
        Field::RolloutMemoryFraction,
        if is_swift { "0.9" } else { "0.3" },
        Origin::Default,
        if is_swift { "default of ms-swift" } else { "default of TRL" },
    );
    if let Some(path) = find(leaves, "vllm_enforce_eager")
        && let Some(leaf) = leaves.yes(&path)
    {
        leaves.switch(Field::RolloutCudaGraphs, false, leaf);
    }
    for key in ["sleep_level", "vllm_enable_sleep_mode"] {
        if let Some(path) = find(leaves, key)
            && let Some(leaf) = leaves.get(&path)
        {
            leaves.switch(
                Field::RolloutSleep,
                leaf.flag() == Some(true) || leaf.whole().is_some_and(|level| level > 0),
                leaf,
            );
        }
    }
    let moved = |leaves: &Leaves<'_>, key: &str| leaves.flag(key) == Some(true);
    let words: Vec<&str> = [("offload_model", "weights"), ("offload_optimizer", "optimizer")]
        .into_iter()
        .filter(|(key, _)| moved(leaves, key))
        .map(|(_, word)| word)
        .collect();
    if !words.is_empty() {
        leaves.state(
            Field::OffloadBetweenPhases,
            &words.join(" "),
            Origin::Script,
            "offload_model, offload_optimizer",
        );
    }
    engine(leaves, &find);
    reference(leaves, is_swift);
    length(leaves, &find);
    leaves.pass_below(&["trl.", "vllm."]);
}

/// Where rollouts are made.
fn engine(leaves: &mut Leaves<'_>, find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>) {
    let uses = find(leaves, "use_vllm").and_then(|path| leaves.yes(&path));
    let mode = find(leaves, "vllm_mode").and_then(|path| leaves.get(&path)).map(|leaf| leaf.value.clone());
    let server = mode.as_deref() == Some("server")
        || mode.is_none()
            && ["vllm_server_host", "vllm_server_base_url"].iter().any(|key| find(leaves, key).is_some());
    if uses.is_none() && mode.is_none() {
        let what = "rollouts by the training model itself, whose KV cache shares its GPUs (no vLLM)";
        leaves.reading.not_modelled.push(NotModelled::new("use_vllm", "", Effect::Memory, what));
    } else if server {
        leaves.state(
            Field::RolloutGpus,
            "0",
            Origin::Derived,
            "a server of its own, which the text does not describe",
        );
    }
}

/// The policy is held against its first weights unless the weight of that, beta, is 0: TRL's default; ms-swift's is 0.04.
fn reference(leaves: &mut Leaves<'_>, is_swift: bool) {
    let beta =
        leaves.first(&["beta", "rl_beta", "trl.beta"]).map(|leaf| leaf.value.parse::<f64>().unwrap_or(1.0));
    let held = beta.unwrap_or(if is_swift { 0.04 } else { 0.0 }) != 0.0;
    let adapters = leaves.reading.value(Field::TrainType).is_some_and(|way| way != "full");
    let (place, note) = match (held, adapters) {
        (false, _) => ("none", "beta is 0"),
        (true, true) => ("none", "the base without its adapters"),
        (true, false) => ("device", "a second copy of the weights, sharded as the first"),
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
    leaves.state(Field::RlCritic, "none", Origin::Derived, "GRPO has no critic");
    if let Some(leaf) = leaves.get("reward_model") {
        lack(leaves, leaf, "a reward model that shares the accelerators");
    }
}

/// The first of some keys that holds a whole number.
fn whole<'t>(
    leaves: &Leaves<'t>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    keys: &[&str],
) -> Option<&'t Leaf> {
    let path = keys.iter().find_map(|key| find(leaves, key))?;
    leaves.get(&path).filter(|leaf| leaf.whole().is_some())
}

/// Prompt and response together: what vLLM takes at most, or the sum of both limits.
fn length(leaves: &mut Leaves<'_>, find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>) {
    let answer = whole(leaves, find, &["max_completion_length", "max_new_tokens", "response_length"]);
    let prompt = whole(leaves, find, &["max_prompt_length", "max_length"]);
    let most = whole(leaves, find, &["vllm_max_model_len", "vllm_max_model_length", "max_model_len"]);
    let sum = prompt.zip(answer).and_then(|(prompt, answer)| prompt.whole()?.checked_add(answer.whole()?));
    leaves.reading.keep(&|found| found.field != Field::SeqLength);
    match (sum, most.and_then(|leaf| leaf.whole()), answer, most) {
        (Some(sum), limit, Some(leaf), _) if limit.is_none_or(|limit| sum <= limit) => {
            leaves.say_noted(
                Field::SeqLength,
                &sum.to_string(),
                leaf,
                "longest prompt and response together",
            );
        }
        (_, Some(limit), _, Some(leaf)) => {
            let note = "longest prompt and response that vLLM takes";
            leaves.say_noted(Field::SeqLength, &limit.to_string(), leaf, note);
        }
        (_, _, answer, _) => {
            let proposal = answer.and_then(|leaf| leaf.whole()).unwrap_or(512).saturating_add(512);
            leaves.reading.questions.push(Question {
                name: Field::SeqLength.name().to_owned(),
                prompt: "Longest prompt plus response, in tokens?".to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_string()),
            });
        }
    }
}
