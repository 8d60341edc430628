//! Settings files that a notebook or a program writes before it starts the training that reads them: a cell that begins
//! with `%%writefile`, `json.dump(args, open("train.json", "w"))`, `yaml.dump(settings, file)`, `file.write(text)`.

use super::assigned::{assigned, statement};
use super::commands::workload;
use super::detect::{TextKind, detect};
use super::{launch, notebook};
use shardscope_bash::{Environment, base_name};
use shardscope_config_tree::read_json;
use shardscope_python::syntax::{Node, node};
use shardscope_source::Source;
use std::cell::Cell;

/// Maximum number of texts examined, of files taken and of calls followed.
const MOST: usize = 8;
/// Maximum nesting of names and values that is followed.
const DEEPEST: usize = 6;
/// Maximum number of searches of a program for the value of a name.
const LOOKS: usize = 12;
/// Maximum number of calls examined, and of lines before a call in which its file is opened.
const CALLS: usize = 32;
const NEAR: usize = 200;
/// Calls that write their first argument to their second.
const DUMPS: [&str; 3] = ["json.dump(", "yaml.dump(", "yaml.safe_dump("];
/// The name under which the command in a notebook's cells is read beside the notebook.
pub(super) const CELLS: &str = "cells.sh";
/// A method call that writes to its own object.
const WRITE: &str = ".write(";

/// The files that the texts write and that the training they start reads, each once, as last written.
pub(super) fn files(source: &Source) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for (index, part) in source.parts().iter().enumerate().take(MOST) {
        let text = source.part_text(index);
        let is_notebook = text.trim_start().starts_with('{') && text.contains("\"cells\"");
        let calls = DUMPS.iter().chain([&WRITE]).any(|call| text.contains(call));
        if !(is_notebook && (calls || text.contains(notebook::WRITES)) || part.name.ends_with(".py") && calls)
        {
            continue;
        }
        let (program, mut found) = if is_notebook {
            let tree = read_json(text, part.span.start);
            let cells = notebook::cells(&tree).into_iter();
            let files = cells.filter_map(|cell| {
                notebook::file(&cell).map(|(name, text)| (name.to_owned(), text.to_owned()))
            });
            let files = files.collect();
            (notebook::program(&tree).unwrap_or_default(), files)
        } else {
            (text.to_owned(), Vec::new())
        };
        found.extend(by_calls(&program));
        // Files for generation, evaluation or conversion are not settings of a training.
        found.retain(|(name, text)| matches!(detect(name, text, 0), TextKind::Settings(..)));
        if found.is_empty() {
            continue;
        }
        let taken = taken(&program);
        for (name, text) in found.into_iter().filter(|(name, _)| taken(name)) {
            out.retain(|(known, _)| *known != name);
            if out.len() < MOST {
                out.push((name, text));
            }
        }
    }
    out
}

/// The command by which a notebook starts the program that one of its cells writes: it need not be asked for.
pub(super) fn line(source: &Source) -> Option<String> {
    source.parts().iter().enumerate().take(MOST).find_map(|(index, part)| {
        let text = source.part_text(index);
        if !text.trim_start().starts_with('{') || !text.contains(notebook::WRITES) {
            return None;
        }
        let tree = read_json(text, part.span.start);
        let cells = notebook::cells(&tree);
        let named = |cell: &'_ String| -> Option<String> {
            let first = cell.trim_start().strip_prefix(notebook::WRITES)?.lines().next()?;
            let name = base_name(first.split_ascii_whitespace().next_back()?);
            name.ends_with(".py").then(|| name.to_owned())
        };
        let written: Vec<String> = cells.iter().filter_map(named).collect();
        let script = workload(&notebook::program(&tree)?)?.script;
        let launch = launch::read(&Source::new(&script), &Environment::default());
        let program = launch.line.program.as_ref().map(|word| base_name(word.text()).to_owned());
        let starts = !launch.arguments.is_empty() && program.is_some_and(|name| written.contains(&name));
        starts.then_some(script)
    })
}

