//! The step time compared with published runs, and properties of every estimate.

use pages::evidence::Row;
use shardscope::estimate::compute::calibration;
use shardscope::estimate::time::{Time, exact_step_seconds, step_seconds, time, unknowns};
use shardscope::estimate::{memory, parameters};
use shardscope::launch::resolve;
use shardscope::plan::{CudaGraphs, Fp8Recipe, Measured, Plan, Recompute};

use super::drafts::{draft, even_stages, settled};

fn predicted(row: &Row) -> Time {
    let plan = row.try_plan().unwrap_or_else(|why| panic!("{}: {why}", row.text("id")));
    time(&plan)
}

#[test]
fn the_parts_add_up_and_the_bounds_enclose_the_estimate() {
    for row in Row::all() {
        let Ok(plan) = row.try_plan() else { continue };
        let time = time(&plan);
        let id = row.text("id");
        let sum: f64 = time.breakdown.children().iter().map(|part| part.value().get()).sum();
        assert!((sum / time.step.get() - 1.0).abs() < 1e-12, "{id}");
        // The same parts in another order.
        assert!((time.breakdown.value().get() / time.step.get() - 1.0).abs() < 1e-14, "{id}");
        for part in
            ["compute", "recompute", "tensor", "pipeline", "context", "expert", "data", "optimizer", "bubble"]
        {
            assert!(time.breakdown.child(part).is_some(), "{id} has no part {part}");
        }
        assert!(time.breakdown.children().iter().all(|part| part.value().get() >= 0.0), "{id}");
        assert!(time.lower_bound <= time.step && time.step <= time.upper_bound, "{id}");
        let exact = exact_step_seconds(&plan).get();
        assert!(exact.total_cmp(&time.step.get()).is_eq(), "{id}: {}", exact / time.step.get());
        let alone = step_seconds(&plan).get();
        assert!((alone / time.step.get() - 1.0).abs() < 0.02, "{id}: {}", alone / time.step.get());
        assert!(time.mfu > 0.0 && time.mfu < 1.0 && time.mfu <= time.hfu, "{id} {}", time.mfu);
        assert!((0.0..1.0).contains(&time.bubble_fraction), "{id} {}", time.bubble_fraction);
    }
}

fn of(id: &str) -> f64 {
    let row = Row::all().into_iter().find(|row| row.text("id") == id).expect("the row");
    predicted(&row).step.get()
}

#[test]
fn the_orderings_of_the_seeds_come_out() {
    let azure = |number: u64| of(&format!("seed-azure-nemo-22.06-{number:03}"));
    assert!(azure(10) < azure(17), "40B: TP 4 is faster than TP 8");
    assert!(azure(8) < azure(20), "20B: TP 2 PP 4 is faster than TP 8 PP 1");
    let (one, two, four) = (azure(3), azure(18), azure(19));
    assert!((1.3..1.7).contains(&(two / one)), "126M: PP 2 takes about 1.5 times: {}", two / one);
    assert!((1.75..2.75).contains(&(four / one)), "126M: PP 4 takes about 2.5 times: {}", four / one);
    let speedup = |nodes: f64, number| azure(14) * 105.0 / (azure(number) * nodes);
    assert!((speedup(140.0, 15) - 0.981).abs() < 0.015, "530B: {}", speedup(140.0, 15));
    assert!((speedup(175.0, 16) - 0.950).abs() < 0.015, "530B: {}", speedup(175.0, 16));
}

#[test]
fn an_even_pipeline_is_as_efficient_as_the_formula_says() {
    for (stages, micro_batches) in [(2, 4), (4, 8), (8, 64), (16, 16)] {
        let mut draft = draft();
        draft.model.num_layers = stages;
        draft.model.padded_vocab_size = 128;
        draft.model.hidden_size = 4096;
        draft.model.ffn_hidden_size = 16384;
        draft.model.seq_length = 4096;
        draft.layout.pipeline = stages;
        draft.layout.world_size = stages;
        draft.layout.stages = even_stages(stages, stages, 0);
        draft.cluster.num_nodes = stages.div_ceil(8);
        draft.recipe.num_micro_batches = micro_batches;
        draft.recipe.global_batch_size = micro_batches;
        draft.recipe.overlap.pipeline = false;
        draft.recipe.cuda_graphs = CudaGraphs::Iteration;
        let time = time(&draft.plan());
        let expected = 1.0 - micro_batches as f64 / (micro_batches + stages - 1) as f64;
        let bubble = time.bubble_fraction;
        assert!((bubble - expected).abs() < 0.03, "{stages} stages, {micro_batches}: {bubble} {expected}");
    }
}

