//! Which weights train, and the adapters that are trained next to frozen weights: their weights, saved tensors,
//! arithmetic and messages.

mod cut;
mod dtensor;
mod kept;
mod linears;
mod messages;
mod own_linears;
mod peft;
mod work;

use super::{Account, Operator, SectionKind, Symbols, Weight, WeightPart, WeightRole, Work};
use shardscope_plan::{BaseTraining, LinearModule, LoraModules};

pub(super) use dtensor::others_columns;
pub(crate) use kept::{
    Alive, EXPERTS_FC1, EXPERTS_FC2, LINEAR_FC1, LINEAR_FC2, LINEAR_PROJ, LINEAR_QKV, SHARED_FC1, SHARED_FC2,
    Site,
};
pub(super) use messages::messages;

/// Marks for each of `operator`'s weights whether it trains, and adds the weights of the adapter library.
pub(super) fn adapt(operator: Operator, x: &Symbols<'_>, weights: &mut Vec<Weight>) {
    let tuning = &x.recipe().tuning;
    if tuning.is_full() {
        return;
    }
    let trains = trains(operator, x);
    let ends = matches!(operator, Operator::Embedding | Operator::OutputLayer);
    let copied = ends && trains && tuning.copies;
    // In a vision tower, each weight states itself whether it trains.
    let of_tower = matches!(operator, Operator::VisionLayer | Operator::VisionEnds);
    for weight in weights.iter_mut().filter(|_| !of_tower) {
        if !trains || copied {
            weight.role = WeightRole::Frozen;
        }
    }
    if copied {
        let mut copies: Vec<_> = weights.iter().map(trained_copy).collect();
        if operator == Operator::OutputLayer && copies.is_empty() {
            // A tied output layer has no separate weight until it is copied.
            copies.push(trained_copy(&Weight::replicated("", Account::OutputLayer, &[x.v, x.h])));
        }
        weights.extend(copies);
    }
    if operator == Operator::OutputLayer && tuning.objective.has_value_head() {
        // A weight of one output and its bias.
        let head = Weight::replicated("v_head.summary", Account::OutputLayer, &[x.h + 1]);
        weights.push(Weight { linear: false, role: WeightRole::Adapter, ..head });
    }
    if let Some(lora) = tuning.lora {
        if lora.library.is_of_megatron() {
            weights.extend(cut::weights(operator, x, lora));
        } else {
            weights.extend(peft::weights(operator, x, lora));
        }
    }
}

fn trained_copy(weight: &Weight) -> Weight {
    // Optimizers treat the word embedding differently; no other stage or kernel deals with a copy.
    let is_words = weight.part == WeightPart::WordEmbedding;
    Weight {
        name: "modules_to_save",
        role: WeightRole::TrainedCopy,
        part: if is_words { WeightPart::WordEmbedding } else { WeightPart::Plain },
        ..weight.clone()
    }
}

/// Whether `operator`'s own weights, or their copies, train.
fn trains(operator: Operator, x: &Symbols<'_>) -> bool {
    let tuning = &x.recipe().tuning;
    match operator {
        Operator::Embedding => tuning.embedding,
        Operator::OutputLayer => tuning.head,
        Operator::Projector => tuning.projector,
        _ => tuning.base != BaseTraining::None,
    }
}

/// Removes the weight gradients of frozen weights, and adds the products of adapters and the dequantization of
/// quantized weights.
pub(super) fn adapt_work(operator: Operator, x: &Symbols<'_>, work: &mut Vec<Work>) {
    let tuning = &x.recipe().tuning;
    if tuning.is_full() {
        return;
    }
    let trains = trains(operator, x);
    for one in work.iter_mut() {
        if let Work::Matmul(matmul) = one {
            // Gradients still flow through a frozen layer (dx = dy·W); its dW is what freezing saves.
            matmul.trains &= trains;
        }
    }
    match tuning.lora {
        Some(lora) if lora.library.is_of_megatron() => work.extend(work::products(operator, x, lora)),
        _ => peft::work(operator, x, work),
    }
}

/// The linear layers of `operator` as in the library's own modules, with their input and output columns.
pub(super) fn linears_of(operator: Operator, x: &Symbols<'_>) -> Vec<(LinearModule, [u64; 2])> {
    own_linears::linears(operator, x).into_iter().map(|(module, _, shape)| (module, shape)).collect()
}

impl SectionKind {
    /// Elements of its adapters' gradients that are other tensor ranks', and are there until FSDP cuts and reduces them.
    #[must_use]
    pub fn adapter_gradients_of_others(self, x: &Symbols<'_>) -> u64 {
        self.operators(x).into_iter().map(|operator| others_columns(x, operator)).sum()
    }

    /// Columns in and out of those of its linear layers that are among `modules`, as the library's own modules have them.
    #[must_use]
    pub fn linear_layers(self, x: &Symbols<'_>, modules: LoraModules) -> Vec<[u64; 2]> {
        let mut out = Vec::new();
        for operator in self.operators(x) {
            let linears = own_linears::linears(operator, x).into_iter();
            out.extend(linears.filter(|(module, ..)| modules.has(*module)).map(|(.., shape)| shape));
        }
        out
    }
}

/// Whether the input of `operator` requires a gradient: it does not before the first adapter, where everything is
/// frozen.
pub(super) fn input_needs_gradient(operator: Operator, x: &Symbols<'_>) -> bool {
    let behind_attention = matches!(
        operator,
        Operator::PreMlpNorm | Operator::PreExpertsNorm | Operator::Mlp | Operator::Experts
    );
    x.trains
        || x.input_gradient
        || (behind_attention && (LINEAR_QKV.is_adapted(x) || LINEAR_PROJ.is_adapted(x)))
}
