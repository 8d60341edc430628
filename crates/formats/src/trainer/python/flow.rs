//! The statements of a program in order: what its names are assigned, and which branches lead to a place. Loops are
//! treated as if they ran once; a function's arguments are resolved elsewhere.

use super::names::is_of_name;
use shardscope_python::expression::parameters;
use shardscope_python::statements::{Statement, statements};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// Most statements of a program that are examined; assignments after them are ignored.
const MOST: usize = 20_000;
/// Most headers around one statement, and branches of one `if`, that are followed.
pub(super) const DEEPEST: usize = 32;
/// Most assignments of one name that are examined, the nearest first.
const LOOKED_AT: usize = 16;

/// How a statement's header affects the block below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    If,
    Elif,
    Else,
    /// A block that may or may not run for reasons that no condition states, such as an exception handler.
    Perhaps,
    /// A function or class, which has its own names.
    Scope,
    /// Loops, `with`, `try`.
    Plain,
}

/// The value that an assignment gives a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given<'a> {
    /// The expression after the sign.
    Value(&'a str),
    /// The previous value, changed by an arithmetic operator and this operand: `steps //= 8`.
    Changed(&'static str, &'a str),
    /// A key and its new value in the dictionary that the name held: `options["fp16"] = True`.
    Item(&'a str, &'a str),
    /// Something that is not followed: a loop variable, a part of a sequence.
    Open,
}

pub(super) struct Step<'a> {
    pub(super) statement: Statement<'a>,
    /// The header above it.
    parent: Option<u32>,
    /// For an `elif` or `else`: the branch before it.
    before: Option<u32>,
    /// The enclosing function or class.
    pub(super) scope: Option<u32>,
    header: Option<Header>,
}

/// A program's statements.
#[derive(Default)]
pub(super) struct Flow<'a> {
    pub(super) steps: Vec<Step<'a>>,
    assigned: HashMap<&'a str, Vec<(u32, Given<'a>)>>,
    /// The calls of functions that were looked up.
    pub(super) called: RefCell<HashMap<&'a str, Calls<'a>>>,
    /// Parameters that were looked up.
    pub(super) parameters: Cell<u32>,
}

/// Calls of one function, each with its statement.
pub(super) type Calls<'a> = Rc<[(u32, &'a str)]>;

