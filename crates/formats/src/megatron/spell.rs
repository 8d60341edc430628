//! A setting as a flag of the command line.

use super::flags::{self, Arity, Flag};
use super::renamed;
use shardscope_plan::Field;

/// The words that set a value on the command line: the flag with its value; `None` if no flag does. `legacy`: for
/// models of 2023 and earlier, whose flags may have been removed since.
#[must_use]
pub fn spell(field: Field, value: &str, legacy: bool) -> Option<Vec<String>> {
    if let Some(words) = special(field, value) {
        return words;
    }
    let today = |flag: &Flag| (flag.until.is_none() || legacy) && renamed::find(flag.name).is_none();
    let fits = |flag: &Flag| match flag.arity {
        Arity::On => value == "true",
        Arity::Off => value == "false",
        Arity::Switch => (value == "false") == flag.name.starts_with("no-"),
        Arity::One | Arity::Several => !value.is_empty(),
    };
    // The newest flag first: `--attention-backend` before the flags that it replaced.
    let found = flags::of_setting(field.name())
        .filter(|flag| today(flag) && fits(flag))
        .min_by_key(|flag| flag.until.is_some());
    let Some(flag) = found else { return if legacy { older(field, value) } else { None } };
    let mut words = vec![format!("--{}", flag.name)];
    match flag.arity {
        Arity::One => words.push(value.to_owned()),
        Arity::Several => words.extend(value.split_ascii_whitespace().map(str::to_owned)),
        Arity::On | Arity::Off | Arity::Switch => {}
    }
    Some(words)
}

/// Settings that are not written as a flag of their own name.
fn special(field: Field, value: &str) -> Option<Option<Vec<String>>> {
    let words = |line: &str| Some(line.split_ascii_whitespace().map(str::to_owned).collect());
    Some(match (field, value) {
        (Field::Software, "megatron_legacy") => words("--use-legacy-models"),
        (Field::Software, "megatron_core_local") => words("--transformer-impl local"),
        (Field::Software, "megatron_core_te") => words("--transformer-impl transformer_engine"),
        (Field::Software, "megatron_deepspeed") => words("--deepspeed"),
        // The installed release of flash-attn decides.
        (Field::AttentionKernel, "flash3" | "flash4") => words("--attention-backend flash"),
        (Field::AttentionKernel, kernel) => words(&format!("--attention-backend {kernel}")),
        (Field::VirtualPipelineModelParallelSize, chunks) => {
            words(&format!("--num-virtual-stages-per-pipeline-rank {chunks}"))
        }
        _ => return None,
    })
}

/// A former flag that states exactly this.
fn older(field: Field, value: &str) -> Option<Vec<String>> {
    let renamed = renamed::stating(field, value)?;
    Some(vec![format!("--{renamed}")])
}

#[cfg(test)]
mod tests {
    use super::spell;
    use shardscope_plan::Field;

    #[track_caller]
    fn check(field: Field, value: &str, legacy: bool, expected: Option<&str>) {
        assert_eq!(spell(field, value, legacy).map(|words| words.join(" ")).as_deref(), expected);
    }

    #[test]
    fn settings_are_said_by_todays_flags() {
        check(Field::NumLayers, "24", false, Some("--num-layers 24"));
        check(Field::SequenceParallel, "true", false, Some("--sequence-parallel"));
        check(Field::SequenceParallel, "false", false, None);
        check(Field::AddBiasLinear, "false", false, Some("--disable-bias-linear"));
        check(Field::Fp8, "hybrid", false, Some("--fp8-format hybrid"));
        check(Field::ApplyRopeFusion, "false", false, Some("--no-rope-fusion"));
        check(Field::RecomputeModules, "core_attn mlp", false, Some("--recompute-modules core_attn mlp"));
        check(Field::OffloadModules, "core_attn", false, Some("--offload-modules core_attn"));
        let switch = Some("--fine-grained-activation-offloading");
        check(Field::FineGrainedActivationOffloading, "true", false, switch);
        check(Field::ApplyQueryKeyLayerScaling, "false", true, Some("--no-query-key-layer-scaling"));
        check(Field::DataParallelSize, "4", false, None);
    }
}
