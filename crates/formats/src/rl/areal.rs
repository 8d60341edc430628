//! AReaL: a transformers policy under FSDP2, rollouts on separate accelerators. Keys and defaults:
//! `areal/api/cli_args.py`; the engine: `areal/engine/fsdp_engine.py`; batch algebra:
//! `areal/trainer/ppo/actor.py:_ppo_update`.

use super::super::leaves::{Leaf, Leaves};
use super::common::{
    ask, defaults, idle, lack, lack_yes, lora, machines, model, offloads, own_code, policy, tower,
    transformers,
};
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::Field;

const AREAL: &str = "AReaL";

/// Lists of keys; a settings file of AReaL has all keys of one list.
pub(super) const SIGNS: [&[&str]; 4] = [
    &["actor.path", "gconfig"],
    &["actor.path", "rollout", "cluster"],
    &["actor.path", "train_dataset"],
    // Its supervised training of 2025.
    &["model.path", "train_dataset", "allocation_mode"],
];

/// An engine and its degrees: `fsdp:d4p1t1`, `sglang[rollout]:d4t2`, and `d4p1t1` in older files,
/// which means FSDP without stages.
#[derive(Clone)]
struct Allocation<'t> {
    engine: &'t str,
    degrees: &'t str,
}

impl<'t> Allocation<'t> {
    fn parse(text: &'t str) -> Self {
        let (engine, degrees) = text.split_once([':', '.']).unwrap_or(("", text));
        Self { engine: engine.split('[').next().unwrap_or(engine), degrees }
    }

    fn generates(&self) -> bool {
        matches!(self.engine, "sglang" | "vllm")
    }

    /// The degree of a letter; `None` if the degrees are written differently (`(attn:d1p12t4|ffn:d1p12e4)`).
    fn degree(&self, letter: char) -> Option<u64> {
        if self.degrees.contains(|other: char| !other.is_ascii_alphanumeric()) {
            return None;
        }
        let Some((_, behind)) = self.degrees.split_once(letter) else { return Some(1) };
        behind.split(|other: char| !other.is_ascii_digit()).next()?.parse().ok()
    }

    fn accelerators(&self) -> Option<u64> {
        "dptc".chars().try_fold(1_u64, |product, letter| product.checked_mul(self.degree(letter)?))
    }
}

/// Whether a `backend` is an engine's name alone, as until the autumn of 2025, when only `allocation_mode` said where
/// it runs.
fn is_name(backend: &str) -> bool {
    backend.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Where training or rollouts run: an engine's own `backend`, or its part of `allocation_mode`,
/// whose parts are joined by `+`.
fn allocation<'t>(leaves: &Leaves<'t>, path: &str, generates: bool) -> Option<(Allocation<'t>, &'t Leaf)> {
    let own = leaves.get(path).filter(|leaf| !is_name(&leaf.value));
    let leaf = own.or_else(|| leaves.get("allocation_mode"))?;
    let mut parts = leaf.value.split('+').map(|part| Allocation::parse(part.trim()));
    parts.find(|part| part.generates() == generates).map(|found| (found, leaf))
}

pub(super) fn read(leaves: &mut Leaves<'_>) {
    let generates = leaves.all().iter().any(|leaf| leaf.path.starts_with("gconfig."));
    if !generates {
        stop(leaves, "training without rollouts whose loss is computed from log-probabilities");
    }
    engine(leaves);
    batch(leaves);
    policy(leaves, AREAL);
    rollout(leaves);
    beside(leaves);
    // `areal/engine/fsdp_engine.py` passes `trust_remote_code=True`.
    let plain = leaves.reading.value(Field::DataParallelEngine).is_some();
    own_code(leaves, &["actor.path", "model.path"], "", plain);
    model(leaves, &["actor.path", "model.path"]);
    if plain {
        tower(leaves, AREAL, "actor.fsdp.wrap_policy");
    }
    let packed = leaves.reading.value(Field::MaxTokensPerMicroBatch).is_some();
    let length = if packed { Field::RolloutLength } else { Field::SeqLength };
    let open = [
        (length, "Longest prompt plus response, in tokens?", "4096"),
        (
            Field::MicroBatchSize,
            "Micro-batch size (mb_spec.max_tokens_per_mb), in samples of maximum length?",
            "1",
        ),
    ];
    ask(leaves, if packed { &open[..1] } else { &open });
    idle(leaves, "areal");
}

