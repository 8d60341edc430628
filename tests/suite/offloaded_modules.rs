//! Modules whose saved tensors are offloaded to the host (`--fine-grained-activation-offloading`): what is offloaded,
//! compared with recorded runs of Megatron core, and what remains on the device.

use shardscope::estimate::time::time;
use shardscope::estimate::{memory, sent_by_modules};
use shardscope::launch::{Resolution, resolve};
use shardscope::operators::{Saved, SectionKind, Symbols};
use shardscope::plan::{OffloadModule, OffloadModules, Plan};

fn resolved(set: &[(&str, &str)]) -> Resolution {
    let settings: Vec<(String, String)> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    resolve(&[], &settings)
}

#[track_caller]
fn plan(set: &[(&str, &str)]) -> Plan {
    let resolution = resolved(set);
    resolution
        .plan
        .unwrap_or_else(|| panic!("no plan: {:?} {:?}", resolution.diagnostics, resolution.questions))
}

/// Every tensor is copied as often as its module saves it, a view of less than half of a storage as a separate copy;
/// only full storages leave the device.
#[test]
fn what_goes_to_the_host_is_what_megatron_core_was_seen_to_copy() {
    const RECORDED: &str = include_str!("../data/activations/offloaded_modules.tsv");
    const LEAST: u64 = 1024;
    let mut runs = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [sizes, normed, latent, recomputed, modules, _, sent, left, _] = cells.as_slice() else {
            panic!("{line}")
        };
        let sizes: Vec<&str> = sizes.split(' ').collect();
        let [s, b, h, a, k, f, vocab] = sizes[..] else { panic!("{line}") };
        let mut set = vec![
            ("software", "megatron_core_local"),
            ("accelerator", "H100-SXM"),
            ("num_nodes", "1"),
            ("gpus_per_node", "1"),
            ("num_layers", "3"),
            ("seq_length", s),
            ("max_position_embeddings", s),
            ("micro_batch_size", b),
            ("num_micro_batches", "2"),
            ("hidden_size", h),
            ("num_attention_heads", a),
            ("group_query_attention", "true"),
            ("num_query_groups", k),
            ("ffn_hidden_size", f),
            ("vocab_size", vocab),
            ("qk_layernorm", normed),
            ("swiglu", "true"),
            ("add_bias_linear", "false"),
            ("position_embedding_type", "rope"),
            ("apply_rope_fusion", "false"),
            ("untie_embeddings_and_output_weights", "true"),
            ("hidden_dropout", "0"),
            ("attention_dropout", "0"),
            ("params_dtype", "bf16"),
            ("attention_kernel", "unfused"),
        ];
        let latent: Vec<&str> = latent.split_whitespace().collect();
        if let [q, kv, plain, rotary, value] = latent[..] {
            set.retain(|(name, _)| !matches!(*name, "group_query_attention" | "num_query_groups"));
            set.extend([
                ("multi_latent_attention", "true"),
                ("q_lora_rank", q),
                ("kv_lora_rank", kv),
                ("qk_head_dim", plain),
                ("qk_pos_emb_head_dim", rotary),
                ("v_head_dim", value),
            ]);
        }
        if !recomputed.is_empty() {
            set.extend([("recompute_granularity", "selective"), ("recompute_modules", recomputed)]);
        }
        let plan = plan(&set);
        let x = Symbols::new(&plan);
        let operators = SectionKind::Layer(plan.model().layer_kind(0)).operators(&x);
        let saved: Vec<Saved> = operators.iter().flat_map(|operator| operator.saved(&x)).collect();
        let beside: Vec<Saved> = operators.iter().flat_map(|operator| operator.sent_beside(&x)).collect();
        let named: Vec<OffloadModule> = modules.split(' ').filter_map(OffloadModule::named).collect();
        let all: OffloadModules = named.iter().copied().collect();
        for module in named {
            let of = |text: &str| {
                let found = text.split(' ').find_map(|of| of.strip_prefix(module.name())?.strip_prefix('='));
                found.expect("bytes of a module").parse::<u64>().expect("a number")
            };
            let goes: u64 = saved.iter().chain(&beside).map(|saved| saved.sent(module, LEAST).get()).sum();
            assert_eq!(goes, of(sent), "{} sends: {line}", module.name());
            if recomputed.is_empty() {
                let first = |saved: &&Saved| saved.savers.modules.first() == Some(&module);
                let leaves = saved.iter().filter(first).filter(|saved| saved.leaves(all, LEAST));
                let leaves: u64 = leaves.map(|saved| saved.bytes.get()).sum();
                assert_eq!(leaves, of(left), "{} gives back: {line}", module.name());
            }
        }
        runs += 1;
    }
    assert_eq!(runs, 9);
}

