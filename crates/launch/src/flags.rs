//! A plan from a line of flags, without a script around it.

use super::{Argument, Found, Origin, Resolution, megatron, resolve};
use shardscope_plan::{Field, Plan};
use shardscope_source::{Diagnostic, Severity};

/// The plan of a Megatron-LM command line on `world_size` accelerators, `gpus_per_node` to a node.
///
/// # Errors
/// Every diagnostic of severity error.
pub fn plan_from_flags(
    flags: &str,
    world_size: u64,
    gpus_per_node: u64,
    accelerator: &str,
) -> Result<Plan, Vec<Diagnostic>> {
    let Resolution { plan, mut diagnostics, .. } = resolution(flags, world_size, gpus_per_node, accelerator);
    diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    plan.ok_or(diagnostics)
}

fn resolution(flags: &str, world_size: u64, gpus_per_node: u64, accelerator: &str) -> Resolution {
    let mut reading = megatron::read(&Argument::split(flags));
    // A node is never larger than the world.
    let per_node = gpus_per_node.min(world_size);
    for (field, value) in [(Field::WorldSize, world_size), (Field::GpusPerNode, per_node)] {
        reading.take(Found::new(field, value.to_string(), Origin::User));
    }
    reading.take(Found::new(Field::Accelerator, accelerator, Origin::User));
    resolve(&[reading], &[])
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::plan_from_flags;
    use shardscope_plan::{AttentionKernel, DpSharding, LossKind, Software};

    /// The flags of the 2023 analysis tool's example.
    const EXAMPLE: &str = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers 24 --hidden-size 4096 \
        --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 512 \
        --use-flash-attn --use-distributed-optimizer --swiglu --bf16";

    #[test]
    fn the_example_is_a_plan_of_the_legacy_models() {
        let plan = plan_from_flags(EXAMPLE, 16, 8, "H800-SXM").expect("a plan");
        assert_eq!((plan.layout().data, plan.recipe().num_micro_batches), (4, 32));
        assert_eq!((plan.model().ffn_hidden_size, plan.model().padded_vocab_size), (10_880, 50_432));
        let recipe = plan.recipe();
        assert_eq!(recipe.software, Software::MegatronLegacy);
        assert_eq!((recipe.attention_kernel, recipe.loss), (AttentionKernel::Flash, LossKind::Legacy));
        assert_eq!(recipe.dp_sharding, DpSharding::OptimizerStates);
        assert!(!recipe.fusions.bias_activation && recipe.hidden_dropout);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let refused = plan_from_flags("--num-layers 24 --bf16", 8, 8, "H100-SXM").expect_err("no plan");
        assert!(refused.iter().any(|error| error.message.contains("hidden_size")), "{refused:?}");
    }
}
