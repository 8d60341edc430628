//! Reports the parts of a NeMo Automodel recipe that stop the verdict.

use crate::leaves::Leaves;
use crate::{Effect, NotModelled};

/// Reports that the setting of a key is not modelled.
pub(super) fn lack(leaves: &mut Leaves<'_>, path: &str, effect: Effect, what: &str) {
    let leaf = leaves.get(path).or_else(|| leaves.all().iter().find(|leaf| leaf.path.starts_with(path)));
    let (value, span) = leaf.map_or(("", None), |leaf| (leaf.value.as_str(), leaf.span));
    let item = NotModelled::new(path.trim_end_matches('.'), value, effect, what).at_some(span);
    leaves.reading.not_modelled.push(item);
}
