//! The training recipe, from the settings.

use super::batch::Batch;
use super::kernels::{attention_kernel, cublas_workspace, fusions, loss};
use super::low_rank::low_rank;
use super::offload::offload;
use super::precision::{fp8, grads_dtype, of_unsloth, params_dtype};
use super::recompute::{named_tensors, recompute};
use super::rollout::rollout;
use super::sharding::{dp_sharding, optimizer, torch_fsdp2};
use super::table::Table;
use super::tuning::{transformers, tuning};
use crate::SettingValue::Bool;
use shardscope_plan::{
    AttentionKernel, Budget, CudaGraphs, Dispatcher, DpSharding, Field, FlashRelease, GraphModules, LeftOut,
    LoadBalancing, Marks, Model, MoeRecipe, NumberFormat, Optimizer, Overlap, Recipe, RouterLoss, Software,
    word,
};
use shardscope_source::Code;

/// The part of the recipe that does not depend on model or machines: stated even if these are missing, so that the user
/// sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basis {
    software: Software,
    params_dtype: NumberFormat,
    grads_dtype: NumberFormat,
    dp_sharding: DpSharding,
    attention_kernel: AttentionKernel,
}

/// The basis from the settings, each resolved once.
pub(super) fn basis(table: &mut Table, software: Software) -> Basis {
    of_unsloth(table, software);
    let params_dtype = params_dtype(table);
    Basis {
        software,
        params_dtype,
        grads_dtype: grads_dtype(table, software, params_dtype),
        dp_sharding: dp_sharding(table),
        attention_kernel: attention_kernel(table, software),
    }
}

/// The recipe from the settings.
pub(super) fn recipe(table: &mut Table, basis: Basis, model: &Model, batch: Batch) -> Option<Recipe> {
    let Basis { software, params_dtype, grads_dtype, dp_sharding, attention_kernel } = basis;
    let recompute = recompute(table, software);
    let named = named_tensors(table);
    torch_fsdp2(table);
    let tuning = tuning(table, software, params_dtype);
    let optimizer = Optimizer { low_rank: low_rank(table), ..optimizer(table) };
    Some(Recipe {
        micro_batch_size: batch.micro,
        global_batch_size: batch.global,
        sample_length: batch.pack.map(|pack| pack.sample),
        num_micro_batches: batch.count,
        params_dtype,
        grads_dtype,
        fp8: fp8(table),
        fp32_residual: table.on(Field::Fp32ResidualConnection),
        optimizer,
        dp_sharding,
        // `?` comes last: everything else is resolved and stated even if recomputation is rejected.
        recompute: recompute?,
        named: named?,
        watched_norms: table.on(Field::WatchedNorms),
        attention_kernel,
        flash_release: match table.chosen::<word::AttentionKernel>() {
            Some(word::AttentionKernel::Flash3) => FlashRelease::Third,
            Some(word::AttentionKernel::Flash4) => FlashRelease::Fourth,
            _ => FlashRelease::Usual,
        },
        hidden_dropout: table.real(Field::HiddenDropout).unwrap_or(0.0) > 0.0,
        attention_dropout: table.real(Field::AttentionDropout).unwrap_or(0.0) > 0.0,
        fusions: fusions(table, software, model),
        loss: loss(table, software),
        overlap: overlap(table),
        moe: moe(table, params_dtype),
        software,
        offload: offload(table),
        wgrad_deferral_limit: wgrad_deferral(table, batch),
        attention_mask: table.on(Field::CreateAttentionMaskInDataloader),
        cublas_workspace: cublas_workspace(table),
        // By substring: the variable holds a list such as `max_split_size_mb:512,expandable_segments:True`.
        expandable_segments: table
            .word(Field::PytorchCudaAllocConf)
            .to_ascii_lowercase()
            .contains("expandable_segments:true"),
        cuda_graphs: cuda_graphs(table),
        budget: budget(table, batch),
        left_out: LeftOut::from_names(&table.words(Field::MemoryLeftOut)),
        headroom: table.real(Field::MemoryHeadroom).unwrap_or(0.0),
        tuning,
        transformers: transformers(table, software),
        rollout: rollout(table, model.seq_length),
        beside: super::beside::beside(table),
        marks: Marks::default(),
    })
}

fn cuda_graphs(table: &mut Table) -> CudaGraphs {
    let modules = table.words(Field::CudaGraphModules);
    // Spellings from before 2026, of which the second concerns generation (`transformer_config.py:__post_init__`).
    let full_iteration = modules.contains(&"full_iteration");
    let (of_layers, others): (Vec<&str>, Vec<&str>) = modules
        .into_iter()
        .filter(|name| *name != "full_iteration" && *name != "full_iteration_inference")
        .partition(|name| *name == "full" || GraphModules::NAMES.contains(name));
    let graphs = match table.chosen::<word::CudaGraphImpl>() {
        None | Some(word::CudaGraphImpl::None) => CudaGraphs::None,
        Some(word::CudaGraphImpl::FullIteration) => CudaGraphs::Iteration,
        _ if full_iteration => CudaGraphs::Iteration,
        _ => CudaGraphs::Layers(GraphModules::from_names(&of_layers)),
    };
    if !others.is_empty() {
        let message = "no modules that a graph can capture: ".to_owned() + &others.join(", ");
        table.warn(Code::NoEffect, Field::CudaGraphModules, &message);
    }
    graphs
}

