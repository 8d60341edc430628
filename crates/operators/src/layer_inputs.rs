//! Embeddings that each layer has of its own (Gemma 4 E2B and E4B,
//! `transformers/models/gemma4/modeling_gemma4.py:Gemma4TextModel`), which only transformers' modules have.

use crate::shared::kernel;
use crate::{Account, Message, Saved, Symbols, Transient, Weight, Work, norm, pieces};
use shardscope_units::Bytes;

/// Those of all layers: a table of one row per token, and a projection of the word embeddings.
pub(crate) mod all {
    use super::{Account, Bytes, Message, Saved, Symbols, Transient, Weight, Work, kernel, norm};

    fn wide(x: &Symbols<'_>) -> u64 {
        x.model().num_layers * x.layer_input
    }

    pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
        let rows = x.model().arrangement.layer_inputs.map_or(0, |inputs| inputs.vocabulary);
        let projection = [wide(x), x.h];
        let mut out = vec![
            Weight::replicated("embed_tokens_per_layer.weight", Account::Embedding, &[rows, wide(x)]),
            Weight::replicated("per_layer_model_projection.weight", Account::Embedding, &projection)
                .as_linear(),
        ];
        out.extend(norm::scale(
            x,
            ["per_layer_projection_norm.weight", "per_layer_projection_norm.bias"],
            Account::Norms,
            x.layer_input,
        ));
        out
    }

    pub(crate) const fn saved(_: &Symbols<'_>) -> Vec<Saved> {
        Vec::new()
    }

    pub(crate) const fn transients(_: &Symbols<'_>) -> Vec<Transient> {
        Vec::new()
    }

    pub(crate) const fn messages(_: &Symbols<'_>) -> Vec<Message> {
        Vec::new()
    }

    /// The look-up and its scale, the product and its scale, the norm, their sum and its scale.
    pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
        let elements = x.n * wide(x);
        let gradient = x.recipe().grads_dtype.width();
        let looked = [x.bytes(2 * elements), Bytes::new(elements * (x.width + 2 * gradient))];
        let scaled = [x.bytes(9 * elements), x.bytes(8 * elements)];
        let product =
            Work::linear("per_layer_model_projection", [x.n, wide(x), x.h], [x.full_tokens(), wide(x), x.h]);
        let mut out = vec![kernel("embed_tokens_per_layer", looked, [2, 2]), product];
        out.extend(norm::latent(x, "per_layer_projection_norm", wide(x)));
        out.push(kernel("per_layer_inputs", scaled, [4, 4]));
        out
    }
}

/// One layer's.
pub(crate) mod own {
    use super::{Account, Bytes, Message, Saved, Symbols, Transient, Weight, Work, kernel, norm, pieces};

    pub(crate) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
        let mut out = vec![
            Weight::replicated("per_layer_input_gate.weight", Account::Other, &[x.layer_input, x.h])
                .as_linear(),
            Weight::replicated("per_layer_projection.weight", Account::Other, &[x.h, x.layer_input])
                .as_linear(),
        ];
        out.extend(norm::post(x, ["post_per_layer_input_norm.weight", "post_per_layer_input_norm.bias"]));
        out
    }

    pub(crate) const fn saved(_: &Symbols<'_>) -> Vec<Saved> {
        Vec::new()
    }

    pub(crate) const fn transients(_: &Symbols<'_>) -> Vec<Transient> {
        Vec::new()
    }

    pub(crate) const fn messages(_: &Symbols<'_>) -> Vec<Message> {
        Vec::new()
    }

    /// The gate's product and activation, its product with the embedding, the projection, the norm, the sum, the scale. In
    /// backward each layer's gradient is put into zeros as wide as all layers' embeddings, and added to the others'.
    pub(crate) fn work(x: &Symbols<'_>) -> Vec<Work> {
        let (narrow, tokens) = (x.n * x.layer_input, x.full_tokens());
        let all = narrow * x.model().num_layers;
        let (p, w) = (x.projected_width, x.width);
        let gated = [narrow * (2 * p + p + 2 * w), narrow * (3 * p + 2 * (p + 2 * w)) + 4 * all * w];
        let mut out = vec![
            Work::linear("per_layer_input_gate", [x.n, x.layer_input, x.h], [tokens, x.layer_input, x.h]),
            kernel("per_layer_gate", gated.map(Bytes::new), [2, 6]),
            Work::linear("per_layer_projection", [x.n, x.h, x.layer_input], [tokens, x.h, x.layer_input]),
        ];
        out.extend(norm::behind(x, "post_per_layer_input_norm"));
        out.push(pieces::addition(x, "per_layer_bda", p, false));
        out.extend(pieces::layer_scale(x));
        out
    }
}