#[test]
fn one_stage_waits_for_nobody() {
    for layers in [3, 7, 26] {
        let mut draft = draft();
        draft.model.num_layers = layers;
        draft.layout.stages = even_stages(layers, 1, 0);
        draft.recipe.num_micro_batches = 2 * layers + 1;
        draft.recipe.global_batch_size = 2 * layers + 1;
        assert_eq!(time(&draft.plan()).bubble_fraction, 0.0, "{layers} layers");
    }
}

#[test]
fn larger_micro_batches_are_faster_and_measured_rates_count() {
    let step = |micro, measured: Measured| {
        let mut draft = draft();
        draft.model.num_layers = 8;
        draft.model.hidden_size = 2048;
        draft.model.ffn_hidden_size = 8192;
        draft.model.seq_length = 2048;
        draft.layout.stages = even_stages(8, 1, 0);
        draft.recipe.micro_batch_size = micro;
        draft.recipe.global_batch_size = 16;
        draft.recipe.num_micro_batches = 16 / micro;
        draft.cluster.measured = measured;
        time(&draft.plan()).step.get()
    };
    let none = Measured::default();
    assert!(step(4, none) < step(2, none) && step(2, none) < step(1, none));
    let slow = Measured { matmul: Some(shardscope::units::FlopsPerSecond::tera(300.0)), ..none };
    assert!(step(4, slow) > 1.5 * step(4, none));
}

/// Bus bandwidths measured by the user replace those of the data sheet: halving one makes its messages, and no others,
/// take longer.
#[test]
fn measured_bandwidths_count_where_they_belong() {
    let part = |set: &[(&str, &str)], part: &str| {
        let time = time(&settled(set));
        let waits = time.waits(part).0.get();
        assert!(waits > 0.0, "{part}");
        waits
    };
    let waits = |name, of: &str| ["20", "40"].map(|rate| part(&[(name, rate)], of));
    let [slow, fast] = waits("measured_fast_bus_gbps", "tensor");
    assert!((1.6..2.4).contains(&(slow / fast)), "a fast bus of half the rate: {slow} {fast}");
    let [slow, fast] = waits("measured_network_bus_gbps", "data");
    assert!(
        (1.5..3.0).contains(&(slow / fast)),
        "a network of half the rate, partly behind the backward pass: {slow} {fast}"
    );
    let [slow, fast] = waits("measured_network_bus_gbps", "tensor");
    assert!((slow / fast - 1.0).abs() < 1e-9, "tensor groups stay inside a node: {slow} {fast}");
}

/// Rates and utilisations mean what their names say, relative to the dense peak of one accelerator.
#[test]
fn rates_follow_from_the_step() {
    for row in Row::all().iter().step_by(25) {
        let (id, plan) = (row.text("id"), row.try_plan().expect("a plan"));
        let time = time(&plan);
        let (step, gpus) = (time.step.get(), plan.layout().world_size as f64);
        let samples = plan.recipe().global_batch_size as f64 / step;
        let near = |held: f64, expected: f64| {
            assert!((held / expected - 1.0).abs() < 1e-12, "{id}: {held} {expected}")
        };
        near(time.samples_per_second, samples);
        near(time.tokens_per_second, samples * plan.model().seq_length as f64);
        near(time.tokens_per_second_per_gpu, time.tokens_per_second / gpus);
        near(time.mfu, time.flops.model.get() / step / gpus / time.peak.get());
        near(time.hfu, time.flops.hardware.get() / step / gpus / time.peak.get());
        let peaks = plan.cluster().accelerator.peaks;
        let dense = match plan.recipe().fp8.as_ref().map(|fp8| fp8.recipe) {
            None => peaks.half,
            Some(Fp8Recipe::Nvfp4) => peaks.fp4.expect("a peak"),
            Some(_) => peaks.fp8.expect("a peak"),
        };
        near(time.peak.get(), dense.get());
    }
}

/// Effects that cannot be known are named if they apply, and only then.
#[test]
fn what_cannot_be_known_is_named() {
    use Unknown::{Accelerator, ExpertBalance, Modules, Network, Prefetch, Relative};
    use shardscope::estimate::time::Unknown;
    for row in Row::all() {
        let plan = row.try_plan().expect("a plan");
        let time = time(&plan);
        let named = unknowns(&plan, &time);
        let expected = [
            (Accelerator, false),
            (Relative, ["H20", "MI355X"].contains(&row.text("gpu"))),
            (Unknown::Fp4, row.text("compute") == "nvfp4"),
            (ExpertBalance, row.is_moe()),
            (Network, plan.cluster().num_nodes >= 128),
            (Prefetch, row.sharded_weights()),
            (Modules, matches!(plan.recipe().recompute, Recompute::Selective(_))),
            (Unknown::Host, time.waits("host").1 >= 0.05),
            (Unknown::Between, true),
        ];
        for (unknown, holds) in expected {
            assert_eq!(named.contains(&unknown), holds, "{}: {unknown:?}", row.text("id"));
            assert!(unknown.sentence().ends_with('.'));
        }
    }
}

