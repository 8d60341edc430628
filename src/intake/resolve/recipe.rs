//! How it is trained, from the settings.

use super::batch::Batch;
use super::setting::SettingValue::{Bool, Int, List, Text};
use super::table::Table;
use crate::catalog;
use crate::quantity::Bytes;
use crate::plan::{
    Activation, AttentionKernel, Contradiction, Dispatcher, DpSharding, Field, Fp8, Fusions, LoadBalancing,
    LossKind, Model, MoeRecipe, Number, Offload, Optimizer, OptimizerKind, Overlap, Recipe, Recompute,
    RecomputeModule, Software,
};

/// Settings of the recipe that follow without model or machines.
pub(super) fn state(table: &mut Table, software: Software) {
    let params_dtype = params_dtype(table);
    grads_dtype(table, params_dtype);
    dp_sharding(table);
    attention_kernel(table, software);
}

/// The recipe of the settings.
pub(super) fn recipe(table: &mut Table, software: Software, model: &Model, batch: Batch) -> Option<Recipe> {
    let params_dtype = params_dtype(table);
    let recompute = recompute(table, software);
    torch_fsdp2(table);
    Some(Recipe {
        micro_batch_size: batch.micro,
        global_batch_size: batch.global,
        num_micro_batches: batch.count,
        params_dtype,
        grads_dtype: grads_dtype(table, params_dtype),
        fp8: fp8(table),
        fp32_residual: table.on(Field::Fp32ResidualConnection),
        optimizer: optimizer(table),
        dp_sharding: dp_sharding(table),
        recompute: recompute?,
        attention_kernel: attention_kernel(table, software),
        hidden_dropout: table.real(Field::HiddenDropout).unwrap_or(0.0) > 0.0,
        attention_dropout: table.real(Field::AttentionDropout).unwrap_or(0.0) > 0.0,
        fusions: fusions(table, software, model),
        loss: loss(table, software),
        overlap: overlap(table),
        moe: moe(table, params_dtype),
        software,
        offload: Offload {
            activation_layers: table.count(Field::CpuOffloadingNumLayers).unwrap_or(0),
            optimizer: table.on(Field::OffloadOptimizer),
            parameters: table.on(Field::OffloadParam),
        },
        wgrad_deferral_limit: wgrad_deferral(table, batch),
        attention_mask: table.on(Field::CreateAttentionMaskInDataloader),
        cublas_workspace: cublas_workspace(table),
        expandable_segments: table
            .word(Field::PytorchCudaAllocConf)
            .to_ascii_lowercase()
            .contains("expandable_segments:true"),
        cuda_graphs: !matches!(table.word(Field::CudaGraphImpl), "" | "none"),
    })
}

fn number(name: &str) -> Option<Number> {
    match name {
        "fp32" => Some(Number::Fp32),
        "bf16" => Some(Number::Bf16),
        "fp16" => Some(Number::Fp16),
        "fp8" => Some(Number::Fp8),
        _ => None,
    }
}

fn params_dtype(table: &mut Table) -> Number {
    let first = !table.has(Field::ParamsDtype);
    if first && table.on(Field::Bf16) && table.on(Field::Fp16) {
        let message = "bf16 and fp16 exclude each other".to_owned();
        table.refuse(Contradiction::new("two-precisions", &[Field::Fp16, Field::Bf16], message));
    }
    let (name, rule) = match (table.on(Field::Bf16), table.on(Field::Fp16)) {
        (true, _) => ("bf16", "--bf16"),
        (false, true) => ("fp16", "--fp16"),
        (false, false) => ("fp32", "the default: neither --bf16 nor --fp16"),
    };
    if name == "fp32" {
        table.default(Field::ParamsDtype, Text(name.to_owned()), rule);
    }
    table.derive(Field::ParamsDtype, Text(name.to_owned()), rule);
    number(table.word(Field::ParamsDtype)).unwrap_or(Number::Fp32)
}

