//! PEFT adapters on plain PyTorch modules: weights and arithmetic.

use super::dtensor;
use super::own_linears::linears;
use crate::{Account, Kernel, Operator, Shape, Symbols, Weight, WeightRole, Work};
use shardscope_plan::{AdapterLibrary, LinearModule, Lora, Quantization};
use shardscope_units::Bytes;

/// Host time of bitsandbytes' Python code around dequantizing one weight, in units of kernel launches: 220 to 240 µs
/// each way, of which three kernels take 54 (`tests/data/measured/host.tsv`: 24 layers of Llama with LoRA over NF4
/// less the same over bf16).
const UNPACKING: u64 = 9;

/// The same, applied only where it was measured: PEFT's modules around bitsandbytes' 4-bit ones. unsloth calls the
/// kernels directly.
fn unpacking(x: &Symbols<'_>) -> u64 {
    let modules = &x.recipe().software.semantics().modules;
    let measured = modules.adapters == AdapterLibrary::Peft && !modules.fuses_adapters;
    if measured && x.recipe().tuning.quantization != Quantization::Int8 { UNPACKING } else { 0 }
}

pub(super) fn weights(operator: Operator, x: &Symbols<'_>, lora: Lora) -> Vec<Weight> {
    if matches!(operator, Operator::VisionLayer | Operator::VisionEnds) {
        return crate::vision::adapter_weights(operator, x);
    }
    let mut out = Vec::new();
    for (module, account, [inner, outer]) in linears(operator, x) {
        if lora.modules.has(module) && dtensor::cuts(x) {
            out.extend(dtensor::matrices(x, (module, account, [inner, outer]), lora.rank));
        } else if lora.modules.has(module) {
            out.push(adapter("lora_A.weight", account, &[lora.rank, inner]));
            out.push(adapter("lora_B.weight", account, &[outer, lora.rank]));
            out.extend(lora.dora.then(|| adapter("lora_magnitude_vector.weight", account, &[outer])));
        }
    }
    if operator == Operator::Embedding && lora.modules.has(LinearModule::Embedding) {
        // `peft/tuners/lora/layer.py:Embedding`.
        out.push(adapter("lora_embedding_A", Account::Embedding, &[lora.rank, x.v]));
        out.push(adapter("lora_embedding_B", Account::Embedding, &[x.h, lora.rank]));
    }
    if operator == Operator::Experts {
        let experts = lora.modules.has(LinearModule::Experts);
        out.extend(of_experts(x, lora.rank, [lora.modules.has(LinearModule::Router), experts]));
    }
    out
}

/// PEFT adapts router and experts as parameters: the fused first weight with twice the rank
/// (`peft/tuners/lora/layer.py:ParamWrapper`).
fn of_experts(x: &Symbols<'_>, rank: u64, [router, weights]: [bool; 2]) -> Vec<Weight> {
    let (moe, experts) = (x.moe, x.moe.experts);
    let account = Account::Experts;
    let mut out = Vec::new();
    if router {
        out.push(adapter("router.lora_A.weight", Account::Router, &[rank, x.h]));
        out.push(adapter("router.lora_B.weight", Account::Router, &[experts, rank]));
    }
    if weights {
        out.extend([
            adapter("experts.gate_up.lora_A.weight", account, &[experts, x.gate * rank, x.h]),
            adapter("experts.gate_up.lora_B.weight", account, &[experts, x.gate * moe.ffn, x.gate * rank]),
            adapter("experts.down.lora_A.weight", account, &[experts, rank, moe.ffn]),
            adapter("experts.down.lora_B.weight", account, &[experts, x.h, rank]),
        ]);
    }
    out
}

fn adapter(name: &'static str, account: Account, shape: &[u64]) -> Weight {
    let shape: Shape = Shape::new(shape);
    Weight { role: WeightRole::Adapter, ..Weight::replicated(name, account, &shape) }
}

