//! How a trainer distributes a model over accelerators: DeepSpeed's and FSDP's files and options, sequence parallelism,
//! and the groups of LLaMA-Factory's second format.

use super::accumulation::waits;
use super::dialect::Dialect;
use super::fsdp;
use super::missing_file::{left_to_file, offloads, open_stage};
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;
use shardscope_source::Span;

/// How the model is distributed over accelerators: DeepSpeed's and FSDP's files and options.
pub(crate) fn spread(leaves: &mut Leaves<'_>, dialect: Option<Dialect>) {
    let named = ["deepspeed", "deepspeed_config"];
    let file = named.iter().find_map(|path| leaves.get(path).filter(|leaf| leaf.flag().is_none()));
    let stated = leaves.reading.found.iter().any(|found| found.field == Field::ZeroStage);
    if stated && leaves.yes("deepspeed").is_some() && leaves.yes("offload").is_some() {
        // DeepSpeed-Chat's switch for both.
        let leaf = leaves.get("offload");
        for field in [Field::OffloadOptimizer, Field::OffloadParam] {
            leaf.into_iter().for_each(|leaf| leaves.switch(field, true, leaf));
        }
    }
    if let Some(leaf) = file.or_else(|| leaves.yes("deepspeed")) {
        let engine = Found::new(Field::DataParallelEngine, "deepspeed", Origin::Script);
        leaves.reading.take(engine.by(leaf.path.as_str(), leaf.span));
        let named = leaf.value.as_str();
        // XTuner's own files (`xtuner/configs/deepspeed`).
        let named = named.strip_prefix("deepspeed_").unwrap_or(named);
        // ms-swift's until 2.6: `default-zero2`, `zero3-offload`, with other contents.
        let of_two = named.starts_with("default-zero") || named.starts_with("zero") && named.contains('-');
        let named = named.strip_prefix("default-").unwrap_or(named);
        match (named.strip_prefix("zero"), named.contains(['/', '.'])) {
            _ if leaf.flag() == Some(true) && stated => {}
            // ms-swift's own files by their short names.
            (Some(rest), false) => {
                leaves.say(Field::ZeroStage, rest.get(..1).unwrap_or(rest), leaf);
                let of_xtuner = leaf.value.starts_with("deepspeed_");
                own_buckets(leaves, [of_xtuner, of_two], rest.starts_with('3'));
                if rest.contains("offload") {
                    // `swift/llm/ds_config/zero3_offload.json` leaves the states on the device.
                    leaves.switch(Field::OffloadOptimizer, !(of_two && rest.starts_with('3')), leaf);
                    leaves.switch(Field::OffloadParam, rest.starts_with('3'), leaf);
                }
            }
            _ => left_to_file(leaves, leaf),
        }
    }
    written_out(leaves);
    for leaf in leaves.all().iter().filter(|leaf| leaf.path.starts_with("deepspeed")) {
        leaf.used.set(true);
    }
    fsdp::read(leaves, dialect);
    mesh(leaves);
    if let Some(leaf) = leaves.get("config_file") {
        if let Some(engine) = engine_of(&leaf.value) {
            leaves.state(Field::DataParallelEngine, engine, Origin::Derived, BY_NAME);
        }
        left_to_file(leaves, leaf);
    }
}

const BY_NAME: &str = "from the name of accelerate's file";

/// The engine that shards, according to the name of accelerate's file.
fn engine_of(file: &str) -> Option<&'static str> {
    let name = file.to_ascii_lowercase();
    if name.contains("fsdp") {
        // accelerate's version is 1 unless its file says 2 (`utils/dataclasses.py:FullyShardedDataParallelPlugin`), as files of public
        // repositories that say 2 do in their names.
        let second = ["fsdp2", "fsdp_2", "fsdp-2", "fsdp_v2", "fsdpv2", "fsdp-v2"]
            .iter()
            .any(|sign| name.contains(sign));
        return Some(if second { "fsdp2" } else { "fsdp1" });
    }
    ["zero", "deepspeed", "ds_"].iter().any(|sign| name.contains(sign)).then_some("deepspeed")
}

