//! Scripts of OLMo-core (`src/scripts/train`, `src/scripts/official`, `src/examples`): functions that return a model,
//! its training module, or a complete experiment. They are read as the `config.json` that they save.

use super::super::format::Format;
use super::super::frameworks::{OLMO_CORE, factory, like};
use super::super::leaves::Leaf;
use super::super::scalars::Scalars;
use crate::{Effect, NotModelled, Reading};
use shardscope_python::evaluate::{Calls, Outcome, evaluate_with};
use shardscope_python::expression::{Expression, expression};
use shardscope_python::program::{Function, functions};
use shardscope_python::statements::statements;
use shardscope_python::tree::{Scalar, Tree, scalar, text as scalar_text};
use shardscope_source::Span;

/// Vocabulary sizes of OLMo-core's named tokenizers (`olmo_core/data/tokenizer.py`), as
/// `padded_vocab_size` rounds them.
const TOKENIZERS: [(&str, &str); 4] = [
    ("dolma2", "100352"),
    ("dolma2_sigdig", "100352"),
    ("gpt_neox_olmo_dolma_v1_5", "50304"),
    ("gpt2", "50304"),
];
/// Return types of functions, and the part of a configuration that each one is.
const RETURNS: [(&str, &str); 3] = [
    ("ExperimentConfig", ""),
    ("TransformerConfig", "model"),
    ("TransformerTrainModuleConfig", "train_module"),
];
/// The settings of `internal/cookbook.py:configure_train_module` in addition to its arguments.
const COOKBOOK: &[(&str, &str)] = &[
    ("optim", "SkipStepAdamWConfig"),
    ("z_loss_multiplier", "1e-5"),
    ("compile_model", "true"),
    ("dp_config", "TransformerDataParallelConfig"),
    ("dp_config.name", "hsdp"),
    ("dp_config.param_dtype", "bfloat16"),
    ("dp_config.reduce_dtype", "float32"),
];

/// The functions and classes that its scripts call.
struct OlmoCore<'a> {
    /// The default of `--model-factory`.
    usual: Option<&'a str>,
}

impl Calls for OlmoCore<'_> {
    fn value(&self, name: &str, given: &[(Option<String>, Tree)]) -> Option<Tree> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let made =
            name.strip_prefix("TransformerConfig.").or_else(|| self.usual.filter(|_| name == "factory"));
        if let Some(made) = made {
            return Some(model(made, given));
        }
        match last {
            "padded_vocab_size" => Some(scalar(PADDED)),
            "TransformerActivationCheckpointingConfig" => Some(class(last, "mode", given)),
            "TransformerDataParallelConfig" => Some(class(last, "name", given)),
            "configure_train_module" => Some(cookbook(given)),
            // Data, logs and checkpoints.
            _ if name.starts_with("TokenizerConfig.") => Some(scalar(last)),
            _ if last.starts_with("from_")
                || last.starts_with("configure_")
                || last == "build_launch_config" =>
            {
                Some(
                    given
                        .iter()
                        .filter_map(|(keyword, tree)| Some((keyword.clone()?, tree.first()?.1.clone())))
                        .collect(),
                )
            }
            "list" | "str" | "max" | "min" | "getattr" | "print" => Some(scalar("")),
            _ => None,
        }
    }

    /// A command's words are not available, and callbacks change no figure.
    fn gives_its_own(&self, method: &str) -> bool {
        method == "merge" || method.starts_with("with_")
    }

    fn assigns(&self, _: &str, _: &Tree) -> Option<Tree> {
        None
    }
}

/// An object of a class whose first argument may be positional.
fn class(name: &str, first: &str, given: &[(Option<String>, Tree)]) -> Tree {
    let mut out = scalar(name);
    for (index, (keyword, tree)) in given.iter().enumerate() {
        let keyword = match (keyword, index) {
            (Some(keyword), _) => keyword,
            (None, 0) => first,
            // No script passes more than one positional argument.
            (None, _) => "more",
        };
        out.extend(tree.iter().map(|(path, scalar)| {
            (if path.is_empty() { keyword.to_owned() } else { format!("{keyword}.{path}") }, scalar.clone())
        }));
    }
    out
}

