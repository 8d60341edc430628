//! Peak memory compared with measurements, family by family.

use super::formula::evaluate_real;
use shardscope::estimate::{Memory, memory, memory_totals};
use shardscope::explain::Breakdown;
use shardscope::launch::plan_from_flags;
use shardscope::plan::Plan;
use shardscope::units::{Bytes, Quantity};

/// The four measured rows in the analysis tool's issue: tensor, pipeline, micro-batch, GiB
/// (`torch.cuda.max_memory_allocated`, 8 H800).
const SEED_ROWS: [(u64, u64, u64, f64); 4] =
    [(1, 1, 2, 69.1), (2, 1, 4, 55.7), (1, 2, 2, 49.8), (8, 1, 4, 28.8)];

fn seed_plan(tensor: u64, pipeline: u64, micro: u64) -> Plan {
    let flags = format!(
        "--tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline} --num-layers 32 \
         --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --max-position-embeddings 2048 \
         --micro-batch-size {micro} --global-batch-size 2048 --use-flash-attn --use-distributed-optimizer \
         --swiglu --bf16 --vocab-size 50257"
    );
    plan_from_flags(&flags, 8, 8, "H800-SXM").expect("a plan")
}

fn peak_gib(memory: &Memory) -> f64 {
    memory.worst.peak_allocated.in_gib()
}

#[test]
fn the_seeds_measured_rows() {
    for (tensor, pipeline, micro, measured) in SEED_ROWS {
        let memory = memory(&seed_plan(tensor, pipeline, micro));
        let error = peak_gib(&memory) / measured - 1.0;
        println!(
            "tp{tensor} pp{pipeline} b{micro}: {:.3} GiB, measured {measured}: {:+.2} % at {} ({:?})",
            peak_gib(&memory),
            error * 100.0,
            memory.worst.at,
            memory.ranks.iter().map(|rank| rank.totals.peak_allocated.in_gib()).collect::<Vec<_>>()
        );
        assert!(error.abs() < 0.004, "tp{tensor} pp{pipeline} b{micro}: {error}");
    }
}

#[test]
fn totals_and_trees_tell_the_same() {
    for (tensor, pipeline, micro, _) in SEED_ROWS {
        let plan = seed_plan(tensor, pipeline, micro);
        let memory = memory(&plan);
        let totals = memory_totals(&plan);
        for (rank, totals) in memory.ranks.iter().zip(&totals) {
            assert_eq!(rank.totals, *totals);
            assert_eq!(rank.breakdown.value(), totals.peak_reserved);
            let allocated = rank.breakdown.child("peak_allocated").expect("a node");
            assert_eq!(allocated.value(), totals.peak_allocated);
            assert_eq!(allocated.child("activations").expect("a node").value(), totals.activations);
            assert_eq!(allocated.child("temporaries").expect("a node").value(), totals.temporaries);
        }
    }
}

/// The formula of every explained leaf gives its value, and few leaves have no explanation.
fn explained(node: &Breakdown<Bytes>, seen: &mut [usize; 2]) {
    if let Some(why) = node.why() {
        let value =
            |name: &str| why.symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.value);
        let worked_out = evaluate_real(why.formula.expression, &value);
        let bytes = (node.value().number()) / node.multiplicity() as f64;
        assert!((worked_out - bytes).abs() <= 1.0, "{}: {worked_out} is not {bytes}", node.label());
        seen[0] += 1;
    } else if node.children().is_empty() {
        seen[1] += 1;
    }
    for child in node.children() {
        explained(child, seen);
    }
}

#[test]
fn every_leaf_explains_itself() {
    let mut seen = [0, 0];
    for (tensor, pipeline, micro, _) in SEED_ROWS {
        for rank in memory(&seed_plan(tensor, pipeline, micro)).ranks {
            explained(&rank.breakdown, &mut seen);
        }
    }
    assert!(seen[0] > 200 && seen[1] < 10, "{seen:?}");
}

