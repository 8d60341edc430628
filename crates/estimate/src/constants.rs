//! Every constant of the estimates by name, for readers who do not read the code: name, value, unit, meaning, source.
//! The values are those that the estimates use; the page itself never calls this.

use super::compute::{
    CAST_BYTES, Calibration, FULL_HEAD_WIDTH, HEADS_AND_WINDOWS, HOPPER, NETWORK_EXCHANGE, Share,
};
use super::constant::Constant;
use super::memory::{framework, workspaces};
use super::time::constants as time;
use super::traffic::constants as traffic;

const FOUND: &str = "fitted on the development half of the published runs, pooled per chip; the table below shows which rows depend on it";
const PRODUCTS: &str = "fitted on the development half of the published runs, pooled per chip; the table below shows which rows depend on it; B200: SimuMax's large products under load";
const ASSUMED: &str = "assumed; no published run constrains it";
const NCCL: &str = "NCCL all-reduce bus bandwidth as measured on A100, H200 and B200 (ml-engineering, network chapter; SimuMax); elsewhere without a measurement of its own";
const EXCHANGE: &str = "NCCL all-to-alls of 256 MiB: 224 GB/s on A100, 351 on H100, 613 on B200 over eight GPUs, 0.84 to 0.88 of a ring's \
(ai-dynamo/aiconfigurator, systems/data/*/comm/nccl); elsewhere assumed";
const SMALL: &str = "NCCL small messages, nccl-tests";
const ATTENTION: &str = "SimuMax's tables of fused attention over 4 to 128 heads (A100); NVIDIA's tables of cuDNN over 2,048 to 131,072 \
tokens (B200, GB200 and GB300: NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training, the middle of cuDNN 9.10 and 9.19); elsewhere \
without a measurement of its own";
const FOURTH: &str = "FlashAttention-4 on B200 over 8,192 tokens: 0.70 of the peak forward and 0.60 backward, the last query block aside \
(Dao-AILab/flash-attention pull request 2280), where cuDNN reaches 0.69 and 0.57; elsewhere assumed as FlashAttention-3";
const LOGS: &str =
    "BigScience's tuning logs alone: heads 108 and 150 wide against 104 to 224 on A100; assumed elsewhere";

