//! Reinforcement-learning frameworks, and how each trains a policy and transfers its weights to the inference engine.

use shardscope_units::Bytes;

/// Which reinforcement-learning framework runs the training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlFramework {
    /// verl.
    Verl,
    /// verl between April 17 and July 24, 2025, as far as its Megatron engine and vLLM up to 0.8.5 in the trainer's process differ.
    VerlShared,
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
    /// unsloth, wrapping TRL's trainer.
    Unsloth,
}

/// How a framework transfers updated weights to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlSemantics {
    /// Whether weights that were moved to the host are loaded back onto the accelerators for the transfer.
    pub loads_weights: bool,
    /// How much is gathered or converted at a time.
    pub bucket: Bucket,
    /// How the log-probabilities of sampled tokens are computed, under engines that run plain PyTorch modules.
    pub log_probs: LogProbs,
    /// The same where samples are padded.
    pub padded_log_probs: LogProbs,
    /// Whether log-probabilities of rollouts are taken with their entropy, before the policy trains on them.
    pub scores_entropy: bool,
    /// Rows of logits of which the entropy is taken at once, beside the loss and without gradients, or by the function that takes the
    /// log-probabilities; 0 where none is.
    pub entropy_rows: u64,
    /// Bytes alive of each logit of a rank while log-probabilities and their entropies are taken before training, and while
    /// a reference's log-probabilities are, where the trainer cuts the model; 0 where none are taken, or it is not known.
    pub scored_bytes: [u64; 2],
    /// Whether it starts DeepSpeed with "auto" for its sizes, which DeepSpeed replaces by its own defaults.
    pub default_buckets: bool,
    /// Whether the engine runs in the trainer's process, on the weights being trained.
    pub shares_weights: bool,
    /// File and function that this is read from.
    pub source: &'static str,
}

/// How the log-probabilities of sampled tokens are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogProbs {
    /// From the logits in place, overwritten by their own gradient (flash-attn's cross entropy with
    /// `inplace_backward`).
    InPlace,
    /// From an fp32 copy of the logits, with a separate gradient (flash-attn's cross entropy).
    Fp32Copy,
    /// By a log-softmax in the logits' dtype, one sequence at a time.
    ByRow,
    /// By a log-softmax of an fp32 copy of the logits (`torch.nn.functional.log_softmax`).
    Softmax,
    /// By a compiled log-softmax of the logits divided by the temperature.
    Compiled,
    /// By a compiled function over the logits as they are, `entropy_rows` rows at a time.
    CompiledRows,
    /// The logits of the positions that sample a padded sample's response, of several samples copied to rows.
    Responses,
    /// The output layer's input of sampled tokens alone, of which tiles of logits are made, and its gradient with them.
    FusedHead,
}

/// What becomes of logits over tensor ranks, which a model of Megatron's hands on in fp32, before log-probabilities are theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fp32Logits {
    /// Its loss is Megatron's own, or one that is stated.
    OwnLoss,
    /// Divided by a temperature in place, where log-probabilities then overwrite them, and copied where an entropy is taken
    /// (`verl/workers/actor/megatron_actor.py:logits_processor`).
    Divided,
    /// Divided in place, and copied for log-probabilities while the model's output is held
    /// (`mindspeed_rl/models/base/base_training_engine.py`, `mindspeed_rl/utils/compute.py:compute_log_probs`).
    DividedAndCopied,
    /// Held beside the softmax that log-probabilities make of them, and beside their quotient where the temperature is not 1
    /// (`slime/backends/megatron_utils/loss.py:get_log_probs_and_entropy`, `slime/utils/ppo_utils.py:_VocabParallelLogProbEntropy`).
    Held,
}

/// How much of the weights is gathered or converted at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// One full tensor; the largest is the embedding.
    Tensor,
    /// A buffer of this many bytes.
    Bytes(Bytes),
}

const MIB: u64 = 1 << 20;

