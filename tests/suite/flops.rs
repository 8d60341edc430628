//! FLOPs by every convention: Megatron-LM's own count case by case, the papers' closed forms.

use super::drafts::{cases, draft, even_stages};
use super::parameters::drafted;
use shardscope::estimate::flops;
use shardscope::plan::*;

const FLOPS: &str = include_str!("../data/megatron/flops.json");
const PLANS: &str = include_str!("../data/megatron/parameters.json");

#[test]
fn megatrons_own_count_is_equal_in_every_case() {
    let plans = cases(PLANS);
    for case in cases(FLOPS) {
        let expected = case["flops"].as_f64().unwrap();
        let plan = plans.iter().find(|plan| plan["id"] == case["id"]).expect("a plan for the case");
        let counted = flops(&drafted(plan).plan()).megatron.get();
        // Both are sums of products of integers in doubles: equal up to the order of the sum.
        assert!((counted / expected - 1.0).abs() < 1e-14, "{}: {counted} for {expected}", case["id"]);
    }
}

/// GPT-3 175B as Narayanan et al. trained it.
fn gpt3() -> Plan {
    let mut draft = draft();
    let model = &mut draft.model;
    model.num_layers = 96;
    model.hidden_size = 12288;
    model.ffn_hidden_size = 4 * 12288;
    model.num_attention_heads = 96;
    model.num_query_groups = 96;
    model.kv_channels = 128;
    model.seq_length = 2048;
    model.max_position_embeddings = 2048;
    model.padded_vocab_size = 51200;
    model.activation = Activation::Gelu;
    model.linear_bias = LinearBias::All;
    draft.layout.stages = even_stages(96, 1, 0);
    draft.recipe.recompute = Recompute::Uniform { num_layers: 1, distribute: false };
    draft.recipe.global_batch_size = 1536;
    draft.recipe.num_micro_batches = 1536;
    draft.plan()
}

#[test]
fn narayanans_form_equals_the_hardware_flops_of_full_recomputation() {
    let counts = flops(&gpt3());
    let closed = counts.narayanan.unwrap().get();
    // 96 B s l h^2 V/(16 l h) = 6 B s h V: three products of the output layer, none of them repeated.
    assert!((counts.hardware.get() / closed - 1.0).abs() < 1e-12, "{} {closed}", counts.hardware.get());
    let full = 72.0 * 1536.0 * 2048.0 * 96.0 * 12288_f64.powi(2);
    let expected = full * (1.0 + 2048.0 / (6.0 * 12288.0) + 51200.0 / (12.0 * 96.0 * 12288.0));
    assert!((counts.model.get() / expected - 1.0).abs() < 1e-12);
    assert!(counts.causal < counts.model && counts.model < counts.hardware);
    assert!((counts.causal.get() / counts.megatron.get() - 1.0).abs() < 1e-12);
}

#[test]
fn selective_recomputation_repeats_the_attention_core_alone() {
    let plan = gpt3();
    let mut recipe = plan.recipe().clone();
    recipe.recompute = Recompute::Selective(vec![RecomputeModule::CoreAttention]);
    let selective =
        Plan::new(plan.model().clone(), plan.cluster().clone(), plan.layout().clone(), recipe).unwrap();
    let counts = flops(&selective);
    // Korthikanti et al. 2022, section 5: 4 B s^2 h L more.
    let more = 4.0 * 1536.0 * 2048_f64.powi(2) * 12288.0 * 96.0;
    assert!(((counts.hardware.get() - counts.model.get()) / more - 1.0).abs() < 1e-9);
    assert_eq!(counts.narayanan, None);
}