/// The constants of one generation of accelerators.
#[must_use]
pub fn of_generation(set: &Calibration) -> Vec<Constant> {
    // Destructured so that a new field cannot be forgotten here.
    let Calibration {
        generation,
        matmul,
        eager,
        wave,
        unaligned,
        grouped,
        memory,
        launch,
        attention_forward,
        attention_backward,
        attention_triton,
        attention_pytorch,
        attention_fourth,
        attention_tail_rows,
        fast_link,
        exchange,
        fast_start,
        network,
        network_start,
        network_hop,
        user_buffer_overlap,
        contention,
        straggling,
        iteration,
    } = *set;
    let micro = |time: shardscope_units::Seconds| time.get() * 1e6;
    let shares = || Share::ALL.into_iter().chain(Share::FIXED);
    let taken_over = |name: &str| shares().any(|share| share.name() == name && share.is_assumed(generation));
    let new = |figure: (&'static str, f64, &'static str), meaning, source| {
        // Nothing is assumed for features that a part lacks, such as fp8 products on an A100.
        Constant::new(figure, meaning, source).assumed(figure.1 > 0.0 && taken_over(figure.0))
    };
    vec![
        new(
            ("matmul.half", matmul.half, ""),
            "share of the dense peak that a large bf16 or fp16 GEMM reaches in training, power and clock limits included",
            PRODUCTS,
        ),
        new(
            ("matmul.fp8", matmul.fp8, ""),
            "the same for fp8 inputs, of the fp8 peak; 0 where there is none",
            FOUND,
        ),
        new(
            ("matmul.fp4", matmul.fp4, ""),
            "the same for nvfp4 inputs, of the fp4 peak; 0 where there is none",
            FOUND,
        ),
        new(
            ("eager", eager, ""),
            "share of that rate in plain PyTorch linear layers, without Transformer Engine",
            FOUND,
        ),
        new(
            ("wave", micro(wave), "µs"),
            "fixed cost of one wave of output tiles: prologue, epilogue, the slowest tile",
            FOUND,
        ),
        new(
            ("unaligned", unaligned, ""),
            "share of the rate left when rows of an operand do not start at multiples of 16 bytes",
            LOGS,
        ),
        new(("grouped", grouped, ""), "share of the rate left in the experts' grouped GEMMs", FOUND),
        new(
            ("memory", memory, ""),
            "share of the memory bandwidth that streaming kernels reach in training; on H100 fitted jointly with matmul and wave",
            FOUND,
        ),
        new(
            ("launch", micro(launch), "µs"),
            "kernel launch overhead that the device sees even when the host runs ahead",
            ASSUMED,
        ),
        new(
            ("attention_forward", attention_forward, ""),
            "share of the dense peak that a long fused attention reaches forward, on the causal half",
            ATTENTION,
        ),
        new(("attention_backward", attention_backward, ""), "the same backward", ATTENTION),
        new(
            ("attention_triton", attention_triton, ""),
            "share of either that FlashAttention-1 in Triton reaches (PyTorch trainers of 2023)",
            FOUND,
        ),
        new(
            ("attention_pytorch", attention_pytorch, ""),
            "share of either that FlashAttention-2 reaches through PyTorch (torchtitan)",
            FOUND,
        ),
        new(
            ("attention_fourth", attention_fourth, ""),
            "what FlashAttention-4 reaches as a multiple of either",
            FOURTH,
        ),
        new(
            ("attention_tail_rows", attention_tail_rows, "rows"),
            "rows of the query block left to run alone at the end of a fused attention",
            ATTENTION,
        ),
        new(
            ("fast_link", fast_link, ""),
            "share of the fast link's bandwidth that ring collectives reach",
            NCCL,
        ),
        new(
            ("exchange", exchange, ""),
            "share of a ring's bandwidth that all-to-alls reach inside a fast-link domain",
            EXCHANGE,
        ),
        new(
            ("fast_start", micro(fast_start), "µs"),
            "start-up latency of a collective inside a fast-link domain",
            SMALL,
        ),
        new(
            ("network", network, ""),
            "share of the network's bandwidth that collectives of large messages reach",
            FOUND,
        ),
        new(
            ("network_start", micro(network_start), "µs"),
            "start-up latency of a message that crosses the network",
            ASSUMED,
        ),
        new(
            ("network_hop", micro(network_hop), "µs"),
            "what every further rank of a ring over the network adds to a collective's start-up latency",
            ASSUMED,
        ),
        new(
            ("user_buffer_overlap", user_buffer_overlap, ""),
            "share of tensor-parallel traffic that --tp-comm-overlap hides",
            FOUND,
        ),
        new(
            ("contention", contention, ""),
            "what overlapped communication takes from the compute beside it, as a share of its own time",
            FOUND,
        ),
        new(
            ("straggling", straggling, ""),
            "what every doubling of the number of fast-link domains adds to the step: ranks wait for the slowest among more",
            FOUND,
        ),
        new(
            ("iteration", iteration.get() * 1e3, "ms"),
            "once per step: data loading, logging, host synchronisation",
            ASSUMED,
        ),
    ]
}

