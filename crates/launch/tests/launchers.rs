//! Machines by the launchers of clouds and clusters.

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

const OPTIONS: &str = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1 --bf16 \
    --vocab-size 1000";

fn script(text: &str) -> Resolution {
    let source = Source::new(text);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[track_caller]
fn machines(text: &str, expected: (&str, &str)) {
    let resolution = script(text);
    let told = |field| {
        let setting = resolution.setting(field);
        setting.map_or_else(String::new, |setting| setting.value.written())
    };
    let found = (told(Field::NumNodes), told(Field::GpusPerNode));
    assert_eq!((found.0.as_str(), found.1.as_str()), expected, "{text}");
}

#[track_caller]
fn asks(text: &str, expected: &[(&str, &str)]) {
    let resolution = script(text);
    assert!(resolution.plan.is_none(), "{text}");
    let asked: Vec<(&str, &str)> = resolution
        .questions
        .iter()
        .map(|asked| (asked.name.as_str(), asked.proposal.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(asked, expected, "{text}");
}

#[test]
fn accelerate_as_a_module_is_a_launcher() {
    let line = format!(
        "python -u -m accelerate.commands.launch --num_machines 2 --num_processes 16 pretrain_gpt.py {OPTIONS}"
    );
    machines(&line, ("2", "8"));
}

#[test]
fn ranks_that_the_program_is_told_are_the_world() {
    machines(&format!("mpirun -np 16 python pretrain_gpt.py --world-size 16 {OPTIONS}"), ("2", "8"));
    let layout = "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 2";
    let line = format!("python pretrain_gpt.py --world-size $OMPI_COMM_WORLD_SIZE {layout} {OPTIONS}");
    asks(&line, &[("world_size", "8")]);
}

#[test]
fn a_layout_larger_than_the_machines_asks_for_as_many_as_it_fills() {
    let layout = "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --global-batch-size 48";
    asks(&format!("torchrun --nproc_per_node 8 pretrain_gpt.py {layout} {OPTIONS}"), &[("num_nodes", "2")]);
}
