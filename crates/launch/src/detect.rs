//! What kind of text was pasted, determined from the text itself.

use super::formats::{Format, classify};
use super::no_run;
use shardscope_config_tree::{Node, Tree, read_json, read_toml, read_yaml};
use shardscope_source::{Code, Diagnostic};

/// Maximum number of lines examined to recognise a language.
const LINES: usize = 60;
/// Maximum number of keys named if a settings file belongs to no known framework.
const NAMED: usize = 6;

/// A pasted text by its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum TextKind {
    /// A shell script, or options without one.
    Script,
    /// A framework's settings file, as a tree.
    Settings(Format, Tree),
    /// A Python program, or the cells of a notebook.
    Python(String),
    /// The name of a model and nothing else.
    Model(String),
    /// Iteration lines of a training, or the output of another tool that measured one.
    Log,
    /// A text that is none of these, and why it is ignored.
    Other(Diagnostic),
}

/// Classifies a text; `name` is its file name or empty, `base` its start in the source.
#[must_use]
pub fn detect(name: &str, text: &str, base: u32) -> TextKind {
    let mut content = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let start = line.trim_start();
        if !start.is_empty() && !start.starts_with('#') {
            content.push(line);
        }
        if content.len() == LINES {
            break;
        }
    }
    let Some(first) = content.first() else { return TextKind::Script };
    // A notebook exported as a program names its interpreter.
    let interpreter =
        text.trim_start_matches('\u{feff}').lines().next().filter(|line| line.starts_with("#!"));
    // `#!/usr/bin/env -S uv run` runs it as Python, with the packages of its header.
    if interpreter.is_some_and(|line| line.contains("python") || line.contains("uv run")) {
        return TextKind::Python(text.to_owned());
    }
    if interpreter.is_some() || name.ends_with(".sh") || name.ends_with(".sbatch") {
        return TextKind::Script;
    }
    if super::log::is_log(text) || super::log::printed_by(text).is_some() {
        return TextKind::Log;
    }
    if let Some(why) = template(text) {
        return TextKind::Other(why);
    }
    let start = first.trim_start().trim_start_matches('\u{feff}');
    let is_json = start.starts_with('{') || name.ends_with(".json");
    // A cell of a notebook may begin with a call, which looks like TOML up to its parenthesis.
    if !is_json && (name.ends_with(".py") || content.iter().any(|line| assigns_call(line))) {
        return TextKind::Python(text.to_owned());
    }
    let tree = if is_json {
        read_json(text, base)
    } else if name.ends_with(".toml") || is_toml(start) {
        read_toml(text, base)
    } else if name.ends_with(".yaml") || name.ends_with(".yml") || is_yaml(&content) {
        read_yaml(text, base)
    } else if is_python(&content) {
        return TextKind::Python(text.to_owned());
    } else if let (Some(model), [_]) = (model_name(start), content.as_slice()) {
        return TextKind::Model(model.to_owned());
    } else {
        return TextKind::Script;
    };
    if let Some(program) = super::notebook::program(&tree) {
        return TextKind::Python(program);
    }
    // A part of verl's settings has keys of other frameworks, which only the whole gives a meaning.
    if let Some(said) = tree.documents.first().and_then(no_run::part) {
        return TextKind::Other(said);
    }
    match classify(&tree) {
        Some(format) => TextKind::Settings(format, tree),
        None if start.starts_with('{')
            && !name.contains('.')
            && !start.contains(['"', ':'])
            && start.len() > 1 =>
        {
            TextKind::Script
        }
        None => TextKind::Other(unknown(&tree, if is_json { "JSON" } else { "settings" })),
    }
}

/// A heading `[name]`, or `name = value` with spaces around the equals sign, which bash does not allow.
fn is_toml(line: &str) -> bool {
    let name = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
    };
    let line = line.split_once(" #").map_or(line, |(line, _)| line).trim_end();
    let heading = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let heading = heading
        .map(|inner| inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner));
    heading.is_some_and(name)
        || line.split_once(" = ").is_some_and(|(key, value)| name(key.trim_end()) && !value.is_empty())
}

/// Whether lines are `key:` or list items, which bash does not have.
fn is_yaml(lines: &[&str]) -> bool {
    let mut keys = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim_start();
        if line == "---" || line.starts_with("- ") {
            continue;
        }
        let key = line
            .split_once(':')
            .filter(|(key, rest)| is_key(key) && (rest.is_empty() || rest.starts_with([' ', '\t'])));
        if index == 0 && key.is_none() {
            return false;
        }
        keys += usize::from(key.is_some());
    }
    keys > 0
}

fn is_key(text: &str) -> bool {
    let text = text.trim_matches(['"', '\'']);
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'@'))
}

