//! Gradients that FSDP only reduces with the last micro-batch of a step, and what its stage 2 gathers, compared with recorded runs.

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::estimate::traffic::traffic;
use shardscope::launch::resolve;
use shardscope::operators::Collective;
use shardscope::plan::Plan;
use shardscope::units::Bytes;

/// `tests/record/deferred_gradients.py`.
const RECORDED: &str = include_str!("../data/activations/deferred_gradients.jsonl");
const WHOLE: &str = "unsharded gradients until the last micro-batch";

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("reduce_dtype", "fp32"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "2"),
        ("num_layers", "3"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("swiglu", "true"),
        ("vocab_size", "512"),
        ("untie_embeddings_and_output_weights", "true"),
        ("seq_length", "512"),
        ("micro_batch_size", "1"),
        ("params_dtype", "bf16"),
        ("use_cache", "false"),
    ];
    let settings = common.iter().chain(set);
    let settings: Vec<_> = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Bytes of a term at the peak.
fn temporary(plan: &Plan, label: &str) -> Bytes {
    let rank = &memory(plan).ranks[0];
    let all =
        rank.breakdown.child("peak_allocated").and_then(|all| all.child("temporaries")).expect("a peak");
    all.children().iter().filter(|part| part.label() == label).map(|part| part.value()).sum()
}

/// Bytes of unsharded gradients, and of shards, at the peak.
fn held(plan: &Plan) -> [Bytes; 2] {
    [temporary(plan, WHOLE), memory(plan).ranks[0].totals.gradients]
}

/// Embedding, last norm and output layer form one unit: while layers run backward the output layer's gradient is
/// unsharded.
#[test]
fn the_output_layers_gradient_is_whole_until_backward_is_over() {
    let cases = RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect(line));
    let case =
        cases.into_iter().find(|case| case["train"] == "full" && case["defer"] == false).expect("a run");
    let [size, vocabulary] = ["h", "V"].map(|key| case[key].as_u64().expect(key));
    // With eager attention the peak is in a layer.
    let plan = plan(&[("attn_implementation", "eager"), ("num_micro_batches", "3")]);
    let ours = temporary(&plan, "gradient of the output layer").get();
    assert_eq!(ours, 2 * vocabulary * size);
    for index in 1..=3 {
        // Together with the last norm's.
        assert_eq!(case["micro_batches"][1][index]["whole"]["bfloat16"].as_u64(), Some(ours + 2 * size));
    }
}

#[test]
fn whole_gradients_are_those_recorded() {
    let full = RECORDED.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect(line));
    let mut runs = 0;
    for case in full.filter(|case| case["train"] == "full") {
        let defers = case["defer"] == true;
        let batches = case["micro_batches"].as_array().expect("micro-batches");
        let number = batches.len().to_string();
        let plan = plan(&[
            ("num_micro_batches", &number),
            ("defer_reduction", if defers { "true" } else { "false" }),
        ]);
        let moments = || batches.iter().flat_map(|batch| batch.as_array().into_iter().flatten());
        let whole = moments().filter_map(|at| at["whole"]["float32"].as_u64()).max().unwrap_or(0);
        // As long as all unsharded gradients exist there are no shards; in a run without them the shards of earlier
        // micro-batches exist.
        let shards = moments()
            .filter(|at| at["whole"]["float32"].as_u64().unwrap_or(0) == whole)
            .filter_map(|at| at["shards"].as_u64());
        let shards = if defers { shards.min() } else { shards.max() };
        assert_eq!(held(&plan), [Bytes::new(whole), Bytes::new(shards.expect("moments"))], "{case}");
        assert_eq!(case["trained"].as_u64(), Some(shardscope::estimate::parameters(&plan).total.get()));
        runs += 1;
    }
    assert_eq!(runs, 2);
}

