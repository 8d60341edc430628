use super::value::{HoleId, Value, Word};
use shardscope_source::{Diagnostic, Span};

/// What a script is given from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Variables by name, as `--env NAME=VALUE` gives them. A number as name means that positional parameter.
    pub variables: Vec<(String, String)>,
    /// The arguments of the script.
    pub arguments: Vec<String>,
}

/// What a script evaluates to: its commands in order, with every value it left behind.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Simple commands in the order in which they would run.
    pub commands: Vec<Command>,
    /// Every variable with its last value, by name.
    pub variables: Vec<Variable>,
    /// Strings and arrays that hold options no command used: a pasted fragment.
    pub fragments: Vec<Fragment>,
    /// Scheduler directives.
    pub directives: Vec<Directive>,
    /// Files the script writes, as they are at its end.
    pub files: Vec<File>,
    /// What commands found in files that were written again behind them, in the order of writing.
    pub overwritten: Vec<File>,
    /// Conditions that the text alone does not decide.
    pub branches: Vec<Branch>,
    /// Everything unknown, by [`HoleId`].
    pub holes: Vec<Hole>,
    /// Files it reads with `source` that are not among the pasted texts.
    pub missing_files: Vec<(String, Span)>,
    /// Diagnostics about the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether a command would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// It runs, as far as the text determines.
    Run,
    /// It is only printed by `echo` or `printf`, or written to a file: often the real one, run by other means.
    Shown,
    /// It is in a branch that is treated as not taken, and that the text does not decide.
    Skipped,
}

/// A simple command after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Whether it would run.
    pub kind: CommandKind,
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Assignments before the program.
    pub environment: Vec<(String, Word)>,
    /// Where the command is in the source.
    pub span: Span,
    /// Index of the command whose words contain this one: `srun ... bash -c '...'`, `sbatch <<EOF`.
    pub outer: Option<usize>,
    /// Whether it runs only under a condition that the text does not decide.
    pub doubt: Option<u16>,
}

/// A variable with its last value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// One value, or the elements of an array.
    pub values: Vec<Value>,
    /// Whether it is an array.
    pub array: bool,
    /// Whether inner commands see it.
    pub exported: bool,
    /// The last assignment; `None` if the value came from outside.
    pub span: Option<Span>,
}

/// A variable that holds options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The variable.
    pub name: String,
    /// Its options, split into words.
    pub words: Vec<Word>,
    /// The assignment.
    pub span: Span,
}

/// One option of a scheduler directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The marker: `SBATCH`, `PBS`, `$`, `PJM`, `YBATCH`, `BSUB`, `COBALT`.
    pub scheduler: String,
    /// The option as written, without its value: `--nodes`, `-N`, `-l select`.
    pub key: String,
    /// Its value; empty for a switch.
    pub value: Value,
    /// Key and value in the text.
    pub span: Span,
}

/// A file the script writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name as the script gives it.
    pub name: Value,
    /// What is written.
    pub content: Value,
    /// The command that writes it.
    pub span: Span,
    /// How many of [`Script::commands`] ran before.
    pub commands: usize,
}

/// A condition that the text does not decide, or that only an unset variable decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The condition.
    pub span: Span,
    /// Whether what it guards was treated as running.
    pub taken: bool,
    /// Whether bash would decide the same, given the variables as they are.
    pub decided: bool,
    /// Why it was treated this way, in words for the user.
    pub why: String,
    /// The unknowns it depends on.
    pub needs: Vec<HoleId>,
    /// What the outcome not chosen would have set: name and text as written.
    pub sets: Vec<(String, Span)>,
}

/// What kind of thing an unknown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoleKind {
    /// A variable nobody sets.
    Variable,
    /// `$1` and the like, if the call is not given.
    Positional,
    /// What a command prints; the name is the command.
    Command,
    /// `<number of nodes>` left in the text.
    Placeholder,
    /// A variable set only by branches that were not chosen.
    Branch,
    /// Arithmetic over other holes.
    Arithmetic,
    /// Text derived from other holes.
    Derived,
}

/// One thing the text leaves open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The variable's name, the number of the positional parameter, or the command's text.
    pub name: String,
    /// What kind of unknown it is.
    pub kind: HoleKind,
    /// Where it is first met.
    pub span: Span,
    /// The holes it follows from; empty for a root.
    pub needs: Vec<HoleId>,
    /// Literals it is compared with, to offer as choices.
    pub choices: Vec<String>,
}

impl Script {
    /// A hole by its id; `None` if the id is from another script.
    pub fn hole(&self, id: HoleId) -> Option<&Hole> {
        self.holes.get(id.0 as usize)
    }

    /// The holes that `id` ultimately depends on: itself if it needs no other.
    pub fn roots(&self, id: HoleId) -> Vec<HoleId> {
        // A stack, not recursion: chains of holes are as long as the script makes them. `rev` keeps source order.
        let (mut roots, mut seen, mut open) = (Vec::new(), Vec::new(), vec![id]);
        while let Some(id) = open.pop() {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            match self.hole(id) {
                Some(hole) if !hole.needs.is_empty() => open.extend(hole.needs.iter().rev()),
                Some(_) => roots.push(id),
                None => {}
            }
        }
        roots
    }

    /// A variable by its name, by binary search: [`Script::variables`] is sorted.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables
            .binary_search_by(|variable| variable.name.as_str().cmp(name))
            .ok()
            .and_then(|at| self.variables.get(at))
    }
}
