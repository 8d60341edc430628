//! The 25 departures of the 2023 analysis tool: each with the tool's number, ours, and the reason for the difference.

use shardscope::bash::Environment;
use shardscope::launch::{Request, plan_from_flags, read};
use shardscope::plan::Plan;
use shardscope::report::analysis_tool::{
    Figure, MEASURED, ToolFigures, ToolRow, compare, departures, tool_figures,
};
use shardscope::report::{Report, report};
use shardscope::session::measured_plan;
use shardscope::source::Source;
use shardscope::units::Bytes;

/// The configuration whose output was published with the tool (32 layers; its script says 24).
const PRINTED: &str = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
    --max-position-embeddings 2048 --micro-batch-size 4 --global-batch-size 512 --vocab-size 50257 --bf16 --swiglu \
    --use-flash-attn --use-distributed-optimizer";
const CUT: &str = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2";

struct Case {
    plan: Plan,
    tool: ToolFigures,
    ours: Report,
}

impl Case {
    #[track_caller]
    fn new(flags: &str, gpus: u64) -> Self {
        let plan = plan_from_flags(flags, gpus, 8, "H800-SXM").expect("a plan");
        Self { tool: tool_figures(&plan), ours: report(&plan), plan }
    }

    fn printed() -> Self {
        Self::new(&format!("{PRINTED} {CUT}"), 16)
    }

    fn stage_count(&self, stage: usize) -> u64 {
        self.ours.parameters.ranks[stage].count.get()
    }

    #[track_caller]
    fn row(&self, section: &str, label: &str) -> ToolRow {
        let rows = compare(&self.plan, &self.ours);
        let row = rows.iter().find(|row| row.section.starts_with(section) && row.label.starts_with(label));
        *row.expect("a line of the comparison")
    }

    /// Checks both figures of a line, and that its difference is attributed to `departure`.
    #[track_caller]
    fn check(&self, section: &str, label: &str, departure: u8, tool: Figure, ours: Figure) {
        let row = self.row(section, label);
        assert_eq!((row.tool, row.ours), (tool, ours), "{section}: {label}");
        assert!(row.reasons().any(|reason| reason.number == departure), "{section}: {label}: {departure}");
    }
}

fn gib(gib: u64) -> Figure {
    Figure::Bytes(Bytes::gib(gib))
}

#[test]
fn every_departure_is_reported() {
    let numbers: Vec<u8> = departures().iter().map(|departure| departure.number).collect();
    assert_eq!(numbers, (1..=25).collect::<Vec<u8>>());
}

#[test]
fn where_the_tool_is_right_the_figures_are_one() {
    let case = Case::printed();
    for (section, label) in [
        ("Full model", "parameters' bytes"),
        ("Full model", "gradients"),
        ("Full model", "optimizer"),
        ("Memory on each GPU", "parameters' bytes"),
        ("Memory on each GPU", "gradients"),
        ("Memory on each GPU", "optimizer"),
        ("Data parallel", "gradients' reduction of one GPU"),
    ] {
        let row = case.row(section, label);
        assert!(row.agrees(), "{section}: {label}: {:?} {:?}", row.tool, row.ours);
        assert_eq!(row.reasons().count(), 0);
    }
    let dense = case.ours.memory.layers.children.iter().find(|node| node.times == 32).expect("layers");
    // 10·s·b·h + 4·s·b·f elements; ours also has the norms' statistics and the attention's log-sum-exp.
    assert_eq!(case.tool.layer_activations, Bytes::mib(1320));
    assert!(dense.full.activation_bytes.less(case.tool.layer_activations) < Bytes::mib(2));
}

