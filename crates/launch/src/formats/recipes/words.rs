//! Commands that name a recipe of Megatron-Bridge: `run_recipe.py --recipe NAME key=value`, and its performance scripts
//! (`--model_recipe_name qwen3_235b_a22b --gpu b200 --num_gpus 256 --compute_dtype bf16`, `scripts/performance`).

use super::super::leaves::{Leaf, Leaves, Scalars};
use super::super::nemo;
use super::options::{argument, option};
use super::{bridge, nemotron, overrides, table, titan};
use crate::{Argument, Found, Origin, Question, Reading};
use shardscope_catalog as catalog;
use shardscope_config_tree::Node;
use shardscope_plan::Field;
use shardscope_python::tree::Scalar;
use shardscope_resolve::RECIPE;
use shardscope_sorting::sort_by_key;
use shardscope_source::{Code, Diagnostic, Span};
use std::collections::HashSet;

/// Options that name a recipe whole.
const WHOLE: [&str; 2] = ["--recipe", "--recipe-name"];
/// `--compute_dtype`'s words as they stand in names of recipes.
const FORMATS: [(&str, &str); 5] =
    [("bf16", "bf16"), ("fp8_cs", "fp8cs"), ("fp8_mx", "fp8mx"), ("fp8_sc", "fp8sc"), ("nvfp4", "nvfp4")];
/// A number of accelerators that is left to a variable, in the name of a recipe.
const OPEN: &str = "N";
/// Longest name of a recipe that is compared with others. Unit: byte.
const LONGEST: usize = 200;
/// Recipes offered at most.
const OFFERED: usize = 60;

/// Reads such a command; none for any other, and where no recipe of that model is known. `asked` is the recipe that the
/// reader names.
pub(crate) fn read_words(words: &[Argument], asked: Option<&str>) -> Option<Reading> {
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
    let Some((name, outcome)) = exact.or(asked) else { return which(&name, place) };
    let mut reading = bridge::read(&outcome, &name, 0, overrides::changes(words, &outcome, &name));
    reading.not_modelled.extend(overrides::lacking(words));
    for found in &mut reading.found {
        if found.span.is_none() && found.origin == Origin::Script {
            // What the recipe sets stands where it is named.
            found.span = place;
            found.origin = Origin::Catalog;
            found.note.get_or_insert_with(|| format!("set by {name} of Megatron-Bridge (August 2026)"));
        }
    }
    machines(&mut reading, words);
    Some(reading)
}

/// `torchtitan.train --module llama3 --config llama3_8b --training.steps 10`: a registry's configuration with changes.
fn registry(
    words: &[Argument],
    module: &str,
    config: &str,
    place: Option<Span>,
    asked: Option<&str>,
) -> Option<Reading> {
    let module = module.rsplit('.').next().unwrap_or(module);
    let by_name = asked.and_then(|asked| asked.split_once('.'));
    let known = table::titan(module, config)
        .or_else(|| by_name.and_then(|(module, config)| table::titan(module, config)));
    let Some(mut outcome) = known else {
        let mut names: Vec<&str> =
            table::titan_names().filter(|name| name.split('.').next() == Some(module)).collect();
        sort_by_key(&mut names, |name| name.contains("debug"));
        let first = names.first()?;
        let message = format!(
            "{module}'s configuration {config} is not among those of torchtitan that are known (August 2026)"
        );
        let said =
            Diagnostic::error(Code::UnknownModel, message).hint("name the closest one, or paste its Python");
        let question = Question {
            name: RECIPE.to_owned(),
            prompt: format!("Which torchtitan configuration is {config} closest to?"),
            proposal: Some((*first).to_owned()),
            choices: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        return Some(Reading {
            diagnostics: vec![said.at_some(place)],
            questions: vec![question],
            ..Reading::default()
        });
    };
    for leaf in Scalars::of_words(words).all().iter().filter(|leaf| leaf.path.contains('.')) {
        outcome.tree.retain(|(path, _)| *path != leaf.path);
        let scalar = Scalar { text: leaf.value.clone(), hole: leaf.hole.clone(), at: 0 };
        outcome.tree.push((leaf.path.clone(), scalar));
    }
    Some(titan::read(&outcome, config, 0))
}

/// The name that the performance scripts put together of model, task, GPUs and number format.
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
    // Left to a variable, the closest of the same accelerator and format is asked for.
    let open = || argument(words, "--num-gpus").is_some_and(|word| word.hole.is_some()).then_some(OPEN);
    let gpus = option(words, "--num-gpus").map(|(gpus, _)| gpus).or_else(open)?;
    let dtype = option(words, "--compute-dtype").map_or("bf16", |(dtype, _)| dtype);
    let dtype = FORMATS.iter().find(|(word, _)| *word == dtype).map_or(dtype, |(_, name)| *name);
    let name = format!("{model}_{task}_{gpus}gpu_{}_{dtype}", gpu.to_ascii_lowercase());
    // `_flat_recipe_variant_suffix` of `scripts/performance/dump_perf_configs.py`; a variant of an older release is none of today's.
    let variant = option(words, "--config-variant").map(|(variant, _)| format!("{name}_{variant}_config"));
    let variant = variant.filter(|name| table::outcome(name).is_some());
    Some((variant.unwrap_or_else(|| format!("{name}_config")), place))
}

