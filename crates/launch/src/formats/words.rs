//! Commands whose settings are words with dotted keys: NeMo and Megatron-Bridge (Hydra), torchtitan.

use super::leaves::{Leaves, Scalars};
use super::scalars::is_path;
use super::{nemo, rl, titan};
use crate::{Argument, Effect, NotModelled, Reading};

/// Words that make a command one of dotted keys.
const ENOUGH: usize = 2;

/// First keys of torchtitan's settings.
const TITAN: [&str; 7] =
    ["training.", "parallelism.", "activation_checkpoint.", "job.", "compile.", "lr_scheduler.", "metrics."];
/// First keys of NeMo's and Megatron-Bridge's.
const NEMO: [&str; 10] = [
    "model.",
    "trainer.",
    "train.",
    "data.",
    "dataset.",
    "optimizer.",
    "ddp.",
    "optim.",
    "comm_overlap.",
    "mixed_precision.",
];
/// First keys of a reinforcement learning framework (verl).
const RL: [&str; 3] = ["actor_rollout_ref.", "critic.", "reward_model."];

/// Whether a word is a setting under dotted keys: `model.tensor_model_parallel_size=8`, `--training.seq_len`;
/// or names a program that takes nothing else.
#[must_use]
pub fn is_setting(word: &str) -> bool {
    if matches!(word, "torchtitan.train" | "torchtitan/train.py") {
        return true;
    }
    key(word).is_some_and(|key| [&TITAN[..], &NEMO, &RL].iter().any(|starts| starts_in(key, starts)))
}

fn key(word: &str) -> Option<&str> {
    let text = word.trim_start_matches(['-', '+']);
    let path = text.split('=').next().unwrap_or("");
    (is_path(path) && (text.contains('=') || word.starts_with("--"))).then_some(path)
}

fn starts_in(key: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| key.starts_with(start))
}

/// Reads a command's words when its settings have dotted keys; none for any other command.
#[must_use]
pub fn read_words(words: &[Argument]) -> Option<Reading> {
    let count = |starts: &[&str]| {
        let mut count = 0;
        for word in words {
            count += usize::from(key(&word.text).is_some_and(|key| starts_in(key, starts)));
        }
        count
    };
    let (titan, nemo) = (count(&TITAN), count(&NEMO));
    match () {
        () if count(&RL) >= ENOUGH => Some(reinforcement(words)),
        () if titan >= ENOUGH && titan >= nemo => Some(titan::read_words(words)),
        () if nemo >= ENOUGH => Some(nemo::read_words(words)),
        () => None,
    }
}

/// The words of verl: which engine trains is read from them, the batch and the rollouts are not.
fn reinforcement(words: &[Argument]) -> Reading {
    let scalars = Scalars::of_words(words);
    let mut leaves = Leaves::over(&scalars);
    let what =
        "reinforcement learning: generation, reference and reward share the accelerators with training";
    let first = words.iter().find(|word| key(&word.text).is_some_and(|key| starts_in(key, &RL)));
    let item = NotModelled::new("actor_rollout_ref", "", Effect::Memory, what);
    leaves.reading.not_modelled.push(item.at_some(first.and_then(|word| word.span)));
    rl::read(&mut leaves);
    leaves.finish("a verl command")
}
