//! Heads for rewards and classes instead of the output layer: what they keep compared with recorded calls
//! (`tests/record/reward_head.py`), their weights, and which texts are read as such trainings.

use serde_json::Value;
use shardscope::estimate::{memory, parameters};
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan;

const RECORDED: &str = include_str!("../data/activations/reward_head.jsonl");

#[test]
fn recorded_heads_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "labels", "hidden"].map(|name| int(&case, name).to_string());
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("num_labels", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("params_dtype", if case["dtype"] == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if case["cast"] == true { "bf16" } else { "none" }),
            ("bf16", if case["cast"] == true || case["dtype"] == "bfloat16" { "true" } else { "false" }),
            ("training_objective", case["objective"].as_str().expect("a word")),
            ("train_type", "full"),
            ("lora_rank", ""),
            ("lora_target_modules", ""),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let transients = Operator::OutputLayer.transients(&x);
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(saved.iter().map(|saved| saved.bytes.get()).sum::<u64>(), kept, "{line}");
        let held = transients.iter().flat_map(|transient| &transient.tensors);
        for saved in saved.iter().chain(held) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 16);
}

/// OpenRLHF gathers rewards from those of all tokens, behind packs from those of padded sequences
/// (`tests/record/openrlhf_rewards.py`).
#[test]
fn recorded_heads_of_openrlhf_are_met_to_the_byte() {
    const OPENRLHF: &str = include_str!("../data/activations/openrlhf_rewards.jsonl");
    let mut compared = 0;
    for line in OPENRLHF.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "hidden"].map(|name| int(&case, name).to_string());
        let half = case["dtype"] == "bfloat16";
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("hidden_size", &sizes[2]),
            ("num_attention_heads", "2"),
            ("params_dtype", if half { "bf16" } else { "fp32" }),
            ("bf16", if half { "true" } else { "false" }),
            ("training_objective", if case["packs"] == true { "packed_rewards" } else { "token_rewards" }),
            ("train_type", "full"),
            ("lora_rank", ""),
            ("lora_target_modules", ""),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(saved.iter().map(|saved| saved.bytes.get()).sum::<u64>(), kept, "{line}");
        for saved in &saved {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        compared += 1;
    }
    assert_eq!(compared, 8);
}

/// A head with one output for 4,096 inputs replaces a table as large as the embedding, and no logits are computed.
#[test]
fn a_head_has_no_vocabulary() {
    let full = |set: &[(&str, &str)]| {
        let all = [("train_type", "full"), ("lora_rank", ""), ("lora_target_modules", "")];
        plan(&all.iter().chain(set).copied().collect::<Vec<_>>())
    };
    let (model, head) = (full(&[]), full(&[("training_objective", "reward")]));
    let count = |of: &_| parameters(of).total.get();
    assert_eq!(count(&model) - count(&head), (32_000 - 1) * 1024);
    // Tied or not, the embedding stays and the head is separate.
    let tied = [("untie_embeddings_and_output_weights", "false"), ("training_objective", "reward")];
    assert_eq!(count(&full(&tied)), count(&head));
    let labels = full(&[("training_objective", "classify"), ("num_labels", "7")]);
    assert_eq!(count(&labels) - count(&head), 6 * 1024);
    // Except for the loss, the two sequences of a pair keep what two samples keep.
    let layers = |of: &_| memory(of).worst.peak_allocated;
    assert!(layers(&head) < layers(&full(&[("micro_batch_size", "2")])));
    // Under adapters PEFT trains a copy of the head.
    let lora = plan(&[("training_objective", "reward")]);
    let none = plan(&[]);
    assert_eq!(parameters(&lora).trained.get() - parameters(&none).trained.get(), 1024);
}

#[test]
fn trainings_of_rewards_and_classes_are_read() {
    let read = |name: &str, text: &str| {
        resolved(&Source::from_files([(name, text)]), &[("world_size".to_owned(), "8".to_owned())])
    };
    let value = |read: &shardscope::launch::Resolution, field| {
        read.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    let trl = "torchrun --nproc_per_node 8 examples/scripts/reward_modeling.py --model_name_or_path Qwen/Qwen2-0.5B-Instruct \
        --per_device_train_batch_size 8 --gradient_checkpointing True --max_length 2048 --bf16 True --dataset_name d";
    let axolotl = "base_model: Qwen/Qwen3-8B\nreward_model: true\nmodel_type: AutoModelForSequenceClassification\nnum_labels: 1\n\
        sequence_len: 2048\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nlearning_rate: 1e-5\nbf16: true\n\
        gradient_checkpointing: true\nattn_implementation: flash_attention_2\n";
    let rm = "NPROC_PER_NODE=8 swift rlhf --rlhf_type rm --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --max_length 2048 \
        --per_device_train_batch_size 1 --gradient_accumulation_steps 2 --torch_dtype bfloat16";
    for (name, text) in [("run.sh", trl), ("a.yaml", axolotl), ("run.sh", rm)] {
        let read = read(name, text);
        assert!(read.plan.is_some(), "{text}: {:?}", read.diagnostics);
        assert_eq!(value(&read, Field::TrainingObjective), "reward", "{text}");
    }
    // OpenRLHF's script of its repository (`examples/scripts/train_rm.sh`), with another model.
    let open = "deepspeed --module openrlhf.cli.train_rm --train.batch_size 256 --train.micro_batch_size 1 \
        --model.model_name_or_path Qwen/Qwen2.5-7B --ds.param_dtype bf16 --data.max_len 8192 --ds.zero_stage 3 --adam.lr 9e-6 \
        --data.dataset d --data.chosen_key chosen --data.rejected_key rejected --ds.attn_implementation flash_attention_2 \
        --model.gradient_checkpointing_enable";
    let packs = format!("{open} --ds.packing_samples");
    for (text, word) in [(open, "token_rewards"), (packs.as_str(), "packed_rewards")] {
        let read = read("run.sh", text);
        assert!(read.plan.is_some(), "{:?}", read.diagnostics);
        assert_eq!(value(&read, Field::TrainingObjective), word);
        assert_eq!(value(&read, Field::SeqLength), "8192");
    }
    assert!(read("run.sh", &format!("{open} --ds.lora.rank 8")).plan.is_none());
    // With the default of its beta a run of DPO has the same options.
    let pairs = read("run.sh", &open.replace("train_rm", "train_dpo"));
    assert_eq!(value(&pairs, Field::TrainingObjective), "dpo");
    let classes = rm.replace("rlhf --rlhf_type rm", "sft --task_type seq_cls --num_labels 3");
    let classes = read("run.sh", &classes);
    assert!(classes.plan.is_some(), "{:?}", classes.diagnostics);
    assert_eq!(
        [Field::TrainingObjective, Field::NumLabels].map(|field| value(&classes, field)),
        ["classify", "3"]
    );
    // LLaMA-Factory's reward model keeps its output layer, whose logits it computes; step rewards are per token.
    let factory = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: rm\nfinetuning_type: lora\ncutoff_len: 2048\nlearning_rate: 1e-4\n";
    let steps = axolotl.replace("reward_model", "process_reward_model");
    for text in [factory, steps.as_str()] {
        assert!(read("f.yaml", text).plan.is_none(), "{text}");
    }
}
