//! A mixture of experts: softmax and top-k, the experts' products over sorted tokens, the weighted sum.

use super::dispatched;
use super::exchange::{NORMED, dispatches};
use super::flow::{Flow, is_adapted};
use super::linear::{Input, ROUTER, SHARED_DOWN, SHARED_GATE, SHARED_GATE_UP, SHARED_SWITCH, SHARED_UP};
use super::norm;
use super::tape::Tape;
use crate::Symbols;
use shardscope_explain::Formula;
use shardscope_plan::{ExpertKernel, LinearModule, Router};

const ROUTING: &str = "transformers/models/mixtral/modeling_mixtral.py:MixtralTopKRouter";
const CLAMPED: &str = "transformers/models/gpt_oss/modeling_gpt_oss.py:GptOssExperts, GptOssTopKRouter";
const SIGMOID: &str = "transformers/models/deepseek_v3/modeling_deepseek_v3.py:DeepseekV3TopkRouter";
const DRAWS: &str = "transformers/models/phimoe/modeling_phimoe.py:sparsemixer";
const WEIGHING: &str = "transformers/models/llama4/modeling_llama4.py:Llama4TextMoe";
const NORMED_ROUTER: &str = "transformers/models/gemma4/modeling_gemma4.py:Gemma4TextRouter";
const EXPERTS: &str = "transformers/integrations/moe.py";
const SHARED_EXPERT: &str = "transformers/models/qwen3_next/modeling_qwen3_next.py:Qwen3NextSparseMoeBlock";
const PARAMETERS: &str = "peft/tuners/lora/layer.py:ParamWrapper";
/// Bytes of an fp32 number.
const FLOAT: u64 = 4;
/// Bytes of a torch bool.
const BYTE: u64 = 1;
/// Bytes of a torch index (int64).
const INDEX: u64 = 8;

static INPUT: Formula = Formula::new("n·h·Bc", "The router's input: the norm output.", ROUTING);
static SCALED_INPUT: Formula = Formula::new(
    "n·h·Br",
    "The normalised stream, for the gradient of the router's weight per channel.",
    NORMED_ROUTER,
);
static CHOSEN_SCALES: Formula = Formula::new("n·topk·B", "The weight of each chosen expert.", NORMED_ROUTER);
static SCALED_CHOICE: Formula = Formula::new(
    "4·n·topk",
    "The top-k probabilities summed to one, for the gradient of the weights per expert, fp32.",
    NORMED_ROUTER,
);
static SOFTMAX: Formula = Formula::new("4·n·E", "Softmax over all experts, fp32.", ROUTING);
static SCORES: Formula = Formula::new("n·E·Bp", "Each expert's score, a sigmoid.", SIGMOID);
static TYPED_SOFTMAX: Formula = Formula::new(
    "n·E·Bp",
    "Softmax over all experts, in the dtype of the router's product; in fp32 under autocast.",
    "transformers/models/mistral4/modeling_mistral4.py:Mistral4TopkRouter",
);
static CHOSEN_SCORES: Formula = Formula::new("n·topk·Bp", "The top-k scores.", SIGMOID);
static WIDE_INPUT: Formula = Formula::new("4·n·h", "The router's input in fp32.", SIGMOID);
static WIDE_WEIGHT: Formula = Formula::new("4·E·h", "The router's weight in fp32.", SIGMOID);
static CLAMPED_SUM: Formula = Formula::new(
    "4·n",
    "The same sum, clamped, fp32.",
    "transformers/models/ernie4_5_moe/modeling_ernie4_5_moe.py:Ernie4_5_MoeTopKRouter",
);
static DRAWN_SOFTMAX: Formula = Formula::new("2·n·E·Bp", "A masked softmax for each draw.", DRAWS);
static DRAWN_MASK: Formula = Formula::new("2·n·E", "Which experts are masked, one byte each.", DRAWS);
static DRAWN_CHOICE: Formula = Formula::new("16·n", "The two experts of each token, int64.", DRAWS);
static DRAWN: Formula = Formula::new("2·n·Bp", "Their probabilities.", DRAWS);
static WEIGHED_SCORES: Formula = Formula::new("E·n·Bc", "The scores, expert by expert.", WEIGHING);
static WEIGHED_TOKENS: Formula =
    Formula::new("E·n·h·B", "Every token for every expert, for the scores' gradient.", WEIGHING);
