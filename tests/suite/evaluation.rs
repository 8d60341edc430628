//! What an evaluation between steps holds, compared with recorded runs of transformers, and its effect on the plan if
//! it is the peak.

use shardscope::advice::advised;
use shardscope::estimate::{RankMemory, memory};
use shardscope::launch::resolve;
use shardscope::operators::Symbols;
use shardscope::plan::{Field, Plan};
use shardscope::units::Bytes;

/// `tests/record/evaluation_peak.py`.
const TILED: &str = include_str!("../data/activations/evaluation_in_tiles.tsv");
const RECORDED: &str = include_str!("../data/activations/evaluation_peak.tsv");
/// `tests/record/named_output.py`.
const NAMED: &str = include_str!("../data/activations/named_output.tsv");

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "2"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("micro_batch_size", "1"),
        ("num_micro_batches", "1"),
        ("train_type", "full"),
        ("use_cache", "false"),
        ("gradient_checkpointing", "true"),
    ];
    let settings = common.iter().chain(set);
    let settings: Vec<_> = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Bytes of an evaluation's own tensors; none if the peak is elsewhere.
fn held(rank: &RankMemory) -> Option<Bytes> {
    let allocated = rank.breakdown.child("peak_allocated")?;
    Some(allocated.child("temporaries")?.child("evaluation")?.value())
}

#[test]
fn an_evaluation_holds_what_was_recorded() {
    let mut runs = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [dtype, autocast, batch, sequence, vocabulary, bytes, _] = cells.as_slice() else {
            panic!("{line}")
        };
        let plan = plan(&[
            ("params_dtype", if *dtype == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if *autocast == "True" { "bf16" } else { "none" }),
            ("evaluation_batch_size", batch),
            ("seq_length", sequence),
            ("vocab_size", vocabulary),
            // With the same number of sequences as in training, evaluation is the peak if training's loss is fused.
            ("liger_kernel", if *batch == "1" { "true" } else { "false" }),
        ]);
        let [rank] = memory(&plan).ranks.try_into().expect("one rank");
        assert_eq!(rank.at, "evaluation", "{line}");
        assert_eq!(held(&rank).map(|bytes| bytes.get().to_string()).as_deref(), Some(*bytes), "{line}");
        runs += 1;
    }
    assert_eq!(runs, 9);
}

/// A loop that keeps a reference to the model's output holds its logits at the fullest moment too; a cache comes beside an
/// evaluation's logits, and with such a loop both of the batch before.
#[test]
fn held_outputs_and_caches_hold_what_was_recorded() {
    let lines: Vec<Vec<&str>> =
        NAMED.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect()).collect();
    let bytes = |cells: &[&str]| cells.get(4).and_then(|cell| cell.parse::<u64>().ok()).expect("bytes");
    assert_eq!(lines.len(), 18);
    for of_size in lines.chunks(6) {
        let [loss, output, evaluations @ ..] = of_size else { panic!("{of_size:?}") };
        let &[_, batch, sequence, vocabulary, ..] = loss.as_slice() else { panic!("{loss:?}") };
        let sizes = [("params_dtype", "bf16"), ("seq_length", sequence), ("vocab_size", vocabulary)];
        let named = plan(&[&sizes[..], &[("micro_batch_size", batch), ("logits_held", "true")]].concat());
        let [rank] = memory(&named).ranks.try_into().expect("one rank");
        let temporaries = rank.breakdown.child("peak_allocated").and_then(|all| all.child("temporaries"));
        let held_logits = temporaries.and_then(|all| all.child("logits of the last output")).expect("logits");
        assert_eq!(held_logits.value().get(), bytes(output) - bytes(loss));
        for cells in evaluations {
            let (fills, holds) = match cells.first() {
                Some(&"evaluation") => ("false", "false"),
                Some(&"cache") => ("true", "false"),
                Some(&"evaluations") => ("false", "true"),
                Some(&"caches") => ("true", "true"),
                other => panic!("{other:?}"),
            };
            let more = [
                ("evaluation_batch_size", batch),
                ("evaluation_cache", fills),
                ("logits_held", holds),
                ("liger_kernel", if batch == "1" { "true" } else { "false" }),
            ];
            let [rank] = memory(&plan(&[&sizes[..], &more].concat())).ranks.try_into().expect("one rank");
            assert_eq!(rank.at, "evaluation", "{cells:?}");
            assert_eq!(held(&rank), Some(Bytes::new(bytes(cells))), "{cells:?}");
        }
    }
}

/// If the loss only computes logits in tiles, the peak is in the layers (`tests/record/evaluation_in_tiles.py`).
#[test]
fn an_evaluation_in_tiles_holds_what_was_recorded() {
    let mut runs = 0;
    for line in TILED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [dtype, autocast, width, ffn, batch, sequence, bytes] = cells.as_slice() else {
            panic!("{line}")
        };
        let plan = plan(&[
            ("params_dtype", if *dtype == "bfloat16" { "bf16" } else { "fp32" }),
            ("autocast", if *autocast == "True" { "bf16" } else { "none" }),
            ("evaluation_batch_size", batch),
            ("seq_length", sequence),
            ("num_layers", "3"),
            ("vocab_size", "512"),
            ("hidden_size", width),
            ("ffn_hidden_size", ffn),
            ("loss_kind", "fused_tiles"),
            // Gradients are freed before evaluation; if fewer weights train, it is the peak.
            ("train_type", "full"),
        ]);
        let x = Symbols::new(&plan);
        let [rank] = memory(&plan).ranks.try_into().expect("one rank");
        assert_eq!(rank.at, "evaluation", "{line}");
        assert_eq!(held(&rank).map(|bytes| bytes.get().to_string()).as_deref(), Some(*bytes), "{line}");
        assert_eq!(x.chunk_rows(), x.s - 1);
        runs += 1;
    }
    assert_eq!(runs, 8);
}

/// Gradients are freed before evaluation, and the parts of the peak add up without them.
#[test]
fn an_evaluation_stands_beside_states_without_gradients() {
    let run = |batch: &str| {
        plan(&[
            ("params_dtype", "bf16"),
            ("evaluation_batch_size", batch),
            ("seq_length", "64"),
            ("vocab_size", "6400"),
        ])
    };
    let [rank] = memory(&run("4")).ranks.try_into().expect("one rank");
    assert_eq!(rank.totals.gradients, Bytes::ZERO);
    assert_eq!(rank.breakdown.value(), rank.totals.peak_reserved);
    // A batch as large as training's leaves the peak where it is without evaluation.
    let of = |batch: &str| memory(&run(batch)).ranks.into_iter().next().map(|rank| (rank.at, rank.totals));
    let [rank] = memory(&run("1")).ranks.try_into().expect("one rank");
    assert_ne!(rank.at, "evaluation");
    assert!(of("4").is_some_and(|(_, totals)| totals.peak_allocated > rank.totals.peak_allocated));
}

#[test]
fn advice_names_the_evaluation_batch_where_it_is_the_peak() {
    let named = |batch: &str| {
        let plan = plan(&[
            ("params_dtype", "bf16"),
            ("evaluation_batch_size", batch),
            ("seq_length", "64"),
            ("vocab_size", "6400"),
        ]);
        let report = advised(&plan).expect("estimates");
        let finding = report.advice.into_iter().find(|finding| finding.code == "evaluation-batch")?;
        let smaller = finding.expected.peak_reserved?;
        assert!(smaller < report.memory.worst.peak_reserved);
        Some(finding.change)
    };
    assert_eq!(named("4"), Some(vec![(Field::EvaluationBatchSize, "1".to_owned())]));
    assert_eq!(named("1"), None);
}
