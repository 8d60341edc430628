//! DPO, KTO and GRPO of TRL, and SimPO's own trainer, whose losses run as in the recordings (`tests/record/trl_dpo.py`,
//! `trl_kto.py`, `trl_grpo.py`, `simpo.py`): what they keep, what else they hold in forward and backward, and which
//! files are read as KTO.

use serde_json::Value;
use shardscope::operators::{Operator, Symbols};
use shardscope::plan::Field;
use shardscope::source::Source;

use super::drafts::int;
use super::formats::resolved;
use super::formula::evaluate;
use super::kept_by_llamafactory::plan;

const KTO: &str = include_str!("../data/activations/trl_kto.jsonl");
const GRPO: &str = include_str!("../data/activations/trl_grpo.jsonl");
const SIMPO: &str = include_str!("../data/activations/simpo.jsonl");
/// `tests/record/trl_odds.py`.
const ODDS: &str = include_str!("../data/activations/trl_odds.jsonl");
/// `tests/record/trl_fused_head.py`.
const FUSED: &str = include_str!("../data/activations/trl_fused_head.jsonl");
const DPO: &str = include_str!("../data/activations/trl_dpo.jsonl");

/// Log-probabilities, masks and tokens of a step, as an upper bound in bytes per token.
const SMALL: u64 = 24;

/// Temporary numbers for the metrics of ORPO, CPO and SimPO. Unit: byte. If forward's peak comes before the
/// log-probabilities, they do not exist yet.
const SCRATCH: u64 = 16_384;

