//! The number of nodes and of accelerators per node: every place that states them, in order of precedence.

use super::chosen::Chosen;
use super::command_line::{CommandLine, Launcher, option};
use super::said::{Counted, Said, World, named, offer, offer_number};
use super::scheduler;
use shardscope_bash::{Script, Value, Word};

/// One of the numbers of the world.
#[derive(Clone, Copy, Debug)]
enum Number {
    Nodes,
    PerNode,
    Total,
}

/// A launcher's option that gives a number.
struct CountOption {
    launcher: Launcher,
    number: Number,
    names: &'static [&'static str],
    how: &'static str,
}

const fn count_option(
    launcher: Launcher,
    number: Number,
    names: &'static [&'static str],
    how: &'static str,
) -> CountOption {
    CountOption { launcher, number, names, how }
}

const TASKS: &[&str] = &["-np", "--np", "-n", "-c"];
const MPI_PER_NODE: &[&str] = &["-npernode", "--npernode", "-ppn", "--ppn", "-N", "--ntasks-per-node"];
/// Flags by which a program takes its rank from mpirun, which then starts the script (llm-jp's fork of Megatron-LM).
const MPI_RANKS: &[&str] = &["--use-mpi"];
const HOST_FILE: &[&str] = &["--hostfile", "-H"];

/// The options that give these numbers, by launcher; Swift has those of torchrun.
const PLACES: [CountOption; 18] = [
    count_option(Launcher::Torch, Number::Nodes, &["--nnodes", "--nnode"], "the launcher's nodes"),
    count_option(
        Launcher::Torch,
        Number::PerNode,
        &["--nproc-per-node"],
        "the launcher's processes per node",
    ),
    count_option(Launcher::Swift, Number::Nodes, &["--nnodes", "--nnode"], "the launcher's nodes"),
    count_option(
        Launcher::Swift,
        Number::PerNode,
        &["--nproc-per-node"],
        "the launcher's processes per node",
    ),
    count_option(Launcher::Mpi, Number::Total, TASKS, "the processes that MPI starts"),
    count_option(Launcher::Mpi, Number::PerNode, MPI_PER_NODE, "MPI's processes per node"),
    count_option(Launcher::Aprun, Number::Total, TASKS, "the processes that MPI starts"),
    count_option(Launcher::Aprun, Number::PerNode, &["-N"], "MPI's processes per node"),
    count_option(Launcher::DeepSpeed, Number::Nodes, &["--num-nodes"], "DeepSpeed's nodes"),
    count_option(Launcher::DeepSpeed, Number::PerNode, &["--num-gpus"], "DeepSpeed's GPUs per node"),
    count_option(Launcher::Srun, Number::Nodes, &["--nodes", "-N"], "srun's nodes"),
    count_option(Launcher::Srun, Number::PerNode, &["--ntasks-per-node"], "srun's tasks per node"),
    count_option(Launcher::Srun, Number::Total, &["--ntasks", "-n"], "srun's tasks"),
    count_option(Launcher::Accelerate, Number::Nodes, &["--num-machines"], "accelerate's machines"),
    count_option(Launcher::Colossal, Number::Nodes, &["--num-nodes"], "ColossalAI's nodes"),
    count_option(
        Launcher::Colossal,
        Number::PerNode,
        &["--nproc-per-node"],
        "ColossalAI's processes per node",
    ),
    count_option(Launcher::Mason, Number::Nodes, &["--num-nodes"], "the job's nodes"),
    count_option(Launcher::Mason, Number::PerNode, &["--gpus"], "the job's GPUs per node"),
];

impl World {
    /// Finds the world of a launch.
    pub fn find(script: &Script, chosen: &Chosen, line: &CommandLine) -> Self {
        let mut world = World::default();
        world.ray(line);
        world.options(line, if line.has(Launcher::Swift) { Launcher::Swift } else { Launcher::Torch });
        world.mpi(script, line);
        world.deepspeed(script, line, chosen);
        world.options(line, Launcher::Colossal);
        let direct = !line.has(Launcher::Torch) && !line.has(Launcher::DeepSpeed) && !line.has(Launcher::Ray);
        if direct {
            world.options(line, Launcher::Srun);
        }
        scheduler::lines(&mut world, script, line, direct);
        // mason.py multiplies accelerate's processes by its own nodes, so it takes precedence.
        world.options(line, Launcher::Mason);
        world.options(line, Launcher::Accelerate);
        let processes = line.option(Launcher::Accelerate, &["--num-processes"]);
        let settled = line.has(Launcher::Mason) && world.nodes.is_some() && world.gpus_per_node.is_some();
        offer(&mut world.world_size, processes.filter(|_| !settled), "accelerate's processes");
        world.environment(chosen);
        // Ranks that are passed to the program itself, as under mpirun without torchrun (`--rank`, `--world-size`).
        let ranks = option(&line.arguments, &["--world-size"]).filter(|_| !line.has(Launcher::Torch));
        let by_ranks = world.world_size.is_none() && ranks.is_some();
        offer(&mut world.world_size, ranks, "the program's ranks");
        world.variables(script, by_ranks);
        world.defaults(script, line, chosen);
        world
    }