impl<'a> Flow<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut flow = Self::default();
        // Open headers, each indented less than the next.
        let mut open: Vec<u32> = Vec::new();
        for (index, statement) in (0_u32..).zip(statements(text).into_iter().take(MOST)) {
            let mut sibling = None;
            while let Some(last) = open.last().copied() {
                let indent = flow.steps[last as usize].statement.indent;
                if indent < statement.indent {
                    break;
                }
                sibling = Some(last).filter(|_| indent == statement.indent);
                open.pop();
            }
            let parent = open.last().copied();
            let scope = parent.and_then(|parent| {
                let above = &flow.steps[parent as usize];
                if above.header == Some(Header::Scope) { Some(parent) } else { above.scope }
            });
            let header = header(statement.text);
            let continues = matches!(header, Some(Header::Elif | Header::Else));
            let of_if =
                |index: &u32| matches!(flow.steps[*index as usize].header, Some(Header::If | Header::Elif));
            let before = sibling.filter(|_| continues).filter(of_if);
            if header.is_some() {
                open.push(index);
            }
            flow.steps.push(Step { statement, parent, before, scope, header });
            flow.assign(index, statement.text);
        }
        flow
    }

    /// The statement that contains a position.
    pub(super) fn step(&self, at: usize) -> Option<u32> {
        let behind = self.steps.partition_point(|step| step.statement.start <= at);
        u32::try_from(behind.checked_sub(1)?).ok()
    }

    /// Records a statement's assignments.
    fn assign(&mut self, index: u32, text: &'a str) {
        let keyword = text.split(|sign: char| !sign.is_ascii_alphabetic()).next().unwrap_or("");
        let mut give = |name: &'a str, given| {
            let name = name.trim().trim_matches(['(', ')', '*']);
            if !name.is_empty() && name.chars().all(|sign| is_of_name(sign) || sign == '.') {
                self.assigned.entry(name).or_default().push((index, given));
            }
        };
        match keyword {
            "for" => {
                let names = text
                    .get("for".len()..)
                    .and_then(|rest| rest.split_once(" in "))
                    .map_or("", |(names, _)| names);
                return names.split(',').for_each(|name| give(name, Given::Open));
            }
            "with" => {
                let named = text.split(" as ").skip(1);
                return named.for_each(|rest| give(rest.split([',', ':']).next().unwrap_or(""), Given::Open));
            }
            "if" | "elif" | "else" | "while" | "try" | "except" if header(text).is_none() => {
                // A block on the same line as its header.
                if let Some((target, _)) = text.rsplit_once(": ").and_then(|(_, rest)| rest.split_once(" = "))
                {
                    target.split(',').for_each(|name| give(name, Given::Open));
                }
                return;
            }
            "def" | "class" | "return" | "import" | "from" | "if" | "elif" | "while" | "assert" | "async" => {
                return;
            }
            _ => {}
        }
        let Some(sign) = equals_sign(text) else {
            // `config.update(…)`: its assigned value no longer holds.
            let method = text.split('(').next().and_then(|name| name.rsplit_once('.'));
            let changed = method.filter(|(_, method)| {
                matches!(*method, "update" | "append" | "extend" | "pop" | "setdefault")
            });
            return changed.into_iter().for_each(|(name, _)| give(name, Given::Open));
        };
        let (Some(target), Some(value)) = (text.get(..sign), text.get(sign + 1..)) else { return };
        for sign in ["//", "**", "+", "-", "*", "/", "%", "|"] {
            if let Some(name) = target.strip_suffix(sign) {
                return give(
                    name,
                    if sign == "|" { Given::Open } else { Given::Changed(sign, value.trim()) },
                );
            }
        }
        // `name: Type = value`
        let target = target.split_once(':').map_or(target, |(name, _)| name);
        if let Some((name, key)) = target.split_once('[') {
            let key = key.trim_end().strip_suffix(']').unwrap_or_default();
            let quoted = |quote: char| key.strip_prefix(quote)?.strip_suffix(quote);
            let key = quoted('"').or_else(|| quoted('\'')).filter(|key| !key.contains(['"', '\'']));
            return give(name, key.map_or(Given::Open, |key| Given::Item(key, value.trim())));
        }
        if !target.contains(',') {
            return give(target, Given::Value(value.trim()));
        }
        let names: Vec<&str> = target.split(',').collect();
        let plain = !value.contains(['(', '[', '{']);
        let values: Vec<&str> = value.split(" #").next().unwrap_or("").split(',').map(str::trim).collect();
        for (at, name) in names.iter().enumerate() {
            let pairs = plain && values.len() == names.len();
            give(name, if pairs { Given::Value(values[at]) } else { Given::Open });
        }
    }

    /// Assignments of a name before a statement within the same function, otherwise in the enclosing scopes; the
    /// nearest first, each with its statement.
    pub(super) fn given(&self, name: &str, at: u32) -> Vec<(u32, Given<'a>)> {
        let Some(all) = self.assigned.get(name) else { return Vec::new() };
        let mut scope = self.steps.get(at as usize).and_then(|step| step.scope);
        let own = scope;
        loop {
            // A function runs after the statements around it.
            let within = |(index, _): &&(u32, Given<'a>)| {
                self.steps[*index as usize].scope == scope && (*index < at || scope != own)
            };
            let found: Vec<(u32, Given<'a>)> =
                all.iter().rev().filter(within).take(LOOKED_AT).copied().collect();
            if !found.is_empty() {
                return found;
            }
            let Some(function) = scope else { return found };
            if self.takes(function, name) {
                return found;
            }
            scope = self.steps[function as usize].scope;
        }
    }

    /// Whether a function has a parameter of that name.
    pub(super) fn takes(&self, function: u32, name: &str) -> bool {
        let text = self.steps[function as usize].statement.text;
        text.starts_with("def ")
            && text.find('(').is_some_and(|open| {
                parameters(text.get(open..).unwrap_or("")).iter().any(|(parameter, _)| parameter == name)
            })
    }

    /// The statements of a top-level function.
    pub(super) fn function(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let named = |step: &Step<'_>| {
            let head = step.statement.text.strip_prefix("def ").and_then(|head| head.strip_prefix(name));
            step.statement.indent == 0 && head.is_some_and(|rest| rest.starts_with('('))
        };
        let first = self.steps.iter().position(named).map_or(self.steps.len(), |at| at + 1);
        let inside = self.steps.get(first..).unwrap_or_default().iter();
        inside.take_while(|step| step.statement.indent > 0).map(|step| step.statement.text)
    }

    /// The header of the `if` in whose different branches two statements are, the first one in an earlier branch.
    pub(super) fn parted(&self, first: u32, second: u32) -> Option<u32> {
        let above = self.above(first);
        let branch = self.above(second).into_iter().find(|header| {
            let mut before = self.steps[*header as usize].before;
            (0..DEEPEST).any(|_| {
                let branch = before;
                before = before.and_then(|branch| self.steps[branch as usize].before);
                branch.is_some_and(|branch| above.contains(&branch))
            })
        })?;
        let mut head = branch;
        for _ in 0..DEEPEST {
            head = self.steps[head as usize].before.unwrap_or(head);
        }
        Some(head)
    }

    /// The assignment of a class's field.
    pub(super) fn field(&self, class: &str, name: &str) -> Option<Given<'a>> {
        let all = self.assigned.get(name)?;
        all.iter().find_map(|(index, given)| {
            let scope = self.steps[*index as usize].scope?;
            let head = self.steps[scope as usize].statement.text.strip_prefix("class ")?;
            let rest = head.strip_prefix(class)?;
            rest.starts_with(['(', ':']).then_some(*given)
        })
    }

    /// Headers above a statement within its function, the nearest first.
    fn above(&self, at: u32) -> Vec<u32> {
        let mut out = Vec::new();
        let mut next = self.steps.get(at as usize).and_then(|step| step.parent);
        while let Some(index) = next.filter(|_| out.len() < DEEPEST) {
            let step = &self.steps[index as usize];
            if step.header == Some(Header::Scope) {
                break;
            }
            out.push(index);
            next = step.parent;
        }
        out
    }

    /// Whether a statement runs; `None` if a condition on its way is undecided; `holds` evaluates a
    /// condition, given the statement that contains it. `seen_from`: a statement that is known to run, so
    /// that the branches around both run.
    pub(super) fn runs(
        &self,
        at: u32,
        seen_from: Option<u32>,
        holds: &dyn Fn(&'a str, u32) -> Option<bool>,
    ) -> Option<bool> {
        let around = seen_from.map(|index| self.above(index)).unwrap_or_default();
        let mut all = Some(true);
        let mut meet = |holds: Option<bool>| match (all, holds) {
            (Some(false), _) | (_, Some(false)) => all = Some(false),
            (_, None) => all = None,
            _ => {}
        };
        for index in self.above(at) {
            if around.contains(&index) {
                break;
            }
            let mut before = Some(index);
            let mut branches = 0;
            while let Some(branch) = before.filter(|_| branches < DEEPEST) {
                branches += 1;
                let step = &self.steps[branch as usize];
                // Another branch of the same `if` leads to `seen_from`.
                if branch != index && around.contains(&branch) || self.leads(&around, index) {
                    meet(Some(false));
                    break;
                }
                let condition = |keyword: &str| condition(step.statement.text, keyword);
                let held = match step.header {
                    Some(Header::If) => holds(condition("if"), branch),
                    Some(Header::Elif) => holds(condition("elif"), branch),
                    Some(Header::Perhaps) => None,
                    _ => Some(true),
                };
                let is_other = step.header == Some(Header::Else);
                meet(if branch == index || is_other { held } else { held.map(|holds| !holds) });
                before = step.before;
            }
        }
        all
    }

    /// Whether one of these headers is a later branch of the same `if`.
    fn leads(&self, around: &[u32], index: u32) -> bool {
        around.iter().any(|header| {
            let mut before = self.steps[*header as usize].before;
            let mut branches = 0;
            while let Some(branch) = before.filter(|_| branches < DEEPEST) {
                if branch == index {
                    return true;
                }
                branches += 1;
                before = self.steps[branch as usize].before;
            }
            false
        })
    }
}

