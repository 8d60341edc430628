//! LLaMA-Factory's preference losses, which cast the logits to fp32: what they keep compared with recorded calls of its
//! function (`tests/record/llamafactory_preferences.py`), and the reference's passes.

use serde_json::Value;
use shardscope::estimate::memory;
use shardscope::estimate::time::step_seconds;
use shardscope::explain::Breakdown;
use shardscope::launch::resolve;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::{Field, Plan};
use shardscope::source::Source;
use shardscope::units::Bytes;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;

const RECORDED: &str = include_str!("../data/activations/llamafactory_preferences.jsonl");

pub(crate) fn plan(set: &[(&str, &str)]) -> Plan {
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
        ("train_type", "lora"),
        ("lora_rank", "8"),
        ("lora_target_modules", "q_proj v_proj"),
        ("preference_logits", "fp32"),
    ];
    let settings: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

#[test]
fn recorded_preference_losses_are_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let objective = case["objective"].as_str().expect("a word");
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("training_objective", objective),
        ]);
        let x = Symbols::new(&plan);
        let kept = case["kept"]["log-probabilities"].as_array().expect("a list");
        let sizes: Vec<u64> = kept.iter().map(|tensor| int(tensor, "bytes")).collect();
        let saved = Operator::OutputLayer.saved(&x);
        for saved in &saved {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let ours: Vec<u64> = ["log-softmax", "picked tokens", "completion mask"]
            .iter()
            .map(|name| saved.iter().find(|saved| saved.name == *name).expect("kept").bytes.get())
            .collect();
        assert_eq!(ours, sizes, "{line}");
        // KTO's loss on single samples keeps half of what DPO's on pairs does; both are too small to affect any figure.
        let of_loss: u64 =
            case["kept"]["loss"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        let margins = saved.iter().find(|saved| saved.name == "margins").expect("kept").bytes.get();
        assert_eq!(margins, if objective == "dpo" { of_loss } else { 2 * of_loss }, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 4);
}

fn at_loss(plan: &Plan, name: &str) -> Option<Bytes> {
    let x = Symbols::new(plan);
    let transients = Operator::OutputLayer.transients(&x);
    let loss = transients.iter().find(|transient| transient.name == "loss").expect("a loss");
    loss.tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.bytes)
}

/// While the reference runs, the policy's logits are alive in fp32, together with the reference's and their
/// log-softmax.
#[test]
fn the_references_logits_stand_beside_the_policys() {
    let both = 2 * 4 * 2048 * 32_000 * 2;
    let dpo = plan(&[("training_objective", "dpo")]);
    assert_eq!(at_loss(&dpo, "fp32 logits"), Some(Bytes::new(both / 2)));
    assert_eq!(at_loss(&dpo, "the reference's fp32 logits and log-softmax"), Some(Bytes::new(both)));
    let simpo = plan(&[("training_objective", "dpo"), ("reference_model", "none")]);
    assert_eq!(at_loss(&simpo, "the reference's fp32 logits and log-softmax"), None);
    // There are half as many single samples.
    let kto = plan(&[("training_objective", "kto")]);
    assert_eq!(at_loss(&kto, "fp32 logits"), Some(Bytes::new(both / 4)));
    // TRL processes them in the logits' own format, one sequence at a time, and also holds them; others free them.
    let trl = plan(&[("training_objective", "dpo"), ("preference_logits", "own")]);
    assert_eq!(at_loss(&trl, "fp32 logits"), None);
    assert_eq!(at_loss(&trl, "the reference's logits"), Some(Bytes::new(both / 4)));
    assert!(peak(&trl) < peak(&dpo));
    let alone =
        plan(&[("training_objective", "dpo"), ("preference_logits", "own"), ("reference_model", "none")]);
    assert_eq!(at_loss(&alone, "the reference's logits"), None);
    let dropped = plan(&[("training_objective", "dpo"), ("preference_logits", "dropped")]);
    assert_eq!(at_loss(&dropped, "the reference's logits"), None);
}

fn peak(plan: &Plan) -> Bytes {
    memory(plan).ranks[0].breakdown.child("peak_allocated").map(Breakdown::value).expect("a peak")
}

/// A reference runs forward once over every pair; KTO has four such passes, of which one is trained.
#[test]
fn the_passes_of_the_reference_take_their_time() {
    let time = |set: &[(&str, &str)]| step_seconds(&plan(set)).get();
    let none = time(&[("training_objective", "dpo"), ("reference_model", "none")]);
    let dpo = time(&[("training_objective", "dpo")]);
    let kto = time(&[("training_objective", "kto")]);
    assert!(dpo > 1.15 * none, "{dpo} and {none}");
    // Per sequence: four forward passes and a backward pass, against two and one.
    assert!(2.0 * kto > 1.2 * dpo, "{kto} and {dpo}");
    let flops = |set: &[(&str, &str)]| shardscope::estimate::flops(&plan(set)).hardware.get();
    let forward = flops(&[("training_objective", "dpo")])
        - flops(&[("training_objective", "dpo"), ("reference_model", "none")]);
    let three = flops(&[("training_objective", "kto")]) * 2.0
        - flops(&[("training_objective", "dpo"), ("reference_model", "none")]);
    assert!((three / forward - 3.0).abs() < 1e-9, "{three} and {forward}");
}

