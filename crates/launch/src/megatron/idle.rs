//! Why a flag changes none of the figures: only flags that are told by this list are said to be without influence.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A reason, the beginnings of flags that it holds for, and whole flags. Without dashes, joined by blanks.
struct Reason {
    why: &'static str,
    starts: &'static str,
    names: &'static str,
}

const fn reason(why: &'static str, starts: &'static str, names: &'static str) -> Reason {
    Reason { why, starts, names }
}

/// The reasons. A name that two of them hold for goes by the first.
const REASONS: &[Reason] = &[
    reason(
        "logging",
        "log- timing- tensorboard- wandb- swanlab- comet- one-logger nvtx- profile pytorch-profiler- otel- straggler- \
         flight-recorder- no-flight-recorder- disable-flight-recorder- disable-straggler- app-tag-run- config-logger- logging- \
         trackio- mlflow-",
        "enable-one-logger no-one-logger record-memory-history record-shapes memory-snapshot-path use-pytorch-profiler \
         disable-log-loss-scale-to-tensorboard no-log-loss-scale-to-tensorboard no-log-learnig-rate-to-tensorboard \
         barrier-with-L1-time no-barrier-with-level-1-timing- no-barrier-with-level-1-timing run-workload-inspector-server \
         moe-per-layer-logging dump-param-to-param-group-map report-to run-name use-wandb use-tensorboard enable-profiling",
    ),
    reason(
        "checkpoint files",
        "save load ckpt- async- dist-ckpt- non-persistent- use-dist- no-save- no-load- no-ckpt- no-strict- no-stream- \
         disable-ckpt- disable-save- disable-strict- disable-stream- auto-detect-ckpt- exit-on-missing- override-ckpt- \
         distrib-optim-fully- persistent-save- rl-durable- convert-",
        "finetune pretrained-checkpoint use-persistent-ckpt-worker use-checkpoint-opt_param-scheduler \
         use-checkpoint-lr-scheduler dist-ckpt-optim-fully-reshardable override-opt_param-scheduler override-lr-scheduler \
         use-mp-args-from-checkpoint-args no-initialization use-cpu-initialization init-model-with-meta-device \
         enable-msc disable-msc s3-cache-path object-storage-cache-path load-main-params-from-ckpt output-dir \
         overwrite-output-dir resume-from-checkpoint no-initialization enable-hf2mg-convert \
         check-weight-hash-across-dp-replicas-interval low-cpu-mem-usage",
    ),
    // The order of copies on the streams, never whether a tensor goes: `bulk_offload_group`, `push_offload_groups`.
    reason(
        "when copies of offloaded activations are issued and waited for",
        "",
        "delay-offload-until-cuda-graph fine-grained-offloading-max-inflight-offloads",
    ),
    reason(
        "training data",
        "data- dataloader- train-data- valid-data- test-data- fim- tokenizer- tiktoken- null-tokenizer- no-tokenizer- sft- \
         mmap- per-dataset- multiple-validation- preprocess dataset eod- reset- vocab- disable-tokenizer- chat- prompt- \
         handler-",
        "split mock-data merge-file num-workers num-dataset-builder-threads no-mmap-bin-files no-data-sharding \
         legacy-tokenizer sft dataloader-type mid-level-dataset-surplus full-validation validation-set-names skip-train \
         data-args-path per-split-data-args-path allow-ambiguous-pad-tokens trust-remote-code sample-rate \
         disable-use-tokenizer-model-from-checkpoint-args no-use-tokenizer-model-from-checkpoint-args use-gigatoken \
         renormalize-blend-weights use-one-sent-docs replication replication-factor replication-jump \
         dataloader-inter-document-masking is-instruction-dataset is-pairwise-dataset variable-seq-lengths \
         split-dataset-ratio num-train-epochs load-from-cache-file tokenizer-not-use-fast padded-samples no-pad-to-seq-lengths seed",
    ),
    reason(
        "learning rate and losses' weights",
        "lr learning- min-lr wsd- warmup weight-decay no-weight-decay start-weight-decay end-weight-decay wd- decoupled- \
         loss-scale clip- mup- qk-clip init-method- hysteresis",
        "use-mup lr min-lr initial-loss-scale min-loss-scale loss-scale-window embedding-init-method-std norm-epsilon \
         mtp-loss-scaling-factor moe-z-loss-coeff moe-router-bias-update-rate moe-input-jitter-eps head-lr-mult \
         apply-wd-to-qk-layernorm moe-router-topk-scaling-factor mtp-detach-heads iterations-to-skip \
         phase-transition-iterations embed-init-std max-grad-norm adam-beta1 adam-beta2 adam-eps adam-epsilon lion-beta1 \
         lion-beta2 sgd-momentum muon-momentum muon-nesterov muon-use-nesterov muon-no-use-nesterov muon-coefficient-type \
         muon-extra-scale-factor muon-scale-mode",
    ),
    reason(
        "evaluation",
        "eval start-eval- exit- report-topk-",
        "skip-eval do-eval do-train adlr-autoresume adlr-autoresume-interval",
    ),
    reason(
        "launch, and what happens on failures",
        "ft- inprocess- fault- error-injection- rerun- distributed-timeout- node- master- rdzv- nccl-communicator- gpu-sniff- \
         enable-ft- calc-ft- manual-gc disable-manual-gc no-manual-gc",
        "local-rank distributed-backend lazy-mpu-init test-mode enable-gloo-process-groups disable-gloo-process-groups \
         check-for-nan-in-loss-and-grad no-check-for-nan-in-loss-and-grad check-for-large-grads check-for-spiky-loss \
         verify-integrity result-rejected-tracker-filename yaml-cfg enable-experimental te-rng-tracker \
         inference-rng-tracker data-parallel-random-init create-all-gather-group fake-process-group tp-comm-bootstrap-backend \
         high-priority-stream-groups sharp-enabled-group standalone use-env train-sync-interval \
         use-same-sampling-seed-across-dp-ranks suggested-communication-unit-size local_rank",
    ),
    reason(
        "only with inference, vision, retrieval or reinforcement learning, whose own switch is not there",
        "inference- rl- no-rl- no-inference- grpo- langrl- img- dino- swin- vision-backbone- vision-pretraining-type bert- \
         retro- retriever- biencoder- ict- mask- disable-dsa- no-dsa- dsa- mamba- logits-load- logits-save- linear- mhc- \
         gdp- kitchen- fsdp-db- gtp- fp4- indexer- titles- evidence- block-data-",
        "decode-only-cuda-graphs flash-decode enable-chunked-prefill disable-chunked-prefill mlp-chunks-for-prefill \
         symmetric-ar-type nccl-all-reduce-for-prefill use-legacy-static-engine cache-mla-latents num-classes num-channels \
         patch-dim output-bert-embeddings classes-fraction iter-per-epoch query-in-block-prob faiss-use-gpu \
         num-speculative-tokens batch-invariant-mode batch-invariant-backend refit-method max-tokens-to-oom embedding-path \
         short-seq-prob max-seqlen-per-dp-cp-rank disable-mamba-mem-eff-path \
         cpu-offloading-retain-pinned-cpu-buffers moe-pad-experts-for-cuda-graph-inference query-key-layer-scaling \
         ep-overlap-early-attn-memory-release",
    ),
    reason(
        "the formula of a layer, whose tensors stay as they are",
        "rope- rotary- yarn- mrope- no-rope- no-yarn- relative-attention- moe-router- mscale activation-func- glu-",
        "use-rope-scaling apply-residual-connection-post-layernorm openai-gelu onnx-safe moe-token-drop-policy \
         moe-expert-rank-capacity-factor moe-apply-probs-on-input moe-use-upcycling moe-upcycling-granularity \
         moe-enable-routing-replay no-persist-layer-norm attention-softmax-in-fp32 mtp-hsm num-layers-at-start-in-bf16 \
         num-layers-at-end-in-bf16 output-logit-dtype moe-shared-expert-glu-interleave-size moe-mlp-glu-interleave-size \
         use-fused-weighted-squared-relu use-te-activation-func scale-emb dim-model-base scale-depth",
    ),
    reason(
        "kernels and buffers that change figures by less than what is told",
        "ddp- tp-comm- disable-tp-comm- no-tp-comm- no-align- disable-align- fp8- disable-fp8- no-fp8- cuda-graph- moe-deepep- \
         moe-hybridep- moe-flex-dispatcher-num- moe-ncclep- moe-permute- moe-single- moe-use- moe-paged- moe-routing- \
         megatron-fsdp- fsdp- no-pin- no-use- disable-symmetric- disable-clone- no-clone- disable-bf16- high-priority-",
        "empty-unused-memory-level no-gradient-reduce-div-fusion disable-jit-fuser flash-attention-version optimizer-cuda-graph \
         enable-full-sharding-in-hsdp use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert \
         overlap-cpu-optimizer-d2h-h2d use-torch-optimizer-for-cpu-offload mla-down-proj-fusion use-ring-exchange-p2p \
         delay-param-gather no-scaled-masked-softmax-fusion scaled-upper-triang-masked-softmax-fusion \
         use-precision-aware-optimizer-no-fp8 npu-deterministic use-fused-mlp use-fused-ring-attention-update \
         use-cp-send-recv-overlap use-ascend-mc2 mc2 use-mc2 no-shared-storage jit-compile ddp-average-in-collective \
         muon-fp32-matmul-prec muon-use-syrk muon-split-qkv muon-no-split-qkv",
    ),
];

