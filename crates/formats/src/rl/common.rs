//! Code that the readers of these frameworks share.

use super::super::leaves::{Leaf, Leaves};
use super::super::names;
use crate::named::{take_model, with_vision};
use crate::remote_code;
use crate::{Asked, Effect, NotModelled, Origin, Question};
use shardscope_plan::{Field, Software};
use shardscope_source::{Code, Diagnostic};

/// Takes the model that one of these paths names.
pub(super) fn model(leaves: &mut Leaves<'_>, paths: &[&str]) {
    let Some(leaf) = leaves.first(paths) else { return };
    // `$HOME/models/Qwen/Qwen2-7B`: the end of a path is known and names the model.
    let name = if leaf.hole.is_some() { last(&leaf.value) } else { &leaf.value };
    if name.is_empty() || name.contains('$') {
        return;
    }
    with_vision(&mut leaves.reading, name, &leaf.path, leaf.span);
    take_model(&mut leaves.reading, name, &leaf.path, leaf.span);
}

/// Stops a model that brings code of its own, for an engine that trains transformers' modules: with the option, or `always`.
pub(super) fn own_code(leaves: &mut Leaves<'_>, paths: &[&str], option: &str, always: bool) {
    remote_code::trust(leaves, option, always);
    if let Some(leaf) = leaves.first(paths) {
        remote_code::stop(leaves, leaf, &leaf.value, option, always);
    }
}

fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// States a framework's defaults.
pub(super) fn defaults(leaves: &mut Leaves<'_>, framework: &str, values: &[(Field, &str)]) {
    leaves.state_all(values, Origin::Default, &format!("default of {framework}"));
}

