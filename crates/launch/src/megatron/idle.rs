//! Why a flag changes none of the figures: only flags that are told by this list are said to be without influence.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use shardscope_source::LaterText;

/// Until a program with the feature `tables-later` is given it, no flag is said to be without influence.
pub(crate) static TABLE: LaterText = LaterText::new(
    "idle.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("idle.txt")) },
);

/// A reason, the beginnings of flags that it holds for, and whole flags. Without dashes.
struct Reason {
    why: &'static str,
    /// Whether it holds for any program that trains, whatever else it is told.
    anywhere: bool,
    starts: Vec<&'static str>,
    /// Beginnings that one of those would take along, of flags that it does not hold for.
    but: Vec<&'static str>,
    names: Vec<&'static str>,
}

/// The reasons. A name that two of them hold for goes by the first.
fn reasons() -> &'static [Reason] {
    static REASONS: OnceLock<Vec<Reason>> = OnceLock::new();
    REASONS.get_or_init(|| {
        let (mut reasons, mut anywhere) = (Vec::<Reason>::new(), true);
        for line in TABLE.text().lines() {
            anywhere &= line != BORDER;
            if let Some(why) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                reasons.push(Reason {
                    why,
                    anywhere,
                    starts: Vec::new(),
                    but: Vec::new(),
                    names: Vec::new(),
                });
            }
            let Some(reason) = reasons.last_mut() else { continue };
            match line.split_once(' ') {
                Some(("starts", words)) => reason.starts.extend(words.split(' ')),
                Some(("but", words)) => reason.but.extend(words.split(' ')),
                Some(("names", words)) => reason.names.extend(words.split(' ')),
                _ => {}
            }
        }
        reasons
    })
}

/// The line below the reasons that hold for any program.
const BORDER: &str = "====";

/// Options of slime and miles beside Megatron's: how rollouts are sampled and rewarded, and what the launch tells by itself. A
/// teacher behind an address runs elsewhere. SGLang cuts experts by number or by width over the same accelerators, as many bytes
/// on each either way (`sglang/srt/distributed/parallel_state.py`: TP is EP times what cuts each expert). Checks of a test compare what
/// was computed anyway, and engines whose health is asked for are started again where they fail. What miles' `--num-gpus-per-node`
/// gives is the machine of which actors take a part.
const ROLLOUTS: &str = "apply-chat-template input-key label-key metadata-key tool-key rm-type custom-rm-path reward-key \
    eval-reward-key num-rollout num-epoch rollout-shuffle rollout-seed rollout-temperature rollout-top-p rollout-top-k \
    rollout-stop rollout-stop-token-ids balance-data eps-clip eps-clip-high kl-loss-coef kl-loss-type kl-coef use-kl-loss \
    use-tis tis-clip tis-clip-low n-samples-per-eval-prompt actor-num-nodes actor-num-gpus-per-node hf-checkpoint \
    disable-compute-advantages-and-returns use-opd opd-type opd-kl-coef opd-teacher-ckpt-step opd-teacher-urls \
    opd-teacher-key ci-test ci-disable-kl-checker ci-disable-logprobs-checker ci-metric-checker-key ci-metric-checker-threshold \
    use-fault-tolerance rollout-health-check-interval rollout-health-check-timeout rollout-health-check-first-wait dump-details \
    sglang-enable-metrics sglang-decode-log-interval num-gpus-per-node sglang-expert-parallel-size sglang-ep-size \
    sglang-moe-runner-backend sglang-lora-backend over-sampling-batch-size dynamic-sampling-filter-path \
    custom-reward-post-process-path rm-url use-rollout-logprobs use-miles-router miles-router-middleware-paths";

/// Whether such an option changes none of the figures at its value: PPO's estimator brings a critic, and a weight of the
/// entropy its gradient.
pub(super) fn is_of_rollouts(name: &str, value: &str) -> bool {
    match name {
        // `slime.rs` tells of the critic.
        "advantage-estimator" => true,
        // Samples of a micro-batch joined, or padded to the longest: no more than its sequences whole either way.
        "qkv-format" => matches!(value, "thd" | "bshd"),
        "entropy-coef" => value.parse::<f64>() == Ok(0.0),
        _ => ROLLOUTS.split_ascii_whitespace().any(|known| known == name),
    }
}

/// Why a flag that no parser here knows changes none of the figures; none when no reason is known.
pub(crate) fn reason_anywhere(name: &str) -> Option<&'static str> {
    reason_among(name, |reason| reason.anywhere)
}

/// Why a flag, without dashes and dashed, changes none of the figures; none when no reason is known.
pub(crate) fn reason_of(name: &str) -> Option<&'static str> {
    reason_among(name, |_| true)
}

/// Why a fork's flag, named whole, changes none of the figures: beginnings hold for Megatron-LM's own flags alone.
pub(super) fn reason_named(name: &str) -> Option<&'static str> {
    names().get(name).map(|reason| reason.why)
}

/// Whole flags with their reasons.
fn names() -> &'static BTreeMap<&'static str, &'static Reason> {
    static NAMES: OnceLock<BTreeMap<&'static str, &'static Reason>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = BTreeMap::new();
        for reason in reasons() {
            for name in &reason.names {
                names.entry(*name).or_insert(reason);
            }
        }
        names
    })
}

/// Among the reasons that `holds` takes: one that names the flag whole, else one that holds for its beginning.
fn reason_among(name: &str, holds: fn(&Reason) -> bool) -> Option<&'static str> {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let begun = |reason: &&Reason| holds(reason) && begins(&reason.starts) && !begins(&reason.but);
    let named = names().get(name).copied().filter(|reason| holds(reason));
    named.or_else(|| reasons().iter().find(begun)).map(|reason| reason.why)
}

#[cfg(test)]
mod tests {
    use super::{reason_anywhere, reason_named, reason_of};
    use crate::megatron::{flags, renamed, unmodelled};
    use shardscope_plan::Field;

    #[test]
    fn a_beginning_takes_nothing_along_that_changes_figures() {
        for name in
            ["load-in-4bit", "load-in-kbits", "async-rl", "data-parallel-shard-dim", "data-max-length"]
        {
            assert_eq!(reason_anywhere(name), None, "{name}");
        }
        assert_eq!(reason_of("master-weights"), None);
        for name in ["load-path", "async-save", "data-path", "save"] {
            assert!(reason_anywhere(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_flag_has_a_setting_a_reason_or_stops_the_verdict() {
        let mut without = Vec::new();
        for flag in flags::all() {
            let known =
                Field::named(flag.dest.unwrap_or(flag.name)).is_some() || renamed::find(flag.name).is_some();
            if !known && unmodelled::find(flag.name, "?").is_none() && reason_of(flag.name).is_none() {
                without.push(flag.name);
            }
        }
        assert!(without.is_empty(), "neither read, nor said why it changes nothing: {without:?}");
    }

    #[test]
    fn a_whole_name_goes_before_a_beginning_and_some_reasons_hold_anywhere() {
        assert_eq!(reason_of("log-interval"), Some("logging"));
        assert_eq!(reason_of("apply-wd-to-qk-layernorm"), Some("learning rate and losses' weights"));
        assert_eq!(reason_of("no-such-flag"), None);
        assert_eq!(reason_anywhere("log-interval"), Some("logging"));
        assert_eq!((reason_anywhere("rope-theta"), reason_of("rope-theta").is_some()), (None, true));
        assert_eq!((reason_named("rope-theta"), reason_named("seq-aux").is_some()), (None, true));
    }
}
