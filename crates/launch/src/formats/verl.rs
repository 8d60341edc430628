//! The words of verl: which engine trains is read from them, the batch and the rollouts are not.

use super::leaves::{Leaves, Scalars};
use super::reader::{Claim, Command, Reader};
use super::{dotted, rl};
use crate::{Argument, Effect, NotModelled, Reading};

/// First keys that no other format has.
const KEYS: &[&str] = &["actor_rollout_ref.", "critic.", "reward_model."];

/// verl's command line.
#[derive(Debug)]
pub(super) struct Verl;

impl Reader for Verl {
    fn name(&self) -> &'static str {
        "a verl command"
    }

    fn about(&self) -> &'static str {
        "verl's words: the engine that trains the actor, its model and batch"
    }

    fn dotted(&self) -> &'static [&'static str] {
        KEYS
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let count = dotted::count(command.words, KEYS);
        (count >= dotted::ENOUGH).then_some(Claim::Own(count))
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        let scalars = Scalars::of_words(words);
        let mut leaves = Leaves::over(&scalars);
        let what =
            "reinforcement learning: generation, reference and reward share the accelerators with training";
        let first = words.iter().find(|word| dotted::is_under(&word.text, KEYS));
        let item = NotModelled::new("actor_rollout_ref", "", Effect::Memory, what);
        leaves.reading.not_modelled.push(item.at_some(first.and_then(|word| word.span)));
        rl::read(&mut leaves);
        leaves.finish("a verl command")
    }
}
