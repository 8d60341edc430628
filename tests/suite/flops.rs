//! FLOPs by every convention: Megatron-LM's own count case by case, and the papers' closed forms.

use super::drafts::{cases, draft, even_stages};
use super::formats::resolved;
use super::parameters::drafted;
use shardscope::estimate::flops;
use shardscope::plan::*;
use shardscope::source::Source;

const FLOPS: &str = include_str!("../data/megatron/flops.json");
const PLANS: &str = include_str!("../data/megatron/parameters.json");

#[test]
fn megatrons_own_count_is_equal_in_every_case() {
    let plans = cases(PLANS);
    for case in cases(FLOPS) {
        let expected = case["flops"].as_f64().unwrap();
        let plan = plans.iter().find(|plan| plan["id"] == case["id"]).expect("a plan for the case");
        let counted = flops(&drafted(plan).plan()).megatron.expect("a decoder alone").get();
        // Both are sums of products of integers in doubles: equal up to the order of summation.
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
    assert!((counts.causal.get() / counts.megatron.expect("a decoder alone").get() - 1.0).abs() < 1e-12);
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

/// Multiply-adds per token in the draft's attention block, 256 wide over 64 tokens: four projections, the causal half
/// of scores and values.
const ATTENTION: u64 = 4 * 256 * 256 + 64 * 256;
/// In its gated MLP, and in its output layer.
const MLP: u64 = 3 * 256 * 512;
const LOGITS: u64 = 256 * 512;

/// Megatron's count for a step of one sequence of 64 tokens: six operations per multiply-add.
fn step(multiply_adds: u64) -> f64 {
    (6 * 64 * multiply_adds) as f64
}

/// `hybrid_flops` and its parts in `megatron/training/training.py` (001b00c2), by hand.
#[test]
fn a_linear_mixer_counts_as_in_megatrons_hybrids() {
    let of = |kind| {
        let mut draft = draft();
        let mixer = LinearMixer {
            kind,
            key_heads: 2,
            value_heads: 4,
            key_width: 16,
            value_width: 32,
            convolution: 4,
            rank: 8,
            biases: [false; 3],
            norm: true,
        };
        draft.model.mixers.pattern = vec![Mixer::Linear, Mixer::Attention];
        draft.model.mixers.linear = Some(mixer);
        flops(&draft.plan()).megatron.expect("a decoder alone").get()
    };
    let (keys, values, heads, h) = (2 * 16, 4 * 32, 4, 256);
    let rest = ATTENTION + 2 * MLP + LOGITS;
    // Input projection: gate and values, B and C, and one time step per head. 7 operations per channel and state, two
    // of which make a multiply-add. Output projection.
    let mamba = h * (2 * values + 2 * keys + heads) + 7 * values * 16 / 2 + values * h;
    assert_eq!(of(LinearKind::Mamba2), step(rest + mamba));
    // Two numbers per value head, the convolution over queries, keys and values, and four products with the state.
    let projected = h * (2 * keys + 2 * values + 2 * heads);
    let gated = projected + 4 * (2 * keys + values) + heads * 32 * 32 * 4 + h * values;
    for kind in [LinearKind::GatedDeltaNet, LinearKind::KimiDelta] {
        assert_eq!(of(kind), step(rest + gated), "{kind:?}");
    }
    // Queries, keys, values and output projection, and a convolution over the values only.
    let short = h * (2 * keys + values) + h * values + 4 * values;
    assert_eq!(of(LinearKind::ShortConvolution), step(rest + short));
}

/// `moe_layer_flops`: experts in a narrower space, with a projection of tokens into and out of it.
#[test]
fn experts_in_a_narrower_space_count_as_in_megatron() {
    let of = |latent_size| {
        let mut draft = draft();
        draft.model.experts = Some(Experts {
            num_experts: 8,
            router_topk: 2,
            ffn_hidden_size: 128,
            pattern: vec![true, false],
            shared_expert_intermediate_size: Some(64),
            shared_expert_gate: false,
            latent_size,
            groups: None,
        });
        flops(&draft.plan()).megatron.expect("a decoder alone").get()
    };
    let rest = 2 * ATTENTION + MLP + 3 * 256 * 64 + LOGITS;
    assert_eq!(of(None), step(rest + 2 * 3 * 256 * 128));
    assert_eq!(of(Some(32)), step(rest + 2 * 3 * 32 * 128 + 2 * 256 * 32));
}

/// The closed form only applies to plain GPTs: each of its assumptions is violated separately.
#[test]
fn narayanans_form_wants_all_that_it_assumes() {
    let given_up: [fn(&mut Model); 7] = [
        |model| model.activation = Activation::Swiglu,
        |model| model.num_query_groups = 8,
        |model| model.ffn_hidden_size += 128,
        |model| model.kv_channels = 256,
        |model| model.mixers.pattern = vec![Mixer::Attention],
        |model| {
            model.latent = Some(LatentAttention {
                q_lora_rank: None,
                kv_lora_rank: 512,
                qk_head_dim: 128,
                qk_pos_emb_head_dim: 64,
                v_head_dim: 128,
            });
        },
        |model| {
            model.experts = Some(Experts {
                num_experts: 8,
                router_topk: 2,
                ffn_hidden_size: 4 * 12288,
                pattern: vec![false; 96],
                shared_expert_intermediate_size: None,
                shared_expert_gate: false,
                latent_size: None,
                groups: None,
            });
        },
    ];
    let mut plain = super::drafts::Draft::new(&gpt3());
    for (place, give_up) in given_up.into_iter().enumerate() {
        let mut draft = plain.clone();
        give_up(&mut draft.model);
        assert_eq!(flops(&draft.plan()).narayanan, None, "{place}");
    }
    // 96·B·s·L·h²·(1 + s/6h + V/16Lh), multiplied out.
    let (tokens, s, l, h, v) = (1536.0 * 2048.0, 2048.0, 96.0, 12288.0, 51200.0);
    let closed = 96.0 * tokens * l * h * h + 16.0 * tokens * l * h * s + 6.0 * tokens * h * v;
    let counted = flops(&plain.plan()).narayanan.unwrap().get();
    assert!((counted / closed - 1.0).abs() < 1e-14, "{counted} {closed}");
    plain.recipe.recompute = Recompute::Block { num_layers: 96, distribute: false };
    assert_eq!(flops(&plain.plan()).narayanan, None);
}

/// Forward operations of one layer of the draft, with full attention, and of its parts.
#[test]
fn what_is_done_again_is_counted_layer_by_layer_and_module_by_module() {
    let more = |layers: u64, recompute: Recompute, software: Software| {
        let mut draft = draft();
        draft.model.num_layers = layers;
        draft.layout.stages = even_stages(layers, 1, 0);
        draft.recipe.recompute = recompute;
        draft.recipe.software = software;
        draft.recipe.global_batch_size = 6;
        draft.recipe.micro_batch_size = 2;
        draft.recipe.num_micro_batches = 3;
        let counts = flops(&draft.plan());
        (counts.hardware.get() - counts.model.get()) / 3.0
    };
    let tokens = 2 * 64;
    let core = 2 * 2 * tokens * 64 * 256;
    let mlp = 2 * tokens * MLP;
    let layer = 2 * tokens * 4 * 256 * 256 + core + mlp;
    let megatron = Software::MegatronCoreLocal;
    assert_eq!(more(4, Recompute::None, megatron), 0.0);
    let uniform = Recompute::Uniform { num_layers: 2, distribute: false };
    assert_eq!(more(4, uniform, megatron), (4 * layer) as f64);
    assert_eq!(more(4, Recompute::Block { num_layers: 3, distribute: false }, megatron), (3 * layer) as f64);
    let selective = |module| Recompute::Selective(vec![module]);
    assert_eq!(more(4, selective(RecomputeModule::CoreAttention), megatron), (4 * core) as f64);
    assert_eq!(more(4, selective(RecomputeModule::Mlp), megatron), (4 * mlp) as f64);
}

/// torchtitan's checkpoints wrap layers and keep the first, third, fifth and seventh product of each: keys, attention's output and
/// "up" are repeated; the output layer is outside. With latent attention through a narrow space for queries, five products come
/// before the MLP: the up-projections, gate and the MLP's output are repeated.
#[test]
fn every_second_product_of_a_layer_is_repeated() {
    let more = |latent: Option<LatentAttention>| {
        let mut draft = draft();
        draft.model.num_layers = 4;
        draft.model.num_query_groups = 2;
        draft.model.latent = latent;
        draft.layout.stages = even_stages(4, 1, 0);
        draft.recipe.software = Software::Torchtitan;
        draft.recipe.recompute = Recompute::Selective(vec![RecomputeModule::CoreAttention]);
        draft.recipe.global_batch_size = 6;
        draft.recipe.micro_batch_size = 2;
        draft.recipe.num_micro_batches = 3;
        let plan = draft.plan();
        let counts = flops(&plan);
        let each = (counts.hardware.get() - counts.model.get()) / (3.0 * 4.0 * 2.0 * 2.0 * 64.0);
        (each, plan.model().kv_channels * plan.model().num_query_groups, plan.model().num_attention_heads)
    };
    let (each, keys, _) = more(None);
    assert_eq!(each, (256 * keys + 256 * 256 + 256 * 512) as f64);
    let latent = LatentAttention {
        q_lora_rank: Some(96),
        kv_lora_rank: 48,
        qk_head_dim: 32,
        qk_pos_emb_head_dim: 16,
        v_head_dim: 24,
    };
    let (each, _, heads) = more(Some(latent));
    assert_eq!(each, (96 * heads * 48 + 48 * heads * 56 + 256 * 512 + 512 * 256) as f64);
}

/// Gemma 4 E2B and E4B (`Gemma4TextConfig`, transformers 5.23) over sequences no longer than the window: every fifth or sixth layer has
/// heads of 512 instead of 256, the later layers project no keys and values and have in E2B MLPs twice as wide, and each layer gates
/// and projects an embedding of 256, which one product makes for all of them.
#[test]
fn layers_that_borrow_keys_and_values_count_by_their_kind() {
    const S: u64 = 512;
    // Hidden and MLP widths, groups; layers with windows and without, each with keys of its own and borrowed; MLPs by width.
    let cases = [
        ("google/gemma-4-E2B", [1536, 6144, 1], [12, 16, 3, 4], 15 + 2 * 20),
        ("google/gemma-4-E4B", [2560, 10240, 2], [20, 15, 4, 3], 42),
    ];
    for (name, [h, ffn, groups], [windowed, borrowed, whole, borrowed_whole], mlps) in cases {
        let set = [
            ("software", "hf_transformers"),
            ("model", name),
            ("vision_tower", "false"),
            ("seq_length", "512"),
            ("micro_batch_size", "1"),
            ("world_size", "1"),
            ("num_micro_batches", "1"),
            ("params_dtype", "bf16"),
            ("accelerator", "H200-SXM"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let read = resolved(&Source::from_files([("run.sh", "")]), &set);
        let plan = read.plan.unwrap_or_else(|| panic!("{:?} {:?}", read.not_modelled, read.diagnostics));
        let queries = |width: u64| 2 * h * 8 * width;
        let pairs = |width: u64| 2 * h * groups * width;
        let layers = windowed + borrowed + whole + borrowed_whole;
        let linear = (windowed + borrowed) * queries(256)
            + windowed * pairs(256)
            + (whole + borrowed_whole) * queries(512)
            + whole * pairs(512)
            + 3 * h * ffn * mlps
            + 3 * layers * h * 256
            + h * 262_144;
        // Scores and values of eight heads, in full.
        let core = 2 * S * 8 * (256 * (windowed + borrowed) + 512 * (whole + borrowed_whole));
        let counts = flops(&plan);
        let step = |multiply_adds: u64| (6 * S * multiply_adds) as f64;
        assert_eq!(counts.megatron.expect("a decoder alone").get(), step(linear + core / 2), "{name}");
        assert_eq!(counts.model.get(), step(linear + core), "{name}");
    }
}