/// The engine that shards, by what `note` names; accelerate's FSDP reduces gradients once a step.
pub fn shared_by(reading: &mut Reading, engine: &str, note: &str) {
    reading.take(Found::new(Field::DataParallelEngine, engine, Origin::Derived).note(note));
    if engine.starts_with("fsdp") {
        reading.take(Found::new(Field::DeferReduction, "true", Origin::Default).note(waits(engine)));
    } else {
        // accelerate's own files state no buckets, unlike DeepSpeed's, where "auto" is usual.
        let note = "DeepSpeed's default, which accelerate's own file leaves";
        reading.take(Found::new(Field::ReduceBuckets, "1", Origin::Default).note(note));
    }
}

/// Settings that a command without sharding options leaves to accelerate's `file`, which the option `by` names.
pub fn left_to_accelerate(reading: &mut Reading, file: &str, by: &str, span: Option<Span>) {
    if reading.found.iter().any(|found| found.field == Field::ZeroStage) {
        return;
    }
    if let Some(engine) = engine_of(file) {
        shared_by(reading, engine, BY_NAME);
    }
    let name = file.rsplit('/').next().unwrap_or(file);
    let (found, question) = open_stage(name, by, span);
    reading.take(found);
    reading.questions.push(question);
    offloads(reading, file, by, span);
}

/// Gradient buffers in frameworks' own DeepSpeed files: XTuner's leave the size to DeepSpeed and overlap
/// (`xtuner/configs/deepspeed`), ms-swift's do not (`swift/config`), and overlap until 2.6 (`swift/llm/ds_config`).
fn own_buckets(leaves: &mut Leaves<'_>, [of_xtuner, of_two]: [bool; 2], of_weights: bool) {
    let buffers = if (of_xtuner || of_two) && !of_weights { "2" } else { "1" };
    leaves.state(Field::ReduceBuckets, buffers, Origin::Default, "as its own file says");
    if !of_xtuner {
        let elements = if of_weights { "0" } else { "200000000" };
        leaves.state(Field::ReduceBucketSize, elements, Origin::Default, "as its own file says");
    }
}

/// Sequences split over ranks: Ulysses or a ring, both with flash attention. Saved tensors are
/// proportional to a rank's tokens.
pub(super) fn sequences(leaves: &mut Leaves<'_>) {
    let keys = [
        "sequence_parallel_size",
        "sequence_parallel_degree",
        "context_parallel_size",
        "ulysses_size",
        "dist_config.cp_size",
        "cp_size",
    ];
    if let Some(leaf) = leaves.first(&keys).filter(|leaf| leaf.whole().is_some_and(|ranks| ranks > 1)) {
        leaves.say(Field::ContextParallelSize, &leaf.value, leaf);
        // LLaMA-Factory's second format states the method next to the size.
        let mode = leaves.first(&["cp_mode", "dist_config.cp_mode"]).map(|leaf| leaf.value.as_str());
        let ring = leaf.path.starts_with("context") || mode.is_some_and(|mode| mode.contains("ring"));
        leaves.say(Field::CpCommType, if ring { "p2p" } else { "a2a" }, leaf);
    }
}

