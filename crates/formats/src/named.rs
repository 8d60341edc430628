//! A model that a text names instead of stating its shape.

use crate::lacking;
use crate::{Asked, Found, Origin, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic, Span};

/// Takes the shape of the model called `name` from the catalog, except for settings that the reading already states;
/// asks for its `config.json` if the catalog does not have it. `flag` and `span` give the place of the name.
pub fn take_model(reading: &mut Reading, name: &str, flag: &str, span: Option<Span>) {
    // ModelScope's folder names have no dots (`modelscope/hub/utils/utils.py:model_id_to_group_owner_name`).
    let plain = name.trim().trim_end_matches('/').replace("___", ".");
    let cached = of_cache(&plain);
    let name = cached.as_deref().unwrap_or(&plain);
    if name.is_empty()
        || reading.value(Field::NumLayers).is_some() && reading.value(Field::HiddenSize).is_some()
    {
        return;
    }
    fill_model(reading, name, flag, span);
}

/// The same where the text states sizes of its own, which override the model's.
pub(crate) fn fill_model(reading: &mut Reading, name: &str, flag: &str, span: Option<Span>) {
    let found = catalog::find(name);
    let address = found.address();
    if let Some(model) = found.model() {
        let note = format!("{}, named as {name}", model.name());
        let settings = match model.architecture() {
            Some(read) => {
                let lacks = lacking(&read).into_iter().map(|item| item.at_some(span));
                reading.not_modelled.extend(lacks);
                catalog::settings_of(&read)
            }
            None => model.settings(),
        };
        for (field, value) in settings {
            if !reading.found.iter().any(|found| found.field == field) {
                reading.take(Found::new(field, value, Origin::Catalog).by(flag, span).note(note.as_str()));
            }
        }
        // Of the name that the text has: an answer of the same shape may be another checkpoint.
        if let Some(format) = catalog::checkpoint_dtype(name) {
            let found = Found::new(Field::CheckpointDtype, format, Origin::Catalog).by(flag, span);
            reading.take(found.note("Google's files hold 4 bytes a parameter"));
        }
        return;
    }
    let message = format!("the model {name} is not in the catalog, and its shape is not stated here");
    let hint = match &address {
        Some(address) => format!("paste or drop its config.json as well: {address}"),
        None => "paste or drop its config.json as well".to_owned(),
    };
    reading
        .diagnostics
        .push(Diagnostic::error(Code::UnknownModel, message).hint(hint.as_str()).at_some(span));
    let base = catalog::tuned_from(name);
    let prompt = match base {
        Some(base) => format!(
            "What is the shape of {name}? Answer {base} if it was fine-tuned from that model without new tokens or layers; \
             otherwise paste its config.json here"
        ),
        None => format!(
            "What is the shape of {name}? Paste its config.json here, or name a known model of the same shape"
        ),
    };
    reading.questions.push(Question {
        asks: Asked::Setting(Field::Model),
        prompt,
        choices: Vec::new(),
        proposal: base.map(str::to_owned),
    });
}

/// The model id of a snapshot in the Hub's cache, `models--Qwen--Qwen2.5-14B-Instruct/snapshots/cf98…`
/// (`huggingface_hub/file_download.py:repo_folder_name`).
fn of_cache(path: &str) -> Option<String> {
    let (folder, _) = path.split_once("/snapshots/")?;
    let id = folder.rsplit('/').next()?.strip_prefix("models--")?;
    Some(id.replacen("--", "/", 1))
}

/// Removes the report of an unknown model if another text states its shape.
pub(crate) fn forget_unknown(reading: &mut Reading) {
    reading.diagnostics.retain(|said| said.code != Code::UnknownModel);
    reading.questions.retain(|question| question.asks != Asked::Setting(Field::Model));
}

/// A model whose name indicates that it is not a text-only decoder.
pub fn with_vision(reading: &mut Reading, name: &str, flag: &str, span: Option<Span>) {
    let lower = name.to_ascii_lowercase();
    let last = lower.rsplit('/').next().unwrap_or(&lower);
    let mut words = last.split(['-', '_', '.']);
    let vision = words.any(|word| {
        matches!(
            word,
            "vl" | "vision"
                | "llava"
                | "internvl"
                | "internvl2"
                | "internvl3"
                | "omni"
                | "pixtral"
                | "ovis"
                | "vlm"
        )
    });
    if vision {
        let found = Found::new(Field::VisionTower, "true".to_owned(), Origin::Derived);
        reading.take(found.by(flag, span).note("the model's name says so"));
    }
}

/// Words in a checkpoint's name that indicate quantization by something other than bitsandbytes.
const QUANTISED: [&str; 17] = [
    "awq", "gptq", "aqlm", "gguf", "hqq", "exl2", "eetq", "int4", "int8", "fp8", "nvfp4", "mxfp4", "w4a16",
    "w8a8", "2bit", "4bit", "8bit",
];

/// The word in a checkpoint's name, a path or an id, that indicates how its weights are quantized.
#[must_use]
pub fn quantized_word(name: &str) -> Option<&'static str> {
    // Also within typographic quotes, which a shell takes for part of the name.
    let lower = name.trim_matches(|letter: char| !letter.is_alphanumeric()).to_ascii_lowercase();
    let last = lower.rsplit('/').next().unwrap_or(&lower);
    QUANTISED.into_iter().find(|known| last.split(['-', '_', '.']).any(|word| word == *known))
}
