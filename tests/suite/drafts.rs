//! Plans written by hand, for tests that need one without reading a script.

use serde_json::Value;
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::*;
use shardscope::units::{Bytes, BytesPerSecond, FlopsPerSecond};

/// The four parts of a plan, which can be changed before they are checked.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) model: Model,
    pub(crate) cluster: Cluster,
    pub(crate) layout: Layout,
    pub(crate) recipe: Recipe,
}

impl Draft {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            model: plan.model().clone(),
            cluster: plan.cluster().clone(),
            layout: plan.layout().clone(),
            recipe: plan.recipe().clone(),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        let Self { mut model, mut cluster, layout, recipe } = self.clone();
        // Values that a draft does not set follow from those that it sets.
        model.max_position_embeddings = model.max_position_embeddings.max(model.seq_length);
        cluster.gpus_per_node = cluster.gpus_per_node.min(layout.world_size);
        cluster.num_nodes = layout.world_size / cluster.gpus_per_node.max(1);
        Plan::new(model, cluster, layout, recipe).unwrap_or_else(|reasons| panic!("no plan: {reasons:?}"))
    }
}

/// The sizes of a recorded case, by the letters used in all recordings of saved tensors.
pub(crate) fn recorded_shape(model: &mut Model, case: &Value) {
    model.num_layers = int(case, "layers");
    model.hidden_size = int(case, "h");
    model.ffn_hidden_size = int(case, "f");
    model.num_attention_heads = int(case, "a");
    model.num_query_groups = int(case, "k");
    model.kv_channels = int(case, "d");
    model.seq_length = int(case, "s");
    model.padded_vocab_size = int(case, "V");
}

/// Bytes that `operators` keep for backward.
pub(crate) fn kept(x: &Symbols<'_>, operators: &[Operator]) -> u64 {
    operators.iter().flat_map(|operator| operator.saved(x)).map(|saved| saved.bytes.get()).sum()
}

/// A dense LLaMA-like layer stack on one GPU.
pub(crate) fn draft() -> Draft {
    Draft { model: model(), cluster: cluster(), layout: layout(), recipe: recipe() }
}

fn model() -> Model {
    Model {
        num_layers: 2,
        hidden_size: 256,
        ffn_hidden_size: 512,
        num_attention_heads: 8,
        num_query_groups: 8,
        kv_channels: 32,
        seq_length: 64,
        max_position_embeddings: 64,
        padded_vocab_size: 512,
        vocab_padding: None,
        activation: Activation::Swiglu,
        normalization: Normalization::RmsNorm,
        position_embedding: PositionEmbedding::Rope,
        linear_bias: LinearBias::None,
        qk_layernorm: false,
        embeddings: Embeddings::Untied,
        attention_softmax: AttentionSoftmax::Vanilla,
        latent: None,
        experts: None,
        mixers: Mixers::default(),
        mtp_num_layers: 0,
        arrangement: Arrangement::default(),
        vision: None,
        encoder: None,
    }
}

fn cluster() -> Cluster {
    let link = Link { name: "link".into(), bandwidth: BytesPerSecond::giga(450.0) };
    Cluster {
        num_nodes: 1,
        gpus_per_node: 8,
        fast_domain: 8,
        measured: Measured::default(),
        accelerator: Accelerator {
            name: "H100-SXM".into(),
            generation: Generation::H100,
            capability: None,
            tpu: false,
            memory: Bytes::gib(80),
            memory_bandwidth: BytesPerSecond::tera(3.35),
            peaks: Peaks {
                fp32: FlopsPerSecond::tera(67.0),
                half: FlopsPerSecond::tera(989.0),
                fp8: Some(FlopsPerSecond::tera(1979.0)),
                fp4: None,
            },
            multiprocessors: 132,
            fast_link: link.clone(),
            host_link: link.clone(),
            network: link,
            context: Bytes::mib(500),
            processor: Processor::SapphireRapids,
            source: "test".into(),
        },
    }
}

fn layout() -> Layout {
    Layout {
        world_size: 1,
        tensor: 1,
        pipeline: 1,
        virtual_pipeline: 1,
        context: 1,
        expert: 1,
        expert_tensor: 1,
        data: 1,
        expert_data: 1,
        sequence_parallel: false,
        rank_order: RankOrder::TpCpEpDpPp,
        context_kind: ContextKind::PointToPoint,
        hierarchical_context: Vec::new(),
        distributed_optimizer_instances: 1,
        second_shards: 0,
        microbatch_group_size: 1,
        schedule: PipelineSchedule::OneForwardOneBackward,
        split: StageSplit::EVEN,
        stages: even_stages(2, 1, 0),
    }
}

/// Eight dense layers, TP 8 on four nodes of H100s, as settings, with those in `set` changed or added.
pub(crate) fn settled(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("accelerator", "H100-SXM"),
        ("num_nodes", "4"),
        ("gpus_per_node", "8"),
        ("tensor_model_parallel_size", "8"),
        ("num_layers", "8"),
        ("hidden_size", "8192"),
        ("num_attention_heads", "64"),
        ("seq_length", "4096"),
        ("vocab_size", "32000"),
        ("micro_batch_size", "1"),
        ("bf16", "true"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings).plan.expect("a plan")
}

