//! Commands by which a Python program or a notebook starts its training: `!torchrun …` in a cell,
//! `subprocess.run(["accelerate", "launch", …])`, `os.system("…")`. They are read like a script's; nothing is executed.

use super::assigned::{assigned, statement};
use super::estimator;
use super::formats::Workload;
use super::formats::workload_accelerator as accelerator;
use shardscope_plan::Field;
use shardscope_python::syntax::{Node, node};
use shardscope_source::{Code, Diagnostic};

/// Maximum number of commands taken from one program.
const MOST_COMMANDS: usize = 16;
/// How many names are followed in a row, each to its last assignment.
const DEEPEST: usize = 4;

/// Functions that start the program named by their first argument (`subprocess` of Python's library), and those of `os`
/// and of notebooks that take a shell command line.
const STARTERS: [&str; 7] = [
    "subprocess.run(",
    "subprocess.call(",
    "subprocess.check_call(",
    "subprocess.check_output(",
    "subprocess.Popen(",
    "os.system(",
    "get_ipython().system(",
];

/// The commands of `program` as one script, in source order, and the machines that it requests; none if it starts
/// nothing.
pub(super) fn workload(program: &str) -> Option<Workload> {
    let mut pieces = Vec::new();
    let mut commands = cells(program, &mut pieces);
    let starts = STARTERS.iter().flat_map(|starter| program.match_indices(starter));
    let mut starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    starts.sort_unstable();
    let mut unread = 0;
    for at in starts {
        if commands == MOST_COMMANDS {
            break;
        }
        match started(program, at) {
            Some(line) => {
                pieces.push((at, line + "\n"));
                commands += 1;
            }
            None => unread += 1,
        }
    }
    // An estimator's machines are no other command's, nor is the environment here that of its program.
    let alone = unread == 0 && commands < MOST_COMMANDS;
    if alone
        && pieces.iter().all(|(_, piece)| estimator::harmless(piece))
        && let Some(found) = estimator::estimators(program)
    {
        commands = found.commands.len();
        // A scheduler's lines stand before all commands.
        pieces = vec![(0, found.machines)];
        pieces.extend(found.commands);
    }
    (commands > 0).then(|| {
        pieces.sort_by_key(|(at, _)| *at);
        let script = pieces.into_iter().map(|(_, piece)| piece).collect();
        let mut work = Workload { script, ..Workload::default() };
        if unread > 0 {
            let message = format!("{unread} more of the commands that this program starts are put together as it runs, and are not read");
            work.reading.diagnostics.push(Diagnostic::note(Code::SeveralCommands, message));
        }
        modal(program, &mut work);
        work
    })
}

/// The lines that a notebook hands to a shell, with the variables they set, each with its position; returns the number
/// of commands.
fn cells(program: &str, pieces: &mut Vec<(usize, String)>) -> usize {
    let mut commands = 0;
    let mut start = 0;
    let mut lines = program.split_inclusive('\n');
    while let Some(whole) = lines.next() {
        let at = start;
        start += whole.len();
        let line = whole.trim_end_matches(['\n', '\r']).trim_start();
        // `%env NAME=VALUE` and `%env NAME VALUE` of IPython.
        if let Some(set) = line.strip_prefix("%env ") {
            let set = set.trim();
            if let Some((name, value)) = set.split_once('=').or_else(|| set.split_once(' '))
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            {
                pieces.push((at, format!("export {name}={}\n", quoted(value.trim()))));
            }
            continue;
        }
        let Some(first) = line.strip_prefix('!').filter(|_| commands < MOST_COMMANDS) else { continue };
        commands += 1;
        let mut command = String::new();
        let mut part = first;
        loop {
            command.push_str(&filled(part));
            command.push('\n');
            if !part.trim_end().ends_with('\\') {
                break;
            }
            let Some(next) = lines.next() else { break };
            start += next.len();
            part = next.trim_end_matches(['\n', '\r']);
        }
        pieces.push((at, command));
    }
    commands
}

/// A line of a cell in which interpolated Python values (`{name}`) are replaced by variables without a value.
fn filled(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('{') {
        let name = behind.split_once('}').filter(|(name, _)| {
            // `${name}` is the shell's own, and anything that is not a name stays as it is.
            !before.ends_with('$')
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
        });
        out.push_str(before);
        match name {
            Some((name, behind)) => {
                out.push_str(&variable(name));
                rest = behind;
            }
            None => {
                out.push('{');
                rest = behind;
            }
        }
    }
    out + rest
}

/// The command that the call at `at` starts, as a shell command line; none if the program builds it in a way that is
/// not followed.
fn started(program: &str, at: usize) -> Option<String> {
    let read = node(statement(program, at));
    let call = match &read {
        // `subprocess.run(…).returncode`
        Node::Attribute(call, _) => call,
        other => other,
    };
    let Node::Call(_, arguments) = call else { return None };
    let first = arguments.iter().find(|(keyword, _)| keyword.as_deref().is_none_or(|word| word == "args"));
    words(&first?.1, program, at, DEEPEST)
}

