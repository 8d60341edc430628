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
    signs: &["step_scheduler", "model"],
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
    let own = leaves.all().iter().find(|leaf| leaf.path.starts_with("model.backend."));
    if let Some(leaf) = own {
        let what = "kernels and layers of Automodel's own in the place of transformers'";
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

/// Automodel's training of draft models.
pub(in crate::formats) const DRAFTS: Row = Row {
    trainer: "NeMo Automodel",
    title: "a recipe of NeMo Automodel for draft models",
    about: "NeMo Automodel's draft models for speculative decoding, which stop the verdict",
    signs: &["recipe", "recipe_args"],
    keys: &[(&["recipe_args.max_length", "recipe_args.max_seq_length"], Field::SeqLength)],
    models: &["recipe_args.target_model_name_or_path"],
    software: Software::HfTransformers,
    lacking: Some("a draft model that learns from another one (speculative decoding)"),
    extra: |_| {},
};
