//! The figures of the 2023 analysis tool: our implementation of its counting equals what it printed.

use serde_json::Value;
use shardscope::launch::plan_from_flags;
use shardscope::report::analysis_tool::{tool_figures, tool_gb};
use shardscope::units::Bytes;

/// The tool's completed runs: configuration and output, one per line.
const RUNS: &str = include_str!("../data/megatron/analysis_tool.jsonl");

fn plan(config: &Value) -> shardscope::plan::Plan {
    let number = |name: &str| config[name].as_u64().expect("a number");
    let mut flags = String::new();
    for name in [
        "num_layers",
        "hidden_size",
        "num_attention_heads",
        "seq_length",
        "max_position_embeddings",
        "micro_batch_size",
        "global_batch_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "vocab_size",
    ] {
        flags += &format!("--{} {} ", name.replace('_', "-"), number(name));
    }
    if let Some(multiple) = config["make_vocab_size_divisible_by"].as_u64() {
        flags += &format!("--make-vocab-size-divisible-by {multiple} ");
    }
    let precision = config["precision"].as_str().expect("a name");
    if precision != "fp32" {
        flags += &format!("--{precision} ");
    }
    flags += "--use-flash-attn --use-distributed-optimizer --swiglu";
    let world = number("nproc_per_node") * number("nnodes");
    plan_from_flags(&flags, world, number("nproc_per_node"), "A100-SXM-80GB").expect("a plan")
}

#[track_caller]
fn check(id: &str, what: &str, ours: Bytes, printed: &Value) {
    let printed = printed.as_f64().expect("a number");
    assert_eq!(tool_gb(ours), format!("{printed:.1}"), "{id}: {what}");
}

#[test]
fn the_tools_way_of_counting_gives_what_it_printed() {
    let mut runs = 0;
    for line in RUNS.lines() {
        let run: Value = serde_json::from_str(line).expect("JSON");
        let id = run["id"].as_str().expect("an id");
        let tool = tool_figures(&plan(&run["config"]));
        let (full, gpu, cluster) = (&run["full"], &run["per_gpu"], &run["cluster"]);
        assert_eq!(Some(tool.full.count.get()), full["parameters"].as_u64(), "{id}");
        assert_eq!(Some(tool.per_gpu.count.get()), gpu["parameters"].as_u64(), "{id}");
        for (memory, printed, total) in
            [(tool.full, full, "total_gb"), (tool.per_gpu, gpu, "memory_requirement_gb")]
        {
            check(id, "parameters", memory.parameters, &printed["parameters_gb"]);
            check(id, "gradients", memory.gradients, &printed["gradients_gb"]);
            check(id, "optimizer", memory.optimizer, &printed["optimizer_gb"]);
            check(id, "activations", memory.activations, &printed["activations_gb"]);
            check(id, "total", memory.total, &printed[total]);
        }
        for (traffic, name) in
            [(tool.pipeline, "pp"), (tool.data, "dp"), (tool.tensor, "tp"), (tool.all_communication(), "all")]
        {
            let printed = &cluster[name];
            assert_eq!(Some(traffic.frequency), printed["frequency_per_iteration"].as_u64(), "{id} {name}");
            check(id, name, traffic.volume, &printed["volume_gb_per_iteration"]);
        }
        runs += 1;
    }
    assert_eq!(runs, 17);
}
