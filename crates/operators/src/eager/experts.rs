//! A mixture of experts: softmax and choice, the experts' products over sorted tokens, the weighted sum.

use super::flow::{Flow, is_adapted};
use super::linear::{Input, ROUTER, SHARED_DOWN, SHARED_GATE, SHARED_UP};
use super::norm;
use super::tape::Tape;
use shardscope_explain::Formula;
use shardscope_plan::{ExpertKernel, LinearModule};

const ROUTING: &str = "transformers/models/mixtral/modeling_mixtral.py:MixtralTopKRouter";
const CLAMPED: &str = "transformers/models/gpt_oss/modeling_gpt_oss.py:GptOssExperts, GptOssTopKRouter";
const EXPERTS: &str = "transformers/integrations/moe.py";
const SHARED_EXPERT: &str = "transformers/models/qwen3_next/modeling_qwen3_next.py:Qwen3NextSparseMoeBlock";
const PARAMETERS: &str = "peft/tuners/lora/layer.py:ParamWrapper";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;
/// Name of the tensor that router and experts read.
const NORMED: &str = "router input";

static INPUT: Formula = Formula::new("n·h·Bc", "The router's input, the norm's output.", ROUTING);
static SOFTMAX: Formula = Formula::new("4·n·E", "Softmax over all experts, fp32.", ROUTING);
static CHOICE: Formula = Formula::new(
    "4·n·topk",
    "Softmax over the chosen experts, fp32.",
    "transformers/models/granitemoe/modeling_granitemoe.py:GraniteMoeTopKGating",
);
static TYPED_CHOICE: Formula = Formula::new("n·topk·Bc", "Softmax over the chosen experts.", CLAMPED);
static CLAMPED_STEPS: Formula = Formula::new(
    "4·T·fm·Bx",
    "The clamped gate, its sigmoid, their product, and the other half plus one.",
    CLAMPED,
);
static BIASED: Formula = Formula::new("8·T", "The expert of each copy, whose bias is added, int64.", EXPERTS);
static TOPK: Formula = Formula::new("8·n·topk", "The chosen experts of each token, int64.", ROUTING);
static SUM: Formula = Formula::new("4·n", "The sum of the chosen probabilities, fp32.", ROUTING);
static CHOSEN: Formula = Formula::new("4·n·topk", "The chosen probabilities, fp32.", ROUTING);
static GATE_UP: Formula = Formula::new("2·T·fm·Bx", "Both halves of the experts' first product.", EXPERTS);
static ACTIVATED: Formula = Formula::new("T·fm·Bx", "The activated half.", EXPERTS);
static WEIGHTS: Formula = Formula::new("T·Bp", "The routing weight of every copy of a token.", EXPERTS);
static OUTPUT: Formula =
    Formula::new("T·h·Bx", "The experts' output, for the routing weights' gradient.", EXPERTS);
static GATHERED: Formula = Formula::new("T·h·Bx", "The tokens in the order of their experts.", EXPERTS);
static PRODUCT: Formula = Formula::new("T·fm·Bx", "The input of the experts' second product.", EXPERTS);
static ORDER: Formula =
    Formula::new("24·T", "Where each copy comes from and goes to, three indices of int64.", EXPERTS);
static OFFSETS: Formula = Formula::new("4·E", "Where each expert's tokens end, int32.", EXPERTS);
static FOUND: Formula = Formula::new("16·T", "Which tokens and ranks each expert has, int64.", EXPERTS);
static SUMMED: Formula =
    Formula::new("T·h·B", "What the loop adds to the output, expert by expert.", EXPERTS);
static FIRST_COPIES: Formula =
    Formula::new("2·T·fm·h·Bx", "A copy of the first weight for every copy of a token.", EXPERTS);
static SECOND_COPIES: Formula =
    Formula::new("T·fm·h·Bx", "A copy of the second weight for every copy of a token.", EXPERTS);