/// DualPipe (DeepSeek-V3, section 3.2.1): rank r holds stage r and stage p - 1 - r, two copies of the model in each
/// pipeline; figures for the entire model are counted once.
#[test]
fn dualpipe_holds_two_copies() {
    use shardscope::estimate::{flops, parameters};
    const FLAGS: &str = "--num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 \
        --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 16 --bf16 --vocab-size 50257 \
        --pipeline-model-parallel-size 4 --untie-embeddings-and-output-weights";
    let of = |more: &str| plan_from_flags(&format!("{FLAGS} {more}"), 4, 8, "H100-SXM").expect("a plan");
    let (one, two) = (of(""), of("--pipeline-schedule dualpipe"));
    let (whole, ranks) = (parameters(&one), parameters(&two).ranks);
    assert_eq!(parameters(&two).total, whole.total);
    assert_eq!(flops(&two).hardware, flops(&one).hardware);
    for (rank, both) in ranks.iter().enumerate() {
        let expected = whole.ranks[rank].count.get() + whole.ranks[3 - rank].count.get();
        assert_eq!(both.count.get(), expected, "rank {rank}");
    }
    // p + 1 micro-batches in flight on every rank, each with one stage's activations (table 2 in the report).
    let kept =
        |plan: &Plan| memory(plan).ranks.iter().map(|rank| rank.totals.activations).collect::<Vec<_>>();
    let (single, mirrored) = (kept(&one), kept(&two));
    assert_eq!(mirrored[1].get(), single[2].get() / 2 * 5, "{single:?} {mirrored:?}");
    assert_eq!(mirrored[0], mirrored[3], "what is held is the same seen from both ends");
}

/// `torch.distributed.pipelining` (`stage.py:_PipelineStageBase`): each of m micro-batches has a buffer for its input
/// and for the gradient of its output, its input keeps its gradient until the next step, and the last stage collects
/// its outputs.
#[test]
fn torchs_pipelines_hold_buffers_for_every_micro_batch_and_all_outputs() {
    const MICRO_BATCHES: u64 = 8;
    const STREAM: u64 = 2 * 1024 * 512 * 2;
    const LOGITS: u64 = 2 * 1024 * 32_000 * 2;
    let plan = |software: &str| {
        let settings = [
            ("software", software),
            ("accelerator", "H100-SXM"),
            ("world_size", "2"),
            ("pipeline_model_parallel_size", "2"),
            ("num_layers", "4"),
            ("hidden_size", "512"),
            ("num_attention_heads", "8"),
            ("seq_length", "1024"),
            ("padded_vocab_size", "32000"),
            ("swiglu", "true"),
            ("micro_batch_size", "2"),
            ("num_micro_batches", "8"),
            ("bf16", "true"),
            ("optimizer", "adam"),
        ];
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let resolution = shardscope::launch::resolve(&[], &settings);
        resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
    };
    let terms = |memory: &Memory, rank: usize| -> Vec<(String, u64)> {
        let allocated = memory.ranks[rank].breakdown.child("peak_allocated").expect("a node");
        let temporaries = allocated.child("temporaries").expect("a node").children();
        let piped = ["buffers of", "gradients of inputs", "outputs of", "gradient sent", "logits"];
        temporaries
            .iter()
            .flat_map(|child| std::iter::once(child).chain(child.children()))
            .filter(|child| piped.iter().any(|name| child.label().starts_with(name)))
            .map(|child| (child.label().to_owned(), child.value().get()))
            .collect()
    };
    let named = |terms: &[(&str, u64)]| -> Vec<(String, u64)> {
        terms.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
    };
    let memory = memory(&plan("torchtitan"));
    // Two micro-batches are in flight on the first stage, which only receives gradients.
    assert_eq!(terms(&memory, 0), named(&[("buffers of gradients received", MICRO_BATCHES * STREAM)]));
    // One on the last stage: its input is kept for backward, those of the seven others wait. The logits are among the
    // outputs.
    let last = [
        ("buffers of inputs received", (MICRO_BATCHES - 1) * STREAM),
        ("gradients of inputs received", (MICRO_BATCHES - 1) * STREAM),
        ("outputs of all micro-batches", MICRO_BATCHES * LOGITS),
    ];
    assert_eq!(terms(&memory, 1), named(&last));
    // Between steps no micro-batch is in flight.
    let states = |rank: usize| {
        let totals = memory.ranks[rank].totals;
        totals.parameters + totals.optimizer
    };
    let between = memory.ranks[1].totals.between_steps;
    assert!(between >= states(1) + Bytes::new(2 * MICRO_BATCHES * STREAM + MICRO_BATCHES * LOGITS));
}

