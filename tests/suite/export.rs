//! Exported files say the same as the plan from which they were written.

use shardscope::bash::Environment;
use shardscope::export::{bridge_command, deepspeed_json, edit, megatron_command};
use shardscope::launch::{Request, Resolution, read};
use shardscope::plan::Field;
use shardscope::source::Source;

use crate::random::Random;

fn resolved(source: &Source, overrides: &[(String, String)]) -> Resolution {
    read(&Request { source, environment: &Environment::default(), overrides })
}

fn value(resolution: &Resolution, field: Field) -> String {
    resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
}

/// Settings with values to draw from; the first of each is the usual one.
const DRAWN: &[(Field, &[&str])] = &[
    (Field::NumLayers, &["24", "8", "48"]),
    (Field::HiddenSize, &["2048", "1024"]),
    (Field::NumAttentionHeads, &["16", "32"]),
    (Field::SeqLength, &["2048", "4096"]),
    (Field::MaxPositionEmbeddings, &["4096", "8192"]),
    (Field::FfnHiddenSize, &["", "5504", "8192"]),
    (Field::Swiglu, &["", "true"]),
    (Field::SquaredRelu, &["", "", "true"]),
    (Field::Normalization, &["", "RMSNorm"]),
    (Field::PositionEmbeddingType, &["", "rope", "none"]),
    (Field::AddBiasLinear, &["", "false"]),
    (Field::AddQkvBias, &["", "true"]),
    (Field::QkLayernorm, &["", "true"]),
    (Field::UntieEmbeddingsAndOutputWeights, &["", "true"]),
    (Field::GroupQueryAttention, &["", "true"]),
    (Field::NumQueryGroups, &["", "8", "4"]),
    (Field::KvChannels, &["", "128"]),
    (Field::VocabSize, &["50257", "32000", "128256"]),
    (Field::MakeVocabSizeDivisibleBy, &["", "64"]),
    (Field::NumNodes, &["2", "1", "4"]),
    (Field::GpusPerNode, &["8", "4"]),
    (Field::TensorModelParallelSize, &["", "2", "4"]),
    (Field::PipelineModelParallelSize, &["", "2", "4"]),
    (Field::ContextParallelSize, &["", "", "2"]),
    (Field::NumVirtualStagesPerPipelineRank, &["", "", "2"]),
    (Field::SequenceParallel, &["", "true"]),
    (Field::MicroBatchSize, &["1", "2"]),
    (Field::GlobalBatchSize, &["64", "128", "256"]),
    (Field::Bf16, &["true", "true", ""]),
    (Field::Fp8, &["", "", "hybrid", "e4m3"]),
    (Field::GradReduceInBf16, &["", "", "true"]),
    (Field::UseDistributedOptimizer, &["", "true"]),
    (Field::Optimizer, &["", "", "sgd"]),
    (Field::RecomputeGranularity, &["", "", "selective"]),
    (Field::RecomputeModules, &["", "", "core_attn layernorm"]),
    (Field::HiddenDropout, &["", "0"]),
    (Field::AttentionDropout, &["", "0"]),
    (Field::BiasGeluFusion, &["", "false"]),
    (Field::GradientAccumulationFusion, &["", "false"]),
    (Field::CrossEntropyLossFusion, &["", "true"]),
    (Field::OverlapGradReduce, &["", "true"]),
    (Field::NumExperts, &["", "", "8"]),
    (Field::MoeRouterTopk, &["", "1"]),
    (Field::MoeFfnHiddenSize, &["", "1024"]),
    (Field::MoeLayerFreq, &["", "2"]),
    (Field::MoeTokenDispatcherType, &["", "alltoall"]),
    (Field::ExpertModelParallelSize, &["", "2"]),
    (Field::MoeGroupedGemm, &["", "true"]),
    (Field::AttentionBackend, &["", "unfused", "fused"]),
];

