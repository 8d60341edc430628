//! Published layouts of a model, shown next to what a search finds: people compare with what was run.

use shardscope_plan::{Plan, Recompute, RecomputeModule, StageSplit, Variant};

use super::moved::outcome;
use super::outcome::Outcome;

/// One published layout.
struct Row {
    /// Who published it, and on what.
    about: &'static str,
    /// Layers, hidden size and experts, which identify the model: names have many spellings.
    model: [u64; 3],
    /// TP, PP, VPP, CP, EP, MBS.
    degrees: [u64; 6],
    stages: Stages,
    recompute: Kept,
}

/// How layers are distributed over the stages.
#[derive(Clone, Copy)]
enum Stages {
    Even,
    /// Embedding and loss count as one layer each.
    Counted,
    /// Layers of the first and of the last stage.
    Ends(u64, u64),
    /// The last layer is placed with the loss, and so is multi-token prediction; all parts before have four layers.
    Fours,
}

/// What was recomputed, as far as it was published.
#[derive(Clone, Copy)]
enum Kept {
    AsPlanned,
    Full,
    Modules(&'static [RecomputeModule]),
}

const fn row(about: &'static str, model: [u64; 3], degrees: [u64; 6]) -> Row {
    Row { about, model, degrees, stages: Stages::Even, recompute: Kept::AsPlanned }
}

const LLAMA_405B: [u64; 3] = [126, 16_384, 0];
const LLAMA_70B: [u64; 3] = [80, 8_192, 0];
const GPT_175B: [u64; 3] = [96, 12_288, 0];
const MIXTRAL: [u64; 3] = [32, 4_096, 8];
const QWEN3_30B: [u64; 3] = [48, 2_048, 128];
const QWEN3_235B: [u64; 3] = [94, 4_096, 128];
const DEEPSEEK_V3: [u64; 3] = [61, 7_168, 256];

/// Megatron-Bridge: its performance summary and the archive of it, rows of the named release. Zoo:
/// Megatron-MoE-ModelZoo, `runtime_configs/benchmarking/runtime.conf`.
const ROWS: [Row; 20] = [
    Row {
        stages: Stages::Counted,
        ..row("Llama 3 (2024), table 4, 16,384 H100", LLAMA_405B, [8, 16, 8, 1, 1, 1])
    },
    Row {
        stages: Stages::Counted,
        ..row("Llama 3 (2024), table 4, long context", LLAMA_405B, [8, 16, 8, 16, 1, 1])
    },
    Row {
        stages: Stages::Counted,
        ..row("Megatron-Bridge 26.06, 1,024 H100", LLAMA_405B, [8, 8, 8, 2, 1, 1])
    },
    Row {
        stages: Stages::Counted,
        ..row("Megatron-Bridge 26.06, 256 GB200", LLAMA_405B, [4, 16, 8, 1, 1, 1])
    },
    row("Megatron-Bridge 26.04, 64 H100", LLAMA_70B, [4, 8, 5, 1, 1, 1]),
    row("Megatron-Bridge 26.04, 64 GB200", LLAMA_70B, [2, 4, 5, 1, 1, 1]),
    row("NeMo 24.07, 64 H100", LLAMA_70B, [4, 4, 20, 1, 1, 1]),
    row("Korthikanti et al. (2022), table 3, 64 A100", GPT_175B, [8, 8, 3, 1, 1, 1]),
    row("NeMo Megatron 22.06, 256 to 1,024 A100", GPT_175B, [8, 8, 1, 1, 1, 2]),
    row("Narayanan et al. (2021), 5.1, 2,240 A100", [105, 20_480, 0], [8, 35, 3, 1, 1, 1]),
    row("Korthikanti et al. (2022), table 3, 512 A100", [128, 25_600, 0], [8, 64, 1, 1, 1, 1]),
    Row {
        stages: Stages::Counted,
        recompute: Kept::Full,
        ..row("BigScience (2022), 384 A100", [70, 14_336, 0], [4, 12, 1, 1, 1, 2])
    },
    row("Megatron-MoE-ModelZoo (2025), 64 H100", MIXTRAL, [1, 4, 8, 1, 8, 1]),
    row("Megatron-LM's example, 64 H100", MIXTRAL, [1, 4, 1, 1, 8, 1]),
    row("Megatron-Bridge 26.06, 16 H100", QWEN3_30B, [1, 1, 1, 1, 16, 1]),
    row("Megatron-Bridge 26.06, 8 GB200", QWEN3_30B, [1, 1, 1, 1, 8, 4]),
    Row {
        stages: Stages::Counted,
        // `qwen3_235b_a22b_pretrain_256gpu_h100_bf16_hybridep_dev_config`.
        recompute: Kept::Modules(&[RecomputeModule::LayerNorm, RecomputeModule::MoeActivation]),
        ..row("Megatron-Bridge and -MoE-ModelZoo, 256 H100", QWEN3_235B, [2, 8, 4, 1, 32, 1])
    },
    Row {
        stages: Stages::Ends(3, 2),
        recompute: Kept::Modules(&[RecomputeModule::LayerNorm, RecomputeModule::MlaUpProjection]),
        ..row("DeepSeek-V3 (2024), 3.2, 2,048 H800", DEEPSEEK_V3, [1, 16, 1, 1, 64, 1])
    },
    Row {
        stages: Stages::Fours,
        ..row("Megatron-Bridge 26.06, 256 GB200", DEEPSEEK_V3, [1, 4, 4, 1, 64, 1])
    },
    row("Megatron-Bridge 26.04, 64 H100", [36, 2_880, 128], [1, 4, 1, 1, 8, 1]),
];

/// A published layout of a plan's model, as it would run on the plan's own machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Who published it, and on what.
    pub about: &'static str,
    /// The plan with it.
    pub outcome: Outcome,
    /// Whether it fits, tightly or not.
    pub fits: bool,
}

