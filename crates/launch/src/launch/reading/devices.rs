//! One process that several accelerators are given to.

use super::Launch;
use crate::formats::starts_own_processes;
use crate::launch::command_line::Launcher;
use crate::launch::flag::{flag_name, is_spelt};
use crate::launch::said::Said;
use crate::{Effect, Found, NotModelled, Origin, Reading};
use shardscope_bash as shell;
use shardscope_plan::{Field, Software};

impl Launch {
    /// ms-swift starts NPROC_PER_NODE processes, or one if that is not set, and spreads a model over the devices that
    /// each can see (`device_map`).
    pub(super) fn tell_device_map(&self, reading: &mut Reading) {
        let trainer = shell::base_name(self.line.trainer());
        let swift = self.line.subcommand.is_some() && trainer == "swift" || trainer == "llm_sft.py";
        let (true, Some(visible)) = (swift, self.world.visible) else { return };
        let Some(Said::Known(fact)) = &self.world.gpus_per_node else { return };
        // The visible devices only count as processes if nothing else is stated.
        let processes = fact.processes();
        let apart = reading.value(Field::RolloutGpus).is_some_and(|own| own != "0");
        if visible > processes && !apart {
            let what = "a model spread over devices layer by layer (device_map)";
            let value = format!("{visible} devices, {processes} processes");
            let item = NotModelled::new("CUDA_VISIBLE_DEVICES", &value, Effect::Memory, what);
            reading.not_modelled.push(item.at_some(fact.span));
        }
    }

    /// What the processes that this command starts mean for a model that it, or a program beside it, loads.
    pub(crate) fn tell_devices(&self, reading: &mut Reading) {
        self.leave_device_map(reading);
        self.tell_data_parallel(reading);
    }

    /// unsloth gives each of several processes the quantized model on its own device, whatever name of a spread `device_map` has
    /// (`unsloth/models/loader_utils.py:prepare_device_map`).
    fn leave_device_map(&self, reading: &mut Reading) {
        let fast = matches!(reading.software, Some((Software::Unsloth, _)));
        let quantized =
            reading.value(Field::BaseQuantization).is_some_and(|kind| !matches!(kind, "" | "none"));
        let launched = self.line.launcher().is_some_and(|launcher| launcher != Launcher::Python);
        if fast && quantized && launched {
            reading.keep(&|found| found.field != Field::DeviceMap);
        }
    }

    /// ms-swift 3.2 to 3.4, which had no `vllm_mode`, took rollouts from `num_infer_workers` more accelerators of each node than
    /// it trained on, unless every accelerator had a worker; 3.5 of June 2025 to 3.12 generate on those that train, and 4 refuses a
    /// command without a mode (`swift/llm/argument/rlhf_args.py:_check_grpo` of v3.4.1 and v3.5.0, `swift/arguments/rlhf_args.py` of
    /// v4.0.0). That fewer processes are started than the node has accelerators tells which one it is.
    pub(super) fn tell_own_engines(&self, reading: &mut Reading) {
        let placed = ["--vllm-mode", "--vllm-server-host", "--vllm-server-base-url"];
        let by_vllm = reading.value(Field::RlFramework) == Some("swift")
            && reading.value(Field::RolloutEngine) == Some("vllm")
            && reading.value(Field::RolloutGpus).is_none()
            && !reading.not_modelled.iter().any(|item| item.name == "use_vllm");
        let Some(Said::Known(fact)) = &self.world.gpus_per_node else { return };
        if !by_vllm || placed.iter().any(|name| self.option(name).is_some()) {
            return;
        }
        let processes = fact.processes();
        let own = self.option("--num-infer-workers").map_or(Some(1), |workers| workers.parse::<u64>().ok());
        let node = own.and_then(|own| processes.checked_add(own));
        // Nodes have 4, 8 or 16.
        let fits = node.is_some_and(|node| match self.world.visible {
            Some(visible) => visible == node && visible > processes,
            None => node >= 4 && node.is_power_of_two() && own.is_some_and(|own| own < processes),
        });
        if fits || own == Some(processes) {
            reading.not_read.retain(|item| item.name != "num_infer_workers");
        }
        if let Some(own) = own.filter(|_| fits) {
            let nodes = match &self.world.nodes {
                Some(Said::Known(nodes)) => nodes.value,
                _ => 1,
            };
            let why =
                "ms-swift before 3.5: no vllm_mode, and as many accelerators of each node are left over";
            let found =
                Found::new(Field::RolloutGpus, own.saturating_mul(nodes).to_string(), Origin::Derived);
            reading.take(found.by(fact.by.clone(), fact.span).note(why));
        }
    }

    /// The value of the last option of this name, with its words joined by dashes or underscores (argparse takes both of
    /// transformers' options), behind `=` or a space.
    fn option(&self, dashed: &str) -> Option<&str> {
        let at = self.arguments.iter().rposition(|word| is_spelt(flag_name(&word.text), dashed))?;
        match self.arguments.get(at)?.text.split_once('=') {
            Some((_, value)) => Some(value),
            None => Some(self.arguments.get(at + 1).map_or("", |next| &next.text)),
        }
    }

    /// `CUDA_VISIBLE_DEVICES=0,1 python train.py`: plain python starts one process, in which transformers' Trainer wraps
    /// the model in `torch.nn.DataParallel` if it sees several devices (`Trainer._wrap_model`, `TrainingArguments.n_gpu`),
    /// unless a `device_map` has spread it over them. Either way the first device holds what no rank of a distributed
    /// run does.
    fn tell_data_parallel(&self, reading: &mut Reading) {
        let trained = matches!(reading.software, Some((Software::HfTransformers | Software::Unsloth, _)));
        let alone = self.line.launcher() == Some(Launcher::Python)
            && !self.line.wrapped
            && self.line.subcommand.is_none()
            && !starts_own_processes(self.line.trainer());
        // Frameworks of reinforcement learning but TRL start their workers by themselves, under Ray or their own launcher.
        let by_itself = reading.value(Field::RlFramework).is_some_and(|name| name != "trl");
        let Some(Said::Known(devices)) = &self.world.gpus_per_node else { return };
        if by_itself || !trained || !alone || devices.given || devices.value < 2 {
            return;
        }
        let what = "one process for several accelerators: transformers' DataParallel, or a model that its program \
                    spreads over them (device_map)";
        let value = format!("{} devices, 1 process", devices.value);
        let item = NotModelled::new(&devices.by, &value, Effect::Memory, what);
        reading.not_modelled.push(item.at_some(devices.span));
    }
}