/// Adds the products of adapters and the dequantization of quantized weights.
pub(super) fn work(operator: Operator, x: &Symbols<'_>, work: &mut Vec<Work>) {
    let tuning = &x.recipe().tuning;
    let linears = linears(operator, x);
    let packed =
        operator != Operator::OutputLayer || x.recipe().software.semantics().modules.quantizes_output;
    if tuning.quantization != Quantization::None && packed {
        // Reads a packed weight and writes it in full, once for each pass; after fp32 norms, inputs are cast to the
        // dtype of the product and results back, and in backward their gradients.
        let sum = |of: fn([u64; 2]) -> u64| -> u64 { linears.iter().map(|(.., sides)| of(*sides)).sum() };
        let wide = x.width > x.compute_width;
        let cast =
            if wide { x.n * sum(|[inner, outer]| inner + outer) * (x.width + x.compute_width) } else { 0 };
        let moved = Bytes::new(sum(|[inner, outer]| inner * outer) * (x.compute_width + 1) + cast);
        // Constants of blocks, their offset, the weight (bitsandbytes, `functional.py:dequantize_4bit`), and the two casts.
        let count = linears.len() as u64;
        let launches = count * if wide { 5 } else { 3 };
        // The product of an int8 layer's backward pass is in its input's dtype (bitsandbytes,
        // `autograd/_functions.py`: `MatMul8bitLt.backward`, `ctx.dtype_A`), which is fp32 after fp32 norms.
        let wide = wide && tuning.quantization == Quantization::Int8;
        for one in work.iter_mut() {
            if let Work::Matmul(matmul) = one {
                matmul.fp32_gradient = wide && matmul.kind.has_weight();
            }
        }
        let unpack = Kernel::new("unpack weights", [moved, moved], [launches, launches]);
        work.push(Work::Kernel(Kernel { sums_rows: true, python: count * unpacking(x), ..unpack }));
    }
    let Some(lora) = tuning.lora else { return };
    if operator == Operator::Embedding && lora.modules.has(LinearModule::Embedding) {
        // A is looked up, not multiplied; the result is scaled and added to the table's own.
        work.push(Work::plain_linear("lora_B", [x.n, x.h, lora.rank], [x.full_tokens(), x.h, lora.rank]));
        let (c, w) = (x.compute_width, x.width);
        let sum = [x.n * x.h * (3 * c + 2 * w), x.n * x.h * 2 * c].map(Bytes::new);
        work.push(Work::Kernel(Kernel::new("lora sum", sum, [2, 2])));
    }
    for (module, _, [inner, outer]) in linears {
        if !lora.modules.has(module) {
            continue;
        }
        let rank = lora.rank;
        let tokens = x.full_tokens();
        if dtensor::cuts(x) {
            work.extend(dtensor::products(x, module, [inner, outer], rank));
        } else {
            work.push(Work::plain_linear("lora_A", [x.n, rank, inner], [tokens, rank, inner]));
            work.push(Work::plain_linear("lora_B", [x.n, outer, rank], [tokens, outer, rank]));
        }
        beside_products(x, lora, [inner, outer], work);
        if lora.dora {
            dora(x, lora, [inner, outer], work);
        }
    }
}

/// The operations around the two products of an adapter (`peft/tuners/lora/layer.py:Linear.forward`, as PyTorch
/// dispatches it under autocast: `tests/record/kernels_of_a_layer.py`): the input is cast to the adapter's dtype and
/// back to the compute dtype, both matrices are cast, and the result is scaled and added to the layer's own; in
/// backward the two gradients of the input are summed.
fn beside_products(x: &Symbols<'_>, lora: Lora, [inner, outer]: [u64; 2], work: &mut Vec<Work>) {
    let (w, c, adapter) = (x.width, x.compute_width, x.adapter_width);
    let between = |one: u64, other: u64| if one == other { 0 } else { one + other };
    let (into, back) = (between(w, adapter), between(adapter, c));
    let kernels = u64::from(into > 0) + 3 * u64::from(back > 0);
    if kernels > 0 {
        let cast = Bytes::new(x.n * inner * (into + back) + lora.rank * (inner + outer) * back);
        let casts = Kernel::new("lora casts", [cast; 2], [kernels; 2]);
        work.push(Work::Kernel(Kernel { sums_rows: true, ..casts }));
    }
    // Read, written and masked: of the input, or of the result.
    let columns = u64::from(lora.dropout) * inner + u64::from(lora.drops_result) * outer;
    let dropped = x.n * columns * (2 * adapter + 1);
    let launches = 2 + u64::from(lora.dropout || lora.drops_result);
    let bytes = [x.n * outer * (3 * c + 2 * w) + dropped, x.n * (outer * 2 * c + inner * 3 * w) + dropped];
    work.push(Work::Kernel(Kernel::new("lora sum", bytes.map(Bytes::new), [launches; 2])));
}

/// The row norms of weight and adapter combined, recomputed in every forward pass: the adapter's matrices multiplied
/// through an identity, their sum with the weight and its norm; then two scaled sums of results. With dropout, the
/// layer's own product again (`peft/tuners/lora/dora.py:DoraLinearLayer.forward`).
fn dora(x: &Symbols<'_>, lora: Lora, [inner, outer]: [u64; 2], work: &mut Vec<Work>) {
    let once = |name, [m, n, k]: [u64; 3]| Work::plain_linear(name, [m, n, k], [m, n, k]);
    work.push(once("dora A", [inner, lora.rank, inner]));
    work.push(once("dora B", [inner, outer, lora.rank]));
    let (weight, results) = (inner * outer, x.n * outer);
    // An identity and its cast; two casts, a product, a sum and a norm of the weight. Results: two products with a
    // row of factors, the scale, the two sums and a cast, minus the plain adapter's product and sum; in backward
    // casts, and for either product two products, a sum over tokens and a cast, and their sum.
    let (wide, c) = (x.adapter_width, x.compute_width);
    let identity = inner * inner * (2 * x.adapter_width + c);
    let forward = Bytes::new(9 * weight * x.adapter_width + identity + results * (10 * wide - c));
    let backward = Bytes::new(results * (16 * wide + 7 * c));
    let norm = Kernel::new("dora norm", [forward, backward], [13, 13]);
    work.push(Work::Kernel(Kernel { sums_rows: true, ..norm }));
    if lora.dropout {
        work.push(Work::plain_linear("dora base", [x.n, outer, inner], [x.full_tokens(), outer, inner]));
    }
}
