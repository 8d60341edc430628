//! More flags of Megatron's relatives that map to Megatron's settings: Megatron-Bridge's scripts, Primus,
//! MindSpeed-LLM, slime and miles.

use super::fork::{Fork, named, switch, takes};
use super::forks;
use shardscope_plan::Field;

const FORKS: &[Fork] = &[
    // Megatron-Bridge (`examples/conversion`, `scripts/performance/argument_parser.py`).
    takes("tp", &[(Field::TensorModelParallelSize, None)]),
    takes("pp", &[(Field::PipelineModelParallelSize, None)]),
    takes("ep", &[(Field::ExpertModelParallelSize, None)]),
    takes("etp", &[(Field::ExpertTensorParallelSize, None)]),
    takes("cp", &[(Field::ContextParallelSize, None)]),
    // Primus: logging, and whether checkpoints are searched for at the start and written at the end.
    takes("stderr-sink-level", &[]),
    switch("auto-continue-train", &[]),
    switch("disable-last-saving", &[]),
    // Primus's DeepEP dispatcher (`primus/backends/megatron/core/extensions/primus_turbo.py`).
    switch(
        "use-turbo-deepep",
        &[(Field::MoeTokenDispatcherType, Some("flex")), (Field::MoeFlexDispatcherBackend, Some("deepep"))],
    ),
    // The old name in MindSpeed-LLM (`mindspeed_llm/features_manager/transformer/multi_latent_attention`).
    switch("multi-head-latent-attention", &[(Field::MultiLatentAttention, Some("true"))]),
    // slime and miles: which of trainer and rollout engine is offloaded while the other runs;
    // `slime.rs` reads these together.
    switch("offload", &[]),
    switch("offload-train", &[]),
    switch("no-offload-train", &[]),
    switch("offload-rollout", &[]),
    switch("no-offload-rollout", &[]),
];

/// The meaning of a fork's flag.
pub(super) fn find(name: &str) -> Option<&'static Fork> {
    forks::find(name).or_else(|| named(FORKS, name))
}
