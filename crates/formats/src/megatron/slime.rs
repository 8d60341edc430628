//! How slime and miles combine several options.

use super::forks::SAMPLES;
use crate::{Argument, Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

/// Functions in slime's and miles' own examples that return one sample for each that they receive, as long as all its
/// turns together (`examples/tau-bench`, `examples/search-r1`, `examples/retool` and `examples/strands_sglang`, in
/// miles below `examples/experimental`).
const ONE_OF_ONE: [&str; 4] = [
    "generate_with_tau.generate",
    "generate_with_search.generate",
    "generate_with_retool.generate",
    "generate_with_strands.generate",
];

/// Flags of slime that are read together; everything else in the reading is complete.
pub(super) fn together(reading: &mut Reading, words: &[Argument], program: &str, train_only: bool) {
    if reading.value(Field::RlFramework).is_none() {
        return;
    }
    if !builds_tower(words) {
        let found = Found::new(Field::VisionInEngine, "true", Origin::Derived);
        reading.take(found.note(
            "slime's and miles' providers build a GPT model from Megatron's options, without a vision tower",
        ));
    }
    if value_of(words, "--megatron-to-hf-mode").is_some_and(|(value, _)| value == "bridge") {
        bridged(reading, words, program);
    }
    if train_only {
        let found = Found::new(Field::RolloutGpus, "0", Origin::Derived);
        reading.take(found.note("no rollout engine is started"));
    }
    // `slime/backends/megatron_utils/loss.py`: logits are divided by another temperature out of place; the same in miles.
    if let Some((value, word)) = value_of(words, "--rollout-temperature")
        && (word.hole.is_some() || value.parse::<f64>().is_ok_and(|temperature| temperature != 1.0))
    {
        let found = Found::new(Field::RolloutSampling, "temperature", Origin::Script);
        reading.take(found.by("--rollout-temperature", word.span));
    }
    resident(reading, words);
    generated(reading, words);
    // `slime/utils/arguments.py`: use_critic = advantage_estimator == "ppo"; the same in miles.
    let mut before = "";
    for word in words {
        let (name, value) = word.text.split_once('=').unwrap_or((before, word.text.as_str()));
        if name == "--advantage-estimator" && value == "ppo" {
            let what = "a critic in addition to the policy";
            reading.not_modelled.push(NotModelled::new(name, value, Effect::Memory, what).at_some(word.span));
        }
        before = &word.text;
    }
    // `slime/ray/placement_group.py`: with_ref=args.kl_coef != 0 or args.use_kl_loss; the same in miles.
    let named = reading.found.iter().any(|found| found.field == Field::RlReference);
    if named && !words.iter().enumerate().any(|(at, word)| penalises(&word.text, words.get(at + 1))) {
        let found = Found::new(Field::RlReference, "none", Origin::Derived);
        reading.take(found.note("neither --use-kl-loss nor --kl-coef: --ref-load is not loaded"));
    }
}

/// The value of an option, in one word or two; the last one counts.
pub(super) fn value_of<'a>(words: &'a [Argument], option: &str) -> Option<(&'a str, &'a Argument)> {
    words.iter().enumerate().rev().find_map(|(at, word)| match word.text.strip_prefix(option)? {
        "" => words.get(at + 1).map(|next| (next.text.as_str(), next)),
        rest => rest.strip_prefix('=').map(|value| (value, word)),
    })
}