/// A placeholder for the vocabulary size of a tokenizer that the program names elsewhere.
const PADDED: &str = "padded_vocab_size()";

/// A model by the name of its factory and the arguments.
fn model(name: &str, given: &[(Option<String>, Tree)]) -> Tree {
    let of = |keyword: &str| given.iter().find(|(known, _)| known.as_deref() == Some(keyword));
    let word = |keyword: &str| of(keyword).and_then(|(_, tree)| scalar_text(tree, "")).unwrap_or("");
    let known = if name == "llama_like" {
        let multiple = word("hidden_size_multiple_of").parse().unwrap_or(256);
        word("d_model")
            .parse()
            .ok()
            .and_then(|hidden| like(hidden, word("hidden_size_multiplier").parse().ok(), multiple))
    } else {
        factory(name)
    };
    let plain = |text: &str| Scalar { text: text.to_owned(), ..Scalar::default() };
    let mut out: Tree = scalar("TransformerConfig");
    let Some(known) = known else {
        out.push(("name".to_owned(), plain(name)));
        return out;
    };
    out.extend(known.iter().map(|(path, value)| ((*path).to_owned(), plain(value))));
    for (keyword, tree) in given {
        let keyword = keyword.as_deref().unwrap_or("vocab_size");
        let Some((_, path)) = KEYWORDS.iter().find(|(known, _)| *known == keyword) else {
            // An unknown keyword may change anything.
            let path = format!("block_overrides.{keyword}");
            out.push((path, plain(keyword)));
            continue;
        };
        let yes = scalar_text(tree, "") == Some("true");
        match (keyword, path) {
            (_, None) => {}
            ("qk_norm", Some(path)) => {
                out.retain(|(known, _)| known != path);
                out.extend(yes.then(|| ((*path).to_owned(), plain("rms"))));
            }
            (_, Some(path)) => {
                out.retain(|(known, _)| known != path && !known.starts_with(&format!("{path}.")));
                out.extend(tree.iter().map(|(below, scalar)| {
                    let path = if below.is_empty() { (*path).to_owned() } else { format!("{path}.{below}") };
                    (path, scalar.clone())
                }));
            }
        }
    }
    out
}

/// Keywords of `llama_like` and of the older factories, and the paths that they set; `None` if they change no figure.
const KEYWORDS: &[(&str, Option<&str>)] = &[
    ("vocab_size", Some("vocab_size")),
    ("d_model", Some("d_model")),
    ("n_layers", Some("n_layers")),
    ("n_heads", Some("block.sequence_mixer.n_heads")),
    ("n_kv_heads", Some("block.sequence_mixer.n_kv_heads")),
    ("head_dim", Some("block.sequence_mixer.head_dim")),
    ("qk_norm", Some("block.sequence_mixer.qk_norm.name")),
    ("use_head_qk_norm", Some("block.sequence_mixer.use_head_qk_norm")),
    ("layer_norm_name", Some("block.layer_norm.name")),
    ("rope_full_precision", Some("block.sequence_mixer.rope.full_precision")),
    ("no_global_rope", Some("block.sequence_mixer.rope.no_global_rope")),
    ("use_flash", Some("block.sequence_mixer.use_flash")),
    ("attn_backend", Some("block.sequence_mixer.backend")),
    ("sliding_window", Some("block.sequence_mixer.sliding_window")),
    ("gate", Some("block.sequence_mixer.gate")),
    ("block_name", Some("block.name")),
    ("tie_word_embeddings", Some("tie_word_embeddings")),
    ("embedding_norm", Some("embedding_norm")),
    ("dtype", Some("dtype")),
    ("hidden_size_multiplier", None),
    ("hidden_size_multiple_of", None),
    ("layer_norm_eps", None),
    ("rope_theta", None),
    ("rope_scaling", None),
    ("init_std", None),
    ("init_seed", None),
    ("init_method", None),
];

