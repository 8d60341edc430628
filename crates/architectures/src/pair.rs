//! Encoder-decoders, of which the parameters alone are known.

use shardscope_config_tree::Node;

use crate::evaluate::Evaluation;
use crate::rules::{Defaults, pair_definitions};

/// Parameters of the encoder-decoder at `root`, exactly as transformers 5 builds it, which ties the output layer of T5's family
/// whatever the file says; none of another type, and where a size is missing or makes no sense.
#[must_use]
pub fn encoder_decoder(root: &Node) -> Option<u64> {
    let model_type = root.get("model_type")?.word()?;
    let definitions = pair_definitions(model_type)?;
    let evaluation = Evaluation::new(definitions, Defaults::for_model_type(model_type), root, None);
    evaluation.size("total").ok()
}