static WEIGHED_INPUT: Formula = Formula::new("E·n·h·Bc", "The same, times its score.", WEIGHING);
static WEIGHED_GATE_UP: Formula =
    Formula::new("2·E·n·fm·Bc", "Both halves of the experts' first GEMM's output.", WEIGHING);
static WEIGHED_INNER: Formula =
    Formula::new("E·n·fm·Bc", "The activated half, or the input of the second GEMM.", WEIGHING);
static MASKED: Formula = Formula::new(
    "n·E",
    "Which experts are in groups that are not chosen, one byte each.",
    "transformers/models/deepseek_v2/modeling_deepseek_v2.py:DeepseekV2TopkRouter",
);
static NARROW_INPUT: Formula = Formula::new("n·h·Bc", "The router's input, to fp32 and back.", SIGMOID);
static NARROW_WEIGHT: Formula = Formula::new("E·h·Bc", "The router's weight, to fp32 and back.", SIGMOID);
static CHOICE: Formula = Formula::new(
    "4·n·topk",
    "Softmax over the top-k experts, fp32.",
    "transformers/models/granitemoe/modeling_granitemoe.py:GraniteMoeTopKGating",
);
static TYPED_CHOICE: Formula = Formula::new("n·topk·Bc", "Softmax over the top-k experts.", CLAMPED);
static CLAMPED_STEPS: Formula = Formula::new(
    "4·T·fm·Bx",
    "The clamped gate, its sigmoid, their product, and the other half plus one.",
    CLAMPED,
);
static BIASED: Formula = Formula::new("8·T", "The expert of each copy, whose bias is added, int64.", EXPERTS);
static TOPK: Formula = Formula::new("8·n·topk", "The top-k experts of each token, int64.", ROUTING);
static SUM: Formula = Formula::new("4·n", "The sum of the top-k probabilities, fp32.", ROUTING);
static TYPED_SUM: Formula =
    Formula::new("n·Bp", "The sum of the top-k scores.", "transformers/models/lfm2_moe/modeling_lfm2_moe.py");
static CHOSEN: Formula = Formula::new("4·n·topk", "The top-k probabilities, fp32.", ROUTING);
static GATE_UP: Formula =
    Formula::new("g·T·fm·Bx", "The experts' first GEMM's output: both halves where it is gated.", EXPERTS);
static ACTIVATED: Formula = Formula::new("T·fm·Bx", "The activated half.", EXPERTS);
static WEIGHTS: Formula = Formula::new("T·Bp", "The routing weight of every copy of a token.", EXPERTS);
static OUTPUT: Formula =
    Formula::new("T·h·Bx", "The experts' output, for the routing weights' gradient.", EXPERTS);
static GATHERED: Formula = Formula::new("T·h·Bx", "The tokens in the order of their experts.", EXPERTS);
static PRODUCT: Formula = Formula::new("T·fm·Bx", "The input of the experts' second GEMM.", EXPERTS);
static ORDER: Formula =
    Formula::new("24·T", "Source and destination of each routed copy: three int64 indices.", EXPERTS);