/// The length of a run, its price and its power come from the settings; a requested number of tokens overrides the
/// script's steps.
#[test]
fn a_training_is_priced() {
    use shardscope::launch::{Argument, megatron, resolve};
    const FLAGS: &str = "--num-layers 2 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --bf16 \
        --max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50257 --world-size 8";
    let of = |more: &str, set: &[(&str, &str)]| {
        let reading = megatron::read(&Argument::split(&format!("{FLAGS} {more}")));
        let overrides: Vec<_> = [("world_size", "8")]
            .iter()
            .chain(set)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let time = time(&resolve(&[reading], &overrides).plan.expect("a plan"));
        (time.step.get(), time.training)
    };
    assert_eq!(of("", &[]).1, None);
    let (step, run) = of("--train-iters 1000", &[]);
    let run = run.expect("a length");
    assert_eq!((run.steps, run.tokens, run.energy, run.cost), (1000, 1000 * 64 * 1024, None, None));
    assert!((run.gpu_hours - 1000.0 * step * 8.0 / 3600.0).abs() < 1e-9);
    assert!(
        (run.days - 1000.0 * step / 86_400.0).abs() < 1e-12 && (run.time.get() - 1000.0 * step).abs() < 1e-9
    );
    assert_eq!(of("--train-samples 65", &[]).1.map(|run| run.steps), Some(2));
    let asked = [("token_budget", "65537"), ("price_per_gpu_hour", "2.5"), ("watts_per_gpu", "1000")];
    let run = of("--train-iters 1000", &asked).1.expect("a length");
    assert_eq!((run.steps, run.cost), (2, Some(run.gpu_hours * 2.5)));
    let energy = run.energy.expect("its power is stated");
    assert!((energy / (run.gpu_hours / 1000.0) - 1.0).abs() < 1e-12, "{energy} MWh");
    let slow = of("", &[("measured_matmul_tflops", "20")]).0;
    assert!(slow > 1.5 * step, "a measured product counts: {slow} {step}");
}

fn planned(set: &[(&str, &str)]) -> Plan {
    let common = [
        ("num_nodes", "1"),
        ("gpus_per_node", "8"),
        ("num_layers", "32"),
        ("hidden_size", "4096"),
        ("ffn_hidden_size", "14336"),
        ("num_attention_heads", "32"),
        ("swiglu", "true"),
        ("normalization", "RMSNorm"),
        ("untie_embeddings_and_output_weights", "true"),
        ("vocab_size", "128256"),
        ("micro_batch_size", "1"),
        ("global_batch_size", "8"),
        ("bf16", "true"),
    ];
    let set: Vec<_> =
        common.iter().chain(set).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = resolve(&[], &set);
    resolution.plan.unwrap_or_else(|| panic!("no plan: {:?}", resolution.diagnostics))
}

#[test]
fn flash_attention_4_is_faster_on_blackwell_alone_and_keeps_as_much() {
    let run = |accelerator: &str, kernel: &str| {
        let plan = planned(&[
            ("software", "hf_transformers"),
            ("accelerator", accelerator),
            ("seq_length", "65536"),
            ("gradient_checkpointing", "true"),
            ("attn_implementation", kernel),
        ]);
        (exact_step_seconds(&plan).get(), memory(&plan).worst.peak_reserved)
    };
    let (older, newer) = (run("B200", "flash_attention_2"), run("B200", "flash_attention_4"));
    assert!(newer.0 < 0.95 * older.0, "{newer:?} against {older:?}");
    assert_eq!(newer.1, older.1);
    assert_eq!(run("H100-SXM", "flash_attention_4"), run("H100-SXM", "flash_attention_3"));
}

/// `recompute_input_layernorm` applies to a separate norm module; Transformer Engine's `LayerNormLinear` is not one
/// (`megatron/core/transformer/transformer_layer.py`).
#[test]
fn a_norm_inside_a_projection_is_not_computed_again() {
    let step = |software: &str, more: &[(&str, &str)]| {
        let set = [("software", software), ("accelerator", "H100-SXM"), ("seq_length", "4096")];
        exact_step_seconds(&planned(&[&set, more].concat())).get()
    };
    let layernorm = [("recompute_granularity", "selective"), ("recompute_modules", "layernorm")];
    let [te, local] = ["megatron_core_te", "megatron_core_local"];
    assert!((step(te, &layernorm) / step(te, &[]) - 1.0).abs() < 1e-12);
    assert!(step(local, &layernorm) > step(local, &[]));
}

