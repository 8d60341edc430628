//! What the arguments of a call and the installed packages reveal about the libraries behind a program: which release
//! of transformers has them, and whose defaults apply.

use super::super::behind::{
    self, AT_MOST, FIVE, LAST_FOUR, LAST_OF_TRANSFORMERS, RELEASE, STATED, TRANSFORMERS,
};
use super::super::dialect::Dialect;
use super::super::early;
use super::literal::own_arguments;
use crate::releases::Installed;
use crate::scalars::Leaf;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

/// Arguments that `SFTTrainer` itself took until TRL 0.12, and that `SFTConfig` has had since 0.13
/// (`trl/trainer/sft_trainer.py:SFTTrainer.__init__`).
const OF_SFT_TRAINER: [&str; 7] = [
    "dataset_text_field",
    "packing",
    "max_seq_length",
    "num_of_sequences",
    "neftune_noise_alpha",
    "model_init_kwargs",
    "dataset_kwargs",
];

/// Trainers that TRL's main module had in 0.22 and no longer has in 1.13, where they are only in `trl.experimental`.
const MOVED: [&str; 2] = ["ORPOTrainer", "CPOTrainer"];
const EXPERIMENTAL: &str = "trl.experimental";
/// The last release that may have had them.
const BEFORE_MOVED: [u64; 2] = [1, 12];

/// Most calls of trainers and of their arguments that are examined, and most occurrences of a word in one.
const CALLS: u32 = 16;
const PLACES: usize = 16;

/// The releases behind a program, as far as it reveals them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Releases {
    /// Those that a text names.
    installed: Installed,
    /// Transformers of at most this release, by arguments.
    transformers: Option<[u64; 2]>,
    /// TRL of at most this release, by arguments and imports.
    trl: Option<[u64; 2]>,
    /// Number of calls whose arguments were examined.
    looked: u32,
}

impl Releases {
    /// The releases implied by the packages that a text installs, or else those that `beside` it are installed.
    pub(super) fn installed(text: &str, beside: Installed) -> Self {
        let moved = MOVED.iter().any(|trainer| text.contains(trainer)) && !text.contains(EXPERIMENTAL);
        Self {
            installed: Installed::of(text).or(beside),
            trl: moved.then_some(BEFORE_MOVED),
            ..Self::default()
        }
    }

    /// Examines a call: its arguments, or the keyword with which a trainer takes the tokenizer, which is only
    /// `processing_class` in transformers 5 (`trainer.py:Trainer.__init__`, 5.23) and in TRL 0.16 and later.
    pub(super) fn add<'a>(&mut self, call: &str, arguments: impl Fn() -> &'a str) {
        let configures = matches!(call, "TrainingArguments" | "Seq2SeqTrainingArguments");
        if self.looked == CALLS || !(configures || call.ends_with("Trainer")) {
            return;
        }
        self.looked += 1;
        let arguments = own_arguments(arguments());
        let given = |key: &str| {
            arguments.match_indices(key).take(PLACES).any(|(at, _)| {
                let line = arguments.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
                let behind = arguments.get(at + key.len()..).unwrap_or_default().trim_start();
                let begins = line.trim().is_empty() || line.trim_end().ends_with(['(', ',']);
                begins && behind.starts_with('=') && !behind.starts_with("==")
            })
        };
        let at_most = match call {
            _ if configures => None,
            "SFTTrainer" if OF_SFT_TRAINER.into_iter().any(given) => Some([0, 12]),
            _ => given("tokenizer").then_some([0, 15]),
        };
        let last = LAST_OF_TRANSFORMERS.iter().filter(|(key, _)| configures && given(key));
        let four = at_most.map(|_| LAST_FOUR);
        self.transformers =
            last.map(|(_, last)| Some(*last)).chain([self.transformers, four]).flatten().min();
        self.trl = [self.trl, at_most].into_iter().flatten().min();
    }

    /// The releases as settings; `own`: the program's options are its own, `loaded`: it loads the model in this text.
    pub(super) fn leaves(self, own: bool, loaded: bool) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        let mut add = |key: &str, value: String| {
            leaves.push(Leaf { path: key.to_owned(), value, ..Leaf::default() });
        };
        for (key, on) in [(behind::OWN_OPTIONS, own), (behind::LOADED, loaded)] {
            if on {
                add(key, "true".to_owned());
            }
        }
        let written = |[major, minor]: [u64; 2]| format!("{major}.{minor}");
        for (key, stated, most, mark, marked) in [
            (RELEASE, self.installed.trl, self.trl, AT_MOST, false),
            (TRANSFORMERS, self.installed.transformers, self.transformers, STATED, true),
        ] {
            // A program of several releases: the oldest call counts, if the named release has it not.
            let Some(release) = [stated, most].into_iter().flatten().min() else { continue };
            add(key, written(if key == TRANSFORMERS { stated.unwrap_or(release) } else { release }));
            let is_stated = stated == Some(release) || key == TRANSFORMERS && stated.is_some();
            if is_stated == marked {
                add(mark, "true".to_owned());
            }
        }
        leaves
    }

    /// TRL's release.
    pub(super) fn of_trl(self) -> Option<[u64; 2]> {
        [self.installed.trl, self.trl].into_iter().flatten().min()
    }

    /// The format of a model that the program loads without naming one: that of transformers 4, or open where the release is.
    pub(super) fn load(self, reading: &mut Reading) {
        let trl = self.of_trl().filter(|release| *release <= behind::BEFORE_FIVE).map(|_| LAST_FOUR);
        let last = self.installed.transformers.or([self.transformers, trl].into_iter().flatten().min());
        if last.is_some_and(|last| last < FIVE) {
            loads_in_fp32(reading);
        } else if last.is_some() && self.installed.transformers.is_none() && is_by_default(reading) {
            behind::ask_for_release(reading);
        }
    }
}

