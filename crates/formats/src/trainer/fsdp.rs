//! FSDP as the Trainer's arguments configure it: `--fsdp` and `--fsdp_config` (`transformers/training_args.py`:
//! `_process_fsdp_args`), and the file that the latter names.

use super::dialect::Dialect;
use super::missing_file::{left_to_file, offloads, open_checkpointing};
use crate::leaves::{Leaf, Leaves, Scalars};
use crate::reader::{Claim, Reader, Role};
use crate::signs;
use crate::{Effect, NotModelled, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software};

/// Keys that change neither what is held nor what is sent: which class a unit is (every trainer here wraps layers), how
/// weights are loaded and saved, and prefetching, which FSDP's rate limiter holds to the units that are counted anyway.
const IDLE: [&str; 17] = [
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
    "xla",
    "xla_fsdp_v2",
    "xla_fsdp_settings",
    "xla_fsdp_grad_ckpt",
];

/// Other units than layers. By size an MLP may be one and attention part of the rest
/// (`torch/distributed/fsdp/wrap.py:size_based_auto_wrap_policy`).
const UNITS: &str = "FSDP that gathers other units than layers";
/// `full_shard` alone. Since transformers 5 layers are units by default (`auto_wrap_policy`); before, accelerate took no
/// policy for NO_WRAP, one unit.
const ONE_UNIT: &str = "FSDP without auto_wrap, which transformers 4 gathers as one unit and 5 by layers";

/// The values of `--fsdp`, and the keys of its configuration.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Option<Dialect>) {
    for leaf in leaves.all().iter().filter(|leaf| is_read(&leaf.path)) {
        leaf.used.set(true);
    }
    // An empty list shards nothing, as no value does.
    let is_said =
        |leaf: &&Leaf| !matches!(leaf.value.as_str(), "" | "[]" | "{}") && leaf.flag() != Some(false);
    let words = leaves.all().iter().filter(is_said).find(|leaf| leaf.path == "fsdp");
    // Templates leave the group empty if nothing is sharded.
    let stated = |leaf: &&Leaf| {
        leaf.path.starts_with("fsdp_config") && !matches!(leaf.value.as_str(), "" | "[]" | "{}")
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
    let version =
        config(leaves, "version").or_else(|| leaves.get("fsdp_version")).map(|leaf| leaf.value.clone());
    // ms-swift's short name; and `--fsdp` as a switch, which only transformers 5 has, whose version is 2 by default.
    let second = said == "fsdp2"
        || version.as_deref() == Some("2")
        || version.is_none() && leaf.path == "fsdp" && leaf.flag() == Some(true);
    leaves.say(Field::DataParallelEngine, if second { "fsdp2" } else { "fsdp1" }, leaf);
    let strategy = config(leaves, "sharding_strategy").map(|leaf| leaf.value.clone()).unwrap_or_default();
    let reshards = config(leaves, "reshard_after_forward").and_then(Leaf::flag);
    let of_two = said.contains("zero2") || strategy.ends_with("ZERO2");
    let keeps = said.contains("shard_grad_op")
        || strategy == "SHARD_GRAD_OP"
        || (of_two && !second)
        || (second && reshards == Some(false));
    let stage = match () {
        () if said.contains("no_shard") || strategy == "NO_SHARD" => "0",
        () if keeps => "2",
        () => "3",
    };
    leaves.say(Field::ZeroStage, stage, leaf);
    let hybrid = said.contains("hybrid") || strategy.trim_start_matches('_').starts_with("HYBRID");
    if hybrid && !second {
        leaves.switch(Field::ShardWithinNodes, true, leaf);
    } else if hybrid {
        lack(leaves, leaf, "sharding within nodes, replicated across nodes (HSDP)");
    }
    let offloads = ["offload_params", "cpu_offload"]
        .iter()
        .any(|key| config(leaves, key).and_then(Leaf::flag) == Some(true));
    if said.contains("offload") || offloads {
        // CPUOffload: shards of weights, gradients and optimizer states live on the host, and
        // one layer at a time is gathered.
        leaves.switch(Field::OffloadParam, true, leaf);
        leaves.switch(Field::OffloadOptimizer, true, leaf);
    }
    if config(leaves, "activation_checkpointing").and_then(Leaf::flag) == Some(true) {
        leaves.switch(Field::GradientCheckpointing, true, leaf);
    }
    units(leaves, dialect, leaf);
    file(leaves);
}