fn stop(leaves: &mut Leaves<'_>, what: &str) {
    leaves.reading.not_modelled.push(NotModelled::new("framework", AREAL, Effect::Memory, what));
}

/// FSDP2 over 16-bit weights, gathered in that format; gradients are reduced in fp32 and stored in the type of the
/// weights (`areal/engine/fsdp_utils/parallel.py:parallelize_model`).
fn engine(leaves: &mut Leaves<'_>) {
    leaves.pass("actor.backend");
    leaves.pass("ref.backend");
    if let Some(leaf) =
        leaves.get("actor.backend").filter(|leaf| is_name(&leaf.value) && leaf.value != "fsdp")
    {
        lack(leaves, leaf, Effect::Memory, "this AReaL training engine");
    }
    let each = leaves.whole("cluster.n_gpus_per_node").unwrap_or(8).max(1);
    match allocation(leaves, "actor.backend", false) {
        Some((found, leaf)) => {
            let staged = found.engine.is_empty() && found.degree('p') != Some(1);
            if staged || !matches!(found.engine, "fsdp" | "") || leaf.value.contains('|') {
                lack(leaves, leaf, Effect::Memory, "this AReaL training engine");
            }
            machines(leaves, leaf, found.accelerators(), each);
            for (letter, field) in [
                ('t', Field::TensorModelParallelSize),
                ('p', Field::PipelineModelParallelSize),
                ('c', Field::ContextParallelSize),
                ('e', Field::ExpertModelParallelSize),
            ] {
                if let Some(degree) = found.degree(letter).filter(|degree| *degree > 1) {
                    leaves.say(field, &degree.to_string(), leaf);
                }
            }
            leaves.state(Field::CpCommType, "a2a", Origin::Default, "Ulysses in AReaL");
        }
        None => {
            leaves.take_all(&[
                ("cluster.n_nodes", Field::NumNodes),
                ("cluster.n_gpus_per_node", Field::GpusPerNode),
            ]);
            stop(leaves, "an unnamed training engine (backend, allocation_mode)");
        }
    }
    if let Some(leaf) = leaves.get("actor.attn_impl") {
        leaves.say(Field::AttnImplementation, &leaf.value, leaf);
        // Without a mask only flash attention receives the boundaries of samples.
        if !leaf.value.starts_with("flash_attention") {
            lack(leaves, leaf, Effect::Time, "attention across the samples of a pack");
        }
    }
    let of_npu = |leaf: &&Leaf| ["_NPU_", "HCCL_", "ASCEND_"].iter().any(|word| leaf.path.contains(word));
    if let Some(leaf) = leaves.all().iter().find(of_npu) {
        lack(leaves, leaf, Effect::Memory, "AReaL on Ascend NPUs");
    }
    if let Some(leaf) = leaves.get("cluster.n_gpus_per_node").filter(|leaf| leaf.whole() == Some(0)) {
        lack(leaves, leaf, Effect::Memory, "training without accelerators");
    }
    if let Some(leaf) = leaves.get("actor.grad_reduce_dtype") {
        leaves.say(Field::ReduceDtype, &leaf.value, leaf);
    }
    leaves.follow("actor.gradient_checkpointing", Field::GradientCheckpointing, true);
    if let Some(leaf) = leaves.get("actor.dtype").filter(|leaf| leaf.value != "bfloat16") {
        lack(leaves, leaf, Effect::Memory, "weights in a dtype other than bf16");
    }
    if let Some(leaf) = leaves.get("actor.optimizer.type").filter(|leaf| leaf.value != "adam") {
        match leaf.value.as_str() {
            "sgd" => leaves.say(Field::Optimizer, "sgd", leaf),
            _ => lack(leaves, leaf, Effect::Memory, "bf16 optimizer states with Kahan compensation"),
        }
    }
    if let Some(leaf) = leaves.yes("actor.fsdp.offload_params") {
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    if leaves.yes("actor.use_lora").is_some() {
        lora(leaves, "actor.lora_rank", &[("actor.lora_alpha", Field::LoraAlpha)], "actor.target_modules");
        let why = "autocast_adapter_dtype is off";
        leaves.state(Field::AdapterDtype, "bf16", Origin::Default, why);
    }
    lack_yes(
        leaves,
        &[
            (
                "actor.fsdp.per_layer_optim_step",
                Effect::Memory,
                "an optimizer that steps layer by layer, its states on the host",
            ),
            (
                "actor.enable_tree_training",
                Effect::Memory,
                "prompt prefixes shared between rollouts (tree training)",
            ),
            ("actor.use_kernels", Effect::Memory, "kernels from the Hub in place of transformers' modules"),
        ],
    );
    transformers(leaves, AREAL, "fsdp2");
    defaults(
        leaves,
        AREAL,
        &[
            (Field::Bf16, "true"),
            (Field::ParamsDtype, "bf16"),
            (Field::Autocast, "none"),
            (Field::ReduceDtype, "fp32"),
            (Field::ZeroStage, "3"),
            (Field::GradientCheckpointing, "false"),
        ],
    );
}

/// An optimizer step takes a mini-batch of the rollouts of all prompts; micro-batches count tokens of one data-parallel
/// rank, before a sequence is split over ranks.
fn batch(leaves: &mut Leaves<'_>) {
    let rollouts = leaves.whole("gconfig.n_samples").unwrap_or(1);
    leaves.take_all(&[
        ("train_dataset.batch_size", Field::RolloutPrompts),
        ("gconfig.n_samples", Field::RolloutsPerPrompt),
    ]);
    defaults(leaves, AREAL, &[(Field::RolloutsPerPrompt, "1")]);
    if let Some(leaf) = leaves.get("train_dataset.batch_size")
        && let Some(prompts) = leaf.whole()
    {
        let parts = leaves.whole("actor.ppo_n_minibatches").unwrap_or(4).max(1);
        let sequences = (prompts.saturating_mul(rollouts) / parts).max(1).to_string();
        leaves.say_noted(
            Field::GlobalBatchSize,
            &sequences,
            leaf,
            "batch_size x n_samples / ppo_n_minibatches",
        );
    }
    let tokens = leaves.get("actor.mb_spec.max_tokens_per_mb").filter(|leaf| leaf.whole().is_some());
    if let Some(leaf) = tokens {
        leaves.say(Field::MaxTokensPerMicroBatch, &leaf.value, leaf);
    } else {
        leaves.take(&["actor.mb_spec.n_mbs"], Field::NumMicroBatches);
    }
    let field = if tokens.is_some() { Field::RolloutLength } else { Field::SeqLength };
    // The maximum length of a multi-turn agent's trajectory.
    leaves.take(&["max_tokens_per_trajectory"], field);
    let both = ["train_dataset.max_length", "gconfig.max_new_tokens"].map(|path| leaves.whole(path));
    if let ([Some(prompt), Some(response)], Some(leaf)) = (both, leaves.get("gconfig.max_new_tokens")) {
        let length = prompt.saturating_add(response).to_string();
        leaves.say_noted(field, &length, leaf, "longest prompt and response together");
    } else if leaves.reading.value(field).is_none()
        && let Some(leaf) = ["vllm.max_model_len", "sglang.context_length"]
            .iter()
            .filter_map(|path| leaves.get(path))
            .find(|leaf| leaf.whole().is_some() && leaves.whole("gconfig.max_new_tokens") < leaf.whole())
    {
        leaves.say_noted(field, &leaf.value, leaf, "no sample is longer than the rollout engine's context");
    }
}

/// The engine that generates rollouts.
fn rollout(leaves: &mut Leaves<'_>) {
    leaves.state(Field::RlFramework, "areal", Origin::Derived, "AReaL's keys");
    let found = allocation(leaves, "rollout.backend", true);
    let vllm = found.as_ref().is_some_and(|(found, _)| found.engine == "vllm");
    let engine = if vllm { "vllm" } else { "sglang" };
    leaves.state(Field::RolloutEngine, engine, Origin::Derived, "rollout.backend");
    let shared = |leaves: &Leaves<'_>, role: &str| {
        leaves.text(&format!("{role}.scheduling_strategy.type")) == Some("colocation")
    };
    let co_located =
        shared(leaves, "rollout") || leaves.text("actor.scheduling_strategy.target") == Some("rollout");
    match found {
        Some((found, leaf)) if found.degree('p') == Some(1) => {
            let tensor = found.degree('t').unwrap_or(1).to_string();
            leaves.say(Field::RolloutTensorParallelSize, &tensor, leaf);
            if let Some(own) = found.accelerators().filter(|_| !co_located) {
                leaves.say(Field::RolloutGpus, &own.to_string(), leaf);
            }
        }
        Some((_, leaf)) => lack(
            leaves,
            leaf,
            Effect::Memory,
            "a rollout engine with pipeline stages or other parallel sizes",
        ),
        // If it is started separately, its accelerators are not among these.
        None => leaves.state(Field::RolloutGpus, "0", Origin::Derived, "no rollout engine is described"),
    }
    let rules: &[(&str, Field)] = if vllm {
        &[
            ("vllm.gpu_memory_utilization", Field::RolloutMemoryFraction),
            ("vllm.max_num_seqs", Field::RolloutSequences),
        ]
    } else {
        &[
            ("sglang.mem_fraction_static", Field::RolloutMemoryFraction),
            ("sglang.max_running_requests", Field::RolloutSequences),
        ]
    };
    leaves.take_all(rules);
    defaults(leaves, AREAL, &[(Field::RolloutMemoryFraction, "0.9")]);
    leaves.follow(
        if vllm { "vllm.enforce_eager" } else { "sglang.disable_cuda_graph" },
        Field::RolloutCudaGraphs,
        false,
    );
    if co_located || leaves.yes("actor.offload").is_some() {
        leaves.state(
            Field::RolloutSleep,
            "true",
            Origin::Derived,
            "the engine is offloaded while the policy trains",
        );
        if leaves.reading.value(Field::OffloadParam).is_some() {
            stop(leaves, "weights on the host while they are trained and handed over");
        }
        offloads(leaves, [true, true, true], "torch_memory_saver releases everything that the trainer holds");
    }
}

