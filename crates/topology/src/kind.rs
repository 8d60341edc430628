//! The kinds of groups that Megatron creates.

/// A kind of process group (`megatron/core/parallel_state.py:initialize_model_parallel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// Share each layer's dense weights.
    Tensor,
    /// The stages of one replica.
    Pipeline,
    /// Replicas, without context ranks.
    Data,
    /// Share one sequence.
    Context,
    /// Replicas with their context ranks: dense gradients are reduced here.
    DataContext,
    /// One replica without its context ranks: tensor and pipeline.
    Model,
    /// Tensor and context ranks.
    TensorContext,
    /// Tensor and data ranks.
    TensorData,
    /// Every rank of a stage.
    TensorDataContext,
    /// First and last stage, for tied embeddings.
    Embedding,
    /// First stage, for learned positions.
    PositionEmbedding,
    /// Share the experts of a layer.
    Expert,
    /// Share each expert's weights.
    ExpertTensor,
    /// Exchange tokens: expert and expert-tensor ranks.
    TensorExpert,
    /// One replica on the expert side.
    TensorExpertPipeline,
    /// Replicas of the same experts: expert gradients are reduced here.
    ExpertData,
    /// Data-context ranks that hold second shards of all weights (ZeRO++ hpZ).
    SecondShards,
    /// Data-context ranks of one optimizer instance.
    DataContextInstance,
    /// Expert-data ranks of one optimizer instance.
    ExpertDataInstance,
    /// The same position in every optimizer instance.
    ExpertDataAcross,
    /// Level of hierarchical context parallelism, from 0, the inner one.
    ContextLevel(u8),
    /// All ranks of one optimizer instance.
    OptimizerInstance,
}

impl GroupKind {
    /// The kinds every run has, in Megatron's words; excluding levels and optimizer instances.
    pub const ALWAYS: [Self; 16] = [
        Self::Tensor,
        Self::Pipeline,
        Self::Data,
        Self::Context,
        Self::DataContext,
        Self::Model,
        Self::TensorContext,
        Self::TensorData,
        Self::TensorDataContext,
        Self::Embedding,
        Self::PositionEmbedding,
        Self::Expert,
        Self::ExpertTensor,
        Self::TensorExpert,
        Self::TensorExpertPipeline,
        Self::ExpertData,
    ];

    /// Every kind with the short name that Megatron's own variables use, and with the name in the report.
    const NAMES: [(Self, &'static str, &'static str); 24] = [
        (Self::Tensor, "tp", "tensor"),
        (Self::Pipeline, "pp", "pipeline"),
        (Self::Data, "dp", "data"),
        (Self::Context, "cp", "context"),
        (Self::DataContext, "dp_cp", "data_context"),
        (Self::Model, "mp_tp_pp", "model"),
        (Self::TensorContext, "tp_cp", "tensor_context"),
        (Self::TensorData, "tp_dp", "tensor_data"),
        (Self::TensorDataContext, "tp_dp_cp", "tensor_data_context"),
        (Self::Embedding, "embedding", "embedding"),
        (Self::PositionEmbedding, "position_embedding", "position_embedding"),
        (Self::Expert, "ep", "expert"),
        (Self::ExpertTensor, "etp", "expert_tensor"),
        (Self::TensorExpert, "etp_ep", "tensor_expert"),
        (Self::TensorExpertPipeline, "etp_ep_pp", "tensor_expert_pipeline"),
        (Self::ExpertData, "edp", "expert_data"),
        (Self::SecondShards, "hpz", "second_shards"),
        (Self::DataContextInstance, "dp_cp_intra_instance", "data_context_instance"),
        (Self::ExpertDataInstance, "edp_hierarchical_level0", "expert_data_instance"),
        (Self::ExpertDataAcross, "edp_hierarchical_level1", "expert_data_across_instances"),
        (Self::ContextLevel(0), "cp_hierarchical_level0", "cp_hierarchical_level0"),
        (Self::ContextLevel(1), "cp_hierarchical_level1", "cp_hierarchical_level1"),
        (Self::ContextLevel(2), "cp_hierarchical_level2", "cp_hierarchical_level2"),
        (Self::OptimizerInstance, "dist_opt_instance", "optimizer_instance"),
    ];

    /// The short name Megatron's own variables use.
    #[must_use]
    pub fn short(self) -> &'static str {
        self.names().0
    }

    /// The name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        const LEVEL: &str = "cp_hierarchical_level";
        let known = Self::NAMES.iter().find(|(kind, ..)| *kind == self);
        // Levels beyond the third share a name.
        known.map_or((LEVEL, LEVEL), |(_, short, name)| (short, name))
    }
}
