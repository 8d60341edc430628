//! The chosen training command of a script.

use shardscope_bash::Word;
use shardscope_source::{Diagnostic, Span};

/// The words of the training command.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// All its words, including launcher and program; for a fragment its options.
    pub words: Vec<Word>,
    /// Assignments before the command and before the commands around it.
    pub environment: Vec<(String, Word)>,
    /// Words of the commands around it, innermost first: `srun ... bash -c`.
    pub around: Vec<Vec<Word>>,
    /// Its position.
    pub span: Option<Span>,
    /// Whether the options come from variables that no command uses.
    pub fragment: bool,
    /// Whether the command names no training setting: its program takes them from elsewhere.
    pub bare: bool,
    /// Diagnostics about the choice.
    pub diagnostics: Vec<Diagnostic>,
}
