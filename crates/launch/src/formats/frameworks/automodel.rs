//! NeMo Automodel. Keys: its recipes.

use super::row::Row;
use crate::formats::leaves::Leaves;
use crate::{Effect, NotModelled, Origin};
use shardscope_plan::{Field, Software};

/// NeMo Automodel's settings file.
pub(in crate::formats) const AUTOMODEL: Row = Row {
    trainer: "NeMo Automodel",
    title: "a configuration of NeMo Automodel",
    about: "NeMo Automodel: model by name, batch, adapters, FSDP2",
    signs: &[&["step_scheduler", "model"]],
    keys: &[
        (&["step_scheduler.global_batch_size"], Field::GlobalBatchSize),
        (&["step_scheduler.local_batch_size"], Field::MicroBatchSize),
        (
            &[
                "packed_sequence.packed_sequence_size",
                "dataset.seq_length",
                "dataset.seq_len",
                "dataset.max_length",
            ],
            Field::SeqLength,
        ),
        (&["distributed.tp_size"], Field::TensorModelParallelSize),
        (&["distributed.cp_size"], Field::ContextParallelSize),
        (&["distributed.pp_size"], Field::PipelineModelParallelSize),
        (&["distributed.ep_size"], Field::ExpertModelParallelSize),
        (&["benchmark.num_nodes"], Field::NumNodes),
        (&["peft.dim"], Field::LoraRank),
        (&["peft.alpha"], Field::LoraAlpha),
        (&["peft.dropout"], Field::LoraDropout),
    ],
    models: &[
        "model.pretrained_model_name_or_path",
        "model.config.pretrained_model_name_or_path",
        "model.config",
    ],
    software: Software::HfTransformers,
    lacking: None,
    extra: automodel,
};

fn automodel(leaves: &mut Leaves<'_>) {
    let second = leaves.text("distributed.strategy").is_none_or(|strategy| strategy == "fsdp2");
    let engine = if second { "fsdp2" } else { "ddp" };
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, "default of Automodel");
    leaves.state(
        Field::ZeroStage,
        if second { "3" } else { "0" },
        Origin::Default,
        "Automodel shards by FSDP2",
    );
    if leaves.reading.value(Field::LoraRank).is_some() {
        leaves.state(Field::TrainType, "lora", Origin::Derived, "the text sets up LoRA");
        leaves.state(Field::LoraTargetModules, "all-linear", Origin::Default, "default of Automodel");
    }
    if let Some(leaf) = leaves.all().iter().find(|leaf| leaf.path.starts_with("flow_matching.")) {
        let item =
            NotModelled::new("flow_matching", "", Effect::Model, "a diffusion model").at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    implementation(leaves);
    let own = leaves.all().iter().find(|leaf| leaf.path.starts_with("model.backend."));
    if let Some(leaf) = own {
        let what = "Automodel's own kernels and layers instead of transformers'";
        let item = NotModelled::new("model.backend", "", Effect::Memory, what).at_some(leaf.span);
        leaves.reading.not_modelled.push(item);
    }
    let cut = [
        Field::TensorModelParallelSize,
        Field::PipelineModelParallelSize,
        Field::ContextParallelSize,
        Field::ExpertModelParallelSize,
    ];
    if cut.iter().any(|field| leaves.reading.count(*field).is_some_and(|degree| degree > 1)) {
        let what =
            "a model of transformers cut by Automodel (tensor, pipeline, context or expert parallelism)";
        leaves.reading.not_modelled.push(NotModelled::new("distributed", "", Effect::Memory, what));
    }
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("fp8.") || leaf.path.starts_with("quantization."))
    {
        leaves.reading.not_modelled.push(NotModelled::new(
            "fp8",
            "",
            Effect::Memory,
            "linear layers in fp8 or quantised",
        ));
    }
}

/// Which modules train: Automodel's own for the architectures that it has (Llama, Qwen, Mistral and most mixtures of experts:
/// `_transformers/registry.py`), else transformers' with Liger's kernels, unless told otherwise.
fn implementation(leaves: &mut Leaves<'_>) {
    let lack = |leaves: &mut Leaves<'_>, path: &str, value: &str, effect, what: &str| {
        let item =
            NotModelled::new(path, value, effect, what).at_some(leaves.get(path).and_then(|leaf| leaf.span));
        leaves.reading.not_modelled.push(item);
    };
    let recipe = leaves.text("recipe").unwrap_or_default().to_owned();
    let class = leaves.text("model._target_").unwrap_or_default().to_owned();
    if leaves.all().iter().any(|leaf| leaf.path.starts_with("teacher_model.")) {
        lack(leaves, "recipe", &recipe, Effect::Memory, "a teacher beside the model that is trained");
    }
    if recipe.contains("VLM") || class.contains("ImageTextToText") || class.contains("Multimodal") {
        lack(leaves, "model._target_", &class, Effect::Model, "the vision model beside the decoder");
    }
    if class.contains("SequenceClassification")
        || class.contains("BiEncoder")
        || class.contains("CrossEncoder")
    {
        let what = "another head instead of the output layer";
        lack(leaves, "model._target_", &class, Effect::Model, what);
    }
    let plain = leaves.flag("model.force_hf") == Some(true);
    let liger = leaves.flag("model.use_liger_kernel") != Some(false);
    if plain && liger {
        leaves.state(Field::LigerKernel, "true", Origin::Default, "Automodel patches models of transformers");
    }
    leaves.pass_below(&["model.force_hf", "model.use_liger_kernel", "model.use_sdpa_patching"]);
    if let Some(leaf) = leaves.get("model.attn_implementation") {
        leaves.say(Field::AttnImplementation, &leaf.value, leaf);
    }
    match leaves.text("loss_fn._target_").and_then(|class| class.rsplit('.').next()) {
        Some("FusedLinearCrossEntropy") => {
            leaves.state(Field::LossKind, "cce", Origin::Derived, "loss_fn of Automodel");
        }
        Some("MaskedCrossEntropy") => {
            leaves.state(Field::LossKind, "torch", Origin::Derived, "loss_fn of Automodel")
        }
        _ => {}
    }
    if !plain {
        let what =
            "modules of Automodel's own, which it has for most architectures, in the place of transformers'";
        lack(leaves, "model.force_hf", "", Effect::Memory, what);
    } else if leaves.all().iter().any(|leaf| leaf.path.starts_with("peft.")) {
        lack(
            leaves,
            "peft",
            "",
            Effect::Memory,
            "adapters of Automodel's own, whose kernels keep other tensors",
        );
    }
}

/// Automodel's training of draft models.
pub(in crate::formats) const DRAFTS: Row = Row {
    trainer: "NeMo Automodel",
    title: "a recipe of NeMo Automodel for draft models",
    about: "NeMo Automodel's draft models for speculative decoding, which stop the verdict",
    signs: &[&["recipe", "recipe_args"]],
    keys: &[(&["recipe_args.max_length", "recipe_args.max_seq_length"], Field::SeqLength)],
    models: &["recipe_args.target_model_name_or_path"],
    software: Software::HfTransformers,
    lacking: Some("a draft model that learns from another one (speculative decoding)"),
    extra: |_| {},
};
