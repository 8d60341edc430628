//! Follows a launcher to the call that starts its training, with its default values. Nothing is executed; an
//! undecided condition leaves everything under it open.

use super::scan::{Function, Program, assignment, head, inner, keyword, parts, program};
use super::value::{Value, binary, put};
use crate::statements::Statement;
use crate::syntax::{Node, node};

/// Total statements and values visited; the largest of miles' launchers takes some 3,000.
const MOST: usize = 30_000;
/// Maximum nesting of calls and blocks that are followed.
const DEEPEST: u32 = 24;
/// Longest text that is assembled. Unit: byte.
pub(crate) const LONGEST: usize = 1 << 16;
/// The function that starts the training.
pub(crate) const STARTS: &str = "execute_train";

/// The call that starts a training, by its keywords.
pub type Started = Vec<(String, Value)>;

/// Names with their values.
pub(crate) type Frame = Vec<(String, Value)>;

/// The outcome of a program.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The call's arguments.
    Starts(Started),
    /// With its default values it stops before that, with this message.
    Stops(String),
    /// What it starts depends on this unknown.
    Open(String),
    /// It starts nothing.
    Nothing,
}

pub(crate) enum Flow {
    On,
    Return(Value),
    Stop(String),
}

pub(crate) struct Run<'a> {
    pub(crate) program: Program<'a>,
    pub(crate) globals: Frame,
    pub(crate) objects: Vec<(&'a str, Frame)>,
    left: usize,
    depth: u32,
    pub(crate) started: Option<Started>,
    pub(crate) lost: Option<String>,
    /// Variables of the environment that the user gives.
    pub(crate) variables: &'a [(String, String)],
    /// The program's message if it stops inside an expression.
    pub(crate) stopped: Option<String>,
}

/// Follows a program to what it starts, with these environment variables.
#[must_use]
pub fn follow(text: &str, variables: &[(String, String)]) -> Outcome {
    let mut run = Run::over(text, variables);
    let Some(entry) = run.entry() else { return Outcome::Nothing };
    let stopped = match run.enter(entry, &[], None) {
        Flow::Stop(said) => run.stopped.or(Some(said)),
        _ => run.stopped,
    };
    match (run.started, run.lost, stopped) {
        (_, Some(what), _) => Outcome::Open(what),
        (Some(started), None, _) if started.iter().any(|(keyword, _)| keyword == "train_args") => {
            Outcome::Starts(started)
        }
        (None, None, Some(said)) => Outcome::Stops(said),
        _ => Outcome::Nothing,
    }
}

/// What a function of a program returns, with its parameters at their defaults.
#[must_use]
pub fn returned(text: &str, name: &str) -> Option<Value> {
    let mut run = Run::over(text, &[]);
    let entry = run.function("", name)?;
    let flow = run.enter(entry, &[], None);
    match flow {
        Flow::Return(value) if run.lost.is_none() => Some(value),
        _ => None,
    }
}

impl<'a> Run<'a> {
    fn over(text: &'a str, variables: &'a [(String, String)]) -> Self {
        let mut run = Self {
            program: program(text),
            globals: Frame::new(),
            objects: Vec::new(),
            left: MOST,
            depth: 0,
            started: None,
            lost: None,
            stopped: None,
            variables,
        };
        let top = run.program.top.clone();
        let mut globals = Frame::new();
        for statement in top.iter().filter(|statement| statement.indent == 0) {
            if let Some((target, "", value)) = assignment(statement.text) {
                let value = run.value(&node(value), &mut globals);
                run.assign(target, value, &mut globals);
            }
        }
        run.globals = globals;
        run
    }

    pub(crate) fn function(&self, class: &str, name: &str) -> Option<usize> {
        self.program.functions.iter().position(|function| function.name == name && function.class == class)
    }

