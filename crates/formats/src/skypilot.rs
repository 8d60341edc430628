//! SkyPilot tasks: the number of machines and their accelerators, variables, and the script under `run`.
//!
//! Keys: `docs/source/reference/yaml-spec.rst`; variables that SkyPilot sets:
//! `docs/source/running-jobs/environment-variables.rst`.

use super::reader::{Claim, Reader, Role};
use super::signs;
use super::workload::{Workload, accelerator, blank};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

/// A SkyPilot task.
#[derive(Debug)]
pub(super) struct SkyPilot;

impl Reader for SkyPilot {
    fn name(&self) -> &'static str {
        "a SkyPilot task"
    }

    fn about(&self) -> &'static str {
        "the task's nodes and accelerators, and its `run`, which is then read as a script"
    }

    fn role(&self) -> Role {
        Role::Job
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        signs::all(tree, &["resources", "run"])
    }

    fn workload(&self, tree: &Tree, text: &str, base: u32) -> Option<Workload> {
        tree.documents.first().map(|task| read(task, text, base))
    }
}

fn read(task: &Node, text: &str, base: u32) -> Workload {
    let mut work = Workload::default();
    let stated = task.get("num_nodes").filter(|node| !node.is_null());
    // One node by default.
    let nodes = stated.map_or(Some(1), Node::whole);
    if let Some(nodes) = nodes {
        work.count(Field::NumNodes, nodes, "num_nodes", Some(stated.unwrap_or(task).span));
    }
    let accelerators = task.at("resources.accelerators");
    let per_node = accelerators.and_then(counted);
    if let (Some(count), Some(node)) = (per_node, accelerators) {
        work.count(Field::GpusPerNode, count, "resources.accelerators", Some(node.span));
    }
    if let Some((name, node)) = accelerators.and_then(|node| Some((named(node)?, node))) {
        accelerator(&mut work.reading, name, "resources.accelerators", Some(node.span));
    }
    for group in ["envs", "secrets"] {
        for entry in task.get(group).map_or(&[][..], Node::entries) {
            if let Some(value) = entry.node.text() {
                work.variables.push((entry.key.clone(), value.to_owned()));
            }
        }
    }
    let own = [
        ("SKYPILOT_NUM_NODES", nodes),
        ("SKYPILOT_NUM_GPUS_PER_NODE", per_node),
        ("SKYPILOT_NODE_RANK", Some(0)),
    ];
    for (name, value) in own {
        if let Some(value) = value {
            work.variables.push((name.to_owned(), value.to_string()));
        }
    }
    let run = task.get("run").filter(|node| !node.is_null());
    if run.is_none() {
        let message = "a SkyPilot task without `run`, which starts no training";
        let said =
            Diagnostic::error(Code::NoTraining, message).hint("paste the task or the script that trains");
        work.reading.diagnostics.push(said);
    }
    work.script = blank(text, run.map(|node| node.span).as_slice(), base);
    work
}

/// The name of the accelerators, if there is only one to choose from.
fn named(node: &Node) -> Option<&str> {
    match (node.items(), node.entries()) {
        ([one], _) => named(one),
        ([], [one]) => Some(&one.key),
        ([], []) => node.word()?.split(':').next(),
        _ => None,
    }
}

/// Accelerators per node: `H100:8`, `{H100: 8}`, `H100` for one, or the first of a list or set of choices.
fn counted(node: &Node) -> Option<u64> {
    if let Some(first) = node.items().first() {
        return counted(first);
    }
    if let Some(entry) = node.entries().first() {
        return if entry.node.is_null() { of_name(&entry.key) } else { entry.node.whole() };
    }
    of_name(node.word()?)
}

fn of_name(name: &str) -> Option<u64> {
    // The names of TPUs include their number.
    if name.starts_with("tpu") {
        return None;
    }
    name.split_once(':').map_or(Some(1), |(_, count)| count.trim().parse().ok())
}
