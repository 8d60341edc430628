//! Files of only a launcher or an engine: templates that say how processes are distributed and nothing about what they
//! train.

use super::formats::{Role, Text};
use super::{Found, Origin, Reading};
use shardscope_plan::Field;

/// The fields that give the number of accelerators.
const MACHINES: [Field; 3] = [Field::WorldSize, Field::NumNodes, Field::GpusPerNode];

/// If such a file also leaves the machines, the ZeRO stage or the weights' format open, the batch is not asked for in
/// addition to model and length: it is set to one sequence, the minimum of a step, as a default that the user sees and
/// can change.
pub(super) fn complete(texts: &mut [Text]) {
    let of_launcher = |text: &Text| {
        let role = text.format.map(|format| format.role());
        matches!(role, Some(Role::Launcher | Role::Engine))
    };
    if !texts.iter().all(of_launcher) {
        return;
    }
    let said = |field: Field| texts.iter().any(|text| found(&text.reading, field).is_some());
    let named = |field: Field| texts.iter().any(|text| text.reading.value(field).is_some());
    let batch = [Field::MicroBatchSize, Field::GlobalBatchSize, Field::SeqLength].into_iter().any(said);
    let complete =
        [Field::ZeroStage, Field::ParamsDtype].into_iter().all(|field| named(field) || !said(field));
    if batch || complete && MACHINES.into_iter().any(named) {
        return;
    }
    if let Some(text) = texts.last_mut() {
        let note = "one sequence: these files leave the batch to the program that they launch";
        text.reading.take(Found::new(Field::MicroBatchSize, "1", Origin::Default).note(note));
    }
}

fn found(reading: &Reading, field: Field) -> Option<&Found> {
    reading.found.iter().find(|found| found.field == field)
}

#[cfg(test)]
mod tests {
    use crate::{Request, Resolution, SettingValue, read};
    use shardscope_bash::Environment;
    use shardscope_plan::Field;
    use shardscope_source::Source;

    fn resolved(text: &str, overrides: &[(&str, &str)]) -> Resolution {
        let source = Source::from_files([("config.yaml", text)]);
        let overrides: Vec<(String, String)> =
            overrides.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides })
    }

    fn asked(resolution: &Resolution) -> Vec<&str> {
        resolution.questions.iter().map(|question| question.name()).collect()
    }

    /// Templates of accelerate (`examples/config_yaml_templates`, `examples/slurm/fsdp_config.yaml`).
    #[test]
    fn templates_ask_three_questions_at_most() {
        let fsdp = "distributed_type: FSDP\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_offload_params: false\n";
        let open = resolved(fsdp, &[]);
        assert_eq!(asked(&open), ["model", "seq_length", "world_size"]);
        let answers = [("model", "Qwen/Qwen2.5-7B"), ("seq_length", "4096"), ("world_size", "8")];
        let plan = resolved(fsdp, &answers).plan.expect("a plan");
        assert_eq!((plan.recipe().micro_batch_size, plan.cluster().gpus()), (1, 8));
        let engine = "distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: a/zero_stage1_config.json\n";
        assert_eq!(asked(&resolved(engine, &[])), ["zero_stage", "model", "seq_length"]);
        // If the number of questions allows it, the batch is asked for.
        let whole = format!("{fsdp}num_processes: 8\n");
        assert_eq!(asked(&resolved(&whole, &[])), ["model", "seq_length", "micro_batch_size"]);
    }

    /// `accelerate launch` starts one process if the configuration says so (`commands/launch.py:simple_launcher`).
    #[test]
    fn accelerate_without_a_distributed_type_runs_one_process() {
        let open = resolved("distributed_type: 'NO'\nmixed_precision: bf16\n", &[]);
        assert_eq!(asked(&open), ["params_dtype", "model", "seq_length"]);
        let world = open.setting(Field::WorldSize);
        assert_eq!(world.map(|setting| setting.value.clone()), Some(SettingValue::Int(1)));
    }
}
