//! Published training runs as plans: one line of `data/measured/steps.tsv` each.

use std::collections::HashMap;

use shardscope::catalog::accelerator;
use shardscope::json::Json;
use shardscope::plan::*;
use shardscope::quantity::BytesPerSecond;

/// The development half of the measured step times.
const STEPS: &str = include_str!("../../../tests/data/measured/steps.tsv");

/// One published run.
#[derive(Clone, Debug)]
pub struct Row {
    columns: HashMap<&'static str, &'static str>,
}

impl Row {
    /// Every row.
    pub fn all() -> Vec<Self> {
        let mut lines = STEPS.lines();
        let header: Vec<&'static str> = lines.next().unwrap_or("").split('\t').collect();
        lines.map(|line| Self { columns: header.iter().copied().zip(line.split('\t')).collect() }).collect()
    }

    /// What stands in `column`, as it is written.
    ///
    /// # Panics
    /// Where there is no such column.
    pub fn text(&self, column: &str) -> &'static str {
        self.columns.get(column).copied().unwrap_or_else(|| panic!("no column {column}"))
    }

    fn number(&self, column: &str) -> u64 {
        self.maybe(column).unwrap_or_else(|| panic!("{} has no {column}", self.text("id")))
    }

    fn maybe(&self, column: &str) -> Option<u64> {
        self.text(column).parse().ok()
    }

    fn yes(&self, column: &str) -> bool {
        self.text(column) == "1"
    }

    fn has(&self, flag: char) -> bool {
        self.text("overlap").contains(flag)
    }

    /// Seconds of a step, as published.
    pub fn measured(&self) -> f64 {
        self.text("measured").parse().expect("seconds")
    }

    /// Where the row is from.
    pub fn family(&self) -> &'static str {
        self.text("family")
    }

    /// Whether the model has routed experts.
    pub fn is_moe(&self) -> bool {
        self.maybe("experts").is_some()
    }

    /// Whether weights are sharded over the replicas (FSDP, ZeRO-3).
    pub fn sharded_weights(&self) -> bool {
        self.text("sharding") == "zero3"
    }

    /// The run as a plan.
    pub fn try_plan(&self) -> Result<Plan, String> {
        let model = self.model();
        let layout = self.layout(&model);
        let recipe = self.recipe(&layout);
        Plan::new(model, self.cluster(), layout, recipe).map_err(|reasons| {
            reasons.iter().map(|reason| reason.message.as_str()).collect::<Vec<_>>().join("; ")
        })
    }

    fn software(&self) -> Software {
        match self.text("software") {
            "megatron_legacy" => Software::MegatronLegacy,
            "megatron_deepspeed" => Software::MegatronDeepspeed,
            "torchtitan" => Software::Torchtitan,
            "torch_fsdp" => Software::TorchFsdp,
            "megatron_deepspeed_flash" => Software::MegatronDeepspeed,
            "internevo" | "modellink" => Software::MegatronCoreLocal,
            _ => Software::MegatronCoreTe,
        }
    }

    fn legacy(&self) -> bool {
        matches!(self.text("software"), "megatron_legacy" | "megatron_deepspeed")
    }

    fn model(&self) -> Model {
        let gated = self.yes("gated");
        let [heads, tensor] = ["heads", "tp"].map(|column| self.number(column));
        let ffn = self.maybe("ffn").or(self.maybe("expert_ffn")).unwrap_or(4 * self.number("hidden"));
        Model {
            num_layers: self.number("layers"),
            hidden_size: self.number("hidden"),
            ffn_hidden_size: ffn,
            num_attention_heads: heads,
            num_query_groups: self.number("groups"),
            kv_channels: self.number("head_dim"),
            seq_length: self.number("seq"),
            max_position_embeddings: self.number("seq"),
            padded_vocab_size: self.number("vocab").next_multiple_of(128 * tensor),
            vocab_padding: None,
            activation: if gated { Activation::Swiglu } else { Activation::Gelu },
            normalization: if gated { Normalization::RmsNorm } else { Normalization::LayerNorm },
            position_embedding: if gated {
                PositionEmbedding::Rope
            } else if self.software() == Software::TorchFsdp {
                PositionEmbedding::None
            } else {
                PositionEmbedding::LearnedAbsolute
            },
            linear_bias: if self.legacy() || self.yes("bias") { LinearBias::All } else { LinearBias::None },
            qk_layernorm: false,
            embeddings: if self.yes("tied") { Embeddings::Tied } else { Embeddings::Untied },
            attention_softmax: AttentionSoftmax::Vanilla,
            latent: self.latent(),
            experts: self.experts(),
            mtp_num_layers: 0,
        }
    }

    fn latent(&self) -> Option<LatentAttention> {
        let latent = Json::read(self.text("mla")).ok()?;
        let size = |key: &str| match latent.get(key) {
            Some(Json::Number(digits)) => digits.parse().ok(),
            _ => None,
        };
        Some(LatentAttention {
            q_lora_rank: size("q_lora"),
            kv_lora_rank: size("kv_lora")?,
            qk_head_dim: size("qk_nope")?,
            qk_pos_emb_head_dim: size("qk_rope")?,
            v_head_dim: size("v_head")?,
        })
    }

    fn experts(&self) -> Option<Experts> {
        let dense = self.maybe("dense_layers").unwrap_or(0);
        Some(Experts {
            num_experts: self.maybe("experts")?,
            router_topk: self.number("topk"),
            ffn_hidden_size: self.number("expert_ffn"),
            pattern: (0..self.number("layers")).map(|index| index >= dense).collect(),
            shared_expert_intermediate_size: self.maybe("shared_ffn"),
            shared_expert_gate: false,
            latent_size: None,
        })
    }

    fn cluster(&self) -> Cluster {
        let (gpus, node) = (self.number("gpus"), self.number("node"));
        let mut accelerator = accelerator(self.text("gpu")).expect("a known accelerator");
        if let Ok(nic) = self.text("nic").parse() {
            accelerator.network.bandwidth = BytesPerSecond::giga(nic);
        }
        // Jobs of more than one NVL72 rack take segments of 16 trays (64 accelerators) of each.
        let domain = if node == 4 && self.text("gpu").starts_with("GB") {
            if gpus > 72 { 64 } else { 72 }
        } else {
            node
        };
        Cluster {
            num_nodes: gpus.div_ceil(node),
            gpus_per_node: node,
            fast_domain: domain,
            accelerator,
            measured: Measured::default(),
        }
    }

    fn layout(&self, model: &Model) -> Layout {
        let [world, tensor, pipeline, chunks, context, expert] =
            ["gpus", "tp", "pp", "vpp", "cp", "ep"].map(|column| self.number(column));
        let data = world / (tensor * pipeline * context);
        let expert_tensor = self.maybe("etp").unwrap_or(1);
        Layout {
            world_size: world,
            tensor,
            pipeline,
            virtual_pipeline: chunks,
            context,
            expert,
            expert_tensor,
            data,
            expert_data: (world / (expert * expert_tensor * pipeline)).max(1),
            sequence_parallel: self.yes("sp"),
            rank_order: RankOrder::TpCpEpDpPp,
            context_kind: ContextKind::PointToPoint,
            hierarchical_context: Vec::new(),
            distributed_optimizer_instances: 1,
            microbatch_group_size: pipeline,
            schedule: match self.text("schedule") {
                "zb1" => PipelineSchedule::ZeroBubbleH1,
                "zb2" => PipelineSchedule::ZeroBubbleH2,
                "dualpipe" => PipelineSchedule::DualPipe,
                _ => PipelineSchedule::OneForwardOneBackward,
            },
            stages: stages(model.num_layers, pipeline, chunks),
        }
    }

    fn recipe(&self, layout: &Layout) -> Recipe {
        let [micro, global] = ["mbs", "gbs"].map(|column| self.number(column));
        let half = if self.text("compute") == "fp16" { Number::Fp16 } else { Number::Bf16 };
        let legacy = self.legacy();
        let flash = self.maybe("flash").map_or(!legacy, |flash| flash == 1);
        Recipe {
            micro_batch_size: micro,
            global_batch_size: global,
            num_micro_batches: global / (micro * layout.data),
            attention_mask: false,
            cublas_workspace: None,
            expandable_segments: false,
            params_dtype: half,
            grads_dtype: self.grads(half),
            fp8: self.fp8(),
            fp32_residual: false,
            optimizer: Optimizer {
                kind: OptimizerKind::Adam,
                precision_aware: false,
                main_params: Number::Fp32,
                exp_avg: Number::Fp32,
                exp_avg_sq: Number::Fp32,
                cpu_offload_fraction: 0.0,
            },
            dp_sharding: match self.text("sharding") {
                "zero3" => DpSharding::Parameters,
                "zero2" => DpSharding::Gradients,
                "zero1" => DpSharding::OptimizerStates,
                _ => DpSharding::Replicated,
            },
            recompute: self.recompute(),
            attention_kernel: if flash { AttentionKernel::Flash } else { AttentionKernel::Unfused },
            hidden_dropout: legacy,
            attention_dropout: legacy,
            fusions: Fusions {
                bias_activation: !self.uncompiled() && !self.yes("bias"),
                masked_softmax: true,
                softmax_in_fp32: false,
                gradient_accumulation: !self.separate_accumulation(),
                bias_dropout_add: !self.yes("bias"),
                rope: !self.uncompiled(),
                memory_efficient_norm: false,
            },
            loss: LossKind::Unfused,
            overlap: Overlap {
                grad_reduce: self.has('g'),
                param_gather: self.has('p') && self.text("sharding") != "none",
                tensor: self.has('t'),
                pipeline: self.has('v') && layout.virtual_pipeline > 1,
                expert: self.has('e'),
                shared_expert: false,
                tensor_backward: self.has('b'),
            },
            moe: MoeRecipe {
                dispatcher: if self.has('x') { Dispatcher::Flex } else { Dispatcher::AllToAll },
                grouped_gemm: self.family() != "ms-swift",
                capacity_factor: None,
                pad_to_capacity: false,
                permute_fusion: true,
                router_dtype: Number::Fp32,
                load_balancing: LoadBalancing::AuxiliaryLoss,
                expert_bias: false,
                pre_softmax: false,
            },
            software: self.software(),
            offload: Offload { optimizer: self.text("offload") == "1", ..Offload::default() },
            wgrad_deferral_limit: 0,
            cuda_graphs: ["full_iteration", "transformer_engine", "TE ", "local"]
                .iter()
                .any(|kind| self.text("graphs").contains(kind)),
            budget: Budget::default(),
            left_out: LeftOut::default(),
        }
    }

    /// Weight gradients are added to the main ones by a kernel of their own: PyTorch's FSDP, DeepSpeed,
    /// and Megatron-LM before the fused kernel of 2022.
    fn separate_accumulation(&self) -> bool {
        self.text("year").parse::<u64>().is_ok_and(|year| year < 2022)
            || matches!(
                self.software(),
                Software::TorchFsdp | Software::Torchtitan | Software::MegatronDeepspeed
            )
    }

    /// torchtitan without torch.compile.
    fn uncompiled(&self) -> bool {
        self.software() == Software::Torchtitan && !self.has('c')
    }

    fn grads(&self, half: Number) -> Number {
        match self.software() {
            _ if half == Number::Fp16 => Number::Fp16,
            Software::TorchFsdp => Number::Bf16,
            Software::MegatronCoreTe
                if self.text("software") == "megatron_core_te"
                    && !self.family().starts_with("simumax")
                    && !self.family().starts_with("xtuner") =>
            {
                Number::Bf16
            }
            _ => Number::Fp32,
        }
    }

    fn fp8(&self) -> Option<Fp8> {
        let recipe = match self.text("compute") {
            "fp8" => "delayed",
            "mxfp8" => "mxfp8",
            "nvfp4" => "nvfp4",
            _ => return None,
        };
        Some(Fp8 {
            format: "hybrid".into(),
            recipe: recipe.into(),
            param_gather: self.software() == Software::Torchtitan,
        })
    }

    fn recompute(&self) -> Recompute {
        let text = self.text("recompute");
        let (kind, detail) = text.split_once(':').unwrap_or((text, ""));
        let layers = || detail.rsplit('=').next().and_then(|count| count.parse().ok());
        match kind {
            "full" if detail.contains("block") => {
                Recompute::Block { num_layers: layers().unwrap_or(1), distribute: false }
            }
            "full" => Recompute::Uniform { num_layers: 1, distribute: false },
            "none" if detail.contains("recompute-num-layers") => {
                Recompute::Block { num_layers: layers().unwrap_or(0), distribute: false }
            }
            "selective" if detail == "every other layer" => {
                let each = self.number("layers") / (self.number("pp") * self.number("vpp")) / 2;
                Recompute::Block { num_layers: each, distribute: false }
            }
            "selective" => Recompute::Selective(modules(detail)),
            _ => Recompute::None,
        }
    }
}

