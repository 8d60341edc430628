//! Hugging Face `config.json`: only the shape of a model.
//!
//! What a model type fixes in code (biases, norms, gated MLP, tying, defaults) is not in the file;
//! `shardscope-architectures` has it as rules for each type.

use shardscope_architectures::{Architecture, Refusal, Stop, encoder_decoder};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};
use shardscope_units::grouped;

use super::harmless::{harmless, unused_by};
use super::lacking::{balanced, lacking, left_out, other_class};
use super::shape;
use crate::leaves::{Leaves, Scalars};
use crate::reader::{Claim, Reader, Role};
use crate::remote_code;
use crate::signs;
use crate::{Asked, Effect, Found, NotModelled, Origin, Question, Reading};

/// Keys under which composite configurations nest their language model.
const INNER: [&str; 5] =
    ["text_config", "llm_config", "language_config", "thinker_config.text_config", "decoder_config"];

/// Model types that are not decoders, which are therefore not estimated.
const FOREIGN: &str = "bert roberta umt5 bart mbart pegasus whisper clip siglip vit electra deberta deberta-v2 \
    albert distilbert modernbert xlm-roberta m2m_100 marian prophetnet t5gemma t5gemma2 bigbird_pegasus blenderbot \
    wav2vec2 hubert";

/// `config.json`.
#[derive(Debug)]
pub struct HuggingFace;

impl Reader for HuggingFace {
    fn name(&self) -> &'static str {
        "a Hugging Face model configuration"
    }

    fn about(&self) -> &'static str {
        "only the model's shape; cluster and layout come from elsewhere"
    }

    fn role(&self) -> Role {
        Role::Model
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: &[&str] = &["architectures", "text_config.model_type", "num_hidden_layers", "n_layer"];
        let typed =
            || signs::any(tree, &["model_type"]).filter(|_| tree.documents.first().is_some_and(is_type));
        signs::any(tree, SIGNS).or_else(typed)
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        shape::PLAIN.iter().flat_map(|(names, field)| names.iter().map(|name| (*name, *field))).collect()
    }
}

/// Whether `model_type` is one of transformers' types, or accompanies other keys of a model's configuration:
/// settings of other programs also have a key of that name (DimensionSTP/llm-fine-tune-hf
/// `configs/sft.yaml`: `model_type: Qwen3.5-9B`).
fn is_type(root: &Node) -> bool {
    const BESIDE: [&str; 9] = [
        "is_encoder_decoder",
        "transformers_version",
        "hidden_size",
        "d_model",
        "n_embd",
        "vocab_size",
        "text_config",
        "vision_config",
        "audio_config",
    ];
    let word = root.get("model_type").and_then(Node::word).unwrap_or("");
    let foreign = FOREIGN.split_ascii_whitespace().any(|foreign| foreign == word);
    let known = || !matches!(Architecture::read(root), Err(Refusal::Nameless | Refusal::UnknownType(_)));
    foreign || BESIDE.iter().any(|key| root.get(key).is_some()) || known()
}

fn read(root: &Node) -> Reading {
    let inner = INNER.iter().find_map(|path| root.at(path)).filter(|node| !node.entries().is_empty());
    let node = inner.unwrap_or(root);
    let scalars = Scalars::from_node(node);
    let mut leaves = Leaves::over(&scalars);
    let stated = [node, root].into_iter().find_map(|node| node.get("model_type")?.word()).unwrap_or("");
    let read = Architecture::read(root);
    let encodes = read.as_ref().is_ok_and(|read| read.shape.encoder.is_some());
    if FOREIGN.split_ascii_whitespace().any(|foreign| foreign == stated)
        || !encodes && root.get("is_encoder_decoder").and_then(Node::flag) == Some(true)
    {
        foreign(&mut leaves, root, stated);
        return leaves.reading;
    }
    let named = read.is_ok();
    let (architecture, why) = match read {
        Ok(architecture) => {
            let why = format!("the code of {}", architecture.model_type);
            (Ok(architecture), why)
        }
        Err(Refusal::Nameless | Refusal::UnknownType(_)) => {
            guessed(&mut leaves, root, stated);
            (Architecture::by_keys(node), "as its keys suggest".to_owned())
        }
        Err(refusal) => (Err(refusal), String::new()),
    };
    match architecture {
        Ok(architecture) => {
            shape::state(&mut leaves, &architecture, &why);
            if named {
                remote_code::stop_beside(&mut leaves, root);
            }
            let span = root.get("model_type").map(|node| node.span);
            leaves
                .reading
                .not_modelled
                .extend(lacking(&architecture).into_iter().map(|item| item.at_some(span)));
            leaves.reading.not_modelled.extend(balanced(&architecture).map(|item| item.at_some(span)));
            let said = left_out(&architecture);
            leaves.reading.diagnostics.extend(said.into_iter().map(|one| one.at_some(span)));
            for used in &architecture.used {
                leaves.pass(&used.key);
            }
        }
        Err(Refusal::Stopped(stop)) => stopped(&mut leaves, root, stated, &stop),
        Err(_) => {}
    }
    dropout(&mut leaves, stated, &why);
    precision(&mut leaves, root);
    // Its trainer may keep the checkpoint's format, whatever is proposed.
    if let Some(leaf) = leaves.first(&["torch_dtype", "dtype"]).filter(|_| encodes) {
        leaves.say(Field::CheckpointDtype, &leaf.value, leaf);
    }
    left_whole(&mut leaves, root);
    // The model then works out the balancing loss of its routers in every forward pass, whatever trains it.
    if let Some(leaf) = leaves.yes("output_router_logits") {
        leaves.say(Field::RouterLoss, "layers", leaf);
    }
    ask(&mut leaves, encodes);
    if encodes {
        leaves.pass("is_encoder_decoder");
        leaves.reading.not_modelled.extend(other_class(root));
    }
    for path in &["model_type", "architectures", "transformers_version", "torch_dtype", "dtype"] {
        leaves.pass(path);
    }
    for key in harmless(stated) {
        leaves.pass_everywhere(key);
    }
    leaves.finish_architecture("a Hugging Face model configuration")
}