/// The published layouts of the model of `plan` that its machines and batch divide into, estimated as for a report:
/// their degrees, split and recomputation, with everything else as in the plan.
#[must_use]
pub fn published(plan: &Plan) -> Vec<Published> {
    let model = plan.model();
    let experts = model.experts.as_ref().map_or(0, |experts| experts.num_experts);
    let own = Variant::from_plan(plan);
    let of_model = ROWS.iter().filter(|row| row.model == [model.num_layers, model.hidden_size, experts]);
    let mut found: Vec<Published> = Vec::new();
    for row in of_model {
        let variant = row.variant(&own, model.mtp_num_layers > 0);
        let Some((outcome, fits)) = outcome(plan, &own, &variant) else { continue };
        if !found.iter().any(|other| other.outcome.variant == variant) {
            found.push(Published { about: row.about, outcome, fits });
        }
    }
    found
}

impl Row {
    fn variant(&self, own: &Variant, predicts: bool) -> Variant {
        let [tensor, pipeline, virtual_pipeline, context, expert, micro_batch_size] = self.degrees;
        let overlap = own.overlap;
        let sequence_parallel = tensor > 1;
        Variant {
            tensor,
            pipeline,
            virtual_pipeline,
            group: None,
            context,
            expert,
            // Expert tensor parallelism is 1 in all of them.
            expert_tensor: if own.has_experts { 1 } else { tensor },
            micro_batch_size,
            sequence_parallel,
            split: match self.stages {
                Stages::Even => StageSplit::EVEN,
                Stages::Counted => StageSplit::Even { account_for_embedding: true, account_for_loss: true },
                Stages::Ends(first, last) => StageSplit::Ends { first: Some(first), last: Some(last) },
                // `pipeline_model_parallel_layout` of Megatron-Bridge's DeepSeek-V3.
                Stages::Fours => {
                    let more = if predicts { "m" } else { "" };
                    StageSplit::Layout(format!("Et*4|(tttt|)*14t{more}L"))
                }
            },
            recompute: match self.recompute {
                Kept::AsPlanned => own.recompute.clone(),
                Kept::Full => Recompute::Uniform { num_layers: 1, distribute: false },
                Kept::Modules(modules) => Recompute::Selective(modules.to_vec()),
            },
            overlap: shardscope_plan::Overlap { tensor: overlap.tensor && sequence_parallel, ..overlap },
            ..own.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::plan;
    use crate::pairs::published::{PUBLISHED, published as as_run};
    use shardscope_estimate::time::exact_step_seconds;

    #[test]
    fn the_layouts_that_searches_are_held_against_are_among_them() {
        for (name, _) in PUBLISHED {
            let plan = plan(name);
            let human = as_run(name, &plan);
            let cut = |of: &Variant| {
                [of.tensor, of.pipeline, of.virtual_pipeline, of.context, of.expert, of.micro_batch_size]
            };
            let all = published(&plan);
            let found = all.iter().find(|one| cut(&one.outcome.variant) == cut(&human));
            let found = found.unwrap_or_else(|| panic!("{name}: {all:?}"));
            let changed = found.outcome.variant.apply(&plan).expect("a plan");
            assert_eq!(found.outcome.step, exact_step_seconds(&changed), "{name}");
        }
    }

    #[test]
    fn another_model_has_none_and_what_does_not_divide_is_left_out() {
        assert_eq!(published(&plan("llama-3 8b, 64 H100")), []);
        let on_128 = published(&plan("llama-3 70b, 128 H100"));
        let about: Vec<&str> = on_128.iter().map(|one| one.about).collect();
        assert_eq!(
            about,
            ["Megatron-Bridge 26.04, 64 H100", "Megatron-Bridge 26.04, 64 GB200", "NeMo 24.07, 64 H100"]
        );
        // 8 GPUs cannot hold eight stages of eight.
        assert_eq!(published(&plan("gpt-3 175b, 8 A100")), []);
    }
}
