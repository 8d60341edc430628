//! Words that modify a recipe of Megatron-Bridge: dotted keys, and the options of its performance scripts
//! (`scripts/performance/argument_parser.py`,
//! `scripts/performance/utils/overrides.py:set_user_overrides`, commit 067f987).

use super::super::leaves::{Leaf, Leaves, Scalars};
use super::options::{argument, option};
use super::stages;
use crate::{Argument, Effect, NotModelled, telling};
use shardscope_plan::Field;
use shardscope_python::evaluate::Outcome;
use shardscope_python::tree::text;

/// Options that modify a recipe, and the paths that they set.
const CHANGES: &[(&str, &str)] = &[
    ("--tensor-model-parallel-size", "model.tensor_model_parallel_size"),
    ("--pipeline-model-parallel-size", STAGES),
    ("--context-parallel-size", "model.context_parallel_size"),
    ("--virtual-pipeline-model-parallel-size", CHUNKS),
    ("--expert-model-parallel-size", "model.expert_model_parallel_size"),
    ("--expert-tensor-parallel-size", "model.expert_tensor_parallel_size"),
    ("--pipeline-model-parallel-layout", stages::LAYOUT),
    ("--global-batch-size", "train.global_batch_size"),
    ("--micro-batch-size", "train.micro_batch_size"),
    ("--seq-length", "model.seq_length"),
    ("--use-megatron-fsdp", "ddp.use_megatron_fsdp"),
    ("--cuda-graph-impl", "model.cuda_graph_impl"),
    ("--cuda-graph-scope", "model.cuda_graph_modules"),
    ("--moe-a2a-overlap", "model.overlap_moe_expert_parallel_comm"),
    ("--num-layers", "model.num_layers"),
    ("--hidden-size", "model.hidden_size"),
    ("--num-moe-experts", "model.num_moe_experts"),
    ("--recompute-modules", "model.recompute_modules"),
    ("--recompute-num-layers", "model.recompute_num_layers"),
    ("--activation-offload-layers", "model.cpu_offloading_num_layers"),
    ("--moe-flex-dispatcher-backend", "model.moe_flex_dispatcher_backend"),
];
const STAGES: &str = "model.pipeline_model_parallel_size";
const CHUNKS: &str = "model.virtual_pipeline_model_parallel_size";

/// Further settings that the scripts make if an option is a number or true.
const BESIDE: &[(&str, &[(&str, &str)])] = &[
    ("model.recompute_modules", &[("model.recompute_granularity", "selective")]),
    (
        "model.recompute_num_layers",
        &[("model.recompute_granularity", "full"), ("model.recompute_method", "block")],
    ),
    ("ddp.use_megatron_fsdp", &[("ddp.data_parallel_sharding_strategy", "optim_grads_params")]),
    ("model.overlap_moe_expert_parallel_comm", &[("model.moe_shared_expert_overlap", "false")]),
];

/// Prefixes, without dashes, of options that concern how a recipe is found, started,
/// logged and evaluated, and its data.
const AROUND: &str = "domain model-family-name model-recipe-name model-name model-size use-recipes nemo-home detach max-retries num-gpus \
    dryrun task max-step max-steps distributed-timeout-minutes lr min-lr warmup-iters pretrained-checkpoint save-dir load-dir \
    save-interval most-recent-k data c4- dataset- index-mapping-dir head-only diffusion-dataset-path tokenizer- vocab-size hf-token offline \
    account partition time-limit preempt-time gpus-per-node container- custom- env gres additional-slurm-params packager \
    enable-pct-binding kubeflow- csp gpu compute-dtype enable-vboost lock-gpu-freq peak-mem-clk enable-nsys export-nsys-sqlite \
    pytorch-profiler profiling- record-memory-history nsys- deterministic wandb- log-dir save-config-filepath \
    dump-env config-variant list-config-variants is-long-convergence-run retry-on-testing-failure golden-values-path timing-threshold \
    skip-first- correlation-threshold high-loss- medium-loss- low-loss- final-loss- max-outlier-ratio outlier-threshold \
    memory-threshold eval-time-";

/// Options that change a figure and have no formula.
const LACKING: &[(&str, Effect, &str)] = &[
    ("use-tokendrop", Effect::Memory, "experts that drop tokens, with Megatron-Bridge's capacity"),
    ("nccl-ub", Effect::Memory, "NCCL user buffers for FSDP's all-gathers"),
    ("first-k-dense-replace", Effect::Model, "another number of first layers without experts"),
    ("packed-sequence", Effect::Memory, "samples packed to a sequence by a recipe's data"),
];