/// Format of gradient accumulation and reduction (`arguments.py:validate_args`).
fn grads_dtype(table: &mut Table, params: Number) -> Number {
    let wide = params == Number::Bf16
        && !table.on(Field::GradReduceInBf16)
        && matches!(table.word(Field::MainGradsDtype), "" | "fp32");
    if table.on(Field::GradReduceInBf16) && params == Number::Bf16 {
        let rule = "off with --grad-reduce-in-bf16";
        table.overrule(Field::AccumulateAllreduceGradsInFp32, Bool(false), rule);
    }
    if wide {
        let rule = "on with --bf16, unless gradients are reduced in bf16";
        table.derive(Field::AccumulateAllreduceGradsInFp32, Bool(true), rule);
    }
    table.default(Field::AccumulateAllreduceGradsInFp32, Bool(false), "off unless asked for");
    let dtype = if table.on(Field::AccumulateAllreduceGradsInFp32) { Number::Fp32 } else { params };
    let rule = "fp32 with accumulate_allreduce_grads_in_fp32, else as the weights";
    table.derive(Field::GradsDtype, Text(dtype.name().to_owned()), rule);
    number(table.word(Field::GradsDtype)).unwrap_or(dtype)
}

fn fp8(table: &mut Table) -> Option<Fp8> {
    let four = !table.word(Field::Fp4).is_empty();
    if four && table.has(Field::Fp8) {
        let message = "fp4 and fp8 matmuls exclude each other".to_owned();
        table.refuse(Contradiction::new("two-precisions", &[Field::Fp4, Field::Fp8], message));
    }
    let format = table.word(Field::Fp8);
    if format.is_empty() && !four {
        return None;
    }
    let recipe = if four { "nvfp4" } else { table.word(Field::Fp8Recipe) };
    Some(Fp8 {
        format: if four { "e2m1".to_owned() } else { format.to_owned() },
        recipe: if recipe.is_empty() { "delayed".to_owned() } else { recipe.to_owned() },
        param_gather: table.on(Field::Fp8ParamGather),
    })
}

fn optimizer(table: &Table) -> Optimizer {
    let format = |field| number(table.word(field)).unwrap_or(Number::Fp32);
    let kind = match table.word(Field::Optimizer) {
        "sgd" if table.real(Field::SgdMomentum).unwrap_or(0.9) > 0.0 => OptimizerKind::SgdMomentum,
        "sgd" => OptimizerKind::Sgd,
        "muon" | "dist_muon" | "adaptive_muon" => OptimizerKind::Muon,
        _ => OptimizerKind::Adam,
    };
    let offloaded = table.on(Field::OptimizerCpuOffload);
    Optimizer {
        kind,
        precision_aware: table.on(Field::UsePrecisionAwareOptimizer),
        main_params: format(Field::MainParamsDtype),
        exp_avg: format(Field::ExpAvgDtype),
        exp_avg_sq: format(Field::ExpAvgSqDtype),
        cpu_offload_fraction: if offloaded {
            table.real(Field::OptimizerOffloadFraction).unwrap_or(1.0)
        } else {
            0.0
        },
    }
}

fn dp_sharding(table: &mut Table) -> DpSharding {
    let (stage, rule) = match () {
        () if table.on(Field::UseTorchFsdp2) => (3, "PyTorch FSDP2 shards weights, gradients and states"),
        () if table.on(Field::UseMegatronFsdp) => match table.word(Field::DataParallelShardingStrategy) {
            "no_shard" => (0, "Megatron-FSDP, no_shard"),
            "optim" => (1, "Megatron-FSDP, optim"),
            "optim_grads" => (2, "Megatron-FSDP, optim_grads"),
            _ => (3, "Megatron-FSDP, optim_grads_params"),
        },
        () if table.on(Field::UseDistributedOptimizer) => {
            (1, "the distributed optimizer shards optimizer states")
        }
        () => (0, "without the distributed optimizer every replica holds all"),
    };
    if stage == 0 {
        table.default(Field::ZeroStage, Int(stage), rule);
    }
    table.derive(Field::ZeroStage, Int(stage), rule);
    let deepspeed = matches!(table.word(Field::Software), "megatron_deepspeed" | "gpt_neox");
    match table.count(Field::ZeroStage).unwrap_or(0) {
        0 if deepspeed && table.on(Field::Bf16) => {
            table.remark(Field::ZeroStage, "DeepSpeed's bf16 optimizer shards its states even at stage 0");
            DpSharding::OptimizerStates
        }
        0 => DpSharding::Replicated,
        1 => DpSharding::OptimizerStates,
        2 => DpSharding::Gradients,
        _ => DpSharding::Parameters,
    }
}

