//! What ms-swift's `megatron` command sets if the text says nothing
//! (`swift/megatron/arguments/megatron_args.py:MegatronArguments`, 4.x of August 2026).

use crate::{Argument, Asked, Found, Origin, Question, Reading};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, PROJECTOR, TOWER};
use shardscope_source::Span;

const DEFAULTS: &[(Field, &str)] = &[
    (Field::UseDistributedOptimizer, "true"),
    (Field::MicroBatchSize, "1"),
    (Field::GlobalBatchSize, "16"),
    (Field::RecomputeGranularity, "selective"),
    (Field::ApplyRopeFusion, "false"),
    // In each release since the command came with 3.4.
    (Field::HiddenDropout, "0"),
    (Field::AttentionDropout, "0"),
    (Field::CrossEntropyLossFusion, "true"),
    (Field::AttentionBackend, "flash"),
    (Field::AttentionSoftmaxInFp32, "true"),
    (Field::OverlapGradReduce, "false"),
    (Field::OverlapParamGather, "false"),
    (Field::MoeTokenDispatcherType, "alltoall"),
    (Field::MoeGroupedGemm, "true"),
    (Field::MoePermuteFusion, "false"),
    (Field::MoeRouterDtype, "fp32"),
    (Field::ExpertTensorParallelSize, EXPERTS_WHOLE),
];

/// Since when the command has those that earlier releases had otherwise.
const SINCE: [(Field, &str); 5] = [
    (Field::CrossEntropyLossFusion, " since 4.0"),
    (Field::AttentionBackend, " since 3.7"),
    (Field::MoeGroupedGemm, " since 3.10"),
    (Field::MoeRouterDtype, " since 3.6"),
    (Field::ExpertTensorParallelSize, " since 3.9"),
];

/// The number format of the checkpoint, which is bf16 for all models of its list, and gradients summed in fp32.
const PRECISION: &[(Field, &str)] = &[(Field::Bf16, "true"), (Field::AccumulateAllreduceGradsInFp32, "true")];

/// Arguments that 4.0 took away from the command (`megatron_args.py:MegatronArguments` of 3.3 to 3.12; those of 4.0 have
/// other names), so that a command which has one runs under an earlier release.
const OF_THREE: [&str; 8] = [
    "load",
    "save",
    "max-epochs",
    "num-workers",
    "no-initialization",
    "log-interval",
    "eval-interval",
    "save-interval",
];
/// An argument that the command has had since 3.10, the first release with grouped products of experts by default.
const OF_TEN: &str = "model";

const THREE: &str = "default of ms-swift's megatron command before 4.0, whose options the text has";

/// `expert_tensor_parallel_size` of 3.9.0 to 4.5.2; Megatron-LM's own default before, which is the tensor parallel size
/// (not an option until 3.8.0, where it was `None`).
const EXPERTS_WHOLE: &str = "1";

/// What the releases before 4.0 set otherwise: `cross_entropy_loss_fusion` is on since 4.0, `moe_grouped_gemm` since 3.10 (the
/// same file of 3.9.0, 3.10.0, 3.12.0 and 4.0.0).
fn of_three(reading: &mut Reading, arguments: &[Argument]) {
    let has = |name: &str| said(arguments, name).is_some();
    if !OF_THREE.iter().any(|name| has(name)) {
        return;
    }
    let says = |reading: &Reading, field: Field| reading.found.iter().any(|found| found.field == field);
    if !says(reading, Field::CrossEntropyLossFusion) {
        reading.take(Found::new(Field::CrossEntropyLossFusion, "false", Origin::Default).note(THREE));
    }
    if says(reading, Field::NumExperts) && !says(reading, Field::MoeGroupedGemm) && !has(OF_TEN) {
        let mut found = Found::new(Field::MoeGroupedGemm, String::new(), Origin::Script);
        found.hole = Some("the release of ms-swift".to_owned());
        reading.take(found);
        reading.questions.push(Question {
            asks: Asked::Setting(Field::MoeGroupedGemm),
            prompt: "Are the experts grouped into one product? ms-swift 3.10 to 3.12 does so by default, 3.9 and earlier \
                 only with --moe_grouped_gemm true"
                .to_owned(),
            choices: ["false", "true"].map(str::to_owned).to_vec(),
            proposal: Some("false".to_owned()),
        });
    }
    let cut = reading.value(Field::TensorModelParallelSize).filter(|size| !matches!(*size, "" | "1"));
    if let Some(cut) = cut.map(str::to_owned)
        && (says(reading, Field::NumExperts) || says(reading, Field::ExpertModelParallelSize))
        && !says(reading, Field::ExpertTensorParallelSize)
        && !has(OF_TEN)
    {
        let mut found = Found::new(Field::ExpertTensorParallelSize, String::new(), Origin::Script);
        found.hole = Some("the release of ms-swift".to_owned());
        reading.take(found);
        reading.questions.push(Question {
            asks: Asked::Setting(Field::ExpertTensorParallelSize),
            prompt: "How many ways is each expert cut? Without --expert_tensor_parallel_size, ms-swift 3.9 and later leave \
                 experts whole; earlier releases cut them like the rest of the model"
                .to_owned(),
            choices: vec![EXPERTS_WHOLE.to_owned(), cut.clone()],
            proposal: Some(cut),
        });
    }
}

