//! ROLL: a policy under Megatron with its `mcore_adapter`, rollouts on the same or separate accelerators, and
//! supervised fine-tuning. Keys and defaults: `roll/configs/base_config.py`, `worker_config.py`,
//! `mcore_adapter/training_args.py`; the engine: `roll/distributed/strategy/megatron_strategy.py`.

use super::super::leaves::{Leaf, Leaves};
use super::common::{ask, defaults, idle, lack, lack_yes, model, offloads, policy};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

const ROLL: &str = "ROLL";

/// Lists of keys; a settings file of ROLL has all keys of one list.
pub(super) const SIGNS: [&[&str]; 4] = [
    &["actor_train", "actor_infer"],
    &["actor_train", "exp_name"],
    &["student", "exp_name"],
    &["sft_train", "exp_name"],
];

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let has = |leaves: &Leaves<'_>, group: &str| leaves.all().iter().any(|leaf| leaf.path.starts_with(group));
    let tunes = has(leaves, "sft_train.");
    let generates = has(leaves, "actor_infer.");
    let worker = if tunes { "sft_train." } else { "actor_train." };
    if !tunes && !generates {
        stop(leaves, "preference training or distillation");
    } else if ["student.", "student_train.", "teacher."].iter().any(|group| has(leaves, group)) {
        stop(leaves, "a teacher model (distillation)");
    }
    machines(leaves, worker);
    engine(leaves, worker);
    batch(leaves, worker);
    if generates {
        policy(leaves, ROLL);
        rollout(leaves, worker);
        beside(leaves, worker);
    }
    model(leaves, &[&at(worker, "model_args.model_name_or_path"), "pretrain", "student_pretrain"]);
    let open = [
        (Field::MicroBatchSize, "Micro-batch size (per_device_train_batch_size)?", "1"),
        (Field::SeqLength, "Longest prompt plus response, in tokens (sequence_length)?", "4096"),
    ];
    let packed = leaves.reading.value(Field::MaxTokensPerMicroBatch).is_some();
    ask(leaves, if packed { &[] } else { &open });
    idle(leaves, "roll");
}

fn at(worker: &str, key: &str) -> String {
    format!("{worker}{key}")
}

fn stop(leaves: &mut Leaves<'_>, what: &str) {
    leaves.reading.not_modelled.push(NotModelled::new("framework", ROLL, Effect::Memory, what));
}

/// Accelerators of a worker: `list(range(0,16))`, sums of such terms, or an explicit list.
fn devices(leaf: &Leaf) -> Option<Vec<std::ops::Range<u64>>> {
    let text: String = leaf.value.chars().filter(|letter| !letter.is_whitespace()).collect();
    let mut out = Vec::new();
    for part in text.split('+') {
        let inner = part.strip_prefix("list(range(").and_then(|rest| rest.strip_suffix("))"));
        if let Some(ends) = inner {
            let ends: Vec<u64> = ends.split(',').filter_map(|end| end.parse().ok()).collect();
            match ends[..] {
                [end] => out.push(0..end),
                [start, end] if start <= end => out.push(start..end),
                _ => return None,
            }
        } else {
            for one in part.strip_prefix('[')?.strip_suffix(']')?.split(',') {
                let one: u64 = one.parse().ok()?;
                out.push(one..one.saturating_add(1));
            }
        }
    }
    Some(out)
}

