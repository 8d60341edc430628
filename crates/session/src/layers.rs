//! The layers of the model as shown in the panel.

use shardscope_estimate::{LayerNode, Load};
use shardscope_operators::Shape;
use shardscope_units::{Bytes, grouped, size};

/// One line of the layer tree: a part of the unsharded model next to what one GPU holds of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerLine {
    /// Name of the layer or part.
    pub name: &'static str,
    /// Number of equal parts that this line stands for.
    pub times: u64,
    /// In the unsharded model.
    pub whole: LayerFigures,
    /// On one GPU that holds it.
    pub sharded: LayerFigures,
    /// Its parts.
    pub parts: Vec<LayerLine>,
}

/// The figures of a part, as text; for one part if `times` is above 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerFigures {
    /// The tensor's shape; only for leaves.
    pub shape: String,
    /// Parameters.
    pub parameters: String,
    /// Bytes as weights; empty if there are none.
    pub weights: String,
    /// Bytes saved for one micro-batch; empty if there are none.
    pub kept: String,
}

/// `node` as displayed.
#[must_use]
pub fn layer_line(node: &LayerNode) -> LayerLine {
    LayerLine {
        name: node.name,
        times: node.times,
        whole: figures(node.shape, node.full),
        sharded: figures(node.sharded_shape, node.sharded),
        parts: node.children.iter().map(layer_line).collect(),
    }
}

fn figures(shape: Option<Shape>, load: Load) -> LayerFigures {
    // A zero would read as a measured zero; parts without weights (a softmax) or without saved tensors have an empty
    // cell.
    let some = |bytes: Bytes| if bytes == Bytes::ZERO { String::new() } else { size(bytes) };
    LayerFigures {
        shape: shape.map(written).unwrap_or_default(),
        parameters: grouped(load.parameters.get()),
        weights: some(load.parameter_bytes),
        kept: some(load.activation_bytes),
    }
}

fn written(shape: Shape) -> String {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    format!("[{}]", sizes.join(", "))
}
