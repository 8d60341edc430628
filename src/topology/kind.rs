//! The kinds of groups Megatron makes.

/// A kind of process group (`megatron/core/parallel_state.py:initialize_model_parallel`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupKind {
    /// Share each layer's dense weights.
    Tensor,
    /// The stages of one replica.
    Pipeline,
    /// Replicas, context ranks apart.
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
    /// Data-context ranks of one optimizer instance.
    DataContextInstance,
    /// Expert-data ranks of one optimizer instance.
    ExpertDataInstance,
    /// The same place in every optimizer instance.
    ExpertDataAcross,
    /// Level of hierarchical context parallelism, from 0, the inner one.
    ContextLevel(u8),
    /// All ranks of one optimizer instance.
    OptimizerInstance,
}

impl GroupKind {
    /// The kinds every run has, in Megatron's words; levels and optimizer instances left out.
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

    /// The short name Megatron's own variables use.
    #[must_use]
    pub fn short(self) -> &'static str {
        match self {
            Self::Tensor => "tp",
            Self::Pipeline => "pp",
            Self::Data => "dp",
            Self::Context => "cp",
            Self::DataContext => "dp_cp",
            Self::Model => "mp_tp_pp",
            Self::TensorContext => "tp_cp",
            Self::TensorData => "tp_dp",
            Self::TensorDataContext => "tp_dp_cp",
            Self::Embedding => "embedding",
            Self::PositionEmbedding => "position_embedding",
            Self::Expert => "ep",
            Self::ExpertTensor => "etp",
            Self::TensorExpert => "etp_ep",
            Self::TensorExpertPipeline => "etp_ep_pp",
            Self::ExpertData => "edp",
            Self::DataContextInstance => "dp_cp_intra_instance",
            Self::ExpertDataInstance => "edp_hierarchical_level0",
            Self::ExpertDataAcross => "edp_hierarchical_level1",
            Self::ContextLevel(0) => "cp_hierarchical_level0",
            Self::ContextLevel(1) => "cp_hierarchical_level1",
            Self::ContextLevel(2) => "cp_hierarchical_level2",
            Self::ContextLevel(_) => "cp_hierarchical_level",
            Self::OptimizerInstance => "dist_opt_instance",
        }
    }

    /// The name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Pipeline => "pipeline",
            Self::Data => "data",
            Self::Context => "context",
            Self::DataContext => "data_context",
            Self::Model => "model",
            Self::TensorContext => "tensor_context",
            Self::TensorData => "tensor_data",
            Self::TensorDataContext => "tensor_data_context",
            Self::Expert => "expert",
            Self::ExpertTensor => "expert_tensor",
            Self::TensorExpert => "tensor_expert",
            Self::TensorExpertPipeline => "tensor_expert_pipeline",
            Self::ExpertData => "expert_data",
            Self::DataContextInstance => "data_context_instance",
            Self::ExpertDataInstance => "expert_data_instance",
            Self::ExpertDataAcross => "expert_data_across_instances",
            Self::OptimizerInstance => "optimizer_instance",
            Self::Embedding | Self::PositionEmbedding | Self::ContextLevel(_) => self.short(),
        }
    }
}
