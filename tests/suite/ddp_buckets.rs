//! What PyTorch's DistributedDataParallel sends of gradients compared with recorded steps of modules of transformers and PEFT
//! (`tests/record/ddp_buckets.py`): every bucket's bytes, in the order in which they are reduced, what it
//! holds of memory, and the map of used tensors.

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::estimate::traffic::{buffers, traffic};
use shardscope::plan::Plan;
use shardscope::source::Source;

use super::drafts::flag;
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/torch/ddp_buckets.jsonl");

fn plan_of(config: &Value, case: &Value, ranks: u64) -> Plan {
    let mut set = vec![
        ("software", "hf_transformers".to_owned()),
        ("data_parallel_engine", "ddp".to_owned()),
        ("seq_length", "64".to_owned()),
        ("micro_batch_size", "1".to_owned()),
        ("world_size", ranks.to_string()),
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
    resolution
        .plan
        .unwrap_or_else(|| panic!("{case}: {:?} {:?}", resolution.diagnostics, resolution.questions))
}

/// Recorded steps that ours differ from, by type, `find_unused_parameters` and whether adapters train: OPT's decoder registers its last
/// norm in front of its layers.
const KNOWN: [(&str, bool, bool); 1] = [("opt", true, false)];

#[test]
fn buckets_are_those_that_ddp_reduces() {
    let mut lines = RECORDED.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let configs = lines.next().expect("versions and configurations")["configs"].clone();
    let (mut compared, mut off) = (0, Vec::new());
    for case in lines {
        let kind = case["type"].as_str().expect("a type");
        let plan = plan_of(&configs[kind], &case, 2);
        let found = buffers(&plan, 0, 0);
        let ours: Vec<_> = found
            .iter()
            .flat_map(|buffer| buffer.buckets.iter().map(|elements| elements * buffer.sent.width()))
            .collect();
        let width = |bucket: &Value| if bucket[1] == "float32" { 4 } else { 2 };
        let buckets = case["buckets"].as_array().expect("buckets");
        let theirs: Vec<_> =
            buckets.iter().map(|bucket| bucket[0].as_u64().expect("elements") * width(bucket)).collect();
        let known = KNOWN.contains(&(kind, flag(&case, "unused"), flag(&case, "lora")));
        if (ours == theirs) == known {
            off.push(format!("{case}\n{ours:?}"));
        }
        // A second copy of all gradients (`gradient_as_bucket_view=False`), in the same buckets; a rank alone is not wrapped.
        let gradients = |plan: &Plan| memory(plan).ranks[0].totals.gradients.get();
        let alone = plan_of(&configs[kind], &case, 1);
        assert_eq!(gradients(&plan) - gradients(&alone), ours.iter().sum::<u64>(), "{case}");
        // Which tensors were used, as long as there are tensors, and nothing of that kind otherwise.
        let others = case["others"].as_array().expect("messages");
        let maps = others.iter().filter(|sent| sent[0] == "all_reduce").map(|sent| sent[1].as_u64());
        let sent = traffic(&plan);
        let operations = sent.dimensions.iter().flat_map(|dimension| &dimension.operations);
        let ours: Vec<_> = operations
            .filter(|sent| sent.tensor == "map of used parameters")
            .map(|sent| sent.shape.first().copied())
            .collect();
        assert_eq!(ours, maps.collect::<Vec<_>>(), "{case}");
        compared += 1;
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert_eq!(compared, 96);
}

#[test]
fn programs_say_how_ddp_fills_its_buckets() {
    let said = |name: &str, text: &str| {
        let set = [("world_size", "8"), ("accelerator", "H100-SXM")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let resolution = resolved(&Source::from_files([(name, text)]), &set);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{text}: {:?}", resolution.diagnostics));
        plan.recipe().transformers.ddp.map(|rules| (rules.finds_unused, rules.cap >> 20))
    };
    let line = "torchrun --nproc_per_node=8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 True --model_max_length 2048 \
        --per_device_train_batch_size 1 --eval_strategy no";
    let command = |more: &str| said("run.sh", &format!("{line} {more}\n"));
    assert_eq!(command(""), Some((true, 25)));
    assert_eq!(command("--gradient_checkpointing True"), Some((false, 25)));
    assert_eq!(command("--gradient_checkpointing True --ddp_find_unused_parameters True"), Some((true, 25)));
    assert_eq!(command("--ddp_find_unused_parameters False --ddp_bucket_cap_mb 100"), Some((false, 100)));
    assert_eq!(command("--fsdp \"full_shard auto_wrap\" --ddp_find_unused_parameters False"), None);
    let factory = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\ncutoff_len: 2048\nlora_rank: 8\nbf16: true\n\
        per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n";
    let factory = |more: &str| said("a.yaml", &format!("{factory}{more}"));
    assert_eq!(factory("finetuning_type: lora\n"), Some((false, 25)));
    assert_eq!(factory("finetuning_type: lora\nddp_find_unused_parameters: true\n"), Some((true, 25)));
    assert_eq!(factory("finetuning_type: full\ndisable_gradient_checkpointing: true\n"), Some((true, 25)));
    let axolotl = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n\
        val_set_size: 0\n";
    assert_eq!(said("a.yaml", axolotl), Some((false, 25)));
    assert_eq!(
        said("a.yaml", &format!("{axolotl}ddp_find_unused_parameters: true\nddp_bucket_cap_mb: 50\n")),
        Some((true, 50))
    );
    let program = "from transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n\
        args = SFTConfig(per_device_train_batch_size=1, gradient_accumulation_steps=2, max_length=1024, bf16=True, \
        gradient_checkpointing=True, ddp_find_unused_parameters=True, ddp_bucket_cap_mb=64)\n\
        trainer = SFTTrainer(model='Qwen/Qwen2.5-7B', args=args, train_dataset=data)\ntrainer.train()\n";
    assert_eq!(said("train.py", program), Some((true, 64)));
}