/// Reads a file of settings that change a recipe (`run_recipe.py --config_file`): with the recipe that the reader names, or
/// else a question for it. `text` is the file's.
pub(crate) fn read_changes(root: &Node, asked: Option<&str>, text: &str) -> Reading {
    let named = nemo::named_in_settings(root);
    if let Some(name) = asked.or(named)
        && let Some(outcome) = table::outcome(name)
    {
        let leaves: Vec<Leaf> = Scalars::from_node(root).all().to_vec();
        let changes = nemotron::changes(leaves.clone());
        let mut reading = bridge::read(&outcome, name, 0, changes);
        // The launch says how many machines; the recipe's own number is that of its own layout.
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
        name: RECIPE.to_owned(),
        prompt: "Which Megatron-Bridge recipe do these settings override?".to_owned(),
        proposal: offered.first().map(|name| (*name).to_owned()),
        choices: offered.into_iter().map(str::to_owned).collect(),
    };
    Reading { diagnostics: vec![said.at(root.span)], questions: vec![question], ..Reading::default() }
}

/// Where settings name the weights that they start from, or what they write.
const NAMED: [&str; 4] =
    ["checkpoint.pretrained_checkpoint", "model.hf_model_id", "checkpoint.load", "tokenizer.tokenizer_model"];

