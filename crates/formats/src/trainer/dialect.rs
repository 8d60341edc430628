//! The trainers, and the defaults of each.

use shardscope_plan::Field;

/// A trainer for transformers models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// The Trainer's own arguments, in a custom script.
    Transformers,
    /// TRL.
    Trl,
    /// LLaMA-Factory.
    LlamaFactory,
    /// axolotl.
    Axolotl,
    /// ms-swift.
    Swift,
    /// AI2's open-instruct.
    OpenInstruct,
    /// DeepSpeed-Chat's supervised fine-tuning.
    DeepSpeedChat,
    /// Meta's llama-cookbook, once llama-recipes.
    LlamaCookbook,
    /// unsloth around a TRL trainer, whose defaults it replaces (`unsloth/models/rl.py`).
    Unsloth,
    /// unsloth around transformers' own `TrainingArguments`, whose defaults are unchanged.
    UnslothArguments,
}

/// A default: a setting and its value.
pub(super) type Defaults = &'static [(Field, &'static str)];

impl Dialect {
    /// Name of the trainer.
    #[must_use]
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Transformers => "transformers' Trainer",
            Self::Trl => "TRL",
            Self::LlamaFactory => "LLaMA-Factory",
            Self::Axolotl => "axolotl",
            Self::Swift => "ms-swift",
            Self::OpenInstruct => "open-instruct",
            Self::DeepSpeedChat => "DeepSpeed-Chat",
            Self::LlamaCookbook => "llama-cookbook",
            Self::Unsloth | Self::UnslothArguments => "unsloth",
        }
    }

    /// The command that starts its training on a number of accelerators, or that names the file (TRL's and axolotl's
    /// documentation of accelerate, `llamafactory/launcher.py`, `swift/cli/main.py`).
    pub(super) const fn states_machines(self) -> &'static str {
        match self {
            Self::LlamaFactory => {
                "add the launch line (FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train …)"
            }
            Self::Axolotl => {
                "add the launch line (accelerate launch --num_machines 2 --num_processes 16 -m axolotl.cli.train …)"
            }
            Self::Swift => "add the launch line (NNODES=2 NPROC_PER_NODE=8 swift sft …)",
            Self::Trl | Self::OpenInstruct => {
                "add the launch line (accelerate launch --num_machines 2 --num_processes 16 train.py …)"
            }
            Self::DeepSpeedChat => "add the launch line (deepspeed --num_nodes 2 --num_gpus 8 main.py …)",
            Self::Transformers | Self::LlamaCookbook | Self::Unsloth | Self::UnslothArguments => "",
        }
    }

    /// Its defaults. Sources: `transformers/training_args.py` (batch of 8, no accumulation, no checkpointing, AdamW),
    /// `trl/trainer/base_config.py` and `sft_config.py` (checkpointing, 1,024 tokens, weights in fp32 under autocast),
    /// `llamafactory/hparams` (2,048 tokens, checkpointing unless disabled), axolotl's schema (micro-batch of 1,
    /// sequences of 512), `swift/trainers/arguments.py` (batch of 1, checkpointing), `open_instruct/finetune.py` and
    /// `olmo_core_utils.py` (batch of 8, 4,096 tokens, flash attention, weights in bf16), DeepSpeed-Chat's
    /// `step1_supervised_finetuning/main.py` (batch of 16, 512 tokens, fp16), llama-cookbook's `configs/training.py`
    /// (batch of 4, 4,096 tokens in packs without a mask, weights in the checkpoint's format).
    pub(super) const fn defaults(self) -> Defaults {
        match self {
            Self::Transformers => &[
                (Field::MicroBatchSize, "8"),
                (Field::NumMicroBatches, "1"),
                (Field::GradientCheckpointing, "false"),
                (Field::Optimizer, "adam"),
            ],
            Self::Trl => &[
                (Field::MicroBatchSize, "8"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "1024"),
                (Field::GradientCheckpointing, "true"),
                (Field::Optimizer, "adam"),
            ],
            Self::LlamaFactory => &[
                (Field::MicroBatchSize, "8"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "2048"),
                (Field::GradientCheckpointing, "true"),
                (Field::Optimizer, "adam"),
            ],
            Self::Axolotl => &[
                (Field::MicroBatchSize, "1"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "512"),
                (Field::GradientCheckpointing, "false"),
                (Field::Optimizer, "adam"),
            ],
            Self::Unsloth => &[
                (Field::MicroBatchSize, "4"),
                (Field::NumMicroBatches, "2"),
                (Field::Optimizer, "adamw_8bit"),
            ],
            Self::UnslothArguments => {
                &[(Field::MicroBatchSize, "8"), (Field::NumMicroBatches, "1"), (Field::Optimizer, "adam")]
            }
            // As many micro-batches as make a batch of 16 (`swift/trainers/arguments.py`).
            Self::Swift => &[
                (Field::MicroBatchSize, "1"),
                (Field::LeastBatchSize, "16"),
                (Field::GradientCheckpointing, "true"),
                (Field::Optimizer, "adam"),
            ],
            Self::LlamaCookbook => &[
                (Field::MicroBatchSize, "4"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "4096"),
                (Field::PaddingMask, "false"),
                (Field::Autocast, "none"),
                (Field::GradientCheckpointing, "false"),
                (Field::Optimizer, "adam"),
            ],
            Self::DeepSpeedChat => &[
                (Field::MicroBatchSize, "16"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "512"),
                (Field::GradientCheckpointing, "false"),
                (Field::Optimizer, "adam"),
                // `outputs = model(...)`, by name until the next.
                (Field::LogitsHeld, "true"),
                // Before the first epoch and after each; only in training is the model told to fill no cache.
                (Field::EvaluationBatchSize, "16"),
                (Field::EvaluationCache, "true"),
            ],
            Self::OpenInstruct => &[
                (Field::MicroBatchSize, "8"),
                (Field::NumMicroBatches, "1"),
                (Field::SeqLength, "4096"),
                (Field::GradientCheckpointing, "false"),
                (Field::Optimizer, "adam"),
                (Field::ParamsDtype, "bf16"),
                (Field::AttnImplementation, "flash_attention_2"),
            ],
        }
    }

    /// Its defaults for adapters: rank, scale, dropout and layers.
    pub(super) const fn adapters(self) -> Defaults {
        match self {
            Self::Transformers | Self::DeepSpeedChat => &[(Field::LoraRank, "8"), (Field::LoraAlpha, "8")],
            Self::Trl => &[(Field::LoraRank, "16"), (Field::LoraAlpha, "32"), (Field::LoraDropout, "0.05")],
            Self::LlamaFactory => &[(Field::LoraRank, "8"), (Field::LoraTargetModules, "all-linear")],
            Self::Axolotl => &[(Field::LoraRank, "8"), (Field::LoraAlpha, "16"), (Field::LoraDropout, "0")],
            Self::Unsloth | Self::UnslothArguments => &[
                (Field::LoraRank, "16"),
                (Field::LoraAlpha, "16"),
                (Field::LoraDropout, "0"),
                (Field::LoraTargetModules, "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj"),
            ],
            Self::LlamaCookbook => &[
                (Field::LoraRank, "8"),
                (Field::LoraAlpha, "32"),
                (Field::LoraDropout, "0.05"),
                (Field::LoraTargetModules, "q_proj v_proj"),
            ],
            Self::OpenInstruct => &[
                (Field::LoraRank, "64"),
                (Field::LoraAlpha, "16"),
                (Field::LoraDropout, "0.1"),
                (Field::LoraTargetModules, "all-linear"),
            ],
            Self::Swift => &[
                (Field::LoraRank, "8"),
                (Field::LoraAlpha, "32"),
                (Field::LoraDropout, "0.05"),
                (Field::LoraTargetModules, "all-linear"),
            ],
        }
    }

    /// Whether it loads models with `trust_remote_code=True` in its own code (`swift/model/register.py`:
    /// `default_trust_remote_code`); for the others it is an option that is off by default, or nothing that they pass.
    pub(super) const fn trusts_repositories(self) -> bool {
        matches!(self, Self::Swift)
    }

    /// How it determines the names of all linear layers, if it lists them itself instead of leaving that to PEFT.
    pub(super) const fn names_layers(self) -> Option<&'static str> {
        match self {
            Self::LlamaFactory => Some("LLaMA-Factory lists linear layers by name (find_all_linear_modules)"),
            Self::Axolotl => Some("axolotl lists linear layers by name (find_all_linear_names)"),
            Self::Swift => Some("ms-swift lists linear layers by name (find_all_linears)"),
            _ => None,
        }
    }

    /// The weights that it trains by default.
    pub(super) const fn trains(self) -> &'static str {
        match self {
            Self::LlamaFactory | Self::Swift => "lora",
            Self::Transformers
            | Self::Trl
            | Self::Axolotl
            | Self::OpenInstruct
            | Self::DeepSpeedChat
            | Self::LlamaCookbook
            | Self::Unsloth
            | Self::UnslothArguments => "full",
        }
    }

    /// Whether it runs in bf16 by default (`trl/trainer/base_config.py`; ms-swift follows the checkpoint; axolotl's
    /// `bf16` is "auto", `axolotl/utils/schemas/config.py`, which means bf16 wherever the accelerator supports it).
    pub(super) const fn is_bf16(self) -> bool {
        matches!(self, Self::Trl | Self::Swift | Self::Axolotl)
    }

    /// Whether trained weights are in fp32 under autocast by default: TRL loads models in fp32, LLaMA-Factory casts
    /// them (`model/adapter.py`) unless they are sharded or a pure format is requested.
    pub(super) const fn upcasts(self) -> bool {
        matches!(self, Self::Trl | Self::LlamaFactory)
    }
}