#[test]
fn parameters_1_to_7() {
    let case = Case::printed();
    // 1: 2h(n + 1) missing in the full model.
    let (tool, ours) = (case.tool.full.count.get(), case.ours.parameters.total.get());
    assert_eq!((tool, ours, ours - tool), (6_642_245_632, 6_642_515_968, 2 * 4096 * 33));
    // 2: h - 3h/t + 2f(1 - 1/t) per layer too many on a rank: 8,832 in each of 16 layers.
    let tool = case.tool.per_gpu.count.get();
    assert_eq!((tool, case.stage_count(0)), (1_718_898_688, 1_718_757_376));
    assert_eq!(tool - case.stage_count(0), 16 * 8_832);
    // 3: the last stage has no position table, but has the final norm.
    assert_eq!(case.stage_count(1), 1_710_376_960);
    assert_eq!(tool - case.stage_count(1), 16 * 8_832 + 2048 * 4096 - 2 * 4096);
    // 4: rows of the position table.
    let long =
        Case::new(&PRINTED.replace("--max-position-embeddings 2048", "--max-position-embeddings 4096"), 8);
    let (tool, ours) = (long.tool.full.count.get(), long.ours.parameters.total.get());
    assert_eq!(ours - tool, 2 * 4096 * 33 + 2048 * 4096);
    // 5: 30 layers over 4 stages: the tool would drop two; we reject the plan.
    let flags = PRINTED.replace("--num-layers 32", "--num-layers 30");
    let refused = plan_from_flags(&format!("{flags} --pipeline-model-parallel-size 4"), 8, 8, "H800-SXM");
    let refused = refused.expect_err("30 layers over 4 stages");
    assert!(
        refused.iter().any(|reason| reason.message.contains("30") && reason.hint.is_some()),
        "{refused:?}"
    );
    // 6: the MLP width given in the script.
    let wide = Case::new(&format!("{PRINTED} --ffn-hidden-size 11008"), 8);
    assert_eq!(wide.plan.model().ffn_hidden_size, 11_008);
    assert_eq!(wide.tool.full.count, case_at_one().tool.full.count);
    // 7: the model called "Llama2 7B" is a GPT; LLaMA-2 7B itself has 6,738,415,616.
    let llama = Case::new(
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 --seq-length 2048 \
         --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 8 --padded-vocab-size 32000 --bf16 \
         --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear \
         --untie-embeddings-and-output-weights --use-flash-attn --use-distributed-optimizer",
        8,
    );
    assert_eq!(llama.ours.parameters.total.get(), 6_738_415_616);
    assert_eq!(case_at_one().tool.full.count.get(), 6_641_721_344);
}

fn case_at_one() -> Case {
    Case::new(PRINTED, 8)
}

#[test]
fn memory_8_to_15() {
    // 8: two micro-batches in four stages hold two, not four.
    let flags = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --micro-batch-size 2";
    let few = Case::new(
        &PRINTED
            .replace("--micro-batch-size 4", flags)
            .replace("--global-batch-size 512", "--global-batch-size 4"),
        8,
    );
    let first = few.ours.memory.ranks[0].totals.activations;
    let ratio = few.tool.per_gpu.activations.in_gib() / first.in_gib();
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    let stages = few.ours.memory.ranks.iter().map(|rank| rank.chunks[0].in_flight);
    assert_eq!(stages.collect::<Vec<_>>(), [2, 2, 2, 1]);
    // 9: the last stage of the printed plan holds its logits and peaks at the loss.
    let case = Case::printed();
    assert_eq!(case.ours.memory.ranks[1].at, "loss");
    let (tool, whole) = (case.tool.per_gpu, case_at_one().tool.per_gpu);
    assert_eq!(tool.total, tool.parameters + tool.gradients + tool.optimizer + tool.activations);
    // 10: without a pipeline, five times s·b·V/t elements are missing from the tool's lines.
    let lines = whole.parameters + whole.gradients + whole.optimizer + whole.activations;
    assert_eq!(whole.total.less(lines).get(), 5 * 2048 * 4 * 50_304 * 2);
    // 11: a one-byte mask; in fp32 the tool counts two bytes.
    let fp32 = Case::new(&PRINTED.replace("--bf16", ""), 8);
    let ours = layer_bytes(&fp32.ours);
    let masks = 2 * 2048 * 4 * 4096;
    assert!(fp32.tool.layer_activations.get() >= ours - Bytes::mib(2).get() + masks, "{ours}");
    // 12, 13, 14: parents are the sums of their children in all of our trees, unsharded and sharded.
    let node = case.ours.memory.layers.children.iter().find(|node| node.times == 32).expect("layers");
    let children: u64 =
        node.children.iter().map(|child| child.full.activation_bytes.get() * child.times).sum();
    let sharded: u64 =
        node.children.iter().map(|child| child.sharded.activation_bytes.get() * child.times).sum();
    assert_eq!((node.full.activation_bytes.get(), node.sharded.activation_bytes.get()), (children, sharded));
    assert!(node.sharded.activation_bytes < case.tool.layer_activations, "the tool shows 1320 MB for both");
    // 15: what the device reports in addition to torch's count.
    let worst = case.ours.memory.worst;
    assert!(worst.peak_reserved.less(worst.peak_allocated) > Bytes::gib(1));
}

fn layer_bytes(report: &Report) -> u64 {
    let node = report.memory.layers.children.iter().find(|node| node.times == 32).expect("layers");
    node.full.activation_bytes.get()
}