static SHARED: Formula =
    Formula::new("n·fs·Bc", "One of the shared experts' gate, activated gate and other half.", SHARED_EXPERT);
static SHARED_OUTPUT: Formula =
    Formula::new("n·h·Bc", "The shared experts' output, for their gate's gradient.", SHARED_EXPERT);
static SWITCH: Formula = Formula::new("n·Bc", "The sigmoid that switches the shared experts.", SHARED_EXPERT);
static CASTS: Formula = Formula::new("6·E·fm·h", "The experts' weights in 16 bits.", EXPERTS);
static MERGED_ROUTER: Formula =
    Formula::new("E·h·Bc", "The router's weight with its adapter added.", PARAMETERS);
static ROUTER_CASTS: Formula = Formula::new("r·(E + h)·Bc", "The router's adapter in 16 bits.", PARAMETERS);
static MERGED_FIRST: Formula =
    Formula::new("2·E·fm·h·B", "The experts' first weights with their adapters added.", PARAMETERS);
static MERGED_SECOND: Formula =
    Formula::new("E·fm·h·B", "The experts' second weights with their adapters added.", PARAMETERS);
static FIRST_CASTS: Formula = Formula::new(
    "2·E·r·(2·fm + h)·B",
    "The first weights' adapters, of twice the rank, in 16 bits.",
    PARAMETERS,
);
static SECOND_CASTS: Formula =
    Formula::new("E·r·(fm + h)·B", "The second weights' adapters in 16 bits.", PARAMETERS);

pub(super) fn experts(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let flow = Flow::of(x);
    let adapted = is_adapted(x, LinearModule::Experts);
    if !(flow.norm2 || adapted) {
        return;
    }
    if adapted {
        merged(tape);
    } else {
        ROUTER.run(
            tape,
            Input { shared: Some(NORMED), needed: flow.norm2, cast: false },
            [x.h, x.moe.experts],
        );
    }
    routing(tape);
    products(tape, flow.norm2, x.trains || adapted);
    if x.moe.shared > 0 {
        shared(tape, flow.norm2);
    }
    norm::post(tape, true);
}

/// The shared experts, an MLP of their own; with a gate of one column their output waits for the gate's gradient.
fn shared(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let (width, inner) = (x.compute_width, [x.n, x.moe.shared]);
    let input = Input { shared: Some(NORMED), needed, cast: false };
    let gate = SHARED_GATE.run(tape, input, [x.h, x.moe.shared]);
    let up = SHARED_UP.run(tape, input, [x.h, x.moe.shared]);
    tape.keep(gate, "shared gate", &inner, width, &SHARED);
    tape.keep(up && !x.recipe().transformers.liger_gates, "shared activated gate", &inner, width, &SHARED);
    tape.keep(gate, "shared up", &inner, width, &SHARED);
    let down = Input { shared: None, needed: gate || up, cast: true };
    let result = SHARED_DOWN.run(tape, down, [x.moe.shared, x.h]);
    if x.model().experts.as_ref().is_some_and(|experts| experts.shared_expert_gate) {
        tape.keep(result, "shared output", &[x.n, x.h], width, &SHARED_OUTPUT);
        tape.keep(result, "shared expert's gate", &[x.n], width, &SWITCH);
    }
}

