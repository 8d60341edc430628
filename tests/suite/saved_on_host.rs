//! Saved tensors offloaded to the host (`torch.autograd.graph.save_on_cpu`): what is offloaded, compared with a
//! recorded run, and what remains on the device.

use shardscope::advice::advised;
use shardscope::estimate::time::time;
use shardscope::estimate::{memory, sent_to_host};
use shardscope::launch::{Resolution, resolve};
use shardscope::plan::{Plan, Recompute};

fn resolved(set: &[(&str, &str)]) -> Resolution {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("swiglu", "true"),
        ("untie_embeddings_and_output_weights", "true"),
        ("num_micro_batches", "1"),
        ("params_dtype", "fp32"),
        ("autocast", "bf16"),
        ("data_parallel_engine", "fsdp2"),
        ("zero_stage", "3"),
        ("train_type", "full"),
        ("use_cache", "false"),
        ("gradient_checkpointing", "true"),
        ("offload_saved_tensors", "true"),
    ];
    let last = |name: &str| set.iter().all(|(other, _)| *other != name);
    let settings = common.iter().filter(|(name, _)| last(name)).chain(set);
    resolve(&[], &settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>())
}

#[track_caller]
fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = resolved(set);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Every tensor is copied as often as it is saved, including parameters.
#[test]
fn what_goes_to_the_host_is_what_torch_was_seen_to_copy() {
    const RECORDED: &str = include_str!("../data/activations/saved_on_host.tsv");
    let mut runs = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [batch, sequence, layers, vocabulary, _, bytes] = cells.as_slice() else { panic!("{line}") };
        let plan = plan(&[
            ("micro_batch_size", batch),
            ("seq_length", sequence),
            ("num_layers", layers),
            ("vocab_size", vocabulary),
        ]);
        assert_eq!(sent_to_host(&plan).get().to_string(), *bytes, "{line}");
        runs += 1;
    }
    assert_eq!(runs, 3);
}

/// Of 32 layers' inputs none is held on the device; the loss's own tensors are there when it runs backward.
#[test]
fn the_device_keeps_what_the_operator_at_work_saved() {
    const TOKENS: u64 = 4096;
    let large = |layers: &str, offloads: &str| {
        plan(&[
            ("num_layers", layers),
            ("hidden_size", "4096"),
            ("num_attention_heads", "32"),
            ("num_query_groups", "8"),
            ("ffn_hidden_size", "14336"),
            ("vocab_size", "32000"),
            ("seq_length", "4096"),
            ("micro_batch_size", "1"),
            ("num_micro_batches", "2"),
            ("offload_saved_tensors", offloads),
        ])
    };
    let totals = |plan: &Plan| memory(plan).ranks.swap_remove(0).totals;
    let one_input = TOKENS * 4096 * 2;
    let (kept, moved) = (large("32", "false"), large("32", "true"));
    assert_eq!(sent_to_host(&kept).get(), 0);
    // With gradients from an earlier micro-batch both peaks are in the last layer's backward, so the difference is the
    // inputs of 31 other layers.
    assert!(
        memory(&kept).ranks[0].within == memory(&moved).ranks[0].within,
        "{}",
        memory(&moved).ranks[0].at
    );
    let gone = totals(&kept).peak_allocated.get() - totals(&moved).peak_allocated.get();
    assert_eq!(gone, 31 * one_input);
    // More layers offload more to the host and leave nothing on the device.
    let [few, many] = ["32", "64"].map(|layers| large(layers, "true"));
    assert_eq!(totals(&few).activations, totals(&many).activations);
    assert_eq!(sent_to_host(&many).get() - sent_to_host(&few).get(), 32 * one_input);
    let document = memory(&moved);
    let rank = &document.ranks[0];
    assert_eq!(rank.breakdown.value(), rank.totals.peak_reserved);
    assert!(time(&moved).step > time(&kept).step);
}

/// Advice and search keep the layers recomputed: what would be offloaded otherwise is not known.
#[test]
fn no_advice_leaves_what_is_known() {
    let size = [("num_layers", "4"), ("vocab_size", "1000"), ("seq_length", "32"), ("micro_batch_size", "1")];
    let report = advised(&plan(&size)).expect("a report");
    for finding in &report.advice {
        for (field, _) in &finding.change {
            let name = field.name();
            assert!(!name.contains("recompute") && !name.contains("checkpointing"), "{}", finding.message);
        }
    }
    let mut recipe = plan(&size).recipe().clone();
    recipe.recompute = Recompute::None;
    let planned = plan(&size);
    let (model, cluster, layout) = (planned.model(), planned.cluster(), planned.layout());
    assert!(Plan::new(model.clone(), cluster.clone(), layout.clone(), recipe).is_err());
}

/// No figures are given for cases that were not recorded.
#[test]
fn other_saved_tensors_on_the_host_stop_the_verdict() {
    let size = [("num_layers", "2"), ("vocab_size", "1000"), ("seq_length", "32"), ("micro_batch_size", "1")];
    for more in [
        ("gradient_checkpointing", "false"),
        ("train_type", "lora"),
        ("liger_kernel", "true"),
        ("cpu_offloading_num_layers", "1"),
    ] {
        let set: Vec<_> = size.iter().copied().chain([more]).collect();
        let resolution = resolved(&set);
        assert!(resolution.plan.is_none() && !resolution.not_modelled.is_empty(), "{more:?}");
    }
}