static OFFSETS: Formula = Formula::new("4·E", "The end offset of each expert's tokens, int32.", EXPERTS);
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
    if dispatches(x) {
        dispatched::experts(tape);
        if x.moe.shared > 0 {
            shared(tape, true);
        }
        return;
    }
    let flow = Flow::new(x);
    let adapted = is_adapted(x, LinearModule::Experts);
    let router = x.model().arrangement.router;
    let routed = is_adapted(x, LinearModule::Router);
    if !(flow.norm2 || adapted || routed) {
        return;
    }
    if adapted {
        merged(tape);
    }
    if router == Router::Normed {
        normed_router(tape, flow.residual);
    } else if widens(x) {
        // A frozen 16-bit model under autocast computes its product in 16 bits, but still from copies.
        let again = x.recipe().autocasts() && router != Router::Fp32Held;
        let (width, input, weight) = if again {
            (x.compute_width, &NARROW_INPUT, &NARROW_WEIGHT)
        } else {
            (FLOAT, &WIDE_INPUT, &WIDE_WEIGHT)
        };
        let name = if x.width < FLOAT { "copy of the router's input" } else { NORMED };
        tape.keep(x.trains || routed, name, &[x.n, x.h], width, input);
        let copied = flow.norm2 && (router != Router::Fp32Held || routed);
        tape.keep(copied, "copy of the router's weight", &[x.moe.experts, x.h], width, weight);
        if routed {
            router_casts(tape);
        }
    } else if routed {
        merged_router(tape);
    } else {
        ROUTER.run(
            tape,
            Input { shared: Some(NORMED), needed: flow.norm2, cast: false },
            [x.h, x.moe.experts],
        );
    }
    if router == Router::Weighing {
        weighed(tape, flow.norm2);
    } else {
        routing(tape);
        products(tape, flow.norm2, x.trains || adapted);
    }
    if x.moe.shared > 0 {
        shared(tape, flow.norm2);
    }
    if x.model().arrangement.dense_beside_experts {
        norm::of_experts(tape);
    }
    norm::post(tape, true);
}

/// Gemma 4's router: a norm of the stream without weights, a product with a weight per channel, the linear layer.
fn normed_router(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    norm::of_router(tape, needed);
    tape.keep(x.trains, "router's normalised input", &[x.n, x.h], x.residual_width, &SCALED_INPUT);
    let input = Input { shared: None, needed: needed || x.trains, cast: false };
    ROUTER.run(tape, input, [x.h, x.moe.experts]);
    // A weight per expert for each of the chosen, and these before it.
    let chosen = [x.n, x.moe.topk];
    tape.keep(true, "scales of the chosen", &chosen, x.width, &CHOSEN_SCALES);
    tape.keep(x.trains, "normalised probabilities", &chosen, FLOAT, &SCALED_CHOICE);
}

/// The shared experts, a separate MLP; with a gate of one column their output waits for the gate's gradient.
fn shared(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let (width, inner) = (x.compute_width, [x.n, x.moe.shared]);
    let input = Input { shared: Some(NORMED), needed, cast: false };
    let gated = x.model().activation.is_gated();
    let fused = gated && x.model().arrangement.fused_gate_up;
    let (gate, up) = if fused {
        let both = SHARED_GATE_UP.run(tape, input, [x.h, 2 * x.moe.shared]);
        (both, both)
    } else {
        let gate = gated && SHARED_GATE.run(tape, input, [x.h, x.moe.shared]);
        (gate, SHARED_UP.run(tape, input, [x.h, x.moe.shared]))
    };
    tape.keep(gate, "shared gate", &inner, width, &SHARED);
    let unfused = !x.recipe().transformers.liger_gates;
    tape.keep(gated && up && unfused, "shared activated gate", &inner, width, &SHARED);
    // Without a gate the activation's input takes its place.
    tape.keep(if gated { gate } else { up }, "shared up", &inner, width, &SHARED);
    let down = Input { shared: None, needed: gate || up, cast: true };
    let result = SHARED_DOWN.run(tape, down, [x.moe.shared, x.h]);
    if x.model().experts.as_ref().is_some_and(|experts| experts.shared_expert_gate) {
        SHARED_SWITCH.run_bare(tape, input, [x.h, 1]);
        tape.keep(result, "shared output", &[x.n, x.h], width, &SHARED_OUTPUT);
        tape.keep(result, "shared expert's gate", &[x.n], width, &SWITCH);
    }
}