fn count(ranges: &[std::ops::Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn machines(leaves: &mut Leaves<'_>, worker: &str) {
    let each = leaves.whole("num_gpus_per_node").unwrap_or(8).max(1);
    let path = at(worker, "device_mapping");
    let Some(leaf) = leaves.get(&path) else {
        leaves.take(&["num_gpus_per_node"], Field::GpusPerNode);
        return;
    };
    super::common::machines(leaves, leaf, devices(leaf).map(|ranges| count(&ranges)), each);
}

/// Megatron's names under `strategy_config`.
fn engine(leaves: &mut Leaves<'_>, worker: &str) {
    let name = at(worker, "strategy_args.strategy_name");
    if let Some(leaf) = leaves.get(&name).filter(|leaf| leaf.value != "megatron_train") {
        lack(leaves, leaf, Effect::Memory, "this ROLL training engine");
    } else if !leaves.has(&name) {
        stop(leaves, "ROLL's FSDP2 engine");
    }
    let group = at(worker, "strategy_args.strategy_config.");
    let named: Vec<(String, Field)> = leaves
        .all()
        .iter()
        .filter_map(|leaf| {
            let name = leaf.path.strip_prefix(&group)?;
            let name = name.strip_prefix("additional_configs.").unwrap_or(name);
            let field = match name {
                "bias_activation_fusion" => Field::BiasSwigluFusion,
                other => Field::named(other)?,
            };
            (leaf.value != "null" && leaf.value != "~").then(|| (leaf.path.clone(), field))
        })
        .collect();
    for (path, field) in named {
        leaves.take(&[&path], field);
    }
    let count = |leaves: &Leaves<'_>, field| leaves.reading.count(field).unwrap_or(1);
    let (tensor, experts) =
        (count(leaves, Field::TensorModelParallelSize), count(leaves, Field::ExpertModelParallelSize));
    // Set automatically in both directions (`mcore_adapter/models/model_config.py`).
    if tensor > 1 && experts > 1 {
        leaves.reading.keep(&|found| found.field != Field::SequenceParallel);
        leaves.state(Field::SequenceParallel, "true", Origin::Derived, "where tensors and experts are cut");
    } else if tensor == 1 {
        leaves.reading.keep(&|found| found.field != Field::SequenceParallel);
    }
    if leaves.reading.value(Field::RecomputeGranularity) == Some("full") {
        defaults(leaves, ROLL, &[(Field::RecomputeMethod, "uniform"), (Field::RecomputeNumLayers, "1")]);
    }
    defaults(
        leaves,
        ROLL,
        &[
            (Field::Bf16, "true"),
            (Field::AccumulateAllreduceGradsInFp32, "true"),
            (Field::SequenceParallel, "false"),
            (Field::OverlapGradReduce, "false"),
            (Field::MoeTokenDispatcherType, "allgather"),
            (Field::BiasSwigluFusion, "false"),
            (Field::ApplyRopeFusion, "false"),
            (Field::AttentionBackend, "flash"),
            (Field::HiddenDropout, "0"),
            (Field::AttentionDropout, "0"),
            (Field::MakeVocabSizeDivisibleBy, "1"),
            (Field::GradientAccumulationFusion, "false"),
        ],
    );
    leaves.reading.software = Some((Software::MegatronCoreTe, "ROLL's Megatron engine".to_owned()));
    for (key, what) in [
        ("model_args.lora_target", "adapters of PEFT over Megatron's layers"),
        ("model_args.freeze_module_prefix", "modules frozen by name"),
    ] {
        if let Some(leaf) = leaves.get(&at(worker, key)).filter(|leaf| leaf.value != "null") {
            lack(leaves, leaf, Effect::Model, what);
        }
    }
    if let Some(leaf) = leaves.get(&at(worker, "model_args.dtype")).filter(|leaf| leaf.value != "bf16") {
        lack(leaves, leaf, Effect::Memory, "weights in a dtype other than bf16");
    }
    if let Some(leaf) = leaves.get(&at(worker, "mtp_training_mode")).filter(|leaf| leaf.value != "disabled") {
        lack(leaves, leaf, Effect::Model, "multi-token prediction that trains with the policy");
    }
    let wide = at(worker, "logits_in_fp32");
    lack_yes(leaves, &[(&wide, Effect::Memory, "logits that are cast to fp32 before their loss")]);
    let zero = |leaf: &&Leaf| leaf.value.parse::<f64>().is_ok_and(|part| part == 0.0);
    if let Some(leaf) = leaves.get("entropy_loss_coef").filter(|leaf| !zero(leaf)) {
        lack(leaves, leaf, Effect::Memory, "an entropy term in the loss, whose softmax is saved");
    }
}

/// An optimizer step takes this many micro-batches on every data-parallel rank.
fn batch(leaves: &mut Leaves<'_>, worker: &str) {
    let micro = at(worker, "training_args.per_device_train_batch_size");
    let times = at(worker, "training_args.gradient_accumulation_steps");
    let both = leaves.whole("prompt_length").zip(leaves.whole("response_length"));
    let length = match (leaves.get("sequence_length"), both) {
        (Some(leaf), _) => Some((leaf, leaf.value.clone())),
        (None, Some((prompt, response))) => {
            leaves.get("response_length").map(|leaf| (leaf, prompt.saturating_add(response).to_string()))
        }
        (None, None) => None,
    };
    let tokens = [
        ("use_dynamic_batching_in_train", "max_tokens_per_microbatch_in_train"),
        ("use_sequence_packing", "sequence_packing_args.max_packed_sequence_length_train"),
    ]
    .into_iter()
    .filter(|(switch, _)| leaves.flag(&at(worker, switch)) == Some(true))
    .find_map(|(_, key)| leaves.get(&at(worker, key)));
    if let Some(leaf) = tokens {
        leaves.say(Field::MaxTokensPerMicroBatch, &leaf.value, leaf);
        // Micro-batches count tokens, so the number of samples per step has to be stated, over all ranks.
        let samples = leaves.whole(&micro).unwrap_or(1).saturating_mul(leaves.whole(&times).unwrap_or(1));
        let degree = |field| leaves.reading.count(field).unwrap_or(1).max(1);
        let cut = degree(Field::TensorModelParallelSize)
            * degree(Field::PipelineModelParallelSize)
            * degree(Field::ContextParallelSize);
        let data = degree(Field::NumNodes) * degree(Field::GpusPerNode) / cut;
        let note = "per_device_train_batch_size x gradient_accumulation_steps x data-parallel ranks";
        leaves.state(
            Field::GlobalBatchSize,
            &samples.saturating_mul(data.max(1)).to_string(),
            Origin::Derived,
            note,
        );
    } else {
        leaves.take_all(&[(micro.as_str(), Field::MicroBatchSize), (times.as_str(), Field::NumMicroBatches)]);
        defaults(leaves, "transformers' TrainingArguments", &[(Field::NumMicroBatches, "1")]);
    }
    if let Some((leaf, value)) = length {
        let field = if tokens.is_some() { Field::RolloutLength } else { Field::SeqLength };
        leaves.say_noted(field, &value, leaf, "longest prompt and response together");
    }
}

fn rollout(leaves: &mut Leaves<'_>, worker: &str) {
    leaves.state(Field::RlFramework, "roll", Origin::Derived, "ROLL's keys");
    let config = |key: &str| at("actor_infer.strategy_args.strategy_config.", key);
    match leaves.get("actor_infer.strategy_args.strategy_name") {
        Some(leaf) if matches!(leaf.value.as_str(), "vllm" | "sglang") => {
            leaves.say(Field::RolloutEngine, &leaf.value, leaf);
        }
        Some(leaf) => lack(leaves, leaf, Effect::Memory, "this rollout engine"),
        None => stop(leaves, "a rollout engine that is not named"),
    }
    // SGLang's strategy overwrites `tp_size`.
    let told = leaves.take(&[&config("tensor_parallel_size")], Field::RolloutTensorParallelSize);
    leaves.pass(&config("tp_size"));
    // As many as a worker has accelerators (`roll/distributed/strategy/sglang_strategy.py:initialize`); vLLM's strategy makes it the
    // other way round (`roll/configs/worker_config.py:__post_init__`).
    if !told && leaves.reading.value(Field::RolloutEngine) == Some("sglang") {
        leaves.take(&["actor_infer.num_gpus_per_worker"], Field::RolloutTensorParallelSize);
    }
    leaves.take(
        &[&config("gpu_memory_utilization"), &config("mem_fraction_static")],
        Field::RolloutMemoryFraction,
    );
    leaves.take(&[&config("max_num_seqs")], Field::RolloutSequences);
    leaves.take(
        &["num_return_sequences_in_group", "actor_infer.generating_args.num_return_sequences"],
        Field::RolloutsPerPrompt,
    );
    leaves.take(&["rollout_batch_size"], Field::RolloutPrompts);
    defaults(leaves, ROLL, &[(Field::RolloutPrompts, "128"), (Field::RolloutsPerPrompt, "1")]);
    if let Some(leaf) = leaves.get(&config("enforce_eager")) {
        leaves.switch(Field::RolloutCudaGraphs, leaf.flag() == Some(false), leaf);
    }
    let own = leaves.get("actor_infer.device_mapping").and_then(devices);
    let trains = leaves.get(&at(worker, "device_mapping")).and_then(devices).unwrap_or_default();
    match own {
        Some(ranges) if !overlaps(&ranges, &trains) => {
            leaves.state(
                Field::RolloutGpus,
                &count(&ranges).to_string(),
                Origin::Derived,
                "actor_infer.device_mapping shares no accelerator with actor_train",
            );
        }
        _ => leaves.state(
            Field::RolloutSleep,
            "true",
            Origin::Derived,
            "actor_infer shares accelerators with actor_train",
        ),
    }
    // After every operation an engine offloads its states to the host (`state_offload_manger`).
    offloads(leaves, [true, true, true], "states are offloaded to the host after every operation");
}

/// Models besides the policy.
fn beside(leaves: &mut Leaves<'_>, worker: &str) {
    let zero = |leaf: &&Leaf| leaf.value.parse::<f64>().is_ok_and(|part| part == 0.0);
    let penalised = leaves.get("init_kl_coef").is_none_or(|leaf| !zero(&leaf))
        || leaves.flag("use_kl_loss") == Some(true)
        || leaves.flag("enable_reference") == Some(true);
    let mapped = |leaves: &Leaves<'_>, path: &str| leaves.text(path).map(str::to_owned);
    let same = mapped(leaves, "reference.device_mapping") == mapped(leaves, &at(worker, "device_mapping"));
    let (place, note) = match () {
        () if !penalised => ("none", "init_kl_coef is 0, and use_kl_loss is off"),
        () if same => ("host", "the reference is offloaded to the host after every operation"),
        () => ("elsewhere", "the reference is on separate accelerators"),
    };
    leaves.state(Field::RlReference, place, Origin::Derived, note);
    rewarding(leaves, worker);
    let critic = leaves.text("adv_estimator").unwrap_or("gae") == "gae";
    if critic {
        stop(leaves, "a critic whose shape may differ from the policy's");
    }
    leaves.state(Field::RlCritic, "none", Origin::Derived, "adv_estimator has none");
}

/// Judge models run on accelerators of the training, between rollouts and training.
fn rewarding(leaves: &mut Leaves<'_>, worker: &str) {
    let trains = leaves.get(&at(worker, "device_mapping")).and_then(devices).unwrap_or_default();
    let is_reward = |leaf: &&Leaf| leaf.path.starts_with("reward") && leaf.path.ends_with(".device_mapping");
    for leaf in leaves.all().iter().filter(is_reward) {
        if devices(leaf).is_some_and(|ranges| overlaps(&ranges, &trains)) {
            leaves.not_estimated(leaf, "a judge model, offloaded to the host when idle");
        }
    }
}

fn overlaps(ranges: &[std::ops::Range<u64>], others: &[std::ops::Range<u64>]) -> bool {
    ranges.iter().any(|one| others.iter().any(|other| one.start < other.end && other.start < one.end))
}
