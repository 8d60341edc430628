//! How Megatron-Bridge distributes the 61 layers of DeepSeek-V3 and of Kimi K2 over the parts of a pipeline
//! (`recipes/deepseek/h100/deepseek_v3.py:_get_deepseek_v3_pipeline_layout`,
//! `recipes/kimi/h100/kimi_k2.py:_get_kimi_k2_pipeline_layout`).

use shardscope_python::tree::{Tree, scalar, text};

/// The layout of DeepSeek-V3, by pipeline ranks, chunks on each and depths of multi-token prediction.
pub(super) fn deepseek_v3(arguments: &[(Option<String>, Tree)]) -> Option<Tree> {
    let depths = number(arguments, 2)?;
    layout(arguments, &"m".repeat(usize::try_from(depths.min(MOST_DEPTHS)).ok()?))
}

/// The layout of Kimi K2, by pipeline ranks and chunks on each.
pub(super) fn kimi_k2(arguments: &[(Option<String>, Tree)]) -> Option<Tree> {
    layout(arguments, "")
}

/// Most depths of multi-token prediction.
const MOST_DEPTHS: u64 = 8;

/// A numeric argument; 1 if it is omitted or `None`, and no value if it is computed.
fn number(arguments: &[(Option<String>, Tree)], place: usize) -> Option<u64> {
    let Some((_, tree)) = arguments.get(place) else { return Some(1) };
    if tree.iter().any(|(_, scalar)| scalar.hole.is_some()) {
        return None;
    }
    match text(tree, "") {
        None | Some("" | "None") => Some(1),
        Some(said) => said.parse().ok(),
    }
}

/// The layout in Megatron's notation, with `depth` before the loss; `None` for a number of parts
/// that the functions do not support.
fn layout(arguments: &[(Option<String>, Tree)], depth: &str) -> Option<Tree> {
    let (each, between, last) = match number(arguments, 0)?.checked_mul(number(arguments, 1)?)? {
        4 => (16, 2, 13),
        8 => (8, 6, 5),
        16 => (4, 14, 1),
        _ => return None,
    };
    Some(scalar(&format!("Et*{each}|(t*{each}|)*{between}t*{last}{depth}L")))
}

#[cfg(test)]
mod tests {
    use super::{deepseek_v3, kimi_k2};
    use shardscope_python::tree::{Tree, scalar, text};

    #[test]
    fn layouts_are_those_of_the_functions() {
        let given = |said: &[&str]| -> Vec<(Option<String>, Tree)> {
            said.iter().map(|said| (None, scalar(said))).collect()
        };
        let deepseek =
            |said: &[&str]| deepseek_v3(&given(said)).and_then(|tree| text(&tree, "").map(str::to_owned));
        assert_eq!(deepseek(&["4", "4", "1"]).as_deref(), Some("Et*4|(t*4|)*14t*1mL"));
        assert_eq!(deepseek(&["8", "None", "0"]).as_deref(), Some("Et*8|(t*8|)*6t*5L"));
        assert_eq!(deepseek(&["1", "1", "1"]), None);
        assert_eq!(deepseek(&["3", "1", "1"]), None);
        let mut open = given(&["4", "4"]);
        open[0].1[0].1.hole = Some("pp_size".to_owned());
        assert_eq!(kimi_k2(&open), None);
        let kimi = kimi_k2(&given(&["16", "1"])).expect("a layout");
        assert_eq!(text(&kimi, ""), Some("Et*4|(t*4|)*14t*1L"));
    }
}
