//! What Megatron rejects, and what it suggests instead.

use super::resolve::{SMALL, cases};
use serde_json::Value;
use shardscope::launch::plan_from_flags;
use shardscope::source::Severity;

#[track_caller]
fn refused(flags: &str, world: u64, code: &str, message: &str, hint: &str) {
    let flags = format!("--micro-batch-size 1 --vocab-size 1000 {flags}");
    let errors = plan_from_flags(&flags, world, 8, "H100-SXM").expect_err("no plan");
    let found = errors.iter().find(|error| error.code.name() == code).unwrap_or_else(|| panic!("{errors:?}"));
    assert_eq!(found.severity, Severity::Error);
    assert!(found.message.contains(message), "{}", found.message);
    assert!(found.hint.as_deref().unwrap_or("").contains(hint), "{:?}", found.hint);
}

/// A bad value does not hide a missing setting whose name begins like its own, and is not also reported as missing.
#[test]
fn a_bad_value_hides_no_missing_setting() {
    let errors = |flags: &str| {
        let errors = plan_from_flags(flags, 8, 8, "H100-SXM").expect_err("no plan");
        errors.into_iter().map(|error| (error.code.to_string(), error.message)).collect::<Vec<_>>()
    };
    let said = |code: &str, message: &str| (code.to_owned(), message.to_owned());
    let others = "--hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 1 --vocab-size 50257 --bf16";
    let bad = |name: &str| said("bad-value", &format!("{name} takes a whole number, not \"abc\""));
    assert_eq!(
        errors(&format!("{others} --num-layers-per-virtual-pipeline-stage abc")),
        [
            bad("num_layers_per_virtual_pipeline_stage"),
            said("missing-setting", "not stated: transformer layers (num_layers)"),
        ]
    );
    assert_eq!(errors(&format!("{others} --num-layers abc")), [bad("num_layers")]);
}

#[test]
fn groups_that_megatron_refuses_are_refused() {
    let mut count = 0;
    for case in cases(include_str!("../data/megatron/groups_refused.jsonl")) {
        let id = case["id"].as_str().expect("an id");
        let config = &case["config"];
        let degree = |name: &str| config.get(name).and_then(Value::as_u64).unwrap_or(1);
        let layers = 2 * degree("pp") * degree("vpp");
        let mut flags = format!(
            "--num-layers {layers} --hidden-size 768 --num-attention-heads 24 --seq-length 1536 --ffn-hidden-size 1536 --micro-batch-size 1 \
             --vocab-size 1000 --num-experts 64 --sequence-parallel --tensor-model-parallel-size {} --pipeline-model-parallel-size {} \
             --context-parallel-size {} --expert-model-parallel-size {}",
            degree("tp"),
            degree("pp"),
            degree("cp"),
            degree("ep"),
        );
        if let Some(size) = config.get("etp").and_then(Value::as_u64) {
            flags.push_str(&format!(" --expert-tensor-parallel-size {size}"));
        }
        if config["use_tp_pp_dp_mapping"] == true {
            flags.push_str(" --use-tp-pp-dp-mapping");
        }
        if degree("vpp") > 1 {
            flags.push_str(&format!(" --num-virtual-stages-per-pipeline-rank {}", degree("vpp")));
        }
        let errors = plan_from_flags(&flags, degree("world_size"), 8, "H100-SXM").expect_err(id);
        let codes: Vec<_> = errors.iter().map(|error| error.code.name()).collect();
        let expected = case["error"].as_str().expect("a reason");
        let code = match expected {
            _ if expected.starts_with("with --use-tp-pp-dp") => "rank-order",
            _ if expected.contains("tp*pp*cp") => "world-size",
            _ if expected.contains("etp*ep*pp") => "expert-world-size",
            _ => "vpp-without-pp",
        };
        assert_eq!(codes, [code], "{id}: {errors:?}");
        count += 1;
    }
    assert!(count >= 10, "{count} refusals");
}

