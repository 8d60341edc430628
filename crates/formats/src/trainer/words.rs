//! The words of a command as the keys of a settings file.

use super::super::scalars::{Leaf, Scalars};
use super::dialect::Dialect;
use crate::Argument;
use shardscope_config_tree::read_json;

/// Options with their values: `--name value ...`, `--name=value`, and switches.
pub(crate) fn leaves(words: &[Argument]) -> Scalars {
    let mut leaves: Vec<Leaf> = Vec::new();
    let mut open = false;
    for word in words {
        if let Some(body) = word.text.strip_prefix("--").filter(|body| !body.is_empty()) {
            let (name, value) = body.split_once('=').unwrap_or((body, ""));
            leaves.push(Leaf {
                path: name.replace('-', "_"),
                value: value.to_owned(),
                span: word.span,
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
    let mut words = words.to_vec();
    for word in &mut words {
        if word.text.contains('=') && !word.text.starts_with('-') {
            word.text.insert_str(0, "--");
        }
    }
    leaves(&words)
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
