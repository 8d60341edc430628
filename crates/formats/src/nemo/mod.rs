//! NeMo and NeMo-launcher YAML (1.x), and the `a.b.c=value` words of NeMo 2 and Megatron-Bridge.
//! Keys and defaults: `megatron_gpt_config.yaml` and `megatron_gpt_model.py` of NeMo 1.23,
//! `megatron/bridge/training/config.py`.

mod model;
mod purpose;

use super::leaves::{Leaf, Leaves, Scalars, no_layers_is_none};
use super::reader::{Claim, Command, Reader};
use super::{dotted, signs};
use crate::{Argument, Effect, NotModelled, Origin, Reading};
use shardscope_config_tree::{Node, Tree};
use shardscope_plan::{Field, Software, ValueKind};

/// Model keys that have a different meaning in Megatron, or none.
const MODEL: &[(&str, Field)] = &[
    ("encoder_seq_length", Field::SeqLength),
    ("num_moe_experts", Field::NumExperts),
    ("hybrid_layer_pattern", Field::HybridOverridePattern),
    ("num_layers_in_first_pipeline_stage", Field::DecoderFirstPipelineNumLayers),
    ("num_layers_in_last_pipeline_stage", Field::DecoderLastPipelineNumLayers),
    ("activations_checkpoint_granularity", Field::RecomputeGranularity),
    ("activations_checkpoint_method", Field::RecomputeMethod),
    ("activations_checkpoint_num_layers", Field::RecomputeNumLayers),
    ("activations_checkpoint_layers_per_pipeline", Field::RecomputeNumLayers),
    ("qkv_bias", Field::AddQkvBias),
    ("bias", Field::AddBiasLinear),
    ("bias_dropout_add_fusion", Field::BiasDropoutFusion),
    ("ub_tp_comm_overlap", Field::TpCommOverlap),
    ("fp8_params", Field::Fp8ParamGather),
    ("use_flash_attention", Field::UseFlashAttn),
    ("optim.overlap_grad_sync", Field::OverlapGradReduce),
    ("optim.overlap_param_sync", Field::OverlapParamGather),
    ("rotary_percentage", Field::RotaryPercent),
    // It is not padded (`megatron_gpt_model.py:model_provider_func`).
    ("override_vocab_size", Field::PaddedVocabSize),
    ("tokenizer.type", Field::TokenizerModel),
    ("tokenizer.model", Field::TokenizerModel),
    ("tokenizer.vocab_file", Field::VocabFile),
    ("data.seq_length", Field::SeqLength),
    ("data.train_ds.max_seq_length", Field::SeqLength),
];

/// Keys outside the model.
const OUTSIDE: &[(&str, Field)] = &[
    ("trainer.num_nodes", Field::NumNodes),
    ("trainer.devices", Field::GpusPerNode),
    ("trainer.max_steps", Field::TrainIters),
    ("dataset.sequence_length", Field::SeqLength),
    ("dataset.seq_length", Field::SeqLength),
    ("data.seq_length", Field::SeqLength),
    ("comm_overlap.tp_comm_overlap", Field::TpCommOverlap),
    ("comm_overlap.overlap_moe_expert_parallel_comm", Field::OverlapMoeExpertParallelComm),
    ("comm_overlap.defer_embedding_wgrad_compute", Field::DeferEmbeddingWgradCompute),
    ("comm_overlap.wgrad_deferral_limit", Field::WgradDeferralLimit),
    ("ddp.grad_reduce_in_fp32", Field::AccumulateAllreduceGradsInFp32),
    ("optimizer.optimizer", Field::Optimizer),
    ("model.transformer_impl", Field::TransformerImpl),
];

/// Groups of keys whose last part is Megatron's own name (Megatron-Bridge, NeMo 2, NeMo 1).
const GROUPS: [&str; 12] = [
    "model.",
    "model.config.",
    "train.",
    "trainer.strategy.",
    "trainer.plugins.",
    "data.",
    "dataset.",
    "ddp.",
    "trainer.strategy.ddp.",
    "optimizer.",
    "optimizer_config.",
    "mixed_precision.",
];

