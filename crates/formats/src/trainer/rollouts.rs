//! GRPO and RLOO under transformers trainers.

use super::behind;
use super::dialect::Dialect;
use super::reference;
use super::responses::{self, ANSWERS, whole};
use crate::leaves::{Leaf, Leaves};
use crate::{Asked, Effect, NotModelled, NotRead, Origin, Question};
use shardscope_plan::Field;

/// Stops the verdict at a setting that changes the inputs of the loss.
pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// The defaults of a rollout trainer.
pub(super) struct Defaults {
    name: &'static str,
    /// Completions per prompt.
    completions: &'static str,
    /// The weight of the distance to the reference in current releases.
    beta: f64,
}

/// `trl/trainer/grpo_config.py`.
pub(super) const GRPO: Defaults = Defaults { name: "GRPO", completions: "8", beta: 0.0 };

/// TRL 1.16's RLOO (`trl/trainer/rloo_config.py`), whose log-probabilities are computed exactly like GRPO's
/// (`rloo_trainer.py:_get_per_token_logps_and_entropies`); its loss only adds one number per sequence. Older releases
/// had a reward model and other names (`rloo_k`), which stop the verdict.
pub(super) const RLOO: Defaults = Defaults { name: "RLOO", completions: "2", beta: 0.05 };

