//! Files whose settings a settings file builds on.

use shardscope_config_tree::Node;
use shardscope_source::Span;

/// The files that `extends`, `includes` or Hydra's `defaults` name, each with the position of the name.
pub(super) fn named(root: &Node) -> Vec<(String, Span)> {
    let mut nodes = Vec::new();
    for key in &["extends", "includes", "include", "defaults"] {
        let Some(node) = root.get(key) else { continue };
        let items = if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() };
        for item in items {
            nodes.push(item);
            for entry in item.entries() {
                if !entry.key.contains(['@', ' ']) {
                    nodes.push(&entry.node);
                }
            }
        }
    }
    let mut bases: Vec<(String, Span)> = Vec::new();
    for node in nodes {
        if let Some(name) = node.word()
            && name != "_self_"
            && !name.contains(['@', '$', ' '])
        {
            bases.push((file(name), node.span));
        }
    }
    bases
}

/// The file to which a name without a path or an extension refers.
pub(super) fn file(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains(".y") { last.to_owned() } else { format!("{last}.yaml") }
}
