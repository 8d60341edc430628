//! The kernels of plain PyTorch's modules and the bytes that they move, compared with what PyTorch dispatched
//! (`tests/record/kernels_of_a_layer.py`): equal. And the host's time for such layers compared with an H200's host.

use std::collections::BTreeMap;

use shardscope::estimate::compute::EAGER_MODULES;
use shardscope::estimate::time::time;
use shardscope::launch::resolve;
use shardscope::operators::{
    Kernel, Operator, Section, SectionKind, Symbols, Work, layer_operators, work_of,
};
use shardscope::plan::Plan;
use shardscope::units::Bytes;

/// Case, pass, kernels other than products, bytes.
const RECORDED: &str = include_str!("../data/measured/kernels_of_a_layer.tsv");

/// The same of torchtitan's layer (`tests/record/kernels_of_a_titan_layer.py`).
const OF_TITAN: &str = include_str!("../data/measured/kernels_of_a_titan_layer.tsv");

/// Model, kernels and saved tensors of a forward pass; seconds for it, for both passes, and for both with checkpoints.
const CHECKPOINTED: &str = include_str!("../data/measured/checkpoint_hooks.tsv");

/// Model, seconds of a forward and a backward pass, kernels.
const HOST: &str = include_str!("../data/measured/host.tsv");