/// Whether the training command of a program names a file; if no command trains, any of its commands.
fn taken(program: &str) -> impl Fn(&str) -> bool {
    let script = workload(program).map(|work| work.script).unwrap_or_default();
    let words = launch::read(&Source::new(&script), &Environment::default()).arguments;
    move |name| {
        let names = |text: &str| base_name(text.rsplit('=').next().unwrap_or(text)) == name;
        if words.is_empty() { script.contains(name) } else { words.iter().any(|word| names(&word.text)) }
    }
}

/// A program whose calls are followed.
struct Program<'p> {
    text: &'p str,
    /// Remaining searches.
    looks: Cell<usize>,
}

/// What the calls of a program write, in source order.
fn by_calls(program: &str) -> Vec<(String, String)> {
    let followed = Program { text: program, looks: Cell::new(LOOKS) };
    let starts = DUMPS.iter().chain([&WRITE]).flat_map(|call| program.match_indices(call));
    let mut starts: Vec<(usize, &str)> = starts.collect();
    starts.sort_unstable();
    starts.into_iter().take(CALLS).filter_map(|(at, call)| followed.written(at, call)).collect()
}

impl Program<'_> {
    /// The last value assigned to a name before a position, and where.
    fn given(&self, name: &str, before: usize) -> Option<(Node, usize)> {
        self.looks.set(self.looks.get().checked_sub(1)?);
        assigned(name, self.text, before)
    }

    fn written(&self, at: usize, call: &str) -> Option<(String, String)> {
        // The name before the dot belongs to the call.
        let before = self.text.get(..at)?;
        let is_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        let at = if call == WRITE { before.trim_end_matches(is_name).len() } else { at };
        let Node::Call(function, arguments) = node(statement(self.text, at)) else { return None };
        let given = &arguments.first()?.1;
        let file = if call == WRITE {
            let Node::Attribute(of, _) = &*function else { return None };
            (**of).clone()
        } else {
            arguments.get(1)?.1.clone()
        };
        let name = base_name(&self.path(&file, at)?).to_owned();
        let text = self.content(given, at, DEEPEST)?;
        notebook::is_settings(&name).then_some((name, text))
    }

    /// The path of the file that is written to: `open("a.json", "w")`, or a name bound by
    /// `with open("a.json", "w") as file:`.
    fn path(&self, file: &Node, before: usize) -> Option<String> {
        let opened = match file {
            Node::Name(name) => {
                let text = self.text.get(..before)?;
                let line = text.lines().rev().take(NEAR).find(|line| {
                    line.trim_end()
                        .strip_suffix(':')
                        .is_some_and(|line| line.ends_with(&format!(" as {name}")))
                })?;
                let call = line.trim_start().strip_prefix("with ")?;
                node(call.get(..call.rfind(" as ")?)?)
            }
            other => other.clone(),
        };
        let Node::Call(function, arguments) = opened else { return None };
        let writes =
            |(_, value): &(Option<String>, Node)| matches!(value, Node::Text(mode) if mode.starts_with('w'));
        if *function != Node::Name("open".to_owned()) || !arguments.iter().skip(1).any(writes) {
            return None;
        }
        match &arguments.first()?.1 {
            Node::Text(path) => Some(path.clone()),
            Node::Name(name) => match self.given(name, before)?.0 {
                Node::Text(path) => Some(path),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is written: a text as it is, values as JSON; none if the program computes it.
    fn content(&self, given: &Node, before: usize, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        match given {
            Node::Text(text) => Some(text.clone()),
            Node::Name(name) => {
                let (value, at) = self.given(name, before)?;
                self.content(&value, at, depth)
            }
            // `yaml.safe_load(text)`: the text is YAML before and after.
            Node::Call(function, arguments)
                if function.dotted().is_some_and(|name| name.starts_with("yaml.")) =>
            {
                self.content(&arguments.first()?.1, before, depth)
            }
            other => self.json(other, before, depth),
        }
    }

    fn json(&self, value: &Node, before: usize, depth: usize) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        let pairs = |pairs: Vec<(String, &Node)>| {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| Some(format!("{}: {}", text(&key), self.json(value, before, depth)?)));
            Some(format!("{{{}}}", pairs.collect::<Option<Vec<_>>>()?.join(", ")))
        };
        match value {
            Node::Text(value) => Some(text(value)),
            Node::Whole(number) => Some(number.to_string()),
            Node::Number(number) => Some(number.clone()),
            Node::Name(name) => match name.as_str() {
                "True" => Some("true".to_owned()),
                "False" => Some("false".to_owned()),
                "None" => Some("null".to_owned()),
                name => {
                    let (value, at) = self.given(name, before)?;
                    self.json(&value, at, depth)
                }
            },
            Node::List(items) => {
                let items = items.iter().map(|item| self.json(item, before, depth));
                Some(format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(", ")))
            }
            Node::Map(entries) => pairs(
                entries
                    .iter()
                    .map(|(key, value)| match key {
                        Some(Node::Text(key)) => Some((key.clone(), value)),
                        _ => None,
                    })
                    .collect::<Option<_>>()?,
            ),
            Node::Call(function, arguments) if **function == Node::Name("dict".to_owned()) => pairs(
                arguments.iter().map(|(key, value)| Some((key.clone()?, value))).collect::<Option<_>>()?,
            ),
            _ => None,
        }
    }
}

