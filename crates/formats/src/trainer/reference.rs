//! Whether GRPO and RLOO hold a reference beside the policy, and a reward model.

use super::dialect::Dialect;
use super::{behind, fused_head};
use crate::leaves::Leaves;
use crate::{Asked, Effect, Found, Origin, Question};
use shardscope_plan::Field;

/// ms-swift's weight of the distance to the reference, which was also TRL's for GRPO.
const EARLY_BETA: f64 = 0.04;

/// The first release whose GRPO takes a beta of 0 by default, 0.04 before (`trl/trainer/grpo_config.py` of 0.18 and 0.19).
const WITHOUT_REFERENCE: [u64; 2] = [0, 19];

/// Asks whether a reference is held where the text belongs to a release of either default; 0 if only adapters train.
fn open_reference(leaves: &mut Leaves<'_>, path: &str) -> Option<f64> {
    if leaves.reading.value(Field::TrainType).is_some_and(|way| way != "full") {
        return Some(0.0);
    }
    let mut found = Found::new(Field::RlReference, String::new(), Origin::Script)
        .by(path, leaves.get(path).and_then(|leaf| leaf.span));
    found.hole = Some("the release of TRL".to_owned());
    leaves.reading.take(found);
    leaves.reading.questions.push(Question {
        asks: Asked::Setting(Field::RlReference),
        prompt: "Which release of TRL? Without beta GRPO holds a second copy of the weights as the reference up to 0.18 (device), and \
                 none since 0.19 (none)"
            .to_owned(),
        choices: ["none", "device"].map(str::to_owned).to_vec(),
        // The one that holds more.
        proposal: Some("device".to_owned()),
    });
    None
}

/// The policy is compared with its initial weights unless the weight of that term, beta, is 0. Without a default it is asked for.
fn held(leaves: &mut Leaves<'_>, default: Option<f64>) {
    let beta =
        leaves.first(&["beta", "rl_beta", "trl.beta"]).map(|leaf| leaf.value.parse::<f64>().unwrap_or(1.0));
    let held = beta.or(default).is_some_and(|beta| beta != 0.0);
    let adapters = leaves.reading.value(Field::TrainType).is_some_and(|way| way != "full");
    let open = leaves.get("beta").filter(|leaf| leaf.hole.is_some() && !adapters);
    if let Some(leaf) = open {
        // A weight that the program computes.
        leaves.say(Field::RlReference, "", leaf);
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(Field::RlReference),
            prompt: "Does the loss compare the policy with a second copy of its weights (beta above 0, and no adapters: device), or not \
                     (none)?"
                .to_owned(),
            choices: ["none", "device"].map(str::to_owned).to_vec(),
            proposal: Some("none".to_owned()),
        });
    }
    let (place, note) = match (held, adapters) {
        (false, _) => ("none", "beta is 0"),
        (true, true) => ("none", "the base model with adapters disabled"),
        (true, false) => ("device", "a second copy of the weights, sharded the same way"),
    };
    if open.is_none() && (beta.is_some() || default.is_some()) {
        leaves.state(Field::RlReference, place, Origin::Derived, note);
    }
    leaves.state(Field::RlCritic, "none", Origin::Derived, "GRPO and RLOO have no critic");
    if let Some(leaf) = leaves.get("reward_model") {
        leaves.lack(leaf, Effect::Memory, "a reward model on the same accelerators");
    }
}

/// The release of TRL, unless a text tells no more of it than that it runs with transformers 4.
fn release(leaves: &Leaves<'_>) -> Option<[u64; 2]> {
    behind::release(leaves).filter(|release| *release > [0, 0])
}

/// Reads both. `cut` is a limit of prompts by its path, which TRL up to 0.27 alone has; `early`: whether the weight is `EARLY_BETA`
/// by default, instead of `default`.
pub(super) fn read(
    leaves: &mut Leaves<'_>,
    dialect: Dialect,
    cut: Option<String>,
    early: bool,
    default: f64,
) {
    let stated = leaves.first(&["beta", "rl_beta", "trl.beta"]).is_some();
    let open = cut.or_else(|| fused_head::of_four(leaves).filter(|_| dialect == Dialect::Trl));
    let beta = match (release(leaves), open) {
        _ if early => Some(EARLY_BETA),
        _ if stated || default != 0.0 => Some(default),
        (Some(release), _) if release < WITHOUT_REFERENCE => Some(EARLY_BETA),
        (Some(_), _) if !leaves.has(behind::AT_MOST) => Some(default),
        (Some(_), None) => open_reference(leaves, behind::RELEASE),
        // Releases of both kinds have it.
        (_, Some(path)) => open_reference(leaves, &path),
        (None, None) => Some(default),
    };
    held(leaves, beta);
}
