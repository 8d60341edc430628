//! Parts of a model for which the engine has no layers: those that stop the verdict, and those that are only reported.

use shardscope_architectures::{Architecture, Gap};
use shardscope_config_tree::Node;
use shardscope_plan::Field;
use shardscope_source::{Code, Diagnostic};

use crate::{Effect, NotModelled};

const PART: &str = "another modality; only the language model is counted";

/// Other kinds of layers and other modalities, which stop the verdict.
pub(crate) fn lacking(architecture: &Architecture) -> Vec<NotModelled> {
    let gap = |gap: Gap| NotModelled::new(gap.name(), "", Effect::Model, gap.words());
    let mut all: Vec<NotModelled> = architecture.stopping().into_iter().map(gap).collect();
    all.extend(architecture.without_figures().map(|key| NotModelled::new(key, "", Effect::Model, PART)));
    all
}

/// GLM-4.5's text models.
const BALANCED: &str = "glm4_moe";
const BALANCES: &str = "GLM-4.5 without a balancing loss, which verl's mbridge gives it: name it in the command's model.path, and it is counted";

/// mbridge leaves the balancing loss of this family on (`models/glm4moe.py:_build_config`), of no other. verl's reader knows that by the
/// model's name; beside a configuration whose path has none it states that there is no such loss.
pub(super) fn balanced(architecture: &Architecture) -> Option<NotModelled> {
    let name = Field::MoeRouterLoadBalancingType.name();
    (architecture.model_type == BALANCED).then(|| {
        NotModelled::new(name, "none", Effect::Memory, BALANCES)
            .only_at(Field::MoeRouterLoadBalancingType, "none")
            // Megatron-Bridge, the default since verl 0.9, has it off for every model; mbridge alone leaves this fusion off.
            .unless_at(Field::GradientAccumulationFusion, "true")
    })
}

/// Small parts that are left out, with one sentence each.
pub(super) fn left_out(architecture: &Architecture) -> Vec<Diagnostic> {
    let stopping = architecture.stopping();
    // Whether these two are modelled depends on the software (`resolve/lacking.rs`).
    let arranged = [Gap::PostNorms, Gap::Softcap];
    let rest = || architecture.gaps.iter().filter(|gap| !stopping.contains(gap) && !arranged.contains(gap));
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

/// The class of an encoder-decoder's configuration if it is not the one with a decoder and an output layer (`T5WithLMHeadModel` before
/// transformers 3.0).
pub(super) fn other_class(root: &Node) -> Option<NotModelled> {
    const WHOLE: [&str; 2] = ["ForConditionalGeneration", "WithLMHeadModel"];
    const OTHER: &str =
        "an encoder alone, or an encoder-decoder without an output layer or with another head";
    let node = root.get("architectures")?;
    let class = node.items().first().and_then(Node::word)?;
    let other = !WHOLE.iter().any(|end| class.ends_with(end));
    other.then(|| NotModelled::new("architectures", class, Effect::Model, OTHER).at_some(Some(node.span)))
}