/// Whether `path` is an option of FSDP that is read here or changes nothing.
fn is_read(path: &str) -> bool {
    const READ: [&str; 8] = [
        "version",
        "sharding_strategy",
        "reshard_after_forward",
        "offload_params",
        "cpu_offload",
        "activation_checkpointing",
        "mixed_precision_policy",
        "enabled",
    ];
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

/// A key of the configuration, with or without the prefix that the Trainer strips.
fn config<'t>(leaves: &Leaves<'t>, key: &str) -> Option<&'t Leaf> {
    [format!("fsdp_config.{key}"), format!("fsdp_config.fsdp_{key}")].iter().find_map(|path| leaves.get(path))
}

fn lack(leaves: &mut Leaves<'_>, leaf: &Leaf, what: &str) {
    let item = NotModelled::new(&leaf.path, &leaf.value, Effect::Memory, what).at_some(leaf.span);
    leaves.reading.not_modelled.push(item);
}

/// Stops units other than layers, and XLA's own sharding.
fn units(leaves: &mut Leaves<'_>, dialect: Option<Dialect>, said: &Leaf) {
    if let Some(leaf) = config(leaves, "xla").filter(|leaf| leaf.flag() == Some(true)) {
        lack(leaves, leaf, "XLA's own FSDP");
    }
    if let Some(leaf) = config(leaves, "limit_all_gathers").filter(|leaf| leaf.flag() == Some(false)) {
        lack(leaves, leaf, "FSDP without its rate limiter, which holds gathered units to two");
    }
    let policy = config(leaves, "auto_wrap_policy");
    let others = ["NO_WRAP", "SIZE_BASED_WRAP"];
    let by_size = config(leaves, "min_num_params")
        .or_else(|| leaves.get("fsdp_min_num_params"))
        .filter(|leaf| leaf.whole().is_some_and(|count| count > 0));
    let other = policy.filter(|leaf| others.contains(&leaf.value.to_ascii_uppercase().as_str())).or(by_size);
    if let Some(leaf) = other {
        lack(leaves, leaf, UNITS);
    }
    // Axolotl, ms-swift and others pass a policy of their own.
    let own = matches!(dialect, Some(Dialect::Transformers | Dialect::Trl | Dialect::LlamaFactory));
    let shards = ["full_shard", "shard_grad_op", "hybrid_shard"].iter().any(|word| said.value.contains(word));
    if own && policy.is_none() && said.path == "fsdp" && shards && !said.value.contains("auto_wrap") {
        lack(leaves, said, ONE_UNIT);
    }
}

/// A configuration that is only named: whether it checkpoints layers is asked, and what its name says of offloading.
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

/// The file that `--fsdp_config` names, beside the command.
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

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: &[&str] = &["transformer_layer_cls_to_wrap", "fsdp_transformer_layer_cls_to_wrap"];
        signs::any(tree, SIGNS)
    }

    fn read(&self, root: &Node) -> Reading {
        let within = Scalars::from_node(root);
        let named = |leaf: &Leaf| Leaf { path: format!("fsdp_config.{}", leaf.path), ..leaf.clone() };
        let scalars = Scalars::from_leaves(within.all().iter().map(named).collect());
        let mut leaves = Leaves::over(&scalars);
        read(&mut leaves, Some(Dialect::Transformers));
        // What the command leaves to this file is then settled.
        let settled = leaves.reading.value(Field::GradientCheckpointing).is_some();
        if let Some(first) = scalars.all().first().filter(|_| !settled) {
            let note = "this file does not turn activation_checkpointing on";
            leaves.say_noted(Field::GradientCheckpointing, "false", first, note);
        }
        leaves.reading.software = Some((Software::HfTransformers, FSDP_SETTINGS.to_owned()));
        leaves.finish(FSDP_SETTINGS)
    }
}
