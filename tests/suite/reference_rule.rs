//! Qwen3-Next's linear mixer as transformers runs it without flash-linear-attention, compared with what PyTorch
//! dispatched (`tests/record/reference_rule.py`): kernels are equal, bytes within 3 %.

use shardscope::launch::Resolution;
use shardscope::operators::{Symbols, Work, layer_operators, work_of};
use shardscope::plan::Mixer;
use shardscope::source::Source;

use crate::formats::resolved;

/// Weights, autocast, tokens, sequences, heads and their widths; forward and backward kernels, products and bytes.
const RECORDED: &str = include_str!("../data/measured/reference_rule.tsv");

fn read(words: &[&str], more: &[(&str, &str)]) -> Resolution {
    let [weights, autocast, tokens, sequences, key_heads, value_heads, key_width, value_width] = words[..8]
    else {
        panic!("{words:?}")
    };
    let text = format!(
        r#"{{"model_type": "qwen3_next", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 256, "num_experts": 8,
        "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
        "linear_num_key_heads": {key_heads}, "linear_num_value_heads": {value_heads}, "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": {key_width}, "linear_value_head_dim": {value_width}}}"#
    );
    let set = [
        ("software", "hf_transformers"),
        ("seq_length", tokens),
        ("micro_batch_size", sequences),
        ("world_size", "1"),
        ("params_dtype", weights),
        ("autocast", autocast),
        ("accelerator", "H200-SXM"),
        ("reference_mixers", "true"),
    ];
    let set: Vec<(String, String)> =
        set.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolved(&Source::from_files([("config.json", text.as_str())]), &set)
}

#[test]
fn the_reference_of_the_rule_has_the_kernels_that_pytorch_dispatched() {
    /// Products of the linear layers, which are counted as such: forward; backward with those of their weights.
    const LINEAR: [u64; 2] = [3, 6];
    let (mut cases, mut off) = (0, Vec::new());
    for line in RECORDED.lines().skip(1) {
        let words: Vec<&str> = line.split('\t').collect();
        let resolution = read(&words, &[("without", "reference_mixers")]);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics));
        let x = Symbols::new(&plan);
        let kind = plan.model().layer_kind(0);
        assert_eq!(kind.mixer, Mixer::Linear);
        let kernel = work_of(&x, &layer_operators(&x, kind)).into_iter().find_map(|work| match work {
            Work::Kernel(kernel) if kernel.name == "delta_rule_reference" => Some(kernel),
            _ => None,
        });
        let kernel = kernel.expect("the rule");
        let number = |at: usize| words[at].parse::<u64>().expect("a figure");
        let own = [
            (kernel.launches_forward, kernel.forward.get()),
            (kernel.launches_backward, kernel.backward.get()),
        ];
        for (pass, (launches, bytes)) in own.into_iter().enumerate() {
            let [kernels, products, moved] = [0, 1, 2].map(|figure| number(8 + 3 * pass + figure));
            // Gradients of several sequences are copied once.
            let copied = u64::from(pass == 1 && number(3) > 1);
            let expected = kernels + products - LINEAR[pass] - copied;
            let share = bytes as f64 / moved as f64;
            if launches != expected || !(0.97..1.03).contains(&share) {
                off.push(format!("{line}: pass {pass}, {launches} for {expected}, {share:.3} of the bytes"));
            }
        }
        cases += 1;
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
    assert_eq!(cases, 30);
}

/// Its memory is not known: without a word on it there is no verdict.
#[test]
fn what_the_reference_saves_stops_by_name() {
    let words: Vec<&str> = RECORDED.lines().nth(1).expect("a case").split('\t').collect();
    let stopped = read(&words, &[]).not_modelled;
    assert!(stopped.iter().any(|item| item.is_called("reference_mixers")), "{stopped:?}");
    assert!(read(&words, &[("reference_mixers", "false")]).not_modelled.is_empty());
}
