//! What the name of a trainer's command or program says about the objective.

use super::Launch;
use crate::formats::left_to_accelerate;
use crate::launch::command_line::Launcher;
use crate::{Argument, Reading};
use shardscope_bash as shell;

impl Launch {
    /// If a command's settings are in a file among the texts, its words say nothing about how the model is sharded, but
    /// accelerate's own file does.
    pub(super) fn leave_to_accelerate(&self, reading: &mut Reading) {
        if self.given.is_some() {
            self.ask_accelerate(reading);
        }
    }

    /// The same for a program among the texts that the launch starts without options.
    pub(crate) fn ask_accelerate(&self, reading: &mut Reading) {
        if let Some((value, word)) = self.line.option(Launcher::Accelerate, &["--config-file"]) {
            left_to_accelerate(reading, value.text(), "--config_file", Some(word.origin()));
        }
    }

    /// The arguments, with what a trainer's command or program says about the objective by name (`trl grpo`,
    /// `grpo.py`).
    pub(crate) fn with_objective(&self) -> Vec<Argument> {
        let mut arguments = self.arguments.clone();
        arguments.extend(self.dated());
        // What accelerate shards over ranks is in its own file.
        let file = self.line.option(Launcher::Accelerate, &["--config-file"]);
        if let Some((value, word)) =
            file.filter(|_| arguments.iter().all(|word| !word.text.starts_with("--deepspeed")))
        {
            let span = Some(word.origin());
            for text in ["--config_file", value.text()] {
                arguments.push(Argument { text: text.to_owned(), span, ..Argument::default() });
            }
        }
        let named = self.line.subcommand.as_ref().or(self.line.program.as_ref());
        let stated = ["--rlhf", "--rl=", "--stage"];
        let own = arguments.iter().any(|word| stated.iter().any(|start| word.text.starts_with(start)));
        let Some(program) = named.filter(|_| !own) else { return arguments };
        let name = shell::base_name(program.text()).trim_end_matches(".py").to_ascii_lowercase();
        let objective =
            ["grpo", "kto"].into_iter().find(|word| name.split(['_', '-']).any(|part| part == *word));
        // TRL's `examples/scripts` and alignment-handbook's `scripts`: others implement their own losses under such
        // names.
        let objective = objective.or(match name.as_str() {
            "orpo" | "run_orpo" => Some("orpo"),
            "cpo" => Some("cpo"),
            "rloo" => Some("rloo"),
            // TRL's own command and module.
            "dpo" if self.line.trainer() == "trl" || program.text().contains("trl/scripts") => Some("dpo"),
            _ => None,
        });
        if let Some(objective) = objective
            && !arguments
                .iter()
                .any(|word| word.text.starts_with("--rollout") || word.text.starts_with("actor"))
        {
            for text in ["--rl", objective] {
                let word =
                    Argument { text: text.to_owned(), span: Some(program.origin()), ..Argument::default() };
                arguments.push(word);
            }
        }
        arguments
    }
}
