//! The publications of the runs.

/// A publication, or a project's own pages.
pub struct Source {
    /// The name of its rows in `data/measured`.
    pub family: &'static str,
    /// A short name.
    pub name: &'static str,
    /// Authors, title and section, in words.
    pub title: &'static str,
    /// URL.
    pub link: &'static str,
}

const fn source(family: &'static str, name: &'static str, title: &'static str, link: &'static str) -> Source {
    Source { family, name, title, link }
}

/// Sources that no constant was ever fitted to: they were read after the constants were fixed.
pub const NEVER_FITTED: [&str; 4] = ["mlperf-405b", "mlperf-8b", "moe-modelzoo", "scaletorch"];

/// Every source, in the order in which tables list them.
#[rustfmt::skip]
pub(super) const SOURCES: [Source; 42] = [
    source("seed-narayanan2021-tab1", "Narayanan 2021, table 1", "Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, table 1", "https://arxiv.org/abs/2104.04473"),
    source("narayanan2021-tab2", "Narayanan 2021, table 2", "The same, table 2: pipeline and tensor parallelism against ZeRO-3", "https://arxiv.org/abs/2104.04473"),
    source("seed-azure-nemo-22.06", "Azure NeMo 2022", "NeMo Megatron 22.06 on Azure NDm A100 v4, Microsoft's results of October 2022 (blog post 3655111)", "https://techcommunity.microsoft.com/"),
    source("nemo-launcher", "NeMo launcher", "NeMo Megatron launcher, performance section of its README, 2022", "https://github.com/NVIDIA/NeMo-Framework-Launcher"),
    source("korthikanti2022-tab5", "Korthikanti 2022", "Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, tables 3 and 5", "https://arxiv.org/abs/2205.05198"),
    source("mt-nlg-530b", "MT-NLG 530B", "Smith et al. 2022, Using DeepSpeed and Megatron to Train Megatron-Turing NLG 530B, section 2.4", "https://arxiv.org/abs/2201.11990"),
    source("bloom-prequel", "BLOOM tuning", "BigScience's logs of tuning BLOOM 176B and its 104B forerunner on Jean Zay", "https://github.com/bigscience-workshop/bigscience"),
    source("bigscience-1b3-v100", "BigScience 1.3B, V100", "BigScience's sweeps of a 1.3B model on Jean Zay's V100", "https://github.com/bigscience-workshop/bigscience"),
    source("bigscience-gpt2-v100", "BigScience GPT, V100", "BigScience's GPT experiments on Jean Zay's V100", "https://github.com/bigscience-workshop/bigscience"),
    source("megascale", "MegaScale 2024", "Jiang et al. 2024, MegaScale, tables 2 and 3 and figure 9", "https://arxiv.org/abs/2402.15627"),
    source("zero-bubble", "Zero Bubble", "Qi et al. 2023, Zero Bubble Pipeline Parallelism, tables 4 and 6 to 9", "https://arxiv.org/abs/2401.10241"),
    source("nemo-24.07", "NeMo 24.07", "NeMo's performance summary of release 24.07", "https://github.com/NVIDIA/NeMo"),
    source("nemo-docs-25", "NeMo 25", "NeMo Framework user guide, performance summaries of 2025", "https://docs.nvidia.com/nemo-framework/"),
    source("nemo-automodel", "NeMo AutoModel", "NeMo AutoModel's performance summary", "https://github.com/NVIDIA-NeMo/Automodel"),
    source("megatron-bridge", "Megatron-Bridge", "Megatron-Bridge's performance summaries, releases 25.09 to 26.08", "https://github.com/NVIDIA-NeMo/Megatron-Bridge"),
    source("mbridge-skills", "Megatron-Bridge studies", "Megatron-Bridge's notes on recomputation and expert overlap", "https://github.com/NVIDIA-NeMo/Megatron-Bridge"),
    source("dgxc-benchmarking", "DGX Cloud recipes", "NVIDIA DGX Cloud benchmarking recipes, 24.11 to 25.05", "https://github.com/NVIDIA/dgxc-benchmarking"),
    source("megatron-ci", "Megatron-LM CI", "Golden values of Megatron-LM's functional tests", "https://github.com/NVIDIA/Megatron-LM"),
    source("simumax-b200", "SimuMax, B200", "SimuMax's real runs of Megatron-LM on B200, release 1.2", "https://github.com/MooreThreads/SimuMax"),
    source("xtuner-megatron-moe", "XTuner's Megatron study", "XTuner's study of Qwen3-235B-A22B under Megatron on 256 H800", "https://github.com/InternLM/xtuner"),
    source("mindspeed-llm", "ModelLink, Ascend", "ModelLink 1.0.RC3 (MindSpeed-LLM), performance table with its launch scripts", "https://github.com/Ascend/MindSpeed-LLM"),
    source("internevo", "InternEvo", "InternEvo's training performance, 7B on 8 to 1024 GPUs", "https://github.com/InternLM/InternEvo"),
    source("llm-foundry-mpt", "llm-foundry", "MosaicML llm-foundry's benchmarks of MPT under FSDP", "https://github.com/mosaicml/llm-foundry"),
    source("torchtitan", "torchtitan", "torchtitan's benchmark tables", "https://github.com/pytorch/torchtitan"),
    source("stas-upgrade", "ml-engineering", "Bekman, Machine Learning Engineering: when to upgrade GPUs", "https://github.com/stas00/ml-engineering"),
    source("ms-swift", "ms-swift", "ms-swift's Megatron benchmarks", "https://github.com/modelscope/ms-swift"),
    source("mlperf-405b", "MLPerf 5.0, 405B", "MLPerf Training 5.0: logs of Llama 3.1 405B, train_step_time of the submission's own log, layout from its config", "https://github.com/mlcommons/training_results_v5.0"),
    source("mlperf-8b", "MLPerf 5.1, 8B", "MLPerf Training 5.1: logs of Llama 3.1 8B, step times and layouts as the submissions give them", "https://github.com/mlcommons/training_results_v5.1"),
    source("moe-modelzoo", "Megatron MoE model zoo", "Megatron-Core MoE model zoo, best practice for Qwen3-235B-A22B", "https://github.com/yanring/Megatron-MoE-ModelZoo"),
    source("scaletorch", "ScaleTorch, Ascend", "ScaleTorch's table of Qwen3 on eight Ascend 910B, eager PyTorch", "https://github.com/jianzhnie/ScaleTorch"),
    source("amd-primus", "AMD Primus, MI325X", "AMD's Primus on 64 MI325X: measured rates of its projection article, batch and recomputation from AMD's guide to the same runs", "https://github.com/AMD-AGI/Primus"),
    source("torchtitan-compiled", "torchao and torchtitan, loss compiled", "Memory tables of torchao's training documents and of torchtitan's NVFP4 page, with a compiled loss", "https://github.com/pytorch/ao"),
    source("ms-swift-examples", "ms-swift's examples", "Memory named in the comments of ms-swift's Megatron examples", "https://github.com/modelscope/ms-swift"),
    source("trainer", "ms-swift's Trainer examples", "Memory named in the comments of ms-swift's examples of transformers' Trainer under DeepSpeed ZeRO-3 with Liger's loss", "https://github.com/modelscope/ms-swift"),
    source("trainer-h200", "Trainer on an H200", "Measured by this project in November 2026: transformers' Trainer, PEFT, bitsandbytes and Liger on one H200 (tests/record/trainer_on_gpu.py)", "https://github.com/huggingface/transformers"),
    source("trl-h200", "TRL on an H200", "Measured by this project in November 2026: TRL 1.15's SFTTrainer on one H200 (tests/record/tuning_on_gpu.py)", "https://github.com/huggingface/trl"),
    source("unsloth-h200", "unsloth on an H200", "Measured by this project in November 2026: unsloth 2026.10.9 on one H200 (tests/record/tuning_on_gpu.py)", "https://github.com/unslothai/unsloth"),
    source("families-h200", "Trainer on an H200, other families", "Measured by this project in November 2026: transformers' Trainer and PEFT on one H200 over experts, windows, hybrids and older models (tests/record/families_on_gpu.py)", "https://github.com/huggingface/transformers"),
    source("preferences-h200", "TRL's preferences and rollouts on an H200", "Measured by this project in November 2026: TRL 1.16's DPO, KTO, reward, GRPO and RLOO, ORPO and CPO trainers on one H200 (tests/record/preferences_on_gpu.py)", "https://github.com/huggingface/trl"),
    source("torchtune", "torchtune", "torchtune's page on memory", "https://github.com/pytorch/torchtune"),
    source("unsloth", "unsloth", "unsloth's benchmarks: the largest lengths of Llama 3.1 8B and 3.3 70B that fit GPUs of 8 to 80 GB", "https://unsloth.ai/docs/basics/unsloth-benchmarks"),
    source("nanotron", "nanotron", "nanotron's benchmark logs of a Llama of 1B, July 2024", "https://huggingface.co/nanotron/old_bench"),
];

/// The source of a family.
#[must_use]
pub(super) fn source_of(family: &str) -> &'static Source {
    SOURCES.iter().find(|source| source.family == family).unwrap_or_else(|| panic!("no source {family}"))
}
