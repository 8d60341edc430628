//! Properties of every plan, drawn at random over models, layouts and trainers: sums hold, nothing panics, increasing a
//! cost never lowers the result, and memory between steps never exceeds the peak.
//!
//! Runs over 300 plans; `SHARDSCOPE_PLANS=100000` asks for more.

use proptest::prelude::ProptestConfig;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngSeed, TestRunner};
use shardscope::estimate::time::time;
use shardscope::estimate::traffic::traffic;
use shardscope::estimate::{flops, memory, parameters};
use shardscope::explain::{Breakdown, Rule};
use shardscope::launch::resolve;
use shardscope::plan::Plan;
use shardscope::units::Bytes;

use crate::drawn::{config, on_all_processors, wanted};

/// Plans in a normal run.
const PLANS: u64 = 300;
/// Plans per thread at a time.
const AT_ONCE: u64 = 50;
/// Settings that every plan has.
const COMMON: &str = "hidden_size=1024 num_attention_heads=16 vocab_size=32000 swiglu=true normalization=RMSNorm \
    position_embedding_type=rope add_bias_linear=false group_query_attention=true num_query_groups=4 bf16=true \
    accelerator=H100-SXM gpus_per_node=8 global_batch_size=64 untie_embeddings_and_output_weights=true";

/// The alternatives to draw from: settings of one alternative are separated by spaces.
const DRAWN: &[&[&str]] = &[
    &["num_layers=4", "num_layers=8", "num_layers=12"],
    &["seq_length=512", "seq_length=2048", "seq_length=4096"],
    &["micro_batch_size=1", "micro_batch_size=2", "micro_batch_size=4"],
    &["num_nodes=1", "num_nodes=2"],
    &["", "tensor_model_parallel_size=2", "tensor_model_parallel_size=4 sequence_parallel=true"],
    &["", "pipeline_model_parallel_size=2", "pipeline_model_parallel_size=4"],
    &["", "", "context_parallel_size=2"],
    &["", "use_distributed_optimizer=true", "zero_stage=1", "zero_stage=2", "zero_stage=3"],
    &[
        "",
        "recompute_granularity=full recompute_method=uniform recompute_num_layers=1",
        "recompute_granularity=full recompute_method=block recompute_num_layers=2",
        "recompute_granularity=selective",
    ],
    &[
        "",
        "",
        "num_experts=8 moe_router_topk=2 moe_ffn_hidden_size=512",
        "num_experts=8 moe_ffn_hidden_size=512 moe_layer_freq=2 moe_shared_expert_intermediate_size=512",
    ],
    &[
        "",
        "mixer_pattern=www* attention_window=256",
        "mixer_pattern=w attention_window=1024 chunked_attention=true",
        "linear_attention_freq=4 attention_output_gate=true",
        "mixer_pattern=MM* linear_mixer=mamba2",
        "mixer_pattern=P linear_mixer=mamba2",
        "mixer_pattern=MMM* linear_mixer=kimi_delta_attention linear_rank=64 linear_num_key_heads=16 \
         linear_num_value_heads=16",
        "mixer_pattern=M* linear_mixer=mamba linear_num_key_heads=1 linear_num_value_heads=1 linear_key_head_dim=16 \
         linear_value_head_dim=2048 linear_rank=64",
        "mixer_pattern=MMM* linear_mixer=short_convolution linear_num_key_heads=1 linear_num_value_heads=1 \
         linear_key_head_dim=1024 linear_value_head_dim=1024 linear_conv_kernel_dim=3 linear_biases=none",
    ],
    &[
        "",
        "",
        "software=megatron_core_local",
        "software=torchtitan",
        "software=nanotron",
        "software=hf_transformers train_type=full",
        "software=hf_transformers train_type=lora lora_rank=16 lora_target_modules=all-linear",
        "software=hf_transformers train_type=qlora lora_rank=16 lora_target_modules=all-linear base_quantization=nf4",
        "software=hf_transformers train_type=lora use_dora=true lora_rank=16 lora_target_modules=q_proj lora_dropout=0.1",
        "train_type=lora adapter_library=mcore-bridge lora_rank=8",
        "train_type=lora adapter_library=megatron-bridge lora_rank=32 lora_target_modules=linear_qkv",
        "software=megatron_core_local train_type=lora adapter_library=megatron-bridge-canonical lora_dropout=0.1",
    ],
    &["", "", "attention_kernel=flash", "attention_kernel=unfused"],
    &["", "", "hidden_dropout=0.1", "optimizer=sgd", "optimizer=lion", "optimizer=muon"],
];

