//! What is moved to the host, and which modules of a layer Megatron offloads one by one.

/// Elements of the smallest tensor that goes to the host with its module, unless stated otherwise
/// (`TransformerConfig.min_offloaded_tensor_size`). Unit: element.
pub const LEAST_OFFLOADED: u64 = 1 << 20;

/// What is moved to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Offload {
    /// `--cpu-offloading-num-layers`.
    pub activation_layers: u64,
    /// Modules whose saved tensors go to the host (`--fine-grained-activation-offloading`, `--offload-modules`).
    pub modules: OffloadModules,
    /// Elements of the smallest tensor that goes with them (`--min-offloaded-tensor-size`).
    pub least: u64,
    /// Inputs of recomputed layers, except the last layer's (unsloth's checkpointing).
    pub layer_inputs: bool,
    /// Inputs of recomputed layers, the last one's too: each comes back when its layer is recomputed (LLaMA-Factory's checkpointing).
    pub every_input: bool,
    /// Whether every tensor that forward saves waits on the host (`torch.autograd.graph.save_on_cpu`).
    pub saved_tensors: bool,
    /// DeepSpeed `offload_optimizer`.
    pub optimizer: bool,
    /// Whether optimizer states stay on the host and are moved to the device for each step.
    pub states_for_step: bool,
    /// DeepSpeed `offload_param`.
    pub parameters: bool,
}

/// `--offload-modules`: a module of a layer, whose saved tensors go to the host together
/// (`megatron/core/pipeline_parallel/fine_grained_activation_offload.py`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadModule {
    /// The norm before attention, where it is a separate module.
    AttentionNorm,
    /// What produces queries, keys and values, including their norms.
    QkvLinear,
    /// Attention between its projections.
    CoreAttention,
    /// The attention's output projection.
    AttentionProjection,
    /// The norm before experts or MLP, where it is a separate module.
    MlpNorm,
    /// The first projection of grouped experts.
    ExpertsFc1,
    /// The activation of grouped experts.
    MoeActivation,
}

impl OffloadModule {
    /// All of them, in the order in which a layer's forward pass is done with them: a norm's tensors are offloaded
    /// once the residual stream that it read has been added to.
    pub const DONE: [Self; 7] = [
        Self::QkvLinear,
        Self::CoreAttention,
        Self::AttentionProjection,
        Self::AttentionNorm,
        Self::ExpertsFc1,
        Self::MoeActivation,
        Self::MlpNorm,
    ];
    /// All of them, in the order in which a layer's forward pass begins them.
    pub const BEGUN: [Self; 7] = [
        Self::AttentionNorm,
        Self::QkvLinear,
        Self::CoreAttention,
        Self::AttentionProjection,
        Self::MlpNorm,
        Self::ExpertsFc1,
        Self::MoeActivation,
    ];

    /// Its name in `--offload-modules`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AttentionNorm => "attn_norm",
            Self::QkvLinear => "qkv_linear",
            Self::CoreAttention => "core_attn",
            Self::AttentionProjection => "attn_proj",
            Self::MlpNorm => "mlp_norm",
            Self::ExpertsFc1 => "expert_fc1",
            Self::MoeActivation => "moe_act",
        }
    }

    /// The module of a name in `--offload-modules`; `None` if Megatron has no such module.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::BEGUN.into_iter().find(|module| module.name() == name)
    }

    /// Whether it is within routed experts.
    #[must_use]
    pub const fn is_in_experts(self) -> bool {
        matches!(self, Self::ExpertsFc1 | Self::MoeActivation)
    }
}

/// A set of modules, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OffloadModules(u8);

impl OffloadModules {
    /// The set with `module` added.
    #[must_use]
    pub const fn with(self, module: OffloadModule) -> Self {
        Self(self.0 | 1 << module as u8)
    }

    /// Whether `module` is in it.
    #[must_use]
    pub const fn has(self, module: OffloadModule) -> bool {
        self.0 & 1 << module as u8 != 0
    }

    /// The modules in it, in the order in which a layer's forward pass begins them.
    pub fn each(self) -> impl Iterator<Item = OffloadModule> {
        OffloadModule::BEGUN.into_iter().filter(move |module| self.has(*module))
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<OffloadModule> for OffloadModules {
    fn from_iter<I: IntoIterator<Item = OffloadModule>>(modules: I) -> Self {
        modules.into_iter().fold(Self::default(), Self::with)
    }
}
