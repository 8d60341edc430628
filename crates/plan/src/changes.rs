//! The settings that turn one variant of a plan into another.

use super::{
    DpSharding, Field, Fp8Recipe, HostOptimizer, OffloadModule, RankOrder, Recompute, RecomputeModule,
    Software, StageSplit, Variant,
};

/// The value that unsets a setting.
const NOTHING: &str = "";

impl Variant {
    /// The settings, by Megatron's names, that differ from those of `other`.
    #[must_use]
    pub fn changes_from(&self, other: &Self) -> Vec<(Field, String)> {
        let mut changes = self.degrees_from(other);
        if self.virtual_pipeline > 1 && other.virtual_pipeline <= 1 {
            // Interleaving over two stages needs it, and Megatron-LM of 2023 has it off by default.
            changes.push((Field::OverlapP2pComm, "true".to_owned()));
        }
        if self.schedule != other.schedule {
            changes.push((Field::PipelineSchedule, self.schedule.name().to_owned()));
        }
        changes.extend(self.split_from(other));
        if self.sharding != other.sharding {
            changes.extend(self.sharding_from(other.sharding));
        }
        if self.recompute != other.recompute {
            changes.extend(recompute_settings(&self.recompute));
        }
        let flags = [
            (Field::SequenceParallel, self.sequence_parallel, other.sequence_parallel),
            (
                Field::UseTpPpDpMapping,
                self.rank_order == RankOrder::TpCpEpPpDp,
                other.rank_order == RankOrder::TpCpEpPpDp,
            ),
            (Field::OverlapGradReduce, self.overlap.grad_reduce, other.overlap.grad_reduce),
            (Field::OverlapParamGather, self.overlap.param_gather, other.overlap.param_gather),
            (Field::TpCommOverlap, self.overlap.tensor, other.overlap.tensor),
            (Field::OverlapMoeExpertParallelComm, self.overlap.expert, other.overlap.expert),
            (Field::MoeSharedExpertOverlap, self.overlap.shared_expert, other.overlap.shared_expert),
        ];
        for (field, ours, theirs) in flags {
            if ours != theirs {
                changes.push((field, ours.to_string()));
            }
        }
        if self.fp8 != other.fp8 {
            changes.extend(self.fp8_settings(other));
        }
        if self.optimizer_on_host != other.optimizer_on_host {
            changes.extend(self.host_settings());
        }
        if self.instances != other.instances {
            changes.push((Field::NumDistributedOptimizerInstances, self.instances.to_string()));
        }
        if self.offloaded != other.offloaded {
            changes.extend(self.offload_settings());
        }
        changes
    }

    /// The degrees and sizes that differ.
    fn degrees_from(&self, other: &Self) -> Vec<(Field, String)> {
        let mut changes = Vec::new();
        let mut change = |field: Field, ours: u64, theirs: u64| {
            if ours != theirs {
                changes.push((field, ours.to_string()));
            }
        };
        change(Field::TensorModelParallelSize, self.tensor, other.tensor);
        change(Field::PipelineModelParallelSize, self.pipeline, other.pipeline);
        // Chunks may have been given by their layers, which differ when the stages do.
        let same_stages = self.pipeline == other.pipeline && self.split_beside(other) == other.split;
        let chunks = if same_stages || other.virtual_pipeline <= 1 { other.virtual_pipeline } else { 0 };
        // 0 is not a valid size, so that the setting is always stated.
        change(Field::VirtualPipelineModelParallelSize, self.virtual_pipeline, chunks);
        change(Field::ContextParallelSize, self.context, other.context);
        change(Field::ExpertModelParallelSize, self.expert, other.expert);
        if self.has_experts && (self.tensor, self.expert_tensor) != (other.tensor, other.expert_tensor) {
            // If unset it follows the tensor size; if set it stays, whatever happens to the tensor size. Only stating
            // it is safe.
            change(Field::ExpertTensorParallelSize, self.expert_tensor, 0);
        }
        change(Field::MicroBatchSize, self.micro_batch_size, other.micro_batch_size);
        // Groups apply to the stages for which they were stated.
        let group = |of: &Self| of.group.filter(|_| of.pipeline == other.pipeline);
        if group(self) != other.group {
            let given = group(self).map_or_else(|| NOTHING.to_owned(), |group| group.to_string());
            changes.push((Field::MicrobatchGroupSizePerVpStage, given));
        }
        changes
    }

    /// The settings that define how layers are spread, where they differ.
    fn split_from(&self, other: &Self) -> Vec<(Field, String)> {
        let said = |split: &StageSplit| {
            let nothing = || NOTHING.to_owned();
            let count = |count: &Option<u64>| count.map_or_else(nothing, |count| count.to_string());
            let mut said = [
                (Field::AccountForEmbeddingInPipelineSplit, "false".to_owned()),
                (Field::AccountForLossInPipelineSplit, "false".to_owned()),
                (Field::DecoderFirstPipelineNumLayers, nothing()),
                (Field::DecoderLastPipelineNumLayers, nothing()),
                (Field::PipelineModelParallelLayout, nothing()),
            ];
            match split {
                StageSplit::Even { account_for_embedding, account_for_loss } => {
                    said[0].1 = account_for_embedding.to_string();
                    said[1].1 = account_for_loss.to_string();
                }
                StageSplit::Ends { first, last } => {
                    said[2].1 = count(first);
                    said[3].1 = count(last);
                }
                StageSplit::Layout(text) => said[4].1.clone_from(text),
            }
            said
        };
        // All five settings of both: what the other one states and this one does not is unset by an empty value.
        let (ours, theirs) = (said(&self.split_beside(other)), said(&other.split));
        ours.into_iter().zip(theirs).filter(|(ours, theirs)| ours != theirs).map(|(ours, _)| ours).collect()
    }

