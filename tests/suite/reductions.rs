//! How often replicas that shard gradients reduce them: the same rule for time and messages.

use shardscope::estimate::time::time;
use shardscope::estimate::traffic::{Parallelism, traffic};
use shardscope::launch::{Resolution, resolve};
use shardscope::plan::Plan;

fn resolved(software: &str, stage: &str, pipeline: &str, more: &[(&str, &str)]) -> Resolution {
    let base = [
        ("software", software),
        ("num_layers", "4"),
        ("hidden_size", "1024"),
        ("num_attention_heads", "16"),
        ("ffn_hidden_size", "4096"),
        ("seq_length", "512"),
        ("vocab_size", "32000"),
        ("micro_batch_size", "1"),
        ("bf16", "true"),
        ("zero_stage", stage),
        ("overlap_grad_reduce", "false"),
        ("overlap_param_gather", "false"),
        ("pipeline_model_parallel_size", pipeline),
        ("num_nodes", "2"),
        ("gpus_per_node", "8"),
        ("accelerator", "H100-SXM"),
    ];
    let settings: Vec<(String, String)> =
        base.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings)
}

fn plan(software: &str, stage: &str, pipeline: &str) -> Plan {
    let resolution = resolved(software, stage, pipeline, &[("global_batch_size", "64")]);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

/// Gradient scatters on the first stage in a step: bucket by bucket or unit by unit.
fn scatters(plan: &Plan) -> u64 {
    let ledger = traffic(plan);
    let data = ledger.dimension(Parallelism::Data).expect("messages of replicas");
    data.operations.iter().filter(|one| one.tensor == "gradients").map(|one| one.calls(0)).sum()
}

/// PyTorch's pipelines reduce after a stage's last micro-batch (`stage.py:backward_maybe_with_nosync`), whatever is
/// sharded; Megatron's after each (`megatron_fsdp.py:grad_reduce_every_bprop`), as all software does without a
/// pipeline.
#[test]
fn pipelines_of_pytorch_reduce_once_a_step() {
    // How much more often gradients are sent if a step has twice as many micro-batches.
    let grows = |software: &str, stage: &str, pipeline: &str| {
        let plan = |batch| {
            let resolution = resolved(software, stage, pipeline, &[("global_batch_size", batch)]);
            resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
        };
        let [once, twice] = [plan("64"), plan("128")];
        assert_eq!(once.reduces_each_backward(), scatters(&twice) > scatters(&once), "{software} {stage}");
        scatters(&twice) as f64 / scatters(&once) as f64
    };
    assert_eq!(grows("torchtitan", "2", "2"), 1.0);
    for stage in ["2", "3"] {
        assert_eq!(grows("torchtitan", stage, "1"), 2.0, "{stage}");
        assert_eq!(grows("megatron_core_te", stage, "2"), 2.0, "{stage}");
    }
}

/// Units that are resharded after forward stay gathered from backward to their next forward under PyTorch's pipelines
/// (`set_reshard_after_backward(False)`), which is not counted.
#[test]
fn resharding_after_forward_stops_in_a_pipeline_of_pytorch() {
    let stops = |software: &str, stage: &str, pipeline: &str| {
        let resolution = resolved(software, stage, pipeline, &[("global_batch_size", "64")]);
        let named: Vec<String> = resolution.not_modelled.iter().map(|item| item.name.clone()).collect();
        assert_eq!(resolution.plan.is_some(), named.is_empty(), "{:?}", resolution.diagnostics);
        named
    };
    assert_eq!(stops("torchtitan", "3", "2"), ["zero_stage"]);
    for (software, stage, pipeline) in
        [("torchtitan", "3", "1"), ("torchtitan", "2", "2"), ("megatron_core_te", "3", "2")]
    {
        assert!(stops(software, stage, pipeline).is_empty(), "{software} {stage} {pipeline}");
    }
}

/// The time is consistent: PyTorch's pipelines wait as with ZeRO-1, Megatron's for eight reductions instead of one.
/// Both include the time of tied embeddings.
#[test]
fn the_time_follows_the_messages() {
    let data = |plan: &Plan| time(plan).breakdown.child("data").expect("a part").value().get();
    let [torch, megatron] = ["torchtitan", "megatron_core_te"].map(|software| {
        let waits = ["1", "2"].map(|stage| data(&plan(software, stage, "2")));
        waits[1] / waits[0]
    });
    assert!((torch - 1.0).abs() < 1e-9, "{torch}");
    assert!(megatron > 1.5, "{megatron}");
}

/// `runtime/pipe/engine.py:PipelineEngine.__init__` asserts a stage below 2.
#[test]
fn deepspeed_refuses_zero_2_and_3_under_a_pipeline() {
    for software in ["megatron_deepspeed", "gpt_neox"] {
        for (stage, pipeline, runs) in
            [("1", "2", true), ("2", "2", false), ("3", "2", false), ("2", "1", true), ("3", "1", true)]
        {
            let resolution = resolved(software, stage, pipeline, &[("global_batch_size", "64")]);
            let refused = resolution.diagnostics.iter().any(|said| said.code.name() == "zero-of-pipelines");
            assert_eq!(
                resolution.plan.is_some(),
                runs,
                "{software} {stage} {pipeline}: {:?}",
                resolution.diagnostics
            );
            assert_eq!(refused, !runs, "{software} {stage} {pipeline}");
        }
    }
}