/// Of the reasons, the first ones: they hold for any program that trains, whatever else it is told.
const ANYWHERE: usize = 6;

/// Options of slime and miles beside Megatron's: how rollouts are sampled and rewarded, and what the launch tells by itself.
const ROLLOUTS: &str = "apply-chat-template input-key label-key metadata-key tool-key rm-type custom-rm-path reward-key \
    eval-reward-key num-rollout num-epoch rollout-shuffle rollout-seed rollout-temperature rollout-top-p rollout-top-k \
    rollout-stop rollout-stop-token-ids balance-data eps-clip eps-clip-high kl-loss-coef kl-loss-type kl-coef use-kl-loss \
    use-tis tis-clip tis-clip-low n-samples-per-eval-prompt actor-num-nodes actor-num-gpus-per-node hf-checkpoint rollout-function-path \
    disable-compute-advantages-and-returns use-opd opd-type opd-kl-coef opd-teacher-ckpt-step";

/// Whether such an option changes none of the figures at its value: PPO's estimator brings a critic, and a weight of the
/// entropy its gradient.
pub(super) fn is_of_rollouts(name: &str, value: &str) -> bool {
    match name {
        "advantage-estimator" => value != "ppo",
        "entropy-coef" => value.parse::<f64>() == Ok(0.0),
        _ => ROLLOUTS.split_ascii_whitespace().any(|known| known == name),
    }
}