/// Megatron's optimizer states that stay on the host are updated there, at the rate of the host's memory: half of them
/// take half as long as all.
#[test]
fn states_on_the_host_are_updated_by_the_host() {
    let on_host = |fraction: &str| {
        let set = [
            ("seq_length", "4096"),
            ("optimizer_cpu_offload", "true"),
            ("use_precision_aware_optimizer", "true"),
            ("use_distributed_optimizer", "true"),
            ("optimizer_offload_fraction", fraction),
        ];
        planned(&set)
    };
    let [none, half, all] = ["0", "0.5", "1"].map(|fraction| time(&on_host(fraction)).step.get());
    assert!((none + all - 2.0 * half).abs() < 1e-6 * all, "{none} {half} {all}");
    let plan = on_host("1");
    // Four fp32 passes over the gradient, three states read and written, weights written: 16 + 24 + 4 + 2 bytes per
    // parameter.
    let shard = parameters(&plan).ranks[0].count.get() as f64 / plan.layout().dense_shards() as f64;
    let host = shard * 46.0 / 25e9;
    assert!(all > host && all - none > 0.9 * host, "{none} {all} {host}");
}

/// Groups of replicas scatter and gather independently, and a rank's gradient shard is reduced over them: two groups of
/// one node each take the same time as one node, plus the reduction of an eighth of the gradients over two ranks on two
/// nodes.
#[test]
fn groups_of_replicas_take_their_own_time_and_that_of_a_sum_over_them() {
    let data = |nodes: &str, per_node: &str, more: &[(&str, &str)]| {
        let set = [
            ("seq_length", "4096"),
            ("num_nodes", nodes),
            ("gpus_per_node", per_node),
            ("accelerator", "H100-SXM"),
            ("global_batch_size", "16"),
        ];
        let plan = planned(&[&set, more].concat());
        let time = time(&plan);
        let found = time.breakdown.children().iter().find(|part| part.label() == "data");
        found.expect("data").value().get()
    };
    let sharded = ("use_distributed_optimizer", "true");
    let groups = ("num_distributed_optimizer_instances", "2");
    // The time of each further layer, to exclude start-up latencies.
    let each = |nodes: &str, per_node: &str, more: &[(&str, &str)]| {
        let (many, few) =
            (data(nodes, per_node, more), data(nodes, per_node, &[more, &[("num_layers", "16")]].concat()));
        (many - few) / 16.0
    };
    let (two, one) = (each("2", "8", &[sharded, groups]), each("1", "8", &[sharded]));
    let sum = each("2", "1", &[]) / 8.0;
    assert!((two - one - sum).abs() < 1e-9 * two, "{two} {one} {sum}");
    // FSDP gathers weights for every micro-batch, which is faster within a node.
    let fsdp = [("zero_stage", "3"), ("seq_length", "128"), ("global_batch_size", "256")];
    let (whole, hybrid) = (data("2", "8", &fsdp), data("2", "8", &[&fsdp[..], &[groups]].concat()));
    assert!(hybrid < whole, "{hybrid} {whole}");
}

/// An RMSNorm in plain PyTorch passes its input through memory for every operation: Liger's single kernel saves these
/// additional reads and writes.
#[test]
fn norms_in_pieces_move_more_than_one_kernel() {
    let with = |more: &[(&str, &str)]| {
        let mut set = vec![
            ("software", "hf_transformers"),
            ("accelerator", "A100-SXM-80GB"),
            ("seq_length", "4096"),
            ("max_position_embeddings", "4096"),
            ("position_embedding_type", "rope"),
            ("disable_bias_linear", "true"),
            ("attn_implementation", "flash_attention_2"),
            ("zero_stage", "2"),
        ];
        set.extend_from_slice(more);
        planned(&set)
    };
    let part = |of: &Plan| {
        let of = time(of);
        let compute = &of.breakdown.children()[0];
        let found = compute.children().iter().find(|part| part.label() == "memory-bound kernels");
        found.expect("the part").value().get()
    };
    let [pieces, kernel] = [&[][..], &[("liger_parts", "norms")]].map(|more| part(&with(more)));
    // Two norms per layer and one after the last: 36 + 92 bytes per element in 8 + 16 kernels, versus 4 + 8 in 1 + 2
    // kernels.
    let moved = 65.0 * 4096.0 * 4096.0 * (36.0 + 92.0 - 4.0 - 8.0);
    let accelerator = with(&[]).cluster().accelerator.clone();
    let set = calibration(&accelerator);
    let more = moved / (accelerator.memory_bandwidth.get() * set.memory) + 65.0 * 21.0 * set.launch.get();
    println!("{pieces} {kernel} {more}");
    assert!(((pieces - kernel) / more - 1.0).abs() < 1e-6, "{pieces} {kernel}");
}
