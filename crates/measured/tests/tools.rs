//! Real output of torch, transformers and nvidia-smi (recorded by `tests/record/run_tools.py`).
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use shardscope_measured::{Measured, PickleError, Remark, Tool, Unread, is_launch_text, may_hold, read};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/run_tools").join(name)
}

fn recorded(name: &str) -> Vec<u8> {
    std::fs::read(file(name)).expect("a recorded file")
}

/// The only tool whose output a file contains.
fn alone(bytes: &[u8]) -> Measured {
    let mut found = read(bytes).expect("something is said");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn truth() -> Value {
    serde_json::from_slice(&recorded("truth.json")).expect("JSON")
}

fn near(value: f64, wanted: f64) {
    assert!((value / wanted - 1.0).abs() < 1e-9, "{value} and {wanted}");
}

#[test]
fn the_trainer_s_progress_is_its_pace() {
    let found = alone(&recorded("trainer.log"));
    assert_eq!(found.tool, Tool::TrainerLog);
    let text = String::from_utf8(recorded("trainer.log")).unwrap();
    // Its own bar goes to 24, the evaluations' to 1: every rate once, where the bar has moved.
    let mut rates = Vec::new();
    let mut last = 0;
    for line in text.split(['\r', '\n']).filter(|line| line.contains("/24 [") && !line.contains('?')) {
        let done: u64 = line.split("| ").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
        let (_, rate) = line.rsplit_once(',').unwrap();
        let rate = rate.trim().trim_end_matches(']');
        let number = |unit| rate.strip_suffix(unit).map(|number| number.parse::<f64>().unwrap());
        if done > last {
            rates.push(number("s/it").or_else(|| number("it/s").map(|rate| 1.0 / rate)).unwrap());
            last = done;
        }
    }
    rates.sort_by(f64::total_cmp);
    let step = found.step.unwrap();
    assert_eq!(step.count, 24);
    near(step.seconds, rates[rates.len() / 2]);
}

#[test]
fn without_progress_the_whole_run_tells_its_mean() {
    let truth = truth();
    let state = alone(&recorded("trainer_state.json"));
    let step = state.step.unwrap();
    assert_eq!(Some(step.count), truth["trainer"]["steps"].as_u64());
    near(step.seconds, truth["trainer"]["train_runtime"].as_f64().unwrap() / 24.0);
    assert_eq!(state.remark, Some(Remark::Mean));
    for line in [
        "{'train_runtime': 44.055, 'train_samples_per_second': 435.819, 'train_steps_per_second': 6.81, 'train_loss': 0.38}",
        "{'train_runtime': '44.06', 'train_steps_per_second': '6.81', 'epoch': '1'}",
        "  train_steps_per_second   =       6.81",
    ] {
        near(alone(line.as_bytes()).step.unwrap().seconds, 1.0 / 6.81);
    }
}

#[test]
fn the_profiler_s_table_and_trace_time_its_steps() {
    let steps: Vec<f64> = truth()["profiler"]["steps_us"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step.as_f64().unwrap())
        .collect();
    let trace = alone(&recorded("profiler.json"));
    assert_eq!((trace.tool, trace.step.unwrap().count), (Tool::Profiler, 3));
    near(trace.step.unwrap().seconds, steps[1] / 1e6);
    let table = alone(&recorded("profiler.txt"));
    let mean = steps.iter().sum::<f64>() / 3.0 / 1e6;
    // The table has four to six digits.
    assert!((table.step.unwrap().seconds / mean - 1.0).abs() < 1e-3, "{table:?} {mean}");
    assert_eq!(table.step.unwrap().count, 3);
}

#[test]
fn torch_s_statistics_are_its_peaks() {
    let truth = truth();
    let wanted = |name: &str| truth["statistics"][name].as_u64().unwrap();
    let exact = alone(&recorded("memory_stats.txt"));
    assert_eq!((exact.allocated, exact.reserved), (Some(wanted("allocated")), Some(wanted("reserved"))));
    let summary = alone(&recorded("memory_summary.txt"));
    let floor = |name: &str| Some(wanted(name) >> 20 << 20);
    assert_eq!((summary.allocated, summary.reserved), (floor("allocated"), floor("reserved")));
    let older = b"| Allocated memory      |   10240 KB |   11264 KB |   0 B  |  0 B  |";
    assert_eq!(alone(older).allocated, Some(11 << 20));
}

#[test]
fn a_snapshot_tells_the_peak_of_its_history() {
    let truth = truth();
    let devices = truth["snapshot"].as_array().unwrap();
    let most = |name: &str| devices.iter().map(|device| device[name].as_u64().unwrap()).max();
    let pickled = alone(&recorded("snapshot.pickle"));
    assert_eq!(
        (pickled.tool, pickled.reserved, pickled.allocated),
        (Tool::MemorySnapshot, most("reserved"), most("allocated"))
    );
    assert_eq!(alone(&recorded("snapshot.json")), pickled);
    // Protocol 2, and without a history: what was held when it was made.
    let moment = alone(&recorded("snapshot-2.pickle"));
    let end = |place: usize| devices.iter().map(|device| device["end"][place].as_u64().unwrap()).max();
    assert_eq!((moment.reserved, moment.allocated), (end(0), end(1)));
    assert_eq!(moment.remark, Some(Remark::Moment));
}

#[test]
fn a_pickle_of_anything_else_is_refused_and_never_run() {
    assert_eq!(read(b"\x80\x04}\x94."), Err(Unread::NoSnapshot));
    let call = b"\x80\x02cposix\nsystem\nq\x00X\x04\x00\x00\x00echoq\x01\x85q\x02Rq\x03.";
    assert_eq!(read(call), Err(Unread::Pickle(PickleError::Runs("GLOBAL"))));
    assert_eq!(read(b"\x80\x04"), Err(Unread::Pickle(PickleError::Short)));
    assert_eq!(read(b"torchrun train.py\n"), Err(Unread::Nothing));
    assert_eq!(read(b""), Err(Unread::Nothing));
}

#[test]
fn nvidia_smi_s_table_csv_and_details_tell_what_is_in_use() {
    let used = |text: &str| alone(text.as_bytes()).device;
    let table = "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |                    0 |\n\
        | N/A   41C    P0             345W /  700W |   71234MiB /  81559MiB |     98%      Default |\n\
        | N/A   43C    P0             351W /  700W |   70001MiB /  81559MiB |     99%      Default |\n";
    assert_eq!(used(table), Some(71_234 << 20));
    let csv = "index, memory.used [MiB], memory.total [MiB]\n0, 71234 MiB, 81559 MiB\n1, [N/A], [N/A]\n2, 71300 MiB, 81559 MiB\n\n3, 99999 MiB, 1\n";
    assert_eq!(used(csv), Some(71_300 << 20));
    assert_eq!(used("memory.used [MiB]\n71234\n71235\n"), Some(71_235 << 20));
    let details = "    FB Memory Usage\n        Total                             : 81559 MiB\n        Reserved                          : 551 MiB\n        Used                              : 71234 MiB\n        Free                              : 9774 MiB\n    BAR1 Memory Usage\n        Total                             : 131072 MiB\n        Used                              : 5 MiB\n";
    assert_eq!(used(details), Some(71_234 << 20));
}

#[test]
fn several_tools_may_speak_in_one_log() {
    let megatron = " iteration 1/ 10 | elapsed time per iteration (ms): 9000.0 | throughput per GPU (TFLOP/s/GPU): 250.0 |\n \
        iteration 2/ 10 | elapsed time per iteration (ms): 5000.0 | throughput per GPU (TFLOP/s/GPU): 400.0 |\n\
        [Rank 0] (after 1 iterations) memory (MB) | allocated: 11000.0 | max allocated: 31000.0 | reserved: 33000.0 | max reserved: 34000.0\n";
    let both = [megatron.as_bytes(), &recorded("memory_summary.txt")].concat();
    let found = read(&both).unwrap();
    let tools: Vec<Tool> = found.iter().map(|one| one.tool).collect();
    assert_eq!(tools, [Tool::MegatronLog, Tool::MemorySummary]);
    assert_eq!((found[0].step.unwrap().seconds, found[0].tflops_per_gpu), (5.0, Some(400.0)));
    assert_eq!((found[0].allocated, found[0].reserved), (Some(31_000 << 20), Some(34_000 << 20)));
}

#[test]
fn what_has_figures_has_a_mark() {
    for name in [
        "memory_stats.txt",
        "memory_summary.txt",
        "profiler.json",
        "profiler.txt",
        "snapshot.json",
        "trainer.log",
        "trainer_state.json",
    ] {
        assert!(may_hold(&String::from_utf8_lossy(&recorded(name))), "{name}");
    }
    assert!(!may_hold("#!/bin/bash\ntorchrun --nnodes 4 pretrain_gpt.py --num-layers 24\n"));
    // A notebook with the output of its training, and a script that quotes nvidia-smi, start a run.
    assert!(is_launch_text("train.IPYNB", "{'train_runtime': 1.0}"));
    assert!(is_launch_text("run", "#!/bin/bash\n# 71234MiB / 81559MiB\n"));
    assert!(!is_launch_text("slurm-17.out", "  3%|3 | 30/1000 [02:30<1:20:50,  5.00s/it]"));
}

/// Whatever is cut out of a recorded file or changed in it: figures or an error, and the figures are finite.
#[test]
fn broken_files_end_in_an_answer_or_a_refusal() {
    let mut state = 20_u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below.max(1)
    };
    for name in [
        "snapshot-2.pickle",
        "snapshot.pickle",
        "trainer.log",
        "profiler.txt",
        "profiler.json",
        "memory_summary.txt",
    ] {
        let whole = recorded(name);
        for _ in 0..300 {
            let from = next(whole.len().saturating_sub(2_000));
            let mut bytes = [&whole[..2], &whole[from..(from + 2_000).min(whole.len())]].concat();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                bytes[at] = u8::try_from(next(256)).unwrap();
            }
            let all = read(&bytes).unwrap_or_default();
            assert!(
                all.is_empty() || bytes.starts_with(&[0x80]) || may_hold(&String::from_utf8_lossy(&bytes))
            );
            for found in all {
                assert!(
                    found.step.is_none_or(|step| step.seconds > 0.0 && step.seconds.is_finite()),
                    "{found:?}"
                );
            }
        }
    }
}