/// PEFT adapts the router as a parameter: the sum of weight and adapter is computed and saved.
fn merged_router(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (experts, width) = (x.moe.experts, x.compute_width);
    tape.keep(true, NORMED, &[x.n, x.h], width, &INPUT);
    tape.keep(true, "router with adapter", &[experts, x.h], width, &MERGED_ROUTER);
    router_casts(tape);
}

/// The router's adapter in the compute dtype, if autocast multiplies its matrices.
fn router_casts(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let cast = x.recipe().autocasts() && x.adapter_width > x.compute_width;
    let shape = [x.lora_rank, x.moe.experts + x.h];
    tape.keep(cast, "router LoRA in 16 bits", &shape, x.compute_width, &ROUTER_CASTS);
}

/// The same for the experts.
fn merged(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (moe, rank) = (x.moe, x.lora_rank);
    let whole = [moe.experts, moe.ffn, x.h];
    tape.keep(true, "first weights with adapters", &[2, moe.experts, moe.ffn, x.h], x.width, &MERGED_FIRST);
    tape.keep(true, "second weights with adapters", &whole, x.width, &MERGED_SECOND);
    let cast = x.adapter_width != x.width;
    let shape = [moe.experts, 2 * rank, 2 * moe.ffn + x.h];
    tape.keep(cast, "first weights' LoRA in 16 bits", &shape, x.width, &FIRST_CASTS);
    let shape = [moe.experts, rank, moe.ffn + x.h];
    tape.keep(cast, "second weights' LoRA in 16 bits", &shape, x.width, &SECOND_CASTS);
}

/// Whether the router's input is copied to fp32 because it is not fp32 already.
fn widens(x: &Symbols<'_>) -> bool {
    match x.model().arrangement.router {
        Router::Own
        | Router::Sigmoid
        | Router::Sampled
        | Router::Weighing
        | Router::Typed
        | Router::Normed => false,
        Router::Fp32Held => x.compute_width < FLOAT,
        Router::Fp32 | Router::Fp32Grouped | Router::Fp32Sigmoid => x.width < FLOAT,
    }
}

/// Every expert receives every token, multiplied by its score, which is zero for tokens that did not choose it.
fn weighed(tape: &mut Tape<'_, '_>, needed: bool) {
    let x = tape.x;
    let (moe, width) = (x.moe, x.compute_width);
    let inner = [moe.experts, x.n, moe.ffn];
    tape.keep(needed, "router softmax", &[x.n, moe.experts], FLOAT, &SOFTMAX);
    tape.keep(needed, "chosen experts", &[x.n, moe.topk], INDEX, &TOPK);
    tape.keep(needed, "scores by expert", &[moe.experts, x.n], width, &WEIGHED_SCORES);
    tape.keep(needed, "tokens for every expert", &[moe.experts, x.n, x.h], x.width, &WEIGHED_TOKENS);
    tape.keep(x.trains, "experts' input", &[moe.experts, x.n, x.h], width, &WEIGHED_INPUT);
    tape.keep(true, "experts' gate and up", &[2 * inner[0], inner[1], inner[2]], width, &WEIGHED_GATE_UP);
    tape.keep(true, "experts' activated gate", &inner, width, &WEIGHED_INNER);
    tape.keep(x.trains, "experts' second input", &inner, width, &WEIGHED_INNER);
    let weights = [3, moe.experts, moe.ffn, x.h];
    tape.keep(x.casts_weights(), "experts' weights in 16 bits", &weights, width, &CASTS);
}

