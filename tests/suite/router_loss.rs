//! transformers' balancing loss over the routers of all layers, compared with recorded calls.

use serde_json::Value;
use shardscope::launch::resolve;
use shardscope::operators::{SectionKind, Symbols};
use shardscope::plan::Plan;

/// `tests/record/router_loss.py`.
const RECORDED: &str = include_str!("../data/activations/router_loss.jsonl");
/// The result, and what is counted per expert alone: no multiple of the tokens.
const LITTLE: u64 = 1024;

fn plan(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "hf_transformers"),
        ("accelerator", "A100-SXM-80GB"),
        ("num_nodes", "1"),
        ("gpus_per_node", "1"),
        ("num_layers", "3"),
        ("num_attention_heads", "4"),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "160"),
        ("moe_ffn_hidden_size", "160"),
        ("num_experts", "16"),
        ("moe_router_topk", "4"),
        ("swiglu", "true"),
        ("vocab_size", "512"),
        ("seq_length", "32"),
        ("micro_batch_size", "2"),
        ("num_micro_batches", "1"),
        ("use_cache", "false"),
    ];
    let settings = common.iter().chain(set);
    let settings: Vec<_> = settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

/// Bytes that the loss keeps, and those that it holds at most, its kept ones included.
fn held(plan: &Plan) -> [u64; 2] {
    let x = Symbols::new(plan);
    let operators = SectionKind::ALL
        .iter()
        .filter(|kind| kind.projects_vocabulary())
        .flat_map(|kind| kind.operators(&x))
        .collect::<Vec<_>>();
    let of_routers = |name: &str| name.contains("routers");
    let kept: u64 = operators
        .iter()
        .flat_map(|operator| operator.saved(&x))
        .filter(|saved| of_routers(saved.name))
        .map(|saved| saved.bytes.get())
        .sum();
    let moments = operators.iter().flat_map(|operator| operator.transients(&x));
    let most = moments
        .filter(|moment| moment.name == "balancing loss")
        .map(|moment| moment.bytes().get())
        .sum::<u64>();
    [kept, kept + most]
}

#[test]
fn it_keeps_and_holds_what_was_recorded() {
    let mut runs = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect(line);
        let bytes = |key: &str| case[key].as_u64().expect(key);
        let joined = case["release"] == "5.15";
        let [narrow, masked] = [case["dtype"] == "bfloat16", case["mask"] == true];
        let plan = plan(&[
            ("router_loss", if joined { "joined" } else { "layers" }),
            ("params_dtype", if narrow { "bf16" } else { "fp32" }),
            ("padding_mask", if masked { "true" } else { "false" }),
        ]);
        let [kept, most] = held(&plan);
        // The router's logits were there before.
        let logits = bytes("held_before");
        let near = |ours: u64, theirs: u64, slack: u64| {
            assert!(ours <= theirs + slack && theirs <= ours + slack, "{ours} {theirs}: {case}");
        };
        near(kept, bytes("held_after"), LITTLE);
        // Joined tensors are of all layers; what one layer's choices take is little beside them.
        let one =
            if joined { LITTLE } else { bytes("tokens") * (bytes("experts") * 4 + bytes("chosen") * 16) };
        let pad = if joined && masked { 8 * bytes("layers") * bytes("tokens") * bytes("experts") } else { 0 };
        near(most - logits - pad, bytes("held_at_most"), one);
        runs += 1;
    }
    assert_eq!(runs, 12);
}

#[test]
fn autocast_takes_the_softmax_in_fp32_and_only_models_with_experts_have_it() {
    let kept = |set: &[(&str, &str)]| held(&plan(set))[0];
    let narrow = [("router_loss", "layers"), ("params_dtype", "bf16")];
    assert_eq!(kept(&narrow), 3 * 64 * 16 * 2);
    assert_eq!(kept(&[&narrow[..], &[("autocast", "bf16")]].concat()), 3 * 64 * 16 * 4);
    let engine = [("autocast", "bf16"), ("data_parallel_engine", "deepspeed")];
    assert_eq!(kept(&[&narrow[..], &engine].concat()), 3 * 64 * 16 * 2);
    assert_eq!(kept(&[("params_dtype", "bf16")]), 0);
    assert_eq!(kept(&[&narrow[..], &[("module_variants", "fp32_sigmoid_router")]].concat()), 0);
    // Hunyuan has Llama's own head.
    assert_eq!(kept(&[&narrow[..], &[("module_variants", "norms_behind_rotation")]].concat()), 0);
}

/// Granite casts its routers' logits to fp32 and ERNIE makes them in fp32; gpt-oss's stay in 16 bits.
#[test]
fn logits_that_a_router_makes_in_fp32_are_held_so() {
    let with = |variants: &str| {
        held(&plan(&[("router_loss", "layers"), ("params_dtype", "bf16"), ("module_variants", variants)]))
    };
    // Three layers of 64 tokens and 16 experts: softmax; with the logits, and one layer in fp32 while it is summed.
    let numbers = 3 * 64 * 16;
    for (variants, width) in
        [("", 2), ("chosen_routing", 4), ("fp32_held_router", 4), ("chosen_routing clamped_experts", 2)]
    {
        let softmax = numbers * width;
        assert_eq!(with(variants), [softmax, 2 * softmax + 64 * 16 * 4], "{variants}");
    }
}

/// `modeling_glm4v_moe.py` works the loss out, unlike GLM's text model.
#[test]
fn a_vision_language_model_with_sigmoid_routers_stops_by_its_loss() {
    let stops = |set: &[(&str, &str)]| {
        let settings = [("software", "hf_transformers"), ("num_experts", "16"), ("num_layers", "3")];
        let settings = settings.iter().chain(set);
        let settings: Vec<_> =
            settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        resolve(&[], &settings).not_modelled.iter().any(|item| item.name == "router_loss")
    };
    let tower = [("module_variants", "fp32_sigmoid_router"), ("vision_tower", "true")];
    assert!(stops(&[&tower[..], &[("router_loss", "layers")]].concat()));
    assert!(!stops(&tower));
    assert!(!stops(&[&tower[..1], &[("router_loss", "layers")]].concat()));
    assert!(!stops(&[&tower[1..], &[("router_loss", "layers")]].concat()));
}

/// A head for rewards or classes stands on the base model, which has no such loss.
#[test]
fn a_head_in_place_of_the_output_layer_has_no_balancing_loss() {
    let with = |objective: &[(&str, &str)]| {
        held(&plan(&[&[("router_loss", "layers"), ("params_dtype", "bf16")], objective].concat()))
    };
    let language = with(&[]);
    assert!(language[0] > 0 && language[1] > language[0]);
    assert_eq!(with(&[("training_objective", "reward")]), [0, 0]);
    assert_eq!(with(&[("training_objective", "classify"), ("num_labels", "3")]), [0, 0]);
    assert_eq!(with(&[("training_objective", "reward"), ("router_loss", "joined")]), [0, 0]);
    assert_eq!(with(&[("training_objective", "packed_rewards"), ("router_loss", "joined")]), [0, 0]);
}
