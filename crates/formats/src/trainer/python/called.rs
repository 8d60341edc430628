//! Arguments with which a program calls its own functions.

use super::flow::{Calls, Flow};
use super::literal::call_end;
use super::names::is_of_name;
use shardscope_python::expression::parameters;
use shardscope_python::syntax::{Node, node};
use shardscope_python::value::Value;
use std::rc::Rc;

/// Most calls of one function that are followed, and bytes of each.
const MOST: usize = 8;
const LONGEST: usize = 4_000;
/// Most scopes around a statement.
const DEEPEST: usize = 8;

/// A parameter of a function that the program defines at its top level, and calls itself.
pub(super) struct Called<'a> {
    /// The statement with `def`.
    head: u32,
    default: Option<Node>,
    function: &'a str,
    name: String,
    /// Its place among the parameters.
    place: usize,
}

impl<'a> Called<'a> {
    /// The function around a statement that takes `name`. A decorator may give arguments of its own.
    pub(super) fn around(flow: &Flow<'a>, name: &str, at: u32) -> Option<Self> {
        /// Most parameters that are looked up; the calls of each are parsed.
        const PARAMETERS: u32 = 96;
        if flow.parameters.get() == PARAMETERS {
            return None;
        }
        flow.parameters.set(flow.parameters.get() + 1);
        let mut scope = flow.steps.get(at as usize)?.scope;
        for _ in 0..DEEPEST {
            let head = scope?;
            let step = flow.steps.get(head as usize)?;
            if flow.takes(head, name) {
                let text = step.statement.text;
                let before = head.checked_sub(1).and_then(|index| flow.steps.get(index as usize));
                let decorated = before.is_some_and(|step| step.statement.text.starts_with('@'));
                if step.statement.indent > 0 || decorated {
                    return None;
                }
                let open = text.find('(')?;
                let all = parameters(text.get(open..)?);
                let place = all.iter().position(|(known, _)| known == name)?;
                let default = all.into_iter().nth(place)?.1;
                let function = text.get("def ".len()..open)?.trim();
                return Some(Self { head, default, function, name: name.to_owned(), place });
            }
            scope = step.scope;
        }
        None
    }

    /// Its calls; none if there are more than are followed.
    fn calls(&self, flow: &Flow<'a>) -> Calls<'a> {
        /// Most functions that are looked up; each takes a pass over the text.
        const FUNCTIONS: usize = 12;
        if let Some(known) = flow.called.borrow().get(self.function) {
            return Rc::clone(known);
        }
        let full = flow.called.borrow().len() == FUNCTIONS;
        let found: Calls<'a> = if full { Rc::default() } else { self.found(flow).into() };
        if !full {
            flow.called.borrow_mut().insert(self.function, Rc::clone(&found));
        }
        found
    }

    fn found(&self, flow: &Flow<'a>) -> Vec<(u32, &'a str)> {
        let mut found = Vec::new();
        for (index, step) in (0_u32..).zip(&flow.steps) {
            let text = step.statement.text;
            if index == self.head || !text.contains(self.function) {
                continue;
            }
            for (at, _) in text.match_indices(self.function).take(MOST * MOST) {
                let open = at + self.function.len();
                let before = text.get(..at).unwrap_or_default();
                let named = before.chars().next_back().is_some_and(|sign| is_of_name(sign) || sign == '.');
                if named || text.as_bytes().get(open) != Some(&b'(') {
                    continue;
                }
                if before.rsplit('\n').next().unwrap_or_default().contains('#') {
                    continue;
                }
                if found.len() == MOST {
                    return Vec::new();
                }
                found.push((index, text.get(at..call_end(text, open)).unwrap_or_default()));
            }
        }
        found
    }

    /// The value on which all calls that may run agree; `runs` tells whether a statement does, and `value` what an
    /// expression in one comes to.
    pub(super) fn agreed(
        &self,
        flow: &Flow<'a>,
        runs: &dyn Fn(u32) -> Option<bool>,
        value: &dyn Fn(&Node, u32) -> Option<Value>,
    ) -> Option<Value> {
        let mut agreed: Option<Value> = None;
        for (step, written) in self.calls(flow).iter().copied() {
            if runs(step) == Some(false) {
                continue;
            }
            let found = match self.argument(written)? {
                Some(given) => value(&given, step),
                None => value(self.default.as_ref()?, self.head),
            }?;
            if agreed.as_ref().is_some_and(|agreed| *agreed != found) {
                return None;
            }
            agreed = Some(found);
        }
        agreed
    }

    /// The argument in a call, with an inner `None` if the default applies; `None` if arguments are unpacked.
    fn argument(&self, written: &str) -> Option<Option<Node>> {
        if written.len() > LONGEST
            || written.contains("(*")
            || written.contains(" *")
            || written.contains("\n*")
        {
            return None;
        }
        let Node::Call(_, arguments) = node(written) else { return None };
        let named = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some(self.name.as_str()));
        let placed = arguments.get(self.place).filter(|(keyword, _)| keyword.is_none());
        Some(named.or(placed).map(|(_, given)| given.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::Known;
    use super::super::names::Names;
    use super::super::options::Options;

    /// The value of a name where `HERE` stands.
    fn value(text: &str, name: &str) -> Option<String> {
        let known = Known::new(text, Options::new(text, 0, "", &Names::new(text), &[]));
        known.value(name, text.find("HERE")?)
    }

    #[test]
    fn a_parameter_has_the_value_on_which_its_calls_agree() {
        let program = |calls: &str| {
            format!(
                "def load(\n    name,\n    rank: int,  # of adapters\n    bits=4,\n) -> tuple:  # both\n    HERE(rank)\n\ndef main(rank=8, size: int = 2):\n    load('a', rank)\n\n{calls}\n"
            )
        };
        assert_eq!(value(&program("main()"), "rank").as_deref(), Some("8"));
        assert_eq!(value(&program("main(16)"), "rank").as_deref(), Some("16"));
        assert_eq!(value(&program("main(size=3, rank=32)"), "rank").as_deref(), Some("32"));
        assert_eq!(value(&program("main()"), "bits").as_deref(), Some("4"));
        // Calls that do not agree, that unpack, that never run, or that are not there.
        assert_eq!(value(&program("if a:\n    main(16)\nelse:\n    main(32)"), "rank"), None);
        assert_eq!(value(&program("main(**options)"), "rank"), None);
        assert_eq!(value(&program("if False:\n    main(16)\nmain(4)"), "rank").as_deref(), Some("4"));
        assert_eq!(value(&program("fire.run(main)"), "rank"), None);
        let decorated = program("main()").replace("def main", "@click.option('--rank', default=3)\ndef main");
        assert_eq!(value(&decorated, "rank"), None);
    }
}
