//! What a run is checked against: whether it fits, what should stay free, and how much slower than another it may be.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use shardscope::estimate::{Needs, Verdict};
use shardscope::launch::fitting;
use shardscope::plan::{Field, Plan};
use shardscope::report::Report;
use shardscope::units::{Bytes, Seconds, gib, percent, seconds};

/// Tokens in a billion of them, by which the price of a training is compared.
const BILLION: f64 = 1e9;
/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// What counts as a failure. A run that does not fit fails unless nothing is to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FailOn {
    /// More memory than an accelerator has.
    OutOfMemory,
    /// Less memory to spare than the headroom.
    Tight,
    /// A step longer than the other run's by more than this share of it.
    Slower(f64),
    /// No run at all: the answer is only told.
    Nothing,
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "oom" => Ok(Self::OutOfMemory),
            "tight" => Ok(Self::Tight),
            "none" => Ok(Self::Nothing),
            _ => {
                // `slower` alone is any slowdown.
                let share = text.strip_prefix("slower").ok_or("it is not oom, tight, slower:5% or none")?;
                let share = match share.strip_prefix(':') {
                    Some(share) => percentage(share.trim_end_matches('%'))?,
                    None if share.is_empty() => 0.0,
                    None => return Err("it is not slower:5%".to_owned()),
                };
                Ok(Self::Slower(share / 100.0))
            }
        }
    }
}

/// A percentage below 100.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    // NaN is in no range.
    (0.0..100.0).contains(&percent).then_some(percent).ok_or_else(|| "it is not from 0 to 100".to_owned())
}

/// A price that the setting `price_per_gpu_hour` takes.
pub(crate) fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    // By the setting's own rule, so that the engine never refuses it later.
    fitting(Field::PricePerGpuHour, text).map_err(|bad| bad.to_string())?;
    Ok(price)
}

/// A percentage that the setting `memory_headroom` takes.
pub(crate) fn headroom(text: &str) -> Result<f64, String> {
    let percent = percentage(text)?;
    (percent <= 50.0).then_some(percent).ok_or_else(|| "it is not from 0 to 50".to_owned())
}

/// What a gate, a badge and a comment say of a run. Bare numbers in documents: bytes, seconds, shares.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Figures {
    /// `fits`, `tight` or `out_of_memory`.
    #[serde(serialize_with = "by_name")]
    #[schemars(with = "String")]
    pub(crate) verdict: Verdict,
    /// On the fullest device, as nvidia-smi shows it. Unit: byte.
    #[schemars(with = "u64")]
    pub(crate) peak_reserved: Bytes,
    /// Of the device. Unit: byte.
    #[schemars(with = "u64")]
    pub(crate) capacity: Bytes,
    /// Share of the capacity that is to stay free.
    pub(crate) headroom: f64,
    /// The pipeline rank that holds most. Unit: index, from 0.
    pub(crate) pipeline_rank: u64,
    /// When it does.
    pub(crate) at: String,
    /// Time of a step. Unit: second.
    #[schemars(with = "f64")]
    pub(crate) step_seconds: Seconds,
    /// Over all devices. Unit: token per second.
    pub(crate) tokens_per_second: f64,
    /// Model FLOPs as a share of the dense peak.
    pub(crate) mfu: f64,
    /// Devices in all. Unit: device.
    pub(crate) gpus: u64,
    /// The accelerator's name.
    pub(crate) accelerator: String,
    /// What a billion tokens take of all devices. Unit: hour of one device.
    pub(crate) gpu_hours_per_billion_tokens: f64,
    /// What a billion tokens cost, where the run states a price_per_gpu_hour. Unit: that price's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost_per_billion_tokens: Option<f64>,
    /// Settings of the run that the figures leave out, a sentence for each kind.
    pub(crate) marks: Vec<String>,
    /// The same for a title.
    #[serde(skip)]
    pub(crate) marked: String,
    /// The peak as the verdict tells it.
    #[serde(skip)]
    pub(crate) needs: Needs,
    /// Whether published runs tell how fast the accelerator is.
    #[serde(skip)]
    pub(crate) calibrated: bool,
}

fn by_name<S: serde::Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.name())
}

impl Figures {
    /// The figures of a plan.
    pub(crate) fn new(plan: &Plan, found: &Report) -> Self {
        let (memory, time, marks) = (&found.memory, &found.time, &plan.recipe().marks);
        let gpus = plan.layout().world_size;
        let (mut peak, mut at) = (memory.worst.peak_reserved, memory.worst.at.to_owned());
        let mut needs = memory.worst.needs;
        // Reinforcement learning has phases beside the training's step, any of which may hold most.
        let rl = memory.rl.as_ref();
        // Where one does not fit, the figures are its own; an engine that got too little may hold less than the device has.
        let failing: Vec<_> = rl.iter().flat_map(|rl| rl.failing()).collect();
        if let Some(first) = failing.first() {
            (peak, at) = (first.breakdown.value(), first.breakdown.label().to_owned());
            needs = first.needs;
        }
        let phases = rl.map_or(&[][..], |rl| &rl.phases);
        for phase in phases.iter().filter(|phase| failing.is_empty() || failing.contains(phase)) {
            if phase.breakdown.value() > peak {
                (peak, at) = (phase.breakdown.value(), phase.breakdown.label().to_owned());
                needs = phase.needs;
            }
        }
        #[allow(clippy::cast_precision_loss)]
        let devices = gpus as f64;
        let hours = devices * BILLION / (time.tokens_per_second * HOUR).max(f64::MIN_POSITIVE);
        Self {
            verdict: memory.verdict,
            peak_reserved: peak,
            needs,
            calibrated: found.is_calibrated(),
            capacity: memory.capacity,
            headroom: memory.headroom,
            pipeline_rank: memory.worst.pipeline_rank,
            at,
            step_seconds: time.step,
            tokens_per_second: time.tokens_per_second,
            mfu: time.mfu,
            gpus,
            accelerator: plan.cluster().accelerator.name.clone(),
            gpu_hours_per_billion_tokens: hours,
            cost_per_billion_tokens: plan.recipe().budget.price_per_gpu_hour.map(|price| hours * price),
            marks: marks.sentences(),
            marked: marks.short(),
        }
    }

