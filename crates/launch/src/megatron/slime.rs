//! What slime and miles make of several options together.

use crate::{Argument, Effect, Found, NotModelled, Origin, Reading};
use shardscope_plan::Field;

/// Flags of slime that are read together; the reading is complete but for them.
pub(super) fn together(reading: &mut Reading, words: &[Argument], train_only: bool) {
    if reading.value(Field::RlFramework).is_none() {
        return;
    }
    if !builds_tower(words) {
        let found = Found::new(Field::VisionInEngine, "true", Origin::Derived);
        reading.take(found.note(
            "slime's and miles' providers build a GPT model from Megatron's options, without a vision tower",
        ));
    }
    if train_only {
        let found = Found::new(Field::RolloutGpus, "0", Origin::Derived);
        reading.take(found.note("no rollout engine is started"));
    }
    resident(reading, words);
    // `slime/utils/arguments.py`: use_critic = advantage_estimator == "ppo", and miles the same.
    let mut before = "";
    for word in words {
        let (name, value) = word.text.split_once('=').unwrap_or((before, word.text.as_str()));
        if name == "--advantage-estimator" && value == "ppo" {
            let what = "a critic in addition to the policy";
            reading.not_modelled.push(NotModelled::new(name, value, Effect::Memory, what).at_some(word.span));
        }
        before = &word.text;
    }
    // `slime/ray/placement_group.py`: with_ref=args.kl_coef != 0 or args.use_kl_loss, and miles the same.
    let named = reading.found.iter().any(|found| found.field == Field::RlReference);
    if named && !words.iter().enumerate().any(|(at, word)| penalises(&word.text, words.get(at + 1))) {
        let found = Found::new(Field::RlReference, "none", Origin::Derived);
        reading.take(found.note("neither --use-kl-loss nor --kl-coef: --ref-load is not loaded"));
    }
}

/// What of trainer and rollout engine gives way while the other works: both where they share accelerators, unless told otherwise
/// (`slime/utils/arguments.py`, `miles/utils/arguments.py`: offload_train, offload_rollout).
fn resident(reading: &mut Reading, words: &[Argument]) {
    let rows = [
        ("--offload-train", "--no-offload-train", Field::OffloadBetweenPhases, "weights gradients optimizer"),
        ("--offload-rollout", "--no-offload-rollout", Field::RolloutSleep, "true"),
    ];
    let both = words.iter().find(|word| word.text == "--offload");
    for (yes, no, field, value) in rows {
        let said = words.iter().rfind(|word| word.text == yes || word.text == no);
        let Some(word) = both.or(said) else { continue };
        if word.text != no {
            reading.take(Found::new(field, value, Origin::Script).by(&word.text, word.span));
        } else if field == Field::RolloutSleep {
            reading.take(Found::new(field, "false", Origin::Script).by(no, word.span));
        } else {
            reading.keep(&|found| found.field != field);
        }
    }
}

/// Whether a model of these words has more parts than the decoder: one of Megatron-Bridge, one of the text's own, or one of slime's for
/// vision (`slime/backends/megatron_utils/model_provider.py`, `slime_plugins/models/qwen3_5_vl.py`, and miles the same).
fn builds_tower(words: &[Argument]) -> bool {
    let mut before = "";
    words.iter().any(|word| {
        let (name, value) = word.text.split_once('=').unwrap_or((before, word.text.as_str()));
        before = &word.text;
        match name {
            "--megatron-to-hf-mode" => value == "bridge",
            "--custom-model-provider-path" => true,
            // The function that follows the module's name.
            _ => value.starts_with("slime_plugins") && value.contains("_vl"),
        }
    })
}

/// Whether a word asks for a divergence from the reference; a value that a variable leaves open may.
fn penalises(word: &str, next: Option<&Argument>) -> bool {
    let zero = |value: &str| value.parse::<f64>().is_ok_and(|number| number == 0.0);
    match word.split_once('=').unwrap_or((word, "")) {
        ("--use-kl-loss", value) => value != "false",
        ("--kl-coef", "") => next.is_some_and(|value| !zero(&value.text)),
        ("--kl-coef", value) => !zero(value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Argument;
    use crate::megatron::read;
    use shardscope_plan::Field;

    /// What stops the verdict of a run of slime with these words beside its rollouts.
    fn stopped(words: &str) -> Vec<String> {
        let line = format!("--num-layers 2 --rollout-batch-size 8 {words}");
        read(&Argument::split(&line)).not_modelled.into_iter().map(|item| item.name).collect()
    }

    #[test]
    fn trainer_and_engine_give_way_where_they_are_told_to() {
        let said = |words: &str| {
            let line = format!("--num-layers 2 --rollout-batch-size 8 {words}");
            let reading = read(&Argument::split(&line));
            let value = |field| reading.value(field).map(str::to_owned);
            (value(Field::OffloadBetweenPhases), value(Field::RolloutSleep))
        };
        let (all, yes) = (Some("weights gradients optimizer".to_owned()), Some("true".to_owned()));
        assert_eq!(said("--colocate"), (all.clone(), yes.clone()));
        assert_eq!(said("--offload"), (all.clone(), yes));
        // Whatever their order.
        let neither = (None, Some("false".to_owned()));
        assert_eq!(said("--no-offload-train --no-offload-rollout --colocate"), neither);
        assert_eq!(said("--offload-train"), (all, None));
    }

    #[test]
    fn an_estimator_with_a_critic_stops() {
        assert_eq!(stopped("--advantage-estimator ppo"), ["--advantage-estimator"]);
        assert_eq!(stopped("--advantage-estimator=ppo"), ["--advantage-estimator"]);
        assert!(stopped("--advantage-estimator grpo").is_empty());
    }
}
