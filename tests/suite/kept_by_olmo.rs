//! What OLMo's own model and losses keep for backward, recorded by `tests/record/olmo_layers.py` (versions are in the
//! first line of its output). An OLMo configuration is taken all the way to the kept bytes.

use serde_json::{Value, json};
use shardscope::estimate::time::step_seconds;
use shardscope::estimate::{Verdict, flops, memory, parameters};
use shardscope::launch::Resolution;
use shardscope::operators::{Operator, Symbols, layer_operators};
use shardscope::plan::{Plan, Recompute};
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::{int, kept};
use super::formula::evaluate;
use crate::formats::resolved;

const RECORDED: &str = include_str!("../data/activations/olmo.jsonl");

/// The configuration of a recorded case, on one GPU.
fn read(case: &Value) -> Resolution {
    let mut model = case["config"].clone();
    model["max_sequence_length"] = case["s"].clone();
    let config = json!({
        "model": model,
        "optimizer": {"name": "adamw"},
        "fsdp": {"wrapping_strategy": "by_block", "precision": "mixed"},
        "precision": "amp_bf16",
        "global_train_batch_size": case["b"],
        "device_train_microbatch_size": case["b"],
        "fused_loss": case["fused"],
        "softmax_auxiliary_loss": case["z"],
        "activation_checkpointing": case["checkpoint"],
        "compile": if case["compile"] == true { json!({"fullgraph": false}) } else { Value::Null },
    });
    let set = [("world_size", "1"), ("accelerator", "H100-SXM-80GB")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let text = config.to_string();
    resolved(&Source::from_files([("olmo.yaml", text.as_str())]), &set)
}

#[test]
fn recorded_blocks_are_met_to_the_byte() {
    let (mut layers, mut ends, mut wrong) = (0, 0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        let resolution = read(&case);
        // Recorded cases without a formula stop by name.
        let auxiliary = case["z"] == true && case["fused"] == false;
        let unknown = auxiliary || case["checkpoint"] == "fine_grained" || id.contains("low precision");
        assert_eq!(!resolution.not_modelled.is_empty(), unknown, "{id}: {:?}", resolution.not_modelled);
        if unknown {
            continue;
        }
        let plan = resolution.plan.unwrap_or_else(|| panic!("{id}: {:?}", resolution.diagnostics));
        let x = Symbols::new(&plan);
        let operators = layer_operators(&x, plan.model().layer_kind(0));
        let recompute = &plan.recipe().recompute;
        let recorded = |place: &str| case["kept"][place].as_u64().unwrap_or(0);
        let mut check = |place: &str, ours: u64, recorded: u64| {
            if ours != recorded {
                wrong.push(format!("{id}, {place}: {recorded} recorded, {ours} here"));
            }
        };
        let all = 0..plan.model().num_layers;
        for index in all.clone() {
            // The input of a checkpointed block is listed with what is kept outside of blocks.
            let again = recompute.recomputes_layer(index, &all);
            let ours = if again { 0 } else { kept(&x, &operators) };
            let place = format!("layer{index}");
            check(&place, ours, recorded(&place));
            layers += 1;
        }
        let inputs = recompute.whole_layers(&all) * x.n * x.h * x.width;
        let outside = kept(&x, &[Operator::Embedding, Operator::FinalNorm, Operator::OutputLayer]);
        check("ends", outside + inputs, recorded("ends"));
        ends += 1;
        assert_eq!(parameters(&plan).total.get(), int(&case, "parameters"), "{id}");
        for saved in operators.iter().chain(&[Operator::OutputLayer]).flat_map(|one| one.saved(&x)) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{id}: {}", saved.name);
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(layers >= 270 && ends >= 69, "{layers} {ends}");
}

/// allenai/OLMo@59a53e3f68e5:configs/official-1124/OLMo2-7B-stage2-seed42.yaml, without irrelevant settings.
const SEVEN: &str = "
model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, alibi: false, rope: true,
  rope_theta: 500000, flash_attention: true, attention_dropout: 0.0, include_bias: false, block_type: sequential,
  layer_norm_type: rms, layer_norm_with_affine: true, layer_norm_eps: 1e-6, bias_for_layer_norm: false,
  attention_layer_norm: true, attention_layer_norm_with_affine: true, norm_after: true, activation_type: swiglu,
  residual_dropout: 0.0, embedding_dropout: 0.0, max_sequence_length: 4096, vocab_size: 100278, embedding_size: 100352}
softmax_auxiliary_loss: true
fused_loss: true
optimizer: {name: adamw}
global_train_batch_size: 1024
device_train_microbatch_size: 2
precision: amp_bf16
fsdp: {wrapping_strategy: by_block_and_size, precision: mixed}
";

fn plan_of(text: &str, gpus: &str) -> Plan {
    let set = [("world_size", gpus), ("accelerator", "H100-SXM")];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let resolution = resolved(&Source::from_files([("olmo.yaml", text)]), &set);
    assert!(resolution.not_modelled.is_empty(), "{:?}", resolution.not_modelled);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

#[test]
fn a_public_configuration_gives_what_was_worked_out_by_hand() {
    let plan = plan_of(SEVEN, "256");
    // allenai/OLMo-2-1124-7B has the same number of parameters on the Hub.
    let all = 7_298_617_344;
    assert_eq!(parameters(&plan).total.get(), all);
    let (n, h, f, heads, v): (u64, u64, u64, u64, u64) = (2 * 4096, 4096, 11_008, 32, 100_352);
    // Input of the projections, norms of queries and of keys (fp32, a statistic, 16 bits), rotated queries and keys,
    // the projection's output, the kernel's with its sums, the norm after it; input of the MLP, both halves, one of
    // them activated, the product, and its norm.
    let norm = 6 * n * h + 4 * n;
    let attention = 2 * n * h + 2 * norm + 4 * n * h + 6 * n * h + 2 * n * h + 4 * n * heads + 16 + norm;
    let layer = attention + 2 * n * h + 8 * n * f + norm;
    // Token ids, the last norm, the output layer's input; what the loss kept is freed at the peak. Cosines and sines.
    let ends = 8 * n + norm + 2 * n * h;
    let tables = 8 * 4096 * 128;
    let memory = memory(&plan);
    let totals = memory.ranks[0].totals;
    assert_eq!(totals.activations.get(), 32 * layer + ends + tables);
    // Backward of the output layer: gradients of all logits, of its input and of its weight; that weight, those of one
    // layer and of the last norm are gathered in 16 bits. cuBLAS has a workspace for each of two threads.
    let weights = 4 * h * h + 3 * h * f + 4 * h;
    let workspaces = 2 * (32 << 20);
    assert_eq!(
        totals.temporaries.get(),
        workspaces + 2 * n * v + 2 * n * h + 4 * v * h + 2 * weights + 2 * h
    );
    // fp32 shards, and AdamW's moments in fp32.
    let shard = all.div_ceil(256);
    let held = [totals.parameters, totals.gradients, totals.optimizer].map(Bytes::get);
    assert_eq!(held, [4 * shard, 4 * shard, 8 * shard]);
}

#[test]
fn layers_at_even_distances_are_those_of_other_recomputations() {
    let with = |strategy: &str, recompute: Recompute| {
        let text = format!("{SEVEN}activation_checkpointing: {strategy}\n");
        for gpus in ["8", "256", "512"] {
            let plan = plan_of(&text, gpus);
            let mut other = super::drafts::Draft::new(&plan);
            other.recipe.recompute = recompute.clone();
            let other = other.plan();
            let peak = |plan: &Plan| memory(plan).worst.peak_allocated;
            assert_eq!(peak(&plan), peak(&other), "{strategy} on {gpus}");
            assert_eq!(flops(&plan).hardware, flops(&other).hardware, "{strategy}");
        }
    };
    let every = |period, others| Recompute::Every { period, others };
    with("whole_layer", every(1, false));
    // Only the first of all layers: the same as a block of one.
    let block = |num_layers| Recompute::Block { num_layers, distribute: false };
    for (period, others, same) in [(32, false, block(1)), (64, false, block(1)), (1, true, Recompute::None)] {
        let mut one = super::drafts::Draft::new(&plan_of(SEVEN, "256"));
        let mut other = one.clone();
        one.recipe.recompute = every(period, others);
        other.recipe.recompute = same;
        let [one, other] = [one, other].map(|draft| draft.plan());
        assert_eq!(memory(&one).worst.peak_allocated, memory(&other).worst.peak_allocated, "{period}");
        assert_eq!(step_seconds(&one), step_seconds(&other), "{period}");
    }
}

/// Jobs of allenai/OLMo on nodes of eight H100 (scripts/augusta/peteish13.sh, peteish7-anneal.sh): weights are sharded
/// within a node, so a rank holds the same as on a single node. They ran.
#[test]
fn jobs_that_ran_fit() {
    let thirteen = SEVEN
        .replace("d_model: 4096", "d_model: 5120")
        .replace("n_heads: 32, n_layers: 32", "n_heads: 40, n_layers: 40")
        .replace("mlp_hidden_size: 22016", "mlp_hidden_size: 27648");
    for (text, strategy) in [(SEVEN, "one_in_four"), (thirteen.as_str(), "one_in_two")] {
        let job = format!("{text}activation_checkpointing: {strategy}\ncompile: {{fullgraph: false}}\n");
        let memory = memory(&plan_of(&job, "8"));
        assert!(memory.verdict == Verdict::Fits, "{strategy}: {:?}", memory.worst);
    }
    // Without checkpointing the larger one does not fit.
    let memory = memory(&plan_of(&thirteen, "256"));
    assert!(memory.verdict == Verdict::OutOfMemory, "{:?}", memory.worst);
}
