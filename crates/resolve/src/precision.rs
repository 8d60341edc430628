//! Number formats of weights, activations and gradients.

use super::table::Table;
use crate::Origin;
use crate::SettingValue::Bool;
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Fp8, Fp8Recipe, NumberFormat, Software, Word, word};
use shardscope_source::Code;

/// CUDA compute capability from which bf16 is available: Ampere's.
const AMPERE: u64 = 8;

/// Whether the accelerator is from NVIDIA and has no bf16.
pub(super) fn lacks_bf16(table: &Table) -> bool {
    let capability = catalog::accelerator(table.word(Field::Accelerator)).and_then(|found| found.capability);
    capability.is_some_and(|capability| capability < AMPERE)
}

/// unsloth trains in fp16 if the accelerator has no bf16 (`unsloth/models/llama.py:from_pretrained`). Its functions
/// save the same number of bytes: xFormers runs CUTLASS's attention there, which saves the same as flash attention
/// except for the RNG state.
pub(super) fn of_unsloth(table: &mut Table, software: Software) {
    masks_of_unsloth(table, software);
    if software == Software::Unsloth && overflows_fp16(table) {
        return in_fp32(table);
    }
    if software == Software::Unsloth && table.is(word::TrainType::Full) {
        return of_all_weights(table);
    }
    if software != Software::Unsloth || !lacks_bf16(table) || !table.on(Field::Bf16) {
        return;
    }
    let rule = "unsloth runs in fp16 on accelerators without bf16";
    table.overrule(Field::Bf16, Bool(false), rule);
    table.overrule(Field::Fp16, Bool(true), rule);
    if table.is_format(Field::ParamsDtype, NumberFormat::Bf16) {
        table.overrule(Field::ParamsDtype, NumberFormat::Fp16.value(), rule);
    }
    if table.is(word::Autocast::Bf16) {
        table.overrule(Field::Autocast, word::Autocast::Fp16.value(), rule);
    }
}

/// With full training under unsloth, weights are in fp32 if there is no bf16, with products in fp16, unless their
/// format was requested, which is then used without autocast; on other accelerators they are in bf16 even if fp16 is
/// requested (`unsloth_zoo/training_utils.py:prepare_model_for_training`, `unsloth/models/rl.py`, `user_float32`).
fn of_all_weights(table: &mut Table) {
    let stated = table.get(Field::ParamsDtype).is_some_and(|setting| setting.origin == Origin::Script);
    let asked = stated && table.is_format(Field::ParamsDtype, NumberFormat::Fp32);
    let half = table.on(Field::Fp16);
    let rule =
        "unsloth holds weights that all train in fp32 on accelerators without bf16, and in bf16 on others";
    if lacks_bf16(table) {
        let products = if asked && !half { word::Autocast::None } else { word::Autocast::Fp16 };
        table.overrule(Field::Bf16, Bool(false), rule);
        table.overrule(Field::Fp16, Bool(products == word::Autocast::Fp16), rule);
        table.overrule(Field::ParamsDtype, NumberFormat::Fp32.value(), rule);
        table.overrule(Field::Autocast, products.value(), rule);
    } else if half && !table.is_format(Field::ParamsDtype, NumberFormat::Fp32) {
        table.overrule(Field::Bf16, Bool(true), rule);
        table.overrule(Field::Fp16, Bool(false), rule);
        table.overrule(Field::ParamsDtype, NumberFormat::Bf16.value(), rule);
        table.overrule(Field::Autocast, word::Autocast::Bf16.value(), rule);
    }
}

/// Whether the model is on unsloth's list of those whose residual stream overflows fp16, and there is no bf16: of the
/// supported ones this is Gemma 3 (`unsloth_zoo/model_lists.py:FORCE_FLOAT32`), which uses flex attention elsewhere.
pub(super) fn overflows_fp16(table: &Table) -> bool {
    let flex = table.is(word::AttnImplementation::FlexAttention);
    table.on(Field::CompiledLayers) && lacks_bf16(table) && (flex || table.on(Field::Fp32ResidualConnection))
}

/// Its weights are in fp16, its residual stream and attention in fp32, and autocast is off, whatever the trainer is
/// told (`unsloth/models/rl.py`, "Switching to float32 training"; `unsloth_zoo/temporary_patches/gemma.py`). Flex
/// attention needs Ampere (`unsloth/models/_utils.py:_FLEX_ATTENTION_MIN_CAPABILITY`).
fn in_fp32(table: &mut Table) {
    let rule = "unsloth runs this model's stream and attention in fp32 where there is no bf16";
    for (field, on) in [(Field::Bf16, false), (Field::Fp16, true), (Field::Fp32ResidualConnection, true)] {
        table.overrule(field, Bool(on), rule);
    }
    for (field, value) in [
        (Field::ParamsDtype, NumberFormat::Fp16.value()),
        (Field::Autocast, word::Autocast::None.value()),
        (Field::AttnImplementation, word::AttnImplementation::Sdpa.value()),
        (Field::AttentionKernel, word::AttentionKernel::Sdpa.value()),
    ] {
        table.overrule(field, value, rule);
    }
}

