//! What of a model the engine has no layers for: what stops the verdict, and what is only said.

use shardscope_architectures::{Architecture, Gap, Tower};
use shardscope_source::{Code, Diagnostic};
use shardscope_units::grouped;

use crate::{Effect, NotModelled};

const PART: &str = "another modality, of whose model only the language part is counted";

/// What a tower has that no figure counts, so that a reader who goes on without it knows how much that is.
fn tower(tower: Tower) -> String {
    let Tower { parameters, layers, projector, .. } = tower;
    let (parameters, projector) = (grouped(parameters), grouped(projector));
    format!(
        "the vision tower beside the decoder, of {parameters} parameters in {layers} layers and a projector ({projector} of \
         them), is not counted"
    )
}

/// Other kinds of layers and other modalities, which no verdict rests on.
pub(crate) fn lacking(architecture: &Architecture) -> Vec<NotModelled> {
    let gap = |gap: Gap| NotModelled::new(gap.name(), "", Effect::Model, gap.words());
    let mut all: Vec<NotModelled> = architecture.stopping().into_iter().map(gap).collect();
    for key in &architecture.left_out {
        let vision = architecture.tower.filter(|_| key == "vision_config");
        let what = vision.map_or_else(|| PART.to_owned(), tower);
        all.push(NotModelled::new(key, "", Effect::Model, &what));
    }
    all
}

/// Small parts that are left out, in a sentence each.
pub(super) fn left_out(architecture: &Architecture) -> Vec<Diagnostic> {
    let stopping = architecture.stopping();
    let rest = || architecture.gaps.iter().filter(|gap| !stopping.contains(gap));
    let mut said: Vec<Diagnostic> = Vec::new();
    let small: Vec<&str> = rest().map(|gap| gap.words()).collect();
    if !small.is_empty() {
        let name = &architecture.model_type;
        let name = if name.is_empty() { "the model" } else { name };
        let message = format!("{name} has {}, not estimated yet", small.join(", "));
        said.push(Diagnostic::warning(Code::NotEstimated, message));
    }
    said
}
