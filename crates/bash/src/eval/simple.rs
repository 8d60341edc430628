//! Simple commands: assignments, builtins, functions, programs; their redirections.

use super::super::limits;
use super::super::script::{Command, CommandKind, File, HoleKind};
use super::super::tree::{self, Assigned, Assignment, List, RedirectKind, Simple};
use super::super::value::{Value, Word};
use super::state::{Evaluator, Flow, Saved, Status};
use super::texts::{joined, values};
use super::variables::Functions;
use super::{builtins, programs};
use shardscope_source::Span;

/// Most files written by a script that are kept.
const FILES: usize = 100;

impl Evaluator<'_> {
    /// Runs a command with its redirections around it.
    pub(crate) fn redirected(&mut self, command: &tree::Command) -> Flow {
        let mut input = None;
        let mut target = None;
        for redirect in &command.redirects {
            match &redirect.kind {
                RedirectKind::Here(parts) => input = Some(self.text_of(parts)),
                RedirectKind::HereString(word) => {
                    let mut value = self.text_of(&word.parts);
                    value.add("\n", redirect.span);
                    input = Some(value);
                }
                RedirectKind::Read(word) => input = self.read_input(word, redirect.span),
                RedirectKind::Write(word) | RedirectKind::Append(word)
                    if matches!(redirect.descriptor, None | Some(1)) =>
                {
                    let append = matches!(redirect.kind, RedirectKind::Append(_));
                    target = Some((self.text_of(&word.parts), append));
                }
                RedirectKind::Write(_) | RedirectKind::Append(_) | RedirectKind::Duplicate => {}
            }
        }
        // If there are several, the last counts, as in bash.
        let outer_input = input.map(|input| self.input.replace(input));
        let flow = match target {
            None => self.run_kind(command),
            Some((name, append)) => {
                let outer_output = self.output.replace(Value::default());
                // Programs that are not evaluated write nothing here, so `write_file` keeps no file from them.
                let flow = self.run_kind(command);
                let content = std::mem::replace(&mut self.output, outer_output).unwrap_or_default();
                self.write_file(name, content, append, command.span);
                flow
            }
        };
        if let Some(outer_input) = outer_input {
            self.input = outer_input;
        }
        flow
    }

    /// The input from `< file` or `< <(command)`.
    fn read_input(&mut self, word: &tree::Word, span: Span) -> Option<Value> {
        // `< <(cmd)` reads what cmd prints; `<(cmd)` as a word would be the name of a pipe.
        if let [tree::Part::Process { body, span }] = word.parts.as_slice() {
            return Some(self.substitute(body, *span));
        }
        let name = self.text_of(&word.parts);
        if let Some(content) = self.readable(&name) {
            return Some(content);
        }
        Some(self.unknown(HoleKind::Command, &format!("cat {}", name.text()), span, name.holes()))
    }

    pub(crate) fn file_content(&self, name: &Value) -> Option<Value> {
        self.files.iter().rev().find(|file| file.name.text() == name.text()).map(|file| file.content.clone())
    }

    pub(crate) fn write_file(&mut self, name: Value, content: Value, append: bool, span: Span) {
        // `> /dev/null` and `> /dev/stderr` store nothing that could be read again.
        if name.text().starts_with("/dev/") || name.is_empty() || content.is_empty() {
            return;
        }
        let content = self.bounded(content, Some(span));
        let mut commands = self.commands.len();
        match self.files.iter().position(|file| file.name.text() == name.text()) {
            Some(known) => {
                let Some(file) = self.files.get_mut(known) else { return };
                if file.commands < commands {
                    // A file of too many states counts as written when it first was.
                    if self.overwritten.len() < FILES {
                        self.overwritten.push(file.clone());
                    } else {
                        commands = file.commands;
                    }
                }
                // A file is looked up by its name as written: `$DIR/x` with DIR unknown is the same file each time.
                if append && file.content.len() < limits::VALUE_BYTES {
                    file.content.append(&content);
                    file.commands = commands;
                } else {
                    *file = File { name, content, span, commands };
                }
            }
            None if self.files.len() < FILES => self.files.push(File { name, content, span, commands }),
            None => {}
        }
    }

    pub(crate) fn run_simple(&mut self, simple: &Simple, span: Span) -> Flow {
        let mut words = Vec::new();
        for word in &simple.words {
            self.expand(word, &mut words);
        }
        // Nothing to run: the assignments are the shell's own and stay. Before a program they are its environment.
        if words.is_empty() {
            let substitutions = self.substitutions;
            for assignment in &simple.assignments {
                self.assign(assignment);
            }
            // Only now, since they may use `$?`. `A=$(false)` fails.
            if substitutions == self.substitutions {
                self.status = Status::SUCCESS;
            }
            return Flow::Next;
        }
        let mut environment = Vec::new();
        for assignment in &simple.assignments {
            let value = match &assignment.value {
                Assigned::Scalar(word) => self.text_of(&word.parts),
                Assigned::Array(_) => Value::default(),
            };
            environment.push((assignment.name.clone(), Word { value, span: assignment.span }));
        }
        let saved = self.set_temporarily(&environment);
        let flow = self.dispatch(words, &simple.declared, &environment, span);
        self.restore(saved);
        flow
    }

    fn set_temporarily(&mut self, environment: &[(String, Word)]) -> Vec<Saved> {
        let mut saved = Vec::new();
        for (name, word) in environment {
            saved.push((name.clone(), self.variables.take(name)));
            self.set(name, word.value.clone(), Some(word.span));
            // `A=1 cmd`: cmd sees A, also where it is a function or an inner script.
            self.export(name);
        }
        saved
    }

    fn dispatch(
        &mut self,
        mut words: Vec<Word>,
        declared: &[Assignment],
        environment: &[(String, Word)],
        span: Span,
    ) -> Flow {
        // Without an argument these two return the current status.
        if !matches!(words.first().map_or("", Word::text), "return" | "exit") {
            self.status = Status::SUCCESS;
        }
        // `exec torchrun ...` replaces the shell by the program; what matters is the program.
        while let [first, second, ..] = words.as_slice()
            && matches!(first.text(), "command" | "builtin" | "exec")
            && !second.text().starts_with('-')
        {
            words.remove(0);
        }
        let program = words.first().map_or("", Word::text);
        // Functions take precedence over builtins, as in bash.
        if let Some(body) = self.functions.get(program).cloned() {
            return self.call(&body, values(words.get(1..).unwrap_or(&[])));
        }
        if let Some(flow) = builtins::run(self, program, &words, declared, span) {
            return flow;
        }
        self.run_program(words, environment, span)
    }

    /// A program: evaluated if it is one of the small pure ones and its output is used, otherwise recorded.
    fn run_program(&mut self, words: Vec<Word>, environment: &[(String, Word)], span: Span) -> Flow {
        super::edits::edit(self, &words, span);
        let computed = if self.output.is_some() || self.input.is_some() {
            programs::run(self, &words, span)
        } else {
            None
        };
        self.status = Status::ASSUMED;
        if let Some((value, status)) = computed {
            if !self.spend(value.weight(), span) {
                return Flow::Stop;
            }
            self.emit(&value, span);
            self.status = status;
            return Flow::Next;
        }
        // `$(program)`: its output is unknown, and it is not one of the script's own commands.
        if self.substituting > 0 {
            // `$(nproc)` is an independent unknown that depends on the machine; `$(basename $X)` follows from X.
            let mut needs = self.input.as_ref().map(Value::holes).unwrap_or_default();
            if !needs.is_empty() || depends(&words) {
                for word in &words {
                    word.value.add_holes(&mut needs);
                }
            }
            let shown = joined(&words);
            let value = self.unknown(HoleKind::Command, &shown, span, needs);
            self.write(&value);
            return Flow::Next;
        }
        let index = self.record(CommandKind::Run, words, environment, span);
        self.run_inner(index, span)
    }

    /// Records a command and returns its index.
    pub(crate) fn record(
        &mut self,
        kind: CommandKind,
        words: Vec<Word>,
        environment: &[(String, Word)],
        span: Span,
    ) -> Option<usize> {
        if self.commands.len() >= limits::COMMANDS || words.is_empty() {
            return None;
        }
        // A skipped branch takes precedence: what a skipped script writes or shows is skipped too.
        let kind = match () {
            () if self.skipped => CommandKind::Skipped,
            () if self.shown => CommandKind::Shown,
            () => kind,
        };
        let environment = environment.to_vec();
        self.commands.push(Command { kind, words, environment, span, outer: self.outer, doubt: self.doubt });
        Some(self.commands.len() - 1)
    }

    /// Passes output on to whatever reads it; options printed to the terminal are recorded as a shown command.
    pub(crate) fn emit(&mut self, value: &Value, span: Span) {
        if self.output.is_some() {
            self.write(value);
        } else if self.substituting == 0 && value.text().contains(" --") {
            // `echo "torchrun ... --tp 8"` at the top level: often the command that others run.
            let mut words = Vec::new();
            for value in value.fields() {
                words.push(Word { value, span });
            }
            self.record(CommandKind::Shown, words, &[], span);
        }
    }

    /// What a command list prints, without trailing newlines.
    pub(crate) fn substitute(&mut self, body: &List, span: Span) -> Value {
        if self.depth >= limits::DEPTH || !self.spend(1, span) {
            return Value::default();
        }
        let output = self.output.replace(Value::default());
        // A substitution does not consume the input of the loop around it.
        let input = self.input.take();
        self.substituting += 1;
        self.substitutions = self.substitutions.wrapping_add(1);
        self.depth += 1;
        if let Some((file, span)) = file_alone(body) {
            if let Some(content) = self.read_input(file, span) {
                self.write(&content);
            }
        } else if is_simple(body, &self.functions) {
            self.run_list(body);
        } else {
            // This copies all variables, which a single plain command does not need.
            self.in_subshell(&mut |shell| shell.run_list(body));
        }
        self.depth -= 1;
        self.substituting -= 1;
        self.input = input;
        let value = std::mem::replace(&mut self.output, output).unwrap_or_default();
        let end = value.text().trim_end_matches(['\n', '\r']).len();
        let mut value = if end < value.len() { value.part(0, end) } else { value };
        if !self.spend(value.weight(), span) {
            value = Value::default();
        }
        value
    }
}

