//! What NeMo-RL's own base files set, which a recipe names under `defaults` and changes in part
//! (`examples/configs/*.yaml`). They are kept here so that a recipe can be read without its base.

/// What NeMo-RL's own base files set, which a recipe names under `defaults` and changes in part: objective, and values of
/// keys (`examples/configs/*.yaml`).
pub(super) struct Base {
    pub(super) file: &'static str,
    pub(super) values: &'static [(&'static str, &'static str)],
}

const GRPO: &[(&str, &str)] = &[
    ("policy.model_name", "Qwen/Qwen2.5-1.5B"),
    ("policy.train_global_batch_size", "512"),
    ("policy.train_micro_batch_size", "4"),
    ("policy.max_total_sequence_length", "512"),
    ("grpo.num_generations_per_prompt", "16"),
    ("grpo.num_prompts_per_step", "32"),
    ("policy.generation.vllm_cfg.gpu_memory_utilization", "0.6"),
    ("policy.generation.vllm_cfg.tensor_parallel_size", "1"),
    ("policy.sequence_packing.enabled", "true"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];

const SFT: &[(&str, &str)] = &[
    ("policy.model_name", "meta-llama/Llama-3.2-1B"),
    ("policy.train_global_batch_size", "32"),
    ("policy.train_micro_batch_size", "1"),
    ("policy.max_total_sequence_length", "1024"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];

const DPO: &[(&str, &str)] = &[
    ("policy.model_name", "meta-llama/Llama-3.2-1B-Instruct"),
    ("policy.train_global_batch_size", "128"),
    ("policy.train_micro_batch_size", "2"),
    ("policy.max_total_sequence_length", "1024"),
    ("cluster.gpus_per_node", "1"),
    ("cluster.num_nodes", "1"),
];

pub(super) const BASES: [Base; 3] = [
    Base { file: "grpo_math_1B.yaml", values: GRPO },
    Base { file: "sft.yaml", values: SFT },
    Base { file: "dpo.yaml", values: DPO },
];

/// Whether a base file's values are known here, so that it need not be pasted.
pub(super) fn knows(file: &str) -> bool {
    BASES.iter().any(|base| base.file == file)
}