/// `layers` over `pipeline` ranks, including all ends.
pub(crate) fn even_stages(layers: u64, pipeline: u64, mtp: u64) -> StageMap {
    let each = layers / pipeline.max(1);
    let ranges: Vec<Vec<[u64; 2]>> =
        (0..pipeline).map(|rank| vec![[rank * each, (rank + 1) * each]]).collect();
    stage_map(&ranges, mtp)
}

/// The map of `[first, end]` per rank and chunk.
pub(crate) fn stage_map(ranges: &[Vec<[u64; 2]>], mtp: u64) -> StageMap {
    let ranks = ranges.len();
    let stages = ranges
        .iter()
        .enumerate()
        .map(|(rank, chunks)| Stage {
            chunks: chunks
                .iter()
                .enumerate()
                .map(|(index, &[first, end])| {
                    let last = rank + 1 == ranks && index + 1 == chunks.len();
                    Chunk {
                        layers: first..end,
                        embedding: rank == 0 && index == 0,
                        output_layer: last,
                        mtp_layers: if last { mtp } else { 0 },
                    }
                })
                .collect(),
        })
        .collect();
    StageMap { stages }
}

fn recipe() -> Recipe {
    Recipe {
        micro_batch_size: 1,
        global_batch_size: 1,
        sample_length: None,
        num_micro_batches: 1,
        params_dtype: NumberFormat::Bf16,
        grads_dtype: NumberFormat::Fp32,
        fp8: None,
        fp32_residual: false,
        optimizer: Optimizer {
            kind: OptimizerKind::Adam,
            precision_aware: false,
            shares_weights: false,
            paged: false,
            whole_embedding: false,
            low_rank: None,
            main_params: NumberFormat::Fp32,
            exp_avg: NumberFormat::Fp32,
            exp_avg_sq: NumberFormat::Fp32,
            cpu_offload_fraction: 0.0,
            states: StateFormat::Plain,
        },
        dp_sharding: DpSharding::OptimizerStates,
        recompute: Recompute::None,
        named: Default::default(),
        watched_norms: false,
        attention_kernel: AttentionKernel::Flash,
        flash_release: FlashRelease::Usual,
        hidden_dropout: false,
        attention_dropout: false,
        fusions: Fusions {
            bias_activation: true,
            masked_softmax: true,
            softmax_in_fp32: false,
            gradient_accumulation: true,
            bias_dropout_add: true,
            rope: false,
            norm: true,
            memory_efficient_norm: false,
            compiled_layers: false,
        },
        loss: LossKind::Unfused,
        overlap: Overlap {
            grad_reduce: false,
            param_gather: false,
            tensor: false,
            pipeline: false,
            expert: false,
            shared_expert: false,
            tensor_backward: false,
        },
        moe: MoeRecipe {
            dispatcher: Dispatcher::AllToAll,
            grouped_gemm: true,
            capacity_factor: None,
            hottest_rank: 1.0,
            pad_to_capacity: false,
            permute_fusion: false,
            router_dtype: NumberFormat::Bf16,
            load_balancing: LoadBalancing::None,
            router_loss: None,
            expert_bias: false,
            pre_softmax: false,
            balanced_gate: false,
        },
        software: Software::MegatronCoreLocal,
        offload: Offload::default(),
        wgrad_deferral_limit: 0,
        attention_mask: false,
        cublas_workspace: None,
        expandable_segments: false,
        cuda_graphs: CudaGraphs::None,
        budget: Budget::default(),
        marks: shardscope::plan::Marks::default(),
        left_out: LeftOut::default(),
        headroom: 0.04,
        tuning: Tuning::default(),
        transformers: Transformers::default(),
        rollout: None,
        beside: shardscope::plan::Beside::default(),
    }
}

/// A draft with the shape of a recorded run, given by the names in its Hugging Face configuration.
pub(crate) fn configured(case: &Value) -> Draft {
    let mut draft = draft();
    let model = &mut draft.model;
    model.num_layers = int(case, "num_hidden_layers");
    model.hidden_size = int(case, "hidden_size");
    model.ffn_hidden_size = int(case, "intermediate_size");
    model.num_attention_heads = int(case, "num_attention_heads");
    model.num_query_groups = int(case, "num_key_value_heads");
    model.kv_channels = model.hidden_size / model.num_attention_heads;
    model.padded_vocab_size = int(case, "vocab_size");
    if case["tied"] == true {
        model.embeddings = Embeddings::Tied;
    }
    draft.layout.stages = even_stages(model.num_layers, 1, 0);
    draft
}

/// An integer of the case.
#[track_caller]
pub(crate) fn int(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} is no whole number: {}", value[key]))
}

/// A boolean of the case.
#[track_caller]
pub(crate) fn flag(value: &Value, key: &str) -> bool {
    value[key].as_bool().unwrap_or_else(|| panic!("{key} is no boolean: {}", value[key]))
}

/// The cases of a data file.
#[track_caller]
pub(crate) fn cases(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("JSON");
    let cases = document["cases"].as_array().expect("cases").clone();
    assert!(!cases.is_empty());
    cases
}
