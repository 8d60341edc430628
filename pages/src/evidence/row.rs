//! Published training runs as settings and plans: one line of `data/measured/steps.tsv` each.

mod kernels;

use std::collections::HashMap;

use serde_json::Value;
use shardscope::launch::{Resolution, resolve};
use shardscope::plan::{Field, NumberFormat, Plan, Software};

use super::sources::NEVER_FITTED;

/// The measured step times.
const STEPS: &str = include_str!("../../../tests/data/measured/steps.tsv");

/// AMD's Primus: Megatron-LM with main gradients in fp32 and no fused accumulation
/// (`examples/megatron/configs/MI300X/llama3.1_70B-BF16-pretrain.yaml`).
const PRIMUS: &str = "amd-primus";

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
        // A letter each. Overlapped: g reduction of gradients, p gathers of weights, t tensor parallelism, b its all-
        // reduce in backward, v messages between stages, e exchange of tokens. Beside them: x the flex dispatcher, d
        // tokens dropped and experts' inputs padded to their even share, m a depth of multi-token prediction, f
        // the experts' MLP in one operation, c torch.compile, q norms on queries and keys, u a router that
        // nothing balances, l a loss fused by Transformer Engine.
        self.text("overlap").contains(flag)
    }

    /// Seconds of a step, as published.
    pub fn measured(&self) -> f64 {
        self.text("measured").parse().expect("seconds")
    }

    /// Family: the source that the row is from.
    pub fn family(&self) -> &'static str {
        self.text("family")
    }

    /// Whether constants were fitted with its source in view.
    pub fn is_fitted(&self) -> bool {
        !NEVER_FITTED.contains(&self.family())
    }

    /// Whether the model has routed experts.
    pub fn is_moe(&self) -> bool {
        self.maybe("experts").is_some()
    }

    /// Whether its source leaves the router as it is, where it balances that of other runs.
    pub fn is_unbalanced(&self) -> bool {
        self.has('u')
    }

    /// Whether weights are sharded over the replicas (FSDP, ZeRO-3).
    pub fn sharded_weights(&self) -> bool {
        self.text("sharding") == "zero3"
    }

    /// The run as settings, as a reader would type them: what its source says, and nothing that is the software's default.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        self.model(&mut settings);
        self.machines(&mut settings);
        self.layout(&mut settings);
        self.batch_and_formats(&mut settings);
        self.kernels(&mut settings);
        self.recomputation(&mut settings);
        self.communication(&mut settings);
        settings
    }

    /// What the engine makes of its settings, as for a reader of the page.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        resolve(&[], &self.settings().0)
    }

    /// The run as a plan.
    ///
    /// # Errors
    /// The messages of the diagnostics, joined by semicolons.
    pub fn try_plan(&self) -> Result<Plan, String> {
        planned(self.resolution())
    }

    fn software(&self) -> Software {
        match self.text("software") {
            "megatron_legacy" => Software::MegatronLegacy,
            "megatron_deepspeed" | "megatron_deepspeed_flash" => Software::MegatronDeepspeed,
            "torchtitan" => Software::Torchtitan,
            "torch_fsdp" => Software::TorchFsdp,
            "scaletorch" => Software::Scaletorch,
            "internevo" | "modellink" => Software::MegatronCoreLocal,
            _ => Software::MegatronCoreTe,
        }
    }

    fn legacy(&self) -> bool {
        matches!(self.text("software"), "megatron_legacy" | "megatron_deepspeed")
    }

    fn model(&self, to: &mut Settings) {
        let gated = self.yes("gated");
        to.say(Field::Software, self.software().name());
        if self.software() == Software::Scaletorch {
            // Its memory is not known; its time is what counts here.
            to.say(Field::Without, Field::Software.name());
        }
        let sizes = [
            (Field::NumLayers, "layers"),
            (Field::HiddenSize, "hidden"),
            (Field::NumAttentionHeads, "heads"),
            (Field::KvChannels, "head_dim"),
            (Field::SeqLength, "seq"),
            (Field::VocabSize, "vocab"),
        ];
        for (field, column) in sizes {
            to.say(field, self.text(column));
        }
        // Megatron's default, where neither is known.
        let ffn = self.maybe("ffn").or(self.maybe("expert_ffn")).unwrap_or(4 * self.number("hidden"));
        to.say(Field::FfnHiddenSize, ffn);
        // Latent attention has no query groups.
        if self.number("groups") != self.number("heads") && self.text("mla").is_empty() {
            to.say(Field::GroupQueryAttention, true);
            to.say(Field::NumQueryGroups, self.text("groups"));
        }
        if gated {
            to.say(Field::Swiglu, true);
            to.say(Field::Normalization, "RMSNorm");
            to.say(Field::PositionEmbeddingType, "rope");
        } else if self.software() == Software::TorchFsdp {
            // MPT.
            to.say(Field::PositionEmbeddingType, "alibi");
        }
        // Where Transformer Engine runs the experts' MLP as one operation, their biases are added within its products.
        if !self.legacy() && (!self.yes("bias") || self.has('f')) {
            to.say(Field::AddBiasLinear, false);
        }
        if !self.yes("tied") {
            to.say(Field::UntieEmbeddingsAndOutputWeights, true);
        }
        if self.has('q') {
            to.say(Field::QkLayernorm, true);
        }
        self.latent(to);
        self.experts(to);
    }

    fn latent(&self, to: &mut Settings) {
        // The column is empty where attention is not latent.
        let Ok(latent) = serde_json::from_str::<Value>(self.text("mla")) else { return };
        to.say(Field::MultiLatentAttention, true);
        let sizes = [
            (Field::QLoraRank, "q_lora"),
            (Field::KvLoraRank, "kv_lora"),
            (Field::QkHeadDim, "qk_nope"),
            (Field::QkPosEmbHeadDim, "qk_rope"),
            (Field::VHeadDim, "v_head"),
        ];
        for (field, key) in sizes {
            if let Some(Value::Number(size)) = latent.get(key) {
                to.say(field, size);
            }
        }
    }

    fn experts(&self, to: &mut Settings) {
        let Some(experts) = self.maybe("experts") else { return };
        to.say(Field::NumExperts, experts);
        to.say(Field::MoeRouterTopk, self.text("topk"));
        to.say(Field::MoeFfnHiddenSize, self.text("expert_ffn"));
        if let Some(dense) = self.maybe("dense_layers").filter(|dense| *dense > 0) {
            to.say(Field::FirstKDenseReplace, dense);
        }
        if let Some(shared) = self.maybe("shared_ffn") {
            to.say(Field::MoeSharedExpertIntermediateSize, shared);
        }
        if self.has('m') {
            to.say(Field::MtpNumLayers, 1);
        }
        let flex = self.has('x');
        to.say(Field::MoeTokenDispatcherType, if flex { "flex" } else { "alltoall" });
        if self.has('d') {
            to.say(Field::MoeExpertCapacityFactor, 1);
            to.say(Field::MoePadExpertInputToCapacity, true);
        }
        // ms-swift's models run their experts one after another.
        // So does Grok-1's recipe (`grok1_314b.yaml`).
        let fused = self.family() != "dgxc-benchmarking" || self.has('m');
        to.say(Field::MoeGroupedGemm, self.family() != "ms-swift" && fused);
        // And runs the permutation as PyTorch has it; that of DeepSeek-V3 fuses it (`pretrain_deepseek_v3.py`).
        to.say(Field::MoePermuteFusion, flex || fused);
        to.say(Field::MoeRouterDtype, "fp32");
        // Weight that Megatron-LM's own recipes give the loss.
        to.say(Field::MoeAuxLossCoeff, "0.01");
    }

    fn machines(&self, to: &mut Settings) {
        let (gpus, node) = (self.number("gpus"), self.number("node"));
        let node = node.min(gpus);
        to.say(Field::Accelerator, self.text("gpu"));
        to.say(Field::NumNodes, gpus.div_ceil(node));
        to.say(Field::GpusPerNode, node);
        match self.family() {
            "bloom-prequel" => to.say(Field::Platform, "Jean Zay A100 (BLOOM)"),
            // Four adapters of 100 Gb/s a node.
            "internevo" => to.say(Field::NetworkGbps, self.text("nic")),
            _ => {}
        }
    }

    fn layout(&self, to: &mut Settings) {
        let [pipeline, chunks, layers] = ["pp", "vpp", "layers"].map(|column| self.number(column));
        to.degree(Field::TensorModelParallelSize, self.number("tp"));
        to.degree(Field::PipelineModelParallelSize, pipeline);
        to.degree(Field::ContextParallelSize, self.number("cp"));
        to.degree(Field::ExpertModelParallelSize, self.number("ep"));
        if self.is_moe() {
            to.say(Field::ExpertTensorParallelSize, self.maybe("etp").unwrap_or(self.usual_expert_tensor()));
        }
        if self.yes("sp") && self.number("tp") > 1 {
            to.say(Field::SequenceParallel, true);
        }
        match self.text("schedule") {
            "zb1" => to.say(Field::PipelineSchedule, "zb-h1"),
            "zb2" => to.say(Field::PipelineSchedule, "zb-h2"),
            "dualpipe" => to.say(Field::PipelineSchedule, "dualpipe"),
            _ => {}
        }
        // Layers that do not divide evenly: as if the loss, or loss and embedding, took a layer's place, else by an
        // explicit layout.
        let parts = pipeline * chunks;
        if self.has('m') && parts > 1 {
            // NeMo's recipe of 2025 gives the first stage a layer less.
            let ahead = u64::from(self.family() == "dgxc-benchmarking");
            to.say(Field::PipelineModelParallelLayout, with_depth(layers, parts, ahead));
        } else if layers.is_multiple_of(parts) {
            to.degree(Field::VirtualPipelineModelParallelSize, chunks);
        } else if let Some(ends) = (1..=2).find(|ends| (layers + ends).is_multiple_of(parts)) {
            to.degree(Field::VirtualPipelineModelParallelSize, chunks);
            to.say(Field::AccountForLossInPipelineSplit, true);
            if ends == 2 {
                to.say(Field::AccountForEmbeddingInPipelineSplit, true);
            }
        } else {
            to.say(Field::PipelineModelParallelLayout, ragged(layers, parts));
        }
    }

    /// Megatron's own: experts are cut as the rest is, where that leaves room for their parallelism.
    fn usual_expert_tensor(&self) -> u64 {
        let [gpus, tensor, pipeline, expert] = ["gpus", "tp", "pp", "ep"].map(|column| self.number(column));
        if (gpus / pipeline).is_multiple_of(tensor * expert) { tensor } else { 1 }
    }

    fn batch_and_formats(&self, to: &mut Settings) {
        to.say(Field::MicroBatchSize, self.text("mbs"));
        to.say(Field::GlobalBatchSize, self.text("gbs"));
        let half = if self.text("compute") == "fp16" { Field::Fp16 } else { Field::Bf16 };
        to.say(half, true);
        to.say(Field::GradsDtype, self.grads(half).name());
        match self.text("compute") {
            "fp8" => to.say(Field::Fp8, "hybrid"),
            "mxfp8" => {
                to.say(Field::Fp8, "hybrid");
                to.say(Field::Fp8Recipe, "mxfp8");
            }
            "nvfp4" => to.say(Field::Fp4, "e2m1"),
            _ => {}
        }
        if matches!(self.text("compute"), "fp8" | "mxfp8" | "nvfp4")
            && self.software() == Software::Torchtitan
        {
            to.say(Field::Fp8ParamGather, true);
        }
        match self.text("sharding") {
            "zero1" => to.say(Field::UseDistributedOptimizer, true),
            "zero2" => to.say(Field::ZeroStage, 2),
            "zero3" => to.say(Field::ZeroStage, 3),
            _ => {}
        }
        if self.text("offload") == "1" {
            to.say(Field::OffloadOptimizer, true);
        }
    }

    /// Weight gradients are added to the main ones by a kernel of their own: PyTorch's FSDP, DeepSpeed,
    /// Primus by its configurations, ModelLink by its scripts (`--no-gradient-accumulation-fusion`, all but Mixtral's), and
    /// Megatron-LM before the fused kernel of 2022.
    fn separate_accumulation(&self) -> bool {
        self.text("year").parse::<u64>().is_ok_and(|year| year < 2022)
            || self.family() == PRIMUS
            || (self.text("software") == "modellink" && !self.is_moe())
            || matches!(
                self.software(),
                Software::TorchFsdp | Software::Torchtitan | Software::MegatronDeepspeed
            )
    }

    /// torchtitan without torch.compile.
    fn uncompiled(&self) -> bool {
        self.software() == Software::Torchtitan && !self.has('c')
    }

    fn grads(&self, half: Field) -> NumberFormat {
        match self.software() {
            _ if half == Field::Fp16 => NumberFormat::Fp16,
            Software::TorchFsdp => NumberFormat::Bf16,
            // Buckets in fp32 where there are replicas (`data_parallel/bucket.py`), else the parameters' own gradients.
            Software::Scaletorch if self.number("gpus") == self.number("tp") * self.number("pp") => {
                NumberFormat::Bf16
            }
            Software::MegatronCoreTe
                if self.text("software") == "megatron_core_te"
                    && !self.family().starts_with("simumax")
                    && !self.family().starts_with("xtuner")
                    && self.family() != PRIMUS =>
            {
                NumberFormat::Bf16
            }
            _ => NumberFormat::Fp32,
        }
    }
}

