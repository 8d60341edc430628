//! The values of names, attributes and calls in a launcher.

use super::known::{
    BASE, CONSTANTS, HARMLESS, HELD, LOGGED, NODES, SILENT, TRUE_ON_POLICY, builtin, is_environment, pattern,
    switch,
};
use super::run::{Flow, Frame, LONGEST, Run, STARTS, name};
use super::scan::assignment;
use super::value::{Value, binary, method, put};
use crate::syntax::{Node, node};

impl<'a> Run<'a> {
    pub(crate) fn value(&mut self, read: &Node, frame: &mut Frame) -> Value {
        if !self.spend(1) {
            return Value::Open("a program that is too long".to_owned());
        }
        match read {
            Node::Text(text) => Value::Text(text.clone()),
            Node::Whole(number) => Value::Whole(*number),
            Node::Number(number) => Value::Number(number.clone()),
            Node::Opaque => Value::Open("an expression that is not read".to_owned()),
            Node::Name(known) => self.named(known, frame),
            Node::Joined(parts) => {
                let mut text = String::new();
                for part in parts {
                    text.push_str(&self.value(part, frame).written());
                }
                if text.len() > LONGEST || !self.spend(text.len() / 64) {
                    return Value::Open("a text that is too long".to_owned());
                }
                Value::Text(text)
            }
            Node::List(items) => Value::List(items.iter().map(|item| self.value(item, frame)).collect()),
            Node::Map(items) if !items.is_empty() && items.iter().all(|(key, _)| key.is_none()) => {
                Value::List(items.iter().map(|(_, item)| self.value(item, frame)).collect())
            }
            Node::Map(items) => {
                let mut out = Vec::new();
                for (key, value) in items {
                    let value = self.value(value, frame);
                    match (key, value) {
                        (Some(Node::Opaque), Value::Map(more)) => {
                            more.into_iter().for_each(|(key, value)| put(&mut out, key, value))
                        }
                        (Some(Node::Opaque) | None, other) => {
                            return Value::Open(other.unknown().unwrap_or("a set").to_owned());
                        }
                        (Some(key), value) => put(&mut out, self.value(key, frame), value),
                    }
                }
                Value::Map(out)
            }
            Node::Not(of) => match self.value(of, frame).holds() {
                Ok(holds) => Value::Flag(!holds),
                Err(what) => Value::Open(what),
            },
            Node::Either(parts) => {
                let [condition, then, other] = &**parts;
                match self.value(condition, frame).holds() {
                    Ok(true) => self.value(then, frame),
                    Ok(false) => self.value(other, frame),
                    Err(what) => Value::Open(what),
                }
            }
            Node::Binary(sign, left, right) => self.joined(sign, left, right, frame),
            Node::Attribute(of, field) => match (self.value(of, frame), &**of) {
                (Value::Object(number), _) => self.field(number, field),
                (Value::Open(_), Node::Name(_)) if CONSTANTS.iter().any(|(known, _)| known == field) => {
                    self.named(field, frame)
                }
                (Value::Map(items), _) => {
                    let found = items.iter().find(|(key, _)| *key == Value::text(field));
                    found.map_or(Value::Open(field.clone()), |(_, value)| value.clone())
                }
                (other, _) => Value::Open(format!("{}.{field}", other.unknown().unwrap_or("a value"))),
            },
            Node::Item(of, key) => {
                let key = self.value(key, frame);
                if is_environment(of) {
                    let given = self.variables.iter().find(|(name, _)| *name == key.written());
                    let open = || Value::Open(format!("${}", key.written()));
                    return given.map_or_else(open, |(_, value)| Value::text(value));
                }
                let held = self.value(of, frame);
                let found = match (&held, &key) {
                    (Value::Map(items), key) if key.unknown().is_none() => {
                        items.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
                    }
                    (Value::List(items), Value::Whole(at)) => {
                        usize::try_from(*at).ok().and_then(|at| items.get(at)).cloned()
                    }
                    _ => None,
                };
                found.unwrap_or_else(|| {
                    Value::Open(key.unknown().or(held.unknown()).unwrap_or("a key").to_owned())
                })
            }
            Node::Call(called, arguments) => {
                let given: Vec<(Option<String>, Value)> = arguments
                    .iter()
                    .map(|(keyword, value)| (keyword.clone(), self.value(value, frame)))
                    .collect();
                self.called(called, &given, frame)
            }
        }
    }