/// Samples from the run's own function. If it makes one from each prompt and micro-batches are packed by
/// tokens, it only decides the length of samples: prompt, turns and tool outputs, so the limits of prompts and
/// responses do not determine it.
fn generated(reading: &mut Reading, words: &[Argument]) {
    let option = "--custom-generate-function-path";
    let Some((value, word)) = value_of(words, option) else { return };
    let one = ONE_OF_ONE.iter().any(|known| {
        value.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    });
    if !one || reading.value(Field::UseDynamicBatchSize) != Some("true") {
        let item = NotModelled::new(option, value, Effect::Memory, SAMPLES).at_some(word.span);
        return reading.not_modelled.push(item);
    }
    let limits = [Field::MaxPromptLength, Field::MaxResponseLength, Field::MaxContextLength];
    reading.keep(&|found| !limits.contains(&found.field));
    reading.questions.push(Question {
        asks: Asked::Setting(Field::RolloutLength),
        prompt: format!(
            "Longest sample that {value} makes, prompt, turns and tools' answers together, in tokens?"
        ),
        choices: Vec::new(),
        proposal: reading.value(Field::MaxTokensPerGpu).map(str::to_owned),
    });
}

/// A model that Megatron-Bridge builds: its provider receives only those of Megatron's options that the program passes
/// on; all others have the provider's values (`slime/backends/megatron_utils/model_provider.py`,
/// `miles/…/model_provider.py:_apply_bridge_runtime_config`).
fn bridged(reading: &mut Reading, words: &[Argument], program: &str) {
    const WHY: &str =
        "Megatron-Bridge builds the model, a tower of Qwen3-VL's kind from Megatron core's layers";
    reading.take(Found::new(Field::VisionModules, "provider", Origin::Derived).note(WHY));
    let whole = Found::new(Field::PadVocabSize, "false", Origin::Derived);
    reading.take(whole.note("Megatron-Bridge's provider does not pad the vocabulary (should_pad_vocab)"));
    recomputed(reading, words, program);
}

/// slime passes on no recomputation options, and by default the provider recomputes nothing; miles passes them on since
/// June 2026 (#1483). The options do not reveal which of the two runs; the program's path, modules of functions and
/// names of folders do.
fn recomputed(reading: &mut Reading, words: &[Argument], program: &str) {
    let stated = reading.found.iter().find(|found| found.field == Field::RecomputeGranularity);
    let Some((value, span)) = stated.map(|found| (found.value.clone(), found.span)) else { return };
    if names(program, words, "miles") {
        return;
    }
    let recompute = [
        Field::RecomputeGranularity,
        Field::RecomputeMethod,
        Field::RecomputeNumLayers,
        Field::RecomputeModules,
        Field::RecomputeActivations,
    ];
    reading.keep(&|found| !recompute.contains(&found.field));
    if names(program, words, "slime") {
        let message = "slime does not hand recomputation on to the model that Megatron-Bridge builds: nothing is recomputed";
        let said = Diagnostic::warning(Code::NoInfluence, message.to_owned());
        reading.diagnostics.push(said.at_some(span));
    } else {
        // Which of the two answers holds is the difference between fitting and not.
        let what = "recomputation of a model that Megatron-Bridge builds, which miles hands on and slime does not, and nothing here \
                    says which of them runs";
        let item = NotModelled::new("--recompute-granularity", &value, Effect::Memory, what).at_some(span);
        reading.not_modelled.push(item);
    }
}

/// Whether the program's path or a word names this project as a folder or module, or a folder of checkpoints as its
/// scripts do (`/root/Qwen3-8B_slime`). What a run is called on a dashboard says nothing of it: launch scripts are
/// copied from one project to the other.
fn names(program: &str, words: &[Argument], project: &str) -> bool {
    let is = |part: &str| match part.strip_suffix("_plugins").unwrap_or(part).strip_suffix(project) {
        Some(before) => before.is_empty() || before.ends_with('_'),
        None => false,
    };
    let of = |text: &str| text.split(['/', '.', ':']).any(is);
    let called = |at: usize| at.checked_sub(1).is_some_and(|at| words[at].text.starts_with("--wandb-"));
    of(program) || words.iter().enumerate().any(|(at, word)| of(&word.text) && !called(at))
}

/// Which of trainer and rollout engine is offloaded while the other runs: by default both, if they share accelerators
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

