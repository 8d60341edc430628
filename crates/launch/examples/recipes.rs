//! Writes the tables of recipes from checkouts of their frameworks:
//! `cargo run -p shardscope-launch --example recipes -- bridge CHECKOUT > crates/formats/src/recipes/bridge.tsv`,
//! `... -- torchtitan CHECKOUT > .../titan.tsv`.
//!
//! The first line names the paths; every further line is a recipe: its name, and `N=value` for path number N. Values
//! that its Python computes are written `?`, calls that are not followed `!name`, and a recipe under another name
//! `@name`.

use shardscope_launch::formats::{RecipeSettings, recipe_settings};
use std::path::Path;
use std::process::ExitCode;

/// Folders below `src/megatron/bridge` whose functions are recipes.
const FOLDERS: [&str; 2] = ["recipes", "perf_recipes"];
/// The recipe settings that change a figure.
const KEPT: &[&str] = &[
    "model",
    "train.global_batch_size",
    "train.micro_batch_size",
    "optimizer.",
    "ddp.",
    "mixed_precision",
    "comm_overlap.",
    "dataset.seq_length",
    "tokenizer.tokenizer_type",
    "tokenizer.vocab_size",
    "tokenizer.use_tokenizer_vocab_size",
    "peft",
];
/// Values that are the reader's own defaults. A switch that a provider turns on is always written.
const USUAL: &[(&str, &str)] = &[
    ("model.tensor_model_parallel_size", "1"),
    ("model.pipeline_model_parallel_size", "1"),
    ("model.context_parallel_size", "1"),
    ("model.expert_model_parallel_size", "1"),
    ("model.sequence_parallel", "false"),
    ("model.account_for_embedding_in_pipeline_split", "false"),
    ("model.account_for_loss_in_pipeline_split", "false"),
    ("model.transformer_impl", "transformer_engine"),
    ("model.cuda_graph_impl", "none"),
    ("optimizer.optimizer", "adam"),
    ("optimizer.use_precision_aware_optimizer", "false"),
    ("optimizer.main_grads_dtype", "torch.float32"),
    ("optimizer.main_params_dtype", "torch.float32"),
    ("optimizer.exp_avg_dtype", "torch.float32"),
    ("optimizer.exp_avg_sq_dtype", "torch.float32"),
    ("ddp.use_megatron_fsdp", "false"),
    ("ddp.data_parallel_sharding_strategy", "no_shard"),
    ("tokenizer.tokenizer_type", "HuggingFaceTokenizer"),
    ("model.cuda_graph_scope", "[]"),
    ("model.cuda_graph_scope", "full"),
    ("model.cpu_offloading_weights", "false"),
    ("model.activation_offload_fraction", "1.0"),
];
/// Settings that the reader passes over, and those that come with the model's name.
const WITHOUT: [&str; 8] = [
    "ddp.average_in_collective",
    "ddp.check_for_nan_in_grad",
    "model.fine_grained_offloading_max_inflight_offloads",
    "model.delay_offload_until_cuda_graph",
    "model.is_hybrid_model",
    "model.hybrid_layer_pattern",
    "model.window_size",
    "model.window_attn_skip_freq",
];

/// Models of other modalities, of which no figure is estimated.
const OTHERS: [&str; 6] = ["audio", "flux", "wan_", "diffusion", "ar_to_dlm", "nemotron_labs"];

/// Whether a recipe of that name is left out.
fn is_other(name: &str) -> bool {
    OTHERS.iter().any(|other| name.contains(other))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [framework, checkout] = words.as_slice() else {
        eprintln!("usage: recipes bridge|torchtitan CHECKOUT");
        return ExitCode::from(2);
    };
    if framework == "torchtitan" {
        return titan(Path::new(checkout));
    }
    let root = Path::new(&checkout).join("src/megatron/bridge");
    let mut files: Vec<String> = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files);
    }
    let aliases = aliases(&files);
    for file in &mut files {
        for (alias, name) in &aliases {
            *file = file.replace(&format!(" {alias}("), &format!(" {name}("));
        }
    }
    let mut paths: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let others = files.iter().enumerate().filter(|(other, _)| *other != index);
        let beside: Vec<&str> = others.map(|(_, text)| text.as_str()).collect();
        for recipe in recipe_settings(file, &beside) {
            // A function whose own base is missing from the files gives no recipe.
            let whole = recipe.settings.iter().any(|(path, _)| path == "train.global_batch_size");
            if !whole || is_other(&recipe.name) {
                continue;
            }
            let mut recipe = recipe;
            lay_out(&mut recipe);
            let mut cells = vec![recipe.name.clone()];
            let kept = |path: &str| {
                let group = |known: &&str| {
                    known.ends_with('.') || path.get(known.len()..).is_some_and(|rest| rest.starts_with('.'))
                };
                !WITHOUT.contains(&path)
                    && KEPT.iter().any(|known| path == *known || (path.starts_with(known) && group(known)))
            };
            let open = recipe.open.iter().map(|path| (path.as_str(), "?"));
            let said = recipe.settings.iter().map(|(path, value)| (path.as_str(), value.as_str()));
            for (path, value) in said
                .chain(open)
                .filter(|(path, value)| kept(path) && !value.is_empty() && !USUAL.contains(&(*path, *value)))
            {
                let number = paths.iter().position(|known| known == path).unwrap_or_else(|| {
                    paths.push(path.to_owned());
                    paths.len() - 1
                });
                cells.push(format!("{number}={value}"));
            }
            cells.extend(recipe.unknown.iter().map(|call| format!("!{call}")));
            lines.push(cells.join("\t"));
        }
    }
    let known: Vec<String> =
        lines.iter().filter_map(|line| Some(line.split('\t').next()?.to_owned())).collect();
    for (alias, name) in &aliases {
        if known.contains(name) && !known.contains(alias) {
            lines.push(format!("{alias}\t@{name}"));
        }
    }
    // Among functions of the same name, the one without unknown calls is kept: the others import from it. Of two such the library's
    // is, which comes first and which `run_recipe.py` finds.
    lines.sort_by_cached_key(|line| {
        (line.split('\t').next().unwrap_or_default().to_owned(), line.matches("\t!").count())
    });
    lines.dedup_by(|later, first| later.split('\t').next() == first.split('\t').next());
    println!("{}\n{}", paths.join("\t"), lines.join("\n"));
    ExitCode::SUCCESS
}