/// Key prefixes of NeMo's and Megatron-Bridge's settings.
const KEYS: &[&str] = &[
    "model.",
    "trainer.",
    "train.",
    "data.",
    "dataset.",
    "optimizer.",
    "ddp.",
    "optim.",
    "comm_overlap.",
    "mixed_precision.",
];

/// Arguments of Lightning's `Trainer` (`lightning/pytorch/trainer/trainer.py`).
const LIGHTNING: &[&str] = &[
    "trainer.accelerator",
    "trainer.devices",
    "trainer.strategy",
    "trainer.precision",
    "trainer.plugins",
    "trainer.max_steps",
    "trainer.max_epochs",
    "trainer.max_time",
    "trainer.logger",
    "trainer.enable_checkpointing",
    "trainer.log_every_n_steps",
    "trainer.val_check_interval",
    "trainer.limit_val_batches",
    "trainer.accumulate_grad_batches",
    "trainer.gradient_clip_val",
    "trainer.benchmark",
];

/// NeMo 1, its launcher, NeMo 2 and Megatron-Bridge.
#[derive(Debug)]
pub struct Nemo;

impl Reader for Nemo {
    fn name(&self) -> &'static str {
        "a NeMo configuration"
    }

    fn about(&self) -> &'static str {
        "NeMo 1 and its launcher, and the `a.b.c=value` words of NeMo 2 and Megatron-Bridge; `${…}` is filled in"
    }

    fn recognise(&self, tree: &Tree) -> Option<Claim> {
        const SIGNS: &[&str] = &[
            "trainer.num_nodes",
            "model.tensor_model_parallel_size",
            "training.model",
            "train.micro_batch_size",
            "train.global_batch_size",
            "ddp.use_distributed_optimizer",
        ];
        // The files of verl's generation have groups of the same names in addition to the engine's.
        if signs::any(tree, &["rollout.response_length"]).is_some() {
            return None;
        }
        let named = tree.documents.first().is_some_and(|root| named_in_settings(root).is_some());
        let claim = named.then_some(Claim::Certain).or_else(|| signs::any(tree, SIGNS));
        // A `trainer` of NeMo 1 is Lightning's; many programs call a group of their own so.
        claim.or_else(|| {
            signs::all(tree, &["trainer", "model"]).filter(|_| signs::any(tree, LIGHTNING).is_some())
        })
    }

    fn read(&self, root: &Node) -> Reading {
        read(root)
    }

    fn keys(&self) -> Vec<(&'static str, Field)> {
        [MODEL, OUTSIDE].concat()
    }

    fn dotted(&self) -> &'static [&'static str] {
        KEYS
    }

    fn claims(&self, command: &Command<'_>) -> Option<Claim> {
        let own = command.words.iter().any(|word| NAMING.contains(&word.text.as_str()));
        if own && command.program.rsplit('/').next() == Some("nemo") {
            return Some(Claim::Certain);
        }
        if is_launcher(command.words) {
            return Some(Claim::Certain);
        }
        let count = dotted::count(command.words, self.dotted());
        (count >= dotted::ENOUGH).then_some(Claim::Shared(count))
    }

    fn read_words(&self, words: &[Argument]) -> Reading {
        read_words(words)
    }
}

/// Reads a NeMo YAML.
fn read(root: &Node) -> Reading {
    // The launcher's files may nest the settings under `training`.
    let node = root.get("training").filter(|node| node.get("model").is_some()).unwrap_or(root);
    let scalars = Scalars::from_node(node);
    let mut leaves = Leaves::over(&scalars);
    keys(&mut leaves);
    built_on(&mut leaves);
    model::omitted(&mut leaves);
    model::first(&mut leaves);
    purpose::instead(&mut leaves);
    purpose::adapters(&mut leaves);
    leaves.pass_words("nemo");
    leaves.reading.software = software(&mut leaves, "a NeMo configuration");
    no_layers_is_none(&mut leaves.reading);
    leaves.finish("a NeMo configuration")
}