fn modules(detail: &str) -> Vec<RecomputeModule> {
    let names = [
        ("layernorm", RecomputeModule::LayerNorm),
        ("moe_act", RecomputeModule::MoeActivation),
        ("mla_up_proj", RecomputeModule::MlaUpProjection),
        (",mlp", RecomputeModule::Mlp),
        ("whole MoE block", RecomputeModule::Moe),
        ("core", RecomputeModule::CoreAttention),
    ];
    let found: Vec<RecomputeModule> =
        names.iter().filter(|(name, _)| detail.contains(name)).map(|(_, module)| *module).collect();
    if detail.is_empty() { vec![RecomputeModule::CoreAttention] } else { found }
}

/// Layers over stages and chunks: even, or with the embedding and the loss counted as layers where only
/// that divides, else the rest on the first ones.
fn stages(layers: u64, pipeline: u64, chunks: u64) -> StageMap {
    let parts = pipeline * chunks;
    let ends =
        (1..=2).find(|ends| (layers + ends).is_multiple_of(parts)).filter(|_| !layers.is_multiple_of(parts));
    let mut sizes: Vec<u64> = match ends {
        Some(_) => vec![(layers + 2) / parts; parts as usize],
        None => (0..parts).map(|part| layers / parts + u64::from(part < layers % parts)).collect(),
    };
    let last = sizes.len() - 1;
    match ends {
        Some(1) => sizes[last] -= 1,
        Some(_) => {
            sizes[0] -= 1;
            sizes[last] -= 1;
        }
        None => {}
    }
    let mut next = 0;
    let ranges: Vec<std::ops::Range<u64>> = sizes
        .iter()
        .map(|size| {
            let range = next..next + size;
            next += size;
            range
        })
        .collect();
    let chunk = |part: u64| Chunk {
        layers: ranges[part as usize].clone(),
        embedding: part == 0,
        output_layer: part + 1 == parts,
        mtp_layers: 0,
    };
    let stage =
        |rank: u64| Stage { chunks: (0..chunks).map(|index| chunk(index * pipeline + rank)).collect() };
    StageMap { stages: (0..pipeline).map(stage).collect() }
}
