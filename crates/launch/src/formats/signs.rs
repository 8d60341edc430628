//! Keys that tell whose settings file a tree is.

use super::reader::Claim;
use shardscope_config_tree::{Node, Tree};

/// The first document, where it has something of `shown`.
fn certain(tree: &Tree, shown: impl Fn(&Node) -> bool) -> Option<Claim> {
    tree.documents.first().is_some_and(shown).then_some(Claim::Certain)
}

/// Certain where one of these paths is there.
pub(super) fn any(tree: &Tree, paths: &[&str]) -> Option<Claim> {
    certain(tree, |root| paths.iter().any(|path| root.at(path).is_some()))
}

/// Certain where all of these paths are there.
pub(super) fn all(tree: &Tree, paths: &[&str]) -> Option<Claim> {
    certain(tree, |root| paths.iter().all(|path| root.at(path).is_some()))
}

/// Certain where this path holds further keys.
pub(super) fn holds(tree: &Tree, path: &str) -> Option<Claim> {
    certain(tree, |root| root.at(path).is_some_and(|node| !node.entries().is_empty()))
}

/// Certain where all of these keys are there, with further keys below each.
pub(super) fn maps(tree: &Tree, keys: &[&str]) -> Option<Claim> {
    let is_map = |root: &Node, key: &str| root.get(key).is_some_and(|node| !node.entries().is_empty());
    certain(tree, |root| keys.iter().all(|key| is_map(root, key)))
}

/// Certain where `key` names one settings file and one of `others` stands beside it: a recipe that changes little of its
/// base. Hydra's `defaults` are a list.
pub(super) fn builds_on(tree: &Tree, key: &str, others: &[&str]) -> Option<Claim> {
    let names_file = |node: &Node| node.word().is_some_and(|word| word.ends_with(".yaml"));
    certain(tree, |root| {
        root.get(key).is_some_and(names_file) && others.iter().any(|other| root.get(other).is_some())
    })
}
