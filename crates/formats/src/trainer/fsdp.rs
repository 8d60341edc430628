//! FSDP as the Trainer's arguments configure it: `--fsdp` and `--fsdp_config` (`transformers/training_args.py`:
//! `_process_fsdp_args`), and the file that the latter names.

use super::dialect::Dialect;
use super::missing_file::{left_to_file, offloads, open_checkpointing};
use crate::leaves::{Leaf, Leaves, Scalars};
use crate::reader::{Claim, Reader, Role};
use crate::releases::numbers;
use crate::{Effect, NotModelled, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;

/// Keys that are checked for the values under which they change nothing ([`units`]), or that change neither what is held nor what
/// is sent: which class a unit is (every trainer here wraps layers), how weights are loaded and saved, prefetching.
/// `mixed_precision_policy` reaches nothing: axolotl declares it (`utils/schemas/fsdp.py`) and sets no variable of accelerate for it
/// (`utils/trainer.py:setup_fsdp_envs`), and the Trainer does not read it (`training_args.py:_process_fsdp_args`).
const IDLE: [&str; 18] = [
    "transformer_layer_cls_to_wrap",
    "auto_wrap_policy",
    "min_num_params",
    "state_dict_type",
    "final_state_dict_type",
    "sync_module_states",
    "cpu_ram_efficient_loading",
    "use_orig_params",
    "backward_prefetch",
    "backward_prefetch_policy",
    "forward_prefetch",
    "limit_all_gathers",
    "cpu_offload_pin_memory",
    "mixed_precision_policy",
    "xla",
    "xla_fsdp_v2",
    "xla_fsdp_settings",
    "xla_fsdp_grad_ckpt",
];

/// Keys that are read.
const READ: [&str; 6] = [
    "version",
    "sharding_strategy",
    "reshard_after_forward",
    "offload_params",
    "cpu_offload",
    "activation_checkpointing",
];

/// Other units than layers. By size an MLP may be one and attention part of the rest
/// (`torch/distributed/fsdp/wrap.py:size_based_auto_wrap_policy`).
pub(crate) const UNITS: &str = "FSDP that gathers other units than layers";
/// `full_shard` alone. Since transformers 5 layers are units by default (`auto_wrap_policy`); before, accelerate took no
/// policy for NO_WRAP, one unit.
const ONE_UNIT: &str = "FSDP without auto_wrap, which transformers 4 gathers as one unit; \"full_shard auto_wrap\" gathers by layers";
/// `_process_fsdp_args` returns before it reads the configuration.
const NOT_ON: &str = "FSDP settings without --fsdp, which the Trainer of transformers 5 passes over";
/// accelerate's word; the Trainer reads `cpu_offload`, and `offload` of the words.
const NOT_OFFLOADED: &str = "offload_params, which the Trainer does not read: it offloads with cpu_offload";

/// The values of `--fsdp`, and the keys of its configuration.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Option<Dialect>) {
    for leaf in leaves.all().iter().filter(|leaf| is_read(&leaf.path)) {
        leaf.used.set(true);
    }
    // An empty list shards nothing, as no value does.
    let is_said =
        |leaf: &&Leaf| !matches!(leaf.value.as_str(), "" | "[]" | "{}") && leaf.flag() != Some(false);
    let words = leaves.all().iter().filter(is_said).find(|leaf| leaf.path == "fsdp");
    let own = matches!(dialect, Some(Dialect::Transformers | Dialect::Trl | Dialect::LlamaFactory));
    // Templates leave the group empty if nothing is sharded, and dumps of the Trainer's arguments write its defaults.
    let stated = |leaf: &&Leaf| {
        let default = leaf.value == "0" || leaf.flag() == Some(false);
        leaf.path.starts_with("fsdp_config")
            && !matches!(leaf.value.as_str(), "" | "[]" | "{}")
            && !(own && default)
    };
    let Some(leaf) = words.or_else(|| leaves.all().iter().find(stated)) else {
        return;
    };
    let said = leaf.value.as_str();
    if said.contains(".json") {
        let second = said.contains("fsdp2");
        leaves.say(Field::DataParallelEngine, if second { "fsdp2" } else { "fsdp1" }, leaf);
        left_to_file(leaves, leaf);
        return;
    }
    if own && words.is_none() {
        lack(leaves, leaf, NOT_ON);
        return;
    }
    let version =
        config(leaves, "version").or_else(|| leaves.get("fsdp_version")).map(|leaf| leaf.value.clone());
    // A strategy under version 1, a switch under 2, which is the default of the releases that have the key.
    let reshards = config(leaves, "reshard_after_forward");
    let switched = reshards.and_then(Leaf::flag);
    // ms-swift's short name; and `--fsdp` as a switch, which only transformers 5 has.
    let new = said == "fsdp2" || switched.is_some() || leaf.path == "fsdp" && leaf.flag() == Some(true);
    let of_release = version.is_none() && !new && own && leaf.path == "fsdp";
    let second =
        version.as_deref() == Some("2") || version.is_none() && new || of_release && is_second(leaves);
    leaves.say(Field::DataParallelEngine, if second { "fsdp2" } else { "fsdp1" }, leaf);
    if of_release {
        let note = if second { SECOND } else { FIRST };
        leaves.say_noted(Field::DataParallelEngine, if second { "fsdp2" } else { "fsdp1" }, leaf, note);
    }
    let strategy = config(leaves, "sharding_strategy")
        .or_else(|| reshards.filter(|leaf| leaf.flag().is_none()))
        .map(|leaf| leaf.value.to_ascii_lowercase())
        .unwrap_or_default();
    let of_two = said.contains("zero2") || strategy.ends_with("zero2");
    // What the configuration says of resharding counts before the words.
    let keeps = match switched {
        Some(frees) if second => !frees,
        _ => said.contains("shard_grad_op") || strategy == "shard_grad_op" || (of_two && !second),
    };
    let stage = match () {
        () if said.contains("no_shard") || strategy == "no_shard" => "0",
        () if keeps => "2",
        () => "3",
    };
    leaves.say(Field::ZeroStage, stage, leaf);
    let hybrid = said.contains("hybrid") || strategy.trim_start_matches('_').starts_with("hybrid");
    if hybrid && !second {
        leaves.switch(Field::ShardWithinNodes, true, leaf);
    } else if hybrid {
        lack(leaves, leaf, "sharding within nodes, replicated across nodes (HSDP)");
    }
    let is_on = |leaves: &Leaves<'_>, key: &str| config(leaves, key).and_then(Leaf::flag) == Some(true);
    let named = is_on(leaves, "offload_params");
    if named && own && !said.contains("offload") && !is_on(leaves, "cpu_offload") {
        lack(leaves, leaf, NOT_OFFLOADED);
    }
    if said.contains("offload") || is_on(leaves, "cpu_offload") || named {
        // CPUOffload: shards of weights, gradients and optimizer states live on the host, and
        // one layer at a time is gathered.
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    if config(leaves, "activation_checkpointing").and_then(Leaf::flag) == Some(true) {
        leaves.switch(Field::GradientCheckpointing, true, leaf);
    }
    units(leaves, own, leaf);
    file(leaves);
}

/// Whether `path` is an option of FSDP that is read here or changes nothing.
fn is_read(path: &str) -> bool {
    let Some(key) = path.strip_prefix("fsdp_config.") else {
        // Also written beside the group: by axolotl, by llama-cookbook (whose reader takes them), and by transformers 4.
        const FLAT: [&str; 6] = [
            "fsdp",
            "fsdp_config",
            "fsdp_min_num_params",
            "fsdp_final_state_dict_type",
            "fsdp_activation_checkpointing",
            "fsdp_cpu_offload",
        ];
        return FLAT.contains(&path) || path.starts_with("fsdp.");
    };
    let key = key.strip_prefix("fsdp_").unwrap_or(key);
    // A list has one entry below its key for each element.
    let is_of =
        |known: &&str| key.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    READ.iter().any(is_of) || IDLE.iter().any(is_of)
}

/// The version of `--fsdp "full_shard auto_wrap"` where `fsdp_config` states none: `fsdp_config.get("version", 2)` since
/// transformers 5.10 of June 2026, 1 in 5.9 and before (`training_args.py`). The words are mostly of earlier releases: from 5.20 on
/// they are gone.
const FIRST: &str =
    "version 1 without a version in fsdp_config, until transformers 5.9; 2 since 5.10 (June 2026)";
const SECOND: &str = "version 2 without a version in fsdp_config, since transformers 5.10";

fn is_second(leaves: &Leaves<'_>) -> bool {
    leaves.text("transformers_release").and_then(numbers).is_some_and(|release| release >= [5, 10])
}

/// A key of the configuration, with or without the prefix that the Trainer strips.
fn config<'t>(leaves: &Leaves<'t>, key: &str) -> Option<&'t Leaf> {
    [format!("fsdp_config.{key}"), format!("fsdp_config.fsdp_{key}")].iter().find_map(|path| leaves.get(path))
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Whether an `auto_wrap_policy` makes other units than layers; accelerate's files have it too.
pub(crate) fn wraps_otherwise(policy: &Leaf) -> bool {
    matches!(policy.value.to_ascii_uppercase().as_str(), "NO_WRAP" | "SIZE_BASED_WRAP")
}

