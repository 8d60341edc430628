//! Lists, pipelines, conditions and loops; branches the text does not decide are read as not taken, and remembered.

use super::super::limits;
use super::super::script::{Branch, Hole, HoleKind};
use super::super::tree::{Arm, CaseArm, CaseEnding, Command, Joint, Kind, List, Pipeline, Statement, Word};
use super::super::value::{HoleId, Value};
use super::state::{Certainty, Data, Evaluator, Flow, Positional, Status};
use super::{assigned, pattern};
use crate::text::{Diagnostic, Span};

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

    fn run_statement(&mut self, statement: &Statement) -> Flow {
        let flow = self.run_pipeline(&statement.first);
        if flow != Flow::Next {
            return flow;
        }
        for (joint, pipeline) in &statement.rest {
            let status = self.status;
            let runs = match joint {
                Joint::And => status.ok,
                Joint::Or => !status.ok && status.certainty != Certainty::Unknown,
            };
            if !runs {
                continue;
            }
            let flow = self.guarded(status.certainty, |shell| shell.run_pipeline(pipeline));
            match flow {
                Flow::Next => {}
                Flow::Guard => return Flow::Next,
                other => return other,
            }
        }
        Flow::Next
    }

    /// Runs something that a condition guards.
    fn guarded(&mut self, certainty: Certainty, inner: impl FnOnce(&mut Self) -> Flow) -> Flow {
        let uncertain = u32::from(certainty != Certainty::Certain);
        self.conditional += 1;
        self.uncertain += uncertain;
        let flow = inner(self);
        self.conditional -= 1;
        self.uncertain -= uncertain;
        flow
    }

    fn run_pipeline(&mut self, pipeline: &Pipeline) -> Flow {
        let last = pipeline.stages.len().saturating_sub(1);
        let mut flow = Flow::Next;
        let outer_input = if last > 0 { self.input.clone() } else { None };
        if !self.spend(outer_input.as_ref().map_or(0, Value::weight), Span::default()) {
            return Flow::Stop;
        }
        for (at, stage) in pipeline.stages.iter().enumerate() {
            let outer_output = if at < last { Some(self.output.replace(Value::default())) } else { None };
            flow = self.run_command(stage);
            if let Some(outer_output) = outer_output {
                self.input = self.output.take();
                self.output = outer_output;
            }
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
            self.notes.report(Diagnostic::error("too-much-work", message).at(command.span));
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
            Kind::Simple(simple) => self.run_simple(simple, command.span),
            Kind::If { arms, otherwise } => self.run_if(arms, otherwise.as_ref()),
            Kind::Case { subject, arms } => self.run_case(subject, arms),
            Kind::For { name, words, body } => self.run_for(name, words.as_deref(), body, command.span),
            Kind::ForArithmetic { header, body } => {
                let [first, condition, step] = header;
                let first = self.text_of(first);
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
            Kind::While { condition, span, until, body } => self.run_while(condition, *span, *until, body),
            Kind::Function { name, body } => {
                self.functions.insert(name.clone(), body.clone());
                self.status = Status::SUCCESS;
                Flow::Next
            }
            Kind::Group(body) => self.run_list(body),
            Kind::Subshell(body) => {
                let flow = self.in_subshell(|shell| shell.run_list(body));
                if matches!(flow, Flow::Guard) { flow } else { Flow::Next }
            }
            Kind::Test(tokens) => {
                self.status = self.test_tokens(tokens);
                Flow::Next
            }
            Kind::Arithmetic(expression) => {
                self.status = self.arithmetic_status(expression, command.span);
                Flow::Next
            }
        }
    }

    /// Runs something whose variables are forgotten afterwards.
    pub(crate) fn in_subshell(&mut self, inner: impl FnOnce(&mut Self) -> Flow) -> Flow {
        let weight = u32::try_from(self.variables.len() / 8).unwrap_or(u32::MAX);
        if !self.spend(weight, Span::default()) {
            return Flow::Stop;
        }
        let variables = self.variables.clone();
        let functions = self.functions.clone();
        let positional = self.positional.clone();
        let flow = inner(self);
        self.variables = variables;
        self.functions = functions;
        self.positional = positional;
        flow
    }

    fn run_if(&mut self, arms: &[Arm], otherwise: Option<&List>) -> Flow {
        let mut skipped: Vec<(u16, Vec<HoleId>, bool)> = Vec::new();
        let mut names = Vec::new();
        let mut flow = Flow::Next;
        let mut chosen = false;
        let outer_doubt = self.doubt;
        for arm in arms {
            let (status, holes, stop) = self.condition(&arm.condition);
            if let Some(stop) = stop {
                return stop;
            }
            let taken = status.ok && status.certainty != Certainty::Assumed;
            if status.certainty != Certainty::Certain {
                let unknown = matches!(status.certainty, Certainty::Unknown | Certainty::Assumed);
                let sets = if taken { Vec::new() } else { assigned::names(&arm.body) };
                let index = self.branch(arm.span, taken, !unknown, &holes, &sets);
                if !taken {
                    names.extend(sets);
                    skipped.push((index, holes, unknown));
                }
            }
            if taken {
                chosen = true;
                self.doubt = self.doubt.or(skipped.iter().find(|arm| arm.2).map(|arm| arm.0));
                flow = self.guarded(status.certainty, |shell| shell.run_list(&arm.body));
                break;
            }
        }
        if !chosen {
            self.status = Status::SUCCESS;
            if let Some(otherwise) = otherwise {
                let certainty = if skipped.is_empty() { Certainty::Certain } else { Certainty::Unknown };
                self.doubt = self.doubt.or(skipped.iter().find(|arm| arm.2).map(|arm| arm.0));
                flow = self.guarded(certainty, |shell| shell.run_list(otherwise));
            }
        }
        self.doubt = outer_doubt;
        self.mark_skipped(&skipped, &names);
        if flow == Flow::Guard { Flow::Next } else { flow }
    }

    /// Evaluates a condition: its outcome, the unknowns in it, and a flow that leaves it.
    fn condition(&mut self, condition: &List) -> (Status, Vec<HoleId>, Option<Flow>) {
        let outer = std::mem::take(&mut self.condition_holes);
        self.status = Status::SUCCESS;
        let flow = self.run_list(condition);
        let mut holes = std::mem::replace(&mut self.condition_holes, outer);
        holes.sort_unstable();
        holes.dedup();
        let stop = if matches!(flow, Flow::Next | Flow::Guard) { None } else { Some(flow) };
        (self.status, holes, stop)
    }

    /// Remembers a branch; its index.
    fn branch(
        &mut self,
        span: Span,
        taken: bool,
        decided: bool,
        holes: &[HoleId],
        sets: &[(String, Span)],
    ) -> u16 {
        let known = self.branches.iter().position(|branch| branch.span == span);
        if let Some(known) = known {
            return u16::try_from(known).unwrap_or(u16::MAX);
        }
        let index = u16::try_from(self.branches.len()).unwrap_or(u16::MAX);
        if self.branches.len() < limits::BRANCHES {
            let name = |hole: &Hole| match hole.kind {
                HoleKind::Positional => format!("${}", hole.name),
                _ => hole.name.clone(),
            };
            let known = holes.iter().filter_map(|id| self.notes.holes.get(id.0 as usize));
            let names: Vec<String> = known.map(name).take(4).collect();
            let why = match (decided, names.is_empty()) {
                (true, true) => "a variable is not set".to_owned(),
                (true, false) => format!("{} is not set", names.join(", ")),
                (false, true) => "it asks the machine that runs the script".to_owned(),
                (false, false) => format!("{} is not known", names.join(", ")),
            };
            let sets = sets.iter().take(64).cloned().collect();
            self.branches.push(Branch { span, taken, decided, why, needs: holes.to_vec(), sets });
        }
        index
    }

    /// Variables that only branches not taken would set become holes; others are doubtful if the text does not decide.
    fn mark_skipped(&mut self, skipped: &[(u16, Vec<HoleId>, bool)], names: &[(String, Span)]) {
        let Some((index, _, _)) = skipped.first() else { return };
        let needs: Vec<HoleId> = skipped.iter().flat_map(|(_, holes, _)| holes.iter().copied()).collect();
        let unknown = skipped.iter().any(|(_, _, unknown)| *unknown);
        for (name, span) in names {
            match self.variables.get_mut(name) {
                None => {
                    let mut needs = needs.clone();
                    needs.sort_unstable();
                    needs.dedup();
                    let value = self.unknown(HoleKind::Branch, name, *span, needs);
                    self.branch_of.extend(value.only_hole().filter(|_| unknown).map(|hole| (hole, *index)));
                    self.set(name, value, Some(*span));
                }
                Some(slot) if unknown => match &mut slot.data {
                    Data::Scalar(value) => value.set_doubt(*index),
                    Data::Array(values) => values.values_mut().for_each(|value| value.set_doubt(*index)),
                    Data::Map(map) => map.values_mut().for_each(|value| value.set_doubt(*index)),
                },
                Some(_) => {}
            }
        }
    }

    fn run_case(&mut self, subject: &Word, arms: &[CaseArm]) -> Flow {
        let value = self.text_of(&subject.parts);
        let unset = value.only_hole().is_some_and(|hole| {
            self.notes.holes.get(hole.0 as usize).is_some_and(|hole| hole.kind == HoleKind::Variable)
        });
        let text = if unset { Some("") } else { value.known() }.map(str::to_owned);
        let mut falling = false;
        let mut skipped = Vec::new();
        let mut names = Vec::new();
        for arm in arms {
            let matched = falling || self.case_matches(arm, &value, text.as_deref());
            if !matched {
                if value.has_holes() {
                    let sets = assigned::names(&arm.body);
                    let span = arm.patterns.first().map_or(subject.span, |pattern| pattern.span);
                    let holes: Vec<HoleId> = value.holes().collect();
                    let index = self.branch(span, false, unset, &holes, &sets);
                    names.extend(sets);
                    skipped.push((index, holes, !unset));
                }
                continue;
            }
            let certainty = match (value.has_holes(), unset) {
                (false, _) => Certainty::Certain,
                (true, true) => Certainty::Unset,
                (true, false) => Certainty::Unknown,
            };
            let flow = self.guarded(certainty, |shell| shell.run_list(&arm.body));
            falling = arm.ending == CaseEnding::Fall;
            if flow != Flow::Next || arm.ending == CaseEnding::Stop {
                self.mark_skipped(&skipped, &names);
                return if flow == Flow::Guard { Flow::Next } else { flow };
            }
        }
        self.mark_skipped(&skipped, &names);
        Flow::Next
    }

    fn case_matches(&mut self, arm: &CaseArm, value: &Value, text: Option<&str>) -> bool {
        arm.patterns.iter().any(|word| {
            let Some(pattern) = self.pattern_of(&word.parts) else { return false };
            match text {
                Some(text) if value.has_holes() => {
                    self.add_pattern_choice(value, &pattern);
                    pattern::matches(&pattern, text)
                }
                Some(text) => {
                    text.len().saturating_mul(pattern.len()) <= pattern::MATCH_COST
                        && pattern::matches(&pattern, text)
                }
                None => {
                    self.add_pattern_choice(value, &pattern);
                    pattern == "*"
                }
            }
        })
    }

    fn add_pattern_choice(&mut self, value: &Value, pattern: &str) {
        if let Some(hole) = value.only_hole()
            && !pattern.contains(['*', '?', '['])
        {
            self.add_choice(hole, pattern);
        }
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
                values.extend(expanded.into_iter().map(|word| word.value));
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
        loop {
            let (status, holes, stop) = self.condition(condition);
            if let Some(stop) = stop {
                return stop;
            }
            let status = if until { status.not() } else { status };
            if !status.ok || status.certainty == Certainty::Assumed {
                if status.certainty <= Certainty::Assumed {
                    let names = assigned::names(body);
                    let index = self.branch(condition_span, false, false, &holes, &names);
                    self.mark_skipped(&[(index, holes, true)], &names);
                }
                self.status = Status::SUCCESS;
                return Flow::Next;
            }
            let endless = holes.is_empty() && turns > 0 && is_constant(condition);
            if endless {
                return Flow::Next;
            }
            if let Some(flow) = self.turn(body, &mut turns, condition_span) {
                return flow;
            }
        }
    }

    /// One turn of a loop; a flow when the loop ends with it.
    fn turn(&mut self, body: &List, turns: &mut u32, span: Span) -> Option<Flow> {
        *turns += 1;
        if *turns > limits::LOOP_TURNS || !self.spend(1, span) {
            let message = format!("this loop runs more than {} times; it is left here", limits::LOOP_TURNS);
            self.notes.report(Diagnostic::error("too-much-work", message).at(span));
            self.steps_left = self.steps_left.min(limits::STEPS / 10);
            return Some(if self.steps_left == 0 { Flow::Stop } else { Flow::Next });
        }
        match self.run_list(body) {
            Flow::Next | Flow::Continue(0 | 1) => None,
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
        let first_local = self.locals.len();
        let flow = self.run_command(body);
        for (name, old) in self.locals.split_off(first_local).into_iter().rev() {
            match old {
                Some(slot) => self.variables.insert(name, slot),
                None => self.variables.remove(&name),
            };
        }
        self.positional = positional;
        if flow == Flow::Return { Flow::Next } else { flow }
    }
}

/// `while true` and `while :`: such a loop restarts the training; one turn shows it.
fn is_constant(condition: &List) -> bool {
    match condition.as_slice() {
        [statement] if statement.rest.is_empty() && statement.first.stages.len() == 1 => {
            match &statement.first.stages[0].kind {
                Kind::Simple(simple) => simple.words.len() == 1,
                _ => false,
            }
        }
        _ => false,
    }
}
