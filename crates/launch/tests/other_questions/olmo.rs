//! Configurations of OLMo's own trainer at 59a53e3f68, and settings that stop by name.

use super::{said, stopped, value};
use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution};
use shardscope_plan::Field;
use shardscope_source::Source;

/// A configuration with these additional keys in `model`, in `fsdp` and at top level.
fn run(model: &str, fsdp: &str, more: &str) -> Resolution {
    let text = format!(
        "model:\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n  mlp_hidden_size: 22016\n  rope: true\n  flash_attention: true\n  \
         attention_dropout: 0.0\n  residual_dropout: 0.0\n  embedding_dropout: 0.0\n  include_bias: false\n  layer_norm_type: rms\n  \
         weight_tying: false\n  max_sequence_length: 4096\n{model}\noptimizer:\n  name: adamw\n\
         global_train_batch_size: 1024\ndevice_train_microbatch_size: 2\nprecision: amp_bf16\n\
         fsdp:\n  precision: mixed\n{fsdp}\n{more}\n"
    );
    said("olmo.yaml", &text, &[("world_size", "64")])
}

#[test]
fn a_configuration_is_read_with_what_the_trainer_has_by_default() {
    let plain = run("", "  wrapping_strategy: by_block", "");
    let plan = plain.plan.as_ref().unwrap_or_else(|| panic!("{:?}", plain.diagnostics));
    assert!(plan.recipe().marks.is_empty(), "{:?}", plan.recipe().marks);
    let shown = [
        Field::FfnHiddenSize,
        Field::PaddedVocabSize,
        Field::ZeroStage,
        Field::ReduceDtype,
        Field::LossKind,
        Field::Optimizer,
    ]
    .map(|field| value(&plain, field));
    assert_eq!(shown, ["11008", "50304", "3", "fp32", "", "adam"]);
    let other = run(
        "  n_kv_heads: 8\n  attention_layer_norm: true\n  attention_layer_norm_with_affine: false\n  embedding_size: null\n  vocab_size: 50280",
        "  wrapping_strategy: by_block_and_size\n  sharding_strategy: SHARD_GRAD_OP",
        "fused_loss: true\nactivation_checkpointing: three_in_four\nmax_duration: 2e12T",
    );
    let shown = [
        Field::NumQueryGroups,
        Field::ModuleVariants,
        Field::PaddedVocabSize,
        Field::ZeroStage,
        Field::FsdpEndsApart,
        Field::LossKind,
        Field::RecomputeMethod,
        Field::TokenBudget,
    ]
    .map(|field| value(&other, field));
    let expected = [
        "8",
        "head_norms_without_weights",
        "50280",
        "2",
        "true",
        "fused_logits",
        "all_but_every",
        "2000000000000",
    ];
    assert_eq!(shown, expected);
    assert!(other.plan.is_some(), "{:?}", other.diagnostics);
}

#[test]
fn compiled_blocks_are_those_that_were_recorded() {
    let by_block = "  wrapping_strategy: by_block";
    let compile = "compile:\n  fullgraph: false";
    for model in [
        "  layer_norm_type: default\n  layer_norm_with_affine: false",
        "  norm_after: true\n  attention_layer_norm: true",
    ] {
        let read = run(model, by_block, compile);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::CompiledLayers), "true");
        let mode = run(model, by_block, "compile:\n  mode: max-autotune");
        stopped(&mode, &["compile.mode"]);
    }
}

#[test]
fn words_of_a_command_override_the_file() {
    let file = "model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, rope: true, attention_dropout: 0.0, \
                residual_dropout: 0.0, embedding_dropout: 0.0, include_bias: false, layer_norm_type: rms, norm_after: true, \
                attention_layer_norm: true, weight_tying: false, max_sequence_length: 4096}\n\
                optimizer: {name: adamw}\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 4\n\
                precision: amp_bf16\nfsdp: {wrapping_strategy: by_block_and_size, precision: mixed}\n";
    let script = "torchrun --nnodes 4:4 --nproc-per-node 8 scripts/train.py configs/a.yaml --run_name=mine --save_overwrite \
                  --device_train_microbatch_size=2 --compile.fullgraph=false --activation_checkpointing=one_in_four \
                  --fused_loss=true --model.flash_attention=true\n";
    let read = |script: &str| {
        let source = Source::from_files([("run.sh", script), ("a.yaml", file)]);
        shardscope_launch::read(&Request {
            source: &source,
            environment: &Environment::default(),
            overrides: &[],
        })
    };
    let job = read(script);
    let plan = job.plan.as_ref().unwrap_or_else(|| panic!("{:?}", job.diagnostics));
    assert!(plan.recipe().marks.is_empty(), "{:?}", plan.recipe().marks);
    let shown = [
        Field::WorldSize,
        Field::MicroBatchSize,
        Field::RecomputeMethod,
        Field::LossKind,
        Field::CompiledLayers,
        Field::AttentionKernel,
    ]
    .map(|field| value(&job, field));
    assert_eq!(shown, ["32", "2", "every", "fused_logits", "true", "flash"]);
    let copies = |more: &str| {
        let job = read(&script.replace("--fused_loss=true", &format!("--fused_loss=true {more}")));
        job.plan.expect("a plan").layout().distributed_optimizer_instances
    };
    assert_eq!(copies("--fsdp.sharding_strategy=HYBRID_SHARD"), 4);
    let stated = "--fsdp.sharding_strategy=HYBRID_SHARD --fsdp.hybrid_sharding_num_model_replicas=2";
    assert_eq!(copies(stated), 2);
}

