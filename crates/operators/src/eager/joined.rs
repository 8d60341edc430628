//! Adapters on a fused QKV projection, as litgpt builds them: one A for the adapted parts, a B for each, and the
//! result scattered into a tensor of the projection's width if a part has none.

use super::flow::is_adapted;
use super::linear::QKV;
use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::LinearModule;

const JOINED: &str = "litgpt/lora.py:LoRAQKVLinear.forward";
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

/// What is saved for one to three adapted parts.
static MIDDLES: [Formula; 3] = [
    Formula::new("n·r·Ba", "The adapter's A output, input of the B of one part.", JOINED),
    Formula::new("2·n·r·Ba", "The adapter's A output, input of the B of each of two parts.", JOINED),
    Formula::new("3·n·r·Ba", "The adapter's A output, input of the B of each part.", JOINED),
];
static INPUT: Formula =
    Formula::new("n·h·Ba", "The projection's input, after dropout where there is any.", JOINED);
static MASK: Formula = Formula::new("n·h", "The dropout mask of the adapters' input, one byte each.", JOINED);

/// Results of the adapted parts before they are scattered, and their destinations; by whether queries are adapted,
/// and how many of keys and values.
static SPREAD: [[[Formula; 2]; 3]; 2] = [
    [spread("0", "0"), spread("n·K·Ba", "8·K"), spread("2·n·K·Ba", "16·K")],
    [spread("n·A·Ba", "8·A"), spread("n·(A + K)·Ba", "8·(A + K)"), spread("0", "0")],
];

const CHUNKS: &str =
    "litgpt/model.py:GPT.forward, lm_head_chunk_size; aten/src/ATen/autocast_mode.cpp:cached_cast";
const CASTS: &str = "aten/src/ATen/autocast_mode.cpp: inputs and matrices are cast to 16 bits";
/// The same under autocast, which casts the input for A and the matrices for each product.
static CAST_INPUT: Formula = Formula::new("n·h·Bc", "The adapters' input, cast for them alone.", CASTS);
static CAST_MIDDLES: [Formula; 3] = [
    Formula::new("n·r·Bc", "The adapter's A output in 16 bits.", CASTS),
    Formula::new("2·n·r·Bc", "The adapter's A output for two parts, in 16 bits.", CASTS),
    Formula::new("3·n·r·Bc", "The adapter's A output for each part, in 16 bits.", CASTS),
];
static CAST_A: [Formula; 3] = [
    Formula::new("r·h·Bc", "A of one part in 16 bits.", CASTS),
    Formula::new("2·r·h·Bc", "A of two parts in 16 bits.", CASTS),
    Formula::new("3·r·h·Bc", "A of each part in 16 bits.", CASTS),
];
/// B of the adapted parts, and their outputs; by whether queries are adapted, and how many of keys and values.
static CAST_B: [[[Formula; 2]; 3]; 2] = [
    [cast("0", "0"), cast("r·K·Bc", "n·K·Bc"), cast("2·r·K·Bc", "2·n·K·Bc")],
    [cast("r·A·Bc", "n·A·Bc"), cast("r·(A + K)·Bc", "n·(A + K)·Bc"), cast("r·(A + 2·K)·Bc", "0")],
];

const fn cast(matrices: &'static str, result: &'static str) -> [Formula; 2] {
    [
        Formula::new(matrices, "B of the adapted parts in 16 bits.", CASTS),
        Formula::new(
            result,
            "The adapted parts' output in 16 bits, before it is scattered into the joined projection's columns.",
            JOINED,
        ),
    ]
}

const fn spread(result: &'static str, place: &'static str) -> [Formula; 2] {
    [
        Formula::new(
            result,
            "The adapted parts' output, before it is scattered into the joined projection's columns.",
            JOINED,
        ),
        Formula::new(place, "The index of each of its columns, int64.", JOINED),
    ]
}

/// Runs the adapters of `adapted` parts on an input named `shared` that requires a gradient if `needed`.
pub(super) fn adapters(tape: &mut Tape<'_, '_>, shared: &'static str, needed: bool) {
    let x = tape.x;
    let Some(lora) = x.recipe().tuning.lora else { return };
    let has = |module| lora.modules.has(module);
    let query = has(LinearModule::Query);
    let others = [LinearModule::Key, LinearModule::Value].into_iter().filter(|module| has(*module)).count();
    let parts = usize::from(query) + others;
    let Some(middle) = parts.checked_sub(1).and_then(|index| MIDDLES.get(index)) else { return };
    let wide = [x.n, x.h];
    let [dropped, mask] = QKV.adapter_names();
    let casts = x.recipe().autocasts();
    // Columns of the adapted parts.
    let columns = u64::from(query) * x.a * x.d + others as u64 * x.k * x.d;
    let count = parts as u64;
    let (width, input, middle, [matrices, cast_result]) = if casts {
        (x.compute_width, &CAST_INPUT, &CAST_MIDDLES[parts - 1], &CAST_B[usize::from(query)][others])
    } else {
        (x.adapter_width, &INPUT, middle, &CAST_B[usize::from(query)][others])
    };
    let own = lora.dropout || casts;
    tape.keep(own, dropped, &wide, width, input);
    tape.keep(!own, shared, &wide, width, input);
    tape.keep(lora.dropout && needed, mask, &wide, 1, &MASK);
    tape.keep(casts && needed, "LoRA A in 16 bits", &[count, x.lora_rank, x.h], width, &CAST_A[parts - 1]);
    tape.keep(casts, "LoRA B in 16 bits", &[x.lora_rank, columns], width, matrices);
    tape.keep(true, "LoRA B inputs", &[count, x.n, x.lora_rank], width, middle);
    if parts < MIDDLES.len() {
        let [result, place] = &SPREAD[usize::from(query)][others];
        let result = if casts { cast_result } else { result };
        tape.keep(true, "LoRA results", &[x.n, columns], width, result);
        tape.keep(true, "indices of LoRA columns", &[columns], INDEX, place);
    }
}

static CAST_AGAIN: Formula = Formula::new(
    "(chunks - 1)·h·V·Bc",
    "The output layer's frozen weight in 16 bits, once more for each further chunk of tokens.",
    CHUNKS,
);
static CAST_ADAPTER_AGAIN: Formula = Formula::new(
    "(chunks - 1)·r·(h + V)·Bc",
    "The matrices of its adapter in 16 bits, once more for each further chunk of tokens.",
    CHUNKS,
);

/// With adapters litgpt runs the output layer over 128 tokens of each sequence at a time, and autocast, which caches
/// only the casts of trained weights, casts its frozen weight and the transposes of its adapter's matrices for each
/// chunk.
pub(super) fn cast_for_each_chunk(tape: &mut Tape<'_, '_>, trains: bool) {
    let x = tape.x;
    let further = x.loss_chunks().saturating_sub(1);
    let casts = x.casts_weights() && !trains && x.recipe().tuning.lora.is_some() && further > 0;
    tape.keep(
        casts,
        "further lm_head weights in 16 bits",
        &[further, x.h, x.v],
        x.compute_width,
        &CAST_AGAIN,
    );
    let adapted = casts && is_adapted(x, LinearModule::OutputLayer);
    let shape = [further, x.lora_rank, x.h + x.v];
    tape.keep(
        adapted,
        "further lm_head LoRA matrices in 16 bits",
        &shape,
        x.compute_width,
        &CAST_ADAPTER_AGAIN,
    );
}
