//! How many nodes, with how many accelerators each: every place that says so, in the order in which they are believed.

use super::choose::Chosen;
use super::line::{Launcher, Line, option};
use super::scheduler;
use crate::intake::shell::{HoleId, Script, Value, Word};
use crate::text::Span;

/// A number with the place that says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The number.
    pub value: u64,
    /// Where it is written.
    pub span: Option<Span>,
    /// The option, line or variable that says it.
    pub by: String,
    /// How it was told, in words.
    pub how: String,
    /// Whether it came from outside the text.
    pub given: bool,
}

/// A number that a place should say and leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The unknown it hangs on; none when what stands there is no number.
    pub hole: Option<HoleId>,
    /// Where it is left open.
    pub span: Option<Span>,
    /// The option, line or variable that leaves it open.
    pub by: String,
}

/// One number of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It is known.
    Known(Fact),
    /// It is left open.
    Open(Missing),
}

/// The machines a training runs on, as far as its launch says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Nodes.
    pub nodes: Option<Said>,
    /// Accelerators per node.
    pub gpus_per_node: Option<Said>,
    /// Accelerators in all.
    pub world_size: Option<Said>,
}

impl World {
    /// Finds the world of a launch.
    pub fn find(script: &Script, chosen: &Chosen, line: &Line) -> Self {
        let mut world = World::default();
        world.ray(line);
        world.torch(line);
        world.mpi(script, line);
        world.deepspeed(script, line);
        let direct = !line.has(Launcher::Torch) && !line.has(Launcher::DeepSpeed) && !line.has(Launcher::Ray);
        if direct {
            world.srun(line);
        }
        scheduler::lines(&mut world, script, line, direct);
        world.accelerate(line);
        world.environment(chosen);
        world.variables(script);
        world.defaults(script, line, chosen);
        world
    }

    /// What Ray's training actors take.
    fn ray(&mut self, line: &Line) {
        let argument = |name| option(&line.arguments, &[name]);
        let nodes = argument("--actor-num-nodes");
        if line.has(Launcher::Ray) || nodes.is_some() {
            offer(&mut self.nodes, nodes, "Ray's training actors");
            offer(&mut self.gpus_per_node, argument("--actor-num-gpus-per-node"), "Ray's training actors");
        }
    }

    fn torch(&mut self, line: &Line) {
        let launcher = if line.has(Launcher::Swift) { Launcher::Swift } else { Launcher::Torch };
        let nodes = line.option(launcher, &["--nnodes", "--nnode"]).map(|(value, by)| {
            // torchrun takes a range: least:most.
            let first = value.text().find(':').unwrap_or(value.text().len());
            (value.part(0, first), by)
        });
        offer(&mut self.nodes, nodes, "the launcher's nodes");
        offer(
            &mut self.gpus_per_node,
            line.option(launcher, &["--nproc-per-node"]),
            "the launcher's processes per node",
        );
    }

    fn mpi(&mut self, script: &Script, line: &Line) {
        for launcher in [Launcher::Mpi, Launcher::Aprun] {
            let per_node: &[&str] = if launcher == Launcher::Aprun {
                &["-N"]
            } else {
                &["-npernode", "--npernode", "-ppn", "--ppn", "-N", "--ntasks-per-node"]
            };
            let total = line.option(launcher, &["-np", "--np", "-n", "-c"]);
            offer(&mut self.world_size, total, "the processes that MPI starts");
            offer(&mut self.gpus_per_node, line.option(launcher, per_node), "MPI's processes per node");
        }
        if let Some((value, by)) = line.option(Launcher::Mpi, &["--map-by", "-map-by"])
            && let Some(rest) = value.text().strip_prefix("ppr:")
        {
            let count = value.part(4, 4 + rest.find(':').unwrap_or(rest.len()));
            offer(&mut self.gpus_per_node, Some((count, by)), "MPI's processes per node");
        }
        self.host_file(
            script,
            line.option(Launcher::Mpi, &["--hostfile", "-hostfile", "--machinefile", "-machinefile"]),
        );
    }