/// What PyTorch's FSDP2 excludes (`arguments.py:validate_args`).
fn torch_fsdp2(table: &mut Table) {
    if !table.on(Field::UseTorchFsdp2) {
        return;
    }
    let excluded = [
        (
            table.degree(Field::PipelineModelParallelSize) > 1,
            Field::PipelineModelParallelSize,
            "pipeline parallelism",
        ),
        (
            table.degree(Field::ExpertModelParallelSize) > 1,
            Field::ExpertModelParallelSize,
            "expert parallelism",
        ),
        (
            table.on(Field::UseDistributedOptimizer),
            Field::UseDistributedOptimizer,
            "the distributed optimizer",
        ),
        (table.on(Field::Fp16), Field::Fp16, "fp16"),
        (
            !table.on(Field::UntieEmbeddingsAndOutputWeights),
            Field::UntieEmbeddingsAndOutputWeights,
            "tied embeddings (add --untie-embeddings-and-output-weights)",
        ),
        (
            table.on(Field::GradientAccumulationFusion),
            Field::GradientAccumulationFusion,
            "fused gradient accumulation (add --no-gradient-accumulation-fusion)",
        ),
    ];
    for (at_fault, field, what) in excluded {
        if at_fault {
            let message = format!("--use-torch-fsdp2 excludes {what}");
            table.refuse(Contradiction::new("torch-fsdp2", &[field, Field::UseTorchFsdp2], message));
        }
    }
}

/// What is recomputed; none when the settings contradict each other (`transformer_config.py:__post_init__`).
fn recompute(table: &mut Table, software: Software) -> Option<Recompute> {
    let refuse = |table: &mut Table, message: &str, hint: &str| {
        let fields = [Field::RecomputeGranularity, Field::RecomputeMethod, Field::RecomputeNumLayers];
        table.refuse(Contradiction::new("recompute", &fields, message.to_owned()).hint(hint));
        None
    };
    let method = table.word(Field::RecomputeMethod).to_owned();
    if table.on(Field::DistributeSavedActivations) && table.word(Field::RecomputeGranularity) != "full" {
        let hint = "add --recompute-granularity full, or leave --distribute-saved-activations out";
        return refuse(table, "distributing saved activations needs full recomputation", hint);
    }
    match table.word(Field::RecomputeGranularity) {
        "" => Some(Recompute::None),
        "selective" if !method.is_empty() => refuse(
            table,
            "selective recomputation applies to every layer and takes no method",
            "leave --recompute-method out, or take --recompute-granularity full",
        ),
        "selective" => Some(selective(table, software)),
        _ if method.is_empty() => refuse(
            table,
            "full recomputation needs a method",
            "add --recompute-method uniform (or block) and --recompute-num-layers",
        ),
        _ => {
            let Some(num_layers) = table.count(Field::RecomputeNumLayers) else {
                return refuse(
                    table,
                    "full recomputation needs a number of layers",
                    "add --recompute-num-layers 1",
                );
            };
            let distribute = table.on(Field::DistributeSavedActivations);
            if method != "block" && num_layers == 0 {
                return refuse(
                    table,
                    "uniform recomputation needs units of at least one layer",
                    "--recompute-num-layers 1",
                );
            }
            if method == "block" {
                Some(Recompute::Block { num_layers, distribute })
            } else {
                Some(Recompute::Uniform { num_layers, distribute })
            }
        }
    }
}

fn selective(table: &mut Table, software: Software) -> Recompute {
    let core = List(vec![Text("core_attn".to_owned())]);
    table.default(Field::RecomputeModules, core, super::defaults::whose(software));
    let mut modules = Vec::new();
    let mut unknown = Vec::new();
    for name in table.words(Field::RecomputeModules) {
        match module(name) {
            Some(module) => modules.push(module),
            None => unknown.push(name.to_owned()),
        }
    }
    if !unknown.is_empty() {
        let message = format!("recompute modules that are not estimated yet: {}", unknown.join(", "));
        table.warn("not-estimated", Field::RecomputeModules, message);
    }
    // The legacy models recompute the core of their own attention, never the flash kernel's.
    if software == Software::MegatronLegacy
        && table.on(Field::UseFlashAttn)
        && modules.contains(&RecomputeModule::CoreAttention)
    {
        table.warn(
            "no-effect",
            Field::RecomputeGranularity,
            "the legacy models do not recompute flash attention",
        );
        return Recompute::None;
    }
    Recompute::Selective(modules)
}

