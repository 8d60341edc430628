//! Published training runs as settings and plans: one line of `data/measured/steps.tsv` each.

mod formats;
mod kernels;

use std::collections::HashMap;

use serde_json::Value;
use shardscope::launch::{Resolution, resolve};
use shardscope::plan::{Field, Plan, Software};

use super::sources::NEVER_FITTED;

/// The measured step times.
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

    /// The text in `column`, as written.
    ///
    /// # Panics
    /// If there is no such column.
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
        // One letter each. Overlapped: g gradient reduction, p weight gathers, t tensor parallelism, b its all-reduce
        // in backward, v messages between stages, e token exchange. Others: x the flex dispatcher, d tokens dropped
        // and experts' inputs padded to their even share, m a depth of multi-token prediction, f the experts' MLP in
        // one operation, c torch.compile, q norms on queries and keys, u a router that nothing balances, l a loss
        // fused by Transformer Engine.
        self.text("overlap").contains(flag)
    }

    /// Seconds per step, as published.
    pub fn measured(&self) -> f64 {
        self.text("measured").parse().expect("seconds")
    }

    /// The family: the source of the row.
    pub fn family(&self) -> &'static str {
        self.text("family")
    }

    /// Whether its source was used to fit constants.
    pub fn is_fitted(&self) -> bool {
        !NEVER_FITTED.contains(&self.family())
    }

    /// Whether the model has routed experts.
    pub fn is_moe(&self) -> bool {
        self.maybe("experts").is_some()
    }

    /// Whether its router is left unmodified, although the source balances that of other runs.
    pub fn is_unbalanced(&self) -> bool {
        self.has('u')
    }

    /// Whether weights are sharded over the replicas (FSDP, ZeRO-3).
    pub fn sharded_weights(&self) -> bool {
        self.text("sharding").starts_with("zero3")
    }

    /// The run as settings, as a reader would enter them: what its source states, but no defaults of the software.
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

    /// The engine's resolution of its settings, as for a reader of the page.
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
            // Its memory is not known, but only its time matters here.
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
        // Megatron's default if neither is known.
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
        // If Transformer Engine runs the experts' MLP as one operation, their biases are added within its products.
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
        // The column is empty if attention is not latent.
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
        // ms-swift's models run their experts one after another, and so does Grok-1's recipe (`grok1_314b.yaml`).
        let fused = self.family() != "dgxc-benchmarking" || self.has('m');
        to.say(Field::MoeGroupedGemm, self.family() != "ms-swift" && fused);
        // The latter also uses PyTorch's own permutation; DeepSeek-V3's recipe fuses it (`pretrain_deepseek_v3.py`).
        to.say(Field::MoePermuteFusion, flex || fused);
        to.say(Field::MoeRouterDtype, "fp32");
        // The loss weight in Megatron-LM's own recipes.
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
            // Four 100 Gb/s adapters per node.
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
        // Layers that do not divide evenly: count the loss, or loss and embedding, as a layer, or else use an
        // explicit layout.
        let parts = pipeline * chunks;
        if self.has('m') && parts > 1 {
            // NeMo's recipe of 2025 gives the first stage one layer fewer.
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

    /// Megatron's default: experts use the tensor size of the rest if that leaves room for expert parallelism.
    fn usual_expert_tensor(&self) -> u64 {
        let [gpus, tensor, pipeline, expert] = ["gpus", "tp", "pp", "ep"].map(|column| self.number(column));
        if (gpus / pipeline).is_multiple_of(tensor * expert) { tensor } else { 1 }
    }
}

/// The plan of a resolution, or its diagnostics.
pub(super) fn planned(resolution: Resolution) -> Result<Plan, String> {
    let said: Vec<String> = resolution.diagnostics.into_iter().map(|said| said.message).collect();
    resolution.plan.ok_or_else(|| said.join("; "))
}

/// Settings by name, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Settings(pub Vec<(String, String)>);

impl Settings {
    fn say(&mut self, field: Field, value: impl ToString) {
        self.0.push((field.name().to_owned(), value.to_string()));
    }

    /// Adds a degree of parallelism if it is above 1.
    fn degree(&mut self, field: Field, degree: u64) {
        if degree > 1 {
            self.say(field, degree);
        }
    }
}

/// DeepSeek-V3's layouts (`deepseek_v3.py:set_deepseek_v3_pipeline_model_parallel_layout`): equal parts, except that
/// the last has the remainder, a depth of multi-token prediction and the loss, and the first has `ahead` layers
/// fewer.
fn with_depth(layers: u64, parts: u64, ahead: u64) -> String {
    let each = layers.div_ceil(parts);
    let last = layers + ahead - each * (parts - 1);
    format!("Et*{}|(t*{each}|)*{}t*{last}mL", each - ahead, parts - 2)
}

/// A layout of `parts` with the remaining layers on the first ones, in Megatron's layout syntax.
fn ragged(layers: u64, parts: u64) -> String {
    let (each, more) = (layers / parts, layers % parts);
    let run = |size: u64, times: u64| if times > 0 { format!("(t*{size}|)*{times}") } else { String::new() };
    // The last part is written separately, because it ends with the loss: it is one of those with fewer layers.
    format!("E{}{}t*{each}L", run(each + 1, more), run(each, parts - more - 1))
}
