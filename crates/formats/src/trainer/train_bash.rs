//! LLaMA-Factory's first program, `src/train_bash.py`, which `llamafactory-cli` replaced in May 2024 (ce8200ad).

use super::dialect::Dialect;
use super::read::read_words;
use crate::releases::Installed;
use crate::{Argument, Found, Origin, Reading};
use shardscope_plan::Field;

/// Length of a sample where the command states none (`cutoff_len` of `hparams/data_args.py` from its introduction in
/// September 2023 until 1e6f9650 of November 2024; before, 512 tokens each for prompt and response).
const LENGTH: &str = "1024";

pub(super) fn is_program(program: &str) -> bool {
    program.rsplit('/').next() == Some("train_bash.py")
}

/// Reads the words of a command of that program.
pub(super) fn read(words: &[Argument]) -> Reading {
    let mut words = words.to_vec();
    for word in &mut words {
        // The same folder of adapters by its first name (`hparams/model_args.py` until 0.5).
        if let Some(rest) = word.text.strip_prefix("--checkpoint_dir") {
            word.text = format!("--adapter_name_or_path{rest}");
        }
    }
    let mut reading = read_words(Dialect::LlamaFactory, &words, Installed::default());
    let stated = |found: &Found| found.field == Field::SeqLength && found.origin != Origin::Default;
    if !reading.found.iter().any(stated) {
        reading.keep(&|found| found.field != Field::SeqLength);
        let note = "cutoff_len of LLaMA-Factory until November 2024";
        reading.take(Found::new(Field::SeqLength, LENGTH, Origin::Default).note(note));
    }
    reading
}
