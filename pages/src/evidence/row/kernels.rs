//! Settings of a published run for kernels, fusions, overlap and recomputation.

use shardscope::plan::{Field, Software};

use super::{Row, Settings};

impl Row {
    pub(super) fn kernels(&self, to: &mut Settings) {
        // If a source does not say: flash, except in legacy software.
        let kernel = match self.maybe("flash").unwrap_or(u64::from(!self.legacy())) {
            4 => "flash4",
            0 => "unfused",
            _ => "flash",
        };
        to.say(Field::AttentionKernel, kernel);
        // `4096/2`: every second layer attends to this many preceding tokens.
        let (window, each) = self.text("window").split_once('/').unwrap_or((self.text("window"), ""));
        if !window.is_empty() {
            to.say(Field::WindowSize, window);
        }
        if !each.is_empty() {
            to.say(Field::WindowAttnSkipFreq, each);
        }
        if !self.legacy() {
            to.say(Field::HiddenDropout, 0);
            to.say(Field::AttentionDropout, 0);
        }
        to.say(Field::CreateAttentionMaskInDataloader, false);
        // gpt-oss has biases, and its activation is fused with them (`gpt_oss_provider.py`).
        if self.uncompiled() || self.has('a') || (self.yes("bias") && !self.is_moe()) {
            to.say(if self.yes("gated") { Field::BiasSwigluFusion } else { Field::BiasGeluFusion }, false);
        } else if self.yes("gated") {
            to.say(Field::BiasSwigluFusion, true);
        }
        if self.yes("bias") {
            to.say(Field::BiasDropoutFusion, false);
        }
        if self.separate_accumulation() {
            to.say(Field::GradientAccumulationFusion, false);
        }
        if self.yes("gated") {
            to.say(Field::ApplyRopeFusion, !(self.uncompiled() || self.has('r')));
        }
        if self.uncompiled() {
            to.say(Field::NormFusion, self.has('n'));
        } else if self.software() == Software::Torchtitan {
            to.say(Field::CompiledLayers, true);
        }
        // Megatron-Bridge and NeMo 2 fuse the loss (`gpt_provider.py`, `gpt/model/base.py`); the recipes of the
        // former use Transformer Engine for it (`overrides.py`).
        let bridge = matches!(self.family(), "megatron-bridge" | "mbridge-skills");
        let by_engine = bridge || self.has('m') || self.has('l');
        if by_engine || self.family() == "nemo-docs-25" {
            to.say(Field::CrossEntropyLossFusion, true);
            to.say(Field::CrossEntropyFusionImpl, if by_engine { "te" } else { "native" });
        }
        let graphs = self.text("graphs");
        let captured =
            ["full_iteration", "transformer_engine", "TE ", "local"].iter().any(|kind| graphs.contains(kind));
        if captured {
            let full = graphs.contains("full_iteration");
            to.say(Field::CudaGraphImpl, if full { "full_iteration" } else { "transformer_engine" });
            let modules = ["attn", "moe_router", "moe_preprocess"].into_iter();
            let named: Vec<&str> = modules.filter(|module| graphs.contains(module)).collect();
            if !named.is_empty() {
                to.say(Field::CudaGraphModules, named.join(" "));
            }
        }
    }

    pub(super) fn communication(&self, to: &mut Settings) {
        to.say(Field::OverlapGradReduce, self.has('g'));
        to.say(Field::OverlapParamGather, self.has('p') && self.text("sharding") != "none");
        to.say(Field::TpCommOverlap, self.has('t'));
        to.say(Field::AsyncTensorModelParallelAllreduce, self.has('b'));
        if self.number("vpp") > 1 {
            to.say(Field::OverlapP2pComm, self.has('v'));
        }
        if self.has('e') {
            to.say(Field::OverlapMoeExpertParallelComm, true);
        }
    }

    pub(super) fn recomputation(&self, to: &mut Settings) {
        let text = self.text("recompute");
        let (kind, detail) = text.split_once(':').unwrap_or((text, ""));
        let layers = || detail.rsplit('=').next().and_then(|count| count.parse().ok());
        let full = |to: &mut Settings, method: &str, layers: u64| {
            to.say(Field::RecomputeGranularity, "full");
            to.say(Field::RecomputeMethod, method);
            to.say(Field::RecomputeNumLayers, layers);
        };
        match kind {
            "full" if detail.contains("block") => full(to, "block", layers().unwrap_or(1)),
            "full" => full(to, "uniform", 1),
            "none" if detail.contains("recompute-num-layers") => full(to, "block", layers().unwrap_or(0)),
            "selective" if detail == "every other layer" => {
                let each = self.number("layers") / (self.number("pp") * self.number("vpp")) / 2;
                full(to, "block", each);
            }
            "selective" => {
                to.say(Field::RecomputeGranularity, "selective");
                to.say(Field::RecomputeModules, modules(detail).join(" "));
            }
            _ => {}
        }
    }
}

/// Names of the modules that are recomputed according to a source; core attention, Megatron's default, if it gives no
/// detail.
fn modules(detail: &str) -> Vec<&'static str> {
    let names = [
        ("layernorm", "layernorm"),
        ("moe_act", "moe_act"),
        ("mla_up_proj", "mla_up_proj"),
        (",mlp", "mlp"),
        ("whole MoE block", "moe"),
        ("core", "core_attn"),
    ];
    let found: Vec<&str> =
        names.iter().filter(|(name, _)| detail.contains(name)).map(|(_, module)| *module).collect();
    if detail.is_empty() { vec!["core_attn"] } else { found }
}