/// Micro-batches with padding at the end need no mask for a causal flash kernel, which SDPA has from Ampere on
/// (`unsloth_zoo/temporary_patches/misc.py:_maskless_causal_arguments`, `_flash_sdpa_takes_causal`).
fn masks_of_unsloth(table: &mut Table, software: Software) {
    let chosen = table.get(Field::PaddingMask).is_some_and(|setting| setting.origin == Origin::Derived);
    let left_out = software == Software::Unsloth
        && table.on(Field::CompiledLayers)
        && table.is(word::AttnImplementation::Sdpa)
        && !table.on(Field::VisionTower)
        && !table.on(Field::PaddingMask);
    if chosen && left_out && lacks_bf16(table) {
        let rule =
            "SDPA has a causal flash kernel from Ampere on; without it padded micro-batches keep their mask";
        table.overrule(Field::PaddingMask, Bool(true), rule);
    }
}

pub(super) fn params_dtype(table: &mut Table) -> NumberFormat {
    // A stated dtype overrides the two flags, which then do not contradict each other.
    let first = !table.has(Field::ParamsDtype);
    if first && table.on(Field::Bf16) && table.on(Field::Fp16) {
        let message = "bf16 and fp16 exclude each other".to_owned();
        table.refuse(Code::TwoPrecisions, &[Field::Fp16, Field::Bf16], message, "");
    }
    let (dtype, rule) = match (table.on(Field::Bf16), table.on(Field::Fp16)) {
        (true, _) => (NumberFormat::Bf16, "--bf16"),
        (false, true) => (NumberFormat::Fp16, "--fp16"),
        (false, false) => (NumberFormat::Fp32, "the default: neither --bf16 nor --fp16"),
    };
    // A default and not a rule if neither flag is given, so that the table shows that nobody requested it.
    if dtype == NumberFormat::Fp32 {
        table.default(Field::ParamsDtype, dtype.value(), rule);
    }
    table.derive(Field::ParamsDtype, dtype.value(), rule);
    table.format(Field::ParamsDtype).unwrap_or(NumberFormat::Fp32)
}

/// Whether DeepSpeed's bf16 optimizer trains bf16 weights under transformers, as it does where nothing is sharded: with states in
/// shards and gradients summed in fp32 (`deepspeed/runtime/engine.py:get_data_types, _do_optimizer_sanity_check`).
pub(super) fn sums_apart(table: &Table) -> bool {
    table.is(Software::HfTransformers)
        && table.is(word::DataParallelEngine::DeepSpeed)
        && table.number(Field::ZeroStage) == 0
        && table.format(Field::ParamsDtype) == Some(NumberFormat::Bf16)
}

/// Format of gradient accumulation and reduction (`arguments.py:validate_args`).
pub(super) fn grads_dtype(table: &mut Table, software: Software, params: NumberFormat) -> NumberFormat {
    // Megatron turns on fp32 accumulation by itself under --bf16: a bf16 sum over many micro-batches loses small
    // summands.
    let wide = params == NumberFormat::Bf16
        && !software.semantics().eager_modules
        && !table.on(Field::GradReduceInBf16)
        && matches!(table.format(Field::MainGradsDtype), None | Some(NumberFormat::Fp32));
    if table.on(Field::GradReduceInBf16) && params == NumberFormat::Bf16 {
        // Overruled: the flag turns off fp32 accumulation even if the text states it.
        let rule = "off with --grad-reduce-in-bf16";
        table.overrule(Field::AccumulateAllreduceGradsInFp32, Bool(false), rule);
    }
    if wide {
        let rule = "on with --bf16, unless gradients are reduced in bf16";
        table.derive(Field::AccumulateAllreduceGradsInFp32, Bool(true), rule);
    }
    table.default(Field::AccumulateAllreduceGradsInFp32, Bool(false), "off unless asked for");
    let (dtype, rule) = if sums_apart(table) {
        (NumberFormat::Fp32, "DeepSpeed's bf16 optimizer sums gradients in fp32 at stage 0")
    } else {
        let wide = table.on(Field::AccumulateAllreduceGradsInFp32);
        let dtype = if wide { NumberFormat::Fp32 } else { params };
        (dtype, "fp32 with accumulate_allreduce_grads_in_fp32, else as the weights")
    };
    table.derive(Field::GradsDtype, dtype.value(), rule);
    table.format(Field::GradsDtype).unwrap_or(dtype)
}

pub(super) fn fp8(table: &mut Table) -> Option<Fp8> {
    let four = table.has(Field::Fp4);
    if four && table.has(Field::Fp8) {
        let message = "fp4 and fp8 matmuls exclude each other".to_owned();
        table.refuse(Code::TwoPrecisions, &[Field::Fp4, Field::Fp8], message, "");
    }
    let format = if four { word::Fp4::E2m1.word() } else { table.chosen::<word::Fp8>()?.word() };
    // NVFP4 is a separate recipe, which `--fp8-recipe` cannot name.
    let recipe = if four { Some(Fp8Recipe::Nvfp4) } else { table.chosen() };
    Some(Fp8 {
        format: format.to_owned(),
        recipe: recipe.unwrap_or_default(),
        param_gather: table.on(Field::Fp8ParamGather),
    })
}
