//! What a launch format is to the rest: one trait, implemented once a format and named once, in `register.rs`.

use super::workload::Workload;
use super::{bases, dotted};
use crate::{Argument, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;
use shardscope_source::Span;
use std::fmt::Debug;

/// A launch format: how its texts are told from others, what they are called, and what they state.
///
/// A settings file is offered to `recognise` of every reader, and the one that claims it most surely gets it by `read`;
/// a command's words go the same way through `claims` and `read_words`. A reader never fails: it returns what it found,
/// and diagnostics for the rest.
pub trait Reader: Debug + Sync {
    /// What a text of it is called in messages, with its article: "a NeMo configuration". No two formats share a name.
    fn name(&self) -> &'static str;

    /// What is read of it, in a line of the guide.
    fn about(&self) -> &'static str;

    /// What to add to a settings file of it that leaves the number of accelerators open: the line that starts its training, which gives
    /// the number where it is read; empty where `torchrun` starts it.
    fn states_machines(&self) -> &'static str {
        ""
    }

    /// What its texts decide, and so which text counts where two differ.
    fn role(&self) -> Role {
        Role::Training
    }

    /// How surely a settings file is of this format; none where nothing speaks for it.
    fn recognise(&self, _tree: &Tree) -> Option<Claim> {
        None
    }

    /// What a settings file of it states. `root` is the first document, or null in an empty file.
    fn read(&self, _root: &Node) -> Reading {
        Reading::default()
    }

    /// What a settings file states together with the words of the command that takes it, for a program that lets words
    /// override keys.
    fn read_with_words(&self, _root: &Node, _words: &[Argument]) -> Option<Reading> {
        None
    }

    /// The keys that are read as they are, each with its setting, for the reference. Keys that need more than a look
    /// (precision, sharding, recomputation, experts) are read in code and not among them.
    fn keys(&self) -> Vec<(&'static str, Field)> {
        Vec::new()
    }

    /// Files whose settings a file of it builds on, each with the place that names it.
    fn bases(&self, root: &Node) -> Vec<(String, Span)> {
        bases::named(root)
    }

    /// Whether a file of it says little without those files, so that a missing one is worth a warning.
    fn needs_bases(&self) -> bool {
        false
    }

    /// Whether a file counts after the files that it builds on, whatever order they were given in.
    fn overrides_all(&self, _root: &Node) -> bool {
        false
    }

    /// The job in a file that starts a script of its own on machines that it names. `base` is where `text` starts in its
    /// source.
    fn workload(&self, _tree: &Tree, _text: &str, _base: u32) -> Option<Workload> {
        None
    }

    /// First keys of its settings in the words of a command, each with its dot (`model.`), for a program that takes
    /// `a.b.c=value`.
    fn dotted(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a word is a setting of it under a key without a dot, for a program that takes `key=value`.
    fn is_word(&self, _word: &str) -> bool {
        false
    }

    /// Programs that take nothing but such words.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// How surely a command is of this format.
    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let count = dotted::count(command.words, self.dotted());
        (count >= dotted::ENOUGH).then_some(Claim::Shared(count))
    }

    /// What a command states, its program and its words.
    fn read_command(&self, command: &Command<'_>) -> Reading {
        self.read_words(command.words)
    }

    /// What the words of a command state.
    fn read_words(&self, _words: &[Argument]) -> Reading {
        Reading::default()
    }
}

/// A training command.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program as written; empty where there is none.
    pub program: &'a str,
    /// The words behind it.
    pub words: &'a [Argument],
    /// Whether the launcher hands the words to Megatron, whatever trainer's words stand among them (`megatron sft` of
    /// ms-swift).
    pub is_megatron: bool,
}

/// How surely a text is of a format, from the least sure on. Of two that are equally sure, the register's first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It has so many keys that other formats have as well.
    Shared(usize),
    /// It has so many keys of this format's own.
    Own(usize),
    /// The program, or keys that stand together in no other format.
    Certain,
}

/// What a text decides. Where two texts of one training differ, the later one in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The model's shape alone.
    Model,
    /// The machines, of a job that starts a script.
    Job,
    /// How processes are launched.
    Launcher,
    /// The engine under the trainer, which follows its own file whatever the script's flags say.
    Engine,
    /// The training.
    Training,
}