impl RlFramework {
    /// The name its authors use.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Verl => "verl",
            Self::VerlShared => "verl of early 2025",
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

    /// Whether transformers' Trainer runs its steps, which frees gradients after each step, before the next rollout
    /// (`transformers/trainer.py:Trainer._inner_training_loop`, `model.zero_grad()`).
    #[must_use]
    pub const fn runs_in_trainer(self) -> bool {
        matches!(self, Self::Trl | Self::Swift | Self::Unsloth)
    }

    /// Whether vLLM runs in the trainer's process and counts what that holds within its share: verl of spring 2025 required vLLM up to
    /// 0.8.5 (`setup.py`), started it there last (`verl/workers/rollout/vllm_rollout/vllm_rollout_spmd.py`, external_launcher;
    /// `verl/trainer/ppo/ray_trainer.py:init_workers`), and of its share went the peak of the process and all else on the device
    /// (`vllm/v1/worker/gpu_worker.py:determine_available_memory` of 0.8). 0.9 counts what has grown since the engine began.
    #[must_use]
    pub const fn counts_process(self) -> bool {
        matches!(self, Self::VerlShared)
    }

    /// Whether its trainer asks the model for the logits of the responses alone (`trl/trainer/grpo_trainer.py`, `logits_to_keep`,
    /// `num_logits_to_keep` in 0.14; `swift/rlhf_trainers/grpo_trainer.py:_get_logps_via_local_forward`).
    #[must_use]
    pub const fn cuts_logits(self) -> bool {
        matches!(self, Self::Trl | Self::Swift)
    }

    /// Whether a critic's gradients are freed once it has stepped, before the next phase; `cut` as in `semantics`
    /// (`verl/workers/critic/dp_critic.py:update_critic` ends in `zero_grad`, of EasyR1 `_optimizer_step`).
    #[must_use]
    pub const fn frees_gradients_of_critic(self, cut: bool) -> bool {
        !cut && matches!(self, Self::Verl | Self::VerlShared | Self::EasyR1)
    }

    /// What it does with the fp32 logits that Megatron's model hands on without labels (`Float16Module.forward`).
    #[must_use]
    pub const fn fp32_logits(self) -> Fp32Logits {
        match self {
            Self::Verl | Self::VerlShared => Fp32Logits::Divided,
            Self::MindSpeedRl => Fp32Logits::DividedAndCopied,
            Self::Slime => Fp32Logits::Held,
            _ => Fp32Logits::OwnLoss,
        }
    }

