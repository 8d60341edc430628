//! lingua configurations at 437d680e52: its transformer compiled under FSDP2, and settings that stop by name.

use super::{said, stopped, value};
use shardscope_launch::Resolution;
use shardscope_plan::Field;

fn run(distributed: &str, model: &str, more: &str) -> Resolution {
    let text = format!(
        "name: mine\nsteps: 1000\noptim: {{lr: 3e-3, clip: 1.0}}\n\
         distributed: {{fsdp_type: full_shard, compile: true, model_dtype: bf16, tp_size: 1{distributed}}}\n\
         model: {{dim: 2048, n_layers: 25, n_heads: 16, vocab_size: 128256{model}}}\n\
         data: {{batch_size: 4, seq_len: 4096}}\n{more}\n"
    );
    said("a.yaml", &text, &[("world_size", "8")])
}

#[test]
fn compiled_layers_stay_gathered_over_fp32_shards() {
    let plain = run("", "", "probe_freq: null");
    let plan = plain.plan.as_ref().unwrap_or_else(|| panic!("{:?}", plain.diagnostics));
    assert!(plan.recipe().marks.is_empty(), "{:?}", plan.recipe().marks);
    let shown =
        [Field::CompiledLayers, Field::LossKind, Field::ZeroStage, Field::GradsDtype, Field::FfnHiddenSize]
            .map(|field| value(&plain, field));
    assert_eq!(shown, ["true", "compiled", "2", "fp32", "5632"]);
    let wider = run("", ", multiple_of: 1024, n_kv_heads: 4, weight_tying: true", "");
    let shown = [Field::FfnHiddenSize, Field::NumQueryGroups, Field::UntieEmbeddingsAndOutputWeights]
        .map(|field| value(&wider, field));
    assert_eq!(shown, ["6144", "4", "false"]);
    // int(1.3 x 5461) = 7099, rounded up to a multiple of 256.
    let factor = run("", ", ffn_dim_multiplier: 1.3", "probe_freq: null");
    assert_eq!((factor.plan.is_some(), value(&factor, Field::FfnHiddenSize)), (true, "7168".into()));
    // An evaluation in a separate job changes nothing here.
    assert!(run("", "", "async_eval_gpus: 8\neval: {validation: {max_steps: 10}}").plan.is_some());
}

#[test]
fn what_lingua_does_otherwise_stops_by_name() {
    for (distributed, model, more, name) in [
        (", compile: false", "", "", "distributed.compile"),
        (", tp_size: 2", "", "", "distributed.tp_size"),
        (", fsdp_type: no_shard", "", "", "distributed.fsdp_type"),
        (
            ", selective_activation_checkpointing: true",
            "",
            "",
            "distributed.selective_activation_checkpointing",
        ),
        (", float8_recipe: rowwise", "", "", "distributed.float8_recipe"),
        ("", ", n_future_head: 3", "", "model.n_future_head"),
        ("", "", "probe_freq: 100", "probe_freq"),
        ("", "", "grad_acc_steps: 4", "grad_acc_steps"),
        ("", "", "eval: {validation: {max_steps: 10}}", "eval"),
    ] {
        let read = run(distributed, model, more);
        stopped(&read, &[name]);
        assert_eq!(read.not_modelled.len(), 1, "{:?}", read.not_modelled);
    }
}