    fn deepspeed(&mut self, script: &Script, line: &Line) {
        let launcher = Launcher::DeepSpeed;
        offer(&mut self.nodes, line.option(launcher, &["--num-nodes"]), "DeepSpeed's nodes");
        offer(&mut self.gpus_per_node, line.option(launcher, &["--num-gpus"]), "DeepSpeed's GPUs per node");
        self.host_file(script, line.option(launcher, &["--hostfile", "-H"]));
        // --include localhost:0,1,2,3
        if let Some((value, by)) = line.option(launcher, &["--include", "-i"])
            && let Some(text) = value.known()
            && let Some((_, devices)) = text.split_once(':')
            && !text.contains('@')
        {
            let how = "the devices that DeepSpeed includes";
            offer_number(&mut self.gpus_per_node, devices.split(',').count() as u64, &value, &by, how);
            offer_number(&mut self.nodes, 1, &value, &by, how);
        }
    }

    /// Nodes and slots of a host file that the script itself writes.
    fn host_file(&mut self, script: &Script, named: Option<(Value, Word)>) {
        let Some((name, by)) = named else { return };
        let Some(file) = script.files.iter().find(|file| file.name.text() == name.text()) else { return };
        let Some(content) = file.content.known() else { return };
        let lines: Vec<&str> = content
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        offer_number(&mut self.nodes, lines.len() as u64, &file.content, &by, "the lines of the host file");
        let slots = |line: &&str| {
            line.split_once("slots=")
                .and_then(|(_, slots)| slots.split_whitespace().next()?.parse::<u64>().ok())
        };
        if let Some(first) = lines.first().and_then(slots)
            && lines.iter().all(|line| slots(line) == Some(first))
        {
            offer_number(&mut self.gpus_per_node, first, &file.content, &by, "the slots of the host file");
        }
    }

    fn srun(&mut self, line: &Line) {
        let launcher = Launcher::Srun;
        offer(&mut self.nodes, line.option(launcher, &["--nodes", "-N"]), "srun's nodes");
        offer(
            &mut self.gpus_per_node,
            line.option(launcher, &["--ntasks-per-node"]),
            "srun's tasks per node",
        );
        if line.option(launcher, &["--ntasks", "-n"]).is_some() {
            offer(&mut self.world_size, line.option(launcher, &["--ntasks", "-n"]), "srun's tasks");
        }
    }

    fn accelerate(&mut self, line: &Line) {
        offer(
            &mut self.nodes,
            line.option(Launcher::Accelerate, &["--num-machines"]),
            "accelerate's machines",
        );
        offer(
            &mut self.world_size,
            line.option(Launcher::Accelerate, &["--num-processes"]),
            "accelerate's processes",
        );
    }

    /// `NPROC_PER_NODE=8 command`
    fn environment(&mut self, chosen: &Chosen) {
        for (name, word) in &chosen.environment {
            let value = Some((word.value.clone(), named(name, word.span)));
            match name.as_str() {
                "NPROC_PER_NODE" => offer(&mut self.gpus_per_node, value, "the command's environment"),
                "NNODES" => offer(&mut self.nodes, value, "the command's environment"),
                _ => {}
            }
        }
    }

    /// Variables by the names people use.
    fn variables(&mut self, script: &Script) {
        for (slot, names) in [(&mut self.gpus_per_node, &PER_NODE[..]), (&mut self.nodes, &NODES[..])] {
            if let Some((value, by)) = variable(script, names) {
                offer(slot, Some((value, by)), "the script's variable");
            }
        }
        let settled =
            matches!((&self.nodes, &self.gpus_per_node), (Some(Said::Known(_)), Some(Said::Known(_))));
        if !settled && let Some(found) = variable(script, &TOTAL) {
            offer(&mut self.world_size, Some(found), "the script's variable for all GPUs");
        }
    }