/// `trainer = SFTTrainer(`: the result of a call, which no settings file and no shell script assigns.
fn assigns_call(line: &str) -> bool {
    let name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b',' | b' ');
    let Some((to, value)) = line.split_once(" = ") else { return false };
    let Some((called, _)) = value.split_once('(') else { return false };
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let begins = called.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins && called.bytes().all(part) && !to.is_empty() && to.bytes().all(name)
}

fn is_python(lines: &[&str]) -> bool {
    let starts = ["import ", "from ", "def ", "class ", "@", "\"\"\""];
    let mut count = 0_usize;
    for line in lines {
        count += usize::from(starts.iter().any(|start| line.starts_with(start)) && !line.contains("--"));
    }
    count >= 2
}

/// `organisation/name`, or the address of a model's page, alone on its line.
fn model_name(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.strip_prefix("https://").or(line.strip_prefix("http://")).unwrap_or(line);
    let name = rest.strip_prefix("huggingface.co/").or(rest.strip_prefix("hf.co/")).unwrap_or(rest);
    let mut parts = name.trim_end_matches('/').split('/');
    let sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let part = |part: Option<&str>| part.is_some_and(|part| !part.is_empty() && part.bytes().all(sign));
    let two = part(parts.next()) && part(parts.next());
    let ends = parts.next().is_none_or(|next| rest != name && matches!(next, "tree" | "blob" | "resolve"));
    let last = name.rsplit('/').next().unwrap_or(name);
    let file = [".sh", ".py", ".yaml", ".yml", ".json"].iter().any(|end| last.ends_with(end));
    (two && ends && !file && !name.starts_with('.')).then_some(line)
}

/// A Helm template: what it starts is known once `helm template` has filled it in, or from the scripts that it names.
fn template(text: &str) -> Option<Diagnostic> {
    if !text.contains("{{") || !text.contains(".Values.") {
        return None;
    }
    /// Maximum number of scripts considered, to name one.
    const SCRIPTS: usize = 64;
    let mut scripts: Vec<&str> = Vec::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')) {
        let name = word.rsplit('/').next().unwrap_or(word);
        if (name.ends_with(".sh") || name.ends_with(".py"))
            && name.len() > 3
            && scripts.len() < SCRIPTS
            && !scripts.contains(&name)
        {
            scripts.push(name);
        }
    }
    scripts.retain(|name| name.contains("launch") || name.contains("train") || name.contains("run"));
    let hint = match scripts.first() {
        Some(script) => format!("paste {script}, which it runs, or what `helm template` prints"),
        None => "paste what `helm template` prints, or the script that its containers run".to_owned(),
    };
    let message = "a Helm template: its nodes and command come from values.yaml";
    Some(Diagnostic::error(Code::NoTraining, message).hint(hint))
}

/// The values of a Helm chart: what they start is in its templates.
fn chart(root: &Node) -> Option<Diagnostic> {
    // Values of gpu-recipes state the number of accelerators, and get the image with `helm install --set`.
    let image = ["image", "workload.image", "image.repository", "workload.gpus"]
        .iter()
        .any(|path| root.at(path).is_some());
    let around =
        ["workload", "network", "volumes", "replicaCount", "resources", "tolerations", "nodeSelector"];
    if !image || around.iter().filter(|key| root.get(key).is_some()).count() < 2 {
        return None;
    }
    let gpus = root.at("workload.gpus").and_then(Node::whole);
    let message = match gpus {
        Some(gpus) => {
            format!("Helm chart values, for {gpus} GPUs: the command is in the chart's templates")
        }
        None => "Helm chart values: the command is in the chart's templates".to_owned(),
    };
    let file = root.at("workload.configFile").and_then(Node::word);
    let hint = match file {
        Some(file) => format!("paste the launcher's script and {file}, or what `helm template` prints"),
        None => "paste the script that it runs, or what `helm template` prints".to_owned(),
    };
    Some(Diagnostic::error(Code::NoTraining, message).hint(hint).at(root.span))
}

/// A settings file of no known framework: names the keys that it has.
fn unknown(tree: &Tree, what: &str) -> Diagnostic {
    let root = tree.documents.first();
    if let Some(said) = root.and_then(|root| chart(root).or_else(|| no_run::said(root))) {
        return said;
    }
    let mut message = what.to_owned();
    for (at, entry) in root.map_or(&[][..], Node::entries).iter().take(NAMED).enumerate() {
        message.push_str(if at == 0 { " with the keys " } else { ", " });
        message.push_str(&entry.key);
    }
    message.push_str(if message == what {
        " without keys that any known framework has"
    } else {
        ": of no framework that is known here"
    });
    let hint = "known formats: Hugging Face config.json, DeepSpeed, NeMo, GPT-NeoX, nanotron, torchtitan, Primus, FlagScale, \
        Megatron's flags as keys, accelerate, and Kubernetes jobs";
    Diagnostic::error(Code::UnknownSettings, message).hint(hint).at_some(root.map(|root| root.span))
}
