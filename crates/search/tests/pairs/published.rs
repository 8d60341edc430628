//! Layouts of some pairs that people ran or published.

use shardscope_plan::{Plan, Recompute, RecomputeModule, StageSplit, Variant};

/// Pairs whose layout was published, and by whom.
pub(crate) const PUBLISHED: [(&str, &str); 8] = [
    (
        "llama-3 405b, 16384 H100",
        "Llama 3 (2024), table 4: TP 8, PP 16, one layer fewer at each end, interleaved",
    ),
    ("gpt-3 175b, 512 A100", "Narayanan et al. (2021), table 1, on half the GPUs: TP 8, PP 8, VPP 3"),
    ("mixtral 8x7b, 64 H100", "Megatron-MoE-ModelZoo (2025), benchmarking: TP 1, PP 4, VPP 8, EP 8"),
    (
        "qwen3 235b, 256 H100",
        "Megatron-MoE-ModelZoo (2025), benchmarking: TP 2, PP 8, VPP 4, EP 32, embedding and loss counted; here with norms and \
         expert activations recomputed, as Megatron-Bridge's recipe for as many H100 has it",
    ),
    (
        "deepseek-v3, 2048 H800",
        "DeepSeek-V3 (2024), 3.2: PP 16, EP 64; norms and MLA's up-projections recomputed",
    ),
    ("bloom 176b, 384 A100", "BigScience (2022): TP 4, PP 12, MBS 2"),
    ("gpt-3 530b, 2240 A100", "Narayanan et al. (2021), 5.1: TP 8, PP 35, VPP 3"),
    ("gpt-3 1t, 512 A100", "Korthikanti et al. (2022), table 3: TP 8, PP 64, selective recomputation"),
];

/// The layout as it was run: that of the pair's flags, completed by what the flags leave out.
pub(crate) fn published(name: &str, plan: &Plan) -> Variant {
    let own = Variant::from_plan(plan);
    match name {
        // Llama 3 (2024), table 4: TP 8, PP 16, one layer fewer on the first and the last stage; interleaved.
        "llama-3 405b, 16384 H100" => Variant {
            pipeline: 16,
            virtual_pipeline: 8,
            split: StageSplit::Even { account_for_embedding: true, account_for_loss: true },
            ..own
        },
        // Narayanan et al. (2021), table 1 scaled to 512 GPUs: TP 8, PP 8, interleaved.
        "gpt-3 175b, 512 A100" => Variant { virtual_pipeline: 3, ..own },
        // Narayanan et al. (2021), section 5.1: the 530B model on 2,240 GPUs, TP 8, PP 35, interleaved.
        "gpt-3 530b, 2240 A100" => Variant { virtual_pipeline: 3, ..own },
        // DeepSeek-V3 (2024), sections 3.2 and 3.2.3: EP 64, PP 16; norms and MLA's up-projections recomputed.
        "deepseek-v3, 2048 H800" => Variant {
            recompute: Recompute::Selective(vec![
                RecomputeModule::LayerNorm,
                RecomputeModule::MlaUpProjection,
            ]),
            ..own
        },
        // Megatron-MoE-ModelZoo, `runtime_configs/benchmarking/runtime.conf`.
        "mixtral 8x7b, 64 H100" => {
            Variant { tensor: 1, sequence_parallel: false, pipeline: 4, virtual_pipeline: 8, ..own }
        }
        // The same; Megatron-Bridge, `qwen3_235b_a22b_pretrain_256gpu_h100_bf16_hybridep_dev_config`.
        "qwen3 235b, 256 H100" => Variant {
            split: StageSplit::Even { account_for_embedding: true, account_for_loss: true },
            virtual_pipeline: 4,
            recompute: Recompute::Selective(vec![RecomputeModule::LayerNorm, RecomputeModule::MoeActivation]),
            ..own
        },
        _ => own,
    }
}
