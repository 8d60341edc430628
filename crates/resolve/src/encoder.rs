//! An encoder in front of the decoder.

use super::table::Table;
use crate::SettingValue::{Bool, Int, List, Text};
use crate::{Asked, Effect, Origin, Question};
use shardscope_plan::{Encoder, Field, NumberFormat, Software};
use shardscope_source::Code;

/// Rows of T5's table of distances where nothing states them (`T5Config.relative_attention_num_buckets`).
const BUCKETS: u64 = 32;

/// Whether the model has one.
pub(super) fn is_there(table: &Table) -> bool {
    table.number(Field::EncoderLayers) > 0
}

/// Linear layers of T5 under the names that others have for them; `wo` is the attention's elsewhere
/// (`transformers/models/t5/modeling_t5.py:T5DenseActDense, T5DenseGatedActDense`).
const NAMES: [(&str, &str); 4] =
    [("wi", "up_proj"), ("wi_0", "gate_proj"), ("wi_1", "up_proj"), ("wo", "down_proj")];

/// The format of weights that a trainer loads in the checkpoint's, which readers take for bf16 because decoders of today
/// are: of an encoder-decoder it is that of its configuration or of Google's files, or else asked for.
fn weights(table: &mut Table, software: Software) {
    // Weights that DeepSpeed casts or that are quantized stop elsewhere.
    if software != Software::HfTransformers {
        return;
    }
    let not_stated = |origin: Origin| matches!(origin, Origin::Default | Origin::Catalog);
    let half = [NumberFormat::Bf16, NumberFormat::Fp16];
    let as_checkpoint = match table.get(Field::ParamsDtype) {
        Some(setting) => {
            not_stated(setting.origin)
                && half.iter().any(|format| table.is_format(Field::ParamsDtype, *format))
        }
        // A configuration proposes a format for training, from which that of weights would follow.
        None => {
            let by_default =
                |field: &Field| table.get(*field).is_some_and(|setting| not_stated(setting.origin));
            let open = table.is_open(Field::ParamsDtype) || table.is_unreadable(Field::ParamsDtype);
            !open && [Field::Bf16, Field::Fp16].iter().any(|field| table.on(*field) && by_default(field))
        }
    };
    if !as_checkpoint {
        return;
    }
    if let Some(format) = table.format(Field::CheckpointDtype) {
        let rule = "the checkpoint's dtype, which transformers keeps where none is stated";
        return table.overrule(Field::ParamsDtype, format.value(), rule);
    }
    table.ask(Question {
        asks: Asked::Setting(Field::ParamsDtype),
        prompt: "Format of the weights? They are loaded as the checkpoint is, which neither the model's name nor a dtype in its \
                 config.json tells (those of Google's T5 and mT5 are fp32)"
            .to_owned(),
        choices: [NumberFormat::Fp32, NumberFormat::Bf16].map(|format| format.name().to_owned()).to_vec(),
        proposal: Some(NumberFormat::Fp32.name().to_owned()),
    });
    table.leave_open(Field::ParamsDtype, "the checkpoint");
}

/// Lengths and names of modules that mean something else, or nothing, in a model without an encoder.
pub(super) fn spell_out(table: &mut Table, software: Software) {
    if has_target(table) {
        // A trainer's question does not know of two lengths.
        table.questions.retain(|question| question.asks != Asked::Setting(Field::SeqLength));
    }
    if !is_there(table) {
        return;
    }
    if !table.has(Field::Seq2seq) {
        table.fill(Field::Seq2seq, Bool(true), Origin::Derived, "the model has an encoder and a decoder");
    }
    by_hand(table);
    weights(table, software);
    let rule = "samples of unlike lengths are padded (DataCollatorForSeq2Seq)";
    // A trainer's default is for texts that fill their sequence.
    if table.get(Field::PaddingMask).is_none_or(|setting| setting.origin == Origin::Default) {
        table.overrule(Field::PaddingMask, Bool(true), rule);
    }
    if let Some(target) = table.count(Field::TargetLength) {
        table.overrule(Field::SeqLength, Int(target), "the decoder's sequence is the target");
    } else if table.get(Field::SeqLength).is_some_and(|setting| setting.origin == Origin::Default) {
        // A trainer's default for texts that are not a source and its target.
        table.clear(Field::SeqLength);
    }
    let targets: Vec<String> = table.words(Field::LoraTargetModules).into_iter().map(str::to_owned).collect();
    let renamed: Vec<String> = targets
        .iter()
        .map(|name| {
            NAMES.iter().find(|(known, _)| known == name).map_or(name.as_str(), |(_, usual)| usual).to_owned()
        })
        .collect();
    if renamed != targets {
        let rule = "wi_0, wi_1 and wo are T5's names of gate, up and down projections";
        let list = List(renamed.into_iter().map(Text).collect());
        table.overrule(Field::LoraTargetModules, list, rule);
    }
}