#[test]
fn they_wait_for_a_second_micro_batch_and_are_of_what_trains() {
    let deferred = |more: &[(&str, &str)]| {
        held(&plan(&[&[("defer_reduction", "true"), ("num_micro_batches", "2")], more].concat()))[0].get()
    };
    assert_eq!(deferred(&[("num_micro_batches", "1")]), 0);
    // FSDP1 holds them as backward computed them, whatever they are reduced in; DeepSpeed does not wait.
    assert_eq!(deferred(&[("data_parallel_engine", "fsdp1")]), 780_032 / 2);
    assert_eq!(deferred(&[("data_parallel_engine", "deepspeed")]), 0);
    assert_eq!(deferred(&[("gpus_per_node", "1")]), 0);
    assert_eq!(deferred(&[("zero_stage", "2")]), 780_032);
    assert_eq!(deferred(&[("reduce_dtype", "bf16")]), 780_032 / 2);
    // A and B on queries, of rank 4: 3 layers of 4·(64 + 64) elements.
    let lora = [("train_type", "lora"), ("lora_rank", "4"), ("lora_target_modules", "q_proj")];
    assert_eq!(deferred(&lora), 3 * 4 * 128 * 4);
}

#[test]
fn they_are_sent_once_a_step() {
    let scattered = |defers: &str| -> u64 {
        let plan = plan(&[("num_micro_batches", "3"), ("defer_reduction", defers)]);
        let traffic = traffic(&plan);
        let all = traffic.dimensions.iter().flat_map(|part| &part.operations);
        let scatters = all.filter(|sent| sent.collective == Collective::ReduceScatter);
        scatters.flat_map(|sent| sent.per_iteration.iter()).sum()
    };
    // Three layers, embedding, last norm and output layer.
    assert_eq!([scattered("true"), scattered("false")], [6, 18]);
}

/// `tests/record/fsdp_micro_batches.py`.
const MICRO_BATCHES: &str = include_str!("../data/activations/fsdp_micro_batches.jsonl");

/// A recorded run, and the plan of it.
fn recorded() -> Vec<(Value, Plan)> {
    let cases = MICRO_BATCHES.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).expect(line));
    let with = |case: Value| {
        let [stage, batches] =
            [case["stage"].to_string(), case["micro_batches"].as_array().expect("passes").len().to_string()];
        let [waits, keeps] = ["waits", "keeps"].map(|key| case[key].to_string());
        let plan = plan(&[
            ("data_parallel_engine", case["engine"].as_str().expect("an engine")),
            ("zero_stage", &stage),
            ("params_dtype", "fp32"),
            ("autocast", "bf16"),
            ("reduce_dtype", "bf16"),
            ("num_micro_batches", &batches),
            ("defer_reduction", &waits),
            ("keep_gathered", &keeps),
        ]);
        (case, plan)
    };
    cases.map(with).collect()
}

/// Elements that all calls of a step bring together.
fn sent(plan: &Plan, collective: Collective) -> u64 {
    let traffic = traffic(plan);
    let all = traffic.dimensions.iter().flat_map(|part| &part.operations);
    let own = all.filter(|sent| sent.collective == collective);
    own.map(|sent| sent.shape.iter().product::<u64>() * sent.per_iteration.iter().sum::<u64>()).sum()
}

#[test]
fn micro_batches_gather_and_reduce_as_recorded() {
    let mut runs = 0;
    for (case, plan) in recorded() {
        let passes = case["micro_batches"].as_array().expect("micro-batches").iter();
        let passes: Vec<&Value> = passes.flat_map(|batch| batch.as_array().into_iter().flatten()).collect();
        let theirs = |key: &str| passes.iter().filter_map(|pass| pass[key].as_u64()).sum::<u64>();
        assert_eq!(sent(&plan, Collective::ReduceScatter), theirs("reductions_elements"), "{case}");
        // FSDP1's stage 3 does not free what is outside of layers; FSDP2's does if it is told to.
        assert_eq!(sent(&plan, Collective::AllGather), theirs("gathers_elements"), "{case}");
        runs += 1;
    }
    assert_eq!(runs, 9);
}

#[test]
fn whole_gradients_of_either_fsdp_are_those_recorded() {
    for (case, plan) in recorded() {
        let batches = case["micro_batches"].as_array().expect("micro-batches").iter();
        let whole = batches.filter_map(|batch| batch[1]["whole"]["bfloat16"].as_u64()).max().unwrap_or(0);
        assert_eq!(held(&plan)[0].get(), whole, "{case}");
        assert_eq!(case["trained"].as_u64(), Some(shardscope::estimate::parameters(&plan).total.get()));
    }
}