/// Whether the format of weights is a default that the way of loading decides; the remaining weights of quantized models are cast
/// elsewhere, and DeepSpeed's engine casts all.
fn is_by_default(reading: &Reading) -> bool {
    let by_default = |found: &Found| found.field == Field::ParamsDtype && found.origin == Origin::Default;
    let quantized = !matches!(reading.value(Field::BaseQuantization), None | Some("" | "none"));
    let engine = reading.value(Field::DataParallelEngine) == Some("deepspeed");
    !quantized && !engine && reading.found.iter().any(by_default)
}

/// The format in which transformers 4 loads weights if its program names none: `from_pretrained` uses PyTorch's
/// default type (`modeling_utils.py`, 4.46: `torch_dtype`).
fn loads_in_fp32(reading: &mut Reading) {
    if is_by_default(reading) {
        let note = "transformers 4, which the text tells, loads models in fp32 by default";
        reading.take(Found::new(Field::ParamsDtype, "fp32", Origin::Default).note(note));
    }
}

/// If TRL's trainer receives transformers' own arguments, it builds its own from them (`sft_trainer.py`:
/// `SFTConfig(**args.to_dict())`), so that transformers' defaults apply; and `LoraConfig` has PEFT's defaults
/// (`peft/tuners/lora/config.py`), not those of TRL's command line. TRL's own arguments turn on bf16 since 0.19 and
/// checkpointing since 0.22 (`sft_config.py`, `orpo_config.py` and the others at those tags).
pub(super) fn defaults(
    dialect: Dialect,
    plain: bool,
    trl: Option<[u64; 2]>,
    adapters: bool,
    stated: &dyn Fn(&str) -> bool,
) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    let mut state = |key: &str, value: &str| {
        if !stated(key) {
            leaves.push(Leaf { path: key.to_owned(), value: value.to_owned(), ..Leaf::default() });
        }
    };
    let before = |release: [u64; 2]| plain || trl.is_some_and(|trl| trl < release);
    if dialect == Dialect::Trl && before([0, 22]) {
        state("gradient_checkpointing", "false");
    }
    if dialect == Dialect::Trl && before([0, 19]) {
        state("bf16", "false");
    }
    if dialect == Dialect::Trl && adapters {
        state("r", "8");
        state("lora_alpha", "8");
        state("lora_dropout", "0");
    }
    leaves
}

/// TRL loads a model in fp32 if it receives a name; one that the program loads itself has the checkpoint's format.
pub(super) fn in_its_own_format(reading: &mut Reading, model: Option<&str>) {
    let by_default = |found: &Found| found.field == Field::ParamsDtype && found.origin == Origin::Default;
    let full = reading.value(Field::TrainType).is_none_or(|train| train == "full");
    let sharded = reading.value(Field::DataParallelEngine).is_some_and(|engine| engine != "ddp");
    let scaled = reading.value(Field::Fp16) == Some("true");
    let (format, why) = match () {
        () if model.is_some_and(early::is_in_fp32) => ("fp32", early::KEPT),
        () if scaled && full && !sharded => ("fp32", early::SCALED),
        () if scaled => ("fp16", early::KEPT),
        () => ("bf16", early::KEPT),
    };
    if reading.found.iter().any(by_default) {
        reading.take(Found::new(Field::ParamsDtype, format, Origin::Default).note(why));
    }
}