/// Adds the command's defaults.
pub(super) fn defaults(reading: &mut Reading, arguments: &[Argument]) {
    of_three(reading, arguments);
    let says = |reading: &Reading, field: Field| reading.found.iter().any(|found| found.field == field);
    let fp16 = says(reading, Field::Fp16);
    let precision = if fp16 { &[][..] } else { PRECISION };
    for (field, value) in DEFAULTS.iter().chain(precision) {
        if !says(reading, *field) {
            let since = SINCE.iter().find(|(later, _)| later == field).map_or("", |(_, since)| since);
            let note = format!("default of ms-swift's megatron command{since}");
            reading.take(Found::new(*field, *value, Origin::Default).note(note));
        }
    }
}

/// A switch, the part of a model with a vision tower that it freezes, and its default.
const PARTS: [(&str, &str, bool); 3] =
    [("freeze-vit", TOWER, true), ("freeze-aligner", PROJECTOR, true), ("freeze-llm", DECODER, false)];

/// Whether the last option of this name is on, and its place; none if there is none.
fn said(arguments: &[Argument], name: &str) -> Option<(bool, Option<Span>)> {
    let at = arguments.iter().rposition(|word| {
        let name_of = word.text.strip_prefix("--").map(|body| body.split('=').next().unwrap_or(body));
        name_of.is_some_and(|own| own.replace('_', "-") == name)
    })?;
    let word = arguments.get(at)?;
    let value = match word.text.split_once('=') {
        Some((_, value)) => value,
        None => arguments.get(at + 1).map_or("true", |next| &next.text),
    };
    Some((!value.eq_ignore_ascii_case("false"), word.span))
}

/// Which parts of a model with a vision tower are trained. mcore-bridge builds the tower from transformers' modules on
/// the first stage of a pipeline (`mcore_bridge/model/mm_gpts/utils.py:HuggingFaceVit`), and adapters are added where
/// it is not frozen (`swift/megatron/utils/utils.py:get_multimodal_target_regex`).
pub(super) fn vision(reading: &mut Reading, arguments: &[Argument]) {
    const WHY: &str = "default of ms-swift's megatron command";
    let mut frozen = Vec::new();
    let mut place = None;
    for (name, part, usual) in PARTS {
        let stated = said(arguments, name);
        if stated.map_or(usual, |(yes, _)| yes) {
            frozen.push(part);
        }
        place = place.or(stated.map(|(_, span)| (name, span)));
    }
    let frozen = if frozen.is_empty() { "none".to_owned() } else { frozen.join(" ") };
    reading.keep(&|found| found.field != Field::FrozenModules);
    reading.take(match place {
        Some((name, span)) => {
            Found::new(Field::FrozenModules, frozen, Origin::Script).by(format!("--{name}"), span)
        }
        None => Found::new(Field::FrozenModules, frozen, Origin::Default).note(WHY),
    });
    // `vit_gradient_checkpointing` follows `freeze_vit` unless it is given (`MegatronArguments.__post_init__`), and
    // adds hooks if it is on (`swift/megatron/trainers/base.py:_prepare_vit_gradient_checkpointing`).
    let hooks = said(arguments, "vit-gradient-checkpointing").is_some_and(|(yes, _)| yes);
    let hooks = if hooks { "true" } else { "false" };
    for (field, value) in [(Field::VisionModules, "transformers"), (Field::VisionInputGrads, hooks)] {
        reading.take(Found::new(field, value, Origin::Default).note(WHY));
    }
}