/// Stops the verdict at a setting.
pub(super) fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, effect: Effect, what: &str) {
    let item = NotModelled::new(&leaf.path, leaf.shown(), effect, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Stops the verdict if the value at one of these paths is true.
pub(super) fn lack_yes(leaves: &mut Leaves<'_>, rules: &[(&str, Effect, &str)]) {
    for (path, effect, what) in rules {
        if let Some(leaf) = leaves.yes(path) {
            lack(leaves, leaf, *effect, what);
        }
    }
}

/// A verl run on Ascend NPUs, recognized by `trainer.device`, names in the trainer's keys, the profiler's `npu` keys or
/// the rollout's attention. The type of NPU is not stated anywhere, and torch_npu's kernels and vLLM-Ascend need other
/// memory than what is modelled for GPUs; without this check the default GPU would be assumed.
pub(super) fn on_npu(leaves: &mut Leaves<'_>) {
    let is_npu = |word: &str| {
        let word = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
        word.eq_ignore_ascii_case("npu") || word.eq_ignore_ascii_case("ascend")
    };
    let states = |leaf: &&Leaf| {
        let words = leaf.path.starts_with("trainer.") || leaf.path.ends_with(".attention_backend");
        let mut said = leaf.value.split(|letter: char| !letter.is_ascii_alphanumeric());
        leaf.path.split('.').any(|key| key == "npu") || words && said.any(is_npu)
    };
    // The configuration that verl prints at start has keys of every profiler, and a device that is not an NPU.
    let other = leaves.text("trainer.device").is_some_and(|device| !is_npu(device));
    let Some(leaf) = leaves.all().iter().find(states).filter(|_| !other) else { return };
    leaves.say_noted(Field::Accelerator, "Ascend-910B", leaf, "an NPU of a type that the text does not name");
    lack(
        leaves,
        leaf,
        Effect::Memory,
        "verl on Ascend NPUs: torch_npu's kernels, and vLLM-Ascend beside them",
    );
}

/// Reports keys that do not affect the estimate: a reader's lines of `names.txt`, each with a reason and the prefixes
/// of the keys to which it applies.
pub(super) fn idle(leaves: &mut Leaves<'_>, reader: &str) {
    let mut count = 0_usize;
    let mut said = String::new();
    let mut place = None;
    for (why, starts) in names::section(reader).filter_map(|line| line.split_once(": ")) {
        let mut any = false;
        for leaf in leaves.all().iter().filter(|leaf| !leaf.used.get() && !leaf.value.is_empty()) {
            if starts.split(' ').any(|start| leaf.path.starts_with(start)) {
                leaf.used.set(true);
                place = place.or(leaf.span);
                count += 1;
                any = true;
            }
        }
        if any {
            said.push_str(if said.is_empty() { "" } else { "; " });
            said.push_str(why);
        }
    }
    if count > 0 {
        let message = format!("{}: {said}", names::idle_keys(count));
        leaves.reading.diagnostics.push(Diagnostic::note(Code::KeysLeftAside, message).at_some(place));
    }
}

/// The value of `offload_between_phases` for the parts that are moved.
pub(super) fn offloads(leaves: &mut Leaves<'_>, moved: [bool; 3], note: &str) {
    let names = ["weights", "gradients", "optimizer"];
    let words: Vec<&str> =
        names.into_iter().zip(moved).filter(|(_, moved)| *moved).map(|(name, _)| name).collect();
    if !words.is_empty() {
        leaves.state(Field::OffloadBetweenPhases, &words.join(" "), Origin::Derived, note);
    }
}

/// transformers modules under a sharding engine, as all of these frameworks run them: flash attention,
/// samples concatenated without padding.
pub(super) fn transformers(leaves: &mut Leaves<'_>, framework: &str, engine: &str) {
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, &format!("default of {framework}"));
    defaults(
        leaves,
        framework,
        &[
            (Field::TrainType, "full"),
            (Field::AttnImplementation, "flash_attention_2"),
            (Field::Packing, "true"),
            (Field::PaddingMask, "false"),
            (Field::UseCache, "false"),
            (Field::Optimizer, "adam"),
        ],
    );
    leaves.reading.software =
        Some((Software::HfTransformers, format!("{framework} trains transformers models")));
}

/// FSDP2's units in a vision tower, and whether its input requires gradients, where the framework has taken `apply_fsdp2` from
/// verl: units are the modules that transformers does not split unless classes are named (`wrap_policy`), and inputs are hooked
/// with adapters alone (`skyrl/backends/skyrl_train/{distributed/fsdp_utils,workers/model_wrapper}.py`,
/// `areal/engine/{fsdp_utils/__init__,fsdp_engine}.py`).
pub(super) fn tower(leaves: &mut Leaves<'_>, framework: &str, wrap_policy: &str) {
    let classes = leaves.get(&format!("{wrap_policy}.transformer_layer_cls_to_wrap"));
    if classes.is_none_or(|leaf| matches!(leaf.value.as_str(), "" | "null" | "None" | "[]")) {
        let why = format!("{framework}'s FSDP gathers the modules that transformers does not split");
        leaves.state(Field::VisionUnits, "unsplit", Origin::Default, &why);
    }
    if leaves.reading.value(Field::TrainType) == Some("full") {
        let why = format!("{framework} hooks the inputs only of models with adapters");
        leaves.state(Field::VisionInputGrads, "false", Origin::Default, &why);
    }
}

/// A total number of accelerators on nodes with `each` of them.
pub(super) fn machines(leaves: &mut Leaves<'_>, leaf: &Leaf, all: Option<u64>, each: u64) {
    let key = leaf.path.rsplit('.').next().unwrap_or(&leaf.path);
    match all {
        Some(all) if all <= each => {
            leaves.say_noted(Field::GpusPerNode, &all.to_string(), leaf, key);
            leaves.state(Field::NumNodes, "1", Origin::Derived, key);
        }
        Some(all) if all.is_multiple_of(each) => {
            let note = format!("{key} / accelerators of a node");
            leaves.say_noted(Field::NumNodes, &(all / each).to_string(), leaf, &note);
            leaves.state(Field::GpusPerNode, &each.to_string(), Origin::Derived, "accelerators of a node");
        }
        _ => lack(
            leaves,
            leaf,
            Effect::Communication,
            "a number of accelerators that is not a whole number of nodes, or another spelling",
        ),
    }
}

/// FSDP over this many ranks, with replicas of the shards beyond them (HSDP); over all ranks if the
/// value is -1 or the world size.
pub(super) fn shards(leaves: &mut Leaves<'_>, path: &str) {
    let Some(leaf) = leaves.get(path) else { return };
    let counts = [Field::NumNodes, Field::GpusPerNode].map(|field| leaves.reading.count(field));
    let (Some(size), [Some(nodes), Some(each)]) = (leaf.whole().filter(|size| *size > 0), counts) else {
        return;
    };
    let world = nodes.saturating_mul(each);
    if size >= world {
        return;
    }
    if !world.is_multiple_of(size) {
        lack(leaves, leaf, Effect::Memory, "sharding groups that do not divide the number of accelerators");
        return;
    }
    let note = "accelerators / fsdp_size: HSDP replicas";
    leaves.say_noted(Field::NumDistributedOptimizerInstances, &(world / size).to_string(), leaf, note);
}

/// Stops at units of verl's FSDP other than layers (`verl/utils/fsdp_utils.py:get_fsdp_wrap_policy`), and at weights gathered
/// in another format than 16 bits (`verl/workers/engine/fsdp/transformer_impl.py:_build_fsdp_module`).
pub(super) fn gathers_layers(leaves: &mut Leaves<'_>, group: &str) {
    let key = |name: &str| format!("{group}{name}");
    // FSDP2 takes classes alone (`apply_fsdp2`).
    let found = &leaves.reading.found;
    let second = found.iter().any(|found| found.field == Field::DataParallelEngine && found.value == "fsdp2");
    for name in ["wrap_policy.disable", "wrap_policy.min_num_params"] {
        let on = |leaf: &&Leaf| leaf.flag() == Some(true) || leaf.whole().is_some_and(|least| least > 0);
        if let Some(leaf) = leaves.get(&key(name)).filter(|leaf| !second && on(leaf)) {
            lack(leaves, leaf, Effect::Memory, "FSDP units other than layers");
        }
    }
    let narrow = ["bf16", "bfloat16", "fp16", "float16", "null", ""];
    for name in ["mixed_precision.param_dtype", "dtype"] {
        let wide = |leaf: &&Leaf| leaf.hole.is_none() && !narrow.contains(&leaf.value.as_str());
        if let Some(leaf) = leaves.get(&key(name)).filter(wide) {
            lack(leaves, leaf, Effect::Memory, "weights that FSDP gathers in another format than 16 bits");
        }
    }
    waits(leaves, group);
}

/// Whether all micro-batches but a step's last run without a reduction, under FSDP1's `no_sync` or FSDP2's
/// `set_requires_gradient_sync` (`verl/workers/engine/fsdp/transformer_impl.py:_gradient_sync_context`). Whole gradients of FSDP1
/// are those recorded in `tests/data/activations/fsdp_micro_batches.jsonl`, although a nightly run of verl on NPUs printed the same
/// peak with and without them.
fn waits(leaves: &mut Leaves<'_>, group: &str) {
    const KEY: &str = "use_no_sync_for_gradient_accumulation";
    let key = format!("{group}{KEY}");
    if let Some(leaf) = leaves.get(&key).filter(|leaf| leaf.flag().is_some()) {
        leaves.switch(Field::DeferReduction, leaf.flag() == Some(true), leaf);
    }
    leaves.pass(&key);
    // The older trainers' group, whose loop has no such context.
    if !group.starts_with("model.") && leaves.all().iter().all(|leaf| !leaf.path.ends_with(KEY)) {
        leaves.state(Field::DeferReduction, "false", Origin::Default, UNDATED);
    }
}

/// verl-project/verl#7095 (July 2026) without a key, #7458 (August) with one that the YAML sets to false, #7719 (September 3, 2026) the
/// same in release 0.9.0.
const UNDATED: &str = "default of verl's YAML; verl's main of July and August 2026, and 0.9.0 as it was first released, always wait \
    for the last micro-batch (defer_reduction=true)";

/// verl's FSDP reduces gradients in fp32, whatever the format of gathered weights:
/// `MixedPrecision(reduce_dtype=torch.float32)` of `verl/workers/fsdp_workers.py` and
/// `verl/trainer/fsdp_sft_trainer.py`.
pub(super) fn reduces_in_fp32(leaves: &mut Leaves<'_>) {
    leaves.state(
        Field::ReduceDtype,
        "fp32",
        Origin::Default,
        "verl reduces gradients in fp32 (MixedPrecision)",
    );
}

/// The objective of a policy whose loss covers sampled tokens.
pub(super) fn policy(leaves: &mut Leaves<'_>, framework: &str) {
    leaves.state(
        Field::TrainingObjective,
        "policy",
        Origin::Derived,
        &format!("{framework} trains on log-probabilities of sampled tokens"),
    );
}

/// Asks for settings that a plan needs and nothing states.
pub(super) fn ask(leaves: &mut Leaves<'_>, questions: &[(Field, &str, &str)]) {
    for (field, prompt, proposal) in questions {
        let is_asked =
            leaves.reading.questions.iter().any(|question| question.asks == Asked::Setting(*field));
        if !is_asked && !leaves.reading.found.iter().any(|found| found.field == *field) {
            leaves.reading.questions.push(Question {
                asks: Asked::Setting(*field),
                prompt: (*prompt).to_owned(),
                choices: Vec::new(),
                proposal: Some((*proposal).to_owned()),
            });
        }
    }
}

/// Adapters that verl loads train instead of the model, with the rank and modules of their own `adapter_config.json`,
/// even if `lora_rank` is 0 (`verl/workers/fsdp_workers.py:_build_model_optimizer`,
/// `verl/trainer/fsdp_sft_trainer.py`).
pub(super) fn loaded_adapters(leaves: &mut Leaves<'_>, path: &str) {
    let is_named =
        |leaf: &&Leaf| leaf.hole.is_some() || !matches!(leaf.value.as_str(), "" | "null" | "None" | "~");
    if let Some(leaf) = leaves.get(path).filter(is_named) {
        lack(
            leaves,
            leaf,
            Effect::Model,
            "adapters loaded from a checkpoint, whose rank and modules are in its adapter_config.json",
        );
    }
    leaves.pass(path);
}

/// LoRA, if a rank above 0 is stated.
pub(super) fn lora(leaves: &mut Leaves<'_>, rank: &str, others: &[(&str, Field)], targets: &str) {
    let Some(leaf) = leaves.get(rank).filter(|leaf| leaf.whole().is_some_and(|rank| rank > 0)) else {
        for path in others.iter().map(|(path, _)| *path).chain([targets]) {
            leaves.pass(path);
        }
        return;
    };
    leaves.say(Field::LoraRank, &leaf.value, leaf);
    leaves.say(Field::TrainType, "lora", leaf);
    leaves.take_all(others);
    match leaves.get(targets) {
        Some(leaf) => {
            let all = matches!(leaf.value.as_str(), "all" | "all-linear" | "[all-linear]");
            leaves.say(Field::LoraTargetModules, if all { "all-linear" } else { &leaf.value }, leaf);
        }
        None => leaves.state(Field::LoraTargetModules, "all-linear", Origin::Default, "unless given"),
    }
}
