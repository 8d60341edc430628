//! MindSpeed-LLM's FSDP2 trainer, which is not based on Megatron. Keys: `examples/fsdp2`, `mindspeed_llm/fsdp2`.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// Its settings file, which lists the modules to shard; the model and most of the batch settings are in the command.
pub(crate) const MINDSPEED_FSDP: Row = Row {
    trainer: "MindSpeed-LLM",
    title: "a configuration of MindSpeed-LLM's FSDP2 trainer",
    about: "MindSpeed-LLM's FSDP2 trainer: sequence length and batch; its modules and sharding are not modelled",
    signs: &[&["parallel.fsdp_modules", "training.optimizer"], &["parallel.fsdp_modules", "data.cutoff_len"]],
    keys: &[
        (&["data.cutoff_len"], Field::SeqLength),
        (&["training.per_device_train_batch_size"], Field::MicroBatchSize),
        (&["training.gradient_accumulation_steps"], Field::NumMicroBatches),
        (&["training.max_steps"], Field::TrainIters),
    ],
    models: &["model.model_name_or_path"],
    software: Software::TorchFsdp,
    lacking: Some("MindSpeed-LLM's FSDP2 trainer, whose modules, kernels and sharding on Ascend are its own"),
    extra: |_| {},
    program: Some(("train_fsdp2.py", &["model.", "data.", "parallel.", "training.", "optimization."])),
};