/// Last parts of the paths at which a model is named, letters and digits alone.
fn named_models(root: &Node) -> Vec<String> {
    let scalars = Scalars::from_node(root);
    let leaves = Leaves::over(&scalars);
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let last = |value: &str| plain(value.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
    NAMED.iter().filter_map(|path| leaves.text(path)).filter(|text| text.len() <= LONGEST).map(last).collect()
}

/// How many letters of a recipe's first words stand in the name of a model: `nemotron_3_super_sft_config` is one for
/// `NVIDIA-Nemotron-3-Super-120B-A12B-Base-BF16`. What is offered follows from it, never what is read.
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

/// No recipe of that very name: offers those of the same model, the likeliest first; none where no such model is known.
fn which(name: &str, place: Option<Span>) -> Option<Reading> {
    if name.len() > LONGEST {
        return None;
    }
    // As many words in common at the start as there are: model, size, task.
    let common =
        |other: &str| name.split('_').zip(other.split('_')).take_while(|(one, two)| one == two).count();
    let alike =
        |other: &str| name.split('_').filter(|word| other.split('_').any(|theirs| theirs == *word)).count();
    // Accelerator and format say more of what a recipe holds than how many accelerators there are, which its words change.
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
    sort_by_key(&mut offered, |other| std::cmp::Reverse(likeness(other)));
    offered.truncate(OFFERED);
    let first = offered.first()?;
    let message = format!("{name} is not among the recipes of Megatron-Bridge that are known (August 2026)");
    let said = Diagnostic::error(Code::UnknownModel, message);
    let question = Question {
        name: RECIPE.to_owned(),
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

/// Whether the command of a recipe says itself on how many accelerators it starts the training, by Slurm or NeMo-Run
/// (`scripts/performance/setup_experiment.py --num_gpus`): the process that stands there is none of them.
pub(crate) fn counts_machines(reading: &Reading) -> bool {
    reading.found.iter().any(|found| found.field == Field::WorldSize && found.origin == Origin::Script)
}

fn machines(reading: &mut Reading, words: &[Argument]) {
    // The number in the recipe's name is not the one that a variable holds.
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
mod tests {
    use super::read_words;
    use crate::Argument;
    use shardscope_plan::Field;

    #[track_caller]
    fn check(line: &str, expected: &[(Field, &str)]) {
        let reading = read_words(&Argument::split(line), None).expect("a recipe");
        for (field, value) in expected {
            assert_eq!(reading.value(*field), Some(*value), "{}", field.name());
        }
    }

    #[test]
    fn a_recipe_by_name_with_what_the_words_change() {
        check(
            "run_recipe.py --recipe llama3_70b_pretrain_config train.micro_batch_size=2 model.seq_length=16384",
            &[
                (Field::TensorModelParallelSize, "4"),
                (Field::PipelineModelParallelSize, "4"),
                (Field::ContextParallelSize, "2"),
                (Field::SequenceParallel, "true"),
                (Field::Bf16, "true"),
                (Field::UseDistributedOptimizer, "true"),
                (Field::NumLayers, "80"),
                (Field::MicroBatchSize, "2"),
                (Field::SeqLength, "16384"),
            ],
        );
        check(
            "setup_experiment.py --gpu b200 --model_family_name qwen --model_recipe_name qwen3_235b_a22b --gpus_per_node 8 \
             --num_gpus 256 --compute_dtype bf16 --global_batch_size 4096 --expert_model_parallel_size 8",
            &[
                (Field::NumExperts, "128"),
                (Field::GlobalBatchSize, "4096"),
                (Field::ExpertModelParallelSize, "8"),
                (Field::WorldSize, "256"),
                (Field::Accelerator, "B200"),
            ],
        );
    }

    /// AI-Hypercomputer/gpu-recipes, `training/a4x-max/{deepseek-v3,kimi-k2}/megatron-bridge-gke/nemo2604`.
    #[test]
    fn stages_are_written_out_as_the_performance_scripts_do() {
        let line = |model: &str, gpu: &str, more: &str| {
            format!(
                "run_script.py --model_recipe_name {model} --gpu {gpu} --num_gpus 256 --gpus_per_node 4 --compute_dtype fp8_mx {more}"
            )
        };
        let stages = |line: &str, expected: &str| {
            check(line, &[(Field::PipelineModelParallelLayout, expected)]);
        };
        let given = "--pipeline_model_parallel_size 2 --virtual_pipeline_model_parallel_size 8 \
                     --pipeline_model_parallel_layout 'Et*4|(t*4|)*14tmL'";
        stages(&line("deepseek_v3", "gb300", given), "Et*4|(t*4|)*14tmL");
        // Asked again for these stages; as the recipe has them; and none known for these, so that the recipe's own stay.
        let whole = "--pipeline_model_parallel_size 8 --virtual_pipeline_model_parallel_size None";
        stages(&line("deepseek_v3", "b200", whole), "Et*8|(t*8|)*6t*5mL");
        stages(&line("deepseek_v3", "b200", ""), "Et*4|(t*4|)*14t*1mL");
        stages(&line("deepseek_v3", "gb300", "--pipeline_model_parallel_size 3"), "Et*4|(t*4|)*14tmL");
        let chunks = "--pipeline_model_parallel_size 4 --virtual_pipeline_model_parallel_size 4";
        stages(&line("kimi_k2", "gb300", chunks), "Et*4|(t*4|)*14t*1L");
        stages("run_recipe.py --recipe moonlight_16b_sft_8gpu_h100_bf16_config", "Et*14|t*13L");
    }

    /// AI-Hypercomputer/gpu-recipes, `training/a4x/llama31_405b/…/128gpus-fp8cs-seq8192-gbs64` (one stage, FSDP and layers on the host),
    /// `a4x/llama3_70b/…/128gpu-fp8mx-lustre` (`--num_gpus ${WORLD_SIZE}`), `a4/qwen3_235b_a22b/…/128gpus-bf16-seq4096-gbs4096`.
    #[test]
    fn options_of_the_performance_scripts_change_what_they_say() {
        let line = "run_script.py --model_family_name llama --model_recipe_name llama31_405b --config_variant v1 --gpu gb200 \
                    --num_gpus 256 --compute_dtype fp8_cs --pipeline_model_parallel_size 1 --use_megatron_fsdp true --max_step 30";
        check(line, &[(Field::PipelineModelParallelSize, "1"), (Field::UseMegatronFsdp, "true")]);
        let read =
            |more: &str| read_words(&Argument::split(&format!("{line} {more}")), None).expect("a recipe");
        assert_eq!(read("").value(Field::VirtualPipelineModelParallelSize).unwrap_or_default(), "");
        assert!(read("").not_modelled.is_empty(), "{:?}", read("").not_modelled);
        let full = read("--recompute_num_layers 4");
        let shown = [Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers];
        assert_eq!(shown.map(|field| full.value(field).unwrap_or_default()), ["full", "block", "4"]);
        let stops =
            |more: &str| read(more).not_modelled.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
        assert_eq!(stops("--use_tokendrop true --nccl_ub false"), ["--use_tokendrop"]);
        assert_eq!(stops("--lora_of_mine 8"), ["lora_of_mine"]);
        assert_eq!(read("--activation_offload_layers 95").value(Field::CpuOffloadingNumLayers), Some("95"));
        let h100 =
            "run_script.py --model_recipe_name deepseek_v3 --gpu h100 --num_gpus 64 --compute_dtype bf16";
        let alone = read_words(&Argument::split(h100), None).expect("a recipe");
        assert!(alone.not_modelled.iter().any(|item| item.name == "ddp.overlap_param_gather"));
        let open = "run_script.py --gpu gb200 --model_family_name llama --model_recipe_name llama3_70b --num_gpus $WORLD_SIZE \
                    --compute_dtype fp8_mx --tensor_model_parallel_size 2";
        let mut words = Argument::split(open);
        let hole = words.iter_mut().find(|word| word.text == "$WORLD_SIZE").expect("a variable");
        hole.hole = Some("WORLD_SIZE".to_owned());
        let asked = read_words(&words, None).expect("asked").questions.remove(0);
        assert_eq!(asked.proposal.as_deref(), Some("llama3_70b_pretrain_64gpu_gb200_fp8mx_config"));
        let answered = read_words(&words, asked.proposal.as_deref()).expect("a recipe");
        assert_eq!((answered.value(Field::WorldSize), answered.value(Field::NumLayers)), (None, Some("80")));
        let near = "run_script.py --gpu b200 --model_recipe_name qwen3_235b_a22b --num_gpus 128 --compute_dtype bf16";
        let asked = read_words(&Argument::split(near), None).expect("asked").questions.remove(0);
        assert_eq!(asked.proposal.as_deref(), Some("qwen3_235b_a22b_pretrain_64gpu_b200_bf16_config"));
    }

    #[test]
    fn the_recipe_of_the_weights_that_settings_start_from_is_proposed() {
        let text = "checkpoint:\n  pretrained_checkpoint: /w/NVIDIA-Nemotron-3-Super-120B-A12B-Base-BF16\n\
                    model:\n  fine_grained_activation_offloading: true\n# sft beside llama3_8b\n";
        let tree = shardscope_config_tree::read_yaml(text, 0);
        let root = tree.documents.first().expect("a tree");
        let asked = super::read_changes(root, None, text);
        let proposal = asked.questions[0].proposal.clone().unwrap_or_default();
        assert!(proposal.starts_with("nemotron_3_super_sft"), "{proposal}");
        // The model's name is a constant of the recipe's program.
        let read = super::read_changes(root, Some(&proposal), text);
        assert_eq!(read.value(Field::NumLayers), Some("88"));
        assert_eq!(read.not_modelled.len(), 0, "{:?}", read.not_modelled);
        assert_eq!(read.value(Field::FineGrainedActivationOffloading), Some("true"));
    }

    #[test]
    fn a_name_that_is_like_others_is_asked_for() {
        let reading =
            read_words(&Argument::split("run_recipe.py --recipe llama3_70b_my_config"), None).expect("asked");
        assert_eq!(reading.questions[0].name, "recipe");
        assert!(reading.questions[0].choices.iter().all(|name| name.starts_with("llama3_70b")));
        assert!(read_words(&Argument::split("run_recipe.py --recipe rocket_7b"), None).is_none());
    }
}