    fn joined(&mut self, sign: &str, left: &Node, right: &Node, frame: &mut Frame) -> Value {
        let first = self.value(if sign == ":=" { right } else { left }, frame);
        match (sign, first.holds()) {
            (":=", _) => {
                if let Node::Name(target) = left {
                    name(frame, target, first.clone());
                }
                first
            }
            ("or", Ok(true)) | ("and", Ok(false)) => first,
            ("or", Ok(false)) | ("and", Ok(true)) => self.value(right, frame),
            // A variable that the text does not set has no value here.
            ("or", Err(what)) if what.starts_with('$') => self.value(right, frame),
            ("or" | "and", Err(_)) => match (self.value(right, frame).holds(), sign) {
                (Ok(false), "and") => Value::Flag(false),
                (Ok(true), "or") => Value::Flag(true),
                _ => first,
            },
            _ => {
                let second = self.value(right, frame);
                binary(&first, sign, &second)
            }
        }
    }

    fn named(&mut self, known: &str, frame: &Frame) -> Value {
        let of = |frame: &Frame| {
            frame.iter().rev().find(|(name, _)| name == known).map(|(_, value)| value.clone())
        };
        match known {
            "None" => return Value::None,
            "True" | "False" => return Value::Flag(known == "True"),
            _ => {}
        }
        if let Some(value) = of(frame).or_else(|| of(&self.globals)) {
            return if self.spend(value.weight()) { value } else { Value::None };
        }
        match CONSTANTS.iter().find(|(name, _)| *name == known) {
            Some((_, written)) => self.value(&node(written), &mut Frame::new()),
            None => Value::Open(known.to_owned()),
        }
    }

    /// Whether an object states that training is not made bitwise equal to generation.
    fn is_off(&self, given: &[Value]) -> bool {
        given.iter().any(|one| {
            let Value::Object(number) = one else { return false };
            let fields = self.objects.get(*number).map_or(&[][..], |(_, fields)| fields);
            fields.iter().any(|(field, value)| field == "true_on_policy" && *value == Value::Flag(false))
        })
    }

    /// An attribute of an object: a field, or a property of its class.
    fn field(&mut self, number: usize, field: &str) -> Value {
        let Some((class, fields)) = self.objects.get(number) else { return Value::None };
        if let Some((_, value)) = fields.iter().find(|(known, _)| known == field) {
            return value.clone();
        }
        let property = self.function(class, field);
        let property =
            property.filter(|at| self.program.functions.get(*at).is_some_and(|one| one.is_property));
        match property {
            Some(function) => self.result(function, &[], Some(Value::Object(number))),
            None => Value::Open(field.to_owned()),
        }
    }

    /// A function's result; a program that stops in it starts nothing.
    fn result(&mut self, function: usize, given: &[(Option<String>, Value)], own: Option<Value>) -> Value {
        match self.enter(function, given, own) {
            Flow::Return(value) => value,
            Flow::On => Value::None,
            Flow::Stop(said) => {
                self.stopped.get_or_insert(said);
                Value::None
            }
        }
    }

    /// A new object of a class of the program.
    pub(crate) fn made(&mut self, class: &str, given: &[(Option<String>, Value)]) -> Option<Value> {
        let at = self.program.classes.iter().position(|known| known.name == class)?;
        let mut fields = Frame::new();
        self.fields(at, &mut fields, 0);
        for (at, (keyword, value)) in given.iter().enumerate() {
            let field = keyword.clone().or_else(|| fields.get(at).map(|(name, _)| name.clone()));
            if let Some(field) = field {
                name(&mut fields, &field, value.clone());
            }
        }
        let number = self.objects.len();
        let class = self.program.classes.get(at)?.name;
        self.objects.push((class, fields));
        if let Some(after) = self.function(class, "__post_init__") {
            self.result(after, &[], Some(Value::Object(number)));
        }
        Some(Value::Object(number))
    }