/// LLaMA-Factory's second format configures sharding, adapters and quantization in groups
/// (`src/llamafactory/v1/config`).
pub(super) fn groups(leaves: &mut Leaves<'_>) {
    if let Some(leaf) = leaves.get("dist_config.name") {
        match leaf.value.as_str() {
            "fsdp2" => {
                leaves.say(Field::DataParallelEngine, "fsdp2", leaf);
                leaves.say(Field::ZeroStage, "3", leaf);
                // `v1/config/training_args.py`, `v1/plugins/trainer_plugins/distributed/fsdp2.py:get_mp_policy`.
                if leaves.flag("bf16") != Some(false) {
                    let why = "LLaMA-Factory's second format computes in bf16 and reduces in fp32 unless bf16 is false";
                    leaves.state_all(
                        &[(Field::Bf16, "true"), (Field::ReduceDtype, "fp32")],
                        Origin::Default,
                        why,
                    );
                }
            }
            "deepspeed" => match leaves.get("dist_config.config_file") {
                Some(file) => {
                    leaves.say(Field::DataParallelEngine, "deepspeed", leaf);
                    left_to_file(leaves, file);
                }
                None => leaves.say(Field::DataParallelEngine, "deepspeed", leaf),
            },
            other => {
                let item =
                    NotModelled::new(&leaf.path, other, Effect::Memory, "this way of distributing a model");
                leaves.reading.not_modelled.push(item.at_some(leaf.span));
            }
        }
    }
    if let Some(leaf) = leaves.get("peft_config.name") {
        match leaf.value.as_str() {
            "lora" => leaves.say(Field::TrainType, "lora", leaf),
            "freeze" => leaves.say(Field::TrainType, "freeze", leaf),
            other => {
                let item = NotModelled::new(&leaf.path, other, Effect::Model, "adapters other than LoRA");
                leaves.reading.not_modelled.push(item.at_some(leaf.span));
            }
        }
        leaves.take_all(&[
            ("peft_config.r", Field::LoraRank),
            ("peft_config.lora_alpha", Field::LoraAlpha),
            ("peft_config.lora_dropout", Field::LoraDropout),
            ("peft_config.freeze_trainable_layers", Field::TrainedLayers),
        ]);
        if let Some(leaf) = leaves.get("peft_config.target_modules") {
            let all = matches!(leaf.value.as_str(), "all" | "all-linear" | "[all-linear]");
            leaves.say(Field::LoraTargetModules, if all { "all-linear" } else { &leaf.value }, leaf);
        }
    } else if leaves.has("dist_config.name") || leaves.has("model_class") {
        leaves.state(Field::TrainType, "full", Origin::Default, "without peft_config");
        // `v1/core/model_engine.py`: whatever the checkpoint's format is.
        let why = "LLaMA-Factory's second format trains all weights in fp32";
        leaves.state(Field::ParamsDtype, "fp32", Origin::Default, why);
    }
    if leaves.has("dist_config.name") || leaves.has("model_class") {
        // `v1/core/base_trainer.py:compute_log_probs`: labels go to the model as well, and the logits are copied in fp32, cut and copied.
        let what = "the loss of LLaMA-Factory's second format, over fp32 copies of the logits beside the model's own loss";
        leaves.reading.not_modelled.push(NotModelled::of_program("LLaMA-Factory v1", Effect::Memory, what));
    }
    if let Some(leaf) = leaves.get("quant_config.quantization_bit") {
        let kind = if leaf.whole() == Some(8) { "int8" } else { "nf4" };
        leaves.say(Field::BaseQuantization, kind, leaf);
        leaves.say(Field::TrainType, "qlora", leaf);
    }
    if let Some(leaf) = leaves.get("optim_config.name") {
        if leaf.value == "muon" {
            let item = NotModelled::new(&leaf.path, "muon", Effect::Memory, "Muon in this trainer");
            leaves.reading.not_modelled.push(item.at_some(leaf.span));
        } else {
            leaves.say(Field::Optimizer, &leaf.value, leaf);
        }
    }
    if let Some(leaf) = leaves.get("kernel_config.name").filter(|leaf| leaf.value == "liger_kernel") {
        leaves.switch(Field::LigerKernel, true, leaf);
    }
    if let Some(leaf) = leaves.get("model_class").filter(|leaf| leaf.value != "llm") {
        let item =
            NotModelled::new("model_class", &leaf.value, Effect::Model, "a model other than a text decoder");
        leaves.reading.not_modelled.push(item.at_some(leaf.span));
    }
    if leaves.has("model_class") {
        leaves.pass_below(&[
            "peft_config.",
            "dist_config.",
            "kernel_config.",
            "optim_config.",
            "quant_config.",
            "batching_strategy",
            "sample_backend",
            "max_new_tokens",
            "train_dataset",
            "eval_dataset",
        ]);
        if let Some(leaf) = leaves.get("batching_strategy").filter(|leaf| leaf.value.contains("padding_free"))
        {
            leaves.switch(Field::Packing, true, leaf);
        }
    }
    // Trainings with Megatron's layers (Megatron Bridge, mcore_adapter) have Megatron's keys next to LLaMA-Factory's
    // (`src/llamafactory/hparams/megatron_bridge_args.py`).
    if leaves.has("finetuning_type")
        && let Some(leaf) = leaves.first(&["tensor_model_parallel_size", "use_distributed_optimizer"])
    {
        let what = "Megatron's layers and optimizer under LLaMA-Factory";
        let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // With a path for tokens that do not exist yet, LLaMA-Factory writes them and exits (`data/loader.py:get_dataset`).
    let trained = ["learning_rate", "per_device_train_batch_size", "num_train_epochs"];
    if let Some(leaf) = leaves.get("tokenized_path").filter(|_| !trained.iter().any(|path| leaves.has(path)))
    {
        let what = "data preparation, not a training run";
        let item = NotModelled::new("tokenized_path", &leaf.value, Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    // Files for serving, conversion or prediction.
    let other = [
        ("export_dir", "a checkpoint conversion, not a training run"),
        ("infer_backend", "a text generation program, not a training run"),
        ("do_predict", "a text generation program, not a training run"),
        ("export_quantization_bit", "a checkpoint conversion, not a training run"),
    ];
    let trains = leaves.flag("do_train") == Some(true) || leaves.has("learning_rate");
    for (path, what) in other {
        if let Some(leaf) = leaves.get(path).filter(|leaf| !trains && leaf.flag() != Some(false)) {
            let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

/// Groups of axolotl that change the training, whatever they contain.
const CHANGING: [(&str, Effect, &str); 2] = [
    ("qat.", Effect::Memory, "quantization-aware training"),
    ("diffusion.", Effect::Model, "a diffusion model"),
];

/// Reports each of these groups once if it is present.
pub(super) fn changing(leaves: &mut Leaves<'_>) {
    for (group, effect, what) in CHANGING {
        if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with(group)) {
            let item = NotModelled::new(group.trim_end_matches('.'), "", effect, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
            leaves.pass_below(&[group]);
        }
    }
}

/// axolotl's FSDP2 mesh (`axolotl/utils/distributed.py:_get_parallel_config_kwargs`): either the number of sharding
/// ranks or the number of replicas is stated, and the other follows.
fn mesh(leaves: &mut Leaves<'_>) {
    let engine = leaves.reading.value(Field::DataParallelEngine).map(str::to_owned);
    for (path, field) in
        [("dp_replicate_size", Field::NumDistributedOptimizerInstances), ("dp_shard_size", Field::ShardRanks)]
    {
        let Some(leaf) = leaves.get(path).filter(|leaf| leaf.whole() != Some(1)) else { continue };
        if leaf.value == "null" {
            continue;
        }
        if engine.as_deref() == Some("fsdp2") && leaves.has("base_model") {
            leaves.say(field, &leaf.value, leaf);
        } else {
            let what = "this way of sharding a transformers model";
            let item = NotModelled::new(path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
            leaves.reading.not_modelled.push(item);
        }
    }
}

/// DeepSpeed's configuration as a group of keys (`training_args.py`: `deepspeed` is a file or its content).
fn written_out(leaves: &mut Leaves<'_>) {
    let within = |leaf: &Leaf| {
        let path = leaf
            .path
            .strip_prefix("deepspeed.")
            .or_else(|| leaf.path.strip_prefix(super::xlam::ENGINE))?
            .to_owned();
        Some(Leaf { path, ..leaf.clone() })
    };
    let inner: Vec<Leaf> = leaves.all().iter().filter_map(within).collect();
    let Some(first) = inner.first() else { return };
    let engine = Found::new(Field::DataParallelEngine, "deepspeed", Origin::Script);
    leaves.reading.take(engine.by("deepspeed", first.span));
    let read = crate::deepspeed::read_within(&inner);
    for found in read.found {
        let known = leaves.reading.found.iter().any(|known| known.field == found.field);
        if !known {
            leaves.reading.take(found);
        }
    }
    leaves.reading.not_modelled.extend(read.not_modelled);
    leaves.reading.not_read.extend(read.not_read);
    leaves.reading.diagnostics.extend(read.diagnostics);
}