#[test]
fn what_megatron_refuses_is_refused_with_what_would_work() {
    refused(
        &format!("{SMALL} --tensor-model-parallel-size 2 --pipeline-model-parallel-size 3 --num-layers 6"),
        16,
        "world-size",
        "16 GPUs cannot be divided into groups of TP 2 x PP 3 = 6",
        "world sizes that fit: 6, 12, 24",
    );
    refused(
        &format!("{SMALL} --pipeline-model-parallel-size 3"),
        3,
        "layers-over-pp",
        "4 layers cannot be spread evenly over PP 3",
        "PP 1, 2, 4",
    );
    let wide = "--num-layers 4 --hidden-size 3712 --num-attention-heads 29 --seq-length 128 --ffn-hidden-size 4096 --bf16";
    refused(
        &format!("{wide} --tensor-model-parallel-size 4"),
        4,
        "heads-over-tp",
        "29 heads cannot be split over TP 4",
        "TP 1, 29",
    );
    refused(
        &format!("{SMALL} --group-query-attention --num-query-groups 3"),
        1,
        "heads-over-groups",
        "8 heads cannot share 3 query groups",
        "1, 2, 4, 8",
    );
    refused(
        &format!("{SMALL} --expert-model-parallel-size 2"),
        2,
        "ep-without-experts",
        "EP 2 needs experts",
        "",
    );
    refused(
        &format!("{SMALL} --num-experts 6 --expert-model-parallel-size 4"),
        4,
        "experts-over-ep",
        "6 experts cannot be split over EP 4",
        "EP 1, 2, 3, 6",
    );
    refused(
        &format!("{SMALL} --context-parallel-size 3"),
        3,
        "seq-over-cp",
        "not a multiple of 2 x CP = 6",
        "126",
    );
    refused(
        &format!(
            "{SMALL} --num-attention-heads 6 --hidden-size 384 --ffn-hidden-size 384 --seq-length 100 --tensor-model-parallel-size 3 --sequence-parallel"
        ),
        3,
        "seq-over-tp",
        "100 tokens on a rank",
        "99 tokens",
    );
    refused(
        &format!("{SMALL} --max-position-embeddings 64"),
        1,
        "positions",
        "longer than max_position_embeddings 64",
        "--max-position-embeddings 128",
    );
    refused(
        &format!("{SMALL} --num-layers-per-virtual-pipeline-stage 2"),
        1,
        "vpp-without-pp",
        "2 chunks per rank need PP greater than 1",
        "",
    );
    refused(
        &format!(
            "{SMALL} --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 --global-batch-size 1"
        ),
        2,
        "vpp-micro-batches",
        "groups of 2: at least PP 2, at most the 1 of a step",
        "at least 2",
    );
    refused(
        &format!("{SMALL} --pipeline-model-parallel-size 2 --context-parallel-size 2 --use-tp-pp-dp-mapping"),
        8,
        "rank-order",
        "to be equal",
        "",
    );
    refused(
        &format!("{SMALL} --recompute-granularity full"),
        1,
        "recompute",
        "full recomputation needs a method",
        "--recompute-method",
    );
    refused(
        &format!("{SMALL} --recompute-granularity selective --recompute-method block"),
        1,
        "recompute",
        "takes no method",
        "",
    );
    refused(
        &format!("{SMALL} --overlap-param-gather"),
        1,
        "overlap-param-gather",
        "needs --overlap-grad-reduce",
        "--use-distributed-optimizer",
    );
    // 8 replicas of dense weights can be divided into 4 groups, the 2 of experts cannot.
    let experts = "--num-experts 8 --expert-model-parallel-size 4 --moe-ffn-hidden-size 64";
    refused(
        &format!(
            "{SMALL} {experts} --use-distributed-optimizer --num-distributed-optimizer-instances 4 --global-batch-size 8"
        ),
        8,
        "instances",
        "2 expert data-parallel ranks cannot be split into 4 instances",
        "",
    );
    refused(
        &format!("{SMALL} --exp-avg-dtype bf16"),
        1,
        "precision-aware",
        "exp_avg_dtype bf16",
        "--use-precision-aware-optimizer",
    );
    refused(
        "--num-layers 4096 --hidden-size 262144 --num-attention-heads 64 --seq-length 8 --num-experts 16384",
        1,
        "model-size",
        "parameters",
        "",
    );
    refused(&format!("{SMALL} --num-layers -3"), 1, "bad-value", "num_layers is -3", "");
    refused(
        &format!("{SMALL} --hidden-size 99999999999999999999"),
        1,
        "bad-value",
        "above the limit of 262144",
        "",
    );
    refused(
        "--num-layers 2 --num-attention-heads 4 --seq-length 8",
        1,
        "missing-setting",
        "hidden_size",
        "--hidden-size",
    );
}

#[test]
fn experts_that_megatron_refuses_to_train_are_refused() {
    let model =
        "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --num-experts 8 --bf16";
    let tensor = format!("{model} --tensor-model-parallel-size 2");
    refused(
        &tensor,
        8,
        "moe-sequence-parallel",
        "TP 2 with EP 1 needs sequence parallelism",
        "--sequence-parallel",
    );
    let groups = format!("{model} --moe-router-topk 2 --moe-router-num-groups 3 --moe-router-group-topk 2");
    refused(&groups, 8, "topk", "8 experts cannot be divided into 3 groups", "divides");
    let dense = "--num-layers 4 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --bf16";
    let offload = format!(
        "{dense} --use-distributed-optimizer --use-precision-aware-optimizer --optimizer-cpu-offload \
         --optimizer-offload-fraction 1.0 --fp8-format hybrid --fp8-param-gather --fp8-recipe tensorwise"
    );
    refused(&offload, 8, "optimizer-offload", "needs the delayed recipe", "--fp8-recipe delayed");
    let narrow = format!(
        "{dense} --use-distributed-optimizer --use-precision-aware-optimizer --main-params-dtype bf16"
    );
    refused(&narrow, 8, "precision-aware", "fp32 or fp16", "--main-params-dtype");
    let many = format!("{model} --moe-router-topk 2 --moe-router-num-groups 4 --moe-router-group-topk 5");
    refused(&many, 8, "topk", "5 of 4 expert groups", "at most");
}