/// Reads the `a.b.c=value` words of a command.
fn read_words(words: &[Argument]) -> Reading {
    let bare: Vec<Argument>;
    let mut words = words;
    if is_launcher(words) {
        // The launcher nests the training's file under `training` (`launcher_scripts/conf/config.yaml`).
        bare = words.iter().filter_map(under_training).collect();
        words = &bare;
    }
    let scalars = Scalars::of_words(words);
    let mut leaves = Leaves::over(&scalars);
    keys(&mut leaves);
    recipe(&mut leaves, words);
    built_on(&mut leaves);
    model::first(&mut leaves);
    leaves.reading.software = software(&mut leaves, "NeMo's key=value words");
    no_layers_is_none(&mut leaves.reading);
    leaves.pass_words("nemo");
    leaves.finish("NeMo or Megatron-Bridge settings")
}

/// Whether the words are those of NeMo's launcher (`main.py training=gpt3/5b training.model.micro_batch_size=2`).
fn is_launcher(words: &[Argument]) -> bool {
    let starts = |start: &str| words.iter().any(|word| word.text.starts_with(start));
    starts("training=") && (starts("stages=") || starts("training.") || starts("launcher_scripts_path="))
}

/// A word of NeMo's launcher in the form in which NeMo receives it.
fn under_training(word: &Argument) -> Option<Argument> {
    let text = word.text.trim_start_matches('+').strip_prefix("training.")?;
    Some(Argument { text: text.to_owned(), ..word.clone() })
}

/// Suffixes of a recipe's or factory's name that state its purpose.
const PURPOSES: [&str; 6] = ["_config", "_pretrain", "_finetune", "_sft", "_peft", "_lora"];

/// Options that name a recipe or factory.
const NAMING: [&str; 5] = ["--factory", "--recipe", "--recipe-name", "--recipe_name", "--model_recipe_name"];

/// The key under which settings name the recipe function that they modify (`NVIDIA-NeMo/Nemotron`,
/// `nemotron/kit/recipe_loader.py`).
pub(crate) const TARGET: &str = "recipe._target_";

/// The name of the recipe that the settings modify, if it is one of Megatron-Bridge's.
pub(crate) fn named_in_settings(root: &Node) -> Option<&str> {
    let target = root.at(TARGET)?.text()?;
    target.starts_with("megatron.bridge.recipes.").then(|| target.rsplit('.').next()).flatten()
}

/// Whether a file only modifies a recipe of Megatron-Bridge: it names one, or has its groups
/// of settings and no model shape.
pub fn is_changes(root: &Node) -> bool {
    let shaped = ["model.num_layers", "model.hidden_size", "model.config.num_layers", "trainer"];
    let groups = ["train", "ddp", "optimizer", "scheduler", "checkpoint"];
    if named_in_settings(root).is_some() {
        return true;
    }
    !shaped.iter().any(|path| root.at(path).is_some())
        && groups
            .iter()
            .filter(|group| root.get(group).is_some_and(|node| !node.entries().is_empty()))
            .count()
            >= 2
}

/// The words of NeMo 2 and Megatron-Bridge modify a recipe written in Python; if they name none, another text does.
fn built_on(leaves: &mut Leaves<'_>) {
    let shaped = ["model.num_layers", "model.hidden_size", "model.config.num_layers"]
        .iter()
        .any(|path| leaves.has(path));
    let overrides = ["train.", "ddp.", "dataset.", "checkpoint."];
    let recipe = leaves.all().iter().find(|leaf| overrides.iter().any(|group| leaf.path.starts_with(group)));
    let (false, Some(leaf)) = (shaped, recipe) else { return };
    if leaves.reading.not_modelled.is_empty() {
        let what = "the recipe that these settings change: layout, batch, precision, kernels";
        leaves
            .reading
            .not_modelled
            .push(NotModelled::new("recipe", "", Effect::Memory, what).at_some(leaf.span));
        leaves.state(
            Field::Bf16,
            "true",
            Origin::Default,
            "recipes of NeMo 2 and Megatron-Bridge train in bf16_mixed",
        );
    }
}