/// Stops units other than layers, and XLA's own sharding.
fn units(leaves: &mut Leaves<'_>, own: bool, said: &Leaf) {
    if let Some(leaf) = config(leaves, "xla").filter(|leaf| leaf.flag() == Some(true)) {
        lack(leaves, leaf, "XLA's own FSDP");
    }
    if let Some(leaf) = config(leaves, "limit_all_gathers").filter(|leaf| leaf.flag() == Some(false)) {
        lack(leaves, leaf, "FSDP without its rate limiter, which holds gathered units to two");
    }
    let policy = config(leaves, "auto_wrap_policy");
    let by_size = config(leaves, "min_num_params")
        .or_else(|| leaves.get("fsdp_min_num_params"))
        .filter(|leaf| leaf.whole().is_some_and(|count| count > 0));
    let other = policy.filter(|leaf| wraps_otherwise(leaf)).or(by_size);
    if let Some(leaf) = other {
        lack(leaves, leaf, UNITS);
    }
    // Axolotl, ms-swift and others pass a policy of their own.
    let shards = ["full_shard", "shard_grad_op", "hybrid_shard"].iter().any(|word| said.value.contains(word));
    if own && policy.is_none() && said.path == "fsdp" && shards && !said.value.contains("auto_wrap") {
        lack(leaves, said, ONE_UNIT);
    }
}

