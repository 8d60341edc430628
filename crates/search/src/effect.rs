//! The effect of a change to a plan: why it helps, and what it costs.

use shardscope_plan::Plan;
use shardscope_units::gib;

use super::known::fit;
use super::why_not::slower;

/// Memory differences below this are not mentioned. Unit: byte.
const TOLD: u64 = 1 << 27;

/// The effect of replacing `plan` by `changed`, in words: parts of the step that become shorter, and what that costs
/// (parts that become longer, memory of the fullest device). Empty if no part differs by anything that a run would
/// show.
#[must_use]
pub fn effect(plan: &Plan, changed: &Plan) -> String {
    let saved = slower(plan, changed).reasons(false, "of");
    let costs = slower(changed, plan).reasons(true, "of");
    let ((before, _), (after, _)) = (fit(plan), fit(changed));
    let differs = before.get().abs_diff(after.get()) >= TOLD;
    let more = (differs && after > before).then(|| format!("{} of memory", gib(after.less(before))));
    let less = (differs && after < before).then(|| format!("{} of memory", gib(before.less(after))));
    let side = |verb: &str, parts: [Option<String>; 2]| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{verb} {}", parts.join(" and ")))
    };
    let both = [side("saves", [saved, less]), side("costs", [costs, more])];
    both.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::effect;
    use crate::pairs::plan;
    use crate::space::typed;

    #[test]
    fn a_change_says_what_it_saves_and_what_it_costs() {
        let plan = plan("llama-3 70b, 128 H100");
        let changed = |text: &str| typed(&plan, text).expect("understood").apply(&plan).expect("a plan");
        // Chunks make the bubble smaller, but more micro-batches wait for their backward.
        let chunks = effect(&plan, &changed("VPP 5"));
        println!("{chunks}");
        let (saves, costs) = chunks.split_once("; costs ").expect("both");
        assert!(saves.starts_with("saves ") && saves.contains(" of pipeline bubble"), "{chunks}");
        assert!(costs.contains("GiB of memory"), "{chunks}");
        // The reverse.
        let again = effect(&changed("VPP 5"), &plan);
        assert!(again.contains("GiB of memory; costs ") && again.contains(" of pipeline bubble"), "{again}");
        assert_eq!(effect(&plan, &plan), "");
    }
}
