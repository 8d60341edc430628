//! What a statement assigns to.

use super::expression::Expression;

/// Target and value of an assignment that modifies the previous value: `name *= 2`.
pub(super) fn changed(target: &str, value: Expression) -> (&str, Expression) {
    for sign in ["//", "**", "+", "-", "*", "/", "%"] {
        if let Some(name) = target.strip_suffix(sign) {
            let name = name.trim();
            let before = Expression::Name(name.to_owned());
            return (name, Expression::Computed(Box::new(before), sign, Box::new(value)));
        }
    }
    (target, value)
}

/// Targets and value of an assignment to several dotted names at once, `first, second = value`.
pub(super) fn unpacking(written: &str) -> Option<(Vec<&str>, &str)> {
    let (targets, value) = written.split_once('=').filter(|(_, value)| !value.starts_with('='))?;
    let is_name = |target: &&str| {
        !target.is_empty()
            && target.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    let targets: Vec<&str> = targets.split(',').map(str::trim).collect();
    (targets.len() > 1 && targets.iter().all(is_name)).then(|| (targets, value.trim()))
}

/// Target and value of an assignment to a dotted name.
pub(super) fn assignment(written: &str) -> Option<(&str, &str)> {
    let at = written.find('=')?;
    let (target, value) = (written.get(..at)?, written.get(at + 1..)?);
    if value.starts_with('=') {
        return None;
    }
    // `name: Type = value`
    let target = target.split_once(':').map_or(target, |(name, _)| name).trim();
    let dotted = !target.is_empty()
        && target
            .trim_end_matches(['/', '*', '+', '-', '%', ' '])
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    dotted.then(|| (target, value.trim()))
}