fn module(name: &str) -> Option<RecomputeModule> {
    Some(match name {
        "core_attn" => RecomputeModule::CoreAttention,
        "moe_act" => RecomputeModule::MoeActivation,
        "layernorm" => RecomputeModule::LayerNorm,
        "mla_up_proj" => RecomputeModule::MlaUpProjection,
        "mlp" => RecomputeModule::Mlp,
        "moe" => RecomputeModule::Moe,
        "shared_experts" => RecomputeModule::SharedExperts,
        _ => return None,
    })
}

/// Which attention kernel each software runs: the legacy models and Megatron-DeepSpeed flash attention
/// when asked to, core's own layers none, Transformer Engine what `--attention-backend` says or what it prefers.
fn attention_kernel(table: &mut Table, software: Software) -> AttentionKernel {
    let (name, rule) = match software {
        Software::MegatronLegacy | Software::MegatronDeepspeed if table.on(Field::UseFlashAttn) => {
            ("flash", "--use-flash-attn")
        }
        Software::MegatronLegacy | Software::MegatronDeepspeed => ("unfused", "without --use-flash-attn"),
        Software::MegatronCoreLocal => ("unfused", "core's own layers have no fused attention"),
        Software::MegatronCoreTe => match table.word(Field::AttentionBackend) {
            "unfused" | "local" => ("unfused", "--attention-backend"),
            "fused" => ("fused", "--attention-backend"),
            "flash" => ("flash", "--attention-backend"),
            _ => engines_choice(table),
        },
        _ => match table.word(Field::AttentionBackend) {
            "unfused" | "local" => ("unfused", "--attention-backend"),
            "fused" => ("fused", "--attention-backend"),
            "flash" => ("flash", "--attention-backend"),
            _ => ("flash", "flash attention, where the software chooses by itself"),
        },
    };
    table.derive(Field::AttentionKernel, Text(name.to_owned()), rule);
    match table.word(Field::AttentionKernel) {
        "unfused" => AttentionKernel::Unfused,
        "fused" => AttentionKernel::Fused,
        _ => AttentionKernel::Flash,
    }
}

/// Bytes of a cuBLAS workspace configured as `:KiB:count`, any number of times; deterministic runs must set
/// `:4096:8` or less (PyTorch, `torch.use_deterministic_algorithms`).
fn cublas_workspace(table: &Table) -> Option<Bytes> {
    let asked = table.word(Field::CublasWorkspaceConfig);
    let sizes: Vec<u64> = asked.split(':').filter_map(|part| part.trim().parse().ok()).collect();
    let kib = sizes.chunks_exact(2).fold(0_u64, |sum, pair| sum.saturating_add(pair[0].saturating_mul(pair[1])));
    match kib {
        0 if table.on(Field::DeterministicMode) => Some(Bytes::mib(32)),
        0 => None,
        kib => Some(Bytes::new(kib.saturating_mul(1024))),
    }
}

/// What Transformer Engine takes when it is left to it
/// (`transformer_engine/pytorch/attention/dot_product_attention/utils.py:get_attention_backend`).
fn engines_choice(table: &Table) -> (&'static str, &'static str) {
    let may = |field| table.switch(field).unwrap_or(true);
    let capability = catalog::accelerator(table.word(Field::Accelerator)).and_then(|found| found.capability());
    let fixed = table.on(Field::DeterministicMode) || !may(Field::NvteAllowNondeterministicAlgo);
    match (may(Field::NvteFlashAttn), may(Field::NvteFusedAttn), capability) {
        (false, false, _) => ("unfused", "NVTE_FLASH_ATTN and NVTE_FUSED_ATTN are 0"),
        (false, true, _) => ("fused", "NVTE_FLASH_ATTN is 0"),
        (true, false, _) => ("flash", "NVTE_FUSED_ATTN is 0"),
        (_, _, Some(10..)) if fixed => {
            ("flash", "Transformer Engine's choice for deterministic runs from Blackwell on")
        }
        (_, _, Some(9..)) => ("fused", "Transformer Engine prefers cuDNN's fused attention from Hopper on"),
        _ => ("flash", "Transformer Engine prefers flash attention before Hopper"),
    }
}