    /// The function that starts the training, or the one that calls it with its arguments.
    fn entry(&self) -> Option<usize> {
        /// How many levels of callers are searched.
        const AROUND: u32 = 4;
        let calls = |function: &Function<'_>, name: &str| {
            let call = format!("{name}(");
            function.name != name && function.body.iter().any(|statement| statement.text.contains(&call))
        };
        let functions = &self.program.functions;
        let mut entry = functions.iter().position(|function| calls(function, STARTS))?;
        for _ in 0..AROUND {
            let function = functions.get(entry)?;
            let given = |(_, class, default): &(&str, &str, Option<&str>)| {
                default.is_some() || self.program.classes.iter().any(|known| known.name == *class)
            };
            if function.parameters.iter().all(given) {
                break;
            }
            let mut around = (0..functions.len())
                .filter(|at| functions.get(*at).is_some_and(|one| calls(one, function.name)));
            match (around.next(), around.next()) {
                (Some(only), None) => entry = only,
                _ => break,
            }
        }
        Some(entry)
    }

    /// Charges `work`; false if the budget is spent.
    pub(crate) fn spend(&mut self, work: usize) -> bool {
        self.left = self.left.saturating_sub(work);
        if self.left == 0 {
            self.lost.get_or_insert_with(|| "a program that is too long".to_owned());
        }
        self.left > 0
    }

    /// Runs a function; missing arguments take their defaults, and objects of classes are constructed as the program
    /// does.
    pub(crate) fn enter(
        &mut self,
        function: usize,
        given: &[(Option<String>, Value)],
        own: Option<Value>,
    ) -> Flow {
        let Some(called) = self.program.functions.get(function) else { return Flow::On };
        let (parameters, body) = (called.parameters.clone(), called.body.clone());
        if self.depth == DEEPEST || !self.spend(1 + body.len()) {
            return Flow::Return(Value::Open("calls inside calls".to_owned()));
        }
        self.depth += 1;
        let mut frame = Frame::new();
        let mut in_order =
            own.into_iter().chain(given.iter().filter(|one| one.0.is_none()).map(|one| one.1.clone()));
        for (name, class, default) in parameters {
            let keyword = given.iter().find(|one| one.0.as_deref() == Some(name)).map(|one| one.1.clone());
            let value = match (in_order.next().or(keyword), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.value(&node(default), &mut Frame::new()),
                (None, None) => self.made(class, &[]).unwrap_or_else(|| Value::Open(name.to_owned())),
            };
            frame.push((name.to_owned(), value));
        }
        let flow = self.block(&body, &mut frame);
        self.depth -= 1;
        flow
    }

    /// Runs statements.
    fn block(&mut self, all: &[Statement<'a>], frame: &mut Frame) -> Flow {
        if self.depth == DEEPEST {
            self.lost.get_or_insert_with(|| "blocks inside blocks".to_owned());
            return Flow::On;
        }
        self.depth += 1;
        let flow = self.statements(all, frame);
        self.depth -= 1;
        flow
    }

    fn statements(&mut self, all: &[Statement<'a>], frame: &mut Frame) -> Flow {
        let mut at = 0;
        // For a chain of branches: whether one was taken, or what is unknown about those so far.
        let mut chain: Result<bool, String> = Ok(false);
        while let Some(statement) = all.get(at) {
            let body = inner(all, at);
            at += 1 + body.len();
            // What comes after the start does not change it.
            if self.started.is_some() || !self.spend(1) {
                return Flow::On;
            }
            let word = keyword(statement.text);
            let flow = match word {
                "if" | "elif" | "else" => {
                    if word == "if" {
                        chain = Ok(false);
                    }
                    let holds = match (&chain, word) {
                        (Ok(true), _) => Ok(false),
                        (Err(what), _) => Err(what.clone()),
                        (Ok(false), "else") => Ok(true),
                        (Ok(false), _) => self.value(&node(head(statement.text)), frame).holds(),
                    };
                    let flow = self.branch(body, &holds, frame);
                    chain = match (chain, holds) {
                        (Ok(before), Ok(now)) => Ok(before || now),
                        (Err(what), _) | (_, Err(what)) => Err(what),
                    };
                    flow
                }
                "match" if !body.is_empty() => self.matched(statement, body, frame),
                "with" | "try" | "finally" => self.block(body, frame),
                "for" | "while" => self.branch(body, &Err("a loop".to_owned()), frame),
                "return" => return Flow::Return(self.value(&node(head(statement.text)), frame)),
                "raise" => return Flow::Stop(statement.text.to_owned()),
                "assert" => {
                    let asserted =
                        parts(head(statement.text), b',').first().map_or(Node::Opaque, |text| node(text));
                    match self.value(&asserted, frame).holds() {
                        Ok(false) => Flow::Stop(statement.text.to_owned()),
                        _ => Flow::On,
                    }
                }
                "except" | "def" | "class" | "import" | "from" | "pass" | "global" | "del" | "continue"
                | "break" => Flow::On,
                _ => {
                    self.plain(statement.text, frame);
                    Flow::On
                }
            };
            match (flow, &self.stopped) {
                (Flow::On, None) => {}
                (Flow::On, Some(said)) => return Flow::Stop(said.clone()),
                (other, _) => return other,
            }
        }
        Flow::On
    }

    /// A block under a condition.
    fn branch(&mut self, body: &[Statement<'a>], holds: &Result<bool, String>, frame: &mut Frame) -> Flow {
        match holds {
            Ok(true) => return self.block(body, frame),
            Ok(false) => return Flow::On,
            Err(_) => {}
        }
        let what = holds.as_ref().err().cloned().unwrap_or_default();
        for statement in body {
            if keyword(statement.text) == "return" || statement.text.contains(STARTS) {
                self.lost.get_or_insert_with(|| what.clone());
            }
            let Some((target, sign, _)) = assignment(statement.text) else { continue };
            let open = Value::Open(what.clone());
            let target = target.split('[').next().unwrap_or(target);
            let open = if sign == "+" { binary(&self.value(&node(target), frame), "+", &open) } else { open };
            self.assign(target, open, frame);
        }
        Flow::On
    }

    fn matched(&mut self, statement: &Statement<'a>, body: &[Statement<'a>], frame: &mut Frame) -> Flow {
        let subject = self.value(&node(head(statement.text)), frame);
        let mut at = 0;
        while let Some(case) = body.get(at) {
            let block = inner(body, at);
            at += 1 + block.len();
            let holds = self.fits(head(case.text), &subject, frame);
            match holds {
                Ok(false) => {}
                Ok(true) => return self.block(block, frame),
                // Neither this case nor the ones after it are decided.
                Err(_) => return self.branch(body, &holds, frame),
            }
        }
        Flow::On
    }

    /// Whether a value matches a case.
    fn fits(&mut self, pattern: &str, value: &Value, frame: &mut Frame) -> Result<bool, String> {
        let pattern = pattern.trim();
        let inside = pattern.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')).unwrap_or(pattern);
        let each = parts(inside, b',');
        if let Value::List(items) = value
            && items.len() == each.len()
            && self.spend(1)
        {
            let all: Vec<_> =
                each.iter().zip(items).map(|(part, item)| self.fits(part, item, frame)).collect();
            let no = all.contains(&Ok(false));
            return all.into_iter().find(|one| one.is_err()).filter(|_| !no).unwrap_or(Ok(!no));
        }
        let mut holds = Ok(false);
        for one in parts(inside, b'|') {
            // A name matches anything, and a class pattern is matched by its fields.
            let asked = match node(one.trim()) {
                Node::Name(name) if name == "_" => return Ok(true),
                Node::Name(name) if !matches!(name.as_str(), "True" | "False" | "None") => Value::Open(name),
                read => self.value(&read, frame),
            };
            match binary(value, "==", &asked).holds() {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                undecided => holds = undecided,
            }
        }
        holds
    }

    /// An assignment or a call.
    fn plain(&mut self, text: &str, frame: &mut Frame) {
        let Some((target, sign, value)) = assignment(text) else {
            self.value(&node(text), frame);
            return;
        };
        let mut value = self.value(&node(value), frame);
        if !sign.is_empty() {
            let before = self.value(&node(target), frame);
            value = binary(&before, sign, &value);
        }
        if matches!(&value, Value::Text(text) if text.len() > LONGEST) || !self.spend(value.weight()) {
            value = Value::Open("a text that is too long".to_owned());
        }
        self.assign(target, value, frame);
    }

    fn assign(&mut self, target: &str, value: Value, frame: &mut Frame) {
        let targets = parts(target, b',');
        if targets.len() > 1 {
            for (at, target) in targets.iter().enumerate() {
                let part = match &value {
                    Value::List(items) if items.len() == targets.len() => items.get(at).cloned(),
                    _ => None,
                };
                self.assign(target.trim(), part.unwrap_or_else(|| Value::Open((*target).to_owned())), frame);
            }
            return;
        }
        if let Some((name, key)) = target.strip_suffix(']').and_then(|inside| inside.split_once('[')) {
            let key = self.value(&node(key), frame);
            let mut held = self.value(&node(name), frame);
            match &mut held {
                Value::Map(items) if key.unknown().is_none() => put(items, key, value),
                other => *other = Value::Open(name.to_owned()),
            }
            return self.assign(name, held, frame);
        }
        if let Some((object, field)) = target.split_once('.') {
            if let Value::Object(number) = self.value(&node(object), frame)
                && let Some((_, fields)) = self.objects.get_mut(number)
            {
                name(fields, field, value);
            }
            return;
        }
        name(frame, target, value);
    }
}

/// Binds a name to a value.
pub(crate) fn name(frame: &mut Frame, name: &str, value: Value) {
    match frame.iter_mut().find(|(known, _)| known == name) {
        Some((_, held)) => *held = value,
        None => frame.push((name.to_owned(), value)),
    }
}
