//! LLaMA-Factory's first program, `src/train_bash.py`, which `llamafactory-cli` replaced in May 2024 (ce8200ad).

use super::dialect::Dialect;
use super::read::read_words;
use crate::releases::Installed;
use crate::{Argument, Asked, Found, Origin, Question, Reading};
use shardscope_plan::Field;

/// Length of a sample where the command states none (`cutoff_len` of `hparams/data_args.py` from its introduction in
/// September 2023 until 1e6f9650 of November 2024; before, 512 tokens each for prompt and response).
const LENGTH: &str = "1024";

pub(super) fn is_program(program: &str) -> bool {
    program.rsplit('/').next() == Some("train_bash.py")
}

/// `lora_dropout` through 0.4; 0 since 0.5.0 (January 2024; `hparams/finetuning_args.py`).
const DROPOUT: &str = "0.1";
/// The folder of adapters by its first name (`hparams/model_args.py` until 0.5).
const FOLDER: &str = "--checkpoint_dir";

/// Reads the words of a command of that program.
pub(super) fn read(words: &[Argument]) -> Reading {
    let mut words = words.to_vec();
    let mut before_five = false;
    for word in &mut words {
        if let Some(rest) = word.text.strip_prefix(FOLDER) {
            word.text = format!("--adapter_name_or_path{rest}");
            before_five = true;
        }
    }
    let mut reading = read_words(Dialect::LlamaFactory, &words, Installed::default());
    let stated = |reading: &Reading, field| {
        reading.found.iter().any(|found| found.field == field && found.origin != Origin::Default)
    };
    if !stated(&reading, Field::SeqLength) {
        reading.keep(&|found| found.field != Field::SeqLength);
        let note = "cutoff_len of LLaMA-Factory until November 2024";
        reading.take(Found::new(Field::SeqLength, LENGTH, Origin::Default).note(note));
    }
    let adapts = matches!(reading.value(Field::TrainType), Some("lora" | "qlora"));
    if adapts && before_five && !stated(&reading, Field::LoraDropout) {
        let note = "lora_dropout of LLaMA-Factory before 0.5.0, which checkpoint_dir belongs to";
        reading.take(Found::new(Field::LoraDropout, DROPOUT, Origin::Default).note(note));
    }
    if !words.iter().any(|word| word.text.starts_with("--flash_attn")) {
        ask_for_attention(&mut reading);
    }
    reading
}

/// Without `--flash_attn` attention is eager in 0.6.0 to 0.6.3 (`model/patcher.py`), transformers' own choice before, and
/// SDPA since 0.7.0 (`auto`, `model/utils/attention.py`).
fn ask_for_attention(reading: &mut Reading) {
    let mut found = Found::new(Field::AttnImplementation, String::new(), Origin::Script);
    found.hole = Some("the release of LLaMA-Factory".to_owned());
    reading.take(found);
    reading.questions.push(Question {
        asks: Asked::Setting(Field::AttnImplementation),
        prompt: "Which attention? Without --flash_attn LLaMA-Factory 0.6 takes eager, 0.7 sdpa, and earlier releases what \
                 transformers takes (sdpa since its 4.36, eager before)"
            .to_owned(),
        choices: ["sdpa", "eager"].map(str::to_owned).to_vec(),
        proposal: Some("sdpa".to_owned()),
    });
}
