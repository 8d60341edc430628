//! A projector that trains after a frozen tower, as in LLaVA: weights, what it saves, and what the tower's forward
//! pass holds if its images are counted.

use crate::{Account, Saved, Symbols, Weight, WeightPart};
use shardscope_explain::Formula;

/// Bytes for each token of an image and each element of the width that a layer's forward pass holds at its peak,
/// including attention scores in 16 heads: of CLIP's 577 tokens 96.2, of SigLIP's 729 107.2.
const ALIVE: u64 = 108;
/// Bytes of an element of the tower's own outputs: it runs in 16 bits.
const HALF: u64 = 2;

const MODULES: &str = "torch.nn.Linear and torch.nn.GELU, as llava/model/multimodal_projector/builder.py joins them; recorded in \
    tests/data/activations/llava.tsv";

static FORWARD: Formula = Formula::new(
    "(108 + 2·(Li + 1))·(np + b)·hi",
    "Tensors of one layer's forward pass at most, and the outputs of all layers, which the model requests.",
    "llava/model/multimodal_encoder/clip_encoder.py, recorded in tests/data/activations/llava.tsv",
);
static FORWARD_OF_PATCHES: Formula = Formula::new(
    "(108 + 2·(Li + 1))·np·hi",
    "The same of a tower that puts no token before an image's patches.",
    "bunny/model/multimodal_encoder/siglip/siglip_encoder.py, recorded in tests/data/activations/llava.tsv",
);
static INPUT: Formula =
    Formula::new("np·hi·B", "The tower's output, without the tokens before the patches.", MODULES);
static WHOLE_INPUT: Formula = Formula::new(
    "(np + b)·hi·B",
    "The tower's output: of one image the patches are a view, and the whole is kept.",
    MODULES,
);
static INNER: Formula = Formula::new(
    "2·(pl - 1)·np·h·B",
    "Input and output of each GELU, the output for the next weight's gradient.",
    MODULES,
);

/// Its weights and biases.
pub(super) fn weights(x: &Symbols<'_>) -> Vec<Weight> {
    let Some(tower) = x.model().vision else { return Vec::new() };
    let Some(projector) = tower.projector else {
        let weight = Weight::replicated("projector", Account::VisionTower, &[tower.projecting()]);
        return vec![weight.as_part(WeightPart::VisionTower)];
    };
    let mut weights = Vec::new();
    for layer in 0..projector.layers {
        let inner = if layer == 0 { tower.hidden_size } else { x.h };
        for (name, shape) in [("mm_projector.weight", &[x.h, inner][..]), ("mm_projector.bias", &[x.h])] {
            weights
                .push(Weight::replicated(name, Account::VisionTower, shape).as_part(WeightPart::VisionTower));
        }
    }
    weights
}

/// What it saves for backward.
pub(super) fn saved(x: &Symbols<'_>) -> Vec<Saved> {
    let Some(projector) = x.model().vision.and_then(|tower| tower.projector) else { return Vec::new() };
    let behind = projector.layers.saturating_sub(1);
    let mut saved = vec![if x.b == 1 && projector.before > 0 {
        let tokens = projector.patches + projector.before;
        Saved::new("projector input", &[tokens, x.vision_width()], x.width, &WHOLE_INPUT)
    } else {
        Saved::new("projector input", &[x.patches(), x.vision_width()], x.width, &INPUT)
    }];
    if behind > 0 {
        let inner = [2 * behind, x.patches(), x.h];
        saved.push(Saved::new("projector GELU input and output", &inner, x.width, &INNER));
    }
    saved
}

/// What the tower's forward pass holds, if the images are counted.
pub(super) fn alive(x: &Symbols<'_>) -> Option<Saved> {
    let tower = x.model().vision?;
    let before = tower.projector?.before;
    let tokens = x.patches() + before * x.b;
    let each = ALIVE + HALF * (tower.layers + 1);
    let formula = if before > 0 { &FORWARD } else { &FORWARD_OF_PATCHES };
    Some(Saved::new("tensors of a vision layer", &[tokens, tower.hidden_size], each, formula))
}
