//! The words of a command as the keys of a settings file.

use super::super::scalars::{Leaf, Scalars};
use super::dialect::Dialect;
use crate::Argument;
use shardscope_config_tree::read_json;
use shardscope_source::Span;

/// Options with their values: `--name value ...`, `--name=value`, and switches.
pub(crate) fn leaves(words: &[Argument]) -> Scalars {
    options(words, false)
}

/// `bare`: `name=value` is one, too.
fn options(words: &[Argument], bare: bool) -> Scalars {
    let is_bare = |text: &&str| bare && text.contains('=') && !text.starts_with('-');
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut open = false;
    for word in words {
        let named = word.text.strip_prefix("--").or(Some(word.text.as_str()).filter(is_bare));
        if let Some(body) = named.filter(|body| !body.is_empty()) {
            let (name, value) = body.split_once('=').unwrap_or((body, ""));
            leaves.push(Leaf {
                path: name.replace('-', "_"),
                value: value.to_owned(),
                span: place(word, value),
                hole: word.hole.clone().filter(|_| !value.is_empty()),
                ..Leaf::default()
            });
            open = value.is_empty();
        } else if let Some(leaf) = leaves.last_mut().filter(|_| open) {
            if leaf.value.is_empty() {
                (leaf.span, leaf.hole) = (word.span, word.hole.clone());
            } else {
                leaf.value.push(' ');
                leaf.hole = leaf.hole.take().or_else(|| word.hole.clone());
            }
            leaf.value.push_str(&word.text);
        }
    }
    for leaf in &mut leaves {
        if leaf.value.is_empty() && leaf.hole.is_none() {
            "true".clone_into(&mut leaf.value);
        }
    }
    Scalars::from_leaves(leaves.into_iter().flat_map(unfolded).collect())
}

/// The same for words behind a settings file. LLaMA-Factory takes them as `key=value`
/// (`llamafactory/hparams/parser.py:read_args`).
pub(super) fn over_file(dialect: Dialect, words: &[Argument]) -> Scalars {
    if dialect != Dialect::LlamaFactory {
        return leaves(words);
    }
    options(words, true)
}

/// The place of the value at the end of a word, which is what a change replaces: of the whole word where there is none, or where the
/// text has it in other characters than the word (in quotes, by a variable).
fn place(word: &Argument, value: &str) -> Option<Span> {
    let within = |span: Span| {
        let exact = span.len() as usize == word.text.len() && !value.is_empty();
        let from = u32::try_from(word.text.len() - value.len()).ok().filter(|_| exact)?;
        Some(span.part(from, span.len()))
    };
    word.span.map(|span| within(span).unwrap_or(span))
}

/// Arguments that are dictionaries, each also given as JSON in one word (`training_args.py:_VALID_DICT_FIELDS`).
const DICTIONARIES: [&str; 4] =
    ["accelerator_config", "deepspeed", "fsdp_config", "gradient_checkpointing_kwargs"];

/// An option whose value is JSON in one word, as `training_args.py:__post_init__` loads it, under the names of its keys.
fn unfolded(leaf: Leaf) -> Vec<Leaf> {
    if !DICTIONARIES.contains(&leaf.path.as_str()) || leaf.hole.is_some() || !leaf.value.starts_with('{') {
        return vec![leaf];
    }
    let tree = read_json(&leaf.value, 0);
    let Some(root) = tree.documents.first().filter(|root| !root.entries().is_empty()) else {
        return vec![leaf];
    };
    let within = Scalars::from_node(root);
    let named = |inner: &Leaf| Leaf {
        path: format!("{}.{}", leaf.path, inner.path),
        span: leaf.span,
        ..inner.clone()
    };
    within.all().iter().map(named).collect()
}