/// PEFT adapts router and experts as parameters: the sum of weight and adapter is made, and kept.
fn merged(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (moe, rank) = (x.moe, x.lora_rank);
    let width = x.compute_width;
    tape.keep(true, NORMED, &[x.n, x.h], width, &INPUT);
    tape.keep(true, "router with adapter", &[moe.experts, x.h], width, &MERGED_ROUTER);
    tape.keep(x.casts_weights(), "router LoRA in 16 bits", &[rank, moe.experts + x.h], width, &ROUTER_CASTS);
    let whole = [moe.experts, moe.ffn, x.h];
    tape.keep(true, "first weights with adapters", &[2, moe.experts, moe.ffn, x.h], x.width, &MERGED_FIRST);
    tape.keep(true, "second weights with adapters", &whole, x.width, &MERGED_SECOND);
    let cast = x.adapter_width != x.width;
    let shape = [moe.experts, 2 * rank, 2 * moe.ffn + x.h];
    tape.keep(cast, "first weights' LoRA in 16 bits", &shape, x.width, &FIRST_CASTS);
    let shape = [moe.experts, rank, moe.ffn + x.h];
    tape.keep(cast, "second weights' LoRA in 16 bits", &shape, x.width, &SECOND_CASTS);
}

fn routing(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let chosen = [x.n, x.moe.topk];
    if x.model().arrangement.chosen_routing {
        // gpt-oss stays in its own type.
        let clamped = x.model().arrangement.clamped_experts;
        let (width, formula) = if clamped { (x.compute_width, &TYPED_CHOICE) } else { (FLOAT, &CHOICE) };
        tape.keep(true, "router softmax", &chosen, width, formula);
        tape.keep(true, "chosen experts", &chosen, INDEX, &TOPK);
        return;
    }
    tape.keep(true, "router softmax", &[x.n, x.moe.experts], FLOAT, &SOFTMAX);
    tape.keep(true, "chosen experts", &chosen, INDEX, &TOPK);
    let summed = x.model().arrangement.normalized_routing;
    tape.keep(summed, "sum of the chosen", &[x.n], FLOAT, &SUM);
    tape.keep(summed, "chosen probabilities", &chosen, FLOAT, &CHOSEN);
}

/// The experts themselves; `needed` says whether their input requires a gradient, `trains` whether they do.
fn products(tape: &mut Tape<'_, '_>, needed: bool, trains: bool) {
    let x = tape.x;
    let (moe, width) = (x.moe, x.expert_width());
    let kernel = x.recipe().transformers.experts;
    let (wide, inner) = ([moe.sent, x.h], [moe.sent, moe.ffn]);
    tape.keep(true, "experts' gate and up", &[2, moe.sent, moe.ffn], width, &GATE_UP);
    let clamped = x.model().arrangement.clamped_experts;
    if clamped {
        tape.keep(true, "steps of the experts' activation", &[4, moe.sent, moe.ffn], width, &CLAMPED_STEPS);
    } else {
        tape.keep(true, "experts' activated gate", &inner, width, &ACTIVATED);
    }
    tape.keep(true, "routing weights", &[moe.sent], moe.probability, &WEIGHTS);
    tape.keep(true, "experts' output", &wide, width, &OUTPUT);
    tape.keep(trains, "experts' input", &wide, width, &GATHERED);
    tape.keep(trains, "experts' second input", &inner, width, &PRODUCT);
    match kernel {
        ExpertKernel::Grouped => {
            tape.keep(true, "order of tokens", &[3, moe.sent], INDEX, &ORDER);
            tape.keep(clamped && trains, "experts of tokens", &[moe.sent], INDEX, &BIASED);
            tape.keep(true, "ends of experts", &[moe.experts], FLOAT, &OFFSETS);
        }
        ExpertKernel::Batched => {
            let shape = [2, moe.sent, moe.ffn, x.h];
            tape.keep(needed, "copies of first weights", &shape, width, &FIRST_COPIES);
            tape.keep(true, "copies of second weights", &[moe.sent, moe.ffn, x.h], width, &SECOND_COPIES);
        }
        ExpertKernel::Loop => {
            tape.keep(true, "tokens of each expert", &[2, moe.sent], INDEX, &FOUND);
            tape.keep(true, "added outputs", &wide, x.width, &SUMMED);
            let shape = [3, moe.experts, moe.ffn, x.h];
            tape.keep(x.casts_weights(), "experts' weights in 16 bits", &shape, 2, &CASTS);
        }
    }
}
