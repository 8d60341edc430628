//! A decoder with a head for classes in place of the output layer: ms-swift's `task_type seq_cls`, and programs that load one
//! by `AutoModelForSequenceClassification` and hand it to transformers' Trainer.

use super::dialect::Dialect;
use crate::leaves::{Leaf, Leaves};
use crate::{Effect, Found, Origin};
use shardscope_plan::Field;
use shardscope_source::Span;

/// The key of a program that loads such a model.
const KEY: &str = "auto_model_for_sequence_classification";
/// Types of text decoders whose head is `modeling_layers.py:GenericForSequenceClassification`, which is recorded
/// (`tests/record/reward_head.py`), as transformers 5.23 maps them (`models/auto/modeling_auto.py`).
const TYPES: &str = "arcee cohere_compass_text deepseek_v2 deepseek_v3 diffllama doge exaone4 gemma gemma2 gemma3_text glm glm4 gpt_oss \
    helium hunyuan_v1_dense hunyuan_v1_moe jamba jetmoe llama minicpm3 minimax ministral ministral3 mistral mistral4 mixtral nemotron olmo \
    olmo2 olmo3 persimmon phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_5_text qwen3_moe qwen3_next seed_oss smollm3 stablelm starcoder2";
/// Parts of a program by which its loss or its classes may be others than the call's keywords say.
const OTHERWISE: [&str; 2] = ["problem_type", "AutoConfig"];
const NAMES: [&str; 2] = ["id2label", "label2id"];

fn is_over_decoder(name: &str) -> bool {
    let found = shardscope_catalog::find(name);
    let model_type = found.model().and_then(|model| model.model_type());
    model_type.is_some_and(|own| TYPES.split_ascii_whitespace().any(|known| known == own))
}

/// What a program states that loads a model of `class` and trains it by transformers' own trainer: none if the model is no
/// decoder that is known, or something else decides its classes. `open`: settings that the program computes.
pub(super) fn told(
    class: Option<&str>,
    text: &str,
    open: &mut Vec<(Field, String, Span)>,
    leaves: &[Leaf],
) -> Option<Leaf> {
    let leaf = |key: &str| leaves.iter().rfind(|leaf| leaf.path == key);
    let named = leaf("model_name_or_path").filter(|leaf| leaf.hole.is_none());
    let computed = open.iter().any(|(field, ..)| *field == Field::NumLabels);
    // One class is a regression, whose loss is another.
    let classes = leaf("num_labels").and_then(Leaf::whole).is_some_and(|classes| classes > 1);
    let counted = classes || computed || !leaves.iter().any(|leaf| leaf.path == "num_labels");
    // Names of classes decide their number only where it is not given.
    let otherwise = OTHERWISE.iter().any(|part| text.contains(part))
        || !(classes || computed) && NAMES.iter().any(|part| text.contains(part));
    let class = class.filter(|class| class.ends_with("ForSequenceClassification"));
    let told =
        class.filter(|_| counted && !otherwise && named.is_some_and(|leaf| is_over_decoder(&leaf.value)));
    if told.is_none() {
        open.retain(|(field, ..)| *field != Field::NumLabels);
    }
    told.map(|class| Leaf { path: KEY.to_owned(), value: class.to_owned(), ..Leaf::default() })
}

/// Reads the head; returns whether there is one.
pub(super) fn read(leaves: &mut Leaves<'_>, dialect: Dialect) -> bool {
    // ms-swift loads a model with a classification head (`swift/model/register.py:get_model`).
    let swift = leaves.get("task_type").filter(|leaf| dialect == Dialect::Swift && leaf.value == "seq_cls");
    let Some(leaf) = swift.or(leaves.get(KEY)) else { return false };
    let found = Found::new(Field::TrainingObjective, "classify", Origin::Script);
    leaves.reading.take(found.by(&leaf.path, leaf.span));
    leaves.take(&["num_labels"], Field::NumLabels);
    if swift.is_none() {
        adapters(leaves, leaf);
    }
    true
}

/// PEFT trains a copy of the head beside adapters if it is told what they are for, and freezes the head otherwise
/// (`peft/peft_model.py:PeftModelForSequenceClassification`). It adds these names to those that it copies.
fn adapters(leaves: &mut Leaves<'_>, head: &Leaf) {
    const COPIED: [&str; 2] = ["score", "classifier"];
    if !matches!(leaves.reading.value(Field::TrainType), Some("lora" | "qlora")) {
        return;
    }
    let told = leaves.text("task_type") == Some("SEQ_CLS");
    if !told {
        let what = "adapters beside a new head that they leave frozen (a task_type other than SEQ_CLS)";
        leaves.lack(head, Effect::Model, what);
    }
    let copies = leaves.text("modules_to_save").unwrap_or_default();
    let mut names = copies
        .split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_')
        .filter(|name| !name.is_empty());
    if names.all(|name| COPIED.contains(&name)) {
        leaves.reading.keep(&|found| found.field != Field::ModulesToSave);
    }
}