/// A configuration that is only named: whether it checkpoints layers is asked, and what its name says of offloading counts.
fn file(leaves: &mut Leaves<'_>) {
    let named = leaves.get("fsdp_config").filter(|leaf| leaf.value.contains(".json")).cloned();
    let Some(leaf) = named else { return };
    let name = leaf.value.rsplit('/').next().unwrap_or(&leaf.value).to_owned();
    if leaves.reading.value(Field::GradientCheckpointing) != Some("true") {
        let (found, question) = open_checkpointing(&name, &leaf.path, leaf.span);
        leaves.reading.take(found);
        leaves.reading.questions.push(question);
    }
    offloads(&mut leaves.reading, &leaf.value, &leaf.path, leaf.span);
}

/// The file that `--fsdp_config` names. Its settings are read with the command that names it, in the place of its name.
#[derive(Debug)]
pub(crate) struct FsdpFile;

/// What that file is called; alone it trains nothing.
pub const FSDP_SETTINGS: &str = "FSDP settings for the transformers Trainer (--fsdp_config)";

impl Reader for FsdpFile {
    fn name(&self) -> &'static str {
        FSDP_SETTINGS
    }

    fn about(&self) -> &'static str {
        "activation checkpointing, offloading, what is resharded"
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    /// Every key is one of these settings, and one of them is a sign by itself.
    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: [&str; 7] = [
            "transformer_layer_cls_to_wrap",
            "reshard_after_forward",
            "cpu_ram_efficient_loading",
            "backward_prefetch",
            "activation_checkpointing",
            "auto_wrap_policy",
            "min_num_params",
        ];
        let entries = tree.documents.first()?.entries();
        let plain = |key: &str| key.strip_prefix("fsdp_").unwrap_or(key).to_owned();
        let all = entries.iter().all(|entry| is_read(&format!("fsdp_config.{}", entry.key)));
        let sign = entries.iter().any(|entry| SIGNS.contains(&plain(&entry.key).as_str()));
        (all && sign).then_some(Claim::Certain)
    }

    /// What it states itself, for a settings file or a program that names it.
    fn read(&self, root: &Node) -> Reading {
        let within = Scalars::from_node(root);
        let named = |leaf: &Leaf| Leaf { path: format!("fsdp_config.{}", leaf.path), ..leaf.clone() };
        let scalars = Scalars::from_leaves(within.all().iter().map(named).collect());
        let mut leaves = Leaves::over(&scalars);
        let Some(first) = scalars.all().first() else { return Reading::default() };
        if let Some(leaf) = config(&leaves, "activation_checkpointing") {
            leaves.switch(Field::GradientCheckpointing, leaf.flag() == Some(true), leaf);
        }
        if let Some(leaf) = config(&leaves, "cpu_offload").filter(|leaf| leaf.flag() == Some(true)) {
            leaves.switch(Field::OffloadParam, true, leaf);
            leaves.switch(Field::OffloadOptimizer, true, leaf);
        }
        if let Some(leaf) = config(&leaves, "reshard_after_forward") {
            let word = leaf.value.to_ascii_lowercase();
            let stage = match (leaf.flag(), word.as_str()) {
                (Some(false), _) | (None, "shard_grad_op") => "2",
                (None, "no_shard") => "0",
                _ => "3",
            };
            leaves.say(Field::ZeroStage, stage, leaf);
            if word.contains("hybrid") {
                lack(&mut leaves, leaf, "sharding within nodes, replicated across nodes (HSDP)");
            }
        }
        units(&mut leaves, false, first);
        std::mem::take(&mut leaves.reading)
    }
}