/// `--factory llama3_8b`, `--recipe llama3_8b_pretrain_config`: the model by name.
fn recipe(leaves: &mut Leaves<'_>, words: &[Argument]) {
    let named =
        words.windows(2).find(|pair| matches!(pair, [flag, _] if NAMING.contains(&flag.text.as_str())));
    let Some([flag, name]) = named else { return };
    // Layout, batch and precision come from Python code behind that name; whatever the words do not state is unknown.
    let what = "what the recipe of that name sets and the text does not: layout, batch, precision, kernels";
    let item = NotModelled::new(&flag.text, &name.text, Effect::Memory, what).at_some(name.span);
    leaves.reading.not_modelled.push(item);
    leaves.state(
        Field::Bf16,
        "true",
        Origin::Default,
        "recipes of NeMo 2 and Megatron-Bridge train in bf16_mixed",
    );
    // A factory may be called with arguments: `llama3_70b(num_nodes=128)`.
    let mut model = name.text.split('(').next().unwrap_or(&name.text);
    while let Some(shorter) = PURPOSES.iter().find_map(|purpose| model.strip_suffix(purpose)) {
        model = shorter;
    }
    let Some((known, settings)) = super::known_model(model) else { return };
    let note = format!("{known}, named as {}", name.text);
    for (field, value) in settings {
        leaves.state(field, &value, Origin::Catalog, &note);
    }
}

fn software(leaves: &mut Leaves<'_>, what: &str) -> Option<(Software, String)> {
    let engine = leaves.flag("model.transformer_engine");
    let local = leaves.text("model.transformer_impl").is_some_and(|name| name == "local");
    match engine {
        _ if local => Some((Software::MegatronCoreLocal, "model.transformer_impl is local".to_owned())),
        Some(false) => Some((Software::MegatronCoreLocal, "transformer_engine is off".to_owned())),
        _ => Some((Software::MegatronCoreTe, what.to_owned())),
    }
}

/// Takes the settings under NeMo's and Megatron-Bridge's keys.
pub(super) fn keys(leaves: &mut Leaves<'_>) {
    named(leaves);
    leaves.take_all(OUTSIDE);
    // Lightning's -1 means no limit.
    leaves.reading.keep(&|found| found.field != Field::TrainIters || !found.value.starts_with('-'));
    for (key, field) in MODEL {
        leaves.take(&[&format!("model.{key}")], *field);
    }
    model::shape(leaves);
    model::precision(leaves);
    model::optimizer(leaves);
    model::overlap(leaves);
    if leaves.get("model.num_query_groups").is_some() {
        let heads = leaves.reading.value(Field::NumAttentionHeads).map(str::to_owned);
        if let Some(leaf) =
            leaves.get("model.num_query_groups").filter(|leaf| Some(&leaf.value) != heads.as_ref())
        {
            leaves.switch(Field::GroupQueryAttention, true, leaf);
        }
    }
    let micro = leaves.first(&["model.micro_batch_size", "train.micro_batch_size", "data.micro_batch_size"]);
    let accumulate = leaves.get("trainer.accumulate_grad_batches");
    if let Some(leaf) = accumulate.filter(|_| micro.is_none()) {
        leaves.say(Field::NumMicroBatches, &leaf.value, leaf);
    }
}

/// Keys whose last part is the name of a setting.
fn named(leaves: &mut Leaves<'_>) {
    for Leaf { path, .. } in leaves.all() {
        let Some((group, name)) = path.rsplit_once('.') else { continue };
        let known = GROUPS.iter().any(|known| known.trim_end_matches('.') == group);
        if let Some(field) = Field::named(name).filter(|field| known && plain(*field)) {
            leaves.take(&[path], field);
        }
    }
}

/// Settings that NeMo writes in the same way as Megatron.
fn plain(field: Field) -> bool {
    use Field::{Bf16, Fp4, Fp8, Fp16, Normalization, Optimizer, PositionEmbeddingType};
    // Megatron core's `TransformerConfig` has these unchanged; other strings have a different meaning in NeMo.
    let texts = [
        Field::MoeLayerFreq,
        Field::PipelineModelParallelLayout,
        Field::WindowSize,
        Field::WindowAttnSkipFreq,
        Field::LinearAttentionFreq,
        Field::HybridOverridePattern,
    ];
    let other = [Normalization, PositionEmbeddingType, Fp8, Fp4, Bf16, Fp16, Optimizer];
    texts.contains(&field) || !other.contains(&field) && !matches!(field.kind(), ValueKind::Text)
}
