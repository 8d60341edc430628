//! The effect of an unknown setting on the verdict, by its name and value.
//!
//! In two draws of public files (228 files with an answer, each compared with its program) about half of the answers
//! that were only marked because of unknown settings were wrong: those settings concerned a fork's own model, loss,
//! samples or sharding. Therefore an unknown setting stops the verdict, unless it is switched off or its name indicates
//! that it concerns something around the training.

use crate::{Effect, NotModelled};
use std::collections::HashSet;
use std::sync::LazyLock;

/// The message for a setting whose name suggests what it changes.
pub(crate) const WHAT: &str =
    "an unknown option whose name suggests that it changes the model, the data, memory or sharding";

/// The message for a setting whose name suggests nothing.
pub(crate) const UNKNOWN: &str = "an unknown option that may change the model, the data, memory or sharding";

/// Parts of names that indicate that a setting concerns data, evaluation, logs, files, rewards or the rollout engine
/// within its share of memory. Such a setting marks the verdict.
const AROUND: &str = "eval evaluation mmlu val valid validation test tests log logs logger logging save saves saved dir file files folder \
    path output project exp experiment wandb swanlab tb tensorboard beaker auth hub url port host timeout seed data dataset datasets \
    streaming samples shuffle prompt prompts template system reward rewards metric metrics judge verifier workers debug profile \
    profiling warmup interval decay lr epochs steps hysteresis temperature sglang vllm stop hf disable random \
    split splits percentage resume mfu cache throughput checkpoints ckpts verbose";
/// Groups of keys that indicate the same for every key in them.
const GROUPS: &str = "reward reward_fn server flops_profiler comms_logger monitor_config profiler experiment_logger eval_dataset val_dataset \
    device_groups nvrx_straggler defaults brrr_data profile torch_profiler_config hydra tensor_parallel_plan layer_name_map timers inference variables";
/// Parts of names of rewards, whatever their function.
const REWARDS: &str = "reward rewards";
/// Parts that cancel this: a path to a function, a module or a configuration refers to the user's own program.
const OWN: &str = "function func hook custom module class config configs spec filter";
/// Those among them that a reward may have.
const FUNCTIONS: &str = "function func";
/// Full names in known frameworks' own files (DeepSpeed, NeMo, Megatron-Bridge, Primus, axolotl, ms-swift,
/// MindSpeed-LLM, torchtitan, nanotron), and those of data loaders and tokenizers in any program, that change a figure
/// only slightly, or one that no estimate covers: buffer sizes, the order of messages, which kernel computes the same
/// result. They mark the verdict.
const SMALL: &str = "stage3_param_persistence_threshold sub_group_size stage3_prefetch_bucket_size stage3_max_live_parameters \
    stage3_max_reuse_distance allgather_partitions round_robin_gradients auto_cast opt_level adam_w_mode \
    grad_allreduce_chunk_size_mb grad_div_ar_fusion sync_batch_comm batch_p2p_comm contiguous_grad_buffer contiguous_param_buffer \
    bucket_cap_mb megatron_legacy mcore_gpt reduce_amax get_attention_mask_from_fusion bf16 pipeline_dtype comm_overlap \
    check_for_nan_in_grad average_in_collective gc_freq fuse_loss policy_loss \
    bnb_4bit_compute_dtype bnb_4bit_quant_storage llm_int8_threshold is_llama_derived_model is_falcon_derived_model \
    is_qwen_derived_model revision_of_model model_name model_author use_ray lazy_tokenize async_generate tool_format \
    enable_dft_loss use_shared_fs num_processes max_new_tokens max_model_len expandable_segments neat_pack pack \
    attention_mask_type gemm_gradient_accumulation_fusion shape_order filter_fqns fqns \
    _fused_rms_norm _fused_rotary_emb _use_qkv_packed _use_doc_masking z_loss_coefficient ring_attn_heads_k_stride \
    sglang_model_loader_extra_config world_size global_batch_size eps ref_pretrain group_method \
    no_remove_unused_columns ignore_mismatched_sizes eta_min deallocate_pipeline_outputs persist_layer_norm \
    train_memory_margin_bytes update_weight_buffer_size update_weight_transfer_mode problem_type sample_packing_sequentially \
    curriculum_sampling base_model_ignore_patterns micro_rollout_batch_size override_model_config extends \
    first_last_layers_bf16 config config_file config_path config_name \
    pin_memory prefetch_factor num_proc from_local repetition_penalty presence_penalty frequency_penalty";

/// Prefixes of parts of a name that suggest what it changes.
const PARTS: [&str; 24] = [
    "lora",
    "lowrank",
    "qlora",
    "peft",
    "adapter",
    "freez",
    "frozen",
    "unfreez",
    "trainable",
    "medusa",
    "eagle",
    "teacher",
    "student",
    "distill",
    "quantiz",
    "critic",
    "offload",
    "virtual",
    "parallel",
    "recompute",
    // Another encoder in addition to the decoder, or experts made from its MLPs (MGM's
    // `vision_tower_aux`, MoE-LLaVA's `moe_enable`).
    "tower",
    "moe",
    "expert",
    "tune",
];
const WHOLE: [&str; 4] = ["pre_seq_len", "prefix_projection", "bits", "train_modules"];
/// Suffixes of the weight of a loss that the program adds, over samples of its own kind (RRHF's `rrhf_weight`).
const OF_A_LOSS: [&str; 4] = ["loss_weight", "loss_coef", "loss_coeff", "_weight"];

