//! What a function of a program puts into the configuration that it returns: assignments to dotted names in order,
//! calls to other functions of the program, and calls that a dialect knows. Any other call may change anything, and
//! is reported.

use super::arithmetic::whole;
use super::branches::{Block, enter};
use super::expression::{Argument, Expression, expression};
use super::program::{Constants, Function};
use super::scope::{LARGEST, Scope};
use super::targets::{assignment, changed, unpacking};
use super::tree::{Scalar, Tree, below};
use std::rc::Rc;

/// Maximum depth of nested calls that are followed.
const DEEPEST: u32 = 8;
/// Total work: values visited by the statements that are run. Recipes take some 40,000 including everything they
/// call.
const MOST: usize = 200_000;
/// Work per statement in addition to its values.
const STATEMENT: usize = 20;

/// Calls that are known without their source.
pub trait Calls {
    /// The value of a call; `None` if unknown. The parts of a tuple are under their numbers, `0.` and `1.`.
    fn value(&self, name: &str, arguments: &[(Option<String>, Tree)]) -> Option<Tree>;
    /// What a call with this name assigns under its first argument; `None` if unknown.
    fn assigns(&self, name: &str, tree: &Tree) -> Option<Tree>;
    /// Whether a method with this name returns the object it is called on, as far as figures are concerned.
    fn gives_its_own(&self, _method: &str) -> bool {
        false
    }
    /// Whether a call with this name constructs a class whose fields are its keywords.
    fn is_class(&self, name: &str) -> bool {
        let last = name.rsplit('.').next().unwrap_or(name).trim_start_matches('_');
        last.starts_with(|first: char| first.is_ascii_uppercase())
    }
}

/// What a function returns, and the unknown calls on the way that may have changed it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What it returns.
    pub tree: Tree,
    /// Calls that may have changed it, by their names.
    pub unknown: Vec<String>,
}

/// Runs a function without arguments.
pub fn evaluate(functions: &[Function<'_>], calls: &dyn Calls, name: &str) -> Outcome {
    evaluate_with(functions, calls, name, Vec::new())
}

/// Runs a function with these arguments.
pub fn evaluate_with(
    functions: &[Function<'_>],
    calls: &dyn Calls,
    name: &str,
    arguments: Vec<(Option<String>, Tree)>,
) -> Outcome {
    let mut programs: Vec<&Constants<'_>> = Vec::new();
    for function in functions {
        let constants: &Constants<'_> = &function.constants;
        if programs.last().is_none_or(|last| !std::ptr::eq(*last, constants)) {
            programs.push(constants);
        }
    }
    let mut run = Run { functions, programs, calls, left: MOST, depth: 0, unknown: Vec::new() };
    let tree = match functions.iter().find(|function| function.name == name) {
        Some(function) => run.call(function, arguments).0,
        None => Tree::new(),
    };
    // The result of a call that is not followed may be anything.
    match tree.iter().find(|(path, scalar)| path.is_empty() && scalar.hole.is_some()) {
        Some((_, scalar)) => run.unknown.extend(scalar.hole.clone()),
        None if tree.is_empty() => run.unknown.push(name.to_owned()),
        None => {}
    }
    Outcome { tree, unknown: run.unknown }
}

struct Run<'a> {
    functions: &'a [Function<'a>],
    /// Constants of each program from which the functions come.
    programs: Vec<&'a Constants<'a>>,
    calls: &'a dyn Calls,
    left: usize,
    depth: u32,
    unknown: Vec<String>,
}

