//! What the name of a program tells of its release: models that it loads whatever its settings say, and defaults.

use super::Launch;
use crate::{Argument, Found, Origin, Reading};
use shardscope_bash::Word;
use shardscope_plan::{Field, Software};

/// verl's DAPO while its files lay in `recipe/dapo/src` (April 4 to May 10, 2025, #623 to #1392): it registered the reference with
/// or without a weight for it (`main_dapo.py:role_worker_mapping`), and the trainer computed its log-probabilities. Since #1651 of
/// May 23 it is loaded when needed; of the two weeks between the name of the program tells nothing.
const PROGRAM: &str = "dapo.src.main_dapo";
const MOVED: &str = "dapo.main_dapo";
const UNDATED: &str = "neither use_kl_loss nor use_kl_in_reward; verl's DAPO of May 10 to 23, 2025, loads the reference all the \
                       same (rl_reference=host)";

/// A key of the same weeks with its default (`ppo_trainer.yaml` of April 4 to May 10, 2025; gone in July), by which the reader
/// of verl's keys knows the other defaults of that release: samples padded, the engine without graphs and with 1024 sequences.
const OF_ITS_WEEKS: &str = "actor_rollout_ref.rollout.use_fire_sampling=False";

const BACKEND: &str = "VLLM_ATTENTION_BACKEND";
const XFORMERS: &str = "XFORMERS";

/// Parts of keys that verl has had since July 2025 (0.5 to 0.9), and devices whose examples have kept the variable.
const LATER: [&str; 17] = [
    "actor_rollout_ref.rollout.agent.",
    "actor_rollout_ref.rollout.mode=async",
    "actor_rollout_ref.rollout.calculate_log_probs",
    "algorithm.rollout_correction",
    "algorithm.rollout_is",
    "calculate_entropy",
    "checkpoint_engine",
    "critic.enable",
    "global_profiler",
    "model_engine=",
    "norm_adv_by_std_in_grpo",
    "reward.",
    "routing_replay",
    "trainer.device=npu",
    "update_weights_bucket",
    "use_legacy_worker_impl",
    "vanilla_mbridge",
];

/// Whether a module is a trainer of verl's own or of a package made of it.
fn is_of_verl(module: &str) -> bool {
    module.ends_with("trainer.main_ppo") || module.ends_with("main_dapo")
}

fn module(program: &Word) -> String {
    program.text().trim_end_matches(".py").replace('/', ".")
}

impl Launch {
    /// What the program's name and the variables beside it tell of its release, as a word of it.
    pub(super) fn dated(&self) -> Option<Argument> {
        let program = self.line.program.as_ref()?;
        let module = module(program);
        let is_dated = module.ends_with(PROGRAM) || is_of_verl(&module) && self.is_by_xformers();
        is_dated.then(|| Argument { span: Some(program.origin()), ..Argument::from(OF_ITS_WEEKS) })
    }

    /// Whether the engine of rollouts is told to use xFormers, as most of verl's examples did until they dropped vLLM 0.6.3 on June 30,
    /// 2025 (#2257; 37 files of 0.4.1, 3 of 0.5.0), and no key is of a later verl.
    fn is_by_xformers(&self) -> bool {
        let variables = self.script.variables.iter();
        let of_script = variables
            .filter(|variable| variable.name == BACKEND)
            .any(|variable| variable.values.last().is_some_and(|value| value.text() == XFORMERS));
        let of_command = || {
            let all = self.script.commands.iter().flat_map(|command| &command.environment);
            all.into_iter().any(|(name, word)| name == BACKEND && word.text() == XFORMERS)
        };
        let is_later = |word: &Argument| LATER.iter().any(|key| word.text.contains(key));
        (of_script || of_command()) && !self.arguments.iter().any(is_later)
    }

    pub(super) fn tell_always_loaded(&self, reading: &mut Reading) {
        let Some(program) = &self.line.program else { return };
        let module = module(program);
        let is_none = reading.value(Field::RlReference) == Some("none");
        let adapts = reading.found.iter().any(|found| found.field == Field::LoraRank);
        if !is_none || adapts {
            return;
        }
        if module.ends_with(MOVED) {
            reading.take(Found::new(Field::RlReference, "none", Origin::Derived).note(UNDATED));
        }
        if !module.ends_with(PROGRAM) {
            return;
        }
        // As for any reference of verl: FSDP's is on the host.
        let megatron = matches!(reading.software, Some((Software::MegatronCoreTe, _)));
        let place = if megatron { "device" } else { "host" };
        let why = "verl's recipe/dapo/src of April 2025 always loads the reference";
        reading.take(
            Found::new(Field::RlReference, place, Origin::Derived)
                .by(program.text(), Some(program.origin()))
                .note(why),
        );
    }
}