#[test]
fn communication_16_to_21() {
    let case = Case::printed();
    // 16: 4 m per GPU on 16 GPUs, while 8 pipelines pass 2(p-1)m messages of 64 MiB each.
    case.check("Pipeline", "messages", 16, Figure::Count(2048), Figure::Count(512));
    case.check("Pipeline", "bytes", 16, gib(128), gib(32));
    // 17: two operations per GPU; 16 GPUs take part in two each.
    case.check("Data", "operations", 17, Figure::Count(2), Figure::Count(32));
    // 18: weights are sent in two bytes.
    let parameters = case.stage_count(0);
    case.check(
        "Data",
        "weights' all-gather",
        18,
        Figure::Bytes(Bytes::new(4 * case.tool.per_gpu.count.get())),
        Figure::Bytes(Bytes::new(2 * parameters)),
    );
    // 19: 64 large all-reduces per micro-batch; 65 at either end, and three small ones after the last.
    case.check("Tensor", "messages", 19, Figure::Count(32_768), Figure::Count((65 + 68) * 32 * 8));
    // 20: the tied embedding's gradient, V/t·h in fp32, once a step.
    let tied =
        case.ours.traffic.dimension(shardscope::estimate::traffic::Parallelism::Embedding).expect("tied");
    assert_eq!((tied.per_gpu().calls, tied.per_gpu().bytes), (1, Bytes::new(25_216 * 4096 * 4)));
    case.check("All communication", "messages", 20, Figure::Count(34_818), Figure::Count(34_632));
    // 21: a ring sends 2(t-1)/t of an all-reduced message: 1 for two ranks, 7/4 for eight.
    let eight = Case::new(&format!("{PRINTED} --tensor-model-parallel-size 8"), 8);
    for (case, times, over) in [(&case, 1, 1), (&eight, 7, 4)] {
        let tensor =
            case.ours.traffic.dimension(shardscope::estimate::traffic::Parallelism::Tensor).expect("tensor");
        assert_eq!(tensor.cluster.wire.get() * over, tensor.cluster.bytes.get() * times);
    }
}

fn resolved(text: &str) -> Option<Plan> {
    let source = Source::new(text);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] }).plan
}

#[test]
fn interface_22_to_25() {
    // 22: flags ignored by the tool change our figures, but not its own.
    let plain = Case::printed();
    let sharded = Case::new(&format!("{PRINTED} {CUT} --sequence-parallel"), 16);
    assert_eq!(plain.tool, sharded.tool);
    assert!(sharded.ours.memory.worst.peak_allocated < plain.ours.memory.worst.peak_allocated);
    // 23: the dashed spelling of torchrun.
    let launch =
        |option: &str| resolved(&format!("torchrun --nnodes 2 {option} 8 pretrain_gpt.py {PRINTED} {CUT}"));
    let dashed = launch("--nproc-per-node").expect("a plan");
    assert_eq!(dashed.layout().world_size, 16);
    assert_eq!(Some(dashed), launch("--nproc_per_node"));
    // 24: none of the tool's required flags is required.
    let bare = PRINTED
        .replace("--use-flash-attn", "")
        .replace("--use-distributed-optimizer", "")
        .replace("--swiglu", "")
        .replace("--global-batch-size 512", "");
    assert_eq!(Case::new(&bare, 8).plan.recipe().num_micro_batches, 1);
    // 25: a batch that does not divide, and more parallelism than GPUs, are rejected with values that would work.
    let odd = PRINTED.replace("--global-batch-size 512", "--global-batch-size 100");
    for (flags, gpus) in
        [(format!("{odd} {CUT}"), 16), (format!("{PRINTED} --tensor-model-parallel-size 16"), 8)]
    {
        let refused = plan_from_flags(&flags, gpus, 8, "H800-SXM").expect_err("no plan");
        assert!(refused.iter().any(|reason| reason.hint.is_some()), "{refused:?}");
    }
}

/// The published measurements are met within this relative error.
const TOLERANCE: f64 = 0.01;

#[test]
fn the_four_published_peaks_are_met() {
    let mut lines = String::new();
    for row in &MEASURED {
        let plan = measured_plan(row).expect("a plan");
        let ours = report(&plan).memory.worst.peak_allocated.in_gib();
        let error = ours / row.measured - 1.0;
        lines += &format!(
            "measured {} tool {} ours {ours:.2} ({:+.2} %)\n",
            row.measured,
            row.published,
            error * 100.0
        );
        assert!(error.abs() <= TOLERANCE, "{lines}");
    }
    println!("{lines}");
}
