//! Why a layout is not the answer.

use shardscope_estimate::time::{Time, part_words, time};
use shardscope_estimate::{Verdict, memory};
use shardscope_plan::{Contradiction, Plan, Stage};
use shardscope_units::{Bytes, Quantity, Seconds, gib, percent, seconds};

/// Why a layout is not the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNot {
    /// The software refuses it.
    Refused(Vec<Contradiction>),
    /// It does not fit.
    OutOfMemory(Lack),
    /// It fits only by taking part of the headroom, and is slower than the best by `slower` (faster if negative).
    Tight {
        /// Bytes that would have to go to leave the headroom free.
        over: Bytes,
        /// How much longer it takes, and for what.
        slower: Slower,
    },
    /// It takes longer.
    Slower(Slower),
    /// It is no slower than the best, and fits.
    AsGood,
}

/// Where memory is lacking, and how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// Pipeline rank.
    pub pipeline_rank: u64,
    /// The moment of the step with the memory peak there, in the report's words, or the phase of reinforcement
    /// learning.
    pub at: &'static str,
    /// How much is lacking there.
    pub by: Bytes,
    /// The largest of weights, gradients, optimizer states, activations and temporaries there, or of the parts of the
    /// phase, and its size.
    pub most: (String, Bytes),
}

/// How much longer a step takes than the best one, by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Slower {
    /// The total difference; negative if it is faster.
    pub by: Seconds,
    /// The same as a share of the best step.
    pub share: f64,
    /// The parts that take longer, greatest difference first, by their labels in the report.
    pub parts: Vec<(String, Seconds)>,
}

/// Differences below this share of the best step are not mentioned: no run would show them.
const TOLD: f64 = 1e-3;

/// The most parts that a sentence mentions.
const MOST_PARTS: usize = 3;

/// Why `layout` is not the answer if `best` is.
#[must_use]
pub fn why_not(layout: &Result<Plan, Vec<Contradiction>>, best: &Plan) -> WhyNot {
    let plan = match layout {
        Ok(plan) => plan,
        Err(reasons) => return WhyNot::Refused(reasons.clone()),
    };
    let memory = memory(plan);
    if memory.verdict == Verdict::OutOfMemory {
        // If rollouts share the devices, the phase decides; training's own peak is part of one.
        let failing = memory.rl.iter().flat_map(|rl| rl.failing());
        if let Some(phase) = failing.max_by_key(|phase| phase.needs.bytes) {
            let parts = phase.breakdown.children().iter().map(|part| (part.label().to_owned(), part.value()));
            return WhyNot::OutOfMemory(Lack {
                pipeline_rank: memory.worst.pipeline_rank,
                at: phase.kind.name(),
                by: phase.needs.bytes.less(memory.capacity),
                most: parts.max_by_key(|(_, bytes)| bytes.get()).unwrap_or_default(),
            });
        }
        let mut worst = None;
        for rank in &memory.ranks {
            let over = rank.totals.peak_required.less(memory.capacity);
            if worst.is_none_or(|(_, most)| over > most) {
                worst = Some((rank, over));
            }
        }
        if let Some((rank, by)) = worst {
            let totals = &rank.totals;
            let parts = [
                ("weights", totals.parameters),
                ("gradients", totals.gradients),
                ("optimizer states", totals.optimizer),
                ("saved activations", totals.activations),
                ("temporaries", totals.temporaries),
            ];
            let (most, bytes) = parts.into_iter().max_by_key(|(_, bytes)| bytes.get()).unwrap_or_default();
            let most = (most.to_owned(), bytes);
            return WhyNot::OutOfMemory(Lack { pipeline_rank: rank.pipeline_rank, at: rank.at, by, most });
        }
    }
    let slower = slower(plan, best);
    if memory.verdict == Verdict::Tight {
        let room = memory.capacity.number() * (1.0 - memory.headroom);
        let over = shardscope_units::Count::rounded_up((memory.worst.peak_reserved.number() - room).max(0.0));
        return WhyNot::Tight { over: over.bytes(1), slower };
    }
    if slower.by <= Seconds::ZERO { WhyNot::AsGood } else { WhyNot::Slower(slower) }
}

/// How much longer `plan` takes than `best`.
pub(crate) fn slower(plan: &Plan, best: &Plan) -> Slower {
    let (own, theirs) = (time(plan), time(best));
    // A step of zero time would make every share infinite.
    let whole = theirs.step.get().max(f64::MIN_POSITIVE);
    let mut parts: Vec<(String, Seconds)> = Vec::new();
    let (own_parts, their_parts) = (parts_of(&own), parts_of(&theirs));
    for (label, value) in own_parts {
        let known = their_parts.iter().find(|(other, _)| *other == label);
        let more = value - known.map_or(Seconds::ZERO, |(_, value)| *value);
        if more.get() > whole * TOLD {
            // With as many FLOPs on each GPU, GEMMs take longer only because they are smaller.
            let smaller = label == GEMMS && stages(plan) == stages(best);
            parts.push((if smaller { SMALLER.to_owned() } else { label.to_owned() }, more));
        }
    }
    parts.sort_by(|one, other| other.1.get().total_cmp(&one.1.get()));
    let by = own.step - theirs.step;
    Slower { by, share: by.get() / whole, parts }
}