/// The words' modifications of this recipe; stages are recomputed as the performance scripts do.
pub(super) fn changes(words: &[Argument], outcome: &Outcome, recipe: &str) -> Vec<Leaf> {
    let is_key = |leaf: &&Leaf| leaf.path.contains('.') || leaf.path == "mixed_precision";
    let mut leaves: Vec<Leaf> = Scalars::of_words(words).all().iter().filter(is_key).cloned().collect();
    for (flag, path) in CHANGES {
        let Some(word) = argument(words, flag) else { continue };
        let value = word.text.split_once('=').map_or(word.text.as_str(), |(_, value)| value);
        let value = match value {
            "None" => String::new(),
            // A layout's letters are case-sensitive; Python's booleans are capitalized.
            _ if *path == stages::LAYOUT => value.trim_matches(['"', '\'']).to_owned(),
            _ => value.to_ascii_lowercase(),
        };
        let said = |path: &str, value: &str| Leaf {
            path: path.to_owned(),
            value: value.to_owned(),
            span: word.span,
            ..Leaf::default()
        };
        let off = matches!(value.as_str(), "false" | "0" | "no" | "");
        let switch = matches!(*path, "ddp.use_megatron_fsdp" | "model.overlap_moe_expert_parallel_comm");
        // A switch that is off leaves the recipe unchanged.
        if switch && off {
            continue;
        }
        for (path, value) in BESIDE.iter().filter(|(of, _)| of == path).flat_map(|(_, beside)| *beside) {
            leaves.push(said(path, value));
        }
        if *path == "model.tensor_model_parallel_size" && word.hole.is_none() {
            leaves.push(said("model.sequence_parallel", &(value != "1").to_string()));
        }
        leaves.push(Leaf { hole: word.hole.clone(), ..said(path, &value) });
    }
    // `scripts/training/run_recipe.py` calls a recipe of adapters with its `--mode`; without it they are LoRA's.
    let adapts = text(&outcome.tree, "peft").is_some_and(|kind| !kind.is_empty());
    if let Some((kind @ ("lora" | "dora"), span)) = option(words, "--mode").filter(|_| adapts) {
        leaves.push(Leaf { path: "peft".to_owned(), value: kind.to_owned(), span, ..Leaf::default() });
    }
    if option(words, "--cuda-graph-scope").is_some_and(|(scope, _)| scope.contains("full_iteration")) {
        let word = argument(words, "--cuda-graph-scope");
        leaves.push(Leaf {
            path: "model.cuda_graph_impl".to_owned(),
            value: "full_iteration".to_owned(),
            span: word.and_then(|word| word.span),
            ..Leaf::default()
        });
    }
    if option(words, "--model-recipe-name").is_some() {
        one_stage(&mut leaves);
        stages::asked_again(&mut leaves, &outcome.tree, recipe);
    }
    leaves
}

/// The length of samples that the words state, as Megatron-LM's data calls it, or data to fine-tune on.
pub(super) fn length_of_samples(words: &[Leaf]) -> Option<Leaf> {
    const NAMES: [&str; 2] = ["dataset.sequence_length", "dataset.seq_length"];
    let is_length = |leaf: &&Leaf| NAMES.contains(&leaf.path.as_str()) && leaf.whole().is_some();
    words.iter().rfind(is_length).cloned()
}

/// The model's sequence length is the training length. Megatron-Bridge starts only with samples as long as the model's sequences (`training/config.py:ConfigContainer.validate`).
/// What a recipe says of both by itself agrees once it has run.
pub(super) fn other_length(leaves: &mut Leaves<'_>, samples: Option<&Leaf>) {
    let Some(trained) = leaves.whole("model.seq_length") else { return };
    if let Some(leaf) = samples.filter(|leaf| leaf.whole() != Some(trained)) {
        let what = format!(
            "samples of another length than model.seq_length ({trained}), which Megatron-Bridge refuses"
        );
        leaves.lack(leaf, Effect::Model, &what);
    }
}

/// A single stage has no chunks (`megatron/core/parallel_state.py` rejects them): if the words request one stage
/// without mentioning chunks, the recipe's chunks are dropped.
fn one_stage(leaves: &mut Vec<Leaf>) {
    let said = |path: &str| leaves.iter().rev().find(|leaf| leaf.path == path);
    let Some(span) = said(STAGES).filter(|leaf| leaf.value == "1").map(|leaf| leaf.span) else { return };
    let missing: Vec<&str> =
        [CHUNKS, stages::LAYOUT].into_iter().filter(|path| said(path).is_none()).collect();
    leaves.extend(missing.into_iter().map(|path| Leaf { path: path.to_owned(), span, ..Leaf::default() }));
}

/// Weights gathered behind the forward pass although gradients are reduced at its end: Megatron-LM's parser rejects
/// this combination, core and Megatron-Bridge do not (`training/comm_overlap.py:_get_optimizer_overlap_cfgs`;
/// recipes of DeepSeek-V3 for H100).
pub(super) fn gathers_alone(leaves: &mut Leaves<'_>) {
    let on = |field| leaves.reading.value(field) == Some("true");
    if on(Field::OverlapParamGather) && !on(Field::OverlapGradReduce) {
        leaves.reading.keep(&|found| found.field != Field::OverlapParamGather);
        let what = "weights gathered behind the forward pass where gradients are reduced at its end";
        let item = NotModelled::new("ddp.overlap_param_gather", "true", Effect::Time, what);
        leaves.reading.not_modelled.push(item);
    }
}

/// Options of the performance scripts that change a figure and are not modelled, and unknown ones.
pub(super) fn lacking(words: &[Argument]) -> Vec<NotModelled> {
    let mut out: Vec<NotModelled> = Vec::new();
    if option(words, "--model-recipe-name").is_none() || option(words, "--gpu").is_none() {
        return out;
    }
    for (at, word) in words.iter().enumerate() {
        let Some(text) = word.text.strip_prefix("--") else { continue };
        let (name, inline) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let next = words.get(at + 1).map(|next| next.text.as_str()).filter(|next| !next.starts_with('-'));
        let value = inline.or(next).unwrap_or("true");
        let dashed = name.replace('_', "-");
        let read = CHANGES.iter().any(|(flag, _)| flag.trim_start_matches('-') == dashed);
        let around = AROUND.split_ascii_whitespace().any(|start| match start.strip_suffix('-') {
            Some(_) => dashed.starts_with(start),
            None => dashed == start,
        });
        if read || around || name.contains('.') {
            continue;
        }
        let known = LACKING.iter().find(|(known, ..)| *known == dashed);
        let off = telling::says_no(value) || value == "0" || value == "None";
        let item = match known {
            Some((_, effect, what)) => (!off).then(|| NotModelled::new(&word.text, value, *effect, what)),
            None if dashed == "optimizer-type" && value == "adam" => None,
            None => telling::stop(name, value),
        };
        out.extend(item.map(|item| item.at_some(word.span)));
    }
    out
}