/// The item that stops the verdict at an unknown setting; `None` if the setting only marks it. `path` may have
/// groups before the name, and dashes.
pub(crate) fn stop(path: &str, value: &str) -> Option<NotModelled> {
    let what = if tells(path, value) { WHAT } else { UNKNOWN };
    (what == WHAT || !is_around(path, value))
        .then(|| NotModelled::new(path, value, Effect::Model, what).unknown())
}

/// Whether the name of an unknown setting suggests that it changes what trains, what is in memory or how it is
/// sharded, and its value confirms that.
pub(crate) fn tells(path: &str, value: &str) -> bool {
    let name = named(path);
    let tells = WHOLE.contains(&name.as_str())
        || OF_A_LOSS.iter().any(|end| name.ends_with(end))
        || name
            .replace("low_rank", "lowrank")
            .split('_')
            .any(|part| PARTS.iter().any(|known| part.starts_with(known)));
    tells && !is_off(&name, value)
}

fn named(path: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    name.trim_start_matches('-').to_ascii_lowercase().replace('-', "_")
}

/// The words of the long lists, hashed once: every unknown setting of a text is looked up in them.
static HASHED: LazyLock<[HashSet<&str>; 3]> =
    LazyLock::new(|| [AROUND, GROUPS, SMALL].map(|list| list.split_ascii_whitespace().collect()));

/// Whether a setting is switched off, or concerns something around the training.
fn is_around(path: &str, value: &str) -> bool {
    let name = named(path);
    let [around, groups, small] = &*HASHED;
    let listed = |list: &str, part: &str| list.split_ascii_whitespace().any(|known| known == part);
    let any = |list: &str| name.split('_').any(|part| listed(list, part));
    let grouped = path.split('.').any(|group| groups.contains(group));
    // A function that scores samples needs no memory besides the model; one that creates them does.
    let own = |part: &str| listed(OWN, part) && !(any(REWARDS) && listed(FUNCTIONS, part));
    is_off(&name, value)
        || grouped
        || name.contains("learning_rate")
        || small.contains(name.as_str())
        || name.split('_').any(|part| around.contains(part)) && !name.split('_').any(own)
}

/// Whether a value means that something is off or absent.
pub(crate) fn says_no(value: &str) -> bool {
    value.parse() == Ok(0.0_f64)
        || matches!(
            value.to_ascii_lowercase().as_str(),
            "none" | "null" | "no" | "false" | "off" | "[]" | "{}"
        )
}

/// A degree of 1 splits nothing, whereas 1 turns a switch on. A module that is not tuned is
/// frozen, which is not the same as off.
fn is_off(name: &str, value: &str) -> bool {
    let whole = name.contains("parallel") && value.parse() == Ok(1_u64);
    !name.starts_with("tune") && (whole || says_no(value))
}

#[cfg(test)]
mod tests {
    use super::{stop, tells};

    #[test]
    fn names_tell_and_values_take_it_back() {
        assert!(tells("rollout.expert_parallel_size", "8") && tells("use-quantized-messages", ""));
        assert!(!tells("rollout.expert_parallel_size", "1") && !tells("offload", "False"));
        assert!(tells("tune_mm_mlp", "False") && !tells("max_new_tokens", "256"));
    }

    #[test]
    fn what_nobody_knows_stops_unless_it_is_off_or_around_the_training() {
        let stops = |path: &str, value: &str| stop(path, value).is_some();
        for (path, value) in [
            ("infini_attention.segment_length", "1024"),
            ("--mask-only", ""),
            ("--opsd-jsd-coef", "1.0"),
            ("--custom-generate-function-path", "generate.run"),
            ("fault_tolerance.semi_sync_method", "diloco"),
            ("per_device_max_tokens", "65536"),
            ("custom_reward_model_class", "mine.Judge"),
            ("contrastive_learning", "true"),
        ] {
            assert!(stops(path, value), "{path}");
        }
        for (path, value) in [
            ("model.model_config.z_loss_enabled", "false"),
            ("do_mmlu_eval", "True"),
            ("validation_file_dir", "./data"),
            ("--tb-project-name", "a"),
            ("max_new_tokens", "256"),
            ("reward_func_names", "[exact_match]"),
            ("end_learning_rate", "1e-6"),
            // The location of samples (phantom-reasoning, `datasets_for_grpo.py`).
            ("from_local", "true"),
            // verl 0.4's `profile` of the actor, off; an empty list (NeMo 1's `drop_layers`); a penalty at sampling, whose counts of
            // tokens are in the engine's share of memory.
            ("actor_rollout_ref.actor.profile.step_start", "-1"),
            ("model.drop_layers", "[]"),
            ("actor_rollout_ref.rollout.repetition_penalty", "1.1"),
        ] {
            assert!(!stops(path, value), "{path}");
        }
    }
}
