//! What data-parallel ranks send of gradients, held against what trains: every gradient once, in its own format.

use super::finetuning;
use shardscope::estimate::traffic::{Parallelism, all_buffers, traffic};
use shardscope::estimate::{memory, parameters};
use shardscope::operators::{Collective, Operator, Symbols};
use shardscope::plan::{DpSharding, NumberFormat, Plan};

/// Bytes of gradients that a rank of each stage reduces in a step, where every replica gets all of them.
fn reduced(plan: &Plan) -> Vec<u64> {
    let stages = plan.layout().stages.stages.len();
    let ledger = traffic(plan);
    let data = ledger.dimension(Parallelism::Data);
    let of = |stage: usize| {
        let sent = data.into_iter().flat_map(|data| &data.operations);
        let sent = sent.filter(|sent| sent.tensor == "gradients" && sent.collective == Collective::AllReduce);
        sent.map(|sent| sent.bytes().get() * sent.calls(stage)).sum()
    };
    (0..stages).map(of).collect()
}

#[test]
fn every_gradient_is_sent_once() {
    let (mut compared, mut replicated) = (0, 0);
    for (name, plan) in pages::guide::plans() {
        if plan.gathers_units() {
            continue;
        }
        let ranks = parameters(plan).ranks;
        for (chunks, rank) in all_buffers(plan).iter().zip(&ranks) {
            let held: u64 = chunks.iter().flatten().map(|buffer| buffer.parameters).sum();
            assert_eq!(held, rank.trained.get(), "{name}, stage {}", rank.pipeline_rank);
            compared += 1;
        }
        let recipe = plan.recipe();
        // Groups of one send nothing, and those of experts may be of one where others are not.
        let alone = plan.layout().dense_shards() == 1 || plan.layout().expert_shards() == 1;
        if recipe.dp_sharding != DpSharding::Replicated || alone {
            continue;
        }
        let widths = [recipe.reduce_dtype(), recipe.adapters_reduce_dtype()].map(NumberFormat::width);
        for (bytes, rank) in reduced(plan).into_iter().zip(&ranks) {
            let adapters = rank.adapters[0].get();
            let expected = (rank.trained.get() - adapters) * widths[0] + adapters * widths[1];
            assert_eq!(bytes, expected, "{name}, stage {}", rank.pipeline_rank);
            replicated += 1;
        }
    }
    assert!(compared > 100 && replicated > 20, "{compared} {replicated}");
}

/// PEFT's adapters in fp32 over weights in bf16: DDP's buckets hold 4 bytes for each of their elements, and so do its messages
/// (`torch/csrc/distributed/c10d/reducer.cpp`).
#[test]
fn adapters_are_sent_in_the_format_that_memory_holds_their_gradients_in() {
    let of = |more: &[(&str, &str)]| {
        let mut set = vec![
            ("gpus_per_node", "2"),
            ("train_type", "lora"),
            ("lora_rank", "8"),
            ("lora_target_modules", "all-linear"),
        ];
        set.extend(more);
        finetuning::plan(&set)
    };
    for (dtype, width) in [("fp32", 4), ("bf16", 2)] {
        let plan = of(&[("adapter_dtype", dtype), ("params_dtype", "bf16")]);
        let trained = parameters(&plan).trained.get();
        assert_eq!(reduced(&plan), [trained * width], "{dtype}");
        // The gradients, and the buckets that they are copied to.
        assert_eq!(memory(&plan).ranks[0].totals.gradients.get(), 2 * trained * width, "{dtype}");
    }
    // DeepSpeed's engine casts them, and what it sends with them (`deepspeed/runtime/engine.py:_configure_distributed_model`).
    let cast = of(&[
        ("params_dtype", "bf16"),
        ("adapter_dtype", "fp32"),
        ("data_parallel_engine", "deepspeed"),
        ("zero_stage", "2"),
    ]);
    assert_eq!(cast.recipe().adapters_reduce_dtype(), NumberFormat::Bf16);
}

/// Conventions and tools of decoders alone give no figure beside an encoder, and its rates say which tokens they count.
#[test]
fn figures_of_decoders_are_not_shown_beside_an_encoder() {
    let (_, plan) = pages::guide::plans()
        .find(|(_, plan)| plan.model().encoder.is_some())
        .expect("an encoder-decoder among the guide's plans");
    let report = shardscope::report::report(plan);
    let counts = &report.time.flops;
    assert_eq!((counts.megatron, counts.narayanan), (None, None));
    assert!(shardscope::report::analysis_tool::compare(plan, &report).is_empty());
    let text = shardscope::report::text::text(plan, &report);
    assert!(text.contains("target tokens per second") && !text.contains("analysis tool"), "{text}");
    let x = Symbols::new(plan);
    let named = |operator: Operator| operator.weights(&x)[0].name;
    assert_eq!(named(Operator::CrossNorm), "pre_cross_attention_layernorm.weight");
    assert_eq!(named(Operator::PreMlpNorm), "pre_mlp_layernorm.weight");
}
