//! Experts as grouped products behind a fused exchange: NeMo Automodel's `GroupedExpertsDeepEP`, with DeepEP's exchange
//! and Transformer Engine's permutation (`tests/record/automodel_experts.py`).

use super::exchange::NORMED;
use super::tape::{Step, Tape};
use shardscope_explain::Formula;
use shardscope_plan::Router;

const GATE: &str = "nemo_automodel/components/moe/layers.py:Gate";
const EXPERTS: &str = "nemo_automodel/components/moe/experts.py:GroupedExpertsDeepEP";
const SPREAD: &str = "nemo_automodel/components/moe/megatron/fused_indices_converter.py:IndicesToMultihot";
const PERMUTE: &str = "transformer_engine/pytorch/permutation.py:_moe_permute_mask_map";
const EXCHANGE: &str = "deep_ep/buffers/legacy.py:Buffer.dispatch";
/// Bytes of an fp32 or int32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static INPUT: Formula = Formula::new("n·h·B", "The router's input, which shared experts read too.", GATE);
static WIDE_INPUT: Formula = Formula::new("4·n·h", "The router's input in fp32.", GATE);
static WIDE_WEIGHT: Formula = Formula::new("4·E·h", "The router's weight in fp32.", GATE);
static SCORES: Formula = Formula::new("4·n·E", "Each expert's score, fp32.", GATE);
static CHOICE: Formula = Formula::new("8·n·topk", "The chosen experts, int64.", GATE);
static SUM: Formula = Formula::new("4·n", "The sum of the chosen scores, fp32.", GATE);
static CHOSEN: Formula = Formula::new("4·n·topk", "The chosen scores, fp32.", GATE);
static BALANCE: Formula = Formula::new(
    "5·n + 4·E + 12",
    "For the balancing loss: the sum of all scores and a mask of each token, the load of each expert, two scalars.",
    GATE,
);
static SENT: Formula = Formula::new(
    "5·n·e",
    "To which ranks each token goes: a byte and an int32 for each rank, which the exchange's handle holds.",
    EXCHANGE,
);
static SOURCES: Formula =
    Formula::new("4·n·fan", "Where each received token came from, int32, in the same handle.", EXCHANGE);
static POSITIONS: Formula =
    Formula::new("4·n·fan·E/e", "Positions of each received token's probabilities, int32.", SPREAD);
static ROWS: Formula = Formula::new("4·n·fan·(2·E/e + 1)", "The permutation's map of rows, int32.", PERMUTE);
static OFFSETS: Formula = Formula::new("4·E/e", "Where each expert's tokens end, int32.", EXPERTS);
static TOKENS: Formula = Formula::new("T·h·B", "The tokens in the order of their experts.", EXPERTS);
static HALVES: Formula =
    Formula::new("2·T·fm·B", "The first product's output; the activation works out the rest again.", EXPERTS);
static PROBABILITIES: Formula = Formula::new(
    "4·T",
    "The routing probability of each copy, fp32, which the activation multiplies in.",
    EXPERTS,
);
static PRODUCT: Formula = Formula::new("T·fm·B", "The second product's input.", EXPERTS);

pub(super) fn experts(tape: &mut Tape<'_, '_>) {
    tape.step = Step::First;
    gate(tape);
    let x = tape.x;
    let (moe, width) = (x.moe, x.width);
    let ranks = x.plan.layout().expert.max(1);
    let (local, received) = (moe.experts / ranks, x.n * moe.fan);
    tape.keep(true, "destinations of tokens", &[x.n, ranks], FLOAT + BYTE, &SENT);
    tape.keep(true, "sources of received tokens", &[received], FLOAT, &SOURCES);
    tape.keep(true, "positions of probabilities", &[received, local], FLOAT, &POSITIONS);
    tape.keep(true, "rows of received tokens", &[received, 2 * local + 1], FLOAT, &ROWS);
    tape.keep(true, "ends of experts", &[local], FLOAT, &OFFSETS);
    tape.keep(true, "experts' input", &[moe.sent, x.h], width, &TOKENS);
    tape.step = Step::Core;
    tape.keep(true, "experts' gate and up", &[2, moe.sent, moe.ffn], width, &HALVES);
    tape.keep(true, "routing probabilities", &[moe.sent], FLOAT, &PROBABILITIES);
    tape.step = Step::Last;
    tape.keep(true, "experts' second input", &[moe.sent, moe.ffn], width, &PRODUCT);
    tape.step = Step::First;
}

/// A softmax in the router's dtype, or a sigmoid of a router in fp32; chosen scores are divided by their sum.
fn gate(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    if x.recipe().moe.balanced_gate {
        return;
    }
    let (moe, chosen) = (x.moe, [x.n, x.moe.topk]);
    tape.keep(true, NORMED, &[x.n, x.h], x.width, &INPUT);
    if x.model().arrangement.router == Router::Fp32Sigmoid {
        tape.keep(x.width < FLOAT, "router's input in fp32", &[x.n, x.h], FLOAT, &WIDE_INPUT);
        tape.keep(x.width < FLOAT, "router's weight in fp32", &[moe.experts, x.h], FLOAT, &WIDE_WEIGHT);
    }
    tape.keep(true, "router scores", &[x.n, moe.experts], FLOAT, &SCORES);
    tape.keep(true, "chosen experts", &chosen, INDEX, &CHOICE);
    if x.model().arrangement.normalized_routing {
        tape.keep(true, "sum of the chosen", &[x.n], FLOAT, &SUM);
        tape.keep(true, "chosen scores", &chosen, FLOAT, &CHOSEN);
    }
    if x.recipe().moe.load_balancing.has_loss() {
        let bytes = (FLOAT + BYTE) * x.n + FLOAT * moe.experts + INDEX + FLOAT;
        tape.keep(true, "balancing loss", &[bytes], BYTE, &BALANCE);
    }
}
