//! One process that several accelerators are given to.

use super::Launch;
use crate::formats::starts_own_processes;
use crate::launch::command_line::Launcher;
use crate::launch::said::Said;
use crate::{Effect, NotModelled, Reading};
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
        let processes = if fact.by.contains("VISIBLE") { 1 } else { fact.value };
        if visible > processes {
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