/// Compares the training calls of a recording; `room` bytes of temporary numbers are allowed in addition to what is
/// kept.
#[track_caller]
fn compare(recorded: &str, [objective, logits]: [&str; 2], samples: &str, room: u64, cases: usize) {
    let mut compared = 0;
    for line in recorded.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        if case["evaluates"] == true {
            continue;
        }
        let sizes = [samples, "tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let precomputed = case["precomputed"] == true;
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("params_dtype", "bf16"),
            ("autocast", if case["cast"] == true { "bf16" } else { "none" }),
            ("training_objective", objective),
            ("preference_logits", logits),
            ("reference_model", if precomputed { "precomputed" } else { "adapters" }),
            ("loss_kind", if case["kernel"] == true { "token_kernel" } else { "torch" }),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let ours: u64 =
            saved.iter().filter(|saved| saved.name != "lm_head input").map(|saved| saved.bytes.get()).sum();
        // The output layer's input is kept for its weight, which is frozen under adapters, and token ids for the
        // embedding, which is frozen too; TRL selects log-probabilities by the same ids.
        let ids = if logits == "own" { 0 } else { 8 * x.n };
        let wide = x.n * int(&case, "hidden") * 2 + ids;
        let kept: u64 =
            case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes")).sum();
        assert_eq!(ours, kept - wide, "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let find = |name: &str| transients.iter().find(|transient| transient.name == name).expect("a moment");
        let (loss, back) = (find("loss"), find("backward of the loss"));
        for saved in saved.iter().chain(&loss.tensors).chain(&back.tensors) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        // Tensors held during the loss but not after it.
        let sum =
            |of: &[shardscope::operators::Saved]| of.iter().map(|tensor| tensor.bytes.get()).sum::<u64>();
        let held = int(&case, "held_at_most") - int(&case, "held_after");
        let beside = sum(&loss.tensors);
        let least = if room > 0 { beside.saturating_sub(SMALL * x.n) } else { beside };
        assert!((least..beside + SMALL * x.n + room).contains(&held), "{beside} and {line}");
        // In backward, in addition to what is kept and the gradients of both tables of the recorded model.
        let back = ours - back.returned.get() + sum(&back.tensors);
        let most = int(&case, "held_in_backward_at_most");
        let tables = 2 * 2 * x.v * int(&case, "hidden");
        // A CPU sums 16-bit numbers of one sequence in fp32 (`scatter_add_`), which is visible in the allocator's own
        // figures.
        let adds_up = case["kernel"] == false && case["cast"] == false;
        let scratch = if adds_up { 4 * (x.s - 1) * x.v } else { 0 };
        assert!(
            most <= back + tables + scratch + SMALL * x.n && back <= most + SMALL * x.n,
            "{back} and {line}"
        );
        // The policy's pass without gradients always exists, and the reference's if it is not precomputed.
        let calls = case["calls"].as_array().expect("a list").len() as u64;
        assert_eq!(plan.recipe().tuning.objective.passes_beside() + 1, calls, "{line}");
        compared += 1;
    }
    assert_eq!(compared, cases);
}

#[test]
fn recorded_kto_of_trl_is_met_to_the_byte() {
    compare(KTO, ["kto", "own"], "samples", 0, 8);
}

#[test]
fn recorded_orpo_cpo_and_simpo_of_trl_are_met_to_the_byte() {
    let methods = [("orpo", "orpo"), ("cpo", "cpo"), ("simpo_with_chosen", "cpo_simpo"), ("simpo", "simpo")];
    for (method, word) in methods {
        let of_method = format!("\"method\": \"{method}\"");
        // The first line contains versions.
        let runs: Vec<&str> =
            std::iter::once("").chain(ODDS.lines().filter(|line| line.contains(&of_method))).collect();
        compare(&runs.join("\n"), ["dpo", word], "pairs", SCRATCH, 12);
    }
}

#[test]
fn recorded_dpo_of_trl_is_met_to_the_byte() {
    compare(DPO, ["dpo", "own"], "pairs", 0, 8);
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
            &[("zero_stage", "0"), ("world_size", "8")]
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
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

/// Policy losses count every token as sampled where the longest response is not stated; the recording samples all but the first.
#[test]
fn recorded_grpo_of_trl_is_held_at_the_fullest() {
    let mut compared = 0;
    for line in GRPO.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["samples", "tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let response = case["response"].as_u64().map(|tokens| tokens.to_string()).unwrap_or_default();
        let plan = plan(&[
            ("micro_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", &sizes[3]),
            ("num_attention_heads", "2"),
            ("params_dtype", "bf16"),
            ("autocast", if case["cast"] == true { "bf16" } else { "none" }),
            ("training_objective", "policy"),
            ("rl_framework", "trl"),
            ("rollout_engine", "vllm"),
            ("rollout_response", &response),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let transients = Operator::OutputLayer.transients(&x);
        let find = |name: &str| transients.iter().find(|transient| transient.name == name).expect("a moment");
        let (loss, back) = (find("loss"), find("backward of the loss"));
        let whole = find("backward of the output layer");
        for saved in saved.iter().chain(&loss.tensors).chain(&back.tensors).chain(&whole.tensors) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        let sum =
            |of: &[shardscope::operators::Saved]| of.iter().map(|tensor| tensor.bytes.get()).sum::<u64>();
        // One token of each sequence is not sampled, and its logits are not kept; the tables of the recorded model.
        let small = SMALL * x.n + x.b * x.v * 4 + 2 * 2 * x.v * int(&case, "hidden");
        for (ours, theirs) in [
            (sum(&saved) + sum(&loss.tensors), int(&case, "held_at_most")),
            (sum(&saved) - back.returned.get() + sum(&back.tensors), int(&case, "held_in_backward_at_most")),
        ] {
            assert!(ours.abs_diff(theirs) <= small, "{ours} and {line}");
        }
        // Where the responses alone have logits, what is kept is met to the byte, beside the tokens, which the embedding keeps too, and
        // the output layer's input, which is kept for its weight.
        if !response.is_empty() {
            let kept = case["kept"].as_array().expect("a list").iter().map(|tensor| int(tensor, "bytes"));
            let input = if x.b == 1 { x.n } else { x.logit_rows() } * int(&case, "hidden") * 2;
            assert_eq!(sum(&saved) + input, kept.sum::<u64>(), "{line}");
        }
        compared += 1;
    }
    assert_eq!(compared, 14);
}

#[test]
fn recorded_simpo_is_met_to_the_byte() {
    compare(SIMPO, ["dpo", "whole"], "pairs", 0, 6);
}

/// Pairs in an evaluation batch larger than training's, whose loss may be the peak.
#[test]
fn recorded_evaluations_of_dpo_are_met() {
    let mut compared = 0;
    for line in DPO.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        if case["evaluates"] != true {
            continue;
        }
        let sizes = ["pairs", "tokens", "vocabulary"].map(|name| int(&case, name).to_string());
        let plan = plan(&[
            ("micro_batch_size", "1"),
            ("evaluation_batch_size", &sizes[0]),
            ("seq_length", &sizes[1]),
            ("vocab_size", &sizes[2]),
            ("hidden_size", "16"),
            ("num_attention_heads", "2"),
            ("params_dtype", "bf16"),
            ("autocast", if case["cast"] == true { "bf16" } else { "none" }),
            ("training_objective", "dpo"),
            ("preference_logits", "own"),
            ("reference_model", if case["precomputed"] == true { "precomputed" } else { "adapters" }),
            ("gpus_per_node", "1"),
            ("gradient_checkpointing", "true"),
        ]);
        let memory = shardscope::estimate::memory(&plan);
        let [rank] = memory.ranks.as_slice() else { panic!("one rank") };
        if rank.at != "evaluation" {
            continue;
        }
        let peak = rank.breakdown.child("peak_allocated").expect("a peak");
        let ours = peak.child("temporaries").and_then(|all| all.child("evaluation")).expect("evaluation");
        let held = int(&case, "held_at_most");
        let tokens = 2 * int(&case, "pairs") * int(&case, "tokens");
        // Token ids, embeddings, output layer and its input in the recorded model, and log-probabilities.
        let hidden = int(&case, "hidden");
        let small = tokens * (SMALL + 4 * hidden) + 2 * int(&case, "vocabulary") * hidden;
        let ours = ours.value().get();
        assert!((ours..ours + small).contains(&held), "{ours} and {line}");
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

/// TRL also computes the entropy of its logits without preferences; under autocast Accelerate passes them on in fp32.
#[test]
fn metrics_of_supervised_tuning_stand_beside_its_softmax() {
    let of = |set: &[(&str, &str)]| {
        let all: Vec<_> =
            [("params_dtype", "bf16"), ("micro_batch_size", "2")].iter().chain(set).copied().collect();
        let plan = plan(&all);
        let x = Symbols::new(&plan);
        let transients = Operator::OutputLayer.transients(&x);
        let moment = transients.iter().find(|transient| transient.name == "metrics of the loss");
        moment.map(|moment| {
            let sum: u64 = moment.tensors.iter().map(|tensor| tensor.bytes.get()).sum();
            let formulas: f64 = moment
                .tensors
                .iter()
                .map(|saved| evaluate(saved.formula.expression, &|name| x.value(name)))
                .sum();
            assert_eq!(sum as f64, formulas);
            (sum, x.n, x.v)
        })
    };
    let own = ("preference_logits", "own");
    let (sum, n, v) = of(&[own, ("autocast", "bf16")]).expect("metrics");
    assert_eq!(sum, 4 * v * (n + (n - 2) + 3 * 128));
    let (sum, ..) = of(&[own, ("autocast", "none")]).expect("metrics");
    assert_eq!(sum, 2 * v * (n + (n - 2) + 3 * 128));
    // DeepSpeed's engine has no such wrapper, and neither has FSDP2.
    for engine in ["deepspeed", "fsdp2"] {
        let set = [own, ("autocast", "bf16"), ("data_parallel_engine", engine)];
        assert_eq!(of(&set).expect("metrics").0, 2 * v * (n + (n - 2) + 3 * 128), "{engine}");
    }
    assert_eq!(of(&[("preference_logits", "dropped"), ("autocast", "bf16")]), None);
}

/// The output layer of TRL 1.15 and later, which computes logits one tile at a time.
#[test]
fn the_recorded_fused_head_of_trl_is_met_to_the_byte() {
    let mut compared = 0;
    for line in FUSED.lines().skip(1) {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let sizes = ["tokens", "vocabulary", "hidden"].map(|name| int(&case, name).to_string());
        let (sequences, loss) = (int(&case, "sequences"), case["loss"].as_str().expect("a word"));
        let wide = case["weights"] == "float32";
        let trains = case["head_trains"] == true;
        let sampled = int(&case, "sampled").to_string();
        let samples = if loss == "dpo" { sequences / 2 } else { sequences };
        let plan = plan(&[
            ("micro_batch_size", &samples.to_string()),
            ("seq_length", &sizes[0]),
            ("vocab_size", &sizes[1]),
            ("hidden_size", &sizes[2]),
            ("num_attention_heads", "2"),
            ("params_dtype", if wide { "fp32" } else { "bf16" }),
            ("autocast", if case["autocast"].is_null() { "none" } else { "bf16" }),
            ("bf16", if wide && case["autocast"].is_null() { "false" } else { "true" }),
            ("train_type", if trains { "full" } else { "lora" }),
            ("training_objective", if matches!(loss, "grpo" | "rloo") { "policy" } else { loss }),
            ("rl_framework", if matches!(loss, "grpo" | "rloo") { "trl" } else { "" }),
            ("rollout_engine", if matches!(loss, "grpo" | "rloo") { "vllm" } else { "" }),
            ("rollout_response", if matches!(loss, "grpo" | "rloo") { sampled.as_str() } else { "" }),
            ("preference_logits", "own"),
            ("reference_model", if case["precomputed"] == true { "precomputed" } else { "loaded" }),
            ("loss_kind", "fused_tiles"),
        ]);
        let x = Symbols::new(&plan);
        let saved = Operator::OutputLayer.saved(&x);
        let sum =
            |of: &[shardscope::operators::Saved]| of.iter().map(|tensor| tensor.bytes.get()).sum::<u64>();
        // Tensors of the batch are not counted twice: tokens belong to the embedding.
        let kept: u64 = case["kept"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|tensor| tensor["given"] == false)
            .map(|tensor| int(tensor, "bytes"))
            .sum();
        assert_eq!(sum(&saved), kept, "{line}");
        let transients = Operator::OutputLayer.transients(&x);
        let find = |name: &str| transients.iter().find(|transient| transient.name == name).expect("a moment");
        let (forward, back) = (find("loss"), find("backward of the output layer"));
        for saved in saved.iter().chain(&forward.tensors).chain(&back.tensors) {
            let value = evaluate(saved.formula.expression, &|name| x.value(name));
            assert_eq!(saved.bytes.get() as f64, value, "{}", saved.name);
        }
        // Temporary numbers per token come and go; either sums become gradients or copies exist, whichever is larger.
        let after = int(&case, "held_after");
        let beside = sum(&forward.tensors);
        let held = int(&case, "held_at_most") - after;
        assert!(held.abs_diff(beside) < 2 * SMALL * x.n, "{beside} for {held} of {line}");
        let beside = sum(&back.tensors);
        let held = int(&case, "held_in_backward_at_most") - after;
        assert!(beside <= held && held <= beside + 4 * x.n, "{beside} for {held} of {line}");
        compared += 1;
    }
    assert_eq!(compared, 66);
}
