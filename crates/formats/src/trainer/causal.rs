//! Programs that load their model as a decoder, whatever it is.

use super::dialect::Dialect;
use crate::{Found, Origin, Reading};
use shardscope_plan::Field;

/// The start of the names of transformers' examples for decoders, and of programs made of them (`run_clm_sft_with_peft.py`).
const EXAMPLES: &str = "run_clm";

/// Notes of an encoder-decoder that the program is one for decoders: transformers' `run_clm.py` loads by `AutoModelForCausalLM`, which
/// refuses it; TRL's trainers did, and since they take the class that the checkpoint names, their collators still give the source as
/// labels (`trl/trainer/sft_trainer.py:DataCollatorForLanguageModeling`).
pub(super) fn tell(dialect: Dialect, program: &str, reading: &mut Reading) {
    let name = program.rsplit(['/', '.']).find(|part| *part != "py").unwrap_or_default();
    let decodes = name.starts_with(EXAMPLES) || dialect == Dialect::Trl;
    if decodes && reading.value(Field::EncoderLayers).is_some() && reading.value(Field::Seq2seq).is_none() {
        let note = "the program is one for decoders";
        reading.take(Found::new(Field::Seq2seq, "false", Origin::Derived).note(note));
    }
}