    /// How it transfers weights; `cut` says whether the trainer uses model parallelism (Megatron) or only shards the
    /// model.
    #[must_use]
    pub const fn semantics(self, cut: bool) -> RlSemantics {
        match self {
            // FSDP's shards are gathered tensor by tensor, from the host if they are there; Megatron's weights are
            // loaded first.
            Self::Verl if cut => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                padded_log_probs: LogProbs::InPlace,
                scores_entropy: false,
                entropy_rows: 0,
                // fp32 logits, their copy and their softmax (`verl/workers/actor/megatron_actor.py:logits_processor`,
                // `utils/megatron/tensor_parallel.py:_VocabParallelEntropy`); of a reference, without entropies, the
                // logits in 16 bits while they become fp32 (`megatron/core/transformer/module.py:Float16Module`).
                scored_bytes: [12, 6],
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/megatron_workers.py:rollout_mode",
            },
            // Entropies were taken of the logits that the log-probabilities then take the place of, so that there was no copy
            // (#2484 made one): fp32 logits, and their softmax where they less their largest stood.
            Self::VerlShared => RlSemantics { scored_bytes: [8, 6], ..Self::Verl.semantics(cut) },
            Self::Verl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                padded_log_probs: LogProbs::Responses,
                scores_entropy: true,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/fsdp_workers.py:rollout_mode",
            },
            // Weights on the host are loaded before their shards are gathered tensor by tensor.
            Self::EasyR1 => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::InPlace,
                padded_log_probs: LogProbs::Responses,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "verl/workers/sharding_manager/fsdp_vllm.py:_sync_weight_to_vllm",
            },
            Self::OpenRlhf => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Fp32Copy,
                padded_log_probs: LogProbs::Fp32Copy,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: true,
                shares_weights: false,
                source: "openrlhf/trainer/ray/ppo_actor.py:broadcast_to_vllm",
            },
            // The weights come from their copy on the host (TensorBackuper), one buffer at a time.
            Self::Slime => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::new(512 * MIB)),
                log_probs: LogProbs::Fp32Copy,
                padded_log_probs: LogProbs::Fp32Copy,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "slime/utils/arguments.py:--update-weight-buffer-size",
            },
            Self::NemoRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Softmax,
                padded_log_probs: LogProbs::Softmax,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "nemo_rl/algorithms/grpo.py:refit_policy_generation",
            },
            Self::MindSpeedRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Fp32Copy,
                padded_log_probs: LogProbs::Fp32Copy,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "mindspeed_rl/workers/resharding/megatron_sharding_manager.py",
            },
            Self::Trl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::ByRow,
                padded_log_probs: LogProbs::ByRow,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "trl/generation/vllm_generation.py:sync_weights",
            },
            Self::Swift => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::ByRow,
                padded_log_probs: LogProbs::ByRow,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "swift/rlhf_trainers/rollout_mixin.py:_move_model_to_vllm",
            },
            // An engine on the same accelerator reads the weights where they are (CUDA IPC).
            Self::OpenInstruct => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::ZERO),
                log_probs: LogProbs::Compiled,
                padded_log_probs: LogProbs::Compiled,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: true,
                shares_weights: false,
                source: "open_instruct/vllm_utils.py:broadcast_weights_to_vllm",
            },
            Self::Roll => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::ByRow,
                padded_log_probs: LogProbs::ByRow,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "roll/third_party/megatron/model_update.py, model_update_buffer_size_mb",
            },
            // Shards are gathered tensor by tensor, and sent once they add up to a GiB (`weight_chunked_mem_mb`).
            Self::Areal => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::CompiledRows,
                padded_log_probs: LogProbs::CompiledRows,
                scores_entropy: false,
                entropy_rows: 1024,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "areal/engine/fsdp_engine.py:_update_weights_from_distributed",
            },
            // Layer by layer, gathering each tensor; log-probabilities are part of its loss (`LossKind::Tiled`).
            Self::PrimeRl => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Tensor,
                log_probs: LogProbs::Softmax,
                padded_log_probs: LogProbs::Softmax,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "prime_rl/transports/weights/nccl.py",
            },
            // Weights are loaded back onto the accelerators and sent in groups of modules of at most a GiB.
            Self::SkyRl => RlSemantics {
                loads_weights: true,
                bucket: Bucket::Bytes(Bytes::new(1024 * MIB)),
                log_probs: LogProbs::InPlace,
                padded_log_probs: LogProbs::InPlace,
                scores_entropy: false,
                entropy_rows: if cut { 0 } else { 1024 },
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: false,
                source: "skyrl/backends/skyrl_train/workers/fsdp/fsdp_worker.py:broadcast_to_inference_engines",
            },
            // The model is built from the engine's own tensors, so only adapters need to be transferred.
            Self::Unsloth => RlSemantics {
                loads_weights: false,
                bucket: Bucket::Bytes(Bytes::ZERO),
                log_probs: LogProbs::FusedHead,
                padded_log_probs: LogProbs::FusedHead,
                scores_entropy: false,
                entropy_rows: 0,
                scored_bytes: [0, 0],
                default_buckets: false,
                shares_weights: true,
                source: "unsloth_zoo/vllm_utils.py:get_vllm_state_dict, convert_vllm_to_huggingface",
            },
        }
    }
}