/// The plan of a resolution, or what is said against it.
pub(super) fn planned(resolution: Resolution) -> Result<Plan, String> {
    let said: Vec<String> = resolution.diagnostics.into_iter().map(|said| said.message).collect();
    resolution.plan.ok_or_else(|| said.join("; "))
}

/// Settings by name, in the order in which they were said.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub Vec<(String, String)>);

impl Settings {
    fn say(&mut self, field: Field, value: impl ToString) {
        self.0.push((field.name().to_owned(), value.to_string()));
    }

    /// A degree of parallelism, where there is any.
    fn degree(&mut self, field: Field, degree: u64) {
        if degree > 1 {
            self.say(field, degree);
        }
    }
}

/// DeepSeek-V3's layouts (`deepseek_v3.py:set_deepseek_v3_pipeline_model_parallel_layout`): equal parts, the last with what is
/// left, a depth of multi-token prediction and the loss; the first with `ahead` layers less.
fn with_depth(layers: u64, parts: u64, ahead: u64) -> String {
    let each = layers.div_ceil(parts);
    let last = layers + ahead - each * (parts - 1);
    format!("Et*{}|(t*{each}|)*{}t*{last}mL", each - ahead, parts - 2)
}

/// A layout of `parts` with the layers that do not divide on the first ones, in Megatron's little language.
fn ragged(layers: u64, parts: u64) -> String {
    let (each, more) = (layers / parts, layers % parts);
    let run = |size: u64, times: u64| if times > 0 { format!("(t*{size}|)*{times}") } else { String::new() };
    // The last part stands by itself, as it ends with the loss: it is one of those with fewer layers.
    format!("E{}{}t*{each}L", run(each + 1, more), run(each, parts - more - 1))
}