    /// The fields of a class, with those of its base class first.
    fn fields(&mut self, class: usize, fields: &mut Frame, depth: u32) {
        let Some(known) = self.program.classes.get(class) else { return };
        let (bases, body) = (known.bases, known.body.clone());
        let base = bases.rsplit('.').next().unwrap_or("").trim();
        if base == BASE {
            for (field, written) in HELD {
                let value = self.value(&node(written), &mut Frame::new());
                name(fields, field, value);
            }
            let nodes = self.variables.iter().find(|(name, _)| name == NODES);
            if let Some(count) = nodes.and_then(|(_, count)| count.parse().ok()) {
                name(fields, "num_nodes", Value::Whole(count));
            }
        }
        let parent = self.program.classes.iter().position(|known| known.name == base);
        if let Some(parent) = parent.filter(|_| depth < 4) {
            self.fields(parent, fields, depth + 1);
        }
        for statement in body {
            let (field, written) = match (assignment(statement.text), statement.text.split_once(':')) {
                (Some((field, _, written)), _) => (field, written),
                // Given by whoever constructs the object.
                (None, Some((field, _))) => (field.trim(), field),
                (None, None) => continue,
            };
            let mut own = fields.clone();
            let value = match node(written) {
                // `field(default=…)`
                Node::Call(called, arguments) if *called == Node::Name("field".to_owned()) => {
                    let default = arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some("default"));
                    default
                        .map_or(Value::Open(field.to_owned()), |(_, default)| self.value(default, &mut own))
                }
                read => self.value(&read, &mut own),
            };
            name(fields, field, value);
        }
    }

    fn called(&mut self, called: &Node, given: &[(Option<String>, Value)], frame: &mut Frame) -> Value {
        let plain: Vec<Value> = given.iter().map(|(_, value)| value.clone()).collect();
        let (of, last) = match called {
            Node::Name(last) => (None, last.as_str()),
            Node::Attribute(of, last) => (Some(&**of), last.as_str()),
            _ => return Value::Open("a call".to_owned()),
        };
        if last == STARTS {
            let named = given.iter().filter_map(|(keyword, value)| Some((keyword.clone()?, value.clone())));
            self.started.get_or_insert(named.collect());
            return Value::None;
        }
        if SILENT.contains(&last) {
            return Value::text("");
        }
        let Some(of) = of else {
            if let Some(function) = self.function("", last) {
                return self.result(function, given, None);
            }
            if let Some(object) = self.made(last, given) {
                return object;
            }
            return match last {
                _ if TRUE_ON_POLICY.contains(&last) && self.is_off(&plain) => Value::Map(vec![
                    (Value::text("train_args"), Value::text("")),
                    (Value::text("env_vars"), Value::Map(Vec::new())),
                ]),
                // It may change what it is given.
                _ if !HARMLESS.contains(&last) && plain.iter().any(|one| matches!(one, Value::Object(_))) => {
                    self.lost.get_or_insert_with(|| format!("{last}()"));
                    Value::None
                }
                "get_bool_env_var" => switch(&plain),
                "moe_layer_freq" => pattern(given),
                _ => builtin(last, &plain),
            };
        };
        if last == "getenv" || last == "get" && is_environment(of) {
            let [Value::Text(variable), rest @ ..] = plain.as_slice() else {
                return Value::Open("$".to_owned());
            };
            if LOGGED.contains(&variable.as_str()) {
                return Value::None;
            }
            if let Some((_, value)) = self.variables.iter().find(|(name, _)| name == variable) {
                return Value::text(value);
            }
            // As bash reads `${NAME:-default}` if the text does not set the variable.
            let unset = || Value::Open(format!("${variable}"));
            return rest.first().filter(|default| **default != Value::None).cloned().unwrap_or_else(unset);
        }
        match last {
            "get_bool_env_var" => return switch(&plain),
            // The name of a directory.
            "create_run_id" => return Value::text("RUN_ID"),
            // Another variable that is off if unset.
            "get_env_enable_infinite_run" => return Value::Flag(false),
            _ => {}
        }
        let held = self.value(of, frame);
        let open = || Value::Open(format!("{last}()"));
        match (&held, last, plain.as_slice()) {
            (Value::Object(number), ..) => {
                let class = self.objects.get(*number).map_or("", |(class, _)| class);
                match self.function(class, last) {
                    Some(function) => self.result(function, given, Some(held)),
                    None => open(),
                }
            }
            (Value::Text(text), ..) => method(text, last, &plain).unwrap_or_else(open),
            (Value::Map(items), "get", [key, rest @ ..]) if key.unknown().is_none() => {
                let found = items.iter().find(|(known, _)| known == key).map(|(_, value)| value);
                found.or(rest.first()).cloned().unwrap_or(Value::None)
            }
            // A pattern that contains a letter which the text lacks.
            (Value::Open(module), "search" | "match", [Value::Text(pattern), Value::Text(text)])
                if module == "re" =>
            {
                let letters = pattern.rsplit([')', '^', '$']).find(|part| !part.is_empty()).unwrap_or("");
                let literal =
                    letters.chars().all(|letter| letter.is_ascii_alphabetic()) && !letters.is_empty();
                if literal
                    && !pattern.contains('|')
                    && text.contains(char::is_alphabetic)
                    && !text.contains(letters)
                {
                    Value::None
                } else {
                    open()
                }
            }
            _ => open(),
        }
    }
}