/// The choices for a plan, as indices into [`DRAWN`].
fn choices() -> impl Strategy<Value = Vec<usize>> {
    DRAWN.iter().map(|alternatives| 0..alternatives.len()).collect::<Vec<_>>()
}

fn settings(chosen: &[usize], more: &str) -> Vec<(String, String)> {
    let drawn = DRAWN.iter().zip(chosen).map(|(alternatives, place)| alternatives[*place]);
    let words = COMMON.split_ascii_whitespace().chain(drawn.flat_map(str::split_ascii_whitespace));
    let pairs = words.chain(more.split_ascii_whitespace()).filter_map(|word| word.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn plan(chosen: &[usize], more: &str) -> Option<Plan> {
    resolve(&[], &settings(chosen, more)).plan
}

/// Every parent is the sum of its children.
fn check_sums(node: &Breakdown<Bytes>) {
    let children = node.children();
    let one: u64 = match node.rule() {
        Rule::Leaf => return,
        Rule::Sum => children.iter().map(|child| child.value().get()).sum(),
        Rule::Greatest => children.iter().map(|child| child.value().get()).max().unwrap_or(0),
    };
    assert_eq!(node.value().get(), one * node.multiplicity(), "{}", node.label());
    for child in children {
        check_sums(child);
    }
}

/// The properties of one plan; returns its worst peak.
fn check(plan: &Plan) -> u64 {
    let memory = memory(plan);
    for rank in &memory.ranks {
        let totals = &rank.totals;
        let parts =
            [totals.parameters, totals.gradients, totals.optimizer, totals.activations, totals.temporaries];
        let sum: u64 = parts.iter().map(|bytes| bytes.get()).sum();
        assert_eq!(sum, totals.peak_allocated.get(), "the terms of the peak");
        assert_eq!(rank.breakdown.value(), totals.peak_reserved);
        assert!(totals.peak_reserved >= totals.peak_allocated);
        assert!(
            totals.between_steps <= totals.peak_allocated,
            "between steps {:?} and {:?} at the peak",
            totals.between_steps,
            totals.peak_allocated
        );
        check_sums(&rank.breakdown);
    }
    let counted = parameters(plan);
    assert!(counted.active_per_token <= counted.total);
    let of = flops(plan);
    assert!(of.causal <= of.model && of.model <= of.hardware, "{of:?}");
    let step = time(plan).step.get();
    assert!(step.is_finite() && step > 0.0, "{step}");
    assert!(traffic(plan).dimensions.iter().all(|of| !of.operations.is_empty()));
    memory.worst.peak_allocated.get()
}

#[test]
fn every_plan_adds_up_and_more_never_costs_less() {
    let wanted = wanted(PLANS);
    let parts = on_all_processors(wanted.div_ceil(AT_ONCE), |part| {
        adds_up(part, AT_ONCE.min(wanted - part * AT_ONCE))
    });
    println!("{wanted} plans of {} drawn", parts.into_iter().sum::<u64>());
}

/// How many plans were drawn for `part` until `wanted` of them would be started by a trainer.
fn adds_up(part: u64, wanted: u64) -> u64 {
    let mut runner = TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(part), ..config(1) });
    let strategy = choices();
    let (mut plans, mut drawn) = (0, 0_u64);
    while plans < wanted {
        drawn += 1;
        assert!(drawn < 100 + 20 * wanted, "{plans} plans of {drawn} drawn");
        let chosen = strategy.new_tree(&mut runner).expect("choices").current();
        let Some(one) = plan(&chosen, "") else { continue };
        let context = || settings(&chosen, "");
        let peak = match std::panic::catch_unwind(|| check(&one)) {
            Ok(peak) => peak,
            Err(why) => {
                eprintln!("{:?}", context());
                std::panic::resume_unwind(why);
            }
        };
        plans += 1;
        // Doubling the tokens of a micro-batch or the layers of every stage never needs less memory.
        let (tokens, layers) = (one.model().seq_length, one.model().num_layers);
        for more in [format!("seq_length={}", 2 * tokens), format!("num_layers={}", 2 * layers)] {
            if let Some(other) = plan(&chosen, &more) {
                let larger = memory(&other).worst.peak_allocated.get();
                assert!(larger >= peak, "{more}: {larger} below {peak}, {:?}", context());
            }
        }
    }
    drawn
}