/// Two stages of a mixture-of-experts model under Transformer Engine.
const EXPERTS: &[(&str, &str)] = &[
    ("software", "megatron_core_te"),
    ("accelerator", "H100-SXM"),
    ("num_nodes", "1"),
    ("gpus_per_node", "8"),
    ("pipeline_model_parallel_size", "2"),
    ("expert_model_parallel_size", "4"),
    ("num_layers", "8"),
    ("seq_length", "8192"),
    ("max_position_embeddings", "8192"),
    ("micro_batch_size", "1"),
    ("global_batch_size", "32"),
    ("hidden_size", "2048"),
    ("num_attention_heads", "16"),
    ("ffn_hidden_size", "8192"),
    ("vocab_size", "32000"),
    ("swiglu", "true"),
    ("add_bias_linear", "false"),
    ("normalization", "RMSNorm"),
    ("position_embedding_type", "rope"),
    ("untie_embeddings_and_output_weights", "true"),
    ("hidden_dropout", "0"),
    ("attention_dropout", "0"),
    ("bf16", "true"),
    ("num_experts", "16"),
    ("moe_router_topk", "4"),
    ("moe_ffn_hidden_size", "1024"),
    ("moe_token_dispatcher_type", "alltoall"),
    ("moe_grouped_gemm", "true"),
];

fn offloading<'a>(modules: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut set = EXPERTS.to_vec();
    set.extend([("fine_grained_activation_offloading", "true"), ("offload_modules", modules)]);
    set.extend(more);
    set
}

/// A layer's modules by what each saves: bytes of its tensors with at least 2^20 elements.
#[test]
fn the_device_is_left_by_what_modules_save() {
    const MIB: u64 = 1 << 20;
    let kept = plan(EXPERTS);
    let layers = 4 * MIB;
    for (modules, of_a_layer) in [
        // 8192 tokens with 2048 columns are 32 MiB: the input of a separate norm.
        ("mlp_norm", 32),
        // Nothing: the norm is part of the next projection.
        ("attn_norm", 0),
        // The norm's input and its output.
        ("qkv_linear", 2 * 32),
        // Queries, keys and values; the output stays, because the projection reads it.
        ("core_attn", 3 * 32),
        ("core_attn attn_proj", 4 * 32),
        // Four copies of each token; both halves of the activation's input.
        ("expert_fc1", 4 * 32),
        ("moe_act", 4 * 32),
    ] {
        let moved = plan(&offloading(modules, &[]));
        // Of the first stage's two micro-batches in flight, the waiting one is offloaded; backward has the tensors it
        // needs for its own layers on the device.
        let [before, after] = [&kept, &moved].map(|plan| {
            let memory = memory(plan);
            assert_eq!(memory.ranks[0].breakdown.value(), memory.ranks[0].totals.peak_reserved);
            memory.ranks[0].totals.activations.get()
        });
        assert!(after + of_a_layer * layers <= before, "{modules}: {after} of {before}");
        let chunk = &moved.layout().stages.stages[0].chunks[0];
        // The attention's output is copied twice if both save it.
        let copies = if modules.contains("core_attn") { of_a_layer.max(4 * 32) } else { of_a_layer };
        let copies = copies + if modules.contains("attn_proj") { 32 } else { 0 };
        assert_eq!(sent_by_modules(&moved, chunk).get(), copies * layers, "{modules}");
        let last = &moved.layout().stages.stages[1].chunks[0];
        assert_eq!(
            sent_by_modules(&moved, last).get(),
            copies * layers / 4 * 3,
            "{modules}: the last layer's stay"
        );
    }
    // A larger minimum tensor size keeps them.
    let large = plan(&offloading("mlp_norm", &[("min_offloaded_tensor_size", "16777217")]));
    assert_eq!(memory(&large).ranks[0].totals, memory(&kept).ranks[0].totals);
    // Copies that are not hidden take time.
    let all = plan(&offloading("qkv_linear core_attn attn_proj mlp_norm expert_fc1 moe_act", &[]));
    let times = [&kept, &all].map(time);
    assert!(times[1].step >= times[0].step);
    assert!(times[1].upper_bound > times[0].upper_bound);
}

