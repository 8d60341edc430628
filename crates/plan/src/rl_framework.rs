//! Frameworks of reinforcement learning, and how each trains a policy and hands its weights to the engine.

use shardscope_units::Bytes;

/// Which framework trains by reinforcement learning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlFramework {
    /// verl.
    Verl,
    /// OpenRLHF.
    OpenRlhf,
    /// slime and miles.
    Slime,
    /// NeMo-RL.
    NemoRl,
    /// MindSpeed-RL.
    MindSpeedRl,
    /// TRL.
    Trl,
    /// ms-swift.
    Swift,
    /// open-instruct.
    OpenInstruct,
    /// SkyRL.
    SkyRl,
    /// ROLL.
    Roll,
    /// AReaL.
    Areal,
    /// prime-rl.
    PrimeRl,
    /// EasyR1.
    EasyR1,
    /// unsloth around TRL's trainer.
    Unsloth,
}

/// How a framework hands new weights to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlSemantics {
    /// Whether weights that were moved to the host are brought back to the accelerators to be handed over.
    pub loads_weights: bool,
    /// What is gathered or converted at a time.
    pub bucket: Bucket,
    /// From what the log-probabilities of sampled tokens are taken, under engines that run modules of plain PyTorch.
    pub log_probs: LogProbs,
    /// Rows of logits of which the entropy is taken at once, beside the loss and without gradients, or by the function that takes the
    /// log-probabilities; 0 where none is.
    pub entropy_rows: u64,
    /// Whether it starts DeepSpeed with "auto" for its sizes, which that reads as its own defaults.
    pub default_buckets: bool,
    /// Whether the engine runs in the trainer's process, on the weights that train.
    pub shares_weights: bool,
    /// File and function that this is read from.
    pub source: &'static str,
}

/// From what the log-probabilities of sampled tokens are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProbs {
    /// The logits as they are, overwritten by their own gradient (flash-attn's cross entropy with `inplace_backward`).
    InPlace,
    /// A copy of the logits in fp32, with a gradient beside it (flash-attn's cross entropy).
    Fp32Copy,
    /// A log-softmax in the logits' type, a sequence at a time.
    ByRow,
    /// The log-softmax of a copy of the logits in fp32 (`torch.nn.functional.log_softmax`).
    Softmax,
    /// The logits over the temperature, which a compiled function takes the log-softmax of.
    Compiled,
    /// The logits as they are, of which a compiled function takes so many rows at a time (`entropy_rows`).
    CompiledRows,
    /// The output layer's input of sampled tokens alone, of which tiles of logits are made, and its gradient with them.
    FusedHead,
}

/// How much of the weights is gathered or converted at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// One whole tensor: the largest is the embedding's.
    Tensor,
    /// A buffer of so many bytes.
    Bytes(Bytes),
}

const MIB: u64 = 1 << 20;

