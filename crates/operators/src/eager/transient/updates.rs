//! Weight updates within backward, as soon as their gradients exist.

use super::super::tape::Step;
use super::shared::{AUTOGRAD, INPUT, WORDS, residual, returned};
use super::{layers, loss};
use crate::low_rank::update_bytes;
use crate::{Operator, Saved, Symbols, Transient};
use shardscope_explain::Formula;
use shardscope_plan::LinearModule::{self, Down, Gate, Key, Output, OutputLayer, Query, Up};

static UPDATE: Formula = Formula::new(
    "Z",
    "What the optimizer makes while it steps one weight: the root of its second moment, its step at full size, a copy of its gradient in fp32 and what projects it.",
    "galore_torch/adamw.py:AdamW.step, galore_projector.py; apollo_torch/apollo.py:AdamW.step",
);
static ONE_INPUT: Formula = Formula::new("n·h·Bc", "Gradient of an input, of the readers so far.", AUTOGRAD);

/// The points of `operator` at which a weight is stepped. The inputs of its product are freed by then: gradient hooks
/// run after the product's node has finished (`torch/csrc/autograd/functions/accumulate_grad.h`).
pub(super) fn updates(operator: Operator, x: &Symbols<'_>) -> Vec<Transient> {
    let (wide, narrow, width) = (x.a * x.d, x.k * x.d, x.compute_width);
    let update = |module: Option<LinearModule>, shape: [u64; 2]| {
        let bytes = update_bytes(x, module, shape)?;
        Some(Saved::new("step of a weight", &[bytes], 1, &UPDATE))
    };
    let gradient =
        |formula, [outer, inner]: [u64; 2]| Saved::new("weight gradient", &[outer, inner], x.width, formula);
    let input = Saved::new("gradient of the input", &[x.n, x.h], width, &ONE_INPUT);
    let mut out = Vec::new();
    match operator {
        Operator::OutputLayer => {
            let shape = [x.v, x.h];
            // A tied weight waits for the embedding's part of its gradient.
            if let Some(step) = update(Some(OutputLayer), shape).filter(|_| !x.tied()) {
                let input = Saved::new("gradient of the input", &[x.n, x.h], x.width, &INPUT);
                let gone = returned(operator, x, &[Step::Core, Step::First]);
                let tensors = vec![input, gradient(&loss::HEAD, shape), step];
                out.push(Transient::new("step of the output layer", gone, tensors));
            }
        }
        Operator::SelfAttention
        | Operator::WindowedAttention
        | Operator::BorrowedAttention
        | Operator::BorrowedWindowedAttention => {
            let last = returned(operator, x, &[Step::Last]);
            let all = returned(operator, x, &[Step::Last, Step::Core]);
            for (name, module, shape, gone) in [
                ("step of o_proj", Output, [x.h, wide], last),
                ("step of k_proj or v_proj", Key, [narrow, x.h], all),
                ("step of q_proj", Query, [wide, x.h], all),
            ] {
                if let Some(step) = update(Some(module), shape) {
                    let of_inner = Saved::new("gradient of the output", &[x.n, wide], width, &layers::OUTPUT);
                    let mut tensors = vec![residual(x), if module == Query { input } else { of_inner }];
                    tensors.extend((module == Key).then_some(input));
                    tensors.extend([gradient(&layers::SQUARE, shape), step]);
                    out.push(Transient::new(name, gone, tensors));
                }
            }
        }
        Operator::Mlp | Operator::WideMlp => {
            let last = returned(operator, x, &[Step::Last]);
            let all = returned(operator, x, &[Step::Last, Step::Core]);
            for (name, module, shape, gone) in [
                ("step of down_proj", Down, [x.h, x.f], last),
                ("step of up_proj", Up, [x.f, x.h], all),
                ("step of gate_proj", Gate, [x.f, x.h], all),
            ] {
                if let Some(step) = update(Some(module), shape) {
                    let inner = Saved::new("gradient of the product", &[x.n, x.f], width, &layers::INNER);
                    let mut tensors = vec![residual(x), if module == Gate { input } else { inner }];
                    tensors.extend((module == Up).then_some(input));
                    tensors.extend([gradient(&layers::FIRST, shape), step]);
                    out.push(Transient::new(name, gone, tensors));
                }
            }
        }
        Operator::Embedding => {
            let shape = [x.v, x.h];
            if let Some(step) = update(None, shape) {
                // A tied weight's gradient exists since the output layer has run.
                let own = (!x.tied()).then(|| gradient(&WORDS, shape));
                let tensors = own.into_iter().chain([step]).collect();
                out.push(Transient::new(
                    "step of the embedding",
                    returned(operator, x, &[Step::First]),
                    tensors,
                ));
            }
        }
        _ => {}
    }
    out
}
