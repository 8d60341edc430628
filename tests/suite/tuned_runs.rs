//! Memory that ms-swift's example scripts state in comments, compared with predictions. The figures are rounded, the
//! device is not named, and samples are as long as in the data: a prediction assumes full length, which only holds for
//! packed rows. Nothing is fitted to these rows.

use shardscope::estimate::memory;
use shardscope::launch::resolve;

struct Row {
    script: String,
    measured: f64,
    is_packed: bool,
    predicted: f64,
}

impl Row {
    /// Relative error; negative if less is predicted than was measured.
    fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

fn rows() -> Vec<Row> {
    let path = format!("{}/tests/data/finetuning/ms_swift.tsv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [script, measured, _, samples, model, settings] = cells.as_slice() else { panic!("{line}") };
        let mut set = vec![
            ("model".to_owned(), (*model).to_owned()),
            ("accelerator".to_owned(), "A100-SXM-80GB".to_owned()),
        ];
        set.extend(
            settings
                .split(' ')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let resolution = resolve(&[], &set);
        let plan = resolution.plan.unwrap_or_else(|| panic!("{script}: {:?}", resolution.diagnostics));
        Row {
            script: (*script).to_owned(),
            measured: measured.parse().expect("GiB"),
            is_packed: *samples == "packed",
            predicted: memory(&plan).worst.peak_reserved.in_gib(),
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// Rows whose prediction is more than 5 % too low, the direction of a false "fits". The cause is not known (a first
/// batch without checkpointing, a cache that grew); a row that becomes accurate fails here.
const TOO_LOW: [&str; 6] = [
    "examples/notebook/qwen2_5-self-cognition/sft.sh",
    "examples/train/agent/loss_scale/train.sh",
    "examples/train/agent/qwen2_5.sh",
    "examples/train/cached_dataset/sft.sh",
    "examples/train/multi-gpu/ddp/train.sh",
    "examples/train/rlhf/simpo.sh",
];

#[test]
fn published_memory_of_tuned_models_is_met_as_far_as_it_is() {
    let rows = rows();
    assert_eq!(rows.len(), 26);
    let low: Vec<&str> =
        rows.iter().filter(|row| row.error() < -0.05).map(|row| row.script.as_str()).collect();
    for row in &rows {
        println!("{} {:.1} {:.1} {:+.1} %", row.script, row.measured, row.predicted, 100.0 * row.error());
    }
    assert_eq!(low, TOO_LOW);
    let median = |packed: bool| {
        let mut errors: Vec<f64> =
            rows.iter().filter(|row| row.is_packed == packed).map(|row| row.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        (errors.len(), errors[errors.len() / 2])
    };
    let summary = format!("{:?} packed, {:?} as they come", median(true), median(false));
    let [(packed, close), (loose, far)] = [median(true), median(false)];
    assert_eq!((packed, loose), (5, 21), "{summary}");
    assert!(close < 0.05, "{summary}");
    assert!(far < 0.27, "{summary}");
}