impl RlFramework {
    /// Every one with its name in the settings.
    pub const NAMED: [(Self, &'static str); 14] = [
        (Self::Verl, "verl"),
        (Self::OpenRlhf, "openrlhf"),
        (Self::Slime, "slime"),
        (Self::NemoRl, "nemo_rl"),
        (Self::MindSpeedRl, "mindspeed_rl"),
        (Self::Trl, "trl"),
        (Self::Swift, "swift"),
        (Self::OpenInstruct, "open_instruct"),
        (Self::SkyRl, "skyrl"),
        (Self::Roll, "roll"),
        (Self::Areal, "areal"),
        (Self::PrimeRl, "prime_rl"),
        (Self::EasyR1, "easy_r1"),
        (Self::Unsloth, "unsloth"),
    ];

    /// What its makers call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Verl => "verl",
            Self::OpenRlhf => "OpenRLHF",
            Self::Slime => "slime",
            Self::NemoRl => "NeMo-RL",
            Self::MindSpeedRl => "MindSpeed-RL",
            Self::Trl => "TRL",
            Self::Swift => "ms-swift",
            Self::OpenInstruct => "open-instruct",
            Self::SkyRl => "SkyRL",
            Self::Roll => "ROLL",
            Self::Areal => "AReaL",
            Self::PrimeRl => "prime-rl",
            Self::EasyR1 => "EasyR1",
            Self::Unsloth => "TRL under unsloth",
        }
    }

    /// The framework of a name; none where the name is another.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(_, known)| *known == name).map(|(one, _)| *one)
    }

    /// Whether transformers' Trainer runs its steps, which lets go of gradients behind each, before the next rollout
    /// (`transformers/trainer.py:Trainer._inner_training_loop`, `model.zero_grad()`).
    #[must_use]
    pub const fn runs_in_trainer(self) -> bool {
        matches!(self, Self::Trl | Self::Swift | Self::Unsloth)
    }

    /// How it hands over weights; `cut` says whether the trainer cuts the model itself (Megatron) or only shards it.
    #[must_use]
    pub const fn semantics(self, cut: bool) -> RlSemantics {
        match self {
            // FSDP's shards are taken tensor by tensor, from the host where they are there; Megatron's weights are loaded.
            Self::Verl if cut => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/megatron_workers.py:rollout_mode",
            },
            Self::Verl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/fsdp_workers.py:rollout_mode",
            },
            // Weights on the host are loaded before their shards are taken tensor by tensor.
            Self::EasyR1 => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/sharding_manager/fsdp_vllm.py:_sync_weight_to_vllm",
            },
            Self::OpenRlhf => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Fp32Copy,
                entropy_rows: 0,
                default_buckets: true,
                shares_weights: false,
                source: "openrlhf/trainer/ray/ppo_actor.py:broadcast_to_vllm",
            },
            // The weights come from their copy on the host (TensorBackuper), a buffer at a time.
            Self::Slime => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::new(512 * MIB)),
                log_probs: LogProbs::Fp32Copy,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "slime/utils/arguments.py:--update-weight-buffer-size",
            },
            Self::NemoRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Softmax,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "nemo_rl/algorithms/grpo.py:refit_policy_generation",
            },
            Self::MindSpeedRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Fp32Copy,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "mindspeed_rl/workers/resharding/megatron_sharding_manager.py",
            },
            Self::Trl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::ByRow,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "trl/generation/vllm_generation.py:sync_weights",
            },
            Self::Swift => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::ByRow,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "swift/rlhf_trainers/rollout_mixin.py:_move_model_to_vllm",
            },
            // An engine on the same accelerator reads the weights where they are (CUDA IPC).
            Self::OpenInstruct => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::ZERO),
                log_probs: LogProbs::Compiled,
                entropy_rows: 0,
                default_buckets: true,
                shares_weights: false,
                source: "open_instruct/vllm_utils.py:broadcast_weights_to_vllm",
            },
            Self::Roll => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::ByRow,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "roll/third_party/megatron/model_update.py, model_update_buffer_size_mb",
            },
            // Shards are gathered tensor by tensor, and sent once they come to a GiB (`weight_chunked_mem_mb`).
            Self::Areal => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::CompiledRows,
                entropy_rows: 1024,
                default_buckets: false,
                shares_weights: false,
                source: "areal/engine/fsdp_engine.py:_update_weights_from_distributed",
            },
            // Layer by layer, each tensor gathered; log-probabilities are its loss's own (`LossKind::Tiled`).
            Self::PrimeRl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Softmax,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: false,
                source: "prime_rl/transports/weights/nccl.py",
            },
            // Weights come back to the accelerators, and are sent by modules of at most a GiB.
            Self::SkyRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::InPlace,
                entropy_rows: if cut { 0 } else { 1024 },
                default_buckets: false,
                shares_weights: false,
                source: "skyrl/backends/skyrl_train/workers/fsdp/fsdp_worker.py:broadcast_to_inference_engines",
            },
            // The model is built of the engine's own tensors; adapters are handed over, the rest is there.
            Self::Unsloth => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::ZERO),
                log_probs: LogProbs::FusedHead,
                entropy_rows: 0,
                default_buckets: false,
                shares_weights: true,
                source: "unsloth_zoo/vllm_utils.py:get_vllm_state_dict, convert_vllm_to_huggingface",
            },
        }
    }
}