/// A torchtitan plan on `gpus` accelerators: the layers of `tests/record/selective_checkpoint.py`, in 16 bits.
fn titan(gpus: &str, more: &[(&str, &str)]) -> Plan {
    let common = [
        ("software", "torchtitan"),
        ("accelerator", "H100-SXM"),
        ("world_size", gpus),
        ("gpus_per_node", gpus),
        ("hidden_size", "64"),
        ("ffn_hidden_size", "224"),
        ("num_attention_heads", "4"),
        ("group_query_attention", "true"),
        ("num_query_groups", "2"),
        ("seq_length", "32"),
        ("swiglu", "true"),
        ("normalization", "RMSNorm"),
        ("position_embedding_type", "rope"),
        ("add_bias_linear", "false"),
        ("untie_embeddings_and_output_weights", "true"),
        ("hidden_dropout", "0"),
        ("attention_dropout", "0"),
        ("micro_batch_size", "2"),
        ("num_micro_batches", "1"),
        ("recompute_granularity", "selective"),
        ("attention_kernel", "flash"),
        ("bf16", "true"),
        ("optimizer", "adam"),
    ];
    let settings: Vec<(String, String)> =
        common.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let resolution = shardscope::launch::resolve(&[], &settings);
    resolution.plan.unwrap_or_else(|| panic!("{:?}", resolution.diagnostics))
}

/// Recorded from torch: a compiled layer does not keep the MLP's output, which no backward reads; in eager mode the
/// checkpoint keeps it together with every second product.
#[test]
fn a_compiled_layer_keeps_what_torch_keeps_of_it() {
    const RECORDED: &str = include_str!("../data/activations/selective_checkpoint.tsv");
    for (mode, compiled) in [("eager", "false"), ("compiled", "true")] {
        let kept: Vec<u64> = RECORDED
            .lines()
            .filter_map(|line| line.strip_prefix(mode))
            .map(|line| line.rsplit('\t').next().and_then(|last| last.parse().ok()).expect("a count"))
            .collect();
        assert!(kept.len() >= 6, "{mode}: {kept:?}");
        // Only the statistics stay in fp32; they are the smallest of all tensors.
        let statistics = *kept.iter().min().expect("tensors");
        let bytes = 2 * kept.iter().sum::<u64>() + 2 * statistics;
        let with = |layers: &str| {
            let plan = titan(
                "1",
                &[("num_layers", layers), ("compiled_layers", compiled), ("padded_vocab_size", "512")],
            );
            memory(&plan).ranks[0].chunks[0].kept.get()
        };
        assert_eq!(with("2") - with("1"), bytes, "{mode}");
    }
}

/// FSDP2 (`_fsdp_param_group.py`, `_fsdp_collectives.py`): at the loss only the last layer is gathered and none has a
/// gradient; the memory blocks of the previous step's sharded gradients belong to the reduction stream.
#[test]
fn at_the_loss_fsdp_holds_one_layer_and_the_blocks_of_gradients_to_come() {
    const LAYER: u64 = 64 * (64 + 32 + 32 + 64) + 3 * 64 * 224 + 2 * 64;
    const ENDS: u64 = 2 * 32_768 * 64 + 64;
    let more = [("num_layers", "4"), ("zero_stage", "3"), ("padded_vocab_size", "32768")];
    let memory = memory(&titan("8", &more));
    let rank = &memory.ranks[0];
    assert_eq!(rank.within, Some("output layer and loss"), "{} {:?}", rank.at, rank.within);
    let allocated = rank.breakdown.child("peak_allocated").expect("a node");
    let temporaries = allocated.child("temporaries").expect("a node");
    let bytes = |label: &str| temporaries.child(label).map(|child| child.value().get());
    assert_eq!(bytes("gathered weights of the layer"), Some(2 * LAYER));
    assert_eq!(bytes("gathered weights outside of layers"), Some(2 * ENDS));
    assert_eq!(bytes("gathered weights of two layers"), None);
    assert_eq!([bytes("gradients of a layer"), bytes("gradients being reduced")], [None, None]);
    let framework = rank.breakdown.child("framework").expect("a node");
    let blocks = framework.child("blocks of gradients to come").expect("a node");
    assert_eq!(blocks.value() + rank.totals.gradients, Bytes::new((4 * (4 * LAYER + ENDS)).div_ceil(8)));
}