/// A text in quotes, escaped for JSON.
fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for sign in value.chars() {
        match sign {
            '"' | '\\' => out.extend(['\\', sign]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            sign if sign.is_control() => {}
            sign => out.push(sign),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::by_calls;

    #[test]
    fn what_a_program_writes_is_taken_where_it_stands_there() {
        for (program, name, text) in [
            (
                "args = dict(\n  stage=\"sft\",\n  rank=8, lr=5e-5, on=True, off=None,\n  of=['a', \"b\\\"c\"],\n)\n\
                 json.dump(args, open(\"out/train.json\", \"w\", encoding=\"utf-8\"), indent=2)\n",
                "train.json",
                "{\"stage\": \"sft\", \"rank\": 8, \"lr\": 5e-5, \"on\": true, \"off\": null, \"of\": [\"a\", \"b\\\"c\"]}",
            ),
            (
                "text = \"\"\"a: 1\nb: 2\n\"\"\"\nloaded = yaml.safe_load(text)\npath = 'x/a.yaml'\n\
                 with open(path, 'w') as file:\n    yaml.dump(loaded, file)\n",
                "a.yaml",
                "a: 1\nb: 2\n",
            ),
            ("with open(\"a.yml\", \"w\") as f:\n    f.write(\"\"\"a: 1\"\"\")\n", "a.yml", "a: 1"),
            (
                "with open('a.json', mode='w') as f:\n    json.dump({'a': {'b': 1}}, f)\n",
                "a.json",
                "{\"a\": {\"b\": 1}}",
            ),
        ] {
            assert_eq!(by_calls(program), [(name.to_owned(), text.to_owned())], "{program}");
        }
        for program in [
            "json.dump(build(), open('a.json', 'w'))\n",
            "a = {'b': 1}\na = a | more\njson.dump(a, open('a.json', 'w'))\n",
            "a = {'b': 1}\na['b'] = more\njson.dump(a, open('a.json', 'w'))\n",
            "a = {'b': 1}\na.update(more)\njson.dump(a, open('a.json', 'w'))\n",
            "json.dump({'b': 1}, open('a.json'))\n",
            "with open('a.txt', 'w') as f:\n    f.write('a: 1')\n",
            "f.write('a: 1')\n",
            "a = a\njson.dump(a, open('a.json', 'w'))\n",
            "json.dump(",
        ] {
            assert_eq!(by_calls(program), [], "{program}");
        }
    }
}
