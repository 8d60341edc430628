//! Settings of a published run for batch, number formats and sharding.

use shardscope::plan::{Field, NumberFormat, Software};

use super::{Row, Settings};

/// AMD's Primus: Megatron-LM with main gradients in fp32 and no fused accumulation
/// (`examples/megatron/configs/MI300X/llama3.1_70B-BF16-pretrain.yaml`).
const PRIMUS: &str = "amd-primus";

impl Row {
    pub(super) fn batch_and_formats(&self, to: &mut Settings) {
        to.say(Field::MicroBatchSize, self.text("mbs"));
        to.say(Field::GlobalBatchSize, self.text("gbs"));
        let half = if self.text("compute") == "fp16" { Field::Fp16 } else { Field::Bf16 };
        to.say(half, true);
        to.say(Field::GradsDtype, self.grads(half).name());
        match self.text("compute") {
            "fp8" => {
                to.say(Field::Fp8, "hybrid");
                // "FP8-CS", current scaling, in the tables of its releases.
                if self.family() == "megatron-bridge" {
                    to.say(Field::Fp8Recipe, "tensorwise");
                }
            }
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
        self.sharding(to);
        if self.has('s') {
            to.say(Field::UsePrecisionAwareOptimizer, true);
            to.say(Field::MainGradsDtype, "bf16");
            to.say(Field::ExpAvgDtype, "bf16");
            to.say(Field::ExpAvgSqDtype, "bf16");
        }
        // Activations of whole layers on the host (`20 layers`) are not modelled, and their copies not counted.
        if self.text("offload") == "1" {
            to.say(Field::OffloadOptimizer, true);
        }
    }

    fn sharding(&self, to: &mut Settings) {
        // `zero3/8`: sharded over this many ranks, and replicated over the others.
        let (kind, shards) = self.text("sharding").split_once('/').unwrap_or((self.text("sharding"), ""));
        match kind {
            "zero1" => to.say(Field::UseDistributedOptimizer, true),
            "zero2" => to.say(Field::ZeroStage, 2),
            "zero3" => to.say(Field::ZeroStage, 3),
            _ => {}
        }
        if let Ok(shards) = shards.parse::<u64>() {
            to.say(Field::NumDistributedOptimizerInstances, self.number("gpus") / shards.max(1));
        }
    }

    /// Whether weight gradients are added to the main ones by a separate kernel: PyTorch's FSDP, DeepSpeed, Primus by
    /// its configurations, ModelLink by its scripts (`--no-gradient-accumulation-fusion`, all but Mixtral's), and
    /// Megatron-LM before the fused kernel of 2022.
    pub(super) fn separate_accumulation(&self) -> bool {
        self.text("year").parse::<u64>().is_ok_and(|year| year < 2022)
            || self.family() == PRIMUS
            || (self.text("software") == "modellink" && !self.is_moe())
            || matches!(
                self.software(),
                Software::TorchFsdp | Software::Torchtitan | Software::MegatronDeepspeed
            )
    }

    /// Whether it is torchtitan without torch.compile.
    pub(super) fn uncompiled(&self) -> bool {
        self.software() == Software::Torchtitan && !self.has('c')
    }

    fn grads(&self, half: Field) -> NumberFormat {
        match self.software() {
            _ if half == Field::Fp16 => NumberFormat::Fp16,
            Software::TorchFsdp => NumberFormat::Bf16,
            // Buckets in fp32 if there are replicas (`data_parallel/bucket.py`), else the parameters' own gradients.
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