fn cookbook(given: &[(Option<String>, Tree)]) -> Tree {
    let mut out = scalar("TransformerTrainModuleConfig");
    let plain = |text: &str| Scalar { text: text.to_owned(), ..Scalar::default() };
    out.extend(COOKBOOK.iter().map(|(path, value)| ((*path).to_owned(), plain(value))));
    for (keyword, tree) in given {
        let Some((_, scalar)) = tree.iter().find(|(path, _)| path.is_empty()) else { continue };
        let path = match keyword.as_deref() {
            Some("dp_shard_degree") => "dp_config.shard_degree",
            Some("cp_degree") if !scalar.text.is_empty() => "cp_config.degree",
            Some("float8_enabled") => "float8_config.enabled",
            Some("activation_memory_budget") if scalar.text.parse() != Ok(1.0) => {
                out.push(("ac_config.mode".to_owned(), plain("budget")));
                continue;
            }
            Some(path @ ("max_sequence_length" | "rank_microbatch_size")) => path,
            _ => continue,
        };
        out.push((path.to_owned(), scalar.clone()));
    }
    out
}

/// Reads a script; `None` if it has no function that returns a part of a configuration.
pub fn read_olmo_core(text: &str, base: u32) -> Option<(Format, Reading)> {
    let functions = functions(text);
    let own: Vec<(&Function<'_>, &str)> = functions
        .iter()
        .filter_map(|function| {
            Some((function, RETURNS.iter().find(|(returns, _)| *returns == function.returns)?.1))
        })
        .collect();
    let whole = own.iter().any(|(_, part)| part.is_empty());
    let has = |wanted: &str| own.iter().any(|(_, part)| *part == wanted);
    let both = has("model") && has("train_module");
    if !(whole || both) {
        return None;
    }
    let options = options(text);
    let usual = scalar_text(&options, "model_factory").map(str::to_owned);
    let calls = OlmoCore { usual: usual.as_deref() };
    let common = common(text, &functions);
    let mut all = Outcome::default();
    for (function, part) in own.iter().filter(|(_, part)| !whole || part.is_empty()) {
        let given = if part.is_empty() { options.clone() } else { common.clone() };
        let outcome = evaluate_with(&functions, &calls, function.name, vec![(None, given)]);
        all.unknown.extend(outcome.unknown);
        all.tree.extend(outcome.tree.into_iter().map(|(path, scalar)| {
            match (path.is_empty(), part.is_empty()) {
                (true, _) => ((*part).to_owned(), scalar),
                (false, true) => (path, scalar),
                (false, false) => (format!("{part}.{path}"), scalar),
            }
        }));
    }
    for (path, to) in [
        ("max_sequence_length", "train_module.max_sequence_length"),
        ("global_batch_size", "data_loader.global_batch_size"),
        ("num_nodes", "launch.num_nodes"),
    ] {
        if let Some((_, scalar)) = common.iter().find(|(known, _)| known == path).filter(|_| !whole) {
            all.tree.push((to.to_owned(), scalar.clone()));
        }
    }
    Some((Format::new(&OLMO_CORE), read(&all, text, base)))
}

fn read(outcome: &Outcome, program: &str, base: u32) -> Reading {
    let tokenizer = tokenizer(program);
    let leaves = outcome
        .tree
        .iter()
        .filter(|(path, scalar)| !path.is_empty() && (path != "model" || scalar.hole.is_some()))
        .map(|(path, scalar)| {
            let at = u32::try_from(scalar.at).ok().filter(|at| *at > 0).map(|at| at.saturating_add(base));
            let padded = scalar.text == PADDED;
            // An enum member.
            let member = scalar.text.split_once('.').is_some_and(|(class, _)| {
                class.starts_with(|first: char| first.is_ascii_uppercase())
                    && class.bytes().all(|byte| byte.is_ascii_alphanumeric())
            });
            let value = match () {
                () if padded => tokenizer.unwrap_or("").to_owned(),
                () if member => scalar.text.rsplit('.').next().unwrap_or("").to_owned(),
                () => scalar.text.clone(),
            };
            let hole = (padded && tokenizer.is_none()).then(|| "the rows of its tokenizer".to_owned());
            let hole = scalar.hole.clone().or(hole);
            let value = if value.is_empty() { hole.clone().unwrap_or_default() } else { value };
            // A class with nested values has a key of its own, as in the saved configuration.
            let group = format!("{path}.");
            let holds = outcome.tree.iter().any(|(other, _)| other.starts_with(&group));
            Leaf {
                path: if holds { format!("{path}._CLASS_") } else { path.clone() },
                value,
                span: at.map(|at| Span::new(at, at)),
                hole,
                ..Leaf::default()
            }
        })
        .collect();
    let mut reading = OLMO_CORE.read_leaves(&Scalars::from_leaves(leaves));
    for call in &outcome.unknown {
        let what = "what this call changes in the configuration";
        reading.not_modelled.push(NotModelled::new("script", call, Effect::Memory, what));
    }
    if program.contains("finalize_config") {
        let what = "what the script changes in the configuration at the end";
        reading.not_modelled.push(NotModelled::new("finalize_config", "", Effect::Model, what));
    }
    reading
}

/// Vocabulary size of the tokenizer that the program names, or of the one that all of OLMo-core's own scripts use.
fn tokenizer(program: &str) -> Option<&'static str> {
    let mut names = program
        .split("TokenizerConfig.")
        .skip(1)
        .map(|rest| rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or(""));
    let first = names.next().unwrap_or("dolma2");
    let rows = TOKENIZERS.iter().find(|(name, _)| *name == first).map(|(_, rows)| *rows);
    rows.filter(|_| names.all(|other| other == first))
}

