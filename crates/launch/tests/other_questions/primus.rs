//! Primus: its overrides other than Megatron's flags.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

fn tuned(more: &str) -> Resolution {
    let text = format!(
        "modules:\n  post_trainer:\n    framework: megatron\n    config: sft_trainer.yaml\n    model: llama3_8B.yaml\n    overrides:\n{more}"
    );
    said("exp.yaml", &text, &[("world_size", "8")])
}

/// The group was formerly ignored, and all weights were counted as trained.
#[test]
fn adapters_of_its_fine_tuning_are_read() {
    let lora = "      lora:\n        enabled: true\n        dim: 16\n        target_modules:\n          - linear_qkv\n          - linear_proj\n";
    let read = tuned(lora);
    assert!(read.plan.is_some(), "{:?}", read.diagnostics);
    for (field, expected) in [
        (Field::TrainType, "lora"),
        (Field::AdapterLibrary, "megatron-bridge"),
        (Field::LoraRank, "16"),
        (Field::LoraTargetModules, "linear_qkv linear_proj"),
        // `sft_trainer.yaml`
        (Field::MicroBatchSize, "1"),
        (Field::GlobalBatchSize, "128"),
        (Field::SeqLength, "2048"),
    ] {
        assert_eq!(value(&read, field), expected, "{}", field.name());
    }
    let usual = tuned("      lora:\n        enabled: true\n");
    assert_eq!(value(&usual, Field::LoraTargetModules), "linear_qkv linear_proj linear_fc1 linear_fc2");
    assert_eq!(value(&usual, Field::LoraRank), "32");
    let off = tuned("      lora:\n        enabled: false\n");
    assert_eq!(value(&off, Field::TrainType), "");
    stopped(&tuned(&format!("{lora}      num_experts: 8\n      expert_model_parallel_size: 8\n")), &["lora"]);
}

#[test]
fn groups_that_are_not_known_mark_the_verdict() {
    stopped(&tuned("      torch_compile:\n        enable: true\n"), &["torch_compile.enable"]);
    assert!(tuned("      torch_compile:\n        enable: false\n").plan.is_some());
    let other = tuned("      quantum:\n        enabled: true\n").plan.expect("a plan");
    assert_eq!(other.recipe().marks.not_read, ["quantum"]);
}

/// Its first stage fuses kernels; from the second on DeepEP receives into worst-case buffers.
#[test]
fn stages_without_synchronisation_stop_from_the_second_on() {
    let of = |stage: u64| {
        let text = format!(
            "modules:\n  pre_trainer:\n    framework: megatron\n    model: mixtral_8x7B_v0.1.yaml\n    overrides:\n      seq_length: 4096\n      \
             micro_batch_size: 1\n      global_batch_size: 64\n      expert_model_parallel_size: 8\n      enable_primus_turbo: true\n      \
             turbo_sync_free_moe_stage: {stage}\n"
        );
        said("exp.yaml", &text, &[("world_size", "8")])
    };
    assert_eq!(value(&of(0), Field::MoePermuteFusion), "false");
    let first = of(1);
    assert!(first.plan.is_some(), "{:?}", first.diagnostics);
    assert_eq!(value(&first, Field::MoePermuteFusion), "true");
    stopped(&of(2), &["turbo_sync_free_moe_stage"]);
}

/// Primus-Turbo's attention exchanges heads over the context-parallel ranks, whatever Megatron's default; its sinks are
/// its own.
#[test]
fn attention_of_primus_turbo_exchanges_heads_and_stops_with_sinks() {
    let turbo = "      enable_primus_turbo: true\n      use_turbo_attention: true\n";
    let cut = tuned(&format!("{turbo}      context_parallel_size: 2\n"));
    assert_eq!(value(&cut, Field::CpCommType), "a2a");
    assert_eq!(value(&tuned(turbo), Field::CpCommType), "");
    stopped(&tuned(&format!("{turbo}      use_sink_attention: true\n")), &["--use_sink_attention"]);
    // DeepEP's compute units only concern its kernels.
    assert!(tuned(&format!("{turbo}      turbo_deepep_num_cu: 64\n")).plan.is_some());
}

/// Its own model files are not copies of the published ones.
#[test]
fn models_are_those_of_its_own_files() {
    let of = |model: &str| {
        let text = format!(
            "modules:\n  pre_trainer:\n    framework: megatron\n    config: pre_trainer.yaml\n    model: {model}.yaml\n    overrides:\n      \
             seq_length: 4096\n"
        );
        said("exp.yaml", &text, &[("world_size", "8")])
    };
    let value_of = |model: &str, field| value(&of(model), field);
    assert_eq!(value_of("llama3.2_1B", Field::UntieEmbeddingsAndOutputWeights), "true");
    assert_eq!(value_of("qwen2.5_7B", Field::AddQkvBias), "false");
    assert_eq!(value_of("qwen3_8B", Field::QkLayernorm), "false");
    assert_eq!(value_of("qwen3_30B_A3B", Field::QkLayernorm), "true");
    assert!(of("llama3.1_8B").plan.is_some() && of("gpt_oss_20B").plan.is_none());
}
