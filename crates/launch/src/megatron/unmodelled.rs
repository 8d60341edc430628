//! Flags of Megatron-LM that change a figure and that no estimator knows, each with what it is. Values at which a flag
//! changes nothing are listed with it.

use crate::Effect;

/// A flag that is read and not modelled.
#[derive(Debug)]
pub(super) struct Unmodelled {
    /// Without dashes.
    pub(super) name: &'static str,
    /// What it would change.
    pub(super) effect: Effect,
    /// Values at which it changes nothing, joined by blanks; a switch that is off never does.
    harmless: &'static str,
    /// Description that follows "not modelled:".
    pub(super) message: &'static str,
}

const fn flag(
    name: &'static str,
    effect: Effect,
    harmless: &'static str,
    message: &'static str,
) -> Unmodelled {
    Unmodelled { name, effect, harmless, message }
}

use Effect::{Communication, Memory, Model, Time};

const HYBRID: &str = "layers of another kind than attention and MLP (Mamba, linear attention)";
const ENCODER: &str = "encoder-decoder models";
const VARIANT: &str = "another attention than the transformer's own";
const RETRO: &str = "retrieval beside the decoder (Retro)";
const RL: &str = "reinforcement learning, in which generation shares the accelerators";
const LOW_PRECISION: &str = "GEMMs in a format of their own for some layers";
const VISION: &str = "a vision model beside or in place of the decoder";

/// All of them. Sources: `megatron/training/arguments.py` of core 0.19 and the code that reads each flag.
const UNMODELLED: &[Unmodelled] = &[
    flag("experimental-attention-variant", Model, "gated_delta_net", VARIANT),
    flag("heterogeneous-layers-config-path", Model, "", "layers that differ by a configuration file"),
    flag("heterogeneous-layers-config-encoded-json", Model, "", "layers that differ by a configuration"),
    flag("hybrid-layer-pattern", Model, "", HYBRID),
    flag("hybrid-attention-ratio", Model, "0.0 0", HYBRID),
    flag("hybrid-mlp-ratio", Model, "0.0 0", HYBRID),
    flag("mtp-hybrid-override-pattern", Model, "", HYBRID),
    flag("is-hybrid-model", Model, "", HYBRID),
    flag("mtp-use-repeated-layer", Model, "", "multi-token-prediction depths that share one layer"),
    flag("enable-mhc-connections", Model, "", "hyper-connections beside the residual stream"),
    flag("decoder-num-layers", Model, "", ENCODER),
    flag("decoder-seq-length", Model, "", ENCODER),
    flag("retro-add-retriever", Model, "", RETRO),
    flag("vision-pretraining", Model, "", VISION),
    flag("qk-l2-norm", Memory, "", "norms of queries and keys without weights"),
    flag("freeze-all-layers", Model, "", "frozen layers; all weights would be counted as trained"),
    flag("logits-load-dir", Model, "", "distillation from another model's logits"),
    flag("perform-rl-step", Memory, "", RL),
    flag(
        "muon-tp-mode",
        Communication,
        "blockwise",
        "Newton-Schulz iterations over whole matrices of tensor ranks",
    ),
    flag("muon-scalar-optimizer", Memory, "adam", "another optimizer than Adam beside Muon"),
    flag("muon-num-ns-steps", Time, "5", "another number of Newton-Schulz iterations than 5"),
    flag("embedding-weights-in-fp32", Memory, "", "an embedding held in fp32"),
    flag("fp16-lm-cross-entropy", Memory, "", "a loss in 16 bits"),
    flag("fp4-param-gather", Memory, "", "weights held and gathered in fp4"),
    flag("fsdp-double-buffer", Memory, "", "two buffers of gathered weights and gradients"),
    flag("keep-fp8-transpose-cache", Memory, "", "transposed fp8 weights kept between steps"),
    flag(
        "keep-fp8-transpose-cache-when-using-custom-fsdp",
        Memory,
        "",
        "transposed fp8 weights kept between steps",
    ),
    flag("megatron-fsdp-main-grads-dtype", Memory, "fp32 auto", "another format of main gradients"),
    flag("megatron-fsdp-main-params-dtype", Memory, "fp32 auto", "another format of main parameters"),
    flag("moe-paged-stash", Memory, "", "activations of experts in pages"),
    flag(
        "outer-dp-sharding-strategy",
        Memory,
        "no_shard",
        "optimizer states sharded over replicas of FSDP groups",
    ),
    flag("reuse-grad-buf-for-mxfp8-param-ag", Memory, "", "gathered mxfp8 weights in the gradients' buffer"),
    flag(
        "torch-fsdp2-no-reshard-after-forward",
        Memory,
        "",
        "weights that stay gathered after the forward pass",
    ),
    flag("mlp-chunks-for-training", Memory, "1", "an MLP that works chunk by chunk"),
    flag("use-transformer-engine-op-fuser", Memory, "", "Transformer Engine's operation fuser"),
    flag("fused-residual-rmsnorm", Memory, "", "a norm fused with the residual addition"),
    flag("use-kitchen-attention", Memory, "", "attention in a low precision"),
    flag("kitchen-config-file", Time, "", LOW_PRECISION),
    flag("kitchen-recipe-number", Time, "", LOW_PRECISION),
    flag("first-last-layers-bf16", Time, "", LOW_PRECISION),
    flag("te-precision-config-file", Time, "", LOW_PRECISION),
    flag(
        "ddp-reduce-scatter-with-fp32-accumulation",
        Communication,
        "",
        "reduce-scatter as an all-to-all with fp32 sums",
    ),
    flag("megatron-fsdp-grad-comm-dtype", Communication, "auto", "gradients sent in another format"),
    flag("moe-combine-bwd-dtype", Communication, "bf16", "tokens sent back from experts in another format"),
    flag("moe-dispatch-fwd-dtype", Communication, "bf16", "tokens sent to experts in another format"),
    flag("use-sharp", Communication, "", "reduction inside the network (SHARP)"),
    flag("use-nccl-ub", Memory, "", "buffers registered with NCCL"),
    flag(
        "pipeline-model-parallel-comm-backend",
        Time,
        "nccl",
        "pipeline messages over another library than NCCL",
    ),
    flag("hybrid-context-parallel", Communication, "", "context parallelism that varies with the sample"),
    flag("mtp-standalone", Model, "", "a pipeline stage for multi-token prediction alone"),
    flag(
        "expert-tensor-parallel-num-weight-shards",
        Communication,
        "1",
        "expert weights sharded beyond tensor parallelism",
    ),
    flag(
        "tensor-parallel-num-weight-shards",
        Communication,
        "1",
        "weights sharded beyond tensor parallelism",
    ),
    flag("encoder-tensor-model-parallel-size", Model, "0", ENCODER),
    flag("encoder-pipeline-model-parallel-size", Model, "0", ENCODER),
    flag("pipeline-model-parallel-split-rank", Model, "", ENCODER),
    flag("delay-wgrad-compute", Time, "", "weight gradients computed behind expert communication"),
    flag(
        "overlap-p2p-communication-warmup-flush",
        Time,
        "",
        "pipeline messages behind compute in warm-up and flush",
    ),
    flag(
        "overlap-param-gather-with-optimizer-step",
        Time,
        "",
        "weights gathered behind the optimizer's step",
    ),
    flag(
        "overlap-dispatch-backward-with-experts-wgrad",
        Time,
        "",
        "expert communication behind weight gradients",
    ),
    flag("tp-comm-overlap-cfg", Time, "", "ways of overlap that a file chooses"),
];