/// What Megatron rejects is rejected, and what is not known stops the verdict.
#[test]
fn modules_that_cannot_be_offloaded_so_are_reported() {
    for (modules, more) in [
        ("", ("bf16", "true")),
        ("core_attn mlp", ("bf16", "true")),
        ("attn_proj", ("bf16", "true")),
        ("core_attn", ("software", "megatron_core_local")),
        // Since core 0.19.
        ("expert_fc1", ("recompute_modules", "moe")),
    ] {
        let mut set = offloading(modules, &[more]);
        if more.0 == "recompute_modules" {
            set.push(("recompute_granularity", "selective"));
        }
        let resolution = resolved(&set);
        assert!(resolution.plan.is_none(), "{modules} {more:?}");
        let reported = resolution.diagnostics.iter().any(|said| said.code.name() == "offload-modules");
        assert!(reported, "{modules} {more:?}: {:?}", resolution.diagnostics);
    }
    for (modules, more) in [
        ("fused_group_mlp", ("bf16", "true")),
        ("core_attn", ("fp8", "hybrid")),
        ("core_attn", ("cuda_graph_impl", "transformer_engine")),
        ("core_attn", ("activation_offload_fraction", "0.5")),
        ("core_attn", ("delta_offload_bytes_across_pp_ranks", "1048576")),
    ] {
        let resolution = resolved(&offloading(modules, &[more]));
        assert!(resolution.plan.is_none(), "{modules} {more:?}");
        let named =
            resolution.not_modelled.iter().any(|item| item.name == "fine_grained_activation_offloading");
        assert!(named, "{modules} {more:?}: {:?}", resolution.not_modelled);
    }
}

/// Core 0.18 offloads within recomputed MoE layers of hybrid models too, and 0.19 rejects it; up to 0.17 they never began a chunk
/// of groups, so that nothing was offloaded.
#[test]
fn a_hybrid_model_that_recomputes_its_experts_does_not_offload_them() {
    let recomputed =
        [("recompute_granularity", "selective"), ("recompute_modules", "core_attn moe shared_experts")];
    let hybrid = [("hybrid_override_pattern", "MEM*MEME"), ("mamba_num_heads", "64")];
    for modules in ["expert_fc1 moe_act", "core_attn attn_proj moe_act"] {
        let mut set = offloading(modules, &recomputed);
        set.extend(hybrid);
        let resolution = resolved(&set);
        assert!(resolution.plan.is_none(), "{modules}");
        let said = resolution.diagnostics.iter().find(|said| said.code.name() == "offload-modules");
        let hint = said.and_then(|said| said.hint.as_deref()).unwrap_or_default();
        assert!(
            hint.contains("up to 0.17 starts this hybrid model and offloads nothing"),
            "{modules}: {hint}"
        );
    }
    // The figures of those releases, and layers that are not recomputed whole.
    for (modules, more, offloads) in [
        ("expert_fc1 moe_act", vec![("fine_grained_activation_offloading", "false")], false),
        ("core_attn attn_proj", vec![], true),
    ] {
        let mut set = offloading(modules, &recomputed);
        set.extend(hybrid);
        set.extend(more);
        assert_eq!(!plan(&set).recipe().offload.modules.is_empty(), offloads, "{modules}");
    }
    let mut set = offloading("expert_fc1 moe_act", &[]);
    set.extend(hybrid);
    assert!(!plan(&set).recipe().offload.modules.is_empty());
}