/// Defaults of a script's own options (`add_argument`); those of `script_utils.py` have none.
fn options(program: &str) -> Tree {
    let mut out: Tree = vec![("sequence_length".to_owned(), Scalar::default())];
    for statement in statements(program) {
        let Expression::Call(name, arguments) = expression(statement.text) else { continue };
        if !name.ends_with(".add_argument") {
            continue;
        }
        let (Some((None, Expression::Text(option))), Some((_, usual))) =
            (arguments.first(), arguments.iter().find(|(keyword, _)| keyword.as_deref() == Some("default")))
        else {
            continue;
        };
        if let Expression::Text(text) | Expression::Number(text) = usual {
            let name = option.trim_start_matches('-').replace('-', "_");
            out.retain(|(known, _)| *known != name);
            out.push((name, Scalar { text: text.clone(), at: statement.start, ..Scalar::default() }));
        }
    }
    out
}

/// The arguments of `internal/experiment.py:build_config`, which it passes on to the functions that it receives.
fn common(program: &str, functions: &[Function<'_>]) -> Tree {
    let constants = functions.first().map(|function| &function.constants);
    let number = |value: &Expression| match value {
        Expression::Number(text) => Some(text.clone()),
        Expression::Name(name) => {
            constants?.iter().find(|(known, _)| known == name).and_then(|(_, value)| match value {
                Expression::Number(text) => Some(text.clone()),
                _ => None,
            })
        }
        _ => None,
    };
    let plain = |text: String, at: usize| Scalar { text, at, ..Scalar::default() };
    let mut out: Tree = Vec::new();
    for statement in statements(program) {
        let Some((_, value)) = statement.text.split_once("= partial(") else { continue };
        let Expression::Call(_, arguments) = expression(&format!("partial({value}")) else { continue };
        for (keyword, value) in arguments {
            let Some(keyword) = keyword else { continue };
            if let Some(text) = number(&value) {
                out.push((keyword, plain(text, statement.start)));
            }
        }
    }
    if !out.iter().any(|(known, _)| known == "max_sequence_length") {
        out.push(("max_sequence_length".to_owned(), plain("4096".to_owned(), 0)));
    }
    out
}
