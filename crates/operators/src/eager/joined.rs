//! Adapters of a projection to queries, keys and values at once, as litgpt builds them: one A for the parts that are adapted,
//! a B for each, and the result spread into a tensor of the projection's width where a part has none.

use super::linear::QKV;
use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::LinearModule;

const JOINED: &str = "litgpt/lora.py:LoRAQKVLinear.forward";
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

/// What is kept of one to three adapted parts.
static MIDDLES: [Formula; 3] = [
    Formula::new("n·r·Ba", "The adapter's A output, input of the B of one part.", JOINED),
    Formula::new("2·n·r·Ba", "The adapter's A output, input of the B of each of two parts.", JOINED),
    Formula::new("3·n·r·Ba", "The adapter's A output, input of the B of each part.", JOINED),
];
static INPUT: Formula =
    Formula::new("n·h·Ba", "The projection's input, after dropout where there is any.", JOINED);
static MASK: Formula = Formula::new("n·h", "The dropout mask of the adapters' input, one byte each.", JOINED);

/// Results of the adapted parts before they are spread, and where they go; by whether queries are adapted, and how many of
/// keys and values.
static SPREAD: [[[Formula; 2]; 3]; 2] = [
    [spread("0", "0"), spread("n·K·Ba", "8·K"), spread("2·n·K·Ba", "16·K")],
    [spread("n·A·Ba", "8·A"), spread("n·(A + K)·Ba", "8·(A + K)"), spread("0", "0")],
];

const fn spread(result: &'static str, place: &'static str) -> [Formula; 2] {
    [
        Formula::new(result, "What the adapted parts make, before it is spread over all.", JOINED),
        Formula::new(place, "The index of each of its columns, int64.", JOINED),
    ]
}

/// Runs the adapters of `adapted` parts on an input of the name `shared` that requires a gradient if `needed`.
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
    tape.keep(lora.dropout, dropped, &wide, x.adapter_width, &INPUT);
    tape.keep(!lora.dropout, shared, &wide, x.adapter_width, &INPUT);
    tape.keep(lora.dropout && needed, mask, &wide, 1, &MASK);
    let count = parts as u64;
    tape.keep(true, "LoRA B inputs", &[count, x.n, x.lora_rank], x.adapter_width, middle);
    if parts < MIDDLES.len() {
        let columns = u64::from(query) * x.a * x.d + others as u64 * x.k * x.d;
        let [result, place] = &SPREAD[usize::from(query)][others];
        tape.keep(true, "LoRA results", &[x.n, columns], x.adapter_width, result);
        tape.keep(true, "places of LoRA results", &[columns], INDEX, place);
    }
}
