//! `${...}` in settings files: other keys (OmegaConf), a little arithmetic (NeMo), environment variables
//! with a default (Primus, OmegaConf).

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// A key, variable or function whose value is not known, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl Display for Unknown {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} is not known", self.0)
    }
}

impl Error for Unknown {}

/// Deepest chain of references followed.
const MAX_DEPTH: u8 = 8;

/// The value of `text`, which begins with `${` and is at the key path `path`; `look` returns the text at another key
/// path.
///
/// # Errors
/// What is not known.
pub fn expand(text: &str, path: &str, look: &dyn Fn(&str) -> Option<String>) -> Result<String, Unknown> {
    deeper(text, path, look, 0)
}

fn deeper(
    text: &str,
    path: &str,
    look: &dyn Fn(&str) -> Option<String>,
    depth: u8,
) -> Result<String, Unknown> {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("${") else { return Ok(text.to_owned()) };
    let Some(inner) = inner.strip_suffix('}').filter(|inner| closes_last(inner) && depth < MAX_DEPTH) else {
        // The reference is part of a longer text, such as a path or a name: keep it as written.
        return Ok(text.to_owned());
    };
    if let Some((name, rest)) = inner.split_once(':') {
        return call(name, rest, &|text| deeper(text, path, look, depth + 1));
    }
    let target = absolute(inner, path);
    let without_root = target.split_once('.').map(|(_, rest)| rest);
    let found = look(&target).map(|text| (text, target.as_str()));
    let found = found.or_else(|| without_root.and_then(|target| Some((look(target)?, target))));
    match found {
        Some((text, at)) => deeper(&text, at, look, depth + 1),
        None => Err(Unknown(inner.to_owned())),
    }
}

/// A text with each `${NAME:default}` in it replaced by its default.
#[must_use]
pub fn with_defaults(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, tail) = after.split_once('}').unwrap_or((after, ""));
        let default = inner.split_once(':').map_or("", |(_, default)| default);
        out.push_str(before);
        out.push_str(default.strip_prefix('-').unwrap_or(default));
        rest = tail;
    }
    out + rest
}

/// Whether the brace that was open before `inner` closes only after it.
fn closes_last(inner: &str) -> bool {
    let mut open = 1_i32;
    inner.bytes().all(|byte| {
        open += i32::from(byte == b'{') - i32::from(byte == b'}');
        open > 0
    })
}

/// `multiply:a,b` and the like, `oc.env:NAME,default`, `NAME:default`, `NAME:-default`.
fn call(name: &str, rest: &str, value: &dyn Fn(&str) -> Result<String, Unknown>) -> Result<String, Unknown> {
    let arguments = split(rest);
    let number = |index: usize| -> Result<u64, Unknown> {
        let text = value(arguments.get(index).copied().unwrap_or(""))?;
        text.trim().parse().map_err(|_| Unknown(name.to_owned()))
    };
    let operation: fn(u64, u64) -> Option<u64> = match name {
        "multiply" | "mul" => u64::checked_mul,
        "add" | "sum" => u64::checked_add,
        "subtract" | "sub" => u64::checked_sub,
        "divide" | "divide_floor" | "div" | "floor_div" => u64::checked_div,
        "divide_ceil" => |number, by| Some(number.div_ceil(by.max(1))),
        "oc.env" | "env" => {
            let variable = arguments.first().copied().unwrap_or("").trim();
            return arguments
                .get(1)
                .map_or_else(|| Err(Unknown(variable.to_owned())), |default| value(default));
        }
        _ if name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_') => {
            return value(rest.strip_prefix('-').unwrap_or(rest));
        }
        _ => return Err(Unknown(name.to_owned())),
    };
    operation(number(0)?, number(1)?).map(|number| number.to_string()).ok_or_else(|| Unknown(name.to_owned()))
}

/// Arguments separated by commas outside braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, 0_i32);
    for (at, byte) in text.bytes().enumerate() {
        open += i32::from(byte == b'{') - i32::from(byte == b'}');
        if byte == b',' && open == 0 {
            parts.push(text.get(start..at).unwrap_or(""));
            start = at + 1;
        }
    }
    parts.push(text.get(start..).unwrap_or(""));
    parts
}

/// Keys from the root: one leading dot means a sibling of `path`, each further dot one level up.
fn absolute(target: &str, path: &str) -> String {
    let name = target.trim_start_matches('.');
    let mut base = path;
    for _ in 0..target.len() - name.len() {
        base = base.rsplit_once('.').map_or("", |(base, _)| base);
    }
    let relative = target.len() > name.len() && !base.is_empty();
    if relative { format!("{base}.{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Unknown, expand};

    #[test]
    fn references_arithmetic_and_variables() {
        let keys = [
            ("model.hidden_size", "8192"),
            ("model.seq", "${data.seq}"),
            ("data.seq", "4096"),
            ("model.loop", "${model.loop}"),
            ("trainer.devices", "8"),
        ];
        let look =
            |path: &str| keys.iter().find(|(key, _)| *key == path).map(|(_, value)| (*value).to_owned());
        let cases = [
            ("${.hidden_size}", Ok("8192")),
            ("${training.model.hidden_size}", Ok("8192")),
            ("${multiply:4, ${.hidden_size}}", Ok("32768")),
            ("${divide_ceil:${model.seq}, 1000}", Ok("5")),
            ("${model.seq}", Ok("4096")),
            ("${..trainer.devices}", Ok("8")),
            ("${PRIMUS_TP:2}", Ok("2")),
            ("${TP:-4}", Ok("4")),
            ("${oc.env:NODES,16}", Ok("16")),
            ("${oc.env:NODES}", Err("NODES")),
            ("${nowhere.x}", Err("nowhere.x")),
            ("${multiply:${nowhere}, 2}", Err("nowhere")),
            ("${divide:8, 0}", Err("divide")),
            ("${data_dir}/x", Ok("${data_dir}/x")),
        ];
        for (text, expected) in cases {
            let found = expand(text, "model.ffn_hidden_size", &look);
            assert_eq!(found, expected.map(str::to_owned).map_err(|name| Unknown(name.to_owned())), "{text}");
        }
        assert!(expand("${model.loop}", "model.x", &look).is_ok());
    }
}