/// Whether the model has more parts than the decoder: one from Megatron-Bridge, one from the text's own provider, or
/// one of slime's vision models (`slime/backends/megatron_utils/model_provider.py`,
/// `slime_plugins/models/qwen3_5_vl.py`; the same in miles).
fn builds_tower(words: &[Argument]) -> bool {
    let mut before = "";
    words.iter().any(|word| {
        let (name, value) = word.text.split_once('=').unwrap_or((before, word.text.as_str()));
        before = &word.text;
        match name {
            "--megatron-to-hf-mode" => value == "bridge",
            "--custom-model-provider-path" => true,
            // The function name that follows the module's name.
            _ => value.starts_with("slime_plugins") && value.contains("_vl"),
        }
    })
}

/// Whether a word enables a divergence from the reference; a value that depends on a variable may.
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

    /// The items that stop the verdict of a slime run with these words.
    fn stopped(words: &str) -> Vec<String> {
        let line = format!("--num-layers 2 --rollout-batch-size 8 {words}");
        read(&Argument::split(&line)).not_modelled.into_iter().map(|item| item.name).collect()
    }

    #[test]
    fn trainer_and_engine_give_way_where_they_are_asked_to() {
        let said = |words: &str| {
            let line = format!("--num-layers 2 --rollout-batch-size 8 {words}");
            let reading = read(&Argument::split(&line));
            let value = |field| reading.value(field).map(str::to_owned);
            (value(Field::OffloadBetweenPhases), value(Field::RolloutSleep))
        };
        let (all, yes) = (Some("weights gradients optimizer".to_owned()), Some("true".to_owned()));
        assert_eq!(said("--colocate"), (all.clone(), yes.clone()));
        assert_eq!(said("--offload"), (all.clone(), yes));
        // In any order.
        let neither = (None, Some("false".to_owned()));
        assert_eq!(said("--no-offload-train --no-offload-rollout --colocate"), neither);
        assert_eq!(said("--offload-train"), (all, None));
    }

    /// One sample per prompt is as long as all its turns, which is asked for; several samples per prompt, or
    /// micro-batches that count samples, stop the verdict.
    #[test]
    fn a_known_function_of_its_own_is_asked_for_the_length_of_its_samples() {
        let said = |words: &str| {
            let line =
                format!("--num-layers 2 --rollout-batch-size 8 --rollout-max-response-len 1024 {words}");
            let reading = read(&Argument::split(&line));
            let asked: Vec<_> = reading
                .questions
                .iter()
                .map(|asked| (asked.name().to_owned(), asked.proposal.clone()))
                .collect();
            let limit = reading.value(Field::MaxResponseLength).map(str::to_owned);
            (asked, limit, reading.not_modelled.len())
        };
        let packed = "--use-dynamic-batch-size --max-tokens-per-gpu 9216";
        let path = "--custom-generate-function-path";
        let asked = vec![("rollout_length".to_owned(), Some("9216".to_owned()))];
        for known in ["generate_with_tau.generate", "examples.strands_sglang.generate_with_strands.generate"]
        {
            assert_eq!(said(&format!("{packed} {path} {known}")), (asked.clone(), None, 0), "{known}");
        }
        assert_eq!(said(&format!("{packed} {path}=generate_with_search.generate")), (asked, None, 0));
        let stopped = (Vec::new(), Some("1024".to_owned()), 1);
        assert_eq!(said(&format!("{path} generate_with_tau.generate")), stopped);
        for other in [
            "mine.generate",
            "regenerate_with_tau.generate",
            "a.rollout_with_multi_agents.generate_with_multi_agents",
        ] {
            assert_eq!(said(&format!("{packed} {path} {other}")), stopped, "{other}");
        }
        assert_eq!(said(packed), (Vec::new(), Some("1024".to_owned()), 0));
    }

    #[test]
    fn an_estimator_with_a_critic_stops() {
        assert_eq!(stopped("--advantage-estimator ppo"), ["--advantage-estimator"]);
        assert_eq!(stopped("--advantage-estimator=ppo"), ["--advantage-estimator"]);
        assert!(stopped("--advantage-estimator grpo").is_empty());
    }
}
