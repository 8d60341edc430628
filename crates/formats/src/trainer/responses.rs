//! The longest response of GRPO and RLOO under transformers trainers.

use crate::Origin;
use crate::leaves::{Leaf, Leaves};
use shardscope_plan::Field;

/// Keys that limit a response.
pub(super) const ANSWERS: [&str; 3] = ["max_completion_length", "max_new_tokens", "response_length"];

const OF_CUT: &str = "default of TRL before 1.10, to which the text belongs";

/// The first of some keys whose value is a whole number.
pub(super) fn whole<'t>(
    leaves: &Leaves<'t>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    keys: &[&str],
) -> Option<&'t Leaf> {
    let path = keys.iter().find_map(|key| find(leaves, key))?;
    leaves.get(&path).filter(|leaf| leaf.whole().is_some())
}

/// The longest response, of which alone the output layer makes logits, whichever generates. A pack's logits lack those of its first
/// prompt only, and sequence parallelism takes all (`swift/rlhf_trainers/grpo_trainer.py:_get_logps_via_sp`); R1-V's programs, which
/// bound images by pixels, take those of all tokens (`open_r1/trainer/grpo_trainer.py:_get_per_token_logps`).
pub(super) fn read(
    leaves: &mut Leaves<'_>,
    find: &dyn Fn(&Leaves<'_>, &str) -> Option<String>,
    is_swift: bool,
    default: Option<u64>,
) {
    let parallel =
        leaves.first(&["sequence_parallel_size"]).and_then(Leaf::whole).is_some_and(|ranks| ranks > 1);
    let packs = ["padding_free", "packing"].iter().any(|key| leaves.yes(key).is_some());
    let whole_logits = ["max_pixels", "min_pixels"].iter().any(|key| leaves.has(key));
    // What the model that trains generates is as long in any case.
    let own = leaves.reading.value(Field::RolloutEngine) == Some("transformers");
    // A length of several turns is one of each, and logits reach from the first response to the end.
    let turns =
        leaves.has("multi_turn_scheduler") && leaves.text("completion_length_limit_scope") != Some("total");
    if is_swift && (parallel || packs || turns) || !is_swift && whole_logits && !own {
        return;
    }
    let answer = whole(leaves, find, &ANSWERS);
    let open = find(leaves, "max_completion_length")
        .and_then(|path| leaves.get(&path))
        .filter(|leaf| leaf.hole.is_some());
    match (answer, default) {
        (Some(leaf), _) => leaves.say(Field::RolloutResponse, &leaf.value, leaf),
        // A length that the program computes.
        _ if open.is_some() => {
            open.into_iter().for_each(|leaf| leaves.say(Field::RolloutResponse, &leaf.value, leaf))
        }
        (None, Some(tokens)) => {
            leaves.state(Field::RolloutResponse, &tokens.to_string(), Origin::Default, OF_CUT);
        }
        (None, None) if is_swift => {
            leaves.state(Field::RolloutResponse, "512", Origin::Default, "default of ms-swift");
        }
        (None, None) => leaves.state(
            Field::RolloutResponse,
            "512",
            Origin::Default,
            "default of TRL since 1.10; 256 before",
        ),
    }
}