fn fusions(table: &mut Table, software: Software, model: &Model) -> Fusions {
    if table.on(Field::ApplyQueryKeyLayerScaling) {
        let rule = "on with apply_query_key_layer_scaling";
        table.derive(Field::AttentionSoftmaxInFp32, Bool(true), rule);
    }
    table.default(Field::AttentionSoftmaxInFp32, Bool(false), super::defaults::whose(software));
    if table.word(Field::PositionEmbeddingType) != "rope" {
        table.overrule(Field::ApplyRopeFusion, Bool(false), "off for other position embeddings than rope");
    }
    let bias_activation = match model.activation {
        Activation::Swiglu => table.on(Field::BiasSwigluFusion),
        // validate_args turns it off without biases.
        Activation::Gelu => table.on(Field::BiasGeluFusion) && table.on(Field::AddBiasLinear),
        Activation::Geglu => table.on(Field::BiasGeluFusion) && software != Software::MegatronLegacy,
        Activation::SquaredRelu => false,
    };
    Fusions {
        bias_activation,
        masked_softmax: table.on(Field::MaskedSoftmaxFusion),
        softmax_in_fp32: table.on(Field::AttentionSoftmaxInFp32),
        gradient_accumulation: table.on(Field::GradientAccumulationFusion),
        bias_dropout_add: table.on(Field::BiasDropoutFusion),
        rope: table.on(Field::ApplyRopeFusion),
        memory_efficient_norm: table.on(Field::MemoryEfficientLayerNorm),
    }
}

fn loss(table: &Table, software: Software) -> LossKind {
    if matches!(software, Software::MegatronLegacy | Software::MegatronDeepspeed) {
        return LossKind::Legacy;
    }
    match (table.on(Field::CrossEntropyLossFusion), table.word(Field::CrossEntropyFusionImpl)) {
        (false, _) => LossKind::Unfused,
        (true, "te") => LossKind::TransformerEngine,
        (true, _) => LossKind::NativeFused,
    }
}

fn overlap(table: &mut Table) -> Overlap {
    let interleaved = table.degree(Field::VirtualPipelineModelParallelSize) > 1;
    if !interleaved {
        table.overrule(Field::OverlapP2pComm, Bool(false), "off without interleaving");
    }
    Overlap {
        grad_reduce: table.on(Field::OverlapGradReduce),
        param_gather: table.on(Field::OverlapParamGather),
        tensor: table.on(Field::TpCommOverlap),
        pipeline: table.on(Field::OverlapP2pComm),
        expert: table.on(Field::OverlapMoeExpertParallelComm),
        shared_expert: table.on(Field::MoeSharedExpertOverlap),
        tensor_backward: table.on(Field::AsyncTensorModelParallelAllreduce),
    }
}

fn moe(table: &mut Table, params_dtype: Number) -> MoeRecipe {
    let dispatcher = match table.word(Field::MoeTokenDispatcherType) {
        "alltoall" | "alltoall_seq" => Dispatcher::AllToAll,
        "flex" => Dispatcher::Flex,
        _ => Dispatcher::AllGather,
    };
    let balancing = table.words(Field::MoeRouterLoadBalancingType).first().map_or("", |first| *first);
    let load_balancing = match balancing {
        "sinkhorn" => LoadBalancing::Sinkhorn,
        "none" => LoadBalancing::None,
        _ => LoadBalancing::AuxiliaryLoss,
    };
    MoeRecipe {
        dispatcher,
        grouped_gemm: table.on(Field::MoeGroupedGemm),
        capacity_factor: table.real(Field::MoeExpertCapacityFactor).filter(|factor| *factor > 0.0),
        pad_to_capacity: table.on(Field::MoePadExpertInputToCapacity),
        permute_fusion: table.on(Field::MoePermuteFusion),
        router_dtype: match table.word(Field::MoeRouterDtype) {
            "fp32" | "fp64" => Number::Fp32,
            _ => params_dtype,
        },
        load_balancing,
        pre_softmax: table.on(Field::MoeRouterPreSoftmax),
    }
}

/// Micro-batches whose output-layer weight gradient is deferred: all when no limit is given.
fn wgrad_deferral(table: &Table, batch: Batch) -> u64 {
    if !table.on(Field::DeferEmbeddingWgradCompute) {
        return 0;
    }
    match table.count(Field::WgradDeferralLimit).unwrap_or(0) {
        0 => batch.count,
        limit => limit.min(batch.count),
    }
}
