//! Settings files that start no training by themselves, recognised by their keys.

use shardscope_config_tree::Node;
use shardscope_source::{Code, Diagnostic};

/// Settings that start no training by themselves, recognised by their keys, and what to paste instead.
const BESIDE: [(&[&str], &str, &str); 24] = [
    (
        &["input", "output_prefix", "tokenizer_type"],
        "settings for data preparation, not for training",
        "paste the training config or script",
    ),
    (
        &["data_path", "vocab_file", "merge_file"],
        "GPT-NeoX data and checkpoint paths, not a training run",
        "paste the model's file as well (configs/125M.yml)",
    ),
    (
        &["train_data_paths", "vocab_file"],
        "GPT-NeoX data and checkpoint paths, not a training run",
        "paste the model's file as well (configs/125M.yml)",
    ),
    (
        &["text_gen_type", "maximum_tokens"],
        "generation settings, not a training run",
        "paste the training config or script",
    ),
    (&["env_vars"], "environment variables, not a training run", "paste the training config or script"),
    (
        &["defaults", "megatron_training"],
        "a MindSpeed-RL run whose model is in another file",
        "paste the model file (configs/model/) as well, with its Megatron keys",
    ),
    (
        &["apiVersion", "name", "type", "version"],
        "a Helm chart description: the command is in the chart's templates",
        "paste the script that it runs, or what `helm template` prints",
    ),
    (
        &["cache_dir", "tokenizer"],
        "dataset and cache settings, not a training run",
        "paste the training config or script",
    ),
    (
        &["type", "learning_rate", "weight_decay"],
        "optimizer settings alone, not a training run",
        "paste the training config as well",
    ),
    (
        &["generation", "data", "env"],
        "a NeMo-RL evaluation, not a training run",
        "paste the training recipe (examples/configs/)",
    ),
    (
        &["metadata", "quantize"],
        "ModelOpt quantization settings, not a training run",
        "paste the training recipe as well",
    ),
    (
        &["model.target", "model.params"],
        "a model built from class names (latent diffusion), not a language model",
        "paste a language model's config.json or its training script",
    ),
    (
        &["project", "build-system"],
        "a Python package description, not a training run",
        "paste the training config or script",
    ),
    (
        &["AWSTemplateFormatVersion", "Resources"],
        "an AWS CloudFormation stack, not a training run",
        "paste the training script that runs on it",
    ),
    (
        &["vllm.model"],
        "inference server settings, not a training run",
        "paste the training config as well (prime-rl's rl.toml, sft.toml)",
    ),
    (
        &["training_cfg.entry_script", "cluster"],
        "a SageMaker HyperPod job whose program reads its settings from elsewhere",
        "paste the program's options, or the file that has them",
    ),
    (&["model.name"], NAMES_ONLY, MODEL_ALONE),
    (&["model_name_or_path", "dataset_name"], NAMES_ONLY, MODEL_ALONE),
    (&["model", "peft_config"], NAMES_ONLY, MODEL_ALONE),
    (
        &["integrations", "command"],
        "a MosaicML platform job whose command starts the training",
        "paste the llm-foundry config that its command names",
    ),
    (
        &["rollout.response_length", "data.output_path"],
        "verl generation settings (main_generation), not a training run",
        "paste the command of main_ppo, or its settings",
    ),
    (
        &["stream", "max_new_tokens"],
        "text generation settings, not a training run",
        "paste the training config or script",
    ),
    (
        &["project_name", "gpu"],
        "axolotl cloud settings (--cloud), not a training run",
        "paste the training configuration as well",
    ),
    (
        &["channels", "dependencies"],
        "a conda environment, not a training run",
        "paste the training config or script",
    ),
];

const NAMES_ONLY: &str = "settings that name a model but no training run";
const MODEL_ALONE: &str = "paste the training config, or the model name alone";

