//! Trainers that are recognized by their settings files but not modelled: model, batch and machines are read from the
//! files, the trainer is named, and the verdict stops at its memory. Keys: the trainers' own classes of arguments.

use super::row::Row;
use crate::Origin;
use crate::leaves::Leaves;
use shardscope_plan::{Field, Software};

/// A trainer for transformers models.
const fn of_transformers(
    trainer: &'static str,
    title: &'static str,
    about: &'static str,
    lacking: &'static str,
) -> Row {
    Row {
        trainer,
        title,
        about,
        signs: &[],
        keys: &[],
        models: &[],
        software: Software::HfTransformers,
        lacking: Some(lacking),
        extra: |_| {},
        program: None,
    }
}

/// `veomni/arguments/arguments_types.py`.
pub(crate) const VEOMNI: Row = Row {
    signs: &[
        &["model.model_path", "train.accelerator"],
        &["model.config_path", "train.accelerator"],
        &["model.model_path", "train.data_parallel_mode"],
        &["model.config_path", "train.data_parallel_mode"],
    ],
    keys: &[
        (&["data.max_seq_len"], Field::SeqLength),
        (&["train.micro_batch_size"], Field::MicroBatchSize),
        (&["train.global_batch_size"], Field::GlobalBatchSize),
        (&["train.max_steps"], Field::TrainIters),
        (&["train.accelerator.ulysses_size", "train.ulysses_parallel_size"], Field::ContextParallelSize),
        (&["train.accelerator.ep_size", "train.expert_parallel_size"], Field::ExpertModelParallelSize),
        (
            &["train.gradient_checkpointing.enable", "train.enable_gradient_checkpointing"],
            Field::GradientCheckpointing,
        ),
    ],
    models: &["model.model_path", "model.config_path"],
    extra: |leaves| engine(leaves, "fsdp2", "3", "VeOmni"),
    ..of_transformers(
        "VeOmni",
        "a configuration of VeOmni",
        "VeOmni: model, batch, length, degrees; what its kernels and packed batches save is not modelled",
        "what VeOmni's own kernels save for packed batches, and how it shards experts and towers",
    )
};

/// `arctic_training/config/{trainer,model}.py`.
pub(crate) const ARCTIC: Row = Row {
    signs: &[
        &["type", "model.name_or_path", "data.sources"],
        &["type", "model.name_or_path", "micro_batch_size"],
    ],
    keys: &[
        (&["micro_batch_size"], Field::MicroBatchSize),
        (&["gradient_accumulation_steps"], Field::NumMicroBatches),
        (&["data.max_length"], Field::SeqLength),
        (&["sequence_parallel_size"], Field::ContextParallelSize),
        (&["deepspeed.zero_optimization.stage"], Field::ZeroStage),
        (&["train_iters"], Field::TrainIters),
    ],
    models: &["model.name_or_path"],
    extra: |leaves| {
        engine(leaves, "deepspeed", "2", "ArcticTraining");
        leaves.state(Field::NumMicroBatches, "1", Origin::Default, "default of ArcticTraining");
    },
    ..of_transformers(
        "ArcticTraining",
        "a configuration of ArcticTraining",
        "ArcticTraining: model, batch, length, ZeRO stage; what its tiled losses and MLPs save is not modelled",
        "memory of ArcticTraining's tiled losses and MLPs, packed samples and offloaded inputs",
    )
};

/// `finetune/args.py`: a batch is one sequence of `batch_size` times `seq_len` tokens.
pub(crate) const MISTRAL: Row = Row {
    signs: &[&["model_id_or_path", "lora", "seq_len"], &["model_id_or_path", "seq_len", "run_dir"]],
    keys: &[
        (&["seq_len"], Field::SeqLength),
        (&["batch_size"], Field::MicroBatchSize),
        (&["num_microbatches"], Field::NumMicroBatches),
        (&["max_steps"], Field::TrainIters),
        (&["lora.rank"], Field::LoraRank),
    ],
    models: &["model_id_or_path"],
    extra: |leaves| {
        engine(leaves, "fsdp1", "3", "mistral-finetune");
        let defaults =
            [(Field::SeqLength, "2048"), (Field::MicroBatchSize, "1"), (Field::NumMicroBatches, "1")];
        leaves.state_all(&defaults, Origin::Default, "default of mistral-finetune");
    },
    ..of_transformers(
        "mistral-finetune",
        "a configuration of mistral-finetune",
        "mistral-finetune: model, length, batch, adapters' rank; what its own layers save is not modelled",
        "what mistral-finetune's own layers and adapters save for backward",
    )
};