#[test]
fn olmo_core_programs_without_a_configuration_stop_by_name() {
    let script = "import argparse\nfrom olmo_core.nn.transformer import TransformerConfig\n\n\
                  def build_config(opts):\n    model_config = TransformerConfig.olmo2_7B(vocab_size=100352)\n";
    stopped(&said("train.py", script, &[]), &["program"]);
    let saved = r#"{"model": {"d_model": 4096, "n_layers": 32, "vocab_size": 100352},
        "train_module": {"rank_microbatch_size": 16384, "max_sequence_length": 8192}}"#;
    let read = said("config.json", saved, &[("world_size", "64")]);
    stopped(&read, &["train_module.dp_config"]);
    assert_eq!([value(&read, Field::SeqLength), value(&read, Field::MicroBatchSize)], ["8192", "2"]);
    // Converting checkpoints does not train anything.
    let other = said("merge.py", "from olmo_core.io import join_path\nmerge(a, b)\n", &[]);
    assert!(other.not_modelled.is_empty() && other.plan.is_none(), "{:?}", other.not_modelled);
}

#[test]
fn what_olmo_does_otherwise_stops_by_name() {
    let by_block = "  wrapping_strategy: by_block";
    for (model, fsdp, more, name) in [
        ("  alibi: true", by_block, "", "model.alibi"),
        ("  block_type: llama", by_block, "", "model.block_type"),
        ("  residual_dropout: 0.1", by_block, "", "model.residual_dropout"),
        ("  block_group_size: 4", by_block, "", "model.block_group_size"),
        ("  layer_norm_type: low_precision", by_block, "", "model.layer_norm_type"),
        ("  bias_for_layer_norm: true", by_block, "", "model.bias_for_layer_norm"),
        ("  rope: false", by_block, "", "model.rope"),
        ("  rope_full_precision: false", by_block, "", "model.rope_full_precision"),
        ("  scale_logits: true", by_block, "", "model.scale_logits"),
        ("", "", "", "fsdp.wrapping_strategy"),
        ("", "  wrapping_strategy: one_in_two", "", "fsdp.wrapping_strategy"),
        ("  weight_tying: true", "  wrapping_strategy: by_block_and_size", "", "fsdp.wrapping_strategy"),
        ("", "  wrapping_strategy: by_block\n  sharding_strategy: NO_SHARD", "", "fsdp.sharding_strategy"),
        ("", by_block, "distributed_strategy: ddp", "distributed_strategy"),
        ("", by_block, "activation_checkpointing: fine_grained", "activation_checkpointing"),
        ("", by_block, "softmax_auxiliary_loss: true", "softmax_auxiliary_loss"),
        (
            "",
            by_block,
            "data:\n  custom_dataset:\n    name: mine\n    collate_config:\n      attention_bias_field: bias",
            "data.custom_dataset.collate_config.attention_bias_field",
        ),
        ("", by_block, "data:\n  generate_doc_lengths: true", "data.generate_doc_lengths"),
        ("", by_block, "compile:\n  fullgraph: false", "compile.fullgraph"),
        ("", by_block, "evaluators:\n  - label: piqa", "evaluation_batch_size"),
    ] {
        let read = run(model, fsdp, more);
        stopped(&read, &[name]);
        assert_eq!(read.not_modelled.len(), 1, "{:?}", read.not_modelled);
    }
}

/// `norms_without_weights` and `clipped_queries` are of transformers' modules and of OLMo's own: under Megatron and torchtitan their
/// layers are others, which the figures once were of without a word.
#[test]
fn olmos_own_parts_stop_in_software_of_other_layers() {
    let file = |clip: &str| {
        format!(
            "{{\"model_type\": \"olmo\", \"hidden_size\": 4096, \"intermediate_size\": 11008, \"num_attention_heads\": 32, \
             \"num_hidden_layers\": 32, \"max_position_embeddings\": 2048, \"vocab_size\": 50304, \"clip_qkv\": {clip}}}"
        )
    };
    let under = |software: &str, clip: &str| {
        let answers = [
            ("software", software),
            ("world_size", "8"),
            ("seq_length", "2048"),
            ("micro_batch_size", "1"),
            ("global_batch_size", "8"),
        ];
        let read = said("config.json", &file(clip), &answers);
        let names = read.not_modelled.iter().map(|item| item.value.clone()).collect::<Vec<_>>();
        (read.plan.is_some(), names)
    };
    for software in ["megatron_core_te", "megatron_core_local", "megatron_deepspeed", "torchtitan"] {
        assert_eq!(under(software, "null"), (false, vec!["norms_without_weights".to_owned()]), "{software}");
        let both = vec!["norms_without_weights clipped_queries".to_owned()];
        assert_eq!(under(software, "8.0"), (false, both), "{software}");
    }
    assert_eq!(under("hf_transformers", "8.0"), (true, vec![]));
}