impl Run<'_> {
    /// What a call returns, and what it leaves in its parameters.
    fn call(&mut self, function: &Function<'_>, arguments: Vec<(Option<String>, Tree)>) -> (Tree, Tree) {
        if self.depth == DEEPEST {
            self.unknown.push(function.name.to_owned());
            return (Tree::new(), Tree::new());
        }
        self.depth += 1;
        let mut scope = Scope { values: Tree::new(), at: 0, constants: Rc::clone(&function.constants) };
        for (index, (name, default)) in function.parameters.iter().enumerate() {
            let given = arguments
                .iter()
                .find(|(keyword, _)| keyword.as_ref() == Some(name))
                .or_else(|| arguments.get(index).filter(|(keyword, _)| keyword.is_none()));
            match (given, default) {
                (Some((_, tree)), _) => scope.assign(name, tree.clone()),
                (None, Some(default)) => {
                    let tree = self.value(default, &mut scope);
                    scope.assign(name, tree);
                }
                (None, None) => {}
            }
        }
        let returned = self.body(function, &mut scope);
        self.depth -= 1;
        (returned, scope.values)
    }

    fn body(&mut self, function: &Function<'_>, scope: &mut Scope<'_>) -> Tree {
        let mut blocks: Vec<Block> = Vec::new();
        for statement in &function.body {
            if self.left == 0 {
                self.unknown.push(function.name.to_owned());
                break;
            }
            self.spend(STATEMENT + scope.values.len());
            let keyword = statement.text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("");
            let continues = matches!(keyword, "elif" | "else" | "except" | "finally");
            blocks.retain(|block| {
                block.indent < statement.indent || (continues && block.indent == statement.indent)
            });
            if matches!(
                keyword,
                "if" | "elif" | "else" | "for" | "while" | "with" | "try" | "except" | "finally"
            ) && statement.text.ends_with(':')
            {
                enter(&mut blocks, statement, keyword, scope);
                continue;
            }
            if blocks.iter().any(|block| block.runs == Ok(false)) {
                continue;
            }
            let undecided = blocks.iter().find_map(|block| block.runs.clone().err());
            scope.at = statement.start;
            match keyword {
                "return" if undecided.is_none() => {
                    let value = expression(statement.text.get("return".len()..).unwrap_or("").trim());
                    return self.value(&value, scope);
                }
                "return" | "import" | "from" | "assert" | "raise" | "pass" | "del" | "def" | "class" => {}
                _ => self.statement(statement.text, undecided, scope),
            }
        }
        Tree::new()
    }

    /// An assignment or a call.
    fn statement(&mut self, written: &str, undecided: Option<String>, scope: &mut Scope<'_>) {
        if let Some((targets, value)) = unpacking(written) {
            return self.unpack(&targets, value, undecided, scope);
        }
        let Some((target, value)) = assignment(written) else {
            if let Expression::Call(name, arguments) = expression(written) {
                self.effect(&name, &arguments, undecided, scope);
            }
            return;
        };
        let (target, value) = changed(target, expression(value));
        let mut tree = self.value(&value, scope);
        if let Some(condition) = undecided {
            tree = vec![(String::new(), Scalar { hole: Some(condition), at: scope.at, ..Scalar::default() })];
        }
        for (_, scalar) in &mut tree {
            if scalar.at == 0 {
                scalar.at = scope.at;
            }
        }
        // An attribute of something that was missing: `None` was replaced elsewhere.
        scope.assign(target, tree);
    }

    /// `first, second = call()`: the parts of a call whose result is known are under their numbers.
    fn unpack(&mut self, targets: &[&str], value: &str, undecided: Option<String>, scope: &mut Scope<'_>) {
        let whole = self.value(&expression(value), scope);
        for (number, target) in targets.iter().enumerate() {
            let mut part = if undecided.is_none() { below(&whole, &number.to_string()) } else { Tree::new() };
            if part.is_empty() {
                let hole = undecided.clone().unwrap_or_else(|| (*target).to_owned());
                part = vec![(String::new(), Scalar { hole: Some(hole), ..Scalar::default() })];
            }
            for (_, scalar) in part.iter_mut().filter(|(_, scalar)| scalar.at == 0) {
                scalar.at = scope.at;
            }
            self.spend(STATEMENT + part.len() + scope.values.len());
            if self.left == 0 {
                return;
            }
            scope.assign(target, part);
        }
    }

    /// A call for its effect on its first argument.
    fn effect(
        &mut self,
        name: &str,
        arguments: &[Argument],
        undecided: Option<String>,
        scope: &mut Scope<'_>,
    ) {
        let first = match arguments.first() {
            Some((None, Expression::Name(first))) => first.clone(),
            _ => return,
        };
        if !scope.holds(&first) {
            return;
        }
        if let Some(condition) = undecided {
            self.unknown.push(format!("{name} ({condition})"));
            return;
        }
        if let Some(assigned) = self.calls.assigns(name, &scope.below(&first)) {
            for (path, mut scalar) in assigned {
                scalar.at = scope.at;
                scope.assign(&format!("{first}.{path}"), vec![(String::new(), scalar)]);
            }
            return;
        }
        let functions = self.functions;
        let Some(function) = functions.iter().find(|function| function.name == name) else {
            self.unknown.push(name.to_owned());
            return;
        };
        let given = self.given(arguments, scope);
        let (_, left) = self.call(function, given);
        if let Some((parameter, _)) = function.parameters.first() {
            scope.assign(&first, below(&left, parameter));
        }
    }

    /// The value of a top-level name of the function's program, or of one that it imports: a name on which all
    /// programs that define it agree.
    fn constant(&mut self, name: &str, scope: &Scope<'_>) -> Option<String> {
        let of = |constants: &Constants<'_>| {
            constants.iter().find(|(known, _)| *known == name).and_then(|(_, value)| match value {
                Expression::Text(text) | Expression::Number(text) => Some(text.clone()),
                _ => None,
            })
        };
        self.spend(scope.constants.len());
        if let Some(own) = of(&scope.constants) {
            return Some(own);
        }
        self.spend(self.programs.len() * STATEMENT);
        // An imported name may be defined in several of the given files; if they disagree none is used, since the
        // import is not followed.
        let mut all = self.programs.iter().filter_map(|constants| of(constants));
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    fn spend(&mut self, work: usize) {
        self.left = self.left.saturating_sub(work);
    }

    fn given(&mut self, arguments: &[Argument], scope: &mut Scope<'_>) -> Vec<(Option<String>, Tree)> {
        arguments.iter().map(|(keyword, value)| (keyword.clone(), self.value(value, scope))).collect()
    }

    fn value(&mut self, value: &Expression, scope: &mut Scope<'_>) -> Tree {
        let at = scope.at;
        let plain = |text: &str| vec![(String::new(), Scalar { text: text.to_owned(), hole: None, at })];
        let open = |hole: &str| {
            vec![(String::new(), Scalar { text: String::new(), hole: Some(hole.to_owned()), at })]
        };
        match value {
            Expression::Text(text) | Expression::Number(text) => plain(text),
            Expression::Name(name) => match name.as_str() {
                "True" => plain("true"),
                "False" => plain("false"),
                "None" => plain(""),
                name if scope.holds(name) => scope.below(name),
                // A member of a module or enumeration, by its name.
                name if name.contains('.') && !scope.holds(name.split('.').next().unwrap_or(name)) => {
                    plain(name)
                }
                // An attribute that was never assigned has the default of its class.
                name if name.contains('.') => Tree::new(),
                name => match self.constant(name, scope) {
                    Some(text) => plain(&text),
                    None => self.calls.value(name, &[]).unwrap_or_else(|| open(name)),
                },
            },
            Expression::List(items) => {
                let mut words = Vec::with_capacity(items.len());
                for item in items {
                    match self.value(item, scope).as_slice() {
                        [(path, only)] if path.is_empty() && only.hole.is_none() => {
                            words.push(only.text.clone())
                        }
                        _ => return open("a list that is computed"),
                    }
                }
                plain(&format!("[{}]", words.join(",")))
            }
            Expression::Call(name, arguments) => {
                let given = self.given(arguments, scope);
                let functions = self.functions;
                if let Some(function) = functions.iter().find(|function| function.name == name) {
                    // The function's result may be known even if it cannot be followed.
                    let known = self.calls.value(name, &given);
                    let tree = self.call(function, given).0;
                    let open = tree.iter().any(|(path, scalar)| path.is_empty() && scalar.hole.is_some());
                    return known.filter(|_| open).unwrap_or(tree);
                }
                let own = name.rsplit_once('.').filter(|(_, method)| self.calls.gives_its_own(method));
                if let Some((object, _)) = own.filter(|(object, _)| scope.holds(object)) {
                    return scope.below(object);
                }
                if let Some(known) = self.calls.value(name, &given) {
                    return known;
                }
                if self.calls.is_class(name) {
                    let mut tree = plain(name);
                    for (keyword, value) in given {
                        let Some(keyword) = keyword else { continue };
                        self.spend(value.len());
                        if self.left == 0 {
                            return open("a configuration that is too large");
                        }
                        for (path, scalar) in value {
                            let path =
                                if path.is_empty() { keyword.clone() } else { format!("{keyword}.{path}") };
                            tree.push((path, scalar));
                        }
                        if tree.len() > LARGEST {
                            return open("a configuration that is too large");
                        }
                    }
                    return tree;
                }
                open(&format!("{name}()"))
            }
            Expression::Computed(left, sign, right) => {
                let [first, second] = [left, right].map(|side| self.value(side, scope));
                let scalar = |tree: &Tree| match tree.as_slice() {
                    [(path, only)] if path.is_empty() && only.hole.is_none() => Some(only.text.clone()),
                    _ => None,
                };
                if *sign == "or" {
                    return match scalar(&first) {
                        Some(text) if text.is_empty() => second,
                        Some(_) => first,
                        None => open("an expression that is not read"),
                    };
                }
                match (scalar(&first), scalar(&second)) {
                    (Some(left), Some(right)) => match whole(&left, sign, &right) {
                        Some(result) => plain(&result),
                        None => open("an expression that is not read"),
                    },
                    _ => open("an expression that is not read"),
                }
            }
            Expression::Unknown => open("an expression that is not read"),
        }
    }
}