    /// What launchers do when nothing is said.
    fn defaults(&mut self, script: &Script, line: &Line, chosen: &Chosen) {
        if chosen.fragment || self.world_size.is_some() {
            return;
        }
        let by = named("", chosen.span.unwrap_or_default());
        let nothing = Value::default();
        if line.has(Launcher::DeepSpeed)
            && self.gpus_per_node.is_some()
            && line.option(Launcher::DeepSpeed, &["--hostfile", "-H"]).is_none()
        {
            offer_number(
                &mut self.nodes,
                1,
                &nothing,
                &by,
                "DeepSpeed stays on its node when no host file and no number of nodes is named",
            );
        }
        let torch = line.has(Launcher::Torch) || line.has(Launcher::Swift);
        if torch && !line.is_open(Launcher::Torch) {
            offer_number(
                &mut self.nodes,
                1,
                &nothing,
                &by,
                "torchrun stays on its node unless told otherwise",
            );
            if line.has(Launcher::Torch) {
                offer_number(
                    &mut self.gpus_per_node,
                    1,
                    &nothing,
                    &by,
                    "torchrun starts one process per node unless told otherwise",
                );
            }
        }
        let alone = line.launcher() == Some(Launcher::Python)
            && chosen.around.is_empty()
            && script.directives.is_empty();
        if alone && self.nodes.is_none() && self.gpus_per_node.is_none() {
            offer_number(&mut self.nodes, 1, &nothing, &by, "python alone starts one process");
            offer_number(&mut self.gpus_per_node, 1, &nothing, &by, "python alone starts one process");
        }
    }
}

/// Names of variables, without underscores and in capitals.
const PER_NODE: [&str; 18] = [
    "GPUSPERNODE",
    "GPUPERNODE",
    "NPROCPERNODE",
    "NUMGPUSPERNODE",
    "NUMGPUPERNODE",
    "NUMGPUSPERNODES",
    "NGPUSPERNODE",
    "NGPUPERNODE",
    "NPUSPERNODE",
    "NPUPERNODE",
    "DEVICESPERNODE",
    "GPUSPERWORKER",
    "NUMGPUSPERWORKER",
    "LOCALWORLDSIZE",
    "MLPGPU",
    "GPN",
    "GPUSNODE",
    "NUMGPUSNODE",
];
const NODES: [&str; 8] =
    ["NNODES", "NNODE", "NUMNODES", "NUMNODE", "NODES", "NODENUM", "NODECOUNT", "NUMOFNODES"];
const TOTAL: [&str; 9] =
    ["WORLDSIZE", "NUMGPUS", "NGPUS", "NUMGPU", "NGPU", "TOTALGPUS", "GPUNUM", "GPUSTOTAL", "TOTALNUMGPUS"];

/// The first variable of one of these names that holds a number or a hole.
fn variable(script: &Script, names: &[&str]) -> Option<(Value, Word)> {
    for name in names {
        for variable in &script.variables {
            let plain =
                || variable.name.bytes().filter(|byte| *byte != b'_').map(|byte| byte.to_ascii_uppercase());
            if plain().eq(name.bytes())
                && !variable.array
                && let Some(value) = variable.values.first().filter(|value| !value.is_empty())
            {
                return Some((value.clone(), named(&variable.name, variable.span.unwrap_or_default())));
            }
        }
    }
    None
}

/// A word that only names something.
pub(super) fn named(name: &str, span: Span) -> Word {
    Word { value: Value::computed(name, span), span }
}

/// Takes what a place says, unless a better one has spoken.
pub(super) fn offer(slot: &mut Option<Said>, found: Option<(Value, Word)>, how: &str) {
    let Some((value, by)) = found else { return };
    if slot.is_some() {
        return;
    }
    let flag = by.text().split('=').next().unwrap_or("").to_owned();
    let span = value.origin().or(Some(by.span)).filter(|span| !span.is_empty());
    let number = value
        .known()
        .and_then(|text| text.trim().trim_matches(['"', '\'']).parse::<u64>().ok())
        .filter(|number| *number > 0);
    *slot = Some(match number {
        Some(number) => {
            Said::Known(Fact { value: number, span, by: flag, how: how.to_owned(), given: value.is_given() })
        }
        None => Said::Open(Missing { hole: value.first_hole(), span, by: flag }),
    });
}

/// Takes a number that follows from a place.
pub(super) fn offer_number(slot: &mut Option<Said>, number: u64, place: &Value, by: &Word, how: &str) {
    if slot.is_none() && number > 0 {
        let flag = by.text().split('=').next().unwrap_or("").to_owned();
        let span = place.origin().or(Some(by.span)).filter(|span| !span.is_empty());
        *slot = Some(Said::Known(Fact { value: number, span, by: flag, how: how.to_owned(), given: false }));
    }
}
