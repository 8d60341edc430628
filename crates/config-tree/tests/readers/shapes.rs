//! Texts to read: shapes of mappings, lists and scalars, and the styles in which people write them.

use proptest::collection::vec;
use proptest::prelude::{Strategy, prop_oneof};
use proptest::sample::select;

/// How a shape is written, choice by choice; the choices repeat when they are used up.
pub(super) struct Style {
    choices: Vec<u8>,
    at: usize,
}

impl Style {
    pub(super) fn new(choices: Vec<u8>) -> Self {
        Self { choices, at: 0 }
    }

    /// One of `ways` ways.
    fn below(&mut self, ways: u8) -> usize {
        self.at += 1;
        usize::from(self.choices[self.at % self.choices.len()] % ways)
    }
}

/// A settings file, before anyone writes it in some style.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Scalar(&'static str),
    Text(&'static str),
    List(Vec<Shape>),
    Map(Vec<(String, Shape)>),
}

const SCALARS: [&str; 12] = [
    "8",
    "0",
    "-3",
    "1e-5",
    "2.5",
    "true",
    "False",
    "null",
    "bf16",
    "x y z",
    "s3://bucket/a:b#c",
    "${model.hidden_size}",
];

const TEXTS: [&str; 7] = ["", "a: b", "it's", "say \"no\"", "- x", "# not a remark", "tab\tand\nline"];

fn map(values: Vec<Shape>) -> Shape {
    Shape::Map(values.into_iter().enumerate().map(|(index, value)| (format!("key-{index}"), value)).collect())
}

pub(super) fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![select(&SCALARS).prop_map(Shape::Scalar), select(&TEXTS).prop_map(Shape::Text)];
    let inner = leaf.prop_recursive(4, 60, 4, |inner| {
        prop_oneof![vec(inner.clone(), 1..5).prop_map(Shape::List), vec(inner, 1..5).prop_map(map)]
    });
    vec(inner, 4).prop_map(map)
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Writes a shape as JSON, or in YAML's flow style with comments and trailing commas.
pub(super) fn flow(shape: &Shape, style: &mut Style, strict: bool, out: &mut String) {
    let gap = |style: &mut Style| {
        if strict { "" } else { ["", " ", "\n  ", " # remark, {\n "][style.below(4)] }
    };
    let (open, close) = match shape {
        Shape::Scalar(text) if strict && serde_json::from_str::<serde_json::Value>(text).is_err() => {
            return out.push_str(&quoted(text));
        }
        Shape::Scalar(text @ ("${model.hidden_size}" | "s3://bucket/a:b#c")) => {
            return out.push_str(&quoted(text));
        }
        Shape::Scalar(text) => return out.push_str(text),
        Shape::Text(text) => return out.push_str(&quoted(text)),
        Shape::List(_) => ('[', ']'),
        Shape::Map(_) => ('{', '}'),
    };
    out.push(open);
    let write = |out: &mut String, style: &mut Style, index: usize, key: Option<&String>, item: &Shape| {
        if index > 0 {
            out.push(',');
        }
        out.push_str(gap(style));
        if let Some(key) = key {
            out.push_str(&if strict || style.below(2) == 0 { quoted(key) } else { key.clone() });
            out.push_str(": ");
        }
        flow(item, style, strict, out);
        out.push_str(if matches!(item, Shape::Scalar(_)) { "" } else { gap(style) });
    };
    match shape {
        Shape::List(items) => {
            items.iter().enumerate().for_each(|(index, item)| write(out, style, index, None, item))
        }
        Shape::Map(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, (key, item))| write(out, style, index, Some(key), item)),
        Shape::Scalar(_) | Shape::Text(_) => {}
    }
    out.push_str(if strict || style.below(2) == 0 { "" } else { ",\n" });
    out.push(close);
}

/// Writes a shape as block YAML below a key or dash; `indent` is that of its own lines.
pub(super) fn block(shape: &Shape, style: &mut Style, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    match shape {
        Shape::Scalar(text) => out.push_str(&format!(" {text}\n")),
        Shape::Text(text) if style.below(2) == 0 => out.push_str(&format!(" {}   # remark\n", quoted(text))),
        Shape::Text(text) if !text.contains('\n') => {
            out.push_str(&format!(" '{}'\n", text.replace('\'', "''")))
        }
        Shape::Text(text) => {
            let mark = ["|", "|-", ">", ">-", "|+"][style.below(5)];
            out.push_str(&format!(" {mark}\n"));
            text.lines().for_each(|line| out.push_str(&format!("{pad}  {line}\n")));
        }
        _ if style.below(5) == 0 => {
            out.push(' ');
            flow(shape, style, true, out);
            out.push('\n');
        }
        Shape::List(items) => {
            out.push_str(["\n", "\n# remark\n\n"][style.below(2)]);
            for item in items {
                out.push_str(&format!("{pad}-"));
                match item {
                    Shape::Map(entries) if style.below(2) == 0 => {
                        for (index, (key, value)) in entries.iter().enumerate() {
                            out.push_str(&if index == 0 {
                                format!(" {key}:")
                            } else {
                                format!("{pad}  {key}:")
                            });
                            block(value, style, indent + 4, out);
                        }
                    }
                    _ => block(item, style, indent + 2, out),
                }
            }
        }
        Shape::Map(entries) => {
            out.push('\n');
            for (key, value) in entries {
                out.push_str(&format!("{pad}{key}:"));
                let deeper = 1 + style.below(4);
                let same = matches!(value, Shape::List(_)) && style.below(2) == 0;
                block(value, style, if same { indent } else { indent + deeper }, out);
            }
        }
    }
}
