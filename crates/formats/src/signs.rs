//! Keys that identify the framework of a settings file.

use super::reader::Claim;
use shardscope_config_tree::{Node, Tree};

/// Certain if the first document satisfies `shown`.
fn certain(tree: &Tree, shown: impl Fn(&Node) -> bool) -> Option<Claim> {
    tree.documents.first().is_some_and(shown).then_some(Claim::Certain)
}

/// Certain if one of these paths is present.
pub(super) fn any(tree: &Tree, paths: &[&str]) -> Option<Claim> {
    certain(tree, |root| paths.iter().any(|path| root.at(path).is_some()))
}

/// Certain if all of these paths are present.
pub(super) fn all(tree: &Tree, paths: &[&str]) -> Option<Claim> {
    certain(tree, |root| paths.iter().all(|path| root.at(path).is_some()))
}

/// Certain if this path has nested keys.
pub(super) fn holds(tree: &Tree, path: &str) -> Option<Claim> {
    certain(tree, |root| root.at(path).is_some_and(|node| !node.entries().is_empty()))
}

/// Certain if all of these keys are present and have nested keys.
pub(super) fn maps(tree: &Tree, keys: &[&str]) -> Option<Claim> {
    let is_map = |root: &Node, key: &str| root.get(key).is_some_and(|node| !node.entries().is_empty());
    certain(tree, |root| keys.iter().all(|key| is_map(root, key)))
}

/// Certain if `key` names one settings file and one of `others` is also present: a recipe that changes little of its
/// base. Hydra's `defaults` are a list.
pub(super) fn builds_on(tree: &Tree, key: &str, others: &[&str]) -> Option<Claim> {
    let names_file = |node: &Node| node.word().is_some_and(|word| word.ends_with(".yaml"));
    certain(tree, |root| {
        root.get(key).is_some_and(names_file) && others.iter().any(|other| root.get(other).is_some())
    })
}