    /// The flags of the sharding. In Megatron, anything beyond optimizer states is expressed through its FSDP flags.
    fn sharding_from(&self, from: DpSharding) -> Vec<(Field, String)> {
        let beyond = |of: DpSharding| matches!(of, DpSharding::Gradients | DpSharding::Parameters);
        let stage = || (Field::ZeroStage, self.sharding.zero_stage().to_string());
        let fsdp = |on: bool| (Field::UseMegatronFsdp, on.to_string());
        let megatron = matches!(
            self.software,
            Software::MegatronLegacy | Software::MegatronCoreLocal | Software::MegatronCoreTe
        );
        let distributed =
            (Field::UseDistributedOptimizer, (self.sharding == DpSharding::OptimizerStates).to_string());
        let strategy =
            if self.sharding == DpSharding::Parameters { "optim_grads_params" } else { "optim_grads" };
        match (megatron, beyond(self.sharding), beyond(from)) {
            (true, true, _) => {
                vec![fsdp(true), (Field::DataParallelShardingStrategy, strategy.to_owned())]
            }
            (true, false, true) => vec![fsdp(false), distributed],
            (false, true, _) => vec![stage()],
            // A stated stage stays in force whatever the flag says.
            (false, false, _) => vec![stage(), distributed],
            (true, false, false) => vec![distributed],
        }
    }

    /// The settings for the format of matrix products: 4-bit formats have their own flag, which excludes the 8-bit
    /// one.
    fn fp8_settings(&self, other: &Self) -> Vec<(Field, String)> {
        let four = |of: &Self| of.fp8.as_ref().is_some_and(|fp8| fp8.recipe == Fp8Recipe::Nvfp4);
        let mut settings = match &self.fp8 {
            None => vec![(Field::Fp8, NOTHING.to_owned())],
            Some(fp8) if four(self) => vec![
                (Field::Fp4, fp8.format.clone()),
                (Field::Fp8, NOTHING.to_owned()),
                (Field::Fp8ParamGather, fp8.param_gather.to_string()),
            ],
            Some(fp8) => vec![
                (Field::Fp8, fp8.format.clone()),
                (Field::Fp8Recipe, fp8.recipe.name().to_owned()),
                (Field::Fp8ParamGather, fp8.param_gather.to_string()),
            ],
        };
        // `--fp4-format` would otherwise keep excluding the other formats.
        if four(other) && !four(self) {
            settings.push((Field::Fp4, NOTHING.to_owned()));
        }
        settings
    }

    /// The settings for where optimizer states live.
    fn host_settings(&self) -> Vec<(Field, String)> {
        let on = self.optimizer_on_host.to_string();
        match self.software.semantics().offers.host_optimizer {
            HostOptimizer::Absent => Vec::new(),
            HostOptimizer::All => vec![(Field::OffloadOptimizer, on)],
            HostOptimizer::Fraction if self.optimizer_on_host => vec![
                (Field::OptimizerCpuOffload, on),
                (Field::OptimizerOffloadFraction, "1".to_owned()),
                // `arguments.py:validate_args` asserts it beside `--optimizer-cpu-offload`.
                (Field::UsePrecisionAwareOptimizer, "true".to_owned()),
            ],
            HostOptimizer::Fraction => vec![(Field::OptimizerCpuOffload, on)],
        }
    }

    /// The settings for which modules' saved tensors are offloaded to the host.
    fn offload_settings(&self) -> Vec<(Field, String)> {
        let names: Vec<&str> = self.offloaded.each().map(OffloadModule::name).collect();
        let on = (Field::FineGrainedActivationOffloading, (!names.is_empty()).to_string());
        vec![on, (Field::OffloadModules, names.join(" "))]
    }
}

/// The flags for recomputation.
fn recompute_settings(recompute: &Recompute) -> Vec<(Field, String)> {
    let full = |method: &str, num_layers: u64| {
        vec![
            (Field::RecomputeGranularity, "full".to_owned()),
            (Field::RecomputeMethod, method.to_owned()),
            (Field::RecomputeNumLayers, num_layers.to_string()),
        ]
    };
    match recompute {
        Recompute::None => vec![(Field::RecomputeGranularity, NOTHING.to_owned())],
        Recompute::Selective(modules) => {
            let names: Vec<&str> = modules.iter().map(|module| module.name()).collect();
            vec![
                (Field::RecomputeGranularity, "selective".to_owned()),
                // Megatron asserts that selective recomputation has no method, so one that the script states must be
                // removed.
                (Field::RecomputeMethod, NOTHING.to_owned()),
                (Field::RecomputeModules, names.join(" ")),
            ]
        }
        Recompute::Uniform { num_layers, .. } => full("uniform", *num_layers),
        Recompute::Block { num_layers, .. } => full("block", *num_layers),
        Recompute::Every { period, others: false } => full("every", *period),
        Recompute::Every { period, others: true } => full("all_but_every", *period),
    }
}

impl RecomputeModule {
    /// Its name in `--recompute-modules`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attention => "self_attn",
            Self::CoreAttention => "core_attn",
            Self::MoeActivation => "moe_act",
            Self::LayerNorm => "layernorm",
            Self::MlaUpProjection => "mla_up_proj",
            Self::Mlp => "mlp",
            Self::Moe => "moe",
            Self::SharedExperts => "shared_experts",
        }
    }
}
