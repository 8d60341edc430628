//! What the arguments of a call and the installed packages reveal about the libraries behind a program: which release
//! of transformers has them, and whose defaults apply.

use super::super::dialect::Dialect;
use super::super::early;
use super::super::fused_head::{self, OF_FOUR};
use crate::releases;
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
    /// Transformers 4.
    pub(super) four: bool,
    /// TRL of at most this release.
    pub(super) trl: Option<[u64; 2]>,
    /// Whether a text itself names TRL's release.
    named: bool,
    /// Number of calls whose arguments were examined.
    looked: u32,
}

impl Releases {
    /// The releases implied by the packages that a text installs.
    pub(super) fn installed(text: &str) -> Self {
        let of = |package, before_one| releases::installed(text, package, before_one);
        let moved = MOVED.iter().any(|trainer| text.contains(trainer)) && !text.contains(EXPERIMENTAL);
        let trl = of("trl", 29);
        Self {
            four: of("transformers", 99).is_some_and(|release| release < [5, 0]),
            named: trl.is_some(),
            trl: [trl, moved.then_some(BEFORE_MOVED)].into_iter().flatten().min(),
            looked: 0,
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
        let arguments = arguments();
        let given = |key: &str| {
            arguments.match_indices(key).take(PLACES).any(|(at, _)| {
                // Also after a comment on the preceding line.
                let line = arguments.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
                let behind = arguments.get(at + key.len()..).unwrap_or_default().trim_start();
                let begins = line.trim().is_empty() || line.trim_end().ends_with(['(', ',']);
                begins && !line.contains('#') && behind.starts_with('=') && !behind.starts_with("==")
            })
        };
        let at_most = match call {
            _ if configures => None,
            "SFTTrainer" if OF_SFT_TRAINER.into_iter().any(given) => Some([0, 12]),
            _ => given("tokenizer").then_some([0, 15]),
        };
        self.four |= at_most.is_some() || configures && OF_FOUR.into_iter().any(given);
        self.trl = [self.trl, at_most].into_iter().flatten().min();
    }

    /// TRL's release in the form that `fused_head` expects: a text with transformers 4 that does not name it has an unknown one, which
    /// is not one of the newest (0.0).
    pub(super) fn of_trl(self) -> Option<String> {
        let old = (self.four && !self.named).then(|| "0.0".to_owned());
        old.or_else(|| self.trl.map(|[major, minor]| format!("{major}.{minor}")))
    }

    /// The same as a setting.
    pub(super) fn told(self) -> Option<Leaf> {
        let value = self.of_trl()?;
        Some(Leaf { path: fused_head::RELEASE.to_owned(), value, ..Leaf::default() })
    }
}

/// The format in which transformers 4 loads weights if its program names none: `from_pretrained` uses PyTorch's
/// default type (`modeling_utils.py`, 4.46: `torch_dtype`). The remaining weights of quantized models are cast
/// elsewhere, and DeepSpeed's engine casts all.
pub(super) fn loads_in_fp32(reading: &mut Reading) {
    let by_default = |found: &Found| found.field == Field::ParamsDtype && found.origin == Origin::Default;
    let quantized = !matches!(reading.value(Field::BaseQuantization), None | Some("" | "none"));
    let engine = reading.value(Field::DataParallelEngine) == Some("deepspeed");
    if !quantized && !engine && reading.found.iter().any(by_default) {
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
    use super::Releases;

    fn of(call: &str, arguments: &'static str) -> (bool, Option<[u64; 2]>) {
        let mut releases = Releases::default();
        releases.add(call, || arguments);
        (releases.four, releases.trl)
    }

    #[test]
    fn arguments_that_the_next_release_refuses_tell_the_release() {
        for (call, arguments, expected) in [
            ("TrainingArguments", "(output_dir='a',\n    evaluation_strategy=\"no\")", (true, None)),
            ("TrainingArguments", "(logging_dir='a')", (true, None)),
            ("TrainingArguments", "(eval_strategy='no', report_logging_dir=1)", (false, None)),
            ("TrainingArguments", "(a=1, # evaluation_strategy='no'\n b=2)", (false, None)),
            ("Trainer", "(model=model, tokenizer=tokenizer)", (true, Some([0, 15]))),
            ("Trainer", "(model=model, processing_class=tokenizer)", (false, None)),
            ("TrainingArguments", "(a=1,  # first\n    logging_dir='a')", (true, None)),
            ("TrainingArguments", "(a=1 if logging_dir == '' else 2)", (false, None)),
            ("SFTTrainer", "(model=model, packing=True)", (true, Some([0, 12]))),
            ("SFTTrainer", "(model, tokenizer=tokenizer,\n dataset_kwargs={})", (true, Some([0, 12]))),
            ("SFTTrainer", "(model=model, args=args, peft_config=config)", (false, None)),
            ("DPOTrainer", "(model=model, packing=True)", (false, None)),
            ("pipeline", "(model=model, tokenizer=tokenizer)", (false, None)),
        ] {
            assert_eq!(of(call, arguments), expected, "{call}{arguments}");
        }
    }

    #[test]
    fn the_oldest_release_that_a_program_tells_counts() {
        let mut releases = Releases::installed("!pip install transformers==4.57.1 trl==0.23.0");
        assert_eq!((releases.four, releases.trl), (true, Some([0, 23])));
        releases.add("ORPOTrainer", || "(tokenizer=tokenizer)");
        assert_eq!(releases.trl, Some([0, 15]));
        assert_eq!(releases.of_trl().as_deref(), Some("0.15"));
        let four = Releases::installed("!pip install transformers==4.57.1 trl");
        assert_eq!((four.four, four.of_trl().as_deref()), (true, Some("0.0")));
        let newer = Releases::installed("pip install transformers==5.2 trl==1.15.0");
        assert_eq!((newer.four, newer.of_trl().as_deref()), (false, Some("1.15")));
        assert_eq!(Releases::installed("pip install trl"), Releases::default());
    }
}