/// Whether a list is one plain command, which cannot change variables for others.
fn is_simple(list: &List, functions: &Functions) -> bool {
    let [statement] = list.as_slice() else { return false };
    statement.rest.is_empty() && statement.first.stages.iter().all(|stage| is_plain(stage, functions))
}

/// Whether a command is a plain one, which cannot change variables.
pub(crate) fn is_plain(command: &tree::Command, functions: &Functions) -> bool {
    /// Commands that change the shell they run in.
    const CHANGING: &[&str] = &[
        "export",
        "declare",
        "typeset",
        "local",
        "readonly",
        "unset",
        "read",
        "mapfile",
        "readarray",
        "eval",
        "source",
        ".",
        "set",
        "shift",
        "let",
        "printf",
        "cd",
        "exec",
        "exit",
        "return",
    ];
    let tree::CommandForm::Simple(simple) = &command.kind else { return false };
    let first = simple.words.first().and_then(|word| super::super::parse::literal(&word.parts));
    first.is_some_and(|first| !CHANGING.contains(&first) && functions.get(first).is_none())
}

/// The file of `$(<file)`.
fn file_alone(list: &List) -> Option<(&tree::Word, Span)> {
    let [statement] = list.as_slice() else { return None };
    let [command] = statement.first.stages.as_slice() else { return None };
    let tree::CommandForm::Simple(simple) = &command.kind else { return None };
    let bare = simple.words.is_empty() && simple.assignments.is_empty() && statement.rest.is_empty();
    match command.redirects.as_slice() {
        [tree::Redirect { kind: RedirectKind::Read(word), span, .. }] if bare => Some((word, *span)),
        _ => None,
    }
}

/// Whether a program's output depends on its arguments: the output of those that count a machine's devices or read
/// its files does not.
fn depends(words: &[Word]) -> bool {
    const OWN: &[&str] =
        &["nvidia-smi", "rocm-smi", "npu-smi", "scontrol", "hostname", "date", "cat", "nproc"];
    !OWN.contains(&words.first().map_or("", Word::text))
}
