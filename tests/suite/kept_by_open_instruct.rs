//! GRPO of open-instruct: the tensors after the output layer compared with recorded calls of its functions, and what
//! else its learners under DeepSpeed hold, computed by hand from DeepSpeed's rules.

use serde_json::Value;
use shardscope::estimate::time::step_seconds;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::estimate::{Memory, PhaseKind, memory, parameters};
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Plan;
use shardscope::topology::{GroupKind, Groups};
use shardscope::units::Bytes;

use super::drafts::int;
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/open_instruct_loss.jsonl");
/// Elements of `reduce_bucket_size` if "auto" leaves it to DeepSpeed (`zero/config.py`).
const BUCKET: u64 = 500_000_000;

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "H100-SXM"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_layers", "4"),
        ("hidden_size", "1024"),
        ("ffn_hidden_size", "2816"),
        ("num_attention_heads", "16"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("vocab_size", "32000"),
        ("micro_batch_size", "1"),
        ("seq_length", "2048"),
        ("bf16", "true"),
        ("autocast", "none"),
        ("attn_implementation", "flash_attention_2"),
        ("gradient_checkpointing", "true"),
        ("data_parallel_engine", "deepspeed"),
        ("zero_stage", "2"),
        ("training_objective", "policy"),
        ("rl_framework", "open_instruct"),
        ("rollout_gpus", "8"),
        ("rollout_length", "2048"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

fn bytes(kept: &Value) -> u64 {
    kept.as_array().expect("a list").iter().map(|tensor| tensor["bytes"].as_u64().expect("a size")).sum()
}

#[test]
fn recorded_log_probabilities_and_losses_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let held = case["reference"] == true;
        let plan = plan(&[
            ("seq_length", &sizes[0]),
            ("vocab_size", &sizes[1]),
            ("hidden_size", &sizes[2]),
            ("num_attention_heads", "2"),
            ("rl_reference", if held { "device" } else { "none" }),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        for saved in &saved {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let (of_loss, before): (Vec<_>, Vec<_>) =
            saved.iter().partition(|saved| matches!(saved.name, "policy loss" | "KL to the reference"));
        let sum = |part: &[&shardscope::operators::Saved]| -> u64 {
            part.iter().map(|saved| saved.bytes.get()).sum()
        };
        let kept = &case["kept"];
        assert_eq!(sum(&before), bytes(&kept["output layer"]) + bytes(&kept["log-probabilities"]), "{line}");
        // The formula is for dapo; cispo keeps 12 bytes per token less.
        let less = if case["loss"] == "cispo" { 12 * (int(&case, "tokens") - 1) } else { 0 };
        assert_eq!(sum(&of_loss), bytes(&kept["policy loss"]) + less, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 4);
}

#[test]
fn the_compiled_backward_allocates_two_tensors_as_large_as_the_logits() {
    let head: Value = serde_json::from_str(RECORDED.lines().next().expect("a line")).expect("JSON");
    assert_eq!(head["allocated in backward"], serde_json::json!(["bfloat16", "bfloat16"]));
    let plan = plan(&[]);
    let x = Symbols::new(&plan);
    let transients = Operator::OutputLayer.transients(&x);
    let backward = transients.iter().find(|transient| transient.name == "backward of the loss").expect("one");
    assert_eq!(backward.bytes(), Bytes::new(2 * 2 * 2048 * 32_000));
}

fn temporary(memory: &Memory, name: &str) -> Option<Bytes> {
    let ours = &memory.ranks[0].breakdown;
    let temporaries = ours.child("peak_allocated")?.child("temporaries")?;
    temporaries.child(name).map(shardscope::explain::Breakdown::value)
}

#[test]
fn learners_hold_deepspeeds_buffer_and_zero_3_its_flat_gradients_and_second_shards() {
    let second = plan(&[]);
    let whole = parameters(&second).total.get();
    let shard = whole / 8;
    let held = memory(&second);
    assert_eq!(held.ranks[0].totals.gradients, Bytes::new(2 * shard));
    assert_eq!(temporary(&held, "buffer of gradients to reduce"), Some(Bytes::new(2 * BUCKET)));
    assert_eq!(temporary(&held, "second shard of the weights"), None);
    // ZeRO-3 accumulates gradients in fp32 if told to, and keeps a second shard under hpZ.
    let third = plan(&[("zero_stage", "3"), ("grads_dtype", "fp32"), ("second_weight_shards", "8")]);
    let held = memory(&third);
    assert_eq!(held.ranks[0].totals.gradients, Bytes::new(4 * shard));
    assert_eq!(temporary(&held, "second shard of the weights"), Some(Bytes::new(2 * shard)));
    // Trainers that state the size have neither.
    let trl = memory(&plan(&[("rl_framework", "trl"), ("zero_stage", "3")]));
    assert_eq!(trl.ranks[0].totals.gradients, Bytes::new(2 * shard));
    assert_eq!(temporary(&trl, "buffer of gradients to reduce"), None);
}

#[test]
fn the_first_learner_copies_all_weights_to_send_them() {
    let update = |set: &[(&str, &str)]| {
        let plan = plan(set);
        let rl = memory(&plan).rl.expect("phases");
        assert!(!rl.co_located);
        let phase = rl.phases.into_iter().find(|phase| phase.kind == PhaseKind::WeightUpdate)?;
        phase.breakdown.child("copy of all weights").map(shardscope::explain::Breakdown::value)
    };
    let whole = parameters(&plan(&[])).total.get();
    assert_eq!(update(&[]), None);
    assert_eq!(update(&[("copy_whole_model", "true")]), Some(Bytes::new(2 * whole)));
    // With shards the gathered weights are held in addition to the copy.
    let gathered = update(&[("copy_whole_model", "true"), ("zero_stage", "3")]);
    assert_eq!(gathered, Some(Bytes::new(4 * whole)));
}

#[test]
fn second_shards_are_gathered_within_their_groups_but_for_the_first_forward_of_a_step() {
    let nodes =
        [("zero_stage", "3"), ("num_nodes", "2"), ("num_micro_batches", "3"), ("grads_dtype", "fp32")];
    let (with, without) = (plan(&[&nodes[..], &[("second_weight_shards", "8")]].concat()), plan(&nodes));
    // An eighth of the weights in 16 bits, whose own shards are a sixteenth.
    let whole = parameters(&with).total.get();
    let held = memory(&with);
    assert_eq!(temporary(&held, "second shard of the weights"), Some(Bytes::new(whole / 8 * 2)));
    assert_eq!(held.ranks[0].totals.parameters, Bytes::new(whole / 16 * 2));
    let gathers = |plan: &Plan, group: GroupKind| -> u64 {
        let ledger = traffic(plan);
        let of = ledger.dimension(Parallelism::Data).expect("it sends");
        let gathers = of.operations.iter().filter(|sent| sent.tensor == "weights" && sent.group == group);
        gathers.map(|sent| sent.per_iteration[0]).sum()
    };
    // Four layers, the embedding, the final norm and the output layer; three micro-batches, forward and backward.
    let units = gathers(&without, GroupKind::DataContext);
    assert_eq!(gathers(&without, GroupKind::SecondShards), 0);
    let once = gathers(&with, GroupKind::DataContext);
    assert!(once > 0 && once * 6 == units, "{once} of {units}");
    assert_eq!(gathers(&with, GroupKind::SecondShards), units - once);
    let groups = Groups::new(with.layout());
    assert_eq!((groups.size(GroupKind::SecondShards), groups.count(GroupKind::SecondShards)), (8, 2));
    assert!(step_seconds(&with) < step_seconds(&without));
}