#[cfg(test)]
mod tests {
    use super::{Installed, Releases};

    fn of(call: &str, arguments: &'static str) -> (Option<[u64; 2]>, Option<[u64; 2]>) {
        let mut releases = Releases::default();
        releases.add(call, || arguments);
        (releases.transformers, releases.trl)
    }

    #[test]
    fn arguments_that_the_next_release_refuses_tell_the_release() {
        for (call, arguments, expected) in [
            ("TrainingArguments", "(output_dir='a',\n    evaluation_strategy=\"no\")", (Some([4, 50]), None)),
            ("TrainingArguments", "(logging_dir='a')", (Some([5, 14]), None)),
            ("TrainingArguments", "(eval_strategy='no', report_logging_dir=1)", (None, None)),
            ("TrainingArguments", "(a=1, # evaluation_strategy='no'\n b=2)", (None, None)),
            ("Trainer", "(model=model, tokenizer=tokenizer)", (Some([4, 57]), Some([0, 15]))),
            ("Trainer", "(model=model, processing_class=tokenizer)", (None, None)),
            ("TrainingArguments", "(a=1,  # first\n    logging_dir='a')", (Some([5, 14]), None)),
            ("TrainingArguments", "(a=1 if logging_dir == '' else 2)", (None, None)),
            ("SFTTrainer", "(model=model, packing=True)", (Some([4, 57]), Some([0, 12]))),
            (
                "SFTTrainer",
                "(model, tokenizer=tokenizer,\n dataset_kwargs={})",
                (Some([4, 57]), Some([0, 12])),
            ),
            ("SFTTrainer", "(model=model, args=args, peft_config=config)", (None, None)),
            // What belongs to a configuration that is an argument is not the trainer's.
            (
                "SFTTrainer",
                "(model, args=SFTConfig(a=[1], # b\n packing=True,\n dataset_kwargs={'tokenizer': 1}), processing_class=t)",
                (None, None),
            ),
            (
                "SFTTrainer",
                "(model, args=SFTConfig(max_length=1),\n packing=True)",
                (Some([4, 57]), Some([0, 12])),
            ),
            ("DPOTrainer", "(model=model, packing=True)", (None, None)),
            ("pipeline", "(model=model, tokenizer=tokenizer)", (None, None)),
        ] {
            assert_eq!(of(call, arguments), expected, "{call}{arguments}");
        }
    }

    /// The settings that releases are given on as.
    fn told(releases: Releases) -> Vec<(String, String)> {
        releases.leaves(false, false).into_iter().map(|leaf| (leaf.path, leaf.value)).collect()
    }

    #[test]
    fn the_oldest_release_that_a_program_tells_counts() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let stated = pair("transformers_release_stated", "true");
        let none = Installed::default();
        let mut releases = Releases::installed("!pip install transformers==4.57.1 trl==0.23.0", none);
        let four = pair("transformers_release", "4.57");
        assert_eq!(told(releases), [pair("trl_release", "0.23"), four.clone(), stated.clone()]);
        releases.add("ORPOTrainer", || "(tokenizer=tokenizer)");
        assert_eq!(releases.of_trl(), Some([0, 15]));
        let at_most = pair("trl_release_at_most", "true");
        assert_eq!(
            told(releases),
            [pair("trl_release", "0.15"), at_most, four.clone(), stated.clone()],
            "a release that has no such argument is not the one that runs"
        );
        let alone = Releases::installed("!pip install transformers==4.57.1 trl", none);
        assert_eq!(told(alone), [four, stated.clone()]);
        let newer = Releases::installed("pip install transformers==5.2 trl==1.15.0", none);
        assert_eq!(told(newer), [pair("trl_release", "1.15"), pair("transformers_release", "5.2"), stated]);
        let beside = Installed { trl: Some([0, 15]), ..none };
        assert_eq!(told(Releases::installed("import trl", beside)), [pair("trl_release", "0.15")]);
        assert_eq!(Releases::installed("pip install trl", none), Releases::default());
    }
}
