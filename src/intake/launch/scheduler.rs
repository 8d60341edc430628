//! What the lines addressed to a scheduler say of the world.

use super::line::{Launcher, Line};
use super::world::{Said, World, named, offer, offer_number};
use crate::intake::shell::{Directive, Script, Value, Word};

/// Takes nodes and accelerators per node from scheduler lines and from the options of `sbatch` itself. A scheduler's
/// number also stands in for one that the script asks the running job for.
pub(super) fn lines(world: &mut World, script: &Script, line: &Line, direct: bool) {
    let mut told = World::default();
    slurm(&mut told, script, direct && line.has(Launcher::Srun));
    others(&mut told, script);
    for (slot, said) in [
        (&mut world.nodes, told.nodes),
        (&mut world.gpus_per_node, told.gpus_per_node),
        (&mut world.world_size, told.world_size),
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

fn last<'s>(script: &'s Script, scheduler: &str, keys: &[&str]) -> Option<&'s Directive> {
    let mut found = script
        .directives
        .iter()
        .rev()
        .filter(|directive| directive.scheduler == scheduler && !directive.value.is_empty());
    found.find(|directive| keys.contains(&directive.key.as_str()))
}

fn said(directive: &Directive) -> (Value, Word) {
    (directive.value.clone(), named(&format!("#{} {}", directive.scheduler, directive.key), directive.span))
}

fn slurm(world: &mut World, script: &Script, tasks_are_ranks: bool) {
    let get = |keys: &[&str]| last(script, "SBATCH", keys).map(said);
    let nodes = get(&["--nodes", "-N"]).map(|(value, by)| (least(&value), by));
    offer(&mut world.nodes, nodes, "the scheduler's nodes");
    let gpus = get(&["--gpus-per-node"])
        .or_else(|| get(&["--gres"]).filter(|(value, _)| value.text().contains("gpu")));
    let per_node = get(&["--ntasks-per-node"]);
    if tasks_are_ranks {
        offer(&mut world.gpus_per_node, per_node.clone(), "the scheduler's tasks per node, one for each GPU");
        if per_node.is_none() {
            offer(&mut world.world_size, get(&["--ntasks", "-n"]), "the scheduler's tasks, one for each GPU");
        }
    }
    offer(
        &mut world.gpus_per_node,
        gpus.map(|(value, by)| (count(&value), by)),
        "the scheduler's GPUs per node",
    );
    let total = get(&["--gpus", "-G"]).map(|(value, by)| (count(&value), by));
    if world.gpus_per_node.is_none() {
        offer(&mut world.world_size, total, "the scheduler's GPUs");
    }
}

/// PBS, SGE and the like: `-l select=4:ngpus=8`, `-l rt_F=2`, `-L node=4`.
fn others(world: &mut World, script: &Script) {
    for directive in
        script.directives.iter().filter(|directive| matches!(directive.key.as_str(), "-l" | "-L"))
    {
        let (value, by) = said(directive);
        let part = |name: &str| {
            let text = value.text();
            let at = text
                .match_indices(name)
                .map(|(at, _)| at)
                .find(|at| *at == 0 || matches!(text.as_bytes().get(at - 1), Some(b':' | b',')))?
                + name.len();
            let digits = text.get(at..)?.bytes().take_while(u8::is_ascii_digit).count();
            (digits > 0).then(|| value.part(at, at + digits))
        };
        for name in ["select=", "nodes=", "node=", "node_f=", "rt_F=", "rt_AF=", "rt_HF="] {
            offer(&mut world.nodes, part(name).map(|value| (value, by.clone())), "the scheduler's nodes");
        }
        for name in ["ngpus=", "gpus="] {
            offer(
                &mut world.gpus_per_node,
                part(name).map(|value| (value, by.clone())),
                "the scheduler's GPUs per node",
            );
        }
        // ABCI's full nodes: 4 V100 (rt_F), 8 A100 (rt_AF), 8 H200 (rt_HF); TSUBAME4's node_f: 4 H100 (user guides, 2024).
        for (name, gpus) in [("rt_F=", 4), ("rt_AF=", 8), ("rt_HF=", 8), ("node_f=", 4)] {
            if part(name).is_some() {
                offer_number(&mut world.gpus_per_node, gpus, &value, &by, "the GPUs of that kind of node");
            }
        }
    }
}

/// The lower end of `2-4`.
fn least(value: &Value) -> Value {
    let digits = value.text().bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { value.clone() } else { value.part(0, digits) }
}

/// The count in `8`, `gpu:8`, `gpu:a100:8`.
fn count(value: &Value) -> Value {
    let end = value.text().find([',', '(']).unwrap_or(value.text().len());
    let value = value.part(0, end);
    let start = value.text().rfind(':').map_or(0, |at| at + 1);
    value.part(start, value.text().len())
}