/// The report's label for matrix products, and the label here for those that run slower because they are smaller.
const GEMMS: &str = "GEMMs";
const SMALLER: &str = "smaller GEMMs";

/// The parts of a step, with compute replaced by its own parts.
fn parts_of(time: &Time) -> Vec<(&str, Seconds)> {
    let parts = time.breakdown.children().iter();
    let each = parts.flat_map(|part| match part.children() {
        [] => std::slice::from_ref(part),
        inside => inside,
    });
    each.map(|part| (part.label(), part.value())).collect()
}

/// The number of stages and the layers of the largest: if both are equal, a GPU has the same matrix products to do.
fn stages(plan: &Plan) -> (u64, Option<u64>) {
    let stages = &plan.layout().stages.stages;
    (plan.layout().pipeline, stages.iter().map(Stage::layers).max())
}

impl WhyNot {
    /// The reason in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Refused(reasons) => {
                let said: Vec<&str> = reasons.iter().map(|reason| reason.message.as_str()).collect();
                format!("refused: {}", said.join("; "))
            }
            Self::OutOfMemory(lack) => format!(
                "out of memory by {} on pipeline rank {} during {}; most of it is {} of {}",
                gib(lack.by),
                lack.pipeline_rank,
                lack.at,
                gib(lack.most.1),
                lack.most.0
            ),
            Self::Tight { over, slower } => format!(
                "uses {} of the headroom, and is {}",
                gib(*over),
                if slower.by > Seconds::ZERO { slower.words() } else { "no slower".to_owned() }
            ),
            Self::Slower(slower) => slower.words(),
            Self::AsGood => "fits, and is as fast as the best found".to_owned(),
        }
    }
}

impl Slower {
    /// The greatest differences, each as its time, `between` and its name: for the slower plan, or, with larger
    /// GEMMs, for the faster one.
    pub(crate) fn reasons(&self, of_slower: bool, between: &str) -> Option<String> {
        let one = |(label, by): &(String, Seconds)| {
            let part = match (label.as_str(), of_slower) {
                (SMALLER, true) => "GEMM time (smaller GEMMs)",
                (SMALLER, false) => "GEMM time (larger GEMMs)",
                (GEMMS, _) => "GEMM time",
                ("other", _) => "other overhead",
                (label, _) => part_words(label),
            };
            format!("{} {between} {part}", seconds(*by))
        };
        let parts: Vec<String> = self.parts.iter().take(MOST_PARTS).map(one).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn words(&self) -> String {
        let reason = self.reasons(true, "more").map_or_else(String::new, |parts| format!(": {parts}"));
        format!("{} ({}) slower{reason}", seconds(self.by), percent(self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::plan;
    use crate::space::typed;

    fn against(text: &str, best: &str) -> WhyNot {
        let plan = plan("llama-3 70b, 128 H100");
        let read = |text: &str| typed(&plan, text).expect("understood").checked(&plan);
        why_not(&read(text), &read(best).expect("a plan"))
    }

    #[test]
    fn what_a_layout_takes_longer_for_is_recognised_by_its_parts() {
        let slower_by = |text: &str, best: &str| match against(text, best) {
            WhyNot::Slower(slower) => slower,
            other => panic!("{text}: {other:?}"),
        };
        // Chunks make the bubble smaller.
        let flat = slower_by("TP 8 PP 4 VPP 1", "TP 8 PP 4 VPP 5");
        assert_eq!(flat.parts[0].0, "bubble", "{flat:?}");
        // Half-size products of TP 4, on as many stages with as many layers.
        let smaller = slower_by("TP 8 PP 8", "TP 4 PP 8");
        assert!(smaller.parts.iter().any(|(part, _)| part == SMALLER), "{smaller:?}");
        // With more stages, the one with the output layer has more than its share: there are more products, not
        // smaller ones.
        let deeper = slower_by("TP 8 PP 8", "TP 8 PP 4");
        assert!(deeper.parts.iter().any(|(part, _)| part == GEMMS), "{deeper:?}");
    }

    #[test]
    fn what_does_not_start_or_does_not_fit_says_why() {
        assert!(matches!(against("TP 3", "TP 8"), WhyNot::Refused(_)));
        assert!(matches!(against("TP 1 PP 1", "TP 8"), WhyNot::OutOfMemory(_)));
        assert_eq!(against("TP 8 PP 4", "TP 8 PP 4"), WhyNot::AsGood);
    }
}
