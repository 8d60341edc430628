//! Number formats of weights, activations and gradients.

use super::table::Table;
use crate::SettingValue::{Bool, Text};
use shardscope_catalog as catalog;
use shardscope_plan::{Field, Fp8, Fp8Recipe, NumberFormat, Software};
use shardscope_source::Code;

pub(super) fn number(name: &str) -> Option<NumberFormat> {
    match name {
        "fp32" => Some(NumberFormat::Fp32),
        "bf16" => Some(NumberFormat::Bf16),
        "fp16" => Some(NumberFormat::Fp16),
        "fp8" => Some(NumberFormat::Fp8),
        _ => None,
    }
}

/// CUDA's compute capability from which on there is bf16: Ampere's.
const AMPERE: u64 = 8;

/// Whether the accelerator is an NVIDIA one without bf16.
pub(super) fn lacks_bf16(table: &Table) -> bool {
    let capability = catalog::accelerator(table.word(Field::Accelerator)).and_then(|found| found.capability);
    capability.is_some_and(|capability| capability < AMPERE)
}

/// unsloth trains in fp16 where the accelerator has no bf16 (`unsloth/models/llama.py:from_pretrained`). What its functions keep has the
/// same bytes: xFormers runs CUTLASS's attention there, which keeps what flash attention does but for the random numbers' state.
pub(super) fn of_unsloth(table: &mut Table, software: Software) {
    if software != Software::Unsloth || !lacks_bf16(table) || !table.on(Field::Bf16) {
        return;
    }
    let rule = "unsloth runs in fp16 on accelerators without bf16";
    table.overrule(Field::Bf16, Bool(false), rule);
    table.overrule(Field::Fp16, Bool(true), rule);
    if table.says(Field::ParamsDtype, "bf16") {
        table.overrule(Field::ParamsDtype, Text("fp16".to_owned()), rule);
    }
    if table.says(Field::Autocast, "bf16") {
        table.overrule(Field::Autocast, Text("fp16".to_owned()), rule);
    }
}

pub(super) fn params_dtype(table: &mut Table) -> NumberFormat {
    // A stated dtype outranks the two flags, which then contradict nothing.
    let first = !table.has(Field::ParamsDtype);
    if first && table.on(Field::Bf16) && table.on(Field::Fp16) {
        let message = "bf16 and fp16 exclude each other".to_owned();
        table.refuse(Code::TwoPrecisions, &[Field::Fp16, Field::Bf16], message, "");
    }
    let (name, rule) = match (table.on(Field::Bf16), table.on(Field::Fp16)) {
        (true, _) => ("bf16", "--bf16"),
        (false, true) => ("fp16", "--fp16"),
        (false, false) => ("fp32", "the default: neither --bf16 nor --fp16"),
    };
    // A default and not a rule where neither flag is given, so that the table shows that nobody asked for it.
    if name == "fp32" {
        table.default(Field::ParamsDtype, Text(name.to_owned()), rule);
    }
    table.derive_word(Field::ParamsDtype, name, rule);
    number(table.word(Field::ParamsDtype)).unwrap_or(NumberFormat::Fp32)
}

/// Format of gradient accumulation and reduction (`arguments.py:validate_args`).
pub(super) fn grads_dtype(table: &mut Table, software: Software, params: NumberFormat) -> NumberFormat {
    // Megatron turns fp32 accumulation on by itself under --bf16: a bf16 sum over many micro-batches loses its small
    // summands.
    let wide = params == NumberFormat::Bf16
        && !software.semantics().eager_modules
        && !table.on(Field::GradReduceInBf16)
        && matches!(table.word(Field::MainGradsDtype), "" | "fp32");
    if table.on(Field::GradReduceInBf16) && params == NumberFormat::Bf16 {
        // Overruled: the flag turns accumulation in fp32 off even where the text states it.
        let rule = "off with --grad-reduce-in-bf16";
        table.overrule(Field::AccumulateAllreduceGradsInFp32, Bool(false), rule);
    }
    if wide {
        let rule = "on with --bf16, unless gradients are reduced in bf16";
        table.derive(Field::AccumulateAllreduceGradsInFp32, Bool(true), rule);
    }
    table.default(Field::AccumulateAllreduceGradsInFp32, Bool(false), "off unless asked for");
    let dtype = if table.on(Field::AccumulateAllreduceGradsInFp32) { NumberFormat::Fp32 } else { params };
    let rule = "fp32 with accumulate_allreduce_grads_in_fp32, else as the weights";
    table.derive_word(Field::GradsDtype, dtype.name(), rule);
    number(table.word(Field::GradsDtype)).unwrap_or(dtype)
}

pub(super) fn fp8(table: &mut Table) -> Option<Fp8> {
    let four = !table.word(Field::Fp4).is_empty();
    if four && table.has(Field::Fp8) {
        let message = "fp4 and fp8 matmuls exclude each other".to_owned();
        table.refuse(Code::TwoPrecisions, &[Field::Fp4, Field::Fp8], message, "");
    }
    let format = table.word(Field::Fp8);
    if format.is_empty() && !four {
        return None;
    }
    // NVFP4 is a recipe of its own, which `--fp8-recipe` cannot name.
    let recipe = if four { Some(Fp8Recipe::Nvfp4) } else { Fp8Recipe::named(table.word(Field::Fp8Recipe)) };
    Some(Fp8 {
        format: if four { "e2m1".to_owned() } else { format.to_owned() },
        recipe: recipe.unwrap_or_default(),
        param_gather: table.on(Field::Fp8ParamGather),
    })
}
