//! Scripts inside a script: `eval`, `source`, `bash -c '...'`, `sbatch <<EOF`, a file written and then run.

use super::super::parse;
use super::super::script::CommandKind;
use super::super::value::{Value, Word};
use super::super::{directives, limits};
use super::programs::base_name;
use super::state::{Evaluator, Flow, Positional, Status};
use super::texts::values;
use super::variables::{Functions, Variables};
use shardscope_source::Span;

/// Programs that read a script from a file, a word or their input.
const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "sbatch", "qsub"];

/// Options that pass a command to a launcher as one word, and programs with which such a command begins.
const COMMANDS: &[&str] = &["-c", "--cmd", "--command", "--commandline"];
const STARTED: &[&str] = &["python", "python3", "torchrun", "deepspeed", "accelerate", "bash", "sh"];

impl Evaluator<'_> {
    /// Runs a text in this shell, so that what it sets persists (`eval`, `source`).
    pub(crate) fn run_text(&mut self, text: &Value) -> Flow {
        if text.len() > limits::VALUE_BYTES || !self.spend(text.weight(), text.origin().unwrap_or_default()) {
            return Flow::Next;
        }
        // At the current depth, so that texts that run texts are bounded like nested commands.
        let list = parse::parse(text.text(), text.marks(), self.depth, &mut self.notes);
        self.run_list(&list)
    }

    /// The content of a file that the script writes, or that was given along with it.
    pub(crate) fn readable(&self, name: &Value) -> Option<Value> {
        if let Some(content) = self.file_content(name) {
            return Some(content);
        }
        // Files given along with the script have no directories; `$DIR/env.sh` is found by its last component,
        // whatever DIR is.
        let base = base_name(name.text());
        if base.is_empty() {
            return None;
        }
        let part = self.source.parts().iter().find(|part| base_name(&part.name) == base)?;
        Some(Value::written(self.source.slice(part.span), part.span))
    }

    /// Runs what a program is given to run: the words after `-c`, its input, or an available file.
    pub(crate) fn run_inner(&mut self, index: Option<usize>, span: Span) -> Flow {
        let Some(index) = index else { return Flow::Next };
        // The words are borrowed, to avoid copying every training command.
        let words = self
            .commands
            .get_mut(index)
            .map(|command| std::mem::take(&mut command.words))
            .unwrap_or_default();
        let inner = self.inner_text(&words);
        let remote = if inner.is_none() { self.remote_text(&words) } else { None };
        if let Some(command) = self.commands.get_mut(index) {
            command.words = words;
        }
        if let Some(text) = remote {
            self.run_apart(&text, Vec::new(), index, false);
        }
        let Some(inner) = inner else { return Flow::Next };
        let (text, arguments) = inner;
        if self.depth < limits::DEPTH && self.spend(1, span) {
            self.run_apart(&text, arguments, index, true);
        }
        self.status = Status::ASSUMED;
        if self.steps_left == 0 { Flow::Stop } else { Flow::Next }
    }

    fn inner_text(&mut self, words: &[Word]) -> Option<(Value, Vec<Value>)> {
        let mut words = words;
        // Skips what precedes it: `srun --mpi=none bash -c '...'`.
        let shell = loop {
            let (first, rest) = words.split_first()?;
            words = rest;
            let base = base_name(first.text());
            if SHELLS.contains(&base) {
                break base;
            }
        };
        let rest = words;
        let takes_commands = |text: &str| {
            text.len() > 1 && text.starts_with('-') && !text.starts_with("--") && text.ends_with('c')
        };
        // sbatch's `-c` is a number of CPUs.
        if shell != "sbatch"
            && let Some(flag) = rest.iter().take(4).position(|word| takes_commands(word.text()))
        {
            let text = rest.get(flag + 1)?.value.clone();
            // The word after the text is `$0`.
            return Some((text, values(rest.get(flag + 3..).unwrap_or(&[]))));
        }
        for (at, word) in rest.iter().enumerate() {
            if word.text().starts_with('-') {
                continue;
            }
            let Some(text) = self.readable(&word.value) else { continue };
            if let Some(known) = self.files.iter().position(|known| known.name.text() == word.text()) {
                self.files_run.push(known);
            }
            return Some((text, values(rest.get(at + 1..).unwrap_or(&[]))));
        }
        // With a file that is not available, the input is the training's data and not a script.
        let options_only =
            rest.iter().all(|word| word.text().starts_with('-') && !word.text().starts_with("--wrap"));
        if (options_only || shell == "sbatch")
            && let Some(input) = &self.input
            && input.text().contains(['\n', ' '])
            && input.only_hole().is_none()
        {
            return Some((input.clone(), Vec::new()));
        }
        let wrapped = rest.iter().find(|word| word.text().starts_with("--wrap="))?;
        Some((wrapped.value.rest("--wrap=".len()), Vec::new()))
    }

    /// `ssh host 'commands'`: the words after the host; and what other launchers are given to run (`bcprun -p 8 -c
    /// 'python a.py'`).
    fn remote_text(&mut self, words: &[Word]) -> Option<Value> {
        let program = base_name(words.first()?.text());
        if !matches!(program, "ssh" | "pdsh") {
            let started = words.windows(2).find(|pair| {
                let [flag, text] = pair else { return false };
                let mut inner = text.text().split_ascii_whitespace();
                COMMANDS.contains(&flag.text())
                    && inner.next().is_some_and(|word| STARTED.contains(&base_name(word)))
                    && inner.next().is_some()
            });
            return started.and_then(|pair| pair.get(1)).map(|word| word.value.clone());
        }
        // A long word with a space is a quoted command; host and options are short or contain no space.
        let long = words.iter().skip(1).find(|word| word.text().contains(' ') && word.text().len() > 20);
        if let Some(word) = long {
            return Some(word.value.clone());
        }
        self.input.clone().filter(|input| input.text().contains('\n') && input.only_hole().is_none())
    }

    /// Runs a text in a separate shell, which sees only exported variables.
    fn run_apart(&mut self, text: &Value, arguments: Vec<Value>, index: usize, inherits: bool) {
        let outer = self.outer.replace(index);
        let input = self.input.take();
        let text = text.clone();
        let mut values = arguments;
        let calls = std::mem::take(&mut self.calls);
        self.in_subshell(&mut |shell| {
            if inherits {
                shell.variables.keep_exported();
            } else {
                // Over ssh not even exported variables are passed on.
                shell.variables = Variables::default();
            }
            shell.functions = Functions::default();
            shell.positional = Positional { values: std::mem::take(&mut values), ..Positional::default() };
            let found = directives::read(&text);
            directives::set_variables(shell, &found);
            shell.directives.extend(found);
            // `exit` in it only ends that shell, not the script around it.
            shell.conditional += 1;
            shell.uncertain += 1;
            let flow = shell.run_text(&text);
            shell.conditional -= 1;
            shell.uncertain -= 1;
            flow
        });
        self.calls = calls;
        self.input = input;
        self.outer = outer;
    }

    /// Runs scripts that the text writes but never calls: their commands are only shown.
    pub(crate) fn run_written_scripts(&mut self) {
        // By index, since a script that is run may write more files.
        for at in 0..self.files.len().min(20) {
            let Some(file) = self.files.get(at) else { break };
            let script = file.name.text().ends_with(".sh")
                || file.name.text().ends_with(".slurm")
                || file.content.text().starts_with("#!");
            if !script || self.files_run.contains(&at) {
                continue;
            }
            let (text, name, span) = (file.content.clone(), file.name.clone(), file.span);
            self.shown = true;
            let words = vec![Word { value: Value::written("bash", span), span }, Word { value: name, span }];
            if let Some(index) = self.record(CommandKind::Shown, words, &[], span) {
                self.run_apart(&text, Vec::new(), index, true);
            }
            self.shown = false;
        }
    }
}
