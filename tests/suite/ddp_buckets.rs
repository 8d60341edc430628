//! What PyTorch's DistributedDataParallel sends of gradients compared with recorded steps of modules of transformers and PEFT
//! (`tests/record/ddp_buckets.py`): every bucket's elements, in the order in which they are reduced.

use serde_json::Value;
use shardscope::estimate::traffic::buffers;
use shardscope::plan::Plan;
use shardscope::source::Source;

use super::drafts::{flag, int};
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/torch/ddp_buckets.jsonl");

fn plan(config: &Value, case: &Value) -> Plan {
    let mut set = vec![
        ("software", "hf_transformers".to_owned()),
        ("data_parallel_engine", "ddp".to_owned()),
        ("seq_length", "64".to_owned()),
        ("micro_batch_size", "1".to_owned()),
        ("world_size", "2".to_owned()),
        ("params_dtype", case["dtype"].as_str().expect("a type").to_owned()),
        ("autocast", "none".to_owned()),
        ("gradient_checkpointing", flag(case, "checkpoint").to_string()),
        ("ddp_find_unused_parameters", flag(case, "unused").to_string()),
    ];
    set.extend(case["cap"].as_u64().map(|cap| ("ddp_bucket_cap_mb", cap.to_string())));
    if flag(case, "lora") {
        let adapters = [
            ("train_type", "lora"),
            ("adapter_library", "peft"),
            ("lora_rank", "64"),
            ("lora_dropout", "0"),
            ("lora_target_modules", "all-linear"),
        ];
        set.extend(adapters.map(|(name, value)| (name, value.to_owned())));
    }
    let set: Vec<_> = set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let text = config.to_string();
    let resolution = resolved(&Source::from_files([("config.json", text.as_str())]), &set);
    resolution.plan.unwrap_or_else(|| panic!("{case}: {:?} {:?}", resolution.diagnostics, resolution.questions))
}

#[test]
fn buckets_are_those_that_ddp_reduces() {
    let mut lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let configs = lines.next().expect("versions and configurations")["configs"].clone();
    let (mut compared, mut off) = (0, Vec::new());
    for case in lines {
        let kind = case["type"].as_str().expect("a type");
        let plan = plan(&configs[kind], &case);
        let theirs: Vec<u64> =
            case["buckets"].as_array().expect("buckets").iter().filter_map(|bucket| bucket[0].as_u64()).collect();
        let ours: Vec<u64> = buffers(&plan, 0, 0).into_iter().flat_map(|buffer| buffer.buckets).collect();
        compared += 1;
        if ours != theirs {
            off.push(format!("{kind} {} {} {} {} {theirs:?} {ours:?}", case["lora"], case["unused"], case["dtype"], case["cap"]));
        }
    }
    assert!(off.is_empty(), "{} of {compared}:\n{}", off.len(), off.join("\n"));
    let _ = int;
}
