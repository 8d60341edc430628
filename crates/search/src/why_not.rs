//! Why a layout is not the answer.

use shardscope_estimate::time::{Time, part_words, time};
use shardscope_estimate::{Verdict, memory};
use shardscope_plan::{Contradiction, Plan};
use shardscope_sorting::sort_by;
use shardscope_units::{Bytes, Quantity, Seconds, gib, percent, seconds};

/// Why a layout is not the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNot {
    /// The software refuses it.
    Refused(Vec<Contradiction>),
    /// It does not fit.
    OutOfMemory(Lack),
    /// It fits only with some of the headroom, and takes so much longer than the best (or less long, where negative).
    Tight {
        /// What would have to go to leave the headroom free.
        over: Bytes,
        /// What it takes longer, and for what.
        slower: Slower,
    },
    /// It takes longer.
    Slower(Slower),
    /// It is no slower than the best, and fits.
    AsGood,
}

/// Where memory lacks, and how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// Pipeline rank.
    pub pipeline_rank: u64,
    /// The moment of the step at which memory is at its peak there, in the report's words, or the phase of reinforcement learning.
    pub at: &'static str,
    /// What is lacking there.
    pub by: Bytes,
    /// The largest of weights, gradients, optimizer states, activations and temporaries there, or of what the phase holds, and how
    /// large.
    pub most: (String, Bytes),
}

/// What a step takes longer than the best one's, part by part.
#[derive(Clone, Debug, PartialEq)]
pub struct Slower {
    /// The whole difference; negative where it is faster.
    pub by: Seconds,
    /// As a share of the best step.
    pub share: f64,
    /// The parts that take longer, the greatest difference first, by their labels in the report.
    pub parts: Vec<(String, Seconds)>,
}

/// Differences below this share of the best step are not told: no run would show them.
const TOLD: f64 = 1e-3;

/// Why `layout` is not the answer where `best` is.
#[must_use]
pub fn why_not(layout: &Result<Plan, Vec<Contradiction>>, best: &Plan) -> WhyNot {
    let plan = match layout {
        Ok(plan) => plan,
        Err(reasons) => return WhyNot::Refused(reasons.clone()),
    };
    let memory = memory(plan);
    if memory.verdict == Verdict::OutOfMemory {
        // The phase decides where rollouts share the devices; training's own peak is part of one.
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
    let slower = slower(&time(plan), &time(best));
    if memory.verdict == Verdict::Tight {
        let room = memory.capacity.number() * (1.0 - memory.headroom);
        let over = shardscope_units::Count::rounded_up((memory.worst.peak_reserved.number() - room).max(0.0));
        return WhyNot::Tight { over: over.bytes(1), slower };
    }
    if slower.by <= Seconds::ZERO { WhyNot::AsGood } else { WhyNot::Slower(slower) }
}

fn slower(own: &Time, best: &Time) -> Slower {
    // A step of no time would make every share infinite.
    let whole = best.step.get().max(f64::MIN_POSITIVE);
    let mut parts: Vec<(String, Seconds)> = Vec::new();
    for part in own.breakdown.children() {
        let label = part.label();
        let theirs = best.breakdown.child(label).map_or(Seconds::ZERO, shardscope_explain::Breakdown::value);
        let more = part.value() - theirs;
        if more.get() > whole * TOLD {
            parts.push((label.to_owned(), more));
        }
    }
    sort_by(&mut parts, |one, other| other.1.get().total_cmp(&one.1.get()));
    let by = own.step - best.step;
    Slower { by, share: by.get() / whole, parts }
}

impl WhyNot {
    /// In one sentence.
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
                "it takes {} of the headroom, and {}",
                gib(*over),
                if slower.by > Seconds::ZERO { slower.words() } else { "is no slower".to_owned() }
            ),
            Self::Slower(slower) => slower.words(),
            Self::AsGood => "it is as fast as the best that was found, and fits".to_owned(),
        }
    }
}

impl Slower {
    fn words(&self) -> String {
        let parts: Vec<String> = self
            .parts
            .iter()
            .take(3)
            .map(|(label, more)| format!("{} more of {}", seconds(*more), part_words(label)))
            .collect();
        let reason = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        format!("takes {} ({}) longer{reason}", seconds(self.by), percent(self.share))
    }
}
