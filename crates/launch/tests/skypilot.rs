//! Accelerators that a SkyPilot task requests.

#![allow(clippy::expect_used, reason = "a test that cannot go on should stop with the value at hand")]

use shardscope_bash::Environment;
use shardscope_launch::{Request, Resolution, read};
use shardscope_plan::Field;
use shardscope_source::Source;

fn task(accelerators: &str) -> Resolution {
    let text = format!(
        "resources:\n  accelerators: {accelerators}\nrun: |\n  torchrun --nproc_per_node $SKYPILOT_NUM_GPUS_PER_NODE train.py --model_name_or_path Qwen/Qwen3-8B \
         --per_device_train_batch_size 1 --max_length 2048 --logging_steps 1 --bf16 True\n"
    );
    let source = Source::from_files([("task.yaml", text.as_str())]);
    read(&Request { source: &source, environment: &Environment::default(), overrides: &[] })
}

#[test]
fn accelerators_are_counted_and_named() {
    for (written, name, count) in [
        ("H100:8", "H100-SXM", "8"),
        ("A100:4", "A100-SXM-40GB", "4"),
        ("A100-80GB:4", "A100-SXM-80GB", "4"),
        ("{H200: 2}", "H200-SXM", "2"),
        ("V100", "V100-SXM2-16GB", "1"),
        ("L4:1", "L4", "1"),
    ] {
        let read = task(written);
        let shown = [Field::Accelerator, Field::GpusPerNode]
            .map(|field| read.setting(field).map(|setting| setting.value.written()).unwrap_or_default());
        assert_eq!(shown, [name, count], "{written}");
    }
    // One of several: the number is known, but not which.
    let either = task("[H100:8, A100-80GB:8]");
    assert!(either.setting(Field::Accelerator).is_none_or(|setting| setting.span.is_none()));
    for unknown in ["A10G:4", "L40:1", "K80"] {
        assert!(task(unknown).plan.is_none(), "{unknown}");
    }
}