    fn number(&mut self, number: Number) -> &mut Option<Said> {
        match number {
            Number::Nodes => &mut self.nodes,
            Number::PerNode => &mut self.gpus_per_node,
            Number::Total => &mut self.world_size,
        }
    }

    /// The numbers given by a launcher's own options.
    fn options(&mut self, line: &CommandLine, launcher: Launcher) {
        for place in &PLACES {
            if place.launcher != launcher {
                continue;
            }
            let mut found = line.option(launcher, place.names);
            // torchrun takes a range: min:max.
            if let Some((value, _)) = &mut found
                && matches!(launcher, Launcher::Torch | Launcher::Swift)
                && let Number::Nodes = place.number
            {
                *value = value.part(0, value.text().find(':').unwrap_or(usize::MAX));
            }
            offer(self.number(place.number), found, place.how);
        }
    }

    /// The machines used by Ray's training actors.
    fn ray(&mut self, line: &CommandLine) {
        let nodes = option(&line.arguments, &["--actor-num-nodes"]);
        if line.has(Launcher::Ray) || nodes.is_some() {
            let how = "Ray's training actors";
            offer(&mut self.nodes, nodes, how);
            offer(&mut self.gpus_per_node, option(&line.arguments, &["--actor-num-gpus-per-node"]), how);
        }
    }

    fn mpi(&mut self, script: &Script, line: &CommandLine) {
        self.options(line, Launcher::Mpi);
        self.options(line, Launcher::Aprun);
        if let Some((value, by)) = line.option(Launcher::Mpi, &["--map-by", "-map-by"])
            && let Some(rest) = value.text().strip_prefix("ppr:")
        {
            let count = value.part(4, 4 + rest.find(':').unwrap_or(rest.len()));
            offer(&mut self.gpus_per_node, Some((count, by)), "MPI's processes per node");
        }
        let names = &["--hostfile", "-hostfile", "--machinefile", "-machinefile"];
        self.host_file(script, line.option(Launcher::Mpi, names));
    }

    fn deepspeed(&mut self, script: &Script, line: &CommandLine, chosen: &Chosen) {
        let launcher = Launcher::DeepSpeed;
        self.options(line, launcher);
        self.host_file(script, line.option(launcher, HOST_FILE));
        // --include localhost:0,1,2,3
        if let Some((value, by)) = line.option(launcher, &["--include", "-i"])
            && let Some(text) = value.known()
            && let Some((_, devices)) = text.split_once(':')
            && !text.contains('@')
            // An empty list, to be filled in, starts nothing (`launcher/runner.py:parse_resource_filter`).
            && !devices.trim().is_empty()
        {
            let how = "the devices that DeepSpeed includes";
            let devices = devices.bytes().filter(|byte| *byte == b',').count() as u64 + 1;
            offer_number(&mut self.gpus_per_node, devices, &value, &by, how);
            offer_number(&mut self.nodes, 1, &value, &by, how);
        }
        // `deepspeed/launcher/runner.py`: the visible devices of the environment replace --include if no option selects
        // devices.
        const SAYS: [&str; 6] = ["--num-gpus", "--num-nodes", "--include", "-i", "--exclude", "-e"];
        let alone = line.option(launcher, &SAYS).is_none() && line.option(launcher, HOST_FILE).is_none();
        if line.has(launcher) && alone {
            self.see(script, chosen);
        }
    }