/// The position of an assignment's sign, outside of brackets and strings.
fn equals_sign(text: &str) -> Option<usize> {
    /// Bytes of a target that are searched.
    const LONGEST: usize = 400;
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    for (at, sign) in bytes.iter().enumerate().take(LONGEST) {
        match sign {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' | b'\'' | b'#' if depth == 0 => return None,
            b'=' if depth == 0 => {
                let compares = bytes.get(at + 1) == Some(&b'=')
                    || at > 0 && matches!(bytes[at - 1], b'!' | b'<' | b'>' | b'=');
                return (!compares).then_some(at);
            }
            _ => {}
        }
    }
    None
}

/// The condition between a keyword and the colon.
fn condition<'a>(text: &'a str, keyword: &str) -> &'a str {
    let text = text.split(" #").next().unwrap_or(text).trim_end();
    text.strip_prefix(keyword).and_then(|rest| rest.strip_suffix(':')).unwrap_or("").trim()
}

/// The kind of header that a statement is, if its block is below it.
fn header(text: &str) -> Option<Header> {
    // Comments may stand behind the parameters of a function, one on a line.
    let last = text.rsplit('\n').next().unwrap_or(text);
    if !last.split(" #").next().unwrap_or(last).trim_end().ends_with(':') {
        return None;
    }
    let keyword = text.split(|sign: char| !sign.is_ascii_alphabetic()).next()?;
    Some(match keyword {
        "if" => Header::If,
        "elif" => Header::Elif,
        "else" => Header::Else,
        "except" => Header::Perhaps,
        "def" | "class" => Header::Scope,
        "async" if text.starts_with("async def ") => Header::Scope,
        "for" | "while" | "with" | "try" | "finally" | "async" => Header::Plain,
        _ => return None,
    })
}