/// What a call is told to start, as a shell command line.
fn words(given: &Node, program: &str, before: usize, depth: usize) -> Option<String> {
    match given {
        Node::List(items) => {
            let words: Vec<String> = items.iter().map(word).collect();
            Some(words.join(" "))
        }
        Node::Binary("+", left, right) => {
            let left = words(left, program, before, depth)?;
            Some(format!("{left} {}", words(right, program, before, depth)?))
        }
        // A shell command line.
        Node::Text(line) => Some(line.replace('\n', " ")),
        Node::Joined(parts) => Some(parts.iter().map(plain).collect::<String>().replace('\n', " ")),
        Node::Name(name) => {
            let (assigned, at) = assigned(name, program, before)?;
            words(&assigned, program, at, depth.checked_sub(1)?)
        }
        // `shlex.split(line)` and `"…".split()`.
        Node::Call(function, arguments) => match &**function {
            Node::Attribute(text, split) if split == "split" => {
                let line = arguments.first().map_or(&**text, |(_, line)| line);
                words(line, program, before, depth.checked_sub(1)?)
            }
            _ => None,
        },
        _ => None,
    }
}

/// One word of a command.
fn word(given: &Node) -> String {
    match given {
        // An f-string may begin or end with empty texts.
        Node::Joined(parts) => {
            parts.iter().filter(|part| **part != Node::Text(String::new())).map(word).collect()
        }
        Node::Text(text) => quoted(text),
        other => plain(other),
    }
}

/// A value within a line: a text as it is, a number, or else a variable without a value.
fn plain(given: &Node) -> String {
    match given {
        Node::Text(text) => text.clone(),
        Node::Whole(number) => number.to_string(),
        Node::Number(number) => number.clone(),
        // `str(value)`.
        Node::Call(function, arguments) => match (&**function, arguments.as_slice()) {
            (Node::Name(name), [(None, value)]) if name == "str" => plain(value),
            _ => variable("computed"),
        },
        other => variable(&other.dotted().unwrap_or_else(|| "computed".to_owned())),
    }
}

/// A variable for a value that only the program knows.
fn variable(name: &str) -> String {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '_' };
    format!("\"${{{}}}\"", name.chars().map(plain).collect::<String>())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''").replace('\n', " "))
}

/// The GPUs of a function that Modal runs: `gpu="H100:8"` (modal.com/docs/guide/gpu).
fn modal(program: &str, work: &mut Workload) {
    if !program.lines().any(|line| matches!(line.trim(), "import modal") || line.starts_with("from modal ")) {
        return;
    }
    let Some((_, behind)) = program.split_once("gpu=\"") else { return };
    // After a `!` Modal accepts no other kind.
    let Some(given) = behind.split('"').next().map(|given| given.replace('!', "")) else { return };
    let (name, count) = given.split_once(':').unwrap_or((&given, "1"));
    if let Ok(count) = count.parse() {
        work.count(Field::GpusPerNode, count, "gpu", None);
        work.count(Field::NumNodes, 1, "gpu", None);
    }
    accelerator(&mut work.reading, name, "gpu", None);
}

#[cfg(test)]
mod tests {
    use super::workload;

    fn script(program: &str) -> Option<String> {
        workload(program).map(|work| work.script)
    }

    #[test]
    fn commands_are_taken_from_calls_that_start_them() {
        for (program, expected) in [
            (
                "!torchrun --nproc_per_node=4 \\\n  a.py --b {b} ${C}\nx = 1\n",
                "torchrun --nproc_per_node=4 \\\n  a.py --b \"${b}\" ${C}\n",
            ),
            ("%env A=1\n!deepspeed a.py\n", "export A='1'\ndeepspeed a.py\n"),
            (
                "subprocess.run([\"accelerate\", 'launch', \"a.py\", \"--n\", str(3)], check=True)\n",
                "'accelerate' 'launch' 'a.py' '--n' 3\n",
            ),
            ("x = subprocess.call(args=['a', f'--b={c.d}']).returncode\n", "'a' '--b='\"${c_d}\"\n"),
            ("import os\nos.system('python a.py --b 1')  # go\n", "python a.py --b 1\n"),
            ("cmd = 'python a.py'\nif x:\n    subprocess.run(shlex.split(cmd))\n", "python a.py\n"),
            (
                "base = ['python', 'a.py']\nsubprocess.run(base + ['--b', '1'])\n",
                "'python' 'a.py' '--b' '1'\n",
            ),
        ] {
            assert_eq!(script(program).as_deref(), Some(expected), "{program}");
        }
    }

    #[test]
    fn what_is_put_together_elsewhere_is_not_guessed() {
        for program in [
            "print('torchrun a.py')\n",
            "cmd = ['python', 'a.py']\nif long:\n    cmd += ['--c', '2']\nsubprocess.run(cmd)\n",
            "cmd = ['python', 'a.py']\ncmd.extend(more)\nsubprocess.run(cmd)\n",
            "subprocess.run(build())\n",
            "subprocess.run(",
            "a = a\nsubprocess.run(a)\n",
            "a = b\nb = a\nsubprocess.run(b)\n",
        ] {
            assert_eq!(script(program), None, "{program}");
        }
    }
}
