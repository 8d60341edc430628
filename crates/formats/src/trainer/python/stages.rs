//! Consecutive trainings in one program (supervised fine-tuning, then preferences): the last one is read. It has only
//! its own keywords, and does not inherit those of earlier ones.

use super::calls::{ARGUMENTS, PREFERENCE_TRAINERS, PREFERENCES};
use super::program::ADAPTERS;
use crate::scalars::Leaf;
use shardscope_source::{Code, Diagnostic};
use std::ops::Range;

/// Calls that were read, in program order, and the trainings between them.
#[derive(Default)]
pub(super) struct Stages<'a> {
    /// Each call with the leaves that it added.
    calls: Vec<(&'a str, Range<usize>)>,
    /// Trainings, each by the number of calls and of trainers before it.
    trained: Vec<(usize, usize)>,
    /// A model that is loaded after a training, by the number of calls before it.
    reloaded: Option<usize>,
}

/// Several trainings.
pub(super) struct Several {
    count: usize,
    /// Whether the last may train a model other than the one that is read.
    reloads: bool,
    /// Whether the adapters that are read were passed to an earlier trainer and the last training creates none: it may
    /// continue with them, with a model into which they were merged, or without any.
    of_earlier: bool,
}

fn is_arguments(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    ARGUMENTS.contains(&last) || PREFERENCES.contains(&last)
}

fn is_trainer(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    matches!(last, "SFTTrainer" | "DPOTrainer") || PREFERENCE_TRAINERS.contains(&last)
}

fn adapts(name: &str) -> bool {
    ADAPTERS.contains(&name.rsplit('.').next().unwrap_or(name))
}

impl<'a> Stages<'a> {
    /// Records a call and the leaves that it added.
    pub(super) fn call(&mut self, name: &'a str, leaves: Range<usize>) {
        self.calls.push((name, leaves));
    }

    /// Records a training after this number of trainers.
    pub(super) fn train(&mut self, trainers: usize) {
        self.trained.push((self.calls.len(), trainers));
    }

    /// Whether a training runs before the current position.
    pub(super) fn has_trained(&self) -> bool {
        !self.trained.is_empty()
    }

    /// Records that a model is loaded.
    pub(super) fn load(&mut self) {
        if self.has_trained() {
            self.reloaded = Some(self.calls.len());
        }
    }

    /// Removes the leaves of supervised fine-tuning: policies are often fine-tuned first in the same program.
    pub(super) fn without_tuning(&mut self, leaves: &mut Vec<Leaf>) {
        let tunes = |name: &str| name.rsplit('.').next().is_some_and(|last| last.starts_with("SFT"));
        self.without(leaves, |_, name| tunes(name));
    }

    /// Removes the leaves of some calls; the indices of the rest move up.
    fn without(&mut self, leaves: &mut Vec<Leaf>, other: impl Fn(usize, &str) -> bool) {
        let mut kept = vec![true; leaves.len()];
        for (index, (name, range)) in self.calls.iter().enumerate() {
            let own = kept.get_mut(range.clone()).filter(|_| other(index, name));
            own.into_iter().flatten().for_each(|kept| *kept = false);
        }
        let before = |at: usize| kept.iter().take(at).filter(|kept| **kept).count();
        for (_, range) in &mut self.calls {
            *range = before(range.start)..before(range.end);
        }
        let mut all = kept.iter();
        leaves.retain(|_| all.next().is_none_or(|kept| *kept));
    }

    /// Keeps only the last of several trainings: its arguments, its trainer, its new adapters if any, and the model.
    pub(super) fn last(
        &mut self,
        seen: &mut Vec<&'a str>,
        trainers: &mut Vec<&'a str>,
        leaves: &mut Vec<Leaf>,
    ) -> Option<Several> {
        let last = self.calls.iter().rposition(|(name, _)| is_arguments(name))?;
        let (first, before) = *self.trained.iter().rfind(|(calls, _)| *calls <= last)?;
        let (earlier, later) = self.calls.split_at_checked(first)?;
        let states = |calls: &[(&str, Range<usize>)]| calls.iter().any(|(name, _)| is_arguments(name));
        if !states(earlier) {
            return None;
        }
        let adapted = later.iter().any(|(name, _)| adapts(name));
        let of_earlier = !adapted
            && earlier.iter().any(|(name, _)| adapts(name))
            && !earlier.iter().any(|(name, _)| name.ends_with("get_peft_model"));
        let other = |index: usize, name: &str| {
            index < first && (is_arguments(name) || is_trainer(name) || adapted && adapts(name))
        };
        self.without(leaves, other);
        let mut index = 0;
        seen.retain(|name| {
            index += 1;
            !other(index - 1, name)
        });
        trainers.drain(..before.min(trainers.len()));
        // Trainings with arguments of their own.
        let starts = self.trained.iter().scan(0, |from, (calls, _)| {
            let own = self.calls.get(*from..*calls).unwrap_or_default();
            *from = *calls;
            Some(states(own))
        });
        let count = starts.filter(|states| *states).count();
        let open = self.trained.last().is_none_or(|(calls, _)| *calls <= last);
        let reloads = self.reloaded.is_some_and(|at| at <= last);
        Some(Several { count: count + usize::from(open), reloads, of_earlier })
    }
}

impl Several {
    /// Properties of the last training that the program does not reveal: the calls, and a description of each.
    pub(super) fn unsure(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let loads = self.reloads.then_some(("from_pretrained", "a model loaded for a second training"));
        let adapts =
            self.of_earlier.then_some(("LoraConfig", "adapters of an earlier training in the program"));
        loads.into_iter().chain(adapts)
    }

    /// The warning that the answer covers only one of them.
    pub(super) fn said(&self) -> Diagnostic {
        let message = format!("the program has {} trainings; the estimate is for the last", self.count);
        let hint = "paste the part of the one that is meant";
        Diagnostic::warning(Code::SeveralCommands, message).hint(hint)
    }
}