/// Why a flag that no parser here knows changes none of the figures; none when no reason is known.
pub(crate) fn reason_anywhere(name: &str) -> Option<&'static str> {
    reason_among(ANYWHERE, name)
}

/// Why a flag, without dashes and dashed, changes none of the figures; none when no reason is known.
pub(super) fn reason_of(name: &str) -> Option<&'static str> {
    reason_among(REASONS.len(), name)
}

/// Whole flags with the places of their reasons.
fn names() -> &'static BTreeMap<&'static str, usize> {
    static NAMES: OnceLock<BTreeMap<&'static str, usize>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names = BTreeMap::new();
        for (place, reason) in REASONS.iter().enumerate() {
            for name in reason.names.split_ascii_whitespace() {
                names.entry(name).or_insert(place);
            }
        }
        names
    })
}

/// Among the first `count` reasons: one that names the flag whole, else one that holds for its beginning.
fn reason_among(count: usize, name: &str) -> Option<&'static str> {
    let begun = |reason: &Reason| reason.starts.split_ascii_whitespace().any(|start| name.starts_with(start));
    let named = names().get(name).copied().filter(|place| *place < count);
    let place = named.or_else(|| REASONS.iter().take(count).position(begun))?;
    REASONS.get(place).map(|reason| reason.why)
}

#[cfg(test)]
mod tests {
    use super::reason_of;
    use crate::megatron::{flags, renamed, unmodelled};
    use shardscope_plan::Field;

    #[test]
    fn every_flag_has_a_setting_a_reason_or_stops_the_verdict() {
        let mut without = Vec::new();
        for flag in flags::all() {
            let known =
                Field::named(flag.dest.unwrap_or(flag.name)).is_some() || renamed::find(flag.name).is_some();
            if !known && unmodelled::find(flag.name, "?").is_none() && reason_of(flag.name).is_none() {
                without.push(flag.name);
            }
        }
        assert!(without.is_empty(), "neither read, nor said why it changes nothing: {without:?}");
    }
}