/// `llm_studio/python_configs/text_causal_language_modeling_config.py`.
pub(crate) const H2O: Row = Row {
    signs: &[&["llm_backbone", "training"], &["llm_backbone", "architecture"]],
    keys: &[
        (&["tokenizer.max_length"], Field::SeqLength),
        (&["training.batch_size"], Field::MicroBatchSize),
        (&["training.grad_accumulation"], Field::NumMicroBatches),
        (&["architecture.gradient_checkpointing"], Field::GradientCheckpointing),
    ],
    models: &["llm_backbone"],
    ..of_transformers(
        "H2O LLM Studio",
        "an experiment of H2O LLM Studio",
        "H2O LLM Studio: model, batch, length; its losses, adapters and quantized backbones are not modelled",
        "memory of H2O LLM Studio's losses, adapters and quantized backbones",
    )
};

/// `ludwig/schema/model_types`.
pub(crate) const LUDWIG: Row = Row {
    signs: &[&["input_features", "output_features"]],
    keys: &[
        (&["preprocessing.global_max_sequence_length"], Field::SeqLength),
        (&["trainer.batch_size"], Field::MicroBatchSize),
        (&["trainer.gradient_accumulation_steps"], Field::NumMicroBatches),
    ],
    models: &["base_model"],
    ..of_transformers(
        "Ludwig",
        "a configuration of Ludwig",
        "Ludwig: model and batch of a language model; what it builds from features is not modelled",
        "the model that Ludwig builds from input and output features",
    )
};

/// `align_anything/configs/train`.
pub(crate) const ALIGN_ANYTHING: Row = Row {
    signs: &[&["train_cfgs", "model_cfgs"]],
    keys: &[
        (&["model_cfgs.model_max_length"], Field::SeqLength),
        (&["train_cfgs.per_device_train_batch_size"], Field::MicroBatchSize),
        (&["train_cfgs.gradient_accumulation_steps"], Field::NumMicroBatches),
        (
            &["train_cfgs.gradient_checkpointing", "train_cfgs.actor_gradient_checkpointing"],
            Field::GradientCheckpointing,
        ),
    ],
    models: &["model_cfgs.model_name_or_path", "model_cfgs.actor_model_name_or_path"],
    ..of_transformers(
        "align-anything",
        "a configuration of align-anything",
        "align-anything: model, batch, length; what its trainers hold besides the model is not modelled",
        "what align-anything's trainers hold besides the model: reference, reward model, critic, towers",
    )
};

/// `template/grpo_fsdp.yaml`, `template/grpo_megatron.yaml`.
pub(crate) const CHATLEARN: Row = Row {
    signs: &[&["runtime_args", "models"]],
    keys: &[
        (
            &["models.policy_trainer.train_micro_batch_size", "runtime_args.train_micro_batch_size"],
            Field::MicroBatchSize,
        ),
        (&["runtime_args.train_global_batch_size"], Field::GlobalBatchSize),
        (&["models.policy_trainer.num_gpu"], Field::WorldSize),
        (&["models.policy_trainer.gradient_checkpointing"], Field::GradientCheckpointing),
        (&["models.policy_trainer.ulysses_sequence_parallel_size"], Field::ContextParallelSize),
    ],
    models: &["models.policy_trainer.load"],
    program: Some(("chatlearn/entrypoint.py", &["runtime_args.", "models."])),
    ..of_transformers(
        "ChatLearn",
        "a configuration of ChatLearn",
        "ChatLearn: the policy's model, batch and machines; its rollouts and what it moves between phases are not modelled",
        "ChatLearn's rollouts, the models besides the policy, and what it moves between its phases",
    )
};

/// `conf/base.yaml`, `conf/finetune/base.yaml`.
pub(crate) const PIPELINE_RL: Row = Row {
    signs: &[&["model_path", "world", "finetune"], &["world", "vllm_config", "actor"]],
    keys: &[
        (&["finetune.seq_length"], Field::SeqLength),
        (&["finetune.train_batch_size"], Field::MicroBatchSize),
        (&["finetune.gradient_accumulation_passes"], Field::NumMicroBatches),
    ],
    models: &["model_path"],
    ..of_transformers(
        "PipelineRL",
        "a configuration of PipelineRL",
        "PipelineRL: the policy's model, batch and length; its in-flight rollouts are not modelled",
        "PipelineRL's in-flight rollouts, which share the accelerators with training",
    )
};

/// The engine that shards the model, and its stage, unless the file says otherwise.
fn engine(leaves: &mut Leaves<'_>, engine: &str, stage: &str, trainer: &str) {
    let whose = format!("default of {trainer}");
    leaves.state(Field::DataParallelEngine, engine, Origin::Default, &whose);
    leaves.state(Field::ZeroStage, stage, Origin::Default, &whose);
    leaves.state(Field::GradientCheckpointing, "true", Origin::Default, &whose);
}
