//! Commands that name a recipe of Megatron-Bridge: `run_recipe.py --recipe NAME key=value`, and its performance scripts
//! (`--model_recipe_name qwen3_235b_a22b --gpu b200 --num_gpus 256 --compute_dtype bf16`, `scripts/performance`).

use super::super::leaves::{Leaf, Leaves, Scalars};
use super::super::nemo;
use super::options::{argument, option};
use super::{bridge, nemotron, overrides, table, titan};
use crate::{Argument, Effect, Found, NotModelled, Origin, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_config_tree::Node;
use shardscope_plan::Field;
use shardscope_python::evaluate::Outcome;
use shardscope_python::tree::Scalar;
use shardscope_resolve::Asked;
use shardscope_source::{Code, Diagnostic, Span};
use std::collections::HashSet;

/// Options that name a recipe in full.
const WHOLE: [&str; 2] = ["--recipe", "--recipe-name"];
/// Values of `--compute_dtype` as they appear in names of recipes.
const FORMATS: [(&str, &str); 5] =
    [("bf16", "bf16"), ("fp8_cs", "fp8cs"), ("fp8_mx", "fp8mx"), ("fp8_sc", "fp8sc"), ("nvfp4", "nvfp4")];
/// Stands for a number of accelerators given by a variable, in a recipe's name.
const OPEN: &str = "N";
/// Longest name of a recipe that is compared with others. Unit: byte.
const LONGEST: usize = 200;
/// Most recipes offered as choices.
const OFFERED: usize = 60;

/// Reads such a command; `None` for any other, and if no recipe of that model is known. `asked` is
/// the recipe that the user names.
pub fn read_words(words: &[Argument], asked: Option<&str>) -> Option<Reading> {
    if let (Some((module, _)), Some((config, place))) = (option(words, "--module"), option(words, "--config"))
    {
        return registry(words, module, config, place, asked);
    }
    let named = WHOLE
        .iter()
        .find_map(|flag| option(words, flag))
        .or_else(|| option(words, "--model-recipe-name").filter(|_| option(words, "--gpu").is_none()));
    let (name, place) = match named {
        Some(word) => (word.0.to_owned(), word.1),
        None => performance(words)?,
    };
    let exact = table::outcome(&name).map(|outcome| (name.clone(), outcome));
    let asked = asked.and_then(|asked| Some((asked.to_owned(), table::outcome(asked)?)));
    let Some((known, outcome)) = exact.or(asked) else { return which(&name, place) };
    let mut reading = bridge::read(&outcome, &known, 0, overrides::changes(words, &outcome, &known));
    reading.not_modelled.extend(overrides::lacking(words));
    reading.not_modelled.extend(other_purpose(&name, &known).map(|item| item.at_some(place)));
    let name = known;
    for found in &mut reading.found {
        if found.span.is_none() && found.origin == Origin::Script {
            // A recipe's settings are attributed to the place where it is named.
            found.span = place;
            found.origin = Origin::Catalog;
            found.note.get_or_insert_with(|| format!("set by {name} of Megatron-Bridge (August 2026)"));
        }
    }
    machines(&mut reading, words);
    Some(reading)
}

/// Adapters that only one of two recipes trains: the one that the words name, or `known`, which the user picked as the closest.
/// A name that does not say what it trains tells nothing.
fn other_purpose(named: &str, known: &str) -> Option<NotModelled> {
    let has = |name: &str, words: &[&str]| name.split('_').any(|word| words.contains(&word));
    let adapts = |name: &str| has(name, &["peft", "lora", "dora"]);
    let what = match adapts(known) {
        false if adapts(named) => "adapters, while the recipe picked as the closest trains all weights",
        true if has(named, &["sft", "pretrain"]) => {
            "all weights trained, while the recipe picked as the closest trains adapters"
        }
        _ => return None,
    };
    Some(NotModelled::new("--recipe", named, Effect::Memory, what))
}

/// `torchtitan.train --module llama3 --config llama3_8b --training.steps 10`: a registry's
/// configuration with modifications.
fn registry(
    words: &[Argument],
    module: &str,
    config: &str,
    place: Option<Span>,
    asked: Option<&str>,
) -> Option<Reading> {
    let (package, module) = module.rsplit_once('.').unwrap_or(("", module));
    // `torchtitan/experiments/graph_trainer`: the same configurations for another trainer.
    let other = if package.ends_with("graph_trainer") {
        titan::trainer("GraphTrainer.Config").flatten()
    } else {
        None
    };
    let lacking: Vec<NotModelled> = other
        .map(|(effect, what)| NotModelled::new("--module", package, effect, what).at_some(place))
        .into_iter()
        .collect();
    let by_name = asked.and_then(|asked| asked.split_once('.'));
    let known = table::titan(module, config)
        .or_else(|| by_name.and_then(|(module, config)| table::titan(module, config)));
    let Some(outcome) = known else {
        let mut names: Vec<&str> =
            table::titan_names().filter(|name| name.split('.').next() == Some(module)).collect();
        names.sort_by_key(|name| name.contains("debug"));
        let Some(first) = names.first() else {
            let what = "a module of the program's own under torchtitan, whose layers are not known here";
            let item = NotModelled::new("--module", module, Effect::Model, what).at_some(place);
            let mut reading = titan::read(&stated(words, Outcome::default()), config, 0);
            reading.not_modelled.push(item);
            return Some(reading);
        };
        let message = format!(
            "{module}'s configuration {config} is not among those of torchtitan that are known (August 2026)"
        );
        let said =
            Diagnostic::error(Code::UnknownModel, message).hint("name the closest one, or paste its Python");
        let question = Question {
            asks: Asked::Recipe,
            prompt: format!("Which torchtitan configuration is {config} closest to?"),
            proposal: Some((*first).to_owned()),
            choices: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        return Some(Reading {
            diagnostics: vec![said.at_some(place)],
            questions: vec![question],
            not_modelled: lacking,
            ..Reading::default()
        });
    };
    let mut reading = titan::read(&stated(words, outcome), config, 0);
    reading.not_modelled.extend(lacking);
    Some(reading)
}

/// A configuration with what the words change.
fn stated(words: &[Argument], mut outcome: Outcome) -> Outcome {
    for leaf in Scalars::of_words(words).all().iter().filter(|leaf| leaf.path.contains('.')) {
        outcome.tree.retain(|(path, _)| *path != leaf.path);
        let scalar = Scalar { text: leaf.value.clone(), hole: leaf.hole.clone(), at: 0 };
        outcome.tree.push((leaf.path.clone(), scalar));
    }
    outcome
}

/// The name that the performance scripts build from model, task, GPUs and number format.
fn performance(words: &[Argument]) -> Option<(String, Option<Span>)> {
    let (model, place) = match option(words, "--model-recipe-name") {
        Some((name, place)) => (name.to_owned(), place),
        None => {
            let (family, place) = option(words, "--model-name")?;
            (format!("{family}_{}", option(words, "--model-size")?.0), place)
        }
    };
    let (gpu, _) = option(words, "--gpu")?;
    let task = option(words, "--task").map_or("pretrain", |(task, _)| task);
    let task = if task == "lora" { "peft" } else { task };
    // If a variable gives the number, the user is asked for the closest recipe with the same accelerator and format.
    let open = || argument(words, "--num-gpus").is_some_and(|word| word.hole.is_some()).then_some(OPEN);
    let gpus = option(words, "--num-gpus").map(|(gpus, _)| gpus).or_else(open)?;
    let dtype = option(words, "--compute-dtype").map_or("bf16", |(dtype, _)| dtype);
    let dtype = FORMATS.iter().find(|(word, _)| *word == dtype).map_or(dtype, |(_, name)| *name);
    let name = format!("{model}_{task}_{gpus}gpu_{}_{dtype}", gpu.to_ascii_lowercase());
    // `_flat_recipe_variant_suffix` of `scripts/performance/dump_perf_configs.py`; a variant of an
    // older release may not exist today.
    let variant = option(words, "--config-variant").map(|(variant, _)| format!("{name}_{variant}_config"));
    let variant = variant.filter(|name| table::outcome(name).is_some());
    Some((variant.unwrap_or_else(|| format!("{name}_config")), place))
}

/// Reads a settings file that modifies a recipe (`run_recipe.py --config_file`): with the recipe that the user names,
/// otherwise with a question for it. `text` is the file's.
pub fn read_changes(root: &Node, asked: Option<&str>, text: &str) -> Reading {
    let named = nemo::named_in_settings(root);
    if let Some(name) = asked.or(named)
        && let Some(outcome) = table::outcome(name)
    {
        let leaves: Vec<Leaf> = Scalars::from_node(root).all().to_vec();
        let changes = nemotron::changes(leaves.clone());
        let mut reading = bridge::read(&outcome, name, 0, changes);
        // The launch states the number of machines; the recipe's own number is that of its own layout.
        reading.keep(&|found| found.field != Field::WorldSize);
        nemotron::beside(&mut reading, &leaves, &outcome);
        return reading;
    }
    let lower = text.to_ascii_lowercase();
    let words: HashSet<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let models = named_models(root);
    let alike = |name: &str| {
        let of_name: Vec<&str> = name.split('_').filter(|word| word.len() > 1 && *word != "config").collect();
        let shared = of_name.iter().filter(|word| words.contains(*word)).count();
        (of_model(name, &models), shared, std::cmp::Reverse(of_name.len()))
    };
    let mut offered: Vec<&str> = table::names().collect();
    offered.sort_by_cached_key(|name| std::cmp::Reverse(alike(name)));
    offered.truncate(OFFERED);
    let message = match named {
        Some(name) => format!("the recipe {name} is none of the Megatron-Bridge that is known here"),
        None => "the recipe that these settings override is named at launch, not here".to_owned(),
    };
    let said =
        Diagnostic::error(Code::OpenValue, message).hint("name the recipe, or add the line that launches it");
    let question = Question {
        asks: Asked::Recipe,
        prompt: "Which Megatron-Bridge recipe do these settings override?".to_owned(),
        proposal: offered.first().map(|name| (*name).to_owned()),
        choices: offered.into_iter().map(str::to_owned).collect(),
    };
    Reading { diagnostics: vec![said.at(root.span)], questions: vec![question], ..Reading::default() }
}

/// Keys whose values name the weights to start from, or the output.
const NAMED: [&str; 4] =
    ["checkpoint.pretrained_checkpoint", "model.hf_model_id", "checkpoint.load", "tokenizer.tokenizer_model"];

/// The last components of the paths that name a model, reduced to letters and digits.
fn named_models(root: &Node) -> Vec<String> {
    let scalars = Scalars::from_node(root);
    let leaves = Leaves::over(&scalars);
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let last = |value: &str| plain(value.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
    NAMED.iter().filter_map(|path| leaves.text(path)).filter(|text| text.len() <= LONGEST).map(last).collect()
}

/// The number of letters in a recipe's leading words that also occur in the name of a model:
/// `nemotron_3_super_sft_config` is a recipe for `NVIDIA-Nemotron-3-Super-120B-A12B-Base-BF16`. It determines only the
/// choices offered, never the reading.
fn of_model(name: &str, models: &[String]) -> usize {
    let mut start = String::with_capacity(name.len());
    let mut most = 0;
    for word in name.split('_') {
        start.push_str(word);
        if models.iter().any(|model| model.contains(&start)) {
            most = start.len();
        } else {
            break;
        }
    }
    most
}

/// No recipe has exactly this name: offers those of the same model, the likeliest first;
/// `None` if no such model is known.
fn which(name: &str, place: Option<Span>) -> Option<Reading> {
    if name.len() > LONGEST {
        return None;
    }
    // The number of leading words in common: model, size, task.
    let common =
        |other: &str| name.split('_').zip(other.split('_')).take_while(|(one, two)| one == two).count();
    let alike =
        |other: &str| name.split('_').filter(|word| other.split('_').any(|theirs| theirs == *word)).count();
    // Accelerator and format distinguish recipes more than the number of accelerators, which the words modify.
    let (_, kind) = name.split_once("gpu_").unwrap_or_default();
    let same = |other: &str| other.split_once("gpu_").is_some_and(|(_, theirs)| theirs == kind);
    let model = |other: &str| {
        let before =
            |name: &str| name.split("gpu_").next().unwrap_or_default().split('_').count().saturating_sub(1);
        common(other).min(before(name))
    };
    let mut offered: Vec<&str> = table::names().filter(|other| common(other) >= 2).collect();
    let likeness =
        |other: &&str| (model(other), same(other), common(other), alike(other), usize::MAX - other.len());
    offered.sort_by_key(|other| std::cmp::Reverse(likeness(other)));
    offered.truncate(OFFERED);
    let first = offered.first()?;
    let message = format!("{name} is not among the recipes of Megatron-Bridge that are known (August 2026)");
    let said = Diagnostic::error(Code::UnknownModel, message);
    let question = Question {
        asks: Asked::Recipe,
        prompt: format!("Which recipe is {name} closest to? The overrides here are applied to it"),
        proposal: Some((*first).to_owned()),
        choices: offered.iter().map(|name| (*name).to_owned()).collect(),
    };
    let hint = "name the closest one, or paste the Python that defines it";
    Some(Reading {
        diagnostics: vec![said.hint(hint).at_some(place)],
        questions: vec![question],
        ..Reading::default()
    })
}

/// Whether the command of a recipe itself states on how many accelerators it starts the training, by Slurm or NeMo-Run
/// (`scripts/performance/setup_experiment.py --num_gpus`): the process that runs the command is not one of them.
pub fn counts_machines(reading: &Reading) -> bool {
    reading.found.iter().any(|found| found.field == Field::WorldSize && found.origin == Origin::Script)
}

fn machines(reading: &mut Reading, words: &[Argument]) {
    // The number in the recipe's name is not the one in the variable.
    if argument(words, "--num-gpus").is_some_and(|word| word.hole.is_some()) {
        reading.keep(&|found| found.field != Field::WorldSize);
    }
    for (flag, field) in [("--num-gpus", Field::WorldSize), ("--gpus-per-node", Field::GpusPerNode)] {
        if let Some((count, place)) = option(words, flag).filter(|(count, _)| count.parse::<u64>().is_ok()) {
            reading.take(Found::new(field, count, Origin::Script).by(flag, place));
        }
    }
    if let Some((gpu, place)) = option(words, "--gpu")
        && let Some(accelerator) = catalog::accelerator_in(gpu)
    {
        reading.take(Found::new(Field::Accelerator, accelerator.name, Origin::Script).by("--gpu", place));
    }
}

#[cfg(test)]
mod tests;
