//! A model that Megatron-Bridge builds under Hygon's Megatron-LM (HYGON-AI/Megatron-LM-das,
//! `hcu_megatron/training/training.py:setup_model_and_optimizer`): everything that its command line does not state is the
//! checkpoint configuration's or the provider's, not Megatron's default.

use super::slime::value_of;
use crate::named::fill_model;
use crate::recipes::{EXPERTS, PROVIDER};
use crate::{Argument, Asked, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, DEEP, PROJECTOR, TOWER};
use shardscope_source::{Code, Diagnostic};

/// Options that are none of `TransformerConfig`'s fields, and therefore not handed on to the provider
/// (`_bridge_select_runtime_field_names`): the configuration's value holds whatever the command line says.
const NOT_HANDED_ON: [Field; 7] = [
    Field::VocabSize,
    Field::TokenizerType,
    Field::TokenizerModel,
    Field::MakeVocabSizeDivisibleBy,
    Field::PadVocabSize,
    Field::MaxPositionEmbeddings,
    Field::UntieEmbeddingsAndOutputWeights,
];

/// Text models whose providers have positions of their own kind, mrope or yarn, which stay whatever the command line says of them
/// (`_bridge_apply_runtime_overrides`): Megatron-Bridge's of Qwen's and GLM's vision models (`qwen_vl`, `glm_vl`), of gpt-oss and
/// Ministral 3, and of a configuration with `rope_type: yarn` (`model_bridge.py`), as Olmo 3's.
const OWN_POSITIONS: [&str; 10] = [
    "qwen2_vl_text",
    "qwen2_5_vl_text",
    "qwen3_vl_text",
    "qwen3_vl_moe_text",
    "qwen3_5_text",
    "qwen3_5_moe_text",
    "glm4v_moe_text",
    "gpt_oss",
    "ministral3",
    "olmo3",
];

/// `_bridge_apply_runtime_overrides` hands on `args.position_embedding_type` whether or not it was stated, except to providers of
/// mrope and yarn, neither of which has parameters.
fn positions(reading: &mut Reading, words: &[Argument], name: &str, word: &Argument) {
    if reading.value(Field::PositionEmbeddingType).is_some() {
        return;
    }
    let model = catalog::find(name).model().filter(|_| word.hole.is_none());
    let keeps = |model: catalog::Model| {
        model.architecture().is_some_and(|family| OWN_POSITIONS.contains(&family.model_type.as_str()))
    };
    match model {
        Some(model) if keeps(model) => {}
        Some(_) => {
            let why = "Megatron-LM's default, which replaces the provider's";
            let learned = Found::new(Field::PositionEmbeddingType, "learned_absolute", Origin::Derived);
            reading.take(learned.note(why));
        }
        // The families that `pretrain_vlm.py` takes all have mrope, but for Gemma's (`_QWEN_VL_ARCHS`).
        None if value_of(words, "--model-arch").is_some_and(|(family, _)| family.starts_with("qwen")) => {
            let why = "--model-arch is one of Qwen's vision models, whose mrope stays";
            let rope = Found::new(Field::PositionEmbeddingType, "rope", Origin::Derived);
            reading.take(rope.note(why));
        }
        None => {
            let mut found = Found::new(Field::PositionEmbeddingType, String::new(), Origin::Script)
                .by("--bridge-hf-model", word.span);
            found.hole = Some("the configuration's kind of positions".to_owned());
            reading.take(found);
            reading.questions.push(Question {
                asks: Asked::Setting(Field::PositionEmbeddingType),
                prompt: "Does the model that Megatron-Bridge builds have mrope (Qwen's vision models) or yarn (rope_type in its \
                         config.json)? Then its positions stay (rope); without --position-embedding-type any other gets \
                         Megatron-LM's learned ones"
                    .to_owned(),
                choices: ["learned_absolute", "rope"].map(str::to_owned).to_vec(),
                proposal: Some("learned_absolute".to_owned()),
            });
        }
    }
}

pub(super) fn together(reading: &mut Reading, words: &[Argument]) {
    const OPTION: &str = "--bridge-hf-model";
    let Some(switch) = words.iter().find(|word| word.text == "--use-bridge") else { return };
    let Some((name, word)) = value_of(words, OPTION) else {
        let what = "Megatron-Bridge without a model, at which the program stops";
        reading
            .not_modelled
            .push(NotModelled::new(&switch.text, "", Effect::Model, what).at_some(switch.span));
        return;
    };
    reading.keep(&|found| !NOT_HANDED_ON.contains(&found.field));
    reading
        .not_modelled
        .retain(|item| !FREEZES.iter().any(|(flag, _)| item.is_called(flag.trim_start_matches('-'))));
    let mut state = |field: Field, value: &str, why: &str| {
        if reading.value(field).is_none() {
            reading.take(Found::new(field, value, Origin::Derived).note(why));
        }
    };
    state(
        Field::PadVocabSize,
        "false",
        "Megatron-Bridge's provider does not pad the vocabulary (should_pad_vocab)",
    );
    if words.iter().any(|word| word.text == "--bridge-language-model-only") {
        state(Field::VisionTower, "false", "--bridge-language-model-only builds the decoder alone");
    } else {
        // Whatever the provider's own defaults are (`_bridge_apply_vlm_overrides`).
        state(
            Field::VisionModules,
            "bridge",
            "Megatron-Bridge builds the model, and Hygon's options freeze parts",
        );
        let frozen = frozen(words);
        if !frozen.is_empty() {
            state(Field::FrozenModules, &frozen.join(" "), "Hygon's --freeze options");
        }
    }
    let of_provider = "set by Megatron-Bridge's providers for models of the Hub";
    PROVIDER.iter().for_each(|(field, value)| state(*field, value, of_provider));
    positions(reading, words, name, word);
    if word.hole.is_none() && !name.is_empty() {
        fill_model(reading, name, OPTION, word.span);
    } else {
        ask(reading, name, word);
    }
    if reading.value(Field::NumExperts).is_some() {
        for (field, value) in EXPERTS.iter().filter(|(field, _)| *field != Field::NumExperts) {
            if reading.value(*field).is_none() {
                reading.take(Found::new(*field, *value, Origin::Derived).note(of_provider));
            }
        }
    }
}

/// Hygon's switches, and the parts of a model that each freezes (`hcu_megatron/core/datasets/vlm_args.py`).
const FREEZES: [(&str, &[&str]); 3] = [
    ("--freeze-language-model", &[DECODER]),
    ("--freeze-vision-model", &[TOWER]),
    ("--freeze-vision-projection", &[PROJECTOR, DEEP]),
];

/// The parts that the words freeze.
fn frozen(words: &[Argument]) -> Vec<&'static str> {
    let on = |flag: &str| words.iter().any(|word| word.text == flag);
    FREEZES.iter().filter(|(flag, _)| on(flag)).flat_map(|(_, parts)| parts.iter().copied()).collect()
}

/// Asks for the model: sizes on the command line do not tell which layers a configuration has.
fn ask(reading: &mut Reading, name: &str, word: &Argument) {
    let message = format!("the model that Megatron-Bridge builds is {name}, which is not given here");
    let hint = "name it, or paste its config.json as well";
    reading.diagnostics.push(Diagnostic::error(Code::UnknownModel, message).hint(hint).at_some(word.span));
    reading.questions.push(Question {
        asks: Asked::Setting(Field::Model),
        prompt:
            "Which model does Megatron-Bridge build? Its name on the Hub, or paste its config.json as well"
                .to_owned(),
        choices: Vec::new(),
        proposal: None,
    });
}
