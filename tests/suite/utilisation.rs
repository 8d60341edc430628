//! The effect of sharding on each matrix product.

use super::drafts::{draft, even_stages};
use shardscope::estimate::compute::Bound;
use shardscope::estimate::{Remark, Sizes, Utilisation, utilisation};
use shardscope::plan::*;

/// LLaMA-2 7B over `tensor` ranks.
fn llama(tensor: u64) -> Vec<Utilisation> {
    let mut draft = draft();
    let model = &mut draft.model;
    model.num_layers = 32;
    model.hidden_size = 4096;
    model.ffn_hidden_size = 11008;
    model.num_attention_heads = 32;
    model.num_query_groups = 32;
    model.kv_channels = 128;
    model.seq_length = 4096;
    model.padded_vocab_size = 32000;
    draft.layout.stages = even_stages(32, 1, 0);
    draft.layout.tensor = tensor;
    draft.layout.world_size = tensor;
    draft.layout.sequence_parallel = tensor > 1;
    draft.cluster.num_nodes = tensor.div_ceil(8);
    utilisation(&draft.plan())
}

fn named(all: &[Utilisation], name: &str) -> Utilisation {
    all.iter().find(|one| one.name == name).expect("the product").clone()
}

#[test]
fn every_product_has_its_sizes_before_and_after() {
    let all = llama(8);
    let names: Vec<&str> = all.iter().map(|one| one.name).collect();
    let expected = [
        "linear_qkv",
        "attention_scores",
        "attention_values",
        "linear_proj",
        "linear_fc1",
        "linear_fc2",
        "output_layer",
    ];
    assert_eq!(names, expected);
    let qkv = named(&all, "linear_qkv");
    assert_eq!(qkv.full, Sizes { batch: 1, m: 4096, n: 12288, k: 4096 });
    assert_eq!(qkv.sharded, Sizes { batch: 1, m: 4096, n: 1536, k: 4096 });
    assert_eq!(named(&all, "linear_fc1").sharded, Sizes { batch: 1, m: 4096, n: 2 * 1376, k: 4096 });
    assert_eq!(named(&all, "linear_proj").sharded, Sizes { batch: 1, m: 4096, n: 4096, k: 512 });
    assert_eq!(named(&all, "attention_scores").sharded, Sizes { batch: 4, m: 4096, n: 4096, k: 128 });
}

#[test]
fn intensity_and_bytes_follow_from_the_sizes() {
    let qkv = named(&llama(8), "linear_qkv");
    let bytes = 2 * (4096 * 4096 + 4096 * 1536 + 4096 * 1536);
    assert_eq!(qkv.bytes.get(), bytes);
    let flops = 2.0 * 4096.0 * 4096.0 * 1536.0;
    assert!((qkv.flops.get() - flops).abs() < 1.0);
    assert!((qkv.intensity - flops / 58_720_256.0).abs() < 1e-6, "{bytes}");
    assert!((qkv.ridge - 989.0 / 3.35).abs() < 0.1);
}

#[test]
fn cutting_finer_never_helps_a_product_and_is_said_in_words() {
    let (one, eight) = (llama(1), llama(8));
    for (whole, cut) in one.iter().zip(&eight) {
        assert!(cut.efficiency <= whole.efficiency * 1.02, "{}", cut.name);
        assert!(whole.efficiency > 0.2 && whole.efficiency < 1.0, "{} {}", whole.name, whole.efficiency);
        assert!((cut.full_efficiency / whole.efficiency - 1.0).abs() < 1e-9, "{}", cut.name);
    }
    let proj = named(&eight, "linear_proj");
    assert!(proj.remarks.iter().any(|remark| matches!(remark, Remark::Sharding { .. })), "{proj:?}");
    assert!(proj.note().expect("a note").contains("Sharding lowers efficiency"));
}

#[test]
fn a_router_is_bound_by_memory_and_an_odd_vocabulary_misaligned() {
    let mut draft = draft();
    draft.model.hidden_size = 4096;
    draft.model.padded_vocab_size = 50257;
    draft.model.seq_length = 4096;
    draft.model.experts = Some(Experts {
        num_experts: 8,
        router_topk: 2,
        ffn_hidden_size: 14336,
        pattern: vec![true, true],
        shared_expert_intermediate_size: None,
        shared_expert_gate: false,
        latent_size: None,
        groups: None,
    });
    let all = utilisation(&draft.plan());
    let router = named(&all, "router");
    assert_eq!(router.bound, Bound::Memory);
    assert!(router.intensity < router.ridge);
    let head = named(&all, "output_layer");
    let odd = Remark::Misaligned { name: "n", size: 50257, multiple: 8 };
    assert!(head.remarks.contains(&odd), "{:?}", head.remarks);
    let fc1 = named(&all, "experts.linear_fc1");
    assert_eq!(fc1.sharded, Sizes { batch: 8, m: 1024, n: 28672, k: 4096 });
}
