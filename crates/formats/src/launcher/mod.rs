//! Launchers of slime and miles that are Python programs: they build Megatron's command-line options as strings and
//! pass them to `execute_train` (`external_utils/command_utils.py` of both). The program is evaluated with its own
//! values, and the command that it would start is read as if it were a script's.

#[cfg(test)]
mod tests;

use crate::reader::Reader;
use crate::{Asked, Question, Reading};
use shardscope_python::follow::{CLOSE, NODES, OPEN, Outcome, Started, Value, follow, returned};
use shardscope_source::{Code, Diagnostic};
use std::fmt::Write as _;

/// These launchers as a format. Their texts are programs, so they are not offered as settings; the training
/// that they start is Megatron's.
#[derive(Debug)]
pub(crate) struct Launcher;

impl Reader for Launcher {
    fn name(&self) -> &'static str {
        "a launcher of slime or miles in Python"
    }

    fn about(&self) -> &'static str {
        "slime and miles: programs that put the options of `execute_train` together, followed with their own values, and the files of miles \
         that give a model's options"
    }
}

/// The function of a model's file that returns its options (miles: `scripts/models/*.py`).
const MODEL: &str = "model_args";

/// Whether a program starts a training in this way.
pub fn starts(program: &str) -> bool {
    let names = |line: &str| line.starts_with("import ") || line.starts_with("from ");
    program.contains("execute_train(")
        && program.lines().any(|line| names(line) && line.contains("external_utils.command_utils"))
}

/// Whether a program has more than one call that starts a training.
pub fn starts_several(program: &str) -> bool {
    program.matches("execute_train(").nth(1).is_some()
}

/// Whether a program defines the options of a model.
pub fn is_model(program: &str) -> bool {
    program.lines().any(|line| line.starts_with("def model_args("))
}

/// Numbers of nodes that are tried if a program starts nothing on one.
const NODES_TRIED: [u32; 9] = [2, 4, 6, 8, 12, 16, 24, 32, 64];

/// The command that a program starts, as a script; otherwise diagnostics and questions if the command is not known.
/// `variables` are those that the user supplies, `beside` returns other texts by name, including a model's options.
pub fn script(
    program: &str,
    variables: &[(String, String)],
    beside: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Box<Reading>> {
    if is_model(program) && !starts(program) {
        return model(program).ok_or_else(|| {
            let message = "options of a model that its program takes from elsewhere";
            reading_of(
                Diagnostic::error(Code::Python, message)
                    .hint("paste the line that starts the training, or name the model"),
            )
        });
    }
    let said =
        |message: String, hint: &str| Err(reading_of(Diagnostic::error(Code::Python, message).hint(hint)));
    match follow(program, variables) {
        Outcome::Starts(started) => Ok(command(&started, folder(program), beside)),
        Outcome::Stops(what) => {
            let what = what.lines().next().unwrap_or("");
            let message =
                format!("with the values that it has by itself, this program starts nothing: `{what}`");
            let hint = "change its values here to those that its command line gives";
            let mut reading = reading_of(Diagnostic::error(Code::Python, message).hint(hint));
            let starts = |nodes: &&u32| {
                let given = [(NODES.to_owned(), nodes.to_string())];
                matches!(follow(program, &given), Outcome::Starts(_))
            };
            // Most programs that start nothing on one node need more, and have layouts only for certain numbers.
            if let Some(nodes) = NODES_TRIED.iter().find(starts) {
                reading.questions.push(Question {
                    asks: Asked::Variable(NODES.to_owned()),
                    prompt: "On how many nodes does it run (--num-nodes)?".to_owned(),
                    choices: Vec::new(),
                    proposal: Some(nodes.to_string()),
                });
            }
            Err(reading)
        }
        Outcome::Open(what) => {
            let message =
                format!("what this program starts depends on {what}, which its text does not decide");
            said(message, "paste the command that it prints when it starts")
        }
        Outcome::Nothing => {
            let message = "a program that hands options to `execute_train`, which are not found here";
            said(message.to_owned(), "paste the command that it prints when it starts")
        }
    }
}

fn reading_of(said: Diagnostic) -> Box<Reading> {
    Box::new(Reading { diagnostics: vec![said], ..Reading::default() })
}

/// A model's options as assignments in a script.
fn model(program: &str) -> Option<String> {
    match returned(program, MODEL)? {
        Value::Text(text) if !text.contains(OPEN) => Some(format!("MODEL_ARGS='{}'\n", text.trim())),
        _ => None,
    }
}

/// The folder of the project whose functions a program calls; the words that it starts do not always say which.
fn folder(program: &str) -> &'static str {
    match () {
        () if program.contains("slime.utils") => "slime/",
        () if program.contains("miles.utils") => "miles/",
        () => "",
    }
}

fn command(started: &Started, folder: &str, beside: &dyn Fn(&str) -> Option<String>) -> String {
    let given = |name: &str| started.iter().find(|(keyword, _)| keyword == name).map(|(_, value)| value);
    let mut out = String::new();
    let mut shape = " ${MODEL_ARGS[@]}";
    match given("megatron_model_type") {
        None | Some(Value::None) => shape = "",
        Some(Value::Text(kind)) if !kind.contains([OPEN, '\'', '\n']) => {
            // slime's files are scripts, which are found among the texts like those of any script.
            let file = format!("scripts/models/{kind}.{}", if folder == "slime/" { "sh" } else { "py" });
            match beside(&file).as_deref().and_then(model) {
                Some(options) => out.push_str(&options),
                None => _ = writeln!(out, "source '{file}'"),
            }
        }
        // The user is asked for it as for any unset variable.
        Some(_) => out.push_str("source \"$MEGATRON_MODEL_TYPE\"\n"),
    }
    if let Some(Value::Map(variables)) = given("extra_env_vars") {
        for (name, value) in variables {
            if let (Value::Text(name), Value::Text(value)) = (name, value)
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !value.contains([OPEN, '\'', '\n'])
            {
                _ = writeln!(out, "export {name}='{value}'");
            }
        }
    }
    let program = match given("train_script") {
        Some(Value::Text(name)) if !name.contains([OPEN, ' ', '\n']) => name,
        _ => "train.py",
    };
    let options = given("train_args").map(Value::written).unwrap_or_default();
    let folder = if program.starts_with('/') { "" } else { folder };
    _ = writeln!(out, "ray job submit -- python3 {folder}{program}{shape} {}", shell(&options));
    out
}

/// Options as a line of a script: a value that only the program knows becomes a variable or a command substitution.
fn shell(options: &str) -> String {
    let mut out = String::with_capacity(options.len());
    for part in options.replace('\n', " ").split(OPEN) {
        let Some((name, rest)) = part.split_once(CLOSE) else {
            out.push_str(part);
            continue;
        };
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
        };
        match name.strip_prefix('$') {
            Some(variable) => _ = write!(out, "${{{}}}", plain(variable)),
            None => _ = write!(out, "$({})", plain(name).trim_matches('_')),
        }
        // An argument that is added under a condition ends before the next option.
        if rest.starts_with("--") {
            out.push(' ');
        }
        out.push_str(rest);
    }
    out
}
