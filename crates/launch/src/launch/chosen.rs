//! The training command of a script, as it was chosen.

use shardscope_bash::Word;
use shardscope_source::{Diagnostic, Span};

/// The words of the training command.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// All its words, launcher and program included; for a fragment its options.
    pub words: Vec<Word>,
    /// Assignments before the command and before those around it.
    pub environment: Vec<(String, Word)>,
    /// Words of the commands around it, innermost first: `srun ... bash -c`.
    pub around: Vec<Vec<Word>>,
    /// Where it stands.
    pub span: Option<Span>,
    /// Whether the options come from variables that no command uses.
    pub fragment: bool,
    /// Whether the command names no setting of a training: its program takes them from elsewhere.
    pub bare: bool,
    /// What there is to say about the choice.
    pub diagnostics: Vec<Diagnostic>,
}