/// The layout that `set_deepseek_v3_pipeline_model_parallel_layout` chooses by the number of pipeline stages
/// (`recipes/deepseek/h100/deepseek_v3.py`), if the recipe names none; the function's own Python is not yet followed.
fn lay_out(recipe: &mut RecipeSettings) {
    const LAYOUT: &str = "model.pipeline_model_parallel_layout";
    let open = recipe.open.iter().any(|path| path == LAYOUT);
    if !open || !recipe.name.starts_with("deepseek_v3_") {
        return;
    }
    let number = |path: &str| {
        let said = recipe.settings.iter().rev().find(|(known, _)| known == path);
        said.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(1)
    };
    let parts =
        number("model.pipeline_model_parallel_size") * number("model.virtual_pipeline_model_parallel_size");
    let (each, between, last) = match parts {
        4 => (16, 2, 13),
        8 => (8, 6, 5),
        16 => (4, 14, 1),
        _ => return,
    };
    let depths = if number("model.mtp_num_layers") > 0 { "m" } else { "" };
    recipe.open.retain(|path| path != LAYOUT);
    recipe.settings.push((LAYOUT.to_owned(), format!("Et*{each}|(t*{each}|)*{between}t*{last}{depths}L")));
}

/// torchtitan's registries: `MODULE.CONFIG`, as its command separates them (`--module llama3 --config llama3_8b`).
fn titan(checkout: &Path) -> ExitCode {
    let mut paths: Vec<String> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    let mut modules: Vec<_> =
        std::fs::read_dir(checkout.join("torchtitan/models")).into_iter().flatten().flatten().collect();
    modules.sort_by_key(std::fs::DirEntry::path);
    for module in modules {
        let Ok(text) = std::fs::read_to_string(module.path().join("config_registry.py")) else { continue };
        for recipe in recipe_settings(&text, &[]) {
            let mut cells = vec![format!("{}.{}", module.file_name().to_string_lossy(), recipe.name)];
            let open = recipe.open.iter().map(|path| (path.as_str(), "?"));
            let said = recipe.settings.iter().map(|(path, value)| (path.as_str(), value.as_str()));
            for (path, value) in said.chain(open).filter(|(path, _)| matters(path)) {
                let number = paths.iter().position(|known| known == path).unwrap_or_else(|| {
                    paths.push(path.to_owned());
                    paths.len() - 1
                });
                cells.push(format!("{number}={value}"));
            }
            cells.extend(recipe.unknown.iter().map(|call| format!("!{call}")));
            lines.push(cells.join("\t"));
        }
    }
    println!("{}\n{}", paths.join("\t"), lines.join("\n"));
    ExitCode::SUCCESS
}

/// Whether a group of a registry's settings changes a figure.
fn matters(path: &str) -> bool {
    let group = path.split('.').next().unwrap_or(path);
    let kept = [
        "training",
        "parallelism",
        "activation_checkpoint",
        "compile",
        "loss",
        "model_spec",
        "hf_assets_path",
        "override",
        "model_converters",
    ];
    let idle = ["training.steps", "training.max_norm"];
    kept.contains(&group) && !idle.contains(&path) && (group != "loss" || path == "loss")
}

/// Recipes that are imported under another name, by which users know them: the alias and the function.
fn aliases(files: &[String]) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for text in files {
        for line in text.lines() {
            let words: Vec<&str> = line.split([' ', ',', '(', ')']).filter(|word| !word.is_empty()).collect();
            for triple in words.windows(3) {
                if let [name, "as", alias] = triple
                    && name.ends_with("_config")
                    && alias.ends_with("_config")
                {
                    out.push(((*alias).to_owned(), (*name).to_owned()));
                }
            }
        }
    }
    out.sort();
    out.dedup();
    out
}

/// The texts of all Python files below a folder.
fn collect(folder: &Path, out: &mut Vec<String>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|end| end == "py") {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            out.push(text);
        }
    }
}
