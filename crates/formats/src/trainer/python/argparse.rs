//! Options that a program declares with Python's `argparse` or `click`, or as parameters of a function for
//! `fire`, with their literal defaults.

use super::literal::{call_end, literal, plain};
use super::names::Names;
use shardscope_python::expression::parameters;
use shardscope_python::value::{Names as Known, Value, value};

/// Most options that are read from one program.
const MOST: usize = 128;
const CALL: &str = ".add_argument(";
/// click's decorator, whose options are parameters of the function below it.
const DECORATOR: &str = "@click.option(";

/// An option's name as an attribute, its default in a settings file's notation, and the position of its declaration.
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) default: Option<String>,
    pub(super) place: (usize, usize),
}

/// The options of a program.
pub(super) fn declared(text: &str, names: &Names<'_>) -> Vec<Declared> {
    let calls = text.match_indices(CALL).take(MOST);
    calls.filter_map(|(at, _)| option(text, names, at + CALL.len() - 1)).collect()
}

/// The options of a program of click's.
pub(super) fn decorated(text: &str, names: &Names<'_>) -> Vec<Declared> {
    let calls = text.match_indices(DECORATOR).take(MOST);
    calls.filter_map(|(at, _)| option(text, names, at + DECORATOR.len() - 1)).collect()
}

fn option(text: &str, names: &Names<'_>, open: usize) -> Option<Declared> {
    let line = text.get(..open)?.rsplit('\n').next()?;
    if line.contains('#') {
        return None;
    }
    let end = call_end(text, open);
    let inner = text.get(open + 1..end)?.strip_suffix(')')?;
    let given = |key: &str| {
        inner.match_indices(key).find_map(|(at, _)| {
            let begins = inner.get(..at)?.trim_end().ends_with(',');
            let value = inner.get(at + key.len()..)?.trim_start().strip_prefix('=')?.trim_start();
            begins.then_some(value)
        })
    };
    // The first long name, or the value of `dest`.
    let dest = given("dest").and_then(|value| word(value));
    let long = || {
        let names = inner.split(',').map_while(|part| word(part.trim()));
        // click's switches have a name for either state: `--bf16/--no-bf16`.
        let name = names.filter_map(|name| name.strip_prefix("--")).next()?;
        Some(name.split('/').next().unwrap_or(name).to_owned())
    };
    let name = dest.map(str::to_owned).or_else(long)?.replace('-', "_");
    let flag = given("is_flag").filter(|value| value.starts_with("True")).map(|_| "store_true");
    let switched = given("action").and_then(|value| word(value)).or(flag);
    let default = match (given("default").and_then(|value| value_of(names, value)), switched) {
        (Some(default), _) => Some(default),
        (None, Some("store_true")) => Some("false".to_owned()),
        (None, Some("store_false")) => Some("true".to_owned()),
        // `None`, argparse's default, unless the option is required or its default is computed.
        (None, None)
            if given("default").is_none_or(|value| value.starts_with("None"))
                && given("required").is_none() =>
        {
            Some(String::new())
        }
        _ => None,
    };
    Some(Declared { name, default, place: (open, end) })
}

/// The parameters of the function that `fire.Fire` turns into a program.
pub(super) fn fired(text: &str) -> Vec<Declared> {
    let named =
        text.split_once("fire.Fire(").map(|(_, rest)| rest.split([')', ',']).next().unwrap_or("").trim());
    let Some(name) = named.filter(|name| !name.is_empty()) else { return Vec::new() };
    let head = format!("\ndef {name}(");
    let Some(open) = text.find(&head).map(|at| at + head.len() - 1) else { return Vec::new() };
    let end = call_end(text, open);
    let read = parameters(text.get(open..end).unwrap_or_default()).into_iter().take(MOST);
    read.map(|(name, default)| {
        let default = default.and_then(|default| value(&default, &Nothing)?.setting());
        Declared { name, default, place: (open, end) }
    })
    .collect()
}

/// A scope in which no name is known.
struct Nothing;

impl Known for Nothing {
    fn value(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// The quoted word with which a text begins.
fn word(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|sign| matches!(sign, '"' | '\''))?;
    text.get(1..)?.split(quote).next()
}

/// The literal that is a keyword's value, or that a top-level name is assigned once.
fn value_of(names: &Names<'_>, value: &str) -> Option<String> {
    let end = value.find([',', '\n', ')']).unwrap_or(value.len());
    let written = match word(value) {
        Some(inner) => value.get(..inner.len() + 2)?,
        None => value.get(..end)?.trim(),
    };
    if written == "None" {
        return None;
    }
    if let Some(value) = literal(written) {
        return Some(plain(value));
    }
    names.once(written).map(plain)
}

#[cfg(test)]
mod tests {
    use super::super::names::Names;
    use super::{declared, decorated};

    #[test]
    fn options_have_their_long_names_and_literal_defaults() {
        let text = "BASE = 'Qwen/Qwen3-8B'  # the smallest\np.add_argument('-m', \"--base-model\", default=BASE, help='a, default=3')\n\
            p.add_argument('--rank', type=int, default=16)\n# p.add_argument('--old', default=1)\np.add_argument('--q', action='store_true')\n\
            p.add_argument('--out', required=True)\np.add_argument('--n', dest='length', default=f(1))\np.add_argument('data')\n";
        let found: Vec<(String, Option<String>)> = declared(text, &Names::new(text))
            .into_iter()
            .map(|option| (option.name, option.default))
            .collect();
        let expected = [
            ("base_model", Some("Qwen/Qwen3-8B")),
            ("rank", Some("16")),
            ("q", Some("false")),
            ("out", None),
            ("length", None),
        ];
        assert_eq!(found, expected.map(|(name, default)| (name.to_owned(), default.map(str::to_owned))));
    }

    #[test]
    fn options_of_click_are_read_as_argparses() {
        let text = "@click.command()\n@click.option(\"--batch-size\", type=int, default=8, help=\"of a GPU\")\n@click.option(\n    \
            \"--checkpoint/--no-checkpoint\",\n    is_flag=True,\n    default=True,\n)\n@click.option('--push', is_flag=True)\n\
            @click.option('--deepspeed', type=str, default=None)\ndef main(**kwargs):\n    train(**kwargs)\n";
        let found: Vec<(String, Option<String>)> = decorated(text, &Names::new(text))
            .into_iter()
            .map(|option| (option.name, option.default))
            .collect();
        let expected = [("batch_size", "8"), ("checkpoint", "true"), ("push", "false"), ("deepspeed", "")];
        assert_eq!(found, expected.map(|(name, default)| (name.to_owned(), Some(default.to_owned()))));
    }
}