/// More of them, one per line: the keys that a file has (`0` is the first item of a list, `key=value` a value that begins
/// so), and what it is. Sources beside those that name their program: pre-commit.com, circleci.com/docs, docs.github.com,
/// docs.gitlab.com, docs.docker.com; Megatron Energon's `Metadataset`; `ub_tp_comm_overlap_cfg` of Transformer Engine's
/// users; oumi's `InferenceConfig`, `JudgeConfig`, `SynthesisConfig` and `AnalyzeConfig`; the task files of
/// lm-evaluation-harness and the results of lighteval; verl's tools and agents; FlagScale's `conf/serve`.
const KINDS: &str = "\
repos.0.repo | a pre-commit configuration
version jobs workflows | a CircleCI configuration
on jobs | a GitHub Actions workflow
stages workflow | a GitLab CI pipeline
version updates.0.package-ecosystem | a Dependabot configuration
CI Dist-Ckpt | rules for labels of merge requests
dictionaries ignorePaths | a spell checker's configuration
site_name nav | a documentation site
version services | containers of Docker Compose
receivers exporters service | an OpenTelemetry collector
__module__=megatron.energon | a blend of datasets for Megatron Energon
qkv_dgrad fc1_dgrad | the overlap of tensor parallelism's messages, beside a training
judge_params inference_config | settings of a judge (oumi)
judge_params rule_judge_params | settings of a judge (oumi)
num_samples strategy_params | settings of data synthesis (oumi)
dataset_path analyzers | settings of a data analysis (oumi)
engine generation | inference settings
engine generate | inference settings
method awq_group_size | quantization settings (oumi)
data compress_args | quantization settings (FlagScale)
0.serve_id 0.engine | inference server settings (FlagScale)
0.source 0.steps | a data pipeline
0.name 0._target_ | agents of a rollout
agent_cls task tools | settings of an agent
agent.tools env | settings of an agent
agent environment verifier | settings of an agent
agent environment model | settings of an agent
tools.0.class_name | tools of a rollout's agents
env_manager_cls max_actions_per_traj | environments of a rollout
train_settings.model_size_in_b | a search over layouts (NeMo's auto-configurator)
config_general results versions | results of an evaluation
models icl_tasks | evaluation settings (llm-foundry)
harness generator | evaluation settings (lingua)
tasks generator | evaluation settings (lingua)
task dataset_name output_type | a task of lm-evaluation-harness
task dataset_name include | a task of lm-evaluation-harness
data.response_key custom_reward_function | evaluation settings (verl's main_eval)
defaults=eval generation | an evaluation (NeMo-RL)
dataset._target_ dataloader_params | settings of a dataset
huggingface_dataset_id loader | settings of a dataset
hardware_config.node_bw | a description of hardware (Primus)
image submit | the machines of a job (nrl_k8s)
image trainingConfig | Helm chart values
working_dir env_vars | a Ray runtime environment
tune_config.search_alg | a search over hyperparameters (trlx)
sharding_size sub_modules_to_wrap | what FSDP wraps, beside a training (MindSpeed-MM)
log_prob_micro_batch_size log_prob_micro_batch_size_per_gpu | one part of verl's settings
enable_resource_pool model strategy | one part of verl's settings
rollout_is rollout_is_threshold | one part of verl's settings
";

/// The diagnostic for one part of verl's settings (`verl/trainer/config/*/`), which names its class.
pub(super) fn part(root: &Node) -> Option<Diagnostic> {
    let class = root.get("_target_")?.text()?;
    if !class.starts_with("verl.") || root.get("actor_rollout_ref").is_some() {
        return None;
    }
    let message = format!("one part of verl's settings ({class}), not a training run");
    let hint = "paste the command of main_ppo, or the settings that it prints at start";
    Some(Diagnostic::error(Code::NoTraining, message).hint(hint).at(root.span))
}

/// Maximum number of files named that Hydra composes settings of.
const COMPOSED: usize = 4;

/// The diagnostic for settings that start no training by themselves; none for others.
pub(super) fn said(root: &Node) -> Option<Diagnostic> {
    let known = |(paths, ..): &&(&[&str], &str, &str)| {
        // A single name does not show what the file is for, unless nothing else is in it.
        let whole = paths.len() > 1 || *paths == ["vllm.model"] || root.entries().len() == 1;
        whole && paths.iter().all(|path| root.at(path).is_some())
    };
    let no_training = |message: String, hint: &'static str| {
        Some(Diagnostic::error(Code::NoTraining, message).hint(hint).at(root.span))
    };
    if let Some((_, message, hint)) = BESIDE.iter().find(known) {
        return no_training((*message).to_owned(), hint);
    }
    // Keys that a training of another program may have as well, beside those of its optimizer.
    const COMMON: [&str; 4] =
        ["inference settings", "settings of an agent", "evaluation settings (lingua)", "an evaluation"];
    let trains = root.entries().iter().any(|entry| {
        ["train", "optim", "lr"].iter().any(|start| entry.key.to_ascii_lowercase().starts_with(start))
    });
    let is_kind = |line: &&str| {
        let (paths, what) = line.split_once(" | ").unwrap_or((line, ""));
        let common = trains && COMMON.iter().any(|known| what.starts_with(known));
        !common && paths.split_ascii_whitespace().all(|path| has(root, path))
    };
    if let Some((_, what)) = KINDS.lines().find(is_kind).and_then(|line| line.split_once(" | ")) {
        return no_training(format!("{what}, not a training run"), "paste the training config or script");
    }
    composed(root)
}

/// Whether a path leads to something; a value beside it has to begin as stated.
fn has(root: &Node, path: &str) -> bool {
    let (path, begins) = path.split_once('=').map_or((path, None), |(path, value)| (path, Some(value)));
    let found = path.split('.').try_fold(root, |node, key| match key.parse::<usize>() {
        Ok(at) => node.items().get(at),
        Err(_) => node.get(key),
    });
    found.is_some_and(|node| {
        begins.is_none_or(|begins| node.text().is_some_and(|text| text.starts_with(begins)))
    })
}

/// Settings that Hydra composes of other files (hydra.cc/docs/advanced/defaults_list), and say nothing of a training
/// without them.
fn composed(root: &Node) -> Option<Diagnostic> {
    let mut names = Vec::new();
    for item in root.get("defaults")?.items() {
        let name = match item.entries().first() {
            Some(entry) => entry.node.text().map(|value| format!("{}/{value}", group(&entry.key))),
            None => item.text().filter(|name| *name != "_self_").map(str::to_owned),
        };
        names.extend(name);
    }
    names.truncate(COMPOSED);
    let first = names.first()?;
    let message =
        format!("settings that Hydra composes of other files, which are not here ({})", names.join(", "));
    let first = first.strip_suffix(".yaml").unwrap_or(first);
    let hint = format!("paste them as well (first {first}.yaml), or what the program prints with --cfg job");
    Some(Diagnostic::error(Code::UnknownSettings, message).hint(hint).at(root.span))
}

/// The folder of a group (`override hydra/job_logging`, `env@env.train`).
fn group(key: &str) -> &str {
    let key = key.trim_start_matches("override ").trim_start_matches("optional ");
    key.split('@').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::KINDS;
    use crate::{TextKind, detect};
    use shardscope_source::Code;

    fn said(name: &str, text: &str) -> (Code, String) {
        match detect(name, text, 0) {
            TextKind::Other(said) => (said.code, said.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn settings_around_a_training_are_told_from_it() {
        for (name, text, what) in [
            (
                ".pre-commit-config.yaml",
                "default_language_version:\n  python: python3\nrepos:\n- repo: https://github.com/pre-commit/pre-commit-hooks\n  rev: v4\n  hooks:\n  - id: check-yaml\n",
                "a pre-commit configuration",
            ),
            (
                "config.yml",
                "version: 2.1\norbs:\n  python: circleci/python@2.0.0\njobs:\n  build: {}\nworkflows:\n  all: {}\n",
                "a CircleCI configuration",
            ),
            (
                "blend.yaml",
                "__module__: megatron.energon\n__class__: Metadataset\nsplits: {}\n",
                "a blend of datasets for Megatron Energon",
            ),
            (
                "8b.yaml",
                "- serve_id: vllm_model\n  engine: vllm\n  engine_args:\n    model: a\n",
                "inference server settings (FlagScale)",
            ),
            (
                "judge.yaml",
                "judge_params:\n  system_instruction: a\ninference_config:\n  model: {}\n",
                "settings of a judge (oumi)",
            ),
            (
                "fsdp.yaml",
                "_target_: verl.workers.config.FSDPOptimizerConfig\nlr: 1e-3\n",
                "one part of verl's settings (verl.workers.config.FSDPOptimizerConfig)",
            ),
        ] {
            assert_eq!(said(name, text), (Code::NoTraining, format!("{what}, not a training run")));
        }
        for line in KINDS.lines() {
            assert!(line.split_once(" | ").is_some_and(|(keys, what)| !keys.is_empty() && !what.is_empty()));
        }
    }

    #[test]
    fn settings_that_hydra_composes_name_their_files() {
        let text = "defaults:\n  - _self_\n  - model: small_qwen\n  - override hydra/job_logging: stdout\n  - ../sft@sft: default\nrun:\n  a: 1\n";
        let message = "settings that Hydra composes of other files, which are not here (model/small_qwen, hydra/job_logging/stdout, ../sft/default)";
        assert_eq!(said("sft_config.yaml", text), (Code::UnknownSettings, message.to_owned()));
        // A list of nothing but itself is composed of nothing.
        let alone = "defaults:\n  - _self_\nrun:\n  a: 1\n";
        assert_eq!(
            said("a.yaml", alone).1,
            "settings with the keys defaults, run: of no framework that is known here"
        );
        // A value that begins otherwise is another class.
        assert_eq!(said("a.yaml", "_target_: mine.Loss\nlr: 1e-3\n").0, Code::UnknownSettings);
    }
}
