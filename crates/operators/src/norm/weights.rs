//! Weights of a norm: a scale, and a shift for LayerNorm; replicated on every rank.

use crate::{Account, Created, Operator, Symbols, Weight, WeightPart};
use shardscope_plan::{NormPlaces, Normalization};

pub(crate) fn weights(operator: Operator, x: &Symbols<'_>) -> Vec<Weight> {
    // OLMo 2 has no norms before attention and MLP: theirs are counted by `post`.
    if operator != Operator::FinalNorm && x.model().arrangement.norm_places == NormPlaces::Behind {
        return Vec::new();
    }
    let modules = x.recipe().software.semantics().eager_modules;
    // Attention and MLP of Phi and Cohere read one norm, which is the input norm.
    if operator != Operator::FinalNorm
        && operator != Operator::InputNorm
        && modules
        && x.model().arrangement.single_norm
    {
        return Vec::new();
    }
    let [weight, bias] = match operator {
        Operator::InputNorm => ["input_layernorm.weight", "input_layernorm.bias"],
        Operator::FinalNorm => ["final_layernorm.weight", "final_layernorm.bias"],
        _ => ["pre_mlp_layernorm.weight", "pre_mlp_layernorm.bias"],
    };
    let weights = scale(x, [weight, bias], Account::Norms, x.h);
    if operator == Operator::InputNorm {
        return weights.into_iter().map(|weight| weight.created(Created::WithInputNorm)).collect();
    }
    weights
}

/// The weights of a norm after attention or MLP, if the model has them.
pub(crate) fn post(x: &Symbols<'_>, names: [&'static str; 2]) -> Vec<Weight> {
    let there = x.model().arrangement.norm_places != NormPlaces::InFront;
    if there { scale(x, names, Account::Norms, x.h) } else { Vec::new() }
}

/// The weights of a norm of heads, named `[weight, bias]`.
pub(crate) fn of_heads(x: &Symbols<'_>, names: [&'static str; 2], width: u64) -> Vec<Weight> {
    if !x.model().arrangement.norm_weights.heads {
        return Vec::new();
    }
    let weights = scaled(x, names, Account::Norms, width).into_iter();
    weights.map(|weight| weight.as_part(WeightPart::HeadNorm)).collect()
}

/// The weights of a norm over `width` elements, named `[weight, bias]`.
pub(crate) fn scale(
    x: &Symbols<'_>,
    [weight, bias]: [&'static str; 2],
    account: Account,
    width: u64,
) -> Vec<Weight> {
    if !x.model().arrangement.norm_weights.stream {
        return Vec::new();
    }
    scaled(x, [weight, bias], account, width)
}

fn scaled(x: &Symbols<'_>, [weight, bias]: [&'static str; 2], account: Account, width: u64) -> Vec<Weight> {
    let mut out = vec![Weight::replicated(weight, account, &[width])];
    if x.model().normalization == Normalization::LayerNorm && x.model().arrangement.norm_weights.biases {
        out.push(Weight::replicated(bias, account, &[width]));
    }
    out
}