    /// How much longer a step takes than the other's, as a share of it; negative if it is faster.
    pub(crate) fn slower_than(&self, other: &Self) -> f64 {
        // A step of zero seconds is not a real step; the share must still be a number.
        self.step_seconds.get() / other.step_seconds.get().max(f64::MIN_POSITIVE) - 1.0
    }

    /// Everything for which the run fails, in words; empty if it passes. `against` is the run that it must not be
    /// slower than.
    pub(crate) fn failures(&self, fail_on: &[FailOn], against: Option<&Self>) -> Vec<String> {
        let mut failures = Vec::new();
        if fail_on.contains(&FailOn::Nothing) {
            return failures;
        }
        if self.verdict == Verdict::OutOfMemory {
            failures.push("it does not fit".to_owned());
        }
        // `oom` adds nothing here: what does not fit has already failed.
        for fail_on in fail_on {
            match (fail_on, against) {
                (FailOn::Tight, _) if self.verdict == Verdict::Tight && self.needs.released > Bytes::ZERO => {
                    let released = gib(self.needs.released);
                    failures.push(format!("it fits only once PyTorch releases {released} of cached blocks"));
                }
                (FailOn::Tight, _) if self.verdict == Verdict::Tight => {
                    failures.push(format!("less than {} of the memory stays free", percent(self.headroom)));
                }
                (FailOn::Slower(share), Some(other)) if self.slower_than(other) > *share => {
                    let slower = percent(self.slower_than(other));
                    failures.push(format!("a step takes {slower} longer, more than {}", percent(*share)));
                }
                _ => {}
            }
        }
        failures
    }

    /// One line: verdict, fullest device, step.
    pub(crate) fn line(&self) -> String {
        // An engine that got too little for its cache fails with memory to spare.
        let starved = self.verdict == Verdict::OutOfMemory && self.needs.bytes <= self.capacity;
        format!(
            "{}{}: {} of {} on pipeline rank {} ({}){}{}; {} a step, {} MFU{}",
            words(self.verdict),
            self.marked,
            gib(self.needs.bytes),
            gib(self.capacity),
            self.pipeline_rank,
            self.at,
            self.needs.condition(),
            if starved { ", and its cache has no room for a rollout of full length" } else { "" },
            seconds(self.step_seconds),
            percent(self.mfu),
            if self.calibrated { "" } else { ", not calibrated" },
        )
    }
}

/// A verdict in words.
pub(crate) const fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Tight => "fits tightly",
        Verdict::OutOfMemory => "does not fit",
    }
}

/// A change of a share with its sign: `+4.3%`.
pub(crate) fn signed(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "+" }, percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::{FailOn, Figures};
    use shardscope::advice::reported;
    use shardscope::launch::resolve;

    /// A small model on 8 A100 whose rollouts take `share` of the memory.
    fn rolled_out(share: &str) -> Figures {
        let settings = [
            ("software", "hf_transformers"),
            ("accelerator", "A100-SXM-80GB"),
            ("num_nodes", "1"),
            ("gpus_per_node", "8"),
            ("num_layers", "8"),
            ("hidden_size", "1024"),
            ("ffn_hidden_size", "2816"),
            ("num_attention_heads", "16"),
            ("swiglu", "true"),
            ("untie_embeddings_and_output_weights", "true"),
            ("vocab_size", "32000"),
            ("seq_length", "2048"),
            ("micro_batch_size", "2"),
            ("num_micro_batches", "4"),
            ("params_dtype", "fp32"),
            ("autocast", "bf16"),
            ("data_parallel_engine", "fsdp1"),
            ("zero_stage", "3"),
            ("training_objective", "policy"),
            ("rl_framework", "verl"),
            ("rollout_memory_fraction", share),
            ("rollout_tensor_parallel_size", "2"),
            ("rollout_sleep", "true"),
            ("rollout_length", "2048"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolve(&[], &settings);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        Figures::new(&plan, &reported(&plan).unwrap_or_else(|fault| panic!("{fault:?}")))
    }

    #[test]
    fn the_figures_are_those_of_the_phase_that_does_not_fit() {
        assert_eq!(rolled_out("0.98").at, "rollout phase");
        // Less than the training's peak, yet the reason why the run fails.
        let starved = rolled_out("0.001");
        assert_eq!(starved.at, "rollout phase");
        let line = starved.line();
        assert!(
            line.starts_with("does not fit: ")
                && line.contains(" (rollout phase), and its cache has no room"),
            "{line}"
        );
    }

    #[test]
    fn failures_are_named_as_they_are_typed() {
        assert_eq!("oom".parse(), Ok(FailOn::OutOfMemory));
        assert_eq!("tight".parse(), Ok(FailOn::Tight));
        assert_eq!("none".parse(), Ok(FailOn::Nothing));
        assert_eq!("slower:5%".parse(), Ok(FailOn::Slower(0.05)));
        assert_eq!("slower:0.5".parse(), Ok(FailOn::Slower(0.005)));
        assert_eq!("slower".parse(), Ok(FailOn::Slower(0.0)));
        for wrong in ["", "slow", "slower5", "slower:-1", "slower:x", "OOM"] {
            assert!(wrong.parse::<FailOn>().is_err(), "{wrong}");
        }
    }
}