/// GRPO of TRL and ms-swift, and TRL's RLOO: rollouts by vLLM on the training accelerators, or by a separate server.
/// Keys and defaults: `trl/trainer/grpo_config.py`, `swift/rlhf_trainers/args_mixin.py`,
/// `swift/arguments/rlhf_args.py`.
pub(super) fn rollouts(leaves: &mut Leaves<'_>, leaf: &Leaf, dialect: Dialect, defaults: &Defaults) {
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
    let framework = if is_swift { "swift" } else { "trl" };
    leaves.state(Field::RlFramework, framework, Origin::Derived, defaults.name);
    leaves.state(Field::RolloutEngine, "vllm", Origin::Derived, "use_vllm");
    take(leaves, &["num_generations"], Field::RolloutsPerPrompt);
    let whose = "default of TRL and ms-swift";
    leaves.state(Field::RolloutsPerPrompt, defaults.completions, Origin::Default, whose);
    take(leaves, &["vllm_gpu_memory_utilization", "gpu_memory_utilization"], Field::RolloutMemoryFraction);
    take(leaves, &["vllm_tensor_parallel_size", "tensor_parallel_size"], Field::RolloutTensorParallelSize);
    // The engine's, not the training's.
    leaves.reading.not_modelled.retain(|item| !is_swift || item.name != "tensor_parallel_size");
    take(leaves, &["vllm_max_num_seqs"], Field::RolloutSequences);
    // Of ms-swift's TRL nothing is said; 0.0 says no release.
    let release = behind::release(leaves).filter(|release| !is_swift && *release > [0, 0]);
    if defaults.name == RLOO.name
        && let Some(release) = release.filter(|release| *release < LIKE_GRPO)
    {
        let what = "RLOO of TRL before 0.22, which had a reward model and a trainer of its own";
        let value = format!("{}.{}", release[0], release[1]);
        leaves.reading.not_modelled.push(NotModelled::new("trl", &value, Effect::Memory, what));
    }
    let early = !is_swift && is_early(leaves, &find, release);
    if release.is_some_and(|release| release < IN_SEQUENCES) {
        // `repeat_interleave(self.num_generations)` of each prompt (`trl/trainer/grpo_trainer.py` of 0.14).
        let what = "GRPO of TRL 0.14, whose batches count prompts and not their completions";
        leaves.reading.not_modelled.push(NotModelled::new("trl", "0.14", Effect::Memory, what));
    }
    leaves.state(
        Field::RolloutMemoryFraction,
        if is_swift || early { "0.9" } else { "0.3" },
        Origin::Default,
        match () {
            () if is_swift => "default of ms-swift",
            () if early => EARLY,
            () => "default of TRL since 0.18; 0.9 before",
        },
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
    if let Some(leaf) = leaves.get("num_infer_workers").filter(|_| is_swift) {
        // Read beside the number of processes, which the command tells (`tell_own_engines`).
        leaves.reading.not_read.push(NotRead::new(&leaf.path, leaf.span));
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
    let answer = default_answer(leaves, &find, is_swift, early, release);
    engine(leaves, &find, is_swift, early, release);
    responses::read(leaves, &find, is_swift, answer);
    if early && leaves.reading.value(Field::RolloutEngine) == Some("vllm") {
        let note = "vllm_device: a separate accelerator";
        match find(leaves, "vllm_device").and_then(|path| leaves.get(&path)) {
            Some(leaf) => leaves.say_noted(Field::RolloutGpus, "1", leaf, note),
            None => leaves.state(Field::RolloutGpus, "1", Origin::Derived, note),
        }
    }
    reference::read(
        leaves,
        dialect,
        find(leaves, "max_prompt_length").filter(|_| !is_swift),
        is_swift || early,
        defaults.beta,
    );
    length(leaves, &find, early || release.is_some_and(|release| release < UNCUT), answer);
    leaves.pass_below(&["trl.", "vllm."]);
}

const EARLY: &str = "default of TRL 0.14 and 0.15";

/// Whether these are arguments of TRL before it had `vllm_mode`: vLLM ran on the accelerator after those that train and
/// took 0.9 of it, and there was a reference in addition to the policy, because beta was 0.04
/// (`trl/trainer/grpo_config.py` of 0.15).
fn is_early(
    leaves: &Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    release: Option<[u64; 2]>,
) -> bool {
    let has = |key: &str| find(leaves, key).is_some();
    let told = behind::OF_OWN_ENGINE.iter().any(|key| has(key));
    !has("vllm_mode") && (told || release.is_some_and(|release| release < SERVED))
}

/// The first release of GRPO that takes rollouts from a server, and the first in which they run beside the training by default.
const SERVED: [u64; 2] = [0, 16];
/// The first release whose batches count completions.
const IN_SEQUENCES: [u64; 2] = [0, 15];
const BESIDE: [u64; 2] = [1, 0];
/// The first release that generates once for all micro-batches of a step (`trl/trainer/grpo_trainer.py`, 0.17), the first that does
/// not cut prompts at 512 tokens, the first whose responses have up to 512 tokens by default, and the first whose RLOO is like GRPO.
const BY_STEP: [u64; 2] = [0, 17];
const UNCUT: [u64; 2] = [0, 26];
const LONGER: [u64; 2] = [1, 10];
const LIKE_GRPO: [u64; 2] = [0, 22];

/// Default limits in tokens of a response and of a prompt in the releases of TRL that truncate prompts: 0.14 to 0.27
/// (`trl/trainer/grpo_config.py`; `max_prompt_length` was removed by #4847 in January 2026). Since #6264 of July 2026
/// the limit of a response is 512.
const CUT: (u64, u64) = (256, 512);

/// The limit of a response in tokens if the text does not state it and indicates such a release.
fn default_answer(
    leaves: &Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    is_swift: bool,
    early: bool,
    release: Option<[u64; 2]>,
) -> Option<u64> {
    let states = |key: &str| find(leaves, key).is_some();
    let shorter = release.is_some_and(|release| release < LONGER);
    let cuts = !is_swift && (early || shorter || states("max_prompt_length"));
    (cuts && !ANSWERS.iter().any(|key| states(key))).then_some(CUT.0)
}

/// Where rollouts are generated.
fn engine(
    leaves: &mut Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    is_swift: bool,
    early: bool,
    release: Option<[u64; 2]>,
) {
    let uses = find(leaves, "use_vllm").and_then(|path| leaves.yes(&path));
    let mode = find(leaves, "vllm_mode").and_then(|path| leaves.get(&path)).map(|leaf| leaf.value.clone());
    let server = mode.as_deref() == Some("server")
        || mode.is_none()
            && ["vllm_server_host", "vllm_server_base_url"].iter().any(|key| find(leaves, key).is_some());
    let told = || BEFORE_ONE.iter().any(|key| find(leaves, key).is_some());
    let known = release.filter(|release| *release < BESIDE || !leaves.has(behind::AT_MOST));
    let before_one =
        !is_swift && !early && mode.is_none() && known.map_or_else(told, |release| release < BESIDE);
    let chosen = find(leaves, "use_vllm")
        .and_then(|path| leaves.get(&path))
        .filter(|leaf| leaf.flag().is_none() && !leaf.value.is_empty());
    if let Some(leaf) = chosen {
        lack(
            leaves,
            leaf,
            "rollouts by vLLM or by the training model itself, as the program's own arguments say",
        );
    } else if uses.is_none() && mode.is_none() && !is_swift {
        itself(leaves, find, release);
    } else if uses.is_none() && mode.is_none() {
        let what = "rollouts by the training model, whose KV cache shares its GPUs (no vLLM)";
        leaves.reading.not_modelled.push(NotModelled::new("use_vllm", "", Effect::Memory, what));
    } else if server {
        leaves.state(
            Field::RolloutGpus,
            "0",
            Origin::Derived,
            "a separate server, which the text does not describe",
        );
    } else if before_one && uses.is_some() {
        let why = "TRL before 1.0, to which the text belongs, takes rollouts from a separate server unless vllm_mode says otherwise";
        leaves.state(Field::RolloutGpus, "0", Origin::Derived, why);
    }
}

/// Arguments of `GRPOConfig` that releases before 1.0 alone have. `vllm_mode` was "server" from 0.18, which introduced it, to
/// 0.29 (huggingface/trl#5255 of March 2026 made it "colocate"); 0.16 and 0.17 had the server alone, 0.14 and 0.15 the
/// accelerator after those that train (`trl/trainer/grpo_config.py` of these releases).
const BEFORE_ONE: [&str; 4] =
    ["max_prompt_length", "use_liger_loss", "vllm_guided_decoding_regex", "vllm_max_model_len"];

/// Settings of `generate` with other memory requirements.
const OTHERWISE: [(&str, &str); 7] = [
    (
        "use_transformers_paged",
        "rollouts by transformers' continuous batching, whose cache is sized separately",
    ),
    (
        "use_transformers_continuous_batching",
        "rollouts by transformers' continuous batching, whose cache is sized separately",
    ),
    ("cache_implementation", "rollouts with a KV cache other than the dynamic one"),
    ("generation_batch_size", "a rollout round sized in sequences over all accelerators"),
    ("generation_kwargs", "rollouts with custom generation arguments"),
    ("repetition_penalty", "rollouts with a repetition penalty"),
    ("cast_lm_head_to_fp32", "an output layer in fp32"),
];

/// Rollouts by the training model itself (`trl/trainer/grpo_trainer.py:_generate_single_turn`): as many at once as
/// there are in `steps_per_generation` micro-batches, by default those of one optimizer step.
fn itself(
    leaves: &mut Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    release: Option<[u64; 2]>,
) {
    leaves
        .reading
        .found
        .retain(|found| !matches!(found.field, Field::RolloutEngine | Field::RolloutMemoryFraction));
    leaves.state(Field::RolloutEngine, "transformers", Origin::Derived, "no vLLM: the training model itself");
    for (key, what) in OTHERWISE {
        let Some(leaf) = find(leaves, key).and_then(|path| leaves.get(&path)) else { continue };
        let idle = ["null", "None", "", "1.0", "1", "{}"].contains(&leaf.value.as_str());
        if leaf.flag() != Some(false) && !idle {
            lack(leaves, leaf, what);
        }
    }
    if let Some(leaf) = find(leaves, "ds3_gather_for_generation").and_then(|path| leaves.get(&path))
        && leaf.flag() == Some(false)
    {
        lack(leaves, leaf, "rollouts over ZeRO-3 shards, gathered layer by layer");
    }
    // The values without effect; by default `top_k` is 0 and `min_p` is not set.
    let filters: Vec<&str> = [("temperature", "1"), ("top_k", "0"), ("top_p", "1"), ("min_p", "0")]
        .into_iter()
        .filter(|(key, idle)| {
            let leaf = find(leaves, key).and_then(|path| leaves.get(&path));
            leaf.is_some_and(|leaf| match (leaf.value.parse::<f64>(), idle.parse::<f64>()) {
                (Ok(value), Ok(idle)) => value != idle && value >= 0.0,
                _ => !["null", "None", ""].contains(&leaf.value.as_str()),
            })
        })
        .map(|(key, _)| key)
        .collect();
    if !filters.is_empty() {
        leaves.state(Field::RolloutSampling, &filters.join(" "), Origin::Script, "settings of sampling");
    }
    if let Some(steps) = find(leaves, "steps_per_generation").and_then(|path| leaves.get(&path)) {
        let batch = leaves.reading.count(Field::MicroBatchSize);
        match steps.whole().zip(batch).and_then(|(steps, batch)| steps.checked_mul(batch)) {
            Some(rows) => leaves.say_noted(
                Field::RolloutSequences,
                &rows.to_string(),
                steps,
                "steps_per_generation micro-batches",
            ),
            None => lack(leaves, steps, "a rollout round sized in micro-batches, whose size is unknown here"),
        }
    }
    if release.is_some_and(|release| release < BY_STEP) {
        let rows = leaves.reading.value(Field::MicroBatchSize).unwrap_or("8").to_owned();
        leaves.state(
            Field::RolloutSequences,
            &rows,
            Origin::Default,
            "TRL before 0.17 generates for each micro-batch",
        );
    }
}

/// The note on the sum of both limits.
pub(super) const fn longest() -> &'static str {
    "longest prompt and response together"
}

/// Prompt and response together: vLLM's limit, or the sum of both limits.
fn length(
    leaves: &mut Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    early: bool,
    default: Option<u64>,
) {
    let answer = whole(leaves, find, &ANSWERS);
    let prompt = whole(leaves, find, &["max_prompt_length", "max_length"]);
    let most = whole(leaves, find, &["vllm_max_model_len", "vllm_max_model_length", "max_model_len"]);
    let sum = prompt.zip(answer).and_then(|(prompt, answer)| prompt.whole()?.checked_add(answer.whole()?));
    leaves.reading.keep(&|found| found.field != Field::SeqLength);
    if let Some(answer) = default.filter(|_| most.is_none()) {
        if let Some((leaf, prompt)) = prompt.and_then(|leaf| Some((leaf, leaf.whole()?))) {
            let note = "max_prompt_length and the 256 tokens of a response in TRL before 1.10";
            return leaves.say_noted(
                Field::SeqLength,
                &prompt.saturating_add(answer).to_string(),
                leaf,
                note,
            );
        }
        if early && find(leaves, "max_prompt_length").is_none() {
            let sum = answer.saturating_add(CUT.1).to_string();
            let note = "512 tokens of a prompt and 256 of a response, the defaults of TRL up to 0.25";
            return leaves.state(Field::SeqLength, &sum, Origin::Default, note);
        }
    }
    match (sum, most.and_then(|leaf| leaf.whole()), answer, most) {
        (Some(sum), limit, Some(leaf), _) if limit.is_none_or(|limit| sum <= limit) => {
            leaves.say_noted(Field::SeqLength, &sum.to_string(), leaf, longest());
        }
        (_, Some(limit), _, Some(leaf)) => {
            let note = "longest prompt and response that vLLM takes";
            leaves.say_noted(Field::SeqLength, &limit.to_string(), leaf, note);
        }
        (_, _, answer, _) => {
            let proposal = answer.and_then(|leaf| leaf.whole()).unwrap_or(512).saturating_add(512);
            leaves.reading.questions.push(Question {
                asks: Asked::Setting(Field::SeqLength),
                prompt: "Longest prompt plus response, in tokens?".to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_string()),
            });
        }
    }
}