/// Rates of isolated kernels on Hopper, for software whose kernels are counted one by one: modules of transformers.
fn single_kernels() -> Vec<Constant> {
    let measured = "measured one kernel at a time on an H200 (tests/data/measured/kernels.tsv); no step had a part in it";
    // Destructured so that a new field cannot be forgotten here.
    let super::compute::SingleKernels {
        half,
        half_alone,
        fp8,
        fp32,
        wave,
        grouped,
        plain,
        row_sums,
        thin,
        addressed,
        sdpa,
        flash,
        masked,
        efficient,
        optimizer,
    } = HOPPER;
    let of = |name, value, unit, meaning| Constant::new((name, value, unit), meaning, measured);
    vec![
        of(
            "half",
            half,
            "",
            "share of the dense peak that large bf16 GEMMs reach among the other kernels of a step",
        ),
        of(
            "half_alone",
            half_alone,
            "",
            "the same one after another for seconds on end, under the power limit",
        ),
        of("fp8", fp8, "", "the same of the fp8 peak"),
        of("fp32", fp32, "", "the same of the fp32 peak, outside of tensor cores"),
        of("wave", wave.get() * 1e6, "µs", "fixed cost of one wave of output tiles"),
        of("grouped", grouped, "", "share of a GEMM's rate that grouped GEMMs of experts reach"),
        of(
            "plain",
            plain,
            "",
            "share of the memory's bandwidth that copies, sums and products of tensors reach",
        ),
        of(
            "row_sums",
            row_sums,
            "",
            "the same of kernels that cast, sum over rows or read one operand for many elements: norms, losses, masks",
        ),
        of("thin, reading", thin[0], "", "the same of GEMMs that the memory bounds, if they mostly read"),
        of("thin, writing", thin[1], "", "the same if they mostly write"),
        of(
            "addressed",
            addressed / 1e9,
            "/ns",
            "elements of one multiprocessor in kernels that compute each element's address: strided, gathered, spread or of two types",
        ),
        of(
            "sdpa",
            sdpa,
            "",
            "share of attention_forward and attention_backward that PyTorch's sdpa reaches, by cuDNN since 2.10",
        ),
        of("flash", flash, "", "the same of FlashAttention-2"),
        of(
            "masked",
            masked,
            "",
            "share of sdpa's rate that a kernel with a mask reaches, over all pairs of tokens",
        ),
        of(
            "efficient",
            efficient,
            "",
            "the same of PyTorch's memory-efficient kernel, which heads wider than 256 take; measured with heads of 64 and 128",
        ),
        of(
            "optimizer, 16 bits",
            optimizer[0],
            "",
            "share of the memory's bandwidth of norm, clipping and fused AdamW on 16-bit parameters",
        ),
        of("optimizer, fp32", optimizer[1], "", "the same on fp32 parameters"),
    ]
}

/// The constants that hold for every accelerator, by topic.
#[must_use]
pub fn general() -> Vec<(&'static str, Vec<Constant>)> {
    let attention = "Dao 2023 (FlashAttention-2), figures 4 to 6";
    let cast = "transformer_engine/common/transpose/cast_transpose.cu";
    let mut products = vec![
        Constant::new(
            ("FULL_HEAD_WIDTH", FULL_HEAD_WIDTH, "columns"),
            "width of a head from which on fused attention fills the tensor cores",
            attention,
        ),
        Constant::new(
            ("CAST_BYTES", CAST_BYTES, "B"),
            "moved per element of a GEMM's input when it is cast to low precision: read in 16 bits, written as it is and transposed",
            cast,
        ),
    ];
    for of in HEADS_AND_WINDOWS {
        let [forward, backward] = of.fringe;
        let new = |value, unit, meaning, source| {
            Constant::new((of.name, value, unit), meaning, source).assumed(of.assumed)
        };
        products.extend([
            new(
                of.narrow,
                "",
                "power of the width, below that, by which narrower heads are slower",
                of.narrow_source,
            ),
            new(forward, "keys", "that a query costs beside those of its window, forward", of.fringe_source),
            new(backward, "keys", "the same backward", of.fringe_source),
        ]);
    }
    let exchanges = vec![Constant::new(
        ("NETWORK_EXCHANGE", NETWORK_EXCHANGE, ""),
        "share of a network card's bandwidth that all-to-alls reach",
        "DeepEP, docs/legacy.md: normal kernels on H800 with 400 Gb/s cards, 50 to 58 GB/s over four and eight nodes, of which three \
quarters and seven eighths cross the card (tests/legacy/test_internode.py): 43 to 45 of 50",
    )];
    vec![
        ("Arithmetic", products),
        ("Kernels counted one by one", single_kernels()),
        ("Exchanges", exchanges),
        ("Once per step", time()),
        ("Gradient buffers", traffic()),
        ("Memory beside the tensors", framework()),
        ("Workspaces", workspaces()),
    ]
}