/// LLaMA-Factory's files state the loss: pairs and single samples with a reference, ORPO and SimPO without.
#[test]
fn llamafactorys_stages_are_read() {
    let of = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\n\
             template: qwen3\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n\
             learning_rate: 5e-6\n{more}\n"
        );
        resolved(
            &Source::from_files([("train.yaml", text.as_str())]),
            &[("world_size".to_owned(), "8".to_owned())],
        )
    };
    for (more, objective, reference) in [
        ("stage: dpo\npref_beta: 0.1\npref_loss: sigmoid", "dpo", ""),
        ("stage: kto\npref_beta: 0.1", "kto", ""),
        ("stage: dpo\npref_loss: orpo", "dpo", "none"),
        ("stage: dpo\npref_loss: simpo\nsimpo_gamma: 0.5", "dpo", "none"),
        ("stage: dpo\nref_model: Qwen/Qwen3-4B-Instruct-2507", "dpo", "loaded"),
    ] {
        let resolution = of(more);
        assert!(resolution.plan.is_some(), "{more}: {:?}", resolution.diagnostics);
        let value =
            |field| resolution.setting(field).map(|setting| setting.value.written()).unwrap_or_default();
        assert_eq!(value(Field::TrainingObjective), objective, "{more}");
        assert_eq!(value(Field::ReferenceModel), reference, "{more}");
        assert_eq!(value(Field::PreferenceLogits), "fp32", "{more}");
    }
    // KTO in other trainers has no formula.
    let other = resolve(
        &[],
        &[("training_objective".to_owned(), "kto".to_owned()), ("num_layers".to_owned(), "2".to_owned())],
    );
    assert!(other.not_modelled.iter().any(|item| item.name == "training_objective"));
}

/// Without labels Liger's model computes logits like any other, so its fused loss is not used for preferences.
#[test]
fn ligers_fused_loss_is_that_of_labels_alone() {
    let plain = plan(&[("training_objective", "dpo")]);
    let liger = plan(&[("training_objective", "dpo"), ("liger_kernel", "true")]);
    assert_eq!(at_loss(&liger, "fp32 logits"), at_loss(&plain, "fp32 logits"));
    assert!(at_loss(&liger, "fp32 logits").is_some());
}

/// axolotl names Liger's kernels one by one: norms keep their input in its own type, gates their two halves,
/// independently of each other.
#[test]
fn ligers_kernels_count_one_by_one() {
    let kept = |set: &[(&str, &str)]| {
        let full = [
            ("train_type", "full"),
            ("training_objective", "sft"),
            ("lora_rank", ""),
            ("lora_target_modules", ""),
        ];
        let plan = plan(&[&full[..], set].concat());
        let x = Symbols::new(&plan);
        let sum = |operators: &[Operator]| -> u64 {
            operators.iter().flat_map(|operator| operator.saved(&x)).map(|saved| saved.bytes.get()).sum()
        };
        (sum(&[Operator::InputNorm]), sum(&[Operator::Mlp]))
    };
    let none = kept(&[]);
    let all = kept(&[("liger_kernel", "true"), ("loss_kind", "torch")]);
    assert!(all.0 < none.0 && all.1 < none.1, "{all:?} and {none:?}");
    assert_eq!(kept(&[("liger_parts", "norms")]), (all.0, none.1));
    assert_eq!(kept(&[("liger_parts", "rotation gates")]), (none.0, all.1));
    assert_eq!(kept(&[("liger_parts", "rotation")]), none);
}

#[test]
fn axolotls_liger_switches_are_read() {
    let of = |more: &str| {
        let text = format!(
            "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: auto\n\
             plugins:\n  - axolotl.integrations.liger.LigerPlugin\n{more}\n"
        );
        resolved(
            &Source::from_files([("train.yaml", text.as_str())]),
            &[("world_size".to_owned(), "8".to_owned())],
        )
    };
    let value = |read: &shardscope::launch::Resolution, field| {
        read.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    let some = of("liger_rms_norm: true\nliger_fused_linear_cross_entropy: true");
    assert!(some.plan.is_some(), "{:?}", some.diagnostics);
    assert_eq!(
        (value(&some, Field::LigerParts), value(&some, Field::LossKind)),
        ("norms".to_owned(), "liger".to_owned())
    );
    assert_eq!(value(&some, Field::LigerKernel), "");
    let all = of("liger_rope: true\nliger_rms_norm: true\nliger_glu_activation: true");
    assert_eq!(
        (value(&all, Field::LigerKernel), value(&all, Field::LossKind)),
        ("true".to_owned(), "torch".to_owned())
    );
    let over = of("liger_rms_norm: true\nliger_cross_entropy: true");
    assert!(
        over.not_modelled.iter().any(|item| item.name == "liger_cross_entropy"),
        "{:?}",
        over.not_modelled
    );
}
