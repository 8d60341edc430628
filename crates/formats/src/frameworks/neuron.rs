//! AWS's neuronx-distributed-training, on Trainium. Keys: its `examples/conf`, which follow NeMo's.

use super::row::Row;
use shardscope_plan::{Field, Software};

/// neuronx-distributed-training's settings file.
pub(crate) const NEURON: Row = Row {
    trainer: "neuronx-distributed-training",
    title: "a configuration of neuronx-distributed-training",
    about: "neuronx-distributed-training: shape, batch, degrees; Trainium and its compiler are not modelled",
    signs: &[&["distributed_strategy", "model"]],
    keys: &[
        (&["model.num_layers"], Field::NumLayers),
        (&["model.hidden_size"], Field::HiddenSize),
        (&["model.num_attention_heads"], Field::NumAttentionHeads),
        (&["model.ffn_hidden_size"], Field::FfnHiddenSize),
        (&["data.seq_length", "model.encoder_seq_length"], Field::SeqLength),
        (&["data.micro_batch_size"], Field::MicroBatchSize),
        (&["data.global_batch_size"], Field::GlobalBatchSize),
        (&["trainer.devices"], Field::GpusPerNode),
        (&["trainer.num_nodes"], Field::NumNodes),
        (&["trainer.max_steps"], Field::TrainIters),
        (&["distributed_strategy.tensor_model_parallel_size"], Field::TensorModelParallelSize),
        (&["distributed_strategy.pipeline_model_parallel_size"], Field::PipelineModelParallelSize),
        (&["distributed_strategy.context_parallel_size"], Field::ContextParallelSize),
        (&["distributed_strategy.sequence_parallel"], Field::SequenceParallel),
    ],
    models: &[],
    software: Software::MegatronCoreLocal,
    lacking: Some("training on Trainium, whose compiler decides what is saved and sent"),
    extra: |leaves| {
        leaves.pass_below(&[
            "name",
            "model_source",
            "model.",
            "precision.",
            "model_alignment_strategy.",
            "compiler_",
            "aync_exec_max_inflight_requests",
            "neuron_",
            "bucket_size_collectives",
            "trainer.",
        ]);
    },
    program: None,
};
