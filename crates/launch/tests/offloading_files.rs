//! Missing files that configure offloading: what their names show, what is asked, and what applies once they are
//! pasted.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

/// LLaMA-Factory's `examples/train_full/llama3_full_sft.yaml`, shortened, with another file of its folder
/// `examples/deepspeed`.
fn settings(file: &str) -> String {
    format!(
        "model_name_or_path: Qwen/Qwen2.5-72B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: full\n\
         deepspeed: examples/deepspeed/{file}\ntemplate: qwen\ncutoff_len: 2048\nper_device_train_batch_size: 1\n\
         gradient_accumulation_steps: 2\nbf16: true\n"
    )
}

fn resolved(files: &[(&str, &str)], set: &[(&str, &str)]) -> Resolution {
    let source = Source::from_files(files.iter().copied());
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&Request { source: &source, environment: &Environment::default(), overrides: &set })
}

fn asked(resolution: &Resolution) -> Vec<(&str, Option<&str>)> {
    resolution.questions.iter().map(|one| (one.name(), one.proposal.as_deref())).collect()
}

fn is_on(resolution: &Resolution, field: Field) -> bool {
    resolution.setting(field).is_some_and(|setting| setting.value.written() == "true")
}

const GPUS: (&str, &str) = ("world_size", "8");

#[test]
fn a_file_that_offloads_by_its_name_offloads_optimizer_states_and_asks_for_weights() {
    let text = settings("ds_z3_offload_config.json");
    let open = resolved(&[("sft.yaml", &text)], &[GPUS]);
    assert!(open.plan.is_none());
    assert_eq!(asked(&open), [("zero_stage", Some("3")), ("offload_param", Some("true"))]);
    for (param, weights) in [("true", true), ("false", false)] {
        let read = resolved(&[("sft.yaml", &text)], &[GPUS, ("zero_stage", "3"), ("offload_param", param)]);
        let plan = read.plan.as_ref().expect("a plan");
        assert!(is_on(&read, Field::OffloadOptimizer));
        let offload = &plan.recipe().offload;
        assert_eq!((offload.optimizer, offload.parameters), (true, weights));
    }
    // Weights are only offloaded at stage 3.
    let second = resolved(&[("sft.yaml", &settings("ds_z2_offload_config.json"))], &[GPUS]);
    assert_eq!(asked(&second), [("zero_stage", Some("2"))]);
    assert!(is_on(&second, Field::OffloadOptimizer));
    // A partial offload may cover only the optimizer states or more.
    let part = resolved(&[("sft.yaml", &settings("ds_z3_partial_offload_config.json"))], &[GPUS]);
    assert_eq!(asked(&part), [("zero_stage", Some("3")), ("offload_param", None)]);
    let states = resolved(&[("sft.yaml", &settings("stage3_offload_optim_accelerate.conf"))], &[GPUS]);
    assert_eq!(asked(&states), [("zero_stage", Some("3")), ("offload_param", Some("false"))]);
}

#[test]
fn a_file_that_does_not_offload_by_its_name_asks_for_its_stage_alone() {
    for file in ["ds_z3_config.json", "stage3_no_offloading_accelerate.conf", "zero3_wo_offload.json"] {
        let read = resolved(&[("sft.yaml", &settings(file))], &[GPUS]);
        assert_eq!(asked(&read), [("zero_stage", Some("3"))], "{file}");
        assert!(!is_on(&read, Field::OffloadOptimizer), "{file}");
    }
}

#[test]
fn the_file_itself_counts_and_not_its_name() {
    let text = settings("ds_z3_offload_config.json");
    let weights_stay = "{\"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": {\"enabled\": \"auto\"}, \
        \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}}}";
    let all_stays = "{\"train_micro_batch_size_per_gpu\": \"auto\", \"bf16\": {\"enabled\": \"auto\"}, \
        \"zero_optimization\": {\"stage\": 3}}";
    for (file, optimizer) in [(weights_stay, true), (all_stays, false)] {
        let read = resolved(&[("sft.yaml", &text), ("ds_z3_offload_config.json", file)], &[GPUS]);
        assert_eq!(asked(&read), [], "{file}");
        let plan = read.plan.as_ref().expect("a plan");
        let offload = &plan.recipe().offload;
        assert_eq!((offload.optimizer, offload.parameters), (optimizer, false), "{file}");
    }
}
