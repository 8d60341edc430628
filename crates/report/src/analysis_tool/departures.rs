//! Where the analysis tool of 2023 departs from what Megatron-LM actually does, numbered; found by running it on 28
//! configurations and comparing its output with Megatron-LM's own objects.

use std::sync::OnceLock;

use shardscope_source::LaterText;

/// One departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Its number, 1 to 25.
    pub number: u8,
    /// What the tool does, what is right, and how far apart they are.
    pub what: &'static str,
}

macro_rules! departures {
    ($(departure($number:literal, $what:literal $(,)?)),* $(,)?) => {
        /// One line each. A program with the feature `tables-later` knows none until it is given the table.
        // Concatenated at compile time, so that a program without the table contains no trace of it.
        static TABLE: LaterText = LaterText::new(
            "departures",
            if cfg!(feature = "tables-later") { None } else { Some(concat!($($number, "\t", $what, "\n"),*)) },
        );
    };
}

/// The tables of this crate.
pub fn tables() -> impl Iterator<Item = &'static LaterText> {
    [&TABLE].into_iter()
}

/// All departures, in order of number.
pub fn departures() -> &'static [Departure] {
    // Parsed once; a table that arrives later must be provided before the first call.
    static ALL: OnceLock<Vec<Departure>> = OnceLock::new();
    let departure = |line: &'static str| {
        let (number, what) = line.split_once('\t')?;
        Some(Departure { number: number.parse().ok()?, what })
    };
    ALL.get_or_init(|| TABLE.text().lines().filter_map(departure).collect())
}

departures![
    departure(
        1,
        "the QKV bias is counted as h values instead of 3h, and the final norm (2h) is left out: 2h(n+1) \
         parameters too few in the whole model",
    ),
    departure(
        2,
        "biases are not divided by the tensor parallel size: 2f instead of 2f/t for the first MLP projection",
    ),
    departure(
        3,
        "both embedding tables are charged to every stage; only the first holds the position table, and middle \
         stages hold neither",
    ),
    departure(4, "the position table is sized by the sequence length instead of --max-position-embeddings"),
    departure(5, "layers that do not divide by the stages are dropped (and the listing then crashes)"),
    departure(6, "the MLP width is always two thirds of 4h, whatever --ffn-hidden-size says"),
    departure(
        7,
        "biases, tied embeddings, learned positions and LayerNorm are always assumed, and no grouped queries",
    ),
    departure(
        8,
        "kept activations are multiplied by p on every stage; stage r holds min(m, p - r) micro-batches",
    ),
    departure(
        9,
        "logits are counted only without a pipeline; the last stage of a pipeline holds them as well",
    ),
    departure(
        10,
        "the loss takes 5 (bf16) or 2 logits' sizes in the peak and 4.5 in the whole model, on no line of its own; \
         the code of 2023 holds 16-bit logits, an fp32 copy and a shifted copy, and keeps the fp32 softmax",
    ),
    departure(11, "dropout masks are half an element: one byte is right for 2-byte types only"),
    departure(12, "the lines of a layer add to 10.5 sbh + 4 sbf while its total uses 10"),
    departure(13, "in the tensor-parallel table the parents and several leaves are not divided by t"),
    departure(14, "the norm's size is h + b instead of h + h, and the QKV bias has shape h"),
    departure(
        15,
        "fragmentation, the CUDA context, NCCL's buffers and fp16's fp32 gradient copy are left out; GB means 2^30 bytes",
    ),
    departure(
        16,
        "four pipeline messages per GPU and micro-batch everywhere, both ends counted: 2p/(p-1) times the real \
         2(p-1)m messages of a pipeline",
    ),
    departure(
        17,
        "data-parallel operations and bytes printed for the cluster are those of one GPU, then added to cluster-wide figures",
    ),
    departure(18, "the parameter all-gather is counted with 4 bytes in bf16; weights travel in 2"),
    departure(
        19,
        "the embedding's forward all-reduce, the output layer's backward one and the loss's three small ones are missing",
    ),
    departure(20, "the all-reduce of tied embeddings between the first and the last stage is missing"),
    departure(21, "volumes are message sizes; a ring all-reduce sends 2(t-1)/t of them per GPU"),
    departure(
        22,
        "flags it does not know are dropped without a word, --sequence-parallel and --recompute-* among them",
    ),
    departure(23, "--nproc-per-node is read with underscores only; the dashed spelling counts as one GPU"),
    departure(
        24,
        "--use-flash-attn, --use-distributed-optimizer, --swiglu and --global-batch-size must be given",
    ),
    departure(
        25,
        "micro-batches are rounded down and the rest of the batch is lost; t p above the GPUs divides by zero",
    ),
];