/// What each of the two draws of an expert saves.
fn drawn(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    let (all, width) = ([2, x.n, x.moe.experts], x.moe.probability);
    tape.keep(true, "router softmax", &all, width, &DRAWN_SOFTMAX);
    tape.keep(true, "masked experts", &all, BYTE, &DRAWN_MASK);
    tape.keep(true, "chosen experts", &[2, x.n], INDEX, &DRAWN_CHOICE);
    tape.keep(true, "chosen probabilities", &[2, x.n], width, &DRAWN);
}

fn routing(tape: &mut Tape<'_, '_>) {
    let x = tape.x;
    if x.model().arrangement.router == Router::Sampled {
        return drawn(tape);
    }
    let chosen = [x.n, x.moe.topk];
    if x.model().arrangement.chosen_routing {
        // gpt-oss stays in its own dtype.
        let clamped = x.model().arrangement.clamped_experts;
        let (width, formula) = if clamped { (x.compute_width, &TYPED_CHOICE) } else { (FLOAT, &CHOICE) };
        tape.keep(true, "router softmax", &chosen, width, formula);
        tape.keep(true, "chosen experts", &chosen, INDEX, &TOPK);
        return;
    }
    // A sigmoid stays in the dtype of the router's product.
    let router = x.model().arrangement.router;
    let sigmoid = matches!(router, Router::Fp32Sigmoid | Router::Sigmoid);
    let product = if x.recipe().autocasts() { x.compute_width } else { x.moe.probability };
    let typed = router == Router::Typed;
    let (width, scores, values) = match () {
        () if sigmoid => (product, &SCORES, &CHOSEN_SCORES),
        () if typed => (x.moe.probability, &TYPED_SOFTMAX, &CHOSEN_SCORES),
        () => (FLOAT, &SOFTMAX, &CHOSEN),
    };
    tape.keep(true, "router softmax", &[x.n, x.moe.experts], width, scores);
    tape.keep(true, "chosen experts", &chosen, INDEX, &TOPK);
    let masked = router == Router::Fp32Grouped;
    tape.keep(masked, "experts of other groups", &[x.n, x.moe.experts], BYTE, &MASKED);
    let summed = x.model().arrangement.normalized_routing;
    let (sum, formula) =
        if typed || router == Router::Sigmoid { (x.moe.probability, &TYPED_SUM) } else { (FLOAT, &SUM) };
    tape.keep(summed, "sum of the chosen", &[x.n], sum, formula);
    tape.keep(summed, "chosen probabilities", &chosen, width, values);
    let clamped = router == Router::Fp32Held;
    tape.keep(clamped, "clamped sum of the chosen", &[x.n], FLOAT, &CLAMPED_SUM);
}

/// The experts themselves; `needed` says whether their input requires a gradient, `trains` whether they do.
fn products(tape: &mut Tape<'_, '_>, needed: bool, trains: bool) {
    let x = tape.x;
    let (moe, width) = (x.moe, x.expert_width());
    let kernel = x.recipe().transformers.experts;
    let (wide, inner) = ([moe.sent, x.h], [moe.sent, moe.ffn]);
    tape.keep(true, "experts' gate and up", &[x.gate, moe.sent, moe.ffn], width, &GATE_UP);
    let gated = x.model().activation.is_gated();
    let clamped = x.model().arrangement.clamped_experts;
    if clamped {
        tape.keep_several(
            true,
            "steps of the experts' activation",
            &[4, moe.sent, moe.ffn],
            width,
            &CLAMPED_STEPS,
        );
    } else {
        tape.keep(gated, "experts' activated gate", &inner, width, &ACTIVATED);
    }
    tape.keep(true, "routing weights", &[moe.sent], moe.probability, &WEIGHTS);
    tape.keep(true, "experts' output", &wide, width, &OUTPUT);
    tape.keep(trains, "experts' input", &wide, width, &GATHERED);
    tape.keep(trains, "experts' second input", &inner, width, &PRODUCT);
    match kernel {
        ExpertKernel::Grouped => {
            tape.keep_several(true, "order of tokens", &[3, moe.sent], INDEX, &ORDER);
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
