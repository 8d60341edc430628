//! What scheduler directives say about the world.

use super::command_line::{CommandLine, Launcher};
use super::said::{Said, World, named, offer, offer_number};
use shardscope_bash::directives::{count, least, resource, slurms};
use shardscope_bash::{Directive, Script, Value, Word};

/// Takes nodes and accelerators per node from scheduler directives and from the options of `sbatch` itself. A
/// scheduler's number also replaces one that the script asks the running job for.
pub(super) fn lines(world: &mut World, script: &Script, line: &CommandLine, direct: bool) {
    let mut scheduled = World::default();
    slurm(&mut scheduled, script, direct && line.has(Launcher::Srun));
    others(&mut scheduled, script);
    for (slot, said) in [
        (&mut world.nodes, scheduled.nodes),
        (&mut world.gpus_per_node, scheduled.gpus_per_node),
        (&mut world.world_size, scheduled.world_size),
    ] {
        let replaces = match (&slot, &said) {
            (None, _) => true,
            (Some(Said::Open(missing)), Some(Said::Known(_))) => missing.hole.is_some(),
            _ => false,
        };
        if replaces && said.is_some() {
            *slot = said;
        }
    }
}

fn said(directive: &Directive) -> (Value, Word) {
    let name = format!("#{} {}", directive.scheduler, directive.key);
    (directive.value.clone(), named(&name, directive.span))
}

fn slurm(world: &mut World, script: &Script, tasks_are_ranks: bool) {
    let get = |keys: &[&str]| slurms(&script.directives, keys).map(said);
    let nodes = get(&["--nodes", "-N"]).map(|(value, by)| (least(&value), by));
    offer(&mut world.nodes, nodes, NODES);
    let gpus = get(&["--gpus-per-node"])
        .or_else(|| get(&["--gres"]).filter(|(value, _)| value.text().contains("gpu")));
    let per_node = get(&["--ntasks-per-node"]);
    if tasks_are_ranks {
        offer(&mut world.gpus_per_node, per_node.clone(), "the scheduler's tasks per node, one for each GPU");
        if per_node.is_none() {
            offer(&mut world.world_size, get(&["--ntasks", "-n"]), "the scheduler's tasks, one for each GPU");
        }
    }
    offer(&mut world.gpus_per_node, gpus.map(|(value, by)| (count(&value), by)), GPUS);
    let total = get(&["--gpus", "-G"]).map(|(value, by)| (count(&value), by));
    if world.gpus_per_node.is_none() {
        offer(&mut world.world_size, total, "the scheduler's GPUs");
    }
}

/// PBS, SGE and others: `-l select=4:ngpus=8`, `-l rt_F=2`, `-L node=4`.
fn others(world: &mut World, script: &Script) {
    for directive in &script.directives {
        if !matches!(directive.key.as_str(), "-l" | "-L") {
            continue;
        }
        let (value, by) = said(directive);
        for (name, how, gpus) in RESOURCES {
            let Some(count) = resource(&value, name) else { continue };
            let slot = if how == NODES { &mut world.nodes } else { &mut world.gpus_per_node };
            offer(slot, Some((count, by.clone())), how);
            offer_number(&mut world.gpus_per_node, gpus, &value, &by, "the GPUs of that kind of node");
        }
    }
}

const NODES: &str = "the scheduler's nodes";
const GPUS: &str = "the scheduler's GPUs per node";

/// Resource names, what their number counts, and the GPUs of a node of that kind. ABCI's full nodes: 4 V100 (rt_F), 8
/// A100 (rt_AF), 8 H200 (rt_HF); TSUBAME4's node_f: 4 H100 (user guides, 2024).
const RESOURCES: [(&str, &str, u64); 9] = [
    ("select", NODES, 0),
    ("nodes", NODES, 0),
    ("node", NODES, 0),
    ("ngpus", GPUS, 0),
    ("gpus", GPUS, 0),
    ("node_f", NODES, 4),
    ("rt_F", NODES, 4),
    ("rt_AF", NODES, 8),
    ("rt_HF", NODES, 8),
];