/// Random plans, until `count` of them are consistent.
fn plans(software: &[&str], count: usize, seed: u64) -> Vec<Resolution> {
    let mut random = Random::new(seed);
    let mut plans = Vec::new();
    let mut tries = 0;
    while plans.len() < count {
        tries += 1;
        assert!(tries < 100 * count, "too few of the drawn plans hold together: {}", plans.len());
        let mut settings: Vec<(String, String)> = Vec::new();
        for (field, values) in DRAWN {
            let drawn = values[random.below(values.len() as u64) as usize];
            let second = *field == Field::SquaredRelu && settings.iter().any(|(name, _)| name == "swiglu");
            if !drawn.is_empty() && !second {
                settings.push((field.name().to_owned(), drawn.to_owned()));
            }
        }
        if software == ["megatron_deepspeed"] {
            settings.push(("zero_stage".to_owned(), (1 + random.below(3)).to_string()));
            // Its commands with experts are DeepSpeed's, which are not modelled.
            settings.retain(|(name, _)| !name.contains("moe") && !name.contains("expert"));
        }
        settings
            .push(("software".to_owned(), software[random.below(software.len() as u64) as usize].to_owned()));
        let resolution = resolved(&Source::new("--num-layers 2 --hidden-size 64"), &settings);
        plans.extend(resolution.plan.is_some().then_some(resolution));
    }
    plans
}

#[track_caller]
fn check_same(target: &Resolution, text: &str, files: &[(&str, &str)]) {
    let machine = [("accelerator".to_owned(), value(target, Field::Accelerator))];
    let files = files.iter().copied().chain([("run.sh", text)]);
    let again = resolved(&Source::from_files(files), &machine);
    let differences: Vec<String> = Field::ALL
        .iter()
        .filter(|field| value(target, **field) != value(&again, **field))
        .map(|field| format!("{}: {} became {}", field.name(), value(target, *field), value(&again, *field)))
        .collect();
    assert_eq!(target.plan, again.plan, "{text}\n{differences:#?}\n{:?}", again.diagnostics);
}

#[test]
fn a_command_gives_the_identical_plan() {
    let software = ["megatron_core_te", "megatron_core_te", "megatron_core_local", "megatron_legacy"];
    for target in plans(&software, 25, 21) {
        let exported = megatron_command(&target);
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        check_same(&target, &exported.text, &[]);
    }
}

#[test]
fn overrides_give_the_identical_plan() {
    for target in plans(&["megatron_core_te", "megatron_core_local"], 25, 22) {
        let exported = bridge_command(&target);
        assert_eq!(exported.unsaid, [], "{}", exported.text);
        check_same(&target, &exported.text, &[]);
    }
}

#[test]
fn deepspeeds_file_beside_the_command_gives_the_identical_plan() {
    for target in plans(&["megatron_deepspeed"], 12, 23) {
        let exported = megatron_command(&target);
        let json = deepspeed_json(&target);
        assert_eq!(json.unsaid, []);
        let _: serde_json::Value = serde_json::from_str(&json.text).unwrap();
        check_same(&target, &exported.text, &[("ds_config.json", &json.text)]);
    }
}

const SCRIPT: &str = r#"#!/bin/bash
TP=2   # inside the node
NNODES=2
MODEL_ARGS="
    --num-layers 24 \
    --hidden-size 2048 \
    --num-attention-heads 16 \
    --seq-length 2048 \
    --max-position-embeddings 4096
"
TRAIN_ARGS=(
    --micro-batch-size 2   # a remark
    --global-batch-size 128
    --bf16
    --tensor-model-parallel-size ${TP}
    --sequence-parallel
)
torchrun --nnodes $NNODES --nproc_per_node 8 pretrain_gpt.py $MODEL_ARGS ${TRAIN_ARGS[@]}
"#;

#[track_caller]
fn check_edit(name: &str, text: &str, changes: &[(Field, &str)], lines: &[&str]) {
    let changes: Vec<_> = changes.iter().map(|(field, value)| (*field, (*value).to_owned())).collect();
    let edited = edit(&Source::from_files([(name, text)]), &Environment::default(), &changes);
    assert_eq!(edited.unplaced, [], "{}", edited.files[0].1);
    let after = &edited.files[0].1;
    let source = Source::from_files([(name, after.as_str())]);
    let resolution = resolved(&source, &[]);
    for (field, wanted) in &changes {
        assert_eq!(&value(&resolution, *field), wanted, "{after}");
    }
    let before: Vec<&str> = text.lines().collect();
    let new: Vec<&str> = after.lines().filter(|line| !before.contains(line)).collect();
    assert_eq!(new, lines, "{after}");
    assert_eq!(edited.marks.len(), changes.len());
    for (file, mark) in &edited.marks {
        assert!(edited.files[*file].1.get(mark.start as usize..mark.end as usize).is_some());
    }
}

