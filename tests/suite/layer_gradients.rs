//! Gradients computed in a layer's backward are held while it continues, compared with recorded passes
//! (`tests/record/layer_gradients.py`).

use shardscope::bash::Environment;
use shardscope::estimate::memory;
use shardscope::launch::{Request, read};
use shardscope::source::Source;

const RECORDED: &str = include_str!("../data/activations/layer_gradients.tsv");
/// Bytes of cuBLAS' two workspaces on Hopper, which do not exist in a CPU recording.
const WORKSPACES: u64 = 2 << 25;
/// Rotary frequencies, the loss and other single numbers.
const REST: u64 = 20_000;

#[test]
fn peaks_within_a_layer_have_its_earlier_gradients() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let figures: Vec<u64> = line.split('\t').map(|figure| figure.parse().expect("a figure")).collect();
        let [vocabulary, wide, layers, sequences, tokens, peak] = figures[..] else { panic!("{line}") };
        let model = format!(
            r#"{{"model_type": "llama", "hidden_size": {wide}, "intermediate_size": {}, "num_hidden_layers": {layers},
            "num_attention_heads": {}, "num_key_value_heads": {}, "vocab_size": {vocabulary}, "tie_word_embeddings": false,
            "max_position_embeddings": 8192}}"#,
            wide * 7 / 2,
            wide / 128,
            wide / 512,
        );
        let file = format!(
            "model_name_or_path: ./\nstage: sft\nfinetuning_type: full\noptim: sgd\ndataset: identity\npure_bf16: true\n\
             gradient_accumulation_steps: 1\ncutoff_len: {tokens}\nper_device_train_batch_size: {sequences}\n"
        );
        let source = Source::from_files([("train.yaml", file.as_str()), ("config.json", &model)]);
        let set = [("accelerator", "H200-SXM"), ("world_size", "1")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let read = read(&Request { source: &source, environment: &Environment::default(), overrides: &set });
        let plan = read.plan.unwrap_or_else(|| panic!("{:?}", read.diagnostics));
        let ours = memory(&plan).ranks[0].totals.peak_allocated.get() - WORKSPACES;
        assert!(ours.abs_diff(peak) < REST, "{line}: {ours}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}
