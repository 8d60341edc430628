//! The settings file that a command names, read together with the command's words.

use super::Launch;
use crate::answers::fill;
use crate::formats::{Command, recipes};
use crate::launch::command_line::Launcher;
use crate::launch::settings_file::File;
use crate::started::without_places;
use crate::{Argument, Reading, megatron};
use shardscope_bash::Environment;

impl Launch {
    /// The name of the settings file that is read beneath the command, empty if the script itself writes it; none if there is
    /// no such file.
    pub(crate) fn settings_file(&self) -> Option<&str> {
        self.beneath.as_ref().map(|(reading, _)| reading.covers.as_str())
    }

    /// The command with these words.
    pub(super) fn command<'c>(&'c self, words: &'c [Argument]) -> Command<'c> {
        Command {
            program: self.line.trainer(),
            words,
            is_megatron: self.line.has(Launcher::Swift),
            installed: self.installed,
        }
    }

    /// The reading of a settings file beneath the words of the command, and the words that say nothing of it; none if its
    /// format reads the two each for itself, or the command is not one of its program.
    pub(super) fn read_beneath(
        &self,
        file: &File,
        environment: &Environment,
    ) -> Option<(Reading, Vec<Argument>)> {
        let words = self.beside_settings(&self.with_objective())?;
        let command = self.command(&words);
        if command.is_megatron || recipes::read_words(&self.arguments, self.recipe.as_deref()).is_some() {
            return None;
        }
        let (mut reading, mut left) = file.format.read_tree_beneath(&file.tree, &command)?;
        fill(&mut reading, environment);
        if file.name.is_empty() {
            without_places(&mut reading, 0);
        }
        // What was added for trainers that take the objective as a word says nothing to other readers.
        left.retain(|word| self.arguments.contains(word));
        reading.covers.clone_from(&file.name);
        Some((reading, left))
    }

    /// That reading, with what is not known of the other words.
    pub(super) fn with_rest(&self, (reading, left): &(Reading, Vec<Argument>)) -> Reading {
        let mut reading = reading.clone();
        if !left.is_empty() {
            let rest = megatron::read_started(self.line.trainer(), left);
            reading.not_modelled.extend(rest.not_modelled);
            reading.not_read.extend(rest.not_read);
        }
        reading
    }
}
