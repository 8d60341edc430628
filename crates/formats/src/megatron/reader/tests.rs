use super::read;
use crate::Argument;
use shardscope_plan::Field;
use shardscope_source::Code;

#[track_caller]
fn check(line: &str, expected: &[(Field, &str)], codes: &[Code]) {
    let reading = read(&Argument::split(line));
    let found: Vec<_> = reading.found.iter().map(|found| (found.field, found.value.as_str())).collect();
    assert_eq!(found, expected, "{line}");
    let said: Vec<_> = reading.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(said, codes, "{line}");
}

#[test]
fn every_spelling_is_read() {
    check(
        "pretrain_gpt.py --num-layers 24 --bf16 --no-rope-fusion",
        &[(Field::NumLayers, "24"), (Field::Bf16, "true"), (Field::ApplyRopeFusion, "false")],
        &[],
    );
    check("--num_layers=24", &[(Field::NumLayers, "24")], &[Code::Underscores]);
    check("--swiglu True --bf16 false", &[(Field::Swiglu, "true"), (Field::Bf16, "false")], &[]);
    check("--num-layers 24 --num-layers 32", &[(Field::NumLayers, "32")], &[Code::RepeatedFlag]);
    check(
        "--recompute-modules core_attn moe --lr 1e-4",
        &[(Field::RecomputeModules, "core_attn moe")],
        &[Code::NoInfluence],
    );
    check(
        "--cuda-graph-impl local --cuda-graph-modules attn moe_router --bf16",
        &[
            (Field::CudaGraphImpl, "local"),
            (Field::CudaGraphModules, "attn moe_router"),
            (Field::Bf16, "true"),
        ],
        &[],
    );
    check("--cuda-graph-scope full", &[(Field::CudaGraphModules, "full")], &[]);
}

#[test]
fn what_is_old_unknown_or_broken_is_said() {
    check("--batch-size 4", &[(Field::MicroBatchSize, "4")], &[Code::RenamedFlag]);
    check("--DDP-impl local", &[], &[Code::RenamedFlag]);
    check("--num-layer 24", &[], &[Code::UnknownFlag]);
    // An option that may change the model or its sharding is an error of its own, without an extra warning.
    check("--my-own-thing 24 --another-one", &[], &[]);
    check("--my-own-thing 24 --tb-project-name a", &[], &[Code::UnknownFlags]);
    check(
        "--zero-stage 2 --bias_swiglu_fusion false",
        &[(Field::ZeroStage, "2"), (Field::BiasSwigluFusion, "false")],
        &[],
    );
    check("--num-layers --hidden-size 8", &[(Field::HiddenSize, "8")], &[Code::MissingValue]);
    let reading =
        read(&Argument::split("--is-hybrid-model --my-own-thing 24 --use-sharp false --num-layer 2"));
    let lacking: Vec<_> = reading.not_modelled.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(lacking, ["--is-hybrid-model", "--my-own-thing", "--num-layer"]);
    let not_read: Vec<_> = reading.not_read.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(not_read, ["--my-own-thing", "--num-layer"]);
}