    /// Nodes and slots of a host file that the script itself writes.
    fn host_file(&mut self, script: &Script, named: Option<(Value, Word)>) {
        let Some((name, by)) = named else { return };
        let Some(file) = script.files.iter().find(|file| file.name.text() == name.text()) else { return };
        let Some(content) = file.content.known() else { return };
        let mut nodes = 0;
        let mut slots = None;
        for line in content.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let here = line
                .split_once("slots=")
                .and_then(|(_, slots)| slots.split_ascii_whitespace().next()?.parse::<u64>().ok());
            if nodes == 0 {
                slots = here;
            }
            slots = slots.filter(|slots| Some(*slots) == here);
            nodes += 1;
        }
        offer_number(&mut self.nodes, nodes, &file.content, &by, "the lines of the host file");
        let slots = slots.unwrap_or(0);
        offer_number(&mut self.gpus_per_node, slots, &file.content, &by, "the slots of the host file");
    }

    /// `NPROC_PER_NODE=8 command`
    fn environment(&mut self, chosen: &Chosen) {
        for (name, word) in &chosen.environment {
            let value = Some((word.value.clone(), named(name, word.span)));
            match name.as_str() {
                "NPROC_PER_NODE" => offer(&mut self.gpus_per_node, value, "the command's environment"),
                "MAX_PIXELS" if word.value.known().is_some() => {
                    offer(&mut self.pixels, value, "the command's environment");
                }
                "NNODES" => offer(&mut self.nodes, value, "the command's environment"),
                _ => {}
            }
        }
    }

    /// Variables with common names. `by_ranks`: the program is given its ranks, as many as MPI starts.
    fn variables(&mut self, script: &Script, by_ranks: bool) {
        offer(&mut self.gpus_per_node, variable(script, PER_NODE), "the script's variable");
        // If the program is given its ranks, a variable for nodes belongs to another way of launching, even if their
        // number is left to mpirun.
        if !by_ranks && !matches!(self.world_size, Some(Said::Known(_))) {
            offer(&mut self.nodes, variable(script, NODES), "the script's variable");
        }
        let settled =
            matches!((&self.nodes, &self.gpus_per_node), (Some(Said::Known(_)), Some(Said::Known(_))));
        if !settled && let Some(found) = variable(script, TOTAL) {
            offer(&mut self.world_size, Some(found), "the script's variable for all GPUs");
        }
    }

    /// `CUDA_VISIBLE_DEVICES=0,1 command`: the devices that a trainer on one node can see.
    fn see(&mut self, script: &Script, chosen: &Chosen) {
        const NAMES: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"];
        let is_named = |name: &str| NAMES.contains(&name);
        let prefixed =
            chosen.environment.iter().find(|(name, _)| is_named(name)).map(|(_, word)| word.value.clone());
        let set = script.variables.iter().find(|variable| is_named(&variable.name));
        let Some(value) = prefixed.or_else(|| set?.values.last().cloned()) else { return };
        let Some(devices) = value.known().filter(|text| !text.is_empty()) else { return };
        let count = devices.split(',').filter(|device| !device.trim().is_empty()).count() as u64;
        self.visible = Some(count);
        let by = named("CUDA_VISIBLE_DEVICES", value.origin().unwrap_or_default());
        let is_open = self.gpus_per_node.is_none();
        offer_number(&mut self.gpus_per_node, count, &value, &by, "the devices that it can see");
        if let Some(Said::Known(fact)) = self.gpus_per_node.as_mut().filter(|_| is_open) {
            fact.counts = Counted::Devices;
        }
        offer_number(&mut self.nodes, 1, &value, &by, "one node by default");
    }

    /// The launchers' defaults if nothing is stated.
    fn defaults(&mut self, script: &Script, line: &CommandLine, chosen: &Chosen) {
        if chosen.fragment || self.world_size.is_some() {
            return;
        }
        let by = named("", chosen.span.unwrap_or_default());
        let nothing = Value::default();
        let one = |slot: &mut Option<Said>, how| offer_number(slot, 1, &nothing, &by, how);
        if line.has(Launcher::DeepSpeed)
            && self.gpus_per_node.is_some()
            && line.option(Launcher::DeepSpeed, HOST_FILE).is_none()
        {
            let how = "DeepSpeed's default without a hostfile or a number of nodes is one node";
            one(&mut self.nodes, how);
        }
        let torch = line.has(Launcher::Torch) || line.has(Launcher::Swift);
        // A trainer's own command is also its program, with no launcher in front of it.
        let trainer = line.subcommand.is_some() && !torch;
        if trainer || line.launcher() == Some(Launcher::Python) {
            self.see(script, chosen);
        }
        if trainer && self.gpus_per_node.is_some() {
            one(&mut self.nodes, "one node unless NNODES is set");
        }
        if torch && !line.is_open(Launcher::Torch) {
            one(&mut self.nodes, "torchrun's default is one node");
            if line.has(Launcher::Torch) {
                let how = "torchrun's default is one process per node";
                one(&mut self.gpus_per_node, how);
            }
        }
        let alone = line.launcher() == Some(Launcher::Python)
            && !line.wrapped
            && chosen.around.is_empty()
            && script.directives.is_empty()
            && !line.arguments.iter().any(|word| MPI_RANKS.contains(&word.text()));
        if alone && self.nodes.is_none() && self.gpus_per_node.is_none() {
            one(&mut self.nodes, "plain python starts one process");
            one(&mut self.gpus_per_node, "plain python starts one process");
        }
    }
}

/// Names of variables, in capitals and without underscores.
const PER_NODE: &[&str] = &[
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
const NODES: &[&str] =
    &["NNODES", "NNODE", "NUMNODES", "NUMNODE", "NODES", "NODENUM", "NODECOUNT", "NUMOFNODES"];
const TOTAL: &[&str] =
    &["WORLDSIZE", "NUMGPUS", "NGPUS", "NUMGPU", "NGPU", "TOTALGPUS", "GPUNUM", "GPUSTOTAL", "TOTALNUMGPUS"];

/// The first variable with one of these names that holds a number or a hole.
fn variable(script: &Script, names: &[&str]) -> Option<(Value, Word)> {
    for name in names {
        for variable in &script.variables {
            if !variable.array
                && is_called(&variable.name, name)
                && let Some(value) = variable.values.first().filter(|value| !value.is_empty())
            {
                return Some((value.clone(), named(&variable.name, variable.span.unwrap_or_default())));
            }
        }
    }
    None
}

/// Whether a variable has this name, ignoring underscores and case.
fn is_called(variable: &str, name: &str) -> bool {
    let mut letters = variable.bytes().filter(|byte| *byte != b'_');
    name.bytes().all(|letter| letters.next().is_some_and(|byte| byte.to_ascii_uppercase() == letter))
        && letters.next().is_none()
}
