//! Why a flag changes no figure: only flags in this list are reported as having no effect.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use shardscope_source::LaterText;

/// In a program with the feature `tables-later` no flag is reported as having no effect until the table is supplied.
pub static TABLE: LaterText = LaterText::new(
    "idle.txt",
    if cfg!(feature = "tables-later") { None } else { Some(include_str!("idle.txt")) },
);

/// A reason, the prefixes of flags to which it applies, and full flag names. Without dashes.
struct Reason {
    why: &'static str,
    /// Whether it holds for any training program, whatever its other options.
    anywhere: bool,
    starts: Vec<&'static str>,
    /// Longer prefixes that `starts` would also match, of flags to which the reason does not apply.
    but: Vec<&'static str>,
    names: Vec<&'static str>,
}

/// The reasons. If two apply to a name, the first one counts.
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

/// The line after the reasons that hold for any program.
const BORDER: &str = "====";

/// Options of slime and miles that are not Megatron's: sampling and rewards of rollouts. A teacher behind a URL runs
/// elsewhere. SGLang splits experts by number or by width over the same accelerators, with the same number of bytes on each (`sglang/srt/distributed/parallel_state.py`: TP is
/// EP times the degree that splits each expert). Checks of a test compare values that are computed anyway, and
/// engines under health checks are restarted if they fail. miles' `--num-gpus-per-node` is the size of the
/// machine, of which actors use a part.
const ROLLOUTS: &str = "apply-chat-template input-key label-key metadata-key tool-key rm-type custom-rm-path reward-key \
    eval-reward-key num-rollout num-epoch rollout-shuffle rollout-seed rollout-top-p rollout-top-k \
    rollout-stop rollout-stop-token-ids balance-data eps-clip eps-clip-high kl-loss-coef kl-loss-type \
    use-tis tis-clip tis-clip-low n-samples-per-eval-prompt \
    disable-compute-advantages-and-returns use-opd opd-type opd-kl-coef opd-teacher-ckpt-step opd-teacher-urls \
    opd-teacher-key ci-test ci-disable-kl-checker ci-disable-logprobs-checker ci-metric-checker-key ci-metric-checker-threshold \
    use-fault-tolerance rollout-health-check-interval rollout-health-check-timeout rollout-health-check-first-wait dump-details \
    sglang-enable-metrics sglang-decode-log-interval num-gpus-per-node sglang-expert-parallel-size sglang-ep-size \
    sglang-moe-runner-backend sglang-lora-backend over-sampling-batch-size dynamic-sampling-filter-path \
    custom-reward-post-process-path rm-url use-rollout-logprobs use-miles-router miles-router-middleware-paths";

/// Those that `slime.rs` and the launch read: the accelerators of the actors, the checkpoint, and whether a reference is loaded.
const READ: [&str; 6] = [
    "rollout-temperature",
    "actor-num-nodes",
    "actor-num-gpus-per-node",
    "hf-checkpoint",
    "kl-coef",
    "use-kl-loss",
];

/// Whether such an option is read elsewhere, so that nothing is said of it here.
pub(super) fn is_read_elsewhere(name: &str) -> bool {
    READ.contains(&name)
}

/// Whether such an option changes no figure at this value: PPO's estimator requires a critic, and an entropy weight
/// requires the entropy's gradient.
pub(super) fn is_of_rollouts(name: &str, value: &str) -> bool {
    match name {
        // `slime.rs` reports the critic.
        "advantage-estimator" => true,
        // Samples of a micro-batch are concatenated or padded to the longest: at most its full sequences either way.
        "qkv-format" => matches!(value, "thd" | "bshd"),
        "entropy-coef" => value.parse::<f64>() == Ok(0.0),
        _ => ROLLOUTS.split_ascii_whitespace().any(|known| known == name),
    }
}

/// Why a flag that no parser here knows changes no figure; `None` if no reason is known.
pub(crate) fn reason_anywhere(name: &str) -> Option<&'static str> {
    reason_among(name, |reason| reason.anywhere)
}

/// Why a flag, without leading dashes and with hyphens, changes no figure; `None` if no reason is known.
pub(crate) fn reason_of(name: &str) -> Option<&'static str> {
    reason_among(name, |_| true)
}

/// Why a fork's flag, by its full name, changes no figure: prefixes apply only to Megatron-LM's own flags.
pub(super) fn reason_named(name: &str) -> Option<&'static str> {
    names().get(name).map(|reason| reason.why)
}

/// Full flag names with their reasons.
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

/// Among the reasons that `holds` accepts: one that lists the flag's full name, otherwise one whose prefix matches.
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
