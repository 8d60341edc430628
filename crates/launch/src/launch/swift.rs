//! What ms-swift's `megatron` command sets if the text says nothing
//! (`swift/megatron/arguments/megatron_args.py:MegatronArguments`, 4.x of August 2026).

use crate::{Argument, Found, Origin, Reading};
use shardscope_plan::Field;
use shardscope_resolve::{DECODER, PROJECTOR, TOWER};

const DEFAULTS: &[(Field, &str)] = &[
    (Field::UseDistributedOptimizer, "true"),
    (Field::MicroBatchSize, "1"),
    (Field::GlobalBatchSize, "16"),
    (Field::RecomputeGranularity, "selective"),
    (Field::ApplyRopeFusion, "false"),
    (Field::CrossEntropyLossFusion, "true"),
    (Field::AttentionBackend, "flash"),
    (Field::AttentionSoftmaxInFp32, "true"),
    (Field::OverlapGradReduce, "false"),
    (Field::OverlapParamGather, "false"),
    (Field::MoeTokenDispatcherType, "alltoall"),
    (Field::MoeGroupedGemm, "true"),
    (Field::MoePermuteFusion, "false"),
    (Field::MoeRouterDtype, "fp32"),
];

/// The number format of the checkpoint, which is bf16 for all models of its list, and gradients summed in fp32.
const PRECISION: &[(Field, &str)] = &[(Field::Bf16, "true"), (Field::AccumulateAllreduceGradsInFp32, "true")];

/// Adds the command's defaults.
pub(super) fn defaults(reading: &mut Reading) {
    let says = |reading: &Reading, field: Field| reading.found.iter().any(|found| found.field == field);
    let fp16 = says(reading, Field::Fp16);
    let precision = if fp16 { &[][..] } else { PRECISION };
    for (field, value) in DEFAULTS.iter().chain(precision) {
        if !says(reading, *field) {
            reading.take(
                Found::new(*field, *value, Origin::Default).note("default of ms-swift's megatron command"),
            );
        }
    }
}

/// A switch, the part of a model with a vision tower that it freezes, and its default.
const PARTS: [(&str, &str, bool); 3] =
    [("freeze-vit", TOWER, true), ("freeze-aligner", PROJECTOR, true), ("freeze-llm", DECODER, false)];

/// Which parts of a model with a vision tower are trained. mcore-bridge builds the tower from transformers' modules on
/// the first stage of a pipeline (`mcore_bridge/model/mm_gpts/utils.py:HuggingFaceVit`), and adapters are added where
/// it is not frozen (`swift/megatron/utils/utils.py:get_multimodal_target_regex`).
pub(super) fn vision(reading: &mut Reading, arguments: &[Argument]) {
    const WHY: &str = "default of ms-swift's megatron command";
    let said = |name: &str| {
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
    };
    let mut frozen = Vec::new();
    let mut place = None;
    for (name, part, usual) in PARTS {
        let stated = said(name);
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
    let hooks = said("vit-gradient-checkpointing").is_some_and(|(yes, _)| yes);
    let hooks = if hooks { "true" } else { "false" };
    for (field, value) in [(Field::VisionModules, "transformers"), (Field::VisionInputGrads, hooks)] {
        reading.take(Found::new(field, value, Origin::Default).note(WHY));
    }
}
