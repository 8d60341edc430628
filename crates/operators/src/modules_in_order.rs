//! The tensors of a section as modules of transformers hold them, in the order in which they use or register them: what
//! PyTorch's DDP fills its buckets by (`tests/record/ddp_buckets.py`).

use super::{Account, Symbols, Weight, WeightPart, WeightRole, of_modules};
use shardscope_plan::{Arrangement, NormOrder};

/// An order of a chunk's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In which Megatron creates them: what it fuses is one weight.
    Megatron,
    /// In which modules of transformers use them, tensor by tensor; backward finishes their gradients the other way round.
    Used,
    /// In which modules of transformers register them, tensor by tensor.
    Registered,
}

/// `weights`, which are listed in the order of use, tensor by tensor.
pub(super) fn in_order(x: &Symbols<'_>, weights: &[Weight], order: Order) -> Vec<Weight> {
    let mut out = Vec::with_capacity(2 * weights.len());
    let mut rest = weights;
    while let Some(first) = rest.first() {
        let joined = rest.iter().take_while(|other| belongs(first, other)).count().max(1);
        let (run, behind) = rest.split_at(joined);
        let from = out.len();
        separate(x, run, order, &mut out);
        if first.role == WeightRole::Adapter {
            // Those of an MLP are listed from its second projection, which reads another width than the first. Experts' weights
            // are wrapped one around the other (`peft/tuners/lora/layer.py:ParamWrapper`): what is registered last runs first.
            let turned = match first.account {
                Account::Mlp | Account::SharedExperts => first.local.get(1) != Some(&x.h),
                Account::Experts => order == Order::Used,
                _ => false,
            };
            let each = if x.recipe().tuning.lora.is_some_and(|lora| lora.dora) { 3 } else { 2 };
            out[from..].rotate_left(if turned { each.min(joined) } else { 0 });
        }
        rest = behind;
    }
    if order == Order::Registered {
        // Stable: what is registered together stays in the order of use.
        out.sort_by_key(|weight| registered(&x.model().arrangement, weight));
    }
    out
}

/// Whether `other` is of the modules that `first`, which Megatron fuses, stands for: biases of the same projections, norms of
/// their heads.
fn belongs(first: &Weight, other: &Weight) -> bool {
    match first.part {
        WeightPart::JointQueries { .. } => {
            matches!(other.part, WeightPart::JointQueries { .. } | WeightPart::HeadNorm)
        }
        _ if first.role == WeightRole::Adapter => other.role == first.role && other.account == first.account,
        WeightPart::GateAndUp => other.part == WeightPart::GateAndUp && other.account == first.account,
        _ => false,
    }
}

/// Adds the tensors of `run`, projection by projection: the weight, its bias, and the norm of its heads.
fn separate(x: &Symbols<'_>, run: &[Weight], order: Order, out: &mut Vec<Weight>) {
    let (norms, projections): (Vec<&Weight>, Vec<&Weight>) =
        run.iter().partition(|weight| weight.part == WeightPart::HeadNorm);
    let of = |letter: char| {
        norms.iter().filter(move |norm| norm.name.starts_with(letter)).map(|norm| (*norm).clone())
    };
    let parts: Vec<_> = projections.iter().map(|weight| (*weight, of_modules(x, weight))).collect();
    let most = parts.iter().map(|(_, shapes)| shapes.len()).max().unwrap_or_default();
    for index in 0..most {
        for (weight, shapes) in &parts {
            out.extend(shapes.get(index).map(|&local| Weight { local, ..(*weight).clone() }));
        }
        if order == Order::Used {
            // A fused projection comes before both norms.
            match (most, index) {
                (1, _) => out.extend(of('q').chain(of('k'))),
                (_, 0) => out.extend(of('q')),
                (_, 1) => out.extend(of('k')),
                _ => {}
            }
        }
    }
    if order == Order::Registered {
        out.extend(norms.iter().map(|norm| (*norm).clone()));
    }
}

/// A weight's turn among those that a layer registers.
fn registered(arranged: &Arrangement, weight: &Weight) -> u8 {
    const FIRST: u8 = 0;
    const ATTENTION: u8 = 1;
    const HEADS: u8 = 2;
    const BETWEEN: u8 = 3;
    const MLP: u8 = 4;
    const LAST: u8 = 5;
    let input = weight.name.starts_with("input_layernorm");
    match weight.account {
        Account::Norms if weight.part == WeightPart::HeadNorm => HEADS,
        Account::Norms => match arranged.norm_order {
            NormOrder::First => FIRST,
            NormOrder::Ordered if input => FIRST,
            NormOrder::Ordered => BETWEEN,
            NormOrder::Following if input => BETWEEN,
            NormOrder::Following | NormOrder::Last => LAST,
        },
        Account::Attention if arranged.output_first && weight.name.starts_with("linear_proj") => FIRST,
        Account::Attention => ATTENTION,
        Account::Mlp | Account::Router | Account::Experts | Account::SharedExperts => MLP,
        _ => FIRST,
    }
}