fn plan(own: &[(&str, &str)]) -> Plan {
    let settings = [
        ("software", "hf_transformers"),
        ("num_layers", "3"),
        ("hidden_size", "256"),
        ("ffn_hidden_size", "768"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("kv_channels", "64"),
        ("swiglu", "true"),
        ("normalization", "RMSNorm"),
        ("position_embedding_type", "rope"),
        ("disable_bias_linear", "true"),
        ("seq_length", "64"),
        ("micro_batch_size", "2"),
        ("vocab_size", "512"),
        ("hidden_dropout", "0"),
        ("attention_dropout", "0"),
        ("bf16", "true"),
        ("world_size", "1"),
        ("accelerator", "H200-SXM"),
    ];
    let kept = settings.iter().filter(|(name, _)| own.iter().all(|(of, _)| of != name)).chain(own);
    let all: Vec<(String, String)> =
        kept.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &all);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

/// The streaming kernels of `operators` selected by `counts`: launches and bytes, forward and backward.
fn kernels(plan: &Plan, operators: &[Operator], counts: fn(&Kernel) -> bool) -> [(u64, u64); 2] {
    let mut sums = [(0, Bytes::ZERO); 2];
    for work in work_of(&Symbols::new(plan), operators) {
        let Work::Kernel(kernel) = work else { continue };
        if counts(&kernel) {
            let [ahead, back] = &mut sums;
            *ahead = (ahead.0 + kernel.launches_forward, ahead.1 + kernel.forward);
            *back = (back.0 + kernel.launches_backward, back.1 + kernel.backward);
        }
    }
    sums.map(|(launches, bytes)| (launches, bytes.get()))
}

#[test]
fn a_layer_of_torchtitan_that_is_not_compiled_has_the_kernels_that_pytorch_dispatched() {
    let recorded: Vec<(u64, u64)> = OF_TITAN
        .lines()
        .skip(1)
        .map(|line| {
            let [_, _, kernels, bytes] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (kernels.parse().expect("kernels"), bytes.parse().expect("bytes"))
        })
        .collect();
    let layer = |more: &[(&str, &str)]| {
        let plan = plan(
            &[
                &[("software", "torchtitan"), ("num_attention_heads", "4"), ("add_bias_linear", "false")],
                more,
            ]
            .concat(),
        );
        let operators = layer_operators(&Symbols::new(&plan), plan.model().layer_kind(1));
        kernels(&plan, &operators, |_| true)
    };
    assert_eq!(layer(&[("norm_fusion", "false")])[..], recorded[..]);
    // A norm in one kernel reads and writes 16 bits: 4 bytes of an element forward and 8 back, where pieces have 36 and 92.
    let elements = 2 * 64 * 256;
    let [ahead, back] = layer(&[]);
    assert_eq!(ahead.1, recorded[0].1 - 2 * (36 - 4) * elements);
    assert_eq!(back.1, recorded[1].1 - 2 * (92 - 8) * elements);
    let compiled = layer(&[("compiled_layers", "true")]);
    assert!(compiled[0].1 < ahead.1 && compiled[1].1 < back.1);
}

#[test]
fn a_layer_has_the_kernels_that_pytorch_dispatched() {
    let mut recorded: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for line in RECORDED.lines().skip(1) {
        let [case, pass, kernels, bytes] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        recorded.insert((case, pass), (kernels.parse().expect("kernels"), bytes.parse().expect("bytes")));
    }
    assert_eq!(recorded.len(), 24);
    let of = |case: &'static str| ["forward", "backward"].map(|pass| recorded[&(case, pass)]);
    let layer = |more: &[(&str, &str)]| {
        let own = [&[("num_attention_heads", "4")], more].concat();
        let plan = plan(&own);
        let x = Symbols::new(&plan);
        kernels(&plan, &layer_operators(&x, plan.model().layer_kind(1)), |_| true)
    };
    assert_eq!(layer(&[]), of("llama"));
    assert_eq!(layer(&[("qk_layernorm", "true")]), of("qwen3"));
    let autocast = [("bf16", "false"), ("autocast", "bf16")];
    assert_eq!(layer(&autocast), of("llama autocast"));
    assert_eq!(layer(&[&autocast[..], &[("qk_layernorm", "true")]].concat()), of("qwen3 autocast"));
    let eager = ("attn_implementation", "eager");
    assert_eq!(layer(&[eager]), of("llama eager"));
    assert_eq!(layer(&[eager, ("num_query_groups", "4")]), of("llama eager, all heads"));
    let gpt2 = [
        ("ffn_hidden_size", "1024"),
        ("group_query_attention", "false"),
        ("num_query_groups", "4"),
        ("swiglu", "false"),
        ("normalization", "LayerNorm"),
        ("position_embedding_type", "learned_absolute"),
        ("disable_bias_linear", "false"),
        ("add_bias_linear", "true"),
        ("fused_qkv", "true"),
        ("module_variants", "gelu_new residual_dropout"),
        ("bf16", "false"),
    ];
    // Its norms are separate kernels, which a CPU runs differently.
    let without_norms = |more: &[(&str, &str)]| {
        let plan = plan(&[&[("num_attention_heads", "4")], &gpt2[..], more].concat());
        let operators = layer_operators(&Symbols::new(&plan), plan.model().layer_kind(1));
        kernels(&plan, &operators, |kernel| !kernel.name.ends_with("layernorm"))
    };
    assert_eq!(without_norms(&[]), of("gpt2"));
    assert_eq!(without_norms(&[("autocast", "bf16")]), of("gpt2 autocast"));
    let adapted = |dora: &str| {
        let plan = plan(&[
            ("num_attention_heads", "6"),
            ("train_type", "lora"),
            ("lora_rank", "16"),
            ("lora_dropout", "0"),
            ("lora_target_modules", "q_proj"),
            ("adapter_dtype", "fp32"),
            ("use_dora", dora),
        ]);
        kernels(&plan, &[Operator::SelfAttention], |kernel| {
            kernel.name.starts_with("lora") || kernel.name.starts_with("dora")
        })
    };
    assert_eq!(adapted("false"), of("lora"));
    assert_eq!(adapted("true"), of("dora"));
}

/// Kernels fused by a compiler are not among these, and Megatron's modules are counted with its own fused kernels.
#[test]
fn other_software_has_kernels_of_its_own() {
    let of = |own: &[(&str, &str)]| {
        let plan = plan(&[own, &[("num_attention_heads", "4")]].concat());
        let section = Section {
            kind: SectionKind::Layer(plan.model().layer_kind(1)),
            times: 1,
            operators: layer_operators(&Symbols::new(&plan), plan.model().layer_kind(1)),
        };
        kernels(&plan, &section.operators, |kernel| kernel.name == "input_layernorm")
    };
    let bytes = |each: u64| 128 * 256 * each;
    assert_eq!(of(&[("software", "megatron_core_te")]), [(1, bytes(4)), (2, bytes(8))]);
    assert_eq!(of(&[]), [(8, bytes(36)), (16, bytes(92))]);
}

/// The host's cost of non-reentrant checkpoints: hooks for each tensor that a layer saves, per kernel of its forward
/// pass. The constant is the median of the measurements.
#[test]
fn checkpoints_cost_the_host_what_was_measured() {
    let mut each: Vec<f64> = Vec::new();
    for line in CHECKPOINTED.lines().skip(1) {
        let [_, launches, _, forward, both, checkpointed] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let figure = |text: &str| text.parse::<f64>().expect("a figure");
        each.push((figure(checkpointed) - figure(both) - figure(forward)) / figure(launches) * 1e6);
    }
    each.sort_by(f64::total_cmp);
    println!("{each:.1?} µs");
    let said = EAGER_MODULES.saved.get() * 1e6;
    assert_eq!(each.len(), 12);
    assert!((0.9..1.1).contains(&(said / each[6])), "{said} {each:?}");
}

/// Layers so small that the device waits for the host, which is that of a virtual machine and not the fastest: within
/// 30 % of the median of the measurements.
#[test]
fn the_host_takes_what_it_took() {
    let mut measured: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for line in HOST.lines().skip(1) {
        let [_, model, ahead, back, ..] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let seconds = |text: &str| text.parse::<f64>().expect("seconds");
        measured.entry(model).or_default().push(seconds(ahead) + seconds(back));
    }
    let small = [
        ("num_layers", "24"),
        ("hidden_size", "128"),
        ("ffn_hidden_size", "256"),
        ("num_attention_heads", "4"),
        ("kv_channels", "32"),
        ("seq_length", "128"),
        ("micro_batch_size", "1"),
        ("vocab_size", "1024"),
    ];
    let all = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj";
    let lora = [
        ("train_type", "lora"),
        ("lora_rank", "8"),
        ("lora_dropout", "0"),
        ("lora_target_modules", all),
        ("adapter_dtype", "fp32"),
    ];
    let dora = [&lora[..], &[("use_dora", "true")]].concat();
    let quantized = [
        &lora[1..],
        &[("train_type", "qlora"), ("base_quantization", "nf4"), ("double_quantization", "true")],
    ]
    .concat();
    for (model, own) in [
        ("llama 24 bf16", &[][..]),
        ("qwen3 24 bf16", &[("qk_layernorm", "true")]),
        ("llama 24 lora", &lora),
        ("llama 24 lora DoRA", &dora),
        ("llama 24 qlora", &quantized),
    ] {
        let time = time(&plan(&[&small[..], own].concat()));
        let of = |part| time.breakdown.child(part).expect("a part").value().get();
        let passes = time.step.get() - of("optimizer") - of("other");
        let runs = &measured[model];
        let middle = runs.iter().sum::<f64>() / runs.len() as f64;
        println!("{model}: {middle:.4} s, said {passes:.4}, {:+.1} %", 100.0 * (passes / middle - 1.0));
        assert!((0.7..1.3).contains(&(passes / middle)), "{model}: {middle} {passes}");
    }
}