/// Models other than the policy: on its accelerators in separate processes that are offloaded to the host
/// between their turns, or elsewhere.
fn beside(leaves: &mut Leaves<'_>) {
    let zero = |leaf: &&Leaf| leaf.value.parse::<f64>().is_ok_and(|part| part == 0.0);
    let penalised = leaves.get("actor.kl_ctl").is_none_or(|leaf| !zero(&leaf));
    for (role, field, wanted) in [
        ("ref", Field::RlReference, penalised),
        ("critic", Field::RlCritic, true),
        ("teacher", Field::RlReference, true),
    ] {
        let at = |key: &str| format!("{role}{key}");
        let Some(leaf) = leaves.get(&at(".path")).filter(|_| wanted) else {
            leaves.state(field, "none", Origin::Derived, "the text has none that is used");
            continue;
        };
        let moved = [".offload", ".fsdp.offload_params"].iter().any(|key| leaves.yes(&at(key)).is_some());
        let place = match leaves.text(&at(".scheduling_strategy.type")) {
            _ if moved => "host",
            Some("colocation") => "device",
            _ => "elsewhere",
        };
        let other = leaf.value != leaves.text("actor.path").unwrap_or_default();
        if role == "teacher" || other && place != "elsewhere" {
            lack(leaves, leaf, Effect::Memory, "a second model whose shape differs from the policy's");
        }
        if role == "critic" {
            let again = leaves.yes("critic.gradient_checkpointing").is_some();
            leaves.switch(Field::RlCriticRecompute, again, leaf);
            leaves.take(&["critic.mb_spec.max_tokens_per_mb"], Field::RlCriticMicroBatch);
        }
        leaves.state(field, place, Origin::Derived, "scheduling_strategy and offload of its own");
    }
}
