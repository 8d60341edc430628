//! Lists, pipelines, loops and calls.

use super::super::limits;
use super::super::script::HoleKind;
use super::super::tree::{Command, CommandForm, List, Pipeline, Word};
use super::super::value::Value;
use super::state::{Certainty, Evaluator, Flow, Positional, Status};
use super::texts::joined;
use super::{assigned, simple};
use shardscope_source::{Code, Diagnostic, Span};

impl Evaluator<'_> {
    pub(crate) fn run_list(&mut self, list: &List) -> Flow {
        for statement in list {
            let flow = self.run_statement(statement);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    /// Marks what runs from here on as guarded by a condition, until [`Self::unguard`] is called with the result.
    pub(crate) fn guard(&mut self, certainty: Certainty) -> u32 {
        let uncertain = u32::from(certainty != Certainty::Certain);
        self.conditional += 1;
        self.uncertain += uncertain;
        uncertain
    }

    pub(crate) fn unguard(&mut self, uncertain: u32) {
        self.conditional -= 1;
        self.uncertain -= uncertain;
    }

    /// Runs commands that a condition guards.
    pub(crate) fn run_guarded(&mut self, certainty: Certainty, body: &List) -> Flow {
        let uncertain = self.guard(certainty);
        let flow = self.run_list(body);
        self.unguard(uncertain);
        flow
    }

    pub(crate) fn run_pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let last = pipeline.stages.len().saturating_sub(1);
        let mut flow = Flow::Next;
        // A single command may read from the surrounding input (`read` in a loop); a pipeline has its own.
        let outer_input = if last > 0 { self.input.clone() } else { None };
        if !self.spend(outer_input.as_ref().map_or(0, Value::weight), Span::default()) {
            return Flow::Stop;
        }
        for (at, stage) in pipeline.stages.iter().enumerate() {
            // The last stage writes to whoever reads the pipeline.
            let outer_output = if at < last { Some(self.output.replace(Value::default())) } else { None };
            let run = self.commands.len();
            // With several stages, each runs in its own subshell, whose variables end with it.
            let here = last == 0 || at == last && self.last_here;
            flow = if here || simple::is_plain(stage, &self.functions) {
                self.run_command(stage)
            } else {
                match self.in_subshell(&mut |shell| shell.run_command(stage)) {
                    Flow::Guard => Flow::Guard,
                    Flow::Stop if self.steps_left == 0 => Flow::Stop,
                    _ => Flow::Next,
                }
            };
            if let Some(outer_output) = outer_output {
                let shown = self.commands.get(run).map(|command| joined(&command.words));
                self.input = match shown {
                    None => self.output.take(),
                    // The output of a program that is not evaluated is unknown, not empty.
                    Some(shown) => Some(self.unknown(HoleKind::Command, &shown, stage.span, Vec::new())),
                };
                self.output = outer_output;
            }
            // `exit` in one stage does not keep the others from running; an empty budget does.
            if flow == Flow::Stop && self.steps_left == 0 {
                break;
            }
        }
        if last > 0 {
            self.input = outer_input;
        }
        if pipeline.negated {
            self.status = self.status.not();
        }
        flow
    }

    pub(crate) fn run_command(&mut self, command: &Command) -> Flow {
        if self.depth >= limits::DEPTH {
            let message = "functions or inner scripts call each other too deeply";
            self.notes.report(Diagnostic::error(Code::TooMuchWork, message).at(command.span));
            return Flow::Stop;
        }
        if !self.spend(1, command.span) {
            return Flow::Stop;
        }
        self.depth += 1;
        let flow = self.redirected(command);
        self.depth -= 1;
        flow
    }

    pub(crate) fn run_kind(&mut self, command: &Command) -> Flow {
        match &command.kind {
            CommandForm::Simple(simple) => self.run_simple(simple, command.span),
            CommandForm::If { arms, otherwise } => self.run_if(arms, otherwise.as_ref()),
            CommandForm::Case { subject, arms } => self.run_case(subject, arms),
            CommandForm::For { name, words, body } => {
                self.run_for(name, words.as_deref(), body, command.span)
            }
            CommandForm::ForArithmetic { header, body } => {
                let [first, condition, step] = header;
                let first = self.text_of(first);
                // Evaluated for its assignments; if it cannot be computed, the variable stays unknown and the test
                // below decides.
                let _ = self.number(&first, 0);
                let mut turns = 0;
                loop {
                    let test = self.text_of(condition);
                    if !test.text().trim().is_empty()
                        && !matches!(self.number(&test, 0), Ok(number) if number != 0)
                    {
                        return Flow::Next;
                    }
                    if let Some(flow) = self.turn(body, &mut turns, command.span) {
                        return flow;
                    }
                    let step = self.text_of(step);
                    let _ = self.number(&step, 0);
                }
            }
            CommandForm::While { condition, span, until, body } => {
                self.run_while(condition, *span, *until, body)
            }
            CommandForm::Function { name, body } => {
                self.functions.define(name, body);
                self.status = Status::SUCCESS;
                Flow::Next
            }
            CommandForm::Group(body) => self.run_list(body),
            CommandForm::Subshell(body) => {
                let flow = self.in_subshell(&mut |shell| shell.run_list(body));
                if matches!(flow, Flow::Guard) { flow } else { Flow::Next }
            }
            CommandForm::Test(tokens) => {
                self.status = self.test_tokens(tokens);
                Flow::Next
            }
            CommandForm::Arithmetic(expression) => {
                self.status = self.arithmetic_status(expression, command.span);
                Flow::Next
            }
        }
    }

    /// Runs something and discards its variable changes afterwards.
    pub(crate) fn in_subshell(&mut self, inner: &mut dyn FnMut(&mut Self) -> Flow) -> Flow {
        // The clones share their values; a name costs an eighth of a step.
        let weight = u32::try_from(self.variables.len() / 8).unwrap_or(u32::MAX);
        if !self.spend(weight, Span::default()) {
            return Flow::Stop;
        }
        let variables = self.variables.clone();
        let functions = self.functions.clone();
        let positional = self.positional.clone();
        let locals = self.locals.len();
        let flow = inner(self);
        // Its local variables are discarded along with its other variables.
        self.locals.truncate(locals);
        self.variables = variables;
        self.functions = functions;
        self.positional = positional;
        flow
    }

    fn run_for(&mut self, name: &str, words: Option<&[Word]>, body: &List, span: Span) -> Flow {
        let mut values = Vec::new();
        match words {
            None => values = self.positional.values.clone(),
            Some(words) => {
                let mut expanded = Vec::new();
                for word in words {
                    self.expand(word, &mut expanded);
                }
                for word in expanded {
                    values.push(word.value);
                }
            }
        }
        let mut turns = 0;
        for value in values {
            self.set(name, value, Some(span));
            if let Some(flow) = self.turn(body, &mut turns, span) {
                return flow;
            }
        }
        Flow::Next
    }

    fn run_while(&mut self, condition: &List, condition_span: Span, until: bool, body: &List) -> Flow {
        let mut turns = 0;
        // For a loop that never ends by its condition: how many undecided branches and commands it has met.
        let mut met = (self.undecided, self.commands.len());
        let constant = is_constant(condition);
        loop {
            let (status, holes, stop) = self.condition(condition);
            if let Some(stop) = stop {
                return stop;
            }
            let status = if until { status.not() } else { status };
            // `while kill -0 $PID`: a program that is assumed to succeed would do so forever.
            if !status.ok || status.certainty == Certainty::Assumed {
                if status.certainty <= Certainty::Assumed {
                    let names = assigned::names(body);
                    let index = self.branch(condition_span, false, false, &holes, &names);
                    self.mark_skipped(&[(index, holes, true)], &names);
                }
                // A loop that ends by its condition succeeds.
                self.status = Status::SUCCESS;
                return Flow::Next;
            }
            if constant && holes.is_empty() && turns > 0 {
                // It ends by a `break` that every iteration decides, or by something that the text does not show.
                let decided = met == (self.undecided, self.commands.len()) && turns < limits::CONSTANT_TURNS;
                if !decided {
                    let names = assigned::names(body);
                    if !names.is_empty() {
                        let index = self.branch(condition_span, true, false, &holes, &names);
                        self.mark_skipped(&[(index, holes, true)], &names);
                    }
                    return Flow::Next;
                }
            }
            met = (self.undecided, self.commands.len());
            if let Some(flow) = self.turn(body, &mut turns, condition_span) {
                return flow;
            }
        }
    }

    /// One iteration of a loop; returns a flow if the loop ends with it.
    fn turn(&mut self, body: &List, turns: &mut u32, span: Span) -> Option<Flow> {
        *turns += 1;
        if *turns > limits::LOOP_TURNS || !self.spend(1, span) {
            let message = format!(
                "this loop runs more than {} times; the rest of it is not evaluated",
                limits::LOOP_TURNS
            );
            self.notes.report(Diagnostic::error(Code::TooMuchWork, message).at(span));
            // Other loops of the script would likely be as long.
            self.steps_left = self.steps_left.min(limits::STEPS / 10);
            return Some(if self.steps_left == 0 { Flow::Stop } else { Flow::Next });
        }
        match self.run_list(body) {
            Flow::Next | Flow::Continue(0 | 1) => None,
            // Levels count from 1; 0 is an error in bash and treated as 1 here.
            Flow::Break(0 | 1) => Some(Flow::Next),
            Flow::Break(levels) => Some(Flow::Break(levels - 1)),
            Flow::Continue(levels) => Some(Flow::Continue(levels - 1)),
            other => Some(other),
        }
    }

    /// Calls a function.
    pub(crate) fn call(&mut self, body: &Command, arguments: Vec<Value>) -> Flow {
        let positional = std::mem::replace(
            &mut self.positional,
            Positional { values: arguments, ..Positional::default() },
        );
        // `locals` is one stack for all calls; this call's entries begin here.
        let first_local = self.locals.len();
        self.calls += 1;
        let flow = self.run_command(body);
        self.calls -= 1;
        let locals = self.locals.split_off(first_local);
        self.restore(locals);
        self.positional = positional;
        if flow == Flow::Return { Flow::Next } else { flow }
    }
}

/// `while true` and `while :`: such a loop often restarts the training, and one iteration shows it.
fn is_constant(condition: &List) -> bool {
    match condition.as_slice() {
        [statement] if statement.rest.is_empty() && statement.first.stages.len() == 1 => {
            match &statement.first.stages[0].kind {
                CommandForm::Simple(simple) => simple.words.len() == 1,
                _ => false,
            }
        }
        _ => false,
    }
}
