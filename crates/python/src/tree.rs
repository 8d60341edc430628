//! Values by path: what a program assigned.

/// A value at the end of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scalar {
    /// As a settings file would write it; empty for `None`.
    pub text: String,
    /// The unknown that it depends on.
    pub hole: Option<String>,
    /// Where it was assigned, in bytes of the program.
    pub at: usize,
}

/// Values by path; the empty path is the value itself, or the name of the class that constructed it.
pub type Tree = Vec<(String, Scalar)>;

/// Whether a path is at or under a name.
pub fn is_below(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The part of a tree under a name, with paths relative to it.
pub fn below(tree: &Tree, name: &str) -> Tree {
    let inside =
        |path: &str| path.strip_prefix(name).map(|rest| rest.strip_prefix('.').unwrap_or(rest).to_owned());
    tree.iter()
        .filter(|(path, _)| is_below(path, name))
        .filter_map(|(path, scalar)| Some((inside(path)?, scalar.clone())))
        .collect()
}

/// The value at a path.
pub fn text<'t>(tree: &'t Tree, path: &str) -> Option<&'t str> {
    tree.iter().rev().find(|(known, _)| known == path).map(|(_, scalar)| scalar.text.as_str())
}

/// A tree with a single value.
pub fn scalar(text: &str) -> Tree {
    vec![(String::new(), Scalar { text: text.to_owned(), ..Scalar::default() })]
}
