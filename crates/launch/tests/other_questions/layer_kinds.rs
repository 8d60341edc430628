//! Layers that differ from GPT's: other heads, experts under a fork's names, hybrid patterns, and kinds that are not
//! modelled.

use super::{launch, script, stopped, value};
use shardscope_plan::Field;

#[test]
fn heads_and_experts_of_forks_are_read() {
    let multi = script(&launch("pretrain_gpt.py", "--attention-head-type multiquery"));
    assert_eq!([value(&multi, Field::NumQueryGroups), value(&multi, Field::WholeKeys)], ["1", "true"]);
    let experts =
        script(&launch("third_party/Megatron-LM/pretrain_gpt.py", "--moe-num-experts 64 --moe-top-k 2"));
    assert_eq!(
        (value(&experts, Field::NumExperts), value(&experts, Field::MoeRouterTopk)),
        ("64".into(), "2".into())
    );
}

#[test]
fn layers_of_another_kind_stop_the_verdict() {
    for more in ["--is-hybrid-model", "--heterogeneous-layers-config-path a.json", "--spec mine layer_spec"] {
        let name = more.split(' ').next().unwrap_or(more);
        stopped(&script(&launch("pretrain_gpt.py", more)), &[name]);
    }
    assert!(script(&launch("pretrain_gpt.py", "--spec local")).plan.is_some());
}

#[test]
fn a_pattern_of_hybrid_layers_is_a_plan() {
    let more = "--is-hybrid-model --spec megatron.core.models.mamba.mamba_layer_specs mamba_stack_spec --num-layers 6 \
        --hybrid-override-pattern M-M*M- --mamba-num-heads 16 --mamba-head-dim 64 --mamba-num-groups 4 --mamba-state-dim 64";
    let resolution = script(&launch("pretrain_mamba.py", more));
    let plan = resolution.plan.as_ref().unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
    let mixers = &plan.model().mixers;
    let linear = mixers.linear.expect("a mixer");
    let sizes =
        [linear.value_heads, linear.value_width, linear.key_heads, linear.key_width, linear.convolution];
    assert_eq!(sizes, [16, 64, 4, 64, 4]);
    assert!(mixers.single_block && linear.norm);
    assert_eq!(plan.model().count_layers(|kind| kind.mixer.is_linear()), 3);
    assert_eq!(plan.model().count_layers(|kind| kind.mixer.attends()), 1);
}