/// The length of the run: the requested tokens, or else the steps or samples of the script.
fn budget(table: &Table, batch: Batch) -> Budget {
    let samples = table.count(Field::TrainSamples).map(|samples| samples.div_ceil(batch.global.max(1)));
    Budget {
        tokens: table.count(Field::TokenBudget),
        // With 0, scripts leave the number to epochs, whose length is not known.
        steps: table.count(Field::TrainIters).or(samples).filter(|steps| *steps > 0),
        price_per_gpu_hour: table.real(Field::PricePerGpuHour),
        watts_per_gpu: table.real(Field::WattsPerGpu),
    }
}

fn overlap(table: &mut Table) -> Overlap {
    let interleaved = table.degree(Field::VirtualPipelineModelParallelSize) > 1;
    if !interleaved {
        // Megatron also asserts this: 1F1B without interleaving has no other chunk to compute in the meantime.
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

fn moe(table: &mut Table, params_dtype: NumberFormat) -> MoeRecipe {
    let dispatcher = match table.chosen::<word::MoeTokenDispatcherType>() {
        Some(word::MoeTokenDispatcherType::Flex) => Dispatcher::Flex,
        Some(word::MoeTokenDispatcherType::AllToAll | word::MoeTokenDispatcherType::AllToAllSequence) => {
            Dispatcher::AllToAll
        }
        _ => Dispatcher::AllGather,
    };
    let load_balancing = load_balancing(table);
    MoeRecipe {
        dispatcher,
        grouped_gemm: table.on(Field::MoeGroupedGemm),
        capacity_factor: table.real(Field::MoeExpertCapacityFactor).filter(|factor| *factor > 0.0),
        hottest_rank: table.real(Field::MoeHottestRank).unwrap_or(1.0),
        pad_to_capacity: table.on(Field::MoePadExpertInputToCapacity),
        permute_fusion: table.on(Field::MoePermuteFusion),
        router_dtype: match table.chosen::<word::MoeRouterDtype>() {
            // Only fp32 and fp64 change what a router keeps; both are counted as fp32, the common one.
            Some(word::MoeRouterDtype::Fp32 | word::MoeRouterDtype::Fp64) => NumberFormat::Fp32,
            _ => params_dtype,
        },
        load_balancing,
        router_loss: match table.chosen::<word::RouterLoss>() {
            Some(word::RouterLoss::Layers) => Some(RouterLoss::Layers),
            Some(word::RouterLoss::Joined) => Some(RouterLoss::Joined),
            Some(word::RouterLoss::None) | None => None,
        },
        expert_bias: table.on(Field::MoeRouterEnableExpertBias),
        pre_softmax: table.on(Field::MoeRouterPreSoftmax),
        balanced_gate: table.on(Field::MoeBalancedGate),
    }
}

/// The first loss with a weight; Megatron skips one whose weight is 0, its default
/// (`megatron/core/transformer/moe/router.py`).
fn load_balancing(table: &Table) -> LoadBalancing {
    let weights = table.words(Field::MoeAuxLossCoeff);
    for (index, kind) in table.words(Field::MoeRouterLoadBalancingType).into_iter().enumerate() {
        // One weight for several losses applies to all of them.
        let weight = weights.get(index).or(weights.last()).and_then(|weight| weight.parse::<f64>().ok());
        let weighs = weight.is_some_and(|weight| weight != 0.0);
        match kind {
            // Sinkhorn has no weight: it replaces the router's softmax.
            "sinkhorn" => return LoadBalancing::Sinkhorn,
            "aux_loss" if weighs => return LoadBalancing::AuxiliaryLoss,
            "seq_aux_loss" if weighs => return LoadBalancing::SequenceAuxiliaryLoss,
            "global_aux_loss" if weighs => return LoadBalancing::GlobalAuxiliaryLoss,
            _ => {}
        }
    }
    LoadBalancing::None
}

/// Micro-batches whose output-layer weight gradient is deferred: all when no limit is given.
fn wgrad_deferral(table: &Table, batch: Batch) -> u64 {
    if !table.on(Field::DeferEmbeddingWgradCompute) {
        return 0;
    }
    match table.number(Field::WgradDeferralLimit) {
        0 => batch.count,
        limit => limit.min(batch.count),
    }
}