fn foreign(leaves: &mut Leaves<'_>, root: &Node, model_type: &str) {
    let message = match encoder_decoder(root) {
        Some(count) => {
            format!(
                "{model_type} is an encoder and a decoder, {} parameters as transformers 5 builds it",
                grouped(count)
            )
        }
        None => format!("{model_type} is not a decoder-only transformer of attention and MLP layers"),
    };
    let error = Diagnostic::error(Code::NotEstimated, message).hint("such models are not estimated yet");
    leaves.reading.diagnostics.push(error.at_some(root.get("model_type").map(|node| node.span)));
}

/// Reports that a configuration is interpreted by its keys: without a type they are all there is; for an unknown type
/// it is not known what else its code does, so there is no verdict.
fn guessed(leaves: &mut Leaves<'_>, root: &Node, model_type: &str) {
    let span = root.get("model_type").map(|node| node.span);
    if model_type.is_empty() {
        let message =
            "the configuration names no model_type; biases, norms and MLP are inferred from its keys";
        leaves
            .reading
            .diagnostics
            .push(Diagnostic::warning(Code::UnknownArchitecture, message).at_some(span));
        return;
    }
    let message = format!("the model type {model_type}, known only by its keys");
    let lacks = NotModelled::new("model_type", model_type, Effect::Model, &message);
    leaves.reading.not_modelled.push(lacks.at_some(span));
}

/// A key that the model type requires is missing or makes no sense.
fn stopped(leaves: &mut Leaves<'_>, root: &Node, model_type: &str, stop: &Stop) {
    let (message, key) = match stop {
        Stop::Missing(key) => {
            (format!("{model_type} needs {key}, which is not stated and has no default"), key)
        }
        Stop::Unfit(key) => (format!("{key} is not valid for {model_type}"), key),
        Stop::TooLarge => (format!("the sizes of this {model_type} are implausibly large"), &String::new()),
    };
    let span = root.at(key).or(root.get("model_type")).map(|node| node.span);
    leaves.reading.diagnostics.push(Diagnostic::error(Code::BadConfiguration, message).at_some(span));
}

fn dropout(leaves: &mut Leaves<'_>, model_type: &str, why: &str) {
    let unused: Vec<&str> = unused_by(model_type).collect();
    let residual = ["hidden_dropout", "resid_pdrop", "resid_dropout", "residual_dropout"];
    let read: Vec<&str> = residual.into_iter().filter(|key| !unused.contains(key)).collect();
    leaves.take(&read, Field::HiddenDropout);
    leaves.take(&["attention_dropout", "attn_pdrop", "attn_dropout"], Field::AttentionDropout);
    leaves.state_all(&[(Field::HiddenDropout, "0"), (Field::AttentionDropout, "0")], Origin::Default, why);
}

/// The checkpoint's format, proposed for training unless another text gives one.
fn precision(leaves: &mut Leaves<'_>, root: &Node) {
    let dtype = ["torch_dtype", "dtype"].iter().find_map(|key| root.get(key)?.word()).unwrap_or("bfloat16");
    let field = if dtype == "float16" { Field::Fp16 } else { Field::Bf16 };
    leaves.state(field, "true", Origin::Default, "as the checkpoint, unless another text says otherwise");
}

/// The linear layers that a bitsandbytes checkpoint leaves in 16 bits: only the training's settings say
/// whether that checkpoint is loaded.
fn left_whole(leaves: &mut Leaves<'_>, root: &Node) {
    let Some(held) = root.get("quantization_config") else { return };
    if held.get("load_in_4bit").and_then(Node::flag) != Some(true) {
        return;
    }
    let listed = held.get("llm_int8_skip_modules").filter(|node| !node.is_null());
    let names = match listed {
        // Not even the output layer is excluded, a case that is not modelled here.
        Some(node) if node.items().is_empty() => return,
        Some(node) => node.items().iter().filter_map(Node::word).collect::<Vec<_>>().join(" "),
        // Without a list all linear layers except the output layer are quantized.
        None => "none".to_owned(),
    };
    let span = listed.unwrap_or(held).span;
    let found = Found::new(Field::WholeLinears, names, Origin::Script);
    leaves.reading.take(found.by("llm_int8_skip_modules", Some(span)));
}

/// Settings that a model's shape leaves open.
fn ask(leaves: &mut Leaves<'_>, encodes: bool) {
    /// A sequence length at which most models are trained.
    const USUAL: u64 = 4096;
    let longest = leaves.reading.count(Field::MaxPositionEmbeddings);
    let questions = [
        (Field::SeqLength, "Sequence length?", longest.unwrap_or(USUAL).min(USUAL)),
        (Field::MicroBatchSize, "Micro-batch size?", 1),
    ];
    // Of an encoder-decoder two lengths are asked for once the texts are together.
    for (field, prompt, proposal) in
        questions.into_iter().filter(|(field, ..)| !encodes || *field != Field::SeqLength)
    {
        leaves.reading.questions.push(Question {
            asks: Asked::Setting(field),
            prompt: prompt.to_owned(),
            choices: Vec::new(),
            proposal: Some(proposal.to_string()),
        });
    }
}