/// Layer specifications that are the transformer's own, or say what other flags say as well
/// (`megatron/core/models/gpt/gpt_layer_specs.py`; MindSpeed-LLM `mindspeed_llm/tasks/models/spec/`).
const PLAIN_SPECS: [&str; 13] = [
    "megatron.core.models.gpt.gpt_layer_specs",
    "local",
    "te",
    "qwen3_spec",
    "qwen3_moe_spec",
    "deepseek_spec",
    "glm45_moe_spec",
    "phi35_moe_spec",
    "hunyuan_large_spec",
    "ling_spec",
    "bailing_spec",
    "seed_oss_spec",
    // Layers of one block each; which ones the pattern says, and the mixers' sizes stand in flags.
    "mamba_stack_spec",
];

/// The flag of a name without dashes, if it is not modelled at this value.
pub(super) fn find(name: &str, value: &str) -> Option<&'static Unmodelled> {
    /// A layer specification, by module and name.
    const SPEC: Unmodelled = flag("spec", Model, "", "a layer specification that is not known");
    if name == "spec" {
        let plain = |part: &str| {
            PLAIN_SPECS.iter().any(|known| part == *known || part.ends_with(&format!(".{known}")))
        };
        return (!value.split_ascii_whitespace().any(plain)).then_some(&SPEC);
    }
    let found = UNMODELLED.iter().find(|known| known.name == name)?;
    let harmless = |word: &str| word.eq_ignore_ascii_case(value);
    (value != "false" && !found.harmless.split_ascii_whitespace().any(harmless)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::{UNMODELLED, find};
    use crate::megatron::flags;
    use shardscope_plan::Field;

    #[test]
    fn every_one_is_a_flag_without_a_setting() {
        for known in UNMODELLED {
            let flag = flags::find(known.name).unwrap_or_else(|| panic!("{}", known.name));
            let setting = Field::named(flag.dest.unwrap_or(flag.name));
            assert!(setting.is_none(), "{} is modelled as {setting:?}", known.name);
        }
    }

    #[test]
    fn harmless_values_are_told_from_others() {
        assert!(find("use-sharp", "true").is_some() && find("use-sharp", "false").is_none());
        assert!(find("pipeline-model-parallel-comm-backend", "nccl").is_none());
        assert!(find("spec", "mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec").is_none());
        assert!(find("spec", "mine.mamba mamba_spec").is_some());
        assert!(find("lr", "1e-4").is_none());
    }
}