#[test]
fn a_script_is_changed_in_place_and_added_to_in_its_style() {
    check_edit("run.sh", SCRIPT, &[(Field::NumLayers, "32")], &["    --num-layers 32 \\"]);
    check_edit("run.sh", SCRIPT, &[(Field::TensorModelParallelSize, "4")], &["TP=4   # inside the node"]);
    check_edit("run.sh", SCRIPT, &[(Field::MicroBatchSize, "4")], &["    --micro-batch-size 4   # a remark"]);
    check_edit("run.sh", SCRIPT, &[(Field::NumNodes, "4")], &["NNODES=4"]);
    check_edit("run.sh", SCRIPT, &[(Field::SequenceParallel, "false")], &[]);
    check_edit(
        "run.sh",
        SCRIPT,
        &[(Field::PipelineModelParallelSize, "2")],
        &["    --pipeline-model-parallel-size 2"],
    );
    check_edit(
        "run.sh",
        SCRIPT,
        &[(Field::HiddenSize, "4096"), (Field::UseDistributedOptimizer, "true"), (Field::HiddenDropout, "0")],
        &["    --hidden-size 4096 \\", "    --use-distributed-optimizer", "    --hidden-dropout 0"],
    );
    let line = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads=4 --seq-length 32 --micro-batch-size 1\n";
    let added = "torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads=8 --seq-length 32 --micro-batch-size 1 --swiglu";
    check_edit("run.sh", line, &[(Field::Swiglu, "true"), (Field::NumAttentionHeads, "8")], &[added]);
}

#[test]
fn settings_files_are_changed_in_place() {
    let neox = "{\n  \"num_layers\": 24, # depth\n  \"hidden_size\": 1024,\n  \"num_attention_heads\": 16,\n  \"seq_length\": 2048,\n  \"pipe_parallel_size\": 1,\n  \"no_weight_tying\": false,\n  \"train_micro_batch_size_per_gpu\": 4,\n  \"zero_optimization\": {\"stage\": 1}\n}\n";
    check_edit("a.yml", neox, &[(Field::NumLayers, "32")], &["  \"num_layers\": 32, # depth"]);
    check_edit("a.yml", neox, &[(Field::ZeroStage, "2")], &["  \"zero_optimization\": {\"stage\": 2}"]);
    check_edit(
        "a.yml",
        neox,
        &[(Field::UntieEmbeddingsAndOutputWeights, "true")],
        &["  \"no_weight_tying\": true,"],
    );
    check_edit(
        "a.yml",
        neox,
        &[(Field::SequenceParallel, "true")],
        &["  \"zero_optimization\": {\"stage\": 1},", "  \"sequence_parallel\": true"],
    );
    let nemo = "trainer: {num_nodes: 2, devices: 8, precision: bf16}\nmodel:\n  num_layers: 4\n  hidden_size: 64\n  num_attention_heads: 4\n  encoder_seq_length: 128\n  share_embeddings_and_output_weights: True\n  micro_batch_size: 1\n  tensor_model_parallel_size: 1\n";
    check_edit(
        "b.yaml",
        nemo,
        &[(Field::TensorModelParallelSize, "2")],
        &["  tensor_model_parallel_size: 2"],
    );
    check_edit(
        "b.yaml",
        nemo,
        &[(Field::UntieEmbeddingsAndOutputWeights, "true")],
        &["  share_embeddings_and_output_weights: False"],
    );
    check_edit("b.yaml", nemo, &[(Field::SequenceParallel, "true")], &["  sequence_parallel: true"]);
    let words = "torchrun --nnodes 1 --nproc_per_node 8 run.py model.num_layers=4 model.hidden_size=64 \\\n  model.num_attention_heads=4 model.seq_length=128 train.micro_batch_size=1\n";
    check_edit(
        "c.sh",
        words,
        &[(Field::HiddenSize, "128"), (Field::TensorModelParallelSize, "2")],
        &[
            "torchrun --nnodes 1 --nproc_per_node 8 run.py model.num_layers=4 model.hidden_size=128 \\",
            "  model.num_attention_heads=4 model.seq_length=128 train.micro_batch_size=1 model.tensor_model_parallel_size=2",
        ],
    );
}

#[test]
fn what_cannot_be_placed_is_said() {
    let changes = [(Field::DataParallelSize, "3".to_owned()), (Field::NumLayers, "7".to_owned())];
    let edited = edit(&Source::new(SCRIPT), &Environment::default(), &changes);
    assert_eq!(edited.unplaced, [(Field::DataParallelSize, "3".to_owned())]);
    assert!(edited.files[0].1.contains("--num-layers 7"));
    assert_eq!(edit(&Source::new(""), &Environment::default(), &changes).unplaced.len(), 2);
}