/// Whether the target's length says how long the decoder's sequence is: of an encoder-decoder, or a model that is not known yet.
pub(super) fn has_target(table: &Table) -> bool {
    table.has(Field::TargetLength) && (is_there(table) || !table.has(Field::NumLayers))
}

/// A sequence length given by hand is the target's: it counts before a text's, and less than a target's length given by hand.
fn by_hand(table: &mut Table) {
    let by_user = |field| table.get(field).is_some_and(|setting| setting.origin == Origin::User);
    let Some(own) = table.count(Field::SeqLength).filter(|_| by_user(Field::SeqLength)) else { return };
    match table.count(Field::TargetLength) {
        Some(target) if by_user(Field::TargetLength) && target != own => {
            let message = format!(
                "seq_length {own} is set aside: of an encoder-decoder it is the target's length, and target_length {target} is given as well"
            );
            table.warn(Code::NoEffect, Field::SeqLength, &message);
        }
        Some(_) => {
            let rule =
                "the sequence length given by hand is the target's: what the decoder reads and predicts";
            table.overrule(Field::TargetLength, Int(own), rule);
        }
        None => {}
    }
}

/// A program that loads an encoder-decoder, and a model that is none.
pub(super) fn lacking(table: &mut Table) {
    if table.on(Field::Seq2seq) && table.has(Field::NumLayers) && !is_there(table) {
        let message =
            "a model loaded as an encoder-decoder, of a type whose encoder is not modelled or that has none";
        table.lack(Field::Seq2seq, "true", Effect::Model, message);
    }
    if !is_there(table) {
        let stated = [Field::SourceLength, Field::TargetLength].into_iter().find(|field| table.has(*field));
        // Where no model is known yet, one with an encoder may come.
        if let Some(field) = stated.filter(|_| table.has(Field::NumLayers)) {
            let value = table.number(field).to_string();
            let message = "limits of source and target beside a model without an encoder: an unknown option that may change its samples";
            table.lack(field, &value, Effect::Memory, message);
        }
        return;
    }
    if table.switch(Field::Seq2seq) == Some(false) {
        let message = "an encoder-decoder loaded by a class or a trainer for decoders, or as a model without an output layer \
                       (AutoModelForCausalLM, TRL's trainers, AutoModel), which builds another model, none, or gives it other labels";
        table.lack(Field::Seq2seq, "false", Effect::Model, message);
    }
    // Beside a name alone, a path says which attention or which stack.
    let paths: Vec<&str> = table.words(Field::LoraTargetModules);
    let paths: Vec<&str> = paths.into_iter().filter(|name| name.contains(['.', '/', '|'])).collect();
    if !paths.is_empty() {
        let value = paths.join(" ");
        let message = "adapters on modules of an encoder-decoder named by a path, which may be those of one stack or one attention";
        table.lack(Field::LoraTargetModules, &value, Effect::Memory, message);
    }
    if table.has(Field::EvaluationBatchSize) {
        let value = table.number(Field::EvaluationBatchSize).to_string();
        let message =
            "evaluations of an encoder-decoder between steps, which generate targets or hold their logits";
        table.lack(Field::EvaluationBatchSize, &value, Effect::Memory, message);
    }
}

/// The plan's encoder.
pub(super) fn encoder(table: &Table) -> Option<Encoder> {
    let there = is_there(table);
    there.then(|| Encoder {
        layers: table.number(Field::EncoderLayers),
        seq_length: table.number(Field::SourceLength),
        buckets: table.count(Field::RelativeBuckets).unwrap_or(BUCKETS),
    })
}

/// Lengths of source and target that transformers' programs for summaries have by default
/// (`examples/pytorch/summarization/run_summarization.py:DataTrainingArguments`).
const LENGTHS: [(Field, &str, u64); 2] = [
    (Field::SourceLength, "Longest source, in tokens: what the encoder reads?", 1024),
    (Field::SeqLength, "Longest target, in tokens: what the decoder reads and predicts?", 128),
];

/// Asks for the lengths of both sequences, as far as they are not stated.
pub(super) fn ask_for_lengths(table: &mut Table) {
    for (field, prompt, proposal) in LENGTHS {
        // A trainer's own question does not know of two.
        let missing = !table.has(field);
        table.questions.retain(|question| question.asks != Asked::Setting(field) || !missing);
        if missing && !table.is_open(field) && !table.is_unreadable(field) {
            table.ask(Question {
                asks: Asked::Setting(field),
                prompt: prompt.to_owned(),
                choices: Vec::new(),
                proposal: Some(proposal.to_string()),
            });
        }
    }
}
