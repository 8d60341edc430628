//! KTO of TRL, whose loss runs as it is in the recording (`tests/record/trl_kto.py`): what it keeps, what stands beside it, and which
//! files are read as it.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan;

const RECORDED: &str = include_str!("../data/activations/trl_kto.jsonl");

#[test]
fn recorded_kto_of_trl_is_met_to_the_byte() {
    let mut compared = 0;
    for line in RECORDED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let precomputed = case["precomputed"] == true;
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("training_objective", "kto"),
            ("preference_logits", "own"),
            ("reference_model", if precomputed { "precomputed" } else { "adapters" }),
        ]);
        let x = Symbols::of(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let ours: u64 =
            saved.iter().filter(|saved| saved.name != "lm_head input").map(|saved| saved.bytes.get()).sum();
        // The input of the output layer is kept for its weight, which is frozen under adapters.
        let wide = int(&case, "samples") * int(&case, "tokens") * int(&case, "hidden") * 2;
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(ours, kept - wide, "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let loss = transients.iter().find(|transient| transient.name == "loss").expect("a loss");
        for saved in saved.iter().chain(&loss.tensors) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        // What is held on the way and no longer behind it: log-probabilities and masks are below six bytes a token.
        let beside: u64 = loss.tensors.iter().map(|tensor| tensor.bytes.get()).sum();
        let held = int(&case, "held_at_most") - int(&case, "held_after");
        assert!((beside..beside + 6 * x.n).contains(&held), "{beside} and {line}");
        // The policy's pass without gradients is there in any case, and the reference's two where they are not precomputed.
        let calls = case["calls"].as_array().expect("a list").len() as u64;
        assert_eq!(plan.recipe().tuning.objective.passes_beside() + 1, calls, "{line}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[test]
fn files_and_commands_of_kto_are_read() {
    let file = |more: &str| {
        let text = format!(
            "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\nlearning_rate: 5e-7\nbf16: true\n\
             dtype: bfloat16\nmax_length: 1024\nbeta: 0.01\noutput_dir: data/qwen-kto\nuse_peft: true\n{more}\n"
        );
        resolved(
            &Source::from_files([("config.yaml", text.as_str())]),
            &[("world_size".to_owned(), "8".to_owned())],
        )
    };
    let value = |read: &shardscope::launch::Resolution, field| {
        read.setting(field).map(|setting| setting.value.written()).unwrap_or_default()
    };
    for (more, reference) in [("", ""), ("precompute_ref_log_probs: true", "precomputed")] {
        let read = file(more);
        assert!(read.plan.is_some() && read.not_modelled.is_empty(), "{:?}", read.not_modelled);
        assert_eq!(value(&read, Field::TrainingObjective), "kto");
        assert_eq!(value(&read, Field::PreferenceLogits), "own");
        assert_eq!(value(&read, Field::ReferenceModel), reference);
    }
    for (more, name) in
        [("loss_type: apo_zero_unpaired", "loss_type"), ("use_liger_kernel: true", "use_liger_kernel")]
    {
        let read = file(more);
        assert!(read.not_modelled.iter().any(|item| item.name == name), "{:?}", read.not_modelled);
    }
    let command = "trl kto --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --max_length 1024 --bf16 true \
        --dtype bfloat16 --use_peft --output_dir out";
    let read =
        resolved(&Source::from_files([("run.sh", command)]), &[("world_size".to_owned(), "8".to_owned())]);
    assert!(read.not_modelled.is_empty(), "{:?}", read.not_modelled);
    assert_eq!(value(&read, Field::TrainingObjective), "kto");
}
