//! The interface of a launch format: one trait, implemented once per format and listed once, in `register.rs`.

use super::workload::Workload;
use super::{bases, dotted};
use crate::releases::Installed;
use crate::{Argument, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;
use shardscope_source::Span;
use std::fmt::Debug;

/// A launch format: how its texts are recognized, what they are called, and how their settings are read.
///
/// A settings file is offered to `recognise` of every reader, and the reader with the strongest claim receives it in
/// `read`; a command's words are handled in the same way by `claims` and `read_words`. A reader never fails: it returns
/// what it found, and diagnostics for the rest.
pub trait Reader: Debug + Sync {
    /// The description of such a text in messages, with its article: "a NeMo
    /// configuration". No two formats share a name.
    fn name(&self) -> &'static str;

    /// The settings that are read from it, as a line of the guide.
    fn about(&self) -> &'static str;

    /// What to add to a settings file that leaves the number of accelerators open: the command that starts its
    /// training, if that states the number; empty if `torchrun` starts it.
    fn states_machines(&self) -> &'static str {
        ""
    }

    /// What its texts decide, and therefore which text takes precedence if two differ.
    fn role(&self) -> Role {
        Role::Training
    }

    /// How certain it is that a settings file has this format; `None` if nothing suggests it.
    fn recognise(&self, _tree: &Tree) -> Option<Claim> {
        None
    }

    /// Reads a settings file. `root` is the first document, or null for an empty file.
    fn read(&self, _root: &Node) -> Reading {
        Reading::default()
    }

    /// The release from which on its defaults are modelled: the package, what a text installs of it, and the first minor release
    /// whose defaults are those of today in all that changes a figure.
    fn modelled_since(&self, _installed: Installed) -> Option<(&'static str, [u64; 2], [u64; 2])> {
        None
    }

    /// What the releases that a text installs change of what was read, beyond that.
    fn date(&self, _reading: &mut Reading, _installed: Installed) {}

    /// The same beside texts that install packages, for a format whose defaults follow their releases.
    fn read_installed(&self, root: &Node, _installed: Installed) -> Reading {
        self.read(root)
    }

    /// Reads a settings file together with the words of the command that takes it, for a
    /// program whose words override keys.
    fn read_with_words(&self, _root: &Node, _words: &[Argument]) -> Option<Reading> {
        None
    }

    /// Reads a settings file beneath a command that names it, as one set of keys, so that a default follows from both; and
    /// the words that say nothing of it. `command` has the words without those that name the file. `None` if the two are
    /// read each for itself.
    fn read_beneath(&self, _root: &Node, _command: &Command<'_>) -> Option<(Reading, Vec<Argument>)> {
        None
    }

    /// The keys that map directly to a setting, for the reference. Keys that need more interpretation (precision,
    /// sharding, recomputation, experts) are read in code and not listed.
    fn keys(&self) -> Vec<(&'static str, Field)> {
        Vec::new()
    }

    /// Files that a file of this format builds on, each with the position of its name.
    fn bases(&self, root: &Node) -> Vec<(String, Span)> {
        bases::named(root)
    }

    /// Whether a file says little without those files, so that a missing one deserves a warning.
    fn needs_bases(&self) -> bool {
        false
    }

    /// Whether a file leaves to the launch how ranks share the model.
    fn is_sharded_by_launch(&self) -> bool {
        false
    }

    /// Whether a file takes precedence over the files that it builds on, regardless of the
    /// order in which they were given.
    fn overrides_all(&self, _root: &Node) -> bool {
        false
    }

    /// The job in a file that starts its own script on machines that it names. `base` is the
    /// offset of `text` in its source.
    fn workload(&self, _tree: &Tree, _text: &str, _base: u32) -> Option<Workload> {
        None
    }

    /// Key prefixes of its settings in a command's words, each with its dot (`model.`), for a
    /// program that takes `a.b.c=value`.
    fn dotted(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a word sets a key without a dot, for a program that takes `key=value`.
    fn is_word(&self, _word: &str) -> bool {
        false
    }

    /// Programs that take only such words.
    fn programs(&self) -> &'static [&'static str] {
        &[]
    }

    /// How certain it is that a command has this format.
    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let count = dotted::count(command.words, self.dotted());
        (count >= dotted::ENOUGH).then_some(Claim::Shared(count))
    }

    /// Reads a command: its program and its words.
    fn read_command(&self, command: &Command<'_>) -> Reading {
        self.read_words(command.words)
    }

    /// Reads the words of a command.
    fn read_words(&self, _words: &[Argument]) -> Reading {
        Reading::default()
    }
}

/// A training command.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The program as written; empty if there is none.
    pub program: &'a str,
    /// The words after it.
    pub words: &'a [Argument],
    /// Whether the launcher passes the words to Megatron, even if they include another trainer's
    /// words (`megatron sft` of ms-swift).
    pub is_megatron: bool,
    /// The releases of packages that the texts around it install.
    pub installed: Installed,
}

/// How certain it is that a text has a format, in increasing order. Between two equal claims the reader
/// listed first in the register wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// The number of its keys that other formats also have.
    Shared(usize),
    /// The number of its keys that only this format has.
    Own(usize),
    /// The program, or a combination of keys that no other format has.
    Certain,
}

/// What a text decides. If two texts of one training differ, the later one in this order takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Only the model's shape.
    Model,
    /// The machines of a job that starts a script.
    Job,
    /// How processes are launched.
    Launcher,
    /// The engine under the trainer, which follows its own file regardless of the script's flags.
    Engine,
    /// The training.
    Training,
}
