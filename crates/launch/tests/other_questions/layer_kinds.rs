//! Layers that differ from GPT's: other heads, experts under a fork's names, hybrid patterns, and kinds that are not
//! modelled.

use super::{launch, said, script, stopped, value};
use shardscope_plan::Field;

#[test]
fn heads_and_experts_of_forks_are_read() {
    let multi = script(&launch("pretrain_gpt.py", "--attention-head-type multiquery"));
    assert_eq!([value(&multi, Field::NumQueryGroups), value(&multi, Field::WholeKeys)], ["1", "true"]);
    let more = "--moe-num-experts 64 --moe-top-k 2 --moe-expert-model-parallelism";
    let experts = script(&launch("third_party/Megatron-LM/pretrain_gpt.py", more));
    assert_eq!(
        (value(&experts, Field::NumExperts), value(&experts, Field::MoeRouterTopk)),
        ("64".into(), "2".into())
    );
    // They were answered as Megatron's, whose router and experts have biases and which gathers all tokens on every rank.
    stopped(&experts, &["--moe-num-experts"]);
    assert_eq!(value(&experts, Field::MoeTokenDispatcherType), "alltoall");
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

/// mosaicml/mpt-7b `config.json`: sixteen of its keys were not read and marked the verdict; transformers' `modeling_mpt.py` has none of
/// them, and drops by `attn_config.attn_pdrop` alone.
#[test]
fn keys_that_mpts_modules_leave_unused_mark_no_verdict() {
    let file = |dropped: &str| {
        format!(
            r#"{{"architectures": ["MPTForCausalLM"], "attn_config": {{"alibi": true, "alibi_bias_max": 8, "attn_impl": "torch",
            "attn_pdrop": 0, "attn_type": "multihead_attention", "attn_uses_sequence_id": false, "clip_qkv": null,
            "prefix_lm": false, "qk_ln": false, "softmax_scale": null}}, "auto_map": {{"AutoConfig":
            "configuration_mpt.MPTConfig", "AutoModelForCausalLM": "modeling_mpt.MPTForCausalLM"}}, "d_model": 4096,
            "emb_pdrop": {dropped}, "embedding_fraction": 1.0, "expansion_ratio": 4, "init_config": {{"emb_init_std": null,
            "emb_init_uniform_lim": null, "fan_mode": "fan_in", "init_div_is_residual": true, "init_gain": 0,
            "init_nonlinearity": "relu", "init_std": 0.02, "name": "kaiming_normal_", "verbose": 0}}, "init_device": "cpu",
            "learned_pos_emb": true, "logit_scale": null, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
            "n_layers": 32, "no_bias": true, "norm_type": "low_precision_layernorm", "resid_pdrop": {dropped},
            "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "transformers_version": "4.28.1",
            "use_cache": false, "verbose": 0, "vocab_size": 50432}}"#
        )
    };
    let answers = [
        ("world_size", "8"),
        ("seq_length", "2048"),
        ("micro_batch_size", "1"),
        ("software", "hf_transformers"),
    ];
    for dropped in ["0", "0.1"] {
        let read = said("config.json", &file(dropped), &answers);
        let plan =
            read.plan.as_ref().unwrap_or_else(|| panic!("{:?} {:?}", read.diagnostics, read.not_modelled));
        assert!(plan.recipe().marks.not_read.is_empty(), "{:?}", plan.recipe().marks);
        assert_eq!(value(&read, Field::HiddenDropout), "0");
    }
    // The same keys elsewhere are not known.
    let other = file("0").replace("\"mpt\"", "\"gpt2\"");
    let read = said("config.json", &other, &answers);
    assert!(
        read.diagnostics.iter().any(|said| said.message.contains("expansion_ratio")),
        "{:?}",
        read.diagnostics
    );
}
